#include "lowering/schedule/iterative.h"

#include <utility>

#include "ir/fail.h"
#include "lowering/passes.h"

namespace braid {
namespace {

constexpr ReasonCode kMoved{"schedule.moved",
                            "passes {moves} nodes, with {grouped} that it takes along; exposed "
                            "{now:.1f} us, {before:.1f} before{why}"};
constexpr ReasonCode kThen{"schedule.then", "; then {why}"};
constexpr ReasonCode kNowhere{"schedule.nowhere", "nothing stands where it could move"};

}  // namespace

IterativePass::IterativePass(const Pass& pass, const Graph& graph, PassContext& context)
    : pass_(pass.name),
      graph_(graph),
      context_(context),
      settings_(read_options<IterativeSettings>(pass, context.config)),
      shared_(read_options<SharedSettings>(reorder_communication_preserving_peak_memory,
                                           context.config)),
      estimates_(estimate_nodes(graph, context.target, shared_.comm_mult, shared_.non_comm_mult)),
      predecessors_(graph),
      use_(graph),
      timeline_(use_, given_order(graph)),
      exposures_(graph, estimates_, predecessors_,
                 shared_.window == 0 ? graph.nodes().size() : shared_.window),
      base_peak_(base_peak(use_, graph, context)),
      limit_(memory_limit(base_peak_, settings_.budget)),
      marks_(graph.nodes().size(), 0) {}

Reason IterativePass::stops(const Exposure& exposure, const MoveRecord& record) const {
  if (settings_.by_estimates && exposure.ns() < -settings_.extra_overlap * exposure.comm_ns) {
    return Reason(limiting::kUnexposed);
  }
  const std::int64_t window = shared_.window;
  const bool is_through = window > 0 && record.moves + record.grouped >= window;
  return is_through ? Reason(limiting::kWindow, window) : Reason();
}

Reason IterativePass::count_move(const MemoryTimeline::Move& move, NodeId candidate,
                                 MoveRecord& record) const {
  if (!move.done) return Reason(limiting::kPeakMemory, move.peak, base_peak_, name(candidate));
  ++record.moves;
  if (wants_text()) append_text(record.moved_past, "+" + name(candidate));
  if (shared_.recompute && timeline_.levels() != memory_levels(use_, order())) {
    throw_internal(std::string(pass_), "memory is not what it was tracked to be after {} passed {}",
                   record.node, name(candidate));
  }
  return {};
}

MoveRecord IterativePass::begin_record(NodeId id, const Exposure& exposure) {
  ++seen_;
  MoveRecord record;
  record.pass = pass_;
  record.node = name(id);
  record.initial_exposed_ns = exposure.ns();
  return record;
}

void IterativePass::end_record(MoveRecord record, const Exposure& exposure,
                               const std::string& overlap) {
  record.comm_ns = exposure.comm_ns;
  record.comp_ns = exposure.comp_ns;
  record.final_exposed_ns = exposure.ns();
  record.overlap = overlap;
  const Reason& why = record.limiting_factor;
  if (record.moves > 0) {
    context_.applied(
        pass_, record.node,
        Reason(kMoved, record.moves, record.grouped, record.final_exposed_ns / kNsPerUs,
               record.initial_exposed_ns / kNsPerUs, why ? Reason(kThen, why) : Reason()));
  } else {
    context_.missed(pass_, record.node, why ? why : Reason(kNowhere));
  }
  if (context_.move_records != nullptr) context_.move_records->push_back(std::move(record));
}

std::optional<Graph> IterativePass::finish() const {
  if (std::ranges::is_sorted(order())) return std::nullopt;
  return scheduled(graph_, order());
}

}  // namespace braid
