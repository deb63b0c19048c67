#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "braid/graph.h"
#include "ir/expr.h"

namespace braid {

/// An input of a body as a value sees it through views: the element at coordinates c is at the sum
/// of (first + c) * stride.
struct InMemory {
  struct Along {
    Dim extent;         ///< in memory
    Expr stride;        ///< elements
    std::size_t place;  ///< which dim it is in memory
    Dim first = 0;
    bool cut = false;  ///< there is more of it in memory
  };
  int input;
  std::vector<Along> dims;
  bool is_dense = true;  ///< the dims are in their order in memory, and whole
};

/// Nothing where the value is no input, or is one through other views than permutations, parts, and
/// other shapes of what is dense.
[[nodiscard]] std::optional<InMemory> in_memory(const Graph& body, ValueId value);

}  // namespace braid
