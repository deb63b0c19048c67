#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <numeric>

#include "cpu/cpu_harness.h"
#include "cpu/semantics.h"

namespace braid::cpu_test {
namespace {

TEST(Warp, Shuffles) {
  Bench bench(R"(extern "C" __global__ void k(int* o, int n) { int i = threadIdx.x, x = i * 3 + 1;
    int* p = o + i * 8; p[0] = __shfl_xor_sync(-1, x, 5); p[1] = __shfl_up_sync(-1, x, 3); p[2] = __shfl_down_sync(-1, x, 2, 8);
    p[3] = __shfl_sync(-1, x, (i * 7 + n) & 31); p[4] = __shfl_sync(-1, x, 2, 16); p[5] = __shfl_up_sync(-1, x, n, 16);
    int s = x; for (int d = 16; d; d >>= 1) s += __shfl_xor_sync(-1, s, d); p[6] = s;
    p[7] = __reduce_max_sync(-1, x ^ 21); })");
  const int n = 3;
  const std::uint64_t out = bench.upload(std::vector<int>(64 * 8));
  bench.run({1}, {64}, 0, out, n);
  const auto got = bench.download<int>(out, 64 * 8);
  const auto x = [](int i) { return i * 3 + 1; };
  for (int i = 0; i < 64; ++i) {
    const int w = i & ~31;
    const int l = i & 31;
    int sum = 0;
    unsigned top = 0;
    for (int j = 0; j < 32; ++j) {
      sum += x(w + j);
      top = std::max(top, static_cast<unsigned>(x(w + j) ^ 21));
    }
    const int want[] = {x(w + (l ^ 5)),
                        l >= 3 ? x(i - 3) : x(i),
                        (l & 7) < 6 ? x(i + 2) : x(i),
                        x(w + ((i * 7 + n) & 31)),
                        x(w + (l & 16) + 2),
                        (l & 15) >= n ? x(i - n) : x(i),
                        sum,
                        static_cast<int>(top)};
    for (int k = 0; k < 8; ++k) EXPECT_EQ(got[i * 8 + k], want[k]) << "lane " << i << " part " << k;
  }
}

TEST(Warp, VotesAndMatch) {
  Bench bench(
      R"(extern "C" __global__ void k(unsigned* o) { int i = threadIdx.x; unsigned* p = o + i * 6;
    p[0] = __ballot_sync(-1, i % 3 == 0); p[1] = __all_sync(-1, i < 40); p[2] = __any_sync(-1, i == 35);
    p[3] = __match_any_sync(-1, i % 5); p[4] = 77; if (i & 1) p[4] = __activemask(); p[5] = __syncthreads_count(i % 7 == 0) + 1000 * __syncthreads_or(i == 63) + 10000 * __syncthreads_and(i < 63); })");
  const std::uint64_t out = bench.upload(std::vector<unsigned>(64 * 6));
  bench.run({1}, {64}, 0, out);
  const auto got = bench.download<unsigned>(out, 64 * 6);
  for (int i = 0; i < 64; ++i) {
    const int w = i & ~31;
    unsigned ballot = 0;
    unsigned match = 0;
    for (int j = 0; j < 32; ++j) {
      ballot |= static_cast<unsigned>((w + j) % 3 == 0) << j;
      match |= static_cast<unsigned>((w + j) % 5 == i % 5) << j;
    }
    const unsigned want[] = {ballot,   w == 0, w == 32, match, (i & 1) ? 0xaaaaaaaaU : 77U,
                             10 + 1000};
    for (int k = 0; k < 6; ++k)
      EXPECT_EQ(got[i * 6 + k], want[k]) << "thread " << i << " part " << k;
  }
}

TEST(Warp, SharedTransposeAndDynamicShared) {
  Bench bench(
      R"(extern __shared__ float dyn[]; extern "C" __global__ void k(float* o, const float* a, int n) {
    __shared__ float t[32][33]; int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32;
    for (int j = threadIdx.y; j < 32; j += blockDim.y) t[j][threadIdx.x] = a[(y + j) * n + x];
    int id = threadIdx.y * 32 + threadIdx.x; dyn[id] = id; __syncthreads();
    int tx = blockIdx.y * 32 + threadIdx.x; float extra = dyn[blockDim.y * 32 - 1 - id];
    for (int j = threadIdx.y; j < 32; j += blockDim.y) o[(blockIdx.x * 32 + j) * n + tx] = t[threadIdx.x][j] + extra; })");
  const int n = 96;
  std::vector<float> a(n * n);
  std::iota(a.begin(), a.end(), 0.0F);
  const std::uint64_t out = bench.upload(std::vector<float>(n * n));
  bench.run({3, 3}, {32, 8}, 1024, out, bench.upload(a), n);
  const auto got = bench.download<float>(out, a.size());
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      const int id = (i % 32 % 8) * 32 + j % 32;
      ASSERT_EQ(got[i * n + j], a[j * n + i] + static_cast<float>(255 - id)) << i << " " << j;
    }
  }
}

TEST(Warp, ThreeDimensionalGridsAndBlocks) {
  Bench bench(R"(extern "C" __global__ void k(unsigned* o) {
    unsigned b = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    unsigned t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    o[b * blockDim.x * blockDim.y * blockDim.z + t] = b * 1000 + threadIdx.x * 100 + threadIdx.y * 10 + threadIdx.z; })");
  for (const Dim3 block : {Dim3{5, 3, 4}, Dim3{32, 2, 3}, Dim3{64, 2, 1}}) {
    const std::size_t threads = block.count();
    const std::uint64_t out = bench.upload(std::vector<unsigned>(24 * threads));
    bench.run({2, 3, 4}, block, 0, out);
    const auto got = bench.download<unsigned>(out, 24 * threads);
    for (unsigned b = 0; b < 24; ++b) {
      for (unsigned t = 0; t < threads; ++t) {
        ASSERT_EQ(got[b * threads + t], b * 1000 + t % block.x * 100 + t / block.x % block.y * 10 +
                                            t / block.x / block.y);
      }
    }
  }
}

TEST(Warp, Atomics) {
  Bench bench(R"(extern "C" __global__ void k(int* o, float* f, unsigned long long* u) {
    __shared__ int h[16]; int i = blockIdx.x * blockDim.x + threadIdx.x; if (threadIdx.x < 16) h[threadIdx.x] = 0; __syncthreads();
    atomicAdd(&h[i % 16], 1); __syncthreads(); if (threadIdx.x < 16) atomicAdd(o + threadIdx.x, h[threadIdx.x]);
    atomicMax(o + 16, i); atomicMin(o + 17, -i); atomicXor((unsigned*)o + 18, 1u << (i & 31)); atomicAdd(f, 0.5f);
    atomicAdd(u, 1ull << 33); atomicInc((unsigned*)o + 19, 9); int old = atomicAdd(o + 20, 1); atomicOr(u + 1 + old / 64, 1ull << (old & 63));
    int seen = o[21]; int now; do { now = seen; seen = atomicCAS(o + 21, now, now + 2); } while (seen != now); })");
  const std::uint64_t o = bench.upload(std::vector<int>(32));
  const std::uint64_t fl = bench.upload(std::vector<float>(1));
  const std::uint64_t u = bench.upload(std::vector<std::uint64_t>(1 + 32));
  bench.run({8}, {256}, 0, o, fl, u);
  const auto got = bench.download<int>(o, 32);
  for (int i = 0; i < 16; ++i) EXPECT_EQ(got[i], 128);
  EXPECT_EQ(got[16], 2047);
  EXPECT_EQ(got[17], -2047);
  EXPECT_EQ(got[18], 0);
  EXPECT_EQ(got[19], 2048 % 10);
  EXPECT_EQ(got[21], 4096);
  EXPECT_EQ(bench.download<float>(fl, 1)[0], 1024.0F);
  const auto wide = bench.download<std::uint64_t>(u, 33);
  EXPECT_EQ(wide[0], 2048ULL << 33);
  for (int i = 1; i < 33; ++i) EXPECT_EQ(wide[i], ~0ULL);
}

TEST(Warp, VectorAndNarrowAccess) {
  Bench bench(
      R"(extern "C" __global__ void k(int4* o, const int4* a, unsigned char* b, const short* s, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; int4 v = a[i]; int4 w = a[(i * 5) % n];
    o[i] = make_int4(v.x + w.w, v.y - w.z, v.z ^ w.y, v.w + w.x); b[i] = s[i] >> 3; b[n + (i * 7) % n] = s[(i * 3) % n]; })");
  const int n = 997;
  std::vector<std::array<int, 4>> a(n);
  std::vector<short> s(n);
  for (int i = 0; i < n; ++i) {
    a[i] = {i, i * 2, i * 3, -i};
    s[i] = static_cast<short>(i * 37 - 9000);
  }
  const std::uint64_t out = bench.upload(std::vector<std::array<int, 4>>(n));
  const std::uint64_t bytes = bench.upload(std::vector<std::uint8_t>(2 * n));
  bench.run({8}, {128}, 0, out, bench.upload(a), bytes, bench.upload(s), n);
  const auto got = bench.download<std::array<int, 4>>(out, n);
  const auto narrow = bench.download<std::uint8_t>(bytes, 2 * n);
  for (int i = 0; i < n; ++i) {
    const auto& v = a[i];
    const auto& w = a[(i * 5) % n];
    const std::array<int, 4> want = {v[0] + w[3], v[1] - w[2], v[2] ^ w[1], v[3] + w[0]};
    ASSERT_EQ(got[i], want) << i;
    ASSERT_EQ(narrow[i], static_cast<std::uint8_t>(s[i] >> 3));
    ASSERT_EQ(narrow[n + (i * 7) % n], static_cast<std::uint8_t>(s[(i * 3) % n]));
  }
}

// Each lane moves its vector's elements by one place; all lanes, then those with an odd number,
// then all of one warp and none of the other.
TEST(Warp, ConsecutiveVectorsOfEveryWidth) {
  for (const unsigned bytes : {1U, 2U, 4U, 8U}) {
    for (unsigned count = 2; count <= 8 && count * bytes <= 32; count *= 2) {
      const unsigned bits = bytes * 8;
      std::string in, out;
      for (unsigned e = 0; e < count; ++e) {
        in += fmt::format("{}%v{}", e == 0 ? "" : ", ", e);
        out += fmt::format("{}%v{}", e == 0 ? "" : ", ", (e + 1) % count);
      }
      Bench bench = Bench::from_ptx(fmt::format(
          R"(.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 k_o, .param .u64 k_a) {{
.reg .pred %p<3>; .reg .b32 %r<4>; .reg .b64 %d<6>; .reg .b{4} %v<8>;
ld.param.u64 %d1, [k_o]; ld.param.u64 %d2, [k_a];
mov.u32 %r1, %tid.x; mul.wide.u32 %d3, %r1, {0};
add.s64 %d1, %d1, %d3; add.s64 %d2, %d2, %d3;
ld.global.v{1}.b{5} {{{2}}}, [%d2]; st.global.v{1}.b{5} [%d1], {{{3}}};
and.b32 %r2, %r1, 1; setp.ne.s32 %p1, %r2, 0;
@%p1 ld.global.v{1}.b{5} {{{2}}}, [%d2+{6}]; @%p1 st.global.v{1}.b{5} [%d1+{6}], {{{3}}};
setp.lt.s32 %p2, %r1, 32;
@%p2 ld.global.v{1}.b{5} {{{2}}}, [%d2+{7}]; @%p2 st.global.v{1}.b{5} [%d1+{7}], {{{3}}};
ret; }})",
          count * bytes, count, in, out, std::max(bits, 16U), bits, 64 * count * bytes,
          128 * count * bytes));
      const std::size_t size = std::size_t{192} * count * bytes;
      std::vector<std::uint8_t> a(size);
      for (std::size_t i = 0; i < size; ++i) a[i] = static_cast<std::uint8_t>(i * 37 + i / 256);
      const std::uint64_t to = bench.upload(std::vector<std::uint8_t>(size));
      bench.run({1}, {64}, 0, to, bench.upload(a));
      const auto got = bench.download<std::uint8_t>(to, size);
      for (std::size_t i = 0; i < size; ++i) {
        const std::size_t vector = i / (count * bytes);
        const std::size_t from =
            vector * count * bytes + (i + bytes) % (std::size_t{count} * bytes);
        const bool stored = vector < 64 || (vector < 128 ? vector % 2 != 0 : vector < 160);
        ASSERT_EQ(got[i], stored ? a[from] : 0) << bits << " bits, " << count << ", byte " << i;
      }
    }
  }
}

// The lanes above the number of their block store at one place: one of them stays, or what was
// there.
TEST(Warp, GuardedStoresAtOnePlace) {
  Bench bench = Bench::from_ptx(R"(.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 k_o) {
.reg .pred %p1; .reg .b32 %r<4>; .reg .b64 %d<3>;
ld.param.u64 %d1, [k_o]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;
mul.wide.u32 %d2, %r2, 4; add.s64 %d1, %d1, %d2; setp.gt.s32 %p1, %r1, %r2;
@%p1 st.global.u32 [%d1], %r1;
ret; })");
  const std::uint64_t to = bench.upload(std::vector<std::uint32_t>(32, 77));
  bench.run({32}, {32}, 0, to);
  const auto got = bench.download<std::uint32_t>(to, 32);
  for (std::uint32_t block = 0; block < 31; ++block) {
    EXPECT_GT(got[block], block);
    EXPECT_LT(got[block], 32U) << block;
  }
  EXPECT_EQ(got[31], 77U);
}

// A product of even numbers may have all its zeros at the end and yet not be zero.
TEST(Warp, TopBitOfAUniformValue) {
  Bench bench = Bench::from_ptx(R"(.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 k_o, .param .u64 k_x) {
.reg .b32 %r1; .reg .b64 %d<8>;
ld.param.u64 %d1, [k_o]; ld.param.u64 %d2, [k_x];
mov.u32 %r1, %tid.x; mul.wide.u32 %d3, %r1, 8; add.s64 %d1, %d1, %d3;
shl.b64 %d4, %d2, 24; shl.b64 %d5, %d4, 24; shl.b64 %d6, %d5, 15;
st.global.u64 [%d1], %d6; ret; })");
  const std::uint64_t out = bench.upload(std::vector<std::uint64_t>(32));
  const std::uint64_t one = 1;
  bench.run({1}, {32}, 0, out, one);
  for (const std::uint64_t got : bench.download<std::uint64_t>(out, 32)) {
    EXPECT_EQ(got, std::uint64_t{1} << 63U);
  }
}

TEST(Warp, ConstantAndGlobalVariables) {
  Bench bench(
      R"(__constant__ float c[4] = {1.5f, 2.5f, -3.f, 0.25f}; __device__ int g = 40; __device__ int* q = &g;
    extern "C" __global__ void k(float* o) { int i = threadIdx.x; o[i] = c[i & 3] + g; if (i == 0) atomicAdd(q, 2); })");
  const std::uint64_t out = bench.upload(std::vector<float>(32));
  bench.run({1}, {32}, 0, out);
  bench.run({1}, {32}, 0, out);
  const float c[] = {1.5F, 2.5F, -3.F, 0.25F};
  const auto got = bench.download<float>(out, 32);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(got[i], c[i & 3] + 42);
}

/// A 64 x 64 tile GEMM with a ring of three stages, as the code generator writes them.
TEST(Warp, GemmWithMmaLdmatrixAndCpAsync) {
  Bench bench(R"(
typedef unsigned short u16; typedef unsigned u32;
__device__ __forceinline__ u32 sm(const void* p) { return (u32)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void cp16(u32 d, const void* s, bool p) { int n = p ? 16 : 0; asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(d), "l"(s), "r"(n)); }
extern "C" __global__ __launch_bounds__(128) void k(const u16* __restrict__ A, const u16* __restrict__ B, float* C, int N, int K) {
  extern __shared__ __align__(16) u16 smem[]; u16 *sa = smem, *sb = smem + 3 * 64 * 32;
  int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5, wm = (warp >> 1) * 32, wn = (warp & 1) * 32, bm = blockIdx.y * 64, bn = blockIdx.x * 64;
  float acc[2][4][4] = {};
  auto load = [&](int st, int k0) {
    for (int i = 0; i < 2; i++) { int c = tid + i * 128, r = c >> 2, q = c & 3, s = q ^ ((r >> 1) & 3); cp16(sm(sa + st * 2048 + r * 32 + s * 8), A + (size_t)(bm + r) * K + k0 + q * 8, k0 < K); }
    for (int i = 0; i < 2; i++) { int c = tid + i * 128, r = c >> 3, q = c & 7, s = q ^ (r & 7); cp16(sm(sb + st * 2048 + r * 64 + s * 8), B + (size_t)(k0 + r) * N + bn + q * 8, k0 < K); }
    asm volatile("cp.async.commit_group;"); };
  load(0, 0); load(1, 32); int st = 0;
  for (int k = 0; k < K; k += 32) {
    asm volatile("cp.async.wait_group 1;"); __syncthreads(); load((st + 2) % 3, k + 64);
#pragma unroll
    for (int kk = 0; kk < 32; kk += 16) { u32 a[2][4], b[4][2];
#pragma unroll
      for (int i = 0; i < 2; i++) { int r = wm + i * 16 + (lane & 15), q = (kk >> 3) + (lane >> 4);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(a[i][0]), "=r"(a[i][1]), "=r"(a[i][2]), "=r"(a[i][3]) : "r"(sm(sa + st * 2048 + r * 32 + (q ^ ((r >> 1) & 3)) * 8))); }
#pragma unroll
      for (int j = 0; j < 2; j++) { int r = kk + (lane & 15), q = (wn >> 3) + j * 2 + (lane >> 4);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(b[2 * j][0]), "=r"(b[2 * j][1]), "=r"(b[2 * j + 1][0]), "=r"(b[2 * j + 1][1]) : "r"(sm(sb + st * 2048 + r * 64 + (q ^ (r & 7)) * 8))); }
#pragma unroll
      for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
          asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+f"(acc[i][j][0]), "+f"(acc[i][j][1]), "+f"(acc[i][j][2]), "+f"(acc[i][j][3]) : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]), "r"(b[j][0]), "r"(b[j][1])); }
    st = (st + 1) % 3; }
  for (int i = 0; i < 2; i++) for (int j = 0; j < 4; j++) { int r = bm + wm + i * 16 + (lane >> 2), c = bn + wn + j * 8 + (lane & 3) * 2;
    C[(size_t)r * N + c] = acc[i][j][0]; C[(size_t)r * N + c + 1] = acc[i][j][1]; C[(size_t)(r + 8) * N + c] = acc[i][j][2]; C[(size_t)(r + 8) * N + c + 1] = acc[i][j][3]; } })");
  const int n = 128;
  const int k = 96;
  const auto bf = [](float x) {
    return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16);
  };
  std::vector<std::uint16_t> a(128 * k);
  std::vector<std::uint16_t> b(k * n);
  const auto va = [](int i) { return static_cast<float>(i * 7 % 13 - 6); };
  const auto vb = [](int i) { return static_cast<float>(i * 5 % 11 - 5); };
  for (int i = 0; i < 128 * k; ++i) a[i] = bf(va(i));
  for (int i = 0; i < k * n; ++i) b[i] = bf(vb(i));
  const std::uint64_t c = bench.upload(std::vector<float>(128 * n));
  bench.run({2, 2}, {128}, 3 * 2 * 64 * 32 * 2, bench.upload(a), bench.upload(b), c, n, k);
  const auto got = bench.download<float>(c, 128 * n);
  for (int i = 0; i < 128; ++i) {
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int q = 0; q < k; ++q) sum += va(i * k + q) * vb(q * n + j);
      ASSERT_EQ(got[i * n + j], sum) << i << " " << j;
    }
  }
}

/// The small shapes and f16, element by element against the layout tables of the PTX manual.
TEST(Warp, MmaShapesAndTypes) {
  Bench bench(
      R"(typedef unsigned u32; extern "C" __global__ void k(const u32* a, const u32* b, float* c, float* c8, u32* ch) {
    int l = threadIdx.x; float d[4] = {1, 2, 3, 4}; u32 h[2] = {0x3c003c00, 0x40004000};
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[l]), "r"(a[32 + l]), "r"(a[64 + l]), "r"(a[96 + l]), "r"(b[l]), "r"(b[32 + l]));
    for (int i = 0; i < 4; i++) c[i * 32 + l] = d[i]; for (int i = 0; i < 4; i++) d[i] = 0;
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[l]), "r"(a[32 + l]), "r"(b[l]));
    for (int i = 0; i < 4; i++) c8[i * 32 + l] = d[i];
    asm("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};" : "+r"(h[0]), "+r"(h[1]) : "r"(a[l]), "r"(a[32 + l]), "r"(a[64 + l]), "r"(a[96 + l]), "r"(b[l]), "r"(b[32 + l]));
    ch[l] = h[0]; ch[32 + l] = h[1]; })");
  float a[16][16];
  float b[16][8];
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j) a[i][j] = static_cast<float>((i * 3 + j * 5) % 9 - 4) * 0.5F;
    for (int j = 0; j < 8; ++j) b[i][j] = static_cast<float>((i * 7 + j * 2) % 7 - 3);
  }
  const auto half = [](float x) {
    using namespace semantics;
    return static_cast<u32>(encode(kF16, decode(kF32, std::bit_cast<u32>(x)), Mode::kNearest));
  };
  std::vector<std::uint32_t> fa(128);
  std::vector<std::uint32_t> fb(64);
  for (int l = 0; l < 32; ++l) {
    for (int r = 0; r < 4; ++r) {
      const int row = l / 4 + 8 * (r & 1);
      const int col = l % 4 * 2 + 8 * (r >> 1);
      fa[r * 32 + l] = half(a[row][col]) | half(a[row][col + 1]) << 16;
    }
    for (int r = 0; r < 2; ++r)
      fb[r * 32 + l] = half(b[l % 4 * 2 + 8 * r][l / 4]) | half(b[l % 4 * 2 + 8 * r + 1][l / 4])
                                                               << 16;
  }
  const std::uint64_t c = bench.upload(std::vector<float>(128));
  const std::uint64_t c8 = bench.upload(std::vector<float>(128));
  const std::uint64_t ch = bench.upload(std::vector<std::uint32_t>(64));
  bench.run({1}, {32}, 0, bench.upload(fa), bench.upload(fb), c, c8, ch);
  const auto got = bench.download<float>(c, 128);
  const auto got8 = bench.download<float>(c8, 128);
  const auto got_half = bench.download<std::uint32_t>(ch, 64);
  for (int l = 0; l < 32; ++l) {
    for (int r = 0; r < 4; ++r) {
      const int row = l / 4 + 8 * (r >> 1);
      const int col = l % 4 * 2 + (r & 1);
      float sum = 0;
      float sum8 = 0;
      for (int q = 0; q < 16; ++q) {
        sum += a[row][q] * b[q][col];
        if (q < 8) sum8 += a[row][q] * b[q][col];
      }
      EXPECT_EQ(got[r * 32 + l], sum + static_cast<float>(r + 1));
      EXPECT_EQ(got8[r * 32 + l], sum8);
      const auto bits = static_cast<std::uint16_t>(got_half[(r >> 1) * 32 + l] >> (16 * (r & 1)));
      EXPECT_EQ(semantics::to_double(semantics::kF16, bits),
                sum + static_cast<float>((r >> 1) + 1));
    }
  }
}

}  // namespace
}  // namespace braid::cpu_test
