// Whether a body can be one kernel. Every value is evaluated at a place: FULL (the flattened
// iteration space), ROW (one element per reduced row), or a place that movements and broadcasts
// lead to. Walking from the outputs back, each computed value must be needed at one place only;
// then nothing is computed twice. Reductions, norms, matmuls and collectives fix the places of
// their operands.

#include "codegen/body/analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "ir/collective.h"
#include "ir/mutation.h"
#include "ir/numel.h"
#include "ir/op_registry.h"
#include "ir/row.h"
#include "ir/views.h"

namespace braid {
namespace {

/// A place; those above kRow are numbered as they are found.
using Token = int;
constexpr Token kUnset = 0;
constexpr Token kFull = 1;
constexpr Token kRow = 2;

bool trailing(const std::vector<bool>& reduced) {
  return std::is_sorted(reduced.begin(), reduced.end());
}

Shape select_dims(const Shape& shape, const std::vector<bool>& flags, bool wanted) {
  Shape dims;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (flags[i] == wanted) dims.push_back(shape[i]);
  }
  return dims;
}

class Analysis {
 public:
  explicit Analysis(const Graph& body)
      : body_(body), facts_{body}, tokens_(body.values().size(), kUnset) {}

  BodyFacts run() {
    find_collective();
    find_anchors();
    if (facts_.refusal.empty()) find_space();
    if (facts_.refusal.empty()) place_values();
    facts_.per_row.resize(tokens_.size());
    for (std::size_t v = 0; v < tokens_.size(); ++v) facts_.per_row[v] = tokens_[v] == kRow;
    constexpr std::int64_t kNarrow = (std::int64_t{1} << 31) - (std::int64_t{1} << 20);
    facts_.narrow = max_numel(facts_.space, body_.symbols()) < kNarrow;
    for (const Value& value : body_.values()) {
      facts_.narrow = facts_.narrow && max_numel(value.type.shape, body_.symbols()) < kNarrow;
    }
    return std::move(facts_);
  }

 private:
  const Shape& shape(ValueId value) const { return body_.type(value).shape; }
  Token& token(ValueId value) { return tokens_[value]; }
  std::string type(ValueId value) const { return body_.type(value).str(); }
  bool is_input(ValueId value) const { return body_.value(value).producer < 0; }

  void find_collective() {
    for (const Node& node : body_.nodes()) {
      if (matmul_ == nullptr && is_matmul(node)) matmul_ = &node;
      if (node.op->op_class == OpClass::kAttention) attention_ = &node;
      if (facts_.scan == nullptr && node.op->op_class == OpClass::kScan) {
        facts_.scan = &node;
      }
      if (facts_.collective != nullptr || node.op->op_class != OpClass::kCollective) continue;
      facts_.collective = &node;
      if (!is_input(node.inputs[0])) facts_.apart = node.inputs[0];
      reduces_product_ = reduces_in_kernel(node) && matmul_ != nullptr;
      if (reduces_product_) made_ = facts_.apart;
    }
    if (facts_.collective == nullptr || matmul_ == nullptr) return;
    if (gathers_in_kernel(*facts_.collective)) {
      made_ = facts_.apart = facts_.collective->outputs[0];
    }
  }

  /// The first reason counts.
  void refuse(std::string reason) {
    if (facts_.refusal.empty()) facts_.refusal = std::move(reason);
  }

  void find_anchors() {
    const std::string* group = nullptr;
    std::size_t joined = 0;
    for (const Node& node : body_.nodes()) {
      if (node.op->view == View::kCat) joined += node.inputs.size();
      if (const auto* own = node.attr<std::string>("group")) {
        if (group != nullptr && *own != *group)
          return refuse("a kernel knows its rank in one group");
        group = own;
      }
      if (node.op->op_class == OpClass::kScan && facts_.scan != &node) {
        return refuse("a kernel holds one cumsum, topk or moe_routing");
      }
      if (node.op->op_class == OpClass::kCollective) {
        if (facts_.collective != &node) return refuse("a kernel holds one collective");
      } else if (is_reduction(node) && reduction_ == nullptr) {
        reduction_ = &node;
      } else if (node.op->view == View::kBytes) {
        return refuse(
            "only bytes in memory have another dtype: view_dtype stands outside of kernels");
      } else if (node.op->op_class == OpClass::kOpaque) {
        return refuse("an opaque node has a cost and no meaning");
      } else if (node.op->op_class == OpClass::kUpdate) {
        check_update(node);
      }
    }
    const bool reduces_too =
        reduction_ != nullptr && facts_.scan != nullptr && !holds_rows(*facts_.scan);
    if (facts_.scan != nullptr && (matmul_ != nullptr || attention_ != nullptr || reduces_too ||
                                   facts_.collective != nullptr)) {
      return refuse(fmt::format("'{}' goes along its rows alone", facts_.scan->op_name()));
    }
    if (joined > 2 * kMostCatOperands) {
      return refuse(fmt::format("it concatenates {} tensors; expected at most {}", joined,
                                2 * kMostCatOperands));
    }
    if (attention_ != nullptr &&
        (matmul_ != nullptr || reduction_ != nullptr || facts_.collective != nullptr)) {
      return refuse("attention computes tiles of heads, which nothing else in a kernel does");
    }
    if (matmul_ != nullptr && reduction_ != nullptr && !reduces_product_) {
      return refuse("a reduction needs whole rows, a matmul computes tiles of them");
    }
  }

  /// The tensor lies in memory as it is, and the kernel, whose blocks replace elements of it at
  /// any time, reads it neither before nor after.
  void check_update(const Node& node) {
    const auto users = body_.users();
    if (!updated_input(body_, node.outputs[0])) {
      return refuse(fmt::format("'{}' replaces elements of what is not in memory", node.op_name()));
    }
    bool read = !users[node.outputs[0]].empty();
    for (ValueId value = node.inputs[0];;) {
      read = read || users[value].size() > 1;
      if (is_input(value)) break;
      value = body_.node(body_.value(value).producer).inputs[0];
    }
    if (read) {
      refuse(fmt::format("'{}' replaces elements of what the kernel reads", node.op_name()));
    }
    if (!adds_up(node)) return;
    for (std::size_t i = 1; i < node.inputs.size(); ++i) {
      if (is_moved_input(body_, node.inputs[i])) continue;
      return refuse(
          fmt::format("'{}' looks through its operands: they must be in memory", node.op_name()));
    }
  }

  void find_space() {
    if (attention_ != nullptr) {
      facts_.space = shape(attention_->outputs[0]);
    } else if (matmul_ != nullptr && !reduces_product_) {
      facts_.space = shape(matmul_->outputs[0]);
    } else if (facts_.scan != nullptr) {
      find_space_of_scan();
    } else if (reduction_ != nullptr) {
      facts_.space = shape(reduction_->inputs[0]);
      facts_.reduced = row_dims(*reduction_->op, reduction_->attrs, facts_.space.size());
      if (numel(facts_.reduced_dims()) == Expr(1)) row_ = kFull;
      if (!trailing(facts_.reduced)) {
        facts_.rows = Rows::kStrided;
      } else {
        const std::int64_t width = max_numel(facts_.reduced_dims(), body_.symbols());
        facts_.rows = width <= kMaxRow ? Rows::kHeld : Rows::kWide;
      }
    } else if (facts_.collective != nullptr) {
      facts_.space = shape(facts_.collective->outputs[0]);
    } else if (!body_.outputs().empty()) {
      facts_.space = stored_shape(body_.outputs()[0]);
    }
  }

  /// Of what is stored for an output: all of it, or the elements that replace others.
  const Shape& stored_shape(ValueId output) const {
    const Node* update = update_of(body_, output);
    return shape(update == nullptr ? output : update->inputs.back());
  }

  /// A sum is carried along the dim by the thread of its line; a topk looks through whole rows, and
  /// a routing through all that there is.
  void find_space_of_scan() {
    const Node& node = *facts_.scan;
    facts_.space = shape(node.inputs[0]);
    for (const Node& reader : body_.nodes()) {
      if (std::ranges::any_of(reader.inputs, [&](ValueId v) { return is_taken(v); })) {
        return refuse(fmt::format("what '{}' gives is read from memory", node.op_name()));
      }
    }
    if (!node.attrs.contains("dim")) return;
    facts_.reduced = row_dims(*node.op, node.attrs, facts_.space.size());
    facts_.rows = takes_some(node) ? Rows::kHeld : Rows::kStrided;
    if (!takes_some(node)) return;
    if (!trailing(facts_.reduced)) return refuse("a topk goes along the last dim");
    const std::int64_t width = max_numel(facts_.reduced_dims(), body_.symbols());
    if (width > kMaxRow) {
      refuse(fmt::format("a topk of {} elements; a kernel holds rows of up to {}", width, kMaxRow));
    }
  }
  /// Whether it has results of a shape of their own.
  static bool takes_some(const Node& scan) { return scan.outputs.size() > 1; }
  /// Whether it is a topk: its rows may be reduced in front of it.
  static bool holds_rows(const Node& scan) {
    return takes_some(scan) && scan.attrs.contains("dim");
  }
  bool is_taken(ValueId value) const {
    const NodeId producer = body_.value(value).producer;
    return facts_.scan != nullptr && producer >= 0 && &body_.node(producer) == facts_.scan &&
           takes_some(*facts_.scan);
  }

  // --- places ------------------------------------------------------------------------------------

  void place_values() {
    for (ValueId output : body_.outputs()) {
      if (output != made_) ask(output, output_place(output));
    }
    for (std::size_t n = body_.nodes().size(); n-- > 0 && facts_.refusal.empty();) {
      place_operands(body_.nodes()[n]);
    }
  }

  Token output_place(ValueId output) {
    if (is_taken(output)) return kFull;
    const Shape& stored = stored_shape(output);
    if (same_numel(stored, facts_.space)) return kFull;
    if (facts_.rows != Rows::kNone && same_numel(stored, facts_.kept_dims())) return row_;
    const DType dtype = body_.type(output).dtype;
    refuse(fmt::format("it gives {}, the kernel works on {}", TensorType{dtype, stored}.str(),
                       TensorType{dtype, facts_.space}.str()));
    return kUnset;
  }

  /// The value is wanted at this place.
  void ask(ValueId value, Token at) {
    if (is_moved_input(body_, value)) return;
    Token& known = token(value);
    if (known == kUnset) known = at;
    if (known != at) {
      refuse(fmt::format("{} would be computed again at another place", type(value)));
    }
  }
  /// So are all operands of a node.
  void ask_operands(const Node& node, const auto& place_of) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) ask(node.inputs[i], place_of(i));
  }

  /// The place to which `step` of a node leads from `at`.
  Token beyond(Token at, const void* step, std::size_t index) {
    return places_.try_emplace({at, step, index}, static_cast<Token>(places_.size()) + kRow + 1)
        .first->second;
  }

  void place_operands(const Node& node) {
    Token at = kUnset;
    for (ValueId output : node.outputs) {
      if (token(output) == kUnset) continue;
      if (at != kUnset && token(output) != at && node.op->op_class != OpClass::kView) {
        return refuse(fmt::format("'{}' would be computed again at another place", node.op_name()));
      }
      at = token(output);
    }
    switch (node.op->op_class) {
      case OpClass::kReduction:
        return place_reduction(node, at);
      case OpClass::kNorm:
        return place_norm(node, at);
      case OpClass::kMatmul:
        return place_matmul(node, at);
      case OpClass::kAttention:
        if (at != kFull && at != kUnset) return moved_away(node);
        token(node.outputs[0]) = kFull;
        return ask_operands(node, [&](std::size_t i) { return beyond(kFull, &node, i); });
      case OpClass::kScan:
        if (at != kFull && at != kUnset) return moved_away(node);
        token(node.outputs[0]) = kFull;
        return ask(node.inputs[0], kFull);
      case OpClass::kCollective:
        if (node.outputs[0] == made_) return;
        if (at != kFull && at != kUnset) return moved_away(node);
        if (algorithm_of(node) == Algorithm::kPackets) ask(node.inputs[0], kFull);
        return;
      case OpClass::kView:
        return place_view(node);
      case OpClass::kGather:
        return place_gather(node);
      case OpClass::kUpdate:
        // Indices are between the tensor and what replaces its elements.
        for (std::size_t i = 1; i + 1 < node.inputs.size(); ++i) {
          ask(node.inputs[i], update_form(node) == UpdateForm::kEach ? at : beyond(at, &node, i));
        }
        return ask(node.inputs.back(), at);
      default:
        return ask_operands(node, [&](std::size_t i) {
          return broadcast_place(at, shape(node.inputs[i]), shape(node.outputs[0]));
        });
    }
  }

  void moved_away(const Node& node) {
    refuse(fmt::format("'{}' would be computed at other places than its own", node.op_name()));
  }

  /// The place of an operand of a pointwise node.
  Token broadcast_place(Token at, const Shape& operand, const Shape& result) {
    if (operand == result || at == kUnset) return at;
    if (at == kFull && facts_.rows != Rows::kNone && result == facts_.space) {
      Shape kept = facts_.space;
      for (std::size_t d = 0; d < kept.size(); ++d) {
        if (facts_.reduced[d]) kept[d] = 1;
      }
      if (operand == kept) return row_;
    }
    // The elements that an operand takes depend only on the two shapes.
    std::size_t hash = 17;
    for (const Shape* s : {&operand, &result}) {
      for (const Dim& d : *s) hash = hash * 31 + std::hash<std::string>()(d.str());
      hash = hash * 31 + 7;
    }
    return beyond(at, nullptr, hash);
  }

  void place_reduction(const Node& node, Token at) {
    const ValueId x = node.inputs[0];
    const std::vector<bool> reduced = row_dims(*node.op, node.attrs, shape(x).size());
    const bool same =
        facts_.rows == Rows::kStrided
            ? shape(x) == facts_.space && reduced == facts_.reduced
            : trailing(reduced) &&
                  same_numel(select_dims(shape(x), reduced, true), facts_.reduced_dims()) &&
                  same_numel(select_dims(shape(x), reduced, false), facts_.kept_dims());
    if (!same) return refuse("reductions of one kernel go over the same dims");
    if (at != row_ && at != kUnset) {
      return refuse(fmt::format("'{}' would broadcast a reduced value along rows", node.op_name()));
    }
    token(node.outputs[0]) = row_;
    ask(x, kFull);
    // Of a sample: one element for each row.
    for (std::size_t i = 1; i < node.inputs.size(); ++i) ask(node.inputs[i], row_);
  }

  void place_norm(const Node& node, Token at) {
    const Shape& x = shape(node.inputs[0]);
    if (facts_.rows == Rows::kStrided || !trailing(row_dims(*node.op, node.attrs, x.size())) ||
        !same_numel({x.back()}, facts_.reduced_dims()) || !same_numel(x, facts_.space)) {
      return refuse("reductions of one kernel go over the same dims");
    }
    if (at != kFull && at != kUnset) return moved_away(node);
    for (ValueId output : node.outputs) token(output) = kFull;
    ask_operands(node, [&](std::size_t i) {
      return shape(node.inputs[i]) == x ? kFull : beyond(kFull, nullptr, 0);
    });
  }

  void place_matmul(const Node& node, Token at) {
    if (at != kFull && at != kUnset) return moved_away(node);
    token(node.outputs[0]) = kFull;
    const std::size_t first = first_matrix(node);
    if (node.op->matmul == Matmul::kGrouped && !is_moved_input(body_, node.inputs[2])) {
      return refuse("a grouped matmul reads its offsets from memory");
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const bool is_matrix = i == first || i == first + 1;
      // Both matmuls of a pair read the first operand at the same place.
      const void* step = i == first ? nullptr : &node;
      ask(node.inputs[i], beyond(kFull, step, 1 + i));
      if (is_matrix && reads_matmul(node.inputs[i])) {
        refuse("a matmul reads its operands from memory");
      }
    }
  }

  /// Whether a value depends on a matmul of this body.
  bool reads_matmul(ValueId value) const {
    std::set<ValueId> seen;
    std::vector<ValueId> next{value};
    while (!next.empty()) {
      const ValueId last = next.back();
      next.pop_back();
      if (is_input(last) || !seen.insert(last).second) continue;
      const Node& node = body_.node(body_.value(last).producer);
      if (is_matmul(node)) return true;
      next.insert(next.end(), node.inputs.begin(), node.inputs.end());
    }
    return false;
  }

  void place_view(const Node& node) {
    for (std::size_t r = 0; r < node.outputs.size(); ++r) {
      const Token at = token(node.outputs[r]);
      if (at == kUnset) continue;
      const bool flat = node.op->view == View::kFlat;
      ask_operands(node, [&](std::size_t i) {
        return flat && (at == kFull || at == kRow) ? at : beyond(at, &node, 100 * r + i);
      });
    }
  }

  void place_gather(const Node& node) {
    const Token at = token(node.outputs[0]);
    const bool turns = !takes_indices(node) && !is_moved_input(body_, node.inputs[0]);
    if (turns && (at != kFull || !is_norm_of_inputs(node.inputs[0]))) {
      return refuse(
          "rotary_embedding reads each element twice: its operand must be in memory, or a norm of "
          "what is there");
    }
    ask_operands(node,
                 [&](std::size_t i) { return turns && i == 0 ? kFull : beyond(at, &node, i); });
  }

  /// Whether an operand of a rotary_embedding is a norm, perhaps in other dims, of inputs. So its
  /// other element has the same row, whose sums are known, and is the norm of another one in
  /// memory.
  bool is_norm_of_inputs(ValueId rotated) const {
    ValueId value = rotated;
    while (!is_input(value)) {
      const Node& node = body_.node(body_.value(value).producer);
      if (node.op->op_class == OpClass::kNorm) {
        const Dim &row = shape(node.inputs[0]).back(), &head = shape(rotated).back();
        return row.is_constant() && head.is_constant() && row.constant() % head.constant() == 0 &&
               std::ranges::all_of(node.inputs,
                                   [&](ValueId input) { return is_moved_input(body_, input); });
      }
      if (node.op->op_class != OpClass::kView || node.op->view != View::kFlat) return false;
      value = node.inputs[0];
    }
    return false;
  }

  const Graph& body_;
  BodyFacts facts_;
  const Node* reduction_ = nullptr;
  const Node* matmul_ = nullptr;
  const Node* attention_ = nullptr;
  bool reduces_product_ = false;  ///< the collective's operand is what the kernel's matmul computes
  ValueId made_ = -1;             ///< what is in memory before all places but its own count
  Token row_ = kRow;              ///< kFull where a row is one element
  std::vector<Token> tokens_;
  std::map<std::tuple<Token, const void*, std::size_t>, Token> places_;
};

}  // namespace

bool is_reduction(const Node& node) {
  return node.op->op_class == OpClass::kReduction || node.op->op_class == OpClass::kNorm;
}

std::vector<bool> computed_from(const Graph& body, ValueId value) {
  std::vector<bool> before(body.values().size(), false);
  before[value] = true;
  for (std::size_t n = body.nodes().size(); n-- > 0;) {
    const Node& node = body.nodes()[n];
    if (!before[node.outputs[0]]) continue;
    for (ValueId input : node.inputs) before[input] = true;
  }
  return before;
}

std::string refuse_recomputed(const Graph& body, const Node& collective) {
  const std::vector<bool> before = computed_from(body, collective.inputs[0]);
  for (const Node& node : body.nodes()) {
    if (before[node.outputs[0]] || &node == &collective) continue;
    for (ValueId input : node.inputs) {
      if (is_moved_input(body, input) || !before[input]) continue;
      return fmt::format("{} would be computed again after the collective", body.type(input).str());
    }
  }
  return "";
}

std::size_t first_matrix(const Node& matmul) { return matmul.op->matmul == Matmul::kAdd ? 1 : 0; }

bool is_matmul(const Node& node) { return node.op->op_class == OpClass::kMatmul; }

std::size_t BodyFacts::output_apart() const {
  const auto& outputs = body.outputs();
  return static_cast<std::size_t>(std::ranges::find(outputs, apart) - outputs.begin());
}
int BodyFacts::number_of(const Node& node) const {
  return nodes_before + static_cast<int>(&node - body.nodes().data());
}
Shape BodyFacts::kept_dims() const { return select_dims(space, reduced, false); }
Shape BodyFacts::reduced_dims() const { return select_dims(space, reduced, true); }
const std::string& BodyFacts::group() const {
  return collective == nullptr ? body.groups().begin()->first
                               : *collective->attr<std::string>("group");
}
std::int64_t BodyFacts::world() const { return body.groups().at(group()).size; }
const TensorType& BodyFacts::operand() const { return body.type(collective->inputs[0]); }

bool is_moved_input(const Graph& body, ValueId value) {
  const NodeId producer = body.value(value).producer;
  if (producer < 0) return true;
  const Node& node = body.node(producer);
  if (node.inputs.empty()) return true;  // a constant
  if (node.op->op_class != OpClass::kView) return false;
  return std::ranges::all_of(node.inputs, [&](ValueId v) { return is_moved_input(body, v); });
}

BodyFacts analyze(const Graph& body) { return Analysis(body).run(); }

}  // namespace braid
