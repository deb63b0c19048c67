#include "lowering/by_copies.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/collective.h"
#include "ir/op_registry.h"
#include "lowering/plan/cost.h"
#include "lowering/sum_chunks.h"

namespace braid {
namespace {

constexpr std::string_view kPass = "lower_collectives";

constexpr ReasonCode kBeside{
    "lower_collectives.by_copies",
    "{algorithm}: copies over {ranks} ranks of '{group}', {bytes} bytes: about {us:.1f} us on "
    "{device}; they run beside the kernels until the wait"};
constexpr ReasonCode kOneRank{"lower_collectives.copies_of_one_rank",
                              "not by copies: its group has one rank"};
constexpr ReasonCode kOtherDim{
    "lower_collectives.copies_along",
    "not by copies: along dim {dim} the chunk of a rank is no piece of memory; expected dim 0"};
constexpr ReasonCode kOtherReduction{"lower_collectives.copies_reduce",
                                     "not by copies: found {op}; expected sum or avg"};

/// Whether it is a gather or a scatter, in any out-of-place form.
bool is_candidate(const Node& node) {
  const std::string_view op = node.op_name();
  return op.starts_with("all_gather_into_tensor") || op.starts_with("reduce_scatter_tensor");
}

Reason obstacle(const Graph& graph, const Node& node) {
  const std::int64_t ranks = graph.groups().find(*node.attr<std::string>("group"))->second.size;
  if (ranks == 1) return Reason(kOneRank);
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const Collective form =
        collective_of(graph, node.op_name(), node.attrs, graph.type(node.inputs[i]));
    const std::size_t dim = form.reduce ? *form.scatter_dim : *form.gather_dim;
    if (dim != 0) return Reason(kOtherDim, dim);
    if (form.reduce && *form.reduce != ReduceOp::kSum && *form.reduce != ReduceOp::kAvg) {
      return Reason(kOtherReduction, *node.attr<std::string>("reduce_op"));
    }
  }
  return {};
}

}  // namespace

bool ByCopies::takes(const Node& node) {
  if (!context_.config.by_copies || !is_candidate(node)) return false;
  Reason reason = obstacle(graph_, node);
  if (!reason) return true;
  context_.missed(kPass, node.name, std::move(reason));
  return false;
}

std::optional<double> ByCopies::would_take_ns(const Node& node) const {
  if (!is_candidate(node) || obstacle(graph_, node)) return {};
  const DeviceModel& device = device_model(context_.target);
  return device.launch_ns +
         collective_node_ns(graph_, node, kByCopies, max_bindings(graph_.symbols()), device);
}

ValueId ByCopies::add(const Node& node, std::string_view op, std::vector<ValueId> inputs,
                      Attrs attrs) {
  const std::string name = rewrite_.fresh_name(fmt::format("{}_{}", node.name, op));
  const NodeId id = rewrite_.graph().add_node(name, op, std::move(inputs), std::move(attrs));
  return rewrite_.graph().node(id).outputs[0];
}

// The own chunk comes last, so that no link waits for it.
void ByCopies::start(const Node& node, std::size_t i, ValueId operand) {
  Copies copies;
  copies.group = *node.attr<std::string>("group");
  if (const auto* reduce_op = node.attr<std::string>("reduce_op")) copies.reduce_op = *reduce_op;
  const std::string_view op = copies.reduce_op.empty() ? "copy_from_peer" : "copy_chunk_from_peer";
  const std::int64_t ranks = graph_.groups().find(copies.group)->second.size;
  copies.chunks.resize(static_cast<std::size_t>(ranks));
  for (std::int64_t k = 1; k <= ranks; ++k) {
    const std::int64_t shift = k % ranks;
    copies.chunks[static_cast<std::size_t>(shift)] =
        add(node, op, {operand}, {{"group", copies.group}, {"shift", shift}});
  }
  under_way_.emplace(node.outputs[i], std::move(copies));
}

void ByCopies::started(const Node& node) {
  const std::string& group = *node.attr<std::string>("group");
  std::int64_t bytes = 0;
  for (const ValueId value : node.outputs) {
    bytes += max_bytes(graph_.type(value), graph_.symbols());
  }
  context_.applied(kPass, node.name,
                   Reason(kBeside, kByCopies, graph_.groups().find(group)->second.size, group,
                          bytes, *would_take_ns(node) / 1e3, device_model(context_.target).name));
}

bool ByCopies::are_awaited(const Node& wait) const {
  return wait.op->op_class == OpClass::kWait && under_way_.contains(wait.inputs[0]);
}

void ByCopies::wait(const Node& node) {
  const Copies& copies = under_way_.at(node.inputs[0]);
  std::vector<ValueId> waited;
  for (const ValueId chunk : copies.chunks) waited.push_back(add(node, "wait_tensor", {chunk}, {}));
  const auto ranks = static_cast<std::int64_t>(waited.size());
  ValueId result = add(node, "join_by_rank", std::move(waited), {{"group", copies.group}});
  if (!copies.reduce_op.empty()) {
    result = add_sum_of_chunks(rewrite_.graph(), result, ranks, copies.reduce_op,
                               [&](std::string_view suffix) {
                                 return rewrite_.fresh_name(fmt::format("{}{}", node.name, suffix));
                               });
  }
  rewrite_.map(node.outputs[0], result);
}

}  // namespace braid
