#pragma once

#include <optional>
#include <string>

#include "codegen/tile/tile.h"

namespace braid::tile {

/// What was found, and what was expected instead.
struct Problem {
  std::string found, expected;
};

/// The problem of an instruction on packets or epochs, besides its operand types.
[[nodiscard]] std::optional<Problem> packet_problem(const Program& program, const Inst& inst);

}  // namespace braid::tile
