#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "braid/graph.h"
#include "codegen/kernel_spec.h"
#include "lowering/analysis/kinds.h"
#include "lowering/pass.h"

namespace braid {

/// What codegen says of a body; all kernels with equal bodies share one.
struct FusedBody {
  std::string template_name;       ///< for people
  std::string refusal;             ///< why the template cannot express it; else empty
  std::optional<KernelSpec> spec;  ///< once a kernel is emitted
  Tuned tuned;                     ///< of the spec
};

/// Some nodes as the body of one kernel, and the values that its inputs and outputs stand for.
struct FusedNodes {
  FusedBody* body = nullptr;  ///< of the FusedBodies asked
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
};

/// The bodies of one graph's kernels. Codegen is asked once for each: most of a graph's kernels,
/// and of those that are tried on the way, are alike.
class FusedBodies {
 public:
  FusedBodies(const Graph& graph, const PassContext& context);

  /// Of the nodes in order; `outputs` are values of theirs. Linear in their operands.
  [[nodiscard]] FusedNodes find(std::span<const NodeId> nodes, std::vector<ValueId> outputs);
  /// Of what was found of those nodes, in the configuration that tuning found, or the default one.
  [[nodiscard]] const KernelSpec& spec_of(std::span<const NodeId> nodes, const FusedNodes& kernel);

 private:
  struct KeyHash {
    std::size_t operator()(const std::vector<std::int32_t>& key) const;
  };

  const Graph& graph_;
  const PassContext& context_;
  NodeKinds kinds_;
  // Of the body that is being looked for:
  std::int32_t now_ = 0;
  std::vector<std::int32_t> stamp_;  ///< of each value: the body that it has a number in
  std::vector<std::int32_t> number_;
  std::vector<std::int32_t> key_;
  std::unordered_map<std::vector<std::int32_t>, FusedBody, KeyHash> bodies_;
};

}  // namespace braid
