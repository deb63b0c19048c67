#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "braid/executable.h"

namespace braid {

/// Executable::prepare, and zeros in all inputs of the world's ranks, where values do not matter.
inline Executable::Plan prepare_with_zeros(Executable& executable, const World& world,
                                           const Bindings& bindings) {
  Executable::Plan plan = executable.prepare(bindings);
  for (const GraphInput& input : executable.inputs()) {
    HostTensor zeros{input.type.dtype, {}, {}};
    for (const Dim& dim : input.type.shape) zeros.shape.push_back(dim.evaluate(plan.bindings()));
    zeros.data.resize(static_cast<std::size_t>(zeros.numel()) * dtype_size(zeros.dtype));
    for (const int rank : world.ranks()) executable.set_input(rank, input.name, zeros);
  }
  return plan;
}

}  // namespace braid
