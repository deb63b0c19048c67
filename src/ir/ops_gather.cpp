#include <fmt/format.h>

#include "ir/fail.h"
#include "ir/groups.h"
#include "ir/numel.h"
#include "ir/ops.h"
#include "ir/views.h"

namespace braid {

void expect_indices(std::string_view op, const InferContext& context, std::size_t operand) {
  const TensorType& indices = context.inputs[operand];
  if (indices.dtype == DType::kI32 || indices.dtype == DType::kI64) return;
  fail(fmt::format("/inputs/{}", operand), "the indices of {} are {}; expected i32 or i64", op,
       indices.str());
}

std::size_t checked_index(const EvalContext& context, std::ptrdiff_t rank, std::int64_t index,
                          std::int64_t extent) {
  if (index >= 0 && index < extent) return static_cast<std::size_t>(index);
  throw_invalid(context.node.name,
                "rank {}: index {} is out of range; expected an integer from 0 to {}", rank, index,
                extent - 1);
}

namespace {

std::vector<TensorType> infer_embedding(const InferContext& context) {
  const TensorType& table = context.inputs[0];
  if (table.shape.size() != 2) {
    fail("/inputs/0", "the table of embedding is {}; expected two dims", table.str());
  }
  expect_indices("embedding", context, 1);
  TensorType result{table.dtype, context.inputs[1].shape};
  result.shape.push_back(table.shape[1]);
  return {result};
}

/// The place of each rank in its instance of the group.
std::vector<std::int64_t> places_in(const Group& group, std::size_t world) {
  std::vector<std::int64_t> places(world);
  for (const auto& members : group_instances(group, static_cast<std::int64_t>(world))) {
    for (std::size_t i = 0; i < members.size(); ++i) {
      places[members[i]] = static_cast<std::int64_t>(i);
    }
  }
  return places;
}

/// With a group, rows that are another rank's are zeros.
EvalTensors evaluate_embedding(const EvalContext& context, const EvalTensors& inputs) {
  std::vector<std::int64_t> places(inputs.size(), 0);
  std::int64_t parts = 1;
  if (context.node.attrs.contains("group")) {
    const Group& group = group_of(context.graph, context.node);
    places = places_in(group, inputs.size());
    parts = group.size;
  }
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    EvalTensor result = make_result(context, 0);
    const std::ptrdiff_t rank = &operands - inputs.data();
    const std::size_t columns = operands[0].shape[1];
    const std::int64_t rows = operands[0].shape[0];
    const std::int64_t first = places[rank] * rows;
    const std::vector<std::int64_t>& indices = operands[1].integers;
    move_elements(result, operands[0], [&](auto& out, const auto& table) {
      for (std::size_t i = 0; i < indices.size(); ++i) {
        static_cast<void>(checked_index(context, rank, indices[i], parts * rows));
        if (indices[i] < first || indices[i] >= first + rows) continue;
        const auto row = static_cast<std::size_t>(indices[i] - first);
        for (std::size_t c = 0; c < columns; ++c) out[i * columns + c] = table[row * columns + c];
      }
    });
    return std::vector<EvalTensor>{std::move(result)};
  });
}

std::vector<TensorType> infer_index_select(const InferContext& context) {
  TensorType result = context.inputs[0];
  const std::size_t axis = axis_of(context.attrs, "dim", result.shape.size());
  expect_indices("index_select", context, 1);
  const TensorType& indices = context.inputs[1];
  if (indices.shape.size() != 1) {
    fail("/inputs/1", "the indices of index_select are {}; expected one dim", indices.str());
  }
  result.shape[axis] = indices.shape[0];
  return {result};
}

EvalTensors evaluate_index_select(const EvalContext& context, const EvalTensors& inputs) {
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    const std::ptrdiff_t rank = &operands - inputs.data();
    const EvalTensor& x = operands[0];
    EvalTensor result = make_result(context, 0);
    const std::size_t axis = axis_of(context.node.attrs, "dim", x.shape.size());
    std::size_t inner = 1;
    for (std::size_t d = axis + 1; d < x.shape.size(); ++d) {
      inner *= static_cast<std::size_t>(x.shape[d]);
    }
    const std::vector<std::int64_t>& indices = operands[1].integers;
    const std::size_t count = indices.size();
    move_elements(result, x, [&](auto& out, const auto& in) {
      for (std::size_t i = 0; i < out.size(); ++i) {
        const std::size_t from =
            checked_index(context, rank, indices[i / inner % count], x.shape[axis]);
        const std::size_t outer = i / inner / count;
        out[i] = in[(outer * static_cast<std::size_t>(x.shape[axis]) + from) * inner + i % inner];
      }
    });
    return std::vector<EvalTensor>{std::move(result)};
  });
}

/// Of `gather`: the result has the index's shape. Along each dim but `dim` it takes the first
/// elements of x.
std::vector<TensorType> infer_gather(const InferContext& context) {
  const TensorType& x = context.inputs[0];
  const TensorType& index = context.inputs[1];
  const std::size_t axis = axis_of(context.attrs, "dim", x.shape.size());
  expect_indices("gather", context, 1);
  bool good = index.shape.size() == x.shape.size();
  for (std::size_t d = 0; good && d < x.shape.size(); ++d) {
    good = d == axis || (x.shape[d] - index.shape[d]).min(context.graph.symbols()) >= 0;
  }
  if (!good) {
    fail("/inputs/1",
         "the indices of gather are {}, its operand {}; expected as many dims, and "
         "but for dim {} no larger extents",
         index.str(), x.str(), axis);
  }
  return {{x.dtype, index.shape}};
}

/// Of `take_along_dim`: extents of 1 are repeated, but for `dim`. Without it, all is one dim.
std::vector<TensorType> infer_take(const InferContext& context) {
  const TensorType& x = context.inputs[0];
  const TensorType& index = context.inputs[1];
  expect_indices("take_along_dim", context, 1);
  if (!context.attrs.contains("dim")) {
    const std::optional<Dim> count = missing_extent(index.shape, {});
    if (!count || !missing_extent(x.shape, {})) {
      fail("/attrs/dim", "{} and {} are no affine extents as one dim; expected a dim", x.str(),
           index.str());
    }
    return {{x.dtype, {*count}}};
  }
  const std::size_t axis = axis_of(context.attrs, "dim", x.shape.size());
  Shape shape = index.shape;
  bool good = shape.size() == x.shape.size();
  for (std::size_t d = 0; good && d < shape.size(); ++d) {
    if (d == axis || shape[d] == x.shape[d]) continue;
    good = shape[d] == Dim(1) || x.shape[d] == Dim(1);
    if (shape[d] == Dim(1)) shape[d] = x.shape[d];
  }
  if (!good) {
    fail("/inputs/1",
         "the indices of take_along_dim are {}, its operand {}; expected as many "
         "dims, and but for dim {} equal extents or 1",
         index.str(), x.str(), axis);
  }
  return {{x.dtype, shape}};
}

/// Of both: an operand's extent of 1 stands for the result's.
EvalTensors evaluate_gather(const EvalContext& context, const EvalTensors& inputs) {
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    const std::ptrdiff_t rank = &operands - inputs.data();
    EvalTensor result = make_result(context, 0);
    std::vector<std::int64_t> from = operands[0].shape;
    std::vector<std::int64_t> of_index = operands[1].shape;
    std::size_t axis = 0;
    if (context.node.attrs.contains("dim")) {
      axis = axis_of(context.node.attrs, "dim", from.size());
    } else {
      from = {static_cast<std::int64_t>(operands[0].size())};
      of_index = {static_cast<std::int64_t>(operands[1].size())};
    }
    const std::vector<std::int64_t>& indices = operands[1].integers;
    std::vector<std::int64_t> at(from.size(), 0);
    move_elements(result, operands[0], [&](auto& out, const auto& in) {
      for (auto& element : out) {
        std::size_t place = 0;  // of the index
        for (std::size_t d = 0; d < at.size(); ++d) {
          place = place * static_cast<std::size_t>(of_index[d]) +
                  (of_index[d] == 1 ? 0 : static_cast<std::size_t>(at[d]));
        }
        const std::size_t taken = checked_index(context, rank, indices[place], from[axis]);
        place = 0;
        for (std::size_t d = 0; d < at.size(); ++d) {
          const std::size_t own = from[d] == 1 ? 0 : static_cast<std::size_t>(at[d]);
          place = place * static_cast<std::size_t>(from[d]) + (d == axis ? taken : own);
        }
        element = in[place];
        for (std::size_t d = at.size(); d-- > 0;) {
          if (++at[d] < result.shape[d]) break;
          at[d] = 0;
        }
      }
    });
    return std::vector<EvalTensor>{std::move(result)};
  });
}

/// cos and sin must broadcast to the operand's shape with half the last extent.
std::vector<TensorType> infer_rotary(const InferContext& context) {
  expect_float("rotary_embedding", context.inputs);
  expect_same_dtype("rotary_embedding", context.inputs);
  const TensorType& x = context.inputs[0];
  const auto half = x.shape.empty() ? std::optional<Dim>()
                                    : x.shape.back().divide_exactly(2, context.graph.symbols());
  if (!half) {
    fail("/inputs/0", "the operand of rotary_embedding is {}; expected an even last extent",
         x.str());
  }
  for (std::size_t i = 1; i < 3; ++i) {
    const Shape& shape = context.inputs[i].shape;
    bool good = !shape.empty() && shape.size() <= x.shape.size() && shape.back() == *half;
    for (std::size_t d = 2; good && d <= shape.size(); ++d) {
      const Dim& extent = shape[shape.size() - d];
      good = extent == Dim(1) || extent == x.shape[x.shape.size() - d];
    }
    if (good) continue;
    Shape expected = x.shape;
    expected.back() = *half;
    fail(fmt::format("/inputs/{}", i),
         "the {} of rotary_embedding is {}; expected {} or what broadcasts to it",
         i == 1 ? "cosine" : "sine", context.inputs[i].str(), TensorType{x.dtype, expected}.str());
  }
  return {x};
}

/// Pairs are (i, i + half), as in GPT-NeoX and Llama; with `interleaved`, (2i, 2i + 1), as in
/// GPT-J.
EvalTensors evaluate_rotary(const EvalContext& context, const EvalTensors& inputs) {
  const bool interleaved = *context.node.attr<bool>("interleaved");
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    const EvalTensor& x = operands[0];
    EvalTensor result = make_result(context, 0);
    const std::size_t columns = x.shape.back();
    const std::size_t half = columns / 2;
    std::vector<std::int64_t> index(x.shape.size(), 0);
    for (std::size_t row = 0; row < x.data.size(); row += columns) {
      // The matching row of a broadcast table.
      const auto table_row = [&](const EvalTensor& table) {
        std::size_t at = 0;
        const std::size_t lead = x.shape.size() - table.shape.size();
        for (std::size_t d = 0; d + 1 < table.shape.size(); ++d) {
          at = at * static_cast<std::size_t>(table.shape[d]) +
               (table.shape[d] == 1 ? 0 : static_cast<std::size_t>(index[lead + d]));
        }
        return table.data.data() + at * half;
      };
      const double* cos = table_row(operands[1]);
      const double* sin = table_row(operands[2]);
      for (std::size_t i = 0; i < half; ++i) {
        const std::size_t a = row + (interleaved ? 2 * i : i);
        const std::size_t b = interleaved ? a + 1 : a + half;
        result.data[a] = rotated(x.data[a], x.data[b], cos[i], sin[i], true);
        result.data[b] = rotated(x.data[b], x.data[a], cos[i], sin[i], false);
      }
      for (std::size_t d = index.size() - 1; d-- > 0;) {
        if (++index[d] < x.shape[d]) break;
        index[d] = 0;
      }
    }
    return std::vector<EvalTensor>{std::move(result)};
  });
}

}  // namespace

void add_gather_ops(std::vector<OpDef>& ops) {
  ops.push_back({
      .name = "embedding",
      .op_class = OpClass::kGather,
      .min_inputs = 2,
      .max_inputs = 2,
      .attrs = {{"group",
                 AttrType::kGroup,
                 {},
                 true,
                 "The table is this rank's part of the rows; other rows are zeros."}},
      .infer = infer_embedding,
      .flops = flops_per_element(0),
      .evaluate = evaluate_embedding,
      .takes_indices = true,
  });
  ops.push_back({
      .name = "index_select",
      .op_class = OpClass::kGather,
      .min_inputs = 2,
      .max_inputs = 2,
      .attrs = {{"dim", AttrType::kInt, {}}},
      .infer = infer_index_select,
      .flops = flops_per_element(0),
      .evaluate = evaluate_index_select,
      .takes_indices = true,
  });
  ops.push_back({
      .name = "gather",
      .op_class = OpClass::kGather,
      .min_inputs = 2,
      .max_inputs = 2,
      .attrs = {{"dim", AttrType::kInt, {}}},
      .infer = infer_gather,
      .flops = flops_per_element(0),
      .evaluate = evaluate_gather,
      .takes_indices = true,
  });
  // A gather of expanded operands, which canonicalize writes.
  ops.push_back({
      .name = "take_along_dim",
      .op_class = OpClass::kOpaque,
      .min_inputs = 2,
      .max_inputs = 2,
      .attrs = {{"dim", AttrType::kInt, {}, true, "Left out, both operands are one dim."}},
      .infer = infer_take,
      .flops = flops_per_element(0),
      .evaluate = evaluate_gather,
      .takes_indices = true,
  });
  ops.push_back({
      .name = "rotary_embedding",
      .op_class = OpClass::kGather,
      .min_inputs = 3,
      .max_inputs = 3,
      .attrs = {{"interleaved", AttrType::kBool, false, false,
                 "Pairs are neighbours, not halves."}},
      .infer = infer_rotary,
      .flops = flops_per_element(3),
      .evaluate = evaluate_rotary,
  });
}

}  // namespace braid
