#include "codegen/cuda/preamble.h"

#include <fmt/format.h>

namespace braid::tile {
namespace {

constexpr std::string_view kTypes = R"(struct bf16 { unsigned short bits; };
struct f16 { unsigned short bits; };

__device__ __forceinline__ float widen(bf16 x) { return __uint_as_float((unsigned)x.bits << 16); }
__device__ __forceinline__ float widen(f16 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
__device__ __forceinline__ float widen(float x) { return x; }
__device__ __forceinline__ long long widen(int x) { return x; }
__device__ __forceinline__ long long widen(long long x) { return x; }
__device__ __forceinline__ long long widen(unsigned char x) { return x; }

__device__ __forceinline__ void narrow(bf16& y, float x) {
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
}
__device__ __forceinline__ void narrow(f16& y, float x) {
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
}
__device__ __forceinline__ void narrow(float& y, float x) { y = x; }
__device__ __forceinline__ void narrow(int& y, long long x) { y = (int)x; }
__device__ __forceinline__ void narrow(long long& y, long long x) { y = x; }
__device__ __forceinline__ void narrow(unsigned char& y, long long x) { y = (unsigned char)x; }
)";

// In integer arithmetic, the same on every target: no instruction before sm_89 knows these types.
constexpr std::string_view kFloat8 = R"(
struct f8e4m3 { unsigned char bits; };
struct f8e5m2 { unsigned char bits; };

__device__ __forceinline__ float widen(f8e4m3 x) {
  const unsigned m = x.bits & 0x7fu;
  // The exponent's bias is 120 less.
  const float y = m == 0x7fu ? __uint_as_float(0x7fc00000u) : __uint_as_float(m << 20) * 0x1p120f;
  return x.bits & 0x80u ? -y : y;
}
__device__ __forceinline__ float widen(f8e5m2 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"((unsigned short)(x.bits << 8)));
  return y;
}
// The code nearest to |x|, of an exponent with this bias and a mantissa of M bits; ties to even.
template <int M, int Bias>
__device__ __forceinline__ unsigned nearest_code(float x) {
  const unsigned u = __float_as_uint(x) & 0x7fffffffu;
  if (u < (unsigned)(128 - Bias) << 23) {
    return (unsigned)__float2int_rn(__uint_as_float(u) * (float)(1 << (Bias - 1 + M)));
  }
  const unsigned r = u + (1u << (22 - M)) - 1u + (u >> (23 - M) & 1u);
  return (r >> (23 - M)) - ((unsigned)(127 - Bias) << M);
}
__device__ __forceinline__ void narrow(f8e4m3& y, float x) {
  const unsigned m = nearest_code<3, 7>(x);
  // No infinity: what is too large becomes the largest value.
  y.bits = x != x ? 0x7fu : (m > 0x7eu ? 0x7eu : m) | (__float_as_uint(x) >> 24 & 0x80u);
}
__device__ __forceinline__ void narrow(f8e5m2& y, float x) {
  const unsigned m = nearest_code<2, 15>(x);
  y.bits = x != x ? 0x7fu : (m > 0x7cu ? 0x7cu : m) | (__float_as_uint(x) >> 24 & 0x80u);
}
__device__ __forceinline__ void take(f8e4m3& e, const unsigned* w, int i) { e.bits = w[i / 4] >> (i % 4 * 8); }
__device__ __forceinline__ void take(f8e5m2& e, const unsigned* w, int i) { e.bits = w[i / 4] >> (i % 4 * 8); }
__device__ __forceinline__ void put(f8e4m3 e, unsigned* w, int i) { w[i / 4] |= (unsigned)e.bits << (i % 4 * 8); }
__device__ __forceinline__ void put(f8e5m2 e, unsigned* w, int i) { w[i / 4] |= (unsigned)e.bits << (i % 4 * 8); }
)";

constexpr std::string_view kRounding = R"(
// The value nearest to x that an E can hold.
template <class E, class V>
__device__ __forceinline__ V round_to(V x) {
  E y;
  narrow(y, x);
  return widen(y);
}
)";

constexpr std::string_view kAccess = R"(
// The 32-bit words of one access, and elements in them.
__device__ __forceinline__ void read_words(unsigned (&w)[1], const void* p) { w[0] = *(const unsigned*)p; }
__device__ __forceinline__ void read_words(unsigned (&w)[2], const void* p) {
  const uint2 r = *(const uint2*)p;
  w[0] = r.x, w[1] = r.y;
}
__device__ __forceinline__ void read_words(unsigned (&w)[4], const void* p) {
  const uint4 r = *(const uint4*)p;
  w[0] = r.x, w[1] = r.y, w[2] = r.z, w[3] = r.w;
}
__device__ __forceinline__ void write_words(const unsigned (&w)[1], void* p) { *(unsigned*)p = w[0]; }
__device__ __forceinline__ void write_words(const unsigned (&w)[2], void* p) {
  *(uint2*)p = make_uint2(w[0], w[1]);
}
__device__ __forceinline__ void write_words(const unsigned (&w)[4], void* p) {
  *(uint4*)p = make_uint4(w[0], w[1], w[2], w[3]);
}
__device__ __forceinline__ void take(bf16& e, const unsigned* w, int i) { e.bits = w[i / 2] >> (i % 2 * 16); }
__device__ __forceinline__ void take(f16& e, const unsigned* w, int i) { e.bits = w[i / 2] >> (i % 2 * 16); }
__device__ __forceinline__ void take(float& e, const unsigned* w, int i) { e = __uint_as_float(w[i]); }
__device__ __forceinline__ void take(int& e, const unsigned* w, int i) { e = (int)w[i]; }
__device__ __forceinline__ void take(long long& e, const unsigned* w, int i) {
  e = (long long)((unsigned long long)w[2 * i + 1] << 32 | w[2 * i]);
}
__device__ __forceinline__ void take(unsigned char& e, const unsigned* w, int i) { e = w[i / 4] >> (i % 4 * 8); }
__device__ __forceinline__ void put(bf16 e, unsigned* w, int i) { w[i / 2] |= (unsigned)e.bits << (i % 2 * 16); }
__device__ __forceinline__ void put(f16 e, unsigned* w, int i) { w[i / 2] |= (unsigned)e.bits << (i % 2 * 16); }
__device__ __forceinline__ void put(float e, unsigned* w, int i) { w[i] = __float_as_uint(e); }
__device__ __forceinline__ void put(int e, unsigned* w, int i) { w[i] = (unsigned)e; }
__device__ __forceinline__ void put(long long e, unsigned* w, int i) {
  w[2 * i] = (unsigned)e;
  w[2 * i + 1] = (unsigned)(e >> 32);
}
__device__ __forceinline__ void put(unsigned char e, unsigned* w, int i) { w[i / 4] |= (unsigned)e << (i % 4 * 8); }

// N elements in one access; masked elements read as zero.
template <int N, class E, class V>
__device__ __forceinline__ void load(V* v, const E* p, bool ok) {
  if constexpr (N * sizeof(E) >= 4) {
    unsigned w[N * sizeof(E) / 4] = {};
    if (ok) read_words(w, p);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      E e;
      take(e, w, i);
      v[i] = widen(e);
    }
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      E e{};
      if (ok) e = p[i];
      v[i] = widen(e);
    }
  }
}
template <int N, class E, class V>
__device__ __forceinline__ void store(E* p, const V* v, bool ok) {
  if constexpr (N * sizeof(E) >= 4) {
    unsigned w[N * sizeof(E) / 4] = {};
#pragma unroll
    for (int i = 0; i < N; ++i) {
      E e;
      narrow(e, v[i]);
      put(e, w, i);
    }
    if (ok) write_words(w, p);
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      E e;
      narrow(e, v[i]);
      if (ok) p[i] = e;
    }
  }
}
)";

constexpr std::string_view kMath = R"(
// NaN wins, and -0 is below +0.
__device__ __forceinline__ float max_of(float a, float b) {
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
__device__ __forceinline__ float min_of(float a, float b) {
  float y;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
__device__ __forceinline__ long long max_of(long long a, long long b) { return a > b ? a : b; }
__device__ __forceinline__ long long min_of(long long a, long long b) { return a < b ? a : b; }
__device__ __forceinline__ float abs_of(float a) { return fabsf(a); }
__device__ __forceinline__ long long abs_of(long long a) {
  return a < 0 ? (long long)(0 - (unsigned long long)a) : a;
}
)";

constexpr std::string_view kSaturate = R"(
// x as one cvt makes it an E: towards zero, into E's range.
template <class E>
__device__ __forceinline__ long long saturate(float x);
template <>
__device__ __forceinline__ long long saturate<int>(float x) { return __float2int_rz(x); }
template <>
__device__ __forceinline__ long long saturate<long long>(float x) { return __float2ll_rz(x); }
template <>
__device__ __forceinline__ long long saturate<unsigned char>(float x) {
  const unsigned y = __float2uint_rz(x);
  return y < 255u ? y : 255u;
}
)";

constexpr std::string_view kShared = R"(
extern __shared__ __align__(1024) unsigned char smem[];

// Element offset of (row, col) in a shared tile whose 16-byte pieces are swizzled.
template <int Cols, int Piece, int PerPhase, int Phases>
__device__ __forceinline__ int swizzle(int row, int col) {
  return row * Cols + (col ^ (row / PerPhase % Phases * Piece));
}
__device__ __forceinline__ unsigned shared_address(const void* p) {
  return (unsigned)__cvta_generic_to_shared(p);
}
)";

constexpr std::string_view kCopyAsync = R"(
// Bytes from global to shared memory; zeros when not ok. Narrow pieces go through a register.
template <int Bytes>
__device__ __forceinline__ void copy_async(void* to, const void* from, bool ok) {
  const unsigned size = ok ? Bytes : 0;
  if constexpr (Bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(shared_address(to)), "l"(from), "r"(size) : "memory");
  } else if constexpr (Bytes >= 4) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                 :: "r"(shared_address(to)), "l"(from), "n"(Bytes), "r"(size) : "memory");
  } else if constexpr (Bytes == 2) {
    unsigned short value = 0;
    if (ok) value = *(const unsigned short*)from;
    *(unsigned short*)to = value;
  } else {
    *(unsigned char*)to = ok ? *(const unsigned char*)from : 0;
  }
}
__device__ __forceinline__ void commit_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N>
__device__ __forceinline__ void wait_group() {
  asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory");
  __syncthreads();
}
)";

constexpr std::string_view kMatrix = R"(
__device__ __forceinline__ void ldmatrix(unsigned* r, const void* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(p)) : "memory");
}
__device__ __forceinline__ void ldmatrix_trans(unsigned* r, const void* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(p)) : "memory");
}
__device__ __forceinline__ void mma(bf16, float* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ __forceinline__ void mma(f16, float* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
)";

// {0}, {1}: f8 types; {2}, {3}: their names in PTX.
constexpr std::string_view kMatrix8 = R"(
__device__ __forceinline__ void mma({0}, {1}, float* c, const unsigned* a, const unsigned* b) {{
  asm("mma.sync.aligned.m16n8k32.row.col.f32.{2}.{3}.f32 {{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, "
      "{{%0, %1, %2, %3}};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}}
)";

constexpr std::string_view kRecord = R"(
// What went wrong first on this rank, for the host.
struct Record {
  unsigned kind, step, block, slot, peer, expected, seen, node;
  long long index, extent;
};
__device__ __forceinline__ bool claim(Record* record, unsigned kind) {
  return atomicCAS(&record->kind, 0u, kind) == 0u;
}
)";

constexpr std::string_view kBadIndex = R"(
__device__ __forceinline__ void bad_index(Record* record, int step, int node, long long index,
                                          long long extent) {
  if (!claim(record, 2)) return;
  record->step = step;
  record->node = node;
  record->index = index;
  record->extent = extent;
}
)";

// {0} world, {1} threads, {2} ranks that are unrolled
constexpr std::string_view kComm = R"(
// Flags are 32-bit epochs that only grow; release and acquire at system scope carry the data.
struct Peers {{ unsigned char* base[{0}]; }};
struct Comm {{
  unsigned char* self;
  Record* record;
  long long flags;
  int rank, step;
  long long timeout;
  unsigned epoch;
}};

// The words of a step: an epoch of each block, then for each slot a flag of each rank.
__device__ __forceinline__ unsigned* epoch_at(const Comm& c) {{
  return (unsigned*)(c.self + c.flags) + blockIdx.x;
}}
__device__ __forceinline__ unsigned* flag_at(const Comm& c, unsigned char* base, int slot, int from) {{
  return (unsigned*)(base + c.flags) + gridDim.x + slot * {0} + from;
}}
__device__ __forceinline__ unsigned load_acquire(const unsigned* p) {{
  unsigned v;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}}
__device__ __forceinline__ void store_release(unsigned* p, unsigned v) {{
  asm volatile("st.release.sys.global.u32 [%0], %1;" :: "l"(p), "r"(v) : "memory");
}}
__device__ __forceinline__ unsigned long long global_timer() {{
  unsigned long long t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}}

__device__ __forceinline__ Comm open_comm(const Peers& peers, int rank, long long flags, int step,
                                          Record* record, long long timeout) {{
  Comm c;
  c.self = peers.base[0];
#pragma unroll {2}
  for (int r = 1; r < {0}; ++r) c.self = r == rank ? peers.base[r] : c.self;
  c.record = record;
  c.flags = flags;
  c.rank = rank;
  c.step = step;
  c.timeout = timeout;
  c.epoch = *epoch_at(c) + 1;
  return c;
}}
// Every thread has read the epoch: the first signal's barrier comes after that.
__device__ __forceinline__ void close_comm(const Comm& c) {{
  if (threadIdx.x == 0) *epoch_at(c) = c.epoch;
}}
// Everything this block did before is visible to a peer that sees the flag. Where there are more
// peers than threads, a thread has several.
__device__ __forceinline__ void signal(const Comm& c, const Peers& peers, int slot) {{
  __syncthreads();
#pragma unroll {2}
  for (int r = 0; r < {0}; ++r) {{
    if (threadIdx.x == r % {1}) store_release(flag_at(c, peers.base[r], slot, c.rank), c.epoch);
  }}
}}
// Past the deadline: says on every rank that the run is lost, and once, here, who waited for whom.
__device__ __forceinline__ void give_up(const Comm& c, const Peers& peers, int slot, int peer,
                                        unsigned seen) {{
  if (claim(c.record, 1)) {{
    c.record->step = c.step;
    c.record->block = blockIdx.x;
    c.record->slot = slot;
    c.record->peer = peer;
    c.record->expected = c.epoch;
    c.record->seen = seen;
  }}
#pragma unroll {2}
  for (int r = 0; r < {0}; ++r) store_release((unsigned*)peers.base[r], 1u);
}}
// True when the run is lost, else when the peer's flag has come.
__device__ __forceinline__ bool await(const Comm& c, const Peers& peers, int slot, int peer) {{
  const unsigned* flag = flag_at(c, c.self, slot, peer);
  const unsigned long long start = global_timer();
  bool lost = false;
  unsigned seen = load_acquire(flag);
  while ((int)(seen - c.epoch) < 0 && !lost) {{
    lost = load_acquire((const unsigned*)c.self) != 0;
    // The timers of two multiprocessors may differ: signed, so that a step back is no timeout.
    if (!lost && (long long)(global_timer() - start) > c.timeout) {{
      give_up(c, peers, slot, peer, seen);
      lost = true;
    }}
    seen = load_acquire(flag);
  }}
  return lost;
}}
// False when the run is lost; then the block must leave.
__device__ __forceinline__ bool wait(const Comm& c, const Peers& peers, int slot) {{
  bool lost = false;
#pragma unroll 1
  for (int first = 0; first < {0}; first += {1}) {{
    const int peer = first + threadIdx.x;
    if (peer >= {0} || lost) break;
    lost = await(c, peers, slot, peer);
  }}
  return !__syncthreads_or(lost);
}}
)";

constexpr std::string_view kCommOne = R"(
__device__ __forceinline__ void signal_one(const Comm& c, const Peers& peers, int slot, int rank) {
  __syncthreads();
  if (threadIdx.x == 0) store_release(flag_at(c, peers.base[rank], slot, c.rank), c.epoch);
}
__device__ __forceinline__ bool wait_one(const Comm& c, const Peers& peers, int slot, int rank) {
  bool lost = false;
  if (threadIdx.x == 0) lost = await(c, peers, slot, rank);
  return !__syncthreads_or(lost);
}
)";

}  // namespace

std::string preamble(const std::set<Helper>& used, int world, int threads) {
  std::string text;
  if (used.contains(Helper::kTypes)) text += kTypes;
  if (used.contains(Helper::kFloat8)) text += kFloat8;
  if (used.contains(Helper::kTypes)) text += kRounding;
  if (used.contains(Helper::kAccess)) text += kAccess;
  if (used.contains(Helper::kMath)) text += kMath;
  if (used.contains(Helper::kSaturate)) text += kSaturate;
  if (used.contains(Helper::kShared)) text += kShared;
  if (used.contains(Helper::kCopyAsync)) text += kCopyAsync;
  if (used.contains(Helper::kMatrix)) text += kMatrix;
  if (used.contains(Helper::kMatrix8)) {
    text += fmt::format(kMatrix8, "f8e4m3", "f8e4m3", "e4m3", "e4m3");
    text += fmt::format(kMatrix8, "f8e4m3", "f8e5m2", "e4m3", "e5m2");
    text += fmt::format(kMatrix8, "f8e5m2", "f8e4m3", "e5m2", "e4m3");
  }
  if (used.contains(Helper::kRecord)) text += kRecord;
  if (used.contains(Helper::kBadIndex)) text += kBadIndex;
  if (used.contains(Helper::kComm)) {
    text += fmt::format(kComm, world, threads, kUnrolledRanks);
  }
  if (used.contains(Helper::kCommOne)) text += kCommOne;
  return text;
}

}  // namespace braid::tile
