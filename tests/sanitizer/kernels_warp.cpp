// Kernels whose warps shuffle and vote, and meet in shared counters.

#include <algorithm>
#include <numeric>

#include "sanitizer/kernels.h"

namespace braid::testing {

namespace {

KernelCase half_warps() {
  return {"half_warps",
          R"(
extern "C" __global__ void k(const float* x, float* out, int n) {
  const int i = blockIdx.x * 64 + threadIdx.x, lane = threadIdx.x % 32;
  float v = i < n ? x[i] : 0;
  if (lane < 16) {
#if BUG == 1
    const unsigned mask = ~0u;
#elif BUG == 2
    const unsigned mask = 0x7fff;
#else
    const unsigned mask = 0xffff;
#endif
    for (int d = 8; d > 0; d /= 2) v += __shfl_xor_sync(mask, v, d);  // finds 1 // finds 2
#if BUG == 3
    if (lane < 8 && __any_sync(0xffff, v < 0)) v = 0;  // finds 3
#else
    if (__any_sync(mask, v < 0)) v = 0;
#endif
#if BUG == 5
    __syncwarp(0xff);  // finds 5
#else
    __syncwarp(mask);
#endif
#if BUG == 4
    v = __shfl_sync(mask, v, 16);
#endif
  }
  if (i < n) out[i] = v;  // finds 4
}
)",
          {2},
          {64},
          {buffer(0), output(1), scalar(128)},
          [] {
            Buffers b{random_floats(128), {}};
            b[1].resize(128);
            return b;
          },
          [](Buffers& b) {
            for (std::size_t first = 0; first < 128; first += 32) {
              const auto at = b[0].begin() + static_cast<std::ptrdiff_t>(first);
              const float sum = std::accumulate(at, at + 16, 0.0F);
              for (std::size_t l = 0; l < 32; ++l) {
                b[1][first + l] = l >= 16 ? b[0][first + l] : std::max(sum, 0.0F);
              }
            }
          },
          {"mask", "mask", "mask", "uninitialized", "mask"}};
}

/// A binary search, which may end behind the last element: what is read there does not count.
KernelCase binary_search() {
  return {"binary_search",
          R"(
extern "C" __global__ void k(const int* x, int* out, int n) {
  __shared__ int sorted[65];
  const int t = threadIdx.x;
  sorted[t] = x[t];
  __syncthreads();
  int low = 0, high = n;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (sorted[middle] < 3 * t) low = middle + 1;
    else high = middle;
  }
  const int value = sorted[low];  // finds 1
#if BUG == 1
  out[t] = value == 3 * t ? low : 64;
#else
  out[t] = low < n && value == 3 * t ? low : 64;
#endif
}
)",
          {1},
          {64},
          {buffer(0), output(1), scalar(64)},
          [] {
            std::vector<std::int32_t> values;
            for (int i = 0; i < 64; ++i) values.push_back(2 * i);
            return Buffers{ints(values), zeros(64)};
          },
          [](Buffers& b) {
            for (int t = 0; t < 64; ++t) {
              const bool is_there = t % 2 == 0 && 3 * t < 128;
              b[1][static_cast<std::size_t>(t)] = int_bits(is_there ? 3 * t / 2 : 64);
            }
          },
          {"uninitialized"}};
}

/// Each thread's most frequent of eight bins, counted in an array of its own.
KernelCase own_array() {
  return {"own_array",
          R"(
extern "C" __global__ void k(const int* x, int* out) {
  int count[8];
#if BUG != 1
  for (int b = 0; b < 8; ++b) count[b] = 0;
#endif
  for (int i = 0; i < 16; ++i) {
    int bin = x[threadIdx.x * 16 + i] & 7;
#if BUG == 2
    if (x[threadIdx.x * 16 + i] > 90) bin += 8;
#endif
    ++count[bin];  // finds 1 // finds 2
  }
  int best = 0;
  for (int b = 1; b < 8; ++b) {
    if (count[b] > count[best]) best = b;
  }
  out[threadIdx.x] = best;
}
)",
          {1},
          {64},
          {buffer(0), output(1)},
          [] {
            std::vector<std::int32_t> values;
            for (int i = 0; i < 1024; ++i) values.push_back(i * i % 97);
            return Buffers{ints(values), zeros(64)};
          },
          [](Buffers& b) {
            for (std::size_t t = 0; t < 64; ++t) {
              std::vector<int> count(8);
              for (std::size_t i = 0; i < 16; ++i) {
                ++count[static_cast<std::size_t>(to_int(b[0][t * 16 + i]) & 7)];
              }
              const auto best = std::max_element(count.begin(), count.end()) - count.begin();
              b[1][t] = int_bits(static_cast<std::int32_t>(best));
            }
          },
          {"uninitialized", "bounds"}};
}

/// A structure with padding, which is read as one vector.
KernelCase padded_structure() {
  return {"padded_structure",
          R"(
struct alignas(16) Three { float a, b, c; };
extern "C" __global__ void k(const float* x, float* out) {
  __shared__ Three tile[64];
  const int t = threadIdx.x;
  tile[t].a = x[t];
  tile[t].b = 2 * x[t];
#if BUG != 1
  tile[t].c = 3;
#endif
#if BUG != 2
  __syncthreads();
#endif
  const Three other = tile[63 - t];  // finds 1 // finds 2
  out[t] = other.a + other.b + other.c;
}
)",
          {1},
          {64},
          {buffer(0), output(1)},
          [] {
            return Buffers{ramp(64), zeros(64)};
          },
          [](Buffers& b) {
            for (std::size_t t = 0; t < 64; ++t) b[1][t] = 3 * b[0][63 - t] + 3;
          },
          {"uninitialized", "race"}};
}

KernelCase compaction() {
  return {"compaction",
          R"(
extern "C" __global__ void k(const float* x, float* out, int* count, int n) {
  __shared__ int found, base;
  const int i = blockIdx.x * 128 + threadIdx.x, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    base = 0;
#if BUG != 1
    found = 0;
#endif
  }
  __syncthreads();
#if BUG == 5
  float v;
  if (i < n) v = x[i];
#else
  const float v = i < n ? x[i] : 0;
#endif
  const unsigned kept = __ballot_sync(~0u, v > 0);
  int first = 0;
  if (lane == 0) first = atomicAdd(&found, __popc(kept));  // finds 1 // finds 5
  first = __shfl_sync(~0u, first, 0);
  __syncthreads();
  if (threadIdx.x == 0) {
#if BUG == 4
    base = *count;  // finds 4
    *count += found;  // finds 4
#else
    base = atomicAdd(count, found);  // finds 2
#endif
  }
#if BUG != 2
  __syncthreads();
#endif
#if BUG == 3
  const unsigned below = (2u << lane) - 1;
#else
  const unsigned below = (1u << lane) - 1;
#endif
  if (v > 0) out[base + first + __popc(kept & below)] = v;  // finds 2 // finds 3
}
)",
          {3},
          {128},
          {buffer(0), output(1), buffer(2), scalar(300)},
          [] {
            Buffers b{random_floats(300), {}, {0}};
            b[1].resize(static_cast<std::size_t>(
                std::count_if(b[0].begin(), b[0].end(), [](float x) { return x > 0; })));
            return b;
          },
          [](Buffers& b) {
            std::copy_if(b[0].begin(), b[0].end(), b[1].begin(), [](float x) { return x > 0; });
            b[2][0] = int_bits(static_cast<std::int32_t>(b[1].size()));
          },
          {"uninitialized", "race", "bounds", "race", "uninitialized"},
          1,
          [](Buffers& b) { std::sort(b[1].begin(), b[1].end()); }};
}

KernelCase segmented_reduction() {
  return {"segmented_reduction",
          R"(
// The keys ascend. A warp sums each stretch of one key, its last lane hands that on.
extern "C" __global__ void k(const float* x, const int* keys, float* sums, int segments) {
  __shared__ float total[32];
#if BUG == 2
  if (threadIdx.x + 1 < segments) total[threadIdx.x] = 0;
#else
  if (threadIdx.x < 32) total[threadIdx.x] = 0;
#endif
  __syncthreads();
  const int i = blockIdx.x * 128 + threadIdx.x, lane = threadIdx.x % 32;
  const int key = keys[i];
  float sum = x[i];
  for (int step = 1; step < 32; step *= 2) {
    const float left = __shfl_up_sync(~0u, sum, step);
    const int left_key = __shfl_up_sync(~0u, key, step);
    if (lane >= step && left_key == key) sum += left;
  }
  const int next = __shfl_down_sync(~0u, key, 1);
  if (lane == 31 || next != key) {
#if BUG == 1
    total[key] += sum;  // finds 1
#else
    atomicAdd(&total[key], sum);  // finds 2 // finds 3
#endif
  }
#if BUG != 3
  __syncthreads();
#endif
#if BUG == 4
  if (threadIdx.x <= segments) atomicAdd(&sums[threadIdx.x], total[threadIdx.x]);  // finds 4
#else
  if (threadIdx.x < segments) atomicAdd(&sums[threadIdx.x], total[threadIdx.x]);  // finds 3
#endif
}
)",
          {2},
          {128},
          {buffer(0), buffer(1), buffer(2), scalar(10)},
          [] {
            Buffers b{random_floats(256), {}, zeros(10)};
            for (int i = 0; i < 256; ++i) b[1].push_back(int_bits(i * i / 6554));
            return b;
          },
          [](Buffers& b) {
            for (std::size_t i = 0; i < 256; ++i) {
              b[2][static_cast<std::size_t>(to_int(b[1][i]))] += b[0][i];
            }
          },
          {"race", "uninitialized", "race", "bounds"}};
}

KernelCase csr_spmv() {
  return {"csr_spmv",
          R"(
// A warp does a row. The vector has 80 elements.
extern "C" __global__ void k(const int* starts, const int* columns, const float* values, const float* x, float* out, int rows) {
  __shared__ float vector[80];
#if BUG == 3
  if (threadIdx.x < 80) vector[threadIdx.x] = x[threadIdx.x];
#else
  for (int i = threadIdx.x; i < 80; i += blockDim.x) vector[i] = x[i];
#endif
#if BUG != 1
  __syncthreads();
#endif
  const int lane = threadIdx.x % 32, warps = blockDim.x / 32;
#if BUG == 2
  for (int row = blockIdx.x * warps + threadIdx.x / 32; row <= rows; row += gridDim.x * warps) {
#else
  for (int row = blockIdx.x * warps + threadIdx.x / 32; row < rows; row += gridDim.x * warps) {
#endif
    float sum = 0;
    const int end = starts[row + 1];  // finds 2
    for (int j = starts[row] + lane; j < end; j += 32) {
#if BUG == 4
      const int column = columns[j] + 1;
#else
      const int column = columns[j];
#endif
      sum += values[j] * vector[column];  // finds 1 // finds 3 // finds 4
    }
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
    if (lane == 0) out[row] = sum;
  }
}
)",
          {2},
          {64},
          {buffer(0), buffer(1), buffer(2), buffer(3), output(4), scalar(20)},
          [] {
            Buffers b{{int_bits(0)}, {}, {}, random_floats(80), zeros(20)};
            for (int row = 0; row < 20; ++row) {
              for (int column = row % 5; column < 80; column += 1 + row) {
                b[1].push_back(int_bits(column));
              }
              b[0].push_back(int_bits(static_cast<std::int32_t>(b[1].size())));
            }
            b[2] = random_floats(b[1].size(), 2);
            return b;
          },
          [](Buffers& b) {
            for (std::size_t row = 0; row < 20; ++row) {
              const auto end = static_cast<std::size_t>(to_int(b[0][row + 1]));
              for (auto j = static_cast<std::size_t>(to_int(b[0][row])); j < end; ++j) {
                b[4][row] += b[2][j] * b[3][static_cast<std::size_t>(to_int(b[1][j]))];
              }
            }
          },
          {"race", "bounds", "uninitialized", "bounds"}};
}

/// One step of the generator of `monte_carlo`.
std::int32_t next_random(std::int32_t state) {
  return static_cast<std::int32_t>((static_cast<std::uint32_t>(state) * 1103515245U + 12345U) &
                                   0x7fffffU);
}

KernelCase monte_carlo() {
  return {"monte_carlo",
          R"(
__device__ unsigned next(unsigned& state) {
  state = (state * 1103515245u + 12345u) & 0x7fffffu;
  return state >> 12;
}
// Points of a square that lie in the quarter of a circle.
extern "C" __global__ void k(unsigned* states, int* hits, int points, int n) {
  __shared__ int inside;
#if BUG != 2
  if (threadIdx.x == 0) inside = 0;
#endif
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
#if BUG == 4
  if (i <= n) {
#else
  if (i < n) {
#endif
    unsigned state = states[i];  // finds 4
    int mine = 0;
    for (int p = 0; p < points; ++p) {
      const unsigned x = next(state), y = next(state);
      mine += x * x + y * y < 2048 * 2048;
    }
    states[i] = state;
#if BUG == 1
    inside += mine;  // finds 1
#else
    atomicAdd(&inside, mine);  // finds 2 // finds 3
#endif
  }
#if BUG != 3
  __syncthreads();
#endif
  if (threadIdx.x == blockDim.x - 1) atomicAdd(hits, inside);  // finds 3
}
)",
          {2},
          {96},
          {buffer(0), buffer(1), scalar(10), scalar(150)},
          [] {
            Buffers b{{}, {int_bits(0)}};
            for (int i = 0; i < 150; ++i) b[0].push_back(int_bits(1 + 55555 * i));
            return b;
          },
          [](Buffers& b) {
            std::int32_t hits = 0;
            for (float& word : b[0]) {
              std::int32_t state = to_int(word);
              for (int p = 0; p < 10; ++p) {
                const std::int32_t x = (state = next_random(state)) >> 12;
                const std::int32_t y = (state = next_random(state)) >> 12;
                hits += x * x + y * y < 2048 * 2048 ? 1 : 0;
              }
              word = int_bits(state);
            }
            b[1][0] = int_bits(hits);
          },
          {"race", "uninitialized", "race", "bounds"}};
}

KernelCase threadfence_reduction() {
  return {"threadfence_reduction",
          R"(
extern "C" __global__ void k(const float* x, float* part, unsigned* count, float* out) {
  __shared__ float cell[4];
  __shared__ bool last;
#if BUG == 5
  if (blockIdx.x == 0 && threadIdx.x == 0) *count = 0;  // finds 5
#endif
  float sum = x[blockIdx.x * 128 + threadIdx.x];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
  if (threadIdx.x % 32 == 0) cell[threadIdx.x / 32] = sum;  // finds 4
#if BUG != 4
  __syncthreads();
#endif
  if (threadIdx.x == 0) {
    part[blockIdx.x] = cell[0] + cell[1] + cell[2] + cell[3];  // finds 4
#if BUG == 2
    __threadfence_block();
#elif BUG != 1
    __threadfence();
#endif
    last = atomicInc(count, gridDim.x - 1) == gridDim.x - 1;  // finds 3 // finds 5
    __threadfence();
  }
#if BUG != 3
  __syncthreads();
#endif
  if (!last || threadIdx.x >= 64) return;  // finds 3
  sum = threadIdx.x < gridDim.x ? part[threadIdx.x] : 0;  // finds 1 // finds 2
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
  if (threadIdx.x == 0) *out = sum;
}
)",
          {5},
          {128},
          {buffer(0), output(1), buffer(2), output(3)},
          [] {
            return Buffers{random_floats(640), zeros(5), {0}, zeros(1)};
          },
          [](Buffers& b) {
            for (std::size_t i = 0; i < 640; ++i) b[1][i / 128] += b[0][i];
            b[3][0] = std::accumulate(b[1].begin(), b[1].end(), 0.0F);
          },
          {"race", "race", "race", "race", "race"}};
}

}  // namespace

std::vector<KernelCase> warp_kernels() {
  return {half_warps(),       binary_search(), own_array(),
          padded_structure(), compaction(),    segmented_reduction(),
          csr_spmv(),         monte_carlo(),   threadfence_reduction()};
}

}  // namespace braid::testing
