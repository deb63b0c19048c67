#include "lowering/micro_pipeline/pipeline_cost.h"

#include <algorithm>
#include <limits>

#include "ir/op_registry.h"
#include "ir/ops.h"

namespace braid {

double arithmetic_intensity(double m, double n, double k) {
  const double elements = m * k + n * k + m * n;
  return elements > 0 ? m * n * k / elements : 0;
}

PipelineEstimate estimate_pipeline(const Graph& graph, const Node& collective,
                                   std::span<const NodeId> matmuls, PipelinedDim dim,
                                   const Bindings& bindings, const DeviceModel& device) {
  const double ranks =
      static_cast<double>(graph.groups().find(*collective.attr<std::string>("group"))->second.size);
  // Chunks come straight from their owners, as in the one-shot form.
  Node one_shot = collective;
  one_shot.attrs.insert_or_assign("algorithm", std::string("one_shot"));
  const double collective_ns = node_ns(graph, one_shot, bindings, device);

  PipelineEstimate estimate{.plain_ns = collective_ns,
                            .intensity = std::numeric_limits<double>::infinity()};
  double chunk_ns = 0;
  for (NodeId id : matmuls) {
    const Node& node = graph.node(id);
    const TensorType& a = graph.type(node.inputs[0]);
    const TensorType& b = graph.type(node.inputs[1]);
    double k = static_cast<double>(a.shape.back().evaluate(bindings));
    double n = static_cast<double>(b.shape.back().evaluate(bindings));
    double m = numel_at(a, bindings) / k;
    (dim == PipelinedDim::kM ? m : dim == PipelinedDim::kN ? n : k) /= ranks;
    const auto bytes = [](DType dtype) { return static_cast<double>(dtype_size(dtype)); };
    const double traffic = m * k * bytes(a.dtype) + k * n * bytes(b.dtype) +
                           m * n * bytes(graph.type(node.outputs[0]).dtype);
    const double whole_ns = node_ns(graph, node, bindings, device);
    const double work_ns = std::max(0.0, whole_ns - device.launch_ns) / ranks;
    chunk_ns += device.launch_ns + std::max(work_ns, traffic / device.hbm_gbs);
    estimate.plain_ns += whole_ns;
    estimate.intensity = std::min(estimate.intensity, arithmetic_intensity(m, n, k));
  }
  const double steps = ranks - 1;  // the rank's own chunk needs no transfer
  const double transfer_ns = steps > 0 ? collective_ns / steps : 0;
  // The barrier behind it keeps the ranks' buffers until the last one has read them.
  estimate.pipelined_ns = chunk_ns + steps * std::max(chunk_ns, transfer_ns) + device.barrier_ns;
  return estimate;
}

}  // namespace braid
