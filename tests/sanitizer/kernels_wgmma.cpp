// Kernels of warp groups: wgmma, what it reads and when.

#include <algorithm>
#include <string>

#include "sanitizer/kernels.h"

namespace braid::testing {

namespace {

/// What the kernels share. Tiles are K-major without a swizzle: blocks of 8 rows of 8 elements, one
/// below the other, then the next 8 elements of k.
constexpr const char* kWords = R"(
typedef unsigned u32; typedef unsigned long long u64; typedef unsigned short u16;
__device__ u16 bf(float x) { return __float_as_uint(x) >> 16; }
__device__ u32 pair(float x, float y) { return bf(x) | (u32)bf(y) << 16; }
__device__ u32 at(const void* p) { return (u32)__cvta_generic_to_shared(p); }
__device__ u64 tile(const void* p, int rows) {
  return (at(p) & 0x3ffff) >> 4 | (u64)rows << 16 | (u64)8 << 32;
}
__device__ int place(int row, int k, int rows) { return k / 8 * rows * 8 + row * 8 + k % 8; }
#define FENCE asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define COMMIT asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory")
#define WAIT(n) asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(n) : "memory")
#define PROXY asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
#define SUMS(d) "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
#define MMA(d, a, b) asm volatile("{.reg .pred p; setp.eq.b32 p, 0, 0; " \
    "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 " \
    "{%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, p, 1, 1, 0, 0;}" : SUMS(d) : "l"(a), "l"(b) : "memory")
#define MMA_R(d, a, b) asm volatile("{.reg .pred p; setp.eq.b32 p, 0, 0; " \
    "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 " \
    "{%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9, %10, %11}, %12, p, 1, 1, 0;}" \
    : SUMS(d) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b) : "memory")
)";

KernelCase product_of_tiles() {
  return {"wgmma_tiles",
          std::string(kWords) + R"(
extern "C" __global__ void k(const float* x, const float* y, float* out) {
  __shared__ __align__(128) u16 a[64 * 32], b[16 * 32];
  const int t = threadIdx.x;
  float d[8] = {};
  for (int k0 = 0; k0 < 64; k0 += 32) {
    for (int i = t; i < 64 * 32; i += 128)
      a[place(i / 32, i % 32, 64)] = bf(x[i / 32 * 64 + k0 + i % 32]);  // finds 5
    for (int i = t; i < 16 * 32; i += 128) b[place(i / 32, i % 32, 16)] = bf(y[i / 32 * 64 + k0 + i % 32]);
#if BUG == 5
    if (k0 != 0) WAIT(0);
#endif
#if BUG != 1
    PROXY;
#endif
#if BUG != 2
    __syncthreads();
#endif
#if BUG != 3
    FENCE;
#endif
    MMA(d, tile(a, 64), tile(b, 16));  // finds 1 // finds 2 // finds 3
#if BUG == 6
    if (t < 96)
#endif
    MMA(d, tile(a + 2 * 64 * 8, 64), tile(b + 2 * 16 * 8, 16));
#if BUG != 7
    COMMIT;
#endif
#if BUG == 4
    WAIT(1);
#elif BUG == 5
    if (k0 != 0) continue;
#else
    WAIT(0);  // finds 6
#endif
#if BUG != 5
    for (int i = 0; i < 8; ++i) d[i] *= 0.5f;  // finds 4 // finds 7
#endif
#if BUG == 8
    FENCE;
    d[1] += 1;
    MMA(d, tile(a, 64), tile(b, 16));  // finds 8
    COMMIT;
    WAIT(0);
#endif
  }
#if BUG == 5
  WAIT(0);
#endif
  const int row = t / 32 * 16 + t % 32 / 4, column = t % 4 * 2;
  for (int i = 0; i < 8; ++i) out[(row + i / 2 % 2 * 8) * 16 + column + i / 4 * 8 + i % 2] = d[i];
}
)",
          {1},
          {128},
          {buffer(0), buffer(1), output(2)},
          [] {
            return Buffers{small_integers(64 * 64, 5), small_integers(16 * 64, 7), zeros(64 * 16)};
          },
          [](Buffers& b) {
            for (std::size_t row = 0; row < 64; ++row) {
              for (std::size_t column = 0; column < 16; ++column) {
                float sum = 0;
                for (std::size_t i = 0; i < 64; ++i) {
                  sum += b[0][row * 64 + i] * b[1][column * 64 + i];
                  if (i % 32 == 31) sum /= 2;
                }
                b[2][row * 16 + column] = sum;
              }
            }
          },
          {"proxy", "race", "race", "race", "race", "race", "race", "race"}};
}

/// Two groups of products read one tile, the first more often than a warp does mostly.
KernelCase two_groups_of_one_tile() {
  return {"wgmma_two_groups",
          std::string(kWords) + R"(
extern "C" __global__ void k(const float* x, const float* y, float* out) {
  __shared__ __align__(128) u16 a[64 * 16], b[16 * 16];
  const int t = threadIdx.x;
  for (int i = t; i < 64 * 16; i += 128) a[place(i / 16, i % 16, 64)] = bf(x[i]);
  for (int i = t; i < 16 * 16; i += 128) b[place(i / 16, i % 16, 16)] = bf(y[i]);
  PROXY;
  __syncthreads();
  float d[8] = {}, e[8] = {};
  FENCE;
  MMA(d, tile(a, 64), tile(b, 16));
  MMA(d, tile(a, 64), tile(b, 16));
  MMA(d, tile(a, 64), tile(b, 16));
  MMA(d, tile(a, 64), tile(b, 16));
  COMMIT;
  MMA(e, tile(a, 64), tile(b, 16));
  COMMIT;
#if BUG == 1
  WAIT(1);
#else
  WAIT(0);
#endif
  __syncthreads();
  for (int i = t; i < 64 * 16; i += 128) a[i] = 0;  // finds 1
  WAIT(0);
  const int row = t / 32 * 16 + t % 32 / 4, column = t % 4 * 2;
  for (int i = 0; i < 8; ++i)
    out[(row + i / 2 % 2 * 8) * 16 + column + i / 4 * 8 + i % 2] = d[i] + e[i];
}
)",
          {1},
          {128},
          {buffer(0), buffer(1), output(2)},
          [] {
            return Buffers{small_integers(64 * 16, 5), small_integers(16 * 16, 7), zeros(64 * 16)};
          },
          [](Buffers& b) {
            for (std::size_t row = 0; row < 64; ++row) {
              for (std::size_t column = 0; column < 16; ++column) {
                float sum = 0;
                for (std::size_t i = 0; i < 16; ++i) {
                  sum += b[0][row * 16 + i] * b[1][column * 16 + i];
                }
                b[2][row * 16 + column] = 5 * sum;
              }
            }
          },
          {"race"}};
}

/// Tiles of tf32 that cp.async brings: nobody fences the proxy then.
KernelCase product_of_copies() {
  return {"wgmma_copies",
          std::string(kWords) + R"(
extern "C" __global__ void k(const float* x, const float* y, float* out) {
  __shared__ __align__(128) float a[64 * 8], b[16 * 8];
  const int t = threadIdx.x;
  for (int i = t; i < 80 * 2; i += 128) {
    const int row = i / 2, part = i % 2;
    float* to = row < 64 ? a + part * 64 * 4 + row * 4 : b + part * 16 * 4 + (row - 64) * 4;
    const float* from = row < 64 ? x + row * 8 + part * 4 : y + (row - 64) * 8 + part * 4;
#if BUG == 2
    for (int e = 0; e < 4; ++e) to[e] = from[e];
#else
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at(to)), "l"(from) : "memory");
#endif
  }
#if BUG != 1
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
  __syncthreads();
  float d[8] = {};
  FENCE;
  asm volatile("{.reg .pred p; setp.eq.b32 p, 0, 0; "
    "wgmma.mma_async.sync.aligned.m64n16k8.f32.tf32.tf32 "
    "{%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, p, 1, 1;}" : SUMS(d) : "l"(tile(a, 64)), "l"(tile(b, 16)) : "memory");  // finds 1 // finds 2
  COMMIT;
  WAIT(0);
  const int row = t / 32 * 16 + t % 32 / 4, column = t % 4 * 2;
  for (int i = 0; i < 8; ++i) out[(row + i / 2 % 2 * 8) * 16 + column + i / 4 * 8 + i % 2] = d[i];
}
)",
          {1},
          {128},
          {buffer(0), buffer(1), output(2)},
          [] {
            return Buffers{small_integers(64 * 8, 5), small_integers(16 * 8, 7), zeros(64 * 16)};
          },
          [](Buffers& b) { dot_products(b, 64, 8); },
          {"race", "proxy"}};
}

/// A is in registers: the square of a product's positive part, as attention has it.
KernelCase product_of_registers() {
  return {"wgmma_registers",
          std::string(kWords) + R"(
extern "C" __global__ void k(const float* x, const float* y, float* out) {
  __shared__ __align__(128) u16 b[16 * 16];
  const int t = threadIdx.x;
  const int row = t / 32 * 16 + t % 32 / 4, column = t % 4 * 2;
  for (int i = t; i < 16 * 16; i += 128) b[place(i / 16, i % 16, 16)] = bf(y[i]);
  u32 a[4];
  for (int r = 0; r < 4; ++r) {
    const float* from = x + (row + r % 2 * 8) * 16 + column + r / 2 * 8;
    a[r] = pair(from[0], from[1]);
  }
  PROXY;
  __syncthreads();
  float d[8] = {};
  FENCE;
  MMA_R(d, a, tile(b, 16));
  COMMIT;
#if BUG == 1
  asm volatile("xor.b32 %0, %0, 0x80008000;" : "+r"(a[2]));  // finds 1
  WAIT(0);
#else
  WAIT(0);
#endif
  float e[8] = {};
  for (int i = 0; i < 8; ++i) d[i] = fmaxf(d[i], 0);
#if BUG == 2
  FENCE;
#endif
  for (int r = 0; r < 4; ++r) a[r] = pair(d[2 * r], d[2 * r + 1]);
#if BUG != 2
  FENCE;
#endif
  MMA_R(e, a, tile(b, 16));  // finds 2
  COMMIT;
#if BUG == 3
  WAIT(1);
#else
  WAIT(0);
#endif
  for (int i = 0; i < 8; ++i)
    out[(row + i / 2 % 2 * 8) * 16 + column + i / 4 * 8 + i % 2] = e[i];  // finds 3
}
)",
          {1},
          {128},
          {buffer(0), buffer(1), output(2)},
          [] {
            std::vector<float> few = small_integers(16 * 16, 7);
            for (float& value : few) value = value > 0 ? 1.0F : value < -3 ? -1.0F : 0.0F;
            return Buffers{small_integers(64 * 16, 5), few, zeros(64 * 16)};
          },
          [](Buffers& b) {
            dot_products(b, 64, 16, 16, [](float sum) { return std::max(sum, 0.0F); });
            b[0] = b[2];
            dot_products(b, 64, 16);
            b[0] = small_integers(64 * 16, 5);
          },
          {"race", "race", "race"}};
}

/// One warp group brings tiles, two multiply: a ring of two stages, which one thread of each group
/// gives back.
KernelCase producer_and_consumers() {
  return {
      "wgmma_pipeline",
      std::string(kWords) + R"(
__device__ void arrive(u64* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at(barrier)) : "memory");
}
__device__ void wait(u64* barrier, int parity) {
  asm volatile("{.reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra again;}"
               ::"r"(at(barrier)), "r"(parity) : "memory");
}
extern "C" __global__ void k(const float* x, const float* y, float* out) {
  __shared__ __align__(128) u16 a[2][128 * 16], b[2][16 * 16];
  __shared__ u64 full[2], empty[2];
  const int t = threadIdx.x % 128, group = threadIdx.x / 128;
  if (threadIdx.x == 0) {
    for (int s = 0; s < 2; ++s) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at(&full[s])), "r"(128));
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at(&empty[s])), "r"(2));
    }
  }
  __syncthreads();
  if (group == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    for (int step = 0; step < 4; ++step) {
      const int s = step % 2;
      if (step >= 2) wait(&empty[s], (step / 2 - 1) % 2);
      for (int i = t; i < 128 * 16; i += 128)
        a[s][place(i / 16 % 64, i % 16, 64) + i / 1024 * 1024] = bf(x[i / 16 * 64 + step * 16 + i % 16]);  // finds 1
      for (int i = t; i < 16 * 16; i += 128) b[s][place(i / 16, i % 16, 16)] = bf(y[i / 16 * 64 + step * 16 + i % 16]);
#if BUG != 2
      PROXY;
#endif
      arrive(&full[s]);
    }
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  float d[8] = {};
  for (int step = 0; step < 4; ++step) {
    const int s = step % 2;
    wait(&full[s], step / 2 % 2);
    FENCE;
    MMA(d, tile(&a[s][(group - 1) * 1024], 64), tile(b[s], 16));  // finds 2
    COMMIT;
#if BUG == 1
    if (t == 0) arrive(&empty[s]);
    WAIT(0);
#else
    WAIT(0);
    if (t == 0) arrive(&empty[s]);
#endif
  }
  const int row = (group - 1) * 64 + t / 32 * 16 + t % 32 / 4, column = t % 4 * 2;
  for (int i = 0; i < 8; ++i) out[(row + i / 2 % 2 * 8) * 16 + column + i / 4 * 8 + i % 2] = d[i];
}
)",
      {1},
      {384},
      {buffer(0), buffer(1), output(2)},
      [] {
        return Buffers{small_integers(128 * 64, 5), small_integers(16 * 64, 7), zeros(128 * 16)};
      },
      [](Buffers& b) { dot_products(b, 128, 64); },
      {"race", "proxy"}};
}

/// -1, 0 and 1, of which long sums are short numbers.
std::vector<float> signs(std::size_t count, int step) {
  std::vector<float> values = small_integers(count, step);
  for (float& value : values) value = value > 2 ? 1.0F : value < -2 ? -1.0F : 0.0F;
  return values;
}

/// "%0, %1, .." and "+f"(d[0]), "+f"(d[1]), ..
std::string operands(int count, const char* before, const char* after) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += (i == 0 ? "" : ", ") + std::string(before) + std::to_string(i) + after;
  }
  return text;
}

/// Tiles of 128 columns under a swizzle, in two stages of which one is multiplied while the other
/// is filled; the product goes out by way of stmatrix.
KernelCase swizzled_product() {
  const std::string product =
      "#define MMA(d, a, b) asm volatile(\"{.reg .pred p; "
      "setp.eq.b32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" +
      operands(64, "%", "") +
      "}, %64, %65, p, 1, 1, 0, 0;}\" : " + operands(64, "\"+f\"(d[", "])") +
      " : \"l\"(a), \"l\"(b) : \"memory\")";
  return {"wgmma_swizzle",
          std::string(kWords) + "#undef MMA\n" + product + R"(
__device__ u64 swizzled(u32 a) { return a >> 4 | (u64)1 << 16 | (u64)64 << 32 | (u64)1 << 62; }
__device__ u32 turned(int row, int k) { return row * 128 + (k * 2 ^ row % 8 * 16); }
extern "C" __global__ void __launch_bounds__(128) k(const float* x, const float* y, float* out) {
  __shared__ __align__(1024) unsigned char tiles[2 * 3 * 8192];
  const int t = threadIdx.x, warp = t / 32, lane = t % 32;
  float d[64];
  for (int i = 0; i < 64; ++i) d[i] = 0;
  for (int step = 0; step < 4; ++step) {
    unsigned char* stage = tiles + step % 2 * 3 * 8192;
#if BUG != 1
    if (step >= 2) WAIT(1);
#endif
    for (int i = t; i < 3 * 64 * 32; i += 128) {
      const int row = i / 32, k = i % 32 * 2;
      const float* from = (row < 64 ? x + row * 256 : y + (row - 64) * 256) + step * 64 + k;
      *(u32*)(stage + row / 64 * 8192 + turned(row % 64, k)) = pair(from[0], from[1]);  // finds 1
    }
#if BUG != 2
    PROXY;
#endif
    __syncthreads();
    FENCE;
    for (int k = 0; k < 64; k += 16)
      MMA(d, swizzled(at(stage) + k * 2), swizzled(at(stage) + 8192 + k * 2));  // finds 2
    COMMIT;
  }
  WAIT(0);
  for (int j = 0; j < 16; j += 2) {
    const int row = warp * 16 + lane / 8 % 2 * 8 + lane % 8, column = (j + lane / 16) * 8;
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 ::"r"(at(tiles) + (row * 136 + column) * 2), "r"(pair(d[4 * j], d[4 * j + 1])),
                 "r"(pair(d[4 * j + 2], d[4 * j + 3])), "r"(pair(d[4 * j + 4], d[4 * j + 5])),
                 "r"(pair(d[4 * j + 6], d[4 * j + 7])) : "memory");
  }
#if BUG != 3
  __syncthreads();
#endif
  for (int i = t; i < 64 * 128; i += 128)
    out[i] = __uint_as_float((u32)((u16*)tiles)[i / 128 * 136 + i % 128] << 16);  // finds 3
}
)",
          {1},
          {128},
          {buffer(0), buffer(1), output(2)},
          [] {
            return Buffers{signs(64 * 256, 5), signs(128 * 256, 7), zeros(64 * 128)};
          },
          [](Buffers& b) { dot_products(b, 64, 256, 128); },
          {"race", "proxy", "race"}};
}

/// Numbers of 8 bits.
KernelCase product_of_bytes() {
  return {"wgmma_float8",
          std::string(kWords) + R"(
__device__ u16 bytes(float x, float y) {
  u16 both;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(both) : "f"(y), "f"(x));
  return both;
}
extern "C" __global__ void k(const float* x, const float* y, float* out) {
  __shared__ __align__(128) u16 a[64 * 32], b[16 * 32];
  const int t = threadIdx.x;
  for (int i = t; i < 64 * 32; i += 128) a[place(i / 32, i % 32, 64)] = bytes(x[2 * i], x[2 * i + 1]);
  for (int i = t; i < 16 * 32; i += 128) b[place(i / 32, i % 32, 16)] = bytes(y[2 * i], y[2 * i + 1]);
  PROXY;
  __syncthreads();
  float d[8] = {};
  FENCE;
  for (int k = 0; k < 2; ++k) {
    asm volatile("{.reg .pred p; setp.eq.b32 p, 0, 0; "
        "wgmma.mma_async.sync.aligned.m64n16k32.f32.e4m3.e4m3 "
        "{%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, p, 1, 1;}"
        : SUMS(d) : "l"(tile(a + k * 64 * 16, 64)), "l"(tile(b + k * 16 * 16, 16)) : "memory");
  }
#if BUG != 1
  COMMIT;
#endif
  WAIT(0);
  const int row = t / 32 * 16 + t % 32 / 4, column = t % 4 * 2;
  for (int i = 0; i < 8; ++i)
    out[(row + i / 2 % 2 * 8) * 16 + column + i / 4 * 8 + i % 2] = d[i];  // finds 1
}
)",
          {1},
          {128},
          {buffer(0), buffer(1), output(2)},
          [] {
            return Buffers{small_integers(64 * 64, 5), small_integers(16 * 64, 7), zeros(64 * 16)};
          },
          [](Buffers& b) { dot_products(b, 64, 64); },
          {"race"}};
}

}  // namespace

std::vector<KernelCase> wgmma_kernels() {
  std::vector<KernelCase> cases = {product_of_tiles(),       two_groups_of_one_tile(),
                                   product_of_copies(),      product_of_registers(),
                                   producer_and_consumers(), swizzled_product(),
                                   product_of_bytes()};
  for (KernelCase& kernel : cases) kernel.target = "sm_90a";
  return cases;
}

}  // namespace braid::testing
