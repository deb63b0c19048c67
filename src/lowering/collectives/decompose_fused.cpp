#include "lowering/collectives/decompose_fused.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/groups.h"
#include "ir/op_registry.h"
#include "lowering/collectives/chunk_fused.h"
#include "lowering/collectives/sink_joins.h"
#include "lowering/micro_pipeline/pipeline_cost.h"
#include "lowering/rewrite.h"

// The part of lower_collectives that takes fused nodes apart, in the form that the cost model finds
// quickest: in chunks (chunk_fused.cpp); as their collective and matmuls; or so with the collective
// within the kernel of the matmuls (codegen/work/gather.cpp, product.cpp).
// PassConfig::in_kernel asks for the last one, PassConfig::always_pipeline for the first.
namespace braid {
namespace {

constexpr ReasonCode kRuns{"lower_collectives.fused_runs",
                           "{op} runs {how}: about {us:.1f} us on {device}{others}"};
constexpr ReasonCode kInChunks{"lower_collectives.in_chunks", "in {ranks} chunks"};
constexpr ReasonCode kOneKernel{"lower_collectives.in_kernel",
                                "as one kernel with its {collective}"};
constexpr ReasonCode kTakenApart{"lower_collectives.taken_apart",
                                 "as its collective and {matmuls} matmuls"};
constexpr ReasonCode kOtherForm{"lower_collectives.other_form", "; {how}: {us:.1f} us"};
constexpr ReasonCode kNoForm{"lower_collectives.no_form", "; not {how}: {why}"};
constexpr ReasonCode kNoGatherKernel{
    "lower_collectives.no_gather_kernel",
    "it takes a gather of rows in symmetric memory, with one matmul or a pair of equal size"};
constexpr ReasonCode kNoScatterKernel{
    "lower_collectives.no_scatter_kernel",
    "it takes a scatter of rows in symmetric memory, of a product that nobody else reads"};
constexpr ReasonCode kNoReduceKernel{
    "lower_collectives.no_reduce_kernel",
    "it takes symmetric memory, and a product that nobody else reads"};

bool is_fused(const Node& node) { return node.op->op_class == OpClass::kFusedMatmul; }

/// The possible forms of a fused node.
class Forms {
 public:
  Forms(const Graph& graph, const Node& node, const PassContext& context)
      : graph_(graph),
        node_(node),
        device_(device_model(context.target)),
        form_(fused_operands(node)),
        estimate_(estimate_fused(graph, node, max_bindings(graph.symbols()), device_)),
        obstacle_(cannot_chunk(graph, node)) {
    const PassConfig& config = context.config;
    best_ = kApart;
    if (!obstacle_ && (config.always_pipeline || ns(kChunks) < ns(best_))) best_ = kChunks;
    if (!estimate_.in_kernel_ns) return;
    if (config.in_kernel || (!config.always_pipeline && ns(kKernel) < ns(best_))) best_ = kKernel;
  }

  [[nodiscard]] bool in_chunks() const { return best_ == kChunks; }
  [[nodiscard]] bool in_kernel() const { return best_ == kKernel; }

  [[nodiscard]] Reason remark() const {
    constexpr double kMicro = 1e3;
    std::vector<Reason> others;
    for (const Form form : {kApart, kChunks, kKernel}) {
      if (form == best_) continue;
      const Reason why = form == kChunks                              ? obstacle_
                         : form == kKernel && !estimate_.in_kernel_ns ? no_kernel()
                                                                      : Reason();
      others.push_back(why ? Reason(kNoForm, name(form), why)
                           : Reason(kOtherForm, name(form), ns(form) / kMicro));
    }
    return Reason(kRuns, node_.op_name(), name(best_), ns(best_) / kMicro, device_.name,
                  std::move(others));
  }

 private:
  enum Form : std::uint8_t { kApart, kChunks, kKernel };

  [[nodiscard]] double ns(Form form) const {
    return form == kApart    ? estimate_.plain_ns
           : form == kChunks ? *estimate_.pipelined_ns
                             : *estimate_.in_kernel_ns;
  }
  [[nodiscard]] Reason name(Form form) const {
    const Group& group = group_of(graph_, node_);
    if (form == kChunks) return Reason(kInChunks, group.size);
    if (form == kKernel) {
      return Reason(kOneKernel, form_.gathers    ? "gather"
                                : form_.scatters ? "scatter"
                                                 : "all-reduce");
    }
    return Reason(kTakenApart, form_.matmuls);
  }
  [[nodiscard]] Reason no_kernel() const {
    return Reason(form_.gathers    ? kNoGatherKernel
                  : form_.scatters ? kNoScatterKernel
                                   : kNoReduceKernel);
  }

  const Graph& graph_;
  const Node& node_;
  const DeviceModel& device_;
  FusedOperands form_;
  PipelineEstimate estimate_;
  Reason obstacle_;
  Form best_;
};

/// Gives the collective of a fused node its hint again, among the nodes from `first` on.
void keep_hint(const Node& fused, NodeId first, Graph& graph) {
  const auto hint = fused.hints.find(kCollectiveHint);
  if (hint == fused.hints.end()) return;
  while (graph.node(first).op->op_class != OpClass::kCollective) ++first;
  graph.set_hint(first, "runtime_ns", hint->second);
}

}  // namespace

std::optional<Decomposed> decompose_fused(const Graph& graph, PassContext& context) {
  if (std::ranges::none_of(graph.nodes(), is_fused)) return std::nullopt;
  Rewriter rewrite(graph);
  Decomposed result;
  bool any_chunks = false;
  for (const Node& node : graph.nodes()) {
    if (!is_fused(node)) {
      rewrite.copy(node);
      continue;
    }
    const Forms forms(graph, node, context);
    const auto name = [&](std::string_view suffix) {
      std::string fresh = rewrite.fresh_name(fmt::format("{}{}", node.name, suffix));
      const bool collective =
          suffix == kGatherSuffix || suffix == kScatterSuffix || suffix == kReduceSuffix;
      if (forms.in_kernel() && collective) result.in_kernel.insert(fresh);
      return fresh;
    };
    const auto first = static_cast<NodeId>(rewrite.graph().nodes().size());
    const std::vector<ValueId> results =
        forms.in_chunks() ? add_chunks(rewrite.graph(), node, rewrite(node.inputs), name)
                          : add_composition(rewrite.graph(), node, rewrite(node.inputs), name);
    for (std::size_t i = 0; i < results.size(); ++i) rewrite.map(node.outputs[i], results[i]);
    any_chunks = any_chunks || forms.in_chunks();
    if (!forms.in_chunks()) keep_hint(node, first, rewrite.graph());
    context.applied("lower_collectives", node.name, forms.remark());
  }
  result.graph = rewrite.finish();
  if (any_chunks) result.graph = sink_joins(result.graph);
  return result;
}

}  // namespace braid
