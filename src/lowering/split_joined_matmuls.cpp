
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/mutation.h"
#include "ir/op_registry.h"
#include "ir/scales.h"
#include "ir/views.h"
#include "lowering/analysis/match.h"
#include "lowering/fuse/kernel_body.h"
#include "lowering/passes.h"
#include "lowering/plan/cost.h"
#include "lowering/rewrite.h"

// split_joined_matmuls: a matmul with several weights side by side becomes one matmul for each.
//
// Matches a matmul (mm, matmul, addmm, scaled_mm, _grouped_mm) whose readers all take only parts of
// its columns, by `slice` or `split`, possibly behind pointwise nodes or a view that splits the
// columns:
//   gu = mm(x, w); g = gu[:, :n]; u = gu[:, n:]  ->  g = mm(x, w[:, :n]); u = mm(x, w[:, n:])
// The slices of the weight, and of a bias or scale of the columns, are views of it. Nodes between
// the matmul and the slices are repeated for each part, and so are those that compute the weight,
// as numbers of 4 bits are unpacked, for nobody else: then slices are of what these read. Each
// element is the same sum as before, since split_reductions has already run on the whole matmul.
//
// Splits where the kernels that `fuse` makes of the parts, and of what reads them element by
// element, take less than those that it makes of the whole: where gate and up end in one kernel,
// their product is never in memory; where q, k and v would be three kernels, each reads x again.
// Refuses parts that overlap, or that do not begin at a multiple of the 16 bytes that a thread
// loads at once, or of a scale's blocks of 128 columns.
namespace braid {
namespace {

constexpr std::string_view kPass = "split_joined_matmuls";

constexpr ReasonCode kSplit{"split_joined_matmuls.split",
                            "{parts} parts of the columns: {kernels} kernel(s) take about {us:.1f} "
                            "us instead of {now_us:.1f}"};
constexpr ReasonCode kNoGain{"split_joined_matmuls.no_gain",
                             "{parts} parts of the columns would take about {us:.1f} us in "
                             "{kernels} kernel(s) instead of {now_us:.1f}"};
constexpr ReasonCode kReadsAcross{"split_joined_matmuls.reads_across",
                                  "'{reader}' reads '{value}' across its parts"};
constexpr ReasonCode kGraphOutput{"split_joined_matmuls.graph_output",
                                  "'{value}' is a graph output"};
constexpr ReasonCode kOverwritten{"split_joined_matmuls.overwritten", "'{value}' is overwritten"};
constexpr ReasonCode kCommBuffer{"split_joined_matmuls.comm_buffer",
                                 "peers read '{value}' as a whole"};
constexpr ReasonCode kOverlap{"split_joined_matmuls.overlap",
                              "columns {first} to {last} are in several parts"};
constexpr ReasonCode kMisaligned{"split_joined_matmuls.misaligned",
                                 "column {column} begins at no multiple of {bytes} bytes"};
constexpr ReasonCode kWithinBlock{"split_joined_matmuls.within_block",
                                  "column {column} begins within a scale's block of {columns}"};

/// What a thread loads at once.
constexpr std::int64_t kLoadBytes = 16;

struct Part {
  std::int64_t start, end;  ///< columns
  auto operator<=>(const Part&) const = default;
};

/// How a value holds the columns: `inner` elements for each index along dim `axis`.
struct Columns {
  std::size_t axis;
  std::int64_t inner;
};

/// A matmul, and the nodes between it and the readers of parts.
struct Joined {
  NodeId matmul = -1;
  std::vector<Part> parts;             ///< in order; empty: nobody reads a part
  std::map<ValueId, Columns> columns;  ///< results that hold all columns
  std::map<ValueId, Part> slices;
  Reason obstacle;
};

/// The index of a matmul's left operand; the right one follows.
std::size_t left_of(const Node& matmul) { return matmul.op->matmul == Matmul::kAdd ? 1 : 0; }

/// Whether operand `i` of a matmul is the same for all columns: the left one, its scale, the ends
/// of groups.
bool has_no_columns(const Node& matmul, std::size_t i) {
  return i == left_of(matmul) || (i == 2 && (matmul.op->matmul == Matmul::kGrouped ||
                                             matmul.op->matmul == Matmul::kScaled));
}

/// Whether an operand has a number for each block of 128 columns.
bool has_blocks_of_columns(const Graph& graph, const Node& matmul, std::size_t i) {
  return i == 3 && matmul.op->matmul == Matmul::kScaled && is_scale_in_blocks(graph, matmul, i) &&
         graph.type(matmul.inputs[i]).shape[1] != graph.type(matmul.outputs[0]).shape[1];
}

/// Analyses of the graph.
struct Known {
  explicit Known(const Graph& graph) : uses(graph), overwritten(overwritten_values(graph)) {}
  Uses uses;
  std::vector<bool> overwritten;
};

/// Follows the columns of a matmul to their slices.
class Finder {
 public:
  Finder(const Graph& graph, const Known& known, NodeId matmul) : graph_(graph), known_(known) {
    joined_.matmul = matmul;
  }

  Joined run() {
    const ValueId result = graph_.node(joined_.matmul).outputs[0];
    const Shape& shape = graph_.type(result).shape;
    if (!shape.back().is_constant()) return {};
    width_ = shape.back().constant();
    follow(result, {shape.size() - 1, 1});
    finish();
    return std::move(joined_);
  }

 private:
  void follow(ValueId value, Columns columns) {
    if (!joined_.columns.emplace(value, columns).second) return;
    const std::string& name = graph_.value(value).name;
    if (known_.uses.is_output(value)) refuse(Reason(kGraphOutput, name));
    if (known_.overwritten[value]) refuse(Reason(kOverwritten, name));
    if (!graph_.value(value).comm_group.empty()) refuse(Reason(kCommBuffer, name));
    for (const NodeId user : known_.uses.of(value)) {
      const Node& reader = graph_.node(user);
      if (!read(reader, value, columns)) refuse(Reason(kReadsAcross, reader.name, name));
    }
  }

  /// Whether the reader takes a part of the columns, or treats all columns alike.
  bool read(const Node& reader, ValueId value, Columns columns) {
    const Shape& shape = graph_.type(value).shape;
    if (reader.op->view == View::kPart) {
      const std::vector<SliceRange> ranges = part_ranges(reader.attrs, shape, graph_.symbols());
      for (std::size_t i = 0; i < ranges.size(); ++i) {
        const SliceRange& range = ranges[i];
        if (range.axis != columns.axis || range.step != 1 || !range.start.is_constant() ||
            !range.length.is_constant() || range.length.constant() == 0) {
          return false;
        }
        const std::int64_t start = range.start.constant() * columns.inner;
        joined_.slices.emplace(reader.outputs[i],
                               Part{start, start + range.length.constant() * columns.inner});
      }
      return true;
    }
    if (reader.outputs.size() != 1) return false;
    const ValueId result = reader.outputs[0];
    if (reader.op->op_class == OpClass::kPointwise) {
      if (graph_.type(result).shape != shape) return false;
      follow(result, columns);
      return true;
    }
    // [..., N] as [..., N / inner, inner...]
    const Shape& view = graph_.type(result).shape;
    const std::ptrdiff_t axis = columns.axis;
    if (reader.op->view != View::kFlat || columns.axis + 1 != shape.size() || columns.inner != 1 ||
        view.size() <= columns.axis || !view[columns.axis].is_constant() ||
        !std::equal(view.begin(), view.begin() + axis, shape.begin(), shape.end() - 1)) {
      return false;
    }
    follow(result, {columns.axis, width_ / view[columns.axis].constant()});
    return true;
  }

  void refuse(Reason reason) {
    if (!joined_.obstacle) joined_.obstacle = std::move(reason);
  }

  void finish() {
    std::vector<Part>& parts = joined_.parts;
    for (const auto& [value, part] : joined_.slices) parts.push_back(part);
    std::ranges::sort(parts);
    parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
    const Node& matmul = graph_.node(joined_.matmul);
    const ValueId weight = matmul.inputs[left_of(matmul) + 1];
    const auto element = static_cast<std::int64_t>(dtype_size(graph_.type(weight).dtype));
    const bool in_blocks = matmul.inputs.size() > 3 && has_blocks_of_columns(graph_, matmul, 3);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Part& part = parts[i];
      if (in_blocks && part.start % kScaleBlock != 0) {
        refuse(Reason(kWithinBlock, part.start, kScaleBlock));
      }
      if (i > 0 && part.start < parts[i - 1].end) {
        refuse(Reason(kOverlap, part.start, std::min(part.end, parts[i - 1].end)));
      }
      if (width_ * element % kLoadBytes == 0 && part.start * element % kLoadBytes != 0) {
        refuse(Reason(kMisaligned, part.start, kLoadBytes));
      }
    }
  }

  const Graph& graph_;
  const Known& known_;
  std::int64_t width_ = 0;
  Joined joined_;
};

/// Rewrites the matmuls into parts.
class Cutter {
 public:
  Cutter(const Graph& graph, const Known& known, std::vector<Joined> all)
      : graph_(graph), known_(known), all_(std::move(all)), rewrite_(graph) {
    for (const Joined& joined : all_) {
      for (const auto& [value, columns] : joined.columns) of_.emplace(value, &joined);
    }
  }

  Graph run() {
    for (const Node& node : graph_.nodes()) {
      const auto found = of_.find(node.outputs[0]);
      if (found != of_.end()) {
        cut(node, *found->second);
      } else if (!node.inputs.empty() && node.op->view == View::kPart &&
                 of_.contains(node.inputs[0])) {
        take_parts(node);
      } else {
        rewrite_.copy(node);
      }
    }
    return rewrite_.finish();
  }

 private:
  void cut(const Node& node, const Joined& joined) {
    if (node.op->op_class == OpClass::kMatmul) find_made_for(node);
    const ValueId result = node.outputs[0];
    const Columns columns = joined.columns.at(result);
    const Shape& shape = graph_.type(result).shape;
    const OperandColumns columns_of{shape.size() - columns.axis, shape[columns.axis].constant(),
                                    columns.inner};
    for (const Part& part : joined.parts) {
      std::vector<ValueId> operands;
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        const ValueId input = node.inputs[i];
        const bool is_matmul = node.op->op_class == OpClass::kMatmul;
        if (is_matmul && has_blocks_of_columns(graph_, node, i)) {
          operands.push_back(slice(input, 1, part.start / kScaleBlock,
                                   (part.end + kScaleBlock - 1) / kScaleBlock));
          continue;
        }
        operands.push_back(is_matmul && has_no_columns(node, i) ? rewrite_(input)
                           : joined.columns.contains(input)     ? parts_.at({input, part})
                                                            : of_columns(input, columns_of, part));
      }
      Attrs attrs = node.attrs;
      if (node.op->view == View::kFlat) {
        Shape cut = shape;
        cut[columns.axis] = (part.end - part.start) / columns.inner;
        attrs.insert_or_assign("shape", cut);
      }
      parts_[{result, part}] = add(node, std::move(operands), std::move(attrs));
    }
  }

  void take_parts(const Node& node) {
    const Joined& joined = *of_.at(node.inputs[0]);
    for (const ValueId result : node.outputs) {
      rewrite_.map(result, parts_.at({node.inputs[0], joined.slices.at(result)}));
    }
  }

  /// The dim of an operand that indexes columns, where it has a column per element.
  struct OperandColumns {
    std::size_t from_end;
    std::int64_t extent, inner;
  };

  /// Notes the pointwise nodes whose results only this matmul reads, through nodes between.
  void find_made_for(const Node& matmul) {
    std::set<NodeId, std::greater<>> next;
    const auto add_producers = [&](const Node& node) {
      for (const ValueId input : node.inputs) {
        if (graph_.value(input).producer >= 0) next.insert(graph_.value(input).producer);
      }
    };
    std::set<NodeId> readers{graph_.value(matmul.outputs[0]).producer};
    add_producers(matmul);
    while (!next.empty()) {
      const NodeId id = *next.begin();
      next.erase(next.begin());
      const Node& node = graph_.node(id);
      const bool moves = node.op->view == View::kFlat || node.op->view == View::kPermute ||
                         node.op->view == View::kExpand;
      if (!moves && node.op->op_class != OpClass::kPointwise) continue;
      const ValueId result = node.outputs[0];
      if (!known_.uses.is_read_by(result, [&](NodeId user) { return readers.contains(user); })) {
        continue;
      }
      readers.insert(id);
      add_producers(node);
      if (!moves) made_for_one_.insert(id);
    }
  }

  /// The part of an operand; the operand itself where all columns share one element.
  ValueId of_columns(ValueId value, const OperandColumns& columns, const Part& part) {
    const Shape& shape = graph_.type(value).shape;
    if (shape.size() < columns.from_end ||
        shape[shape.size() - columns.from_end] != Dim(columns.extent)) {
      return rewrite_(value);
    }
    const std::size_t axis = shape.size() - columns.from_end;
    const auto [known, is_new] = operand_parts_.try_emplace({value, axis, part}, -1);
    if (!is_new) return known->second;
    const std::int64_t start = part.start / columns.inner, end = part.end / columns.inner;
    const NodeId producer = graph_.value(value).producer;
    const Node* const node = producer < 0 ? nullptr : &graph_.node(producer);
    const bool moves = node != nullptr && can_move_part(*node, axis);
    const bool computes = node != nullptr && made_for_one_.contains(producer);
    if (known_.overwritten[value] || (!moves && !computes)) {
      return operand_parts_[{value, axis, part}] =
                 slice(value, static_cast<std::int64_t>(axis), start, end);
    }
    std::vector<ValueId> operands;
    for (const ValueId input : node->inputs) {
      const std::size_t rank = graph_.type(input).shape.size();
      const std::optional<std::size_t> dim = dim_of_operand(graph_, *node, input, axis);
      operands.push_back(dim ? of_columns(input, {rank - *dim, columns.extent, columns.inner}, part)
                             : rewrite_(input));
    }
    Attrs attrs = node->attrs;
    if (node->op->view == View::kFlat || node->op->view == View::kExpand) {
      Shape cut = shape;
      cut[axis] = end - start;
      attrs.insert_or_assign("shape", std::move(cut));
    }
    return operand_parts_[{value, axis, part}] = add(*node, std::move(operands), std::move(attrs));
  }

  /// Whether a part of the result along a dim is the same movement of a part of the operand.
  bool can_move_part(const Node& node, std::size_t axis) const {
    switch (node.op->view) {
      case View::kPermute:
      case View::kExpand:
        return true;
      case View::kFlat: {
        const ValueId input = node.inputs[0];
        const std::optional<std::size_t> dim = dim_of_operand(graph_, node, input, axis);
        return dim && graph_.type(input).shape[*dim] == graph_.type(node.outputs[0]).shape[axis];
      }
      default:
        return false;
    }
  }

  ValueId slice(ValueId value, std::int64_t axis, std::int64_t start, std::int64_t end) {
    return rewrite_.add(graph_.value(value).name + "_part", "slice", {rewrite_(value)},
                        {{"dim", axis}, {"start", start}, {"end", end}});
  }

  ValueId add(const Node& node, std::vector<ValueId> operands, Attrs attrs) {
    return rewrite_.add(node.name + "_part", node.op_name(), std::move(operands), std::move(attrs));
  }

  const Graph& graph_;
  const Known& known_;
  std::vector<Joined> all_;
  std::map<ValueId, const Joined*> of_;  ///< for each value that holds all columns
  std::map<std::pair<ValueId, Part>, ValueId> parts_;
  std::map<std::tuple<ValueId, std::size_t, Part>, ValueId> operand_parts_;  ///< along a dim
  std::set<NodeId> made_for_one_;
  Rewriter rewrite_;
};

class Chooser {
 public:
  Chooser(const Graph& graph, PassContext& context)
      : graph_(graph), context_(context), known_(graph) {}

  std::optional<Graph> run() {
    std::vector<Joined> chosen;
    for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
      const Node& node = graph_.nodes()[i];
      if (node.op->op_class != OpClass::kMatmul) continue;
      Joined joined = Finder(graph_, known_, i).run();
      if (joined.parts.empty()) continue;
      if (joined.obstacle) {
        context_.missed(kPass, node.name, std::move(joined.obstacle));
        continue;
      }
      const Price& price = price_of(joined);
      const bool pays = price.apart_ns < price.joined_ns;
      Reason reason = pays ? Reason(kSplit, joined.parts.size(), price.kernels,
                                    price.apart_ns / 1e3, price.joined_ns / 1e3)
                           : Reason(kNoGain, joined.parts.size(), price.apart_ns / 1e3,
                                    price.kernels, price.joined_ns / 1e3);
      if (pays) {
        context_.applied(kPass, node.name, std::move(reason));
        chosen.push_back(std::move(joined));
      } else {
        context_.missed(kPass, node.name, std::move(reason));
      }
    }
    if (chosen.empty()) return std::nullopt;
    return without_dead_nodes(Cutter(graph_, known_, std::move(chosen)).run());
  }

 private:
  /// Cost of the kernels that a matmul and its neighbours become.
  struct Price {
    double joined_ns, apart_ns;
    std::int64_t kernels;  ///< apart
  };

  const Price& price_of(const Joined& joined) {
    const std::shared_ptr<const Graph> around = neighbourhood(joined);
    const auto [found, is_new] = prices_.try_emplace(body_key(*around));
    if (!is_new) return found->second;
    const Known known(*around);
    const auto& nodes = around->nodes();
    const auto matmul = std::ranges::find_if(
        nodes, [](const Node& node) { return node.op->op_class == OpClass::kMatmul; });
    const NodeId id = matmul - nodes.begin();
    const Graph apart = Cutter(*around, known, {Finder(*around, known, id).run()}).run();
    Price& price = found->second;
    std::int64_t whole = 0;
    price.joined_ns = ns_of(*around, whole);
    price.apart_ns = ns_of(apart, price.kernels);
    return price;
  }

  /// The matmul, its elementwise producers and consumers, and the movements between them.
  std::shared_ptr<const Graph> neighbourhood(const Joined& joined) const {
    const auto size = graph_.nodes().size();
    std::vector<bool> inside(size, false);
    const auto moves = [](const Node& node) {
      return node.op->op_class == OpClass::kView && node.op->view != View::kBytes;
    };
    const auto is_inside = [&](ValueId value) {
      const NodeId producer = graph_.value(value).producer;
      return producer >= 0 && inside[producer];
    };
    inside[joined.matmul] = true;
    const std::size_t behind = joined.matmul + 1;
    for (std::size_t id = behind; id < size; ++id) {
      const Node& node = graph_.nodes()[id];
      inside[id] = (node.op->op_class == OpClass::kPointwise || moves(node) ||
                    (node.op->op_class == OpClass::kGather && !takes_indices(node))) &&
                   std::ranges::any_of(node.inputs, is_inside);
    }
    // What only moves the parts for others goes into their kernels.
    for (std::size_t id = size; id-- > behind;) {
      const Node& node = graph_.nodes()[id];
      if (!inside[id] || !moves(node) || joined.slices.contains(node.outputs[0])) continue;
      inside[id] = std::ranges::any_of(node.outputs, [&](ValueId value) {
        const auto& readers = known_.uses.of(value);
        return std::ranges::any_of(readers, [&](NodeId reader) { return inside[reader]; });
      });
    }
    // Behind the matmul stands what it takes in.
    for (std::size_t id = behind; id-- > 0;) {
      if (!inside[id]) continue;
      for (const ValueId input : graph_.nodes()[id].inputs) {
        const NodeId producer = graph_.value(input).producer;
        if (producer < 0) continue;
        const Node& node = graph_.node(producer);
        const bool computed = node.op->op_class == OpClass::kPointwise &&
                              known_.uses.is_read_by(input, [&](NodeId n) { return inside[n]; });
        if (moves(node) || computed) inside[producer] = true;
      }
    }
    std::vector<NodeId> nodes;
    std::vector<ValueId> inputs, outputs;
    for (std::size_t id = 0; id < size; ++id) {
      if (!inside[id]) continue;
      const Node& node = graph_.nodes()[id];
      nodes.push_back(id);
      for (const ValueId input : node.inputs) {
        if (!is_inside(input) && std::ranges::find(inputs, input) == inputs.end()) {
          inputs.push_back(input);
        }
      }
      for (const ValueId output : node.outputs) {
        const auto& readers = known_.uses.of(output);
        const bool escapes =
            std::ranges::any_of(readers, [&](NodeId reader) { return !inside[reader]; });
        if (escapes || known_.uses.is_output(output)) outputs.push_back(output);
      }
    }
    return make_body(graph_, nodes, inputs, outputs);
  }

  /// The time of its kernels; movements of parts are their readers' work.
  double ns_of(const Graph& graph, std::int64_t& kernels) const {
    PassContext trial{.target = context_.target,
                      .ranks_per_device = context_.ranks_per_device,
                      .max_kernel_nodes = context_.max_kernel_nodes,
                      .config = context_.config,
                      .tuned = context_.tuned};
    const Graph fused = fuse(graph, trial);
    const Bindings bindings = max_bindings(fused.symbols());
    double ns = 0;
    kernels = 0;
    for (const Node& node : fused.nodes()) {
      const auto* body = node.attr<std::shared_ptr<const Graph>>("body");
      if (body == nullptr) continue;
      const auto& inner = (*body)->nodes();
      if (std::ranges::all_of(inner,
                              [](const Node& n) { return n.op->op_class == OpClass::kView; })) {
        continue;
      }
      ++kernels;
      ns += node_ns(fused, node, bindings, device_model(context_.target));
    }
    return ns;
  }

  const Graph& graph_;
  PassContext& context_;
  Known known_;
  std::unordered_map<std::string, Price> prices_;  ///< by neighbourhood
};

}  // namespace

constinit const Pass split_joined_matmuls{
    .name = "split_joined_matmuls",
    .summary = "several weights side by side become several matmuls where these fuse better",
    .run = [](const Graph& graph, PassContext& context) -> std::optional<Graph> {
      return Chooser(graph, context).run();
    }};

}  // namespace braid
