#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "pack/interval.h"
#include "pack/sections.h"

namespace braid {

/// The remaining budget of a search. `stop`, where set, is polled; it serves commands that a user
/// waits for. Results that ranks must agree on depend on no clock.
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

/// Searches for a packing within a capacity by branch and bound over canonical packings
/// (search.cpp). It restarts by itself and keeps what it has learnt, also between runs.
class PackSearch {
 public:
  PackSearch(std::vector<Interval> intervals, std::int64_t capacity);

  enum class Outcome : std::uint8_t { kFound, kNone, kOutOfBudget };
  /// Searches for up to `nodes` of the budget.
  [[nodiscard]] Outcome run(SearchBudget& budget, std::int64_t nodes);

  [[nodiscard]] std::int64_t capacity() const { return capacity_; }
  /// The offsets of the packing that was found.
  [[nodiscard]] const std::vector<std::int64_t>& offsets() const { return offset_; }

 private:
  static constexpr int kNobody = -1;
  static constexpr int kMostDepth = 5'000;  ///< limit of the recursion

  struct Range {
    int from, to;  ///< sections, both inclusive
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

  // Constant after construction.
  std::vector<Interval> intervals_;
  std::int64_t capacity_;
  Sections sections_;
  std::vector<int> pair_;  ///< for each interval: index of its pairs with sections, less its first
                           ///< section

  // Changed only by set(), so that undo() can restore them.
  std::vector<std::int64_t> lowest_, highest_;  ///< range of offsets that an interval may still
                                                ///< have
  std::vector<std::int64_t> offset_;            ///< an interval's offset, or -1
  std::vector<std::int64_t> first_in_;          ///< number of sections in which an interval is the
                                                ///< next
  std::vector<std::int64_t> top_;         ///< for each section: the end of what is placed there
  std::vector<std::int64_t> floor_;       ///< lower bound of all other offsets there
  std::vector<std::int64_t> rest_;        ///< bytes not placed
  std::vector<std::int64_t> open_;        ///< number not placed: the first ones of members_
  std::vector<std::int64_t> next_;        ///< the lowest of these, or kNobody if undecided
  std::vector<std::int64_t> crossing_;    ///< those that are also in the next section
  std::vector<std::int64_t> candidates_;  ///< number that could be next
  std::vector<std::int64_t> refused_;     ///< for each pair: number open when it was refused, or 0
  std::vector<std::int64_t> refused_state_;  ///< for each section: a hash of these

  std::vector<std::vector<int>> members_;  ///< for each section, nearly sorted by lowest_
  struct Change {
    std::int64_t* place;
    std::int64_t before;
  };
  std::vector<Change> trail_;
  std::vector<int> to_visit_, to_place_;
  std::vector<char> is_to_visit_;
  std::vector<char> is_candidate_;  ///< scratch of find_first

  // State kept across restarts.
  std::vector<double> weight_;          ///< for each section: how often it has failed
  std::vector<std::uint64_t> refuted_;  ///< states without a packing: a lossy hash table
  std::int64_t restarts_ = 0;
  double failures_of_attempt_;

  // State of the current attempt.
  SearchBudget* budget_ = nullptr;
  std::int64_t until_ = 0;  ///< node count at which this run ends
  std::int64_t failures_ = 0, failure_limit_ = 0;
  std::vector<double> priority_;  ///< for each interval: order of candidates
  std::vector<std::uint64_t> states_;
  int depth_ = 0;
  int chosen_ = kNobody;  ///< the last chosen interval
  std::mt19937_64 random_{1};
};

}  // namespace braid
