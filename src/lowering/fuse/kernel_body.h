#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "braid/graph.h"

namespace braid {

/// The body of a kernel that would compute some nodes of a graph, and the graph's values that its
/// inputs and outputs stand for.
struct KernelBody {
  std::shared_ptr<Graph> graph;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
};

/// Takes the nodes, in order, into a graph of its own. It says nothing of where it came from:
/// inputs are "i0", "i1", ... in order of first use, nodes "v0", "v1", ..., hints are dropped, and
/// only the symbols and groups that it uses are there. So equal layers have equal bodies.
/// `outputs` are values of those nodes. The input that a collective reads bears its comm_group.
[[nodiscard]] KernelBody make_body(const Graph& graph, std::span<const NodeId> nodes,
                                   std::vector<ValueId> outputs);

/// Refuses a kernel node whose body is no kernel, or whose config does not fit it: those that
/// `fuse` makes do, but a user may write one. Throws kInvalidArgument at the node's name.
void check_kernel(const Node& kernel);

/// A text that two bodies share exactly when they are equal.
[[nodiscard]] std::string body_key(const Graph& body);

}  // namespace braid
