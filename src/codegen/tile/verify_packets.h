#pragma once

#include <optional>
#include <string>

#include "codegen/tile/tile.h"

namespace braid::tile {

/// What was found and what was expected in its place.
struct Problem {
  std::string found, expected;
};

/// What is wrong with an instruction on packets or their epoch, beside the types of its operands.
[[nodiscard]] std::optional<Problem> packet_problem(const Program& program, const Inst& inst);

}  // namespace braid::tile
