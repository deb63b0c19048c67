__device__ __forceinline__ void load_f32_1(float* v, const float* p, bool ok) {
  unsigned w = 0u;
  if (ok) w = *(const unsigned*)p;
  v[0] = __uint_as_float(w);
}
__device__ __forceinline__ void store_f32_1(float* p, const float* v, bool ok) {
  unsigned w;
  w = __float_as_uint(v[0]);
  if (ok) *(unsigned*)p = w;
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
struct Peers { unsigned char* base[3]; };
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
  return (unsigned*)(base + c.flags) + gridDim.x + slot * 3 + from;
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
  for (int r = 1; r < 3; ++r) c.self = r == rank ? peers.base[r] : c.self;
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
  if (threadIdx.x < 3) fence();
#pragma unroll 1
  for (int r = threadIdx.x; r < 3; r += 512) {
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
  for (int r = 0; r < 3; ++r) store_flag((unsigned*)peers.base[r], 1u);
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
  for (int first = 0; first < 3; first += 512) {
    const int peer = first + threadIdx.x;
    if (peer >= 3 || lost) break;
    lost = await(c, peers, slot, peer);
  }
  return !__syncthreads_or(lost);
}

extern "C" __global__ void __launch_bounds__(512, 1) all_reduce(const __grid_constant__ Peers peers, int rank, long long flags, long long timeout, Record* record, int step, int p6, long long p7, long long p8, long long p9, unsigned char* p10) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 8 + warp % 16 * 256;
  Comm comm = open_comm(peers, rank, flags, step, record, timeout);
  signal(comm, peers, (long long)blockIdx.x);
  if (!wait(comm, peers, (long long)blockIdx.x)) return;
  const bool v38 = (long long)blockIdx.x < p7;
  unsigned char* const v41 = peers.base[0] + p9;
  const int v44 = (int)((long long)blockIdx.x * 4096);
  float v50[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    load_f32_1(v50 + i, (const float*)v41 + (v44 + (col0 + i % 8)), (((v44 + (col0 + i % 8)) < p8) && v38));
  unsigned char* const v52 = peers.base[1] + p9;
  float v53[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    load_f32_1(v53 + i, (const float*)v52 + (v44 + (col0 + i % 8)), (((v44 + (col0 + i % 8)) < p8) && v38));
  unsigned char* const v55 = peers.base[2] + p9;
  float v56[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    load_f32_1(v56 + i, (const float*)v55 + (v44 + (col0 + i % 8)), (((v44 + (col0 + i % 8)) < p8) && v38));
  float v25[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v25[i] = v50[i];
  float v27[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v27[i] = v53[i];
  float v31[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v31[i] = v56[i];
  for (long long v12 = (long long)blockIdx.x; v12 < p7; v12 += (long long)gridDim.x) {
    const long long v57 = v12 + (long long)gridDim.x;
    const bool v58 = v57 < p7;
    unsigned char* const v61 = peers.base[0] + p9;
    const int v64 = (int)(v57 * 4096);
    float v70[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      load_f32_1(v70 + i, (const float*)v61 + (v64 + (col0 + i % 8)), (((v64 + (col0 + i % 8)) < p8) && v58));
    unsigned char* const v72 = peers.base[1] + p9;
    float v73[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      load_f32_1(v73 + i, (const float*)v72 + (v64 + (col0 + i % 8)), (((v64 + (col0 + i % 8)) < p8) && v58));
    unsigned char* const v75 = peers.base[2] + p9;
    float v76[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      load_f32_1(v76 + i, (const float*)v75 + (v64 + (col0 + i % 8)), (((v64 + (col0 + i % 8)) < p8) && v58));
    const int v16 = (int)(v12 * 4096);
    float v32[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v32[i] = (v25[i] + v27[i]) + v31[i];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      store_f32_1((float*)p10 + (v16 + (col0 + i % 8)), v32 + i, ((v16 + (col0 + i % 8)) < p8));
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v25[i] = v70[i];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v27[i] = v73[i];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v31[i] = v76[i];
  }
  const long long v35 = (long long)gridDim.x + (long long)blockIdx.x;
  if (p6) signal(comm, peers, v35);
  if (p6 && !wait(comm, peers, v35)) return;
  close_comm(comm);
}
