#pragma once

#include <map>
#include <string>
#include <vector>

#include "lowering/plan/program.h"
#include "lowering/plan/step_order.h"

namespace braid {

/// The steps in which all ranks of a group meet, in the order of issue.
using Barriers = std::map<std::string, std::vector<int>, std::less<>>;
[[nodiscard]] Barriers barriers_of(const Program& program);

/// For each buffer whether its bytes must survive between runs, for the caller, for peers or for
/// the next run: parameters, io, state, flags, scratch, and what peers write without a barrier
/// before.
[[nodiscard]] std::vector<bool> outlive_runs(const Program& program, const StepOrder& order);

/// From the first to the last step that needs a buffer, in the order of issue.
struct StepRange {
  int first = 0, last = 0;
  bool operator==(const StepRange&) const = default;
};

/// The lifetime of each buffer; a slice has that of its buffer. It ends where every stream is known
/// to follow the last use: at that step, or at the next synchronization with the streams that still
/// use the buffer. What peers read lives until the group's next barrier. What peers write lives
/// from the group's last barrier before, and, where a copy writes it, until the next one. What
/// outlives runs lives in the whole program.
[[nodiscard]] std::vector<StepRange> lifetimes(const Program& program, const StepOrder& order);

}  // namespace braid
