#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "braid/graph.h"

namespace braid {

// The fused ops: a collective and the matmuls next to it, as one node that waits by itself. Names
// and attributes are those of torch.ops.symm_mem; the lists among their operands lie flat:
//
//     fused_all_gather_matmul              A_shard, B...                      [A,] A @ B...
//     fused_all_gather_scaled_matmul       A_shard, B..., A_scale, B_scale..., [A,] A @ B...
//                                          bias...
//     fused_matmul_reduce_scatter          A, B                               chunk [, A @ B]
//     fused_scaled_matmul_reduce_scatter   A, B, A_scale, B_scale, bias       chunk [, A @ B]
//     fused_matmul_all_reduce              A, B                               sum [, A @ B]
//     fused_scaled_matmul_all_reduce       A, B, A_scale, B_scale, bias       sum [, A @ B]
//
// A has two dims or more, B two. A_scale is f32[], or one number for each row: [..., 1] as A, or,
// of a gather, as A_shard (it is gathered, too). B_scale and bias are those of scaled_mm; there is
// a bias for each B where the attribute `bias` says so, else none.

/// Which operand is which.
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
/// Of a fused op with so many operands. Throws kInvalidArgument at "/inputs" where no matmuls have
/// so many.
[[nodiscard]] FusedOperands fused_operands(std::string_view op, const Attrs& attrs,
                                           std::size_t operands);

/// All dims but the last as one, where that is an affine expression of the symbols.
[[nodiscard]] std::optional<Dim> rows_of(const Shape& shape);

/// Names the nodes that are added; of a suffix such as "_gather".
using NameNode = std::function<std::string(std::string_view suffix)>;

/// What whoever takes a fused node apart needs: appends nodes on its operands.
class FusedParts {
 public:
  FusedParts(Graph& graph, const Node& node, const std::vector<ValueId>& operands,
             const NameNode& name)
      : graph_(graph),
        node_(node),
        operands_(operands),
        name_(name),
        form_(fused_operands(node.op_name(), node.attrs, operands.size())) {}

 protected:
  ValueId add(std::string_view suffix, std::string_view op, std::vector<ValueId> inputs,
              Attrs attrs = {});
  ValueId waited(ValueId started) { return add("_wait", "wait_tensor", {started}); }
  ValueId as(ValueId value, const Shape& to, std::string_view suffix);
  /// A matrix of its rows; a scalar or a matrix as it is.
  ValueId as_rows(ValueId value, std::string_view suffix);
  /// Rows of A by B number i; `scale` is that of the rows, where there is one.
  ValueId multiplied(ValueId rows, ValueId scale, std::size_t i);
  /// Whether the scale of A is that of A_shard, and to be gathered, too.
  [[nodiscard]] bool scale_is_shard() const;
  [[nodiscard]] const Shape& shape(ValueId value) const { return graph_.type(value).shape; }
  static Shape with_last(Shape shape, const Dim& last);

  Graph& graph_;
  const Node& node_;
  const std::vector<ValueId>& operands_;
  const NameNode& name_;
  FusedOperands form_;
};

/// That of the collective on A_shard, and on the product.
inline constexpr std::string_view kGatherSuffix = "_gather";
inline constexpr std::string_view kReduceSuffix = "_reduce";
inline constexpr std::string_view kScatterSuffix = "_scatter";
/// What a fused node means: appends the collective and the matmuls, and gives its results.
std::vector<ValueId> add_composition(Graph& graph, const Node& node,
                                     const std::vector<ValueId>& operands, const NameNode& name);

}  // namespace braid
