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
  for (int r = threadIdx.x; r < 2; r += 128) {
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
  for (int first = 0; first < 2; first += 128) {
    const int peer = first + threadIdx.x;
    if (peer >= 2 || lost) break;
    lost = await(c, peers, slot, peer);
  }
  return !__syncthreads_or(lost);
}

extern "C" __global__ void __launch_bounds__(128, 1) all_to_all_single(const __grid_constant__ Peers peers, int rank, long long flags, long long timeout, Record* record, int step, int p6, long long p7, unsigned char* p8) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 4 * 256;
  Comm comm = open_comm(peers, rank, flags, step, record, timeout);
  signal(comm, peers, (long long)blockIdx.x);
  if (!wait(comm, peers, (long long)blockIdx.x)) return;
  const bool v53 = (long long)blockIdx.x < 16;
  unsigned char* const v56 = peers.base[0] + p7;
  const int v59 = (int)((long long)blockIdx.x * 1024);
  const bool v64 = (long long)rank == 0;
  const int v67 = (int)(v64 ? 0 : 5);
  const int v74 = (int)(v64 ? 5 : 3);
  float v77[8];
  load_bf16_8(v77 + 0, (const unsigned short*)v56 + (((((v59 + col0) / 2048) + v67) * 2048) + ((v59 + col0) % 2048)), ((((v59 + col0) / 2048) < v74) && v53));
  unsigned char* const v79 = peers.base[1] + p7;
  const int v82 = (int)(v64 ? 0 : 3);
  float v88[8];
  load_bf16_8(v88 + 0, (const unsigned short*)v79 + ((((((v59 + col0) / 2048) - v74) + v82) * 2048) + ((v59 + col0) % 2048)), ((!(((v59 + col0) / 2048) < v74)) && v53));
  const long long v89 = (long long)blockIdx.x + (long long)gridDim.x;
  const bool v90 = v89 < 16;
  const int v92 = (int)(v89 * 1024);
  float v101[8];
  load_bf16_8(v101 + 0, (const unsigned short*)v56 + (((((v92 + col0) / 2048) + v67) * 2048) + ((v92 + col0) % 2048)), ((((v92 + col0) / 2048) < v74) && v90));
  float v108[8];
  load_bf16_8(v108 + 0, (const unsigned short*)v79 + ((((((v92 + col0) / 2048) - v74) + v82) * 2048) + ((v92 + col0) % 2048)), ((!(((v92 + col0) / 2048) < v74)) && v90));
  const long long v111 = (long long)blockIdx.x + ((long long)gridDim.x * 2);
  const bool v112 = v111 < 16;
  const int v114 = (int)(v111 * 1024);
  float v123[8];
  load_bf16_8(v123 + 0, (const unsigned short*)v56 + (((((v114 + col0) / 2048) + v67) * 2048) + ((v114 + col0) % 2048)), ((((v114 + col0) / 2048) < v74) && v112));
  float v130[8];
  load_bf16_8(v130 + 0, (const unsigned short*)v79 + ((((((v114 + col0) / 2048) - v74) + v82) * 2048) + ((v114 + col0) % 2048)), ((!(((v114 + col0) / 2048) < v74)) && v112));
  const long long v132 = (long long)blockIdx.x + ((long long)gridDim.x * 3);
  const bool v133 = v132 < 16;
  const int v135 = (int)(v132 * 1024);
  float v144[8];
  load_bf16_8(v144 + 0, (const unsigned short*)v56 + (((((v135 + col0) / 2048) + v67) * 2048) + ((v135 + col0) % 2048)), ((((v135 + col0) / 2048) < v74) && v133));
  float v151[8];
  load_bf16_8(v151 + 0, (const unsigned short*)v79 + ((((((v135 + col0) / 2048) - v74) + v82) * 2048) + ((v135 + col0) % 2048)), ((!(((v135 + col0) / 2048) < v74)) && v133));
  float v37[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v37[i] = v77[i];
  float v191[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v191[i] = v101[i];
  float v192[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v192[i] = v123[i];
  float v193[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v193[i] = v144[i];
  float v46[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v46[i] = v88[i];
  float v194[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v194[i] = v108[i];
  float v195[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v195[i] = v130[i];
  float v196[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v196[i] = v151[i];
  for (long long v12 = (long long)blockIdx.x; v12 < 16;) {
#pragma unroll
    for (int turn = 0; turn < 5; ++turn, v12 += (long long)gridDim.x) {
      if (turn > 0 && !(v12 < 16)) goto after_v12;
      const long long v154 = v12 + ((long long)gridDim.x * 4);
      const bool v155 = v154 < 16;
      unsigned char* const v158 = peers.base[0] + p7;
      const int v161 = (int)(v154 * 1024);
      const bool v166 = (long long)rank == 0;
      const int v169 = (int)(v166 ? 0 : 5);
      const int v176 = (int)(v166 ? 5 : 3);
      float v179[8];
      load_bf16_8(v179 + 0, (const unsigned short*)v158 + (((((v161 + col0) / 2048) + v169) * 2048) + ((v161 + col0) % 2048)), ((((v161 + col0) / 2048) < v176) && v155));
      unsigned char* const v181 = peers.base[1] + p7;
      const int v184 = (int)(v166 ? 0 : 3);
      float v190[8];
      load_bf16_8(v190 + 0, (const unsigned short*)v181 + ((((((v161 + col0) / 2048) - v176) + v184) * 2048) + ((v161 + col0) % 2048)), ((!(((v161 + col0) / 2048) < v176)) && v155));
      const int v16 = (int)(v12 * 1024);
      const int v31 = (int)(((long long)rank == 0) ? 5 : 3);
      float v47[8];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v47[i] = (((v16 + (col0 + i % 8)) / 2048) < v31) ? v37[i] : v46[i];
      store_bf16_8((unsigned short*)p8 + (v16 + col0), v47 + 0, true);
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v37[i] = v191[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v191[i] = v192[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v192[i] = v193[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v193[i] = v179[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v46[i] = v194[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v194[i] = v195[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v195[i] = v196[i];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v196[i] = v190[i];
    }
  }
  after_v12:;
  const long long v50 = (long long)gridDim.x + (long long)blockIdx.x;
  if (p6) signal(comm, peers, v50);
  if (p6 && !wait(comm, peers, v50)) return;
  close_comm(comm);
}
