#pragma once

#include <cstddef>
#include <unordered_map>

#include "lowering/pass.h"
#include "lowering/rewrite.h"

namespace braid {

/// The part of lower_collectives for groups without symmetric memory. Their collectives get the
/// Algorithm::kByCommunicator, take their operand wherever it lies, and stay asynchronous.
/// Communicators handle chunks along dim 0 only, so transposes before the collective and behind its
/// wait convert other dims.
class ByCommunicator {
 public:
  ByCommunicator(const Graph& graph, PassContext& context, Rewriter& rewrite)
      : graph_(graph), context_(context), rewrite_(rewrite) {}

  /// Whether the node is run by a communicator, now or once it is lowered.
  [[nodiscard]] bool runs(const Node& node) const;
  /// Lowers an out-of-place collective over such a group; a coalesced one becomes one per operand.
  void lower(const Node& node);
  /// Lowers the wait_tensor of a lowered collective.
  void wait(const Node& node);

 private:
  struct Gathered {
    std::size_t dim;
    std::int64_t ranks;
  };

  ValueId add(const Node& node, std::string_view op, std::vector<ValueId> inputs, Attrs attrs);
  ValueId add_collective(const Node& node, std::size_t operand, const std::string& name);
  /// The operand with the chunks of the ranks along dim 0.
  ValueId chunks_first(const Node& node, ValueId operand, std::size_t dim, std::int64_t ranks);
  /// Turns a result whose parts lie along dim 0 into one with the parts along `dim`.
  ValueId parts_along(const Node& node, ValueId result, const Gathered& gathered);
  /// The value that replaces the collective's result after the wait.
  ValueId finished(const Node& node, ValueId collective, ValueId waited);

  const Graph& graph_;
  PassContext& context_;
  Rewriter& rewrite_;
  std::unordered_map<ValueId, Gathered> gathered_;  ///< for results of new collectives: where the
                                                    ///< parts belong
};

}  // namespace braid
