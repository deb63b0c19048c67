#include "lowering/schedule/exposure.h"

#include <fmt/format.h>

#include <algorithm>

namespace braid {

void append_text(std::string& text, std::string_view piece) {
  constexpr std::size_t kMost = 200;
  if (text.size() < kMost) {
    text += piece;
  } else if (!text.ends_with("...")) {
    text += "...";
  }
}

NodeId Exposures::waited_for(NodeId wait) const {
  return graph_.value(graph_.node(wait).inputs[0]).producer;
}

void Exposures::add_text(std::string* text, NodeId id) const {
  if (text == nullptr) return;
  append_text(*text, fmt::format("+{}[{:.0f}]", graph_.node(id).name, estimate(id).ns));
}

Exposure Exposures::of_collective(std::span<const NodeId> order, std::size_t at,
                                  std::string* text) {
  ++walk_;
  const NodeId collective = order[at];
  Exposure result{.comm_ns = estimate(collective).ns};
  const std::size_t end = std::min(order.size(), at + 1 + std::min(window_, order.size()));
  for (std::size_t i = at + 1; i < end; ++i) {
    const NodeId id = order[i];
    const NodeEstimate& node = estimate(id);
    const std::span<const NodeId> needs = predecessors_.of(id);
    if (std::ranges::find(needs, collective) != needs.end()) break;
    if (node.collective) {
      if (!node.asynchronous) break;
      meet(id);
      continue;
    }
    if (node.wait && has_met(waited_for(id))) {
      if (text != nullptr) append_text(*text, fmt::format("->W[{}]", graph_.node(id).name));
      break;
    }
    result.comp_ns += node.ns;
    add_text(text, id);
  }
  return result;
}

Exposure Exposures::of_wait(std::span<const NodeId> order, std::size_t at, std::string* text) {
  ++walk_;
  const NodeId own = waited_for(order[at]);
  Exposure result;
  const std::size_t end = at - std::min(at, window_);
  for (std::size_t i = at; i-- > end;) {
    const NodeId id = order[i];
    const NodeEstimate& node = estimate(id);
    if (id == own && node.collective) {
      result.comm_ns = node.ns;
      break;
    }
    if (node.collective && (!node.asynchronous || has_met(id))) {
      result.comp_ns = 0;
      result.is_closed = true;
      if (text != nullptr) text->clear();
    } else if (!node.collective) {
      if (node.wait && waited_for(id) >= 0) meet(waited_for(id));
      result.comp_ns += node.ns;
      add_text(text, id);
    }
  }
  return result;
}

}  // namespace braid
