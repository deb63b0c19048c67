// Kernels that do rows of a matrix, a block each.

#include <algorithm>
#include <cmath>

#include "sanitizer/kernels.h"

namespace braid::testing {

namespace {

KernelCase argmax() {
  return {"argmax",
          R"(
extern "C" __global__ void k(const float* x, int* out, int n) {
  __shared__ float value[128];
  __shared__ int index[128];
  const int t = threadIdx.x;
  const float* row = x + blockIdx.x * n;
#if BUG == 3
  if (t < n) {
    value[t] = row[t];
    index[t] = t;
  }
#else
  value[t] = t < n ? row[t] : -3e38f;
  index[t] = t;
#endif
  __syncthreads();
  for (int step = 64; step > 0; step /= 2) {
    if (t < step) {
      if (value[t + step] > value[t]) {  // finds 1 // finds 3
        value[t] = value[t + step];  // finds 1
        index[t] = index[t + step];  // finds 1
      }
#if BUG == 2
      __syncthreads();  // finds 2
#endif
    }
#if BUG != 1 && BUG != 2
    __syncthreads();
#endif
  }
  if (t == 0) out[blockIdx.x] = index[0];
}
)",
          {2},
          {128},
          {buffer(0), output(1), scalar(100)},
          [] {
            return Buffers{random_floats(200), zeros(2)};
          },
          [](Buffers& b) {
            for (std::size_t r = 0; r < 2; ++r) {
              const auto row = b[0].begin() + static_cast<std::ptrdiff_t>(100 * r);
              const auto best = std::max_element(row, row + 100) - row;
              b[1][r] = int_bits(static_cast<std::int32_t>(best));
            }
          },
          {"race", "barrier", "uninitialized"}};
}

KernelCase layer_norm() {
  return {"layer_norm",
          R"(
__device__ float block_sum(float x, float* cell) {
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
  if (threadIdx.x % 32 == 0) cell[threadIdx.x / 32] = x;  // finds 1 // finds 2
#if BUG != 1
  __syncthreads();
#endif
#if BUG == 3
  x = cell[threadIdx.x % 32];  // finds 3
#else
  x = threadIdx.x % 32 < blockDim.x / 32 ? cell[threadIdx.x % 32] : 0;  // finds 1 // finds 2
#endif
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
#if BUG != 2
  __syncthreads();
#endif
  return x;
}
// `params` holds the scales of a row, then its offsets.
extern "C" __global__ void k(const float2* x, const float* params, float2* out, int n) {
  __shared__ float cell[32];
  const int t = threadIdx.x, at = blockIdx.x * blockDim.x + t;
  float2 v = x[at];
  const float mean = block_sum(v.x + v.y, cell) / n;  // finds 1 // finds 2 // finds 3
  v = make_float2(v.x - mean, v.y - mean);
  const float scale = rsqrtf(block_sum(v.x * v.x + v.y * v.y, cell) / n + 1e-5f);  // finds 1 // finds 2 // finds 3
  const float2 g = *(const float2*)(params + 2 * t);
#if BUG == 4
  const float2 b = *(const float2*)(params + n - 1 + 2 * t);  // finds 4
#else
  const float2 b = *(const float2*)(params + n + 2 * t);
#endif
  out[at] = make_float2(v.x * scale * g.x + b.x, v.y * scale * g.y + b.y);
}
)",
          {3},
          {64},
          {buffer(0), buffer(1), output(2), scalar(128)},
          [] {
            return Buffers{random_floats(384), random_floats(256, 2), zeros(384)};
          },
          [](Buffers& b) {
            for (std::size_t row = 0; row < 384; row += 128) {
              float mean = 0;
              float variance = 0;
              for (std::size_t i = 0; i < 128; ++i) mean += b[0][row + i] / 128;
              for (std::size_t i = 0; i < 128; ++i) {
                variance += (b[0][row + i] - mean) * (b[0][row + i] - mean) / 128;
              }
              for (std::size_t i = 0; i < 128; ++i) {
                b[2][row + i] =
                    (b[0][row + i] - mean) / std::sqrt(variance + 1e-5F) * b[1][i] + b[1][128 + i];
              }
            }
          },
          {"race", "race", "uninitialized", "misaligned"}};
}

KernelCase online_softmax() {
  return {"online_softmax",
          R"(
struct State {
  float most, sum;
};
__device__ State merge(State a, State b) {
  const float most = fmaxf(a.most, b.most);
  return {most, a.sum * expf(a.most - most) + b.sum * expf(b.most - most)};
}
extern "C" __global__ void k(const float* x, float* out, int n) {
  __shared__ State cell[4];
  const float* row = x + blockIdx.x * n;
  State s = {-3e38f, 0};
#if BUG == 3
  for (int i = threadIdx.x; i <= n; i += 128) s = merge(s, {row[i], 1});  // finds 3
#else
  for (int i = threadIdx.x; i < n; i += 128) s = merge(s, {row[i], 1});
#endif
  for (int step = 16; step > 0; step /= 2) {
    s = merge(s, {__shfl_xor_sync(~0u, s.most, step), __shfl_xor_sync(~0u, s.sum, step)});
  }
#if BUG == 4
  if (threadIdx.x == 0) cell[0] = s;
#else
  if (threadIdx.x % 32 == 0) cell[threadIdx.x / 32] = s;  // finds 1
#endif
#if BUG != 1
  __syncthreads();
#endif
  if (threadIdx.x == 0) {
    for (int w = 1; w < 4; ++w) s = merge(s, cell[w]);  // finds 1 // finds 4
    cell[0] = s;  // finds 2
  }
#if BUG != 2
  __syncthreads();
#endif
  s = cell[0];  // finds 2
  for (int i = threadIdx.x; i < n; i += 128) out[blockIdx.x * n + i] = expf(row[i] - s.most) / s.sum;
}
)",
          {2},
          {128},
          {buffer(0), output(1), scalar(300)},
          [] {
            return Buffers{random_floats(600), zeros(600)};
          },
          [](Buffers& b) {
            for (std::size_t row = 0; row < 600; row += 300) {
              float sum = 0;
              for (std::size_t i = row; i < row + 300; ++i) sum += std::exp(b[0][i]);
              for (std::size_t i = row; i < row + 300; ++i) b[1][i] = std::exp(b[0][i]) / sum;
            }
          },
          {"race", "race", "bounds", "uninitialized"}};
}

KernelCase top_k() {
  return {"top_k",
          R"(
extern "C" __global__ void k(const float* x, float* out, int* index, int n, int count) {
  __shared__ float value[64], top[2];
  __shared__ int where[2];
  const int t = threadIdx.x;
#if BUG == 4
  if (t < n) value[t] = x[blockIdx.x * n + t];
#else
  value[t] = t < n ? x[blockIdx.x * n + t] : -3e38f;
#endif
#if BUG == 3
  for (int i = 0; i <= count; ++i) {
#else
  for (int i = 0; i < count; ++i) {
#endif
    float best = value[t];  // finds 2 // finds 4
    int at = t;
    for (int step = 16; step > 0; step /= 2) {
      const float other = __shfl_xor_sync(~0u, best, step);
      const int from = __shfl_xor_sync(~0u, at, step);
      if (other > best) {
        best = other;
        at = from;
      }
    }
    if (t % 32 == 0) {
      top[t / 32] = best;  // finds 1 // finds 2
      where[t / 32] = at;  // finds 1 // finds 2
    }
#if BUG != 1
    __syncthreads();
#endif
    if (t == 0) {
      const int winner = top[1] > top[0] ? where[1] : where[0];  // finds 1 // finds 2
      out[blockIdx.x * count + i] = value[winner];  // finds 3
      index[blockIdx.x * count + i] = winner;  // finds 3
      value[winner] = -3e38f;  // finds 1 // finds 2
    }
#if BUG != 2
    __syncthreads();
#endif
  }
}
)",
          {3},
          {64},
          {buffer(0), output(1), output(2), scalar(50), scalar(4)},
          [] {
            return Buffers{random_floats(150), zeros(12), zeros(12)};
          },
          [](Buffers& b) {
            for (std::size_t i = 0; i < 12; ++i) {
              const auto row = b[0].begin() + static_cast<std::ptrdiff_t>(i / 4 * 50);
              const auto best = std::max_element(row, row + 50);
              b[1][i] = *best;
              b[2][i] = int_bits(static_cast<std::int32_t>(best - row));
              *best = -2;
            }
            b[0] = random_floats(150);
          },
          {"race", "race", "bounds", "uninitialized"}};
}

KernelCase embedding_gather() {
  return {"embedding_gather",
          R"(
// A block does 8 tokens of 32 elements; no token has the number `vocabulary`.
extern "C" __global__ void k(const float* table, const int* tokens, float4* out, int n, int vocabulary) {
  __shared__ int id[8];
  const int t = threadIdx.x, token = blockIdx.x * 8 + t / 8;
  if (t < 8 && blockIdx.x * 8 + t < n) id[t] = tokens[blockIdx.x * 8 + t];  // finds 1
#if BUG != 1
  __syncthreads();
#endif
#if BUG != 3
  if (token >= n) return;
#endif
  const int row = id[t / 8];  // finds 1 // finds 3
  float4 v = make_float4(0, 0, 0, 0);
#if BUG == 2
  v = *(const float4*)&table[row * 32 + t % 8 * 4];  // finds 2
#elif BUG == 4
  if (row < vocabulary) v = *(const float4*)&table[row * 31 + t % 8 * 4];  // finds 4
#else
  if (row < vocabulary) v = *(const float4*)&table[row * 32 + t % 8 * 4];
#endif
  if (token < n) out[token * 8 + t % 8] = v;  // finds 2
}
)",
          {3},
          {64},
          {buffer(0), buffer(1), output(2), scalar(20), scalar(30)},
          [] {
            Buffers b{random_floats(960), {}, zeros(640)};
            for (int i = 0; i < 20; ++i) b[1].push_back(int_bits(i * 11 % 31));
            b[1][5] = int_bits(30);
            return b;
          },
          [](Buffers& b) {
            for (std::size_t i = 0; i < 640; ++i) {
              const auto row = static_cast<std::size_t>(to_int(b[1][i / 32]));
              b[2][i] = row < 30 ? b[0][row * 32 + i % 32] : 0;
            }
          },
          {"race", "bounds", "uninitialized", "misaligned"}};
}

}  // namespace

std::vector<KernelCase> row_kernels() {
  return {argmax(), layer_norm(), online_softmax(), top_k(), embedding_gather()};
}

}  // namespace braid::testing
