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

extern "C" __global__ void __launch_bounds__(512, 1) shard_dim_alltoall(const __grid_constant__ Peers peers, int rank, long long flags, long long timeout, Record* record, int step, int p6, long long p7, long long p8, long long p9, long long p10, long long p11, unsigned char* p12) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 16 * 256;
  Comm comm = open_comm(peers, rank, flags, step, record, timeout);
  signal(comm, peers, (long long)blockIdx.x);
  if (!wait(comm, peers, (long long)blockIdx.x)) return;
  const bool v76 = (long long)blockIdx.x < p7;
  unsigned char* const v79 = peers.base[0] + p9;
  const int v82 = (int)((long long)blockIdx.x * 4096);
  const int v91 = (int)((long long)rank * 512);
  const int v97 = (int)p11;
  float v101[8];
  load_bf16_8(v101 + 0, (const unsigned short*)v79 + ((((v82 + col0) / 512) * 2048) + (((v82 + col0) % 512) + v91)), ((((v82 + col0) < p8) && ((v82 + col0) < v97)) && v76));
  unsigned char* const v103 = peers.base[1] + p9;
  unsigned char* const v107 = v103 + (p10 * 2);
  const int v110 = 2 * v97;
  float v114[8];
  load_bf16_8(v114 + 0, (const unsigned short*)v107 + ((((v82 + col0) / 512) * 2048) + (((v82 + col0) % 512) + v91)), (((((v82 + col0) < p8) && (!((v82 + col0) < v97))) && ((v82 + col0) < v110)) && v76));
  unsigned char* const v115 = peers.base[2] + p9;
  unsigned char* const v118 = v115 + ((2 * p10) * 2);
  const int v122 = 3 * v97;
  float v126[8];
  load_bf16_8(v126 + 0, (const unsigned short*)v118 + ((((v82 + col0) / 512) * 2048) + (((v82 + col0) % 512) + v91)), (((((v82 + col0) < p8) && (!((v82 + col0) < v110))) && ((v82 + col0) < v122)) && v76));
  unsigned char* const v127 = peers.base[3] + p9;
  unsigned char* const v130 = v127 + ((3 * p10) * 2);
  float v134[8];
  load_bf16_8(v134 + 0, (const unsigned short*)v130 + ((((v82 + col0) / 512) * 2048) + (((v82 + col0) % 512) + v91)), ((((v82 + col0) < p8) && (!((v82 + col0) < v122))) && v76));
  const long long v135 = (long long)blockIdx.x + (long long)gridDim.x;
  const bool v136 = v135 < p7;
  const int v138 = (int)(v135 * 4096);
  float v149[8];
  load_bf16_8(v149 + 0, (const unsigned short*)v79 + ((((v138 + col0) / 512) * 2048) + (((v138 + col0) % 512) + v91)), ((((v138 + col0) < p8) && ((v138 + col0) < v97)) && v136));
  float v155[8];
  load_bf16_8(v155 + 0, (const unsigned short*)v107 + ((((v138 + col0) / 512) * 2048) + (((v138 + col0) % 512) + v91)), (((((v138 + col0) < p8) && (!((v138 + col0) < v97))) && ((v138 + col0) < v110)) && v136));
  float v161[8];
  load_bf16_8(v161 + 0, (const unsigned short*)v118 + ((((v138 + col0) / 512) * 2048) + (((v138 + col0) % 512) + v91)), (((((v138 + col0) < p8) && (!((v138 + col0) < v110))) && ((v138 + col0) < v122)) && v136));
  float v165[8];
  load_bf16_8(v165 + 0, (const unsigned short*)v130 + ((((v138 + col0) / 512) * 2048) + (((v138 + col0) % 512) + v91)), ((((v138 + col0) < p8) && (!((v138 + col0) < v122))) && v136));
  float v41[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v41[i] = v101[i];
  float v227[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v227[i] = v149[i];
  float v50[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v50[i] = v114[i];
  float v228[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v228[i] = v155[i];
  float v60[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v60[i] = v126[i];
  float v229[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v229[i] = v161[i];
  float v67[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v67[i] = v134[i];
  float v230[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v230[i] = v165[i];
  for (long long v12 = (long long)blockIdx.x; v12 < p7;) {
#pragma unroll
    for (int turn = 0; turn < 3; ++turn, v12 += (long long)gridDim.x) {
      if (turn > 0 && !(v12 < p7)) goto after_v12;
      const long long v168 = v12 + ((long long)gridDim.x * 2);
      const bool v169 = v168 < p7;
      unsigned char* const v172 = peers.base[0] + p9;
      const int v175 = (int)(v168 * 4096);
      const int v184 = (int)((long long)rank * 512);
      const int v190 = (int)p11;
      float v194[8];
      load_bf16_8(v194 + 0, (const unsigned short*)v172 + ((((v175 + col0) / 512) * 2048) + (((v175 + col0) % 512) + v184)), ((((v175 + col0) < p8) && ((v175 + col0) < v190)) && v169));
      unsigned char* const v196 = peers.base[1] + p9;
      unsigned char* const v199 = v196 + (p10 * 2);
      const int v202 = 2 * v190;
      float v206[8];
      load_bf16_8(v206 + 0, (const unsigned short*)v199 + ((((v175 + col0) / 512) * 2048) + (((v175 + col0) % 512) + v184)), (((((v175 + col0) < p8) && (!((v175 + col0) < v190))) && ((v175 + col0) < v202)) && v169));
      unsigned char* const v207 = peers.base[2] + p9;
      unsigned char* const v210 = v207 + ((2 * p10) * 2);
      const int v214 = 3 * v190;
      float v218[8];
      load_bf16_8(v218 + 0, (const unsigned short*)v210 + ((((v175 + col0) / 512) * 2048) + (((v175 + col0) % 512) + v184)), (((((v175 + col0) < p8) && (!((v175 + col0) < v202))) && ((v175 + col0) < v214)) && v169));
      unsigned char* const v219 = peers.base[3] + p9;
      unsigned char* const v222 = v219 + ((3 * p10) * 2);
      float v226[8];
      load_bf16_8(v226 + 0, (const unsigned short*)v222 + ((((v175 + col0) / 512) * 2048) + (((v175 + col0) % 512) + v184)), ((((v175 + col0) < p8) && (!((v175 + col0) < v214))) && v169));
      const int v16 = (int)(v12 * 4096);
      const int v33 = (int)p11;
      const int v43 = 2 * v33;
      const int v52 = 3 * v33;
      float v70[8];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v70[i] = ((v16 + (col0 + i % 8)) < v33) ? v41[i] : (((v16 + (col0 + i % 8)) < v43) ? v50[i] : (((v16 + (col0 + i % 8)) < v52) ? v60[i] : v67[i]));
      store_bf16_8((unsigned short*)p12 + (v16 + col0), v70 + 0, ((v16 + col0) < p8));
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v41[i] = v227[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v227[i] = v194[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v50[i] = v228[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v228[i] = v206[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v60[i] = v229[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v229[i] = v218[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v67[i] = v230[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v230[i] = v226[i];
    }
  }
  after_v12:;
  const long long v73 = (long long)gridDim.x + (long long)blockIdx.x;
  if (p6) signal(comm, peers, v73);
  if (p6 && !wait(comm, peers, v73)) return;
  close_comm(comm);
}
