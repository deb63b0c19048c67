#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/exec/communicator.h"

namespace braid {

struct NcclOptions {
  std::string group;
  int rank = 0;              ///< rank in the world
  std::size_t index = 0;     ///< index in the group
  std::size_t members = 1;   ///< size of the group
  std::uint64_t timeout_ns;  ///< limit of the wait for the others
  void* callers = nullptr;   ///< the caller's ncclComm_t, or null
};

/// An NCCL communicator, created through the rendezvous or supplied by the caller. Throws
/// kEnvironment, with how to get it, if NCCL is missing.
[[nodiscard]] std::unique_ptr<Communicator> make_nccl_communicator(Device& device,
                                                                   NcclOptions options);

}  // namespace braid
