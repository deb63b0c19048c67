#include "lowering/schedule/overlap_search.h"

#include <algorithm>
#include <utility>

#include "lowering/schedule/memory_timeline.h"
#include "lowering/schedule/overlap_list.h"

namespace braid {
namespace {

// Limit of nodes visited in total: some tenths of a second.
constexpr std::int64_t kListVisits = 1'000'000;
constexpr std::int64_t kSetVisits = 10'000'000;
/// How many of the best orders seed list schedules.
constexpr std::size_t kKept = 3;

class Search {
 public:
  Search(const OverlapProblem& problem, const LongestPaths& paths, std::int64_t limit,
         double least_ns)
      : problem_(problem), paths_(paths), limit_(limit), least_ns_(least_ns) {}

  OverlapOrder run(const std::vector<NodeId>& given,
                   const std::function<std::vector<std::vector<NodeId>>()>& more) {
    keep(given);
    add_lists(given);
    if (!is_done()) add_given(more());
    const bool is_best =
        is_done() || improve_by_sets(problem_, paths_, limit_, kSetVisits, best_.front());
    const bool is_limited = best_.front().is_limited;
    lower_peak(given);
    best_.front().is_best = is_best;
    best_.front().is_limited = is_limited;
    return std::move(best_.front());
  }

 private:
  [[nodiscard]] bool is_done() const { return !takes_less(least_ns_, best_.front().cost.total_ns); }

  /// Adds given orders, and list schedules of those among them that are among the best.
  void add_given(std::vector<std::vector<NodeId>> orders) {
    for (std::vector<NodeId>& order : orders) keep(std::move(order));
    const std::vector<OverlapOrder> bases = best_;
    for (const OverlapOrder& base : bases) add_lists(base.order);
  }

  void keep(std::vector<NodeId> order) {
    const OrderCost cost = problem_.cost(order);
    if (cost.peak > limit_) return;
    const auto worse = std::ranges::find_if(
        best_, [&](const OverlapOrder& other) { return is_better(cost, other.cost); });
    const bool known =
        std::ranges::any_of(best_, [&](const OverlapOrder& other) { return other.order == order; });
    if (known) return;
    best_.insert(worse, {.order = std::move(order), .cost = cost});
    if (best_.size() > kKept) best_.pop_back();
  }

  void add_lists(const std::vector<NodeId>& base) {
    for (const bool patient : {false, true}) {
      for (const ListRule rule : kListRules) {
        if (is_done() || lists_ > kListVisits) return;
        lists_ += static_cast<std::int64_t>(problem_.size());
        keep(list_overlap(problem_, base, limit_, ranks_of(problem_, paths_, base, rule), patient));
      }
    }
  }

  /// Lowers the peak of the best order towards that of `base`, by bisection, as long as a list
  /// schedule takes no more time.
  void lower_peak(const std::vector<NodeId>& base) {
    constexpr int kTries = 5;
    OverlapOrder best = best_.front();
    std::int64_t enough = problem_.cost(base).peak;
    const double ns = best.cost.total_ns;
    lists_ = 0;
    for (int i = 0; i < kTries && enough < best.cost.peak; ++i) {
      limit_ = enough + (best.cost.peak - enough) / 2;
      best_.clear();
      keep(base);
      add_lists(base);
      if (takes_less(ns, best_.front().cost.total_ns)) {
        enough = limit_ + 1;
      } else {
        best = best_.front();
      }
    }
    best_ = {std::move(best)};
  }

  const OverlapProblem& problem_;
  const LongestPaths& paths_;
  std::int64_t limit_;
  double least_ns_;
  std::int64_t lists_ = 0;
  std::vector<OverlapOrder> best_;  ///< best first
};

/// An order whose nodes swap places, with its memory levels.
class PlacedOrder {
 public:
  PlacedOrder(const OverlapProblem& problem, const OverlapOrder& start)
      : problem_(problem),
        limit_(start.cost.peak),
        timeline_(problem.use, start.order),
        place_(problem.size(), 0) {
    update_places(0, place_.size());
  }

  [[nodiscard]] const std::vector<NodeId>& nodes() const { return timeline_.order(); }

  void move_to_front(NodeId id) {
    std::size_t first = place(id) - std::min(place(id), kReach);
    for (NodeId needed : problem_.needs(id)) first = std::max(first, place(needed) + 1);
    const std::size_t last = place(id);
    if (first < last && timeline_.move_forward(first, last, limit_).done) {
      update_places(first, last + 1);
    }
  }
  void move_to_back(NodeId id) {
    std::size_t last = std::min(place(id) + kReach, place_.size() - 1);
    for (NodeId user : problem_.users(id)) last = std::min(last, place(user) - 1);
    const std::size_t first = place(id);
    if (first < last && timeline_.move_back(first, last, limit_).done) {
      update_places(first, last + 1);
    }
  }

 private:
  static constexpr std::size_t kReach = 1000;

  [[nodiscard]] std::size_t place(NodeId id) const { return place_[id]; }
  void update_places(std::size_t first, std::size_t end) {
    for (std::size_t at = first; at < end; ++at) place_[nodes()[at]] = at;
  }

  const OverlapProblem& problem_;
  std::int64_t limit_;
  MemoryTimeline timeline_;
  std::vector<std::size_t> place_;
};

}  // namespace

void spread_apart(const OverlapProblem& problem, OverlapOrder& best) {
  PlacedOrder order(problem, best);
  for (auto id = best.order.rbegin(); id != best.order.rend(); ++id) {
    if (problem.estimate(*id).wait) order.move_to_back(*id);
  }
  for (const NodeId id : best.order) {
    if (problem.estimate(id).asynchronous) order.move_to_front(id);
  }
  best.order = order.nodes();
  best.cost = problem.cost(best.order);
}

OverlapOrder search_overlap(const OverlapProblem& problem, const LongestPaths& paths,
                            const std::vector<NodeId>& given,
                            const std::function<std::vector<std::vector<NodeId>>()>& more,
                            std::int64_t limit, double least_ns) {
  return Search(problem, paths, limit, least_ns).run(given, more);
}

}  // namespace braid
