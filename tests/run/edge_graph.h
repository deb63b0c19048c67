#pragma once

#include <cstdint>
#include <vector>

#include "braid/reference.h"

namespace braid::testing {

/// A small graph over all dtypes for inputs at the edges of their ranges. Its values are computed
/// by ops whose result is the correctly rounded one whatever the order (arithmetic, comparisons,
/// casts, extremes, movements, collectives); some are then the operand of one other op, whose
/// result nothing reads: those outputs are not `exact`.
struct EdgeGraph {
  Graph graph;
  std::vector<bool> exact;  ///< per output
};
EdgeGraph edge_graph(std::uint64_t seed);

/// Inputs in which some elements are NaN, infinities, zeros of both signs, subnormals, the ends of
/// integer ranges and what f64 cannot hold.
RankTensors edge_inputs(const Graph& graph, const Bindings& bindings, std::uint64_t seed);

}  // namespace braid::testing
