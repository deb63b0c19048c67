#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "braid/graph.h"
#include "lowering/passes.h"

namespace braid::testing {

inline PassContext sm80() {
  PassContext context;
  context.target.sm = 80;
  return context;
}

/// Splits and fuses whatever is legal: the graphs of most tests are too small to gain.
inline PassContext eager() {
  PassContext context = sm80();
  context.config.always_pipeline = true;
  return context;
}

/// All-reduces are one-shot, however small they are.
inline PassContext in_one_shot() {
  PassContext context = sm80();
  context.config.all_reduce = "one_shot";
  return context;
}

/// A graph from the inner part of its JSON: symbol T in 1..64, group "tp" of `world` ranks.
inline Graph graph_of(const std::string& inputs, const std::string& nodes,
                      const std::string& outputs, int world = 4) {
  return parse_graph(R"({"braid": 1, "name": "test", "symbols": {"T": {"min": 1, "max": 64}},
                         "groups": {"tp": {"size": )" +
                     std::to_string(world) + R"(}}, "inputs": [)" + inputs + R"(], "nodes": [)" +
                     nodes + R"(], "outputs": [)" + outputs + "]}");
}

/// An input and the usual nodes as JSON.
inline std::string input(const std::string& name, const std::string& shape,
                         const std::string& more = R"(, "per_rank": true)") {
  return R"({"name": ")" + name + R"(", "dtype": "f32", "shape": [)" + shape + "]" + more + "}";
}
inline std::string node(const std::string& name, const std::string& op, const std::string& inputs,
                        const std::string& attrs = "") {
  return R"({"name": ")" + name + R"(", "op": ")" + op + R"(", "inputs": [)" + inputs + "]" +
         (attrs.empty() ? "" : R"(, "attrs": {)" + attrs + "}") + "}";
}
inline std::string all_reduce(const std::string& name, const std::string& operand,
                              const std::string& group = "tp") {
  return node(name, "all_reduce", '"' + operand + '"',
              R"("reduce_op": "sum", "group": ")" + group + '"');
}

/// One line per node, `name@group = op(inputs)`; a kernel as `name = template{op+op}(inputs)`; then
/// the outputs.
std::vector<std::string> lines(const Graph& graph);
/// The names of the nodes, in order.
std::vector<std::string> node_names(const Graph& graph);

/// The remarks of a node as "applied: reason" or "missed: reason".
std::vector<std::string> remarks_of(const PassContext& context, std::string_view node);

/// Both graphs give the same bits on random inputs; T = 5.
void expect_same_values(const Graph& before, const Graph& after, std::uint64_t seed = 1);

/// The same up to the order of sums.
void expect_close_values(const Graph& before, const Graph& after, std::uint64_t seed = 1);

/// A random graph of all ops, with all_reduces, shared values, views and transposes; every
/// dimension is small.
Graph random_graph(std::uint64_t seed, int nodes, int world);

}  // namespace braid::testing
