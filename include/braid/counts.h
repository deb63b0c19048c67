#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "braid/export.h"

namespace braid {

/// The kind of work that an instruction does.
enum class InstructionClass : std::uint8_t {
  kInteger,  ///< integer and bit arithmetic, and comparisons
  kFloat,
  kMatrix,   ///< mma, wgmma
  kConvert,  ///< cvt
  kMove,     ///< mov, selp, cvta
  kMemory,   ///< loads, stores, atomics, cp.async, ldmatrix
  kWarp,     ///< shuffles, votes, matches, warp reductions
  kSync,     ///< barriers, fences, sleeps
  kControl,  ///< branches and returns
};
inline constexpr std::size_t kInstructionClasses = 9;
/// The name used in reports: "integer", "float", ...
[[nodiscard]] BRAID_API std::string_view instruction_class_name(InstructionClass instruction_class);

/// Counters of a kernel, or of one of its lines, as a profiler would show them. They follow the
/// vendor's documented rules, applied to PTX instructions.
struct BRAID_API Counts {
  /// Instructions issued by warps, by class. An instruction whose guard is false counts.
  std::array<std::uint64_t, kInstructionClasses> instructions{};
  std::uint64_t lanes = 0;  ///< active lanes in those: 32 each, less those lost to divergence

  // Global memory. A request is one instruction of one warp; a sector is 32 bytes.
  std::uint64_t global_requests = 0;
  std::uint64_t global_sectors = 0;  ///< sectors touched by the lanes, each once per request
  std::uint64_t global_bytes = 0;    ///< bytes asked for by the lanes
  std::uint64_t peer_bytes = 0;      ///< those of global_bytes that are in other ranks' memory
  /// For each request the larger of two numbers: the 128-byte lines that its lanes touch, and the
  /// registers that the load fills.
  std::uint64_t global_wavefronts = 0;

  // Shared memory has 32 banks of 4 bytes. 8-byte accesses are served 16 lanes at a time, 16-byte
  // accesses 8 lanes at a time. Such a phase takes as many wavefronts as its busiest bank has
  // words.
  std::uint64_t shared_requests = 0;
  std::uint64_t shared_wavefronts = 0;
  std::uint64_t bank_conflicts = 0;  ///< wavefronts beyond the first of each phase
  // The same counters as a GPU would show them: ptxas merges loads of neighbouring words into one
  // of 16 bytes, and a phase serves twice as many lanes where lanes 2n and 2n + 1, or 4n and 4n +
  // 2, read the same address.
  std::uint64_t issued_shared_requests = 0;
  std::uint64_t issued_shared_wavefronts = 0;

  std::uint64_t atomics = 0;   ///< atomic operations, one per lane
  std::uint64_t branches = 0;  ///< conditional branches, counted per warp
  std::uint64_t divergent_branches = 0;
  std::uint64_t barriers = 0;  ///< arrivals of warps at barriers
  /// 2 m n k for each mma (for wgmma: of its four warps); m n k for sparse ones.
  std::uint64_t mma_flops = 0;

  Counts& operator+=(const Counts& other);
  [[nodiscard]] std::uint64_t total_instructions() const;
};

struct LineCounts {
  std::uint32_t ptx_line = 0;
  std::uint32_t cuda_line = 0;  ///< 0 when the code has no line information
  std::string instruction;      ///< "ld.global.v4.f32"
  bool joined = false;          ///< ptxas merges it into another instruction, or hoists it out of a
                                ///< loop
  /// Its accesses to global memory bypass L1: copies to shared memory, atomics, and loads that must
  /// see what other multiprocessors write.
  bool past_l1 = false;
  Counts counts;
  /// How many warps ran it in the block that executes the most instructions; summed over launches.
  /// Of launches that wait for each other, the one whose busiest block polls least counts for all.
  std::uint64_t busiest = 0;
};

/// The chain of dependent instructions that an average warp waits for: the longest chain of each
/// basic block, times how often the block runs.
struct WarpChain {
  double loads = 0;       ///< round trips to global memory; overlapping loads count as one
  double copies = 0;      ///< asynchronous copies; each counts 1 / n if n are in flight at a time
  double copy_waits = 0;  ///< waits for asynchronous copies
  double shared = 0;      ///< results of shared memory and of shuffles, and barriers
  double arithmetic = 0;
  double matrix = 0;
};

/// The counts of all launches of one kernel on all ranks.
struct KernelCounts {
  std::string kernel;
  std::uint64_t launches = 0;
  std::uint64_t blocks = 0;  ///< over all launches
  // The next two are per block, for the last launch.
  std::uint32_t threads = 0;
  std::uint32_t shared_bytes = 0;  ///< static plus dynamic
  /// Registers per thread, as ptxas reports them. A device leaves 0; the caller may fill it in.
  std::uint32_t registers = 0;
  /// How many of those blocks ran. It is less than `blocks` where a sample was run, whose counts
  /// are scaled to the whole grid.
  std::uint64_t blocks_run = 0;
  Counts total;
  /// The least global memory traffic of a launch: each byte that it reads before writing it, and
  /// each byte that it writes, once. Summed over launches.
  std::uint64_t minimum_bytes = 0;
  /// The 32-byte sectors that those bytes are in: what memory moves for them.
  std::uint64_t read_sectors = 0, written_sectors = 0;
  /// Traffic in bytes between L2 and the blocks, in whole 32-byte sectors. Each block counts the
  /// sectors that it touches, once. What bypasses L1 counts each time, but once for a copy that is
  /// multicast to several blocks. Scaled from some blocks to all of them.
  std::uint64_t block_bytes = 0;
  WarpChain chain;
  WarpChain busiest_chain;  ///< in the blocks that LineCounts::busiest is of
  /// Element i is for groups of 2^i consecutive blocks: the bytes that a group reads, shared ones
  /// once, as a fraction of the sum over its blocks. From the first accesses of some blocks' warps.
  std::vector<double> shared_reads;
  std::vector<LineCounts> lines;  ///< lines that ran, in order
};

}  // namespace braid
