#pragma once

#include <cstddef>
#include <unordered_map>

#include "lowering/pass.h"
#include "lowering/rewrite.h"

namespace braid {

/// The part of lower_collectives that is about groups without symmetric memory: their collectives
/// get the algorithm kByCommunicator, on their operand wherever that lies, and stay asynchronous.
/// Communicators know chunks along dim 0 only: movements in front of a collective and behind its
/// wait bring others there and back.
class ByCommunicator {
 public:
  ByCommunicator(const Graph& graph, PassContext& context, Rewriter& rewrite)
      : graph_(graph), context_(context), rewrite_(rewrite) {}

  /// Whether a communicator runs the node, or will.
  [[nodiscard]] bool runs(const Node& node) const;
  /// A collective over such a group, out of place; a coalesced one becomes one for each operand.
  void lower(const Node& node);
  /// The wait_tensor of one that was lowered.
  void wait(const Node& node);

 private:
  struct Gathered {
    std::size_t dim;
    std::int64_t ranks;
  };

  ValueId add(const Node& node, std::string_view op, std::vector<ValueId> inputs, Attrs attrs);
  ValueId add_collective(const Node& node, std::size_t operand, const std::string& name);
  /// The operand with what each rank gets of it along dim 0.
  ValueId chunks_first(const Node& node, ValueId operand, std::size_t dim, std::int64_t ranks);
  /// The result of which each rank has given a part along dim 0, with the parts along `dim`.
  ValueId parts_along(const Node& node, ValueId result, const Gathered& gathered);
  /// What stands for the collective's result once it is there.
  ValueId finished(const Node& node, ValueId collective, ValueId waited);

  const Graph& graph_;
  PassContext& context_;
  Rewriter& rewrite_;
  std::unordered_map<ValueId, Gathered> gathered_;  ///< where a new collective's parts should be
};

}  // namespace braid
