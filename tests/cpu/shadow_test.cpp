// The sanitizer's records: of memory, in cells that cover many lanes, and of time.

#include "runtime/cpu/check/shadow.h"

#include <gtest/gtest.h>

#include <map>

#include "braid/checks.h"
#include "cpu/cpu_harness.h"
#include "findings.h"

namespace braid::cpu_test {
namespace {

using cpu::Access;
using cpu::Cell;
using cpu::Shadow;
using cpu::VectorClock;

/// Warp 0 writes a row, 4 or 16 bytes to a lane; a thread of warp 1 touches `bytes` of it.
std::vector<Finding> findings_of(unsigned row, const std::string& second, unsigned thread) {
  const std::string type = row == 16 ? "int4" : "int";
  const CpuOptions options{.threads = 1, .checks = kCheckRace | kCheckBounds};
  Bench bench("extern \"C\" __global__ void k(" + type + "* p, int* q) {\nint t = threadIdx.x;\n" +
                  "if (t < 32) p[t] = " + type + "{};\n" + "if (t == " + std::to_string(thread) +
                  ") { " + second + " }\n}\n",
              options);
  const std::uint64_t p = bench.upload(std::vector<int>(128));
  const std::uint64_t q = bench.upload(std::vector<int>(128));
  bench.run({1}, {64}, 0, p, q);
  return found_by(bench.device());
}

TEST(Shadow, ARaceNamesTheLaneOfTheRow) {
  struct Case {
    unsigned row;
    std::string second;
    std::int64_t offset;
    unsigned lane;
  };
  for (const Case& c :
       {Case{16, "((char*)p)[0x123] = 1;", 0x123, 18}, Case{16, "((int*)p)[127] = 1;", 508, 31},
        Case{16, "q[0] = ((int*)p)[65];", 260, 16}, Case{16, "q[0] = p[5].x;", 80, 5},
        Case{4, "((short*)p)[13] = 1;", 26, 6}, Case{4, "q[0] = ((long long*)p)[15];", 120, 30}}) {
    SCOPED_TRACE(c.second);
    const std::vector<Finding> findings = findings_of(c.row, c.second, 39);
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].kind, "race");
    EXPECT_EQ(findings[0].thread.x, 39U);
    EXPECT_EQ(findings[0].offset, c.offset);
    EXPECT_NE(findings[0].other.find("thread (" + std::to_string(c.lane) + ", 0, 0)"),
              std::string::npos)
        << findings[0].other;
  }
}

TEST(Shadow, AWideAccessNamesTheLaneThatRacesOrLeaves) {
  const CpuOptions options{.threads = 1, .checks = kCheckRace | kCheckBounds};
  // Warp 1 writes the row of which thread 3 wrote one word; thread 60 runs out of the memory.
  Bench bench(R"(extern "C" __global__ void k(int4* p, int n) { int t = threadIdx.x;
if (t == 3) ((int*)p)[74] = 1;
if (t >= 32 && t < n) p[t - 32] = int4{}; })",
              options);
  const std::uint64_t p = bench.upload(std::vector<int>(112));
  EXPECT_ANY_THROW(bench.run({1}, {64}, 0, p, 64));
  const std::vector<Finding> findings = found_by(bench.device());
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].kind, "race");
  EXPECT_EQ(findings[0].thread.x, 50U);
  EXPECT_EQ(findings[0].offset, 296);
  EXPECT_NE(findings[0].other.find("thread (3, 0, 0)"), std::string::npos) << findings[0].other;
  EXPECT_EQ(findings[1].kind, "bounds");
  EXPECT_EQ(findings[1].thread.x, 60U);
  EXPECT_EQ(findings[1].offset, 448);
}

TEST(Shadow, LanesOfOneStoreRaceWhereTheyDiffer) {
  const auto findings = [](const std::string& store) {
    Bench bench(
        "extern \"C\" __global__ void k(int* p, int n) { int t = threadIdx.x;\n" + store + "\n}",
        {.threads = 1, .checks = kCheckRace});
    const std::uint64_t p = bench.upload(std::vector<int>(128));
    const int n = 7;
    bench.run({1}, {32}, 0, p, n);
    return found_by(bench.device());
  };
  for (const char* right :
       {"p[0] = 1;", "p[t / 2] = n;", "p[31 - t] = t;", "p[t % n] = t % n;",
        "if (t == n) p[0] = t;", "atomicExch(&p[t % n], t);", "((volatile int*)p)[t % n] = t;"}) {
    EXPECT_TRUE(findings(right).empty()) << right;
  }
  struct Case {
    std::string store;
    unsigned first, second;
    std::int64_t offset;
  };
  for (const Case& c : {Case{"p[0] = t;", 0, 1, 0}, Case{"p[t / 2] = t;", 0, 1, 0},
                        Case{"p[t % n] = t;", 0, 7, 0}, Case{"p[t * t % 29] = t;", 14, 15, 88},
                        Case{"((int2*)p)[t == 9 ? 3 : t] = make_int2(0, t);", 3, 9, 24},
                        Case{"((char*)p)[t == 9 ? 3 : t] = t;", 3, 9, 3}}) {
    SCOPED_TRACE(c.store);
    const std::vector<Finding> found = findings(c.store);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].kind, "race");
    EXPECT_EQ(found[0].thread.x, c.second);
    EXPECT_EQ(found[0].offset, c.offset);
    EXPECT_NE(found[0].other.find("thread (" + std::to_string(c.first) + ", 0, 0)"),
              std::string::npos)
        << found[0].other;
  }
}

TEST(Shadow, CellsAreAsFineAsTheAccesses) {
  // Each byte's last write against a plain array, for a stretch that starts anywhere.
  Random random(1);
  const std::uint64_t start = 1000, size = 3000;
  Shadow shadow(start, size, false);
  std::vector<std::pair<std::uint32_t, unsigned>> expected(size);  // line and lane
  for (std::uint32_t line = 1; line < 300; ++line) {
    const unsigned width = random.next() % 5;
    const std::uint64_t first = ((start >> width) + 1 + random.next() % ((size >> width) - 2))
                                << width;
    const std::uint64_t room = (start + size - first) >> width;
    const std::uint64_t lanes = std::min<std::uint64_t>(room, 1 + random.next() % 32);
    std::uint64_t next = first;
    shadow.visit(first, lanes << width, [&](Cell& cell, std::uint64_t address, std::size_t) {
      EXPECT_GE(address, next) << "cells come in order, inside of what is asked for";
      next = address + 1;
      Access access{.when = {1, line}, .line = line};
      access.width = width & 15U;
      access.lane = static_cast<std::uint8_t>((address - first) >> width);
      cell.replace_write(access, false, 4);
    });
    for (std::uint64_t b = 0; b < lanes << width; ++b) {
      expected[first - start + b] = {line, static_cast<unsigned>(b >> width)};
    }
  }
  for (std::uint64_t b = 0; b < size; ++b) {
    shadow.visit(start + b, 1, [&](const Cell& cell, std::uint64_t address, std::size_t) {
      ASSERT_EQ(address, start + b);
      EXPECT_EQ(cell.write.line, expected[b].first) << b;
      EXPECT_EQ(cell.write.lane, expected[b].second) << b;
    });
  }
}

TEST(VectorClock, IsAMapOfTheLatestTimes) {
  // Clocks of several launches learn from each other; plain maps do the same.
  using Plain = std::map<std::uint32_t, std::uint32_t>;
  const auto learn = [](Plain& to, const Plain& from) {
    for (const auto& [agent, time] : from) to[agent] = std::max(to[agent], time);
  };
  constexpr std::uint32_t kAgents = 120;
  Random random(2);
  std::vector<std::pair<VectorClock, Plain>> clocks(8);
  for (int step = 0; step < 5000; ++step) {
    auto& [clock, plain] = clocks[random.next() % clocks.size()];
    const auto& [other, other_plain] = clocks[random.next() % clocks.size()];
    const std::uint64_t what = random.next() % 100;
    if (what < 70) {
      const cpu::Epoch epoch{static_cast<std::uint32_t>(random.next() % kAgents),
                             static_cast<std::uint32_t>(1 + random.next() % 1000)};
      clock.add(epoch);
      learn(plain, {{epoch.agent, epoch.time}});
    } else if (what < 90) {
      const Plain copy = other_plain;
      clock.join(other);
      learn(plain, copy);
    } else if (what < 97) {
      const VectorClock base = other.as_base();
      const Plain copy = other_plain;
      clock = base;
      plain = copy;
    } else {
      clock = {};
      plain = {};
    }
    for (std::uint32_t agent = 0; agent < kAgents; ++agent) {
      ASSERT_EQ(clock.time_of(agent), plain[agent]) << step;
    }
  }
}

}  // namespace
}  // namespace braid::cpu_test
