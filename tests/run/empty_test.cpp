// Extents that are 0 in some runs: equal to the reference, before and after runs that have
// elements.

#include <gtest/gtest.h>

#include <functional>

#include "run/run_graph.h"

namespace braid {
namespace {

constexpr DType kF32 = DType::kF32, kI64 = DType::kI64;
const Dim kT = Dim::symbol("T");

Attrs dims(std::int64_t dim) { return {{"dim", std::vector<std::int64_t>{dim}}}; }
Attrs along(std::int64_t dim) { return {{"dim", dim}}; }

/// For two ranks, over T in [0, 24].
class Build {
 public:
  Build() {
    graph_.add_symbol("T", {0, 24});
    graph_.add_group("tp", {2, true, {}});
  }
  ValueId in(DType dtype, Shape shape, InputKind kind = InputKind::kActivation) {
    return graph_.add_input(
        {"in" + std::to_string(graph_.inputs().size()), {dtype, std::move(shape)}, kind, true});
  }
  ValueId op(const char* op, std::vector<ValueId> inputs, Attrs attrs = {}) {
    return graph_.node(graph_.add_node("", op, std::move(inputs), std::move(attrs))).outputs[0];
  }
  ValueId all(const char* op, ValueId x, Attrs attrs = {}) {
    attrs["group"] = std::string("tp");
    return this->op("wait_tensor", {this->op(op, {x}, std::move(attrs))});
  }
  Graph take(const std::vector<ValueId>& outputs) {
    for (ValueId output : outputs) graph_.add_output(output);
    verify(graph_);
    return std::move(graph_);
  }

 private:
  Graph graph_{"empty"};
};

Graph rows() {
  Build b;
  const ValueId x = b.in(kF32, {kT, 64});
  return b.take({b.op("exp", {x}), b.op("softmax", {x}), b.op("sum", {x}, dims(1)),
                 b.op("sum", {x}, dims(0)), b.op("prod", {x}), b.op("amax", {x}, dims(1)),
                 b.op("cumsum", {x}, along(0)), b.op("argsort", {x}, along(0)),
                 b.op("transpose", {x}, {{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{1}}}),
                 b.op("cat", {b.in(kF32, {3, 64}), x}, along(0)),
                 b.op("arange", {}, {{"end", std::string("T")}})});
}

Graph products() {
  Build b;
  const ValueId x = b.in(kF32, {kT, 64});
  return b.take(
      {b.op("mm", {x, b.in(kF32, {64, 32})}),
       b.op("mm", {b.in(kF32, {16, kT}), b.in(kF32, {kT, 40})}),
       b.op("scaled_dot_product_attention",
            {b.in(kF32, {1, 2, kT, 16}), b.in(kF32, {1, 2, kT, 16}), b.in(kF32, {1, 2, kT, 16})})});
}

Graph places() {
  Build b;
  const ValueId indices = b.in(kI64, {kT});
  const ValueId table = b.in(kF32, {50, 64});
  const ValueId x = b.in(kF32, {kT, 64});
  const ValueId cache = b.in(kF32, {50, 64}, InputKind::kState);
  b.op("index_copy_", {cache, b.in(kI64, {kT}), x});
  return b.take({b.op("embedding", {table, indices}), cache,
                 b.op("index_add", {b.in(kF32, {50, 64}), indices, x})});
}

Graph collectives() {
  Build b;
  const ValueId x = b.op("exp", {b.in(kF32, {kT, 64})});
  const Attrs sum{{"reduce_op", std::string("sum")}};
  return b.take({b.all("all_reduce", x, sum), b.all("all_gather_into_tensor", x),
                 b.all("reduce_scatter_tensor", b.in(kF32, {kT * 2, 64}), sum)});
}

struct Case {
  const char* name;
  Graph (*graph)();
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class Empty : public ::testing::TestWithParam<Case> {};

TEST_P(Empty, RunsBetweenOthers) {
  const Graph graph = GetParam().graph();
  for (const char* algorithm : {"", "one_shot", "two_shot"}) {
    Executable executable = Executable::compile(graph, World::open(testing::world_options(2)),
                                                testing::all_reduce_by(algorithm));
    for (const std::int64_t tokens : {0, 3, 0, 0, 24, 0}) {
      const Bindings bindings{{"T", tokens}};
      const RankTensors inputs = random_inputs(graph, bindings, 5);
      const RankTensors got = testing::run_once(executable, graph, bindings, inputs);
      EXPECT_TRUE(testing::same_as_reference(graph, got, evaluate(graph, inputs, bindings)))
          << algorithm << ", T = " << tokens;
    }
    if (GetParam().graph != collectives) break;
  }
}

TEST_P(Empty, IsClean) {
  testing::need_cpu_device();
  EXPECT_TRUE(testing::runs_clean(GetParam().graph(), {{"T", 0}}, 6));
}

INSTANTIATE_TEST_SUITE_P(Each, Empty,
                         ::testing::Values(Case{"rows", rows}, Case{"products", products},
                                           Case{"places", places},
                                           Case{"collectives", collectives}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace braid
