#include "lowering/collectives/chunk_fused.h"

#include "ir/groups.h"
#include "ir/numel.h"
#include "ir/ops.h"
#include "ir/views.h"
#include "lowering/collectives/sum_chunks.h"

// Lowers a fused node into chunks. The dim that is gathered or scattered goes in front, so that a
// chunk is one contiguous range. Chunk k of a rank belongs to the rank k after it; its own comes
// first or last:
//   gather   copy_from_peer(shard, k) for all k, then multiply the own shard, then each as it
//            arrives; the products (and A, where it is wanted) are joined in rank order
//   scatter  multiply the rows of each other rank, which it copies from here, then the own ones;
//            the partial products are joined in rank order and added in f32, as a
//            reduce_scatter does
// A scale per row is cut as A is, or copied along with it where it is a shard.
// Refuses the last dim: a gather along it splits K, a scatter the columns.
namespace braid {
namespace {

constexpr ReasonCode kOneRank{"lower_collectives.one_rank", "its group has one rank"};
constexpr ReasonCode kNotSymmetric{"lower_collectives.not_symmetric",
                                   "group '{group}' has no symmetric memory"};
constexpr ReasonCode kAllReduce{"lower_collectives.no_chunks_of_all",
                                "every rank has all of an all-reduce"};
constexpr ReasonCode kLastDim{"lower_collectives.chunks_of_last_dim",
                              "chunks of the last dim, {dim}, are not rows of the product"};

std::size_t dim_of(const Graph& graph, const Node& node, ValueId a) {
  const std::string_view key = fused_operands(node).gathers ? "gather_dim" : "scatter_dim";
  return axis_of(node.attrs, key, graph.type(a).shape.size());
}

class Chunks : FusedParts {
 public:
  Chunks(Graph& graph, const Node& node, const std::vector<ValueId>& operands, const NameNode& name)
      : FusedParts(graph, node, operands, name),
        ranks_(group_of(graph, node).size),
        dim_(dim_of(graph, node, operands[0])) {}

  std::vector<ValueId> run() { return form_.gathers ? gather() : scatter(); }

 private:
  using Values = std::vector<ValueId>;

  std::vector<ValueId> gather() {
    const ValueId shard = to_front(operands_[0], "_shard");
    // Started before anything is multiplied.
    const bool scale_too = form_.scaled && scale_is_shard();
    const ValueId scale = form_.scaled ? to_front(operands_[form_.a_scale()], "_scale") : -1;
    Values chunks{shard};
    Values scales{scale};
    for (std::int64_t k = 1; k < ranks_; ++k) {
      if (scale_too) scales.push_back(copied(scale, k));
      chunks.push_back(copied(shard, k));
    }
    std::vector<Values> products(form_.matmuls);
    for (std::int64_t k = 0; k < ranks_; ++k) {
      if (k > 0) chunks[k] = waited(chunks[k]);
      if (k > 0 && scale_too) scales[k] = waited(scales[k]);
      const ValueId own = scale_too ? as_rows(scales[k], "_scale_rows") : scale_rows(scale, k);
      const ValueId rows = as_rows(chunks[k], "_rows");
      for (std::size_t i = 0; i < form_.matmuls; ++i) {
        products[i].push_back(multiplied(rows, own, i));
      }
    }
    Shape whole = shape(shard);
    whole[0] = whole[0] * ranks_;
    std::vector<ValueId> results;
    if (*node_.attr<bool>("return_A")) results.push_back(from_front(joined(chunks), whole));
    for (const Values& of_b : products) results.push_back(from_front(joined(of_b), whole));
    return results;
  }

  std::vector<ValueId> scatter() {
    const ValueId a = to_front(operands_[0], "_A");
    const ValueId rows = as_rows(a, "_rows");
    const ValueId scale = form_.scaled ? to_front(operands_[form_.a_scale()], "_scale") : -1;
    const auto product = [&](std::int64_t k) {
      return multiplied(chunk(rows, k, "_chunk"), scale_rows(scale, k), 0);
    };
    Values products(ranks_);
    Values partials(products);  // of the own rows; that of the rank k after this one at k
    for (std::int64_t k = 1; k < ranks_; ++k) {
      products[k] = product(k);
      const std::int64_t from = ranks_ - k;
      partials[from] = copied(products[k], from);
    }
    products[0] = partials[0] = product(0);
    for (std::size_t k = 1; k < partials.size(); ++k) partials[k] = waited(partials[k]);
    const Shape whole = shape(a);
    Shape part = whole;
    part[0] = *part[0].divide_exactly(ranks_, graph_.symbols());
    const ValueId sum = add_sum_of_chunks(graph_, joined(partials), ranks_,
                                          *node_.attr<std::string>("reduce_op"), name_);
    std::vector<ValueId> results{from_front(sum, part)};
    if (*node_.attr<bool>("return_mm")) results.push_back(from_front(joined(products), whole));
    return results;
  }

  /// The rows of chunk k of a scale that has a row for each row of all ranks' A.
  ValueId scale_rows(ValueId scale, std::int64_t k) {
    if (scale < 0 || shape(scale).empty()) return scale;
    return as_rows(chunk(scale, k, "_scale_chunk"), "_scale_rows");
  }

  ValueId copied(ValueId value, std::int64_t k) {
    return add("_copy", "copy_from_peer", {value}, with_group({{"shift", k}}));
  }
  ValueId chunk(ValueId value, std::int64_t k, std::string_view suffix) {
    return add(suffix, "chunk_by_rank", {value}, with_group({{"shift", k}}));
  }
  ValueId joined(const Values& chunks) {
    return add("_join", "join_by_rank", chunks, with_group({}));
  }
  Attrs with_group(Attrs attrs) const {
    attrs.emplace("group", node_.attrs.at("group"));
    return attrs;
  }

  /// The value with the cut dim moved to the front; a scalar unchanged.
  ValueId to_front(ValueId value, std::string_view suffix) {
    const Shape& from = shape(value);
    if (from.empty() || dim_ == 0) return value;
    std::vector<std::int64_t> order{static_cast<std::int64_t>(dim_)};
    Shape moved{from[dim_]};
    for (std::size_t d = 0; d < from.size(); ++d) {
      if (d == dim_) continue;
      order.push_back(static_cast<std::int64_t>(d));
      moved.push_back(from[d]);
    }
    if (lies_in_front(from, dim_)) return as(value, moved, suffix);
    return add(suffix, "permute", {value}, {{"dims", order}});
  }

  /// Moves the dim back to its place in a product (or A) whose first dims are those of `front`.
  ValueId from_front(ValueId value, const Shape& front) {
    const ValueId full = as(value, with_last(front, shape(value).back()), "_front");
    if (dim_ == 0) return full;
    std::vector<std::int64_t> order;
    for (std::size_t d = 0; d < front.size(); ++d) {
      const std::size_t from = d < dim_ ? d + 1 : d == dim_ ? 0 : d;
      order.push_back(static_cast<std::int64_t>(from));
    }
    Shape back;
    for (std::int64_t d : order) back.push_back(shape(full)[d]);
    if (lies_in_front(back, dim_)) return as(full, back, "_back");
    return add("_back", "permute", {full}, {{"dims", order}});
  }

  std::int64_t ranks_;
  std::size_t dim_;
};

}  // namespace

Reason cannot_chunk(const Graph& graph, const Node& node) {
  const auto& [name, group] = *graph.groups().find(*node.attr<std::string>("group"));
  if (group.size == 1) return Reason(kOneRank);
  if (!group.symmetric) return Reason(kNotSymmetric, name);
  const FusedOperands form = fused_operands(node);
  if (!form.gathers && !form.scatters) return Reason(kAllReduce);
  const std::size_t dim = dim_of(graph, node, node.inputs[0]);
  if (dim + 1 == graph.type(node.inputs[0]).shape.size()) return Reason(kLastDim, dim);
  return {};
}

std::vector<ValueId> add_chunks(Graph& graph, const Node& node,
                                const std::vector<ValueId>& operands, const NameNode& name) {
  return Chunks(graph, node, operands, name).run();
}

}  // namespace braid
