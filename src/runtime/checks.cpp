#include "runtime/checks.h"

#include <fmt/format.h>

#include <utility>

#include "braid/error.h"

namespace braid {

unsigned parse_checks(std::string_view text) {
  constexpr std::pair<std::string_view, unsigned> kNames[] = {
      {"all", kCheckBounds | kCheckInit | kCheckRace | kCheckSync},
      {"bounds", kCheckBounds},
      {"init", kCheckInit},
      {"race", kCheckRace},
      {"sync", kCheckSync}};
  unsigned checks = kCheckNothing;
  while (!text.empty()) {
    const std::string_view name = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), name.size() + 1));
    unsigned found = kCheckNothing;
    for (const auto& [known, bits] : kNames) {
      if (name == known) found = bits;
    }
    if (found == kCheckNothing) {
      throw_invalid(
          "sanitize",
          fmt::format("'{}' is unknown; expected all, or some of bounds, init, race, sync", name));
    }
    checks |= found;
  }
  return checks;
}

}  // namespace braid
