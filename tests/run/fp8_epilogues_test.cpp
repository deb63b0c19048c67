// Residual, norm and quantisation to float8 in the kernel of the all-reduce in front of them, by
// every algorithm: with a scale that is given, or one for each token that the kernel finds.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "run/graph_builder.h"
#include "run/run_graph.h"

namespace braid {
namespace {

using testing::GraphBuilder;

constexpr std::int64_t kMostTokens = 34;
const Dim kT = Dim::symbol("T");

struct Case {
  const char* algorithm;
  std::int64_t world;
  std::int64_t hidden;
  std::int64_t tokens;
  DType dtype;
  DType narrow;
  bool per_token;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << fmt::format("{}_w{}_h{}_t{}_{}_{}_{}", c.algorithm, c.world, c.hidden, c.tokens,
                      dtype_name(c.dtype), dtype_name(c.narrow),
                      c.per_token ? "per_token" : "static");
}

/// An input that is equal on all ranks.
ValueId shared(GraphBuilder& b, DType dtype, Shape shape) {
  return b.graph().add_input({fmt::format("in{}", b.graph().inputs().size()),
                              {dtype, std::move(shape)},
                              InputKind::kActivation,
                              false});
}

/// The largest element of a token is the largest number of the dtype.
ValueId scale_of(GraphBuilder& b, ValueId x, DType narrow) {
  const ValueId most =
      b.op("amax", {b.op("abs", {x})}, {{"dim", std::vector<std::int64_t>{-1}}, {"keepdim", true}});
  const double largest = narrow == DType::kF8E4M3 ? 448 : 57344;
  return b.op(
      "clamp",
      {b.op(
          "mul",
          {most, b.op("full", {},
                      {{"shape", Shape{kT, 1}}, {"value", 1 / largest}, {"dtype", DType::kF32}})})},
      {{"min", 1e-12}});
}

Graph quantised(const Case& c) {
  GraphBuilder b(kMostTokens, c.world);
  const ValueId part = b.op("neg", {b.in(c.dtype, {kT, c.hidden})});
  const ValueId sum = b.op(
      "wait_tensor", {b.op("all_reduce", {part},
                           {{"reduce_op", std::string("sum")}, {"group", std::string("tp")}})});
  const ValueId stream = b.op("add", {sum, shared(b, c.dtype, {kT, c.hidden})});
  const ValueId norm = b.op("rms_norm", {stream, shared(b, c.dtype, {c.hidden})}, {{"eps", 1e-5}});
  const ValueId x = b.op("to", {norm}, {{"dtype", DType::kF32}});
  const ValueId scale = c.per_token ? scale_of(b, x, c.narrow) : shared(b, DType::kF32, {1});
  const ValueId narrow = b.op("to", {b.op("div", {x, scale})}, {{"dtype", c.narrow}});
  return c.per_token ? b.take({narrow, scale, stream}) : b.take({narrow, stream});
}

class Fp8Epilogues : public ::testing::TestWithParam<Case> {};

TEST_P(Fp8Epilogues, AreOneKernelWithTheirAllReduce) {
  const Case& c = GetParam();
  const PassConfig passes = testing::all_reduce_by(c.algorithm);
  WorldOptions options = testing::world_options(c.world);
  options.target = testing::target_of(passes);
  const World world = World::open(options);
  const Executable executable = Executable::compile(quantised(c), world, passes);
  // What is in front is a kernel of its own where a device has more memory rate for long rows than
  // the few blocks of a collective can use.
  const std::size_t most = options.device == DeviceKind::kCpu || c.hidden < 16384 ? 1 : 2;
  ASSERT_LE(executable.kernels().size(), most);
  const KernelReport kernel = executable.kernels().back();
  EXPECT_EQ(kernel.template_name, "collective");
  EXPECT_TRUE(kernel.ops.ends_with("to")) << kernel.ops;
}

TEST_P(Fp8Epilogues, RunCleanAndEqualTheReferenceAndUnfused) {
  const Case& c = GetParam();
  EXPECT_TRUE(testing::runs_clean_as_unfused(quantised(c), {{"T", c.tokens}}, 3,
                                             testing::all_reduce_by(c.algorithm)));
}

std::vector<Case> cases() {
  constexpr DType kBF16 = DType::kBF16, kF16 = DType::kF16, kF32 = DType::kF32;
  constexpr DType kE4M3 = DType::kF8E4M3, kE5M2 = DType::kF8E5M2;
  std::vector<Case> all;
  for (const char* algorithm : {"one_shot", "two_shot", "ll", "multimem"}) {
    for (const bool per_token : {false, true}) {
      all.push_back({algorithm, 2, 1001, 7, kBF16, kE4M3, per_token});
      all.push_back({algorithm, 4, 130, 33, per_token ? kF32 : kF16, kE5M2, per_token});
    }
    all.push_back({algorithm, 4, 17024, 3, kBF16, kE4M3, true});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Cases, Fp8Epilogues, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return ::testing::PrintToString(info.param); });

}  // namespace
}  // namespace braid
