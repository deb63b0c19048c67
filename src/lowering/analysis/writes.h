#pragma once

#include <map>
#include <vector>

#include "braid/graph.h"

namespace braid {

/// When memory is overwritten: whoever moves a read must not pass a write.
class Writes {
 public:
  explicit Writes(const Graph& graph);

  /// Whether a node after `first` and before `last` overwrites the memory that `value` names. An
  /// in-place collective writes until its wait.
  [[nodiscard]] bool between(ValueId value, NodeId first, NodeId last) const;

 private:
  std::vector<ValueId> storage_;                  ///< empty when nothing is ever overwritten
  std::map<ValueId, std::vector<NodeId>> nodes_;  ///< of each storage, ascending
};

}  // namespace braid
