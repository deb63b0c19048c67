// An index out of range is an error of the run that names node, rank and index, in every kind of
// kernel: the evaluator says the same, the ranks that were well do not hang, the sanitizer finds
// nothing, and the executable is as good as new.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "braid/error.h"
#include "findings.h"
#include "run/graph_builder.h"
#include "run/run_graph.h"

namespace braid {
namespace {

constexpr DType kF32 = DType::kF32, kI64 = DType::kI64, kI32 = DType::kI32;
const Dim kT = Dim::symbol("T");
constexpr std::int64_t kRows = 8;  ///< of tables; generated indices are below

/// For two ranks, with a name for everything in it.
class Build : public testing::GraphBuilder {
 public:
  Build() : GraphBuilder(40, 2) {}
  ValueId in(const char* name, DType dtype, Shape shape) {
    return GraphBuilder::in(dtype, std::move(shape), name);
  }
  ValueId op(const char* name, const char* op, std::vector<ValueId> inputs, Attrs attrs = {}) {
    return node(op, std::move(inputs), std::move(attrs), name).outputs[0];
  }
  /// "e", rows of a table "t" by the indices "i".
  ValueId rows(std::int64_t columns = 24, DType dtype = kI64) {
    return op("e", "embedding", {in("t", kF32, {kRows, columns}), in("i", dtype, {kT})});
  }
  ValueId less_one(ValueId x) {
    const Attrs one = {{"shape", Shape{kT}}, {"dtype", kI64}, {"value", 1.0}};
    return op("less_one", "sub", {x, op("one", "full", {}, one)});
  }
  /// "e", elements of a vector by the indices "i" less one, computed in the same kernel.
  ValueId elements_before() {
    const ValueId i = less_one(in("i", kI64, {kT}));
    return op("e", "index_select", {in("t", kF32, {kRows}), i}, {{"dim", std::int64_t{0}}});
  }
};

const Attrs kSum = {{"reduce_op", std::string("sum")}, {"group", std::string("tp")}};
const Attrs kNorm = {{"eps", 1e-5}};
Attrs along(std::int64_t dim) { return {{"dim", dim}}; }

void set(HostTensor& tensor, std::size_t at, std::int64_t value) {
  std::vector<double> values = tensor.to_doubles();
  values.at(at) = static_cast<double>(value);
  tensor = HostTensor::from_doubles(tensor.dtype, tensor.shape, values);
}

void no_zeros(HostTensor& tensor) {
  std::vector<double> values = tensor.to_doubles();
  for (double& value : values) value = std::max(value, 1.0);
  tensor = HostTensor::from_doubles(tensor.dtype, tensor.shape, values);
}

std::size_t input_of(const Graph& graph, std::string_view name) {
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
    if (graph.inputs()[i].name == name) return i;
  }
  throw std::runtime_error("no such input");
}

World open(Checks sanitize, bool count = false) {
  const bool watched = sanitize != kCheckNothing || count;
  WorldOptions options = watched ? testing::cpu_world_options(2) : testing::world_options(2);
  options.sanitize = sanitize;
  options.count = count;
  return World::open(options);
}

struct Case {
  const char* name;
  std::function<Graph()> graph;
  std::int64_t index;    ///< what is put into "i"
  const char* expected;  ///< after "rank 1: index "
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class BadIndex : public ::testing::TestWithParam<Case> {};

TEST_P(BadIndex, IsNamedAndTheNextRunIsWell) {
  const Case& c = GetParam();
  const Graph graph = c.graph();
  const Bindings bindings = {{"T", 11}};
  RankTensors good = random_inputs(graph, bindings, 21);
  for (std::vector<HostTensor>& tensors : good) {
    for (HostTensor& tensor : tensors) {
      if (!is_float(tensor.dtype)) no_zeros(tensor);
    }
  }
  RankTensors bad = good;
  set(bad[1][input_of(graph, "i")], 6, c.index);
  const std::string expected = fmt::format("e: rank 1: index {}", c.expected);
  EXPECT_EQ(testing::error_of([&] { (void)evaluate(graph, bad, bindings); }), expected);
  const RankTensors reference = evaluate(graph, good, bindings);
  for (const Checks sanitize : {kCheckNothing, kCheckAll}) {
    World world = open(sanitize);
    Executable executable = Executable::compile(graph, world);
    executable.prepare(bindings);
    testing::set_inputs(executable, graph, bad);
    executable.run();
    executable.run();  // nothing stops what was enqueued already
    EXPECT_EQ(testing::error_of([&] { executable.synchronize(); }), expected);
    const std::string& output = graph.value(graph.outputs()[0]).name;
    EXPECT_THAT(testing::error_of([&] { (void)executable.output(0, output); }),
                ::testing::HasSubstr("before a run"));
    EXPECT_TRUE(testing::same_as_reference(
        graph, testing::run_once(executable, graph, bindings, good), reference));
    const auto findings = found_by(world.device());
    EXPECT_TRUE(findings.empty()) << findings[0].text();
  }
}

constexpr const char* kNine = "9 is out of range; expected an integer from 0 to 7";

INSTANTIATE_TEST_SUITE_P(
    Each, BadIndex,
    ::testing::Values(
        Case{"the_extent",
             [] {
               Build b;
               return b.take({b.op("y", "neg", {b.rows()})});
             },
             8, "8 is out of range; expected an integer from 0 to 7"},
        Case{"negative",
             [] {
               Build b;
               return b.take({b.op("y", "neg", {b.rows(5, kI32)})});
             },
             -1, "-1 is out of range; expected an integer from 0 to 7"},
        // Its lower half is a valid index.
        Case{"more_than_32_bits",
             [] {
               Build b;
               return b.take({b.op("y", "neg", {b.rows()})});
             },
             (std::int64_t{1} << 40) + 1,
             "1099511627777 is out of range; expected an integer from 0 to 7"},
        Case{"columns_by_index_select",
             [] {
               Build b;
               const ValueId x = b.in("x", kF32, {3, kT, kRows});
               return b.take(
                   {b.op("y", "neg",
                         {b.op("e", "index_select", {x, b.in("i", kI32, {kT})}, along(-1))})});
             },
             9, kNine},
        Case{"elements_by_take_along_dim",
             [] {
               Build b;
               const ValueId x = b.in("x", kF32, {1, kRows});
               return b.take(
                   {b.op("y", "neg",
                         {b.op("e", "take_along_dim", {x, b.in("i", kI64, {kT, 1})}, along(1))})});
             },
             9, kNine},
        Case{"a_symbolic_extent",
             [] {
               Build b;
               const ValueId x = b.in("x", kF32, {kT, 6});
               return b.take({b.op(
                   "y", "neg", {b.op("e", "index_select", {x, b.in("i", kI64, {kT})}, along(0))})});
             },
             11, "11 is out of range; expected an integer from 0 to 10"},
        // Rows in front of a norm, several of them in one tile, with a tail.
        Case{"in_front_of_a_norm",
             [] {
               Build b;
               return b.take({b.op("y", "rms_norm", {b.rows(40)}, kNorm)});
             },
             9, kNine},
        Case{"a_row_in_pieces",
             [] {
               Build b;
               return b.take({b.op("y", "softmax", {b.rows(20000)})});
             },
             9, kNine},
        Case{"in_front_of_a_sum_of_rows",
             [] {
               Build b;
               return b.take(
                   {b.op("y", "sum", {b.rows(24)}, {{"dim", std::vector<std::int64_t>{0}}})});
             },
             9, kNine},
        Case{"behind_a_matmul",
             [] {
               Build b;
               const ValueId p =
                   b.op("p", "mm", {b.in("a", kF32, {kT, 16}), b.in("b", kF32, {16, 24})});
               return b.take({b.op("y", "add", {p, b.rows()})});
             },
             9, kNine},
        // The other rank waits for this one.
        Case{"in_front_of_an_all_reduce",
             [] {
               Build b;
               const ValueId s = b.op("s", "all_reduce", {b.rows()}, kSum);
               return b.take({b.op("y", "wait_tensor", {s})});
             },
             9, kNine},
        Case{"behind_an_all_reduce",
             [] {
               Build b;
               const ValueId s = b.op("s", "all_reduce", {b.in("x", kF32, {kT, 24})}, kSum);
               return b.take({b.op("y", "add", {b.op("w", "wait_tensor", {s}), b.rows()})});
             },
             9, kNine},
        // Values computed from the zeros of a bad row are not reported.
        Case{"the_first_of_two",
             [] {
               Build b;
               const ValueId i = b.op("e", "index_select",
                                      {b.in("k", kI64, {kRows}), b.in("i", kI64, {kT})}, along(0));
               return b.take(
                   {b.op("y", "embedding", {b.in("t", kF32, {kRows, 24}), b.less_one(i)})});
             },
             9, kNine},
        // Memory past the end reads as 0, which would be -1 here.
        Case{"computed",
             [] {
               Build b;
               return b.take({b.elements_before()});
             },
             10, kNine},
        Case{"computed_for_rows",
             [] {
               Build b;
               return b.take({b.op("y", "softmax", {b.elements_before()})});
             },
             10, kNine},
        // Elsewhere than in its own part of the result, no element has an index.
        Case{"one_part_of_a_cat",
             [] {
               Build b;
               const ValueId e = b.elements_before();
               return b.take({b.op("y", "cat", {b.in("x", kF32, {5}), e}, along(0))});
             },
             10, kNine}),
    [](const auto& info) { return info.param.name; });

// If every index is bad, one of them is reported completely.
TEST(BadIndexes, OneOfManyIsTold) {
  Build b;
  const Graph graph = b.take({b.op("y", "neg", {b.rows()})});
  const Bindings bindings = {{"T", 40}};
  RankTensors inputs = random_inputs(graph, bindings, 5);
  std::vector<std::string> possible;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    HostTensor& indices = inputs[rank][input_of(graph, "i")];
    for (std::size_t t = 0; t < 40; ++t) {
      const std::int64_t index = (std::int64_t{1} << 33) * static_cast<std::int64_t>(t + 1) + 7 +
                                 static_cast<std::int64_t>(t);
      set(indices, t, index);
      // The first rank of those that failed in one step.
      possible.push_back(fmt::format(
          "e: rank 0: index {} is out of range; expected an integer from 0 to 7", index));
    }
  }
  World world = open(kCheckNothing);
  Executable executable = Executable::compile(graph, world);
  executable.prepare(bindings);
  testing::set_inputs(executable, graph, inputs);
  executable.run();
  EXPECT_THAT(testing::error_of([&] { executable.synchronize(); }),
              ::testing::AnyOfArray(possible));
}

TEST(BadIndexes, AreFoundWhileKernelsAreCounted) {
  Build b;
  const Graph graph = b.take({b.op("y", "neg", {b.rows()})});
  const Bindings bindings = {{"T", 11}};
  RankTensors inputs = random_inputs(graph, bindings, 5);
  set(inputs[0][input_of(graph, "i")], 3, -7);
  World world = open(kCheckNothing, /*count=*/true);
  Executable executable = Executable::compile(graph, world);
  executable.prepare(bindings);
  testing::set_inputs(executable, graph, inputs);
  executable.run();
  EXPECT_EQ(testing::error_of([&] { executable.synchronize(); }),
            "e: rank 0: index -7 is out of range; expected an integer from 0 to 7");
  EXPECT_EQ(world.device().inspector()->counts().size(), 1U);
}

// A matmul's operand that is computed in front of it is loaded ahead, past the last step, too.
TEST(BadIndexes, InTheOperandOfAMatmul) {
  const Graph graph = parse_graph(R"({
    "braid": 1, "name": "gathered_operand", "symbols": {"T": {"min": 1, "max": 40}},
    "groups": {"tp": {"size": 2}},
    "inputs": [{"name": "t", "dtype": "f32", "shape": [8, 100], "per_rank": true},
               {"name": "i", "dtype": "i64", "shape": ["T"], "per_rank": true},
               {"name": "w", "dtype": "f32", "shape": [100, 24], "per_rank": true}],
    "nodes": [{"name": "y", "op": "kernel", "inputs": ["t", "i", "w"], "attrs": {
      "config": {"BLOCK_M": 16, "BLOCK_N": 32, "BLOCK_K": 32, "GROUP_M": 8, "num_stages": 3, "num_warps": 4},
      "indexed": {"e": 0},
      "body": {
        "inputs": [{"name": "t", "dtype": "f32", "shape": [8, 100], "per_rank": true},
                   {"name": "i", "dtype": "i64", "shape": ["T"], "per_rank": true},
                   {"name": "w", "dtype": "f32", "shape": [100, 24], "per_rank": true}],
        "nodes": [{"name": "v0", "op": "embedding", "inputs": ["t", "i"]},
                  {"name": "v1", "op": "silu", "inputs": ["v0"]},
                  {"name": "v2", "op": "mm", "inputs": ["v1", "w"]}],
        "outputs": ["v2"]}}}],
    "outputs": ["y"]})");
  const Bindings bindings = {{"T", 19}};
  const RankTensors good = random_inputs(graph, bindings, 5);
  RankTensors bad = good;
  set(bad[1][1], 18, 8);
  World world = open(kCheckAll);
  Executable executable = Executable::compile(graph, world);
  executable.prepare(bindings);
  testing::set_inputs(executable, graph, bad);
  executable.run();
  EXPECT_EQ(testing::error_of([&] { executable.synchronize(); }),
            "e: rank 1: index 8 is out of range; expected an integer from 0 to 7");
  EXPECT_TRUE(testing::same_as_reference(graph,
                                         testing::run_once(executable, graph, bindings, good),
                                         evaluate(graph, good, bindings)));
  const auto findings = found_by(world.device());
  EXPECT_TRUE(findings.empty()) << findings[0].text();
}

}  // namespace
}  // namespace braid
