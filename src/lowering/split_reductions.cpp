#include "lowering/split_reductions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "codegen/work/gemm_config.h"
#include "ir/attention.h"
#include "ir/numel.h"
#include "ir/op_registry.h"
#include "ir/views.h"
#include "lowering/analysis/kinds.h"
#include "lowering/analysis/match.h"
#include "lowering/fuse/kernel_body.h"
#include "lowering/passes.h"
#include "lowering/plan/cost.h"
#include "lowering/plan_choice.h"
#include "lowering/rewrite.h"

// split_reductions: cuts a long reduction with few results into parts that run side by side, then
// adds the parts (split-K of a matmul; the two stages of a column or full reduction).
//
// Matches mm, bmm and matmul with operands of equal rank, and sum, mean, amax, amin, whose own
// kernel has too few blocks for the device. Takes the power of two of parts with the least time: of
// a matmul by the price of its kernel (kernel_ns), of others by the bandwidth that their blocks
// reach (memory_ns), with another launch and the parts' own traffic (f32, written and read once).
// A matmul whose kernel computes an operand (made_of) has the price of that.
// Matmuls of one operand that an elementwise node brings together, as gate and up, become one
// kernel when they are whole, so each has its share of that one's price.
//   mm [M, K] x [K, N]  -> matmul [S, M, K/S] x [S, K/S, N] in f32, its S slices added, `to`
//   sum of [R, ...]     -> sum of [S, R/S, ...] in f32, sum of its S rows, `to`
// The nodes are ordinary ones, so the parts' sum fuses with what follows. Where
// PassConfig::batch_invariant is off, tuning may choose the number of parts of a matmul by trials
// of its kernels, the one that adds the parts included, each in its default configuration.
// Refuses an extent that no power of two divides, and a symbolic one.
//
// A paged_attention whose sequences have one token each, by its types, always goes over segments of
// kSegment keys, which are joined (ir/attention.h), where there is room for more than one: a row's
// bits must not depend on how many there are. With `invariant-attention` any other one does, too,
// so that a row has the same bits in a prompt and in decode. One segment that has no sinks is
// joined with nothing, and stays as it is. Whether segments run side by side, spread_attention
// decides.
namespace braid {
namespace {

constexpr std::string_view kPass = "split_reductions";
constexpr std::int64_t kMostParts = 64;
constexpr std::int64_t kMostMatmulParts = 16;

constexpr ReasonCode kNoGain{"split_reductions.no_gain",
                             "{blocks} block(s) take longer than their memory traffic on {device}, "
                             "but no equal parts of what it reduces would make up for their sum"};
constexpr ReasonCode kSplit{"split_reductions.split",
                            "{blocks} block(s) take longer than their memory traffic on {device}: "
                            "{parts} parts of dim {dim} take about {us:.1f} us instead of "
                            "{now_us:.1f}"};

constexpr ReasonCode kSegments{"split_reductions.segments",
                               "one token of each sequence: segments of {keys} keys"};

constexpr ReasonCode kInvariant{"split_reductions.invariant",
                                "segments of {keys} keys, as where each sequence has one token: "
                                "--invariant-attention"};

constexpr ReasonCode kTuned{"split_reductions.tuned", "tuned: {what}"};
constexpr ReasonCode kNotTuned{"split_reductions.not_tuned", "not tuned: {why}"};

/// The least K of one part of a matmul: enough to fill its pipeline.
constexpr std::int64_t kLeastK = 256;
/// The least gain that is told, and worth another kernel.
constexpr double kLeastGainNs = 100;
/// The least elements of one part of a reduction: a thread has so many under way anyway, and what
/// computes them would fuse with their sum.
constexpr std::int64_t kLeastElements = 8;

struct SplitOptions {
  bool invariant_attention = false;
};

class Splitter {
 public:
  Splitter(const Graph& graph, PassContext& context)
      : graph_(graph),
        context_(context),
        device_(device_model(context.target)),
        kinds_(graph),
        uses_(graph),
        choose_tuned_(context),
        rewrite_(graph),
        options_(read_options<SplitOptions>(split_reductions, context.config)) {}

  /// The new graph; nothing where nothing is split.
  std::optional<Graph> run() {
    std::map<NodeId, Cut> cuts;
    for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
      const NodeId id = i;
      const Node& node = graph_.node(id);
      if (node.op_name() == "paged_attention") {
        if (!is_cut(node)) continue;
        cuts.emplace(id, Cut{});
        context_.applied(kPass, node.name,
                         Reason(decodes(node) ? kSegments : kInvariant, kSegment));
        continue;
      }
      if (!can_be_cut(node)) continue;
      const Choice& found = choice_of(id);
      if (found.not_tuned) context_.missed(kPass, node.name, Reason(kNotTuned, found.not_tuned));
      if (found.cut || found.is_tuned) {
        context_.applied(kPass, node.name, found.reason);
      } else if (found.reason) {
        context_.missed(kPass, node.name, found.reason);
      }
      if (found.cut) cuts.emplace(id, *found.cut);
    }
    if (cuts.empty()) return std::nullopt;
    return cut_up(cuts);
  }

  std::map<NodeId, double> saved_ns() {
    std::map<NodeId, double> saved;
    const Bindings bindings = max_bindings(graph_.symbols());
    for (std::size_t id = 0; id < graph_.nodes().size(); ++id) {
      const Node& node = graph_.nodes()[id];
      if (!is_plain_matmul(node) || !can_be_cut(node)) continue;
      const Choice& found = choice_of(id);
      if (!found.cut) continue;
      saved.emplace(id, std::max(0.0, node_ns(graph_, node, bindings, device_) - found.ns));
    }
    return saved;
  }

 private:
  struct Cut {
    std::size_t dim;  ///< dim of the first operand
    std::int64_t parts;
  };
  /// The best split of a node, and why; empty where nothing is gained.
  struct Choice {
    std::optional<Cut> cut;
    Reason reason;
    bool is_tuned = false;
    Reason not_tuned = {};  ///< why not, where trials are known
    double ns = 0;          ///< of the parts and their sum, by the model
  };

  Graph cut_up(const std::map<NodeId, Cut>& cuts) {
    for (std::size_t id = 0; id < graph_.nodes().size(); ++id) {
      const Node& node = graph_.nodes()[id];
      const auto cut = cuts.find(id);
      if (cut == cuts.end()) {
        rewrite_.copy(node);
      } else if (node.op->op_class == OpClass::kAttention) {
        split_attention(node);
      } else if (node.op->op_class == OpClass::kMatmul) {
        split_matmul(node, cut->second);
      } else {
        split_reduction(node, cut->second);
      }
    }
    return rewrite_.finish();
  }

  const Shape& shape(ValueId value) const { return graph_.type(value).shape; }

  static bool is_plain_matmul(const Node& node) {
    return node.op->op_class == OpClass::kMatmul && node.op->matmul == Matmul::kPlain;
  }
  static bool reduces(const Node& node) {
    const std::string_view op = node.op_name();
    return is_plain_matmul(node) || op == "sum" || op == "mean" || op == "amax" || op == "amin";
  }

  bool can_be_cut(const Node& node) const {
    return reduces(node) && graph_.value(node.outputs[0]).comm_group.empty();
  }

  /// The dims of the first operand that are reduced.
  std::vector<std::size_t> reduced_dims(const Node& node) const {
    const bool matmul = is_plain_matmul(node);
    const std::size_t rank = shape(node.inputs[0]).size();
    if (matmul) {
      if (rank != shape(node.inputs[1]).size()) return {};
      return {rank - 1};
    }
    return reduced_axes(node.attrs, rank);
  }

  /// The elementwise nodes behind a value, without others in between.
  std::set<NodeId> elementwise_behind(ValueId value) const {
    std::set<NodeId> found;
    std::vector<ValueId> next{value};
    while (!next.empty()) {
      const ValueId last = next.back();
      next.pop_back();
      for (const NodeId user : uses_.of(last)) {
        const Node& node = graph_.node(user);
        if (node.op->op_class == OpClass::kPointwise && found.insert(user).second) {
          next.push_back(node.outputs[0]);
        }
      }
    }
    return found;
  }

  /// How many matmuls with the node's first operand and result type meet it behind, itself one.
  std::int64_t matmuls_together(const Node& node) const {
    std::int64_t count = 1;
    std::optional<std::set<NodeId>> behind;
    for (const NodeId user : uses_.of(node.inputs[0])) {
      const Node& other = graph_.node(user);
      if (&other == &node || !is_plain_matmul(other) || other.inputs[0] != node.inputs[0] ||
          graph_.type(other.outputs[0]) != graph_.type(node.outputs[0])) {
        continue;
      }
      if (!behind) behind = elementwise_behind(node.outputs[0]);
      const std::set<NodeId> its = elementwise_behind(other.outputs[0]);
      count += std::ranges::any_of(its, [&](NodeId id) { return behind->contains(id); }) ? 1 : 0;
    }
    return count;
  }

  const Choice& choice_of(NodeId id) {
    const Node& node = graph_.node(id);
    const std::int64_t together = is_plain_matmul(node) ? matmuls_together(node) : 1;
    const auto [choice, is_new] = choices_.try_emplace({kinds_.of(id), together, bytes_for(node)});
    if (is_new) choice->second = choose(node, together);
    return choice->second;
  }

  Choice choose(const Node& node, std::int64_t together) {
    const std::vector<std::size_t> dims = reduced_dims(node);
    if (dims.empty()) return {};
    Choice choice = by_model(node, dims, together);
    if (is_plain_matmul(node) && !context_.config.batch_invariant && choose_tuned_.is_asked()) {
      ask_tuned(node, dims[0], choice);
    }
    return choice;
  }

  Choice by_model(const Node& node, const std::vector<std::size_t>& dims, std::int64_t together) {
    const double bytes = bytes_for(node);
    // Even a single block would take no longer than what a split costs.
    if (memory_ns(bytes, 1, kStreamInFlight, device_) < device_.launch_ns) return {};
    const auto time_ns = [&](double moved, const Cut& cut) {
      if (is_plain_matmul(node)) return product_ns(node, cut, together);
      const Reading reading = reading_of(node, cut);
      return memory_ns(moved, reading.blocks, reading.in_flight, device_);
    };
    const Cut whole{dims[0], 1};
    const std::int64_t blocks = reading_of(node, whole).blocks;
    const double now = time_ns(bytes, whole);
    if (now - traffic_ns(bytes, device_) < device_.launch_ns) return {};

    Cut best{0, 1};
    double least = now;
    const double result =
        static_cast<double>(max_bytes({DType::kF32, shape(node.outputs[0])}, graph_.symbols()));
    for (std::size_t dim : dims) {
      for (std::int64_t parts = 2; can_cut(node, shape(node.inputs[0])[dim], parts); parts *= 2) {
        const double traffic = result * static_cast<double>(parts);
        const double time =
            time_ns(bytes + traffic, {dim, parts}) + device_.launch_ns + adding_ns(result, parts);
        if (time < least && time <= now - kLeastGainNs) {
          least = time;
          best = {dim, parts};
        }
      }
    }
    if (best.parts == 1) return {std::nullopt, Reason(kNoGain, blocks, device_.name)};
    return {.cut = best,
            .reason =
                Reason(kSplit, blocks, device_.name, best.parts, best.dim, least / 1e3, now / 1e3),
            .ns = least};
  }

  /// Changes the choice to the number of parts (1, 2, 4, ...) that tuning found fastest, skipping
  /// those whose rough estimate is hopeless.
  void ask_tuned(const Node& node, std::size_t dim, Choice& choice) {
    const Dim& extent = shape(node.inputs[0])[dim];
    if (!can_cut(node, extent, 2)) return;
    const std::int64_t model = choice.cut ? choice.cut->parts : 1;
    const double result =
        static_cast<double>(max_bytes({DType::kF32, shape(node.outputs[0])}, graph_.symbols()));
    PlanChoice ask{.op = std::string(node.op_name()),
                   .operands = fmt::format("{} x {}", graph_.type(node.inputs[0]).str(),
                                           graph_.type(node.inputs[1]).str())};
    std::vector<std::int64_t> parts;
    double whole_ns = 0;
    for (std::int64_t some = 1; some == 1 || can_cut(node, extent, some); some *= 2) {
      PlanOption option{some == 1 ? "whole" : fmt::format("{} parts", some),
                        lone_kernels(node, {dim, some})};
      double about = price_of(option.kernels[0]);
      if (some == 1) whole_ns = about;
      if (some > 1) about += device_.launch_ns + adding_ns(result, some);
      constexpr double kHopeless = 2;
      if (about > kHopeless * whole_ns && some != model) continue;
      if (some == model) ask.by_model = parts.size();
      parts.push_back(some);
      ask.options.push_back(std::move(option));
    }
    if (parts.size() == 1) return;
    ChooseTuned::Answer answer = choose_tuned_(std::move(ask));
    if (!answer.is_tuned) {
      choice.not_tuned = std::move(answer.why);
      return;
    }
    const std::int64_t best = parts[answer.taken];
    choice = {best == 1 ? std::nullopt : std::optional(Cut{dim, best}),
              Reason(kTuned, std::move(answer.why)),
              true,
              {}};
  }

  /// Whether a matmul computes the operand itself, by nodes that nothing else reads.
  std::optional<std::vector<Source>> made_of(const Node& matmul, ValueId operand) const {
    if (!is_plain_matmul(matmul)) return std::nullopt;
    const auto input =
        static_cast<std::size_t>(std::ranges::find(matmul.inputs, operand) - matmul.inputs.begin());
    return braid::made_of(graph_, matmul, input, context_.target,
                          [&](NodeId id) { return is_inside(id); });
  }
  [[nodiscard]] bool is_inside(NodeId id) const {
    const Node& node = graph_.node(id);
    const OpClass kind = node.op->op_class;
    return node.inputs.empty() ||
           ((kind == OpClass::kPointwise || kind == OpClass::kCopy || kind == OpClass::kView) &&
            node.outputs.size() == 1 && uses_.of(node.outputs[0]).size() == 1);
  }
  /// Bytes that the kernel of a node reads for an operand.
  double bytes_for(const Node& node, ValueId operand) const {
    const auto sources = made_of(node, operand);
    if (!sources) return static_cast<double>(max_bytes(graph_.type(operand), graph_.symbols()));
    double bytes = 0;
    for (const Source& source : *sources) {
      bytes += static_cast<double>(max_bytes(graph_.type(source.value), graph_.symbols()));
    }
    return bytes;
  }
  double bytes_for(const Node& node) const {
    double bytes = 0;
    for (const ValueId input : node.inputs) bytes += bytes_for(node, input);
    return bytes;
  }
  /// The operand in another graph: an input, or what a matmul computes itself.
  ValueId add_operand(Graph& alone, const std::string& name, const Node& node,
                      ValueId operand) const {
    std::map<ValueId, ValueId> known;
    const bool is_made = made_of(node, operand).has_value();
    const auto add = [&](const auto& self, ValueId value) -> ValueId {
      const auto [at, is_new] = known.try_emplace(value, -1);
      if (!is_new) return at->second;
      const NodeId producer = graph_.value(value).producer;
      const std::string own = fmt::format("{}_{}", name, known.size());
      if (!is_made || producer < 0 || !is_inside(producer)) {
        return at->second = alone.add_input({.name = own, .type = graph_.type(value)});
      }
      const Node& from = graph_.node(producer);
      std::vector<ValueId> inputs;
      for (const ValueId input : from.inputs) inputs.push_back(self(self, input));
      const NodeId id = alone.add_node(own, from.op_name(), std::move(inputs), from.attrs);
      return at->second = alone.node(id).outputs[0];
    };
    return add(add, operand);
  }

  /// The kernels of a matmul in parts: one for all parts, one that adds them; else the matmul.
  std::vector<std::shared_ptr<const Graph>> lone_kernels(const Node& node, const Cut& cut) const {
    Graph alone("alone");
    for (const auto& [name, symbol] : graph_.symbols()) alone.add_symbol(name, symbol);
    std::vector<ValueId> operands;
    for (const ValueId input : node.inputs) {
      operands.push_back(add_operand(alone, fmt::format("i{}", operands.size()), node, input));
    }
    const NodeId whole = alone.add_node("v", node.op_name(), std::move(operands), node.attrs);
    alone.add_output(alone.node(whole).outputs[0]);
    const auto kernel = [&](std::size_t first, std::size_t end, std::span<const ValueId> inputs,
                            ValueId output) {
      std::vector<NodeId> nodes(end - first);
      std::iota(nodes.begin(), nodes.end(), static_cast<NodeId>(first));
      return make_body(alone, nodes, inputs, std::span(&output, 1));
    };
    if (cut.parts == 1) {
      return {kernel(0, alone.nodes().size(), alone.input_values(), alone.outputs()[0])};
    }
    alone = Splitter(alone, context_).cut_up({{whole, cut}});
    const auto& nodes = alone.nodes();
    const auto is_product = [](const Node& n) { return n.op->op_class == OpClass::kMatmul; };
    const auto product = std::ranges::find_if(nodes, is_product);
    const auto end = static_cast<std::size_t>(product - nodes.begin()) + 1;
    const ValueId parts = product->outputs[0];
    return {kernel(0, end, alone.input_values(), parts),
            kernel(end, nodes.size(), std::span(&parts, 1), alone.outputs()[0])};
  }

  double price_of(const std::shared_ptr<const Graph>& body) const {
    return kernel_ns({body, default_config(*body, context_.target)}, max_bindings(body->symbols()),
                     device_);
  }
  /// The time of a matmul's kernel, without what adds its parts: of a whole one its share of that
  /// for all that are together.
  double product_ns(const Node& node, const Cut& cut, std::int64_t together) const {
    if (cut.parts > 1 || together == 1) return price_of(lone_kernels(node, cut)[0]);
    Graph joint("joint");
    for (const auto& [name, symbol] : graph_.symbols()) joint.add_symbol(name, symbol);
    const ValueId a = add_operand(joint, "a", node, node.inputs[0]);
    ValueId sum = -1;
    for (std::int64_t i = 0; i < together; ++i) {
      std::vector<ValueId> operands{a};
      for (std::size_t at = 1; at < node.inputs.size(); ++at) {
        operands.push_back(add_operand(joint, fmt::format("i{}_{}", i, at), node, node.inputs[at]));
      }
      const NodeId product =
          joint.add_node(fmt::format("v{}", i), node.op_name(), std::move(operands), node.attrs);
      const ValueId result = joint.node(product).outputs[0];
      sum =
          sum < 0
              ? result
              : joint.node(joint.add_node(fmt::format("s{}", i), "add", {sum, result})).outputs[0];
    }
    std::vector<NodeId> nodes(joint.nodes().size());
    std::iota(nodes.begin(), nodes.end(), NodeId{0});
    return price_of(make_body(joint, nodes, joint.input_values(), std::span(&sum, 1))) /
           static_cast<double>(together);
  }

  /// The time to add the parts of a result of that many bytes; a block keeps an element of each
  /// part in flight.
  double adding_ns(double result, std::int64_t parts) const {
    const auto all = static_cast<double>(parts);
    const auto blocks = static_cast<std::int64_t>(result / kStreamInFlight);
    return memory_ns(result * all, std::max<std::int64_t>(1, blocks), kStreamInFlight * all,
                     device_);
  }

  static bool can_cut(const Node& node, const Dim& extent, std::int64_t parts) {
    const bool is_matmul = node.op->op_class == OpClass::kMatmul;
    const std::int64_t least = is_matmul ? kLeastK : 1;
    return extent.is_constant() && extent.constant() > 0 &&
           extent.constant() % (parts * least) == 0 &&
           (is_matmul || extent.constant() / parts >= kLeastElements) &&
           parts <= (is_matmul ? kMostMatmulParts : kMostParts);
  }

  /// The blocks of a kernel, and the bytes that each keeps in flight.
  struct Reading {
    std::int64_t blocks = 0;
    double in_flight = 0;
  };

  /// For the kernel that reduces the parts (one part: the node itself). A thread of a reduction
  /// reads eight elements at a time. The ring of a matmul keeps all but one stage in flight, whose
  /// panels other blocks may fetch too.
  Reading reading_of(const Node& node, const Cut& cut) {
    Graph stage("stage");
    for (const auto& [name, symbol] : graph_.symbols()) stage.add_symbol(name, symbol);
    std::vector<ValueId> inputs;
    const bool is_matmul = node.op->op_class == OpClass::kMatmul;
    double bytes = 0;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      TensorType type = graph_.type(node.inputs[i]);
      if (cut.parts > 1) type.shape = cut_shape(type.shape, cut.dim - i, cut.parts, is_matmul);
      bytes += static_cast<double>(max_bytes(type, graph_.symbols()));
      inputs.push_back(stage.add_input({"i" + std::to_string(i), type}));
    }
    const NodeId id = cut.parts == 1 ? stage.add_node("v", node.op_name(), inputs, node.attrs)
                      : is_matmul    ? stage.add_node("v", "matmul", inputs)
                                     : stage.add_node("v", node.op_name(), inputs,
                                                      {{"dim", inner_dims(node, cut.dim)}});
    stage.add_output(stage.node(id).outputs[0]);
    const auto body = std::make_shared<Graph>(std::move(stage));
    const KernelSpec spec{body, default_config(*body, context_.target)};
    const Requirements needs = requirements(spec, context_.target);
    const std::int64_t blocks = needs.grid.max(graph_.symbols());
    if (is_matmul) {
      const std::int64_t k =
          body->type(body->nodes()[0].inputs[0]).shape.back().max(graph_.symbols());
      const double steps =
          std::ceil(static_cast<double>(k) / static_cast<double>(spec.config.at("BLOCK_K")));
      const auto ahead = static_cast<double>(spec.config.at("num_stages") - 1);
      return {blocks, bytes / static_cast<double>(blocks) * std::min(1.0, ahead / steps)};
    }
    const double element = static_cast<double>(dtype_size(graph_.type(node.inputs[0]).dtype));
    return {blocks, 8.0 * needs.threads * element};
  }

  /// Splits dim `dim` into [parts, extent / parts], with the parts in front of all dims or in
  /// place.
  static Shape cut_shape(Shape shape, std::size_t dim, std::int64_t parts, bool in_front) {
    shape[dim] = shape[dim].constant() / parts;
    shape.insert(shape.begin() + (in_front ? 0 : static_cast<std::ptrdiff_t>(dim)), parts);
    return shape;
  }

  /// The dims to reduce within the parts of `dim`.
  std::vector<std::int64_t> inner_dims(const Node& node, std::size_t dim) const {
    std::vector<std::int64_t> inner;
    for (std::size_t d : reduced_dims(node)) {
      inner.push_back(static_cast<std::int64_t>(d + (d >= dim ? 1 : 0)));
    }
    return inner;
  }

  // --- the new nodes -----------------------------------------------------------------------------

  ValueId add(const Node& node, std::string_view op, std::vector<ValueId> inputs, Attrs attrs) {
    return rewrite_.add(fmt::format("{}_{}", node.name, op), op, std::move(inputs),
                        std::move(attrs));
  }
  const TensorType& type(ValueId now) { return rewrite_.graph().type(now); }

  /// `value` with dim `dim` split into [parts, extent / parts].
  ValueId cut_dim(const Node& node, ValueId value, std::size_t dim, std::int64_t parts) {
    const Shape cut = cut_shape(type(value).shape, dim, parts, false);
    return add(node, "view", {value}, {{"shape", cut}});
  }

  /// The same with the parts in front.
  ValueId parts_first(const Node& node, ValueId value, std::size_t dim, std::int64_t parts) {
    const ValueId cut = cut_dim(node, value, dim, parts);
    if (dim == 0) return cut;
    std::vector<std::int64_t> order{static_cast<std::int64_t>(dim)};
    for (std::size_t d = 0; d < type(cut).shape.size(); ++d) {
      if (d != dim) order.push_back(static_cast<std::int64_t>(d));
    }
    return add(node, "permute", {cut}, {{"dims", order}});
  }

  void split_matmul(const Node& node, const Cut& cut) {
    const ValueId a = parts_first(node, rewrite_(node.inputs[0]), cut.dim, cut.parts);
    const ValueId b = parts_first(node, rewrite_(node.inputs[1]), cut.dim - 1, cut.parts);
    const ValueId partial = add(node, "matmul", {a, b}, {{"out_dtype", DType::kF32}});
    // Slices and adds, not a reduction, so that they fuse into whatever reads the sum.
    ValueId sum = -1;
    for (std::int64_t part = 0; part < cut.parts; ++part) {
      const ValueId slice = add(node, "slice", {partial},
                                {{"dim", std::int64_t{0}}, {"start", part}, {"end", part + 1}});
      const ValueId one = add(node, "view", {slice}, {{"shape", shape(node.outputs[0])}});
      sum = sum < 0 ? one : add(node, "add", {sum, one}, {});
    }
    finish(node, sum);
  }

  void split_reduction(const Node& node, const Cut& cut) {
    ValueId x = rewrite_(node.inputs[0]);
    const bool adds = node.op_name() == "sum" || node.op_name() == "mean";
    if (adds && is_float(type(x).dtype) && type(x).dtype != DType::kF32)
      x = add(node, "to", {x}, {{"dtype", DType::kF32}});
    x = cut_dim(node, x, cut.dim, cut.parts);
    auto kept_before = static_cast<std::int64_t>(cut.dim);
    for (std::size_t d : reduced_dims(node)) kept_before -= d < cut.dim ? 1 : 0;
    const auto reduce = [&](ValueId value, std::vector<std::int64_t> dims) {
      return add(node, node.op_name(), {value}, {{"dim", std::move(dims)}, {"keepdim", false}});
    };
    x = reduce(reduce(x, inner_dims(node, cut.dim)), {kept_before});
    if (type(x).shape != shape(node.outputs[0])) {
      x = add(node, "view", {x}, {{"shape", shape(node.outputs[0])}});
    }
    finish(node, x);
  }

  /// Whether a row of the attention's page table has room for one segment of keys alone.
  bool has_one_segment(const Node& node) const {
    const Dim& pages = shape(node.inputs[kPageTable])[1];
    return pages.max(graph_.symbols()) * shape(node.inputs[1])[1].evaluate({}) <= kSegment;
  }

  /// Whether it is an attention of one token in each sequence, and its parts are known.
  bool decodes(const Node& node) const {
    const Shape& table = shape(node.inputs[kPageTable]);
    return shape(node.inputs[0])[0] == table[0] && table[1].is_constant() && !has_one_segment(node);
  }

  bool is_cut(const Node& node) const {
    return decodes(node) || (options_.invariant_attention &&
                             (has_sinks(node.inputs.size()) || !has_one_segment(node)));
  }

  void split_attention(const Node& node) {
    Attrs attrs = node.attrs;
    attrs.emplace("segment", kSegment);
    rewrite_.copy(node, "paged_attention_in_parts", rewrite_(node.inputs), std::move(attrs));
  }

  /// Casts the result and gives it the node's name.
  void finish(const Node& node, ValueId value) {
    const DType dtype = graph_.type(node.outputs[0]).dtype;
    Graph& graph = rewrite_.graph();
    const NodeId id = graph.add_node(node.name, "to", {value}, {{"dtype", dtype}});
    rewrite_.map(node.outputs[0], graph.node(id).outputs[0]);
  }

  const Graph& graph_;
  PassContext& context_;
  const DeviceModel& device_;
  NodeKinds kinds_;
  Uses uses_;
  /// By kind of node, how many are together, and the bytes that it reads.
  std::map<std::tuple<NodeId, std::int64_t, double>, Choice> choices_;
  ChooseTuned choose_tuned_;
  Rewriter rewrite_;
  SplitOptions options_;
};

constexpr PassOption kOptions[] = {
    {.name = "invariant-attention",
     .variable = kVariable<&SplitOptions::invariant_attention>,
     .meaning = "a row of paged_attention has the same bits in a prompt and in decode",
     .said = "{}",
     .off = "",
     .on = "paged_attention in prompts by the segments of decode"}};

}  // namespace

std::map<NodeId, double> saved_by_cuts_ns(const Graph& graph, const PassContext& context) {
  PassContext apart{.target = context.target, .config = context.config};  // without trials
  return Splitter(graph, apart).saved_ns();
}

constinit const Pass split_reductions{
    .name = "split_reductions",
    .summary = "cuts long reductions with few results into parts that run side by side",
    .run = [](const Graph& graph, PassContext& context) -> std::optional<Graph> {
      return Splitter(graph, context).run();
    },
    .cuts_sums = true,
    .options = kOptions};

}  // namespace braid
