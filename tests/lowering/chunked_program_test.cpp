// Plans of fused nodes in chunks: slices, streams, events and barriers, none of which may be
// missing.

#include <gmock/gmock.h>

#include "braid/error.h"
#include "lowering/lowering_testing.h"
#include "lowering/plan_testing.h"
#include "lowering/random_tp_graph.h"

namespace braid::testing {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kWeights = input("w", "8, 4") + "," + input("v", "4, 8");

std::string fused_gather(const std::string& name, const std::string& operands,
                         const std::string& more = "") {
  return node(name, "fused_all_gather_matmul", operands,
              R"("group": "tp", "gather_dim": 0)" + more);
}
std::string fused_scatter(const std::string& name, const std::string& operands) {
  return node(name, "fused_matmul_reduce_scatter", operands,
              R"("group": "tp", "scatter_dim": 0, "reduce_op": "sum")");
}

Program in_chunks(const std::string& inputs, const std::string& nodes, const std::string& outputs,
                  int world) {
  PassContext context = sm80();
  context.config.always_pipeline = true;
  return lower(graph_of(inputs, nodes, outputs, world), context);
}

/// A gather whose product is scattered again, twice.
Program layers(int world) {
  std::string nodes;
  std::string last = "x";
  for (const std::string n : {"0", "1"}) {
    nodes += (nodes.empty() ? "" : ",") + node("h" + n, "silu", '"' + last + '"') + "," +
             fused_gather("g" + n, R"("h)" + n + R"(", "w")", R"(, "return_A": false)") + "," +
             node("a" + n, "relu", R"("g)" + n + '"') + "," +
             fused_scatter("r" + n, R"("a)" + n + R"(", "v")");
    last = "r" + n;
  }
  return in_chunks(input("x", R"("T", 8)") + "," + kWeights, nodes, '"' + last + '"', world);
}

/// One word for each step: its kind, on which stream and of which node.
std::vector<std::string> steps_of(const Program& program) {
  std::vector<std::string> steps;
  const auto kind = [](Step::Kind k) {
    switch (k) {
      case Step::Kind::kLaunch:
        return "launch";
      case Step::Kind::kCopy:
        return "copy";
      case Step::Kind::kBarrier:
        return "barrier";
      case Step::Kind::kCollective:
        return "collective";
      case Step::Kind::kEventRecord:
        return "record";
      case Step::Kind::kEventWait:
        return "wait";
    }
    return "";
  };
  for (const Step& step : program.steps) {
    std::string text = std::to_string(step.stream) + " " + kind(step.kind) + " " + step.name;
    if (step.event >= 0) text += " " + std::to_string(step.event);
    steps.push_back(std::move(text));
  }
  return steps;
}

// A4-06: the own chunk is multiplied while the others are on their way.
TEST(ChunkedProgram, AGatherMultipliesItsOwnChunkFirst) {
  const Program program = in_chunks(
      input("x", R"("T", 8)") + "," + kWeights,
      node("h", "silu", R"("x")") + "," + fused_gather("g", R"("h", "w")"), R"("g:0", "g:1")", 3);
  EXPECT_THAT(
      steps_of(program),
      ElementsAre("0 launch h", "0 record h 0", "1 wait h 0", "1 barrier h", "1 copy g_copy",
                  "1 record g_copy 1", "1 copy g_copy1", "1 record g_copy1 2", "0 launch g_mm",
                  "0 wait g_wait 1", "0 launch g_mm1", "0 wait g_wait1 2", "0 launch g_mm2",
                  "0 copy g_join", "1 barrier end of tp"));
  // The results of copies and kernels are written where they are joined; h lies among the peers.
  const auto whole_of = [&](const std::string& name) {
    return program.buffers[static_cast<std::size_t>(buffer(program, name).slice->of)].name;
  };
  EXPECT_EQ(whole_of("g_copy1"), "g_join");
  EXPECT_EQ(whole_of("g_mm"), "g_join1");
  EXPECT_EQ(buffer(program, "g_mm2").slice->shift, 2);
  EXPECT_FALSE(buffer(program, "h").slice);
  EXPECT_EQ(to_json(parse_program(to_json(program))), to_json(program));
}

// A4-07: a partial product is on its way while the next one is made.
TEST(ChunkedProgram, AScatterMultipliesItsOwnRowsLast) {
  const Program program = in_chunks(input("x", R"("3*T", 8)") + "," + kWeights,
                                    fused_scatter("r", R"("x", "w")"), R"("r")", 3);
  EXPECT_THAT(
      steps_of(program),
      ElementsAre("0 launch r_mm", "0 record r_mm 0", "1 wait r_mm 0", "1 barrier r_mm",
                  "1 copy r_copy", "0 launch r_mm1", "0 record r_mm1 1", "1 wait r_mm1 1",
                  "1 barrier r_mm1", "1 copy r_copy1", "1 record r_copy1 2", "0 launch r_mm2",
                  "0 wait r_wait 2", "0 launch r_sum1", "1 barrier end of tp"));
  EXPECT_EQ(to_json(parse_program(to_json(program))), to_json(program));
}

TEST(ChunkedProgram, OneBarrierForAllThatIsThere) {
  const Program program =
      in_chunks(input("x", R"("T", 8)") + "," + kWeights,
                node("k", "neg", R"("x")") + "," + node("h", "silu", R"("k")") + "," +
                    fused_gather("g", R"("h", "w")", R"(, "return_A": false)") + "," +
                    fused_gather("f", R"("k", "w")", R"(, "return_A": false)"),
                R"("g", "f")", 2);
  const auto steps = steps_of(program);
  EXPECT_EQ(std::count(steps.begin(), steps.end(), "1 barrier k"), 0)
      << ::testing::PrintToString(steps);
}

std::string launches_of(const Program& program) {
  std::string text;
  for (const Step& step : program.steps) {
    if (step.kind != Step::Kind::kLaunch) continue;
    if (!text.empty()) text += " ";
    const Graph& body = *program.kernels[static_cast<std::size_t>(step.kernel)].spec.body;
    for (std::size_t n = 0; n < body.nodes().size(); ++n) {
      text += (n == 0 ? "" : "+") + std::string(body.nodes()[n].op_name());
    }
  }
  return text;
}

// The epilogue of a product runs in the kernel of each chunk, and a scatter takes the chunks as
// they are.
TEST(ChunkedProgram, WhatFollowsAJoinIsComputedInChunks) {
  const std::string no_a = R"(, "return_A": false)";
  const std::string inputs = input("x", R"("T", 8)") + "," + kWeights;
  EXPECT_EQ(launches_of(in_chunks(inputs,
                                  fused_gather("g", R"("x", "w")", no_a) + "," +
                                      node("s", "silu", R"("g")") + "," +
                                      fused_scatter("r", R"("s", "v")"),
                                  R"("r")", 2)),
            "copy mm+silu mm+silu mm mm slice+view+slice+view+add");
  // Rows of a graph input are cut, too; one row is for all.
  EXPECT_EQ(launches_of(in_chunks(inputs + "," + input("y", R"("2*T", 4)") + "," + input("b", "4"),
                                  fused_gather("g", R"("x", "w")", no_a) + "," +
                                      node("p", "add", R"("g", "y")") + "," +
                                      node("q", "mul", R"("p", "b")"),
                                  R"("q")", 2)),
            "copy mm+add+mul mm+add+mul");
  // Not those of a value that some kernel makes.
  EXPECT_EQ(launches_of(in_chunks(inputs + "," + input("y", R"("2*T", 4)"),
                                  node("z", "softmax", R"("y")") + "," +
                                      fused_gather("g", R"("x", "w")", no_a) + "," +
                                      node("p", "add", R"("g", "z")"),
                                  R"("p")", 2)),
            "copy mm mm softmax+add");
  // With more dims, under another name.
  EXPECT_EQ(
      launches_of(in_chunks(
          input("x", R"("T", 3, 8)") + "," + kWeights,
          fused_gather("g", R"("x", "w")", no_a) + "," + node("s", "silu", R"("g")"), R"("s")", 2)),
      "copy view+mm+view+silu view+mm+view+silu");
}

// C-10: each candidate's time is told, and the quicker one taken.
TEST(ChunkedProgram, TheCostModelChooses) {
  const auto remark = [](const std::string& rows, int dim, const std::string& results = R"("r")") {
    const auto matrix = [](const std::string& name, const std::string& shape) {
      return R"({"name": ")" + name + R"(", "dtype": "bf16", "shape": [)" + shape +
             R"(], "per_rank": true})";
    };
    PassContext context;
    context.target = Target::parse("H100");
    const Graph graph = graph_of(
        matrix("x", rows + ", 4096") + "," + matrix("w", "4096, 4096"),
        node("r", "fused_matmul_reduce_scatter", R"("x", "w")",
             R"("group": "tp", "reduce_op": "sum", "scatter_dim": )" + std::to_string(dim) +
                 (results == R"("r")" ? "" : R"(, "return_mm": true)")),
        results);
    lower(graph, context);
    return remarks_of(context, "r").at(0);
  };
  EXPECT_THAT(remark("64", 0),
              AllOf(HasSubstr("applied: fused_matmul_reduce_scatter runs as one kernel with its "
                              "scatter: about "),
                    HasSubstr(" us on H100; as its collective and 1 matmuls: "),
                    HasSubstr(" us; in 4 chunks: ")));
  EXPECT_THAT(remark("16384", 0), AllOf(HasSubstr("runs as one kernel with its scatter: about "),
                                        HasSubstr(" us on H100; as its collective and 1 matmuls: "),
                                        HasSubstr(" us; in 4 chunks: ")));
  const std::string both = R"("r:0", "r:1")";
  EXPECT_THAT(remark("16384", 0, both),
              AllOf(HasSubstr("runs in 4 chunks: about "),
                    HasSubstr(" us on H100; as its collective and 1 matmuls: "),
                    HasSubstr("; not as one kernel with its scatter: it takes a scatter of rows in "
                              "symmetric memory, of a product that nobody else reads")));
  EXPECT_THAT(remark("64", 0, both),
              AllOf(HasSubstr("runs as its collective and 1 matmuls: about "),
                    HasSubstr(" us on H100; in 4 chunks: ")));
  EXPECT_THAT(remark("16384", 1),
              AllOf(HasSubstr("; not in 4 chunks: chunks of the last dim, 1, are not rows of the "
                              "product"),
                    HasSubstr("; not as one kernel with its scatter: ")));
}

// Few rows: a launch and a barrier less. Many: two shots move less.
TEST(ChunkedProgram, AnAllReduceIsOneKernelWhereItIsSmall) {
  const auto remark = [](const std::string& rows) {
    PassContext context;
    context.target = Target::parse("H100");
    const auto matrix = [](const std::string& name, const std::string& shape) {
      return R"({"name": ")" + name + R"(", "dtype": "bf16", "shape": [)" + shape +
             R"(], "per_rank": true})";
    };
    const Graph graph = graph_of(
        matrix("x", rows + ", 512") + "," + matrix("w", "512, 4096"),
        node("r", "fused_matmul_all_reduce", R"("x", "w")", R"("group": "tp", "reduce_op": "sum")"),
        R"("r")");
    lower(graph, context);
    return remarks_of(context, "r").at(0);
  };
  EXPECT_THAT(remark("4"),
              AllOf(HasSubstr("fused_matmul_all_reduce runs as one kernel with its all-reduce: "),
                    HasSubstr(" us on H100; as its collective and 1 matmuls: "),
                    HasSubstr("; not in 4 chunks: every rank has all of an all-reduce")));
  EXPECT_THAT(remark("16384"), AllOf(HasSubstr("runs as its collective and 1 matmuls: about "),
                                     HasSubstr("; as one kernel with its all-reduce: ")));
}

// Whatever order the schedulers find, verify accepts it.
TEST(ChunkedProgram, TheSchedulersMayMoveItsParts) {
  for (const char* pass : {"sink_waits", "raise_comms", "reorder_compute_for_overlap"}) {
    PassContext context = sm80();
    context.config.always_pipeline = true;
    context.config.enable = {pass};
    const Program program = lower(
        graph_of(input("x", R"("T", 8)") + "," + kWeights,
                 fused_gather("g", R"("x", "w")") + "," + fused_scatter("r", R"("g:1", "v")") +
                     "," + fused_gather("h", R"("r", "w")", R"(, "return_A": false)"),
                 R"("g:0", "h")", 3),
        context);
    EXPECT_EQ(std::count_if(program.steps.begin(), program.steps.end(),
                            [](const Step& step) { return step.source_peer.has_value(); }),
              3 * 2);
  }
}

/// The chunks of 3 rows of 5 floats are not aligned: each kernel has a buffer of its own.
TEST(ChunkedProgram, UnalignedChunksAreCopied) {
  const Program program =
      in_chunks(input("x", "3, 8") + "," + input("w", "8, 5"),
                fused_gather("g", R"("x", "w")", R"(, "return_A": false)"), R"("g")", 2);
  EXPECT_FALSE(buffer(program, "g_mm").slice);
  EXPECT_EQ(buffer(program, "g_mm1 of g_join").slice->shift, 1);
  EXPECT_THAT(steps_of(program), ::testing::Contains("0 copy g_join").Times(2));
}

/// Without one step, which nobody was told of.
Program without(Program program, std::size_t step) {
  program.steps.erase(program.steps.begin() + static_cast<std::ptrdiff_t>(step));
  set_lifetimes(program);
  return program;
}

// A4-06 [D], A4-07 [D]: no event and no barrier can be missing.
TEST(ChunkedProgram, EachEventAndBarrierIsNeeded) {
  for (const int world : {2, 3, 4}) {
    const Program good = layers(world);
    EXPECT_EQ(problem(good), "");
    int removed = 0;
    for (std::size_t s = 0; s < good.steps.size(); ++s) {
      const Step::Kind kind = good.steps[s].kind;
      if (kind == Step::Kind::kLaunch || kind == Step::Kind::kCopy) continue;
      ++removed;
      EXPECT_THAT(problem(without(good, s)),
                  AnyOf(HasSubstr("which no step before it records"), HasSubstr("may still"),
                        HasSubstr("may not be done"), HasSubstr("has no closing barrier")))
          << "without step " << s << ", " << steps_of(good)[s];
    }
    EXPECT_EQ(removed, 10 * world + 1);
  }
}

// A4-24, A4-25: the same of gathers and scatters that are copies.
TEST(CopiedProgram, EachEventAndBarrierIsNeeded) {
  for (const int world : {2, 3}) {
    PassContext context = sm80();
    context.config.by_copies = true;
    std::string nodes;
    std::string last = "x";
    for (const std::string n : {"0", "1"}) {
      nodes += (nodes.empty() ? "" : ",") + node("h" + n, "silu", '"' + last + '"') + "," +
               node("g" + n, "all_gather_into_tensor", R"("h)" + n + '"', R"("group": "tp")") +
               "," + node("gw" + n, "wait_tensor", R"("g)" + n + '"') + "," +
               node("a" + n, "relu", R"("gw)" + n + '"') + "," +
               node("r" + n, "reduce_scatter_tensor", R"("a)" + n + '"',
                    R"("group": "tp", "reduce_op": "sum")") +
               "," + node("rw" + n, "wait_tensor", R"("r)" + n + '"');
      last = "rw" + n;
    }
    const Program good =
        lower(graph_of(input("x", R"("T", 8)"), nodes, '"' + last + '"', world), context);
    EXPECT_EQ(problem(good), "");
    EXPECT_EQ(to_json(parse_program(to_json(good))), to_json(good));
    int removed = 0;
    for (std::size_t s = 0; s < good.steps.size(); ++s) {
      const Step::Kind kind = good.steps[s].kind;
      if (kind == Step::Kind::kLaunch || kind == Step::Kind::kCopy) continue;
      ++removed;
      EXPECT_THAT(problem(without(good, s)),
                  AnyOf(HasSubstr("which no step before it records"), HasSubstr("may still"),
                        HasSubstr("may not be done"), HasSubstr("has no closing barrier")))
          << "without step " << s << ", " << steps_of(good)[s];
    }
    // Each collective has two events and a barrier, and one barrier is at the end.
    EXPECT_EQ(removed, 4 * 5 + 1) << ::testing::PrintToString(steps_of(good));
  }
}

// A4-24, A4-25: copies start where the operand is there, and the wait is for the last of them.
TEST(CopiedProgram, CopiesRunBesideWhatStandsBeforeTheWait) {
  PassContext context = sm80();
  context.config.by_copies = true;
  const Program program = lower(
      graph_of(
          input("x", R"("3*T", 8)"),
          node("h", "silu", R"("x")") + "," +
              node("r", "reduce_scatter_tensor", R"("h")", R"("group": "tp", "reduce_op": "avg")") +
              "," + node("b", "relu", R"("x")") + "," + node("s", "wait_tensor", R"("r")"),
          R"("b", "s")", 3),
      context);
  const std::string copy = "r_copy_chunk_from_peer";
  EXPECT_THAT(
      steps_of(program),
      ElementsAre("0 launch h", "0 record h 0", "1 wait h 0", "1 barrier h", "1 copy " + copy,
                  "1 copy " + copy + "1", "1 copy " + copy + "2", "1 record " + copy + "2 1",
                  "0 launch b", "0 wait s_wait_tensor 1", "0 launch s_avg", "1 barrier end of tp"));
  // They are of what the peers have for this rank, and lie where they are added up.
  for (const std::int64_t k : {1, 2, 0}) {
    const auto is_copy = [&](const Step& step) {
      return step.source_peer && step.source_peer->shift == k;
    };
    const Step& step = *std::find_if(program.steps.begin(), program.steps.end(), is_copy);
    const auto slice_of = [&](int id) {
      return *program.buffers[static_cast<std::size_t>(id)].slice;
    };
    EXPECT_EQ(slice_of(step.source).shift, (3 - k) % 3);
    EXPECT_EQ(slice_of(step.destination).shift, k);
  }
}

TEST(ChunkedProgram, RandomGraphsBecomePlansThatAreReadBack) {
  int chunked = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    PassContext context = sm80();
    context.config.always_pipeline = true;
    context.config.by_copies = seed % 3 == 0;
    context.config.enable = {"sequence_parallel", "micro_pipeline"};
    const Program program = lower(random_tp_graph(seed, 2 + 2 * (seed % 2), seed % 4 < 2), context);
    chunked += stream_count(program) - 1;
    if (seed % 10 != 0) continue;
    EXPECT_EQ(to_json(parse_program(to_json(program))), to_json(program));
  }
  EXPECT_GT(chunked, 60);
}

TEST(ChunkedProgram, WhatIsNoChunkIsRefused) {
  const std::string good = to_json(layers(2), /*with_hash=*/false);
  const auto broken = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    try {
      static_cast<void>(parse_program(text.replace(at, from.size(), to)));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(broken(R"("slice": {)", R"("slice": {)"), "");
  const std::string slice = good.substr(good.find(R"("slice": {)"));
  const std::string first = slice.substr(0, slice.find('}') + 1);
  const std::string of = first.substr(10, first.find(',') - 10);
  EXPECT_THAT(broken(of, R"("of": 999)"), HasSubstr("an earlier buffer that is no slice"));
  EXPECT_THAT(broken(of, R"("of": -1)"), HasSubstr("/slice/of"));
  EXPECT_THAT(broken(of, R"("of": 1)"), HasSubstr("is no chunk of 'w'"));
  EXPECT_THAT(broken(R"("shift": 1}})", R"("shift": 2}})"), HasSubstr("expected 0 to 1"));
  EXPECT_THAT(broken(R"("shift": 1}})", R"("shift": -1}})"), HasSubstr("expected 0 to 1"));
  EXPECT_THAT(broken(R"("shift": 1}})", R"("shift": 0}})"), Not(""));  // a chunk nobody writes
  EXPECT_THAT(broken(R"("group": "tp", "shift": 1}})", R"("group": "dp", "shift": 1}})"),
              HasSubstr("expected one that is there"));
  EXPECT_THAT(broken(R"("slice": {)", R"("arena": 0, "slice": {)"), HasSubstr("arena"));
}

TEST(ChunkedProgram, AChunkOfAChunkIsOneOfACopy) {
  const auto chunk = [](const std::string& name, const std::string& of) {
    return node(name, "chunk_by_rank", '"' + of + '"', R"("group": "tp", "shift": 1)");
  };
  const Program program = in_chunks(input("x", "8, 4"),
                                    chunk("a", "x") + "," + chunk("b", "a") + "," +
                                        chunk("c", "a") + "," + node("y", "add", R"("b", "c")"),
                                    R"("y")", 2);
  EXPECT_THAT(steps_of(program), ElementsAre("0 copy b", "0 launch y"));
  EXPECT_EQ(buffer(program, "b").slice->of, buffer(program, "c").slice->of);
}

}  // namespace
}  // namespace braid::testing
