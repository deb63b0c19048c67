// Layouts with replicas: several warps hold an element, each computes it, one or all store it. And
// what is read and discarded.

#include "sanitizer/kernels.h"

namespace braid::testing {
namespace {

constexpr const char* kSameValue = "write of the value that was written there";
constexpr const char* kRounded = "write of what was written there but for rounding";
constexpr const char* kDiscarded = "read of what another warp writes, unordered, and discarded";
constexpr const char* kWritesDiscarded =
    "write of what another warp reads, unordered, and discards";

void add(std::vector<KernelCase>& cases, KernelCase kernel, const std::string& note) {
  kernel.note = note;
  cases.push_back(std::move(kernel));
}

/// Lanes do not agree which of two products is rounded by itself; in one place their sum cancels.
void add_cancelling_sums(std::vector<KernelCase>& cases) {
  add(cases,
      {"replicas_cancel",
       R"(
extern "C" __global__ void k(const float* x, float* out) {
  __shared__ float tile[16];
  const int l = threadIdx.x;
  const float a = x[l / 2], b = 1.3f, c = l < 2 ? -__fmul_rn(a, b) : 1.0f;
  float sum = l % 2 ? fmaf(a, b, c) : fmaf(c, 1.0f, __fmul_rn(a, b));
#if BUG == 1
  sum += l % 2 * 0.01f;
#endif
  tile[l / 2] = sum;  // finds 1
  __syncthreads();
  out[l] = fabsf(tile[l / 2]) < 1e-6f;
}
)",
       {1},
       {32},
       {buffer(0), output(1)},
       [] {
         Buffers b{ramp(16), std::vector<float>(32)};
         for (float& value : b[0]) value += 0.1F;
         return b;
       },
       [](Buffers& b) { b[1][0] = b[1][1] = 1; },
       {"race"}},
      kRounded);
}

void add_same_values(std::vector<KernelCase>& cases) {
  add(cases,
      {"replicas_store",
       R"(
extern "C" __global__ void k(const float* x, float* out) {
  __shared__ float tile[32];
  const int e = threadIdx.x % 32;
#if BUG == 1
  tile[e] = x[e] * (1 + threadIdx.x / 32);  // finds 1
#else
  tile[e] = 2 * x[e];  // finds 2
#endif
#if BUG == 2
  out[e] = tile[31 - e];  // finds 2
#else
  __syncthreads();
  out[e] = tile[31 - e];
#endif
#if BUG == 3
  if (threadIdx.x == 64) out[7] = 0;  // finds 3
#endif
}
)",
       {1},
       {128},
       {buffer(0), output(1)},
       [] {
         return Buffers{random_floats(32), zeros(32)};
       },
       [](Buffers& b) {
         for (std::size_t i = 0; i < 32; ++i) b[1][i] = 2 * b[0][31 - i];
       },
       {"race", "race", "race"}},
      kSameValue);
  KernelCase matrices = {"replicas_stmatrix",
                         R"(
extern "C" __global__ void k(const int* x, int* out) {
  __shared__ alignas(16) unsigned box[128];
  const unsigned lane = threadIdx.x % 32;
  const unsigned to = __cvta_generic_to_shared(box) + lane * 16;
#if BUG == 1
  const unsigned v = x[lane] + (threadIdx.x == 37);
#else
  const unsigned v = x[lane];
#endif
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" :: "r"(to), "r"(v), "r"(v + 1), "r"(v + 2), "r"(v + 3) : "memory");  // finds 1
  __syncthreads();
  out[threadIdx.x] = box[threadIdx.x];
}
)",
                         {1},
                         {128},
                         {buffer(0), output(1)},
                         [] {
                           std::vector<std::int32_t> x(32);
                           for (std::int32_t i = 0; i < 32; ++i)
                             x[static_cast<std::size_t>(i)] = 7 * i;
                           return Buffers{ints(x), zeros(128)};
                         },
                         [](Buffers& b) {
                           for (std::size_t i = 0; i < 128; ++i) {
                             const auto lane = static_cast<std::int32_t>(i % 32);
                             b[1][i] = int_bits(7 * lane + static_cast<std::int32_t>(i / 32));
                           }
                         },
                         {"race"}};
  matrices.target = "sm_90a";
  add(cases, std::move(matrices), kSameValue);
  // The last warp comes after one of two writers of one value, or after both.
  add(cases,
      {"two_of_one_value",
       R"(
extern "C" __global__ void k(int* x) {
  const int warp = threadIdx.x / 32;
  if (warp < 2) *(volatile int*)&x[threadIdx.x % 32 + 32] = 1;
  if (warp < 2) x[threadIdx.x % 32] = 7;
#if BUG == 1
  if (warp == 1) asm volatile("bar.sync 1, 64;" ::: "memory");
  if (warp == 2) asm volatile("bar.sync 1, 64;" ::: "memory");
#else
  asm volatile("bar.sync 1, 96;" ::: "memory");
#endif
  if (warp == 2) x[threadIdx.x % 32] = 8;  // finds 1
}
)",
       {1},
       {96},
       {buffer(0)},
       [] { return Buffers{zeros(64)}; },
       [](Buffers& b) {
         for (std::size_t i = 0; i < 64; ++i) b[0][i] = int_bits(i < 32 ? 8 : 1);
       },
       {"race"}},
      kSameValue);
  add(cases,
      {"reads_of_one_value",
       R"(
extern "C" __global__ void k(int* x, int* out) {
  const int warp = threadIdx.x / 32;
#if BUG == 1
  if (warp < 2) x[threadIdx.x % 32] = 7 + warp;  // finds 1
#else
  if (warp < 2) x[threadIdx.x % 32] = 7;
#endif
#if BUG != 2
  if (warp > 0) asm volatile("bar.sync 1, 64;" ::: "memory");
#endif
  if (warp == 2) out[threadIdx.x % 32] = x[threadIdx.x % 32];  // finds 2
}
)",
       {1},
       {96},
       {buffer(0), output(1)},
       [] {
         return Buffers{zeros(32), zeros(32)};
       },
       [](Buffers& b) {
         for (std::size_t i = 0; i < 32; ++i) b[0][i] = b[1][i] = int_bits(7);
       },
       {"race", "race"}},
      kSameValue);
}

/// Two warps, or the halves of one, have the terms of a sum in two orders.
void add_sums(std::vector<KernelCase>& cases) {
  for (const unsigned threads : {64U, 32U}) {
    add(cases,
        {threads == 64 ? "replicas_round" : "lanes_round",
         R"(
extern "C" __global__ void k(const float* x, float* out) {
  __shared__ float sums[32];
  const int half = blockDim.x / 2, e = threadIdx.x % half, replica = threadIdx.x / half;
  float sum = 0;
  for (int i = 0; i < 8; ++i) sum += x[(replica ? 7 - i : i) * 32 + e];
#if BUG == 1
  sums[e] = sum * (1 + replica * 1e-3f);  // finds 1
#elif BUG == 2
  ((int*)sums)[e] = 100000 + replica;  // finds 2
#else
  sums[e] = sum;
#endif
  __syncthreads();
  if (replica == 0) out[e] = sums[e];
}
)",
         {1},
         {threads},
         {buffer(0), output(1)},
         [threads] {
           return Buffers{random_floats(256), zeros(threads / 2)};
         },
         [](Buffers& b) {
           for (std::size_t e = 0; e < b[1].size(); ++e) {
             for (std::size_t i = 0; i < 8; ++i) b[1][e] += b[0][i * 32 + e];
           }
         },
         {"race", "race"}},
        kRounded);
  }
}

/// A rotation in place. All warps load, one stores.
std::string rotation(const std::string& owner) {
  return R"(
__device__ float load(const float* x) {
  float value;
  asm volatile("ld.global.f32 %0, [%1];" : "=f"(value) : "l"(x) : "memory");
  return value;
}
extern "C" __global__ void k(float* x, float* out) {
  const int e = threadIdx.x % 32;
  const bool owner = )" +
         owner + R"(;
  const float a = load(x + e);  // finds 1 // finds 2 // finds 3 // finds 4
  const float b = load(x + e + 32);  // finds 1 // finds 2 // finds 3 // finds 4
#if BUG == 1
  if (true) {
#elif BUG == 2
  if (owner || a + b > 100) {
#else
  if (owner) {
#endif
    x[e] = a * 0.6f - b * 0.8f;  // finds 1 // finds 2 // finds 3 // finds 4
    x[e + 32] = a * 0.8f + b * 0.6f;  // finds 1 // finds 2 // finds 3 // finds 4
  }
#if BUG == 3
  if (!owner) out[e] = __shfl_xor_sync(~0u, a, 1);
#elif BUG == 4
  if (!owner) out[(int)a & 31] = 1;
#endif
}
)";
}

void add_rotations(std::vector<KernelCase>& cases) {
  struct Order {
    const char *name, *owner, *note;
  };
  for (const Order& order :
       {Order{"replica_reads_after_its_owner", "threadIdx.x < 32", kDiscarded},
        Order{"replica_reads_before_its_owner", "threadIdx.x >= 32", kWritesDiscarded}}) {
    add(cases,
        {order.name,
         rotation(order.owner),
         {1},
         {64},
         {buffer(0), buffer(1)},
         [] {
           return Buffers{random_floats(64), zeros(32)};
         },
         [](Buffers& b) {
           for (std::size_t i = 0; i < 32; ++i) {
             const float x = b[0][i], y = b[0][i + 32];
             b[0][i] = x * 0.6F - y * 0.8F;
             b[0][i + 32] = x * 0.8F + y * 0.6F;
           }
         },
         {"race", "race", "race", "race"}},
        order.note);
  }
}

/// A row that does not fill its tile: all is read, with what nobody wrote, and a part is stored.
void add_discarded(std::vector<KernelCase>& cases) {
  add(cases,
      {"part_of_a_tile",
       R"(
__device__ float load(const float* x) {
  float value;
  asm volatile("ld.shared.f32 %0, [%1];"
               : "=f"(value) : "r"((unsigned)__cvta_generic_to_shared(x)) : "memory");
  return value;
}
extern "C" __global__ void k(const float* x, float* out, int n) {
  __shared__ float tile[64];
  const int t = threadIdx.x;
  if (t < n) tile[t] = x[t];
  __syncthreads();
  const float value = load(&tile[t]) * 2;  // finds 1 // finds 2 // finds 3 // finds 4
#if BUG == 1
  if (t <= n) out[t] = value;
#elif BUG == 2
  const float next = __shfl_down_sync(~0u, value, 1);
  if (t < n) out[t] = next;
#elif BUG == 3
  if (t < n || value > 1) out[t] = value;
#elif BUG == 4
  out[(int)value & 31] = 1;
#else
  if (t < n) out[t] = value;
#endif
}
)",
       {1},
       {64},
       {buffer(0), buffer(1), scalar(40)},
       [] {
         return Buffers{random_floats(64), zeros(64)};
       },
       [](Buffers& b) {
         for (std::size_t i = 0; i < 40; ++i) b[1][i] = 2 * b[0][i];
       },
       {"uninitialized", "uninitialized", "uninitialized", "uninitialized"}},
      "");
  // Half of each warp reads what the other warp writes, and drops it: by a branch around the store,
  // or by a choice.
  for (const bool chooses : {false, true}) {
    for (const bool late : {false, true}) {
      add(cases,
          {std::string(chooses ? "value_not_chosen" : "value_not_stored") +
               (late ? "_read_first" : ""),
           R"(
__device__ float load(const float* x) {
  float value;
  asm volatile("ld.global.f32 %0, [%1];" : "=f"(value) : "l"(x) : "memory");
  return value;
}
__device__ float choose(bool first, float a, float b) {
  float value;
  asm volatile("{ .reg .pred p; setp.ne.s32 p, %3, 0; selp.f32 %0, %1, %2, p; }"
               : "=f"(value) : "f"(a), "f"(b), "r"((int)first));
  return value;
}
extern "C" __global__ void k(float* x, float* out) {
  const int t = threadIdx.x;
  const bool own = t % 32 < 16;
  const bool writes = t < 32 ? !LATE : LATE;
  // The first half of a warp reads its own part, the other one what only the other warp writes.
  const int at = own ? t : 64 + t % 32;
  if (writes) x[64 + t % 32] = 3;  // finds 1 // finds 2
  const float value = load(x + at);  // finds 1 // finds 2
#if BUG == 1
  out[t] = value;
#elif BUG == 2
  out[t] = choose(own || t == 20 || t == 52, value, 7);
#elif CHOOSES
  out[t] = choose(own, value, 7);
#else
  if (own) out[t] = value;
#endif
}
)",
           {1},
           {64},
           {buffer(0), buffer(1)},
           [] {
             return Buffers{ramp(96), zeros(64)};
           },
           [chooses](Buffers& b) {
             const float other = chooses ? 7 : 0;
             for (std::size_t i = 0; i < 64; ++i) b[1][i] = i % 32 < 16 ? b[0][i] : other;
             for (std::size_t i = 64; i < 96; ++i) b[0][i] = 3;
           },
           {"race", "race"}},
          late ? kWritesDiscarded : kDiscarded);
      std::string& source = cases.back().source;
      source = "\n#define LATE " + std::to_string(late ? 1 : 0) + "\n#define CHOOSES " +
               std::to_string(chooses ? 1 : 0) + source;
    }
  }
  // The lane that stores reads with the others of its warp, at one place.
  add(cases,
      {"one_of_a_warp",
       R"(
extern "C" __global__ void k(const float* x, float* out) {
  __shared__ volatile float cell[2];
  if (threadIdx.x == 0) cell[0] = x[0];
  __syncwarp();
#if BUG == 1
  const float value = cell[1];  // finds 1
#else
  const float value = cell[0];
#endif
  if (threadIdx.x == 17) *out = value;
}
)",
       {1},
       {32},
       {buffer(0), output(1)},
       [] {
         return Buffers{random_floats(1), zeros(1)};
       },
       [](Buffers& b) { b[1] = b[0]; },
       {"uninitialized"}},
      "");
}

}  // namespace

std::vector<KernelCase> replica_kernels() {
  std::vector<KernelCase> cases;
  add_cancelling_sums(cases);
  add_discarded(cases);
  add_same_values(cases);
  add_sums(cases);
  add_rotations(cases);
  return cases;
}

}  // namespace braid::testing
