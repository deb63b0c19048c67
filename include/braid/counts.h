#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "braid/export.h"

namespace braid {

/// What an instruction of a kernel is for.
enum class InstructionClass : std::uint8_t {
  kInteger,  ///< integer and bit arithmetic, comparisons too
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
/// "integer", "float", ...
[[nodiscard]] BRAID_API std::string_view instruction_class_name(InstructionClass instruction_class);

/// What a kernel, or one line of it, did: what a profiler's counters would show, by the rules that
/// the vendor documents. Instructions are those of PTX.
struct BRAID_API Counts {
  /// Times a warp issued an instruction, by class; where its guard was false too.
  std::array<std::uint64_t, kInstructionClasses> instructions{};
  std::uint64_t lanes = 0;  ///< active in those: 32 for each, less what is lost to divergence

  // Global memory. A request is one instruction of one warp, a sector 32 bytes.
  std::uint64_t global_requests = 0;
  std::uint64_t global_sectors = 0;  ///< that its lanes touch, each once per request
  std::uint64_t global_bytes = 0;    ///< that its lanes ask for
  std::uint64_t peer_bytes = 0;      ///< of those in the memory of other ranks
  /// Lines of 128 bytes that its lanes touch, or registers that a load fills, where those are more.
  std::uint64_t global_wavefronts = 0;

  // Shared memory: 32 banks of 4 bytes. Lanes of 8 bytes are served 16 at a time, of 16 bytes 8 at
  // a time; each such phase takes as many wavefronts as its busiest bank has different words.
  std::uint64_t shared_requests = 0;
  std::uint64_t shared_wavefronts = 0;
  std::uint64_t bank_conflicts = 0;  ///< wavefronts above one in each phase
  // The same as a GPU gets them: ptxas joins loads of neighbouring words into one of 16 bytes, and
  // where lanes 2n and 2n + 1, or 4n and 4n + 2, ask for one place, twice as many are served at a
  // time.
  std::uint64_t issued_shared_requests = 0;
  std::uint64_t issued_shared_wavefronts = 0;

  std::uint64_t atomics = 0;   ///< operations, one for each lane
  std::uint64_t branches = 0;  ///< conditional ones, of warps
  std::uint64_t divergent_branches = 0;
  std::uint64_t barriers = 0;  ///< warps that came to one
  /// 2 m n k for each mma, or wgmma of four warps; m n k of sparse ones.
  std::uint64_t mma_flops = 0;

  Counts& operator+=(const Counts& other);
  [[nodiscard]] std::uint64_t total_instructions() const;
};

/// The counts of one line of PTX.
struct LineCounts {
  std::uint32_t ptx_line = 0;
  std::uint32_t cuda_line = 0;  ///< 0 when the code carries no line information
  std::string instruction;      ///< "ld.global.v4.f32"
  bool joined = false;          ///< ptxas makes it a part of another one, or does it before a loop
  Counts counts;
};

/// What a warp waits for one after the other, where each instruction needs the one before: the
/// longest such chain of each stretch of code without a branch, as often as it runs; of an average
/// warp.
struct WarpChain {
  double loads = 0;       ///< round trips to global memory; what is under way together is one
  double copies = 0;      ///< for asynchronous copies: 1 / n, where n have their places
  double copy_waits = 0;  ///< how often it waits for these
  double shared = 0;      ///< results of shared memory and of shuffles, barriers
  double arithmetic = 0;
  double matrix = 0;
};

/// The counts of all launches of one kernel, of all ranks.
struct KernelCounts {
  std::string kernel;
  std::uint64_t launches = 0;
  std::uint64_t blocks = 0;  ///< of all launches
  // Of a block, of the last launch.
  std::uint32_t threads = 0;
  std::uint32_t shared_bytes = 0;  ///< static and dynamic
  /// Of a thread, as ptxas says; 0 where nobody has asked it: no device knows.
  std::uint32_t registers = 0;
  /// Of those, how many ran: fewer where counts are those of a sample, scaled to all.
  std::uint64_t blocks_run = 0;
  /// Of the block of each launch that executes most, by warps; summed over launches.
  std::uint64_t busiest_instructions = 0;
  Counts total;
  /// Bytes of global memory that a launch cannot do without: each that it reads before it wrote it,
  /// and each that it writes, once; summed over launches.
  std::uint64_t minimum_bytes = 0;
  /// Bytes of global memory, in whole sectors, that L2 sends and takes: what blocks touch, each
  /// block by itself, of all blocks by some of them; of copies to shared memory, which go past L1,
  /// each time, and once where they bring it to several blocks.
  std::uint64_t block_bytes = 0;
  std::uint64_t written_bytes = 0;  ///< of minimum_bytes, those that a launch writes
  WarpChain chain;
  /// What 2^i blocks in a row read, what several of them read once, of what they read each by
  /// itself: from the first accesses of each warp of some blocks.
  std::vector<double> shared_reads;
  std::vector<LineCounts> lines;  ///< those that ran, in order
};

}  // namespace braid
