#include "run/random_graph.h"

#include <random>
#include <string>
#include <vector>

namespace braid::testing {
namespace {

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed), graph_("random") {
    world_ = 1 + pick(4);
    graph_.add_symbol("T", {1, 40, 1});
    graph_.add_group("tp", {world_, true, {}});
    const DType floats[] = {DType::kF32, DType::kBF16, DType::kF16};
    dtype_ = floats[pick(3)];
    const std::int64_t widths[] = {1, 5, 16, 24, 64, 100};
    width_ = widths[pick(6)];
    const std::int64_t rows[] = {1, 2, 7, 33};
    if (pick(4) == 0) rows_ = rows[pick(4)];
  }

  Graph run() {
    values_.push_back(input(matrix()));
    const int count = 1 + pick(6);
    for (int i = 0; i < count; ++i) step();
    // Values without readers are outputs, and so is a value in the middle now and then.
    const auto users = graph_.users();
    for (ValueId v : values_) {
      const bool computed = graph_.value(v).producer >= 0;
      if ((computed && users[static_cast<std::size_t>(v)].empty()) || pick(6) == 0)
        outputs_.push_back(v);
    }
    if (outputs_.empty()) outputs_.push_back(values_.back());
    for (ValueId v : outputs_) graph_.add_output(v);
    return std::move(graph_);
  }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  Shape matrix() { return {rows_, width_}; }

  ValueId input(Shape shape, bool per_rank = true) {
    GraphInput in{"in" + std::to_string(graph_.inputs().size()), {dtype_, std::move(shape)}};
    in.per_rank = per_rank && pick(2) == 0;
    in.kind = pick(2) == 0 ? InputKind::kParameter : InputKind::kActivation;
    return graph_.add_input(in);
  }
  ValueId op(const std::string& name, std::vector<ValueId> inputs, Attrs attrs = {},
             int result = 0) {
    const NodeId id = graph_.add_node("", name, std::move(inputs), std::move(attrs));
    return graph_.node(id).outputs[static_cast<std::size_t>(result)];
  }
  /// A value of shape [T, width] in the graph's dtype.
  ValueId any() {
    return values_[static_cast<std::size_t>(pick(static_cast<int>(values_.size())))];
  }
  /// Near one. A norm of single elements would make signs of them, and sums of signs cancel.
  ValueId norm(ValueId x) {
    if (width_ == 1) return op("tanh", {x});
    return op("rms_norm", {x, input({width_})}, {{"eps", 1e-5}});
  }
  /// In (0, 1], not tiny.
  ValueId positive() { return op("exp", {op("neg", {op("relu", {norm(any())})})}); }
  ValueId transpose(ValueId x) {
    return op("transpose", {x}, {{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{1}}});
  }

  ValueId full(double value) { return op("full", {}, {{"value", value}, {"dtype", dtype_}}); }
  ValueId view(ValueId x, Shape shape) { return op("view", {x}, {{"shape", std::move(shape)}}); }

  void step() {
    int kind = pick(8);
    if (width_ == 1 && (kind == 3 || kind == 5)) kind = 0;
    switch (kind) {
      case 0:
      case 1:
        return pointwise_step();
      case 2:
        return reduction_step();
      case 3:
        return matmul_step();
      case 4:
        return movement_step();
      case 5:
        return heads_step();
      case 6: {
        const ValueId c = op("all_reduce", {any()},
                             {{"reduce_op", std::string("sum")}, {"group", std::string("tp")}});
        return add(op("wait_tensor", {c}));
      }
      default: {
        const DType other = dtype_ == DType::kF32 ? DType::kBF16 : DType::kF32;
        const ValueId up = op("to", {any()}, {{"dtype", other}});
        return add(op("to", {op("relu", {up})}, {{"dtype", dtype_}}));
      }
    }
  }

  void pointwise_step() {
    switch (pick(10)) {
      case 0:
        return add(op("add", {any(), pick(2) == 0 ? input(matrix()) : input({width_})}));
      case 1:
        return add(op("sub", {any(), input(matrix())}));
      case 2:
        return add(op("mul", {norm(any()), pick(2) == 0 ? input({width_}) : full(0.75)}));
      case 3:
        return add(op("div", {any(), positive()}));
      case 4: {
        const char* names[] = {"silu", "relu", "tanh", "sigmoid", "abs", "erf"};
        return add(op(names[pick(6)], {any()}));
      }
      case 5:
        return add(
            op("gelu", {any()}, {{"approximate", std::string(pick(2) == 0 ? "none" : "tanh")}}));
      case 6: {
        const char* names[] = {"rsqrt", "sqrt"};
        return add(op("mul", {any(), op(names[pick(2)], {positive()})}));
      }
      case 7: {
        const char* names[] = {"maximum", "minimum"};
        const ValueId x = op(names[pick(2)], {any(), input({width_})});
        return add(op("clamp", {x}, {{"min", -1.5}, {"max", 1.5}}));
      }
      case 8: {
        // Compared are inputs: a rounding that falls the other way would choose the other side.
        const char* names[] = {"lt", "le", "gt", "ge", "eq", "ne"};
        ValueId condition = op(names[pick(6)], {input(matrix()), input({width_})});
        if (pick(2) == 0) condition = op("logical_not", {condition});
        return add(op("where", {condition, any(), any()}));
      }
      default:
        return add(op("pow", {op("add", {positive(), full(1)}), input({width_})}));
    }
  }

  void reduction_step() {
    const int kind = pick(6);
    if (width_ == 1 && kind < 4) return add(norm(any()));
    switch (kind) {
      case 0:
        return add(norm(any()));
      case 1: {
        const char* names[] = {"add_rms_norm", "add_rms_norm2"};
        const int which = pick(2);
        const NodeId id = graph_.add_node(
            "", names[which], {any(), input(matrix()), input({width_})}, {{"eps", 1e-5}});
        for (ValueId result : std::vector<ValueId>(graph_.node(id).outputs)) add(result);
        return;
      }
      case 2:
        return add(op("softmax", {any()}));
      case 3:
        return add(op("layer_norm", {any(), input({width_}), input({width_})}, {{"eps", 1e-2}}));
      case 4: {
        const char* names[] = {"sum", "amax", "mean", "amin"};
        const ValueId s = op(names[pick(4)], {positive()},
                             {{"dim", std::vector<std::int64_t>{1}}, {"keepdim", true}});
        return add(op("mul", {any(), s}));
      }
      default: {
        const std::vector<std::int64_t> dims[] = {{0}, {1}, {0, 1}, {}};
        const char* names[] = {"sum", "amax", "mean", "amin"};
        outputs_.push_back(
            op(names[pick(4)], {positive()}, {{"dim", dims[pick(4)]}, {"keepdim", pick(2) == 0}}));
        return;
      }
    }
  }

  /// Two matmuls through another width; the weight of the first may be read transposed, and be one
  /// of a pair.
  void matmul_step() {
    const std::int64_t inner = 1 + pick(96);
    const ValueId x = norm(any());
    const auto weight = [&] {
      return pick(2) == 0 ? input({width_, inner}) : transpose(input({inner, width_}));
    };
    ValueId h = pick(3) == 0 ? op("addmm", {input({inner}), x, weight()}) : op("mm", {x, weight()});
    if (pick(2) == 0) h = op("silu", {h});
    if (pick(3) == 0) h = op("mul", {h, op("mm", {x, weight()})});
    add(op("mm", {h, input({inner, width_})}));
  }

  void movement_step() {
    const Attrs last{{"dim", std::int64_t{1}}};
    switch (pick(6)) {
      case 0: {
        const ValueId flat = view(any(), {rows_ * width_});
        return add(view(pick(2) == 0 ? op("relu", {flat}) : flat, matrix()));
      }
      case 1: {
        if (width_ < 2) return;
        Attrs parts = last;
        parts["split_size"] = std::vector<std::int64_t>{width_ / 2, width_ - width_ / 2};
        const ValueId x = any();
        const ValueId low = op("split", {x}, parts, 0);
        const ValueId high = op("split", {x}, parts, 1);
        return add(op("cat", {op("neg", {high}), low}, last));
      }
      case 2:
        return add(transpose(op("tanh", {transpose(any())})));
      case 3: {
        Attrs range = last;
        range["start"] = std::int64_t{width_ > 1 ? pick(2) : 0};
        range["step"] = std::int64_t{1 + pick(2)};
        outputs_.push_back(op("slice", {any()}, range));
        return;
      }
      case 4: {
        GraphInput in{"in" + std::to_string(graph_.inputs().size()), {DType::kI64, {rows_}}};
        const ValueId rows = graph_.add_input(in);
        return add(op("add", {any(), op("embedding", {input({8, width_}), rows})}));
      }
      default: {
        if (width_ % 2 != 0) return;
        const Shape half{rows_, width_ / 2};
        return add(op("rotary_embedding", {any(), input(half), input(half)},
                      {{"interleaved", pick(2) == 0}}));
      }
    }
  }

  /// Attention's scores and sums over heads that lie side by side.
  void heads_step() {
    const std::int64_t heads = width_ % 4 == 0 ? 4 : 1;
    const auto split = [&](ValueId x) {
      return op("transpose", {view(x, {rows_, heads, width_ / heads})},
                {{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{1}}});
    };
    const ValueId q = split(norm(any()));
    const ValueId k = split(norm(any()));
    const ValueId v = split(any());
    const ValueId scores =
        op("bmm", {q, op("permute", {k}, {{"dims", std::vector<std::int64_t>{0, 2, 1}}})});
    const ValueId scaled = op("mul", {scores, full(0.25)});
    const ValueId mixed = op("matmul", {op("softmax", {scaled}), v});
    add(view(op("permute", {mixed}, {{"dims", std::vector<std::int64_t>{1, 0, 2}}}), matrix()));
  }

  void add(ValueId v) { values_.push_back(v); }

  std::mt19937_64 random_;
  Graph graph_;
  std::int64_t world_ = 1;
  std::int64_t width_ = 1;
  Dim rows_ = Dim::symbol("T");
  DType dtype_ = DType::kF32;
  std::vector<ValueId> values_;
  std::vector<ValueId> outputs_;
};

}  // namespace

Graph random_graph(std::uint64_t seed) { return Generator(seed).run(); }

}  // namespace braid::testing
