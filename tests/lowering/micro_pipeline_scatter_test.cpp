#include <cstdio>

#include "lowering/micro_pipeline_testing.h"
#include "lowering/plan/cost.h"

namespace braid::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PipelineScatter : public OnRanks {};

const std::string kInputs = join(input("a", "4, 6"), input("b", "6, 8"));

// A0-06, A0-12, A0-13, X-4: both dims of a matrix, sum and avg.
TEST_P(PipelineScatter, BothDimsOfAMatrix) {
  for (const int dim : {0, 1, -1}) {
    for (const char* reduce_op : {"sum", "avg"}) {
      PassContext context = eager();
      const Graph result = pipelined(
          graph(kInputs, join(mm("m", "a", "b"), scatter("r", "m", dim, reduce_op)), R"("r_w")"),
          context);
      EXPECT_THAT(lines(result),
                  ElementsAre("r_fused = fused_matmul_reduce_scatter(a, b)", "-> r_fused"));
      EXPECT_EQ(attr_of<std::int64_t>(result, "r_fused", "scatter_dim"), dim == 0 ? 0 : 1);
      EXPECT_EQ(attr_of<std::string>(result, "r_fused", "reduce_op"), reduce_op);
      EXPECT_THAT(pipeline_remarks(context), ElementsAre(HasSubstr("r applied: fused with 'm'; ")));
    }
  }
}

// A4-17: of a matrix or more dims; where the product is wanted, too, it is a result.
TEST_P(PipelineScatter, AnAllReduceOfAMatmul) {
  const auto sum = [](const std::string& of) {
    return join(node("r", "all_reduce", "\"" + of + "\"", R"("group": "tp", "reduce_op": "avg")"),
                node("r_w", "wait_tensor", R"("r")"));
  };
  PassContext context = eager();
  const Graph plain =
      pipelined(graph(kInputs, join(mm("m", "a", "b"), sum("m")), R"("r_w")"), context);
  EXPECT_THAT(lines(plain), ElementsAre("r_fused = fused_matmul_all_reduce(a, b)", "-> r_fused"));
  EXPECT_EQ(attr_of<std::string>(plain, "r_fused", "reduce_op"), "avg");
  EXPECT_THAT(pipeline_remarks(context), ElementsAre(HasSubstr("r applied: fused with 'm'; ")));
  context = eager();
  const Graph both =
      pipelined(graph(kInputs, join(mm("m", "a", "b"), sum("m")), R"("r_w", "m")"), context);
  EXPECT_THAT(lines(both), ElementsAre("r_fused:0, r_fused:1 = fused_matmul_all_reduce(a, b)",
                                       "-> r_fused:0, r_fused:1"));
}

// It has no chunks; what it takes within the kernel is told.
TEST_P(PipelineScatter, AnAllReduceThatDoesNotGainTellsBothTimes) {
  PassContext context{.target = Target::parse("H100")};
  micro_pipeline(
      graph(join(input("a", "128, 4096"), input("b", "4096, 1024")),
            join(mm("m", "a", "b"), all_reduce("r", "m"), node("r_w", "wait_tensor", R"("r")")),
            R"("r_w")"),
      context);
  const std::string remark = pipeline_remarks(context).at(0);
  double us = 0, apart_us = 0;
  ASSERT_EQ(std::sscanf(remark.c_str(), "r missed: no gain: %lf us instead of %lf", &us, &apart_us),
            2)
      << remark;
  EXPECT_GT(us, apart_us);
}

// A measured time of the collective counts, before and after.
TEST_P(PipelineScatter, TheHintOfTheCollectiveStays) {
  PassContext context = eager();
  Graph hinted = graph(join(input("a", "64, 64"), input("b", "64, 64")),
                       join(mm("m", "a", "b"), scatter("r", "m")), R"("r_w")");
  hinted.set_hint(1, "runtime_ns", 50000);
  const Graph fused = micro_pipeline(hinted, context);
  ASSERT_EQ(fused.nodes().size(), 1U);
  const DeviceModel& device = device_model(context.target);
  EXPECT_GT(node_ns(fused, fused.nodes()[0], {}, device), 50000);
  context.config.always_pipeline = false;
  const Graph lowered = lower_collectives(fused, context);
  EXPECT_EQ(lowered.nodes().back().hints.at("runtime_ns"), 50000);
}

// A0-13, X-4
TEST_P(PipelineScatter, OtherReduceOpsStay) {
  for (const std::string reduce_op : {"max", "min", "product"}) {
    expect_refused(
        graph(kInputs, join(mm("m", "a", "b"), scatter("r", "m", 0, reduce_op)), R"("r_w")"), "r",
        "its reduce_op is " + reduce_op + "; expected sum or avg");
  }
}

// A0-13, C-02, C-03: every dim of three; the product under a view, or of a matmul.
TEST_P(PipelineScatter, EveryDimOfMoreDims) {
  const std::string inputs = join(input("a", "4, 8, 6"), input("b", "6, 12"));
  for (const int dim : {0, 1, 2}) {
    PassContext context = eager();
    const Graph views = pipelined(graph(inputs,
                                        join(view("f", "a", "32, 6"), mm("m", "f", "b"),
                                             view("y", "m", "4, 8, 12"), scatter("r", "y", dim)),
                                        R"("r_w")"),
                                  context);
    EXPECT_THAT(lines(views),
                ElementsAre("r_fused = fused_matmul_reduce_scatter(a, b)", "-> r_fused"));
    EXPECT_EQ(attr_of<std::int64_t>(views, "r_fused", "scatter_dim"), dim);
    const Graph direct = pipelined(
        graph(inputs, join(node("m", "matmul", R"("a", "b")"), scatter("r", "m", dim)), R"("r_w")"),
        context);
    EXPECT_THAT(lines(direct),
                ElementsAre("r_fused = fused_matmul_reduce_scatter(a, b)", "-> r_fused"));
  }
}

// A0-13: a view that regroups the rows otherwise than A; A is regrouped alike.
TEST_P(PipelineScatter, RowsThatAreRegrouped) {
  const std::string inputs = join(input("a", "4, 8, 6"), input("b", "6, 12"));
  PassContext context = eager();
  const Graph result = pipelined(graph(inputs,
                                       join(view("f", "a", "32, 6"), mm("m", "f", "b"),
                                            view("y", "m", "8, 4, 12"), scatter("r", "y", 1)),
                                       R"("r_w")"),
                                 context);
  EXPECT_THAT(
      lines(result),
      ElementsAre("r_A = view(a)", "r_fused = fused_matmul_reduce_scatter(r_A, b)", "-> r_fused"));
  expect_refused(graph(inputs,
                       join(view("f", "a", "32, 6"), mm("m", "f", "b"), view("y", "m", "32, 4, 3"),
                            scatter("r", "y", 0)),
                       R"("r_w")"),
                 "r", "view 'y' of the product is f32[32, 4, 3]; expected its 12 columns");
}

// A0-14, A0-17, C-08, C-16: scatters that are spelt with parts and a cat, here of the columns.
TEST_P(PipelineScatter, SpeltWithPartsAndACat) {
  const int size = 8 / n();
  std::string slices;
  std::string names;
  for (int i = 0; i < n(); ++i) {
    const std::string name = "p" + std::to_string(i);
    slices += node(name, "slice", R"("m")",
                   R"("dim": 1, "start": )" + std::to_string(i * size) + R"(, "end": )" +
                       std::to_string((i + 1) * size)) +
              ",";
    names += (i ? ", \"" : "\"") + name + '"';
  }
  PassContext context = eager();
  const Graph result = pipelined(
      graph(kInputs,
            mm("m", "a", "b") + "," + slices + node("c", "cat", names) + "," + scatter("r", "c"),
            R"("r_w")"),
      context);
  EXPECT_THAT(lines(result),
              ElementsAre("r_fused = fused_matmul_reduce_scatter(a, b)", "-> r_fused"));
  EXPECT_EQ(attr_of<std::int64_t>(result, "r_fused", "scatter_dim"), 1);
}

// A0-13, C-06: the product is wanted elsewhere, too.
TEST_P(PipelineScatter, AProductWithOtherReaders) {
  const std::string nodes = join(mm("m", "a", "b"), scatter("r", "m"));
  PassContext context = eager();
  const Graph output = pipelined(graph(kInputs, nodes, R"("r_w", "m")"), context);
  EXPECT_THAT(lines(output), ElementsAre("r_fused:0, r_fused:1 = fused_matmul_reduce_scatter(a, b)",
                                         "-> r_fused:0, r_fused:1"));
  EXPECT_THAT(pipeline_remarks(context), ElementsAre(HasSubstr("its product is returned, too")));
  const Graph later =
      pipelined(graph(kInputs, join(nodes, node("o", "neg", R"("m")")), R"("r_w", "o")"), context);
  EXPECT_THAT(lines(later), Contains("o = neg(r_fused:1)"));
  expect_refused(
      graph(kInputs, join(mm("m", "a", "b"), node("o", "neg", R"("m")"), scatter("r", "m")),
            R"("r_w", "o")"),
      "r", "'o' reads 'm' before the scatter does");
}

TEST_P(PipelineScatter, AViewedProductWithOtherReaders) {
  const std::string inputs = join(input("a", "4, 8, 6"), input("b", "6, 12"));
  PassContext context = eager();
  const Graph result =
      pipelined(graph(inputs,
                      join(view("f", "a", "32, 6"), mm("m", "f", "b"), view("y", "m", "4, 8, 12"),
                           scatter("r", "y", 1), node("o", "neg", R"("m")"),
                           node("p", "neg", R"("y")"), view("q", "m", "4, 8, 12")),
                      R"("r_w", "o", "p", "q")"),
                context);
  EXPECT_THAT(lines(result), ElementsAre("r_fused:0, r_fused:1 = fused_matmul_reduce_scatter(a, b)",
                                         "m = view(r_fused:1)", "o = neg(m)", "p = neg(r_fused:1)",
                                         "-> r_fused:0, o, p, r_fused:1"));
}

std::string scaled(const std::string& name, const std::string& operands) {
  return node(name, "scaled_mm", operands, R"("out_dtype": "f32")");
}

// A0-14, C-02, C-04, X-18: one scale or one for each row; under views.
TEST_P(PipelineScatter, Scaled) {
  const std::string f8 = join(f8_input("a", "4, 6"), f8_input("b", "6, 8"), input("sb", "1, 8"));
  for (const char* shape : {"", "4, 1"}) {
    PassContext context = eager();
    const Graph result = pipelined(
        graph(join(f8, input("sa", shape)),
              join(scaled("m", R"("a", "b", "sa", "sb")"), scatter("r", "m")), R"("r_w")"),
        context);
    EXPECT_THAT(
        lines(result),
        ElementsAre("r_fused = fused_scaled_matmul_reduce_scatter(a, b, sa, sb)", "-> r_fused"));
  }
  PassContext biased = eager();
  EXPECT_THAT(
      lines(pipelined(graph(join(f8, input("sa", ""), input("bias", "8")),
                            join(scaled("m", R"("a", "b", "sa", "sb", "bias")"), scatter("r", "m")),
                            R"("r_w")"),
                      biased)),
      ElementsAre("r_fused = fused_scaled_matmul_reduce_scatter(a, b, sa, sb, bias)",
                  "-> r_fused"));
  const std::string more =
      join(f8_input("a", "4, 8, 6"), f8_input("b", "6, 8"), input("sb", ""), input("sa", "32, 1"));
  for (const int dim : {0, 1}) {
    PassContext context = eager();
    const Graph result =
        pipelined(graph(more,
                        join(view("f", "a", "32, 6"), scaled("m", R"("f", "b", "sa", "sb")"),
                             view("y", "m", "4, 8, 8"), scatter("r", "y", dim)),
                        R"("r_w")"),
                  context);
    EXPECT_THAT(lines(result),
                ElementsAre("r_scale = view(sa)",
                            "r_fused = fused_scaled_matmul_reduce_scatter(a, b, r_scale, sb)",
                            "-> r_fused"));
  }
  expect_refused(
      graph(join(f8, input("sa", "4, 1")),
            join(scaled("m", R"("a", "b", "sa", "sb")"), scatter("r", "m", 1)), R"("r_w")"),
      "r", "expected another for a scaled matmul");
}

// A0-13, C-15: what is scattered is no matmul, or not one that can be taken.
TEST_P(PipelineScatter, OtherProducersStay) {
  const std::string inputs =
      join(kInputs, input("c", "4, 8"), input("s", "2, 4, 6"), input("t", "2, 6, 8"));
  const auto refused = [&](const std::string& producer, const char* reason) {
    expect_refused(graph(inputs, join(producer, scatter("r", "p", 1)), R"("r_w")"), "r", reason);
  };
  refused(node("p", "neg", R"("c")"), "'p' is neg; expected mm or matmul");
  refused(node("p", "bmm", R"("s", "t")"), "'p' is bmm; expected mm or matmul");
  refused(node("p", "matmul", R"("s", "t")"), "the right operand of 'p' is f32[2, 6, 8]");
  expect_refused(graph(inputs, scatter("r", "c"), R"("r_w")"), "r", "'c' is a graph input");
}

// A0-13: the operands must hold at the scatter what the matmul read.
TEST_P(PipelineScatter, MutationsInBetween) {
  expect_refused(
      graph(join(kInputs, input("u", "4, 6")),
            join(mm("m", "a", "b"), node("c", "copy_", R"("a", "u")"), scatter("r", "m")),
            R"("r_w", "c")"),
      "r", "'a' is overwritten before the scatter");
}

TEST_P(PipelineScatter, ARegroupedProductThatIsOverwrittenLater) {
  const std::string inputs = join(input("a", "8, 6"), input("b", "6, 4"), input("u", "8, 4"));
  const std::string write = node("c", "copy_", R"("m", "u")");
  const auto nodes = [&](const std::string& read) {
    return join(mm("m", "a", "b"), view("v", "m", "4, 2, 4"), scatter("r", "v"), write, read);
  };
  expect_refused(graph(inputs, nodes(node("o", "relu", R"("m")")), R"("r_w", "o")"), "r",
                 "'m', whose rows are regrouped, is overwritten");
  expect_refused(graph(inputs, nodes(node("o", "relu", R"("c")")), R"("r_w", "o", "m")"), "r",
                 "'m', whose rows are regrouped, is overwritten");
  // A matrix is what the fused node gives.
  PassContext context = eager();
  EXPECT_THAT(lines(pipelined(graph(inputs,
                                    join(mm("m", "a", "b"), scatter("r", "m"), write,
                                         node("o", "relu", R"("m")")),
                                    R"("r_w", "o")"),
                              context)),
              ElementsAre("r_fused:0, r_fused:1 = fused_matmul_reduce_scatter(a, b)",
                          "c = copy_(r_fused:1, u)", "o = relu(r_fused:1)", "-> r_fused:0, o"));
}

TEST_P(PipelineScatter, TheGatherGoesFirst) {
  PassContext context = eager();
  const Graph result =
      pipelined(graph(join(input("x", "4, 6"), input("b", "6, 8")),
                      join(gather("g", "x"), mm("m", "g_w", "b"), scatter("r", "m")), R"("r_w")"),
                context);
  EXPECT_THAT(lines(result),
              ElementsAre("g_fused = fused_all_gather_matmul(x, b)",
                          "r = reduce_scatter_tensor(g_fused)", "r_w = wait_tensor(r)", "-> r_w"));
  EXPECT_THAT(remarks_of(context, "r"), ElementsAre("missed: 'm' is fused with 'g' already"));
}

// A whole layer: gather, matmul, activation, matmul, scatter.
TEST_P(PipelineScatter, ALayer) {
  PassContext context = eager();
  const Graph result = pipelined(
      graph(join(input("x", R"("T", 6)"), input("w1", "6, 8"), input("w2", "8, 6")),
            join(gather("g", "x"), mm("h", "g_w", "w1"), node("s", "silu", R"("h")"),
                 mm("p", "s", "w2"), scatter("r", "p"), node("y", "add", R"("r_w", "x")")),
            R"("y")"),
      context);
  EXPECT_THAT(
      lines(result),
      ElementsAre("g_fused = fused_all_gather_matmul(x, w1)", "s = silu(g_fused)",
                  "r_fused = fused_matmul_reduce_scatter(s, w2)", "y = add(r_fused, x)", "-> y"));
}

TEST_P(PipelineScatter, AReaderThatMovedInFront) {
  const std::string inputs = join(input("x", "3, 4"), input("a", "4, 6"), input("b", "6, 8"));
  PassContext context = eager();
  const Graph result = pipelined(graph(inputs,
                                       join(gather("g", "x"), mm("m", "a", "b"), scatter("r", "m"),
                                            node("o", "relu", R"("m")"), mm("k", "g_w", "o")),
                                       R"("k", "r_w")"),
                                 context);
  EXPECT_THAT(pipeline_remarks(context),
              ElementsAre(HasSubstr("g applied"),
                          HasSubstr("r missed: 'o' reads 'm' before the scatter does")));
}

// A0-15: passes that run only where they are named; then to the plain nodes of lower_collectives.
TEST_P(PipelineScatter, RunsWhereItIsEnabled) {
  const Graph graph = this->graph(kInputs, join(mm("m", "a", "b"), scatter("r", "m")), R"("r_w")");
  PassContext context = eager();
  lower(graph, context);
  EXPECT_THAT(context.remarks,
              ::testing::Not(Contains(::testing::Field(&Remark::pass, "micro_pipeline"))));
  context = eager();
  context.config.enable = {"micro_pipeline"};
  lower(graph, context);
  EXPECT_THAT(remarks_of(context, "r"), ElementsAre(HasSubstr("applied: fused with 'm'")));
  EXPECT_THAT(remarks_of(context, "r_fused"),
              ElementsAre(HasSubstr("runs in " + std::to_string(n()) + " chunks")));
}

INSTANTIATE_TEST_SUITE_P(Ranks, PipelineScatter, ::testing::Values(2, 4));

}  // namespace
}  // namespace braid::testing
