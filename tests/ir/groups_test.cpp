#include "ir/groups.h"

#include "support.h"

namespace braid {
namespace {

std::string symbol_error(const char* name, Symbol symbol) {
  return error_of([&] { Graph().add_symbol(name, symbol); });
}
std::string group_error(Group group) {
  return error_of([&] { Graph().add_group("tp", std::move(group)); });
}

TEST(Symbols, AreChecked) {
  EXPECT_EQ(symbol_error("T", {1, 256, 8}), "no error");
  EXPECT_TRUE(is_error(symbol_error("a b", {1, 2, 1}), "/symbols/a b", "cannot name a symbol"));
  EXPECT_TRUE(
      is_error(symbol_error("T", {-1, 2, 1}), "/symbols/T/min", "min is -1; expected at least 0"));
  EXPECT_TRUE(is_error(symbol_error("T", {3, 2, 1}), "/symbols/T/max", "max is 2"));
  EXPECT_TRUE(
      is_error(symbol_error("T", {1, std::int64_t{1} << 40, 1}), "/symbols/T/max", "below 2^40"));
  EXPECT_TRUE(is_error(symbol_error("T", {1, 2, 0}), "/symbols/T/multiple_of", "multiple_of is 0"));
  EXPECT_TRUE(
      is_error(symbol_error("T", {5, 7, 4}), "/symbols/T/multiple_of", "a multiple from 5 to 7"));
  Graph graph;
  graph.add_symbol("T", {});
  EXPECT_TRUE(is_error(error_of([&] { graph.add_symbol("T", {}); }), "/symbols/T", "twice"));
}

TEST(Groups, AreChecked) {
  EXPECT_EQ(group_error({2, true, {{0, 2}, {1, 3}}}), "no error");
  EXPECT_TRUE(is_error(group_error({0, true, {}}), "/groups/tp/size", "size is 0"));
  EXPECT_TRUE(is_error(group_error({2, true, {{0, 1}, {2}}}), "/groups/tp/ranks/1",
                       "1 ranks; expected size (2)"));
  EXPECT_TRUE(is_error(group_error({2, true, {{0, 1}, {1, 2}}}), "/groups/tp/ranks",
                       "each rank of 0 to 3 once"));
  EXPECT_TRUE(is_error(group_error({2, true, {{1, 2}}}), "/groups/tp/ranks", "each rank"));
}

TEST(Groups, WorldSize) {
  Graph graph;
  EXPECT_EQ(world_size(graph), 1);
  graph.add_group("tp", {2, true, {{0, 1}, {2, 3}}});
  EXPECT_EQ(world_size(graph), 4);
  graph.add_group("dp", {2, true, {{0, 2}, {1, 3}}});
  graph.add_group("world", {4, true, {}});
  graph.add_group("self", {1, true, {}});
  EXPECT_EQ(world_size(graph), 4);
  graph.add_group("odd", {3, true, {}});
  EXPECT_TRUE(is_error(error_of([&] { static_cast<void>(world_size(graph)); }), "/groups/odd",
                       "3 of 4 ranks"));
}

TEST(Groups, Instances) {
  using Lists = std::vector<std::vector<std::int64_t>>;
  EXPECT_EQ(group_instances({2, true, {{0, 2}, {1, 3}}}, 4), (Lists{{0, 2}, {1, 3}}));
  EXPECT_EQ(group_instances({3, true, {}}, 3), (Lists{{0, 1, 2}}));
  EXPECT_EQ(group_instances({1, true, {}}, 2), (Lists{{0}, {1}}));
}

TEST(Groups, AnotherWorldReplacesTheOnlyGroupsSize) {
  Graph graph = graph_with({{DType::kF32, {sym("T")}}}, 2);
  const NodeId c = graph.add_node(
      "c", "all_reduce", {0}, {{"reduce_op", std::string("sum")}, {"group", std::string("tp")}});
  graph.set_hint(c, "runtime_ns", 5);
  graph.set_comm_group(0, "tp");
  graph.add_node("w", "wait_tensor", {1});
  graph.add_output(2);
  const Graph wide = with_world_size(graph, 8);
  EXPECT_EQ(world_size(wide), 8);
  std::string expected = to_json(graph);
  expected.replace(expected.find("\"size\": 2"), 9, "\"size\": 8");
  EXPECT_EQ(to_json(wide), expected);
  EXPECT_EQ(to_json(with_world_size(graph, 2)), to_json(graph));
  graph.add_group("self", {1, true, {}});
  EXPECT_TRUE(is_error(error_of([&] { static_cast<void>(with_world_size(graph, 4)); }), "",
                       "2 ranks; expected 4"));
}

}  // namespace
}  // namespace braid
