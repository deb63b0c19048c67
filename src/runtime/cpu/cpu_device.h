#pragma once

#include <cstdint>
#include <memory>

#include "braid/checks.h"
#include "braid/device.h"
#include "braid/export.h"
#include "runtime/object_cache.h"

namespace braid {

/// The `cpu` device: runs PTX on N virtual ranks of this process (docs/architecture.md, Devices).
struct CpuOptions {
  int world = 1;
  int threads = 0;                     ///< workers; 0 = all cores
  const ObjectCache* cache = nullptr;  ///< for compiled host objects; none when null
  unsigned checks = 0;  ///< of the sanitizer (braid/checks.h); with any there is one worker
  bool count = false;   ///< count what kernels do
  bool sample = false;  ///< .. running a sample of their blocks; there is one worker then, too
  Schedule schedule;    ///< of a checked run
  /// Whether a fault of a kernel becomes an error: takes SIGSEGV and SIGBUS of the device's
  /// threads.
  bool catch_faults = true;
};

std::unique_ptr<Device> create_cpu_device(const CpuOptions& options);

}  // namespace braid

/// What the loader looks up in the library `libbraid_cpu.so` (C linkage, so a name is enough).
/// Throws braid::Error.
extern "C" BRAID_API braid::Device* braid_create_cpu_device(const braid::CpuOptions* options);
/// The version of the LLVM it is built with, e.g. "19.1.7"; the text lives as long as the library.
extern "C" BRAID_API const char* braid_cpu_llvm_version();
