#pragma once

#include <string>
#include <vector>

#include "codegen/kernel_spec.h"

namespace braid::testing {

struct SampleSpec {
  std::string name;
  KernelSpec spec;
};

/// One kernel of each kind that the examples need, and the shapes that make each template take its
/// other path (tails, transposes, symbolic rows, f32). Configurations are the defaults for
/// `target`.
std::vector<SampleSpec> sample_specs(const Target& target);

}  // namespace braid::testing
