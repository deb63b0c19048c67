#pragma once

#include <memory>

#include "braid/checks.h"
#include "braid/device.h"
#include "braid/export.h"
#include "braid/matrix_sums.h"
#include "runtime/cpu_tricks.h"
#include "runtime/object_cache.h"

namespace braid {

/// The `cpu` device: runs PTX on N virtual ranks of this process (docs/architecture.md, Devices).
struct CpuOptions {
  int world = 1;
  int threads = 0;                     ///< 0: one per core
  const ObjectCache* cache = nullptr;  ///< for compiled host objects; none when null
  unsigned checks = 0;  ///< sanitizer checks (braid/checks.h); any of them means a single worker
  bool count = false;   ///< count what kernels do
  bool sample = false;  ///< count only a sample of their blocks, with a single worker
  Schedule schedule;    ///< for a checked run
  MatrixSums matrix_sums = MatrixSums::kRounded;  ///< of mma.sync and wgmma, in f32
  /// Whether faults of kernels become errors: handles SIGSEGV and SIGBUS of the device's threads.
  bool catch_faults = true;
  CpuTricks tricks;
};

std::unique_ptr<Device> create_cpu_device(const CpuOptions& options);

}  // namespace braid

/// The functions that the loader looks up in `libbraid_cpu.so`; they have C linkage, so a name
/// suffices. Throws braid::Error.
extern "C" BRAID_API braid::Device* braid_create_cpu_device(const braid::CpuOptions* options);
/// The LLVM version it is built with, such as "19.1.7"; the text lives as long as the library.
extern "C" BRAID_API const char* braid_cpu_llvm_version();
