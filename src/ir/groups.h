#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/graph.h"

namespace braid {

/// The most ranks of a group, and so of a world.
inline constexpr std::int64_t kMostRanks = 65536;

/// Throws kInvalidArgument at "/symbols/name/..." or "/groups/name/..." when the entry is no good
/// by itself.
void check_symbol(const std::string& name, const Symbol& symbol);
void check_group(const std::string& name, const Group& group);

/// A copy with these symbols and groups in place of its own, which they name, kernel bodies
/// included. Types are inferred again.
[[nodiscard]] Graph with_tables(const Graph& graph, const SymbolTable& symbols,
                                const GroupTable& groups);

/// The ranks of each instance of the group, in rank order within the group: its own lists, or all
/// `world` ranks; for a group of size 1 without lists every rank by itself.
[[nodiscard]] std::vector<std::vector<std::int64_t>> group_instances(const Group& group,
                                                                     std::int64_t world);

}  // namespace braid
