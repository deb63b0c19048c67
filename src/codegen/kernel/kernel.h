#pragma once

#include <vector>

#include "codegen/kernel/orders.h"
#include "codegen/work/work.h"

namespace braid {

/// A kernel is a list of these, one after the other.
struct Phase {
  const Work* work = nullptr;
  Order order = Order::kStride;
  Meet meet = Meet::kNothing;
  Role role = {};
  /// The list of an order that has one: the numbers of the pieces, i32 in memory, and how many they
  /// are, a scalar. An operand has it, or an earlier phase has made it.
  struct List {
    tile::Id numbers, count;
  };
  List (*list)(tile::Builder& b, const BodyFacts& facts) = nullptr;
};

/// One way to compute a body as one kernel. A body finds its kernel by asking; nobody else knows a
/// name.
struct Kernel {
  /// For people, and the stem of its kernels' names, but for those of a collective alone, which
  /// bear its op.
  std::string_view name;
  std::vector<Phase> phases;
  /// Whether blocks that are alike meet after the last phase of a group's last step of a run, so
  /// that no remote read outlives it.
  bool closes = false;
  /// Blocks for which there is room; null: one for each piece. `ranks_per_device` bounds a grid
  /// that waits.
  std::int64_t (*room)(const BodyFacts& facts, const Config& config, const Target& target,
                       int ranks_per_device) = nullptr;
};

/// All kernels; the first that matches a body is the body's.
[[nodiscard]] std::span<const Kernel> kernels();
[[nodiscard]] const Kernel& find_kernel(const Graph& body,
                                        std::span<const Kernel> among = kernels());

}  // namespace braid
