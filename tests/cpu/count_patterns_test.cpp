// The counts of accesses, pattern by pattern, compared with a plain computation over sets of
// sectors, words and bytes.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cpu/cpu_harness.h"

namespace braid::cpu_test {
namespace {

/// One access of a warp: where each lane is, of those that take part.
using Lanes = std::map<std::uint32_t, std::uint64_t>;

void count_shared(const Lanes& lanes, std::uint64_t bytes, Counts& counts) {
  if (lanes.empty()) return;
  ++counts.shared_requests;
  const std::uint32_t together = bytes >= 16 ? 8 : bytes >= 8 ? 16 : 32;
  std::map<std::uint32_t, std::map<std::uint64_t, std::set<std::uint64_t>>> phases;
  for (const auto& [lane, address] : lanes) {
    for (std::uint64_t byte = address; byte < address + bytes; ++byte) {
      phases[lane / together][byte / 4 % 32].insert(byte / 4);
    }
  }
  for (const auto& [phase, banks] : phases) {
    std::size_t most = 0;
    for (const auto& [bank, words] : banks) most = std::max(most, words.size());
    counts.shared_wavefronts += most;
    counts.bank_conflicts += most - 1;
  }
}

/// Bytes that were read before they were written, and those that were written.
struct Touched {
  std::set<std::uint64_t> read, written;
};

std::uint64_t sectors_of(const std::set<std::uint64_t>& bytes) {
  std::set<std::uint64_t> sectors;
  for (const std::uint64_t byte : bytes) sectors.insert(byte / 32);
  return sectors.size();
}

void count_global(const Lanes& lanes, std::uint64_t bytes, bool reads, bool writes, Counts& counts,
                  Touched& touched) {
  if (lanes.empty()) return;
  ++counts.global_requests;
  counts.global_bytes += lanes.size() * bytes;
  std::set<std::uint64_t> sectors;
  for (const auto& [lane, address] : lanes) {
    for (std::uint64_t byte = address; byte < address + bytes; ++byte) {
      sectors.insert(byte / 32);
      if (reads && !touched.written.contains(byte)) touched.read.insert(byte);
      if (writes) touched.written.insert(byte);
    }
  }
  counts.global_sectors += sectors.size();
}

struct Access {
  std::string text;  ///< of the instruction, at [%rd2]
  std::uint64_t bytes;
  bool reads, writes, atomic;
};

const std::vector<Access> kAccesses = {
    {"ld{}.u8 %r9, [%rd2];", 1, true, false, false},
    {"ld{}.u16 %h1, [%rd2];", 2, true, false, false},
    {"ld{}.u32 %r9, [%rd2];", 4, true, false, false},
    {"ld{}.v2.u32 {{%r9, %r10}}, [%rd2];", 8, true, false, false},
    {"ld{}.v4.u32 {{%r9, %r10, %r11, %r12}}, [%rd2];", 16, true, false, false},
    {"st{}.u8 [%rd2], %r1;", 1, false, true, false},
    {"st{}.u16 [%rd2], %h2;", 2, false, true, false},
    {"st{}.u32 [%rd2], %r1;", 4, false, true, false},
    {"st{}.v2.u64 [%rd2], {{%rd1, %rd1}};", 16, false, true, false},
    {"ld{}.relaxed.gpu.u32 %r9, [%rd2];", 4, true, false, false},
    {"atom{}.add.u32 %r9, [%rd2], 1;", 4, true, true, true},
    {"red{}.add.u64 [%rd2], %rd1;", 8, true, true, true},
};

std::string spelled(const Access& access, const std::string& space) {
  std::string text = access.text;
  const bool relaxed = text.find("relaxed") != std::string::npos;
  text = fmt::format(fmt::runtime(text), relaxed ? "" : space);
  if (relaxed) text.replace(text.find(".gpu"), 4, ".gpu" + space);
  return text;
}

constexpr std::uint64_t kShared = 16384;
constexpr const char* kHead = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p, .param .u64 q)
{
.shared .align 16 .b8 s[32768];
.reg .pred %p<8>;
.reg .b16 %h<4>;
.reg .b32 %r<32>;
.reg .b64 %rd<1024>;
ld.param.u64 %rd1, [p];
ld.param.u64 %rd5, [q];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
mov.u32 %r3, %ntid.x;
mad.lo.s32 %r1, %r2, %r3, %r1;
)";

/// Addresses of a warp's 32 lanes from `base` on, within `room` bytes; multiples of `bytes`.
std::array<std::uint64_t, 32> pattern(Random& random, std::uint64_t base, std::uint64_t room,
                                      std::uint64_t bytes) {
  const std::uint64_t kind = random.next() % 7;
  const std::uint64_t stride = 1 + random.next() % 33;
  const std::uint64_t start = random.next() % 64;
  std::array<std::uint64_t, 32> lanes{};
  for (std::uint64_t l = 0; l < 32; ++l) {
    std::uint64_t element = start;
    if (kind == 0) element += l * stride;
    if (kind == 1) element += random.next() % 40;
    if (kind == 2) element = random.next() % (room / bytes);
    if (kind == 3) element += l ^ stride % 32;
    if (kind == 4) element += l / 4 * stride + l % 4;
    if (kind == 5) element += (31 - l) * stride;
    lanes[l] = base + element * bytes % room;
  }
  return lanes;
}

/// Runs each access at addresses from memory: the lanes, and which take part, are known only then.
class AnyLanes : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Spaces, AnyLanes, ::testing::Values(".global", ".shared", ""));

TEST_P(AnyLanes, CostWhatPlainCountingSays) {
  const std::string space = GetParam();
  constexpr std::uint64_t kBlocks = 6, kWarps = 2, kRounds = 4;
  constexpr std::uint64_t kThreads = kBlocks * kWarps * 32, kRoom = 16384;
  std::string body;
  for (std::size_t a = 0; a < kAccesses.size() * kRounds; ++a) {
    // A place in shared memory is an offset in it; nobody is at 1.
    body += fmt::format(
        "mul.wide.u32 %rd3, %r1, 8;\nadd.s64 %rd3, %rd3, %rd1;\nld.global.u64 %rd2, [%rd3+{}];\n"
        "setp.eq.u64 %p1, %rd2, 1;\n",
        a * kThreads * 8);
    if (space.empty()) {
      body +=
          "mov.u64 %rd6, s;\ncvta.shared.u64 %rd6, %rd6;\nadd.s64 %rd7, %rd2, %rd6;\n"
          "setp.lt.u64 %p2, %rd2, 65536;\nselp.b64 %rd2, %rd7, %rd2, %p2;\n";
    } else if (space == ".shared") {
      body += "mov.u64 %rd6, s;\nadd.s64 %rd2, %rd2, %rd6;\n";
    }
    const std::string access = spelled(kAccesses[a % kAccesses.size()], space);
    body += a % 2 == 0 ? fmt::format("@!%p1 {}\n", access)
                       : fmt::format("@%p1 bra over{0};\n{1}\nover{0}:\n", a, access);
  }
  Bench bench = Bench::from_ptx(kHead + body + "ret;\n}\n", {.threads = 2, .count = true});
  const std::uint64_t memory =
      bench.upload(std::vector<std::uint8_t>(kBlocks * kWarps * kRoom + 4096));

  std::vector<Counts> expected(kAccesses.size() * kRounds);
  std::vector<std::uint64_t> table;
  std::vector<Touched> touched(kBlocks * kWarps);  // each warp has a part of memory
  Random random(7);
  for (std::size_t a = 0; a < expected.size(); ++a) {
    const Access& access = kAccesses[a % kAccesses.size()];
    for (std::uint64_t warp = 0; warp < kBlocks * kWarps; ++warp) {
      const bool in_shared = space == ".shared" || (space.empty() && random.next() % 2 == 0);
      const std::uint64_t base = in_shared ? 0 : memory + 256 + warp * kRoom;
      const auto lanes = pattern(random, base, kShared, access.bytes);
      const std::uint64_t active = random.next() | (random.next() % 2 == 0 ? ~0ULL : 0);
      Lanes shared, global;
      for (std::uint32_t l = 0; l < 32; ++l) {
        const bool takes_part = (active >> l & 1U) != 0;
        if (takes_part) (in_shared ? shared : global)[l] = lanes[l];
        table.push_back(takes_part ? lanes[l] : 1);
      }
      Counts& counts = expected[a];
      count_shared(shared, access.bytes, counts);
      count_global(global, access.bytes, access.reads, access.writes, counts, touched[warp]);
      if (access.atomic) counts.atomics += shared.size() + global.size();
    }
  }
  bench.run({kBlocks}, {kWarps * 32}, 0, bench.upload(table), memory);

  const KernelCounts counts = bench.device().inspector()->counts().at(0);
  std::size_t a = 0;
  for (const LineCounts& line : counts.lines) {
    if (line.instruction == "ld.global.u64") continue;  // that of the table
    if (line.counts.global_requests + line.counts.shared_requests == 0) continue;
    ASSERT_LT(a, expected.size());
    const Counts& want = expected[a++];
    EXPECT_EQ(line.counts.global_requests, want.global_requests) << line.instruction;
    EXPECT_EQ(line.counts.global_sectors, want.global_sectors) << line.instruction;
    EXPECT_EQ(line.counts.global_bytes, want.global_bytes) << line.instruction;
    EXPECT_EQ(line.counts.shared_requests, want.shared_requests) << line.instruction;
    EXPECT_EQ(line.counts.shared_wavefronts, want.shared_wavefronts) << line.instruction;
    EXPECT_EQ(line.counts.bank_conflicts, want.bank_conflicts) << line.instruction;
    EXPECT_EQ(line.counts.atomics, want.atomics) << line.instruction;
  }
  EXPECT_EQ(a, expected.size());
  std::uint64_t minimum = table.size() * 8;
  std::uint64_t read_sectors = table.size() * 8 / 32, written_sectors = 0;
  for (const Touched& t : touched) {
    minimum += t.read.size() + t.written.size();
    read_sectors += sectors_of(t.read);
    written_sectors += sectors_of(t.written);
  }
  EXPECT_EQ(counts.minimum_bytes, minimum);
  EXPECT_EQ(counts.read_sectors, read_sectors);
  EXPECT_EQ(counts.written_sectors, written_sectors);
}

/// The same with addresses base + lane * step: the pattern is known at compile time, the base is
/// not.
class Rows : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Spaces, Rows, ::testing::Values(".global", ".shared"));

TEST_P(Rows, CostWhatPlainCountingSays) {
  const std::string space = GetParam();
  constexpr std::uint64_t kRoom = 32768, kPage = 4096;
  std::string body;
  std::vector<Counts> expected;
  struct Run {
    std::uint64_t offset, stride;
  };
  std::vector<std::pair<const Access*, Run>> runs;
  Random random(3);
  for (const Access& access : kAccesses) {
    // 17, 31 and 33 narrow elements apart, lanes meet in a bank or not, by where they begin.
    for (const std::uint64_t stride : {0, 1, 1, 1, 2, 3, 5, 8, 16, 17, 31, 31, 33, 33}) {
      std::uint64_t offset = random.next() % kPage / access.bytes * access.bytes;
      if (stride == 0) offset = kPage - access.bytes;
      if (runs.size() % 3 == 0) offset = kPage - 16;  // reaches into the next page
      runs.push_back({&access, {offset, stride}});
      // Registers of their own: what one holds is known where it is written once.
      std::string text = spelled(access, space);
      const std::size_t n = 100 + 3 * runs.size();
      text.replace(text.find("%rd2"), 4, fmt::format("%rd{}", n + 2));
      body += fmt::format(
          "mul.wide.s32 %rd{0}, %r4, {3};\nadd.s64 %rd{1}, %rd{0}, {4};\n"
          "add.s64 %rd{2}, %rd{1}, %rd8;\n{5}\n",
          n, n + 1, n + 2, stride * access.bytes, offset, text);
    }
  }
  std::string head = kHead;
  head += fmt::format("mov.u32 %r4, %tid.x;\nmov.u64 %rd7, {};\nadd.s64 %rd8, %rd7, %rd5;\n",
                      space == ".shared" ? "s" : "%rd1");
  Bench bench = Bench::from_ptx(head + body + "ret;\n}\n", {.threads = 2, .count = true});
  const std::uint64_t memory = bench.upload(std::vector<std::uint8_t>(kRoom + kPage));
  const std::uint64_t shift = space == ".shared" ? 0 : kPage - memory % kPage;
  Touched touched;
  for (const auto& [access, run] : runs) {
    Lanes lanes;
    for (std::uint32_t l = 0; l < 32; ++l) {
      lanes[l] = memory + shift + run.offset + l * run.stride * access->bytes;
    }
    Counts& counts = expected.emplace_back();
    if (space == ".shared") {
      count_shared(lanes, access->bytes, counts);
    } else {
      count_global(lanes, access->bytes, access->reads, access->writes, counts, touched);
    }
    if (access->atomic) counts.atomics = 32;
  }
  bench.run({1}, {32}, 0, memory, shift);

  const KernelCounts counts = bench.device().inspector()->counts().at(0);
  std::size_t a = 0;
  for (const LineCounts& line : counts.lines) {
    if (line.counts.global_requests + line.counts.shared_requests == 0) continue;
    ASSERT_LT(a, expected.size());
    const std::string what =
        fmt::format("{}, {} bytes, offset {}, stride {}", line.instruction, runs[a].first->bytes,
                    runs[a].second.offset, runs[a].second.stride);
    const Counts& want = expected[a++];
    EXPECT_EQ(line.counts.global_requests, want.global_requests) << what;
    EXPECT_EQ(line.counts.global_sectors, want.global_sectors) << what;
    EXPECT_EQ(line.counts.global_bytes, want.global_bytes) << what;
    EXPECT_EQ(line.counts.shared_wavefronts, want.shared_wavefronts) << what;
    EXPECT_EQ(line.counts.bank_conflicts, want.bank_conflicts) << what;
    EXPECT_EQ(line.counts.atomics, want.atomics) << what;
  }
  EXPECT_EQ(a, expected.size());
  if (space == ".global") {
    EXPECT_EQ(counts.minimum_bytes, touched.read.size() + touched.written.size());
    EXPECT_EQ(counts.read_sectors, sectors_of(touched.read));
    EXPECT_EQ(counts.written_sectors, sectors_of(touched.written));
  }
}

}  // namespace
}  // namespace braid::cpu_test
