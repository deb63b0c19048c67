#include "lowering/analysis/shards.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/mutation.h"
#include "ir/numel.h"
#include "ir/op_registry.h"
#include "lowering/analysis/replicated.h"
#include "lowering/rewrite.h"

namespace braid {
namespace {

constexpr std::string_view kPass = "sequence_parallel";

constexpr ReasonCode kOverwritten{"sequence_parallel.overwritten",
                                  "'{value}' is overwritten in place"};
constexpr ReasonCode kAllReduce{"sequence_parallel.all_reduce", "all_reduce '{node}' {why}"};
constexpr ReasonCode kOneRank{"sequence_parallel.one_rank", "has one rank in its group '{group}'"};
constexpr ReasonCode kReduceOp{"sequence_parallel.reduce_op",
                               "has reduce_op {found}; expected sum or avg"};
constexpr ReasonCode kTooFewDims{"sequence_parallel.too_few_dims",
                                 "gives {type}; expected at least two dims, one of tokens"};
constexpr ReasonCode kNoSuchDim{"sequence_parallel.no_such_dim",
                                "gives {type}, which has no dim {dim}: set sequence_dim"};
constexpr ReasonCode kIndivisible{
    "sequence_parallel.indivisible",
    "has {extent} along dim {dim}; expected a multiple of {ranks}, the ranks of '{group}'{hint}"};
constexpr ReasonCode kForAllValues{
    "sequence_parallel.for_all_values",
    ", for all values of the symbols: such as {ranks}*T, or T with multiple_of {ranks}"};
constexpr ReasonCode kReducesOverwritten{"sequence_parallel.reduces_overwritten",
                                         "reduces '{value}', which is overwritten in place"};
constexpr ReasonCode kViewMixes{
    "sequence_parallel.view_mixes",
    "view '{view}' from {from} to {to}: no dim of the result has the {ranks} chunks of dim {dim}"};
constexpr ReasonCode kShapesDiffer{
    "sequence_parallel.shapes_differ",
    "operands of '{node}' are {first} and {second}; expected one shape"};
constexpr ReasonCode kOtherChunks{"sequence_parallel.other_chunks",
                                  "'{value}' is in chunks of dim {dim} over '{group}', '{other}' "
                                  "of dim {other_dim} over '{other_group}'"};
constexpr ReasonCode kAlongNorm{
    "sequence_parallel.along_norm",
    "'{value}' would be split along dim {dim}, which the norm works along"};
constexpr ReasonCode kWeightDiffers{"sequence_parallel.weight_differs",
                                    "weight '{value}' may differ between the ranks of '{group}'"};
constexpr ReasonCode kResidualOverwritten{"sequence_parallel.residual_overwritten",
                                          "residual '{value}' is overwritten in place"};
constexpr ReasonCode kResidualDiffers{
    "sequence_parallel.residual_differs",
    "residual '{value}' may differ between the ranks of '{group}'"};
constexpr ReasonCode kOnChunks{
    "sequence_parallel.on_chunks",
    "on {type} of each rank, chunks of dim {dim} over the {ranks} ranks of '{group}'{values}"};
// Remarks on its operands and results:
constexpr ReasonCode kIsCut{"sequence_parallel.is_cut", "; '{value}', equal on all ranks, is cut"};
constexpr ReasonCode kAlsoWhole{"sequence_parallel.also_whole",
                                "; '{value}' is also needed whole, by {reader}"};
constexpr ReasonCode kGathered{"sequence_parallel.gathered",
                               "; '{value}' is gathered for {reader}"};
constexpr ReasonCode kStaysLocal{"sequence_parallel.stays_local", "; '{value}' stays local"};

bool is_norm(const Node& node) {
  const std::string_view op = node.op_name();
  return op == "rms_norm" || op == "add_rms_norm" || op == "add_rms_norm2";
}
bool is_sum(const Node& node) {
  const std::string_view op = node.op_name();
  return op == "add" || op == "add_rms_norm" || op == "add_rms_norm2";
}
/// Whether the node only renames its operand, perhaps with another shape.
bool is_name(const Node& node) {
  const std::string_view op = node.op_name();
  return op == "view" || op == "getitem" || is_marker(node);
}

/// The dim of `to` whose chunks hold the same elements as the chunks of `from` along `dim`: the
/// product of the extents before it is equal, and the ranks divide it. (They do not divide an
/// extent of 1, so there is at most one.)
std::optional<std::size_t> dim_after_view(const Shape& from, std::size_t dim, const Shape& to,
                                          std::int64_t ranks, const SymbolTable& symbols) {
  const Shape before(from.begin(), from.begin() + dim);
  for (std::size_t d = 0; d < to.size(); ++d) {
    const Shape front(to.begin(), to.begin() + d);
    if (to[d].divide_exactly(ranks, symbols) && same_numel(before, front)) return d;
  }
  return std::nullopt;
}

}  // namespace

ShardPlan::ShardPlan(const Graph& graph, const PassConfig& config)
    : graph_(graph),
      config_(config),
      uses_(graph),
      sum_(op("wait_tensor", op("all_reduce", any()).as("comm"))),
      overwritten_(overwritten_values(graph)),
      on_(graph.nodes().size()),
      shard_(graph.values().size()),
      why_not_(graph.values().size()),
      whole_(graph.output_flags()),
      whole_reader_(graph.values().size(), -1) {
  std::vector<Reason> refusals(graph.nodes().size());
  for (std::size_t id = 0; id < graph.nodes().size(); ++id) {
    const Node& node = graph.nodes()[id];
    Answer answer = ask(node);
    const auto overwritten =
        std::ranges::find_if(node.outputs, [&](ValueId v) { return overwritten_[v]; });
    if (answer.out && overwritten != node.outputs.end()) {
      // A whole and a local version would be two memories, and only one would be written.
      answer = {{}, {}, Reason(kOverwritten, name(*overwritten))};
    }
    on_[id] = answer.in;
    for (ValueId output : node.outputs) {
      shard_[output] = answer.out;
      why_not_[output] = answer.reason;
    }
    refusals[id] = std::move(answer.reason);
  }
  drop_idle_nodes();
  find_whole_values();
  for (std::size_t id = 0; id < graph.nodes().size(); ++id) {
    if (is_norm(graph.nodes()[id])) report(id, refusals[id]);
  }
}

std::optional<Shard> ShardPlan::shard(ValueId value) const {
  const NodeId producer = graph_.value(value).producer;
  if (producer < 0 || !local(producer)) return std::nullopt;
  return shard_[value];
}

bool ShardPlan::takes_chunk(NodeId node, std::size_t index) const {
  return index == 0 || (index == 1 && is_sum(graph_.node(node)));
}

TensorType ShardPlan::chunk_type(ValueId value, const Shard& shard) const {
  TensorType type = graph_.type(value);
  type.shape[shard.dim] =
      *type.shape[shard.dim].divide_exactly(ranks(shard.group), graph_.symbols());
  return type;
}

ShardPlan::Answer ShardPlan::ask(const Node& node) {
  if (node.op->op_class == OpClass::kWait) return ask_wait(node);
  if (is_name(node)) return ask_view(node);
  if (node.op_name() == "add") return ask_sum(node);
  if (node.op_name() == "rms_norm") return ask_norm(node, ask_view(node));
  if (is_norm(node)) return ask_norm(node, ask_sum(node));
  return {};
}

/// The wait of a reduced sum, where values start to be chunks.
ShardPlan::Answer ShardPlan::ask_wait(const Node& node) const {
  const Match found = match(graph_, uses_, node.outputs[0], sum_);
  if (!found) return {};
  const Node& comm = found.node("comm");
  if (!is_asynchronous(comm)) return {};  // lowered already
  const std::string& group = *comm.attr<std::string>("group");
  const std::string& reduce_op = *comm.attr<std::string>("reduce_op");
  const Shape& shape = graph_.type(node.outputs[0]).shape;
  const auto rank = static_cast<std::int64_t>(shape.size());
  const std::int64_t dim = config_.sequence_dim.value_or(rank == 2 ? 0 : 1);
  const auto refuse = [&](Reason reason) -> Answer {
    return {{}, {}, Reason(kAllReduce, comm.name, std::move(reason))};
  };
  if (ranks(group) == 1) return refuse(Reason(kOneRank, group));
  if (reduce_op != "sum" && reduce_op != "avg") return refuse(Reason(kReduceOp, reduce_op));
  if (rank < 2) return refuse(Reason(kTooFewDims, graph_.type(node.outputs[0]).str()));
  if (dim < 0 || dim >= rank) {
    return refuse(Reason(kNoSuchDim, graph_.type(node.outputs[0]).str(), dim));
  }
  const std::size_t axis = dim;
  if (!shape[axis].divide_exactly(ranks(group), graph_.symbols())) {
    const Reason hint = shape[axis].is_constant() ? Reason() : Reason(kForAllValues, ranks(group));
    return refuse(Reason(kIndivisible, shape[axis].str(), dim, ranks(group), group, hint));
  }
  if (overwritten_[comm.inputs[0]]) {
    return refuse(Reason(kReducesOverwritten, name(comm.inputs[0])));
  }
  const Shard shard{group, axis};
  return {shard, shard, {}};
}

ShardPlan::Answer ShardPlan::ask_view(const Node& node) const {
  const ValueId x = node.inputs[0];
  const std::optional<Shard>& in = shard_[x];
  if (!in) return {{}, {}, why_not_[x]};
  if (node.op_name() != "view") return {in, in, {}};
  const TensorType& from = graph_.type(x);
  const TensorType& to = graph_.type(node.outputs[0]);
  const auto dim =
      dim_after_view(from.shape, in->dim, to.shape, ranks(in->group), graph_.symbols());
  if (dim) return {in, Shard{in->group, *dim}, {}};
  return {{}, {}, Reason(kViewMixes, node.name, from.str(), to.str(), ranks(in->group), in->dim)};
}

/// An add, or a norm with a residual: one operand is in chunks, and the other can be cut.
ShardPlan::Answer ShardPlan::ask_sum(const Node& node) {
  const ValueId a = node.inputs[0];
  const ValueId b = node.inputs[1];
  const std::optional<Shard>& of_a = shard_[a];
  const std::optional<Shard>& of_b = shard_[b];
  if (!of_a && !of_b) {
    const Reason& reason = why_not_[a];
    return {{}, {}, reason.empty() ? why_not_[b] : reason};
  }
  if (graph_.type(a).shape != graph_.type(b).shape) {
    return {{}, {}, Reason(kShapesDiffer, node.name, graph_.type(a).str(), graph_.type(b).str())};
  }
  Reason reason;
  if (of_a) reason = cannot_cut(b, *of_a);
  if (of_a && !reason) return {of_a, of_a, {}};
  if (of_b) reason = cannot_cut(a, *of_b);
  if (of_b && !reason) return {of_b, of_b, {}};
  if (of_a && of_b) {
    reason = Reason(kOtherChunks, name(a), of_a->dim, of_a->group, name(b), of_b->dim, of_b->group);
  }
  return {{}, {}, std::move(reason)};
}

ShardPlan::Answer ShardPlan::ask_norm(const Node& node, Answer stream) {
  if (!stream.in) return stream;
  const Shard& in = *stream.in;
  const ValueId x = node.inputs[0];
  if (in.dim + 1 == graph_.type(x).shape.size()) {
    return {{}, {}, Reason(kAlongNorm, name(x), in.dim)};
  }
  for (std::size_t i = is_sum(node) ? 2 : 1; i < node.inputs.size(); ++i) {
    if (replicated(in.group)[node.inputs[i]]) continue;
    return {{}, {}, Reason(kWeightDiffers, name(node.inputs[i]), in.group)};
  }
  return {in, in, {}};
}

/// Why ranks cannot take their chunks of the value; else empty. The value must be equal on all
/// ranks (as a gathered chunk is): otherwise the gathered result would mix chunks of different
/// sums.
Reason ShardPlan::cannot_cut(ValueId value, const Shard& shard) {
  if (overwritten_[value]) return Reason(kResidualOverwritten, name(value));
  if (replicated(shard.group)[value]) return {};
  return Reason(kResidualDiffers, name(value), shard.group);
}

const std::vector<bool>& ShardPlan::replicated(std::string_view group) {
  auto it = replicated_.find(group);
  if (it == replicated_.end()) {
    it = replicated_.emplace(group, replicated_values(graph_, group)).first;
  }
  return it->second;
}

bool ShardPlan::reads_chunk(NodeId reader, ValueId value) const {
  const std::optional<Shard>& on = local(reader);
  if (!on || on != shard_[value]) return false;
  const std::vector<ValueId>& inputs = graph_.node(reader).inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == value && takes_chunk(reader, i)) return true;
  }
  return false;
}

/// Keeps whole all nodes that lead to no norm, since only norms pay.
void ShardPlan::drop_idle_nodes() {
  for (std::size_t id = on_.size(); id-- > 0;) {
    if (!on_[id]) continue;
    const Node& node = graph_.nodes()[id];
    if (is_norm(node)) {
      empty_ = false;
      continue;
    }
    const std::vector<NodeId>& readers = uses_.of(node.outputs[0]);
    const bool used = std::ranges::any_of(
        readers, [&](NodeId reader) { return reads_chunk(reader, node.outputs[0]); });
    if (!used) on_[id].reset();
  }
}

/// Propagates backwards which values are needed whole: a view or marker needs its operand whole if
/// one of its readers needs it whole.
void ShardPlan::find_whole_values() {
  for (std::size_t id = on_.size(); id-- > 0;) {
    const Node& node = graph_.nodes()[id];
    const bool whole_name = is_name(node) && whole_[node.outputs[0]];
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId input = node.inputs[i];
      const bool chunk = on_[id] && takes_chunk(id, i) && shard(input) == on_[id] && !whole_name;
      if (chunk) continue;
      whole_[input] = true;
      whole_reader_[input] = id;
    }
  }
}

void ShardPlan::report(NodeId id, const Reason& reason) {
  const Node& node = graph_.node(id);
  const std::optional<Shard>& on = local(id);
  if (!on) {
    if (reason) remarks_.push_back({kPass, node.name, false, reason});
    return;
  }
  std::vector<Reason> values;
  for (std::size_t i = 0; i < node.inputs.size() && takes_chunk(id, i); ++i) {
    if (shard(node.inputs[i]) != on) {
      values.emplace_back(kIsCut, name(node.inputs[i]));
    } else if (is_needed_whole(node.inputs[i])) {
      values.emplace_back(kAlsoWhole, name(node.inputs[i]), whole_reader(node.inputs[i]));
    }
  }
  for (ValueId output : node.outputs) {
    if (is_needed_whole(output)) {
      values.emplace_back(kGathered, name(output), whole_reader(output));
    } else {
      values.emplace_back(kStaysLocal, name(output));
    }
  }
  remarks_.push_back({kPass, node.name, true,
                      Reason(kOnChunks, chunk_type(node.inputs[0], *on).str(), on->dim,
                             ranks(on->group), on->group, std::move(values))});
}

std::string ShardPlan::whole_reader(ValueId value) const {
  const NodeId reader = whole_reader_[value];
  return reader < 0 ? "the graph output" : fmt::format("'{}'", graph_.node(reader).name);
}

}  // namespace braid
