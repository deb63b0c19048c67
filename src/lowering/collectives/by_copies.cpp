#include "lowering/collectives/by_copies.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/collective.h"
#include "ir/groups.h"
#include "ir/op_registry.h"
#include "lowering/collectives/sum_chunks.h"
#include "lowering/passes.h"
#include "lowering/plan/cost.h"
#include "lowering/schedule/overlap_bound.h"

namespace braid {
namespace {

constexpr std::string_view kPass = "lower_collectives";

constexpr ReasonCode kBeside{
    "lower_collectives.by_copies",
    "{algorithm}: copies over {ranks} ranks of '{group}', {bytes} bytes: about {us:.1f} us on "
    "{device}, {hidden:.1f} us of it hidden, {exposed:.1f} us until the result is there "
    "({other}: {other_us:.1f} us); they run beside the kernels until the wait"};
constexpr ReasonCode kOneRank{"lower_collectives.copies_of_one_rank",
                              "not by copies: its group has one rank"};
constexpr ReasonCode kOtherDim{
    "lower_collectives.copies_along",
    "not by copies: along dim {dim} the chunk of a rank is no piece of memory; expected dim 0"};
constexpr ReasonCode kOtherReduction{"lower_collectives.copies_reduce",
                                     "not by copies: found {op}; expected sum or avg"};

bool scatters(const Node& node) { return node.op->collective == CollectiveKind::kReduceScatter; }
bool is_candidate(const Node& node) {
  return node.op->collective == CollectiveKind::kAllGather || scatters(node);
}

Reason obstacle(const Graph& graph, const Node& node) {
  const std::int64_t ranks = group_of(graph, node).size;
  if (ranks == 1) return Reason(kOneRank);
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const Collective form = collective_of(graph, node, graph.type(node.inputs[i]));
    const std::size_t dim = form.reduce ? *form.scatter_dim : *form.gather_dim;
    if (dim != 0) return Reason(kOtherDim, dim);
    if (form.reduce && *form.reduce != ReduceOp::kSum && *form.reduce != ReduceOp::kAvg) {
      return Reason(kOtherReduction, *node.attr<std::string>("reduce_op"));
    }
  }
  return {};
}

/// Whether some op that the collective's kernel would compute with its result reads that.
bool has_epilogue(const Graph& graph, const std::vector<std::vector<NodeId>>& users,
                  ValueId result) {
  const auto any_user = [&](ValueId value, const auto& is) {
    return std::ranges::any_of(users[value], [&](NodeId id) { return is(graph.node(id)); });
  };
  const auto computes = [](const Node& node) {
    const OpClass c = node.op->op_class;
    return c == OpClass::kPointwise || c == OpClass::kNorm || c == OpClass::kReduction;
  };
  return any_user(result, [&](const Node& node) {
    return node.op->op_class == OpClass::kWait && any_user(node.outputs[0], computes);
  });
}

/// What follows copies on the compute stream: about a launch for the wait; and a kernel that reads
/// what was copied, to add up the chunks, or for the epilogue of a gather's kernel.
double finish_ns(const Graph& graph, const std::vector<std::vector<NodeId>>& users,
                 const Node& node, const DeviceModel& device) {
  double ns = device.launch_ns;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (!scatters(node)) {
      if (!has_epilogue(graph, users, node.outputs[i])) continue;
      const std::int64_t bytes = max_bytes(graph.type(node.outputs[i]), graph.symbols());
      ns += device.launch_ns + traffic_ns(static_cast<double>(bytes), device);
      continue;
    }
    const std::int64_t bytes = max_bytes(graph.type(node.inputs[i]), graph.symbols()) +
                               max_bytes(graph.type(node.outputs[i]), graph.symbols());
    ns += device.launch_ns + traffic_ns(static_cast<double>(bytes), device);
  }
  return ns;
}

}  // namespace

ByCopies::ByCopies(const Graph& graph, PassContext& context, Rewriter& rewrite)
    : graph_(graph), context_(context), rewrite_(rewrite) {
  const auto can = [&](const Node& node) {
    return is_asynchronous(node) && is_candidate(node) && group_of(graph, node).symmetric &&
           !obstacle(graph, node);
  };
  if (std::ranges::none_of(graph.nodes(), can)) return;
  // The schedule of the graph as it stands, were all of them copies. Other collectives over
  // symmetric memory will be kernels, which use the same links and hide nothing.
  OverlapProblem problem(graph, context.target);
  const DeviceModel& device = device_model(context.target);
  const Bindings bindings = max_bindings(graph.symbols());
  for (std::size_t id = 0; id < problem.size(); ++id) {
    const Node& node = graph.nodes()[id];
    NodeEstimate& estimate = problem.estimates[id];
    if (can(node)) {
      estimate.ns = device.launch_ns +
                    collective_node_ns(graph, node, Algorithm::kByCopies, bindings, device);
    } else if (node.op->op_class == OpClass::kCollective && group_of(graph, node).symmetric) {
      estimate.asynchronous = false;
      estimate.ns = 0;
    }
  }
  for (NodeId& waited : problem.waited) {
    if (waited >= 0 && !problem.estimate(waited).asynchronous) waited = -1;
  }
  const std::vector<double> hidden = hidden_ns(problem);
  const std::vector<std::vector<NodeId>> users = graph.users();
  for (std::size_t id = 0; id < problem.size(); ++id) {
    const Node& node = graph.nodes()[id];
    if (!can(node)) continue;
    const double copies_ns = problem.estimates[id].ns;
    estimates_[node.outputs[0]] = {
        .kernel_ns = device.launch_ns +
                     collective_node_ns(graph, node, Algorithm::kOneShot, bindings, device),
        .copies_ns = copies_ns,
        .hidden_ns = hidden[id],
        .exposed_ns = copies_ns - hidden[id] + finish_ns(graph, users, node, device)};
  }
}

bool ByCopies::takes(const Node& node) {
  if (!is_candidate(node)) return false;
  if (const auto known = estimate(node)) {
    const bool pays = known->hidden_ns > 0 && known->exposed_ns < known->kernel_ns;
    const bool hides = read_options<CopiesOptions>(lower_collectives, context_.config).hide;
    return context_.config.by_copies || (hides && pays);
  }
  if (!context_.config.by_copies) return false;
  Reason reason = obstacle(graph_, node);
  if (reason) context_.missed(kPass, node.name, std::move(reason));
  return !reason;
}

std::optional<CopiesEstimate> ByCopies::estimate(const Node& node) const {
  const auto known = estimates_.find(node.outputs[0]);
  if (known == estimates_.end()) return {};
  return known->second;
}

ValueId ByCopies::add(const Node& node, std::string_view op, std::vector<ValueId> inputs,
                      Attrs attrs) {
  return rewrite_.add(fmt::format("{}_{}", node.name, op), op, std::move(inputs), std::move(attrs));
}

// The own chunk is copied last, so that no link waits for it.
void ByCopies::start(const Node& node, std::size_t i, ValueId operand) {
  Copies copies;
  copies.group = *node.attr<std::string>("group");
  if (const auto* reduce_op = node.attr<std::string>("reduce_op")) copies.reduce_op = *reduce_op;
  const std::string_view op = copies.reduce_op.empty() ? "copy_from_peer" : "copy_chunk_from_peer";
  const std::int64_t ranks = graph_.groups().find(copies.group)->second.size;
  copies.chunks.resize(ranks);
  for (std::int64_t k = 1; k <= ranks; ++k) {
    const std::int64_t shift = k % ranks;
    copies.chunks[shift] = add(node, op, {operand}, {{"group", copies.group}, {"shift", shift}});
  }
  under_way_.emplace(node.outputs[i], std::move(copies));
}

void ByCopies::started(const Node& node) {
  const std::string& group = *node.attr<std::string>("group");
  std::int64_t bytes = 0;
  for (const ValueId value : node.outputs) bytes += max_bytes(graph_.type(value), graph_.symbols());
  const CopiesEstimate about = estimate(node).value_or(CopiesEstimate());
  context_.applied(
      kPass, node.name,
      Reason(kBeside, algorithm_name(Algorithm::kByCopies),
             graph_.groups().find(group)->second.size, group, bytes, about.copies_ns / 1e3,
             device_model(context_.target).name, about.hidden_ns / 1e3, about.exposed_ns / 1e3,
             algorithm_name(Algorithm::kOneShot), about.kernel_ns / 1e3));
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
