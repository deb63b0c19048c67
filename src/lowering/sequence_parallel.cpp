#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/mutation.h"
#include "ir/op_registry.h"
#include "lowering/analysis/gathered.h"
#include "lowering/analysis/shards.h"
#include "lowering/micro_pipeline/pipeline_cost.h"
#include "lowering/passes.h"
#include "lowering/rewrite.h"

// sequence_parallel: norms after an all_reduce run on a chunk of the tokens on each rank, and the
// residual stream between layers stays split.
//
// Matches, through views, markers and adds,
//   rms_norm(s), add_rms_norm(s, r), add_rms_norm2(s, r)   where s = wait_tensor(all_reduce(x))
// and rewrites it to
//   s' = wait_tensor(reduce_scatter_tensor(x));  the norm of s' (and r', this rank's chunk of r);
//   wait_tensor(all_gather_into_tensor(norm)) for those who read the whole.
// Sums of chunks are chunks: `add` and the residual of add_rms_norm2 carry them to the next norm,
// so between the layers nothing is gathered. A chunk is recognized by its origin (same group, same
// dim), never by its shape.
//
// A residual that is not a chunk yet is cut (`shard`) when it is the same on all ranks. If it was
// gathered along the same dim, the gather's operand is the chunk.
//
// Refuses, with a remark at the norm:
//   - groups of one rank, reduce ops other than sum and avg, fewer than two dims;
//   - a sequence dim that the ranks do not divide, or that the norm works along;
//   - a view that mixes the sequence dim with others;
//   - residuals and weights that may differ between the ranks;
//   - memory that something overwrites;
//   - graphs in which the cost model sees no gain overall, with symbols at their maximum and with
//     micro_pipeline behind it where that runs: a reduce-scatter and an all-gather are two launches
//     where an all-reduce is one. PassConfig::always_pipeline splits there, too.
//
// ShardPlan decides for the whole graph; then one sweep rewrites it. All readers of a whole value,
// graph outputs included, share one all_gather; readers of a whole all_reduce keep that.
namespace braid {
namespace {

constexpr ReasonCode kGain{
    "sequence_parallel.gain",
    "{how}; the graph takes {us:.1f} us, not split {plain_us:.1f} us, on {device}"};
constexpr ReasonCode kNoGain{
    "sequence_parallel.no_gain",
    "split, the graph takes {us:.1f} us, as it is {plain_us:.1f} us, on {device}"};

class SequenceParallel {
 public:
  SequenceParallel(const Graph& graph, const ShardPlan& plan)
      : graph_(graph),
        plan_(plan),
        uses_(graph),
        overwritten_(overwritten_values(graph)),
        rewrite_(graph),
        local_(graph.values().size()) {}

  Graph run() {
    for (std::size_t id = 0; id < graph_.nodes().size(); ++id) emit(id);
    return rewrite_.finish();
  }

 private:
  void emit(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.op_name() == "all_reduce") {
      emit_all_reduce(node);
    } else if (!plan_.local(id)) {
      rewrite_.copy(node);
    } else if (node.op->op_class == OpClass::kWait) {
      set_local(node.outputs[0],
                add(node.outputs[0], "_local", "wait_tensor", local(node.inputs[0]), {}));
      if (plan_.is_needed_whole(node.outputs[0])) rewrite_.copy(node);
    } else if (node.op->op_class == OpClass::kView) {
      emit_name(id);
    } else {
      emit_compute(id);
    }
  }

  /// The waits decide what it becomes: some may be local, others not.
  void emit_all_reduce(const Node& node) {
    bool whole = false;
    std::optional<Shard> shard;
    for (NodeId wait : uses_.of(node.outputs[0])) {
      if (plan_.local(wait)) shard = plan_.local(wait);
      whole = whole || !plan_.local(wait) || plan_.is_needed_whole(graph_.node(wait).outputs[0]);
    }
    if (shard) {
      set_local(node.outputs[0], scatter(node.outputs[0], "_scatter", rewrite_(node.inputs[0]),
                                         *node.attr<std::string>("reduce_op"), *shard));
    }
    if (whole) rewrite_.copy(node);
  }

  /// Views and markers may exist in both versions, each naming its own memory.
  void emit_name(NodeId id) {
    const Node& node = graph_.node(id);
    const ValueId output = node.outputs[0];
    const ValueId operand = chunk(node.inputs[0], *plan_.local(id));
    const bool whole = plan_.is_needed_whole(output);
    if (whole) rewrite_.copy(node);
    if (node.op_name() == "getitem") {  // its operand is the result that it names
      set_local(output, operand);
      return;
    }
    Attrs attrs = node.attrs;
    if (node.op_name() == "view") {
      attrs.insert_or_assign("shape", plan_.chunk_type(output, *plan_.shard(output)).shape);
    }
    const std::string name = whole ? rewrite_.fresh_name(node.name + "_local") : node.name;
    Graph& graph = rewrite_.graph();
    set_local(
        output,
        graph.node(graph.add_node(name, node.op_name(), {operand}, std::move(attrs))).outputs[0]);
  }

  void emit_compute(NodeId id) {
    const Node& node = graph_.node(id);
    std::vector<ValueId> operands;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      operands.push_back(plan_.takes_chunk(id, i) ? chunk(node.inputs[i], *plan_.local(id))
                                                  : rewrite_(node.inputs[i]));
    }
    // Hints are dropped: they describe the whole value.
    Graph& graph = rewrite_.graph();
    const NodeId now = graph.add_node(node.name, node.op_name(), std::move(operands), node.attrs);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId output = node.outputs[i];
      set_local(output, graph.node(now).outputs[i]);
      if (plan_.is_needed_whole(output)) rewrite_.map(output, gather(output));
    }
  }

  ValueId gather(ValueId value) {
    const Shard shard = *plan_.shard(value);
    const ValueId gathered =
        add(value, "_gather", "all_gather_into_tensor", local(value),
            {{"group", std::string(shard.group)}, {"dim", static_cast<std::int64_t>(shard.dim)}});
    return add(value, "_full", "wait_tensor", gathered, {});
  }

  ValueId scatter(ValueId value, std::string_view suffix, ValueId operand, std::string reduce_op,
                  const Shard& shard) {
    return add(value, suffix, "reduce_scatter_tensor", operand,
               {{"reduce_op", std::move(reduce_op)},
                {"group", std::string(shard.group)},
                {"dim", static_cast<std::int64_t>(shard.dim)}});
  }

  /// The new value that is this chunk of an old one: computed as a chunk, or cut once.
  ValueId chunk(ValueId value, const Shard& shard) {
    if (plan_.shard(value) == shard) return local(value);
    const ValueId before = gathered_from(graph_, overwritten_, value, shard.group, shard.dim);
    if (before >= 0) return rewrite_(before);
    const auto [it, is_new] = cuts_.try_emplace({value, shard});
    if (is_new) {
      it->second =
          add(value, "_cut", "shard", rewrite_(value),
              {{"group", std::string(shard.group)}, {"dim", static_cast<std::int64_t>(shard.dim)}});
    }
    return it->second;
  }

  /// Adds a node with one operand, named after the old value that it replaces.
  ValueId add(ValueId old, std::string_view suffix, std::string_view op, ValueId operand,
              Attrs attrs) {
    std::string name = graph_.value(old).name;
    std::replace(name.begin(), name.end(), ':', '_');
    return rewrite_.add(name.append(suffix), op, {operand}, std::move(attrs));
  }

  ValueId local(ValueId old) const { return local_[old]; }
  void set_local(ValueId old, ValueId now) { local_[old] = now; }

  const Graph& graph_;
  const ShardPlan& plan_;
  Uses uses_;
  std::vector<bool> overwritten_;
  Rewriter rewrite_;
  std::vector<ValueId> local_;  ///< for each old value: the new chunk, where it has one
  std::map<std::pair<ValueId, Shard>, ValueId> cuts_;
};

/// The time of the graph, after micro_pipeline where that is to run.
double estimate_ns(const Graph& graph, const PassContext& context) {
  PassContext apart = context;
  const std::optional<Graph> pipelined =
      runs(micro_pipeline, context.config) ? micro_pipeline.run(graph, apart) : std::nullopt;
  return graph_ns(pipelined ? *pipelined : graph, context);
}

/// Whether the split graph is faster; records that in the remarks.
bool gains(const Graph& graph, const Graph& split, const PassContext& context,
           std::vector<Remark>& remarks) {
  constexpr double kMicro = 1e3;
  const double plain_us = estimate_ns(graph, context) / kMicro;
  const double us = estimate_ns(split, context) / kMicro;
  const std::string_view device = device_model(context.target).name;
  for (Remark& remark : remarks) {
    if (!remark.applied) continue;
    remark.applied = us < plain_us;
    remark.reason = remark.applied ? Reason(kGain, std::move(remark.reason), us, plain_us, device)
                                   : Reason(kNoGain, us, plain_us, device);
  }
  return us < plain_us;
}

std::optional<Graph> run(const Graph& graph, PassContext& context) {
  std::optional<Graph> result;
  std::vector<Remark> remarks;
  std::map<std::string, std::size_t, std::less<>> of_norm;
  // Streams split along different dims may be compatible once one of them is whole. The second plan
  // is almost always empty.
  for (bool changed = true; changed;) {
    const Graph& now = result ? *result : graph;
    const ShardPlan plan(now, context.config);
    for (const Remark& remark : plan.remarks()) {
      const auto [it, is_new] = of_norm.emplace(remark.node, remarks.size());
      if (is_new) remarks.push_back(remark);
      if (remark.applied) remarks[it->second] = remark;
    }
    changed = !plan.empty();
    if (changed) result = without_dead_nodes(SequenceParallel(now, plan).run());
  }
  const bool asked = context.config.always_pipeline;
  if (result && !asked && !gains(graph, *result, context, remarks)) result.reset();
  context.remarks.insert(context.remarks.end(), remarks.begin(), remarks.end());
  return result;
}

constexpr PassOption kOptions[] = {{.name = "sequence-dim",
                                    .variable = kVariable<&PassConfig::sequence_dim>,
                                    .meaning = "the dim of the tokens",
                                    .said = "sequence dim {}",
                                    .off = "0 of a matrix, else 1"}};

}  // namespace

constinit const Pass sequence_parallel{
    .name = "sequence_parallel",
    .summary = "norms after an all_reduce run on a chunk of the tokens on each rank",
    .run = run,
    .by_default = false,
    .options = kOptions};

}  // namespace braid
