// Counts of a sample of blocks, scaled to the grid, beside those of all blocks.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "cpu/cpu_harness.h"

namespace braid::cpu_test {
namespace {

/// Runs `kernel` with four buffers of floats, all blocks or a sample.
KernelCounts count(const std::string& cuda, Dim3 grid, Dim3 block, bool sample) {
  Bench bench(
      "extern \"C\" __global__ void k(float* a, float* b, float* c, int* words) {" + cuda + "}",
      {.count = true, .sample = sample});
  std::vector<std::uint64_t> buffers;
  for (int i = 0; i < 3; ++i) buffers.push_back(bench.upload(std::vector<float>(1 << 19)));
  const std::uint64_t words = bench.upload(std::vector<int>(64));
  bench.run(grid, block, 0, buffers[0], buffers[1], buffers[2], words);
  return bench.device().inspector()->counts().at(0);
}

void expect_near(std::uint64_t sampled, std::uint64_t all, double tolerance, const char* what) {
  const double difference = std::abs(static_cast<double>(sampled) - static_cast<double>(all));
  EXPECT_LE(difference, tolerance * static_cast<double>(all))
      << what << ": " << sampled << ", of all blocks " << all;
}

void compare(const std::string& cuda, Dim3 grid, Dim3 block, double tolerance = 0.02) {
  const KernelCounts all = count(cuda, grid, block, false);
  const KernelCounts sampled = count(cuda, grid, block, true);
  EXPECT_EQ(all.blocks_run, grid.count());
  EXPECT_EQ(sampled.blocks, grid.count());
  EXPECT_LT(sampled.blocks_run, grid.count() / 4);
  const auto near = [&](std::uint64_t Counts::*member, const char* what) {
    expect_near(sampled.total.*member, all.total.*member, tolerance, what);
  };
  expect_near(sampled.total.total_instructions(), all.total.total_instructions(), tolerance,
              "instructions");
  near(&Counts::lanes, "lanes");
  near(&Counts::global_requests, "requests");
  near(&Counts::global_sectors, "sectors");
  near(&Counts::global_bytes, "bytes");
  near(&Counts::shared_wavefronts, "wavefronts");
  near(&Counts::bank_conflicts, "conflicts");
  near(&Counts::barriers, "barriers");
  expect_near(sampled.minimum_bytes, all.minimum_bytes, tolerance, "minimum");
  expect_near(sampled.read_sectors, all.read_sectors, tolerance, "sectors read");
  expect_near(sampled.written_sectors, all.written_sectors, tolerance, "sectors written");
}

/// c = a b of 500 x 500 x 72 by tiles of 16 x 16, which do not divide it.
const std::string kProduct = R"(
  __shared__ float as[16][16], bs[16][16];
  const int m = 500, n = 500, depth = 72;
  const int x = threadIdx.x, y = threadIdx.y, column = tile_x * 16 + x, row = tile_y * 16 + y;
  float sum = 0;
  for (int k = 0; k < depth; k += 16) {
    as[y][x] = row < m && k + x < depth ? a[row * depth + k + x] : 0;
    bs[y][x] = column < n && k + y < depth ? b[(k + y) * n + column] : 0;
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += as[y][i] * bs[i][x];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
)";

TEST(CountSample, AProductWithTails) {
  compare("const int tile_x = blockIdx.x, tile_y = blockIdx.y;" + kProduct, {32, 32}, {16, 16});
}

TEST(CountSample, AProductWhoseTilesAreNumberedAlongOneAxis) {
  // Which of its blocks share rows is not seen, but where the buffers end is.
  compare("const int tile_x = blockIdx.x % 32, tile_y = blockIdx.x / 32;" + kProduct, {32 * 32},
          {16, 16}, 0.03);
}

TEST(CountSample, RowsOfDifferentWork) {
  // Row r has r elements.
  compare(R"(float sum = 0;
  for (int i = threadIdx.x; i < blockIdx.x; i += 32) sum += a[blockIdx.x * 512 + i];
  b[blockIdx.x * 32 + threadIdx.x] = sum;)",
          {512}, {32}, 0.05);
}

TEST(CountSample, ElementsWithATail) {
  compare(R"(const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < 100000) b[i] = a[i] * 2 + 1;)",
          {391}, {256}, 0.01);
}

TEST(CountSample, AFewBytesOfEachSector) {
  compare("b[blockIdx.x * 1024 + threadIdx.x * 32] = a[blockIdx.x * 1024 + threadIdx.x * 16];",
          {200}, {32}, 0.01);
}

TEST(CountSample, SmallGridsAreCountedWhole) {
  const std::string cuda = "b[blockIdx.x * 64 + threadIdx.x] = a[blockIdx.x * blockIdx.x];";
  const KernelCounts all = count(cuda, {5, 6}, {64}, false);
  const KernelCounts sampled = count(cuda, {5, 6}, {64}, true);
  EXPECT_EQ(sampled.blocks_run, 30);
  EXPECT_EQ(sampled.total.total_instructions(), all.total.total_instructions());
  EXPECT_EQ(sampled.total.global_sectors, all.total.global_sectors);
  EXPECT_EQ(sampled.minimum_bytes, all.minimum_bytes);
}

TEST(CountSample, BlocksThatWaitForOthersAllRun) {
  const KernelCounts sampled = count(R"(if (threadIdx.x != 0) return;
  atomicAdd(words, 1);
  while (*(volatile int*)words < 40) {})",
                                     {40}, {32}, true);
  EXPECT_EQ(sampled.blocks_run, 40);
  EXPECT_EQ(sampled.total.atomics, 40);
}

TEST(CountSample, BlocksThatWaitWithinThemselvesAreSampled) {
  const KernelCounts sampled = count(R"(__shared__ volatile int ready;
  if (threadIdx.x == 0) ready = 0;
  __syncthreads();
  if (threadIdx.x == 32) ready = 1;
  if (threadIdx.x < 32) while (ready == 0) {}
  c[blockIdx.x * 64 + threadIdx.x] = 1;)",
                                     {400}, {64}, true);
  EXPECT_EQ(sampled.blocks_run, 16);
}

TEST(CountSample, WhatBlocksInARowReadTogether) {
  // 32 blocks of a row read one panel in common, and a panel each that all rows read.
  constexpr const char* kPanels = R"(c[blockIdx.x * 64 + threadIdx.x] =
      a[blockIdx.x / 32 * 64 + threadIdx.x] + b[blockIdx.x % 32 * 64 + threadIdx.x];)";
  for (const bool sample : {false, true}) {
    const std::vector<double> shares = count(kPanels, {256}, {64}, sample).shared_reads;
    ASSERT_EQ(shares.size(), 9);
    EXPECT_DOUBLE_EQ(shares[0], 1);
    EXPECT_DOUBLE_EQ(shares[1], 3.0 / 4);
    EXPECT_DOUBLE_EQ(shares[5], 33.0 / 64);
    EXPECT_DOUBLE_EQ(shares[8], (8 + 32) / 512.0);
  }
}

TEST(CountSample, BlocksInARowThatOverlap) {
  // Each reads some sectors from its own on: side by side, or every second element of them.
  for (const int step : {1, 2}) {
    const std::string kernel = fmt::format(
        "c[blockIdx.x * 32 + threadIdx.x] = a[blockIdx.x * 8 + threadIdx.x * {}];", step);
    constexpr int kBlocks = 250;
    const int own = 4 * step;
    for (const bool sample : {false, true}) {
      const std::vector<double> shares = count(kernel, {kBlocks}, {32}, sample).shared_reads;
      ASSERT_EQ(shares.size(), 8);
      for (int k = 0; k < 8; ++k) {
        const int rows = (kBlocks + (1 << k) - 1) >> k;
        EXPECT_DOUBLE_EQ(shares[static_cast<std::size_t>(k)],
                         static_cast<double>(kBlocks + rows * (own - 1)) / (kBlocks * own));
      }
    }
  }
}

TEST(CountSample, MemoryOfBlocksThatDidNotRunStays) {
  Bench bench("extern \"C\" __global__ void k(int* p) { p[blockIdx.x] = 1; }",
              {.count = true, .sample = true});
  const std::uint64_t p = bench.upload(std::vector<int>(1000, 7));
  bench.run({1000}, {32}, 0, p);
  const std::vector<int> values = bench.download<int>(p, 1000);
  EXPECT_EQ(std::count(values.begin(), values.end(), 1), 16);
  EXPECT_EQ(std::count(values.begin(), values.end(), 7), 984);
  EXPECT_EQ(values.front(), 1);
  EXPECT_EQ(values.back(), 1);
}

}  // namespace
}  // namespace braid::cpu_test
