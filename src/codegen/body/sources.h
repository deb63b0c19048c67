#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "braid/graph.h"

namespace braid {

/// A tensor of which the elements of a matrix are computed, one for each; or one for each aligned
/// run of elements along the rows' dim or the columns', which are the value's last two.
struct Source {
  struct Along {
    std::int64_t alike = 1;  ///< so many neighbours have the same element; 0: all have
    bool repeats = false;    ///< the elements come again before the dim's end
  };
  ValueId value;
  Along rows, columns;
  /// Whether neighbours in memory are along the matrix's columns; else along its rows.
  bool is_by_columns = true;
};

/// What a matrix is computed from: by elementwise nodes, constants and views that `is_inside`
/// names, from what the others give. Each element is followed through the views by the digits of
/// its coordinates: a view that cuts a dim of 4096 into 512 x 8 makes k two digits, k / 8 and k %
/// 8, and a tensor that has an element for each k / 8 has one for each eight rows. Nothing where a
/// node is of another kind, or a view cuts what is no whole digit.
[[nodiscard]] std::optional<std::vector<Source>> sources_of(
    const Graph& graph, ValueId matrix, const std::function<bool(NodeId)>& is_inside);

/// Those of a matmul's operand that are others in each step along K, where the pipeliner brings all
/// of them ahead of their use, and makes the operand in shared memory; else nothing.
[[nodiscard]] std::optional<std::vector<Source>> copied_sources(
    const Graph& graph, const Node& matmul, std::size_t input,
    const std::function<bool(NodeId)>& is_inside);
/// Of a matmul in a body.
[[nodiscard]] std::optional<std::vector<Source>> copied_sources(const Graph& body,
                                                                const Node& matmul,
                                                                std::size_t input);

}  // namespace braid
