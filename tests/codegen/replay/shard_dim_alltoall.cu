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

extern "C" __global__ void __launch_bounds__(512, 1) shard_dim_alltoall(const __grid_constant__ Peers peers, int rank, long long flags, long long timeout, Record* record, int step, int p6, long long p7, long long p8, long long p9, long long p10, long long p11, long long p12, long long p13, long long p14, long long p15, long long p16, unsigned char* p17) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 16 * 256;
  Comm comm = open_comm(peers, rank, flags, step, record, timeout);
  signal(comm, peers, (long long)blockIdx.x);
  if (!wait(comm, peers, (long long)blockIdx.x)) return;
  const bool v87 = (long long)blockIdx.x < p7;
  unsigned char* const v90 = peers.base[0] + p9;
  const int v93 = (int)((long long)blockIdx.x * 4096);
  const int v102 = (int)((long long)rank * 512);
  const int v108 = (int)p10;
  float v112[8];
  load_bf16_8(v112 + 0, (const unsigned short*)v90 + ((((v93 + col0) / 512) * 2048) + (((v93 + col0) % 512) + v102)), ((((v93 + col0) < p8) && (((v93 + col0) / 512) < v108)) && v87));
  unsigned char* const v114 = peers.base[1] + p9;
  const int v116 = (int)p11;
  const int v123 = (int)p12;
  float v127[8];
  load_bf16_8(v127 + 0, (const unsigned short*)v114 + (((((v93 + col0) / 512) + v116) * 2048) + (((v93 + col0) % 512) + v102)), (((((v93 + col0) < p8) && (!(((v93 + col0) / 512) < v108))) && (((v93 + col0) / 512) < v123)) && v87));
  unsigned char* const v129 = peers.base[2] + p9;
  const int v131 = (int)p13;
  const int v138 = (int)p14;
  float v142[8];
  load_bf16_8(v142 + 0, (const unsigned short*)v129 + (((((v93 + col0) / 512) + v131) * 2048) + (((v93 + col0) % 512) + v102)), (((((v93 + col0) < p8) && (!(((v93 + col0) / 512) < v123))) && (((v93 + col0) / 512) < v138)) && v87));
  unsigned char* const v144 = peers.base[3] + p9;
  const int v146 = (int)p15;
  float v153[8];
  load_bf16_8(v153 + 0, (const unsigned short*)v144 + (((((v93 + col0) / 512) + v146) * 2048) + (((v93 + col0) % 512) + v102)), ((((v93 + col0) < p8) && (!(((v93 + col0) / 512) < v138))) && v87));
  const long long v154 = (long long)blockIdx.x + (long long)gridDim.x;
  const bool v155 = v154 < p7;
  const int v157 = (int)(v154 * 4096);
  float v168[8];
  load_bf16_8(v168 + 0, (const unsigned short*)v90 + ((((v157 + col0) / 512) * 2048) + (((v157 + col0) % 512) + v102)), ((((v157 + col0) < p8) && (((v157 + col0) / 512) < v108)) && v155));
  float v177[8];
  load_bf16_8(v177 + 0, (const unsigned short*)v114 + (((((v157 + col0) / 512) + v116) * 2048) + (((v157 + col0) % 512) + v102)), (((((v157 + col0) < p8) && (!(((v157 + col0) / 512) < v108))) && (((v157 + col0) / 512) < v123)) && v155));
  float v186[8];
  load_bf16_8(v186 + 0, (const unsigned short*)v129 + (((((v157 + col0) / 512) + v131) * 2048) + (((v157 + col0) % 512) + v102)), (((((v157 + col0) < p8) && (!(((v157 + col0) / 512) < v123))) && (((v157 + col0) / 512) < v138)) && v155));
  float v193[8];
  load_bf16_8(v193 + 0, (const unsigned short*)v144 + (((((v157 + col0) / 512) + v146) * 2048) + (((v157 + col0) % 512) + v102)), ((((v157 + col0) < p8) && (!(((v157 + col0) / 512) < v138))) && v155));
  float v38[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v38[i] = v112[i];
  float v263[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v263[i] = v168[i];
  float v51[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v51[i] = v127[i];
  float v264[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v264[i] = v177[i];
  float v65[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v65[i] = v142[i];
  float v265[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v265[i] = v186[i];
  float v78[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v78[i] = v153[i];
  float v266[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v266[i] = v193[i];
  for (long long v12 = (long long)blockIdx.x; v12 < p7; v12 += (long long)gridDim.x) {
    const long long v196 = v12 + ((long long)gridDim.x * 2);
    const bool v197 = v196 < p7;
    unsigned char* const v200 = peers.base[0] + p9;
    const int v203 = (int)(v196 * 4096);
    const int v212 = (int)((long long)rank * 512);
    const int v218 = (int)p10;
    float v222[8];
    load_bf16_8(v222 + 0, (const unsigned short*)v200 + ((((v203 + col0) / 512) * 2048) + (((v203 + col0) % 512) + v212)), ((((v203 + col0) < p8) && (((v203 + col0) / 512) < v218)) && v197));
    unsigned char* const v224 = peers.base[1] + p9;
    const int v226 = (int)p11;
    const int v233 = (int)p12;
    float v237[8];
    load_bf16_8(v237 + 0, (const unsigned short*)v224 + (((((v203 + col0) / 512) + v226) * 2048) + (((v203 + col0) % 512) + v212)), (((((v203 + col0) < p8) && (!(((v203 + col0) / 512) < v218))) && (((v203 + col0) / 512) < v233)) && v197));
    unsigned char* const v238 = peers.base[2] + p9;
    const int v240 = (int)p13;
    const int v247 = (int)p14;
    float v251[8];
    load_bf16_8(v251 + 0, (const unsigned short*)v238 + (((((v203 + col0) / 512) + v240) * 2048) + (((v203 + col0) % 512) + v212)), (((((v203 + col0) < p8) && (!(((v203 + col0) / 512) < v233))) && (((v203 + col0) / 512) < v247)) && v197));
    unsigned char* const v253 = peers.base[3] + p9;
    const int v255 = (int)p15;
    float v262[8];
    load_bf16_8(v262 + 0, (const unsigned short*)v253 + (((((v203 + col0) / 512) + v255) * 2048) + (((v203 + col0) % 512) + v212)), ((((v203 + col0) < p8) && (!(((v203 + col0) / 512) < v247))) && v197));
    const int v16 = (int)(v12 * 4096);
    const int v31 = (int)p10;
    const int v43 = (int)p12;
    const int v56 = (int)p14;
    float v81[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v81[i] = (((v16 + (col0 + i % 8)) / 512) < v31) ? v38[i] : ((((v16 + (col0 + i % 8)) / 512) < v43) ? v51[i] : ((((v16 + (col0 + i % 8)) / 512) < v56) ? v65[i] : v78[i]));
    store_bf16_8((unsigned short*)p17 + (v16 + col0), v81 + 0, ((v16 + col0) < p8));
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v38[i] = v263[i];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v263[i] = v222[i];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v51[i] = v264[i];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v264[i] = v237[i];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v65[i] = v265[i];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v265[i] = v251[i];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v78[i] = v266[i];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v266[i] = v262[i];
  }
  const long long v84 = (long long)gridDim.x + (long long)blockIdx.x;
  if (p6) signal(comm, peers, v84);
  if (p6 && !wait(comm, peers, v84)) return;
  close_comm(comm);
}
