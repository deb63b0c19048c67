// Attention whose keys and values a thread brings by bulk copies, while groups of warps multiply
// beside it: equal to the reference, without a finding, and a row has its bits in every batch.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>
#include <span>
#include <string>
#include <vector>

#include "findings.h"
#include "run/graph_builder.h"
#include "run/run_graph.h"

namespace braid {
namespace {

using testing::GraphBuilder;

const Dim kT = Dim::symbol("T");

World open(Checks checks) {
  WorldOptions options = testing::world_options(1);
  if (options.device == DeviceKind::kCpu) options.sanitize = checks;
  options.target = "H100";
  return World::open(options);
}

RankTensors run(const Graph& graph, const Bindings& bindings, const RankTensors& inputs,
                Checks checks) {
  World world = open(checks);
  Executable executable = Executable::compile(graph, world);
  EXPECT_EQ(executable.kernels().size(), 1);
  // Those that compute, and the group of the one that copies.
  EXPECT_GE(executable.kernels()[0].threads, 256);
  EXPECT_GE(executable.kernels()[0].shared_bytes, 48 << 10);
  RankTensors got = testing::run_once(executable, graph, bindings, inputs);
  for (const Finding& finding : found_by(world.device())) ADD_FAILURE() << finding.text();
  return got;
}

void expect_right(const Graph& graph, const Bindings& bindings, Checks checks = kCheckAll) {
  const RankTensors inputs = random_inputs(graph, bindings, 5);
  EXPECT_TRUE(testing::same_as_reference(graph, run(graph, bindings, inputs, checks),
                                         evaluate(graph, inputs, bindings)));
}

enum class Sees : std::uint8_t { kAll, kCausal, kBoolMask, kAddedMask };

struct Case {
  DType dtype;
  std::int64_t heads, key_heads, width, value_width;
  Sees sees;
  std::int64_t keys;
  Checks checks = kCheckNothing;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << fmt::format("{}_{}of{}_{}x{}_{}_{}", dtype_name(c.dtype), c.heads, c.key_heads, c.width,
                      c.value_width, static_cast<int>(c.sees), c.keys);
}

class AttentionRing : public ::testing::TestWithParam<Case> {};

TEST_P(AttentionRing, EqualsTheReference) {
  const Case& c = GetParam();
  GraphBuilder b(600);
  const Dim rows = c.sees == Sees::kAll ? Dim(130) : kT;
  std::vector<ValueId> inputs{b.in(c.dtype, {2, c.heads, rows, c.width}),
                              b.in(c.dtype, {2, c.key_heads, kT, c.width}),
                              b.in(c.dtype, {2, c.key_heads, kT, c.value_width})};
  if (c.sees == Sees::kBoolMask) inputs.push_back(b.in(DType::kBool, {rows, kT}));
  if (c.sees == Sees::kAddedMask) inputs.push_back(b.in(c.dtype, {2, 1, 1, kT}));
  const ValueId y =
      b.op("scaled_dot_product_attention", std::move(inputs),
           {{"is_causal", c.sees == Sees::kCausal}, {"enable_gqa", c.heads != c.key_heads}});
  expect_right(b.take({b.op("silu", {y}), y}), {{"T", c.keys}}, c.checks);
}

INSTANTIATE_TEST_SUITE_P(
    Forms, AttentionRing,
    ::testing::Values(Case{DType::kBF16, 1, 1, 64, 64, Sees::kCausal, 300, kCheckAll},
                      Case{DType::kF16, 1, 1, 128, 128, Sees::kAll, 257, kCheckAll},
                      Case{DType::kBF16, 3, 1, 128, 64, Sees::kCausal, 520},
                      Case{DType::kF16, 4, 2, 80, 72, Sees::kCausal, 1},
                      Case{DType::kBF16, 2, 2, 96, 96, Sees::kBoolMask, 129},
                      Case{DType::kBF16, 2, 1, 64, 128, Sees::kAddedMask, 128}),
    [](const auto& info) { return ::testing::PrintToString(info.param); });

// Queries, keys and values are parts of one product's rows. What lies beside them, and other heads'
// keys past the last one, are NaN, and do not reach a result.
TEST(AttentionRingRun, ReadsPartsOfRows) {
  constexpr std::int64_t kHeads = 2, kWidth = 64, kRows = 150;
  GraphBuilder b(200);
  const ValueId all =
      b.op("view", {b.in(DType::kBF16, {kT, 8 * kWidth})}, {{"shape", Shape{kT, 8, kWidth}}});
  const auto part = [&](std::int64_t first) {
    const ValueId own =
        b.op("slice", {all}, {{"dim", std::int64_t{1}}, {"start", first}, {"end", first + kHeads}});
    return b.op("transpose", {own}, {{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{1}}});
  };
  const Graph graph = b.take(
      {b.op("scaled_dot_product_attention", {part(0), part(3), part(6)}, {{"is_causal", true}})});
  const Bindings bindings{{"T", kRows}};
  RankTensors inputs = random_inputs(graph, bindings, 5);
  HostTensor& rows = inputs[0][0];
  std::vector<double> values = rows.to_doubles();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t head = i / kWidth % 8;
    if (head == 2 || head == 5) values[i] = std::numeric_limits<double>::quiet_NaN();
  }
  rows = HostTensor::from_doubles(rows.dtype, rows.shape, values);
  EXPECT_TRUE(testing::same_as_reference(graph, run(graph, bindings, inputs, kCheckAll),
                                         evaluate(graph, inputs, bindings)));
}

// In memory the heads of a key are beside each other, and a batch's keys apart.
TEST(AttentionRingRun, ReadsPermutedDims) {
  GraphBuilder b(200);
  const auto in = [&] {
    return b.op("permute", {b.in(DType::kF16, {kT, 2, 3, 64})},
                {{"dims", std::vector<std::int64_t>{1, 2, 0, 3}}});
  };
  expect_right(b.take({b.op("scaled_dot_product_attention", {in(), in(), in()})}), {{"T", 140}},
               kCheckNothing);
}

// There is nothing to copy, and no tensor map is of nothing.
TEST(AttentionRingRun, SeesNoKeys) {
  Graph graph("no_keys");
  graph.add_symbol("T", {0, 200});
  std::vector<ValueId> inputs;
  for (const Dim& rows : {Dim(70), kT, kT}) {
    inputs.push_back(graph.add_input({fmt::format("in{}", inputs.size()),
                                      {DType::kBF16, {2, rows, 64}},
                                      InputKind::kActivation,
                                      false}));
  }
  graph.add_output(
      graph.node(graph.add_node("", "scaled_dot_product_attention", std::move(inputs), {}))
          .outputs[0]);
  expect_right(graph, {{"T", 0}});
}

// The keys of a head end where the next head's begin: in the middle of a tile.
TEST(AttentionRingRun, KeepsOtherHeadsOut) {
  GraphBuilder b(200);
  const auto in = [&] { return b.in(DType::kBF16, {2, kT, 64}); };
  const Graph graph = b.take({b.op("scaled_dot_product_attention", {in(), in(), in()})});
  const Bindings bindings{{"T", 70}};
  RankTensors inputs = random_inputs(graph, bindings, 5);
  for (const std::size_t input : {0U, 1U, 2U}) {
    HostTensor& tensor = inputs[0][input];
    std::vector<double> values = tensor.to_doubles();
    std::fill(values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end(),
              std::numeric_limits<double>::infinity());
    tensor = HostTensor::from_doubles(tensor.dtype, tensor.shape, values);
  }
  EXPECT_TRUE(testing::same_as_reference(graph, run(graph, bindings, inputs, kCheckNothing),
                                         evaluate(graph, inputs, bindings)));
}

// Queries are computed by the kernel, and a normalization of each is part of it.
TEST(AttentionRingRun, ComputesItsQueries) {
  GraphBuilder b(200);
  const ValueId x = b.op("mul", {b.in(DType::kBF16, {1, 2, kT, 128}), b.in(DType::kBF16, {128})});
  const ValueId k = b.in(DType::kBF16, {1, 2, 90, 128});
  expect_right(b.take({b.op("scaled_dot_product_attention", {x, k, k})}), {{"T", 70}});
}

/// The bytes of the first rows of each head.
std::vector<std::byte> first_rows(const HostTensor& y, std::int64_t rows) {
  const std::size_t row = static_cast<std::size_t>(y.shape.back()) * dtype_size(y.dtype);
  std::vector<std::byte> bytes;
  for (std::int64_t head = 0; head < y.shape[0]; ++head) {
    const auto* begin = y.data.data() + static_cast<std::size_t>(head * y.shape[1]) * row;
    bytes.insert(bytes.end(), begin, begin + static_cast<std::size_t>(rows) * row);
  }
  return bytes;
}

// By kernels for few queries, of one group of warps, and for many, of two; alone, and with others
// behind them, whose keys are in the same tile.
TEST(AttentionRingRun, RowsKeepTheirBits) {
  constexpr std::int64_t kFirst = 40;
  std::vector<std::vector<std::byte>> bits;
  RankTensors whole;
  for (const std::int64_t rows : {std::int64_t{300}, kFirst}) {
    for (const std::int64_t most : {300, 64}) {
      if (rows > most) continue;
      GraphBuilder b(most);
      const auto in = [&] { return b.in(DType::kBF16, {2, kT, 64}); };
      const Graph graph =
          b.take({b.op("scaled_dot_product_attention", {in(), in(), in()}, {{"is_causal", true}})});
      const Bindings bindings{{"T", rows}};
      RankTensors inputs = random_inputs(graph, bindings, 5);
      if (whole.empty()) whole = inputs;
      for (std::size_t i = 0; i < 3; ++i) inputs[0][i].data = first_rows(whole[0][i], rows);
      bits.push_back(first_rows(run(graph, bindings, inputs, kCheckNothing)[0][0], kFirst));
    }
  }
  ASSERT_EQ(bits.size(), 3U);
  for (const auto& other : bits) EXPECT_EQ(other, bits[0]);
}

}  // namespace
}  // namespace braid
