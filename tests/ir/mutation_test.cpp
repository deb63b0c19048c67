#include "ir/mutation.h"

#include "support.h"

namespace braid {
namespace {

const Attrs kSum = {{"reduce_op", std::string("sum")}, {"group", std::string("tp")}};

/// A graph over x and y, f32[2, 3] on each of two ranks.
class Mutation : public ::testing::Test {
 protected:
  Graph graph_ = graph_with({{DType::kF32, {2, 3}}, {DType::kF32, {2, 3}}}, 2, true);
  ValueId x_ = graph_.input_values()[0];
  ValueId y_ = graph_.input_values()[1];

  ValueId add(const char* name, const char* op, std::vector<ValueId> inputs, Attrs attrs = {}) {
    return graph_.node(graph_.add_node(name, op, std::move(inputs), std::move(attrs))).outputs[0];
  }
  ValueId transposed(const char* name, ValueId value) {
    return add(name, "transpose", {value}, {{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{1}}});
  }
  std::string error() {
    return error_of([&] { verify(graph_); });
  }
  /// Outputs on rank 0, of x = 1..6 (times 10 on rank 1) and y = 0.
  std::vector<Values> outputs() {
    verify(graph_);
    RankTensors inputs(2);
    for (double factor : {1.0, 10.0}) {
      Values x;
      for (int i = 1; i <= 6; ++i) x.push_back(i * factor);
      auto& rank = inputs[factor == 1.0 ? 0 : 1];
      rank.push_back(HostTensor::from_doubles(DType::kF32, {2, 3}, x));
      rank.push_back(HostTensor::from_doubles(DType::kF32, {2, 3}, Values(6, 0)));
    }
    std::vector<Values> results;
    const RankTensors found = evaluate(graph_, inputs, {{"T", 1}, {"S", 1}});
    for (const HostTensor& tensor : found[0]) {
      results.push_back(tensor.to_doubles());
    }
    return results;
  }
};

TEST_F(Mutation, WhoReadsTheOperandLaterReadsTheResult) {
  const ValueId before = add("before", "neg", {x_});
  const ValueId w = add("w", "wait_tensor", {add("c", "all_reduce_", {x_}, kSum)});
  const ValueId after = add("after", "neg", {x_});
  for (ValueId v : {before, after, x_, w}) graph_.add_output(v);
  EXPECT_EQ(outputs(), (std::vector<Values>{{-1, -2, -3, -4, -5, -6},
                                            {-11, -22, -33, -44, -55, -66},
                                            {11, 22, 33, 44, 55, 66},
                                            {11, 22, 33, 44, 55, 66}}));
}

// A2-09: the reduction of a non-contiguous operand lands in the caller's tensor.
TEST_F(Mutation, ReachesTheStorageThroughViews) {
  const ValueId t = transposed("t", x_);
  const ValueId column =
      add("column", "slice", {t}, {{"start", std::int64_t{1}}, {"end", std::int64_t{2}}});
  add("w", "wait_tensor", {add("c", "all_reduce_", {column}, kSum)});
  graph_.add_output(x_);
  EXPECT_EQ(outputs(), (std::vector<Values>{{1, 22, 3, 4, 55, 6}}));
}

TEST_F(Mutation, AMarkerIsANameForItsOperand) {
  const ValueId m = add("m", "mark_region_begin", {x_}, {{"id", std::int64_t{0}}});
  add("c", "copy_", {m, y_});
  graph_.add_output(x_);
  EXPECT_EQ(outputs(), (std::vector<Values>{Values(6, 0)}));
}

TEST_F(Mutation, CopyOverwrites) {
  add("k", "copy_", {y_, x_});
  graph_.add_output(y_);
  EXPECT_EQ(outputs(), (std::vector<Values>{{1, 2, 3, 4, 5, 6}}));
  EXPECT_TRUE(is_error(refused({{DType::kF32, {2}}, {DType::kF16, {2}}}, "copy_"), "n/inputs/1",
                       "f16[2] does not fit into f32[2]"));
}

TEST_F(Mutation, RefusesAnOlderNameOfOverwrittenMemory) {
  const ValueId t = transposed("t", x_);
  add("k", "copy_", {x_, y_});
  graph_.add_output(add("late", "neg", {t}));
  EXPECT_TRUE(
      is_error(error(), "/nodes/2/inputs/0", "\"t\" names memory that copy_ \"k\" overwrote"));
}

TEST_F(Mutation, AViewMadeAfterwardsSeesTheNewValues) {
  add("k", "copy_", {y_, x_});
  graph_.add_output(transposed("t", y_));
  EXPECT_EQ(outputs(), (std::vector<Values>{{1, 4, 2, 5, 3, 6}}));
}

TEST_F(Mutation, RefusesUsesBetweenACollectiveAndItsWait) {
  const ValueId c = add("c", "all_reduce_", {x_}, kSum);
  const ValueId between = add("between", "neg", {x_});
  add("w", "wait_tensor", {c});
  graph_.add_output(between);
  EXPECT_TRUE(is_error(error(), "/nodes/1/inputs/0",
                       "\"a\" is used while all_reduce_ \"c\" overwrites it"));
}

TEST_F(Mutation, RefusesToOverwriteWhatACollectiveReads) {
  const ValueId c = add("c", "all_reduce", {x_}, kSum);
  add("k", "copy_", {x_, y_});
  graph_.add_output(add("w", "wait_tensor", {c}));
  EXPECT_TRUE(is_error(error(), "/nodes/1",
                       "copy_ \"k\" overwrites \"a\" while all_reduce \"c\" reads it"));
}

TEST_F(Mutation, RefusesToOverwriteWhatTheOtherCollectiveStillReads) {
  const ValueId c = add("c", "all_reduce", {x_}, kSum);
  const ValueId d = add("d", "all_reduce", {x_}, kSum);
  graph_.add_output(add("w", "wait_tensor", {d}));
  add("k", "copy_", {x_, y_});
  graph_.add_output(add("v", "wait_tensor", {c}));
  EXPECT_TRUE(is_error(error(), "/nodes/3", "while all_reduce \"c\" reads it"));
}

TEST_F(Mutation, ManyInPlaceCollectivesInARow) {
  ValueId value = x_;
  for (int i = 0; i < 3; ++i) {
    const std::string n = std::to_string(i);
    value = add(("w" + n).c_str(), "wait_tensor",
                {add(("c" + n).c_str(), "all_reduce_", {value}, kSum)});
  }
  graph_.add_output(x_);
  EXPECT_EQ(outputs()[0][0], 44);
  graph_.add_output(add("old", "neg", {*graph_.find("w1")}));
  EXPECT_TRUE(
      is_error(error(), "/nodes/6/inputs/0", "\"w1\" names memory that all_reduce_ \"c2\""));
}

}  // namespace
}  // namespace braid
