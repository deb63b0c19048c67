#pragma once

#include <cstddef>
#include <vector>

#include "braid/graph.h"

namespace braid {

/// Groups nodes that are equal but for names, operands and hints, and whose operands have equal
/// types. Whatever depends on nothing else is computed once per group.
class NodeKinds {
 public:
  explicit NodeKinds(const Graph& graph);

  /// The representative of the node's group: the first node asked for.
  [[nodiscard]] NodeId of(NodeId id);

 private:
  [[nodiscard]] bool alike(const Node& a, const Node& b) const;

  const Graph& graph_;
  std::vector<NodeId> kinds_;  ///< for each node; -1: not asked yet
  std::unordered_multimap<std::size_t, NodeId> by_hash_;
};

inline void mix_hash(std::size_t& hash, std::size_t value) {
  hash ^= value + 0x9e3779b97f4a7c15U + (hash << 6U) + (hash >> 2U);
}

}  // namespace braid
