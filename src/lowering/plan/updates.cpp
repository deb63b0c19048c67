#include "lowering/plan/updates.h"

#include <algorithm>
#include <optional>

#include "ir/mutation.h"
#include "ir/op_registry.h"
#include "ir/views.h"

namespace braid {
namespace {

class Updates {
 public:
  explicit Updates(const Graph& graph)
      : graph_(graph),
        last_use_(graph.values().size(), -1),
        pinned_(graph.values().size(), false),
        output_(graph.values().size(), false),
        kept_(graph.values().size(), false),
        in_place_(graph.values().size(), false) {}

  std::vector<bool> run() {
    for (std::size_t id = 0; id < graph_.nodes().size(); ++id) use(id);
    for (ValueId output : graph_.outputs()) output_[base(output)] = true;
    for (const Node& node : graph_.nodes()) {
      if (node.op->op_class == OpClass::kMutation) keep(base(node.inputs[0]), node.inputs[1]);
    }
    for (std::size_t id = 0; id < graph_.nodes().size(); ++id) {
      const Node& node = graph_.nodes()[id];
      for (const Update& update : updates_of(node)) {
        const ValueId result = node.outputs[update.result];
        in_place_[result] = can_be_in_place(id, base(node.inputs[update.operand]), result);
      }
    }
    return std::move(in_place_);
  }

 private:
  ValueId base(ValueId value) const { return named_value(graph_, value); }

  void use(NodeId id) {
    const Node& node = graph_.node(id);
    const OpClass c = node.op->op_class;
    const bool stays = is_asynchronous(node) || c == OpClass::kChunk;
    for (std::size_t i = c == OpClass::kMutation ? 1 : 0; i < node.inputs.size(); ++i) {
      const ValueId used = base(node.inputs[i]);
      last_use_[used] = id;
      if (stays) pinned_[used] = true;
    }
    for (ValueId output : node.outputs) pinned_[output] = pinned_[output] || stays;
  }

  /// The value that the value updates, if it is an update.
  std::optional<ValueId> updated(ValueId value) const {
    const Value& v = graph_.value(value);
    if (v.producer < 0) return std::nullopt;
    const Node& node = graph_.node(v.producer);
    for (const Update& update : updates_of(node)) {
      if (static_cast<int>(update.result) == v.result) return base(node.inputs[update.operand]);
    }
    return std::nullopt;
  }

  /// Notes the updates from a graph input to what it ends as.
  void keep(ValueId input, ValueId end) {
    std::vector<ValueId> chain;
    for (ValueId value = base(end); value != input;) {
      chain.push_back(value);
      const std::optional<ValueId> before = updated(value);
      if (!before) return;
      value = *before;
    }
    for (ValueId value : chain) kept_[value] = true;
  }

  bool can_be_in_place(NodeId id, ValueId tensor, ValueId result) const {
    const Node& node = graph_.node(id);
    const Value& before = graph_.value(tensor);
    const auto times =
        std::ranges::count_if(node.inputs, [&](ValueId input) { return base(input) == tensor; });
    return times == 1 && last_use_[tensor] == id && !pinned_[tensor] && !pinned_[result] &&
           !output_[tensor] && before.comm_group.empty() &&
           graph_.value(result).comm_group.empty() &&
           (kept_[result] || (before.producer >= 0 && !output_[result]));
  }

  const Graph& graph_;
  std::vector<NodeId> last_use_;  ///< for each value that names no other
  std::vector<bool> pinned_;      ///< it has a place of its own, and keeps its elements
  std::vector<bool> output_;      ///< the caller gets it
  std::vector<bool> kept_;        ///< it is on the way from a graph input to what that ends as
  std::vector<bool> in_place_;
};

}  // namespace

ValueId named_value(const Graph& graph, ValueId value) {
  for (;;) {
    const NodeId producer = graph.value(value).producer;
    if (producer < 0) return value;
    const Node& node = graph.node(producer);
    if (!names_bytes(node.op_name()) && node.op->op_class != OpClass::kWait) return value;
    value = node.inputs[0];
  }
}

std::vector<bool> updated_in_place(const Graph& graph) { return Updates(graph).run(); }

}  // namespace braid
