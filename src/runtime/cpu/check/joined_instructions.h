#pragma once

#include <vector>

#include "runtime/cpu/ptx/ptx.h"
#include "runtime/cpu/translate/control_flow.h"

namespace braid::cpu {

/// For each instruction whether ptxas generates none for it: because it is merged into the user of
/// its result (a product or a shift with a sum, three terms or three bitwise operands, a constant
/// offset of an address), because it is loop-invariant and hoisted, or because an instruction of
/// the same basic block has computed the same before: compilers leave that of inline assembly.
[[nodiscard]] std::vector<bool> joined_instructions(const ptx::Function& function,
                                                    const ControlFlow& flow);

}  // namespace braid::cpu
