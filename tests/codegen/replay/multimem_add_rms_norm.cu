__device__ __forceinline__ unsigned short narrow_bf16(float x) {
  unsigned short y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
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
__device__ __forceinline__ float round_bf16(float x) { return __uint_as_float((unsigned)narrow_bf16(x) << 16); }
__device__ __forceinline__ void store_bf16_8(unsigned short* p, const float* v, bool ok) {
  uint4 w;
  w.x = (unsigned)narrow_bf16(v[0]) | (unsigned)narrow_bf16(v[1]) << 16;
  w.y = (unsigned)narrow_bf16(v[2]) | (unsigned)narrow_bf16(v[3]) << 16;
  w.z = (unsigned)narrow_bf16(v[4]) | (unsigned)narrow_bf16(v[5]) << 16;
  w.w = (unsigned)narrow_bf16(v[6]) | (unsigned)narrow_bf16(v[7]) << 16;
  if (ok) *(uint4*)p = w;
}
extern __shared__ __align__(1024) unsigned char smem[];

// What went wrong first on this rank, for the host.
struct Record {
  unsigned kind, step, block, slot, peer, expected, seen, node;
  long long index, extent;
};
__device__ __forceinline__ bool claim(Record* record, unsigned kind) {
  return atomicCAS(&record->kind, 0u, kind) == 0u;
}

// Flags are 32-bit epochs that only grow; fences at system scope, one before all flags are sent and
// one after each has come, carry the data.
struct Peers { unsigned char* base[8]; };
struct Comm {
  unsigned char* self;
  Record* record;
  long long flags;
  int rank, step;
  long long timeout;
  unsigned epoch;
};

// The words of a step: an epoch of each block, then for each slot a flag of each rank.
__device__ __forceinline__ unsigned* epoch_at(const Comm& c) {
  return (unsigned*)(c.self + c.flags) + blockIdx.x;
}
__device__ __forceinline__ unsigned* flag_at(const Comm& c, unsigned char* base, int slot, int from) {
  return (unsigned*)(base + c.flags) + gridDim.x + slot * 8 + from;
}
__device__ __forceinline__ void fence() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }
__device__ __forceinline__ unsigned load_flag(const unsigned* p) {
  unsigned v;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
__device__ __forceinline__ void store_flag(unsigned* p, unsigned v) {
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" :: "l"(p), "r"(v) : "memory");
}
__device__ __forceinline__ unsigned long long global_timer() {
  unsigned long long t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
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
// Every thread has read the epoch: the first signal's barrier comes after that.
__device__ __forceinline__ void close_comm(const Comm& c) {
  if (threadIdx.x == 0) *epoch_at(c) = c.epoch;
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
__device__ __forceinline__ bool await(const Comm& c, const Peers& peers, int slot, int peer) {
  const bool lost = await_relaxed(c, peers, slot, peer);
  fence();
  return lost;
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
__device__ __forceinline__ void multimem_store_bf16_8(const float* v, unsigned char* base, long long at, bool ok) {
  unsigned short* const p = (unsigned short*)base + at;
  if (ok) asm volatile("multimem.st.relaxed.sys.global.v4.bf16x2 [%0], {%1, %2, %3, %4};"
                 :: "l"(p), "r"((unsigned)narrow_bf16(v[0]) | (unsigned)narrow_bf16(v[1]) << 16), "r"((unsigned)narrow_bf16(v[2]) | (unsigned)narrow_bf16(v[3]) << 16), "r"((unsigned)narrow_bf16(v[4]) | (unsigned)narrow_bf16(v[5]) << 16), "r"((unsigned)narrow_bf16(v[6]) | (unsigned)narrow_bf16(v[7]) << 16) : "memory");
}

extern "C" __global__ void __launch_bounds__(256, 1) all_reduce_add_rms_norm(const __grid_constant__ Peers peers, int rank, long long flags, long long timeout, Record* record, int step, long long p6, long long p7, unsigned char* multicast, unsigned char* p9, unsigned char* p10, unsigned char* p11, unsigned char* p12) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 8 * 256;
  const int at2 = warp % 8;
  Comm comm = open_comm(peers, rank, flags, step, record, timeout);
  signal(comm, peers, (long long)blockIdx.x);
  if (!wait(comm, peers, (long long)blockIdx.x)) return;
  const long long v16 = (long long)blockIdx.x + (((((long long)rank + 8) - ((long long)blockIdx.x % 8)) % 8) * (long long)gridDim.x);
  const long long v17 = (long long)gridDim.x * 8;
  unsigned char* const v73 = multicast + p7;
  unsigned char* const v78 = v73 + ((v16 * 2048) * 2);
  float v80[8];
  multimem_reduce_bf16_8(v80 + 0, v78, col0, (v16 < p6));
  float v31[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v31[i] = v80[i];
  for (long long v19 = v16; v19 < p6; v19 += v17) {
    const long long v81 = v19 + v17;
    unsigned char* const v84 = multicast + p7;
    unsigned char* const v89 = v84 + ((v81 * 2048) * 2);
    float v91[8];
    multimem_reduce_bf16_8(v91 + 0, v89, col0, (v81 < p6));
    unsigned char* const v24 = multicast + p7;
    unsigned char* const v30 = v24 + ((v19 * 2048) * 2);
    multimem_store_bf16_8(v31 + 0, v30, col0, true);
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v31[i] = v91[i];
  }
  const long long v33 = (long long)gridDim.x + (long long)blockIdx.x;
  signal(comm, peers, v33);
  if (!wait(comm, peers, v33)) return;
  const bool v92 = (long long)blockIdx.x < p6;
  unsigned char* const v94 = peers.base[(long long)rank] + p7;
  const long long v98 = ((long long)blockIdx.x * 2048) * 2;
  unsigned char* const v99 = v94 + v98;
  float v101[8];
  load_bf16_8(v101 + 0, (const unsigned short*)v99 + col0, v92);
  unsigned char* const v103 = p9 + v98;
  float v104[8];
  load_bf16_8(v104 + 0, (const unsigned short*)v103 + col0, v92);
  float v47[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v47[i] = v101[i];
  float v50[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v50[i] = v104[i];
  for (long long v36 = (long long)blockIdx.x; v36 < p6; v36 += (long long)gridDim.x) {
    const long long v105 = v36 + (long long)gridDim.x;
    const bool v106 = v105 < p6;
    unsigned char* const v108 = peers.base[(long long)rank] + p7;
    const long long v112 = (v105 * 2048) * 2;
    unsigned char* const v113 = v108 + v112;
    float v115[8];
    load_bf16_8(v115 + 0, (const unsigned short*)v113 + col0, v106);
    unsigned char* const v117 = p9 + v112;
    float v118[8];
    load_bf16_8(v118 + 0, (const unsigned short*)v117 + col0, v106);
    const long long v45 = (v36 * 2048) * 2;
    float v52[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v52[i] = round_bf16((v47[i] + v50[i]));
    float v54[1];
    v54[0] = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v54[0] = v54[0] + (v52[i] * v52[i]);
    v54[0] = v54[0] + __shfl_xor_sync(0xffffffffu, v54[0], 1);
    v54[0] = v54[0] + __shfl_xor_sync(0xffffffffu, v54[0], 2);
    v54[0] = v54[0] + __shfl_xor_sync(0xffffffffu, v54[0], 4);
    v54[0] = v54[0] + __shfl_xor_sync(0xffffffffu, v54[0], 8);
    v54[0] = v54[0] + __shfl_xor_sync(0xffffffffu, v54[0], 16);
    float* const s54 = (float*)(smem + 0);
    __syncthreads();
    if ((lane & 31) == 0) {
      s54[at2] = v54[0];
    }
    __syncthreads();
    v54[0] = s54[0];
#pragma unroll
    for (int w = 1; w < 8; ++w) {
      v54[0] = v54[0] + s54[0 + w];
    }
    const float v56 = (float)2048;
    float v59[1];
    v59[0] = rsqrtf(((v54[0] / v56) + 1e-05f));
    float v62[8];
    load_bf16_8(v62 + 0, (const unsigned short*)p10 + col0, true);
    float v63[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v63[i] = (v52[i] * v59[0]) * v62[i];
    unsigned char* const v66 = p11 + v45;
    store_bf16_8((unsigned short*)v66 + col0, v63 + 0, true);
    unsigned char* const v69 = p12 + v45;
    store_bf16_8((unsigned short*)v69 + col0, v52 + 0, true);
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v47[i] = v115[i];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v50[i] = v118[i];
  }
  close_comm(comm);
}
