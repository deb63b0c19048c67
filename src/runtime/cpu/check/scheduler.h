#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "braid/checks.h"

namespace braid::cpu {

/// The next operation of a warp: a strong access. Weak accesses are checked by happens-before in
/// any order, so in a program without races only the order of strong ones can matter.
struct Operation {
  /// Rank, launch of the rank's stream since the run began, block, warp.
  using Agent = std::tuple<int, std::uint64_t, std::uint64_t, std::uint32_t>;
  Agent agent;
  std::uint64_t blocks = 1;  ///< in the grid
  std::uint32_t line = 0;
  bool writes = false;
  std::vector<std::uint64_t> words;  ///< addresses / 4, sorted and unique

  [[nodiscard]] int rank() const { return std::get<0>(agent); }
  /// Whether the order of the two operations can matter.
  [[nodiscard]] bool depends_on(const Operation& other) const;
};

/// Chooses which stopped warp continues, one operation at a time, in a checked run.
///
/// "All interleavings" means all that differ in the order of dependent operations, found by dynamic
/// partial order reduction with sleep sets (Flanagan and Godefroid, POPL 2005).
class Scheduler {
 public:
  Scheduler(const Schedule& schedule, int world);

  /// Chooses one of the operations (at least one), all of which are enabled; returns its index.
  std::size_t choose(std::span<const Operation* const> enabled);

  /// Ends a run and prepares the next one; false when none is left.
  bool next_interleaving();

 private:
  struct Step {
    std::vector<Operation> enabled;
    std::size_t chosen = 0;
    std::set<Operation::Agent> backtrack, done;
    std::vector<Operation> asleep;
    [[nodiscard]] const Operation& operation() const { return enabled[chosen]; }
  };

  std::size_t delay(std::span<const Operation* const> enabled);
  bool is_victim(const Operation& operation);
  std::size_t explore(std::span<const Operation* const> enabled);
  void find_races();

  Schedule schedule_;
  int world_;
  std::mt19937_64 random_;
  // For kDelay: the store that is held back, once it occurred.
  std::uint64_t stores_ = 0;
  std::set<Operation::Agent> counted_;
  std::optional<Operation::Agent> held_;
  // For kAll.
  std::vector<Step> steps_;
  std::size_t at_ = 0;
  bool redundant_ = false;  ///< this run repeats an earlier one
};

}  // namespace braid::cpu
