#include "lowering/plan/kernel_estimate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

namespace braid::testing {
namespace {

const DeviceModel& device(const char* name) { return *find_device_model(name); }

/// A line whose warps issue `count` instructions of that name on each multiprocessor, in one launch
/// of a block for each.
KernelCounts kernel(const DeviceModel& device, std::string instruction,
                    InstructionClass instruction_class, std::uint64_t count) {
  KernelCounts result{.launches = 1,
                      .blocks = static_cast<std::uint64_t>(device.sms),
                      .threads = 1024,
                      .registers = 64};
  LineCounts line{.ptx_line = 1, .instruction = std::move(instruction)};
  line.counts.instructions[static_cast<std::size_t>(instruction_class)] =
      count * static_cast<std::uint64_t>(device.sms);
  result.total = line.counts;
  result.lines.push_back(std::move(line));
  return result;
}

double work_us(const KernelCounts& counts, const DeviceModel& on) {
  return (estimate_kernel(counts, on).ns - on.launch_ns) / 1e3;
}

TEST(KernelEstimate, EachUnitHasItsRate) {
  const DeviceModel& a6000 = device("RTX A6000");
  constexpr std::uint64_t kCount = 1'800'000;  // a millisecond at one for each clock
  // 128 lanes, and four schedulers: both take a quarter of it, together.
  const KernelCounts fma = kernel(a6000, "fma.rn.f32", InstructionClass::kFloat, kCount);
  EXPECT_NEAR(work_us(fma, a6000), 250, 1);
  const KernelCounts special = kernel(a6000, "ex2.approx.f32", InstructionClass::kFloat, kCount);
  EXPECT_EQ(estimate_kernel(special, a6000).limiter, "special units");
  EXPECT_NEAR(work_us(special, a6000), 2000, 1);
  const KernelCounts wide = kernel(a6000, "add.s64", InstructionClass::kInteger, kCount);
  EXPECT_EQ(estimate_kernel(wide, a6000).limiter, "integer units");
  EXPECT_NEAR(work_us(wide, a6000), 1000, 1);
  const KernelCounts f64 = kernel(a6000, "fma.rn.f64", InstructionClass::kFloat, kCount);
  EXPECT_EQ(estimate_kernel(f64, a6000).limiter, "f64 units");
  EXPECT_NEAR(work_us(f64, a6000), 16'000, 10);
  const KernelCounts move = kernel(a6000, "mov.b32", InstructionClass::kMove, kCount);
  EXPECT_EQ(work_us(move, a6000), 0);
}

// One multiprocessor works, and the others have nothing to do.
TEST(KernelEstimate, ABlockThatWorksAloneIsWaitedFor) {
  const DeviceModel& h100 = device("H100");
  KernelCounts counts = kernel(h100, "fma.rn.f32", InstructionClass::kFloat, 1'980'000);
  const double each = work_us(counts, h100);
  counts.lines[0].busiest = 1'980'000;
  EXPECT_EQ(work_us(counts, h100), each);
  counts.lines[0].busiest = counts.total.total_instructions();
  EXPECT_NEAR(work_us(counts, h100), each * h100.sms, each);
  // However many others there are: no multiprocessor does less than a block.
  const double alone = work_us(counts, h100);
  for (const std::uint64_t more : {2, 100}) {
    counts.blocks = more * static_cast<std::uint64_t>(h100.sms);
    EXPECT_NEAR(work_us(counts, h100), alone, 0.01 * alone);
  }
  // Where all do the same, one of them is not what is waited for.
  counts.lines[0].busiest = 1'980'000 / 100;
  EXPECT_LT(work_us(counts, h100), 1.01 * each);
}

TEST(KernelEstimate, NoTimeIsBelowZero) {
  const DeviceModel& h100 = device("H100");
  for (std::uint64_t count = 1; count < 100; ++count) {
    const KernelCounts counts = kernel(h100, "fma.rn.f32", InstructionClass::kFloat, count * 977);
    for (const UnitTime& unit : estimate_kernel(counts, h100).units) {
      EXPECT_FALSE(std::signbit(unit.ns)) << unit.unit << " " << count;
    }
  }
}

TEST(KernelEstimate, ProductsOfOtherTypes) {
  const auto us = [](const char* name, const std::string& types) {
    const DeviceModel& on = device(name);
    KernelCounts counts = kernel(on, "mma.sync.aligned." + types, InstructionClass::kMatrix, 0);
    counts.lines[0].counts.mma_flops = 1'000'000'000'000;
    EXPECT_EQ(estimate_kernel(counts, on).limiter, "matrix unit");
    return work_us(counts, on);
  };
  const std::string f64 = "m8n8k4.row.col.f64.f64.f64.f64";
  EXPECT_NEAR(us("A100", f64), 1e6 / 19.5, 300);
  EXPECT_NEAR(us("H100", f64), 1e6 / 67, 200);
  EXPECT_NEAR(us("RTX A6000", f64), 1e6 / (84 * 2 * 2 * 1.8e-3), 2e4);  // of its f64 lanes
  const std::string s4 = "m16n8k64.row.col.s32.s4.u4.s32";
  const std::string b1 = "m16n8k256.row.col.s32.b1.b1.s32.and.popc";
  EXPECT_NEAR(us("A100", "m16n8k32.row.col.s32.s8.u8.s32"), 1e6 / 624, 10);
  EXPECT_NEAR(us("A100", s4), 1e6 / 1248, 5);
  EXPECT_NEAR(us("A100", b1), 1e6 / 4992, 2);
  const std::string s8 = "m16n8k32.row.col.s32.s8.s8.s32";
  EXPECT_EQ(us("H100", s4), us("H100", s8));
  EXPECT_EQ(us("H100", b1), us("H100", s8));
}

TEST(KernelEstimate, RatesOfInstructions) {
  // Warps that a multiprocessor executes per clock.
  const auto rate = [](const char* name, const char* instruction, InstructionClass of) {
    const DeviceModel& on = device(name);
    const auto count = static_cast<std::uint64_t>(1e6 * on.ghz);
    return 1e3 / work_us(kernel(on, instruction, of, count), on);
  };
  struct Case {
    const char* instruction;
    InstructionClass of;
    double a100, a10, h100;  ///< lanes per clock
  };
  const InstructionClass convert = InstructionClass::kConvert, integer = InstructionClass::kInteger;
  const InstructionClass number = InstructionClass::kFloat, warp = InstructionClass::kWarp;
  const Case cases[] = {
      {"cvt.rn.f32.s32", convert, 16, 16, 64},
      {"cvt.rzi.u32.f32", convert, 16, 16, 64},
      {"cvt.rn.f16.s16", convert, 16, 16, 64},
      {"cvt.rzi.s32.bf16", convert, 16, 16, 64},
      {"cvt.rn.f32.u64", convert, 16, 2, 16},
      {"cvt.rzi.s64.f32", convert, 16, 2, 16},
      {"cvt.f64.f32", convert, 16, 2, 16},
      {"cvt.rn.f64.s32", convert, 16, 2, 16},
      {"cvt.rn.f32.f64", convert, 16, 2, 16},
      {"cvt.u16.u32", convert, 64, 64, 64},
      {"cvt.s64.s32", convert, 64, 64, 64},
      {"cvt.rn.bf16x2.f32", convert, 64, 64, 64},
      {"cvt.f32.f16", convert, 64, 64, 64},
      {"popc.b32", integer, 16, 16, 16},
      {"clz.b32", integer, 16, 16, 16},
      {"brev.b32", integer, 16, 16, 16},
      {"bfind.u32", integer, 16, 16, 16},
      {"min.s64", integer, 16, 16, 16},
      {"min.s32", integer, 64, 64, 64},
      {"selp.b64", InstructionClass::kMove, 64, 64, 64},
      {"shfl.sync.bfly.b32", warp, 32, 32, 32},
      {"redux.sync.add.s32", warp, 16, 16, 16},
      {"vote.sync.ballot.b32", warp, 64, 64, 64},
      {"match.sync.any.b32", warp, 64, 64, 64},
      {"fma.rn.f16x2", number, 64, 128, 128},
      {"sqrt.rn.f64", number, 32 / 8.0, 2 / 8.0, 64 / 8.0},
      {"rcp.rn.f64", number, 32 / 5.0, 2 / 5.0, 64 / 5.0},
  };
  for (const Case& c : cases) {
    // Issuing a shuffle is in the way of others, a little.
    EXPECT_NEAR(32 * rate("A100", c.instruction, c.of), c.a100, 0.04 * c.a100) << c.instruction;
    EXPECT_NEAR(32 * rate("A10", c.instruction, c.of), c.a10, 0.04 * c.a10) << c.instruction;
    EXPECT_NEAR(32 * rate("H100", c.instruction, c.of), c.h100, 0.04 * c.h100) << c.instruction;
  }
}

TEST(KernelEstimate, AccessesTakeWavefrontsOrLanes) {
  const DeviceModel& a6000 = device("RTX A6000");
  const DeviceModel& h100 = device("H100");
  const auto with = [](const DeviceModel& on, std::uint64_t requests, std::uint64_t wavefronts) {
    KernelCounts counts = kernel(on, "ld.shared.f32", InstructionClass::kMemory, 0);
    const auto all = static_cast<std::uint64_t>(on.sms);
    counts.lines[0].counts.issued_shared_requests = requests * all;
    counts.lines[0].counts.issued_shared_wavefronts = wavefronts * all;
    counts.lines[0].counts.shared_requests = requests * all;
    return counts;
  };
  // 16 units for 32 lanes: two clocks for one wavefront.
  EXPECT_NEAR(work_us(with(a6000, 1'800'000, 1'800'000), a6000), 2000, 1);
  EXPECT_NEAR(work_us(with(a6000, 1'800'000, 7'200'000), a6000), 4000, 1);
  EXPECT_NEAR(work_us(with(h100, 1'980'000, 1'980'000), h100), 1000, 1);
  EXPECT_EQ(estimate_kernel(with(h100, 1'980'000, 1'980'000), h100).limiter, "loads and stores");
}

TEST(KernelEstimate, LookingUpAndMovingDataGoOnTogether) {
  const DeviceModel& h100 = device("H100");
  const auto all = static_cast<std::uint64_t>(h100.sms);
  KernelCounts counts = kernel(h100, "ld.global.f32", InstructionClass::kMemory, 0);
  counts.lines[0].counts.global_requests = 1'980'000 * all;
  counts.lines[0].counts.global_wavefronts = 2 * 1'980'000 * all;
  counts.lines[0].counts.issued_shared_requests = 1'980'000 * all;
  counts.lines[0].counts.issued_shared_wavefronts = 3 * 1'980'000 * all;
  counts.lines[0].counts.shared_requests = 1'980'000 * all;
  EXPECT_NEAR(work_us(counts, h100), 5000, 1);
  counts.lines[0].instruction = "cp.async.cg.shared.global";  // its data goes to shared memory once
  EXPECT_NEAR(work_us(counts, h100), 3000, 1);
}

TEST(KernelEstimate, UnitsThatAreAsSlowAsEachOtherAreInEachOthersWay) {
  const DeviceModel& h100 = device("H100");
  KernelCounts counts = kernel(h100, "fma.rn.f32", InstructionClass::kFloat, 4 * 1'980'000);
  EXPECT_NEAR(work_us(counts, h100), 1000, 15);
  // Eight warps of each part go round between links and the multiprocessor: one of nine waits.
  counts.total.peer_bytes = 450'000'000;
  EXPECT_NEAR(work_us(counts, h100), 1000 * 9.0 / 8, 15);
  counts.total.peer_bytes = 0;
  LineCounts loads{.instruction = "ld.shared.f32"};
  loads.counts.issued_shared_requests = loads.counts.issued_shared_wavefronts =
      1'980'000 * static_cast<std::uint64_t>(h100.sms);
  loads.counts.shared_requests = loads.counts.issued_shared_requests;
  counts.lines.push_back(loads);
  EXPECT_NEAR(work_us(counts, h100), 1000 * std::sqrt(2), 15);
}

TEST(KernelEstimate, TheBusiestMultiprocessorCounts) {
  const DeviceModel& h100 = device("H100");
  KernelCounts full = kernel(h100, "fma.rn.f32", InstructionClass::kFloat, 1'980'000);
  const double full_us = work_us(full, h100);
  full.blocks = 1;  // all of it on one
  EXPECT_NEAR(work_us(full, h100), full_us * h100.sms, 1);
  full.blocks = static_cast<std::uint64_t>(h100.sms) + 1;  // two blocks on one of them
  EXPECT_NEAR(work_us(full, h100), full_us * 2 * h100.sms / (h100.sms + 1), 1);
}

TEST(KernelEstimate, MemoryLinksAndMatrixUnits) {
  const DeviceModel& h100 = device("H100");
  EXPECT_EQ(estimate_kernel({}, h100).limiter, "launch");
  KernelCounts counts = kernel(h100, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
                               InstructionClass::kMatrix, 0);
  EXPECT_EQ(estimate_kernel(counts, h100).limiter, "launch");
  counts.read_sectors = 3'352'000'000 / 32;  // a millisecond of memory at the data sheet's rate
  EXPECT_EQ(estimate_kernel(counts, h100).limiter, "memory");
  EXPECT_NEAR(work_us(counts, h100), 1000 / 0.9, 1);
  counts.read_sectors = 0;
  counts.total.peer_bytes = 900'000'000;
  EXPECT_EQ(estimate_kernel(counts, h100).limiter, "NVLink");
  EXPECT_NEAR(work_us(counts, h100), 2000, 1);
  counts.total.peer_bytes = 0;
  counts.lines[0].counts.mma_flops = 989'000'000'000;  // of which mma.sync reaches 62 %
  EXPECT_EQ(estimate_kernel(counts, h100).limiter, "matrix unit");
  EXPECT_NEAR(work_us(counts, h100), 1000 / 0.62, 1);
}

/// A stream: blocks of 256 threads, each of which reads `bytes` and writes as much, once.
KernelCounts stream(const DeviceModel& on, double waves, std::uint64_t bytes) {
  constexpr std::uint64_t kThreads = 256;
  const auto blocks = static_cast<std::uint64_t>(std::llround(waves * on.sms * 8));
  KernelCounts counts{.launches = 1, .blocks = blocks, .threads = kThreads, .registers = 32};
  const std::uint64_t requests = blocks * kThreads / 32;
  for (const char* name : {"ld.global.f32", "st.global.f32"}) {
    LineCounts line{.instruction = name};
    line.counts.global_requests = requests;
    line.counts.global_wavefronts = requests * bytes / 4;
    line.counts.global_bytes = requests * bytes * 32;
    line.counts.global_sectors = requests * bytes;
    line.counts.instructions[static_cast<std::size_t>(InstructionClass::kMemory)] = requests;
    counts.total += line.counts;
    counts.lines.push_back(std::move(line));
  }
  counts.block_bytes = counts.total.global_bytes;
  counts.read_sectors = counts.written_sectors = counts.block_bytes / 2 / 32;
  counts.chain = {.loads = 1, .arithmetic = 4};
  return counts;
}

double least_of(const KernelCounts& counts) {
  return 32.0 * static_cast<double>(counts.read_sectors + counts.written_sectors);
}

TEST(KernelEstimate, AWarpAloneWaitsForEachLoad) {
  const DeviceModel& a100 = device("A100");
  KernelCounts counts = stream(a100, 1, 4);
  counts.blocks = 1;
  counts.threads = 32;
  counts.lines.clear();
  counts.block_bytes = std::uint64_t{1} << 30U;  // none of it in a cache
  counts.written_sectors = 0;
  counts.read_sectors = counts.total.global_sectors = counts.block_bytes / 32;
  counts.chain = {.loads = 1e6};
  // A million times 466 clocks, beside which its 2^30 bytes are nothing for memory.
  const double once = 466 / 1.41;
  EXPECT_NEAR(work_us(counts, a100), 1e3 * once, 0.05 * 1e3 * once + 1100);
  EXPECT_EQ(estimate_kernel(counts, a100).limiter, "latency");
  // Of what L1 could serve the latency is less, unless the load bypasses it.
  const auto again = [&](bool past_l1) {
    KernelCounts small = counts;
    small.block_bytes = small.read_sectors = 32;
    LineCounts line{.instruction = "ld.global.f32", .past_l1 = past_l1};
    line.counts.global_requests = 1'000'000;
    small.lines = {line};
    return work_us(small, a100);
  };
  EXPECT_NEAR(again(false), 1e3 * 38 / 1.41, 0.05 * 1e3 * 38 / 1.41);
  EXPECT_NEAR(again(true), 1e3 * 262 / 1.41, 0.05 * 1e3 * 262 / 1.41);
  // Two blocks on two multiprocessors take no longer.
  const double alone = work_us(counts, a100);
  counts.blocks = 2;
  EXPECT_LT(work_us(counts, a100), 1.01 * alone);
}

TEST(KernelEstimate, BytesUnderWayDrawTheMemorysRate) {
  const DeviceModel& h100 = device("H100");
  const auto gbs = [&](const KernelCounts& counts) {
    return least_of(counts) / (work_us(counts, h100) * 1e3);
  };
  const double wide = gbs(stream(h100, 20, 16));
  EXPECT_LT(wide, 0.9 * h100.hbm_gbs);
  EXPECT_GT(wide, 0.8 * h100.hbm_gbs);
  // With one block at a time, for lack of shared memory, few bytes are in flight; with word
  // accesses even fewer.
  KernelCounts alone = stream(h100, 20, 16), words = stream(h100, 20, 4);
  alone.shared_bytes = words.shared_bytes = 200 << 10U;
  EXPECT_LT(gbs(alone), 0.8 * wide);
  EXPECT_LT(gbs(words), 0.5 * gbs(alone));
  EXPECT_EQ(estimate_kernel(alone, h100).occupancy.limiter, "shared memory");
  EXPECT_EQ(estimate_kernel(alone, h100).occupancy.blocks, 1);
}

TEST(KernelEstimate, TheLastWaveTakesItsTime) {
  const DeviceModel& h100 = device("H100");
  const auto us = [&](double waves, double loads) {
    KernelCounts counts = stream(h100, waves, 4);
    counts.chain.loads = loads;
    EXPECT_NEAR(estimate_kernel(counts, h100).waves, waves, 0.01);
    return work_us(counts, h100);
  };
  // When waiting dominates, a few more blocks cost a wave; when memory does, they cost few bytes.
  EXPECT_NEAR(us(4.1, 1e4), us(5, 1e4), 0.05 * us(5, 1e4));
  EXPECT_GT(us(4.1, 1e4), 1.2 * us(4, 1e4));
  EXPECT_LT(us(40.1, 1), 1.03 * us(40, 1));
}

TEST(KernelEstimate, BlocksOfAWaveReadTogether) {
  const DeviceModel& a6000 = device("RTX A6000");
  KernelCounts counts = stream(a6000, 16, 16);
  counts.block_bytes *= 64;  // of panels that many blocks read
  const auto moved = [&] { return estimate_kernel(counts, a6000).memory_bytes; };
  const double least = least_of(counts);
  EXPECT_EQ(moved(), least);  // nobody has looked
  // In rows a wave of 672 blocks reads one panel of its own, and all of the others; in squares
  // both panels are shared.
  counts.shared_reads = {1, 0.75, 0.63, 0.56, 0.53, 0.51, 0.508, 0.504, 0.502, 0.501, 0.5};
  const double rows = moved();
  EXPECT_NEAR(rows, 0.5 * static_cast<double>(counts.block_bytes), 0.05 * rows);
  counts.shared_reads = {1, 0.75, 0.5, 0.38, 0.25, 0.19, 0.13, 0.09, 0.06, 0.05, 0.04};
  const double squares = moved();
  EXPECT_LT(squares, 0.15 * rows);
  EXPECT_GT(squares, least);
  // If L2 holds all of it, it is read once.
  KernelCounts small = stream(a6000, 1, 4);
  small.block_bytes *= 64;
  small.shared_reads = counts.shared_reads;
  EXPECT_EQ(estimate_kernel(small, a6000).memory_bytes, least_of(small));
}

TEST(KernelEstimate, RingsOfCopiesComeOnceInALatency) {
  const DeviceModel& h100 = device("H100");
  KernelCounts counts = kernel(h100, "cp.async.cg.shared.global", InstructionClass::kMemory, 0);
  counts.chain = {.copies = 1e6, .copy_waits = 2e6};
  counts.lines[0].counts.global_requests = 32'000'000 * static_cast<std::uint64_t>(h100.sms);
  counts.block_bytes = std::uint64_t{1} << 40U;
  const double l2 = 263 / 1.98;
  EXPECT_GE(work_us(counts, h100), 1e3 * l2);
}

/// A product whose matrix units and L2 need about as long as each other, in steps between barriers.
KernelCounts pipelined(const DeviceModel& on, double stages) {
  KernelCounts counts =
      kernel(on, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", InstructionClass::kMatrix, 0);
  counts.threads = 256;
  counts.lines[0].counts.mma_flops = 300'000'000'000;
  counts.block_bytes = 6'000'000'000;
  const double steps = 1024;
  counts.chain = {.copies = steps / stages, .copy_waits = steps};
  counts.lines[0].counts.barriers = static_cast<std::uint64_t>(2 * steps) * counts.blocks * 8;
  return counts;
}

TEST(KernelEstimate, WhatPipeliningGains) {
  for (const char* name : {"A100", "H100"}) {
    const DeviceModel& on = device(name);
    const double one = work_us(pipelined(on, 1), on), two = work_us(pipelined(on, 2), on);
    const double four = work_us(pipelined(on, 4), on);
    EXPECT_GT(one, 1.1 * two) << name;
    EXPECT_GT(two, 1.05 * four) << name;
    // Loads that warps store themselves, and wait for before a barrier, are as good as one stage.
    KernelCounts by_registers = pipelined(on, 1);
    by_registers.chain = {.loads = by_registers.chain.copy_waits};
    EXPECT_NEAR(work_us(by_registers, on), one, 0.15 * one) << name;
  }
}

TEST(KernelEstimate, RingsOfBulkCopies) {
  const DeviceModel& h100 = device("H100");
  const auto us = [&](std::uint32_t stages) {
    KernelCounts counts = pipelined(h100, 1);
    counts.chain = {};
    LineCounts copy{.instruction = "cp.async.bulk.tensor.2d.shared::cluster"};
    copy.counts.global_bytes = counts.block_bytes;
    LineCounts expect{.instruction = "mbarrier.arrive.expect_tx.shared::cta.b64"};
    expect.counts.instructions[static_cast<std::size_t>(InstructionClass::kSync)] =
        1024 * counts.blocks;
    counts.shared_bytes =
        stages * static_cast<std::uint32_t>(counts.block_bytes / counts.blocks / 1024 + 1);
    counts.lines.push_back(copy);
    counts.lines.push_back(expect);
    return work_us(counts, h100);
  };
  EXPECT_GT(us(1), 1.2 * us(2));
  EXPECT_GT(us(2), 1.05 * us(4));
}

TEST(KernelEstimate, WhatPtxasJoinsTakesNoSlots) {
  const DeviceModel& a6000 = device("RTX A6000");
  KernelCounts sums = kernel(a6000, "add.s64", InstructionClass::kInteger, 1'800'000);
  sums.lines[0].joined = true;
  EXPECT_EQ(work_us(sums, a6000), 0);
}

TEST(Occupancy, TheLeastOfAllLimits) {
  const auto of = [](const char* on, std::uint32_t threads, std::uint32_t registers,
                     std::uint32_t shared) {
    const Occupancy found =
        occupancy({.threads = threads, .shared_bytes = shared, .registers = registers}, device(on));
    return std::pair(found.blocks, std::string(found.limiter));
  };
  const std::string kRegisters = "registers", kThreads = "threads";
  EXPECT_EQ(of("A100", 256, 255, 0), std::pair(1, kRegisters));
  EXPECT_EQ(of("A100", 256, 128, 0), std::pair(2, kRegisters));
  EXPECT_EQ(of("A100", 256, 129, 0), std::pair(1, kRegisters));  // 136 of them: 3 warps of a part
  EXPECT_EQ(of("A100", 256, 32, 0), std::pair(8, kThreads));
  EXPECT_EQ(of("RTX A6000", 1024, 32, 0), std::pair(1, kThreads));
  EXPECT_EQ(of("RTX A6000", 32, 32, 0), std::pair(16, std::string("blocks")));
  EXPECT_EQ(of("H100", 128, 32, 112 << 10U), std::pair(2, std::string("shared memory")));
  EXPECT_EQ(of("H100", 128, 32, (113 << 10U) + 1), std::pair(1, std::string("shared memory")));
  EXPECT_EQ(of("H100", 256, 0, 0), std::pair(4, kRegisters));     // 64 are assumed
  EXPECT_EQ(of("A100", 1024, 255, 0), std::pair(1, kRegisters));  // not even one fits
}

}  // namespace
}  // namespace braid::testing
