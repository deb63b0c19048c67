#include "lowering/collectives/by_communicator.h"

#include <fmt/format.h>

#include "ir/collective.h"
#include "ir/groups.h"
#include "ir/op_registry.h"
#include "lowering/plan/cost.h"

namespace braid {
namespace {

constexpr ReasonCode kBeside{
    "lower_collectives.beside",
    "{algorithm} over {ranks} ranks of '{group}', which has no symmetric memory, {bytes} bytes: "
    "about {us:.1f} us on {device} as a ring; it runs beside the kernels until its wait"};

/// The permutation that moves dim `from` in front of dim `to`.
std::vector<std::int64_t> moved(std::size_t rank, std::size_t from, std::size_t to) {
  std::vector<std::int64_t> order;
  for (std::size_t d = 0; d < rank; ++d) {
    if (d != from) order.push_back(static_cast<std::int64_t>(d));
  }
  order.insert(order.begin() + to, static_cast<std::int64_t>(from));
  return order;
}

/// The shape with dim `dim`, the number of ranks, merged into the one behind it.
Shape merged(Shape shape, std::size_t dim) {
  shape[dim] = shape[dim + 1] * shape[dim].constant();
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(dim) + 1);
  return shape;
}

}  // namespace

bool ByCommunicator::runs(const Node& node) const {
  if (node.op->op_class != OpClass::kCollective || !is_asynchronous(node)) return false;
  if (algorithm_of(node) == Algorithm::kByCommunicator) return true;
  return !group_of(graph_, node).symmetric;
}

void ByCommunicator::lower(const Node& node) {
  const std::string& group = *node.attr<std::string>("group");
  const Bindings bindings = max_bindings(graph_.symbols());
  const DeviceModel& device = device_model(context_.target);
  const bool alone = node.op->of_one.empty();
  std::int64_t bytes = 0;
  double ns = 0;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const ValueId result = add_collective(
        node, i, alone ? node.name : rewrite_.fresh_name(fmt::format("{}_{}", node.name, i)));
    const Graph& now = rewrite_.graph();
    ns += node_ns(now, now.node(now.value(result).producer), bindings, device);
    bytes += max_bytes(now.type(result), now.symbols());
    rewrite_.map(node.outputs[i], result);
    if (node.op->synchronous) {
      const ValueId waited = add(node, "wait_tensor", {result}, {});
      rewrite_.map(node.outputs[i], finished(node, result, waited));
    }
  }
  context_.applied("lower_collectives", node.name,
                   Reason(kBeside, algorithm_name(Algorithm::kByCommunicator),
                          graph_.groups().at(group).size, group, bytes, ns / 1e3, device.name));
}

ValueId ByCommunicator::add_collective(const Node& node, std::size_t operand,
                                       const std::string& name) {
  const ValueId old = node.inputs[operand];
  const Collective form = collective_of(graph_, node, graph_.type(old));
  Attrs attrs = node.attrs;
  set_algorithm(attrs, Algorithm::kByCommunicator);
  if (attrs.contains("dim")) attrs.insert_or_assign("dim", std::int64_t{0});
  attrs.erase("gather_dim");
  attrs.erase("shard_dim");
  const ValueId value = chunks_first(node, rewrite_(old), form.scatter_dim.value_or(0), form.ranks);
  Graph& graph = rewrite_.graph();
  const std::string_view op = node.op->collective == CollectiveKind::kShardDimAllToAll
                                  ? "all_to_all_single"
                              : node.op->of_one.empty() ? node.op_name()
                                                        : node.op->of_one;
  const NodeId id = graph.add_node(name, op, {value}, attrs);
  for (const auto& [key, hint] : node.hints) graph.set_hint(id, key, hint);
  const ValueId result = graph.node(id).outputs[0];
  if (form.gather_dim.value_or(0) != 0) gathered_[result] = {*form.gather_dim, form.ranks};
  return result;
}

void ByCommunicator::wait(const Node& node) {
  const ValueId collective = rewrite_(node.inputs[0]);
  const NodeId wait = rewrite_.copy(node);
  rewrite_.map(node.outputs[0], finished(node, collective, rewrite_.graph().node(wait).outputs[0]));
}

ValueId ByCommunicator::finished(const Node& node, ValueId collective, ValueId waited) {
  const auto found = gathered_.find(collective);
  return found == gathered_.end() ? waited : parts_along(node, waited, found->second);
}

ValueId ByCommunicator::add(const Node& node, std::string_view op, std::vector<ValueId> inputs,
                            Attrs attrs) {
  return rewrite_.add(fmt::format("{}_{}", node.name, op), op, std::move(inputs), std::move(attrs));
}

ValueId ByCommunicator::chunks_first(const Node& node, ValueId operand, std::size_t dim,
                                     std::int64_t ranks) {
  if (dim == 0) return operand;
  const auto shape = [&](ValueId value) { return rewrite_.graph().type(value).shape; };
  Shape cut = shape(operand);
  cut[dim] = *cut[dim].divide_exactly(ranks, graph_.symbols());
  cut.insert(cut.begin() + dim, ranks);
  const ValueId parts = add(node, "view", {operand}, {{"shape", cut}});
  const ValueId first = add(node, "permute", {parts}, {{"dims", moved(cut.size(), dim, 0)}});
  return add(node, "view", {first}, {{"shape", merged(shape(first), 0)}});
}

ValueId ByCommunicator::parts_along(const Node& node, ValueId result, const Gathered& gathered) {
  const auto shape = [&](ValueId value) { return rewrite_.graph().type(value).shape; };
  Shape cut = shape(result);
  cut[0] = *cut[0].divide_exactly(gathered.ranks, graph_.symbols());
  cut.insert(cut.begin(), gathered.ranks);
  const ValueId parts = add(node, "view", {result}, {{"shape", cut}});
  const ValueId there =
      add(node, "permute", {parts}, {{"dims", moved(cut.size(), 0, gathered.dim)}});
  return add(node, "view", {there}, {{"shape", merged(shape(there), gathered.dim)}});
}

}  // namespace braid
