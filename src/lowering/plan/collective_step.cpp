#include "lowering/plan/collective_step.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "ir/fail.h"
#include "ir/text.h"

namespace braid {
namespace {

constexpr std::array<std::string_view, 5> kOps = {"all_gather_into_tensor", "all_reduce",
                                                  "all_to_all_single", "broadcast",
                                                  "reduce_scatter_tensor"};

}  // namespace

Collective collective_of(const Program& program, const Step& step) {
  if (std::ranges::find(kOps, step.op) == kOps.end()) {
    throw_invalid("op", "{}; expected one of {}", quote(step.op), fmt::join(kOps, ", "));
  }
  const auto group = program.groups.find(step.group);
  if (group == program.groups.end()) {
    throw_invalid("group", "there is no group {}", quote(step.group));
  }
  Graph tables(program.name);
  for (const auto& [name, symbol] : program.symbols) tables.add_symbol(name, symbol);
  tables.add_group(group->first, group->second);
  Attrs attrs{{"group", step.group}, {"dim", std::int64_t{0}}, {"src", step.src}};
  if (step.op.find("reduce") != std::string::npos) {
    if (!parse_reduce_op(step.reduce_op)) {
      throw_invalid("reduce_op", "{}; expected one of {}", quote(step.reduce_op),
                    fmt::join(kReduceOpNames, ", "));
    }
    attrs.emplace("reduce_op", step.reduce_op);
  }
  if (!step.splits.empty()) attrs.emplace("input_split_sizes", step.splits);
  return collective_of(tables, find_op(step.op)->collective, attrs, step.operand);
}

Step collective_step(const Graph& graph, const Node& node) {
  Step step;
  step.kind = Step::Kind::kCollective;
  step.name = node.name;
  step.op = node.op_name();
  step.group = *node.attr<std::string>("group");
  step.operand = graph.type(node.inputs[0]);
  if (const auto* reduce = node.attr<std::string>("reduce_op")) step.reduce_op = *reduce;
  const Collective form = collective_of(graph, node, step.operand);
  for (const std::optional<std::size_t>& dim : {form.gather_dim, form.scatter_dim}) {
    if (dim.value_or(0) == 0) continue;
    throw_invalid(node.name, "{} along dim {}; expected dim 0 of a communicator", node.op_name(),
                  *dim);
  }
  step.src = form.src.value_or(-1);
  step.splits = form.splits;
  return step;
}

}  // namespace braid
