#include "pack/blocks.h"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace braid {
namespace {

class Joiner {
 public:
  Joiner(std::span<const Interval> intervals, const std::set<Join>& refused) : refused_(refused) {
    parts_.reserve(intervals.size());
    for (std::size_t i = 0; i < intervals.size(); ++i) {
      parts_.push_back({intervals[i], static_cast<int>(i)});
    }
  }

  std::vector<Join> run(bool chains) {
    while (stack() || (chains && chain())) {
    }
    return std::move(joins_);
  }

 private:
  struct Part {
    Interval whole;
    int first;
    bool gone = false;
  };

  bool is_new(const Join& join) {
    if (refused_.contains(join)) return false;
    joins_.push_back(join);
    return true;
  }
  bool drop_gone(std::size_t joins) {
    if (joins_.size() == joins) return false;
    std::erase_if(parts_, [](const Part& part) { return part.gone; });
    return true;
  }

  /// Stacks intervals of equal lifetime and alignment into one block in which each is aligned.
  bool stack() {
    const auto kind = [](const Part& part) {
      return std::tuple(part.whole.lower, part.whole.upper, part.whole.alignment);
    };
    std::ranges::sort(parts_, [&](const Part& a, const Part& b) {
      return std::tuple_cat(kind(a), std::tuple(a.first)) <
             std::tuple_cat(kind(b), std::tuple(b.first));
    });
    const std::size_t joins = joins_.size();
    std::size_t first = 0;  // first of that kind
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      Part& part = parts_[i];
      if (kind(parts_[first]) != kind(part)) first = i;
      if (part.whole.size % part.whole.alignment != 0) continue;
      for (std::size_t k = first; k < i && !part.gone; ++k) {
        Part& below = parts_[k];
        if (below.gone || below.whole.size % below.whole.alignment != 0) continue;
        if (!is_new({.first = below.first, .second = part.first})) continue;
        below.whole.size += part.whole.size;
        part.gone = true;
      }
    }
    return drop_gone(joins);
  }

  /// Chains two blocks where one ends when the other begins, and each is the only one of its size
  /// and alignment to do so.
  bool chain() {
    struct Border {
      std::int64_t time, size, alignment;
      bool begins;
      std::size_t part;
      auto operator<=>(const Border&) const = default;
    };
    std::vector<Border> borders;
    borders.reserve(2 * parts_.size());
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const Interval& whole = parts_[i].whole;
      borders.push_back({whole.upper, whole.size, whole.alignment, false, i});
      borders.push_back({whole.lower, whole.size, whole.alignment, true, i});
    }
    std::ranges::sort(borders);
    const auto same = [](const Border& a, const Border& b) {
      return std::tie(a.time, a.size, a.alignment) == std::tie(b.time, b.size, b.alignment);
    };
    const std::size_t joins = joins_.size();
    std::vector<std::size_t> head(parts_.size());  // for each block: the head of its chain
    for (std::size_t i = 0; i < head.size(); ++i) head[i] = i;
    for (std::size_t i = 0, end = 0; i < borders.size(); i = end) {
      while (end < borders.size() && same(borders[i], borders[end])) ++end;
      if (end - i != 2 || borders[i].begins || !borders[i + 1].begins) continue;
      Part& before = parts_[head[borders[i].part]];
      Part& after = parts_[borders[i + 1].part];
      if (!is_new({.first = before.first, .second = after.first, .follows = true})) continue;
      before.whole.upper = after.whole.upper;
      head[borders[i + 1].part] = head[borders[i].part];
      after.gone = true;
    }
    return drop_gone(joins);
  }

  const std::set<Join>& refused_;
  std::vector<Part> parts_;
  std::vector<Join> joins_;
};

}  // namespace

std::vector<Join> joins_of(std::span<const Interval> intervals, Joining joining,
                           const std::set<Join>& refused) {
  if (joining == Joining::kNone) return {};
  return Joiner(intervals, refused).run(joining == Joining::kChains);
}

std::vector<Block> join(std::span<const Interval> intervals, std::span<const Join> joins) {
  std::vector<Block> blocks;
  blocks.reserve(intervals.size());
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    blocks.push_back({intervals[i], {{static_cast<int>(i), 0}}});
  }
  for (const Join& join : joins) {
    Block& to = blocks[join.first];
    Block& from = blocks[join.second];
    const std::int64_t offset = join.follows ? 0 : to.whole.size;
    for (const auto& [interval, at] : from.parts) to.parts.emplace_back(interval, offset + at);
    from.parts.clear();
    (join.follows ? to.whole.upper : to.whole.size) =
        join.follows ? from.whole.upper : to.whole.size + from.whole.size;
  }
  std::erase_if(blocks, [](const Block& block) { return block.parts.empty(); });
  return blocks;
}

void JoinSearch::restart() {
  refused_.clear();
  joins_ = joins_of(intervals_, Joining::kChains);
}

void JoinSearch::step() {
  if (joins_.empty()) return;
  std::set<Join> refused = refused_;
  for (std::size_t left = 1 + pick(2); left > 0; --left) {
    if (!refused.empty() && pick(3) == 0) {
      refused.erase(std::next(refused.begin(), pick(refused.size())));
    } else {
      refused.insert(joins_[pick(joins_.size())]);
    }
  }
  std::vector<Join> joins = joins_of(intervals_, Joining::kChains, refused);
  if (joins.size() < joins_.size()) return;
  joins_ = std::move(joins);
  refused_ = std::move(refused);
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
