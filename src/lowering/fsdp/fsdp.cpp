#include "lowering/fsdp/fsdp.h"

#include <algorithm>
#include <vector>

#include "ir/mutation.h"
#include "lowering/analysis/match.h"
#include "lowering/passes.h"
#include "lowering/rewrite.h"

// fsdp: simplifies the mutations that fully sharded data parallelism (FSDP2 of PyTorch) leaves in a
// graph.
//
//   1. unsharded parameters go; their readers read what was copied into them   (fsdp_params.cpp)
//   2. the all-gathers write where their operand lies already                  (here)
//   3. gathers and scatters are kept together and take turns                   (fsdp_order.cpp)
// It comes first of all passes, because it works on mutation, and does nothing on a graph without
// FSDP's own ops.
//
// Second rewrite: all-gathers in place.
//
// Matches
//     all_gather_into_tensor(copy_in:0)  ->  all_gather_into_tensor_out(copy_in:0, copy_in:1)
// where copy_in is an fsdp.all_gather_copy_in: its result 0 is this rank's part of its result 1, so
// the part need not move. getitem nodes between the two are looked through; unread ones of result 1
// are removed.
// Refuses
//   - a gather of result 1, of a result 0 that others read, or over another group;
//   - an output buffer that is used again after the gather, or is a graph output: it would hold
//     what the gather wrote.
namespace braid {
namespace {

namespace why = fsdp_reasons;

constexpr std::string_view kPass = "fsdp";

class Reinplace {
 public:
  Reinplace(const Graph& graph, PassContext& context)
      : graph_(graph), context_(context), uses_(graph), storage_(storages(graph)) {
    last_use_.resize(graph.values().size(), -1);
    for (std::size_t id = 0; id < graph.nodes().size(); ++id) {
      const Node& node = graph.nodes()[id];
      if (is_unread_getitem(node)) continue;
      use(node, id);
      if (node.op->op_class != OpClass::kWait) continue;
      // The collective reads its operands until its wait.
      const NodeId waited = graph.value(node.inputs[0]).producer;
      if (waited >= 0) use(graph.node(waited), id);
    }
  }

  std::optional<Graph> run() {
    std::vector<bool> in_place(graph_.nodes().size(), false);
    bool changes = false;
    for (std::size_t id = 0; id < graph_.nodes().size(); ++id) {
      const Node& node = graph_.nodes()[id];
      if (node.op_name() != "all_gather_into_tensor") continue;
      const Origin origin = origin_of(graph_, node.inputs[0]);
      if (origin.node == nullptr || origin.node->op_name() != kCopyIn) continue;
      if (Reason reason = obstacle(id)) {
        context_.missed(kPass, node.name, Reason(why::kNotInPlace, std::move(reason)));
        continue;
      }
      const std::string& buffer = graph_.value(origin.node->outputs[1]).name;
      context_.applied(kPass, node.name, Reason(why::kInPlace, buffer));
      in_place[id] = changes = true;
    }
    return changes ? std::optional(rewritten(in_place)) : std::nullopt;
  }

 private:
  ValueId storage(ValueId value) const { return storage_[value]; }

  void use(const Node& node, NodeId at) {
    for (ValueId value : node.inputs) last_use_[storage(value)] = at;
  }

  bool is_unread_getitem(const Node& node) const {
    return node.op_name() == "getitem" && uses_.of(node.outputs[0]).empty() &&
           !uses_.is_output(node.outputs[0]);
  }

  Reason obstacle(NodeId id) const {
    const Node& gather = graph_.node(id);
    const Pattern part = op(kCopyIn).as("copy_in").result(0).single();
    const Pattern pattern =
        op("all_gather_into_tensor", either(part, op("getitem", part).single()));
    const Match found = match(graph_, uses_, gather.outputs[0], pattern);
    if (!found) return found.reason();
    const Node& copy_in = found.node("copy_in");
    const std::string& group = *gather.attr<std::string>("group");
    if (const auto& other = *copy_in.attr<std::string>("group"); other != group) {
      return Reason(why::kOtherGroup, group, copy_in.name, other);
    }
    const ValueId buffer = storage(copy_in.outputs[1]);
    for (ValueId output : graph_.outputs()) {
      if (storage(output) == buffer) return Reason(why::kOutputInMemory, graph_.value(output).name);
    }
    if (const NodeId last = last_use_[buffer]; last > id) {
      return Reason(why::kMemoryUsedLater, graph_.node(last).name);
    }
    return {};
  }

  Graph rewritten(const std::vector<bool>& in_place) const {
    std::vector<bool> taken(graph_.nodes().size(), false);  // copy_ins whose buffer is written
    for (std::size_t id = 0; id < in_place.size(); ++id) {
      if (!in_place[id]) continue;
      const Origin origin = origin_of(graph_, graph_.nodes()[id].inputs[0]);
      taken[graph_.value(origin.node->outputs[0]).producer] = true;
    }
    Rewriter rewrite(graph_);
    for (std::size_t id = 0; id < in_place.size(); ++id) {
      const Node& node = graph_.nodes()[id];
      if (in_place[id]) {
        const Origin origin = origin_of(graph_, node.inputs[0]);
        rewrite.copy(node, "all_gather_into_tensor_out",
                     rewrite({node.inputs[0], origin.node->outputs[1]}), node.attrs);
        continue;
      }
      if (is_unread_getitem(node)) {
        const NodeId producer = graph_.value(node.inputs[0]).producer;
        if (producer >= 0 && taken[producer]) continue;
      }
      rewrite.copy(node);
    }
    return rewrite.finish();
  }

  const Graph& graph_;
  PassContext& context_;
  Uses uses_;
  std::vector<ValueId> storage_;
  std::vector<NodeId> last_use_;  ///< for each storage
};

bool has_fsdp_ops(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const Node& node) {
    return node.op_name().starts_with("fsdp.") || node.op_name() == kResize;
  });
}

}  // namespace

std::optional<Graph> reinplace_all_gathers(const Graph& graph, PassContext& context) {
  return Reinplace(graph, context).run();
}

Origin origin_of(const Graph& graph, ValueId value) {
  while (true) {
    const Value& v = graph.value(value);
    if (v.producer < 0) return {};
    const Node& node = graph.node(v.producer);
    if (node.op_name() != "getitem") return {&node, v.result};
    value = node.inputs[0];
  }
}

constinit const Pass fsdp{
    .name = "fsdp",
    .summary = "unsharded parameters go, all-gathers write in place, collectives take turns",
    .run = [](const Graph& graph, PassContext& context) -> std::optional<Graph> {
      if (!has_fsdp_ops(graph)) return std::nullopt;
      std::optional<Graph> result;
      for (const auto rewrite :
           {remove_unsharded_params, reinplace_all_gathers, order_fsdp_collectives}) {
        if (auto next = rewrite(result ? *result : graph, context)) result = std::move(next);
      }
      return result;
    }};

}  // namespace braid
