#include "lowering/micro_pipeline/pipeline_cost.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "codegen/kernel_spec.h"
#include "ir/collective.h"
#include "ir/numel.h"
#include "ir/op_registry.h"
#include "ir/ops.h"
#include "ir/views.h"

namespace braid {

double arithmetic_intensity(double m, double n, double k) {
  const double elements = m * k + n * k + m * n;
  return elements > 0 ? m * n * k / elements : 0;
}

namespace {

/// The copies follow one barrier, the matmuls the copies; another barrier keeps the ranks' buffers
/// until the last one has read them.
double gather_ns(int steps, double chunk_ns, double meet_ns, double transfer_ns) {
  double arrived = meet_ns;
  double computed = chunk_ns;
  for (int step = 0; step < steps; ++step) {
    arrived += transfer_ns;
    computed = std::max(computed, arrived) + chunk_ns;
  }
  return std::max(computed, arrived + meet_ns);
}

/// A barrier and a copy behind each matmul but the last.
double scatter_ns(int steps, double chunk_ns, double meet_ns, double transfer_ns) {
  double arrived = 0;
  double computed = 0;
  for (int step = 0; step < steps; ++step) {
    computed += chunk_ns;
    arrived = std::max(arrived, computed) + meet_ns + transfer_ns;
  }
  return std::max(computed + chunk_ns, arrived);
}

double bytes_each(const TensorType& type) { return static_cast<double>(dtype_size(type.dtype)); }

std::int64_t tiles_of(double rows, double columns) {
  constexpr double kTile = 64;
  const double tiles = std::ceil(rows / kTile) * std::ceil(columns / kTile);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(tiles));
}

double bytes_of(const TensorType& type, const Bindings& bindings) {
  return numel_at(type, bindings) * static_cast<double>(dtype_size(type.dtype));
}

/// Moving the dim that is cut in front of others, and back in the products of a gather.
double moved_ns(const Graph& graph, const Node& collective, std::span<const NodeId> matmuls,
                const Bindings& bindings, const DeviceModel& device) {
  const TensorType& operand = graph.type(collective.inputs[0]);
  const std::size_t dim = axis_of(collective.attrs, "dim", operand.shape.size());
  if (lies_in_front(operand.shape, dim)) return 0;
  const auto copy_ns = [&](const TensorType& type) {
    return device.launch_ns + 2 * bytes_of(type, bindings) / device.hbm_gbs;
  };
  if (collective.op_name() != "all_gather_into_tensor") {
    return copy_ns(graph.type(graph.node(matmuls[0]).inputs[0]));
  }
  double ns = copy_ns(operand);
  for (NodeId id : matmuls) ns += copy_ns(graph.type(graph.node(id).outputs[0]));
  return ns;
}

/// Some multiprocessors copy instead of multiplying, each a panel of rows at a time; the last rows
/// that come are still to be multiplied.
double gather_kernel_ns(const TensorType& shard, double gather_ns, double matmul_ns, double ranks,
                        const Bindings& bindings, const DeviceModel& device) {
  constexpr double kPanelRows = 64;
  constexpr double kBlockGbs = 44;  // of one multiprocessor over NVLink: NCCL 2.28's own model
  const auto copy_blocks = static_cast<double>(kGatherGemmCopyBlocks);
  const double width = static_cast<double>(shard.shape.back().evaluate(bindings));
  const double rows = numel_at(shard, bindings) / width;
  const double panels = std::ceil(rows / kPanelRows) * (ranks - 1);
  const double panel_bytes =
      std::min(rows, kPanelRows) * width * static_cast<double>(dtype_size(shard.dtype));
  const double copied_ns = std::ceil(panels / copy_blocks) * panel_bytes / kBlockGbs;
  const double sms = device.sms;
  const double work_ns = matmul_ns * sms / (sms - copy_blocks);
  return std::max(work_ns, std::max(gather_ns, device.barrier_ns + copied_ns) + work_ns / ranks);
}

/// Tiles are sent while others are multiplied, but for this rank's own, which come last; then all
/// meet, and what came is added up.
double scatter_kernel_ns(double transfer_ns, double matmul_ns, double sum_ns,
                         const DeviceModel& device) {
  return std::max(matmul_ns, transfer_ns) + device.barrier_ns + sum_ns;
}

/// The node by this algorithm.
double by_algorithm_ns(const Graph& graph, Node node, std::string_view algorithm,
                       const Bindings& bindings, const DeviceModel& device) {
  node.attrs.insert_or_assign("algorithm", std::string(algorithm));
  return node_ns(graph, node, bindings, device);
}

/// A collective over symmetric memory by its quickest algorithm, as a kernel of its own.
double quickest_ns(const Graph& graph, const Node& node, const Bindings& bindings,
                   const DeviceModel& device) {
  double best = by_algorithm_ns(graph, node, kOneShot, bindings, device);
  if (!node.op_name().starts_with("all_reduce")) return best;
  best = std::min(best, by_algorithm_ns(graph, node, kTwoShot, bindings, device));
  if (!fits_packet(graph.type(node.inputs[0]).dtype)) return best;
  return std::min(best, by_algorithm_ns(graph, node, kPackets, bindings, device));
}

/// Whether the rows of all ranks lie one after the other, and one kernel holds the matmuls.
bool has_one_kernel(const Graph& graph, const Node& collective, std::span<const NodeId> matmuls) {
  const Shape& operand = graph.type(collective.inputs[0]).shape;
  const std::size_t dim = axis_of(collective.attrs, "dim", operand.size());
  if (collective.op_name() == "reduce_scatter_tensor") return lies_in_front(operand, dim);
  if (dim != 0 || matmuls.size() > 2) return false;
  if (matmuls.size() == 1) return true;
  const Node& one = graph.node(matmuls[0]);
  const Node& other = graph.node(matmuls[1]);
  return one.op_name() == "mm" && other.op_name() == "mm" &&
         graph.type(one.inputs[1]) == graph.type(other.inputs[1]);
}

}  // namespace

PipelineEstimate estimate_pipeline(const Graph& graph, const Node& collective,
                                   std::span<const NodeId> matmuls, PipelinedDim dim,
                                   const Bindings& bindings, const DeviceModel& device) {
  const double ranks =
      static_cast<double>(graph.groups().find(*collective.attr<std::string>("group"))->second.size);
  // Chunks come straight from their owners, as in the one-shot form.
  const double collective_ns = by_algorithm_ns(graph, collective, kOneShot, bindings, device);
  const bool all_reduce = collective.op_name() == "all_reduce";

  PipelineEstimate estimate{
      .plain_ns = all_reduce ? quickest_ns(graph, collective, bindings, device) : collective_ns,
      .intensity = std::numeric_limits<double>::infinity()};
  double chunk_ns = 0;
  double matmul_ns = 0;
  double tiles_ns = 0;  // of matmuls that are not split where they have few tiles
  for (NodeId id : matmuls) {
    const Node& node = graph.node(id);
    const TensorType& a = graph.type(node.inputs[0]);
    const TensorType& b = graph.type(node.inputs[1]);
    double k = static_cast<double>(a.shape.back().evaluate(bindings));
    double n = static_cast<double>(b.shape.back().evaluate(bindings));
    double m = numel_at(a, bindings) / k;
    tiles_ns += memory_ns((m * k) * bytes_each(a) + (k * n) * bytes_each(b) +
                              (m * n) * bytes_each(graph.type(node.outputs[0])),
                          tiles_of(m, n), kTilesInFlight, device);
    (dim == PipelinedDim::kM ? m : dim == PipelinedDim::kN ? n : k) /= ranks;
    const double traffic = m * k * bytes_each(a) + k * n * bytes_each(b) +
                           m * n * bytes_each(graph.type(node.outputs[0]));
    const double whole_ns = node_ns(graph, node, bindings, device);
    const double work_ns = std::max(0.0, whole_ns - device.launch_ns) / ranks;
    chunk_ns += device.launch_ns + std::max(work_ns, traffic / device.hbm_gbs);
    estimate.plain_ns += whole_ns;
    matmul_ns += std::max(0.0, whole_ns - device.launch_ns);
    estimate.intensity = std::min(estimate.intensity, arithmetic_intensity(m, n, k));
  }
  const int steps = static_cast<int>(ranks) - 1;  // the rank's own chunk needs no transfer
  if (dim != PipelinedDim::kM || steps == 0 || all_reduce) {
    estimate.pipelined_ns = estimate.plain_ns;
    if (all_reduce && steps > 0) {
      estimate.in_kernel_ns = std::max(matmul_ns, tiles_ns) + collective_ns;
    }
    return estimate;
  }
  // Of a collective that reads straight from the owners, what is no transfer is paid by each copy.
  const double meet_ns = device.launch_ns + device.barrier_ns;
  const double transfer_ns = device.launch_ns + std::max(0.0, collective_ns - meet_ns) / steps;
  const double moved = moved_ns(graph, collective, matmuls, bindings, device);
  if (collective.op_name() == "all_gather_into_tensor") {
    estimate.pipelined_ns = moved + gather_ns(steps, chunk_ns, meet_ns, transfer_ns);
    if (has_one_kernel(graph, collective, matmuls)) {
      estimate.in_kernel_ns =
          device.launch_ns + gather_kernel_ns(graph.type(collective.inputs[0]),
                                              collective_ns - device.launch_ns, matmul_ns, ranks,
                                              bindings, device);
    }
    return estimate;
  }
  const double result_bytes = bytes_of(graph.type(collective.outputs[0]), bindings);
  const double sum_ns = (ranks + 1) * result_bytes / device.hbm_gbs;
  estimate.pipelined_ns = moved + scatter_ns(steps, chunk_ns, meet_ns, transfer_ns) +
                          std::max(device.launch_ns + sum_ns, meet_ns);
  if (has_one_kernel(graph, collective, matmuls)) {
    const double sent_ns = std::max(0.0, collective_ns - meet_ns);
    estimate.in_kernel_ns =
        device.launch_ns +
        scatter_kernel_ns(sent_ns, std::max(matmul_ns, tiles_ns), sum_ns, device);
  }
  return estimate;
}

double graph_ns(const Graph& graph, const Bindings& bindings, const DeviceModel& device) {
  double ns = 0;
  for (const Node& node : graph.nodes()) {
    const bool open = node.op->op_class == OpClass::kCollective &&
                      node.attr<std::string>("algorithm")->empty() &&
                      graph.groups().find(*node.attr<std::string>("group"))->second.symmetric;
    ns +=
        open ? quickest_ns(graph, node, bindings, device) : node_ns(graph, node, bindings, device);
  }
  return ns;
}

}  // namespace braid
