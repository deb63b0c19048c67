// Graphs of all dtypes with NaN, infinities, -0, subnormals and integer extremes among their inputs
// against the evaluator (whose own tables are tests/ir/numerics_test.cpp), and what no evaluator
// can say: the bits that the kernels write, by hand.

#include "run/edge_graph.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "run/run_graph.h"
#include "run/seed.h"

namespace braid {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Every element equal, the sign of zero included; NaN for NaN.
bool is_same(const HostTensor& got, const HostTensor& expected) {
  if (relative_error(got, expected) != 0) return false;
  if (!is_float(got.dtype)) return true;
  const std::vector<double> a = got.to_doubles();
  const std::vector<double> b = expected.to_doubles();
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!std::isnan(b[i]) && std::signbit(a[i]) != std::signbit(b[i])) return false;
  }
  return true;
}

/// NaN and infinities in the same places; the rest within a rounding or two of the tensor, or a few
/// of the least subnormals.
bool is_near(const HostTensor& got, const HostTensor& expected, double allowed) {
  const bool is_half = got.dtype == DType::kF16;
  const bool is_bf16 = got.dtype == DType::kBF16;
  const double roundings = is_half ? 0x1p-10 : is_bf16 ? 0x1p-7 : 0;
  const double error = relative_error(got, expected);
  if (error <= std::max(allowed, roundings)) return true;
  const std::vector<double> a = got.to_doubles();
  const std::vector<double> b = expected.to_doubles();
  const double quantum = is_half ? 0x1p-24 : is_bf16 ? 0x1p-133 : 0x1p-149;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool equal = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
    if (!equal && !(std::fabs(a[i] - b[i]) <= 4 * quantum)) return false;
  }
  return relative_error(got, got) == 0;  // every NaN was written
}

std::string differing(const HostTensor& got, const HostTensor& expected) {
  const std::vector<double> a = got.to_doubles();
  const std::vector<double> b = expected.to_doubles();
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool equal = (a[i] == b[i] && std::signbit(a[i]) == std::signbit(b[i])) ||
                       (std::isnan(a[i]) && std::isnan(b[i]));
    if (!equal) {
      return "element " + std::to_string(i) + " is " + std::to_string(a[i]) + " instead of " +
             std::to_string(b[i]);
    }
  }
  return "an element was not written, or differs past 2^53";
}

::testing::AssertionResult equals_the_evaluator(std::uint64_t seed) {
  const testing::EdgeGraph edge = testing::edge_graph(seed);
  const Graph& graph = edge.graph;
  const std::int64_t sizes[] = {1, 2, 7, 16, 33};
  const Bindings bindings{{"T", sizes[seed % 5]}};
  const RankTensors inputs = testing::edge_inputs(graph, bindings, seed);
  World world = World::open(testing::world_options(world_size(graph)));
  Executable executable = Executable::compile(graph, world);
  const RankTensors got = testing::run_once(executable, graph, bindings, inputs);
  const RankTensors expected = evaluate(graph, inputs, bindings);
  for (std::size_t rank = 0; rank < got.size(); ++rank) {
    for (std::size_t i = 0; i < got[rank].size(); ++i) {
      const HostTensor& x = got[rank][i];
      const HostTensor& y = expected[rank][i];
      const double allowed = tolerance(graph, graph.outputs()[i], y.shape);
      if (edge.exact[i] ? is_same(x, y) : is_near(x, y, allowed)) continue;
      return ::testing::AssertionFailure()
             << "output " << graph.value(graph.outputs()[i]).name << " of rank " << rank << ": "
             << differing(x, y) << "; relative error " << relative_error(x, y);
    }
  }
  return ::testing::AssertionSuccess();
}

class EdgeGraph : public ::testing::TestWithParam<int> {};

TEST_P(EdgeGraph, EqualsTheEvaluator) {
  const std::uint64_t base = testing::base_seed();
  RecordProperty("seed", std::to_string(base));
  for (std::uint64_t i = 0; i < 10; ++i) {
    const std::uint64_t seed = base + static_cast<std::uint64_t>(GetParam()) * 1000003 + i;
    ASSERT_TRUE(equals_the_evaluator(seed))
        << "BRAID_SEED=" << base << ", graph seed " << seed << "\n"
        << to_text(testing::edge_graph(seed).graph);
  }
}

INSTANTIATE_TEST_SUITE_P(Shards, EdgeGraph, ::testing::Range(0, 4));

// --- by hand
// ---------------------------------------------------------------------------------------

class ByHand {
 public:
  ValueId in(const HostTensor& x) {
    inputs_.push_back(x);
    return graph_.add_input(
        {"x" + std::to_string(inputs_.size()), {x.dtype, Shape(x.shape.begin(), x.shape.end())}});
  }
  ValueId reals(DType dtype, const std::vector<double>& x) {
    return in(HostTensor::from_doubles(dtype, {static_cast<std::int64_t>(x.size())}, x));
  }
  ValueId integers(DType dtype, const std::vector<std::int64_t>& x) {
    return in(HostTensor::from_integers(dtype, {static_cast<std::int64_t>(x.size())}, x));
  }
  std::vector<ValueId> results(const char* name, std::vector<ValueId> inputs, Attrs attrs = {}) {
    return graph_.node(graph_.add_node("", name, std::move(inputs), std::move(attrs))).outputs;
  }
  ValueId op(const char* name, std::vector<ValueId> inputs, Attrs attrs = {}) {
    return results(name, std::move(inputs), std::move(attrs))[0];
  }
  void out(ValueId v) { graph_.add_output(v); }
  std::vector<HostTensor> run() {
    World world = World::open(testing::world_options(1));
    Executable executable = Executable::compile(graph_, world);
    return testing::run_once(executable, graph_, {}, {inputs_})[0];
  }
  std::vector<HostTensor> evaluated() const { return evaluate(graph_, {inputs_}, {})[0]; }

 private:
  Graph graph_{"by_hand"};
  std::vector<HostTensor> inputs_;
};

void expect_same(const HostTensor& got, const std::vector<double>& expected) {
  EXPECT_TRUE(is_same(got, HostTensor::from_doubles(got.dtype, got.shape, expected)))
      << differing(got, HostTensor::from_doubles(got.dtype, got.shape, expected));
}

TEST(Edges, KernelsOfEitherZeroAreTwo) {
  ByHand b;
  const ValueId x = b.reals(DType::kF32, {1, 2});
  for (const double zero : {0.0, -0.0}) {
    const ValueId number = b.op("full", {}, {{"dtype", DType::kF32}, {"value", zero}});
    b.out(b.op("div", {x, b.op("mul", {x, number})}));
  }
  const auto out = b.run();
  expect_same(out[0], {kInfinity, kInfinity});
  expect_same(out[1], {-kInfinity, -kInfinity});
}

TEST(Edges, CastsAreOneCvtEach) {
  ByHand b;
  const ValueId x = b.reals(DType::kF32, {0.9, -2.5, 300, 3e9, -3e9, 1e19, -1e19, kInfinity, kNan});
  for (DType dtype : {DType::kI32, DType::kI64, DType::kU8, DType::kBool, DType::kI8}) {
    b.out(b.op("to", {x}, {{"dtype", dtype}}));
  }
  const ValueId y =
      b.reals(DType::kF32, {464, 465, 1e30, kInfinity, -kInfinity, kNan, -0.0, 61440});
  for (DType dtype : {DType::kF8E4M3, DType::kF8E5M2}) {
    b.out(b.op("to", {y}, {{"dtype", dtype}}));
  }
  const auto out = b.run();
  using Ints = std::vector<std::int64_t>;
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(out[0].to_integers(), (Ints{0, -2, 300, 2147483647, -2147483648LL, 2147483647,
                                        -2147483648LL, 2147483647, 0}));
  EXPECT_EQ(out[1].to_integers(),
            (Ints{0, -2, 300, 3000000000, -3000000000, kMax, kMin, kMax, kMin}));
  EXPECT_EQ(out[2].to_integers(), (Ints{0, 0, 255, 255, 0, 255, 0, 255, 0}));
  EXPECT_EQ(out[3].to_integers(), (Ints{1, 1, 1, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(out[4].to_integers(), (Ints{0, -2, 127, 127, -128, 127, -128, 127, 0}));
  expect_same(out[5], {448, 448, 448, 448, -448, kNan, -0.0, 448});
  expect_same(out[6], {448, 448, kInfinity, kInfinity, -kInfinity, kNan, -0.0, kInfinity});
}

// Signed overflow is undefined in C++: a compiler may take x - 1 < x for true.
TEST(Edges, FusedIntegersWrap) {
  ByHand b;
  using Ints = std::vector<std::int64_t>;
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  const ValueId x = b.integers(DType::kI64, Ints{kMin, kMin, 5});
  const ValueId y = b.integers(DType::kI64, Ints{1, 2, 7});
  const ValueId zero = b.op("full", {}, {{"value", std::int64_t{0}}, {"dtype", DType::kI64}});
  b.out(b.op("lt", {b.op("sub", {x, y}), zero}));
  b.out(b.op("lt", {b.op("abs", {x}), zero}));
  b.out(b.op("lt", {b.op("neg", {x}), zero}));
  b.out(b.op("gt", {b.op("sub", {x, y}), x}));
  const auto out = b.run();
  EXPECT_EQ(out[0].to_integers(), (Ints{0, 0, 1}));
  EXPECT_EQ(out[1].to_integers(), (Ints{1, 1, 0}));
  EXPECT_EQ(out[2].to_integers(), (Ints{1, 1, 1}));
  EXPECT_EQ(out[3].to_integers(), (Ints{1, 1, 0}));
}

TEST(Edges, ReluAndClampKeepNanAndMinusZero) {
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    ByHand b;
    const ValueId x = b.reals(dtype, {-0.0, 0.0, kNan, -1, 1, -kInfinity, kInfinity});
    b.out(b.op("relu", {x}));
    b.out(b.op("clamp", {x}, {{"min", 0.0}}));
    b.out(b.op("clamp", {x}, {{"max", 0.0}}));
    b.out(b.op("to", {b.op("relu", {x})}, {{"dtype", DType::kF32}}));
    const auto out = b.run();
    for (const std::size_t i : {0, 1, 3}) expect_same(out[i], {-0.0, 0, kNan, 0, 1, 0, kInfinity});
    expect_same(out[2], {-0.0, 0, kNan, -1, 0, -kInfinity, 0});
  }
}

TEST(Edges, SubnormalsAreKept) {
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    const double least = dtype == DType::kF16    ? 0x1p-24
                         : dtype == DType::kBF16 ? 0x1p-133
                                                 : 0x1p-149;
    ByHand b;
    const ValueId x = b.reals(dtype, {least, -least, 3 * least, 64 * least});
    const ValueId half = b.reals(dtype, {0.5, 1, 0.5, 0.5});
    b.out(b.op("mul", {x, half}));
    b.out(b.op("add", {x, x}));
    b.out(b.op("to", {x}, {{"dtype", DType::kF32}}));
    b.out(b.op("sub", {x, x}));
    b.out(b.op("sum", {x}));
    const auto out = b.run();
    expect_same(out[0], {0, -least, 2 * least, 32 * least});  // ties to even
    expect_same(out[1], {2 * least, -2 * least, 6 * least, 128 * least});
    expect_same(out[2], {least, -least, 3 * least, 64 * least});
    expect_same(out[3], {0, 0, 0, 0});
    expect_same(out[4], {67 * least});
  }
}

TEST(Edges, OneElementConstantIsAnOutput) {
  for (DType dtype : {DType::kF32, DType::kI64, DType::kBF16, DType::kBool}) {
    for (const Shape& shape : {Shape{1}, Shape{}, Shape{3}}) {
      ByHand b;
      b.out(b.op("full", {}, {{"value", std::int64_t{1}}, {"dtype", dtype}, {"shape", shape}}));
      const HostTensor y = b.run()[0];
      for (double element : y.to_doubles()) EXPECT_EQ(element, 1);
    }
  }
  ByHand b;
  b.out(b.op("full", {}, {{"value", -0.0}, {"dtype", DType::kF32}, {"shape", Shape{2}}}));
  expect_same(b.run()[0], {-0.0, -0.0});
}

// Rows that a block sweeps in pieces, and reductions cut into parts.
TEST(Edges, ExtremesOfLongRows) {
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kColumns = 20000;
  const std::size_t count = 2 * kColumns;
  std::vector<double> reals(count, 1);
  reals[7] = -0.0;
  reals[kColumns + 12345] = kNan;
  reals[kColumns + 12346] = kInfinity;
  std::vector<std::int64_t> integers(count, kMin + 1);
  integers[kColumns + 19999] = kMin;
  ByHand b;
  const ValueId x = b.in(HostTensor::from_doubles(DType::kF32, {2, kColumns}, reals));
  const ValueId n = b.in(HostTensor::from_integers(DType::kI64, {2, kColumns}, integers));
  const Attrs rows{{"dim", std::vector<std::int64_t>{1}}};
  b.out(b.op("amin", {x}, rows));
  b.out(b.op("amax", {x}, rows));
  b.out(b.op("amin", {n}, rows));
  b.out(b.op("amax", {n}));
  b.out(b.op("argmax", {x}, rows));
  b.out(b.op("amin", {x}));
  const auto out = b.run();
  expect_same(out[0], {-0.0, kNan});
  expect_same(out[1], {1, kNan});
  EXPECT_EQ(out[2].to_integers(), (std::vector<std::int64_t>{kMin + 1, kMin}));
  EXPECT_EQ(out[3].to_integers(), (std::vector<std::int64_t>{kMin + 1}));
  EXPECT_EQ(out[4].to_integers(), (std::vector<std::int64_t>{0, 12345}));
  expect_same(out[5], {kNan});
}

TEST(Edges, SamplesAreDrawnFromWhatIsKept) {
  struct Row {
    std::vector<double> logits;
    double temperature;
    std::int64_t top_k;
    double top_p, min_p, random;
    std::int64_t token;
  };
  std::vector<double> tenths;  // 0.1, 0.2, 0.3, 0.4
  for (const double p : {1, 2, 3, 4}) tenths.push_back(std::log(p));
  const double far = std::numeric_limits<float>::max();
  const double tiny = std::numeric_limits<float>::denorm_min();
  const std::vector<Row> rows = {
      {tenths, 1, 0, 1, 0, 0, 0},
      {tenths, 1, 0, 1, 0, 0.15, 1},
      {tenths, 1, -1, 1, 0, 0.35, 2},
      {tenths, 1, 9, 2, 0, 0.65, 3},
      {tenths, 1, 0, 1, 0, 1 - 0x1p-24, 3},
      {tenths, 0.5, 0, 1, 0, 0.15, 1},  // 1, 4, 9 and 16 of 30
      {tenths, 0.5, 0, 1, 0, 0.2, 2},
      {tenths, 1, 2, 1, 0, 0, 2},
      {tenths, 1, 2, 1, 0, 0.4, 2},
      {tenths, 1, 2, 1, 0, 0.45, 3},
      {tenths, 1, 1, 1, 0, 0, 3},
      {tenths, 1, 0, 0.5, 0, 0, 2},
      {tenths, 1, 0, 0.39, 0, 0, 3},
      {tenths, 1, 0, 0, 0, 0, 3},
      {tenths, 1, 3, 0.5, 0, 0, 2},
      {tenths, 1, 1, 0.5, 0, 0, 3},
      {tenths, 1, 0, 1, 0.6, 0, 2},  // of the largest: 0.25, 0.5, 0.75 and 1
      {tenths, 1, 0, 1, 7, 0, 3},
      {tenths, 0, 0, 1, 0, 0, 3},
      {{1, 1, 0, 1}, 0, 0, 1, 0, 0.99, 0},
      {{1, 1, 0, 1}, 1, 1, 1, 0, 0.5, 1},  // equal ones stay together
      {{-0.0, 0.0, -1, -2}, 1, 2, 1, 0, 0, 0},
      {{-3, -1, -2, -4}, 1, 1, 1, 0, 0.9, 1},
      {{-far, far, 0, -far}, 1, 2, 1, 0, 0.9, 1},
      {{0, tiny, 0, 0}, 1, 1, 1, 0, 0, 1},
      {{0, -tiny, -1, -1}, 1, 1, 1, 0, 0.9, 0},
      {{-kInfinity, 0, -kInfinity, 0}, 1, 0, 1, 0, 0, 1},
      {{-kInfinity, 0, -kInfinity, 0}, 1, 0, 1, 0, 0.9, 3},
      {{0, kInfinity, 1, kInfinity}, 1, 0, 1, 0, 0.6, 3},
      {{-kInfinity, -kInfinity, -kInfinity, -kInfinity}, 1, 0, 1, 0, 0.6, 2},
      {{0, 9, kNan, 1}, 1, 0, 1, 0, 0.1, 2},
  };
  const auto count = static_cast<std::int64_t>(rows.size());
  std::vector<double> logits, temperature, top_p, min_p, random;
  std::vector<std::int64_t> top_k, tokens;
  for (const Row& row : rows) {
    logits.insert(logits.end(), row.logits.begin(), row.logits.end());
    temperature.push_back(row.temperature);
    top_k.push_back(row.top_k);
    top_p.push_back(row.top_p);
    min_p.push_back(row.min_p);
    random.push_back(row.random);
    tokens.push_back(row.token);
  }
  ByHand b;
  const ValueId x = b.in(HostTensor::from_doubles(DType::kF32, {count, 4}, logits));
  b.out(b.op("sample", {x, b.reals(DType::kF32, temperature), b.integers(DType::kI32, top_k),
                        b.reals(DType::kF32, top_p), b.reals(DType::kF32, min_p),
                        b.reals(DType::kF32, random)}));
  EXPECT_EQ(b.evaluated()[0].to_integers(), tokens);
  EXPECT_EQ(b.run()[0].to_integers(), tokens);
}

TEST(Edges, SumsOfPowersKeepInfinities) {
  ByHand b;
  const ValueId x =
      b.reals(DType::kF32, {kInfinity, -kInfinity, kInfinity, -kInfinity, kNan, 1000});
  const ValueId y = b.reals(DType::kF32, {kInfinity, -kInfinity, -kInfinity, 3, 1, -1000});
  b.out(b.op("logaddexp", {x, y}));
  for (const HostTensor& sums : {b.evaluated()[0], b.run()[0]}) {
    expect_same(sums, {kInfinity, -kInfinity, kInfinity, 3, kNan, 1000});
  }
}

TEST(Edges, QuotientsOfIntegers) {
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  using Ints = std::vector<std::int64_t>;
  ByHand b;
  const ValueId x = b.integers(DType::kI64, {7, -7, 7, -7, 6, -6, 0, kMax, kMin, kMin, 5, kMin});
  const ValueId y = b.integers(DType::kI64, {2, 2, -2, -2, 3, 3, -5, -2, 2, -1, 0, 1});
  b.out(b.op("floor_divide", {x, y}));
  b.out(b.op("div", {x, y}, {{"rounding_mode", std::string("trunc")}}));
  const ValueId i = b.integers(DType::kI32, {-2147483648LL, -2147483648LL, 9});
  b.out(b.op("floor_divide", {i, b.integers(DType::kI32, {-1, 3, -2})}));
  const ValueId u = b.integers(DType::kU8, {255, 7, 9});
  b.out(b.op("floor_divide", {u, b.integers(DType::kU8, {2, 255, 0})}));
  const auto out = b.run();
  EXPECT_EQ(out[0].to_integers(),
            (Ints{3, -4, -4, 3, 2, -2, 0, kMin / 2, kMin / 2, kMin, 0, kMin}));
  EXPECT_EQ(out[1].to_integers(),
            (Ints{3, -3, -3, 3, 2, -2, 0, kMin / 2 + 1, kMin / 2, kMin, 0, kMin}));
  EXPECT_EQ(out[2].to_integers(), (Ints{-2147483648LL, -715827883, -5}));
  EXPECT_EQ(out[3].to_integers(), (Ints{127, 0, 0}));
}

// Rows that a block holds, that it sweeps in pieces, and dims in front of others.
TEST(Edges, SumsAndProductsOfIntegers) {
  constexpr std::int64_t kColumns = 20000;
  using Ints = std::vector<std::int64_t>;
  ByHand b;
  std::vector<std::int64_t> small(2 * 5), wide(2 * kColumns, 1);
  for (std::size_t i = 0; i < small.size(); ++i) small[i] = (std::int64_t{1} << 30) + 3;
  wide[7] = std::numeric_limits<std::int64_t>::max();
  wide[kColumns + 19999] = -3;
  const ValueId x = b.in(HostTensor::from_integers(DType::kI32, {2, 5}, small));
  const ValueId n = b.in(HostTensor::from_integers(DType::kI64, {2, kColumns}, wide));
  const ValueId t = b.integers(DType::kBool, {1, 0, 1});
  const ValueId f = b.reals(DType::kBF16, {2, -0.5, 3, 1});
  const Attrs rows{{"dim", std::vector<std::int64_t>{1}}};
  const Attrs columns{{"dim", std::vector<std::int64_t>{0}}};
  b.out(b.op("sum", {x}, rows));
  b.out(b.op("sum", {x}, columns));
  b.out(b.op("prod", {x}, columns));
  b.out(b.op("sum", {n}, rows));
  b.out(b.op("prod", {n}, rows));
  b.out(b.op("sum", {t}));
  b.out(b.op("prod", {t}));
  b.out(b.op("prod", {f}));
  b.out(b.op("sum", {n}));
  const auto out = b.run();
  constexpr std::int64_t kSmall = (std::int64_t{1} << 30) + 3;
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(out[0].to_integers(), Ints(2, 5 * kSmall));
  EXPECT_EQ(out[1].to_integers(), Ints(5, 2 * kSmall));
  EXPECT_EQ(out[2].to_integers(), Ints(5, kSmall * kSmall));
  EXPECT_EQ(out[3].to_integers(), (Ints{kMin + kColumns - 2, kColumns - 4}));
  EXPECT_EQ(out[4].to_integers(), (Ints{std::numeric_limits<std::int64_t>::max(), -3}));
  EXPECT_EQ(out[5].to_integers(), Ints{2});
  EXPECT_EQ(out[6].to_integers(), Ints{0});
  expect_same(out[7], {-3});
  EXPECT_EQ(out[8].to_integers(), (Ints{kMin + 2 * kColumns - 6}));
}

TEST(Edges, ConstantsThatAreNotFinite) {
  ByHand b;
  const auto full = [&](DType dtype, double value) {
    b.out(b.op("full", {}, {{"value", value}, {"dtype", dtype}, {"shape", Shape{1}}}));
  };
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (double value : {kInfinity, -kInfinity, kNan}) full(dtype, value);
  }
  const ValueId x = b.reals(DType::kF32, {-2, kNan, kInfinity});
  b.out(b.op("clamp", {x}, {{"min", -kInfinity}, {"max", 1.0}}));
  b.out(b.op("clamp", {x}, {{"max", kNan}}));
  const auto out = b.run();
  for (std::size_t i = 0; i < 9; i += 3) {
    expect_same(out[i], {kInfinity});
    expect_same(out[i + 1], {-kInfinity});
    expect_same(out[i + 2], {kNan});
  }
  expect_same(out[9], {-2, kNan, 1});
  expect_same(out[10], {-2, kNan, kInfinity});
}

TEST(Edges, AnUnwrittenElementFailsWhateverIsExpected) {
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3, DType::kF8E5M2,
                      DType::kI64, DType::kI32, DType::kI8, DType::kU8, DType::kBool}) {
    Graph graph("unwritten");
    const ValueId x = graph.add_input({"x", {DType::kF32, {8}}});
    graph.add_output(graph.node(graph.add_node("y", "to", {x}, {{"dtype", dtype}})).outputs[0]);
    World world = World::open(testing::world_options(1));
    Executable executable = Executable::compile(graph, world);
    const RankTensors inputs = {
        {HostTensor::from_doubles(DType::kF32, {8}, std::vector<double>(8, kNan))}};
    const HostTensor written = testing::run_once(executable, graph, {}, inputs)[0][0];
    const HostTensor expected = evaluate(graph, inputs, {})[0][0];
    EXPECT_EQ(relative_error(written, expected), 0) << dtype_name(dtype);
    executable.poison_outputs();
    EXPECT_GT(relative_error(executable.output(0, "y"), expected), 0) << dtype_name(dtype);
  }
}

TEST(Edges, AddmmWithBetaZeroIgnoresTheBias) {
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    ByHand b;
    const HostTensor eye = HostTensor::from_doubles(dtype, {2, 2}, {1, 0, 0, 1});
    const HostTensor x = HostTensor::from_doubles(dtype, {2, 2}, {1, 2, 3, 4});
    b.out(b.op("addmm", {b.reals(dtype, {kNan, kInfinity}), b.in(x), b.in(eye)}, {{"beta", 0.0}}));
    expect_same(b.run()[0], {1, 2, 3, 4});
  }
}

TEST(Edges, SignsAndWhatIsNoFiniteNumber) {
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    ByHand b;
    const ValueId x = b.reals(dtype, {kNan, kInfinity, -kInfinity, -0.0, 0x1p-24, -65504});
    for (const char* op : {"isnan", "isinf", "isfinite", "sign"}) b.out(b.op(op, {x}));
    const ValueId n = b.integers(DType::kI64, {std::numeric_limits<std::int64_t>::min(), 0, 3});
    for (const char* op : {"isnan", "isinf", "isfinite", "sign"}) b.out(b.op(op, {n}));
    const auto out = b.run();
    expect_same(out[0], {1, 0, 0, 0, 0, 0});
    expect_same(out[1], {0, 1, 1, 0, 0, 0});
    expect_same(out[2], {0, 0, 0, 1, 1, 1});
    expect_same(out[3], {0, 1, -1, 0, 1, -1});
    expect_same(out[4], {0, 0, 0});
    expect_same(out[5], {0, 0, 0});
    expect_same(out[6], {1, 1, 1});
    expect_same(out[7], {-1, 0, 1});
  }
}

TEST(Edges, BitsAndRemaindersOfIntegers) {
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  using Ints = std::vector<std::int64_t>;
  ByHand b;
  const ValueId x = b.integers(DType::kI64, {kMin, kMin, kMax, -7, 7, 12, -1});
  const ValueId y = b.integers(DType::kI64, {-1, 0, kMin, 3, -3, 10, kMax});
  const char* binary[] = {"remainder", "fmod", "bitwise_and", "bitwise_or", "bitwise_xor"};
  for (const char* op : binary) b.out(b.op(op, {x, y}));
  b.out(b.op("bitwise_not", {x}));
  b.out(b.op("bitwise_not", {b.integers(DType::kU8, {0, 255, 5})}));
  b.out(b.op("bitwise_not", {b.integers(DType::kI32, {0, -1, 5})}));
  const ValueId p = b.integers(DType::kBool, {0, 0, 1, 1});
  const ValueId q = b.integers(DType::kBool, {0, 1, 0, 1});
  b.out(b.op("bitwise_not", {p}));
  for (const char* op : {"bitwise_and", "bitwise_or", "bitwise_xor", "logical_xor"}) {
    b.out(b.op(op, {p, q}));
  }
  const auto out = b.run();
  EXPECT_EQ(out[0].to_integers(), (Ints{0, kMin, -1, 2, -2, 2, kMax - 1}));
  EXPECT_EQ(out[1].to_integers(), (Ints{0, kMin, kMax, -1, 1, 2, -1}));
  EXPECT_EQ(out[2].to_integers(), (Ints{kMin, 0, 0, 1, 5, 8, kMax}));
  EXPECT_EQ(out[3].to_integers(), (Ints{-1, kMin, -1, -5, -1, 14, -1}));
  EXPECT_EQ(out[4].to_integers(), (Ints{kMax, kMin, -1, -6, -6, 6, kMin}));
  EXPECT_EQ(out[5].to_integers(), (Ints{kMax, kMax, kMin, 6, -8, -13, 0}));
  EXPECT_EQ(out[6].to_integers(), (Ints{255, 0, 250}));
  EXPECT_EQ(out[7].to_integers(), (Ints{-1, 0, -6}));
  EXPECT_EQ(out[8].to_integers(), (Ints{1, 1, 0, 0}));
  EXPECT_EQ(out[9].to_integers(), (Ints{0, 0, 0, 1}));
  EXPECT_EQ(out[10].to_integers(), (Ints{0, 1, 1, 1}));
  EXPECT_EQ(out[11].to_integers(), (Ints{0, 1, 1, 0}));
  EXPECT_EQ(out[12].to_integers(), (Ints{0, 1, 1, 0}));
}

// As PyTorch has it, whose shifts by a negative number are no errors.
TEST(Edges, Shifts) {
  using Ints = std::vector<std::int64_t>;
  const struct {
    DType dtype;
    Ints x, by, left, right;
  } kRows[] = {
      {DType::kI8,
       {1, -1, 127, -128, 5, 5, 5, -5, 64},
       {7, 1, 1, 1, 8, 127, -1, -128, 1},
       {-128, -2, -2, 0, 0, 0, 0, 0, -128},
       {0, -1, 63, -64, 0, 0, 0, -1, 32}},
      {DType::kU8, {1, 255, 128, 7, 7}, {7, 1, 7, 8, 255}, {128, 254, 0, 0, 0}, {0, 127, 1, 0, 0}},
      {DType::kI32,
       {1, -1, 1, -8, -8},
       {31, 31, 32, 64, -3},
       {-2147483648LL, -2147483648LL, 0, 0, 0},
       {0, -1, 0, -1, -1}},
      {DType::kI64,
       {1, 3, 1, -8, -8, -8},
       {63, 62, 64, 65, 63, -1},
       {std::numeric_limits<std::int64_t>::min(), -0x4000000000000000LL, 0, 0, 0, 0},
       {0, 0, 0, -1, -1, -1}}};
  for (const auto& [dtype, x, by, left, right] : kRows) {
    ByHand b;
    const ValueId operand = b.integers(dtype, x), amount = b.integers(dtype, by);
    for (const char* op : {"bitwise_left_shift", "bitwise_right_shift"}) {
      b.out(b.op(op, {operand, amount}));
    }
    const auto out = b.run();
    EXPECT_EQ(out[0].to_integers(), left) << dtype_name(dtype);
    EXPECT_EQ(out[1].to_integers(), right) << dtype_name(dtype);
  }
}

// Arguments that take many words of pi to reduce, and those at which f32 changes its way.
TEST(Edges, CosinesAreWithinTwoUnitsOfTheLastPlace) {
  std::vector<double> x{0, -0.0, 0x1p-149, 1, -1, 105614, 105616, 1e7, -0x1p100, 0x1.fffffep127};
  for (int i = 0; i < 500; ++i)
    x.push_back(round_to(DType::kF32, std::ldexp(1 + i / 500.0, i % 128)));
  ByHand b;
  const ValueId in = b.reals(DType::kF32, x);
  const ValueId none = b.reals(DType::kF32, {kInfinity, -kInfinity, kNan});
  for (const char* op : {"cos", "sin"}) b.out(b.op(op, {in}));
  for (const char* op : {"cos", "sin"}) b.out(b.op(op, {none}));
  const auto out = b.run();
  for (const bool is_sine : {false, true}) {
    const std::vector<double> got = out[is_sine ? 1 : 0].to_doubles();
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = is_sine ? std::sin(x[i]) : std::cos(x[i]);
      const double unit = std::ldexp(1.0, std::max(std::ilogb(exact), -126) - 23);
      worst = std::max(worst, exact == 0 ? std::fabs(got[i]) : std::fabs(got[i] - exact) / unit);
    }
    EXPECT_LE(worst, 2) << is_sine;
    expect_same(out[is_sine ? 3 : 2], {kNan, kNan, kNan});
  }
  EXPECT_TRUE(std::signbit(out[1].to_doubles()[1]));
}

TEST(Edges, TruthAndIndexOfRows) {
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  ByHand b;
  const ValueId x = b.in(HostTensor::from_doubles(
      DType::kF32, {4, 3}, {0, -0.0, kNan, 0, -0.0, 0, -kInfinity, 0x1p-149, 1, 3, -1, -1}));
  const ValueId n = b.in(HostTensor::from_integers(DType::kI64, {2, 3}, {kMin, -1, 5, 0, 0, 0}));
  const ValueId u = b.in(HostTensor::from_integers(DType::kU8, {2, 2}, {0, 200, 0, 0}));
  for (const std::int64_t dim : {1, 0}) {
    const Attrs along{{"dim", std::vector<std::int64_t>{dim}}};
    for (const char* op : {"any", "all"}) {
      b.out(b.op(op, {x}, along));
      b.out(b.op(op, {n}, along));
    }
    b.out(b.op("argmin", {x}, along));
  }
  b.out(b.op("any", {u}, {{"dim", std::vector<std::int64_t>{1}}}));
  const auto out = b.run();
  expect_same(out[0], {1, 0, 1, 1});
  expect_same(out[1], {1, 0});
  expect_same(out[2], {0, 0, 1, 1});
  expect_same(out[3], {1, 0});
  expect_same(out[4], {2, 0, 0, 1});
  expect_same(out[5], {1, 1, 1});
  expect_same(out[6], {1, 1, 1});
  expect_same(out[7], {0, 0, 0});
  expect_same(out[8], {0, 0, 0});
  expect_same(out[9], {2, 3, 0});
  expect_same(out[10], {1, 0});
  EXPECT_EQ(out[10].dtype, DType::kU8);
}

TEST(Edges, FillsMasksAndLogarithms) {
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    ByHand b;
    const ValueId x =
        b.in(HostTensor::from_doubles(dtype, {4, 2}, {5, 5, kNan, 7, 1000, -1000, kInfinity, 0}));
    const ValueId mask =
        b.in(HostTensor::from_integers(DType::kBool, {4, 2}, {0, 0, 1, 0, 0, 0, 0, 0}));
    const ValueId all = b.in(HostTensor::from_integers(DType::kBool, {1, 2}, {1, 1}));
    const ValueId low = b.op("full", {}, {{"value", -kInfinity}, {"dtype", dtype}});
    const ValueId filled = b.op("masked_fill", {x, mask, low});
    b.out(filled);
    b.out(b.op("log_softmax", {filled}));
    b.out(b.op("log_softmax", {b.op("masked_fill", {x, all, low})}, {{"dim", std::int64_t{1}}}));
    b.out(b.op("log_softmax", {filled}, {{"dim", std::int64_t{0}}}));
    const auto out = b.run();
    const double log2 = round_to(dtype, 0.69314718055994531);
    const double inf = kInfinity;
    expect_same(out[0], {5, 5, -inf, 7, 1000, -1000, inf, 0});
    expect_same(out[1], {-log2, -log2, -inf, 0, 0, -2000, kNan, kNan});
    expect_same(out[2], {kNan, kNan, kNan, kNan, kNan, kNan, kNan, kNan});
    const std::vector<double> columns = out[3].to_doubles();
    for (const std::size_t i : {0, 2, 4, 6}) EXPECT_TRUE(std::isnan(columns[i])) << i;
    EXPECT_NEAR(columns[3], -std::log1p(std::exp(-2.0) + std::exp(-7.0)), 2e-3);
  }
}

TEST(Edges, ArangesAndOneHot) {
  ByHand b;
  const auto range = [&](std::int64_t start, std::int64_t end, std::int64_t step, DType dtype) {
    return b.op("arange", {}, {{"start", start}, {"end", end}, {"step", step}, {"dtype", dtype}});
  };
  const std::int64_t odd = (std::int64_t{1} << 24) + 1;
  b.out(range(0, 5, 1, DType::kI64));
  b.out(range(3, -4, -2, DType::kI32));
  b.out(range(odd, odd + 2, 1, DType::kF32));
  b.out(range(254, 258, 1, DType::kU8));
  b.out(range(7, 8, 1, DType::kBF16));
  const ValueId classes = b.integers(DType::kI64, {2, 0, -1, 3});
  b.out(b.op("one_hot", {classes}, {{"num_classes", std::int64_t{3}}}));
  const ValueId x = b.reals(DType::kF16, {1, 2});
  b.out(b.op("full_like", {x}, {{"fill_value", -kInfinity}}));
  b.out(b.op("ones_like", {x}, {{"dtype", DType::kI32}}));
  b.out(b.op("zeros_like", {x}));
  const auto out = b.run();
  expect_same(out[0], {0, 1, 2, 3, 4});
  expect_same(out[1], {3, 1, -1, -3});
  expect_same(out[2], {16777216, 16777218});
  expect_same(out[3], {254, 255, 0, 1});
  expect_same(out[4], {7});
  expect_same(out[5], {0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0});
  expect_same(out[6], {-kInfinity, -kInfinity});
  expect_same(out[7], {1, 1});
  expect_same(out[8], {0, 0});
}

// Every thread of a line adds from the first element on, so that the bits are those of a loop.
TEST(Edges, ACumsumIsOneChain) {
  for (const Shape& shape : {Shape{300}, Shape{3, 70}, Shape{70, 3}}) {
    const std::int64_t lines = shape.size() == 1 ? 1 : 3;
    const bool inner = shape.back() == Dim(3);
    std::vector<std::int64_t> extents;
    for (const Dim& dim : shape) extents.push_back(dim.constant());
    const std::size_t length = static_cast<std::size_t>(inner ? extents[0] : extents.back());
    std::vector<double> x(length * static_cast<std::size_t>(lines));
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = round_to(DType::kF32, std::sin(static_cast<double>(i)) * std::exp2(i % 23));
    }
    ByHand b;
    const ValueId in = b.in(HostTensor::from_doubles(DType::kF32, extents, x));
    b.out(b.op("cumsum", {in}, {{"dim", std::int64_t{inner ? 0 : -1}}}));
    const std::vector<double> got = b.run()[0].to_doubles();
    for (std::size_t line = 0; line < static_cast<std::size_t>(lines); ++line) {
      float sum = 0;
      for (std::size_t i = 0; i < length; ++i) {
        const std::size_t at = inner ? i * 3 + line : line * length + i;
        sum += static_cast<float>(x[at]);
        ASSERT_EQ(got[at], sum) << line << ", " << i;
      }
    }
  }
}

TEST(Edges, ALongCumsumIsChains) {
  constexpr std::size_t kLength = 1500, kChain = 500;
  std::vector<double> x(2 * kLength);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = round_to(DType::kBF16, std::sin(static_cast<double>(i)) * std::exp2(i % 23));
  }
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    ByHand b;
    const ValueId in = b.in(HostTensor::from_doubles(dtype, {2, 1500}, x));
    b.out(b.op("cumsum", {in}, {{"dim", std::int64_t{1}}}));
    const std::vector<double> got = b.run()[0].to_doubles();
    for (std::size_t line = 0; line < 2; ++line) {
      float before = 0, sum = 0;
      for (std::size_t i = 0; i < kLength; ++i) {
        if (i % kChain == 0 && i > 0) {
          before += sum;
          sum = 0;
        }
        const std::size_t at = line * kLength + i;
        sum += static_cast<float>(x[at]);
        ASSERT_EQ(got[at], round_to(dtype, sum + before)) << line << ", " << i;
      }
    }
  }
}

TEST(Edges, CumsumsOfIntegersWrap) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  ByHand b;
  b.out(b.op("cumsum", {b.integers(DType::kI64, {kMax, 1, -1})}, {{"dim", std::int64_t{0}}}));
  b.out(b.op("cumsum", {b.integers(DType::kU8, {200, 100, 1})}, {{"dim", std::int64_t{0}}}));
  b.out(b.op("cumsum", {b.integers(DType::kBool, {1, 0, 1})}, {{"dim", std::int64_t{0}}}));
  b.out(b.op("cumsum", {b.reals(DType::kBF16, {256, 1, 1, kInfinity, -kInfinity, 1})},
             {{"dim", std::int64_t{0}}}));
  const auto out = b.run();
  using Ints = std::vector<std::int64_t>;
  EXPECT_EQ(out[0].to_integers(), (Ints{kMax, std::numeric_limits<std::int64_t>::min(), kMax}));
  EXPECT_EQ(out[1].to_integers(), (Ints{200, 300, 301}));
  EXPECT_EQ(out[2].to_integers(), (Ints{1, 1, 2}));
  expect_same(out[3], {256, 256, 258, kInfinity, kNan, kNan});
}

// NaN is above all, and equal elements keep their order, zeros of both signs too.
TEST(Edges, OrdersOfRows) {
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  ByHand b;
  const auto both = [&](ValueId x, const Attrs& attrs) {
    for (ValueId result : b.results("topk", {x}, attrs)) b.out(result);
  };
  const Attrs all{{"k", std::int64_t{6}}}, least{{"k", std::int64_t{6}}, {"largest", false}};
  const ValueId x = b.in(HostTensor::from_doubles(
      DType::kF32, {2, 6},
      {kNan, -0.0, 0.0, kInfinity, kNan, -kInfinity, 2, -kInfinity, 2, 1, -kInfinity, 2}));
  both(x, all);
  both(x, least);
  const ValueId n =
      b.in(HostTensor::from_integers(DType::kI64, {6}, {kMin, 5, kMax, 5, kMin, kMax}));
  both(n, all);
  both(n, least);
  both(b.reals(DType::kBF16, {-kInfinity, kNan, -kInfinity}),
       {{"k", std::int64_t{2}}, {"largest", false}});
  both(b.integers(DType::kU8, {0, 255, 0, 7}), {{"k", std::int64_t{3}}});
  both(b.reals(DType::kF16, {3}), {{"k", std::int64_t{1}}});
  const auto out = b.run();
  const double inf = kInfinity;
  expect_same(out[0], {kNan, kNan, inf, -0.0, 0.0, -inf, 2, 2, 2, 1, -inf, -inf});
  expect_same(out[1], {0, 4, 3, 1, 2, 5, 0, 2, 5, 3, 1, 4});
  expect_same(out[2], {-inf, -0.0, 0.0, inf, kNan, kNan, -inf, -inf, 1, 2, 2, 2});
  expect_same(out[3], {5, 1, 2, 3, 0, 4, 1, 4, 3, 0, 2, 5});
  using Ints = std::vector<std::int64_t>;
  EXPECT_EQ(out[4].to_integers(), (Ints{kMax, kMax, 5, 5, kMin, kMin}));
  EXPECT_EQ(out[5].to_integers(), (Ints{2, 5, 1, 3, 0, 4}));
  EXPECT_EQ(out[6].to_integers(), (Ints{kMin, kMin, 5, 5, kMax, kMax}));
  EXPECT_EQ(out[7].to_integers(), (Ints{0, 4, 1, 3, 2, 5}));
  expect_same(out[8], {-inf, -inf});
  expect_same(out[9], {0, 2});
  EXPECT_EQ(out[10].to_integers(), (Ints{255, 7, 0}));
  EXPECT_EQ(out[11].to_integers(), (Ints{1, 3, 0}));
  expect_same(out[12], {3});
  expect_same(out[13], {0});
}

}  // namespace
}  // namespace braid
