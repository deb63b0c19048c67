__device__ __forceinline__ unsigned short narrow_f16(float x) {
  unsigned short y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float widen_f16(unsigned short x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
}
__device__ __forceinline__ void load_f16_1(float* v, const unsigned short* p, bool ok) {
  v[0] = ok ? widen_f16(p[0]) : 0;
}
__device__ __forceinline__ float round_f16(float x) { return widen_f16(narrow_f16(x)); }
__device__ __forceinline__ void store_f16_1(unsigned short* p, const float* v, bool ok) {
  if (ok) p[0] = narrow_f16(v[0]);
}

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
struct Peers { unsigned char* base[3]; };
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
  return (unsigned*)(base + c.flags) + gridDim.x + slot * 3 + from;
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
  for (int r = 1; r < 3; ++r) c.self = r == rank ? peers.base[r] : c.self;
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
  if (threadIdx.x < 3) fence();
#pragma unroll 1
  for (int r = threadIdx.x; r < 3; r += 512) {
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
  for (int r = 0; r < 3; ++r) store_flag((unsigned*)peers.base[r], 1u);
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
  for (int first = 0; first < 3; first += 512) {
    const int peer = first + threadIdx.x;
    if (peer >= 3 || lost) break;
    lost = await(c, peers, slot, peer);
  }
  return !__syncthreads_or(lost);
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
__device__ __forceinline__ void store_one_f16(const Peers& peers, const unsigned char* multicast,
                                              unsigned short* p, float v) {
  const long long at = (unsigned char*)p - multicast;
#pragma unroll 16
  for (int r = 0; r < 3; ++r) *(unsigned short*)(peers.base[r] + at) = narrow_f16(v);
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

extern "C" __global__ void __launch_bounds__(512, 1) all_reduce(const __grid_constant__ Peers peers, int rank, long long flags, long long timeout, Record* record, int step, long long p6, long long p7, long long p8, unsigned char* multicast, unsigned char* p10) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 16 * 256;
  Comm comm = open_comm(peers, rank, flags, step, record, timeout);
  signal(comm, peers, (long long)blockIdx.x);
  if (!wait(comm, peers, (long long)blockIdx.x)) return;
  const long long v16 = (long long)blockIdx.x + (((((long long)rank + 3) - ((long long)blockIdx.x % 3)) % 3) * (long long)gridDim.x);
  const long long v17 = (long long)gridDim.x * 3;
  const bool v52 = v16 < p6;
  unsigned char* const v54 = multicast + p8;
  const int v57 = (int)(v16 * 4096);
  float v63[8];
  multimem_reduce_part_f16_8(v63 + 0, peers, multicast, v54, (v57 + col0), (((v57 + col0) < p7) && v52), (((v57 + (col0 + (0 + 1) % 8)) < p7) && v52), (((v57 + (col0 + (0 + 2) % 8)) < p7) && v52), (((v57 + (col0 + (0 + 3) % 8)) < p7) && v52), (((v57 + (col0 + (0 + 4) % 8)) < p7) && v52), (((v57 + (col0 + (0 + 5) % 8)) < p7) && v52), (((v57 + (col0 + (0 + 6) % 8)) < p7) && v52), (((v57 + (col0 + (0 + 7) % 8)) < p7) && v52));
  const long long v64 = v16 + v17;
  const bool v65 = v64 < p6;
  const int v67 = (int)(v64 * 4096);
  float v71[8];
  multimem_reduce_part_f16_8(v71 + 0, peers, multicast, v54, (v67 + col0), (((v67 + col0) < p7) && v65), (((v67 + (col0 + (0 + 1) % 8)) < p7) && v65), (((v67 + (col0 + (0 + 2) % 8)) < p7) && v65), (((v67 + (col0 + (0 + 3) % 8)) < p7) && v65), (((v67 + (col0 + (0 + 4) % 8)) < p7) && v65), (((v67 + (col0 + (0 + 5) % 8)) < p7) && v65), (((v67 + (col0 + (0 + 6) % 8)) < p7) && v65), (((v67 + (col0 + (0 + 7) % 8)) < p7) && v65));
  const long long v74 = v16 + (v17 * 2);
  const bool v75 = v74 < p6;
  const int v77 = (int)(v74 * 4096);
  float v81[8];
  multimem_reduce_part_f16_8(v81 + 0, peers, multicast, v54, (v77 + col0), (((v77 + col0) < p7) && v75), (((v77 + (col0 + (0 + 1) % 8)) < p7) && v75), (((v77 + (col0 + (0 + 2) % 8)) < p7) && v75), (((v77 + (col0 + (0 + 3) % 8)) < p7) && v75), (((v77 + (col0 + (0 + 4) % 8)) < p7) && v75), (((v77 + (col0 + (0 + 5) % 8)) < p7) && v75), (((v77 + (col0 + (0 + 6) % 8)) < p7) && v75), (((v77 + (col0 + (0 + 7) % 8)) < p7) && v75));
  const long long v84 = v16 + (v17 * 3);
  const bool v85 = v84 < p6;
  const int v87 = (int)(v84 * 4096);
  float v91[8];
  multimem_reduce_part_f16_8(v91 + 0, peers, multicast, v54, (v87 + col0), (((v87 + col0) < p7) && v85), (((v87 + (col0 + (0 + 1) % 8)) < p7) && v85), (((v87 + (col0 + (0 + 2) % 8)) < p7) && v85), (((v87 + (col0 + (0 + 3) % 8)) < p7) && v85), (((v87 + (col0 + (0 + 4) % 8)) < p7) && v85), (((v87 + (col0 + (0 + 5) % 8)) < p7) && v85), (((v87 + (col0 + (0 + 6) % 8)) < p7) && v85), (((v87 + (col0 + (0 + 7) % 8)) < p7) && v85));
  float v32[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v32[i] = v63[i];
  float v107[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v107[i] = v71[i];
  float v108[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v108[i] = v81[i];
  float v109[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v109[i] = v91[i];
  for (long long v19 = v16; v19 < p6;) {
#pragma unroll
    for (int turn = 0; turn < 5; ++turn, v19 += v17) {
      if (turn > 0 && !(v19 < p6)) goto after_v19;
      const long long v94 = v19 + (v17 * 4);
      const bool v95 = v94 < p6;
      unsigned char* const v97 = multicast + p8;
      const int v100 = (int)(v94 * 4096);
      float v106[8];
      multimem_reduce_part_f16_8(v106 + 0, peers, multicast, v97, (v100 + col0), (((v100 + col0) < p7) && v95), (((v100 + (col0 + (0 + 1) % 8)) < p7) && v95), (((v100 + (col0 + (0 + 2) % 8)) < p7) && v95), (((v100 + (col0 + (0 + 3) % 8)) < p7) && v95), (((v100 + (col0 + (0 + 4) % 8)) < p7) && v95), (((v100 + (col0 + (0 + 5) % 8)) < p7) && v95), (((v100 + (col0 + (0 + 6) % 8)) < p7) && v95), (((v100 + (col0 + (0 + 7) % 8)) < p7) && v95));
      const int v23 = (int)(v19 * 4096);
      unsigned char* const v30 = multicast + p8;
      multimem_store_part_f16_8(v32 + 0, peers, multicast, v30, (v23 + col0), ((v23 + col0) < p7), ((v23 + (col0 + (0 + 1) % 8)) < p7), ((v23 + (col0 + (0 + 2) % 8)) < p7), ((v23 + (col0 + (0 + 3) % 8)) < p7), ((v23 + (col0 + (0 + 4) % 8)) < p7), ((v23 + (col0 + (0 + 5) % 8)) < p7), ((v23 + (col0 + (0 + 6) % 8)) < p7), ((v23 + (col0 + (0 + 7) % 8)) < p7));
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v32[i] = v107[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v107[i] = v108[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v108[i] = v109[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v109[i] = v106[i];
    }
  }
  after_v19:;
  const long long v34 = (long long)gridDim.x + (long long)blockIdx.x;
  signal(comm, peers, v34);
  if (!wait(comm, peers, v34)) return;
  const bool v110 = (long long)blockIdx.x < p6;
  unsigned char* const v112 = peers.base[(long long)rank] + p8;
  const int v115 = (int)((long long)blockIdx.x * 4096);
  float v121[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    load_f16_1(v121 + i, (const unsigned short*)v112 + (v115 + (col0 + i % 8)), (((v115 + (col0 + i % 8)) < p7) && v110));
  const long long v122 = (long long)blockIdx.x + (long long)gridDim.x;
  const bool v123 = v122 < p6;
  const int v125 = (int)(v122 * 4096);
  float v129[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    load_f16_1(v129 + i, (const unsigned short*)v112 + (v125 + (col0 + i % 8)), (((v125 + (col0 + i % 8)) < p7) && v123));
  const long long v132 = (long long)blockIdx.x + ((long long)gridDim.x * 2);
  const bool v133 = v132 < p6;
  const int v135 = (int)(v132 * 4096);
  float v139[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    load_f16_1(v139 + i, (const unsigned short*)v112 + (v135 + (col0 + i % 8)), (((v135 + (col0 + i % 8)) < p7) && v133));
  const long long v142 = (long long)blockIdx.x + ((long long)gridDim.x * 3);
  const bool v143 = v142 < p6;
  const int v145 = (int)(v142 * 4096);
  float v149[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    load_f16_1(v149 + i, (const unsigned short*)v112 + (v145 + (col0 + i % 8)), (((v145 + (col0 + i % 8)) < p7) && v143));
  float v49[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v49[i] = v121[i];
  float v165[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v165[i] = v129[i];
  float v166[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v166[i] = v139[i];
  float v167[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v167[i] = v149[i];
  for (long long v37 = (long long)blockIdx.x; v37 < p6;) {
#pragma unroll
    for (int turn = 0; turn < 5; ++turn, v37 += (long long)gridDim.x) {
      if (turn > 0 && !(v37 < p6)) goto after_v37;
      const long long v152 = v37 + ((long long)gridDim.x * 4);
      const bool v153 = v152 < p6;
      unsigned char* const v155 = peers.base[(long long)rank] + p8;
      const int v158 = (int)(v152 * 4096);
      float v164[8];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        load_f16_1(v164 + i, (const unsigned short*)v155 + (v158 + (col0 + i % 8)), (((v158 + (col0 + i % 8)) < p7) && v153));
      const int v41 = (int)(v37 * 4096);
#pragma unroll
      for (int i = 0; i < 8; ++i)
        store_f16_1((unsigned short*)p10 + (v41 + (col0 + i % 8)), v49 + i, ((v41 + (col0 + i % 8)) < p7));
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v49[i] = v165[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v165[i] = v166[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v166[i] = v167[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v167[i] = v164[i];
    }
  }
  after_v37:;
  close_comm(comm);
}
