#include <algorithm>
#include <bit>
#include <cmath>

#include "ir/attention.h"
#include "ir/fail.h"
#include "ir/ops.h"
#include "ir/scalar_functions.h"

namespace braid {
namespace {

constexpr std::string_view kPaged = "paged_attention";

/// Of a dim that is constant; 0 of any other.
std::int64_t constant(const Dim& dim) { return dim.is_constant() ? dim.evaluate({}) : 0; }

void check_tables(const InferContext& context) {
  const Shape& table = context.inputs[kPageTable].shape;
  const Dim sequences = table.empty() ? Dim(1) : table[0];
  const Shape expected[] = {
      {sequences, table.size() < 2 ? Dim(1) : table[1]}, {sequences}, {sequences + Dim(1)}};
  constexpr std::string_view kAbout[] = {"page table", "lengths", "query starts"};
  for (std::size_t i = 0; i < 3; ++i) {
    const TensorType& type = context.inputs[kPageTable + i];
    if (type == TensorType{DType::kI32, expected[i]}) continue;
    fail(fmt::format("/inputs/{}", kPageTable + i), "the {} of {} are {}; expected {}", kAbout[i],
         kPaged, type.str(),
         i == 0 ? "i32 of two dims" : TensorType{DType::kI32, expected[i]}.str());
  }
}

void check_attributes(const Attrs& attrs) {
  check_scale(attrs);
  if (const auto window = attrs.find("window"); window != attrs.end()) {
    if (std::get<std::int64_t>(window->second) < 1) {
      fail("/attrs/window", "found {}; expected at least 1",
           std::get<std::int64_t>(window->second));
    }
    if (!get_attr<bool>(attrs, "causal")) {
      fail("/attrs/window", "found a window without causal; expected causal, or none");
    }
  }
  const auto softcap = attrs.find("softcap");
  if (softcap != attrs.end() && !(std::get<double>(softcap->second) > 0)) {
    fail("/attrs/softcap", "found {}; expected a number above 0",
         std::get<double>(softcap->second));
  }
}

/// Keys and values are as the query, or 8-bit floats that have scales.
void check_dtypes(const InferContext& context) {
  expect_float(kPaged, context.inputs);
  const TensorType& key = context.inputs[1];
  const std::size_t operands = context.inputs.size();
  const bool is_scaled = operands > kSinks + 1;
  const bool fits = is_scaled ? is_float8(key.dtype) : key.dtype == context.inputs[0].dtype;
  if (!fits || context.inputs[2].dtype != key.dtype) {
    fail("", "operands are {}, {} scales; expected keys and values of {}",
         describe(context.inputs.first(3)), is_scaled ? "with" : "without",
         is_scaled ? "f8e4m3 or f8e5m2"
                   : fmt::format("{}: 8-bit floats have two scales, the last operands",
                                 dtype_name(context.inputs[0].dtype)));
  }
  for (std::size_t i = operands - 2; is_scaled && i < operands; ++i) {
    expect_scale(kPaged, context, i);
  }
}

std::vector<TensorType> infer_paged(const InferContext& context) {
  check_dtypes(context);
  const Shape& query = context.inputs[0].shape;
  const Shape& key = context.inputs[1].shape;
  const Shape& value = context.inputs[2].shape;
  const bool fits = query.size() == 3 && key.size() == 4 && value.size() == 4 &&
                    std::equal(key.begin(), key.end() - 1, value.begin()) && query[2] == key[3] &&
                    constant(query[1]) > 0 && constant(key[2]) > 0 &&
                    constant(query[1]) % constant(key[2]) == 0 && constant(query[2]) > 0 &&
                    constant(value[3]) > 0;
  if (!fits) {
    fail("",
         "operands are {}; expected [T, H, E], [pages, page, heads, E], [pages, page, heads, "
         "V], with constant heads that divide H, E and V",
         describe(context.inputs.first(3)));
  }
  const auto page = static_cast<std::uint64_t>(constant(key[1]));
  if (!std::has_single_bit(page) || page < 16 || page > 256) {
    fail("/inputs/1", "found {}; expected pages of 16, 32, 64, 128 or 256 keys",
         context.inputs[1].str());
  }
  check_tables(context);
  if (has_sinks(context.inputs.size())) {
    const TensorType& sinks = context.inputs[kSinks];
    const DType own = context.inputs[0].dtype;
    if (sinks.shape != Shape{query[1]} || (sinks.dtype != own && sinks.dtype != DType::kF32)) {
      fail("/inputs/6", "the sinks of {} are {}; expected {} or f32", kPaged, sinks.str(),
           TensorType{own, {query[1]}}.str());
    }
  }
  check_attributes(context.attrs);
  return {{context.inputs[0].dtype, {query[0], query[1], value[3]}}};
}

std::int64_t segment_of(const InferContext& context) {
  const auto segment = get_attr<std::int64_t>(context.attrs, "segment");
  if (segment < 1) fail("/attrs/segment", "found {}; expected at least 1", segment);
  return segment;
}

/// Segments that a row of the page table has room for.
std::int64_t segments(const InferContext& context) {
  const std::int64_t segment = segment_of(context);
  const Shape& table = context.inputs[kPageTable].shape;
  if (!table[1].is_constant()) {
    fail("/inputs/3", "found {}; expected a constant number of pages",
         context.inputs[kPageTable].str());
  }
  const std::int64_t keys = constant(table[1]) * constant(context.inputs[1].shape[1]);
  return (keys + segment - 1) / segment;
}

std::vector<TensorType> infer_parts(const InferContext& context) {
  const Shape result = infer_paged(context)[0].shape;
  return {{DType::kF32, {segments(context), result[0], result[1], result[2] + 2}}};
}

std::vector<TensorType> infer_in_parts(const InferContext& context) {
  static_cast<void>(segment_of(context));
  return infer_paged(context);
}

std::vector<TensorType> infer_join(const InferContext& context) {
  const TensorType& parts = context.inputs[0];
  if (parts.dtype != DType::kF32 || parts.shape.size() != 4 || constant(parts.shape[0]) < 1 ||
      constant(parts.shape[3]) < 3) {
    fail("/inputs/0", "found {}; expected f32[n, T, H, V + 2] with constant n and V", parts.str());
  }
  const auto dtype = get_attr<DType>(context.attrs, "dtype");
  return {{dtype, {parts.shape[1], parts.shape[2], parts.shape[3] - 2}}};
}

EvalTensors evaluate_join(const EvalContext& context, const EvalTensors& inputs) {
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& x) {
    EvalTensor result = make_result(context, 0);
    const auto columns = static_cast<std::size_t>(result.shape[2]);
    const std::size_t rows = result.data.size() / columns;
    const auto parts = static_cast<std::size_t>(x[0].shape[0]);
    for (std::size_t row = 0; row < rows; ++row) {
      const auto part = [&](std::size_t p) {
        return x[0].data.data() + (p * rows + row) * (columns + 2);
      };
      const auto heads = static_cast<std::size_t>(result.shape[1]);
      const double sink = x.size() > 1 ? x[1].data[row % heads] : -kInfinity;
      double most = sink;
      for (std::size_t p = 0; p < parts; ++p) most = std::fmax(most, part(p)[columns]);
      double sum = sink == -kInfinity ? 0 : std::exp(sink - most);
      double* out = result.data.data() + row * columns;
      for (std::size_t p = 0; p < parts; ++p) {
        if (part(p)[columns + 1] == 0) continue;
        const double factor = std::exp(part(p)[columns] - most);
        sum += factor * part(p)[columns + 1];
        for (std::size_t c = 0; c < columns; ++c) out[c] += factor * part(p)[c];
      }
      for (std::size_t c = 0; c < columns && sum != 0; ++c) out[c] /= sum;
    }
    return std::vector<EvalTensor>{std::move(result)};
  });
}

/// One rank's attention.
class Evaluation {
 public:
  Evaluation(const EvalContext& context, std::size_t rank, const std::vector<EvalTensor>& operands)
      : context_(context),
        form_(attention_of(context.graph, context.node)),
        rank_(rank),
        x_(operands),
        result_(make_result(context, 0)) {}

  EvalTensor run() {
    const auto sequences = std::ssize(x_[kKvLengths].integers);
    for (std::int64_t s = 0; s < sequences; ++s) sequence(s, s + 1 == sequences);
    return std::move(result_);
  }

 private:
  static std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }
  [[nodiscard]] std::int64_t extent(std::size_t operand, std::size_t dim) const {
    return x_[operand].shape[dim];
  }

  void check(PagedOperand operand, std::int64_t found, std::int64_t most) const {
    if (found >= 0 && found <= most) return;
    throw_invalid(fmt::format("{}/inputs/{}", context_.node.name, static_cast<int>(operand)),
                  "rank {}: index {} is out of range; expected an integer from 0 to {}", rank_,
                  found, most);
  }

  /// The same checks, in the same order, as in the kernel (codegen/work/paged_attention.cpp).
  void sequence(std::int64_t s, bool is_last) {
    const std::vector<std::int64_t>& starts = x_[kQueryStarts].integers;
    const std::int64_t tokens = extent(0, 0);
    const std::int64_t first = starts[at(s)], end = starts[at(s + 1)];
    const std::int64_t keys = x_[kKvLengths].integers[at(s)];
    if (s == 0) check(kQueryStarts, first, 0);
    check(kQueryStarts, end, tokens);
    check(kQueryStarts, end - first, tokens);
    if (is_last) check(kQueryStarts, tokens - end, 0);
    check(kKvLengths, keys, extent(kPageTable, 1) * extent(1, 1));
    check(kQueryStarts, end - first, keys);
    for (std::int64_t token = first; token < end; ++token) {
      const std::int64_t position = keys - (end - token);
      const std::int64_t seen = form_.causal ? position + 1 : keys;
      const std::int64_t hidden =
          form_.window ? std::max<std::int64_t>(0, seen - *form_.window) : 0;
      const std::vector<std::int64_t> rows = rows_of(s, hidden, seen);
      for (std::int64_t head = 0; head < extent(0, 1); ++head) {
        const std::vector<double> scores = scores_of(token, head, rows);
        form_.makes_parts ? store_parts(token, head, hidden, rows, scores)
                          : store(token, head, rows, scores);
      }
    }
  }

  /// Where keys `first` to `end` lie among those of all pages.
  [[nodiscard]] std::vector<std::int64_t> rows_of(std::int64_t s, std::int64_t first,
                                                  std::int64_t end) const {
    const std::int64_t page = extent(1, 1);
    std::vector<std::int64_t> rows;
    for (std::int64_t key = first; key < end; ++key) {
      const std::int64_t number =
          x_[kPageTable].integers[at(s * extent(kPageTable, 1) + key / page)];
      check(kPageTable, number, extent(1, 0) - 1);
      rows.push_back(number * page + key % page);
    }
    return rows;
  }

  [[nodiscard]] std::vector<double> scores_of(std::int64_t token, std::int64_t head,
                                              const std::vector<std::int64_t>& rows) const {
    const std::int64_t width = extent(0, 2);
    const double* query = x_[0].data.data() + (token * extent(0, 1) + head) * width;
    std::vector<double> scores;
    for (const std::int64_t row : rows) {
      const double* key = x_[1].data.data() + (row * extent(1, 2) + of_key(head)) * width;
      double score = 0;
      for (std::int64_t e = 0; e < width; ++e) score += query[e] * key[e];
      score *= form_.scale * scale_of(0);
      if (form_.softcap) score = *form_.softcap * std::tanh(score / *form_.softcap);
      scores.push_back(score);
    }
    return scores;
  }

  void store(std::int64_t token, std::int64_t head, const std::vector<std::int64_t>& rows,
             std::vector<double> weights) {
    form_.sinks ? weigh(weights, x_[kSinks].data[at(head)]) : weigh(weights);
    double* result = result_.data.data() + (token * extent(0, 1) + head) * extent(2, 3);
    for (std::size_t k = 0; k < rows.size(); ++k) add_value(result, head, rows[k], weights[k]);
  }

  void store_parts(std::int64_t token, std::int64_t head, std::int64_t first,
                   const std::vector<std::int64_t>& rows, const std::vector<double>& scores) {
    const std::int64_t columns = extent(2, 3);
    for (std::int64_t part = 0; part < result_.shape[0]; ++part) {
      double* result = result_.data.data() +
                       ((part * extent(0, 0) + token) * extent(0, 1) + head) * result_.shape[3];
      const auto clamped = [&](std::int64_t key) {
        return at(std::clamp<std::int64_t>(key - first, 0, std::ssize(rows)));
      };
      const std::size_t begin = clamped(part * *form_.segment);
      const std::size_t end = clamped((part + 1) * *form_.segment);
      double most = -kInfinity;
      for (std::size_t k = begin; k < end; ++k) most = std::fmax(most, scores[k]);
      result[columns] = most;
      for (std::size_t k = begin; k < end && most > -kInfinity; ++k) {
        const double weight = std::exp(scores[k] - most);
        result[columns + 1] += weight;
        add_value(result, head, rows[k], weight);
      }
    }
  }

  [[nodiscard]] std::int64_t of_key(std::int64_t head) const {
    return head / static_cast<std::int64_t>(form_.groups);
  }
  void add_value(double* result, std::int64_t head, std::int64_t row, double weight) const {
    const std::int64_t columns = extent(2, 3);
    const double* value = x_[2].data.data() + (row * extent(1, 2) + of_key(head)) * columns;
    const double scaled = weight * scale_of(1);
    for (std::int64_t c = 0; c < columns && weight != 0; ++c) result[c] += scaled * value[c];
  }
  /// Of keys (0) or values (1).
  [[nodiscard]] double scale_of(std::size_t which) const {
    return form_.scales ? x_[*form_.scales + which].data[0] : 1;
  }

  const EvalContext& context_;
  Attention form_;
  std::size_t rank_;
  const std::vector<EvalTensor>& x_;
  EvalTensor result_;
};

EvalTensors evaluate_paged(const EvalContext& context, const EvalTensors& inputs) {
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    const auto rank = context.first_rank + static_cast<std::size_t>(&operands - inputs.data());
    return std::vector<EvalTensor>{Evaluation(context, rank, operands).run()};
  });
}

}  // namespace

bool joins_parts(const Node& node) { return node.op_name() == "join_attention_parts"; }

void add_paged_attention_ops(std::vector<OpDef>& ops) {
  OpDef whole{
      .name = std::string(kPaged),
      .op_class = OpClass::kAttention,
      .min_inputs = 6,
      .max_inputs = 9,
      .attrs = {{.name = "scale",
                 .type = AttrType::kDouble,
                 .optional = true,
                 .about = "Left out, 1 / sqrt(E)"},
                {.name = "causal",
                 .type = AttrType::kBool,
                 .fallback = true,
                 .about = "A query sees the keys up to its own position"},
                {.name = "window",
                 .type = AttrType::kInt,
                 .optional = true,
                 .about = "A query sees that many keys, its own the last"},
                {.name = "softcap",
                 .type = AttrType::kDouble,
                 .optional = true,
                 .about = "A score x becomes softcap * tanh(x / softcap)"}},
      .infer = infer_paged,
      // As if each query saw all keys that a row of the page table has room for.
      .flops =
          [](auto inputs, auto, const Bindings& bindings) {
            const auto keys = static_cast<double>(inputs[kPageTable].shape[1].evaluate(bindings) *
                                                  inputs[1].shape[1].evaluate(bindings));
            const auto heads = static_cast<double>(inputs[0].shape[0].evaluate(bindings) *
                                                   inputs[0].shape[1].evaluate(bindings));
            return 2 * keys * heads *
                   static_cast<double>((inputs[1].shape[3] + inputs[2].shape[3]).evaluate({}));
          },
      .evaluate = evaluate_paged,
      .checked = {kPageTable, kKvLengths, kQueryStarts},
  };
  OpDef in_parts = whole;
  in_parts.name = "paged_attention_in_parts";
  in_parts.attrs.push_back({.name = "segment", .type = AttrType::kInt, .about = "Keys of a part"});
  in_parts.infer = infer_in_parts;
  OpDef parts = in_parts;
  parts.name = "paged_attention_parts";
  parts.max_inputs = 8;
  parts.infer = infer_parts;
  ops.push_back(std::move(whole));
  ops.push_back(std::move(in_parts));
  ops.push_back(std::move(parts));
  ops.push_back(
      {.name = "join_attention_parts",
       .op_class = OpClass::kAttention,
       .min_inputs = 1,
       .max_inputs = 2,
       .attrs = {{.name = "dtype", .type = AttrType::kDType}},
       .infer = infer_join,
       .flops = [](auto inputs, auto,
                   const Bindings& bindings) { return 2 * numel_at(inputs[0], bindings); },
       .evaluate = evaluate_join});
}

}  // namespace braid
