#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "braid/graph.h"
#include "ir/op_registry.h"

namespace braid {

// The fused ops: a collective and the matmuls next to it, as one synchronous node. Names and
// attributes are those of torch.ops.symm_mem; the lists among their operands lie flat:
//
//     fused_all_gather_matmul              A_shard, B...                      [A,] A @ B...
//     fused_all_gather_scaled_matmul       A_shard, B..., A_scale, B_scale..., [A,] A @ B...
//                                          bias...
//     fused_matmul_reduce_scatter          A, B                               chunk [, A @ B]
//     fused_scaled_matmul_reduce_scatter   A, B, A_scale, B_scale, bias       chunk [, A @ B]
//     fused_matmul_all_reduce              A, B                               sum [, A @ B]
//     fused_scaled_matmul_all_reduce       A, B, A_scale, B_scale, bias       sum [, A @ B]
//
// A has two dims or more, B two. A_scale is f32[], or one number per row: [..., 1] like A, or for a
// gather like A_shard (then it is gathered too). B_scale and bias are those of scaled_mm; there is
// a bias for each B where the attribute `bias` says so, else none.

/// The operands of a fused node by role.
struct FusedOperands {
  bool gathers = false;   ///< A, before it multiplies
  bool scatters = false;  ///< the product, of which each rank has all else
  bool scaled = false;
  bool biased = false;  ///< only where scaled
  std::size_t matmuls = 1;

  [[nodiscard]] std::size_t b(std::size_t i) const { return 1 + i; }
  [[nodiscard]] std::size_t a_scale() const { return 1 + matmuls; }
  [[nodiscard]] std::size_t b_scale(std::size_t i) const { return 2 + matmuls + i; }
  [[nodiscard]] std::size_t bias(std::size_t i) const { return 2 + 2 * matmuls + i; }
};
/// The roles for that many operands. Throws kInvalidArgument at "/inputs" where no matmuls have so
/// many.
[[nodiscard]] FusedOperands fused_operands(CollectiveKind collective, Matmul matmul,
                                           const Attrs& attrs, std::size_t operands);
[[nodiscard]] FusedOperands fused_operands(const Node& node);

/// The product of all dims but the last, where it is affine in the symbols.
[[nodiscard]] std::optional<Dim> rows_of(const Shape& shape);

/// Names added nodes by a suffix such as "_gather".
using NameNode = std::function<std::string(std::string_view suffix)>;

/// Builds the parts of a decomposed fused node: appends nodes on its operands.
class FusedParts {
 public:
  FusedParts(Graph& graph, const Node& node, const std::vector<ValueId>& operands,
             const NameNode& name)
      : graph_(graph), node_(node), operands_(operands), name_(name), form_(fused_operands(node)) {}

 protected:
  ValueId add(std::string_view suffix, std::string_view op, std::vector<ValueId> inputs,
              Attrs attrs = {});
  ValueId waited(ValueId started) { return add("_wait", "wait_tensor", {started}); }
  ValueId as(ValueId value, const Shape& to, std::string_view suffix);
  /// The value as a matrix of its rows; scalars and matrices unchanged.
  ValueId as_rows(ValueId value, std::string_view suffix);
  /// The rows of A times B number i; `scale` is the scale of the rows, if any.
  ValueId multiplied(ValueId rows, ValueId scale, std::size_t i);
  /// Whether A's scale belongs to A_shard and must be gathered too.
  [[nodiscard]] bool scale_is_shard() const;
  [[nodiscard]] const Shape& shape(ValueId value) const { return graph_.type(value).shape; }
  static Shape with_last(Shape shape, const Dim& last);

  Graph& graph_;
  const Node& node_;
  const std::vector<ValueId>& operands_;
  const NameNode& name_;
  FusedOperands form_;
};

/// Suffixes for the collective on A_shard, and for the one on the product.
inline constexpr std::string_view kGatherSuffix = "_gather";
inline constexpr std::string_view kReduceSuffix = "_reduce";
inline constexpr std::string_view kScatterSuffix = "_scatter";
/// Appends the collective and the matmuls that define a fused node, and returns its results.
std::vector<ValueId> add_composition(Graph& graph, const Node& node,
                                     const std::vector<ValueId>& operands, const NameNode& name);

}  // namespace braid
