#include "sanitizer/kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

namespace braid::testing {

std::vector<KernelCase> synchronizing_kernels();
std::vector<KernelCase> tile_kernels();
std::vector<KernelCase> row_kernels();
std::vector<KernelCase> warp_kernels();
std::vector<KernelCase> protocol_kernels();
std::vector<KernelCase> two_rank_kernels();
std::vector<KernelCase> replica_kernels();
std::vector<KernelCase> async_kernels();
std::vector<KernelCase> wgmma_kernels();
std::vector<KernelCase> tensor_memory_kernels();
std::vector<KernelCase> product_kernels();
std::vector<KernelCase> library_kernels();
std::vector<KernelCase> cluster_kernels();

std::vector<float> random_floats(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> values(-1, 1);
  std::vector<float> result(count);
  for (float& value : result) value = values(random);
  return result;
}

std::vector<float> small_integers(std::size_t count, int step) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(static_cast<int>(i * static_cast<std::size_t>(step) % 13) - 6);
  }
  return values;
}

void dot_products(Buffers& b, std::size_t rows, std::size_t k, std::size_t columns,
                  float (*finish)(float)) {
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      float sum = 0;
      for (std::size_t i = 0; i < k; ++i) sum += b[0][row * k + i] * b[1][column * k + i];
      b[2][row * columns + column] = finish(sum);
    }
  }
}

std::vector<float> ramp(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}

float int_bits(std::int32_t value) {
  float bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

std::int32_t to_int(float bits) {
  std::int32_t value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

std::vector<float> ints(const std::vector<std::int32_t>& values) {
  std::vector<float> result;
  for (const std::int32_t value : values) result.push_back(int_bits(value));
  return result;
}

namespace {

void add_parallel_kernels_1(std::vector<KernelCase>& cases) {
  cases.push_back({"saxpy",
                   R"(
extern "C" __global__ void k(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
#if BUG == 1
  if (i <= n) y[i] += 2 * x[i];  // finds 1
#elif BUG == 2
  float4* fours = (float4*)(y + 1);
  if (i < n / 4 - 1) fours[i] = make_float4(i, i, i, i);  // finds 2
#else
  if (i < n) y[i] += 2 * x[i];
#endif
}
)",
                   {4},
                   {64},
                   {buffer(0), buffer(1), scalar(200)},
                   [] {
                     return Buffers{random_floats(200), random_floats(200, 2)};
                   },
                   [](Buffers& b) {
                     for (std::size_t i = 0; i < 200; ++i) b[1][i] += 2 * b[0][i];
                   },
                   {"bounds", "misaligned"}});

  cases.push_back({"reduction",
                   R"(
extern "C" __global__ void k(const float* x, float* out, int n) {
  __shared__ float part[128];
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += 128) sum += x[i];
#if BUG == 2
  if (threadIdx.x < 100)
#endif
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int step = 64; step > 0; step /= 2) {
    if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];  // finds 1 // finds 2
#if BUG != 1
    __syncthreads();
#endif
  }
  if (threadIdx.x == 0) *out = part[0];
}
)",
                   {1},
                   {128},
                   {buffer(0), output(1), scalar(1000)},
                   [] {
                     return Buffers{random_floats(1000), {0}};
                   },
                   [](Buffers& b) { b[1][0] = std::accumulate(b[0].begin(), b[0].end(), 0.0F); },
                   {"race", "uninitialized"}});

  cases.push_back({"scan",
                   R"(
extern "C" __global__ void k(const float* x, float* out) {
  __shared__ float value[128];
  const int t = threadIdx.x;
  value[t] = x[t];
  __syncthreads();
  for (int step = 1; step < 128; step *= 2) {
    const float left = t >= step ? value[t - step] : 0;  // finds 1 // finds 2
#if BUG != 1
    __syncthreads();
#endif
    value[t] += left;  // finds 1 // finds 2
#if BUG != 2
    __syncthreads();
#endif
  }
  out[t] = value[t];
}
)",
                   {1},
                   {128},
                   {buffer(0), output(1)},
                   [] {
                     return Buffers{random_floats(128), std::vector<float>(128)};
                   },
                   [](Buffers& b) { std::partial_sum(b[0].begin(), b[0].end(), b[1].begin()); },
                   {"race", "race"}});
}

void add_parallel_kernels_2(std::vector<KernelCase>& cases) {
  cases.push_back({"bitonic_sort",
                   R"(
extern "C" __global__ void k(float* x) {
  __shared__ float value[256];
  const int t = threadIdx.x;
  value[t] = x[t];
  __syncthreads();
  for (int size = 2; size <= 256; size *= 2) {
    for (int stride = size / 2; stride > 0; stride /= 2) {
#if BUG == 2
      const int other = t + stride;
#else
      const int other = t ^ stride;
#endif
      if (other > t) {
        const bool up = (t & size) == 0;
        const float a = value[t], b = value[other];  // finds 1 // finds 2
        if ((a > b) == up) {
          value[t] = b;  // finds 1
          value[other] = a;  // finds 1
        }
      }
#if BUG != 1
      __syncthreads();
#endif
    }
  }
#if BUG == 1
  __syncthreads();
#endif
  x[t] = value[t];
}
)",
                   {1},
                   {256},
                   {buffer(0)},
                   [] { return Buffers{random_floats(256)}; },
                   [](Buffers& b) { std::sort(b[0].begin(), b[0].end()); },
                   {"race", "bounds"}});

  cases.push_back({"transpose",
                   R"(
extern "C" __global__ void k(const float* x, float* out, int rows, int cols) {
  __shared__ float tile[32][33];
  const int row = blockIdx.y * 32, col = blockIdx.x * 32;
  for (int i = threadIdx.y; i < 32; i += 8) {
    if (row + i < rows && col + threadIdx.x < cols) {
      tile[i][threadIdx.x] = x[(row + i) * cols + col + threadIdx.x];
    }
  }
#if BUG != 1
  __syncthreads();
#endif
  for (int i = threadIdx.y; i < 32; i += 8) {
#if BUG == 2
    if (row + threadIdx.x < rows)
#else
    if (col + i < cols && row + threadIdx.x < rows)
#endif
      out[(col + i) * rows + row + threadIdx.x] = tile[threadIdx.x][i];  // finds 1 // finds 2
  }
}
)",
                   {2, 2},
                   {32, 8},
                   {buffer(0), output(1), scalar(50), scalar(40)},
                   [] {
                     return Buffers{random_floats(2000), std::vector<float>(2000)};
                   },
                   [](Buffers& b) {
                     for (std::size_t r = 0; r < 50; ++r) {
                       for (std::size_t c = 0; c < 40; ++c) b[1][c * 50 + r] = b[0][r * 40 + c];
                     }
                   },
                   {"race", "bounds"}});
}

void add_parallel_kernels_3(std::vector<KernelCase>& cases) {
  cases.push_back({"stencil",
                   R"(
extern "C" __global__ void k(const float* x, float* out, int n) {
  __shared__ float part[66];
  const int i = blockIdx.x * 64 + threadIdx.x;
  part[threadIdx.x + 1] = i < n ? x[i] : 0;
  if (threadIdx.x == 0) part[0] = i > 0 ? x[i - 1] : 0;
#if BUG == 1
  if (threadIdx.x == 63 && i + 1 < n) part[65] = x[i + 1];
#else
  if (threadIdx.x == 63) part[65] = i + 1 < n ? x[i + 1] : 0;
#endif
#if BUG != 2
  __syncthreads();
#endif
  if (i < n) out[i] = part[threadIdx.x] + part[threadIdx.x + 1] + part[threadIdx.x + 2];  // finds 1 // finds 2
}
)",
                   {4},
                   {64},
                   {buffer(0), output(1), scalar(256)},
                   [] {
                     return Buffers{random_floats(256), std::vector<float>(256)};
                   },
                   [](Buffers& b) {
                     for (std::size_t i = 0; i < 256; ++i) {
                       b[1][i] = (i > 0 ? b[0][i - 1] : 0) + b[0][i] + (i < 255 ? b[0][i + 1] : 0);
                     }
                   },
                   {"uninitialized", "race"}});

  cases.push_back(
      {"tiled_matmul",
       R"(
extern "C" __global__ void k(const float* a, const float* b, float* c, int n) {
  __shared__ float left[16][16], right[16][16];
  const int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int t = 0; t < n; t += 16) {
    left[threadIdx.y][threadIdx.x] = a[row * n + t + threadIdx.x];  // finds 2
    right[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + col];  // finds 2
#if BUG != 1
    __syncthreads();
#endif
    for (int i = 0; i < 16; ++i) sum += left[threadIdx.y][i] * right[i][threadIdx.x];  // finds 1
#if BUG != 2
    __syncthreads();
#endif
  }
  c[row * n + col] = sum;
}
)",
       {3, 3},
       {16, 16},
       {buffer(0), buffer(1), output(2), scalar(48)},
       [] {
         return Buffers{random_floats(2304), random_floats(2304, 2), std::vector<float>(2304)};
       },
       [](Buffers& b) {
         for (std::size_t r = 0; r < 48; ++r) {
           for (std::size_t c = 0; c < 48; ++c) {
             float sum = 0;
             for (std::size_t i = 0; i < 48; ++i) {
               sum += b[0][r * 48 + i] * b[1][i * 48 + c];
             }
             b[2][r * 48 + c] = sum;
           }
         }
       },
       {"race", "race"}});
}

void add_parallel_kernels_4(std::vector<KernelCase>& cases) {
  cases.push_back({"softmax",
                   R"(
__device__ float block_reduce(float x, bool max, float* cell) {
  for (int step = 16; step > 0; step /= 2) {
    const float y = __shfl_xor_sync(~0u, x, step);
    x = max ? fmaxf(x, y) : x + y;
  }
  if (threadIdx.x % 32 == 0) cell[threadIdx.x / 32] = x;
  __syncthreads();
  float all = cell[0];
  for (int w = 1; w < 4; ++w) all = max ? fmaxf(all, cell[w]) : all + cell[w];
#if BUG != 1
  __syncthreads();
#endif
  return all;
}
extern "C" __global__ void k(const float* x, float* out) {
  __shared__ float cell[4];
  const float* row = x + blockIdx.x * 128;
  const float most = block_reduce(row[threadIdx.x], true, cell);  // finds 1
  const float e = expf(row[threadIdx.x] - most);
  const float sum = block_reduce(e, false, cell);  // finds 1
#if BUG == 2
  out[threadIdx.x] = e / sum;  // finds 2
#else
  out[blockIdx.x * 128 + threadIdx.x] = e / sum;
#endif
}
)",
                   {3},
                   {128},
                   {buffer(0), output(1)},
                   [] {
                     return Buffers{random_floats(384), std::vector<float>(384)};
                   },
                   [](Buffers& b) {
                     for (std::size_t r = 0; r < 3; ++r) {
                       float sum = 0;
                       for (std::size_t i = 0; i < 128; ++i) sum += std::exp(b[0][r * 128 + i]);
                       for (std::size_t i = 0; i < 128; ++i) {
                         b[1][r * 128 + i] = std::exp(b[0][r * 128 + i]) / sum;
                       }
                     }
                   },
                   {"race", "race"}});

  cases.push_back({"histogram",
                   R"(
extern "C" __global__ void k(const int* x, int* bins, int n) {
  __shared__ int part[8];
  if (threadIdx.x < 8) part[threadIdx.x] = 0;
  __syncthreads();
  const int i = blockIdx.x * 64 + threadIdx.x;
#if BUG == 1
  if (i < n) part[x[i] & 7] += 1;  // finds 1
#else
  if (i < n) atomicAdd(&part[x[i] & 7], 1);
#endif
  __syncthreads();
#if BUG == 2
  if (threadIdx.x < 8) bins[threadIdx.x] += part[threadIdx.x];  // finds 2
#else
  if (threadIdx.x < 8) atomicAdd(&bins[threadIdx.x], part[threadIdx.x]);
#endif
}
)",
                   {4},
                   {64},
                   {buffer(0), buffer(1), scalar(250)},
                   [] {
                     Buffers b{{}, std::vector<float>(8, int_bits(0))};
                     for (int i = 0; i < 250; ++i) b[0].push_back(int_bits(i * 7 % 13));
                     return b;
                   },
                   [](Buffers& b) {
                     for (float x : b[0]) {
                       float& bin = b[1][static_cast<std::size_t>(to_int(x) & 7)];
                       bin = int_bits(to_int(bin) + 1);
                     }
                   },
                   {"race", "race"}});
}

void add_parallel_kernels_5(std::vector<KernelCase>& cases) {
  cases.push_back({"async_ring",
                   R"(
__device__ void copy(float* to, const float* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
               :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory");
}
extern "C" __global__ void k(const float* x, float* out, int steps) {
  __shared__ float ring[2][64];
  copy(&ring[0][threadIdx.x], x + threadIdx.x);
  asm volatile("cp.async.commit_group;" ::: "memory");
  float sum = 0;
  for (int s = 0; s < steps; ++s) {
    if (s + 1 < steps) copy(&ring[(s + 1) % 2][threadIdx.x], x + (s + 1) * 64 + threadIdx.x);  // finds 3
    asm volatile("cp.async.commit_group;" ::: "memory");
#if BUG == 1
    asm volatile("cp.async.wait_group 2;" ::: "memory");
#else
    asm volatile("cp.async.wait_group 1;" ::: "memory");
#endif
#if BUG != 2
    __syncthreads();
#endif
    sum += ring[s % 2][63 - threadIdx.x];  // finds 1 // finds 2
#if BUG != 3
    __syncthreads();
#endif
  }
  out[threadIdx.x] = sum;
}
)",
                   {1},
                   {64},
                   {buffer(0), output(1), scalar(5)},
                   [] {
                     return Buffers{random_floats(320), std::vector<float>(64)};
                   },
                   [](Buffers& b) {
                     for (std::size_t i = 0; i < 320; ++i) b[1][63 - i % 64] += b[0][i];
                   },
                   {"race", "race", "race"}});

  cases.push_back({"divergent_barrier",
                   R"(
extern "C" __global__ void k(const float* x, float* out) {
  __shared__ float value[64];
  value[threadIdx.x] = x[threadIdx.x];
#if BUG == 1
  if (x[threadIdx.x] < 0) __syncthreads();  // finds 1
#elif BUG == 2
  if (threadIdx.x < 32) __syncthreads();  // finds 2
  if (threadIdx.x >= 32) asm volatile("barrier.sync 1, 64;" ::: "memory");  // finds 2
  if (threadIdx.x < 32) __syncthreads();
#else
  __syncthreads();
#endif
  out[threadIdx.x] = value[63 - threadIdx.x];
}
)",
                   {1},
                   {64},
                   {buffer(0), output(1)},
                   [] {
                     return Buffers{random_floats(64), std::vector<float>(64)};
                   },
                   [](Buffers& b) { std::reverse_copy(b[0].begin(), b[0].end(), b[1].begin()); },
                   {"barrier", "deadlock"}});
}

std::vector<KernelCase> parallel_kernels() {
  std::vector<KernelCase> cases;
  add_parallel_kernels_1(cases);
  add_parallel_kernels_2(cases);
  add_parallel_kernels_3(cases);
  add_parallel_kernels_4(cases);
  add_parallel_kernels_5(cases);
  return cases;
}

}  // namespace

std::vector<KernelCase> kernel_cases() {
  std::vector<KernelCase> cases = parallel_kernels();
  for (const auto& more :
       {synchronizing_kernels(), tile_kernels(), row_kernels(), warp_kernels(), protocol_kernels(),
        two_rank_kernels(), replica_kernels(), async_kernels(), wgmma_kernels(),
        tensor_memory_kernels(), product_kernels(), library_kernels(), cluster_kernels()}) {
    cases.insert(cases.end(), more.begin(), more.end());
  }
  return cases;
}

}  // namespace braid::testing
