// All-reduces with what may stand in front of them and behind them in one kernel, worlds 2 to 8.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lowering/passes.h"
#include "run/run_graph.h"

namespace braid {
namespace {

struct Case {
  std::int64_t world;
  const char* front;  ///< what the operand is
  const char* back;   ///< what is computed from the sum
  std::int64_t hidden;
  std::int64_t tokens;
  DType dtype;
  std::int64_t most = 40;  ///< tokens: with many the cost model takes two shots
};

class Body {
 public:
  Body(const Case& c, bool constant_rows) : case_(c) {
    if (constant_rows) tokens_ = c.tokens;
    graph_.add_symbol("T", {1, c.most});
    graph_.add_group("tp", {c.world, true, {}});
  }

  Graph build() {
    ValueId sum =
        op("wait_tensor",
           {op("all_reduce", {operand(case_.front)}, {{"reduce_op", "sum"}, {"group", "tp"}})});
    graph_.add_output(result(case_.back, sum));
    return std::move(graph_);
  }

 private:
  ValueId op(const char* name, std::vector<ValueId> inputs, Attrs attrs = {}) {
    return graph_.node(graph_.add_node("", name, std::move(inputs), std::move(attrs))).outputs[0];
  }
  ValueId input(Shape shape, bool per_rank = false) {
    return graph_.add_input({fmt::format("in{}", graph_.inputs().size()),
                             {case_.dtype, std::move(shape)},
                             InputKind::kActivation,
                             per_rank});
  }
  ValueId rows(bool per_rank) { return input({tokens_, case_.hidden}, per_rank); }

  ValueId operand(std::string_view front) {
    if (front == "input") return rows(true);
    if (front == "scaled") return op("silu", {op("mul", {rows(true), input({case_.hidden})})});
    if (front == "matmul") {
      return op("mm", {input({tokens_, 64}), input({64, case_.hidden}, true)});
    }
    if (front == "norm") return op("softmax", {rows(true)});
    const ValueId x = op("neg", {rows(true)});  // "shared": read again behind
    shared_ = x;
    return x;
  }

  ValueId result(std::string_view back, ValueId sum) {
    if (shared_ >= 0) sum = op("add", {sum, shared_});
    if (back == "norm") {
      return op("rms_norm", {op("add", {sum, rows(false)}), input({case_.hidden})},
                {{"eps", 1e-5}});
    }
    if (back == "total") {
      return op("sum", {op("gelu", {sum})}, {{"dim", std::vector<std::int64_t>{-1}}});
    }
    if (back == "softmax") return op("softmax", {sum});
    if (back == "bias") return op("relu", {op("add", {sum, input({case_.hidden})})});
    return sum;
  }

  const Case& case_;
  Dim tokens_ = Dim::symbol("T");
  Graph graph_;
  ValueId shared_ = -1;
};

class AllReduce : public ::testing::TestWithParam<Case> {};

TEST_P(AllReduce, EqualsTheReferenceAndUnfused) {
  const Case& c = GetParam();
  EXPECT_TRUE(testing::matches_reference_and_unfused(Body(c, false).build(), {{"T", c.tokens}}, 5));
  // One row that is known is another kernel than one that is not.
  if (c.tokens > 1) return;
  EXPECT_TRUE(testing::matches_reference_and_unfused(Body(c, true).build(), {{"T", 1}}, 5));
}

TEST_P(AllReduce, RunsCleanUnderTheSanitizer) {
  const Case& c = GetParam();
  EXPECT_TRUE(testing::runs_clean(Body(c, false).build(), {{"T", c.tokens}}, 6));
}

/// The algorithm of the only collective.
std::string algorithm_of(const Graph& graph) {
  PassContext context;
  context.target = Target::parse("sm_80");
  const std::vector<std::string> names{"canonicalize", "lower_collectives"};
  const Graph lowered = run_passes(graph, names, context);
  for (const Node& node : lowered.nodes()) {
    if (const auto* algorithm = node.attr<std::string>("algorithm")) return *algorithm;
  }
  return "none";
}

class TwoShot : public AllReduce {};

TEST_P(TwoShot, EqualsTheReferenceUnfusedAndOneShot) {
  Case c = GetParam();
  const Graph graph = Body(c, false).build();
  EXPECT_EQ(algorithm_of(graph), "two_shot");
  const Bindings bindings{{"T", c.tokens}};
  EXPECT_TRUE(testing::matches_reference_and_unfused(graph, bindings, 5));
  c.most = c.tokens;
  const Graph small = Body(c, false).build();
  EXPECT_EQ(algorithm_of(small), "one_shot");
  const RankTensors inputs = random_inputs(graph, bindings, 7);
  World world = World::open(testing::world_options(c.world));
  Executable two = Executable::compile(graph, world);
  Executable one = Executable::compile(small, world);
  const RankTensors got = testing::run_once(two, graph, bindings, inputs);
  const RankTensors expected = testing::run_once(one, small, bindings, inputs);
  for (std::size_t rank = 0; rank < got.size(); ++rank) {
    EXPECT_EQ(got[rank][0].data, expected[rank][0].data) << "rank " << rank;
  }
}

TEST_P(TwoShot, RunsCleanUnderTheSanitizer) {
  const Case& c = GetParam();
  EXPECT_TRUE(testing::runs_clean(Body(c, false).build(), {{"T", c.tokens}}, 6));
}

constexpr DType kF32 = DType::kF32, kBF16 = DType::kBF16, kF16 = DType::kF16;
INSTANTIATE_TEST_SUITE_P(
    Pairs, AllReduce,
    ::testing::Values(
        Case{2, "input", "sum", 96, 1, kBF16}, Case{2, "scaled", "norm", 1001, 7, kF16},
        Case{2, "matmul", "softmax", 96, 33, kF32}, Case{3, "scaled", "softmax", 96, 7, kBF16},
        Case{3, "input", "norm", 20000, 2, kF32}, Case{3, "norm", "bias", 130, 33, kF16},
        Case{4, "scaled", "norm", 20000, 1, kBF16}, Case{4, "matmul", "total", 1001, 7, kBF16},
        Case{4, "shared", "norm", 96, 33, kF32}, Case{5, "scaled", "total", 130, 33, kF32},
        Case{5, "input", "bias", 1001, 1, kF16}, Case{6, "matmul", "norm", 130, 7, kF16},
        Case{6, "scaled", "sum", 96, 33, kBF16}, Case{7, "input", "softmax", 1001, 7, kF32},
        Case{7, "norm", "sum", 96, 1, kBF16}, Case{8, "scaled", "norm", 130, 33, kF32},
        Case{8, "shared", "total", 96, 7, kBF16}, Case{8, "matmul", "bias", 1001, 2, kBF16},
        Case{8, "input", "total", 20000, 7, kF16}),
    [](const auto& info) {
      const Case& c = info.param;
      return fmt::format("w{}_{}_{}_h{}_t{}_{}", c.world, c.front, c.back, c.hidden, c.tokens,
                         dtype_name(c.dtype));
    });

INSTANTIATE_TEST_SUITE_P(Pairs, TwoShot,
                         ::testing::Values(Case{3, "input", "sum", 96, 33, kBF16, 8192},
                                           Case{3, "matmul", "norm", 1001, 7, kF16, 800},
                                           Case{4, "scaled", "norm", 20000, 3, kBF16, 64},
                                           Case{5, "norm", "total", 130, 33, kF32, 4096},
                                           Case{6, "scaled", "softmax", 96, 7, kF32, 4096},
                                           Case{7, "input", "norm", 1001, 1, kBF16, 512},
                                           Case{8, "scaled", "bias", 1001, 33, kF16, 512},
                                           Case{8, "matmul", "norm", 96, 40, kBF16, 4096}),
                         [](const auto& info) {
                           const Case& c = info.param;
                           return fmt::format("w{}_{}_{}_h{}_t{}_{}", c.world, c.front, c.back,
                                              c.hidden, c.tokens, dtype_name(c.dtype));
                         });

}  // namespace
}  // namespace braid
