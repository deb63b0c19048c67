#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <regex>
#include <set>
#include <vector>

#include "braid/error.h"
#include "codegen/kernel/kernel.h"
#include "codegen/kernel/spec.h"
#include "codegen/sample_specs.h"

namespace braid {
namespace {

using ::testing::HasSubstr;
using testing::sample_specs;
using testing::SampleSpec;
using ::testing::ThrowsMessage;

TEST(KernelSpec, SamplesCoverEveryTemplate) {
  std::set<std::string_view> seen;
  for (const auto& sample : sample_specs(Target{})) {
    EXPECT_EQ(cannot_fuse(*sample.spec.body), "") << sample.name;
    seen.insert(template_name(*sample.spec.body));
  }
  std::set<std::string_view> all{"joined"};
  for (const Kernel& kernel : kernels()) all.insert(kernel.name);
  EXPECT_EQ(seen, all);
}

bool waits_for_peers(const SampleSpec& sample) {
  const std::string_view name = template_name(*sample.spec.body);
  return name == "collective" || name == "gather_gemm" || name == "gemm_reduce" ||
         name == "barrier";
}

TEST(KernelSpec, RequirementsAreKnownBeforeTheText) {
  for (const auto& sample : sample_specs(Target{})) {
    const Requirements needs = requirements(sample.spec, Target{});
    EXPECT_GT(needs.threads, 0) << sample.name;
    EXPECT_LE(needs.shared_bytes, Target{}.max_shared_bytes()) << sample.name;
    EXPECT_GT(needs.grid.evaluate({{"T", 1}}), 0) << sample.name;
    EXPECT_EQ(needs.comm_group, waits_for_peers(sample) ? "tp" : "") << sample.name;
  }
}

TEST(KernelSpec, AWaitingGridIsConstantAndSharedByTheRanksOfADevice) {
  for (const auto& sample : sample_specs(Target{})) {
    if (!waits_for_peers(sample)) continue;
    const Requirements alone = requirements(sample.spec, Target{}, 1);
    const Requirements shared = requirements(sample.spec, Target{}, 8);
    ASSERT_TRUE(alone.grid.is_constant());
    // A kernel that multiplies, too, may fill the device.
    const bool multiplies =
        alone.template_name == "gather_gemm" || alone.template_name == "gemm_reduce";
    EXPECT_LE(alone.grid.evaluate({}), multiplies ? 108 : 32);
    EXPECT_LE(shared.grid.evaluate({}), multiplies ? 13 : 4);
  }
}

TEST(KernelSpec, TheTextIsTheSameEveryTime) {
  const auto first = sample_specs(Target{});
  const auto second = sample_specs(Target{});
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(emit(first[i].spec, Target{}).text, emit(second[i].spec, Target{}).text);
  }
}

// Signed: the timers of two multiprocessors may differ by more than a wait took.
TEST(KernelSpec, ATimerThatStepsBackIsNoTimeout) {
  int seen = 0;
  for (const auto& sample : sample_specs(Target{})) {
    if (template_name(*sample.spec.body) != "collective") continue;
    ++seen;
    const std::string text = emit(sample.spec, Target{}).text;
    EXPECT_NE(text.find("(long long)(global_timer() - start) > c.timeout"), std::string::npos);
    EXPECT_NE(text.find("  long long timeout;"), std::string::npos);
  }
  EXPECT_GT(seen, 0);
}

std::string gather_text(int ranks, const Shape& shard) {
  auto body = std::make_shared<Graph>();
  body->add_group("tp", {ranks});
  const ValueId x = body->add_input({"x", {DType::kF32, shard}});
  body->set_comm_group(x, "tp");
  const NodeId gather =
      body->add_node("", "all_gather_into_tensor", {x},
                     {{"group", std::string("tp")}, {"algorithm", std::string("one_shot")}});
  body->add_output(body->node(gather).outputs[0]);
  const KernelSpec spec{body, default_config(*body, Target{})};
  std::string text = emit(spec, Target{}).text;
  return text.erase(0, text.find("__global__"));
}

// A tile that lies in one rank's chunk is read from that rank alone.
TEST(KernelSpec, AGatherReadsTheRankThatHasTheTile) {
  const auto loads = [](const std::string& text) {
    const std::regex load(R"(load_f32_\d+\()");
    return std::distance(std::sregex_iterator(text.begin(), text.end(), load), {});
  };
  EXPECT_EQ(loads(gather_text(4, {512, 4096})), 5);  // four ahead, and one turn's
  EXPECT_EQ(loads(gather_text(4, {3, 4096})), 5);
  EXPECT_EQ(loads(gather_text(32, {8, 500})), 10);  // a tile reaches two ranks
  EXPECT_EQ(loads(gather_text(3, {1, 100})), 9);    // all three, two turns ahead
  EXPECT_NE(gather_text(4, {512, 4096}).find("turn < 5;"), std::string::npos);
}

// A tile of a gather over many ranks looks at the ranks whose chunks it reaches, not at all of
// them.
TEST(KernelSpec, AGatherLoopsOverTheRanksThatATileReaches) {
  const std::string text = gather_text(32, {1, 33});
  EXPECT_NE(text.find("peers.base["), std::string::npos);
  EXPECT_EQ(text.find("< 32; "), std::string::npos) << text;
}

TEST(KernelSpec, OnlyKernelsThatCanFailHaveARecord) {
  for (const auto& sample : sample_specs(Target{})) {
    const Requirements needs = requirements(sample.spec, Target{});
    const bool has = std::any_of(needs.params.begin(), needs.params.end(), [](const auto& param) {
      return param.kind == KernelParam::Kind::kRecord;
    });
    const bool can_fail = waits_for_peers(sample) || sample.name == "pointwise_embedding" ||
                          sample.name.starts_with("grouped_gemm") || sample.name == "moe_routing" ||
                          sample.name.starts_with("paged_attention") ||
                          sample.name.starts_with("joined");
    EXPECT_EQ(has, can_fail) << sample.name;
  }
}

// A reduction's layout depends only on its extent: fused or alone, the same lanes add the same
// elements.
TEST(KernelSpec, AReductionKeepsItsThreadsWhateverIsFused) {
  std::set<int> threads;
  for (const auto& sample : sample_specs(Target{})) {
    if (sample.name == "row_rms_norm" || sample.name.starts_with("all_reduce_add_rms_norm")) {
      threads.insert(requirements(sample.spec, Target{}).threads);
    }
  }
  EXPECT_EQ(threads.size(), 1u);
}

TEST(KernelSpec, NoIncludeAndNoUserNames) {
  auto body = std::make_shared<Graph>("evil\"); asm(");
  const ValueId x = body->add_input({"*/ __device__ int evil; /*", {DType::kF32, {8, 8}}});
  body->add_output(body->node(body->add_node("};evil", "neg", {x})).outputs[0]);
  const KernelSpec spec{body, default_config(*body, Target{})};
  const KernelSource source = emit(spec, Target{});
  EXPECT_EQ(source.text.find("evil"), std::string::npos);
  for (const auto& sample : sample_specs(Target{})) {
    EXPECT_EQ(emit(sample.spec, Target{}).text.find("#include"), std::string::npos);
  }
}

struct Refused {
  const char* fragment;
  Graph body;
};

// Nor does the compiler stand the text of such a kernel.
TEST(KernelSpec, NoMoreParametersThanALaunchTakes) {
  auto body = std::make_shared<Graph>();
  for (int i = 0; i < 10'000; ++i) {
    const ValueId x = body->add_input({fmt::format("x{}", i), {DType::kF32, {4}}});
    body->add_output(body->node(body->add_node(fmt::format("y{}", i), "neg", {x})).outputs[0]);
  }
  const KernelSpec spec{body, default_config(*body, Target{})};
  try {
    static_cast<void>(emit(spec, Target{}));
    ADD_FAILURE() << "was emitted";
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "elementwise_neg_neg_neg_neg_neg_neg_neg_neg_neg_neg: has 20000 parameters; expected "
        "at most 4095: fewer operands");
  }
}

// Packets have no room for i64. Whoever asks for a configuration first gets one all the same.
TEST(CannotFuse, MayBeAskedLast) {
  const auto body = std::make_shared<const Graph>(parse_graph(R"({"braid": 1, "name": "c",
    "groups": {"tp": {"size": 2}},
    "inputs": [{"name": "x", "dtype": "i64", "shape": [64], "per_rank": true}],
    "nodes": [{"name": "c", "op": "all_reduce", "inputs": ["x"], "attrs":
                {"reduce_op": "sum", "group": "tp", "algorithm": "ll"}}], "outputs": ["c"]})"));
  const KernelSpec spec{body, default_config(*body, Target{})};
  EXPECT_EQ(cannot_fuse(*body), "a packet has no room for i64");
  EXPECT_THAT([&] { static_cast<void>(requirements(spec, Target{})); },
              ThrowsMessage<Error>(HasSubstr("a packet has no room for i64")));
  EXPECT_FALSE(candidates(*body, Target{}).empty());
}

TEST(CannotFuse, SaysWhy) {
  const auto x_of = [](Graph& g, Shape shape, DType dtype = DType::kF32) {
    return g.add_input({"i" + std::to_string(g.inputs().size()), {dtype, std::move(shape)}});
  };
  const auto out = [](Graph& g, NodeId n) { return g.node(n).outputs[0]; };
  std::vector<Refused> cases;
  {
    Graph g;
    const ValueId m = out(g, g.add_node("", "mm", {x_of(g, {8, 8}), x_of(g, {8, 8})}));
    g.add_output(out(g, g.add_node("", "rms_norm", {m, x_of(g, {8})}, {{"eps", 1e-5}})));
    cases.push_back({"whole rows", g});
  }
  {
    Graph g;
    const ValueId m = out(g, g.add_node("", "mm", {x_of(g, {8, 8}), x_of(g, {8, 8})}));
    g.add_output(out(g, g.add_node("", "mm", {m, x_of(g, {8, 8})})));
    cases.push_back({"one matmul", g});
  }
  {
    Graph g;
    const ValueId s =
        out(g, g.add_node("", "sum", {x_of(g, {8, 8})}, {{"dim", std::vector<std::int64_t>{1}}}));
    g.add_output(out(g, g.add_node("", "add", {x_of(g, {8, 8}), s})));
    cases.push_back({"broadcast a reduced value", g});
  }
  {
    Graph g;
    const ValueId x = x_of(g, {8, 8});
    const ValueId rows =
        out(g, g.add_node("", "sum", {x}, {{"dim", std::vector<std::int64_t>{1}}}));
    const ValueId cols =
        out(g, g.add_node("", "sum", {x}, {{"dim", std::vector<std::int64_t>{0}}}));
    g.add_output(out(g, g.add_node("", "add", {rows, cols})));
    cases.push_back({"over the same dims", g});
  }
  {
    Graph g;
    const ValueId n = out(g, g.add_node("", "neg", {x_of(g, {8})}));
    g.add_output(out(g, g.add_node("", "add", {x_of(g, {4, 8}), n})));
    g.add_output(n);
    cases.push_back({"the kernel works on", g});
  }
  {
    Graph g;
    const ValueId n = out(g, g.add_node("", "neg", {x_of(g, {8, 8})}));
    const ValueId t = out(g, g.add_node("", "transpose", {n},
                                        {{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{1}}}));
    g.add_output(out(g, g.add_node("", "add", {n, t})));
    cases.push_back({"computed again at another place", g});
  }
  {
    Graph g;
    const std::vector<ValueId> operands(20'000, x_of(g, {4}));
    g.add_output(out(g, g.add_node("", "cat", operands, {{"dim", std::int64_t{0}}})));
    cases.push_back({"it concatenates 20000 tensors; expected at most 64", g});
  }
  for (const Refused& refused : cases) {
    const std::string why = cannot_fuse(refused.body);
    EXPECT_NE(why.find(refused.fragment), std::string::npos) << "found '" << why << "'";
  }
}

}  // namespace
}  // namespace braid
