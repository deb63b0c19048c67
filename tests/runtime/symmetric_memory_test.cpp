// Memory of the caller's that ranks share: in one world, and in worlds of one rank each.
#include "braid/symmetric_memory.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <numeric>
#include <thread>

#include "braid/error.h"
#include "braid/executable.h"
#include "findings.h"
#include "runtime/device_loader.h"
#include "runtime/error_of.h"

namespace braid {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Words = std::vector<std::uint32_t>;

const Group kPair{2, true, {}};

World open_world(int ranks) {
  WorldOptions options;
  options.device = DeviceKind::kCpu;
  options.world = ranks;
  options.threads = 2;
  return World::open(options);
}

Words words_of(Stream& stream, std::uint64_t from, std::size_t count) {
  Words words(count);
  stream.copy_to_host(words.data(), from, count * sizeof words[0]);
  stream.synchronize();
  return words;
}

// Each rank writes a row of its own, then reads all rows, again and again: a missing barrier shows.
TEST(SymmetricMemory, BarriersOrderWhatRanksDoInEachOthersMemory) {
  constexpr int kRanks = 3, kRounds = 50;
  constexpr std::size_t kCount = 1000;
  const World world = open_world(kRanks);
  const SymmetricMemory memory =
      SymmetricMemory::allocate(world, "tp", {kRanks, true, {}}, kCount * 4, {.channels = 2});
  EXPECT_EQ(memory.size(), kCount * 4);
  EXPECT_THAT(memory.members(1), ElementsAre(0, 1, 2));
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<std::unique_ptr<Memory>> seen;
  for (int rank = 0; rank < kRanks; ++rank) {
    streams.push_back(world.device().create_stream(rank));
    seen.push_back(world.device().allocate(rank, kRounds * kRanks * kCount * 4));
  }
  const std::array<std::int64_t, 1> shape{kCount};
  for (int round = 0; round < kRounds; ++round) {
    for (int rank = 0; rank < kRanks; ++rank) {
      Stream& stream = *streams[static_cast<std::size_t>(rank)];
      const Words row(kCount, static_cast<std::uint32_t>(round * kRanks + rank));
      stream.copy_from_host(memory.buffer(rank, rank, shape, DType::kI32), row.data(), kCount * 4);
      memory.barrier(rank, stream, 0);
      for (int peer = 0; peer < kRanks; ++peer) {
        const auto place = static_cast<std::size_t>((round * kRanks + peer)) * kCount * 4;
        stream.copy(seen[static_cast<std::size_t>(rank)]->address() + place,
                    memory.buffer(rank, peer, shape, DType::kI32), kCount * 4);
      }
      memory.barrier(rank, stream, 1);
    }
  }
  Words expected;
  for (std::uint32_t row = 0; row < kRounds * kRanks; ++row) {
    expected.insert(expected.end(), kCount, row);
  }
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(words_of(*streams[rank], seen[rank]->address(), expected.size()), expected);
  }
  memory.check();
}

// A token goes around the ranks, twice; each adds its own word to what it has copied from before.
TEST(SymmetricMemory, SignalsPassFromOneRankToAnother) {
  constexpr int kRanks = 3, kTurns = 2;
  const World world = open_world(kRanks);
  const SymmetricMemory memory =
      SymmetricMemory::allocate(world, "tp", {kRanks, true, {}}, kTurns * kRanks * 4);
  std::vector<std::unique_ptr<Stream>> streams;
  for (int rank = 0; rank < kRanks; ++rank) streams.push_back(world.device().create_stream(rank));
  // The last ranks first, so that a signal that is there too early shows.
  for (int rank = kRanks - 1; rank >= 0; --rank) {
    Stream& stream = *streams[static_cast<std::size_t>(rank)];
    const int before = (rank + kRanks - 1) % kRanks;
    for (int turn = 0; turn < kTurns; ++turn) {
      const int place = turn * kRanks + rank;
      const std::array<std::int64_t, 1> shape{place};
      if (place > 0) {
        memory.wait_signal(rank, before, stream, 3);
        stream.copy(memory.buffer(rank, rank, shape, DType::kI32),
                    memory.buffer(rank, before, shape, DType::kI32),
                    static_cast<std::size_t>(place) * 4);
      }
      const std::array<std::int64_t, 1> one{1};
      stream.write_value(
          memory.buffer(rank, rank, one, DType::kI32, static_cast<std::size_t>(place) * 4),
          static_cast<std::uint32_t>(place + 100));
      memory.put_signal(rank, (rank + 1) % kRanks, stream, 3);
    }
  }
  Words expected(kTurns * kRanks);
  std::iota(expected.begin(), expected.end(), 100);
  const std::array<std::int64_t, 1> all{kTurns * kRanks};
  EXPECT_EQ(words_of(*streams[2], memory.buffer(2, 2, all, DType::kI32), expected.size()),
            expected);
  memory.check();
}

// Two signals let two waits pass, and one more waits in vain.
TEST(SymmetricMemory, ASignalLetsOneWaitPass) {
  WorldOptions options;
  options.device = DeviceKind::kCpu;
  options.world = 2;
  options.timeout_s = 2;
  const World world = World::open(options);
  const SymmetricMemory memory = SymmetricMemory::allocate(world, "tp", kPair, 64);
  const auto sender = world.device().create_stream(0);
  const auto receiver = world.device().create_stream(1);
  memory.put_signal(0, 1, *sender, 1);
  memory.put_signal(0, 1, *sender, 1);
  for (int i = 0; i < 2; ++i) memory.wait_signal(1, 0, *receiver, 1);
  receiver->synchronize();
  memory.check();
  memory.put_signal(0, 1, *sender, 2);  // another channel
  memory.wait_signal(1, 0, *receiver, 1);
  receiver->synchronize();
  const auto [code, text] = error_of([&] { memory.check(); });
  EXPECT_EQ(code, ErrorCode::kTimeout);
  EXPECT_EQ(text,
            "symmetric memory 'tp': a wait for a peer took longer than 2 s: rank 1, signal of "
            "channel 1: waited for rank 0 to reach epoch 3, last saw 2");
  memory.recover();
  memory.wait_signal(1, 0, *receiver, 2);  // that of before is forgotten
  memory.put_signal(0, 1, *sender, 2);
  receiver->synchronize();
  memory.check();
}

// A thread has two peers, or one.
TEST(SymmetricMemory, BarriersOfMoreRanksThanABlockHasThreads) {
  constexpr int kRanks = 40;
  const World world =
      World::open({.device = DeviceKind::kCpu, .world = kRanks, .threads = 2, .timeout_s = 20});
  const SymmetricMemory memory =
      SymmetricMemory::allocate(world, "tp", {kRanks, true, {}}, 4, {.channels = 1});
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<std::uint32_t> seen(kRanks);
  const std::array<std::int64_t, 1> one{1};
  for (int rank = 0; rank < kRanks; ++rank) {
    streams.push_back(world.device().create_stream(rank));
    Stream& stream = *streams.back();
    const auto r = static_cast<std::size_t>(rank);
    stream.write_value(memory.buffer(rank, rank, one, DType::kI32), 100 + static_cast<unsigned>(r));
    memory.barrier(rank, stream);
    stream.copy_to_host(&seen[r], memory.buffer(rank, (rank + 35) % kRanks, one, DType::kI32), 4);
  }
  for (const auto& stream : streams) stream->synchronize();
  for (std::size_t r = 0; r < kRanks; ++r) EXPECT_EQ(seen[r], 100 + (r + 35) % kRanks);
  memory.check();
}

TEST(SymmetricMemory, ItsKernelsPassTheChecks) {
  WorldOptions options;
  options.device = DeviceKind::kCpu;
  options.world = 2;
  options.sanitize = kCheckAll;
  const World world = World::open(options);
  const SymmetricMemory memory = SymmetricMemory::allocate(world, "tp", kPair, 64);
  const auto first = world.device().create_stream(0), second = world.device().create_stream(1);
  for (int round = 0; round < 3; ++round) {
    memory.barrier(0, *first);
    memory.barrier(1, *second);
    memory.put_signal(0, 1, *first);
    memory.wait_signal(1, 0, *second);
  }
  first->synchronize();
  second->synchronize();
  memory.check();
  EXPECT_TRUE(found_by(world.device()).empty());
}

// As where an executable was loaded: what is saved needs none either.
TEST(SymmetricMemory, NeedsNoCompiler) {
  ::setenv("BRAID_NVRTC", "/nonexistent/libnvrtc.so", 1);
  WorldOptions options;
  options.device = DeviceKind::kCpu;
  options.world = 2;
  options.threads = 2;
  options.use_cache = false;
  const World world = World::open(options);
  const auto own = world.device().allocate(0, 64), other = world.device().allocate(1, 64);
  const SymmetricMemory memory = SymmetricMemory::register_memory(
      world, "kv", kPair, std::vector{own->address(), other->address()}, 64);
  const auto first = world.device().create_stream(0), second = world.device().create_stream(1);
  memory.barrier(0, *first);
  memory.barrier(1, *second);
  memory.put_signal(0, 1, *first);
  memory.wait_signal(1, 0, *second);
  second->synchronize();
  memory.check();
  ::unsetenv("BRAID_NVRTC");
}

TEST(SymmetricMemory, InstancesOfAGroupAreApart) {
  const World world = open_world(4);
  const SymmetricMemory memory =
      SymmetricMemory::allocate(world, "tp", {2, true, {{0, 2}, {3, 1}}}, 256);
  EXPECT_THAT(memory.members(1), ElementsAre(3, 1));
  const auto first = world.device().create_stream(0);
  const auto second = world.device().create_stream(2);
  memory.barrier(0, *first);
  memory.barrier(2, *second);
  first->synchronize();  // ranks 1 and 3 do not come
  memory.check();
  EXPECT_EQ(error_of([&] { (void)memory.buffer(1, 0, {}, DType::kF32); }).second,
            "symmetric memory 'tp': rank 0 is no peer of rank 1; expected one of 3, 1");
}

TEST(SymmetricMemory, WhatDoesNotFitIsRefused) {
  const World world = open_world(2);
  const SymmetricMemory memory = SymmetricMemory::allocate(world, "tp", kPair, 1000);
  const auto stream = world.device().create_stream(0);
  const auto view = [&](std::vector<std::int64_t> shape, std::size_t offset, int rank = 0,
                        int peer = 1) {
    return error_of([&] { (void)memory.buffer(rank, peer, shape, DType::kF32, offset); }).second;
  };
  const std::uint64_t base = memory.buffer(0, 1, {}, DType::kU8);
  EXPECT_EQ(memory.buffer(0, 1, std::vector<std::int64_t>{10, 24}, DType::kF32, 40), base + 40);
  EXPECT_EQ(memory.buffer(0, 1, std::vector<std::int64_t>{0, 7}, DType::kF32, 1000), base + 1000);
  EXPECT_EQ(view({10, 24}, 44),
            "symmetric memory 'tp': f32[10, 24] at byte 44 does not end within its 1000 bytes");
  EXPECT_EQ(view({4}, 2),
            "symmetric memory 'tp': a tensor of f32 at byte 2; expected a multiple of 4");
  EXPECT_THAT(view({1}, 1000), HasSubstr("does not end within its 1000 bytes"));
  EXPECT_THAT(view({0}, 1004), HasSubstr("does not end within its 1000 bytes"));
  EXPECT_THAT(view({std::int64_t{1} << 62, 4}, 0), HasSubstr("does not end within"));
  EXPECT_THAT(view({-1}, 0), HasSubstr("f32[-1] has a negative extent"));
  EXPECT_EQ(view({1}, 0, 0, 2),
            "symmetric memory 'tp': rank 2 is no peer of rank 0; expected one of 0, 1");
  EXPECT_EQ(view({1}, 0, 2, 0),
            "symmetric memory 'tp': rank 2 does not live here; expected one of 0, 1");
  const auto enqueued = [&](auto call) { return error_of(call).second; };
  EXPECT_EQ(enqueued([&] { memory.barrier(0, *stream, 8); }),
            "symmetric memory 'tp': channel 8; expected 0 to 7");
  EXPECT_THAT(enqueued([&] { memory.wait_signal(0, 1, *stream, -1); }), HasSubstr("channel -1"));
  EXPECT_EQ(enqueued([&] { memory.put_signal(0, 0, *stream); }),
            "symmetric memory 'tp': rank 0 signals to itself; expected another one");
  // A stream is that of the rank.
  const char* const expected =
      "symmetric memory 'tp': found a stream of rank 0; expected one of rank 1";
  EXPECT_EQ(enqueued([&] { memory.barrier(1, *stream); }), expected);
  EXPECT_EQ(enqueued([&] { memory.put_signal(1, 0, *stream); }), expected);
  EXPECT_EQ(enqueued([&] { memory.wait_signal(1, 0, *stream); }), expected);
  EXPECT_EQ(enqueued([&] { memory.acquire(1, *stream); }), expected);
  EXPECT_THAT(enqueued([&] { memory.release(1, *stream); }), HasSubstr("rank 1; expected rank 0"));
}

TEST(SymmetricMemory, WhatNoWorldCanHaveIsRefused) {
  const World world = open_world(2);
  const auto asked = [&](const Group& group, std::size_t bytes, int channels = 1) {
    return error_of([&] {
             (void)SymmetricMemory::allocate(world, "tp", group, bytes, {.channels = channels});
           })
        .second;
  };
  EXPECT_EQ(asked({3, true, {}}, 8),
            "symmetric memory 'tp': the group covers 3 ranks; expected the 2 of the world");
  EXPECT_THAT(asked({2, false, {}}, 8), HasSubstr("\"symmetric\": false; expected true"));
  EXPECT_THAT(asked({2, true, {{0, 0}}}, 8), HasSubstr("do not hold each rank"));
  EXPECT_EQ(asked(kPair, 0), "symmetric memory 'tp': 0 bytes; expected 1 or more");
  EXPECT_EQ(asked(kPair, 8, 0), "symmetric memory 'tp': 0 channels; expected 1 to 1024");
}

TEST(SymmetricMemory, TheCallersOwnMemoryIsShared) {
  const World world = open_world(2);
  Device& device = world.device();
  const auto first = device.allocate(0, 4096), second = device.allocate(1, 1024);
  const auto share = [&](std::uint64_t a, std::uint64_t b, std::size_t bytes) {
    return SymmetricMemory::register_memory(world, "kv", kPair, std::vector{a, b}, bytes);
  };
  const SymmetricMemory memory = share(first->address() + 256, second->address(), 1024);
  EXPECT_EQ(memory.buffer(1, 0, {}, DType::kF32, 8), first->address() + 264);
  EXPECT_EQ(memory.buffer(0, 1, {}, DType::kF32, 8), second->address() + 8);
  const auto refused = [&](std::uint64_t a, std::uint64_t b) {
    return error_of([&] { (void)share(a, b, 1024); }).second;
  };
  EXPECT_EQ(refused(first->address(), second->address() + 8),
            fmt::format("symmetric memory 'kv': rank 1 has address {:#x}; expected a multiple of "
                        "16 other than 0",
                        second->address() + 8));
  EXPECT_EQ(refused(first->address(), second->address() + 16),
            fmt::format("symmetric memory 'kv': rank 1 has 1008 bytes at {:#x}; expected 1024",
                        second->address() + 16));
  EXPECT_EQ(refused(first->address(), 1 << 20),
            "memory: no allocation of the cpu device holds the address");
  EXPECT_EQ(error_of([&] {
              (void)SymmetricMemory::register_memory(world, "kv", kPair,
                                                     std::vector{first->address()}, 8);
            }).second,
            "symmetric memory 'kv': 1 addresses; expected one for each of 2 ranks");
}

TEST(SymmetricMemory, AWorkspaceGrowsAndMovesNobodysMemory) {
  const World world = open_world(2);
  const SymmetricMemory small = SymmetricMemory::workspace(world, "tp", kPair, 4096);
  const auto address = [](const SymmetricMemory& memory) {
    return memory.buffer(0, 1, {}, DType::kU8);
  };
  EXPECT_EQ(address(SymmetricMemory::workspace(world, "other", kPair, 100)), address(small));
  const auto stream = world.device().create_stream(0);
  stream->fill(address(small), 7, 4096);
  const SymmetricMemory large = SymmetricMemory::workspace(world, "tp", kPair, 5000);
  EXPECT_EQ(large.size(), 5000U);
  EXPECT_NE(address(large), address(small));
  stream->fill(address(large), 9, 5000);
  EXPECT_EQ(words_of(*stream, address(small), 1024), Words(1024, 0x07070707));
  EXPECT_EQ(SymmetricMemory::workspace(world, "tp", kPair, 100).size(), 5000U);
  EXPECT_THAT(error_of([&] {
                (void)SymmetricMemory::workspace(world, "tp", {3, true, {}}, 100);
              }).second,
              HasSubstr("the group covers 3 ranks; expected the 2 of the world"));
  // Other ranks, other memory.
  EXPECT_NE(address(SymmetricMemory::workspace(world, "tp", {2, true, {{1, 0}}}, 100)),
            address(large));
}

TEST(SymmetricMemory, UsersTakeTurns) {
  const World world = open_world(2);
  const SymmetricMemory memory = SymmetricMemory::workspace(world, "tp", kPair, 64);
  const std::array<std::int64_t, 1> one{1};
  const std::uint64_t word = memory.buffer(0, 0, one, DType::kI32);
  const std::uint64_t gate = memory.buffer(0, 0, one, DType::kI32, 4);
  const std::uint64_t seen = memory.buffer(0, 0, one, DType::kI32, 8);
  const auto first = world.device().create_stream(0), second = world.device().create_stream(0),
             third = world.device().create_stream(0);
  memory.acquire(0, *first);
  first->wait_value(gate, 1);
  first->write_value(word, 42);
  memory.release(0, *first);
  memory.acquire(0, *second);
  second->copy(seen, word, 4);
  memory.release(0, *second);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(words_of(*third, seen, 1), Words{0});  // the second one waits for the first
  third->write_value(gate, 1);
  EXPECT_EQ(words_of(*second, seen, 1), Words{42});
}

/// Two worlds of one rank each, on threads of their own.
class SymmetricWorlds : public ::testing::Test {
 protected:
  explicit SymmetricWorlds(double timeout_s = 60)
      : device_(open_device(DeviceKind::kCpu, {.world = 2, .threads = 2})),
        ends_(meet_in_process({{0}, {1}}, 60)) {
    for (std::size_t rank = 0; rank < 2; ++rank) {
      WorldOptions options;
      options.rendezvous = ends_[rank];
      options.timeout_s = timeout_s;
      worlds_.push_back(World::open(options, device_));
    }
  }

  template <class Body>
  static std::array<std::string, 2> on_both(Body body) {
    std::array<std::string, 2> errors;
    std::array<std::thread, 2> threads;
    for (std::size_t rank = 0; rank < 2; ++rank) {
      threads[rank] = std::thread([&, rank] {
        try {
          body(rank);
        } catch (const Error& error) {
          errors[rank] = error.what();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return errors;
  }

  std::shared_ptr<Device> device_;
  std::vector<std::shared_ptr<Rendezvous>> ends_;
  std::vector<World> worlds_;
};

TEST_F(SymmetricWorlds, ShareMemoryTheyRegister) {
  std::array<std::uint32_t, 2> got{};
  const auto errors = on_both([&](std::size_t me) {
    const int rank = static_cast<int>(me), other = 1 - rank;
    const auto own = device_->allocate(rank, 2048);
    const std::uint64_t address = own->address() + 512 * me;
    const SymmetricMemory memory =
        SymmetricMemory::register_memory(worlds_[me], "kv", kPair, std::vector{address}, 1024);
    const auto stream = device_->create_stream(rank);
    const std::array<std::int64_t, 1> one{1};
    stream->write_value(memory.buffer(rank, other, one, DType::kI32, 16), 50 + 1U * me);
    memory.barrier(rank, *stream, 5);
    stream->copy_to_host(&got[me], address + 16, 4);
    stream->synchronize();
    memory.check();
    ends_[me]->barrier();
  });
  EXPECT_THAT(errors, ElementsAre("", ""));
  EXPECT_THAT(got, ElementsAre(51, 50));
}

TEST_F(SymmetricWorlds, RefuseEachOtherWhereTheyAskForSomethingElse) {
  const auto asks = [&](auto call) {
    const auto errors = on_both([&](std::size_t me) { (void)call(me); });
    EXPECT_EQ(errors[0], errors[1]);
    return errors[0];
  };
  EXPECT_EQ(asks([&](std::size_t me) {
              return SymmetricMemory::allocate(worlds_[me], "tp", kPair, me == 0 ? 64 : 128);
            }),
            "rendezvous: rank 1 asks for symmetric memory 'tp' of 128 bytes, 8 channels, over 2 "
            "ranks; expected what rank 0 asks for, symmetric memory 'tp' of 64 bytes, 8 channels, "
            "over 2 ranks");
  EXPECT_THAT(asks([&](std::size_t me) {
                return SymmetricMemory::allocate(worlds_[me], "tp", kPair, 64,
                                                 {.layout = me == 0 ? "k, v" : "v, k"});
              }),
              HasSubstr("layout 'v, k'; expected"));
  const Graph graph = parse_graph(R"({"braid": 1, "name": "g", "groups": {"tp": {"size": 2}},
    "inputs": [{"name": "x", "dtype": "f32", "shape": [4], "per_rank": true}],
    "nodes": [{"name": "y", "op": "neg", "inputs": ["x"]}], "outputs": ["y"]})");
  EXPECT_THAT(asks([&](std::size_t me) {
                if (me == 0) return Executable::compile(graph, worlds_[me]).launches();
                return SymmetricMemory::allocate(worlds_[me], "tp", kPair, 64).channels();
              }),
              HasSubstr("rank 1 asks for symmetric memory 'tp' of 64 bytes, 8 channels, over 2 "
                        "ranks; expected what rank 0 asks for, a program"));
}

TEST_F(SymmetricWorlds, ARankThatCannotTakePartIsToldOf) {
  const auto own = device_->allocate(0, 64);
  const auto errors = on_both([&](std::size_t me) {
    const std::vector<std::uint64_t> addresses{me == 0 ? own->address() : 24};
    (void)SymmetricMemory::register_memory(worlds_[me], "kv", kPair, addresses, 64);
  });
  EXPECT_THAT(errors[1], HasSubstr("rank 1 has address 0x18; expected a multiple of 16"));
  EXPECT_EQ(errors[0], "rendezvous: rank 1 cannot take part: " + errors[1]);
}

class ImpatientWorlds : public SymmetricWorlds {
 protected:
  ImpatientWorlds() : SymmetricWorlds(2) {}
};

TEST_F(ImpatientWorlds, ABarrierWithoutAPeerNamesItAndBothGoOn) {
  const auto errors = on_both([&](std::size_t me) {
    const int rank = static_cast<int>(me);
    const SymmetricMemory memory = SymmetricMemory::allocate(worlds_[me], "tp", kPair, 64);
    const auto stream = device_->create_stream(rank);
    if (me == 0) {
      memory.barrier(rank, *stream, 2);
      stream->synchronize();
      const auto [code, text] = error_of([&] { memory.check(); });
      EXPECT_EQ(code, ErrorCode::kTimeout);
      EXPECT_EQ(text,
                "symmetric memory 'tp': a wait for a peer took longer than 2 s: rank 0, barrier of "
                "channel 2: waited for rank 1 to reach epoch 1, last saw 0");
    }
    ends_[me]->barrier();
    if (me == 1) {
      EXPECT_EQ(error_of([&] { memory.check(); }).second,
                "symmetric memory 'tp': another rank gave up waiting for a peer; its error names "
                "the peer");
    }
    memory.recover();
    for (int round = 0; round < 3; ++round) memory.barrier(rank, *stream, 2);
    stream->synchronize();
    memory.check();
    ends_[me]->barrier();
  });
  EXPECT_THAT(errors, ElementsAre("", ""));
}

// Waits end long before the timeout.
TEST_F(SymmetricWorlds, APeerThatLeavesIsNamed) {
  const auto errors = on_both([&](std::size_t me) {
    {
      const SymmetricMemory memory = SymmetricMemory::allocate(worlds_[me], "tp", kPair, 64);
      if (me == 0) {
        const auto stream = device_->create_stream(0), other = device_->create_stream(0);
        memory.barrier(0, *stream);
        memory.wait_signal(0, 1, *other);
        const auto start = std::chrono::steady_clock::now();
        stream->synchronize();
        other->synchronize();
        EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
        const auto [code, text] = error_of([&] { memory.check(); });
        EXPECT_EQ(code, ErrorCode::kEnvironment);
        EXPECT_EQ(text, "rendezvous: rank 1 is gone");
        memory.barrier(0, *stream);
      }
    }
    worlds_.pop_back();
    ends_[1].reset();
  });
  EXPECT_THAT(errors, ElementsAre("rendezvous: rank 1 is gone", ""));
}

}  // namespace
}  // namespace braid
