#include "lowering/plan/pack/blocks.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace braid {
namespace {

void append(Block& to, const Block& from, std::int64_t offset) {
  for (const auto& [interval, at] : from.parts) to.parts.emplace_back(interval, offset + at);
}

/// Blocks of one lifetime and alignment become one, where each then begins aligned.
bool stack(std::vector<Block>& blocks) {
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::size_t> known;
  std::vector<Block> stacked;
  for (Block& block : blocks) {
    const Interval& whole = block.whole;
    if (whole.size % whole.alignment == 0) {
      const auto [entry, is_new] =
          known.try_emplace({whole.lower, whole.upper, whole.alignment}, stacked.size());
      if (!is_new) {
        Block& below = stacked[entry->second];
        append(below, block, below.whole.size);
        below.whole.size += whole.size;
        continue;
      }
    }
    stacked.push_back(std::move(block));
  }
  const bool changed = stacked.size() < blocks.size();
  blocks = std::move(stacked);
  return changed;
}

/// What ends, and what begins, at one time with one size and alignment: how many, and the last.
struct Border {
  int ending = 0, beginning = 0;
  std::size_t before = 0, after = 0;
};

/// Where one block alone of its size and alignment ends when one alone of these begins, they become
/// one.
bool chain(std::vector<Block>& blocks) {
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, Border> borders;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Interval& whole = blocks[i].whole;
    Border& end = borders[{whole.upper, whole.size, whole.alignment}];
    ++end.ending;
    end.before = i;
    Border& start = borders[{whole.lower, whole.size, whole.alignment}];
    ++start.beginning;
    start.after = i;
  }
  std::vector<bool> gone(blocks.size(), false);
  std::map<std::size_t, std::size_t> part_of;  // a block that is gone: its chain's first one
  for (const auto& [key, border] : borders) {
    if (border.ending != 1 || border.beginning != 1) continue;
    const auto head = part_of.find(border.before);
    Block& first = blocks[head == part_of.end() ? border.before : head->second];
    const Block& next = blocks[border.after];
    append(first, next, 0);
    first.whole.upper = next.whole.upper;
    part_of.emplace(border.after, static_cast<std::size_t>(&first - blocks.data()));
    gone[border.after] = true;
  }
  std::vector<Block> rest;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (!gone[i]) rest.push_back(std::move(blocks[i]));
  }
  const bool changed = rest.size() < blocks.size();
  blocks = std::move(rest);
  return changed;
}

}  // namespace

std::vector<Block> join(std::span<const Interval> intervals, Joining joining) {
  std::vector<Block> blocks;
  blocks.reserve(intervals.size());
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    blocks.push_back({intervals[i], {{static_cast<int>(i), 0}}});
  }
  if (joining == Joining::kNone) return blocks;
  while (stack(blocks) || (joining == Joining::kChains && chain(blocks))) {
  }
  return blocks;
}

std::vector<std::int64_t> offsets_of(std::span<const Block> blocks,
                                     std::span<const std::int64_t> offsets) {
  std::size_t count = 0;
  for (const Block& block : blocks) count += block.parts.size();
  std::vector<std::int64_t> result(count, 0);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    for (const auto& [interval, at] : blocks[i].parts) result[interval] = offsets[i] + at;
  }
  return result;
}

}  // namespace braid
