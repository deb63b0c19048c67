#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <string>

#include "braid/error.h"
#include "codegen/cuda/print_cuda.h"
#include "codegen/device_model.h"
#include "codegen/kernel/joined.h"
#include "codegen/kernel/rough_time.h"
#include "codegen/sample_specs.h"
#include "codegen/work/work.h"

namespace braid {
namespace {

using ::testing::HasSubstr;

// What a new kernel is: a work, and a line of a list.
void emit_probe(const Piece& piece) {
  tile::Builder& b = piece.b;
  const tile::Id in = b.param({.kind = KernelParam::Kind::kInput, .group = {}}, 16);
  const tile::Id out = b.param({.kind = KernelParam::Kind::kOutput, .group = {}}, 16);
  const int cols = static_cast<int>(piece.config.at("num_warps")) * 32;
  const tile::Id at = b.range(1, cols, 1);
  b.store(out, at, b.map(tile::Fn::kNeg, {b.load(in, at, tile::kNone, DType::kF32)}), tile::kNone,
          DType::kF32);
}
constexpr Setting kProbeSettings[] = {{"num_warps", 1, 4, true}};
const Work kProbeWork{
    .settings = kProbeSettings,
    .matches = [](const Graph& body) { return body.nodes()[0].op_name() == "neg"; },
    .refuse = [](const BodyFacts& facts) -> std::string {
      return facts.body.nodes().size() == 1 ? "" : "it does one thing";
    },
    .pieces = [](const BodyFacts&, const Config&) -> std::optional<Pieces> { return Pieces{}; },
    .emit = emit_probe,
};
const Kernel kProbe{.name = "probe", .phases = {{&kProbeWork}}};

std::shared_ptr<Graph> body_of(const char* op) {
  auto body = std::make_shared<Graph>();
  const ValueId x = body->add_input({"i0", {DType::kF32, {64}}});
  body->add_output(body->node(body->add_node("v0", op, {x})).outputs[0]);
  return body;
}

TEST(Templates, ABodyFindsItsKernelByAsking) {
  std::vector<Kernel> all{kProbe};
  all.insert(all.end(), kernels().begin(), kernels().end());
  const auto neg = body_of("neg");
  EXPECT_EQ(find_kernel(*neg, all).name, "probe");
  EXPECT_EQ(find_kernel(*body_of("exp"), all).name, "elementwise");
  EXPECT_EQ(find_kernel(*neg).name, "elementwise");

  const KernelSpec spec{neg, {{"num_warps", 2}}};
  const Stage stage{kProbe, analyze(*neg), spec.config};
  const tile::Program program = build_program({&stage, 1}, spec, Target{}, 1);
  EXPECT_EQ(program.entry, "probe_neg");
  EXPECT_NE(tile::print_cuda(program).find("probe_neg("), std::string::npos);
}

TEST(Templates, AnEmptyBodyIsABarrierOfItsGroup) {
  auto body = std::make_shared<Graph>();
  EXPECT_EQ(find_kernel(*body).name, "barrier");
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

TEST(Templates, CandidatesFitAndStartWithTheDefault) {
  for (const auto& sample : testing::sample_specs(Target{})) {
    const Graph& body = *sample.spec.body;
    const std::vector<Config> all = candidates(body, Target{});
    ASSERT_FALSE(all.empty()) << sample.name;
    EXPECT_EQ(all[0], sample.spec.config) << sample.name;
    EXPECT_EQ(std::set<Config>(all.begin(), all.end()).size(), all.size()) << sample.name;
    for (const Config& config : all) {
      for (const Setting& setting : settings(body)) {
        const auto found = config.find(std::string(setting.name));
        if (found == config.end() && setting.name == kRingSetting) continue;  // none has a role
        const std::int64_t value = found->second;
        EXPECT_TRUE(setting.min <= value && value <= setting.max) << sample.name;
      }
      EXPECT_NO_THROW(static_cast<void>(requirements({sample.spec.body, config}, Target{})))
          << sample.name;
    }
  }
}

Graph product(int m, int n, int k, const std::string& dtype = "bf16") {
  const auto tensor = [&](const char* name, int rows, int columns) {
    return R"({"name": ")" + std::string(name) + R"(", "dtype": ")" + dtype + R"(", "shape": [)" +
           std::to_string(rows) + ", " + std::to_string(columns) + "]}";
  };
  return parse_graph(R"({"braid": 1, "name": "mm", "inputs": [)" + tensor("x", m, k) + ", " +
                     tensor("w", k, n) + R"(],
    "nodes": [{"name": "y", "op": "mm", "inputs": ["x", "w"]}], "outputs": ["y"]})");
}

// A plan may come from anywhere.
TEST(Templates, ARingThatCannotBeIsRefused) {
  const Target target = Target::parse("H100");
  const auto said = [&](const Graph& body, const Config& changes) -> std::string {
    Config config = default_config(body, target);
    config[kRingSetting] = 1;
    for (const auto& [name, value] : changes) config[name] = value;
    try {
      static_cast<void>(requirements({std::make_shared<Graph>(body), config}, target));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const Graph good = product(4096, 4096, 4096);
  EXPECT_EQ(said(good, {}), "");
  EXPECT_THAT(said(good, {{"num_warps", 2}}), HasSubstr("ring 1: 2 warps; expected 4 or 8"));
  EXPECT_THAT(said(good, {{"num_warps", 16}}), HasSubstr("ring 1: 16 warps"));
  EXPECT_THAT(said(good, {{"BLOCK_M", 64}}), HasSubstr("ring 1: tiles of 64 x 256 x 64"));
  EXPECT_THAT(said(good, {{"BLOCK_N", 32}}),
              HasSubstr("expected at least 128 x 64, and 128 bytes"));
  EXPECT_THAT(said(good, {{"BLOCK_K", 32}}), HasSubstr("ring 1: tiles of 128 x 256 x 32"));
  EXPECT_THAT(said(product(64, 64, 100), {}), HasSubstr("ring 1: its operands are not matrices"));
  const Graph rows = parse_graph(R"({"braid": 1, "name": "rows",
    "inputs": [{"name": "x", "dtype": "bf16", "shape": [64, 64]}],
    "nodes": [{"name": "y", "op": "relu", "inputs": ["x"]}], "outputs": ["y"]})");
  EXPECT_THAT(said(rows, {}), HasSubstr("ring 1: it has no form with a ring"));
}

// A quarter of a multiprocessor's matrix unit is at hand of each warp.
TEST(MatmulTiles, UseAllPartsOfAMultiprocessor) {
  const Target target;
  const int sms = device_model(target).sms;
  for (const auto& [m, n, k] :
       {std::array{128, 2880, 4096}, {128, 4096, 11008}, {64, 4096, 4096}}) {
    const Config config = default_config(product(m, n, k), target);
    const auto along = [&](int extent, const char* block) {
      return (extent + config.at(block) - 1) / config.at(block);
    };
    const std::int64_t blocks = along(m, "BLOCK_M") * along(n, "BLOCK_N");
    EXPECT_GE((blocks + sms - 1) / sms * config.at("num_warps"), 4) << m << "x" << n << "x" << k;
  }
}

// A quarter of a multiprocessor has registers for two warps with 200 each: eight tiles of 64 x 64
// by one warp are at work on one at a time, not nine, so 896 need a second wave where 864 do not.
TEST(MatmulTiles, AWarpHasRegistersOfOneQuarter) {
  const Config config{{"BLOCK_M", 64}, {"BLOCK_N", 64},   {"BLOCK_K", 32},
                      {"GROUP_M", 8},  {"num_stages", 2}, {"num_warps", 1}};
  const auto ns = [&](int n) {
    return rough_ns({std::make_shared<const Graph>(product(128, n, 8192)), config}, {}, Target{});
  };
  EXPECT_GT(ns(28672), 1.3 * ns(27648));
}

// Copies of many small blocks are under way while others multiply, so 256 tiles of 16 rows read
// this weight quicker than 64 of all 64 rows, although L2 serves it four times.
TEST(MatmulTiles, OfManyBlocksKeepMemoryBusy) {
  const auto body = std::make_shared<const Graph>(product(64, 4096, 11008));
  const auto ns = [&](std::int64_t rows, std::int64_t depth, std::int64_t warps) {
    const Config config{{"BLOCK_M", rows}, {"BLOCK_N", 64},   {"BLOCK_K", depth},
                        {"GROUP_M", 8},    {"num_stages", 8}, {"num_warps", warps}};
    return rough_ns({body, config}, {}, Target{});
  };
  EXPECT_LT(ns(16, 32, 2), 0.97 * ns(64, 64, 8));
}

// An access takes 16 bytes at most, and neighbouring threads take neighbouring ones.
TEST(Elementwise, AThreadHasAsManyElementsAsItsConfigSays) {
  auto body = std::make_shared<Graph>();
  const ValueId x = body->add_input({"i0", {DType::kF16, {16384}}});
  body->add_output(body->node(body->add_node("v0", "exp", {x})).outputs[0]);
  const auto has = [&](Config config, const char* part) {
    return emit({body, std::move(config)}, Target{}).text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(has({{"num_warps", 4}}, "  load_f16_8(v"));
  EXPECT_TRUE(has({{"num_warps", 4}, {"elements", 4}}, "  load_f16_4(v"));
  EXPECT_TRUE(has({{"num_warps", 4}, {"elements", 16}}, "i < 16; i += 8)\n    load_f16_8(v"));
  const auto grid = [&](Config config) {
    return requirements({body, std::move(config)}, Target{}).grid.evaluate({});
  };
  EXPECT_EQ(grid({{"num_warps", 4}}), 16);
  EXPECT_EQ(grid({{"num_warps", 4}, {"elements", 4}}), 32);
  EXPECT_EQ(grid({{"num_warps", 4}, {"elements", 16}}), 8);
}

// Rows of a weight [K, N] are read by whole lines; of [N, K] a tile has rows of K.
TEST(MatmulTiles, OfFewRowsReadLinesOfTheirWeight) {
  for (const char* device : {"A100", "H100"}) {
    const Target target = Target::parse(device);
    for (const auto& [n, k] : {std::pair{4096, 4096}, {4096, 14336}, {2048, 1024}, {1024, 8192}}) {
      for (const Config& config : candidates(product(1, n, k), target)) {
        ASSERT_GE(config.at("BLOCK_N"), 64) << device << ": " << n << "x" << k;
      }
    }
  }
  EXPECT_LT(default_config(product(1, 48, 64), Target{}).at("BLOCK_N"), 64);
}

// Each slot of a ring has what is read, and besides the ring there is a tile of each such operand.
TEST(MatmulTiles, OfOperandsThatAreMadeFit) {
  const auto body = std::make_shared<const Graph>(parse_graph(R"({"braid": 1, "name": "pair",
    "inputs": [{"name": "x", "dtype": "f8e5m2", "shape": [40, 1000]},
               {"name": "rows", "dtype": "f16", "shape": [40, 1]},
               {"name": "w", "dtype": "f8e4m3", "shape": [1000, 256]},
               {"name": "v", "dtype": "i32", "shape": [1000, 256]}],
    "nodes": [{"name": "a", "op": "to", "inputs": ["x"], "attrs": {"dtype": "f16"}},
              {"name": "b", "op": "mul", "inputs": ["rows", "a"]},
              {"name": "c", "op": "to", "inputs": ["w"], "attrs": {"dtype": "f16"}},
              {"name": "d", "op": "to", "inputs": ["v"], "attrs": {"dtype": "f16"}},
              {"name": "e", "op": "mm", "inputs": ["b", "c"]},
              {"name": "f", "op": "mm", "inputs": ["b", "d"]},
              {"name": "g", "op": "mul", "inputs": ["e", "f"]}], "outputs": ["g"]})"));
  const Target target = Target::parse("sm_89");
  for (const Config& config : candidates(*body, target)) {
    EXPECT_NO_THROW(static_cast<void>(requirements({body, config}, target)));
  }
}

// A collective has 32 blocks at most, so each takes as much of a flat tensor as threads can.
TEST(Collectives, OfFlatTensorsHaveThreadsByTheirSize) {
  const auto warps = [](int rows, int columns) {
    const Graph body = parse_graph(R"({"braid": 1, "name": "c", "groups": {"tp": {"size": 4}},
      "inputs": [{"name": "x", "dtype": "bf16", "shape": [)" +
                                   std::to_string(rows) + ", " + std::to_string(columns) +
                                   R"(], "per_rank": true}],
      "nodes": [{"name": "p", "op": "copy", "inputs": ["x"]},
                {"name": "c", "op": "all_reduce", "inputs": ["p"], "attrs":
                  {"reduce_op": "sum", "group": "tp", "algorithm": "ll"}}], "outputs": ["c"]})");
    return default_config(body, Target{}).at("num_warps");
  };
  EXPECT_EQ(warps(1, 4096), 4);
  EXPECT_EQ(warps(16, 4096), 8);
  EXPECT_EQ(warps(512, 4096), 16);
}

// They have one block on each multiprocessor, however small the product is.
TEST(MatmulTiles, OfKernelsThatWaitHaveFourWarps) {
  const Graph gathers = parse_graph(R"({"braid": 1, "name": "mm", "groups": {"tp": {"size": 2}},
    "inputs": [{"name": "x", "dtype": "bf16", "shape": [8, 64], "per_rank": true},
               {"name": "w", "dtype": "bf16", "shape": [64, 48]}],
    "nodes": [{"name": "c", "op": "all_gather_into_tensor", "inputs": ["x"],
               "attrs": {"group": "tp", "algorithm": "in_kernel"}},
              {"name": "y", "op": "mm", "inputs": ["c", "w"]}], "outputs": ["y"]})");
  ASSERT_EQ(template_name(gathers), "gather_gemm");
  EXPECT_EQ(default_config(gathers, Target{}).at("num_warps"), 4);
  EXPECT_EQ(default_config(product(16, 48, 64), Target{}).at("num_warps"), 1);
}

TEST(MatmulTiles, GoInOtherOrdersWhereL2DoesNotHoldTheOperands) {
  const auto orders = [](const Graph& body) {
    std::set<std::int64_t> found;
    for (const Config& config : candidates(body, Target{})) found.insert(config.at("GROUP_M"));
    return found;
  };
  EXPECT_EQ(orders(product(1024, 1024, 1024)), (std::set<std::int64_t>{8}));
  EXPECT_EQ(orders(product(8192, 8192, 28672)), (std::set<std::int64_t>{1, 8, 16}));
}

TEST(MatmulTiles, TheDefaultIsTheQuickestByItsRoughTime) {
  for (const char* dtype : {"bf16", "f16", "f32"}) {
    const auto body = std::make_shared<const Graph>(product(256, 1024, 4096, dtype));
    const std::vector<Config> all = candidates(*body, Target::parse("H100"));
    ASSERT_GT(all.size(), 1U);
    for (std::size_t i = 1; i < all.size(); ++i) {
      EXPECT_LE(rough_ns({body, all[i - 1]}, {}, Target::parse("H100")),
                rough_ns({body, all[i]}, {}, Target::parse("H100")));
    }
  }
}

}  // namespace
}  // namespace braid
