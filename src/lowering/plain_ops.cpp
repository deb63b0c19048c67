#include "lowering/plain_ops.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/body/analysis.h"
#include "codegen/work/attention_tile.h"
#include "ir/attributes.h"
#include "ir/groups.h"
#include "ir/numel.h"
#include "ir/op_registry.h"
#include "ir/views.h"
#include "lowering/plain_writer.h"

namespace braid {
namespace {

Attrs slice_of(const SliceRange& range) {
  return {{"dim", static_cast<std::int64_t>(range.axis)},
          {"start", as_bound(range.start)},
          {"end", as_bound(range.start + range.length)}};
}

void narrow(Writer& w) { w.finish("slice", {w.operand(0)}, slice_of(w.range())); }

void select(Writer& w) {
  const ValueId part = w.add("slice", "slice", {w.operand(0)}, slice_of(w.range()));
  w.finish("view", {part}, {{"shape", w.result().shape}});
}

void fill(Writer& w, const AttrValue& value) {
  w.finish("full", {},
           {{"shape", w.result().shape}, {"value", value}, {"dtype", w.result().dtype}});
}
void full_like(Writer& w) { fill(w, *w.attr("fill_value")); }
void zeros_like(Writer& w) { fill(w, std::int64_t{0}); }
void ones_like(Writer& w) { fill(w, std::int64_t{1}); }

void one_hot(Writer& w) {
  const TensorType& x = w.type(0);
  Shape column = x.shape;
  column.emplace_back(1);
  const ValueId classes =
      w.add("classes", "arange", {}, {{"end", *w.attr("num_classes")}, {"dtype", x.dtype}});
  const ValueId own = w.add("column", "view", {w.operand(0)}, {{"shape", std::move(column)}});
  const ValueId hot = w.add("eq", "eq", {own, classes}, {});
  w.finish("to", {hot}, {{"dtype", DType::kI64}});
}

/// How many elements of a list are in each class: bools, [classes, elements], are added.
ValueId count_classes(Writer& w, ValueId is_in_class) {
  return w.add("count", "sum", {is_in_class}, {{"dim", std::vector<std::int64_t>{1}}});
}

void bincount(Writer& w) {
  const AttrValue& bins = *w.attr("minlength");
  ValueId x = w.operand(0);
  if (w.type(0).dtype != DType::kI64) x = w.add("wide", "to", {x}, {{"dtype", DType::kI64}});
  ValueId bin = w.add("bins", "arange", {}, {{"end", bins}});
  bin = w.add("bins", "view", {bin}, {{"shape", Shape{bound_of(bins), 1}}});
  w.become(count_classes(w, w.add("eq", "eq", {bin, x}, {})));
}

/// In f32; an element at the upper end is in the last bin.
void histc(Writer& w) {
  const auto low = static_cast<float>(std::get<double>(*w.attr("min")));
  const auto high = static_cast<float>(std::get<double>(*w.attr("max")));
  const auto bins = std::get<std::int64_t>(*w.attr("bins"));
  const auto number = [&](double value) {
    return w.add("number", "full", {}, {{"value", value}, {"dtype", DType::kF32}});
  };
  ValueId x = w.add("list", "view", {w.operand(0)},
                    {{"shape", Shape{*missing_extent(w.type(0).shape, {})}}});
  if (w.type(0).dtype != DType::kF32) x = w.add("wide", "to", {x}, {{"dtype", DType::kF32}});
  ValueId bin = w.add("bin", "sub", {x, number(low)}, {});
  bin = w.add("bin", "div", {bin, number(high - low)}, {});
  bin = w.add("bin", "mul", {bin, number(static_cast<double>(bins))}, {});
  bin = w.add("bin", "floor", {bin}, {});
  bin = w.add("bin", "minimum", {bin, number(static_cast<double>(bins - 1))}, {});
  // No bin has this number.
  bin = w.add("bin", "where", {w.add("inside", "le", {x, number(high)}, {}), bin, number(-1)}, {});
  ValueId classes = w.add("bins", "arange", {}, {{"end", bins}, {"dtype", DType::kF32}});
  classes = w.add("bins", "view", {classes}, {{"shape", Shape{bins, 1}}});
  const ValueId counts = count_classes(w, w.add("eq", "eq", {classes, bin}, {}));
  w.finish("to", {counts}, {{"dtype", w.result().dtype}});
}

void take_along_dim(Writer& w) {
  const AttrValue* dim = w.attr("dim");
  std::vector<ValueId> operands;
  for (std::size_t i = 0; i < 2; ++i) {
    ValueId operand = w.operand(i);
    const Shape& shape = w.type(i).shape;
    Shape wanted = dim != nullptr ? w.result().shape : Shape{*missing_extent(shape, {})};
    if (dim != nullptr) {
      const std::size_t axis = axis_of({{"dim", *dim}}, "dim", shape.size());
      wanted[axis] = shape[axis];
    }
    if (wanted != shape) {
      const char* op = dim != nullptr ? "expand" : "view";
      operand = w.add(i == 0 ? "x" : "index", op, {operand}, {{"shape", std::move(wanted)}});
    }
    operands.push_back(operand);
  }
  w.finish("gather", std::move(operands), {{"dim", dim != nullptr ? *dim : std::int64_t{0}}});
}

/// All elements in order.
Attrs whole_topk(const Writer& w) {
  const Shape& shape = w.type(0).shape;
  const AttrValue& dim = *w.attr("dim");
  const std::size_t axis = axis_of({{"dim", dim}}, "dim", shape.size());
  return {{"k", as_bound(shape[axis])}, {"dim", dim}, {"largest", *w.attr("descending")}};
}
void sort(Writer& w) { w.finish("topk", {w.operand(0)}, whole_topk(w)); }
void argsort(Writer& w) { w.become(w.add_results("topk", 2, {w.operand(0)}, whole_topk(w))[1]); }

void bitwise_not(Writer& w) {
  const DType dtype = w.result().dtype;
  if (dtype == DType::kBool) return w.finish("logical_not", {w.operand(0)}, {});
  const std::int64_t ones = dtype == DType::kU8 ? 255 : -1;
  const ValueId mask = w.add("ones", "full", {}, {{"value", ones}, {"dtype", dtype}});
  w.finish("bitwise_xor", {w.operand(0), mask}, {});
}

/// Whether a scatter puts one number everywhere.
bool is_scatter_of_value(const Node& node) {
  return node.op_name() == "scatter" && node.attrs.contains("value");
}
void scatter_of_value(Writer& w) {
  const ValueId value =
      w.add("value", "full", {},
            {{"shape", w.type(1).shape}, {"value", *w.attr("value")}, {"dtype", w.result().dtype}});
  w.finish("scatter", {w.operand(0), w.operand(1), value}, {{"dim", *w.attr("dim")}});
}

/// Whether the indices of an index_put are no list.
bool has_shaped_indices(const Graph& graph, const Node& node) {
  return node.op_name() == "index_put" && graph.type(node.inputs[1]).shape.size() != 1;
}
void index_put_of_list(Writer& w, std::size_t operands) {
  const Shape& indices = w.type(1).shape;
  const Dim count = *missing_extent(indices, {});
  std::vector<ValueId> inputs{w.operand(0)};
  for (std::size_t i = 1; i + 1 < operands; ++i) {
    inputs.push_back(w.add("index", "view", {w.operand(i)}, {{"shape", Shape{count}}}));
  }
  Shape part = w.type(operands - 1).shape;
  part.erase(part.begin(), part.begin() + std::ssize(indices));
  part.insert(part.begin(), count);
  inputs.push_back(
      w.add("elements", "view", {w.operand(operands - 1)}, {{"shape", std::move(part)}}));
  w.finish("index_put", std::move(inputs), {{"accumulate", *w.attr("accumulate")}});
}

/// Whether the rows of a table are cut into one part.
bool has_whole_table(const Graph& graph, const Node& node) {
  return node.op_name() == "embedding" && node.attrs.contains("group") &&
         group_of(graph, node).size == 1;
}

struct PlainForm {
  std::string_view op;
  void (*write)(Writer&);
};
constexpr PlainForm kForms[] = {{"moe_experts", write_experts},
                                {"narrow", narrow},
                                {"select", select},
                                {"full_like", full_like},
                                {"zeros_like", zeros_like},
                                {"ones_like", ones_like},
                                {"one_hot", one_hot},
                                {"bincount", bincount},
                                {"histc", histc},
                                {"bitwise_not", bitwise_not},
                                {"take_along_dim", take_along_dim},
                                {"sort", sort},
                                {"argsort", argsort}};

/// Whether no kernel holds its heads.
bool has_wide_heads(const Graph& graph, const Node& node) {
  if (node.op_name() != "scaled_dot_product_attention") return false;
  return std::max(padded_head(graph.type(node.inputs[0]).shape.back()),
                  padded_head(graph.type(node.inputs[2]).shape.back())) > kWidestHead;
}

/// Parts of a long row that is looked through: so wide, which blocks do side by side.
constexpr std::int64_t kWidestPart = 4096;

/// Into how many equal parts the row of a topk is cut, so that a block can hold a part, and all
/// that the parts give; nothing where it holds the row, or there is no such number.
std::optional<std::int64_t> parts_of_topk(const Graph& graph, const Node& node) {
  if (node.op_name() != "topk") return std::nullopt;
  const Shape& shape = graph.type(node.inputs[0]).shape;
  const Dim& extent = shape[axis_of(node.attrs, "dim", shape.size())];
  const Dim k = bound_of(node.attrs.at("k"));
  if (!extent.is_constant() || !k.is_constant()) return std::nullopt;
  const std::int64_t length = extent.constant();
  if (length <= kMaxRow) return std::nullopt;
  std::int64_t parts = (length + kWidestPart - 1) / kWidestPart;
  for (; parts * k.constant() <= kMaxRow && length / parts >= k.constant(); ++parts) {
    if (length % parts == 0) return parts;
  }
  return std::nullopt;
}

/// Equal elements keep their order: those of a part, and the parts among each other.
void topk_of_parts(Writer& w, std::int64_t parts) {
  const Shape& shape = w.type(0).shape;
  const std::size_t axis = axis_of({{"dim", *w.attr("dim")}}, "dim", shape.size());
  const auto dim = static_cast<std::int64_t>(axis);
  const std::int64_t length = shape[axis].constant();
  const auto topk = [&](std::int64_t along) {
    return Attrs{{"k", *w.attr("k")}, {"dim", along}, {"largest", *w.attr("largest")}};
  };
  Shape cut = shape;
  cut[axis] = length / parts;
  cut.insert(cut.begin() + dim, parts);
  const ValueId x = w.add("parts", "view", {w.operand(0)}, {{"shape", std::move(cut)}});
  const std::vector<ValueId> some = w.add_results("topk", 2, {x}, topk(dim + 1));
  // Where a part begins.
  Shape starts(shape.size() - axis + 1, 1);
  starts[0] = parts;
  ValueId index = w.add("starts", "arange", {}, {{"end", length}, {"step", length / parts}});
  index = w.add("starts", "view", {index}, {{"shape", std::move(starts)}});
  index = w.add("index", "add", {some[1], index}, {});
  Shape joined = w.result().shape;
  joined[axis] = joined[axis] * parts;
  const ValueId values = w.add("values", "view", {some[0]}, {{"shape", joined}});
  index = w.add("index", "view", {index}, {{"shape", joined}});
  const std::vector<ValueId> best = w.add_results("topk", 2, {values}, topk(dim));
  w.become(best[0], 0);
  w.become(w.add("index", "gather", {index, best[1]}, {{"dim", dim}}), 1);
}

/// Longer sums are cut into chains, which threads add side by side, of so many elements at most.
constexpr std::int64_t kLongestSum = 1024;
constexpr std::int64_t kLongestChain = 512;
constexpr std::int64_t kShortestChain = 16;

/// The length of the chains of a cumsum; nothing where it is one. It depends on the extent alone,
/// for it decides the order of the sum.
std::optional<std::int64_t> chain_of_cumsum(const Graph& graph, const Node& node) {
  if (node.op_name() != "cumsum") return std::nullopt;
  const Shape& shape = graph.type(node.inputs[0]).shape;
  const Dim& extent = shape[axis_of(node.attrs, "dim", shape.size())];
  if (!extent.is_constant() || extent.constant() <= kLongestSum) return std::nullopt;
  for (std::int64_t chain = kLongestChain; chain >= kShortestChain; --chain) {
    if (extent.constant() % chain != 0) continue;
    // The sums of the chains are one chain.
    return extent.constant() / chain <= kLongestSum ? std::optional(chain) : std::nullopt;
  }
  return std::nullopt;
}

/// Each chain is added up by itself, and then the sum of those in front of it is added.
void cumsum_of_chains(Writer& w, std::int64_t chain) {
  const Shape& shape = w.type(0).shape;
  const std::size_t axis = axis_of({{"dim", *w.attr("dim")}}, "dim", shape.size());
  const auto dim = static_cast<std::int64_t>(axis);
  const std::int64_t chains = shape[axis].constant() / chain;
  const TensorType& result = w.result();
  const DType dtype = is_float(result.dtype) ? DType::kF32 : DType::kI64;
  const auto range = [](std::int64_t along, std::int64_t start, std::int64_t end) {
    return Attrs{{"dim", along}, {"start", start}, {"end", end}};
  };
  ValueId x = w.operand(0);
  if (w.type(0).dtype != dtype) x = w.add("wide", "to", {x}, {{"dtype", dtype}});
  Shape cut = shape;
  cut[axis] = chain;
  cut.insert(cut.begin() + dim, chains);
  Shape one = cut;
  one[axis] = one[axis + 1] = 1;
  x = w.add("chains", "view", {x}, {{"shape", std::move(cut)}});
  x = w.add("chains", "cumsum", {x}, {{"dim", dim + 1}});
  ValueId before = w.add("last", "slice", {x}, range(dim + 1, chain - 1, chain));
  before = w.add("sums", "cumsum", {before}, {{"dim", dim}});
  before = w.add("sums", "slice", {before}, range(dim, 0, chains - 1));
  const ValueId zero =
      w.add("none", "full", {},
            {{"shape", std::move(one)}, {"value", std::int64_t{0}}, {"dtype", dtype}});
  before = w.add("before", "cat", {zero, before}, {{"dim", dim}});
  x = w.add("sum", "add", {x, before}, {});
  if (result.dtype == dtype) return w.finish("view", {x}, {{"shape", result.shape}});
  x = w.add("sum", "view", {x}, {{"shape", result.shape}});
  w.finish("to", {x}, {{"dtype", result.dtype}});
}

const PlainForm* form_of(const Node& node) {
  const auto* form = std::ranges::find(kForms, node.op_name(), &PlainForm::op);
  return form == std::end(kForms) ? nullptr : form;
}

}  // namespace

bool has_plain_form(const Graph& graph, const Node& node) {
  return form_of(node) != nullptr || is_scatter_of_value(node) || has_shaped_indices(graph, node) ||
         has_whole_table(graph, node) || has_wide_heads(graph, node) ||
         parts_of_topk(graph, node).has_value() || chain_of_cumsum(graph, node).has_value();
}

bool write_plain(const Graph& graph, const Node& node, Rewriter& rewrite) {
  Writer writer(graph, node, rewrite);
  if (const PlainForm* form = form_of(node)) {
    form->write(writer);
  } else if (is_scatter_of_value(node)) {
    scatter_of_value(writer);
  } else if (has_whole_table(graph, node)) {
    writer.finish("embedding", {writer.operand(0), writer.operand(1)}, {});
  } else if (has_wide_heads(graph, node)) {
    write_wide_attention(writer, attention_of(graph, node));
  } else if (has_shaped_indices(graph, node)) {
    index_put_of_list(writer, node.inputs.size());
  } else if (const auto parts = parts_of_topk(graph, node)) {
    topk_of_parts(writer, *parts);
  } else if (const auto chain = chain_of_cumsum(graph, node)) {
    cumsum_of_chains(writer, *chain);
  } else {
    return false;
  }
  return true;
}

}  // namespace braid
