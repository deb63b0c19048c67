// The evaluator at the edges, against numbers written by hand: docs/numerics.md has the rules.

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "support.h"

namespace braid {
namespace {

using Ints = std::vector<std::int64_t>;
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kTwo53 = std::int64_t{1} << 53;
constexpr std::int32_t kMin32 = std::numeric_limits<std::int32_t>::min();
constexpr std::int32_t kMax32 = std::numeric_limits<std::int32_t>::max();
const double kNan = std::nan("");
const double kInf = std::numeric_limits<double>::infinity();

HostTensor integers(DType dtype, const Ints& values) {
  return HostTensor::from_integers(dtype, {static_cast<std::int64_t>(values.size())}, values);
}
HostTensor reals(DType dtype, const Values& values) {
  return HostTensor::from_doubles(dtype, {static_cast<std::int64_t>(values.size())}, values);
}

/// The first result of `op` on tensors of one dim, one list for each rank.
std::vector<HostTensor> on_ranks(const char* op, const Attrs& attrs, const RankTensors& inputs) {
  std::vector<TensorType> types;
  for (const HostTensor& x : inputs[0]) {
    types.push_back({x.dtype, Shape(x.shape.begin(), x.shape.end())});
  }
  Graph graph = graph_with(types, static_cast<std::int64_t>(inputs.size()), true);
  graph.add_output(graph.node(graph.add_node("n", op, graph.input_values(), attrs)).outputs[0]);
  std::vector<HostTensor> results;
  for (const auto& rank : evaluate(graph, inputs, {{"T", 1}, {"S", 1}})) results.push_back(rank[0]);
  return results;
}
HostTensor on(const char* op, const std::vector<HostTensor>& inputs, const Attrs& attrs = {}) {
  return on_ranks(op, attrs, {inputs})[0];
}
HostTensor cast(const HostTensor& x, DType to) { return on("to", {x}, {{"dtype", to}}); }

/// NaN equals NaN, and -0 is not 0.
void expect_same(const HostTensor& found, const Values& expected, const char* what = "") {
  const Values values = found.to_doubles();
  ASSERT_EQ(values.size(), expected.size()) << what;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(values[i])) << what << " " << i << ": " << values[i];
    } else {
      EXPECT_EQ(values[i], expected[i]) << what << " " << i;
      EXPECT_EQ(std::signbit(values[i]), std::signbit(expected[i])) << what << " " << i;
    }
  }
}

TEST(Numerics, I64WrapsAndIsExact) {
  struct Row {
    const char* op;
    Ints a, b, expected;
  };
  const Row rows[] = {
      {"add", {kMax, kTwo53, -1}, {1, 1, kMin}, {kMin, kTwo53 + 1, kMax}},
      {"sub", {kMin, kTwo53 + 1, 0}, {1, 1, kMin}, {kMax, kTwo53, kMin}},
      {"mul",
       {kMin, 1LL << 32, 3037000500},
       {-1, 1LL << 32, 3037000500},
       {kMin, 0, -9223372036709301616}},
      {"minimum", {kMin, kMax, kTwo53 + 1}, {3, 3, kTwo53}, {kMin, 3, kTwo53}},
      {"maximum", {kMin, kMax, kTwo53 + 1}, {3, 3, kTwo53}, {3, kMax, kTwo53 + 1}},
      {"lt", {kTwo53, kMin, kMax}, {kTwo53 + 1, kMax, kMin}, {1, 1, 0}},
      {"le", {kTwo53 + 1, kMin, 7}, {kTwo53, kMin, 7}, {0, 1, 1}},
      {"gt", {kTwo53 + 1, kMin, 7}, {kTwo53, kMax, 7}, {1, 0, 0}},
      {"ge", {kMax - 1, kMin, 7}, {kMax, kMin, 7}, {0, 1, 1}},
      {"eq", {kTwo53, kMax - 1, kMin}, {kTwo53 + 1, kMax, kMin}, {0, 0, 1}},
      {"ne", {kTwo53, kMax - 1, kMin}, {kTwo53 + 1, kMax, kMin}, {1, 1, 0}},
      {"logical_and", {kMin, 0, 256}, {256, 1, 1}, {1, 0, 1}},
      {"logical_or", {kMin, 0, 0}, {0, 0, 256}, {1, 0, 1}},
  };
  for (const Row& row : rows) {
    const HostTensor y = on(row.op, {integers(DType::kI64, row.a), integers(DType::kI64, row.b)});
    EXPECT_EQ(y.to_integers(), row.expected) << row.op;
  }
  const HostTensor x = integers(DType::kI64, {kMin, kMin + 1, -5, kMax});
  EXPECT_EQ(on("neg", {x}).to_integers(), (Ints{kMin, kMax, 5, kMin + 1}));
  EXPECT_EQ(on("abs", {x}).to_integers(), (Ints{kMin, kMax, 5, kMax}));
  EXPECT_EQ(on("relu", {x}).to_integers(), (Ints{0, 0, 0, kMax}));
  EXPECT_EQ(on("logical_not", {x}).to_integers(), (Ints{0, 0, 0, 0}));
}

TEST(Numerics, NarrowIntegersWrap) {
  const auto i32 = [](const Ints& v) { return integers(DType::kI32, v); };
  const auto u8 = [](const Ints& v) { return integers(DType::kU8, v); };
  EXPECT_EQ(on("add", {i32({kMax32}), i32({1})}).to_integers(), Ints{kMin32});
  EXPECT_EQ(on("mul", {i32({65536, 65535}), i32({65536, 65537})}).to_integers(), (Ints{0, -1}));
  EXPECT_EQ(on("neg", {i32({kMin32})}).to_integers(), Ints{kMin32});
  EXPECT_EQ(on("abs", {i32({kMin32})}).to_integers(), Ints{kMin32});
  EXPECT_EQ(on("add", {u8({255}), u8({1})}).to_integers(), Ints{0});
  EXPECT_EQ(on("sub", {u8({0}), u8({1})}).to_integers(), Ints{255});
  EXPECT_EQ(on("mul", {u8({16, 255}), u8({17, 255})}).to_integers(), (Ints{16, 1}));
  EXPECT_EQ(on("neg", {u8({1, 0})}).to_integers(), (Ints{255, 0}));
}

TEST(Numerics, ReductionsOfI64) {
  const HostTensor x =
      integers(DType::kI64, {kMin + 1, kMin, kTwo53, kTwo53 + 1, kMax - 1, kMax, kMax});
  EXPECT_EQ(on("amin", {x}).to_integers(), Ints{kMin});
  EXPECT_EQ(on("amax", {x}).to_integers(), Ints{kMax});
  EXPECT_EQ(on("argmax", {x}).to_integers(), Ints{5}) << "the first of equals";
  EXPECT_EQ(on("argmax", {integers(DType::kI64, {kMin, kMin})}).to_integers(), Ints{0});
  const HostTensor table = integers(DType::kI64, {kTwo53 + 1, kMin, kMax});
  EXPECT_EQ(on("index_select", {table, integers(DType::kI32, {2, 0})}, {{"dim", std::int64_t{0}}})
                .to_integers(),
            (Ints{kMax, kTwo53 + 1}));
  EXPECT_EQ(on("cat", {table, table}, {{"dim", std::int64_t{0}}}).to_integers(),
            (Ints{kTwo53 + 1, kMin, kMax, kTwo53 + 1, kMin, kMax}));
  const HostTensor other = integers(DType::kI64, {1, kMax - 1, 3});
  EXPECT_EQ(on("where", {integers(DType::kBool, {1, 0, 1}), table, other}).to_integers(),
            (Ints{kTwo53 + 1, kMax - 1, kMax}));
}

TEST(Numerics, ReductionsOverRanks) {
  const auto all_reduce = [](const char* op, const std::vector<HostTensor>& ranks) {
    RankTensors inputs;
    for (const HostTensor& x : ranks) inputs.push_back({x});
    return on_ranks("all_reduce", {{"reduce_op", std::string(op)}, {"group", std::string("tp")}},
                    inputs)[1];
  };
  const std::vector<HostTensor> i64 = {integers(DType::kI64, {kMax, kTwo53 + 1, kMin}),
                                       integers(DType::kI64, {1, 0, kMin}),
                                       integers(DType::kI64, {0, 0, kMin + 1})};
  EXPECT_EQ(all_reduce("sum", i64).to_integers(), (Ints{kMin, kTwo53 + 1, kMin + 1}));
  EXPECT_EQ(all_reduce("max", i64).to_integers(), (Ints{kMax, kTwo53 + 1, kMin + 1}));
  EXPECT_EQ(all_reduce("min", i64).to_integers(), (Ints{0, 0, kMin}));
  EXPECT_EQ(all_reduce("product", {integers(DType::kU8, {200, 3}), integers(DType::kU8, {2, 5})})
                .to_integers(),
            (Ints{144, 15}));
  for (std::size_t rank = 0; rank < 3; ++rank) {
    for (const char* op : {"min", "max", "sum", "avg", "product"}) {
      std::vector<HostTensor> ranks(3, reals(DType::kF32, {1}));
      ranks[rank] = reals(DType::kF32, {kNan});
      expect_same(all_reduce(op, ranks), {kNan}, op);
    }
  }
}

TEST(Numerics, Casts) {
  // As one cvt does it: truncated, saturated, NaN as the PTX ISA defines.
  const HostTensor x =
      reals(DType::kF32, {0.9, -0.9, -2.5, 300, 3e9, -3e9, 1e19, -1e19, kInf, -kInf, kNan});
  EXPECT_EQ(cast(x, DType::kI32).to_integers(),
            (Ints{0, 0, -2, 300, kMax32, kMin32, kMax32, kMin32, kMax32, kMin32, 0}));
  EXPECT_EQ(cast(x, DType::kI64).to_integers(),
            (Ints{0, 0, -2, 300, 3000000000, -3000000000, kMax, kMin, kMax, kMin, kMin}));
  EXPECT_EQ(cast(x, DType::kU8).to_integers(), (Ints{0, 0, 0, 255, 255, 0, 255, 0, 255, 0, 0}));
  EXPECT_EQ(cast(reals(DType::kF32, {0, -0.0, 0.25, kNan, kInf}), DType::kBool).to_integers(),
            (Ints{0, 0, 1, 1, 1}));
  // The low bits.
  const HostTensor n = integers(DType::kI64, {1LL << 31, 1LL << 32, -1, 300, kMin, kTwo53 + 1});
  EXPECT_EQ(cast(n, DType::kI32).to_integers(), (Ints{kMin32, 0, -1, 300, 0, 1}));
  EXPECT_EQ(cast(n, DType::kU8).to_integers(), (Ints{0, 0, 255, 44, 0, 1}));
  EXPECT_EQ(cast(n, DType::kBool).to_integers(), (Ints{1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(cast(integers(DType::kU8, {255, 0}), DType::kI64).to_integers(), (Ints{255, 0}));
  // To the nearest, ties to even; a 16-bit float by way of f32, as PyTorch.
  expect_same(cast(integers(DType::kI64, {16777217, kTwo53 + 1, kMax, kMin}), DType::kF32),
              {16777216, 0x1p53, 0x1p63, -0x1p63});
  expect_same(cast(integers(DType::kI64, {33685505}), DType::kBF16), {33554432});
  expect_same(cast(integers(DType::kI32, {65519, 65520, -65520}), DType::kF16),
              {65504, kInf, -kInf});
  expect_same(cast(reals(DType::kF32, {65519, 65520, 0x1p-24, 0x1p-26, -0.0, kNan}), DType::kF16),
              {65504, kInf, 0x1p-24, 0, -0.0, kNan});
  expect_same(cast(reals(DType::kF32, {3.3961776e38, 1e-40, kNan}), DType::kBF16),
              {kInf, round_to(DType::kBF16, round_to(DType::kF32, 1e-40)), kNan});
}

// The results of torch 2.15 (its conversions, compiled and run).
TEST(Numerics, CastsToFloat8) {
  expect_same(cast(reals(DType::kF32, {448, 463.9, 464, 465, 480, 1e30, kInf, -470, -kInf, kNan,
                                       -0.0, 0x1p-10, 0x1.8p-9}),
                   DType::kF8E4M3),
              {448, 448, 448, 448, 448, 448, 448, -448, -448, kNan, -0.0, 0, 0x1p-8});
  expect_same(cast(reals(DType::kF32,
                         {57344, 61439, 61440, 65536, kInf, -kInf, kNan, -0.0, 0x1p-17, 0x1.1p-17}),
                   DType::kF8E5M2),
              {57344, 57344, kInf, kInf, kInf, -kInf, kNan, -0.0, 0, 0x1p-16});
}

TEST(Numerics, NanAndMinusZero) {
  const HostTensor a = reals(DType::kF32, {kNan, 1, kNan, 0.0, -0.0, -0.0, kInf, -kInf});
  const HostTensor b = reals(DType::kF32, {1, kNan, kNan, -0.0, 0.0, -0.0, 1, 1});
  expect_same(on("maximum", {a, b}), {kNan, kNan, kNan, 0.0, 0.0, -0.0, kInf, 1}, "maximum");
  expect_same(on("minimum", {a, b}), {kNan, kNan, kNan, -0.0, -0.0, -0.0, 1, -kInf}, "minimum");
  expect_same(on("relu", {a}), {kNan, 1, kNan, 0.0, -0.0, -0.0, kInf, 0}, "relu");
  expect_same(on("clamp", {a}, {{"min", 0.0}, {"max", 2.0}}),
              {kNan, 1, kNan, 0.0, -0.0, -0.0, 2, 0}, "clamp");
  expect_same(on("clamp", {a}, {{"min", 3.0}, {"max", 2.0}}), {kNan, 2, kNan, 2, 2, 2, 2, 2},
              "clamp, min above max");
  expect_same(on("abs", {a}), {kNan, 1, kNan, 0, 0, 0, kInf, kInf}, "abs");
  expect_same(on("round", {reals(DType::kF32, {0.5, -0.5, 1.5, kNan})}), {0, -0.0, 2, kNan});
  EXPECT_EQ(on("lt", {a, b}).to_integers(), (Ints{0, 0, 0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(on("ge", {a, b}).to_integers(), (Ints{0, 0, 0, 1, 1, 1, 1, 0}));
  EXPECT_EQ(on("ne", {a, b}).to_integers(), (Ints{1, 1, 1, 0, 0, 0, 1, 1}));
  EXPECT_EQ(on("eq", {a, b}).to_integers(), (Ints{0, 0, 0, 1, 1, 1, 0, 0}));
  EXPECT_EQ(on("logical_not", {a}).to_integers(), (Ints{0, 0, 0, 1, 1, 1, 0, 0}));
  expect_same(on("amax", {a}), {kNan});
  expect_same(on("amin", {b}), {kNan});
  expect_same(on("amin", {reals(DType::kF32, {0.0, -0.0})}), {-0.0});
  expect_same(on("amax", {reals(DType::kF32, {-0.0, 0.0})}), {0.0});
  EXPECT_EQ(on("argmax", {b}).to_integers(), Ints{1}) << "the first NaN";
  expect_same(on("softmax", {reals(DType::kF32, {-kInf, -kInf})}), {kNan, kNan}, "softmax");
  expect_same(on("softmax", {reals(DType::kF32, {-kInf, 0})}), {0, 1}, "softmax");
  expect_same(on("softmax", {reals(DType::kF32, {1, kNan})}), {kNan, kNan}, "softmax");
  expect_same(on("sum", {reals(DType::kF32, {kInf, -kInf})}), {kNan}, "sum");
}

TEST(Numerics, ConstantsAreExactOrRefused) {
  const auto full = [](DType dtype, const AttrValue& value) {
    Graph graph = graph_with({}, 1);
    graph.add_node("n", "full", {}, {{"value", value}, {"dtype", dtype}});
    graph.add_output(0);
    return evaluate(graph, RankTensors(1), {{"T", 1}, {"S", 1}})[0][0];
  };
  EXPECT_EQ(full(DType::kI64, kMax).to_integers(), Ints{kMax});
  EXPECT_EQ(full(DType::kI64, kMin).to_integers(), Ints{kMin});
  EXPECT_EQ(full(DType::kI64, kTwo53 + 1).to_integers(), Ints{kTwo53 + 1});
  EXPECT_EQ(full(DType::kI32, 3.0).to_integers(), Ints{3});
  EXPECT_EQ(full(DType::kBool, std::int64_t{2}).to_integers(), Ints{1});
  expect_same(full(DType::kF32, -0.0), {-0.0});
  const auto refusal = [&](DType dtype, const AttrValue& value) {
    return error_of([&] { static_cast<void>(full(dtype, value)); });
  };
  EXPECT_TRUE(is_error(refusal(DType::kI32, std::int64_t{1} << 31), "n/attrs/value",
                       "2147483648 is no value of i32"));
  EXPECT_TRUE(is_error(refusal(DType::kI32, 2.7), "n/attrs/value", "2.7 is no value of i32"));
  EXPECT_TRUE(is_error(refusal(DType::kU8, std::int64_t{300}), "n/attrs/value", "of u8"));
  EXPECT_TRUE(is_error(refusal(DType::kU8, std::int64_t{-1}), "n/attrs/value", "of u8"));
  EXPECT_TRUE(is_error(refusal(DType::kI64, 0x1p63), "n/attrs/value", "of i64"));
  EXPECT_TRUE(
      is_error(refusal(DType::kF16, 65520.0), "n/attrs/value", "65520.0 is no value of f16"));
  EXPECT_TRUE(is_error(refusal(DType::kF8E4M3, std::int64_t{449}), "n/attrs/value", "of f8e4m3"));
}

TEST(Numerics, IntegersAreClampedByIntegers) {
  const HostTensor x = integers(DType::kI64, {kMin, -1, kTwo53 + 2, kMax});
  EXPECT_EQ(on("clamp", {x}, {{"max", std::int64_t{100}}}).to_integers(),
            (Ints{kMin, -1, 100, 100}));
  EXPECT_EQ(on("clamp", {x}, {{"min", kMin + 1}, {"max", kTwo53 + 1}}).to_integers(),
            (Ints{kMin + 1, -1, kTwo53 + 1, kTwo53 + 1}));
  const TensorType i32{DType::kI32, {2}};
  EXPECT_TRUE(is_error(refused({i32}, "clamp", {{"max", 0.5}}), "n/attrs/max",
                       "0.5 is a float and the operand i32[2]; expected an integer"));
  EXPECT_TRUE(is_error(refused({i32}, "clamp", {{"min", kMax}}), "n/attrs/min", "no value of i32"));
}

TEST(Numerics, AddmmWithBetaZeroIgnoresTheBias) {
  const TensorType bias{DType::kF32, {2}};
  const TensorType matrix{DType::kF32, {2, 2}};
  EXPECT_EQ(computed_one({bias, matrix, matrix}, "addmm", {{"beta", 0.0}},
                         {{kNan, kInf}, {1, 2, 3, 4}, {1, 0, 0, 1}}),
            (Values{1, 2, 3, 4}));
}

TEST(Numerics, JsonKeepsEveryNumber) {
  const std::string text = R"({"braid": 1, "inputs": [], "outputs": ["a", "b", "c", "d"], "nodes": [
    {"name": "a", "op": "full", "inputs": [], "attrs": {"dtype": "i64", "value": 9223372036854775807}},
    {"name": "b", "op": "full", "inputs": [], "attrs": {"dtype": "i64", "value": -9223372036854775808}},
    {"name": "c", "op": "full", "inputs": [], "attrs": {"dtype": "i64", "value": 9007199254740993}},
    {"name": "d", "op": "full", "inputs": [], "attrs": {"dtype": "f32", "value": -0.0}}]})";
  for (const Graph& graph : {parse_graph(text), parse_graph(to_json(parse_graph(text)))}) {
    const auto outputs = evaluate(graph, RankTensors(1), {})[0];
    EXPECT_EQ(outputs[0].to_integers(), Ints{kMax});
    EXPECT_EQ(outputs[1].to_integers(), Ints{kMin});
    EXPECT_EQ(outputs[2].to_integers(), Ints{kTwo53 + 1});
    expect_same(outputs[3], {-0.0});
  }
  const std::string large = R"({"braid": 1, "inputs": [], "outputs": ["a"], "nodes": [
    {"name": "a", "op": "full", "inputs": [], "attrs": {"dtype": "i64", "value": 9223372036854775808}}]})";
  std::string small = large;
  small.insert(small.find("9223"), "-");
  small.replace(small.find("5808"), 4, "5809");
  for (const std::string& bad : {large, small}) {
    EXPECT_TRUE(is_error(error_of([&] { static_cast<void>(parse_graph(bad)); }),
                         "/nodes/0/attrs/value", "is no value of i64"));
  }
}

HostTensor of_bits(DType dtype, std::uint64_t bits) {
  HostTensor tensor{dtype, {1}, std::vector<std::byte>(dtype_size(dtype))};
  std::memcpy(tensor.data.data(), &bits, tensor.data.size());
  return tensor;
}

TEST(RelativeError, TellsAWrittenNanFromAnUnwrittenElement) {
  struct Row {
    DType dtype;
    std::uint64_t written, unwritten;
  };
  const Row rows[] = {{DType::kF32, 0x7FFFFFFF, 0x7FA5A5A5}, {DType::kF32, 0xFFFFFFFF, 0x7FA5A5A5},
                      {DType::kF16, 0x7FFF, 0x7D5A},         {DType::kBF16, 0x7FFF, 0x7FA5},
                      {DType::kF8E4M3, 0x7F, 0xFF},          {DType::kF8E5M2, 0x7F, 0xFD}};
  for (const Row& row : rows) {
    const HostTensor nan = reals(row.dtype, {kNan});
    EXPECT_EQ(relative_error(of_bits(row.dtype, row.written), nan), 0) << dtype_name(row.dtype);
    EXPECT_EQ(relative_error(of_bits(row.dtype, row.unwritten), nan), kInf);
    EXPECT_EQ(relative_error(of_bits(row.dtype, row.written), reals(row.dtype, {1})), kInf);
    EXPECT_EQ(relative_error(reals(row.dtype, {1}), nan), kInf);
  }
  EXPECT_EQ(relative_error(of_bits(DType::kBool, 0xA5), integers(DType::kBool, {1})), kInf);
  // A NaN that was only moved may have any bits.
  for (const auto& [dtype, bits] : {std::pair{DType::kF8E4M3, 0xFF}, {DType::kF8E5M2, 0xFD}}) {
    EXPECT_EQ(relative_error(of_bits(dtype, bits), of_bits(dtype, bits)), 0);
  }
}

TEST(Numerics, MovedNansKeepTheirBitsAndComputedOnesAreCanonical) {
  const HostTensor codes = of_bits(DType::kF8E4M3, 0xFF);
  EXPECT_EQ(on("view", {codes}, {{"shape", Shape{1}}}).data, codes.data);
  const HostTensor nan = of_bits(DType::kF32, 0xFF800001);
  EXPECT_EQ(on("view", {nan}, {{"dtype", DType::kI32}}).to_integers(), Ints{-0x7FFFFF});
  EXPECT_EQ(on("to", {nan}, {{"dtype", DType::kF8E4M3}}).data[0], std::byte{0x7F});
  EXPECT_EQ(on("to", {nan}, {{"dtype", DType::kF8E5M2}}).data[0], std::byte{0x7F});
}

/// A write through a view that changes nothing reaches the right memory.
TEST(Numerics, AWriteThroughAViewToTheSameDType) {
  Graph graph("g");
  const TensorType type{DType::kBF16, {600}};
  const ValueId x = graph.add_input({"x", type});
  const ValueId y = graph.add_input({"y", type});
  const auto result = [&](NodeId node) { return graph.node(node).outputs[0]; };
  const ValueId v = result(graph.add_node("v", "view", {x}, {{"dtype", DType::kBF16}}));
  static_cast<void>(graph.add_node("w", "copy_", {v, y}));
  graph.add_output(x);
  std::vector<double> values(600);
  std::iota(values.begin(), values.end(), 1);
  const HostTensor from = HostTensor::from_doubles(DType::kBF16, {600}, values);
  const HostTensor zeros = HostTensor::from_doubles(DType::kBF16, {600}, std::vector<double>(600));
  EXPECT_EQ(evaluate(graph, {{zeros, from}}, {})[0][0].data, from.data);
}

TEST(Numerics, ConstantsOfFloatsAreRoundedByWayOfF32) {
  // Above the tie between two bf16 in f64, on it in f32.
  const double tie = 1.00390625000001;
  const Attrs attrs{{"shape", Shape{1}}, {"value", tie}, {"dtype", DType::kBF16}};
  expect_same(on("full", {}, attrs), {1.0});
  expect_same(on("clamp", {reals(DType::kBF16, {0})}, {{"min", tie}}), {1.0});
}

TEST(Numerics, AddmmWithoutBiasKeepsTheSignOfZero) {
  expect_same(on("addmm",
                 {reals(DType::kF32, {kNan}), HostTensor::from_doubles(DType::kF32, {1, 1}, {0}),
                  HostTensor::from_doubles(DType::kF32, {1, 1}, {1})},
                 {{"alpha", -1.0}, {"beta", 0.0}}),
              {-0.0});
}

TEST(RelativeError, SeesOneInTwoToThe62) {
  const std::int64_t large = std::int64_t{1} << 62;
  EXPECT_GT(relative_error(integers(DType::kI64, {large + 1}), integers(DType::kI64, {large})), 0);
  EXPECT_GT(relative_error(integers(DType::kI64, {kMax}), integers(DType::kI64, {kMin})), 0);
  EXPECT_EQ(relative_error(integers(DType::kI64, {kMax}), integers(DType::kI64, {kMax})), 0);
}

TEST(Numerics, WhatIsNoFiniteNumber) {
  const HostTensor x = reals(DType::kF32, {kNan, kInf, -kInf, -0.0, 0x1p-149, 3e38});
  EXPECT_EQ(on("isnan", {x}).to_integers(), (Ints{1, 0, 0, 0, 0, 0}));
  EXPECT_EQ(on("isinf", {x}).to_integers(), (Ints{0, 1, 1, 0, 0, 0}));
  EXPECT_EQ(on("isfinite", {x}).to_integers(), (Ints{0, 0, 0, 1, 1, 1}));
  const HostTensor n = integers(DType::kI64, {kMin, -1, 0, kMax});
  EXPECT_EQ(on("isnan", {n}).to_integers(), (Ints{0, 0, 0, 0}));
  EXPECT_EQ(on("isinf", {n}).to_integers(), (Ints{0, 0, 0, 0}));
  EXPECT_EQ(on("isfinite", {n}).to_integers(), (Ints{1, 1, 1, 1}));
  expect_same(on("sign", {x}), {0, 1, -1, 0, 1, 1}, "sign");
  EXPECT_EQ(on("sign", {n}).to_integers(), (Ints{-1, -1, 0, 1}));
}

TEST(Numerics, CosinesOfLargeArguments) {
  const HostTensor x = reals(DType::kF32, {0, -0.0, 1, 1e5, 0x1p100, kInf, kNan});
  const auto rounded = [](double value) { return round_to(DType::kF32, value); };
  // cos and sin of 2^100 are those that arithmetic of many digits gives.
  expect_same(on("cos", {x}), {1, 1, rounded(0.54030230586813977), rounded(-0.99936080743821214),
                               rounded(0.48917865697472145), kNan, kNan});
  expect_same(on("sin", {x}), {0, -0.0, rounded(0.8414709848078965), rounded(0.035748797972016509),
                               rounded(-0.87218360541826731), kNan, kNan});
}

TEST(Numerics, FunctionsAtTheEdges) {
  const HostTensor x = reals(DType::kF32, {0, -0.0, 1, -1, kInf, -kInf, kNan});
  const auto f = [](double value) { return round_to(DType::kF32, value); };
  const double pi = 3.14159265358979323846;
  expect_same(on("expm1", {x}),
              {0, -0.0, f(1.71828182845904524), f(-0.63212055882855768), kInf, -1, kNan});
  expect_same(on("log1p", {x}), {0, -0.0, f(0.69314718055994531), -kInf, kInf, kNan, kNan});
  expect_same(on("tan", {x}),
              {0, -0.0, f(1.55740772465490223), f(-1.55740772465490223), kNan, kNan, kNan});
  expect_same(on("acos", {x}), {f(pi / 2), f(pi / 2), 0, f(pi), kNan, kNan, kNan});
  expect_same(on("asin", {x}), {0, -0.0, f(pi / 2), f(-pi / 2), kNan, kNan, kNan});
  expect_same(on("atan", {x}), {0, -0.0, f(pi / 4), f(-pi / 4), f(pi / 2), f(-pi / 2), kNan});
  expect_same(on("cosh", {x}),
              {1, 1, f(1.54308063481524377), f(1.54308063481524377), kInf, kInf, kNan});
  expect_same(on("sinh", {x}),
              {0, -0.0, f(1.17520119364380146), f(-1.17520119364380146), kInf, -kInf, kNan});
  expect_same(on("acosh", {x}), {kNan, kNan, 0, kNan, kInf, kNan, kNan});
  expect_same(on("asinh", {x}),
              {0, -0.0, f(0.88137358701954302), f(-0.88137358701954302), kInf, -kInf, kNan});
  expect_same(on("atanh", {x}), {0, -0.0, kInf, -kInf, kNan, kNan, kNan});
  expect_same(on("erfc", {x}), {1, 1, f(0.15729920705028513), f(1.84270079294971487), 0, 2, kNan});
  const HostTensor y = reals(DType::kF32, {-0.0, -0.0, -0.0, -kInf, kNan, 3, 4});
  expect_same(on("atan2", {x, y}), {f(pi), f(-pi), f(pi / 2), f(-pi), kNan, f(-pi / 2), kNan});
  expect_same(on("hypot", {x, y}), {0, 0, 1, kInf, kInf, kInf, kNan});
  expect_same(on("copysign", {x, y}), {-0.0, -0.0, -1, -1, kInf, kInf, kNan});
}

TEST(Numerics, RemaindersThatQuotientsCannotGive) {
  const HostTensor x = integers(DType::kI64, {kMin, kMin, kMax, -5, 5});
  const HostTensor by = integers(DType::kI64, {-1, 0, kMin, 0, kMax});
  EXPECT_EQ(on("remainder", {x, by}).to_integers(), (Ints{0, kMin, -1, -5, 5}));
  EXPECT_EQ(on("fmod", {x, by}).to_integers(), (Ints{0, kMin, kMax, -5, 5}));
  const HostTensor low = integers(DType::kI32, {kMin32, kMin32, 200});
  EXPECT_EQ(on("remainder", {low, integers(DType::kI32, {-1, 0, -7})}).to_integers(),
            (Ints{0, kMin32, -3}));
}

TEST(Numerics, TruthAndIndexOfRows) {
  EXPECT_EQ(on("any", {reals(DType::kF32, {0, -0.0, kNan})}).to_integers(), Ints{1});
  EXPECT_EQ(on("any", {reals(DType::kF32, {0, -0.0})}).to_integers(), Ints{0});
  EXPECT_EQ(on("all", {reals(DType::kF32, {kNan, 0x1p-149, -kInf})}).to_integers(), Ints{1});
  EXPECT_EQ(on("all", {reals(DType::kF32, {1, -0.0})}).to_integers(), Ints{0});
  EXPECT_EQ(on("all", {integers(DType::kI64, {kMin, -1})}).to_integers(), Ints{1});
  EXPECT_EQ(on("any", {integers(DType::kU8, {0, 200})}).to_integers(), Ints{1});
  EXPECT_EQ(on("argmin", {reals(DType::kF32, {3, -1, -1, 2})}).to_integers(), Ints{1});
  EXPECT_EQ(on("argmin", {reals(DType::kF32, {3, 0.0, -0.0})}).to_integers(), Ints{1});
  EXPECT_EQ(on("argmin", {reals(DType::kF32, {3, -kInf, kNan, kNan})}).to_integers(), Ints{2});
  EXPECT_EQ(on("argmin", {integers(DType::kI64, {kMax, kMin + 1, kMin})}).to_integers(), Ints{2});
  EXPECT_EQ(on("argmax", {reals(DType::kF32, {-0.0, 0.0})}).to_integers(), Ints{0});
}

TEST(Numerics, LogSoftmaxAtTheEdges) {
  const auto of = [](const Values& x) { return on("log_softmax", {reals(DType::kF32, x)}); };
  const double log2 = round_to(DType::kF32, 0.69314718055994531);
  expect_same(of({5, 5}), {-log2, -log2});
  expect_same(of({-kInf, 7}), {-kInf, 0});
  expect_same(of({1000, -1000}), {0, -2000}, "no underflow");
  expect_same(of({-kInf, -kInf}), {kNan, kNan});
  expect_same(of({kInf, 0}), {kNan, kNan});
  expect_same(of({1, kNan}), {kNan, kNan});
}

}  // namespace
}  // namespace braid
