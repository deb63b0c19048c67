// Kernels whose warps or blocks hand data to each other by a protocol of their own.

#include <numeric>

#include "sanitizer/kernels.h"

namespace braid::testing {

namespace {

KernelCase warp_specialized() {
  return {"warp_specialized",
          R"(
// Warp 0 fills two slots, warp 1 empties them. Barriers 1, 2: slot 0, 1 is full; 3, 4: is empty.
#if BUG == 4
#define ARRIVE(id) asm volatile("bar.arrive %0, 96;" :: "n"(id) : "memory")
#else
#define ARRIVE(id) asm volatile("bar.arrive %0, 64;" :: "n"(id) : "memory")
#endif
#define WAIT(id) asm volatile("bar.sync %0, 64;" :: "n"(id) : "memory")
extern "C" __global__ void k(const float* x, float* out, int steps) {
  __shared__ float slot[2][32];
  const int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    for (int s = 0; s < steps; ++s) {
      if (s % 2 == 0) WAIT(3); else WAIT(4);  // finds 3 // finds 4
#if BUG == 2
      if (s % 2 == 0) ARRIVE(1); else ARRIVE(2);
#endif
      slot[s % 2][lane] = x[s * 32 + lane];  // finds 1 // finds 2
#if BUG != 2
      if (s % 2 == 0) ARRIVE(1); else ARRIVE(2);
#endif
    }
  } else {
    ARRIVE(3);
    ARRIVE(4);
    for (int s = 0; s < steps; ++s) {
      if (s % 2 == 0) WAIT(1); else WAIT(2);  // finds 3 // finds 4
#if BUG == 1
      if (s + 2 < steps) { if (s % 2 == 0) ARRIVE(3); else ARRIVE(4); }
#endif
      out[s * 32 + lane] = 2 * slot[s % 2][31 - lane];  // finds 1 // finds 2
#if BUG != 1 && BUG != 3
      if (s + 2 < steps) { if (s % 2 == 0) ARRIVE(3); else ARRIVE(4); }
#endif
    }
  }
}
)",
          {1},
          {64},
          {buffer(0), output(1), scalar(5)},
          [] {
            return Buffers{random_floats(160), zeros(160)};
          },
          [](Buffers& b) {
            for (std::size_t i = 0; i < 160; ++i) b[1][i] = 2 * b[0][i / 32 * 32 + 31 - i % 32];
          },
          {"race", "race", "deadlock", "deadlock"}};
}

KernelCase look_back() {
  return {"look_back",
          R"(
// A tile's state is 1 when its sum is known, 2 when the sum of all up to it is.
extern "C" __global__ void k(const float* x, float* out, int* next, int* states, float* sums, float* prefixes) {
  __shared__ float of_warp[2], before;
  __shared__ int tile;
  const int t = threadIdx.x, lane = t % 32;
  if (t == 0) tile = atomicAdd(next, 1);
  __syncthreads();
  float v = x[tile * 64 + t];
  for (int step = 1; step < 32; step *= 2) {
    const float left = __shfl_up_sync(~0u, v, step);
    if (lane >= step) v += left;
  }
  if (lane == 31) of_warp[t / 32] = v;
  __syncthreads();
  if (t >= 32) v += of_warp[0];
  if (t == 0) {
    volatile int* state = states;
    const float sum = of_warp[0] + of_warp[1];
    sums[tile] = sum;
#if BUG != 1
    __threadfence();
#endif
#if BUG == 4
    if (tile > 0) state[tile] = 1;
#else
    state[tile] = 1;
#endif
    float all = 0;
    for (int j = tile - 1; j >= 0; --j) {
      int seen = 0;
      while (seen == 0) seen = state[j];  // finds 4
#if BUG != 2
      __threadfence();
#endif
      if (seen == 2) {
        all += prefixes[j];  // finds 1 // finds 2
        break;
      }
      all += sums[j];  // finds 1 // finds 2
    }
    prefixes[tile] = all + sum;
#if BUG != 1
    __threadfence();
#endif
#if BUG == 4
    if (tile > 0) state[tile] = 2;
#else
    state[tile] = 2;
#endif
    before = all;  // finds 3
  }
#if BUG != 3
  __syncthreads();
#endif
  out[tile * 64 + t] = v + before;  // finds 3
}
)",
          {4},
          {64},
          {buffer(0), output(1), buffer(2), buffer(3), output(4), output(5)},
          [] { return Buffers{random_floats(256), zeros(256), {0}, zeros(4), zeros(4), zeros(4)}; },
          [](Buffers& b) {
            std::partial_sum(b[0].begin(), b[0].end(), b[1].begin());
            b[2][0] = int_bits(4);
            for (std::size_t i = 0; i < 256; ++i) b[4][i / 64] += b[0][i];
            b[3].assign(4, int_bits(2));
            std::partial_sum(b[4].begin(), b[4].end(), b[5].begin());
          },
          {"race", "race", "race", "deadlock"}};
}

KernelCase ring_buffer() {
  return {"ring_buffer",
          R"(
#define SLOTS 3
extern "C" __global__ void k(const float* x, float* ring, int* head, int* tail, float* out, int items) {
  const int t = threadIdx.x;
  if (blockIdx.x == 0) {
    for (int i = 0; i < items; ++i) {
      if (t == 0) {
        while (i - *(volatile int*)tail >= SLOTS) {}  // finds 4
#if BUG != 1
        __threadfence();
#endif
      }
      __syncthreads();
      ring[i % SLOTS * 64 + t] = x[i * 64 + t];  // finds 1 // finds 2
      __syncthreads();
      if (t == 0) {
#if BUG != 3
        __threadfence();
#endif
        *(volatile int*)head = i + 1;
      }
    }
  } else {
    for (int i = 0; i < items; ++i) {
      if (t == 0) {
        while (*(volatile int*)head <= i) {}  // finds 4
        __threadfence();
      }
      __syncthreads();
      out[i * 64 + t] = 2 * ring[i % SLOTS * 64 + 63 - t];  // finds 1 // finds 2 // finds 3
#if BUG != 2
      __syncthreads();
#endif
      if (t == 0) {
        __threadfence();
#if BUG != 4
        *(volatile int*)tail = i + 1;
#endif
      }
    }
  }
}
)",
          {2},
          {64},
          {buffer(0), output(1), buffer(2), buffer(3), output(4), scalar(7)},
          [] {
            return Buffers{ramp(448), zeros(192), {0}, {0}, zeros(448)};
          },
          [](Buffers& b) {
            for (std::size_t i = 0; i < 448; ++i) {
              b[1][i / 64 % 3 * 64 + i % 64] = b[0][i];
              b[4][i] = 2 * b[0][i / 64 * 64 + 63 - i % 64];
            }
            b[2][0] = b[3][0] = int_bits(7);
          },
          {"race", "race", "race", "deadlock"}};
}

KernelCase two_fences() {
  return {"two_fences",
          R"(
// Thread 0 hands one value to another block and one to another warp.
extern "C" __global__ void k(const float* x, float* box, int* flag, float* out) {
  __shared__ float near_box;
  __shared__ int near_flag;
  if (threadIdx.x == 0) near_flag = 0;
  __syncthreads();
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    *box = x[0];
#if BUG != 1
    __threadfence();
#endif
    near_box = x[1];
#if BUG != 2
    __threadfence_block();
#endif
    *(volatile int*)flag = 1;
    *(volatile int*)&near_flag = 1;
  } else if (blockIdx.x == 0 && threadIdx.x == 32) {
    while (*(volatile int*)&near_flag == 0) {}
    __threadfence_block();
    out[1] = near_box;  // finds 2
  } else if (blockIdx.x == 1 && threadIdx.x == 0) {
    while (*(volatile int*)flag == 0) {}
#if BUG == 3
    __threadfence_block();
#else
    __threadfence();
#endif
    out[0] = *box;  // finds 1 // finds 3
  }
}
)",
          {2},
          {64},
          {buffer(0), output(1), buffer(2), output(3)},
          [] {
            return Buffers{{7, 8}, {0}, {0}, {0, 0}};
          },
          [](Buffers& b) {
            b[1][0] = b[3][0] = 7;
            b[2][0] = int_bits(1);
            b[3][1] = 8;
          },
          {"race", "race", "race"}};
}

KernelCase ticket_lock() {
  return {"ticket_lock",
          R"(
extern "C" __global__ void k(int* next, int* serving, float* total, const float* x) {
  if (threadIdx.x != 0) return;
#if BUG == 4
  int ticket;
  asm volatile("atom.relaxed.cta.global.add.s32 %0, [%1], 1;" : "=r"(ticket) : "l"(next) : "memory");  // finds 4
#else
  const int ticket = atomicAdd(next, 1);
#endif
  while (*(volatile int*)serving != ticket) {}  // finds 3
#if BUG != 1
  __threadfence();
#endif
  *total += x[blockIdx.x];  // finds 1 // finds 2
#if BUG != 2
  __threadfence();
#endif
#if BUG != 3
  *(volatile int*)serving = ticket + 1;
#endif
}
)",
          {5},
          {32},
          {buffer(0), buffer(1), buffer(2), buffer(3)},
          [] {
            return Buffers{{0}, {0}, {0}, ramp(5)};
          },
          [](Buffers& b) {
            b[0][0] = b[1][0] = int_bits(5);
            b[2][0] = 15;
          },
          {"race", "race", "deadlock", "race"}};
}

/// A wait that gives up after some number of reads is no deadlock.
KernelCase bounded_poll() {
  return {"bounded_poll",
          R"(
extern "C" __global__ void k(volatile int* flag, int* out, int n) {
  int polls = 0;
#if BUG == 1
  while (flag[0] == 0) { }  // finds 1
#elif BUG == 2
  while (*(int*)flag == 0) { }  // finds 2
#else
  while (flag[0] == 0 && polls < n) ++polls;
#endif
  out[threadIdx.x] = polls;
}
)",
          {1},
          {64},
          {buffer(0), output(1), scalar(3000)},
          [] {
            return Buffers{zeros(1), zeros(64)};
          },
          [](Buffers& b) {
            for (float& value : b[1]) value = int_bits(3000);
          },
          {"deadlock", "deadlock"}};
}

/// A flag that its reader puts back by a plain store: what it has observed is over.
KernelCase flag_put_back() {
  return {"flag_put_back",
          R"(
extern "C" __global__ void k(const float* x, float* flags, float* part, float* out) {
  unsigned* flag = (unsigned*)flags;
  if (threadIdx.x > 0) return;
  if (blockIdx.x == 1) {
    part[0] = x[0];  // finds 1
#if BUG == 2
    *flag = 1;  // finds 2
#elif BUG == 1
    asm volatile("red.relaxed.gpu.global.add.u32 [%0], 1;" :: "l"(flag) : "memory");
#else
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" :: "l"(flag) : "memory");  // finds 3
#endif
  } else {
#if BUG == 3
    *flag = 0;  // finds 3
#else
    unsigned seen = 0;
    while (seen != 1) {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");  // finds 2
    }
    out[0] = part[0];  // finds 1
    *flag = 0;
#endif
  }
}
)",
          {2},
          {64},
          {buffer(0), buffer(1), buffer(2), output(3)},
          [] {
            return Buffers{ramp(1), zeros(1), zeros(1), zeros(1)};
          },
          [](Buffers& b) { b[3][0] = b[2][0] = b[0][0]; },
          {"race", "race", "race"}};
}

}  // namespace

std::vector<KernelCase> protocol_kernels() {
  return {bounded_poll(), warp_specialized(), look_back(),    ring_buffer(),
          two_fences(),   ticket_lock(),      flag_put_back()};
}

}  // namespace braid::testing
