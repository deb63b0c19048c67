#pragma once

#include <span>
#include <utility>
#include <vector>

#include "braid/graph.h"

namespace braid {

// Orders of the nodes of one graph, shared by the scheduling passes.

/// For each node those that must stay before it: dependences(graph) and `more`.
class Predecessors {
 public:
  explicit Predecessors(const Graph& graph, std::span<const std::pair<NodeId, NodeId>> more = {});

  /// For each node those that must stay behind it.
  [[nodiscard]] Predecessors reversed() const;

  [[nodiscard]] std::span<const NodeId> of(NodeId id) const {
    return std::span(nodes_).subspan(first_[id], first_[id + 1] - first_[id]);
  }

 private:
  Predecessors(std::size_t count, std::span<const std::pair<NodeId, NodeId>> pairs);

  std::vector<std::size_t> first_;  ///< for each node: start in nodes_
  std::vector<NodeId> nodes_;
};

/// Pairs of consecutive collectives; keeping them means that no collective passes another one. All
/// ranks run one program, so they meet in its collectives in one order, whatever it is. But a
/// communicator, or peers that wait for each other inside kernels, need that order on every stream.
/// The pairs are separate from dependences, which are about memory.
[[nodiscard]] std::vector<std::pair<NodeId, NodeId>> collective_order(const Graph& graph);

[[nodiscard]] std::vector<NodeId> given_order(const Graph& graph);

/// For each asynchronous collective the compute nodes from its start to its first wait, as the
/// nodes stand in `order`; -1 for other nodes.
[[nodiscard]] std::vector<int> nodes_between(const Graph& graph, std::span<const NodeId> order);

/// The graph in that order. Throws kInternal for an order that is no permutation or breaks a
/// dependence, which is a bug of the pass.
[[nodiscard]] Graph scheduled(const Graph& graph, std::span<const NodeId> order);

}  // namespace braid
