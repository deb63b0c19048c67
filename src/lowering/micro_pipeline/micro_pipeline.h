#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "braid/graph.h"
#include "lowering/analysis/match.h"
#include "lowering/analysis/writes.h"
#include "lowering/micro_pipeline/pipeline_cost.h"
#include "lowering/micro_pipeline/reasons.h"
#include "lowering/pass.h"

// Data shared by the files of micro_pipeline.

namespace braid {

/// A matmul whose right operand is a matrix.
struct PipelinedMatmul {
  NodeId id = -1;
  ValueId a = -1;
  ValueId b = -1;
  ValueId a_scale = -1;  ///< scaled_mm only
  ValueId b_scale = -1;
  ValueId bias = -1;  ///< scaled_mm only; -1: none
  std::optional<DType> out_dtype;
  [[nodiscard]] bool scaled() const { return a_scale >= 0; }
};

/// A value of the old graph, and the shape in which it is needed.
struct Reshaped {
  ValueId value = -1;
  Shape shape;
  bool operator==(const Reshaped&) const = default;
};

/// wait(all_gather(shard)) and the matmuls that read it as their left operand.
struct GatherPlan {
  NodeId gather = -1;
  NodeId wait = -1;
  std::int64_t dim = 0;
  std::vector<PipelinedMatmul> matmuls;
  Reshaped a_scale;
  bool return_a = false;
  std::set<NodeId> moved;  ///< nodes that their other operands need and that come after the gather
};

/// wait(reduce_scatter(product)), or of an all_reduce; the product is a matmul or a view of one.
struct ScatterPlan {
  NodeId scatter = -1;
  NodeId wait = -1;
  std::int64_t dim = 0;
  PipelinedMatmul matmul;
  ValueId product = -1;
  Reshaped a;
  Reshaped a_scale;
  bool return_mm = false;
};

/// Analyses of the old graph for planning, and the plan of its nodes so far.
struct PipelineState {
  PipelineState(const Graph& old, PassContext& pass_context);

  const Pattern product = either(
      op("mm|matmul", any("A"), any("B")),
      either(op("scaled_mm", any("A"), any("B"), any("A_scale"), any("B_scale")),
             op("scaled_mm", any("A"), any("B"), any("A_scale"), any("B_scale"), any("bias"))));
  const Graph& graph;
  PassContext& context;
  Uses uses;
  Writes writes;
  std::vector<bool> overwritten;  ///< for each value
  const DeviceModel& device;
  Bindings bindings;
  std::vector<int> collectives;        ///< how many collectives stand before each node
  std::map<NodeId, NodeId> hidden_by;  ///< collectives left alone, with the matmul that hides each
  std::set<NodeId> hides;              ///< the matmuls in hidden_by
  std::map<NodeId, double> saved_ns;   ///< what split_reductions would save of each matmul it cuts
  std::vector<NodeId> taken_by;        ///< for each node: the candidate whose plan replaces it, or
                                       ///< -1
  std::vector<NodeId> position;        ///< for each node: the index at which it will stand
  std::map<NodeId, Remark> remarks;    ///< of each candidate

  [[nodiscard]] const std::string& name(ValueId value) const { return graph.value(value).name; }
  [[nodiscard]] const Shape& shape(ValueId value) const { return graph.type(value).shape; }
  [[nodiscard]] bool is_taken(NodeId id) const { return taken_by[id] >= 0; }
  /// Whether some node overwrites the memory that the value names.
  [[nodiscard]] bool is_overwritten(ValueId value) const { return overwritten[value]; }
  /// The node's results are there from the candidate on.
  void take(NodeId id, NodeId candidate);

  void missed(NodeId candidate, Reason reason);
  void applied(NodeId candidate, Reason reason);
};

/// Whether a gather or reduction may be fused. Sets `dim`, where it has one, counted from the
/// front, and its wait. Else leaves a remark that says why not.
[[nodiscard]] bool check_collective(PipelineState& state, NodeId candidate, std::int64_t& dim,
                                    NodeId& wait);
/// The gain of the pipeline for a remark, such as "12.0 us instead of ...". Empty where there is no
/// gain and PassConfig does not force it; a remark says so then.
[[nodiscard]] Reason check_profit(PipelineState& state, NodeId candidate,
                                  const std::vector<PipelinedMatmul>& matmuls, PipelinedDim dim);
/// The matmul that produced the value; else sets the reason why there is none.
[[nodiscard]] std::optional<PipelinedMatmul> find_matmul(const PipelineState& state, ValueId value,
                                                         Reason& reason);
/// The scale of the left operand in the form that fused ops take, for a left operand of shape `a`.
[[nodiscard]] Reshaped scale_for(const PipelineState& state, ValueId scale, const Shape& a);
/// `value`, or the value it is a view of where that has the wanted shape.
[[nodiscard]] Reshaped reshaped(const PipelineState& state, ValueId value, Shape shape);

/// Why a product must not be overwritten if the fused node gives it with other dims.
[[nodiscard]] Reason regrouped_and_overwritten(const PipelineState& state, ValueId product);

/// Both leave exactly one remark at the candidate and mark the nodes that the plan takes.
std::optional<GatherPlan> plan_gather(PipelineState& state, NodeId gather);
std::optional<ScatterPlan> plan_scatter(PipelineState& state, NodeId scatter);

}  // namespace braid
