// Matmuls with some units of the target off: equal to the reference, without a finding, whatever
// multiplies and copies.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "findings.h"
#include "run/graph_builder.h"
#include "run/run_graph.h"

namespace braid {
namespace {

using testing::GraphBuilder;

const Dim kT = Dim::symbol("T");

struct Case {
  DType a, b;
  std::int64_t k, n;  ///< odd ones make narrow pieces, and tails
  bool transposed;    ///< B is stored [N, K]
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << fmt::format("{}_{}_k{}_n{}{}", dtype_name(c.a), dtype_name(c.b), c.k, c.n,
                      c.transposed ? "_transposed" : "");
}

Graph product(const Case& c) {
  GraphBuilder b(64);
  const ValueId x = b.in(c.a, {kT, c.k});
  ValueId w = b.in(c.b, c.transposed ? Shape{c.n, c.k} : Shape{c.k, c.n});
  if (c.transposed)
    w = b.op("transpose", {w}, {{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{1}}});
  if (!is_float8(c.a)) {
    // A computed operand, too.
    const ValueId y = b.op("mm", {b.op("silu", {x}), w});
    return b.take({y, b.op("add", {b.op("mm", {x, w}), b.in(c.a, {c.n})})});
  }
  return b.take(
      {b.op("scaled_mm", {x, w, b.in(DType::kF32, {kT, 1}), b.in(DType::kF32, {1, c.n})})});
}

struct Outcome {
  RankTensors outputs;
  std::vector<Finding> findings;
};
Outcome run_by(const Graph& graph, const Bindings& bindings, const RankTensors& inputs,
               const std::string& target, Checks checks) {
  WorldOptions options = testing::cpu_world_options(world_size(graph));
  options.sanitize = checks;
  options.target = target;
  World world = World::open(options);
  Executable executable = Executable::compile(graph, world);
  RankTensors outputs = testing::run_once(executable, graph, bindings, inputs);
  return {std::move(outputs), found_by(world.device())};
}

/// For a target of the graph's with these units.
::testing::AssertionResult runs_by(const Graph& graph, const Bindings& bindings,
                                   const std::string& target, Checks checks) {
  const RankTensors inputs = random_inputs(graph, bindings, 5);
  const Outcome run = run_by(graph, bindings, inputs, target, checks);
  if (!run.findings.empty()) return ::testing::AssertionFailure() << run.findings[0].text();
  return testing::same_as_reference(graph, run.outputs, evaluate(graph, inputs, bindings));
}

class UnitsOff : public ::testing::TestWithParam<Case> {};

TEST_P(UnitsOff, MatmulsEqualTheReference) {
  testing::need_cpu_device();
  const Graph graph = product(GetParam());
  for (const char* target : {":cp.async", ":mma.sync", ":fma", "sm_90a:cp.async", "sm_90a:ld/st"}) {
    EXPECT_TRUE(runs_by(graph, {{"T", 33}}, target, kCheckAll)) << target;
  }
}

INSTANTIATE_TEST_SUITE_P(All, UnitsOff,
                         ::testing::Values(Case{DType::kBF16, DType::kBF16, 130, 66, false},
                                           Case{DType::kBF16, DType::kBF16, 128, 64, true},
                                           Case{DType::kF16, DType::kF16, 77, 41, true},
                                           Case{DType::kF16, DType::kF16, 192, 128, false},
                                           Case{DType::kF8E4M3, DType::kF8E4M3, 128, 64, false},
                                           Case{DType::kF8E4M3, DType::kF8E5M2, 144, 48, true},
                                           Case{DType::kF8E5M2, DType::kF8E4M3, 160, 80, false}));

// A gather in the kernel of its matmul, whose loop over K waits for panels.
TEST(Units, AGatherInTheKernelEqualsTheReference) {
  testing::need_cpu_device();
  const auto graph = [] {
    GraphBuilder b(64, 2);
    const ValueId x = b.op("neg", {b.in(DType::kBF16, {kT, 128})});
    b.graph().set_comm_group(x, "tp");
    const ValueId all =
        b.op("all_gather_into_tensor", {x},
             {{"group", std::string("tp")}, {"algorithm", std::string("in_kernel")}});
    b.graph().set_comm_group(all, "tp");
    return b.take({b.op("mm", {all, b.in(DType::kBF16, {128, 96})})});
  }();
  for (const char* target : {":cp.async", ":mma.sync", ":fma"}) {
    EXPECT_TRUE(runs_by(graph, {{"T", 9}}, target, kCheckNothing)) << target;
  }
}

// docs/numerics.md, Units and bits.
TEST(Units, FmaAddsAlongKInOrder) {
  testing::need_cpu_device();
  constexpr std::int64_t kRows = 5, kColumns = 24, kK = 200;
  GraphBuilder b(64);
  const Graph graph = [&] {
    const ValueId x = b.in(DType::kBF16, {kT, kK});
    const ValueId w = b.in(DType::kBF16, {kK, kColumns});
    return b.take({b.op("mm", {x, w}, {{"out_dtype", DType::kF32}})});
  }();
  const Bindings bindings{{"T", kRows}};
  const RankTensors inputs = random_inputs(graph, bindings, 5);
  const std::vector<double> x = inputs[0][0].to_doubles(), w = inputs[0][1].to_doubles();
  std::vector<float> chain(kRows * kColumns);
  for (std::int64_t at = 0; at < std::ssize(chain); ++at) {
    float& sum = chain[static_cast<std::size_t>(at)];
    for (std::int64_t k = 0; k < kK; ++k) {
      sum = std::fma(static_cast<float>(x[static_cast<std::size_t>(at / kColumns * kK + k)]),
                     static_cast<float>(w[static_cast<std::size_t>(k * kColumns + at % kColumns)]),
                     sum);
    }
  }
  // Who copies changes no bit.
  for (const char* target : {":fma", ":cp.async"}) {
    const Outcome run = run_by(graph, bindings, inputs, target, kCheckNothing);
    const auto& got = run.outputs[0][0].data;
    ASSERT_EQ(got.size(), chain.size() * sizeof(float));
    EXPECT_EQ(std::memcmp(got.data(), chain.data(), got.size()), 0) << target;
  }
  const auto bits = [&](const char* target) {
    return run_by(graph, bindings, inputs, target, kCheckNothing).outputs[0][0].data;
  };
  EXPECT_EQ(bits(":mma.sync"), bits(""));
}

// Ranks with other units, and so other kernels, must not run together.
TEST(Units, ThePlanIsAnotherOne) {
  const Graph graph = product({DType::kBF16, DType::kBF16, 128, 64, false});
  const auto hash = [&](const char* target) {
    WorldOptions options = testing::cpu_world_options(1);
    options.target = target;
    World world = World::open(options);
    return Executable::compile(graph, world).program_hash();
  };
  const std::set<std::string> hashes = {hash(""), hash(":cp.async"), hash(":mma.sync"),
                                        hash(":fma")};
  EXPECT_EQ(hashes.size(), 4U);
  EXPECT_EQ(hash("sm_80:mma.sync,cp.async"), hash(""));
}

}  // namespace
}  // namespace braid
