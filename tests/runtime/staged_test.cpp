// Buckets that are usable one after the other, while a thread compiles the rest.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "braid/executable.h"
#include "braid/reference.h"
#include "runtime/error_of.h"
#include "runtime/temporary_directory.h"

namespace braid {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kMost = 256;
constexpr const char* kBuckets = R"(, "buckets": [1, 8, {"max": 256, "multiple_of": 64}])";

// The sum over the ranks of two matmuls of a row, plus what went in.
Graph graph(std::string_view buckets = kBuckets) {
  constexpr const char* kText = R"({{"braid": 1, "name": "layer",
    "symbols": {{"T": {{"max": 256{}}}}}, "groups": {{"tp": {{"size": 2}}}},
    "inputs": [{{"name": "x", "dtype": "bf16", "shape": ["T", 64]}},
               {{"name": "w", "dtype": "bf16", "shape": [64, 128], "kind": "parameter",
                 "per_rank": true}},
               {{"name": "v", "dtype": "bf16", "shape": [128, 64], "kind": "parameter",
                 "per_rank": true}}],
    "nodes": [{{"name": "h", "op": "mm", "inputs": ["x", "w"]}},
              {{"name": "p", "op": "mm", "inputs": ["h", "v"]}},
              {{"name": "c", "op": "all_reduce", "inputs": ["p"],
                "attrs": {{"reduce_op": "sum", "group": "tp"}}}},
              {{"name": "s", "op": "wait_tensor", "inputs": ["c"]}},
              {{"name": "y", "op": "add", "inputs": ["s", "x"]}}],
    "outputs": ["y"]}})";
  return parse_graph(fmt::format(kText, buckets));
}

WorldOptions options_of(int processes = 0) {
  WorldOptions options;
  options.device = DeviceKind::kCpu;
  options.world = 2;
  options.threads = 2;
  options.use_cache = false;
  options.compile_in_background = true;
  options.compile_processes = processes;
  options.compile_worker = BRAID_BINARY_DIR "/lib/braid-worker";
  return options;
}

/// Holds whoever passes, until it is opened; but not the thread that made it.
class Gate {
 public:
  void pass() {
    if (std::this_thread::get_id() == own_) return;
    std::unique_lock lock(mutex_);
    ++held_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
  }
  void wait_for_somebody() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return held_ > 0; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::thread::id own_ = std::this_thread::get_id();
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  int held_ = 0;
};

/// y of the first rows of inputs that are the same in every run, on rank 1.
std::vector<std::byte> run(Executable& executable, std::int64_t tokens) {
  static const RankTensors kInputs = random_inputs(graph(), {{"T", kMost}}, 3);
  executable.prepare({{"T", tokens}});
  for (int rank = 0; rank < 2; ++rank) {
    const std::vector<HostTensor>& own = kInputs[static_cast<std::size_t>(rank)];
    HostTensor x = own[0];
    x.data.resize(x.data.size() / kMost * static_cast<std::size_t>(tokens));
    x.shape[0] = tokens;
    executable.set_input(rank, "x", x);
    executable.set_input(rank, "w", own[1]);
    executable.set_input(rank, "v", own[2]);
  }
  executable.run();
  return executable.output(1, "y").data;
}

std::vector<std::byte> first_rows(std::vector<std::byte> all, std::int64_t tokens) {
  all.resize(all.size() / kMost * static_cast<std::size_t>(tokens));
  return all;
}

class Staged : public ::testing::TestWithParam<int> {};  // with so many processes

TEST_P(Staged, TheFirstBucketRunsWhileOthersCompile) {
  Gate gate;
  WorldOptions options = options_of(GetParam());
  options.progress = [&](std::size_t, std::size_t, std::string_view) { gate.pass(); };
  const World world = World::open(options);
  WorldOptions plain = options_of();
  plain.compile_in_background = false;
  Executable all = Executable::compile(graph(), World::open(plain));
  const std::vector<std::byte> rows = run(all, kMost);
  EXPECT_TRUE(all.ready({{"T", kMost}}));

  Executable executable = Executable::compile(graph(), world);
  gate.wait_for_somebody();
  EXPECT_TRUE(executable.ready({{"T", 1}}));
  for (const std::int64_t tokens : {2, 64, 255}) {
    EXPECT_FALSE(executable.ready({{"T", tokens}})) << tokens;
  }
  EXPECT_EQ(run(executable, 1), first_rows(rows, 1));
  Executable other = executable.another();
  EXPECT_EQ(run(other, 1), first_rows(rows, 1));
  EXPECT_THAT(error_of([&] { (void)executable.ready({{"T", 257}}); }).second, HasSubstr("T"));
  gate.open();
  std::thread beside([&] { EXPECT_EQ(run(other, 8), first_rows(rows, 8)); });
  for (const std::int64_t tokens : {200, 1, 64, 8}) {
    EXPECT_EQ(run(executable, tokens), first_rows(rows, tokens)) << tokens;
    EXPECT_TRUE(executable.ready({{"T", tokens}})) << tokens;
  }
  beside.join();
  EXPECT_EQ(executable.kernels().size(), all.kernels().size());
  EXPECT_EQ(world.metrics().kernels_compiled, all.kernels().size());
  EXPECT_EQ(executable.program_hash(), all.program_hash());
}

INSTANTIATE_TEST_SUITE_P(Processes, Staged, ::testing::Values(0, 2));

TEST(StagedOnCpu, PrepareHasItsBucketCompiledNext) {
  Gate gate;
  const Executable* there = nullptr;
  int asked = 0;
  WorldOptions options = options_of();
  options.progress = [&](std::size_t done, std::size_t total, std::string_view) {
    gate.pass();
    // Three kernels of the first bucket, one more of the second; of the last ones that is asked for
    // has three, and the other one shares one of these.
    EXPECT_EQ(total, 9U);
    if (done != 7) return;
    ++asked;
    EXPECT_TRUE(there->ready({{"T", 200}}));
    EXPECT_FALSE(there->ready({{"T", 64}}));
  };
  const World world = World::open(options);
  Executable executable = Executable::compile(graph(), world);
  there = &executable;
  gate.wait_for_somebody();  // with the second bucket
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    gate.open();
  });
  executable.prepare({{"T", 200}});
  opener.join();
  executable.prepare({{"T", 64}});
  EXPECT_EQ(asked, 1);
}

TEST(StagedOnCpu, WhatProgressThrowsComesOutOfPrepare) {
  const auto own = std::this_thread::get_id();
  WorldOptions options = options_of();
  options.progress = [&](std::size_t, std::size_t, std::string_view) {
    if (std::this_thread::get_id() != own) throw std::runtime_error("enough");
  };
  const World world = World::open(options);
  Executable executable = Executable::compile(graph(), world);
  for (const std::int64_t tokens : {2, 200, 2}) {
    EXPECT_THROW(executable.prepare({{"T", tokens}}), std::runtime_error) << tokens;
    EXPECT_TRUE(executable.ready({{"T", tokens}}));
  }
  EXPECT_THROW((void)executable.kernels(), std::runtime_error);
  const TemporaryDirectory directory;
  EXPECT_THROW(executable.save(directory.path()), std::runtime_error);
  EXPECT_EQ(run(executable, 1).size(), 64 * 2U);
}

TEST(StagedOnCpu, ABucketThatFailsLeavesTheOthers) {
  Gate gate;
  WorldOptions options = options_of(2);
  const TemporaryDirectory directory;
  // A worker that dies where a file says so.
  const std::string worker = directory.path() / "worker";
  const std::string sign = directory.path() / "dies";
  write_file(worker, fmt::format("#!/bin/sh\n[ -e {} ] && exit 7\nexec {}\n", sign,
                                 options.compile_worker));
  std::filesystem::permissions(worker, std::filesystem::perms::owner_all);
  options.compile_worker = worker;
  options.progress = [&](std::size_t, std::size_t, std::string_view) { gate.pass(); };
  const World world = World::open(options);
  Executable executable = Executable::compile(graph(), world);
  gate.wait_for_somebody();
  write_file(sign, "");
  gate.open();
  const auto [code, what] = error_of([&] { executable.prepare({{"T", 64}}); });
  EXPECT_EQ(code, ErrorCode::kEnvironment);
  EXPECT_THAT(what, HasSubstr(": the process that compiled it ended with exit code 7"));
  EXPECT_EQ(run(executable, 2).size(), 2 * 64 * 2U);  // one kernel: compiled in this process
  EXPECT_EQ(run(executable, 1).size(), 64 * 2U);
}

TEST(StagedOnCpu, GoesAwayWhileItCompiles) {
  for (const int processes : {0, 2}) {
    Gate gate;
    WorldOptions options = options_of(processes);
    std::size_t calls = 0;
    options.progress = [&](std::size_t, std::size_t, std::string_view) {
      ++calls;
      gate.pass();
    };
    const World world = World::open(options);
    std::thread opener;
    std::size_t before = 0;
    {
      const Executable executable = Executable::compile(graph(), world);
      gate.wait_for_somebody();
      before = calls;
      opener = std::thread([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        gate.open();
      });
    }
    opener.join();
    EXPECT_LE(calls, before + 2);  // one kernel under way, or one in each process
  }
}

TEST(StagedOnCpu, IsSavedWhole) {
  const TemporaryDirectory directory;
  const World world = World::open(options_of());
  Executable executable = Executable::compile(graph(), world);
  executable.save(directory.path());
  Executable loaded = Executable::load(directory.path() / "program.json", world);
  EXPECT_TRUE(loaded.ready({{"T", kMost}}));
  EXPECT_EQ(run(loaded, kMost), run(executable, kMost));
}

// Without buckets there is nothing to wait for.
TEST(StagedOnCpu, OneVariantIsCompiledAtOnce) {
  const auto own = std::this_thread::get_id();
  WorldOptions options = options_of();
  options.progress = [&](std::size_t, std::size_t, std::string_view) {
    EXPECT_EQ(std::this_thread::get_id(), own);
  };
  const Executable executable = Executable::compile(graph(""), World::open(options));
  EXPECT_TRUE(executable.ready({{"T", 5}}));
}

}  // namespace
}  // namespace braid
