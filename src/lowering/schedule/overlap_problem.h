#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "braid/graph.h"
#include "lowering/schedule/estimates.h"
#include "lowering/schedule/memory_timeline.h"
#include "lowering/schedule/order.h"
#include "lowering/schedule/overlap_timeline.h"

namespace braid {

// The problem that `overlap` (overlap.cpp) solves: the nodes of a graph with their times,
// dependences and memory. Collectives keep their order.

/// The cost of an order: first its nanoseconds, then its memory peak.
struct OrderCost {
  double total_ns = 0, exposed_ns = 0;
  std::int64_t peak = 0;
};
/// Whether `ns` is less by more than rounding.
[[nodiscard]] bool takes_less(double ns, double than_ns);
[[nodiscard]] bool is_better(const OrderCost& a, const OrderCost& b);

class OverlapProblem {
 public:
  OverlapProblem(const Graph& graph, const Target& target);

  [[nodiscard]] std::size_t size() const { return estimates.size(); }
  [[nodiscard]] const NodeEstimate& estimate(NodeId id) const { return estimates[id]; }
  [[nodiscard]] std::span<const NodeId> needs(NodeId id) const { return predecessors.of(id); }
  [[nodiscard]] std::span<const NodeId> users(NodeId id) const { return successors.of(id); }
  /// The total time of collectives that are waited for, and of all other nodes.
  [[nodiscard]] double comm_ns() const;
  [[nodiscard]] double compute_ns() const;
  /// The cost of an order. Linear time.
  [[nodiscard]] OrderCost cost(std::span<const NodeId> order) const;

  std::vector<NodeEstimate> estimates;
  std::vector<NodeId> waited;  ///< waited_collectives
  Predecessors predecessors, successors;
  MemoryUse use;
};

}  // namespace braid
