// All-reduces by packets beyond what executables do: at the end of the epochs, and with another
// protocol than the template's, in which received packets are sent on.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/error.h"
#include "codegen/kernel/spec.h"
#include "codegen/tile/remote.h"
#include "codegen/tile/verify.h"
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

constexpr std::size_t kCount = 1324;  ///< elements: a whole block and a part of one
constexpr std::size_t kBlocks = 2;
constexpr std::size_t kRuns = 5;

/// The kernel of an all-reduce and nothing else.
tile::Program all_reduce(int world) {
  Graph body;
  body.add_group("tp", {world, true, {}});
  const ValueId x = body.add_input({"x", {DType::kF32, {static_cast<std::int64_t>(kCount)}}});
  const NodeId sum = body.add_node("y", "all_reduce", {x},
                                   {{"reduce_op", std::string("sum")},
                                    {"group", std::string("tp")},
                                    {"algorithm", std::string("ll")}});
  body.add_output(body.node(sum).outputs[0]);
  const Target target = Target::parse("sm_80");
  const auto shared = std::make_shared<const Graph>(std::move(body));
  return tile_program({shared, default_config(*shared, target)}, target, 1);
}

/// The input of a rank in a run: floats whose sums round.
Floats numbers(std::size_t rank, std::size_t run) {
  Floats values(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    values[i] = static_cast<float>((i * 2654435761U + (7 * run + rank) * 40503U) / 7 % 1009) / 37;
  }
  return values;
}

/// Summed in rank order, in f32.
Floats sum(int world, std::size_t run) {
  Floats total(kCount, 0);
  for (int r = 0; r < world; ++r) {
    const Floats part = numbers(static_cast<std::size_t>(r), run);
    for (std::size_t i = 0; i < kCount; ++i) total[i] += part[i];
  }
  return total;
}

/// The error of kRuns runs back to back; empty if there is none.
std::string verdict(const tile::Program& program, const CompiledKernel& kernel,
                    const ProbeOptions& options, std::uint32_t epochs_so_far = 0) {
  ProbeWorld world(program, kernel, options);
  for (int r = 0; r < options.world; ++r) {
    for (std::size_t run = 0; run < kRuns; ++run) {
      world.add_input(r, numbers(static_cast<std::size_t>(r), run));
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
    const Floats expected = sum(options.world, run);
    for (int r = 0; r < options.world; ++r) {
      if (world.output(r, run, kCount) != expected) {
        return fmt::format("a wrong value in run {} of rank {}", run, r);
      }
    }
  }
  return "";
}

TEST(Packets, TouchNoOperandOfAPeerAndMeetNobody) {
  const tile::Program program = all_reduce(2);
  EXPECT_EQ(program.grid, Expr(static_cast<std::int64_t>(kBlocks)));
  EXPECT_TRUE(tile::remote_accesses(program).empty());  // scratch is the step's own
  EXPECT_FALSE(tile::meets(program));
  EXPECT_EQ(program.scratch_bytes, 2 * 2 * 1324 * 8);
}

TEST(Packets, EpochsGoAroundWithoutZero) {
  for (const int ranks : {2, 3}) {
    const tile::Program program = all_reduce(ranks);
    const CompiledKernel kernel = compiled(program);
    // The half that 0 would take is zeroed, or holds the packets of 2^32 - 2.
    for (const std::uint32_t before : {0U, 0xffffffffU, 0xfffffffdU}) {
      for (const char* schedule : {"", "3", "delay:0", "delay:3"}) {
        EXPECT_EQ(verdict(program, kernel, {.world = ranks, .schedule = schedule}, before), "")
            << before;
      }
    }
  }
}

/// Problems of a broken kernel, with schedules that hold somebody back.
std::vector<std::string> problems(const tile::Program& program) {
  tile::verify(program);
  const CompiledKernel kernel = compiled(program);
  std::vector<std::string> found;
  for (int seed = 0; seed < 6; ++seed) {
    found.push_back(verdict(program, kernel, {.schedule = fmt::format("delay:{}", seed)}));
  }
  return found;
}

tile::Id constant_at_front(tile::Program& program, std::int64_t value) {
  const auto id = static_cast<tile::Id>(program.insts.size());
  program.insts.push_back(
      {.op = tile::Op::kConstant, .type = {tile::Kind::kI64}, .args = {}, .integer = value});
  program.body.insert(program.body.begin(), id);
  return id;
}

/// The half of the scratch that an epoch takes.
bool is_half(const tile::Program& program, const tile::Inst& inst) {
  return inst.op == tile::Op::kMap && inst.fn == tile::Fn::kRem &&
         program.at(inst.args[0]).op == tile::Op::kEpoch;
}

TEST(Packets, OneHalfIsOverwrittenBeforeASlowPeerReadsIt) {
  tile::Program program = all_reduce(2);
  const tile::Id one = constant_at_front(program, 1);
  for (tile::Inst& inst : program.insts) {
    if (is_half(program, inst)) inst.args[1] = one;
  }
  // A rank that is held back finds the packets of run 2 in run 1, and its peer waits for it.
  EXPECT_THAT(problems(program), Contains(HasSubstr("every block polls what no one will write")));
}

TEST(Packets, ThoseInTheWrongSlotAreMissed) {
  tile::Program program = all_reduce(2);
  const tile::Id zero = constant_at_front(program, 0);
  int changed = 0;
  for (tile::Inst& inst : program.insts) {
    const bool is_add = inst.op == tile::Op::kMap && inst.fn == tile::Fn::kAdd;
    if (!is_add || program.at(inst.args[1]).op != tile::Op::kParam) continue;
    // half * world + rank, of what this rank sends
    const tile::Inst& slots = program.at(inst.args[0]);
    if (slots.op != tile::Op::kMap || slots.fn != tile::Fn::kMul) continue;
    if (!is_half(program, program.at(slots.args[0]))) continue;
    inst.args[1] = zero;
    ++changed;
  }
  EXPECT_GE(changed, 1);
  EXPECT_THAT(problems(program), Each(HasSubstr("every block polls what no one will write")));
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

TEST(Packets, ALostPacketEndsTheRun) {
  const tile::Program program = finished(kRelay);
  ProbeWorld world(program, compiled(program), {.checks = kCheckNothing, .timeout_ns = 20'000'000});
  // All packets but the last one arrive.
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

TEST(Packets, WhatCameIsSentOn) {
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
