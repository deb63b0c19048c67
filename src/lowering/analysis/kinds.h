#pragma once

#include <cstddef>
#include <unordered_map>
#include <vector>

#include "braid/graph.h"

namespace braid {

/// Which nodes of a graph are alike: equal but for names, operands and hints, with operands of
/// equal types. What depends on nothing else is worked out once for all of them.
class NodeKinds {
 public:
  explicit NodeKinds(const Graph& graph);

  /// The first node asked for that is like this one.
  [[nodiscard]] NodeId of(NodeId id);

 private:
  [[nodiscard]] bool alike(const Node& a, const Node& b) const;

  const Graph& graph_;
  std::vector<NodeId> kinds_;  ///< of each node; -1: not asked yet
  std::unordered_multimap<std::size_t, NodeId> by_hash_;
};

/// Makes `value` a part of the hash.
inline void mix_hash(std::size_t& hash, std::size_t value) {
  hash ^= value + 0x9e3779b97f4a7c15U + (hash << 6U) + (hash >> 2U);
}

}  // namespace braid
