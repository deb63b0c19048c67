// The replay tier: the CUDA text of the sample kernels against the checked-in text, so that every
// change of a kernel shows in a diff. `BRAID_UPDATE_REPLAY=1` rewrites the files.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "codegen/sample_specs.h"

namespace braid {
namespace {

TEST(Replay, KernelTextIsTheCheckedInText) {
  const std::filesystem::path directory =
      std::filesystem::path(BRAID_SOURCE_DIR) / "tests/codegen/replay";
  const bool update = std::getenv("BRAID_UPDATE_REPLAY") != nullptr;
  if (update) std::filesystem::create_directories(directory);
  const Target target = Target::parse("sm_90a");  // matmuls of 8-bit floats start there
  std::size_t files = 0;
  for (const auto& sample : testing::sample_specs(target)) {
    const std::filesystem::path file = directory / (sample.name + ".cu");
    const std::string text = emit(sample.spec, target).text;
    if (update) std::ofstream(file) << text;
    std::ifstream in(file);
    ASSERT_TRUE(in) << "no " << file << "; run with BRAID_UPDATE_REPLAY=1";
    std::ostringstream have;
    have << in.rdbuf();
    EXPECT_EQ(have.str(), text) << sample.name << " changed";
    ++files;
  }
  const auto kept = std::distance(std::filesystem::directory_iterator(directory),
                                  std::filesystem::directory_iterator{});
  EXPECT_EQ(static_cast<std::size_t>(kept), files) << "a file without a kernel in " << directory;
}

}  // namespace
}  // namespace braid
