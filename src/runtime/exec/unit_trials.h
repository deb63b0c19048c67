#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "braid/device.h"
#include "codegen/target.h"
#include "runtime/compile/disk_cache.h"

namespace braid {

/// A set of units of tried_units(), and what is wrong with it: "on NVIDIA H200 (rank 0) 2 of 18496
/// elements of a product are wrong, ...", or nothing.
struct UnitFinding {
  unsigned units;
  std::string failure;
  bool is_new = false;  ///< the cache does not have it
};

/// Tries units on a device before kernels use them. The cache keeps what was found, by the GPU's
/// name and architecture, the driver's and NVRTC's version, braid's, and the canary's text.
class UnitTrials {
 public:
  /// `cache` may be null. The limit is that of a canary's run.
  UnitTrials(std::shared_ptr<Device> device, std::vector<int> ranks, const DiskCache* cache,
             std::chrono::nanoseconds limit);

  /// What the cache has, else what the canary of these units does on each GPU of the ranks. All is
  /// well where it can be neither found nor compiled, since NVRTC is missing. Throws kEnvironment
  /// where the canary faults or does not end: this process has lost the GPU then, and later ones
  /// find in the cache why.
  [[nodiscard]] UnitFinding find(unsigned units, const Target& target) const;
  /// Puts what was found into the cache.
  void keep(const UnitFinding& finding, const Target& target) const;

 private:
  std::shared_ptr<Device> device_;
  std::vector<int> ranks_;
  const DiskCache* cache_;
  std::chrono::nanoseconds limit_;
};

/// What the cache has of units on a GPU of this name: what is wrong with them, or ""; nothing where
/// they have not been tried.
[[nodiscard]] std::optional<std::string> known_finding(const std::string& gpu, unsigned units,
                                                       const Target& target,
                                                       const DiskCache& cache);

}  // namespace braid
