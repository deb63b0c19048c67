
#include <algorithm>

#include "ir/collective.h"
#include "ir/fail.h"
#include "ir/op_registry.h"
#include "ir/views.h"
#include "lowering/fuse/emit.h"
#include "lowering/fuse/legal.h"
#include "lowering/fuse/long_cats.h"
#include "lowering/fuse/profit.h"
#include "lowering/passes.h"

// fuse: clusters the compute nodes into kernel nodes.
//
// Matches, in graph order: a node joins the kernel of one of its operands (the host), preferring a
// collective's to a matmul's, a reduction's and a pointwise one, in this order; then the pointwise
// kernels of its other operands join too, and the matmul of the other operand when the two share
// their first one (gate and up). Updates at the same indices share a kernel. Views, slices, other
// movements that keep neighbouring elements adjacent, and constants are folded into the body of
// each kernel that reads them (index arithmetic, no memory traffic); so is a transpose that only
// matmuls read, and an index_select that only grouped matmuls read. A matmul takes in the casts and
// scales of its operands, and attention what computes its queries element by element
// (rotary_embedding). A rotary_embedding joins the norm in front of it, of which it reads each
// element twice, and an update joins both: q/k norm, rotation and append are one kernel. Values
// that others still read become further outputs, so nothing is computed twice. A cat of more
// tensors than a kernel takes becomes a tree of cats first. Refuses a merge
//   - that the template cannot express (codegen answers that);
//   - that could close a cycle through a node outside (see `level`);
//   - that would repeat work: an operand computed inside a matmul, or a small value computed once
//     per element of a larger one;
//   - around an all_reduce's operand, unless it is pointwise and so small that the collective's own
//     blocks compute it into the arena before they signal.
// A view that something other than a kernel reads also stays as a node, which names memory and does
// no work. So does each view_dtype: bytes have another dtype only in memory. Chunks, and what runs
// in the background with its wait (copies from peers, collectives of a communicator), stay where
// they are. legal.cpp says what is possible, profit.cpp what pays, emit.cpp makes the new graph.
namespace braid {
namespace {

/// Assigns the nodes to items, one after the other.
class Fuser {
 public:
  Fuser(const Graph& graph, PassContext& context)
      : clusters_(graph, context),
        folds_(graph.nodes().size(), false),
        only_matmuls_read_(graph.nodes().size(), false) {}

  Graph run() {
    find_folding();
    for (std::size_t id = 0; id < clusters_.live.size(); ++id) {
      if (clusters_.live[id]) place(id);
    }
    return emit_clusters(clusters_);
  }

 private:
  const Node& node(NodeId id) const { return clusters_.node(id); }
  bool folded(NodeId id) const { return clusters_.folded(id); }

  void place(NodeId id) {
    const Node& n = node(id);
    switch (n.op->op_class) {
      case OpClass::kWait:
        if (!waits_for_background(n)) {
          throw_invalid(n.name, "wait_tensor cannot be fused; run lower_collectives first");
        }
        [[fallthrough]];
      case OpClass::kChunk:
      case OpClass::kPeerCopy:
      case OpClass::kKernel:
      case OpClass::kMutation:
        return keep(id);
      case OpClass::kView:
        if (n.op->view == View::kBytes) return keep(id);
        [[fallthrough]];
      case OpClass::kPointwise:
      case OpClass::kGather:
        clusters_.folded_nodes[id] = folds_[id];
        if (folded(id) && !needs_a_name(id)) return;
        if (n.op_name() == "view" && names_what_is_there(id)) return keep(id);
        break;
      case OpClass::kCollective:
        if (algorithm_of(n) == Algorithm::kNone) {
          throw_invalid(n.name, "{} has no algorithm; run lower_collectives first", n.op_name());
        }
        if (is_asynchronous(n)) return keep(id);
        break;
      default:
        break;
    }
    join_operands(id);
  }

  bool waits_for_background(const Node& wait) const {
    const NodeId waited = clusters_.producer(wait.inputs[0]);
    return waited >= 0 && is_asynchronous(node(waited));
  }

  void keep(NodeId id) {
    Item kept;
    kept.nodes = {id};
    kept.level = clusters_.level_above(kept.nodes);
    clusters_.add_item(std::move(kept));
  }

  /// Decides which nodes are folded. Backwards, since the readers of a transpose decide.
  void find_folding() {
    for (std::size_t id = folds_.size(); id-- > 0;) {
      const Node& n = clusters_.graph.nodes()[id];
      if (n.op->op_class == OpClass::kView) only_matmuls_read_[id] = only_matmuls_read(n);
      folds_[id] = folds(n, only_matmuls_read_[id]);
    }
  }

  /// Whether the kernels that read the node fold it in.
  bool folds(const Node& n, bool only_matmuls_read) const {
    if (an_update_needs_it(n)) return false;
    if (n.op_name() == "index_select") return selects_rows_of_groups(n);
    if (n.inputs.empty() && n.op->op_class == OpClass::kPointwise) return true;  // a constant
    const View view = n.op->view;
    if (n.op->op_class != OpClass::kView || view == View::kCat || view == View::kBytes) {
      return false;
    }
    if (view != View::kPermute) return true;
    const std::size_t rank = clusters_.graph.type(n.inputs[0]).shape.size();
    return only_matmuls_read || rank == 0 ||
           permutation(n.op_name(), n.attrs, rank).back() == rank - 1;
  }

  /// Whether the node selects the rows of grouped matmuls alone, which read them where they lie.
  bool selects_rows_of_groups(const Node& n) const {
    const ValueId result = n.outputs[0];
    const Shape& table = clusters_.graph.type(n.inputs[0]).shape;
    return axis_of(n.attrs, "dim", table.size()) == 0 && !clusters_.is_output[result] &&
           std::ranges::all_of(clusters_.users_of(result), [&](NodeId user) {
             return !clusters_.live[user] ||
                    (node(user).op->matmul == Matmul::kGrouped && node(user).inputs[0] == result);
           });
  }

  /// The value that is in memory where this one is seen through views; whether they keep its
  /// elements' order.
  std::pair<ValueId, bool> seen(ValueId value) const {
    bool in_order = true;
    for (NodeId id; (id = clusters_.producer(value)) >= 0; value = node(id).inputs[0]) {
      const View view = node(id).op->view;
      if (view == View::kNone || view == View::kBytes || view == View::kCat) break;
      in_order = in_order && view == View::kFlat;
    }
    return {value, in_order};
  }

  /// Whether an update needs a result in memory: the tensor whose elements it replaces, and what
  /// replaces them where that is seen in the same tensor.
  bool an_update_needs_it(const Node& n) const {
    return std::ranges::any_of(n.outputs, [&](ValueId result) {
      return std::ranges::any_of(clusters_.users_of(result), [&](NodeId user) {
        return node(user).op->op_class == OpClass::kUpdate && needs(node(user), n, result);
      });
    });
  }

  /// The same of one update and one result of the node.
  bool needs(const Node& update, const Node& n, ValueId result) const {
    if (update.inputs[0] == result) return n.inputs.empty() || !seen(result).second;
    return std::ranges::find(update.inputs, result) != update.inputs.end() &&
           seen(result).first == seen(update.inputs[0]).first;
  }

  bool only_matmuls_read(const Node& n) const {
    const ValueId result = n.outputs[0];
    if (clusters_.is_output[result]) return false;
    const auto& users = clusters_.users_of(result);
    return std::ranges::all_of(users, [&](NodeId user) {
      const OpClass c = node(user).op->op_class;
      return !clusters_.live[user] || c == OpClass::kMatmul || c == OpClass::kAttention ||
             (folds_[user] && only_matmuls_read_[user]);
    });
  }

  /// Whether the node is a view of a value that is in memory.
  bool names_what_is_there(NodeId id) const {
    const NodeId base = clusters_.producer(node(id).inputs[0]);
    return !folded(base) || clusters_.item_of_node[base] >= 0;
  }

  /// Whether a reader that folds nothing in reads the folded node.
  bool needs_a_name(NodeId id) const {
    for (ValueId value : node(id).outputs) {
      if (clusters_.is_output[value]) return true;
      for (NodeId user : clusters_.users_of(value)) {
        if (!clusters_.live[user]) continue;
        const OpClass c = node(user).op->op_class;
        if (c == OpClass::kCollective || c == OpClass::kKernel || c == OpClass::kMutation ||
            c == OpClass::kChunk || c == OpClass::kPeerCopy ||
            node(user).op->view == View::kBytes) {
          return true;
        }
      }
    }
    return false;
  }

  void join_operands(NodeId id) {
    const std::vector<NodeId> own = own_nodes(clusters_, id);
    int joined = -1;
    for (int host : hosts(own)) {
      Item merged;
      Reason reason = joined < 0 ? cannot_join(clusters_, host, id, own)
                                 : cannot_absorb(clusters_, joined, host, id, own);
      if (!reason) {
        reason = joined < 0 ? merge(clusters_, {host}, own, merged)
                            : merge(clusters_, {joined, host}, {}, merged);
      }
      if (reason) {
        note(id, own, host, reason);
        continue;
      }
      if (joined >= 0) clusters_.item(joined).gone = true;
      joined = host;
      clusters_.item(host) = std::move(merged);
      clusters_.claim(host);
    }
    if (joined < 0) return open_kernel(id, own);
    // Only after the other operands were tried: until then nothing outside reads the results.
    clusters_.consume_operands(joined);
  }

  /// The kernels that the nodes read, best first. An update also asks those of others at the same
  /// indices: keys and values are appended by one kernel.
  std::vector<int> hosts(const std::vector<NodeId>& own) {
    std::vector<int> hosts;
    clusters_.mark(own);
    for (NodeId n : own) {
      for (ValueId input : node(n).inputs) {
        if (clusters_.marked(clusters_.producer(input))) continue;
        const int host = clusters_.item_of(input);
        if (host >= 0 && clusters_.item(host).is_kernel()) hosts.push_back(host);
      }
      if (node(n).op->op_class != OpClass::kUpdate || !takes_indices(node(n))) continue;
      for (NodeId other : clusters_.users_of(node(n).inputs[1])) {
        const int host = clusters_.item_of_node[other];
        if (node(other).op->op_class == OpClass::kUpdate && host >= 0) hosts.push_back(host);
      }
    }
    const auto before = [&](int a, int b) {
      const Anchor of_a = clusters_.item(a).anchor;
      const Anchor of_b = clusters_.item(b).anchor;
      return of_a != of_b ? of_a > of_b : a > b;
    };
    std::ranges::sort(hosts, before);
    hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
    return hosts;
  }

  /// Opens a kernel for a node that joins none. Its pointwise operands were tried as hosts already.
  void open_kernel(NodeId id, const std::vector<NodeId>& own) {
    Item opened;
    if (const Reason reason = merge(clusters_, {}, own, opened)) {
      throw_invalid(node(id).name, "no kernel computes this {}: {}", node(id).op_name(),
                    reason.text());
    }
    clusters_.add_item(std::move(opened));
  }

  /// Records why `id` (with its folded transposes) and an item were not merged.
  void note(NodeId id, const std::vector<NodeId>& own, int other, const Reason& reason) {
    for (NodeId n : own) {
      for (ValueId input : node(n).inputs) {
        if (clusters_.item_of(input) != other) continue;
        clusters_.reasons[id].emplace_back(input, reason);
      }
    }
  }

  Clusters clusters_;
  std::vector<bool> folds_;              ///< for each node
  std::vector<bool> only_matmuls_read_;  ///< for each view
};

}  // namespace

constinit const Pass fuse{
    .name = "fuse",
    .summary = "clusters the compute nodes into kernels",
    .run = [](const Graph& graph, PassContext& context) -> std::optional<Graph> {
      const std::optional<Graph> split = split_long_cats(graph, context);
      return Fuser(split ? *split : graph, context).run();
    }};

}  // namespace braid
