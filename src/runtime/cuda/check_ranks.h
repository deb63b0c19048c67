#pragma once

#include <cstddef>

#include "braid/device.h"

namespace braid::cuda {

/// Throws kEnvironment where $CUDA_LAUNCH_BLOCKING makes the host wait for each kernel: one thread
/// launches the kernels of all ranks, which wait for each other.
void refuse_blocking_launches();

/// Lets two kernels meet for each pair of GPUs, and on one GPU where ranks share it: each writes
/// into the memory of the other, waits (bounded) for what the other writes and reads its own
/// writing back. Rank r of the device is on GPU r modulo `gpus`. Throws kEnvironment where
/// something serialises kernels, and the pair of GPUs where peer access does not work. Without a
/// PTX compiler in the driver nothing is checked.
void check_ranks_meet(Device& device, int gpus);

/// Throws kEnvironment: GPU `from` does not reach the memory of GPU `to`.
[[noreturn]] void throw_no_peer_access(std::size_t from, std::size_t to, const char* reason);

}  // namespace braid::cuda
