// Kernels of blocks that work on a tile in shared memory.

#include <cmath>
#include <numeric>

#include "sanitizer/kernels.h"

namespace braid::testing {

namespace {

KernelCase blelloch_scan() {
  return {"blelloch_scan",
          R"(
extern "C" __global__ void k(const float* x, float* out, int n) {
  __shared__ float tree[256];
  const int t = threadIdx.x;
#if BUG == 4
  if (2 * t < n / 2) {
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
      tree[offset * (2 * t + 2) - 1] += tree[offset * (2 * t + 1) - 1];  // finds 1 // finds 3
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
      const float left = tree[i];  // finds 2 // finds 4
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
  return {blelloch_scan(), stencil_2d(), convolution_1d(), flash_attention()};
}

}  // namespace braid::testing
