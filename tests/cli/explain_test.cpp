// The commands' messages about graphs that cannot be planned, or only for later GPUs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/process.h"

namespace braid {
namespace {

using nlohmann::json;
using test::run_braid;
using testing::HasSubstr;

/// A gather and its matmul over a group without symmetric memory, which is not pipelined, and a
/// gather by hand that no communicator can do.
const char* const kNoSymmetricMemory = R"({"braid": 1, "name": "g",
  "groups": {"tp": {"size": 2, "symmetric": false}},
  "inputs": [{"name": "s", "dtype": "f32", "shape": [32, 32], "per_rank": true},
             {"name": "b", "dtype": "f32", "shape": [32, 16], "per_rank": true}],
  "nodes": [{"name": "g", "op": "all_gather_into_tensor", "inputs": ["s"], "attrs": {"group": "tp"}},
            {"name": "w", "op": "wait_tensor", "inputs": ["g"]},
            {"name": "m", "op": "mm", "inputs": ["w", "b"]},
            {"name": "h", "op": "all_gather_into_tensor", "inputs": ["s"],
             "attrs": {"group": "tp", "dim": 1, "algorithm": "nccl"}},
            {"name": "v", "op": "wait_tensor", "inputs": ["h"]}],
  "outputs": ["m", "v"]})";

TEST(Explain, PrintsTheRemarksBeforeAnErrorOfALatePass) {
  const std::string error =
      "braid: error: h: all_gather_into_tensor along dim 1; expected dim 0 of a communicator\n";
  const auto text = run_braid({"explain", "-", "--enable", "micro_pipeline"}, kNoSymmetricMemory);
  EXPECT_EQ(text.exit_code, 2);
  EXPECT_EQ(text.err, error);
  EXPECT_THAT(text.out, HasSubstr("g: 5 nodes on 2 ranks; no plan, for a pass failed\n"));
  EXPECT_THAT(text.out, HasSubstr("group tp: 2 ranks, no symmetric memory\n"));
  EXPECT_THAT(text.out, HasSubstr("  missed   g, h: group 'tp' has no symmetric memory"));
  const auto result =
      run_braid({"explain", "-", "--enable", "micro_pipeline", "--json"}, kNoSymmetricMemory);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err, error);
  const json document = json::parse(result.out, nullptr, false);
  ASSERT_TRUE(document.is_object());
  EXPECT_EQ("braid: error: " + document["error"].get<std::string>() + "\n", error);
  EXPECT_FALSE(document.contains("steps"));
  const json remark = document["remarks"].front();
  EXPECT_EQ(remark["node"], "g");
  EXPECT_EQ(remark["code"], "micro_pipeline.not_symmetric");
  EXPECT_EQ(remark["arguments"], json({{"group", "tp"}}));
  EXPECT_EQ(document["config"]["always_pipeline"], false);
}

TEST(Opt, HelpTellsThePassesFromTheirRecords) {
  const auto help = run_braid({"opt", "--help"});
  EXPECT_EQ(help.exit_code, 0) << help.err;
  EXPECT_THAT(help.out, HasSubstr("  fuse               clusters the compute nodes into kernels"));
  EXPECT_THAT(help.out, HasSubstr("where --enable names it"));
  EXPECT_THAT(help.out, HasSubstr("--always-pipeline"));
}

/// A fused gather with a matmul of 8-bit floats, which sm_89 brought.
const char* const kFloat8 = R"({"braid": 1, "name": "f8", "groups": {"tp": {"size": 2}},
  "inputs": [{"name": "x", "dtype": "f8e4m3", "shape": [16, 32], "per_rank": true},
             {"name": "w", "dtype": "f8e4m3", "shape": [32, 16], "per_rank": true},
             {"name": "s", "dtype": "f32", "shape": []}],
  "nodes": [{"name": "f", "op": "fused_all_gather_scaled_matmul", "inputs": ["x", "w", "s", "s"],
             "attrs": {"gather_dim": 0, "return_A": false, "group": "tp"}}],
  "outputs": ["f"]})";

TEST(Target, IsTheLeastOfTheGraphForEveryCommand) {
  const test::TemporaryDirectory directory;
  const auto explained = run_braid({"explain", "-"}, kFloat8);
  EXPECT_EQ(explained.exit_code, 0) << explained.err;
  EXPECT_THAT(explained.out, HasSubstr("target sm_89; "));
  const auto opt =
      run_braid({"opt", "-", "--passes", "lower_collectives,fuse,build_program"}, kFloat8);
  EXPECT_EQ(opt.exit_code, 0) << opt.err;
  EXPECT_EQ(json::parse(opt.out)["target"], "sm_89");
  const auto compiled = run_braid({"compile", "-", "-o", directory / "out", "--json"}, kFloat8);
  EXPECT_EQ(compiled.exit_code, 0) << compiled.err;
  EXPECT_EQ(json::parse(compiled.out)["target"], "sm_89");
  const auto ran = run_braid({"run", "-", "--device", "cpu", "--check"}, kFloat8);
  EXPECT_EQ(ran.exit_code, 0) << ran.err << ran.out;
  const auto later =
      run_braid({"run", "-", "--device", "cpu", "--check", "--target", "sm_90a"}, kFloat8);
  EXPECT_EQ(later.exit_code, 0) << later.err << later.out;
}

TEST(Target, ThatIsTooLowIsRefusedByEveryCommand) {
  const test::TemporaryDirectory directory;
  const std::vector<std::vector<std::string>> commands = {{"explain", "-"},
                                                          {"opt", "-", "--passes", "canonicalize"},
                                                          {"compile", "-", "-o", directory / "out"},
                                                          {"run", "-", "--device", "cpu"}};
  for (std::vector<std::string> command : commands) {
    command.insert(command.end(), {"--target", "sm_80"});
    const auto result = run_braid(command, kFloat8);
    EXPECT_EQ(result.exit_code, 2) << command[0];
    EXPECT_THAT(
        result.err,
        testing::EndsWith("braid: error: /nodes/0: fused_all_gather_scaled_matmul \"f\" needs "
                          "sm_89 or later; the target is sm_80\n"));
  }
  EXPECT_THAT(run_braid({"run", "-", "--device", "cpu", "--target", "volta"}, kFloat8).err,
              HasSubstr("found 'volta', expected sm_80 or later"));
}

TEST(Units, AreListedForEveryCommand) {
  const test::TemporaryDirectory directory;
  const std::string some = "sm_89:fma,ld/st,cp.async";
  const auto explained = run_braid({"explain", "-", "--units", "cp.async"}, kFloat8);
  EXPECT_THAT(explained.out, HasSubstr("target " + some + "; "));
  const auto compiled = run_braid(
      {"compile", "-", "-o", directory / "out", "--json", "--units", "cp.async"}, kFloat8);
  EXPECT_EQ(json::parse(compiled.out)["target"], some);
  const auto planned = run_braid({"run", directory / "out/program.json", "--device", "cpu"}, "");
  EXPECT_EQ(planned.exit_code, 0) << planned.err;
  const auto ran = run_braid(
      {"run", "-", "--device", "cpu", "--check", "--units", "fma", "--target", "sm_90a"}, kFloat8);
  EXPECT_EQ(ran.exit_code, 0) << ran.err << ran.out;
  EXPECT_THAT(run_braid({"run", "--help"}).out, HasSubstr("--units"));
  for (const char* command : {"explain", "run"}) {
    const auto wrong = run_braid({command, "-", "--units", "cp.async,mma"}, kFloat8);
    EXPECT_EQ(wrong.exit_code, 2);
    EXPECT_THAT(wrong.err,
                HasSubstr("units: found 'mma', expected some of fma, mma.sync, wgmma, tcgen05, "
                          "ld/st, cp.async, cp.async.bulk.tensor, multimem\n"));
  }
}

}  // namespace
}  // namespace braid
