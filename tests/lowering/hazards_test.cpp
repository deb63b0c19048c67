#include "lowering/plan/hazards.h"

#include <gmock/gmock.h>

#include <random>

#include "lowering/lowering_testing.h"
#include "lowering/plan_testing.h"

namespace braid::testing {
namespace {

using ::testing::HasSubstr;

const std::string kX = input("x", R"("T", 6)");
const std::string kSquare = input("w", "6, 6", R"(, "kind": "parameter", "per_rank": true)");

/// mm -> all_reduce + silu, `rounds` times: steps 0 2 4 and 1 3 5, of buffers p0 a0 p1 ...
Program all_reduces(int rounds) {
  std::string nodes;
  std::string last = "x";
  for (int i = 0; i < rounds; ++i) {
    const std::string n = std::to_string(i);
    nodes += (i > 0 ? "," : "") + node("p" + n, "mm", '"' + last + R"(", "w")") + "," +
             all_reduce("c" + n, "p" + n) + "," + node("s" + n, "wait_tensor", R"("c)" + n + '"') +
             "," + node("a" + n, "silu", R"("s)" + n + '"');
    last = "a" + n;
  }
  PassContext context = in_one_shot();
  return lower(graph_of(kX + "," + kSquare, nodes, '"' + last + '"', 2), context);
}

Program with_step(Program program, int at, Step step) {
  program.steps.insert(program.steps.begin() + at, std::move(step));
  set_lifetimes(program);
  return program;
}

// An all-reduce in two shots puts the sums where its operand was, by multimem on all ranks.
TEST(Hazards, AValueThatIsGoneIsNotRead) {
  const std::string nodes = node("p", "mm", R"("x", "w")") + "," + all_reduce("c", "p") + "," +
                            node("s", "wait_tensor", R"("c")") + "," + node("y", "neg", R"("s")");
  const std::string w = input("w", "8, 4096", R"(, "kind": "parameter", "per_rank": true)");
  for (const bool multimem : {false, true}) {
    PassContext context;
    context.target = Target::parse(multimem ? "sm_90a" : "sm_80");
    context.config.all_reduce = multimem ? "multimem" : "two_shot";
    context.config.batch_invariant = !multimem;
    Program program =
        lower(graph_of(input("x", R"("8*T", 8)") + "," + w, nodes, R"("y")"), context);
    EXPECT_EQ(problem(program), "");
    ASSERT_EQ(program.kernels[1].needs.clobbered, (std::vector<Clobbered>{{false, 0}}));
    // An access to all ranks at once does not outlive the step.
    EXPECT_EQ(program.kernels[1].needs.remote.empty(), multimem);
    EXPECT_EQ(program.steps[1].closing_barrier, !multimem);
    const int copy = append(program, "copy", "p", buffer(program, "p").arena);
    Step read;
    read.kind = Step::Kind::kCopy;
    read.name = "late";
    read.source = id(program, "p");
    read.destination = copy;
    EXPECT_EQ(problem(with_step(program, 1, read)), "");
    EXPECT_THAT(
        problem(with_step(program, 2, read)),
        HasSubstr("step 2 'late' reads 'p', which nobody has written, or whose value is gone"));
  }
}

TEST(Hazards, WhatPeersReadIsNotWrittenBeforeTheNextBarrier) {
  Program program = all_reduces(3);
  EXPECT_EQ(problem(program), "");
  buffer(program, "p1").offset = buffer(program, "p0").offset;
  EXPECT_THAT(problem(program),
              HasSubstr("step 2 'p1' writes 'p1' where peers may still read for step 1 'a0'"));
  // Without the last step nobody waits for the readers of p1.
  Program shorter = all_reduces(2);
  shorter.steps[3].closing_barrier = false;
  EXPECT_THAT(problem(shorter), HasSubstr("has no closing barrier"));
}

/// The matmuls of all_reduces write their results into the memory of peers, too.
Program pushes() {
  Program program = all_reduces(3);
  Requirements& needs = program.kernels[static_cast<std::size_t>(program.steps[0].kernel)].needs;
  needs.comm_group = "tp";
  needs.meets = true;
  needs.grid = 1;
  needs.flag_words = 3;
  needs.remote = {{.output = true, .index = 0, .write = true}};
  const int arena = buffer(program, "p0").arena;
  for (const int s : {0, 2, 4}) {
    program.steps[static_cast<std::size_t>(s)].flags = static_cast<int>(program.buffers.size());
    program.buffers.push_back({.kind = BufferKind::kFlags,
                               .name = "f" + std::to_string(s),
                               .type = {DType::kI32, {3}},
                               .arena = arena,
                               .offset = 65536 + 256 * s,
                               .bytes = 12,
                               .first_step = 0,
                               .last_step = 0});
  }
  set_lifetimes(program);
  for (int i = 0; i < 3; ++i) {
    buffer(program, "p" + std::to_string(i)).offset = 131072 + 65536 * i;
  }
  return program;
}

TEST(Hazards, WhatPeersWriteLivesFromTheLastBarrierBefore) {
  Program program = pushes();
  EXPECT_EQ(problem(program), "");
  EXPECT_EQ(buffer(program, "p0").first_step, 0);  // no barrier before: peers may be a run ahead
  EXPECT_EQ(buffer(program, "p0").last_step, 5);
  EXPECT_EQ(buffer(program, "p1").first_step, 1);
  EXPECT_EQ(buffer(program, "p1").last_step, 4);
  EXPECT_EQ(buffer(program, "p2").first_step, 3);
}

TEST(Hazards, PeersWriteOnlyWhereAllHaveDone) {
  Program program = pushes();
  // Step 3 is the last barrier before, and it still reads p1.
  buffer(program, "p2").offset = buffer(program, "p1").offset;
  EXPECT_THAT(problem(program),
              HasSubstr("peers write 'p2' for step 4 'p2' where step 3 'a1' may not be done"));
  // After the last barrier a peer may be in the next run, where p0 has none before it.
  program = pushes();
  program.steps.push_back({.kind = Step::Kind::kCopy,
                           .name = "late",
                           .source = id(program, "p2"),
                           .destination = id(program, "a0")});
  set_lifetimes(program);
  buffer(program, "a0").offset = buffer(program, "a1").offset + 65536;
  program.arenas[static_cast<std::size_t>(buffer(program, "a0").arena)].bytes += 131072;
  EXPECT_EQ(problem(program), "");
  buffer(program, "p0").offset = buffer(program, "p2").offset;
  EXPECT_THAT(problem(program),
              HasSubstr("peers write 'p0' for step 0 'p0' of the next run where step 6 'late'"));
}

// A kernel that reduces what it multiplies still reads what peers put there when they are in the
// next one.
TEST(Hazards, WhatIsClobberedIsInUse) {
  std::string nodes;
  for (const std::string n : {"0", "1"}) {
    nodes += (n == "0" ? "" : ",") + node("p" + n, "mm", R"("x", "w")") + "," +
             node("c" + n, "reduce_scatter_tensor", '"' + ("p" + n) + '"',
                  R"("group": "tp", "reduce_op": "sum")") +
             "," + node("s" + n, "wait_tensor", R"("c)" + n + '"');
  }
  PassContext context;
  context.config.enable = {"micro_pipeline"};
  context.config.always_pipeline = context.config.in_kernel = true;
  Program program = lower(
      graph_of(input("x", R"("8*T", 6)") + "," + kSquare, nodes, R"("s0", "s1")", 2), context);
  ASSERT_EQ(program.steps.size(), 2U);
  ASSERT_EQ(program.kernels[0].needs.clobbered.size(), 1U);
  EXPECT_EQ(problem(program), "");
  const int first = program.steps[0].outputs[0], second = program.steps[1].outputs[0];
  ASSERT_NE(program.buffers[static_cast<std::size_t>(first)].offset,
            program.buffers[static_cast<std::size_t>(second)].offset);
  program.buffers[static_cast<std::size_t>(second)].offset =
      program.buffers[static_cast<std::size_t>(first)].offset;
  EXPECT_THAT(problem(program), HasSubstr("may not be done"));
}

TEST(Hazards, ACopyFromAPeerStandsBetweenBarriers) {
  Program program = all_reduces(2);
  const int got = append(program, "got", "p0", buffer(program, "a0").arena);
  Step pull{.kind = Step::Kind::kCopy,
            .name = "pull",
            .source = id(program, "p0"),
            .destination = got,
            .source_peer = Step::Peer{"tp", 1}};
  Program good = with_step(program, 2, pull);
  EXPECT_EQ(problem(good), "");
  EXPECT_EQ(buffer(good, "p0").last_step, 4);  // when the peers have it
  expect_is_read_back(good);
  buffer(good, "p1").offset = buffer(good, "p0").offset;
  EXPECT_THAT(problem(good), HasSubstr("where peers may still read for step 2 'pull'"));
  EXPECT_THAT(problem(with_step(program, 1, pull)),
              HasSubstr("reads 'p0' of a peer where step 0 'p0' may not be done"));
  EXPECT_THAT(problem(with_step(program, 4, pull)),
              HasSubstr("step 4 is the last that reads or writes remotely in 'tp'"));
  pull.source_peer->shift = 3;
  EXPECT_THAT(problem(with_step(program, 2, pull)), HasSubstr("in a world of 2"));
  pull.source_peer = Step::Peer{"dp", 1};
  EXPECT_THAT(problem(with_step(program, 2, pull)),
              HasSubstr("copies 'p0' of a peer in 'dp', but it lies in arena symmetric:tp"));
}

TEST(Hazards, ACopyToAPeerIsThereAfterTheNextBarrier) {
  Program program = all_reduces(2);
  const int got = append(program, "got", "p0", buffer(program, "p0").arena);
  const int seen = append(program, "seen", "p0", buffer(program, "a0").arena);
  program = with_step(program, 2,
                      {.kind = Step::Kind::kCopy,
                       .name = "push",
                       .source = id(program, "a0"),
                       .destination = got,
                       .destination_peer = Step::Peer{"tp", -1}});
  const Step see{.kind = Step::Kind::kCopy, .name = "see", .source = got, .destination = seen};
  Program good = with_step(program, 5, see);
  EXPECT_EQ(problem(good), "");
  EXPECT_EQ(buffer(good, "got").first_step, 1);
  EXPECT_EQ(buffer(good, "got").last_step, 5);
  expect_is_read_back(good);
  EXPECT_THAT(problem(with_step(program, 3, see)),
              HasSubstr("reads 'got' while step 2 'push' may still write it"));
}

TEST(Hazards, FlagsOverlapNothing) {
  Program program = all_reduces(2);
  buffer(program, "p1").offset = buffer(program, "a0 flags").offset;
  EXPECT_THAT(problem(program), HasSubstr("overlaps words of a step"));
}

TEST(Hazards, StateIsThereBeforeTheFirstRun) {
  Program program = copies();
  program.target = Target::parse("sm_80");
  program.arenas.push_back({ArenaKind::kState, "", 0});
  const int state = append(program, "s", "a", 2);
  program.steps = {
      {.kind = Step::Kind::kCopy, .name = "s to y", .source = state, .destination = 1},
      {.kind = Step::Kind::kCopy, .name = "x to s", .source = 0, .destination = state}};
  set_lifetimes(program);
  EXPECT_EQ(problem(program), "");
  EXPECT_EQ(buffer(program, "s").last_step, 1);
  expect_is_read_back(program);
  program.inputs.push_back({"s", state, buffer(program, "s").type});
  EXPECT_EQ(problem(program), "");  // the caller may set it
  program.inputs.pop_back();
  buffer(program, "s").arena = 1;
  program.arenas.pop_back();
  set_lifetimes(program);
  EXPECT_THAT(problem(program), HasSubstr("reads 's', which nobody has written"));
}

TEST(Hazards, StreamsMeetAtEvents) {
  Program program = copies();
  EXPECT_EQ(problem(program), "");
  for (const int event : {1, 2}) {
    Program without = program;
    without.steps.erase(without.steps.begin() + event);
    set_lifetimes(without);
    EXPECT_THAT(problem(without), event == 1
                                      ? HasSubstr("which no step before it records")
                                      : HasSubstr("reads 'a' while step 0 'x to a' may still"));
  }
}

TEST(Hazards, ALifetimeEndsAtTheNextSynchronisation) {
  Program program = copies();
  // b takes a's place on stream 1 while stream 0 may still read a.
  program.steps.push_back(
      {.kind = Step::Kind::kCopy, .name = "x to b", .stream = 1, .source = 0, .destination = 3});
  set_lifetimes(program);
  EXPECT_EQ(problem(program), "");
  EXPECT_EQ(buffer(program, "a").last_step, 4);
  buffer(program, "b").offset = 0;
  EXPECT_THAT(problem(program), HasSubstr("step 4 'x to b' writes 'b' while step 3 'a to y' may"));
  program.steps.insert(
      program.steps.begin() + 4,
      {{.kind = Step::Kind::kEventRecord, .name = "a is read", .stream = 0, .event = 1},
       {.kind = Step::Kind::kEventWait, .name = "a is read", .stream = 1, .event = 1}});
  set_lifetimes(program);
  EXPECT_EQ(problem(program), "");
}

TEST(Hazards, OrderAndOwnersOnOneStream) {
  Program program = copies();
  for (Step& step : program.steps) step.stream = 0;
  set_lifetimes(program);
  EXPECT_EQ(problem(program), "");
  Program unwritten = program;
  unwritten.steps.erase(unwritten.steps.begin());
  set_lifetimes(unwritten);
  EXPECT_THAT(problem(unwritten), HasSubstr("reads 'a', which nobody has written"));
  program.steps.insert(
      program.steps.begin() + 1,
      {.kind = Step::Kind::kCopy, .name = "x to b", .source = 0, .destination = 3});
  buffer(program, "b").offset = 0;
  set_lifetimes(program);
  EXPECT_THAT(problem(program), HasSubstr("reads 'a', whose bytes hold 'b' by then"));
}

/// Programs that the planner makes of any steps on any streams have no hazard.
TEST(Hazards, LifetimesAreEnoughOnManyStreams) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto any = [&](std::size_t n) { return static_cast<int>(random() % n); };
    Program program = copies();
    const Buffer fresh = program.buffers[2];
    program.buffers.resize(2);
    program.steps.clear();
    int events = 0;
    for (int i = 0; i < 60; ++i) {
      const int stream = any(3);
      if (any(3) == 0) {
        const int to = any(3);
        program.steps.push_back(
            {.kind = Step::Kind::kEventRecord, .name = "r", .stream = stream, .event = events});
        program.steps.push_back(
            {.kind = Step::Kind::kEventWait, .name = "w", .stream = to, .event = events++});
        continue;
      }
      // From a buffer that exists for this stream.
      program.steps.push_back({.kind = Step::Kind::kCopy, .name = "c", .stream = stream});
      const StepOrder order(program.steps);
      const int now = static_cast<int>(program.steps.size()) - 1;
      std::vector<int> sources{0};
      for (int s = 0; s < now; ++s) {
        const Step& step = program.steps[static_cast<std::size_t>(s)];
        if (step.kind == Step::Kind::kCopy && order.before(s, now)) {
          sources.push_back(step.destination);
        }
      }
      program.steps.back().source = sources[static_cast<std::size_t>(any(sources.size()))];
      program.steps.back().destination = static_cast<int>(program.buffers.size());
      program.buffers.push_back(fresh);
      program.buffers.back().name = "b" + std::to_string(i);
    }
    program.outputs.clear();
    set_lifetimes(program);
    std::vector<Lifetime> lives;
    for (std::size_t b = 2; b < program.buffers.size(); ++b) {
      lives.push_back({128, program.buffers[b].first_step, program.buffers[b].last_step, 256});
    }
    const MemoryPlan plan = plan_memory(lives);
    for (std::size_t b = 2; b < program.buffers.size(); ++b) {
      program.buffers[b].offset = plan.offsets[b - 2];
    }
    program.arenas[1].bytes = plan.total;
    EXPECT_EQ(problem(program), "");
  }
}

}  // namespace
}  // namespace braid::testing
