// The cache of compiled kernels as processes share it, and the commands that manage it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/process.h"
#include "cli/small_graph.h"
#include "runtime/compile/disk_cache.h"

namespace braid {
namespace {

using nlohmann::json;
using test::run_braid;
using test::small_graph;
using ::testing::HasSubstr;

json parse(const std::string& text) { return json::parse(text, nullptr, false); }

TEST(Cache, ListsVerifiesPrunesAndClears) {
  const test::TemporaryDirectory directory;
  const std::string cache = directory / "cache";
  ASSERT_EQ(run_braid({"run", "-", "--device", "cpu", "--cache-dir", cache}, small_graph().dump())
                .exit_code,
            0);
  const json listed = parse(run_braid({"cache", "ls", "--json", "--cache-dir", cache}).out);
  ASSERT_GE(listed["entries"].size(), 2U);
  EXPECT_EQ(run_braid({"cache", "verify", "--cache-dir", cache}).exit_code, 0);

  // One flipped bit: found once, and gone.
  const std::string victim =
      directory / ("cache/" + listed["entries"][0]["name"].get<std::string>() + ".entry");
  {
    std::fstream file(victim, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(100);
    const char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(100);
    file.put(byte);
  }
  EXPECT_THAT(run_braid({"cache", "ls", "--cache-dir", cache}).out, HasSubstr("CORRUPT"));
  const auto verified = run_braid({"cache", "verify", "--cache-dir", cache});
  EXPECT_EQ(verified.exit_code, 1);
  EXPECT_THAT(verified.out, HasSubstr("corrupt, removed"));
  EXPECT_EQ(run_braid({"cache", "verify", "--cache-dir", cache}).exit_code, 0);

  EXPECT_EQ(run_braid({"cache", "prune", "--max-mib", "100", "--cache-dir", cache}).exit_code, 0);
  const json kept = parse(run_braid({"cache", "ls", "--json", "--cache-dir", cache}).out);
  EXPECT_EQ(kept["entries"].size() + 1, listed["entries"].size());
  EXPECT_EQ(run_braid({"cache", "clear", "--cache-dir", cache}).exit_code, 0);
  EXPECT_TRUE(
      parse(run_braid({"cache", "ls", "--json", "--cache-dir", cache}).out)["entries"].empty());
  EXPECT_EQ(run_braid({"cache", "prune", "--cache-dir", cache}).exit_code, 2);
  EXPECT_EQ(run_braid({"cache"}).exit_code, 2);
}

// Versions may share a directory: what one of them does not read is not damaged.
TEST(Cache, EntriesOfAnotherVersionAreNotCorrupt) {
  const test::TemporaryDirectory directory;
  const std::string cache = directory / "cache";
  DiskCache(cache).put({"kernel\n"}, "payload");
  const auto entry = std::filesystem::directory_iterator(cache)->path();
  std::string bytes = test::read_file(entry);
  bytes.at(8) = 99;  // behind the magic
  test::write_file(entry, bytes);
  EXPECT_THAT(run_braid({"cache", "ls", "--cache-dir", cache}).out,
              HasSubstr("of another version"));
  const json listed = parse(run_braid({"cache", "ls", "--json", "--cache-dir", cache}).out);
  EXPECT_EQ(listed["entries"][0]["of_another_version"], true);
  EXPECT_EQ(listed["entries"][0]["intact"], false);
  const auto verified = run_braid({"cache", "verify", "--cache-dir", cache});
  EXPECT_EQ(verified.exit_code, 0);
  EXPECT_THAT(verified.out, HasSubstr("1 entries, 0 corrupt"));
  EXPECT_TRUE(std::filesystem::exists(entry));
}

TEST(Cache, EightProcessesCompileEachKernelOnce) {
  const test::TemporaryDirectory directory;
  std::array<test::ProcessResult, 8> results;
  std::vector<std::thread> threads;
  for (test::ProcessResult& result : results) {
    threads.emplace_back([&] {
      result = run_braid(
          {"run", "-", "--device", "cpu", "--check", "--json", "--cache-dir", directory / "cache"},
          small_graph().dump());
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::map<std::string, int> compiled;
  for (const test::ProcessResult& result : results) {
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const json document = parse(result.out);
    for (const json& kernel : document["kernels"]) {
      compiled[kernel["name"]] += kernel["cache_hit"].get<bool>() ? 0 : 1;
    }
  }
  EXPECT_GE(compiled.size(), 2U);
  for (const auto& [kernel, times] : compiled) EXPECT_EQ(times, 1) << kernel;
}

TEST(Cache, AnotherNvrtcNeverHits) {
  const test::TemporaryDirectory directory;
  const auto compile = [&](const std::string& version) {
    const auto result = run_braid(
        {"compile", "-", "--target", "sm_80", "-o", directory / "out", "--cache-dir",
         directory / "cache"},
        small_graph().dump(), {{"BRAID_NVRTC", BRAID_FAKE_NVRTC}, {"FAKE_NVRTC_VERSION", version}});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    for (const auto& file : std::filesystem::directory_iterator(directory / "out")) {
      if (file.path().extension() != ".ptx") continue;
      EXPECT_EQ(test::read_file(file.path()), "// by NVRTC " + version + "\n");
    }
    const json kernels = parse(test::read_file(directory / "out/kernels.json"))["kernels"];
    EXPECT_GE(kernels.size(), 2U);
    std::size_t hits = 0;
    for (const json& kernel : kernels) hits += kernel["cache_hit"].get<bool>() ? 1 : 0;
    return std::pair(hits, kernels.size());
  };
  for (const char* version : {"13.0", "13.1", "12.9"}) EXPECT_EQ(compile(version).first, 0U);
  for (const char* version : {"13.0", "13.1", "12.9"}) {
    const auto [hits, kernels] = compile(version);
    EXPECT_EQ(hits, kernels) << version;
  }
}

// Kernels compiled earlier are used without NVRTC.
TEST(Cache, RunsWithoutNvrtc) {
  const test::TemporaryDirectory directory;
  const std::string cache = directory / "cache";
  const std::vector<std::string> args = {"run",     "-",      "--device",    "cpu",
                                         "--check", "--json", "--cache-dir", cache};
  ASSERT_EQ(run_braid(args, small_graph().dump()).exit_code, 0);
  const std::map<std::string, std::string> none = {{"BRAID_NVRTC", "/nonexistent"}};
  const auto result = run_braid(args, small_graph().dump(), none);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json document = parse(result.out);
  EXPECT_GE(document["kernels"].size(), 2U);
  for (const json& kernel : document["kernels"]) EXPECT_TRUE(kernel["cache_hit"].get<bool>());
  // Kernels that were never compiled need it.
  const auto other = run_braid({"compile", "-", "--target", "sm_80", "-o", directory / "out",
                                "--cache-dir", directory / "empty"},
                               small_graph().dump(), none);
  EXPECT_EQ(other.exit_code, 3);
  EXPECT_THAT(other.err, HasSubstr("NVRTC: not found"));
}

TEST(Cache, ADirectoryOfOthersIsNotUsedAndSaidSoOnce) {
  const test::TemporaryDirectory directory;
  const std::string cache = directory / "cache";
  std::filesystem::create_directory(cache);
  std::filesystem::permissions(cache, std::filesystem::perms::all);
  const auto expect_warned = [&](std::vector<std::string> args) {
    SCOPED_TRACE(args[0]);
    args.insert(args.end(), {"--cache-dir", cache});
    const auto result = run_braid(args, small_graph().dump());
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const std::string line = "braid: warning: the cache " + cache +
                             " is not used: others may write to it (mode 0777; expected 0700)\n";
    const std::size_t at = result.err.find(line);
    ASSERT_NE(at, std::string::npos) << result.err;
    EXPECT_EQ(result.err.find("warning", at + line.size()), std::string::npos) << result.err;
    EXPECT_TRUE(std::filesystem::is_empty(cache));
  };
  expect_warned({"run", "-", "--device", "cpu", "--check"});
  expect_warned({"compile", "-", "--target", "sm_80", "-o", directory / "out"});
  test::write_file(directory / "k.ptx", R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry k() { ret; }
)");
  expect_warned({"ptx", directory / "k.ptx", "--entry", "k"});
  const auto listed = run_braid({"cache", "ls", "--cache-dir", cache});
  EXPECT_EQ(listed.exit_code, 3);
  EXPECT_THAT(listed.err, HasSubstr("others may write to it"));
  EXPECT_THAT(run_braid({"doctor", "--cache-dir", cache}).out, HasSubstr("others may write to it"));
}

// A directory with something in it, where an entry should be.
TEST(Cache, WhatCannotBeRemovedIsAnError) {
  const test::TemporaryDirectory directory;
  const std::string cache = directory / "cache";
  std::filesystem::create_directories(directory / "cache/ab.entry/child");
  std::filesystem::permissions(cache, std::filesystem::perms::owner_all);
  const auto verified = run_braid({"cache", "verify", "--cache-dir", cache});
  EXPECT_EQ(verified.exit_code, 3);
  EXPECT_THAT(verified.out, HasSubstr("ab: corrupt, cannot be removed"));
  EXPECT_EQ(verified.err, "braid: error: cache: 1 corrupt entries are left in " + cache +
                              ": they cannot be removed\n");
  const auto cleared = run_braid({"cache", "clear", "--cache-dir", cache});
  EXPECT_EQ(cleared.exit_code, 3);
  EXPECT_EQ(cleared.err,
            "braid: error: cache: 1 entries are left in " + cache + ": they cannot be removed\n");
}

TEST(Cache, AFileIsNoCache) {
  const test::TemporaryDirectory directory;
  const std::string file = directory / "file";
  test::write_file(file, "");
  for (const char* command : {"ls", "clear"}) {
    const auto result = run_braid({"cache", command, "--cache-dir", file});
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_EQ(result.err,
              "braid: error: cache: the cache " + file + " is not used: it is no directory\n");
  }
}

/// Mounts a file system of 64 KiB for this process and its children; false where none may be.
bool mount_small(const std::string& directory, unsigned long flags) {
  return (::unshare(CLONE_NEWNS) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0) &&
         ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("tmpfs", directory.c_str(), "tmpfs", flags, "size=64k,mode=0700") == 0;
}

// A file system of 64 KiB for the cache: not every entry fits.
TEST(Cache, FullDiskGivesRightResults) {
  const test::TemporaryDirectory directory;
  const std::string cache = directory / "cache";
  std::filesystem::create_directory(cache);
  if (!mount_small(cache, 0)) {
    GTEST_SKIP() << "this machine lets no test mount a tmpfs: " << std::strerror(errno);
  }
  std::size_t missed = 0;
  for (int i = 0; i < 2; ++i) {
    const auto result =
        run_braid({"run", "-", "--device", "cpu", "--check", "--json", "--cache-dir", cache},
                  small_graph().dump());
    ASSERT_EQ(result.exit_code, 0) << result.err;
    missed = 0;
    const json document = parse(result.out);
    for (const json& kernel : document["kernels"]) missed += kernel["cache_hit"] ? 0 : 1;
  }
  EXPECT_GT(missed, 0U) << "the disk was not full";
  EXPECT_EQ(run_braid({"cache", "verify", "--cache-dir", cache}).exit_code, 0);
  EXPECT_EQ(::umount(cache.c_str()), 0);
}

TEST(Cache, WhereNoneCanBeMadeItIsSaid) {
  const test::TemporaryDirectory directory;
  const std::string parent = directory / "parent";
  std::filesystem::create_directory(parent);
  if (!mount_small(parent, MS_RDONLY)) {
    GTEST_SKIP() << "this machine lets no test mount a tmpfs: " << std::strerror(errno);
  }
  const std::string cache = parent + "/braid/cache";
  const auto result = run_braid({"run", "-", "--device", "cpu", "--check", "--cache-dir", cache},
                                small_graph().dump());
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("braid: warning: the cache " + cache +
                                    " is not used: " + parent + " cannot be written\n"));
  EXPECT_THAT(run_braid({"doctor", "--cache-dir", cache}).out,
              HasSubstr(parent + " cannot be written"));
  EXPECT_EQ(::umount(parent.c_str()), 0);
}

TEST(Cache, DirectoryThatCannotBeWrittenGivesRightResults) {
  for (const char* cache : {"/proc/braid", "/dev/null/cache"}) {
    const auto result = run_braid({"run", "-", "--device", "cpu", "--check", "--cache-dir", cache},
                                  small_graph().dump());
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
}

}  // namespace
}  // namespace braid
