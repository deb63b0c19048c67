#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "braid/graph.h"
#include "codegen/kernel/spec.h"
#include "lowering/analysis/kinds.h"
#include "lowering/pass.h"

namespace braid {

/// Codegen's answer for a body; all kernels with equal bodies share one.
struct FusedBody {
  std::string template_name;       ///< for people
  std::string refusal;             ///< why the template cannot express the body; else empty
  std::optional<KernelSpec> spec;  ///< set once a kernel is emitted
  Tuned tuned;                     ///< of the spec
};

/// The nodes of one kernel as a body, and the graph values of its inputs and outputs.
struct FusedNodes {
  FusedBody* body = nullptr;  ///< owned by the FusedBodies
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
};

/// The bodies of one graph's kernels. Most kernels of a graph, and most that are tried on the way,
/// have equal bodies, so codegen is asked once per body.
class FusedBodies {
 public:
  FusedBodies(const Graph& graph, const PassContext& context);

  /// The body of these nodes, in order; `outputs` are values of theirs. Linear in their operands.
  [[nodiscard]] FusedNodes find(std::span<const NodeId> nodes, std::vector<ValueId> outputs);
  /// The spec of such a body, in the configuration that tuning found, or the default one.
  [[nodiscard]] const KernelSpec& spec_of(std::span<const NodeId> nodes, const FusedNodes& kernel);

 private:
  struct KeyHash {
    std::size_t operator()(const std::vector<std::int32_t>& key) const;
  };

  const Graph& graph_;
  const PassContext& context_;
  NodeKinds kinds_;
  // For the body that is being looked for:
  std::int32_t now_ = 0;
  std::vector<std::int32_t> stamp_;  ///< for each value: the last body in which it got a number
  std::vector<std::int32_t> number_;
  std::vector<std::int32_t> key_;
  std::unordered_map<std::vector<std::int32_t>, FusedBody, KeyHash> bodies_;
};

}  // namespace braid
