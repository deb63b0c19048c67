#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "braid/graph.h"
#include "codegen/kernel/spec.h"
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

/// Its last two dims as a matrix that bulk copies can move in tiles, and those in front of them as
/// the map's outer dims.
struct MatrixInMemory {
  InMemory memory;
  bool transposed;  ///< the columns of the value are rows in memory

  /// That of tiles which have `box` rows in memory.
  [[nodiscard]] TileMap map(int box, DType dtype) const;
  [[nodiscard]] const InMemory::Along& rows() const { return from_end(transposed ? 1 : 2); }
  [[nodiscard]] const InMemory::Along& columns() const { return from_end(transposed ? 2 : 1); }
  [[nodiscard]] std::size_t outer() const { return memory.dims.size() - 2; }
  [[nodiscard]] const InMemory::Along& from_end(std::size_t d) const {
    return memory.dims[memory.dims.size() - d];
  }
};

/// Nothing where rows do not begin at multiples of 16 bytes, 32 bits do not count them, or a map
/// does not have as many dims.
[[nodiscard]] std::optional<MatrixInMemory> matrix_in_memory(const Graph& body, ValueId value);
/// Whether a dense matrix of this type, which need be no input, is one.
[[nodiscard]] bool has_rows_for_maps(const TensorType& type, const SymbolTable& symbols);

}  // namespace braid
