#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "lowering/pass.h"
#include "lowering/rewrite.h"

namespace braid {

/// What a collective takes by one kernel, and by copies, of which `exposed_ns` remain where the
/// schedule puts all the compute beside them that there is for them.
struct CopiesEstimate {
  double kernel_ns = 0, copies_ns = 0, exposed_ns = 0;
};

/// The part of lower_collectives that runs all-gathers and reduce-scatters as copies from the
/// peers: copy engines move the bytes, beside the kernels, from the collective to its wait, where a
/// scatter's chunks are added up. It does so where PassConfig::by_copies asks for it, or
/// PassConfig::hide_by_copies allows it and they expose less time than a kernel takes.
class ByCopies {
 public:
  ByCopies(const Graph& graph, PassContext& context, Rewriter& rewrite);

  /// Whether copies are to run a collective over a group with symmetric memory, and can; where they
  /// were asked to, but cannot, it is remarked.
  [[nodiscard]] bool takes(const Node& node);
  /// Where they can run it.
  [[nodiscard]] std::optional<CopiesEstimate> estimate(const Node& node) const;
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
  std::unordered_map<ValueId, CopiesEstimate> estimates_;  ///< by the collective's first result
  std::unordered_map<ValueId, Copies> under_way_;  ///< by the collective's result in the old graph
};

}  // namespace braid
