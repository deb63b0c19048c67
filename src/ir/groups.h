#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/graph.h"

namespace braid {

/// The largest size of a group or world.
inline constexpr std::int64_t kMostRanks = 65536;

/// Throws kInvalidArgument at "/symbols/name/..." or "/groups/name/..." for an entry that is
/// invalid by itself.
void check_symbol(const std::string& name, const Symbol& symbol);
void check_group(const std::string& name, const Group& group);

/// A copy with other symbols and groups of the same names, also in kernel bodies. Types are
/// inferred again.
[[nodiscard]] Graph with_tables(const Graph& graph, const SymbolTable& symbols,
                                const GroupTable& groups);

/// Adds those to a graph that has none yet.
void add_tables(Graph& graph, const SymbolTable& symbols, const GroupTable& groups = {});

/// The group that a node, or its attributes, name.
[[nodiscard]] const Group& group_of(const Graph& graph, const Attrs& attrs);
[[nodiscard]] const Group& group_of(const Graph& graph, const Node& node);

/// The ranks of each instance of the group, in rank order within the group: its own lists, or all
/// `world` ranks; for a group of size 1 without lists every rank by itself.
[[nodiscard]] std::vector<std::vector<std::int64_t>> group_instances(const Group& group,
                                                                     std::int64_t world);

}  // namespace braid
