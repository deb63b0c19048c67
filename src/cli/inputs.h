#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/executable.h"
#include "braid/graph.h"
#include "braid/reference.h"

namespace braid::cli {

struct Inputs {
  RankTensors tensors;                  ///< [rank][graph input]
  std::vector<std::string> from_files;  ///< names that were read; the others come from the seed
};

/// The inputs of all ranks. `path` is a safetensors file that holds for every rank, a directory
/// with rank0.safetensors, rank1.safetensors, ..., or empty. What no file gives is generated from
/// the seed. Throws kInvalidArgument on a wrong dtype or shape, a tensor that is no input, or an
/// input that must be equal on all ranks and is not.
[[nodiscard]] Inputs gather_inputs(const Graph& graph, const Bindings& bindings,
                                   const std::string& path, std::uint64_t seed,
                                   const PieceProgress& progress);

/// Sets the inputs of these ranks. `tensors` has those of all ranks.
void set_inputs(Executable& executable, const Graph& graph, const std::vector<int>& ranks,
                const RankTensors& tensors);

/// "rank3.safetensors": the file of a rank in a directory.
[[nodiscard]] std::string rank_file_name(int rank);

}  // namespace braid::cli
