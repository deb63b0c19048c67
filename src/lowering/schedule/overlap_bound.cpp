#include "lowering/schedule/overlap_bound.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

namespace braid {
namespace {

/// Asynchronous collectives run one after the other, in one order. So those that must have ended
/// when a node begins are a prefix, and those that cannot begin before it ends are a suffix; the
/// node can overlap those between.
struct Beside {
  std::vector<NodeId> collectives;      ///< in order
  std::vector<std::size_t> first, end;  ///< for each node: its range in collectives

  explicit Beside(const OverlapProblem& problem)
      : first(problem.size(), 0), end(problem.size(), 0) {
    std::vector<std::size_t> number(problem.size(), 0);
    for (std::size_t id = 0; id < problem.size(); ++id) {
      if (problem.estimates[id].asynchronous) {
        number[id] = collectives.size();
        collectives.push_back(id);
      }
    }
    for (std::size_t id = 0; id < problem.size(); ++id) {
      for (NodeId needed : problem.needs(id)) first[id] = std::max(first[id], first[needed]);
      const NodeId waited = problem.waited[id];
      if (waited >= 0) first[id] = std::max(first[id], number[waited] + 1);
    }
    std::ranges::fill(end, collectives.size());
    for (std::size_t id = problem.size(); id-- > 0;) {
      for (NodeId user : problem.users(id)) end[id] = std::min(end[id], end[user]);
      if (problem.estimates[id].asynchronous) end[id] = std::min(end[id], number[id]);
    }
  }
};

/// The compute that each collective, or one before it, depends on.
std::vector<double> compute_before(const OverlapProblem& problem, const Beside& beside) {
  std::vector<double> ns(beside.collectives.size() + 1, 0);
  for (std::size_t id = 0; id < problem.size(); ++id) {
    if (!problem.estimates[id].asynchronous) ns[beside.end[id]] += problem.estimates[id].ns;
  }
  std::partial_sum(ns.begin(), ns.end(), ns.begin());
  return ns;
}

/// The compute that depends on each collective, or on one behind it.
std::vector<double> compute_after(const OverlapProblem& problem, const Beside& beside) {
  std::vector<double> ns(beside.collectives.size() + 1, 0);
  for (std::size_t id = 0; id < problem.size(); ++id) {
    if (!problem.estimates[id].asynchronous) ns[beside.first[id]] += problem.estimates[id].ns;
  }
  std::partial_sum(ns.rbegin(), ns.rend(), ns.rbegin());
  return ns;
}

LongestPaths paths_of(const OverlapProblem& problem, const Beside& beside) {
  LongestPaths paths{.head_ns = std::vector<double>(problem.size(), 0),
                     .tail_ns = std::vector<double>(problem.size(), 0),
                     .link_tail_ns = std::vector<double>(problem.size(), 0),
                     .leads_to = beside.end};
  const std::vector<double> before = compute_before(problem, beside);
  std::vector<double> end(problem.size(), 0);  // for a collective: on the links; for others: their
                                               // own end
  double links_free = 0;
  std::size_t number = 0;
  for (std::size_t id = 0; id < problem.size(); ++id) {
    const NodeEstimate& node = problem.estimates[id];
    double& head = paths.head_ns[id];
    for (NodeId needed : problem.needs(id)) {
      const bool only_begun = problem.estimate(needed).asynchronous;
      head = std::max(head, only_begun ? paths.head_ns[needed] : end[needed]);
    }
    if (node.asynchronous) {
      head = std::max(head, before[number++]);
      links_free = end[id] = std::max(head, links_free) + node.ns;
      continue;
    }
    if (problem.waited[id] >= 0) head = std::max(head, end[problem.waited[id]]);
    end[id] = head + node.ns;
  }
  const std::vector<double> after = compute_after(problem, beside);
  std::vector<double> behind(problem.size(), 0);  // end of a collective
  double next = 0;                                // when the links are free
  for (std::size_t id = problem.size(); id-- > 0;) {
    const NodeEstimate& node = problem.estimates[id];
    double& tail = paths.tail_ns[id];
    for (NodeId user : problem.users(id)) {
      const bool at_its_end = node.asynchronous && problem.waited[user] == static_cast<NodeId>(id);
      double& from = at_its_end ? behind[id] : tail;
      from = std::max(from, paths.tail_ns[user]);
    }
    if (node.asynchronous) {
      behind[id] = std::max({behind[id], next, after[number--]});
      next = paths.link_tail_ns[id] = node.ns + behind[id];
      tail = std::max(tail, next);
    } else {
      tail += node.ns;
    }
  }
  return paths;
}

std::vector<double> hidden_of(const OverlapProblem& problem, const Beside& beside) {
  std::vector<std::vector<std::size_t>> begin_at(beside.collectives.size());
  for (std::size_t id = 0; id < problem.size(); ++id) {
    if (problem.estimates[id].asynchronous || beside.first[id] >= beside.end[id]) continue;
    begin_at[beside.first[id]].push_back(id);
  }
  using Entry = std::pair<std::size_t, double>;  // (end, remaining time)
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  std::vector<double> hidden(problem.size(), 0);
  for (std::size_t c = 0; c < beside.collectives.size(); ++c) {
    for (std::size_t id : begin_at[c]) ready.emplace(beside.end[id], problem.estimates[id].ns);
    double left = problem.estimate(beside.collectives[c]).ns;
    while (left > 0 && !ready.empty()) {
      const auto [end, ns] = ready.top();
      ready.pop();
      if (end <= c) continue;
      const double taken = std::min(left, ns);
      left -= taken;
      hidden[beside.collectives[c]] += taken;
      if (ns > taken) ready.emplace(end, ns - taken);
    }
  }
  return hidden;
}

/// The makespan of one stream that may preempt nodes.
double preemptive_ns(const OverlapProblem& problem, const LongestPaths& paths) {
  std::vector<std::size_t> jobs;
  for (std::size_t id = 0; id < problem.size(); ++id) {
    const NodeEstimate& node = problem.estimates[id];
    if (!node.asynchronous && node.ns > 0) jobs.push_back(id);
  }
  std::ranges::sort(jobs, [&](std::size_t a, std::size_t b) {
    return std::pair(paths.head_ns[a], a) < std::pair(paths.head_ns[b], b);
  });
  std::priority_queue<std::pair<double, double>> ready;  // (tail behind it, remaining time)
  double now = 0, most = 0;
  for (std::size_t next = 0; next < jobs.size() || !ready.empty();) {
    if (ready.empty()) now = std::max(now, paths.head_ns[jobs[next]]);
    for (; next < jobs.size() && paths.head_ns[jobs[next]] <= now; ++next) {
      const double ns = problem.estimates[jobs[next]].ns;
      ready.emplace(paths.tail_ns[jobs[next]] - ns, ns);
    }
    const auto [tail, left] = ready.top();
    ready.pop();
    const double until =
        next < jobs.size() ? std::min(paths.head_ns[jobs[next]], now + left) : now + left;
    if (until < now + left) {
      ready.emplace(tail, now + left - until);
    } else {
      most = std::max(most, until + tail);
    }
    now = until;
  }
  return most;
}

}  // namespace

LongestPaths longest_paths(const OverlapProblem& problem) {
  return paths_of(problem, Beside(problem));
}

std::vector<double> hidden_ns(const OverlapProblem& problem) {
  return hidden_of(problem, Beside(problem));
}

double least_total_ns(const OverlapProblem& problem) {
  const Beside beside(problem);
  const LongestPaths paths = paths_of(problem, beside);
  const double compute = problem.compute_ns();
  const double comm = problem.comm_ns();
  const std::vector<double> hidden = hidden_of(problem, beside);
  const double beside_ns = std::accumulate(hidden.begin(), hidden.end(), 0.0);
  double least =
      std::max({compute, comm, compute + comm - beside_ns, preemptive_ns(problem, paths)});
  for (std::size_t id = 0; id < problem.size(); ++id) {
    least = std::max(least, paths.head_ns[id] + paths.tail_ns[id]);
  }
  return least;
}

}  // namespace braid
