#include <fmt/format.h>

#include <limits>

#include "ir/groups.h"
#include "ir/ops.h"

// Ops on chunks, one per rank of a group, from which pipelines are built. Chunk `shift` belongs to
// the rank `shift` after this one, cyclically; a rank's own is chunk 0.
//
//     chunk_by_rank    [n*A, B] -> [A, B]        the chunk of dim 0 that belongs to that rank
//     join_by_rank     n x [A, B] -> [n*A, B]    operand k is the chunk of the rank k after this
//                                                one; the result has them in rank order
//     copy_from_peer   [A, B] -> [A, B]          that rank's operand; asynchronous
//     copy_chunk_from_peer  [n*A, B] -> [A, B]   the chunk of this rank of that rank's operand
namespace braid {
namespace {

void check_shift(const InferContext& context) {
  const auto shift = get_attr<std::int64_t>(context.attrs, "shift");
  const std::int64_t size = group_of(context.graph, context.attrs).size;
  if (shift >= 0 && shift < size) return;
  fail("/attrs/shift", "found {}; expected 0 to {}", shift, size - 1);
}

const Dim& rows(const InferContext& context) {
  const TensorType& operand = context.inputs[0];
  if (operand.shape.empty()) {
    fail("/inputs/0", "the scalar {}; expected a dim to cut", operand.str());
  }
  return operand.shape[0];
}

std::vector<TensorType> infer_chunk(const InferContext& context) {
  check_shift(context);
  const std::int64_t size = group_of(context.graph, context.attrs).size;
  const auto extent = rows(context).divide_exactly(size, context.graph.symbols());
  TensorType result = context.inputs[0];
  if (!extent) {
    fail("/inputs/0", "dim 0 of {} does not divide among the {} ranks of the group", result.str(),
         size);
  }
  result.shape[0] = *extent;
  return {result};
}

std::vector<TensorType> infer_join_by_rank(const InferContext& context) {
  const std::int64_t size = group_of(context.graph, context.attrs).size;
  if (static_cast<std::int64_t>(context.inputs.size()) != size) {
    fail("/inputs", "{} chunks; expected one for each of the {} ranks of the group",
         context.inputs.size(), size);
  }
  TensorType result = context.inputs[0];
  result.shape[0] = rows(context) * size;
  for (std::size_t i = 1; i < context.inputs.size(); ++i) {
    if (context.inputs[i] == context.inputs[0]) continue;
    fail(fmt::format("/inputs/{}", i), "a chunk is {}; expected {} as the first one",
         context.inputs[i].str(), context.inputs[0].str());
  }
  return {result};
}

std::vector<TensorType> infer_copy(const InferContext& context) {
  check_shift(context);
  return {context.inputs[0]};
}

/// Calls result_of(the group's members, this rank's place among them) for each rank.
template <class ResultOf>
EvalTensors for_each_member(const EvalContext& context, std::size_t world,
                            const ResultOf& result_of) {
  EvalTensors results(world);
  const Group& group = group_of(context.graph, context.node.attrs);
  for (const auto& members : group_instances(group, static_cast<std::int64_t>(world))) {
    for (std::size_t me = 0; me < members.size(); ++me) {
      results[members[me]].push_back(result_of(members, me));
    }
  }
  return results;
}

std::size_t shift_of(const EvalContext& context) {
  return static_cast<std::size_t>(*context.node.attr<std::int64_t>("shift"));
}

/// The result as that chunk of `whole`.
EvalTensor chunk_of(const EvalContext& context, const EvalTensor& whole, std::size_t chunk) {
  EvalTensor result = make_result(context, 0);
  const std::size_t start = chunk * result.size();
  move_elements(result, whole, [&](auto& to, const auto& from) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = from[start + i];
  });
  return result;
}

EvalTensors evaluate_chunk(const EvalContext& context, const EvalTensors& inputs) {
  return for_each_member(context, inputs.size(), [&](const auto& members, std::size_t me) {
    const EvalTensor& whole = inputs[members[me]][0];
    return chunk_of(context, whole, (me + shift_of(context)) % members.size());
  });
}

EvalTensors evaluate_join_by_rank(const EvalContext& context, const EvalTensors& inputs) {
  return for_each_member(context, inputs.size(), [&](const auto& members, std::size_t me) {
    EvalTensor result = make_result(context, 0);
    const std::vector<EvalTensor>& chunks = inputs[members[me]];
    for (std::size_t k = 0; k < chunks.size(); ++k) {
      const std::size_t start = (me + k) % members.size() * chunks[k].size();
      move_elements(result, chunks[k], [&](auto& to, const auto& from) {
        for (std::size_t i = 0; i < from.size(); ++i) to[start + i] = from[i];
      });
    }
    return result;
  });
}

EvalTensors evaluate_copy(const EvalContext& context, const EvalTensors& inputs) {
  return for_each_member(context, inputs.size(), [&](const auto& members, std::size_t me) {
    const std::int64_t peer = members[(me + shift_of(context)) % members.size()];
    return inputs[peer][0];
  });
}

EvalTensors evaluate_copy_chunk(const EvalContext& context, const EvalTensors& inputs) {
  return for_each_member(context, inputs.size(), [&](const auto& members, std::size_t me) {
    const std::int64_t peer = members[(me + shift_of(context)) % members.size()];
    return chunk_of(context, inputs[peer][0], me);
  });
}

}  // namespace

void add_chunk_ops(std::vector<OpDef>& ops) {
  const AttrDef group = {"group", AttrType::kGroup, {}};
  const AttrDef shift = {"shift",
                         AttrType::kInt,
                         {},
                         false,
                         "How many ranks after this one in the group, which wraps."};
  const auto add = [&](const char* name, OpClass op_class, int operands,
                       const std::vector<AttrDef>& attrs, auto infer, auto evaluate) {
    ops.push_back({
        .name = name,
        .op_class = op_class,
        .min_inputs = 1,
        .max_inputs = operands,
        .attrs = attrs,
        .infer = infer,
        .flops = flops_per_element(0),
        .evaluate = evaluate,
    });
  };
  add("chunk_by_rank", OpClass::kChunk, 1, {group, shift}, infer_chunk, evaluate_chunk);
  add("join_by_rank", OpClass::kChunk, std::numeric_limits<int>::max(), {group}, infer_join_by_rank,
      evaluate_join_by_rank);
  add("copy_from_peer", OpClass::kPeerCopy, 1, {group, shift}, infer_copy, evaluate_copy);
  add("copy_chunk_from_peer", OpClass::kPeerCopy, 1, {group, shift}, infer_chunk,
      evaluate_copy_chunk);
}

}  // namespace braid
