
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
  for (int r = threadIdx.x; r < 4; r += 32) {
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
  for (int first = 0; first < 4; first += 32) {
    const int peer = first + threadIdx.x;
    if (peer >= 4 || lost) break;
    lost = await(c, peers, slot, peer);
  }
  return !__syncthreads_or(lost);
}

extern "C" __global__ void __launch_bounds__(32, 1) barrier(const __grid_constant__ Peers peers, int rank, long long flags, long long timeout, Record* record, int step) {
  Comm comm = open_comm(peers, rank, flags, step, record, timeout);
  signal(comm, peers, 0);
  if (!wait(comm, peers, 0)) return;
  close_comm(comm);
}
