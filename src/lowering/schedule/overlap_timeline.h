#pragma once

#include <string>
#include <vector>

#include "braid/graph.h"
#include "lowering/schedule/estimates.h"

namespace braid {

// When each node of a graph would run, by estimates: nodes one after the other, asynchronous
// collectives beside them, also one after the other, from their place in the order on or when the
// one before has ended. A wait takes what is left of its own collective. So a collective and what
// is beside it take as long as the longer of both, and no compute is beside two of them.

struct TimelineStep {
  double begin_ns = 0, end_ns = 0;
  bool in_flight = false;  ///< some collective goes on while it runs
};

struct OverlapTimeline {
  std::vector<TimelineStep> steps;  ///< of each node
  double total_ns = 0;
  double comm_ns = 0;     ///< of all collectives that are waited for
  double exposed_ns = 0;  ///< what the waits take
};

/// For each node the asynchronous collective that it waits for, or -1.
[[nodiscard]] std::vector<NodeId> waited_collectives(const Graph& graph);

/// Runs nodes in some order, of which both arguments are.
class OverlapClock {
 public:
  OverlapClock(const std::vector<NodeEstimate>& estimates, const std::vector<NodeId>& waited)
      : estimates_(estimates), waited_(waited), ends_(estimates.size(), 0) {}

  TimelineStep run(NodeId id);
  [[nodiscard]] double now_ns() const { return now_; }
  /// When a collective that has run ends.
  [[nodiscard]] double end_ns(NodeId id) const { return ends_[id]; }
  [[nodiscard]] double total_ns() const { return now_ > links_free_ ? now_ : links_free_; }
  /// What the waits took.
  [[nodiscard]] double exposed_ns() const { return exposed_; }

 private:
  const std::vector<NodeEstimate>& estimates_;
  const std::vector<NodeId>& waited_;
  std::vector<double> ends_;  ///< of each asynchronous collective
  double now_ = 0, links_free_ = 0, exposed_ = 0;
};

[[nodiscard]] OverlapTimeline overlap_timeline(const Graph& graph,
                                               const std::vector<NodeEstimate>& estimates);

/// "all_reduce c(x): f32[4, 4] (12.300 us)", a kernel with the ops of its body.
[[nodiscard]] std::string node_summary(const Graph& graph, const Node& node, double ns);

/// The timeline as text, a line for each node, and its sums.
[[nodiscard]] std::string visualize_overlap(const Graph& graph, const Target& target);

}  // namespace braid
