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
__device__ __forceinline__ float round_bf16(float x) { return __uint_as_float((unsigned)narrow_bf16(x) << 16); }
__device__ __forceinline__ void store_bf16_8(unsigned short* p, const float* v, bool ok) {
  uint4 w;
  w.x = (unsigned)narrow_bf16(v[0]) | (unsigned)narrow_bf16(v[1]) << 16;
  w.y = (unsigned)narrow_bf16(v[2]) | (unsigned)narrow_bf16(v[3]) << 16;
  w.z = (unsigned)narrow_bf16(v[4]) | (unsigned)narrow_bf16(v[5]) << 16;
  w.w = (unsigned)narrow_bf16(v[6]) | (unsigned)narrow_bf16(v[7]) << 16;
  if (ok) *(uint4*)p = w;
}
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
__device__ __forceinline__ void wait_group_1() {
  asm volatile("cp.async.wait_group 1;" ::: "memory");
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

// One fence for all the flags that a thread waits for.
__device__ __forceinline__ bool wait_slots(const Comm& c, const Peers& peers, int slot, int count) {
  bool lost = false;
#pragma unroll 1
  for (int i = threadIdx.x; i < count * 8 && !lost; i += 256) {
    lost = await_relaxed(c, peers, slot + i / 8, i % 8);
  }
  fence();
  return !__syncthreads_or(lost);
}

extern "C" __global__ void __launch_bounds__(256, 1) gemm_reduce_mm_reduce_scatter_tensor_add_rms_norm(const __grid_constant__ Peers peers, int rank, long long flags, long long timeout, Record* record, int step, int p6, long long p7, long long p8, long long p9, long long p10, unsigned char* p11, unsigned char* p12, unsigned char* p13, long long p14, unsigned char* p15, unsigned char* p16, unsigned char* p17, unsigned char* p18) {
  const unsigned shared = shared_address(smem);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row0 = lane / 8 % 4 + warp % 8 * 4;
  const int col0 = lane % 8 * 8;
  const int row2 = lane / 8 % 4 + warp % 8 * 4;
  const int col3 = lane % 32 * 8 + warp % 8 * 256;
  const int at5 = ((lane % 32 * 16) ^ (lane / 8 % 4 * 16) ^ (warp % 2 * 64)) + warp % 8 * 512;
  const int at6 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16)) + lane % 16 * 128 + warp / 4 % 2 * 4096;
  const int at7 = ((lane % 8 * 16) ^ (lane / 16 % 2 * 16) ^ (warp % 4 * 32)) + lane % 16 * 128;
  const int at8 = ((lane % 4 * 2) ^ (lane / 4 % 8 * 4) ^ (warp % 4 * 16)) + lane / 4 % 8 * 64 + warp / 4 % 2 * 2048;
  const int at9 = ((lane % 32 * 8) ^ (lane / 8 % 4 * 4) ^ (warp % 2 * 16)) + warp % 8 * 256;
  const int at10 = warp % 8;
  Comm comm = open_comm(peers, rank, flags, step, record, timeout);
  const long long v9 = 8 * p7;
  for (long long v13 = (long long)blockIdx.x; v13 < v9; v13 += (long long)gridDim.x) {
    const int v15 = (int)v13;
    const int v16 = (int)p7;
    const int v18 = v15 % v16;
    const long long v22 = (((long long)rank + 1) + (v15 / v16)) % 8;
    const int v27 = (int)p10;
    const int v30 = (v18 % v27) * 64;
    const int v33 = (v18 / v27) * 64;
    unsigned char* const v36 = peers.base[v22] + p8;
    unsigned char* const v39 = v36 + (((long long)rank * (p9 * 2048)) * 2);
    wait_group_0();
    const int v175 = (int)(v22 * p9);
    const int v176 = (int)v30;
    const int v181 = (int)0;
    const int v188 = (int)v33;
    const bool v191 = 0 < 1024;
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 0 + (at5 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)p11 + (((v175 + (v176 + (row0 + i / 8 % 2 * 32))) * 1024) + (v181 + (col0 + i % 8))), v191 && ((v176 + (row0 + i / 8 % 2 * 32)) < p9));
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 24576 + (at5 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)p12 + (((v181 + (row0 + i / 8 % 2 * 32)) * 2048) + (v188 + (col0 + i % 8))), v191);
    commit_group();
    const bool v200 = 64 < 1024;
    unsigned char* const v202 = p11 + 128;
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 0 + (int)1 * 8192 + (at5 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v202 + (((v175 + (v176 + (row0 + i / 8 % 2 * 32))) * 1024) + (v181 + (col0 + i % 8))), v200 && ((v176 + (row0 + i / 8 % 2 * 32)) < p9));
    unsigned char* const v206 = p12 + 262144;
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      copy_async_16(shared + 24576 + (int)1 * 8192 + (at5 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v206 + (((v181 + (row0 + i / 8 % 2 * 32)) * 2048) + (v188 + (col0 + i % 8))), v200);
    commit_group();
    float v43[16];
#pragma unroll
    for (int i = 0; i < 16; ++i)
      v43[i] = 0.0f;
    int v210 = 0;
    int v212 = 2;
    for (long long v42 = 0; v42 < 1024; v42 += 64) {
      wait_group_1();
      const long long v216 = v42 + 128;
      const bool v217 = v216 < 1024;
      unsigned char* const v220 = p11 + (v216 * 2);
      const int v221 = (int)v30;
#pragma unroll
      for (int i = 0; i < 16; i += 8)
        copy_async_16(shared + 0 + (int)v212 * 8192 + (at5 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v220 + (((v175 + (v176 + (row0 + i / 8 % 2 * 32))) * 1024) + (v181 + (col0 + i % 8))), v217 && ((v221 + (row0 + i / 8 % 2 * 32)) < p9));
      unsigned char* const v229 = p12 + ((v216 * 2048) * 2);
#pragma unroll
      for (int i = 0; i < 16; i += 8)
        copy_async_16(shared + 24576 + (int)v212 * 8192 + (at5 + i % 8 * 2 + i / 8 % 2 * 4096), (const unsigned short*)v229 + (((v181 + (row0 + i / 8 % 2 * 32)) * 2048) + (v188 + (col0 + i % 8))), v217);
      commit_group();
      {
        const unsigned a = shared + 0 + (int)v210 * 8192;
        const unsigned b = shared + 24576 + (int)v210 * 8192;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          unsigned fa[2][4], fb[2][2];
#pragma unroll
          for (int m = 0; m < 2; ++m)
            ldmatrix(fa[m], a + ((at6 ^ (k % 4 * 32)) + m % 2 * 2048));
#pragma unroll
          for (int n = 0; n < 2; n += 2)
            ldmatrix_trans(fb[n], b + (at7 + k % 4 * 2048));
#pragma unroll
          for (int m = 0; m < 2; ++m) {
#pragma unroll
            for (int n = 0; n < 2; ++n) mma_bf16_bf16(v43 + (m * 2 + n) * 4, fa[m], fb[n]);
          }
        }
      }
      const int v234 = v210 + 1;
      const int v238 = (v234 < 3) ? v234 : 0;
      const int v239 = v212 + 1;
      const int v241 = (v239 < 3) ? v239 : 0;
      v210 = v238;
      v212 = v241;
    }
    const int v67 = (int)v30;
    int v69[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v69[i] = v67 + (row2 + i % 2 * 32);
    bool v70[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v70[i] = v69[i] < p9;
    const int v71 = (int)v33;
    float v76[16];
#pragma unroll
    for (int i = 0; i < 16; ++i)
      v76[i] = round_bf16(v43[i]);
    float v77[16];
    float* const s77 = (float*)(smem + 49152);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 16; ++i)
      s77[((at8 ^ (i / 4 % 2 * 8)) + i % 2 + i / 2 % 2 * 512 + i / 8 % 2 * 1024)] = v76[i];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 16; ++i)
      v77[i] = s77[((at9 ^ (i % 8)) + i / 8 % 2 * 2048)];
    int v78[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      v78[i] = v69[i] * 2048;
#pragma unroll
    for (int i = 0; i < 16; i += 8)
      store_bf16_8((unsigned short*)v39 + (v78[i / 8 % 2] + (v71 + (col0 + i % 8))), v77 + i, v70[i / 8 % 2]);
  }
  signal(comm, peers, (long long)blockIdx.x);
  if (!wait_slots(comm, peers, 0, (long long)gridDim.x)) return;
  for (long long v85 = (long long)blockIdx.x; v85 < p9; v85 += (long long)gridDim.x) {
    const long long v94 = (v85 * 2048) * 2;
    unsigned char* const v95 = p13 + v94;
    float v96[8];
    load_bf16_8(v96 + 0, (const unsigned short*)v95 + col3, true);
    unsigned char* const v98 = p13 + (p14 * 2);
    unsigned char* const v99 = v98 + v94;
    float v100[8];
    load_bf16_8(v100 + 0, (const unsigned short*)v99 + col3, true);
    unsigned char* const v104 = p13 + ((2 * p14) * 2);
    unsigned char* const v105 = v104 + v94;
    float v106[8];
    load_bf16_8(v106 + 0, (const unsigned short*)v105 + col3, true);
    unsigned char* const v111 = p13 + ((3 * p14) * 2);
    unsigned char* const v112 = v111 + v94;
    float v113[8];
    load_bf16_8(v113 + 0, (const unsigned short*)v112 + col3, true);
    unsigned char* const v118 = p13 + ((4 * p14) * 2);
    unsigned char* const v119 = v118 + v94;
    float v120[8];
    load_bf16_8(v120 + 0, (const unsigned short*)v119 + col3, true);
    unsigned char* const v125 = p13 + ((5 * p14) * 2);
    unsigned char* const v126 = v125 + v94;
    float v127[8];
    load_bf16_8(v127 + 0, (const unsigned short*)v126 + col3, true);
    unsigned char* const v132 = p13 + ((6 * p14) * 2);
    unsigned char* const v133 = v132 + v94;
    float v134[8];
    load_bf16_8(v134 + 0, (const unsigned short*)v133 + col3, true);
    unsigned char* const v139 = p13 + ((7 * p14) * 2);
    unsigned char* const v140 = v139 + v94;
    float v141[8];
    load_bf16_8(v141 + 0, (const unsigned short*)v140 + col3, true);
    unsigned char* const v145 = p15 + v94;
    float v146[8];
    load_bf16_8(v146 + 0, (const unsigned short*)v145 + col3, true);
    float v148[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v148[i] = round_bf16(((round_bf16((((((((v96[i] + v100[i]) + v106[i]) + v113[i]) + v120[i]) + v127[i]) + v134[i]) + v141[i]))) + v146[i]));
    float v150[1];
    v150[0] = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v150[0] = v150[0] + (v148[i] * v148[i]);
    v150[0] = v150[0] + __shfl_xor_sync(0xffffffffu, v150[0], 1);
    v150[0] = v150[0] + __shfl_xor_sync(0xffffffffu, v150[0], 2);
    v150[0] = v150[0] + __shfl_xor_sync(0xffffffffu, v150[0], 4);
    v150[0] = v150[0] + __shfl_xor_sync(0xffffffffu, v150[0], 8);
    v150[0] = v150[0] + __shfl_xor_sync(0xffffffffu, v150[0], 16);
    float* const s150 = (float*)(smem + 65536);
    __syncthreads();
    if ((lane & 31) == 0) {
      s150[at10] = v150[0];
    }
    __syncthreads();
    v150[0] = s150[0];
#pragma unroll
    for (int w = 1; w < 8; ++w) {
      v150[0] = v150[0] + s150[0 + w];
    }
    const float v152 = (float)2048;
    float v155[1];
    v155[0] = rsqrtf(((v150[0] / v152) + 1e-05f));
    float v158[8];
    load_bf16_8(v158 + 0, (const unsigned short*)p16 + col3, true);
    float v159[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v159[i] = (v148[i] * v155[0]) * v158[i];
    unsigned char* const v162 = p17 + v94;
    store_bf16_8((unsigned short*)v162 + col3, v159 + 0, true);
    unsigned char* const v165 = p18 + v94;
    store_bf16_8((unsigned short*)v165 + col3, v148 + 0, true);
  }
  const long long v167 = (long long)gridDim.x + (long long)blockIdx.x;
  if (p6) signal(comm, peers, v167);
  if (p6 && !wait(comm, peers, v167)) return;
  close_comm(comm);
}
