// Writes to parts of a tensor, at places that are known at run time or before, in every kind of
// kernel that ends so: equal to the reference, whatever is not named stays, no finding.

#include <gtest/gtest.h>

#include <functional>

#include "braid/error.h"
#include "run/graph_builder.h"
#include "run/run_graph.h"

namespace braid {
namespace {

constexpr DType kF32 = DType::kF32, kBF16 = DType::kBF16, kI32 = DType::kI32;
const Dim kT = Dim::symbol("T");

Attrs along(std::int64_t dim) { return {{"dim", dim}}; }
Attrs range(std::int64_t dim, AttrValue start, AttrValue end, std::int64_t step = 1) {
  return {{"dim", dim}, {"start", std::move(start)}, {"end", std::move(end)}, {"step", step}};
}

class Build : public testing::GraphBuilder {
 public:
  Build() : GraphBuilder(24, 2) {}
  ValueId state(DType dtype, Shape shape) {
    return graph().add_input({"cache" + std::to_string(graph().inputs().size()),
                              {dtype, std::move(shape)},
                              InputKind::kState,
                              true});
  }
  ValueId slots() { return in(kI32, {kT}, "slots"); }
};

struct Case {
  const char* name;
  std::function<Graph()> graph;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class Updates : public ::testing::TestWithParam<Case> {};

TEST_P(Updates, EqualTheReference) {
  const Graph graph = GetParam().graph();
  for (const std::int64_t tokens : {1, 19}) {
    EXPECT_TRUE(testing::matches_reference_and_unfused(graph, {{"T", tokens}}, 7));
  }
}

TEST_P(Updates, AreClean) {
  testing::need_cpu_device();
  EXPECT_TRUE(testing::runs_clean(GetParam().graph(), {{"T", 19}}, 8));
}

Graph append() {
  Build b;
  const ValueId k = b.state(kBF16, {4, 8, 2, 16});
  const ValueId v = b.state(kBF16, {4, 8, 2, 16});
  const ValueId rows = b.in(kBF16, {kT, 2, 16});
  b.op("append_kv", {k, v, rows, b.op("neg", {b.in(kBF16, {kT, 2, 16})}), b.slots()});
  return b.take({k, v, b.op("sum", {v}, {{"dim", std::vector<std::int64_t>{2}}})});
}

/// Rotated keys, and values that a matmul makes.
Graph fused() {
  Build b;
  const ValueId k = b.state(kF32, {32, 2, 16});
  const ValueId v = b.state(kF32, {32, 24});
  const ValueId slots = b.slots();
  const ValueId table = b.in(kF32, {kT, 1, 8});
  const ValueId turned = b.op("rotary_embedding", {b.in(kF32, {kT, 2, 16}), table, table});
  b.op("index_copy_", {k, slots, turned}, along(0));
  const ValueId y = b.op("mm", {b.in(kF32, {kT, 40}), b.in(kF32, {40, 24})});
  b.op("index_copy_", {v, slots, b.op("silu", {y})}, along(0));
  return b.take({k, v});
}

/// Rows that a norm makes, a column of sums, and a summed product of all ranks.
Graph rows() {
  Build b;
  const ValueId cache = b.state(kF32, {32, 48});
  const ValueId sums = b.state(kF32, {32});
  const ValueId slots = b.slots();
  const ValueId x = b.in(kF32, {kT, 48});
  const ValueId norm = b.op("rms_norm", {x, b.in(kF32, {48})}, {{"eps", 1e-5}});
  b.op("index_copy_", {cache, slots, norm}, along(0));
  const ValueId sum = b.op("sum", {x}, {{"dim", std::vector<std::int64_t>{1}}});
  b.op("index_copy_", {sums, slots, sum}, along(0));
  const ValueId reduced = b.op(
      "wait_tensor", {b.op("all_reduce", {b.in(kF32, {kT, 48})},
                           {{"reduce_op", std::string("sum")}, {"group", std::string("tp")}})});
  const ValueId other = b.state(kF32, {48, 32});
  const Attrs swap{{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{1}}};
  b.op("index_copy_", {other, slots, b.op("transpose", {reduced}, swap)}, along(1));
  return b.take({cache, sums, other});
}

/// Slices by numbers and symbols, strided, of views, one that may be empty; and one tensor's part
/// into another part of it.
Graph slices() {
  Build b;
  const ValueId a = b.state(kF32, {32, 12});
  const ValueId from = b.in(kF32, {kT, 12});
  b.op("copy_", {b.op("slice", {a}, range(0, std::int64_t{2}, std::string("T+2"))), from});
  const ValueId strided = b.op("slice", {a}, range(1, std::int64_t{1}, std::int64_t{12}, 3));
  b.op("copy_", {strided, b.op("exp", {b.in(kF32, {32, 4})})});
  const ValueId s = b.state(kF32, {32, 4});
  const ValueId rest = b.op("slice", {s}, range(0, std::string("T"), std::int64_t{32}));
  b.op("copy_", {rest, b.in(kF32, {kT * -1 + 32, 4})});
  b.op("copy_", {b.op("slice", {s}, range(0, std::int64_t{1}, std::int64_t{9})),
                 b.op("slice", {s}, range(0, std::int64_t{4}, std::int64_t{12}))});
  return b.take({a, s});
}

/// Without a state: of what was computed, of an input that stays, and of one that is read again.
Graph functional() {
  Build b;
  const ValueId x = b.in(kF32, {32, 8});
  const ValueId rows = b.in(kF32, {kT, 8});
  const ValueId slots = b.slots();
  const ValueId y = b.op("index_copy", {b.op("exp", {x}), slots, rows}, along(0));
  const ValueId z = b.op("index_copy", {x, slots, rows}, along(0));
  const ValueId zeros =
      b.op("full", {}, {{"shape", Shape{32, 8}}, {"dtype", kF32}, {"value", 0.5}});
  const ValueId w = b.op("index_copy", {zeros, slots, rows}, along(0));
  return b.take({b.op("abs", {y}), z, b.op("add", {w, x})});
}

INSTANTIATE_TEST_SUITE_P(Each, Updates,
                         ::testing::Values(Case{"append", append}, Case{"fused", fused},
                                           Case{"rows", rows}, Case{"slices", slices},
                                           Case{"functional", functional}),
                         [](const auto& info) { return std::string(info.param.name); });

Graph one_write() {
  Build b;
  const ValueId cache = b.state(kF32, {8, 256});
  b.op("index_copy_", {cache, b.slots(), b.in(kF32, {kT, 256}, "rows")}, along(0));
  return b.take({});
}

/// With these slots on both ranks.
RankTensors inputs_with(const Graph& graph, const std::vector<std::int64_t>& slots) {
  const auto count = static_cast<std::int64_t>(slots.size());
  RankTensors inputs = random_inputs(graph, {{"T", count}}, 9);
  for (auto& of_rank : inputs) of_rank[1] = HostTensor::from_integers(kI32, {count}, slots);
  return inputs;
}

TEST(Write, OutsideIsAnErrorAndTheNextRunIsWell) {
  const Graph graph = one_write();
  Executable executable = Executable::compile(graph, World::open(testing::world_options(2)));
  const auto run = [&](const std::vector<std::int64_t>& slots) {
    const RankTensors inputs = inputs_with(graph, slots);
    executable.prepare({{"T", std::ssize(slots)}});
    testing::set_inputs(executable, graph, inputs);
    executable.run();
    executable.synchronize();
  };
  for (const std::int64_t bad : {8, -1}) {
    const std::string error = testing::error_of([&] { run({1, bad, 3}); });
    EXPECT_NE(error.find("index " + std::to_string(bad) +
                         " is out of range; expected an integer "
                         "from 0 to 7"),
              std::string::npos)
        << error;
  }
  EXPECT_EQ(testing::error_of([&] { run({7, 0}); }), "no error");
}

TEST(Write, OfTwoRowsToOnePlaceIsFound) {
  testing::need_cpu_device();
  const Graph graph = one_write();
  const RankTensors inputs = inputs_with(graph, {5, 2, 5});
  EXPECT_NE(testing::error_of([&] {
              (void)evaluate(graph, inputs, {{"T", 3}});
            }).find("index 5 is there twice"),
            std::string::npos);
  WorldOptions options = testing::cpu_world_options(2);
  options.sanitize = kCheckAll;
  World world = World::open(options);
  Executable executable = Executable::compile(graph, world);
  (void)testing::run_once(executable, graph, {{"T", 3}}, inputs);
  executable.synchronize();
  EXPECT_FALSE(world.device().inspector()->findings().empty());
}

/// A state begins with zeros, keeps what runs leave, and may be set and read.
TEST(State, StaysFromRunToRun) {
  Build b;
  const ValueId cache = b.state(kF32, {8, 2});
  b.op("index_copy_", {cache, b.slots(), b.in(kF32, {kT, 2}, "rows")}, along(0));
  const Graph graph = b.take({});
  Executable executable = Executable::compile(graph, World::open(testing::world_options(2)));
  const auto append = [&](std::int64_t slot, double value) {
    executable.prepare({{"T", 1}});
    for (const int rank : {0, 1}) {
      executable.set_input(rank, "slots", HostTensor::from_integers(kI32, {1}, std::vector{slot}));
      executable.set_input(
          rank, "rows", HostTensor::from_doubles(kF32, {1, 2}, std::vector<double>{value, -value}));
    }
    executable.run();
    return executable.output(1, "cache0").to_doubles();
  };
  std::vector<double> expected(16, 0);
  expected[6] = 5, expected[7] = -5;
  EXPECT_EQ(append(3, 5), expected);
  expected[0] = 7, expected[1] = -7;
  EXPECT_EQ(append(0, 7), expected);
  expected.assign(16, 2);
  executable.set_input(1, "cache0", HostTensor::from_doubles(kF32, {8, 2}, expected));
  expected[14] = 9, expected[15] = -9;
  EXPECT_EQ(append(7, 9), expected);
  Executable other = executable.another();
  other.prepare({{"T", 1}});
  for (const int rank : {0, 1}) {
    other.set_input(rank, "slots",
                    HostTensor::from_integers(kI32, {1}, std::vector<std::int64_t>{1}));
    other.set_input(rank, "rows",
                    HostTensor::from_doubles(kF32, {1, 2}, std::vector<double>{1, 1}));
  }
  other.run();
  expected.assign(16, 0);
  expected[2] = expected[3] = 1;
  EXPECT_EQ(other.output(0, "cache0").to_doubles(), expected);
}

}  // namespace
}  // namespace braid
