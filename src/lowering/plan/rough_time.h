#pragma once

#include "braid/graph.h"
#include "codegen/device_model.h"
#include "codegen/kernel_spec.h"

namespace braid {

/// Nanoseconds of a kernel by its settings alone, without its text: what a tuner orders candidates
/// by before it tries them. Of a matmul: tiles and what each asks of matrix unit, shared memory, L2
/// and memory. Of other kernels the settings say too little: all have the same.
[[nodiscard]] double rough_ns(const KernelSpec& spec, const Bindings& bindings,
                              const DeviceModel& device);

}  // namespace braid
