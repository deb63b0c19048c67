#include "lowering/micro_pipeline/pipeline_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "codegen/kernel/spec.h"
#include "ir/collective.h"
#include "ir/fused.h"
#include "ir/groups.h"
#include "ir/numel.h"
#include "ir/op_registry.h"
#include "ir/ops.h"
#include "ir/views.h"
#include "lowering/collectives/chunk_fused.h"
#include "lowering/split_reductions.h"

namespace braid {

double arithmetic_intensity(double m, double n, double k) {
  const double elements = m * k + n * k + m * n;
  return elements > 0 ? m * n * k / elements : 0;
}

namespace {

/// The time of a gather: a barrier, the copies, a matmul behind each copy, and a last barrier that
/// keeps the ranks' buffers until all have read them.
double gather_ns(int steps, double chunk_ns, double meet_ns, double transfer_ns) {
  double arrived = meet_ns;
  double computed = chunk_ns;
  for (int step = 0; step < steps; ++step) {
    arrived += transfer_ns;
    computed = std::max(computed, arrived) + chunk_ns;
  }
  return std::max(computed, arrived + meet_ns);
}

/// The time of a scatter: a barrier and a copy behind each matmul but the last.
double scatter_ns(int steps, double chunk_ns, double meet_ns, double transfer_ns) {
  double arrived = 0;
  double computed = 0;
  for (int step = 0; step < steps; ++step) {
    computed += chunk_ns;
    arrived = std::max(arrived, computed) + meet_ns + transfer_ns;
  }
  return std::max(computed + chunk_ns, arrived);
}

double bytes_of(const TensorType& type, const Bindings& bindings) {
  return numel_at(type, bindings) * static_cast<double>(dtype_size(type.dtype));
}

/// The time to move the cut dim in front of others, and back in the products of a gather.
double moved_ns(const Graph& graph, const Node& collective, std::span<const NodeId> matmuls,
                const Bindings& bindings, const DeviceModel& device) {
  const TensorType& operand = graph.type(collective.inputs[0]);
  const std::size_t dim = axis_of(collective.attrs, "dim", operand.shape.size());
  if (lies_in_front(operand.shape, dim)) return 0;
  const auto copy_ns = [&](const TensorType& type) {
    return device.launch_ns + traffic_ns(2 * bytes_of(type, bindings), device);
  };
  if (collective.op->collective != CollectiveKind::kAllGather) {
    return copy_ns(graph.type(graph.node(matmuls[0]).inputs[0]));
  }
  double ns = copy_ns(operand);
  for (NodeId id : matmuls) ns += copy_ns(graph.type(graph.node(id).outputs[0]));
  return ns;
}

/// The time of the node with this algorithm.
double by_algorithm_ns(const Graph& graph, Node node, Algorithm algorithm, const Bindings& bindings,
                       const DeviceModel& device) {
  set_algorithm(node.attrs, algorithm);
  return node_ns(graph, node, bindings, device);
}

/// A collective over symmetric memory as its own kernel, with its fastest algorithm.
struct Quickest {
  Algorithm algorithm;
  double ns;
};
Quickest quickest(const Graph& graph, const Node& node, const Bindings& bindings,
                  const DeviceModel& device) {
  const auto by = [&](Algorithm algorithm) -> Quickest {
    return {algorithm, by_algorithm_ns(graph, node, algorithm, bindings, device)};
  };
  const Quickest one_shot = by(Algorithm::kOneShot);
  if (node.op->collective != CollectiveKind::kAllReduce) return one_shot;
  const Quickest best = std::ranges::min(one_shot, by(Algorithm::kTwoShot), {}, &Quickest::ns);
  if (!cannot_send_packets(graph.type(node.inputs[0]), graph.symbols()).empty()) return best;
  return std::ranges::min(best, by(Algorithm::kPackets), {}, &Quickest::ns);
}

bool is_open(const Graph& graph, const Node& node) {
  return node.op->op_class == OpClass::kCollective && algorithm_of(node) == Algorithm::kNone &&
         group_of(graph, node).symmetric;
}

/// Whether the rows of all ranks are contiguous and one kernel can hold the matmuls.
bool has_one_kernel(const Graph& graph, const Node& collective, std::span<const NodeId> matmuls) {
  if (collective.op->collective == CollectiveKind::kAllReduce) return true;
  const Shape& operand = graph.type(collective.inputs[0]).shape;
  const std::size_t dim = axis_of(collective.attrs, "dim", operand.size());
  if (collective.op->collective == CollectiveKind::kReduceScatter) {
    return lies_in_front(operand, dim);
  }
  if (dim != 0 || matmuls.size() > 2) return false;
  if (matmuls.size() == 1) return true;
  const Node& one = graph.node(matmuls[0]);
  const Node& other = graph.node(matmuls[1]);
  return one.op_name() == "mm" && other.op_name() == "mm" &&
         graph.type(one.inputs[1]) == graph.type(other.inputs[1]);
}

/// Whether a matrix is the transpose of one in memory.
bool lies_transposed(const Graph& graph, ValueId value) {
  const NodeId producer = graph.value(value).producer;
  return producer >= 0 && graph.type(value).shape.size() == 2 &&
         graph.node(producer).op->view == View::kPermute;
}

ValueId transpose_of(Graph& graph, ValueId matrix) {
  const NodeId id = graph.add_node("", "transpose", {matrix},
                                   {{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{1}}});
  return graph.node(id).outputs[0];
}

/// A matmul [m, k] x [k, n] for given symbol values.
struct Product {
  Matmul kind;
  DType left, right, result;
  std::int64_t m, n, k;
  bool transposed;  ///< the right operand lies as [n, k]

  /// Appends it to a graph that has its left operand; adds a right operand.
  ValueId add_to(Graph& graph, ValueId a) const {
    const auto input = [&](const TensorType& type) {
      return graph.add_input({.name = fmt::format("i{}", graph.inputs().size()), .type = type});
    };
    const bool scaled = kind == Matmul::kScaled;
    std::vector<ValueId> operands{
        a, transposed ? transpose_of(graph, input({right, {n, k}})) : input({right, {k, n}})};
    if (scaled)
      operands.insert(operands.end(), {input({DType::kF32, {}}), input({DType::kF32, {}})});
    const NodeId id =
        graph.add_node("", scaled ? "scaled_mm" : "mm", operands, {{"out_dtype", result}});
    return graph.node(id).outputs[0];
  }
  [[nodiscard]] double ns(const DeviceModel& device) const {
    Graph graph;
    const ValueId product = add_to(graph, graph.add_input({.name = "a", .type = {left, {m, k}}}));
    return node_ns(graph, graph.node(graph.value(product).producer), {}, device);
  }
};

Product product_of(const Graph& graph, const Node& matmul, const Bindings& bindings) {
  const TensorType& a = graph.type(matmul.inputs[0]);
  const TensorType& b = graph.type(matmul.inputs[1]);
  const std::int64_t k = a.shape.back().evaluate(bindings);
  const double rows = k == 0 ? 0 : numel_at(a, bindings) / static_cast<double>(k);
  return {.kind = matmul.op->matmul,
          .left = a.dtype,
          .right = b.dtype,
          .result = graph.type(matmul.outputs[0]).dtype,
          .m = static_cast<std::int64_t>(rows),
          .n = b.shape.back().evaluate(bindings),
          .k = k,
          .transposed = lies_transposed(graph, matmul.inputs[1])};
}

/// One kernel with the collective and its matmuls.
std::shared_ptr<Graph> in_kernel(const Graph& graph, const Node& collective,
                                 std::span<const NodeId> matmuls, const Bindings& bindings) {
  const std::string& name = *collective.attr<std::string>("group");
  const Group& group = graph.groups().find(name)->second;
  auto body = std::make_shared<Graph>();
  body->add_group(name, group);
  const auto add_collective = [&](ValueId operand, Attrs attrs) {
    body->set_comm_group(operand, name);
    attrs.insert({"group", name});
    set_algorithm(attrs, Algorithm::kInKernel);
    const NodeId id = body->add_node("", collective.op_name(), {operand}, std::move(attrs));
    for (const auto& [key, hint] : collective.hints) body->set_hint(id, key, hint);
    body->add_output(body->node(id).outputs[0]);
    return body->node(id).outputs[0];
  };
  const bool gathers = collective.op->collective == CollectiveKind::kAllGather;
  const Product first = product_of(graph, graph.node(matmuls[0]), bindings);
  const std::int64_t rows = gathers ? std::max<std::int64_t>(1, first.m / group.size) : first.m;
  ValueId left = body->add_input({.name = "a", .type = {first.left, {rows, first.k}}});
  if (gathers) left = add_collective(left, {});
  for (const NodeId id : matmuls) {
    body->add_output(product_of(graph, graph.node(id), bindings).add_to(*body, left));
  }
  if (!gathers) {
    Attrs attrs{{"reduce_op", collective.attrs.at("reduce_op")}};
    if (collective.op->collective != CollectiveKind::kAllReduce) {
      attrs.emplace("dim", std::int64_t{0});
    }
    add_collective(body->outputs()[0], std::move(attrs));
  }
  return body;
}

/// Whether the kernel could compute a norm of its last result, too.
bool takes_norm(Graph body) {
  const ValueId result = body.outputs().back();
  const TensorType& type = body.type(result);
  const ValueId weight = body.add_input({.name = "g", .type = {type.dtype, {type.shape.back()}}});
  const NodeId norm = body.add_node("", "rms_norm", {result, weight}, {{"eps", 1e-5}});
  body.add_output(body.node(norm).outputs[0]);
  return cannot_fuse(body).empty();
}

/// The time in one chunk per rank, given the time of a chunk's matmuls.
double chunked_ns(const Graph& graph, const Node& collective, std::span<const NodeId> matmuls,
                  double chunk_ns, double collective_ns, const Bindings& bindings,
                  const DeviceModel& device) {
  const std::int64_t ranks = group_of(graph, collective).size;
  const int steps = static_cast<int>(ranks) - 1;  // the rank's own chunk needs no transfer
  // A collective that reads straight from the owners: each copy pays what is not transfer.
  const double meet_ns = device.launch_ns + device.barrier_ns;
  const double transfer_ns = device.launch_ns + std::max(0.0, collective_ns - meet_ns) / steps;
  const double moved = moved_ns(graph, collective, matmuls, bindings, device);
  if (collective.op->collective == CollectiveKind::kAllGather) {
    return moved + gather_ns(steps, chunk_ns, meet_ns, transfer_ns);
  }
  const double result_bytes = bytes_of(graph.type(collective.outputs[0]), bindings);
  const double sum_ns = traffic_ns(static_cast<double>(ranks + 1) * result_bytes, device);
  return moved + scatter_ns(steps, chunk_ns, meet_ns, transfer_ns) +
         std::max(device.launch_ns + sum_ns, meet_ns);
}

}  // namespace

std::optional<double> PipelineEstimate::best_ns() const {
  if (!pipelined_ns || !in_kernel_ns) return pipelined_ns ? pipelined_ns : in_kernel_ns;
  return std::min(*pipelined_ns, *in_kernel_ns);
}

PipelineEstimate estimate_pipeline(const Graph& graph, const Node& collective,
                                   std::span<const NodeId> matmuls, PipelinedDim dim,
                                   const Bindings& bindings, const DeviceModel& device) {
  const std::int64_t ranks = group_of(graph, collective).size;
  // Chunks come straight from their owners, as in the one-shot form.
  const double collective_ns =
      by_algorithm_ns(graph, collective, Algorithm::kOneShot, bindings, device);
  const bool all_reduce = collective.op->collective == CollectiveKind::kAllReduce;
  const bool has_chunks = dim == PipelinedDim::kM && ranks > 1 && !all_reduce;

  PipelineEstimate estimate{
      .plain_ns = all_reduce ? quickest(graph, collective, bindings, device).ns : collective_ns,
      .intensity = std::numeric_limits<double>::infinity()};
  double chunk_ns = 0;
  for (NodeId id : matmuls) {
    const Node& node = graph.node(id);
    const double whole_ns = node_ns(graph, node, bindings, device);
    estimate.plain_ns += whole_ns;
    Product product = product_of(graph, node, bindings);
    const double model_ns = node.hints.empty() ? whole_ns : product.ns(device);
    std::int64_t& cut = dim == PipelinedDim::kM   ? product.m
                        : dim == PipelinedDim::kN ? product.n
                                                  : product.k;
    cut = std::max<std::int64_t>(1, cut / ranks);
    estimate.intensity =
        std::min(estimate.intensity, arithmetic_intensity(static_cast<double>(product.m),
                                                          static_cast<double>(product.n),
                                                          static_cast<double>(product.k)));
    if (has_chunks) chunk_ns += product.ns(device) * (whole_ns / model_ns);
  }
  if (has_chunks) {
    estimate.pipelined_ns =
        chunked_ns(graph, collective, matmuls, chunk_ns, collective_ns, bindings, device);
  }
  if (ranks > 1 && (all_reduce || dim == PipelinedDim::kM) &&
      has_one_kernel(graph, collective, matmuls)) {
    const std::shared_ptr<Graph> body = in_kernel(graph, collective, matmuls, bindings);
    const Config config = default_config(*body, Target::parse(device.name));
    estimate.in_kernel_ns = kernel_ns({body, config}, {}, device);
    const bool gathers = collective.op->collective == CollectiveKind::kAllGather;
    estimate.rows_in_kernel = gathers || takes_norm(*body);
  }
  return estimate;
}

PipelineEstimate estimate_fused(const Graph& graph, const Node& node, const Bindings& bindings,
                                const DeviceModel& device) {
  Graph parts;
  add_tables(parts, graph.symbols(), graph.groups());
  std::vector<ValueId> operands;
  for (ValueId input : node.inputs) {
    const bool transposed = lies_transposed(graph, input);
    TensorType type = graph.type(input);
    if (transposed) std::swap(type.shape[0], type.shape[1]);
    const ValueId operand =
        parts.add_input({.name = fmt::format("i{}", operands.size()), .type = std::move(type)});
    operands.push_back(transposed ? transpose_of(parts, operand) : operand);
  }
  static_cast<void>(add_composition(parts, node, operands, [](auto) { return std::string(); }));
  const Node* collective = nullptr;
  std::vector<NodeId> matmuls;
  for (std::size_t id = 0; id < parts.nodes().size(); ++id) {
    const Node& part = parts.nodes()[id];
    if (part.op->op_class == OpClass::kMatmul) matmuls.push_back(id);
    if (part.op->op_class != OpClass::kCollective || collective != nullptr) continue;
    collective = &part;
    const auto hint = node.hints.find(kCollectiveHint);
    if (hint != node.hints.end()) parts.set_hint(id, "runtime_ns", hint->second);
  }
  PipelineEstimate estimate =
      estimate_pipeline(parts, *collective, matmuls, PipelinedDim::kM, bindings, device);
  if (cannot_chunk(graph, node)) estimate.pipelined_ns.reset();
  const auto* returns_product = node.attr<bool>("return_mm");
  if (!group_of(graph, node).symmetric || (returns_product != nullptr && *returns_product)) {
    estimate.in_kernel_ns.reset();
  }
  return estimate;
}

std::map<NodeId, double> saved_apart_ns(const Graph& graph, const PassContext& context) {
  std::map<NodeId, double> saved = saved_by_cuts_ns(graph, context);
  const Bindings bindings = max_bindings(graph.symbols());
  const DeviceModel& device = device_model(context.target);
  for (const Node& node : graph.nodes()) {
    if (!is_open(graph, node)) continue;
    const auto cut = saved.find(graph.value(node.inputs[0]).producer);
    if (cut == saved.end()) continue;
    const Algorithm algorithm = quickest(graph, node, bindings, device).algorithm;
    if (algorithm == Algorithm::kPackets) cut->second += device.launch_ns;
  }
  return saved;
}

double graph_ns(const Graph& graph, const PassContext& context) {
  const Bindings bindings = max_bindings(graph.symbols());
  const DeviceModel& device = device_model(context.target);
  double ns = 0;
  for (const Node& node : graph.nodes()) {
    ns += is_open(graph, node) ? quickest(graph, node, bindings, device).ns
                               : node_ns(graph, node, bindings, device);
  }
  for (const auto& [matmul, saved_ns] : saved_apart_ns(graph, context)) ns -= saved_ns;
  return ns;
}

}  // namespace braid
