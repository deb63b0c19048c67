#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "braid/error.h"
#include "ir/fail.h"
#include "runtime/dynamic_library.h"

namespace braid::cuda {

// The CUDA driver functions that braid calls, as NVIDIA documents them; no CUDA header is needed to
// build. Handles are opaque pointers, CUresult and CUdevice are int.
using Result = int;
using Ordinal = int;
using Address = unsigned long long;
using Context = struct ContextTag*;
using ModuleHandle = struct ModuleTag*;
using FunctionHandle = struct FunctionTag*;
using StreamHandle = struct StreamTag*;
using EventHandle = struct EventTag*;
using GraphHandle = struct GraphTag*;
using GraphExecHandle = struct GraphExecTag*;

/// CUmemGenericAllocationHandle: physical memory, or a multicast object.
using PhysicalHandle = unsigned long long;

/// CUmemFabricHandle.
struct FabricHandle {
  unsigned char bytes[64];
};
/// CUmemLocation.
struct MemoryLocation {
  int type = 0;
  int id = 0;
};
/// CUmemAllocationProp.
struct MemoryProperties {
  int type = 0;
  int handle_types = 0;
  MemoryLocation location;
  void* unused = nullptr;
  struct {
    unsigned char compression, direct_rdma;
    unsigned short usage;
    unsigned char reserved[4];
  } flags{};
};
/// CUmemAccessDesc.
struct MemoryAccess {
  MemoryLocation location;
  int flags = 0;
};
/// CUmulticastObjectProp.
struct MulticastProperties {
  unsigned devices = 0;
  std::size_t bytes = 0;
  unsigned long long handle_types = 0;
  unsigned long long flags = 0;
};
static_assert(sizeof(MemoryProperties) == 32 && sizeof(MemoryAccess) == 12);

/// CUlaunchAttribute; the value is a union of 64 bytes.
struct LaunchAttribute {
  int id;
  alignas(8) union {
    char bytes[64];
    struct {
      unsigned x, y, z;
    } cluster;
    int programmatic;
  } value;
};
/// CUlaunchConfig.
struct LaunchConfig {
  unsigned grid[3], block[3];
  unsigned shared_bytes;
  StreamHandle stream;
  const LaunchAttribute* attributes;
  unsigned attribute_count;
};
static_assert(sizeof(LaunchAttribute) == 72 && sizeof(LaunchConfig) == 56);

inline constexpr Result kSuccess = 0;
inline constexpr Result kInvalidValue = 1;
inline constexpr Result kInvalidImage = 200;
inline constexpr Result kInvalidContext = 201;
inline constexpr Result kPeerAccessUnsupported = 217;
inline constexpr Result kInvalidPtx = 218;
inline constexpr Result kJitCompilerNotFound = 221;
inline constexpr Result kUnsupportedPtxVersion = 222;
inline constexpr Result kJitCompilationDisabled = 223;
inline constexpr Result kInvalidHandle = 400;
inline constexpr Result kNotFound = 500;
inline constexpr Result kPeerAccessAlreadyEnabled = 704;
inline constexpr Result kNotPermitted = 800;
inline constexpr Result kNotSupported = 801;
/// The first and the last error code about an invalidated capture.
inline constexpr Result kCaptureUnsupported = 900;
inline constexpr Result kCaptureWrongThread = 908;
inline constexpr int kCaptureRelaxed = 2;
inline constexpr unsigned kHostAllocPortable = 1;
inline constexpr unsigned kHostAllocMapped = 2;
inline constexpr int kStreamNonBlocking = 1;
inline constexpr int kEventDisableTiming = 2;
inline constexpr int kAttributeComputeCapabilityMajor = 75;
inline constexpr int kAttributeComputeCapabilityMinor = 76;
inline constexpr int kAttributeVirtualMemory = 102;
inline constexpr int kAttributeFileHandles = 103;
inline constexpr int kAttributeFabricHandles = 128;
inline constexpr int kAttributeMulticast = 132;
inline constexpr int kPointerContext = 1;
inline constexpr int kPointerMemoryType = 2;
inline constexpr int kPointerRangeStart = 11;
inline constexpr int kPointerRangeSize = 12;
inline constexpr int kMemoryTypeDevice = 2;
inline constexpr int kMemoryPinned = 1;
inline constexpr int kLocationDevice = 1;
inline constexpr int kHandleFile = 1;
inline constexpr int kHandleFabric = 8;
inline constexpr int kAccessReadWrite = 3;
inline constexpr int kGranularityMinimum = 0;
inline constexpr unsigned kWaitValueGeq = 0;
inline constexpr int kFunctionMaxDynamicShared = 8;
inline constexpr int kLaunchClusterDimension = 4;
inline constexpr int kLaunchProgrammatic = 6;
inline constexpr int kJitErrorLogBuffer = 5;
inline constexpr int kJitErrorLogBufferBytes = 6;

// X(member, suffix of the exported symbol, parameters). The suffixes are those of cuda.h.
#define BRAID_CUDA_FUNCTIONS(X)                                                                    \
  X(cuInit, "", (unsigned flags))                                                                  \
  X(cuDriverGetVersion, "", (int* version))                                                        \
  X(cuGetErrorName, "", (Result result, const char** name))                                        \
  X(cuGetErrorString, "", (Result result, const char** text))                                      \
  X(cuDeviceGetCount, "", (int* count))                                                            \
  X(cuDeviceGet, "", (Ordinal * device, int ordinal))                                              \
  X(cuDeviceGetName, "", (char* name, int bytes, Ordinal device))                                  \
  X(cuDeviceGetAttribute, "", (int* value, int attribute, Ordinal device))                         \
  X(cuDeviceTotalMem, "_v2", (std::size_t * bytes, Ordinal device))                                \
  X(cuDevicePrimaryCtxRetain, "", (Context * context, Ordinal device))                             \
  X(cuDevicePrimaryCtxRelease, "_v2", (Ordinal device))                                            \
  X(cuCtxGetCurrent, "", (Context * context))                                                      \
  X(cuCtxPushCurrent, "_v2", (Context context))                                                    \
  X(cuCtxPopCurrent, "_v2", (Context * context))                                                   \
  X(cuDeviceCanAccessPeer, "", (int* can, Ordinal device, Ordinal peer))                           \
  X(cuCtxEnablePeerAccess, "", (Context peer, unsigned flags))                                     \
  X(cuMemAlloc, "_v2", (Address * address, std::size_t bytes))                                     \
  X(cuMemHostAlloc, "", (void** address, std::size_t bytes, unsigned flags))                       \
  X(cuMemFreeHost, "", (void* address))                                                            \
  X(cuMemFree, "_v2", (Address address))                                                           \
  X(cuMemGetAllocationGranularity, "",                                                             \
    (std::size_t * bytes, const MemoryProperties* properties, int option))                         \
  X(cuMemCreate, "",                                                                               \
    (PhysicalHandle * memory, std::size_t bytes, const MemoryProperties* properties,               \
     unsigned long long flags))                                                                    \
  X(cuMemRelease, "", (PhysicalHandle memory))                                                     \
  X(cuMemAddressReserve, "",                                                                       \
    (Address * address, std::size_t bytes, std::size_t alignment, Address wanted,                  \
     unsigned long long flags))                                                                    \
  X(cuMemAddressFree, "", (Address address, std::size_t bytes))                                    \
  X(cuMemMap, "",                                                                                  \
    (Address address, std::size_t bytes, std::size_t offset, PhysicalHandle memory,                \
     unsigned long long flags))                                                                    \
  X(cuMemUnmap, "", (Address address, std::size_t bytes))                                          \
  X(cuMemSetAccess, "",                                                                            \
    (Address address, std::size_t bytes, const MemoryAccess* access, std::size_t count))           \
  X(cuMemcpyAsync, "", (Address dst, Address src, std::size_t bytes, StreamHandle stream))         \
  X(cuMemcpyHtoDAsync, "_v2",                                                                      \
    (Address dst, const void* src, std::size_t bytes, StreamHandle stream))                        \
  X(cuMemcpyDtoHAsync, "_v2", (void* dst, Address src, std::size_t bytes, StreamHandle stream))    \
  X(cuMemsetD8Async, "",                                                                           \
    (Address dst, unsigned char value, std::size_t bytes, StreamHandle stream))                    \
  X(cuStreamCreate, "", (StreamHandle * stream, unsigned flags))                                   \
  X(cuStreamDestroy, "_v2", (StreamHandle stream))                                                 \
  X(cuStreamSynchronize, "", (StreamHandle stream))                                                \
  X(cuStreamWaitEvent, "", (StreamHandle stream, EventHandle event, unsigned f))                   \
  X(cuEventCreate, "", (EventHandle * event, unsigned flags))                                      \
  X(cuEventDestroy, "_v2", (EventHandle event))                                                    \
  X(cuEventElapsedTime, "", (float* milliseconds, EventHandle start, EventHandle end))             \
  X(cuEventRecord, "", (EventHandle event, StreamHandle stream))                                   \
  X(cuModuleLoadDataEx, "",                                                                        \
    (ModuleHandle * module, const void* image, unsigned option_count, int* options,                \
     void** values))                                                                               \
  X(cuModuleUnload, "", (ModuleHandle module))                                                     \
  X(cuModuleGetFunction, "", (FunctionHandle * function, ModuleHandle module, const char* name))   \
  X(cuFuncSetAttribute, "", (FunctionHandle function, int attribute, int value))                   \
  X(cuLaunchKernel, "",                                                                            \
    (FunctionHandle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, \
     unsigned block_y, unsigned block_z, unsigned shared_bytes, StreamHandle stream, void** args,  \
     void** extra))

// The same of what a driver may lack: Api::require.
#define BRAID_CUDA_OPTIONAL_FUNCTIONS(X)                                                        \
  X(cuStreamWriteValue32, "_v2",                                                                \
    (StreamHandle stream, Address address, std::uint32_t value, unsigned flags))                \
  X(cuStreamWaitValue32, "_v2",                                                                 \
    (StreamHandle stream, Address address, std::uint32_t value, unsigned flags))                \
  X(cuMemGetAddressRange, "_v2", (Address * base, std::size_t * bytes, Address address))        \
  X(cuPointerGetAttribute, "", (void* value, int attribute, Address address))                   \
  X(cuStreamGetCtx, "", (StreamHandle stream, Context * context))                               \
  X(cuMemExportToShareableHandle, "",                                                           \
    (void* shared, PhysicalHandle memory, int type, unsigned long long flags))                  \
  X(cuMemImportFromShareableHandle, "", (PhysicalHandle * memory, void* shared, int type))      \
  X(cuMemRetainAllocationHandle, "", (PhysicalHandle * memory, void* address))                  \
  X(cuStreamIsCapturing, "", (StreamHandle stream, int* status))                                \
  X(cuStreamBeginCapture, "_v2", (StreamHandle stream, int mode))                               \
  X(cuStreamEndCapture, "", (StreamHandle stream, GraphHandle * graph))                         \
  X(cuGraphInstantiateWithFlags, "",                                                            \
    (GraphExecHandle * exec, GraphHandle graph, unsigned long long flags))                      \
  X(cuGraphDestroy, "", (GraphHandle graph))                                                    \
  X(cuGraphExecDestroy, "", (GraphExecHandle exec))                                             \
  X(cuGraphLaunch, "", (GraphExecHandle exec, StreamHandle stream))                             \
  X(cuMulticastGetGranularity, "",                                                              \
    (std::size_t * bytes, const MulticastProperties* properties, int option))                   \
  X(cuMulticastCreate, "", (PhysicalHandle * multicast, const MulticastProperties* properties)) \
  X(cuMulticastAddDevice, "", (PhysicalHandle multicast, Ordinal device))                       \
  X(cuMulticastBindMem, "",                                                                     \
    (PhysicalHandle multicast, std::size_t offset, PhysicalHandle memory,                       \
     std::size_t memory_offset, std::size_t bytes, unsigned long long flags))                   \
  X(cuMulticastUnbind, "",                                                                      \
    (PhysicalHandle multicast, Ordinal device, std::size_t offset, std::size_t bytes))          \
  X(cuTensorMapEncodeTiled, "",                                                                 \
    (void* map, int type, std::uint32_t rank, void* address, const std::uint64_t* dims,         \
     const std::uint64_t* strides, const std::uint32_t* box, const std::uint32_t* steps,        \
     int interleave, int swizzle, int promotion, int fill))                                     \
  X(cuLaunchKernelEx, "",                                                                       \
    (const LaunchConfig* config, FunctionHandle function, void** args, void** extra))

/// A failed call of the driver.
class DriverError : public Error {
 public:
  DriverError(ErrorCode code, Result result, const std::string& message)
      : Error(code, "CUDA driver", message), result_(result) {}
  [[nodiscard]] Result result() const { return result_; }

 private:
  Result result_;
};

struct Api {
  DynamicLibrary library;
  std::string version;  ///< CUDA API version of the driver, "13.0"
  int gpus = 0;
#define BRAID_DECLARE(name, suffix, parameters) LibraryFunction<Result parameters> name{#name};
  BRAID_CUDA_FUNCTIONS(BRAID_DECLARE)
  BRAID_CUDA_OPTIONAL_FUNCTIONS(BRAID_DECLARE)
#undef BRAID_DECLARE

  /// Throws DriverError with the call's name and the driver's name and text of the error, and with
  /// advice if the driver refuses code. It is kEnvironment if the machine is at fault (no device,
  /// no memory, an old driver), else kInternal. `detail` is appended if not empty.
  void check(Result result, const char* call, const std::string& detail = {}) const;

  /// Returns an optional function; throws kEnvironment if the driver lacks it.
  template <class F>
  [[nodiscard]] F* require(const LibraryFunction<F>& function) const {
    if (function == nullptr) {
      throw_environment("CUDA driver", "has no {}; expected a newer one", function.name);
    }
    return function;
  }
  /// Calls a function, which may be an optional one, and checks its result.
  template <class... Parameters>
  void run(const LibraryFunction<Result(Parameters...)>& function,
           std::type_identity_t<Parameters>... args) const {
    check(require(function)(args...), function.name);
  }

  /// Loads `$BRAID_LIBCUDA`, else libcuda.so.1, and initializes the driver. Throws kEnvironment,
  /// with how to get it, if there is no driver or no GPU. With `virtual_ranks` it first sets what
  /// several ranks on one GPU need in the driver's environment (docs/architecture.md,
  /// Communication), unless the user has set it.
  static Api load(bool virtual_ranks);
  /// load(), once per process; a failure is not remembered. `virtual_ranks` matters only in the
  /// first call, since the driver reads its environment once.
  static const Api& get(bool virtual_ranks);
  static const char* how_to_get();
};

/// The newest CUDA version whose code the installed driver runs, as 1000 * major + 10 * minor
/// (13000); 0 without a driver. Initializes nothing.
[[nodiscard]] int driver_cuda_version();

/// Formats 13000 as "13.0".
[[nodiscard]] std::string cuda_version_text(int version);

[[nodiscard]] int device_attribute(const Api& api, int which, Ordinal device);

/// The name of a GPU, such as "NVIDIA H200".
[[nodiscard]] std::string gpu_name(const Api& api, int ordinal);

/// One line about a GPU: "GPU 0: NVIDIA H200, compute capability 9.0, 139.8 GiB".
[[nodiscard]] std::string describe_gpu(const Api& api, int ordinal);

/// The target for a GPU: "sm_86", "sm_90a". Throws kEnvironment below compute capability 8.0.
[[nodiscard]] std::string gpu_target(const Api& api, int ordinal);

/// The GPU's name in device_model.h's table, or empty.
[[nodiscard]] std::string_view gpu_model(const Api& api, int ordinal);

}  // namespace braid::cuda
