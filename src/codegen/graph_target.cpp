#include "codegen/graph_target.h"

#include <fmt/format.h>

#include <algorithm>

#include "braid/error.h"
#include "ir/collective.h"
#include "ir/op_registry.h"
#include "ir/text.h"

namespace braid {
namespace {

/// The first architecture that can run a node, without its body.
int least_sm(const Node& node) {
  return algorithm_of(node) == Algorithm::kMultimem ? kLeastMultimemSm : node.op->least_sm;
}

/// The node that needs the newest architecture, including those in bodies.
const Node* most_demanding(const Node& node) {
  const Node* most = &node;
  if (const auto* body = node.attr<std::shared_ptr<const Graph>>("body")) {
    for (const Node& inner : (*body)->nodes()) {
      const Node* candidate = most_demanding(inner);
      if (least_sm(*candidate) > least_sm(*most)) most = candidate;
    }
  }
  return most;
}

}  // namespace

Target least_target(const Graph& graph) {
  Target target{.sm = kLeastSm};
  for (const Node& node : graph.nodes()) {
    target.sm = std::max(target.sm, least_sm(*most_demanding(node)));
  }
  return target;
}

void check_target(const Graph& graph, const Target& target) {
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    const Node& most = *most_demanding(node);
    if (least_sm(most) <= target.sm) continue;
    throw_invalid(fmt::format("/nodes/{}", i),
                  fmt::format("{} {} needs sm_{} or later; the target is {}", most.op_name(),
                              quote(node.name), least_sm(most), target.str()));
  }
}

Target choose_target(const Graph& graph, std::string_view asked) {
  if (asked.empty()) return least_target(graph);
  const Target target = Target::parse(asked);
  check_target(graph, target);
  return target;
}

}  // namespace braid
