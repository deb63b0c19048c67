// Matmuls whose rows choose among several weights by offsets on the device: values against the
// reference, for groups of all sizes, alone and fused; bits against a matmul of each group's rows;
// and offsets that are out of order or range.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "braid/error.h"
#include "findings.h"
#include "run/graph_builder.h"
#include "run/run_graph.h"

namespace braid {
namespace {

using testing::GraphBuilder;
using Offsets = std::vector<std::int64_t>;

constexpr DType kF32 = DType::kF32, kF16 = DType::kF16, kBF16 = DType::kBF16;
const Dim kT = Dim::symbol("T");

Attrs swapped(std::int64_t a, std::int64_t b) { return {{"dim0", a}, {"dim1", b}}; }

enum class Form : std::uint8_t {
  kAlone,
  kAccumulators,  ///< with an out_dtype
  kTransposed,    ///< each weight as [N, K]
  kActivation,    ///< with a bias and gelu behind it
  kGateAndUp,     ///< two that share their rows
  kScaled,        ///< with a factor of each column in front
  kSliced,        ///< offsets that are a part of an input
  kPacked,        ///< weights of 4 bits in words along K, with scales of 32 rows
  /// Weights as [N, K] of two bits of exponent and one of mantissa, with scales of 32: of two
  /// products side by side.
  kMxfp4,
};

struct Case {
  const char* name;
  Form form;
  DType dtype;
  std::int64_t depth, columns;
  std::int64_t rows;
  Offsets offsets;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

/// Weights of 4 bits, as [groups, K, N].
ValueId packed_weight(GraphBuilder& b, const Case& c) {
  const std::int64_t groups = std::ssize(c.offsets), k = c.depth, n = c.columns;
  const auto constant = [&](DType dtype, double value) {
    return b.op("full", {}, {{"dtype", dtype}, {"value", value}});
  };
  const auto reshaped = [&](ValueId value, Shape shape) {
    return b.op("reshape", {value}, {{"shape", std::move(shape)}});
  };
  /// Eight numbers of each word, along a dim in front of `behind` others.
  const auto unpacked = [&](Shape words, std::int64_t behind) {
    const ValueId by =
        b.op("arange", {},
             {{"end", std::int64_t{32}}, {"step", std::int64_t{4}}, {"dtype", DType::kI32}});
    return b.op("bitwise_right_shift", {b.in(DType::kI32, std::move(words), "w"),
                                        reshaped(by, behind == 0 ? Shape{8} : Shape{8, 1})});
  };
  const auto bits = [&](ValueId value, std::int64_t mask) {
    return b.op("bitwise_and", {value, constant(DType::kI32, static_cast<double>(mask))});
  };
  const auto times = [&](ValueId value, int power) {
    return b.op("mul", {value, constant(DType::kI32, std::ldexp(1.0, power))});
  };
  /// The bits of a float, which PyTorch spells as a view.
  const auto as_float = [&](ValueId value) {
    return b.op("view_dtype", {value}, {{"dtype", kF32}});
  };
  if (c.form == Form::kPacked) {
    const ValueId number =
        b.op("sub", {bits(unpacked({groups, k / 8, 1, n}, 1), 15), constant(DType::kI32, 8)});
    const ValueId w = b.op("to", {reshaped(number, {groups, k / 32, 32, n})}, {{"dtype", c.dtype}});
    return reshaped(b.op("mul", {w, b.in(c.dtype, {groups, k / 32, 1, n}, "scales")}),
                    {groups, k, n});
  }
  const ValueId number = unpacked({groups, n, k / 8, 1}, 0);
  const ValueId small =
      as_float(b.op("bitwise_or", {times(bits(number, 7), 22), times(bits(number, 8), 28)}));
  const ValueId w =
      b.op("mul", {reshaped(b.op("mul", {small, constant(kF32, 0x1p126)}), {groups, n, k / 32, 32}),
                   b.in(kF32, {groups, n, k / 32, 1}, "scales")});
  return b.op("transpose", {reshaped(b.op("to", {w}, {{"dtype", c.dtype}}), {groups, n, k})},
              swapped(1, 2));
}

/// Input "offsets" has the ends of the groups; `most`: rows that there may be.
Graph graph_of(const Case& c, std::int64_t most = 200) {
  GraphBuilder b(most);
  const auto groups = std::ssize(c.offsets);
  ValueId x = b.in(c.dtype, {kT, c.depth}, "x");
  if (c.form == Form::kScaled) x = b.op("mul", {x, b.in(c.dtype, {kT, 1}, "factors")});
  ValueId offsets = b.in(DType::kI32, {groups + (c.form == Form::kSliced ? 2 : 0)}, "offsets");
  if (c.form == Form::kSliced) {
    offsets = b.op("slice", {offsets},
                   {{"dim", std::int64_t{0}}, {"start", std::int64_t{1}}, {"end", groups + 1}});
  }
  const auto product = [&](const char* weight) {
    if (c.form == Form::kPacked || c.form == Form::kMxfp4) {
      return b.op("_grouped_mm", {x, packed_weight(b, c), offsets});
    }
    const bool transposed = c.form == Form::kTransposed;
    ValueId w = b.in(
        c.dtype, transposed ? Shape{groups, c.columns, c.depth} : Shape{groups, c.depth, c.columns},
        weight);
    if (transposed) w = b.op("transpose", {w}, swapped(1, 2));
    Attrs attrs;
    if (c.form == Form::kAccumulators) attrs.emplace("out_dtype", kF32);
    return b.op("_grouped_mm", {x, w, offsets}, std::move(attrs));
  };
  ValueId y = product("w");
  if (c.form == Form::kActivation) {
    y = b.op("gelu", {b.op("add", {y, b.in(c.dtype, {c.columns}, "bias")})});
  } else if (c.form == Form::kGateAndUp) {
    y = b.op("mul", {b.op("silu", {y}), product("up")});
  } else if (c.form == Form::kMxfp4) {
    const auto half = [&](std::int64_t start) {
      return b.op("slice", {y},
                  {{"dim", std::int64_t{1}}, {"start", start}, {"end", start + c.columns / 2}});
    };
    y = b.op("mul", {b.op("silu", {half(0)}), half(c.columns / 2)});
  }
  return b.take({y});
}

/// Ends of groups of 0 to `most` rows, up to `rows` in all; the last has what is left of them.
Offsets many_groups(std::int64_t groups, std::int64_t most, std::int64_t rows) {
  Offsets ends;
  std::int64_t end = 0;
  for (std::int64_t group = 0; group < groups; ++group) {
    end = std::min(rows, end + (group % 4 == 1 ? most : group % 3 == 0 ? most / 2 : 0));
    ends.push_back(end);
  }
  return ends;
}

std::size_t input_of(const Graph& graph, std::string_view name) {
  const auto found = std::ranges::find(graph.inputs(), name, &GraphInput::name);
  return static_cast<std::size_t>(found - graph.inputs().begin());
}

RankTensors inputs_of(const Case& c, const Graph& graph) {
  RankTensors inputs = random_inputs(graph, {{"T", c.rows}}, 7);
  HostTensor& tensor = inputs[0][input_of(graph, "offsets")];
  Offsets all = c.offsets;
  if (c.form == Form::kSliced) {  // what stands beside them is no offset
    all.insert(all.begin(), -5);
    all.push_back(1 << 20);
  }
  tensor = HostTensor::from_integers(DType::kI32, tensor.shape, all);
  if (c.form == Form::kPacked || c.form == Form::kMxfp4) {
    std::mt19937 random(7);
    for (std::byte& byte : inputs[0][input_of(graph, "w")].data) byte = std::byte(random());
  }
  return inputs;
}

/// Nothing else multiplies 16-bit operands as quickly there, so warps have roles where they can and
/// groups may have many rows.
constexpr const char* kRings[] = {"H100:wgmma,cp.async.bulk.tensor",
                                  "B200:tcgen05,cp.async.bulk.tensor"};
constexpr std::int64_t kMany = 1 << 14;

World clean_world(const std::string& target = "") {
  WorldOptions options = testing::cpu_world_options(1);
  options.sanitize = kCheckAll;
  options.target = target;
  return World::open(options);
}

/// All, or those of some names.
std::vector<Case> cases(const std::vector<std::string_view>& names = {}) {
  std::vector<Case> all{
      Case{"uneven", Form::kAlone, kBF16, 64, 48, 100, {3, 40, 41, 100}},
      Case{"f16", Form::kAlone, kF16, 40, 72, 61, {17, 33, 61}},
      Case{"f32", Form::kAlone, kF32, 33, 17, 50, {1, 30, 50}},
      Case{"empty_groups", Form::kAlone, kBF16, 64, 64, 64, {0, 0, 16, 16, 64, 64}},
      Case{"all_in_one", Form::kAlone, kBF16, 64, 64, 129, {0, 129, 129}},
      Case{"no_group_has_rows", Form::kAlone, kBF16, 64, 64, 33, {0, 0, 0}},
      Case{"rows_past_the_last", Form::kAlone, kBF16, 64, 64, 150, {5, 70}},
      Case{"one_group", Form::kAlone, kBF16, 64, 64, 35, {35}},
      Case{"more_groups_than_rows",
           Form::kAlone,
           kBF16,
           64,
           64,
           3,
           {0, 0, 1, 1, 1, 2, 2, 2, 2, 3, 3}},
      Case{"many_groups", Form::kAlone, kBF16, 64, 64, 190, many_groups(90, 3, 190)},
      Case{"many_groups_of_few_rows", Form::kAlone, kBF16, 64, 64, 9, many_groups(90, 1, 9)},
      Case{"many_groups_and_rows_past_them", Form::kGateAndUp, kF16, 64, 40, 200,
           many_groups(40, 7, 130)},
      Case{"most_of_many_groups_are_empty", Form::kAlone, kF32, 33, 17, 200,
           many_groups(40, 90, 200)},
      // More tiles than blocks, and some of no group are in front of others.
      Case{"tiles_in_turns", Form::kAlone, kBF16, 1032, 264, 200, many_groups(90, 3, 200)},
      Case{"a_group_for_each_row", Form::kAlone, kBF16, 64, 64, 6, {1, 2, 3, 4, 5, 6}},
      Case{"accumulators", Form::kAccumulators, kBF16, 96, 40, 45, {20, 21, 44}},
      Case{"transposed", Form::kTransposed, kBF16, 72, 40, 90, {31, 64, 90}},
      Case{"activation", Form::kActivation, kF16, 64, 96, 77, {20, 50, 60}},
      Case{"gate_and_up", Form::kGateAndUp, kBF16, 64, 96, 77, {20, 20, 60}},
      Case{"scaled", Form::kScaled, kBF16, 64, 40, 77, {1, 66, 70}},
      Case{"sliced_offsets", Form::kSliced, kBF16, 64, 40, 77, {1, 66, 70}},
      Case{"packed", Form::kPacked, kF16, 256, 72, 77, {1, 66, 66, 70}},
      Case{"mxfp4", Form::kMxfp4, kBF16, 288, 144, 77, {1, 66, 66, 70}}};
  if (!names.empty()) {
    std::erase_if(all, [&](const Case& c) { return std::ranges::count(names, c.name) == 0; });
  }
  return all;
}

class GroupedMm : public ::testing::TestWithParam<Case> {};
class GroupedRing : public ::testing::TestWithParam<Case> {};

TEST_P(GroupedMm, IsOneKernelThatEqualsTheReference) {
  const Case& c = GetParam();
  const Graph graph = graph_of(c);
  const RankTensors inputs = inputs_of(c, graph);
  World world = World::open(testing::world_options(1));
  Executable executable = Executable::compile(graph, world);
  ASSERT_EQ(executable.kernels().size(), 1U);
  EXPECT_EQ(executable.kernels()[0].template_name, "grouped_gemm");
  const Bindings bindings{{"T", c.rows}};
  EXPECT_TRUE(testing::same_as_reference(graph,
                                         testing::run_once(executable, graph, bindings, inputs),
                                         evaluate(graph, inputs, bindings)));
}

TEST_P(GroupedMm, RunsCleanUnderTheSanitizer) {
  const Case& c = GetParam();
  const Graph graph = graph_of(c);
  World world = clean_world();
  Executable executable = Executable::compile(graph, world);
  testing::run_once(executable, graph, {{"T", c.rows}}, inputs_of(c, graph));
  const auto findings = found_by(world.device());
  EXPECT_TRUE(findings.empty()) << findings[0].text();
}

TEST_P(GroupedRing, HasTheSameBits) {
  const Case& c = GetParam();
  const Graph graph = graph_of(c, kMany);
  const RankTensors inputs = inputs_of(c, graph);
  const Bindings bindings{{"T", c.rows}};
  World other_world = World::open(testing::cpu_world_options(1));
  const Graph few = graph_of(c);
  Executable other = Executable::compile(few, other_world);
  const RankTensors expected = testing::run_once(other, few, bindings, inputs);
  EXPECT_TRUE(testing::same_as_reference(few, expected, evaluate(few, inputs, bindings)));
  for (const char* ring : kRings) {
    SCOPED_TRACE(ring);
    World world = clean_world(ring);
    Executable executable = Executable::compile(graph, world);
    EXPECT_GE(executable.kernels()[0].threads, 256);
    const RankTensors got = testing::run_once(executable, graph, bindings, inputs);
    const auto findings = found_by(world.device());
    EXPECT_TRUE(findings.empty()) << findings[0].text();
    EXPECT_EQ(got[0][0].data, expected[0][0].data);
  }
}

INSTANTIATE_TEST_SUITE_P(Each, GroupedMm, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Each, GroupedRing,
                         ::testing::ValuesIn(cases({"uneven", "empty_groups", "rows_past_the_last",
                                                    "tiles_in_turns",
                                                    "many_groups_and_rows_past_them", "transposed",
                                                    "activation", "accumulators"})),
                         [](const auto& info) { return info.param.name; });

// Bulk copies bring rows as they are in memory.
TEST(GroupedRows, AreScaledApartWhereBulkCopiesBringThem) {
  const Case few{"", Form::kScaled, kBF16, 64, 40, 77, {1, 66, 70}};
  World world = clean_world("H100");
  EXPECT_EQ(Executable::compile(graph_of(few, 64), world).kernels().size(), 1U);
  EXPECT_EQ(Executable::compile(graph_of(few, kMany), world).kernels().size(), 2U);
}

// Whatever is beside a row, its bits are those of its weight's matmul.
TEST(GroupedMm, ARowHasTheBitsOfAMatmulAlone) {
  for (const DType dtype : {kBF16, kF16, kF32}) {
    const Case c{"", Form::kAlone, dtype, 200, 72, 130, {3, 90, 130}};
    const Graph graph = graph_of(c);
    const RankTensors inputs = inputs_of(c, graph);
    World world = World::open(testing::world_options(1));
    Executable grouped = Executable::compile(graph, world);
    const HostTensor all = testing::run_once(grouped, graph, {{"T", c.rows}}, inputs)[0][0];
    GraphBuilder b(200);
    const ValueId x = b.in(dtype, {kT, c.depth});
    const Graph alone = b.take({b.op("mm", {x, b.in(dtype, {c.depth, c.columns})})});
    Executable matmul = Executable::compile(alone, world);
    const std::size_t row = static_cast<std::size_t>(c.columns) * dtype_size(dtype);
    std::int64_t first = 0;
    for (std::size_t group = 0; group < c.offsets.size(); ++group) {
      HostTensor weight{dtype, {c.depth, c.columns}, {}};
      const std::vector<std::byte>& weights = inputs[0][input_of(graph, "w")].data;
      const std::size_t bytes = static_cast<std::size_t>(c.depth) * row;
      const auto from = weights.begin() + static_cast<std::ptrdiff_t>(group * bytes);
      weight.data.assign(from, from + static_cast<std::ptrdiff_t>(bytes));
      // All rows, so that the tiles are others.
      const RankTensors of_group{{inputs[0][input_of(graph, "x")], weight}};
      const HostTensor result = testing::run_once(matmul, alone, {{"T", c.rows}}, of_group)[0][0];
      for (std::int64_t r = first; r < c.offsets[group]; ++r) {
        const auto at = static_cast<std::size_t>(r) * row;
        EXPECT_EQ(std::memcmp(result.data.data() + at, all.data.data() + at, row), 0)
            << dtype_name(dtype) << " row " << r;
      }
      first = c.offsets[group];
    }
  }
}

// Nothing outside of a tensor is touched, the reference says the same, and the next run is well.
struct Bad {
  Offsets offsets;
  int index;
};
void expect_named(const Case& good, const std::vector<Bad>& all, const std::string& target = "") {
  const Graph graph = graph_of(good, target.empty() ? 200 : kMany);
  const Bindings bindings{{"T", good.rows}};
  const std::string node = graph.value(graph.outputs()[0]).name;
  World world = clean_world(target);
  Executable executable = Executable::compile(graph, world);
  EXPECT_EQ(executable.kernels()[0].threads >= 256, !target.empty());
  for (const Bad& bad : all) {
    Case c = good;
    c.offsets = bad.offsets;
    const RankTensors inputs = inputs_of(c, graph);
    const std::string expected = fmt::format(
        "{}: rank 0: index {} is out of range; expected an integer from 0 to 50", node, bad.index);
    EXPECT_EQ(testing::error_of([&] { (void)evaluate(graph, inputs, bindings); }), expected);
    executable.prepare(bindings);
    for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
      executable.set_input(0, graph.inputs()[i].name, inputs[0][i]);
    }
    executable.run();
    EXPECT_EQ(testing::error_of([&] { executable.synchronize(); }), expected);
    const RankTensors well = inputs_of(good, graph);
    EXPECT_TRUE(testing::same_as_reference(graph,
                                           testing::run_once(executable, graph, bindings, well),
                                           evaluate(graph, well, bindings)));
  }
  const auto findings = found_by(world.device());
  EXPECT_TRUE(findings.empty()) << findings[0].text();
}

TEST(GroupedMm, OffsetsOutOfRangeOrOrderAreNamed) {
  for (const char* target : {"", kRings[0]}) {
    expect_named({"", Form::kAlone, kBF16, 64, 48, 50, {10, 30, 50}},
                 {{{10, 51, 50}, 51},
                  {{-1, 30, 50}, -1},
                  {{10, 8, 50}, -2},
                  {{1 << 30, 1 << 30, 1 << 30}, 1 << 30}},
                 target);
  }
  Offsets good = many_groups(90, 3, 50), low = good, high = good;
  low[0] = -1;
  high[89] = 51;
  expect_named({"", Form::kAlone, kBF16, 64, 48, 50, good}, {{low, -1}, {high, 51}});
}

}  // namespace
}  // namespace braid
