#pragma once

#include <memory>
#include <span>
#include <string>

#include "braid/graph.h"
#include "codegen/kernel/spec.h"

namespace braid {

/// Builds the body of a kernel: a graph of these nodes, in order. The result does not depend on
/// where they came from: inputs are "i0", "i1", ..., nodes "v0", "v1", ..., hints are dropped, and
/// only used symbols and groups remain. So equal layers have equal bodies. `inputs` are the values
/// that the nodes read from others, in order of first use; `outputs` are values of theirs. The
/// input that a collective reads keeps its comm_group.
[[nodiscard]] std::shared_ptr<const Graph> make_body(const Graph& graph,
                                                     std::span<const NodeId> nodes,
                                                     std::span<const ValueId> inputs,
                                                     std::span<const ValueId> outputs);

/// Of a kernel node.
[[nodiscard]] KernelSpec spec_of(const Node& kernel);

/// Throws kInvalidArgument at `place` for a spec whose body is no kernel, or whose config does not
/// fit it.
void check_spec(const std::string& place, const KernelSpec& spec);
/// Throws kInvalidArgument at the node's name for a kernel node whose body is no kernel, or whose
/// config does not fit it. Those that `fuse` makes are fine, but users may write their own.
void check_kernel(const Node& kernel);

/// A text that is equal for equal bodies, and only for these.
[[nodiscard]] std::string body_key(const Graph& body);

}  // namespace braid
