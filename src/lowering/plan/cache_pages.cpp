#include "lowering/plan/cache_pages.h"

#include <algorithm>
#include <set>

#include "ir/attention.h"
#include "ir/fail.h"
#include "ir/mutation.h"
#include "ir/op_registry.h"
#include "lowering/plan/cost.h"

namespace braid {

CachePages cache_pages(const Graph& graph) {
  const std::vector<ValueId> storage = storages(graph);
  CachePages found;
  std::set<ValueId> caches;
  for (const Node& node : graph.nodes()) {
    if (node.op->op_class != OpClass::kAttention || !attention_of(graph, node).paged) continue;
    for (const std::size_t operand : {1, 2}) {
      const ValueId cache = storage[node.inputs[operand]];
      const TensorType& type = graph.type(cache);
      const Dim& pages = graph.type(node.inputs[operand]).shape[0];
      const std::int64_t count = pages.max(graph.symbols());
      const bool is_input = graph.value(cache).producer < 0;
      if (!is_input || type.shape.empty() || type.shape[0] != pages ||
          (!caches.empty() && count != found.pages)) {
        throw_invalid(node.name,
                      "its cache is {}, {}; expected an input of as many pages as others",
                      type.str(), is_input ? "an input" : "a node's result");
      }
      found.pages = count;
      if (caches.insert(cache).second) {
        found.bytes.push_back(max_bytes(type, graph.symbols()) / count);
      }
    }
  }
  if (caches.empty()) throw_invalid(graph.name(), "has no paged_attention; expected one");
  return found;
}

}  // namespace braid
