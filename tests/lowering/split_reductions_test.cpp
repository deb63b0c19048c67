#include <gmock/gmock.h>

#include "braid/reference.h"
#include "lowering/lowering_testing.h"

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
  EXPECT_EQ(result.type(matmul->outputs[0]).str(), "f32[8, T, 128]");
  EXPECT_THAT(remarks_of(context, "y"),
              Contains(HasSubstr("applied: 32 block(s) leave A100 idle: 8 parts of dim 1")));
  expect_close(graph, result);
}

TEST(SplitReductions, WeightThatIsTransposed) {
  const Graph graph = graph_of(input16("x", R"("T", 16384)") + "," + input16("w", "128, 16384"),
                               node("t", "transpose", R"("w")", R"("dim0": 0, "dim1": 1)") + "," +
                                   node("y", "mm", R"("x", "t")"),
                               R"("y")");
  PassContext context = sm80();
  expect_close(graph, split(graph, context));
  EXPECT_THAT(remarks_of(context, "y"), Contains(HasSubstr("8 parts of dim 1")));
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
  EXPECT_THAT(remarks(input16("x", "16383, 1025"), node("y", "sum", R"("x")", R"("dim": [0])")),
              Contains(HasSubstr("missed: 2 block(s) leave A100 idle, but no equal parts")));
  EXPECT_THAT(remarks(input16("x", R"("T", 16)"), node("y", "sum", R"("x")", R"("dim": [0])")),
              ElementsAre());
  // Few blocks, but K is short: the launch costs more.
  EXPECT_THAT(remarks(input16("x", R"("T", 2048)") + "," + input16("w", "2048, 128"),
                      node("y", "mm", R"("x", "w")")),
              Contains(HasSubstr("missed")));
}

}  // namespace
}  // namespace braid::testing
