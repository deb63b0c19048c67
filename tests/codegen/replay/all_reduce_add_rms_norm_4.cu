__device__ __forceinline__ unsigned short narrow_bf16(float x) {
  unsigned short y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ unsigned narrow_pair_bf16(float x, float y) {
  unsigned w;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(y), "f"(x));
  return w;
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
  w.x = narrow_pair_bf16(v[0], v[1]);
  w.y = narrow_pair_bf16(v[2], v[3]);
  w.z = narrow_pair_bf16(v[4], v[5]);
  w.w = narrow_pair_bf16(v[6], v[7]);
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
struct Peers { unsigned char* base[4]; };
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
  return (unsigned*)(base + c.flags) + gridDim.x + slot * 4 + from;
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
  for (int r = 1; r < 4; ++r) c.self = r == rank ? peers.base[r] : c.self;
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
  if (threadIdx.x < 4) fence();
#pragma unroll 1
  for (int r = threadIdx.x; r < 4; r += 256) {
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
  for (int r = 0; r < 4; ++r) store_flag((unsigned*)peers.base[r], 1u);
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
  for (int first = 0; first < 4; first += 256) {
    const int peer = first + threadIdx.x;
    if (peer >= 4 || lost) break;
    lost = await(c, peers, slot, peer);
  }
  return !__syncthreads_or(lost);
}

extern "C" __global__ void __launch_bounds__(256, 1) all_reduce_add_rms_norm(const __grid_constant__ Peers peers, int rank, long long flags, long long timeout, Record* record, int step, int p6, long long p7, long long p8, unsigned char* p9, unsigned char* p10, unsigned char* p11, unsigned char* p12) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 8 * 256;
  const int at2 = warp % 8;
  Comm comm = open_comm(peers, rank, flags, step, record, timeout);
  signal(comm, peers, (long long)blockIdx.x);
  if (!wait(comm, peers, (long long)blockIdx.x)) return;
  float v53[8];
  load_bf16_8(v53 + 0, (const unsigned short*)p10 + col0, true);
  const bool v67 = (long long)blockIdx.x < p7;
  unsigned char* const v70 = peers.base[0] + p8;
  const long long v74 = ((long long)blockIdx.x * 2048) * 2;
  unsigned char* const v75 = v70 + v74;
  float v76[8];
  load_bf16_8(v76 + 0, (const unsigned short*)v75 + col0, v67);
  unsigned char* const v78 = peers.base[1] + p8;
  unsigned char* const v79 = v78 + v74;
  float v80[8];
  load_bf16_8(v80 + 0, (const unsigned short*)v79 + col0, v67);
  unsigned char* const v81 = peers.base[2] + p8;
  unsigned char* const v82 = v81 + v74;
  float v83[8];
  load_bf16_8(v83 + 0, (const unsigned short*)v82 + col0, v67);
  unsigned char* const v85 = peers.base[3] + p8;
  unsigned char* const v86 = v85 + v74;
  float v87[8];
  load_bf16_8(v87 + 0, (const unsigned short*)v86 + col0, v67);
  unsigned char* const v89 = p9 + v74;
  float v90[8];
  load_bf16_8(v90 + 0, (const unsigned short*)v89 + col0, v67);
  const long long v91 = (long long)blockIdx.x + (long long)gridDim.x;
  const bool v92 = v91 < p7;
  const long long v94 = (v91 * 2048) * 2;
  unsigned char* const v95 = v70 + v94;
  float v96[8];
  load_bf16_8(v96 + 0, (const unsigned short*)v95 + col0, v92);
  unsigned char* const v97 = v78 + v94;
  float v98[8];
  load_bf16_8(v98 + 0, (const unsigned short*)v97 + col0, v92);
  unsigned char* const v99 = v81 + v94;
  float v100[8];
  load_bf16_8(v100 + 0, (const unsigned short*)v99 + col0, v92);
  unsigned char* const v101 = v85 + v94;
  float v102[8];
  load_bf16_8(v102 + 0, (const unsigned short*)v101 + col0, v92);
  unsigned char* const v103 = p9 + v94;
  float v104[8];
  load_bf16_8(v104 + 0, (const unsigned short*)v103 + col0, v92);
  const long long v106 = (long long)blockIdx.x + ((long long)gridDim.x * 2);
  const bool v107 = v106 < p7;
  const long long v109 = (v106 * 2048) * 2;
  unsigned char* const v110 = v70 + v109;
  float v111[8];
  load_bf16_8(v111 + 0, (const unsigned short*)v110 + col0, v107);
  unsigned char* const v112 = v78 + v109;
  float v113[8];
  load_bf16_8(v113 + 0, (const unsigned short*)v112 + col0, v107);
  unsigned char* const v114 = v81 + v109;
  float v115[8];
  load_bf16_8(v115 + 0, (const unsigned short*)v114 + col0, v107);
  unsigned char* const v116 = v85 + v109;
  float v117[8];
  load_bf16_8(v117 + 0, (const unsigned short*)v116 + col0, v107);
  unsigned char* const v118 = p9 + v109;
  float v119[8];
  load_bf16_8(v119 + 0, (const unsigned short*)v118 + col0, v107);
  const long long v121 = (long long)blockIdx.x + ((long long)gridDim.x * 3);
  const bool v122 = v121 < p7;
  const long long v124 = (v121 * 2048) * 2;
  unsigned char* const v125 = v70 + v124;
  float v126[8];
  load_bf16_8(v126 + 0, (const unsigned short*)v125 + col0, v122);
  unsigned char* const v127 = v78 + v124;
  float v128[8];
  load_bf16_8(v128 + 0, (const unsigned short*)v127 + col0, v122);
  unsigned char* const v129 = v81 + v124;
  float v130[8];
  load_bf16_8(v130 + 0, (const unsigned short*)v129 + col0, v122);
  unsigned char* const v131 = v85 + v124;
  float v132[8];
  load_bf16_8(v132 + 0, (const unsigned short*)v131 + col0, v122);
  unsigned char* const v133 = p9 + v124;
  float v134[8];
  load_bf16_8(v134 + 0, (const unsigned short*)v133 + col0, v122);
  float v24[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v24[i] = v76[i];
  float v163[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v163[i] = v96[i];
  float v164[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v164[i] = v111[i];
  float v165[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v165[i] = v126[i];
  float v27[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v27[i] = v80[i];
  float v166[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v166[i] = v98[i];
  float v167[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v167[i] = v113[i];
  float v168[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v168[i] = v128[i];
  float v31[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v31[i] = v83[i];
  float v169[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v169[i] = v100[i];
  float v170[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v170[i] = v115[i];
  float v171[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v171[i] = v130[i];
  float v36[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v36[i] = v87[i];
  float v172[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v172[i] = v102[i];
  float v173[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v173[i] = v117[i];
  float v174[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v174[i] = v132[i];
  float v41[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v41[i] = v90[i];
  float v175[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v175[i] = v104[i];
  float v176[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v176[i] = v119[i];
  float v177[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v177[i] = v134[i];
  for (long long v12 = (long long)blockIdx.x; v12 < p7;) {
#pragma unroll
    for (int turn = 0; turn < 5; ++turn, v12 += (long long)gridDim.x) {
      if (turn > 0 && !(v12 < p7)) goto after_v12;
      const long long v137 = v12 + ((long long)gridDim.x * 4);
      const bool v138 = v137 < p7;
      unsigned char* const v141 = peers.base[0] + p8;
      const long long v145 = (v137 * 2048) * 2;
      unsigned char* const v146 = v141 + v145;
      float v148[8];
      load_bf16_8(v148 + 0, (const unsigned short*)v146 + col0, v138);
      unsigned char* const v150 = peers.base[1] + p8;
      unsigned char* const v151 = v150 + v145;
      float v152[8];
      load_bf16_8(v152 + 0, (const unsigned short*)v151 + col0, v138);
      unsigned char* const v153 = peers.base[2] + p8;
      unsigned char* const v154 = v153 + v145;
      float v155[8];
      load_bf16_8(v155 + 0, (const unsigned short*)v154 + col0, v138);
      unsigned char* const v157 = peers.base[3] + p8;
      unsigned char* const v158 = v157 + v145;
      float v159[8];
      load_bf16_8(v159 + 0, (const unsigned short*)v158 + col0, v138);
      unsigned char* const v161 = p9 + v145;
      float v162[8];
      load_bf16_8(v162 + 0, (const unsigned short*)v161 + col0, v138);
      const long long v22 = (v12 * 2048) * 2;
      float v43[8];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v43[i] = round_bf16(((round_bf16((((v24[i] + v27[i]) + v31[i]) + v36[i]))) + v41[i]));
      float v45[1];
      v45[0] = 0.0f;
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v45[0] = v45[0] + (v43[i] * v43[i]);
      v45[0] = v45[0] + __shfl_xor_sync(0xffffffffu, v45[0], 1);
      v45[0] = v45[0] + __shfl_xor_sync(0xffffffffu, v45[0], 2);
      v45[0] = v45[0] + __shfl_xor_sync(0xffffffffu, v45[0], 4);
      v45[0] = v45[0] + __shfl_xor_sync(0xffffffffu, v45[0], 8);
      v45[0] = v45[0] + __shfl_xor_sync(0xffffffffu, v45[0], 16);
      float* const s45 = (float*)(smem + 0);
      __syncthreads();
      if ((lane & 31) == 0) {
        s45[at2] = v45[0];
      }
      __syncthreads();
      v45[0] = s45[0];
#pragma unroll
      for (int w = 1; w < 8; ++w) {
        v45[0] = v45[0] + s45[0 + w];
      }
      const float v47 = (float)2048;
      float v50[1];
      v50[0] = rsqrtf(((v45[0] / v47) + 1e-05f));
      float v54[8];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v54[i] = (v43[i] * v50[0]) * v53[i];
      unsigned char* const v57 = p11 + v22;
      store_bf16_8((unsigned short*)v57 + col0, v54 + 0, true);
      unsigned char* const v60 = p12 + v22;
      store_bf16_8((unsigned short*)v60 + col0, v43 + 0, true);
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v24[i] = v163[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v163[i] = v164[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v164[i] = v165[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v165[i] = v148[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v27[i] = v166[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v166[i] = v167[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v167[i] = v168[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v168[i] = v152[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v31[i] = v169[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v169[i] = v170[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v170[i] = v171[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v171[i] = v155[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v36[i] = v172[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v172[i] = v173[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v173[i] = v174[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v174[i] = v159[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v41[i] = v175[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v175[i] = v176[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v176[i] = v177[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v177[i] = v162[i];
    }
  }
  after_v12:;
  const long long v62 = (long long)gridDim.x + (long long)blockIdx.x;
  if (p6) signal(comm, peers, v62);
  if (p6 && !wait(comm, peers, v62)) return;
  close_comm(comm);
}
