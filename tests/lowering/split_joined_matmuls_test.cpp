#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lowering/lowering_testing.h"

namespace braid::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

std::string input16(const std::string& name, const std::string& shape) {
  return R"({"name": ")" + name + R"(", "dtype": "bf16", "shape": [)" + shape + "]}";
}

std::string slice(const std::string& name, const std::string& of, int start, int end, int dim = 1) {
  return node(name, "slice", '"' + of + '"',
              R"("dim": )" + std::to_string(dim) + R"(, "start": )" + std::to_string(start) +
                  R"(, "end": )" + std::to_string(end));
}

std::string joined(const std::vector<std::string>& nodes) {
  std::string all;
  for (const std::string& one : nodes) all += (all.empty() ? "" : ",") + one;
  return all;
}

const std::string kSiluMul = node("a", "silu", R"("g")") + "," + node("h", "mul", R"("a", "u")");

Graph split(const Graph& graph, PassContext& context) {
  Graph result = split_joined_matmuls(graph, context);
  verify(result);
  return result;
}

/// The kernels that fuse makes of it, after checking that its values are the same.
std::vector<std::string> kernels_of(const Graph& graph, PassContext& context) {
  const Graph result = split(graph, context);
  expect_same_values(graph, result);
  return lines(fuse(result, context));
}

TEST(SplitJoinedMatmuls, GateAndUpAreOneKernel) {
  const Graph graph = graph_of(input16("x", R"("T", 64)") + "," + input16("w", "64, 128"),
                               joined({node("gu", "mm", R"("x", "w")"), slice("g", "gu", 0, 64),
                                       slice("u", "gu", 64, 128), kSiluMul}),
                               R"("h")");
  PassContext context = sm80();
  EXPECT_THAT(lines(fuse(graph, context)), SizeIs(3));  // two kernels, and the output
  EXPECT_THAT(lines(split(graph, context)),
              ElementsAre("w_part = slice(w)", "gu_part = mm(x, w_part)", "w_part1 = slice(w)",
                          "gu_part1 = mm(x, w_part1)", "a = silu(gu_part)", "h = mul(a, gu_part1)",
                          "-> h"));
  EXPECT_THAT(remarks_of(context, "gu"),
              Contains(StartsWith("applied: 2 parts of the columns: 1 kernel(s) take about")));
  EXPECT_THAT(kernels_of(graph, context),
              ElementsAre("h = gemm{slice+mm+slice+mm+silu+mul}(w, x)", "-> h"));
}

TEST(SplitJoinedMatmuls, WeightIsTransposedWithBiasAndBatch) {
  const std::string transpose = node("t", "transpose", R"("w")", R"("dim0": 0, "dim1": 1)");
  {
    const Graph graph = graph_of(
        input16("x", R"("T", 64)") + "," + input16("w", "128, 64") + "," + input16("b", "128"),
        joined({transpose, node("gu", "addmm", R"("b", "x", "t")"), slice("g", "gu", 0, 64),
                slice("u", "gu", 64, 128), kSiluMul}),
        R"("h")");
    PassContext context = sm80();
    const std::vector<std::string> kernels = kernels_of(graph, context);
    ASSERT_EQ(kernels.size(), 2U);
    EXPECT_THAT(kernels[0], HasSubstr("addmm"));
    // The weight itself is cut, so that a tile is copied as it lies.
    EXPECT_THAT(lines(split(graph, context)), Contains("w_part = slice(w)"));
  }
  const Graph graph = graph_of(
      input16("x", R"(3, "T", 64)") + "," + input16("w", "128, 64") + "," + input16("b", "128"),
      joined({transpose, node("p", "matmul", R"("x", "t")"), node("gu", "add", R"("p", "b")"),
              slice("g", "gu", 0, 64, 2), slice("u", "gu", 64, 128, 2), kSiluMul}),
      R"("h")");
  PassContext context = sm80();
  EXPECT_THAT(kernels_of(graph, context), SizeIs(1 + 1));
}

// There are as many ends of groups as columns.
TEST(SplitJoinedMatmuls, ExpertsOfSelectedRows) {
  const auto indices = [](const std::string& name, const std::string& shape) {
    return R"({"name": ")" + name + R"(", "dtype": "i32", "shape": [)" + shape + "]}";
  };
  const Graph graph =
      graph_of(input16("x", R"("T", 64)") + "," + input16("w", "32, 64, 32") + "," +
                   indices("tokens", R"("2*T")") + "," + indices("ends", "32"),
               joined({node("rows", "index_select", R"("x", "tokens")", R"("dim": 0)"),
                       node("gu", "_grouped_mm", R"("rows", "w", "ends")"), slice("g", "gu", 0, 16),
                       slice("u", "gu", 16, 32), kSiluMul}),
               R"("h")");
  PassContext context = sm80();
  const Graph result = split(graph, context);
  EXPECT_THAT(lines(result),
              ElementsAre("rows = index_select(x, tokens)", "w_part = slice(w)",
                          "gu_part = _grouped_mm(rows, w_part, ends)", "w_part1 = slice(w)",
                          "gu_part1 = _grouped_mm(rows, w_part1, ends)", "a = silu(gu_part)",
                          "h = mul(a, gu_part1)", "-> h"));
  EXPECT_THAT(lines(fuse(result, context)),
              ElementsAre("h = grouped_gemm{index_select+slice+_grouped_mm+slice+_grouped_mm+silu+"
                          "mul}(x, tokens, w, ends)",
                          "-> h"));
}

TEST(SplitJoinedMatmuls, ScalesOfColumns) {
  const auto f8 = [](const std::string& name, const std::string& shape) {
    return R"({"name": ")" + name + R"(", "dtype": "f8e4m3", "shape": [)" + shape + "]}";
  };
  const Graph graph =
      graph_of(f8("x", R"("T", 64)") + "," + f8("w", "64, 128") + "," + input("sx", R"("T", 1)") +
                   "," + input("sw", "1, 128"),
               joined({node("gu", "scaled_mm", R"("x", "w", "sx", "sw")"), slice("g", "gu", 0, 64),
                       slice("u", "gu", 64, 128), kSiluMul}),
               R"("h")");
  PassContext context = sm80();
  context.target.sm = 89;
  const std::vector<std::string> kernels = kernels_of(graph, context);
  ASSERT_EQ(kernels.size(), 2U);
  EXPECT_THAT(kernels[0], HasSubstr("scaled_mm+"));
}

TEST(SplitJoinedMatmuls, ScalesInBlocks) {
  const auto f8 = [](const std::string& name, const std::string& shape) {
    return R"({"name": ")" + name + R"(", "dtype": "f8e4m3", "shape": [)" + shape + "]}";
  };
  const auto graph = [&](int k, int columns, const std::string& scale) {
    const std::string depth = std::to_string(k), blocks = std::to_string(k / 128);
    return graph_of(f8("x", R"("T", )" + depth) + "," +
                        f8("w", depth + ", " + std::to_string(columns)) + "," +
                        input("sx", R"("T", )" + blocks) + "," + input("sw", scale),
                    joined({node("gu", "scaled_mm", R"("x", "w", "sx", "sw")"),
                            slice("g", "gu", 0, columns / 2),
                            slice("u", "gu", columns / 2, columns), kSiluMul}),
                    R"("h")");
  };
  PassContext context = sm80();
  context.target.sm = 89;
  EXPECT_THAT(lines(split(graph(512, 256, "4, 2"), context)),
              ElementsAre("w_part = slice(w)", "sw_part = slice(sw)",
                          "gu_part = scaled_mm(x, w_part, sx, sw_part)", "w_part1 = slice(w)",
                          "sw_part1 = slice(sw)", "gu_part1 = scaled_mm(x, w_part1, sx, sw_part1)",
                          "a = silu(gu_part)", "h = mul(a, gu_part1)", "-> h"));
  // There are as many blocks of K as columns: A's scale is left alone.
  EXPECT_THAT(lines(split(graph(4096, 32, "32, 32"), context)),
              Contains("gu_part1 = scaled_mm(x, w_part1, sx, sw_part1)"));
  EXPECT_THAT(lines(split(graph(512, 128, "4, 1"), context)),
              Contains("gu = scaled_mm(x, w, sx, sw)"));
  EXPECT_THAT(remarks_of(context, "gu"),
              Contains("missed: column 64 begins within a scale's block of 128"));
}

// A weight that is computed on the way to its matmul is computed for each part.
TEST(SplitJoinedMatmuls, WeightIsCast) {
  const Graph graph = graph_of(
      input16("x", R"("T", 64)") + R"(,{"name": "w", "dtype": "f8e4m3", "shape": [64, 128]})",
      joined({node("wide", "to", R"("w")", R"("dtype": "bf16")"),
              node("gu", "mm", R"("x", "wide")"), slice("g", "gu", 0, 64),
              slice("u", "gu", 64, 128), kSiluMul}),
      R"("h")");
  PassContext context = sm80();
  EXPECT_THAT(lines(split(graph, context)), Contains("wide_part = to(w_part)"));
  EXPECT_THAT(kernels_of(graph, context), SizeIs(1 + 1));
}

// 4 bits in words along K, [N, K / 8], read twice; a scale for each 16. "other" is not made for the
// matmul alone.
TEST(SplitJoinedMatmuls, WeightIsUnpacked) {
  const auto like = [](const std::string& name, const std::string& of, const std::string& shape) {
    return node(name, "view", '"' + of + '"', R"("shape": [)" + shape + "]");
  };
  const Graph graph = graph_of(
      input16("x", R"("T", 64)") + R"(,{"name": "w", "dtype": "i32", "shape": [128, 8]},)" +
          input16("s", "128, 4") + R"(,{"name": "z", "dtype": "i32", "shape": [128, 1]})",
      joined({node("shifts", "arange", "", R"("end": 32, "step": 4, "dtype": "i32")"),
              like("words", "w", "128, 8, 1"),
              node("n", "bitwise_right_shift", R"("words", "shifts")"),
              like("flat", "n", "128, 64"),
              node("low", "bitwise_and", R"("flat", 7)"),
              node("high", "bitwise_and", R"("flat", 8)"),
              node("number", "sub", R"("low", "high")"),
              node("other", "add", R"("z", 1)"),
              node("less", "sub", R"("number", "other")"),
              node("wide", "to", R"("less")", R"("dtype": "bf16")"),
              like("groups", "wide", "128, 4, 16"),
              like("scales", "s", "128, 4, 1"),
              node("each", "expand", R"("scales")", R"("shape": [128, 4, 16])"),
              node("scaled", "mul", R"("groups", "each")"),
              like("rows", "scaled", "128, 64"),
              node("t", "transpose", R"("rows")", R"("dim0": 0, "dim1": 1)"),
              node("gu", "mm", R"("x", "t")"),
              slice("g", "gu", 0, 64),
              slice("u", "gu", 64, 128),
              kSiluMul}),
      R"("h", "other")");
  PassContext context = sm80();
  const std::vector<std::string> parts = lines(split(graph, context));
  EXPECT_THAT(parts, Contains("w_part = slice(w)"));
  EXPECT_THAT(parts, Contains("s_part = slice(s)"));
  EXPECT_THAT(parts, Contains("other_part = slice(other)"));
  EXPECT_THAT(parts, Contains("number_part = sub(low_part, high_part)"));
  EXPECT_THAT(kernels_of(graph, context), SizeIs(2 + 1));
}

// By heads: the columns are behind a view; the parts differ, and nobody reads the last.
TEST(SplitJoinedMatmuls, PartsOfAView) {
  const Graph graph =
      graph_of(input16("x", R"("T", 64)") + "," + input16("w", "64, 192"),
               joined({node("p", "mm", R"("x", "w")"),
                       node("heads", "view", R"("p")", R"("shape": ["T", 6, 32])"),
                       slice("g", "heads", 0, 2), slice("u", "heads", 2, 4), kSiluMul}),
               R"("h")");
  PassContext context = sm80();
  EXPECT_THAT(kernels_of(graph, context), SizeIs(1 + 1));
  EXPECT_THAT(remarks_of(context, "p"), Contains(StartsWith("applied: 2 parts")));
}

TEST(SplitJoinedMatmuls, PartsOfSeveralKernels) {
  const std::vector<std::string> parts{node("qkv", "mm", R"("x", "w")"), slice("q", "qkv", 0, 256),
                                       slice("k", "qkv", 256, 384), slice("v", "qkv", 384, 512)};
  const std::string inputs = input16("x", R"("T", 256)") + "," + input16("w", "256, 512");
  const std::string tall = input16("x", "2048, 16") + "," + input16("w", "16, 512");
  {
    // A launch less, and the whole result neither written nor read.
    std::vector<std::string> nodes = parts;
    for (const char* part : {"q", "k", "v"}) {
      nodes.push_back(node(std::string(part) + "r", "silu", '"' + std::string(part) + '"'));
    }
    const Graph graph = graph_of(tall, joined(nodes), R"("qr", "kr", "vr")");
    PassContext context = sm80();
    EXPECT_THAT(kernels_of(graph, context), SizeIs(3 + 1));
    EXPECT_THAT(remarks_of(context, "qkv"),
                Contains(StartsWith("applied: 3 parts of the columns: 3 kernel(s)")));
    // With few rows each matmul takes longer than what is saved.
    PassContext few = sm80();
    split(graph_of(inputs, joined(nodes), R"("qr", "kr", "vr")"), few);
    EXPECT_THAT(remarks_of(few, "qkv"), Contains(StartsWith("missed: 3 parts")));
  }
  // The parts have no epilogue that would fuse into the matmuls, and x would be read three times.
  const Graph graph = graph_of(inputs, joined(parts), R"("q", "k", "v")");
  PassContext context = sm80();
  EXPECT_EQ(lines(split(graph, context)), lines(graph));
  EXPECT_THAT(remarks_of(context, "qkv"),
              Contains(StartsWith("missed: 3 parts of the columns would take about")));
}

TEST(SplitJoinedMatmuls, WhyNot) {
  const auto why = [](const std::vector<std::string>& nodes, const std::string& outputs,
                      const std::string& width = "128") {
    const Graph graph = graph_of(input16("x", R"("T", 64)") + "," + input16("w", "64, " + width),
                                 joined(nodes), outputs);
    PassContext context = sm80();
    EXPECT_EQ(lines(split(graph, context)), lines(graph));
    const std::vector<std::string> remarks = remarks_of(context, "gu");
    return remarks.empty() ? "" : remarks[0];
  };
  const std::string mm = node("gu", "mm", R"("x", "w")");
  const std::string g = slice("g", "gu", 0, 64), u = slice("u", "gu", 64, 128);
  EXPECT_EQ(why({mm, g, u, kSiluMul}, R"("h", "gu")"), "missed: 'gu' is a graph output");
  EXPECT_EQ(
      why({mm, g, u, kSiluMul, node("n", "softmax", R"("gu")", R"("dim": -1)")}, R"("h", "n")"),
      "missed: 'n' reads 'gu' across its parts");
  EXPECT_EQ(why({mm, g, slice("u", "gu", 32, 96), kSiluMul}, R"("h")"),
            "missed: columns 32 to 64 are in several parts");
  EXPECT_EQ(why({mm, slice("g", "gu", 0, 60), slice("u", "gu", 60, 120), kSiluMul}, R"("h")"),
            "missed: column 60 begins at no multiple of 16 bytes");
  EXPECT_EQ(why({mm, node("h", "silu", R"("gu")")}, R"("h")"), "");
}

}  // namespace
}  // namespace braid::testing
