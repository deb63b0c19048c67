#include "runtime/exec/collective_call.h"

#include "ir/expr.h"

namespace braid {
namespace {

using Op = CollectiveCall::Op;

Op op_of(const Collective& form) {
  if (form.reduce) return form.scatter_dim ? Op::kReduceScatter : Op::kAllReduce;
  if (form.src) return Op::kBroadcast;
  return form.scatter_dim ? Op::kAllToAll : Op::kAllGather;
}

}  // namespace

CollectiveCall collective_call(const Collective& form, const TensorType& operand,
                               const Bindings& bindings, std::int64_t index) {
  CollectiveCall call;
  call.op = op_of(form);
  call.dtype = operand.dtype;
  call.reduce = form.reduce.value_or(ReduceOp::kSum);
  call.root = static_cast<int>(form.src.value_or(0));
  call.count = static_cast<std::size_t>(numel(operand.shape).evaluate(bindings));
  if (call.op != Op::kAllToAll || call.count == 0) return call;
  const std::size_t row =
      call.count / static_cast<std::size_t>(operand.shape[0].evaluate(bindings));
  const std::size_t chunk = call.count / static_cast<std::size_t>(form.ranks);
  const bool even = form.splits.empty();
  const auto elements = [&](std::int64_t from, std::int64_t to) {
    if (even) return chunk;
    return row * static_cast<std::size_t>(form.splits[from * form.ranks + to]);
  };
  for (std::int64_t member = 0; member < form.ranks; ++member) {
    call.send_counts.push_back(elements(index, member));
    call.receive_counts.push_back(elements(member, index));
    call.receive_starts.push_back(
        even ? chunk * static_cast<std::size_t>(index)
             : row * static_cast<std::size_t>(form.operand_start(member, index)));
  }
  return call;
}

}  // namespace braid
