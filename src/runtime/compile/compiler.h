#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "braid/device.h"
#include "codegen/kernel/spec.h"
#include "codegen/target.h"

namespace braid {

class DiskCache;

/// Resource usage of a kernel, as ptxas reports it.
struct KernelResources {
  int registers = 0;
  int shared_bytes = 0;  ///< static
  int spill_store_bytes = 0;
  int spill_load_bytes = 0;
  int stack_bytes = 0;
};

struct CompiledKernel {
  KernelImage image;  ///< PTX and cubin
  KernelResources resources;
  double compile_ms = 0;  ///< in NVRTC; 0 on a cache hit
  /// What ptxas says of lost performance, a line each, such as that wgmma is serialised: an error
  /// of the kernel's text. Empty on a cache hit.
  std::string advice;
  bool cache_hit = false;
};

/// Version of the loaded NVRTC, "13.0". Throws kEnvironment, with how to get it, if it is missing.
[[nodiscard]] std::string nvrtc_version();
[[nodiscard]] std::string nvrtc_path();

/// Throws kEnvironment, naming both versions and what to install, if NVRTC produces code that the
/// installed CUDA driver cannot load. A missing NVRTC is reported only when something must be
/// compiled.
void check_nvrtc_fits_driver();

/// Parses the output of `ptxas -v` for one kernel; missing numbers stay 0.
[[nodiscard]] KernelResources parse_ptxas_log(std::string_view log);

/// Compiles one kernel to PTX and cubin. Options: --gpu-architecture of the target, --fmad=false,
/// --std=c++17, --ptxas-options=-v, and --generate-line-info where asked. The key in `cache`, which
/// may be null, contains the source, options, target, NVRTC version and cache format; where NVRTC
/// is missing, an entry of any NVRTC version is used. Throws kInternal with the full compiler log
/// when the source does not compile, kEnvironment when NVRTC is needed and missing.
[[nodiscard]] CompiledKernel compile_kernel(const KernelSource& source, const Target& target,
                                            const DiskCache* cache, bool line_info = false);

/// The cached kernel, if any; `cache` may be null.
[[nodiscard]] std::optional<CompiledKernel> find_kernel(const KernelSource& source,
                                                        const Target& target,
                                                        const DiskCache* cache, bool line_info);

/// Serializes image and resources, for the cache and for other processes. The reader returns
/// nothing for malformed bytes.
[[nodiscard]] std::string to_bytes(const CompiledKernel& kernel);
[[nodiscard]] std::optional<CompiledKernel> kernel_from(std::string_view bytes);

/// Compiles a user's CUDA text from the file `path` to PTX with line information, otherwise with
/// NVRTC's own settings. It may include files beside it, and CUDA's headers if they are found.
/// Throws kInvalidArgument with the place and text of the first error, kEnvironment when NVRTC is
/// missing.
[[nodiscard]] std::string compile_file(const std::string& text, const std::string& path,
                                       const Target& target);

}  // namespace braid
