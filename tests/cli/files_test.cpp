// What the commands write to: ordinary files, links and devices.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "cli/process.h"
#include "cli/small_graph.h"

namespace braid {
namespace {

namespace fs = std::filesystem;
using test::run_braid;
using test::small_graph;
using ::testing::EndsWith;
using ::testing::StartsWith;

bool is_device(const fs::path& path) { return fs::is_character_file(fs::symlink_status(path)); }

TEST(OutputFiles, OptWritesThroughDevicesAndLinks) {
  const test::TemporaryDirectory directory;
  const std::string graph = small_graph().dump();
  const auto opt = [&](const fs::path& path) { return run_braid({"opt", "-", "-o", path}, graph); };
  const std::string text = run_braid({"opt", "-"}, graph).out;

  EXPECT_EQ(opt("/dev/stdout").out, text);
  fs::create_symlink("target", directory / "link");
  EXPECT_EQ(opt(directory / "link").exit_code, 0);
  EXPECT_TRUE(fs::is_symlink(directory / "link"));
  EXPECT_EQ(test::read_file(directory / "target"), text);

  const auto refused = opt(directory.path());
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, StartsWith("braid: error: --output: "));
  EXPECT_THAT(refused.err, EndsWith("is a directory; expected a file\n"));

  const fs::path null = directory / "null", full = directory / "full";
  if (::mknod(null.c_str(), S_IFCHR | 0666, ::makedev(1, 3)) != 0 ||
      ::mknod(full.c_str(), S_IFCHR | 0666, ::makedev(1, 7)) != 0) {
    GTEST_SKIP() << "this user may not make devices";
  }
  EXPECT_EQ(opt(null).exit_code, 0);
  EXPECT_TRUE(is_device(null));
  const auto failed = opt(full);
  EXPECT_EQ(failed.exit_code, 3);
  EXPECT_THAT(failed.err, EndsWith("full: No space left on device\n"));
  EXPECT_TRUE(is_device(full));
}

TEST(OutputFiles, TheOtherCommandsToo) {
  const test::TemporaryDirectory directory;
  const std::string graph = small_graph().dump();
  fs::create_directory(directory / "out");
  for (const char* name : {"program.json", "kernels.json", "rank0.safetensors"}) {
    fs::create_symlink(directory / name, directory / "out" / name);
  }
  const auto compiled =
      run_braid({"compile", "-", "--target", "sm_80", "-o", directory / "out"}, graph);
  EXPECT_EQ(compiled.exit_code, 0) << compiled.err;
  const auto ran =
      run_braid({"run", "-", "--device", "cpu", "--outputs", directory / "out"}, graph);
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  for (const char* name : {"program.json", "kernels.json", "rank0.safetensors"}) {
    EXPECT_TRUE(fs::is_symlink(directory / "out" / name)) << name;
    EXPECT_GT(fs::file_size(directory / name), 0U) << name;
  }
  // With the mode of any new file.
  test::write_file(directory / "any", "");
  for (const auto& file : fs::directory_iterator(directory / "out")) {
    EXPECT_EQ(file.status().permissions(), fs::status(directory / "any").permissions())
        << file.path();
    EXPECT_THAT(file.path().filename().string(), ::testing::Not(StartsWith(".")));
  }
}

}  // namespace
}  // namespace braid
