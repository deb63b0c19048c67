#include "pack/pack.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "ir/mapped.h"
#include "pack/blocks.h"
#include "pack/heuristics.h"
#include "pack/search.h"
#include "pack/sections.h"

// pack: decides what is tried, and for how long.
//
// Heuristics first pack the intervals, as they are and joined. If that is not good enough, the
// component with the highest total is searched: unjoined, with stacks, with chains, and with joins
// that leave few blocks; for the bound, and for a total halfway between the bound and the best so
// far. Turns grow in length, and part of each goes to heuristics that learn. The capacity only says
// when to stop: a lower one never ends with a higher total.
namespace braid {
namespace {

constexpr Joining kJoinings[] = {Joining::kChains, Joining::kStacks, Joining::kNone};
constexpr std::int64_t kFirstTurn = 500, kLastTurn = 1'000'000'000;  ///< nodes
constexpr std::size_t kTurnOfInterval = 3;  ///< a turn should reach the top once
/// Beyond this, heuristics take long enough, and a search would hardly reach the top once.
constexpr std::size_t kMostSearched = 4'000;

std::vector<Interval> wholes(std::span<const Block> blocks) {
  return mapped(blocks, &Block::whole);
}

std::int64_t total_of(std::span<const Interval> intervals, std::span<const std::int64_t> offsets) {
  std::int64_t total = 0;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    total = std::max(total, offsets[i] + intervals[i].size);
  }
  return total;
}

/// The search state of one component.
class Component {
 public:
  Component(std::vector<int> ids, std::vector<Interval> intervals, Packing packing,
            std::int64_t bound)
      : ids_(std::move(ids)),
        intervals_(std::move(intervals)),
        packing_(std::move(packing)),
        bound_(bound),
        failed_(bound) {}

  [[nodiscard]] std::span<const int> ids() const { return ids_; }
  [[nodiscard]] const Packing& packing() const { return packing_; }
  /// A lower bound of its packing, which also need not be improved.
  [[nodiscard]] std::int64_t bound() const { return bound_; }
  [[nodiscard]] bool is_searched() const { return intervals_.size() <= kMostSearched; }

  /// One round of turns, until the packing reaches the goal.
  void improve(std::int64_t goal, SearchBudget& budget) {
    if (!in_turns_) begin();
    goal_ = goal;
    budget_ = &budget;
    for (Try& attempt : tries_) {
      if (is_done()) return;
      advance(attempt, turn_);
    }
    join_better(turn_);
    learn(turn_);
    for (std::size_t j = 0; j < blocks_.size(); ++j) {
      while (aim_between(blocks_[j], turn_)) {
      }
    }
    turn_ = std::min(2 * turn_, kLastTurn);
  }

 private:
  struct Try {
    std::size_t blocks;
    std::unique_ptr<PackSearch> search;
    bool hopeless = false;
  };

  void begin() {
    for (const Joining joining : kJoinings) {
      std::vector<Block> blocks = join(intervals_, joining);
      if (!blocks_.empty() && blocks.size() == blocks_.back().size()) blocks_.pop_back();
      blocks_.push_back(std::move(blocks));
    }
    for (std::size_t j = 0; j < blocks_.size(); ++j) {
      tries_.push_back({j, std::make_unique<PackSearch>(wholes(blocks_[j]), bound_)});
    }
    in_turns_.emplace(intervals_);
    joins_.emplace(intervals_);
    turn_ = std::max(kFirstTurn, static_cast<std::int64_t>(kTurnOfInterval * intervals_.size()));
  }

  [[nodiscard]] bool is_done() const {
    return packing_.total <= std::max(goal_, bound_) || budget_->spent();
  }

  /// Runs a search; records what it found, or that it proved there is nothing.
  bool search(PackSearch& search, std::span<const Block> blocks, std::int64_t turn) {
    const PackSearch::Outcome outcome = search.run(*budget_, std::min(turn, budget_->nodes));
    if (outcome == PackSearch::Outcome::kFound) {
      packing_.offsets = offsets_of(blocks, search.offsets());
      packing_.total = total_of(intervals_, packing_.offsets);
    }
    return outcome == PackSearch::Outcome::kNone;
  }
  void refute(std::int64_t total, std::span<const Block> blocks) {
    if (blocks.size() == intervals_.size()) bound_ = std::max(bound_, total + 1);
  }

  void advance(Try& attempt, std::int64_t turn) {
    if (attempt.hopeless) return;
    const std::vector<Block>& blocks = blocks_[attempt.blocks];
    attempt.hopeless = search(*attempt.search, blocks, turn);
    if (attempt.hopeless) refute(attempt.search->capacity(), blocks);
  }

  /// One turn to find joins, and one to pack their blocks.
  void join_better(std::int64_t turn) {
    const auto nodes = static_cast<std::int64_t>(intervals_.size()) / kIntervalsJoined + 1;
    const std::size_t before = joins_->joins().size();
    for (std::int64_t left = turn; left > 0 && !is_done(); left -= nodes) {
      spend(nodes);
      joins_->step();
    }
    if (is_done()) return;
    const std::vector<Block> blocks = join(intervals_, joins_->joins());
    PackSearch joined(wholes(blocks), bound_);
    if (search(joined, blocks, turn) || joins_->joins().size() == before) joins_->restart();
  }

  void learn(std::int64_t turn) {
    const auto nodes = static_cast<std::int64_t>(intervals_.size()) / kIntervalsPlaced + 1;
    for (; turn > 0 && !is_done(); turn -= nodes) {
      spend(nodes);
      if (Packing packing = in_turns_->turn(); packing.total < packing_.total) {
        packing_ = std::move(packing);
      }
    }
  }
  void spend(std::int64_t nodes) {
    for (; nodes > 0 && !budget_->spent(); --nodes) budget_->take_node();
  }

  /// One turn for a total between the last failure and the best; whether it was found. Where these
  /// are close, it starts from the bound again.
  bool aim_between(std::span<const Block> blocks, std::int64_t turn) {
    if (is_done()) return false;
    constexpr std::int64_t kClose = 200;
    if (packing_.total - failed_ <= packing_.total / kClose) failed_ = bound_;
    const std::int64_t middle = failed_ + (packing_.total - failed_) / 2;
    PackSearch aim(wholes(blocks), middle);
    const std::int64_t before = packing_.total;
    if (search(aim, blocks, turn)) refute(middle, blocks);
    if (packing_.total < before) return true;
    failed_ = middle;
    return false;
  }

  /// How many intervals joining or heuristics handle in the time of one search node.
  static constexpr std::int64_t kIntervalsJoined = 256, kIntervalsPlaced = 4;

  std::vector<int> ids_;
  std::vector<Interval> intervals_;
  Packing packing_;
  std::int64_t bound_;
  std::int64_t goal_ = 0;
  std::int64_t failed_;
  std::int64_t turn_ = 0;  ///< nodes
  SearchBudget* budget_ = nullptr;
  std::vector<std::vector<Block>> blocks_;  ///< joined in several ways
  std::vector<Try> tries_;                  ///< for the bound
  std::optional<PackInTurns> in_turns_;
  std::optional<JoinSearch> joins_;
};

Packing pack_joined(std::span<const Interval> intervals, std::int64_t goal) {
  Packing best = pack_quickly(intervals);
  if (intervals.size() > kMostSearched) return best;
  for (const Joining joining : {Joining::kStacks, Joining::kChains}) {
    if (best.total <= goal) break;
    const std::vector<Block> blocks = join(intervals, joining);
    if (blocks.size() == intervals.size()) continue;
    const Packing packing = pack_quickly(wholes(blocks));
    if (packing.total < best.total) best = {offsets_of(blocks, packing.offsets), packing.total};
  }
  return best;
}

/// The components that a search may improve.
std::vector<Component> components(std::span<const Interval> intervals, const Packing& packing,
                                  std::int64_t bound) {
  std::vector<Component> components;
  for (std::vector<int>& ids : components_of(intervals)) {
    std::vector<Interval> own;
    Packing part;
    std::erase_if(ids, [&](int i) { return intervals[i].size == 0; });
    for (const int i : ids) {
      own.push_back(intervals[i]);
      part.offsets.push_back(packing.offsets[i]);
    }
    part.total = total_of(own, part.offsets);
    if (part.total <= bound) continue;
    components.emplace_back(std::move(ids), std::move(own), std::move(part), bound);
  }
  return components;
}

}  // namespace

PackResult pack(std::span<const Interval> intervals, const PackOptions& options) {
  PackResult result;
  result.bound = most_live(intervals);
  const std::int64_t goal = std::max(result.bound, options.capacity);
  result.packing = pack_joined(intervals, goal);
  SearchBudget budget{.nodes = options.nodes, .stop = options.stop};
  std::vector<Component> parts;
  if (result.packing.total > goal) parts = components(intervals, result.packing, result.bound);
  while (!parts.empty() && !budget.spent()) {
    Component& highest =
        *std::ranges::max_element(parts, [](const Component& a, const Component& b) {
          return a.packing().total < b.packing().total;
        });
    const std::int64_t least = std::max(goal, highest.bound());
    if (highest.packing().total <= least || !highest.is_searched()) break;
    highest.improve(goal, budget);
  }
  for (const Component& part : parts) {
    for (std::size_t k = 0; k < part.ids().size(); ++k) {
      result.packing.offsets[part.ids()[k]] = part.packing().offsets[k];
    }
    result.bound = std::max(result.bound, part.bound());
  }
  result.packing.total = total_of(intervals, result.packing.offsets);
  result.impossible = options.capacity > 0 && options.capacity < result.bound;
  result.nodes = options.nodes - budget.nodes;
  return result;
}

}  // namespace braid
