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

[[nodiscard]] OverlapTimeline overlap_timeline(const Graph& graph,
                                               const std::vector<NodeEstimate>& estimates);

/// "all_reduce c(x): f32[4, 4] (12.300 us)", a kernel with the ops of its body.
[[nodiscard]] std::string node_summary(const Graph& graph, const Node& node, double ns);

/// The timeline as text, a line for each node, and its sums.
[[nodiscard]] std::string visualize_overlap(const Graph& graph, const Target& target);

}  // namespace braid
