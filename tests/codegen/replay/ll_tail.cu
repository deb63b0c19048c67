__device__ __forceinline__ unsigned short narrow_f16(float x) {
  unsigned short y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ unsigned narrow_pair_f16(float x, float y) {
  unsigned w;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(y), "f"(x));
  return w;
}
__device__ __forceinline__ float widen_f16(unsigned short x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
}
__device__ __forceinline__ void load_f16_1(float* v, const unsigned short* p, bool ok) {
  v[0] = ok ? widen_f16(p[0]) : 0;
}
__device__ __forceinline__ void store_f16_1(unsigned short* p, const float* v, bool ok) {
  if (ok) p[0] = narrow_f16(v[0]);
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

// A packet is 8 bytes that are written and read at once: a payload, and above it the epoch as its
// flag. So it needs no fence: who sees the flag has the payload.
//
// Zeroed memory is no packet: 2 comes after 2^32 - 1, and parities still alternate.
__device__ __forceinline__ void open_packets(Comm& c) {
  if (c.epoch == 0u) c.epoch = 2u;
}
__device__ __forceinline__ unsigned long long load_packet(const unsigned long long* p) {
  unsigned long long v;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p));
  return v;
}
__device__ __forceinline__ bool is_missing(const Comm& c, unsigned long long packet, bool ok) {
  return ok && (unsigned)(packet >> 32) != c.epoch;
}
// Looks again where the packet was missing.
__device__ __forceinline__ void poll_packet(unsigned long long& packet, const Comm& c,
                                            const unsigned char* base, long long at, bool ok) {
  if (is_missing(c, packet, ok)) packet = load_packet((const unsigned long long*)base + at);
}
// A packet that a thread waits for.
struct Missing {
  bool any;
  int at, peer;
  unsigned seen;
};
__device__ __forceinline__ void find_missing(Missing& missing, const Comm& c, unsigned long long packet,
                                             long long at, int peer, bool ok) {
  if (is_missing(c, packet, ok)) missing = {true, (int)at, peer, (unsigned)(packet >> 32)};
}
// Whether to look again: not when all is there, nor when the run is lost.
__device__ __forceinline__ bool wait_more(const Comm& c, const Peers& peers, const Missing& missing,
                                          unsigned long long& start, bool& lost) {
  if (!missing.any || lost) return false;
  lost = load_flag((const unsigned*)c.self) != 0;
  if (start == 0) start = global_timer();
  if (!lost && (long long)(global_timer() - start) > c.timeout) {
    give_up(c, peers, missing.at, missing.peer, missing.seen);
    lost = true;
  }
  return !lost;
}
__device__ __forceinline__ void ll_store_f16_2(const Comm& c, unsigned char* base, long long at, const float* v, bool ok) {
  if (!ok) return;
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;"
               :: "l"((unsigned long long*)base + at / 2), "l"((unsigned long long)c.epoch << 32 | (narrow_pair_f16(v[0], v[1]))));
}
__device__ __forceinline__ void unpack_f16_2(float* v, unsigned w, bool ok0, bool ok1) {
  v[0] = ok0 ? widen_f16((unsigned short)w) : 0;
  v[1] = ok1 ? widen_f16((unsigned short)(w >> 16)) : 0;
}

extern "C" __global__ void __launch_bounds__(512, 1) all_reduce(const __grid_constant__ Peers peers, int rank, long long flags, long long timeout, Record* record, int step, long long p6, long long p7, unsigned char* p8, long long p9, unsigned char* p10) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 2 + warp % 16 * 64;
  Comm comm = open_comm(peers, rank, flags, step, record, timeout);
  open_packets(comm);
  bool lost = false;
  for (long long v9 = (long long)blockIdx.x; v9 < p6; v9 += (long long)gridDim.x) {
    const int v13 = (int)(v9 * 4096);
    float v20[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      load_f16_1(v20 + i, (const unsigned short*)p8 + (v13 + (col0 + i % 2 + i / 2 % 4 * 1024)), ((v13 + (col0 + i % 2 + i / 2 % 4 * 1024)) < p7));
    for (long long v22 = 1; v22 < 3; v22 += 1) {
      const long long v25 = ((long long)rank + v22) % 3;
      const long long v34 = p9 + (((((long long)comm.epoch % 2) * 3) + (long long)rank) * 1025024);
      unsigned char* const v35 = peers.base[v25] + v34;
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        ll_store_f16_2(comm, v35, (v13 + (col0 + i % 2 + i / 2 % 4 * 1024)), v20 + i, ((v13 + (col0 + i % 2 + i / 2 % 4 * 1024)) < p7) || ((v13 + (col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024)) < p7));
    }
    const long long v45 = p9 + (((((long long)comm.epoch % 2) * 3) + (long long)rank) * 1025024);
    unsigned char* const v46 = peers.base[(long long)rank] + v45;
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      ll_store_f16_2(comm, v46, (v13 + (col0 + i % 2 + i / 2 % 4 * 1024)), v20 + i, ((v13 + (col0 + i % 2 + i / 2 % 4 * 1024)) < p7) || ((v13 + (col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024)) < p7));
  }
  for (long long v48 = (long long)blockIdx.x; v48 < p6; v48 += (long long)gridDim.x) {
    const int v52 = (int)(v48 * 4096);
    const long long v63 = ((long long)comm.epoch % 2) * 3;
    const long long v66 = p9 + (v63 * 1025024);
    unsigned char* const v67 = peers.base[(long long)rank] + v66;
    const long long v71 = p9 + ((v63 + 1) * 1025024);
    unsigned char* const v72 = peers.base[(long long)rank] + v71;
    const long long v75 = p9 + ((v63 + 2) * 1025024);
    unsigned char* const v76 = peers.base[(long long)rank] + v75;
    float v77[8];
    unsigned long long w77[4] = {};
    float v78[8];
    unsigned long long w78[4] = {};
    float v79[8];
    unsigned long long w79[4] = {};
    unsigned long long start77 = 0;
    for (bool more = true; more;) {
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        poll_packet(w77[i / 2], comm, v67, (v52 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, ((v52 + (col0 + i % 2 + i / 2 % 4 * 1024)) < p7) || ((v52 + (col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024)) < p7));
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        poll_packet(w78[i / 2], comm, v72, (v52 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, ((v52 + (col0 + i % 2 + i / 2 % 4 * 1024)) < p7) || ((v52 + (col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024)) < p7));
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        poll_packet(w79[i / 2], comm, v76, (v52 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, ((v52 + (col0 + i % 2 + i / 2 % 4 * 1024)) < p7) || ((v52 + (col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024)) < p7));
      Missing missing = {};
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        find_missing(missing, comm, w77[i / 2], (v52 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, 0, ((v52 + (col0 + i % 2 + i / 2 % 4 * 1024)) < p7) || ((v52 + (col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024)) < p7));
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        find_missing(missing, comm, w78[i / 2], (v52 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, 1, ((v52 + (col0 + i % 2 + i / 2 % 4 * 1024)) < p7) || ((v52 + (col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024)) < p7));
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        find_missing(missing, comm, w79[i / 2], (v52 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, 2, ((v52 + (col0 + i % 2 + i / 2 % 4 * 1024)) < p7) || ((v52 + (col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024)) < p7));
      more = wait_more(comm, peers, missing, start77, lost);
    }
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      unpack_f16_2(v77 + i, (unsigned)w77[i / 2], ((v52 + (col0 + i % 2 + i / 2 % 4 * 1024)) < p7), ((v52 + (col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024)) < p7));
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      unpack_f16_2(v78 + i, (unsigned)w78[i / 2], ((v52 + (col0 + i % 2 + i / 2 % 4 * 1024)) < p7), ((v52 + (col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024)) < p7));
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      unpack_f16_2(v79 + i, (unsigned)w79[i / 2], ((v52 + (col0 + i % 2 + i / 2 % 4 * 1024)) < p7), ((v52 + (col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024)) < p7));
    float v81[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v81[i] = (v77[i] + v78[i]) + v79[i];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      store_f16_1((unsigned short*)p10 + (v52 + (col0 + i % 2 + i / 2 % 4 * 1024)), v81 + i, ((v52 + (col0 + i % 2 + i / 2 % 4 * 1024)) < p7));
  }
  if (__syncthreads_or(lost)) return;
  close_comm(comm);
}
