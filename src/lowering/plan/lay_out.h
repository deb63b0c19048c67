#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <tuple>

#include "lowering/pass.h"
#include "lowering/plan/program.h"

namespace braid {

/// Bytes: of a buffer in its arena, and of the end of what peers map.
inline constexpr std::int64_t kBufferAlignment = 256;
inline constexpr std::int64_t kSymmetricAlignment = std::int64_t{2} << 20U;

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

/// How well an arena is used, head included.
struct ArenaUse {
  std::int64_t peak;   ///< the highest end of a buffer
  std::int64_t bound;  ///< the most that live at one time: nothing can be lower
};
[[nodiscard]] ArenaUse arena_use(const Program& program, int arena);

}  // namespace braid
