#include "lowering/random_tp_graph.h"

#include <random>
#include <string>
#include <vector>

namespace braid::testing {
namespace {

constexpr std::int64_t kHidden = 8;

class Generator {
 public:
  Generator(std::uint64_t seed, int world, bool near_misses)
      : random_(seed), world_(world), near_misses_(near_misses) {
    graph_.add_group("tp", {world, true, {}});
    graph_.add_group("other", {world, true, {}});
    graph_.add_symbol("t", {1, 4});
    tokens_ = pick(3) == 0 ? Dim::symbol("t") * world : Dim(world * (1 + pick(3)));
    if (miss(8)) tokens_ = world * 2 + 1;  // does not divide
  }

  Graph run() {
    stream_ = input({tokens_, kHidden}, false);
    residual_ = stream_;
    const int blocks = 1 + pick(3);
    for (int i = 0; i < blocks; ++i) {
      switch (pick(4)) {
        case 0:
          gather_matmul();
          break;
        case 1:
          matmul_scatter();
          break;
        default:
          norm_block();
          break;
      }
    }
    output(stream_);
    if (pick(2) == 0) output(residual_);
    for (ValueId value : outputs_) graph_.add_output(value);
    return std::move(graph_);
  }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  /// One time in n, in a graph of near misses.
  bool miss(int n) { return near_misses_ && pick(n) == 0; }
  std::string group() { return miss(6) ? "other" : "tp"; }

  ValueId input(Shape shape, bool per_rank) {
    return graph_.add_input({"in" + std::to_string(graph_.inputs().size()),
                             {DType::kF32, std::move(shape)},
                             InputKind::kActivation,
                             per_rank});
  }
  const Node& node(const char* op, std::vector<ValueId> inputs, Attrs attrs = {}) {
    return graph_.node(graph_.add_node("", op, std::move(inputs), std::move(attrs)));
  }
  ValueId op(const char* name, std::vector<ValueId> inputs, Attrs attrs = {}) {
    return node(name, std::move(inputs), std::move(attrs)).outputs[0];
  }
  ValueId wait(ValueId value) { return op("wait_tensor", {value}); }
  void output(ValueId value) { outputs_.push_back(value); }
  const Shape& shape(ValueId value) const { return graph_.type(value).shape; }
  ValueId view(ValueId x, Shape to) {
    const char* spelling[] = {"view", "reshape", "_unsafe_view"};
    return op(spelling[pick(3)], {x}, {{"shape", std::move(to)}});
  }
  ValueId weight(Dim rows, std::int64_t columns) { return input({rows, columns}, true); }

  /// Something else reads the value.
  void disturb(ValueId value) {
    if (miss(6)) output(op("neg", {value}));
    if (miss(10)) output(value);
  }
  /// A graph input is overwritten here.
  void mutate(ValueId target) {
    if (graph_.value(target).producer < 0 && miss(3)) {
      op("copy_", {target, op("full", {},
                              {{"value", 0.5}, {"dtype", DType::kF32}, {"shape", shape(target)}})});
    }
  }

  // --- all_reduce -> norm, with a residual stream ----------------------------------------------

  ValueId all_reduce(ValueId x) {
    const ValueId sum =
        wait(op("all_reduce", {x},
                {{"reduce_op", std::string(miss(6) ? "max" : "sum")}, {"group", group()}}));
    disturb(sum);
    return sum;
  }

  void norm_block() {
    const Attrs eps{{"eps", 1e-5}};
    ValueId partial = op("mm", {stream_, weight(kHidden, kHidden)});
    ValueId sum = all_reduce(partial);
    if (miss(8)) sum = view(view(sum, {1, tokens_, kHidden}), {tokens_, kHidden});
    const ValueId g = input({kHidden}, false);
    const ValueId other = miss(5) ? input({tokens_, kHidden}, false) : residual_;
    switch (pick(4)) {
      case 0:
        stream_ = op("rms_norm", {sum, g}, eps);
        break;
      case 1:
        residual_ = op("add", pick(2) == 0 ? std::vector{sum, other} : std::vector{other, sum});
        disturb(residual_);
        stream_ = op("rms_norm", {residual_, g}, eps);
        break;
      case 2:
        stream_ = op("add_rms_norm", {sum, other, g}, eps);
        break;
      default: {
        const Node norm =
            node("add_rms_norm2",
                 pick(2) == 0 ? std::vector{sum, other, g} : std::vector{other, sum, g}, eps);
        stream_ = norm.outputs[0];
        residual_ = norm.outputs[1];
        disturb(residual_);
      }
    }
    disturb(stream_);
  }

  // --- all_gather -> matmul --------------------------------------------------------------------

  Attrs along(std::int64_t dim, const std::string& of) {
    Attrs attrs{{"group", of}};
    if (dim != 0 || pick(2) == 0) attrs.insert_or_assign("dim", dim);
    return attrs;
  }

  /// Gathers along `dim`, as a node or in the spelling of an export.
  ValueId gather(ValueId x, std::int64_t dim) {
    const std::string of = group();
    if (dim == 0 || pick(2) == 0) return wait(op("all_gather_into_tensor", {x}, along(dim, of)));
    const ValueId stacked = wait(op("all_gather_into_tensor", {x}, {{"group", of}}));
    std::vector<ValueId> parts =
        node("split", {stacked}, {{"split_size", std::vector{shape(x)[0].constant()}}}).outputs;
    if (miss(3)) std::swap(parts.front(), parts.back());
    if (miss(4)) parts.back() = parts.front();
    if (miss(5)) parts.pop_back();
    return op("cat", std::move(parts), {{"dim", dim}});
  }

  void gather_matmul() {
    const bool batched = pick(2) == 0;
    const std::int64_t rows = 2 * (1 + pick(2));
    const ValueId shard = input(batched ? Shape{2, rows, kHidden} : Shape{rows, kHidden}, true);
    mutate(shard);
    const int last = batched ? 2 : 1;
    const ValueId whole = gather(shard, miss(4) ? last : pick(last));
    disturb(whole);
    mutate(shard);
    const int count = 1 + pick(3);
    for (int i = 0; i < count; ++i) {
      ValueId b = weight(shape(whole).back(), 4 + 4 * pick(2));
      if (miss(5)) b = op("mul", {b, op("sum", {whole})});  // depends on the gather
      if (!batched) {
        const bool right = miss(5);
        output(right ? op("mm", {weight(4, shape(whole)[0].constant()), whole})
                     : op("mm", {whole, b}));
        continue;
      }
      const Dim merged = shape(whole)[0].constant() * shape(whole)[1].constant();
      ValueId flat = view(whole, {merged, shape(whole)[2]});
      if (miss(6))
        flat = view(whole, {shape(whole)[1], shape(whole)[0] * shape(whole)[2].constant()});
      if (shape(flat).back() != shape(b)[0]) b = weight(shape(flat).back(), 4);
      const ValueId product = op("mm", {flat, b});
      disturb(product);
      const Dim n = shape(b)[1];
      output(shape(flat) == Shape{merged, shape(whole)[2]}
                 ? view(product, {shape(whole)[0], shape(whole)[1], n})
                 : product);
    }
  }

  // --- matmul -> reduce_scatter ----------------------------------------------------------------

  ValueId scatter(ValueId x, std::int64_t dim) {
    const char* operations[] = {"sum", "avg", "max"};
    const Attrs reduce{{"reduce_op", std::string(operations[miss(4) ? 2 : pick(2)])},
                       {"group", group()}};
    if (dim == 0 || pick(2) == 0) {
      Attrs attrs = reduce;
      attrs.insert_or_assign("dim", dim);
      return wait(op("reduce_scatter_tensor", {x}, attrs));
    }
    const std::int64_t size = shape(x)[static_cast<std::size_t>(dim)].constant() / world_;
    std::vector<ValueId> parts =
        node("split", {x}, {{"split_size", std::vector{size}}, {"dim", dim}}).outputs;
    if (miss(3)) std::swap(parts.front(), parts.back());
    if (miss(4)) parts.back() = parts.front();
    return wait(op("reduce_scatter_tensor", {op("cat", std::move(parts))}, reduce));
  }

  void matmul_scatter() {
    const bool batched = pick(2) == 0;
    const std::int64_t rows = world_ * (1 + pick(2));
    const ValueId a = input(batched ? Shape{world_, rows, kHidden} : Shape{rows, kHidden}, true);
    mutate(a);
    const std::int64_t columns = world_ * 2;
    const ValueId b = weight(kHidden, columns);
    if (!batched) {
      ValueId product = op("mm", {a, b});
      disturb(product);
      mutate(a);
      output(scatter(product, pick(2)));
      return;
    }
    const ValueId product = op("mm", {view(a, {rows * world_, kHidden}), b});
    disturb(product);
    const ValueId shaped =
        miss(5) ? view(product, {rows, world_, columns}) : view(product, {world_, rows, columns});
    disturb(shaped);
    output(scatter(shaped, pick(3)));
  }

  std::mt19937_64 random_;
  int world_;
  bool near_misses_;
  Graph graph_{"random_tp"};
  Dim tokens_;
  ValueId stream_ = -1, residual_ = -1;
  std::vector<ValueId> outputs_;
};

}  // namespace

Graph random_tp_graph(std::uint64_t seed, int world, bool near_misses) {
  return Generator(seed, world, near_misses).run();
}

}  // namespace braid::testing
