#include "lowering/schedule/overlap_problem.h"

namespace braid {

bool takes_less(double ns, double than_ns) { return ns < than_ns - 1e-9 * than_ns; }

bool is_better(const OrderCost& a, const OrderCost& b) {
  if (takes_less(a.total_ns, b.total_ns)) return true;
  return !takes_less(b.total_ns, a.total_ns) && a.peak < b.peak;
}

OverlapProblem::OverlapProblem(const Graph& graph, const Target& target)
    : estimates(estimate_nodes(graph, target)),
      waited(waited_collectives(graph)),
      predecessors(graph, collective_order(graph)),
      successors(predecessors.reversed()),
      use(graph) {}

double OverlapProblem::comm_ns() const {
  double ns = 0;
  for (const NodeEstimate& node : estimates) ns += node.asynchronous ? node.ns : 0;
  return ns;
}

double OverlapProblem::compute_ns() const {
  double ns = 0;
  for (const NodeEstimate& node : estimates) ns += node.asynchronous ? 0 : node.ns;
  return ns;
}

OrderCost OverlapProblem::cost(std::span<const NodeId> order) const {
  OverlapClock clock(estimates, waited);
  for (NodeId id : order) static_cast<void>(clock.run(id));
  return {.total_ns = clock.total_ns(),
          .exposed_ns = clock.exposed_ns(),
          .peak = peak_memory(use, order)};
}

}  // namespace braid
