#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>

namespace braid {
namespace {

std::string read(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// All sources, with adjacent string literals joined.
std::string sources() {
  std::string text;
  for (const auto& file : std::filesystem::recursive_directory_iterator(BRAID_SOURCE_DIR "/src")) {
    const auto extension = file.path().extension();
    if (extension == ".cpp" || extension == ".h") text += read(file.path());
  }
  std::string joined;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::size_t next = text[at] == '"' ? text.find_first_not_of(" \n", at + 1) : at;
    if (next != std::string::npos && next > at + 1 && text[next] == '"') {
      at = next;
    } else {
      joined += text[at];
    }
  }
  return joined;
}

TEST(TroubleshootingPage, WhatItsLinesHaveIsInTheSources) {
  const std::string code = sources();
  std::istringstream page(read(BRAID_SOURCE_DIR "/docs/troubleshooting.md"));
  const std::regex quoted("`([^`]+)`");
  int found = 0;
  for (std::string line; std::getline(page, line);) {
    if (line.rfind("| ", 0) != 0 || line.rfind("| a place", 0) == 0) continue;
    const std::string cell = line.substr(0, line.find('|', 1));
    for (std::sregex_iterator it(cell.begin(), cell.end(), quoted), end; it != end; ++it) {
      EXPECT_NE(code.find((*it)[1].str()), std::string::npos) << (*it)[1];
      ++found;
    }
  }
  EXPECT_GT(found, 15);
}

}  // namespace
}  // namespace braid
