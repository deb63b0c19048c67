#include "ir/fused.h"
#include "ir/op_registry.h"
#include "lowering/micro_pipeline/micro_pipeline.h"

// Plans the scatters and all-reduces of micro_pipeline: the product that each reduces, and the
// product's other readers.
namespace braid {
namespace {

namespace why = micro_pipeline_reasons;

class ScatterPlanner {
 public:
  ScatterPlanner(PipelineState& state, NodeId scatter)
      : state_(state), node_(state.graph.node(scatter)) {
    plan_.scatter = scatter;
    plan_.product = node_.inputs[0];
  }

  std::optional<ScatterPlan> run() {
    if (!check_collective(state_, plan_.scatter, plan_.dim, plan_.wait)) return std::nullopt;
    const std::string& reduce_op = *node_.attr<std::string>("reduce_op");
    if (reduce_op != "sum" && reduce_op != "avg") return miss(Reason(why::kReduceOp, reduce_op));
    for (const auto check : {&ScatterPlanner::find_product, &ScatterPlanner::find_operands,
                             &ScatterPlanner::find_other_readers}) {
      if (const Reason reason = (this->*check)()) return miss(reason);
    }
    const Reason gain = check_profit(state_, plan_.scatter, {plan_.matmul},
                                     is_last_dim() ? PipelinedDim::kN : PipelinedDim::kM);
    if (!gain) return std::nullopt;
    state_.take(plan_.scatter, plan_.scatter);
    state_.take(plan_.wait, plan_.scatter);
    state_.take(plan_.matmul.id, plan_.scatter);
    state_.take(state_.graph.value(plan_.product).producer, plan_.scatter);
    state_.applied(plan_.scatter,
                   Reason(why::kScatterFused, state_.graph.node(plan_.matmul.id).name, gain,
                          plan_.return_mm ? Reason(why::kReturnsProduct) : Reason()));
    return plan_;
  }

 private:
  std::optional<ScatterPlan> miss(Reason reason) {
    state_.missed(plan_.scatter, std::move(reason));
    return std::nullopt;
  }

  bool is_last_dim() const {
    return node_.op->collective != CollectiveKind::kAllReduce &&
           plan_.dim + 1 == static_cast<std::int64_t>(state_.shape(plan_.product).size());
  }

  /// Checks that the operand is a matmul, or a view of one that keeps its columns.
  Reason find_product() {
    const NodeId producer = state_.graph.value(plan_.product).producer;
    const bool is_view = producer >= 0 && state_.graph.node(producer).op_name() == "view";
    const ValueId source = is_view ? state_.graph.node(producer).inputs[0] : plan_.product;
    Reason reason;
    const auto found = find_matmul(state_, source, reason);
    if (!found) {
      const Reason cause = state_.context.why_missed("canonicalize", node_.name);
      return cause ? Reason(why::kInCanonicalize, reason, cause) : reason;
    }
    plan_.matmul = *found;
    const std::string& name = state_.graph.node(found->id).name;
    if (state_.is_taken(found->id)) {
      const NodeId taker = state_.taken_by[found->id];
      return Reason(why::kFusedAlready, name, state_.graph.node(taker).name);
    }
    if (state_.hides.contains(found->id)) return Reason(why::kHidesAnother, name);
    if (state_.shape(plan_.product).size() < 2 ||
        state_.shape(plan_.product).back() != state_.shape(source).back()) {
      return Reason(why::kColumnsCut, state_.name(plan_.product),
                    state_.graph.type(plan_.product).str(), state_.shape(source).back().str());
    }
    if (is_last_dim() && found->scaled()) return Reason(why::kScattersLastDim, plan_.dim);
    return {};
  }

  /// Finds A with the product's dims; at the scatter all operands must still hold what the matmul
  /// read.
  Reason find_operands() {
    Shape shape = state_.shape(plan_.product);
    shape.back() = state_.shape(plan_.matmul.a).back();
    if (!rows_of(shape)) return Reason(why::kRowsNotAffine, state_.name(plan_.product));
    plan_.a = reshaped(state_, plan_.matmul.a, shape);
    if (plan_.matmul.scaled()) plan_.a_scale = scale_for(state_, plan_.matmul.a_scale, shape);
    for (ValueId operand : state_.graph.node(plan_.matmul.id).inputs) {
      if (state_.writes.between(operand, plan_.matmul.id, plan_.scatter)) {
        return Reason(why::kOverwrittenBefore, state_.name(operand));
      }
    }
    return {};
  }

  /// Other readers of the product get it from the fused node, which stands at the scatter.
  Reason find_other_readers() {
    const ValueId matmul = state_.graph.node(plan_.matmul.id).outputs[0];
    if (state_.shape(matmul) != state_.shape(plan_.product) && state_.is_overwritten(matmul)) {
      return regrouped_and_overwritten(state_, matmul);
    }
    const NodeId view = state_.graph.value(plan_.product).producer;
    for (ValueId value : {matmul, plan_.product}) {
      if (state_.uses.is_output(value)) plan_.return_mm = true;
      for (NodeId reader : state_.uses.of(value)) {
        if (reader == plan_.scatter || (value != plan_.product && reader == view)) continue;
        plan_.return_mm = true;
        if (state_.position[reader] < plan_.scatter) {
          return Reason(why::kReadBefore, state_.graph.node(reader).name, state_.name(value));
        }
      }
    }
    return {};
  }

  PipelineState& state_;
  const Node& node_;
  ScatterPlan plan_;
};

}  // namespace

std::optional<ScatterPlan> plan_scatter(PipelineState& state, NodeId scatter) {
  return ScatterPlanner(state, scatter).run();
}

}  // namespace braid
