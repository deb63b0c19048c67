#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <vector>

#include "braid/reference.h"
#include "lowering/lowering_testing.h"
#include "lowering/plan_choice.h"

namespace braid::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string input16(const std::string& name, const std::string& shape) {
  return R"({"name": ")" + name + R"(", "dtype": "bf16", "shape": [)" + shape + "]}";
}

/// Both graphs within one rounding of the result's dtype, on small extents.
void expect_close(const Graph& before, const Graph& after) {
  const Bindings bindings{{"T", 2}};
  const RankTensors inputs = random_inputs(before, bindings, 1);
  const auto expected = evaluate(before, inputs, bindings);
  const auto got = evaluate(after, inputs, bindings);
  for (std::size_t i = 0; i < expected[0].size(); ++i) {
    EXPECT_EQ(got[0][i].shape, expected[0][i].shape);
    EXPECT_LE(relative_error(got[0][i], expected[0][i]),
              tolerance(before, before.outputs()[i], expected[0][i].shape));
  }
}

Graph split(const Graph& graph, PassContext& context) {
  Graph result = split_reductions(graph, context);
  verify(result);
  return result;
}

TEST(SplitReductions, MatmulOfFewTiles) {
  const Graph graph = graph_of(input16("x", R"("T", 16384)") + "," + input16("w", "16384, 128"),
                               node("y", "mm", R"("x", "w")"), R"("y")");
  PassContext context = sm80();
  const Graph result = split(graph, context);
  const auto& nodes = result.nodes();
  EXPECT_EQ(nodes.back().name, "y");
  EXPECT_EQ(result.type(result.outputs()[0]), graph.type(graph.outputs()[0]));
  const auto matmul = std::find_if(nodes.begin(), nodes.end(),
                                   [](const Node& n) { return n.op_name() == "matmul"; });
  ASSERT_NE(matmul, nodes.end());
  EXPECT_EQ(result.type(matmul->outputs[0]).str(), "f32[16, T, 128]");
  EXPECT_THAT(
      remarks_of(context, "y"),
      Contains(HasSubstr(
          "applied: 8 block(s) take longer than their memory traffic on A100: 16 parts of dim 1")));
  expect_close(graph, result);
}

TEST(SplitReductions, WeightThatIsTransposed) {
  const Graph graph = graph_of(input16("x", R"("T", 16384)") + "," + input16("w", "128, 16384"),
                               node("t", "transpose", R"("w")", R"("dim0": 0, "dim1": 1)") + "," +
                                   node("y", "mm", R"("x", "t")"),
                               R"("y")");
  PassContext context = sm80();
  expect_close(graph, split(graph, context));
  EXPECT_THAT(remarks_of(context, "y"), Contains(HasSubstr("16 parts of dim 1")));
}

// It takes half the time of one of 16 bits, so what keeps few blocks from reading it costs more.
TEST(SplitReductions, WeightThatIsCastIsReadAsItIs) {
  const auto is_cut = [](const std::string& dtype) {
    PassContext context = sm80();
    const Graph graph =
        graph_of(input16("x", "8, 4096") + R"(, {"name": "w", "shape": [6144, 4096], "dtype": ")" +
                     dtype + R"("})",
                 (dtype == "bf16" ? "" : node("c", "to", R"("w")", R"("dtype": "bf16")") + ",") +
                     node("t", "transpose", dtype == "bf16" ? R"("w")" : R"("c")",
                          R"("dim0": 0, "dim1": 1)") +
                     "," + node("y", "mm", R"("x", "t")"),
                 R"("y")");
    return split(graph, context).nodes().size() > graph.nodes().size();
  };
  EXPECT_FALSE(is_cut("bf16"));
  EXPECT_FALSE(is_cut("f32"));
  EXPECT_TRUE(is_cut("i8"));
  EXPECT_TRUE(is_cut("f8e4m3"));
}

std::string input32(const char* name, const std::string& shape) {
  return std::string(R"(, {"name": ")") + name + R"(", "dtype": "i32", "shape": [)" + shape + "]}";
}

Graph attention_of(const char* tokens, const char* pages, bool has_sinks = false) {
  return graph_of(input16("q", std::string(tokens) + ", 4, 16") + "," +
                      input16("k", "40, 64, 2, 16") + "," + input16("v", "40, 64, 2, 8") +
                      input32("table", std::string(R"("T", )") + pages) +
                      input32("lengths", R"("T")") + input32("starts", R"("T + 1")") + "," +
                      input16("sinks", "4"),
                  node("y", "paged_attention",
                       std::string(R"("q", "k", "v", "table", "lengths", "starts")") +
                           (has_sinks ? R"(, "sinks")" : ""),
                       R"("window": 900)"),
                  R"("y")");
}

constexpr const char* kSegments = "paged_attention_in_parts";

// Whole they are one kernel, which reads x once.
TEST(SplitReductions, MatmulsThatMeetAreWholeWhereOneAloneIsCut) {
  const std::string inputs = input16("x", "256, 2048") + "," + input16("w", "2048, 1408");
  const std::string product = node("y", "mm", R"("x", "w")");
  PassContext context = sm80();
  const auto is_cut = [&](const std::string& all, const std::string& nodes, const char* output) {
    return split(graph_of(all, nodes, output), context).nodes().size() > 3;
  };
  EXPECT_TRUE(is_cut(inputs, product, R"("y")"));
  const std::string both = inputs + "," + input16("w2", "2048, 1408");
  const std::string other = product + "," + node("z", "mm", R"("x", "w2")");
  EXPECT_FALSE(is_cut(both, other + "," + node("h", "mul", R"("y", "z")"), R"("h")"));
  // These do not meet.
  EXPECT_TRUE(is_cut(both, other, R"("y", "z")"));
}

TEST(SplitReductions, AttentionOfOneTokenInEachSequence) {
  PassContext context = sm80();
  const auto only_op = [&](const Graph& of) {
    const Graph result = split(of, context);
    EXPECT_EQ(result.nodes().size(), 1U);
    EXPECT_EQ(result.nodes()[0].name, "y");
    expect_close(of, result);
    return std::string(result.nodes()[0].op_name());
  };
  EXPECT_EQ(only_op(attention_of(R"("T")", "20")), kSegments);
  EXPECT_THAT(remarks_of(context, "y"),
              Contains(HasSubstr("one token of each sequence: segments of 512 keys")));
  // Room for one segment, or tokens of any sequence.
  EXPECT_EQ(only_op(attention_of(R"("T")", "8")), "paged_attention");
  EXPECT_EQ(only_op(attention_of(R"(7)", "20")), "paged_attention");

  // With the option any other, but for one segment that is joined with nothing.
  context.config.options["invariant-attention"] = "true";
  EXPECT_EQ(only_op(attention_of(R"("T")", "20")), kSegments);
  EXPECT_EQ(only_op(attention_of(R"(7)", "20")), kSegments);
  EXPECT_THAT(remarks_of(context, "y"), Contains(HasSubstr("--invariant-attention")));
  EXPECT_EQ(only_op(attention_of(R"(7)", "8", true)), kSegments);
  EXPECT_EQ(only_op(attention_of(R"(7)", R"("T")", true)), kSegments);
  EXPECT_EQ(only_op(attention_of(R"(7)", "8")), "paged_attention");
}

TEST(SpreadAttention, OfNoMoreTokensThanSequences) {
  PassContext context = sm80();
  context.config.options["invariant-attention"] = "true";
  const auto spread = [&](const Graph& graph) {
    context.remarks.clear();
    Graph result = spread_attention(split(graph, context), context);
    verify(result);
    expect_close(graph, result);
    return result;
  };
  for (const bool has_sinks : {false, true}) {
    for (const char* tokens : {R"("T")", "7"}) {  // T is at most 64
      const Graph graph = attention_of(tokens, "20", has_sinks);
      const Graph result = spread(graph);
      ASSERT_EQ(result.nodes().size(), 2U);
      EXPECT_EQ(result.nodes()[0].name, "y");  // for errors
      EXPECT_EQ(result.type(result.nodes()[0].outputs[0]).str(),
                std::string("f32[3, ") + (*tokens == '7' ? "7" : "T") + ", 4, 10]");
      EXPECT_EQ(result.type(result.outputs()[0]), graph.type(graph.outputs()[0]));
      EXPECT_THAT(remarks_of(context, "y"), Contains(HasSubstr("run side by side")));
    }
  }
  // More tokens, room for one segment, and a table whose width is not known.
  EXPECT_EQ(spread(attention_of("900", "20")).nodes().size(), 1U);
  EXPECT_THAT(remarks_of(context, "y"), Contains(HasSubstr("missed: up to 900 tokens, of up to")));
  EXPECT_EQ(spread(attention_of("7", "8", true)).nodes().size(), 1U);
  EXPECT_EQ(spread(attention_of("7", R"("T")")).nodes().size(), 1U);
}

TEST(SplitReductions, ColumnAndFullReductions) {
  for (const char* op : {"sum", "mean", "amax", "amin"}) {
    for (const char* attrs : {R"("dim": [0])", R"("dim": [0], "keepdim": true)", R"("dim": [])",
                              R"("dim": [-3, 1], "keepdim": true)"}) {
      const Graph graph =
          graph_of(input16("x", "512, 4, 64"), node("y", op, R"("x")", attrs), R"("y")");
      PassContext context = sm80();
      const Graph result = split(graph, context);
      EXPECT_GT(result.nodes().size(), 3U) << op << attrs;
      expect_close(graph, result);
    }
  }
}

TEST(SplitReductions, RefusesAndSaysWhy) {
  const auto remarks = [](const std::string& inputs, const std::string& nodes) {
    const Graph graph = graph_of(inputs, nodes, R"("y")");
    PassContext context = sm80();
    EXPECT_EQ(lines(split(graph, context)), lines(graph));
    return remarks_of(context, "y");
  };
  // Sixteen results keep one block busy however often dim 0 is cut.
  EXPECT_THAT(remarks(input16("x", "512, 16, 64"), node("y", "sum", R"("x")", R"("dim": [0, 2])")),
              Contains(HasSubstr("no equal parts")));
  // Small: nothing to gain, nothing to say.
  EXPECT_THAT(remarks(input16("x", "64, 64"), node("y", "sum", R"("x")", R"("dim": [0])")),
              ElementsAre());
  // Blocks enough.
  EXPECT_THAT(remarks(input16("x", "4096, 4096"), node("y", "sum", R"("x")", R"("dim": [1])")),
              ElementsAre());
  // No power of two divides 16383; T is nobody's to divide.
  EXPECT_THAT(
      remarks(input16("x", "16383, 1025"), node("y", "sum", R"("x")", R"("dim": [0])")),
      Contains(HasSubstr(
          "missed: 2 block(s) take longer than their memory traffic on A100, but no equal parts")));
  EXPECT_THAT(remarks(input16("x", R"("T", 16)"), node("y", "sum", R"("x")", R"("dim": [0])")),
              ElementsAre());
  // The results of a token's experts: a thread has eight loads under way.
  EXPECT_THAT(remarks(R"({"name": "x", "dtype": "f32", "shape": [32, 8, 2048]})",
                      node("y", "sum", R"("x")", R"("dim": [1])")),
              Contains(HasSubstr("no equal parts")));
  // Few blocks, but K is short: the launch costs more.
  EXPECT_THAT(remarks(input16("x", R"("T", 512)") + "," + input16("w", "512, 128"),
                      node("y", "mm", R"("x", "w")")),
              Contains(HasSubstr("missed")));
}

// Times have one decimal.
TEST(SplitReductions, AGainBelowWhatIsToldIsNone) {
  PassContext context{.target = Target::parse("H100")};
  const Graph graph = graph_of(input16("x", "8, 1024") + "," + input16("w", "1024, 1024"),
                               node("y", "mm", R"("x", "w")"), R"("y")");
  EXPECT_EQ(lines(split(graph, context)), lines(graph));
  EXPECT_THAT(remarks_of(context, "y"), ElementsAre(HasSubstr("but no equal parts")));
}

// An H100 has 132 multiprocessors.
TEST(SplitReductions, SaysNothingOfIdleOnesWhereEachHasABlock) {
  PassContext context{.target = Target::parse("H100")};
  split(graph_of(input16("x", "2048, 3584") + "," + input16("w", "3584, 4096"),
                 node("y", "mm", R"("x", "w")"), R"("y")"),
        context);
  EXPECT_THAT(
      remarks_of(context, "y"),
      ElementsAre(HasSubstr("132 block(s) take longer than their memory traffic on H100, but")));
}

/// How often a graph's matmul is cut.
std::int64_t parts_of(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    if (node.op_name() == "matmul") return graph.type(node.outputs[0]).shape[0].constant();
  }
  return 1;
}

class TunedParts : public ::testing::Test {
 protected:
  TunedParts()
      : graph_(graph_of(input16("x", R"("T", 16384)") + "," + input16("w", "16384, 128"),
                        node("y", "mm", R"("x", "w")"), R"("y")")) {
    context_.config.batch_invariant = false;
    context_.tuned = [this](const Graph& body) -> Tuned {
      ++asked_;
      // The kernel that adds parts has a slice of each.
      const auto& nodes = body.nodes();
      const auto slices = std::count_if(nodes.begin(), nodes.end(),
                                        [](const Node& n) { return n.op_name() == "slice"; });
      const auto found = (slices > 0 ? adding_ns_ : ns_).find(slices > 0 ? slices : parts_of(body));
      if (found == (slices > 0 ? adding_ns_ : ns_).end()) return {};
      return {Config{{"num_warps", 4}}, "", found->second, "estimated on A100"};
    };
  }
  std::int64_t parts() {
    context_.remarks.clear();
    return parts_of(split(graph_, context_));
  }

  Graph graph_;
  PassContext context_ = sm80();
  std::map<std::int64_t, double> ns_ = {{1, 9000}, {2, 5000}, {4, 4000}, {8, 3000}, {16, 2000}};
  std::map<std::int64_t, double> adding_ns_ = {{2, 500}, {4, 700}, {8, 2500}, {16, 9000}};
  int asked_ = 0;
};

TEST_F(TunedParts, AreTheQuickestWithTheirSum) {
  EXPECT_EQ(parts(), 4);
  EXPECT_THAT(remarks_of(context_, "y"),
              ElementsAre("applied: tuned: 4 parts: 4.7 us estimated on A100 (whole: 9.0 us) "
                          "(2 parts: 5.5 us) (8 parts: 5.5 us) (16 parts: 11.0 us); by the cost "
                          "model it is 16 parts"));
  ns_[1] = 100;
  EXPECT_EQ(parts(), 1);
  EXPECT_THAT(remarks_of(context_, "y"), ElementsAre(HasSubstr("applied: tuned: whole: 0.1 us")));
}

TEST_F(TunedParts, NeedThatTheOrderOfASumMayChange) {
  context_.config.batch_invariant = true;
  EXPECT_EQ(parts(), 16);
  EXPECT_EQ(asked_, 0);
}

TEST_F(TunedParts, AreTheModelsWhereATimeIsMissing) {
  adding_ns_.erase(2);
  EXPECT_EQ(parts(), 16);
  EXPECT_THAT(
      remarks_of(context_, "y"),
      ElementsAre(
          "missed: not tuned: the database has no time of 2 parts",
          HasSubstr(
              "applied: 8 block(s) take longer than their memory traffic on A100: 16 parts")));
  ns_.clear(), adding_ns_.clear();
  EXPECT_EQ(parts(), 16);
  EXPECT_THAT(remarks_of(context_, "y"), ElementsAre(HasSubstr("16 parts of dim 1")));
}

// The trials compute what the node computes.
TEST_F(TunedParts, AreTriedAsKernelsOfTheirOwn) {
  std::vector<PlanChoice> choices;
  context_.choices = &choices;
  context_.tuned = {};
  EXPECT_EQ(parts(), 16);
  ASSERT_EQ(choices.size(), 1U);
  EXPECT_EQ(choices[0].operands, "bf16[T, 16384] x bf16[16384, 128]");
  ASSERT_EQ(choices[0].options.size(), 5U);
  EXPECT_EQ(choices[0].options[choices[0].taken].name, "16 parts");
  const Bindings bindings{{"T", 2}};
  const RankTensors inputs = random_inputs(graph_, bindings, 1);
  const auto expected = evaluate(graph_, inputs, bindings);
  for (const PlanOption& option : choices[0].options) {
    ASSERT_EQ(option.kernels.size(), option.name == "whole" ? 1U : 2U);
    RankTensors values{inputs[0]};
    for (const auto& kernel : option.kernels) values = evaluate(*kernel, values, bindings);
    EXPECT_LE(relative_error(values[0][0], expected[0][0]),
              tolerance(graph_, graph_.outputs()[0], expected[0][0].shape))
        << option.name;
  }
}

}  // namespace
}  // namespace braid::testing
