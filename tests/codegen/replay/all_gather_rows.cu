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
__device__ __forceinline__ void store_bf16_8(unsigned short* p, const float* v, bool ok) {
  uint4 w;
  w.x = narrow_pair_bf16(v[0], v[1]);
  w.y = narrow_pair_bf16(v[2], v[3]);
  w.z = narrow_pair_bf16(v[4], v[5]);
  w.w = narrow_pair_bf16(v[6], v[7]);
  if (ok) *(uint4*)p = w;
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
  for (int r = threadIdx.x; r < 4; r += 512) {
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
  for (int first = 0; first < 4; first += 512) {
    const int peer = first + threadIdx.x;
    if (peer >= 4 || lost) break;
    lost = await(c, peers, slot, peer);
  }
  return !__syncthreads_or(lost);
}

extern "C" __global__ void __launch_bounds__(512, 1) all_gather_into_tensor_silu(const __grid_constant__ Peers peers, int rank, long long flags, long long timeout, Record* record, int step, int p6, long long p7, long long p8, long long p9, long long p10, long long p11, unsigned char* p12) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 16 * 256;
  Comm comm = open_comm(peers, rank, flags, step, record, timeout);
  signal(comm, peers, (long long)blockIdx.x);
  if (!wait(comm, peers, (long long)blockIdx.x)) return;
  const bool v81 = (long long)blockIdx.x < p7;
  const int v85 = (int)((long long)blockIdx.x * 4096);
  const int v87 = (int)p10;
  const int v90 = min((v85 / v87), 3);
  unsigned char* const v91 = peers.base[v90] + p9;
  unsigned char* const v97 = v91 + ((((long long)v90) * p11) * 2);
  const int v103 = v90 + 1;
  const int v104 = v103 * v87;
  float v108[8];
  load_bf16_8(v108 + 0, (const unsigned short*)v97 + (v85 + col0), ((((v85 + col0) < p8) && ((v85 + col0) < v104)) && v81));
  const int v109 = min(v103, 3);
  unsigned char* const v110 = peers.base[v109] + p9;
  unsigned char* const v114 = v110 + ((((long long)v109) * p11) * 2);
  const int v118 = (v109 + 1) * v87;
  float v122[8];
  load_bf16_8(v122 + 0, (const unsigned short*)v114 + (v85 + col0), (((((v85 + col0) < p8) && (!((v85 + col0) < v104))) && ((v85 + col0) < v118)) && v81));
  const int v124 = min((v90 + 2), 3);
  unsigned char* const v125 = peers.base[v124] + p9;
  unsigned char* const v129 = v125 + ((((long long)v124) * p11) * 2);
  float v133[8];
  load_bf16_8(v133 + 0, (const unsigned short*)v129 + (v85 + col0), ((((v85 + col0) < p8) && (!((v85 + col0) < v118))) && v81));
  const long long v134 = (long long)blockIdx.x + (long long)gridDim.x;
  const bool v135 = v134 < p7;
  const int v137 = (int)(v134 * 4096);
  const int v139 = min((v137 / v87), 3);
  unsigned char* const v140 = peers.base[v139] + p9;
  unsigned char* const v144 = v140 + ((((long long)v139) * p11) * 2);
  const int v147 = v139 + 1;
  const int v148 = v147 * v87;
  float v152[8];
  load_bf16_8(v152 + 0, (const unsigned short*)v144 + (v137 + col0), ((((v137 + col0) < p8) && ((v137 + col0) < v148)) && v135));
  const int v153 = min(v147, 3);
  unsigned char* const v154 = peers.base[v153] + p9;
  unsigned char* const v158 = v154 + ((((long long)v153) * p11) * 2);
  const int v162 = (v153 + 1) * v87;
  float v166[8];
  load_bf16_8(v166 + 0, (const unsigned short*)v158 + (v137 + col0), (((((v137 + col0) < p8) && (!((v137 + col0) < v148))) && ((v137 + col0) < v162)) && v135));
  const int v168 = min((v139 + 2), 3);
  unsigned char* const v169 = peers.base[v168] + p9;
  unsigned char* const v173 = v169 + ((((long long)v168) * p11) * 2);
  float v177[8];
  load_bf16_8(v177 + 0, (const unsigned short*)v173 + (v137 + col0), ((((v137 + col0) < p8) && (!((v137 + col0) < v162))) && v135));
  float v44[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v44[i] = v108[i];
  float v233[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v233[i] = v152[i];
  float v57[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v57[i] = v122[i];
  float v234[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v234[i] = v166[i];
  float v67[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v67[i] = v133[i];
  float v235[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v235[i] = v177[i];
  for (long long v12 = (long long)blockIdx.x; v12 < p7;) {
#pragma unroll
    for (int turn = 0; turn < 3; ++turn, v12 += (long long)gridDim.x) {
      if (turn > 0 && !(v12 < p7)) goto after_v12;
      const long long v180 = v12 + ((long long)gridDim.x * 2);
      const bool v181 = v180 < p7;
      const int v185 = (int)(v180 * 4096);
      const int v187 = (int)p10;
      const int v190 = min((v185 / v187), 3);
      unsigned char* const v191 = peers.base[v190] + p9;
      unsigned char* const v196 = v191 + ((((long long)v190) * p11) * 2);
      const int v202 = v190 + 1;
      const int v203 = v202 * v187;
      float v207[8];
      load_bf16_8(v207 + 0, (const unsigned short*)v196 + (v185 + col0), ((((v185 + col0) < p8) && ((v185 + col0) < v203)) && v181));
      const int v208 = min(v202, 3);
      unsigned char* const v209 = peers.base[v208] + p9;
      unsigned char* const v213 = v209 + ((((long long)v208) * p11) * 2);
      const int v217 = (v208 + 1) * v187;
      float v221[8];
      load_bf16_8(v221 + 0, (const unsigned short*)v213 + (v185 + col0), (((((v185 + col0) < p8) && (!((v185 + col0) < v203))) && ((v185 + col0) < v217)) && v181));
      const int v223 = min((v190 + 2), 3);
      unsigned char* const v224 = peers.base[v223] + p9;
      unsigned char* const v228 = v224 + ((((long long)v223) * p11) * 2);
      float v232[8];
      load_bf16_8(v232 + 0, (const unsigned short*)v228 + (v185 + col0), ((((v185 + col0) < p8) && (!((v185 + col0) < v217))) && v181));
      const int v16 = (int)(v12 * 4096);
      const int v29 = (int)p10;
      const int v34 = (min((v16 / v29), 3)) + 1;
      const int v35 = v34 * v29;
      const int v48 = ((min(v34, 3)) + 1) * v29;
      float v69[8];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v69[i] = ((v16 + (col0 + i % 8)) < v35) ? v44[i] : (((v16 + (col0 + i % 8)) < v48) ? v57[i] : v67[i]);
      float v74[8];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v74[i] = v69[i] / (1.0f + (expf((-v69[i]))));
      store_bf16_8((unsigned short*)p12 + (v16 + col0), v74 + 0, ((v16 + col0) < p8));
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v44[i] = v233[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v233[i] = v207[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v57[i] = v234[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v234[i] = v221[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v67[i] = v235[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v235[i] = v232[i];
    }
  }
  after_v12:;
  const long long v78 = (long long)gridDim.x + (long long)blockIdx.x;
  if (p6) signal(comm, peers, v78);
  if (p6 && !wait(comm, peers, v78)) return;
  close_comm(comm);
}
