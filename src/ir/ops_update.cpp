#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ir/fail.h"
#include "ir/mutation.h"
#include "ir/numel.h"
#include "ir/ops.h"
#include "ir/views.h"

// Ops that replace some elements of their first operand, or add to them: index_copy, index_add,
// scatter, scatter_add, index_put and slice_scatter, and the ones that do so in place (index_copy_,
// append_kv, ...).
namespace braid {
namespace {

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

/// Of index_copy and index_add.
std::vector<TensorType> infer_along_dim(std::string_view op, const InferContext& context) {
  Shape part = context.inputs[0].shape;
  const std::size_t axis = axis_of(context.attrs, "dim", part.size());
  part[axis] = infer_indices(op, context, 1).shape[0];
  expect_part(op, context, 2, std::move(part));
  return {context.inputs[0]};
}

/// Of scatter and scatter_add.
std::vector<TensorType> infer_scatter(std::string_view op, const InferContext& context) {
  const Shape& whole = context.inputs[0].shape;
  const Shape& part = context.inputs[1].shape;
  const std::size_t axis = axis_of(context.attrs, "dim", whole.size());
  expect_indices(op, context, 1);
  bool good = part.size() == whole.size();
  for (std::size_t d = 0; good && d < whole.size(); ++d) {
    good = d == axis || (whole[d] - part[d]).min(context.graph.symbols()) >= 0;
  }
  if (!good) {
    fail("/inputs/1",
         "the indices of {} are {}, its operand {}; expected as many dims, and but for dim {} no "
         "larger extents",
         op, context.inputs[1].str(), context.inputs[0].str(), axis);
  }
  const bool has_value = context.attrs.contains("value");
  if (has_value == (context.inputs.size() > 2)) {
    fail("/attrs/value", "{} has {} of a third operand and a value; expected one", op,
         has_value ? "both" : "neither");
  }
  if (!has_value) {
    expect_part(op, context, 2, part);
  } else {
    expect_held(context.inputs[0].dtype, context.attrs, "value");
  }
  return {context.inputs[0]};
}

/// The last operand has the dims of the indices, and then those of x that they do not name.
std::vector<TensorType> infer_index_put(const InferContext& context) {
  const TensorType& x = context.inputs[0];
  const std::size_t count = context.inputs.size() - 2;
  if (x.shape.size() < count) {
    fail("/inputs/0",
         "index_put has {} tensors of indices for {}; expected one for each of its "
         "first dims",
         count, x.str());
  }
  for (std::size_t i = 1; i <= count; ++i) {
    expect_indices("index_put", context, i);
    if (context.inputs[i].shape == context.inputs[1].shape) continue;
    fail(fmt::format("/inputs/{}", i), "the indices of index_put are {} and {}; expected one shape",
         context.inputs[1].str(), context.inputs[i].str());
  }
  Shape part = context.inputs[1].shape;
  if (!missing_extent(part, {})) {
    fail("/inputs/1", "the indices of index_put are {}, whose number is no affine extent",
         context.inputs[1].str());
  }
  part.insert(part.end(), x.shape.begin() + static_cast<std::ptrdiff_t>(count), x.shape.end());
  expect_part("index_put", context, count + 1, std::move(part));
  return {x};
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

/// Where in the first operand elements of the last one go.
class Targets {
 public:
  Targets(const EvalContext& context, const std::vector<EvalTensor>& operands, std::ptrdiff_t rank)
      : context_(context),
        operands_(operands),
        rank_(rank),
        form_(update_form(context.node)),
        dim_(source_dim(context.graph, context.node)),
        // A scatter of one value has no other operand.
        tensors_(form_ == UpdateForm::kFirstDims ? operands.size() - 2 : 1),
        part_(form_ == UpdateForm::kEach ? operands[1].shape : operands.back().shape) {}

  /// How many elements are put.
  [[nodiscard]] std::size_t count() const {
    std::size_t count = 1;
    for (const std::int64_t extent : part_) count *= static_cast<std::size_t>(extent);
    return count;
  }

  /// The place of an element; `name` receives the indices that say so.
  std::size_t place(std::size_t element, std::string& name) const {
    std::vector<std::int64_t> at(part_.size());
    for (std::size_t d = at.size(), rest = element; d-- > 0;) {
      at[d] = static_cast<std::int64_t>(rest) % part_[d];
      rest /= static_cast<std::size_t>(part_[d]);
    }
    std::vector<std::int64_t> to = at;
    if (form_ == UpdateForm::kFirstDims) {
      const std::vector<std::int64_t>& indices = operands_[1].shape;
      std::size_t which = 0;
      for (std::size_t d = 0; d < indices.size(); ++d) {
        which = which * static_cast<std::size_t>(indices[d]) + static_cast<std::size_t>(at[d]);
      }
      to.erase(to.begin(), to.begin() + std::ssize(indices));
      for (std::size_t i = tensors_; i > 0; --i) {
        to.insert(to.begin(), counted(i, operands_[i].integers[which]));
      }
    } else {
      const std::size_t which =
          form_ == UpdateForm::kEach ? element : static_cast<std::size_t>(at[dim_]);
      to[dim_] = static_cast<std::int64_t>(
          checked_index(context_, rank_, operands_[1].integers[which], operands_[0].shape[dim_]));
    }
    name = fmt::format("{}",
                       fmt::join(to.begin() + static_cast<std::ptrdiff_t>(dim_),
                                 to.begin() + static_cast<std::ptrdiff_t>(dim_ + tensors_), ", "));
    std::size_t place = 0;
    for (std::size_t d = 0; d < to.size(); ++d) {
      place =
          place * static_cast<std::size_t>(operands_[0].shape[d]) + static_cast<std::size_t>(to[d]);
    }
    return place;
  }

 private:
  /// Negative indices count from the end.
  [[nodiscard]] std::int64_t counted(std::size_t operand, std::int64_t index) const {
    const std::int64_t extent = operands_[0].shape[operand - 1];
    if (index >= -extent && index < extent) return index < 0 ? index + extent : index;
    throw_invalid(fmt::format("{}/inputs/{}", context_.node.name, operand),
                  "rank {}: index {} is out of range; expected an integer from 0 to {}", rank_,
                  index, extent - 1);
  }

  const EvalContext& context_;
  const std::vector<EvalTensor>& operands_;
  std::ptrdiff_t rank_;
  UpdateForm form_;
  std::size_t dim_, tensors_;
  std::vector<std::int64_t> part_;
};

EvalTensors evaluate_update(const EvalContext& context, const EvalTensors& inputs) {
  const Node& node = context.node;
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    EvalTensor result = operands[0];
    const std::ptrdiff_t rank = &operands - inputs.data();
    const Targets targets(context, operands, rank);
    std::vector<bool> replaced(result.size(), false);
    std::string name;
    for (std::size_t i = 0; i < targets.count(); ++i) {
      const std::size_t place = targets.place(i, name);
      if (adds_up(node)) {
        move_elements(result, operands.back(), [&](auto& out, const auto& in) {
          if constexpr (std::is_same_v<std::decay_t<decltype(out[0])>, double>) {
            out[place] += in[i];
          } else {
            out[place] = (Int{out[place]} + Int{in[i]}).value;
          }
        });
        continue;
      }
      if (replaced[place]) {
        throw_invalid(node.name,
                      "rank {}: index {} is there twice; expected each at most once, for either of "
                      "its values could stay",
                      rank, name);
      }
      replaced[place] = true;
      if (const auto value = node.attrs.find("value"); value == node.attrs.end()) {
        move_elements(result, operands.back(),
                      [&](auto& out, const auto& in) { out[place] = in[i]; });
      } else if (is_float(result.dtype)) {
        result.data[place] = number_like(0.0, value->second);
      } else {
        result.integers[place] = integer_of(result.dtype, value->second);
      }
    }
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
/// Rows have its dtype, or the cache has 8-bit floats, and two scales follow the slots.
std::vector<TensorType> infer_append(const InferContext& context) {
  const Shape slots = infer_indices(kAppend, context, 4).shape;
  const bool is_scaled = context.inputs.size() > 5;
  if (is_scaled && context.inputs.size() < 7) {
    fail("/inputs/5", "append_kv has one scale; expected one of keys and one of values, or none");
  }
  for (std::size_t i = 5; i < context.inputs.size(); ++i) expect_scale(kAppend, context, i);
  for (const std::size_t i : {0, 1}) {
    const TensorType& cache = context.inputs[i];
    const TensorType& rows = context.inputs[2 + i];
    const std::size_t dims = rows.shape.size();
    const bool has_dtype =
        is_scaled ? is_float8(cache.dtype) && is_float(rows.dtype) && !is_float8(rows.dtype)
                  : cache.dtype == rows.dtype;
    const bool fits = dims > 1 && cache.shape.size() >= dims && has_dtype &&
                      rows.shape[0] == slots[0] &&
                      std::equal(rows.shape.begin() + 1, rows.shape.end(),
                                 cache.shape.end() - static_cast<std::ptrdiff_t>(dims) + 1);
    if (fits) continue;
    fail(fmt::format("/inputs/{}", 2 + i),
         "append_kv writes {} into {}; expected {} rows that have {} and its last dims", rows.str(),
         cache.str(), slots[0].str(),
         is_scaled ? "f32, f16 or bf16 where it has 8-bit floats," : "its dtype");
  }
  return {context.inputs[0], context.inputs[1]};
}

EvalTensors evaluate_append(const EvalContext& context, const EvalTensors& inputs) {
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    std::vector<EvalTensor> results{operands[0], operands[1]};
    for (const std::size_t i : {0, 1}) {
      const std::size_t row = elements_behind(operands[2 + i], 0);
      const std::size_t slots = row == 0 ? 0 : results[i].size() / row;
      EvalTensor rows = operands[2 + i];
      if (operands.size() > 5) {
        const double scale = operands[5 + i].data[0];
        rows.dtype = results[i].dtype;
        for (double& x : rows.data) {
          x = round_to(rows.dtype, round_to(DType::kF32, x / scale));
        }
      }
      put_parts(results[i], rows, row, slots,
                places_of(context, &operands - inputs.data(), operands[4].integers,
                          static_cast<std::int64_t>(slots)));
    }
    return results;
  });
}

}  // namespace

void add_update_ops(std::vector<OpDef>& ops) {
  const AttrDef dim{"dim", AttrType::kInt, std::int64_t{0}};
  const OpDef along_dim{
      .name = {},
      .op_class = OpClass::kUpdate,
      .min_inputs = 3,
      .max_inputs = 3,
      .attrs = {dim},
      .infer = {},
      .flops = flops_per_element(0),
      .evaluate = evaluate_update,
      .takes_indices = true,
  };
  const auto add = [&](const std::string& name, OpDef op) {
    op.name = name;
    ops.push_back(op);
    op.name = name + "_";
    op.op_class = OpClass::kMutation;
    op.mutates = Mutates::kFirst;
    ops.push_back(std::move(op));
  };
  for (const char* name : {"index_copy", "index_add"}) {
    OpDef op = along_dim;
    op.infer = [name](const InferContext& context) { return infer_along_dim(name, context); };
    add(name, std::move(op));
  }
  for (const char* name : {"scatter", "scatter_add"}) {
    OpDef op = along_dim;
    op.infer = [name](const InferContext& context) { return infer_scatter(name, context); };
    op.attrs = {{"dim", AttrType::kInt, {}}};
    if (std::string_view(name) == "scatter") {
      op.min_inputs = 2;
      op.attrs.push_back({"value", AttrType::kNumber, {}, true, "In place of a third operand."});
    }
    add(name, std::move(op));
  }
  OpDef put = along_dim;
  put.max_inputs = 4;
  put.attrs = {{"accumulate", AttrType::kBool, false, false, "Adds to what is there."}};
  put.infer = infer_index_put;
  put.checked = {1, 2};
  add("index_put", std::move(put));
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
      .max_inputs = 7,
      .attrs = {},
      .infer = infer_append,
      .flops = flops_per_element(0),
      .evaluate = evaluate_append,
      .mutates = Mutates::kFirstTwo,
  });
}

}  // namespace braid
