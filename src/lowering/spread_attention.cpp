#include <optional>
#include <utility>
#include <vector>

#include "ir/attention.h"
#include "ir/op_registry.h"
#include "lowering/passes.h"
#include "lowering/rewrite.h"

// spread_attention: lets the segments of a paged attention run side by side, so that few tokens
// with many keys fill a device.
//
// Matches the paged_attention_in_parts that split_reductions made, where a run may have one token
// of each sequence: where it has no more tokens than there may be sequences.
//   paged_attention_in_parts  ->  paged_attention_parts, join_attention_parts
// Both have the same bits (ir/attention.h), so each bucket of a symbol decides for itself: that of
// few tokens decodes, and that of many goes over a prompt in one kernel.
// Refuses a table whose number of pages is a symbol, and room for one segment alone.
namespace braid {
namespace {

constexpr std::string_view kPass = "spread_attention";

constexpr ReasonCode kSpread{"spread_attention.spread",
                             "{tokens} token(s) at most, of up to {sequences} sequence(s): "
                             "segments of keys run side by side, and are joined"};
constexpr ReasonCode kManyTokens{"spread_attention.many_tokens",
                                 "up to {tokens} tokens, of up to {sequences} sequence(s): "
                                 "segments of keys stay one after the other"};

class Spreader {
 public:
  Spreader(const Graph& graph, PassContext& context)
      : graph_(graph), context_(context), rewrite_(graph) {}

  std::optional<Graph> run() {
    bool changed = false;
    for (const Node& node : graph_.nodes()) {
      if (node.op_name() == "paged_attention_in_parts" && is_spread(node)) {
        spread(node);
        changed = true;
      } else {
        rewrite_.copy(node);
      }
    }
    if (!changed) return std::nullopt;
    return rewrite_.finish();
  }

 private:
  const Shape& shape(ValueId value) const { return graph_.type(value).shape; }

  bool is_spread(const Node& node) {
    const Shape& table = shape(node.inputs[kPageTable]);
    if (!table[1].is_constant()) return false;
    const std::int64_t keys = table[1].constant() * shape(node.inputs[1])[1].constant();
    if (keys <= *node.attr<std::int64_t>("segment")) return false;
    const std::int64_t tokens = shape(node.inputs[0])[0].max(graph_.symbols());
    const std::int64_t sequences = table[0].max(graph_.symbols());
    if (tokens > sequences) {
      context_.missed(kPass, node.name, Reason(kManyTokens, tokens, sequences));
      return false;
    }
    context_.applied(kPass, node.name, Reason(kSpread, tokens, sequences));
    return true;
  }

  /// The parts keep the node's name: they check its operands, and errors name it.
  void spread(const Node& node) {
    std::vector<ValueId> inputs = rewrite_(node.inputs);
    std::vector<ValueId> joined{-1};
    if (has_sinks(inputs.size())) {
      joined.push_back(inputs[kSinks]);
      inputs.erase(inputs.begin() + kSinks);
    }
    Graph& graph = rewrite_.graph();
    const NodeId parts =
        graph.add_node(node.name, "paged_attention_parts", std::move(inputs), node.attrs);
    joined[0] = graph.node(parts).outputs[0];
    rewrite_.map(node.outputs[0],
                 rewrite_.add(node.name + "_join_attention_parts", "join_attention_parts",
                              std::move(joined), {{"dtype", graph_.type(node.outputs[0]).dtype}}));
  }

  const Graph& graph_;
  PassContext& context_;
  Rewriter rewrite_;
};

}  // namespace

constinit const Pass spread_attention{
    .name = "spread_attention",
    .summary = "lets segments of keys of a paged attention run side by side where tokens are few",
    .run = [](const Graph& graph, PassContext& context) -> std::optional<Graph> {
      return Spreader(graph, context).run();
    }};

}  // namespace braid
