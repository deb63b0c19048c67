#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/mutation.h"
#include "ir/op_registry.h"
#include "lowering/fuse/kernel_body.h"
#include "lowering/passes.h"
#include "lowering/plan/cost.h"
#include "lowering/plan/updates.h"
#include "lowering/rewrite.h"

// join_kernels: kernels that follow each other become one, whose blocks meet in between.
//
// Matches kernel nodes that are neighbours, where the second reads a result of the first: a norm
// and the matmul of its rows, parts of a matmul and what adds them. The joined kernel's body is a
// graph of kernels (codegen/kernel/joined.h). It has as many blocks as are sure to be resident at
// once, which go over the pieces of one kernel, meet, and go on with the next. So there is a
// meeting in place of a launch; but all kernels have the same number of warps, and each has the
// room of the one that needs most. Results have the same bits.
//
// Joins where the joined kernel is estimated to take less. Takes for each number of warps the
// quickest configurations that agree.
// Refuses kernels of a group of ranks, which meet already; kernels of more nodes than a kernel may
// have; one that updates a tensor which another one reads or makes; and graphs in which something
// runs beside the kernels, for which a kernel that fills the device would leave no room.
// It is no default pass: what a launch and a meeting take has not been measured, and kernels of the
// caller that wait for peers on other streams might hold the room of some blocks.
namespace braid {
namespace {

constexpr std::string_view kPass = "join_kernels";

constexpr ReasonCode kJoined{
    "join_kernels.joined",
    "one kernel with '{first}', whose blocks meet: about {us:.1f} us instead of {apart_us:.1f}"};
constexpr ReasonCode kNoGain{"join_kernels.no_gain",
                             "not joined with '{first}': one kernel would take about {us:.1f} us "
                             "instead of {apart_us:.1f}"};
constexpr ReasonCode kCannot{"join_kernels.cannot", "not joined with '{first}': {why}"};
constexpr ReasonCode kTooManyNodes{"join_kernels.too_many_nodes",
                                   "the kernel would compute more than {most} nodes"};
constexpr ReasonCode kNoWarps{"join_kernels.no_warps",
                              "no number of warps suits both, or their rings differ"};
constexpr ReasonCode kRefused{"join_kernels.refused", "{why}"};
constexpr ReasonCode kRunsBeside{"join_kernels.runs_beside",
                                 "'{node}' runs beside the kernels, and may need room"};

/// Kernels one after the other, and how they run.
struct Chain {
  std::vector<NodeId> nodes;
  std::vector<Config> configs;
  double ns = 0;
};

class Joiner {
 public:
  Joiner(const Graph& graph, PassContext& context)
      : graph_(graph),
        context_(context),
        device_(device_model(context.target)),
        bindings_(max_bindings(graph.symbols())),
        rewrite_(graph) {}

  std::optional<Graph> run() {
    if (context_.max_kernel_nodes == 1) return std::nullopt;
    for (const Node& node : graph_.nodes()) {
      if (!is_asynchronous(node)) continue;
      context_.missed(kPass, node.name, Reason(kRunsBeside, node.name));
      return std::nullopt;
    }
    for (std::size_t id = 0; id < graph_.nodes().size(); ++id) take(id);
    emit();
    return any_ ? std::optional(rewrite_.finish()) : std::nullopt;
  }

 private:
  const Node& node(NodeId id) const { return graph_.node(id); }

  static bool can_be_joined(const Node& node) {
    if (node.op->op_class != OpClass::kKernel || node.hints.contains("runtime_ns")) return false;
    const Graph& body = *spec_of(node).body;
    return body.groups().empty() && !is_joined(body);
  }

  void take(NodeId id) {
    const Node& next = node(id);
    if (!can_be_joined(next)) {
      emit();
      rewrite_.copy(next);
      return;
    }
    if (!chain_.nodes.empty() && reads_chain(next) && !replaces_what_others_read(id) && joins(id)) {
      return;
    }
    emit();
    chain_ = {{id}, {}, node_ns(graph_, next, bindings_, device_)};
  }

  bool reads_chain(const Node& next) const {
    return std::ranges::any_of(next.inputs, [&](ValueId input) {
      return std::ranges::find(chain_.nodes, graph_.value(input).producer) != chain_.nodes.end();
    });
  }

  /// Whether the kernel, or one of the chain, updates a tensor that another one of them reads or
  /// makes: the update lies in its place.
  bool replaces_what_others_read(NodeId id) const {
    std::vector<NodeId> nodes = chain_.nodes;
    nodes.push_back(id);
    const auto base = [&](ValueId value) { return named_value(graph_, value); };
    for (const NodeId one : nodes) {
      for (const Update& update : updates_of(node(one))) {
        const ValueId updated = base(node(one).inputs[update.operand]);
        for (const NodeId other : nodes) {
          const auto is_it = [&](ValueId value) { return base(value) == updated; };
          if (other == one) continue;
          if (std::ranges::any_of(node(other).inputs, is_it) ||
              std::ranges::any_of(node(other).outputs, is_it)) {
            return true;
          }
        }
      }
    }
    return false;
  }

  /// Adds the kernel to the chain where that pays.
  bool joins(NodeId id) {
    const std::string& first = node(chain_.nodes.back()).name;
    const double apart = chain_.ns + node_ns(graph_, node(id), bindings_, device_);
    std::vector<NodeId> nodes = chain_.nodes;
    nodes.push_back(id);
    Chain best;
    Reason why = best_of(nodes, best);
    if (!why && best.ns < apart) {
      context_.applied(kPass, node(id).name, Reason(kJoined, first, best.ns / 1e3, apart / 1e3));
      chain_ = std::move(best);
      return true;
    }
    context_.missed(kPass, node(id).name,
                    why ? Reason(kCannot, first, std::move(why))
                        : Reason(kNoGain, first, best.ns / 1e3, apart / 1e3));
    return false;
  }

  /// The quickest that is known of these as one kernel.
  Reason best_of(const std::vector<NodeId>& nodes, Chain& best) {
    std::size_t computed = 0;
    for (const NodeId id : nodes) computed += spec_of(node(id)).body->nodes().size();
    const auto most = static_cast<std::size_t>(context_.max_kernel_nodes);
    if (computed > most) return Reason(kTooManyNodes, context_.max_kernel_nodes);
    std::vector<std::vector<Config>> choices;
    for (const NodeId id : nodes) {
      choices.push_back(candidates(*spec_of(node(id)).body, context_.target, /*resident=*/true));
    }
    for (const std::int64_t warps : {1, 2, 4, 8}) {
      const std::optional<std::vector<Config>> configs = agreeing(choices, warps);
      if (!configs) continue;
      const KernelSpec spec = joined(nodes, *configs);
      if (std::string reason = cannot_fuse(*spec.body); !reason.empty()) {
        return Reason(kRefused, std::move(reason));
      }
      const double ns = kernel_ns(spec, bindings_, device_);
      if (best.nodes.empty() || ns < best.ns) best = {nodes, *configs, ns};
    }
    return best.nodes.empty() ? Reason(kNoWarps) : Reason();
  }

  /// The first configuration of each with so many warps, and rings of equally many stages.
  static std::optional<std::vector<Config>> agreeing(
      const std::vector<std::vector<Config>>& choices, std::int64_t warps) {
    std::vector<Config> configs;
    std::optional<std::int64_t> stages;
    for (const std::vector<Config>& of_kernel : choices) {
      const auto fits = std::ranges::find_if(of_kernel, [&](const Config& config) {
        const auto own = config.find("num_stages");
        const bool has_stages = own != config.end();
        if (has_stages && stages && *stages != own->second) return false;
        return config.at("num_warps") == warps;
      });
      if (fits == of_kernel.end()) return std::nullopt;
      if (const auto own = fits->find("num_stages"); own != fits->end()) stages = own->second;
      configs.push_back(*fits);
    }
    return configs;
  }

  /// The values that the kernels read from others, in order of first use.
  std::vector<ValueId> inputs_of(const std::vector<NodeId>& nodes) const {
    std::vector<ValueId> inputs;
    for (const NodeId id : nodes) {
      for (const ValueId input : node(id).inputs) {
        const NodeId from = graph_.value(input).producer;
        if (std::ranges::find(nodes, from) != nodes.end() && from >= 0) continue;
        if (std::ranges::find(inputs, input) == inputs.end()) inputs.push_back(input);
      }
    }
    return inputs;
  }

  KernelSpec joined(const std::vector<NodeId>& nodes, const std::vector<Config>& configs) const {
    auto body = std::make_shared<Graph>();
    std::map<ValueId, ValueId> map;
    for (const NodeId id : nodes) {
      for (const auto& [name, symbol] : spec_of(node(id)).body->symbols()) {
        if (!body->symbols().contains(name)) body->add_symbol(name, symbol);
      }
    }
    for (const ValueId input : inputs_of(nodes)) {
      map[input] = body->add_input({.name = "i" + std::to_string(map.size()),
                                    .type = graph_.type(input),
                                    .kind = InputKind::kActivation,
                                    .per_rank = true});
    }
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      const Node& kernel = node(nodes[n]);
      std::vector<ValueId> operands;
      operands.reserve(kernel.inputs.size());
      for (const ValueId input : kernel.inputs) operands.push_back(map.at(input));
      const NodeId inner = body->add_node("v" + std::to_string(n), "kernel", std::move(operands),
                                          {{"body", spec_of(kernel).body}, {"config", configs[n]}});
      for (std::size_t r = 0; r < kernel.outputs.size(); ++r) {
        map[kernel.outputs[r]] = body->node(inner).outputs[r];
        body->add_output(body->node(inner).outputs[r]);
      }
    }
    const Config config = joined_config(*body);
    return {std::move(body), config};
  }

  /// The names of nodes that check indices, by their places among the nodes of all kernels.
  Attrs attributes_of(const KernelSpec& spec) const {
    Attrs attrs{{"body", spec.body}, {"config", spec.config}};
    std::map<std::string, std::int64_t> all;
    std::int64_t before = 0;
    for (const NodeId id : chain_.nodes) {
      if (const auto* indexed = node(id).attr<Config>("indexed")) {
        for (const auto& [name, place] : *indexed) all.emplace(name, place + before);
      }
      before += static_cast<std::int64_t>(spec_of(node(id)).body->nodes().size());
    }
    if (!all.empty()) attrs.emplace("indexed", std::move(all));
    return attrs;
  }

  /// Puts the chain into the new graph.
  void emit() {
    const std::vector<NodeId> nodes = chain_.nodes;
    if (nodes.size() == 1) rewrite_.copy(node(nodes[0]));
    if (nodes.size() > 1) {
      any_ = true;
      std::vector<ValueId> outputs;
      for (const NodeId id : nodes) {
        outputs.insert(outputs.end(), node(id).outputs.begin(), node(id).outputs.end());
      }
      const KernelSpec spec = joined(nodes, chain_.configs);
      const std::string name =
          rewrite_.fresh_name(node(nodes.back()).name + "_joined", outputs.size());
      const NodeId id = rewrite_.graph().add_node(name, "kernel", rewrite_(inputs_of(nodes)),
                                                  attributes_of(spec));
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        const ValueId output = rewrite_.graph().node(id).outputs[i];
        rewrite_.map(outputs[i], output);
        const std::string& group = graph_.value(outputs[i]).comm_group;
        if (!group.empty()) rewrite_.graph().set_comm_group(output, group);
      }
    }
    chain_ = {};
  }

  const Graph& graph_;
  PassContext& context_;
  const DeviceModel& device_;
  Bindings bindings_;
  Rewriter rewrite_;
  Chain chain_;
  bool any_ = false;
};

}  // namespace

constinit const Pass join_kernels{
    .name = "join_kernels",
    .summary = "kernels that follow each other become one, whose blocks meet in between",
    .run = [](const Graph& graph, PassContext& context) -> std::optional<Graph> {
      return Joiner(graph, context).run();
    },
    .by_default = false};

}  // namespace braid
