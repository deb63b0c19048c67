// A probe of packets (`ll_store`, `ll_load`): an all-reduce that no template builds yet, in which
// data and flag are one access, on the ranks of the cpu device.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "braid/error.h"
#include "codegen/tile/remote.h"
#include "run/tile_probe.h"

namespace braid {
namespace {

using testing::compiled;
using ::testing::Contains;
using ::testing::Each;
using testing::finished;
using testing::Floats;
using ::testing::HasSubstr;
using testing::kFlagsAt;
using testing::kScratchAt;
using testing::ProbeOptions;
using testing::ProbeWorld;

constexpr std::size_t kCount = 300;  ///< elements: a whole block and a part of one
constexpr std::size_t kBlocks = 2;
constexpr std::size_t kRuns = 5;

// A slot of scratch holds what one rank sent. There are two halves of slots, which epochs take in
// turn, and no barrier. That suffices: a rank that sends in epoch e + 2 is through its run of epoch
// e + 1, so it has packets of e + 1 from every peer; a peer sends those once its run of e is over,
// and with it all its reads of the half that e + 2 overwrites.
//
// {0} world, {1} scratch bytes, {2} what a rank knows of itself, {3} dtype of a packet
constexpr const char* kAllReduce = R"(kernel ll_all_reduce
scratch {1}
grid 2
{2}param 6 scratch 0 group "tp" divisor 256
param 7 input 0 divisor 256
param 8 output 0 divisor 256
{{
  %block = program_id : i64
  %rank = param 1 : i64
  %zero = constant 0 : i64
  %one = constant 1 : i64
  %two = constant 2 : i64
  %world = constant {0} : i64
  %epoch = epoch : i64
  %half = rem %epoch, %two : i64
  %slots = mul %half, %world : i64
  %c256 = constant 256 : i32
  %c512 = constant 512 : i32
  %count = constant 300 : i32
  %b32 = to_i32 %block : i32
  %start = mul %b32, %c256 : i32
  %col = range 1 : i32[1, 256]
  %at = add %start, %col : i32[1, 256]
  %ok = lt %at, %count : pred[1, 256]
  %x = param 7 : ptr
  %mine = load.f32 %x, %at, %ok : f32[1, 256]
  %scratch = param 6 : i64
  %mine_slot = add %slots, %rank : i64
  %mine32 = to_i32 %mine_slot : i32
  %to0 = mul %mine32, %c512 : i32
  %to = add %to0, %at : i32[1, 256]
  %send = for %peer = %zero to %world step %one {{
    %there = peer %scratch, %peer : ptr
    ll_store.{3} %there, %to, %mine, %ok
  }}
  %here = peer %scratch, %rank : ptr
  %none = constant 0 : f32[1, 256]
  %all = for %source = %zero to %world step %one carry %sum = %none : f32[1, 256] {{
    %slot = add %slots, %source : i64
    %slot32 = to_i32 %slot : i32
    %from0 = mul %slot32, %c512 : i32
    %from = add %from0, %at : i32[1, 256]
    %part = ll_load.{3} %here, %from, %source, %ok : f32[1, 256]
    %next = add %sum, %part : f32[1, 256]
    yield %next
  }}
  %y = result 0, %all : f32[1, 256]
  %out = param 8 : ptr
  store.f32 %out, %at, %y, %ok
}}
)";

std::string all_reduce(int world, std::string_view dtype = "f32") {
  return fmt::format(kAllReduce, world, 2 * world * 512 * 8, testing::head_of_probe(world), dtype);
}

/// The text with one piece replaced.
std::string broken(std::string text, std::string_view piece, std::string_view by) {
  const auto at = text.find(piece);
  EXPECT_NE(at, std::string::npos) << piece;
  return text.replace(at, piece.size(), by);
}

/// Of a rank in a run; integers that 16 bits hold, or floats whose sums round.
Floats numbers(std::size_t rank, std::size_t run, bool integers) {
  Floats values(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    const auto n = static_cast<float>((i * 2654435761U + (7 * run + rank) * 40503U) / 7 % 1009);
    values[i] = integers ? n / 8 - 63 : n / 37;
    if (integers) values[i] = std::trunc(values[i]);
  }
  return values;
}

/// In the order of the ranks, in f32.
Floats sum(int world, std::size_t run, bool integers) {
  Floats total(kCount, 0);
  for (int r = 0; r < world; ++r) {
    const Floats part = numbers(static_cast<std::size_t>(r), run, integers);
    for (std::size_t i = 0; i < kCount; ++i) total[i] += part[i];
  }
  return total;
}

/// What is wrong with kRuns runs back to back; empty when nothing is.
std::string verdict(const tile::Program& program, const CompiledKernel& kernel,
                    const ProbeOptions& options, bool integers = false,
                    std::uint32_t epochs_so_far = 0) {
  ProbeWorld world(program, kernel, options);
  for (int r = 0; r < options.world; ++r) {
    for (std::size_t run = 0; run < kRuns; ++run) {
      world.add_input(r, numbers(static_cast<std::size_t>(r), run, integers));
      world.add_output(r, kCount);
    }
    world.write_arena(r, kFlagsAt, std::vector<std::uint32_t>(kBlocks, epochs_so_far));
  }
  for (std::size_t run = 0; run < kRuns; ++run) world.launch(run, run);
  const bool ended = world.synchronize();
  for (const Finding& finding : world.findings()) return finding.text();
  for (int r = 0; r < options.world; ++r) {
    const protocol::Record record = world.record(r);
    if (record.kind == protocol::Record::kNothing) continue;
    return fmt::format("rank {} waited for rank {}: epoch {} in place of {}", r, record.peer,
                       record.seen, record.expected);
  }
  if (!ended) return "an error";
  for (std::size_t run = 0; run < kRuns; ++run) {
    const Floats expected = sum(options.world, run, integers);
    for (int r = 0; r < options.world; ++r) {
      if (world.output(r, run, kCount) != expected) {
        return fmt::format("a wrong value in run {} of rank {}", run, r);
      }
    }
  }
  return "";
}

TEST(LlProbe, CompilesForAllTargetsAndWritesNoOperandOfAPeer) {
  for (const char* dtype : {"f32", "bf16", "f16"}) {
    const tile::Program program = finished(all_reduce(2, dtype));
    EXPECT_TRUE(tile::remote_accesses(program).empty());  // scratch is the step's own
    testing::expect_compiles(program);
  }
}

TEST(LlProbe, AddsInTheOrderOfTheRanks) {
  for (const int world : {2, 3}) {
    const tile::Program program = finished(all_reduce(world));
    const CompiledKernel kernel = compiled(program);
    for (const Checks checks : {kCheckAll, kCheckNothing}) {
      EXPECT_EQ(verdict(program, kernel, {.world = world, .checks = checks}), "") << world;
    }
  }
}

TEST(LlProbe, PacketsOfSixteenBits) {
  for (const char* dtype : {"bf16", "f16"}) {
    const tile::Program program = finished(all_reduce(2, dtype));
    EXPECT_EQ(verdict(program, compiled(program), {}, /*integers=*/true), "") << dtype;
  }
}

TEST(LlProbe, EpochsGoAroundWithoutZero) {
  const tile::Program program = finished(all_reduce(2));
  const CompiledKernel kernel = compiled(program);
  // The half that 0 would take is zeroed, or holds the packets of 2^32 - 2.
  for (const std::uint32_t before : {0xffffffffU, 0xfffffffdU}) {
    for (const char* schedule : {"", "delay:0", "delay:3"}) {
      EXPECT_EQ(verdict(program, kernel, {.schedule = schedule}, false, before), "") << before;
    }
  }
}

TEST(LlProbe, NoScheduleChangesTheResult) {
  const tile::Program program = finished(all_reduce(2));
  const CompiledKernel kernel = compiled(program);
  for (int seed = 0; seed < 12; ++seed) {
    for (const char* kind : {"", "delay:"}) {
      const std::string schedule = fmt::format("{}{}", kind, seed);
      EXPECT_EQ(verdict(program, kernel, {.schedule = schedule}), "") << schedule;
    }
  }
}

constexpr int kSeeds = 6;

/// What the schedules show where a piece is broken.
std::vector<std::string> problems(const std::string& text) {
  const tile::Program program = finished(text);
  const CompiledKernel kernel = compiled(program);
  std::vector<std::string> found;
  for (int seed = 0; seed < kSeeds; ++seed) {
    found.push_back(verdict(program, kernel,
                            {.schedule = fmt::format("delay:{}", seed), .timeout_ns = 50'000'000}));
  }
  return found;
}

TEST(LlProbe, OneHalfIsOverwrittenBeforeASlowPeerReadsIt) {
  const auto found = problems(broken(all_reduce(2), "rem %epoch, %two", "rem %epoch, %one"));
  // A rank that is held back finds the packets of run 2 in run 1, and its peer waits for it.
  EXPECT_THAT(found, Contains(HasSubstr(": epoch 1 in place of 2")));
}

TEST(LlProbe, AReadThatWaitsForNoFlagIsNoticed) {
  const auto found = problems(broken(all_reduce(2), "ll_load.f32 %here, %from, %source, %ok",
                                     "load.f32 %here, %from, %ok"));
  EXPECT_THAT(found, Each(HasSubstr("race: ")));
}

TEST(LlProbe, APacketToTheWrongSlotIsMissed) {
  const auto found = problems(broken(all_reduce(2), "add %slots, %rank", "add %slots, %zero"));
  EXPECT_THAT(found, Each(HasSubstr(": epoch 0 in place of 1")));
}

// Sends on what came, so that a lost packet must not go on.
const std::string kRelay = "kernel relay\nscratch 2048\ngrid 1\n" + testing::head_of_probe(2) +
                           R"(param 6 scratch 0 group "tp" divisor 256
{
  %rank = param 1 : i64
  %one = constant 1 : i64
  %peer = sub %one, %rank : i64
  %scratch = param 6 : i64
  %here = peer %scratch, %rank : ptr
  %there = peer %scratch, %peer : ptr
  %at = range 1 : i32[1, 128]
  %c128 = constant 128 : i32
  %next = add %at, %c128 : i32[1, 128]
  %v = ll_load.f32 %here, %at, %peer : f32[1, 128]
  ll_store.f32 %there, %next, %v
}
)";

TEST(LlProbe, ALostPacketEndsTheRun) {
  const tile::Program program = finished(kRelay);
  ProbeWorld world(program, compiled(program), {.checks = kCheckNothing, .timeout_ns = 20'000'000});
  // All but the last one comes.
  std::vector<std::uint32_t> packets;
  for (std::uint32_t i = 0; i < 128; ++i) {
    packets.push_back(i);
    packets.push_back(i < 127 ? 1 : 0);
  }
  world.write_arena(1, kScratchAt, packets);
  world.launch(1, 0, 0);
  EXPECT_TRUE(world.synchronize());
  const protocol::Record record = world.record(1);
  EXPECT_EQ(record.kind, protocol::Record::kLostWait);
  EXPECT_EQ(record.peer, 0);
  EXPECT_EQ(record.slot, 127);
  EXPECT_EQ(record.expected, 1);
  EXPECT_EQ(record.seen, 0);
  for (int r = 0; r < 2; ++r) {
    EXPECT_EQ(world.arena_words(r, protocol::kAbortOffset, 1)[0], 1) << r;
  }
  EXPECT_EQ(world.arena_words(1, kFlagsAt, 1)[0], 0);  // the run has not ended
  EXPECT_EQ(world.arena_words(0, kScratchAt + 1024, 256), std::vector<std::uint32_t>(256, 0));
}

TEST(LlProbe, WhatCameIsSentOn) {
  const tile::Program program = finished(kRelay);
  ProbeWorld world(program, compiled(program));
  std::vector<std::uint32_t> packets;
  for (std::uint32_t i = 0; i < 128; ++i) packets.insert(packets.end(), {i, 1});
  for (int r = 0; r < 2; ++r) world.write_arena(r, kScratchAt, packets);
  world.launch();
  EXPECT_TRUE(world.synchronize());
  for (const Finding& finding : world.findings()) ADD_FAILURE() << finding.text();
  for (int r = 0; r < 2; ++r) EXPECT_EQ(world.arena_words(r, kScratchAt + 1024, 256), packets);
}

}  // namespace
}  // namespace braid
