#include "lowering/schedule/streams.h"

#include "ir/op_registry.h"
#include "lowering/plan/residency.h"
#include "lowering/schedule/overlap_timeline.h"

namespace braid {
namespace {

constexpr std::int64_t kBarrierBlocks = 1;

}  // namespace

std::vector<Placement> place_on_streams(const Graph& graph, int ranks_per_device) {
  const std::vector<NodeId> waited = waited_collectives(graph);
  std::vector<Placement> places(graph.nodes().size());
  std::vector<bool> is_over(graph.nodes().size(), false);
  int in_flight = 0;  // collectives of communicators in flight
  bool copies = false;
  for (std::size_t id = 0; id < places.size(); ++id) {
    const Node& node = graph.nodes()[id];
    Placement& place = places[id];
    if (node.op->op_class == OpClass::kPeerCopy) {
      place.stream = kCopyStream;
      copies = true;
    } else if (is_asynchronous(node)) {
      place.stream = kCommunicationStream;
      ++in_flight;
    } else if (waited[id] >= 0) {
      const std::size_t from = waited[id];
      if (places[from].stream == kCommunicationStream && !is_over[from]) --in_flight;
      is_over[from] = true;
    } else {
      // Where ranks share a GPU, a communicator's waits take no block. The last barrier of the
      // copies is behind all of them, and runs beside what is left.
      if (in_flight > 0 && ranks_per_device == 1) place.leaves += kCommunicatorBlocks;
      if (copies) place.leaves += kBarrierBlocks;
    }
  }
  return places;
}

}  // namespace braid
