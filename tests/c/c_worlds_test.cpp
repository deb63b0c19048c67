// The C interface where each rank has a world of its own, as in processes of one rank, which meet
// over TCP; and memory that they share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "braid/braid.h"
#include "runtime/free_port.h"

namespace {

using ::testing::HasSubstr;

constexpr int kRanks = 2;
constexpr const char* kGraph = R"({
  "braid": 1, "name": "sum", "groups": {"tp": {"size": 2}},
  "symbols": {"T": {"min": 1, "max": 4, "buckets": [1]}},
  "inputs": [{"name": "x", "dtype": "f32", "shape": ["T", 8], "per_rank": true}],
  "nodes": [{"name": "c", "op": "all_reduce", "inputs": ["x"],
             "attrs": {"reduce_op": "sum", "group": "tp"}},
            {"name": "y", "op": "wait_tensor", "inputs": ["c"]}],
  "outputs": ["y"]})";

braid_world_options options_of(int rank, const braid::Meeting& meeting) {
  return {.bytes = sizeof(braid_world_options),
          .device = "cpu",
          .world = kRanks,
          .threads = 1,
          .timeout_s = 10,
          .host = "127.0.0.1",
          .port = meeting.port,
          .rank = rank,
          .job = meeting.job.c_str(),
          .meet_timeout_s = 10};
}

void good(braid_status status) {
  EXPECT_EQ(status, BRAID_OK) << braid_last_error();
  EXPECT_STREQ(braid_last_error(), "");
}
std::string bad(braid_status status) {
  EXPECT_EQ(status, BRAID_INVALID_ARGUMENT);
  return braid_last_error();
}

/// A thread for each rank, which has a world when `work` is called.
void on_each_rank(const std::function<void(int rank, braid_world world)>& work) {
  const braid::Meeting meeting;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&work, &meeting, rank] {
      const braid_world_options options = options_of(rank, meeting);
      braid_world world = nullptr;
      good(braid_world_open(&options, &world));
      if (world == nullptr) return;
      work(rank, world);
      good(braid_world_barrier(world));
      good(braid_world_destroy(world));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(CWorlds, RunOneProgram) {
  on_each_rank([](int rank, braid_world world) {
    braid_executable executable = nullptr;
    good(braid_compile(world, kGraph, &executable));
    const char* const symbol = "T";
    for (const std::int64_t rows : {1, 4}) {
      braid_plan plan = nullptr;
      good(braid_prepare(executable, &symbol, &rows, 1, &plan));
      std::vector<float> x(static_cast<std::size_t>(rows) * 8), y(x.size());
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) * (rank == 0 ? 1 : 3);
      const std::array<std::int64_t, 2> shape{rows, 8};
      const braid_tensor tensor{x.data(), "f32", 2, shape.data(), nullptr};
      good(braid_set_input(executable, rank, "x", &tensor));
      EXPECT_THAT(bad(braid_set_input(executable, 1 - rank, "x", &tensor)),
                  HasSubstr("does not live here"));
      good(braid_run(executable, plan, nullptr, 0));
      good(braid_get_output(executable, rank, "y", y.data(), y.size() * sizeof(float)));
      for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], 4 * static_cast<float>(i));
      good(braid_plan_destroy(plan));
    }
    good(braid_recover(executable));
    good(braid_world_barrier(world));
    good(braid_executable_destroy(executable));
  });
}

TEST(CWorlds, ShareMemory) {
  on_each_rank([](int rank, braid_world world) {
    const int peer = 1 - rank;
    braid_stream stream = nullptr;
    good(braid_stream_create(world, rank, &stream));
    braid_symmetric all = nullptr;
    good(braid_symmetric_allocate(world, "all", 256, &all));
    void* own = nullptr;
    good(braid_symmetric_address(all, rank, rank, &own));
    // Memory that is there already: the second half of some.
    braid_memory mine = nullptr;
    good(braid_memory_allocate(world, rank, 256, &mine));
    good(braid_memory_address(mine, &own));
    void* half = static_cast<char*>(own) + 128;
    braid_symmetric memory = nullptr;
    good(braid_symmetric_register(world, "half", &half, 1, 128, &memory));
    void* there = nullptr;
    good(braid_symmetric_address(memory, rank, rank, &own));
    good(braid_symmetric_address(memory, rank, peer, &there));
    EXPECT_EQ(own, half);
    EXPECT_NE(own, there);
    for (std::int32_t round = 1; round <= 20; ++round) {
      const std::int32_t word = 100 * round + rank;
      std::memcpy(there, &word, sizeof word);
      if (round % 2 == 0) {
        good(braid_symmetric_barrier(memory, rank, stream, round % 8));
      } else {
        good(braid_symmetric_put_signal(memory, rank, peer, stream, round % 8));
        good(braid_symmetric_wait_signal(memory, rank, peer, stream, round % 8));
      }
      good(braid_stream_synchronize(stream));
      std::int32_t found = 0;
      std::memcpy(&found, own, sizeof found);
      EXPECT_EQ(found, 100 * round + peer);
      good(braid_symmetric_barrier(memory, rank, stream, 0));  // both have read it
      good(braid_stream_synchronize(stream));
    }
    good(braid_symmetric_check(memory));
    good(braid_symmetric_recover(memory));

    // Another rank's stream cannot be had here.
    EXPECT_THAT(bad(braid_symmetric_barrier(memory, peer, stream, 0)),
                HasSubstr("does not live here"));
    EXPECT_THAT(bad(braid_symmetric_barrier(memory, rank, stream, 8)), HasSubstr("channel"));
    EXPECT_THAT(bad(braid_symmetric_put_signal(memory, rank, rank, stream, 0)),
                HasSubstr("signals to itself"));
    EXPECT_THAT(bad(braid_symmetric_wait_signal(memory, rank, 2, stream, 0)),
                HasSubstr("rank 2 is no peer"));
    EXPECT_THAT(bad(braid_symmetric_barrier(memory, rank, nullptr, 0)),
                HasSubstr("stream: the handle is null"));
    EXPECT_THAT(bad(braid_symmetric_address(memory, rank, 7, &there)), HasSubstr("rank 7"));
    EXPECT_EQ(there, nullptr);
    EXPECT_THAT(bad(braid_symmetric_address(memory, peer, rank, &there)),
                HasSubstr("does not live here"));
    EXPECT_THAT(bad(braid_symmetric_address(memory, rank, peer, nullptr)),
                HasSubstr("address: is null"));
    good(braid_world_barrier(world));
    good(braid_symmetric_destroy(memory));
    EXPECT_THAT(bad(braid_symmetric_destroy(memory)), HasSubstr("nothing that is there"));
    EXPECT_THAT(bad(braid_symmetric_check(memory)), HasSubstr("nothing that is there"));
    good(braid_symmetric_destroy(all));
    good(braid_memory_destroy(mine));
    good(braid_stream_destroy(stream));
  });
}

TEST(CWorlds, RefuseWhatIsNoPlaceInAWorld) {
  braid_world world = nullptr;
  const braid::Meeting meeting;
  const auto refused = [&](const std::function<void(braid_world_options&)>& change) {
    braid_world_options options = options_of(0, meeting);
    options.meet_timeout_s = 0.2;
    change(options);
    const std::string why = bad(braid_world_open(&options, &world));
    EXPECT_EQ(world, nullptr);
    return why;
  };
  EXPECT_THAT(refused([](auto& o) { o.rank = 2; }), HasSubstr("rank"));
  EXPECT_THAT(refused([](auto& o) { o.rank = -1; }), HasSubstr("rank"));
  EXPECT_THAT(refused([](auto& o) { o.port = 70000; }), HasSubstr("70000"));
  EXPECT_THAT(refused([](auto& o) { o.port = -1; }), HasSubstr("-1"));
  EXPECT_THAT(refused([](auto& o) { o.meet_timeout_s = -1; }), HasSubstr("-1 s; expected"));
  EXPECT_THAT(refused([](auto& o) {
                o.host = nullptr;
                o.port = 0;
                o.compile_processes = -1;
              }),
              HasSubstr("-1; expected"));
  // Nobody else comes.
  braid_world_options alone = options_of(0, meeting);
  alone.meet_timeout_s = 0.2;
  EXPECT_EQ(braid_world_open(&alone, &world), BRAID_TIMEOUT);
  EXPECT_THAT(braid_last_error(), HasSubstr("rank 1 did not come"));
  EXPECT_EQ(world, nullptr);
}

TEST(CWorlds, KnowWhatALauncherSays) {
  braid_world_options options{.bytes = sizeof(braid_world_options), .world = 3, .rank = 0};
  good(braid_options_from_environment(&options));
  EXPECT_EQ(options.world, 3);
  EXPECT_EQ(options.host, nullptr);
  const std::map<const char*, const char*> variables = {
      {"RANK", "1"},           {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "localhost"},
      {"MASTER_PORT", "4711"}, {"BRAID_JOB", "j"},  {"BRAID_TIMEOUT", "2.5"}};
  for (const auto& [name, value] : variables) ::setenv(name, value, 1);
  good(braid_options_from_environment(&options));
  EXPECT_EQ(options.world, 2);
  EXPECT_EQ(options.rank, 1);
  EXPECT_STREQ(options.host, "localhost");
  EXPECT_EQ(options.port, 4711);
  EXPECT_STREQ(options.job, "j");
  EXPECT_EQ(options.meet_timeout_s, 2.5);
  ::setenv("RANK", "2", 1);
  EXPECT_EQ(bad(braid_options_from_environment(&options)),
            "RANK: found \"2\"; expected a number from 0 to 1");
  for (const auto& [name, value] : variables) ::unsetenv(name);
  options.bytes = offsetof(braid_world_options, tune_db);  // of a caller without later options
  good(braid_options_from_environment(&options));
  options.bytes -= sizeof(double);  // nor `meet_timeout_s`
  EXPECT_THAT(bad(braid_options_from_environment(&options)), HasSubstr("or more"));
  EXPECT_THAT(bad(braid_options_from_environment(nullptr)), HasSubstr("options: is null"));
}

// One process, without a rendezvous.
TEST(CWorlds, HaveMemoryOfTheirOwnInOneProcess) {
  const braid_world_options options{
      .bytes = sizeof(braid_world_options), .device = "cpu", .world = kRanks, .threads = 1};
  braid_world world = nullptr;
  good(braid_world_open(&options, &world));
  good(braid_world_barrier(world));
  braid_symmetric memory = nullptr;
  good(braid_symmetric_allocate(world, "mine", 16, &memory));
  std::array<void*, kRanks> data{};
  for (int peer = 0; peer < kRanks; ++peer) {
    void* there = nullptr;
    auto& own = data[static_cast<std::size_t>(peer)];
    good(braid_symmetric_address(memory, peer, peer, &own));
    good(braid_symmetric_address(memory, 0, peer, &there));
    EXPECT_EQ(there, own);
  }
  std::array<std::int32_t, 4> no_memory_of_the_device{};
  data[0] = no_memory_of_the_device.data();
  braid_symmetric none = nullptr;
  EXPECT_THAT(bad(braid_symmetric_register(world, "mine", data.data(), kRanks, 16, &none)),
              HasSubstr("no allocation of the cpu device holds the address"));
  EXPECT_EQ(none, nullptr);
  good(braid_symmetric_destroy(memory));
  EXPECT_THAT(bad(braid_symmetric_register(world, "mine", data.data(), 1, 16, &memory)),
              HasSubstr("1 addresses; expected one for each of 2 ranks"));
  EXPECT_THAT(bad(braid_symmetric_register(world, "mine", nullptr, 2, 16, &memory)),
              HasSubstr("data: is null"));
  data[0] = nullptr;
  EXPECT_THAT(bad(braid_symmetric_register(world, "mine", data.data(), 2, 16, &memory)),
              HasSubstr("rank 0 has address 0x0"));
  EXPECT_THAT(bad(braid_symmetric_allocate(world, nullptr, 16, &memory)),
              HasSubstr("name: is null"));
  EXPECT_THAT(bad(braid_symmetric_allocate(world, "mine", 0, &memory)), HasSubstr("0 bytes"));
  EXPECT_THAT(bad(braid_symmetric_allocate(world, "mine", 16, nullptr)),
              HasSubstr("memory: is null"));
  EXPECT_THAT(bad(braid_symmetric_allocate(nullptr, "mine", 16, &memory)),
              HasSubstr("world: the handle is null"));
  EXPECT_EQ(memory, nullptr);
  EXPECT_THAT(bad(braid_world_barrier(nullptr)), HasSubstr("world: the handle is null"));
  EXPECT_THAT(bad(braid_recover(nullptr)), HasSubstr("executable: the handle is null"));
  good(braid_world_destroy(world));
  EXPECT_THAT(bad(braid_world_barrier(world)), HasSubstr("nothing that is there"));
}

TEST(CWorlds, CompileInProcessesAndInBackground) {
  braid_world_options options{
      .bytes = sizeof(braid_world_options), .device = "cpu", .world = kRanks, .threads = 1};
  options.compile_processes = 2;
  options.compile_worker = BRAID_BINARY_DIR "/lib/braid-worker";
  options.compile_in_background = 1;
  braid_world world = nullptr;
  good(braid_world_open(&options, &world));
  braid_executable executable = nullptr;
  good(braid_compile(world, kGraph, &executable));
  const char* const symbol = "T";
  std::int64_t rows = 1;
  std::int32_t ready = 0;
  good(braid_ready(executable, &symbol, &rows, 1, &ready));
  EXPECT_EQ(ready, 1);
  rows = 4;
  braid_plan plan = nullptr;
  good(braid_prepare(executable, &symbol, &rows, 1, &plan));
  good(braid_ready(executable, &symbol, &rows, 1, &ready));
  EXPECT_EQ(ready, 1);
  rows = 5;
  EXPECT_THAT(bad(braid_ready(executable, &symbol, &rows, 1, &ready)), HasSubstr("T"));
  EXPECT_THAT(bad(braid_ready(executable, &symbol, &rows, 1, nullptr)), HasSubstr("ready"));
  EXPECT_THAT(bad(braid_ready(nullptr, &symbol, &rows, 1, &ready)), HasSubstr("is null"));
  good(braid_plan_destroy(plan));
  good(braid_executable_destroy(executable));
  good(braid_world_destroy(world));
}

}  // namespace
