#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "braid/device.h"
#include "codegen/kernel/spec.h"
#include "codegen/target.h"

namespace braid {

class DiskCache;

/// What ptxas says of a kernel.
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
  bool cache_hit = false;
};

/// Version of the NVRTC that is loaded, "13.0"; throws kEnvironment with how to get it when there
/// is none.
[[nodiscard]] std::string nvrtc_version();
/// The file it was loaded from.
[[nodiscard]] std::string nvrtc_path();

/// Throws kEnvironment, naming both versions and what to install, where NVRTC makes code that the
/// installed CUDA driver cannot load. A missing NVRTC is told when something is to be compiled.
void check_nvrtc_fits_driver();

/// Reads what `ptxas -v` printed for one kernel; what a line lacks stays 0.
[[nodiscard]] KernelResources parse_ptxas_log(std::string_view log);

/// Compiles one kernel to PTX and cubin. Options: --gpu-architecture of the target, --fmad=false,
/// --std=c++17, --ptxas-options=-v, and --generate-line-info where asked. The key in `cache` (may
/// be null) holds the source, options, target, NVRTC version and cache format; where NVRTC is
/// missing, an entry of any NVRTC version serves. Throws kInternal with the full compiler log when
/// the source does not compile, kEnvironment when NVRTC is needed and missing.
[[nodiscard]] CompiledKernel compile_kernel(const KernelSource& source, const Target& target,
                                            const DiskCache* cache, bool line_info = false);

/// What is in `cache` (may be null) of that kernel.
[[nodiscard]] std::optional<CompiledKernel> find_kernel(const KernelSource& source,
                                                        const Target& target,
                                                        const DiskCache* cache, bool line_info);

/// As bytes, for the cache and for other processes: image and resources. Nothing where it is none.
[[nodiscard]] std::string to_bytes(const CompiledKernel& kernel);
[[nodiscard]] std::optional<CompiledKernel> kernel_from(std::string_view bytes);

/// PTX with line information of the CUDA text that a user wrote into the file `path`, which may
/// include what lies beside it, and CUDA's headers where they are found. Throws
/// kInvalidArgument with the place and the text of the first error, kEnvironment when NVRTC is
/// missing.
[[nodiscard]] std::string compile_file(const std::string& text, const std::string& path,
                                       const Target& target);

}  // namespace braid
