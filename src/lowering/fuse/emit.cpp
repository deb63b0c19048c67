#include "lowering/fuse/emit.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <queue>

#include "braid/error.h"
#include "codegen/protocol.h"
#include "ir/op_registry.h"
#include "lowering/rewrite.h"

namespace braid {
namespace {

namespace why = fuse_reasons;
constexpr std::string_view kPass = "fuse";

class Emitter {
 public:
  explicit Emitter(Clusters& clusters)
      : clusters_(clusters), graph_(clusters.graph), rewrite_(clusters.graph) {}

  Graph run() {
    report_missed();
    for (int item : emission_order()) emit(clusters_.item(item));
    return rewrite_.finish();
  }

 private:
  const Node& node(NodeId id) const { return clusters_.node(id); }
  NodeId producer(ValueId value) const { return clusters_.producer(value); }

  void report_missed() {
    for (const Item& it : clusters_.items) {
      if (it.gone || !it.is_kernel()) continue;
      for (ValueId input : it.kernel.inputs) {
        const NodeId from = producer(input);
        if (from >= 0 && node(from).op->op_class != OpClass::kKernel) report_edge(it, input);
      }
    }
  }

  void report_edge(const Item& it, ValueId input) {
    for (NodeId n : it.nodes) {
      const auto& reasons = clusters_.reasons[n];
      const auto noted =
          std::ranges::find_if(reasons, [&](const auto& reason) { return reason.first == input; });
      if (noted == reasons.end()) continue;
      clusters_.context.missed(kPass, node(n).name,
                               Reason(why::kNotFused, graph_.value(input).name, noted->second));
    }
  }

  /// The preferred place of an item, regardless of dependences.
  NodeId place_of(const Item& it) const {
    const NodeId place = *std::ranges::max_element(it.nodes);
    // What overwrites graph inputs comes when everybody has read them.
    const bool last = node(it.nodes[0]).op->op_class == OpClass::kMutation;
    return last ? place + static_cast<NodeId>(graph_.nodes().size()) : place;
  }

  /// The same, but waits and chunks come as late as their readers allow, for overlap.
  NodeId place(int id, const std::vector<std::vector<int>>& readers, std::vector<NodeId>& places) {
    NodeId& place = places[id];
    if (place >= 0) return place;
    const Item& it = clusters_.item(id);
    const OpClass c = node(it.nodes[0]).op->op_class;
    if (c != OpClass::kWait && c != OpClass::kChunk) return place = place_of(it);
    place = graph_.nodes().size();
    for (int reader : readers[id]) place = std::min(place, this->place(reader, readers, places));
    return place;
  }

  std::vector<int> emission_order() {
    const std::vector<Item>& items = clusters_.items;
    std::vector<std::vector<int>> readers(items.size());
    std::vector<int> missing(items.size(), 0);
    std::size_t left = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (items[i].gone) continue;
      ++left;
      clusters_.mark(items[i].nodes);
      for (NodeId n : items[i].nodes) {
        for (ValueId input : node(n).inputs) {
          const int from = clusters_.item_of(input);
          if (from < 0 || clusters_.marked(producer(input))) continue;
          readers[from].push_back(i);
          ++missing[i];
        }
      }
    }
    using Entry = std::pair<NodeId, int>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    std::vector<NodeId> places(items.size(), -1);
    const auto push = [&](int id) { ready.emplace(place(id, readers, places), id); };
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (!items[i].gone && missing[i] == 0) push(i);
    }
    std::vector<int> order;
    while (!ready.empty()) {
      const int id = ready.top().second;
      ready.pop();
      order.push_back(id);
      for (int reader : readers[id]) {
        if (--missing[reader] == 0) push(reader);
      }
    }
    if (order.size() != left) throw_internal(graph_.name(), "fuse closed a cycle between kernels");
    return order;
  }

  void emit(const Item& it) {
    if (!it.is_kernel()) {
      rewrite_.copy(node(it.nodes[0]));
      return;
    }
    const KernelSpec& spec = clusters_.bodies.spec_of(it.nodes, it.kernel);
    Attrs attrs{{"body", spec.body}, {"config", spec.config}};
    std::map<std::string, std::int64_t> indexed;
    for (std::size_t n = 0; n < it.nodes.size(); ++n) {
      const Node& inner = node(it.nodes[n]);
      if (checks_values(inner)) indexed.emplace(inner.name, n);
      for (const std::size_t operand : inner.op->checked) {
        indexed.emplace(fmt::format("{}/inputs/{}", inner.name, operand),
                        protocol::check_of(static_cast<int>(n), static_cast<int>(operand)));
      }
    }
    if (!indexed.empty()) attrs.emplace("indexed", std::move(indexed));
    const NodeId id = rewrite_.graph().add_node(kernel_name(it), "kernel",
                                                rewrite_(it.kernel.inputs), std::move(attrs));
    const Node& kernel = rewrite_.graph().node(id);
    std::string ops;
    for (NodeId n : it.nodes) {
      if (!ops.empty()) ops += '+';
      ops += node(n).op_name();
    }
    clusters_.context.applied(
        kPass, kernel.name, Reason(why::kOneKernel, it.kernel.body->template_name, std::move(ops)));
    report_tuned(kernel, it.kernel.body->tuned);
    for (std::size_t i = 0; i < kernel.outputs.size(); ++i) {
      rewrite_.map(it.kernel.outputs[i], kernel.outputs[i]);
      const std::string& group = graph_.value(it.kernel.outputs[i]).comm_group;
      if (!group.empty()) rewrite_.graph().set_comm_group(kernel.outputs[i], group);
    }
  }

  void report_tuned(const Node& kernel, const Tuned& tuned) {
    if (tuned.remark.empty()) return;
    if (tuned.config) {
      clusters_.context.applied(kPass, kernel.name, Reason(why::kTuned, tuned.remark));
    } else {
      clusters_.context.missed(kPass, kernel.name, Reason(why::kNotTuned, tuned.remark));
    }
  }

  /// The name of the only output, so that it survives; with several outputs, that of the last node.
  std::string kernel_name(const Item& it) const {
    const auto& outputs = it.kernel.outputs;
    if (outputs.size() == 1) return node(producer(outputs[0])).name;
    const std::string& name = node(producer(outputs.back())).name;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      // A user's own value may have the name "name:1".
      const auto taken = graph_.find(fmt::format("{}:{}", name, i));
      if (taken && graph_.value(*taken).name != name &&
          std::ranges::find(it.nodes, producer(*taken)) == it.nodes.end()) {
        return rewrite_.fresh_name(name + "_kernel");
      }
    }
    return name;
  }

  Clusters& clusters_;
  const Graph& graph_;
  Rewriter rewrite_;
};

}  // namespace

Graph emit_clusters(Clusters& clusters) { return Emitter(clusters).run(); }

}  // namespace braid
