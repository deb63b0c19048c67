#include "lowering/plan/kernel_estimate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>

namespace braid::testing {
namespace {

const DeviceModel& device(const char* name) { return *find_device_model(name); }

/// A line whose warps issue `count` instructions of that name in one launch of a full device.
KernelCounts kernel(const DeviceModel& device, std::string instruction,
                    InstructionClass instruction_class, std::uint64_t count) {
  KernelCounts result{.launches = 1, .blocks = static_cast<std::uint64_t>(device.sms)};
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
  counts.total.peer_bytes = 450'000'000;
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
  counts.minimum_bytes = 3'352'000'000;  // a millisecond of memory at the data sheet's rate
  EXPECT_EQ(estimate_kernel(counts, h100).limiter, "memory");
  EXPECT_NEAR(work_us(counts, h100), 1000 / 0.9, 1);
  counts.minimum_bytes = 0;
  counts.total.peer_bytes = 900'000'000;
  EXPECT_EQ(estimate_kernel(counts, h100).limiter, "NVLink");
  EXPECT_NEAR(work_us(counts, h100), 2000, 1);
  counts.total.peer_bytes = 0;
  counts.lines[0].counts.mma_flops = 989'000'000'000;  // of which mma.sync reaches 62 %
  EXPECT_EQ(estimate_kernel(counts, h100).limiter, "matrix unit");
  EXPECT_NEAR(work_us(counts, h100), 1000 / 0.62, 1);
}

}  // namespace
}  // namespace braid::testing
