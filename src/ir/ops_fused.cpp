#include <fmt/format.h>

#include <array>
#include <limits>

#include "ir/collective.h"
#include "ir/evaluate.h"
#include "ir/fused.h"
#include "ir/groups.h"
#include "ir/ops.h"
#include "ir/place.h"
#include "ir/text.h"

namespace braid {
namespace {

/// The type of the product of the operands at `places`, by the rules of mm or scaled_mm. Errors
/// name these operands.
TensorType infer_product(const InferContext& context, bool scaled,
                         std::span<const TensorType> operands,
                         std::span<const std::size_t> places) {
  Attrs attrs;
  if (const auto it = context.attrs.find("out_dtype"); it != context.attrs.end()) attrs.insert(*it);
  try {
    return find_op(scaled ? "scaled_mm" : "mm")->infer({context.graph, operands, attrs})[0];
  } catch (const Error& error) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (error.where() != fmt::format("/inputs/{}", i)) continue;
      fail(fmt::format("/inputs/{}", places[i]), std::string(message_of(error)));
    }
    throw;
  }
}

/// A, with two dims or more, as a matrix of its rows.
TensorType flattened(const TensorType& a) {
  if (a.shape.size() < 2) fail("/inputs/0", "A is {}; expected at least two dims", a.str());
  const auto rows = rows_of(a.shape);
  if (!rows) {
    fail("/inputs/0",
         "A is {}; expected a number of rows that is an affine expression of the symbols", a.str());
  }
  return {a.dtype, {*rows, a.shape.back()}};
}

TensorType one_for_each_row(TensorType a) {
  a.dtype = DType::kF32;
  a.shape.back() = 1;
  return a;
}

/// A's scale in scaled_mm's form: f32[], or one number per row of one of `rows`.
TensorType flattened_scale(const TensorType& scale, std::size_t place, const TensorType& a,
                           std::span<const TensorType> rows) {
  TensorType one{DType::kF32, {}};
  if (scale == one) return one;
  for (const TensorType& full : rows) {
    if (scale == one_for_each_row(full)) return one_for_each_row(flattened(a));
  }
  std::string expected = one.str();
  for (const TensorType& full : rows) expected += " or " + one_for_each_row(full).str();
  fail(fmt::format("/inputs/{}", place), "the scale of A is {}; expected {}", scale.str(),
       expected);
}

/// The type of A @ B number i.
TensorType infer_matmul_of(const InferContext& context, const FusedOperands& form, std::size_t i,
                           const TensorType& a, std::span<const TensorType> scale_rows) {
  std::vector<TensorType> operands{flattened(a), context.inputs[form.b(i)]};
  std::vector<std::size_t> places{0, form.b(i)};
  if (form.scaled) {
    operands.push_back(
        flattened_scale(context.inputs[form.a_scale()], form.a_scale(), a, scale_rows));
    operands.push_back(context.inputs[form.b_scale(i)]);
    places.insert(places.end(), {form.a_scale(), form.b_scale(i)});
  }
  if (form.biased) {
    operands.push_back(context.inputs[form.bias(i)]);
    places.push_back(form.bias(i));
  }
  TensorType result = infer_product(context, form.scaled, operands, places);
  result.shape.insert(result.shape.begin(), a.shape.begin(), a.shape.end() - 1);
  result.shape.erase(result.shape.end() - 2);
  return result;
}

std::vector<TensorType> infer_gather_matmul(const FusedOperands& form,
                                            const InferContext& context) {
  const TensorType& shard = context.inputs[0];
  static_cast<void>(flattened(shard));
  const std::size_t axis = normalize_axis(get_attr<std::int64_t>(context.attrs, "gather_dim"),
                                          shard.shape.size(), "/attrs/gather_dim");
  if (form.scaled && axis + 1 == shard.shape.size()) {
    fail("/attrs/gather_dim",
         "dim {} is the last one; expected another: scaled matmuls are not split along K", axis);
  }
  TensorType a = shard;
  a.shape[axis] = a.shape[axis] * group_of(context.graph, context.attrs).size;
  std::vector<TensorType> results;
  if (get_attr<bool>(context.attrs, "return_A")) results.push_back(a);
  for (std::size_t i = 0; i < form.matmuls; ++i) {
    results.push_back(infer_matmul_of(context, form, i, a, std::array{a, shard}));
  }
  return results;
}

/// The type of the product before its reduction.
TensorType infer_reduced(const FusedOperands& form, const InferContext& context) {
  const TensorType& a = context.inputs[0];
  return infer_matmul_of(context, form, 0, a, std::array{a});
}

std::vector<TensorType> infer_all_reduce(const FusedOperands& form, const InferContext& context) {
  const TensorType product = infer_reduced(form, context);
  if (get_attr<bool>(context.attrs, "return_mm")) return {product, product};
  return {product};
}

std::vector<TensorType> infer_scatter(const FusedOperands& form, const InferContext& context) {
  const TensorType& a = context.inputs[0];
  const TensorType product = infer_reduced(form, context);
  const std::size_t axis = normalize_axis(get_attr<std::int64_t>(context.attrs, "scatter_dim"),
                                          a.shape.size(), "/attrs/scatter_dim");
  if (form.scaled && axis + 1 == a.shape.size()) {
    fail("/attrs/scatter_dim",
         "dim {} is the last one; expected another: only plain matmuls are split by columns", axis);
  }
  TensorType chunk = product;
  const auto extent = chunk.shape[axis].divide_exactly(group_of(context.graph, context.attrs).size,
                                                       context.graph.symbols());
  if (!extent) {
    fail("/attrs/scatter_dim",
         "dim {} of the product {} does not divide among the {} ranks of the group", axis,
         product.str(), group_of(context.graph, context.attrs).size);
  }
  chunk.shape[axis] = *extent;
  if (get_attr<bool>(context.attrs, "return_mm")) return {chunk, product};
  return {chunk};
}

/// Evaluates the composition as a graph of its own.
EvalTensors evaluate_fused(const EvalContext& context, const EvalTensors& inputs) {
  const Node& node = context.node;
  Graph graph;
  add_tables(graph, context.graph.symbols(), context.graph.groups());
  std::vector<ValueId> operands;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    operands.push_back(graph.add_input(
        {.name = fmt::format("x{}", i), .type = context.graph.type(node.inputs[i])}));
  }
  const auto unnamed = [](std::string_view) { return std::string(); };
  for (ValueId result : add_composition(graph, node, operands, unnamed)) graph.add_output(result);
  return evaluate_nodes(graph, inputs, context.bindings);
}

/// The flops of the products, and one operation per reduced element.
double fused_flops(bool gathers, std::span<const TensorType> inputs,
                   std::span<const TensorType> outputs, const Bindings& bindings) {
  // In a gather along the last dim, A_shard has only part of K.
  const double k = inputs[1].shape[0].evaluate(bindings);
  // A product has the rows of all ranks' shards.
  const TensorType& tall = gathers ? outputs.back() : inputs[0];
  const double rows = numel_at(tall, bindings) / tall.shape.back().evaluate(bindings);
  double flops = 0;
  for (const TensorType& b : inputs.subspan(1)) {
    if (is_float8(b.dtype) != is_float8(inputs[0].dtype)) break;  // scales and later operands
    const double columns = b.shape[1].evaluate(bindings);
    flops += (2 * k + (gathers ? 0 : 1)) * rows * columns;
  }
  return flops;
}

}  // namespace

void add_fused_ops(std::vector<OpDef>& ops) {
  constexpr int kMany = std::numeric_limits<int>::max();
  const AttrDef group = {"group", AttrType::kGroup, {}};
  const auto add = [&](const std::string& name, CollectiveKind collective, Matmul matmul,
                       int min_inputs, int max_inputs, std::vector<AttrDef> attrs, auto infer) {
    attrs.push_back(group);
    const bool gathers = collective == CollectiveKind::kAllGather;
    ops.push_back({
        .name = name,
        .op_class = OpClass::kFusedMatmul,
        .min_inputs = min_inputs,
        .max_inputs = max_inputs,
        .attrs = std::move(attrs),
        .infer =
            [=](const InferContext& context) {
              return infer(fused_operands(collective, matmul, context.attrs, context.inputs.size()),
                           context);
            },
        .flops =
            [=](auto inputs, auto outputs, const Bindings& bindings) {
              return fused_flops(gathers, inputs, outputs, bindings);
            },
        .evaluate = evaluate_fused,
        .matmul = matmul,
        .collective = collective,
    });
  };
  using K = CollectiveKind;
  // The attributes of mm and scaled_mm.
  const AttrDef plain = {"out_dtype", AttrType::kDType, {}, true};
  const AttrDef scaled = {"out_dtype", AttrType::kDType, DType::kBF16};
  const AttrDef gather_dim = {"gather_dim", AttrType::kInt, {}};
  const AttrDef return_a = {"return_A", AttrType::kBool, true, false,
                            "The first result is the gathered A."};
  const AttrDef scatter_dim = {"scatter_dim",
                               AttrType::kInt,
                               {},
                               false,
                               "Of the product, whose dims are A's but for the last."};
  const AttrDef reduce_op = {
      .name = "reduce_op", .type = AttrType::kString, .fallback = {}, .choices = {"sum", "avg"}};
  const AttrDef return_mm = {"return_mm", AttrType::kBool, false, false,
                             "The second result is this rank's product."};
  const AttrDef bias = {"bias", AttrType::kBool, false, false,
                        "There is a bias for each B, after the scales."};
  add("fused_all_gather_matmul", K::kAllGather, Matmul::kPlain, 2, kMany,
      {gather_dim, return_a, plain}, infer_gather_matmul);
  add("fused_all_gather_scaled_matmul", K::kAllGather, Matmul::kScaled, 4, kMany,
      {gather_dim, return_a, scaled, bias}, infer_gather_matmul);
  add("fused_matmul_reduce_scatter", K::kReduceScatter, Matmul::kPlain, 2, 2,
      {reduce_op, scatter_dim, return_mm, plain}, infer_scatter);
  add("fused_scaled_matmul_reduce_scatter", K::kReduceScatter, Matmul::kScaled, 4, 5,
      {reduce_op, scatter_dim, return_mm, scaled, bias}, infer_scatter);
  add("fused_matmul_all_reduce", K::kAllReduce, Matmul::kPlain, 2, 2, {reduce_op, return_mm, plain},
      infer_all_reduce);
  add("fused_scaled_matmul_all_reduce", K::kAllReduce, Matmul::kScaled, 4, 5,
      {reduce_op, return_mm, scaled, bias}, infer_all_reduce);
}

}  // namespace braid
