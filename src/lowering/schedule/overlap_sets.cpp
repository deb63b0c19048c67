#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "lowering/schedule/overlap_search.h"

// Dynamic programming over the sets of nodes that have run. The memory that nodes leave behind does
// not depend on their order. So among prefixes with the same nodes, one that is later in nothing
// dominates, and the memory limit only says which node may come next. A narrow program, of a few
// chains, has few such sets, however long it is, and the optimum is found. For a wide one only the
// most promising sets of each size are kept, and those of the best order so far; at first only
// orders near that one are searched.
namespace braid {
namespace {

/// Sums of the same times in another order.
bool is_later(double ns, double than_ns) { return ns > than_ns * (1 + 1e-12); }

class SetSearch {
 public:
  SetSearch(const OverlapProblem& problem, const LongestPaths& paths, std::int64_t limit,
            std::int64_t visits, OverlapOrder& best)
      : problem_(problem),
        paths_(paths),
        limit_(limit),
        visits_(visits),
        best_(best),
        number_(problem.size(), 0),
        place_(problem.size(), 0),
        users_(problem.use.values()) {
    for (std::size_t id = 0; id < problem.size(); ++id) {
      const NodeId node = id;
      if (problem.estimates[id].asynchronous) {
        number_[id] = collectives_.size();
        collectives_.push_back(node);
      }
      for (ValueId storage : problem.use.used(node)) users_of(storage).push_back(node);
    }
  }

  [[nodiscard]] bool is_spent() const { return visits_ <= 0; }
  [[nodiscard]] bool is_limited() const { return is_limited_; }

  /// Keeps `width` sets of each size, and searches orders in which no node is more than `reach`
  /// places ahead of one that it overtakes. Returns whether everything was searched that could be
  /// better.
  bool run(std::size_t width, std::size_t reach) {
    width_ = width;
    reach_ = reach;
    layers_.clear();
    steps_ = {{0, -1}};
    is_complete_ = true;
    State start = beginning();
    mark_path(start);
    keep(std::move(start));
    while (!layers_.empty()) {
      Layer layer = std::move(layers_.extract(layers_.begin()).mapped());
      choose(layer);
      for (const State& state : layer.states) {
        expand(state);
        if (is_spent()) return false;
      }
    }
    return is_complete_;
  }

 private:
  using Hash = std::uint64_t;
  static constexpr std::size_t kBits = 64;
  struct State {
    std::vector<std::uint64_t> taken;  ///< bits from that word on; all before are set
    std::size_t first_word = 0;
    Hash hash = 0;  ///< hash of all of them, which identifies the set
    std::size_t count = 0;
    std::vector<NodeId> ready;  ///< nodes that could be next
    double now = 0, compute_left = 0, comm_left = 0;
    std::size_t begun = 0;     ///< number of collectives begun
    std::vector<double> ends;  ///< end times of the collectives in flight
    std::int64_t level = 0, peak = 0;
    double least_ns = 0;  ///< lower bound of any completion
    std::size_t step = 0;
    bool is_dominated = false;
  };
  struct Layer {
    std::vector<State> states;
    std::unordered_map<Hash, std::vector<std::size_t>> of_set;
  };
  struct Step {
    std::size_t before;
    NodeId node;
  };

  static Hash hash_of(NodeId id) {
    Hash x = (static_cast<Hash>(id) + 1) * 0x9E3779B97F4A7C15U;
    x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31U);
  }
  static bool has(const State& state, NodeId id) {
    const std::size_t word = id / kBits;
    if (word < state.first_word) return true;
    if (word - state.first_word >= state.taken.size()) return false;
    return (state.taken[word - state.first_word] >> (id % kBits) & 1U) != 0;
  }
  static void add(State& state, NodeId id) {
    const std::size_t word = id / kBits - state.first_word;
    if (word >= state.taken.size()) state.taken.resize(word + 1, 0);
    state.taken[word] |= std::uint64_t{1} << (id % kBits);
    state.hash ^= hash_of(id);
    ++state.count;
    const auto open =
        std::ranges::find_if(state.taken, [](std::uint64_t bits) { return ~bits != 0; });
    state.first_word += static_cast<std::size_t>(open - state.taken.begin());
    state.taken.erase(state.taken.begin(), open);
  }
  std::vector<NodeId>& users_of(ValueId storage) { return users_[storage]; }

  State beginning() {
    State state;
    state.level = state.peak = problem_.use.inputs();
    state.compute_left = problem_.compute_ns();
    state.comm_left = problem_.comm_ns();
    for (std::size_t id = 0; id < problem_.size(); ++id) {
      const NodeId node = id;
      if (problem_.needs(node).empty()) state.ready.push_back(node);
    }
    take_free_nodes(state);
    return state;
  }

  /// The end time of a collective that has begun.
  double end_of(const State& state, NodeId collective) const {
    const std::size_t ended = state.begun - state.ends.size();
    const std::size_t number = number_[collective];
    return number < ended ? 0 : state.ends[number - ended];
  }
  static double links_free(const State& state) {
    return state.ends.empty() ? state.now : state.ends.back();
  }

  /// Bytes freed when the node has run.
  std::int64_t freed(const State& state, NodeId id) {
    std::int64_t bytes = 0;
    for (ValueId storage : problem_.use.used(id)) {
      const std::vector<NodeId>& users = users_of(storage);
      const bool is_last = std::all_of(users.rbegin(), users.rend(),
                                       [&](NodeId user) { return user == id || has(state, user); });
      if (is_last) bytes += problem_.use.bytes(storage);
    }
    return bytes;
  }
  bool fits(const State& state, NodeId id) const {
    return state.level + problem_.use.made(id) <= limit_;
  }

  void take(State& state, NodeId id) {
    const NodeEstimate& node = problem_.estimate(id);
    if (node.asynchronous) {
      state.ends.push_back(links_free(state) + node.ns);
      state.comm_left -= node.ns;
      ++state.begun;
    } else {
      const NodeId waited = problem_.waited[id];
      if (waited >= 0) state.now = std::max(state.now, end_of(state, waited));
      state.now += node.ns;
      state.compute_left -= node.ns;
    }
    const auto over =
        std::ranges::find_if(state.ends, [&](double end) { return is_later(end, state.now); });
    state.ends.erase(state.ends.begin(), over);
    state.level += problem_.use.made(id);
    state.peak = std::max(state.peak, state.level);
    state.level -= freed(state, id);
    add(state, id);
    std::erase(state.ready, id);
    for (NodeId user : problem_.users(id)) {
      const std::span<const NodeId> needs = problem_.needs(user);
      const bool is_ready =
          std::ranges::all_of(needs, [&](NodeId needed) { return has(state, needed); });
      const bool known = std::ranges::find(state.ready, user) != state.ready.end();
      if (is_ready && !known) state.ready.push_back(user);
    }
    steps_.push_back({state.step, id});
    state.step = steps_.size() - 1;
  }

  /// Takes nodes that need neither time nor memory at once.
  void take_free_nodes(State& state) {
    const auto is_free = [&](NodeId id) {
      const NodeEstimate& node = problem_.estimate(id);
      if (!node.asynchronous) {
        const NodeId waited = problem_.waited[id];
        if (node.ns > 0 || (waited >= 0 && end_of(state, waited) > state.now)) return false;
      }
      return fits(state, id) && problem_.use.made(id) <= freed(state, id);
    };
    for (;;) {
      const auto id = std::ranges::find_if(state.ready, is_free);
      if (id == state.ready.end()) return;
      take(state, *id);
    }
  }

  double least_ns(const State& state) const {
    const double links = links_free(state);
    double least = std::max(state.now + state.compute_left, links + state.comm_left);
    for (NodeId id : state.ready) least = std::max(least, state.now + paths_.tail_ns[id]);
    for (std::size_t i = 0; i < state.ends.size(); ++i) {
      const NodeId id = collectives_[state.begun - state.ends.size() + i];
      const double behind = paths_.link_tail_ns[id] - problem_.estimate(id).ns;
      least = std::max(least, state.ends[i] + behind);
    }
    if (state.begun < collectives_.size()) {
      least = std::max(least, links + paths_.link_tail_ns[collectives_[state.begun]]);
    }
    return least;
  }

  /// For prefixes with the same nodes: whether `a` dominates `b`.
  static bool nowhere_later(const State& a, const State& b) {
    if (is_later(a.now, b.now)) return false;
    for (std::size_t i = 0; i < a.ends.size(); ++i) {
      const double end = a.ends[a.ends.size() - 1 - i];
      const double other = i < b.ends.size() ? b.ends[b.ends.size() - 1 - i] : b.now;
      if (is_later(end, other)) return false;
    }
    return true;
  }

  void keep(State state) {
    if (state.count == problem_.size()) return finish(state);
    state.least_ns = std::max(state.least_ns, least_ns(state));
    if (!takes_less(state.least_ns, best_.cost.total_ns)) return;
    Layer& layer = layers_[state.count];
    std::vector<std::size_t>& same = layer.of_set[state.hash];
    for (std::size_t at : same) {
      State& other = layer.states[at];
      const bool no_worse = nowhere_later(other, state);
      if (no_worse && (other.peak <= state.peak || !nowhere_later(state, other))) return;
    }
    std::erase_if(same, [&](std::size_t at) {
      State& other = layer.states[at];
      other.is_dominated = nowhere_later(state, other);
      return other.is_dominated;
    });
    same.push_back(layer.states.size());
    layer.states.push_back(std::move(state));
  }

  /// Keeps the most promising states, and those of the best order.
  void choose(Layer& layer) {
    std::erase_if(layer.states, [](const State& state) { return state.is_dominated; });
    if (layer.states.size() <= width_) return;
    const auto key = [&](const State& state) {
      return std::tuple(!path_.contains(state.hash), state.least_ns, state.now + state.compute_left,
                        state.level, state.step);
    };
    const auto end = layer.states.begin() + width_;
    std::nth_element(layer.states.begin(), end, layer.states.end(),
                     [&](const State& a, const State& b) { return key(a) < key(b); });
    layer.states.erase(end, layer.states.end());
    is_complete_ = false;
  }

  void expand(const State& state) {
    if (!takes_less(state.least_ns, best_.cost.total_ns)) return;
    std::size_t first = problem_.size();
    for (NodeId id : state.ready) first = std::min(first, place_[id]);
    for (NodeId id : state.ready) {
      if (!fits(state, id)) {
        is_limited_ = true;
        continue;
      }
      if (place_[id] - first > reach_) {
        is_complete_ = false;
        continue;
      }
      visits_ -= static_cast<std::int64_t>(state.taken.size() + state.ready.size()) + kVisit;
      State next = state;
      take(next, id);
      take_free_nodes(next);
      keep(std::move(next));
    }
  }

  void finish(const State& state) {
    if (!takes_less(links_free(state), best_.cost.total_ns)) return;
    std::vector<NodeId> order;
    for (std::size_t at = state.step; at != 0; at = steps_[at].before) {
      order.push_back(steps_[at].node);
    }
    std::ranges::reverse(order);
    const OrderCost cost = problem_.cost(order);
    best_ = {.order = std::move(order), .cost = cost};
  }

  /// Marks the sets on the path of the best order.
  void mark_path(State state) {
    path_.clear();
    for (std::size_t at = 0; at < place_.size(); ++at) place_[best_.order[at]] = at;
    for (NodeId id : best_.order) {
      if (has(state, id)) continue;
      take(state, id);
      take_free_nodes(state);
      path_.insert(state.hash);
    }
  }

  static constexpr std::int64_t kVisit = 16;

  const OverlapProblem& problem_;
  const LongestPaths& paths_;
  std::int64_t limit_, visits_;
  OverlapOrder& best_;
  std::vector<std::size_t> number_;         ///< for each collective
  std::vector<NodeId> collectives_;         ///< in their order
  std::vector<std::size_t> place_;          ///< for each node: its place in the best order at the
                                            ///< start of the run
  std::vector<std::vector<NodeId>> users_;  ///< for each storage
  std::size_t width_ = 0, reach_ = 0;
  std::map<std::size_t, Layer> layers_;  ///< by the number of nodes that have run
  std::vector<Step> steps_;
  std::unordered_set<Hash> path_;
  bool is_complete_ = true;
  bool is_limited_ = false;  ///< something was refused for its memory
};

}  // namespace

bool improve_by_sets(const OverlapProblem& problem, const LongestPaths& paths, std::int64_t limit,
                     std::int64_t visits, OverlapOrder& best) {
  constexpr std::size_t kFirstWidth = 8, kWider = 8;
  const std::size_t reaches[] = {16, 64, problem.size()};
  SetSearch search(problem, paths, limit, visits, best);
  for (std::size_t width = kFirstWidth; !search.is_spent(); width *= kWider) {
    for (const std::size_t* reach = reaches; reach != std::end(reaches) && !search.is_spent();) {
      const double ns = best.cost.total_ns;
      const bool is_best = search.run(width, *reach);
      best.is_limited = search.is_limited();
      if (is_best) return true;
      reach = takes_less(best.cost.total_ns, ns) ? reaches : reach + 1;
    }
  }
  return false;
}

}  // namespace braid
