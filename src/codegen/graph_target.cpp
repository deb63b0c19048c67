#include "codegen/graph_target.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/body/analysis.h"
#include "codegen/units.h"
#include "ir/collective.h"
#include "ir/fail.h"
#include "ir/op_registry.h"
#include "ir/text.h"

namespace braid {
namespace {

/// What a node, or one in its body, asks of the target.
struct Demand {
  const Node* node;
  int least_sm = kLeastSm;
  const Unit* unit = nullptr;  ///< that one, whatever others there are
};

/// Without its body.
Demand own_demand(const Graph& graph, const Node& node) {
  if (algorithm_of(node) == Algorithm::kMultimem) {
    return {&node, units::kMultimem.least_sm, &units::kMultimem};
  }
  const OpClass kind = node.op->op_class;
  if (kind != OpClass::kMatmul && kind != OpClass::kFusedMatmul) return {&node};
  const DType dtype = graph.type(node.inputs[first_matrix(node)]).dtype;
  return {&node, std::max(kLeastSm, least_sm_of(dtype))};
}

/// The node that needs the newest architecture, including those in bodies.
Demand demand_of(const Graph& graph, const Node& node) {
  Demand most = own_demand(graph, node);
  if (const auto* body = node.attr<std::shared_ptr<const Graph>>("body")) {
    for (const Node& inner : (*body)->nodes()) {
      const Demand other = demand_of(**body, inner);
      if (other.least_sm > most.least_sm) most = other;
    }
  }
  return most;
}

}  // namespace

Target least_target(const Graph& graph) {
  Target target{.sm = kLeastSm};
  for (const Node& node : graph.nodes()) {
    target.sm = std::max(target.sm, demand_of(graph, node).least_sm);
  }
  return target;
}

void check_target(const Graph& graph, const Target& target) {
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    const Demand most = demand_of(graph, node);
    const bool early = target.sm < most.least_sm;
    if (!early && (most.unit == nullptr || has(target, *most.unit))) continue;
    throw_invalid(
        fmt::format("/nodes/{}", i), "{} {} needs {}; the target is {}", most.node->op_name(),
        quote(node.name),
        early ? fmt::format("sm_{} or later", most.least_sm) : std::string(most.unit->name),
        target.str());
  }
}

Target choose_target(const Graph& graph, std::string_view asked, const Target& otherwise) {
  const Target target = Target::parse(asked, otherwise);
  check_target(graph, target);
  return target;
}

Target choose_target(const Graph& graph, std::string_view asked) {
  return choose_target(graph, asked, least_target(graph));
}

}  // namespace braid
