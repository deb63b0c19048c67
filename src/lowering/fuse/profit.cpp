#include "lowering/fuse/profit.h"

#include <algorithm>
#include <string_view>

#include "codegen/kernel/spec.h"
#include "codegen/work/gemm_config.h"
#include "ir/collective.h"
#include "ir/numel.h"
#include "ir/op_registry.h"
#include "ir/views.h"
#include "lowering/plan/cost.h"

namespace braid {
namespace {

namespace why = fuse_reasons;

/// The iteration space of the node.
const Shape& domain(const Graph& graph, const Node& node) {
  const OpClass c = node.op->op_class;
  if (c == OpClass::kUpdate) return graph.type(node.inputs.back()).shape;
  const bool rows = c == OpClass::kNorm || c == OpClass::kReduction || c == OpClass::kScan;
  return graph.type(rows ? node.inputs[0] : node.outputs[0]).shape;
}

double most_bytes(const Graph& graph, ValueId value) {
  return static_cast<double>(max_bytes(graph.type(value), graph.symbols()));
}

/// Bytes that a block of a collective keeps in flight: a row, or eight elements per thread of the
/// largest block.
double row_in_flight(const Graph& graph, ValueId value) {
  const TensorType& type = graph.type(value);
  if (type.shape.empty()) return kStreamInFlight;
  const TensorType row{type.dtype, {type.shape.back()}};
  const double most = 8.0 * 1024 * static_cast<double>(dtype_size(type.dtype));
  return std::min(most, static_cast<double>(max_bytes(row, graph.symbols())));
}

/// Whether the item unpacks integers: a few instructions for each element, of words that several
/// elements share.
bool unpacks(const Clusters& clusters, const Item& item) {
  static constexpr std::string_view kOps[] = {"to",          "add",        "sub",
                                              "bitwise_and", "bitwise_or", "bitwise_right_shift"};
  const Graph& graph = clusters.graph;
  double bytes = 0, results = 0;
  for (const ValueId input : item.kernel.inputs) bytes += most_bytes(graph, input);
  for (const ValueId output : item.kernel.outputs) results += most_bytes(graph, output);
  return item.anchor == Anchor::kNone && bytes < results &&
         std::ranges::all_of(item.nodes, [&](NodeId n) {
           const Node& node = clusters.node(n);
           const bool is_light = node.inputs.empty() || clusters.folded(n) ||
                                 std::ranges::count(kOps, node.op_name()) > 0;
           return is_light && !is_float(graph.type(node.outputs[0]).dtype);
         });
}

/// Refuses a merge in which the item's elements would be computed more often than before, unless
/// that costs no more than to read them.
Reason would_repeat(const Clusters& clusters, int other, NodeId id,
                    const std::vector<NodeId>& own) {
  const Graph& graph = clusters.graph;
  const Shape& visited = domain(graph, clusters.node(id));
  const Shape& computed = domain(graph, clusters.head(clusters.item(other)));
  const auto equal = [&](const Shape& shape) {
    return shape == visited || same_numel(shape, visited);
  };
  if (equal(computed) || unpacks(clusters, clusters.item(other))) return {};
  for (NodeId n : own) {
    for (ValueId input : clusters.node(n).inputs) {
      if (clusters.item_of(input) == other && equal(graph.type(input).shape)) return {};
    }
  }
  const Node& node = clusters.node(id);
  return Reason(why::kRepeats, TensorType{graph.type(node.inputs[0]).dtype, computed}.str(),
                TensorType{graph.type(node.outputs[0]).dtype, visited}.str());
}

/// Refuses to move work of the item that stands between the start and the wait of a communicator's
/// collective behind that wait, where it would no longer overlap the collective. Pointwise work is
/// exempt, as fusing it saves as much.
Reason would_wait(const Clusters& clusters, int other, const std::vector<NodeId>& own) {
  const Item& item = clusters.item(other);
  if (item.anchor == Anchor::kNone) return {};
  for (NodeId n : own) {
    for (ValueId input : clusters.node(n).inputs) {
      const NodeId wait = clusters.producer(input);
      if (wait < 0 || clusters.node(wait).op->op_class != OpClass::kWait) continue;
      const NodeId start = clusters.producer(clusters.node(wait).inputs[0]);
      if (std::ranges::any_of(item.nodes,
                              [&](NodeId inside) { return start < inside && inside < wait; })) {
        return Reason(why::kWouldWait, clusters.node(start).name);
      }
    }
  }
  return {};
}

/// Whether all that is made of the value is in these nodes, which are sorted; views among them may
/// be in others' kernels.
bool stays_within(const Clusters& clusters, ValueId value, const std::vector<NodeId>& own) {
  if (clusters.is_output[value]) return false;
  return std::ranges::all_of(clusters.users_of(value), [&](NodeId user) {
    if (!clusters.live[user]) return true;
    if (!std::ranges::binary_search(own, user)) return false;
    return !clusters.folded(user) ||
           std::ranges::all_of(clusters.node(user).outputs,
                               [&](ValueId result) { return stays_within(clusters, result, own); });
  });
}

/// Whether the value is the host's, or elements of what is.
bool is_of(const Clusters& clusters, int host, ValueId value) {
  const NodeId producer = clusters.producer(value);
  if (!clusters.folded(producer)) return producer >= 0 && clusters.item_of(value) == host;
  return std::ranges::any_of(clusters.node(producer).inputs,
                             [&](ValueId input) { return is_of(clusters, host, input); });
}

/// Whether the host makes operands of a matmul, and as the prologue of that costs no more than
/// reading its results: nothing else reads them, and its own operands are no larger.
bool is_matmul_prologue(const Clusters& clusters, int host, NodeId matmul,
                        const std::vector<NodeId>& own) {
  const Item& it = clusters.item(host);
  if (it.anchor != Anchor::kNone || it.consumed) return false;
  const Graph& graph = clusters.graph;
  double bytes = 0;
  for (ValueId input : it.kernel.inputs) bytes += most_bytes(graph, input);
  double results = 0;
  for (ValueId output : it.kernel.outputs) {
    results += most_bytes(graph, output);
    if (!stays_within(clusters, output, own)) return false;
  }
  // A scale per row is small beside the row.
  if (bytes > results * 1.05) return false;
  const Node& node = clusters.node(matmul);
  const auto is_inside = [&](NodeId n) {
    return clusters.folded(n) || clusters.item_of_node[n] == host;
  };
  const std::size_t first = first_matrix(node);
  bool is_operand = false;
  for (const std::size_t input : {first, first + 1}) {
    if (!is_of(clusters, host, node.inputs[input])) continue;
    is_operand = true;
    if (!made_of(graph, node, input, clusters.context.target, is_inside)) return false;
  }
  // Else it gives what the result meets, such as a bias, for each element.
  return is_operand || std::ranges::all_of(it.nodes, [&](NodeId n) {
           const std::string_view op = clusters.node(n).op_name();
           return op == "to" || op == "mul" || clusters.folded(n);
         });
}

}  // namespace

bool is_cheap_prologue(const Clusters& clusters, int host, NodeId collective) {
  const Item& it = clusters.item(host);
  const ValueId operand = clusters.node(collective).inputs[0];
  if (it.anchor != Anchor::kNone || it.consumed || it.kernel.outputs != std::vector{operand} ||
      clusters.users_of(operand) != std::vector{collective} || clusters.is_output[operand]) {
    return false;
  }
  double bytes = most_bytes(clusters.graph, operand);
  for (ValueId input : it.kernel.inputs) bytes += most_bytes(clusters.graph, input);
  const DeviceModel& device = device_model(clusters.context.target);
  const std::int64_t blocks = kMaxCollectiveBlocks / clusters.context.ranks_per_device;
  const double in_flight = std::max(kStreamInFlight, row_in_flight(clusters.graph, operand));
  return memory_ns(bytes, std::max<std::int64_t>(1, blocks), in_flight, device) <
         traffic_ns(bytes, device) + device.launch_ns;
}

/// Whether the host computes the queries, element by element, and nothing else: a block reads its
/// own once, and those that go over other segments of keys have few.
bool is_query_prologue(const Clusters& clusters, int host, NodeId attention,
                       const std::vector<NodeId>& own) {
  const Item& it = clusters.item(host);
  if (it.anchor != Anchor::kNone || it.consumed || it.kernel.outputs.size() != 1) return false;
  ValueId queries = clusters.node(attention).inputs[0];
  while (std::ranges::binary_search(own, clusters.producer(queries))) {
    queries = clusters.node(clusters.producer(queries)).inputs[0];
  }
  return it.kernel.outputs[0] == queries && stays_within(clusters, queries, own);
}

/// Whether the host is an all-gather that lowering wants inside its matmuls' kernel.
bool gathers_within(const Clusters& clusters, int host) {
  const auto& nodes = clusters.item(host).nodes;
  return std::ranges::any_of(nodes, [&](NodeId n) { return gathers_in_kernel(clusters.node(n)); });
}

Reason cannot_join(const Clusters& clusters, int host, NodeId id, const std::vector<NodeId>& own) {
  const Node& n = clusters.node(id);
  if (Reason reason = would_wait(clusters, host, own)) return reason;
  if (is_collective(n)) {
    if (is_cheap_prologue(clusters, host, id)) return {};
    // Lowering wants it inside the kernel of its matmul.
    if (reduces_in_kernel(n) && clusters.item(host).anchor == Anchor::kMatmul) return {};
    return Reason(why::kCollectiveOpens, n.op_name());
  }
  if (n.op->op_class == OpClass::kMatmul) {
    if (is_matmul_prologue(clusters, host, id, own) || gathers_within(clusters, host)) return {};
    return Reason(why::kMatmulOpens);
  }
  if (n.op->op_class == OpClass::kAttention) {
    if (is_query_prologue(clusters, host, id, own)) return {};
    return Reason(why::kAttentionOpens);
  }
  if (n.op->op_class == OpClass::kView) return Reason(why::kViewOpens, n.op_name());
  return would_repeat(clusters, host, id, own);
}

Reason cannot_absorb(const Clusters& clusters, int joined, int other, NodeId id,
                     const std::vector<NodeId>& own) {
  const Node& n = clusters.node(id);
  if (Reason reason = would_wait(clusters, other, own)) return reason;
  if (n.op->op_class == OpClass::kMatmul || n.op->op_class == OpClass::kAttention) {
    return cannot_join(clusters, other, id, own);
  }
  const Item& mine = clusters.item(joined);
  const Item& its = clusters.item(other);
  const bool pair = mine.anchor == Anchor::kMatmul && its.anchor == Anchor::kMatmul;
  if (its.anchor != Anchor::kNone && !pair) {
    return Reason(why::kCannotJoin, n.name, mine.kernel.body->template_name,
                  clusters.head(mine).name, its.kernel.body->template_name);
  }
  return would_repeat(clusters, other, id, own);
}

}  // namespace braid
