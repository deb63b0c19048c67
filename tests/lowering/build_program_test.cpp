#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>

#include "braid/error.h"
#include "codegen/protocol.h"
#include "ir/numel.h"
#include "lowering/lowering_testing.h"

namespace braid::testing {
namespace {

using ::testing::ElementsAre;

const std::string kX = input("x", R"("T", 6)");
const std::string kSquare = input("w", "6, 6", R"(, "kind": "parameter", "per_rank": true)");

Program program_of(const Graph& graph) {
  PassContext context = in_one_shot();
  return lower(graph, context);
}

std::string arena(const Program& program, int buffer) {
  return program
      .arenas[static_cast<std::size_t>(program.buffers[static_cast<std::size_t>(buffer)].arena)]
      .name();
}
const Buffer& buffer(const Program& program, const std::string& name) {
  for (const Buffer& b : program.buffers) {
    if (b.name == name) return b;
  }
  throw std::runtime_error("no buffer " + name);
}

/// x -> neg -> all_reduce -> silu, `rounds` times; the collective is fused with what follows.
Graph consecutive_all_reduces(int rounds, int world) {
  std::string nodes;
  std::string last = "x";
  for (int i = 0; i < rounds; ++i) {
    const std::string n = std::to_string(i);
    nodes += (i > 0 ? "," : "") + node("p" + n, "mm", '"' + last + R"(", "w")") + "," +
             all_reduce("c" + n, "p" + n) + "," + node("s" + n, "wait_tensor", R"("c)" + n + '"') +
             "," + node("a" + n, "silu", R"("s)" + n + '"');
    last = "a" + n;
  }
  return graph_of(kX + "," + kSquare, nodes, '"' + last + '"', world);
}

/// The error for a user's kernel of x f32[T, 6], with these nodes over the body's "i".
std::string kernel_error(const std::string& nodes, const std::string& attrs) {
  const std::string body = R"("body": {"inputs": [{"name": "i", "dtype": "f32", "shape": ["T", 6],)"
                           R"( "per_rank": true}], "nodes": [)" +
                           nodes + R"(], "outputs": ["o"]})";
  try {
    program_of(graph_of(kX, node("k", "kernel", R"("x")", body + ", " + attrs), R"("k")"));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "no error";
}

TEST(BuildProgram, AHandWrittenKernelFitsItsBody) {
  const std::string neg = node("o", "neg", R"("i")");
  const std::string warps = R"("config": {"num_warps": 4})";
  EXPECT_EQ(kernel_error(neg, warps), "no error");
  EXPECT_EQ(
      kernel_error(neg, R"("template": "gemm", )" + warps),
      R"(/nodes/0/attrs/template: kernel has no attribute "template"; expected body, config, indexed)");
  EXPECT_EQ(kernel_error(neg, R"("config": {})"),
            "k/attrs/config/num_warps: found none; expected a power of two from 1 to 32");
  EXPECT_EQ(kernel_error(neg, R"("config": {"num_warps": 5})"),
            "k/attrs/config/num_warps: found 5; expected a power of two from 1 to 32");
  EXPECT_EQ(kernel_error(neg, R"("config": {"num_warps": 4, "elements": 16})"), "no error");
  EXPECT_EQ(kernel_error(neg, R"("config": {"num_warps": 4, "elements": 32})"),
            "k/attrs/config/elements: found 32; expected a power of two from 4 to 16");
  EXPECT_EQ(kernel_error(node("t", "transpose", R"("i")", R"("dim0": 0, "dim1": 1)") + "," +
                             node("o", "mm", R"("i", "t")"),
                         warps),
            "k/attrs/config/BLOCK_M: found none; expected a power of two from 16 to 256");
  // A ring that is filled ahead has two slots or more.
  for (const int stages : {1, 9}) {
    EXPECT_EQ(
        kernel_error(
            node("t", "transpose", R"("i")", R"("dim0": 0, "dim1": 1)") + "," +
                node("o", "mm", R"("i", "t")"),
            fmt::format(
                R"("config": {{"num_warps": 4, "BLOCK_M": 16, "BLOCK_N": 16, "BLOCK_K": 16,)"
                R"( "GROUP_M": 8, "num_stages": {}}})",
                stages)),
        fmt::format("k/attrs/config/num_stages: found {}; expected a number from 2 to 8", stages));
  }
  EXPECT_EQ(kernel_error(all_reduce("c", "i") + "," + node("o", "wait_tensor", R"("c")"), warps),
            "k/attrs/body: 'c' is all_reduce; expected nodes that run inside a kernel");
  EXPECT_EQ(
      kernel_error(
          node("s", "softmax", R"("i")") + "," + node("o", "sum", R"("s")", R"("dim": [0])"), warps)
          .rfind("k/attrs/body: no elementwise kernel computes it: ", 0),
      0U);
}

TEST(BuildProgram, ArenasFlagsAndClosingBarrier) {
  const Program program = program_of(consecutive_all_reduces(3, 4));
  ASSERT_EQ(program.steps.size(), 6U);
  EXPECT_EQ(program.world, 4);
  for (int i : {1, 3, 5}) {
    const Step& step = program.steps[static_cast<std::size_t>(i)];
    EXPECT_EQ(program.buffers[static_cast<std::size_t>(step.flags)].kind, BufferKind::kFlags);
    EXPECT_EQ(arena(program, step.flags), "symmetric:tp");
    EXPECT_EQ(step.scratch, -1);
    EXPECT_EQ(step.closing_barrier, i == 5);
  }
  EXPECT_EQ(program.steps[0].flags, -1);
  EXPECT_NE(program.steps[1].flags, program.steps[3].flags);
  // Equal steps launch one kernel.
  EXPECT_EQ(program.kernels.size(), 2U);
  EXPECT_EQ(program.steps[1].kernel, program.steps[5].kernel);
  EXPECT_EQ(arena(program, program.inputs[0].buffer), "io");
  EXPECT_EQ(arena(program, program.inputs[1].buffer), "parameters");
  EXPECT_EQ(arena(program, program.outputs[0].buffer), "io");
  EXPECT_EQ(arena(program, program.steps[0].outputs[0]), "symmetric:tp");
  EXPECT_EQ(arena(program, program.steps[1].outputs[0]), "workspace");
}

// A2-17: what other ranks may still read is neither reused nor freed.
TEST(BuildProgram, SymmetricBuffersLiveUntilTheNextBarrier) {
  const Program program = program_of(consecutive_all_reduces(3, 4));
  const Buffer& p0 = buffer(program, "p0");
  const Buffer& p1 = buffer(program, "p1");
  const Buffer& p2 = buffer(program, "p2");
  EXPECT_EQ(p0.last_step, 3);  // the all_reduce of p1 is the next barrier
  EXPECT_EQ(p1.last_step, 5);
  EXPECT_EQ(p2.last_step, 5);  // its own closing barrier
  EXPECT_NE(p0.offset, p1.offset);
  EXPECT_NE(p1.offset, p2.offset);
  EXPECT_EQ(p0.offset, p2.offset);
  EXPECT_GE(std::min(p0.offset, p1.offset), protocol::kHeadBytes);
  for (const Arena& a : program.arenas) {
    if (a.kind == ArenaKind::kSymmetric) {
      EXPECT_EQ(a.bytes % (2 << 20), 0);
    }
  }
}

// The peers may still read p0 when a step that only takes packets ends, and none of them reads
// anything after the last one.
TEST(BuildProgram, PacketsAreNoBarrier) {
  std::string nodes;
  std::string last = "x";
  for (const std::string n : {"0", "1", "2", "3"}) {
    const bool packets = n == "1" || n == "3";
    std::string matmul = node("p" + n, "mm", '"' + last + R"(", "w")");
    if (!packets) matmul.insert(matmul.size() - 1, R"(, "comm_group": "tp")");
    nodes += (n == "0" ? "" : ",") + matmul + "," +
             node("c" + n, "all_reduce", R"("p)" + n + '"',
                  R"("reduce_op": "sum", "group": "tp", "algorithm": ")" +
                      std::string(packets ? "ll" : "one_shot") + '"');
    last = "c" + n;
  }
  const Program program = program_of(graph_of(kX + "," + kSquare, nodes, '"' + last + '"', 4));
  ASSERT_EQ(program.steps.size(), 8U);
  for (std::size_t s = 0; s < 8; ++s) {
    const Step& step = program.steps[s];
    EXPECT_EQ(step.closing_barrier, s == 5) << s;
    EXPECT_EQ(step.flags >= 0, s % 2 == 1) << s;
    EXPECT_EQ(step.scratch >= 0, s == 3 || s == 7) << s;
    EXPECT_EQ(meets(program, step), s == 1 || s == 5) << s;
  }
  EXPECT_EQ(buffer(program, "p0").last_step, 5);
  EXPECT_EQ(arena(program, program.steps[2].outputs[0]), "workspace");
  // Two halves, of 64 rows of 6 elements from each of 4 ranks.
  EXPECT_EQ(buffer(program, "c1 scratch").bytes, 2 * 4 * 64 * 6 * 8);
}

TEST(BuildProgram, WorldOfOneHasNoSymmetricArena) {
  const Program program = program_of(consecutive_all_reduces(3, 1));
  for (const Arena& a : program.arenas) EXPECT_NE(a.kind, ArenaKind::kSymmetric);
  for (const Step& step : program.steps) EXPECT_FALSE(step.closing_barrier);
}

TEST(BuildProgram, OutputsKeepTheUsersNames) {
  const Program program =
      program_of(graph_of(kX,
                          node("a", "exp", R"("x")") + "," + node("b", "neg", R"("a")") + "," +
                              node("c", "view", R"("b")", R"("shape": ["T", 6])"),
                          R"("c", "a", "b")"));
  ASSERT_EQ(program.outputs.size(), 3U);
  EXPECT_EQ(program.outputs[0].name, "c");
  EXPECT_EQ(program.outputs[1].name, "a");
  EXPECT_EQ(program.outputs[2].name, "b");
  // c became b; the second output of that value is a copy.
  EXPECT_NE(program.outputs[0].buffer, program.outputs[2].buffer);
  ASSERT_EQ(program.steps.size(), 2U);
  EXPECT_EQ(program.steps[1].kind, Step::Kind::kCopy);
  EXPECT_EQ(program.steps[1].source, program.outputs[0].buffer);
  EXPECT_EQ(program.steps[1].destination, program.outputs[2].buffer);
}

TEST(BuildProgram, ViewsShareTheirBuffer) {
  const Program program = program_of(graph_of(
      kX, node("a", "exp", R"("x")") + "," + node("v", "view", R"("a")", R"("shape": ["6*T"])"),
      R"("v")"));
  ASSERT_EQ(program.steps.size(), 1U);
  // The kernel writes the output itself; the tensor has the view's shape.
  EXPECT_EQ(program.outputs[0].buffer, program.steps[0].outputs[0]);
  EXPECT_EQ(program.outputs[0].type.str(), "f32[6*T]");
  EXPECT_EQ(arena(program, program.outputs[0].buffer), "io");
}

TEST(BuildProgram, BuffersHaveRoomForTheLargestSymbols) {
  const Program program = program_of(consecutive_all_reduces(3, 4));  // T is 64 at most
  const SymbolTable& symbols = program.symbols;
  EXPECT_EQ(symbols.find("T")->second.max, 64);
  for (const char* name : {"p0", "p1", "p2"}) {
    const Buffer& b = buffer(program, name);
    EXPECT_EQ(b.bytes, (numel(b.type.shape) * Expr(4)).evaluate({{"T", 64}})) << name;
    EXPECT_GT(b.bytes, (numel(b.type.shape) * Expr(4)).evaluate({{"T", 63}})) << name;
    EXPECT_EQ(b.offset % 256, 0) << name;
  }
}

// Memory that one group's ranks may read never belongs to another group.
TEST(BuildProgram, GroupsShareNoArena) {
  const std::string graph = R"({"braid": 1, "name": "mesh",
    "groups": {"a": {"size": 2, "ranks": [[0, 1], [2, 3]]},
               "b": {"size": 2, "ranks": [[0, 2], [1, 3]]}},
    "inputs": [)" + input("x", "8, 8") +
                            R"(], "nodes": [)" + node("p", "exp", R"("x")") + "," +
                            all_reduce("c", "p", "a") + "," + node("s", "wait_tensor", R"("c")") +
                            "," + node("q", "neg", R"("s")") + "," + all_reduce("d", "q", "b") +
                            "," + node("y", "wait_tensor", R"("d")") + R"(], "outputs": ["y"]})";
  PassContext context = in_one_shot();
  const Program program = lower(parse_graph(graph), context);
  std::map<std::string, std::vector<std::string>> tensors;
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    if (program.buffers[i].kind != BufferKind::kTensor) continue;
    tensors[arena(program, static_cast<int>(i))].push_back(program.buffers[i].name);
  }
  EXPECT_THAT(tensors["symmetric:a"], ::testing::SizeIs(1));
  EXPECT_THAT(tensors["symmetric:b"], ::testing::SizeIs(1));
  EXPECT_NE(tensors["symmetric:a"], tensors["symmetric:b"]);
}

TEST(BuildProgram, AnInputAsOutputIsCopied) {
  const Program program = program_of(
      graph_of(kX, node("v", "view", R"("x")", R"("shape": ["6*T"])"), R"("v", "x", "x")"));
  ASSERT_EQ(program.steps.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(program.steps[i].kind, Step::Kind::kCopy);
    EXPECT_EQ(program.steps[i].source, program.inputs[0].buffer);
    EXPECT_EQ(program.steps[i].destination, program.outputs[i].buffer);
  }
}

TEST(BuildProgram, ACommBufferAsOutputIsCopied) {
  Graph graph("g");
  graph.add_group("tp", {2, true, {}});
  const ValueId x = graph.add_input({"x", {DType::kF32, {4}}, InputKind::kActivation, true});
  const NodeId p = graph.add_node("p", "neg", {x});
  graph.set_comm_group(graph.node(p).outputs[0], "tp");
  graph.add_output(graph.node(p).outputs[0]);
  PassContext context = sm80();
  const Program program = build_program(fuse(graph, context), context);
  ASSERT_EQ(program.steps.size(), 2U);
  EXPECT_EQ(arena(program, program.steps[1].source), "symmetric:tp");
  EXPECT_EQ(arena(program, program.outputs[0].buffer), "io");
}

TEST(BuildProgram, WantsKernels) {
  const Graph graph = graph_of(kX, node("a", "exp", R"("x")"), R"("a")");
  PassContext context = sm80();
  EXPECT_THROW(build_program(graph, context), Error);
}

TEST(BuildProgram, RandomGraphsHaveValidPlans) {
  for (int world : {1, 2, 4}) {
    for (std::uint64_t seed = 300; seed < 340; ++seed) {
      SCOPED_TRACE(seed);
      const Graph graph = random_graph(seed, 60, world);
      const Program program = program_of(graph);  // ends in verify
      EXPECT_EQ(program.outputs.size(), graph.outputs().size());
      EXPECT_EQ(program.hash, program_of(graph).hash);
    }
  }
}

// `braid opt` writes the graph after any pass; what is read back gives the same plan.
TEST(BuildProgram, FusedGraphsSurviveJson) {
  const Graph graph = consecutive_all_reduces(3, 2);
  PassContext context = sm80();
  const Graph fused = fuse(lower_collectives(canonicalize(graph, context), context), context);
  const Graph parsed = parse_graph(to_json(fused));
  const auto direct = nlohmann::json::parse(to_json(build_program(fused, context)));
  const auto read = nlohmann::json::parse(to_json(build_program(parsed, context)));
  // Bodies that were read are objects of their own, and yet equal ones share a kernel.
  EXPECT_EQ(read["kernels"].size(), 2U);
  for (const char* part : {"arenas", "buffers", "steps", "inputs", "outputs", "hash"}) {
    EXPECT_EQ(direct[part], read[part]) << part;
  }
}

TEST(Program, JsonIsReadableAndHashed) {
  const Program program = program_of(consecutive_all_reduces(2, 2));
  const auto json = nlohmann::json::parse(to_json(program));
  EXPECT_EQ(json["hash"], program.hash);
  EXPECT_EQ(program.hash.size(), 32U);
  EXPECT_EQ(json["steps"].size(), 4U);
  EXPECT_EQ(json["buffers"][0]["name"], "x");
  EXPECT_FALSE(nlohmann::json::parse(to_json(program, false)).contains("hash"));
}

TEST(Program, HashCoversWhatRanksMustAgreeOn) {
  const Program program = program_of(consecutive_all_reduces(2, 2));
  Program other = program;
  other.buffers[2].offset += 256;
  EXPECT_NE(hash_of(other), program.hash);
  other = program;
  other.kernels[0].spec.config["num_warps"] += 1;
  EXPECT_NE(hash_of(other), program.hash);
  // The device that was planned for, also where it changes neither layout nor kernels.
  other = program;
  other.target = Target::parse("H100");
  const std::string h100 = hash_of(other);
  EXPECT_NE(h100, program.hash);
  other.target = Target::parse("H200");
  EXPECT_NE(hash_of(other), h100);
  other = program;
  other.hash = "";
  EXPECT_EQ(hash_of(other), program.hash);
}

TEST(Program, VerifyNoticesBrokenPlans) {
  const Program program = program_of(consecutive_all_reduces(3, 2));
  EXPECT_NO_THROW(verify(program));
  auto broken = [&](auto change) {
    Program copy = program;
    change(copy);
    EXPECT_THROW(verify(copy), Error);
  };
  auto find = [](Program& p, const std::string& name) -> Buffer& {
    return const_cast<Buffer&>(buffer(p, name));
  };
  broken([&](Program& p) { find(p, "p0").last_step = 1; });
  broken([&](Program& p) { find(p, "p1").offset = find(p, "p0").offset; });
  broken([&](Program& p) { find(p, "p1").offset = 1 << 30; });
  broken([&](Program& p) { find(p, "p0").arena = find(p, "a0").arena; });
  broken([&](Program& p) { p.steps.back().closing_barrier = false; });
  broken([&](Program& p) { p.steps[3].flags = p.steps[1].flags; });
  broken([&](Program& p) { p.steps[3].flags = -1; });
  broken([&](Program& p) { p.steps[3].scratch = p.steps[3].flags; });
  broken([&](Program& p) { p.steps[0].inputs[0] = p.steps[1].flags; });
  broken([&](Program& p) { p.buffers[static_cast<std::size_t>(p.steps[3].flags)].last_step = 3; });
  broken([&](Program& p) { p.buffers[static_cast<std::size_t>(p.steps[3].flags)].offset = 0; });
  broken([&](Program& p) { p.steps[0].inputs.pop_back(); });
  broken([&](Program& p) { p.outputs[0].buffer = p.steps[1].outputs[0]; });
}

}  // namespace
}  // namespace braid::testing
