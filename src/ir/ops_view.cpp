#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "ir/numel.h"
#include "ir/ops.h"
#include "ir/views.h"

namespace braid {
namespace {

/// The shape that the attribute `key` gives the elements of x.
Shape viewed_shape(const InferContext& context, const TensorType& x, const std::string& key) {
  const std::string place = "/attrs/" + key;
  Shape shape = get_attr<Shape>(context.attrs, key);
  auto mismatch = [&] {
    fail(place, "{} cannot be viewed as {}; expected equally many elements", x.str(),
         TensorType{x.dtype, shape}.str());
  };
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i].is_constant() && shape[i].constant() < -1) {
      fail(fmt::format("{}/{}", place, i), "the extent {}; expected at least 1, or -1",
           shape[i].str());
    }
  }
  const auto inferred = std::ranges::find(shape, Dim(-1));
  if (inferred == shape.end()) {
    if (!same_numel(x.shape, shape)) mismatch();
    return shape;
  }
  if (std::ranges::count(shape, Dim(-1)) > 1) {
    fail(place, "two extents are -1; expected at most one");
  }
  Shape others = shape;
  others.erase(others.begin() + (inferred - shape.begin()));
  std::optional<Dim> extent = missing_extent(x.shape, others);
  if (!extent || !extent->is_whole(context.graph.symbols())) mismatch();
  *inferred = *extent;
  return shape;
}

std::vector<TensorType> infer_view(const InferContext& context) {
  const TensorType& x = context.inputs[0];
  return {{x.dtype, viewed_shape(context, x, "shape")}};
}

/// Tensor.view(dtype): reinterprets the bytes of each row as elements of another dtype.
std::vector<TensorType> infer_view_dtype(const InferContext& context) {
  TensorType result = context.inputs[0];
  const TensorType& x = context.inputs[0];
  result.dtype = get_attr<DType>(context.attrs, "dtype");
  if (result.dtype == DType::kBool && x.dtype != DType::kBool) {
    fail("/attrs/dtype",
         "bool of {}: its bytes may be other than 0 and 1; expected another dtype, or `ne`",
         x.str());
  }
  const auto from = static_cast<std::int64_t>(dtype_size(x.dtype));
  const auto to = static_cast<std::int64_t>(dtype_size(result.dtype));
  if (from == to) return {result};
  if (x.shape.empty()) {
    fail("/attrs/dtype", "{} of the scalar {}; expected a dtype of {} bytes",
         dtype_name(result.dtype), x.str(), from);
  }
  const auto extent = (x.shape.back() * from).divide_exactly(to, context.graph.symbols());
  if (!extent) {
    fail("/attrs/dtype", "{} of {}: the last dim has {} bytes; expected a multiple of {}",
         dtype_name(result.dtype), x.str(), (x.shape.back() * from).str(), to);
  }
  result.shape.back() = *extent;
  return {result};
}

std::vector<TensorType> infer_permute(std::string_view op, const InferContext& context) {
  TensorType result = context.inputs[0];
  const auto order = permutation(op, context.attrs, result.shape.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    result.shape[i] = context.inputs[0].shape[order[i]];
  }
  return {result};
}

/// An extent of -1 keeps the old one; extents of 1 and new leading dims may become anything.
std::vector<TensorType> infer_expand(const InferContext& context) {
  const TensorType& x = context.inputs[0];
  Shape shape = get_attr<Shape>(context.attrs, "shape");
  auto mismatch = [&] {
    fail("/attrs/shape",
         "{} cannot be expanded to {}; expected its own extents, from the last one on, where they "
         "are not 1",
         x.str(), TensorType{x.dtype, shape}.str());
  };
  if (shape.size() < x.shape.size()) mismatch();
  const std::size_t lead = shape.size() - x.shape.size();
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i < lead) {
      if (shape[i] == Dim(-1)) mismatch();
      continue;
    }
    if (shape[i] == Dim(-1)) shape[i] = x.shape[i - lead];
    if (shape[i] != x.shape[i - lead] && x.shape[i - lead] != Dim(1)) mismatch();
  }
  return {{x.dtype, shape}};
}

std::vector<TensorType> infer_slice(const InferContext& context) {
  const SliceRange range =
      part_ranges(context.attrs, context.inputs[0].shape, context.graph.symbols())[0];
  TensorType result = context.inputs[0];
  result.shape[range.axis] = range.length;
  return {result};
}

std::vector<TensorType> infer_select(const InferContext& context) {
  const SliceRange range =
      part_ranges(context.attrs, context.inputs[0].shape, context.graph.symbols())[0];
  TensorType result = context.inputs[0];
  result.shape.erase(result.shape.begin() + static_cast<std::ptrdiff_t>(range.axis));
  return {result};
}

/// A dim whose extent is a symbol stays, though the symbol may be 1.
std::vector<TensorType> infer_squeeze(const InferContext& context) {
  const TensorType& x = context.inputs[0];
  const std::size_t rank = x.shape.size();
  std::vector<bool> goes(rank, true);
  if (const auto dims = context.attrs.find("dim"); dims != context.attrs.end()) {
    goes.assign(rank, false);
    for (std::int64_t dim : std::get<std::vector<std::int64_t>>(dims->second)) {
      goes[normalize_axis(dim, rank, "/attrs/dim")] = true;
    }
  }
  TensorType result{x.dtype, {}};
  for (std::size_t d = 0; d < rank; ++d) {
    if (!goes[d] || x.shape[d] != Dim(1)) result.shape.push_back(x.shape[d]);
  }
  return {result};
}

std::vector<TensorType> infer_unsqueeze(const InferContext& context) {
  TensorType result = context.inputs[0];
  const std::size_t axis = axis_of(context.attrs, "dim", result.shape.size() + 1);
  result.shape.insert(result.shape.begin() + static_cast<std::ptrdiff_t>(axis), 1);
  return {result};
}

std::vector<TensorType> infer_flatten(const InferContext& context) {
  const TensorType& x = context.inputs[0];
  if (x.shape.empty()) return {{x.dtype, {1}}};
  const std::size_t first = axis_of(context.attrs, "start_dim", x.shape.size());
  const std::size_t last = axis_of(context.attrs, "end_dim", x.shape.size());
  if (last < first) {
    fail("/attrs/end_dim", "dim {} is in front of start_dim {}; expected it or one behind it", last,
         first);
  }
  const auto begin = x.shape.begin();
  const Shape joined(begin + static_cast<std::ptrdiff_t>(first),
                     begin + static_cast<std::ptrdiff_t>(last) + 1);
  const std::optional<Dim> extent = missing_extent(joined, {});
  if (!extent) {
    fail("/attrs/end_dim", "dims {} to {} of {} are no affine extent together", first, last,
         x.str());
  }
  TensorType result{x.dtype, Shape(begin, begin + static_cast<std::ptrdiff_t>(first))};
  result.shape.push_back(*extent);
  result.shape.insert(result.shape.end(), begin + static_cast<std::ptrdiff_t>(last) + 1,
                      x.shape.end());
  return {result};
}

std::vector<TensorType> infer_unflatten(const InferContext& context) {
  const TensorType& x = context.inputs[0];
  const std::size_t axis = axis_of(context.attrs, "dim", x.shape.size());
  const Shape sizes = viewed_shape(context, {x.dtype, {x.shape[axis]}}, "sizes");
  TensorType result = x;
  const auto place = result.shape.erase(result.shape.begin() + static_cast<std::ptrdiff_t>(axis));
  result.shape.insert(place, sizes.begin(), sizes.end());
  return {result};
}

std::vector<TensorType> infer_split(const InferContext& context) {
  std::vector<TensorType> results;
  for (const SliceRange& range :
       split_ranges(context.attrs, context.inputs[0].shape, context.graph.symbols())) {
    results.push_back(context.inputs[0]);
    results.back().shape[range.axis] = range.length;
  }
  return results;
}

std::vector<TensorType> infer_cat(const InferContext& context) {
  expect_same_dtype("cat", context.inputs);
  TensorType result = context.inputs[0];
  const std::size_t axis = axis_of(context.attrs, "dim", result.shape.size());
  for (std::size_t i = 1; i < context.inputs.size(); ++i) {
    Shape shape = context.inputs[i].shape;
    const bool same_rank = shape.size() == result.shape.size();
    const Dim extent = same_rank ? shape[axis] : Dim(0);
    if (same_rank) shape[axis] = result.shape[axis];
    if (shape != result.shape) {
      fail(fmt::format("/inputs/{}", i),
           "operands of cat are {}; expected equal extents except along dim {}",
           describe(context.inputs), axis);
    }
    result.shape[axis] = result.shape[axis] + extent;
  }
  return {result};
}

std::vector<TensorType> infer_renamed(const InferContext& context) { return {context.inputs[0]}; }

EvalTensors evaluate_same(const EvalContext& context, const EvalTensors& inputs) {
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    EvalTensor result = make_result(context, 0);
    result.data = operands[0].data;
    result.integers = operands[0].integers;
    return std::vector<EvalTensor>{std::move(result)};
  });
}

EvalTensors evaluate_view_dtype(const EvalContext& context, const EvalTensors& inputs) {
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    const EvalTensor result = make_result(context, 0);
    // Elements may stand for indices (see storage_elements), so they are not rounded.
    if (operands[0].dtype == result.dtype) return operands;
    HostTensor bytes = to_host(operands[0]);
    bytes.dtype = result.dtype;
    bytes.shape = result.shape;
    return std::vector<EvalTensor>{from_host(bytes)};
  });
}

std::vector<std::size_t> dense_strides(const std::vector<std::int64_t>& shape) {
  std::vector<std::size_t> strides(shape.size(), 1);
  for (std::size_t d = strides.size(); d-- > 1;) {
    strides[d - 1] = strides[d] * static_cast<std::size_t>(shape[d]);
  }
  return strides;
}

/// Calls visit(row-major index, strided offset) for each element.
template <class Visit>
void visit_strided(const std::vector<std::int64_t>& shape, const std::vector<std::size_t>& strides,
                   std::size_t start, const Visit& visit) {
  std::size_t count = 1;
  for (std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
  std::vector<std::int64_t> index(shape.size(), 0);
  std::size_t at = start;
  for (std::size_t i = 0; i < count; ++i) {
    visit(i, at);
    for (std::size_t d = index.size(); d-- > 0;) {
      at += strides[d];
      if (++index[d] < shape[d]) break;
      at -= strides[d] * static_cast<std::size_t>(shape[d]);
      index[d] = 0;
    }
  }
}

EvalTensor strided(EvalTensor result, const EvalTensor& x, const std::vector<std::size_t>& strides,
                   std::size_t start = 0) {
  move_elements(result, x, [&](auto& out, const auto& in) {
    visit_strided(result.shape, strides, start,
                  [&](std::size_t to, std::size_t from) { out[to] = in[from]; });
  });
  return result;
}

EvalTensor take_range(EvalTensor result, const EvalTensor& x, const SliceRange& range,
                      const Bindings& bindings) {
  std::vector<std::size_t> strides = dense_strides(x.shape);
  const std::size_t start =
      static_cast<std::size_t>(range.start.evaluate(bindings)) * strides[range.axis];
  strides[range.axis] *= static_cast<std::size_t>(range.step);
  if (result.shape.size() < strides.size()) {  // a select
    strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(range.axis));
  }
  return strided(std::move(result), x, strides, start);
}

EvalTensors evaluate_permute(const EvalContext& context, const EvalTensors& inputs) {
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    const EvalTensor& x = operands[0];
    const auto order = permutation(context.node.op->name, context.node.attrs, x.shape.size());
    const std::vector<std::size_t> dense = dense_strides(x.shape);
    std::vector<std::size_t> strides;
    strides.reserve(order.size());
    for (std::size_t from : order) strides.push_back(dense[from]);
    return std::vector<EvalTensor>{strided(make_result(context, 0), x, strides)};
  });
}

EvalTensors evaluate_expand(const EvalContext& context, const EvalTensors& inputs) {
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    const EvalTensor& x = operands[0];
    EvalTensor result = make_result(context, 0);
    const std::vector<std::size_t> dense = dense_strides(x.shape);
    const std::size_t lead = result.shape.size() - x.shape.size();
    std::vector<std::size_t> strides(result.shape.size(), 0);
    for (std::size_t d = 0; d < dense.size(); ++d) {
      if (x.shape[d] != 1) strides[lead + d] = dense[d];
    }
    return std::vector<EvalTensor>{strided(std::move(result), x, strides)};
  });
}

EvalTensors evaluate_parts(const EvalContext& context, const EvalTensors& inputs) {
  const Shape& shape = context.graph.type(context.node.inputs[0]).shape;
  const std::vector<SliceRange> ranges =
      part_ranges(context.node.attrs, shape, context.graph.symbols());
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    std::vector<EvalTensor> results;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      results.push_back(
          take_range(make_result(context, i), operands[0], ranges[i], context.bindings));
    }
    return results;
  });
}

EvalTensors evaluate_cat(const EvalContext& context, const EvalTensors& inputs) {
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    EvalTensor result = make_result(context, 0);
    const std::size_t axis = axis_of(context.node.attrs, "dim", result.shape.size());
    const std::vector<std::size_t> strides = dense_strides(result.shape);
    std::size_t start = 0;
    for (const EvalTensor& x : operands) {
      move_elements(result, x, [&](auto& out, const auto& in) {
        visit_strided(x.shape, strides, start,
                      [&](std::size_t from, std::size_t to) { out[to] = in[from]; });
      });
      start += static_cast<std::size_t>(x.shape[axis]) * strides[axis];
    }
    return std::vector<EvalTensor>{std::move(result)};
  });
}

}  // namespace

void add_view_ops(std::vector<OpDef>& ops) {
  const auto add = [&](const char* name, View view, const std::vector<AttrDef>& attrs, auto infer,
                       auto evaluate) {
    ops.push_back({
        .name = name,
        .op_class = OpClass::kView,
        .min_inputs = 1,
        .max_inputs = view == View::kCat ? std::numeric_limits<int>::max() : 1,
        .attrs = attrs,
        .infer = infer,
        .flops = flops_per_element(0),
        .evaluate = evaluate,
        .view = view,
    });
  };
  // The last two are ATen's other names.
  for (const char* name : {"view", "reshape", "_unsafe_view"}) {
    add(name, View::kFlat, {{"shape", AttrType::kShape, {}, false, "One extent may be -1."}},
        infer_view, evaluate_same);
  }
  add("squeeze", View::kFlat,
      {{"dim", AttrType::kInts, {}, true, "Dims that go if they have extent 1; left out: all."}},
      infer_squeeze, evaluate_same);
  add("unsqueeze", View::kFlat,
      {{"dim", AttrType::kInt, {}, false, "Of the result, where it has extent 1."}},
      infer_unsqueeze, evaluate_same);
  add("flatten", View::kFlat,
      {{"start_dim", AttrType::kInt, std::int64_t{0}},
       {"end_dim", AttrType::kInt, std::int64_t{-1}}},
      infer_flatten, evaluate_same);
  add("unflatten", View::kFlat,
      {{"dim", AttrType::kInt, {}},
       {"sizes", AttrType::kShape, {}, false, "The dims in its place. One extent may be -1."}},
      infer_unflatten, evaluate_same);
  add("view_dtype", View::kBytes,
      {{"dtype",
        AttrType::kDType,
        {},
        false,
        "The bytes as elements of this dtype; the last extent follows the element's size. As view: "
        "in place of a shape."}},
      infer_view_dtype, evaluate_view_dtype);
  add(
      "transpose", View::kPermute, {{"dim0", AttrType::kInt, {}}, {"dim1", AttrType::kInt, {}}},
      [](const InferContext& context) { return infer_permute("transpose", context); },
      evaluate_permute);
  add(
      "permute", View::kPermute,
      {{"dims", AttrType::kInts, {}, false, "The operand's dim for each dim of the result."}},
      [](const InferContext& context) { return infer_permute("permute", context); },
      evaluate_permute);
  add("expand", View::kExpand, {{"shape", AttrType::kShape, {}, false, "-1 keeps an extent."}},
      infer_expand, evaluate_expand);
  add("slice", View::kPart,
      {{"dim", AttrType::kInt, std::int64_t{0}},
       {"start", AttrType::kExtent, std::int64_t{0}},
       {"end", AttrType::kExtent, kToTheEnd, false, "Left out, it is the end of the dim."},
       {"step", AttrType::kInt, std::int64_t{1}}},
      infer_slice, evaluate_parts);
  add("narrow", View::kPart,
      {{"dim", AttrType::kInt, {}},
       {"start", AttrType::kExtent, {}},
       {"length", AttrType::kExtent, {}}},
      infer_slice, evaluate_parts);
  add("select", View::kPart, {{"dim", AttrType::kInt, {}}, {"index", AttrType::kExtent, {}}},
      infer_select, evaluate_parts);
  add("split", View::kPart,
      {{"split_size", AttrType::kExtents, {}, false, "Of every part, or of each."},
       {"dim", AttrType::kInt, std::int64_t{0}}},
      infer_split, evaluate_parts);
  add("chunk", View::kPart,
      {{"chunks", AttrType::kInt, {}, false, "How many parts."},
       {"dim", AttrType::kInt, std::int64_t{0}}},
      infer_split, evaluate_parts);
  add("cat", View::kCat, {{"dim", AttrType::kInt, std::int64_t{0}}}, infer_cat, evaluate_cat);
  ops.back().promotes = Promotes::kResultType;
  // The reader replaces its operand by the result that it names.
  add("getitem", View::kFlat,
      {{"index", AttrType::kInt, {}, false, "Which result of the operand's node."}}, infer_renamed,
      evaluate_same);
  // Region markers, for example around a repeated layer; `id` tells regions apart. They rename
  // their operand and are removed by lowering.
  for (const char* marker : {"mark_region_begin", "mark_region_end", "copy_region"}) {
    add(marker, View::kMark, {{"id", AttrType::kInt, {}}}, infer_renamed, evaluate_same);
  }
}

}  // namespace braid
