#include "support.h"

namespace braid {
namespace {

Attrs attributes(const char* reduce_op = "sum", const char* group = "tp") {
  return {{"reduce_op", std::string(reduce_op)}, {"group", std::string(group)}};
}

TEST(AllReduce, InfersTheOperandsType) {
  EXPECT_EQ(inferred({{DType::kBF16, {sym("T"), 8}}}, "all_reduce", attributes()), "bf16[T, 8]");
}

TEST(AllReduce, RefusesBadAttributes) {
  const TensorType x{DType::kF32, {2}};
  EXPECT_TRUE(is_error(refused({x}, "all_reduce", attributes("median")), "n/attrs/reduce_op",
                       "unknown reduction \"median\"; expected sum"));
  EXPECT_TRUE(is_error(refused({x}, "all_reduce", attributes("sum", "dp")), "n/attrs/group",
                       "unknown group \"dp\"; expected \"tp\""));
  EXPECT_TRUE(is_error(refused({x}, "all_reduce", {{"reduce_op", std::string("sum")}}),
                       "n/attrs/group", "missing"));
  EXPECT_TRUE(is_error(refused({{DType::kBool, {2}}}, "all_reduce", attributes()), "n/inputs/0",
                       "expected a number"));
}

TEST(AllReduce, SumsOverTheRanks) {
  const TensorType x{DType::kF32, {2}};
  const auto results =
      computed({x}, "all_reduce", attributes(), {{{1, 10}}, {{2, 20}}, {{3, 30}}, {{4, 40}}});
  for (const auto& rank : results) EXPECT_EQ(rank[0], (Values{10, 100}));
}

TEST(AllReduce, RoundsOnce) {
  const auto results =
      computed({{DType::kBF16, {1}}}, "all_reduce", attributes(), {{{256}}, {{1}}, {{1}}});
  for (const auto& rank : results) EXPECT_EQ(rank[0], Values{258});
}

TEST(AllReduce, StaysInsideEachInstanceOfTheGroup) {
  Graph graph("mesh");
  graph.add_group("tp", {2, true, {{0, 2}, {1, 3}}});
  const ValueId x = graph.add_input({"x", {DType::kF32, {1}}, InputKind::kActivation, true});
  const NodeId sum = graph.add_node("c", "all_reduce", {x}, attributes());
  const NodeId done = graph.add_node("w", "wait_tensor", graph.node(sum).outputs);
  graph.add_output(graph.node(done).outputs[0]);
  RankTensors inputs;
  for (double value : {1, 2, 4, 8})
    inputs.push_back({HostTensor::from_doubles(DType::kF32, {1}, {value})});
  const RankTensors outputs = evaluate(graph, inputs, {});
  Values found;
  for (const auto& rank : outputs) found.push_back(rank[0].to_doubles()[0]);
  EXPECT_EQ(found, (Values{5, 10, 5, 10}));
}

TEST(AllReduce, GroupOfOneIsTheIdentity) {
  EXPECT_EQ(computed_one({{DType::kF32, {2}}}, "all_reduce", attributes(), {{3, 4}}),
            (Values{3, 4}));
}

TEST(WaitTensor, IsTheIdentityOnAnything) {
  EXPECT_EQ(computed_one({{DType::kI32, {2}}}, "wait_tensor", {}, {{3, 4}}), (Values{3, 4}));
}

}  // namespace
}  // namespace braid
