#include "lowering/collectives/sum_chunks.h"

namespace braid {

ValueId add_sum_of_chunks(Graph& graph, ValueId chunks, std::int64_t ranks,
                          std::string_view reduce_op, const NameNode& name) {
  const auto add = [&](std::string_view suffix, std::string_view op, std::vector<ValueId> inputs,
                       Attrs attrs) {
    const NodeId id = graph.add_node(name(suffix), op, std::move(inputs), std::move(attrs));
    return graph.node(id).outputs[0];
  };
  const auto to = [&](ValueId value, DType dtype) {
    if (graph.type(value).dtype == dtype) return value;
    return add("_to", "to", {value}, {{"dtype", dtype}});
  };
  const DType dtype = graph.type(chunks).dtype;
  const DType sum_dtype = is_float(dtype) ? DType::kF32 : dtype;
  Shape all = graph.type(chunks).shape;
  all[0] = *all[0].divide_exactly(ranks, graph.symbols());
  const Shape one = all;
  all.insert(all.begin(), ranks);
  const ValueId parts = add("_parts", "view", {chunks}, {{"shape", all}});
  ValueId result = -1;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    ValueId part = add("_part", "slice", {parts},
                       {{"dim", std::int64_t{0}}, {"start", rank}, {"end", rank + 1}});
    part = to(add("_part", "view", {part}, {{"shape", one}}), sum_dtype);
    result = result < 0 ? part : add("_sum", "add", {result, part}, {});
  }
  if (reduce_op == "avg") {
    const ValueId count = add("_ranks", "full", {}, {{"value", ranks}, {"dtype", sum_dtype}});
    result = add("_avg", "div", {result, count}, {});
  }
  return to(result, dtype);
}

}  // namespace braid
