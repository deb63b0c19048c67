#include "ir/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ir/buckets.h"
#include "ir/fail.h"
#include "ir/mapped.h"
#include "ir/place.h"
#include "ir/text.h"

namespace braid {
namespace {

constexpr std::size_t kMaxSymbolName = 64;
constexpr std::int64_t kMaxExtent = std::int64_t{1} << 40;

std::int64_t member_count(const Group& group) {
  return group.size * static_cast<std::int64_t>(group.ranks.size());
}

}  // namespace

Graph with_tables(const Graph& graph, const SymbolTable& symbols, const GroupTable& groups) {
  Graph copy(graph.name());
  for (const auto& entry : graph.symbols()) {
    copy.add_symbol(entry.first, symbols.find(entry.first)->second);
  }
  for (const auto& entry : graph.groups()) {
    copy.add_group(entry.first, groups.find(entry.first)->second);
  }
  std::vector<ValueId> copies(graph.values().size());
  auto map_value = [&](ValueId from, ValueId to) {
    copies[from] = to;
    copy.set_comm_group(to, graph.value(from).comm_group);
  };
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
    map_value(graph.input_values()[i], copy.add_input(graph.inputs()[i]));
  }
  for (const Node& node : graph.nodes()) {
    Attrs attrs = node.attrs;
    if (const auto* body = node.attr<std::shared_ptr<const Graph>>("body")) {
      attrs.insert_or_assign("body",
                             std::make_shared<const Graph>(with_tables(**body, symbols, groups)));
    }
    std::vector<ValueId> inputs;
    for (ValueId input : node.inputs) inputs.push_back(copies[input]);
    const NodeId id = copy.add_node(node.name, node.op_name(), std::move(inputs), std::move(attrs));
    for (const auto& [key, value] : node.hints) copy.set_hint(id, key, value);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      map_value(node.outputs[i], copy.node(id).outputs[i]);
    }
  }
  for (ValueId output : graph.outputs()) copy.add_output(copies[output]);
  return copy;
}

void add_tables(Graph& graph, const SymbolTable& symbols, const GroupTable& groups) {
  for (const auto& [name, symbol] : symbols) graph.add_symbol(name, symbol);
  for (const auto& [name, group] : groups) graph.add_group(name, group);
}

const Group& group_of(const Graph& graph, const Attrs& attrs) {
  return graph.groups().find(std::get<std::string>(attrs.find("group")->second))->second;
}
const Group& group_of(const Graph& graph, const Node& node) { return group_of(graph, node.attrs); }

void check_symbol(const std::string& name, const Symbol& symbol) {
  const std::string place = "/symbols" + pointer_step(name);
  if (!is_identifier(name) || name.size() > kMaxSymbolName) {
    throw_invalid(place,
                  "{} cannot name a symbol; expected letters, digits and underscores, at most {}, "
                  "no digit first",
                  quote(name), kMaxSymbolName);
  }
  if (symbol.min < 0) throw_invalid(place + "/min", "min is {}; expected at least 0", symbol.min);
  if (symbol.max < symbol.min || symbol.max >= kMaxExtent) {
    throw_invalid(place + "/max", "max is {}; expected at least min ({}) and below 2^40",
                  symbol.max, symbol.min);
  }
  if (symbol.multiple_of < 1 || symbol.max / symbol.multiple_of * symbol.multiple_of < symbol.min) {
    throw_invalid(place + "/multiple_of",
                  "multiple_of is {}; expected a positive number with a multiple from {} to {}",
                  symbol.multiple_of, symbol.min, symbol.max);
  }
  check_buckets(place, symbol);
}

void check_group(const std::string& name, const Group& group) {
  const std::string place = "/groups" + pointer_step(name);
  if (name.empty() || !is_utf8(name)) {
    throw_invalid(place, "a group's name must be non-empty UTF-8");
  }
  if (group.size < 1 || group.size > kMostRanks) {
    throw_invalid(place + "/size", "size is {}; expected 1 to {}", group.size, kMostRanks);
  }
  std::vector<std::int64_t> members;
  for (std::size_t i = 0; i < group.ranks.size(); ++i) {
    if (static_cast<std::int64_t>(group.ranks[i].size()) != group.size) {
      throw_invalid(fmt::format("{}/ranks/{}", place, i), "{} ranks; expected size ({})",
                    group.ranks[i].size(), group.size);
    }
    members.insert(members.end(), group.ranks[i].begin(), group.ranks[i].end());
  }
  std::ranges::sort(members);
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i] != static_cast<std::int64_t>(i)) {
      throw_invalid(place + "/ranks", "the lists do not hold each rank of 0 to {} once",
                    members.size() - 1);
    }
  }
}

std::vector<std::vector<std::int64_t>> group_instances(const Group& group, std::int64_t world) {
  if (!group.ranks.empty()) return group.ranks;
  std::vector<std::int64_t> all(world);
  std::iota(all.begin(), all.end(), 0);
  if (group.size > 1) return {all};
  return mapped(all, [](std::int64_t rank) { return std::vector{rank}; });
}

std::int64_t world_size(const Graph& graph) {
  std::int64_t world = 1;
  for (const auto& [name, group] : graph.groups()) {
    world = std::max(world, group.ranks.empty() ? group.size : member_count(group));
  }
  for (const auto& [name, group] : graph.groups()) {
    if (group.ranks.empty() && (group.size == world || group.size == 1)) continue;
    if (member_count(group) == world) continue;
    throw_invalid(
        "/groups" + pointer_step(name),
        "the group covers {} of {} ranks; expected `ranks` lists that hold each rank once",
        group.ranks.empty() ? group.size : member_count(group), world);
  }
  return world;
}

Graph with_world_size(const Graph& graph, std::int64_t world) {
  const std::int64_t size = world_size(graph);
  if (size == world) return graph;
  if (graph.groups().size() != 1 || !graph.groups().begin()->second.ranks.empty()) {
    throw_invalid("", "the graph's groups make {} ranks; expected {}", size, world);
  }
  GroupTable groups = graph.groups();
  groups.begin()->second.size = world;
  return with_tables(graph, graph.symbols(), groups);
}

}  // namespace braid
