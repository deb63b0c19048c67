// Kernels that copy by the async proxy: bulk and tensor copies, mbarriers and bulk groups.

#include <bit>

#include "sanitizer/kernels.h"

namespace braid::testing {

namespace {

// On one line: the numbers of those that follow stay.
constexpr const char* kMacros =
    "\n"
    "typedef unsigned long long u64; struct alignas(64) Map { char bytes[128]; };"
    "__device__ inline unsigned at(const void* p) { return __cvta_generic_to_shared(p); }\n"
    "#define INIT(bar, n) asm volatile(\"mbarrier.init.shared.b64 [%0], %1;\" :: \"r\"(at(bar)), "
    "\"r\"(n) : \"memory\")\n"
    "#define FENCE() asm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\")\n"
    "#define EXPECT(bar, n) asm volatile(\"mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;\" :: "
    "\"r\"(at(bar)), \"r\"(n) : \"memory\")\n"
    "#define ARRIVE(bar) asm volatile(\"mbarrier.arrive.shared.b64 _, [%0];\" :: \"r\"(at(bar)) : "
    "\"memory\")\n"
    "#define WAIT(bar, parity) for (int done = 0; done == 0;) asm volatile(\"{ .reg .pred p; "
    "mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }\" : \"=r\"(done) : "
    "\"r\"(at(bar)), \"r\"(parity) : \"memory\")\n"
    "#define LOAD(to, map, x, y, bar) asm "
    "volatile(\"cp.async.bulk.tensor.2d.shared::cluster.global."
    "mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];\" :: \"r\"(at(to)), \"l\"(&map), "
    "\"r\"(x), \"r\"(y), \"r\"(at(bar)) : \"memory\")\n"
    "#define STORE(map, x, y, from) asm volatile(\"cp.async.bulk.tensor.2d.global.shared::cta."
    "bulk_group [%0, {%1, %2}], [%3];\" :: \"l\"(&map), \"r\"(x), \"r\"(y), \"r\"(at(from)) : "
    "\"memory\")\n"
    "#define COPY_IN(to, from, n, bar) asm volatile(\"cp.async.bulk.shared::cluster.global."
    "mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];\" :: \"r\"(at(to)), \"l\"(from), \"r\"(n), "
    "\"r\"(at(bar)) : \"memory\")\n"
    "#define COPY_OUT(to, from, n) asm volatile(\"cp.async.bulk.global.shared::cta.bulk_group "
    "[%0], "
    "[%1], %2;\" :: \"l\"(to), \"r\"(at(from)), \"r\"(n) : \"memory\")\n"
    "#define COMMIT() asm volatile(\"cp.async.bulk.commit_group;\" ::: \"memory\")\n"
    "#define DRAIN(n) asm volatile(\"cp.async.bulk.wait_group %0;\" :: \"n\"(n) : \"memory\")\n"
    "#define DRAIN_READS(n) asm volatile(\"cp.async.bulk.wait_group.read %0;\" :: \"n\"(n) : "
    "\"memory\")\n";

KernelCase on_hopper(KernelCase kernel) {
  kernel.source = kMacros + kernel.source;
  kernel.target = "sm_90a";
  return kernel;
}

TensorMap floats(std::uint64_t columns, std::uint64_t rows, std::uint32_t box_columns,
                 std::uint32_t box_rows) {
  TensorMap map;
  map.type = TensorMap::Type::kF32;
  map.rank = 2;
  map.dims = {columns, rows};
  map.strides = {columns * sizeof(float)};
  map.box = {box_columns, box_rows};
  return map;
}

/// Tiles of 32 x 32, some of which extend beyond the matrix of 72 x 40.
KernelCase tensor_transpose() {
  return on_hopper({"tensor_transpose",
                    R"(
extern "C" __global__ void k(const __grid_constant__ Map in, const __grid_constant__ Map out) {
  __shared__ alignas(128) float tile[32][32];
  __shared__ alignas(128) float turned[32][32];
  __shared__ alignas(8) u64 full;
  const int x = blockIdx.x * 32, y = blockIdx.y * 32;
  if (threadIdx.x == 0) {
    INIT(&full, 1);
    FENCE();
    EXPECT(&full, 4096);
    LOAD(tile, in, x, y, &full);
  }
  __syncthreads();
#if BUG == 4
  WAIT(&full, 1);  // finds 4
#elif BUG != 2
  WAIT(&full, 0);
#endif
  for (int i = threadIdx.x; i < 1024; i += 128) {
    turned[i % 32][i / 32] = tile[i / 32][i % 32];  // finds 2
  }
#if BUG != 1
  FENCE();
#endif
#if BUG != 5
  __syncthreads();
#endif
  if (threadIdx.x == 0) {
    STORE(out, y, x, turned);  // finds 1 // finds 3 // finds 5
    COMMIT();
#if BUG != 3
    DRAIN_READS(0);
#endif
  }
}
)",
                    {3, 2},
                    {128},
                    {tensor_map(0, floats(72, 40, 32, 32)), tensor_map(1, floats(40, 72, 32, 32))},
                    [] {
                      return Buffers{random_floats(72 * 40), zeros(72 * 40)};
                    },
                    [](Buffers& b) {
                      for (std::size_t i = 0; i < 72 * 40; ++i) {
                        b[1][i % 72 * 40 + i / 72] = b[0][i];
                      }
                    },
                    {"proxy", "race", "unfinished", "deadlock", "race"}});
}

/// One warp copies rows into a ring of two, four others sum them.
KernelCase bulk_ring() {
  return on_hopper({"bulk_ring",
                    R"(
extern "C" __global__ void k(const float* x, float* out) {
  __shared__ alignas(128) float ring[2][128], spare[128];
  __shared__ alignas(8) u64 full[2], empty[2];
  if (threadIdx.x == 0) {
    for (int s = 0; s < 2; ++s) {
      INIT(&full[s], 1);
      INIT(&empty[s], 128);
    }
    FENCE();
  }
  __syncthreads();
  if (threadIdx.x >= 128) {
    if (threadIdx.x != 128) return;
    for (int row = 0; row < 6; ++row) {
      const int s = row % 2;
#if BUG != 1
      WAIT(&empty[s], (row / 2 + 1) % 2);
#endif
#if BUG == 3
      EXPECT(&full[s], 528);
#else
      EXPECT(&full[s], 512);
#endif
#if BUG == 4
      COPY_IN(ring[0], x + row * 128, 512, &full[s]);  // finds 4
#else
      COPY_IN(ring[s], x + row * 128, 512, &full[s]);  // finds 1 // finds 2
#endif
    }
#if BUG == 6
    COPY_IN(ring[0], x, 512, &full[0]);  // finds 6
#elif BUG == 7
    COPY_IN(spare, x, 512, &full[0]);  // finds 7
#endif
    return;
  }
  float sum = 0;
  for (int row = 0; row < 6; ++row) {
    const int s = row % 2;
#if BUG == 5
    WAIT(&full[0], row / 2 % 2);
#else
    WAIT(&full[s], row / 2 % 2);  // finds 3
#endif
#if BUG == 2
    ARRIVE(&empty[s]);
#endif
    sum += ring[s][threadIdx.x];  // finds 1 // finds 2 // finds 4 // finds 5
#if BUG != 2
    ARRIVE(&empty[s]);
#endif
  }
  out[threadIdx.x] = sum;
}
)",
                    {1},
                    {160},
                    {buffer(0), output(1)},
                    [] {
                      return Buffers{random_floats(6 * 128), zeros(128)};
                    },
                    [](Buffers& b) {
                      for (std::size_t i = 0; i < 6 * 128; ++i) b[1][i % 128] += b[0][i];
                    },
                    {"race", "race", "deadlock", "race", "race", "race", "unfinished"}});
}

/// A tile that is written and copied out again and again, by a thread that fences for all.
KernelCase bulk_store() {
  return on_hopper({"bulk_store",
                    R"(
extern "C" __global__ void k(float* out, float* last) {
  __shared__ alignas(128) float tile[128];
  for (int row = 0; row < 4; ++row) {
    tile[threadIdx.x] = row * 1000 + threadIdx.x;  // finds 1 // finds 2
    __syncthreads();
    if (threadIdx.x == 0) {
#if BUG != 3
      FENCE();
#endif
      COPY_OUT(out + row * 128, tile, 512);  // finds 3
      COMMIT();
#if BUG != 1 && BUG != 2
      DRAIN_READS(0);
#endif
    }
#if BUG == 2
    if (threadIdx.x == 1) DRAIN_READS(0);
#endif
    __syncthreads();
  }
  if (threadIdx.x != 0) return;
#if BUG == 4
  DRAIN_READS(0);
#else
  DRAIN(0);
#endif
  *last = out[511];  // finds 4
}
)",
                    {1},
                    {128},
                    {buffer(0), output(1)},
                    [] {
                      return Buffers{zeros(512), {0}};
                    },
                    [](Buffers& b) {
                      for (std::size_t i = 0; i < 512; ++i) {
                        b[0][i] = static_cast<float>(i / 128 * 1000 + i % 128);
                      }
                      b[1][0] = b[0][511];
                    },
                    {"race", "race", "proxy", "race"}});
}

/// Warps that each have all of a result, and bring all of it to one place.
KernelCase bulk_replicas() {
  KernelCase kernel = on_hopper({"bulk_replicas",
                                 R"(
extern "C" __global__ void k(const float* x, float* out) {
  __shared__ alignas(128) float tile[2][128];
  __shared__ alignas(128) float copy[128];
  __shared__ u64 full;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) INIT(&full, 2);
  for (int e = lane; e < 128; e += 32) tile[warp][e] = x[e];
#if BUG == 1
  if (lane == 7) tile[warp][7] += warp;
#endif
  FENCE();
  __syncthreads();
  if (lane == 0) {
#if BUG == 2
    EXPECT(&full, warp == 0 ? 512 : 256);
    COPY_IN(copy, x + warp * 64, warp == 0 ? 512 : 256, &full);  // finds 2
#else
    EXPECT(&full, 512);
    COPY_IN(copy, x, 512, &full);
#endif
  }
#if BUG != 3
  WAIT(&full, 0);
#endif
  if (lane == 0) {
    tile[warp][5] = copy[5];  // finds 3
    FENCE();
    COPY_OUT(out, tile[warp], 512);  // finds 1
    COMMIT();
    DRAIN(0);
  }
}
)",
                                 {1},
                                 {64},
                                 {buffer(0), output(1)},
                                 [] {
                                   return Buffers{random_floats(192), zeros(128)};
                                 },
                                 [](Buffers& b) {
                                   for (std::size_t i = 0; i < 128; ++i) b[1][i] = b[0][i];
                                 },
                                 {"race", "race", "race"}});
  kernel.note = "write of the value that was written there";
  return kernel;
}

/// One block of two sends a tile to both.
KernelCase multicast_pair() {
  KernelCase kernel =
      on_hopper({"multicast_pair",
                 R"(
#define MEET() asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory")
extern "C" __global__ void k(const __grid_constant__ Map in, float* out) {
  __shared__ alignas(128) float tile[8][32];
  __shared__ alignas(8) u64 full;
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) {
    INIT(&full, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    EXPECT(&full, 1024);
  }
#if BUG == 2
  __syncthreads();
#else
  MEET();
#endif
  if (threadIdx.x == 0 && rank == 0) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" :: "r"(at(tile)), "l"(&in), "r"(0), "r"(int(blockIdx.x / 2 * 8)), "r"(at(&full)), "h"((short)3) : "memory");  // finds 2
  }
#if BUG == 1
  if (rank == 0)
#endif
  WAIT(&full, 0);
  out[blockIdx.x * 256 + threadIdx.x] = tile[threadIdx.x / 32][threadIdx.x % 32] + rank;  // finds 1
  MEET();
}
)",
                 {4},
                 {256},
                 {tensor_map(0, floats(32, 16, 32, 8)), output(1)},
                 [] {
                   return Buffers{random_floats(512), zeros(1024)};
                 },
                 [](Buffers& b) {
                   for (std::size_t i = 0; i < 1024; ++i) {
                     const std::size_t block = i / 256;
                     b[1][i] = b[0][block / 2 * 256 + i % 256] + static_cast<float>(block % 2);
                   }
                 },
                 {"race", "race"}});
  kernel.cluster = {2};
  return kernel;
}

/// So many bf16, two in the bits of a float.
std::vector<float> bfloat_pairs(std::size_t count, unsigned seed) {
  std::vector<float> pairs = random_floats(count / 2, seed);
  const std::vector<float> low = random_floats(count / 2, seed + 100);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto high = std::bit_cast<std::uint32_t>(pairs[i]) & 0xffff0000U;
    pairs[i] = std::bit_cast<float>(high | std::bit_cast<std::uint32_t>(low[i]) >> 16U);
  }
  return pairs;
}
double bfloat(const std::vector<float>& pairs, std::size_t index) {
  const auto bits = std::bit_cast<std::uint32_t>(pairs[index / 2]);
  return std::bit_cast<float>(index % 2 == 0 ? bits << 16U : bits & 0xffff0000U);
}

/// 64 x 64 in K steps of 64 by a ring of two: tensor copies with a swizzle of 128 bytes, ldmatrix
/// and mma.sync. One warp copies, four multiply.
KernelCase tensor_gemm() {
  constexpr std::size_t kDepth = 256;
  TensorMap map;
  map.type = TensorMap::Type::kBf16;
  map.swizzle = TensorMap::Swizzle::k128;
  map.rank = 2;
  map.dims = {kDepth, 64};
  map.strides = {kDepth * 2};
  map.box = {64, 64};
  return on_hopper(
      {"tensor_gemm",
       R"(
#define LDMATRIX(r, base, row, chunk) asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at(base) + (row) * 128 + (((chunk) ^ ((row) & 7)) << 4)) : "memory")
#define MMA(d, a, b0, b1) asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
extern "C" __global__ void k(const __grid_constant__ Map a, const __grid_constant__ Map b, float* out) {
  __shared__ alignas(1024) unsigned short as[2][64 * 64], bs[2][64 * 64];
  __shared__ alignas(8) u64 full[2], empty[2];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    for (int s = 0; s < 2; ++s) {
      INIT(&full[s], 1);
      INIT(&empty[s], 4);
    }
    FENCE();
  }
  __syncthreads();
  if (warp == 4) {
    if (lane != 0) return;
    for (int step = 0; step < 4; ++step) {
      const int s = step % 2;
#if BUG != 2
      WAIT(&empty[s], (step / 2 + 1) % 2);
#endif
      EXPECT(&full[s], 16384);
      LOAD(as[s], a, step * 64, 0, &full[s]);  // finds 2
      LOAD(bs[s], b, step * 64, 0, &full[s]);  // finds 2
    }
    return;
  }
  float sum[8][4] = {};
  for (int step = 0; step < 4; ++step) {
    const int s = step % 2;
#if BUG == 1
    if (step != 3)
#endif
    WAIT(&full[s], step / 2 % 2);
    for (int kk = 0; kk < 4; ++kk) {
      unsigned ar[4];
      LDMATRIX(ar, as[s], warp * 16 + lane % 16, kk * 2 + lane / 16);  // finds 1 // finds 2
      for (int n = 0; n < 4; ++n) {
        unsigned br[4];
        LDMATRIX(br, bs[s], n * 16 + lane % 8 + lane / 16 * 8, kk * 2 + lane / 8 % 2);  // finds 1 // finds 2
        MMA(sum[2 * n], ar, br[0], br[1]);
        MMA(sum[2 * n + 1], ar, br[2], br[3]);
      }
    }
    __syncwarp();
    if (lane == 0) ARRIVE(&empty[s]);
  }
  for (int n = 0; n < 8; ++n) {
    for (int i = 0; i < 4; ++i) {
      const int row = warp * 16 + lane / 4 + i / 2 * 8;
      out[row * 64 + n * 8 + lane % 4 * 2 + i % 2] = sum[n][i];
    }
  }
}
)",
       {1},
       {160},
       {tensor_map(0, map), tensor_map(1, map), output(2)},
       [] {
         return Buffers{bfloat_pairs(64 * kDepth, 1), bfloat_pairs(64 * kDepth, 2), zeros(4096)};
       },
       [](Buffers& b) {
         for (std::size_t i = 0; i < 4096; ++i) {
           double sum = 0;
           for (std::size_t k = 0; k < kDepth; ++k) {
             sum += bfloat(b[0], i / 64 * kDepth + k) * bfloat(b[1], i % 64 * kDepth + k);
           }
           b[2][i] = static_cast<float>(sum);
         }
       },
       {"race", "race"}});
}

/// The copy releases by itself, so its thread's arrival, behind it, need not; nor need a wait
/// acquire in front of a fence.
KernelCase relaxed_arrival() {
  return on_hopper({"relaxed_arrival",
                    R"(
extern "C" __global__ void k(const float* x, float* out) {
  __shared__ __align__(128) float tile[256];
  __shared__ unsigned long long full[1];
  if (threadIdx.x == 0) INIT(full, 1);
  __syncthreads();
  if (threadIdx.x == 0) {
    COPY_IN(tile, x, 1024, full);  // finds 1 // finds 2
#if BUG != 2
    asm volatile("mbarrier.arrive.expect_tx.relaxed.cta.shared::cta.b64 _, [%0], 1024;"
                 :: "r"(at(full)) : "memory");
#endif
  }
#if BUG != 2
  for (int done = 0; done == 0;) {
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 p, [%1], 0; "
                 "selp.b32 %0, 1, 0, p; }" : "=r"(done) : "r"(at(full)) : "memory");
  }
#endif
#if BUG != 1
  asm volatile("fence.acq_rel.cta;" ::: "memory");
#endif
  out[threadIdx.x] = tile[threadIdx.x];  // finds 1 // finds 2
}
)",
                    {1},
                    {256},
                    {buffer(0), output(1)},
                    [] {
                      return Buffers{random_floats(256), zeros(256)};
                    },
                    [](Buffers& b) { b[1] = b[0]; },
                    {"race", "race"}});
}

}  // namespace

std::vector<KernelCase> async_kernels() {
  return {tensor_transpose(), bulk_ring(),   bulk_store(),     bulk_replicas(),
          multicast_pair(),   tensor_gemm(), relaxed_arrival()};
}

}  // namespace braid::testing
