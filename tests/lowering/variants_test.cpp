// A program with variants: what lower() makes of a graph with buckets, and what verify() refuses.
#include "lowering/plan/variants.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "braid/error.h"
#include "codegen/kernel/spec.h"
#include "ir/buckets.h"
#include "lowering/lowering_testing.h"
#include "lowering/passes.h"
#include "lowering/plan_testing.h"

namespace braid {
namespace {

using testing::append;
using testing::expect_is_read_back;
using ::testing::HasSubstr;
using testing::id;
using testing::problem;

// A row's matmul, its sum over ranks and more.
Graph sum_graph(std::string_view buckets, std::int64_t k = 64) {
  return parse_graph(fmt::format(R"({{
    "braid": 1, "name": "sum",
    "symbols": {{"T": {{"min": 1, "max": 4096{}}}}}, "groups": {{"tp": {{"size": 2}}}},
    "inputs": [{{"name": "x", "dtype": "bf16", "shape": ["T", {}]}},
               {{"name": "w", "dtype": "bf16", "shape": [{}, 64], "kind": "parameter"}}],
    "nodes": [{{"name": "p", "op": "mm", "inputs": ["x", "w"]}},
              {{"name": "c", "op": "all_reduce", "inputs": ["p"],
                "attrs": {{"reduce_op": "sum", "group": "tp"}}}},
              {{"name": "s", "op": "wait_tensor", "inputs": ["c"]}},
              {{"name": "y", "op": "neg", "inputs": ["s"]}}],
    "outputs": ["y", "s"]}})",
                                 buckets, k, k));
}

constexpr const char* kThree = R"(, "buckets": [16, {"max": 4096, "multiple_of": 64}])";

Program lowered(const Graph& graph, PassConfig config = {}) {
  PassContext context = testing::sm80();
  context.config = std::move(config);
  return lower(graph, context);
}

std::vector<int> ids(const Program& program, BufferKind kind) {
  std::vector<int> found;
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    if (program.buffers[b].kind == kind) found.push_back(static_cast<int>(b));
  }
  return found;
}

TEST(Variants, AreOneForEachBucketAndOneForTheRest) {
  const Program program = lowered(sum_graph(kThree));
  ASSERT_EQ(program.variants.size(), 3);
  EXPECT_EQ(program.symbols.at("T"), (Symbol{.min = 1, .max = 4096}));
  const auto at = [&](std::int64_t tokens) { return variant_at(program, {{"T", tokens}}); };
  EXPECT_EQ(at(1), 0);
  EXPECT_EQ(at(16), 0);
  EXPECT_EQ(at(17), 2);
  EXPECT_EQ(at(64), 1);
  EXPECT_EQ(at(65), 2);
  EXPECT_EQ(at(4096), 1);
  EXPECT_THROW((void)at(4097), Error);
  EXPECT_THROW((void)variant_at(program, {}), Error);
  expect_is_read_back(program);
}

TEST(Variants, WithoutBucketsThereAreNone) {
  const Program program = lowered(sum_graph(""));
  EXPECT_TRUE(program.variants.empty());
  EXPECT_EQ(to_json(program).find("variants"), std::string::npos);
  EXPECT_EQ(variants_of(program).size(), 1);
  EXPECT_EQ(variant_at(program, {{"T", 5}}), 0);
}

// Each as the program of its range alone, but for where its words lie.
TEST(Variants, HaveTheStepsOfTheirRange) {
  const Graph graph = sum_graph(kThree);
  const Program program = lowered(graph);
  const std::vector<Symbol> ranges = parts_of(graph.symbols().at("T"));
  for (std::size_t v = 0; v < 3; ++v) {
    Graph alone("sum");
    const Program part = part_of(program, program.variants[v]);
    EXPECT_EQ(part.symbols.at("T"), ranges[v]);
    std::string symbol = fmt::format(R"("T": {{"min": {}, "max": {}, "multiple_of": {}}})",
                                     ranges[v].min, ranges[v].max, ranges[v].multiple_of);
    std::string text = to_json(sum_graph(""));
    const std::string whole = R"("T": {"min": 1, "max": 4096})";
    text.replace(text.find(whole), whole.size(), symbol);
    const Program own = lowered(parse_graph(text));
    ASSERT_EQ(part.steps.size(), own.steps.size());
    ASSERT_EQ(part.kernels.size(), own.kernels.size());
    for (std::size_t k = 0; k < own.kernels.size(); ++k) {
      EXPECT_EQ(emit(part.kernels[k].spec, part.target).text,
                emit(own.kernels[k].spec, own.target).text);
    }
    EXPECT_EQ(problem(own), "");
  }
  // The first has narrower tiles, the second asks for no row whether it is there.
  std::vector<std::string> matmuls;
  for (const ProgramKernel& kernel : program.kernels) {
    if (kernel.needs.template_name == "gemm") {
      matmuls.push_back(emit(kernel.spec, program.target).text);
    }
  }
  ASSERT_EQ(matmuls.size(), 3);
  EXPECT_NE(matmuls[0], matmuls[2]);
  EXPECT_LT(matmuls[1].size(), matmuls[2].size());
}

TEST(Variants, ShareTheirMemoryButForTheirWords) {
  const Program program = lowered(sum_graph(kThree), {.all_reduce = "ll"});
  const std::vector<int> scratch = ids(program, BufferKind::kScratch);
  ASSERT_EQ(scratch.size(), 3);
  std::vector<std::pair<std::int64_t, std::int64_t>> places;
  for (const int b : scratch) {
    const Buffer& buffer = program.buffers[static_cast<std::size_t>(b)];
    places.emplace_back(buffer.offset, buffer.offset + buffer.bytes);
  }
  std::sort(places.begin(), places.end());
  EXPECT_LE(places[0].second, places[1].first);
  EXPECT_LE(places[1].second, places[2].first);
  const auto workspace = [](const Program& p) {
    for (const Arena& arena : p.arenas) {
      if (arena.kind == ArenaKind::kWorkspace) return arena.bytes;
    }
    return std::int64_t{0};
  };
  EXPECT_EQ(workspace(program), workspace(lowered(sum_graph(""), {.all_reduce = "ll"})));
}

// A sum that is cut for few rows only would give them other bits.
TEST(Variants, CutSumsAlike) {
  const auto cuts = [](const PassConfig& config) {
    std::vector<bool> result;
    const Program program = lowered(sum_graph(kThree, 1024), config);
    for (const Variant& variant : program.variants) {
      bool cut = false;
      for (int k = variant.kernels.first; k < variant.kernels.end; ++k) {
        const Graph& body = *program.kernels[static_cast<std::size_t>(k)].spec.body;
        for (const Node& node : body.nodes()) cut = cut || node.op_name() == "matmul";
      }
      result.push_back(cut);
    }
    return result;
  };
  const std::vector<bool> alike = cuts({});
  EXPECT_EQ(alike, std::vector<bool>(3, alike[0]));
  EXPECT_NE(cuts({.batch_invariant = false}), alike);
}

TEST(Variants, OfOneProgramTheHashCoversAll) {
  Program program = lowered(sum_graph(kThree));
  const std::string hash = program.hash;
  program.variants[0].symbols.find("T")->second.max = 15;
  EXPECT_NE(hash_of(program), hash);
}

TEST(Variants, ThatTouchEachOthersWordsAreRefused) {
  const Program good = lowered(sum_graph(kThree), {.all_reduce = "one_shot"});
  ASSERT_EQ(problem(good), "");
  const std::vector<int> flags = ids(good, BufferKind::kFlags);
  ASSERT_EQ(flags.size(), 3);
  const auto of = [&](Program& program, int v) -> Buffer& {
    return program.buffers[static_cast<std::size_t>(flags[static_cast<std::size_t>(v)])];
  };
  Program program = good;
  of(program, 1).offset = of(program, 0).offset;
  EXPECT_THAT(problem(program), HasSubstr("of another variant share bytes that outlive runs"));
  program = good;  // words of the last variant where the first has its operand
  for (int b = program.variants[0].buffers.first; b < program.variants[0].buffers.end; ++b) {
    const Buffer& operand = program.buffers[static_cast<std::size_t>(b)];
    const Arena& arena = program.arenas[static_cast<std::size_t>(operand.arena)];
    if (arena.kind != ArenaKind::kSymmetric || operand.kind != BufferKind::kTensor) continue;
    // In front of its own operand, which goes where it has room.
    for (int own = program.variants[2].buffers.first; own < program.variants[2].buffers.end;
         ++own) {
      Buffer& buffer = program.buffers[static_cast<std::size_t>(own)];
      if (buffer.arena == operand.arena)
        buffer.offset += buffer.kind == BufferKind::kTensor ? 4096 : 0;
    }
    program.arenas[static_cast<std::size_t>(operand.arena)].bytes += 2 << 20;
    of(program, 2).offset = operand.offset;
  }
  EXPECT_NE(problem(program), "");
}

TEST(Variants, ThatNameWhatIsNotTheirsAreRefused) {
  const Program good = lowered(sum_graph(kThree));
  const auto refused = [&](auto damage) {
    Program program = good;
    damage(program);
    const std::string text = problem(program);
    EXPECT_NE(text, "");
    return text;
  };
  const auto last = [](Program& p) -> Step& { return p.steps.back(); };
  refused([&](Program& p) { last(p).kernel = 0; });
  refused([&](Program& p) { last(p).inputs[0] = p.variants[0].buffers.first; });
  refused([&](Program& p) { p.inputs[0].buffer = p.variants[0].buffers.first; });
  EXPECT_THAT(refused([](Program& p) { p.variants.pop_back(); }),
              HasSubstr("lists of the variants are not those of the program"));
  EXPECT_THAT(refused([](Program& p) { --p.variants[0].steps.end; }),
              HasSubstr("do not follow each other"));
  EXPECT_THAT(refused([](Program& p) { p.variants[1].symbols.find("T")->second.max = 8192; }),
              HasSubstr("symbols of a variant"));
  EXPECT_THAT(refused([](Program& p) { p.variants[1].symbols.clear(); }),
              HasSubstr("symbols of a variant"));
  EXPECT_THAT(refused([](Program& p) { p.arenas[0].bytes += std::int64_t{4} << 20U; }),
              HasSubstr("and ends at"));
}

TEST(Variants, DamagedOnesAreRefusedWithTheirPlace) {
  const std::string good = to_json(lowered(sum_graph(kThree)));
  const auto told = [&](const std::string& from, const std::string& to) -> std::string {
    std::string text = good.substr(0, good.rfind(",\n \"hash\"")) + "}\n";
    text.replace(text.find(from, text.find("\"variants\"")), from.size(), to);
    try {
      (void)parse_program(text, "p.json");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(told(R"("steps": 2)", R"("steps": 3)"), HasSubstr("p.json"));
  EXPECT_THAT(told(R"("steps": 2)", R"("steps": -1)"),
              HasSubstr("p.json:/variants/0/steps: found -1; expected an index"));
  EXPECT_THAT(told(R"("buffers": )", R"("buffers": 99999999)"),
              HasSubstr("p.json:/variants/0/buffers: "));
  EXPECT_THAT(told(R"("max": 16)", R"("max": 4097)"), HasSubstr("p.json"));
  EXPECT_THAT(told(R"("variants": [)", R"("variants": [], "inputs2": [)"), HasSubstr("p.json"));
}

}  // namespace
}  // namespace braid
