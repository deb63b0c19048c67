// Memory that ranks in processes of their own share, on the cpu device.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>

#include "braid/error.h"
#include "braid/symmetric_memory.h"
#include "runtime/child.h"
#include "runtime/free_port.h"

namespace braid {
namespace {

constexpr int kRanks = 4;
constexpr std::array<std::int64_t, 1> kOne{1};

/// What a rank does with its world. Throws where something is wrong.
using Work = void (*)(int rank, const World& world, Rendezvous& rendezvous);

/// What `work` throws; empty where it does not.
std::string error_of_rank(int rank, const Meeting& meeting, Work work) {
  try {
    WorldOptions options;
    options.device = DeviceKind::kCpu;
    options.world = kRanks;
    options.threads = 1;
    options.rendezvous = meet_by_socket({.ranks = {rank},
                                         .world = kRanks,
                                         .port = meeting.port,
                                         .job = meeting.job,
                                         .timeout_s = 30});
    work(rank, World::open(options), *options.rendezvous);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

/// Each rank in a process; `expected` stands in the error of each but `lost`, which has none.
void expect_of_all(Work work, const std::string& expected, int lost = -1) {
  const Meeting meeting;
  std::vector<pid_t> children;
  for (int rank = 0; rank < kRanks; ++rank) {
    children.push_back(start_child([&] {
      const std::string error = error_of_rank(rank, meeting, work);
      const bool none = expected.empty() || rank == lost;
      if (none ? error.empty() : error.find(expected) != std::string::npos) return 0;
      std::fputs(fmt::format("rank {}: '{}'\n", rank, error).c_str(), stderr);
      return 1;
    }));
  }
  for (const pid_t child : children) EXPECT_EQ(exit_status(child), 0);
}

/// Each rank adds its number to a word of each peer, one after the other.
void add_up(int rank, const World& world, Rendezvous& rendezvous, const SymmetricMemory& memory) {
  const auto stream = world.device().create_stream(rank);
  for (std::uint32_t round = 0; round < 20; ++round) {
    for (int peer = 0; peer < kRanks; ++peer) {
      stream->write_value(memory.buffer(rank, peer, kOne, DType::kI32, 4 * rank), round + peer);
    }
    memory.barrier(rank, *stream);
    std::array<std::uint32_t, kRanks> words{};
    stream->copy_to_host(words.data(), memory.buffer(rank, rank, kOne, DType::kI32), 4 * kRanks);
    stream->synchronize();
    memory.check();
    for (const std::uint32_t word : words) {
      if (word != round + static_cast<std::uint32_t>(rank)) throw_internal("word", "is wrong");
    }
    const int next = (rank + 1) % kRanks, before = (rank + kRanks - 1) % kRanks;
    memory.put_signal(rank, next, *stream);
    memory.wait_signal(rank, before, *stream);
    memory.barrier(rank, *stream, 1);
  }
  stream->synchronize();
  memory.check();
  rendezvous.barrier();
}

TEST(SymmetricProcesses, ReachEachOthersMemory) {
  expect_of_all(
      [](int rank, const World& world, Rendezvous& rendezvous) {
        const Group all{kRanks, true, {}};
        add_up(rank, world, rendezvous, SymmetricMemory::allocate(world, "tp", all, 64));
        const auto own = world.device().allocate(rank, 1 << 16);
        const std::uint64_t at = own->address() + static_cast<std::uint64_t>(rank) * 4096;
        add_up(rank, world, rendezvous,
               SymmetricMemory::register_memory(world, "kv", all, std::array{at}, 64));
      },
      "");
}

TEST(SymmetricProcesses, WithAnotherSizeAreRefused) {
  expect_of_all(
      [](int rank, const World& world, Rendezvous&) {
        (void)SymmetricMemory::allocate(world, "tp", {kRanks, true, {}}, rank == 2 ? 64 : 128);
      },
      "rank 2 asks for symmetric memory 'tp' of 64 bytes");
}

TEST(SymmetricProcesses, OneThatIsLostIsNamed) {
  expect_of_all(
      [](int rank, const World& world, Rendezvous&) {
        const auto memory = SymmetricMemory::allocate(world, "tp", {kRanks, true, {}}, 64);
        if (rank == 2) ::_exit(0);
        const auto stream = world.device().create_stream(rank);
        memory.barrier(rank, *stream);
        stream->synchronize();
        memory.check();
      },
      "rank 2 ", /*lost=*/2);
}

}  // namespace
}  // namespace braid
