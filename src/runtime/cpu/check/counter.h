#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "braid/counts.h"
#include "runtime/cpu/check/launch_count.h"
#include "runtime/cpu/check/tally.h"
#include "runtime/cpu/check/touched_bytes.h"
#include "runtime/cpu/ptx/ptx.h"

namespace braid::cpu {

/// Counts what kernels do. Thread safe.
class Counter {
 public:
  [[nodiscard]] RankMemory& memory() { return memory_; }

  /// Kernels of the same name and text are counted together.
  std::shared_ptr<LaunchCount> start_launch(int rank, const std::string& kernel,
                                            const ptx::Function& function,
                                            std::shared_ptr<const void> keep, std::uint64_t blocks);
  void end_launch(LaunchCount& launch);

  [[nodiscard]] std::vector<KernelCounts> counts() const;

 private:
  /// What all launches of one kernel come to.
  struct Kernel {
    std::string name;
    const ptx::Function* function = nullptr;
    std::shared_ptr<const void> keep;  ///< what owns the function
    CountSites sites;
    Tally sum;
    std::uint64_t launches = 0;
    std::uint64_t blocks = 0;
    std::uint64_t minimum_bytes = 0;
    [[nodiscard]] KernelCounts counts() const;
  };

  RankMemory memory_;
  TouchedBytes::Pool pages_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
};

}  // namespace braid::cpu
