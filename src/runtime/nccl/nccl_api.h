#pragma once

#include <climits>
#include <cstddef>
#include <string>

#include "runtime/dynamic_library.h"

namespace braid::nccl {

// The NCCL functions that braid calls, as NVIDIA documents them; its header is not needed to build.
// ncclResult_t, ncclDataType_t and ncclRedOp_t are int, handles are opaque pointers.
using Result = int;
using DataType = int;
using RedOp = int;
using Comm = struct CommTag*;
using StreamHandle = struct StreamTag*;

struct UniqueId {
  char internal[128];
};

/// ncclConfig_t as of 2.18, the oldest supported version. Newer versions have more fields, and use
/// defaults according to the version stated in it.
struct Config {
  std::size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 21800;
  int blocking = INT_MIN;  ///< INT_MIN: NCCL's choice
  int cga_cluster_size = INT_MIN;
  int min_ctas = INT_MIN;
  int max_ctas = INT_MIN;
  const char* net_name = nullptr;
  int split_share = INT_MIN;
};

inline constexpr Result kSuccess = 0;
inline constexpr Result kUnhandledCudaError = 1;
inline constexpr Result kSystemError = 2;
inline constexpr Result kInvalidUsage = 5;
inline constexpr Result kRemoteError = 6;
inline constexpr Result kInProgress = 7;

inline constexpr DataType kInt8 = 0;
inline constexpr DataType kUint8 = 1;
inline constexpr DataType kInt32 = 2;
inline constexpr DataType kInt64 = 4;
inline constexpr DataType kFloat16 = 6;
inline constexpr DataType kFloat32 = 7;
inline constexpr DataType kBfloat16 = 9;
inline constexpr DataType kFloat8e4m3 = 10;  ///< reductions need NCCL 2.24 and sm_90
inline constexpr DataType kFloat8e5m2 = 11;

inline constexpr RedOp kSum = 0;
inline constexpr RedOp kProd = 1;
inline constexpr RedOp kMax = 2;
inline constexpr RedOp kMin = 3;
inline constexpr RedOp kAvg = 4;

// X(name, result, parameters)
#define BRAID_NCCL_FUNCTIONS(X)                                                              \
  X(ncclGetVersion, Result, (int* version))                                                  \
  X(ncclGetErrorString, const char*, (Result result))                                        \
  X(ncclGetLastError, const char*, (Comm comm))                                              \
  X(ncclGetUniqueId, Result, (UniqueId * id))                                                \
  X(ncclCommInitRankConfig, Result,                                                          \
    (Comm * comm, int ranks, UniqueId id, int rank, Config* config))                         \
  X(ncclCommDestroy, Result, (Comm comm))                                                    \
  X(ncclCommAbort, Result, (Comm comm))                                                      \
  X(ncclCommGetAsyncError, Result, (Comm comm, Result * error))                              \
  X(ncclCommCount, Result, (const Comm comm, int* ranks))                                    \
  X(ncclCommUserRank, Result, (const Comm comm, int* rank))                                  \
  X(ncclGroupStart, Result, ())                                                              \
  X(ncclGroupEnd, Result, ())                                                                \
  X(ncclAllReduce, Result,                                                                   \
    (const void* send, void* receive, std::size_t count, DataType type, RedOp op, Comm comm, \
     StreamHandle stream))                                                                   \
  X(ncclBroadcast, Result,                                                                   \
    (const void* send, void* receive, std::size_t count, DataType type, int root, Comm comm, \
     StreamHandle stream))                                                                   \
  X(ncclReduceScatter, Result,                                                               \
    (const void* send, void* receive, std::size_t receive_count, DataType type, RedOp op,    \
     Comm comm, StreamHandle stream))                                                        \
  X(ncclAllGather, Result,                                                                   \
    (const void* send, void* receive, std::size_t send_count, DataType type, Comm comm,      \
     StreamHandle stream))                                                                   \
  X(ncclSend, Result,                                                                        \
    (const void* send, std::size_t count, DataType type, int peer, Comm comm,                \
     StreamHandle stream))                                                                   \
  X(ncclRecv, Result,                                                                        \
    (void* receive, std::size_t count, DataType type, int peer, Comm comm, StreamHandle stream))

struct Api {
  DynamicLibrary library;
  int number = 0;       ///< 22809 for 2.28.9
  std::string version;  ///< "2.28.9"
#define BRAID_DECLARE(name, result, parameters) LibraryFunction<result parameters> name{#name};
  BRAID_NCCL_FUNCTIONS(BRAID_DECLARE)
#undef BRAID_DECLARE

  /// Throws with the call's name, NCCL's text for the result, and its last message about `comm`,
  /// which may be null. It is kEnvironment if the machine or a peer is at fault, else kInternal.
  /// Success and in-progress are no errors.
  void check(Result result, const char* call, Comm comm, const std::string& where) const;

  /// Loads $BRAID_LIBNCCL, else libnccl.so.2 from CUDA toolkits, Python wheels or the loader's
  /// path. Throws kEnvironment with how to get it.
  static Api load();
  /// load(), once per process; a failure is not remembered.
  static const Api& get();
  static const char* how_to_get();
};

}  // namespace braid::nccl
