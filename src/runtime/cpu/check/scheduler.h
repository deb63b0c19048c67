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

/// What a warp is about to do: a strong access. Weak ones are judged by happens-before, whatever
/// the order, so that only the order of these can show in a program without races.
struct Operation {
  /// Who: rank, launch of the rank's stream since the run began, block, warp.
  using Agent = std::tuple<int, std::uint64_t, std::uint64_t, std::uint32_t>;
  Agent agent;
  std::uint64_t blocks = 1;  ///< of the grid
  std::uint32_t line = 0;
  bool writes = false;
  std::vector<std::uint64_t> words;  ///< addresses / 4, in order, each once

  [[nodiscard]] int rank() const { return std::get<0>(agent); }
  /// Whether the order of the two can matter.
  [[nodiscard]] bool depends_on(const Operation& other) const;
};

/// Chooses which of the stopped warps goes on, one operation at a time, in a checked run.
///
/// All interleavings are those that differ in the order of dependent operations: dynamic partial
/// order reduction with sleep sets (Flanagan and Godefroid, POPL 2005).
class Scheduler {
 public:
  Scheduler(const Schedule& schedule, int world);

  /// One of the operations (at least one), as an index. Those given can all go on.
  std::size_t choose(std::span<const Operation* const> enabled);

  /// The run is over: readies the next one; false when there is no other left.
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
  // A delay: the one store that is held back, once it came up.
  std::uint64_t stores_ = 0;
  std::set<Operation::Agent> counted_;
  std::optional<Operation::Agent> held_;
  // An exploration.
  std::vector<Step> steps_;
  std::size_t at_ = 0;
  bool redundant_ = false;  ///< this run repeats another one
};

}  // namespace braid::cpu
