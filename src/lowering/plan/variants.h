#pragma once

#include <span>
#include <vector>

#include "lowering/plan/program.h"

namespace braid {

// A program may consist of variants, one for each part of its symbols' range. They have the same
// inputs and outputs, in the same places, and share the memory of everything else: on each rank
// runs follow each other, and a peer still in the previous run has met this rank since it last
// read. What outlives a run (flags, scratch, what peers write without a barrier before) is separate
// for each variant.

/// Unites `parts`, programs of one graph with narrower ranges, in this order; `symbols` has the
/// full ranges.
[[nodiscard]] Program unite(std::span<const Program> parts, const SymbolTable& symbols);

/// All variants; a program without any counts as one variant.
[[nodiscard]] std::vector<Variant> variants_of(const Program& program);
/// The index of the variant that runs for these values of all symbols. Throws kInvalidArgument
/// where there is none.
[[nodiscard]] std::size_t variant_at(const Program& program, const Bindings& bindings);

/// A variant as a program of its own, at the same places. References to other variants are out of
/// range in it.
[[nodiscard]] Program part_of(const Program& program, const Variant& variant);

/// Part of verify(): throws kInternal unless the variants' lists make up the program's, their
/// symbols are within its ranges, and no variant touches what outlives a run of another one.
void check_lists(const Program& program);
void check_apart(std::span<const Program> parts);

}  // namespace braid
