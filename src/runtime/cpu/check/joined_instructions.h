#pragma once

#include <vector>

#include "runtime/cpu/ptx/ptx.h"
#include "runtime/cpu/translate/control_flow.h"

namespace braid::cpu {

/// Of each instruction of a kernel, whether ptxas leaves none of its own for it: it becomes part of
/// the one that uses its result (a product or a shift and a sum, three terms or three operands of
/// bits, a constant that an address begins with), or goes out of a loop that does not change it.
[[nodiscard]] std::vector<bool> joined_instructions(const ptx::Function& function,
                                                    const ControlFlow& flow);

}  // namespace braid::cpu
