#include "lowering/micro_pipeline/micro_pipeline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "ir/mapped.h"
#include "ir/mutation.h"
#include "ir/op_registry.h"
#include "ir/scales.h"
#include "ir/views.h"
#include "lowering/analysis/unexposed.h"
#include "lowering/passes.h"
#include "lowering/rewrite.h"

// micro_pipeline: fuses a collective with the matmuls next to it into one node, which can be
// computed chunk by chunk, so that the transfer of one chunk overlaps the matmuls of another.
//
// Matches (mm stands for mm, matmul by a matrix, scaled_mm; each also between views that only
// regroup rows)
//   mm(wait(all_gather(a)), b), ...     -> fused_all_gather_[scaled_]matmul(a, b, ...)
//   wait(reduce_scatter(mm(a, b)))      -> fused_[scaled_]matmul_reduce_scatter(a, b)
//   wait(all_reduce(mm(a, b)))          -> fused_[scaled_]matmul_all_reduce(a, b)
// The fused node stands at the collective, so that collectives keep their order; what the other
// operands of a gather's matmuls need is moved in front of it. The gathered value (return_A) or the
// product (return_mm) is a result only where someone else reads it.
// Refuses, with a remark at the collective,
//   - groups without symmetric memory, several waits, reduce_ops but sum and avg;
//   - the gathered value as a right operand, and right operands that depend on it, wait for later
//     collectives, or read what is overwritten meanwhile;
//   - matmuls with different scales or dtypes of the result on one gather; scales of A in blocks;
//   - the last dim for scaled matmuls; for a gather along it also a short K and other readers;
//   - products that someone reads before the reduction, and views that cut the columns;
//   - products with regrouped rows that are overwritten later: the fused node gives them with other
//     dims, and no view of that could be read after the write under the product's name;
//   - cases in which the cost model sees no gain over the matmuls apart, which split_reductions may
//     cut, unless PassConfig::always_pipeline is on;
//   - collectives that other matmuls can hide, if UnexposedOptions::leave is on. Only copies run
//     beside a matmul, and lower_collectives decides whether they do.
namespace braid {
namespace {

namespace why = micro_pipeline_reasons;

constexpr std::string_view kPass = "micro_pipeline";

struct UnexposedOptions {
  bool leave = false;  ///< collectives alone that other matmuls can hide
};

bool is_candidate(const Node& node) {
  return (node.op_name() == "all_gather_into_tensor" || node.op_name() == "reduce_scatter_tensor" ||
          node.op_name() == "all_reduce") &&
         is_asynchronous(node);
}

/// Builds the new graph.
class Emitter {
 public:
  Emitter(PipelineState& state, const std::map<NodeId, GatherPlan>& gathers,
          const std::map<NodeId, ScatterPlan>& scatters)
      : state_(state),
        gathers_(gathers),
        scatters_(scatters),
        rewrite_(state.graph),
        done_(state.graph.nodes().size(), false) {}

  Graph run() {
    mark_live();
    const NodeId count = state_.graph.nodes().size();
    for (NodeId id = 0; id < count; ++id) {
      if (const auto plan = gathers_.find(id); plan != gathers_.end()) {
        for (NodeId moved : plan->second.moved) emit(moved);
        emit_gather(plan->second);
      } else if (const auto plan = scatters_.find(id); plan != scatters_.end()) {
        emit_scatter(plan->second);
      } else {
        emit(id);
      }
    }
    return rewrite_.finish();
  }

 private:
  void mark(ValueId value) {
    if (value >= 0) needed_[value] = true;
  }

  /// Marks the nodes that the plans leave live. Dead nodes of the old graph stay.
  void mark_live() {
    const Graph& graph = state_.graph;
    needed_ = graph.output_flags();
    const auto mark_operands = [&](const PipelinedMatmul& matmul, ValueId a, ValueId a_scale) {
      for (ValueId value : {a, matmul.b, a_scale, matmul.b_scale, matmul.bias}) mark(value);
    };
    for (const auto& [id, plan] : gathers_) {
      for (const PipelinedMatmul& matmul : plan.matmuls) {
        mark_operands(matmul, graph.node(id).inputs[0], plan.a_scale.value);
      }
    }
    for (const auto& [id, plan] : scatters_) {
      mark_operands(plan.matmul, plan.a.value, plan.a_scale.value);
    }
    read_by_plan_ = needed_;
    const std::vector<bool> was_live = live_nodes(graph);
    for (std::size_t id = graph.nodes().size(); id-- > 0;) {
      const Node& node = graph.nodes()[id];
      if (state_.is_taken(id)) continue;
      const bool read =
          std::ranges::any_of(node.outputs, [&](ValueId value) { return needed_[value]; });
      if (read || !was_live[id] || node.op->mutates != Mutates::kNothing) {
        for (ValueId input : node.inputs) mark(input);
        continue;
      }
      done_[id] = true;
      if (is_candidate(node)) state_.applied(id, Reason(why::kUnread));
    }
  }

  void emit(NodeId id) {
    if (done_[id] || state_.is_taken(id)) return;
    done_[id] = true;
    rewrite_.copy(state_.graph.node(id));
  }

  void emit_gather(const GatherPlan& plan) {
    const Node& gather = state_.graph.node(plan.gather);
    const bool scaled = plan.matmuls[0].scaled();
    std::vector<ValueId> inputs{rewrite_(gather.inputs[0])};
    for (const PipelinedMatmul& matmul : plan.matmuls) inputs.push_back(rewrite_(matmul.b));
    if (scaled) {
      inputs.push_back(as(plan.a_scale, gather.name + "_scale"));
      for (const PipelinedMatmul& matmul : plan.matmuls) inputs.push_back(rewrite_(matmul.b_scale));
      for (const PipelinedMatmul& matmul : plan.matmuls) add_bias(matmul, inputs);
    }
    Attrs attrs{{"gather_dim", plan.dim}, {"return_A", plan.return_a}};
    const std::vector<ValueId> results =
        add_fused(scaled ? "fused_all_gather_scaled_matmul" : "fused_all_gather_matmul", gather,
                  plan.matmuls[0], std::move(inputs), std::move(attrs),
                  plan.matmuls.size() + (plan.return_a ? 1 : 0));
    std::size_t next = 0;
    if (plan.return_a) rewrite_.map(state_.graph.node(plan.wait).outputs[0], results[next++]);
    for (const PipelinedMatmul& matmul : plan.matmuls) {
      map_product(state_.graph.node(matmul.id).outputs[0], results[next++]);
    }
  }

  void emit_scatter(const ScatterPlan& plan) {
    const Node& scatter = state_.graph.node(plan.scatter);
    const bool scaled = plan.matmul.scaled();
    std::vector<ValueId> inputs{as(plan.a, scatter.name + "_A"), rewrite_(plan.matmul.b)};
    if (scaled) {
      inputs.push_back(as(plan.a_scale, scatter.name + "_scale"));
      inputs.push_back(rewrite_(plan.matmul.b_scale));
      add_bias(plan.matmul, inputs);
    }
    Attrs attrs{{"reduce_op", scatter.attrs.at("reduce_op")}, {"return_mm", plan.return_mm}};
    const bool all = scatter.op->collective == CollectiveKind::kAllReduce;
    if (!all) attrs.emplace("scatter_dim", plan.dim);
    const std::string op = fmt::format("fused_{}matmul_{}", scaled ? "scaled_" : "",
                                       all ? "all_reduce" : "reduce_scatter");
    const std::vector<ValueId> results = add_fused(op, scatter, plan.matmul, std::move(inputs),
                                                   std::move(attrs), plan.return_mm ? 2 : 1);
    rewrite_.map(state_.graph.node(plan.wait).outputs[0], results[0]);
    if (!plan.return_mm) return;
    const ValueId product = state_.graph.node(plan.matmul.id).outputs[0];
    if (product != plan.product) rewrite_.map(plan.product, results[1]);
    map_product(product, results[1]);
  }

  void add_bias(const PipelinedMatmul& matmul, std::vector<ValueId>& inputs) {
    if (matmul.bias >= 0) inputs.push_back(rewrite_(matmul.bias));
  }

  /// The fused node is named after the collective: "x" becomes "x_fused".
  std::vector<ValueId> add_fused(std::string_view op, const Node& collective,
                                 const PipelinedMatmul& matmul, std::vector<ValueId> inputs,
                                 Attrs attrs, std::size_t results) {
    attrs.emplace("group", collective.attrs.at("group"));
    if (matmul.out_dtype) attrs.emplace("out_dtype", *matmul.out_dtype);
    if (matmul.bias >= 0) attrs.emplace("bias", true);
    Graph& graph = rewrite_.graph();
    const NodeId id = graph.add_node(rewrite_.fresh_name(collective.name + "_fused", results), op,
                                     std::move(inputs), std::move(attrs));
    const auto hint = collective.hints.find("runtime_ns");
    if (hint != collective.hints.end()) graph.set_hint(id, kCollectiveHint, hint->second);
    return graph.node(id).outputs;
  }

  /// Lets readers of the old product read the new one: views to its shape become it, other views
  /// become views of it, and readers that want a matrix get a view under the old name.
  void map_product(ValueId old, ValueId now) {
    Graph& graph = rewrite_.graph();
    if (graph.type(now) == state_.graph.type(old)) {
      rewrite_.map(old, now);
      return;
    }
    bool as_matrix = read_by_plan_[old];
    for (NodeId user : state_.uses.of(old)) {
      const Node& reader = state_.graph.node(user);
      if (done_[user] || state_.is_taken(user)) continue;
      if (reader.op_name() == "view" && state_.shape(reader.outputs[0]) == graph.type(now).shape) {
        rewrite_.map(reader.outputs[0], now);
        done_[user] = true;
      } else {
        as_matrix = true;
      }
    }
    if (!as_matrix) return;
    const std::string& name = state_.graph.node(state_.graph.value(old).producer).name;
    const NodeId view = graph.add_node(name, "view", {now}, {{"shape", state_.shape(old)}});
    rewrite_.map(old, graph.node(view).outputs[0]);
  }

  ValueId as(const Reshaped& wanted, const std::string& name) {
    const ValueId value = rewrite_(wanted.value);
    if (rewrite_.graph().type(value).shape == wanted.shape) return value;
    return rewrite_.add(name, "view", {value}, {{"shape", wanted.shape}});
  }

  PipelineState& state_;
  const std::map<NodeId, GatherPlan>& gathers_;
  const std::map<NodeId, ScatterPlan>& scatters_;
  Rewriter rewrite_;
  std::vector<bool> needed_;        ///< for each old value
  std::vector<bool> read_by_plan_;  ///< counts only outputs and operands of fused nodes
  std::vector<bool> done_;          ///< for each old node: it is in the new graph, or never will be
};

}  // namespace

PipelineState::PipelineState(const Graph& old, PassContext& pass_context)
    : graph(old),
      context(pass_context),
      uses(old),
      writes(old),
      overwritten(overwritten_values(old)),
      device(device_model(pass_context.target)),
      bindings(max_bindings(old.symbols())),
      saved_ns(saved_apart_ns(old, pass_context)),
      taken_by(old.nodes().size(), -1),
      position(old.nodes().size()) {
  std::iota(position.begin(), position.end(), 0);
  int count = 0;
  for (const Node& node : old.nodes()) {
    collectives.push_back(count);
    const OpClass c = node.op->op_class;
    if (c == OpClass::kCollective || c == OpClass::kFusedMatmul) ++count;
  }
  if (!read_options<UnexposedOptions>(micro_pipeline, context.config).leave) return;
  hidden_by = unexposed_collectives(old);
  for (const auto& [collective, matmul] : hidden_by) hides.insert(matmul);
}

void PipelineState::take(NodeId id, NodeId candidate) {
  taken_by[id] = candidate;
  position[id] = candidate;
}

void PipelineState::missed(NodeId candidate, Reason reason) {
  remarks[candidate] = {kPass, graph.node(candidate).name, false, std::move(reason)};
}

void PipelineState::applied(NodeId candidate, Reason reason) {
  remarks[candidate] = {kPass, graph.node(candidate).name, true, std::move(reason)};
}

bool check_collective(PipelineState& state, NodeId candidate, std::int64_t& dim, NodeId& wait) {
  const Node& node = state.graph.node(candidate);
  const std::string& name = *node.attr<std::string>("group");
  const Group& group = state.graph.groups().find(name)->second;
  const auto& waits = state.uses.of(node.outputs[0]);
  Reason reason;
  if (group.size == 1) {
    reason = Reason(why::kOneRank, name);
  } else if (!group.symmetric) {
    reason = Reason(why::kNotSymmetric, name);
  } else if (waits.size() != 1) {
    reason = Reason(why::kSeveralWaits, waits.size());
  } else if (const auto hidden = state.hidden_by.find(candidate); hidden != state.hidden_by.end()) {
    reason = Reason(why::kHidden, state.graph.node(hidden->second).name);
  }
  if (reason) {
    state.missed(candidate, std::move(reason));
    return false;
  }
  wait = waits[0];
  if (node.attrs.contains("dim")) {
    dim = static_cast<std::int64_t>(axis_of(node.attrs, "dim", state.shape(node.inputs[0]).size()));
  }
  return true;
}

namespace {

/// The shapes that the estimate is for: "f32[256, 64] x f32[64, 8] at T=256".
std::string sizes_of(const PipelineState& state, const std::vector<NodeId>& matmuls) {
  std::vector<std::string> sizes;
  std::set<std::string> symbols;
  const auto at = [&](ValueId value) {
    TensorType type = state.graph.type(value);
    for (Dim& dim : type.shape) {
      for (const Dim::Term& term : dim.terms()) {
        symbols.insert(fmt::format("{}={}", term.symbol, state.bindings.at(term.symbol)));
      }
      dim = dim.evaluate(state.bindings);
    }
    return type.str();
  };
  for (NodeId id : matmuls) {
    const std::vector<ValueId>& inputs = state.graph.node(id).inputs;
    sizes.push_back(fmt::format("{} x {}", at(inputs[0]), at(inputs[1])));
  }
  std::string text = fmt::format("{}", fmt::join(sizes, ", "));
  if (!symbols.empty()) text += fmt::format(" at {}", fmt::join(symbols, ", "));
  return text;
}

/// The first node of whole rows behind a collective, with elementwise ones in between, which its
/// own kernel would compute; null where there is none.
const Node* rows_behind(const PipelineState& state, const Node& collective) {
  std::vector<ValueId> next = collective.outputs;
  std::set<NodeId> seen;
  while (!next.empty()) {
    const ValueId value = next.back();
    next.pop_back();
    for (const NodeId user : state.uses.of(value)) {
      const Node& node = state.graph.node(user);
      const OpClass c = node.op->op_class;
      if (c == OpClass::kNorm || c == OpClass::kReduction) return &node;
      const bool goes_on = c == OpClass::kWait || c == OpClass::kPointwise;
      if (goes_on && seen.insert(user).second) next.push_back(node.outputs[0]);
    }
  }
  return nullptr;
}

}  // namespace

Reason check_profit(PipelineState& state, NodeId candidate,
                    const std::vector<PipelinedMatmul>& matmuls, PipelinedDim dim) {
  const std::vector<NodeId> ids = mapped(matmuls, &PipelinedMatmul::id);
  const Node& collective = state.graph.node(candidate);
  PipelineEstimate estimate =
      estimate_pipeline(state.graph, collective, ids, dim, state.bindings, state.device);
  if (estimate.in_kernel_ns && !estimate.rows_in_kernel) {
    const Node* rows = rows_behind(state, collective);
    if (rows != nullptr) {
      *estimate.in_kernel_ns += node_ns(state.graph, *rows, state.bindings, state.device);
    }
  }
  // A fused matmul is never cut.
  double apart_ns = estimate.plain_ns;
  for (const NodeId id : ids) {
    const auto saved = state.saved_ns.find(id);
    if (saved != state.saved_ns.end()) apart_ns -= saved->second;
  }
  constexpr double kMicro = 1e3;
  const std::optional<double> best_ns = estimate.best_ns();
  Reason times = best_ns
                     ? Reason(why::kGain, *best_ns / kMicro, apart_ns / kMicro, state.device.name)
                     : Reason(why::kNoForm, apart_ns / kMicro, state.device.name);
  if ((best_ns && *best_ns < apart_ns) || state.context.config.always_pipeline) return times;
  state.missed(candidate,
               Reason(why::kNoGain, std::move(times), estimate.intensity, sizes_of(state, ids)));
  return {};
}

std::optional<PipelinedMatmul> find_matmul(const PipelineState& state, ValueId value,
                                           Reason& reason) {
  const Match m = match(state.graph, state.uses, value, state.product);
  if (!m) {
    reason = m.reason();
    return std::nullopt;
  }
  PipelinedMatmul matmul{.id = state.graph.value(value).producer,
                         .a = m.value("A"),
                         .b = m.value("B"),
                         .a_scale = m.has("A_scale") ? m.value("A_scale") : -1,
                         .b_scale = m.has("B_scale") ? m.value("B_scale") : -1,
                         .bias = m.has("bias") ? m.value("bias") : -1,
                         .out_dtype = std::nullopt};
  if (state.shape(matmul.b).size() != 2) {
    reason = Reason(why::kNoMatrix, state.name(value), state.graph.type(matmul.b).str());
    return std::nullopt;
  }
  const Node& node = state.graph.node(matmul.id);
  if (matmul.scaled() && is_scale_in_blocks(state.graph, node, 2)) {
    reason = Reason(why::kScaleInBlocks, node.name, state.graph.type(matmul.a_scale).str());
    return std::nullopt;
  }
  if (const auto* dtype = node.attr<DType>("out_dtype")) matmul.out_dtype = *dtype;
  return matmul;
}

Reshaped scale_for(const PipelineState& state, ValueId scale, const Shape& a) {
  const Shape& shape = state.shape(scale);
  const bool one = std::ranges::all_of(shape, [](const Dim& dim) { return dim == Dim(1); });
  if (one) return reshaped(state, scale, {});
  Shape rows = a;
  rows.back() = 1;
  return reshaped(state, scale, std::move(rows));
}

Reshaped reshaped(const PipelineState& state, ValueId value, Shape shape) {
  if (state.shape(value) != shape) {
    const Match view = match(state.graph, state.uses, value, op("view", any("base")));
    if (view) value = view.value("base");
  }
  return {value, std::move(shape)};
}

Reason regrouped_and_overwritten(const PipelineState& state, ValueId product) {
  return Reason(why::kRegrouped, state.name(product));
}

namespace {

std::optional<Graph> run(const Graph& graph, PassContext& context) {
  std::vector<NodeId> candidates;
  for (std::size_t id = 0; id < graph.nodes().size(); ++id) {
    if (is_candidate(graph.nodes()[id])) candidates.push_back(id);
  }
  if (candidates.empty()) return std::nullopt;
  PipelineState state(graph, context);
  // Gathers come first: a matmul between a gather and a scatter goes with the gather.
  std::map<NodeId, GatherPlan> gathers;
  std::map<NodeId, ScatterPlan> scatters;
  for (NodeId id : candidates) {
    if (graph.node(id).op->collective != CollectiveKind::kAllGather) continue;
    if (auto plan = plan_gather(state, id)) gathers.emplace(id, std::move(*plan));
  }
  for (NodeId id : candidates) {
    if (graph.node(id).op->collective == CollectiveKind::kAllGather) continue;
    if (auto plan = plan_scatter(state, id)) scatters.emplace(id, std::move(*plan));
  }
  std::optional<Graph> result;
  if (!gathers.empty() || !scatters.empty()) result = Emitter(state, gathers, scatters).run();
  for (auto& [id, remark] : state.remarks) context.remarks.push_back(std::move(remark));
  return result;
}

constexpr PassOption kOptions[] = {
    {.name = "always-pipeline",
     .variable = kVariable<&PassConfig::always_pipeline>,
     .meaning =
         "fuse, and run in chunks, also where no gain is expected; sequence_parallel: split, too",
     .said = "pipelines {}",
     .off = "where a gain is expected",
     .on = "always"},
    {.name = "leave-unexposed",
     .variable = kVariable<&UnexposedOptions::leave>,
     .meaning = "leave collectives alone that other matmuls can hide, should they run as copies",
     .said = "{}",
     .off = "",
     .on = "not around what other matmuls hide"},
};

}  // namespace

constinit const Pass micro_pipeline{
    .name = "micro_pipeline",
    .summary = "a gather or reduction and the matmuls next to it become one node",
    .run = run,
    .by_default = false,
    .options = kOptions};

}  // namespace braid
