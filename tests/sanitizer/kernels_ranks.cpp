// Kernels that run on two ranks, which talk through each other's memory.

#include "sanitizer/kernels.h"

namespace braid::testing {

namespace {

KernelCase ping_pong() {
  return {"ping_pong",
          R"(
#if BUG == 1
#define RELEASE "st.relaxed.sys.global.s32 [%0], %1;"
#elif BUG == 3
#define RELEASE "st.release.gpu.global.s32 [%0], %1;"
#else
#define RELEASE "st.release.sys.global.s32 [%0], %1;"
#endif
#if BUG == 2
#define ACQUIRE "ld.relaxed.sys.global.s32 %0, [%1];"
#else
#define ACQUIRE "ld.acquire.sys.global.s32 %0, [%1];"
#endif
// Round r is played by rank r % 2 when its flag says r.
extern "C" __global__ void k(int rank, float* ball0, float* ball1, int* flag0, int* flag1, int rounds) {
  float *mine = rank == 0 ? ball0 : ball1, *theirs = rank == 0 ? ball1 : ball0;
  int *my_flag = rank == 0 ? flag0 : flag1, *their_flag = rank == 0 ? flag1 : flag0;
  if (threadIdx.x != 0) return;
  for (int r = rank; r < rounds; r += 2) {
    int seen = -1;
    while (seen != r) asm volatile(ACQUIRE : "=r"(seen) : "l"(my_flag) : "memory");  // finds 3 // finds 4
    *theirs = 2 * *mine + r;  // finds 1 // finds 2 // finds 3
#if BUG == 4
    asm volatile(RELEASE :: "l"(their_flag), "r"(r) : "memory");
#else
    asm volatile(RELEASE :: "l"(their_flag), "r"(r + 1) : "memory");  // finds 3
#endif
  }
}
)",
          {1},
          {32},
          {own_rank(), buffer(0, 0), output(1, 1), buffer(2, 0), buffer(3, 1), scalar(6)},
          [] {
            return Buffers{{1}, {0}, {0}, {0}};
          },
          [](Buffers& b) {
            for (std::size_t r = 0; r < 6; ++r) {
              b[(r + 1) % 2][0] = 2 * b[r % 2][0] + static_cast<float>(r);
            }
            b[2][0] = int_bits(6);
            b[3][0] = int_bits(5);
          },
          {"race", "race", "race", "deadlock"},
          2};
}

KernelCase halo_exchange() {
  return {
      "halo_exchange",
      R"(
// Rank 0 has the left half of a row. Halos take turns: one is written while the other is read.
extern "C" __global__ void k(int rank, float* x0, float* x1, float* halo0, float* halo1, int* flag0, int* flag1, int steps) {
  __shared__ float cell[66];
  const int t = threadIdx.x;
  float* x = rank == 0 ? x0 : x1;
  const float* mine = rank == 0 ? halo0 : halo1;
  float* theirs = rank == 0 ? halo1 : halo0;
  cell[t + 1] = x[t];
  if (t == 0) cell[0] = cell[65] = 0;
  __syncthreads();
  for (int s = 0; s < steps; ++s) {
    if (t == (rank == 0 ? 63 : 0)) {
      theirs[s % 2] = cell[t + 1];  // finds 4
#if BUG == 1
      __threadfence();
#elif BUG != 2
      __threadfence_system();
#endif
      *(volatile int*)(rank == 0 ? flag1 : flag0) = s + 1;
#if BUG != 4
      while (*(volatile int*)(rank == 0 ? flag0 : flag1) <= s) {}
#endif
#if BUG != 2
      __threadfence_system();
#endif
      cell[rank == 0 ? 65 : 0] = mine[s % 2];  // finds 1 // finds 2 // finds 4
    }
    __syncthreads();
    const float v = cell[t] + cell[t + 1] + cell[t + 2];  // finds 3
#if BUG != 3
    __syncthreads();
#endif
    cell[t + 1] = v;  // finds 3
#if BUG == 3
    __syncthreads();
#endif
  }
  x[t] = cell[t + 1];
}
)",
      {1},
      {64},
      {own_rank(), buffer(0, 0), buffer(1, 1), output(2, 0), output(3, 1), buffer(4, 0),
       buffer(5, 1), scalar(4)},
      [] { return Buffers{random_floats(64), random_floats(64, 2), zeros(2), zeros(2), {0}, {0}}; },
      [](Buffers& b) {
        for (std::size_t s = 0; s < 4; ++s) {
          b[2][s % 2] = b[1][0];
          b[3][s % 2] = b[0][63];
          std::vector<float> row = {0};
          row.insert(row.end(), b[0].begin(), b[0].end());
          row.insert(row.end(), b[1].begin(), b[1].end());
          row.push_back(0);
          for (std::size_t i = 0; i < 128; ++i) {
            b[i / 64][i % 64] = row[i] + row[i + 1] + row[i + 2];
          }
        }
        b[4][0] = b[5][0] = int_bits(4);
      },
      {"race", "race", "race", "race"},
      2};
}

KernelCase all_reduce() {
  return {"all_reduce",
          R"(
extern "C" __global__ void k(int rank, const float* x0, const float* x1, float* box0, float* box1, int* count0, int* count1, float* out0, float* out1) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  (rank == 0 ? box0 : box1)[i] = 2 * (rank == 0 ? x0 : x1)[i];
#if BUG != 3
  __syncthreads();
#endif
  if (threadIdx.x == 0) {
    int* theirs = (rank == 0 ? count1 : count0) + blockIdx.x;
    volatile int* mine = (rank == 0 ? count0 : count1) + blockIdx.x;
#if BUG == 2
    __threadfence();
#else
    __threadfence_system();
#endif
#if BUG == 1
    atomicAdd(theirs, 1);  // finds 1
#else
    asm volatile("red.relaxed.sys.global.add.s32 [%0], 1;" :: "l"(theirs) : "memory");
#endif
    while (*mine == 0) {}  // finds 1
#if BUG != 4
    __threadfence_system();
#endif
  }
  __syncthreads();
  (rank == 0 ? out0 : out1)[i] = box0[i] + box1[i];  // finds 2 // finds 3 // finds 4
}
)",
          {2},
          {64},
          {own_rank(), buffer(0, 0), buffer(1, 1), output(2, 0), output(3, 1), buffer(4, 0),
           buffer(5, 1), output(6, 0), output(7, 1)},
          [] {
            return Buffers{ramp(128), random_floats(128), zeros(128), zeros(128),
                           zeros(2),  zeros(2),           zeros(128), zeros(128)};
          },
          [](Buffers& b) {
            for (std::size_t i = 0; i < 128; ++i) {
              b[2][i] = 2 * b[0][i];
              b[3][i] = 2 * b[1][i];
              b[6][i] = b[7][i] = b[2][i] + b[3][i];
            }
            b[4].assign(2, int_bits(1));
            b[5] = b[4];
          },
          {"race", "race", "race", "race"},
          2};
}

}  // namespace

std::vector<KernelCase> two_rank_kernels() { return {ping_pong(), halo_exchange(), all_reduce()}; }

}  // namespace braid::testing
