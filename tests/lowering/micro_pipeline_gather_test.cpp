#include <fmt/format.h>

#include "lowering/micro_pipeline_testing.h"

namespace braid::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PipelineGather : public OnRanks {};

const std::string kInputs = join(input("x", "3, 4"), input("w", "4, 5"), input("v", "4, 2"));

// A0-06, A0-10
TEST_P(PipelineGather, OneMatmulTakesTheGather) {
  PassContext context = eager();
  const Graph result =
      pipelined(graph(kInputs, join(gather("g", "x"), mm("m", "g_w", "w")), R"("m")"), context);
  EXPECT_THAT(lines(result), ElementsAre("g_fused = fused_all_gather_matmul(x, w)", "-> g_fused"));
  EXPECT_FALSE(attr_of<bool>(result, "g_fused", "return_A"));
  EXPECT_THAT(pipeline_remarks(context), ElementsAre(HasSubstr("g applied: fused with 'm'; ")));
}

// A0-11: several matmuls in the order of their use; A only where someone else reads it.
TEST_P(PipelineGather, ManyMatmulsAndAnotherReader) {
  PassContext context = eager();
  const Graph result = pipelined(graph(kInputs,
                                       join(gather("g", "x"), mm("m", "g_w", "w"),
                                            node("o", "relu", R"("g_w")"), mm("n", "g_w", "v")),
                                       R"("n", "o", "m")"),
                                 context);
  EXPECT_THAT(lines(result),
              ElementsAre("g_fused:0, g_fused:1, g_fused:2 = fused_all_gather_matmul(x, w, v)",
                          "o = relu(g_fused:0)", "-> g_fused:2, o, g_fused:1"));
  EXPECT_TRUE(attr_of<bool>(result, "g_fused:0", "return_A"));
  EXPECT_THAT(pipeline_remarks(context),
              ElementsAre(AllOf(HasSubstr("'m', 'n'"), HasSubstr("A is returned: 'o' (relu)"))));
  const Graph output = graph(kInputs, join(gather("g", "x"), mm("m", "g_w", "w")), R"("m", "g_w")");
  EXPECT_THAT(lines(pipelined(output, context)).back(), "-> g_fused:1, g_fused:0");
}

// A0-09, A0-11, A0-14: every dim but the last; negative dims; the split and cat spelling.
TEST_P(PipelineGather, EveryDimOfMoreDims) {
  const std::string inputs = join(input("x", "2, 3, 4"), input("w", "4, 5"));
  for (const int dim : {0, 1, -2}) {
    PassContext context = eager();
    const Graph result = pipelined(
        graph(inputs, join(gather("g", "x", dim), node("m", "matmul", R"("g_w", "w")")), R"("m")"),
        context);
    EXPECT_THAT(lines(result),
                ElementsAre("g_fused = fused_all_gather_matmul(x, w)", "-> g_fused"));
    EXPECT_EQ(attr_of<std::int64_t>(result, "g_fused", "gather_dim"), dim == 0 ? 0 : 1);
  }
  std::string parts;
  for (int i = 0; i < n(); ++i) parts += (i ? ",\"p:" : "\"p:") + std::to_string(i) + '"';
  PassContext context = eager();
  const Graph result = pipelined(
      graph(inputs,
            join(gather("g", "x"), node("p", "split", R"("g_w")", R"("split_size": 2)"),
                 node("c", "cat", parts, R"("dim": 1)"), node("m", "matmul", R"("c", "w")")),
            R"("m")"),
      context);
  EXPECT_THAT(lines(result), ElementsAre("g_fused = fused_all_gather_matmul(x, w)", "-> g_fused"));
  EXPECT_EQ(attr_of<std::int64_t>(result, "g_fused", "gather_dim"), 1);
}

// A0-07, C-16: view, mm, view; the spelling with reshape and bmm too.
TEST_P(PipelineGather, RegroupedRows) {
  const std::string inputs = join(input("x", "2, 3, 4"), input("w", "4, 5"), input("v", "4, 2"));
  const std::string rows = std::to_string(6 * n());
  const std::string lead = std::to_string(2 * n());
  PassContext context = eager();
  const Graph result = pipelined(
      graph(inputs,
            join(gather("g", "x"), node("r", "reshape", R"("g_w")", R"("shape": [-1, 4])"),
                 mm("m", "r", "w"),
                 node("y", "_unsafe_view", R"("m")", R"("shape": [)" + lead + ", 3, 5]"),
                 node("e", "expand", R"("v")", R"("shape": [)" + lead + ", 4, 2]"),
                 node("b", "bmm", R"("g_w", "e")")),
            R"("y", "b")"),
      context);
  EXPECT_THAT(lines(result), ElementsAre("g_fused:0, g_fused:1 = fused_all_gather_matmul(x, w, v)",
                                         "-> g_fused:0, g_fused:1"));
}

// A0-07, X-20: one entry for one matmul, whatever reads it.
TEST_P(PipelineGather, AMatmulUnderSeveralViewsIsTakenOnce) {
  const std::string inputs = join(input("x", "2, 3, 4"), input("w", "4, 5"));
  const std::string lead = std::to_string(2 * n());
  PassContext context = eager();
  const Graph result =
      pipelined(graph(inputs,
                      join(gather("g", "x"), view("r", "g_w", "-1, 4"), mm("m", "r", "w"),
                           view("y", "m", lead + ", 3, 5"), view("z", "m", lead + ", 3, 5"),
                           view("flat", "m", "-1"), node("o", "neg", R"("m")"),
                           node("s", "add", R"("y", "z")")),
                      R"("s", "o", "flat")"),
                context);
  EXPECT_THAT(lines(result), ElementsAre("g_fused = fused_all_gather_matmul(x, w)",
                                         "m = view(g_fused)", "flat = view(m)", "o = neg(m)",
                                         "s = add(g_fused, g_fused)", "-> s, o, flat"));
}

// A0-08: a view that is not the rows of A.
TEST_P(PipelineGather, OtherViewsAreOtherReaders) {
  const std::string inputs = join(input("x", "2, 3, 4"), input("w", "2, 5"), input("v", "4, 2"));
  expect_refused(
      graph(inputs, join(gather("g", "x"), view("r", "g_w", "-1, 2"), mm("m", "r", "w")), R"("m")"),
      "g", "view 'r' is");
  PassContext context = eager();
  const Graph result =
      pipelined(graph(inputs,
                      join(gather("g", "x"), view("r", "g_w", "-1, 2"), mm("m", "r", "w"),
                           view("q", "g_w", "-1, 4"), mm("k", "q", "v")),
                      R"("m", "k")"),
                context);
  EXPECT_THAT(lines(result), Contains("m = mm(r, w)"));
  EXPECT_THAT(lines(result), Contains("r = view(g_fused:0)"));
}

// A0-08, X-2
TEST_P(PipelineGather, TheGatheredValueMustBeTheLeftOperand) {
  const std::string rows = std::to_string(3 * n());
  const std::string inputs = join(input("x", "3, 4"), input("a", "5, " + rows), input("w", "4, 5"));
  const std::string nodes = join(gather("g", "x"), mm("m", "a", "g_w"));
  expect_refused(graph(inputs, nodes, R"("m")"), "g", "'m' reads it as its right operand");
  PassContext context = eager();
  EXPECT_THAT(
      lines(pipelined(graph(inputs, join(nodes, mm("k", "g_w", "w")), R"("m", "k")"), context)),
      ElementsAre("g_fused:0, g_fused:1 = fused_all_gather_matmul(x, w)", "m = mm(a, g_fused:0)",
                  "-> m, g_fused:1"));
}

// A0-05, A0-08, X-2
TEST_P(PipelineGather, TheRightOperandMustNotDependOnIt) {
  const std::string rows = std::to_string(4);
  const std::string inputs = join(input("x", std::to_string(8 / n()) + ", 8"), input("w", "8, 8"));
  for (const std::string& b :
       {std::string("g_w"), std::string("f"), std::string("k"), std::string("t")}) {
    const std::string nodes = join(gather("g", "x"), node("f", "relu", R"("g_w")"),
                                   node("t", "transpose", R"("g_w")", R"("dim0": 0, "dim1": 1)"),
                                   node("k", "mm", R"("t", "w")"), mm("m", "g_w", b));
    expect_refused(graph(inputs, nodes, R"("m")"), "g",
                   b == "g_w" ? "'m' needs 'g_w', which depends on the gathered value"
                              : "'m' needs '" + b + "', which depends on the gathered value");
  }
  // One product may be the right operand of the next: only the first is fused.
  PassContext context = eager();
  EXPECT_THAT(
      lines(pipelined(
          graph(inputs, join(gather("g", "x"), mm("m", "g_w", "w"), mm("k", "g_w", "m")), R"("k")"),
          context)),
      ElementsAre("g_fused:0, g_fused:1 = fused_all_gather_matmul(x, w)",
                  "k = mm(g_fused:0, g_fused:1)", "-> k"));
}

// A0-04, A0-11: what B needs is moved in front of the fused node, in its order.
TEST_P(PipelineGather, TheRightOperandsAncestorsMove) {
  PassContext context = eager();
  const Graph result = pipelined(
      graph(join(kInputs, input("u", "4, 5")),
            join(gather("g", "x"), node("other", "neg", R"("u")"), node("a", "relu", R"("w")"),
                 node("b", "add", R"("a", "u")"), mm("m", "g_w", "b")),
            R"("m", "other")"),
      context);
  EXPECT_THAT(lines(result),
              ElementsAre("a = relu(w)", "b = add(a, u)", "g_fused = fused_all_gather_matmul(x, b)",
                          "other = neg(u)", "-> g_fused, other"));
}

// Collectives do not pass each other; a wait for an earlier one may move.
TEST_P(PipelineGather, OtherCollectivesStayWhereTheyAre) {
  const std::string inputs = join(kInputs, input("p", "4, 5"));
  expect_refused(graph(inputs,
                       join(gather("g", "x"), all_reduce("c", "p"),
                            node("c_w", "wait_tensor", R"("c")"), mm("m", "g_w", "c_w")),
                       R"("m")"),
                 "g", "waits at 'c_w' for what comes after the gather");
  PassContext context = eager();
  EXPECT_THAT(
      lines(pipelined(graph(inputs,
                            join(all_reduce("c", "p"), gather("g", "x"),
                                 node("c_w", "wait_tensor", R"("c")"), mm("m", "g_w", "c_w")),
                            R"("m")"),
                      context)),
      ElementsAre("c = all_reduce(p)", "c_w = wait_tensor(c)",
                  "g_fused = fused_all_gather_matmul(x, c_w)", "-> g_fused"));
}

// Two gathers, each of which makes the other's right operand: not both can come first.
TEST_P(PipelineGather, TwoGathersThatNeedEachOther) {
  const std::string rows = std::to_string(8 / n());
  const std::string inputs = join(input("x", rows + ", 8"), input("y", rows + ", 8"));
  PassContext context = eager();
  const Graph result =
      pipelined(graph(inputs,
                      join(gather("g", "x"), gather("h", "y"), node("f", "relu", R"("h_w")"),
                           node("k", "relu", R"("g_w")"), mm("m", "g_w", "f"), mm("l", "h_w", "k")),
                      R"("m", "l")"),
                context);
  EXPECT_THAT(pipeline_remarks(context), ElementsAre(HasSubstr("g missed: no matmul can take it"),
                                                     HasSubstr("h applied: fused with 'l'")));
  EXPECT_THAT(lines(result), Contains("m = mm(g_w, f)"));
}

// A0-11: memory that is overwritten between the gather and the matmul.
TEST_P(PipelineGather, MutationsInBetween) {
  const std::string inputs =
      join(kInputs, input("u", "4, 5"), input("y", std::to_string(3 * n()) + ", 4"));
  const auto refused = [&](const std::string& between, const std::string& b, const char* reason) {
    expect_refused(graph(inputs, join(gather("g", "x"), between, mm("m", "g_w", b)), R"("m")"), "g",
                   reason);
  };
  refused(node("c", "copy_", R"("w", "u")"), "w",
          "reads 'w', which is overwritten after the gather");
  expect_refused(
      graph(join(inputs, input("z", "1, 4")),
            join(gather("g", "x"), node("s", "slice", R"("g_w")", R"("dim": 0, "end": 1)"),
                 node("c", "copy_", R"("s", "z")"), mm("m", "g_w", "w")),
            R"("m")"),
      "g", "reads 'g_w', which is overwritten after the gather");
  refused(join(node("c", "copy_", R"("w", "u")"), node("a", "relu", R"("w")")), "a",
          "whose operand 'w' is overwritten after the gather");
  expect_refused(
      graph(inputs, join(gather("g", "x"), node("c", "copy_", R"("g_w", "y")"), mm("m", "c", "w")),
            R"("m")"),
      "g", "'c' (copy_) reads it");
  refused(node("c", "copy_", R"("w", "u")"), "c", "reads 'c', which is overwritten");
  // After the matmul it harms nobody.
  PassContext context = eager();
  EXPECT_THAT(
      lines(pipelined(
          graph(inputs,
                join(gather("g", "x"), mm("m", "g_w", "w"), node("c", "copy_", R"("w", "u")")),
                R"("m", "c")"),
          context)),
      ElementsAre("g_fused = fused_all_gather_matmul(x, w)", "c = copy_(w, u)", "-> g_fused, c"));
}

// The fused node gives the product with A's dims: its rows as a matrix would be a view, which
// nobody may read under an older name once the memory is overwritten.
TEST_P(PipelineGather, ARegroupedProductThatIsOverwrittenLater) {
  const std::string inputs =
      join(input("x", "2, 2, 4"), input("w", "4, 5"), input("y", std::to_string(4 * n()) + ", 5"));
  const std::string nodes = join(gather("g", "x"), view("v", "g_w", "-1, 4"), mm("m", "v", "w"));
  const std::string write = node("c", "copy_", R"("m", "y")");
  expect_refused(graph(inputs, join(nodes, write, node("o", "relu", R"("m")")), R"("o")"), "g",
                 "'m', whose rows are regrouped, is overwritten");
  // A matrix is what the fused node gives.
  PassContext context = eager();
  EXPECT_THAT(lines(pipelined(graph(join(input("x", "3, 4"), input("w", "4, 5"),
                                         input("y", std::to_string(3 * n()) + ", 5")),
                                    join(gather("g", "x"), mm("m", "g_w", "w"), write,
                                         node("o", "relu", R"("m")")),
                                    R"("o")"),
                              context)),
              ElementsAre("g_fused = fused_all_gather_matmul(x, w)", "c = copy_(g_fused, y)",
                          "o = relu(g_fused)", "-> o"));
}

// A0-11, C-09: along K the sums are split, which pays for long ones only.
TEST_P(PipelineGather, TheLastDim) {
  const auto inputs = [&](int k) {
    return join(input("x", "2, " + std::to_string(k)), input("w", std::to_string(k * n()) + ", 3"));
  };
  const std::string nodes = join(gather("g", "x", -1), mm("m", "g_w", "w"));
  PassContext context = eager();
  const Graph result = pipelined(graph(inputs(1024), nodes, R"("m")"), context);
  EXPECT_THAT(lines(result), ElementsAre("g_fused = fused_all_gather_matmul(x, w)", "-> g_fused"));
  EXPECT_EQ(attr_of<std::int64_t>(result, "g_fused", "gather_dim"), 1);
  expect_refused(graph(inputs(1023), nodes, R"("m")"), "g",
                 "by 1023 on each rank; expected at least 1024");
  expect_refused(graph(inputs(1024), join(nodes, node("o", "neg", R"("g_w")")), R"("m", "o")"), "g",
                 "not only matmuls read it: 'o' (neg) reads it");
}

const std::string kScaled = join(f8_input("x", "2, 4"), f8_input("w", "4, 5"),
                                 f8_input("v", "4, 2"), input("sw", "1, 5"), input("sv", ""));

std::string scaled(const std::string& name, const std::string& operands) {
  return node(name, "scaled_mm", operands, R"("out_dtype": "f32")");
}

// A0-14, C-04, C-05, X-18: one scale, scales of the whole rows, gathered scales.
TEST_P(PipelineGather, ScaledByAllKinds) {
  const std::string rows = std::to_string(2 * n());
  const std::string two =
      join(scaled("m", R"("g_w", "w", "s", "sw")"), scaled("k", R"("g_w", "v", "s", "sv")"));
  PassContext context = eager();
  const Graph one = pipelined(
      graph(join(kScaled, input("s", "1, 1")), join(gather("g", "x"), two), R"("m", "k")"),
      context);
  EXPECT_THAT(lines(one), ElementsAre("g_scale = view(s)",
                                      "g_fused:0, g_fused:1 = "
                                      "fused_all_gather_scaled_matmul(x, w, v, g_scale, sw, sv)",
                                      "-> g_fused:0, g_fused:1"));
  const Graph whole = pipelined(
      graph(join(kScaled, input("s", rows + ", 1")), join(gather("g", "x"), two), R"("m", "k")"),
      context);
  EXPECT_THAT(lines(whole), ElementsAre("g_fused:0, g_fused:1 = "
                                        "fused_all_gather_scaled_matmul(x, w, v, s, sw, sv)",
                                        "-> g_fused:0, g_fused:1"));
  for (const bool scale_first : {true, false}) {
    const std::string scales = node("s", "wait_tensor", R"("h")");
    const std::string h = node("h", "all_gather_into_tensor", R"("sx")", R"("group": "tp")");
    context = eager();
    const Graph shards = pipelined(graph(join(kScaled, input("sx", "2, 1")),
                                         scale_first ? join(h, scales, gather("g", "x"), two)
                                                     : join(gather("g", "x"), h, scales, two),
                                         R"("m", "k")"),
                                   context);
    EXPECT_THAT(lines(shards), ElementsAre("g_fused:0, g_fused:1 = "
                                           "fused_all_gather_scaled_matmul(x, w, v, sx, sw, sv)",
                                           "-> g_fused:0, g_fused:1"));
    EXPECT_THAT(remarks_of(context, "h"),
                ElementsAre("applied: nothing reads it now: a fused node gathers it"));
  }
}

TEST_P(PipelineGather, ScaledWithABias) {
  const std::string inputs = join(kScaled, input("s", ""), input("b", "5"), input("d", "2"));
  const std::string m = scaled("m", R"("g_w", "w", "s", "sw", "b")");
  PassContext context = eager();
  EXPECT_THAT(
      lines(pipelined(
          graph(inputs, join(gather("g", "x"), m, scaled("k", R"("g_w", "v", "s", "sv", "d")")),
                R"("m", "k")"),
          context)),
      ElementsAre("g_fused:0, g_fused:1 = "
                  "fused_all_gather_scaled_matmul(x, w, v, s, sw, sv, b, d)",
                  "-> g_fused:0, g_fused:1"));
  expect_refused(graph(inputs, join(gather("g", "x"), m, scaled("k", R"("g_w", "v", "s", "sv")")),
                       R"("m", "k")"),
                 "g", "of 'm' and 'k' one has a bias; expected both or none");
}

// Fused ops scale rows as wholes; weights in any way.
TEST_P(PipelineGather, ScalesInBlocks) {
  const std::string rows = std::to_string(2 * n());
  const auto nodes = join(gather("g", "x"), scaled("m", R"("g_w", "w", "s", "sw")"));
  const auto inputs = [&](const std::string& of_a) {
    return join(f8_input("x", "2, 256"), f8_input("w", "256, 5"), input("s", of_a),
                input("sw", "2, 5"));
  };
  PassContext context = eager();
  EXPECT_THAT(lines(pipelined(graph(inputs(rows + ", 1"), nodes, R"("m")"), context)),
              Contains("g_fused = fused_all_gather_scaled_matmul(x, w, s, sw)"));
  expect_refused(graph(inputs(rows + ", 2"), nodes, R"("m")"), "g",
                 "'m' scales A by f32[" + rows + ", 2], in blocks along K");
}

// A0-14: gathered as bytes, seen as 8-bit floats again; also along another dim, by split and cat.
TEST_P(PipelineGather, GatheredAsBytes) {
  const auto seen = [](const char* name, const char* x, const char* dtype) {
    return node(name, "view", '"' + std::string(x) + '"',
                R"("dtype": ")" + std::string(dtype) + '"');
  };
  for (const int dim : {0, 1}) {
    PassContext context = eager();
    const Graph result = pipelined(
        graph(
            join(f8_input("x", "2, 3, 4"), f8_input("w", "4, 5"), input("s", ""), input("sw", "")),
            join(seen("u", "x", "u8"), gather("g", "u", dim), seen("f", "g_w", "f8e4m3"),
                 view("r", "f", "-1, 4"), scaled("m", R"("r", "w", "s", "sw")")),
            R"("m")"),
        context);
    EXPECT_THAT(lines(result), ElementsAre("g_fused = fused_all_gather_scaled_matmul(x, w, s, sw)",
                                           "m = view(g_fused)", "-> m"));
  }
}

// C-04: rows of scales under views, with more dims.
TEST_P(PipelineGather, ScaledWithMoreDims) {
  const std::string inputs = join(f8_input("x", "3, 2, 4"), f8_input("w", "4, 5"), input("sw", ""),
                                  input("sx", "3, 2, 1"));
  PassContext context = eager();
  const Graph result =
      pipelined(graph(inputs,
                      join(gather("g", "x", 1), gather("h", "sx", 1), view("r", "g_w", "-1, 4"),
                           view("s", "h_w", "-1, 1"), scaled("m", R"("r", "w", "s", "sw")"),
                           view("y", "m", "3, " + std::to_string(2 * n()) + ", 5")),
                      R"("y")"),
                context);
  EXPECT_THAT(lines(result),
              ElementsAre("g_fused = fused_all_gather_scaled_matmul(x, w, sx, sw)", "-> g_fused"));
  EXPECT_EQ(attr_of<std::int64_t>(result, "g_fused", "gather_dim"), 1);
}

// Scales that someone else reads are gathered for them still, and others' collectives not passed.
TEST_P(PipelineGather, GatheredScalesThatStay) {
  const std::string inputs = join(kScaled, input("sx", "2, 1"), input("p", "3"));
  const std::string m = scaled("m", R"("g_w", "w", "h_w", "sw")");
  PassContext context = eager();
  EXPECT_THAT(
      lines(pipelined(
          graph(inputs, join(gather("h", "sx"), gather("g", "x"), m, node("o", "neg", R"("h_w")")),
                R"("m", "o")"),
          context)),
      ElementsAre("h = all_gather_into_tensor(sx)", "h_w = wait_tensor(h)",
                  "g_fused = fused_all_gather_scaled_matmul(x, w, sx, sw)", "o = neg(h_w)",
                  "-> g_fused, o"));
  EXPECT_THAT(lines(pipelined(graph(inputs,
                                    join(gather("h", "sx"), all_reduce("c", "p"),
                                         node("c_w", "wait_tensor", R"("c")"), gather("g", "x"), m),
                                    R"("m", "c_w")"),
                              context)),
              Contains("g_fused = fused_all_gather_scaled_matmul(x, w, h_w, sw)"));
}

// A0-08, A0-11: all of one kind, or the gather stays.
TEST_P(PipelineGather, MatmulsOfSeveralKinds) {
  const std::string sx = std::to_string(2 * n()) + ", 1";
  const std::string inputs = join(kScaled, input("s", sx), input("q", sx));
  const auto refused = [&](const std::string& k, const char* reason) {
    expect_refused(graph(inputs, join(gather("g", "x"), scaled("m", R"("g_w", "w", "s", "sw")"), k),
                         R"("m", "k")"),
                   "g", reason);
  };
  refused(scaled("k", R"("g_w", "v", "q", "sv")"), "scale A by 's' and 'q'; expected one scale");
  refused(node("k", "scaled_mm", R"("g_w", "v", "s", "sv")"), "have different out_dtypes");
  expect_refused(graph(join(f8_input("x", "2, 4"), f8_input("w", std::to_string(4 * n()) + ", 5"),
                            input("s", "")),
                       join(gather("g", "x", 1), scaled("m", R"("g_w", "w", "s", "s")")), R"("m")"),
                 "g", "expected another for scaled matmuls");
}

// A0-08: a plain matmul reads another dtype than a scaled one, so that they never share a gather.
TEST_P(PipelineGather, ACastIsAnotherReader) {
  expect_refused(graph(join(f8_input("x", "2, 4"), input("w", "4, 5")),
                       join(gather("g", "x"), node("f", "to", R"("g_w")", R"("dtype": "f32")"),
                            mm("m", "f", "w")),
                       R"("m")"),
                 "g", "no matmul can take it: 'f' (to) reads it");
}

// A0-15, C-15, C-17: each candidate says why not.
TEST_P(PipelineGather, RefusesTheGroupOrTheWait) {
  const std::string nodes = join(gather("g", "x"), mm("m", "g_w", "w"));
  Graph graph = this->graph(kInputs, nodes, R"("m")");
  std::string json = to_json(graph);
  const std::string size = R"("size": )" + std::to_string(n());
  json.replace(json.find(size), size.size(), size + R"(, "symmetric": false)");
  expect_refused(parse_graph(json), "g", "group 'tp' has no symmetric memory");
  expect_refused(
      this->graph(kInputs, join(nodes, node("z", "wait_tensor", R"("g")")), R"("m", "z")"), "g",
      "it is waited for 2 times");
  expect_refused(
      this->graph(kInputs, join(gather("g", "x"), node("o", "relu", R"("g_w")")), R"("o")"), "g",
      "'o' (relu) reads it");
  expect_refused(this->graph(input("x", "3"), gather("g", "x"), R"("g_w")"), "g",
                 "expected a matrix, or more dims");
  PassContext context = eager();
  micro_pipeline(graph_of(kInputs, nodes, R"("m")", 1), context);
  EXPECT_THAT(pipeline_remarks(context),
              ElementsAre(HasSubstr("g missed: group 'tp' has one rank")));
}

// A0-02, C-10, C-31: small ones do not gain, unless told.
TEST_P(PipelineGather, TheCostModelDecides) {
  const std::string nodes = join(gather("g", "x"), mm("m", "g_w", "w"));
  // Few rows in chunks; no kernel has both matmuls.
  const std::string two = join(nodes, mm("k", "g_w", "v"));
  const std::string weights = join(input("w", "4096, 5"), input("v", "4096, 7"));
  const auto sizes = [&](std::int64_t rows) {
    return fmt::format(" for f32[{0}, 4096] x f32[4096, 5], f32[{0}, 4096] x f32[4096, 7]",
                       rows * n());
  };
  expect_refused(graph(join(input("x", "33, 4096"), weights), two, R"("m", "k")"), "g", sizes(33),
                 sm80());
  expect_refused(graph(join(input("x", R"("T", 4096)"), weights), two, R"("m", "k")"), "g",
                 sizes(64) + " at T=64", sm80());
  // So small that a launch matters more.
  PassContext little = sm80();
  EXPECT_THAT(lines(micro_pipeline(graph(kInputs, nodes, R"("m")"), little)).back(), "-> g_fused");
  const Graph large =
      graph(join(input("x", "8192, 8192"), input("w", "8192, 8192")), nodes, R"("m")");
  PassContext context = sm80();
  EXPECT_THAT(lines(micro_pipeline(large, context)).back(), "-> g_fused");
}

// A0-18
TEST_P(PipelineGather, WhatOthersHideIsLeftAlone) {
  const std::string inputs = join(kInputs, input("a", "3, 4"));
  const std::string nodes = join(gather("g", "x"), mm("hider", "a", "v"), mm("m", "g_w", "w"));
  PassContext context = eager();
  context.config.options["leave-unexposed"] = "true";
  expect_refused(graph(inputs, nodes, R"("m", "hider")"), "g",
                 "'hider' can hide it if it runs as copies", context);
  // A matmul that hides one gather stays behind another one.
  const Graph two =
      graph(inputs, join(gather("h", "x"), gather("g", "a"), mm("m", "g_w", "w")), R"("m", "h_w")");
  expect_refused(two, "g", "'m' hides another collective", context);
  // It hides no second one.
  const Graph result = pipelined(
      graph(inputs, join(nodes, gather("h", "a"), mm("k", "h_w", "w")), R"("m", "hider", "k")"),
      context);
  EXPECT_THAT(remarks_of(context, "g"),
              ElementsAre(HasSubstr("missed: 'hider' can hide it if it runs as copies")));
  EXPECT_THAT(remarks_of(context, "h"),
              ElementsAre(HasSubstr("missed: 'm' can hide it if it runs as copies")));
}

// A0-16: one remark for each candidate, in the order of the graph.
TEST_P(PipelineGather, FindsAllGathersInOrder) {
  PassContext context = eager();
  const Graph result =
      pipelined(graph(join(input("x", "2, 3, 4"), input("w", "4, 5"), input("y", "3, 4")),
                      join(gather("a", "x"), gather("b", "y"), gather("c", "x", 1),
                           node("o", "matmul", R"("c_w", "w")"),
                           node("p", "matmul", R"("a_w", "w")"), node("q", "neg", R"("b_w")")),
                      R"("o", "p", "q")"),
                context);
  EXPECT_THAT(pipeline_remarks(context),
              ElementsAre(HasSubstr("a applied"), HasSubstr("b missed"), HasSubstr("c applied")));
}

// A value that one fused node makes is the right operand of another one.
TEST_P(PipelineGather, ProductsOfOneAreOperandsOfTheNext) {
  const std::string inputs =
      join(input("x", "2, 2, 4"), input("w", "4, 6"), input("y", "3, " + std::to_string(4 * n())));
  PassContext context = eager();
  const Graph result =
      pipelined(graph(inputs,
                      join(gather("g", "x"), view("r", "g_w", "-1, 4"), mm("m", "r", "w"),
                           gather("h", "y"), mm("k", "h_w", "m")),
                      R"("k")"),
                context);
  EXPECT_THAT(lines(result),
              ElementsAre("g_fused = fused_all_gather_matmul(x, w)", "m = view(g_fused)",
                          "h_fused = fused_all_gather_matmul(y, m)", "-> h_fused"));
}

TEST_P(PipelineGather, NamesThatAreTaken) {
  PassContext context = eager();
  const Graph result = pipelined(
      graph(join(input("x", "3, 4"), input("g_fused", "4, 5"), input("g_fused1:1", "4, 2")),
            join(gather("g", "x"), mm("m", "g_w", "g_fused"), mm("k", "g_w", "g_fused1:1")),
            R"("m", "k")"),
      context);
  EXPECT_THAT(lines(result).back(), "-> g_fused2:0, g_fused2:1");
}

INSTANTIATE_TEST_SUITE_P(Ranks, PipelineGather, ::testing::Values(2, 4));

}  // namespace
}  // namespace braid::testing
