#include "lowering/decompose_fused.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/fused.h"
#include "ir/op_registry.h"
#include "lowering/rewrite.h"

// The part of lower_collectives that takes fused nodes apart. It refuses none: there are no
// pipelined kernels yet.
namespace braid {
namespace {

constexpr ReasonCode kTakenApart{"lower_collectives.taken_apart",
                                 "{op} becomes its collective and {matmuls} matmuls: there is no "
                                 "kernel that pipelines them yet"};

}  // namespace

std::optional<Graph> decompose_fused(const Graph& graph, PassContext& context) {
  const auto is_fused = [](const Node& node) { return node.op->op_class == OpClass::kFusedMatmul; };
  if (std::none_of(graph.nodes().begin(), graph.nodes().end(), is_fused)) {
    return std::nullopt;
  }
  Rewriter rewrite(graph);
  for (const Node& node : graph.nodes()) {
    if (!is_fused(node)) {
      rewrite.copy(node);
      continue;
    }
    const auto name = [&](std::string_view suffix) {
      return rewrite.fresh_name(fmt::format("{}{}", node.name, suffix));
    };
    const std::vector<ValueId> results =
        add_composition(rewrite.graph(), node, rewrite(node.inputs), name);
    for (std::size_t i = 0; i < results.size(); ++i) rewrite.map(node.outputs[i], results[i]);
    context.applied("lower_collectives", node.name,
                    Reason(kTakenApart, node.op_name(),
                           fused_operands(node.op_name(), node.attrs, node.inputs.size()).matmuls));
  }
  return rewrite.finish();
}

}  // namespace braid
