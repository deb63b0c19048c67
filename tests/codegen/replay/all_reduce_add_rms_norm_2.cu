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
struct Peers { unsigned char* base[2]; };
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
  return (unsigned*)(base + c.flags) + gridDim.x + slot * 2 + from;
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
  for (int r = 1; r < 2; ++r) c.self = r == rank ? peers.base[r] : c.self;
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
  if (threadIdx.x < 2) fence();
#pragma unroll 1
  for (int r = threadIdx.x; r < 2; r += 256) {
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
  for (int r = 0; r < 2; ++r) store_flag((unsigned*)peers.base[r], 1u);
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
  for (int first = 0; first < 2; first += 256) {
    const int peer = first + threadIdx.x;
    if (peer >= 2 || lost) break;
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
  float v44[8];
  load_bf16_8(v44 + 0, (const unsigned short*)p10 + col0, true);
  const bool v58 = (long long)blockIdx.x < p7;
  unsigned char* const v61 = peers.base[0] + p8;
  const long long v65 = ((long long)blockIdx.x * 2048) * 2;
  unsigned char* const v66 = v61 + v65;
  float v67[8];
  load_bf16_8(v67 + 0, (const unsigned short*)v66 + col0, v58);
  unsigned char* const v69 = peers.base[1] + p8;
  unsigned char* const v70 = v69 + v65;
  float v71[8];
  load_bf16_8(v71 + 0, (const unsigned short*)v70 + col0, v58);
  unsigned char* const v73 = p9 + v65;
  float v74[8];
  load_bf16_8(v74 + 0, (const unsigned short*)v73 + col0, v58);
  const long long v75 = (long long)blockIdx.x + (long long)gridDim.x;
  const bool v76 = v75 < p7;
  const long long v78 = (v75 * 2048) * 2;
  unsigned char* const v79 = v61 + v78;
  float v80[8];
  load_bf16_8(v80 + 0, (const unsigned short*)v79 + col0, v76);
  unsigned char* const v81 = v69 + v78;
  float v82[8];
  load_bf16_8(v82 + 0, (const unsigned short*)v81 + col0, v76);
  unsigned char* const v83 = p9 + v78;
  float v84[8];
  load_bf16_8(v84 + 0, (const unsigned short*)v83 + col0, v76);
  const long long v86 = (long long)blockIdx.x + ((long long)gridDim.x * 2);
  const bool v87 = v86 < p7;
  const long long v89 = (v86 * 2048) * 2;
  unsigned char* const v90 = v61 + v89;
  float v91[8];
  load_bf16_8(v91 + 0, (const unsigned short*)v90 + col0, v87);
  unsigned char* const v92 = v69 + v89;
  float v93[8];
  load_bf16_8(v93 + 0, (const unsigned short*)v92 + col0, v87);
  unsigned char* const v94 = p9 + v89;
  float v95[8];
  load_bf16_8(v95 + 0, (const unsigned short*)v94 + col0, v87);
  const long long v98 = (long long)blockIdx.x + ((long long)gridDim.x * 3);
  const bool v99 = v98 < p7;
  const long long v101 = (v98 * 2048) * 2;
  unsigned char* const v102 = v61 + v101;
  float v103[8];
  load_bf16_8(v103 + 0, (const unsigned short*)v102 + col0, v99);
  unsigned char* const v104 = v69 + v101;
  float v105[8];
  load_bf16_8(v105 + 0, (const unsigned short*)v104 + col0, v99);
  unsigned char* const v106 = p9 + v101;
  float v107[8];
  load_bf16_8(v107 + 0, (const unsigned short*)v106 + col0, v99);
  float v24[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v24[i] = v67[i];
  float v129[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v129[i] = v80[i];
  float v130[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v130[i] = v91[i];
  float v131[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v131[i] = v103[i];
  float v27[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v27[i] = v71[i];
  float v132[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v132[i] = v82[i];
  float v133[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v133[i] = v93[i];
  float v134[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v134[i] = v105[i];
  float v32[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v32[i] = v74[i];
  float v135[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v135[i] = v84[i];
  float v136[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v136[i] = v95[i];
  float v137[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v137[i] = v107[i];
  for (long long v12 = (long long)blockIdx.x; v12 < p7;) {
#pragma unroll
    for (int turn = 0; turn < 5; ++turn, v12 += (long long)gridDim.x) {
      if (turn > 0 && !(v12 < p7)) goto after_v12;
      const long long v110 = v12 + ((long long)gridDim.x * 4);
      const bool v111 = v110 < p7;
      unsigned char* const v114 = peers.base[0] + p8;
      const long long v118 = (v110 * 2048) * 2;
      unsigned char* const v119 = v114 + v118;
      float v121[8];
      load_bf16_8(v121 + 0, (const unsigned short*)v119 + col0, v111);
      unsigned char* const v123 = peers.base[1] + p8;
      unsigned char* const v124 = v123 + v118;
      float v125[8];
      load_bf16_8(v125 + 0, (const unsigned short*)v124 + col0, v111);
      unsigned char* const v127 = p9 + v118;
      float v128[8];
      load_bf16_8(v128 + 0, (const unsigned short*)v127 + col0, v111);
      const long long v22 = (v12 * 2048) * 2;
      float v34[8];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v34[i] = round_bf16(((round_bf16((v24[i] + v27[i]))) + v32[i]));
      float v36[1];
      v36[0] = 0.0f;
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v36[0] = v36[0] + (v34[i] * v34[i]);
      v36[0] = v36[0] + __shfl_xor_sync(0xffffffffu, v36[0], 1);
      v36[0] = v36[0] + __shfl_xor_sync(0xffffffffu, v36[0], 2);
      v36[0] = v36[0] + __shfl_xor_sync(0xffffffffu, v36[0], 4);
      v36[0] = v36[0] + __shfl_xor_sync(0xffffffffu, v36[0], 8);
      v36[0] = v36[0] + __shfl_xor_sync(0xffffffffu, v36[0], 16);
      float* const s36 = (float*)(smem + 0);
      __syncthreads();
      if ((lane & 31) == 0) {
        s36[at2] = v36[0];
      }
      __syncthreads();
      v36[0] = s36[0];
#pragma unroll
      for (int w = 1; w < 8; ++w) {
        v36[0] = v36[0] + s36[0 + w];
      }
      const float v38 = (float)2048;
      float v41[1];
      v41[0] = rsqrtf(((v36[0] / v38) + 1e-05f));
      float v45[8];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v45[i] = (v34[i] * v41[0]) * v44[i];
      unsigned char* const v48 = p11 + v22;
      store_bf16_8((unsigned short*)v48 + col0, v45 + 0, true);
      unsigned char* const v51 = p12 + v22;
      store_bf16_8((unsigned short*)v51 + col0, v34 + 0, true);
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v24[i] = v129[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v129[i] = v130[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v130[i] = v131[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v131[i] = v121[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v27[i] = v132[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v132[i] = v133[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v133[i] = v134[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v134[i] = v125[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v32[i] = v135[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v135[i] = v136[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v136[i] = v137[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v137[i] = v128[i];
    }
  }
  after_v12:;
  const long long v53 = (long long)gridDim.x + (long long)blockIdx.x;
  if (p6) signal(comm, peers, v53);
  if (p6 && !wait(comm, peers, v53)) return;
  close_comm(comm);
}
