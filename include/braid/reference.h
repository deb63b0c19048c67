#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "braid/export.h"
#include "braid/graph.h"
#include "braid/tensor.h"

namespace braid {

/// Tensors of all ranks: [rank][i].
using RankTensors = std::vector<std::vector<HostTensor>>;

/// Called as long work goes on: `done` of `total` pieces are done.
using PieceProgress = std::function<void(std::size_t done, std::size_t total)>;

/// Runs the graph on world_size(graph) ranks in lockstep, in float64 or int64 inside an op,
/// rounding each result to its declared dtype. Slow and plain: the oracle of every test. Lowered
/// and kernel nodes run too. `inputs[rank][i]` is graph input i. Throws kInvalidArgument on a shape
/// or dtype mismatch.
[[nodiscard]] BRAID_API RankTensors evaluate(const Graph& graph, const RankTensors& inputs,
                                             const Bindings& bindings,
                                             const PieceProgress& progress = {});

/// What the relative error of an output may be when every op rounds where the reference does: by
/// the coarsest float type among what it is computed from, and whether that is one block or a model
/// of several layers (more than eight matmuls, norms, reductions and collectives, or a
/// softmax of matmul's scores, where one rounding of an operand moves a whole row), where roundings
/// that fall the other way add up. 1e-5 for f32; 1e-3 or 8e-3 for bf16; 2e-4 or 2e-3 for f16; 2e-2
/// and 4e-2 for f8e4m3 and f8e5m2, one rounding of which may be 6 and 12 percent; 0 for integers.
/// Past 64 such nodes, n of them, the 16-bit ones are the dtype's epsilon times sqrt(n / 2): a run
/// either rounds everywhere as the reference does, or its residual stream is an independent one
/// from the first rounding that falls the other way, and differs by one epsilon or so for each
/// layer.
///
/// `shape` is the output's. A tensor of few rows (all dims but the last) has no average: one
/// rounding of an operand that falls the other way moves a whole row by about an epsilon. f32
/// arithmetic comes near enough to a tie for that once in some hundred small f16 graphs, so r rows
/// of f16 may always differ by 2 epsilon / sqrt(r); bf16, eight times as coarse, does not need it.
[[nodiscard]] BRAID_API double tolerance(const Graph& graph, ValueId output,
                                         const std::vector<std::int64_t>& shape);

/// ‖out−ref‖/‖ref‖ over all elements that are finite in both. Infinity where one is NaN or infinite
/// and the other is not the same, and where `out` has an element that Executable::poison_outputs
/// left. Integers are compared exactly.
[[nodiscard]] BRAID_API double relative_error(const HostTensor& out, const HostTensor& ref);

/// Inputs from a seed, scaled as real weights are: activations N(0,1), matrices N(0,1/sqrt(K)) with
/// K the extent of dim 0, vectors 1 + 0.1 N(0,1); integers uniform in [0, 8). Equal on all ranks
/// unless the input is per_rank.
[[nodiscard]] BRAID_API RankTensors random_inputs(const Graph& graph, const Bindings& bindings,
                                                  std::uint64_t seed,
                                                  const PieceProgress& progress = {});

/// Checks that every symbol has a value in its range and fills in symbols of a single value; other
/// missing ones throw. Unknown names throw.
[[nodiscard]] BRAID_API Bindings check_bindings(const Graph& graph, const Bindings& bindings);

}  // namespace braid
