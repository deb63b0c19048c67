// Every collective with real data movement, on 2 to 5 ranks: every dim, reduction and form, what
// stands in front of it and behind it, even and uneven chunks, groups on a mesh.

#include <gtest/gtest.h>

#include "run/graph_builder.h"
#include "run/run_graph.h"

namespace braid {
namespace {

const Attrs kGroup = {{"group", std::string("tp")}};

Attrs with(Attrs attrs, std::string key, AttrValue value) {
  attrs.insert_or_assign(std::move(key), std::move(value));
  return attrs;
}
Attrs reducing(const char* reduce_op) { return with(kGroup, "reduce_op", std::string(reduce_op)); }
Attrs along(Attrs attrs, std::int64_t dim) { return with(std::move(attrs), "dim", dim); }

/// All inputs are of one dtype.
class Builder : public testing::GraphBuilder {
 public:
  explicit Builder(std::int64_t world, DType dtype = DType::kF32)
      : GraphBuilder(40, world), dtype_(dtype) {}
  ValueId input(Shape shape) { return in(dtype_, std::move(shape)); }
  ValueId waited(const char* name, std::vector<ValueId> inputs, Attrs attrs) {
    return op("wait_tensor", {op(name, std::move(inputs), std::move(attrs))});
  }

 private:
  DType dtype_;
};

struct Case {
  const char* name;
  const char* op;
  Attrs attrs;
  std::int64_t world;
  Shape shape;
  DType dtype = DType::kF32;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class Collectives : public ::testing::TestWithParam<Case> {
 protected:
  /// The collective of a value that is computed in front of it, or of an input, and a function of
  /// its result.
  static Graph graph(bool computed) {
    const Case& c = GetParam();
    Builder b(c.world, c.dtype);
    ValueId x = b.input(c.shape);
    if (computed) x = b.op("sub", {x, b.input(c.shape)});
    const ValueId w = b.waited(c.op, {x}, c.attrs);
    const bool whole = c.dtype == DType::kI32;
    return b.take({w, b.op("neg", {whole ? w : b.op("silu", {w})})});
  }
};

TEST_P(Collectives, EqualTheReferenceAndUnfused) {
  for (std::int64_t tokens : {1, 7}) {
    EXPECT_TRUE(testing::matches_reference_and_unfused(graph(false), {{"T", tokens}}, 11));
    EXPECT_TRUE(testing::matches_reference_and_unfused(graph(true), {{"T", tokens}}, 12));
  }
}

TEST_P(Collectives, RunCleanUnderTheSanitizer) {
  EXPECT_TRUE(testing::runs_clean(graph(true), {{"T", 3}}, 13));
}

const Dim kT = Dim::symbol("T");
constexpr DType kBF16 = DType::kBF16, kF16 = DType::kF16;

INSTANTIATE_TEST_SUITE_P(
    Each, Collectives,
    ::testing::Values(
        Case{"avg_of_3", "all_reduce", reducing("avg"), 3, {kT, 100}, kBF16},
        Case{"max", "all_reduce", reducing("max"), 4, {kT, 33}},
        Case{"min_of_integers", "all_reduce", reducing("min"), 3, {kT, 8}, DType::kI32},
        Case{"product", "all_reduce", reducing("product"), 4, {kT, 64}, kF16},
        Case{"gather_rows", "all_gather_into_tensor", kGroup, 4, {kT, 96}, kBF16},
        Case{"gather_rows_odd", "all_gather_into_tensor", kGroup, 3, {kT, 37}},
        Case{"gather_columns", "all_gather_into_tensor", along(kGroup, -1), 2, {kT, 40}, kF16},
        Case{"gather_columns_odd", "all_gather_into_tensor", along(kGroup, 1), 5, {kT, 3}},
        Case{"gather_middle", "all_gather_into_tensor", along(kGroup, 1), 2, {3, kT, 24}, kBF16},
        Case{"gather_vector", "all_gather_into_tensor", kGroup, 4, {kT}},
        Case{"gather_integers", "all_gather_into_tensor", kGroup, 2, {kT, 5}, DType::kI32},
        Case{"scatter_rows", "reduce_scatter_tensor", reducing("sum"), 4, {kT * 4, 96}, kBF16},
        Case{"scatter_rows_avg", "reduce_scatter_tensor", reducing("avg"), 3, {kT * 3, 50}},
        Case{"scatter_columns",
             "reduce_scatter_tensor",
             along(reducing("sum"), 1),
             2,
             {kT, 64},
             kF16},
        Case{"scatter_middle_max",
             "reduce_scatter_tensor",
             along(reducing("max"), 1),
             2,
             {3, kT * 2, 10}},
        Case{"all_to_all", "all_to_all_single", kGroup, 4, {kT * 4, 24}, kBF16},
        Case{"all_to_all_odd", "all_to_all_single", kGroup, 3, {kT * 3, 7}},
        Case{
            "all_to_all_uneven",
            "all_to_all_single",
            with(kGroup, "input_split_sizes", std::vector<std::int64_t>{3, 1, 2, 1, 3, 2, 2, 2, 2}),
            3,
            {6, 40},
            kBF16},
        Case{"all_to_all_empty_chunks",
             "all_to_all_single",
             with(kGroup, "output_split_sizes", std::vector<std::int64_t>{0, 4, 4, 0}),
             2,
             {4, 9}},
        Case{"broadcast", "broadcast", with(kGroup, "src", std::int64_t{2}), 4, {kT, 65}, kF16},
        Case{"shard_dim_0_to_1",
             "shard_dim_alltoall",
             with(with(kGroup, "gather_dim", std::int64_t{0}), "shard_dim", std::int64_t{1}),
             4,
             {kT, 64},
             kBF16},
        Case{"shard_dim_2_to_0",
             "shard_dim_alltoall",
             with(with(kGroup, "gather_dim", std::int64_t{2}), "shard_dim", std::int64_t{0}),
             3,
             {6, kT, 5}}),
    [](const auto& info) { return std::string(info.param.name); });

/// Every rank its chunk of what all have, in front of a norm, a matmul and a collective.
TEST(Shard, IsIndexArithmeticInTheKernelThatReadsIt) {
  for (const DType dtype : {kBF16, DType::kF32}) {
    Builder b(3, dtype);
    const ValueId x = b.input({kT * 3, 48});
    const ValueId rows = b.op("shard", {x}, kGroup);
    const ValueId columns = b.op("shard", {b.op("neg", {x})}, along(kGroup, 1));
    const ValueId normed = b.op("rms_norm", {rows, b.input({48})}, {{"eps", 1e-5}});
    const ValueId product = b.op("mm", {columns, b.input({16, 24})});
    const ValueId whole = b.waited("all_gather_into_tensor", {normed}, kGroup);
    const ValueId sum =
        b.op("add", {b.waited("reduce_scatter_tensor", {x}, reducing("sum")), rows});
    const Graph graph = b.take({rows, columns, normed, product, whole, sum});
    EXPECT_TRUE(testing::matches_reference_and_unfused(graph, {{"T", 5}}, 3));
    EXPECT_TRUE(testing::runs_clean(graph, {{"T", 2}}, 4));
  }
}

TEST(Shard, RanksOfTwoGroupsAreTwoKernels) {
  Builder b(4);
  b.graph().add_group("rows", {2, true, {{0, 1}, {2, 3}}});
  const ValueId x = b.input({kT * 4, 16});
  const ValueId sum = b.waited("reduce_scatter_tensor", {b.input({kT * 8, 16})}, reducing("avg"));
  const ValueId own = b.op("shard", {x}, with(kGroup, "group", std::string("rows")));
  const Graph graph = b.take({b.op("add", {sum, own})});
  EXPECT_TRUE(testing::matches_reference_and_unfused(graph, {{"T", 5}}, 3));
}

// A2-09, A2-15: the caller's tensors hold the results.
TEST(InPlace, FormsWriteTheCallersInputs) {
  Builder b(3, kBF16);
  const ValueId x = b.input({kT, 40}), y = b.input({40, kT}), z = b.input({kT, 40});
  const ValueId before = b.op("neg", {x});
  b.waited("all_reduce_", {x}, reducing("sum"));
  const ValueId t = b.op("transpose", {y}, {{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{1}}});
  b.waited("all_reduce_", {t}, reducing("max"));
  b.waited("broadcast_", {z}, with(kGroup, "src", std::int64_t{1}));
  const Graph graph = b.take({before, x, y, z, b.op("relu", {z})});
  EXPECT_TRUE(testing::matches_reference(graph, {{"T", 5}}, 3));
  EXPECT_TRUE(testing::runs_clean(graph, {{"T", 5}}, 4));
}

// A2-10, A2-13, A2-14
TEST(Coalesced, FormsGiveEveryOperandItsResult) {
  Builder b(2);
  const ValueId x = b.input({kT, 24}), y = b.input({6}), out = b.input({kT * 2, 24});
  std::vector<ValueId> outputs;
  const auto wait_all = [&](const Node& node) {
    for (ValueId value : std::vector<ValueId>(node.outputs)) {
      outputs.push_back(b.op("wait_tensor", {value}));
    }
  };
  wait_all(b.node("all_gather_into_tensor_coalesced", {x, y}, kGroup));
  wait_all(b.node("reduce_scatter_tensor_coalesced", {out, y}, reducing("sum")));
  wait_all(b.node("all_reduce_coalesced", {x, y}, reducing("sum")));
  wait_all(b.node("all_reduce_coalesced_", {y, x}, reducing("avg")));
  b.waited("all_gather_into_tensor_out", {b.op("neg", {x}), out}, kGroup);
  outputs.insert(outputs.end(), {x, y, out});
  const Graph graph = b.take(outputs);
  EXPECT_TRUE(testing::matches_reference(graph, {{"T", 5}}, 3));
  EXPECT_TRUE(testing::runs_clean(graph, {{"T", 2}}, 4));
}

TEST(Mesh, GroupsOfRowsAndColumnsDoNotMix) {
  Builder b(4, kBF16);
  Graph& graph = b.graph();
  graph.add_group("rows", {2, true, {{0, 1}, {2, 3}}});
  graph.add_group("columns", {2, true, {{0, 2}, {1, 3}}});
  const auto of = [](Attrs attrs, const char* group) {
    return with(std::move(attrs), "group", std::string(group));
  };
  const ValueId x = b.input({kT, 48});
  const ValueId g = b.waited("all_gather_into_tensor", {x}, of(along(kGroup, 1), "rows"));
  const ValueId s = b.waited("reduce_scatter_tensor", {b.op("silu", {g})},
                             of(along(reducing("sum"), 1), "columns"));
  const ValueId a = b.waited("all_reduce", {s}, of(reducing("max"), "rows"));
  const ValueId e = b.waited("broadcast", {b.op("neg", {a})},
                             of(with(kGroup, "src", std::int64_t{1}), "columns"));
  const ValueId w = b.waited("all_reduce", {e}, reducing("sum"));
  const Graph mesh = b.take({g, s, a, w});
  EXPECT_TRUE(testing::matches_reference_and_unfused(mesh, {{"T", 5}}, 3));
  EXPECT_TRUE(testing::runs_clean(mesh, {{"T", 5}}, 4));
}

// A2-17: a buffer that a peer may still read is not written again, with everything in one arena.
TEST(BufferSafety, CollectivesInARowShareTheArena) {
  Builder b(3);
  ValueId x = b.input({kT * 3, 32});
  for (int i = 0; i < 3; ++i) {
    x = b.waited("all_to_all_single", {b.op("neg", {x})}, kGroup);
    x = b.waited("reduce_scatter_tensor", {b.op("tanh", {x})}, reducing("avg"));
    x = b.waited("all_gather_into_tensor", {b.op("neg", {x})}, kGroup);
  }
  const Graph graph = b.take({x});
  EXPECT_TRUE(testing::matches_reference_and_unfused(graph, {{"T", 5}}, 3));
  EXPECT_TRUE(testing::runs_clean(graph, {{"T", 5}}, 4));
}

// Each thread of a block signals to several peers and waits for several; the last rank's flags are
// those that a block of one thread for each peer would miss.
/// On one GPU, no more ranks wait for each other than it has multiprocessors.
void need_a_gpu_per_rank() {
  if (testing::world_options(1).device == DeviceKind::kCuda) {
    GTEST_SKIP() << "the kernels of so many ranks do not wait for each other on one GPU";
  }
}

TEST(LargeWorlds, MoreRanksThanThreadsOfABlock) {
  need_a_gpu_per_rank();
  if (IsSkipped()) return;
  const auto graph = [](std::int64_t world) {
    Builder b(world);
    const ValueId x = b.op("neg", {b.input({kT})});
    return b.take({b.waited("broadcast", {x}, with(kGroup, "src", world - 1))});
  };
  EXPECT_TRUE(testing::matches_reference(graph(257), {{"T", 5}}, 3));
  EXPECT_TRUE(testing::runs_clean(graph(130), {{"T", 5}}, 4));
}

TEST(LargeWorlds, TheSumOfMoreRanksThanThreads) {
  need_a_gpu_per_rank();
  if (IsSkipped()) return;
  Builder b(130);
  const Graph graph = b.take({b.waited("all_reduce", {b.input({kT})}, reducing("sum"))});
  EXPECT_TRUE(testing::matches_reference(graph, {{"T", 5}}, 3));
}

}  // namespace
}  // namespace braid
