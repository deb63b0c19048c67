#pragma once

#include <string_view>

namespace braid {

/// What the cpu device's sanitizer looks for; bits.
enum Checks : unsigned {
  kCheckNothing = 0,
  kCheckBounds = 1,
  kCheckInit = 2,
  kCheckRace = 4,
  kCheckSync = 8,
};

/// Reads "all", or some of bounds, init, race, sync between commas; "" is nothing. Throws
/// kInvalidArgument with what was expected.
[[nodiscard]] unsigned parse_checks(std::string_view text);

}  // namespace braid
