// Slices of buffers: which plans with them have a hazard.

#include <gmock/gmock.h>

#include "lowering/plan_testing.h"

namespace braid::testing {
namespace {

using ::testing::HasSubstr;

/// Two inputs into the chunks of a, on two streams, and a into y.
Program chunks() {
  Program program = copies();
  program.target = Target::parse("sm_80");
  program.groups["tp"] = {2, true, {}};
  program.world = 2;
  Buffer chunk = program.buffers[0];
  chunk.type.shape = {Dim::symbol("T"), 2};
  chunk.bytes = 64;
  for (const std::string name : {"x0", "x1"}) {
    chunk.name = name;
    chunk.offset = program.arenas[0].bytes;
    program.arenas[0].bytes += 256;
    program.inputs.push_back({name, static_cast<int>(program.buffers.size()), chunk.type});
    program.buffers.push_back(chunk);
  }
  Buffer slice = program.buffers[2];
  slice.type = chunk.type;
  slice.bytes = 64;
  for (const int shift : {0, 1}) {
    slice.name = "a" + std::to_string(shift);
    slice.slice = Slice{2, "tp", shift};
    program.buffers.push_back(slice);
  }
  const int first = id(program, "x0");
  const auto copy = [](std::string name, int stream, int source, int destination) {
    return Step{.kind = Step::Kind::kCopy,
                .name = std::move(name),
                .stream = stream,
                .source = source,
                .destination = destination};
  };
  program.steps = {copy("x0 to a0", 0, first, first + 2),
                   copy("x1 to a1", 1, first + 1, first + 3),
                   {.kind = Step::Kind::kEventRecord, .name = "a1", .stream = 1, .event = 0},
                   {.kind = Step::Kind::kEventWait, .name = "a1", .stream = 0, .event = 0},
                   copy("a to y", 0, 2, 1)};
  set_lifetimes(program);
  return program;
}

TEST(Slices, OfOneBufferLieApart) {
  Program program = chunks();
  EXPECT_EQ(problem(program), "");
  EXPECT_EQ(buffer(program, "a0").last_step, 4);
  expect_is_read_back(program);
  program.steps.erase(program.steps.begin() + 3);
  set_lifetimes(program);
  EXPECT_THAT(problem(program), HasSubstr("reads 'a' while step 1 'x1 to a1' may still write it"));
  program = chunks();
  program.steps.erase(program.steps.begin() + 1);
  set_lifetimes(program);
  EXPECT_THAT(problem(program), HasSubstr("reads 'a', of which nobody has written a chunk"));
  program = chunks();
  buffer(program, "a1").slice->shift = 0;
  EXPECT_THAT(problem(program), HasSubstr("writes 'a' while step 0 'x0 to a0' may still write"));
}

TEST(Slices, MeetWhateverElseItsBytesHold) {
  // b holds a's bytes before: each chunk waits for its reader, be it one of another chunk.
  const auto with_b = [](int reader_stream, bool whole) {
    Program program = chunks();
    buffer(program, "b").offset = 0;
    const int b = id(program, "b");
    Buffer chunk = buffer(program, "a0");
    chunk.name = "b0";
    chunk.slice->of = b;
    program.buffers.push_back(chunk);
    const int z = append(program, "z", whole ? "y" : "x0", 0);
    program.steps.insert(
        program.steps.begin(),
        {{.kind = Step::Kind::kCopy, .name = "x to b", .source = 0, .destination = b},
         {.kind = Step::Kind::kEventRecord, .name = "b", .stream = 0, .event = 1},
         {.kind = Step::Kind::kEventWait, .name = "b", .stream = 1, .event = 1},
         {.kind = Step::Kind::kCopy,
          .name = "b to z",
          .stream = reader_stream,
          .source = whole ? b : id(program, "b0"),
          .destination = z}});
    set_lifetimes(program);
    return problem(program);
  };
  for (const bool whole : {true, false}) {
    EXPECT_THAT(with_b(1, whole),
                HasSubstr("step 4 'x0 to a0' writes 'a' while step 3 'b to z' may"));
    EXPECT_THAT(with_b(0, whole),
                HasSubstr("step 5 'x1 to a1' writes 'a' while step 3 'b to z' may"));
  }
}

TEST(Slices, MeetTheWhole) {
  // The whole is written on one stream, a chunk of it read on the other.
  Program program = chunks();
  const int z = append(program, "z", "x0", 0);
  program.steps = {
      {.kind = Step::Kind::kCopy, .name = "x to a", .stream = 1, .source = 0, .destination = 2},
      {.kind = Step::Kind::kCopy, .name = "a0 to z", .source = id(program, "a0"), .destination = z},
      {.kind = Step::Kind::kCopy, .name = "x to y", .source = 0, .destination = 1}};
  set_lifetimes(program);
  EXPECT_THAT(problem(program), HasSubstr("reads 'a' while step 0 'x to a' may still write it"));
  program.steps[0].stream = 0;
  set_lifetimes(program);
  EXPECT_EQ(problem(program), "");
  // It is read as a whole while a chunk is written anew.
  program = chunks();
  program.steps.push_back({.kind = Step::Kind::kCopy,
                           .name = "x1 to a0",
                           .stream = 1,
                           .source = id(program, "x1"),
                           .destination = id(program, "a0")});
  set_lifetimes(program);
  EXPECT_THAT(problem(program), HasSubstr("writes 'a' while step"));
}

TEST(Slices, WhatIsNoneIsRefused) {
  const auto broken = [](const auto& change) {
    Program program = chunks();
    change(program, *buffer(program, "a1").slice);
    return problem(program);
  };
  EXPECT_THAT(broken([](Program&, Slice& s) { s.of = 99; }),
              HasSubstr("a tensor that is no slice"));
  EXPECT_THAT(broken([](Program& p, Slice& s) { s.of = id(p, "a0"); }),
              HasSubstr("a tensor that is no slice"));
  EXPECT_THAT(broken([](Program& p, Slice& s) {
                p.groups["dp"] = {2, true, {}};
                s.group = "dp";
              }),
              HasSubstr("the same for all slices"));
  EXPECT_THAT(broken([](Program& p, Slice&) {
                p.groups["dp"] = {2, true, {}};
                p.steps.push_back({.kind = Step::Kind::kCopy,
                                   .name = "a1 of a peer",
                                   .source = id(p, "a1"),
                                   .destination = id(p, "a0"),
                                   .source_peer = Step::Peer{"dp", 1}});
              }),
              HasSubstr("copies 'a1' of a peer in 'dp', a slice by another group"));
  EXPECT_THAT(broken([](Program&, Slice& s) { s.shift = 2; }), HasSubstr("expected 0 to 1"));
  EXPECT_THAT(broken([](Program& p, Slice&) { buffer(p, "a1").offset = 256; }),
              HasSubstr("lies outside of 'a'"));
  EXPECT_THAT(broken([](Program& p, Slice&) {
                p.inputs.push_back({"a1", id(p, "a1"), {}});
              }),
              HasSubstr("no buffer of its own"));
}

}  // namespace
}  // namespace braid::testing
