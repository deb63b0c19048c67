#include "runtime/exec/run_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

#include "runtime/exec/statements.h"

namespace braid {
namespace {

/// The groups whose ranks wait for each other.
std::set<std::string> waiting_groups(const Program& program) {
  std::set<std::string> groups;
  for (const Arena& arena : program.arenas) {
    if (arena.kind == ArenaKind::kSymmetric) groups.insert(arena.group);
  }
  for (const Step& step : program.steps) {
    if (step.kind == Step::Kind::kCollective) groups.insert(step.group);
  }
  return groups;
}

/// For each rank the first of those that it waits for, maybe through others.
std::vector<int> first_of_each(const Program& program) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(program.world));
  std::iota(all.begin(), all.end(), 0);
  std::vector<int> first(all.begin(), all.end());
  bool joined = false;
  const auto join = [&](const std::vector<std::int64_t>& members) {
    int least = first[members.front()];
    for (const std::int64_t rank : members) least = std::min(least, first[rank]);
    for (const std::int64_t rank : members) {
      joined = joined || first[rank] != least;
      first[rank] = least;
    }
  };
  do {
    joined = false;
    for (const std::string& name : waiting_groups(program)) {
      const Group& group = program.groups.find(name)->second;
      if (group.ranks.empty()) join(all);
      for (const std::vector<std::int64_t>& members : group.ranks) join(members);
    }
  } while (joined);
  return first;
}

std::string text_of(const Bindings& values) {
  std::vector<std::string> each;
  for (const auto& [name, value] : values) each.push_back(fmt::format("{} = {}", name, value));
  return fmt::format("{}", fmt::join(each, ", "));
}

}  // namespace

RunValues::RunValues(const Program& program, const std::vector<int>& ranks) {
  std::map<int, std::vector<int>> by_first;
  const std::vector<int> first = first_of_each(program);
  for (std::size_t rank = 0; rank < first.size(); ++rank) {
    by_first[first[rank]].push_back(static_cast<int>(rank));
  }
  for (const auto& [least, together] : by_first) {
    const std::size_t here = common_ranks(together, ranks).size();
    if (here != 0 && here != together.size()) together_.push_back(together);
  }
}

void RunValues::state(const Bindings& values, std::uint64_t executable, Rendezvous& rendezvous) {
  if (together_.empty() || values.empty()) return;
  const std::lock_guard lock(mutex_);
  if (!stated_.insert(values).second) return;
  for (const std::vector<int>& ranks : together_) {
    const std::string key = fmt::format("executable {}, start {}, values {}, rank {}", executable,
                                        restarts_, stated_.size(), ranks.front());
    rendezvous.state(key, ranks, text_of(values));
  }
}

void RunValues::restart() {
  const std::lock_guard lock(mutex_);
  stated_.clear();
  ++restarts_;
}

}  // namespace braid
