#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <tuple>

#include "lowering/pass.h"
#include "lowering/plan/program.h"

namespace braid {

/// Alignment in bytes of a buffer in its arena, and of the size that peers map.
inline constexpr std::int64_t kBufferAlignment = 256;
inline constexpr std::int64_t kSymmetricAlignment = std::int64_t{2} << 20U;

/// The arena of a buffer, before arenas have indices.
struct ArenaKey {
  ArenaKind kind;
  std::string group;
  bool operator<(const ArenaKey& other) const {
    return std::tie(kind, group) < std::tie(other.kind, other.group);
  }
};

/// Creates the arenas of a program whose steps are complete, and sets each buffer's lifetime and
/// offset. Remarks of plan_memory say how close each shared arena comes to its bound.
void lay_out(Program& program, std::span<const ArenaKey> places, PassContext& context);

/// How well an arena is used, its head included.
struct ArenaUse {
  std::int64_t peak;   ///< the highest end of a buffer
  std::int64_t bound;  ///< the most bytes that live at one time, a lower bound
};
[[nodiscard]] ArenaUse arena_use(const Program& program, int arena);

}  // namespace braid
