// Kernels of blocks that work on a tile in shared memory.

#include <cmath>
#include <numeric>

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

KernelCase blelloch_scan() {
  return {"blelloch_scan",
          R"(
extern "C" __global__ void k(const float* x, float* out, int n) {
  __shared__ float tree[256];
  const int t = threadIdx.x;
#if BUG == 4
  if (2 * t < n) {
    tree[2 * t] = x[2 * t];
    tree[2 * t + 1] = x[2 * t + 1];
  }
#else
  tree[2 * t] = 2 * t < n ? x[2 * t] : 0;
  tree[2 * t + 1] = 2 * t + 1 < n ? x[2 * t + 1] : 0;
#endif
  int offset = 1;
  for (int d = 128; d > 0; d /= 2) {
#if BUG != 1
    __syncthreads();
#endif
#if BUG == 3
    if (t <= d) {
#else
    if (t < d) {
#endif
      tree[offset * (2 * t + 2) - 1] += tree[offset * (2 * t + 1) - 1];  // finds 1 // finds 3 // finds 4
    }
    offset *= 2;
  }
  if (t == 0) tree[255] = 0;
  for (int d = 1; d < 256; d *= 2) {
    offset /= 2;
#if BUG != 2
    __syncthreads();
#endif
    if (t < d) {
      const int i = offset * (2 * t + 1) - 1, j = offset * (2 * t + 2) - 1;
      const float left = tree[i];  // finds 2
      tree[i] = tree[j];  // finds 2
      tree[j] += left;  // finds 2
    }
  }
  __syncthreads();
  if (2 * t < n) out[2 * t] = tree[2 * t];
  if (2 * t + 1 < n) out[2 * t + 1] = tree[2 * t + 1];
}
)",
          {1},
          {128},
          {buffer(0), output(1), scalar(200)},
          [] {
            return Buffers{random_floats(200), zeros(200)};
          },
          [](Buffers& b) { std::partial_sum(b[0].begin(), b[0].end() - 1, b[1].begin() + 1); },
          {"race", "race", "bounds", "uninitialized"}};
}

KernelCase stencil_2d() {
  return {"stencil_2d",
          R"(
extern "C" __global__ void k(const float* in, float* out, int w, int h) {
  __shared__ float tile[18][18];
  const int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  const int t = threadIdx.y * 16 + threadIdx.x;
#if BUG == 4
  if (x >= w || y >= h) return;
#endif
#if BUG == 2
  if (int i = t; i < 18 * 18) {
#else
  for (int i = t; i < 18 * 18; i += 256) {
#endif
    const int from_x = blockIdx.x * 16 + i % 18 - 1, from_y = blockIdx.y * 16 + i / 18 - 1;
#if BUG == 3
    const bool inside = from_x >= 0 && from_x <= w && from_y >= 0 && from_y <= h;
#else
    const bool inside = from_x >= 0 && from_x < w && from_y >= 0 && from_y < h;
#endif
    tile[i / 18][i % 18] = inside ? in[from_y * w + from_x] : 0;  // finds 1 // finds 3
  }
#if BUG != 1
  __syncthreads();
#endif
  if (x >= w || y >= h) return;
  float sum = 0;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      sum += tile[threadIdx.y + i][threadIdx.x + j];  // finds 1 // finds 2 // finds 4
    }
  }
  out[y * w + x] = sum / 9;
}
)",
          {3, 2},
          {16, 16},
          {buffer(0), output(1), scalar(40), scalar(24)},
          [] {
            return Buffers{random_floats(960), zeros(960)};
          },
          [](Buffers& b) {
            for (int i = 0; i < 960 * 9; ++i) {
              const int x = i / 9 % 40, y = i / 9 / 40;
              const int from_x = x + i % 3 - 1, from_y = y + i % 9 / 3 - 1;
              if (from_x < 0 || from_x >= 40 || from_y < 0 || from_y >= 24) continue;
              b[1][static_cast<std::size_t>(i / 9)] +=
                  b[0][static_cast<std::size_t>(from_y * 40 + from_x)] / 9;
            }
          },
          {"race", "uninitialized", "bounds", "uninitialized"}};
}

KernelCase convolution_1d() {
  return {"convolution_1d",
          R"(
#define RADIUS 4
extern "C" __global__ void k(const float* x, const float* weights, float* out, int n) {
  __shared__ float tile[64 + 2 * RADIUS];
  __shared__ float w[2 * RADIUS + 1];
  const int first = blockIdx.x * 64 - RADIUS;
  if (threadIdx.x <= 2 * RADIUS) w[threadIdx.x] = weights[threadIdx.x];
#if BUG == 2
  for (int i = threadIdx.x; i < 64 + 2 * RADIUS - 1; i += 64) {
#else
  for (int i = threadIdx.x; i < 64 + 2 * RADIUS; i += 64) {
#endif
    tile[i] = first + i >= 0 && first + i < n ? x[first + i] : 0;
  }
#if BUG != 1
  __syncthreads();
#endif
  float sum = 0;
  for (int j = 0; j <= 2 * RADIUS; ++j) sum += w[j] * tile[threadIdx.x + j];  // finds 1 // finds 2
  const int i = blockIdx.x * 64 + threadIdx.x;
#if BUG == 3
  out[i] = sum;  // finds 3
#else
  if (i < n) out[i] = sum;
#endif
}
)",
          {3},
          {64},
          {buffer(0), buffer(1), output(2), scalar(180)},
          [] {
            return Buffers{random_floats(180), random_floats(9, 2), zeros(180)};
          },
          [](Buffers& b) {
            for (int i = 0; i < 180 * 9; ++i) {
              const int from = i / 9 + i % 9 - 4;
              if (from < 0 || from >= 180) continue;
              b[2][static_cast<std::size_t>(i / 9)] +=
                  b[1][static_cast<std::size_t>(i % 9)] * b[0][static_cast<std::size_t>(from)];
            }
          },
          {"race", "uninitialized", "bounds"}};
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

// Two sequences, one behind the other in K and V. A block does 64 queries of one of them.
constexpr std::size_t kLengths[] = {40, 12};

KernelCase flash_attention() {
  return {"flash_attention",
          R"(
extern "C" __global__ void k(const float* q, const float4* keys, const float4* values, const int* starts, float4* out) {
  __shared__ float4 key[16][4], value[16][4];
  const int t = threadIdx.x, start = starts[blockIdx.x], count = starts[blockIdx.x + 1] - start;
  const float* query = q + (blockIdx.x * 64 + t) * 16;
  float most = -3e38f, sum = 0;
  float4 acc[4] = {};
  for (int first = 0; first < count; first += 16) {
    const int row = first + t / 4;
#if BUG == 4
    if (row <= count) {
#else
    if (row < count) {
#endif
      key[t / 4][t % 4] = keys[(start + row) * 4 + t % 4];  // finds 1 // finds 2 // finds 4
      value[t / 4][t % 4] = values[(start + row) * 4 + t % 4];  // finds 1 // finds 2
    }
#if BUG != 1
    __syncthreads();
#endif
#if BUG == 3
    const int here = 16;
#else
    const int here = min(16, count - first);
#endif
    for (int j = 0; j < here; ++j) {
      float score = 0;
      for (int d = 0; d < 4; ++d) {
        const float4 x = key[j][d];  // finds 1 // finds 2 // finds 3
        score += query[4 * d] * x.x + query[4 * d + 1] * x.y + query[4 * d + 2] * x.z + query[4 * d + 3] * x.w;
      }
      score *= 0.25f;
      const float top = fmaxf(most, score), scale = expf(most - top), p = expf(score - top);
      most = top;
      sum = sum * scale + p;
      for (int d = 0; d < 4; ++d) {
        const float4 v = value[j][d];  // finds 1 // finds 2
        acc[d] = make_float4(acc[d].x * scale + p * v.x, acc[d].y * scale + p * v.y, acc[d].z * scale + p * v.z, acc[d].w * scale + p * v.w);
      }
    }
#if BUG != 2
    __syncthreads();
#endif
  }
  for (int d = 0; d < 4; ++d) {
    out[(blockIdx.x * 64 + t) * 4 + d] = make_float4(acc[d].x / sum, acc[d].y / sum, acc[d].z / sum, acc[d].w / sum);
  }
}
)",
          {2},
          {64},
          {buffer(0), buffer(1), buffer(2), buffer(3), output(4)},
          [] {
            return Buffers{random_floats(2048), random_floats(832, 2), random_floats(832, 3),
                           ints({0, 40, 52}), zeros(2048)};
          },
          [](Buffers& b) {
            for (std::size_t row = 0; row < 128; ++row) {
              const std::size_t start = row < 64 ? 0 : kLengths[0];
              float sum = 0;
              for (std::size_t j = start; j < start + kLengths[row / 64]; ++j) {
                float score = 0;
                for (std::size_t d = 0; d < 16; ++d) score += b[0][row * 16 + d] * b[1][j * 16 + d];
                const float p = std::exp(score / 4);
                sum += p;
                for (std::size_t d = 0; d < 16; ++d) b[4][row * 16 + d] += p * b[2][j * 16 + d];
              }
              for (std::size_t d = 0; d < 16; ++d) b[4][row * 16 + d] /= sum;
            }
          },
          {"race", "race", "uninitialized", "bounds"}};
}

}  // namespace

std::vector<KernelCase> tile_kernels() {
  return {blelloch_scan(), stencil_2d(), convolution_1d(),
          mma_gemm(),      async_gemm(), flash_attention()};
}

}  // namespace braid::testing
