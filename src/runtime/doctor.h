#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace braid {

/// The state of one dependency of braid, for people.
struct Checkup {
  std::string component;
  bool found = false;
  std::string version;     ///< may be empty
  std::string path;        ///< where it is, or where it was searched for
  std::string how_to_get;  ///< or how to repair it; empty when it is fine
};

/// Checks NVRTC, the CUDA driver, its GPUs and what the cache has of their units (unit_canary.h),
/// NCCL, the cpu device with its LLVM, and the cache directory. Does not throw for what is missing.
[[nodiscard]] std::vector<Checkup> diagnose(const std::filesystem::path& cache_directory);

}  // namespace braid
