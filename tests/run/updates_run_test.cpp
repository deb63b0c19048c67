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

/// Into caches of 8 bits, with scales.
Graph quantised() {
  Build b;
  const ValueId k = b.state(DType::kF8E4M3, {4, 8, 2, 16});
  const ValueId v = b.state(DType::kF8E5M2, {4, 8, 2, 16});
  const ValueId rows = b.in(kBF16, {kT, 2, 16});
  b.op("append_kv", {k, v, rows, b.op("neg", {b.in(kBF16, {kT, 2, 16})}), b.slots(), b.in(kF32, {}),
                     b.in(kF32, {1})});
  return b.take({k, v});
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

/// Normed and rotated keys, and values, in one kernel.
Graph normed() {
  Build b;
  const ValueId k = b.state(kBF16, {4, 8, 2, 32});
  const ValueId v = b.state(kBF16, {4, 8, 2, 32});
  const ValueId table = b.in(kBF16, {kT, 1, 16});
  const ValueId norm =
      b.op("rms_norm", {b.in(kBF16, {kT, 2, 32}), b.in(kBF16, {32})}, {{"eps", 1e-5}});
  const ValueId turned = b.op("rotary_embedding", {norm, table, table});
  b.op("append_kv", {k, v, turned, b.in(kBF16, {kT, 2, 32}), b.slots()});
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

/// Rows at two indices each, computed in the kernel, and elements at one each, in lists and not.
Graph placed() {
  Build b;
  const ValueId cache = b.state(kBF16, {4, 8, 2, 16});
  const ValueId k = b.op("neg", {b.in(kBF16, {kT, 2, 16})});
  b.op("index_put_", {cache, b.in(kI32, {kT}, "block"), b.in(kI32, {kT}, "offset"), k});
  const ValueId table = b.state(kF32, {64, 24});
  const ValueId rows = b.op("silu", {b.in(kF32, {kT, 2, 24})});
  b.op("index_put_", {table, b.in(kI32, {kT, 2}, "places"), rows});
  const ValueId wide = b.state(kF32, {kT + 2, 40});
  const ValueId columns = b.in(kI32, {kT, 30}, "columns");
  b.op("scatter_", {wide, columns, b.in(kF32, {kT, 30})}, along(1));
  const ValueId high = b.in(kF32, {24, 40});
  const ValueId of_rows = b.in(kI32, {kT, 7}, "rows");
  Attrs half = along(0);
  half["value"] = 0.5;
  return b.take({cache, table, wide, b.op("scatter", {b.op("exp", {high}), of_rows}, half)});
}

/// Sums at places that several elements have.
Graph added() {
  Build b;
  const auto few = [&](Shape shape, std::int64_t below, const char* name) {
    const Attrs number{{"value", below}, {"dtype", kI32}};
    return b.op("remainder", {b.in(kI32, std::move(shape), name), b.op("full", {}, number)});
  };
  const ValueId cache = b.state(kBF16, {5, 40});
  b.op("index_add_", {cache, few({kT}, 5, "slots"), b.in(kBF16, {kT, 40})}, along(0));
  const ValueId columns = b.op(
      "index_add", {b.in(kF32, {6, 24}), few({kT}, 3, "columns"), b.in(kF32, {6, kT})}, along(1));
  const ValueId each =
      b.op("scatter_add", {b.in(kF32, {kT, 40}), few({kT, 30}, 4, "each"), b.in(kF32, {kT, 30})},
           along(1));
  const ValueId sums = b.state(kF32, {7, 40});
  b.op("scatter_add_", {sums, few({4, 40}, 7, "of_sums"), b.in(kF32, {4, 40})}, along(0));
  const Attrs accumulate{{"accumulate", true}};
  const ValueId counts = b.op("index_put",
                              {b.in(kI32, {3, 4}), few({kT, 2}, 3, "block"),
                               few({kT, 2}, 4, "offset"), b.in(kI32, {kT, 2})},
                              accumulate);
  return b.take({cache, columns, each, sums, counts});
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
                         ::testing::Values(Case{"append", append}, Case{"quantised", quantised},
                                           Case{"fused", fused}, Case{"normed", normed},
                                           Case{"rows", rows}, Case{"slices", slices},
                                           Case{"functional", functional}, Case{"placed", placed},
                                           Case{"added", added}),
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

/// The sum of a place begins with what is there and goes on in the order of the elements: with f32
/// another order has another result.
TEST(Add, IsInTheOrderOfTheElements) {
  Build b;
  const ValueId x = b.in(kF32, {2, 3}, "x");
  const ValueId y = b.op("index_add", {x, b.slots(), b.in(kF32, {kT, 3}, "rows")}, along(0));
  const Graph graph = b.take({y});
  Executable executable = Executable::compile(graph, World::open(testing::world_options(2)));
  executable.prepare({{"T", 4}});
  std::vector<double> rows;
  for (const double row : {-0x1p25, 5.0, 1.0, 2.0}) rows.insert(rows.end(), 3, row);
  for (const int rank : {0, 1}) {
    executable.set_input(rank, "x",
                         HostTensor::from_doubles(kF32, {2, 3}, std::vector<double>(6, 0x1p25)));
    executable.set_input(
        rank, "slots", HostTensor::from_integers(kI32, {4}, std::vector<std::int64_t>{1, 0, 1, 1}));
    executable.set_input(rank, "rows", HostTensor::from_doubles(kF32, {4, 3}, rows));
  }
  executable.run();
  EXPECT_EQ(executable.output(1, graph.value(y).name).to_doubles(),
            (std::vector<double>{0x1p25 + 4, 0x1p25 + 4, 0x1p25 + 4, 3, 3, 3}));
}

TEST(Write, IndicesOfFirstDimsAreNamedAndCountFromTheEnd) {
  Build b;
  const ValueId cache = b.state(kF32, {4, 8, 16});
  b.op("index_put_", {cache, b.slots(), b.in(kI32, {kT}, "offset"), b.in(kF32, {kT, 16}, "rows")});
  const Graph graph = b.take({cache});
  Executable executable = Executable::compile(graph, World::open(testing::world_options(2)));
  const auto run = [&](std::int64_t block, std::int64_t offset) {
    RankTensors inputs = random_inputs(graph, {{"T", 2}}, 9);
    for (auto& of_rank : inputs) {
      of_rank[1] = HostTensor::from_integers(kI32, {2}, std::vector{std::int64_t{1}, block});
      of_rank[2] = HostTensor::from_integers(kI32, {2}, std::vector{std::int64_t{2}, offset});
    }
    executable.prepare({{"T", 2}});
    testing::set_inputs(executable, graph, inputs);
    executable.run();
    executable.synchronize();
    return executable.output(1, "cache0").to_doubles() ==
           evaluate(graph, inputs, {{"T", 2}})[1][0].to_doubles();
  };
  for (const auto& [block, offset, operand, index] :
       {std::tuple{4, 0, 1, 4}, std::tuple{-5, 0, 1, -5}, std::tuple{0, 8, 2, 8},
        std::tuple{0, -9, 2, -9}}) {
    // Clang 14 does not capture structured bindings by themselves.
    const std::string error =
        testing::error_of([&, block = block, offset = offset] { (void)run(block, offset); });
    EXPECT_NE(error.find("/inputs/" + std::to_string(operand)), std::string::npos) << error;
    EXPECT_NE(error.find("index " + std::to_string(index) + " is out of range"), std::string::npos)
        << error;
  }
  EXPECT_TRUE(run(-4, -8));
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
