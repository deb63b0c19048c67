#include "lowering/analysis/replicated.h"

#include <algorithm>

#include "ir/collective.h"
#include "ir/mutation.h"
#include "ir/op_registry.h"

namespace braid {
namespace {

/// Whether all ranks of the collective's group get equal results, whatever the operands are.
bool gives_all_the_same(const Graph& graph, const Node& node) {
  const Collective form = collective_of(graph, node, graph.type(node.inputs[0]));
  return !form.scatter_dim;
}

/// Whether ranks may get different results from equal operands. (A kernel body may contain
/// collectives, and an opaque node may do anything.)
bool may_depend_on_rank(const Node& node) {
  const OpClass c = node.op->op_class;
  return c == OpClass::kKernel || c == OpClass::kOpaque || c == OpClass::kFusedMatmul ||
         node.op->view == View::kShard || (c == OpClass::kGather && node.attrs.contains("group"));
}

}  // namespace

std::vector<bool> replicated_values(const Graph& graph, std::string_view group) {
  const std::vector<bool> overwritten = overwritten_values(graph);
  std::vector<bool> same(graph.values().size(), false);
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
    const std::size_t value = graph.input_values()[i];
    same[value] = !graph.inputs()[i].per_rank && !overwritten[value];
  }
  for (const Node& node : graph.nodes()) {
    bool result = false;
    if (node.op->op_class == OpClass::kCollective) {
      result = *node.attr<std::string>("group") == group && gives_all_the_same(graph, node);
    } else if (!may_depend_on_rank(node)) {
      result = std::ranges::all_of(node.inputs, [&](ValueId input) { return same[input]; });
    }
    for (ValueId output : node.outputs) same[output] = result && !overwritten[output];
  }
  return same;
}

}  // namespace braid
