#pragma once

#include <span>
#include <string>
#include <tuple>

#include "lowering/pass.h"
#include "lowering/plan/program.h"

namespace braid {

/// Where a buffer will lie, before the arenas have indices.
struct Place {
  ArenaKind kind;
  std::string group;
  bool operator<(const Place& other) const {
    return std::tie(kind, group) < std::tie(other.kind, other.group);
  }
};

/// Gives a program whose steps are there its arenas, and each buffer its lifetime and its offset.
/// Remarks of plan_memory say how near each arena whose buffers share bytes comes to its bound.
void lay_out(Program& program, std::span<const Place> places, PassContext& context);

}  // namespace braid
