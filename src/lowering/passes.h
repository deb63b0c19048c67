#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "lowering/pass.h"
#include "lowering/plan/program.h"

/// The passes in the order in which they run (docs/passes.md). `build_program` is not in the list,
/// because its result is a Program.
#define BRAID_PASSES(PASS)                           \
  PASS(fsdp)                                         \
  PASS(decompose_fsdp)                               \
  PASS(functionalize)                                \
  PASS(canonicalize)                                 \
  PASS(sequence_parallel)                            \
  PASS(micro_pipeline)                               \
  PASS(split_reductions)                             \
  PASS(spread_attention)                             \
  PASS(lower_collectives)                            \
  PASS(split_joined_matmuls)                         \
  PASS(fuse)                                         \
  PASS(join_kernels)                                 \
  PASS(align_runtimes)                               \
  PASS(sink_waits)                                   \
  PASS(raise_comms)                                  \
  PASS(reorder_compute_for_overlap)                  \
  PASS(reorder_communication_preserving_peak_memory) \
  PASS(sink_waits_iterative)                         \
  PASS(overlap)

namespace braid {

#define BRAID_DECLARE_PASS(name) extern const Pass name;
BRAID_PASSES(BRAID_DECLARE_PASS)
#undef BRAID_DECLARE_PASS

[[nodiscard]] std::span<const Pass* const> all_passes();

/// Whether `lower` runs the pass with this configuration.
[[nodiscard]] bool runs(const Pass& pass, const PassConfig& config);

/// The text of docs/passes.md.
[[nodiscard]] std::string describe_passes();

/// Builds the Program of a graph after `fuse`, which has kernel, view and copy nodes only. Ends
/// with plan_memory. The outputs are named `output_names` where given (passes may have replaced the
/// values that the user named), else after their values.
Program build_program(const Graph& graph, PassContext& context,
                      std::span<const std::string> output_names = {});

/// Runs the passes in order and verifies after each. Throws kInvalidArgument for unknown names,
/// listing the known ones.
Graph run_passes(const Graph& graph, std::span<const std::string> names, PassContext& context);

/// The graph as the first scheduling pass found it, and at the end.
struct Schedules {
  Graph before, after;
  std::int64_t value = 0;  ///< value of the symbol with buckets, where there is one
};

/// Runs the default and the enabled passes, then build_program. Throws where a node of the graph
/// cannot run on the target. Fills in `schedules` unless null. With buckets each one is a variant
/// of the program: passes up to the first that splits sums (Pass::cuts_sums) see the symbol's whole
/// range, later ones the range of one bucket.
Program lower(const Graph& graph, PassContext& context, Schedules* schedules = nullptr);

}  // namespace braid
