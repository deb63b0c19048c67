// Collectives over groups without symmetric memory, which a communicator runs on a stream of its
// own beside the kernels: every form, dtype and reduction on 2 to 4 ranks, groups on a mesh, with
// others that have symmetric memory.

#include <gtest/gtest.h>

#include <cstring>

#include "braid/error.h"
#include "run/graph_builder.h"
#include "run/run_graph.h"

namespace braid {
namespace {

const Dim kT = Dim::symbol("T");
const Attrs kFar = {{"group", std::string("far")}};

Attrs with(Attrs attrs, std::string key, AttrValue value) {
  attrs.insert_or_assign(std::move(key), std::move(value));
  return attrs;
}
Attrs reducing(const char* op) { return with(kFar, "reduce_op", std::string(op)); }
Attrs along(Attrs attrs, std::int64_t dim) { return with(std::move(attrs), "dim", dim); }

/// A world "tp" with symmetric memory and the same ranks as "far", without.
class Builder : public testing::GraphBuilder {
 public:
  explicit Builder(std::int64_t world) : GraphBuilder(40, world) {
    graph().add_group("far", {world, false, {}});
  }
  ValueId waited(const char* name, std::vector<ValueId> inputs, Attrs attrs) {
    return op("wait_tensor", {op(name, std::move(inputs), std::move(attrs))});
  }
};

/// One collective of each kind, of an input and of a value that is computed in front of it.
Graph every_collective(std::int64_t world, DType dtype) {
  Builder b(world);
  const Dim rows = kT * world;
  std::vector<ValueId> outputs;
  const auto both = [&](const char* op, Shape shape, const Attrs& attrs) {
    const ValueId x = b.in(dtype, std::move(shape));
    outputs.push_back(b.waited(op, {x}, attrs));
    outputs.push_back(b.op("neg", {b.waited(op, {b.op("neg", {x})}, attrs)}));
  };
  both("all_reduce", {kT, 33}, reducing("sum"));
  both("all_reduce", {kT, 8}, reducing("max"));
  both("reduce_scatter_tensor", {rows, 5}, reducing(dtype == DType::kI32 ? "min" : "avg"));
  both("reduce_scatter_tensor", {3, 2 * world, 5}, along(reducing("product"), 1));
  both("all_gather_into_tensor", {kT, 7}, kFar);
  both("all_gather_into_tensor", {kT, 3, 7}, along(kFar, -1));
  both("all_to_all_single", {rows, 6}, kFar);
  both("broadcast", {kT, 65}, with(kFar, "src", world - 1));
  both("shard_dim_alltoall", {kT, 4 * world},
       with(with(kFar, "gather_dim", std::int64_t{0}), "shard_dim", std::int64_t{1}));
  // Rank r sends to rank s, and both keep the rest.
  std::vector<std::int64_t> splits;
  for (std::int64_t from = 0; from < world; ++from) {
    for (std::int64_t to = 0; to < world; ++to) splits.push_back(from == to ? 3 : 0);
  }
  splits[0] = splits[static_cast<std::size_t>(world + 1)] = 1;
  splits[1] = splits[static_cast<std::size_t>(world)] = 2;
  both("all_to_all_single", {3, 9}, with(kFar, "input_split_sizes", splits));
  return b.take(outputs);
}

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
  for (const DType dtype : {DType::kI64, DType::kU8}) {
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
  Builder b(4);
  b.graph().add_group("near", {2, true, {{0, 1}, {2, 3}}});
  b.graph().add_group("across", {2, false, {{0, 2}, {1, 3}}});
  const auto of = [](Attrs attrs, const char* group) {
    return with(std::move(attrs), "group", std::string(group));
  };
  const ValueId x = b.in(DType::kBF16, {kT, 64});
  const ValueId w = b.in(DType::kBF16, {64, 64});
  ValueId y = x;
  std::vector<ValueId> outputs;
  for (int layer = 0; layer < 3; ++layer) {
    const ValueId h = b.op("mm", {y, w});
    const ValueId c = b.op("all_reduce", {h}, of(reducing("avg"), "across"));
    const ValueId near = b.waited("all_reduce", {b.op("silu", {y})}, of(reducing("avg"), "near"));
    const ValueId far = b.op("wait_tensor", {c});
    y = b.op("tanh", {b.op("add", {near, far})});
    // A communication buffer that a communicator writes, and one that it reads.
    outputs.push_back(b.waited("reduce_scatter_tensor",
                               {b.waited("all_gather_into_tensor", {far}, of(kFar, "across"))},
                               of(reducing("max"), "near")));
  }
  outputs.push_back(b.waited("broadcast", {y}, with(kFar, "src", std::int64_t{2})));
  const Graph graph = b.take(outputs);
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
