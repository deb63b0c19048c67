#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "braid/graph.h"

namespace braid::testing {

/// Writes graphs over T in [1, most]; with a world, there is a group "tp" of that size and inputs
/// differ from rank to rank.
class GraphBuilder {
 public:
  explicit GraphBuilder(std::int64_t most, std::optional<std::int64_t> world = {})
      : per_rank_(world.has_value()) {
    graph_.add_symbol("T", {1, most});
    if (world) graph_.add_group("tp", {*world, true, {}});
  }
  /// Without a name: "in0" and so on.
  ValueId in(DType dtype, Shape shape, std::string name = {}) {
    if (name.empty()) name = "in" + std::to_string(graph_.inputs().size());
    return graph_.add_input(
        {std::move(name), {dtype, std::move(shape)}, InputKind::kActivation, per_rank_});
  }
  const Node& node(const char* op, std::vector<ValueId> inputs, Attrs attrs = {},
                   const char* name = "") {
    return graph_.node(graph_.add_node(name, op, std::move(inputs), std::move(attrs)));
  }
  ValueId op(const char* op, std::vector<ValueId> inputs, Attrs attrs = {},
             std::size_t result = 0) {
    return node(op, std::move(inputs), std::move(attrs)).outputs[result];
  }
  Graph take(const std::vector<ValueId>& outputs) {
    for (ValueId output : outputs) graph_.add_output(output);
    verify(graph_);
    return std::move(graph_);
  }
  [[nodiscard]] Graph& graph() { return graph_; }

 private:
  bool per_rank_;
  Graph graph_{"case"};
};

}  // namespace braid::testing
