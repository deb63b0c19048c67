#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <vector>

#include "braid/rendezvous.h"
#include "lowering/plan/program.h"

namespace braid {

/// The values of symbols that an executable has run with. Ranks that wait for each other must have
/// the same ones in the same order: else they would hang, or read garbage. So each rank states new
/// values at its first run of them, and the rendezvous compares. Thread safe.
class RunValues {
 public:
  /// For the ranks of this process.
  RunValues(const Program& program, const std::vector<int>& ranks);

  /// Must be called before each run. `executable` is its number, the same on all ranks.
  void state(const Bindings& values, std::uint64_t executable, Rendezvous& rendezvous);
  /// All ranks start anew, as after errors that stopped them at different runs.
  void restart();

 private:
  std::vector<std::vector<int>> together_;  ///< ranks that wait for each other, some of them here
  std::mutex mutex_;
  std::set<Bindings> stated_;
  std::uint64_t restarts_ = 0;
};

}  // namespace braid
