#pragma once

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "braid/error.h"
#include "lowering/plan/lifetimes.h"
#include "lowering/plan/plan_memory.h"
#include "lowering/plan/program.h"

// Plans that are made or changed by hand.
namespace braid::testing {

/// `Plan` is Program, maybe const.
template <class Plan>
auto& buffer(Plan& program, const std::string& name) {
  for (auto& b : program.buffers) {
    if (b.name == name) return b;
  }
  throw std::runtime_error("no buffer " + name);
}

/// Gives the buffers the lifetimes that follow from the steps.
inline void set_lifetimes(Program& program) {
  const auto ranges = lifetimes(program, StepOrder(program.steps));
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    program.buffers[i].first_step = ranges[i].first;
    program.buffers[i].last_step = ranges[i].last;
  }
}

inline int id(Program& program, const std::string& name) {
  return static_cast<int>(&buffer(program, name) - program.buffers.data());
}

/// One more buffer at the end of an arena, of the type of another; its id.
inline int append(Program& program, const std::string& name, const std::string& like, int arena) {
  Buffer added = buffer(program, like);
  added.name = name;
  added.arena = arena;
  std::int64_t& end = program.arenas[static_cast<std::size_t>(arena)].bytes;
  added.offset = round_up(end, 256);
  end = added.offset + added.bytes;
  program.buffers.push_back(added);
  return static_cast<int>(program.buffers.size()) - 1;
}

inline std::string problem(const Program& program) {
  try {
    verify(program);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

inline void expect_is_read_back(Program program) {
  program.hash = hash_of(program);
  EXPECT_EQ(to_json(parse_program(to_json(program))), to_json(program));
}

/// Two copies of one buffer: on the same stream, or on two with events.
inline Program copies() {
  Program program;
  program.name = "copies";
  program.symbols["T"] = {1, 8, 1};
  program.arenas = {{ArenaKind::kIo, "", 2048}, {ArenaKind::kWorkspace, "", 2048}};
  const TensorType type{DType::kF32, {Dim::symbol("T"), 4}};
  const auto add = [&](std::string name, int arena, std::int64_t offset) {
    program.buffers.push_back({.kind = BufferKind::kTensor,
                               .name = std::move(name),
                               .type = type,
                               .arena = arena,
                               .offset = offset,
                               .bytes = 128,
                               .first_step = 0,
                               .last_step = 0});
  };
  add("x", 0, 0);
  add("y", 0, 256);
  add("a", 1, 0);
  add("b", 1, 256);
  program.inputs = {{"x", 0, type}};
  program.outputs = {{"y", 1, type}};
  using K = Step::Kind;
  program.steps = {{.kind = K::kCopy, .name = "x to a", .stream = 1, .source = 0, .destination = 2},
                   {.kind = K::kEventRecord, .name = "a is there", .stream = 1, .event = 0},
                   {.kind = K::kEventWait, .name = "a is there", .stream = 0, .event = 0},
                   {.kind = K::kCopy, .name = "a to y", .source = 2, .destination = 1}};
  set_lifetimes(program);
  return program;
}

}  // namespace braid::testing
