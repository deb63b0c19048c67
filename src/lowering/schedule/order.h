#pragma once

#include <span>
#include <utility>
#include <vector>

#include "braid/graph.h"

namespace braid {

// Orders of the nodes of one graph: what the scheduling passes have in common.

/// For each node those that must stay before it: dependences(graph), and `more`.
class Predecessors {
 public:
  explicit Predecessors(const Graph& graph, std::span<const std::pair<NodeId, NodeId>> more = {});

  /// For each node those that must stay behind it.
  [[nodiscard]] Predecessors reversed() const;

  [[nodiscard]] std::span<const NodeId> of(NodeId id) const {
    const std::size_t at = id;
    return std::span(nodes_).subspan(first_[at], first_[at + 1] - first_[at]);
  }

 private:
  Predecessors(std::size_t count, std::span<const std::pair<NodeId, NodeId>> pairs);

  std::vector<std::size_t> first_;  ///< of each node, in nodes_
  std::vector<NodeId> nodes_;
};

/// Each collective, with the next one: who keeps these pairs lets no collective pass another one.
/// Ranks that run one program meet in its collectives in one order whatever it is, but a
/// communicator, or peers that wait for each other inside kernels, need it on every stream. They
/// are pairs of their own, no dependences: nothing else is to take them for uses of memory.
[[nodiscard]] std::vector<std::pair<NodeId, NodeId>> collective_order(const Graph& graph);

/// The graph's nodes as they stand.
[[nodiscard]] std::vector<NodeId> given_order(const Graph& graph);

/// For each asynchronous collective the compute nodes from its start to its first wait, as the
/// nodes stand in `order`; -1 for other nodes.
[[nodiscard]] std::vector<int> nodes_between(const Graph& graph, std::span<const NodeId> order);

/// The graph in that order. An order that is no permutation, or that breaks a dependence, is a bug
/// of the pass: throws kInternal.
[[nodiscard]] Graph scheduled(const Graph& graph, std::span<const NodeId> order);

}  // namespace braid
