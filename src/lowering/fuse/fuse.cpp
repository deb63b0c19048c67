#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <queue>
#include <unordered_map>

#include "braid/error.h"
#include "codegen/kernel_spec.h"
#include "ir/numel.h"
#include "ir/op_registry.h"
#include "ir/views.h"
#include "lowering/fuse/kernel_body.h"
#include "lowering/passes.h"
#include "lowering/plan/cost.h"
#include "lowering/rewrite.h"

// fuse: clusters the compute nodes into kernel nodes.
//
// Matches, in graph order: a node joins the kernel of one of its operands (the host), preferring
// that of a collective to that of a matmul, of a reduction, of none of these (pointwise); then the
// pointwise kernels of its other operands join too, and the matmul of the other operand when the
// two share their first one (gate and up). Views, slices and other movements that leave neighbours
// neighbours, and constants, stand in the body of each kernel that reads them (index arithmetic
// there, no traffic); so does a transpose that only matmuls read. A matmul takes in the casts and
// scales of its operands. Values that others still read become further outputs, so nothing is
// computed twice. Refuses a merge
//   - that the template cannot express (codegen answers that);
//   - that could close a cycle through a node outside (see `level`);
//   - that would repeat work: an operand computed inside a matmul, or a small value computed once
//     per element of a larger one;
//   - around an all_reduce's operand, unless it is pointwise and so small that the collective's own
//     blocks compute it into the arena before they signal.
// A view that something else than a kernel reads stays outside as well: a name, not work. So does
// each view_dtype: bytes have another dtype only in memory.
//
// Cycles: every item (a kernel, or a node that stays) has a level above those of the items it
// reads. Nothing that an item reads can depend on an item of the same or a higher level, so a merge
// is safe when all that the union reads lies below the level at which others already read it. The
// check is conservative and takes constant time per operand.
namespace braid {
namespace {

constexpr std::string_view kPass = "fuse";

/// What a kernel is built around; a node rather joins a later kind than an earlier one.
enum class Anchor : std::uint8_t { kNone, kReduction, kMatmul, kCollective };

/// A kernel in the making, or one node that stays as it is (`body.graph` is null then).
struct Item {
  std::vector<NodeId> nodes;  ///< in graph order, but a collective right after its operand
  KernelBody body;
  Anchor anchor = Anchor::kNone;
  int level = 0;
  bool consumed = false;  ///< an item outside reads it
  bool gone = false;      ///< became part of another one
};

Anchor anchor_of(const Node& node) {
  switch (node.op->op_class) {
    case OpClass::kCollective:
      return Anchor::kCollective;
    case OpClass::kMatmul:
      return Anchor::kMatmul;
    case OpClass::kReduction:
    case OpClass::kNorm:
      return Anchor::kReduction;
    default:
      return Anchor::kNone;
  }
}

bool is_collective(const Node& node) { return node.op->op_class == OpClass::kCollective; }

/// The elements that computing the node visits.
const Shape& domain(const Graph& graph, const Node& node) {
  const OpClass c = node.op->op_class;
  const bool rows = c == OpClass::kNorm || c == OpClass::kReduction;
  return graph.type(rows ? node.inputs[0] : node.outputs[0]).shape;
}

class Fuser {
 public:
  Fuser(const Graph& graph, PassContext& context)
      : graph_(graph),
        context_(context),
        live_(live_nodes(graph)),
        is_output_(graph.output_flags()),
        users_(graph.users()),
        item_of_(graph.nodes().size(), -1),
        folded_(graph.nodes().size(), false),
        stamp_(graph.nodes().size(), 0),
        reasons_(graph.nodes().size()),
        rewrite_(graph) {}

  Graph run() {
    for (std::size_t id = 0; id < graph_.nodes().size(); ++id) {
      if (live_[id]) place(static_cast<NodeId>(id));
    }
    report_missed();
    for (int item : emission_order()) emit(items_[static_cast<std::size_t>(item)]);
    return rewrite_.finish();
  }

 private:
  const Node& node(NodeId id) const { return graph_.node(id); }
  Item& item(int id) { return items_[static_cast<std::size_t>(id)]; }
  NodeId producer(ValueId value) const { return graph_.value(value).producer; }
  /// -1 for a graph input, and for what stands only inside the kernels that read it.
  int item_of(ValueId value) const {
    const NodeId id = producer(value);
    return id < 0 ? -1 : item_of_[static_cast<std::size_t>(id)];
  }
  bool folded(NodeId id) const { return id >= 0 && folded_[static_cast<std::size_t>(id)]; }

  // --- placing nodes -----------------------------------------------------------------------------

  void place(NodeId id) {
    const Node& n = node(id);
    switch (n.op->op_class) {
      case OpClass::kWait:
        throw_invalid(n.name, "wait_tensor cannot be fused; run lower_collectives first");
      case OpClass::kKernel:
      case OpClass::kMutation:
        return keep(id);
      case OpClass::kView:
        if (n.op_name() == "view_dtype") return keep(id);
        [[fallthrough]];
      case OpClass::kPointwise:
        folded_[static_cast<std::size_t>(id)] = folds(id);
        if (folded(id) && !needs_a_name(id)) return;
        if (n.op_name() == "view" && names_what_is_there(id)) return keep(id);
        break;
      case OpClass::kCollective:
        if (n.attr<std::string>("algorithm")->empty()) {
          throw_invalid(
              n.name, fmt::format("{} has no algorithm; run lower_collectives first", n.op_name()));
        }
        break;
      default:
        break;
    }
    join_operands(id);
  }

  void keep(NodeId id) {
    Item kept;
    kept.nodes = {id};
    kept.level = level_above(kept.nodes);
    add_item(std::move(kept));
  }

  /// Whether the kernels that read the node take it in.
  bool folds(NodeId id) const {
    const Node& n = node(id);
    const std::string_view op = n.op_name();
    if (op == "full") return true;
    if (n.op->op_class != OpClass::kView || op == "cat" || op == "view_dtype") return false;
    if (op != "transpose" && op != "permute") return true;
    const std::size_t rank = graph_.type(n.inputs[0]).shape.size();
    return rank == 0 || permutation(op, n.attrs, rank).back() == rank - 1 || only_matmuls_read(id);
  }

  bool only_matmuls_read(NodeId id) const {
    const ValueId result = node(id).outputs[0];
    if (is_output_[static_cast<std::size_t>(result)]) return false;
    const auto& users = users_[static_cast<std::size_t>(result)];
    return std::all_of(users.begin(), users.end(), [&](NodeId user) {
      return !live_[static_cast<std::size_t>(user)] ||
             node(user).op->op_class == OpClass::kMatmul ||
             (folds(user) && only_matmuls_read(user));
    });
  }

  /// Whether a view is a name for a value that is in memory.
  bool names_what_is_there(NodeId id) const {
    const NodeId base = producer(node(id).inputs[0]);
    return !folded(base) || item_of_[static_cast<std::size_t>(base)] >= 0;
  }

  /// Whether something that takes nothing in reads the folded node.
  bool needs_a_name(NodeId id) const {
    for (ValueId value : node(id).outputs) {
      if (is_output_[static_cast<std::size_t>(value)]) return true;
      for (NodeId user : users_[static_cast<std::size_t>(value)]) {
        if (!live_[static_cast<std::size_t>(user)]) continue;
        const OpClass c = node(user).op->op_class;
        if (c == OpClass::kCollective || c == OpClass::kKernel || c == OpClass::kMutation ||
            node(user).op_name() == "view_dtype") {
          return true;
        }
      }
    }
    return false;
  }

  /// The node, and in front of it what it takes in.
  std::vector<NodeId> own_nodes(NodeId id) const {
    std::vector<NodeId> nodes{id};
    if (is_collective(node(id))) return nodes;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      for (ValueId input : node(nodes[i]).inputs) {
        const NodeId front = producer(input);
        if (folded(front) && std::find(nodes.begin(), nodes.end(), front) == nodes.end()) {
          nodes.push_back(front);
        }
      }
    }
    std::sort(nodes.begin(), nodes.end());
    return nodes;
  }

  void join_operands(NodeId id) {
    const std::vector<NodeId> own = own_nodes(id);
    std::vector<int> hosts;
    mark(own);
    for (NodeId n : own) {
      for (ValueId input : node(n).inputs) {
        const int host = marked(producer(input)) ? -1 : item_of(input);
        if (host >= 0 && item(host).body.graph != nullptr &&
            std::find(hosts.begin(), hosts.end(), host) == hosts.end()) {
          hosts.push_back(host);
        }
      }
    }
    std::sort(hosts.begin(), hosts.end(), [&](int a, int b) {
      const Anchor of_a = item(a).anchor;
      const Anchor of_b = item(b).anchor;
      return of_a != of_b ? of_a > of_b : a > b;
    });

    int joined = -1;
    for (int& host : hosts) {
      Item merged;
      std::string reason =
          joined < 0 ? cannot_join(host, id, own) : cannot_absorb(joined, host, id, own);
      if (reason.empty()) {
        reason = joined < 0 ? merge({host}, own, merged) : merge({joined, host}, {}, merged);
      }
      if (reason.empty()) {
        if (joined >= 0) item(joined).gone = true;
        joined = host;
        item(host) = std::move(merged);
        claim(host);
      } else {
        note(id, own, host, reason);
      }
    }
    if (joined < 0) return open_kernel(id, own);
    // Not before the other operands had their chance: until then nothing outside reads them.
    consume_operands(joined);
  }

  /// A kernel for a node that joins none; pointwise operands were asked already as hosts.
  void open_kernel(NodeId id, const std::vector<NodeId>& own) {
    Item opened;
    const std::string reason = merge({}, own, opened);
    if (!reason.empty()) {
      throw_invalid(node(id).name,
                    fmt::format("no kernel computes this {}: {}", node(id).op_name(), reason));
    }
    add_item(std::move(opened));
  }

  void add_item(Item added) {
    items_.push_back(std::move(added));
    const int id = static_cast<int>(items_.size()) - 1;
    claim(id);
    consume_operands(id);
  }

  /// The item owns its nodes now; of folded ones only what it computes for others.
  void claim(int id) {
    for (NodeId n : item(id).nodes) {
      if (!folded(n) || n == item(id).nodes.back()) item_of_[static_cast<std::size_t>(n)] = id;
    }
  }

  void consume_operands(int id) {
    mark(item(id).nodes);
    for (NodeId n : item(id).nodes) {
      for (ValueId input : node(n).inputs) {
        const int from = item_of(input);
        if (from >= 0 && !marked(producer(input))) item(from).consumed = true;
      }
    }
  }

  // --- what is refused ---------------------------------------------------------------------------

  std::string cannot_join(int host, NodeId id, const std::vector<NodeId>& own) {
    const Node& n = node(id);
    if (is_collective(n)) {
      if (is_cheap_prologue(host, id)) return "";
      return fmt::format(
          "{} opens its kernel: its operand must lie complete in the arena of every "
          "rank first",
          n.op_name());
    }
    if (n.op->op_class == OpClass::kMatmul) {
      if (is_prologue(host, id)) return "";
      return "a matmul opens its kernel: inside, its operand would be computed once per tile";
    }
    if (n.op->op_class == OpClass::kView) {
      return fmt::format("a {} that is written to memory opens its kernel", n.op_name());
    }
    return would_repeat(host, id, own);
  }

  /// What a collective's own blocks may compute into the arena before they signal: the operand and
  /// nothing else, and so little that those few blocks take no longer than another launch.
  bool is_cheap_prologue(int host, NodeId id) {
    const Item& it = item(host);
    const ValueId operand = node(id).inputs[0];
    if (it.anchor != Anchor::kNone || it.consumed || it.body.outputs != std::vector{operand} ||
        users_[static_cast<std::size_t>(operand)] != std::vector{id} ||
        is_output_[static_cast<std::size_t>(operand)]) {
      return false;
    }
    double bytes = most_bytes(operand);
    for (ValueId input : it.body.inputs) bytes += most_bytes(input);
    const DeviceModel& device = device_model(context_.target);
    const std::int64_t blocks = kMaxCollectiveBlocks / context_.ranks_per_device;
    return memory_ns(bytes, std::max<std::int64_t>(1, blocks), device) <
           memory_ns(bytes, device.sms, device) + device.launch_ns;
  }

  /// A cast or scale that costs a matmul no more than reading its result: nothing else reads that,
  /// and its operands are no larger.
  bool is_prologue(int host, NodeId id) {
    const Item& it = item(host);
    if (it.anchor != Anchor::kNone || it.consumed) return false;
    double bytes = 0;
    for (ValueId input : it.body.inputs) bytes += most_bytes(input);
    double results = 0;
    for (ValueId output : it.body.outputs) {
      const auto& users = users_[static_cast<std::size_t>(output)];
      results += most_bytes(output);
      if (is_output_[static_cast<std::size_t>(output)] || users != std::vector{id}) return false;
    }
    const bool cheap = std::all_of(it.nodes.begin(), it.nodes.end(), [&](NodeId n) {
      const std::string_view op = node(n).op_name();
      return op == "to" || op == "mul" || folded(n);
    });
    // A row's scale is little beside the row.
    return cheap && bytes <= results * 1.05;
  }
  double most_bytes(ValueId value) const {
    const TensorType& type = graph_.type(value);
    return static_cast<double>(max_bytes(type, graph_.symbols()));
  }

  std::string cannot_absorb(int joined, int other, NodeId id, const std::vector<NodeId>& own) {
    const bool is_matmul = node(id).op->op_class == OpClass::kMatmul;
    if (is_matmul) return is_prologue(other, id) ? "" : cannot_join(other, id, own);
    const bool pair =
        item(joined).anchor == Anchor::kMatmul && item(other).anchor == Anchor::kMatmul;
    if (item(other).anchor != Anchor::kNone && !pair) {
      return fmt::format("'{}' went into the {} kernel of '{}', and a {} kernel cannot join that",
                         node(id).name, template_name(*item(joined).body.graph),
                         head(item(joined)).name, template_name(*item(other).body.graph));
    }
    return would_repeat(other, id, own);
  }

  /// The node that the item is named after in remarks.
  const Node& head(const Item& it) const {
    for (NodeId n : it.nodes) {
      const OpClass c = node(n).op->op_class;
      if (c != OpClass::kPointwise && c != OpClass::kCopy && c != OpClass::kView) return node(n);
    }
    return node(it.nodes.front());
  }

  /// Visiting the node's elements must not visit those of the item more often than before.
  std::string would_repeat(int other, NodeId id, const std::vector<NodeId>& own) {
    const Shape& visited = domain(graph_, node(id));
    const Shape& computed = domain(graph_, head(item(other)));
    const auto equal = [&](const Shape& shape) {
      return shape == visited || same_numel(shape, visited);
    };
    if (equal(computed)) return "";
    for (NodeId n : own) {
      for (ValueId input : node(n).inputs) {
        if (item_of(input) == other && equal(graph_.type(input).shape)) return "";
      }
    }
    return fmt::format("{} would be computed again for each element of {}",
                       TensorType{graph_.type(node(id).inputs[0]).dtype, computed}.str(),
                       TensorType{graph_.type(node(id).outputs[0]).dtype, visited}.str());
  }

  /// Makes one kernel of the items and the nodes; else says why not.
  std::string merge(const std::vector<int>& members, const std::vector<NodeId>& own, Item& merged) {
    merged.nodes = own;
    int cap = INT_MAX;
    for (int member : members) {
      const Item& it = item(member);
      merged.nodes.insert(merged.nodes.end(), it.nodes.begin(), it.nodes.end());
      merged.consumed = merged.consumed || it.consumed;
      if (it.consumed) cap = std::min(cap, it.level);
    }
    const auto computed = std::count_if(merged.nodes.begin(), merged.nodes.end(),
                                        [&](NodeId n) { return !folded(n); });
    if (!members.empty() && computed > context_.max_kernel_nodes) {
      return fmt::format("the kernel would compute more than {} nodes", context_.max_kernel_nodes);
    }
    std::sort(merged.nodes.begin(), merged.nodes.end());
    // Two matmuls may share a transpose.
    merged.nodes.erase(std::unique(merged.nodes.begin(), merged.nodes.end()), merged.nodes.end());
    collective_first(merged.nodes);
    mark(merged.nodes);

    const int level = level_above(merged.nodes);
    if (level > cap)
      return "another operand may depend on that kernel: merging could close a cycle";
    merged.level = cap == INT_MAX ? level : cap;

    for (NodeId n : merged.nodes) merged.anchor = std::max(merged.anchor, anchor_of(node(n)));
    merged.body = make_body(graph_, merged.nodes, escaping(merged.nodes));
    return cannot_fuse(*merged.body.graph);
  }

  /// Orders sorted nodes: what a collective's operand is computed from, the collective, the rest.
  void collective_first(std::vector<NodeId>& nodes) {
    const auto found =
        std::find_if(nodes.begin(), nodes.end(), [&](NodeId n) { return is_collective(node(n)); });
    if (found == nodes.end()) return;
    const NodeId collective = *found;
    mark(nodes);
    std::vector<NodeId> front{collective};
    for (std::size_t i = 0; i < front.size(); ++i) {
      for (ValueId input : node(front[i]).inputs) {
        const NodeId from = producer(input);
        if (marked(from) && std::find(front.begin(), front.end(), from) == front.end()) {
          front.push_back(from);
        }
      }
    }
    std::sort(front.begin(), front.end());
    mark(front);
    std::stable_partition(nodes.begin(), nodes.end(), [&](NodeId n) { return marked(n); });
  }

  void mark(const std::vector<NodeId>& nodes) {
    ++now_;
    for (NodeId n : nodes) stamp_[static_cast<std::size_t>(n)] = now_;
  }
  bool marked(NodeId id) const { return id >= 0 && stamp_[static_cast<std::size_t>(id)] == now_; }

  /// One above all items that the nodes read outside themselves.
  int level_above(const std::vector<NodeId>& nodes) {
    mark(nodes);
    int level = 1;
    for (NodeId n : nodes) {
      for (ValueId input : node(n).inputs) {
        const int from = item_of(input);
        if (from >= 0 && !marked(producer(input))) level = std::max(level, item(from).level + 1);
      }
    }
    return level;
  }

  /// The marked nodes' values that are needed outside them.
  std::vector<ValueId> escaping(const std::vector<NodeId>& nodes) const {
    std::vector<ValueId> values;
    for (NodeId n : nodes) {
      // The other kernels that read a folded node have their own.
      if (folded(n) && n != nodes.back()) continue;
      for (ValueId value : node(n).outputs) {
        // A communication buffer lies in the arena even where only its own kernel reads it.
        if (needed_outside(value) || !graph_.value(value).comm_group.empty()) {
          values.push_back(value);
        }
      }
    }
    return values;
  }
  bool needed_outside(ValueId value) const {
    if (is_output_[static_cast<std::size_t>(value)]) return true;
    const auto& users = users_[static_cast<std::size_t>(value)];
    return std::any_of(users.begin(), users.end(), [&](NodeId user) {
      if (!live_[static_cast<std::size_t>(user)]) return false;
      if (!marked(user)) return true;
      if (!folded(user)) return false;
      // Others may take in the same node, or it has a name of its own.
      const auto& results = node(user).outputs;
      return std::any_of(results.begin(), results.end(),
                         [&](ValueId result) { return needed_outside(result); });
    });
  }

  // --- remarks -----------------------------------------------------------------------------------

  /// Keeps the reason why `id` (with its folded transposes) and an item were not merged.
  void note(NodeId id, const std::vector<NodeId>& own, int other, const std::string& reason) {
    for (NodeId n : own) {
      for (ValueId input : node(n).inputs) {
        if (item_of(input) == other) {
          reasons_[static_cast<std::size_t>(id)].emplace_back(input, reason);
        }
      }
    }
  }

  void report_missed() {
    for (const Item& it : items_) {
      if (it.gone || it.body.graph == nullptr) continue;
      mark(it.nodes);
      for (ValueId input : it.body.inputs) {
        const NodeId from = producer(input);
        if (from >= 0 && node(from).op->op_class != OpClass::kKernel) report_edge(it, input);
      }
    }
  }

  void report_edge(const Item& it, ValueId input) {
    for (NodeId n : it.nodes) {
      const auto& reasons = reasons_[static_cast<std::size_t>(n)];
      const auto noted = std::find_if(reasons.begin(), reasons.end(),
                                      [&](const auto& reason) { return reason.first == input; });
      const std::string& name = graph_.value(input).name;
      if (noted != reasons.end()) {
        context_.missed(kPass, node(n).name,
                        fmt::format("not fused with '{}': {}", name, noted->second));
      }
    }
  }

  // --- the new graph -----------------------------------------------------------------------------

  /// Items in an order of their dependences that stays near the order of the graph.
  std::vector<int> emission_order() {
    std::vector<std::vector<int>> readers(items_.size());
    std::vector<int> missing(items_.size(), 0);
    std::size_t left = 0;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (items_[i].gone) continue;
      ++left;
      mark(items_[i].nodes);
      for (NodeId n : items_[i].nodes) {
        for (ValueId input : node(n).inputs) {
          const int from = item_of(input);
          if (from < 0 || marked(producer(input))) continue;
          readers[static_cast<std::size_t>(from)].push_back(static_cast<int>(i));
          ++missing[i];
        }
      }
    }
    using Entry = std::pair<NodeId, int>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    auto push = [&](int id) {
      const auto& nodes = item(id).nodes;
      NodeId place = *std::max_element(nodes.begin(), nodes.end());
      // What overwrites graph inputs comes when everybody has read them.
      const bool last = node(nodes[0]).op->op_class == OpClass::kMutation;
      if (last) place += static_cast<NodeId>(graph_.nodes().size());
      ready.emplace(place, id);
    };
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (!items_[i].gone && missing[i] == 0) push(static_cast<int>(i));
    }
    std::vector<int> order;
    while (!ready.empty()) {
      const int id = ready.top().second;
      ready.pop();
      order.push_back(id);
      for (int reader : readers[static_cast<std::size_t>(id)]) {
        if (--missing[static_cast<std::size_t>(reader)] == 0) push(reader);
      }
    }
    if (order.size() != left) throw_internal(graph_.name(), "fuse closed a cycle between kernels");
    return order;
  }

  void emit(const Item& it) {
    if (it.body.graph == nullptr) {
      rewrite_.copy(node(it.nodes[0]));
      return;
    }
    const KernelSpec& spec = shared_spec(it);
    Attrs attrs{{"body", spec.body}, {"config", spec.config}};
    std::map<std::string, std::int64_t> indexed;
    for (std::size_t n = 0; n < it.nodes.size(); ++n) {
      if (takes_indices(node(it.nodes[n]))) indexed.emplace(node(it.nodes[n]).name, n);
    }
    if (!indexed.empty()) attrs.emplace("indexed", std::move(indexed));
    const NodeId id = rewrite_.graph().add_node(kernel_name(it), "kernel", rewrite_(it.body.inputs),
                                                std::move(attrs));
    const Node& kernel = rewrite_.graph().node(id);
    std::string ops;
    for (NodeId n : it.nodes) {
      if (!ops.empty()) ops += '+';
      ops += node(n).op_name();
    }
    context_.applied(kPass, kernel.name,
                     fmt::format("one {} kernel: {}", template_name(*spec.body), ops));
    for (std::size_t i = 0; i < kernel.outputs.size(); ++i) {
      rewrite_.map(it.body.outputs[i], kernel.outputs[i]);
      const std::string& group = graph_.value(it.body.outputs[i]).comm_group;
      if (!group.empty()) rewrite_.graph().set_comm_group(kernel.outputs[i], group);
    }
  }

  /// Equal bodies are one object, with one configuration.
  const KernelSpec& shared_spec(const Item& it) {
    auto [entry, is_new] = specs_.try_emplace(body_key(*it.body.graph));
    KernelSpec& spec = entry->second;
    if (is_new) {
      spec.body = it.body.graph;
      spec.config = default_config(*spec.body, context_.target);
    }
    return spec;
  }

  /// The only output's name, so that it survives; of several outputs, the last node's.
  std::string kernel_name(const Item& it) const {
    const auto& outputs = it.body.outputs;
    if (outputs.size() == 1) return node(producer(outputs[0])).name;
    const std::string& name = node(producer(outputs.back())).name;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      // A user's own value may be called "name:1".
      const auto taken = graph_.find(fmt::format("{}:{}", name, i));
      if (taken && graph_.value(*taken).name != name && !marked_in(it, producer(*taken))) {
        return rewrite_.fresh_name(name + "_kernel");
      }
    }
    return name;
  }
  static bool marked_in(const Item& it, NodeId id) {
    return std::find(it.nodes.begin(), it.nodes.end(), id) != it.nodes.end();
  }

  const Graph& graph_;
  PassContext& context_;
  std::vector<bool> live_;
  std::vector<bool> is_output_;
  std::vector<std::vector<NodeId>> users_;
  std::vector<Item> items_;
  std::vector<int> item_of_;
  std::vector<bool> folded_;  ///< nodes that stand inside the kernels that read them
  std::vector<int> stamp_;    ///< marks of the set of nodes in question
  int now_ = 0;
  /// Of each node: operands not fused, and why.
  std::vector<std::vector<std::pair<ValueId, std::string>>> reasons_;
  std::unordered_map<std::string, KernelSpec> specs_;
  Rewriter rewrite_;
};

}  // namespace

Graph fuse(const Graph& graph, PassContext& context) { return Fuser(graph, context).run(); }

}  // namespace braid
