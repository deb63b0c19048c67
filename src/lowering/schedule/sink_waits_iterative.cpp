#include <algorithm>

#include "ir/op_registry.h"
#include "lowering/passes.h"
#include "lowering/schedule/iterative.h"

// sink_waits_iterative: moves waits, from the last on, towards the end, past one neighbour after
// the other. Only the order of nodes changes.
//
// A neighbour that needs the wait, or a node of its group, is taken along: the wait is the first of
// a group that moves together. Waits, asynchronous collectives and, unless it moves by estimates,
// synchronous collectives and matmuls are not taken along and stop it. So does an asynchronous
// collective in its way, unless waits may pass them, and so does the memory budget. By estimates,
// it passes
//   - another wait only where the compute in its group does not leave that one exposed;
//   - compute only where it gains more than the collectives in its group lose,
// until the compute beside its collective takes (1 + extra) times as long as that.
//
// After _sink_waits_iterative_internal of PyTorch's Inductor (torch/_inductor/comms.py), with exact
// memory tracking and corrected losses.
namespace braid {
namespace {

constexpr ReasonCode kAsyncCollective{"schedule.async_collective",
                                      "candidate '{candidate}' contains_async_collective"};
constexpr ReasonCode kExposesWait{
    "schedule.exposes_wait",
    "candidate '{candidate}' is wait, exposed_before {before:.0f} vs exposed_after {after:.0f}"};
constexpr ReasonCode kExposesCollectives{"schedule.exposes_collectives",
                                         "candidate '{candidate}' has compute {ns:.0f}, group "
                                         "contains collectives, total_exposed_delta {delta:.0f}"};
constexpr ReasonCode kHoldsWait{"schedule.holds_wait", "contains a wait"};
constexpr ReasonCode kHoldsAsync{"schedule.holds_async", "contains_async_collective"};

class SinkWaits : IterativePass {
 public:
  using IterativePass::IterativePass;

  std::optional<Graph> run() {
    // A wait's group stands behind it, so nothing in front of its place has moved yet.
    for (std::size_t at = order().size() - 1; at > 0 && !is_enough(); --at) {
      if (estimate(order()[at]).wait) sink(at);
    }
    return finish();
  }

 private:
  void sink(std::size_t at) {
    const NodeId wait = order()[at];
    Exposure exposure = exposures_.of_wait(order(), at);
    MoveRecord record = begin_record(wait, exposure);
    Group group{.head = at, .tail = at};
    begin_marks();
    mark(wait);
    while (group.tail + 1 < order().size() && !record.limiting_factor) {
      record.limiting_factor = step(group, exposure, record);
    }
    std::string overlap;
    if (wants_text()) static_cast<void>(exposures_.of_wait(order(), group.head, &overlap));
    end_record(std::move(record), exposure, overlap);
  }

  /// Takes the node behind the group along, or passes it, or returns the reason to stop.
  Reason step(Group& group, Exposure& exposure, MoveRecord& record) {
    if (Reason why = stops(exposure, record)) return why;
    const NodeId candidate = order()[group.tail + 1];
    const NodeEstimate& node = estimate(candidate);
    if (!settings_.through_collectives && node.asynchronous) {
      return Reason(kAsyncCollective, name(candidate));
    }
    const bool depends = needs_group(candidate);
    if (depends || (group.collective && node.collective)) {
      Reason why = why_not_grouped(candidate);
      if (!why) {
        take_along(candidate, group);
        ++record.grouped;
        return {};
      }
      if (depends) return Reason(limiting::kDataDependence, name(candidate), std::move(why));
      if (!settings_.unsafe) return Reason(limiting::kCollectiveOrder, name(candidate));
    }
    if (settings_.by_estimates) {
      if (Reason why = why_not_passed(candidate, group, exposure)) return why;
    }
    const MemoryTimeline::Move move = timeline_.move_forward(group.head, group.tail + 1, limit_);
    if (Reason why = count_move(move, candidate, record)) return why;
    ++group.head;
    ++group.tail;
    if (node.collective || node.wait) {
      exposure = exposures_.of_wait(order(), group.head);
    } else if (!exposure.is_closed) {
      exposure.comp_ns += node.ns;
    }
    return {};
  }

  [[nodiscard]] bool needs_group(NodeId candidate) const {
    const std::span<const NodeId> needs = predecessors_.of(candidate);
    return std::ranges::any_of(needs, [&](NodeId id) { return is_marked(id); });
  }

  [[nodiscard]] Reason why_not_grouped(NodeId candidate) const {
    const NodeEstimate& node = estimate(candidate);
    if (node.wait) return Reason(kHoldsWait);
    if (node.asynchronous) return Reason(kHoldsAsync);
    if (settings_.by_estimates) return {};
    if (node.collective) return Reason(limiting::kHoldsCollective);
    if (node.gemm) return Reason(limiting::kHoldsGemm);
    return {};
  }

  void take_along(NodeId candidate, Group& group) {
    const NodeEstimate& node = estimate(candidate);
    ++group.tail;
    mark(candidate);
    group.ns += node.ns;  // none of its members is asynchronous
    if (!node.collective) return;
    group.collective = true;
    group.exposures.push_back(exposures_.of_collective(order(), group.tail));
  }

  /// The reason not to pass the candidate, by estimates; else empty.
  [[nodiscard]] Reason why_not_passed(NodeId candidate, Group& group, const Exposure& exposure) {
    const NodeEstimate& node = estimate(candidate);
    if (node.wait) {
      const Exposure other = exposures_.of_wait(order(), group.tail + 1);
      const double before = exposed_ns(other);
      const double after = exposed_ns(other, group.ns);
      if (after > before) return Reason(kExposesWait, name(candidate), before, after);
    }
    if (!node.asynchronous && node.ns > 0 && !group.exposures.empty()) {
      double delta = exposed_ns(exposure, exposure.is_closed ? 0 : -node.ns) - exposed_ns(exposure);
      for (const Exposure& collective : group.exposures) {
        delta += exposed_ns(collective, node.ns) - exposed_ns(collective);
      }
      if (delta > 0) return Reason(kExposesCollectives, name(candidate), node.ns, delta);
      for (Exposure& collective : group.exposures) collective.comp_ns -= node.ns;
    }
    return {};
  }
};

constexpr PassOption kOptions[] = {
    {.name = "sink-iterative-use-runtime-estimations",
     .variable = kVariable<&IterativeSettings::by_estimates>,
     .meaning = "move by what is gained"},
    {.name = "sink-iterative-extra-comm-comp-overlap",
     .variable = kVariable<&IterativeSettings::extra_overlap>,
     .meaning = "go on until compute takes so much longer than its collective (by estimates)"},
    {.name = "sink-iterative-peak-memory-budget",
     .variable = kVariable<&IterativeSettings::budget>,
     .meaning = "share by which the peak of memory may grow over that before all scheduling"},
    {.name = "sink-waits-iterative-unsafe-collectives-reorder",
     .variable = kVariable<&IterativeSettings::unsafe>,
     .meaning = "collectives may pass each other"},
    {.name = "sink-waits-iterative-swap-with-collectives",
     .variable = kVariable<&IterativeSettings::through_collectives>,
     .meaning = "waits may pass collectives"},
    {.name = "sink-waits-iterative-debug-limit-to-sink",
     .variable = kVariable<&IterativeSettings::limit>,
     .meaning = "only the last so many waits",
     .off = "all"},
};

}  // namespace

constinit const Pass sink_waits_iterative{
    .name = "sink_waits_iterative",
    .summary = "waits move back, one neighbour after the other, within a memory budget",
    .run = [](const Graph& graph, PassContext& context) -> std::optional<Graph> {
      const bool none = std::ranges::none_of(
          graph.nodes(), [](const Node& n) { return n.op->op_class == OpClass::kWait; });
      if (none) return std::nullopt;
      return SinkWaits(sink_waits_iterative, graph, context).run();
    },
    .by_default = false,
    .schedules = true,
    .options = kOptions};

}  // namespace braid
