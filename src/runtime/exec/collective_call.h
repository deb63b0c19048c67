#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "braid/graph.h"
#include "ir/collective.h"

namespace braid {

/// One collective of one rank. Chunks lie one after the other, in the order of the group's members.
struct CollectiveCall {
  enum class Op : std::uint8_t { kAllReduce, kAllGather, kReduceScatter, kAllToAll, kBroadcast };
  Op op = Op::kAllReduce;
  DType dtype = DType::kF32;
  ReduceOp reduce = ReduceOp::kSum;  ///< of an all-reduce or a reduce-scatter
  int root = 0;                      ///< of a broadcast: its index in the group
  std::uint64_t send = 0, receive = 0;
  std::size_t count = 0;  ///< elements of the operand; not 0
  /// Of an all-to-all: elements for each member, and from it; and where those begin in its operand.
  std::vector<std::size_t> send_counts, receive_counts, receive_starts;
};

/// That of member `index` of the group, for an operand of this type; without the addresses.
[[nodiscard]] CollectiveCall collective_call(const Collective& form, const TensorType& operand,
                                             const Bindings& bindings, std::int64_t index);

}  // namespace braid
