#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "lowering/pass.h"
#include "lowering/rewrite.h"

namespace braid {

/// The part of lower_collectives that runs all-gathers and reduce-scatters as copies from the peers
/// (PassConfig::by_copies): copy engines move the bytes, beside the kernels, from the collective to
/// its wait, where a scatter's chunks are added up.
class ByCopies {
 public:
  ByCopies(const Graph& graph, PassContext& context, Rewriter& rewrite)
      : graph_(graph), context_(context), rewrite_(rewrite) {}

  /// Whether copies are to run a collective over a group with symmetric memory, and can; where they
  /// cannot, it is remarked.
  [[nodiscard]] bool takes(const Node& node);
  /// Nanoseconds that they take where they can run it.
  [[nodiscard]] std::optional<double> would_take_ns(const Node& node) const;
  /// Operand number i of it is a communication buffer of the new graph.
  void start(const Node& node, std::size_t i, ValueId operand);
  /// Once all operands are.
  void started(const Node& node);
  /// Whether the wait is for such copies.
  [[nodiscard]] bool are_awaited(const Node& wait) const;
  void wait(const Node& node);

 private:
  ValueId add(const Node& node, std::string_view op, std::vector<ValueId> inputs, Attrs attrs);

  /// Under way: the chunk of the rank k after this one at k.
  struct Copies {
    std::vector<ValueId> chunks;
    std::string group;
    std::string reduce_op;  ///< of a scatter
  };
  const Graph& graph_;
  PassContext& context_;
  Rewriter& rewrite_;
  std::unordered_map<ValueId, Copies> under_way_;  ///< by the collective's result in the old graph
};

}  // namespace braid
