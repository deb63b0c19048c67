// Optimizations for row kernels: consecutive blocks on one stack, warps that pass a barrier
// together, register vectors that are contiguous in memory, prefetches.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "braid/error.h"
#include "cpu/cpu_harness.h"

namespace braid::cpu_test {
namespace {

using testing::HasSubstr;

constexpr int kBlocks = 200;  // several times as many as a thread takes at once

std::vector<unsigned> numbers(std::size_t count) {
  std::vector<unsigned> values(count);
  std::iota(values.begin(), values.end(), 1000U);
  return values;
}

// Uses vectors on only one side, so that equal errors on both cannot cancel.
TEST(Rows, VectorsOfRegisters) {
  for (const bool loads : {false, true}) {
    for (const int count : {64, 61}) {
      Bench bench(fmt::format(R"(
        extern "C" __global__ void k(const unsigned* x, unsigned* y, int n) {{
          const int t = blockIdx.x * blockDim.x + threadIdx.x;
          if (threadIdx.x >= n) return;
          const bool loads = {};
          uint4 v;
          if (loads) v = ((const uint4*)x)[t];
          else v = make_uint4(x[4 * t], x[4 * t + 1], x[4 * t + 2], x[4 * t + 3]);
          v.x += 1; v.y += 20; v.z += 300; v.w += 4000;
          if (!loads) ((uint4*)y)[t] = v;
          else y[4 * t] = v.x, y[4 * t + 1] = v.y, y[4 * t + 2] = v.z, y[4 * t + 3] = v.w;
        }})",
                              loads));
      const std::vector<unsigned> in = numbers(std::size_t{kBlocks} * 256);
      std::vector<unsigned> want(in.size());
      constexpr unsigned kAdded[] = {1, 20, 300, 4000};
      for (std::size_t e = 0; e < in.size(); ++e) {
        if (static_cast<int>(e / 4 % 64) < count) want[e] = in[e] + kAdded[e % 4];
      }
      const std::uint64_t x = bench.upload(in);
      const std::uint64_t y = bench.upload(std::vector<unsigned>(in.size()));
      bench.run({kBlocks}, {64}, 0, x, y, count);
      EXPECT_EQ(bench.download<unsigned>(y, in.size()), want) << loads << " " << count;
    }
  }
}

// Blocks at both ends of the memory, which nothing may be touched beside.
TEST(Rows, GoToTheEndsOfMemory) {
  Bench bench(R"(
    extern "C" __global__ void k(uint4* x, int step) {
      const int block = step > 0 ? blockIdx.x : gridDim.x - 1 - blockIdx.x;
      uint4* const p = x + block * 32 + threadIdx.x;
      uint4 v = *p;
      __syncthreads();
      v.x += v.w;
      *p = v;
    })");
  std::vector<unsigned> want = numbers(std::size_t{kBlocks} * 128);
  const std::uint64_t x = bench.upload(want);
  for (const int step : {1, -1}) {
    bench.run({kBlocks}, {32}, 0, x, step);
    for (std::size_t e = 0; e < want.size(); e += 4) want[e] += want[e + 3];
  }
  EXPECT_EQ(bench.download<unsigned>(x, want.size()), want);
}

/// A kernel of blocks of four warps: warp %r2 of block %r9 has its word of shared memory s at %rd3
/// and its result at %rd1, and %p1 where a lane is its first.
std::string kernel_of_warps(const std::string& body) {
  return R"(
    .version 7.8
    .target sm_80
    .address_size 64
    .shared .align 16 .b32 s[4];
    .visible .entry k(.param .u64 y) {
      .reg .pred %p<5>; .reg .b16 %h<2>; .reg .b32 %r<30>; .reg .b64 %rd<6>; .reg .f64 %fd<2>;
      ld.param.u64 %rd1, [y];
      mov.u32 %r1, %tid.x;
      shr.u32 %r2, %r1, 5;
      and.b32 %r3, %r1, 31;
      setp.eq.u32 %p1, %r3, 0;
      mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ctaid.y; mov.u32 %r6, %ctaid.z;
      mov.u32 %r7, %nctaid.x; mov.u32 %r8, %nctaid.y;
      mad.lo.u32 %r9, %r6, %r8, %r5;
      mad.lo.u32 %r9, %r9, %r7, %r4;
      mad.lo.u32 %r10, %r9, 4, %r2;
      mul.wide.u32 %rd2, %r10, 4;
      add.u64 %rd1, %rd1, %rd2;
      mul.wide.u32 %rd3, %r2, 4;
      mov.u64 %rd4, s;
      add.u64 %rd3, %rd4, %rd3;)" +
         body + "ret; }";
}

// Values that all warps of a block compute alike behind a barrier, for every register type, in each
// turn of a loop that reads the previous turn's result, and in each block of a grid.
TEST(Rows, WarpsThatComputeAlike) {
  Bench bench = Bench::from_ptx(kernel_of_warps(R"(
      mov.u32 %r20, 0;
      mov.u32 %r21, 0;
    ROUND:
      mad.lo.u32 %r22, %r9, 10, %r2;
      mad.lo.u32 %r22, %r20, 7, %r22;
      @%p1 st.shared.u32 [%rd3], %r22;
      setp.gt.u32 %p3, %r20, 0;
      bar.sync 0;
      @%p3 add.u32 %r21, %r21, %r17;
      ld.shared.v4.u32 {%r11, %r12, %r13, %r14}, [s];
      add.u32 %r23, %r11, %r12;
      add.u32 %r15, %r23, %r13;
      add.u32 %r16, %r13, %r14;
      cvt.rn.f64.u32 %fd1, %r16;
      cvt.u16.u32 %h1, %r14;
      setp.gt.u32 %p2, %r12, 900;
      add.u32 %r17, %r16, %ctaid.x;
      cvt.rzi.u32.f64 %r18, %fd1;
      cvt.u32.u16 %r19, %h1;
      add.u32 %r21, %r21, %r15;
      add.u32 %r21, %r21, %r17;
      add.u32 %r21, %r21, %r18;
      add.u32 %r21, %r21, %r19;
      add.u32 %r21, %r21, %r2;
      @%p2 add.u32 %r21, %r21, 1000;
      bar.sync 0;
      add.u32 %r20, %r20, 1;
      setp.lt.u32 %p4, %r20, 3;
      @%p4 bra ROUND;
      @%p1 st.global.u32 [%rd1], %r21;)"));
  constexpr Dim3 kGrid{5, 8, 5};
  std::vector<unsigned> want;
  for (unsigned block = 0; block < kGrid.count(); ++block) {
    unsigned alike = 0;
    for (unsigned round = 0; round < 3; ++round) {
      const auto part = [&](unsigned w) { return block * 10 + w + round * 7; };
      const unsigned first = part(0) + part(1) + part(2), last = part(2) + part(3);
      alike += first + 2 * last + block % 5 + part(3) % 65536 + (part(1) > 900 ? 1000 : 0);
      if (round < 2) alike += last + block % 5;  // which the next one adds
    }
    for (unsigned w = 0; w < 4; ++w) want.push_back(alike + 3 * w);
  }
  const std::uint64_t y = bench.upload(std::vector<unsigned>(want.size()));
  bench.run(kGrid, {128}, 0, y);
  EXPECT_EQ(bench.download<unsigned>(y, want.size()), want);
}

TEST(Rows, WarpsThatMeetFromDifferentPlaces) {
  Bench bench = Bench::from_ptx(kernel_of_warps(R"(
      @%p1 st.shared.u32 [%rd3], %r10;
      and.b32 %r28, %r2, 1;
      setp.eq.u32 %p2, %r28, 1;
      @%p2 bra ODD;
      bar.sync 0;
      ld.shared.v4.u32 {%r11, %r12, %r13, %r14}, [s];
      add.u32 %r15, %r11, %r12;
      add.u32 %r16, %r15, %r13;
      add.u32 %r17, %r16, %r14;
      mov.u32 %r20, %r17;
      bra END;
    ODD:
      bar.sync 0;
      ld.shared.v4.u32 {%r21, %r22, %r23, %r24}, [s];
      add.u32 %r25, %r21, %r24;
      mul.lo.u32 %r26, %r25, 5;
      add.u32 %r27, %r26, %r22;
      mov.u32 %r20, %r27;
    END:
      @%p1 st.global.u32 [%rd1], %r20;)"));
  std::vector<unsigned> want;
  for (unsigned block = 0; block < kBlocks; ++block) {
    for (unsigned w = 0; w < 4; ++w) {
      want.push_back(w % 2 == 0 ? 16 * block + 6 : (8 * block + 3) * 5 + 4 * block + 1);
    }
  }
  const std::uint64_t y = bench.upload(std::vector<unsigned>(want.size()));
  bench.run({kBlocks}, {128}, 0, y);
  EXPECT_EQ(bench.download<unsigned>(y, want.size()), want);
}

// Each warp of a block adds up what all have left before a barrier; one may end before, and two
// may have met at a barrier of their own first.
TEST(Rows, WarpsThatMeetAndDoNot) {
  Bench bench(R"(
    extern "C" __global__ void k(int* y, int ends, int apart) {
      __shared__ int parts[4];
      const int warp = threadIdx.x / 32;
      const bool first = threadIdx.x % 32 == 0;
      if (threadIdx.x < 4) parts[threadIdx.x] = 0;
      __syncthreads();
      if (warp == ends) return;
      int other = 0;
      if (warp == apart || warp == apart + 1) {
        if (first) parts[warp] = 1000;
        asm volatile("bar.sync 1, 64;" ::: "memory");
        other = parts[2 * apart + 1 - warp];
      }
      __syncthreads();
      if (first) atomicAdd(&parts[warp], warp + 1 + blockIdx.x);
      __syncthreads();
      if (first) y[blockIdx.x * 4 + warp] = parts[0] + parts[1] + parts[2] + parts[3] + other;
    })");
  for (int ends = -1; ends < 4; ++ends) {
    for (int apart = -2; apart < 3; ++apart) {
      if (apart == -1 || (ends >= 0 && (apart == ends || apart + 1 == ends))) continue;
      std::vector<int> want(std::size_t{kBlocks} * 4);
      for (int block = 0; block < kBlocks; ++block) {
        int sum = apart < 0 ? 0 : 2000;
        for (int warp = 0; warp < 4; ++warp) sum += warp == ends ? 0 : warp + 1 + block;
        for (int warp = 0; warp < 4; ++warp) {
          if (warp == ends) continue;
          const bool meets = warp == apart || warp == apart + 1;
          want[static_cast<std::size_t>(block * 4 + warp)] = sum + (meets && apart >= 0 ? 1000 : 0);
        }
      }
      const std::uint64_t y = bench.upload(std::vector<int>(want.size()));
      bench.run({kBlocks}, {128}, 0, y, ends, apart);
      EXPECT_EQ(bench.download<int>(y, want.size()), want) << ends << " " << apart;
    }
  }
}

// Eight values of each thread at once, of which one may have to go another way than the rest.
TEST(Rows, BfloatsBesideEachOther) {
  Bench bench(R"(
    extern "C" __global__ void k(const float4* x, uint4* y) {
      const int t = blockIdx.x * blockDim.x + threadIdx.x;
      const float4 a = x[2 * t], b = x[2 * t + 1];
      const float v[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
      unsigned short h[8];
      for (int i = 0; i < 8; ++i) asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h[i]) : "f"(v[i] * 3));
      y[t] = make_uint4(h[0] | h[1] << 16, h[2] | h[3] << 16, h[4] | h[5] << 16, h[6] | h[7] << 16);
    })");
  Random random(5);
  std::vector<float> x(std::size_t{kBlocks} * 64 * 8);
  std::vector<std::uint16_t> want;
  for (float& value : x) {
    const std::uint64_t bits = random.next();
    value = static_cast<float>(bits % 2000001) / 1000 - 1000;
    if (bits >> 56 == 0) value = std::numeric_limits<float>::quiet_NaN();
    if (bits >> 56 == 1) value = static_cast<float>(bits & 0xffff) * 0x1p-149F;
    if (bits >> 56 == 2) value = std::numeric_limits<float>::infinity();
    const auto product = std::bit_cast<std::uint32_t>(value * 3);
    const std::uint32_t rounded = product + 0x7fff + (product >> 16 & 1);
    want.push_back(std::isnan(value) ? 0x7fff : static_cast<std::uint16_t>(rounded >> 16));
  }
  const std::uint64_t from = bench.upload(x);
  const std::uint64_t to = bench.upload(std::vector<std::uint16_t>(x.size()));
  bench.run({kBlocks}, {64}, 0, from, to);
  EXPECT_EQ(bench.download<std::uint16_t>(to, x.size()), want);
}

TEST(Rows, AnErrorNamesItsBlock) {
  for (const char* barrier : {"", "__syncthreads();"}) {
    Bench bench(fmt::format(R"(
      extern "C" __global__ void k(int* x, int bad) {{
        {}
        if (blockIdx.x == bad) x = (int*)0x10;
        x[blockIdx.x * 64 + threadIdx.x] += 1;
      }})",
                            barrier),
                {.threads = 1});
    const std::uint64_t x = bench.upload(std::vector<int>(std::size_t{kBlocks} * 64));
    try {
      bench.run({kBlocks}, {64}, 0, x, 37);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("block (37, 0, 0)"));
    }
  }
}

}  // namespace
}  // namespace braid::cpu_test
