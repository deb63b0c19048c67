#include "braid/graph_builder.h"

#include "support.h"

namespace braid {
namespace {

const TensorType kRow{DType::kBF16, {sym("T"), 256}};

TEST(GraphBuilder, WritesTheGraphThatJsonDoes) {
  GraphBuilder b("block");
  const Dim t = b.symbol("T", {1, 64});
  b.group("tp", 2);
  const auto x = b.input("x", {DType::kBF16, {t, 256}}, {.per_rank = true});
  const auto w = b.parameter("w", {DType::kBF16, {256, 256}}, {.per_rank = true});
  const auto g = b.parameter("g", {DType::kBF16, {256}});
  const auto h = x.op("mm", {w}, {}, "h");
  EXPECT_EQ(h.type(), kRow);
  const auto sum = b.collective("all_reduce", {h.op("silu", {}, {}, "a")},
                                {{"reduce_op", "sum"}, {"group", "tp"}}, "s");
  const auto parts =
      b.results("split", {sum}, {{"split_size", std::vector<std::int64_t>{128}}, {"dim", 1}}, "p");
  ASSERT_EQ(parts.size(), 2U);
  b.output(sum.op("rms_norm", {g}, {{"eps", 1e-5}}, "y"));
  b.output(parts[1]);
  const std::string wait_of = b.build().nodes()[2].name;  // a fresh one
  EXPECT_EQ(to_json(b.build()), to_json(parse_graph(R"({
    "braid": 1, "name": "block", "symbols": {"T": {"max": 64}}, "groups": {"tp": {"size": 2}},
    "inputs": [{"name": "x", "dtype": "bf16", "shape": ["T", 256], "per_rank": true},
               {"name": "w", "dtype": "bf16", "shape": [256, 256], "kind": "parameter",
                "per_rank": true},
               {"name": "g", "dtype": "bf16", "shape": [256], "kind": "parameter"}],
    "nodes": [{"name": "h", "op": "mm", "inputs": ["x", "w"]},
              {"name": "a", "op": "silu", "inputs": ["h"]},
              {"name": ")" + wait_of + R"(", "op": "all_reduce", "inputs": ["a"],
               "attrs": {"reduce_op": "sum", "group": "tp"}},
              {"name": "s", "op": "wait_tensor", "inputs": [")" +
                                                    wait_of + R"("]},
              {"name": "p", "op": "split", "inputs": ["s"],
               "attrs": {"split_size": 128, "dim": 1}},
              {"name": "y", "op": "rms_norm", "inputs": ["s", "g"], "attrs": {"eps": 1e-5}}],
    "outputs": ["y", "p:1"]})")));
}

TEST(GraphBuilder, RefusesWhatNoGraphHas) {
  GraphBuilder b("bad");
  GraphBuilder other("other");
  const auto x = b.input("x", {DType::kF32, {4}});
  EXPECT_TRUE(is_error(error_of([&] { x.op("sillu"); }), "", "unknown op"));
  EXPECT_TRUE(is_error(error_of([&] { x.op("rms_norm", {}, {}, "n"); }), "n/attrs/eps", "missing"));
  EXPECT_TRUE(is_error(error_of([&] {
                         x.op("split", {}, {{"split_size", std::vector<std::int64_t>{2}}}, "p");
                       }),
                       "p", "split has 2 results; expected one"));
  const auto foreign = other.input("y", {DType::kF32, {4}});
  EXPECT_TRUE(is_error(error_of([&] { x.op("add", {foreign}); }), "/inputs/1", "another"));
  EXPECT_TRUE(is_error(error_of([&] { static_cast<void>(b.build()); }), "/outputs", "at least"));
}

}  // namespace
}  // namespace braid
