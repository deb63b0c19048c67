#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "braid/counts.h"
#include "runtime/cpu/check/sanitizer.h"
#include "runtime/cpu/ptx/ptx.h"
#include "runtime/cpu/run/multicast.h"

namespace braid::cpu {

/// Counts of one kernel. Blocks are those of ControlFlow, in its order.
struct KernelCounter {
  std::string kernel;
  const ptx::Function* function = nullptr;
  std::shared_ptr<const void> keep;  ///< what owns the function
  struct Block {
    std::uint32_t first = 0, end = 0;  ///< instructions, the terminator too
    std::uint64_t warps = 0, lanes = 0;
  };
  std::vector<Block> blocks;
  std::map<std::uint32_t, Counts> lines;  ///< accesses, branches and barriers
  std::uint64_t launches = 0;
  std::uint64_t grid_blocks = 0;
  std::uint64_t minimum_bytes = 0;
};

/// One launch that is counted.
struct LaunchCount {
  std::shared_ptr<KernelCounter> kernel;
  int rank = 0;
  /// Which bytes it read before it wrote them, and which it wrote.
  struct Page {
    std::bitset<4096> read, written;
  };
  std::unordered_map<std::uint64_t, Page> pages;
};

/// Counts what kernels do. Not thread safe: a run that is counted has one worker.
class Counter {
 public:
  void add_memory(int rank, std::uint64_t address, std::size_t bytes);
  void remove_memory(std::uint64_t address);

  /// Kernels of the same name and text are counted together.
  std::shared_ptr<LaunchCount> start_launch(int rank, const std::string& kernel,
                                            const ptx::Function& function,
                                            std::shared_ptr<const void> keep, std::uint64_t blocks);
  static void end_launch(LaunchCount& launch);

  static void block(LaunchCount& launch, std::uint32_t index, std::uint32_t mask);
  static void branch(LaunchCount& launch, std::uint32_t line, std::uint32_t taken,
                     std::uint32_t mask);
  static void barrier(LaunchCount& launch, std::uint32_t line);
  void global_access(LaunchCount& launch, const std::uint64_t* addresses, std::uint32_t mask,
                     AccessCode code, std::uint32_t line);
  /// An access by multimem, whose lanes are at `places` on each rank. A reduction is done on the
  /// way: one answer comes over the links; what is stored goes to each rank.
  void multicast_access(LaunchCount& launch, const MulticastPlaces& places, std::uint32_t mask,
                        AccessCode code, std::uint32_t line);
  /// `addresses` are relative to the window or not: all that counts is their bank.
  static void shared_access(LaunchCount& launch, const std::uint64_t* addresses, std::uint32_t mask,
                            AccessCode code, std::uint32_t line);

  [[nodiscard]] std::vector<KernelCounts> counts() const;

 private:
  static void touch(LaunchCount& launch, std::uint64_t address, AccessCode code);
  struct Region {
    std::size_t bytes;
    int rank;
  };
  std::map<std::uint64_t, Region> regions_;
  std::vector<std::shared_ptr<KernelCounter>> kernels_;
};

}  // namespace braid::cpu
