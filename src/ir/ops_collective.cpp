#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "ir/collective.h"
#include "ir/groups.h"
#include "ir/mapped.h"
#include "ir/ops.h"
#include "ir/pointwise.h"
#include "ir/text.h"

namespace braid {
namespace {

std::vector<TensorType> infer_collective(CollectiveKind kind, std::size_t operands,
                                         const InferContext& context) {
  std::vector<TensorType> results;
  for (std::size_t i = 0; i < operands; ++i) {
    const TensorType& operand = context.inputs[i];
    const Collective form = collective_of(context.graph, kind, context.attrs, operand);
    results.push_back({operand.dtype, form.result_shape(operand.shape, context.graph.symbols())});
  }
  return results;
}

/// The algorithms that lowering may assign to such an op with one operand, out of place.
std::vector<std::string_view> algorithms_of(CollectiveKind kind) {
  using K = CollectiveKind;
  using A = Algorithm;
  std::vector<A> known{A::kNone, A::kOneShot};
  if (kind == K::kAllReduce) known.insert(known.end(), {A::kTwoShot, A::kPackets, A::kMultimem});
  if (kind == K::kAllGather || kind == K::kReduceScatter || kind == K::kAllReduce) {
    known.push_back(A::kInKernel);
  }
  if (kind != K::kShardDimAllToAll) known.push_back(A::kByCommunicator);
  std::vector<std::string_view> names;
  for (const A algorithm : known) names.push_back(algorithm_name(algorithm));
  return names;
}

/// all_gather_into_tensor_out(x, out)
std::vector<TensorType> infer_out(CollectiveKind kind, const InferContext& context) {
  std::vector<TensorType> results = infer_collective(kind, 1, context);
  if (results[0] != context.inputs[1]) {
    fail("/inputs/1", "`out` is {}; expected {}", context.inputs[1].str(), results[0].str());
  }
  return results;
}

/// T is double or Int.
template <class T>
T reduced(ReduceOp op, const std::vector<T>& values) {
  T result = values[0];
  for (std::size_t r = 1; r < values.size(); ++r) {
    const T x = values[r];
    switch (op) {
      case ReduceOp::kSum:
      case ReduceOp::kAvg:
        result = result + x;
        break;
      case ReduceOp::kProduct:
        result = result * x;
        break;
      case ReduceOp::kMax:
        result = maximum(result, x);
        break;
      case ReduceOp::kMin:
        result = minimum(result, x);
        break;
    }
  }
  return result;
}

/// Element `at` of the result: the ranks' elements at `offset`, reduced in rank order.
void reduce_element(ReduceOp op, const std::vector<const EvalTensor*>& operands, std::size_t offset,
                    EvalTensor& result, std::size_t at) {
  if (!is_float(result.dtype)) {
    const auto values =
        mapped(operands, [&](const EvalTensor* x) { return Int{x->integers[offset]}; });
    result.integers[at] = reduced(op, values).value;
    return;
  }
  const auto values = mapped(operands, [&](const EvalTensor* x) { return x->data[offset]; });
  result.data[at] = reduced(op, values);
  if (op == ReduceOp::kAvg) result.data[at] /= static_cast<double>(values.size());
}

/// The result of rank `me`, whose operands are those of the group's members in order.
void fill(const Collective& form, std::int64_t me, const std::vector<const EvalTensor*>& operands,
          EvalTensor& result) {
  const std::vector<std::int64_t>& shape = operands[0]->shape;
  const bool even = form.splits.empty();
  const std::int64_t chunk = form.gather_dim ? result.shape[*form.gather_dim] / form.ranks : 0;
  const std::int64_t own = form.scatter_dim ? me * (shape[*form.scatter_dim] / form.ranks) : 0;
  std::vector<std::int64_t> index(result.shape.size(), 0);
  std::vector<std::int64_t> at;
  for (std::size_t i = 0; i < result.size(); ++i) {
    at = index;
    std::int64_t from = form.gather_dim ? 0 : form.src.value_or(me);
    if (form.gather_dim && even) {
      from = at[*form.gather_dim] / chunk;
      at[*form.gather_dim] %= chunk;
    } else if (form.gather_dim) {
      while (form.result_start(from + 1, me) <= at[0]) ++from;
      at[0] += form.operand_start(from, me) - form.result_start(from, me);
    }
    if (form.scatter_dim && even) at[*form.scatter_dim] += own;
    std::size_t offset = 0;
    for (std::size_t d = 0; d < at.size(); ++d) {
      offset = offset * static_cast<std::size_t>(shape[d]) + static_cast<std::size_t>(at[d]);
    }
    if (form.reduce) {
      reduce_element(*form.reduce, operands, offset, result, i);
    } else {
      move_elements(result, *operands[from],
                    [&](auto& out, const auto& in) { out[i] = in[offset]; });
    }
    for (std::size_t d = index.size(); d-- > 0 && ++index[d] == result.shape[d];) index[d] = 0;
  }
}

EvalTensors evaluate_collective(const EvalContext& context, const EvalTensors& inputs) {
  const Node& node = context.node;
  const Group& group = group_of(context.graph, node);
  EvalTensors outputs(inputs.size());
  for (const auto& members : group_instances(group, static_cast<std::int64_t>(inputs.size()))) {
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const auto operands = mapped(members, [&](std::int64_t rank) { return &inputs[rank][i]; });
      const Collective form =
          collective_of(context.graph, node, context.graph.type(node.inputs[i]));
      // Without a scatter all ranks get the same result.
      const bool alike = !form.scatter_dim;
      EvalTensor result;
      for (std::size_t me = 0; me < members.size(); ++me) {
        if (me == 0 || !alike) {
          result = make_result(context, i);
          fill(form, static_cast<std::int64_t>(me), operands, result);
        }
        outputs[members[me]].push_back(result);
      }
    }
  }
  return outputs;
}

/// A reduction costs one operation per operand element that it reads.
double collective_flops(CollectiveKind kind, std::span<const TensorType> inputs,
                        const Bindings& bindings) {
  if (kind != CollectiveKind::kAllReduce && kind != CollectiveKind::kReduceScatter) return 0;
  double count = 0;
  for (const TensorType& type : inputs) count += numel_at(type, bindings);
  return count;
}

}  // namespace

void add_collective_ops(std::vector<OpDef>& ops) {
  const AttrDef group = {"group", AttrType::kGroup, {}};
  const AttrDef reduce_op = {.name = "reduce_op",
                             .type = AttrType::kString,
                             .fallback = {},
                             .choices = {kReduceOpNames.begin(), kReduceOpNames.end()}};
  const AttrDef dim = {"dim", AttrType::kInt, std::int64_t{0}, false,
                       "The one that is gathered or scattered."};
  using K = CollectiveKind;
  constexpr int kMany = std::numeric_limits<int>::max();

  const auto add = [&](const std::string& name, K kind, int operands, Mutates mutates,
                       std::vector<AttrDef> attrs) {
    const bool coalesced = operands == kMany;
    const bool is_lowered = mutates == Mutates::kNothing && !coalesced;
    const AttrDef algorithm = {
        .name = "algorithm",
        .type = AttrType::kString,
        .fallback = std::string(),
        .about = "Set by lowering: but for nccl, the node is synchronous then and needs no wait.",
        .choices = is_lowered ? algorithms_of(kind) : std::vector<std::string_view>{""}};
    attrs.insert(attrs.end(), {group, algorithm});
    ops.push_back({
        .name = name,
        .op_class = OpClass::kCollective,
        .min_inputs = coalesced ? 1 : operands,
        .max_inputs = operands,
        .attrs = std::move(attrs),
        .infer =
            [=](const InferContext& context) {
              if (mutates == Mutates::kLast) return infer_out(kind, context);
              return infer_collective(kind, context.inputs.size(), context);
            },
        .flops = [=](auto inputs, auto,
                     const Bindings& bindings) { return collective_flops(kind, inputs, bindings); },
        .evaluate = evaluate_collective,
        .mutates = mutates,
        .collective = kind,
        .of_one = coalesced ? name.substr(0, name.find("_coalesced")) : "",
    });
  };
  add("all_reduce", K::kAllReduce, 1, Mutates::kNothing, {reduce_op});
  add("all_reduce_", K::kAllReduce, 1, Mutates::kAll, {reduce_op});
  add("all_reduce_coalesced", K::kAllReduce, kMany, Mutates::kNothing, {reduce_op});
  add("all_reduce_coalesced_", K::kAllReduce, kMany, Mutates::kAll, {reduce_op});
  add("all_gather_into_tensor", K::kAllGather, 1, Mutates::kNothing, {dim});
  add("all_gather_into_tensor_out", K::kAllGather, 2, Mutates::kLast, {dim});
  add("all_gather_into_tensor_coalesced", K::kAllGather, kMany, Mutates::kNothing, {dim});
  add("reduce_scatter_tensor", K::kReduceScatter, 1, Mutates::kNothing, {reduce_op, dim});
  add("reduce_scatter_tensor_coalesced", K::kReduceScatter, kMany, Mutates::kNothing,
      {reduce_op, dim});
  add("all_to_all_single", K::kAllToAll, 1, Mutates::kNothing,
      {{"output_split_sizes",
        AttrType::kInts,
        {},
        true,
        "Rows received from each rank, as input_split_sizes."},
       {"input_split_sizes",
        AttrType::kInts,
        {},
        true,
        "Rows sent to each rank; uneven ones as such a list for each rank, one after the other."}});
  add("broadcast", K::kBroadcast, 1, Mutates::kNothing,
      {{"src", AttrType::kInt, {}, false, "A rank of the group."}});
  add("broadcast_", K::kBroadcast, 1, Mutates::kAll,
      {{"src", AttrType::kInt, {}, false, "A rank of the group."}});
  add("shard_dim_alltoall", K::kShardDimAllToAll, 1, Mutates::kNothing,
      {{"gather_dim", AttrType::kInt, {}}, {"shard_dim", AttrType::kInt, {}}});
  ops.back().synchronous = true;
  ops.push_back({
      .name = "shard",
      .op_class = OpClass::kView,
      .min_inputs = 1,
      .max_inputs = 1,
      .attrs = {dim, group},
      .infer = [](const InferContext& context) { return infer_collective(K::kShard, 1, context); },
      .flops = flops_per_element(0),
      .evaluate = evaluate_collective,
      .view = View::kShard,
      .collective = K::kShard,
  });
  ops.push_back({
      .name = "wait_tensor",
      .op_class = OpClass::kWait,
      .min_inputs = 1,
      .max_inputs = 1,
      .attrs = {},
      .infer = [](const InferContext& context) -> std::vector<TensorType> {
        return {context.inputs[0]};
      },
      .flops = [](auto, auto, const Bindings&) { return 0.0; },
      .evaluate = [](const EvalContext&, const EvalTensors& inputs) { return inputs; },
  });
}

}  // namespace braid
