#include "lowering/analysis/dependences.h"

#include "ir/mutation.h"

namespace braid {
namespace {

/// Collects the ordering constraints on memory accesses in one sweep over the nodes.
class Sweep {
 public:
  explicit Sweep(const Graph& graph)
      : graph_(graph), storage_(storages(graph)), memory_(graph.values().size()) {
    for (const Node& node : graph.nodes()) {
      for (ValueId value : mutated_operands(node)) of(value).is_overwritten = true;
      for (const Update& update : updates_of(node)) {
        of(node.inputs[update.operand]).is_overwritten = true;
      }
    }
  }

  std::vector<std::pair<NodeId, NodeId>> run(const std::function<MoreUses(NodeId)>& more) {
    for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
      const NodeId id = i;
      const Node& node = graph_.node(id);
      for (ValueId input : node.inputs) add(graph_.value(input).producer, id);
      use(node, id);
      if (node.op->op_class == OpClass::kWait) {
        const NodeId waited = graph_.value(node.inputs[0]).producer;
        if (waited >= 0 && is_asynchronous(graph_.node(waited))) use(graph_.node(waited), id);
      }
      if (!more) continue;
      const MoreUses uses = more(id);
      for (ValueId value : uses.reads) read(of(value), id);
      for (ValueId value : uses.writes) write(of(value), id);
    }
    return std::move(edges_);
  }

 private:
  struct Memory {
    bool is_overwritten = false;  ///< some node overwrites it
    NodeId written = -1;
    std::vector<NodeId> reads;  ///< readers since the last write
  };
  Memory& of(ValueId value) { return memory_[storage_[value]]; }
  void add(NodeId earlier, NodeId later) {
    if (earlier >= 0 && earlier != later) edges_.emplace_back(earlier, later);
  }
  void read(Memory& memory, NodeId at) {
    if (!memory.is_overwritten) return;
    add(memory.written, at);
    memory.reads.push_back(at);
  }
  void write(Memory& memory, NodeId at) {
    add(memory.written, at);
    for (NodeId reader : memory.reads) add(reader, at);
    memory.reads.clear();
    memory.written = at;
  }
  void use(const Node& node, NodeId at) {
    for (ValueId value : node.inputs) read(of(value), at);
    for (ValueId value : mutated_operands(node)) write(of(value), at);
    // It can be made in place if nobody reads the old elements later.
    for (const Update& update : updates_of(node)) write(of(node.inputs[update.operand]), at);
  }

  const Graph& graph_;
  std::vector<ValueId> storage_;
  std::vector<Memory> memory_;  ///< for each value that is its own storage
  std::vector<std::pair<NodeId, NodeId>> edges_;
};

}  // namespace

std::vector<std::pair<NodeId, NodeId>> dependences(const Graph& graph,
                                                   const std::function<MoreUses(NodeId)>& more) {
  return Sweep(graph).run(more);
}

}  // namespace braid
