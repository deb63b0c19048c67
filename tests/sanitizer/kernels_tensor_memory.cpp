// Kernels of tcgen05: who waits for products, and what tensor memory holds.

#include <string>

#include "sanitizer/kernels.h"

namespace braid::testing {

namespace {

/// What the kernels share. Tiles are K-major without a swizzle: blocks of 8 rows of 8 elements, one
/// below the other, then the next 8 elements of k. Products are of 128 x 16 x 16.
constexpr const char* kWords = R"(
typedef unsigned u32; typedef unsigned long long u64; typedef unsigned short u16;
__device__ u16 bf(float x) { return __float_as_uint(x) >> 16; }
__device__ u32 at(const void* p) { return (u32)__cvta_generic_to_shared(p); }
__device__ u64 tile(const void* p, int rows) {
  return (at(p) & 0x3ffff) >> 4 | (u64)rows << 16 | (u64)8 << 32 | (u64)1 << 46;
}
__device__ int place(int row, int k, int rows) { return k / 8 * rows * 8 + row * 8 + k % 8; }
#define TYPES (1 << 4 | 1 << 7 | 1 << 10 | 16 / 8 << 17 | 128 / 16 << 24)
#define ALLOC(p, n) asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], " #n ";" ::"r"(at(p)) : "memory")
#define DEALLOC(d, n) asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, " #n ";" ::"r"(d) : "memory")
#define PROXY asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
#define INIT(b) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(b)) : "memory")
#define MMA(d, a, b, adds) asm volatile("{.reg .pred p; setp.ne.b32 p, %4, 0; " \
    "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;}" \
    ::"r"(d), "l"(a), "l"(b), "r"(TYPES), "r"((int)(adds)) : "memory")
#define MMA_T(d, a, b) asm volatile("{.reg .pred p; setp.ne.b32 p, 0, 0; " \
    "tcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, p;}" \
    ::"r"(d), "r"(a), "l"(b), "r"(TYPES) : "memory")
#define COMMIT(b) asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(at(b)) : "memory")
#define AFTER asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory")
#define BEFORE asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory")
#define WAIT_LD asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory")
#define WAIT_ST asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory")
#define WAIT(how, b, parity) asm volatile("{.reg .pred p; again: mbarrier.try_wait.parity" how ".shared::cta.b64 p, [%0], %1; @!p bra again;}" \
    ::"r"(at(b)), "r"(parity) : "memory")
#define LD8(v, d) asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];" \
    : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]), "=r"(v[4]), "=r"(v[5]), "=r"(v[6]), "=r"(v[7]) : "r"(d) : "memory")
#define ST8(d, v) asm volatile("tcgen05.st.sync.aligned.32x32b.x8.b32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8};" \
    ::"r"(d), "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]), "r"(v[4]), "r"(v[5]), "r"(v[6]), "r"(v[7]) : "memory")
)";

/// A bulk copy to where the address of tensor memory was.
KernelCase copy_over_the_address() {
  return {"tcgen05_address",
          std::string(kWords) + R"(
extern "C" __global__ void k(const float* x, float* out) {
  __shared__ __align__(16) float box[32];
  __shared__ u64 full;
  const int t = threadIdx.x;
  ALLOC(box, 32);
  if (t == 0) INIT(&full);
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  __syncthreads();
  const u32 d = *(volatile u32*)box;
#if BUG == 1
  *(volatile float*)box = 1;
#endif
  __syncthreads();
  if (t == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" ::"r"(at(&full)) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];" ::"r"(at(box)), "l"(x), "r"(at(&full)) : "memory");  // finds 1
  }
  WAIT("", &full, 0);
  out[t] = box[t];
  DEALLOC(d, 32);
}
)",
          {1},
          {32},
          {buffer(0), output(1)},
          [] {
            return Buffers{ramp(32), zeros(32)};
          },
          [](Buffers& b) { b[1] = b[0]; },
          {"proxy"},
          1,
          nullptr,
          "",
          "sm_100a"};
}

/// Steps of k through one stage of shared memory, then what each warp has of the sums.
KernelCase product_of_tiles() {
  return {
      "tcgen05_tiles",
      std::string(kWords) + R"(
extern "C" __global__ void k(const float* x, const float* y, float* out) {
  __shared__ __align__(128) u16 a[128 * 16], b[16 * 16];
  __shared__ u64 done;
  __shared__ u32 where;
  const int t = threadIdx.x;
  if (t < 32) ALLOC(&where, 32);  // finds 7
  if (t == 0) INIT(&done);
  __syncthreads();
  const u32 d = where;
  for (int step = 0; step < 3; ++step) {
    for (int i = t; i < 128 * 16; i += 128) a[place(i / 16, i % 16, 128)] = bf(x[i / 16 * 48 + step * 16 + i % 16]);  // finds 5 // finds 11
    for (int i = t; i < 16 * 16; i += 128) b[place(i / 16, i % 16, 16)] = bf(y[i / 16 * 48 + step * 16 + i % 16]);
#if BUG != 1
    PROXY;
#endif
#if BUG != 2
    __syncthreads();
#endif
    if (t == 0) {
#if BUG == 9
      MMA(d, tile(a, 128), tile(b, 16), 1);  // finds 9
#else
      MMA(d, tile(a, 128), tile(b, 16), step);  // finds 1 // finds 2
#endif
#if BUG != 4
#if BUG == 13
    }
    if (t == 1) {
#endif
      COMMIT(&done);
#endif
    }
#if BUG == 3
    if (step == 2) continue;
#endif
#if BUG == 11
    if (step == 0) continue;
    if (step == 1) WAIT("", &done, 0);
#endif
#if BUG == 5
    WAIT("", &done, 1 - step % 2);
#elif BUG == 12
    WAIT(".relaxed.cta", &done, step % 2);
    __syncthreads();
#else
    WAIT("", &done, step % 2);  // finds 4
#endif
#if BUG != 12
    AFTER;
#endif
  }
  u32 v[8];
  const u32 own = d + (t / 32 * 32 << 16);
#if BUG == 10
  __syncthreads();
  if (t < 32) DEALLOC(d, 32);
  __syncthreads();
#endif
  for (int n = 0; n < 16; n += 8) {
#if BUG == 8
    LD8(v, own + n + 4);  // finds 8
#else
    LD8(v, own + n);  // finds 3 // finds 10 // finds 12 // finds 13
#endif
#if BUG != 6
    WAIT_LD;
#endif
    for (int i = 0; i < 8; ++i) out[t * 16 + n + i] = __uint_as_float(v[i]);
  }
  BEFORE;
  __syncthreads();
#if BUG != 7 && BUG != 10
  if (t < 32) DEALLOC(d, 32);  // finds 6
#endif
}
)",
      {1},
      {128},
      {buffer(0), buffer(1), output(2)},
      [] {
        return Buffers{small_integers(128 * 48, 5), small_integers(16 * 48, 7), zeros(128 * 16)};
      },
      [](Buffers& b) { dot_products(b, 128, 48); },
      {"proxy", "race", "race", "deadlock", "race", "race", "unfinished", "uninitialized",
       "uninitialized", "bounds", "race", "race", "race"},
      1,
      nullptr,
      "",
      "sm_100a"};
}

/// A is in tensor memory, where all warps put it.
KernelCase product_of_stores() {
  return {
      "tcgen05_stores",
      std::string(kWords) + R"(
extern "C" __global__ void k(const float* x, const float* y, float* out) {
  __shared__ __align__(128) u16 b[16 * 16];
  __shared__ u64 done;
  __shared__ u32 where;
  const int t = threadIdx.x;
  if (t < 32) ALLOC(&where, 64);
  if (t == 0) INIT(&done);
  for (int i = t; i < 16 * 16; i += 128) b[place(i / 16, i % 16, 16)] = bf(y[i]);
  PROXY;
  __syncthreads();
  const u32 d = where, own = d + (t / 32 * 32 << 16);
  u32 v[8];
  for (int i = 0; i < 8; ++i) v[i] = bf(x[t * 16 + 2 * i]) | (u32)bf(x[t * 16 + 2 * i + 1]) << 16;
#if BUG == 2
  ST8(own + 36, v);
#else
  ST8(own + 32, v);  // finds 4
#endif
#if BUG != 1
  WAIT_ST;
#endif
  BEFORE;
#if BUG != 3
  __syncthreads();
#endif
  AFTER;
  if (t == 0) {
    MMA_T(d, d + 32, tile(b, 16));  // finds 1 // finds 2 // finds 3
    COMMIT(&done);
  }
#if BUG == 4
  ST8(own + 32, v);  // finds 4
#endif
  WAIT("", &done, 0);
  AFTER;
  for (int n = 0; n < 16; n += 8) {
    LD8(v, own + n);
    WAIT_LD;
    for (int i = 0; i < 8; ++i) out[t * 16 + n + i] = __uint_as_float(v[i]);
  }
#if BUG == 4
  WAIT_ST;
#endif
  BEFORE;
  __syncthreads();
  if (t < 32) DEALLOC(d, 64);
}
)",
      {1},
      {128},
      {buffer(0), buffer(1), output(2)},
      [] {
        return Buffers{small_integers(128 * 16, 5), small_integers(16 * 16, 7), zeros(128 * 16)};
      },
      [](Buffers& b) { dot_products(b, 128, 16); },
      {"race", "uninitialized", "race", "race"},
      1,
      nullptr,
      "",
      "sm_100a"};
}

}  // namespace

std::vector<KernelCase> tensor_memory_kernels() {
  return {copy_over_the_address(), product_of_tiles(), product_of_stores()};
}

}  // namespace braid::testing
