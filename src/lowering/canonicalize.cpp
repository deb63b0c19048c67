#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "ir/mapped.h"
#include "ir/mutation.h"
#include "ir/op_registry.h"
#include "ir/views.h"
#include "lowering/analysis/gathered.h"
#include "lowering/passes.h"
#include "lowering/rewrite.h"
#include "lowering/spellings.h"

// canonicalize: one spelling for each thing.
//
// Matches, after the spellings of spellings.cpp,
//   a collective over a group of size 1, and its wait_tensor    -> the operand
//   view of a view                                              -> one view of the base
//   view to the shape its operand has                           -> the operand
//   transpose of a transpose of the same two dims               -> the innermost operand
//   shard of an all_gather over the same group and dim          -> what was gathered
//   a cast to the dtype its operand has                         -> the operand
//   view_dtype of a view_dtype                                  -> one of the base
//   view_dtype to the dtype its operand has                     -> the operand
//   a wait_tensor of what no collective computes                -> the operand
//   negative or unordered dims, a view's -1                     -> plain dims
//   nodes that overwrite nothing and that no output needs       -> gone
//   an update's index or elements that are the tensor itself    -> a copy of it, which a kernel can
//                                                                  read while it replaces elements
// Where the operand or the result is overwritten, and they are two memories, a copy stands there
// instead of the operand; a collective over one rank into `out` is a copy_. Each result of a
// collective that stays keeps a wait. A negative dim of operands that differ in rank has no plain
// spelling.
// Refuses to merge equal nodes: which of two values lives on, and for how long, is the scheduler's
// question. Surviving nodes keep their names and order.
//
// Two sweeps: forwards, to learn what each value is equal to; then, once it is known what is still
// needed, the surviving nodes are copied.
namespace braid {
namespace {

constexpr std::string_view kPass = "canonicalize";

constexpr ReasonCode kDead{"canonicalize.dead", "dead: no output needs it"};
constexpr ReasonCode kOneRank{"canonicalize.one_rank", "group '{group}' has one rank: {instead}"};
constexpr ReasonCode kComplete{"canonicalize.complete",
                               "nothing to wait for: its operand is complete"};
constexpr ReasonCode kCollectiveGone{"canonicalize.collective_gone",
                                     "nothing to wait for: its collective is gone"};
constexpr ReasonCode kSameDType{"canonicalize.same_dtype", "a cast to the dtype it has"};
constexpr ReasonCode kViewOfView{"canonicalize.view_of_view",
                                 "{op} of the {op} '{value}': one {op} of the base"};
constexpr ReasonCode kViewOfSame{"canonicalize.view_of_same", "a view to the {property} it has"};
constexpr ReasonCode kTransposeOfOneDim{"canonicalize.transpose_of_one_dim",
                                        "a transpose of a dim with itself"};
constexpr ReasonCode kUndoesTranspose{"canonicalize.undoes_transpose",
                                      "undoes the transpose '{value}'"};
constexpr ReasonCode kChunkOfGathered{"canonicalize.chunk_of_gathered",
                                      "this rank's chunk of '{value}' is what was gathered"};
constexpr ReasonCode kCopied{"canonicalize.copied", "{reason}: a copy"};
constexpr ReasonCode kReadsItself{"canonicalize.reads_itself",
                                  "replaces elements of what it reads: from a copy"};
constexpr ReasonCode kPlainDims{"canonicalize.plain_dims", "dims in their plain spelling"};

class Canonicalizer {
 public:
  Canonicalizer(const Graph& graph, PassContext& context)
      : graph_(graph),
        context_(context),
        overwritten_(overwritten_values(graph)),
        same_(graph.values().size()),
        copied_(graph.nodes().size(), false) {
    for (std::size_t v = 0; v < same_.size(); ++v) same_[v] = v;
    operands_.reserve(graph.nodes().size());
  }

  /// The canonical graph; nothing where the graph is canonical already.
  std::optional<Graph> run() {
    for (const Node& node : graph_.nodes()) simplify(node);
    const std::vector<bool> live = mark_live();
    if (changes_nothing(live)) return std::nullopt;
    Rewriter rewrite(graph_);
    for (std::size_t id = 0; id < graph_.nodes().size(); ++id) {
      const Node& node = graph_.nodes()[id];
      if (!live[id]) {
        if (!replaced(node)) context_.applied(kPass, node.name, Reason(kDead));
        continue;
      }
      if (copied_[id]) {
        copy_operands(node, operands_[id], rewrite);
      } else if (reads_itself(node, operands_[id])) {
        context_.applied(kPass, node.name, Reason(kReadsItself));
        copy_reading_copies(node, operands_[id], rewrite);
      } else if (auto attrs = plain_attrs(node)) {
        context_.applied(kPass, node.name, Reason(kPlainDims));
        rewrite.copy(node, rewrite(operands_[id]), std::move(*attrs));
      } else if (operands_[id] != node.inputs) {
        rewrite.copy(node, rewrite(operands_[id]), node.attrs);
      } else {
        rewrite.copy(node);
      }
      for (ValueId value : node.outputs) {
        // A group of one rank has nobody to communicate with.
        if (lies_alone(value)) rewrite.graph().set_comm_group(rewrite(value), "");
      }
    }
    for (std::size_t v = 0; v < same_.size(); ++v) {
      if (same_[v] != static_cast<ValueId>(v)) rewrite.map(v, rewrite(same_[v]));
    }
    return rewrite.finish();
  }

 private:
  bool changes_nothing(const std::vector<bool>& live) const {
    for (std::size_t id = 0; id < live.size(); ++id) {
      const Node& node = graph_.nodes()[id];
      if (!live[id] || copied_[id] || operands_[id] != node.inputs || plain_attrs(node) ||
          reads_itself(node, operands_[id])) {
        return false;
      }
    }
    for (std::size_t v = 0; v < same_.size(); ++v) {
      const ValueId value = v;
      if (same(value) != value || lies_alone(value)) return false;
    }
    return true;
  }

  /// Whether a node computes the value into the arena of a group of one rank.
  bool lies_alone(ValueId value) const {
    const Value& v = graph_.value(value);
    return !v.comm_group.empty() && v.producer >= 0 && group_size(v.comm_group) == 1;
  }

  ValueId same(ValueId value) const { return same_[value]; }
  bool replaced(const Node& node) const { return same(node.outputs[0]) != node.outputs[0]; }
  std::int64_t group_size(const std::string& name) const {
    return graph_.groups().find(name)->second.size;
  }
  const Node* producer(ValueId value) const { return producer_of(graph_, value); }
  const std::vector<ValueId>& operands(ValueId value) const {
    return operands_[graph_.value(value).producer];
  }
  std::size_t rank(ValueId value) const { return graph_.type(value).shape.size(); }

  bool overwritten(ValueId value) const { return overwritten_[value]; }
  /// Whether the operand can stand for a result that has memory of its own.
  bool may_stand_for(ValueId operand, ValueId result) const {
    return !overwritten(operand) && !overwritten(result);
  }

  void simplify(const Node& node) {
    std::vector<ValueId> inputs = mapped(node.inputs, [&](ValueId input) { return same(input); });
    if ((node.op->op_class == OpClass::kCollective || node.op->view == View::kShard) &&
        group_size(*node.attr<std::string>("group")) == 1) {
      simplify_alone(node, inputs);
    }
    if (auto found = equal_value(node, inputs)) {
      same_[node.outputs[0]] = found->first;
      context_.applied(kPass, node.name, std::move(found->second));
    }
    operands_.push_back(std::move(inputs));
  }

  /// Removes a collective over one rank: its results become its operands, or copies of them.
  void simplify_alone(const Node& node, const std::vector<ValueId>& inputs) {
    const bool in_place = node.op->mutates == Mutates::kAll;
    bool stand = node.op->mutates != Mutates::kLast;
    for (std::size_t i = 0; i < node.outputs.size() && stand && !in_place; ++i) {
      stand = may_stand_for(inputs[i], node.outputs[i]);
    }
    for (std::size_t i = 0; i < node.outputs.size() && stand; ++i) {
      same_[node.outputs[i]] = inputs[i];
    }
    copied_[operands_.size()] = !stand;
    context_.applied(kPass, node.name,
                     Reason(kOneRank, *node.attr<std::string>("group"),
                            stand ? "the operand itself" : "a copy of the operand"));
  }

  /// The value whose elements this one has, in the same order.
  ValueId in_order(ValueId value) const {
    for (const Node* node = producer(value); node != nullptr && node->op->view == View::kFlat;
         node = producer(value)) {
      value = operands(value)[0];
    }
    return value;
  }
  bool is_updated(const std::vector<ValueId>& operands, std::size_t i) const {
    return i > 0 && in_order(operands[i]) == in_order(operands[0]);
  }
  bool reads_itself(const Node& node, const std::vector<ValueId>& operands) const {
    if (node.op->op_class != OpClass::kUpdate) return false;
    for (std::size_t i = 1; i < operands.size(); ++i) {
      if (is_updated(operands, i)) return true;
    }
    return false;
  }
  void copy_reading_copies(const Node& node, const std::vector<ValueId>& operands,
                           Rewriter& rewrite) {
    std::vector<ValueId> inputs = rewrite(operands);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!is_updated(operands, i)) continue;
      inputs[i] = rewrite.add(rewrite.fresh_name(node.name + "_copy"), "copy", {inputs[i]}, {});
    }
    rewrite.copy(node, std::move(inputs), plain_attrs(node).value_or(node.attrs));
  }

  /// Replaces the node by a copy of each operand.
  void copy_operands(const Node& node, const std::vector<ValueId>& operands, Rewriter& rewrite) {
    if (node.op->mutates == Mutates::kLast) {
      rewrite.copy(node, "copy_", {rewrite(operands[1]), rewrite(operands[0])}, {});
    } else if (node.outputs.size() == 1) {
      rewrite.copy(node, "copy", {rewrite(operands[0])}, {});
    } else {
      for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        rewrite.map(node.outputs[i], rewrite.add(fmt::format("{}_{}", node.name, i), "copy",
                                                 {rewrite(operands[i])}));
      }
    }
  }

  /// A value that another one is equal to, and why.
  using Equal = std::pair<ValueId, Reason>;

  /// The value that the node's only result equals. May bypass views in `inputs`.
  std::optional<Equal> equal_value(const Node& node, std::vector<ValueId>& inputs) {
    const std::string_view op = node.op_name();
    if (node.op->op_class == OpClass::kWait) {
      const Node* source = producer(node.inputs[0]);
      if (source == nullptr || !is_asynchronous(*source)) return {{inputs[0], Reason(kComplete)}};
      const bool gone = replaced(*source) || copied_[graph_.value(node.inputs[0]).producer];
      if (!gone) return std::nullopt;
      return {{inputs[0], Reason(kCollectiveGone)}};
    }
    if (op == "to" && graph_.type(inputs[0]) == graph_.type(node.outputs[0])) {
      return equal_cast(node, inputs[0]);
    }
    if (names_bytes(op)) return equal_view(node, inputs);
    if (op == "transpose") return equal_transpose(node, inputs);
    if (op == "shard") return equal_shard(node, inputs);
    return std::nullopt;
  }

  /// equal_value() for a cast to the operand's own dtype.
  std::optional<Equal> equal_cast(const Node& node, ValueId operand) {
    // In a lowered graph such a cast may be what moves a value into the arena.
    const Value& result = graph_.value(node.outputs[0]);
    if (result.comm_group != graph_.value(operand).comm_group) return std::nullopt;
    if (may_stand_for(operand, node.outputs[0])) return {{operand, Reason(kSameDType)}};
    copied_[operands_.size()] = true;
    context_.applied(kPass, node.name, Reason(kCopied, Reason(kSameDType)));
    return std::nullopt;
  }

  std::optional<Equal> equal_view(const Node& node, std::vector<ValueId>& inputs) {
    const Node* source = producer(inputs[0]);
    const std::string_view op = node.op_name();
    if (source != nullptr && source->op_name() == op) {
      inputs[0] = operands(inputs[0])[0];
      context_.applied(kPass, node.name, Reason(kViewOfView, op, source->name));
    }
    if (graph_.type(inputs[0]) != graph_.type(node.outputs[0])) return std::nullopt;
    return {{inputs[0], Reason(kViewOfSame, op == "view" ? "shape" : "dtype")}};
  }

  std::optional<Equal> equal_transpose(const Node& node, const std::vector<ValueId>& inputs) const {
    const auto dims = transposed_dims(node);
    if (dims.first == dims.second) return {{inputs[0], Reason(kTransposeOfOneDim)}};
    const Node* source = producer(inputs[0]);
    if (source == nullptr || source->op_name() != "transpose" || transposed_dims(*source) != dims) {
      return std::nullopt;
    }
    return {{operands(inputs[0])[0], Reason(kUndoesTranspose, source->name)}};
  }

  std::optional<Equal> equal_shard(const Node& node, std::vector<ValueId>& inputs) {
    const ValueId found =
        gathered_from(graph_, overwritten_, inputs[0], *node.attr<std::string>("group"),
                      axis_of(node.attrs, "dim", rank(inputs[0])));
    if (found < 0) return std::nullopt;
    const ValueId chunk = same(found);
    if (graph_.value(node.outputs[0]).comm_group != graph_.value(chunk).comm_group) {
      return std::nullopt;
    }
    const Reason reason(kChunkOfGathered, graph_.value(inputs[0]).name);
    if (may_stand_for(chunk, node.outputs[0])) return {{chunk, reason}};
    inputs[0] = chunk;
    copied_[operands_.size()] = true;
    context_.applied(kPass, node.name, Reason(kCopied, reason));
    return std::nullopt;
  }

  std::pair<std::int64_t, std::int64_t> transposed_dims(const Node& node) const {
    const std::size_t n = rank(node.outputs[0]);
    return std::minmax({static_cast<std::int64_t>(axis_of(node.attrs, "dim0", n)),
                        static_cast<std::int64_t>(axis_of(node.attrs, "dim1", n))});
  }

  /// The attributes with canonical dims; nothing where they are canonical already.
  std::optional<Attrs> plain_attrs(const Node& node) const {
    const OpClass c = node.op->op_class;
    if (c != OpClass::kView && c != OpClass::kReduction && c != OpClass::kCollective) {
      return std::nullopt;
    }
    Attrs attrs = node.attrs;
    if (node.op_name() == "transpose") {
      const auto [a, b] = transposed_dims(node);
      attrs.insert_or_assign("dim0", a);
      attrs.insert_or_assign("dim1", b);
    } else if (node.op_name() == "view") {
      attrs.insert_or_assign("shape", graph_.type(node.outputs[0]).shape);
    } else if (node.op->op_class == OpClass::kReduction && attrs.contains("dim")) {
      if (!node.attr<std::vector<std::int64_t>>("dim")->empty()) {
        const std::vector<std::size_t> axes = reduced_axes(attrs, rank(node.inputs[0]));
        attrs.insert_or_assign("dim", std::vector<std::int64_t>(axes.begin(), axes.end()));
      }
    }
    const auto* dim = node.attr<std::int64_t>("dim");
    const bool counts_operand =
        (node.op->op_class == OpClass::kView || node.op->op_class == OpClass::kCollective) &&
        std::ranges::all_of(node.inputs,
                            [&](ValueId input) { return rank(input) == rank(node.inputs[0]); });
    if (counts_operand && dim != nullptr) {
      attrs.insert_or_assign(
          "dim", static_cast<std::int64_t>(axis_of(attrs, "dim", rank(node.inputs[0]))));
    }
    return attrs == node.attrs ? std::nullopt : std::optional(std::move(attrs));
  }

  std::vector<bool> mark_live() const {
    std::vector<bool> live = live_nodes(graph_, same_, operands_);
    keep_waits(live);
    return live;
  }

  /// Keeps the waits of live collectives, also of results that nobody reads.
  void keep_waits(std::vector<bool>& live) const {
    std::vector<bool> waited(same_.size(), false);
    const auto each_wait = [&](auto visit) {
      for (std::size_t id = 0; id < live.size(); ++id) {
        const Node& node = graph_.nodes()[id];
        if (node.op->op_class == OpClass::kWait && !replaced(node)) visit(id, node.inputs[0]);
      }
    };
    each_wait([&](std::size_t id, ValueId result) {
      if (live[id]) waited[result] = true;
    });
    each_wait([&](std::size_t id, ValueId result) {
      const NodeId source = graph_.value(result).producer;
      if (waited[result] || !live[source]) return;
      live[id] = waited[result] = true;
    });
  }

  const Graph& graph_;
  PassContext& context_;
  std::vector<bool> overwritten_;               ///< values whose memory is overwritten
  std::vector<ValueId> same_;                   ///< the value that each value equals, often itself
  std::vector<bool> copied_;                    ///< nodes that only copy their operands
  std::vector<std::vector<ValueId>> operands_;  ///< operands of each node so far, simplified
};

}  // namespace

constinit const Pass canonicalize{
    .name = "canonicalize",
    .summary = "one spelling for each thing; groups of one rank and dead nodes go",
    .run = [](const Graph& graph, PassContext& context) -> std::optional<Graph> {
      std::optional<Graph> spelled = normalize_spellings(graph, context);
      std::optional<Graph> result = Canonicalizer(spelled ? *spelled : graph, context).run();
      return result ? std::move(result) : std::move(spelled);
    }};

}  // namespace braid
