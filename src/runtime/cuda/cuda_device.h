#pragma once

#include <memory>

#include "braid/device.h"

namespace braid {

/// The `cuda` device: `world` ranks over the GPUs of this machine through the driver API, which is
/// loaded at run time; rank r runs on GPU r modulo their number, in its primary context (shared
/// with the process's other users of CUDA). Every GPU can address the memory of every other.
/// Throws kEnvironment when there is no driver, no GPU, a GPU that is too old, GPUs of different
/// targets, or two GPUs without peer access.
[[nodiscard]] std::unique_ptr<Device> create_cuda_device(int world);

}  // namespace braid
