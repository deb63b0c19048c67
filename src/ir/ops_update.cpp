#include <fmt/format.h>

#include <algorithm>

#include "ir/fail.h"
#include "ir/ops.h"
#include "ir/views.h"

// Ops that replace some elements of their first operand: index_copy and slice_scatter, and the ones
// that do so in place (index_copy_, append_kv).
namespace braid {
namespace {

constexpr std::string_view kIndexCopy = "index_copy";
constexpr std::string_view kSliceScatter = "slice_scatter";
constexpr std::string_view kAppend = "append_kv";

/// Throws when operand `operand` is not of `shape` and the first operand's dtype.
void expect_part(std::string_view op, const InferContext& context, std::size_t operand,
                 Shape shape) {
  const TensorType expected{context.inputs[0].dtype, std::move(shape)};
  if (context.inputs[operand] == expected) return;
  fail(fmt::format("/inputs/{}", operand), "{} takes {} for parts of {}; expected {}", op,
       context.inputs[operand].str(), context.inputs[0].str(), expected.str());
}

/// The indices of an op: i32 or i64, one dim.
const TensorType& infer_indices(std::string_view op, const InferContext& context,
                                std::size_t operand) {
  expect_indices(op, context, operand);
  const TensorType& indices = context.inputs[operand];
  if (indices.shape.size() != 1) {
    fail(fmt::format("/inputs/{}", operand), "the indices of {} are {}; expected one dim", op,
         indices.str());
  }
  return indices;
}

std::vector<TensorType> infer_index_copy(const InferContext& context) {
  Shape part = context.inputs[0].shape;
  const std::size_t axis = axis_of(context.attrs, "dim", part.size());
  part[axis] = infer_indices(kIndexCopy, context, 1).shape[0];
  expect_part(kIndexCopy, context, 2, std::move(part));
  return {context.inputs[0]};
}

/// Puts the parts of `from`, each of `inner` elements, at `places` of a dim of `to` with `extent`
/// places.
void put_parts(EvalTensor& to, const EvalTensor& from, std::size_t inner, std::size_t extent,
               const std::vector<std::size_t>& places) {
  if (places.empty()) return;
  move_elements(to, from, [&](auto& out, const auto& in) {
    for (std::size_t i = 0; i < in.size(); ++i) {
      const std::size_t outer = i / inner / places.size();
      out[(outer * extent + places[i / inner % places.size()]) * inner + i % inner] = in[i];
    }
  });
}

std::size_t elements_behind(const EvalTensor& x, std::size_t axis) {
  std::size_t inner = 1;
  for (std::size_t d = axis + 1; d < x.shape.size(); ++d) {
    inner *= static_cast<std::size_t>(x.shape[d]);
  }
  return inner;
}

/// The places that a rank's indices name, each once: which of two values a place gets is open.
std::vector<std::size_t> places_of(const EvalContext& context, std::ptrdiff_t rank,
                                   const std::vector<std::int64_t>& indices, std::int64_t extent) {
  std::vector<std::size_t> places;
  places.reserve(indices.size());
  for (const std::int64_t index : indices) {
    places.push_back(checked_index(context, rank, index, extent));
  }
  std::vector<std::size_t> sorted = places;
  std::ranges::sort(sorted);
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end()) {
    throw_invalid(context.node.name,
                  "rank {}: index {} is there twice; expected each at most once, for either of its "
                  "values could stay",
                  rank, *twice);
  }
  return places;
}

EvalTensors evaluate_index_copy(const EvalContext& context, const EvalTensors& inputs) {
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    EvalTensor result = operands[0];
    const std::size_t axis = axis_of(context.node.attrs, "dim", result.shape.size());
    const std::int64_t extent = result.shape[axis];
    put_parts(result, operands[2], elements_behind(result, axis), static_cast<std::size_t>(extent),
              places_of(context, &operands - inputs.data(), operands[1].integers, extent));
    return std::vector<EvalTensor>{std::move(result)};
  });
}

std::vector<TensorType> infer_slice_scatter(const InferContext& context) {
  Shape part = context.inputs[0].shape;
  const SliceRange range = slice_range(context.attrs, part, context.graph.symbols());
  part[range.axis] = range.length;
  expect_part(kSliceScatter, context, 1, std::move(part));
  return {context.inputs[0]};
}

EvalTensors evaluate_slice_scatter(const EvalContext& context, const EvalTensors& inputs) {
  const Node& node = context.node;
  const SliceRange range =
      slice_range(node.attrs, context.graph.type(node.inputs[0]).shape, context.graph.symbols());
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    EvalTensor result = operands[0];
    std::vector<std::size_t> places(static_cast<std::size_t>(operands[1].shape[range.axis]));
    for (std::size_t i = 0; i < places.size(); ++i) {
      places[i] = static_cast<std::size_t>(range.start.evaluate(context.bindings)) +
                  i * static_cast<std::size_t>(range.step);
    }
    put_parts(result, operands[1], elements_behind(result, range.axis),
              static_cast<std::size_t>(result.shape[range.axis]), places);
    return std::vector<EvalTensor>{std::move(result)};
  });
}

/// The last dims of a cache are those of a row of keys or values; those before them are its slots.
std::vector<TensorType> infer_append(const InferContext& context) {
  const Shape slots = infer_indices(kAppend, context, 4).shape;
  for (const std::size_t i : {0, 1}) {
    const TensorType& cache = context.inputs[i];
    const TensorType& rows = context.inputs[2 + i];
    const std::size_t dims = rows.shape.size();
    const bool fits = dims > 1 && cache.shape.size() >= dims && cache.dtype == rows.dtype &&
                      rows.shape[0] == slots[0] &&
                      std::equal(rows.shape.begin() + 1, rows.shape.end(),
                                 cache.shape.end() - static_cast<std::ptrdiff_t>(dims) + 1);
    if (fits) continue;
    fail(fmt::format("/inputs/{}", 2 + i),
         "append_kv writes {} into {}; expected {} rows that have its dtype and its last dims",
         rows.str(), cache.str(), slots[0].str());
  }
  return {context.inputs[0], context.inputs[1]};
}

EvalTensors evaluate_append(const EvalContext& context, const EvalTensors& inputs) {
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    std::vector<EvalTensor> results{operands[0], operands[1]};
    for (const std::size_t i : {0, 1}) {
      const std::size_t row = elements_behind(operands[2 + i], 0);
      const std::size_t slots = row == 0 ? 0 : results[i].size() / row;
      put_parts(results[i], operands[2 + i], row, slots,
                places_of(context, &operands - inputs.data(), operands[4].integers,
                          static_cast<std::int64_t>(slots)));
    }
    return results;
  });
}

}  // namespace

void add_update_ops(std::vector<OpDef>& ops) {
  for (const bool in_place : {false, true}) {
    ops.push_back({
        .name = in_place ? "index_copy_" : "index_copy",
        .op_class = in_place ? OpClass::kMutation : OpClass::kUpdate,
        .min_inputs = 3,
        .max_inputs = 3,
        .attrs = {{"dim", AttrType::kInt, std::int64_t{0}}},
        .infer = infer_index_copy,
        .flops = flops_per_element(0),
        .evaluate = evaluate_index_copy,
        .mutates = in_place ? Mutates::kFirst : Mutates::kNothing,
        .takes_indices = true,
    });
  }
  ops.push_back({
      .name = std::string(kSliceScatter),
      .op_class = OpClass::kUpdate,
      .min_inputs = 2,
      .max_inputs = 2,
      .attrs = {{"dim", AttrType::kInt, std::int64_t{0}},
                {"start", AttrType::kExtent, std::int64_t{0}},
                {"end", AttrType::kExtent, kToTheEnd, false, "Left out, it is the end of the dim."},
                {"step", AttrType::kInt, std::int64_t{1}}},
      .infer = infer_slice_scatter,
      .flops = flops_per_element(0),
      .evaluate = evaluate_slice_scatter,
  });
  ops.push_back({
      .name = std::string(kAppend),
      .op_class = OpClass::kMutation,
      .min_inputs = 5,
      .max_inputs = 5,
      .attrs = {},
      .infer = infer_append,
      .flops = flops_per_element(0),
      .evaluate = evaluate_append,
      .mutates = Mutates::kFirstTwo,
  });
}

}  // namespace braid
