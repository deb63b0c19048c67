// Operands of several dtypes, and numbers in the place of operands, as PyTorch 2.7 promotes them:
// what its promote_types, result_type and ops gave stands here.

#include "ir/promotion.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "ir/scalar.h"
#include "support.h"

namespace braid {
namespace {

using Kind = PromotedOperand::Kind;
using ::testing::ElementsAre;

constexpr const char* kDTypes = "f32 f16 bf16 f8e4m3 f8e5m2 i32 i64 i8 u8 bool";

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> list;
  for (std::string word; in >> word;) list.push_back(word);
  return list;
}

std::string name_of(std::optional<DType> dtype) {
  return dtype ? std::string(dtype_name(*dtype)) : "-";
}

TEST(Promotion, TwoDTypes) {
  const std::vector<std::pair<const char*, const char*>> rows = {
      {"f32", "f32 f32 f32 - - f32 f32 f32 f32 f32"},
      {"f16", "f32 f16 f32 - - f16 f16 f16 f16 f16"},
      {"bf16", "f32 f32 bf16 - - bf16 bf16 bf16 bf16 bf16"},
      {"f8e4m3", "- - - f8e4m3 - - - - - -"},
      {"f8e5m2", "- - - - f8e5m2 - - - - -"},
      {"i32", "f32 f16 bf16 - - i32 i64 i32 i32 i32"},
      {"i64", "f32 f16 bf16 - - i64 i64 i64 i64 i64"},
      {"i8", "f32 f16 bf16 - - i32 i64 i8 - i8"},
      {"u8", "f32 f16 bf16 - - i32 i64 - u8 u8"},
      {"bool", "f32 f16 bf16 - - i32 i64 i8 u8 bool"}};
  for (const auto& [a, row] : rows) {
    std::vector<std::string> found;
    for (const std::string& b : words(kDTypes)) {
      found.push_back(name_of(promoted(*parse_dtype(a), *parse_dtype(b))));
    }
    EXPECT_EQ(found, words(row)) << a;
  }
}

TEST(Promotion, ATensorWithAScalarTensor) {
  const std::vector<std::pair<const char*, const char*>> rows = {
      {"f32", "f32 f32 f32 f32 f32 f32 f32"},         {"f16", "f16 f16 f16 f16 f16 f16 f16"},
      {"bf16", "bf16 bf16 bf16 bf16 bf16 bf16 bf16"}, {"i32", "f32 f16 bf16 i32 i32 i32 i32"},
      {"i64", "f32 f16 bf16 i64 i64 i64 i64"},        {"u8", "f32 f16 bf16 u8 u8 u8 u8"},
      {"bool", "f32 f16 bf16 i32 i64 u8 bool"}};
  for (const auto& [a, row] : rows) {
    std::vector<std::string> found;
    for (const std::string& b : words("f32 f16 bf16 i32 i64 u8 bool")) {
      const std::vector<PromotedOperand> both{{*parse_dtype(b), Kind::kScalarTensor},
                                              {*parse_dtype(a), Kind::kTensor}};
      found.push_back(name_of(result_type(both)));
    }
    EXPECT_EQ(found, words(row)) << a;
  }
}

// true, 2 and 2.5.
TEST(Promotion, ATensorWithANumber) {
  const std::vector<std::pair<const char*, const char*>> rows = {{"f32", "f32 f32 f32"},
                                                                 {"f16", "f16 f16 f16"},
                                                                 {"bf16", "bf16 bf16 bf16"},
                                                                 {"f8e4m3", "f8e4m3 f8e4m3 f8e4m3"},
                                                                 {"f8e5m2", "f8e5m2 f8e5m2 f8e5m2"},
                                                                 {"i32", "i32 i32 f32"},
                                                                 {"i64", "i64 i64 f32"},
                                                                 {"i8", "i8 i8 f32"},
                                                                 {"u8", "u8 u8 f32"},
                                                                 {"bool", "bool i64 f32"}};
  for (const auto& [a, row] : rows) {
    for (const Kind kind : {Kind::kTensor, Kind::kScalarTensor}) {
      std::vector<std::string> found;
      for (const DType number : {DType::kBool, DType::kI64, DType::kF32}) {
        const std::vector<PromotedOperand> both{{*parse_dtype(a), kind}, {number, Kind::kNumber}};
        found.push_back(name_of(result_type(both)));
      }
      EXPECT_EQ(found, words(row)) << a;
    }
  }
}

/// A node over these inputs as the reader takes it: i i32, h bf16, u u8, f f32, b bool, each [3],
/// z f32 without dims, and w i64[9] with v.
Graph read(const std::string& op, const std::string& inputs, const std::string& attrs = "{}") {
  return parse_graph(R"({"braid": 1, "inputs": [
    {"name": "i", "dtype": "i32", "shape": [3]}, {"name": "h", "dtype": "bf16", "shape": [3]},
    {"name": "u", "dtype": "u8", "shape": [3]}, {"name": "f", "dtype": "f32", "shape": [3]},
    {"name": "b", "dtype": "bool", "shape": [3]}, {"name": "z", "dtype": "f32", "shape": []},
    {"name": "w", "dtype": "i64", "shape": [9]}, {"name": "v", "dtype": "i64", "shape": [9]}],
    "nodes": [{"name": "n", "op": ")" +
                     op + R"(", "inputs": )" + inputs + R"(, "attrs": )" + attrs +
                     R"(}], "outputs": ["n"]})");
}

/// The result's dtype and values.
std::pair<std::string, Values> value_of(const Graph& graph) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  const std::vector<HostTensor> inputs{
      HostTensor::from_doubles(DType::kI32, {3}, {-7, 5, 2147483647}),
      HostTensor::from_doubles(DType::kBF16, {3}, {0.1, 2.5, -3}),
      HostTensor::from_doubles(DType::kU8, {3}, {200, 3, 255}),
      HostTensor::from_doubles(DType::kF32, {3}, {0.5, -1.5, kNan}),
      HostTensor::from_doubles(DType::kBool, {3}, {1, 0, 1}),
      HostTensor::from_doubles(DType::kF32, {}, {0.3F}),
      HostTensor::from_integers(DType::kI64, {9}, {7, -7, 7, -7, 6, -6, 0, kMost, kLeast}),
      HostTensor::from_integers(DType::kI64, {9}, {2, 2, -2, -2, 3, 3, -5, -2, 2})};
  const HostTensor result = evaluate(graph, {inputs}, {})[0][0];
  return {std::string(dtype_name(result.dtype)), result.to_doubles()};
}

std::pair<std::string, Values> value_of(const std::string& op, const std::string& inputs,
                                        const std::string& attrs = "{}") {
  return value_of(read(op, inputs, attrs));
}

TEST(Promotion, OperandsGetTheirCommonDType) {
  using Result = std::pair<std::string, Values>;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(value_of("add", R"(["i", "u"])"), (Result{"i32", {193, 8, -2147483394}}));
  EXPECT_EQ(value_of("maximum", R"(["u", "i"])"), (Result{"i32", {200, 5, 2147483647}}));
  EXPECT_EQ(value_of("mul", R"(["h", "z"])"),
            (Result{"bf16", {0.0301513671875, 0.75, -0.90234375}}));
  EXPECT_EQ(value_of("cat", R"(["u", "h"])"),
            (Result{"bf16", {200, 3, 255, 0.10009765625, 2.5, -3}}));
  EXPECT_EQ(value_of("logical_and", R"(["i", "f"])"), (Result{"bool", {1, 1, 1}}));
  EXPECT_EQ(value_of("exp", R"(["b"])"),
            (Result{"f32", {2.7182817459106445, 1, 2.7182817459106445}}));
  EXPECT_EQ(value_of("copy_", R"(["h", "i"])"), (Result{"bf16", {-7, 5, 2147483648}}));
  const Result mixed = value_of("mul", R"(["h", "f"])");
  EXPECT_EQ(mixed.first, "f32");
  EXPECT_THAT(mixed.second,
              ElementsAre(0.050048828125, -3.75, ::testing::NanSensitiveDoubleEq(nan)));
  // Dtypes without a common one are refused by the op.
  EXPECT_TRUE(is_error(error_of([] { static_cast<void>(read("mm", R"(["h", "f"])")); }),
                       "/nodes/0/inputs/1", "expected one dtype"));
}

TEST(Promotion, NumbersStandForOperands) {
  using Result = std::pair<std::string, Values>;
  EXPECT_EQ(value_of("add", R"(["u", 100])"), (Result{"u8", {44, 103, 99}}));
  EXPECT_EQ(value_of("mul", R"(["u", 2.5])"), (Result{"f32", {500, 7.5, 637.5}}));
  EXPECT_EQ(value_of("div", R"(["i", 2])"), (Result{"f32", {-3.5, 2.5, 1073741824}}));
  EXPECT_EQ(value_of("lt", R"(["u", 200.5])"), (Result{"bool", {1, 1, 0}}));
  EXPECT_EQ(value_of("where", R"(["b", 1.5, 2])"), (Result{"f32", {1.5, 2, 1.5}}));
  EXPECT_EQ(value_of("where", R"(["b", "f", "-inf"])").second[1], -INFINITY);
  EXPECT_EQ(value_of("masked_fill", R"(["h", "b", 0.3])"),
            (Result{"bf16", {0.30078125, 2.5, 0.30078125}}));
  EXPECT_EQ(value_of("masked_fill", R"(["u", "b", 9])"), (Result{"u8", {9, 3, 9}}));
  EXPECT_EQ(value_of("bitwise_and", R"(["u", 7])"), (Result{"u8", {0, 3, 7}}));
  EXPECT_EQ(value_of("sub", R"([1, "i"])"), (Result{"i32", {8, -4, -2147483646}}));
  EXPECT_EQ(value_of("add", R"(["i", true])"), (Result{"i32", {-6, 6, -2147483648.0}}));
  EXPECT_EQ(value_of("clamp", R"(["u"])", R"({"min": 1.5, "max": 210})"),
            (Result{"f32", {200, 3, 210}}));
  // A number that bf16 does not hold is one of f32 in arithmetic, and rounded elsewhere.
  EXPECT_EQ(value_of("mul", R"(["h", 0.3])"), (Result{"bf16", {0.030029296875, 0.75, -0.8984375}}));
  EXPECT_EQ(value_of("add", R"(["h", 0.1])"), (Result{"bf16", {0.2001953125, 2.59375, -2.90625}}));
  EXPECT_EQ(value_of("eq", R"(["h", 0.1])"), (Result{"bool", {1, 0, 0}}));
  EXPECT_EQ(value_of("where", R"(["b", "h", 0.3])"),
            (Result{"bf16", {0.10009765625, 0.30078125, -3}}));
}

TEST(Promotion, NodesKeepOneDType) {
  const auto ops_of = [](const Graph& graph) {
    std::vector<std::string> ops;
    for (const Node& node : graph.nodes())
      ops.push_back(node.name + " " + std::string(node.op_name()));
    return ops;
  };
  EXPECT_THAT(ops_of(read("mul", R"(["h", 2.5])")), ElementsAre("n_in1 full", "n mul"));
  EXPECT_THAT(ops_of(read("add", R"(["i", "u"])")), ElementsAre("n_in1 to", "n add"));
  EXPECT_THAT(ops_of(read("mul", R"(["h", 0.3])")),
              ElementsAre("n_in0 to", "n_in1 full", "n_f32 mul", "n to"));
  // A name that another node has is left to it.
  const Graph graph = parse_graph(R"({"braid": 1, "inputs": [
    {"name": "n_in1", "dtype": "f32", "shape": [3]}], "nodes": [
    {"name": "n", "op": "mul", "inputs": ["n_in1", 2]},
    {"name": "n_in1_1", "op": "neg", "inputs": ["n"]}], "outputs": ["n_in1_1"]})");
  EXPECT_THAT(ops_of(graph), ElementsAre("n_in1_2 full", "n mul", "n_in1_1 neg"));
  EXPECT_EQ(to_json(parse_graph(to_json(graph))), to_json(graph));
}

TEST(Promotion, NumbersStandWhereATenHasScalarsOnly) {
  const auto error = [](const std::string& op, const std::string& inputs) {
    return error_of([&] { static_cast<void>(read(op, inputs)); });
  };
  EXPECT_TRUE(is_error(error("mm", R"(["f", 2])"), "/nodes/0/inputs/1",
                       "found 2; expected the name of a value"));
  EXPECT_TRUE(is_error(error("where", R"([true, "f", "f"])"), "/nodes/0/inputs/0", "found true"));
  EXPECT_TRUE(
      is_error(error("masked_fill", R"(["f", true, 1])"), "/nodes/0/inputs/1", "found true"));
  EXPECT_TRUE(is_error(error("masked_fill", R"(["i", "b", 2.5])"), "/nodes/0/inputs/2",
                       "2.5 is no value of i32"));
  EXPECT_TRUE(
      is_error(error("add", R"(["u", 300])"), "/nodes/0/inputs/1", "300 is no value of u8"));
  EXPECT_TRUE(is_error(error("add", R"(["u", null])"), "/nodes/0/inputs/1", "found null"));
}

TEST(Promotion, QuotientsOfIntegers) {
  using Result = std::pair<std::string, Values>;
  const Result floors{"i64", {3, -4, -4, 3, 2, -2, 0, -0x1p62, -0x1p62}};
  EXPECT_EQ(value_of("div", R"(["w", "v"])", R"({"rounding_mode": "floor"})"), floors);
  EXPECT_EQ(value_of("floor_divide", R"(["w", "v"])"), floors);
  EXPECT_EQ(value_of("div", R"(["w", "v"])", R"({"rounding_mode": "trunc"})"),
            (Result{"i64", {3, -3, -3, 3, 2, -2, 0, -0x1p62, -0x1p62}}));
  EXPECT_EQ(value_of("floor_divide", R"(["u", 7])"), (Result{"u8", {28, 0, 36}}));
  // Cases in which PyTorch has an error, or no op.
  EXPECT_EQ(value_of("floor_divide", R"(["w", 0])").second, Values(9, 0.0));
  EXPECT_EQ(
      divided_integers(Int{std::numeric_limits<std::int64_t>::min()}, Int{-1}, Quotient::kFloor)
          .value,
      std::numeric_limits<std::int64_t>::min());
  const auto error = [](const std::string& op, const std::string& attrs) {
    return error_of([&] { static_cast<void>(read(op, R"(["f", "f"])", attrs)); });
  };
  EXPECT_TRUE(
      is_error(error("floor_divide", "{}"), "/nodes/0/inputs/0", "expected i32, i64, i8 or u8"));
  EXPECT_TRUE(is_error(error("div", R"({"rounding_mode": "floor"})"),
                       "/nodes/0/attrs/rounding_mode", "of floats there is floor"));
}

}  // namespace
}  // namespace braid
