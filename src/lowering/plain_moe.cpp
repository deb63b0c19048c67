// Experts as four kernels: the routing; gate and up of all rows with what follows them; down; and
// the sum of each token's rows in the order of its choices, each row read where it lies. Where
// columns of gate and up are neighbours in memory, they are one matmul, and what follows is a fifth
// kernel.

#include "ir/attributes.h"
#include "ir/moe.h"
#include "ir/op_registry.h"
#include "lowering/plain_writer.h"

namespace braid {
namespace {

/// Writes one moe_experts. What follows a matmul is in f32, and rounded once.
class Experts {
 public:
  explicit Experts(Writer& w)
      : w_(w), dtype_(w.type(0).dtype), on_input_(std::get<bool>(*w.attr("weights_on_input"))) {}

  void write() {
    const std::int64_t experts = w_.type(kMoeGateUp).shape[0].constant();
    routed_ = w_.add_results("moe_routing", 4, {w_.operand(kMoeIndices)}, {{"experts", experts}});
    const ValueId rows =
        select("rows", on_input_ ? weighted_input() : w_.operand(0), kRoutedTokens);
    const std::vector<ValueId> both = gate_and_up(rows);
    const ValueId hidden =
        narrow("hidden", is_clamped() ? clamped(both[0], both[1]) : swiglu(both[0], both[1]));
    ValueId made = product("down", hidden, w_.operand(kMoeDown));
    if (kMoeDownBias < w_.operands()) {
      const ValueId bias = select("down_bias", w_.operand(kMoeDownBias), kRoutedExperts);
      made = narrow("down", map("add", {wide(made), wide(bias)}));
    }
    finish(select("chosen", made, kRoutedPlaces));
  }

 private:
  [[nodiscard]] bool is_clamped() const {
    return std::get<std::string>(*w_.attr("activation")) == kClampedSwiglu;
  }

  ValueId map(const char* op, std::vector<ValueId> inputs, Attrs attrs = {}) {
    return w_.add(op, op, std::move(inputs), std::move(attrs));
  }
  ValueId wide(ValueId x) {
    return dtype_ == DType::kF32 ? x : map("to", {x}, {{"dtype", DType::kF32}});
  }
  ValueId narrow(const char* name, ValueId x) {
    return dtype_ == DType::kF32 ? x : w_.add(name, "to", {x}, {{"dtype", dtype_}});
  }
  ValueId number(double value) {
    return map("full", {}, {{"value", value}, {"dtype", DType::kF32}});
  }
  ValueId select(const char* name, ValueId from, MoeRouted by) {
    return w_.add(name, "index_select", {from, routed_[by]}, {{"dim", std::int64_t{0}}});
  }
  ValueId product(const char* name, ValueId rows, ValueId weights) {
    return w_.add(name, "_grouped_mm", {rows, weights, routed_[kRoutedEnds]}, {});
  }
  /// The weights in f32, each for all elements of what it multiplies.
  ValueId weights(Shape shape) {
    Shape column = shape;
    column.back() = 1;
    ValueId all =
        w_.add("weights", "view", {w_.operand(kMoeWeights)}, {{"shape", std::move(column)}});
    all = w_.add("weights", "expand", {all}, {{"shape", std::move(shape)}});
    return w_.type(kMoeWeights).dtype == DType::kF32 ? all
                                                     : map("to", {all}, {{"dtype", DType::kF32}});
  }
  [[nodiscard]] const Dim& tokens() const { return w_.type(0).shape[0]; }

  ValueId weighted_input() {
    return narrow("weighted", map("mul", {wide(w_.operand(0)), weights(w_.type(0).shape)}));
  }

  [[nodiscard]] bool in_turn() const { return std::get<bool>(*w_.attr("interleaved")); }

  /// The gate, or up: its columns of what has both.
  ValueId columns(ValueId both, const Shape& shape, std::int64_t which) {
    const Dim inner = w_.type(kMoeDown).shape[1];
    Attrs part{{"dim", static_cast<std::int64_t>(shape.size()) - 1}};
    part.emplace("start", in_turn() ? AttrValue(which) : as_bound(inner * which));
    part.emplace("end", as_bound(in_turn() ? shape.back() : inner * (which + 1)));
    if (in_turn()) part.emplace("step", std::int64_t{2});
    return w_.add(which == 0 ? "gate" : "up", "slice", {both}, std::move(part));
  }
  ValueId columns_of(std::size_t operand, std::int64_t which) {
    return columns(w_.operand(operand), w_.type(operand).shape, which);
  }

  /// Whether columns of gate and up are neighbours in memory: then threads that load 16 bytes load
  /// both.
  [[nodiscard]] bool are_neighbours() const {
    if (!in_turn()) return false;
    const Node* view = w_.producer(kMoeGateUp);
    return view == nullptr || view->op->view != View::kPermute ||
           permutation(view->op_name(), view->attrs, 3).back() == 2;
  }

  /// Of all rows, with biases; in f32.
  std::vector<ValueId> gate_and_up(ValueId rows) {
    std::vector<ValueId> results;
    ValueId both = -1;
    if (are_neighbours()) both = product("both", rows, w_.operand(kMoeGateUp));
    for (const std::int64_t which : {0, 1}) {
      const char* name = which == 0 ? "gate" : "up";
      ValueId made = -1;
      if (both >= 0) {
        const Dim& choices = w_.type(kMoeIndices).shape[1];
        made = columns(both, {tokens() * choices.constant(), w_.type(kMoeGateUp).shape[2]}, which);
      } else {
        made = product(name, rows, columns_of(kMoeGateUp, which));
      }
      made = wide(made);
      if (kMoeGateUpBias < w_.operands()) {
        const ValueId bias = select("bias", columns_of(kMoeGateUpBias, which), kRoutedExperts);
        made = map("add", {made, wide(bias)});
      }
      results.push_back(made);
    }
    return results;
  }

  ValueId swiglu(ValueId gate, ValueId up) { return map("mul", {map("silu", {gate}), up}); }
  ValueId clamped(ValueId gate, ValueId up) {
    gate = map("clamp", {gate}, {{"max", kSwigluLimit}});
    up = map("clamp", {up}, {{"min", -kSwigluLimit}, {"max", kSwigluLimit}});
    const ValueId share = map("sigmoid", {map("mul", {gate, number(kSwigluAlpha)})});
    return map("mul", {map("add", {up, number(1)}), map("mul", {gate, share})});
  }

  void finish(ValueId chosen) {
    const Dim& choices = w_.type(kMoeIndices).shape[1];
    const Dim& width = w_.result().shape[1];
    ValueId made = w_.add("chosen", "view", {chosen}, {{"shape", Shape{tokens(), choices, width}}});
    made = wide(made);
    if (!on_input_) made = map("mul", {made, weights({tokens(), choices, width})});
    const Attrs along{{"dim", std::vector<std::int64_t>{1}}, {"keepdim", false}};
    if (dtype_ == DType::kF32) return w_.finish("sum", {made}, along);
    w_.finish("to", {map("sum", {made}, along)}, {{"dtype", dtype_}});
  }

  Writer& w_;
  DType dtype_;
  bool on_input_;
  std::vector<ValueId> routed_;
};

}  // namespace

void write_experts(Writer& writer) { Experts(writer).write(); }

}  // namespace braid
