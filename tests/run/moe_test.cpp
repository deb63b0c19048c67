// Mixture of experts: routing against the reference, exactly; experts of all forms against it,
// whatever tokens choose; a token's bits alone and in a batch; and experts that do not exist.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "findings.h"
#include "run/graph_builder.h"
#include "run/run_graph.h"

namespace braid {
namespace {

using testing::GraphBuilder;

constexpr DType kF32 = DType::kF32, kF16 = DType::kF16, kBF16 = DType::kBF16, kI32 = DType::kI32,
                kI64 = DType::kI64;
const Dim kT = Dim::symbol("T");

/// What tokens choose.
enum class Choice : std::uint8_t {
  kAny,
  kOne,  ///< all the last expert
  kFew   ///< only every third expert
};

std::size_t input_of(const Graph& graph, std::string_view name) {
  const auto found = std::ranges::find(graph.inputs(), name, &GraphInput::name);
  return static_cast<std::size_t>(found - graph.inputs().begin());
}

RankTensors inputs_of(const Graph& graph, const Bindings& bindings, Choice choice,
                      std::int64_t experts) {
  RankTensors inputs = random_inputs(graph, bindings, 5);
  HostTensor& tensor = inputs[0][input_of(graph, "choices")];
  std::vector<std::int64_t> values;
  for (const double value : tensor.to_doubles()) {
    const auto expert = static_cast<std::int64_t>(value);
    values.push_back(choice == Choice::kOne   ? experts - 1
                     : choice == Choice::kFew ? expert / 3 * 3
                                              : expert);
  }
  tensor = HostTensor::from_integers(tensor.dtype, tensor.shape, values);
  return inputs;
}

struct RoutingCase {
  const char* name;
  DType dtype;
  std::int64_t most, tokens, choices, experts;
  Choice choice = Choice::kAny;
};
void PrintTo(const RoutingCase& c, std::ostream* out) { *out << c.name; }

class MoeRouting : public ::testing::TestWithParam<RoutingCase> {};

TEST_P(MoeRouting, IsOneKernelThatEqualsTheReference) {
  const RoutingCase& c = GetParam();
  GraphBuilder b(c.most);
  const ValueId choices = b.in(c.dtype, {kT, c.choices}, "choices");
  const Graph graph = b.take(b.node("moe_routing", {choices}, {{"experts", c.experts}}).outputs);
  const Bindings bindings{{"T", c.tokens}};
  const RankTensors inputs = inputs_of(graph, bindings, c.choice, c.experts);
  World world = World::open(testing::world_options(1));
  Executable executable = Executable::compile(graph, world);
  ASSERT_EQ(executable.kernels().size(), 1U);
  EXPECT_EQ(executable.kernels()[0].template_name, "moe_routing");
  const RankTensors got = testing::run_once(executable, graph, bindings, inputs);
  const RankTensors expected = evaluate(graph, inputs, bindings);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(got[0][i].data, expected[0][i].data) << i;
}

INSTANTIATE_TEST_SUITE_P(
    Each, MoeRouting,
    ::testing::Values(RoutingCase{"one_token", kI32, 1, 1, 1, 1},
                      RoutingCase{"one_of_many", kI32, 64, 1, 4, 8},
                      RoutingCase{"few", kI64, 64, 37, 2, 8},
                      RoutingCase{"experts_without_tokens", kI32, 200, 177, 2, 64, Choice::kFew},
                      RoutingCase{"all_at_one", kI32, 200, 177, 2, 8, Choice::kOne},
                      RoutingCase{"one_expert", kI32, 200, 130, 1, 1},
                      RoutingCase{"several_tiles", kI64, 4096, 3001, 4, 256},
                      RoutingCase{"tiles_at_one", kI32, 4096, 4096, 3, 5, Choice::kOne}),
    [](const auto& info) { return info.param.name; });

/// How experts are written down.
struct Form {
  const char* activation = "swiglu";
  bool interleaved = false;
  bool biased = false;
  bool on_input = false;
  bool transposed = false;       ///< weights as [E, N, K]
  DType weights = DType::kBool;  ///< the operands' where it is bool
};

struct Case {
  const char* name;
  DType dtype;
  std::int64_t tokens, choices, experts;
  Form form = {};
  Choice choice = Choice::kAny;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

constexpr std::int64_t kWidth = 72, kInner = 40, kMostTokens = 150;

Graph graph_of(const Case& c) {
  GraphBuilder b(kMostTokens);
  const auto parameter = [&](const char* name, Shape shape) {
    return b.graph().add_input({name, {c.dtype, std::move(shape)}, InputKind::kParameter, false});
  };
  const auto matrix = [&](const char* name, std::int64_t rows, std::int64_t columns) {
    if (!c.form.transposed) return parameter(name, {c.experts, rows, columns});
    return b.op("transpose", {parameter(name, {c.experts, columns, rows})},
                {{"dim0", std::int64_t{1}}, {"dim1", std::int64_t{2}}});
  };
  const DType of_weights = c.form.weights == DType::kBool ? c.dtype : c.form.weights;
  std::vector<ValueId> operands{b.in(c.dtype, {kT, kWidth}, "x"),
                                b.in(kI32, {kT, c.choices}, "choices"),
                                b.in(of_weights, {kT, c.choices}, "weights")};
  operands.push_back(matrix("gate_up", kWidth, 2 * kInner));
  operands.push_back(matrix("down", kInner, kWidth));
  if (c.form.biased) {
    operands.push_back(b.in(c.dtype, {c.experts, 2 * kInner}, "gate_up_bias"));
    operands.push_back(b.in(c.dtype, {c.experts, kWidth}, "down_bias"));
  }
  return b.take({b.op("moe_experts", operands,
                      {{"activation", std::string(c.form.activation)},
                       {"interleaved", c.form.interleaved},
                       {"weights_on_input", c.form.on_input}})});
}

class MoeExperts : public ::testing::TestWithParam<Case> {};

TEST_P(MoeExperts, AreFewKernelsThatEqualTheReference) {
  const Case& c = GetParam();
  const Graph graph = graph_of(c);
  const Bindings bindings{{"T", c.tokens}};
  const RankTensors inputs = inputs_of(graph, bindings, c.choice, c.experts);
  World world = World::open(testing::world_options(1));
  Executable executable = Executable::compile(graph, world);
  // Rows that are weighted first are in memory, and so are gate and up of neighbouring columns.
  const bool apart = c.form.on_input || (c.form.interleaved && !c.form.transposed);
  EXPECT_EQ(executable.kernels().size(), apart ? 5U : 4U);
  EXPECT_TRUE(testing::same_as_reference(graph,
                                         testing::run_once(executable, graph, bindings, inputs),
                                         evaluate(graph, inputs, bindings)));
}

constexpr Form kGptOss{
    .activation = "clamped_swiglu", .interleaved = true, .biased = true, .transposed = true};
constexpr Form kColumns{.activation = "clamped_swiglu", .interleaved = true, .biased = true};

INSTANTIATE_TEST_SUITE_P(
    Each, MoeExperts,
    ::testing::Values(Case{"bf16", kBF16, 100, 2, 8}, Case{"f16", kF16, 61, 4, 8},
                      Case{"f32", kF32, 50, 2, 8}, Case{"one_token", kBF16, 1, 2, 8},
                      Case{"one_expert", kF32, 33, 1, 1}, Case{"many_experts", kBF16, 90, 4, 64},
                      Case{"one_choice", kF16, 130, 1, 8},
                      Case{"all_at_one", kBF16, 140, 2, 8, {}, Choice::kOne},
                      Case{"experts_without_tokens", kBF16, 140, 2, 8, {}, Choice::kFew},
                      Case{"clamped", kF32, 70, 2, 8, {.activation = "clamped_swiglu"}},
                      Case{"gpt_oss", kBF16, 70, 4, 8, kGptOss},
                      Case{"gpt_oss_columns", kBF16, 70, 4, 8, kColumns},
                      Case{"gpt_oss_f32", kF32, 35, 4, 8, kGptOss},
                      Case{"biased", kF32, 70, 2, 8, {.biased = true}},
                      Case{"interleaved", kF16, 70, 2, 8, {.interleaved = true}},
                      Case{
                          "transposed", kBF16, 70, 2, 8, {.interleaved = true, .transposed = true}},
                      Case{"on_input", kBF16, 70, 1, 8, {.on_input = true}},
                      Case{"weights_of_f32", kBF16, 70, 2, 8, {.weights = kF32}}),
    [](const auto& info) { return info.param.name; });

TEST(MoeExperts, RunCleanUnderTheSanitizer) {
  const Case c{"", kBF16, 37, 2, 8, kGptOss};
  EXPECT_TRUE(testing::runs_clean(graph_of(c), {{"T", c.tokens}}, 3));
}

// Rows of a piece, parts of rows, and more rows than are looked up in front.
TEST(SumsOfSelectedRows, EqualTheReferenceAndUnfused) {
  struct Sum {
    std::int64_t rows, columns;
  };
  for (const Sum sum : {Sum{3, 24}, Sum{4, 2048}, Sum{3, 1032}, Sum{8, 1100}, Sum{20, 1024}}) {
    for (const DType dtype : {kBF16, kF32}) {
      GraphBuilder b(20);
      const ValueId table = b.in(dtype, {8, sum.columns});
      const ValueId index = b.in(kI64, {kT * sum.rows});
      const ValueId rows = b.op("index_select", {table, index}, {{"dim", std::int64_t{0}}});
      const ValueId each = b.op("view", {rows}, {{"shape", Shape{kT, sum.rows, sum.columns}}});
      const ValueId scaled = b.op("mul", {each, b.in(dtype, {kT, sum.rows, 1})});
      const Graph graph = b.take({b.op("sum", {scaled}, {{"dim", std::vector<std::int64_t>{1}}})});
      EXPECT_TRUE(testing::runs_clean_as_unfused(graph, {{"T", 7}}, 3))
          << sum.rows << " rows of " << sum.columns;
    }
  }
}

// Whatever other tokens are beside it, and however they choose, a token's bits are its own.
TEST(MoeExperts, ATokenHasItsBitsAlone) {
  for (const DType dtype : {kBF16, kF32}) {
    const Case c{"", dtype, 130, 2, 8};
    const Graph graph = graph_of(c);
    const RankTensors inputs = inputs_of(graph, {{"T", c.tokens}}, c.choice, c.experts);
    World world = World::open(testing::world_options(1));
    Executable executable = Executable::compile(graph, world);
    const HostTensor all = testing::run_once(executable, graph, {{"T", c.tokens}}, inputs)[0][0];
    const std::size_t row = kWidth * dtype_size(dtype);
    for (const std::size_t token : {0U, 77U, 129U}) {
      RankTensors alone = inputs;
      for (const char* name : {"x", "choices", "weights"}) {
        HostTensor& tensor = alone[0][input_of(graph, name)];
        const std::size_t bytes = tensor.data.size() / static_cast<std::size_t>(c.tokens);
        const auto first = tensor.data.begin() + static_cast<std::ptrdiff_t>(token * bytes);
        tensor.data = {first, first + static_cast<std::ptrdiff_t>(bytes)};
        tensor.shape[0] = 1;
      }
      const HostTensor one = testing::run_once(executable, graph, {{"T", 1}}, alone)[0][0];
      EXPECT_EQ(std::memcmp(one.data.data(), all.data.data() + token * row, row), 0)
          << dtype_name(dtype) << " token " << token;
    }
  }
}

// The reference names the experts, a run their routing.
TEST(MoeExperts, AnExpertThatDoesNotExistIsNamed) {
  const Case c{"", kBF16, 37, 2, 8};
  const Graph graph = graph_of(c);
  const Bindings bindings{{"T", c.tokens}};
  const std::string node = graph.value(graph.outputs()[0]).name;
  WorldOptions options = testing::cpu_world_options(1);
  options.sanitize = kCheckAll;
  World world = World::open(options);
  Executable executable = Executable::compile(graph, world);
  executable.prepare(bindings);
  for (const std::int64_t bad : {std::int64_t{-1}, std::int64_t{8}, std::int64_t{1} << 30}) {
    RankTensors inputs = inputs_of(graph, bindings, c.choice, c.experts);
    HostTensor& tensor = inputs[0][input_of(graph, "choices")];
    std::vector<std::int64_t> values;
    for (const double value : tensor.to_doubles()) values.push_back(static_cast<int>(value));
    values[41] = bad;
    tensor = HostTensor::from_integers(kI32, tensor.shape, values);
    const std::string what =
        fmt::format("rank 0: index {} is out of range; expected an integer from 0 to 7", bad);
    EXPECT_EQ(testing::error_of([&] { (void)evaluate(graph, inputs, bindings); }),
              fmt::format("{}: {}", node, what));
    testing::set_inputs(executable, graph, inputs);
    executable.run();
    EXPECT_EQ(testing::error_of([&] { executable.synchronize(); }),
              fmt::format("{}_moe_routing: {}", node, what));
  }
  const auto findings = found_by(world.device());
  EXPECT_TRUE(findings.empty()) << findings[0].text();
}

}  // namespace
}  // namespace braid
