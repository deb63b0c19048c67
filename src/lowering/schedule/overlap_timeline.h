#pragma once

#include <string>
#include <vector>

#include "braid/graph.h"
#include "lowering/schedule/estimates.h"

namespace braid {

// The estimated time at which each node of a graph runs. Compute nodes run one after the other.
// Asynchronous collectives run beside them, also one after the other, each from its place in the
// order on or when the one before has ended. A wait takes what is left of its own collective. So a
// collective and the compute beside it take as long as the longer of both, and no compute overlaps
// two collectives.

struct TimelineStep {
  double begin_ns = 0, end_ns = 0;
  bool in_flight = false;  ///< some collective is in flight while it runs
};

struct OverlapTimeline {
  std::vector<TimelineStep> steps;  ///< for each node
  double total_ns = 0;
  double comm_ns = 0;     ///< sum of all collectives that are waited for
  double exposed_ns = 0;  ///< time of the waits
};

/// For each node the asynchronous collective that it waits for, or -1.
[[nodiscard]] std::vector<NodeId> waited_collectives(const Graph& graph);

/// Plays nodes in some order and keeps the time. Both arguments are of the graph.
class OverlapClock {
 public:
  OverlapClock(const std::vector<NodeEstimate>& estimates, const std::vector<NodeId>& waited)
      : estimates_(estimates), waited_(waited), ends_(estimates.size(), 0) {}

  TimelineStep run(NodeId id);
  [[nodiscard]] double now_ns() const { return now_; }
  /// When a collective that has run ends.
  [[nodiscard]] double end_ns(NodeId id) const { return ends_[id]; }
  [[nodiscard]] double total_ns() const { return now_ > links_free_ ? now_ : links_free_; }
  /// The time that the waits took.
  [[nodiscard]] double exposed_ns() const { return exposed_; }

 private:
  const std::vector<NodeEstimate>& estimates_;
  const std::vector<NodeId>& waited_;
  std::vector<double> ends_;  ///< for each asynchronous collective
  double now_ = 0, links_free_ = 0, exposed_ = 0;
};

[[nodiscard]] OverlapTimeline overlap_timeline(const Graph& graph,
                                               const std::vector<NodeEstimate>& estimates);

/// A line such as "all_reduce c(x): f32[4, 4] (12.300 us)"; a kernel shows the ops of its body.
[[nodiscard]] std::string node_summary(const Graph& graph, const Node& node, double ns);

/// The timeline as text, one line per node, with totals.
[[nodiscard]] std::string visualize_overlap(const Graph& graph, const Target& target);

}  // namespace braid
