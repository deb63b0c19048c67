// The replay tier: the CUDA text of the sample kernels against the checked-in text, so that every
// change of a kernel shows in a diff. `BRAID_UPDATE_REPLAY=1` rewrites the files.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "codegen/sample_specs.h"

namespace braid {
namespace {

/// The text in front of a kernel: its types and functions, each with the comment before it.
std::vector<std::string> helpers_of(const std::string& text) {
  std::vector<std::string> helpers(1);
  std::istringstream in(text);
  int depth = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.empty()) continue;
    helpers.back() += line + '\n';
    depth += static_cast<int>(std::count(line.begin(), line.end(), '{') -
                              std::count(line.begin(), line.end(), '}'));
    const bool is_comment = line.starts_with("//");
    if (depth == 0 && !is_comment && (line.ends_with(';') || line.ends_with('}'))) {
      helpers.emplace_back();
    }
  }
  EXPECT_EQ(helpers.back(), "");
  helpers.pop_back();
  return helpers;
}

/// "signal" of `... void signal(const Comm& c) {`.
std::string name_of(const std::string& helper) {
  static const std::regex name(R"(\b([A-Za-z]\w*)(\(| \{|\[))");
  std::istringstream in(helper);
  std::smatch match;
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("//") && std::regex_search(line, match, name)) return match[1];
  }
  ADD_FAILURE() << "no name in " << helper;
  return {};
}

/// The texts of all files by name. Helpers are in a file of their own, each once, and a kernel's
/// file says which are its: "signal 2" is the second function of that name.
std::map<std::string, std::string> replay_files() {
  const Target target = Target::parse("sm_90a");  // matmuls of 8-bit floats start there
  std::map<std::string, std::string> files;
  std::map<std::string, std::vector<std::string>> helpers;
  for (const auto& sample : testing::sample_specs(target)) {
    const std::string text = emit(sample.spec, target).text;
    const std::size_t kernel = text.find("extern \"C\" __global__");
    std::string& file = files[sample.name + ".cu"];
    for (const std::string& helper : helpers_of(text.substr(0, kernel))) {
      const std::string name = name_of(helper);
      std::vector<std::string>& texts = helpers[name];
      const auto at = std::find(texts.begin(), texts.end(), helper) - texts.begin();
      if (at == std::ssize(texts)) texts.push_back(helper);
      file += (file.empty() ? "// " : ", ") + name + (at == 0 ? "" : ' ' + std::to_string(at + 1));
    }
    if (!file.empty()) file += '\n';
    file += text.substr(kernel);
  }
  std::string& all = files["helpers.cu"];
  for (const auto& [name, texts] : helpers) {
    for (const std::string& text : texts) all += (all.empty() ? "" : "\n") + text;
  }
  return files;
}

TEST(Replay, KernelTextIsTheCheckedInText) {
  const std::filesystem::path directory =
      std::filesystem::path(BRAID_SOURCE_DIR) / "tests/codegen/replay";
  const bool update = std::getenv("BRAID_UPDATE_REPLAY") != nullptr;
  if (update) std::filesystem::create_directories(directory);
  const std::map<std::string, std::string> files = replay_files();
  for (const auto& [name, text] : files) {
    const std::filesystem::path file = directory / name;
    if (update) std::ofstream(file) << text;
    std::ifstream in(file);
    ASSERT_TRUE(in) << "no " << file << "; run with BRAID_UPDATE_REPLAY=1";
    std::ostringstream have;
    have << in.rdbuf();
    EXPECT_EQ(have.str(), text) << name << " changed";
  }
  const auto kept = std::distance(std::filesystem::directory_iterator(directory),
                                  std::filesystem::directory_iterator{});
  EXPECT_EQ(static_cast<std::size_t>(kept), files.size())
      << "a file without a kernel in " << directory;
}

}  // namespace
}  // namespace braid
