#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "braid/reference.h"
#include "lowering/lowering_testing.h"

namespace braid::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kX = input("x", R"("4*T", 8)");      // a partial sum
const std::string kR = input("r", R"("4*T", 8)", "");  // a residual, equal on all ranks
const std::string kG = input("g", "8", "");            // a weight
const std::string kW = input("w", "8, 4");             // of a matmul after the norm
const std::string kInputs = kX + "," + kR + "," + kG + "," + kW;
const std::string kEps = R"("eps": 1e-5)";

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ",") + part;
  return text;
}
/// `name` = wait_tensor(`name`_c), the sum of `operand` over the ranks.
std::string sum_of(const std::string& name, const std::string& operand,
                   const std::string& group = "tp") {
  return all_reduce(name + "_c", operand, group) + "," +
         node(name, "wait_tensor", '"' + name + "_c\"");
}
std::string rms(const std::string& name, const std::string& x) {
  return node(name, "rms_norm", '"' + x + R"(", "g")", kEps);
}
std::string add_rms(const std::string& name, const std::string& a, const std::string& b,
                    const std::string& op = "add_rms_norm2") {
  return node(name, op, '"' + a + R"(", ")" + b + R"(", "g")", kEps);
}
std::string marker(const std::string& name, const std::string& op, const std::string& x) {
  return node(name, op, '"' + x + '"', R"("id": 1)");
}

using Build = std::function<Graph(int world)>;

/// The result of the pass on 4 ranks, in a context that keeps the remarks. Checks on 2 and 4 ranks
/// that the values have the same bits (reduce_scatter sums in the order of all_reduce) and that a
/// second application changes nothing.
Graph applied(const Build& build, PassContext& context) {
  PassConfig config = context.config;
  config.always_pipeline = true;
  Graph result;
  for (int world : {2, 4}) {
    SCOPED_TRACE(world);
    const Graph graph = build(world);
    verify(graph);
    context = eager();
    context.config = config;
    result = sequence_parallel(graph, context);
    verify(result);
    expect_same_values(graph, result);
    PassContext again = eager();
    again.config = config;
    EXPECT_EQ(to_json(sequence_parallel(result, again)), to_json(result));
    for (const Remark& remark : again.remarks) EXPECT_FALSE(remark.applied) << remark.reason.text();
  }
  return result;
}
Graph applied(const std::string& inputs, const std::vector<std::string>& nodes,
              const std::string& outputs, PassContext& context) {
  return applied([&](int world) { return graph_of(inputs, joined(nodes), outputs, world); },
                 context);
}

/// The one remark at `norm` of a graph that the pass leaves as it is.
std::string refusal(const std::string& inputs, const std::vector<std::string>& nodes,
                    const std::string& outputs, const std::string& norm, PassConfig config = {}) {
  PassContext context;
  context.config = std::move(config);
  const Build build = [&](int world) { return graph_of(inputs, joined(nodes), outputs, world); };
  const Graph result = applied(build, context);
  EXPECT_EQ(to_json(result), to_json(build(4)));
  EXPECT_EQ(context.remarks.size(), 1U);
  const std::vector<std::string> remarks = remarks_of(context, norm);
  return remarks.size() == 1 ? remarks[0] : "no single remark";
}

std::string type_of(const Graph& graph, std::string_view value) {
  const std::optional<ValueId> id = graph.find(value);
  return id ? graph.type(*id).str() : "no such value";
}
std::int64_t dim_of(const Graph& graph, std::string_view collective) {
  const std::optional<ValueId> id = graph.find(collective);
  return id ? *graph.node(graph.value(*id).producer).attr<std::int64_t>("dim") : -1;
}
int count(const Graph& graph, std::string_view op) {
  int n = 0;
  for (const Node& node : graph.nodes()) n += node.op_name() == op ? 1 : 0;
  return n;
}

// A1-17: the norm runs on the chunk, and its readers get the gathered result.
TEST(SequenceParallel, NormOfASum) {
  PassContext context;
  const Graph graph =
      applied(kInputs, {sum_of("s", "x"), rms("n", "s"), node("y", "mm", R"("n", "w")")}, R"("y")",
              context);
  EXPECT_THAT(
      lines(graph),
      ElementsAre("s_c_scatter = reduce_scatter_tensor(x)", "s_local = wait_tensor(s_c_scatter)",
                  "n = rms_norm(s_local, g)", "n_gather = all_gather_into_tensor(n)",
                  "n_full = wait_tensor(n_gather)", "y = mm(n_full, w)", "-> y"));
  EXPECT_THAT(remarks_of(context, "n"),
              ElementsAre("applied: on f32[T, 8] of each rank, chunks of dim 0 over the 4 ranks of "
                          "'tp'; 'n' is gathered for 'y'"));
  EXPECT_EQ(context.remarks.size(), 1U);
}

// A1-06: metadata on every inserted node, which the registry infers; A1-17 avg.
TEST(SequenceParallel, InsertedNodesHaveTypesAndTheReduceOp) {
  PassContext context;
  const std::string avg =
      node("s_c", "all_reduce", R"("x")", R"("reduce_op": "avg", "group": "tp")");
  const Graph graph = applied(kInputs, {avg, node("s", "wait_tensor", R"("s_c")"), rms("n", "s")},
                              R"("n")", context);
  for (const char* local : {"s_c_scatter", "s_local", "n"}) {
    EXPECT_EQ(type_of(graph, local), "f32[T, 8]") << local;
  }
  for (const char* full : {"n_gather", "n_full"}) {
    EXPECT_EQ(type_of(graph, full), "f32[4*T, 8]") << full;
  }
  EXPECT_EQ(*graph.nodes()[0].attr<std::string>("reduce_op"), "avg");
}

// A1-01: dim 0 of a matrix, dim 1 of more.
TEST(SequenceParallel, TheSequenceDimFollowsTheRank) {
  for (const auto& [shape, dim] : {std::pair{R"("4*T", 8)", 0}, std::pair{R"(3, "4*T", 8)", 1},
                                   std::pair{R"(2, "4*T", 3, 8)", 1}}) {
    SCOPED_TRACE(shape);
    PassContext context;
    const Graph graph =
        applied(input("x", shape) + "," + kG, {sum_of("s", "x"), rms("n", "s")}, R"("n")", context);
    EXPECT_EQ(dim_of(graph, "s_c_scatter"), dim);
    EXPECT_EQ(dim_of(graph, "n_gather"), dim);
  }
}

// A1-01, X-6: two results do not change which dim that is.
TEST(SequenceParallel, TheSequenceDimOfANormWithTwoResults) {
  PassContext context;
  const Graph graph =
      applied(kInputs, {sum_of("s", "x"), add_rms("n", "s", "r")}, R"("n:0", "n:1")", context);
  EXPECT_EQ(dim_of(graph, "n_0_gather"), 0);
  EXPECT_EQ(dim_of(graph, "n_1_gather"), 0);
  EXPECT_EQ(type_of(graph, "n:0"), "f32[T, 8]");
  EXPECT_EQ(type_of(graph, "n:1"), "f32[T, 8]");
}

// A1-01: what has no dim of tokens beside the norm's is refused.
TEST(SequenceParallel, RefusesRankOne) {
  EXPECT_THAT(
      refusal(input("x", R"("4*T")") + "," + input("q", "8"),
              {sum_of("s", "x"), node("n", "rms_norm", R"("s")", kEps)}, R"("n", "q")", "n"),
      HasSubstr("missed: all_reduce 's_c' gives f32[4*T]; expected at least two dims"));
}

// A1-01 [R]: the sequence dim can be said.
TEST(SequenceParallel, TheSequenceDimCanBeConfigured) {
  const std::vector<std::string> nodes{sum_of("s", "x"), rms("n", "s")};
  PassContext context;
  context.config.sequence_dim = 0;
  const Graph graph = applied(input("x", R"("4*T", 3, 8)") + "," + kG, nodes, R"("n")", context);
  EXPECT_EQ(dim_of(graph, "s_c_scatter"), 0);
  EXPECT_EQ(type_of(graph, "n"), "f32[T, 3, 8]");

  PassConfig config;
  config.sequence_dim = 1;
  EXPECT_THAT(refusal(kX + "," + kG, nodes, R"("n")", "n", config),
              HasSubstr("'s' would be split along dim 1, which the norm works along"));
  for (std::int64_t outside : {-1, 2}) {
    config.sequence_dim = outside;
    EXPECT_THAT(refusal(kX + "," + kG, nodes, R"("n")", "n", config),
                HasSubstr("has no dim " + std::to_string(outside) + ": set sequence_dim"));
  }
}

// A1-02, A1-07, C-26: a sum is judged by the ranks of its own group.
TEST(SequenceParallel, RefusesWhatTheRanksDoNotDivide) {
  const auto run = [](const char* shape, int world) {
    PassContext context = eager();
    static_cast<void>(
        sequence_parallel(graph_of(input("x", shape) + "," + kG,
                                   joined({sum_of("s", "x"), rms("n", "s")}), R"("n")", world),
                          context));
    return remarks_of(context, "n").at(0);
  };
  EXPECT_THAT(run("128, 8", 2), HasSubstr("applied: on f32[64, 8]"));
  EXPECT_THAT(run("128, 8", 3), AllOf(HasSubstr("missed: all_reduce 's_c' has 128 along dim 0"),
                                      HasSubstr("expected a multiple of 3, the ranks of 'tp'")));
  // C-29: fewer tokens than ranks.
  EXPECT_THAT(run("1, 8", 2), HasSubstr("missed: all_reduce 's_c' has 1 along dim 0"));
  EXPECT_THAT(run(R"("T", 8)", 4), HasSubstr("such as 4*T"));
  EXPECT_THAT(run(R"("T", 8)", 1), HasSubstr("missed: all_reduce 's_c' has one rank"));
  EXPECT_THAT(
      refusal(input("x", R"("T", 8)") + "," + kG, {sum_of("s", "x"), rms("n", "s")}, R"("n")", "n"),
      HasSubstr("has T along dim 0"));
}

// A1-03: a value without another dim than the norm's has no shard; reduce ops that are no sums.
TEST(SequenceParallel, RefusesOtherReduceOps) {
  for (const std::string op : {"max", "min", "product"}) {
    EXPECT_THAT(
        refusal(kX + "," + kG,
                {node("s_c", "all_reduce", R"("x")", R"("group": "tp", "reduce_op": ")" + op + '"'),
                 node("s", "wait_tensor", R"("s_c")"), rms("n", "s")},
                R"("n")", "n"),
        HasSubstr("has reduce_op " + op + "; expected sum or avg"));
  }
}

// Gathered rows come from different ranks: only what is equal on all may weigh them.
TEST(SequenceParallel, RefusesWeightsOfOneRank) {
  EXPECT_THAT(refusal(kX + "," + input("g", "8"), {sum_of("s", "x"), rms("n", "s")}, R"("n")", "n"),
              HasSubstr("missed: weight 'g' may differ between the ranks of 'tp'"));
}

// A1-04, X-5: a residual that merely broadcasts is no chunk.
TEST(SequenceParallel, RefusesAResidualThatBroadcasts) {
  EXPECT_THAT(
      refusal(kX + "," + kG, {sum_of("s", "x"), node("a", "add", R"("s", "g")"), rms("n", "a")},
              R"("n")", "n"),
      HasSubstr("operands of 'a' are f32[4*T, 8] and f32[8]; expected one shape"));
}

// A1-05, A1-06, A1-11, C-25: a dropped or added leading dim, symbols in the view's target.
TEST(SequenceParallel, ViewsTakeTheLocalExtent) {
  PassContext context;
  Graph graph = applied(
      input("x", R"(1, "4*T", 8)") + "," + kG,
      {sum_of("s", "x"), node("v", "view", R"("s")", R"("shape": ["4*T", 8])"), rms("n", "v")},
      R"("n")", context);
  EXPECT_EQ(dim_of(graph, "s_c_scatter"), 1);
  EXPECT_EQ(type_of(graph, "v"), "f32[T, 8]");
  EXPECT_EQ(dim_of(graph, "n_gather"), 0);

  graph = applied(kX + "," + input("h", "2", ""),
                  {sum_of("s", "x"), node("v", "view", R"("s")", R"("shape": [1, "4*T", 4, 2])"),
                   node("n", "rms_norm", R"("v", "h")", kEps)},
                  R"("n")", context);
  EXPECT_EQ(type_of(graph, "v"), "f32[1, T, 4, 2]");
  EXPECT_EQ(dim_of(graph, "n_gather"), 1);
}

// A1-06 [D]: no chunk of the operand is one of the result.
TEST(SequenceParallel, RefusesViewsThatMixTheSequenceDim) {
  EXPECT_THAT(refusal(input("x", R"(3, "4*T", 8)") + "," + kG,
                      {sum_of("s", "x"), node("v", "view", R"("s")", R"("shape": ["12*T", 8])"),
                       rms("n", "v")},
                      R"("n")", "n"),
              HasSubstr("missed: view 'v' from f32[3, 4*T, 8] to f32[12*T, 8]"));
}

// A1-08, C-29: a fitting shape proves nothing; the residual must be known to be equal.
TEST(SequenceParallel, RefusesAResidualThatMayDiffer) {
  const std::string inputs = kX + "," + kG + "," + input("r", R"("4*T", 8)");
  for (const char* op : {"add_rms_norm", "add_rms_norm2"}) {
    const std::string out = op == std::string("add_rms_norm") ? R"("n")" : R"("n:0", "n:1")";
    for (const auto& operands : {std::pair{"s", "r"}, std::pair{"r", "s"}}) {
      EXPECT_THAT(
          refusal(inputs, {sum_of("s", "x"), add_rms("n", operands.first, operands.second, op)},
                  out, "n"),
          HasSubstr("missed: residual 'r' may differ between the ranks of 'tp'"));
    }
  }
  EXPECT_THAT(refusal(inputs, {sum_of("s", "x"), node("a", "add", R"("s", "r")"), rms("n", "a")},
                      R"("n", "a")", "n"),
              HasSubstr("missed: residual 'r' may differ between the ranks of 'tp'"));
}

// A1-08: what was gathered is whole, whatever went into the gather.
TEST(SequenceParallel, AGatheredResidualIsWhole) {
  PassContext context;
  const Graph graph = applied(
      [&](int world) {
        return graph_of(
            kX + "," + kG + "," + input("p", world == 2 ? R"("2*T", 8)" : R"("T", 8)"),
            joined({node("q", "all_gather_into_tensor", R"("p")", R"("group": "tp")"),
                    node("r", "wait_tensor", R"("q")"), sum_of("s", "x"), add_rms("n", "s", "r")}),
            R"("n:0")", world);
      },
      context);
  // Its chunk exists already: no gather, no cut.
  EXPECT_THAT(lines(graph), ElementsAre("s_c_scatter = reduce_scatter_tensor(x)",
                                        "s_local = wait_tensor(s_c_scatter)",
                                        "n:0, n:1 = add_rms_norm2(s_local, p, g)",
                                        "n_0_gather = all_gather_into_tensor(n:0)",
                                        "n_0_full = wait_tensor(n_0_gather)", "-> n_0_full"));
}

// The same for a residual that is overwritten meanwhile: no chunk of it may be read later.
TEST(SequenceParallel, AGatheredChunkThatIsOverwrittenIsCut) {
  PassContext context = eager();
  const Graph graph = sequence_parallel(
      graph_of(kX + "," + kG + "," + input("p", R"("T", 8)") + "," + input("o", R"("T", 8)"),
               joined({node("q", "all_gather_into_tensor", R"("p")", R"("group": "tp")"),
                       node("r", "wait_tensor", R"("q")"), node("c", "copy_", R"("p", "o")"),
                       sum_of("s", "x"), add_rms("n", "s", "r")}),
               R"("n:0")"),
      context);
  EXPECT_THAT(lines(graph), ::testing::Contains("r_cut = shard(r)"));
}

// T is a multiple of 4: the ranks divide it.
TEST(SequenceParallel, MultipleOfIsAProof) {
  const auto run = [](int multiple_of) {
    const Graph graph = parse_graph(
        R"({"braid": 1, "name": "t", "groups": {"tp": {"size": 4}}, "symbols": {"T": {"max": 64,
            "multiple_of": )" +
        std::to_string(multiple_of) + R"(}}, "inputs": [)" + input("x", R"(2, "T", 8)") + "," + kG +
        R"(], "nodes": [)" +
        joined({sum_of("s", "x"), node("v", "view", R"("s")", R"("shape": [2, "T", 8])"),
                rms("n", "v")}) +
        R"(], "outputs": ["n"]})");
    PassContext context = eager();
    const Graph result = sequence_parallel(graph, context);
    verify(result);
    // Its JSON can be read back.
    EXPECT_EQ(to_json(parse_graph(to_json(result))), to_json(result));
    const Bindings bindings = {{"T", 12}};
    const RankTensors inputs = random_inputs(graph, bindings, 3);
    const RankTensors before = evaluate(graph, inputs, bindings);
    const RankTensors after = evaluate(result, inputs, bindings);
    for (std::size_t rank = 0; rank < before.size(); ++rank) {
      EXPECT_EQ(after[rank][0].data, before[rank][0].data);
    }
    return remarks_of(context, "n").at(0);
  };
  EXPECT_THAT(run(4), HasSubstr("applied: on f32[2, T/4, 8]"));
  EXPECT_THAT(run(12), HasSubstr("applied: on f32[2, T/4, 8]"));
  EXPECT_THAT(run(2), HasSubstr("such as 4*T, or T with multiple_of 4"));
}

/// Groups tp = {0,1},{2,3} and dp = {0,2},{1,3}.
Graph mesh_of(const std::string& inputs, const std::vector<std::string>& nodes,
              const std::string& outputs) {
  return parse_graph(R"({"braid": 1, "name": "mesh", "symbols": {"T": {"min": 1, "max": 64}},
       "groups": {"tp": {"size": 2, "ranks": [[0, 1], [2, 3]]},
                  "dp": {"size": 2, "ranks": [[0, 2], [1, 3]]}, "self": {"size": 1}},
       "inputs": [)" +
                     inputs + R"(], "nodes": [)" + joined(nodes) + R"(], "outputs": [)" + outputs +
                     "]}");
}

// A1-08 [D], X-5: chunks of another group are not this group's.
TEST(SequenceParallel, AResidualSplitOverAnotherGroupIsRefused) {
  PassContext context;
  const Graph graph = applied(
      [](int) {
        return mesh_of(kInputs + "," + input("x2", R"("4*T", 8)"),
                       {sum_of("s", "x", "dp"), add_rms("n", "s", "r"), sum_of("t", "x2"),
                        add_rms("m", "t", "n:1")},
                       R"("n:0", "m:0")");
      },
      context);
  EXPECT_THAT(remarks_of(context, "n"), ElementsAre(HasSubstr("applied: ")));
  EXPECT_THAT(remarks_of(context, "m"),
              ElementsAre("missed: 't' is in chunks of dim 0 over 'tp', 'n:1' of dim 0 over 'dp'"));
  EXPECT_THAT(lines(graph), ::testing::Contains("m:0, m:1 = add_rms_norm2(t, n_1_full, g)"));
}

// A1-08 [D]: nor are chunks of another dim; the residual is whole in between.
TEST(SequenceParallel, AResidualSplitAlongAnotherDimIsGatheredAndCut) {
  const std::vector<std::string> nodes{node("z", "view", R"("x2")", R"("shape": ["16*T", 8])"),
                                       sum_of("t", "z"),
                                       add_rms("n", "t", "r"),
                                       node("v", "view", R"("n:1")", R"("shape": ["4*T", 4, 8])"),
                                       sum_of("s", "x"),
                                       add_rms("m", "s", "v"),
                                       rms("k", "v")};
  const std::string inputs = input("x", R"("4*T", 4, 8)") + "," + input("x2", R"("4*T", 4, 8)") +
                             "," + kG + "," + input("r", R"("16*T", 8)", "");
  for (const char* outputs : {R"("m:0", "m:1")", R"("m:0", "k")"}) {
    const bool both = outputs == std::string(R"("m:0", "k")");
    PassContext context;
    const Graph graph =
        applied(inputs, std::vector(nodes.begin(), nodes.end() - (both ? 0 : 1)), outputs, context);
    EXPECT_EQ(dim_of(graph, "t_c_scatter"), 0);
    EXPECT_EQ(dim_of(graph, "s_c_scatter"), 1);
    EXPECT_EQ(dim_of(graph, "v_cut"), 1);
    EXPECT_THAT(lines(graph), ::testing::Contains("v = view(n_1_full)"));
    EXPECT_EQ(type_of(graph, "m:0"), "f32[4*T, 1, 8]");
    EXPECT_EQ(type_of(graph, "k"), both ? "f32[T, 4, 8]" : "no such value");
  }
}

// A1-19 [R]: what a second application would find, the first one does.
TEST(SequenceParallel, AStreamAlongTheNormsDimIsMadeWhole) {
  PassContext context;
  const Graph graph =
      applied(input("x", R"(4, "4*T", 2)") + "," + input("r", R"(4, "4*T", 2)", "") + "," +
                  input("h", "2", "") + "," + input("x2", R"(4, "8*T")"),
              {sum_of("t", "x"), node("n", "add_rms_norm2", R"("t", "r", "h")", kEps),
               node("v", "view", R"("n:1")", R"("shape": [4, "8*T"])"), sum_of("s", "x2"),
               node("a", "add", R"("v", "s")"), node("m", "rms_norm", R"("a")", kEps)},
              R"("n:0", "m")", context);
  EXPECT_EQ(dim_of(graph, "t_c_scatter"), 1);
  EXPECT_EQ(dim_of(graph, "s_c_scatter"), 0);
  EXPECT_EQ(type_of(graph, "m"), "f32[1, 8*T]");
  EXPECT_EQ(context.remarks.size(), 2U);
  EXPECT_THAT(remarks_of(context, "m"), ElementsAre(HasSubstr("applied: ")));
}

// A1-09, A1-18, X-7: the sum may be either operand; both are chunks then.
TEST(SequenceParallel, TheSumMayBeEitherOperand) {
  for (const auto& operands : {std::pair{"s", "r"}, std::pair{"r", "s"}}) {
    PassContext context;
    const Graph graph =
        applied(kInputs, {sum_of("s", "x"), add_rms("n", operands.first, operands.second)},
                R"("n:0", "n:1")", context);
    EXPECT_EQ(type_of(graph, "n:0"), "f32[T, 8]");
    EXPECT_EQ(type_of(graph, "n:1"), "f32[T, 8]");
    EXPECT_EQ(count(graph, "all_reduce"), 0);
    EXPECT_EQ(count(graph, "all_gather_into_tensor"), 2);
  }
}

// A1-09: the sum of two sums is one of two chunks.
TEST(SequenceParallel, BothOperandsMayBeSums) {
  PassContext context;
  const Graph graph =
      applied(kInputs + "," + input("x2", R"("4*T", 8)"),
              {sum_of("s", "x"), sum_of("t", "x2"), add_rms("n", "s", "t")}, R"("n:0")", context);
  EXPECT_EQ(count(graph, "all_reduce"), 0);
  EXPECT_EQ(count(graph, "reduce_scatter_tensor"), 2);
  EXPECT_EQ(count(graph, "all_gather_into_tensor"), 1);
}

// A1-10: one gather serves all who read the whole, the graph output too.
TEST(SequenceParallel, OneGatherForAllReaders) {
  PassContext context;
  const Graph graph = applied(kInputs,
                              {sum_of("s", "x"), rms("n", "s"), node("y", "mm", R"("n", "w")"),
                               node("z", "mm", R"("n", "w")")},
                              R"("y", "z", "n")", context);
  EXPECT_EQ(count(graph, "all_gather_into_tensor"), 1);
  EXPECT_THAT(lines(graph), AllOf(::testing::Contains("y = mm(n_full, w)"),
                                  ::testing::Contains("z = mm(n_full, w)"),
                                  ::testing::Contains("-> y, z, n_full")));
}

// A1-12: from the add through the end of a region and copies to the norm.
TEST(SequenceParallel, MarkersAreLookedThrough) {
  PassContext context;
  const Graph graph = applied(
      kInputs,
      {sum_of("s", "x"), node("a", "add", R"("s", "r")"), marker("e", "mark_region_end", "a"),
       marker("c1", "copy_region", "e"), marker("c2", "copy_region", "c1"), rms("n", "c2")},
      R"("n")", context);
  EXPECT_THAT(
      lines(graph),
      ElementsAre("s_c_scatter = reduce_scatter_tensor(x)", "s_local = wait_tensor(s_c_scatter)",
                  "r_cut = shard(r)", "a = add(s_local, r_cut)", "e = mark_region_end(a)",
                  "c1 = copy_region(e)", "c2 = copy_region(c1)", "n = rms_norm(c2, g)",
                  "n_gather = all_gather_into_tensor(n)", "n_full = wait_tensor(n_gather)",
                  "-> n_full"));
}

// A1-17 [D], X-5: a second reader of the marker keeps the whole.
TEST(SequenceParallel, OtherReadersOfAMarkerKeepTheWhole) {
  PassContext context;
  const Graph graph = applied(kInputs,
                              {sum_of("s", "x"), marker("m", "mark_region_begin", "s"),
                               rms("n", "m"), node("y", "mm", R"("m", "w")")},
                              R"("n", "y")", context);
  EXPECT_THAT(lines(graph), AllOf(::testing::Contains("n = rms_norm(m_local, g)"),
                                  ::testing::Contains("m = mark_region_begin(s)"),
                                  ::testing::Contains("y = mm(m, w)")));
}

// A1-13, A1-14, A1-18: between the layers the residual stays local, and is not gathered.
TEST(SequenceParallel, TheResidualOfAChainStaysLocal) {
  const std::string x2 = input("x2", R"("4*T", 8)");
  for (const std::string tail : {"add_rms_norm2", "add_rms_norm", "add"}) {
    SCOPED_TRACE(tail);
    std::vector<std::string> nodes{sum_of("s", "x"), add_rms("n", "s", "r"), sum_of("t", "x2")};
    if (tail == "add") {
      nodes.push_back(node("a", "add", R"("n:1", "t")"));
      nodes.push_back(rms("m", "a"));
    } else {
      nodes.push_back(add_rms("m", "n:1", "t", tail));
    }
    PassContext context;
    const Graph graph =
        applied(kInputs + "," + x2, nodes,
                tail == "add_rms_norm2" ? R"("n:0", "m:0")" : R"("n:0", "m")", context);
    EXPECT_EQ(count(graph, "all_reduce"), 0);
    EXPECT_EQ(count(graph, "all_gather_into_tensor"), 2);  // of the normed values
    EXPECT_THAT(remarks_of(context, "n"), ElementsAre(HasSubstr("; 'n:1' stays local")));
  }
}

// A1-13, A1-14: results taken by getitem nodes, as torch writes them.
TEST(SequenceParallel, ResultsTakenByGetitem) {
  PassContext context;
  const Graph graph = applied(
      kInputs + "," + input("x2", R"("4*T", 8)"),
      {sum_of("s", "x"), add_rms("n", "s", "r"), node("h", "getitem", R"("n")", R"("index": 0)"),
       node("k", "getitem", R"("n")", R"("index": 1)"), node("y", "mm", R"("h", "w")"),
       sum_of("t", "x2"), add_rms("m", "t", "k")},
      R"("y", "m:0", "m:1")", context);
  EXPECT_EQ(count(graph, "all_gather_into_tensor"), 3);
  EXPECT_THAT(lines(graph), ::testing::Contains("m:0, m:1 = add_rms_norm2(t_local, n:1, g)"));
}

// A1-18 [D], X-7: what the next layer cannot take as a chunk is gathered.
TEST(SequenceParallel, TheResidualOfABrokenChainIsGathered) {
  PassContext context;
  // m looks like the tail of a chain, but its weight differs from rank to rank.
  const Graph graph = applied(kInputs + "," + input("h", "8"),
                              {sum_of("s", "x"), add_rms("n", "s", "r"), sum_of("t", "x"),
                               node("m", "add_rms_norm2", R"("t", "n:1", "h")", kEps)},
                              R"("n:0", "m:0")", context);
  EXPECT_THAT(lines(graph), ::testing::Contains("m:0, m:1 = add_rms_norm2(t, n_1_full, h)"));
  EXPECT_THAT(remarks_of(context, "n"), ElementsAre(HasSubstr("; 'n:1' is gathered for 'm'")));
  EXPECT_THAT(remarks_of(context, "m"), ElementsAre(HasSubstr("missed: weight 'h' may differ")));
}

// A1-16 [D], X-5: a view between the sum and the add, with its whole target.
TEST(SequenceParallel, AViewBetweenTheSumAndTheAdd) {
  PassContext context;
  const Graph graph =
      applied(input("x", R"(1, "4*T", 8)") + "," + kR + "," + kG,
              {sum_of("s", "x"), node("v", "view", R"("s")", R"("shape": ["4*T", 8])"),
               node("a", "add", R"("v", "r")"), rms("n", "a")},
              R"("n")", context);
  EXPECT_EQ(type_of(graph, "v"), "f32[T, 8]");
  EXPECT_EQ(type_of(graph, "a"), "f32[T, 8]");
}

// A1-16 [D], X-5: the norm at the end of an add has a residual of its own.
TEST(SequenceParallel, ANormWithAResidualAfterAnAdd) {
  const std::vector<std::string> nodes{sum_of("s", "x"), node("a", "add", R"("s", "r")"),
                                       add_rms("n", "a", "q", "add_rms_norm")};
  PassContext context;
  const Graph graph =
      applied(kInputs + "," + input("q", R"("4*T", 8)", ""), nodes, R"("n")", context);
  EXPECT_THAT(lines(graph), ::testing::Contains("n = add_rms_norm(a, q_cut, g)"));
  EXPECT_THAT(refusal(kInputs + "," + input("q", R"("4*T", 8)"), nodes, R"("n")", "n"),
              HasSubstr("missed: residual 'q' may differ"));
}

// A1-16 [R]: other readers of the add get it gathered, once.
TEST(SequenceParallel, OtherReadersOfTheAddGetItGathered) {
  PassContext context;
  const Graph graph = applied(kInputs,
                              {sum_of("s", "x"), node("a", "add", R"("s", "r")"), rms("n", "a"),
                               node("y", "mm", R"("a", "w")")},
                              R"("n", "y", "a")", context);
  EXPECT_EQ(count(graph, "all_gather_into_tensor"), 2);
  EXPECT_THAT(lines(graph), AllOf(::testing::Contains("y = mm(a_full, w)"),
                                  ::testing::Contains("-> n_full, y, a_full")));
  EXPECT_THAT(remarks_of(context, "n"), ElementsAre(HasSubstr("'a' is also needed whole, by 'y'")));
}

// A1-17 [D], X-5, C-28: the residual of the first layer, each rank's own rows of it.
TEST(SequenceParallel, AFullResidualIsCutAtTheRanksRows) {
  PassContext context;
  const Graph graph = applied(kInputs, {sum_of("s", "x"), add_rms("n", "s", "r", "add_rms_norm")},
                              R"("n")", context);
  EXPECT_THAT(lines(graph), ElementsAre("s_c_scatter = reduce_scatter_tensor(x)",
                                        "s_local = wait_tensor(s_c_scatter)", "r_cut = shard(r)",
                                        "n = add_rms_norm(s_local, r_cut, g)",
                                        "n_gather = all_gather_into_tensor(n)",
                                        "n_full = wait_tensor(n_gather)", "-> n_full"));
  EXPECT_THAT(remarks_of(context, "n"),
              ElementsAre(HasSubstr("; 'r', equal on all ranks, is cut")));
}

// A1-17: a residual that two norms take is cut once.
TEST(SequenceParallel, OneCutForAllReaders) {
  PassContext context;
  const Graph graph =
      applied(kInputs + "," + input("x2", R"("4*T", 8)"),
              {sum_of("s", "x"), sum_of("t", "x2"), add_rms("n", "s", "r"), add_rms("m", "r", "t")},
              R"("n:0", "m:0")", context);
  EXPECT_EQ(count(graph, "reduce_scatter_tensor"), 2);
  EXPECT_EQ(count(graph, "shard"), 1);
}

// A1-17 [D]: two norms of one all_reduce share its reduce_scatter, also through two waits.
TEST(SequenceParallel, OneScatterForAllNorms) {
  PassContext context;
  const Graph graph = applied(kInputs,
                              {sum_of("s", "x"), node("s2", "wait_tensor", R"("s_c")"),
                               rms("n", "s"), rms("m", "s"), add_rms("k", "s2", "s")},
                              R"("n", "m", "k:1")", context);
  EXPECT_EQ(count(graph, "reduce_scatter_tensor"), 1);
  EXPECT_EQ(count(graph, "all_reduce"), 0);
}

// A1-17: other readers of the sum keep the all_reduce.
TEST(SequenceParallel, OtherReadersOfTheSumKeepTheAllReduce) {
  PassContext context;
  const Graph graph =
      applied(kInputs, {sum_of("s", "x"), rms("n", "s"), node("y", "mm", R"("s", "w")")},
              R"("n", "y")", context);
  EXPECT_EQ(count(graph, "reduce_scatter_tensor"), 1);
  EXPECT_EQ(count(graph, "all_reduce"), 1);
  EXPECT_THAT(lines(graph), ::testing::Contains("y = mm(s, w)"));
  EXPECT_THAT(remarks_of(context, "n"), ElementsAre(HasSubstr("'s' is also needed whole, by 'y'")));
}

// A1-17 [D], X-5: a norm whose residual is unproven keeps the whole sum.
TEST(SequenceParallel, AnUnprovenNormBesideAProvenOne) {
  PassContext context;
  const Graph graph = applied(kX + "," + kG + "," + input("r", R"("4*T", 8)"),
                              {sum_of("s", "x"), rms("n", "s"), add_rms("m", "s", "r")},
                              R"("n", "m:0", "m:1")", context);
  EXPECT_THAT(lines(graph), ::testing::Contains("m:0, m:1 = add_rms_norm2(s, r, g)"));
  EXPECT_THAT(remarks_of(context, "n"), ElementsAre(HasSubstr("applied: ")));
  EXPECT_THAT(remarks_of(context, "m"), ElementsAre(HasSubstr("missed: residual 'r' may differ")));
}

// A1-19: only on request, and each collective by its own group.
TEST(SequenceParallel, RunsOnRequestAndPerGroup) {
  EXPECT_FALSE(sequence_parallel.by_default);
  PassContext context;
  const Graph graph = applied(
      [](int) {
        return mesh_of(kInputs + "," + input("x2", R"("4*T", 8)"),
                       {sum_of("s", "x", "self"), rms("n", "s"), sum_of("t", "x2"), rms("m", "t")},
                       R"("n", "m")");
      },
      context);
  EXPECT_THAT(remarks_of(context, "n"), ElementsAre(HasSubstr("has one rank in its group 'self'")));
  EXPECT_THAT(remarks_of(context, "m"), ElementsAre(HasSubstr("applied: on f32[2*T, 8]")));
}

// C-32: a sum that has its algorithm is somebody else's already.
TEST(SequenceParallel, LoweredSumsStay) {
  PassContext context;
  const Build build = [](int world) {
    PassContext lowering = eager();
    return lower_collectives(
        graph_of(kInputs, joined({sum_of("s", "x"), rms("n", "s")}), R"("n")", world), lowering);
  };
  EXPECT_EQ(to_json(applied(build, context)), to_json(build(4)));
  EXPECT_THAT(context.remarks, IsEmpty());
}

// A1-19: nothing is left over, and what leads to no norm stays as it is.
TEST(SequenceParallel, ASumWithoutANormStays) {
  PassContext context;
  const Build build = [](int world) {
    return graph_of(kInputs,
                    joined({sum_of("s", "x"), node("a", "add", R"("s", "r")"),
                            marker("e", "mark_region_end", "a")}),
                    R"("e")", world);
  };
  EXPECT_EQ(to_json(applied(build, context)), to_json(build(4)));
  EXPECT_THAT(context.remarks, IsEmpty());
}

// C-28: copying back into a graph input reads the whole; overwritten memory has no second version.
TEST(SequenceParallel, OverwrittenMemoryStaysWhole) {
  PassContext context;
  Graph graph =
      applied(kInputs + "," + input("kept", R"("4*T", 8)"),
              {sum_of("s", "x"), add_rms("n", "s", "r"), node("k", "copy_", R"("kept", "n:1")")},
              R"("n:0", "k")", context);
  EXPECT_THAT(lines(graph), ::testing::Contains("k = copy_(kept, n_1_full)"));

  EXPECT_THAT(refusal(kInputs,
                      {sum_of("s", "x"), add_rms("n", "s", "r"), node("k", "copy_", R"("r", "x")")},
                      R"("n:0", "k")", "n"),
              HasSubstr("residual 'r' is overwritten in place"));
  EXPECT_THAT(refusal(kInputs, {sum_of("s", "x"), rms("n", "s"), node("k", "copy_", R"("s", "r")")},
                      R"("n", "k")", "n"),
              HasSubstr("'s' is overwritten in place"));
  EXPECT_THAT(refusal(kInputs, {sum_of("s", "x"), rms("n", "s"), node("k", "copy_", R"("x", "r")")},
                      R"("n", "k")", "n"),
              HasSubstr("all_reduce 's_c' reduces 'x', which is overwritten in place"));
}

}  // namespace
}  // namespace braid::testing
