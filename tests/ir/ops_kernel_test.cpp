#include "ir/op_registry.h"
#include "support.h"

namespace braid {
namespace {

const TensorType kRow{DType::kBF16, {sym("T"), 4}};

/// all_reduce (lowered), add and rms_norm of two inputs, as nodes of `graph`; outputs are added.
void add_block(Graph& graph) {
  const ValueId x = graph.input_values()[0];
  const ValueId residual = graph.input_values()[1];
  const NodeId c = graph.add_node("c", "all_reduce", {x},
                                  {{"reduce_op", std::string("sum")},
                                   {"group", std::string("tp")},
                                   {"algorithm", std::string("one_shot")}});
  const NodeId r = graph.add_node("r", "add", {graph.node(c).outputs[0], residual});
  const NodeId y = graph.add_node("y", "rms_norm", graph.node(r).outputs, {{"eps", 1e-5}});
  graph.add_output(graph.node(y).outputs[0]);
  graph.add_output(graph.node(r).outputs[0]);
}

std::shared_ptr<const Graph> block_body() {
  auto body = std::make_shared<Graph>(graph_with({kRow, kRow}, 3, true).clone_interface());
  add_block(*body);
  return body;
}

Attrs attributes(std::shared_ptr<const Graph> body) {
  return {{"body", std::move(body)},
          {"config", std::map<std::string, std::int64_t>{{"num_warps", 4}}}};
}

Graph kernel_graph() {
  Graph graph = graph_with({kRow, kRow}, 3, true);
  const NodeId k = graph.add_node("k", "kernel", graph.input_values(), attributes(block_body()));
  for (ValueId id : graph.node(k).outputs) graph.add_output(id);
  return graph;
}

TEST(Kernel, ResultsAreThoseOfTheBody) {
  const Graph graph = kernel_graph();
  ASSERT_EQ(graph.node(0).outputs.size(), 2U);
  EXPECT_EQ(graph.type(graph.node(0).outputs[1]), kRow);
  EXPECT_EQ(graph.value(graph.node(0).outputs[1]).name, "k:1");
}

TEST(Kernel, EvaluatesAsItsInlinedBody) {
  Graph inlined = graph_with({kRow, kRow}, 3, true);
  add_block(inlined);
  const Bindings bindings = {{"T", 5}, {"S", 1}};
  const RankTensors inputs = random_inputs(inlined, bindings, 7);
  const RankTensors expected = evaluate(inlined, inputs, bindings);
  const RankTensors found = evaluate(kernel_graph(), inputs, bindings);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(found[rank][i].data, expected[rank][i].data);
  }
}

TEST(Kernel, CountsTheFlopsOfItsBody) {
  const Graph graph = kernel_graph();
  EXPECT_EQ(node_flops(graph, graph.node(0), {{"T", 2}}), 8 + 8 + 4 * 8);
}

TEST(Kernel, RefusesABodyThatDoesNotFit) {
  auto build = [](const std::vector<TensorType>& types, std::shared_ptr<const Graph> body) {
    Graph graph = graph_with(types, 3, true);
    graph.add_node("k", "kernel", graph.input_values(), attributes(std::move(body)));
  };
  EXPECT_TRUE(is_error(error_of([&] { build({kRow}, block_body()); }), "k/inputs",
                       "1 operands; expected 2"));
  EXPECT_TRUE(is_error(error_of([&] {
                         build({kRow, {DType::kBF16, {sym("T"), 8}}}, block_body());
                       }),
                       "k/inputs/1", "the operand is bf16[T, 8]; expected bf16[T, 4]"));
  EXPECT_TRUE(is_error(error_of([&] { build({kRow, kRow}, nullptr); }), "k/attrs/body", "null"));
  auto other_group = std::make_shared<Graph>(graph_with({kRow, kRow}, 4, true));
  add_block(*other_group);
  EXPECT_TRUE(is_error(error_of([&] {
                         build({kRow, kRow}, other_group);
                       }),
                       "k/attrs/body", "group \"tp\""));
  auto empty = std::make_shared<Graph>(graph_with({kRow, kRow}, 3, true));
  EXPECT_TRUE(is_error(error_of([&] {
                         build({kRow, kRow}, empty);
                       }),
                       "k/attrs/body/outputs", "at least one"));
}

}  // namespace
}  // namespace braid
