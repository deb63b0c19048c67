// Ops whose results along a dim are made one after the other: each depends on those before it.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/attributes.h"
#include "ir/ops.h"
#include "ir/views.h"

namespace braid {
namespace {

/// Lines of a tensor along a dim: element i of one that begins at `start` is at start + i * stride.
struct Lines {
  Lines(const std::vector<std::int64_t>& shape, std::size_t axis)
      : length(static_cast<std::size_t>(shape[axis])) {
    for (std::size_t d = 0; d < axis; ++d) outer *= static_cast<std::size_t>(shape[d]);
    for (std::size_t d = axis + 1; d < shape.size(); ++d) {
      stride *= static_cast<std::size_t>(shape[d]);
    }
  }
  [[nodiscard]] std::size_t count() const { return outer * stride; }
  [[nodiscard]] std::size_t start(std::size_t line) const {
    return line / stride * length * stride + line % stride;
  }

  std::size_t length;
  std::size_t outer = 1;
  std::size_t stride = 1;
};

void expect_numbers(std::string_view op, const TensorType& x, bool takes_bool) {
  if (!is_float8(x.dtype) && (takes_bool || x.dtype != DType::kBool)) return;
  fail("/inputs/0", "the operand of {} is {}; expected a number: insert `to`", op, x.str());
}

/// Integers and bools are summed as i64.
std::vector<TensorType> infer_cumsum(const InferContext& context) {
  TensorType result = context.inputs[0];
  expect_numbers("cumsum", result, /*takes_bool=*/true);
  static_cast<void>(axis_of(context.attrs, "dim", result.shape.size()));
  if (!is_float(result.dtype)) result.dtype = DType::kI64;
  return {result};
}

EvalTensors evaluate_cumsum(const EvalContext& context, const EvalTensors& inputs) {
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    const EvalTensor& x = operands[0];
    EvalTensor result = make_result(context, 0);
    const Lines lines(x.shape, axis_of(context.node.attrs, "dim", x.shape.size()));
    const auto add_up = [&](auto sum, const auto& at) {
      for (std::size_t line = 0; line < lines.count(); ++line) {
        auto so_far = sum;
        for (std::size_t i = 0; i < lines.length; ++i) {
          const std::size_t place = lines.start(line) + i * lines.stride;
          so_far = so_far + at(place);
          set_element(result, place, so_far);
        }
      }
    };
    if (is_float(x.dtype)) {
      add_up(0.0, [&](std::size_t place) { return x.data[place]; });
    } else {
      add_up(Int{0}, [&](std::size_t place) { return Int{x.integers[place]}; });
    }
    return std::vector<EvalTensor>{std::move(result)};
  });
}

/// The values and their indices, with `count` elements along the dim.
std::vector<TensorType> infer_sorted(std::string_view op, const InferContext& context,
                                     const Dim* count) {
  TensorType values = context.inputs[0];
  expect_numbers(op, values, /*takes_bool=*/false);
  const std::size_t axis = axis_of(context.attrs, "dim", values.shape.size());
  Dim& extent = values.shape[axis];
  if (count != nullptr) {
    const SymbolTable& symbols = context.graph.symbols();
    if (count->min(symbols) < 0 || count->max(symbols) < 1 || (extent - *count).min(symbols) < 0) {
      fail("/attrs/k", "{} of {} elements; expected 1 to {}", count->str(), extent.str(),
           extent.str());
    }
    extent = *count;
  }
  return {values, {DType::kI64, values.shape}};
}

/// NaN is above all; equal elements stay in their order.
template <class T>
bool comes_first(T a, T b, bool largest) {
  if constexpr (std::is_same_v<T, double>) {
    const T above = largest ? a : b;
    const T below = largest ? b : a;
    if (std::isnan(a) || std::isnan(b)) return std::isnan(above) && !std::isnan(below);
  }
  return largest ? b < a : a < b;
}

/// The values, where they are a result, and the indices.
std::vector<EvalTensor> sorted(const EvalContext& context, const EvalTensor& x, bool largest) {
  std::vector<EvalTensor> results;
  for (std::size_t i = 0; i < context.node.outputs.size(); ++i) {
    results.push_back(make_result(context, i));
  }
  const std::size_t axis = axis_of(context.node.attrs, "dim", x.shape.size());
  const Lines from(x.shape, axis);
  const Lines to(results[0].shape, axis);
  std::vector<std::size_t> order(from.length);
  visit_elements(x, [&](const auto& in) {
    for (std::size_t line = 0; line < from.count(); ++line) {
      const auto at = [&](std::size_t i) { return in[from.start(line) + i * from.stride]; };
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::ranges::stable_sort(
          order, [&](std::size_t a, std::size_t b) { return comes_first(at(a), at(b), largest); });
      for (std::size_t i = 0; i < to.length; ++i) {
        const std::size_t place = to.start(line) + i * to.stride;
        if (results.size() > 1) {
          move_elements(results[0], x, [&](auto& out, const auto&) { out[place] = at(order[i]); });
        }
        results.back().integers[place] = static_cast<std::int64_t>(order[i]);
      }
    }
  });
  return results;
}

EvalTensors evaluate_sorted(const EvalContext& context, const EvalTensors& inputs,
                            const char* largest) {
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    return sorted(context, operands[0], *context.node.attr<bool>(largest));
  });
}

}  // namespace

void add_scan_ops(std::vector<OpDef>& ops) {
  ops.push_back({
      .name = "cumsum",
      .op_class = OpClass::kScan,
      .min_inputs = 1,
      .max_inputs = 1,
      .attrs = {{"dim", AttrType::kInt, {}}},
      .infer = infer_cumsum,
      .flops = flops_per_element(1),
      .evaluate = evaluate_cumsum,
  });
  ops.push_back({
      .name = "topk",
      .op_class = OpClass::kScan,
      .min_inputs = 1,
      .max_inputs = 1,
      .attrs = {{"k", AttrType::kExtent, {}},
                {"dim", AttrType::kInt, std::int64_t{-1}},
                {"largest", AttrType::kBool, true},
                {"sorted", AttrType::kBool, true, false, "They are sorted in any case."}},
      .infer =
          [](const InferContext& context) {
            const Dim k = bound_of(context.attrs.find("k")->second);
            return infer_sorted("topk", context, &k);
          },
      // Each result is looked for among all elements, three times.
      .flops =
          [](auto inputs, auto outputs, const Bindings& bindings) {
            const double rows = numel_at(outputs[0], bindings);
            return 3 * rows * static_cast<double>(inputs[0].shape.back().evaluate(bindings));
          },
      .evaluate =
          [](const EvalContext& context, const EvalTensors& inputs) {
            return evaluate_sorted(context, inputs, "largest");
          },
  });
  // All of a topk, which canonicalize writes.
  const std::vector<AttrDef> order = {{"dim", AttrType::kInt, std::int64_t{-1}},
                                      {"descending", AttrType::kBool, false}};
  ops.push_back({
      .name = "argsort",
      .op_class = OpClass::kOpaque,
      .min_inputs = 1,
      .max_inputs = 1,
      .attrs = order,
      .infer =
          [](const InferContext& context) {
            return std::vector<TensorType>{infer_sorted("argsort", context, nullptr)[1]};
          },
      .flops = flops_per_element(1),
      .evaluate =
          [](const EvalContext& context, const EvalTensors& inputs) {
            return evaluate_sorted(context, inputs, "descending");
          },
  });
  ops.push_back({
      .name = "sort",
      .op_class = OpClass::kOpaque,
      .min_inputs = 1,
      .max_inputs = 1,
      .attrs = order,
      .infer = [](const InferContext& context) { return infer_sorted("sort", context, nullptr); },
      .flops = flops_per_element(1),
      .evaluate =
          [](const EvalContext& context, const EvalTensors& inputs) {
            return evaluate_sorted(context, inputs, "descending");
          },
  });
}

}  // namespace braid
