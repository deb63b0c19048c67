#include <algorithm>
#include <random>
#include <utility>

#include "lowering/schedule/overlap_search.h"

// Single nodes go elsewhere, mostly to or from between a collective and a wait that takes time. A
// move is kept where it takes no more time: many only lead to the one that gains.
namespace braid {
namespace {

std::size_t index(NodeId id) { return static_cast<std::size_t>(id); }

/// An order whose nodes change places.
class PlacedOrder {
 public:
  PlacedOrder(const OverlapProblem& problem, std::vector<NodeId> order, std::int64_t limit)
      : problem_(problem),
        limit_(limit),
        timeline_(problem.use, std::move(order)),
        place_(problem.size(), 0) {
    update_places(0, place_.size());
  }

  [[nodiscard]] const std::vector<NodeId>& nodes() const { return timeline_.order(); }
  [[nodiscard]] std::size_t place(NodeId id) const { return place_[index(id)]; }
  /// The places where the node may stand among the others, as far as it looks.
  [[nodiscard]] std::pair<std::size_t, std::size_t> range_of(NodeId id) const {
    constexpr std::size_t kReach = 1000;
    std::size_t lowest = place(id) - std::min(place(id), kReach);
    std::size_t highest = std::min(place(id) + kReach, place_.size() - 1);
    for (NodeId needed : problem_.needs(id)) lowest = std::max(lowest, place(needed) + 1);
    for (NodeId user : problem_.users(id)) highest = std::min(highest, place(user) - 1);
    return {lowest, highest};
  }
  /// Unless the limit of memory forbids it.
  bool move(std::size_t from, std::size_t to) {
    const bool done = from < to ? timeline_.move_back(from, to, limit_).done
                                : timeline_.move_forward(to, from, limit_).done;
    if (done) update_places(std::min(from, to), std::max(from, to) + 1);
    return done;
  }

 private:
  void update_places(std::size_t first, std::size_t end) {
    for (std::size_t at = first; at < end; ++at) place_[index(nodes()[at])] = at;
  }

  const OverlapProblem& problem_;
  std::int64_t limit_;
  MemoryTimeline timeline_;
  std::vector<std::size_t> place_;
};

class Moves {
 public:
  Moves(const OverlapProblem& problem, std::int64_t limit, const OverlapOrder& start)
      : problem_(problem), order_(problem, start.order, limit), total_ns_(start.cost.total_ns) {
    find_waits();
  }

  [[nodiscard]] const std::vector<NodeId>& order() const { return order_.nodes(); }
  [[nodiscard]] double total_ns() const { return total_ns_; }

  /// Tries one move; the nodes that it looked at.
  std::int64_t step() {
    const NodeId id = some_node();
    const auto [lowest, highest] = order_.range_of(id);
    if (lowest == highest) return 1;
    const std::size_t to = some_place(id, lowest, highest);
    const std::size_t from = order_.place(id);
    if (to == from) return 1;
    const auto distance = static_cast<std::int64_t>(from < to ? to - from : from - to);
    if (!order_.move(from, to)) return 2 * distance;
    const double ns = total_of(order());
    if (takes_less(total_ns_, ns)) {
      static_cast<void>(order_.move(to, from));
    } else if (takes_less(ns, total_ns_)) {
      total_ns_ = ns;
      find_waits();
    }
    return 3 * distance + static_cast<std::int64_t>(problem_.size());
  }

 private:
  std::size_t pick(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

  double total_of(const std::vector<NodeId>& order) const {
    OverlapClock clock(problem_.estimates, problem_.waited);
    for (NodeId id : order) static_cast<void>(clock.run(id));
    return clock.total_ns();
  }

  /// Those that take time.
  void find_waits() {
    waits_.clear();
    OverlapClock clock(problem_.estimates, problem_.waited);
    for (NodeId id : order()) {
      const double before = clock.exposed_ns();
      static_cast<void>(clock.run(id));
      if (clock.exposed_ns() > before) waits_.push_back(id);
    }
  }

  /// Around a wait that takes time, or anywhere.
  NodeId some_node() {
    wait_ = waits_.empty() || pick(8) == 0 ? -1 : waits_[pick(waits_.size())];
    if (wait_ < 0) return order()[pick(problem_.size())];
    const std::size_t collective = order_.place(problem_.waited[index(wait_)]);
    const std::size_t wait = order_.place(wait_);
    const std::size_t first = collective - std::min(collective, kAround);
    const std::size_t end = std::min(wait + kAround, problem_.size());
    return order()[first + pick(end - first)];
  }

  std::size_t some_place(NodeId id, std::size_t lowest, std::size_t highest) {
    if (pick(4) != 0) return pick(2) == 0 ? lowest : highest;
    if (wait_ >= 0 && wait_ != id && pick(2) == 0) {
      const std::size_t wait = order_.place(wait_);
      return std::clamp(order_.place(id) < wait ? wait - 1 : wait, lowest, highest);
    }
    return lowest + pick(highest - lowest + 1);
  }

  static constexpr std::size_t kAround = 50;

  const OverlapProblem& problem_;
  PlacedOrder order_;
  std::vector<NodeId> waits_;
  NodeId wait_ = -1;
  double total_ns_;
  std::mt19937_64 random_;
};

}  // namespace

void improve_by_moves(const OverlapProblem& problem, std::int64_t limit, double least_ns,
                      std::int64_t visits, OverlapOrder& best) {
  Moves moves(problem, limit, best);
  while (visits > 0 && takes_less(least_ns, moves.total_ns())) visits -= moves.step();
  if (!takes_less(moves.total_ns(), best.cost.total_ns)) return;
  best = {.order = moves.order(), .cost = problem.cost(moves.order())};
}

void spread_apart(const OverlapProblem& problem, OverlapOrder& best) {
  PlacedOrder order(problem, best.order, best.cost.peak);
  for (auto id = best.order.rbegin(); id != best.order.rend(); ++id) {
    if (!problem.estimate(*id).wait) continue;
    const std::size_t last = order.range_of(*id).second;
    if (order.place(*id) < last) static_cast<void>(order.move(order.place(*id), last));
  }
  for (const NodeId id : best.order) {
    if (!problem.estimate(id).asynchronous) continue;
    const std::size_t first = order.range_of(id).first;
    if (first < order.place(id)) static_cast<void>(order.move(order.place(id), first));
  }
  best = {.order = order.nodes(), .cost = problem.cost(order.nodes())};
}

}  // namespace braid
