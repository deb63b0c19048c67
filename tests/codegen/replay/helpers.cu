struct __align__(64) Bytes128_64 { unsigned char bytes[128]; };

struct Comm {
  unsigned char* self;
  Record* record;
  long long flags;
  int rank, step;
  long long timeout;
  unsigned epoch;
};

// A packet that a thread waits for.
struct Missing {
  bool any;
  int at, peer;
  unsigned seen;
};

// Flags are 32-bit epochs that only grow; fences at system scope, one before all flags are sent and
// one after each has come, carry the data.
struct Peers { unsigned char* base[2]; };

// Flags are 32-bit epochs that only grow; fences at system scope, one before all flags are sent and
// one after each has come, carry the data.
struct Peers { unsigned char* base[4]; };

// Flags are 32-bit epochs that only grow; fences at system scope, one before all flags are sent and
// one after each has come, carry the data.
struct Peers { unsigned char* base[8]; };

// Flags are 32-bit epochs that only grow; fences at system scope, one before all flags are sent and
// one after each has come, carry the data.
struct Peers { unsigned char* base[3]; };

// What went wrong first on this rank, for the host.
struct Record {
  unsigned kind, step, block, slot, peer, expected, seen, node;
  long long index, extent;
};

__device__ __forceinline__ void arrive(unsigned at) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at) : "memory");
}

__device__ __forceinline__ void arrive_expecting(unsigned at, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(at), "r"(bytes) : "memory");
}

__device__ __forceinline__ bool await(const Comm& c, const Peers& peers, int slot, int peer) {
  const bool lost = await_relaxed(c, peers, slot, peer);
  fence();
  return lost;
}

// For bulk copies of what the peer wrote. Who is alone cannot leave: others wait for what it brings.
__device__ __forceinline__ void await_alone(const Comm& c, const Peers& peers, int slot, int rank) {
  await(c, peers, slot, rank);
  asm volatile("fence.proxy.async.global;" ::: "memory");
}

// Until the phase of this parity has ended.
__device__ __forceinline__ void await_phase(unsigned at, unsigned parity) {
  unsigned ended;
  do {
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n}" : "=r"(ended) : "r"(at), "r"(parity) : "memory");
  } while (ended == 0);
}

// Shared memory may be written again.
__device__ __forceinline__ void await_pushes_read() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

// True when the run is lost, else when the peer's flag has come; a fence is still to follow.
__device__ __forceinline__ bool await_relaxed(const Comm& c, const Peers& peers, int slot,
                                              int peer) {
  const unsigned* flag = flag_at(c, c.self, slot, peer);
  const unsigned long long start = global_timer();
  bool lost = false;
  unsigned seen = load_flag(flag);
  while ((int)(seen - c.epoch) < 0 && !lost) {
    lost = load_flag((const unsigned*)c.self) != 0;
    // The timers of two multiprocessors may differ: signed, so that a step back is no timeout.
    if (!lost && (long long)(global_timer() - start) > c.timeout) {
      give_up(c, peers, slot, peer, seen);
      lost = true;
    }
    seen = load_flag(flag);
  }
  return lost;
}

__device__ __forceinline__ void bad_index(Record* record, int step, int node, long long index,
                                          long long extent) {
  if (!claim(record, 2)) return;
  record->step = step;
  record->node = node;
  record->index = index;
  record->extent = extent;
}

__device__ __forceinline__ void cast_f8e4m3_bf16_8(unsigned short* to, const unsigned char* from, bool ok) {
  const uint2 w = *(const uint2*)from;
  uint4 y;
  const unsigned nan0 = ((w.x & 0x7f7f7f7fu) + 0x01010101u) & 0x80808080u;
  y.x = cast_pair_f8e4m3_bf16(__byte_perm(w.x, 0u, 0x1404), spread_signs(nan0, 0x9988u));
  y.y = cast_pair_f8e4m3_bf16(__byte_perm(w.x, 0u, 0x3424), spread_signs(nan0, 0xbbaau));
  const unsigned nan1 = ((w.y & 0x7f7f7f7fu) + 0x01010101u) & 0x80808080u;
  y.z = cast_pair_f8e4m3_bf16(__byte_perm(w.y, 0u, 0x1404), spread_signs(nan1, 0x9988u));
  y.w = cast_pair_f8e4m3_bf16(__byte_perm(w.y, 0u, 0x3424), spread_signs(nan1, 0xbbaau));
  if (ok) *(uint4*)to = y;
}

__device__ __forceinline__ unsigned cast_pair_f8e4m3_bf16(unsigned p, unsigned nan) {
  unsigned y;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;"
      : "=r"(y) : "r"((p & 0x80008000u) | (p & 0x7f007f00u) >> 4), "r"(0x7b807b80u), "r"(nan));
  return y;
}

__device__ __forceinline__ bool claim(Record* record, unsigned kind) {
  return atomicCAS(&record->kind, 0u, kind) == 0u;
}

// Every thread has read the epoch: the first signal's barrier comes after that.
__device__ __forceinline__ void close_comm(const Comm& c) {
  if (threadIdx.x == 0) *epoch_at(c) = c.epoch;
}

__device__ __forceinline__ void commit_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }

__device__ __forceinline__ void commit_pushes() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// 16 bytes from global to shared memory; zeros when not ok.
__device__ __forceinline__ void copy_async_16(unsigned to, const void* from, bool ok) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :: "r"(to), "l"(from), "r"(ok ? 16 : 0) : "memory");
}

__device__ __forceinline__ void copy_async_2(unsigned to, const void* from, bool ok) {
  unsigned short value = 0;
  if (ok) value = *(const unsigned short*)from;
  asm volatile("st.shared.u16 [%0], %1;" :: "r"(to), "h"(value) : "memory");
}

// 8 bytes from global to shared memory; zeros when not ok.
__device__ __forceinline__ void copy_async_8(unsigned to, const void* from, bool ok) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;"
               :: "r"(to), "l"(from), "r"(ok ? 8 : 0) : "memory");
}

__device__ __forceinline__ void copy_tile(unsigned to, const void* map, unsigned full, int col, int row) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
               "[%0], [%1, {%3, %4}], [%2];" :: "r"(to), "l"(map), "r"(full), "r"(col), "r"(row) : "memory");
}

__device__ __forceinline__ void copy_tile_3d(unsigned to, const void* map, unsigned full, int col, int row, int at_2) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
               "[%0], [%1, {%3, %4, %5}], [%2];" :: "r"(to), "l"(map), "r"(full), "r"(col), "r"(row), "r"(at_2) : "memory");
}

// An operand in panels of 128 bytes; `leading` bytes apart.
__device__ __forceinline__ unsigned long long descriptor(unsigned at, unsigned leading) {
  return (unsigned long long)((at & 0x3ffff) >> 4) | (unsigned long long)(leading >> 4) << 16 |
         (unsigned long long)(1024 >> 4) << 32 | 1ull << 62;
}

// The words of a step: an epoch of each block, then for each slot a flag of each rank.
__device__ __forceinline__ unsigned* epoch_at(const Comm& c) {
  return (unsigned*)(c.self + c.flags) + blockIdx.x;
}

__device__ __forceinline__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ void fence() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

// What threads wrote to shared memory, bulk copies see.
__device__ __forceinline__ void fence_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void find_missing(Missing& missing, const Comm& c, unsigned long long packet,
                                             long long at, int peer, bool ok) {
  if (is_missing(c, packet, ok)) missing = {true, (int)at, peer, (unsigned)(packet >> 32)};
}

__device__ __forceinline__ unsigned* flag_at(const Comm& c, unsigned char* base, int slot, int from) {
  return (unsigned*)(base + c.flags) + gridDim.x + slot * 2 + from;
}

__device__ __forceinline__ unsigned* flag_at(const Comm& c, unsigned char* base, int slot, int from) {
  return (unsigned*)(base + c.flags) + gridDim.x + slot * 4 + from;
}

__device__ __forceinline__ unsigned* flag_at(const Comm& c, unsigned char* base, int slot, int from) {
  return (unsigned*)(base + c.flags) + gridDim.x + slot * 8 + from;
}

__device__ __forceinline__ unsigned* flag_at(const Comm& c, unsigned char* base, int slot, int from) {
  return (unsigned*)(base + c.flags) + gridDim.x + slot * 3 + from;
}

// Past the deadline: says on every rank that the run is lost, and once, here, who waited for whom.
__device__ __forceinline__ void give_up(const Comm& c, const Peers& peers, int slot, int peer,
                                        unsigned seen) {
  if (claim(c.record, 1)) {
    c.record->step = c.step;
    c.record->block = blockIdx.x;
    c.record->slot = slot;
    c.record->peer = peer;
    c.record->expected = c.epoch;
    c.record->seen = seen;
  }
#pragma unroll 16
  for (int r = 0; r < 2; ++r) store_flag((unsigned*)peers.base[r], 1u);
}

// Past the deadline: says on every rank that the run is lost, and once, here, who waited for whom.
__device__ __forceinline__ void give_up(const Comm& c, const Peers& peers, int slot, int peer,
                                        unsigned seen) {
  if (claim(c.record, 1)) {
    c.record->step = c.step;
    c.record->block = blockIdx.x;
    c.record->slot = slot;
    c.record->peer = peer;
    c.record->expected = c.epoch;
    c.record->seen = seen;
  }
#pragma unroll 16
  for (int r = 0; r < 4; ++r) store_flag((unsigned*)peers.base[r], 1u);
}

// Past the deadline: says on every rank that the run is lost, and once, here, who waited for whom.
__device__ __forceinline__ void give_up(const Comm& c, const Peers& peers, int slot, int peer,
                                        unsigned seen) {
  if (claim(c.record, 1)) {
    c.record->step = c.step;
    c.record->block = blockIdx.x;
    c.record->slot = slot;
    c.record->peer = peer;
    c.record->expected = c.epoch;
    c.record->seen = seen;
  }
#pragma unroll 16
  for (int r = 0; r < 8; ++r) store_flag((unsigned*)peers.base[r], 1u);
}

// Past the deadline: says on every rank that the run is lost, and once, here, who waited for whom.
__device__ __forceinline__ void give_up(const Comm& c, const Peers& peers, int slot, int peer,
                                        unsigned seen) {
  if (claim(c.record, 1)) {
    c.record->step = c.step;
    c.record->block = blockIdx.x;
    c.record->slot = slot;
    c.record->peer = peer;
    c.record->expected = c.epoch;
    c.record->seen = seen;
  }
#pragma unroll 16
  for (int r = 0; r < 3; ++r) store_flag((unsigned*)peers.base[r], 1u);
}

__device__ __forceinline__ unsigned long long global_timer() {
  unsigned long long t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

__device__ __forceinline__ void init_mbarrier(unsigned at, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at), "r"(arrivals) : "memory");
}

__device__ __forceinline__ bool is_missing(const Comm& c, unsigned long long packet, bool ok) {
  return ok && (unsigned)(packet >> 32) != c.epoch;
}

__device__ __forceinline__ void ldmatrix(unsigned* r, unsigned from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(from) : "memory");
}

__device__ __forceinline__ void ldmatrix_trans(unsigned* r, unsigned from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(from) : "memory");
}

// Pairs of columns come together: the even ones are a fragment, the odd ones the next.
__device__ __forceinline__ void ldmatrix_trans_bytes(unsigned* r, unsigned from) {
  unsigned p[4];
  ldmatrix_trans(p, from);
  for (int i = 0; i < 4; ++i) {
    r[i] = __byte_perm(p[i % 2 * 2], p[i % 2 * 2 + 1], i < 2 ? 0x6420 : 0x7531);
  }
}

__device__ __forceinline__ void ll_store_bf16_2(const Comm& c, unsigned char* base, long long at, const float* v, bool ok) {
  if (!ok) return;
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;"
               :: "l"((unsigned long long*)base + at / 2), "l"((unsigned long long)c.epoch << 32 | (narrow_pair_bf16(v[0], v[1]))));
}

__device__ __forceinline__ void ll_store_f16_2(const Comm& c, unsigned char* base, long long at, const float* v, bool ok) {
  if (!ok) return;
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;"
               :: "l"((unsigned long long*)base + at / 2), "l"((unsigned long long)c.epoch << 32 | (narrow_pair_f16(v[0], v[1]))));
}

__device__ __forceinline__ void load_bf16_1(float* v, const unsigned short* p, bool ok) {
  v[0] = ok ? __uint_as_float((unsigned)p[0] << 16) : 0;
}

__device__ __forceinline__ void load_bf16_2(float* v, const unsigned short* p, bool ok) {
  unsigned w = 0u;
  if (ok) w = *(const unsigned*)p;
  v[0] = __uint_as_float(w << 16);
  v[1] = __uint_as_float(w & 0xffff0000u);
}

__device__ __forceinline__ void load_bf16_8(float* v, const unsigned short* p, bool ok) {
  uint4 w = make_uint4(0u, 0u, 0u, 0u);
  if (ok) w = *(const uint4*)p;
  v[0] = __uint_as_float(w.x << 16);
  v[1] = __uint_as_float(w.x & 0xffff0000u);
  v[2] = __uint_as_float(w.y << 16);
  v[3] = __uint_as_float(w.y & 0xffff0000u);
  v[4] = __uint_as_float(w.z << 16);
  v[5] = __uint_as_float(w.z & 0xffff0000u);
  v[6] = __uint_as_float(w.w << 16);
  v[7] = __uint_as_float(w.w & 0xffff0000u);
}

__device__ __forceinline__ void load_f16_1(float* v, const unsigned short* p, bool ok) {
  v[0] = ok ? widen_f16(p[0]) : 0;
}

__device__ __forceinline__ void load_f32_1(float* v, const float* p, bool ok) {
  unsigned w = 0u;
  if (ok) w = *(const unsigned*)p;
  v[0] = __uint_as_float(w);
}

__device__ __forceinline__ void load_f32_2(float* v, const float* p, bool ok) {
  uint2 w = make_uint2(0u, 0u);
  if (ok) w = *(const uint2*)p;
  v[0] = __uint_as_float(w.x);
  v[1] = __uint_as_float(w.y);
}

__device__ __forceinline__ void load_f32_4(float* v, const float* p, bool ok) {
  uint4 w = make_uint4(0u, 0u, 0u, 0u);
  if (ok) w = *(const uint4*)p;
  v[0] = __uint_as_float(w.x);
  v[1] = __uint_as_float(w.y);
  v[2] = __uint_as_float(w.z);
  v[3] = __uint_as_float(w.w);
}

__device__ __forceinline__ unsigned load_flag(const unsigned* p) {
  unsigned v;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}

__device__ __forceinline__ void load_i32_1(long long* v, const int* p, bool ok) {
  unsigned w = 0u;
  if (ok) w = *(const unsigned*)p;
  v[0] = (int)(w);
}

__device__ __forceinline__ void load_i32_2(long long* v, const int* p, bool ok) {
  uint2 w = make_uint2(0u, 0u);
  if (ok) w = *(const uint2*)p;
  v[0] = (int)(w.x);
  v[1] = (int)(w.y);
}

__device__ __forceinline__ void load_i32_4(long long* v, const int* p, bool ok) {
  uint4 w = make_uint4(0u, 0u, 0u, 0u);
  if (ok) w = *(const uint4*)p;
  v[0] = (int)(w.x);
  v[1] = (int)(w.y);
  v[2] = (int)(w.z);
  v[3] = (int)(w.w);
}

__device__ __forceinline__ void load_i64_1(long long* v, const long long* p, bool ok) {
  uint2 w = make_uint2(0u, 0u);
  if (ok) w = *(const uint2*)p;
  v[0] = (long long)((unsigned long long)w.y << 32 | w.x);
}

__device__ __forceinline__ unsigned long long load_packet(const unsigned long long* p) {
  unsigned long long v;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p));
  return v;
}

// NaN wins, and -0 is below +0.
__device__ __forceinline__ float max_f32(float a, float b) {
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}

__device__ __forceinline__ long long max_i64(long long a, long long b) { return a > b ? a : b; }

// The threads that compute meet, without those of other roles.
__device__ __forceinline__ void meet() { asm volatile("bar.sync 1, 256;" ::: "memory"); }

// All blocks of the grid meet. False when one did not come in time; then the block must leave.
__device__ __forceinline__ bool meet_blocks(unsigned* counter, Record* record, int step,
                                            long long timeout) {
  __syncthreads();
  bool lost = false;
  if (threadIdx.x == 0) {
    const unsigned own = blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1u) : 1u;
    unsigned before, seen;
    unsigned long long start, now;
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
    asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], %2;"
                 : "=r"(before) : "l"(counter), "r"(own) : "memory");
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do {
      asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(counter) : "memory");
      asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
      lost = (long long)(now - start) > timeout;
    } while (((before ^ seen) & 0x80000000u) == 0u && !lost);
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
    lost = ((before ^ seen) & 0x80000000u) == 0u;
    if (lost && claim(record, 1)) {
      record->step = step;
      record->block = blockIdx.x;
      record->expected = ~before & 0x80000000u;
      record->seen = seen;
    }
  }
  return !__syncthreads_or(lost);
}

__device__ __forceinline__ bool meet_or(bool any) {
  int met;
  asm volatile("{\n"
               ".reg .pred own, all;\n"
               "setp.ne.s32 own, %1, 0;\n"
               "bar.red.or.pred all, 1, 256, own;\n"
               "selp.s32 %0, 1, 0, all;\n"
               "}" : "=r"(met) : "r"((int)any) : "memory");
  return met != 0;
}

__device__ __forceinline__ long long min_i64(long long a, long long b) { return a < b ? a : b; }

__device__ __forceinline__ void mma_bf16_bf16(float* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ void mma_e4m3_e4m3_by_2(float* c, const unsigned* a, const unsigned* b) {
#if __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200
  mma_f16_f16_by_2(c, a, b);
  mma_f16_f16_by_2(c, a + 4, b + 2);
#else
  mma_e4m3_e4m3_by_2_native(c, a, b);
#endif
}

__device__ __forceinline__ void mma_e4m3_e4m3_by_2_native(float* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[2]), "+f"(c[4]), "+f"(c[6])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ void mma_f16_f16(float* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ void mma_f16_f16_by_2(float* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[2]), "+f"(c[4]), "+f"(c[6])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ void multimem_reduce_bf16_8(float* v, const unsigned char* base, long long at, bool ok) {
  const unsigned short* const p = (const unsigned short*)base + at;
  unsigned w[4] = {};
  if (ok) asm volatile("multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.bf16x2 {%0, %1, %2, %3}, [%4];"
                 : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3]) : "l"(p) : "memory");
  v[0] = __uint_as_float((unsigned)(unsigned short)(w[0] >> 0) << 16);
  v[1] = __uint_as_float((unsigned)(unsigned short)(w[0] >> 16) << 16);
  v[2] = __uint_as_float((unsigned)(unsigned short)(w[1] >> 0) << 16);
  v[3] = __uint_as_float((unsigned)(unsigned short)(w[1] >> 16) << 16);
  v[4] = __uint_as_float((unsigned)(unsigned short)(w[2] >> 0) << 16);
  v[5] = __uint_as_float((unsigned)(unsigned short)(w[2] >> 16) << 16);
  v[6] = __uint_as_float((unsigned)(unsigned short)(w[3] >> 0) << 16);
  v[7] = __uint_as_float((unsigned)(unsigned short)(w[3] >> 16) << 16);
}

__device__ __forceinline__ void multimem_reduce_part_f16_8(float* v, const Peers& peers, const unsigned char* multicast, const unsigned char* base, long long at, bool ok0, bool ok1, bool ok2, bool ok3, bool ok4, bool ok5, bool ok6, bool ok7) {
  const unsigned short* const p = (const unsigned short*)base + at;
  if (ok0 && ok1 && ok2 && ok3 && ok4 && ok5 && ok6 && ok7) {
    unsigned w[4] = {};
    asm volatile("multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.f16x2 {%0, %1, %2, %3}, [%4];"
                 : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3]) : "l"(p) : "memory");
    v[0] = widen_f16((unsigned short)(w[0] >> 0));
    v[1] = widen_f16((unsigned short)(w[0] >> 16));
    v[2] = widen_f16((unsigned short)(w[1] >> 0));
    v[3] = widen_f16((unsigned short)(w[1] >> 16));
    v[4] = widen_f16((unsigned short)(w[2] >> 0));
    v[5] = widen_f16((unsigned short)(w[2] >> 16));
    v[6] = widen_f16((unsigned short)(w[3] >> 0));
    v[7] = widen_f16((unsigned short)(w[3] >> 16));
    return;
  }
  v[0] = ok0 ? reduce_one_f16(peers, multicast, p + 0) : 0.0f;
  v[1] = ok1 ? reduce_one_f16(peers, multicast, p + 1) : 0.0f;
  v[2] = ok2 ? reduce_one_f16(peers, multicast, p + 2) : 0.0f;
  v[3] = ok3 ? reduce_one_f16(peers, multicast, p + 3) : 0.0f;
  v[4] = ok4 ? reduce_one_f16(peers, multicast, p + 4) : 0.0f;
  v[5] = ok5 ? reduce_one_f16(peers, multicast, p + 5) : 0.0f;
  v[6] = ok6 ? reduce_one_f16(peers, multicast, p + 6) : 0.0f;
  v[7] = ok7 ? reduce_one_f16(peers, multicast, p + 7) : 0.0f;
}

__device__ __forceinline__ void multimem_reduce_part_f32_4(float* v, const Peers& peers, const unsigned char* multicast, const unsigned char* base, long long at, bool ok0, bool ok1, bool ok2, bool ok3) {
  const float* const p = (const float*)base + at;
  if (ok0 && ok1 && ok2 && ok3) {
    float w[4] = {};
    asm volatile("multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(w[0]), "=f"(w[1]), "=f"(w[2]), "=f"(w[3]) : "l"(p) : "memory");
    v[0] = w[0];
    v[1] = w[1];
    v[2] = w[2];
    v[3] = w[3];
    return;
  }
  v[0] = ok0 ? reduce_one_f32(peers, multicast, p + 0) : 0.0f;
  v[1] = ok1 ? reduce_one_f32(peers, multicast, p + 1) : 0.0f;
  v[2] = ok2 ? reduce_one_f32(peers, multicast, p + 2) : 0.0f;
  v[3] = ok3 ? reduce_one_f32(peers, multicast, p + 3) : 0.0f;
}

__device__ __forceinline__ void multimem_store_bf16_8(const float* v, unsigned char* base, long long at, bool ok) {
  unsigned short* const p = (unsigned short*)base + at;
  if (ok) asm volatile("multimem.st.relaxed.sys.global.v4.bf16x2 [%0], {%1, %2, %3, %4};"
                 :: "l"(p), "r"((unsigned)narrow_bf16(v[0]) | (unsigned)narrow_bf16(v[1]) << 16), "r"((unsigned)narrow_bf16(v[2]) | (unsigned)narrow_bf16(v[3]) << 16), "r"((unsigned)narrow_bf16(v[4]) | (unsigned)narrow_bf16(v[5]) << 16), "r"((unsigned)narrow_bf16(v[6]) | (unsigned)narrow_bf16(v[7]) << 16) : "memory");
}

__device__ __forceinline__ void multimem_store_part_f16_8(const float* v, const Peers& peers, const unsigned char* multicast, unsigned char* base, long long at, bool ok0, bool ok1, bool ok2, bool ok3, bool ok4, bool ok5, bool ok6, bool ok7) {
  unsigned short* const p = (unsigned short*)base + at;
  if (ok0 && ok1 && ok2 && ok3 && ok4 && ok5 && ok6 && ok7) {
    asm volatile("multimem.st.relaxed.sys.global.v4.f16x2 [%0], {%1, %2, %3, %4};"
                 :: "l"(p), "r"((unsigned)narrow_f16(v[0]) | (unsigned)narrow_f16(v[1]) << 16), "r"((unsigned)narrow_f16(v[2]) | (unsigned)narrow_f16(v[3]) << 16), "r"((unsigned)narrow_f16(v[4]) | (unsigned)narrow_f16(v[5]) << 16), "r"((unsigned)narrow_f16(v[6]) | (unsigned)narrow_f16(v[7]) << 16) : "memory");
    return;
  }
  if (ok0) store_one_f16(peers, multicast, p + 0, v[0]);
  if (ok1) store_one_f16(peers, multicast, p + 1, v[1]);
  if (ok2) store_one_f16(peers, multicast, p + 2, v[2]);
  if (ok3) store_one_f16(peers, multicast, p + 3, v[3]);
  if (ok4) store_one_f16(peers, multicast, p + 4, v[4]);
  if (ok5) store_one_f16(peers, multicast, p + 5, v[5]);
  if (ok6) store_one_f16(peers, multicast, p + 6, v[6]);
  if (ok7) store_one_f16(peers, multicast, p + 7, v[7]);
}

__device__ __forceinline__ void multimem_store_part_f32_4(const float* v, const Peers& peers, const unsigned char* multicast, unsigned char* base, long long at, bool ok0, bool ok1, bool ok2, bool ok3) {
  float* const p = (float*)base + at;
  if (ok0 && ok1 && ok2 && ok3) {
    asm volatile("multimem.st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};"
                 :: "l"(p), "f"(v[0]), "f"(v[1]), "f"(v[2]), "f"(v[3]) : "memory");
    return;
  }
  if (ok0) store_one_f32(peers, multicast, p + 0, v[0]);
  if (ok1) store_one_f32(peers, multicast, p + 1, v[1]);
  if (ok2) store_one_f32(peers, multicast, p + 2, v[2]);
  if (ok3) store_one_f32(peers, multicast, p + 3, v[3]);
}

__device__ __forceinline__ unsigned short narrow_bf16(float x) {
  unsigned short y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ unsigned short narrow_f16(float x) {
  unsigned short y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ unsigned narrow_pair_bf16(float x, float y) {
  unsigned w;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(y), "f"(x));
  return w;
}

__device__ __forceinline__ unsigned narrow_pair_f16(float x, float y) {
  unsigned w;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(y), "f"(x));
  return w;
}

__device__ __forceinline__ Comm open_comm(const Peers& peers, int rank, long long flags, int step,
                                          Record* record, long long timeout) {
  Comm c;
  c.self = peers.base[0];
#pragma unroll 16
  for (int r = 1; r < 2; ++r) c.self = r == rank ? peers.base[r] : c.self;
  c.record = record;
  c.flags = flags;
  c.rank = rank;
  c.step = step;
  c.timeout = timeout;
  c.epoch = *epoch_at(c) + 1;
  return c;
}

__device__ __forceinline__ Comm open_comm(const Peers& peers, int rank, long long flags, int step,
                                          Record* record, long long timeout) {
  Comm c;
  c.self = peers.base[0];
#pragma unroll 16
  for (int r = 1; r < 4; ++r) c.self = r == rank ? peers.base[r] : c.self;
  c.record = record;
  c.flags = flags;
  c.rank = rank;
  c.step = step;
  c.timeout = timeout;
  c.epoch = *epoch_at(c) + 1;
  return c;
}

__device__ __forceinline__ Comm open_comm(const Peers& peers, int rank, long long flags, int step,
                                          Record* record, long long timeout) {
  Comm c;
  c.self = peers.base[0];
#pragma unroll 16
  for (int r = 1; r < 8; ++r) c.self = r == rank ? peers.base[r] : c.self;
  c.record = record;
  c.flags = flags;
  c.rank = rank;
  c.step = step;
  c.timeout = timeout;
  c.epoch = *epoch_at(c) + 1;
  return c;
}

__device__ __forceinline__ Comm open_comm(const Peers& peers, int rank, long long flags, int step,
                                          Record* record, long long timeout) {
  Comm c;
  c.self = peers.base[0];
#pragma unroll 16
  for (int r = 1; r < 3; ++r) c.self = r == rank ? peers.base[r] : c.self;
  c.record = record;
  c.flags = flags;
  c.rank = rank;
  c.step = step;
  c.timeout = timeout;
  c.epoch = *epoch_at(c) + 1;
  return c;
}

// A packet is 8 bytes that are written and read at once: a payload, and above it the epoch as its
// flag. So it needs no fence: who sees the flag has the payload.
//
// Zeroed memory is no packet: 2 comes after 2^32 - 1, and parities still alternate.
__device__ __forceinline__ void open_packets(Comm& c) {
  if (c.epoch == 0u) c.epoch = 2u;
}

__device__ __forceinline__ unsigned pack_bf16(const float* v) { return narrow_pair_bf16(v[0], v[1]); }

// Looks again where the packet was missing.
__device__ __forceinline__ void poll_packet(unsigned long long& packet, const Comm& c,
                                            const unsigned char* base, long long at, bool ok) {
  if (is_missing(c, packet, ok)) packet = load_packet((const unsigned long long*)base + at);
}

__device__ __forceinline__ void push_tile(const void* map, unsigned from, int col, int row) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];"
               :: "l"(map), "r"(from), "r"(col), "r"(row) : "memory");
}

// 16 bits are less than a multimem instruction takes: an element that is alone, rank by rank.
__device__ __forceinline__ float reduce_one_f16(const Peers& peers, const unsigned char* multicast,
                                                const unsigned short* p) {
  const long long at = (const unsigned char*)p - multicast;
  float sum = widen_f16((*(const unsigned short*)(peers.base[0] + at)));
#pragma unroll 16
  for (int r = 1; r < 3; ++r) sum += widen_f16((*(const unsigned short*)(peers.base[r] + at)));
  return round_f16(sum);
}

__device__ __forceinline__ float reduce_one_f32(const Peers&, const unsigned char*, const float* p) {
  float v;
  asm volatile("multimem.ld_reduce.relaxed.sys.global.add.f32 %0, [%1];" : "=f"(v) : "l"(p) : "memory");
  return v;
}

__device__ __forceinline__ float round_bf16(float x) { return __uint_as_float((unsigned)narrow_bf16(x) << 16); }

__device__ __forceinline__ float round_f16(float x) { return widen_f16(narrow_f16(x)); }

__device__ __forceinline__ long long saturate_i64(float x) { return __float2ll_rz(x); }

__device__ __forceinline__ unsigned shared_address(const void* p) {
  return (unsigned)__cvta_generic_to_shared(p);
}

// Everything this block did before is visible to a peer that sees the flag. Where there are more
// peers than threads, a thread has several.
__device__ __forceinline__ void signal(const Comm& c, const Peers& peers, int slot) {
  __syncthreads();
  if (threadIdx.x < 2) fence();
#pragma unroll 1
  for (int r = threadIdx.x; r < 2; r += 256) {
    store_flag(flag_at(c, peers.base[r], slot, c.rank), c.epoch);
  }
}

// Everything this block did before is visible to a peer that sees the flag. Where there are more
// peers than threads, a thread has several.
__device__ __forceinline__ void signal(const Comm& c, const Peers& peers, int slot) {
  __syncthreads();
  if (threadIdx.x < 4) fence();
#pragma unroll 1
  for (int r = threadIdx.x; r < 4; r += 256) {
    store_flag(flag_at(c, peers.base[r], slot, c.rank), c.epoch);
  }
}

// Everything this block did before is visible to a peer that sees the flag. Where there are more
// peers than threads, a thread has several.
__device__ __forceinline__ void signal(const Comm& c, const Peers& peers, int slot) {
  __syncthreads();
  if (threadIdx.x < 8) fence();
#pragma unroll 1
  for (int r = threadIdx.x; r < 8; r += 256) {
    store_flag(flag_at(c, peers.base[r], slot, c.rank), c.epoch);
  }
}

// Everything this block did before is visible to a peer that sees the flag. Where there are more
// peers than threads, a thread has several.
__device__ __forceinline__ void signal(const Comm& c, const Peers& peers, int slot) {
  __syncthreads();
  if (threadIdx.x < 2) fence();
#pragma unroll 1
  for (int r = threadIdx.x; r < 2; r += 512) {
    store_flag(flag_at(c, peers.base[r], slot, c.rank), c.epoch);
  }
}

// Everything this block did before is visible to a peer that sees the flag. Where there are more
// peers than threads, a thread has several.
__device__ __forceinline__ void signal(const Comm& c, const Peers& peers, int slot) {
  __syncthreads();
  if (threadIdx.x < 8) fence();
#pragma unroll 1
  for (int r = threadIdx.x; r < 8; r += 512) {
    store_flag(flag_at(c, peers.base[r], slot, c.rank), c.epoch);
  }
}

// Everything this block did before is visible to a peer that sees the flag. Where there are more
// peers than threads, a thread has several.
__device__ __forceinline__ void signal(const Comm& c, const Peers& peers, int slot) {
  __syncthreads();
  if (threadIdx.x < 3) fence();
#pragma unroll 1
  for (int r = threadIdx.x; r < 3; r += 512) {
    store_flag(flag_at(c, peers.base[r], slot, c.rank), c.epoch);
  }
}

// Everything this block did before is visible to a peer that sees the flag. Where there are more
// peers than threads, a thread has several.
__device__ __forceinline__ void signal(const Comm& c, const Peers& peers, int slot) {
  __syncthreads();
  if (threadIdx.x < 4) fence();
#pragma unroll 1
  for (int r = threadIdx.x; r < 4; r += 512) {
    store_flag(flag_at(c, peers.base[r], slot, c.rank), c.epoch);
  }
}

// Everything this block did before is visible to a peer that sees the flag. Where there are more
// peers than threads, a thread has several.
__device__ __forceinline__ void signal(const Comm& c, const Peers& peers, int slot) {
  meet();
  if (threadIdx.x < 8) fence();
#pragma unroll 1
  for (int r = threadIdx.x; r < 8; r += 256) {
    store_flag(flag_at(c, peers.base[r], slot, c.rank), c.epoch);
  }
}

// Everything this block did before is visible to a peer that sees the flag. Where there are more
// peers than threads, a thread has several.
__device__ __forceinline__ void signal(const Comm& c, const Peers& peers, int slot) {
  __syncthreads();
  if (threadIdx.x < 2) fence();
#pragma unroll 1
  for (int r = threadIdx.x; r < 2; r += 128) {
    store_flag(flag_at(c, peers.base[r], slot, c.rank), c.epoch);
  }
}

// Everything this block did before is visible to a peer that sees the flag. Where there are more
// peers than threads, a thread has several.
__device__ __forceinline__ void signal(const Comm& c, const Peers& peers, int slot) {
  __syncthreads();
  if (threadIdx.x < 4) fence();
#pragma unroll 1
  for (int r = threadIdx.x; r < 4; r += 32) {
    store_flag(flag_at(c, peers.base[r], slot, c.rank), c.epoch);
  }
}

__device__ __forceinline__ void signal_one(const Comm& c, const Peers& peers, int slot, int rank) {
  meet();
  if (threadIdx.x != 0) return;
  fence();
  store_flag(flag_at(c, peers.base[rank], slot, c.rank), c.epoch);
}

extern __shared__ __align__(1024) unsigned char smem[];

__device__ __forceinline__ unsigned spread_signs(unsigned x, unsigned which) {
  unsigned y;
  asm("prmt.b32 %0, %1, 0, %2;" : "=r"(y) : "r"(x), "r"(which));
  return y;
}

__device__ __forceinline__ void stmatrix(unsigned to, unsigned a, unsigned b, unsigned c, unsigned d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
               :: "r"(to), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}

__device__ __forceinline__ void store_bf16_1(unsigned short* p, const float* v, bool ok) {
  if (ok) p[0] = narrow_bf16(v[0]);
}

__device__ __forceinline__ void store_bf16_2(unsigned short* p, const float* v, bool ok) {
  unsigned w;
  w = narrow_pair_bf16(v[0], v[1]);
  if (ok) *(unsigned*)p = w;
}

__device__ __forceinline__ void store_bf16_4(unsigned short* p, const float* v, bool ok) {
  uint2 w;
  w.x = narrow_pair_bf16(v[0], v[1]);
  w.y = narrow_pair_bf16(v[2], v[3]);
  if (ok) *(uint2*)p = w;
}

__device__ __forceinline__ void store_bf16_8(unsigned short* p, const float* v, bool ok) {
  uint4 w;
  w.x = narrow_pair_bf16(v[0], v[1]);
  w.y = narrow_pair_bf16(v[2], v[3]);
  w.z = narrow_pair_bf16(v[4], v[5]);
  w.w = narrow_pair_bf16(v[6], v[7]);
  if (ok) *(uint4*)p = w;
}

__device__ __forceinline__ void store_f16_1(unsigned short* p, const float* v, bool ok) {
  if (ok) p[0] = narrow_f16(v[0]);
}

__device__ __forceinline__ void store_f16_8(unsigned short* p, const float* v, bool ok) {
  uint4 w;
  w.x = narrow_pair_f16(v[0], v[1]);
  w.y = narrow_pair_f16(v[2], v[3]);
  w.z = narrow_pair_f16(v[4], v[5]);
  w.w = narrow_pair_f16(v[6], v[7]);
  if (ok) *(uint4*)p = w;
}

__device__ __forceinline__ void store_f32_1(float* p, const float* v, bool ok) {
  unsigned w;
  w = __float_as_uint(v[0]);
  if (ok) *(unsigned*)p = w;
}

__device__ __forceinline__ void store_f32_2(float* p, const float* v, bool ok) {
  uint2 w;
  w.x = __float_as_uint(v[0]);
  w.y = __float_as_uint(v[1]);
  if (ok) *(uint2*)p = w;
}

__device__ __forceinline__ void store_f32_4(float* p, const float* v, bool ok) {
  uint4 w;
  w.x = __float_as_uint(v[0]);
  w.y = __float_as_uint(v[1]);
  w.z = __float_as_uint(v[2]);
  w.w = __float_as_uint(v[3]);
  if (ok) *(uint4*)p = w;
}

__device__ __forceinline__ void store_flag(unsigned* p, unsigned v) {
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" :: "l"(p), "r"(v) : "memory");
}

__device__ __forceinline__ void store_i32_1(int* p, const long long* v, bool ok) {
  unsigned w;
  w = (unsigned)v[0];
  if (ok) *(unsigned*)p = w;
}

__device__ __forceinline__ void store_i32_4(int* p, const long long* v, bool ok) {
  uint4 w;
  w.x = (unsigned)v[0];
  w.y = (unsigned)v[1];
  w.z = (unsigned)v[2];
  w.w = (unsigned)v[3];
  if (ok) *(uint4*)p = w;
}

__device__ __forceinline__ void store_i64_1(long long* p, const long long* v, bool ok) {
  uint2 w;
  w.x = (unsigned)(v[0]);
  w.y = (unsigned)((unsigned long long)v[0] >> 32);
  if (ok) *(uint2*)p = w;
}

__device__ __forceinline__ void store_one_f16(const Peers& peers, const unsigned char* multicast,
                                              unsigned short* p, float v) {
  const long long at = (unsigned char*)p - multicast;
#pragma unroll 16
  for (int r = 0; r < 3; ++r) *(unsigned short*)(peers.base[r] + at) = narrow_f16(v);
}

__device__ __forceinline__ void store_one_f32(const Peers&, const unsigned char*, float* p, float v) {
  asm volatile("multimem.st.relaxed.sys.global.f32 [%0], %1;" :: "l"(p), "f"(v) : "memory");
}

__device__ __forceinline__ void unpack_bf16_2(float* v, unsigned w, bool ok0, bool ok1) {
  v[0] = ok0 ? __uint_as_float((unsigned)(unsigned short)w << 16) : 0;
  v[1] = ok1 ? __uint_as_float((unsigned)(unsigned short)(w >> 16) << 16) : 0;
}

__device__ __forceinline__ void unpack_f16_2(float* v, unsigned w, bool ok0, bool ok1) {
  v[0] = ok0 ? widen_f16((unsigned short)w) : 0;
  v[1] = ok1 ? widen_f16((unsigned short)(w >> 16)) : 0;
}

// False when the run is lost; then the block must leave.
__device__ __forceinline__ bool wait(const Comm& c, const Peers& peers, int slot) {
  bool lost = false;
#pragma unroll 1
  for (int first = 0; first < 2; first += 256) {
    const int peer = first + threadIdx.x;
    if (peer >= 2 || lost) break;
    lost = await(c, peers, slot, peer);
  }
  return !__syncthreads_or(lost);
}

// False when the run is lost; then the block must leave.
__device__ __forceinline__ bool wait(const Comm& c, const Peers& peers, int slot) {
  bool lost = false;
#pragma unroll 1
  for (int first = 0; first < 4; first += 256) {
    const int peer = first + threadIdx.x;
    if (peer >= 4 || lost) break;
    lost = await(c, peers, slot, peer);
  }
  return !__syncthreads_or(lost);
}

// False when the run is lost; then the block must leave.
__device__ __forceinline__ bool wait(const Comm& c, const Peers& peers, int slot) {
  bool lost = false;
#pragma unroll 1
  for (int first = 0; first < 8; first += 256) {
    const int peer = first + threadIdx.x;
    if (peer >= 8 || lost) break;
    lost = await(c, peers, slot, peer);
  }
  return !__syncthreads_or(lost);
}

// False when the run is lost; then the block must leave.
__device__ __forceinline__ bool wait(const Comm& c, const Peers& peers, int slot) {
  bool lost = false;
#pragma unroll 1
  for (int first = 0; first < 2; first += 512) {
    const int peer = first + threadIdx.x;
    if (peer >= 2 || lost) break;
    lost = await(c, peers, slot, peer);
  }
  return !__syncthreads_or(lost);
}

// False when the run is lost; then the block must leave.
__device__ __forceinline__ bool wait(const Comm& c, const Peers& peers, int slot) {
  bool lost = false;
#pragma unroll 1
  for (int first = 0; first < 8; first += 512) {
    const int peer = first + threadIdx.x;
    if (peer >= 8 || lost) break;
    lost = await(c, peers, slot, peer);
  }
  return !__syncthreads_or(lost);
}

// False when the run is lost; then the block must leave.
__device__ __forceinline__ bool wait(const Comm& c, const Peers& peers, int slot) {
  bool lost = false;
#pragma unroll 1
  for (int first = 0; first < 3; first += 512) {
    const int peer = first + threadIdx.x;
    if (peer >= 3 || lost) break;
    lost = await(c, peers, slot, peer);
  }
  return !__syncthreads_or(lost);
}

// False when the run is lost; then the block must leave.
__device__ __forceinline__ bool wait(const Comm& c, const Peers& peers, int slot) {
  bool lost = false;
#pragma unroll 1
  for (int first = 0; first < 4; first += 512) {
    const int peer = first + threadIdx.x;
    if (peer >= 4 || lost) break;
    lost = await(c, peers, slot, peer);
  }
  return !__syncthreads_or(lost);
}

// False when the run is lost; then the block must leave.
__device__ __forceinline__ bool wait(const Comm& c, const Peers& peers, int slot) {
  bool lost = false;
#pragma unroll 1
  for (int first = 0; first < 8; first += 256) {
    const int peer = first + threadIdx.x;
    if (peer >= 8 || lost) break;
    lost = await(c, peers, slot, peer);
  }
  return !meet_or(lost);
}

// False when the run is lost; then the block must leave.
__device__ __forceinline__ bool wait(const Comm& c, const Peers& peers, int slot) {
  bool lost = false;
#pragma unroll 1
  for (int first = 0; first < 2; first += 128) {
    const int peer = first + threadIdx.x;
    if (peer >= 2 || lost) break;
    lost = await(c, peers, slot, peer);
  }
  return !__syncthreads_or(lost);
}

// False when the run is lost; then the block must leave.
__device__ __forceinline__ bool wait(const Comm& c, const Peers& peers, int slot) {
  bool lost = false;
#pragma unroll 1
  for (int first = 0; first < 4; first += 32) {
    const int peer = first + threadIdx.x;
    if (peer >= 4 || lost) break;
    lost = await(c, peers, slot, peer);
  }
  return !__syncthreads_or(lost);
}

__device__ __forceinline__ void wait_group_0() {
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  __syncthreads();
}

__device__ __forceinline__ void wait_group_1() {
  asm volatile("cp.async.wait_group 1;" ::: "memory");
  __syncthreads();
}

__device__ __forceinline__ void wait_group_6() {
  asm volatile("cp.async.wait_group 6;" ::: "memory");
  __syncthreads();
}

// Whether to look again: not when all is there, nor when the run is lost.
__device__ __forceinline__ bool wait_more(const Comm& c, const Peers& peers, const Missing& missing,
                                          unsigned long long& start, bool& lost) {
  if (!missing.any || lost) return false;
  lost = load_flag((const unsigned*)c.self) != 0;
  if (start == 0) start = global_timer();
  if (!lost && (long long)(global_timer() - start) > c.timeout) {
    give_up(c, peers, missing.at, missing.peer, missing.seen);
    lost = true;
  }
  return !lost;
}

__device__ __forceinline__ bool wait_one(const Comm& c, const Peers& peers, int slot, int rank) {
  bool lost = false;
  if (threadIdx.x == 0) lost = await(c, peers, slot, rank);
  return !meet_or(lost);
}

// One fence for all the flags that a thread waits for.
__device__ __forceinline__ bool wait_slots(const Comm& c, const Peers& peers, int slot, int count) {
  bool lost = false;
#pragma unroll 1
  for (int i = threadIdx.x; i < count * 8 && !lost; i += 256) {
    lost = await_relaxed(c, peers, slot + i / 8, i % 8);
  }
  fence();
  return !meet_or(lost);
}

__device__ __forceinline__ void wgmma_128_bf16_tb(float* d, unsigned long long a, unsigned long long b, bool adds) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
      "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
      "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
      "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63},\n"
      " %64, %65, p, 1, 1, 0, 1;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), 
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), 
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), 
        "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), 
        "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), 
        "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), 
        "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), 
        "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
      : "l"(a), "l"(b), "r"((int)adds));
}

__device__ __forceinline__ void wgmma_128_f8e4m3(float* d, unsigned long long a, unsigned long long b, bool adds) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 {"
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
      "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
      "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
      "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63},\n"
      " %64, %65, p, 1, 1;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), 
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), 
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), 
        "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), 
        "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), 
        "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), 
        "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), 
        "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
      : "l"(a), "l"(b), "r"((int)adds));
}

__device__ __forceinline__ void wgmma_64_bf16_tb(float* d, unsigned long long a, unsigned long long b, bool adds) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
      "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31},\n"
      " %32, %33, p, 1, 1, 0, 1;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), 
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), 
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), 
        "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "l"(a), "l"(b), "r"((int)adds));
}

__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmma_r_128_bf16(float* d, const unsigned* a, unsigned long long b, bool adds) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
      "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
      "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
      "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63},\n"
      " {%64, %65, %66, %67}, %68, p, 1, 1, 0;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), 
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), 
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), 
        "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), 
        "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), 
        "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), 
        "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), 
        "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)adds));
}

__device__ __forceinline__ void wgmma_r_64_bf16_tb(float* d, const unsigned* a, unsigned long long b, bool adds) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
      "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31},\n"
      " {%32, %33, %34, %35}, %36, p, 1, 1, 1;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), 
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), 
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), 
        "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)adds));
}

__device__ __forceinline__ void wgmma_wait_0() {
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

__device__ __forceinline__ void wgmma_wait_1() {
  asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
}

__device__ __forceinline__ void wgmma_wait_2() {
  asm volatile("wgmma.wait_group.sync.aligned 2;" ::: "memory");
}

__device__ __forceinline__ void widen_2_words_e4m3(unsigned* to, const unsigned* from) {
#if __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200
  for (int i = 0; i < 2; ++i) {
    to[i / 1 * 2 + i % 1] = widen_pair_e4m3(from[i]);
    to[i / 1 * 2 + i % 1 + 1] = widen_pair_e4m3(from[i] >> 16);
  }
#else
  for (int i = 0; i < 2; ++i) to[i] = from[i];
#endif
}

__device__ __forceinline__ void widen_4_words_e4m3(unsigned* to, const unsigned* from) {
#if __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200
  for (int i = 0; i < 4; ++i) {
    to[i / 2 * 4 + i % 2] = widen_pair_e4m3(from[i]);
    to[i / 2 * 4 + i % 2 + 2] = widen_pair_e4m3(from[i] >> 16);
  }
#else
  for (int i = 0; i < 4; ++i) to[i] = from[i];
#endif
}

__device__ __forceinline__ float widen_f16(unsigned short x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
}

__device__ __forceinline__ unsigned widen_pair_e4m3(unsigned x) {
  unsigned y;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(y) : "h"((unsigned short)x));
  return y;
}
