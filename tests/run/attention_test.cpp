// Attention against the reference: heads that share keys, masks, cut tiles, and rows that keep
// their bits.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "run/graph_builder.h"
#include "run/run_graph.h"

namespace braid {
namespace {

using testing::GraphBuilder;

const Dim kT = Dim::symbol("T");

enum class Sees : std::uint8_t { kAll, kCausal, kBoolMask, kAddedMask };

struct Case {
  DType dtype;
  std::int64_t heads, key_heads;
  std::int64_t width, value_width;
  Sees sees;
  std::vector<std::int64_t> keys;  ///< extents: one for each run
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << fmt::format("{}_{}of{}_{}x{}_{}", dtype_name(c.dtype), c.heads, c.key_heads, c.width,
                      c.value_width, static_cast<int>(c.sees));
}

/// Queries [2, heads, L, width], with L = T for a square attention, else 5.
Graph attention(const Case& c) {
  GraphBuilder b(300);
  const Dim rows = c.sees == Sees::kAll ? Dim(5) : kT;
  std::vector<ValueId> inputs{b.in(c.dtype, {2, c.heads, rows, c.width}, "q"),
                              b.in(c.dtype, {2, c.key_heads, kT, c.width}, "k"),
                              b.in(c.dtype, {2, c.key_heads, kT, c.value_width}, "v")};
  if (c.sees == Sees::kBoolMask) inputs.push_back(b.in(DType::kBool, {rows, kT}, "mask"));
  if (c.sees == Sees::kAddedMask) inputs.push_back(b.in(c.dtype, {2, 1, 1, kT}, "mask"));
  Attrs attrs{{"is_causal", c.sees == Sees::kCausal}, {"enable_gqa", c.heads != c.key_heads}};
  if (c.value_width != c.width) attrs.emplace("scale", 0.3);
  const ValueId y = b.op("scaled_dot_product_attention", std::move(inputs), std::move(attrs));
  return b.take({b.op("silu", {y}), y});
}

class AttentionRun : public ::testing::TestWithParam<Case> {};

TEST_P(AttentionRun, EqualsTheReferenceAndUnfused) {
  const Graph graph = attention(GetParam());
  for (const std::int64_t keys : GetParam().keys) {
    EXPECT_TRUE(testing::matches_reference_and_unfused(graph, {{"T", keys}}, 3)) << keys;
  }
}

/// Queries are turned by the kernel that uses them; as they are read by something else, too, by one
/// of their own.
TEST(AttentionRun, ComputesItsQueries) {
  for (const bool alone : {true, false}) {
    GraphBuilder b(300);
    const ValueId x = b.in(DType::kBF16, {kT, 2 * 64}, "x");
    const ValueId table = b.in(DType::kBF16, {kT, 1, 32}, "table");
    const ValueId apart = b.op("view", {x}, {{"shape", Shape{kT, 2, 64}}});
    const ValueId turned = b.op("rotary_embedding", {apart, table, table});
    const Attrs swap{{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{1}}};
    const ValueId q =
        b.op("view", {b.op("transpose", {turned}, swap)}, {{"shape", Shape{1, 2, kT, 64}}});
    const ValueId k = b.in(DType::kBF16, {1, 2, 90, 64}, "k");
    std::vector<ValueId> outputs{b.op("scaled_dot_product_attention", {q, k, k})};
    if (!alone) outputs.push_back(turned);
    const Graph graph = b.take(outputs);
    World world = World::open(testing::world_options(1));
    EXPECT_EQ(Executable::compile(graph, world).kernels().size(), alone ? 1U : 2U);
    EXPECT_TRUE(testing::matches_reference_and_unfused(graph, {{"T", 70}}, 5));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Forms, AttentionRun,
    ::testing::Values(Case{DType::kBF16, 2, 2, 64, 64, Sees::kAll, {1, 64, 130}},
                      Case{DType::kF16, 4, 2, 80, 80, Sees::kCausal, {1, 70, 129}},
                      Case{DType::kBF16, 6, 1, 128, 128, Sees::kCausal, {65}},
                      Case{DType::kF16, 2, 2, 16, 40, Sees::kBoolMask, {3, 97}},
                      Case{DType::kBF16, 2, 1, 192, 128, Sees::kAddedMask, {66}},
                      Case{DType::kF32, 4, 2, 40, 64, Sees::kCausal, {1, 70}},
                      Case{DType::kF32, 2, 2, 64, 64, Sees::kAddedMask, {33}},
                      // Heads that no kernel holds.
                      Case{DType::kBF16, 4, 2, 320, 512, Sees::kCausal, {33}},
                      Case{DType::kF32, 2, 2, 264, 40, Sees::kAddedMask, {33}}),
    [](const auto& info) { return ::testing::PrintToString(info.param); });

/// The bytes of the first `rows` queries of each head.
std::vector<std::byte> first_rows(const HostTensor& y, std::int64_t rows) {
  const auto row = static_cast<std::size_t>(y.shape[3]) * dtype_size(y.dtype);
  std::vector<std::byte> bytes;
  for (std::int64_t head = 0; head < y.shape[0] * y.shape[1]; ++head) {
    const auto* begin = y.data.data() + static_cast<std::size_t>(head * y.shape[2]) * row;
    bytes.insert(bytes.end(), begin, begin + static_cast<std::size_t>(rows) * row);
  }
  return bytes;
}

Graph square(DType dtype, std::int64_t most, bool causal) {
  GraphBuilder b(most);
  const auto in = [&](const char* name, Dim rows) { return b.in(dtype, {1, 2, rows, 64}, name); };
  return b.take({b.op("scaled_dot_product_attention", {in("q", kT), in("k", 100), in("v", 100)},
                      {{"is_causal", causal}})});
}

// Kernels for few queries have other tiles than those for many. Where these are causal, the rows of
// a tile see other tiles of keys.
TEST(AttentionRows, KeepTheirBitsInEveryBatch) {
  for (const auto& [dtype, causal] : {std::pair(DType::kBF16, false), std::pair(DType::kF32, false),
                                      std::pair(DType::kF32, true)}) {
    std::vector<std::vector<std::byte>> bits;
    for (const std::int64_t most : {16, 300}) {
      for (const std::int64_t rows : {7, 16}) {
        const Graph graph = square(dtype, most, causal);
        const World world = World::open(testing::world_options(1));
        Executable executable = Executable::compile(graph, world);
        RankTensors inputs = random_inputs(graph, {{"T", 16}}, 5);
        HostTensor& q = inputs[0][0];
        q.shape[2] = rows;
        q.data = [&] {
          HostTensor whole = q;
          whole.shape[2] = 16;
          return first_rows(whole, rows);
        }();
        const RankTensors y = testing::run_once(executable, graph, {{"T", rows}}, inputs);
        bits.push_back(first_rows(y[0][0], 7));
      }
    }
    for (const auto& other : bits) EXPECT_EQ(other, bits[0]);
  }
}

TEST(AttentionRows, ThatSeeNothingAreZero) {
  GraphBuilder b(64);
  const ValueId q = b.in(DType::kBF16, {1, 2, kT, 32}, "q");
  const Graph graph = b.take(
      {b.op("scaled_dot_product_attention", {q, q, q, b.in(DType::kBool, {kT, kT}, "mask")})});
  const World world = World::open(testing::world_options(1));
  Executable executable = Executable::compile(graph, world);
  const Bindings bindings{{"T", 40}};
  RankTensors inputs = random_inputs(graph, bindings, 5);
  std::ranges::fill(inputs[0][1].data, std::byte{0});
  for (const double y : testing::run_once(executable, graph, bindings, inputs)[0][0].to_doubles()) {
    EXPECT_EQ(y, 0);
  }
}

// Queries that are one number, and values that are one column.
TEST(AttentionRows, OfOperandsWhoseElementsAreAlike) {
  GraphBuilder b(100);
  const auto expanded = [&](ValueId of, Shape shape) {
    return b.op("expand", {of}, {{"shape", std::move(shape)}});
  };
  const ValueId one = b.op("full", {}, {{"value", 0.5}, {"dtype", DType::kF32}});
  const ValueId q = expanded(b.op("view", {one}, {{"shape", Shape{1, 1, 1, 1}}}), {1, 2, kT, 9});
  const ValueId k = b.in(DType::kF32, {1, 2, kT, 9});
  const ValueId v = expanded(b.in(DType::kF32, {1, 2, kT, 1}), {1, 2, kT, 3});
  EXPECT_TRUE(testing::matches_reference(
      b.take({b.op("scaled_dot_product_attention", {q, k, v}),
              b.op("scaled_dot_product_attention", {q, k, b.in(DType::kF32, {1, 2, kT, 9})})}),
      {{"T", 70}}, 3));
}

// As models hide keys: of a row that sees none the weights are equal.
TEST(AttentionRows, AreMaskedByTheLeastNumberOfADtype) {
  for (const auto& [dtype, least] :
       {std::pair(DType::kF32, -3.4028234663852886e38),
        std::pair(DType::kBF16, -3.3895313892515355e38), std::pair(DType::kF16, -65504.0)}) {
    GraphBuilder b(200);
    const auto heads = [&, of = dtype] { return b.in(of, {1, 2, kT, 64}); };
    const Graph graph = b.take({b.op("scaled_dot_product_attention",
                                     {heads(), heads(), heads(), b.in(dtype, {kT, kT}, "mask")})});
    constexpr std::int64_t kRows = 150, kHidden = 140;
    const Bindings bindings{{"T", kRows}};
    RankTensors inputs = random_inputs(graph, bindings, 5);
    std::vector<double> mask(kRows * kRows, 0);
    for (std::int64_t i = 0; i < kRows * kRows; ++i) {
      if (i % kRows < kHidden || i < kRows) mask[static_cast<std::size_t>(i)] = least;
    }
    inputs[0][3] = HostTensor::from_doubles(dtype, {kRows, kRows}, mask);
    for (const char* target : {"", "H100"}) {
      SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + target);
      WorldOptions options = testing::world_options(1);
      if (*target != 0) options.target = target;
      Executable executable = Executable::compile(graph, World::open(options));
      EXPECT_TRUE(testing::same_as_reference(graph,
                                             testing::run_once(executable, graph, bindings, inputs),
                                             evaluate(graph, inputs, bindings)));
    }
  }
}

TEST(AttentionKernel, IsOneWithWhatFollowsAndReadsViews) {
  GraphBuilder b(100);
  const auto heads = [&](const char* name) {
    const ValueId flat =
        b.op("view", {b.in(DType::kBF16, {kT, 256}, name)}, {{"shape", Shape{kT, 4, 64}}});
    return b.op("transpose", {flat}, {{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{1}}});
  };
  const ValueId y = b.op("scaled_dot_product_attention", {heads("q"), heads("k"), heads("v")},
                         {{"is_causal", true}});
  const Graph graph = b.take({b.op("silu", {y})});
  const World world = World::open(testing::world_options(1));
  const Executable executable = Executable::compile(graph, world);
  ASSERT_EQ(executable.kernels().size(), 1);
  EXPECT_EQ(executable.kernels()[0].template_name, "attention");
  EXPECT_TRUE(testing::matches_reference(graph, {{"T", 90}}, 3));
}

TEST(AttentionKernel, RunsCleanUnderTheSanitizer) {
  EXPECT_TRUE(testing::runs_clean(attention({DType::kBF16, 2, 1, 32, 32, Sees::kCausal, {}}),
                                  {{"T", 70}}, 4));
  EXPECT_TRUE(testing::runs_clean(attention({DType::kF32, 1, 1, 16, 16, Sees::kBoolMask, {}}),
                                  {{"T", 40}}, 4));
}

}  // namespace
}  // namespace braid
