#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "ir/groups.h"
#include "ir/numel.h"
#include "ir/ops.h"
#include "ir/views.h"

// The ops that fully sharded data parallelism leaves in a graph, by their names in PyTorch.
//
//   resize_storage_bytes_(x) {size}       frees x's memory (0), or gives it memory again, whose
//                                         contents nobody knows
//   fsdp.copy_(x, from)                   copy_ into an unsharded parameter (ops_pointwise.cpp)
//   fsdp.all_gather_copy_in(x..., output) puts the flattened operands, one after the other, at this
//                                         rank's place in the gather's output buffer: that part,
//                                         and the buffer
//   fsdp.split_with_sizes_copy(x)         the parts of x, copied
//   fsdp.chunk_cat(x...)                  every x in num_chunks chunks along dim; chunk i of all of
//                                         them, flattened, is row i
namespace braid {
namespace {

using Sizes = std::vector<std::int64_t>;

Dim numel_of(const TensorType& type, std::size_t operand) {
  const std::optional<Dim> numel = missing_extent(type.shape, {});
  if (!numel) {
    fail(fmt::format("/inputs/{}", operand),
         "{} has a product of symbols elements; expected an affine number", type.str());
  }
  return *numel;
}

std::vector<TensorType> infer_resize(const InferContext& context) {
  const TensorType& x = context.inputs[0];
  std::int64_t bytes = dtype_size(x.dtype);
  for (const Dim& dim : x.shape) bytes *= dim.max(context.graph.symbols());
  const std::int64_t size = get_attr<std::int64_t>(context.attrs, "size");
  if (size != 0 && size < bytes) {
    fail("/attrs/size", "{} bytes; expected 0, or at least the {} of {}", size, bytes, x.str());
  }
  return {x};
}

/// Freed memory reads as NaN, or 0 where the dtype has none, so that stale reads show.
EvalTensors evaluate_resize(const EvalContext& context, const EvalTensors& inputs) {
  const bool freed = *context.node.attr<std::int64_t>("size") == 0;
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    EvalTensor result = operands[0];
    if (freed) {
      result.data.assign(result.data.size(), std::numeric_limits<double>::quiet_NaN());
      result.integers.assign(result.integers.size(), 0);
    }
    return std::vector<EvalTensor>{std::move(result)};
  });
}

std::vector<TensorType> infer_copy_in(const InferContext& context) {
  expect_same_dtype("fsdp.all_gather_copy_in", context.inputs);
  const std::size_t last = context.inputs.size() - 1;
  Dim numel(0);
  for (std::size_t i = 0; i < last; ++i) numel = numel + numel_of(context.inputs[i], i);
  const std::int64_t ranks = group_of(context.graph, context.attrs).size;
  const TensorType& output = context.inputs[last];
  const TensorType expected{output.dtype, {numel * ranks}};
  if (output != expected) {
    fail(fmt::format("/inputs/{}", last),
         "the output buffer is {}; expected {}: the {} elements of the operands from each of {} "
         "ranks",
         output.str(), expected.str(), numel.str(), ranks);
  }
  return {{output.dtype, {numel}}, output};
}

EvalTensors evaluate_copy_in(const EvalContext& context, const EvalTensors& inputs) {
  const Group& group = group_of(context.graph, context.node);
  EvalTensors outputs(inputs.size());
  for (const auto& members : group_instances(group, static_cast<std::int64_t>(inputs.size()))) {
    for (std::size_t me = 0; me < members.size(); ++me) {
      const std::size_t rank = members[me];
      EvalTensor part = make_result(context, 0);
      EvalTensor whole = inputs[rank].back();
      std::size_t at = 0;
      for (std::size_t i = 0; i + 1 < inputs[rank].size(); ++i) {
        move_elements(part, inputs[rank][i], [&](auto& out, const auto& in) {
          std::copy(in.begin(), in.end(), out.begin() + at);
          at += in.size();
        });
      }
      move_elements(whole, part, [&](auto& out, const auto& in) {
        std::copy(in.begin(), in.end(), out.begin() + me * in.size());
      });
      outputs[rank] = {std::move(part), std::move(whole)};
    }
  }
  return outputs;
}

std::vector<TensorType> infer_split_copy(const InferContext& context) {
  const TensorType& x = context.inputs[0];
  const std::size_t axis = axis_of(context.attrs, "dim", x.shape.size());
  const auto& sizes = get_attr<Sizes>(context.attrs, "split_sizes");
  Dim sum(0);
  std::vector<TensorType> results;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 1) fail("/attrs/split_sizes", "size {} is {}; expected at least 1", i, sizes[i]);
    sum = sum + Dim(sizes[i]);
    results.push_back(x);
    results.back().shape[axis] = sizes[i];
  }
  if (sum != x.shape[axis]) {
    fail("/attrs/split_sizes", "the sizes sum to {}; expected {}, the extent of dim {} of {}",
         sum.str(), x.shape[axis].str(), axis, x.str());
  }
  return results;
}

/// The number of rows of a tensor seen as a matrix whose rows are the dims before `axis`.
std::size_t rows_before(const Sizes& shape, std::size_t axis) {
  return std::accumulate(shape.begin(), shape.begin() + axis, std::size_t{1},
                         [](std::size_t product, std::int64_t extent) {
                           return product * static_cast<std::size_t>(extent);
                         });
}

/// Moves columns: those of `whole` are the parts' columns side by side, in each of `rows` rows.
template <class Move>
void side_by_side(EvalTensor& whole, std::vector<EvalTensor>& parts, std::size_t rows,
                  const Move& move) {
  const std::size_t width = whole.size() / rows;
  for (std::size_t row = 0; row < rows; ++row) {
    std::size_t at = row * width;
    for (EvalTensor& part : parts) {
      const std::size_t columns = part.size() / rows;
      move_elements(whole, part, [&](auto& all, auto& own) {
        for (std::size_t c = 0; c < columns; ++c) move(all[at++], own[row * columns + c]);
      });
    }
  }
}

EvalTensors evaluate_split(const EvalContext& context, const EvalTensors& inputs) {
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    EvalTensor x = operands[0];
    std::vector<EvalTensor> parts;
    for (std::size_t i = 0; i < context.node.outputs.size(); ++i) {
      parts.push_back(make_result(context, i));
    }
    const std::size_t axis = axis_of(context.node.attrs, "dim", x.shape.size());
    side_by_side(x, parts, rows_before(x.shape, axis),
                 [](const auto& whole, auto& part) { part = whole; });
    return parts;
  });
}

std::vector<TensorType> infer_chunk_cat(const InferContext& context) {
  expect_same_dtype("fsdp.chunk_cat", context.inputs);
  const Shape& first = context.inputs[0].shape;
  const std::size_t axis = axis_of(context.attrs, "dim", first.size());
  const std::int64_t chunks = get_attr<std::int64_t>(context.attrs, "num_chunks");
  if (chunks < 1) fail("/attrs/num_chunks", "{}; expected at least 1", chunks);
  const std::ptrdiff_t cut = axis;
  Dim width(0);
  for (std::size_t i = 0; i < context.inputs.size(); ++i) {
    const TensorType& x = context.inputs[i];
    const std::string place = fmt::format("/inputs/{}", i);
    if (x.shape.size() <= axis ||
        !std::equal(first.begin(), first.begin() + cut, x.shape.begin())) {
      fail(place,
           "operands of fsdp.chunk_cat are {}; expected more than {} dims, and equal extents "
           "before dim {}",
           describe(context.inputs), axis, axis);
    }
    TensorType chunk{x.dtype, Shape(x.shape.begin() + cut, x.shape.end())};
    const std::optional<Dim> extent =
        chunk.shape[0].divide_exactly(chunks, context.graph.symbols());
    if (!extent) {
      fail(place,
           "dim {} of {} does not divide into {} chunks; expected a multiple (nothing is padded)",
           axis, x.str(), chunks);
    }
    chunk.shape[0] = *extent;
    width = width + numel_of(chunk, i);
  }
  TensorType result{context.inputs[0].dtype, Shape(first.begin(), first.begin() + cut)};
  result.shape.insert(result.shape.end(), {Dim(chunks), width});
  return {result};
}

EvalTensors evaluate_chunk_cat(const EvalContext& context, const EvalTensors& inputs) {
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    EvalTensor result = make_result(context, 0);
    std::vector<EvalTensor> parts = operands;
    side_by_side(result, parts, rows_before(result.shape, result.shape.size() - 1),
                 [](auto& whole, const auto& part) { whole = part; });
    return std::vector<EvalTensor>{std::move(result)};
  });
}

}  // namespace

void add_fsdp_ops(std::vector<OpDef>& ops) {
  constexpr int kMany = std::numeric_limits<int>::max();
  const AttrDef dim = {"dim", AttrType::kInt, std::int64_t{0}};
  const auto add = [&](const char* name, OpClass op_class, int min_inputs, int max_inputs,
                       const std::vector<AttrDef>& attrs, auto infer, auto evaluate,
                       Mutates mutates) {
    ops.push_back({
        .name = name,
        .op_class = op_class,
        .min_inputs = min_inputs,
        .max_inputs = max_inputs,
        .attrs = attrs,
        .infer = infer,
        .flops = [](auto, auto, const Bindings&) { return 0.0; },
        .evaluate = evaluate,
        .mutates = mutates,
    });
  };
  add("resize_storage_bytes_", OpClass::kMutation, 1, 1,
      {{"size", AttrType::kInt, {}, false, "Bytes; 0 frees the operand's memory."}}, infer_resize,
      evaluate_resize, Mutates::kFirst);
  add("fsdp.all_gather_copy_in", OpClass::kMutation, 2, kMany, {{"group", AttrType::kGroup, {}}},
      infer_copy_in, evaluate_copy_in, Mutates::kLast);
  add("fsdp.split_with_sizes_copy", OpClass::kOpaque, 1, 1,
      {{"split_sizes", AttrType::kInts, {}, false, "Of each part."}, dim}, infer_split_copy,
      evaluate_split, Mutates::kNothing);
  add("fsdp.chunk_cat", OpClass::kOpaque, 1, kMany, {dim, {"num_chunks", AttrType::kInt, {}}},
      infer_chunk_cat, evaluate_chunk_cat, Mutates::kNothing);
}

}  // namespace braid
