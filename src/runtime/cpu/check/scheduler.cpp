#include "runtime/cpu/check/scheduler.h"

#include <algorithm>

namespace braid::cpu {

namespace {

using Agent = Operation::Agent;

const Operation* find(const std::vector<Operation>& operations, const Agent& agent) {
  for (const Operation& operation : operations) {
    if (operation.agent == agent) return &operation;
  }
  return nullptr;
}

/// Launches of a stream are ordered.
bool in_program_order(const Operation& before, const Operation& after) {
  const auto& [rank, launch, block, warp] = before.agent;
  const auto& [other_rank, other_launch, other_block, other_warp] = after.agent;
  return rank == other_rank &&
         (launch < other_launch || (launch == other_launch && before.agent == after.agent));
}

}  // namespace

bool Operation::depends_on(const Operation& other) const {
  if (!writes && !other.writes) return false;
  auto a = words.begin();
  auto b = other.words.begin();
  while (a != words.end() && b != other.words.end()) {
    if (*a == *b) return true;
    ++(*a < *b ? a : b);
  }
  return false;
}

Scheduler::Scheduler(const Schedule& schedule, int world)
    : schedule_(schedule), world_(world), random_(schedule.seed) {}

std::size_t Scheduler::choose(std::span<const Operation* const> enabled) {
  switch (schedule_.kind) {
    case Schedule::Kind::kDelay:
      return delay(enabled);
    case Schedule::Kind::kAll:
      return explore(enabled);
    default:
      return static_cast<std::size_t>(random_() % enabled.size());
  }
}

/// The seed chooses a rank, a block of a rank, or one store among all.
bool Scheduler::is_victim(const Operation& operation) {
  const std::uint64_t number = schedule_.seed / 3;
  const auto world = static_cast<std::uint64_t>(world_);
  const auto rank = static_cast<std::uint64_t>(operation.rank());
  switch (schedule_.seed % 3) {
    case 0:
      return rank == number % world;
    case 1:
      return rank == number % world &&
             std::get<2>(operation.agent) == number / world % operation.blocks;
    default:
      return operation.agent == held_ && operation.writes;
  }
}

/// The victim goes on only if nobody else can; the others take turns.
std::size_t Scheduler::delay(std::span<const Operation* const> enabled) {
  for (const Operation* operation : enabled) {
    if (!operation->writes || !counted_.insert(operation->agent).second) continue;
    if (stores_++ == schedule_.seed / 3 % 64) held_ = operation->agent;
  }
  std::size_t chosen = 0;
  while (chosen < enabled.size() && is_victim(*enabled[chosen])) ++chosen;
  if (chosen == enabled.size()) chosen = 0;
  const Operation& operation = *enabled[chosen];
  if (operation.writes) {
    counted_.erase(operation.agent);
    // It is held back once; later stores of this warp are not.
    if (operation.agent == held_) held_.reset();
  }
  return chosen;
}

std::size_t Scheduler::explore(std::span<const Operation* const> enabled) {
  const auto index_of = [&](const Agent& agent) {
    std::size_t i = 0;
    while (i < enabled.size() && enabled[i]->agent != agent) ++i;
    return i;
  };
  if (at_ < steps_.size()) {
    const std::size_t chosen = index_of(steps_[at_++].operation().agent);
    return chosen < enabled.size() ? chosen : 0;
  }
  Step step;
  for (const Operation* operation : enabled) step.enabled.push_back(*operation);
  if (!steps_.empty()) {
    const Step& last = steps_.back();
    const auto sleeps_on = [&](const Operation& operation) {
      return operation.agent != last.operation().agent && !operation.depends_on(last.operation()) &&
             !find(step.asleep, operation.agent);
    };
    for (const Operation& operation : last.asleep) {
      if (sleeps_on(operation)) step.asleep.push_back(operation);
    }
    for (const Agent& agent : last.done) {
      const Operation* operation = find(last.enabled, agent);
      if (operation != nullptr && sleeps_on(*operation)) step.asleep.push_back(*operation);
    }
  }
  while (step.chosen < step.enabled.size() && find(step.asleep, step.operation().agent)) {
    ++step.chosen;
  }
  if (step.chosen == step.enabled.size()) {
    redundant_ = true;
    step.chosen = 0;
  }
  step.backtrack.insert(step.operation().agent);
  steps_.push_back(std::move(step));
  return steps_[at_++].chosen;
}

/// Adds to each step the warps that could have gone first with another result.
void Scheduler::find_races() {
  // clocks[i]: a bit for each step that happens before the end of step i.
  std::vector<std::vector<bool>> clocks(steps_.size(), std::vector<bool>(steps_.size()));
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const Operation& operation = steps_[i].operation();
    std::vector<bool>& clock = clocks[i];
    const auto join = [&](std::size_t j) {
      for (std::size_t k = 0; k <= j; ++k) clock[k] = clock[k] || clocks[j][k];
    };
    for (std::size_t j = i; j-- > 0;) {
      if (!clock[j] && in_program_order(steps_[j].operation(), operation)) join(j);
    }
    bool last = true;
    for (std::size_t j = i; j-- > 0;) {
      const Operation& before = steps_[j].operation();
      if (!before.depends_on(operation)) continue;
      if (clock[j]) continue;
      if (last) {
        if (find(steps_[j].enabled, operation.agent) != nullptr) {
          steps_[j].backtrack.insert(operation.agent);
        } else {
          for (const Operation& other : steps_[j].enabled) steps_[j].backtrack.insert(other.agent);
        }
        last = false;
      }
      join(j);
    }
    clock[i] = true;
  }
}

bool Scheduler::next_interleaving() {
  at_ = 0;
  if (schedule_.kind != Schedule::Kind::kAll) return false;
  if (!redundant_) find_races();
  redundant_ = false;
  while (!steps_.empty()) {
    Step& step = steps_.back();
    step.done.insert(step.operation().agent);
    for (const Agent& agent : step.backtrack) {
      if (step.done.contains(agent) || find(step.asleep, agent) != nullptr) continue;
      step.chosen = 0;
      while (step.operation().agent != agent) ++step.chosen;
      return true;
    }
    steps_.pop_back();
  }
  return false;
}

}  // namespace braid::cpu
