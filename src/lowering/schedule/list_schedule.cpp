#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <tuple>
#include <vector>

#include "ir/op_registry.h"
#include "lowering/analysis/dependences.h"
#include "lowering/passes.h"
#include "lowering/schedule/estimates.h"
#include "lowering/schedule/memory_timeline.h"
#include "lowering/schedule/order.h"

// sink_waits, raise_comms, reorder_compute_for_overlap: greedy list scheduling. Only the order of
// nodes changes.
//
// Among the nodes whose dependences have run, the one with the lowest score comes next. The score
// is
//   1. raising: the place, among the collectives, of the first collective that it is or leads to;
//   2. sinking: waits after everything else;
//   3. its place in the old order.
// reorder_compute_for_overlap does both, and places behind each asynchronous collective as many
// ready compute nodes as fill the collective's time. It does not bound memory. Synchronous
// collectives (lowered ones) are raised too; nothing can overlap them. Collectives keep their
// order. The scores are those of PyTorch's Inductor (torch/_inductor/comms.py, _schedule_for_comm).
namespace braid {
namespace {

constexpr ReasonCode kNodesBetween{
    "list_schedule.nodes_between",
    "{now} compute nodes from its start to its first wait; {before} before"};

constexpr ReasonCode kOnlyMoved{"list_schedule.only_moved",
                                "stands elsewhere; no collective has more or less beside it"};

struct Goal {
  bool raise = false, sink = false, overlap = false;
};

class Scheduler {
 public:
  Scheduler(const Graph& graph, const PassContext& context, Goal goal)
      : goal_(goal),
        estimates_(estimate_nodes(graph, context.target)),
        later_(graph.nodes().size()),
        unmet_(graph.nodes().size(), 0),
        leads_to_(graph.nodes().size(), std::numeric_limits<int>::max()) {
    for (const auto& pairs : {dependences(graph), collective_order(graph)}) {
      for (const auto& [first, second] : pairs) {
        later_[first].push_back(second);
        ++unmet_[second];
      }
    }
    if (goal_.raise) find_collectives();
  }

  std::vector<NodeId> run() {
    for (std::size_t id = 0; id < unmet_.size(); ++id) {
      if (unmet_[id] == 0) push(id);
    }
    while (!compute_.empty() || !others_.empty()) {
      const bool computes =
          others_.empty() || (!compute_.empty() && compute_.top() < others_.top());
      const NodeId id = pop(computes ? compute_ : others_);
      if (!goal_.overlap || !estimate(id).asynchronous) continue;
      for (double left = estimate(id).ns; left > 0 && !compute_.empty();) {
        left -= estimate(pop(compute_)).ns;
      }
    }
    return std::move(order_);
  }

 private:
  using Score = std::tuple<int, bool, NodeId>;
  using Ready = std::priority_queue<Score, std::vector<Score>, std::greater<>>;

  const NodeEstimate& estimate(NodeId id) const { return estimates_[id]; }

  void find_collectives() {
    int count = 0;
    for (std::size_t id = 0; id < leads_to_.size(); ++id) {
      if (estimates_[id].collective) leads_to_[id] = count++;
    }
    for (std::size_t id = leads_to_.size(); id-- > 0;) {
      for (NodeId later : later_[id]) leads_to_[id] = std::min(leads_to_[id], leads_to_[later]);
    }
  }

  void push(NodeId id) {
    const NodeEstimate& node = estimate(id);
    Ready& ready = node.collective || node.wait ? others_ : compute_;
    ready.emplace(leads_to_[id], goal_.sink && node.wait, id);
  }

  NodeId pop(Ready& ready) {
    const NodeId id = std::get<2>(ready.top());
    ready.pop();
    order_.push_back(id);
    for (NodeId later : later_[id]) {
      if (--unmet_[later] == 0) push(later);
    }
    return id;
  }

  Goal goal_;
  std::vector<NodeEstimate> estimates_;
  std::vector<std::vector<NodeId>> later_;  ///< for each node: those that must follow it
  std::vector<int> unmet_;                  ///< for each node: predecessors that have not run
  std::vector<int> leads_to_;               ///< the first collective that a node leads to, by its
                                            ///< place among them
  Ready compute_, others_;
  std::vector<NodeId> order_;
};

std::optional<Graph> schedule(std::string_view pass, Goal goal, const Graph& graph,
                              PassContext& context) {
  const std::vector<NodeId> order = Scheduler(graph, context, goal).run();
  const std::vector<NodeId> before = given_order(graph);
  if (order == before) return std::nullopt;
  base_peak(MemoryUse(graph), graph, context);
  const std::vector<int> was = nodes_between(graph, before);
  const std::vector<int> now = nodes_between(graph, order);
  for (std::size_t id = 0; id < now.size(); ++id) {
    if (now[id] == was[id]) continue;
    context.applied(pass, graph.nodes()[id].name, Reason(kNodesBetween, now[id], was[id]));
  }
  if (now == was) {
    const auto moved = std::mismatch(order.begin(), order.end(), before.begin()).first;
    context.applied(pass, graph.node(*moved).name, Reason(kOnlyMoved));
  }
  return scheduled(graph, order);
}

}  // namespace

constinit const Pass sink_waits{
    .name = "sink_waits",
    .summary = "waits move as far back as they can",
    .run = [](const Graph& graph, PassContext& context) -> std::optional<Graph> {
      return schedule("sink_waits", {.sink = true}, graph, context);
    },
    .by_default = false,
    .schedules = true};

constinit const Pass raise_comms{
    .name = "raise_comms",
    .summary = "collectives, and what leads to them, move as far forward as they can",
    .run = [](const Graph& graph, PassContext& context) -> std::optional<Graph> {
      return schedule("raise_comms", {.raise = true}, graph, context);
    },
    .by_default = false,
    .schedules = true};

constinit const Pass reorder_compute_for_overlap{
    .name = "reorder_compute_for_overlap",
    .summary = "behind each collective as much independent compute as it takes time",
    .run = [](const Graph& graph, PassContext& context) -> std::optional<Graph> {
      return schedule("reorder_compute_for_overlap", {.raise = true, .sink = true, .overlap = true},
                      graph, context);
    },
    .by_default = false,
    .schedules = true};

}  // namespace braid
