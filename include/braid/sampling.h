#pragma once

#include <cstdint>
#include <span>

#include "braid/export.h"

namespace braid {

/// How a token is chosen from a model's logits.
struct Sampling {
  double temperature = 1;  ///< 0: the likeliest token
  double top_p = 1;  ///< among the likeliest tokens that together have at least this probability
  std::uint64_t seed = 0;
};

/// Chooses a token. It depends on the arguments alone: `position`, by which the tokens of a text
/// differ, takes the place of a generator's state, so a text can be continued anywhere.
[[nodiscard]] BRAID_API std::int32_t choose_token(std::span<const double> logits,
                                                  const Sampling& sampling, std::uint64_t position);
/// The logarithm of a token's probability at temperature 1.
[[nodiscard]] BRAID_API double log_probability(std::span<const double> logits, std::int32_t token);

}  // namespace braid
