#include "codegen/sample_specs.h"

#include <algorithm>
#include <functional>

#include "codegen/units.h"

namespace braid::testing {
namespace {

class Body {
 public:
  explicit Body(std::int64_t world = 4) {
    graph_->add_symbol("T", {1, 256, 1});
    if (world > 0) graph_->add_group("tp", {world, true, {}});
  }
  ValueId input(DType dtype, Shape shape) {
    return graph_->add_input(
        {"i" + std::to_string(graph_->inputs().size()), {dtype, std::move(shape)}});
  }
  ValueId symmetric(DType dtype, Shape shape) {
    const ValueId v = input(dtype, std::move(shape));
    mark(v);
    return v;
  }
  void mark(ValueId v) { graph_->set_comm_group(v, "tp"); }
  std::vector<ValueId> results(const std::string& name, std::vector<ValueId> inputs,
                               Attrs attrs = {}) {
    return graph_->node(graph_->add_node("", name, std::move(inputs), std::move(attrs))).outputs;
  }
  ValueId op(const std::string& name, std::vector<ValueId> inputs, Attrs attrs = {}) {
    return results(name, std::move(inputs), std::move(attrs))[0];
  }
  ValueId collective(const std::string& name, ValueId v, Attrs attrs,
                     const std::string& algorithm = "one_shot") {
    attrs.insert_or_assign("group", std::string("tp"));
    attrs.insert_or_assign("algorithm", algorithm);
    return op(name, {v}, std::move(attrs));
  }
  ValueId all_reduce(ValueId v, const std::string& algorithm = "one_shot") {
    return collective("all_reduce", v, {{"reduce_op", std::string("sum")}}, algorithm);
  }
  ValueId transpose(ValueId v) {
    return op("transpose", {v}, {{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{1}}});
  }
  KernelSpec done(std::vector<ValueId> outputs, const Target& target) {
    for (ValueId v : outputs) graph_->add_output(v);
    return {graph_, default_config(*graph_, target)};
  }

 private:
  std::shared_ptr<Graph> graph_ = std::make_shared<Graph>();
};

/// Collects specs.
struct Samples {
  const Target& target;
  std::vector<SampleSpec>& out;
  void operator()(const std::string& name, Body& body, std::vector<ValueId> outputs) const {
    out.push_back({name, body.done(std::move(outputs), target)});
  }
};

const Dim kT = Dim::symbol("T");
const Attrs kEps{{"eps", 1e-5}};

/// Elementwise kernels.
void add_rows(const Samples& add) {
  const DType bf16 = DType::kBF16;
  {
    Body b;
    add("pointwise_broadcast", b,
        {b.op("silu", {b.op("mul", {b.input(bf16, {kT, 2048}), b.input(bf16, {2048})})})});
  }
  {
    Body b;
    add("pointwise_tail", b, {b.op("gelu", {b.input(DType::kF32, {kT, 1001})})});
  }
  {
    Body b;
    add("pointwise_integer", b,
        {b.op("add", {b.input(DType::kI32, {kT, 8}), b.input(DType::kI32, {kT, 8})})});
  }
  {
    Body b;
    add("pointwise_cast", b,
        {b.op("to", {b.input(DType::kF32, {kT, 64})}, {{"dtype", DType::kF16}})});
  }
  {
    Body b;
    add("pointwise_transpose", b, {b.transpose(b.input(bf16, {kT, 77}))});
  }
  {
    Body b;
    add("row_rms_norm", b,
        {b.op("rms_norm", {b.input(bf16, {kT, 2048}), b.input(bf16, {2048})}, kEps)});
  }
  {
    Body b;
    const ValueId x = b.op("exp", {b.input(DType::kF32, {kT, 1001})});
    const ValueId s = b.op("sum", {x}, {{"dim", std::vector<std::int64_t>{-1}}, {"keepdim", true}});
    add("row_softmax_like", b, {b.op("div", {x, s})});
  }
  {
    Body b;
    add("row_sum_leading", b,
        {b.op("sum", {b.input(bf16, {kT, 77})}, {{"dim", std::vector<std::int64_t>{0}}})});
  }
  {
    Body b;
    add("row_wide_softmax", b,
        {b.op("softmax", {b.input(bf16, {kT, 32000})}, {{"dim", std::int64_t{-1}}})});
  }
  {
    Body b;
    const ValueId x = b.input(bf16, {kT, 8, 64});
    add("row_short_layer_norm", b,
        {b.op("layer_norm", {x, b.input(bf16, {64}), b.input(bf16, {64})}, kEps)});
  }
  {
    Body b;
    add("row_argmax", b,
        {b.op("argmax", {b.input(DType::kF32, {kT, 1001})},
              {{"dim", std::vector<std::int64_t>{-1}}})});
  }
  {
    Body b;
    add("row_cumsum", b, {b.op("cumsum", {b.input(bf16, {kT, 77})}, {{"dim", std::int64_t{0}}})});
  }
  {
    Body b;
    const Attrs eight{{"k", std::int64_t{8}}};
    add("topk", b, b.results("topk", {b.input(DType::kF32, {kT, 128})}, eight));
  }
  {
    Body b;
    const ValueId halves =
        b.op("cat", {b.input(bf16, {kT, 64}), b.input(bf16, {kT, 32})}, {{"dim", std::int64_t{1}}});
    add("pointwise_cat_slice", b,
        {b.op("slice", {halves},
              {{"dim", std::int64_t{1}}, {"start", std::int64_t{8}}, {"end", std::int64_t{88}}})});
  }
  {
    Body b;
    add("pointwise_embedding", b,
        {b.op("embedding", {b.input(bf16, {1000, 2048}), b.input(DType::kI64, {kT})})});
  }
  {
    Body b;
    const ValueId x = b.input(bf16, {kT, 8, 64});
    add("pointwise_rotary", b,
        {b.op("rotary_embedding", {x, b.input(bf16, {kT, 1, 32}), b.input(bf16, {kT, 1, 32})})});
  }
}

/// Matmuls.
void add_gemms(const Samples& add) {
  const DType bf16 = DType::kBF16;
  {
    Body b;
    const ValueId up = b.op("mm", {b.input(bf16, {kT, 2048}), b.input(bf16, {2048, 1408})});
    add("gemm_silu_mul", b, {b.op("mul", {b.op("silu", {b.input(bf16, {kT, 1408})}), up})});
  }
  {
    Body b;
    const ValueId a = b.input(DType::kF16, {kT, 1001});
    add("gemm_transposed_tail", b,
        {b.op("mm", {a, b.transpose(b.input(DType::kF16, {77, 1001}))})});
  }
  {
    Body b;
    const ValueId a = b.transpose(b.input(bf16, {512, 64}));
    add("gemm_transposed_a", b, {b.op("mm", {a, b.input(bf16, {512, 128})})});
  }
  {
    Body b;
    add("gemm_f32", b,
        {b.op("mm", {b.input(DType::kF32, {kT, 130}), b.input(DType::kF32, {130, 66})})});
  }
  {
    Body b;
    const ValueId x = b.input(bf16, {kT, 2048});
    const ValueId gate = b.op("mm", {x, b.input(bf16, {2048, 1408})});
    const ValueId up = b.op("mm", {x, b.input(bf16, {2048, 1408})});
    add("gemm_pair", b, {b.op("mul", {b.op("silu", {gate}), up})});
  }
  {
    Body b;
    const ValueId y = b.op("mm", {b.input(bf16, {2048, 1024}), b.input(bf16, {1024, 4096})});
    add("gemm_large_residual", b, {b.op("add", {y, b.input(bf16, {2048, 4096})})});
  }
  {
    Body b;
    const auto heads = [&](const Dim& count) { return b.input(bf16, {count, kT, 64}); };
    const ValueId q = heads(8), k = heads(2), v = heads(2);
    add("attention", b,
        {b.op("scaled_dot_product_attention", {q, k, v},
              {{"is_causal", true}, {"enable_gqa", true}})});
  }
  for (const std::string op : {"paged_attention", "paged_attention_in_parts"}) {
    Body b;
    const ValueId q = b.input(bf16, {kT, 8, 128});
    const ValueId k = b.input(bf16, {1000, 16, 2, 128}), v = b.input(bf16, {1000, 16, 2, 128});
    const auto places = [&](Shape shape) { return b.input(DType::kI32, std::move(shape)); };
    const ValueId table = places({20, 64}), lengths = places({20}), starts = places({21});
    Attrs attrs{{"window", std::int64_t{500}}, {"softcap", 30.0}};
    if (op != "paged_attention") attrs.emplace("segment", std::int64_t{512});
    add(op, b, {b.op(op, {q, k, v, table, lengths, starts}, attrs)});
  }
  for (const DType dtype : {bf16, DType::kF8E4M3}) {
    Body b;
    const auto places = [&](Shape shape) { return b.input(DType::kI32, std::move(shape)); };
    const ValueId q = b.input(bf16, {kT, 32, 128});
    const ValueId k = b.input(dtype, {1000, 64, 4, 128}), v = b.input(dtype, {1000, 64, 4, 128});
    const ValueId table = places({kT, 64}), lengths = places({kT}), starts = places({kT + 1});
    std::vector<ValueId> inputs{q, k, v, table, lengths, starts};
    if (dtype != bf16) {
      inputs.insert(inputs.end(), {b.input(DType::kF32, {}), b.input(DType::kF32, {})});
    }
    add(dtype == bf16 ? "paged_attention_parts" : "paged_attention_parts_8_bits", b,
        {b.op("paged_attention_parts", inputs, {{"segment", std::int64_t{512}}})});
  }
  {
    Body b;
    const ValueId parts = b.input(DType::kF32, {12, kT, 32, 130});
    add("join_attention", b,
        {b.op("silu",
              {b.op("join_attention_parts", {parts, b.input(bf16, {32})}, {{"dtype", bf16}})})});
  }
  {
    Body b;
    add("gemm_batched", b,
        {b.op("matmul", {b.input(bf16, {4, kT, 64}), b.input(bf16, {64, 128})})});
  }
  {
    Body b;
    add("grouped_gemm", b,
        {b.op("silu", {b.op("_grouped_mm", {b.input(bf16, {kT, 64}), b.input(bf16, {8, 64, 128}),
                                            b.input(DType::kI32, {8})})})});
  }
  {
    Body b;
    const ValueId rows =
        b.op("index_select", {b.input(bf16, {kT, 64}), b.input(DType::kI32, {kT * 2})},
             {{"dim", std::int64_t{0}}});
    add("grouped_gemm_of_selected_rows", b,
        {b.op("_grouped_mm", {rows, b.input(bf16, {8, 64, 128}), b.input(DType::kI32, {8})})});
  }
  {
    Body b;
    add("moe_routing", b,
        b.results("moe_routing", {b.input(DType::kI32, {kT, 2})}, {{"experts", std::int64_t{8}}}));
  }
  {
    Body b;
    const ValueId weight = b.op("to", {b.input(DType::kF32, {64, 128})}, {{"dtype", bf16}});
    const ValueId scaled = b.op("mul", {b.input(bf16, {kT, 64}), b.input(bf16, {64})});
    add("gemm_prologue_bias", b, {b.op("addmm", {b.input(bf16, {128}), scaled, weight})});
  }
  if (add.target.sm >= 89) {
    Body b;
    add("gemm_f8", b,
        {b.op("scaled_mm", {b.input(DType::kF8E4M3, {kT, 256}), b.input(DType::kF8E4M3, {256, 128}),
                            b.input(DType::kF32, {kT, 1}), b.input(DType::kF32, {1, 128})})});
    Body of_rows;
    const ValueId w = of_rows.op("transpose", {of_rows.input(DType::kF8E4M3, {4096, 512})},
                                 {{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{1}}});
    add("gemm_large_f8", of_rows,
        {of_rows.op("scaled_mm", {of_rows.input(DType::kF8E4M3, {2048, 512}), w,
                                  of_rows.input(DType::kF32, {2048, 1}),
                                  of_rows.input(DType::kF32, {1, 4096})})});
    Body in_blocks;
    const ValueId weight = in_blocks.op("transpose", {in_blocks.input(DType::kF8E4M3, {4096, 512})},
                                        {{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{1}}});
    add("gemm_f8_in_blocks", in_blocks,
        {in_blocks.op("scaled_mm", {in_blocks.input(DType::kF8E4M3, {2048, 512}), weight,
                                    in_blocks.input(DType::kF32, {2048, 4}),
                                    in_blocks.input(DType::kF32, {4, 32})})});
  }
}

/// Kernels that communicate.
void add_collectives(const Samples& add) {
  const DType bf16 = DType::kBF16;
  for (const std::int64_t world : {2, 4, 8}) {
    Body b(world);
    const ValueId r =
        b.op("add", {b.all_reduce(b.symmetric(bf16, {kT, 2048})), b.input(bf16, {kT, 2048})});
    add("all_reduce_add_rms_norm_" + std::to_string(world), b,
        {b.op("rms_norm", {r, b.input(bf16, {2048})}, kEps), r});
  }
  {
    Body b(8);
    const ValueId r = b.op("add", {b.all_reduce(b.symmetric(bf16, {kT, 2048}), "two_shot"),
                                   b.input(bf16, {kT, 2048})});
    add("two_shot_add_rms_norm", b, {b.op("rms_norm", {r, b.input(bf16, {2048})}, kEps), r});
  }
  for (const std::int64_t world : {2, 8}) {
    Body b(world);
    const ValueId x = b.op("silu", {b.input(bf16, {kT, 2880})});
    const ValueId r = b.op("add", {b.all_reduce(x, "ll"), b.input(bf16, {kT, 2880})});
    add("ll_add_rms_norm_" + std::to_string(world), b,
        {b.op("rms_norm", {r, b.input(bf16, {2880})}, kEps), r});
  }
  {
    Body b(3);
    add("ll_tail", b, {b.all_reduce(b.input(DType::kF16, {kT, 1001}), "ll")});
  }
  if (add.target.sm >= 90) {
    Body b(8);
    const ValueId r = b.op("add", {b.all_reduce(b.symmetric(bf16, {kT, 2048}), "multimem"),
                                   b.input(bf16, {kT, 2048})});
    add("multimem_add_rms_norm", b, {b.op("rms_norm", {r, b.input(bf16, {2048})}, kEps), r});
    for (const DType dtype : {DType::kF16, DType::kF32}) {
      Body tail(3);
      add(fmt::format("multimem_tail_{}", dtype_name(dtype)), tail,
          {tail.all_reduce(tail.symmetric(dtype, {kT, 1001}), "multimem")});
    }
  }
  {
    Body b(3);
    add("all_reduce_tail", b, {b.all_reduce(b.symmetric(DType::kF32, {kT, 1001}))});
  }
  {
    Body b;
    add("all_gather_rows", b,
        {b.op("silu",
              {b.collective("all_gather_into_tensor", b.symmetric(bf16, {kT, 2048}), {})})});
  }
  {
    Body b(8);
    const ValueId g =
        b.collective("all_gather_into_tensor", b.symmetric(bf16, {kT, 2048}), {}, "in_kernel");
    const ValueId gate = b.op("mm", {g, b.input(bf16, {2048, 1024})});
    const ValueId up = b.op("mm", {g, b.input(bf16, {2048, 1024})});
    add("gather_gemm_gated", b, {b.op("mul", {b.op("silu", {gate}), up}), g});
  }
  {
    Body b(8);
    const ValueId product =
        b.op("mm", {b.input(bf16, {kT * 8, 1024}), b.input(bf16, {1024, 2048})});
    b.mark(product);
    const ValueId r = b.op("add", {b.collective("reduce_scatter_tensor", product,
                                                {{"reduce_op", std::string("sum")}}, "in_kernel"),
                                   b.input(bf16, {kT, 2048})});
    add("gemm_reduce_add_rms_norm", b,
        {b.op("rms_norm", {r, b.input(bf16, {2048})}, kEps), r, product});
  }
  {
    Body b;
    const ValueId x = b.collective("reduce_scatter_tensor", b.symmetric(bf16, {kT * 4, 2048}),
                                   {{"reduce_op", std::string("avg")}});
    add("reduce_scatter_rms_norm", b, {b.op("rms_norm", {x, b.input(bf16, {2048})}, kEps)});
  }
  {
    Body b(2);
    add("all_to_all_uneven", b,
        {b.collective("all_to_all_single", b.symmetric(bf16, {8, 2048}),
                      {{"input_split_sizes", std::vector<std::int64_t>{5, 3, 3, 5}}})});
  }
  {
    Body b;
    add("shard_dim_alltoall", b,
        {b.collective("shard_dim_alltoall", b.symmetric(bf16, {kT, 2048}),
                      {{"gather_dim", std::int64_t{0}}, {"shard_dim", std::int64_t{1}}})});
  }
  {
    Body b;
    add("barrier", b, {});
  }
}

/// A norm with the number of warps that the matmul of its rows has, and that matmul.
void add_joined(const Samples& add) {
  constexpr std::int64_t kWidth = 4096;
  constexpr std::int64_t kNoGroup = 0;
  Body norm(kNoGroup), matmul(kNoGroup);
  const KernelSpec rows = norm.done(
      {norm.op("rms_norm",
               {norm.input(DType::kBF16, {kT, kWidth}), norm.input(DType::kBF16, {kWidth})},
               {{"eps", 1e-5}})},
      add.target);
  const KernelSpec tiles =
      matmul.done({matmul.op("mm", {matmul.input(DType::kBF16, {kT, kWidth}),
                                    matmul.input(DType::kBF16, {kWidth, 256})})},
                  add.target);
  const std::vector<Config> all = candidates(*tiles.body, add.target, /*resident=*/true);
  const Config of_rows{{"num_warps", 4}};
  const Config of_tiles = *std::ranges::find_if(
      all, [&](const Config& config) { return config.at("num_warps") == of_rows.at("num_warps"); });
  Body b;
  const auto kernel = [&](std::vector<ValueId> inputs, const KernelSpec& spec, Config config) {
    return b.op("kernel", std::move(inputs), {{"body", spec.body}, {"config", std::move(config)}});
  };
  const ValueId x = b.input(DType::kBF16, {kT, kWidth});
  const ValueId n = kernel({x, b.input(DType::kBF16, {kWidth})}, rows, of_rows);
  add("joined_norm_gemm", b,
      {n, kernel({n, b.input(DType::kBF16, {kWidth, 256})}, tiles, of_tiles)});
}

}  // namespace

std::vector<SampleSpec> sample_specs(const Target& target) {
  std::vector<SampleSpec> out;
  const Samples add{target, out};
  add_rows(add);
  add_gemms(add);
  add_collectives(add);
  add_joined(add);
  return out;
}

std::vector<SampleSpec> wide_attentions(const Target& target) {
  std::vector<SampleSpec> out;
  const Samples add{target, out};
  const DType bf16 = DType::kBF16;
  const auto places = [](Body& b, Shape shape) { return b.input(DType::kI32, std::move(shape)); };
  // Pages that are smaller than a tile of keys, and larger ones; sinks; a segment of keys alone.
  const auto paged = [&](const std::string& name, const char* op, std::int64_t head,
                         std::int64_t page, bool sinks, Attrs attrs) {
    Body b;
    const ValueId q = b.input(bf16, {kT, 32, head});
    const ValueId k = b.input(bf16, {8192, page, 8, head}),
                  v = b.input(bf16, {8192, page, 8, head});
    const Dim sequences = attrs.contains("segment") ? kT : Dim(16);
    std::vector<ValueId> inputs{
        q, k, v, places(b, {sequences, 64}), places(b, {sequences}), places(b, {sequences + 1})};
    if (sinks) inputs.push_back(b.input(bf16, {32}));
    add(name, b, {b.op(op, std::move(inputs), std::move(attrs))});
  };
  paged("prompts_128_small_pages", "paged_attention", 128, 16, false, {});
  paged("prompts_128_sinks", "paged_attention", 128, 16, true, {});
  paged("prompts_128_large_pages", "paged_attention", 128, 64, false, {});
  paged("parts_256", "paged_attention_parts", 256, 16, false, {{"segment", std::int64_t{512}}});
  // With a mask and no ring a few bytes are spilled; with half the rows for each warp nothing is,
  // and the kernel takes 1.4 times as long.
  for (const bool masked : {false, true}) {
    const Unit* const unit = multiplier(target, bf16, /*asynchronous=*/true);
    if (masked && (unit == nullptr || !unit->multiplies->from_registers)) continue;
    Body b;
    std::vector<ValueId> inputs;
    for (int i = 0; i < 3; ++i) inputs.push_back(b.input(bf16, {1, 16, kT, 128}));
    if (masked) inputs.push_back(b.input(bf16, {kT, kT}));
    add(masked ? "dense_128_masked" : "dense_128_causal", b,
        {b.op("scaled_dot_product_attention", std::move(inputs), {{"is_causal", !masked}})});
  }
  Body joined;
  add("join_256", joined,
      {joined.op("join_attention_parts", {joined.input(DType::kF32, {12, kT, 32, 258})},
                 {{"dtype", bf16}})});
  return out;
}

std::vector<SampleSpec> large_matmuls(const Target& target) {
  std::vector<SampleSpec> out;
  const Samples add{target, out};
  const Shape square{4096, 4096};
  {
    Body b;
    const ValueId x = b.input(DType::kBF16, square);
    const ValueId gate = b.op("mm", {x, b.input(DType::kBF16, square)});
    const ValueId up = b.op("mm", {x, b.input(DType::kBF16, square)});
    add("pair", b, {b.op("mul", {b.op("silu", {gate}), up})});
  }
  {
    Body b;
    const ValueId x = b.input(DType::kBF16, square);
    const ValueId both = b.input(DType::kBF16, {8192, 4096});
    const auto product_with = [&](std::int64_t start) {
      const ValueId part = b.op("slice", {both}, {{"start", start}, {"end", start + 4096}});
      return b.op("mm", {x, b.transpose(part)});
    };
    const ValueId gate = product_with(0);
    add("joined_pair", b, {b.op("mul", {b.op("silu", {gate}), product_with(4096)})});
  }
  for (const DType dtype : {DType::kBF16, DType::kF8E4M3}) {
    const bool f8 = dtype == DType::kF8E4M3;
    if (f8 && target.sm < 89) continue;
    const auto multiply = [&](Body& b, ValueId x, ValueId w) {
      if (!f8) return b.op("mm", {x, w});
      return b.op("scaled_mm", {x, w, b.input(DType::kF32, {}), b.input(DType::kF32, {})});
    };
    const std::string name(dtype_name(dtype));
    for (const std::int64_t rows : {16, 4096}) {
      Body along_n;
      const ValueId x = along_n.input(dtype, {rows, 4096});
      add(name + "_along_n_" + std::to_string(rows), along_n,
          {multiply(along_n, x, along_n.input(dtype, square))});
      Body along_k;
      const ValueId y = along_k.input(dtype, {rows, 4096});
      add(name + "_along_k_" + std::to_string(rows), along_k,
          {multiply(along_k, y, along_k.transpose(along_k.input(dtype, square)))});
    }
    Body gathers(8);
    const ValueId g = gathers.collective("all_gather_into_tensor",
                                         gathers.symmetric(dtype, {512, 4096}), {}, "in_kernel");
    add(name + "_gathered", gathers, {multiply(gathers, g, gathers.input(dtype, square)), g});
    Body scatters(8);
    const ValueId product =
        multiply(scatters, scatters.input(dtype, square), scatters.input(dtype, square));
    scatters.mark(product);
    add(name + "_scattered", scatters,
        {scatters.collective("reduce_scatter_tensor", product, {{"reduce_op", std::string("sum")}},
                             "in_kernel"),
         product});
  }
  return out;
}

}  // namespace braid::testing
