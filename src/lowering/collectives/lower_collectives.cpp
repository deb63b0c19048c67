#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "ir/collective.h"
#include "ir/fail.h"
#include "ir/groups.h"
#include "ir/mutation.h"
#include "ir/text.h"
#include "ir/views.h"
#include "lowering/collectives/all_reduce.h"
#include "lowering/collectives/by_communicator.h"
#include "lowering/collectives/by_copies.h"
#include "lowering/collectives/decompose_fused.h"
#include "lowering/passes.h"
#include "lowering/plan/cost.h"
#include "lowering/plan_choice.h"
#include "lowering/rewrite.h"

// lower_collectives: decides how each collective runs; nothing else does.
//
// Matches every collective that has no algorithm yet and gives it one:
//   one_shot   every rank reads what it needs of the operands of all ranks from the symmetric
//              arena;
//   two_shot   all_reduce only: each element is summed by one rank, over its own operand, and
//              all ranks read it there. It overwrites the operand, so nobody else may read that;
//   ll         all_reduce only: every rank sends its operand to all as packets (NCCL's LL);
//   multimem   all_reduce only: two_shot by instructions that access all ranks at once, on
//              devices whose links reduce. It sums in an order of its own, so it needs
//              PassConfig::batch_invariant off.
// For an all_reduce it takes the algorithm that PassConfig::all_reduce names, where possible; else
// the fastest one. Tuning knows that if it has tried all that are possible, each as a kernel of its
// own in its default configuration; else the cost model decides, with symbols at their maximum. All
// but multimem give the same bits. The node is synchronous from then on: its wait_tensors go, and
// users read the collective itself. A coalesced collective becomes one per operand, with that
// operand's dim.
//
// The operand becomes a communication buffer (comm_group), except for packets. That requires that a
// kernel of ours writes it and that nobody else dictates its place. Views are looked through: what
// counts is the data behind them. Where the data cannot be one, a `copy` node is inserted:
// - a graph input lies in the caller's memory, and is never mutated or moved;
// - a graph output lies where the caller reads it;
// - a communication buffer of another group lies in that group's arena.
// Fused nodes are taken apart first (decompose_fused.cpp). The operand of a copy from a peer is
// treated like that of a collective; such a copy stays asynchronous. Refuses in-place and out
// forms: functionalize comes first.
//
// All-gathers and reduce-scatters become copies from the peers (by_copies.cpp) where
// PassConfig::by_copies asks for it, or where the compute that can be scheduled beside them leaves
// less of them exposed than a kernel takes.
//
// Over a group without symmetric memory a communicator runs the collective (by_communicator.cpp):
// it stays asynchronous and keeps its wait_tensor.
//
// Region markers are removed here too: they tell earlier passes where layers begin and end, and
// mean nothing to a kernel.
namespace braid {
namespace {

constexpr std::string_view kPass = "lower_collectives";

constexpr ReasonCode kRuns{"lower_collectives.runs",
                           "{algorithm} over {ranks} ranks of '{group}', {bytes} bytes: about "
                           "{us:.1f} us on {device}{others}; the wait is gone"};
constexpr ReasonCode kOther{"lower_collectives.other", " ({algorithm}: {us:.1f} us)"};
constexpr ReasonCode kExposed{
    "lower_collectives.exposed",
    " ({algorithm}: {us:.1f} us, {exposed:.1f} until the result is there)"};
constexpr ReasonCode kHinted{"lower_collectives.hinted", " (its runtime_ns hint: {us:.1f} us)"};
constexpr ReasonCode kReadElsewhere{
    "lower_collectives.read_elsewhere",
    " ({algorithm}: {us:.1f} us, but its operand is read elsewhere, too)"};
constexpr ReasonCode kOtherOrder{
    "lower_collectives.other_order",
    " ({algorithm}: {us:.1f} us, but in an order of its own: --batch-invariant=false)"};
constexpr ReasonCode kTuned{"lower_collectives.tuned", "tuned: {what}"};
constexpr ReasonCode kNotTuned{"lower_collectives.not_tuned", "not tuned: {why}"};
constexpr ReasonCode kNoMultimem{"lower_collectives.no_multimem",
                                 "no multimem over '{group}': {why}"};
constexpr ReasonCode kOperandCopied{
    "lower_collectives.operand_copied",
    "operand '{value}' is copied into a communication buffer: {why}"};
constexpr ReasonCode kGraphInput{"lower_collectives.graph_input",
                                 "it is a graph input, the caller's memory"};
constexpr ReasonCode kGraphOutput{"lower_collectives.graph_output",
                                  "it is a graph output, which lies in the caller's memory"};
constexpr ReasonCode kChunk{"lower_collectives.chunk", "it is a chunk of another value"};
constexpr ReasonCode kOtherGroup{"lower_collectives.other_group",
                                 "it is a communication buffer of group '{group}' already"};

bool is_view(const Graph& graph, ValueId value) {
  const NodeId producer = graph.value(value).producer;
  if (producer < 0) return false;
  const Node& node = graph.node(producer);
  return names_bytes(node.op_name()) || node.op->op_class == OpClass::kWait || is_marker(node);
}

bool is_open(const Node& node) {
  return node.op->op_class == OpClass::kCollective && algorithm_of(node) == Algorithm::kNone;
}
bool copies_from_peer(const Node& node) { return node.op->op_class == OpClass::kPeerCopy; }
bool goes(const Graph& graph, const Node& node) {
  if (node.op->op_class != OpClass::kWait) return is_marker(node);
  const NodeId waited = graph.value(node.inputs[0]).producer;
  return waited < 0 || !copies_from_peer(graph.node(waited));
}

/// PassConfig::all_reduce.
Algorithm asked_algorithm(const PassConfig& config) {
  for (const Algorithm known : {Algorithm::kNone, Algorithm::kOneShot, Algorithm::kTwoShot,
                                Algorithm::kPackets, Algorithm::kMultimem}) {
    if (algorithm_name(known) == config.all_reduce) return known;
  }
  throw_invalid("all-reduce", "found {}; expected one_shot, two_shot, ll or multimem",
                quote(config.all_reduce));
}

class Lowering {
 public:
  /// `in_kernel` is Decomposed::in_kernel.
  Lowering(const Graph& graph, const std::set<std::string, std::less<>>& in_kernel,
           PassContext& context)
      : graph_(graph),
        in_kernel_(in_kernel),
        context_(context),
        device_(device_model(context.target)),
        is_output_(graph.output_flags()),
        readers_(graph.values().size(), 0),
        choose_tuned_(context),
        rewrite_(graph),
        by_communicator_(graph, context, rewrite_),
        by_copies_(graph, context, rewrite_) {
    for (const Node& node : graph.nodes()) {
      if (is_view(graph, node.outputs[0])) continue;
      for (ValueId input : node.inputs) ++readers_[base_of(input)];
    }
    for (ValueId output : graph.outputs()) ++readers_[base_of(output)];
  }

  Graph run() {
    for (const Node& node : graph_.nodes()) {
      if (is_open(node)) {
        lower(node);
      } else if (copies_from_peer(node)) {
        lower_copy(node);
      } else if (waits_for_communicator(node)) {
        by_communicator_.wait(node);
      } else if (by_copies_.are_awaited(node)) {
        by_copies_.wait(node);
      } else if (goes(graph_, node)) {
        rewrite_.map(node.outputs[0], rewrite_(node.inputs[0]));
      } else {
        rewrite_.copy(node);
      }
    }
    return rewrite_.finish();
  }

 private:
  const Group& symmetric_group(const Node& node) const {
    const std::string& name = *node.attr<std::string>("group");
    const Group& group = graph_.groups().find(name)->second;
    if (!group.symmetric) {
      throw_invalid("/groups/" + name + "/symmetric",
                    "false; {} '{}' runs only over a group with symmetric memory: expected true "
                    "(or no such key)",
                    node.op_name(), node.name);
    }
    return group;
  }

  /// All copies of one value read one buffer.
  void lower_copy(const Node& node) {
    static_cast<void>(symmetric_group(node));
    const std::string& group = *node.attr<std::string>("group");
    ValueId& operand = copied_operands_.try_emplace({node.inputs[0], group}, -1).first->second;
    if (operand < 0) operand = comm_buffer(node, node.inputs[0], group);
    rewrite_.copy(node, {operand}, node.attrs);
  }

  void lower(const Node& node) {
    const std::string& name = *node.attr<std::string>("group");
    const Group& group = graph_.groups().find(name)->second;
    if (!mutated_operands(node).empty()) {
      throw_invalid(node.name, "{} overwrites its operand; run functionalize first",
                    node.op_name());
    }
    if (!group.symmetric) return by_communicator_.lower(node);
    if (!in_kernel_.contains(node.name) && by_copies_.takes(node)) return lower_by_copies(node);
    Attrs attrs = node.attrs;
    Choice choice;
    const auto choose = [&](ValueId operand) {
      choice = algorithm_for(node, operand);
      set_algorithm(attrs, choice.algorithm);
      return choice.algorithm == Algorithm::kPackets ? rewrite_(operand)
                                                     : comm_buffer(node, operand, name);
    };
    if (const std::string& op = node.op->of_one; !op.empty()) {
      for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        const ValueId operand = choose(node.inputs[i]);
        if (attrs.contains("dim")) {
          const std::size_t rank = graph_.type(node.inputs[i]).shape.size();
          attrs.insert_or_assign("dim",
                                 static_cast<std::int64_t>(axis_of(node.attrs, "dim", rank)));
        }
        rewrite_.map(node.outputs[i],
                     rewrite_.add(fmt::format("{}_{}", node.name, i), op, {operand}, attrs));
      }
    } else {
      const ValueId operand = choose(node.inputs[0]);
      rewrite_.copy(node, {operand}, attrs);
      // The gathered value lies in memory even if only its own kernel reads it.
      if (gathers_in_kernel(rewrite_.graph().nodes().back())) {
        rewrite_.graph().set_comm_group(rewrite_(node.outputs[0]), name);
      }
    }

    const Node& lowered = rewrite_.graph().nodes().back();
    std::int64_t bytes = 0;
    for (ValueId value : node.outputs) bytes += max_bytes(graph_.type(value), graph_.symbols());
    // The others' times are the model's, too.
    const double ns =
        static_cast<double>(node.outputs.size()) *
        (device_.launch_ns + collective_node_ns(rewrite_.graph(), lowered, choice.algorithm,
                                                max_bindings(graph_.symbols()), device_));
    if (const auto hint = node.hints.find("runtime_ns"); hint != node.hints.end()) {
      choice.others.emplace_back(kHinted, hint->second / 1e3);
    }
    context_.applied(kPass, node.name,
                     Reason(kRuns, algorithm_name(choice.algorithm), group.size, name, bytes,
                            ns / 1e3, device_.name, std::move(choice.others)));
  }

  void lower_by_copies(const Node& node) {
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      by_copies_.start(node, i,
                       comm_buffer(node, node.inputs[i], *node.attr<std::string>("group")));
    }
    by_copies_.started(node);
  }

  bool waits_for_communicator(const Node& node) const {
    if (node.op->op_class != OpClass::kWait) return false;
    const NodeId waited = graph_.value(node.inputs[0]).producer;
    return waited >= 0 && by_communicator_.runs(graph_.node(waited));
  }

  struct Choice {
    Algorithm algorithm = Algorithm::kNone;
    std::vector<Reason> others = {};  ///< times of those that were not chosen
  };
  Choice algorithm_for(const Node& node, ValueId operand) {
    if (in_kernel_.contains(node.name)) return {Algorithm::kInKernel};
    if (node.op->collective != CollectiveKind::kAllReduce) {
      Choice only{Algorithm::kOneShot};
      if (const auto about = by_copies_.estimate(node)) {
        only.others.emplace_back(kExposed, algorithm_name(Algorithm::kByCopies),
                                 about->copies_ns / 1e3, about->exposed_ns / 1e3);
      }
      return only;
    }
    const std::string& group = *node.attr<std::string>("group");
    const std::int64_t ranks = graph_.groups().at(group).size;
    const std::int64_t bytes = max_bytes(graph_.type(operand), graph_.symbols());
    const auto ns = [&](Algorithm algorithm) {
      return collective_ns(algorithm, ranks, bytes, device_);
    };
    const std::vector<Algorithm> candidates =
        all_reduce_algorithms(graph_, node, graph_.type(operand), context_);
    const Algorithm asked = asked_algorithm(context_.config);
    if (asked == Algorithm::kMultimem && candidates.back() != Algorithm::kMultimem) {
      context_.missed(kPass, node.name,
                      Reason(kNoMultimem, group,
                             why_no_multimem(graph_, node, graph_.type(operand), context_)));
    }
    Choice choice{Algorithm::kOneShot};
    std::vector<Algorithm> allowed;
    for (Algorithm algorithm : candidates) {
      if (barred(algorithm, operand) != nullptr) continue;
      allowed.push_back(algorithm);
      if (algorithm == asked || ns(algorithm) < ns(choice.algorithm)) choice.algorithm = algorithm;
      if (algorithm == asked) break;
    }
    if (choice.algorithm != asked) {
      choice.algorithm = tuned_algorithm(node, operand, allowed, choice.algorithm);
    }
    for (Algorithm algorithm : candidates) {
      if (algorithm == choice.algorithm) continue;
      const ReasonCode* bar = barred(algorithm, operand);
      const bool told = bar != nullptr && ns(algorithm) < ns(choice.algorithm);
      choice.others.emplace_back(told ? *bar : kOther, algorithm_name(algorithm),
                                 (ns(algorithm) + device_.launch_ns) / 1e3);
    }
    return choice;
  }

  /// The reason not to use an algorithm that could run it, or null.
  const ReasonCode* barred(Algorithm algorithm, ValueId operand) const {
    const bool overwrites = algorithm == Algorithm::kTwoShot || algorithm == Algorithm::kMultimem;
    if (overwrites && readers_[base_of(operand)] > 1) return &kReadElsewhere;
    if (algorithm == Algorithm::kMultimem && context_.config.batch_invariant) return &kOtherOrder;
    return nullptr;
  }

  /// The fastest algorithm by trials; `by_model` where tuning does not know them all.
  Algorithm tuned_algorithm(const Node& node, ValueId operand, std::span<const Algorithm> allowed,
                            Algorithm by_model) {
    if (!choose_tuned_.is_asked()) return by_model;
    const TensorType& type = graph_.type(operand);
    PlanChoice choice{
        .op = "all_reduce", .operands = type.str(), .ranks = group_of(graph_, node).size};
    for (const Algorithm algorithm : allowed) {
      if (algorithm == by_model) choice.by_model = choice.options.size();
      choice.options.push_back({std::string(algorithm_name(algorithm)),
                                {lone_all_reduce(graph_, node, type, algorithm)}});
    }
    const ChooseTuned::Answer answer = choose_tuned_(std::move(choice));
    if (answer.is_tuned) {
      context_.applied(kPass, node.name, Reason(kTuned, answer.why));
    } else if (answer.why) {
      context_.missed(kPass, node.name, Reason(kNotTuned, answer.why));
    }
    return allowed[answer.taken];
  }

  /// The value whose memory this one names.
  ValueId base_of(ValueId value) const {
    while (is_view(graph_, value)) value = graph_.node(graph_.value(value).producer).inputs[0];
    return value;
  }

  /// The new value that the collective reads: its operand, marked as a communication buffer, or a
  /// marked copy of it.
  ValueId comm_buffer(const Node& node, ValueId old, const std::string& group) {
    const ValueId operand = rewrite_(old);
    Graph& graph = rewrite_.graph();
    const Reason obstacle = cannot_be_comm_buffer(old, group);
    if (!obstacle) {
      // The views on the way get the mark too, since each names bytes of that buffer.
      ValueId value = operand;
      graph.set_comm_group(value, group);
      while (is_view(graph, value)) {
        value = graph.node(graph.value(value).producer).inputs[0];
        graph.set_comm_group(value, group);
      }
      return operand;
    }
    const std::string& name = graph.value(operand).name;
    context_.missed(kPass, node.name, Reason(kOperandCopied, name, obstacle));
    const ValueId result = rewrite_.add(node.name + "_operand", "copy", {operand});
    graph.set_comm_group(result, group);
    return result;
  }

  /// Why the data of the old value cannot lie in the symmetric arena of `group`; else empty.
  Reason cannot_be_comm_buffer(ValueId old, const std::string& group) {
    ValueId base = old;
    bool is_output = is_output_[base];
    // What copies have brought is there from the wait on.
    const auto names_bytes_of_another = [&](ValueId value) {
      return is_view(graph_, value) &&
             !by_copies_.are_awaited(graph_.node(graph_.value(value).producer));
    };
    while (names_bytes_of_another(base)) {
      base = graph_.node(graph_.value(base).producer).inputs[0];
      is_output = is_output || is_output_[base];
    }
    const Node* made = producer_of(graph_, base);
    if (made == nullptr) return Reason(kGraphInput);
    if (is_output) return Reason(kGraphOutput);
    if (made->op_name() == "chunk_by_rank") return Reason(kChunk);
    // An earlier collective may have claimed it.
    const Value& now = rewrite_.graph().value(rewrite_(base));
    if (!now.comm_group.empty() && now.comm_group != group) {
      return Reason(kOtherGroup, now.comm_group);
    }
    return {};
  }

  const Graph& graph_;
  std::set<std::string, std::less<>> in_kernel_;
  PassContext& context_;
  const DeviceModel& device_;
  std::vector<bool> is_output_;
  std::vector<int> readers_;  ///< for each value: nodes and graph outputs that read its bytes
  ChooseTuned choose_tuned_;
  std::map<std::pair<ValueId, std::string>, ValueId> copied_operands_;  ///< of copies from peers
  Rewriter rewrite_;
  ByCommunicator by_communicator_;
  ByCopies by_copies_;
};

constexpr PassOption kOptions[] = {
    {.name = "all-reduce",
     .variable = kVariable<&PassConfig::all_reduce>,
     .meaning = "the algorithm of all-reduces, where it can be: one_shot, two_shot, ll or multimem",
     .said = "all-reduces by {}",
     .off = "the quickest algorithm"},
    {.name = "batch-invariant",
     .variable = kVariable<&PassConfig::batch_invariant>,
     .meaning = "add up each sum in one order, whatever the batch: no multimem, and no parts of "
                "matmuls that a tuner or a bucket chose",
     .said = "{}",
     .off = "sums in any order: not batch-invariant",
     .on = ""},
    {.name = "in-kernel",
     .variable = kVariable<&PassConfig::in_kernel>,
     .meaning = "run a fused collective within the kernel of its matmuls wherever there is one",
     .said = "fused collectives run within the kernel of their matmuls {}",
     .off = "where that is quickest",
     .on = "wherever there is one"},
    {.name = "by-copies",
     .variable = kVariable<&PassConfig::by_copies>,
     .meaning = "run all-gathers and reduce-scatters along dim 0 as copies between the ranks, "
                "beside the kernels",
     .said = "{}",
     .off = "",
     .on = "all-gathers and reduce-scatters by copies, where they can be"},
    {.name = "hide-by-copies",
     .variable = kVariable<&CopiesOptions::hide>,
     .meaning = "the same where other kernels hide enough of them",
     .said = "{}",
     .off = "no copies to hide collectives",
     .on = ""}};

std::optional<Graph> run(const Graph& graph, PassContext& context) {
  if (asked_algorithm(context.config) == Algorithm::kMultimem && context.config.batch_invariant) {
    throw_invalid(
        "all-reduce",
        "multimem adds up in an order of its own; expected it beside --batch-invariant=false");
  }
  std::optional<Decomposed> plain = decompose_fused(graph, context);
  const Graph& all = plain ? plain->graph : graph;
  const auto concerns = [&](const Node& node) {
    return is_open(node) || copies_from_peer(node) || goes(all, node);
  };
  if (std::ranges::any_of(all.nodes(), concerns)) {
    return Lowering(all, plain ? plain->in_kernel : Decomposed().in_kernel, context).run();
  }
  if (plain) return std::move(plain->graph);
  return std::nullopt;
}

}  // namespace

constinit const Pass lower_collectives{
    .name = "lower_collectives",
    .summary = "decides how each collective runs, and where its operand lies",
    .run = run,
    .options = kOptions};

}  // namespace braid
