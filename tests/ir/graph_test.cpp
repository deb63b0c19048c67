#include "braid/graph.h"

#include "support.h"

namespace braid {
namespace {

const TensorType kX{DType::kF32, {sym("T"), 4}};

TEST(Graph, FindsValuesByName) {
  Graph graph = graph_with({kX, {DType::kF32, {4}}});
  const auto a = graph.input_values()[0];
  const auto b = graph.input_values()[1];
  const NodeId n = graph.add_node("n", "neg", {a});
  const NodeId two = graph.add_node("two", "add_rms_norm2", {a, a, b}, {{"eps", 1e-5}});
  EXPECT_EQ(graph.find("a"), a);
  EXPECT_EQ(graph.find("n"), graph.node(n).outputs[0]);
  EXPECT_EQ(graph.find("n:0"), graph.node(n).outputs[0]);
  EXPECT_EQ(graph.find("two:1"), graph.node(two).outputs[1]);
  for (const char* name : {"two", "n:1", "two:2", "two:0:0", "", ":0"})
    EXPECT_FALSE(graph.find(name)) << name;
}

TEST(Graph, NamesAreUniqueOverInputsNodesAndResults) {
  Graph graph = graph_with({kX, {DType::kF32, {4}}});
  const auto a = graph.input_values()[0];
  const auto b = graph.input_values()[1];
  EXPECT_TRUE(
      is_error(error_of([&] { graph.add_node("a", "neg", {a}); }), "a/name", "defined twice"));
  graph.add_node("n:1", "neg", {a});
  const std::size_t before = graph.values().size();
  EXPECT_TRUE(is_error(error_of([&] {
                         graph.add_node("n", "add_rms_norm2", {a, a, b}, {{"eps", 1e-5}});
                       }),
                       "n/name", "\"n:1\" is defined twice"));
  EXPECT_EQ(graph.values().size(), before);
  graph.add_node("m", "add_rms_norm2", {a, a, b}, {{"eps", 1e-5}});
  EXPECT_TRUE(
      is_error(error_of([&] { graph.add_node("m", "neg", {a}); }), "m/name", "defined twice"));
}

TEST(Graph, FreshNamesAvoidTakenOnes) {
  Graph graph = graph_with({kX});
  graph.add_node("v0", "neg", {0});
  const NodeId fresh = graph.add_node("", "neg", {0});
  EXPECT_EQ(graph.node(fresh).name, "v1");
}

TEST(Graph, RefusesBadNodes) {
  Graph graph = graph_with({kX});
  EXPECT_TRUE(is_error(error_of([&] { graph.add_node("n", "frobnicate", {0}); }), "n/op",
                       "unknown op \"frobnicate\"; expected one of "));
  EXPECT_TRUE(is_error(error_of([&] { graph.add_node("n", "neg", {5}); }), "n/inputs/0",
                       "there is no value 5"));
  EXPECT_TRUE(is_error(error_of([&] { graph.add_node("n", "neg", {-1}); }), "n/inputs/0",
                       "there is no value -1"));
  EXPECT_TRUE(is_error(error_of([&] { graph.add_node("n\n\"; int x", "neg", {}); }),
                       "n\\n\"; int x/inputs", "0 operands"));
  EXPECT_TRUE(
      is_error(error_of([&] { graph.add_node("\xFF", "neg", {0}); }), "\\xff/name", "not UTF-8"));
  EXPECT_TRUE(graph.nodes().empty());
}

TEST(Graph, RefusesBadInputs) {
  Graph graph = graph_with({});
  auto add = [&](const char* name, Shape shape) {
    return error_of([&] { graph.add_input({name, {DType::kF32, std::move(shape)}}); });
  };
  EXPECT_TRUE(is_error(add("", {4}), "/name", "empty"));
  EXPECT_TRUE(is_error(add("x", {4, sym("U")}), "x/shape/1",
                       "unknown symbol \"U\"; expected \"S\", \"T\""));
  EXPECT_TRUE(
      is_error(add("x", {0}), "x/shape/0", "the extent 0 is always 0; expected at least 1"));
  EXPECT_TRUE(is_error(add("x", {sym("T") - sym("S")}), "x/shape/0", "can be -63"));
  EXPECT_TRUE(
      is_error(add("x", {1, 1, 1, 1, 1, 1, 1, 1, 1}), "x/shape", "9 dims; expected at most 8"));
  EXPECT_TRUE(is_error(add("x", {1 << 20, 1 << 20}), "x/shape", "2^40 elements"));
  EXPECT_TRUE(is_error(add("x", {std::int64_t{1} << 32, sym("T")}), "x/shape", "2^40 elements"));
  EXPECT_TRUE(is_error(add("x", {std::int64_t{1} << 62, 4, 4}), "x/shape", "2^40 elements"));
  EXPECT_EQ(add("x", {std::int64_t{1} << 31, sym("T")}), "no error");
}

TEST(Graph, RefusesResultsThatAreTooLarge) {
  Graph graph = graph_with({{DType::kF32, {1 << 20, 1}}, {DType::kF32, {1, 1 << 20}}});
  EXPECT_TRUE(is_error(error_of([&] { graph.add_node("n", "mm", {0, 1}); }), "n", "2^40 elements"));
}

TEST(Graph, HintsAndCommGroupsAreChecked) {
  Graph graph = graph_with({kX});
  const NodeId n = graph.add_node("n", "neg", {0});
  graph.set_hint(n, "runtime_ns", 12);
  graph.set_comm_group(1, "tp");
  EXPECT_EQ(graph.node(n).hints.at("runtime_ns"), 12);
  EXPECT_EQ(graph.value(1).comm_group, "tp");
  EXPECT_TRUE(is_error(error_of([&] { graph.set_comm_group(1, "dp"); }), "n/comm_group",
                       "unknown group \"dp\""));
  EXPECT_TRUE(
      is_error(error_of([&] { graph.set_hint(n, "x", 1.0 / 0.0); }), "n/hints/x", "finite"));
}

TEST(Graph, UsersComeOnceAndInOrder) {
  Graph graph = graph_with({kX});
  graph.add_node("n", "add", {0, 0});
  graph.add_node("m", "mul", {1, 0});
  graph.add_output(2);
  EXPECT_EQ(graph.users(), (std::vector<std::vector<NodeId>>{{0, 1}, {1}, {}}));
  EXPECT_EQ(graph.output_flags(), (std::vector<bool>{false, false, true}));
}

TEST(Graph, CloneInterfaceDropsNodes) {
  Graph graph = graph_with({kX});
  graph.set_comm_group(0, "tp");
  graph.add_node("n", "neg", {0});
  graph.add_output(1);
  const Graph clone = graph.clone_interface();
  EXPECT_TRUE(clone.nodes().empty());
  EXPECT_TRUE(clone.outputs().empty());
  EXPECT_EQ(clone.symbols(), graph.symbols());
  EXPECT_EQ(clone.groups(), graph.groups());
  EXPECT_EQ(clone.find("a"), 0);
  EXPECT_EQ(clone.value(0).comm_group, "tp");
}

}  // namespace
}  // namespace braid
