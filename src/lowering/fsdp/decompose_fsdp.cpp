
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "ir/mutation.h"
#include "ir/numel.h"
#include "ir/op_registry.h"
#include "ir/views.h"
#include "lowering/fsdp/fsdp.h"
#include "lowering/passes.h"
#include "lowering/rewrite.h"

// decompose_fsdp: rewrites FSDP's copies into plain ops, which every later pass knows.
//
// Matches
// - fsdp.all_gather_copy_in(x..., output): a cat of the flattened operands. Result 1 is `output`;
//   it needs them only where somebody reads it before a gather overwrites all of it. Then it is a
//   join_by_rank of them with the chunks that `output` has for the other ranks, since the place of
//   a rank's part depends on the rank
// - fsdp.split_with_sizes_copy(x): a split, and a copy of each part where x or the part is
//   overwritten later on
// - fsdp.chunk_cat(x...): a cat of the operands, seen as their chunks
// - getitem of these: the result it names
// fsdp.copy_ and resize_storage_bytes_ stay: they are mutations, like copy_. A buffer that nobody
// reads is left to the gather.
namespace braid {
namespace {

constexpr std::string_view kPass = "decompose_fsdp";

constexpr ReasonCode kFlatCat{"decompose_fsdp.flat_cat", "a cat of the flattened operands"};
constexpr ReasonCode kJoined{"decompose_fsdp.joined",
                             "a cat of the flattened operands, and the buffer with it: '{reader}' "
                             "reads that before a gather"};
constexpr ReasonCode kIsSplit{"decompose_fsdp.is_split", "a split"};
constexpr ReasonCode kCatOfChunks{"decompose_fsdp.cat_of_chunks", "a cat of the operands' chunks"};

class Decomposer {
 public:
  Decomposer(const Graph& graph, PassContext& context)
      : graph_(graph),
        context_(context),
        storage_(storages(graph)),
        overwritten_(graph.values().size(), -1),
        rewrite_(graph) {
    for (std::size_t id = 0; id < graph.nodes().size(); ++id) {
      for (ValueId value : mutated_operands(graph.nodes()[id])) overwritten_[storage(value)] = id;
    }
  }

  Graph run() {
    find_readers();
    for (std::size_t id = 0; id < graph_.nodes().size(); ++id) {
      const Node& node = graph_.nodes()[id];
      const std::string_view op = node.op_name();
      if (op == kCopyIn) {
        copy_in(node);
      } else if (op == kSplit) {
        split(node, id);
      } else if (op == kChunkCat) {
        chunk_cat(node);
      } else if (op == "getitem" && is_taken_apart(node.inputs[0])) {
        rewrite_.map(node.outputs[0], rewrite_(node.inputs[0]));
      } else {
        rewrite_.copy(node);
      }
    }
    return rewrite_.finish();
  }

 private:
  ValueId storage(ValueId value) const { return storage_[value]; }

  bool is_taken_apart(ValueId value) const {
    const Origin origin = origin_of(graph_, value);
    return origin.node != nullptr &&
           (origin.node->op_name() == kCopyIn || origin.node->op_name() == kSplit);
  }

  /// Sweeps backwards: finds for each copy into a buffer who reads it before a gather overwrites
  /// all of it.
  void find_readers() {
    const std::string caller = "the caller";
    std::vector<const std::string*> reader(graph_.values().size(), nullptr);
    for (ValueId output : graph_.outputs()) reader[storage(output)] = &caller;
    for (std::size_t id = graph_.nodes().size(); id-- > 0;) {
      const Node& node = graph_.nodes()[id];
      if (node.op_name() == kCopyIn) {
        // What is there for other ranks is read with it.
        const std::string* const found = reader[storage(node.inputs.back())];
        if (found != nullptr) readers_.emplace(&node, *found);
        for (std::size_t i = 0; i + 1 < node.inputs.size(); ++i) {
          reader[storage(node.inputs[i])] = &node.name;
        }
        continue;
      }
      const ValueId written = overwrites_all(node);
      if (written >= 0) reader[storage(written)] = nullptr;
      for (ValueId input : node.inputs) {
        if (input != written && !names_only(node)) reader[storage(input)] = &node.name;
      }
    }
  }

  /// The operand whose whole storage the node overwrites without reading it, or -1.
  ValueId overwrites_all(const Node& node) const {
    const std::string_view op = node.op_name();
    ValueId value = -1;
    if (op == "all_gather_into_tensor_out") value = node.inputs[1];
    if (op == "copy_" || op == kCopy) value = node.inputs[0];
    if (value < 0) return -1;
    const bool whole = same_numel(graph_.type(value).shape, graph_.type(storage(value)).shape);
    return whole ? value : -1;
  }

  /// A view or a wait reads nothing: it only names memory.
  static bool names_only(const Node& node) {
    return mutated_operands(node).empty() && named_operand(node, 0).has_value();
  }

  /// Adds a node and returns its only result.
  ValueId add(std::string name, std::string_view op, std::vector<ValueId> inputs, Attrs attrs) {
    Graph& graph = rewrite_.graph();
    return graph.node(graph.add_node(std::move(name), op, std::move(inputs), std::move(attrs)))
        .outputs[0];
  }
  std::string fresh(const Node& node, const char* suffix) const {
    return rewrite_.fresh_name(node.name + suffix);
  }

  void copy_in(const Node& node) {
    std::vector<ValueId> flat;
    for (std::size_t i = 0; i + 1 < node.inputs.size(); ++i) {
      flat.push_back(add(fresh(node, "_flat"), "view", {rewrite_(node.inputs[i])},
                         {{"shape", Shape{Dim(-1)}}}));
    }
    const ValueId part = add(node.name, "cat", std::move(flat), {});
    const ValueId buffer = rewrite_(node.inputs.back());
    rewrite_.map(node.outputs[0], part);
    rewrite_.map(node.outputs[1], buffer);
    const auto reader = readers_.find(&node);
    if (reader == readers_.end()) return context_.applied(kPass, node.name, Reason(kFlatCat));
    const std::string& group = *node.attr<std::string>("group");
    std::vector<ValueId> chunks{part};
    for (std::int64_t shift = 1; shift < graph_.groups().at(group).size; ++shift) {
      chunks.push_back(add(fresh(node, "_other"), "chunk_by_rank", {buffer},
                           {{"group", group}, {"shift", shift}}));
    }
    const ValueId whole =
        add(fresh(node, "_whole"), "join_by_rank", std::move(chunks), {{"group", group}});
    rewrite_.map(node.outputs[1], add(fresh(node, "_buffer"), "copy_", {buffer, whole}, {}));
    context_.applied(kPass, node.name, Reason(kJoined, reader->second));
  }

  void split(const Node& node, NodeId id) {
    const Graph& graph = rewrite_.graph();
    const NodeId parts =
        rewrite_.copy(node, "split", rewrite_(node.inputs),
                      {{"split_size", *node.attr<std::vector<std::int64_t>>("split_sizes")},
                       {"dim", *node.attr<std::int64_t>("dim")}});
    const bool lost = overwritten_[storage(node.inputs[0])] > id;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (!lost && overwritten_[node.outputs[i]] < 0) continue;
      const ValueId part = graph.node(parts).outputs[i];
      rewrite_.map(node.outputs[i], add(fresh(node, "_copy"), "copy", {part}, {}));
    }
    context_.applied(kPass, node.name, Reason(kIsSplit));
  }

  void chunk_cat(const Node& node) {
    const auto dim = static_cast<std::int64_t>(
        axis_of(node.attrs, "dim", graph_.type(node.inputs[0]).shape.size()));
    const Shape& result = graph_.type(node.outputs[0]).shape;
    std::vector<ValueId> chunks;
    for (ValueId input : node.inputs) {
      Shape shape(result.begin(), result.end() - 1);
      shape.emplace_back(-1);
      chunks.push_back(
          add(fresh(node, "_chunks"), "view", {rewrite_(input)}, {{"shape", std::move(shape)}}));
    }
    rewrite_.map(node.outputs[0], add(node.name, "cat", std::move(chunks), {{"dim", dim + 1}}));
    context_.applied(kPass, node.name, Reason(kCatOfChunks));
  }

  const Graph& graph_;
  PassContext& context_;
  std::vector<ValueId> storage_;
  std::vector<NodeId> overwritten_;             ///< for each storage the last node that overwrites
                                                ///< it
  std::map<const Node*, std::string> readers_;  ///< for copies into a buffer: one reader
  Rewriter rewrite_;
};

}  // namespace

constinit const Pass decompose_fsdp{
    .name = "decompose_fsdp",
    .summary = "FSDP's copies in plain ops, which every later pass knows",
    .run = [](const Graph& graph, PassContext& context) -> std::optional<Graph> {
      const auto is_copy = [](const Node& node) {
        const std::string_view op = node.op_name();
        return op == kCopyIn || op == kSplit || op == kChunkCat;
      };
      if (std::ranges::none_of(graph.nodes(), is_copy)) return std::nullopt;
      return Decomposer(graph, context).run();
    }};

}  // namespace braid
