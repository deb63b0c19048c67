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
  /// sequence_parallel, micro_pipeline, and lower_collectives of what that fused: split and
  /// pipeline also where the cost model sees no gain.
  bool always_pipeline = false;
  /// lower_collectives: a fused collective runs within the kernel of its matmuls wherever there is
  /// one.
  bool in_kernel = false;
  /// lower_collectives: all-gathers and reduce-scatters are copies between the ranks, which run
  /// beside the kernels, where they can be: along dim 0.
  bool by_copies = false;
  /// The same only where other kernels hide them, so that they expose less time than a kernel
  /// takes.
  bool hide_by_copies = true;
  /// micro_pipeline: leave alone the gathers and scatters that other matmuls can hide, for a
  /// scheduler that overlaps them.
  bool leave_unexposed = false;
  /// lower_collectives: the algorithm of all-reduces, wherever it can be: "one_shot",
  /// "two_shot", "ll" or "multimem". Empty: what the cost model finds quickest.
  std::string all_reduce = {};
  /// A row has the same bits in every batch, on every device. lower_collectives: only algorithms
  /// that add up in the order of the ranks; "multimem" adds in the hardware's order.
  /// split_reductions: matmuls in parts by a model that knows no trials, alike in all buckets.
  bool batch_invariant = true;
  /// Kernels that copy while they multiply note what their blocks do when, for
  /// Executable::trace(). Costs them a little time.
  bool mark_blocks = false;

  /// overlap: by which share the peak of memory may grow over what it was before the first
  /// scheduling pass. None: 0.
  std::optional<double> overlap_peak_memory_budget = {};

  // The other scheduling passes. These have the names of Inductor's settings, but no collective
  // passes another one unless told so.

  /// align_runtimes: a file of measured times, {"NODE": ns, "NODE": [ns on each rank]}.
  std::string runtime_estimations = {};
  /// reorder_communication_preserving_peak_memory, sink_waits_iterative: what estimates of
  /// collectives, and of other nodes, are multiplied by. None: 2 and 1.
  std::optional<double> reorder_sink_runtime_estimations_comm_mult = {};
  std::optional<double> reorder_sink_runtime_estimations_non_comm_mult = {};
  /// Both: how many nodes a collective or a wait may pass or take with it, and how far its estimate
  /// looks; 0: as many as there are. None: 1000.
  std::optional<std::int64_t> reorder_sink_window = {};
  /// Both: after each move, check the tracked memory against one that is worked out anew.
  bool reorder_iterative_debug_memory_recompute = false;
  /// The first: move by what is gained, until compute takes (1 + extra) times as long as the
  /// collective beside it. None: 0.5.
  bool reorder_iterative_use_runtime_estimations = false;
  std::optional<double> reorder_iterative_extra_comm_comp_overlap = {};
  /// By which share the peak of memory may grow over what it was before the first scheduling pass.
  /// None: 0.2.
  std::optional<double> reorder_iterative_peak_memory_budget = {};
  /// Collectives may pass each other, and may be taken along.
  bool reorder_iterative_unsafe_collectives_reorder = false;
  bool reorder_iterative_group_with_collectives = false;
  /// Only so many collectives, from the first on.
  std::optional<std::int64_t> reorder_iterative_debug_limit_to_reorder = {};
  /// The second one's of the same kind; and whether waits may pass collectives.
  bool sink_iterative_use_runtime_estimations = false;
  std::optional<double> sink_iterative_extra_comm_comp_overlap = {};
  std::optional<double> sink_iterative_peak_memory_budget = {};
  bool sink_waits_iterative_unsafe_collectives_reorder = false;
  bool sink_waits_iterative_swap_with_collectives = false;
  std::optional<std::int64_t> sink_waits_iterative_debug_limit_to_sink = {};
};

}  // namespace braid
