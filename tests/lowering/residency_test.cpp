#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/error.h"
#include "lowering/plan/program.h"

namespace braid {
namespace {

using ::testing::HasSubstr;
using Kind = Step::Kind;

/// Steps on streams: barriers of so many blocks, or events.
struct Part {
  Kind kind;
  int stream;
  int number;  ///< blocks; of an event, which one
};

Program program_of(const std::vector<Part>& parts, int ranks_per_device = 1) {
  Program program;
  program.name = "meetings";
  program.target = Target::parse("sm_80");
  program.world = 8;
  program.ranks_per_device = ranks_per_device;
  program.groups["tp"] = {8, true, {}};
  program.arenas = {{ArenaKind::kSymmetric, "tp", 256}};
  auto body = std::make_shared<Graph>();
  body->add_group("tp", program.groups["tp"]);
  const KernelSpec barrier{body, default_config(*body, program.target)};
  const int last = static_cast<int>(parts.size()) - 1;
  for (const Part& part : parts) {
    Step step{.kind = part.kind, .name = "s", .stream = part.stream};
    if (part.kind == Kind::kBarrier) {
      step.kernel = static_cast<int>(program.kernels.size());
      program.kernels.push_back({barrier, requirements(barrier, program.target, ranks_per_device)});
      Requirements& needs = program.kernels.back().needs;
      needs.grid = part.number;
      needs.flag_words = part.number + 8;
      step.flags = static_cast<int>(program.buffers.size());
      program.buffers.push_back({.kind = BufferKind::kFlags,
                                 .name = "flags",
                                 .type = {DType::kI32, {needs.flag_words}},
                                 .arena = 0,
                                 .offset = program.arenas[0].bytes,
                                 .bytes = 4 * needs.flag_words,
                                 .first_step = 0,
                                 .last_step = last});
      program.arenas[0].bytes += 1024;
    } else {
      step.event = part.number;
    }
    program.steps.push_back(step);
  }
  return program;
}

std::string problem(const Program& program) {
  try {
    verify(program);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
    return error.what();
  }
  return "";
}

constexpr Kind kBarrier = Kind::kBarrier;

// An A100 has 108 multiprocessors.
TEST(Residency, WhatMayWaitAtOneTimeFits) {
  EXPECT_EQ(problem(program_of({{kBarrier, 0, 64}, {kBarrier, 1, 44}})), "");
  const std::string told = problem(program_of({{kBarrier, 0, 64}, {kBarrier, 1, 45}}));
  EXPECT_EQ(
      told,
      "program: step 0 's', 1 's' may wait for peers at one time with 109 blocks on each of 1 "
      "ranks of a device; expected no more than the 108 multiprocessors of A100");
  // One after another on a stream.
  EXPECT_EQ(problem(program_of({{kBarrier, 0, 100}, {kBarrier, 0, 100}})), "");
  EXPECT_NE(problem(program_of({{kBarrier, 0, 109}})), "");
}

TEST(Residency, AnEventLetsOneWaitAfterAnother) {
  const std::vector<Part> parts = {
      {kBarrier, 0, 100}, {Kind::kEventRecord, 0, 0}, {Kind::kEventWait, 1, 0}, {kBarrier, 1, 100}};
  EXPECT_EQ(problem(program_of(parts)), "");
  EXPECT_THAT(problem(program_of({parts[1], parts[2], parts[0], parts[3]})),
              HasSubstr("step 2 's', 3 's' may wait for peers at one time with 200 blocks"));
}

TEST(Residency, RanksOfADeviceCount) {
  const std::vector<Part> parts = {{kBarrier, 0, 27}, {kBarrier, 1, 27}};
  EXPECT_EQ(problem(program_of(parts, 2)), "");
  EXPECT_THAT(problem(program_of(parts, 3)), HasSubstr("54 blocks on each of 3 ranks"));
}

// From each stream the largest counts, among those that no event orders with the step.
// Blocks that wait for each other are resident together as well.
TEST(Residency, AMeetingOfBlocksCounts) {
  const auto local = [](int blocks, int threads = 256) {
    Program program = program_of({{kBarrier, 0, blocks}});
    program.arenas[0] = {ArenaKind::kState, "", program.arenas[0].bytes};
    program.steps[0].kind = Kind::kLaunch;
    Requirements& needs = program.kernels[0].needs;
    needs.comm_group.clear();
    needs.meets = false;
    needs.threads = threads;
    return program;
  };
  EXPECT_EQ(problem(local(108)), "");
  EXPECT_THAT(problem(local(109)), HasSubstr("with 109 blocks"));
  // Two of them have 255 registers for each thread.
  EXPECT_EQ(problem(local(216, 128)), "");
  EXPECT_THAT(problem(local(217, 128)), HasSubstr("with 109 blocks"));
}

TEST(Residency, ManyStreams) {
  std::vector<Part> parts = {{kBarrier, 0, 36}, {kBarrier, 1, 1},  {kBarrier, 1, 36},
                             {kBarrier, 1, 2},  {kBarrier, 2, 36}, {kBarrier, 2, 3}};
  EXPECT_EQ(problem(program_of(parts)), "");
  parts[3].number = 37;
  EXPECT_THAT(problem(program_of(parts)), HasSubstr("0 's', 3 's', 4 's' may wait"));
}

}  // namespace
}  // namespace braid
