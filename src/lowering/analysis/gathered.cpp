#include "lowering/analysis/gathered.h"

#include "ir/op_registry.h"
#include "ir/views.h"

namespace braid {

ValueId gathered_from(const Graph& graph, const std::vector<bool>& overwritten, ValueId whole,
                      std::string_view group, std::size_t dim) {
  const auto is_overwritten = [&](ValueId value) { return overwritten[value]; };
  ValueId result = whole;  // of the collective
  NodeId producer = graph.value(result).producer;
  if (producer >= 0 && graph.node(producer).op->op_class == OpClass::kWait) {
    result = graph.node(producer).inputs[0];
    producer = graph.value(result).producer;
  }
  if (producer < 0 || is_overwritten(whole)) return -1;
  const Node& gather = graph.node(producer);
  if (gather.op->op_class != OpClass::kCollective ||
      gather.op->collective != CollectiveKind::kAllGather ||
      gather.op->mutates != Mutates::kNothing) {
    return -1;
  }
  const ValueId chunk = gather.inputs[graph.value(result).result];
  const bool same = *gather.attr<std::string>("group") == group &&
                    axis_of(gather.attrs, "dim", graph.type(chunk).shape.size()) == dim;
  return same && !is_overwritten(chunk) ? chunk : -1;
}

}  // namespace braid
