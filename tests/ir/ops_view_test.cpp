#include <cmath>
#include <numeric>

#include "support.h"

namespace braid {
namespace {

Attrs shape(Shape value) { return {{"shape", std::move(value)}}; }
Attrs dims(std::int64_t a, std::int64_t b) { return {{"dim0", a}, {"dim1", b}}; }

TEST(View, InfersTheShape) {
  const Dim t = sym("T");
  const TensorType x{kF32, {t, 32, 64}};
  EXPECT_EQ(inferred({x}, "view", shape({t, 2048})), "f32[T, 2048]");
  EXPECT_EQ(inferred({x}, "view", shape({-1, 2048})), "f32[T, 2048]");
  EXPECT_EQ(inferred({x}, "view", shape({t, -1, 32})), "f32[T, 64, 32]");
  EXPECT_EQ(inferred({x}, "view", shape({-1, 512})), "f32[4*T, 512]");
}

TEST(View, RefusesOtherNumbersOfElements) {
  const Dim t = sym("T");
  const TensorType x{kF32, {t, 32}};
  EXPECT_TRUE(is_error(refused({x}, "view", shape({t, 16})), "n/attrs/shape",
                       "f32[T, 32] cannot be viewed as f32[T, 16]"));
  EXPECT_TRUE(is_error(refused({x}, "view", shape({-1, 7})), "n/attrs/shape", "cannot be viewed"));
  EXPECT_TRUE(is_error(refused({x}, "view", shape({-1, -1})), "n/attrs/shape", "at most one"));
  EXPECT_TRUE(
      is_error(refused({x}, "view", shape({-2, t * -16})), "n/attrs/shape/0", "at least 1"));
  EXPECT_TRUE(
      is_error(refused({x}, "view", shape({8, INT64_MIN})), "n/attrs/shape/1", "at least 1"));
  EXPECT_TRUE(is_error(refused({x}, "view", shape({sym("U"), 32})), "n/attrs/shape/0",
                       "unknown symbol \"U\""));
}

TEST(View, KeepsTheOrder) {
  EXPECT_EQ(computed_one({{kF32, {2, 3}}}, "view", shape({3, -1}), {{1, 2, 3, 4, 5, 6}}),
            (Values{1, 2, 3, 4, 5, 6}));
}

Attrs as(DType dtype) { return {{"dtype", dtype}}; }

// Tensor.view(dtype): the last dim grows or shrinks with the size of the elements.
TEST(ViewDType, InfersTheShape) {
  const Dim t = sym("T");
  EXPECT_EQ(inferred({{DType::kF8E4M3, {t, 3}}}, "view", as(DType::kU8)), "u8[T, 3]");
  EXPECT_EQ(inferred({{kF32, {}}}, "view_dtype", as(DType::kI32)), "i32[]");
  EXPECT_EQ(inferred({{kF32, {t, 3}}}, "view", as(DType::kBF16)), "bf16[T, 6]");
  EXPECT_EQ(inferred({{kF32, {2, t}}}, "view", as(DType::kU8)), "u8[2, 4*T]");
  EXPECT_EQ(inferred({{DType::kU8, {3, 16}}}, "view", as(DType::kI64)), "i64[3, 2]");
  EXPECT_EQ(inferred({{DType::kI8, {4}}}, "view", as(DType::kI32)), "i32[1]");
  EXPECT_EQ(inferred({{DType::kBool, {4}}}, "view", as(DType::kU8)), "u8[4]");
}

TEST(ViewDType, RefusesWhatDoesNotDivide) {
  EXPECT_TRUE(is_error(refused({{DType::kU8, {3, 6}}}, "view", as(kF32)), "n/attrs/dtype",
                       "f32 of u8[3, 6]: the last dim has 6 bytes; expected a multiple of 4"));
  EXPECT_TRUE(is_error(refused({{DType::kU8, {sym("T")}}}, "view", as(kF32)), "n/attrs/dtype",
                       "the last dim has T bytes"));
  EXPECT_TRUE(is_error(refused({{kF32, {}}}, "view", as(DType::kU8)), "n/attrs/dtype",
                       "u8 of the scalar f32[]; expected a dtype of 4 bytes"));
  EXPECT_TRUE(is_error(refused({{DType::kU8, {2}}}, "view", as(DType::kBool)), "n/attrs/dtype",
                       "other than 0 and 1"));
  Attrs both = shape({2});
  both.emplace("dtype", DType::kU8);
  EXPECT_TRUE(is_error(refused({{DType::kU8, {2}}}, "view", both), "n/attrs/shape",
                       "has no attribute \"shape\""));
}

// The formats' own tables (IEEE 754, OCP 8-bit floats), little endian.
TEST(ViewDType, KeepsTheBytes) {
  const auto seen = [](DType from, const Values& values, DType to) {
    return computed_one({{from, {static_cast<std::int64_t>(values.size())}}}, "view", as(to),
                        {values});
  };
  EXPECT_EQ(seen(kF32, {1.0, -2.5}, DType::kU8), (Values{0, 0, 0x80, 0x3f, 0, 0, 0x20, 0xc0}));
  EXPECT_EQ(seen(kF32, {1.0, -0.0}, DType::kI32), (Values{0x3f800000, -2147483648.0}));
  EXPECT_EQ(seen(DType::kI32, {0x40490fdb}, kF32), Values{3.1415927410125732});
  EXPECT_EQ(seen(DType::kF8E4M3, {1, 448, -0.001953125}, DType::kU8), (Values{0x38, 0x7e, 0x81}));
  EXPECT_EQ(seen(DType::kU8, {0x3c, 0x7b, 0xfc}, DType::kF8E5M2), (Values{1, 57344, -INFINITY}));
  EXPECT_EQ(seen(DType::kF16, {1}, DType::kBF16), Values{0.0078125});
  EXPECT_EQ(seen(DType::kBF16, {1, 2}, DType::kI32), Values{0x40003f80});
  EXPECT_EQ(seen(DType::kI64, {-2}, DType::kI32), (Values{-2, -1}));
}

TEST(Transpose, InfersAndEvaluates) {
  EXPECT_EQ(inferred({{kF32, {sym("T"), 3, 4}}}, "transpose", dims(0, -1)), "f32[4, 3, T]");
  EXPECT_EQ(computed_one({{kF32, {2, 3}}}, "transpose", dims(0, 1), {{1, 2, 3, 4, 5, 6}}),
            (Values{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(computed_one({{kF32, {2, 2, 2}}}, "transpose", dims(-1, 0), {{0, 1, 2, 3, 4, 5, 6, 7}}),
            (Values{0, 4, 2, 6, 1, 5, 3, 7}));
  EXPECT_EQ(computed_one({{kF32, {2, 1}}}, "transpose", dims(1, 1), {{3, 4}}), (Values{3, 4}));
}

TEST(Transpose, RefusesBadDims) {
  EXPECT_TRUE(is_error(refused({{kF32, {2, 3}}}, "transpose", dims(0, 2)), "n/attrs/dim1",
                       "expected an integer from -2 to 1"));
  EXPECT_TRUE(is_error(refused({{kF32, {2, 3}}}, "transpose", dims(-3, 0)), "n/attrs/dim0",
                       "out of range"));
}

TEST(Movement, InfersShapes) {
  const Dim t = sym("T");
  const TensorType x{DType::kF32, {t, 4, 6}};
  using Ints = std::vector<std::int64_t>;
  EXPECT_EQ(inferred({x}, "permute", {{"dims", Ints{2, 0, 1}}}), "f32[6, T, 4]");
  EXPECT_EQ(inferred({{DType::kF32, {t, 1}}}, "expand", {{"shape", Shape{3, -1, 5}}}),
            "f32[3, T, 5]");
  EXPECT_EQ(
      inferred({x}, "slice",
               {{"dim", std::int64_t{2}}, {"start", std::int64_t{-4}}, {"step", std::int64_t{3}}}),
      "f32[T, 4, 2]");
  EXPECT_EQ(inferred({x}, "slice", {{"dim", std::int64_t{0}}, {"end", std::int64_t{1}}}),
            "f32[1, 4, 6]");
  EXPECT_EQ(inferred({x}, "split", {{"dim", std::int64_t{-1}}, {"split_size", Ints{4}}}),
            "f32[T, 4, 4] f32[T, 4, 2]");
  EXPECT_EQ(inferred({x, x}, "cat", {{"dim", std::int64_t{0}}}), "f32[2*T, 4, 6]");
}

TEST(Movement, ChunksAsSplitDoes) {
  const TensorType x{DType::kF32, {7, 2}};
  const auto chunk = [](std::int64_t chunks, std::int64_t dim = 0) {
    return Attrs{{"chunks", chunks}, {"dim", dim}};
  };
  EXPECT_EQ(inferred({x}, "chunk", chunk(3)), "f32[3, 2] f32[3, 2] f32[1, 2]");
  // Four parts of two rows leave nothing for a fifth and a sixth.
  EXPECT_EQ(inferred({x}, "chunk", chunk(6)), "f32[2, 2] f32[2, 2] f32[2, 2] f32[1, 2]");
  const auto parts = computed({{DType::kF32, {2, 2}}}, "chunk", chunk(2, -1), {{{1, 2, 3, 4}}});
  EXPECT_EQ(parts[0], (std::vector<Values>{{1, 3}, {2, 4}}));
  EXPECT_TRUE(is_error(refused({x}, "chunk", chunk(0)), "n/attrs/chunks", "expected 1 to 65536"));
  EXPECT_TRUE(is_error(refused({x}, "chunk", chunk(2, 2)), "n/attrs/dim", "out of range"));
}

TEST(Movement, SlicesBySymbols) {
  const Dim t = sym("T");  // 1 to 256
  const auto slice = [](const TensorType& x, AttrValue start, AttrValue end) {
    const Attrs attrs{{"start", std::move(start)}, {"end", std::move(end)}};
    const std::string error = refused({x}, "slice", attrs);
    return error == "no error" ? inferred({x}, "slice", attrs) : error;
  };
  const auto text = [](const char* expression) { return AttrValue(std::string(expression)); };
  const AttrValue zero = std::int64_t{0};
  const TensorType wide{kF32, {256, 2}};
  EXPECT_EQ(slice(wide, zero, text("T")), "f32[T, 2]");
  EXPECT_EQ(slice(wide, text("T-1"), text("T")), "f32[1, 2]");
  EXPECT_EQ(slice(wide, text("-T"), std::int64_t{256}), "f32[T, 2]");
  EXPECT_EQ(slice({kF32, {t * 2}}, text("T"), text("T*2")), "f32[T]");
  EXPECT_EQ(slice({kF32, {t * 2}}, text("(2*T)//2"), std::int64_t{1000}), "f32[T]");
  EXPECT_EQ(slice({kF32, {t + 4}}, std::int64_t{-4}, std::int64_t{256 + 4}), "f32[4]");
  EXPECT_TRUE(is_error(slice({kF32, {200}}, zero, text("T")), "n/attrs/end",
                       "T is inside of the 200 elements for some values"));
  EXPECT_EQ(slice(wide, text("T"), std::int64_t{256}), "f32[-T+256, 2]");  // perhaps empty
  EXPECT_TRUE(is_error(slice(wide, text("T-2"), text("T")), "n/attrs/start", "T-2 is inside"));
  EXPECT_TRUE(is_error(slice(wide, zero, text("T/2")), "n/attrs/end", "is not whole"));
  EXPECT_TRUE(is_error(slice(wide, zero, text("U")), "n/attrs/end", "unknown symbol \"U\""));
  EXPECT_TRUE(is_error(slice(wide, zero, text("T*T")), "n/attrs/end", "expression of symbols"));
  Graph graph = graph_with({wide}, 1);
  const NodeId node = graph.add_node("n", "slice", graph.input_values(),
                                     {{"start", text("S")}, {"end", text("S+2")}});
  graph.add_output(graph.node(node).outputs[0]);
  Values numbers(512);
  std::iota(numbers.begin(), numbers.end(), 0);
  const auto at =
      evaluate(graph, {{HostTensor::from_doubles(kF32, {256, 2}, numbers)}}, {{"S", 3}, {"T", 1}});
  EXPECT_EQ(at[0][0].to_doubles(), (Values{6, 7, 8, 9}));
  graph.drop_unused_tables();
  EXPECT_TRUE(graph.symbols().contains("S"));  // which no shape has
  EXPECT_FALSE(graph.symbols().contains("T"));
}

TEST(Movement, SplitsBySymbols) {
  const Dim t = sym("T");
  const auto split = [](const Dim& extent, const Shape& sizes) {
    return inferred({{kF32, {extent}}}, "split", {{"split_size", sizes}});
  };
  const auto chunk = [](const Dim& extent, std::int64_t chunks) {
    return inferred({{kF32, {extent}}}, "chunk", {{"chunks", chunks}});
  };
  EXPECT_EQ(split(t * 3, {t}), "f32[T] f32[T] f32[T]");
  EXPECT_EQ(split(t * 2 + 1, {t}), "f32[T] f32[T] f32[1]");
  EXPECT_EQ(split(t * 2 + 1, {t, t + 1}), "f32[T] f32[T+1]");
  EXPECT_EQ(chunk(t * 2, 2), "f32[T] f32[T]");
  EXPECT_EQ(chunk(t * 2 + 1, 2), "f32[T+1] f32[T]");
  EXPECT_TRUE(is_error(error_of([&] { chunk(t, 2); }), "n/attrs/chunks", "no affine expression"));
  EXPECT_TRUE(is_error(error_of([&] { split(t * 2 + 2, {t}); }), "n/attrs/split_size",
                       "how many parts of T dim 0 has"));
  EXPECT_TRUE(is_error(error_of([&] {
                         split(t * 2, {t, t + 1});
                       }),
                       "n/attrs/split_size", "the sizes sum to 2*T+1; expected 2*T"));
  EXPECT_TRUE(is_error(error_of([&] {
                         split(t * 2, {t - 1, t + 1});
                       }),
                       "n/attrs/split_size", "found T-1; expected positive sizes"));
}

TEST(Movement, OtherSpellingsOfView) {
  for (const char* op : {"reshape", "_unsafe_view"}) {
    const Attrs attrs{{"shape", Shape{3, -1}}};
    EXPECT_EQ(inferred({{DType::kF32, {6, 2}}}, op, attrs), "f32[3, 4]");
    EXPECT_EQ(computed_one({{DType::kF32, {3, 1}}}, op, attrs, {{1, 2, 3}}), (Values{1, 2, 3}));
  }
}

TEST(Movement, MovesElements) {
  using Ints = std::vector<std::int64_t>;
  const TensorType x{DType::kF32, {2, 3}};
  const Values v{1, 2, 3, 4, 5, 6};
  EXPECT_EQ(computed_one({x}, "permute", {{"dims", Ints{1, 0}}}, {v}), (Values{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(computed_one({x}, "slice", {{"dim", std::int64_t{1}}, {"step", std::int64_t{2}}}, {v}),
            (Values{1, 3, 4, 6}));
  EXPECT_EQ(computed_one({{DType::kF32, {2, 1}}}, "expand", {{"shape", Shape{2, 2}}}, {{7, 8}}),
            (Values{7, 7, 8, 8}));
  EXPECT_EQ(
      computed_one({x, {DType::kF32, {2, 1}}}, "cat", {{"dim", std::int64_t{1}}}, {v, {7, 8}}),
      (Values{1, 2, 3, 7, 4, 5, 6, 8}));
  const auto parts =
      computed({x}, "split", {{"dim", std::int64_t{1}}, {"split_size", Ints{2, 1}}}, {{v}});
  EXPECT_EQ(parts[0][0], (Values{1, 2, 4, 5}));
  EXPECT_EQ(parts[0][1], (Values{3, 6}));
}

TEST(Movement, RefusesWhatDoesNotFit) {
  const Dim t = sym("T");
  using Ints = std::vector<std::int64_t>;
  const TensorType x{DType::kF32, {t, 6}};
  EXPECT_TRUE(is_error(refused({x}, "permute", {{"dims", Ints{0}}}), "n/attrs/dims", "expected 2"));
  EXPECT_TRUE(is_error(refused({x}, "permute", {{"dims", Ints{0, -2}}}), "n/attrs/dims", "twice"));
  EXPECT_TRUE(is_error(refused({x}, "expand", {{"shape", Shape{t, 7}}}), "n/attrs/shape",
                       "cannot be expanded to f32[T, 7]; expected its own extents"));
  EXPECT_TRUE(is_error(refused({x}, "slice", {{"start", std::int64_t{5}}}), "n/attrs/start",
                       "inside of the T elements for some values"));
  EXPECT_TRUE(
      is_error(refused({x}, "slice", {{"step", std::int64_t{0}}}), "n/attrs/step", "at least 1"));
  EXPECT_TRUE(is_error(refused({x}, "slice", {{"step", std::int64_t{2}}}), "n/attrs/step",
                       "does not divide"));
  EXPECT_TRUE(
      is_error(refused({x}, "split", {{"dim", std::int64_t{1}}, {"split_size", Ints{4, 1}}}),
               "n/attrs/split_size", "the sizes sum to 5; expected 6"));
  EXPECT_TRUE(is_error(refused({x}, "split", {{"split_size", Ints{1}}}), "n/attrs/split_size",
                       "how many parts of 1 dim 0 has, which is T, depends on its symbols"));
  EXPECT_TRUE(is_error(refused({x, {DType::kF32, {t, 5}}}, "cat"), "n/inputs/1",
                       "equal extents except along dim 0"));
}

TEST(RegionMarkers, AreTheIdentityAndNeedAnId) {
  const TensorType x{kF32, {2, sym("T")}};
  for (const char* marker : {"mark_region_begin", "mark_region_end", "copy_region"}) {
    SCOPED_TRACE(marker);
    const Attrs id = {{"id", std::int64_t{3}}};
    EXPECT_EQ(inferred({x}, marker, id), "f32[2, T]");
    EXPECT_EQ(computed_one({{kF32, {2, 2}}}, marker, id, {{1, 2, 3, 4}}), (Values{1, 2, 3, 4}));
    EXPECT_TRUE(is_error(refused({x}, marker), "n/attrs/id", "missing"));
  }
}

Attrs integers(std::initializer_list<std::pair<const std::string, std::int64_t>> values) {
  Attrs attrs;
  for (const auto& [key, value] : values) attrs.emplace(key, value);
  return attrs;
}

TEST(Squeeze, TakesAndAddsDimsOfOneElement) {
  const Dim t = sym("T");
  const TensorType x{kF32, {1, t, 1, 3}};
  EXPECT_EQ(inferred({x}, "squeeze"), "f32[T, 3]");
  EXPECT_EQ(inferred({x}, "squeeze", {{"dim", std::int64_t{-2}}}), "f32[1, T, 3]");
  EXPECT_EQ(inferred({x}, "squeeze", {{"dim", std::vector<std::int64_t>{0, 1, 2}}}), "f32[T, 3]");
  EXPECT_EQ(inferred({x}, "squeeze", {{"dim", std::vector<std::int64_t>{}}}), "f32[1, T, 1, 3]");
  EXPECT_TRUE(is_error(refused({x}, "squeeze", {{"dim", std::int64_t{4}}}), "n/attrs/dim",
                       "expected an integer from -4 to 3"));
  EXPECT_EQ(inferred({{kF32, {t, 3}}}, "unsqueeze", integers({{"dim", 1}})), "f32[T, 1, 3]");
  EXPECT_EQ(inferred({{kF32, {t, 3}}}, "unsqueeze", integers({{"dim", -1}})), "f32[T, 3, 1]");
  EXPECT_EQ(inferred({{kF32, {}}}, "unsqueeze", integers({{"dim", 0}})), "f32[1]");
  EXPECT_TRUE(is_error(refused({{kF32, {t, 3}}}, "unsqueeze", integers({{"dim", 3}})),
                       "n/attrs/dim", "expected an integer from -3 to 2"));
  EXPECT_EQ(computed_one({{kF32, {1, 3}}}, "squeeze", {}, {{1, 2, 3}}), (Values{1, 2, 3}));
  EXPECT_EQ(computed_one({{kF32, {3}}}, "unsqueeze", integers({{"dim", 0}}), {{1, 2, 3}}),
            (Values{1, 2, 3}));
}

TEST(Flatten, JoinsDimsAndUnflattenCutsOne) {
  const Dim t = sym("T");
  const TensorType x{kF32, {t, 2, 3, 4}};
  EXPECT_EQ(inferred({x}, "flatten"), "f32[24*T]");
  EXPECT_EQ(inferred({x}, "flatten", integers({{"start_dim", 1}, {"end_dim", -2}})),
            "f32[T, 6, 4]");
  EXPECT_EQ(inferred({{kF32, {}}}, "flatten"), "f32[1]");
  EXPECT_TRUE(is_error(refused({x}, "flatten", integers({{"start_dim", 2}, {"end_dim", 1}})),
                       "n/attrs/end_dim", "dim 1 is in front of start_dim 2"));
  EXPECT_TRUE(is_error(refused({{kF32, {t, sym("S")}}}, "flatten"), "n/attrs/end_dim",
                       "dims 0 to 1 of f32[T, S] are no affine extent together"));
  const auto sizes = [](std::int64_t dim, Shape shape) {
    return Attrs{{"dim", dim}, {"sizes", std::move(shape)}};
  };
  EXPECT_EQ(inferred({{kF32, {t * 6, 4}}}, "unflatten", sizes(0, {-1, 3})), "f32[2*T, 3, 4]");
  EXPECT_EQ(inferred({{kF32, {2, 12}}}, "unflatten", sizes(-1, {3, 4})), "f32[2, 3, 4]");
  EXPECT_TRUE(is_error(refused({{kF32, {2, 12}}}, "unflatten", sizes(1, {5, -1})), "n/attrs/sizes",
                       "f32[12] cannot be viewed as f32[5, -1]"));
  EXPECT_EQ(computed_one({{kF32, {2, 2}}}, "flatten", {}, {{1, 2, 3, 4}}), (Values{1, 2, 3, 4}));
  EXPECT_EQ(computed_one({{kF32, {4}}}, "unflatten", sizes(0, {2, 2}), {{1, 2, 3, 4}}),
            (Values{1, 2, 3, 4}));
}

TEST(Select, TakesOneIndexAndNarrowARange) {
  const Dim t = sym("T");
  const TensorType x{kF32, {2, 3}};
  const Values v{1, 2, 3, 4, 5, 6};
  EXPECT_EQ(computed_one({x}, "select", integers({{"dim", 0}, {"index", 1}}), {v}),
            (Values{4, 5, 6}));
  EXPECT_EQ(computed_one({x}, "select", integers({{"dim", -1}, {"index", -3}}), {v}),
            (Values{1, 4}));
  EXPECT_EQ(inferred({{kF32, {t, 3, 4}}}, "select", integers({{"dim", 0}, {"index", -1}})),
            "f32[3, 4]");
  EXPECT_EQ(inferred({{kF32, {t, 3}}}, "select",
                     {{"dim", std::int64_t{0}}, {"index", std::string("T-1")}}),
            "f32[3]");
  EXPECT_TRUE(is_error(refused({x}, "select", integers({{"dim", 1}, {"index", 3}})),
                       "n/attrs/index", "3 is not among the 3 elements"));
  EXPECT_TRUE(is_error(refused({x}, "select", integers({{"dim", 1}, {"index", -4}})),
                       "n/attrs/index", "-4 is not among the 3 elements"));
  EXPECT_TRUE(is_error(refused({{kF32, {t}}}, "select", integers({{"dim", 0}, {"index", 1}})),
                       "n/attrs/index", "1 is not among the T elements for all values"));

  const auto range = [](std::int64_t start, std::int64_t length) {
    return integers({{"dim", 1}, {"start", start}, {"length", length}});
  };
  EXPECT_EQ(computed_one({x}, "narrow", range(1, 2), {v}), (Values{2, 3, 5, 6}));
  EXPECT_EQ(computed_one({x}, "narrow", range(-1, 1), {v}), (Values{3, 6}));
  EXPECT_EQ(
      inferred(
          {{kF32, {3, t * 2}}}, "narrow",
          {{"dim", std::int64_t{1}}, {"start", std::string("T")}, {"length", std::string("T")}}),
      "f32[3, T]");
  EXPECT_TRUE(is_error(refused({x}, "narrow", range(2, 2)), "n/attrs/length",
                       "2 from 2 on is more than the 3 elements"));
  EXPECT_TRUE(is_error(refused({x}, "narrow", range(-4, 1)), "n/attrs/start",
                       "-4 is not among the 3 elements"));
}

}  // namespace
}  // namespace braid
