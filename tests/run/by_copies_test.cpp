// All-gathers and reduce-scatters as copies between the ranks, beside the kernels.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "run/chunks.h"
#include "run/graph_builder.h"
#include "run/run_graph.h"

namespace braid::testing {
namespace {

struct Case {
  std::int64_t world;
  DType dtype;
  std::int64_t width;  ///< with some a chunk is not aligned
};

class ByCopies : public ::testing::TestWithParam<Case> {
 protected:
  ByCopies() : builder_(40, GetParam().world) {}
  ValueId in(Shape shape) { return builder_.in(GetParam().dtype, std::move(shape)); }
  ValueId waited(const char* op, ValueId operand, const Attrs& attrs) {
    return builder_.op("wait_tensor", {builder_.op(op, {operand}, attrs)});
  }
  /// The reference's values, and the bits of one kernel in one shot.
  void expect_right(const std::vector<ValueId>& outputs) {
    const Graph graph = builder_.take(outputs);
    const World world = World::open(world_options(world_size(graph)));
    Executable copies = Executable::compile(graph, world, by_copies());
    EXPECT_NE(copies.program_json().find("source_peer"), std::string::npos);
    Executable kernels = Executable::compile(graph, world);
    EXPECT_EQ(kernels.program_json().find("source_peer"), std::string::npos);
    for (const std::int64_t tokens : {1, 7}) {
      SCOPED_TRACE(tokens);
      const Bindings bindings{{"T", tokens}};
      copies.prepare(bindings);
      kernels.prepare(bindings);
      const RankTensors inputs = random_inputs(graph, bindings, static_cast<std::uint64_t>(tokens));
      const RankTensors got = run_once(copies, graph, bindings, inputs);
      EXPECT_TRUE(same_as_reference(graph, got, evaluate(graph, inputs, bindings)));
      const RankTensors expected = run_once(kernels, graph, bindings, inputs);
      for (std::size_t rank = 0; rank < got.size(); ++rank) {
        for (std::size_t i = 0; i < got[rank].size(); ++i) {
          EXPECT_EQ(got[rank][i].data, expected[rank][i].data) << "rank " << rank << ", " << i;
        }
      }
    }
  }

  GraphBuilder builder_;
};

TEST_P(ByCopies, GatherAnInputAndAComputedValue) {
  const auto [world, dtype, width] = GetParam();
  const ValueId x = in({kT, width});
  const ValueId computed = builder_.op("neg", {x});
  const ValueId all = waited("all_gather_into_tensor", computed, kTp);
  expect_right({waited("all_gather_into_tensor", x, kTp), builder_.op("neg", {all}), computed});
}

TEST_P(ByCopies, ScatterASumAndAMean) {
  const auto [world, dtype, width] = GetParam();
  const ValueId x = in({kT * world, width});
  const ValueId sum = waited("reduce_scatter_tensor", builder_.op("neg", {x}), scattered("sum"));
  const ValueId mean = waited("reduce_scatter_tensor", x, scattered("avg"));
  expect_right({builder_.op("add", {sum, mean}), mean});
}

TEST_P(ByCopies, OneUponTheOther) {
  const auto [world, dtype, width] = GetParam();
  ValueId x = in({kT, width});
  for (int layer = 0; layer < 3; ++layer) {
    const ValueId all = waited("all_gather_into_tensor", builder_.op("neg", {x}), kTp);
    x = waited("reduce_scatter_tensor", builder_.op("relu", {all}), scattered("avg"));
  }
  expect_right({x});
}

INSTANTIATE_TEST_SUITE_P(Cases, ByCopies,
                         ::testing::Values(Case{2, kF32, 8}, Case{3, kBF16, 5}, Case{4, kF16, 64},
                                           Case{3, kF32, 1}),
                         [](const auto& info) {
                           return fmt::format("Ranks{}{}Width{}", info.param.world,
                                              dtype_name(info.param.dtype), info.param.width);
                         });

TEST(ByCopiesOfIntegers, AddWithoutRounding) {
  GraphBuilder b(7, 3);
  const ValueId x = b.in(DType::kI32, {kT * 3, 5});
  const Graph graph =
      b.take({b.op("wait_tensor", {b.op("reduce_scatter_tensor", {x}, scattered("sum"))})});
  EXPECT_TRUE(matches_reference(graph, {{"T", 4}}, 3, by_copies()));
}

// The chunk of a rank is that of its place in its own instance of the group; a buffer that one
// group cuts is copied for the other one.
TEST(ByCopiesOnAMesh, AreThoseOfTheGroup) {
  for (const bool rows : {false, true}) {
    Graph graph("mesh");
    graph.add_symbol("T", {1, 8});
    const auto ranks = [&](bool of_rows) -> std::vector<std::vector<std::int64_t>> {
      if (of_rows) return {{0, 1}, {3, 2}};
      return {{0, 2}, {1, 3}};
    };
    graph.add_group("tp", {2, true, ranks(rows)});
    graph.add_group("dp", {2, true, ranks(!rows)});
    const auto in = [&](const char* name, Shape shape) {
      return graph.add_input({name, {kF32, std::move(shape)}, InputKind::kActivation, true});
    };
    const auto add = [&](const char* name, const char* op, const std::vector<ValueId>& inputs,
                         const Attrs& attrs) {
      return graph.node(graph.add_node(name, op, inputs, attrs)).outputs[0];
    };
    Attrs over_dp = scattering(0, "sum", false);
    over_dp.insert_or_assign("group", std::string("dp"));
    const ValueId h = add("h", "neg", {in("x", {kT * 4, 8})}, {});
    const ValueId fused = add("f", "fused_matmul_reduce_scatter", {h, in("w", {8, 4})}, over_dp);
    const ValueId sum = add("r", "reduce_scatter_tensor", {h}, scattered("sum"));
    const ValueId gather = add("g", "all_gather_into_tensor", {fused}, kTp);
    graph.add_output(add("rw", "wait_tensor", {sum}, {}));
    graph.add_output(add("gw", "wait_tensor", {gather}, {}));
    PassConfig config = by_copies();
    for (const bool chunks : {false, true}) {
      config.always_pipeline = chunks;
      EXPECT_TRUE(matches_reference(graph, {{"T", 3}}, 9, config));
    }
  }
}

TEST(ByCopiesOfSeveral, ACoalescedFormIsOneForEachOperand) {
  GraphBuilder b(7, 3);
  const ValueId x = b.op("neg", {b.in(kF32, {kT * 3, 4})});
  const ValueId y = b.in(kBF16, {kT * 6});
  const std::vector<ValueId> parts =
      b.node("reduce_scatter_tensor_coalesced", {x, y}, scattered("sum")).outputs;
  const Graph graph = b.take({b.op("wait_tensor", {parts[1]}), b.op("wait_tensor", {parts[0]})});
  EXPECT_TRUE(matches_reference(graph, {{"T", 4}}, 3, by_copies()));
  EXPECT_TRUE(runs_clean(graph, {{"T", 4}}, 3, by_copies()));
}

}  // namespace
}  // namespace braid::testing
