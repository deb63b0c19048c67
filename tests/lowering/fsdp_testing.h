#pragma once

#include <string>
#include <vector>

#include "lowering/lowering_testing.h"

namespace braid::testing {

/// Nodes as JSON, one after the other.
inline std::string nodes(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& entry : list) text += (text.empty() ? "" : ",\n") + entry;
  return text;
}

/// The node's `"a", "b"` from names.
inline std::string names(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& name : list) text += (text.empty() ? "\"" : ", \"") + name + '"';
  return text;
}

/// An op on values by their names.
inline std::string call(const std::string& name, const std::string& op,
                        const std::vector<std::string>& operands, const std::string& attrs = "") {
  return node(name, op, names(operands), attrs);
}

inline std::string resize(const std::string& name, const std::string& param, int bytes) {
  return call(name, "resize_storage_bytes_", {param}, R"("size": )" + std::to_string(bytes));
}

/// A training step of fully sharded data parallelism over `world` ranks, 1, 2, 4 or 8 of them: two
/// layers y = x w + b in bf16, whose f32 parameters are sharded along dim 0. Each layer's
/// parameters are gathered for the forward pass, freed, and gathered again for the backward pass; a
/// gather is launched before the one ahead of it is waited for. Gradients are averaged and
/// scattered.
Graph fsdp_training_step(int world);

}  // namespace braid::testing
