// Kernels as people write them, each with twins in which one thing is wrong. The right one runs
// clean under the sanitizer and matches plain C++; of each twin something is found, and the finding
// names a line that the source marks with "// finds N".

#include "sanitizer/kernels.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <set>

#include "braid/error.h"
#include "braid/executable.h"
#include "findings.h"
#include "runtime/compile/compiler.h"

namespace braid {
namespace {

using testing::Argument;
using testing::Buffers;
using ::testing::HasSubstr;
using testing::KernelCase;

/// What came of a launch.
struct Outcome {
  Buffers buffers;
  std::string error;
  std::vector<Finding> findings, notes;
};

Outcome run(const KernelCase& kernel, int bug) {
  WorldOptions options;
  options.device = DeviceKind::kCpu;
  options.sanitize = kCheckAll;
  options.world = kernel.world;
  World world = World::open(options);
  Device& device = world.device();
  // The line numbers stay: the first line of each source is empty.
  const std::string text = fmt::format("#define BUG {}{}", bug, kernel.source);
  const auto compiled =
      compile_kernel({"k", text}, Target::parse(kernel.target), nullptr, /*line_info=*/true);
  std::vector<std::unique_ptr<Module>> modules;
  std::vector<std::unique_ptr<Memory>> memory;
  std::vector<std::unique_ptr<Stream>> streams;
  for (int rank = 0; rank < kernel.world; ++rank) {
    modules.push_back(device.load(rank, compiled.image));
    streams.push_back(device.create_stream(rank));
  }
  const auto stream_of = [&](int rank) -> Stream& {
    return *streams[static_cast<std::size_t>(rank)];
  };
  std::vector<std::uint64_t> words;
  std::vector<std::array<std::byte, TensorMap::kBytes>> maps(kernel.arguments.size());
  Outcome outcome;
  outcome.buffers = kernel.buffers();
  for (const Argument& argument : kernel.arguments) {
    if (argument.buffer < 0) {
      words.push_back(static_cast<std::uint64_t>(argument.value));
      continue;
    }
    auto& data = outcome.buffers[static_cast<std::size_t>(argument.buffer)];
    memory.push_back(device.allocate(argument.rank, data.size() * sizeof(float)));
    words.push_back(memory.back()->address());
    if (argument.map) {
      TensorMap map = *argument.map;
      map.address = words.back();
      EXPECT_EQ(map.problem(), std::nullopt);
      maps[words.size() - 1] = map.encoded();
    }
    if (!argument.poisoned) {
      stream_of(argument.rank)
          .copy_from_host(words.back(), data.data(), data.size() * sizeof(float));
    }
  }
  for (const auto& stream : streams) stream->synchronize();
  for (int rank = 0; rank < kernel.world; ++rank) {
    std::vector<const void*> pointers;
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (kernel.arguments[i].own_rank) words[i] = static_cast<std::uint64_t>(rank);
      const bool mapped = kernel.arguments[i].map.has_value();
      pointers.push_back(mapped ? static_cast<const void*>(maps[i].data()) : &words[i]);
    }
    Module& module = *modules[static_cast<std::size_t>(rank)];
    stream_of(rank).launch(module.function("k"),
                           {kernel.grid, kernel.block, 0, {.cluster = kernel.cluster}}, pointers);
  }
  for (const auto& stream : streams) {
    try {
      stream->synchronize();
    } catch (const Error& error) {
      outcome.error += error.what();
    }
  }
  for (std::size_t i = 0; i < words.size() && outcome.error.empty(); ++i) {
    const Argument& argument = kernel.arguments[i];
    if (argument.buffer < 0) continue;
    auto& data = outcome.buffers[static_cast<std::size_t>(argument.buffer)];
    Stream& stream = stream_of(argument.rank);
    stream.copy_to_host(data.data(), words[i], data.size() * sizeof(float));
    stream.synchronize();
  }
  outcome.findings = found_by(device);
  outcome.notes = device.inspector()->notes();
  return outcome;
}

/// Integers lie in the bits of floats, as subnormals: those must be the same ones.
bool matches(float value, float expected) {
  const auto is_integer = [](float x) { return std::fpclassify(x) == FP_SUBNORMAL; };
  if (is_integer(value) || is_integer(expected)) {
    return std::memcmp(&value, &expected, sizeof(value)) == 0;
  }
  return std::abs(value - expected) <= 1e-4F * (1 + std::abs(expected));
}

/// The lines of the source with "// finds N".
std::vector<std::uint32_t> marked_lines(const std::string& source, int bug) {
  std::vector<std::uint32_t> lines;
  std::uint32_t line = 1;
  const std::string mark = fmt::format("// finds {}", bug);
  for (std::size_t at = 0; at < source.size(); ++line) {
    const std::size_t end = std::min(source.find('\n', at), source.size());
    if (source.substr(at, end - at).find(mark) != std::string::npos) lines.push_back(line);
    at = end + 1;
  }
  return lines;
}

class Kernels : public ::testing::TestWithParam<KernelCase> {};

TEST_P(Kernels, RunsCleanAndMatchesPlainCode) {
  const KernelCase& kernel = GetParam();
  Outcome outcome = run(kernel, 0);
  ASSERT_EQ(outcome.error, "");
  for (const Finding& finding : outcome.findings) ADD_FAILURE() << finding.text();
  std::string notes;
  for (const Finding& note : outcome.notes) notes += note.text() + "\n";
  EXPECT_THAT(notes, HasSubstr(kernel.note));
  EXPECT_EQ(notes.empty(), kernel.note.empty()) << notes;
  Buffers expected = kernel.buffers();
  kernel.reference(expected);
  if (kernel.canonical) {
    kernel.canonical(expected);
    kernel.canonical(outcome.buffers);
  }
  for (std::size_t b = 0; b < expected.size(); ++b) {
    for (std::size_t i = 0; i < expected[b].size(); ++i) {
      ASSERT_TRUE(matches(outcome.buffers[b][i], expected[b][i]))
          << "buffer " << b << ", element " << i << ": " << outcome.buffers[b][i] << " instead of "
          << expected[b][i];
    }
  }
}

TEST_P(Kernels, EveryPlantedBugIsFoundAtItsLine) {
  const KernelCase& kernel = GetParam();
  for (std::size_t b = 0; b < kernel.bugs.size(); ++b) {
    const int bug = static_cast<int>(b) + 1;
    SCOPED_TRACE(fmt::format("bug {}", bug));
    const Outcome outcome = run(kernel, bug);
    ASSERT_FALSE(outcome.findings.empty()) << outcome.error;
    const std::vector<std::uint32_t> lines = marked_lines(kernel.source, bug);
    ASSERT_FALSE(lines.empty());
    const bool right =
        std::any_of(outcome.findings.begin(), outcome.findings.end(), [&](const Finding& finding) {
          return finding.kind == kernel.bugs[b] &&
                 std::find(lines.begin(), lines.end(), finding.cuda_line) != lines.end();
        });
    std::string all;
    for (const Finding& finding : outcome.findings) all += finding.text() + "\n";
    EXPECT_TRUE(right) << "expected " << kernel.bugs[b] << " at a marked line:\n" << all;
  }
}

/// Two warps turn a row round by way of shared memory, into which the threads t write where
/// `writes`.
Outcome turn_round(const std::string& writes, bool barrier) {
  const std::string text = fmt::format(R"(
extern "C" __global__ void k(const float* x, float* out) {{
  __shared__ float tile[64];
  const int t = threadIdx.x;
  if ({}) tile[t] = x[t];
  {}
  out[t] = tile[63 - t];
}}
)",
                                       writes, barrier ? "__syncthreads();" : "");
  const auto buffers = [] { return Buffers{testing::ramp(64), testing::zeros(64)}; };
  return run({"k", text, {1}, {64}, {testing::buffer(0), testing::output(1)}, buffers, {}, {}}, 0);
}

// The first warp reads what the second one has yet to write.
TEST(MissingBarrier, IsNotCalledUninitialized) {
  EXPECT_TRUE(turn_round("true", true).findings.empty());
  const std::vector<Finding> missing = turn_round("true", false).findings;
  ASSERT_FALSE(missing.empty());
  for (const Finding& finding : missing) {
    EXPECT_EQ(finding.kind, "race") << finding.text();
    EXPECT_THAT(finding.message, HasSubstr("missing barrier between a "));
  }
  const auto read = std::find_if(missing.begin(), missing.end(), [](const Finding& finding) {
    return finding.message == "missing barrier between a read and this write";
  });
  ASSERT_NE(read, missing.end());
  EXPECT_THAT(read->other, HasSubstr("k.cu:7"));
  EXPECT_EQ(read->cuda_line, 5U);
}

// Each of its instructions races with each of the other line's.
TEST(Findings, AnUnrolledLineIsOne) {
  const std::string text = R"(
extern "C" __global__ void k(float* x) {
  __shared__ float tile[256][16], unset[32];
  const int t = threadIdx.x;
#pragma unroll
  for (int i = 0; i < 16; ++i) tile[t][i * 5 % 16] = x[i * 256 + t];
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 16; ++i) sum += tile[255 - t][i];
  x[t] = sum;
  x[t + 256] = unset[t % 32];
}
)";
  const auto buffers = [] { return Buffers{testing::ramp(4096)}; };
  const std::vector<Finding> findings =
      run({"k", text, {1}, {256}, {testing::buffer(0)}, buffers, {}, {}}, 0).findings;
  std::multiset<std::pair<std::string, std::uint32_t>> found;
  for (const Finding& finding : findings) found.emplace(finding.kind, finding.cuda_line);
  const std::multiset<std::pair<std::string, std::uint32_t>> expected = {
      {"race", 6}, {"race", 9}, {"uninitialized", 11}};
  EXPECT_EQ(found, expected);
  for (const Finding& finding : findings) {
    if (finding.kind != "race") continue;
    EXPECT_THAT(finding.text(), HasSubstr(" more like it, of other"));
  }
}

TEST(MissingBarrier, WhatNobodyWritesIsStillFound) {
  for (const bool barrier : {true, false}) {
    SCOPED_TRACE(barrier);
    const std::vector<Finding> findings = turn_round("t < 60", barrier).findings;
    const auto found = std::find_if(findings.begin(), findings.end(), [](const Finding& finding) {
      return finding.kind == "uninitialized";
    });
    ASSERT_NE(found, findings.end());
    EXPECT_EQ(found->thread.x, 0U);
    EXPECT_EQ(found->offset, 63 * 4);
    EXPECT_EQ(findings.size() > 1, !barrier);
  }
  // The second warp writes what the first one reads, but for one element.
  const std::vector<Finding> findings = turn_round("t != 40", false).findings;
  EXPECT_TRUE(std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.kind == "uninitialized" && finding.offset == 40 * 4 && finding.thread.x == 23;
  }));
}

// Blocks note the order in which they come: one seed is one order, and seeds differ.
TEST(Schedule, ASeedIsAnInterleaving) {
  const std::string text = R"(
extern "C" __global__ void k(unsigned* next, int* order) {
  if (threadIdx.x == 0) order[atomicAdd(next, 1u)] = blockIdx.x;
}
)";
  const auto compiled = compile_kernel({"k", text}, Target::parse("sm_80"), nullptr);
  const auto order = [&](std::uint64_t seed) {
    WorldOptions options;
    options.device = DeviceKind::kCpu;
    options.sanitize = kCheckAll;
    options.schedule = {Schedule::Kind::kRandom, seed};
    World world = World::open(options);
    const auto module = world.device().load(0, compiled.image);
    const auto stream = world.device().create_stream(0);
    const auto next = world.device().allocate(0, 4);
    const auto list = world.device().allocate(0, 64);
    stream->fill(next->address(), 0, 4);
    const std::uint64_t words[] = {next->address(), list->address()};
    const void* const arguments[] = {&words[0], &words[1]};
    stream->launch(module->function("k"), {{16}, {32}}, arguments);
    std::vector<std::int32_t> result(16);
    stream->copy_to_host(result.data(), list->address(), 64);
    stream->synchronize();
    EXPECT_TRUE(found_by(world.device()).empty());
    return result;
  };
  std::set<std::vector<std::int32_t>> orders;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const auto first = order(seed);
    EXPECT_EQ(order(seed), first) << "seed " << seed;
    orders.insert(first);
  }
  EXPECT_GE(orders.size(), 4U);
}

INSTANTIATE_TEST_SUITE_P(All, Kernels, ::testing::ValuesIn(testing::kernel_cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace braid
