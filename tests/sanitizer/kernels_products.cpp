// Products of matrices, by tiles in shared memory.

#include "sanitizer/kernels.h"

namespace braid::testing {

namespace {

/// Eighths from -1 to 1: a bfloat16 holds them, and sums of their products are exact.
std::vector<float> eighths(std::size_t count, std::size_t factor) {
  std::vector<float> result;
  for (std::size_t i = 0; i < count; ++i) {
    result.push_back((static_cast<float>(i * factor % 17) - 8) / 8);
  }
  return result;
}

/// Two bfloat16 to a word.
std::vector<float> to_bfloat16(const std::vector<float>& values) {
  std::vector<float> words;
  for (std::size_t i = 0; i < values.size(); i += 2) {
    const auto low = static_cast<std::uint32_t>(to_int(values[i])) >> 16U;
    const auto high = static_cast<std::uint32_t>(to_int(values[i + 1])) & 0xffff0000U;
    words.push_back(int_bits(static_cast<std::int32_t>(low | high)));
  }
  return words;
}

void matmul(const std::vector<float>& a, const std::vector<float>& b, std::vector<float>& c,
            std::size_t n, std::size_t k) {
  for (std::size_t i = 0; i < c.size(); ++i) {
    c[i] = 0;
    for (std::size_t j = 0; j < k; ++j) c[i] += a[i / n * k + j] * b[j * n + i % n];
  }
}

KernelCase mma_gemm() {
  return {"mma_gemm",
          R"(
#if BUG == 3
#define STRIDE 20
#else
#define STRIDE 24
#endif
__device__ unsigned shared_address(const void* p) {
  return (unsigned)__cvta_generic_to_shared(p);
}
// C (m x 16, float) = A (m x kk) * B (kk x 16), both bfloat16. A block does 32 rows, a warp 16.
extern "C" __global__ void k(const unsigned short* a, const unsigned short* b, float* c, int m, int kk) {
  __shared__ __align__(16) unsigned short left[32 * STRIDE];
  __shared__ __align__(16) unsigned short right[16 * STRIDE];
  const int t = threadIdx.x, lane = t % 32, warp = t / 32, row0 = blockIdx.x * 32;
  float sum[2][4] = {};
  for (int k0 = 0; k0 < kk; k0 += 16) {
    const int r = t / 2, half = t % 2 * 8;
    if (row0 + r < m) {
      *(uint4*)&left[r * STRIDE + half] = *(const uint4*)&a[(row0 + r) * kk + k0 + half];  // finds 3
#if BUG != 4
    } else {
      *(uint4*)&left[r * STRIDE + half] = make_uint4(0, 0, 0, 0);
#endif
    }
    if (t < 32) *(uint4*)&right[r * STRIDE + half] = *(const uint4*)&b[(k0 + r) * 16 + half];  // finds 1 // finds 2
#if BUG != 1
    __syncthreads();
#endif
    unsigned f[4];
    const unsigned from_a = shared_address(&left[(16 * warp + lane % 16) * STRIDE + lane / 16 * 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(f[0]), "=r"(f[1]), "=r"(f[2]), "=r"(f[3]) : "r"(from_a) : "memory");  // finds 4
    for (int n = 0; n < 2; ++n) {
      unsigned g[2];
      const unsigned from_b = shared_address(&right[lane % 16 * STRIDE + n * 8]);
      asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(g[0]), "=r"(g[1]) : "r"(from_b) : "memory");  // finds 1 // finds 2
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
          "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
          : "+f"(sum[n][0]), "+f"(sum[n][1]), "+f"(sum[n][2]), "+f"(sum[n][3])
          : "r"(f[0]), "r"(f[1]), "r"(f[2]), "r"(f[3]), "r"(g[0]), "r"(g[1]));
    }
#if BUG != 2
    __syncthreads();
#endif
  }
  for (int n = 0; n < 2; ++n) {
    for (int i = 0; i < 2; ++i) {
      const int row = row0 + 16 * warp + 8 * i + lane / 4;
      if (row < m) *(float2*)&c[row * 16 + 8 * n + lane % 4 * 2] = make_float2(sum[n][2 * i], sum[n][2 * i + 1]);
    }
  }
}
)",
          {2},
          {64},
          {buffer(0), buffer(1), output(2), scalar(56), scalar(48)},
          [] {
            return Buffers{to_bfloat16(eighths(56 * 48, 5)), to_bfloat16(eighths(48 * 16, 7)),
                           zeros(56 * 16)};
          },
          [](Buffers& b) { matmul(eighths(56 * 48, 5), eighths(48 * 16, 7), b[2], 16, 48); },
          {"race", "race", "misaligned", "uninitialized"}};
}

KernelCase async_gemm() {
  return {"async_gemm",
          R"(
__device__ void copy16(void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory");  // finds 3 // finds 4
}
extern "C" __global__ void k(const float* a, const float* b, float* c, int n, int kk) {
  __shared__ __align__(16) float left[2][16][16], right[2][16][16];
  const int r = threadIdx.x / 4, q = threadIdx.x % 4 * 4, col = blockIdx.x * 16;
#if BUG == 4
  a += 1;
#endif
  const auto fetch = [&](int step) {
    copy16(&left[step % 2][r][q], a + r * kk + step * 16 + q);  // finds 3 // finds 4
    copy16(&right[step % 2][r][q], b + (step * 16 + r) * n + col + q);  // finds 3
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  float4 sum = make_float4(0, 0, 0, 0);
  fetch(0);
  for (int step = 0; step < kk / 16; ++step) {
    if (step + 1 < kk / 16) {
      fetch(step + 1);
      asm volatile("cp.async.wait_group 1;" ::: "memory");
    } else {
#if BUG == 1
      asm volatile("cp.async.wait_group 1;" ::: "memory");
#else
      asm volatile("cp.async.wait_group 0;" ::: "memory");
#endif
    }
#if BUG != 2
    __syncthreads();
#endif
    for (int i = 0; i < 16; ++i) {
      const float x = left[step % 2][r][i];  // finds 1
      const float4 y = *(const float4*)&right[step % 2][i][q];  // finds 1 // finds 2 // finds 3
      sum = make_float4(sum.x + x * y.x, sum.y + x * y.y, sum.z + x * y.z, sum.w + x * y.w);
    }
#if BUG != 3
    __syncthreads();
#endif
  }
  *(float4*)&c[r * n + col + q] = sum;
}
)",
          {2},
          {64},
          {buffer(0), buffer(1), output(2), scalar(32), scalar(64)},
          [] {
            return Buffers{random_floats(1024), random_floats(2048, 2), zeros(512)};
          },
          [](Buffers& b) { matmul(b[0], b[1], b[2], 32, 64); },
          {"race", "race", "race", "misaligned"}};
}

// As CUTLASS does it: three stages, no bank conflicts by exchanging the chunks of a row.
KernelCase swizzled_gemm() {
  return {"swizzled_gemm",
          R"(
__device__ unsigned shared_address(const void* p) {
  return (unsigned)__cvta_generic_to_shared(p);
}
__device__ void copy16(void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(shared_address(to)), "l"(from) : "memory");
}
__device__ void load4(unsigned* f, const void* from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(f[0]), "=r"(f[1]), "=r"(f[2]), "=r"(f[3]) : "r"(shared_address(from)) : "memory");
}
__device__ void load4_transposed(unsigned* f, const void* from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(f[0]), "=r"(f[1]), "=r"(f[2]), "=r"(f[3]) : "r"(shared_address(from)) : "memory");
}
__device__ void multiply(float* sum, const unsigned* f, const unsigned* g) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
      "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(f[0]), "r"(f[1]), "r"(f[2]), "r"(f[3]), "r"(g[0]), "r"(g[1]));
}
// C (32 x 16, float) = A (32 x kk) * B (kk x 16), both bfloat16.
extern "C" __global__ void k(const unsigned short* a, const unsigned short* b, float* c, int kk) {
  __shared__ __align__(128) unsigned short left[3][32 * 32], right[3][32 * 16];
  const int t = threadIdx.x, lane = t % 32, warp = t / 32, steps = kk / 32;
  const auto of_a = [&](int step, int row, int chunk) { return &left[step % 3][row * 32 + (chunk ^ (row / 2 & 3)) * 8]; };
  const auto of_b = [&](int step, int row, int chunk) { return &right[step % 3][row * 16 + (chunk ^ (row / 4 & 1)) * 8]; };
  const auto fetch = [&](int step) {
    if (step < steps) {
      for (int i = t; i < 128; i += 64) copy16(of_a(step, i / 4, i % 4), a + i / 4 * kk + step * 32 + i % 4 * 8);  // finds 1 // finds 2 // finds 3
      copy16(of_b(step, t / 2, t % 2), b + (step * 32 + t / 2) * 16 + t % 2 * 8);  // finds 1 // finds 2 // finds 3
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  float sum[2][4] = {};
  fetch(0);
  fetch(1);
  for (int step = 0; step < steps; ++step) {
#if BUG == 1
    asm volatile("cp.async.wait_group 2;" ::: "memory");
#else
    asm volatile("cp.async.wait_group 1;" ::: "memory");
#endif
#if BUG != 2
    __syncthreads();
#endif
#if BUG == 3
    fetch(step + 3);
#else
    fetch(step + 2);
#endif
    for (int half = 0; half < 2; ++half) {
      unsigned f[4], g[4];
      load4(f, of_a(step, 16 * warp + lane % 16, 2 * half + lane / 16));  // finds 1 // finds 2 // finds 3
      load4_transposed(g, of_b(step, 16 * half + lane % 16, lane / 16));  // finds 1 // finds 2 // finds 3
      multiply(sum[0], f, g);
      multiply(sum[1], f, g + 2);
    }
  }
  for (int n = 0; n < 2; ++n) {
    for (int i = 0; i < 2; ++i) {
      const int row = 16 * warp + 8 * i + lane / 4;
      *(float2*)&c[row * 16 + 8 * n + lane % 4 * 2] = make_float2(sum[n][2 * i], sum[n][2 * i + 1]);
    }
  }
}
)",
          {1},
          {64},
          {buffer(0), buffer(1), output(2), scalar(160)},
          [] {
            return Buffers{to_bfloat16(eighths(32 * 160, 5)), to_bfloat16(eighths(160 * 16, 7)),
                           zeros(32 * 16)};
          },
          [](Buffers& b) { matmul(eighths(32 * 160, 5), eighths(160 * 16, 7), b[2], 16, 160); },
          {"race", "race", "race"}};
}

KernelCase wmma_gemm() {
  return {"wmma_gemm",
          R"(
__device__ unsigned shared_address(const void* p) {
  return (unsigned)__cvta_generic_to_shared(p);
}
// C (32 x 16, float) = A (32 x kk) * B (kk x 16), both bfloat16; a warp does 16 rows.
extern "C" __global__ void k(const unsigned short* a, const unsigned short* b, float* c, int kk) {
  __shared__ __align__(32) unsigned short left[32 * 16], right[16 * 16];
  const int t = threadIdx.x, warp = t / 32;
  float s[8] = {};
  for (int k0 = 0; k0 < kk; k0 += 16) {
    *(uint4*)&left[t * 8] = *(const uint4*)&a[t / 2 * kk + k0 + t % 2 * 8];
    if (t < 32) *(uint4*)&right[t * 8] = *(const uint4*)&b[(k0 + t / 2) * 16 + t % 2 * 8];  // finds 1 // finds 2
#if BUG != 1
    __syncthreads();
#endif
    unsigned f[4], g[4];
    asm volatile("wmma.load.a.sync.aligned.row.m16n16k16.shared.bf16 {%0, %1, %2, %3}, [%4], 16;" : "=r"(f[0]), "=r"(f[1]), "=r"(f[2]), "=r"(f[3]) : "r"(shared_address(&left[warp * 256])) : "memory");
    asm volatile("wmma.load.b.sync.aligned.row.m16n16k16.shared.bf16 {%0, %1, %2, %3}, [%4], 16;" : "=r"(g[0]), "=r"(g[1]), "=r"(g[2]), "=r"(g[3]) : "r"(shared_address(right)) : "memory");  // finds 1 // finds 2
    asm volatile(
        "wmma.mma.sync.aligned.row.row.m16n16k16.f32.bf16.bf16.f32 {%0, %1, %2, %3, %4, %5, %6, %7}, "
        "{%8, %9, %10, %11}, {%12, %13, %14, %15}, {%0, %1, %2, %3, %4, %5, %6, %7};"
        : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3]), "+f"(s[4]), "+f"(s[5]), "+f"(s[6]), "+f"(s[7])
        : "r"(f[0]), "r"(f[1]), "r"(f[2]), "r"(f[3]), "r"(g[0]), "r"(g[1]), "r"(g[2]), "r"(g[3]));
#if BUG != 2
    __syncthreads();
#endif
  }
#if BUG == 3
  const int stride = 20;
#else
  const int stride = 16;
#endif
  asm volatile(
      "wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8}, %9;"
      :: "l"(c + warp * 256), "f"(s[0]), "f"(s[1]), "f"(s[2]), "f"(s[3]), "f"(s[4]), "f"(s[5]), "f"(s[6]), "f"(s[7]), "r"(stride) : "memory");  // finds 3
}
)",
          {1},
          {64},
          {buffer(0), buffer(1), output(2), scalar(80)},
          [] {
            return Buffers{to_bfloat16(eighths(32 * 80, 5)), to_bfloat16(eighths(80 * 16, 7)),
                           zeros(32 * 16)};
          },
          [](Buffers& b) { matmul(eighths(32 * 80, 5), eighths(80 * 16, 7), b[2], 16, 80); },
          {"race", "race", "bounds"}};
}

}  // namespace

std::vector<KernelCase> product_kernels() {
  return {mma_gemm(), async_gemm(), swizzled_gemm(), wmma_gemm()};
}

}  // namespace braid::testing
