#include "lowering/plan/pack/pack.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "lowering/plan/pack/blocks.h"
#include "lowering/plan/pack/heuristics.h"
#include "lowering/plan/pack/search.h"
#include "lowering/plan/pack/sections.h"

// pack: what is tried, and for how long.
//
// Heuristics pack the intervals as they are and joined. Where that is not good enough, each
// component is searched by itself: as it is, with stacks, with chains, for the bound and for the
// capacity, in turns of growing length. After each round one turn goes to heuristics that learn,
// and one to a total halfway between what is wanted and what is there, so that more nodes are of
// use also where the goal is out of reach.
namespace braid {
namespace {

constexpr Joining kJoinings[] = {Joining::kChains, Joining::kStacks, Joining::kNone};
constexpr std::int64_t kFirstTurn = 500, kLastTurn = 1'000'000'000;  ///< nodes
constexpr std::size_t kTurnOfInterval = 3;  ///< a turn should get to the top once
/// Beyond, heuristics take long enough, and a search would hardly get to the top once.
constexpr std::size_t kMostSearched = 4'000;

std::vector<Interval> wholes(std::span<const Block> blocks) {
  std::vector<Interval> intervals;
  intervals.reserve(blocks.size());
  for (const Block& block : blocks) intervals.push_back(block.whole);
  return intervals;
}

std::int64_t total_of(std::span<const Interval> intervals, std::span<const std::int64_t> offsets) {
  std::int64_t total = 0;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    total = std::max(total, offsets[i] + intervals[i].size);
  }
  return total;
}

/// The search for one component.
class Component {
 public:
  Component(std::vector<Interval> intervals, Packing packing, std::int64_t bound, std::int64_t goal,
            SearchBudget& budget)
      : intervals_(std::move(intervals)),
        packing_(std::move(packing)),
        goal_(goal),
        failed_(goal),
        budget_(budget),
        in_turns_(intervals_) {
    for (const Joining joining : kJoinings) {
      std::vector<Block> blocks = join(intervals_, joining);
      if (!blocks_.empty() && blocks.size() == blocks_.back().size()) blocks_.pop_back();
      blocks_.push_back(std::move(blocks));
    }
    for (std::size_t j = 0; j < blocks_.size(); ++j) {
      tries_.push_back(start(j, bound));
      if (goal > bound) tries_.push_back(start(j, goal));
    }
  }

  [[nodiscard]] const Packing& packing() const { return packing_; }
  /// Improves the packing until it is as good as the goal; whether that was shown to be impossible.
  bool run() {
    const auto least = static_cast<std::int64_t>(kTurnOfInterval * intervals_.size());
    for (std::int64_t turn = std::max(kFirstTurn, least);
         packing_.total > goal_ && !budget_.spent(); turn = std::min(2 * turn, kLastTurn)) {
      for (Try& attempt : tries_) {
        if (advance(attempt, turn)) return false;
        if (attempt.hopeless && attempt.total == goal_ && is_whole(attempt)) return true;
      }
      learn(turn);
      aim_between(turn);
    }
    return false;
  }

 private:
  struct Try {
    std::size_t blocks;
    std::int64_t total;
    std::unique_ptr<PackSearch> search;
    bool hopeless = false;
  };

  [[nodiscard]] Try start(std::size_t blocks, std::int64_t total) const {
    return {blocks, total, std::make_unique<PackSearch>(wholes(blocks_[blocks]), total)};
  }
  [[nodiscard]] bool is_whole(const Try& attempt) const {
    return blocks_[attempt.blocks].size() == intervals_.size();
  }

  /// Whether a packing was found.
  bool advance(Try& attempt, std::int64_t turn) {
    if (attempt.hopeless) return false;
    const PackSearch::Outcome outcome = attempt.search->run(budget_, std::min(turn, budget_.nodes));
    attempt.hopeless = outcome == PackSearch::Outcome::kNone;
    if (outcome != PackSearch::Outcome::kFound) return false;
    packing_.offsets = offsets_of(blocks_[attempt.blocks], attempt.search->offsets());
    packing_.total = total_of(intervals_, packing_.offsets);
    return true;
  }

  /// A packing in turns costs about as much as a node for every few intervals.
  void learn(std::int64_t turn) {
    constexpr std::int64_t kIntervalsOfNode = 4;
    const auto nodes = static_cast<std::int64_t>(intervals_.size()) / kIntervalsOfNode + 1;
    for (; turn > 0 && packing_.total > goal_ && !budget_.spent(); turn -= nodes) {
      for (std::int64_t k = 0; k < nodes && !budget_.spent(); ++k) budget_.take_node();
      if (Packing packing = in_turns_.turn(); packing.total < packing_.total) {
        packing_ = std::move(packing);
      }
    }
  }

  /// One turn for a total between the last one that was missed and the best. Where these are close,
  /// from the goal on again.
  void aim_between(std::int64_t turn) {
    constexpr std::int64_t kClose = 200;
    if (packing_.total - failed_ <= packing_.total / kClose) failed_ = goal_;
    const std::int64_t middle = failed_ + (packing_.total - failed_) / 2;
    if (middle <= goal_) return;
    Try attempt = start(aims_++ % blocks_.size(), middle);
    if (!advance(attempt, turn)) failed_ = middle;
  }

  std::vector<Interval> intervals_;
  Packing packing_;
  std::int64_t goal_;
  std::int64_t failed_;
  SearchBudget& budget_;
  PackInTurns in_turns_;
  std::vector<std::vector<Block>> blocks_;  ///< joined in several ways
  std::vector<Try> tries_;
  std::size_t aims_ = 0;
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

/// Searches for one component; whether none of the capacity exists.
bool improve(std::span<const Interval> intervals, std::span<const int> ids, std::int64_t bound,
             std::int64_t goal, SearchBudget& budget, std::vector<std::int64_t>& offsets) {
  std::vector<Interval> own;
  Packing packing;
  for (const int i : ids) {
    if (intervals[i].size == 0) continue;
    own.push_back(intervals[i]);
    packing.offsets.push_back(offsets[i]);
  }
  packing.total = total_of(own, packing.offsets);
  if (packing.total <= goal || own.size() > kMostSearched) return false;
  Component component(std::move(own), std::move(packing), bound, goal, budget);
  const bool impossible = component.run();
  std::size_t next = 0;
  for (const int i : ids) {
    if (intervals[i].size > 0) offsets[i] = component.packing().offsets[next++];
  }
  return impossible;
}

}  // namespace

PackResult pack(std::span<const Interval> intervals, const PackOptions& options) {
  PackResult result;
  result.bound = most_live(intervals);
  const std::int64_t goal = std::max(result.bound, options.capacity);
  result.packing = pack_joined(intervals, goal);
  result.impossible = options.capacity > 0 && options.capacity < result.bound;
  if (result.packing.total <= goal) return result;
  SearchBudget budget{.nodes = options.nodes, .stop = options.stop};
  for (const std::vector<int>& ids : components_of(intervals)) {
    if (budget.spent()) break;
    if (improve(intervals, ids, result.bound, goal, budget, result.packing.offsets)) {
      result.impossible = true;
    }
  }
  result.packing.total = total_of(intervals, result.packing.offsets);
  result.nodes = options.nodes - budget.nodes;
  return result;
}

}  // namespace braid
