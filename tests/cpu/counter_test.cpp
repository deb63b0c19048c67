// Counters of kernels whose counts are known: written in PTX, so that every instruction is ours.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "cpu/cpu_harness.h"

namespace braid::cpu_test {
namespace {

/// A kernel with one parameter, the registers below, and the global id of the thread in %r1, the
/// parameter in %rd1.
std::string kernel(const std::string& body, const std::string& declarations = "") {
  return fmt::format(R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p)
{{
.reg .pred %p<8>;
.reg .b32 %r<32>;
.reg .b64 %rd<32>;
.reg .f32 %f<32>;
{}
ld.param.u64 %rd1, [p];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
mov.u32 %r3, %ntid.x;
mad.lo.s32 %r1, %r2, %r3, %r1;
{}
}}
)",
                     declarations, body);
}
/// Instructions of that before the body, by class.
constexpr std::uint64_t kMoves = 3;
constexpr std::uint64_t kIntegers = 1;
constexpr std::uint64_t kLoads = 1;

KernelCounts count(const std::string& ptx, Dim3 grid, Dim3 block, std::size_t bytes = 1 << 20) {
  Bench bench = Bench::from_ptx(ptx, {.count = true});
  const std::uint64_t memory = bench.upload(std::vector<std::uint8_t>(bytes));
  bench.run(grid, block, 0, memory);
  const std::vector<KernelCounts> counts = bench.device().inspector()->counts();
  EXPECT_EQ(counts.size(), 1);
  return counts.at(0);
}

std::uint64_t of(const Counts& counts, InstructionClass instruction_class) {
  return counts.instructions[static_cast<std::size_t>(instruction_class)];
}

class Stride : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(From1To32, Stride, ::testing::Range(1, 33));

TEST_P(Stride, SectorsOfGlobalLoads) {
  const int stride = GetParam();
  const KernelCounts counts = count(kernel(fmt::format(R"(mul.lo.s32 %r4, %r1, {};
mul.wide.s32 %rd2, %r4, 4;
add.s64 %rd3, %rd1, %rd2;
ld.global.f32 %f1, [%rd3];
ret;)",
                                                       stride)),
                                    {3}, {64});
  const std::uint64_t warps = 6;
  EXPECT_EQ(counts.total.global_requests, warps);
  // Each warp starts at a multiple of 128 bytes; up to a stride of 32 bytes it touches every
  // sector.
  EXPECT_EQ(counts.total.global_sectors, warps * std::min(4 * stride, 32));
  EXPECT_EQ(counts.total.global_bytes, warps * 32 * 4);
  EXPECT_EQ(counts.minimum_bytes, warps * 32 * 4);
  EXPECT_EQ(counts.total.peer_bytes, 0);
  EXPECT_EQ(counts.total.lanes, 32 * counts.total.total_instructions());
}

TEST_P(Stride, ConflictsOfSharedStores) {
  const int stride = GetParam();
  const KernelCounts counts = count(kernel(fmt::format(R"(mov.u32 %r4, %tid.x;
mul.lo.s32 %r5, %r4, {};
mov.u32 %r6, s;
add.s32 %r7, %r6, %r5;
st.shared.u32 [%r7], %r1;
ret;)",
                                                       4 * stride),
                                           ".shared .align 16 .b8 s[4096];"),
                                    {2}, {32});
  const auto ways = static_cast<std::uint64_t>(std::gcd(stride, 32));
  EXPECT_EQ(counts.total.shared_requests, 2);
  EXPECT_EQ(counts.total.shared_wavefronts, 2 * ways);
  EXPECT_EQ(counts.total.bank_conflicts, 2 * (ways - 1));
}

TEST_P(Stride, LanesUnderABranch) {
  // Threads below the parameter of the test take an extra path of two instructions.
  const int lanes = GetParam();
  const KernelCounts counts = count(kernel(fmt::format(R"(setp.ge.s32 %p1, %r1, {};
@%p1 bra over;
add.s32 %r5, %r1, 1;
xor.b32 %r5, %r5, 3;
over:
xor.b32 %r6, %r1, 3;
ret;)",
                                                       lanes)),
                                    {1}, {32});
  const std::uint64_t before = kMoves + kIntegers + kLoads + 2;
  EXPECT_EQ(counts.total.total_instructions(), before + 2 + 2);
  EXPECT_EQ(counts.total.lanes, (before + 2) * 32 + 2 * static_cast<std::uint64_t>(lanes));
  EXPECT_EQ(counts.total.branches, 1);
  EXPECT_EQ(counts.total.divergent_branches, lanes == 32 ? 0 : 1);
}

TEST(Counter, InstructionsByClass) {
  const KernelCounts counts = count(kernel(R"(mov.u32 %r9, 0;
loop:
add.s32 %r9, %r9, 1;
cvt.rn.f32.s32 %f1, %r9;
fma.rn.f32 %f2, %f1, %f1, %f1;
shfl.sync.bfly.b32 %r10, %r9, 1, 31, -1;
setp.lt.s32 %p1, %r9, 10;
@%p1 bra loop;
bar.sync 0;
membar.gl;
ret;)"),
                                    {2}, {96});
  const std::uint64_t warps = 6;
  EXPECT_EQ(of(counts.total, InstructionClass::kMove), warps * (kMoves + 1));
  EXPECT_EQ(of(counts.total, InstructionClass::kInteger), warps * (kIntegers + 20));
  EXPECT_EQ(of(counts.total, InstructionClass::kConvert), warps * 10);
  EXPECT_EQ(of(counts.total, InstructionClass::kFloat), warps * 10);
  EXPECT_EQ(of(counts.total, InstructionClass::kWarp), warps * 10);
  EXPECT_EQ(of(counts.total, InstructionClass::kSync), warps * 2);
  EXPECT_EQ(of(counts.total, InstructionClass::kMemory), warps * kLoads);
  EXPECT_EQ(of(counts.total, InstructionClass::kControl), warps * 11);
  EXPECT_EQ(counts.total.branches, warps * 10);
  EXPECT_EQ(counts.total.divergent_branches, 0);
  EXPECT_EQ(counts.total.barriers, warps);
  EXPECT_EQ(counts.launches, 1);
  EXPECT_EQ(counts.blocks, 2);
}

TEST(Counter, WideSharedAccessesAreServedInPhases) {
  // 16 bytes a lane in order: eight lanes fill all banks, four phases and no conflict. All lanes at
  // one address: one word per bank and phase.
  const std::string shared = ".shared .align 16 .b8 s[4096];";
  const KernelCounts rows = count(kernel(R"(mov.u32 %r4, %tid.x;
mul.lo.s32 %r5, %r4, 16;
mov.u32 %r6, s;
add.s32 %r7, %r6, %r5;
st.shared.v4.u32 [%r7], {%r1, %r1, %r1, %r1};
ld.shared.v2.u32 {%r10, %r11}, [s];
ret;)",
                                         shared),
                                  {1}, {32});
  EXPECT_EQ(rows.total.shared_requests, 2);
  EXPECT_EQ(rows.total.shared_wavefronts, 4 + 2);
  EXPECT_EQ(rows.total.bank_conflicts, 0);
  // 32 bytes apart: of a phase's eight lanes, pairs share their banks.
  const KernelCounts apart = count(kernel(R"(mov.u32 %r4, %tid.x;
mul.lo.s32 %r5, %r4, 32;
mov.u32 %r6, s;
add.s32 %r7, %r6, %r5;
st.shared.v4.u32 [%r7], {%r1, %r1, %r1, %r1};
ret;)",
                                          shared),
                                   {1}, {32});
  EXPECT_EQ(apart.total.shared_wavefronts, 8);
  EXPECT_EQ(apart.total.bank_conflicts, 4);
}

TEST(Counter, AtomicsCountByLane) {
  const KernelCounts counts = count(kernel(R"(setp.lt.s32 %p1, %r1, 20;
@%p1 red.global.add.u32 [%rd1], 1;
ret;)"),
                                    {1}, {64});
  EXPECT_EQ(counts.total.atomics, 20);
  EXPECT_EQ(counts.total.global_requests, 1);
  EXPECT_EQ(counts.total.global_sectors, 1);
  EXPECT_EQ(counts.minimum_bytes, 8) << "four bytes read, the same written";
}

TEST(Counter, WhatAKernelReadsBackIsNoMinimum) {
  const KernelCounts counts = count(kernel(R"(mul.wide.s32 %rd2, %r1, 4;
add.s64 %rd3, %rd1, %rd2;
st.global.u32 [%rd3], %r1;
ld.global.u32 %r4, [%rd3];
ld.global.u32 %r4, [%rd3];
ret;)"),
                                    {1}, {32});
  EXPECT_EQ(counts.total.global_bytes, 3 * 128);
  EXPECT_EQ(counts.minimum_bytes, 128);
}

TEST(Counter, MemoryMovesWholeSectors) {
  const KernelCounts counts = count(kernel(R"(mul.wide.s32 %rd2, %r1, 128;
add.s64 %rd3, %rd1, %rd2;
ld.global.u32 %r4, [%rd3];
mul.wide.s32 %rd2, %r1, 2;
add.s64 %rd3, %rd1, %rd2;
st.global.u8 [%rd3], %r4;
ret;)"),
                                    {1}, {32});
  EXPECT_EQ(counts.minimum_bytes, 32 * 4 + 32);
  EXPECT_EQ(counts.read_sectors, 32);
  EXPECT_EQ(counts.written_sectors, 2);
}

TEST(Counter, LinesAreThoseOfTheText) {
  const std::string ptx = kernel("add.s32 %r4, %r1, 1;\nst.global.u32 [%rd1], %r4;\nret;");
  const KernelCounts counts = count(ptx, {1}, {32});
  const auto first = static_cast<std::uint32_t>(
      std::count(ptx.begin(), ptx.begin() + static_cast<std::ptrdiff_t>(ptx.find("add.s32 %r4")),
                 '\n') +
      1);
  ASSERT_EQ(counts.lines.size(), 8);
  EXPECT_EQ(counts.lines[5].ptx_line, first);
  EXPECT_EQ(counts.lines[5].instruction, "add.s32");
  EXPECT_EQ(counts.lines[6].ptx_line, first + 1);
  EXPECT_EQ(counts.lines[6].counts.global_sectors, 1);
  EXPECT_EQ(of(counts.lines[7].counts, InstructionClass::kControl), 1);
}

TEST(Counter, BytesInTheMemoryOfOtherRanks) {
  const auto device = create_cpu_device({.world = 2, .count = true});
  const auto mine = device->allocate(0, 4096);
  const auto theirs = device->allocate(1, 4096);
  const std::string ptx = kernel(R"(mul.wide.s32 %rd2, %r1, 8;
add.s64 %rd3, %rd1, %rd2;
st.global.u64 [%rd3], %rd2;
ret;)");
  const auto module = device->load(0, {"k", ptx, {}});
  const auto stream = device->create_stream(0);
  for (const std::uint64_t address : {mine->address(), theirs->address()}) {
    const void* args[] = {&address};
    stream->launch(module->function("k"), {{1}, {32}}, args);
    stream->synchronize();
  }
  const KernelCounts counts = device->inspector()->counts().at(0);
  EXPECT_EQ(counts.launches, 2);
  EXPECT_EQ(counts.total.global_bytes, 512);
  EXPECT_EQ(counts.total.peer_bytes, 256);
}

TEST(Counter, PollsAreTheSameOnAnyNumberOfThreads) {
  // Each block works for a while of its own, then waits for all.
  const std::string ptx = kernel(R"(shl.b32 %r4, %r2, 6;
loop:
sub.s32 %r4, %r4, 1;
setp.ge.s32 %p1, %r4, 0;
@%p1 bra loop;
atom.global.add.u32 %r5, [%rd1], 1;
wait:
ld.relaxed.gpu.global.u32 %r6, [%rd1];
setp.lt.u32 %p1, %r6, 384;
@%p1 bra wait;
ret;)");
  std::vector<std::uint64_t> instructions;
  for (const int threads : {1, 1, 4, 4, 4}) {
    Bench bench = Bench::from_ptx(ptx, {.threads = threads, .count = true});
    bench.run({12}, {32}, 0, bench.upload(std::vector<int>(1)));
    instructions.push_back(bench.device().inspector()->counts().at(0).total.total_instructions());
  }
  EXPECT_EQ(std::set(instructions.begin(), instructions.end()).size(), 1);
}

TEST(Counter, PollsOfManyBlocksAreFew) {
  // More than other runs start before they resume those that wait.
  constexpr int kBlocks = 600;
  const KernelCounts counts = count(kernel(fmt::format(R"(atom.global.add.u32 %r5, [%rd1], 1;
wait:
ld.relaxed.gpu.global.u32 %r6, [%rd1];
setp.lt.u32 %p1, %r6, {};
@%p1 bra wait;
ret;)",
                                                       32 * kBlocks)),
                                    {kBlocks}, {32});
  const auto poll = std::find_if(
      counts.lines.begin(), counts.lines.end(),
      [](const LineCounts& line) { return line.instruction.starts_with("ld.relaxed"); });
  ASSERT_NE(poll, counts.lines.end());
  EXPECT_LE(poll->counts.global_requests, 16 * kBlocks);
}

TEST(Counter, CountsNothingUnlessAsked) {
  Bench bench = Bench::from_ptx(kernel("ret;"));
  const std::uint64_t memory = bench.upload(std::vector<int>(1));
  bench.run({1}, {32}, 0, memory);
  EXPECT_EQ(bench.device().inspector(), nullptr);
}

/// Loads of one float each from a lane's place in shared memory, %r7 = s + 4 `stride` tid + `from`.
KernelCounts count_loads(int stride, int from, const std::string& loads, const std::string& index) {
  return count(kernel(fmt::format(R"(mov.u32 %r4, %tid.x;
{}
mul.lo.s32 %r5, %r4, {};
mov.u32 %r6, s;
add.s32 %r7, %r6, %r5;
add.s32 %r7, %r7, {};
{}
ret;)",
                                  index, 4 * stride, from, loads),
                      ".shared .align 16 .b8 s[8192];"),
               {1}, {32});
}

/// With a lane pattern known from the text, and with one known only at run time.
class JoinedLoads : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(AnyIndex, JoinedLoads,
                         ::testing::Values("",
                                           "mul.lo.s32 %r4, %r4, %r3;\n"
                                           "div.u32 %r4, %r4, 32;"));

TEST_P(JoinedLoads, OfNeighboursInOneBlockAreOne) {
  const std::string four = R"(ld.shared.f32 %f1, [%r7];
ld.shared.f32 %f2, [%r7+8];
add.f32 %f5, %f1, %f2;
ld.shared.f32 %f3, [%r7+4];
ld.shared.f32 %f4, [%r7+12];)";
  const Counts joined = count_loads(4, 0, four, GetParam()).total;
  EXPECT_EQ(joined.shared_requests, 4);
  EXPECT_EQ(joined.shared_wavefronts, 16);  // of four ways each
  EXPECT_EQ(joined.issued_shared_requests, 1);
  EXPECT_EQ(joined.issued_shared_wavefronts, 4);  // 512 bytes
  // If 16 bytes are not aligned, the loads stay separate.
  const Counts shifted = count_loads(4, 4, four, GetParam()).total;
  EXPECT_EQ(shifted.issued_shared_requests, 4);
  EXPECT_EQ(shifted.issued_shared_wavefronts, 16);
  // All lanes at one address: two phases of 16 lanes instead of four.
  EXPECT_EQ(count_loads(0, 0, four, GetParam()).total.issued_shared_wavefronts, 2);
}

TEST_P(JoinedLoads, OfLanesThatMeet) {
  // Every eighth lane at one place, of 128 bytes in all: a word each at once, 16 bytes in phases.
  const std::string eighth = std::string(GetParam()) + "rem.u32 %r4, %r4, 8;\n";
  const Counts joined = count_loads(4, 0, R"(ld.shared.f32 %f1, [%r7];
ld.shared.f32 %f2, [%r7+4];
ld.shared.f32 %f3, [%r7+8];
ld.shared.f32 %f4, [%r7+12];)",
                                    eighth)
                            .total;
  EXPECT_EQ(joined.shared_wavefronts, 4);
  EXPECT_EQ(joined.issued_shared_requests, 1);
  EXPECT_EQ(joined.issued_shared_wavefronts, 4);
  // One load of lanes in pairs.
  const std::string half = std::string(GetParam()) + "div.u32 %r4, %r4, 2;\n";
  const Counts pairs =
      count_loads(4, 0, "ld.shared.v4.f32 {%f1, %f2, %f3, %f4}, [%r7];", half).total;
  EXPECT_EQ(pairs.shared_wavefronts, 4);
  EXPECT_EQ(pairs.issued_shared_wavefronts, 2);
}

TEST_P(JoinedLoads, NothingIsJoinedAcrossAStoreOrAnotherAddress) {
  const Counts stored = count_loads(2, 0, R"(ld.shared.f32 %f1, [%r7];
st.shared.f32 [%r7+4096], %f1;
ld.shared.f32 %f2, [%r7+4];)",
                                    GetParam())
                            .total;
  EXPECT_EQ(stored.issued_shared_requests, 3);
  const Counts moved = count_loads(2, 0, R"(ld.shared.f32 %f1, [%r7];
add.s32 %r7, %r7, 16;
ld.shared.f32 %f2, [%r7+4];)",
                                   GetParam())
                           .total;
  EXPECT_EQ(moved.issued_shared_requests, 2);
  const Counts pair = count_loads(2, 0, R"(ld.shared.f32 %f1, [%r7];
ld.shared.f32 %f2, [%r7+4];)",
                                  GetParam())
                          .total;
  EXPECT_EQ(pair.issued_shared_requests, 1);
  EXPECT_EQ(pair.issued_shared_wavefronts, 2);
}

TEST(Counter, LinesAndWhatEachBlockTouches) {
  const auto load = [](int stride, const char* type) {
    return count(kernel(fmt::format(R"(mov.u32 %r4, %tid.x;
mul.wide.s32 %rd2, %r4, {};
add.s64 %rd3, %rd1, %rd2;
ld.global.{} [%rd3];
ld.global.{} [%rd3];
ret;)",
                                    stride, type, type)),
                 {3}, {32});
  };
  const KernelCounts row = load(4, "f32 %f1,");
  EXPECT_EQ(row.total.global_wavefronts, 3 * 2);  // one line for each request
  EXPECT_EQ(row.block_bytes, 3 * 128);            // three blocks read the same
  EXPECT_EQ(row.minimum_bytes, 128);
  const KernelCounts apart = load(256, "f32 %f1,");
  EXPECT_EQ(apart.total.global_wavefronts, 3 * 2 * 32);
  EXPECT_EQ(apart.block_bytes, 3 * 32 * 32);
  EXPECT_EQ(load(0, "f32 %f1,").total.global_wavefronts, 3 * 2);
  EXPECT_EQ(load(0, "v4.f32 {%f1, %f2, %f3, %f4},").total.global_wavefronts, 3 * 2 * 4);
}

/// Of 64 blocks one reads eight lines, or one line eight times.
TEST(Counter, BlocksThatDifferByAPowerOfTwo) {
  constexpr std::uint64_t kBlocks = 4096, kMore = kBlocks / 64 * 7, kLine = 128;
  const auto bytes = [](std::uint64_t step) {
    const KernelCounts counts = count(kernel(fmt::format(R"(and.b32 %r4, %r2, 63;
setp.eq.s32 %p1, %r4, 0;
mul.wide.s32 %rd2, %r1, 4;
add.s64 %rd3, %rd1, %rd2;
mov.u32 %r5, 1;
@%p1 mov.u32 %r5, 8;
again:
ld.global.b32 %r6, [%rd3];
add.s64 %rd3, %rd3, {};
sub.s32 %r5, %r5, 1;
setp.ne.s32 %p2, %r5, 0;
@%p2 bra again;
ret;)",
                                                         step)),
                                      {kBlocks}, {32});
    return static_cast<double>(counts.block_bytes);
  };
  EXPECT_EQ(bytes(kLine), (kBlocks + kMore) * kLine);
  EXPECT_NEAR(bytes(0), kBlocks * kLine, 0.25 * kBlocks * kLine);
}

/// As count(), in clusters of two blocks.
KernelCounts count_clusters(const std::string& body, Dim3 grid, Dim3 block,
                            const std::string& declarations = "") {
  std::string text = kernel(body, declarations);
  text.replace(text.find("sm_80"), 5, "sm_90");
  text.replace(text.find("p)\n"), 2, "p) .reqnctapercluster 2, 1, 1");
  return count(text, grid, block);
}

TEST(Counter, BlocksOfAClusterCountTheirOwnSectors) {
  const KernelCounts counts =
      count_clusters("ld.global.b32 %r5, [%rd1];\nld.global.b32 %r5, [%rd1];\nret;", {4}, {64});
  EXPECT_EQ(counts.block_bytes, 4 * 32);
}

TEST(Counter, PartialCopiesReadTheirSourceSize) {
  const auto copy = [](const char* size) {
    return count(kernel(fmt::format(R"(mov.u32 %r4, s;
mov.u32 %r5, %tid.x;
and.b32 %r6, %r5, 15;
min.u32 %r6, %r6, 8;
mul.wide.u32 %rd2, %r5, 64;
add.s64 %rd3, %rd1, %rd2;
add.s64 %rd3, %rd3, 24;
cp.async.ca.shared.global [%r4], [%rd3], 8, {};
cp.async.wait_all;
ret;)",
                                    size),
                        ".shared .align 16 .b8 s[64];"),
                 {1}, {32});
  };
  const KernelCounts half = copy("4");
  EXPECT_EQ(half.total.global_requests, 1);
  EXPECT_EQ(half.total.global_bytes, 32 * 4);
  EXPECT_EQ(half.minimum_bytes, 32 * 4);
  EXPECT_EQ(half.total.global_sectors, 32);
  EXPECT_EQ(copy("8").total.global_bytes, 32 * 8);
  EXPECT_EQ(copy("0").total.global_requests, 0);
  // 0 to 8 bytes, by lane.
  const KernelCounts each = copy("%r6");
  EXPECT_EQ(each.total.global_requests, 1);
  EXPECT_EQ(each.total.global_bytes, 2 * (28 + 8 * 8));
  EXPECT_EQ(each.minimum_bytes, 2 * (28 + 8 * 8));
}

TEST(Counter, SharedMemoryOfOtherBlocks) {
  const Counts total = count_clusters(R"(mov.u32 %r4, %tid.x;
shl.b32 %r5, %r4, 3;
mov.u32 %r6, s;
add.s32 %r7, %r6, %r5;
mov.u32 %r8, %cluster_ctarank;
xor.b32 %r8, %r8, 1;
mapa.shared::cluster.u32 %r9, %r7, %r8;
st.shared::cluster.b32 [%r9], %r4;
ld.shared::cluster.b32 %r10, [%r9];
atom.shared::cluster.add.u32 %r10, [%r9], 1;
cvt.u64.u32 %rd2, %r7;
cvta.shared.u64 %rd2, %rd2;
mapa.u64 %rd3, %rd2, %r8;
ld.b32 %r10, [%rd3];
barrier.cluster.arrive;
barrier.cluster.wait;
ret;)",
                                      {2}, {32}, ".shared .align 16 .b8 s[4096];")
                           .total;
  EXPECT_EQ(total.shared_requests, 2 * 4);
  EXPECT_EQ(total.shared_wavefronts, 2 * 4 * 2);
  EXPECT_EQ(total.bank_conflicts, 2 * 4);
  EXPECT_EQ(total.atomics, 2 * 32);
  EXPECT_EQ(total.global_requests, 0);
  EXPECT_EQ(total.barriers, 2) << "an arrival and its wait are one barrier";
}

TEST(Counter, BulkReductionsCountTheirElements) {
  const auto atomics = [](const char* type) {
    return count_clusters(fmt::format(R"(mov.u32 %r4, %tid.x;
setp.eq.s32 %p1, %r4, 0;
mov.u32 %r6, s;
@%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.{} [%rd1], [%r6], 4096;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
ret;)",
                                      type),
                          {2}, {32}, ".shared .align 16 .b8 s[4096];")
        .total.atomics;
  };
  EXPECT_EQ(atomics("f32"), 2 * 1024);
  EXPECT_EQ(atomics("u64"), 2 * 512);
  EXPECT_EQ(atomics("noftz.f16"), 2 * 2048);
}

TEST(Counter, PrefetchesReadSectors) {
  const auto fetched = [](const std::string& prefetch) {
    return count_clusters(
        "mul.wide.u32 %rd2, %r1, 128;\nadd.s64 %rd3, %rd1, %rd2;\n" + prefetch + "\nret;", {2},
        {32});
  };
  const KernelCounts lines = fetched("prefetch.global.L2 [%rd3+4];");
  EXPECT_EQ(lines.read_sectors, 2 * 32);
  EXPECT_EQ(lines.total.global_sectors, 2 * 32);
  EXPECT_EQ(lines.block_bytes, 0) << "L2 sends nothing to a block";
  const KernelCounts used = fetched("prefetch.global.L2 [%rd3];\nld.global.b32 %r5, [%rd3];");
  EXPECT_EQ(used.read_sectors, 2 * 32);
  EXPECT_EQ(used.block_bytes, 2 * 32 * 32);
  EXPECT_EQ(fetched("prefetch.global.L1 [%rd3];").block_bytes, 2 * 32 * 32);
  const KernelCounts bulk = fetched("cp.async.bulk.prefetch.L2.global [%rd3], 96;");
  EXPECT_EQ(bulk.read_sectors, 2 * 32 * 3);
  EXPECT_EQ(bulk.block_bytes, 0);
}

// A: 64 x 16 elements, of which each warp reads its own; B: 32 x 16, read once for the group.
// Blocks of 8 rows of 16 bytes are one wavefront, under a swizzle or side by side.
TEST(Counter, MatrixProductsOfWarpGroups) {
  std::string sums;
  for (int i = 0; i < 16; ++i) sums += fmt::format("{}%f{}", i == 0 ? "" : ", ", i);
  const auto product = [&](std::uint64_t descriptor) {
    return count(kernel(fmt::format(R"(mov.u32 %r5, tile; mov.u64 %rd2, {};
setp.eq.s32 %p1, %r1, %r1;
wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {{{}}}, %rd2, %rd2, !%p1, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
ret;)",
                                    descriptor, sums),
                        ".shared .align 1024 .b8 tile[16384];"),
                 {2}, {256});
  };
  constexpr std::uint64_t kGroups = 4;
  constexpr std::uint64_t kStride = std::uint64_t{64} << 32;  // 1024 bytes
  for (const std::uint64_t mode : {1, 0}) {
    const Counts total = product(kStride | std::uint64_t{1} << 16 | mode << 62).total;
    EXPECT_EQ(total.mma_flops, kGroups * 2 * 64 * 32 * 16);
    EXPECT_EQ(of(total, InstructionClass::kMatrix), kGroups * 4);
    EXPECT_EQ(total.shared_requests, kGroups * (4 + 1));
    EXPECT_EQ(total.shared_wavefronts, kGroups * (64 + 32) * 32 / 128);
    EXPECT_EQ(total.bank_conflicts, 0);
  }
}

// A: 128 x 16 elements, B: 32 x 16, by one thread of each block. The descriptor of types says how
// many they are.
TEST(Counter, ProductsInTensorMemory) {
  const std::string text = kernel(R"(mov.u32 %r4, %tid.x; setp.lt.u32 %p1, %r4, 32;
setp.eq.u32 %p2, %r4, 0; mov.u32 %r6, tile; shr.u32 %r6, %r6, 4; cvt.u64.u32 %rd2, %r6;
or.b64 %rd2, %rd2, 0x401000080000; mov.b32 %r7, 0x8080490;
@%p1 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [where], 32;
bar.sync 0; ld.shared.b32 %r5, [where];
@%p2 tcgen05.mma.cta_group::1.kind::f16 [%r5], %rd2, %rd2, %r7, !%p2;
bar.sync 0;
@%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r5, 32;
ret;)",
                                  ".shared .align 1024 .b8 tile[16384]; .shared .b32 where;");
  const KernelCounts counts = count(text, {2}, {128});
  EXPECT_EQ(counts.total.mma_flops, 2 * 2 * 128 * 32 * 16);
  const auto product = std::ranges::find_if(
      counts.lines, [](const LineCounts& line) { return line.counts.mma_flops != 0; });
  ASSERT_NE(product, counts.lines.end());
  EXPECT_EQ(product->counts.shared_requests, 2 * 2);
  EXPECT_EQ(product->counts.shared_wavefronts, 2 * (128 + 32) * 32 / 128);
}

/// With a sparse A half of the products are done.
TEST(Counter, SparseAndScaledProducts) {
  const auto product = [&](const std::string& text) {
    return count(kernel("mma." + text + " {%r0, %r1, %r2, %r3}, {%r4, %r5, %r6, %r7}, " +
                        (text[1] == 'p' ? "{%r4, %r5, %r6, %r7}" : "{%r4, %r5}") +
                        ", {%r0, %r1, %r2, %r3}, %r4, " +
                        (text[1] == 'p' ? "0" : "{0, 0}, %r4, {0, 0}") + ";\nret;"),
                 {2}, {64})
        .total;
  };
  constexpr std::uint64_t kWarps = 4;
  const Counts sparse = product("sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32");
  EXPECT_EQ(sparse.mma_flops, kWarps * 16 * 8 * 32);
  EXPECT_EQ(of(sparse, InstructionClass::kMatrix), kWarps);
  const Counts scaled =
      product("sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0");
  EXPECT_EQ(scaled.mma_flops, kWarps * 2 * 16 * 8 * 64);
  EXPECT_EQ(of(scaled, InstructionClass::kMatrix), kWarps);
}

TEST(Counter, ChainsOfAWarp) {
  const auto chain = [](const std::string& body) { return count(kernel(body), {2}, {64}).chain; };
  // One of four warps asks.
  const WarpChain guarded = chain(R"(setp.lt.s32 %p1, %r1, 32;
@%p1 ld.global.b32 %r5, [%rd1];
st.global.b32 [%rd1+4], %r5;
ret;)");
  EXPECT_EQ(guarded.loads, 0.25);
  // Two loads at one time, then one by what they gave.
  const WarpChain loads = chain(R"(ld.global.b64 %rd2, [%rd1];
ld.global.b64 %rd3, [%rd1+8];
add.s64 %rd4, %rd2, %rd3;
add.s64 %rd5, %rd1, %rd4;
ld.global.b32 %r5, [%rd5];
st.global.b32 [%rd1], %r5;
ret;)");
  EXPECT_EQ(loads.loads, 2);
  EXPECT_EQ(loads.arithmetic, 2);
  EXPECT_EQ(loads.copies, 0);
  // A load behind a store waits for what is stored.
  // Loads behind branches, whose results are copied to where these meet, overlap as others do.
  const WarpChain masked = chain(R"(mov.u32 %r5, 0;
mov.u32 %r6, 0;
@%p1 bra first;
ld.global.b32 %r7, [%rd1];
mov.b32 %r5, %r7;
first:
@%p1 bra second;
ld.global.b32 %r8, [%rd1+4];
mov.b32 %r6, %r8;
second:
add.s32 %r9, %r5, %r6;
ret;)");
  EXPECT_NEAR(masked.loads, 1, 0.1);

  const WarpChain behind = chain(R"(ld.global.b32 %r5, [%rd1];
st.global.b32 [%rd1+4], %r5;
ld.global.b32 %r6, [%rd1+8];
st.global.b32 [%rd1+12], %r6;
ret;)");
  EXPECT_EQ(behind.loads, 2);
  // Ten rounds: what a round uses it asks for in the round before, past a shuffle.
  const WarpChain ahead = chain(R"(mov.u32 %r9, 0;
ld.global.b32 %r5, [%rd1];
loop:
ld.global.nc.b32 %r6, [%rd1+8];
shfl.sync.bfly.b32 %r10, %r9, 1, 31, -1;
add.s32 %r7, %r7, %r5;
mov.b32 %r5, %r6;
add.s32 %r9, %r9, 1;
setp.lt.s32 %p1, %r9, 10;
@%p1 bra loop;
st.global.b32 [%rd1+12], %r7;
ret;)");
  EXPECT_GT(ahead.loads, 5);
  EXPECT_LT(ahead.loads, 12);
  // A load issued four turns ahead is waited for once in five turns, in whichever block.
  const WarpChain turns = chain(R"(mov.u32 %r9, 0;
loop:
ld.global.nc.b32 %r5, [%rd1];
add.s32 %r7, %r7, %r6;
ld.global.nc.b32 %r6, [%rd1+8];
add.s32 %r7, %r7, %r8;
add.s32 %r9, %r9, 1;
setp.eq.s32 %p1, %r9, 100;
@%p1 bra done;
ld.global.nc.b32 %r8, [%rd1+16];
add.s32 %r7, %r7, %r10;
ld.global.nc.b32 %r10, [%rd1+24];
add.s32 %r7, %r7, %r5;
bra loop;
done:
st.global.b32 [%rd1+12], %r7;
ret;)");
  EXPECT_GT(turns.loads, 90);
  EXPECT_LT(turns.loads, 120);
  // In a ring of three, one slot is in use, one in flight, and one is to be filled next.
  const WarpChain copies = chain(R"(cp.async.wait_group 1;
ret;)");
  EXPECT_NEAR(copies.copies, 1 / 3.0, 1e-6);
  EXPECT_EQ(copies.copy_waits, 1);
  EXPECT_EQ(copies.loads, 0);
  // Behind the last copies of all there are only those that stay on their way.
  const WarpChain last = count(kernel(R"(mov.u32 %r4, s;
cp.async.cg.shared.global [%r4], [%rd1], 16;
cp.async.commit_group;
cp.async.wait_group 1;
ret;)",
                                      ".shared .align 16 .b8 s[64];"),
                               {2}, {64})
                             .chain;
  EXPECT_EQ(last.copies, 0.5);
  EXPECT_EQ(last.copy_waits, 1);
}

std::uint64_t in_busiest_block(const KernelCounts& counts) {
  std::uint64_t instructions = 0;
  for (const LineCounts& line : counts.lines) instructions += line.busiest;
  return instructions;
}

TEST(Counter, TheBusiestBlockOfALaunch) {
  const auto text = [](const char* leaves) {
    return kernel(
        fmt::format("mov.u32 %r4, %ctaid.x;\nsetp.{} %p1, %r4, 1;\n@%p1 bra out;\n"
                    "add.s32 %r5, %r4, 1;\nadd.s32 %r5, %r5, 1;\nout:\nret;",
                    leaves));
  };
  // Per warp.
  const std::uint64_t leaving = kMoves + kIntegers + kLoads + 3, staying = leaving + 3;
  const KernelCounts all = count(text("lt.s32"), {8}, {64});
  EXPECT_EQ(all.total.total_instructions(), 2 * leaving + 14 * staying);
  EXPECT_EQ(in_busiest_block(all), 2 * staying);
  const KernelCounts one = count(text("ne.s32"), {8}, {64});
  EXPECT_EQ(one.total.total_instructions(), 14 * leaving + 2 * staying);
  EXPECT_EQ(in_busiest_block(one), 2 * staying);
  // Each launch is counted.
  Bench bench = Bench::from_ptx(text("ne.s32"), {.count = true});
  const std::uint64_t memory = bench.upload(std::vector<std::uint8_t>(64));
  bench.run({8}, {64}, 0, memory);
  bench.run({8}, {32}, 0, memory);
  EXPECT_EQ(in_busiest_block(bench.device().inspector()->counts().at(0)), 3 * staying);
}

TEST(Counter, AccessesPastL1MoveEachTime) {
  const auto bytes = [](const char* access) {
    return count(kernel(fmt::format("mov.u32 %r4, s;\n{0}\n{0}\ncp.async.wait_all;\nret;", access),
                        ".shared .align 16 .b8 s[64];"),
                 {4}, {32})
        .block_bytes;
  };
  EXPECT_EQ(bytes("cp.async.cg.shared.global [%r4], [%rd1], 16;"), 4 * 2 * 32);
  EXPECT_EQ(bytes("cp.async.ca.shared.global [%r4], [%rd1], 16;"), 4 * 32);
  for (const char* access :
       {"ld.global.cg.b32 %r5, [%rd1];", "ld.volatile.global.b32 %r5, [%rd1];",
        "ld.relaxed.gpu.global.b32 %r5, [%rd1];", "ld.acquire.sys.global.b32 %r5, [%rd1];",
        "atom.global.add.u32 %r5, [%rd1], 1;", "red.global.add.u32 [%rd1], 1;"}) {
    EXPECT_EQ(bytes(access), 4 * 2 * 32) << access;
  }
  for (const char* access :
       {"ld.global.ca.b32 %r5, [%rd1];", "ld.relaxed.cta.global.b32 %r5, [%rd1];"}) {
    EXPECT_EQ(bytes(access), 4 * 32) << access;
  }
}

TEST(Counter, WhatPtxasJoins) {
  const KernelCounts counts = count(kernel(R"(mul.wide.s32 %rd2, %r1, 4;
add.s64 %rd3, %rd1, %rd2;
add.s64 %rd4, %rd3, 64;
ld.global.b32 %r5, [%rd4];
and.b32 %r6, %r5, 15;
xor.b32 %r7, %r6, %r1;
shl.b32 %r8, %r7, 2;
add.s32 %r9, %r8, %r5;
add.s32 %r10, %r9, %r9;
popc.b32 %r11, %r10;
popc.b32 %r12, %r10;
popc.b32 %r13, %r11;
popc.b32 %r14, %r12;
popc.b32 %r15, %r9;
mul.lo.s32 %r16, %r13, %r14;
mul.lo.s32 %r17, %r16, %r15;
st.global.b32 [%rd4], %r17;
ret;)"),
                                    {1}, {32});
  std::string joined;
  for (const LineCounts& line : counts.lines) {
    if (line.joined) joined += line.instruction + " ";
  }
  // A sum that has absorbed a shift cannot be absorbed itself, nor can a value with two uses. What
  // is computed twice, or of what is, is computed once.
  EXPECT_EQ(joined, "mul.wide.s32 add.s64 and.b32 shl.b32 popc.b32 popc.b32 ");
}

}  // namespace
}  // namespace braid::cpu_test
