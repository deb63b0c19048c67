#include "runtime/device_loader.h"

#include <filesystem>

#include "braid/error.h"
#include "ir/fail.h"
#include "ir/groups.h"
#include "runtime/cuda/cuda_api.h"
#include "runtime/dynamic_library.h"

namespace braid {
namespace {

constexpr const char* kCpuLibrary = "libbraid_cpu.so";

std::unique_ptr<Device> open_cpu_device(const CpuOptions& options) {
  // The code stays mapped after this handle is closed.
  const DynamicLibrary library(cpu_library_candidates());
  if (!library.loaded()) {
    throw_environment("cpu device", "its library does not load; {}. Tried: {}",
                      how_to_get_cpu_device(), library.failure());
  }
  decltype(&braid_create_cpu_device) create = nullptr;
  std::string missing;
  bind_symbol(library, "braid_create_cpu_device", create, missing);
  if (!missing.empty()) {
    throw_environment("cpu device", "{} lacks {}", library.path(), missing);
  }
  return std::unique_ptr<Device>(create(&options));
}

bool has_gpu(bool virtual_ranks) {
  try {
    return cuda::Api::get(virtual_ranks).gpus > 0;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

const char* how_to_get_cpu_device() {
  return "build braid with BRAID_CPU_DEVICE=ON (needs LLVM 19), keep libbraid_cpu.so beside "
         "libbraid.so, or set BRAID_CPU_LIBRARY to its full path";
}

std::vector<std::string> cpu_library_candidates() {
  if (std::string path = environment("BRAID_CPU_LIBRARY"); !path.empty()) return {path};
  std::vector<std::string> candidates;
  if (const std::filesystem::path folder = library_folder(); !folder.empty()) {
    candidates.push_back((folder / kCpuLibrary).string());
  }
  candidates.emplace_back(kCpuLibrary);
  return candidates;
}

std::unique_ptr<Device> open_device(DeviceKind kind, const CpuOptions& options, GpuPlace place) {
  if (options.world < 1 || options.world > kMostRanks) {
    throw_invalid("world", "{} ranks; expected 1 to {}", options.world, kMostRanks);
  }
  if (options.threads < 0 || options.threads > kMostThreads) {
    throw_invalid("threads", "{}; expected 0 to {}", options.threads, kMostThreads);
  }
  const bool watched = options.checks != 0 || options.count;
  const bool own_sums = options.matrix_sums != MatrixSums::kRounded;
  if (kind == DeviceKind::kAny) {
    kind =
        !watched && !own_sums && has_gpu(options.world > 1) ? DeviceKind::kCuda : DeviceKind::kCpu;
  }
  if (kind == DeviceKind::kCpu) return open_cpu_device(options);
  if (watched) {
    throw_invalid(options.checks != 0 ? "sanitize" : "count",
                  "the cuda device does not watch its kernels; expected the cpu device");
  }
  if (own_sums) {
    throw_invalid("matrix-sums", "a GPU adds as it does; expected the cpu device");
  }
  return create_cuda_device(options.world, place);
}

}  // namespace braid
