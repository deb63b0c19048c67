
#include "lowering/passes.h"
#include "lowering/schedule/iterative.h"

// reorder_communication_preserving_peak_memory: moves asynchronous collectives, from the first on,
// towards the beginning, past one neighbour after the other. Only the order of nodes changes.
//
// A neighbour that the collective needs is taken along: the collective is the last of a group that
// moves together. A neighbour that cannot be taken along stops it: an asynchronous collective, or a
// matmul, which may hide another collective; by estimates, matmuls are taken along where that pays.
// It also stops before another collective, and where the memory peak would grow by more than a
// share of the peak before the first scheduling pass. By estimates, it passes
//   - compute only where it gains more than the waits in its group lose;
//   - a collective only where that does not lose the compute in its group,
// until the compute beside it takes (1 + extra) times as long as it does.
//
// After _reorder_communication_preserving_peak_memory_internal of PyTorch's Inductor
// (torch/_inductor/comms.py), which tracks memory less exactly and lets collectives pass each other
// by default.
namespace braid {
namespace {

constexpr ReasonCode kExposesWaits{"schedule.exposes_waits",
                                   "candidate '{candidate}' has compute {ns:.0f}, group contains "
                                   "waits, total_exposed_delta {delta:.0f}"};
constexpr ReasonCode kExposesCollective{
    "schedule.exposes_collective", "candidate '{candidate}' is collective, group_runtime {ns:.0f}"};

class Reorder : IterativePass {
 public:
  using IterativePass::IterativePass;

  std::optional<Graph> run() {
    // A collective's group stands in front of it, so nothing behind its place has moved yet.
    for (std::size_t at = 0; at + 1 < order().size() && !is_enough(); ++at) {
      if (estimate(order()[at]).asynchronous) raise(at);
    }
    return finish();
  }

 private:
  void raise(std::size_t at) {
    const NodeId collective = order()[at];
    Exposure exposure = exposures_.of_collective(order(), at);
    MoveRecord record = begin_record(collective, exposure);
    Group group{.head = at, .tail = at};
    begin_marks();
    mark_needs(collective);
    while (group.head > 0 && !record.limiting_factor) {
      record.limiting_factor = step(group, exposure, record);
    }
    std::string overlap;
    if (wants_text()) static_cast<void>(exposures_.of_collective(order(), group.tail, &overlap));
    end_record(std::move(record), exposure, overlap);
  }

  /// Takes the node in front of the group along, or passes it, or returns the reason to stop.
  Reason step(Group& group, Exposure& exposure, MoveRecord& record) {
    if (Reason why = stops(exposure, record)) return why;
    const NodeId candidate = order()[group.head - 1];
    if (!settings_.unsafe && estimate(candidate).collective) {
      return Reason(limiting::kCollectiveOrder, name(candidate));
    }
    if (is_marked(candidate)) {
      if (Reason why = why_not_grouped(candidate)) {
        return Reason(limiting::kDataDependence, name(candidate), std::move(why));
      }
      take_along(candidate, group);
      ++record.grouped;
      return {};
    }
    if (settings_.by_estimates) {
      if (Reason why = why_not_passed(candidate, group, exposure)) return why;
    }
    const MemoryTimeline::Move move = timeline_.move_back(group.head - 1, group.tail, limit_);
    if (Reason why = count_move(move, candidate, record)) return why;
    --group.head;
    --group.tail;
    if (estimate(candidate).collective) {
      exposure = exposures_.of_collective(order(), group.tail);
    } else {
      exposure.comp_ns += estimate(candidate).ns;
    }
    return {};
  }

  [[nodiscard]] Reason why_not_grouped(NodeId candidate) const {
    if (!settings_.through_collectives && estimate(candidate).asynchronous) {
      return Reason(limiting::kHoldsCollective);
    }
    if (!settings_.by_estimates && estimate(candidate).gemm) return Reason(limiting::kHoldsGemm);
    return {};
  }

  void take_along(NodeId candidate, Group& group) {
    --group.head;
    mark_needs(candidate);
    if (!settings_.by_estimates) return;
    const NodeEstimate& node = estimate(candidate);
    if (node.wait) group.exposures.push_back(exposures_.of_wait(order(), group.head));
    if (!node.asynchronous) group.ns += node.ns;
  }

  /// Marks the nodes that must stay before this one.
  void mark_needs(NodeId id) {
    for (NodeId needed : predecessors_.of(id)) mark(needed);
  }

  /// The reason not to pass the candidate, by estimates; else empty.
  [[nodiscard]] Reason why_not_passed(NodeId candidate, Group& group, const Exposure& exposure) {
    const NodeEstimate& node = estimate(candidate);
    if (!node.asynchronous && node.ns > 0 && !group.exposures.empty()) {
      double delta = exposed_ns(exposure, -node.ns) - exposed_ns(exposure);
      for (const Exposure& wait : group.exposures) {
        delta += exposed_ns(wait, node.ns) - exposed_ns(wait);
      }
      if (delta > 0) return Reason(kExposesWaits, name(candidate), node.ns, delta);
      for (Exposure& wait : group.exposures) wait.comp_ns -= node.ns;
    }
    if (node.asynchronous && group.ns > 0) {
      const Exposure other = exposures_.of_collective(order(), group.head - 1);
      if (exposed_ns(other, group.ns) > exposed_ns(other)) {
        return Reason(kExposesCollective, name(candidate), group.ns);
      }
    }
    return {};
  }
};

constexpr PassOption kOptions[] = {
    {.name = "reorder-sink-runtime-estimations-comm-mult",
     .variable = kVariable<&SharedSettings::comm_mult>,
     .meaning = "what estimates of collectives are multiplied by, of sink_waits_iterative, too"},
    {.name = "reorder-sink-runtime-estimations-non-comm-mult",
     .variable = kVariable<&SharedSettings::non_comm_mult>,
     .meaning = "the same of all other nodes"},
    {.name = "reorder-sink-window",
     .variable = kVariable<&SharedSettings::window>,
     .meaning = "how many nodes one passes or takes along at most, of sink_waits_iterative, too; "
                "0: no bound"},
    {.name = "reorder-iterative-debug-memory-recompute",
     .variable = kVariable<&SharedSettings::recompute>,
     .meaning = "check the tracked memory after each move, of sink_waits_iterative, too"},
    {.name = "reorder-iterative-use-runtime-estimations",
     .variable = kVariable<&IterativeSettings::by_estimates>,
     .meaning = "move by what is gained"},
    {.name = "reorder-iterative-extra-comm-comp-overlap",
     .variable = kVariable<&IterativeSettings::extra_overlap>,
     .meaning = "go on until compute takes so much longer than its collective (by estimates)"},
    {.name = "reorder-iterative-peak-memory-budget",
     .variable = kVariable<&IterativeSettings::budget>,
     .meaning = "share by which the peak of memory may grow over that before all scheduling"},
    {.name = "reorder-iterative-unsafe-collectives-reorder",
     .variable = kVariable<&IterativeSettings::unsafe>,
     .meaning = "collectives may pass each other"},
    {.name = "reorder-iterative-group-with-collectives",
     .variable = kVariable<&IterativeSettings::through_collectives>,
     .meaning = "a collective may take another one along"},
    {.name = "reorder-iterative-debug-limit-to-reorder",
     .variable = kVariable<&IterativeSettings::limit>,
     .meaning = "only the first so many collectives",
     .off = "all"},
};

}  // namespace

constinit const Pass reorder_communication_preserving_peak_memory{
    .name = "reorder_communication_preserving_peak_memory",
    .summary = "collectives move forward, one neighbour after the other, within a memory budget",
    .run = [](const Graph& graph, PassContext& context) -> std::optional<Graph> {
      const bool none = std::ranges::none_of(
          graph.nodes(), [](const Node& node) { return contains_collective(node); });
      if (none) return std::nullopt;
      return Reorder(reorder_communication_preserving_peak_memory, graph, context).run();
    },
    .by_default = false,
    .schedules = true,
    .options = kOptions};

}  // namespace braid
