#pragma once

#include <cstddef>

#include "braid/device.h"

namespace braid::cuda {

/// Throws kEnvironment if $CUDA_LAUNCH_BLOCKING makes the host wait for each kernel: one thread
/// launches the kernels of all ranks, which wait for each other.
void refuse_blocking_launches();

/// Checks that kernels of different ranks run at the same time and reach each other's memory, for
/// each pair of GPUs, and on one GPU if ranks share it. Each of two kernels writes into the other's
/// memory, waits (bounded) for the other's write, and reads its own write back. Rank r of the
/// device is on GPU r modulo `gpus`. Throws kEnvironment if something serializes kernels, or naming
/// the pair of GPUs without peer access. Without a PTX compiler in the driver nothing is checked.
void check_ranks_meet(Device& device, int gpus);

/// Throws kEnvironment saying that GPU `from` does not reach the memory of GPU `to`.
[[noreturn]] void throw_no_peer_access(std::size_t from, std::size_t to, const char* reason);

}  // namespace braid::cuda
