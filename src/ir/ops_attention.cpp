#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/attention.h"
#include "ir/ops.h"
#include "ir/scalar_functions.h"

namespace braid {
namespace {

constexpr std::string_view kDense = "scaled_dot_product_attention";

/// All dims but the last two.
Shape batch_of(const TensorType& type) { return {type.shape.begin(), type.shape.end() - 2}; }

/// Query heads for each head of the key.
std::int64_t groups_of(const InferContext& context) {
  if (!get_attr<bool>(context.attrs, "enable_gqa")) return 1;
  const auto heads = [&](std::size_t i) -> std::optional<std::int64_t> {
    const Shape& shape = context.inputs[i].shape;
    const Dim& dim = shape[shape.size() - 3];
    if (!dim.is_constant()) return std::nullopt;
    return dim.evaluate({});
  };
  for (std::size_t i = 0; i < 3; ++i) {
    if (context.inputs[i].shape.size() < 3) {
      fail(fmt::format("/inputs/{}", i), "found {}; expected heads in front of the last two dims",
           context.inputs[i].str());
    }
  }
  const auto query = heads(0), key = heads(1);
  if (!query || !key || *query % *key != 0 || heads(2) != key) {
    fail("/attrs/enable_gqa",
         "operands are {}; expected query heads that are a multiple of the "
         "heads of key and value",
         describe(context.inputs.first(3)));
  }
  return *query / *key;
}

void check_mask(const InferContext& context, const Shape& scores) {
  const TensorType& mask = context.inputs[3];
  const std::size_t rank = mask.shape.size();
  bool good = rank <= scores.size();
  for (std::size_t d = 1; good && d <= rank; ++d) {
    const Dim& extent = mask.shape[rank - d];
    good = extent == Dim(1) || extent == scores[scores.size() - d];
  }
  const DType own = context.inputs[0].dtype;
  if (good && (mask.dtype == DType::kBool || mask.dtype == own)) return;
  fail("/inputs/3", "the mask is {}; expected bool or {}, and what broadcasts to {}", mask.str(),
       dtype_name(own), TensorType{own, scores}.str());
}

std::vector<TensorType> infer_dense(const InferContext& context) {
  expect_float(kDense, context.inputs);
  expect_same_dtype(kDense, context.inputs.first(3));
  const TensorType& query = context.inputs[0];
  for (std::size_t i = 0; i < 3; ++i) {
    const std::size_t rank = context.inputs[i].shape.size();
    if (rank >= 2 && rank == query.shape.size()) continue;
    fail(fmt::format("/inputs/{}", i),
         "operands are {}; expected as many dims of each, two or more",
         describe(context.inputs.first(3)));
  }
  if (get_attr<double>(context.attrs, "dropout_p") != 0) {
    fail("/attrs/dropout_p", "found a probability; expected 0: there is no dropout in inference");
  }
  check_scale(context.attrs);
  const TensorType& key = context.inputs[1];
  const TensorType& value = context.inputs[2];
  const std::size_t rank = query.shape.size();
  Shape batch = batch_of(query);
  Shape of_keys = batch;
  if (groups_of(context) > 1) of_keys.back() = key.shape[rank - 3];
  const bool fits = key.shape.back() == query.shape.back() && batch_of(key) == of_keys &&
                    batch_of(value) == of_keys && key.shape[rank - 2] == value.shape[rank - 2];
  if (!fits) {
    fail("", "operands are {}; expected [..., L, E], [..., S, E], [..., S, V]",
         describe(context.inputs.first(3)));
  }
  for (std::size_t i = 0; i < 3; ++i) {
    if (context.inputs[i].shape.back().is_constant()) continue;
    fail(fmt::format("/inputs/{}", i), "found {}; expected a constant last extent",
         context.inputs[i].str());
  }
  Shape scores = batch;
  scores.push_back(query.shape[rank - 2]);
  scores.push_back(key.shape[rank - 2]);
  if (context.inputs.size() > 3) {
    if (get_attr<bool>(context.attrs, "is_causal")) {
      fail("/attrs/is_causal", "found true beside a mask; expected one of the two");
    }
    check_mask(context, scores);
  }
  Shape result = batch;
  result.push_back(query.shape[rank - 2]);
  result.push_back(value.shape.back());
  return {{query.dtype, result}};
}

/// The element of a mask for [batch, row, key] of the scores.
std::size_t mask_element(const EvalTensor& mask, const std::vector<std::int64_t>& scores,
                         std::size_t at) {
  std::size_t element = 0, stride = 1;
  for (std::size_t d = 1; d <= scores.size(); ++d) {
    const auto extent = static_cast<std::size_t>(scores[scores.size() - d]);
    if (d <= mask.shape.size()) {
      const auto own = static_cast<std::size_t>(mask.shape[mask.shape.size() - d]);
      if (own != 1) element += at % extent * stride;
      stride *= own;
    }
    at /= extent;
  }
  return element;
}

EvalTensors evaluate_dense(const EvalContext& context, const EvalTensors& inputs) {
  const Attention form = attention_of(context.graph, context.node);
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& x) {
    EvalTensor result = make_result(context, 0);
    const auto extent = [](const EvalTensor& t, std::size_t from_end) {
      return static_cast<std::size_t>(t.shape[t.shape.size() - from_end]);
    };
    const std::size_t rows = extent(x[0], 2), width = extent(x[0], 1);
    const std::size_t keys = extent(x[1], 2), columns = extent(x[2], 1);
    std::vector<std::int64_t> scores = x[0].shape;
    scores.back() = x[1].shape[x[1].shape.size() - 2];
    const std::size_t lines = width == 0 ? 0 : x[0].data.size() / width;
    std::vector<double> row(keys);
    for (std::size_t line = 0; line < lines && keys > 0; ++line) {
      const std::size_t batch = line / rows / form.groups;  // of key and value
      for (std::size_t k = 0; k < keys; ++k) {
        double product = 0;
        for (std::size_t e = 0; e < width; ++e) {
          product += x[0].data[line * width + e] * x[1].data[(batch * keys + k) * width + e];
        }
        row[k] = product * form.scale;
        bool hidden = form.causal && k > line % rows;
        if (form.mask) {
          const EvalTensor& mask = x[*form.mask];
          const std::size_t at = mask_element(mask, scores, line * keys + k);
          if (is_float(mask.dtype)) {
            row[k] += mask.data[at];
          } else {
            hidden = hidden || mask.integers[at] == 0;
          }
        }
        if (hidden) row[k] = -kInfinity;
      }
      weigh(row);
      for (std::size_t k = 0; k < keys; ++k) {
        for (std::size_t c = 0; c < columns && row[k] != 0; ++c) {
          result.data[line * columns + c] += row[k] * x[2].data[(batch * keys + k) * columns + c];
        }
      }
    }
    return std::vector<EvalTensor>{std::move(result)};
  });
}

}  // namespace

void check_scale(const Attrs& attrs) {
  const auto scale = attrs.find("scale");
  if (scale == attrs.end() || std::get<double>(scale->second) > 0) return;
  fail("/attrs/scale", "found {}; expected a number above 0", std::get<double>(scale->second));
}

void weigh(std::span<double> scores, double sink) {
  const auto is_hidden = [](double x) { return x == -kInfinity; };
  if (std::ranges::all_of(scores, is_hidden)) {
    std::ranges::fill(scores, 0.0);
    return;
  }
  double most = sink;
  for (const double x : scores) most = std::fmax(most, x);
  double sum = std::exp(sink - most);
  for (double& x : scores) sum += x = std::exp(x - most);
  for (double& x : scores) x /= sum;
}

Attention attention_of(const Graph& graph, const Node& node) {
  Attention form;
  const Shape& query = graph.type(node.inputs[0]).shape;
  const auto* scale = node.attr<double>("scale");
  form.scale =
      scale != nullptr ? *scale : 1 / std::sqrt(static_cast<double>(query.back().evaluate({})));
  if (joins_parts(node)) {
    if (node.inputs.size() > 1) form.sinks = 1;
    return form;
  }
  if (node.op_name() != kDense) {
    form.paged = true;
    form.groups = static_cast<std::size_t>(query[1].evaluate({}) /
                                           graph.type(node.inputs[1]).shape[2].evaluate({}));
    form.causal = *node.attr<bool>("causal");
    // No sequence has more keys.
    constexpr std::int64_t kWidest = std::numeric_limits<std::int32_t>::max();
    if (const auto* window = node.attr<std::int64_t>("window")) {
      form.window = std::min(*window, kWidest);
    }
    if (const auto* softcap = node.attr<double>("softcap")) form.softcap = *softcap;
    if (has_sinks(node.inputs.size())) form.sinks = kSinks;
    if (node.inputs.size() > kSinks + 1) form.scales = node.inputs.size() - 2;
    if (const auto* segment = node.attr<std::int64_t>("segment")) form.segment = *segment;
    form.makes_parts = node.op_name() == "paged_attention_parts";
    return form;
  }
  if (*node.attr<bool>("enable_gqa")) {
    const std::size_t heads = query.size() - 3;
    form.groups = static_cast<std::size_t>(query[heads].evaluate({}) /
                                           graph.type(node.inputs[1]).shape[heads].evaluate({}));
  }
  form.causal = *node.attr<bool>("is_causal");
  if (node.inputs.size() > 3) form.mask = 3;
  return form;
}

void add_attention_ops(std::vector<OpDef>& ops) {
  ops.push_back({
      .name = std::string(kDense),
      .op_class = OpClass::kAttention,
      .min_inputs = 3,
      .max_inputs = 4,
      .attrs = {{"dropout_p", AttrType::kDouble, 0.0},
                {.name = "is_causal",
                 .type = AttrType::kBool,
                 .fallback = false,
                 .about = "Query i sees keys 0 to i"},
                {.name = "scale",
                 .type = AttrType::kDouble,
                 .optional = true,
                 .about = "Left out, 1 / sqrt(E)"},
                {.name = "enable_gqa",
                 .type = AttrType::kBool,
                 .fallback = false,
                 .about = "Several heads of the query share one of key and value"}},
      .infer = infer_dense,
      // Two products of [L, S] by the extents of a key and of a value; a causal one has half.
      .flops =
          [](auto inputs, auto outputs, const Bindings& bindings) {
            const Shape& key = inputs[1].shape;
            const auto keys = static_cast<double>(key[key.size() - 2].evaluate(bindings));
            const double wide = numel_at(inputs[0], bindings) + numel_at(outputs[0], bindings);
            return 2 * keys * wide;
          },
      .evaluate = evaluate_dense,
  });
}

}  // namespace braid
