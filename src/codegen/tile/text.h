#pragma once

#include <string>
#include <string_view>

#include "codegen/tile/tile.h"

namespace braid::tile {

// The text form of a tile program, at any point between two passes:
//
//     kernel scale                                  // the entry
//     warps 4
//     grid ceil_div(N, 1024)
//     param 0 input 0 divisor 16
//     param 1 output 0 divisor 16
//     layout 0 [1, 1024] reg (0,1) (0,2) (0,4) lane (0,8) ... warp (0,256) (0,512)
//     {
//       %0 = param 0 : ptr
//       %2 = range 1 : i32[1, 1024] #0             // column of each element, in layout 0
//       %3 = load.bf16 %0, %2 : f32[1, 1024] #0
//       %4 = constant 2 : f32
//       %5 = mul %3, %4 : f32[1, 1024] #0
//       store.bf16 %1, %2, %5
//     }
//
// One instruction per line: values, `=`, the operation (`.dtype` where it has one), its index, its
// operands (`_`: none), `:` type, `#` layout, and what else a pass wrote down in braces. A loop is
//
//     %20 = for %21 = %0 to %1 step %2 turns 3 carry %22 = %9 : f32[64, 64] {
//       ...
//       yield %30
//     }
//     %32 = result 0, %20 : f32[64, 64]
//
// and a role, whose threads have 232 registers each,
//
//     role 232 warps 8 {
//       ...
//     }
//
// A value may have a name instead of a number (%sum); `//` starts a comment.

/// The numbers of values are kept, so that parsing gives the same program.
[[nodiscard]] std::string print_text(const Program& program);

/// Throws kInvalidArgument with the line, what was found and what was expected. Only syntax is
/// checked; `verify` checks the rest.
[[nodiscard]] Program parse_text(std::string_view text);

}  // namespace braid::tile
