// Kernels whose blocks talk to each other through global memory.

#include "sanitizer/kernels.h"

namespace braid::testing {

namespace {

void add_synchronizing_kernels_1(std::vector<KernelCase>& cases) {
  cases.push_back({"producer_consumer",
                   R"(
extern "C" __global__ void k(const float* x, float* box, int* flag, float* out) {
  if (blockIdx.x == 0) {
    box[threadIdx.x] = x[threadIdx.x];
#if BUG != 4
    __syncthreads();
#endif
    if (threadIdx.x == 0) {
#if BUG != 1
      __threadfence();
#endif
#if BUG != 2
      *(volatile int*)flag = 1;
#endif
    }
  } else {
    if (threadIdx.x == 0) {
      while (*(volatile int*)flag == 0) {}  // finds 2
#if BUG != 3
      __threadfence();
#endif
    }
    __syncthreads();
    out[threadIdx.x] = 2 * box[threadIdx.x];  // finds 1 // finds 3 // finds 4
  }
}
)",
                   {2},
                   {64},
                   {buffer(0), output(1), buffer(2), output(3)},
                   [] {
                     return Buffers{ramp(64), std::vector<float>(64), {0}, std::vector<float>(64)};
                   },
                   [](Buffers& b) {
                     b[1] = b[0];
                     b[2][0] = 1.4e-45F;  // the bits of 1
                     for (std::size_t i = 0; i < 64; ++i) b[3][i] = 2 * b[0][i];
                   },
                   {"race", "deadlock", "race", "race"}});

  cases.push_back({"release_acquire",
                   R"(
extern "C" __global__ void k(const float* x, float* box, int* flag, float* out) {
#if BUG == 1
#define RELEASE "st.relaxed.gpu.global.s32 [%0], %1;"
#elif BUG == 2
#define RELEASE "st.release.cta.global.s32 [%0], %1;"
#else
#define RELEASE "st.release.gpu.global.s32 [%0], %1;"
#endif
#if BUG == 3
#define ACQUIRE "ld.relaxed.gpu.global.s32 %0, [%1];"
#elif BUG == 4
#define ACQUIRE "ld.acquire.cta.global.s32 %0, [%1];"
#else
#define ACQUIRE "ld.acquire.gpu.global.s32 %0, [%1];"
#endif
  if (blockIdx.x == 0) {
    if (threadIdx.x != 0) return;
    box[0] = x[0];
    asm volatile(RELEASE :: "l"(flag), "r"(1) : "memory");  // finds 2
  } else if (threadIdx.x == 0) {
    int seen = 0;
    while (seen == 0) asm volatile(ACQUIRE : "=r"(seen) : "l"(flag) : "memory");  // finds 2 // finds 4
    out[0] = box[0];  // finds 1 // finds 2 // finds 3 // finds 4
  }
}
)",
                   {2},
                   {32},
                   {buffer(0), output(1), buffer(2), output(3)},
                   [] {
                     return Buffers{{5}, {0}, {0}, {0}};
                   },
                   [](Buffers& b) {
                     b[1][0] = b[3][0] = 5;
                     b[2][0] = 1.4e-45F;
                   },
                   {"race", "race", "race", "race"}});
}

void add_synchronizing_kernels_2(std::vector<KernelCase>& cases) {
  cases.push_back({"last_block_reduces",
                   R"(
extern "C" __global__ void k(const float* x, float* part, unsigned* count, float* out) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    float sum = 0;
    for (int i = 0; i < 16; ++i) sum += x[blockIdx.x * 16 + i];
    part[blockIdx.x] = sum;
#if BUG != 1
    __threadfence();
#endif
#if BUG == 2
    last = *count == gridDim.x - 1;  // finds 2
    *count += 1;  // finds 2
#else
    last = atomicAdd(count, 1u) == gridDim.x - 1;
#endif
#if BUG != 3
    __threadfence();
#endif
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    float sum = 0;
    for (int b = 0; b < gridDim.x; ++b) sum += part[b];  // finds 1 // finds 3
    *out = sum;
  }
}
)",
                   {4},
                   {32},
                   {buffer(0), output(1), buffer(2), output(3)},
                   [] {
                     return Buffers{ramp(64), std::vector<float>(4), {0}, {0}};
                   },
                   [](Buffers& b) {
                     for (std::size_t i = 0; i < 64; ++i) b[1][i / 16] += b[0][i];
                     b[2][0] = 5.6e-45F;  // the bits of 4
                     b[3][0] = 64 * 65 / 2;
                   },
                   {"race", "race", "race"}});

  cases.push_back(
      {"grid_barrier",
       R"(
__device__ void grid_sync(unsigned* count, unsigned blocks) {
#if BUG != 2
  __syncthreads();
#endif
  if (threadIdx.x == 0) {
#if BUG != 1
    __threadfence();
#endif
    atomicAdd(count, 1u);
#if BUG == 3
    while (*(volatile unsigned*)count < blocks + 1) {}  // finds 3
#else
    while (*(volatile unsigned*)count < blocks) {}
#endif
    __threadfence();
  }
  __syncthreads();
}
extern "C" __global__ void k(const float* x, float* box, unsigned* count, float* out) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  box[i] = x[i];
  grid_sync(count, gridDim.x);  // finds 3
  out[i] = box[gridDim.x * 64 - 1 - i];  // finds 1 // finds 2
}
)",
       {3},
       {64},
       {buffer(0), output(1), buffer(2), output(3)},
       [] {
         return Buffers{ramp(192), std::vector<float>(192), {0}, std::vector<float>(192)};
       },
       [](Buffers& b) {
         b[1] = b[0];
         b[2][0] = 4.2e-45F;  // the bits of 3
         b[3].assign(b[0].rbegin(), b[0].rend());
       },
       {"race", "race", "deadlock"}});
}

void add_synchronizing_kernels_3(std::vector<KernelCase>& cases) {
  cases.push_back({"spin_lock",
                   R"(
extern "C" __global__ void k(int* lock, float* total, const float* x) {
  if (threadIdx.x != 0) return;
  while (atomicCAS(lock, 0, 1) != 0) {}  // finds 2
#if BUG != 1
  __threadfence();
#endif
  *total += x[blockIdx.x];  // finds 1
#if BUG != 1
  __threadfence();
#endif
#if BUG != 2
  atomicExch(lock, 0);
#endif
}
)",
                   {5},
                   {32},
                   {buffer(0), buffer(1), buffer(2)},
                   [] {
                     return Buffers{{0}, {0}, ramp(5)};
                   },
                   [](Buffers& b) { b[1][0] = 15; },
                   {"race", "deadlock"}});

  cases.push_back({"dot_of_blocks",
                   R"(
extern "C" __global__ void k(const float* x, const float* y, float* out) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  float sum = x[i] * y[i];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
#if BUG == 1
  if (threadIdx.x % 32 == 0) *out += sum;  // finds 1
#elif BUG == 2
  if (threadIdx.x % 32 == 0) atomicAdd(out + threadIdx.x / 32, sum);  // finds 2
#else
  if (threadIdx.x % 32 == 0) atomicAdd(out, sum);
#endif
}
)",
                   {3},
                   {64},
                   {buffer(0), buffer(1), buffer(2)},
                   [] {
                     return Buffers{ramp(192), std::vector<float>(192, 0.5F), {0}};
                   },
                   [](Buffers& b) { b[2][0] = 192 * 193 / 4.0F; },
                   {"race", "bounds"}});
}

/// More warps read a word than mostly do; the last of them are not waited for.
void add_many_readers(std::vector<KernelCase>& cases) {
  cases.push_back({"many_readers",
                   R"(
extern "C" __global__ void k(const float* x, float* out) {
  __shared__ float box[32];
  __shared__ int count;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (warp == 0) box[lane] = x[lane];
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
#if BUG == 1
  // They read in this order, which is none for what they read.
  if (warp > 4) while (*(volatile int*)&count < 128) {}
#endif
  if (warp != 0) out[(warp - 1) * 32 + lane] = box[lane];
#if BUG == 1
  if (warp != 0) atomicAdd(&count, 1);
  if (warp <= 4) asm volatile("bar.sync 1, 160;" ::: "memory");
  if (warp == 0) while (*(volatile int*)&count < 256) {}
#else
  __syncthreads();
#endif
  if (warp == 0) box[lane] = 0;  // finds 1
}
)",
                   {1},
                   {288},
                   {buffer(0), output(1)},
                   [] {
                     return Buffers{ramp(32), std::vector<float>(256)};
                   },
                   [](Buffers& b) {
                     for (std::size_t i = 0; i < 256; ++i) b[1][i] = b[0][i % 32];
                   },
                   {"race"}});
}

}  // namespace

std::vector<KernelCase> synchronizing_kernels() {
  std::vector<KernelCase> cases;
  add_synchronizing_kernels_1(cases);
  add_synchronizing_kernels_2(cases);
  add_synchronizing_kernels_3(cases);
  add_many_readers(cases);
  return cases;
}

}  // namespace braid::testing
