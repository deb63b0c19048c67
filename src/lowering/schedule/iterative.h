#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "lowering/pass.h"
#include "lowering/schedule/estimates.h"
#include "lowering/schedule/exposure.h"
#include "lowering/schedule/memory_timeline.h"
#include "lowering/schedule/move_record.h"
#include "lowering/schedule/order.h"

namespace braid {

// Shared by reorder_communication_preserving_peak_memory and sink_waits_iterative: one collective
// (wait) after the other swaps places with its neighbours, alone or with a group of nodes that must
// come along, until a limiting factor stops it. Each keeps one order, whose memory a MemoryTimeline
// tracks.

/// Options of either pass.
struct IterativeSettings {
  bool by_estimates = false;  ///< move by estimated gain, else as far as possible
  /// By estimates: until the compute beside a collective takes (1 + extra) times as long as it.
  double extra_overlap = 0.5;
  /// How far the memory peak may grow over that before scheduling, as a share.
  double budget = 0.2;
  bool unsafe = false;                     ///< collectives may pass each other
  bool through_collectives = false;        ///< they may be taken along, or be passed by waits
  std::optional<std::int64_t> limit = {};  ///< of collectives or waits that move
};

/// Options of both passes, named after Inductor's as all of them are. They are records of
/// reorder_communication_preserving_peak_memory.
struct SharedSettings {
  double comm_mult = 2;        ///< factor on the estimates of collectives
  double non_comm_mult = 1;    ///< factor on those of other nodes
  std::int64_t window = 1000;  ///< how many nodes one may pass or take along, and how far its
                               ///< estimate looks ahead; 0: no limit
  bool recompute = false;      ///< compare the tracked memory with a fresh computation
};

namespace limiting {

constexpr ReasonCode kUnexposed{"schedule.unexposed", "unexposed by runtime estimations"};
constexpr ReasonCode kCollectiveOrder{"schedule.collective_order",
                                      "collective ordering: '{candidate}' is one"};
constexpr ReasonCode kDataDependence{
    "schedule.data_dependence",
    "data dependency detected: candidate '{candidate}', non_group_reason: {why}"};
constexpr ReasonCode kPeakMemory{"schedule.peak_memory",
                                 "peak memory new:{peak} vs base:{base}, with '{candidate}'"};
constexpr ReasonCode kWindow{"schedule.window", "{nodes} nodes are as far as it looks"};
constexpr ReasonCode kHoldsCollective{"schedule.holds_collective", "contains_collective"};
constexpr ReasonCode kHoldsGemm{"schedule.holds_gemm", "contains_gemm_like"};

}  // namespace limiting

class IterativePass {
 public:
  IterativePass(const Pass& pass, const Graph& graph, PassContext& context);

 protected:
  /// Neighbours in the order that move together.
  struct Group {
    std::size_t head = 0, tail = 0;   ///< its range in the order
    double ns = 0;                    ///< time of its members that are no asynchronous collectives
    bool collective = false;          ///< contains a collective
    std::vector<Exposure> exposures;  ///< of members that moving it may expose
  };

  [[nodiscard]] const std::vector<NodeId>& order() const { return timeline_.order(); }
  [[nodiscard]] const NodeEstimate& estimate(NodeId id) const { return estimates_[id]; }
  [[nodiscard]] const std::string& name(NodeId id) const { return graph_.node(id).name; }

  /// Starts a new set of marked nodes, for `is_marked`.
  void begin_marks() { ++mark_; }
  void mark(NodeId id) { marks_[id] = mark_; }
  [[nodiscard]] bool is_marked(NodeId id) const { return marks_[id] == mark_; }

  /// Why a node with that exposure stops after those moves.
  [[nodiscard]] Reason stops(const Exposure& exposure, const MoveRecord& record) const;
  /// Records a move, or the reason of its refusal.
  Reason count_move(const MemoryTimeline::Move& move, NodeId candidate, MoveRecord& record) const;
  /// Whether the pass has handled as many collectives or waits as it may.
  [[nodiscard]] bool is_enough() const { return settings_.limit && seen_ >= *settings_.limit; }
  [[nodiscard]] MoveRecord begin_record(NodeId id, const Exposure& exposure);
  void end_record(MoveRecord record, const Exposure& exposure, const std::string& overlap);
  [[nodiscard]] bool wants_text() const { return context_.move_records != nullptr; }
  /// The graph in the new order; nothing where the order is unchanged.
  [[nodiscard]] std::optional<Graph> finish() const;

  std::string_view pass_;
  const Graph& graph_;
  PassContext& context_;
  IterativeSettings settings_;
  SharedSettings shared_;
  std::vector<NodeEstimate> estimates_;
  Predecessors predecessors_;
  MemoryUse use_;
  MemoryTimeline timeline_;
  Exposures exposures_;
  std::int64_t base_peak_ = 0;
  std::int64_t limit_ = 0;  ///< limit of the memory peak
  std::int64_t seen_ = 0;

 private:
  std::vector<int> marks_;
  int mark_ = 0;
};

/// The exposed part of a collective, after `more` compute leaves its side.
[[nodiscard]] inline double exposed_ns(const Exposure& exposure, double more = 0) {
  return std::max(0.0, exposure.ns() + more);
}

}  // namespace braid
