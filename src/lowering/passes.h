#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "braid/graph.h"
#include "braid/pass_config.h"
#include "lowering/plan/program.h"

namespace braid {

/// What a pass did at a node, or why it did not, for people.
struct Remark {
  std::string pass;
  std::string node;
  bool applied = false;
  std::string reason;
};

struct PassContext {
  Target target;
  int ranks_per_device = 1;
  /// Bounds what one kernel can cost to compile. 1 leaves every node a kernel of its own, with the
  /// views in front of it.
  int max_kernel_nodes = 32;
  PassConfig config;
  std::vector<Remark> remarks;
  void applied(std::string_view pass, std::string_view node, std::string reason);
  void missed(std::string_view pass, std::string_view node, std::string reason);
  /// Why that pass left the node alone, for a later one that meets the consequence; else empty.
  [[nodiscard]] std::string why_missed(std::string_view pass, std::string_view node) const;
};

struct Pass {
  std::string_view name;
  Graph (*run)(const Graph&, PassContext&);
  bool by_default = true;  ///< else only where PassConfig::enable names it
};

/// In the order of DESIGN §4. `build_program` is not one of them: its result is a Program.
[[nodiscard]] std::span<const Pass> all_passes();

/// Whether `lower` runs the pass.
[[nodiscard]] bool runs(const Pass& pass, const PassConfig& config);

Graph fsdp(const Graph& graph, PassContext& context);
Graph decompose_fsdp(const Graph& graph, PassContext& context);
Graph functionalize(const Graph& graph, PassContext& context);
Graph canonicalize(const Graph& graph, PassContext& context);
Graph sequence_parallel(const Graph& graph, PassContext& context);
Graph micro_pipeline(const Graph& graph, PassContext& context);
Graph split_reductions(const Graph& graph, PassContext& context);
Graph lower_collectives(const Graph& graph, PassContext& context);
Graph fuse(const Graph& graph, PassContext& context);
/// Wants a graph after `fuse`: kernel, view and copy nodes only. Ends in plan_memory. The outputs
/// are called `output_names` where given (passes may replace the value that the user named), else
/// by their values.
Program build_program(const Graph& graph, PassContext& context,
                      std::span<const std::string> output_names = {});

/// Runs the passes in order and verifies after each. Unknown names throw kInvalidArgument with the
/// list of names.
Graph run_passes(const Graph& graph, std::span<const std::string> names, PassContext& context);
/// The default passes and the enabled ones, then build_program. Refuses a target that some node of
/// the graph cannot run on.
Program lower(const Graph& graph, PassContext& context);

}  // namespace braid
