#include "lowering/collectives/sink_joins.h"

#include <algorithm>
#include <map>

#include "ir/mutation.h"
#include "ir/op_registry.h"
#include "lowering/rewrite.h"

// The part of lower_collectives that moves joins of chunks behind what reads them:
//   view(join(c...))             -> join(view(c)...)     where the first dim still has the chunks
//   pointwise(join(c...), r)     -> join(pointwise(c, r)...)
//   chunk_by_rank(join(c...), k) -> c[k]
// where each other operand r is a join of the same group, has no rows, or is a graph input, whose
// chunk is a slice. Values that are overwritten stay. Joins without readers become dead nodes.
namespace braid {
namespace {

class Sinking {
 public:
  explicit Sinking(const Graph& graph)
      : graph_(graph), overwritten_(overwritten_values(graph)), rewrite_(graph) {}

  Graph run() {
    for (const Node& node : graph_.nodes()) {
      if (node.op_name() == "join_by_rank") {
        rewrite_.copy(node);
        joins_.emplace(rewrite_(node.outputs[0]),
                       Join{*node.attr<std::string>("group"), rewrite_(node.inputs)});
      } else if (!sink(node)) {
        rewrite_.copy(node);
      }
    }
    return rewrite_.finish();
  }

 private:
  struct Join {
    std::string group;
    std::vector<ValueId> chunks;
  };

  /// The join that produced the operand, or null.
  const Join* join_of(ValueId old) const {
    const auto found = joins_.find(rewrite_(old));
    return found == joins_.end() ? nullptr : &found->second;
  }

  bool sink(const Node& node) {
    const auto stays = [&](ValueId value) { return !overwritten_[value]; };
    if (node.inputs.empty() || !std::ranges::all_of(node.inputs, stays) ||
        !stays(node.outputs[0])) {
      return false;
    }
    if (node.op_name() == "chunk_by_rank") return take_chunk(node);
    if (node.op_name() == "view") return sink_view(node);
    return node.op->op_class == OpClass::kPointwise && sink_pointwise(node);
  }

  bool take_chunk(const Node& node) {
    const Join* join = join_of(node.inputs[0]);
    if (join == nullptr || join->group != *node.attr<std::string>("group")) return false;
    const std::size_t shift = *node.attr<std::int64_t>("shift");
    rewrite_.map(node.outputs[0], join->chunks[shift]);
    return true;
  }

  bool sink_view(const Node& node) {
    const Join* found = join_of(node.inputs[0]);
    if (found == nullptr) return false;
    const Join join = *found;
    Shape shape = graph_.type(node.outputs[0]).shape;
    const auto ranks = static_cast<std::int64_t>(join.chunks.size());
    const auto rows =
        shape.empty() ? std::nullopt : shape[0].divide_exactly(ranks, graph_.symbols());
    if (!rows) return false;
    shape[0] = *rows;
    std::vector<ValueId> chunks;
    for (const ValueId chunk : join.chunks) {
      chunks.push_back(add(node, "view", {chunk}, {{"shape", shape}}));
    }
    finish(node, {join.group, std::move(chunks)});
    return true;
  }

  bool sink_pointwise(const Node& node) {
    const Shape& shape = graph_.type(node.outputs[0]).shape;
    const Join* first = nullptr;
    for (ValueId input : node.inputs) {
      const Join* join = join_of(input);
      if (join != nullptr && graph_.type(input).shape == shape && first == nullptr) first = join;
    }
    if (first == nullptr || node.outputs.size() != 1) return false;
    const Join join = *first;
    if (!std::ranges::all_of(node.inputs, [&](ValueId input) {
          return has_no_rows(input, shape) || has_chunks(input, shape, join.group);
        })) {
      return false;
    }
    std::vector<ValueId> chunks;
    for (std::size_t k = 0; k < join.chunks.size(); ++k) {
      std::vector<ValueId> operands;
      for (ValueId input : node.inputs) {
        operands.push_back(has_no_rows(input, shape) ? rewrite_(input)
                                                     : chunk_of(node, input, join.group, k));
      }
      chunks.push_back(add(node, node.op_name(), std::move(operands), node.attrs));
    }
    finish(node, {join.group, std::move(chunks)});
    return true;
  }

  /// Whether all rows of a result of that shape read the same elements of the operand.
  bool has_no_rows(ValueId input, const Shape& shape) const {
    const Shape& own = graph_.type(input).shape;
    return own.size() < shape.size() || own[0] == Dim(1);
  }

  /// Whether the operand has a chunk for each chunk of the result.
  bool has_chunks(ValueId input, const Shape& shape, const std::string& group) const {
    if (graph_.type(input).shape[0] != shape[0]) return false;
    const Join* join = join_of(input);
    return join != nullptr ? join->group == group : graph_.value(input).producer < 0;
  }

  ValueId chunk_of(const Node& node, ValueId input, const std::string& group, std::size_t k) {
    if (const Join* join = join_of(input)) return join->chunks[k];
    return add(node, "chunk_by_rank", {rewrite_(input)},
               {{"group", group}, {"shift", static_cast<std::int64_t>(k)}});
  }

  ValueId add(const Node& node, std::string_view op, std::vector<ValueId> inputs, Attrs attrs) {
    return rewrite_.add(node.name + "_chunk", op, std::move(inputs), std::move(attrs));
  }

  /// Records that the node is a join now.
  void finish(const Node& node, Join join) {
    rewrite_.copy(node, "join_by_rank", join.chunks, {{"group", join.group}});
    joins_.emplace(rewrite_(node.outputs[0]), std::move(join));
  }

  const Graph& graph_;
  std::vector<bool> overwritten_;  ///< for each old value
  Rewriter rewrite_;
  std::map<ValueId, Join> joins_;  ///< by value of the new graph
};

}  // namespace

Graph sink_joins(const Graph& graph) { return Sinking(graph).run(); }

}  // namespace braid
