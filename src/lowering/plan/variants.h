#pragma once

#include <span>
#include <vector>

#include "lowering/plan/program.h"

namespace braid {

// A program for several parts of its symbols' range holds a program for each: its variants. They
// are of the same inputs and outputs, which lie in the same places, and share the memory of all
// else: on each rank runs follow each other, and a peer that is still in the run before has met it
// since it last read. What outlives a run (flags, scratch, what peers write with no barrier before)
// is each variant's own.

/// One program of `parts`, which are of one graph with narrower ranges, in this order; `symbols`
/// are the ranges of all.
[[nodiscard]] Program unite(std::span<const Program> parts, const SymbolTable& symbols);

/// All variants; of a program that has none itself, as if it were one.
[[nodiscard]] std::vector<Variant> variants_of(const Program& program);
/// The place among those of the one that runs for these values of all symbols. Throws
/// kInvalidArgument where there is none.
[[nodiscard]] std::size_t variant_at(const Program& program, const Bindings& bindings);

/// A variant as a program of its own, in the places it has. What it names of others is out of range
/// there.
[[nodiscard]] Program part_of(const Program& program, const Variant& variant);

/// For verify(), which throws kInternal: that the variants' lists are the program's, and their
/// symbols; and of good parts that each leaves alone what outlives a run of another one.
void check_lists(const Program& program);
void check_apart(std::span<const Program> parts);

}  // namespace braid
