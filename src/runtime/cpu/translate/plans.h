#pragma once

#include <cstdint>
#include <vector>

#include "runtime/cpu/ptx/ptx.h"
#include "runtime/cpu/translate/control_flow.h"
#include "runtime/cpu/translate/shape_analysis.h"

// Plans of tricks (cpu_tricks.h): what of a kernel they apply to. Pure functions of the kernel; the
// Translator, which carries them out, asks only for those that are on.

namespace braid::cpu {

/// What is known of a kernel before any of it is translated.
struct Analysis {
  const ptx::Module& ptx_module;
  const ptx::Function& function;
  const ControlFlow& flow;
  const ShapeAnalysis& shapes;
};

/// What the first warp behind a barrier does for all: plans/common_work.cpp.
struct CommonWork {
  explicit CommonWork(const ptx::Function& function)
      : instructions(function.body.size()), results(function.registers.size()) {}
  std::vector<bool> instructions;
  std::vector<bool> results;  ///< registers that other code reads
};
CommonWork find_common_work(const Analysis& a);

/// By register: the instruction to compute it with again behind a barrier, or -1:
/// plans/recomputed.cpp. Registers in their places (`in_place`, by register) are kept.
std::vector<std::int32_t> find_recomputed(const Analysis& a, const std::vector<bool>& in_place,
                                          const CommonWork& common);

/// By instruction: whether it may go through global memory from block to block: plans/streams.cpp.
std::vector<bool> find_streams(const ptx::Function& function);

// Wide accesses behind guards: plans/guarded_rows.cpp.
/// Whether the lanes of a warp, where a vector says which, access a row of memory, some words each.
bool is_guarded_row(const Analysis& a, std::uint32_t k);
/// The guards of such accesses that stay the same in these instructions.
std::vector<int> guards_of_rows(const Analysis& a, std::uint32_t first, std::uint32_t last);
/// These instructions of a block with those moved up that keep no more vectors at a time than their
/// operands do, as sums over what is loaded: nothing else would, and where all lanes load, the next
/// rows come at once.
std::vector<std::uint32_t> in_order_of_use(const Analysis& a, const Block& block,
                                           std::uint32_t first, std::uint32_t last);

// Values that stay in the host's registers from block to block: plans/kept_values.cpp.
/// The registers that a block's next round reads from this one.
std::vector<int> carried(const Analysis& a, const std::vector<bool>& in_place, int index);
/// Whether values stay what they are on the way of a full warp.
bool inherits(const Analysis& a, const std::vector<bool>& in_place, int from, int to);

}  // namespace braid::cpu
