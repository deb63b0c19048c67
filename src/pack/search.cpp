#include "pack/search.h"

#include <algorithm>
#include <limits>
#include <utility>

// PackSearch: is there a packing within the capacity?
//
// After "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning" (M.
// D. Moffitt, ASPLOS 2024). From it come the compressed time, canonical packings (every interval
// rests on another or on 0), the bound floor + sum of each section, the rejection of packings that
// leave a hole for a whole interval, the split into parts that no longer touch, and several orders
// in turn.
//
// A packing is built from below. A decision does not fix an offset; it names the next interval of a
// section, the lowest of those not placed. An interval that is the next one in all its sections is
// placed on what lies there. As in shop scheduling, with sections for machines, the decisions imply
// a lowest offset for each interval:
//   - it lies above the next one of its sections; else not below the floor, the lowest offset of
//     all there;
//   - a section fails where its intervals, each from its lowest offset on, do not fit one after
//     the other;
//   - an interval that cannot be the next (the rest would not fit above it, or another one that
//     must lie low would be pushed up) lies above the first end of those that can; where only one
//     can be the next, it is;
//   - the state fails where an interval would fit whole below all that follows: moving it down
//     gives a packing with a smaller sum of offsets, which is searched elsewhere.
// An interval that is the next one somewhere is tried as the next one in all its sections before
// another is chosen. Then the section with the lowest floor branches; in half of the attempts it is
// the one with the fewest candidates, weighted by how often it has failed. Refuted states are
// remembered by a hash of all that matters to the rest, so that permutations of what lies below are
// not tried again.
namespace braid {
namespace {

constexpr std::size_t kRememberedStates = std::size_t{1} << 16U;
constexpr double kFirstFailures = 100;  ///< limit of the first attempt
constexpr double kMoreFailures = 1.2;   ///< factor on the limit from attempt to attempt

std::uint64_t mix(std::int64_t a, std::int64_t b, std::int64_t c) {
  std::uint64_t x = static_cast<std::uint64_t>(a) * 0x9E3779B97F4A7C15U;
  x ^= (static_cast<std::uint64_t>(b) + 0x7F4A7C15U) * 0xBF58476D1CE4E5B9U;
  x ^= (static_cast<std::uint64_t>(c) + 0x3039U) * 0x94D049BB133111EBU;
  x = (x ^ (x >> 29U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 32U)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31U);
}

}  // namespace

PackSearch::PackSearch(std::vector<Interval> intervals, std::int64_t capacity)
    : intervals_(std::move(intervals)),
      capacity_(capacity),
      sections_(sections_of(intervals_)),
      refuted_(kRememberedStates, 0),
      failures_of_attempt_(kFirstFailures) {
  const std::size_t count = intervals_.size();
  const std::size_t sections = sections_.count;
  members_.resize(sections);
  rest_.assign(sections, 0);
  crossing_.assign(sections, 0);
  int pairs = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const int first = sections_.first[i];
    const int last = sections_.last[i];
    pair_.push_back(pairs - first);
    pairs += last - first + 1;
    highest_.push_back(capacity - intervals_[i].size);
    for (int s = first; s <= last; ++s) {
      members_[s].push_back(i);
      rest_[s] += intervals_[i].size;
      if (s < last) ++crossing_[s];
    }
  }
  for (const std::vector<int>& members : members_) {
    open_.push_back(static_cast<std::int64_t>(members.size()));
  }
  lowest_.assign(count, 0);
  offset_.assign(count, -1);
  first_in_.assign(count, 0);
  top_.assign(sections, 0);
  floor_.assign(sections, 0);
  next_.assign(sections, kNobody);
  candidates_.assign(sections, 0);
  refused_.assign(static_cast<std::size_t>(pairs), 0);
  refused_state_.assign(sections, 0);
  is_to_visit_.assign(sections, 0);
  weight_.assign(sections, 1);
}

void PackSearch::undo(std::size_t mark) {
  for (; trail_.size() > mark; trail_.pop_back()) *trail_.back().place = trail_.back().before;
}

void PackSearch::visit(int section) {
  if (is_to_visit_[section] != 0) return;
  is_to_visit_[section] = 1;
  to_visit_.push_back(section);
}

void PackSearch::visit_sections_of(int i) {
  for (int s = sections_.first[i]; s <= sections_.last[i]; ++s) visit(s);
}

bool PackSearch::raise(int i, std::int64_t offset) {
  if (offset <= lowest_[i]) return true;
  offset = round_up(offset, intervals_[i].alignment);
  if (offset > highest_[i]) return false;
  set(lowest_[i], offset);
  visit_sections_of(i);
  return true;
}

bool PackSearch::make_first(int section, int i) {
  // It follows another interval of this section, so it cannot be the next here.
  for (int s = sections_.first[i]; s <= sections_.last[i]; ++s) {
    const int other = next_[s];
    if (other == kNobody || other == i) continue;
    if (sections_.first[other] <= section && section <= sections_.last[other]) return false;
  }
  set(next_[section], i);
  set(first_in_[i], first_in_[i] + 1);
  visit(section);
  if (const std::int64_t highest = capacity_ - rest_[section]; highest < highest_[i]) {
    if (lowest_[i] > highest) return false;
    set(highest_[i], highest);
    visit_sections_of(i);
  }
  if (first_in_[i] == sections_.last[i] - sections_.first[i] + 1) to_place_.push_back(i);
  return true;
}

void PackSearch::refuse_first(int section, int i) {
  set(refused(i, section), open_[section]);
  const std::uint64_t state = mix(i, section, open_[section]);
  set(refused_state_[section],
      static_cast<std::int64_t>(static_cast<std::uint64_t>(refused_state_[section]) ^ state));
  visit(section);
}

void PackSearch::place(int i) {
  const std::int64_t end = lowest_[i] + intervals_[i].size;
  set(offset_[i], lowest_[i]);
  for (int s = sections_.first[i]; s <= sections_.last[i]; ++s) {
    set(top_[s], end);
    set(floor_[s], end);
    set(rest_[s], rest_[s] - intervals_[i].size);
    set(next_[s], kNobody);
    set(refused_state_[s], 0);
    set(open_[s], open_[s] - 1);
    std::vector<int>& members = members_[s];
    std::swap(*std::ranges::find(members, i), members[open_[s]]);
    if (s < sections_.last[i]) set(crossing_[s], crossing_[s] - 1);
    visit(s);
  }
}

bool PackSearch::propagate() {
  bool good = true;
  for (std::size_t at = 0; good;) {
    if (!to_place_.empty()) {
      place(to_place_.back());
      to_place_.pop_back();
    } else if (at < to_visit_.size()) {
      const int section = to_visit_[at++];
      is_to_visit_[section] = 0;
      good = revise(section);
      if (!good) weight_[section] += 1;
    } else {
      break;
    }
  }
  for (const int section : to_visit_) is_to_visit_[section] = 0;
  to_visit_.clear();
  to_place_.clear();
  return good;
}

bool PackSearch::revise(int section) {
  if (open_[section] == 0) return true;
  if (!raise_members(section)) return false;
  sort_members(section);
  const std::vector<int>& members = members_[section];
  std::int64_t end = 0;
  for (std::int64_t k = 0; k < open_[section]; ++k) {
    end = std::max(end, lowest_[members[k]]) + intervals_[members[k]].size;
  }
  if (end > capacity_) return false;
  if (lowest_[members[0]] > floor_[section]) set(floor_[section], lowest_[members[0]]);
  if (floor_[section] > top_[section] && could_drop(section, floor_[section])) return false;
  return next_[section] != kNobody || find_first(section);
}

/// Raises lowest offsets by the floor, and by the next interval where it is known.
bool PackSearch::raise_members(int section) {
  const int next = next_[section];
  std::int64_t least = floor_[section];
  if (next != kNobody) {
    if (!raise(next, floor_[section])) return false;
    if (lowest_[next] > floor_[section]) set(floor_[section], lowest_[next]);
    least = lowest_[next] + intervals_[next].size;
  }
  for (std::int64_t k = 0; k < open_[section]; ++k) {
    const int i = members_[section][k];
    if (i != next && !raise(i, least)) return false;
  }
  return true;
}

/// Insertion sort: members are always nearly sorted.
void PackSearch::sort_members(int section) {
  std::vector<int>& members = members_[section];
  for (std::int64_t k = 1; k < open_[section]; ++k) {
    const int i = members[k];
    std::int64_t to = k;
    for (; to > 0 && lowest_[members[to - 1]] > lowest_[i]; --to) members[to] = members[to - 1];
    members[to] = i;
  }
}

/// Whether an unplaced interval would fit whole on what is placed, below all that follows.
bool PackSearch::could_drop(int section, std::int64_t top) const {
  for (std::int64_t k = 0; k < open_[section]; ++k) {
    const int i = members_[section][k];
    const std::int64_t size = intervals_[i].size;
    if (top_[section] + size > top || i == next_[section]) continue;
    const int first = sections_.first[i];
    const int last = sections_.last[i];
    const std::int64_t below = *std::max_element(top_.begin() + first, top_.begin() + last + 1);
    const std::int64_t end = round_up(below, intervals_[i].alignment) + size;
    bool fits = true;
    for (int s = first; s <= last && fits; ++s) fits = next_[s] != i && floor_[s] >= end;
    if (fits) return true;
  }
  return false;
}

/// Visits the unplaced members that could be the next of a section, as indices.
template <class Visit>
void PackSearch::each_candidate(int section, const Visit& visit) const {
  const std::vector<int>& members = members_[section];
  const std::int64_t open = open_[section];
  std::int64_t least = std::numeric_limits<std::int64_t>::max();  // smallest and second smallest of
                                                                  // highest_
  std::int64_t second = least;
  int owner = kNobody;
  for (std::int64_t k = 0; k < open; ++k) {
    const std::int64_t highest = highest_[members[k]];
    if (highest < least) {
      second = std::exchange(least, highest);
      owner = members[k];
    } else {
      second = std::min(second, highest);
    }
  }
  const std::int64_t latest = capacity_ - rest_[section];
  for (std::int64_t k = 0; k < open; ++k) {
    const int i = members[k];
    if (lowest_[i] > latest) continue;
    if (lowest_[i] + intervals_[i].size > (i == owner ? second : least)) continue;
    if (refused_[place_of(i, section)] != open) visit(k);
  }
}

bool PackSearch::find_first(int section) {
  const std::vector<int>& members = members_[section];
  const std::int64_t open = open_[section];
  std::int64_t found = 0;
  std::int64_t first_end = std::numeric_limits<std::int64_t>::max();
  is_candidate_.assign(static_cast<std::size_t>(open), 0);
  each_candidate(section, [&](std::int64_t k) {
    ++found;
    is_candidate_[k] = 1;
    first_end = std::min(first_end, lowest_[members[k]] + intervals_[members[k]].size);
  });
  if (found == 0) return false;
  if (candidates_[section] != found) set(candidates_[section], found);
  for (std::int64_t k = 0; k < open; ++k) {
    if (is_candidate_[k] == 0 && !raise(members[k], first_end)) return false;
    if (is_candidate_[k] != 0 && found == 1 && !make_first(section, members[k])) return false;
  }
  return true;
}

std::vector<PackSearch::Range> PackSearch::ranges_in(int from, int to) const {
  std::vector<Range> ranges;
  for (int s = from; s <= to; ++s) {
    if (open_[s] == 0) continue;
    Range range{s, s, open_[s]};
    for (; crossing_[range.to] > 0; ++range.to) {
      range.unplaced += open_[range.to + 1] - crossing_[range.to];
    }
    s = range.to;
    ranges.push_back(range);
  }
  return ranges;
}

std::uint64_t PackSearch::state_of(const Range& range) const {
  std::uint64_t state = 0;
  for (int s = range.from; s <= range.to; ++s) {
    state ^= mix(s, next_[s], -1) ^ mix(s, refused_state_[s], -2);
    for (std::int64_t k = 0; k < open_[s]; ++k) {
      const int i = members_[s][k];
      if (sections_.first[i] == s) state ^= mix(i, lowest_[i], highest_[i]);
    }
  }
  return state;
}

/// A section in which the last chosen interval is not yet the next one and may be; it is placed
/// there before others are chosen.
int PackSearch::section_to_go_on(const Range& range) const {
  const int i = chosen_;
  if (i == kNobody || offset_[i] >= 0) return kNobody;
  if (sections_.first[i] < range.from || sections_.last[i] > range.to) return kNobody;
  for (int s = sections_.first[i]; s <= sections_.last[i]; ++s) {
    if (next_[s] != kNobody || lowest_[i] > floor_[s]) continue;
    bool may_be_next = false;
    each_candidate(s, [&](std::int64_t k) { may_be_next |= members_[s][k] == i; });
    if (may_be_next) return s;
  }
  return kNobody;
}

int PackSearch::choose_section(const Range& range) const {
  const bool by_failures = (restarts_ / std::int64_t{4}) % 2 == 1;
  int best = kNobody;
  std::pair<double, double> best_key;
  for (int s = range.from; s <= range.to; ++s) {
    if (open_[s] == 0 || next_[s] != kNobody) continue;
    const auto floor = static_cast<double>(floor_[s]);
    const auto candidates = static_cast<double>(candidates_[s]);
    constexpr double kLow = 0.05;  // weight of the floor
    const double failing =
        candidates * (kLow + floor / static_cast<double>(capacity_)) / weight_[s];
    const std::pair key = by_failures ? std::pair(failing, floor) : std::pair(floor, candidates);
    if (best == kNobody || key < best_key) {
      best = s;
      best_key = key;
    }
  }
  return best;
}

int PackSearch::choose_interval(int section) const {
  int best = kNobody;
  each_candidate(section, [&](std::int64_t k) {
    const int i = members_[section][k];
    const auto key = [&](int of) { return std::pair(lowest_[of], -priority_[of]); };
    if (best == kNobody || key(i) < key(best)) best = i;
  });
  return best;
}

/// Sets priorities: area, length, size and none in turn, perturbed in later attempts.
void PackSearch::weigh_intervals() {
  priority_.clear();
  for (std::size_t i = 0; i < intervals_.size(); ++i) {
    const double length = sections_.last[i] - sections_.first[i] + 1;
    const auto size = static_cast<double>(intervals_[i].size);
    const double weights[] = {length * size, length, size, 1};
    double weight = weights[restarts_ % 4];
    constexpr double kUnit = 0x1p-53;
    if (restarts_ >= 4) weight *= 0.5 + static_cast<double>(random_() >> 11U) * kUnit;
    priority_.push_back(weight);
  }
}

/// Marks all states since the call began as refuted, unless the search was cut short.
bool PackSearch::fail(std::size_t open) {
  if (!aborted()) {
    for (std::size_t k = open; k < states_.size(); ++k) {
      refuted_[states_[k] % refuted_.size()] = states_[k];
    }
  }
  states_.resize(open);
  return false;
}

/// Solves parts that no longer touch; the first that cannot be packed ends it.
bool PackSearch::solve_ranges(std::vector<Range> ranges) {
  std::ranges::stable_sort(ranges,
                           [](const Range& a, const Range& b) { return a.unplaced < b.unplaced; });
  return std::ranges::all_of(ranges,
                             [&](const Range& range) { return solve(range.from, range.to); });
}

/// Packs the rest of some sections. If that fails, the caller undoes the changes.
bool PackSearch::solve(int from, int to) {
  const std::size_t open = states_.size();
  for (;;) {
    std::vector<Range> ranges = ranges_in(from, to);
    if (ranges.empty()) {
      states_.resize(open);
      return true;
    }
    if (ranges.size() > 1) {
      if (!solve_ranges(std::move(ranges))) return fail(open);
      states_.resize(open);
      return true;
    }
    const Range range = ranges[0];
    budget_->take_node();
    if (aborted()) return fail(open);
    const std::uint64_t state = state_of(range);
    if (is_refuted(state)) return fail(open);
    states_.push_back(state);
    int i = chosen_;
    int section = section_to_go_on(range);
    if (section == kNobody) {
      section = choose_section(range);
      if (section == kNobody) return fail(open);  // the next ones form a cycle
      i = choose_interval(section);
    }
    chosen_ = i;
    const std::size_t mark = trail_.size();
    ++depth_;
    if (make_first(section, i) && propagate() && solve(range.from, range.to)) {
      states_.resize(open);
      return true;
    }
    if (aborted()) return fail(open);
    --depth_;
    ++failures_;
    undo(mark);
    to_place_.clear();
    refuse_first(section, i);
    chosen_ = kNobody;
    if (!propagate()) {
      ++failures_;
      return fail(open);
    }
  }
}

bool PackSearch::attempt() {
  undo(0);
  depth_ = 0;
  chosen_ = kNobody;
  to_place_.clear();
  for (int s = 0; s < sections_.count; ++s) visit(s);
  return propagate() && solve(0, sections_.count - 1);
}

PackSearch::Outcome PackSearch::run(SearchBudget& budget, std::int64_t nodes) {
  budget_ = &budget;
  until_ = budget.nodes - nodes;
  while (!budget.spent() && budget.nodes > until_) {
    weigh_intervals();
    failures_ = 0;
    failure_limit_ = static_cast<std::int64_t>(failures_of_attempt_);
    if (attempt()) return Outcome::kFound;
    if (!aborted()) return Outcome::kNone;
    ++restarts_;
    failures_of_attempt_ *= kMoreFailures;
  }
  return Outcome::kOutOfBudget;
}

}  // namespace braid
