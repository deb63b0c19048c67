#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "braid/counts.h"
#include "braid/dim3.h"
#include "runtime/cpu/check/launch_count.h"
#include "runtime/cpu/check/tally.h"
#include "runtime/cpu/check/touched_bytes.h"
#include "runtime/cpu/ptx/ptx.h"

namespace braid::cpu {

/// Counts what kernels do. Thread safe.
class Counter {
 public:
  /// With `sample` launches are counted by a sample of their blocks.
  explicit Counter(bool sample) : sample_(sample) {}
  [[nodiscard]] RankMemory& memory() { return memory_; }

  struct Shape {
    Dim3 grid;
    std::uint32_t threads = 0, shared_bytes = 0;  ///< of a block
    bool clusters = false;                        ///< its blocks are in clusters
  };
  /// Kernels of the same name and text are counted together. All blocks run where they are in
  /// clusters or wait for each other.
  std::shared_ptr<LaunchCount> start_launch(int rank, const std::string& kernel,
                                            const ptx::Function& function,
                                            std::shared_ptr<const void> keep, const Shape& shape);
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
    std::uint64_t blocks = 0, blocks_run = 0;
    std::uint64_t busiest = 0;  ///< of each launch
    std::uint32_t threads = 0, shared_bytes = 0;
    std::uint64_t read_bytes = 0, written_bytes = 0;  ///< at least
    bool waits = false;                               ///< its blocks wait for others
    std::vector<WarpChain> chains;                    ///< by block of the sites
    std::vector<bool> joined;                         ///< by instruction
    std::vector<double> shared_reads;                 ///< of the last launch
    [[nodiscard]] KernelCounts counts() const;
    [[nodiscard]] WarpChain chain() const;
  };

  bool sample_;
  RankMemory memory_;
  TouchedBytes::Pool pages_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
};

}  // namespace braid::cpu
