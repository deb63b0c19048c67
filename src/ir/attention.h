#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "ir/op_registry.h"

namespace braid {

/// What an attention computes: softmax(query keyᵀ · scale + mask) value. Of the two ops,
/// `scaled_dot_product_attention` (ATen) has query [..., L, E], key [..., S, E] and value
/// [..., S, V]; `paged_attention` has query [T, H, E], and keys and values in pages
/// [pages, page, heads, E or V].
struct Attention {
  std::size_t groups = 1;  ///< heads of the query for each head of key and value
  double scale = 1;
  bool causal = false;  ///< a query sees the keys up to its own position
  /// The operand with a mask, if there is one: bool (false hides a key) or added to the scores.
  std::optional<std::size_t> mask;
  bool paged = false;
  /// Of a paged one that is causal: a query sees that many keys, its own the last.
  std::optional<std::int64_t> window;
  /// Of a paged one: a score x becomes softcap · tanh(x / softcap).
  std::optional<double> softcap;
  /// Of a paged one whose keys are cut into segments: the keys of each.
  std::optional<std::int64_t> segment;
  bool makes_parts = false;  ///< its result is a part for each segment
  /// Of a paged one: the operand with a score for each head that takes a weight of its own, and
  /// has no value.
  std::optional<std::size_t> sinks;
  /// Of a paged one with 8-bit keys and values: the operand by which keys are multiplied, a number;
  /// that for values follows.
  std::optional<std::size_t> scales;
};

/// Ops that lowering makes of a paged attention. Two of them let its parts run side by side, and
/// one gives the same bits with the parts one after the other:
///
///     paged_attention_parts      the operands of paged_attention -> f32 [n, T, H, V + 2]
///     join_attention_parts       [n, T, H, V + 2], [sinks] -> [T, H, V]
///     paged_attention_in_parts   the operands of paged_attention -> [T, H, V]
///
/// The parts have of each segment of keys the values by their weights, not yet divided; behind them
/// the largest score, by which these weights were divided, and their sum. Where no key of the
/// segment is seen: -inf, 0, and values that nobody reads.
///
/// A segment begins at a multiple of `kSegment` keys, whatever the sequence.
inline constexpr std::int64_t kSegment = 512;

[[nodiscard]] bool joins_parts(const Node& node);

/// The operands of `paged_attention` that say where keys are, all i32, and what may stand behind.
/// The last two are the scales, f32, where keys and values are 8-bit floats.
enum PagedOperand : std::uint8_t {
  kPageTable = 3,  ///< [sequences, most pages of one]: numbers of pages, in the order of positions
  kKvLengths = 4,  ///< [sequences]: the keys of each
  kQueryStarts = 5,  ///< [sequences + 1]: the first query of each, and the end of the last
  kSinks = 6,        ///< [heads], f32 or as the query
};

/// Whether a paged attention has sinks, by the number of its operands.
[[nodiscard]] constexpr bool has_sinks(std::size_t operands) { return operands % 2 == 1; }

/// Of a node whose types have been inferred.
[[nodiscard]] Attention attention_of(const Graph& graph, const Node& node);

/// Throws where the attribute `scale` is there and not above 0.
void check_scale(const Attrs& attrs);
/// Softmax of scores in place, with the weight of a sink among those that it divides by; those of a
/// row that sees nothing become zeros.
void weigh(std::span<double> scores, double sink = -std::numeric_limits<double>::infinity());

}  // namespace braid
