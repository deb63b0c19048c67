#include <fmt/format.h>
#include <gmock/gmock.h>

#include "braid/error.h"
#include "ir/collective.h"
#include "lowering/lowering_testing.h"

namespace braid::testing {
namespace {

using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const std::string kX = input("x", R"("T", 6)");
const std::string kWait = node("s", "wait_tensor", R"("c")");

/// Lowers, verifies and compares values on 2 and 4 ranks; the result is that of 4.
Graph lowered(const std::string& inputs, const std::string& nodes, const std::string& outputs,
              PassContext& context) {
  Graph result;
  for (int world : {2, 4}) {
    const Graph graph = graph_of(inputs, nodes, outputs, world);
    context.target = sm80().target;
    context.remarks.clear();
    result = lower_collectives(graph, context);
    verify(result);
    expect_same_values(graph, result);
  }
  return result;
}

// A2-01, A2-02, A2-04, A2-16: the operand is realised in place, the wait goes.
TEST(LowerCollectives, ComputedOperandBecomesACommBuffer) {
  PassContext context = in_one_shot();
  const Graph graph = lowered(kX,
                              node("p", "neg", R"("x")") + "," + all_reduce("c", "p") + "," +
                                  kWait + "," + node("y", "relu", R"("s")"),
                              R"("y")", context);
  EXPECT_THAT(lines(graph),
              ElementsAre("p@tp = neg(x)", "c = all_reduce(p)", "y = relu(c)", "-> y"));
  EXPECT_EQ(*graph.nodes()[1].attr<std::string>("algorithm"), "one_shot");
  EXPECT_THAT(remarks_of(context, "c"),
              ElementsAre(HasSubstr("applied: one_shot over 4 ranks of 'tp', 1536 bytes: about ")));
}

// A2-05: by the cost model, with symbols at their maximum.
TEST(LowerCollectives, AllReducesTakeTheQuickestAlgorithm) {
  const std::string nodes = node("p", "neg", R"("x")") + "," + all_reduce("c", "p") + "," + kWait;
  const auto chosen = [&](const std::string& shape, int world, PassContext& context) {
    const Graph graph = graph_of(input("x", shape), nodes, R"("s")", world);
    return *lower_collectives(graph, context).nodes()[1].attr<std::string>("algorithm");
  };
  const std::string large = R"("8*T", 1024)";
  PassContext context;
  static_cast<void>(lowered(input("x", large), nodes, R"("s")", context));
  EXPECT_THAT(
      remarks_of(context, "c"),
      ElementsAre(AllOf(HasSubstr("applied: two_shot over 4 ranks of 'tp', 2097152 bytes"),
                        ContainsRegex(R"( \(one_shot: [0-9.]+ us\) \(ll: [0-9.]+ us\);)"))));
  // Two ranks read as much in one shot, and small operands need no barrier.
  EXPECT_EQ(chosen(large, 2, context), "one_shot");
  EXPECT_EQ(chosen(R"("T", 6)", 8, context), "ll");
  // Unless one is asked for.
  for (const char* algorithm : {"one_shot", "two_shot", "ll"}) {
    context.config.all_reduce = algorithm;
    EXPECT_EQ(chosen(large, 4, context), algorithm);
    EXPECT_EQ(chosen(R"("T", 6)", 4, context), algorithm);
  }
  context.config.all_reduce = "ring";
  try {
    static_cast<void>(chosen(large, 4, context));
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "all-reduce: found \"ring\"; expected one_shot, two_shot, ll or "
                 "multimem");
  }
}

// Trials take precedence over the model, but not over explicit requests and prohibitions.
// Whose packets would tell no rank how far its peers are.
// All times of algorithms are the model's; a measured one stands beside them.
TEST(LowerCollectives, AHintIsToldApartFromTheModelsTimes) {
  Graph graph = graph_of(kX, all_reduce("c", "x") + "," + kWait, R"("s")");
  PassContext context = sm80();
  lower_collectives(graph, context);
  const std::string without = remarks_of(context, "c").at(0);
  graph.set_hint(0, "runtime_ns", 50000);
  PassContext hinted = sm80();
  lower_collectives(graph, hinted);
  std::string expected = without;
  expected.insert(expected.find("; the wait"), " (its runtime_ns hint: 50.0 us)");
  EXPECT_THAT(remarks_of(hinted, "c"), Contains(expected));
}

TEST(LowerCollectives, WhatCanBeEmptyIsNotSentAsPackets) {
  for (const char* asked : {"", "ll"}) {
    PassContext context;
    context.config.all_reduce = asked;
    const Graph graph = parse_graph(R"({"braid": 1, "symbols": {"T": {"min": 0, "max": 8}},
      "groups": {"tp": {"size": 8}},
      "inputs": [{"name": "x", "dtype": "f32", "shape": ["T", 6], "per_rank": true}],
      "nodes": [{"name": "c", "op": "all_reduce", "inputs": ["x"],
                 "attrs": {"reduce_op": "sum", "group": "tp"}},
                {"name": "s", "op": "wait_tensor", "inputs": ["c"]}],
      "outputs": ["s"]})");
    const Graph result = lower_collectives(graph, context);
    const auto is_reduced = [](const Node& node) { return node.op_name() == "all_reduce"; };
    const auto found = std::ranges::find_if(result.nodes(), is_reduced);
    ASSERT_NE(found, result.nodes().end());
    EXPECT_EQ(algorithm_of(*found), Algorithm::kOneShot) << asked;
  }
}

TEST(LowerCollectives, AllReducesTakeWhatIsTuned) {
  const std::string p = node("p", "neg", R"("x")") + ",", c = all_reduce("c", "p") + ",";
  std::map<std::string, double> ns = {{"one_shot", 3000}, {"two_shot", 1000}, {"ll", 2000}};
  PassContext context;
  context.tuned = [&](const Graph& body) -> Tuned {
    EXPECT_EQ(body.nodes().size(), 1U);
    const auto found = ns.find(*body.nodes()[0].attr<std::string>("algorithm"));
    if (found == ns.end()) return {};
    return {Config{{"num_warps", 4}}, "", found->second, "estimated on A100"};
  };
  const auto chosen = [&](const std::string& more, const std::string& outputs) {
    context.remarks.clear();
    const Graph graph = graph_of(kX, p + c + kWait + more, outputs);
    return *lower_collectives(graph, context).nodes()[1].attr<std::string>("algorithm");
  };
  EXPECT_EQ(chosen("", R"("s")"), "two_shot");
  EXPECT_THAT(remarks_of(context, "c"),
              Contains("applied: tuned: two_shot: 1.0 us estimated on A100 (one_shot: 3.0 us) "
                       "(ll: 2.0 us); by the cost model it is ll"));
  // Two shots would overwrite what another node reads.
  EXPECT_EQ(chosen("," + node("q", "relu", R"("p")"), R"("s", "q")"), "ll");
  context.config.all_reduce = "one_shot";
  EXPECT_EQ(chosen("", R"("s")"), "one_shot");
  context.config.all_reduce = "";
  ns.erase("one_shot");
  EXPECT_EQ(chosen("", R"("s")"), "ll");  // the model's
  EXPECT_THAT(remarks_of(context, "c"),
              Contains("missed: not tuned: the database has no time of one_shot"));
}

// Quickest where links reduce, but in an order of its own.
TEST(LowerCollectives, MultimemWantsToBeAllowed) {
  const std::string p = node("p", "neg", R"("x")") + ",";
  const auto lower_on = [&](const char* target, const char* op, PassContext& context) {
    const std::string c =
        node("c", "all_reduce", R"("p")", fmt::format(R"("reduce_op": "{}", "group": "tp")", op));
    const Graph graph = graph_of(input("x", R"("8*T", 1024)"), p + c + "," + kWait, R"("s")", 8);
    context.target = Target::parse(target);
    context.remarks.clear();
    return *lower_collectives(graph, context).nodes()[1].attr<std::string>("algorithm");
  };
  PassContext context;
  EXPECT_EQ(lower_on("H100", "sum", context), "two_shot");
  EXPECT_THAT(
      remarks_of(context, "c"),
      ElementsAre(ContainsRegex(
          R"(\(multimem: [0-9.]+ us, but in an order of its own: --batch-invariant=false\))")));
  context.config.batch_invariant = false;
  for (const char* target : {"sm_90a", "H200", "B200"}) {
    EXPECT_EQ(lower_on(target, "sum", context), "multimem") << target;
    EXPECT_EQ(lower_on(target, "avg", context), "multimem") << target;
  }
  EXPECT_EQ(lower_on("H100", "max", context), "two_shot");
  EXPECT_EQ(lower_on("RTX 5090", "sum", context), "two_shot");
  EXPECT_THAT(remarks_of(context, "c"), ElementsAre(Not(HasSubstr("multimem"))));
  // An explicit request is answered with the reason.
  context.config.all_reduce = "multimem";
  EXPECT_EQ(lower_on("sm_80", "sum", context), "two_shot");
  EXPECT_THAT(remarks_of(context, "c"),
              Contains(HasSubstr("no multimem over 'tp': the links of sm_80 do not reduce")));
  EXPECT_EQ(lower_on("H100:mma.sync", "sum", context), "two_shot");
  EXPECT_THAT(remarks_of(context, "c"),
              Contains(HasSubstr("no multimem over 'tp': multimem is no unit of H100:fma,")));
  EXPECT_EQ(lower_on("H100", "max", context), "two_shot");
  EXPECT_THAT(remarks_of(context, "c"),
              Contains(HasSubstr("no multimem over 'tp': the hardware has no max of f32")));
  context.multicast = false;
  EXPECT_EQ(lower_on("H100", "sum", context), "two_shot");
  EXPECT_THAT(remarks_of(context, "c"),
              Contains(HasSubstr("no multimem over 'tp': the device has no multicast memory")));
  context.config.batch_invariant = true;
  try {
    static_cast<void>(lower_on("H100", "sum", context));
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "all-reduce: multimem adds up in an order of its own; expected it beside "
                 "--batch-invariant=false");
  }
}

// A4-24, A4-25: by copies where they are asked for and can be.
TEST(LowerCollectives, GathersAndScattersAsCopies) {
  PassContext context;
  context.config.by_copies = true;
  const std::string gather =
      node("c", "all_gather_into_tensor", R"("p")", R"("group": "tp")") + "," + kWait;
  EXPECT_THAT(
      lines(lowered(kX, node("p", "neg", R"("x")") + "," + gather, R"("s")", context)),
      ElementsAre("p@tp = neg(x)", "c_copy_from_peer = copy_from_peer(p)",
                  "c_copy_from_peer1 = copy_from_peer(p)", "c_copy_from_peer2 = copy_from_peer(p)",
                  "c_copy_from_peer3 = copy_from_peer(p)",
                  "s_wait_tensor = wait_tensor(c_copy_from_peer3)",
                  "s_wait_tensor1 = wait_tensor(c_copy_from_peer)",
                  "s_wait_tensor2 = wait_tensor(c_copy_from_peer1)",
                  "s_wait_tensor3 = wait_tensor(c_copy_from_peer2)",
                  "s_join_by_rank = join_by_rank(s_wait_tensor, s_wait_tensor1, s_wait_tensor2, "
                  "s_wait_tensor3)",
                  "-> s_join_by_rank"));
  EXPECT_THAT(remarks_of(context, "c"),
              ElementsAre(ContainsRegex("applied: copy_engine: copies over 4 ranks of 'tp', 6144 "
                                        "bytes: about [0-9.]+ us on A100, 0.0 us of it hidden, "
                                        "[0-9.]+ us until the result is there "
                                        R"(\(one_shot: [0-9.]+ us\); they run beside the )"
                                        "kernels until the wait")));
  // Unless they are asked for, or hidden, it is one kernel, which says what they would take.
  PassContext one_shot;
  static_cast<void>(lowered(kX, node("p", "neg", R"("x")") + "," + gather, R"("s")", one_shot));
  EXPECT_THAT(remarks_of(one_shot, "c"),
              ElementsAre(ContainsRegex(R"(applied: one_shot .* \(copy_engine: [0-9.]+ us, )"
                                        R"([0-9.]+ until the result is there\);)")));
  for (const char* op : {"sum", "avg"}) {
    const Graph before = graph_of(input("x", R"("4*T", 6)"),
                                  node("c", "reduce_scatter_tensor", R"("x")",
                                       fmt::format(R"("group": "tp", "reduce_op": "{}")", op)) +
                                      "," + kWait,
                                  R"("s")");
    const Graph graph = lower_collectives(before, context);
    verify(graph);
    expect_close_values(before, graph);
    EXPECT_EQ(lines(graph)[0], "c_operand@tp = copy(x)");
    EXPECT_EQ(lines(graph)[1], "c_copy_chunk_from_peer = copy_chunk_from_peer(c_operand)");
  }
}

// Copies are used if enough compute overlaps them, so that less is exposed than a kernel takes.
TEST(LowerCollectives, WhatOthersHideIsCopied) {
  const auto way = [](const std::string& computed_from, bool hide) {
    PassContext context;
    context.config.options["hide-by-copies"] = write_value(hide);
    std::string compute = node("m", "relu", '"' + computed_from + '"');
    compute.replace(compute.size() - 1, 1, R"(, "hints": {"runtime_ns": 100000}})");
    static_cast<void>(
        lowered(kX,
                node("p", "neg", R"("x")") + "," +
                    node("c", "all_gather_into_tensor", R"("p")", R"("group": "tp")") + "," +
                    kWait + "," + compute,
                R"("s", "m")", context));
    return remarks_of(context, "c")[0];
  };
  EXPECT_THAT(way("x", true), HasSubstr("applied: copy_engine: copies over 4 ranks of 'tp'"));
  EXPECT_THAT(way("x", false), HasSubstr("applied: one_shot"));
  EXPECT_THAT(way("s", true), HasSubstr("applied: one_shot"));
}

// Copies lose the epilogue that the kernel computes on the way; and what uses the same links, or
// needs the result, hides nothing.
TEST(LowerCollectives, WhatOthersHideTooLittleOfIsOneKernel) {
  const auto way = [](std::int64_t rows, const std::string& behind, const std::string& outputs) {
    PassContext context;
    context.target = Target::parse("H100");
    const Graph before =
        graph_of(input("x", fmt::format("{}, 4096", rows)) + "," + input("v", "256, 4096") + "," +
                     input("w", "4096, 4096"),
                 node("p", "relu", R"("x")") + "," +
                     node("c", "all_gather_into_tensor", R"("p")", R"("group": "tp")") + "," +
                     kWait + "," + behind,
                 outputs);
    static_cast<void>(lower_collectives(before, context));
    return remarks_of(context, "c")[0];
  };
  std::string product = node("m", "mm", R"("v", "w")");
  product.replace(product.size() - 1, 1, R"(, "hints": {"runtime_ns": 25000}})");
  EXPECT_THAT(way(1024, product, R"("s", "m")"), HasSubstr("applied: copy_engine"));
  EXPECT_THAT(way(1024, product + "," + node("r", "relu", R"("s")"), R"("r", "m")"),
              HasSubstr("applied: one_shot"));
  EXPECT_THAT(way(16384, node("m", "mm", R"("s", "w")"), R"("m")"), HasSubstr("applied: one_shot"));
  EXPECT_THAT(
      way(1024, all_reduce("f", "v") + "," + node("g", "wait_tensor", R"("f")"), R"("s", "g")"),
      HasSubstr("applied: one_shot"));
}

// The result of copies is an ordinary value.
TEST(LowerCollectives, CopiesOfWhatWasCopied) {
  PassContext context;
  context.config.by_copies = true;
  const Graph graph =
      lowered(kX,
              node("c", "all_gather_into_tensor", R"("x")", R"("group": "tp")") + "," + kWait +
                  "," + node("d", "all_gather_into_tensor", R"("s")", R"("group": "tp")") + "," +
                  node("e", "wait_tensor", R"("d")") + "," + all_reduce("f", "s") + "," +
                  node("g", "wait_tensor", R"("f")"),
              R"("e", "g")", context);
  EXPECT_THAT(lines(graph), ::testing::Contains("d_copy_from_peer = copy_from_peer("
                                                "s_join_by_rank)"));
}

TEST(LowerCollectives, WhatCopiesCannotDoIsOneKernel) {
  PassContext context;
  context.config.by_copies = true;
  const auto why = [&](const std::string& shape, const std::string& op, const std::string& attrs) {
    const Graph graph = lowered(input("x", shape),
                                node("c", op, R"("x")", R"("group": "tp")" + attrs) + "," + kWait,
                                R"("s")", context);
    EXPECT_EQ(lines(graph)[1].substr(0, 4), "c = ");
    return remarks_of(context, "c")[0];
  };
  EXPECT_EQ(
      why(R"("T", 8)", "all_gather_into_tensor", R"(, "dim": 1)"),
      "missed: not by copies: along dim 1 the chunk of a rank is no piece of memory; expected "
      "dim 0");
  EXPECT_EQ(why(R"("4*T", 8)", "reduce_scatter_tensor", R"(, "reduce_op": "max")"),
            "missed: not by copies: found max; expected sum or avg");
}

// The operand lies anywhere: it is a graph input, an output, or never in memory.
TEST(LowerCollectives, PacketsNeedNoCommBuffer) {
  PassContext context;
  EXPECT_THAT(lines(lowered(kX, all_reduce("c", "x") + "," + kWait, R"("s")", context)),
              ElementsAre("c = all_reduce(x)", "-> c"));
  EXPECT_THAT(
      lines(lowered(kX, node("p", "neg", R"("x")") + "," + all_reduce("c", "p") + "," + kWait,
                    R"("s", "p")", context)),
      ElementsAre("p = neg(x)", "c = all_reduce(p)", "-> c, p"));
  EXPECT_THAT(remarks_of(context, "c"), ElementsAre(HasSubstr("applied: ll over 4 ranks")));
  // A packet has no room for 8 bytes.
  const Graph wide = graph_of(R"({"name": "x", "dtype": "i64", "shape": ["T", 6]})",
                              all_reduce("c", "x") + "," + kWait, R"("s")");
  PassContext of_wide;
  of_wide.config.all_reduce = "ll";
  EXPECT_THAT(lines(lower_collectives(wide, of_wide)),
              ElementsAre("c_operand@tp = copy(x)", "c = all_reduce(c_operand)", "-> c"));
}

// The sum takes the place of the operand.
TEST(LowerCollectives, AnOperandThatIsReadElsewhereStaysWhole) {
  const std::string p = node("p", "neg", R"("x")") + ",";
  for (const std::string& reader :
       {node("y", "relu", R"("p")"),
        node("v", "view", R"("p")", R"("shape": [1024, "8*T"])") + "," +
            node("y", "relu", R"("v")"),
        all_reduce("d", "p") + "," + node("y", "wait_tensor", R"("d")")}) {
    PassContext context;
    const Graph graph =
        lowered(input("x", R"("8*T", 1024)"), p + all_reduce("c", "p") + "," + kWait + "," + reader,
                R"("s", "y")", context);
    EXPECT_EQ(*graph.node(graph.value(graph.outputs()[0]).producer).attr<std::string>("algorithm"),
              "one_shot");
    EXPECT_THAT(remarks_of(context, "c"),
                ElementsAre(HasSubstr("but its operand is read elsewhere, too")));
  }
}

// A2-01 [U], A2-08: graph inputs are refused explicitly and never mutated.
TEST(LowerCollectives, GraphInputIsCopied) {
  PassContext context = in_one_shot();
  const Graph graph = lowered(kX, all_reduce("c", "x") + "," + kWait, R"("s")", context);
  EXPECT_THAT(lines(graph),
              ElementsAre("c_operand@tp = copy(x)", "c = all_reduce(c_operand)", "-> c"));
  EXPECT_THAT(remarks_of(context, "c"),
              ElementsAre(HasSubstr("it is a graph input"), HasSubstr("applied: one_shot")));
}

TEST(LowerCollectives, RegionMarkersGo) {
  PassContext context = in_one_shot();
  const std::string begin = node("m", "mark_region_begin", R"("x")", R"("id": 0)");
  const std::string end = node("y", "mark_region_end", R"("s")", R"("id": 0)");
  const Graph graph =
      lowered(kX, begin + "," + all_reduce("c", "m") + "," + kWait + "," + end, R"("y")", context);
  // Behind the marker there is still a graph input.
  EXPECT_THAT(lines(graph),
              ElementsAre("c_operand@tp = copy(x)", "c = all_reduce(c_operand)", "-> c"));
}

// A2-03: views are looked through.
TEST(LowerCollectives, ViewOfAComputedValueIsRealisedAtItsBase) {
  PassContext context = in_one_shot();
  const Graph graph = lowered(kX,
                              node("p", "neg", R"("x")") + "," +
                                  node("v", "view", R"("p")", R"("shape": ["6*T"])") + "," +
                                  all_reduce("c", "v") + "," + kWait,
                              R"("s")", context);
  EXPECT_THAT(lines(graph),
              ElementsAre("p@tp = neg(x)", "v@tp = view(p)", "c = all_reduce(v)", "-> c"));
}

TEST(LowerCollectives, ViewOfAGraphInputIsCopied) {
  PassContext context = in_one_shot();
  const Graph graph = lowered(
      kX,
      node("v", "view", R"("x")", R"("shape": ["6*T"])") + "," + all_reduce("c", "v") + "," + kWait,
      R"("s")", context);
  EXPECT_THAT(lines(graph), ElementsAre("v = view(x)", "c_operand@tp = copy(v)",
                                        "c = all_reduce(c_operand)", "-> c"));
}

TEST(LowerCollectives, GraphOutputIsCopied) {
  PassContext context = in_one_shot();
  const Graph graph =
      lowered(kX, node("p", "neg", R"("x")") + "," + all_reduce("c", "p") + "," + kWait,
              R"("s", "p")", context);
  EXPECT_THAT(lines(graph), ElementsAre("p = neg(x)", "c_operand@tp = copy(p)",
                                        "c = all_reduce(c_operand)", "-> c, p"));
  EXPECT_THAT(remarks_of(context, "c").front(), HasSubstr("it is a graph output"));
}

TEST(LowerCollectives, ResultOfACollectiveMayBeTheNextOperand) {
  PassContext context = in_one_shot();
  const Graph graph =
      lowered(kX,
              node("p", "neg", R"("x")") + "," + all_reduce("c", "p") + "," + kWait + "," +
                  all_reduce("d", "s") + "," + node("t", "wait_tensor", R"("d")"),
              R"("t")", context);
  EXPECT_THAT(lines(graph),
              ElementsAre("p@tp = neg(x)", "c@tp = all_reduce(p)", "d = all_reduce(c)", "-> d"));
}

TEST(LowerCollectives, CollectivesOfOneGroupShareTheirOperand) {
  PassContext context = in_one_shot();
  const Graph graph =
      lowered(kX,
              node("p", "neg", R"("x")") + "," + all_reduce("c", "p") + "," + all_reduce("d", "p") +
                  "," + kWait + "," + node("t", "wait_tensor", R"("d")"),
              R"("s", "t")", context);
  EXPECT_THAT(lines(graph),
              ElementsAre("p@tp = neg(x)", "c = all_reduce(p)", "d = all_reduce(p)", "-> c, d"));
}

// A2-01 [D]: the groups are compared.
TEST(LowerCollectives, CommBufferOfAnotherGroupIsCopied) {
  Graph graph("two_groups");
  graph.add_group("tp", {2, true, {}});
  graph.add_group("ep", {2, true, {}});
  const ValueId x = graph.add_input({"x", {DType::kF32, {4}}, InputKind::kActivation, true});
  const ValueId p = graph.node(graph.add_node("p", "neg", {x})).outputs[0];
  for (const char* group : {"tp", "ep"}) {
    const std::string name = std::string("c_") + group;
    const NodeId c =
        graph.add_node(name, "all_reduce", {p},
                       {{"reduce_op", std::string("sum")}, {"group", std::string(group)}});
    const NodeId s =
        graph.add_node(std::string("s_") + group, "wait_tensor", graph.node(c).outputs);
    graph.add_output(graph.node(s).outputs[0]);
  }
  PassContext context = in_one_shot();
  const Graph result = lower_collectives(graph, context);
  EXPECT_THAT(lines(result),
              ElementsAre("p@tp = neg(x)", "c_tp = all_reduce(p)", "c_ep_operand@ep = copy(p)",
                          "c_ep = all_reduce(c_ep_operand)", "-> c_tp, c_ep"));
  EXPECT_THAT(remarks_of(context, "c_ep").front(),
              HasSubstr("it is a communication buffer of group 'tp' already"));
}

TEST(LowerCollectives, FreshNamesAvoidTheUsers) {
  PassContext context = in_one_shot();
  const Graph graph =
      lowered(kX, all_reduce("c", "x") + "," + kWait + "," + node("c_operand", "neg", R"("s")"),
              R"("c_operand")", context);
  EXPECT_THAT(lines(graph), ElementsAre("c_operand1@tp = copy(x)", "c = all_reduce(c_operand1)",
                                        "c_operand = neg(c)", "-> c_operand"));
}

TEST(LowerCollectives, AppliesOnce) {
  PassContext context = in_one_shot();
  const Graph once = lowered(kX, all_reduce("c", "x") + "," + kWait, R"("s")", context);
  context.remarks.clear();
  EXPECT_EQ(lines(lower_collectives(once, context)), lines(once));
  EXPECT_THAT(context.remarks, IsEmpty());
}

// A2-11, A2-12, A2-15: every collective runs on its operand in place and gives a new value.
TEST(LowerCollectives, EveryOutOfPlaceFormIsOneShot) {
  const std::pair<const char*, const char*> forms[] = {
      {"all_gather_into_tensor", R"("group": "tp")"},
      {"all_gather_into_tensor", R"("group": "tp", "dim": 1)"},
      {"reduce_scatter_tensor", R"("group": "tp", "reduce_op": "avg", "dim": 1)"},
      {"all_to_all_single", R"("group": "tp")"},
      {"broadcast", R"("group": "tp", "src": 1)"},
      {"all_reduce", R"("group": "tp", "reduce_op": "product")"}};
  for (const auto& [op, attrs] : forms) {
    SCOPED_TRACE(op);
    PassContext context = in_one_shot();
    const Graph graph = lowered(input("x", R"("4*T", 8)"),
                                node("p", "neg", R"("x")") + "," + node("c", op, R"("p")", attrs) +
                                    "," + kWait + "," + node("y", "relu", R"("s")"),
                                R"("y")", context);
    EXPECT_THAT(lines(graph), ElementsAre("p@tp = neg(x)", std::string("c = ") + op + "(p)",
                                          "y = relu(c)", "-> y"));
    EXPECT_THAT(remarks_of(context, "c"),
                ElementsAre(HasSubstr("applied: one_shot over 4 ranks of 'tp'")));
  }
}

// A2-12: shard_dim_alltoall contains its own wait.
TEST(LowerCollectives, ShardDimAllToAllNeedsNoWait) {
  PassContext context = in_one_shot();
  const Graph graph = lowered(input("x", R"("T", 8)"),
                              node("p", "neg", R"("x")") + "," +
                                  node("c", "shard_dim_alltoall", R"("p")",
                                       R"("group": "tp", "gather_dim": 0, "shard_dim": 1)"),
                              R"("c")", context);
  EXPECT_THAT(lines(graph), ElementsAre("p@tp = neg(x)", "c = shard_dim_alltoall(p)", "-> c"));
  EXPECT_EQ(*graph.nodes()[1].attr<std::string>("algorithm"), "one_shot");
}

// A2-10, A2-13
TEST(LowerCollectives, ACoalescedFormIsOneForEachOperand) {
  PassContext context = in_one_shot();
  const Graph graph = lowered(
      kX,
      node("p", "neg", R"("x")") + "," +
          node("c", "all_reduce_coalesced", R"("p", "x")", R"("group": "tp", "reduce_op": "sum")") +
          "," + node("s", "wait_tensor", R"("c:0")") + "," + node("t", "wait_tensor", R"("c:1")"),
      R"("s", "t")", context);
  EXPECT_THAT(lines(graph),
              ElementsAre("p@tp = neg(x)", "c_0 = all_reduce(p)", "c_operand@tp = copy(x)",
                          "c_1 = all_reduce(c_operand)", "-> c_0, c_1"));
}

TEST(LowerCollectives, AWaitForWhatNoCollectiveComputesGoes) {
  PassContext context = in_one_shot();
  const Graph graph = lowered(kX,
                              node("v", "wait_tensor", R"("x")") + "," + all_reduce("c", "v") +
                                  "," + kWait + "," + node("t", "wait_tensor", R"("s")"),
                              R"("t")", context);
  EXPECT_THAT(lines(graph),
              ElementsAre("c_operand@tp = copy(x)", "c = all_reduce(c_operand)", "-> c"));
}

TEST(LowerCollectives, ACoalescedDimCountsFromTheEndOfEachOperand) {
  PassContext context = in_one_shot();
  const Graph graph = lowered(input("x", "4, 8") + "," + input("y", "2, 4, 8"),
                              node("c", "reduce_scatter_tensor_coalesced", R"("x", "y")",
                                   R"("group": "tp", "reduce_op": "sum", "dim": -1)") +
                                  "," + node("s", "wait_tensor", R"("c:0")") + "," +
                                  node("t", "wait_tensor", R"("c:1")"),
                              R"("s", "t")", context);
  for (const auto& [name, dim] : {std::pair("c_0", 1), std::pair("c_1", 2)}) {
    const Node& single = graph.node(graph.value(*graph.find(name)).producer);
    EXPECT_EQ(*single.attr<std::int64_t>("dim"), dim);
  }
}

// A2-09, A2-14: what overwrites its operand was made functional before.
TEST(LowerCollectives, InPlaceFormsAreRefused) {
  const Graph graph = graph_of(
      kX, node("c", "all_reduce_", R"("x")", R"("group": "tp", "reduce_op": "sum")") + "," + kWait,
      R"("s")");
  PassContext context = in_one_shot();
  try {
    lower_collectives(graph, context);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("run functionalize first"));
  }
}

// A2-04, X-16: what was lowered in one graph says nothing about another one with the same names.
TEST(LowerCollectives, WaitsOfAnotherGraphStay) {
  PassContext context = in_one_shot();
  static_cast<void>(lowered(kX, all_reduce("c", "x") + "," + kWait, R"("s")", context));
  const Graph other = graph_of(kX, all_reduce("c", "x") + "," + kWait, R"("s")");
  EXPECT_THAT(lines(canonicalize(other, context)),
              ElementsAre("c = all_reduce(x)", "s = wait_tensor(c)", "-> s"));
}

// A2-05, X-17: a symbolic size counts at its maximum, and is no reason to fail.
TEST(LowerCollectives, SymbolicSizesCountAtTheirMaximum) {
  PassContext context = in_one_shot();
  static_cast<void>(lowered(input("x", R"("T", "T", 6)"),
                            node("p", "neg", R"("x")") + "," + all_reduce("c", "p") + "," + kWait,
                            R"("s")", context));
  EXPECT_THAT(remarks_of(context, "c"), ElementsAre(HasSubstr(", 98304 bytes: ")));
}

TEST(LowerCollectives, RandomGraphsKeepTheirValues) {
  for (int world : {2, 4}) {
    for (std::uint64_t seed = 100; seed < 130; ++seed) {
      SCOPED_TRACE(seed);
      const Graph graph = random_graph(seed, 25, world);
      PassContext context = sm80();
      constexpr const char* kAlgorithms[] = {"", "one_shot", "two_shot", "ll"};
      context.config.all_reduce = kAlgorithms[seed % 4];
      const Graph result = lower_collectives(canonicalize(graph, context), context);
      verify(result);
      expect_same_values(graph, result, seed);
    }
  }
}

}  // namespace
}  // namespace braid::testing
