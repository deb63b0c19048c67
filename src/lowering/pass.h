#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "braid/graph.h"
#include "braid/pass_config.h"
#include "codegen/target.h"
#include "lowering/remark.h"
#include "lowering/schedule/move_record.h"
#include "lowering/tuned.h"

namespace braid {

struct PlanChoice;

struct PassContext {
  Target target;
  int ranks_per_device = 1;
  bool multicast = true;  ///< the device that will run it has multicast memory
  /// Bounds what one kernel can cost to compile. 1 leaves every node a kernel of its own, with the
  /// views in front of it.
  int max_kernel_nodes = 32;
  PassConfig config;
  FindTuned tuned;  ///< asked for configurations of kernels, and for their times; may be empty
  /// The choices that trials can decide (plan_choice.h), where somebody wants to know.
  std::vector<PlanChoice>* choices = nullptr;
  /// Told of each pass before it runs, of build_program too; may be empty.
  std::function<void(std::string_view pass)> progress;
  std::vector<Remark> remarks;
  /// Bytes that the program needed at once before the first of the scheduling passes that follow
  /// each other: the base of all their memory budgets.
  std::optional<std::int64_t> base_peak;
  /// What the scheduling passes did with each collective or wait, where somebody wants to know.
  std::vector<MoveRecord>* move_records = nullptr;
  void applied(std::string_view pass, std::string_view node, Reason reason);
  void missed(std::string_view pass, std::string_view node, Reason reason);
  /// Why that pass left the node alone, for a later one that meets the consequence; else empty.
  [[nodiscard]] Reason why_missed(std::string_view pass, std::string_view node) const;
};

/// A setting of a pass: a member of PassConfig, and what people are told of it.
struct PassOption {
  std::string_view name;  ///< as on the command line, "always-pipeline"
  /// Whose type is the option's: a flag, or an integer, a word or a number that may be left out. No
  /// number is below 0.
  std::variant<bool PassConfig::*, std::optional<std::int64_t> PassConfig::*,
               std::string PassConfig::*, std::optional<double> PassConfig::*>
      member;
  std::string_view meaning;
  /// `explain` says which holds: "pipelines {}", with the number, the word or `on`, or with `off`,
  /// which is the default. Nothing where that leaves nothing. Empty: only what is set is said.
  std::string_view said;
  std::string_view off;
  std::string_view on = {};
};

/// All that anybody knows of a pass. Each stands in its own file, and in the list of passes.h.
struct Pass {
  std::string_view name;
  std::string_view summary;  ///< one line
  /// The successor of the graph; nothing where it stays as it is.
  std::optional<Graph> (*run)(const Graph&, PassContext&);
  bool by_default = true;  ///< else only where PassConfig::enable names it
  bool schedules = false;  ///< it gives the nodes another order and does nothing else
  /// It cuts sums by their extents: up to here all buckets of a symbol are lowered as one, so that
  /// a row has the same bits in each (PassConfig::batch_invariant).
  bool cuts_sums = false;
  std::span<const PassOption> options = {};

  Graph operator()(const Graph& graph, PassContext& context) const {
    std::optional<Graph> result = run(graph, context);
    if (result) return *std::move(result);
    return graph;
  }
};

}  // namespace braid
