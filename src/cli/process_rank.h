#pragma once

#include <memory>
#include <string>

#include "braid/rendezvous.h"

namespace braid::cli {

/// What a launcher says of this process: one of several, each of which runs one rank.
struct ProcessRank {
  int rank = 0;
  int world = 1;        ///< processes; 1: all ranks live in this one
  int local_world = 1;  ///< of them on this machine
  std::string address = "127.0.0.1", job;
  int port = 29500;
  double timeout_s = 30;

  [[nodiscard]] bool alone() const { return world == 1; }
  /// Meets the others; null when it is alone.
  [[nodiscard]] std::shared_ptr<Rendezvous> meet() const;
};

/// From RANK and WORLD_SIZE (braid launch, torchrun), else from the variables of Open MPI, else
/// from SLURM's (docs/command.md). Throws kInvalidArgument for one that is no good, or missing.
[[nodiscard]] ProcessRank process_rank();

}  // namespace braid::cli
