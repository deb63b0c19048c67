#pragma once

#include <cstdint>

namespace braid {

/// How a token is chosen from a model's logits, as by the op `sample` (docs/numerics.md, Sampling).
struct Sampling {
  double temperature = 1;  ///< 0: the likeliest token
  std::int32_t top_k = 0;  ///< among so many of the likeliest tokens; 0: among all
  double top_p = 1;  ///< among the likeliest tokens that together have at least this probability
  double min_p = 0;  ///< among those at least this many times as probable as the likeliest
  std::uint64_t seed = 0;
};

/// A token that was chosen.
struct ChosenToken {
  std::int32_t id = 0;
  float logprob = 0;  ///< the logarithm of its probability at temperature 1

  bool operator==(const ChosenToken&) const = default;
};

}  // namespace braid
