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
  }

  Graph run() {
    values_.push_back(input(matrix()));
    const int count = 1 + pick(12);
    for (int i = 0; i < count; ++i) step();
    // What nobody reads is an output; so is something in the middle now and then.
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
  Shape matrix() { return {Dim::symbol("T"), width_}; }

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
  ValueId norm(ValueId x) { return op("rms_norm", {x, input({width_})}, {{"eps", 1e-5}}); }
  /// In (0, 1], not tiny.
  ValueId positive() {
    const ValueId bounded = op("rms_norm", {any()}, {{"eps", 1e-5}});
    return op("exp", {op("neg", {op("relu", {bounded})})});
  }
  ValueId transpose(ValueId x) {
    return op("transpose", {x}, {{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{1}}});
  }

  void step() {
    switch (pick(14)) {
      case 0:
        return add(op("add", {any(), pick(2) == 0 ? input(matrix()) : input({width_})}));
      case 1:
        return add(op("sub", {any(), input(matrix())}));
      case 2:
        return add(op("mul", {norm(any()), input({width_})}));
      case 3:
        return add(op("div", {any(), positive()}));
      case 4: {
        const char* names[] = {"silu", "gelu", "relu"};
        return add(op(names[pick(3)], {any()}));
      }
      case 5:
        return add(op("mul", {any(), op("rsqrt", {positive()})}));
      case 6:
        return add(norm(any()));
      case 7: {
        const ValueId x = any();
        const NodeId id = graph_.add_node("", "add_rms_norm2",
                                          {x, input(matrix()), input({width_})}, {{"eps", 1e-5}});
        add(graph_.node(id).outputs[0]);
        return add(graph_.node(id).outputs[1]);
      }
      case 8: {
        // Two matmuls through another width; the weight of the first may be read transposed.
        const std::int64_t inner = 1 + pick(96);
        const ValueId x = norm(any());
        const ValueId w = pick(2) == 0 ? input({width_, inner}) : transpose(input({inner, width_}));
        const ValueId h = op("mm", {x, w});
        return add(op("mm", {pick(2) == 0 ? op("silu", {h}) : h, input({inner, width_})}));
      }
      case 9: {
        const ValueId c = op("all_reduce", {any()},
                             {{"reduce_op", std::string("sum")}, {"group", std::string("tp")}});
        return add(op("wait_tensor", {c}));
      }
      case 10: {
        const char* names[] = {"sum", "amax"};
        const ValueId s = op(names[pick(2)], {positive()},
                             {{"dim", std::vector<std::int64_t>{1}}, {"keepdim", true}});
        return add(op("mul", {any(), s}));
      }
      case 11: {
        const std::vector<std::int64_t> dims[] = {{0}, {1}, {0, 1}, {}};
        outputs_.push_back(op(pick(2) == 0 ? "sum" : "amax", {positive()},
                              {{"dim", dims[pick(4)]}, {"keepdim", pick(2) == 0}}));
        return;
      }
      case 12: {
        const ValueId flat = op("view", {any()}, {{"shape", Shape{Dim::symbol("T") * width_}}});
        return add(op("view", {flat}, {{"shape", matrix()}}));
      }
      default: {
        const DType other = dtype_ == DType::kF32 ? DType::kBF16 : DType::kF32;
        const ValueId up = op("to", {any()}, {{"dtype", other}});
        return add(op("to", {op("relu", {up})}, {{"dtype", dtype_}}));
      }
    }
  }
  void add(ValueId v) { values_.push_back(v); }

  std::mt19937_64 random_;
  Graph graph_;
  std::int64_t world_ = 1;
  std::int64_t width_ = 1;
  DType dtype_ = DType::kF32;
  std::vector<ValueId> values_;
  std::vector<ValueId> outputs_;
};

}  // namespace

Graph random_graph(std::uint64_t seed) { return Generator(seed).run(); }

}  // namespace braid::testing
