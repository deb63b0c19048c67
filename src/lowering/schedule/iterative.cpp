#include "lowering/schedule/iterative.h"

#include <utility>

#include "ir/fail.h"

namespace braid {
namespace {

constexpr ReasonCode kMoved{"schedule.moved",
                            "passes {moves} nodes, with {grouped} that it takes along; exposed "
                            "{now:.1f} us, {before:.1f} before{why}"};
constexpr ReasonCode kThen{"schedule.then", "; then {why}"};
constexpr ReasonCode kNowhere{"schedule.nowhere", "nothing stands where it could move"};

constexpr std::int64_t kWindow = 1000;

}  // namespace

IterativePass::IterativePass(std::string_view pass, const Graph& graph, PassContext& context,
                             const IterativeSettings& settings)
    : pass_(pass),
      graph_(graph),
      context_(context),
      settings_(settings),
      window_(context.config.reorder_sink_window.value_or(kWindow)),
      estimates_(estimate_nodes(
          graph, context.target,
          context.config.reorder_sink_runtime_estimations_comm_mult.value_or(2),
          context.config.reorder_sink_runtime_estimations_non_comm_mult.value_or(1))),
      predecessors_(graph),
      use_(graph),
      timeline_(use_, given_order(graph)),
      exposures_(graph, estimates_, predecessors_, window_ == 0 ? graph.nodes().size() : window_),
      base_peak_(base_peak(use_, graph, context)),
      limit_(memory_limit(base_peak_, settings.budget)),
      marks_(graph.nodes().size(), 0) {}

Reason IterativePass::stops(const Exposure& exposure, const MoveRecord& record) const {
  if (settings_.by_estimates && exposure.ns() < -settings_.extra_overlap * exposure.comm_ns) {
    return Reason(limiting::kUnexposed);
  }
  const auto reached =
      static_cast<std::size_t>(record.moves) + static_cast<std::size_t>(record.grouped);
  return window_ > 0 && reached >= window_ ? Reason(limiting::kWindow, window_) : Reason();
}

Reason IterativePass::count_move(const MemoryTimeline::Move& move, NodeId candidate,
                                 MoveRecord& record) const {
  if (!move.done) return Reason(limiting::kPeakMemory, move.peak, base_peak_, name(candidate));
  ++record.moves;
  if (wants_text()) append_text(record.moved_past, "+" + name(candidate));
  if (context_.config.reorder_iterative_debug_memory_recompute &&
      timeline_.levels() != memory_levels(use_, order())) {
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
    constexpr double kNsPerUs = 1e3;
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
