#pragma once

#include "braid/graph_builder.h"

namespace braid::testing {

struct LayerSizes {
  std::int64_t tokens, hidden, inner, heads, key_heads, width, page, pages;
};

/// One layer of a Llama decoder for tokens of one sequence, whose keys and values lie in pages.
inline Graph llama_layer(const LayerSizes& s) {
  using enum DType;
  braid::GraphBuilder b("llama_layer");
  const auto x = b.input("x", {kBF16, {s.tokens, s.hidden}});
  const auto cos = b.input("cos", {kBF16, {s.tokens, 1, s.width / 2}});
  const auto sin = b.input("sin", {kBF16, {s.tokens, 1, s.width / 2}});
  const auto slots = b.input("slots", {kI32, {s.tokens}});
  const auto table = b.input("page_table", {kI32, {1, s.pages}});
  const auto lengths = b.input("lengths", {kI32, {1}});
  const auto starts = b.input("starts", {kI32, {2}});
  const TensorType cache{kBF16, {s.pages, s.page, s.key_heads, s.width}};
  const auto keys = b.state("keys", cache);
  const auto values = b.state("values", cache);
  const auto weight = [&](const char* name, std::int64_t rows, std::int64_t columns) {
    return b.parameter(name, {kBF16, {rows, columns}});
  };
  const auto norm = [&](const braid::GraphBuilder::Tensor& of, const char* gain, const char* name) {
    return b.op("rms_norm", {of, b.parameter(gain, {kBF16, {s.hidden}})}, {{"eps", 1e-5}}, name);
  };
  const std::int64_t all_heads = s.heads + 2 * s.key_heads;
  const auto qkv = b.op(
      "mm", {norm(x, "g1", "norm1"), weight("w_qkv", s.hidden, all_heads * s.width)}, {}, "qkv");
  const auto parts =
      b.results("split", {b.op("view", {qkv}, {{"shape", Shape{s.tokens, all_heads, s.width}}})},
                {{"split_size", std::vector<std::int64_t>{s.heads, s.key_heads, s.key_heads}},
                 {"dim", std::int64_t{1}}});
  const auto q = b.op("rotary_embedding", {parts[0], cos, sin}, {}, "q");
  const auto k = b.op("rotary_embedding", {parts[1], cos, sin}, {}, "k");
  b.results("append_kv", {keys, values, k, parts[2], slots}, {}, "append");
  const auto mixed =
      b.op("paged_attention", {q, keys, values, table, lengths, starts}, {}, "mixed");
  const auto flat = b.op("view", {mixed}, {{"shape", Shape{s.tokens, s.heads * s.width}}});
  const auto r1 =
      b.op("add", {b.op("mm", {flat, weight("w_o", s.heads * s.width, s.hidden)}, {}, "o"), x}, {},
           "r1");
  const auto h = norm(r1, "g2", "norm2");
  const auto gate = b.op("mm", {h, weight("w_gate", s.hidden, s.inner)}, {}, "gate");
  const auto up = b.op("mm", {h, weight("w_up", s.hidden, s.inner)}, {}, "up");
  const auto gated = b.op("mul", {b.op("silu", {gate}), up}, {}, "gated");
  const auto down = b.op("mm", {gated, weight("w_down", s.inner, s.hidden)}, {}, "down");
  b.output(b.op("add", {down, r1}, {}, "r2"));
  return b.build();
}

}  // namespace braid::testing
