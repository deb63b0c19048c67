#pragma once

#include <set>
#include <string>
#include <string_view>

namespace braid::tile {

/// The helpers a kernel may call, as CUDA text. A kernel's text holds those it needs and no header:
/// headers cost 30 to 900 ms per compile.
enum class Helper {
  kTypes,      ///< bf16, f16, widen, narrow
  kFloat8,     ///< f8e4m3, f8e5m2
  kAccess,     ///< load, store
  kMath,       ///< max_of, min_of, which keep NaN; abs_of
  kSaturate,   ///< floats to integers
  kShared,     ///< swizzle, shared_address
  kCopyAsync,  ///< copy_async, commit_group, wait_group
  kMatrix,     ///< ldmatrix, mma
  kMatrix8,    ///< mma of 8-bit floats
  kRecord,     ///< what a kernel that can fail tells the host
  kBadIndex,   ///< bad_index; needs kRecord
  kComm,       ///< flags, signal, wait; needs kRecord
  kCommOne,    ///< signal_one, wait_one: one rank at a time; needs kComm
};

/// A loop over more ranks than this stays a loop: unrolled, the text and the time to compile it
/// grow with the ranks.
inline constexpr int kUnrolledRanks = 16;

/// The text of the helpers, each once, in a fixed order. `world` and `threads` (of a block) are
/// constants of kComm.
std::string preamble(const std::set<Helper>& used, int world, int threads);

}  // namespace braid::tile
