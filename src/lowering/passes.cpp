#include "lowering/passes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "braid/error.h"
#include "codegen/graph_target.h"

namespace braid {
namespace {

constexpr auto kPasses = std::to_array<Pass>({
    {"fsdp", fsdp},
    {"decompose_fsdp", decompose_fsdp},
    {"functionalize", functionalize},
    {"canonicalize", canonicalize},
    {"sequence_parallel", sequence_parallel, false},
    {"micro_pipeline", micro_pipeline, false},
    {"split_reductions", split_reductions},
    {"lower_collectives", lower_collectives},
    {"fuse", fuse},
});

const Pass& find_pass(std::string_view name) {
  for (const Pass& pass : kPasses) {
    if (pass.name == name) return pass;
  }
  std::vector<std::string_view> known;
  known.reserve(std::size(kPasses));
  for (const Pass& pass : kPasses) known.push_back(pass.name);
  throw_invalid("passes", fmt::format("unknown pass '{}'; expected some of {}", name,
                                      fmt::join(known, ", ")));
}

Graph run_verified(const Pass& pass, const Graph& graph, PassContext& context) {
  Graph result = pass.run(graph, context);
  verify(result);
  return result;
}

}  // namespace

void PassContext::applied(std::string_view pass, std::string_view node, std::string reason) {
  remarks.push_back({std::string(pass), std::string(node), true, std::move(reason)});
}

void PassContext::missed(std::string_view pass, std::string_view node, std::string reason) {
  remarks.push_back({std::string(pass), std::string(node), false, std::move(reason)});
}

std::string PassContext::why_missed(std::string_view pass, std::string_view node) const {
  for (const Remark& remark : remarks) {
    if (!remark.applied && remark.pass == pass && remark.node == node) return remark.reason;
  }
  return "";
}

std::span<const Pass> all_passes() { return kPasses; }

bool runs(const Pass& pass, const PassConfig& config) {
  const auto& enable = config.enable;
  return pass.by_default || std::find(enable.begin(), enable.end(), pass.name) != enable.end();
}

Graph run_passes(const Graph& graph, std::span<const std::string> names, PassContext& context) {
  std::vector<const Pass*> passes;
  for (const std::string& name : names) passes.push_back(&find_pass(name));
  Graph result = graph;
  for (const Pass* pass : passes) result = run_verified(*pass, result, context);
  return result;
}

Program lower(const Graph& graph, PassContext& context) {
  for (const std::string& name : context.config.enable) static_cast<void>(find_pass(name));
  check_target(graph, context.target);
  Graph lowered = graph;
  for (const Pass& pass : kPasses) {
    if (runs(pass, context.config)) lowered = run_verified(pass, lowered, context);
  }
  std::vector<std::string> names;
  for (ValueId output : graph.outputs()) names.push_back(graph.value(output).name);
  return build_program(lowered, context, names);
}

}  // namespace braid
