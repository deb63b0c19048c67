#pragma once

#include <optional>

#include "braid/export.h"
#include "braid/rendezvous.h"

namespace braid {

/// What a launcher says of this process: one of several, each of which runs one rank.
struct LaunchedProcess {
  int rank = 0;
  int local_world = 1;    ///< processes on this machine
  SocketOptions meeting;  ///< of all of them, for meet_by_socket()
};

/// From RANK and WORLD_SIZE (braid launch, torchrun), else from the variables of Open MPI, else
/// from SLURM's (docs/command.md). Nothing where this process is the only one. Throws
/// kInvalidArgument for a variable that is no good, or missing.
[[nodiscard]] BRAID_API std::optional<LaunchedProcess> process_from_environment();

}  // namespace braid
