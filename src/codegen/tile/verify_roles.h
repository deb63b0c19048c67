#pragma once

#include <optional>

#include "codegen/tile/verify_packets.h"

namespace braid::tile {

/// A problem and the instruction that has it.
struct PlacedProblem {
  Id at;
  Problem problem;
};

/// What is wrong with the roles of a program, its rings and its asynchronous products, beside the
/// types of operands.
[[nodiscard]] std::optional<PlacedProblem> roles_problem(const Program& program);

}  // namespace braid::tile
