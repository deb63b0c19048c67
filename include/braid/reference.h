#pragma once

#include <vector>

#include "braid/graph.h"
#include "braid/tensor.h"

namespace braid {

/// Tensors of all ranks: [rank][i].
using RankTensors = std::vector<std::vector<HostTensor>>;

/// Runs the graph on world_size(graph) ranks in lockstep, in float64 inside an op, rounding each
/// result to its declared dtype. Slow and plain: the oracle of every test. Lowered and kernel nodes
/// run too. `inputs[rank][i]` is graph input i. Throws kInvalidArgument on a shape or dtype
/// mismatch.
[[nodiscard]] RankTensors evaluate(const Graph& graph, const RankTensors& inputs,
                                   const Bindings& bindings);

/// ‖out−ref‖/‖ref‖ over all elements; NaN anywhere, or an infinity on one side only, gives
/// infinity.
[[nodiscard]] double relative_error(const HostTensor& out, const HostTensor& ref);

/// Inputs from a seed, scaled as real weights are: activations N(0,1), matrices N(0,1/sqrt(K)) with
/// K the extent of dim 0, vectors 1 + 0.1 N(0,1); integers uniform in [0, 8). Equal on all ranks
/// unless the input is per_rank.
[[nodiscard]] RankTensors random_inputs(const Graph& graph, const Bindings& bindings,
                                        std::uint64_t seed);

/// Checks that every symbol has a value in its range and fills in symbols of a single value; other
/// missing ones throw. Unknown names throw.
[[nodiscard]] Bindings check_bindings(const Graph& graph, const Bindings& bindings);

}  // namespace braid
