// Kernels as cub, cooperative groups and libcu++ write them.

#include <algorithm>

#include "sanitizer/kernels.h"

namespace braid::testing {

namespace {

KernelCase block_radix_sort() {
  return {"block_radix_sort",
          R"(
extern "C" __global__ void k(const int* in, int* out) {
  __shared__ int keys[128], counts[16][4];
  const int t = threadIdx.x, warp = t / 32, lane = t % 32;
  int key = in[t];
  for (int shift = 0; shift < 8; shift += 4) {
    if (t < 64) counts[t / 4][t % 4] = 0;  // finds 1
#if BUG != 1
    __syncthreads();
#endif
    const int digit = key >> shift & 15;
    const unsigned peers = __match_any_sync(~0u, digit);
    int at = __popc(peers & ((1u << lane) - 1));
    if (at == 0) counts[digit][warp] = __popc(peers);  // finds 1 // finds 3
#if BUG != 3
    __syncthreads();
#endif
    for (int i = 0; i < digit * 4 + warp; ++i) at += counts[i / 4][i % 4];  // finds 3
    keys[at] = key;  // finds 2
#if BUG != 2
    __syncthreads();
#endif
    key = keys[t];  // finds 2
  }
  out[t] = key;
}
)",
          {1},
          {128},
          {buffer(0), output(1)},
          [] {
            std::vector<std::int32_t> keys;
            for (std::int32_t i = 0; i < 128; ++i) keys.push_back(1 + i * 37 % 251);
            return Buffers{ints(keys), zeros(128)};
          },
          [](Buffers& b) {
            b[1] = b[0];
            std::sort(b[1].begin(), b[1].end());
          },
          {"race", "race", "race"}};
}

KernelCase cooperative_grid() {
  return {"cooperative_grid",
          R"(
// The first block adds what makes the top bit change when all have come.
__device__ void grid_sync(unsigned* arrived) {
#if BUG != 1
  __syncthreads();
#endif
  if (threadIdx.x == 0) {
    const unsigned add = blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1) : 1;
#if BUG != 2
    __threadfence();
#endif
    const unsigned old = atomicAdd(arrived, add);
    while (((old ^ *(volatile unsigned*)arrived) & 0x80000000u) == 0) {
    }
#if BUG != 3
    __threadfence();
#endif
  }
#if BUG != 4
  __syncthreads();
#endif
}
extern "C" __global__ void k(float* x, unsigned* arrived, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int round = 0; round < 3; ++round) {
    const float v = x[(i + 37) % n];  // finds 1 // finds 2 // finds 3 // finds 4
    grid_sync(arrived);
    x[i] = v + 1;  // finds 1 // finds 2 // finds 3 // finds 4
    grid_sync(arrived);
  }
}
)",
          {4},
          {64},
          {buffer(0), buffer(1), scalar(256)},
          [] {
            return Buffers{random_floats(256), zeros(1)};
          },
          [](Buffers& b) {
            for (int round = 0; round < 3; ++round) {
              std::rotate(b[0].begin(), b[0].begin() + 37, b[0].end());
              for (float& x : b[0]) x += 1;
            }
          },
          {"race", "race", "race", "race"}};
}

KernelCase labeled_groups() {
  return {"labeled_groups",
          R"(
extern "C" __global__ void k(const int* labels, const float* x, float* sums) {
  const int t = threadIdx.x, lane = t % 32, warp = t / 32;
  const unsigned group = __match_any_sync(~0u, labels[t]);
  const int rank = __popc(group & ((1u << lane) - 1)), size = __popc(group);
  float sum = x[t];
  for (int d = 1; d < 32; d *= 2) {
    const bool takes = rank + d < size && rank % (2 * d) == 0;
    const unsigned from = rank + d < size ? __fns(group, 0, rank + d + 1) : lane;
#if BUG == 1
    if (takes) sum += __shfl_sync(group, sum, from);  // finds 1
#else
    const float other = __shfl_sync(group, sum, from);
    if (takes) sum += other;
#endif
  }
#if BUG == 2
  if (rank == 0) sums[labels[t]] = sum;  // finds 2
#else
  if (rank == 0) sums[warp * 8 + labels[t]] = sum;
#endif
}
)",
          {1},
          {128},
          {buffer(0), buffer(1), buffer(2)},
          [] {
            std::vector<std::int32_t> labels;
            for (std::int32_t i = 0; i < 128; ++i) labels.push_back(i * i % 11 % 8);
            return Buffers{ints(labels), random_floats(128), zeros(32)};
          },
          [](Buffers& b) {
            for (std::size_t i = 0; i < 128; ++i) {
              b[2][i / 32 * 8 + static_cast<std::size_t>(to_int(b[0][i]))] += b[1][i];
            }
          },
          {"mask", "race"}};
}

KernelCase barrier_stages() {
  return {"barrier_stages",
          R"(
__device__ unsigned shared_address(const void* p) {
  return (unsigned)__cvta_generic_to_shared(p);
}
__device__ void wait(const unsigned long long* barrier, unsigned parity) {
  unsigned done = 0;
  while (!done) {
    asm volatile(
        "{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"
        : "=r"(done) : "r"(shared_address(barrier)), "r"(parity) : "memory");
  }
}
// Each thread copies a word; a barrier for each of two stages waits for the copies of all.
extern "C" __global__ void k(const float* x, float* out, int steps) {
  __shared__ float tile[2][64];
  __shared__ unsigned long long full[2];
  const int t = threadIdx.x;
  if (t < 2) asm volatile("mbarrier.init.shared.b64 [%0], 64;" :: "r"(shared_address(&full[t])) : "memory");
  __syncthreads();
  const auto fetch = [&](int step) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(shared_address(&tile[step % 2][t])), "l"(x + step * 64 + t) : "memory");
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" :: "r"(shared_address(&full[step % 2])) : "memory");
  };
  float sum = 0;
  fetch(0);  // finds 1 // finds 2 // finds 3 // finds 4
  for (int step = 0; step < steps; ++step) {
    if (step + 1 < steps) fetch(step + 1);  // finds 1 // finds 2 // finds 3 // finds 4
#if BUG == 1
    wait(&full[step % 2], step / 2 % 2 ^ 1);
#elif BUG == 4
    __syncthreads();
#elif BUG != 2
    wait(&full[step % 2], step / 2 % 2);
#endif
    sum += tile[step % 2][63 - t];  // finds 1 // finds 2 // finds 3 // finds 4
#if BUG != 3
    __syncthreads();
#endif
  }
  out[t] = sum;
}
)",
          {1},
          {64},
          {buffer(0), output(1), scalar(5)},
          [] {
            return Buffers{random_floats(320), zeros(64)};
          },
          [](Buffers& b) {
            for (std::size_t i = 0; i < 320; ++i) b[1][63 - i % 64] += b[0][i];
          },
          {"race", "race", "race", "race"}};
}

/// The last tile of a sort or a select: threads without an element store what they have, also for
/// others who pass it on, and nobody uses it.
KernelCase staged_tail() {
  return {"staged_tail",
          R"(
extern "C" __global__ void k(const float* x, float* out, int n) {
  __shared__ float tile[64], turned[64];
  const int t = threadIdx.x;
  float mine;
  if (t < n) mine = x[t];
  tile[t] = mine;
  __syncthreads();
  turned[t] = tile[63 - t];
  __syncthreads();
#if BUG == 1
  if (t <= n) out[t] = turned[63 - t];  // finds 1
#else
  if (t < n) out[t] = turned[63 - t];
#endif
#if BUG == 2
  out[t] = mine;  // finds 2
#endif
}
)",
          {1},
          {64},
          {buffer(0), buffer(1), scalar(50)},
          [] {
            return Buffers{ramp(64), zeros(64)};
          },
          [](Buffers& b) {
            for (std::size_t i = 0; i < 50; ++i) b[1][i] = b[0][i];
          },
          {"uninitialized", "uninitialized"}};
}

/// A loop that loads for its next turn also loads in the last one, behind what was written.
KernelCase dropped_prefetch() {
  return {"dropped_prefetch",
          R"(
extern "C" __global__ void k(const float* x, float* out, int n) {
  __shared__ float tile[8][32];
  const int t = threadIdx.x;
  for (int i = 0; i < n; ++i) tile[i][t] = x[i * 32 + t];
  __syncthreads();
  float next = tile[0][31 - t], sum = 0;
#if BUG == 1
  ++n;
#endif
#pragma unroll 1
  for (int i = 0; i < n; ++i) {  // finds 1 // finds 2
    sum += next;
    next = tile[i + 1][31 - t];
  }
#if BUG == 2
  sum += next;
#endif
  out[t] = sum;
}
)",
          {1},
          {32},
          {buffer(0), output(1), scalar(5)},
          [] {
            return Buffers{small_integers(160, 5), zeros(32)};
          },
          [](Buffers& b) {
            for (std::size_t i = 0; i < 160; ++i) b[1][31 - i % 32] += b[0][i];
          },
          {"uninitialized", "uninitialized"}};
}

/// The programming guide's atomicAdd by compare-and-swap. Its first read is a plain one.
KernelCase guessed_sum() {
  return {"guessed_sum",
          R"(
extern "C" __global__ void k(const float* x, int* sum) {
  int old = sum[0];  // finds 1 // finds 2 // finds 3 // finds 4
#if BUG == 4
  asm volatile("{.reg .pred p; setp.lt.u32 p, %1, 40; selp.b32 %0, %0, 0, p;}"
               : "+r"(old) : "r"(threadIdx.x));
#endif
#if BUG == 1
  if (old > 100) return;
#endif
  for (int expected = old + 1; expected != old;) {
    expected = old;
#if BUG == 2 || BUG == 4
    atomicAdd(sum, 1);
    old = atomicCAS(sum + 1, expected, __float_as_int(__int_as_float(expected) + x[threadIdx.x]));
#elif BUG == 3
    old = atomicCAS(sum, 0, expected);
    old = expected;
#else
    old = atomicCAS(sum, expected, __float_as_int(__int_as_float(expected) + x[threadIdx.x]));
#endif
  }
}
)",
          {1},
          {64},
          {buffer(0), buffer(1)},
          [] {
            return Buffers{ramp(64), zeros(2)};
          },
          [](Buffers& b) { b[1][0] = 64 * 65 / 2.0F; },
          {"race", "race", "race", "race"},
          1,
          nullptr,
          "as a guess that a swap verifies"};
}

/// As FlashInfer's prefill and llama.cpp's products leave rows of a tile that nobody needs: a row
/// of the result is made of the same row of the left operand, in four lanes.
KernelCase rows_of_a_product() {
  return {"rows_of_a_product",
          R"(
extern "C" __global__ void k(const float* x, float* out) {
  __shared__ alignas(16) unsigned rows[16][8];
  const int lane = threadIdx.x;
  unsigned both;  // of rows 0 to 3
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(x[2 * lane + 1]), "f"(x[2 * lane]));
  rows[lane / 8][lane % 8] = both;
  __syncwarp();
  unsigned a[4];
  const unsigned at = (unsigned)__cvta_generic_to_shared(&rows[lane % 16][lane / 16 * 4]);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(at));  // finds 1 // finds 2 // finds 3
  float d[4] = {};
  const unsigned ones = 0x3c003c00;
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
               "{%4, %5, %6, %7}, {%8, %8}, {%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(ones));
  d[0] += __shfl_xor_sync(~0u, d[0], BUG == 3 ? 16 : 1);
  if (lane < (BUG == 2 ? 20 : 16)) out[lane] = BUG == 1 ? d[2] : d[0];
}
)",
          {1},
          {32},
          {buffer(0), buffer(1)},
          [] {
            return Buffers{small_integers(64, 5), zeros(32)};
          },
          [](Buffers& b) {
            for (std::size_t i = 0; i < 64; ++i) {
              for (std::size_t lane = 0; lane < 4; ++lane) b[1][i / 16 * 4 + lane] += 2 * b[0][i];
            }
          },
          {"uninitialized", "uninitialized", "uninitialized"}};
}

/// A merge reads a key past the end of its part, and does not take it.
KernelCase guarded_compare() {
  return {"guarded_compare",
          R"(
extern "C" __global__ void k(const int* x, int* out, int n) {
  __shared__ int keys[64];
  const int t = threadIdx.x;
  keys[t] = x[t];
  int key = 5;
#if BUG == 1
  n += 8;
#endif
#pragma unroll 1
  for (int i = t; i < t + 64; i += 32) {
    __syncthreads();
    const int other = keys[i];  // finds 1
    const bool takes = i < n && other > key;
    key = takes ? other : key;
  }
  out[t] = key;
}
)",
          {1},
          {32},
          {buffer(0), output(1), scalar(32)},
          [] {
            std::vector<std::int32_t> keys;
            for (std::int32_t i = 0; i < 32; ++i) keys.push_back(i);
            return Buffers{ints(keys), zeros(32)};
          },
          [](Buffers& b) {
            for (std::size_t i = 0; i < 32; ++i) {
              b[1][i] = int_bits(std::max(5, static_cast<std::int32_t>(i)));
            }
          },
          {"uninitialized"}};
}

/// A row of a product and a multiple of it pass through memory of the block; what comes of rows
/// that nobody wrote is dropped at last, as in the epilogues of FlashAttention.
KernelCase staged_rows() {
  return {"staged_rows",
          R"(
extern "C" __global__ void k(const float* x, float* out, int n) {
  __shared__ alignas(16) unsigned rows[16][8];
  __shared__ float staged[16][8], twice[16][8];
  const int lane = threadIdx.x;
  for (int i = lane; i < n * 8; i += 32) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;"
        : "=r"(rows[i / 8][i % 8]) : "f"(x[2 * i + 1]), "f"(x[2 * i]));
  }
  __syncwarp();
  unsigned a[4];
  const unsigned at = (unsigned)__cvta_generic_to_shared(&rows[lane % 16][lane / 16 * 4]);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(at));  // finds 1 // finds 2 // finds 3
  float d[4] = {};
  const unsigned ones = 0x3c003c00;
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
               "{%4, %5, %6, %7}, {%8, %8}, {%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(ones));
  for (int e = 0; e < 4; ++e) staged[lane / 4 + e / 2 * 8][lane % 4 * 2 + e % 2] = d[e];
  __syncwarp();
  for (int i = lane; i < 128; i += 32) twice[i / 8][i % 8] = staged[i / 8][i % 8] * 2;
  __syncwarp();
  for (int i = lane; i < 128; i += 32) {
    const float value = twice[i / 8][i % 8];
    if (i / 8 < (BUG == 1 ? n + 1 : n)) out[i] = value;
#if BUG == 2
    if (i == n * 8 + 3 && value > 4) out[0] = 0;
#elif BUG == 3
    if (i == lane) out[0] = __shfl_down_sync(~0u, twice[15][i % 8], 1) + n;
#endif
  }
}
)",
          {1},
          {32},
          {buffer(0), buffer(1), scalar(11)},
          [] {
            return Buffers{small_integers(256, 5), zeros(128)};
          },
          [](Buffers& b) {
            for (std::size_t i = 0; i < 11 * 16; ++i) {
              for (std::size_t c = 0; c < 8; ++c) b[1][i / 16 * 8 + c] += 2 * b[0][i];
            }
          },
          {"uninitialized", "uninitialized", "uninitialized"}};
}

}  // namespace

std::vector<KernelCase> library_kernels() {
  return {block_radix_sort(), cooperative_grid(), labeled_groups(), barrier_stages(),
          staged_tail(),      dropped_prefetch(), guessed_sum(),    rows_of_a_product(),
          guarded_compare(),  staged_rows()};
}

}  // namespace braid::testing
