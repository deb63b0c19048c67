#include <gtest/gtest.h>

#include "braid/checks.h"
#include "braid/error.h"
#include "cpu/cpu_harness.h"

namespace braid::cpu_test {
namespace {

/// Compiles `function` ("__device__ int f(int x, int n)") for both sides and compares all values,
/// in full warps and in blocks that are not.
void compare_function(const std::string& body, int (*host)(int, int)) {
  Bench bench("__device__ __forceinline__ int f(int x, int n) {" + body +
              "}\nextern \"C\" __global__ void k(int* o, int n, int count) { int i = "
              "blockIdx.x * blockDim.x + threadIdx.x; if (i < count) o[i] = f(i, n); }");
  for (const std::uint32_t block : {64U, 48U, 7U}) {
    for (const int n : {0, 3, 17}) {
      const int count = 500;
      const std::uint64_t out = bench.upload(std::vector<int>(count, -1));
      bench.run({(500 + block - 1) / block}, {block}, 0, out, n, count);
      const auto got = bench.download<int>(out, count);
      for (int i = 0; i < count; ++i)
        ASSERT_EQ(got[i], host(i, n)) << i << " n " << n << " block " << block;
    }
  }
}

#define BOTH(name, body)                                        \
  int name##_host(int x, int n){body} TEST(ControlFlow, name) { \
    compare_function(#body, &name##_host);                      \
  }

BOTH(
    NestedLoops, int s = 0; for (int i = 0; i < x % 13; ++i) {
      for (int j = 0;; ++j) {
        if (j * i > n + x % 5) break;
        if (((i + j) & 3) == 1) continue;
        s += i * j + 1;
        if (s > 400) return s - 7;
        if (j > 20) break;
      }
    } return s;)

// Loops of one block, whose values stay in the host's registers: such as change places, more than
// there is room for, and what is used behind them, or not again.
BOTH(
    LoopThatSwaps, unsigned a = x; unsigned b = 7 * a; unsigned c = n; for (int i = 0; i < n; ++i) {
      const unsigned t = a;
      a = b + i * c;
      b = t ^ (b >> 1);
      if ((a & 1) != 0) c += b;
    } return static_cast<int>(a + 3 * b + c);)

BOTH(
    LoopOfManyValues, unsigned v[12]; for (int j = 0; j < 12; ++j) v[j] = x * (j + 1);
    for (int i = 0; i < n; ++i) {
      const unsigned first = v[0];
      for (int j = 0; j < 11; ++j) v[j] = v[j + 1] * 3 + i;
      v[11] = first ^ v[3];
    } unsigned sum = 0;
    for (int j = 0; j < 12; ++j) sum = sum * 31 + v[j]; return static_cast<int>(sum);)

BOTH(
    LoopsBehindLoops, unsigned a = x; unsigned kept = x * 11; unsigned long long wide = a + 1ULL;
    bool odd = (x & 1) != 0; for (int i = 0; i < n; ++i) {
      a = a * 5 + i;
      wide = wide * 3 + a;
      odd = odd != ((a >> 3) % 2 != 0);
    } for (int j = 0; j < 4; ++j) {
      unsigned inner = a;
      for (int i = 0; i < n + j; ++i) inner = inner * 9 + kept + i;
      a ^= inner;
    } if (odd) a += static_cast<unsigned>(wide >> 7);
    return static_cast<int>(a + kept + static_cast<unsigned>(wide));)

BOTH(
    Goto, int s = x; int k = 0; again
    : if (s & 1) { s = 3 * s + 1; } else { s >>= 1; } ++k;
    if (k > 60) goto done; if (s % 7 == 3) goto odd; if (s > 1) goto again; goto done; odd
    : s += n;
    ++k; if (s & 2) goto again; s += 5; done
    : return s * 100 + k;)

BOTH(
    Switch, int s = 0; for (int i = 0; i < 6; ++i) {
      switch ((x + i * n) % 9) {
        case 0:
          s += 1;
          break;
        case 1:
          s ^= x;
          [[fallthrough]];
        case 2:
          s += 3;
          break;
        case 3:
          s *= 2;
          break;
        case 4:
          continue;
        case 5:
          s -= i;
          break;
        case 6:
          if (x & 8) return s;
          s += 9;
          break;
        case 7:
          s += x / 3;
          break;
        default:
          s += 100;
          break;
      }
      s ^= i;
    } return s;)

BOTH(
    UniformAfterDivergentLoop, int last = 0; int i = 0; for (; i < 40; ++i) {
      last = i * n;
      if (i == x % 37) break;
    } return last * 64 + i;)

BOTH(
    ShortCircuit, int s = 0; for (int i = x; i > 0 && (i % 5 != 0 || n > 3); i -= 2) {
      if ((i & 4) || (i % 3 == 0 && n != 3))
        s += i;
      else if (i & 1)
        s -= 2;
    } return s;)

TEST(ControlFlow, DeviceFunctionCalls) {
  Bench bench(R"(
    struct P { int a; int b[3]; };
    __noinline__ __device__ int mix(int a, P p) { if (a & 1) return a * p.a + p.b[a % 3]; return p.b[1] - a; }
    __noinline__ __device__ int twice(int a, P p) { int s = 0; for (int i = 0; i < (a & 3); ++i) s += mix(a + i, p); return s; }
    extern "C" __global__ void k(int* o, P p) { int i = threadIdx.x; o[i] = mix(i, p) + twice(i, p); })");
  struct P {
    int a;
    int b[3];
  } p{7, {10, 20, 30}};
  const std::uint64_t out = bench.upload(std::vector<int>(64));
  bench.run({1}, {64}, 0, out, p);
  const auto mix = [&](int a) { return (a & 1) ? a * p.a + p.b[a % 3] : p.b[1] - a; };
  const auto got = bench.download<int>(out, 64);
  for (int i = 0; i < 64; ++i) {
    int s = mix(i);
    for (int k = 0; k < (i & 3); ++k) s += mix(i + k);
    EXPECT_EQ(got[i], s) << i;
  }
}

TEST(ControlFlow, LocalArrays) {
  Bench bench(R"(extern "C" __global__ void k(int* o, int n) { int a[20]; int i = threadIdx.x;
    for (int j = 0; j < 20; ++j) a[(j * 7 + i) % 20] = j * i + n; int s = 0;
    for (int j = 0; j < i % 20; ++j) s = s * 3 + a[(j + n) % 20]; o[i] = s; })");
  const int n = 4;
  const std::uint64_t out = bench.upload(std::vector<int>(96));
  bench.run({1}, {96}, 0, out, n);
  const auto got = bench.download<int>(out, 96);
  for (int i = 0; i < 96; ++i) {
    int a[20];
    for (int j = 0; j < 20; ++j) a[(j * 7 + i) % 20] = j * i + n;
    unsigned s = 0;
    for (int j = 0; j < i % 20; ++j) s = s * 3 + static_cast<unsigned>(a[(j + n) % 20]);
    EXPECT_EQ(got[i], static_cast<int>(s));
  }
}

TEST(ControlFlow, LanesOfOneWarpWaitForEachOther) {
  Bench bench(R"(extern "C" __global__ void k(volatile int* flag, int* o) { int i = threadIdx.x;
    if (i < 16) { while (flag[0] != 16) {} o[i] = 1; } else { o[i] = 2; atomicAdd((int*)flag, 1); } })",
              {.threads = 1});
  const std::uint64_t flag = bench.upload(std::vector<int>(1));
  const std::uint64_t out = bench.upload(std::vector<int>(32));
  bench.run({1}, {32}, 0, flag, out);
  const auto got = bench.download<int>(out, 32);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(got[i], i < 16 ? 1 : 2);
}

// Lane 0 polls what another warp writes later. Lanes that execute something together with it wait.
TEST(ControlFlow, AllLanesOfAMaskWaitForOneThatPolls) {
  for (const bool sanitize : {false, true}) {
    CpuOptions options{.threads = 1};
    if (sanitize) options.checks = kCheckAll;
    Bench bench(R"(extern "C" __global__ void k(int* o) { __shared__ volatile int flag;
    int i = threadIdx.x, v = 1; if (i == 0) flag = 0; __syncthreads();
    if (i < 32) {
      if (i == 0) { while (atomicAdd((int*)&flag, 0) == 0) {} v = 100; }
      int next = __shfl_xor_sync(~0u, v, 1), sum = __reduce_add_sync(~0u, v);
      o[i] = 1000 * sum + next;
    } else if (i == 32) { __nanosleep(1000); atomicAdd((int*)&flag, 1); } })",
                options);
    const std::uint64_t out = bench.upload(std::vector<int>(32));
    bench.run({1}, {64}, 0, out);
    const auto got = bench.download<int>(out, 32);
    for (int i = 0; i < 32; ++i) EXPECT_EQ(got[i], i == 1 ? 131100 : 131001) << i;
  }
}

// From sm_70 on the barriers of a warp need not be the same instruction.
TEST(ControlFlow, LanesMeetAtBarriersOfTwoBranches) {
  Bench bench(R"(extern "C" __global__ void k(int* o) { __shared__ volatile int s[32];
    int i = threadIdx.x, other = i ^ 16; s[i] = -1; __syncwarp();
    for (int n = 0; n < 3; ++n) {
      if ((i < 16) == (n % 2 == 0)) { s[i] = 3 * i + n; __syncwarp(); }
      else { __syncwarp(); o[32 * n + i] = s[other]; }
      __syncwarp();
    } })");
  const std::uint64_t out = bench.upload(std::vector<int>(96, -2));
  bench.run({1}, {32}, 0, out);
  const auto got = bench.download<int>(out, 96);
  for (int n = 0; n < 3; ++n) {
    for (int i = 0; i < 32; ++i) {
      const bool reads = (i < 16) != (n % 2 == 0);
      EXPECT_EQ(got[32 * n + i], reads ? 3 * (i ^ 16) + n : -2) << n << " " << i;
    }
  }
}

// Odd lanes pass through two blocks, and meet the others where a loop begins that each leaves when
// it likes.
TEST(ControlFlow, LanesMeetAtALoopThatTheyLeaveApart) {
  Bench bench = Bench::from_ptx(R"(.version 9.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 n) {
.reg .b32 %i, %r<9>; .reg .b64 %d<9>; .reg .pred %p<9>;
ld.param.u64 %d1, [out]; ld.param.u32 %r1, [n];
mov.u32 %i, %tid.x; mul.wide.u32 %d2, %i, 4; add.u64 %d1, %d1, %d2; mov.u32 %r2, 0;
and.b32 %r3, %i, 1; setp.eq.u32 %p0, %r3, 0; @%p0 bra LOOP;
add.u32 %r2, %r2, 100; setp.ne.u32 %p1, %r1, 0; @%p1 bra LOOP;
add.u32 %r2, %r2, 1000;
LOOP: add.u32 %r2, %r2, 1; rem.u32 %r4, %r2, 7; setp.ne.u32 %p2, %r4, 0; @%p2 bra LOOP;
st.global.u32 [%d1], %r2;
ret;
}
)");
  for (const int n : {0, 1}) {
    const std::uint64_t out = bench.upload(std::vector<int>(64, -1));
    bench.run({1}, {64}, 0, out, n);
    const auto got = bench.download<int>(out, 64);
    for (int i = 0; i < 64; ++i) {
      int want = i % 2 == 0 ? 0 : n != 0 ? 100 : 1100;
      do {
        ++want;
      } while (want % 7 != 0);
      ASSERT_EQ(got[static_cast<std::size_t>(i)], want) << i << " n " << n;
    }
  }
}

TEST(ControlFlow, UnsignedIndexBelowZeroIsGuarded) {
  Bench bench(
      R"(extern "C" __global__ void k(int* o, const int* a, unsigned n) { unsigned i = threadIdx.x;
    o[i] = (i > 0 ? a[i - 1u] : -1) + (i + 1 < n ? a[i + 1] : -2); })");
  std::vector<int> a(64);
  for (int i = 0; i < 64; ++i) a[i] = i * i;
  const unsigned n = 64;
  const std::uint64_t out = bench.upload(std::vector<int>(64));
  bench.run({1}, {64}, 0, out, bench.upload(a), n);
  const auto got = bench.download<int>(out, 64);
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(got[i], (i > 0 ? a[i - 1] : -1) + (i + 1 < 64 ? a[i + 1] : -2));
  }
}

}  // namespace
}  // namespace braid::cpu_test
