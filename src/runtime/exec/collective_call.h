#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "braid/graph.h"
#include "ir/collective.h"

namespace braid {

/// One rank's part of a collective. Chunks are contiguous, in the order of the group's members.
struct CollectiveCall {
  enum class Op : std::uint8_t { kAllReduce, kAllGather, kReduceScatter, kAllToAll, kBroadcast };
  Op op = Op::kAllReduce;
  DType dtype = DType::kF32;
  ReduceOp reduce = ReduceOp::kSum;  ///< for an all-reduce or a reduce-scatter
  int root = 0;                      ///< for a broadcast: index in the group
  std::uint64_t send = 0, receive = 0;
  std::size_t count = 0;  ///< elements of the operand; not 0
  /// For an all-to-all: elements to and from each member, and where the latter begin in that
  /// member's operand.
  std::vector<std::size_t> send_counts, receive_counts, receive_starts;
};

/// The call of member `index` of the group, for an operand of this type; addresses are left unset.
[[nodiscard]] CollectiveCall collective_call(const Collective& form, const TensorType& operand,
                                             const Bindings& bindings, std::int64_t index);

}  // namespace braid
