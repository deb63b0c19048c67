// One tensor-parallel block over world sizes, tokens, widths and dtypes (pairwise), and what must
// hold of its plan.

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "braid/error.h"
#include "lowering/passes.h"
#include "run/run_graph.h"
#include "source_directory.h"

namespace braid {
namespace {

struct Case {
  std::int64_t world, tokens, hidden;
  DType dtype;
};
void PrintTo(const Case& c, std::ostream* out);

std::string name_of(const Case& c) {
  return "w" + std::to_string(c.world) + "_t" + std::to_string(c.tokens) + "_h" +
         std::to_string(c.hidden) + "_" + std::string(dtype_name(c.dtype));
}
void PrintTo(const Case& c, std::ostream* out) { *out << name_of(c); }
std::string case_name(const ::testing::TestParamInfo<Case>& info) { return name_of(info.param); }

/// Everything, for the soak.
std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const std::int64_t world : {2, 3, 4, 5, 8}) {
    for (const std::int64_t tokens : {1, 2, 7, 8, 33, 256}) {
      for (const std::int64_t hidden : {2048, 2880, 4096, 1001}) {
        for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
          cases.push_back({world, tokens, hidden, dtype});
        }
      }
    }
  }
  return cases;
}

/// norm, matmul with silu, matmul, all-reduce, residual, norm; the residual stream leaves as well.
Graph block(const Case& c, std::int64_t inner = 48) {
  Graph g("block");
  g.add_symbol("T", {1, 256, 1});
  g.add_group("tp", {c.world, true, {}});
  const Dim t = Dim::symbol("T");
  const auto in = [&](const char* name, Shape shape, bool per_rank) {
    return g.add_input({name,
                        {c.dtype, std::move(shape)},
                        per_rank ? InputKind::kParameter : InputKind::kActivation,
                        per_rank});
  };
  const auto op = [&](const char* name, const char* op_name, std::vector<ValueId> inputs,
                      Attrs attrs = {}) {
    return g.node(g.add_node(name, op_name, std::move(inputs), std::move(attrs))).outputs[0];
  };
  const ValueId x = in("x", {t, c.hidden}, false);
  const ValueId g1 = in("g1", {c.hidden}, false);
  const ValueId w1 = in("w1", {c.hidden, inner}, true);
  const ValueId w2 = in("w2", {inner, c.hidden}, true);
  const ValueId g2 = in("g2", {c.hidden}, false);
  const Attrs eps{{"eps", 1e-5}};
  const ValueId h = op("a", "silu", {op("h", "mm", {op("n", "rms_norm", {x, g1}, eps), w1})});
  const ValueId sum = op("c", "all_reduce", {op("p", "mm", {h, w2})},
                         {{"reduce_op", std::string("sum")}, {"group", std::string("tp")}});
  const ValueId r = op("r", "add", {op("s", "wait_tensor", {sum}), x});
  g.add_output(op("y", "rms_norm", {r, g2}, eps));
  g.add_output(r);
  return g;
}

class Sweep : public ::testing::TestWithParam<Case> {};

TEST_P(Sweep, EqualsTheReferenceAndAcrossRanks) {
  EXPECT_TRUE(testing::matches_reference(block(GetParam()), {{"T", GetParam().tokens}}, 7));
}

// Every pair of two of (world, tokens, hidden, dtype) stands here.
INSTANTIATE_TEST_SUITE_P(
    Pairwise, Sweep,
    ::testing::Values(Case{2, 1, 2880, DType::kF32}, Case{2, 2, 4096, DType::kBF16},
                      Case{2, 7, 1001, DType::kBF16}, Case{2, 8, 2880, DType::kF32},
                      Case{2, 33, 2048, DType::kF16}, Case{2, 256, 2880, DType::kF16},
                      Case{3, 1, 2048, DType::kF16}, Case{3, 2, 2048, DType::kBF16},
                      Case{3, 7, 2880, DType::kF16}, Case{3, 8, 4096, DType::kF16},
                      Case{3, 33, 1001, DType::kF32}, Case{3, 256, 2048, DType::kBF16},
                      Case{4, 1, 4096, DType::kF16}, Case{4, 2, 2880, DType::kF32},
                      Case{4, 7, 2048, DType::kF32}, Case{4, 8, 1001, DType::kBF16},
                      Case{4, 33, 2880, DType::kF16}, Case{4, 256, 2880, DType::kF32},
                      Case{5, 1, 2048, DType::kF32}, Case{5, 2, 1001, DType::kBF16},
                      Case{5, 7, 2880, DType::kF16}, Case{5, 8, 2048, DType::kF32},
                      Case{5, 33, 4096, DType::kBF16}, Case{5, 256, 1001, DType::kF16},
                      Case{8, 1, 1001, DType::kF32}, Case{8, 1, 2880, DType::kBF16},
                      Case{8, 2, 2048, DType::kF16}, Case{8, 7, 4096, DType::kF32},
                      Case{8, 8, 2048, DType::kBF16}, Case{8, 33, 4096, DType::kF16},
                      Case{8, 256, 4096, DType::kF32}),
    case_name);

// Run by the soak alone: --gtest_also_run_disabled_tests.
INSTANTIATE_TEST_SUITE_P(DISABLED_Full, Sweep, ::testing::ValuesIn(all_cases()), case_name);

TEST(Block, RunsInFourLaunchesOneOfThemAllReduceAddNorm) {
  const Graph graph = load_graph(testing::source_directory() + "/examples/llama_mlp.json");
  World world = World::open(testing::world_options(4));
  const Executable executable = Executable::compile(graph, world);
  EXPECT_EQ(executable.launches(), 4);
  std::set<std::string> ops;
  for (const KernelReport& kernel : executable.kernels()) {
    ops.insert(kernel.ops);
    EXPECT_EQ(kernel.spill_bytes, 0) << kernel.name;
  }
  EXPECT_TRUE(ops.contains("all_reduce+add+rms_norm"));
}

// Epochs, not cleared flags: a hundred runs in a row, the host not waiting in between.
TEST(Block, AHundredRunsWithoutHostSynchronisationStayRight) {
  const Case c{4, 7, 256, DType::kBF16};
  const Graph graph = block(c);
  const Bindings bindings{{"T", c.tokens}};
  const RankTensors inputs = random_inputs(graph, bindings, 11);
  World world = World::open(testing::world_options(c.world));
  Executable executable = Executable::compile(graph, world);
  const RankTensors first = testing::run_once(executable, graph, bindings, inputs);
  ASSERT_TRUE(testing::same_as_reference(graph, first, evaluate(graph, inputs, bindings)));
  executable.poison_outputs();
  for (int i = 0; i < 100; ++i) executable.run();
  for (int rank = 0; rank < c.world; ++rank) {
    EXPECT_EQ(executable.output(rank, "y").data, first[static_cast<std::size_t>(rank)][0].data);
    EXPECT_EQ(executable.output(rank, "r").data, first[static_cast<std::size_t>(rank)][1].data);
  }
}

// The plan that runs on virtual ranks is the one that `compile` ships for one rank per GPU.
TEST(Block, TheCpuRunsThePlanOfOneRankPerGpu) {
  const Graph graph = block({4, 8, 512, DType::kBF16});
  PassContext context;
  const auto hash = [&](int ranks_per_device) {
    WorldOptions options = testing::cpu_world_options(4);
    options.ranks_per_device = ranks_per_device;
    World world = World::open(options);
    return Executable::compile(graph, world).program_hash();
  };
  EXPECT_EQ(hash(0), lower(graph, context).hash);
  context.ranks_per_device = 4;
  EXPECT_EQ(hash(4), lower(graph, context).hash);
  EXPECT_NE(hash(4), hash(0));
  EXPECT_THROW(static_cast<void>(hash(-1)), Error);
}

// Persistent allocation: compiled twice, every buffer lies where it lay, and the plans agree.
TEST(Block, EveryBufferHasTheSamePlaceInEveryRun) {
  const Graph graph = block({2, 8, 512, DType::kBF16});
  World world = World::open(testing::world_options(2));
  const Executable first = Executable::compile(graph, world);
  const Executable second = Executable::compile(graph, world);
  EXPECT_EQ(first.program_hash(), second.program_hash());
  ASSERT_EQ(first.buffers().size(), second.buffers().size());
  bool symmetric = false;
  for (std::size_t i = 0; i < first.buffers().size(); ++i) {
    EXPECT_EQ(first.buffers()[i].offset, second.buffers()[i].offset);
    EXPECT_EQ(first.buffers()[i].arena, second.buffers()[i].arena);
    symmetric = symmetric || first.buffers()[i].arena == "symmetric:tp";
  }
  EXPECT_TRUE(symmetric);
}

// The sum over ranks is in rank order whatever the number of tokens: a token's result does not
// depend on its batch.
TEST(Block, ResultsDoNotDependOnTheBatch) {
  const Case c{4, 8, 256, DType::kBF16};
  const Graph graph = block(c);
  World world = World::open(testing::world_options(c.world));
  Executable executable = Executable::compile(graph, world);
  const RankTensors eight = random_inputs(graph, {{"T", 8}}, 5);
  const RankTensors all = testing::run_once(executable, graph, {{"T", 8}}, eight);
  RankTensors one = eight;
  for (auto& rank : one) {
    rank[0].shape[0] = 1;
    rank[0].data.resize(static_cast<std::size_t>(c.hidden) * 2);
  }
  const RankTensors alone = testing::run_once(executable, graph, {{"T", 1}}, one);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(std::memcmp(alone[0][i].data.data(), all[0][i].data.data(), alone[0][i].data.size()),
              0);
  }
}

}  // namespace
}  // namespace braid
