#pragma once

#include <optional>

#include "braid/export.h"
#include "braid/rendezvous.h"

namespace braid {

/// What the launcher says about this process: one of several, each of which runs one rank.
struct LaunchedProcess {
  int rank = 0;
  int local_world = 1;    ///< processes on this machine
  SocketOptions meeting;  ///< where all processes meet, for meet_by_socket()
};

/// Reads RANK and WORLD_SIZE (braid launch, torchrun), else Open MPI's variables, else SLURM's
/// (docs/command.md). Returns nothing where this is the only process. Throws kInvalidArgument for a
/// variable that is missing or malformed.
[[nodiscard]] BRAID_API std::optional<LaunchedProcess> process_from_environment();

}  // namespace braid
