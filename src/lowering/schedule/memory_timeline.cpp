#include "lowering/schedule/memory_timeline.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "ir/mutation.h"
#include "ir/op_registry.h"
#include "lowering/pass.h"
#include "lowering/plan/cost.h"
#include "lowering/schedule/order.h"

namespace braid {
namespace {

constexpr std::string_view kChunk = "chunk_by_rank";

/// The storages of the registry; a chunk belongs to the storage that it is cut from.
std::vector<ValueId> places_of(const Graph& graph) {
  std::vector<ValueId> storage = storages(graph);
  const bool none = std::ranges::none_of(graph.nodes(),
                                         [](const Node& node) { return node.op_name() == kChunk; });
  if (none) return storage;
  for (const Node& node : graph.nodes()) {
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      std::optional<ValueId> operand = named_operand(node, i);
      if (node.op_name() == kChunk) operand = node.inputs[0];
      if (!operand) continue;
      storage[node.outputs[i]] = storage[*operand];
    }
  }
  return storage;
}

}  // namespace

MemoryUse::MemoryUse(const Graph& graph)
    : made_(graph.nodes().size(), 0), bytes_(graph.values().size(), 0) {
  const std::vector<ValueId> storage = places_of(graph);
  const auto storage_of = [&](ValueId value) { return storage[value]; };
  std::vector<bool> stays(graph.values().size(), false);
  for (ValueId output : graph.outputs()) stays[storage_of(output)] = true;
  for (ValueId input : graph.input_values()) {
    stays[input] = true;
    inputs_ += max_bytes(graph.type(input), graph.symbols());
  }
  first_.reserve(graph.nodes().size() + 1);
  for (std::size_t id = 0; id < graph.nodes().size(); ++id) {
    const Node& node = graph.nodes()[id];
    const std::size_t first = used_.size();
    first_.push_back(first);
    const auto use = [&](ValueId value) {
      const ValueId of = storage_of(value);
      const auto mine = used_.begin() + first;
      if (stays[of]) return;
      if (std::find(mine, used_.end(), of) == used_.end()) used_.push_back(of);
    };
    for (ValueId output : node.outputs) {
      if (storage_of(output) == output) {
        bytes_[output] = max_bytes(graph.type(output), graph.symbols());
        made_[id] += bytes(output);
      }
      use(output);
    }
    for (ValueId input : node.inputs) use(input);
    if (node.op->op_class != OpClass::kWait) continue;
    const NodeId waited = graph.value(node.inputs[0]).producer;
    if (waited < 0 || !is_asynchronous(graph.node(waited))) continue;
    for (ValueId input : graph.node(waited).inputs) use(input);
  }
  first_.push_back(used_.size());
}

std::vector<MemoryLevel> memory_levels(const MemoryUse& use, std::span<const NodeId> order) {
  std::vector<bool> is_used_later(use.values(), false);
  std::vector<std::int64_t> freed(order.size(), 0);
  for (std::size_t at = order.size(); at-- > 0;) {
    for (ValueId storage : use.used(order[at])) {
      if (is_used_later[storage]) continue;
      is_used_later[storage] = true;
      freed[at] += use.bytes(storage);
    }
  }
  std::vector<MemoryLevel> levels;
  levels.reserve(order.size());
  std::int64_t now = use.inputs();
  for (std::size_t at = 0; at < order.size(); ++at) {
    now += use.made(order[at]);
    levels.push_back({.during = now, .after = now - freed[at]});
    now -= freed[at];
  }
  return levels;
}

std::int64_t peak_memory(const MemoryUse& use, std::span<const NodeId> order) {
  std::int64_t peak = use.inputs();
  for (const MemoryLevel& level : memory_levels(use, order)) peak = std::max(peak, level.during);
  return peak;
}

std::int64_t base_peak(const MemoryUse& use, const Graph& graph, PassContext& context) {
  if (!context.base_peak) context.base_peak = peak_memory(use, given_order(graph));
  return *context.base_peak;
}

std::int64_t memory_limit(std::int64_t base, double budget) {
  const double growth = static_cast<double>(base) * budget;
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  if (growth >= static_cast<double>(kMost - base)) return kMost;
  return base + static_cast<std::int64_t>(std::floor(growth));
}

MemoryTimeline::MemoryTimeline(const MemoryUse& use, std::vector<NodeId> order)
    : use_(use),
      order_(std::move(order)),
      place_(order_.size()),
      last_user_(use.values(), -1),
      freed_(order_.size(), 0),
      levels_(memory_levels(use, order_)) {
  for (std::size_t at = 0; at < order_.size(); ++at) {
    const NodeId id = order_[at];
    place_[id] = at;
    for (ValueId storage : use_.used(id)) last_user(storage) = id;
    freed_[id] = levels_[at].during - levels_[at].after;
  }
}

std::int64_t MemoryTimeline::peak(std::size_t first, std::size_t last) const {
  std::int64_t peak = use_.inputs();
  for (std::size_t at = first; at <= last && at < levels_.size(); ++at) {
    peak = std::max(peak, levels_[at].during);
  }
  return peak;
}

MemoryTimeline::Move MemoryTimeline::move_back(std::size_t first, std::size_t last,
                                               std::int64_t limit) {
  const NodeId id = order_[first];
  const std::int64_t before = peak(first, last);
  std::vector<std::pair<ValueId, NodeId>> was;  // the last users that it replaces
  for (ValueId storage : use_.used(id)) {
    const NodeId user = last_user(storage);
    if (user == id || place(user) > last) continue;
    was.emplace_back(storage, user);
    free_at(storage, id);
  }
  rotate(first, first + 1, last);
  const std::int64_t now = peak(first, last);
  if (now <= std::max(limit, before)) return {.done = true, .peak = now};
  for (const auto& [storage, user] : was) free_at(storage, user);
  rotate(first, last, last);
  return {.done = false, .peak = now};
}

MemoryTimeline::Move MemoryTimeline::move_forward(std::size_t first, std::size_t last,
                                                  std::int64_t limit) {
  const NodeId id = order_[last];
  const std::int64_t before = peak(first, last);
  std::vector<ValueId> was;  // storages that others are the last to use then
  for (ValueId storage : use_.used(id)) {
    if (last_user(storage) != id) continue;
    for (std::size_t at = last; at-- > first;) {
      const std::span<const ValueId> used = use_.used(order_[at]);
      if (std::ranges::find(used, storage) == used.end()) continue;
      was.push_back(storage);
      free_at(storage, order_[at]);
      break;
    }
  }
  rotate(first, last, last);
  const std::int64_t now = peak(first, last);
  if (now <= std::max(limit, before)) return {.done = true, .peak = now};
  for (ValueId storage : was) free_at(storage, id);
  rotate(first, first + 1, last);
  return {.done = false, .peak = now};
}

/// Rotates [first, last) so that `middle` becomes the first place.
void MemoryTimeline::rotate(std::size_t first, std::size_t middle, std::size_t last) {
  const auto at = [&](std::size_t i) { return order_.begin() + i; };
  std::rotate(at(first), at(middle), at(last + 1));
  for (std::size_t i = first; i <= last; ++i) place_[order_[i]] = i;
  update_levels(first, last);
}

void MemoryTimeline::free_at(ValueId storage, NodeId id) {
  NodeId& user = last_user(storage);
  freed_[user] -= use_.bytes(storage);
  freed_[id] += use_.bytes(storage);
  user = id;
}

void MemoryTimeline::update_levels(std::size_t first, std::size_t last) {
  std::int64_t now = first == 0 ? use_.inputs() : levels_[first - 1].after;
  for (std::size_t i = first; i <= last; ++i) {
    now += use_.made(order_[i]);
    const std::int64_t freed = freed_[order_[i]];
    levels_[i] = {.during = now, .after = now - freed};
    now -= freed;
  }
}

}  // namespace braid
