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

// What the files of micro_pipeline share.

namespace braid {

/// A matmul of which the right operand is a matrix.
struct PipelinedMatmul {
  NodeId id = -1;
  ValueId a = -1;
  ValueId b = -1;
  ValueId a_scale = -1;  ///< of a scaled one
  ValueId b_scale = -1;
  ValueId bias = -1;  ///< of a scaled one, if it has any
  std::optional<DType> out_dtype;
  [[nodiscard]] bool scaled() const { return a_scale >= 0; }
};

/// A value of the old graph, and the shape that is wanted of it.
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
  std::set<NodeId> moved;  ///< what their other operands need and what comes after the gather
};

/// wait(reduce_scatter(product)), or of an all_reduce, where the product is a matmul or a view of
/// one.
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

/// What is known of the old graph while plans are made, and what becomes of its nodes.
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
  std::vector<bool> overwritten;  ///< of each value
  const DeviceModel& device;
  Bindings bindings;
  std::vector<int> collectives;        ///< before each node
  std::map<NodeId, NodeId> hidden_by;  ///< collectives that are left alone, with what hides them
  std::set<NodeId> hides;              ///< the matmuls of hidden_by
  std::vector<NodeId> taken_by;        ///< of each node the candidate whose plan replaces it, or -1
  std::vector<NodeId> position;        ///< of each node: which one it will stand at
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

/// A gather or reduction that may be fused: `dim` counted from the front, where it has one, and its
/// wait. Else a remark says why not.
[[nodiscard]] bool check_collective(PipelineState& state, NodeId candidate, std::int64_t& dim,
                                    NodeId& wait);
/// What the pipeline gains, for a remark: "12.0 us instead of ...". Empty where it gains nothing
/// and need not be: then a remark says so.
[[nodiscard]] Reason check_profit(PipelineState& state, NodeId candidate,
                                  const std::vector<PipelinedMatmul>& matmuls, PipelinedDim dim);
/// The matmul that a value is, or why it is none.
[[nodiscard]] std::optional<PipelinedMatmul> find_matmul(const PipelineState& state, ValueId value,
                                                         Reason& reason);
/// The scale of the left operand in the form that fused ops take, for a left operand of this shape.
[[nodiscard]] Reshaped scale_for(const PipelineState& state, ValueId scale, const Shape& a);
/// `value`, or where it has another shape, what it is a view of.
[[nodiscard]] Reshaped reshaped(const PipelineState& state, ValueId value, Shape shape);

/// Why a product that the fused node gives with other dims must not be overwritten.
[[nodiscard]] Reason regrouped_and_overwritten(const PipelineState& state, ValueId product);

/// Each leaves exactly one remark at the candidate and marks what its plan takes.
std::optional<GatherPlan> plan_gather(PipelineState& state, NodeId gather);
std::optional<ScatterPlan> plan_scatter(PipelineState& state, NodeId scatter);

}  // namespace braid
