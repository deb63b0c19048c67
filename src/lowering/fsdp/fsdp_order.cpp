#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <vector>

#include "ir/mutation.h"
#include "lowering/analysis/dependences.h"
#include "lowering/analysis/match.h"
#include "lowering/fsdp/fsdp.h"
#include "lowering/rewrite.h"

// fsdp, third rewrite: groups the nodes of each gather and scatter, and orders the groups. Only the
// order of nodes changes.
//
// A block is two groups of nodes that stay together:
//   - for a gather: the casts, views and buffers made for it alone, fsdp.all_gather_copy_in and
//     all_gather_into_tensor_out; then its wait_tensor and, through views, the first
//     fsdp.split_with_sizes_copy that reads it;
//   - for a scatter: fsdp.chunk_cat, the nodes that only lead from it to reduce_scatter_tensor, and
//     that; then its wait_tensor. The first reader is not part of it.
// The gathers take turns, in the order they have: the copy-in of one comes after the second group
// of the one before. So do the scatters, independently of the gathers. Collectives do not pass each
// other, nor accesses to memory that is overwritten. A group stands where its first node stood, or
// as soon after it as these rules allow. A node that two blocks could claim belongs to neither.
// Refuses blocks whose copy-in is read by others, and all blocks where a node would have to run in
// the middle of a group.
namespace braid {
namespace {

namespace why = fsdp_reasons;

constexpr std::string_view kPass = "fsdp";

struct Block {
  NodeId head = -1;  ///< the node named in remarks: the copy_in or the chunk_cat
  bool is_gather = false;
  std::vector<NodeId> launch;  ///< in program order; its last node is the collective
  std::vector<NodeId> finish;
};

class Blocks {
 public:
  Blocks(const Graph& graph, PassContext& context)
      : graph_(graph), context_(context), uses_(graph) {}

  /// The blocks in the order of their collectives.
  std::vector<Block> find() {
    for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
      const NodeId id = i;
      const Node& node = graph_.node(id);
      if (node.op_name() == "all_gather_into_tensor_out") {
        find_gather(id);
      } else if (node.op_name() == kChunkCat) {
        find_scatter(id);
      }
    }
    std::ranges::sort(
        blocks_, [](const Block& a, const Block& b) { return a.launch.back() < b.launch.back(); });
    return std::move(blocks_);
  }

 private:
  static bool is_view(const Node& node) {
    return node.op->op_class == OpClass::kView && node.inputs.size() == 1;
  }
  NodeId producer(ValueId value) const { return graph_.value(value).producer; }
  bool is_dead(NodeId id) const {
    const Node& node = graph_.node(id);
    return is_view(node) && std::ranges::all_of(node.outputs, [&](ValueId v) {
             return uses_.of(v).empty() && !uses_.is_output(v);
           });
  }
  void missed(NodeId head, Reason reason) {
    context_.missed(kPass, graph_.node(head).name,
                    Reason(why::kNotKeptTogether, std::move(reason)));
  }

  void find_gather(NodeId gather) {
    ValueId part = graph_.node(gather).inputs[0];
    while (producer(part) >= 0 && is_view(graph_.node(producer(part)))) {
      part = graph_.node(producer(part)).inputs[0];
    }
    const NodeId head = producer(part);
    if (head < 0 || graph_.node(head).op_name() != kCopyIn) return;
    Block block{.head = head, .is_gather = true};
    Reason outsider;
    block.launch = copy_in_nodes(gather, outsider);
    if (std::ranges::find(block.launch, head) == block.launch.end()) return missed(head, outsider);
    block.finish = wait_nodes(gather);
    if (block.finish.empty()) return missed(head, Reason(why::kGatherUnwaited));
    blocks_.push_back(std::move(block));
  }

  /// The gather and the nodes that serve only it; `outsider` names another reader of the copy_in.
  std::vector<NodeId> copy_in_nodes(NodeId gather, Reason& outsider) const {
    std::set<NodeId> nodes{gather};
    std::set<NodeId, std::greater<>> next;  // latest first: a node comes after all of its readers
    const auto add_operands = [&](NodeId id) {
      for (ValueId operand : graph_.node(id).inputs) {
        if (producer(operand) >= 0) next.insert(producer(operand));
      }
    };
    add_operands(gather);
    while (!next.empty()) {
      const NodeId id = *next.begin();
      next.erase(next.begin());
      const Node& node = graph_.node(id);
      const bool copy_in = node.op_name() == kCopyIn;
      const bool prepares = is_view(node) || node.op_name() == "to" || node.op_name() == "full";
      if (!copy_in && !prepares) continue;
      const Reason reason = read_elsewhere(node, nodes);
      if (copy_in) outsider = reason;
      if (reason) continue;
      nodes.insert(id);
      add_operands(id);
    }
    return {nodes.begin(), nodes.end()};
  }

  Reason read_elsewhere(const Node& node, const std::set<NodeId>& nodes) const {
    for (ValueId value : node.outputs) {
      const std::string& name = graph_.value(value).name;
      if (uses_.is_output(value)) return Reason(why::kGraphOutput, name);
      for (NodeId user : uses_.of(value)) {
        if (nodes.contains(user) || is_dead(user)) continue;
        return Reason(why::kOtherReader, graph_.node(user).name, name);
      }
    }
    return {};
  }

  /// The collective's wait, and the nodes from there to the first copy out.
  std::vector<NodeId> wait_nodes(NodeId collective) const {
    const std::vector<NodeId>& waits = uses_.of(graph_.node(collective).outputs[0]);
    if (waits.empty()) return {};
    std::map<NodeId, NodeId> found{{waits[0], -1}};  // node, and the one whose result it reads
    std::set<NodeId> next{waits[0]};
    while (!next.empty()) {
      const NodeId id = *next.begin();
      next.erase(next.begin());
      if (graph_.node(id).op_name() == kSplit) {
        std::vector<NodeId> path;
        for (NodeId step = id; step >= 0; step = found.at(step)) path.push_back(step);
        std::ranges::reverse(path);
        return path;
      }
      for (ValueId value : graph_.node(id).outputs) {
        for (NodeId user : uses_.of(value)) {
          const Node& node = graph_.node(user);
          if (!is_view(node) && node.op_name() != kSplit) continue;
          if (found.emplace(user, id).second) next.insert(user);
        }
      }
    }
    return {waits[0]};
  }

  void find_scatter(NodeId head) {
    Block block{.head = head};
    NodeId id = head;
    while (true) {
      block.launch.push_back(id);
      if (graph_.node(id).op_name() == "reduce_scatter_tensor") break;
      const ValueId value = graph_.node(id).outputs[0];
      const std::string& name = graph_.value(value).name;
      if (graph_.node(id).outputs.size() > 1 || !uses_.is_single(value)) {
        return missed(head, Reason(why::kGoesElsewhere, name));
      }
      id = uses_.of(value)[0];
      const Node& node = graph_.node(id);
      const bool simple = is_view(node) || node.op->op_class == OpClass::kPointwise;
      if (!simple && node.op_name() != "reduce_scatter_tensor") {
        return missed(head, Reason(why::kNoScatter, node.op_name(), node.name, name));
      }
    }
    const std::vector<NodeId>& waits = uses_.of(graph_.node(id).outputs[0]);
    if (waits.empty()) return missed(head, Reason(why::kScatterUnwaited));
    block.finish = {waits[0]};
    blocks_.push_back(std::move(block));
  }

  const Graph& graph_;
  PassContext& context_;
  Uses uses_;
  std::vector<Block> blocks_;
};

/// A topological sort of units; a unit is a node or a group of nodes.
class Order {
 public:
  Order(const Graph& graph, const std::vector<Block>& blocks)
      : graph_(graph), unit_of_(graph.nodes().size(), -1) {
    for (const Block& block : blocks) {
      for (const std::vector<NodeId>* group : {&block.launch, &block.finish}) add_unit(*group);
    }
    for (std::size_t id = 0; id < unit_of_.size(); ++id) {
      if (unit_of_[id] < 0) add_unit({static_cast<NodeId>(id)});
    }
    before_.resize(units_.size());
    after_count_.resize(units_.size(), 0);
    add_collective_order();
    add_dependences();
    add_turns(blocks);
  }

  /// All nodes in their new order, or fewer when there is a cycle. Among the units that are ready
  /// it takes the one that stood first, so a valid order does not change.
  std::vector<NodeId> sorted() {
    using Entry = std::pair<NodeId, int>;  // the unit's first node
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    const auto push = [&](int unit) { ready.emplace(units_[unit].front(), unit); };
    for (std::size_t u = 0; u < units_.size(); ++u) {
      if (after_count_[u] == 0) push(u);
    }
    std::vector<NodeId> order;
    while (!ready.empty()) {
      const int unit = ready.top().second;
      ready.pop();
      order.insert(order.end(), units_[unit].begin(), units_[unit].end());
      for (int later : before_[unit]) {
        if (--after_count_[later] == 0) push(later);
      }
    }
    return order;
  }

 private:
  void add_unit(std::vector<NodeId> nodes) {
    for (NodeId id : nodes) unit_of_[id] = units_.size();
    units_.push_back(std::move(nodes));
  }

  void add_edge(NodeId first, NodeId second) {
    const int a = unit_of_[first];
    const int b = unit_of_[second];
    if (a == b) return;
    before_[a].push_back(b);
    ++after_count_[b];
  }

  void add_collective_order() {
    NodeId collective = -1;
    for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
      const NodeId id = i;
      if (graph_.node(id).op->op_class != OpClass::kCollective) continue;
      if (collective >= 0) add_edge(collective, id);
      collective = id;
    }
  }

  /// Keeps the dependences on which the other rewrites decided: a reader of an unsharded parameter
  /// also reads what was copied into it, and a gather that was not put in place also writes its
  /// output buffer.
  void add_dependences() {
    const std::vector<ValueId> storage = storages(graph_);
    std::vector<ValueId> copied(storage.size(), -1);  // for each storage: the value that an
                                                      // fsdp.copy_ filled it from
    const auto more = [&](NodeId id) {
      const Node& node = graph_.node(id);
      MoreUses uses;
      const auto read = [&](const Node& reader) {
        for (ValueId value : reader.inputs) {
          const ValueId from = copied[storage[value]];
          if (from >= 0) uses.reads.push_back(from);
        }
      };
      read(node);
      const bool waits = node.op->op_class == OpClass::kWait;
      const NodeId waited = waits ? graph_.value(node.inputs[0]).producer : -1;
      if (waited >= 0) read(graph_.node(waited));
      if (node.op_name() == kCopy) {
        copied[storage[node.inputs[0]]] = node.inputs[1];
      } else if (node.op_name() == "all_gather_into_tensor") {
        const Origin origin = origin_of(graph_, node.inputs[0]);
        if (origin.node != nullptr && origin.node->op_name() == kCopyIn) {
          uses.writes.push_back(origin.node->outputs[1]);
        }
      }
      return uses;
    };
    for (const auto& [first, second] : dependences(graph_, more)) add_edge(first, second);
  }

  void add_turns(const std::vector<Block>& blocks) {
    NodeId last[2] = {-1, -1};
    for (const Block& block : blocks) {
      NodeId& done = last[block.is_gather ? 1 : 0];
      if (done >= 0) add_edge(done, block.launch.front());
      done = block.finish.front();
    }
  }

  const Graph& graph_;
  std::vector<int> unit_of_;  ///< for each node
  std::vector<std::vector<NodeId>> units_;
  std::vector<std::vector<int>> before_;  ///< for each unit: those that must run after it
  std::vector<int> after_count_;          ///< for each unit: how many must run before it
};

/// For each block: whether other nodes stand between its nodes, or it does not wait for its turn.
std::vector<bool> displaced(const std::vector<Block>& blocks) {
  const auto scattered = [](const std::vector<NodeId>& nodes) {
    return nodes.back() - nodes.front() + 1 != static_cast<NodeId>(nodes.size());
  };
  std::vector<bool> result;
  NodeId done[2] = {-1, -1};
  for (const Block& block : blocks) {
    NodeId& before = done[block.is_gather ? 1 : 0];
    result.push_back(scattered(block.launch) || scattered(block.finish) ||
                     block.launch.front() < before);
    before = block.finish.back();
  }
  return result;
}

}  // namespace

std::optional<Graph> order_fsdp_collectives(const Graph& graph, PassContext& context) {
  const std::vector<Block> blocks = Blocks(graph, context).find();
  const std::vector<bool> moves = displaced(blocks);
  if (std::ranges::find(moves, true) == moves.end()) return std::nullopt;
  const std::vector<NodeId> order = Order(graph, blocks).sorted();
  const bool possible = order.size() == graph.nodes().size();
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (!moves[i]) continue;
    const std::string& head = graph.node(blocks[i].head).name;
    const std::string& last = graph.node(blocks[i].launch.back()).name;
    if (possible) {
      context.applied(kPass, head,
                      Reason(why::kKeptTogether, last, graph.node(blocks[i].finish.back()).name,
                             blocks[i].is_gather ? "gather" : "scatter"));
    } else {
      context.missed(kPass, head, Reason(why::kNotKeptTogether, Reason(why::kNoOrder)));
    }
  }
  if (!possible) return std::nullopt;
  return in_order(graph, order);
}

}  // namespace braid
