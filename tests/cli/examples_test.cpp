// Every example through the command line: right on the cpu device, without spills on any target.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <string>

#include "braid/reference.h"
#include "cli/process.h"

namespace braid {
namespace {

using nlohmann::json;
using test::run_braid;

const std::string kLlama = BRAID_LLAMAS "/llama_32_layers.json";
const std::string kLlamaPerRank = BRAID_LLAMAS "/llama_per_rank.json";

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
  found.push_back({kLlama, "T=8"});
  return found;
}

/// [token][vocabulary], by the reference: all tokens are one sequence's, and no cache has any.
std::vector<double> logits_of(const Graph& graph, const std::vector<std::int64_t>& tokens) {
  const std::int64_t count = std::ssize(tokens);
  const Bindings bindings{{"T", count}};
  RankTensors inputs = random_inputs(graph, bindings, 1);
  const HostTensor* weights = nullptr;
  for (auto& of_rank : inputs) {
    for (std::size_t i = 0; i < of_rank.size(); ++i) {
      const GraphInput& input = graph.inputs()[i];
      HostTensor& tensor = of_rank[i];
      if (input.name == "w_logits") weights = &tensor;
      if (input.kind == InputKind::kParameter) continue;
      const auto size = static_cast<std::size_t>(tensor.numel());
      std::vector<std::int64_t> values(size);
      if (input.name == "tokens") values = tokens;
      const bool counts = input.name == "positions" || input.name == "slots";
      if (counts || input.name == "page_table") std::iota(values.begin(), values.end(), 0);
      if (input.name == "lengths") values[0] = count;
      if (input.name == "starts") std::fill(values.begin() + 1, values.end(), count);
      tensor = input.kind == InputKind::kState
                   ? HostTensor::from_doubles(tensor.dtype, tensor.shape, std::vector<double>(size))
                   : HostTensor::from_integers(tensor.dtype, tensor.shape, values);
    }
  }
  const std::vector<double> rows = evaluate(graph, inputs, bindings)[0].back().to_doubles();
  const std::vector<double> matrix = weights->to_doubles();
  const std::size_t hidden = rows.size() / tokens.size();
  const std::size_t vocabulary = matrix.size() / hidden;
  std::vector<double> logits(tokens.size() * vocabulary);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    for (std::size_t k = 0; k < hidden; ++k) {
      logits[i] += rows[i / vocabulary * hidden + k] * matrix[k * vocabulary + i % vocabulary];
    }
  }
  return logits;
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
  const auto result = run_braid({"run", kLlama, "--device", "cpu", "--bind", "T=1", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json document = json::parse(result.out);
  std::size_t launches = 0;
  for (const json& kernel : document["kernels"]) launches += kernel["launches"].get<std::size_t>();
  EXPECT_LE(document["kernels"].size(), 13U);
  EXPECT_GE(launches, 7U * 32U);
}

// A decoder through all passes: all-reduces became gathers and scatters, and those chunks.
TEST(Examples, ALlamaIsSequenceParallel) {
  const std::string passes = "sequence_parallel,micro_pipeline";
  const auto explained = run_braid({"explain", kLlamaPerRank, "--enable", passes});
  ASSERT_EQ(explained.exit_code, 0) << explained.err;
  constexpr std::ptrdiff_t kScreen = 70;
  EXPECT_LT(std::count(explained.out.begin(), explained.out.end(), '\n'), kScreen);
  EXPECT_NE(explained.out.find("micro_pipeline, split_reductions"), std::string::npos);
  // The graph may stand behind the passes.
  const auto result = run_braid({"run", "--enable", passes, kLlamaPerRank, "--device", "cpu",
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

// Greedy tokens with a cache, of ragged sequences and after prompts of several lengths, are those
// of whole sequences without one, wherever the reference's two best logits are apart.
TEST(Examples, ADecodedSequenceIsTheReferences) {
  const std::string path = BRAID_LLAMAS "/llama_decoded.json";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen((BRAID_DECODE " " + path).c_str(), "r"),
                                                   pclose);
  std::string printed;
  for (int c = 0; (c = std::fgetc(pipe.get())) != EOF;) printed += static_cast<char>(c);
  std::istringstream lines(printed);

  Graph graph = load_graph(path);
  graph.add_output(*graph.find("last_norm"));
  int compared = 0;
  int ties = 0;
  int sequences = 0;
  for (std::string line; std::getline(lines, line); ++sequences) {
    const std::size_t bar = line.find('|');
    ASSERT_NE(bar, line.npos) << line;
    std::vector<std::int64_t> tokens;
    const auto read = [&](std::istringstream words) {
      for (std::int64_t token = 0; words >> token;) tokens.push_back(token);
    };
    read(std::istringstream(line.substr(0, bar)));
    const std::size_t prompt = tokens.size();
    read(std::istringstream(line.substr(bar + 1)));
    ASSERT_EQ(tokens.size(), prompt + 64) << line;
    const std::vector<double> logits = logits_of(graph, tokens);
    const std::size_t vocabulary = logits.size() / tokens.size();
    for (std::size_t i = prompt; i < tokens.size(); ++i) {
      const auto row = logits.begin() + static_cast<std::ptrdiff_t>((i - 1) * vocabulary);
      std::vector<double> best(row, row + static_cast<std::ptrdiff_t>(vocabulary));
      const auto most = std::max_element(best.begin(), best.end()) - best.begin();
      std::ranges::sort(best, std::greater<>());
      if (best[0] - best[1] < 1e-4 * best[0]) {
        ++ties;
      } else {
        EXPECT_EQ(tokens[i], most) << "token " << i << " of " << line;
        ++compared;
      }
    }
  }
  EXPECT_EQ(sequences, 4) << printed;
  EXPECT_GT(compared, 250) << ties << " ties";
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
