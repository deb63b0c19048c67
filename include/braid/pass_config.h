#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "braid/export.h"

namespace braid {

/// Options of the graph passes; `braid explain` prints the remarks that come of them. A comment
/// names the pass that an option belongs to.
struct PassConfig {
  /// Passes to run besides the default ones, by name: "sequence_parallel", "micro_pipeline".
  std::vector<std::string> enable;
  /// sequence_parallel: the dim of tokens. By default dim 0 of a matrix, dim 1 of higher ranks.
  std::optional<std::int64_t> sequence_dim;
  /// sequence_parallel, micro_pipeline and, for what that fused, lower_collectives: split and
  /// pipeline even where the cost model sees no gain.
  bool always_pipeline = false;
  /// lower_collectives: run a fused collective inside the kernel of its matmuls where possible.
  bool in_kernel = false;
  /// lower_collectives: run all-gathers and reduce-scatters along dim 0 as copies between ranks,
  /// beside the kernels.
  bool by_copies = false;
  /// lower_collectives: the algorithm of all-reduces where it applies: "one_shot", "two_shot", "ll"
  /// or "multimem". Empty: the one that the cost model finds fastest.
  std::string all_reduce = {};
  /// A row gets the same bits in every batch and on every device. lower_collectives then uses only
  /// algorithms that sum in rank order ("multimem" sums in the hardware's order), and
  /// split_reductions splits matmuls by a model without trials, alike in all buckets.
  bool batch_invariant = true;
  /// Kernels that copy while they multiply record when each block did what, for
  /// Executable::trace(). This costs a little time.
  bool mark_blocks = false;
  /// All options by name, as text (docs/passes.md): {"reorder-sink-window", "0"}. Names and values
  /// are checked when a graph is lowered, see set_pass_option. An option that is a member, too, is
  /// taken from here.
  std::map<std::string, std::string, std::less<>> options = {};
};

/// Sets an option by its name (docs/passes.md): "all-reduce" to "ll", a flag to "true" or "false".
/// "enable" adds passes, "sink_waits,raise_comms". Throws kInvalidArgument for a name that is not
/// known, and for a value that does not fit, with what was expected.
BRAID_API void set_pass_option(PassConfig& config, std::string_view name, std::string_view value);

}  // namespace braid
