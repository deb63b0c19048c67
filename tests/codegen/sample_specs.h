#pragma once

#include <string>
#include <vector>

#include "codegen/kernel/spec.h"

namespace braid::testing {

struct SampleSpec {
  std::string name;
  KernelSpec spec;
};

/// One kernel of each kind that the examples need, and the shapes that make each template take its
/// other path (tails, transposes, symbolic rows, f32). Configurations are the defaults for
/// `target`.
std::vector<SampleSpec> sample_specs(const Target& target);

/// Matmuls whose default tiles are the largest: products of each width, B along K and along N,
/// Paged attention with wide heads, of which a thread's part takes many registers.
[[nodiscard]] std::vector<SampleSpec> wide_attentions(const Target& target);

/// alone and with a collective.
std::vector<SampleSpec> large_matmuls(const Target& target);

}  // namespace braid::testing
