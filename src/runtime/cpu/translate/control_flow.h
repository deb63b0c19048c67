#pragma once

#include <cstdint>
#include <vector>

#include "runtime/cpu/ptx/ptx.h"

namespace braid::cpu {

/// Registers that an instruction writes and reads. A guarded write also reads its register.
struct RegisterUse {
  std::vector<int> writes;
  std::vector<int> reads;
};

/// True when the first operand is a result.
bool has_result(const ptx::Instruction& instruction);
RegisterUse register_use(const ptx::Instruction& instruction);
/// The mask of the lanes that execute it together (`shfl.sync`, `bar.warp.sync`), or null.
const ptx::Operand* member_mask(const ptx::Instruction& instruction);
/// Adds the registers of an operand and of its elements.
void collect_registers(const ptx::Operand& operand, std::vector<int>& out);

/// A set of small integers of fixed capacity.
class BitSet {
 public:
  explicit BitSet(std::size_t capacity = 0) : words_((capacity + 63) / 64) {}
  [[nodiscard]] bool has(int i) const {
    return ((words_[static_cast<std::size_t>(i) / 64] >> (i % 64)) & 1) != 0;
  }
  void add(int i) { words_[static_cast<std::size_t>(i) / 64] |= 1ULL << (i % 64); }
  void remove(int i) { words_[static_cast<std::size_t>(i) / 64] &= ~(1ULL << (i % 64)); }
  /// this |= (in & ~without); returns whether this grew.
  bool merge(const BitSet& in, const BitSet* without = nullptr);

 private:
  std::vector<std::uint64_t> words_;
};

/// How a block ends. Lanes that exit are dead; nothing waits for them.
enum class BlockEnd : std::uint8_t {
  kJump,         ///< to `next`
  kBranch,       ///< to `taken` where the predicate holds, else to `next`
  kExit,         ///< all lanes return
  kGuardedExit,  ///< lanes where the predicate holds return, others go to `next`
};

struct Block {
  std::uint32_t first = 0;  ///< instructions [first, last), without the terminator
  std::uint32_t last = 0;
  BlockEnd end = BlockEnd::kExit;
  int predicate = -1;
  bool negated = false;
  int taken = -1;
  int next = -1;
  std::uint32_t line = 0;
  std::vector<int> predecessors;
  bool parks = false;  ///< its last instruction is a barrier at which the warp may leave the
                       ///< function
  bool spins = false;  ///< ends a loop that may wait for other threads: its back edges yield
  std::uint32_t poll_line = 0;  ///< a line with which that loop polls
  bool looks = false;           ///< in a loop that only reads memory
  bool endless = false;         ///< no path leads from it to an exit
  BitSet live_in, live_out;
};

/// Where a kernel waits for other threads.
enum class Waits : std::uint8_t {
  kNever,
  kAtBarriers,  ///< only at the ends of blocks that park
  kAnywhere,    ///< it sleeps, spins, or reduces over a barrier, so it needs a stack of its own
};

/// Basic blocks in reverse post order. Block 0 is the entry; unreachable code is dropped.
class ControlFlow {
 public:
  /// Throws for a reachable instruction that is not in the table.
  explicit ControlFlow(const ptx::Function& function);

  [[nodiscard]] const std::vector<Block>& blocks() const { return blocks_; }
  [[nodiscard]] const Block& block(int i) const { return blocks_[i]; }
  [[nodiscard]] int size() const { return static_cast<int>(blocks_.size()); }

  /// The blocks over which lanes may be spread after a divergent end of `block`: all on the way to
  /// its post-dominator. Returns the post-dominator, or -1 if it is the end of the kernel.
  int divergent_region(int block, std::vector<int>& region) const;

  [[nodiscard]] Waits waits() const { return waits_; }
  /// Whether some block has `looks` set.
  [[nodiscard]] bool looks() const { return looks_; }
  /// Whether it may wait for other blocks: a loop polls global memory.
  [[nodiscard]] bool waits_for_blocks() const { return waits_for_blocks_; }

 private:
  void build(const ptx::Function& function);
  void order_blocks(const ptx::Function& function);
  void require_known(const ptx::Function& function) const;
  void find_post_dominators();
  void find_liveness(const ptx::Function& function);
  void find_spins(const ptx::Function& function);

  std::vector<Block> blocks_;
  std::vector<int> post_dominator_;
  Waits waits_ = Waits::kNever;
  bool waits_for_blocks_ = false;
  bool looks_ = false;
};

}  // namespace braid::cpu
