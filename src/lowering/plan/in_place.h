#pragma once

#include <span>
#include <vector>

#include "lowering/plan/program.h"
#include "lowering/plan/step_order.h"

namespace braid {

/// Whether the step's kernel could write `output` where `input` lies: it must promise so
/// (Requirements::in_place) for every operand that is that input.
[[nodiscard]] bool could_take_place(const Program& program, const Step& step, int output,
                                    int input);

/// For each buffer the one whose place it may take, or -1. That one must be in the workspace, as
/// large, and used for the last time by the step that first writes the buffer, whose kernel must
/// allow it. No place is taken twice. Lifetimes must be set.
[[nodiscard]] std::vector<int> places_to_take(const Program& program, const StepOrder& order);

/// Regenerates the kernels of steps that write in place, with a text that allows it.
void allow_in_place(Program& program, std::span<const int> taken);

/// The same for a finished plan: for each buffer the dying one whose place it has.
[[nodiscard]] std::vector<int> places_taken(const Program& program);

}  // namespace braid
