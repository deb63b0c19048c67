#include <algorithm>
#include <unordered_map>

#include "lowering/schedule/overlap_search.h"

// Branch and bound over the beginnings of orders. What nodes leave behind in memory does not depend
// on their order, so of two beginnings of the same nodes the one that is nowhere later will do.
namespace braid {
namespace {

std::size_t index(NodeId id) { return static_cast<std::size_t>(id); }

class Branches {
 public:
  Branches(const OverlapProblem& problem, const LongestPaths& paths, std::int64_t limit,
           std::int64_t branches, OverlapOrder& best)
      : problem_(problem),
        paths_(paths),
        limit_(limit),
        left_(branches),
        best_(best),
        needs_(problem.size(), 0),
        users_left_(problem.use.values(), 0),
        by_path_(problem.size()) {
    for (std::size_t id = 0; id < problem.size(); ++id) {
      for (NodeId needed : problem.needs(static_cast<NodeId>(id))) needs_[id] |= bit(needed);
      for (ValueId storage : problem.use.used(static_cast<NodeId>(id))) ++users_left(storage);
      by_path_[id] = static_cast<NodeId>(id);
    }
    // The best first: what takes no time, then who has the longest way to go.
    std::stable_sort(by_path_.begin(), by_path_.end(), [&](NodeId a, NodeId b) {
      const bool a_starts = problem.estimate(a).asynchronous;
      const bool b_starts = problem.estimate(b).asynchronous;
      if (a_starts != b_starts) return a_starts;
      return paths.tail_ns[index(a)] > paths.tail_ns[index(b)];
    });
  }

  bool run() {
    State start;
    start.level = problem_.use.inputs();
    start.compute_left = problem_.compute_ns();
    start.comm_left = problem_.comm_ns();
    start.ends.assign(problem_.size(), 0);
    go(start);
    return left_ > 0;
  }

 private:
  using Set = std::uint64_t;
  struct State {
    Set taken = 0;
    double now = 0, links_free = 0, compute_left = 0, comm_left = 0;
    std::int64_t level = 0;
    std::vector<double> ends;  ///< of each collective that has begun
  };

  static Set bit(NodeId id) { return Set{1} << index(id); }
  int& users_left(ValueId storage) { return users_left_[static_cast<std::size_t>(storage)]; }

  void go(const State& state) {
    if (order_.size() == problem_.size()) return finish(state);
    if (--left_ <= 0 || !takes_less(least_ns(state), best_.cost.total_ns)) return;
    if (is_dominated(state)) return;
    for (NodeId id : by_path_) {
      if ((state.taken & bit(id)) != 0 || (needs_[index(id)] & ~state.taken) != 0) continue;
      if (state.level + problem_.use.made(id) > limit_) continue;
      take(state, id);
      if (left_ <= 0) return;
    }
  }

  void take(const State& state, NodeId id) {
    const NodeEstimate& node = problem_.estimate(id);
    State next = state;
    next.taken |= bit(id);
    if (node.asynchronous) {
      next.links_free = std::max(state.now, state.links_free) + node.ns;
      next.ends[index(id)] = next.links_free;
      next.comm_left -= node.ns;
    } else {
      const NodeId waited = problem_.waited[index(id)];
      if (waited >= 0) next.now = std::max(next.now, state.ends[index(waited)]);
      next.now += node.ns;
      next.compute_left -= node.ns;
    }
    next.level += problem_.use.made(id);
    for (ValueId storage : problem_.use.used(id)) {
      if (--users_left(storage) == 0) next.level -= problem_.use.bytes(storage);
    }
    order_.push_back(id);
    go(next);
    order_.pop_back();
    for (ValueId storage : problem_.use.used(id)) ++users_left(storage);
  }

  void finish(const State& state) {
    if (!takes_less(std::max(state.now, state.links_free), best_.cost.total_ns)) return;
    best_ = {.order = order_, .cost = problem_.cost(order_)};
  }

  /// What no way to go on from there takes less than.
  double least_ns(const State& state) const {
    double least = std::max(state.now + state.compute_left,
                            std::max(state.now, state.links_free) + state.comm_left);
    double at_links = std::max(state.now, state.links_free);
    for (std::size_t id = 0; id < problem_.size(); ++id) {
      if ((state.taken & bit(static_cast<NodeId>(id))) != 0) continue;
      const NodeId waited = problem_.waited[id];
      double begin = state.now;
      if (waited >= 0 && (state.taken & bit(waited)) != 0) {
        begin = std::max(begin, state.ends[index(waited)]);
      }
      least = std::max(least, begin + paths_.tail_ns[id]);
      if (!problem_.estimates[id].asynchronous) continue;
      least = std::max(least, at_links + paths_.link_tail_ns[id]);
      at_links += problem_.estimates[id].ns;
    }
    return least;
  }

  bool is_dominated(const State& state) {
    const auto nowhere_later = [&](const State& a, const State& b) {
      if (a.now > b.now || a.links_free > std::max(b.links_free, b.now)) return false;
      for (std::size_t id = 0; id < a.ends.size(); ++id) {
        if (a.ends[id] > std::max(b.ends[id], b.now)) return false;
      }
      return true;
    };
    std::vector<State>& others = seen_[state.taken];
    for (const State& other : others) {
      if (nowhere_later(other, state)) return true;
    }
    std::erase_if(others, [&](const State& other) { return nowhere_later(state, other); });
    others.push_back(state);
    return false;
  }

  const OverlapProblem& problem_;
  const LongestPaths& paths_;
  std::int64_t limit_, left_;
  OverlapOrder& best_;
  std::vector<Set> needs_;  ///< of each node
  std::vector<int> users_left_;
  std::vector<NodeId> by_path_;
  std::vector<NodeId> order_;
  std::unordered_map<Set, std::vector<State>> seen_;
};

}  // namespace

bool improve_by_branches(const OverlapProblem& problem, const LongestPaths& paths,
                         std::int64_t limit, std::int64_t branches, OverlapOrder& best) {
  constexpr std::size_t kMostNodes = 64;
  if (problem.size() > kMostNodes) return false;
  return Branches(problem, paths, limit, branches, best).run();
}

}  // namespace braid
