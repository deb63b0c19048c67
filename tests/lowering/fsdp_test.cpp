#include <gmock/gmock.h>

#include <map>
#include <set>

#include "lowering/analysis/match.h"
#include "lowering/fsdp_testing.h"

namespace braid::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

struct Result {
  Graph before;
  Graph graph;
  PassContext context;

  std::vector<std::string> remarks(std::string_view name) const {
    return remarks_of(context, name);
  }
  void expect_untouched() const { EXPECT_EQ(to_json(graph), to_json(before)); }
};

/// The pass on a graph, after it was seen to keep the values and to change nothing the second time.
Result checked(Graph graph) {
  verify(graph);
  Result result{std::move(graph), {}, sm80()};
  result.graph = fsdp(result.before, result.context);
  verify(result.graph);
  expect_same_values(result.before, result.graph);
  PassContext again = sm80();
  EXPECT_EQ(to_json(fsdp(result.graph, again)), to_json(result.graph));
  for (const Remark& remark : again.remarks) EXPECT_FALSE(remark.applied) << remark.reason.text();
  return result;
}

/// On 2 and on 4 ranks; the result is that of 4. In the nodes, $N stands for 6 elements of each
/// rank.
Result after(const std::string& inputs, const std::vector<std::string>& list,
             const std::vector<std::string>& outputs) {
  Result result;
  for (int world : {2, 4}) {
    std::string text = nodes(list);
    for (std::size_t at = 0; (at = text.find("$N", at)) != std::string::npos;) {
      text.replace(at, 2, std::to_string(6 * world));
    }
    result = checked(graph_of(inputs, text, names(outputs), world));
  }
  return result;
}

const std::string kParams =
    input("p", "2, 3") + "," + input("q", "2, 3") + "," + input("x", "2, 3");
constexpr int kBytes = 24;

std::string full(const std::string& name, const std::string& param = "p") {
  return resize(name, param, kBytes);
}
std::string zero(const std::string& name, const std::string& param = "p") {
  return resize(name, param, 0);
}
std::string fill(const std::string& name, const std::string& param, const std::string& source) {
  return call(name, "fsdp.copy_", {param, source});
}
std::string transposed(const std::string& name, const std::string& operand) {
  return call(name, "transpose", {operand}, R"("dim0": 0, "dim1": 1)");
}

// --- unsharded parameters

// A3-60
TEST(FsdpParams, ReadersReadWhatWasCopied) {
  const Result result = after(kParams,
                              {call("y", "exp", {"x"}), full("f"), fill("k", "p", "y"),
                               call("u", "neg", {"p"}), transposed("t", "k"), zero("z")},
                              {"u"});
  EXPECT_THAT(lines(result.graph),
              ElementsAre("y = exp(x)", "u = neg(y)", "t = transpose(y)", "-> u"));
  EXPECT_THAT(result.remarks("p"), ElementsAre("applied: unsharded parameter gone: its readers "
                                               "read 'y', which was copied into it"));
}

// A3-60, C-53: a layer that is used again; each copy governs its own window.
TEST(FsdpParams, EveryWindowHasItsOwnCopy) {
  const Result result =
      after(kParams,
            {call("y", "exp", {"x"}), full("f1"), fill("k1", "p", "y"), call("u", "neg", {"p"}),
             zero("z1"), call("v", "exp", {"u"}), full("f2"), fill("k2", "p", "v"),
             call("w", "neg", {"p"}), zero("z2")},
            {"u", "w"});
  EXPECT_THAT(lines(result.graph),
              ElementsAre("y = exp(x)", "u = neg(y)", "v = exp(u)", "w = neg(v)", "-> u, w"));
}

// A3-60
TEST(FsdpParams, AWindowMayHoldSeveralCopies) {
  const Result result = after(kParams,
                              {full("f"), fill("k1", "p", "x"), call("u", "neg", {"p"}),
                               fill("k2", "p", "u"), call("v", "exp", {"p"}), zero("z")},
                              {"v"});
  EXPECT_THAT(lines(result.graph), ElementsAre("u = neg(x)", "v = exp(u)", "-> v"));
}

// A3-60: no resizes at all; the window reaches from the copy to the end.
TEST(FsdpParams, AParameterWithoutResizes) {
  const Result result = after(kParams, {fill("k", "p", "x"), call("u", "neg", {"p"})}, {"u"});
  EXPECT_THAT(lines(result.graph), ElementsAre("u = neg(x)", "-> u"));
}

TEST(FsdpParams, MutationsMayBeChainedThroughTheirResults) {
  const Result result = after(kParams,
                              {full("f"), fill("k", "f", "x"), call("u", "neg", {"k"}),
                               zero("z", "k"), full("f2", "z"), zero("z2")},
                              {"u"});
  EXPECT_THAT(lines(result.graph), ElementsAre("u = neg(x)", "-> u"));
}

// A3-60 [D], X-15: lists of operands and views are uses like any other.
TEST(FsdpParams, EveryOperandIsReplaced) {
  const Result result =
      after(kParams,
            {full("fp"), full("fq", "q"), fill("kp", "p", "x"), call("y", "exp", {"x"}),
             fill("kq", "q", "y"), call("both", "cat", {"p", "q"}), transposed("t", "p"),
             call("tt", "mm", {"t", "q"}), zero("zp"), zero("zq", "q")},
            {"both", "tt"});
  EXPECT_THAT(lines(result.graph), ElementsAre("y = exp(x)", "both = cat(x, y)", "t = transpose(x)",
                                               "tt = mm(t, y)", "-> both, tt"));
}

/// The graph is left as it is, and `param` has one remark with the reason.
void expect_stays(const std::vector<std::string>& list, const std::vector<std::string>& outputs,
                  const std::string& reason, const std::string& param = "p") {
  const Result result = after(kParams, list, outputs);
  result.expect_untouched();
  EXPECT_THAT(result.remarks(param), ElementsAre("missed: unsharded parameter stays: " + reason));
}

// A3-60: #full == #zero.
TEST(FsdpParams, UnequalResizesStay) {
  expect_stays({full("f"), fill("k", "p", "x"), call("u", "neg", {"p"})}, {"u"},
               "resize_storage_bytes_ 'f' resizes it to full and nothing to 0 afterwards");
  expect_stays({fill("k", "p", "x"), zero("z"), call("u", "neg", {"x"})}, {"u"},
               "fsdp.copy_ 'k' writes it while it has no memory");
}

// A3-60: full precedes zero.
TEST(FsdpParams, ZeroBeforeFullStays) {
  expect_stays({zero("z"), full("f"), call("u", "neg", {"x"})}, {"u"},
               "resize_storage_bytes_ 'z' resizes it to 0 before it is resized to full");
}

// A3-60 [D], X-15: they take turns; full, full, zero, zero does not.
TEST(FsdpParams, ResizesThatDoNotAlternateStay) {
  expect_stays({full("f1"), full("f2"), fill("k", "p", "x"), call("u", "neg", {"p"}), zero("z1"),
                zero("z2")},
               {"u"},
               "resize_storage_bytes_ 'f2' resizes it to full, as resize_storage_bytes_ 'f1' did, "
               "without a resize to 0 between the two");
}

// A3-60 [D], X-15: uses before the first copy, outside windows, and as an output are examined.
TEST(FsdpParams, UsesOutsideItsWindowsStay) {
  const std::vector<std::string> window{full("f"), fill("k", "p", "x"), call("u", "neg", {"p"}),
                                        zero("z")};
  std::vector<std::string> list{call("early", "exp", {"p"})};
  list.insert(list.end(), window.begin(), window.end());
  expect_stays(list, {"u", "early"}, "exp 'early' reads it while it has no memory");
  list = window;
  list.push_back(call("late", "exp", {"p"}));
  expect_stays(list, {"u", "late"}, "exp 'late' reads it while it has no memory");
  expect_stays({full("f"), call("stale", "exp", {"p"}), fill("k", "p", "x"), zero("z")}, {"stale"},
               "exp 'stale' reads it before an fsdp.copy_ has filled it");
  expect_stays(window, {"u", "p"}, "'p' is a graph output");
  expect_stays({call("early", "exp", {"p"}), fill("k", "p", "x")}, {"early"},
               "exp 'early' reads it before an fsdp.copy_ has filled it");
}

// A3-60: no other mutation of the parameter or an alias; [D], X-15: never an assertion.
TEST(FsdpParams, OtherMutationsStay) {
  expect_stays({full("f"), fill("k", "p", "x"), call("m", "copy_", {"p", "q"}),
                call("u", "neg", {"p"}), zero("z")},
               {"u"}, "copy_ 'm' overwrites it");
  expect_stays({full("f"), fill("k", "p", "x"), transposed("t", "p"),
                call("c", "all_reduce_", {"t"}, R"("reduce_op": "sum", "group": "tp")"),
                call("w", "wait_tensor", {"c"}), call("u", "neg", {"p"}), zero("z")},
               {"u"}, "all_reduce_ 'c' overwrites it");
  expect_stays({full("f"), fill("k1", "p", "x"), transposed("t", "p"), transposed("y", "x"),
                fill("k", "t", "y"), call("u", "neg", {"p"}), zero("z")},
               {"u"}, "fsdp.copy_ 'k' acts on 't', a view of it");
}

// The value that a window's readers would read instead must still be there.
TEST(FsdpParams, OverwrittenSourcesStay) {
  const std::vector<std::string> start{call("y", "exp", {"x"}), full("f"), fill("k", "p", "y")};
  std::vector<std::string> list = start;
  list.insert(list.end(), {call("m", "copy_", {"y", "q"}), call("u", "neg", {"p"}), zero("z")});
  expect_stays(list, {"u"},
               "'y', which was copied into it, is overwritten by copy_ 'm' before neg 'u' is done "
               "with it");
  list = start;
  const std::string reduce = call("c", "all_reduce", {"p"}, R"("reduce_op": "sum", "group": "tp")");
  list.insert(list.end(),
              {reduce, call("m", "copy_", {"y", "q"}), call("w", "wait_tensor", {"c"}), zero("z")});
  expect_stays(list, {"w"},
               "'y', which was copied into it, is overwritten by copy_ 'm' before wait_tensor 'w' "
               "is done with it");
}

TEST(FsdpParams, OneThatIsFilledFromAnotherStays) {
  const std::vector<std::string> list{
      full("fq", "q"), fill("kq", "q", "x"),    full("fp"), fill("kp", "p", "q"),
      zero("zq", "q"), call("u", "neg", {"p"}), zero("zp")};
  for (const char* param : {"p", "q"}) {
    expect_stays(list, {"u"}, "fsdp.copy_ 'kp' copies one unsharded parameter into another", param);
  }
}

// A parameter that stays does not keep others.
TEST(FsdpParams, EachParameterIsJudgedByItself) {
  const Result result = after(kParams,
                              {full("fp"), full("fq", "q"), fill("kp", "p", "x"),
                               fill("kq", "q", "x"), call("u", "mul", {"p", "q"}), zero("zq", "q")},
                              {"u"});
  EXPECT_THAT(lines(result.graph), ElementsAre("fp = resize_storage_bytes_(p)",
                                               "kp = fsdp.copy_(p, x)", "u = mul(p, x)", "-> u"));
  EXPECT_THAT(result.remarks("p"), ElementsAre(HasSubstr("missed")));
  EXPECT_THAT(result.remarks("q"), ElementsAre(HasSubstr("applied")));
}

// A3-60 [D], X-15: a resize of something else is skipped with a remark.
TEST(FsdpParams, WhatIsNoGraphInputStays) {
  const Result result =
      after(kParams,
            {call("y", "exp", {"x"}), full("f", "y"), fill("k", "y", "q"), call("u", "neg", {"y"})},
            {"u"});
  result.expect_untouched();
  EXPECT_THAT(result.remarks("f"), ElementsAre("missed: resize_storage_bytes_ acts on 'y', which "
                                               "is no graph input"));
  EXPECT_THAT(result.remarks("k"), ElementsAre(HasSubstr("which is no graph input")));
}

// --- all-gathers in place

const std::string kShards = input("a", "2, 2") + "," + input("b", "2") + "," + input("x", "6");
const std::string kBuffer = call("buf", "full", {}, R"("shape": [$N], "value": 0, "dtype": "f32")");
const std::string kGroup = R"("group": "tp")";
const std::string kCopyIn = call("in", "fsdp.all_gather_copy_in", {"a", "b", "buf"}, kGroup);

std::string item(const std::string& name, const std::string& operand, int index) {
  return call(name, "getitem", {operand}, R"("index": )" + std::to_string(index));
}
std::string gather(const std::string& name, const std::string& operand) {
  return call(name, "all_gather_into_tensor", {operand}, kGroup);
}
std::string wait(const std::string& name, const std::string& operand) {
  return call(name, "wait_tensor", {operand});
}

// A3-61
TEST(FsdpReinplace, TheGatherWritesWhereItsOperandLies) {
  const Result result =
      after(kShards, {kBuffer, kCopyIn, gather("g", "in:0"), wait("w", "g")}, {"w"});
  EXPECT_THAT(
      lines(result.graph),
      ElementsAre("buf = full()", "in:0, in:1 = fsdp.all_gather_copy_in(a, b, buf)",
                  "g = all_gather_into_tensor_out(in:0, in:1)", "w = wait_tensor(g)", "-> w"));
  EXPECT_THAT(result.remarks("g"),
              ElementsAre("applied: in place: it writes 'in:1', where its operand lies"));
}

// A3-61: getitem nodes are looked through; those of result 1 that nobody reads go.
TEST(FsdpReinplace, UnreadGetitemsGo) {
  const Result result = after(kShards,
                              {kBuffer, kCopyIn, item("i0", "in", 0), gather("g", "i0"),
                               item("i1", "in", 1), wait("w", "g")},
                              {"w"});
  EXPECT_THAT(lines(result.graph),
              ElementsAre("buf = full()", "in:0, in:1 = fsdp.all_gather_copy_in(a, b, buf)",
                          "i0 = getitem(in:0)", "g = all_gather_into_tensor_out(i0, in:1)",
                          "w = wait_tensor(g)", "-> w"));
}

// A3-61 [D], X-15: a used result 1 is used again, not erased.
TEST(FsdpReinplace, AUsedBufferIsKept) {
  const Result result = after(kShards,
                              {kBuffer, kCopyIn, item("i0", "in", 0), item("i1", "in", 1),
                               call("u", "neg", {"i1"}), gather("g", "i0"), wait("w", "g")},
                              {"w", "u"});
  EXPECT_THAT(
      lines(result.graph),
      ElementsAre("buf = full()", "in:0, in:1 = fsdp.all_gather_copy_in(a, b, buf)",
                  "i0 = getitem(in:0)", "i1 = getitem(in:1)", "u = neg(i1)",
                  "g = all_gather_into_tensor_out(i0, in:1)", "w = wait_tensor(g)", "-> w, u"));
}

void expect_not_in_place(const std::string& inputs, const std::vector<std::string>& list,
                         const std::vector<std::string>& outputs, const std::string& reason) {
  const Result result = after(inputs, list, outputs);
  result.expect_untouched();
  EXPECT_THAT(result.remarks("g"), ElementsAre("missed: not in place: " + reason));
}

// A3-61 [D], X-15: a use of the buffer that the gather would change is not broken.
TEST(FsdpReinplace, ABufferThatIsReadLaterStays) {
  expect_not_in_place(
      kShards, {kBuffer, kCopyIn, gather("g", "in:0"), wait("w", "g"), call("u", "neg", {"in:1"})},
      {"w", "u"}, "'u' uses the memory that it would write, after it");
  expect_not_in_place(kShards, {kBuffer, kCopyIn, gather("g", "in:0"), wait("w", "g")},
                      {"w", "in:1"},
                      "'in:1' is a graph output, and in the memory that it would write");
  // A collective reads its operand until its wait.
  expect_not_in_place(kShards,
                      {kBuffer, kCopyIn, all_reduce("c", "in:1"), gather("g", "in:0"),
                       wait("w", "g"), wait("v", "c")},
                      {"w", "v"}, "'v' uses the memory that it would write, after it");
}

// A3-61: only result 0, with one reader.
TEST(FsdpReinplace, OnlyAPartOfItsOwnIsGathered) {
  expect_not_in_place(
      kShards, {kBuffer, kCopyIn, call("u", "neg", {"in:0"}), gather("g", "in:0"), wait("w", "g")},
      {"w", "u"}, "'in:0' has 2 users; expected one");
  expect_not_in_place(kShards, {kBuffer, kCopyIn, gather("g", "in:1"), wait("w", "g")}, {"w"},
                      "'in:1' is result 1 of fsdp.all_gather_copy_in; expected result 0");
}

TEST(FsdpReinplace, AnotherGroupStays) {
  for (int world : {2, 4}) {
    Graph graph("groups");
    graph.add_group("tp", {world, true, {}});
    graph.add_group("dp", {world, true, {}});
    const ValueId a = graph.add_input({"a", {DType::kF32, {3}}, InputKind::kActivation, true});
    const ValueId buffer =
        graph.add_input({"buffer", {DType::kF32, {3 * world}}, InputKind::kActivation, true});
    const NodeId in = graph.add_node("in", "fsdp.all_gather_copy_in", {a, buffer},
                                     {{"group", std::string("tp")}});
    const NodeId g = graph.add_node("g", "all_gather_into_tensor", {graph.node(in).outputs[0]},
                                    {{"group", std::string("dp")}});
    graph.add_output(
        graph.node(graph.add_node("w", "wait_tensor", graph.node(g).outputs)).outputs[0]);
    const Result result = checked(graph);
    result.expect_untouched();
    EXPECT_THAT(result.remarks("g"), ElementsAre(HasSubstr("over group 'dp', and 'in' copies in")));
  }
}

// C-52: gathers without a copy-in, as of SimpleFSDP, are not touched.
TEST(FsdpReinplace, PlainGathersAreNoCandidates) {
  const Result result =
      after(kParams, {gather("g", "x"), wait("w", "g"), fill("k", "p", "x")}, {"w"});
  EXPECT_THAT(lines(result.graph),
              ElementsAre("g = all_gather_into_tensor(x)", "w = wait_tensor(g)", "-> w"));
  EXPECT_THAT(result.remarks("g"), IsEmpty());
}

// --- order

/// The launch of gather `i` as nodes: its cast, buffer, copy-in and gather.
std::vector<std::string> launch(const std::string& i, const std::string& shard = "x") {
  return {call("cast" + i, "to", {shard}, R"("dtype": "bf16")"),
          call("buf" + i, "full", {}, R"("shape": [$N], "value": 0, "dtype": "bf16")"),
          call("in" + i, "fsdp.all_gather_copy_in", {"cast" + i, "buf" + i}, kGroup),
          call("g" + i, "all_gather_into_tensor_out", {"in" + i + ":0", "in" + i + ":1"}, kGroup)};
}
std::vector<std::string> finish(const std::string& i) {
  return {
      wait("w" + i, "g" + i), call("v" + i, "view", {"w" + i}, R"("shape": [-1, 6])"),
      call("s" + i, "fsdp.split_with_sizes_copy", {"v" + i}, R"("split_sizes": [2, 4], "dim": 1)"),
      call("u" + i, "neg", {"s" + i + ":1"})};
}
std::vector<std::string> joined(const std::vector<std::vector<std::string>>& lists) {
  std::vector<std::string> result;
  for (const auto& list : lists) result.insert(result.end(), list.begin(), list.end());
  return result;
}

// A3-63: gathers take turns, and stay in place where they do.
TEST(FsdpOrder, GathersTakeTurns) {
  const Result result =
      after(kShards, joined({launch("1"), launch("2"), finish("1"), finish("2")}), {"u1", "u2"});
  EXPECT_THAT(node_names(result.graph),
              ElementsAre("cast1", "buf1", "in1", "g1", "w1", "v1", "s1", "cast2", "buf2", "in2",
                          "g2", "u1", "w2", "v2", "s2", "u2"));
  EXPECT_THAT(result.remarks("in2"), ElementsAre("applied: kept together with 'g2' and 's2', after "
                                                 "the gather before it"));
  EXPECT_THAT(result.remarks("in1"), IsEmpty());
}

// A3-63 [D]: only the copy-in chain; what is computed upstream stays where it is.
TEST(FsdpOrder, UnrelatedNodesLeaveTheGroups) {
  std::vector<std::string> list{call("y", "exp", {"x"})};
  for (const std::string& entry : launch("1", "y")) {
    list.push_back(entry);
    const std::string n = std::to_string(list.size());
    list.push_back(call("other" + n, "neg", {"x"}));
  }
  const std::vector<std::string> rest = finish("1");
  list.insert(list.end(), {rest[0], call("last", "exp", {"x"}), rest[1], rest[2], rest[3]});
  const Result result = after(kShards, list, {"u1"});
  EXPECT_THAT(node_names(result.graph),
              ElementsAre("y", "cast1", "buf1", "in1", "g1", "other2", "other4", "other6", "other8",
                          "w1", "v1", "s1", "last", "u1"));
}

// A3-63 [D]: a group does not come before what one of its later nodes needs.
TEST(FsdpOrder, GroupsWaitForAllTheirOperands) {
  const Result result =
      after(kShards,
            joined({{call("cast", "to", {"x"}, R"("dtype": "bf16")"), call("other", "exp", {"x"}),
                     call("cast2", "to", {"other"}, R"("dtype": "bf16")"),
                     call("buf", "full", {}, R"("shape": [$N], "value": 0, "dtype": "bf16")"),
                     call("half", "slice", {"cast"}, R"("end": 3)"),
                     call("half2", "slice", {"cast2"}, R"("end": 3)"),
                     call("in1", "fsdp.all_gather_copy_in", {"half", "half2", "buf"}, kGroup),
                     call("g1", "all_gather_into_tensor_out", {"in1:0", "in1:1"}, kGroup)},
                    finish("1")}),
            {"u1"});
  EXPECT_THAT(node_names(result.graph), ElementsAre("other", "cast", "cast2", "buf", "half",
                                                    "half2", "in1", "g1", "w1", "v1", "s1", "u1"));
}

// A3-63 [D]: what two blocks could claim belongs to neither.
TEST(FsdpOrder, ASharedCastBelongsToNobody) {
  std::vector<std::string> second = launch("2");
  second.erase(second.begin());
  second[1] = call("in2", "fsdp.all_gather_copy_in", {"cast1", "buf2"}, kGroup);
  std::vector<std::string> first = launch("1");
  first.insert(first.begin() + 1, call("other", "neg", {"x"}));
  const Result result =
      after(kShards, joined({first, second, finish("1"), finish("2")}), {"u1", "u2"});
  EXPECT_THAT(node_names(result.graph),
              ElementsAre("cast1", "other", "buf1", "in1", "g1", "w1", "v1", "s1", "buf2", "in2",
                          "g2", "u1", "w2", "v2", "s2", "u2"));
}

// A3-63: cut before the second copy out; readers come after.
TEST(FsdpOrder, TheSecondCopyOutIsNotSwallowed) {
  std::vector<std::string> out = finish("1");
  const std::string again =
      call("again", "fsdp.split_with_sizes_copy", {"v1"}, R"("split_sizes": [3, 3], "dim": 1)");
  const Result result =
      after(kShards, joined({launch("1"), launch("2"), out, {again}, finish("2")}),
            {"u1", "again:0", "u2"});
  EXPECT_THAT(node_names(result.graph),
              ElementsAre("cast1", "buf1", "in1", "g1", "w1", "v1", "s1", "cast2", "buf2", "in2",
                          "g2", "u1", "again", "w2", "v2", "s2", "u2"));
}

// A3-63: scatters take turns of their own; [D]: their readers are not part of it.
TEST(FsdpOrder, ScattersTakeTurns) {
  const auto scatter = [](const std::string& i) {
    return std::vector<std::string>{
        call("cc" + i, "fsdp.chunk_cat", {"x", "x"}, R"("num_chunks": 2)"),
        call("flat" + i, "view", {"cc" + i}, R"("shape": [12])"),
        call("rs" + i, "reduce_scatter_tensor", {"flat" + i},
             R"("group": "tp", "reduce_op": "sum")")};
  };
  const auto use = [](const std::string& i) {
    return std::vector<std::string>{wait("d" + i, "rs" + i), call("step" + i, "neg", {"d" + i})};
  };
  const Result result = after(kShards,
                              joined({launch("1"), scatter("1"), launch("2"), scatter("2"),
                                      use("1"), use("2"), finish("1"), finish("2")}),
                              {"step1", "step2", "u1", "u2"});
  EXPECT_THAT(node_names(result.graph),
              ElementsAre("cast1", "buf1", "in1", "g1", "cc1", "flat1", "rs1", "d1", "step1", "w1",
                          "v1", "s1", "cast2", "buf2", "in2", "g2", "cc2", "flat2", "rs2", "d2",
                          "step2", "u1", "w2", "v2", "s2", "u2"));
  EXPECT_THAT(result.remarks("cc2"),
              ElementsAre("applied: kept together with 'rs2' and 'd2', after "
                          "the scatter before it"));
}

// A3-63, C-53: accesses to memory that is overwritten keep their order.
TEST(FsdpOrder, MutationsDoNotMove) {
  std::vector<std::string> list = joined({launch("1"), launch("2"), finish("1"), finish("2")});
  // The second gather copies in what was in `a` before it is overwritten.
  list.insert(list.begin() + 6, call("m", "copy_", {"x", "z"}));
  list.insert(list.begin() + 7, call("read", "neg", {"x"}));
  const Result result = after(kShards + "," + input("z", "6"), list, {"u1", "u2", "read"});
  EXPECT_THAT(node_names(result.graph),
              ElementsAre("cast1", "buf1", "in1", "g1", "w1", "v1", "s1", "cast2", "buf2", "in2",
                          "g2", "m", "read", "u1", "w2", "v2", "s2", "u2"));
}

// A3-63 [D], X-15: no assertion where it cannot be done.
TEST(FsdpOrder, WhatCannotBeKeptTogetherStays) {
  // A reduction has its turn between the cast and the gather, and overwrites what the cast reads.
  std::vector<std::string> list = joined({launch("1"), finish("1")});
  list.insert(
      list.begin() + 1,
      {call("c", "all_reduce_", {"x"}, R"("reduce_op": "sum", "group": "tp")"), wait("w", "c")});
  Result result = after(kShards, list, {"u1", "w"});
  result.expect_untouched();
  EXPECT_THAT(result.remarks("in1"), ElementsAre("missed: not kept together: some node would have "
                                                 "to run in the middle of a group"));
  list = joined({launch("1"), finish("1")});
  list.insert(list.begin() + 3, call("peek", "neg", {"in1:1"}));
  result = after(kShards, list, {"u1", "peek"});
  result.expect_untouched();
  EXPECT_THAT(result.remarks("in1"),
              ElementsAre("missed: not kept together: 'peek' reads 'in1:1', too"));
  const std::string chunks = call("cc", "fsdp.chunk_cat", {"x"}, R"("num_chunks": 2)");
  result = after(kShards, {chunks, call("u", "neg", {"cc"})}, {"u"});
  result.expect_untouched();
  EXPECT_THAT(result.remarks("cc"), ElementsAre("missed: not kept together: 'u' goes elsewhere "
                                                "than into one reduce_scatter_tensor"));
  result = after(
      kShards,
      {call("cc", "fsdp.chunk_cat", {"x", "x", "x", "x"}, R"("num_chunks": 2)"),
       call("u", "softmax", {"cc"}),
       call("rs", "reduce_scatter_tensor", {"u"}, R"("group": "tp", "reduce_op": "sum", "dim": 1)"),
       wait("w", "rs")},
      {"w"});
  result.expect_untouched();
  EXPECT_THAT(result.remarks("cc"), ElementsAre("missed: not kept together: softmax 'u' reads "
                                                "'cc'; expected a reduce_scatter_tensor"));
}

// The first two rewrites would decide as before.
TEST(FsdpOrder, WhatTheOtherRewritesFoundStaysSo) {
  const auto small = [](const char* name) {
    return std::string(R"({"name": ")") + name +
           R"(", "dtype": "bf16", "shape": [4], "per_rank": true})";
  };
  // 'm' waits for the second gather, which waits for its turn; 'r' could come before it.
  Result result = after(kShards + "," + small("p") + "," + small("y"),
                        joined({{resize("f", "p", 8), fill("k", "p", "y")},
                                launch("1"),
                                launch("2"),
                                finish("2"),
                                {call("t", "sum", {"u2"}, R"("dim": [0])"),
                                 call("m", "copy_", {"y", "t"}), call("r", "neg", {"p"})},
                                finish("1"),
                                {zero("z")}}),
                        {"u1", "u2", "r"});
  EXPECT_THAT(result.remarks("p"), ElementsAre(HasSubstr("overwritten by copy_ 'm' before neg")));
  // 'g' waits for the gathers before it; 'late' could come before it.
  std::vector<std::string> third = launch("3");
  third[3] = gather("g3", "in3:0");
  result = after(kShards,
                 joined({launch("1"),
                         launch("2"),
                         third,
                         {call("late", "neg", {"in3:1"})},
                         finish("1"),
                         finish("2"),
                         finish("3")}),
                 {"u1", "u2", "u3", "late"});
  EXPECT_THAT(result.remarks("g3"), ElementsAre(HasSubstr("'late' uses the memory")));
}

// A3-62: the order is the program's, whatever the nodes are called.
TEST(FsdpOrder, NamesMeanNothing) {
  std::vector<std::string> list = joined({launch("10"), launch("9"), finish("10"), finish("9")});
  const Result result = after(kShards, list, {"u10", "u9"});
  EXPECT_THAT(node_names(result.graph),
              ElementsAre("cast10", "buf10", "in10", "g10", "w10", "v10", "s10", "cast9", "buf9",
                          "in9", "g9", "u10", "w9", "v9", "s9", "u9"));
}

// --- all three

// A3-63 [D], X-15: a graph without FSDP's ops.
TEST(Fsdp, LeavesOtherGraphsAlone) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Graph graph = random_graph(seed, 25, 4);
    PassContext context = sm80();
    EXPECT_EQ(to_json(fsdp(graph, context)), to_json(graph));
    EXPECT_TRUE(context.remarks.empty());
  }
}

// A3-60 to A3-63, C-53: two layers, forward and backward, resharded in between.
TEST(Fsdp, ATrainingStep) {
  for (int world : {1, 2, 4, 8}) {
    SCOPED_TRACE(world);
    const Result result = checked(fsdp_training_step(world));
    std::map<std::string, int> position;
    for (const Node& node : result.graph.nodes()) {
      EXPECT_NE(node.op_name(), "resize_storage_bytes_");
      EXPECT_NE(node.op_name(), "fsdp.copy_");
      EXPECT_NE(node.op_name(), "all_gather_into_tensor");
      position.emplace(node.name, static_cast<int>(position.size()));
    }
    const Uses uses(result.graph);
    for (const char* param : {"w0", "b0", "w1", "b1"}) {
      EXPECT_THAT(uses.of(*result.graph.find(param)), IsEmpty());
      EXPECT_THAT(result.remarks(param),
                  ElementsAre(StartsWith("applied: unsharded parameter gone: its readers read ")));
    }
    const auto together = [&](const std::string& block, const std::vector<const char*>& nodes) {
      for (std::size_t i = 1; i < nodes.size(); ++i) {
        EXPECT_EQ(position.at(block + nodes[i]), position.at(block + nodes[i - 1]) + 1)
            << block << nodes[i];
      }
    };
    std::string before;
    for (const std::string block : {"f0_", "f1_", "b1_", "b0_"}) {
      together(block, {"cast_w", "cast_b", "buffer", "copy_in", "part", "gather"});
      together(block, {"wait", "ranks", "split"});
      if (!before.empty()) {
        EXPECT_LT(position.at(before + "split"), position.at(block + "cast_w"));
      }
      before = block;
    }
    together("b1_", {"chunks", "flat", "float", "scatter"});
    together("b0_", {"chunks", "flat", "float", "scatter"});
    EXPECT_LT(position.at("b1_grads"), position.at("b0_chunks"));
    // Each remark once.
    std::set<std::pair<std::string, std::string>> seen;
    for (const Remark& remark : result.context.remarks) {
      EXPECT_TRUE(remark.applied) << remark.node << ": " << remark.reason.text();
      EXPECT_TRUE(seen.emplace(remark.node, remark.reason.text()).second) << remark.node;
    }
  }
}

// The passes that come next keep the values too, and leave no op of FSDP.
TEST(Fsdp, LowersToPlainOps) {
  const std::vector<std::string> passes{"fsdp", "decompose_fsdp", "functionalize", "canonicalize"};
  for (int world : {1, 2, 4}) {
    const Graph graph = fsdp_training_step(world);
    PassContext context = sm80();
    const Graph result = run_passes(graph, passes, context);
    expect_same_values(graph, result);
    for (const Node& node : result.nodes()) {
      EXPECT_FALSE(node.op_name().starts_with("fsdp.")) << node.name;
    }
    // The decomposition alone leaves the mutations.
    const std::vector<std::string> alone{"decompose_fsdp"};
    expect_same_values(graph, run_passes(graph, alone, context));
  }
}

// C-52: it comes before what takes mutation away.
TEST(Fsdp, RunsFirst) {
  EXPECT_EQ(all_passes()[0], &fsdp);
  EXPECT_EQ(all_passes()[1], &decompose_fsdp);
  EXPECT_TRUE(fsdp.by_default && decompose_fsdp.by_default);
}

}  // namespace
}  // namespace braid::testing
