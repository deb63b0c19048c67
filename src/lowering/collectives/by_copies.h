#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "lowering/pass.h"
#include "lowering/rewrite.h"

namespace braid {

/// Times of a collective as one kernel and as copies. `hidden_ns` is what compute can hide of the
/// copies, `exposed_ns` the rest and what must follow them until their result is there.
struct CopiesEstimate {
  double kernel_ns = 0, copies_ns = 0, hidden_ns = 0, exposed_ns = 0;
};

/// Options of lower_collectives.
struct CopiesOptions {
  bool hide = true;  ///< copies where other kernels hide enough of them
};

/// The part of lower_collectives that runs all-gathers and reduce-scatters as copies from peers.
/// Copy engines move the bytes beside the kernels, from the collective to its wait, where the
/// chunks of a scatter are summed. It is used where PassConfig::by_copies asks for it, or where
/// CopiesOptions::hide allows it and copies expose less time than a kernel takes.
class ByCopies {
 public:
  ByCopies(const Graph& graph, PassContext& context, Rewriter& rewrite);

  /// Whether a collective over symmetric memory becomes copies. Leaves a remark where that was
  /// asked for but is not possible.
  [[nodiscard]] bool takes(const Node& node);
  /// The times, where copies are possible.
  [[nodiscard]] std::optional<CopiesEstimate> estimate(const Node& node) const;
  /// Starts the copies of operand `i`, a communication buffer of the new graph.
  void start(const Node& node, std::size_t i, ValueId operand);
  /// Called once all operands are started.
  void started(const Node& node);
  /// Whether this wait is for such copies.
  [[nodiscard]] bool are_awaited(const Node& wait) const;
  void wait(const Node& node);

 private:
  ValueId add(const Node& node, std::string_view op, std::vector<ValueId> inputs, Attrs attrs);

  /// Copies in flight: element k is the chunk of the rank k after this one.
  struct Copies {
    std::vector<ValueId> chunks;
    std::string group;
    std::string reduce_op;  ///< of a scatter; empty for a gather
  };
  const Graph& graph_;
  PassContext& context_;
  Rewriter& rewrite_;
  std::unordered_map<ValueId, CopiesEstimate> estimates_;  ///< by the collective's first result
  std::unordered_map<ValueId, Copies> under_way_;  ///< by the collective's result in the old graph
};

}  // namespace braid
