#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "codegen/barrier.h"
#include "codegen/cuda/print_cuda.h"
#include "codegen/sample_specs.h"
#include "codegen/templates/template.h"

namespace braid {
namespace {

// What a new template is: a record, and a line of a list.
tile::Program build_probe(const KernelSpec& spec, const Target&, int) {
  tile::Program program;
  tile::Builder b(program);
  const tile::Id in = b.param({.kind = KernelParam::Kind::kInput, .group = {}}, 16);
  const tile::Id out = b.param({.kind = KernelParam::Kind::kOutput, .group = {}}, 16);
  const int cols = static_cast<int>(spec.config.at("num_warps")) * 32;
  const tile::Id at = b.range(1, cols, 1);
  b.store(out, at, b.map(tile::Fn::kNeg, {b.load(in, at, tile::kNone, DType::kF32)}), tile::kNone,
          DType::kF32);
  return program;
}
constexpr Setting kProbeSettings[] = {{"num_warps", 1, 4, true}};
const Template kProbe = {
    .name = "probe",
    .settings = kProbeSettings,
    .matches = [](const Graph& body) { return body.nodes()[0].op_name() == "neg"; },
    .refuse = [](const Graph& body) -> std::string {
      return body.nodes().size() == 1 ? "" : "it does one thing";
    },
    .default_config =
        [](const Graph&, const Target&) {
          return Config{{"num_warps", 2}};
        },
    .candidates = [](const Graph&, const Target&) -> std::vector<Config> { return {}; },
    .build = build_probe,
};

std::shared_ptr<Graph> body_of(const char* op) {
  auto body = std::make_shared<Graph>();
  const ValueId x = body->add_input({"i0", {DType::kF32, {64}}});
  body->add_output(body->node(body->add_node("v0", op, {x})).outputs[0]);
  return body;
}

TEST(Templates, ABodyFindsItsTemplateByAsking) {
  std::vector<const Template*> all{&kProbe};
  all.insert(all.end(), templates().begin(), templates().end());
  const auto neg = body_of("neg");
  EXPECT_EQ(&find_template(*neg, all), &kProbe);
  EXPECT_EQ(find_template(*body_of("exp"), all).name, "elementwise");
  EXPECT_EQ(find_template(*neg).name, "elementwise");

  const KernelSpec spec{neg, kProbe.default_config(*neg, Target{})};
  const tile::Program program = build_program(kProbe, spec, Target{}, 1);
  EXPECT_EQ(program.entry, "probe_neg");
  EXPECT_NE(tile::print_cuda(program).find("probe_neg("), std::string::npos);
}

TEST(Templates, AnEmptyBodyIsABarrierOfItsGroup) {
  auto body = std::make_shared<Graph>();
  EXPECT_EQ(find_template(*body).name, "barrier");
  EXPECT_EQ(cannot_fuse(*body), "an empty body is a barrier of one group, found 0");
  body->add_group("tp", {40, true, {}});  // more peers than a warp has threads
  EXPECT_EQ(cannot_fuse(*body), "");
  const KernelSpec spec{body, default_config(*body, Target{})};
  const Requirements needs = requirements(spec, Target{}, 8);
  EXPECT_EQ(needs.template_name, "barrier");
  EXPECT_EQ(needs.comm_group, "tp");
  EXPECT_EQ(needs.grid, Expr(1));
  EXPECT_EQ(needs.threads, 32);
  EXPECT_EQ(needs.flag_words, 1 + 40);  // an epoch, and one slot
  EXPECT_EQ(needs.scratch_bytes, 0);
  EXPECT_TRUE(needs.remote.empty());
  body->add_group("dp", {2, true, {}});
  EXPECT_EQ(cannot_fuse(*body), "an empty body is a barrier of one group, found 2");
}

TEST(Templates, AHalfOfABarrierSignalsOrWaits) {
  auto body = std::make_shared<Graph>();
  body->add_group("pair", {2, true, {}});
  KernelSpec spec{body, default_config(*body, Target{})};
  EXPECT_TRUE(requirements(spec, Target{}).meets);
  const auto text_of_half = [&](std::int64_t half) {
    spec.config[kHalf] = half;
    const Requirements needs = requirements(spec, Target{});
    EXPECT_FALSE(needs.meets);
    EXPECT_EQ(needs.flag_words, 1 + 2);
    const std::string text = emit(spec, Target{}).text;
    return text.substr(text.find("__global__"));
  };
  const std::string signal = text_of_half(kSignalHalf);
  EXPECT_NE(signal.find("signal_one(comm, peers, 0, "), std::string::npos) << signal;
  EXPECT_EQ(signal.find("wait"), std::string::npos) << signal;
  const std::string wait = text_of_half(kWaitHalf);
  EXPECT_NE(wait.find("wait_one(comm, peers, 0, "), std::string::npos) << wait;
  EXPECT_EQ(wait.find("signal"), std::string::npos) << wait;
}

TEST(Templates, CandidatesFitAndStartWithTheDefault) {
  for (const auto& sample : testing::sample_specs(Target{})) {
    const Graph& body = *sample.spec.body;
    const std::vector<Config> all = candidates(body, Target{});
    ASSERT_FALSE(all.empty()) << sample.name;
    EXPECT_EQ(all[0], sample.spec.config) << sample.name;
    EXPECT_EQ(std::set<Config>(all.begin(), all.end()).size(), all.size()) << sample.name;
    for (const Config& config : all) {
      for (const Setting& setting : settings(body)) {
        const std::int64_t value = config.at(std::string(setting.name));
        EXPECT_TRUE(setting.min <= value && value <= setting.max) << sample.name;
      }
      EXPECT_NO_THROW(static_cast<void>(requirements({sample.spec.body, config}, Target{})))
          << sample.name;
    }
  }
}

}  // namespace
}  // namespace braid
