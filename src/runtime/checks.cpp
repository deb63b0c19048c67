#include "braid/checks.h"

#include <charconv>
#include <utility>

#include "braid/matrix_sums.h"
#include "ir/fail.h"
#include "ir/text.h"

namespace braid {

Checks parse_checks(std::string_view text) {
  constexpr std::pair<std::string_view, Checks> kNames[] = {{"all", kCheckAll},
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
      throw_invalid("sanitize", "{} is unknown; expected all, or some of bounds, init, race, sync",
                    quote(name));
    }
    checks |= found;
  }
  return static_cast<Checks>(checks);
}

Schedule parse_schedule(std::string_view text) {
  if (text.empty()) return {};
  if (text == "all") return {Schedule::Kind::kAll, 0};
  Schedule schedule{Schedule::Kind::kRandom, 0};
  std::string_view number = text;
  if (number.starts_with("delay:")) {
    number.remove_prefix(6);
    schedule.kind = Schedule::Kind::kDelay;
  }
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), schedule.seed);
  if (error != std::errc() || end != number.data() + number.size()) {
    throw_invalid("schedule", "{} is unknown; expected a seed, delay:SEED or all", quote(text));
  }
  return schedule;
}

MatrixSums parse_matrix_sums(std::string_view text) {
  if (text.empty() || text == "rounded") return MatrixSums::kRounded;
  if (text == "hopper") return MatrixSums::kHopper;
  throw_invalid("matrix-sums", "{} is unknown; expected rounded or hopper", quote(text));
}

}  // namespace braid
