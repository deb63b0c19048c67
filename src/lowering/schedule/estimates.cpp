#include "lowering/schedule/estimates.h"

#include <algorithm>
#include <memory>

#include "ir/op_registry.h"
#include "lowering/plan/cost.h"

namespace braid {
namespace {

/// Whether the predicate holds for the node or, for a kernel, for a node of its body.
template <class Is>
bool any_within(const Node& node, const Is& is) {
  if (node.op->op_class != OpClass::kKernel) return is(node);
  const Graph& body = **node.attr<std::shared_ptr<const Graph>>("body");
  return std::ranges::any_of(body.nodes(),
                             [&](const Node& inner) { return any_within(inner, is); });
}

}  // namespace

bool contains_collective(const Node& node) {
  return any_within(node, [](const Node& inner) {
    const OpClass c = inner.op->op_class;
    return c == OpClass::kCollective || c == OpClass::kFusedMatmul || c == OpClass::kPeerCopy;
  });
}

bool is_gemm_like(const Node& node) {
  return any_within(node, [](const Node& inner) {
    const OpClass c = inner.op->op_class;
    if (c == OpClass::kOpaque) {
      const auto* kind = inner.attr<std::string>("kind");
      return kind != nullptr && *kind != "compute";
    }
    return c == OpClass::kMatmul || c == OpClass::kFusedMatmul;
  });
}

std::vector<NodeEstimate> estimate_nodes(const Graph& graph, const Target& target,
                                         double collective_factor, double other_factor) {
  const DeviceModel& device = device_model(target);
  const Bindings bindings = max_bindings(graph.symbols());
  std::vector<NodeEstimate> estimates;
  estimates.reserve(graph.nodes().size());
  for (const Node& node : graph.nodes()) {
    NodeEstimate& estimate =
        estimates.emplace_back(NodeEstimate{.collective = contains_collective(node),
                                            .asynchronous = is_asynchronous(node),
                                            .wait = node.op->op_class == OpClass::kWait,
                                            .gemm = is_gemm_like(node)});
    estimate.ns = node_ns(graph, node, bindings, device) *
                  (estimate.collective ? collective_factor : other_factor);
  }
  return estimates;
}

}  // namespace braid
