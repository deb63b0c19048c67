#pragma once

#include <memory>
#include <span>
#include <string>

#include "braid/graph.h"
#include "codegen/kernel_spec.h"

namespace braid {

/// Takes the nodes, in order, into a graph of its own, the body of a kernel. It says nothing of
/// where it came from: inputs are "i0", "i1", ..., nodes "v0", "v1", ..., hints are dropped, and
/// only the symbols and groups that it uses are there. So equal layers have equal bodies. `inputs`
/// are what the nodes read of others, in order of first use; `outputs` are values of theirs. The
/// input that a collective reads bears its comm_group.
[[nodiscard]] std::shared_ptr<const Graph> make_body(const Graph& graph,
                                                     std::span<const NodeId> nodes,
                                                     std::span<const ValueId> inputs,
                                                     std::span<const ValueId> outputs);

/// Refuses a spec whose body is no kernel, or whose config does not fit it. Throws kInvalidArgument
/// at `place`.
void check_spec(const std::string& place, const KernelSpec& spec);
/// Refuses a kernel node whose body is no kernel, or whose config does not fit it: those that
/// `fuse` makes do, but a user may write one. Throws kInvalidArgument at the node's name.
void check_kernel(const Node& kernel);

/// A text that two bodies share exactly when they are equal.
[[nodiscard]] std::string body_key(const Graph& body);

}  // namespace braid
