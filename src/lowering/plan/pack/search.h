#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <vector>

#include "lowering/plan/pack/interval.h"
#include "lowering/plan/pack/sections.h"

namespace braid {

/// What a search may still spend. `stop`, where given, is asked now and then; it is for commands
/// that a user waits for: what ranks must agree on depends on no clock.
struct SearchBudget {
  std::int64_t nodes = 0;
  std::function<bool()> stop;
  bool stopped = false;

  [[nodiscard]] bool spent() const { return stopped || nodes <= 0; }
  void take_node() {
    constexpr std::int64_t kNodesPerQuestion = 64;
    if (--nodes % kNodesPerQuestion == 0 && stop) stopped = stop();
  }
};

/// Looks for a packing of intervals within a capacity, by branch and bound over canonical packings
/// (search.cpp). It restarts by itself and keeps what it has learnt, also from run to run.
class PackSearch {
 public:
  PackSearch(std::vector<Interval> intervals, std::int64_t capacity);

  enum class Outcome : std::uint8_t { kFound, kNone, kOutOfBudget };
  /// Spends up to `nodes` of the budget.
  [[nodiscard]] Outcome run(SearchBudget& budget, std::int64_t nodes);

  [[nodiscard]] std::int64_t capacity() const { return capacity_; }
  /// Of the packing that was found.
  [[nodiscard]] const std::vector<std::int64_t>& offsets() const { return offset_; }

 private:
  static constexpr int kNobody = -1;
  static constexpr int kMostDepth = 5'000;  ///< of the recursion

  struct Range {
    int from, to;  ///< sections, inclusive
    std::int64_t unplaced;
  };

  void set(std::int64_t& place, std::int64_t value) {
    trail_.push_back({&place, place});
    place = value;
  }
  void undo(std::size_t mark);
  void visit(int section);
  void visit_sections_of(int i);
  [[nodiscard]] std::size_t place_of(int i, int section) const {
    return static_cast<std::size_t>(pair_[i]) + static_cast<std::size_t>(section);
  }
  [[nodiscard]] std::int64_t& refused(int i, int section) { return refused_[place_of(i, section)]; }

  bool raise(int i, std::int64_t offset);
  bool make_first(int section, int i);
  void refuse_first(int section, int i);
  void place(int i);
  bool propagate();
  bool revise(int section);
  bool raise_members(int section);
  void sort_members(int section);
  bool find_first(int section);
  [[nodiscard]] bool could_drop(int section, std::int64_t top) const;
  template <class Visit>
  void each_candidate(int section, const Visit& visit) const;

  bool solve(int from, int to);
  bool solve_ranges(std::vector<Range> ranges);
  [[nodiscard]] std::vector<Range> ranges_in(int from, int to) const;
  [[nodiscard]] int section_to_go_on(const Range& range) const;
  [[nodiscard]] int choose_section(const Range& range) const;
  [[nodiscard]] int choose_interval(int section) const;
  void weigh_intervals();
  bool attempt();

  [[nodiscard]] std::uint64_t state_of(const Range& range) const;
  [[nodiscard]] bool is_refuted(std::uint64_t state) const {
    return refuted_[state % refuted_.size()] == state;
  }
  bool fail(std::size_t open);
  [[nodiscard]] bool aborted() const {
    return budget_->spent() || budget_->nodes <= until_ || failures_ >= failure_limit_ ||
           depth_ > kMostDepth;
  }

  // Set once.
  std::vector<Interval> intervals_;
  std::int64_t capacity_;
  Sections sections_;
  std::vector<int> pair_;  ///< of each interval: where its pairs with sections lie, less its first

  // Changed by set() alone, so that undo() can take it back.
  std::vector<std::int64_t> lowest_, highest_;  ///< offsets that an interval may still have
  std::vector<std::int64_t> offset_;            ///< where it lies, or -1
  std::vector<std::int64_t> first_in_;          ///< in how many sections it is the next
  std::vector<std::int64_t> top_;         ///< of a section: the end of what has been placed there
  std::vector<std::int64_t> floor_;       ///< nothing else there begins below
  std::vector<std::int64_t> rest_;        ///< bytes that are not placed
  std::vector<std::int64_t> open_;        ///< how many are not: the first so many of members_
  std::vector<std::int64_t> next_;        ///< the lowest one of these, or kNobody: not known
  std::vector<std::int64_t> crossing_;    ///< those that are also in the next section
  std::vector<std::int64_t> candidates_;  ///< how many could be next
  std::vector<std::int64_t> refused_;  ///< of a pair: it was refused when so many were open, or 0
  std::vector<std::int64_t> refused_state_;  ///< of a section: a hash of these

  std::vector<std::vector<int>> members_;  ///< of each section, in order of lowest_, nearly
  struct Change {
    std::int64_t* place;
    std::int64_t before;
  };
  std::vector<Change> trail_;
  std::vector<int> to_visit_, to_place_;
  std::vector<char> is_to_visit_;
  std::vector<char> is_candidate_;  ///< scratch of find_first

  // What restarts keep.
  std::vector<double> weight_;          ///< of each section: how often it has failed
  std::vector<std::uint64_t> refuted_;  ///< states without a packing: a hash table that forgets
  std::int64_t restarts_ = 0;
  double failures_of_attempt_;

  // Of the attempt that runs.
  SearchBudget* budget_ = nullptr;
  std::int64_t until_ = 0;  ///< nodes that this run leaves
  std::int64_t failures_ = 0, failure_limit_ = 0;
  std::vector<double> priority_;  ///< of each interval: which candidate goes first
  std::vector<std::uint64_t> states_;
  int depth_ = 0;
  int chosen_ = kNobody;  ///< last
  std::mt19937_64 random_{1};
};

}  // namespace braid
