#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "braid/graph.h"
#include "braid/pass_config.h"
#include "codegen/target.h"
#include "lowering/pass_option.h"
#include "lowering/remark.h"
#include "lowering/schedule/move_record.h"
#include "lowering/tuned.h"

namespace braid {

struct PlanChoice;

struct PassContext {
  Target target;
  int ranks_per_device = 1;
  bool multicast = true;  ///< the target device has multicast memory
  /// Limit of nodes per kernel, which bounds its compile time. 1 makes every node a kernel of its
  /// own, together with the views in front of it.
  int max_kernel_nodes = 32;
  PassConfig config;
  FindTuned tuned;  ///< looks up configurations and times of kernels; may be empty
  /// Collects the choices that trials can decide (plan_choice.h); may be null.
  std::vector<PlanChoice>* choices = nullptr;
  /// Called before each pass, and before build_program; may be empty.
  std::function<void(std::string_view pass)> progress;
  std::vector<Remark> remarks;
  /// Peak memory in bytes before the first scheduling pass of a sequence: the base of all their
  /// memory budgets.
  std::optional<std::int64_t> base_peak;
  /// Collects what the scheduling passes did with each collective or wait; may be null.
  std::vector<MoveRecord>* move_records = nullptr;
  void applied(std::string_view pass, std::string_view node, Reason reason);
  void missed(std::string_view pass, std::string_view node, Reason reason);
  /// Why that pass left the node alone, for a later pass that sees the consequence; else empty.
  [[nodiscard]] Reason why_missed(std::string_view pass, std::string_view node) const;
};

/// The record of a pass. It stands in the pass's file and in the list of passes.h.
struct Pass {
  std::string_view name;
  std::string_view summary;  ///< one line
  /// Returns the new graph, or nothing where the graph stays as it is.
  std::optional<Graph> (*run)(const Graph&, PassContext&);
  bool by_default = true;  ///< false: runs only if PassConfig::enable names it
  bool schedules = false;  ///< it only reorders nodes
  /// It splits sums by their extents. Up to this pass all buckets of a symbol are lowered as one
  /// graph, so that a row has the same bits in each (PassConfig::batch_invariant).
  bool cuts_sums = false;
  std::span<const PassOption> options = {};

  Graph operator()(const Graph& graph, PassContext& context) const {
    std::optional<Graph> result = run(graph, context);
    if (result) return *std::move(result);
    return graph;
  }
};

/// Fills in the options of a pass's own struct that are given by name; see read_options.
void read_options(const Pass& pass, const PassConfig& config, const void* owner, void* options);

/// The options of a pass that are members of this struct.
template <class Options>
[[nodiscard]] Options read_options(const Pass& pass, const PassConfig& config) {
  Options options;
  read_options(pass, config, &kOwner<Options>, &options);
  return options;
}

}  // namespace braid
