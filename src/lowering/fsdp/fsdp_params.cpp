#include <fmt/format.h>

#include <vector>

#include "ir/mutation.h"
#include "lowering/fsdp/fsdp.h"
#include "lowering/rewrite.h"

// fsdp, first rewrite: removes unsharded parameters.
//
// FSDP keeps a graph input for each unsharded parameter and fills it again and again:
//
//     resize_storage_bytes_(p) {size > 0}     a window opens: p has memory
//     fsdp.copy_(p, y)                        p holds y
//     ... readers of p, or of views of it ...
//     resize_storage_bytes_(p) {size = 0}     the window closes
//
// Matches a graph input on which resizes and fsdp.copy_ act. Its readers read the value that was
// copied last instead, and the copies and resizes are removed. Windows may repeat (a layer that is
// used again); a window may hold several copies, each for the readers up to the next one. A
// parameter that is never resized is one window from its first copy on; nobody reads it after the
// graph.
// Refuses a parameter, and leaves it as it is,
//   - whose resizes do not take turns, full first, zero last;
//   - that is read or copied into outside its windows, or read before the first copy of one;
//   - that is a graph output;
//   - that anything else overwrites, or that is resized or copied into through a view of it;
//   - whose copied value is overwritten before its last reader, or is another such parameter, which
//     then stays too.
namespace braid {
namespace {

namespace why = fsdp_reasons;

constexpr std::string_view kPass = "fsdp";

/// The state of a graph input at the current node of the sweep.
struct Param {
  bool managed = false;  ///< resized or copied into: an unsharded parameter
  bool resized = false;
  bool open = false;    ///< inside a window
  NodeId opened = -1;   ///< the last resize
  NodeId copy = -1;     ///< the last fsdp.copy_
  ValueId copied = -1;  ///< the value it copied; -1: none since the window opened
  std::vector<ValueId> sources;
  Reason obstacle;  ///< the first obstacle; empty: eligible
};

class Params {
 public:
  explicit Params(const Graph& graph)
      : graph_(graph),
        storage_(storages(graph)),
        whole_(graph.values().size(), false),
        written_(graph.values().size(), -1),
        params_(graph.inputs().size()) {
    for (ValueId input : graph.input_values()) whole_[input] = true;
    for (const Node& node : graph.nodes()) {
      Param* param = is_managed(node) ? input_of(node.inputs[0]) : nullptr;
      if (param == nullptr) continue;
      param->managed = true;
      param->resized = param->resized || node.op_name() == kResize;
    }
    for (Param& param : params_) param.open = !param.resized;
  }

  std::optional<Graph> run(PassContext& context) {
    for (std::size_t id = 0; id < graph_.nodes().size(); ++id) visit(id);
    finish();
    for (const Node& node : graph_.nodes()) {
      if (!is_managed(node) || input_of(node.inputs[0]) != nullptr) continue;
      context.missed(kPass, node.name, Reason(why::kNoInput, node.op_name(), name(node.inputs[0])));
    }
    bool changes = false;
    for (std::size_t i = 0; i < params_.size(); ++i) {
      if (!params_[i].managed) continue;
      changes = changes || params_[i].obstacle.empty();
      report(graph_.inputs()[i].name, params_[i], context);
    }
    return changes ? std::optional(rewritten()) : std::nullopt;
  }

 private:
  static bool is_managed(const Node& node) {
    return node.op_name() == kResize || node.op_name() == kCopy;
  }
  ValueId storage(ValueId value) const { return storage_[value]; }
  const std::string& name(ValueId value) const { return graph_.value(value).name; }
  /// Makes a reason whose first arguments are the node's op and name.
  template <class... More>
  Reason at(const ReasonCode& code, NodeId id, More&&... more) const {
    return Reason(code, graph_.node(id).op_name(), graph_.node(id).name,
                  std::forward<More>(more)...);
  }
  /// The graph input whose memory the value names, or null.
  Param* input_of(ValueId value) {
    const Value& target = graph_.value(storage(value));
    return target.producer < 0 ? &params_[target.result] : nullptr;
  }
  /// The same, where that is an unsharded parameter; else null.
  Param* param_of(ValueId value) {
    Param* param = input_of(value);
    return param != nullptr && param->managed ? param : nullptr;
  }
  static void refuse(Param& param, Reason obstacle) {
    if (!param.obstacle) param.obstacle = std::move(obstacle);
  }

  void visit(NodeId id) {
    const Node& node = graph_.node(id);
    for (ValueId value : mutated_operands(node)) written_[storage(value)] = id;
    std::size_t first = 0;
    if (is_managed(node)) {
      first = 1;  // the target is written, not read
      if (Param* param = param_of(node.inputs[0])) manage(*param, id);
    } else {
      for (ValueId value : mutated_operands(node)) {
        if (Param* param = param_of(value)) refuse(*param, at(why::kOverwrites, id));
      }
    }
    for (std::size_t i = first; i < node.inputs.size(); ++i) read(node.inputs[i], id);
    if (node.op->op_class == OpClass::kWait) {
      // The collective reads its operands until its wait.
      const NodeId waited = graph_.value(node.inputs[0]).producer;
      if (waited >= 0 && graph_.node(waited).op->op_class == OpClass::kCollective) {
        for (ValueId value : graph_.node(waited).inputs) read(value, id);
      }
    }
  }

  void manage(Param& param, NodeId id) {
    const Node& node = graph_.node(id);
    const ValueId target = node.inputs[0];
    whole_[node.outputs[0]] = whole_[target];
    if (!whole_[target]) refuse(param, at(why::kActsOnView, id, name(target)));
    if (node.op_name() == kCopy) return copy(param, id);
    const bool full = *node.attr<std::int64_t>("size") > 0;
    if (full && param.open) refuse(param, at(why::kFullTwice, id, graph_.node(param.opened).name));
    if (!full && !param.open) refuse(param, at(why::kZeroFirst, id));
    param.open = full;
    param.opened = id;
    param.copied = -1;
  }

  void copy(Param& param, NodeId id) {
    const ValueId source = graph_.node(id).inputs[1];
    if (!param.open) refuse(param, at(why::kWrittenWithoutMemory, id));
    if (Param* other = param_of(source)) {
      const Reason reason = at(why::kCopiesParam, id);
      refuse(param, reason);
      refuse(*other, reason);
    }
    param.copied = source;
    param.copy = id;
    param.sources.push_back(source);
  }

  void read(ValueId value, NodeId id) {
    Param* param = param_of(value);
    if (param == nullptr) return;
    if (!param->open) return refuse(*param, at(why::kReadWithoutMemory, id));
    if (param->copied < 0) return refuse(*param, at(why::kReadBeforeCopy, id));
    const NodeId writer = written_[storage(param->copied)];
    if (writer > param->copy) {
      const Node& by = graph_.node(writer);
      const Node& reader = graph_.node(id);
      refuse(*param, Reason(why::kSourceOverwritten, name(param->copied), by.op_name(), by.name,
                            reader.op_name(), reader.name));
    }
  }

  void finish() {
    for (ValueId output : graph_.outputs()) {
      if (Param* param = param_of(output)) refuse(*param, Reason(why::kGraphOutput, name(output)));
    }
    for (Param& param : params_) {
      if (param.resized && param.open) refuse(param, at(why::kStaysFull, param.opened));
    }
  }

  void report(const std::string& input, const Param& param, PassContext& context) const {
    if (param.obstacle) {
      return context.missed(kPass, input, Reason(why::kParamStays, param.obstacle));
    }
    std::string text;
    for (ValueId source : param.sources) {
      text += fmt::format("{}'{}'", text.empty() ? "" : ", ", name(source));
    }
    context.applied(kPass, input,
                    text.empty() ? Reason(why::kParamUnread) : Reason(why::kParamGone, text));
  }

  Graph rewritten() {
    Rewriter rewrite(graph_);
    for (const Node& node : graph_.nodes()) {
      const Param* param = is_managed(node) ? param_of(node.inputs[0]) : nullptr;
      if (param == nullptr || param->obstacle) {
        rewrite.copy(node);
      } else if (node.op_name() == kCopy) {
        const ValueId source = rewrite(node.inputs[1]);
        rewrite.map(storage(node.inputs[0]), source);
        rewrite.map(node.outputs[0], source);
      }
    }
    return rewrite.finish();
  }

  const Graph& graph_;
  std::vector<ValueId> storage_;
  std::vector<bool> whole_;      ///< values that name all of a graph input, in its shape
  std::vector<NodeId> written_;  ///< for each storage the last node that overwrote it
  std::vector<Param> params_;    ///< for each graph input
};

}  // namespace

std::optional<Graph> remove_unsharded_params(const Graph& graph, PassContext& context) {
  return Params(graph).run(context);
}

}  // namespace braid
