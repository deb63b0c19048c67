#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "braid/graph.h"

namespace braid {

// Dims named by attributes, and the index maps of movement ops, shared by shape inference, the
// evaluator and codegen. All throw kInvalidArgument with a place relative to the node.

/// For `transpose` and `permute`: result dim i is operand dim [i].
[[nodiscard]] std::vector<std::size_t> permutation(std::string_view op, const Attrs& attrs,
                                                   std::size_t rank);

/// Result index i along `axis` is operand index start + i * step.
struct SliceRange {
  std::size_t axis;
  Dim start;
  Dim length;
  std::int64_t step;
};
/// The `end` of a slice that goes on to the end of the dim.
inline constexpr std::int64_t kToTheEnd = std::numeric_limits<std::int64_t>::max();
/// The range of a `slice`. Its bounds count from the end when negative and are clamped, as in
/// Python, in the same way for all values of the symbols.
[[nodiscard]] SliceRange slice_range(const Attrs& attrs, const Shape& shape,
                                     const SymbolTable& symbols);
/// The range of each result of `split` and `chunk`.
[[nodiscard]] std::vector<SliceRange> split_ranges(const Attrs& attrs, const Shape& shape,
                                                   const SymbolTable& symbols);

/// The range of each result of slice, narrow, select, split and chunk. That of a select has one
/// element, whose dim the result lacks.
[[nodiscard]] std::vector<SliceRange> part_ranges(const Attrs& attrs, const Shape& shape,
                                                  const SymbolTable& symbols);

/// ceil(extent / parts), where that is affine.
[[nodiscard]] std::optional<Dim> divide_up(const Dim& extent, std::int64_t parts,
                                           const SymbolTable& symbols);

/// The dim of the operand where the elements of dim `dim` of the result are: of a movement that has
/// the same order, or of a broadcast. Where a reshape has made the dim of several, the innermost of
/// these. Nothing where it has none.
[[nodiscard]] std::optional<std::size_t> dim_of_operand(const Graph& graph, const Node& node,
                                                        ValueId operand, std::size_t dim);

/// The dim that an attribute names, counted from the front.
[[nodiscard]] std::size_t axis_of(const Attrs& attrs, std::string_view key, std::size_t rank);
/// The dims that a reduction's `dim` names, ascending; all where it is empty.
[[nodiscard]] std::vector<std::size_t> reduced_axes(const Attrs& attrs, std::size_t rank);

/// Whether the op, in a canonical graph, only renames its operand's bytes: `view` and `view_dtype`.
/// Such an op costs nothing, wherever the operand lies.
[[nodiscard]] bool names_bytes(std::string_view op);

}  // namespace braid
