#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/dynamic_library.h"

namespace braid {

// The part of NVRTC that braid calls, as NVIDIA documents it; no CUDA header is needed to build.
// X(name, result, parameters); a result of type int is an nvrtcResult, 0 for success.
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
  DynamicLibrary builtins;  ///< beside it; may be missing where the loader finds it itself
  std::string version;      ///< "13.0"
  int major = 0;            ///< 13
  std::string identity;     ///< version and build: part of every cache key
#define BRAID_DECLARE(name, result, parameters) result(*name) parameters = nullptr;
  BRAID_NVRTC_FUNCTIONS(BRAID_DECLARE)
#undef BRAID_DECLARE

  /// Searches `$BRAID_NVRTC` (a full path; when set, the only one), `$BRAID_CUDA_HOME`,
  /// `$CUDA_HOME`, /usr/local/cuda, the wheels of Python environments (cuda_wheels()), then the
  /// loader's own path. Where there is a CUDA driver, the first whose CUDA is of its major version
  /// or an older one; without such a one the first. What is no NVRTC, or does not work, is passed
  /// over. Throws kEnvironment with every path that was tried and how to get it.
  static NvrtcApi load();
  /// The same, loaded once per process; a failure is not remembered.
  static const NvrtcApi& get();
  static const char* how_to_get();
  /// Whether a driver of CUDA `driver` (13000; 0 for none) loads what it makes: within one major
  /// version old drivers do.
  [[nodiscard]] bool fits(int driver) const;
  /// Why the installed driver does not load what it makes, and what to install; else empty.
  [[nodiscard]] std::string driver_problem() const;
  /// Where CUDA's headers lie: in `$BRAID_CUDA_HOME`, beside the library, in the wheels, in
  /// `$CUDA_HOME` or in /usr/local/cuda. Empty when there are none.
  [[nodiscard]] std::vector<std::string> include_folders() const;
};

}  // namespace braid
