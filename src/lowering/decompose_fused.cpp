#include "lowering/decompose_fused.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/op_registry.h"
#include "lowering/chunk_fused.h"
#include "lowering/micro_pipeline/pipeline_cost.h"
#include "lowering/rewrite.h"
#include "lowering/sink_joins.h"

// The part of lower_collectives that takes fused nodes apart: into chunks (chunk_fused.cpp) where
// the cost model finds that quicker, or PassConfig::always_pipeline says so; else into their
// collective and matmuls.
namespace braid {
namespace {

constexpr ReasonCode kInChunks{"lower_collectives.in_chunks",
                               "{op} runs in {ranks} chunks: about {us:.1f} us on {device} "
                               "(its collective, then its matmuls: {plain_us:.1f} us)"};
constexpr ReasonCode kTakenApart{"lower_collectives.taken_apart",
                                 "{op} becomes its collective and {matmuls} matmuls: about "
                                 "{us:.1f} us on {device} ({why})"};
constexpr ReasonCode kChunksSlower{"lower_collectives.chunks_slower", "in chunks: {us:.1f} us"};
constexpr ReasonCode kNoChunks{"lower_collectives.no_chunks", "not in chunks: {why}"};

bool is_fused(const Node& node) { return node.op->op_class == OpClass::kFusedMatmul; }

/// Of the node's collective and matmuls, as a graph of their own.
PipelineEstimate estimate_of(const Graph& graph, const Node& node, const DeviceModel& device) {
  Graph parts;
  for (const auto& [name, symbol] : graph.symbols()) parts.add_symbol(name, symbol);
  for (const auto& [name, group] : graph.groups()) parts.add_group(name, group);
  std::vector<ValueId> operands;
  for (ValueId input : node.inputs) {
    operands.push_back(
        parts.add_input({.name = fmt::format("i{}", operands.size()), .type = graph.type(input)}));
  }
  static_cast<void>(add_composition(parts, node, operands, [](auto) { return std::string(); }));
  const Node* collective = nullptr;
  std::vector<NodeId> matmuls;
  for (std::size_t id = 0; id < parts.nodes().size(); ++id) {
    const Node& part = parts.nodes()[id];
    if (part.op->op_class == OpClass::kMatmul) matmuls.push_back(static_cast<NodeId>(id));
    if (part.op->op_class == OpClass::kCollective && collective == nullptr) collective = &part;
  }
  return estimate_pipeline(parts, *collective, matmuls, PipelinedDim::kM,
                           max_bindings(graph.symbols()), device);
}

}  // namespace

std::optional<Graph> decompose_fused(const Graph& graph, PassContext& context) {
  if (std::none_of(graph.nodes().begin(), graph.nodes().end(), is_fused)) {
    return std::nullopt;
  }
  const DeviceModel& device = device_model(context.target);
  Rewriter rewrite(graph);
  bool any_chunks = false;
  for (const Node& node : graph.nodes()) {
    if (!is_fused(node)) {
      rewrite.copy(node);
      continue;
    }
    constexpr double kMicro = 1e3;
    const PipelineEstimate estimate = estimate_of(graph, node, device);
    const Reason obstacle = cannot_chunk(graph, node);
    const bool chunked =
        !obstacle && (estimate.pipelined_ns < estimate.plain_ns || context.config.always_pipeline);
    const auto name = [&](std::string_view suffix) {
      return rewrite.fresh_name(fmt::format("{}{}", node.name, suffix));
    };
    const std::vector<ValueId> results =
        chunked ? add_chunks(rewrite.graph(), node, rewrite(node.inputs), name)
                : add_composition(rewrite.graph(), node, rewrite(node.inputs), name);
    for (std::size_t i = 0; i < results.size(); ++i) rewrite.map(node.outputs[i], results[i]);
    any_chunks = any_chunks || chunked;
    if (chunked) {
      const std::int64_t ranks = graph.groups().find(*node.attr<std::string>("group"))->second.size;
      context.applied("lower_collectives", node.name,
                      Reason(kInChunks, node.op_name(), ranks, estimate.pipelined_ns / kMicro,
                             device.name, estimate.plain_ns / kMicro));
      continue;
    }
    context.applied("lower_collectives", node.name,
                    Reason(kTakenApart, node.op_name(),
                           fused_operands(node.op_name(), node.attrs, node.inputs.size()).matmuls,
                           estimate.plain_ns / kMicro, device.name,
                           obstacle ? Reason(kNoChunks, obstacle)
                                    : Reason(kChunksSlower, estimate.pipelined_ns / kMicro)));
  }
  const Graph result = rewrite.finish();
  return any_chunks ? sink_joins(result) : result;
}

}  // namespace braid
