#include "lowering/spellings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "ir/attributes.h"
#include "ir/groups.h"
#include "ir/mutation.h"
#include "ir/op_registry.h"
#include "ir/views.h"
#include "lowering/analysis/match.h"
#include "lowering/analysis/writes.h"
#include "lowering/plain_ops.h"
#include "lowering/rewrite.h"

// Matches
//   getitem                                    -> the value that it names
//   reshape, squeeze, flatten, ...             -> view
//   select, narrow, one_hot, full_like, ...    -> plain ops (plain_ops.h)
//   chunk                                      -> split
//   split or chunk into parts that differ      -> a slice for each part (a kernel writes results of
//                                                 one size)
//   (log_)softmax, topk along an inner dim     -> that of the transposed operand, transposed
//   bmm of one matrix expanded over the batch  -> matmul with that matrix
//   cat(parts of wait(all_gather(x)), dim)     -> wait(all_gather(x, dim))
//   cat(view_dtype of each of them, dim)       -> view_dtype(wait(all_gather(x, dim)))
//   reduce_scatter(cat(parts of x along dim))  -> reduce_scatter(x, dim)
//   view_dtype(wait(all_gather(view_dtype(x)))) back to x's dtype, of equal size
//                                              -> view_dtype(wait(all_gather(x)))
// Parts are the results of a split, or slices. There must be one per rank of the group, in order,
// contiguous and of equal length: else the chunks of the ranks would be swapped, doubled or cut
// elsewhere. The gathered value must have no other reader, as its shape changes. A scattered value
// must not be overwritten between the cut and the scatter's wait.
namespace braid {
namespace {

constexpr std::string_view kPass = "canonicalize";

constexpr ReasonCode kOtherName{"canonicalize.other_name", "another name of '{value}'"};
constexpr ReasonCode kIsView{"canonicalize.is_view", "{op} is a view"};
constexpr ReasonCode kIsBitcast{"canonicalize.is_bitcast", "the bits of computed {value}"};
constexpr ReasonCode kUnevenParts{"canonicalize.uneven_parts",
                                  "{op} into parts that differ: slices"};
constexpr ReasonCode kTurned{"canonicalize.turned", "{op} along dim {dim}: transposed"};
constexpr ReasonCode kPlainOps{"canonicalize.plain_ops", "{op} in plain ops"};
constexpr ReasonCode kChunkIsSplit{"canonicalize.chunk_is_split", "chunk is a split"};
constexpr ReasonCode kOneMatrix{"canonicalize.one_matrix",
                                "the whole batch is multiplied by '{value}'"};
// For gathers and scatters spelt with a split and a cat:
constexpr ReasonCode kGathersAlong{"canonicalize.gathers_along",
                                   "'{gather}' gathers along dim {dim} itself"};
constexpr ReasonCode kStaysGathered{"canonicalize.stays_gathered",
                                    "'{gather}' stays gathered along dim {dim}: {why}"};
constexpr ReasonCode kScattersAlong{"canonicalize.scatters_along",
                                    "scatters '{value}' along dim {dim} itself"};
constexpr ReasonCode kStaysOperand{"canonicalize.stays_operand",
                                   "'{cat}' stays its operand: {why}"};
constexpr ReasonCode kWrongPartCount{
    "canonicalize.wrong_part_count",
    "it joins {parts} parts of '{value}'; expected {expected}, one for each rank of the group"};
constexpr ReasonCode kNoPart{"canonicalize.no_part",
                             "its operand {index}, '{operand}', is no part of '{value}'"};
constexpr ReasonCode kIndivisible{"canonicalize.indivisible",
                                  "dim {dim} of '{value}' does not divide among the {ranks} ranks"};
constexpr ReasonCode kWrongPart{
    "canonicalize.wrong_part",
    "its operand {index}, '{operand}', is [{start}:{end}:{step}] of dim {dim} of '{value}'; "
    "expected [{expected_start}:{expected_end}] of dim {expected_dim}"};
constexpr ReasonCode kCutElsewhere{
    "canonicalize.cut_elsewhere",
    "'{value}' is cut along dim {dim}; expected {expected}, which it is gathered along"};
constexpr ReasonCode kJoinedElsewhere{
    "canonicalize.joined_elsewhere",
    "'{cat}' joins along dim {dim}; expected {expected}, which is scattered"};
constexpr ReasonCode kSeveralWaits{"canonicalize.several_waits",
                                   "'{gather}' is waited for more than once"};
constexpr ReasonCode kOtherReader{"canonicalize.other_reader", "'{reader}' reads it, too"};
constexpr ReasonCode kOtherReaderOfPart{"canonicalize.other_reader_of_part",
                                        "'{reader}' reads a part of it, too"};
constexpr ReasonCode kGraphOutput{"canonicalize.graph_output", "'{value}' is a graph output"};
constexpr ReasonCode kOverwritten{"canonicalize.overwritten",
                                  "'{value}' is overwritten before the scatter has read it"};
constexpr ReasonCode kGathersAs{"canonicalize.gathers_as", "gathers '{value}' as {dtype}"};

std::vector<SliceRange> parts_of(const Graph& graph, const Node& node) {
  return split_ranges(node.attrs, graph.type(node.inputs[0]).shape, graph.symbols());
}

bool is_uneven_split(const Graph& graph, const Node& node) {
  if (node.op_name() != "split" && node.op_name() != "chunk") return false;
  const std::vector<SliceRange> parts = parts_of(graph, node);
  return std::ranges::any_of(
      parts, [&](const SliceRange& part) { return part.length != parts[0].length; });
}

/// The dim of a softmax, log_softmax or topk, where it is not the last one.
std::optional<std::int64_t> inner_row_dim(const Graph& graph, const Node& node) {
  const bool has_rows = node.op->op_class == OpClass::kNorm || node.op_name() == "topk";
  if (!has_rows || !node.attrs.contains("dim")) return std::nullopt;
  const std::size_t rank = graph.type(node.inputs[0]).shape.size();
  const std::size_t axis = axis_of(node.attrs, "dim", rank);
  return axis + 1 == rank ? std::nullopt : std::optional(static_cast<std::int64_t>(axis));
}

/// A view_dtype of what a kernel computes is computed there, too.
bool is_bitcast(const Graph& graph, const Node& node) {
  if (node.op->view != View::kBytes || graph.type(node.outputs[0]).dtype != DType::kF32 ||
      graph.type(node.inputs[0]).dtype != DType::kI32) {
    return false;
  }
  const Node* const operand = producer_of(graph, node.inputs[0]);
  return operand != nullptr && operand->op->op_class == OpClass::kPointwise;
}

bool has_other_spelling(const Graph& graph, const Node& node) {
  const std::string_view op = node.op_name();
  return op == "chunk" || op == "bmm" || is_bitcast(graph, node) ||
         (op != "view" && node.op->view == View::kFlat) || is_uneven_split(graph, node) ||
         inner_row_dim(graph, node);
}

void slice_parts(const Graph& graph, const Node& node, Rewriter& rewrite) {
  const std::vector<SliceRange> parts = parts_of(graph, node);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const SliceRange& part = parts[i];
    const ValueId now =
        rewrite.add(fmt::format("{}_{}", node.name, i), "slice", {rewrite(node.inputs[0])},
                    {{"dim", static_cast<std::int64_t>(part.axis)},
                     {"start", as_bound(part.start)},
                     {"end", as_bound(part.start + part.length)}});
    rewrite.map(node.outputs[i], now);
    rewrite.graph().set_comm_group(now, graph.value(node.outputs[i]).comm_group);
  }
}

/// Kernels reduce along the last dim.
void turn_rows(const Node& node, std::int64_t dim, Rewriter& rewrite) {
  const Attrs turn{{"dim0", dim}, {"dim1", std::int64_t{-1}}};
  Attrs attrs = node.attrs;
  attrs.insert_or_assign("dim", std::int64_t{-1});
  const ValueId x =
      rewrite.add(node.name + "_transpose", "transpose", {rewrite(node.inputs[0])}, turn);
  const std::string name =
      rewrite.fresh_name(fmt::format("{}_{}", node.name, node.op_name()), node.outputs.size());
  const NodeId id = rewrite.graph().add_node(name, node.op_name(), {x}, std::move(attrs));
  const std::vector<ValueId> rows = rewrite.graph().node(id).outputs;
  if (rows.size() == 1) {
    rewrite.copy(node, "transpose", rows, turn);
    return;
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rewrite.map(node.outputs[i],
                rewrite.add(fmt::format("{}_{}", node.name, i), "transpose", {rows[i]}, turn));
  }
}

/// The matrix that the value expands over batch dims; else -1.
ValueId expanded_matrix(const Graph& graph, const Uses& uses, ValueId value) {
  const Match m = match(graph, uses, value, op("expand", any("matrix")));
  if (!m) return -1;
  const ValueId matrix = m.value("matrix");
  const Shape& whole = graph.type(value).shape;
  const Shape last(whole.end() - 2, whole.end());
  if (graph.type(matrix).shape == last) return matrix;
  const Match view = match(graph, uses, matrix, op("view|reshape|_unsafe_view", any("matrix")));
  if (!view || graph.type(matrix).shape != Shape{1, last[0], last[1]}) return -1;
  return graph.type(view.value("matrix")).shape == last ? view.value("matrix") : -1;
}

Graph write_plain_ops(const Graph& graph, PassContext& context) {
  Rewriter rewrite(graph);
  for (const Node& node : graph.nodes()) {
    if (write_plain(graph, node, rewrite)) {
      context.applied(kPass, node.name, Reason(kPlainOps, node.op_name()));
    } else {
      rewrite.copy(node);
    }
  }
  return rewrite.finish();
}

Graph rename(const Graph& graph, PassContext& context) {
  const Uses uses(graph);
  Rewriter rewrite(graph);
  for (const Node& node : graph.nodes()) {
    const std::string_view op = node.op_name();
    if (op == "getitem") {
      rewrite.map(node.outputs[0], rewrite(node.inputs[0]));
      context.applied(kPass, node.name, Reason(kOtherName, graph.value(node.inputs[0]).name));
    } else if (op != "view" && node.op->view == View::kFlat) {
      rewrite.copy(node, "view", rewrite(node.inputs),
                   {{"shape", graph.type(node.outputs[0]).shape}});
      context.applied(kPass, node.name, Reason(kIsView, op));
    } else if (is_bitcast(graph, node)) {
      rewrite.copy(node, "bitcast", rewrite(node.inputs), {});
      context.applied(kPass, node.name, Reason(kIsBitcast, graph.value(node.inputs[0]).name));
    } else if (is_uneven_split(graph, node)) {
      slice_parts(graph, node, rewrite);
      context.applied(kPass, node.name, Reason(kUnevenParts, op));
    } else if (const auto dim = inner_row_dim(graph, node)) {
      turn_rows(node, *dim, rewrite);
      context.applied(kPass, node.name, Reason(kTurned, op, *dim));
    } else if (op == "chunk") {
      rewrite.copy(
          node, "split", rewrite(node.inputs),
          {{"split_size", Shape{parts_of(graph, node)[0].length}}, {"dim", node.attrs.at("dim")}});
      context.applied(kPass, node.name, Reason(kChunkIsSplit));
    } else if (const ValueId b = op == "bmm" ? expanded_matrix(graph, uses, node.inputs[1]) : -1;
               b >= 0) {
      rewrite.copy(node, "matmul", {rewrite(node.inputs[0]), rewrite(b)}, node.attrs);
      context.applied(kPass, node.name, Reason(kOneMatrix, graph.value(b).name));
    } else {
      rewrite.copy(node);
    }
  }
  return rewrite.finish();
}

/// Moves the dim of gathers and scatters that is spelt with a split and a cat into the collective.
class SplitCat {
 public:
  SplitCat(const Graph& graph, PassContext& context)
      : graph_(graph), context_(context), uses_(graph), writes_(graph) {}

  std::optional<Graph> run() {
    for (std::size_t id = 0; id < graph_.nodes().size(); ++id) {
      const Node& node = graph_.nodes()[id];
      if (node.op->view == View::kCat) find_gather(node);
      if (node.op_name() == "reduce_scatter_tensor") find_scatter(id);
    }
    if (dims_.empty()) return std::nullopt;
    Rewriter rewrite(graph_);
    for (std::size_t id = 0; id < graph_.nodes().size(); ++id) {
      const Node& node = graph_.nodes()[id];
      if (const auto same = same_.find(node.outputs[0]); same != same_.end()) {
        if (same->second >= 0) stand_for(node, same->second, rewrite);
        continue;
      }
      std::vector<ValueId> inputs = node.inputs;
      Attrs attrs = node.attrs;
      if (const auto dim = dims_.find(id); dim != dims_.end()) {
        attrs.insert_or_assign("dim", static_cast<std::int64_t>(dim->second.axis));
        inputs = {dim->second.operand};
      }
      rewrite.copy(node, rewrite(inputs), std::move(attrs));
    }
    return rewrite.finish();
  }

 private:
  /// Replaces the cat by the gathered value, cast to the dtype in which its parts are seen.
  void stand_for(const Node& cat, ValueId whole, Rewriter& rewrite) const {
    const DType dtype = graph_.type(cat.outputs[0]).dtype;
    if (dtype == graph_.type(whole).dtype) return rewrite.map(cat.outputs[0], rewrite(whole));
    rewrite.copy(cat, "view_dtype", {rewrite(whole)}, {{"dtype", dtype}});
  }

  /// The new form of a collective.
  struct Moved {
    std::size_t axis;
    ValueId operand;
  };

  const Node* producer(ValueId value) const { return producer_of(graph_, value); }
  std::size_t axis_of(const Node& node) const {
    return braid::axis_of(node.attrs, "dim", graph_.type(node.inputs[0]).shape.size());
  }
  const Node* cutter(ValueId part) const {
    const Node* node = producer(part);
    return node != nullptr && (node->op_name() == "split" || node->op_name() == "slice") ? node
                                                                                         : nullptr;
  }

  /// The value that this one is an element-by-element view_dtype of; else itself.
  ValueId itself(ValueId value) const {
    const Node* node = producer(value);
    if (node == nullptr || node->op->view != View::kBytes) return value;
    const ValueId operand = node->inputs[0];
    const auto size = [&](ValueId of) { return dtype_size(graph_.type(of).dtype); };
    return size(operand) == size(value) ? operand : value;
  }

  /// The value that the cat's first operand is a part of; -1 when it is none.
  ValueId whole_of(const Node& cat) const {
    for (ValueId operand : cat.inputs) {
      if (const Node* cut = cutter(itself(operand))) return cut->inputs[0];
    }
    return -1;
  }

  /// Why the operands of the cat are not the `ranks` equal parts of `whole`, in order and along one
  /// dim, which `axis` is set to; else empty.
  Reason find_parts(const Node& cat, ValueId whole, std::int64_t ranks, std::size_t& axis) {
    const Shape& shape = graph_.type(whole).shape;
    const std::string& name = graph_.value(whole).name;
    if (cat.inputs.size() != static_cast<std::size_t>(ranks)) {
      return Reason(kWrongPartCount, cat.inputs.size(), name, ranks);
    }
    const Node* last_cut = nullptr;
    std::vector<SliceRange> ranges;
    for (std::size_t i = 0; i < cat.inputs.size(); ++i) {
      const ValueId part = itself(cat.inputs[i]);
      const Node* cut = cutter(part);
      if (cut == nullptr || cut->inputs[0] != whole) {
        return Reason(kNoPart, i, graph_.value(part).name, name);
      }
      if (cut != last_cut) {
        ranges = part_ranges(cut->attrs, shape, graph_.symbols());
        last_cut = cut;
      }
      const SliceRange& range = ranges[graph_.value(part).result];
      if (i == 0) axis = range.axis;
      const auto length = shape[axis].divide_exactly(ranks, graph_.symbols());
      if (!length) return Reason(kIndivisible, axis, name, ranks);
      const Dim start = *length * static_cast<std::int64_t>(i);
      if (range.axis == axis && range.start == start && range.length == *length &&
          range.step == 1) {
        continue;
      }
      return Reason(kWrongPart, i, graph_.value(part).name, range.start.str(),
                    (range.start + range.length * range.step).str(), range.step, range.axis, name,
                    start.str(), (start + *length).str(), axis);
    }
    return {};
  }

  void find_gather(const Node& cat) {
    const ValueId whole = whole_of(cat);
    if (whole < 0) return;
    const Match m =
        match(graph_, uses_, whole, op("wait_tensor", op("all_gather_into_tensor").as("gather")));
    if (!m || !is_asynchronous(m.node("gather"))) return;
    const Node& gather = m.node("gather");
    std::size_t axis = 0;
    Reason obstacle = find_parts(cat, whole, group_of(graph_, gather).size, axis);
    if (!obstacle && axis != axis_of(gather)) {
      obstacle = Reason(kCutElsewhere, graph_.value(whole).name, axis, axis_of(gather));
    }
    if (!obstacle) obstacle = other_reader(gather, whole, cat);
    if (obstacle) {
      context_.missed(kPass, cat.name,
                      Reason(kStaysGathered, gather.name, axis_of(gather), obstacle));
      return;
    }
    dims_[graph_.value(gather.outputs[0]).producer] = {axis_of(cat), gather.inputs[0]};
    same_[cat.outputs[0]] = whole;
    for (NodeId user : uses_.of(whole)) same_[graph_.node(user).outputs[0]] = -1;
    for (ValueId operand : cat.inputs) {
      if (itself(operand) != operand) same_[operand] = -1;
    }
    context_.applied(kPass, cat.name, Reason(kGathersAlong, gather.name, axis_of(cat)));
  }

  /// Why another reader of the gathered value is in the way; else empty.
  Reason other_reader(const Node& gather, ValueId whole, const Node& cat) const {
    if (uses_.of(gather.outputs[0]).size() > 1) return Reason(kSeveralWaits, gather.name);
    std::vector<ValueId> parts;
    if (uses_.is_output(whole)) parts.push_back(whole);
    for (NodeId user : uses_.of(whole)) {
      const Node& cut = graph_.node(user);
      if (cutter(cut.outputs[0]) == nullptr) return Reason(kOtherReader, cut.name);
      parts.insert(parts.end(), cut.outputs.begin(), cut.outputs.end());
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (uses_.is_output(parts[i])) return Reason(kGraphOutput, graph_.value(parts[i]).name);
      for (NodeId user : uses_.of(parts[i])) {
        const Node& reader = graph_.node(user);
        if (&reader == &cat) continue;
        if (itself(reader.outputs[0]) != parts[i]) return Reason(kOtherReaderOfPart, reader.name);
        parts.push_back(reader.outputs[0]);
      }
    }
    return {};
  }

  void find_scatter(NodeId id) {
    const Node& scatter = graph_.node(id);
    const Node* cat = producer(scatter.inputs[0]);
    if (cat == nullptr || cat->op->view != View::kCat || !is_asynchronous(scatter)) return;
    if (same_.contains(cat->outputs[0])) return;  // it is a gathered value by now
    const ValueId whole = whole_of(*cat);
    // The reduction is in the cat's dtype.
    if (whole < 0 || graph_.type(whole).dtype != graph_.type(cat->outputs[0]).dtype) return;
    std::size_t axis = 0;
    Reason obstacle = find_parts(*cat, whole, group_of(graph_, scatter).size, axis);
    if (!obstacle && axis_of(*cat) != axis_of(scatter)) {
      obstacle = Reason(kJoinedElsewhere, cat->name, axis_of(*cat), axis_of(scatter));
    }
    if (!obstacle) {
      NodeId first = id;
      for (ValueId part : cat->inputs) first = std::min(first, graph_.value(part).producer);
      const NodeId wait = uses_.of(scatter.outputs[0]).back();
      if (writes_.between(whole, first, wait)) {
        obstacle = Reason(kOverwritten, graph_.value(whole).name);
      }
    }
    if (obstacle) {
      context_.missed(kPass, scatter.name, Reason(kStaysOperand, cat->name, obstacle));
      return;
    }
    dims_[id] = {axis, whole};
    context_.applied(kPass, scatter.name, Reason(kScattersAlong, graph_.value(whole).name, axis));
  }

  const Graph& graph_;
  PassContext& context_;
  Uses uses_;
  Writes writes_;
  std::map<NodeId, Moved> dims_;     ///< collectives, with their new form
  std::map<ValueId, ValueId> same_;  ///< replacement of a node's first result; -1: removed
};

/// Removes the casts around gathers of bytes that are seen as another dtype (8-bit floats as u8):
/// the gather takes the original operand, and its wait gets a view_dtype where needed.
class DTypeViews {
 public:
  DTypeViews(const Graph& graph, PassContext& context)
      : graph_(graph), context_(context), uses_(graph), overwritten_(overwritten_values(graph)) {}

  std::optional<Graph> run() {
    for (std::size_t id = 0; id < graph_.nodes().size(); ++id) find(id);
    if (gathers_.empty()) return std::nullopt;
    Rewriter rewrite(graph_);
    for (std::size_t id = 0; id < graph_.nodes().size(); ++id) {
      const Node& node = graph_.nodes()[id];
      if (const auto gather = gathers_.find(id); gather != gathers_.end()) {
        rewrite.copy(node, {rewrite(gather->second)}, node.attrs);
      } else if (waits_.contains(id)) {
        Graph& graph = rewrite.graph();
        const DType dtype = graph_.type(node.outputs[0]).dtype;
        const ValueId wait =
            rewrite.add(node.name + "_itself", "wait_tensor", rewrite(node.inputs));
        const NodeId view = graph.add_node(node.name, "view_dtype", {wait}, {{"dtype", dtype}});
        rewrite.map(node.outputs[0], graph.node(view).outputs[0]);
      } else {
        rewrite.copy(node);
      }
    }
    return rewrite.finish();
  }

 private:
  void find(NodeId id) {
    const Node& gather = graph_.node(id);
    if (gather.op_name() != "all_gather_into_tensor" || !is_asynchronous(gather)) return;
    const Node* bytes = producer_of(graph_, gather.inputs[0]);
    if (bytes == nullptr || bytes->op->view != View::kBytes) return;
    const ValueId operand = bytes->inputs[0];
    const DType dtype = graph_.type(operand).dtype;
    if (dtype_size(dtype) != dtype_size(graph_.type(gather.inputs[0]).dtype)) return;
    bool seen_back = false;
    for (NodeId wait : uses_.of(gather.outputs[0])) {
      const ValueId whole = graph_.node(wait).outputs[0];
      if (overwritten_[whole]) return;
      for (NodeId reader : uses_.of(whole)) {
        seen_back = seen_back || (graph_.node(reader).op->view == View::kBytes &&
                                  graph_.type(graph_.node(reader).outputs[0]).dtype == dtype);
      }
    }
    if (!seen_back) return;
    gathers_[id] = operand;
    for (NodeId wait : uses_.of(gather.outputs[0])) waits_.insert(wait);
    context_.applied(kPass, gather.name,
                     Reason(kGathersAs, graph_.value(operand).name, dtype_name(dtype)));
  }

  const Graph& graph_;
  PassContext& context_;
  Uses uses_;
  std::vector<bool> overwritten_;
  std::map<NodeId, ValueId> gathers_;  ///< with their new operand
  std::set<NodeId> waits_;             ///< waits of these
};

}  // namespace

std::optional<Graph> normalize_spellings(const Graph& graph, PassContext& context) {
  const auto any = [](const Graph& in, auto is) { return std::ranges::any_of(in.nodes(), is); };
  std::optional<Graph> result;
  if (any(graph, [&](const Node& node) { return has_plain_form(graph, node); })) {
    result = write_plain_ops(graph, context);
  }
  const Graph& plain = result ? *result : graph;
  if (any(plain, [&](const Node& node) { return has_other_spelling(plain, node); })) {
    result = rename(plain, context);
  }
  const Graph& renamed = result ? *result : graph;
  if (any(renamed, [](const Node& node) { return node.op->view == View::kCat; })) {
    if (auto joined = SplitCat(renamed, context).run()) result = std::move(joined);
  }
  const Graph& joined = result ? *result : graph;
  if (any(joined, [](const Node& node) { return node.op->view == View::kBytes; })) {
    if (auto lifted = DTypeViews(joined, context).run()) result = std::move(lifted);
  }
  return result;
}

}  // namespace braid
