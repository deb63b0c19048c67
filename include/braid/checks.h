#pragma once

#include <cstdint>
#include <string_view>

#include "braid/export.h"

namespace braid {

/// The errors that the cpu device's sanitizer looks for, as bits.
enum Checks : unsigned {
  kCheckNothing = 0,
  kCheckBounds = 1,
  kCheckInit = 2,
  kCheckRace = 4,
  kCheckSync = 8,
  kCheckAll = kCheckBounds | kCheckInit | kCheckRace | kCheckSync,
};

/// Parses "all", or a comma-separated list of bounds, init, race and sync; "" is kCheckNothing.
/// Throws kInvalidArgument with what was expected.
[[nodiscard]] BRAID_API Checks parse_checks(std::string_view text);

/// The order in which a checked run executes warps and blocks that are ready.
struct Schedule {
  /// The policy that picks the next warp.
  enum class Kind : std::uint8_t {
    kTurns,   ///< round robin over warps and blocks
    kRandom,  ///< random; the same seed gives the same run
    kDelay,   ///< the seed picks one rank, block or store, which is held back while anyone else can
              ///< run
    kAll,     ///< every distinct interleaving, one per run (Inspector::next_interleaving)
  };
  Kind kind = Kind::kTurns;
  std::uint64_t seed = 0;  ///< for kRandom and kDelay
};

/// Parses "" (turns), "7" (random with that seed), "delay:7" or "all". Throws kInvalidArgument with
/// what was expected.
[[nodiscard]] BRAID_API Schedule parse_schedule(std::string_view text);

}  // namespace braid
