#pragma once

#include <map>
#include <vector>

#include "braid/graph.h"

namespace braid {

/// Records where memory is overwritten: a read that is moved must not pass a write.
class Writes {
 public:
  explicit Writes(const Graph& graph);

  /// Whether a node between `first` and `last` overwrites the memory that `value` names. An
  /// in-place collective writes until its wait.
  [[nodiscard]] bool between(ValueId value, NodeId first, NodeId last) const;

 private:
  std::vector<ValueId> storage_;                  ///< empty when nothing is ever overwritten
  std::map<ValueId, std::vector<NodeId>> nodes_;  ///< writers of each storage, ascending
};

}  // namespace braid
