#include "lowering/schedule/overlap_list.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>

#include "lowering/schedule/memory_guard.h"

namespace braid {
namespace {

class ListScheduler {
 public:
  ListScheduler(const OverlapProblem& problem, std::span<const NodeId> base, std::int64_t limit,
                const std::vector<int>& ranks, bool patient)
      : problem_(problem),
        ranks_(ranks),
        patient_(patient),
        guard_(problem.use, base, limit),
        clock_(problem.estimates, problem.waited),
        unmet_(problem.size(), 0),
        is_taken_(problem.size(), false) {
    order_.reserve(problem.size());
  }

  std::vector<NodeId> run() {
    for (std::size_t id = 0; id < unmet_.size(); ++id) {
      unmet_[id] = problem_.needs(id).size();
      if (unmet_[id] == 0) push(id);
    }
    while (guard_.next() >= 0) {
      if (take_collective() || take_ended_wait() || take_compute()) continue;
      // The next node of the given order may be taken, but a wait that takes time comes last.
      const NodeId next = guard_.next();
      if (!problem_.estimate(next).wait && take(next)) continue;
      if (!take_first_wait()) static_cast<void>(take(next));
    }
    return std::move(order_);
  }

 private:
  void push(NodeId id) {
    const NodeEstimate& node = problem_.estimate(id);
    if (node.asynchronous) {
      collectives_.push_back(id);
    } else if (node.wait) {
      const NodeId waited = problem_.waited[id];
      waits_.emplace(waited < 0 ? 0 : clock_.end_ns(waited), ranks_[id], id);
    } else {
      compute_.emplace(ranks_[id], id);
    }
  }

  bool take(NodeId id) {
    if (!guard_.take(id)) return false;
    static_cast<void>(clock_.run(id));
    order_.push_back(id);
    is_taken_[id] = true;
    for (NodeId user : problem_.users(id)) {
      if (--unmet_[user] == 0) push(user);
    }
    return true;
  }

  /// Collectives keep their order, so at most one is ready.
  bool take_collective() {
    if (collectives_.empty()) return false;
    const NodeId id = collectives_.back();
    if (is_taken_[id] || take(id)) {
      // Another one may be ready now.
      std::erase(collectives_, id);
      return true;
    }
    return false;
  }

  bool take_first_wait() {
    drop_taken_waits();
    return !waits_.empty() && take(std::get<2>(waits_.top()));
  }
  bool take_ended_wait() {
    drop_taken_waits();
    return !waits_.empty() && std::get<0>(waits_.top()) <= clock_.now_ns() && take_first_wait();
  }
  void drop_taken_waits() {
    while (!waits_.empty() && is_taken_[std::get<2>(waits_.top())]) waits_.pop();
  }

  bool take_compute() {
    constexpr std::size_t kTries = 8;
    refused_.clear();
    bool done = false;
    while (!done && !compute_.empty() && refused_.size() < kTries) {
      const auto [rank, id] = compute_.top();
      if (is_taken_[id]) {
        compute_.pop();
        continue;
      }
      if (patient_ && is_worth_waiting(rank, id)) {
        done = take_first_wait();
        break;
      }
      compute_.pop();
      done = take(id);
      if (!done) refused_.emplace_back(rank, id);
    }
    for (const auto& entry : refused_) compute_.push(entry);
    return done;
  }

  /// Whether to take the next wait because it is over before that node would be.
  bool is_worth_waiting(int rank, NodeId id) {
    drop_taken_waits();
    if (waits_.empty()) return false;
    const auto& [end, wait_rank, wait] = waits_.top();
    return wait_rank < rank && end - clock_.now_ns() < problem_.estimate(id).ns;
  }

  using Ready = std::pair<int, NodeId>;
  using Wait = std::tuple<double, int, NodeId>;  ///< (end time, rank, node)

  const OverlapProblem& problem_;
  const std::vector<int>& ranks_;
  bool patient_;
  MemoryGuard guard_;
  OverlapClock clock_;
  std::vector<std::size_t> unmet_;  ///< for each node: predecessors that have not run
  std::vector<bool> is_taken_;
  std::vector<NodeId> order_;
  std::vector<NodeId> collectives_;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> compute_;
  std::priority_queue<Wait, std::vector<Wait>, std::greater<>> waits_;
  std::vector<Ready> refused_;
};

}  // namespace

std::vector<int> ranks_of(const OverlapProblem& problem, const LongestPaths& paths,
                          std::span<const NodeId> base, ListRule rule) {
  const bool by_collective =
      rule == ListRule::kNextCollective || rule == ListRule::kGivenCollective;
  const bool by_path = rule == ListRule::kLongestPath || rule == ListRule::kNextCollective;
  std::vector<std::tuple<std::size_t, double, std::size_t>> keys;
  keys.reserve(problem.size());
  for (std::size_t at = 0; at < base.size(); ++at) {
    const NodeId id = base[at];
    keys.emplace_back(by_collective ? paths.leads_to[id] : 0, by_path ? -paths.tail_ns[id] : 0, at);
  }
  std::ranges::sort(keys);
  std::vector<int> ranks(problem.size());
  for (std::size_t i = 0; i < keys.size(); ++i) ranks[base[std::get<2>(keys[i])]] = i;
  return ranks;
}

std::vector<NodeId> list_overlap(const OverlapProblem& problem, std::span<const NodeId> base,
                                 std::int64_t limit, const std::vector<int>& ranks, bool patient) {
  return ListScheduler(problem, base, limit, ranks, patient).run();
}

}  // namespace braid
