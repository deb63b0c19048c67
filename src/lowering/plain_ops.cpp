#include "lowering/plain_ops.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/attributes.h"
#include "ir/numel.h"
#include "ir/op_registry.h"
#include "ir/views.h"

namespace braid {
namespace {

/// One node, and what it becomes.
class Writer {
 public:
  Writer(const Graph& graph, const Node& node, Rewriter& rewrite)
      : graph_(graph), node_(node), rewrite_(rewrite) {}

  [[nodiscard]] ValueId operand(std::size_t index) const { return rewrite_(node_.inputs[index]); }
  [[nodiscard]] const TensorType& type(std::size_t index) const {
    return graph_.type(node_.inputs[index]);
  }
  [[nodiscard]] const TensorType& result() const { return graph_.type(node_.outputs[0]); }
  [[nodiscard]] const AttrValue* attr(std::string_view key) const {
    const auto found = node_.attrs.find(key);
    return found == node_.attrs.end() ? nullptr : &found->second;
  }
  [[nodiscard]] SliceRange range() const {
    return part_ranges(node_.attrs, type(0).shape, graph_.symbols())[0];
  }
  /// A node in front of the last one.
  ValueId add(std::string_view what, std::string_view op, std::vector<ValueId> inputs,
              Attrs attrs) {
    return rewrite_.add(fmt::format("{}_{}", node_.name, what), op, std::move(inputs),
                        std::move(attrs));
  }
  /// The same, with two results.
  std::vector<ValueId> add_results(const char* op, std::vector<ValueId> inputs, Attrs attrs) {
    const std::string name = rewrite_.fresh_name(fmt::format("{}_{}", node_.name, op), 2);
    const NodeId id = rewrite_.graph().add_node(name, op, std::move(inputs), std::move(attrs));
    return rewrite_.graph().node(id).outputs;
  }
  /// The value stands for the node's result.
  void become(ValueId value) { rewrite_.map(node_.outputs[0], value); }
  /// The one that has the node's name.
  void finish(std::string_view op, std::vector<ValueId> inputs, Attrs attrs) {
    rewrite_.copy(node_, op, std::move(inputs), std::move(attrs));
  }

 private:
  const Graph& graph_;
  const Node& node_;
  Rewriter& rewrite_;
};

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
void argsort(Writer& w) { w.become(w.add_results("topk", {w.operand(0)}, whole_topk(w))[1]); }

void bitwise_not(Writer& w) {
  const DType dtype = w.result().dtype;
  if (dtype == DType::kBool) return w.finish("logical_not", {w.operand(0)}, {});
  const std::int64_t ones = dtype == DType::kU8 ? 255 : -1;
  const ValueId mask = w.add("ones", "full", {}, {{"value", ones}, {"dtype", dtype}});
  w.finish("bitwise_xor", {w.operand(0), mask}, {});
}

struct PlainForm {
  std::string_view op;
  void (*write)(Writer&);
};
constexpr PlainForm kForms[] = {{"narrow", narrow},
                                {"select", select},
                                {"full_like", full_like},
                                {"zeros_like", zeros_like},
                                {"ones_like", ones_like},
                                {"one_hot", one_hot},
                                {"bitwise_not", bitwise_not},
                                {"take_along_dim", take_along_dim},
                                {"sort", sort},
                                {"argsort", argsort}};

const PlainForm* form_of(const Node& node) {
  const auto* form = std::ranges::find(kForms, node.op_name(), &PlainForm::op);
  return form == std::end(kForms) ? nullptr : form;
}

}  // namespace

bool has_plain_form(const Node& node) { return form_of(node) != nullptr; }

bool write_plain(const Graph& graph, const Node& node, Rewriter& rewrite) {
  const PlainForm* form = form_of(node);
  if (form == nullptr) return false;
  Writer writer(graph, node, rewrite);
  form->write(writer);
  return true;
}

}  // namespace braid
