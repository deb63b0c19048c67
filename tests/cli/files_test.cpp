// Files that the commands read and write: regular files, links, pipes and devices.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "cli/process.h"
#include "cli/small_graph.h"
#include "runtime/safetensors.h"

namespace braid {
namespace {

namespace fs = std::filesystem;
using test::run_braid;
using test::small_graph;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A reader that refuses what it gets closes its end early.
class InputFiles : public ::testing::Test {
 protected:
  InputFiles() { ::signal(SIGPIPE, SIG_IGN); }
};

bool is_device(const fs::path& path) { return fs::is_character_file(fs::symlink_status(path)); }

TEST(OutputFiles, OptWritesThroughDevicesAndLinks) {
  const test::TemporaryDirectory directory;
  const std::string graph = small_graph().dump();
  const auto opt = [&](const fs::path& path) { return run_braid({"opt", "-", "-o", path}, graph); };
  const std::string text = run_braid({"opt", "-"}, graph).out;

  fs::create_symlink("/proc/self/fd/1", directory / "stdout");  // as /dev/stdout is one
  EXPECT_EQ(opt(directory / "stdout").out, text);
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
  // It has the mode of any new file.
  test::write_file(directory / "any", "");
  for (const auto& file : fs::directory_iterator(directory / "out")) {
    EXPECT_EQ(file.status().permissions(), fs::status(directory / "any").permissions())
        << file.path();
    EXPECT_THAT(file.path().filename().string(), ::testing::Not(StartsWith(".")));
  }
}

TEST(OutputFiles, OfAllRanksOrOfNone) {
  const test::TemporaryDirectory directory;
  const std::string rank0 = directory / "rank0.safetensors";
  test::write_file(rank0, "old");
  fs::create_directory(directory / "rank1.safetensors");
  const auto result = run_braid({"run", "-", "--device", "cpu", "--outputs", directory.path()},
                                small_graph().dump());
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, EndsWith("rank1.safetensors: is a directory; expected a file\n"));
  EXPECT_EQ(test::read_file(rank0), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(directory.path()), {}), 2);
}

// A file that only a writer at the same time makes.
class Pipe {
 public:
  Pipe(const fs::path& path, std::string content)
      : writer_([path, content = std::move(content)] {
          std::ofstream(path, std::ios::binary) << content;
        }) {}
  static fs::path make(const fs::path& path) {
    EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
    return path;
  }
  ~Pipe() { writer_.join(); }

 private:
  std::thread writer_;
};

std::string safetensors(const std::string& header, std::size_t bytes) {
  std::string text(8, '\0');
  text[0] = static_cast<char>(header.size());
  return text + header + std::string(bytes, '\0');
}

const std::string kHeader = R"({"x":{"dtype":"BF16","shape":[2,64],"data_offsets":[0,256]}})";

TEST_F(InputFiles, APipeIsReadToItsEnd) {
  const test::TemporaryDirectory directory;
  test::write_file(directory / "graph.json", small_graph().dump());
  const auto run = [&](const std::string& inputs, const std::string& input = "") {
    return run_braid({"run", directory / "graph.json", "--device", "cpu", "--bind", "T=2",
                      "--inputs", inputs, "--json"},
                     input);
  };
  const std::string content = safetensors(kHeader, 256);
  const std::string path = Pipe::make(directory / "pipe");
  const auto run_on = [&](const std::string& piped) {
    const Pipe writer(path, piped);
    return run(path);
  };
  const auto good = run_on(content);
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_EQ(nlohmann::json::parse(good.out)["inputs_from_files"], nlohmann::json({"x"}));
  EXPECT_EQ(run("/dev/stdin", content).exit_code, 0);

  const auto expect_refused = [&](const std::string& piped, const std::string& expected) {
    const auto result = run_on(piped);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr("braid: error: " + path));
    EXPECT_THAT(result.err, HasSubstr(expected));
  };
  expect_refused("", "shorter than 8 bytes");
  expect_refused(content.substr(0, 20), "truncated");
  expect_refused(content.substr(0, content.size() - 1), "truncated");
  expect_refused(content + "x", "goes on after its 256 bytes of data");
  expect_refused(safetensors(R"({"y":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1),
                 "no such input");
  expect_refused(safetensors("{}", 0) + "x", "goes on after its 0 bytes of data");
}

TEST_F(InputFiles, OnePipePerRankWrittenOneAfterTheOther) {
  const test::TemporaryDirectory directory;
  test::write_file(directory / "graph.json", small_graph().dump());
  fs::create_directory(directory / "in");
  const std::string header = R"({"w":{"dtype":"BF16","shape":[64,64],"data_offsets":[0,8192]}})";
  std::vector<fs::path> pipes;
  for (int rank = 0; rank < 2; ++rank) {
    pipes.push_back(
        Pipe::make(directory / "in" / ("rank" + std::to_string(rank) + ".safetensors")));
    // Smaller than the data, so that the writer waits for its reader.
    const int end = ::open(pipes.back().c_str(), O_RDWR);
    ::fcntl(end, F_SETPIPE_SZ, 4096);
    ::close(end);
  }
  std::thread writer([&] {
    for (const fs::path& pipe : pipes) test::write_file(pipe, safetensors(header, 8192));
  });
  const auto result = run_braid({"run", directory / "graph.json", "--device", "cpu", "--inputs",
                                 directory / "in", "--check"});
  writer.join();
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

// /dev/zero after a header: never ends, and is not read for ever.
TEST_F(InputFiles, AnEndlessPipeIsRefused) {
  const test::TemporaryDirectory directory;
  test::write_file(directory / "graph.json", small_graph().dump());
  const std::string path = Pipe::make(directory / "pipe");
  std::thread writer([&] {
    std::ofstream out(path, std::ios::binary);
    out << safetensors(kHeader, 256);
    while (out.write(std::string(4096, '\0').data(), 4096)) {
    }
  });
  const auto result = run_braid(
      {"run", directory / "graph.json", "--device", "cpu", "--bind", "T=2", "--inputs", path});
  writer.join();
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("goes on after its 256 bytes of data"));
  const auto zero = run_braid({"run", directory / "graph.json", "--inputs", "/dev/zero"});
  EXPECT_EQ(zero.exit_code, 2);
  EXPECT_THAT(zero.err, HasSubstr("/dev/zero: not a safetensors file"));
}

}  // namespace
}  // namespace braid
