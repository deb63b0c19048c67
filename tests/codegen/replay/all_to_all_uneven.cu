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
__device__ __forceinline__ void store_bf16_8(unsigned short* p, const float* v, bool ok) {
  uint4 w;
  w.x = (unsigned)narrow_bf16(v[0]) | (unsigned)narrow_bf16(v[1]) << 16;
  w.y = (unsigned)narrow_bf16(v[2]) | (unsigned)narrow_bf16(v[3]) << 16;
  w.z = (unsigned)narrow_bf16(v[4]) | (unsigned)narrow_bf16(v[5]) << 16;
  w.w = (unsigned)narrow_bf16(v[6]) | (unsigned)narrow_bf16(v[7]) << 16;
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
  const bool v55 = (long long)blockIdx.x < 16;
  unsigned char* const v58 = peers.base[0] + p7;
  const int v61 = (int)((long long)blockIdx.x * 1024);
  const bool v66 = (long long)rank == 0;
  const int v69 = (int)(v66 ? 0 : 5);
  const int v76 = (int)(v66 ? 5 : 3);
  float v79[8];
  load_bf16_8(v79 + 0, (const unsigned short*)v58 + (((((v61 + col0) / 2048) + v69) * 2048) + ((v61 + col0) % 2048)), ((((v61 + col0) / 2048) < v76) && v55));
  unsigned char* const v81 = peers.base[1] + p7;
  const int v84 = (int)(v66 ? 0 : 3);
  float v90[8];
  load_bf16_8(v90 + 0, (const unsigned short*)v81 + ((((((v61 + col0) / 2048) - v76) + v84) * 2048) + ((v61 + col0) % 2048)), ((!(((v61 + col0) / 2048) < v76)) && v55));
  const long long v91 = (long long)blockIdx.x + (long long)gridDim.x;
  const bool v92 = v91 < 16;
  const int v94 = (int)(v91 * 1024);
  float v103[8];
  load_bf16_8(v103 + 0, (const unsigned short*)v58 + (((((v94 + col0) / 2048) + v69) * 2048) + ((v94 + col0) % 2048)), ((((v94 + col0) / 2048) < v76) && v92));
  float v110[8];
  load_bf16_8(v110 + 0, (const unsigned short*)v81 + ((((((v94 + col0) / 2048) - v76) + v84) * 2048) + ((v94 + col0) % 2048)), ((!(((v94 + col0) / 2048) < v76)) && v92));
  const long long v113 = (long long)blockIdx.x + ((long long)gridDim.x * 2);
  const bool v114 = v113 < 16;
  const int v116 = (int)(v113 * 1024);
  float v125[8];
  load_bf16_8(v125 + 0, (const unsigned short*)v58 + (((((v116 + col0) / 2048) + v69) * 2048) + ((v116 + col0) % 2048)), ((((v116 + col0) / 2048) < v76) && v114));
  float v132[8];
  load_bf16_8(v132 + 0, (const unsigned short*)v81 + ((((((v116 + col0) / 2048) - v76) + v84) * 2048) + ((v116 + col0) % 2048)), ((!(((v116 + col0) / 2048) < v76)) && v114));
  const long long v134 = (long long)blockIdx.x + ((long long)gridDim.x * 3);
  const bool v135 = v134 < 16;
  const int v137 = (int)(v134 * 1024);
  float v146[8];
  load_bf16_8(v146 + 0, (const unsigned short*)v58 + (((((v137 + col0) / 2048) + v69) * 2048) + ((v137 + col0) % 2048)), ((((v137 + col0) / 2048) < v76) && v135));
  float v153[8];
  load_bf16_8(v153 + 0, (const unsigned short*)v81 + ((((((v137 + col0) / 2048) - v76) + v84) * 2048) + ((v137 + col0) % 2048)), ((!(((v137 + col0) / 2048) < v76)) && v135));
  float v37[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v37[i] = v79[i];
  float v193[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v193[i] = v103[i];
  float v194[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v194[i] = v125[i];
  float v195[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v195[i] = v146[i];
  float v48[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v48[i] = v90[i];
  float v196[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v196[i] = v110[i];
  float v197[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v197[i] = v132[i];
  float v198[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v198[i] = v153[i];
  for (long long v12 = (long long)blockIdx.x; v12 < 16; v12 += (long long)gridDim.x) {
    const long long v156 = v12 + ((long long)gridDim.x * 4);
    const bool v157 = v156 < 16;
    unsigned char* const v160 = peers.base[0] + p7;
    const int v163 = (int)(v156 * 1024);
    const bool v168 = (long long)rank == 0;
    const int v171 = (int)(v168 ? 0 : 5);
    const int v178 = (int)(v168 ? 5 : 3);
    float v181[8];
    load_bf16_8(v181 + 0, (const unsigned short*)v160 + (((((v163 + col0) / 2048) + v171) * 2048) + ((v163 + col0) % 2048)), ((((v163 + col0) / 2048) < v178) && v157));
    unsigned char* const v183 = peers.base[1] + p7;
    const int v186 = (int)(v168 ? 0 : 3);
    float v192[8];
    load_bf16_8(v192 + 0, (const unsigned short*)v183 + ((((((v163 + col0) / 2048) - v178) + v186) * 2048) + ((v163 + col0) % 2048)), ((!(((v163 + col0) / 2048) < v178)) && v157));
    const int v16 = (int)(v12 * 1024);
    const int v31 = (int)(((long long)rank == 0) ? 5 : 3);
    float v49[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v49[i] = (((v16 + (col0 + i % 8)) / 2048) < v31) ? v37[i] : v48[i];
    store_bf16_8((unsigned short*)p8 + (v16 + col0), v49 + 0, true);
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v37[i] = v193[i];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v193[i] = v194[i];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v194[i] = v195[i];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v195[i] = v181[i];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v48[i] = v196[i];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v196[i] = v197[i];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v197[i] = v198[i];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v198[i] = v192[i];
  }
  const long long v52 = (long long)gridDim.x + (long long)blockIdx.x;
  if (p6) signal(comm, peers, v52);
  if (p6 && !wait(comm, peers, v52)) return;
  close_comm(comm);
}
