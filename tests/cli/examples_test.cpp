// Every example through the command line: right on the cpu device, without spills on any target.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/process.h"

namespace braid {
namespace {

using nlohmann::json;
using test::run_braid;

struct Example {
  std::string path, binding;
};

/// The committed graphs, and a decoder of 32 layers that the build printed.
std::vector<Example> examples() {
  std::vector<Example> found;
  for (const auto& entry : std::filesystem::directory_iterator(BRAID_EXAMPLES)) {
    if (entry.path().extension() != ".json") continue;
    const bool images = entry.path().stem() == "vision_mlp";
    found.push_back({entry.path().string(), images ? "B=2" : "T=8"});
  }
  found.push_back({BRAID_LLAMA, "T=8"});
  return found;
}

TEST(Examples, AreRight) {
  const auto all = examples();
  ASSERT_GE(all.size(), 5U);
  for (const Example& example : all) {
    const auto result = run_braid(
        {"run", example.path, "--device", "cpu", "--bind", example.binding, "--check", "--json"});
    ASSERT_EQ(result.exit_code, 0) << example.path << "\n" << result.err << result.out;
    const json document = json::parse(result.out);
    EXPECT_TRUE(document["ok"]) << example.path;
    for (const json& kernel : document["kernels"]) EXPECT_EQ(kernel["spill_bytes"], 0) << kernel;
  }
}

TEST(Examples, RunCleanUnderTheSanitizer) {
  for (const Example& example : examples()) {
    const std::string binding = example.binding.substr(0, 2) + "2";
    const auto result = run_braid({"run", example.path, "--device", "cpu", "--bind", binding,
                                   "--check", "--sanitize", "--json"});
    EXPECT_EQ(result.exit_code, 0) << example.path << "\n" << result.err << result.out;
    EXPECT_TRUE(json::parse(result.out)["findings"].empty()) << example.path;
  }
}

TEST(Examples, CompileWithoutSpillsForEveryTarget) {
  for (const Example& example : examples()) {
    for (const char* target : {"sm_90a", "sm_100a"}) {
      const test::TemporaryDirectory directory;
      const auto result =
          run_braid({"compile", example.path, "--target", target, "-o", directory / "out"});
      ASSERT_EQ(result.exit_code, 0) << example.path << "\n" << result.err;
      std::ifstream file(directory / "out/kernels.json");
      const json document = json::parse(file);
      for (const json& kernel : document["kernels"]) {
        EXPECT_EQ(kernel["spill_bytes"], 0) << example.path << " " << target << " " << kernel;
      }
    }
  }
}

// 32 equal layers have the kernels of one, and those at the ends.
TEST(Examples, LayersShareTheirKernels) {
  const auto result = run_braid({"run", BRAID_LLAMA, "--device", "cpu", "--bind", "T=1", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json document = json::parse(result.out);
  std::size_t launches = 0;
  for (const json& kernel : document["kernels"]) launches += kernel["launches"].get<std::size_t>();
  EXPECT_LE(document["kernels"].size(), 9U);
  EXPECT_GE(launches, 7U * 32U);
}

// A decoder through all passes: all-reduces became gathers and scatters, and those chunks.
TEST(Examples, ALlamaIsSequenceParallel) {
  const std::string passes = "sequence_parallel,micro_pipeline";
  const auto explained = run_braid({"explain", BRAID_LLAMA_PER_RANK, "--enable", passes});
  ASSERT_EQ(explained.exit_code, 0) << explained.err;
  constexpr std::ptrdiff_t kScreen = 50;
  EXPECT_LT(std::count(explained.out.begin(), explained.out.end(), '\n'), kScreen);
  EXPECT_NE(explained.out.find("micro_pipeline, split_reductions"), std::string::npos);
  // The graph may stand behind the passes.
  const auto result = run_braid({"run", "--enable", passes, BRAID_LLAMA_PER_RANK, "--device", "cpu",
                                 "--bind", "T=2", "--check", "--json", "--always-pipeline"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json document = json::parse(result.out);
  int meetings = 0;
  for (const json& kernel : document["kernels"]) {
    EXPECT_EQ(kernel["ops"].dump().find("all_reduce"), std::string::npos) << kernel;
    EXPECT_EQ(kernel["ops"].dump().find("reduce_scatter"), std::string::npos) << kernel;
    if (kernel["template"] == "barrier") meetings += kernel["launches"].get<int>();
  }
  EXPECT_GT(meetings, 4) << "gathers and scatters of each layer in chunks";
}

TEST(Examples, TheDocsShowWhatExplainPrints) {
  std::ifstream file(BRAID_EXAMPLES "/../docs/command.md");
  const std::string page(std::istreambuf_iterator<char>(file), {});
  const std::string line = "$ braid explain examples/llama_mlp.json\n";
  const std::size_t begin = page.find(line);
  ASSERT_NE(begin, std::string::npos);
  const std::string shown =
      page.substr(begin + line.size(), page.find("```", begin) - begin - line.size());
  EXPECT_EQ(run_braid({"explain", BRAID_EXAMPLES "/llama_mlp.json"}).out, shown);
}

}  // namespace
}  // namespace braid
