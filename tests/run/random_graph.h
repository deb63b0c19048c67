#pragma once

#include <cstdint>

#include "braid/graph.h"

namespace braid::testing {

/// A well-formed graph of the ops braid has, over 1 to 4 ranks, with one symbol "T". The values
/// stay in a range where one rounding cannot grow into a visible error: exp sees what is at most 0,
/// a divisor is positive and not tiny, and nothing subtracts a value from itself.
Graph random_graph(std::uint64_t seed);

}  // namespace braid::testing
