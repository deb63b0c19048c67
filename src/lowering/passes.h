#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "lowering/pass.h"
#include "lowering/plan/program.h"

/// The passes in the order in which they run (docs/architecture.md, Passes). `build_program` is not
/// one of them: its result is a Program.
#define BRAID_PASSES(PASS)                           \
  PASS(fsdp)                                         \
  PASS(decompose_fsdp)                               \
  PASS(functionalize)                                \
  PASS(canonicalize)                                 \
  PASS(sequence_parallel)                            \
  PASS(micro_pipeline)                               \
  PASS(split_reductions)                             \
  PASS(lower_collectives)                            \
  PASS(split_joined_matmuls)                         \
  PASS(fuse)                                         \
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

/// Whether `lower` runs the pass.
[[nodiscard]] bool runs(const Pass& pass, const PassConfig& config);

/// The passes and their options as a page of docs/.
[[nodiscard]] std::string describe_passes();

/// Wants a graph after `fuse`: kernel, view and copy nodes only. Ends in plan_memory. The outputs
/// are called `output_names` where given (passes may replace the value that the user named), else
/// by their values.
Program build_program(const Graph& graph, PassContext& context,
                      std::span<const std::string> output_names = {});

/// Runs the passes in order and verifies after each. Unknown names throw kInvalidArgument with the
/// list of names.
Graph run_passes(const Graph& graph, std::span<const std::string> names, PassContext& context);

/// What scheduling made of a graph: as the first scheduling pass found it, and at the end.
struct Schedules {
  Graph before, after;
  std::int64_t value = 0;  ///< whose: of the symbol with buckets, where there is one
};

/// The default passes and the enabled ones, then build_program. Refuses a target that some node of
/// the graph cannot run on. Fills in the schedules where somebody wants to know.
/// Of a graph with buckets each is a variant of the program. Passes up to the one that
/// cuts sums (Pass::cuts_sums) see the whole range; the others a range of one bucket.
Program lower(const Graph& graph, PassContext& context, Schedules* schedules = nullptr);

}  // namespace braid
