// Collectives over groups without symmetric memory, which a communicator runs on a stream of its
// own beside the kernels: every form, dtype and reduction on 2 to 4 ranks, groups on a mesh, with
// others that have symmetric memory.

#include <gtest/gtest.h>

#include "run/far_graphs.h"
#include "run/run_graph.h"

namespace braid {
namespace {

using testing::along;
using testing::every_collective;
using testing::kFar;
using testing::kT;
using testing::reducing;
using testing::with;
using Builder = testing::FarBuilder;

class Communicators : public ::testing::TestWithParam<std::tuple<int, DType>> {};

TEST_P(Communicators, EveryCollectiveEqualsTheReference) {
  const auto [world, dtype] = GetParam();
  const Graph graph = every_collective(world, dtype);
  for (const std::int64_t tokens : {1, 7}) {
    EXPECT_TRUE(testing::matches_reference_and_unfused(graph, {{"T", tokens}}, 5));
  }
}

INSTANTIATE_TEST_SUITE_P(Each, Communicators,
                         ::testing::Combine(::testing::Values(2, 3, 4),
                                            ::testing::Values(DType::kF32, DType::kBF16,
                                                              DType::kF16, DType::kI32)),
                         [](const auto& info) {
                           return "world_" + std::to_string(std::get<0>(info.param)) + "_" +
                                  std::string(dtype_name(std::get<1>(info.param)));
                         });

TEST(Communicator, MovesAndReducesOtherIntegersAndMovesBytes) {
  Builder b(3);
  std::vector<ValueId> outputs;
  for (const DType dtype : {DType::kI64, DType::kI8, DType::kU8}) {
    for (const char* reduce : {"sum", "max", "min", "product"}) {
      outputs.push_back(b.waited("all_reduce", {b.in(dtype, {kT, 5})}, reducing(reduce)));
    }
  }
  outputs.push_back(b.waited("all_gather_into_tensor", {b.in(DType::kBool, {kT, 5})}, kFar));
  EXPECT_TRUE(testing::matches_reference(b.take(outputs), {{"T", 3}}, 8));
}

/// Runs behind each other, without the host in between, and what nothing orders is found.
TEST(Communicator, IsCleanUnderTheSanitizer) {
  EXPECT_TRUE(testing::runs_clean(every_collective(2, DType::kF32), {{"T", 2}}, 5));
  EXPECT_TRUE(testing::runs_clean(every_collective(3, DType::kBF16), {{"T", 2}}, 5));
}

/// The bits are those of the kernels that do the same with symmetric memory.
TEST(Communicator, GivesTheBitsOfSymmetricMemory) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    Builder b(4);
    const ValueId x = b.op("neg", {b.in(dtype, {kT, 64})});
    std::vector<ValueId> outputs;
    for (const char* reduce : {"sum", "avg", "max", "min", "product"}) {
      for (const char* group : {"far", "tp"}) {
        const Attrs attrs = with(reducing(reduce), "group", std::string(group));
        outputs.push_back(b.waited("all_reduce", {x}, attrs));
      }
    }
    const Graph graph = b.take(outputs);
    const Bindings bindings{{"T", 9}};
    World world = World::open(testing::world_options(4));
    Executable executable = Executable::compile(graph, world);
    const RankTensors got =
        testing::run_once(executable, graph, bindings, random_inputs(graph, bindings, 3));
    for (std::size_t rank = 0; rank < got.size(); ++rank) {
      for (std::size_t i = 0; i < got[rank].size(); i += 2) {
        EXPECT_EQ(got[rank][i].data, got[rank][i + 1].data) << dtype_name(dtype) << " " << i;
        EXPECT_EQ(got[rank][i].data, got[0][i].data);
      }
    }
  }
}

TEST(Communicator, GroupsOnAMeshWithAndWithoutSymmetricMemory) {
  const Graph graph = testing::mesh_of_groups();
  EXPECT_TRUE(testing::matches_reference_and_unfused(graph, {{"T", 5}}, 3));
  EXPECT_TRUE(testing::runs_clean(graph, {{"T", 2}}, 4));
}

TEST(Communicator, CoalescedAndInPlaceForms) {
  Builder b(2);
  const ValueId x = b.in(DType::kF32, {kT, 24}), y = b.in(DType::kF32, {6});
  const ValueId out = b.in(DType::kF32, {kT * 2, 24});
  std::vector<ValueId> outputs;
  const auto wait_all = [&](const Node& node) {
    for (ValueId value : std::vector<ValueId>(node.outputs)) {
      outputs.push_back(b.op("wait_tensor", {value}));
    }
  };
  wait_all(b.node("all_gather_into_tensor_coalesced", {x, y}, kFar));
  wait_all(b.node("reduce_scatter_tensor_coalesced", {out, y}, reducing("sum")));
  wait_all(b.node("all_reduce_coalesced", {x, y}, reducing("sum")));
  wait_all(b.node("all_reduce_coalesced_", {y, x}, reducing("avg")));
  b.waited("all_gather_into_tensor_out", {b.op("neg", {x}), out}, kFar);
  outputs.insert(outputs.end(), {x, y, out});
  const Graph graph = b.take(outputs);
  EXPECT_TRUE(testing::matches_reference(graph, {{"T", 5}}, 3));
  EXPECT_TRUE(testing::runs_clean(graph, {{"T", 2}}, 4));
}

/// The fused forms are not cut into chunks: nobody's memory can be read.
TEST(Communicator, OfFusedMatmuls) {
  Builder b(2);
  const ValueId x = b.in(DType::kBF16, {kT, 32}), w = b.in(DType::kBF16, {32, 16});
  const ValueId y = b.op("fused_all_gather_matmul", {x, w},
                         with(with(kFar, "gather_dim", std::int64_t{0}), "return_A", false));
  const ValueId z =
      b.op("fused_matmul_reduce_scatter", {b.op("neg", {y}), b.in(DType::kBF16, {16, 8})},
           with(reducing("sum"), "scatter_dim", std::int64_t{0}));
  const Graph graph = b.take({y, z});
  EXPECT_TRUE(testing::matches_reference(graph, {{"T", 5}}, 3));
}

/// A group of one needs none.
TEST(Communicator, OfOneRankIsTheIdentity) {
  Builder b(1);
  const ValueId x = b.in(DType::kF32, {kT, 4});
  const Graph graph = b.take({b.waited("all_reduce", {b.op("neg", {x})}, reducing("sum")),
                              b.waited("all_gather_into_tensor", {x}, along(kFar, 1))});
  EXPECT_TRUE(testing::matches_reference(graph, {{"T", 5}}, 3));
}

TEST(Communicator, TraceShowsItOnAStreamOfItsOwn) {
  Builder b(2);
  const ValueId x = b.op("neg", {b.in(DType::kF32, {kT, 64})});
  const Graph graph = b.take({b.op("neg", {b.waited("all_reduce", {x}, reducing("sum"))})});
  World world = World::open(testing::world_options(2));
  Executable executable = Executable::compile(graph, world);
  const Bindings bindings{{"T", 5}};
  (void)testing::run_once(executable, graph, bindings, random_inputs(graph, bindings, 3));
  int seen = 0;
  for (const StepTime& time : executable.trace()) {
    if (time.what != "all_reduce") continue;
    ++seen;
    EXPECT_EQ(time.stream, 1);
    EXPECT_LE(time.begin_us, time.end_us);
  }
  EXPECT_EQ(seen, 2);
}

}  // namespace
}  // namespace braid
