#pragma once

#include <span>
#include <vector>

#include "lowering/plan/program.h"
#include "lowering/plan/step_order.h"

namespace braid {

/// Whether a kernel of that step could write `output` where `input` lies: it promises so of the
/// input wherever that is an operand of it (Requirements::in_place).
[[nodiscard]] bool could_take_place(const Program& program, const Step& step, int output,
                                    int input);

/// For each buffer the one whose place it may take, or -1: in the workspace, as large, and used for
/// the last time by the very step that writes the buffer first, where its kernel could do so. No
/// place is taken by two. Lifetimes must be there.
[[nodiscard]] std::vector<int> places_to_take(const Program& program, const StepOrder& order);

/// Sees to it that the kernels of steps that write in place have a text that allows it.
void allow_in_place(Program& program, std::span<const int> taken);

/// The same as places_to_take of a plan that is there: which buffers lie where one dies.
[[nodiscard]] std::vector<int> places_taken(const Program& program);

}  // namespace braid
