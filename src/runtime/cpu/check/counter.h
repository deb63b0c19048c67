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
  /// With `sample`, only a sample of each launch's blocks runs.
  Counter(const AddressRange& range, bool sample) : sample_(sample), memory_(range) {}
  [[nodiscard]] RankMemory& memory() { return memory_; }

  struct Shape {
    Dim3 grid;
    std::uint32_t threads = 0, shared_bytes = 0;  ///< per block
    bool clusters = false;                        ///< its blocks form clusters
  };
  /// Launches of kernels with the same name and text are counted together. All blocks run if they
  /// form clusters or wait for each other.
  std::shared_ptr<LaunchCount> start_launch(int rank, const std::string& kernel,
                                            const ptx::Function& function,
                                            std::shared_ptr<const void> keep, const Shape& shape);
  void end_launch(LaunchCount& launch);

  [[nodiscard]] std::vector<KernelCounts> counts() const;
  /// Forgets all launches; none may be in flight.
  void forget();

 private:
  /// The sum over all launches of one kernel.
  struct Kernel {
    std::string name;
    const ptx::Function* function = nullptr;
    std::shared_ptr<const void> keep;  ///< keeps the function alive
    CountSites sites;
    Tally sum;
    std::uint64_t launches = 0;
    std::uint64_t blocks = 0, blocks_run = 0;
    /// Warps in the busiest block by basic block, summed over launches. Of launches that wait for
    /// each other the one that polls least stands for all: ranks that start first poll most.
    std::vector<std::uint64_t> busiest;
    BusiestBlock waited_least;
    std::uint64_t ended = 0;  ///< launches that executed something
    std::uint32_t threads = 0, shared_bytes = 0;
    TouchedBytes::Amount read, written;  ///< minimum traffic
    bool waits = false;                  ///< its blocks wait for others
    std::vector<bool> joined;            ///< by instruction
    std::vector<double> shared_reads;    ///< from the last launch
    void note_busiest(const BusiestBlock& block);
    [[nodiscard]] KernelCounts counts() const;
    /// Of each instruction, how many of its executions make a request, if it is a guarded load.
    [[nodiscard]] std::vector<double> asks() const;
    /// The chain of a warp, given those of the basic blocks and how many ran each.
    [[nodiscard]] WarpChain chain(const std::vector<WarpChain>& chains,
                                  const std::vector<std::uint64_t>& ran,
                                  std::uint64_t blocks) const;
  };

  bool sample_;
  RankMemory memory_;
  TouchedBytes::Pool pages_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
};

}  // namespace braid::cpu
