#pragma once

#include <span>
#include <string>
#include <vector>

#include "braid/tensor.h"
#include "codegen/target.h"
#include "lowering/plan/program.h"

namespace braid {

// A canary is a small matmul that is compiled as any other, for a target that has no units but
// those that it tries; with `wgmma` it is two, the second of 8-bit floats. Its operands are small
// integers, so that every sum is exact and the result is known to the bit. Its ring wraps round,
// and its last tiles are not full.

/// The sets of units that canaries try, as bits (bit_of). Of a set with several no kernel has one
/// without the others. Units that every kernel needs are in none, nor is multimem, which needs
/// several GPUs.
[[nodiscard]] std::span<const unsigned> tried_units();

/// "wgmma and cp.async.bulk.tensor"
[[nodiscard]] std::string names_of_units(unsigned units);

/// What to give --units so that kernels for the target do without these: "mma.sync,cp.async".
[[nodiscard]] std::string other_units(const Target& target, unsigned units);

/// The canary of one of tried_units(), which the target has: a kernel for each output, on one rank.
[[nodiscard]] Program unit_canary(const Target& target, unsigned units);

/// What canaries multiply, in the order of their inputs, as many as they have, and what each of
/// their outputs must be.
struct CanaryTensors {
  std::vector<HostTensor> inputs;
  HostTensor expected;
};
[[nodiscard]] CanaryTensors canary_tensors();

/// How the output differs: "2 of 18496 elements of a product are wrong, the first at [3, 17]: found
/// -4, expected 12". Empty where it is right to the bit.
[[nodiscard]] std::string wrong_elements(const HostTensor& found, const HostTensor& expected);

}  // namespace braid
