#include "runtime/exec/statements.h"

#include <fmt/format.h>

#include <algorithm>

namespace braid {

std::string Statements::add(const std::string& key, std::span<const int> by, std::size_t ranks,
                            const std::string& text) {
  if (by.empty()) return {};
  const auto [found, is_new] = open_.try_emplace(key, Stated{by.front(), text});
  Stated& stated = found->second;
  if (stated.text != text) {
    const bool earlier = stated.rank < by.front();
    return fmt::format("rank {} has {}, rank {} has {}; expected the same on all ranks",
                       earlier ? stated.rank : by.front(), earlier ? stated.text : text,
                       earlier ? by.front() : stated.rank, earlier ? text : stated.text);
  }
  stated.count += by.size();
  if (stated.count >= ranks) open_.erase(found);
  return {};
}

std::vector<int> common_ranks(std::span<const int> ranks, std::span<const int> own) {
  std::vector<int> common;
  std::ranges::copy_if(ranks, std::back_inserter(common),
                       [&](int rank) { return std::ranges::find(own, rank) != own.end(); });
  return common;
}

}  // namespace braid
