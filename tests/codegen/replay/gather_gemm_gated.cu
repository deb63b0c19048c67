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
__device__ __forceinline__ void store_bf16_2(unsigned short* p, const float* v, bool ok) {
  unsigned w;
  w = narrow_pair_bf16(v[0], v[1]);
  if (ok) *(unsigned*)p = w;
}
__device__ __forceinline__ void store_bf16_8(unsigned short* p, const float* v, bool ok) {
  uint4 w;
  w.x = narrow_pair_bf16(v[0], v[1]);
  w.y = narrow_pair_bf16(v[2], v[3]);
  w.z = narrow_pair_bf16(v[4], v[5]);
  w.w = narrow_pair_bf16(v[6], v[7]);
  if (ok) *(uint4*)p = w;
}
__device__ __forceinline__ long long max_i64(long long a, long long b) { return a > b ? a : b; }
__device__ __forceinline__ long long min_i64(long long a, long long b) { return a < b ? a : b; }
extern __shared__ __align__(1024) unsigned char smem[];
__device__ __forceinline__ unsigned shared_address(const void* p) {
  return (unsigned)__cvta_generic_to_shared(p);
}
__device__ __forceinline__ void commit_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// 16 bytes from global to shared memory; zeros when not ok.
__device__ __forceinline__ void copy_async_16(unsigned to, const void* from, bool ok) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :: "r"(to), "l"(from), "r"(ok ? 16 : 0) : "memory");
}
__device__ __forceinline__ void wait_group_0() {
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  __syncthreads();
}
__device__ __forceinline__ void wait_group_4() {
  asm volatile("cp.async.wait_group 4;" ::: "memory");
  __syncthreads();
}
__device__ __forceinline__ void ldmatrix(unsigned* r, unsigned from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(from) : "memory");
}
__device__ __forceinline__ void ldmatrix_trans(unsigned* r, unsigned from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(from) : "memory");
}
__device__ __forceinline__ void mma_bf16_bf16(float* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
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

__device__ __forceinline__ void signal_one(const Comm& c, const Peers& peers, int slot, int rank) {
  __syncthreads();
  if (threadIdx.x != 0) return;
  fence();
  store_flag(flag_at(c, peers.base[rank], slot, c.rank), c.epoch);
}
__device__ __forceinline__ bool wait_one(const Comm& c, const Peers& peers, int slot, int rank) {
  bool lost = false;
  if (threadIdx.x == 0) lost = await(c, peers, slot, rank);
  return !__syncthreads_or(lost);
}

extern "C" __global__ void __launch_bounds__(256, 1) gather_gemm_all_gather_into_tensor_mm_mm_silu_mul(const __grid_constant__ Peers peers, int rank, long long flags, long long timeout, Record* record, int step, long long p6, long long p7, unsigned char* p8, long long p9, long long p10, unsigned char* p11, unsigned char* p12, unsigned char* p13, unsigned char* p14, int p15) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 8 * 256;
  const int row1 = lane / 8 % 4 + warp % 8 * 4;
  const int col1 = lane % 8 * 8;
  const int row2 = lane / 8 % 4 + warp % 8 * 4;
  const int col2 = lane % 8 * 8;
  const int col3 = lane % 4 * 2 + warp % 2 * 32;
  const int row4 = lane / 4 % 8 + warp / 2 % 4 * 32;
  const int at5 = ((lane % 32 * 16) ^ (lane / 8 % 4 * 16) ^ (warp % 2 * 64)) + warp % 8 * 512;
  const int at6 = ((lane % 32 * 16) ^ (lane / 8 % 4 * 16) ^ (warp % 2 * 64)) + warp % 8 * 512;
  const int at7 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 128 + warp / 2 % 4 * 4096;
  const int at8 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16) ^ (warp % 2 * 64)) + lane % 16 * 128;
  Comm comm = open_comm(peers, rank, flags, step, record, timeout);
  const long long v12 = min_i64(16, (max_i64(1, ((long long)gridDim.x / 4))));
  const bool v14 = (long long)blockIdx.x < v12;
  if (v14) signal(comm, peers, (long long)blockIdx.x);
  if (v14 && !wait(comm, peers, (long long)blockIdx.x)) return;
  const long long v17 = v14 ? (long long)blockIdx.x : 16;
  for (long long v19 = v17; v19 < 16; v19 += v12) {
    const long long v26 = ((long long)rank + ((v19 / 2) + 1)) % 8;
    unsigned char* const v27 = peers.base[v26] + p6;
    unsigned char* const v34 = p8 + ((v26 * (p7 * 2048)) * 2);
    const long long v37 = (v19 % 2) * 128;
    const long long v40 = (min_i64((v37 + 128), p7)) * 2048;
    const long long v41 = v37 * 2048;
    const bool v276 = v41 < v40;
    unsigned char* const v278 = v27 + (v41 * 2);
    const long long v280 = v40 - v41;
    float v283[32];
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      load_bf16_8(v283 + i, (const unsigned short*)v278 + (col0 + i % 8 + i / 8 % 4 * 2048), (((col0 + i % 8 + i / 8 % 4 * 2048) < v280) && v276));
    const long long v284 = v41 + 8192;
    const bool v285 = v284 < v40;
    unsigned char* const v287 = v27 + (v284 * 2);
    const long long v288 = v40 - v284;
    float v291[32];
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      load_bf16_8(v291 + i, (const unsigned short*)v287 + (col0 + i % 8 + i / 8 % 4 * 2048), (((col0 + i % 8 + i / 8 % 4 * 2048) < v288) && v285));
    const long long v294 = v41 + 16384;
    const bool v295 = v294 < v40;
    unsigned char* const v297 = v27 + (v294 * 2);
    const long long v298 = v40 - v294;
    float v301[32];
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      load_bf16_8(v301 + i, (const unsigned short*)v297 + (col0 + i % 8 + i / 8 % 4 * 2048), (((col0 + i % 8 + i / 8 % 4 * 2048) < v298) && v295));
    const long long v304 = v41 + 24576;
    const bool v305 = v304 < v40;
    unsigned char* const v307 = v27 + (v304 * 2);
    const long long v308 = v40 - v304;
    float v311[32];
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      load_bf16_8(v311 + i, (const unsigned short*)v307 + (col0 + i % 8 + i / 8 % 4 * 2048), (((col0 + i % 8 + i / 8 % 4 * 2048) < v308) && v305));
    float v50[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v50[i] = v283[i];
    float v323[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v323[i] = v291[i];
    float v324[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v324[i] = v301[i];
    float v325[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v325[i] = v311[i];
    for (long long v43 = v41; v43 < v40;) {
#pragma unroll
      for (int turn = 0; turn < 5; ++turn, v43 += 8192) {
        if (turn > 0 && !(v43 < v40)) goto after_v43;
        const long long v314 = v43 + 32768;
        const bool v315 = v314 < v40;
        unsigned char* const v317 = v27 + (v314 * 2);
        const long long v319 = v40 - v314;
        float v322[32];
#pragma unroll
        for (int i = 0; i < 32; i += 8)
          load_bf16_8(v322 + i, (const unsigned short*)v317 + (col0 + i % 8 + i / 8 % 4 * 2048), (((col0 + i % 8 + i / 8 % 4 * 2048) < v319) && v315));
        const long long v46 = v40 - v43;
        unsigned char* const v51 = v34 + (v43 * 2);
#pragma unroll
        for (int i = 0; i < 32; i += 8)
          store_bf16_8((unsigned short*)v51 + (col0 + i % 8 + i / 8 % 4 * 2048), v50 + i, ((col0 + i % 8 + i / 8 % 4 * 2048) < v46));
#pragma unroll
        for (int i = 0; i < 32; ++i)
          v50[i] = v323[i];
#pragma unroll
        for (int i = 0; i < 32; ++i)
          v323[i] = v324[i];
#pragma unroll
        for (int i = 0; i < 32; ++i)
          v324[i] = v325[i];
#pragma unroll
        for (int i = 0; i < 32; ++i)
          v325[i] = v322[i];
      }
    }
    after_v43:;
    const bool v54 = v19 < 14;
    const long long v56 = 32 + v19;
    if (v54) signal_one(comm, peers, v56, (long long)rank);
  }
  const long long v60 = 8 * p9;
  const long long v62 = v14 ? v60 : ((long long)blockIdx.x - v12);
  const long long v63 = (long long)gridDim.x - v12;
  for (long long v64 = v62; v64 < v60; v64 += v63) {
    const int v66 = (int)v64;
    const int v67 = (int)p9;
    const int v68 = v66 / v67;
    const int v69 = v66 % v67;
    const int v71 = (int)p10;
    const int v72 = v69 % v71;
    const long long v75 = ((long long)rank + v68) % 8;
    const bool v77 = 0 < v68;
    const int v83 = 32 + (((v68 - 1) * 2) + v72);
    if (v77 && !wait_one(comm, peers, v83, (long long)rank)) return;
    unsigned char* const v92 = p8 + ((v75 * (p7 * 2048)) * 2);
    const int v94 = v72 * 128;
    const int v96 = (v69 / v71) * 64;
    unsigned char* const v98 = v77 ? v92 : p11;
    wait_group_0();
    const int v168 = (int)v94;
    const int v172 = (int)0;
    const int v180 = (int)v96;
    const bool v184 = 0 < 2048;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 0 + (at5 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v98 + (((v168 + (row1 + i / 8 % 4 * 32)) * 2048) + (v172 + (col1 + i % 8))), v184 && ((v168 + (row1 + i / 8 % 4 * 32)) < p7));
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 98304 + (at6 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)p12 + (((v172 + (row2 + i / 8 % 2 * 32)) * 1024) + (v180 + (col2 + i % 8))), v184);
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 147456 + (at6 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)p13 + (((v172 + (row2 + i / 8 % 2 * 32)) * 1024) + (v180 + (col2 + i % 8))), v184);
    commit_group();
    const bool v194 = 64 < 2048;
    unsigned char* const v196 = v98 + 128;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 0 + (int)1 * 16384 + (at5 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v196 + (((v168 + (row1 + i / 8 % 4 * 32)) * 2048) + (v172 + (col1 + i % 8))), v194 && ((v168 + (row1 + i / 8 % 4 * 32)) < p7));
    unsigned char* const v200 = p12 + 131072;
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 98304 + (int)1 * 8192 + (at6 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v200 + (((v172 + (row2 + i / 8 % 2 * 32)) * 1024) + (v180 + (col2 + i % 8))), v194);
    unsigned char* const v202 = p13 + 131072;
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 147456 + (int)1 * 8192 + (at6 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v202 + (((v172 + (row2 + i / 8 % 2 * 32)) * 1024) + (v180 + (col2 + i % 8))), v194);
    commit_group();
    const bool v205 = 128 < 2048;
    unsigned char* const v207 = v98 + 256;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 0 + (int)2 * 16384 + (at5 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v207 + (((v168 + (row1 + i / 8 % 4 * 32)) * 2048) + (v172 + (col1 + i % 8))), v205 && ((v168 + (row1 + i / 8 % 4 * 32)) < p7));
    unsigned char* const v210 = p12 + 262144;
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 98304 + (int)2 * 8192 + (at6 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v210 + (((v172 + (row2 + i / 8 % 2 * 32)) * 1024) + (v180 + (col2 + i % 8))), v205);
    unsigned char* const v212 = p13 + 262144;
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 147456 + (int)2 * 8192 + (at6 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v212 + (((v172 + (row2 + i / 8 % 2 * 32)) * 1024) + (v180 + (col2 + i % 8))), v205);
    commit_group();
    const bool v217 = 192 < 2048;
    unsigned char* const v219 = v98 + 384;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 0 + (int)3 * 16384 + (at5 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v219 + (((v168 + (row1 + i / 8 % 4 * 32)) * 2048) + (v172 + (col1 + i % 8))), v217 && ((v168 + (row1 + i / 8 % 4 * 32)) < p7));
    unsigned char* const v223 = p12 + 393216;
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 98304 + (int)3 * 8192 + (at6 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v223 + (((v172 + (row2 + i / 8 % 2 * 32)) * 1024) + (v180 + (col2 + i % 8))), v217);
    unsigned char* const v225 = p13 + 393216;
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 147456 + (int)3 * 8192 + (at6 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v225 + (((v172 + (row2 + i / 8 % 2 * 32)) * 1024) + (v180 + (col2 + i % 8))), v217);
    commit_group();
    const bool v229 = 256 < 2048;
    unsigned char* const v231 = v98 + 512;
#pragma unroll
    for (int i = 0; i < 32; i += 8)
      copy_async_16(shared + 0 + (int)4 * 16384 + (at5 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v231 + (((v168 + (row1 + i / 8 % 4 * 32)) * 2048) + (v172 + (col1 + i % 8))), v229 && ((v168 + (row1 + i / 8 % 4 * 32)) < p7));
    unsigned char* const v234 = p12 + 524288;
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 98304 + (int)4 * 8192 + (at6 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v234 + (((v172 + (row2 + i / 8 % 2 * 32)) * 1024) + (v180 + (col2 + i % 8))), v229);
    unsigned char* const v236 = p13 + 524288;
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 147456 + (int)4 * 8192 + (at6 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v236 + (((v172 + (row2 + i / 8 % 2 * 32)) * 1024) + (v180 + (col2 + i % 8))), v229);
    commit_group();
    float v102[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v102[i] = 0.0f;
    float v103[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v103[i] = 0.0f;
    int v240 = 0;
    int v242 = 5;
    for (long long v101 = 0; v101 < 2048; v101 += 64) {
      wait_group_4();
      const long long v246 = v101 + 320;
      const bool v247 = v246 < 2048;
      unsigned char* const v250 = v98 + (v246 * 2);
      const int v251 = (int)v94;
#pragma unroll
      for (int i = 0; i < 32; i += 8)
        copy_async_16(shared + 0 + (int)v242 * 16384 + (at5 + i % 8 * 2 + i / 8 % 4 * 4096), (const unsigned short*)v250 + (((v168 + (row1 + i / 8 % 4 * 32)) * 2048) + (v172 + (col1 + i % 8))), v247 && ((v251 + (row1 + i / 8 % 4 * 32)) < p7));
      const long long v258 = (v246 * 1024) * 2;
      unsigned char* const v259 = p12 + v258;
#pragma unroll
      for (int i = 0; i < 16; i += 8)
        copy_async_16(shared + 98304 + (int)v242 * 8192 + (at6 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v259 + (((v172 + (row2 + i / 8 % 2 * 32)) * 1024) + (v180 + (col2 + i % 8))), v247);
      unsigned char* const v262 = p13 + v258;
#pragma unroll
      for (int i = 0; i < 16; i += 8)
        copy_async_16(shared + 147456 + (int)v242 * 8192 + (at6 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v262 + (((v172 + (row2 + i / 8 % 2 * 32)) * 1024) + (v180 + (col2 + i % 8))), v247);
      commit_group();
      {
        const unsigned a = shared + 0 + (int)v240 * 16384;
        const unsigned b = shared + 98304 + (int)v240 * 8192;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          unsigned fa[2][4], fb[4][2];
#pragma unroll
          for (int m = 0; m < 2; ++m)
            ldmatrix(fa[m], a + ((at7 ^ (k % 4 * 32)) + m % 2 * 2048));
#pragma unroll
          for (int n = 0; n < 4; n += 2)
            ldmatrix_trans(fb[n], b + ((at8 ^ (n / 2 % 2 * 32)) + k % 4 * 2048));
#pragma unroll
          for (int m = 0; m < 2; ++m) {
#pragma unroll
            for (int n = 0; n < 4; ++n) mma_bf16_bf16(v102 + (m * 4 + n) * 4, fa[m], fb[n]);
          }
        }
      }
      {
        const unsigned a = shared + 0 + (int)v240 * 16384;
        const unsigned b = shared + 147456 + (int)v240 * 8192;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          unsigned fa[2][4], fb[4][2];
#pragma unroll
          for (int m = 0; m < 2; ++m)
            ldmatrix(fa[m], a + ((at7 ^ (k % 4 * 32)) + m % 2 * 2048));
#pragma unroll
          for (int n = 0; n < 4; n += 2)
            ldmatrix_trans(fb[n], b + ((at8 ^ (n / 2 % 2 * 32)) + k % 4 * 2048));
#pragma unroll
          for (int m = 0; m < 2; ++m) {
#pragma unroll
            for (int n = 0; n < 4; ++n) mma_bf16_bf16(v103 + (m * 4 + n) * 4, fa[m], fb[n]);
          }
        }
      }
      const int v268 = v240 + 1;
      const int v272 = (v268 < 6) ? v268 : 0;
      const int v273 = v242 + 1;
      const int v275 = (v273 < 6) ? v273 : 0;
      v240 = v272;
      v242 = v275;
    }
    const int v131 = (int)v94;
    int v133[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v133[i] = v131 + (row4 + i % 4 * 8);
    bool v134[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v134[i] = v133[i] < p7;
    const int v135 = (int)v96;
    const int v138 = (int)(v75 * p7);
    float v140[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v140[i] = round_bf16(v102[i]);
    float v148[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v148[i] = (round_bf16((v140[i] / (1.0f + (expf((-v140[i]))))))) * (round_bf16(v103[i]));
    int v152[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v152[i] = (v138 + v133[i]) * 1024;
#pragma unroll
    for (int i = 0; i < 32; i += 2)
      store_bf16_2((unsigned short*)p14 + (v152[i / 2 % 2 + i / 16 % 2 * 2] + (v135 + (col3 + i % 2 + i / 4 % 4 * 8))), v148 + i, v134[i / 2 % 2 + i / 16 % 2 * 2]);
  }
  const bool v158 = v14 && (0 < p15);
  const long long v159 = 16 + (long long)blockIdx.x;
  if (v158) signal(comm, peers, v159);
  if (v158 && !wait(comm, peers, v159)) return;
  __syncthreads();
  close_comm(comm);
}
