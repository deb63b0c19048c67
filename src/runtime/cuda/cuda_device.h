#pragma once

#include <memory>

#include "braid/device.h"

namespace braid {

/// Rank `rank` is on GPU `gpu`, modulo their number; the ranks after it are on the GPUs after it.
struct GpuPlace {
  int rank = 0;
  int gpu = 0;
};

/// The `cuda` device: `world` ranks over the GPUs of this machine through the driver API, which is
/// loaded at run time; each runs in its GPU's primary context (shared with the process's other
/// users of CUDA). Every GPU can address the memory of every other.
/// Throws kEnvironment when there is no driver, no GPU, a GPU that is too old, GPUs of different
/// targets, or two GPUs without peer access.
[[nodiscard]] std::unique_ptr<Device> create_cuda_device(int world, GpuPlace place = {});

}  // namespace braid
