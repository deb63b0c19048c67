#pragma once

#include <memory>

#include "braid/device.h"

namespace braid {

/// Rank `rank` uses GPU `gpu` modulo their number; later ranks use the following GPUs.
struct GpuPlace {
  int rank = 0;
  int gpu = 0;
};

/// Creates the `cuda` device: `world` ranks on the GPUs of this machine through the driver API,
/// which is loaded at run time. Each GPU's primary context is used, shared with the process's other
/// users of CUDA. Every GPU can address the memory of every other. Throws kEnvironment without a
/// driver or GPU, for a GPU that is too old, for GPUs of different targets, and for two GPUs
/// without peer access.
[[nodiscard]] std::unique_ptr<Device> create_cuda_device(int world, GpuPlace place = {});

}  // namespace braid
