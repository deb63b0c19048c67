#include "lowering/fuse/long_cats.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/body/analysis.h"
#include "ir/op_registry.h"
#include "lowering/fuse/reasons.h"
#include "lowering/rewrite.h"

namespace braid {
namespace {

bool is_long(const Node& node) {
  return node.op->view == View::kCat && node.inputs.size() > kMostCatOperands;
}

/// Joins neighbors until few enough are left. The parts are about equally long, so that no part is
/// a single tensor.
std::vector<ValueId> joined(Rewriter& rewrite, const Node& cat, std::vector<ValueId> operands) {
  for (int depth = 0; operands.size() > kMostCatOperands; ++depth) {
    const std::size_t all = operands.size();
    const std::size_t parts = (all + kMostCatOperands - 1) / kMostCatOperands;
    std::vector<ValueId> next;
    for (std::size_t i = 0; i < parts; ++i) {
      const auto first = operands.begin() + static_cast<std::ptrdiff_t>(all * i / parts);
      const auto end = operands.begin() + static_cast<std::ptrdiff_t>(all * (i + 1) / parts);
      next.push_back(rewrite.add(fmt::format("{}_part_{}_{}", cat.name, depth, i), "cat",
                                 {first, end}, cat.attrs));
    }
    operands = std::move(next);
  }
  return operands;
}

}  // namespace

std::optional<Graph> split_long_cats(const Graph& graph, PassContext& context) {
  if (std::ranges::none_of(graph.nodes(), is_long)) return std::nullopt;
  Rewriter rewrite(graph);
  for (const Node& node : graph.nodes()) {
    if (!is_long(node)) {
      rewrite.copy(node);
      continue;
    }
    rewrite.copy(node, joined(rewrite, node, rewrite(node.inputs)), node.attrs);
    context.applied("fuse", node.name,
                    Reason(fuse_reasons::kLongCat, node.inputs.size(), kMostCatOperands));
  }
  return rewrite.finish();
}

}  // namespace braid
