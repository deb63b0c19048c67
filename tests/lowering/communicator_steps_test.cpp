// Collectives of groups without symmetric memory, from lower_collectives to the steps of a plan.

#include <gmock/gmock.h>

#include "braid/error.h"
#include "lowering/lowering_testing.h"
#include "lowering/plan/collective_step.h"
#include "lowering/plan/lifetimes.h"
#include "lowering/plan/residency.h"

namespace braid::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kWait = node("s", "wait_tensor", R"("c")");

/// Four ranks: "tp" of all and "far", of pairs, without symmetric memory.
Graph mesh(const std::string& inputs, const std::string& nodes, const std::string& outputs) {
  return parse_graph(R"({"braid": 1, "name": "mesh",
    "symbols": {"T": {"min": 1, "max": 64}},
    "groups": {"tp": {"size": 4},
               "far": {"size": 2, "symmetric": false, "ranks": [[0, 2], [1, 3]]}},
    "inputs": [)" + inputs +
                     R"(], "nodes": [)" + nodes + R"(], "outputs": [)" + outputs + "]}");
}

const std::string kX = input("x", R"("T", 6)", R"(, "per_rank": true)");

Graph lowered(const std::string& inputs, const std::string& nodes, const std::string& outputs,
              PassContext& context) {
  const Graph graph = mesh(inputs, nodes, outputs);
  context = sm80();
  Graph result = lower_collectives(graph, context);
  verify(result);
  expect_same_values(graph, result);
  return result;
}

TEST(ByCommunicator, StaysAsynchronousOnItsOperandWhereverThatLies) {
  PassContext context;
  const Graph graph =
      lowered(kX, all_reduce("c", "x", "far") + "," + kWait + "," + node("y", "relu", R"("s")"),
              R"("y")", context);
  EXPECT_THAT(lines(graph),
              ElementsAre("c = all_reduce(x)", "s = wait_tensor(c)", "y = relu(s)", "-> y"));
  EXPECT_EQ(*graph.nodes()[0].attr<std::string>("algorithm"), "nccl");
  EXPECT_THAT(remarks_of(context, "c"),
              ElementsAre(AllOf(HasSubstr("applied: nccl over 2 ranks of 'far', which has no "
                                          "symmetric memory, 1536 bytes: about "),
                                HasSubstr("as a ring; it runs beside the kernels"))));
  PassContext again = sm80();
  EXPECT_EQ(lines(lower_collectives(graph, again)), lines(graph));
}

TEST(ByCommunicator, ChunksAlongOtherDimsAreMoved) {
  PassContext context;
  const auto of = [&](const char* op, const char* attrs) {
    return lines(lowered(input("x", R"(4, "2*T", 6)", R"(, "per_rank": true)"),
                         node("c", op, R"("x")", attrs) + "," + kWait, R"("s")", context));
  };
  EXPECT_THAT(
      of("reduce_scatter_tensor", R"("group": "far", "reduce_op": "sum", "dim": 1)"),
      ElementsAre("c_view = view(x)", "c_permute = permute(c_view)", "c_view1 = view(c_permute)",
                  "c = reduce_scatter_tensor(c_view1)", "s = wait_tensor(c)", "-> s"));
  EXPECT_THAT(
      of("all_gather_into_tensor", R"("group": "far", "dim": -1)"),
      ElementsAre("c = all_gather_into_tensor(x)", "s = wait_tensor(c)", "s_view = view(s)",
                  "s_permute = permute(s_view)", "s_view1 = view(s_permute)", "-> s_view1"));
  EXPECT_THAT(of("all_gather_into_tensor", R"("group": "far")"),
              ElementsAre("c = all_gather_into_tensor(x)", "s = wait_tensor(c)", "-> s"));
  const Graph both = lowered(input("x", R"(4, "2*T", 6)", R"(, "per_rank": true)"),
                             node("c", "shard_dim_alltoall", R"("x")",
                                  R"("group": "far", "gather_dim": 2, "shard_dim": 1)"),
                             R"("c")", context);
  EXPECT_THAT(lines(both), ::testing::Contains("c = all_to_all_single(c_view1)"));
}

TEST(ByCommunicator, CoalescedOnesAreOneForEachOperand) {
  PassContext context;
  const Graph graph = lowered(
      kX + "," + input("z", "4", R"(, "per_rank": true)"),
      node("c", "all_reduce_coalesced", R"("x", "z")", R"("group": "far", "reduce_op": "max")") +
          "," + node("s", "wait_tensor", R"("c:0")") + "," + node("t", "wait_tensor", R"("c:1")"),
      R"("s", "t")", context);
  EXPECT_THAT(lines(graph), ElementsAre("c_0 = all_reduce(x)", "c_1 = all_reduce(z)",
                                        "s = wait_tensor(c_0)", "t = wait_tensor(c_1)", "-> s, t"));
}

/// x -> mm -> all_reduce over "far", beside a softmax of x; then the sum of both, twice. The second
/// softmax stands in the kernel of the first sum.
Program two_layers() {
  std::string nodes;
  std::string last = "x";
  for (const std::string n : {"0", "1"}) {
    nodes += (n == "0" ? "" : ",") + node("p" + n, "mm", '"' + last + R"(", "w")") + "," +
             all_reduce("c" + n, "p" + n, "far") + "," +
             node("n" + n, "softmax", '"' + last + '"') + "," +
             node("s" + n, "wait_tensor", R"("c)" + n + '"') + "," +
             node("a" + n, "add", R"("s)" + n + R"(", "n)" + n + '"');
    last = "a" + n;
  }
  PassContext context = sm80();
  const std::string w = input("w", "6, 6", R"(, "kind": "parameter", "per_rank": true)");
  return lower(mesh(kX + "," + w, nodes, '"' + last + '"'), context);
}

std::vector<std::string> steps_of(const Program& program) {
  std::vector<std::string> lines;
  for (const Step& step : program.steps) {
    std::string line = std::to_string(step.stream) + " ";
    if (step.kind == Step::Kind::kEventRecord) line += "record " + std::to_string(step.event);
    if (step.kind == Step::Kind::kEventWait) line += "wait " + std::to_string(step.event);
    lines.push_back(line + (step.event < 0 ? step.name : ""));
  }
  return lines;
}

TEST(CollectiveSteps, HaveAStreamOfTheirOwnAndEvents) {
  const Program program = two_layers();
  EXPECT_THAT(steps_of(program), ElementsAre("0 p0", "0 record 0", "1 wait 0", "1 c0", "1 record 1",
                                             "0 n0", "0 wait 1", "0 n1", "0 p1", "0 record 2",
                                             "1 wait 2", "1 c1", "1 record 3", "0 wait 3", "0 a1"));
  for (const Arena& arena : program.arenas) EXPECT_NE(arena.kind, ArenaKind::kSymmetric);
  EXPECT_EQ(to_json(parse_program(to_json(program))), to_json(program));
}

TEST(CollectiveSteps, NoEventCanBeMissing) {
  const Program program = two_layers();
  int events = 0;
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    if (program.steps[s].event < 0) continue;
    ++events;
    Program without = program;
    without.steps.erase(without.steps.begin() + static_cast<std::ptrdiff_t>(s));
    const auto ranges = lifetimes(without, StepOrder(without.steps));
    for (std::size_t b = 0; b < ranges.size(); ++b) {
      without.buffers[b].first_step = ranges[b].first;
      without.buffers[b].last_step = ranges[b].last;
    }
    EXPECT_THROW(verify(without), Error) << "step " << s;
  }
  EXPECT_EQ(events, 8);
}

TEST(CollectiveSteps, DamageIsToldWithItsPlace) {
  const std::string good = to_json(two_layers());
  const auto broken = [&](const std::string& from, const std::string& to) -> std::string {
    std::string text = good;
    const std::size_t at = text.find(from, text.find("\"steps\""));
    EXPECT_NE(at, std::string::npos) << from;
    try {
      (void)parse_program(text.replace(at, from.size(), to), "p.json");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
      EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(broken(R"("op": "all_reduce")", R"("op": "all_reduce_")"),
              HasSubstr("p.json:/steps/3: op: \"all_reduce_\"; expected one of"));
  EXPECT_THAT(broken(R"("group": "far")", R"("group": "fan")"),
              HasSubstr("there is no group \"fan\""));
  EXPECT_THAT(broken(R"("reduce_op": "sum")", R"("reduce_op": "summ")"),
              HasSubstr("expected one of sum, avg"));
  EXPECT_THAT(broken(R"("op": "all_reduce")", R"("op": "broadcast", "src": 2)"),
              HasSubstr("expected a rank of the group, 0 to 1"));
  EXPECT_THAT(broken(R"("op": "all_reduce")", R"("op": "all_gather_into_tensor")"),
              HasSubstr("step 3 takes 'c0', f32[T, 6], for f32[2*T, 6]"));
  EXPECT_THAT(broken(R"("op": "all_reduce")", R"("op": "all_to_all_single", "splits": [1])"),
              HasSubstr("1 sizes; expected 2"));
  EXPECT_THAT(
      broken(R"("dtype": "f32", "shape": ["T", 6])", R"("dtype": "bool", "shape": ["T", 6])"),
      HasSubstr("sum of bool"));
  EXPECT_THAT(
      broken(R"("dtype": "f32", "shape": ["T", 6])", R"("dtype": "f32", "shape": ["T", 7])"),
      HasSubstr("for f32[T, 7]"));
}

/// NCCL's blocks wait for peers beside those of our kernels.
TEST(CollectiveSteps, TakeRoomOfAGpu) {
  Program program = two_layers();
  const StepOrder order(program.steps);
  EXPECT_NO_THROW(check_residency(program, order));
  program.ranks_per_device = 2;  // no NCCL
  EXPECT_NO_THROW(check_residency(program, order));
  // A kernel that waits for peers while c0 does, on each multiprocessor.
  program.ranks_per_device = 1;
  Step& beside = program.steps[5];
  ASSERT_EQ(beside.name, "n0");
  ProgramKernel kernel = program.kernels[static_cast<std::size_t>(beside.kernel)];
  kernel.needs.comm_group = "tp";
  kernel.needs.grid = 108 - kCommunicatorBlocks;
  beside.kernel = static_cast<int>(program.kernels.size());
  program.kernels.push_back(kernel);
  EXPECT_NO_THROW(check_residency(program, order));
  program.kernels.back().needs.grid = 109 - kCommunicatorBlocks;
  EXPECT_THROW(check_residency(program, order), Error);
}

TEST(CollectiveSteps, ChunksAlongOtherDimsAreRefused) {
  const Graph graph = mesh(kX,
                           node("c", "all_gather_into_tensor", R"("x")",
                                R"("group": "far", "dim": 1, "algorithm": "nccl")") +
                               "," + kWait,
                           R"("s")");
  PassContext context = sm80();
  try {
    (void)lower(graph, context);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "c: all_gather_into_tensor along dim 1; expected dim 0 of a communicator");
  }
}

}  // namespace
}  // namespace braid::testing
