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

extern "C" __global__ void __launch_bounds__(512, 1) all_gather_into_tensor_silu(const __grid_constant__ Peers peers, int rank, long long flags, long long timeout, Record* record, int step, int p6, long long p7, long long p8, long long p9, long long p10, long long p11, long long p12, long long p13, long long p14, long long p15, unsigned char* p16) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 16 * 256;
  Comm comm = open_comm(peers, rank, flags, step, record, timeout);
  signal(comm, peers, (long long)blockIdx.x);
  if (!wait(comm, peers, (long long)blockIdx.x)) return;
  const bool v88 = (long long)blockIdx.x < p7;
  unsigned char* const v91 = peers.base[0] + p9;
  const int v94 = (int)((long long)blockIdx.x * 4096);
  const int v105 = (int)p10;
  float v109[8];
  load_bf16_8(v109 + 0, (const unsigned short*)v91 + ((((v94 + col0) / 2048) * 2048) + ((v94 + col0) % 2048)), ((((v94 + col0) < p8) && (((v94 + col0) / 2048) < v105)) && v88));
  unsigned char* const v111 = peers.base[1] + p9;
  const int v113 = (int)p11;
  const int v119 = (int)p7;
  float v123[8];
  load_bf16_8(v123 + 0, (const unsigned short*)v111 + (((((v94 + col0) / 2048) + v113) * 2048) + ((v94 + col0) % 2048)), (((((v94 + col0) < p8) && (!(((v94 + col0) / 2048) < v105))) && (((v94 + col0) / 2048) < v119)) && v88));
  unsigned char* const v125 = peers.base[2] + p9;
  const int v127 = (int)p12;
  const int v134 = (int)p13;
  float v138[8];
  load_bf16_8(v138 + 0, (const unsigned short*)v125 + (((((v94 + col0) / 2048) + v127) * 2048) + ((v94 + col0) % 2048)), (((((v94 + col0) < p8) && (!(((v94 + col0) / 2048) < v119))) && (((v94 + col0) / 2048) < v134)) && v88));
  unsigned char* const v140 = peers.base[3] + p9;
  const int v142 = (int)p14;
  float v149[8];
  load_bf16_8(v149 + 0, (const unsigned short*)v140 + (((((v94 + col0) / 2048) + v142) * 2048) + ((v94 + col0) % 2048)), ((((v94 + col0) < p8) && (!(((v94 + col0) / 2048) < v134))) && v88));
  const long long v150 = (long long)blockIdx.x + (long long)gridDim.x;
  const bool v151 = v150 < p7;
  const int v153 = (int)(v150 * 4096);
  float v163[8];
  load_bf16_8(v163 + 0, (const unsigned short*)v91 + ((((v153 + col0) / 2048) * 2048) + ((v153 + col0) % 2048)), ((((v153 + col0) < p8) && (((v153 + col0) / 2048) < v105)) && v151));
  float v172[8];
  load_bf16_8(v172 + 0, (const unsigned short*)v111 + (((((v153 + col0) / 2048) + v113) * 2048) + ((v153 + col0) % 2048)), (((((v153 + col0) < p8) && (!(((v153 + col0) / 2048) < v105))) && (((v153 + col0) / 2048) < v119)) && v151));
  float v181[8];
  load_bf16_8(v181 + 0, (const unsigned short*)v125 + (((((v153 + col0) / 2048) + v127) * 2048) + ((v153 + col0) % 2048)), (((((v153 + col0) < p8) && (!(((v153 + col0) / 2048) < v119))) && (((v153 + col0) / 2048) < v134)) && v151));
  float v188[8];
  load_bf16_8(v188 + 0, (const unsigned short*)v140 + (((((v153 + col0) / 2048) + v142) * 2048) + ((v153 + col0) % 2048)), ((((v153 + col0) < p8) && (!(((v153 + col0) / 2048) < v134))) && v151));
  float v34[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v34[i] = v109[i];
  float v253[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v253[i] = v163[i];
  float v46[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v46[i] = v123[i];
  float v254[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v254[i] = v172[i];
  float v60[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v60[i] = v138[i];
  float v255[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v255[i] = v181[i];
  float v73[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v73[i] = v149[i];
  float v256[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v256[i] = v188[i];
  for (long long v12 = (long long)blockIdx.x; v12 < p7; v12 += (long long)gridDim.x) {
    const long long v191 = v12 + ((long long)gridDim.x * 2);
    const bool v192 = v191 < p7;
    unsigned char* const v195 = peers.base[0] + p9;
    const int v198 = (int)(v191 * 4096);
    const int v209 = (int)p10;
    float v213[8];
    load_bf16_8(v213 + 0, (const unsigned short*)v195 + ((((v198 + col0) / 2048) * 2048) + ((v198 + col0) % 2048)), ((((v198 + col0) < p8) && (((v198 + col0) / 2048) < v209)) && v192));
    unsigned char* const v215 = peers.base[1] + p9;
    const int v217 = (int)p11;
    const int v223 = (int)p7;
    float v227[8];
    load_bf16_8(v227 + 0, (const unsigned short*)v215 + (((((v198 + col0) / 2048) + v217) * 2048) + ((v198 + col0) % 2048)), (((((v198 + col0) < p8) && (!(((v198 + col0) / 2048) < v209))) && (((v198 + col0) / 2048) < v223)) && v192));
    unsigned char* const v228 = peers.base[2] + p9;
    const int v230 = (int)p12;
    const int v237 = (int)p13;
    float v241[8];
    load_bf16_8(v241 + 0, (const unsigned short*)v228 + (((((v198 + col0) / 2048) + v230) * 2048) + ((v198 + col0) % 2048)), (((((v198 + col0) < p8) && (!(((v198 + col0) / 2048) < v223))) && (((v198 + col0) / 2048) < v237)) && v192));
    unsigned char* const v243 = peers.base[3] + p9;
    const int v245 = (int)p14;
    float v252[8];
    load_bf16_8(v252 + 0, (const unsigned short*)v243 + (((((v198 + col0) / 2048) + v245) * 2048) + ((v198 + col0) % 2048)), ((((v198 + col0) < p8) && (!(((v198 + col0) / 2048) < v237))) && v192));
    const int v16 = (int)(v12 * 4096);
    const int v28 = (int)p10;
    const int v38 = (int)p7;
    const int v51 = (int)p13;
    float v76[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v76[i] = (((v16 + (col0 + i % 8)) / 2048) < v28) ? v34[i] : ((((v16 + (col0 + i % 8)) / 2048) < v38) ? v46[i] : ((((v16 + (col0 + i % 8)) / 2048) < v51) ? v60[i] : v73[i]));
    float v81[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v81[i] = v76[i] / (1.0f + (expf((-v76[i]))));
    store_bf16_8((unsigned short*)p16 + (v16 + col0), v81 + 0, ((v16 + col0) < p8));
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v34[i] = v253[i];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v253[i] = v213[i];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v46[i] = v254[i];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v254[i] = v227[i];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v60[i] = v255[i];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v255[i] = v241[i];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v73[i] = v256[i];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v256[i] = v252[i];
  }
  const long long v85 = (long long)gridDim.x + (long long)blockIdx.x;
  if (p6) signal(comm, peers, v85);
  if (p6 && !wait(comm, peers, v85)) return;
  close_comm(comm);
}
