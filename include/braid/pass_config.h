#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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
  /// lower_collectives: do so only where other kernels hide the copies, so that less time is
  /// exposed than a kernel would take.
  bool hide_by_copies = true;
  /// micro_pipeline: skip gathers and scatters that other matmuls can hide.
  bool leave_unexposed = false;
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

  /// overlap: how far the memory peak may grow over that before scheduling, as a share. Default 0.
  std::optional<double> overlap_peak_memory_budget = {};

  // Options of the other scheduling passes, named after Inductor's. Unlike there, no collective
  // passes another one by default.

  /// align_runtimes: path of a file of measured times, {"NODE": ns, "NODE": [ns on each rank]}.
  std::string runtime_estimations = {};
  /// reorder_communication_preserving_peak_memory and sink_waits_iterative: factors on the
  /// estimates of collectives (default 2) and of other nodes (default 1).
  std::optional<double> reorder_sink_runtime_estimations_comm_mult = {};
  std::optional<double> reorder_sink_runtime_estimations_non_comm_mult = {};
  /// Both: how many nodes a collective or wait may pass or take along, and how far its estimate
  /// looks ahead. 0: no limit. Default 1000.
  std::optional<std::int64_t> reorder_sink_window = {};
  /// Both: after each move, compare the tracked memory with a fresh computation.
  bool reorder_iterative_debug_memory_recompute = false;
  /// reorder_communication_preserving_peak_memory: move by estimated gain, until the compute beside
  /// a collective takes (1 + extra) times as long as it. Default 0.5.
  bool reorder_iterative_use_runtime_estimations = false;
  std::optional<double> reorder_iterative_extra_comm_comp_overlap = {};
  /// How far the memory peak may grow over that before scheduling, as a share. Default 0.2.
  std::optional<double> reorder_iterative_peak_memory_budget = {};
  /// Whether collectives may pass each other, and whether they may be taken along.
  bool reorder_iterative_unsafe_collectives_reorder = false;
  bool reorder_iterative_group_with_collectives = false;
  /// Move only so many collectives, from the first on.
  std::optional<std::int64_t> reorder_iterative_debug_limit_to_reorder = {};
  /// The same options for sink_waits_iterative, and whether waits may pass collectives.
  bool sink_iterative_use_runtime_estimations = false;
  std::optional<double> sink_iterative_extra_comm_comp_overlap = {};
  std::optional<double> sink_iterative_peak_memory_budget = {};
  bool sink_waits_iterative_unsafe_collectives_reorder = false;
  bool sink_waits_iterative_swap_with_collectives = false;
  std::optional<std::int64_t> sink_waits_iterative_debug_limit_to_sink = {};
};

}  // namespace braid
