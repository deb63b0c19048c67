#include "ir/fused.h"

#include "ir/groups.h"
#include "ir/numel.h"
#include "ir/ops.h"
#include "ir/views.h"

namespace braid {
namespace {

class Composition : FusedParts {
 public:
  using FusedParts::FusedParts;

  std::vector<ValueId> run() { return form_.gathers ? gather() : reduce(); }

 private:
  std::vector<ValueId> gather() {
    const ValueId a = gathered(operands_[0], kGatherSuffix);
    std::vector<ValueId> results;
    if (*node_.attr<bool>("return_A")) results.push_back(a);
    ValueId scale = -1;
    if (form_.scaled) {
      scale = operands_[form_.a_scale()];
      scale = as_rows(scale_is_shard() ? gathered(scale, "_gather_scale") : scale, "_scale_rows");
    }
    const ValueId rows = as_rows(a, "_rows");
    for (std::size_t i = 0; i < form_.matmuls; ++i) {
      const ValueId product = multiplied(rows, scale, i);
      results.push_back(as(product, with_last(shape(a), shape(product).back()), "_product"));
    }
    return results;
  }

  std::vector<ValueId> reduce() {
    const ValueId scale = form_.scaled ? as_rows(operands_[form_.a_scale()], "_scale_rows") : -1;
    const ValueId rows = multiplied(as_rows(operands_[0], "_rows"), scale, 0);
    const Shape whole = with_last(shape(operands_[0]), shape(rows).back());
    std::vector<ValueId> results{form_.scatters ? scattered(rows, whole)
                                                : as(summed(rows), whole, "_sum")};
    if (*node_.attr<bool>("return_mm")) results.push_back(as(rows, whole, "_product"));
    return results;
  }

  ValueId summed(ValueId rows) {
    return waited(
        add(kReduceSuffix, "all_reduce", {rows},
            {{"reduce_op", node_.attrs.at("reduce_op")}, {"group", node_.attrs.at("group")}}));
  }

  /// The scattered operand, given (maybe only some) rows of a product of shape `whole`.
  ValueId scattered(ValueId rows, const Shape& whole) {
    const std::size_t dim = axis_of(node_.attrs, "scatter_dim", whole.size());
    const std::int64_t ranks = group_of(graph_, node_).size;
    if (dim + 1 < whole.size() && lies_in_front(whole, dim) &&
        shape(rows)[0].divide_exactly(ranks, graph_.symbols())) {
      Shape chunk = whole;
      chunk[dim] = *whole[dim].divide_exactly(ranks, graph_.symbols());
      return as(scatter_along(rows, 0), chunk, "_chunk");
    }
    return scatter_along(as(rows, whole, "_product"), static_cast<std::int64_t>(dim));
  }

  ValueId scatter_along(ValueId value, std::int64_t dim) {
    return waited(add(kScatterSuffix, "reduce_scatter_tensor", {value},
                      {{"reduce_op", node_.attrs.at("reduce_op")},
                       {"dim", dim},
                       {"group", node_.attrs.at("group")}}));
  }

  ValueId gathered(ValueId shard, std::string_view suffix) {
    return waited(add(suffix, "all_gather_into_tensor", {shard},
                      {{"dim", node_.attrs.at("gather_dim")}, {"group", node_.attrs.at("group")}}));
  }
};

}  // namespace

ValueId FusedParts::add(std::string_view suffix, std::string_view op, std::vector<ValueId> inputs,
                        Attrs attrs) {
  const NodeId id = graph_.add_node(name_(suffix), op, std::move(inputs), std::move(attrs));
  return graph_.node(id).outputs[0];
}

ValueId FusedParts::as(ValueId value, const Shape& to, std::string_view suffix) {
  return shape(value) == to ? value : add(suffix, "view", {value}, {{"shape", to}});
}

ValueId FusedParts::as_rows(ValueId value, std::string_view suffix) {
  if (shape(value).size() <= 2) return value;
  return as(value, {*rows_of(shape(value)), shape(value).back()}, suffix);
}

ValueId FusedParts::multiplied(ValueId rows, ValueId scale, std::size_t i) {
  std::vector<ValueId> inputs{rows, operands_[form_.b(i)]};
  if (form_.scaled) inputs.insert(inputs.end(), {scale, operands_[form_.b_scale(i)]});
  if (form_.biased) inputs.push_back(operands_[form_.bias(i)]);
  Attrs attrs;
  if (const auto* dtype = node_.attr<DType>("out_dtype")) attrs.emplace("out_dtype", *dtype);
  return add("_mm", form_.scaled ? "scaled_mm" : "mm", std::move(inputs), std::move(attrs));
}

bool FusedParts::scale_is_shard() const {
  return with_last(shape(operands_[0]), 1) == shape(operands_[form_.a_scale()]);
}

Shape FusedParts::with_last(Shape shape, const Dim& last) {
  shape.back() = last;
  return shape;
}

FusedOperands fused_operands(const Node& node) {
  return fused_operands(node.op->collective, node.op->matmul, node.attrs, node.inputs.size());
}

FusedOperands fused_operands(CollectiveKind collective, Matmul matmul, const Attrs& attrs,
                             std::size_t operands) {
  FusedOperands form;
  form.gathers = collective == CollectiveKind::kAllGather;
  form.scatters = collective == CollectiveKind::kReduceScatter;
  form.scaled = matmul == Matmul::kScaled;
  form.biased = form.scaled && get_attr<bool>(attrs, "bias");
  const std::size_t shared = form.scaled ? 2 : 1;  // A and its scale
  const std::size_t each = form.biased ? 3 : form.scaled ? 2 : 1;
  if (form.gathers) form.matmuls = (operands - shared) / each;
  if (form.matmuls == 0 || operands != shared + each * form.matmuls) {
    const std::string_view a = form.gathers ? "A_shard" : "A";
    const std::string_view many = form.gathers ? "..." : "";
    fail("/inputs", "{} operands; expected {}, B{}, A_scale, B_scale{}{}{}", operands, a, many,
         many, form.biased ? ", bias" : "", form.biased ? many : "");
  }
  return form;
}

std::optional<Dim> rows_of(const Shape& shape) { return missing_extent(shape, {shape.back()}); }

std::vector<ValueId> add_composition(Graph& graph, const Node& node,
                                     const std::vector<ValueId>& operands, const NameNode& name) {
  return Composition(graph, node, operands, name).run();
}

}  // namespace braid
