#include "ir/mutation.h"

#include <gmock/gmock.h>

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

// Nobody can read what a collective computes by another name.
TEST_F(Mutation, AWaitOfAComputedValueIsItsName) {
  const ValueId w = add("w", "wait_tensor", {add("c", "all_reduce", {x_}, kSum)});
  const ValueId row = add("row", "slice", {w}, {{"end", std::int64_t{1}}});
  const ValueId of_y = add("of_y", "slice", {y_}, {{"end", std::int64_t{1}}});
  const ValueId t = transposed("t", w);
  add("k", "copy_", {row, of_y});
  graph_.add_output(add("n", "neg", {w}));
  graph_.add_output(w);
  EXPECT_EQ(outputs(), (std::vector<Values>{{0, 0, 0, -44, -55, -66}, {0, 0, 0, 44, 55, 66}}));
  graph_.add_output(add("late", "neg", {t}));
  EXPECT_TRUE(is_error(error(), "/nodes/7/inputs/0", "\"t\" names memory that copy_ \"k\""));
}

TEST_F(Mutation, RefusesToOverwriteThroughAnotherDType) {
  const ValueId v = add("v", "view", {x_}, {{"dtype", DType::kI32}});
  const ValueId y = add("w", "view", {y_}, {{"dtype", DType::kI32}});
  graph_.add_output(add("c", "copy_", {v, y}));
  EXPECT_TRUE(is_error(error(), "/nodes/2",
                       "copy_ overwrites \"a\" through \"v\", which reads it as i32[2, 3]"));
}

TEST_F(Mutation, RefusesToOverwriteElementsThatShareMemory) {
  const ValueId e = add("e", "expand", {x_}, {{"shape", Shape{4, 2, 3}}});
  add("w", "wait_tensor", {add("c", "all_reduce_", {e}, kSum)});
  graph_.add_output(x_);
  EXPECT_TRUE(is_error(error(), "/nodes/1",
                       "all_reduce_ overwrites \"a\" through \"e\", whose elements share memory"));
}

TEST_F(Mutation, AnotherDTypeIsANameForItsOperand) {
  const ValueId v = add("v", "view", {x_}, {{"dtype", DType::kI32}});
  add("c", "copy_", {x_, y_});
  graph_.add_output(add("n", "neg", {v}));
  EXPECT_TRUE(is_error(error(), "/nodes/2/inputs/0", "\"v\" names memory that copy_ \"c\""));
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

/// The halves of x along dim 1, and an all_reduce_coalesced_ of the two.
class MutationOfParts : public Mutation {
 protected:
  ValueId part(const char* name, std::int64_t start, std::int64_t end) {
    return add(name, "slice", {x_}, {{"dim", std::int64_t{1}}, {"start", start}, {"end", end}});
  }
  std::vector<ValueId> reduce(const std::vector<ValueId>& operands) {
    return graph_.node(graph_.add_node("c", "all_reduce_coalesced_", operands, kSum)).outputs;
  }
};

TEST_F(MutationOfParts, AWaitEndsTheUseOfItsOwnOperand) {
  const std::vector<ValueId> c = reduce({part("a0", 0, 1), part("b0", 1, 3)});
  const ValueId v = add("v", "wait_tensor", {c[0]});
  graph_.add_output(add("early", "neg", {v}));
  EXPECT_TRUE(is_error(error(), "/nodes/2", "nothing waits"));
  add("w", "wait_tensor", {c[1]});
  graph_.add_output(x_);
  EXPECT_EQ(outputs(), (std::vector<Values>{{-11, -44}, {11, 22, 33, 44, 55, 66}}));
}

TEST_F(MutationOfParts, RefusesTheWholeUntilBothWaits) {
  const std::vector<ValueId> c = reduce({part("a0", 0, 1), part("b0", 1, 3)});
  add("v", "wait_tensor", {c[0]});
  graph_.add_output(add("whole", "neg", {x_}));
  add("w", "wait_tensor", {c[1]});
  EXPECT_TRUE(is_error(error(), "/nodes/4/inputs/0",
                       "\"a\" is used while all_reduce_coalesced_ \"c\" overwrites it"));
}

TEST_F(MutationOfParts, AWaitFreesOnlyTheOperandThatItsResultStandsFor) {
  const auto& c = graph_.node(graph_.add_node("c", "all_reduce_coalesced", {x_, y_}, kSum)).outputs;
  const ValueId second = c[1];
  add("v", "wait_tensor", {c[0]});
  add("k", "copy_", {y_, x_});
  graph_.add_output(add("w", "wait_tensor", {second}));
  EXPECT_TRUE(
      is_error(error(), "/nodes/2", "overwrites \"b\" while all_reduce_coalesced \"c\" reads it"));
}

TEST_F(MutationOfParts, RefusesOperandsThatShareElements) {
  const auto refused_for = [&](auto second) {
    graph_ = graph_with({{DType::kF32, {2, 3}}, {DType::kF32, {2, 3}}}, 2, true);
    const ValueId first = part("a0", 0, 2);
    for (ValueId result : reduce({first, second(first)})) {
      add(result == graph_.find("c:0") ? "v" : "w", "wait_tensor", {result});
    }
    graph_.add_output(x_);
    return error();
  };
  const char* message = "which may share elements; expected operands that lie apart";
  EXPECT_THAT(refused_for([&](ValueId) { return x_; }), ::testing::HasSubstr(message));
  EXPECT_THAT(refused_for([&](ValueId first) { return first; }),
              ::testing::StartsWith("/nodes/1/inputs/1 | all_reduce_coalesced_ overwrites \"a0\""));
  EXPECT_THAT(refused_for([&](ValueId) { return part("b0", 1, 3); }),
              ::testing::HasSubstr(message));
  EXPECT_THAT(refused_for([&](ValueId) { return transposed("t", x_); }),
              ::testing::HasSubstr(message));
  EXPECT_EQ(refused_for([&](ValueId) { return part("b0", 2, 3); }), "no error");
  EXPECT_EQ(refused_for([&](ValueId) { return y_; }), "no error");
}

TEST_F(MutationOfParts, PartsOfOnePartLieApart) {
  const ValueId t = transposed("t", x_);
  const std::vector<std::int64_t> sizes = {1, 1, 1};
  const NodeId s = graph_.add_node("s", "split", {t}, {{"split_size", sizes}});
  const ValueId whole = graph_.node(s).outputs[0];
  const ValueId again = graph_.node(s).outputs[2];
  const std::vector<ValueId> c = reduce({whole, again});
  add("v", "wait_tensor", {c[0]});
  add("w", "wait_tensor", {c[1]});
  graph_.add_output(x_);
  EXPECT_EQ(outputs(), (std::vector<Values>{{11, 2, 33, 44, 5, 66}}));
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
