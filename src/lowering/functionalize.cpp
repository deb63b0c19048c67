
#include <algorithm>
#include <vector>

#include "ir/attributes.h"
#include "ir/fail.h"
#include "ir/mutation.h"
#include "ir/views.h"
#include "lowering/passes.h"
#include "lowering/rewrite.h"

// functionalize: removes mutation, so that no node overwrites what another one reads.
//
// Matches
//   in-place and out forms of collectives    -> the plain form; later readers of the operand read
//                                               the result (through the inverse of the views
//                                               between the two)
//   copy_ and fsdp.copy_                     -> nothing; readers of the target read the source
//   index_copy_, scatter_ and the like       -> the same without `_`; append_kv -> index_copy;
//                                               readers of the target read its result
//   resize_storage_bytes_                    -> nothing; storage is planned here
// The mutations that the caller sees remain: one `copy_` into each graph input that was
// overwritten, at the end of the graph, whose result nobody reads. Of an input that was overwritten
// in parts, it copies what became of it by updates (index_copy, slice_scatter): a plan makes these
// in place, and the copy is nothing (plan/updates.h).
// The idea and the name are PyTorch's.
namespace braid {
namespace {

constexpr std::string_view kPass = "functionalize";

constexpr ReasonCode kOutOfPlace{"functionalize.out_of_place",
                                 "out of place; who reads its operand later reads its result"};
constexpr ReasonCode kStorageIsPlanned{"functionalize.storage_is_planned",
                                       "gone: storage is planned, not resized"};
constexpr ReasonCode kReadersReadSource{"functionalize.readers_read_source",
                                        "who reads its target later reads its source"};
constexpr ReasonCode kSavedFirst{"functionalize.saved_first",
                                 "saved in '{copy}' before it is overwritten"};

class Functionalizer {
 public:
  Functionalizer(const Graph& graph, PassContext& context)
      : graph_(graph),
        context_(context),
        storage_(storages(graph)),
        users_(graph.users()),
        rewrite_(graph) {
    written_.resize(graph.values().size());
  }

  Graph run() {
    const auto& nodes = graph_.nodes();
    const auto tail = std::find_if(nodes.rbegin(), nodes.rend(), [](const Node& node) {
      return node.op->op_class != OpClass::kMutation;
    });
    tail_ = nodes.data() + (nodes.rend() - tail);
    for (const Node& node : nodes) visit(node);
    write_back();
    return rewrite_.finish();
  }

 private:
  /// The value that a storage was overwritten with.
  struct Written {
    bool by_node = false;
    std::string copy_name;  ///< name of the last copy_ that did it, if one did
  };

  ValueId storage(ValueId value) const { return storage_[value]; }

  void visit(const Node& node) {
    const std::span<const ValueId> mutated = mutated_operands(node);
    if (mutated.empty()) {
      rewrite_.copy(node);
      // The memory of an in-place collective holds the result from its wait on.
      if (node.op->op_class == OpClass::kWait) overwrite_waited(node);
      return;
    }
    const std::string_view op = node.op_name();
    if (node.op->op_class == OpClass::kCollective) {
      copy_out_of_place(node);
      if (!is_asynchronous(node)) {
        for (ValueId result : node.outputs) overwrite(result, rewrite_(result));
      }
      context_.applied(kPass, node.name, Reason(kOutOfPlace));
      return;
    }
    if (op == "resize_storage_bytes_") {
      rewrite_.map(node.outputs[0], rewrite_(node.inputs[0]));
      context_.applied(kPass, node.name, Reason(kStorageIsPlanned));
      return;
    }
    if (node.op->mutates == Mutates::kFirst && takes_indices(node)) {
      rewrite_.copy(node, std::string(op.substr(0, op.size() - 1)), rewrite_(node.inputs),
                    node.attrs);
      overwrite(node.outputs[0], rewrite_(node.outputs[0]));
      return context_.applied(kPass, node.name, Reason(kOutOfPlace));
    }
    if (op == "append_kv") {
      for (const std::size_t i : {0, 1}) {
        const ValueId now = append(node, i);
        rewrite_.map(node.outputs[i], now);
        overwrite(node.outputs[i], now);
      }
      return context_.applied(kPass, node.name, Reason(kOutOfPlace));
    }
    if (op != "copy_" && op != "fsdp.copy_") {
      throw_invalid(node.name, "{} overwrites its last operand; run decompose_fsdp first", op);
    }
    const ValueId source = rewrite_(node.inputs[1]);
    rewrite_.map(node.outputs[0], source);
    if (&node < tail_) context_.applied(kPass, node.name, Reason(kReadersReadSource));
    overwrite(node.outputs[0], source);
    written_[storage(node.inputs[0])].copy_name = node.name;
  }

  /// The keys' or the values' cache with its new rows: seen as [slots, ...], rows are replaced.
  /// Of 8-bit floats each row is divided by the scale first.
  ValueId append(const Node& node, std::size_t i) {
    const Shape& cache = graph_.type(node.inputs[i]).shape;
    Shape slots = graph_.type(node.inputs[2 + i]).shape;
    slots[0] = -1;
    const ValueId rows =
        add(node, "view", {rewrite_(node.inputs[i])}, {{"shape", std::move(slots)}});
    ValueId more = rewrite_(node.inputs[2 + i]);
    if (node.inputs.size() > 5) {
      const DType dtype = graph_.type(node.inputs[i]).dtype;
      if (graph_.type(node.inputs[2 + i]).dtype != DType::kF32) {
        more = add(node, "to", {more}, {{"dtype", DType::kF32}});
      }
      more = add(node, "div", {more, rewrite_(node.inputs[5 + i])}, {});
      more = add(node, "to", {more}, {{"dtype", dtype}});
    }
    // Errors of an index name the node itself.
    const std::string name = i == 0 ? node.name : rewrite_.fresh_name(node.name);
    Graph& graph = rewrite_.graph();
    const NodeId now = graph.add_node(name, "index_copy", {rows, rewrite_(node.inputs[4]), more},
                                      {{"dim", std::int64_t{0}}});
    return add(node, "view", {graph.node(now).outputs[0]}, {{"shape", cache}});
  }

  void copy_out_of_place(const Node& node) {
    std::string op(node.op_name());
    std::vector<ValueId> inputs = rewrite_(node.inputs);
    if (op.ends_with("_out")) {
      op.resize(op.size() - 4);
      inputs.pop_back();
    } else {
      op.pop_back();
    }
    rewrite_.copy(node, std::move(op), std::move(inputs), node.attrs);
  }

  void overwrite_waited(const Node& wait) {
    const Node* producer = producer_of(graph_, wait.inputs[0]);
    if (producer == nullptr || mutated_operands(*producer).empty()) return;
    overwrite(wait.inputs[0], rewrite_(wait.outputs[0]));
  }

  /// Records that the part of the storage named by `name` now holds `now`.
  void overwrite(ValueId name, ValueId now) {
    const ValueId target = storage(name);
    // From the name up to the storage, each view is undone in turn.
    for (ValueId value = name; value != target;) {
      const Value& v = graph_.value(value);
      const Node& node = graph_.node(v.producer);
      if (node.op->op_class == OpClass::kView) now = undo(node, v.result, now);
      value = *named_operand(node, v.result);
    }
    rewrite_.map(target, now);
    for (const NodeId user : users_[target]) {
      const Node& node = graph_.node(user);
      if (node.op->op_class == OpClass::kWait) rewrite_.map(node.outputs[0], now);
    }
    written_[target].by_node = true;
  }

  /// The new value of the view's operand after `part`, its result, became `now`.
  ValueId undo(const Node& view, int result, ValueId now) {
    const std::string_view op = view.op_name();
    const ValueId operand = view.inputs[0];
    const Shape& shape = graph_.type(operand).shape;
    if (op == "transpose") return add(view, op, {now}, view.attrs);
    if (op == "permute") {
      const auto order = permutation(op, view.attrs, shape.size());
      std::vector<std::int64_t> inverse(order.size());
      for (std::size_t i = 0; i < order.size(); ++i) {
        inverse[order[i]] = static_cast<std::int64_t>(i);
      }
      return add(view, op, {now}, {{"dims", std::move(inverse)}});
    }
    if (view.op->view == View::kPart) {
      const SliceRange range = part_ranges(view.attrs, shape, graph_.symbols())[result];
      if (op == "select") {
        Shape with_dim = shape;
        with_dim[range.axis] = 1;
        now = add(view, "view", {now}, {{"shape", std::move(with_dim)}});
      }
      return put(view, rewrite_(operand), shape, range, now);
    }
    return add(view, "view", {now}, {{"shape", shape}});
  }

  /// `whole` with the range replaced by `part`. Of an input, which has a place, only that part is
  /// written; another value becomes a join of what lies before, `part`, and what lies after, which
  /// its readers and producers can fuse with.
  ValueId put(const Node& view, ValueId whole, const Shape& shape, const SliceRange& range,
              ValueId part) {
    const auto dim = static_cast<std::int64_t>(range.axis);
    const Dim end = range.start + range.length * range.step;
    const bool to_the_end = end == shape[range.axis];
    const bool from_the_start = range.start == Dim(0);
    const auto may_be_empty = [&](const Dim& length) { return length.min(graph_.symbols()) < 1; };
    if (to_the_end && from_the_start && range.step == 1) return part;
    if (range.step != 1 || graph_.value(storage(view.inputs[0])).producer < 0 ||
        (!from_the_start && may_be_empty(range.start)) ||
        (!to_the_end && may_be_empty(shape[range.axis] - end))) {
      return add(view, "slice_scatter", {whole, part},
                 {{"dim", dim},
                  {"start", as_bound(range.start)},
                  {"end", as_bound(end)},
                  {"step", range.step}});
    }
    std::vector<ValueId> parts;
    if (!from_the_start) {
      parts.push_back(add(view, "slice", {whole}, {{"dim", dim}, {"end", as_bound(range.start)}}));
    }
    parts.push_back(part);
    if (!to_the_end) {
      parts.push_back(add(view, "slice", {whole}, {{"dim", dim}, {"start", as_bound(end)}}));
    }
    return add(view, "cat", std::move(parts), {{"dim", dim}});
  }

  ValueId add(const Node& near, std::string_view op, std::vector<ValueId> inputs, Attrs attrs) {
    return rewrite_.add(near.name + "_back", op, std::move(inputs), std::move(attrs));
  }

  void write_back() {
    Graph& graph = rewrite_.graph();
    std::vector<std::pair<std::size_t, ValueId>> updates;  // graph input, and its final value
    for (std::size_t i = 0; i < graph_.inputs().size(); ++i) {
      const ValueId input = graph_.input_values()[i];
      if (!written_[input].by_node) continue;
      if (rewrite_(input) != graph.input_values()[i]) updates.emplace_back(i, rewrite_(input));
    }
    // The old value of an input that is still needed at the end is copied first.
    const std::vector<ValueId> now = storages(graph);
    const auto saved = [&](ValueId value) {
      const ValueId lies_in = now[value];
      const bool lost = std::ranges::any_of(updates, [&](const auto& update) {
        return graph.input_values()[update.first] == lies_in;
      });
      if (!lost) return value;
      const std::string name = rewrite_.fresh_name(graph.value(value).name + "_saved");
      context_.applied(kPass, graph.value(value).name, Reason(kSavedFirst, name));
      return rewrite_.add(name, "copy", {value});
    };
    for (auto& [index, source] : updates) source = saved(source);
    for (ValueId output : graph_.outputs()) {
      const ValueId value = rewrite_(output);
      if (static_cast<std::size_t>(value) < now.size()) rewrite_.map(output, saved(value));
    }
    for (const auto& [index, source] : updates) {
      std::string name = written_[graph_.input_values()[index]].copy_name;
      if (name.empty()) name = rewrite_.fresh_name(graph_.inputs()[index].name + "_update");
      graph.add_node(std::move(name), "copy_", {graph.input_values()[index], source});
    }
  }

  const Graph& graph_;
  PassContext& context_;
  std::vector<ValueId> storage_;
  std::vector<std::vector<NodeId>> users_;  ///< of each value
  std::vector<Written> written_;            ///< for each storage
  const Node* tail_ = nullptr;              ///< from here on nodes only overwrite inputs
  Rewriter rewrite_;
};

}  // namespace

constinit const Pass functionalize{
    .name = "functionalize",
    .summary = "in-place and out forms become plain ones; inputs are overwritten last",
    .run = [](const Graph& graph, PassContext& context) -> std::optional<Graph> {
      const auto mutates = [](const Node& node) { return node.op->mutates != Mutates::kNothing; };
      if (std::ranges::none_of(graph.nodes(), mutates)) return std::nullopt;
      return Functionalizer(graph, context).run();
    }};

}  // namespace braid
