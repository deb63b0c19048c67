#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "braid/executable.h"
#include "braid/graph.h"
#include "braid/reference.h"
#include "run/graph_builder.h"
#include "run/random_graph.h"
#include "run/run_graph.h"
#include "run/seed.h"
#include "runtime/cpu_tricks.h"

namespace braid {
namespace {

/// $BRAID_CPU_WITHOUT, for as long as this lives.
class Without {
 public:
  explicit Without(const std::string& names) { ::setenv("BRAID_CPU_WITHOUT", names.c_str(), 1); }
  ~Without() { ::unsetenv("BRAID_CPU_WITHOUT"); }
};

std::vector<std::string> all_switches() {
  std::vector<std::string> names{"all"};
#define BRAID_CPU_TRICK(name) names.emplace_back(#name);
  BRAID_CPU_TRICKS(BRAID_CPU_TRICK)
#undef BRAID_CPU_TRICK
  return names;
}

RankTensors run(const Graph& graph, const Bindings& bindings, const RankTensors& inputs) {
  World world = World::open(testing::cpu_world_options(world_size(graph)));
  Executable executable = Executable::compile(graph, world, {});
  return testing::run_once(executable, graph, bindings, inputs);
}

void expect_equal_bits(const Graph& graph, const Bindings& bindings, std::uint64_t seed) {
  const RankTensors inputs = random_inputs(graph, bindings, seed);
  const RankTensors expected = run(graph, bindings, inputs);
  ASSERT_TRUE(testing::same_as_reference(graph, expected, evaluate(graph, inputs, bindings)));
  for (const std::string& name : all_switches()) {
    const Without without(name);
    const RankTensors got = run(graph, bindings, inputs);
    for (std::size_t rank = 0; rank < got.size(); ++rank) {
      for (std::size_t i = 0; i < got[rank].size(); ++i) {
        EXPECT_EQ(got[rank][i].data, expected[rank][i].data)
            << "without " << name << ", output " << i << " of rank " << rank;
      }
    }
  }
}

TEST(Tricks, ChangeNoBitOfRandomGraphs) {
  for (std::uint64_t seed = testing::base_seed(); seed < testing::base_seed() + 2; ++seed) {
    expect_equal_bits(testing::random_graph(seed), {{"T", 7}}, seed);
  }
}

// Rows that several warps share, which all need the sum of; one ends in the middle of a warp's
// words.
TEST(Tricks, ChangeNoBitOfNormsAndAProduct) {
  constexpr DType kBF16 = DType::kBF16;
  testing::GraphBuilder b(96);
  const Dim tokens = Dim::symbol("T");
  const ValueId x = b.in(kBF16, {tokens, 512});
  std::vector<ValueId> outputs{b.op("mm", {x, b.in(kBF16, {512, 512})})};
  for (const std::int64_t width : {4096, 4104}) {
    const ValueId rows = b.op("add", {b.in(kBF16, {tokens, width}), b.in(kBF16, {tokens, width})});
    outputs.push_back(b.op("rms_norm", {rows, b.in(kBF16, {width})}, {{"eps", 1e-5}}));
    outputs.push_back(rows);
  }
  expect_equal_bits(b.take(outputs), {{"T", 33}}, 5);
}

TEST(Tricks, AreNamedWhereOneIsUnknown) {
  const Without without("prefetches,speed");
  EXPECT_EQ(testing::error_of(cpu_tricks_from_environment),
            "BRAID_CPU_WITHOUT: found \"speed\"; expected some of all, shared_fibers, "
            "direct_launches, kept_values, wide_values, joined_products, common_work, "
            "recomputed_values, guarded_rows, prefetches");
}

}  // namespace
}  // namespace braid
