#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/exec/communicator.h"

namespace braid {

struct StagedOptions {
  using Reduction = std::pair<DType, ReduceOp>;
  std::string group;                  ///< for messages
  int rank = 0;                       ///< rank in the world
  std::size_t index = 0;              ///< index in the group
  std::vector<std::int64_t> members;  ///< the group's ranks in the world
  std::size_t stage_bytes = 0;        ///< size of the largest operand
  std::set<Reduction> reductions;     ///< reductions that will be requested
};

/// A communicator that works on every device: memory shared between ranks, copies, values that
/// streams write and wait for, and a small kernel per reduction. Each member copies its operand
/// into a stage that the others read. Reductions are in rank order in f32 and round once, like
/// those of our kernels. Throws kInvalidArgument for an unsupported reduction.
[[nodiscard]] std::unique_ptr<Communicator> make_staged_communicator(Device& device,
                                                                     StagedOptions options);

}  // namespace braid
