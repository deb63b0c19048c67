#pragma once

#include <cstdint>
#include <string_view>

#include "braid/export.h"

namespace braid {

/// What the cpu device's sanitizer looks for; bits.
enum Checks : unsigned {
  kCheckNothing = 0,
  kCheckBounds = 1,
  kCheckInit = 2,
  kCheckRace = 4,
  kCheckSync = 8,
  kCheckAll = kCheckBounds | kCheckInit | kCheckRace | kCheckSync,
};

/// Reads "all", or some of bounds, init, race, sync between commas; "" is nothing. Throws
/// kInvalidArgument with what was expected.
[[nodiscard]] BRAID_API Checks parse_checks(std::string_view text);

/// Who goes on where several warps could, in a checked run.
struct Schedule {
  /// How who goes on is chosen.
  enum class Kind : std::uint8_t {
    kTurns,   ///< warps and blocks in turn
    kRandom,  ///< by the seed: the same seed is the same run
    kDelay,   ///< by the seed one rank, one block or one store waits as long as anyone else can go
              ///< on
    kAll,     ///< run after run, all orders that differ (Device::next_interleaving)
  };
  Kind kind = Kind::kTurns;  ///< which
  std::uint64_t seed = 0;    ///< of kRandom and kDelay
};

/// Reads "" (turns), "7" (a seed), "delay:7" or "all". Throws kInvalidArgument with what was
/// expected.
[[nodiscard]] BRAID_API Schedule parse_schedule(std::string_view text);

}  // namespace braid
