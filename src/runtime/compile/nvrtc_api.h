#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/dynamic_library.h"

namespace braid {

// The NVRTC functions that braid calls, as NVIDIA documents them; no CUDA header is needed to
// build. X(name, result, parameters); a result of type int is an nvrtcResult, 0 for success.
#define BRAID_NVRTC_FUNCTIONS(X)                                                             \
  X(nvrtcVersion, int, (int* major, int* minor))                                             \
  X(nvrtcCreateProgram, int,                                                                 \
    (void** program, const char* source, const char* name, int header_count,                 \
     const char* const* headers, const char* const* include_names))                          \
  X(nvrtcDestroyProgram, int, (void** program))                                              \
  X(nvrtcCompileProgram, int, (void* program, int option_count, const char* const* options)) \
  X(nvrtcGetPTXSize, int, (void* program, std::size_t* size))                                \
  X(nvrtcGetPTX, int, (void* program, char* ptx))                                            \
  X(nvrtcGetCUBINSize, int, (void* program, std::size_t* size))                              \
  X(nvrtcGetCUBIN, int, (void* program, char* cubin))                                        \
  X(nvrtcGetProgramLogSize, int, (void* program, std::size_t* size))                         \
  X(nvrtcGetProgramLog, int, (void* program, char* log))                                     \
  X(nvrtcGetErrorString, const char*, (int result))

struct NvrtcApi {
  DynamicLibrary library;
  DynamicLibrary builtins;   ///< loaded from beside it; may be missing where the loader finds it
  std::string version;       ///< "13.0"
  int major = 0;             ///< 13
  bool has_minimal = false;  ///< --minimal, which CUDA 12.4 brought
  std::string identity;      ///< version and build; part of every cache key
#define BRAID_DECLARE(name, result, parameters) result(*name) parameters = nullptr;
  BRAID_NVRTC_FUNCTIONS(BRAID_DECLARE)
#undef BRAID_DECLARE

  /// Searches `$BRAID_NVRTC` (a full path; if set, the only one), `$BRAID_CUDA_HOME`, `$CUDA_HOME`,
  /// /usr/local/cuda, the wheels of Python environments (cuda_wheels()), then the loader's own
  /// path. With a CUDA driver it takes the first whose major version is not newer than the
  /// driver's; otherwise, or if there is none, the first. Libraries that do not work are skipped.
  /// Throws kEnvironment with every path that was tried and how to get NVRTC.
  static NvrtcApi load();
  /// load(), once per process; a failure is not remembered.
  static const NvrtcApi& get();
  static const char* how_to_get();
  /// Whether a driver of CUDA `driver` (13000; 0 for none) loads its code. Within a major version
  /// old drivers do.
  [[nodiscard]] bool fits(int driver) const;
  /// Why the installed driver does not load its code, and what to install; else empty.
  [[nodiscard]] std::string driver_problem() const;
  /// Folders of CUDA's headers: in `$BRAID_CUDA_HOME`, beside the library, in the wheels, in
  /// `$CUDA_HOME` or in /usr/local/cuda. May be empty.
  [[nodiscard]] std::vector<std::string> include_folders() const;
};

}  // namespace braid
