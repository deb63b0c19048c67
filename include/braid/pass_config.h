#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace braid {

/// What the graph passes are told. `braid explain` prints it once.
struct PassConfig {
  /// Passes that run beside the default ones, by name: "sequence_parallel", "micro_pipeline".
  std::vector<std::string> enable;
  /// sequence_parallel: the dim that the tokens lie along. None: dim 0 of a matrix, dim 1 of more.
  std::optional<std::int64_t> sequence_dim;
  /// micro_pipeline, and lower_collectives of what it fused: pipeline also where the cost model
  /// sees no gain.
  bool always_pipeline = false;
  /// lower_collectives: a fused collective runs within the kernel of its matmuls wherever there is
  /// one.
  bool in_kernel = false;
  /// micro_pipeline: leave alone the gathers and scatters that other matmuls can hide, for a
  /// scheduler that overlaps them.
  bool leave_unexposed = false;
  /// lower_collectives: the algorithm of all-reduces, wherever it can be: "one_shot", "two_shot" or
  /// "ll". Empty: what the cost model finds quickest.
  std::string all_reduce = {};
};

}  // namespace braid
