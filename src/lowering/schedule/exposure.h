#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lowering/schedule/estimates.h"
#include "lowering/schedule/order.h"

namespace braid {

/// The time of a collective, and of the compute beside it.
struct Exposure {
  double comm_ns = 0, comp_ns = 0;
  /// Compute further from the wait runs beside another collective, so more of it does not help.
  bool is_closed = false;

  /// The exposed time; negative where there is more compute than the collective takes.
  [[nodiscard]] double ns() const { return comm_ns - comp_ns; }
};

/// Appends to a list for people, which ends in "..." once it is long.
void append_text(std::string& text, std::string_view piece);

/// Estimates exposure by walking along an order from one node, at most `window` nodes.
class Exposures {
 public:
  Exposures(const Graph& graph, const std::vector<NodeEstimate>& estimates,
            const Predecessors& predecessors, std::size_t window)
      : graph_(graph),
        estimates_(estimates),
        predecessors_(predecessors),
        window_(window),
        met_(graph.nodes().size(), 0) {}

  /// For the asynchronous collective at that place: the compute up to the first node that needs it,
  /// a synchronous collective, or the wait of another collective that started meanwhile (transfers
  /// run one after the other, so later compute is beside that one). `text` receives the nodes met.
  [[nodiscard]] Exposure of_collective(std::span<const NodeId> order, std::size_t at,
                                       std::string* text = nullptr);
  /// For the wait at that place: the compute since its collective. It counts only up to a
  /// synchronous collective, or to the start of a collective that is waited for in between. A wait
  /// for a value that no collective made has nothing to wait for.
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
  std::vector<int> met_;  ///< for each collective: the last walk that met it, or its wait
  int walk_ = 0;
};

}  // namespace braid
