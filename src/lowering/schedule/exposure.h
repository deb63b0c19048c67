#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lowering/schedule/estimates.h"
#include "lowering/schedule/order.h"

namespace braid {

/// How long a collective takes, and what is computed beside it.
struct Exposure {
  double comm_ns = 0, comp_ns = 0;
  /// Compute further from the wait than this is beside another collective: more of it there adds
  /// nothing.
  bool is_closed = false;

  /// Below 0 where more is computed than it takes.
  [[nodiscard]] double ns() const { return comm_ns - comp_ns; }
};

/// Appends a piece of a list for people, which ends in "..." where it becomes long.
void append_text(std::string& text, std::string_view piece);

/// Estimates by walking along an order from one node, `window` nodes far.
class Exposures {
 public:
  Exposures(const Graph& graph, const std::vector<NodeEstimate>& estimates,
            const Predecessors& predecessors, std::size_t window)
      : graph_(graph),
        estimates_(estimates),
        predecessors_(predecessors),
        window_(window),
        met_(graph.nodes().size(), 0) {}

  /// Of the asynchronous collective at that place: what runs from it to the first node that needs
  /// it, to a synchronous collective, or to the wait of another collective that started meanwhile:
  /// transfers come one after the other, so what runs behind that is beside the other one's.
  /// `text` takes a list of what was met.
  [[nodiscard]] Exposure of_collective(std::span<const NodeId> order, std::size_t at,
                                       std::string* text = nullptr);
  /// Of the wait at that place: what runs from its collective to it. What runs before a
  /// synchronous collective, or before the start of a collective that is waited for in between,
  /// is all that counts. A wait of what no collective made has nothing to wait for.
  [[nodiscard]] Exposure of_wait(std::span<const NodeId> order, std::size_t at,
                                 std::string* text = nullptr);

 private:
  [[nodiscard]] const NodeEstimate& estimate(NodeId id) const { return estimates_[id]; }
  /// The node whose result a wait waits for, or -1.
  [[nodiscard]] NodeId waited_for(NodeId wait) const;
  void meet(NodeId id) { met_[id] = walk_; }
  [[nodiscard]] bool has_met(NodeId id) const { return id >= 0 && met_[id] == walk_; }
  void add_text(std::string* text, NodeId id) const;

  const Graph& graph_;
  const std::vector<NodeEstimate>& estimates_;
  const Predecessors& predecessors_;
  std::size_t window_;
  std::vector<int> met_;  ///< of each collective the last walk that met it, or its wait
  int walk_ = 0;
};

}  // namespace braid
