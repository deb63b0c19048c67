#pragma once

#include <cstdint>

#include "braid/graph.h"

namespace braid::testing {

/// A random tensor-parallel graph of the shapes that the graph passes look for: all-reduces in
/// front of norms with residual streams, all-gathers in front of matmuls, matmuls in front of
/// reduce-scatters, with the spellings of an export. With `near_misses`, most of them are off in
/// one place: chunks swapped or left out, the gathered value on the right, an operand that depends
/// on the gather, further users, a mutation in between, another group, another dim or reduction.
[[nodiscard]] Graph random_tp_graph(std::uint64_t seed, int world, bool near_misses);

}  // namespace braid::testing
