#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "braid/graph.h"
#include "braid/pass_config.h"
#include "codegen/target.h"
#include "lowering/remark.h"

namespace braid {

struct PassContext {
  Target target;
  int ranks_per_device = 1;
  bool multicast = true;  ///< the device that will run it has multicast memory
  /// Bounds what one kernel can cost to compile. 1 leaves every node a kernel of its own, with the
  /// views in front of it.
  int max_kernel_nodes = 32;
  PassConfig config;
  std::vector<Remark> remarks;
  void applied(std::string_view pass, std::string_view node, Reason reason);
  void missed(std::string_view pass, std::string_view node, Reason reason);
  /// Why that pass left the node alone, for a later one that meets the consequence; else empty.
  [[nodiscard]] Reason why_missed(std::string_view pass, std::string_view node) const;
};

/// A setting of a pass: a member of PassConfig, and what people are told of it.
struct PassOption {
  std::string_view name;  ///< as on the command line, "always-pipeline"
  /// Whose type is the option's: a flag, or a number or a word that may be left out.
  std::variant<bool PassConfig::*, std::optional<std::int64_t> PassConfig::*,
               std::string PassConfig::*>
      member;
  std::string_view meaning;
  /// `explain` says which holds: "pipelines {}", with the number, the word or `on`, or with `off`,
  /// which is the default. Nothing where that leaves nothing.
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
  std::span<const PassOption> options = {};

  Graph operator()(const Graph& graph, PassContext& context) const {
    std::optional<Graph> result = run(graph, context);
    if (result) return *std::move(result);
    return graph;
  }
};

}  // namespace braid
