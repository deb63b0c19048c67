#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/fused.h"
#include "ir/op_registry.h"
#include "ir/views.h"
#include "lowering/micro_pipeline/micro_pipeline.h"

// Plans the gathers of micro_pipeline: which matmuls a fused node takes, and which nodes move.
namespace braid {
namespace {

namespace why = micro_pipeline_reasons;

constexpr std::int64_t kLeastK = 1024;   ///< least K of a shard where the gather is along K
constexpr std::size_t kMostMoved = 256;  ///< most nodes that are moved in front of one gather

class GatherPlanner {
 public:
  GatherPlanner(PipelineState& state, NodeId gather)
      : state_(state), node_(state.graph.node(gather)) {
    plan_.gather = gather;
  }

  std::optional<GatherPlan> run() {
    if (!check_collective(state_, plan_.gather, plan_.dim, plan_.wait)) return std::nullopt;
    a_ = state_.graph.node(plan_.wait).outputs[0];
    const Shape& shape = state_.shape(a_);
    if (shape.size() < 2 || !rows_of(shape)) {
      return miss(Reason(why::kGathersNoMatrix, state_.name(a_), state_.graph.type(a_).str()));
    }
    find_readers();
    if (plan_.matmuls.empty()) {
      if (others_.empty()) return miss(Reason(why::kNoReader));
      return miss(Reason(why::kNoMatmul, matmul_obstacle_ ? matmul_obstacle_ : others_[0]));
    }
    if (const Reason mixed = mixed_kinds()) return miss(mixed);
    if (const Reason split_k = refuse_last_dim()) return miss(split_k);
    const Reason gain = check_profit(state_, plan_.gather, plan_.matmuls,
                                     is_last_dim() ? PipelinedDim::kK : PipelinedDim::kM);
    if (!gain) return std::nullopt;
    take();
    std::vector<std::string> names;
    for (const PipelinedMatmul& matmul : plan_.matmuls) {
      names.push_back("'" + state_.graph.node(matmul.id).name + "'");
    }
    const Reason others = others_.empty() ? Reason() : Reason(why::kReturnsA, others_[0]);
    state_.applied(plan_.gather, Reason(why::kGatherFused,
                                        fmt::format("{}", fmt::join(names, ", ")), gain, others));
    return plan_;
  }

 private:
  std::optional<GatherPlan> miss(Reason reason) {
    state_.missed(plan_.gather, std::move(reason));
    return std::nullopt;
  }

  /// Finds the matmuls that read the gathered value or a matrix of its rows, and its other readers.
  void find_readers() {
    if (state_.uses.is_output(a_)) others_.emplace_back(why::kGraphOutput, state_.name(a_));
    for (NodeId user : state_.uses.of(a_)) {
      const Node& reader = state_.graph.node(user);
      if (reader.op_name() != "view") {
        find_matmul_of(user, a_);
        continue;
      }
      const ValueId rows = reader.outputs[0];
      const Shape& shape = state_.shape(rows);
      if (shape.size() != 2 || shape[1] != state_.shape(a_).back()) {
        others_.emplace_back(why::kNotItsRows, reader.name, state_.graph.type(rows).str(),
                             state_.shape(a_).back().str());
        continue;
      }
      if (state_.uses.is_output(rows)) others_.emplace_back(why::kViewIsOutput, reader.name);
      for (NodeId inner : state_.uses.of(rows)) find_matmul_of(inner, rows);
    }
  }

  void find_matmul_of(NodeId user, ValueId left) {
    Reason reason;
    const Node& node = state_.graph.node(user);
    const auto found = find_matmul(state_, node.outputs[0], reason);
    if (!found) {
      if (node.op->op_class != OpClass::kMatmul) {
        reason = Reason(why::kOtherReader, node.name, node.op_name(), why_cut(node));
      }
    } else if (found->a != left) {
      reason = Reason(why::kRightOperand, node.name);
    } else if (state_.hides.contains(user)) {
      reason = Reason(why::kHidesAnother, node.name);
    } else if (shape(left) != shape_of_a() && state_.is_overwritten(node.outputs[0])) {
      reason = regrouped_and_overwritten(state_, node.outputs[0]);
    } else {
      PipelinedMatmul matmul = *found;
      if (matmul.scaled())
        scales_[user] = shard_of(scale_for(state_, matmul.a_scale, shape_of_a()));
      reason = why_not_earlier(matmul);
      if (!reason) {
        plan_.matmuls.push_back(matmul);
        return;
      }
    }
    if (!matmul_obstacle_ && node.op->op_class == OpClass::kMatmul) matmul_obstacle_ = reason;
    others_.push_back(std::move(reason));
  }

  /// For a reader that cuts the value into parts: why canonicalize did not join them again.
  Reason why_cut(const Node& cut) const {
    for (ValueId part : cut.outputs) {
      for (NodeId user : state_.uses.of(part)) {
        const std::string& joiner = state_.graph.node(user).name;
        if (Reason reason = state_.context.why_missed("canonicalize", joiner)) {
          return Reason(why::kNotJoined, joiner, std::move(reason));
        }
      }
    }
    return {};
  }

  const Shape& shape(ValueId value) const { return state_.shape(value); }
  const Shape& shape_of_a() const { return state_.shape(a_); }
  bool is_last_dim() const {
    return plan_.dim + 1 == static_cast<std::int64_t>(shape_of_a().size());
  }

  /// The shard of a scale that is gathered like A; the fused node then gathers it too.
  Reshaped shard_of(Reshaped scale) const {
    if (state_.shape(scale.value) != scale.shape) return scale;
    const Match m =
        match(state_.graph, state_.uses, scale.value,
              op("wait_tensor", op("all_gather_into_tensor", any("shard")).single().as("gather")));
    if (!m) return scale;
    const Node& gather = m.node("gather");
    const NodeId id = state_.graph.value(gather.outputs[0]).producer;
    const auto dim = static_cast<std::int64_t>(axis_of(gather.attrs, "dim", scale.shape.size()));
    const auto before = [&](NodeId node) { return state_.collectives[node]; };
    const bool neighbours = std::abs(before(id) - before(plan_.gather)) == 1;
    if (state_.is_taken(id) || !is_asynchronous(gather) || !neighbours ||
        *gather.attr<std::string>("group") != *node_.attr<std::string>("group") ||
        dim != plan_.dim) {
      return scale;
    }
    return {m.value("shard"), state_.shape(m.value("shard"))};
  }

  /// Why the matmul cannot move to the gather: nodes that its other operands need come later and
  /// must not be moved. Else adds those nodes to the plan.
  Reason why_not_earlier(const PipelinedMatmul& matmul) {
    const std::string& name = state_.graph.node(matmul.id).name;
    if (state_.writes.between(a_, plan_.gather, matmul.id)) {
      return Reason(why::kOverwrittenAfter, name, state_.name(a_));
    }
    std::vector<ValueId> operands{matmul.b};
    if (matmul.scaled())
      operands.insert(operands.end(), {scales_[matmul.id].value, matmul.b_scale});
    if (matmul.bias >= 0) operands.push_back(matmul.bias);
    for (ValueId operand : operands) {
      if (state_.writes.between(operand, plan_.gather, matmul.id)) {
        return Reason(why::kOverwrittenAfter, name, state_.name(operand));
      }
    }
    std::set<NodeId> moved = plan_.moved;
    for (ValueId operand : operands) {
      if (Reason reason = collect_moved(operand, moved)) {
        return Reason(why::kOperandStays, name, state_.name(operand), std::move(reason));
      }
    }
    plan_.moved = std::move(moved);
    return {};
  }

  Reason collect_moved(ValueId root, std::set<NodeId>& moved) const {
    std::vector<ValueId> open{root};
    while (!open.empty()) {
      const NodeId id = state_.graph.value(open.back()).producer;
      open.pop_back();
      if (id == plan_.gather) return Reason(why::kDependsOnGathered);
      if (id < plan_.gather || state_.position[id] < plan_.gather) continue;
      if (!moved.insert(id).second) continue;
      if (moved.size() > kMostMoved) return Reason(why::kTooManyMoved, kMostMoved);
      const Node& node = state_.graph.node(id);
      if (Reason reason = why_not_movable(id, node)) return reason;
      open.insert(open.end(), node.inputs.begin(), node.inputs.end());
    }
    return {};
  }

  Reason why_not_movable(NodeId id, const Node& node) const {
    switch (node.op->op_class) {
      case OpClass::kWait: {
        const NodeId waited = state_.graph.value(node.inputs[0]).producer;
        if (waited <= plan_.gather) return {};  // the gather itself is met next
        return Reason(why::kWaitsLater, node.name);
      }
      case OpClass::kCollective:
      case OpClass::kFusedMatmul:
      case OpClass::kOpaque:
      case OpClass::kKernel:
        return Reason(why::kNotMovable, node.op_name(), node.name);
      default:
        break;
    }
    for (ValueId input : node.inputs) {
      if (state_.writes.between(input, plan_.gather, id)) {
        return Reason(why::kOperandOverwritten, node.name, state_.name(input));
      }
    }
    return {};
  }

  /// Why matmuls of several kinds cannot share a fused node. (All are plain or all scaled, as A's
  /// dtype decides.)
  Reason mixed_kinds() const {
    const PipelinedMatmul& first = plan_.matmuls[0];
    for (const PipelinedMatmul& other : plan_.matmuls) {
      const std::string& one = state_.graph.node(first.id).name;
      const std::string& two = state_.graph.node(other.id).name;
      if (other.out_dtype != first.out_dtype) return Reason(why::kDTypesDiffer, one, two);
      if ((other.bias < 0) != (first.bias < 0)) return Reason(why::kOneHasBias, one, two);
      if (first.scaled() && scales_.at(other.id) != scales_.at(first.id)) {
        return Reason(why::kScalesDiffer, one, two, state_.name(scales_.at(first.id).value),
                      state_.name(scales_.at(other.id).value));
      }
    }
    return {};
  }

  /// Along the last dim each chunk is a part of K: the sums are split, and A itself is complete
  /// last.
  Reason refuse_last_dim() const {
    if (!is_last_dim()) return {};
    if (plan_.matmuls[0].scaled()) return Reason(why::kLastDimScaled, plan_.dim);
    if (!others_.empty()) return Reason(why::kLastDimOthers, plan_.dim, others_[0]);
    const Dim& k = state_.shape(node_.inputs[0]).back();
    if (k.min(state_.graph.symbols()) < kLeastK) {
      return Reason(why::kLastDimShort, plan_.dim, k.str(), kLeastK);
    }
    return {};
  }

  void take() {
    plan_.return_a = !others_.empty();
    if (plan_.matmuls[0].scaled()) plan_.a_scale = scales_.at(plan_.matmuls[0].id);
    state_.take(plan_.gather, plan_.gather);
    state_.take(plan_.wait, plan_.gather);
    for (const PipelinedMatmul& matmul : plan_.matmuls) state_.take(matmul.id, plan_.gather);
    // Later gathers find these in front of them.
    for (NodeId id : plan_.moved) state_.position[id] = plan_.gather;
  }

  PipelineState& state_;
  const Node& node_;
  GatherPlan plan_;
  ValueId a_ = -1;                     ///< the gathered value
  std::vector<Reason> others_;         ///< why readers are not in the plan
  Reason matmul_obstacle_;             ///< the first of them that concerns a matmul
  std::map<NodeId, Reshaped> scales_;  ///< scales of A, for each scaled matmul
};

}  // namespace

std::optional<GatherPlan> plan_gather(PipelineState& state, NodeId gather) {
  return GatherPlanner(state, gather).run();
}

}  // namespace braid
