#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "braid/export.h"
#include "braid/graph.h"
#include "braid/tensor.h"

namespace braid {

/// Tensors of all ranks, as [rank][i].
using RankTensors = std::vector<std::vector<HostTensor>>;

/// Called while long work goes on: `done` of `total` pieces are done.
using PieceProgress = std::function<void(std::size_t done, std::size_t total)>;

/// Runs the graph on world_size(graph) ranks in lockstep. Inside an op it computes in float64 or
/// int64; each result is rounded to its declared dtype. It is slow and simple, and the oracle of
/// every test. Lowered and kernel nodes run too. `inputs[rank][i]` is graph input i. Throws
/// kInvalidArgument on a shape or dtype mismatch.
[[nodiscard]] BRAID_API RankTensors evaluate(const Graph& graph, const RankTensors& inputs,
                                             const Bindings& bindings,
                                             const PieceProgress& progress = {});

/// The largest acceptable relative error of an output, for a run in which every op rounds where the
/// reference does. It depends on the coarsest float type among the values that the output is
/// computed from, and on whether these form one block or a model of several layers, where roundings
/// that fall the other way add up. A model has more than eight matmuls, norms, reductions and
/// collectives, or a softmax of a matmul's scores, where one rounding of an operand moves a whole
/// row. The limits are 1e-5 for f32; 1e-3 or 8e-3 for bf16; 2e-4 or 2e-3 for f16; 2e-2 for f8e4m3
/// and 4e-2 for f8e5m2, whose single rounding may be 6 and 12 percent; 0 for integers. With n > 64
/// such nodes the 16-bit limits become the dtype's epsilon times sqrt(n / 2): after the first
/// rounding that falls the other way the residual stream is an independent one, which differs by
/// about one epsilon per layer.
///
/// `shape` is the shape of the output. With few rows (all dims but the last) errors do not average
/// out: one rounding of an operand that falls the other way moves a whole row by about an epsilon.
/// f32 arithmetic comes near enough to a tie for that in about one of a hundred small f16 graphs,
/// so r rows of f16 may always differ by 2 epsilon / sqrt(r). bf16, eight times as coarse, does not
/// need it.
///
/// `cut`: matrix units cut sums toward zero, as those of GPUs do (docs/numerics.md). Their sums are
/// off by several times as much, and more roundings fall the other way. So the 16-bit limits of a
/// block are twice as large: of examples/llama_mlp.json on 8 ranks an H100 is off by 1.34e-3.
[[nodiscard]] BRAID_API double tolerance(const Graph& graph, ValueId output,
                                         const std::vector<std::int64_t>& shape, bool cut = false);

/// ‖out−ref‖/‖ref‖ over the elements that are finite in both. Infinity where an element is NaN or
/// infinite in one and not the same in the other, or where `out` still has the poison of
/// Executable::poison_outputs. Integers are compared exactly.
[[nodiscard]] BRAID_API double relative_error(const HostTensor& out, const HostTensor& ref);

/// Random inputs, scaled as real weights are: activations N(0,1), matrices N(0,1/sqrt(K)) where K
/// is the extent of dim 0, vectors 1 + 0.1 N(0,1), integers uniform in [0, 8), offsets of a
/// _grouped_mm uniform among its rows, in ascending order. Equal on all ranks unless the input is
/// per_rank.
[[nodiscard]] BRAID_API RankTensors random_inputs(const Graph& graph, const Bindings& bindings,
                                                  std::uint64_t seed,
                                                  const PieceProgress& progress = {});

/// Checks that every symbol has a value in its range, and fills in symbols that have a single
/// value. Throws kInvalidArgument for missing values and unknown names.
[[nodiscard]] BRAID_API Bindings check_bindings(const Graph& graph, const Bindings& bindings);

}  // namespace braid
