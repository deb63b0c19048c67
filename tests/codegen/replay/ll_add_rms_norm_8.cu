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
__device__ __forceinline__ void load_bf16_2(float* v, const unsigned short* p, bool ok) {
  unsigned w = 0u;
  if (ok) w = *(const unsigned*)p;
  v[0] = __uint_as_float(w << 16);
  v[1] = __uint_as_float(w & 0xffff0000u);
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
  w.x = narrow_pair_bf16(v[0], v[1]);
  w.y = narrow_pair_bf16(v[2], v[3]);
  w.z = narrow_pair_bf16(v[4], v[5]);
  w.w = narrow_pair_bf16(v[6], v[7]);
  if (ok) *(uint4*)p = w;
}
extern __shared__ __align__(1024) unsigned char smem[];

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
  for (int r = threadIdx.x; r < 8; r += 512) {
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
  for (int first = 0; first < 8; first += 512) {
    const int peer = first + threadIdx.x;
    if (peer >= 8 || lost) break;
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
__device__ __forceinline__ void ll_store_bf16_2(const Comm& c, unsigned char* base, long long at, const float* v, bool ok) {
  if (!ok) return;
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;"
               :: "l"((unsigned long long*)base + at / 2), "l"((unsigned long long)c.epoch << 32 | (narrow_pair_bf16(v[0], v[1]))));
}
__device__ __forceinline__ void unpack_bf16_2(float* v, unsigned w, bool ok0, bool ok1) {
  v[0] = ok0 ? __uint_as_float((unsigned)(unsigned short)w << 16) : 0;
  v[1] = ok1 ? __uint_as_float((unsigned)(unsigned short)(w >> 16) << 16) : 0;
}

extern "C" __global__ void __launch_bounds__(512, 1) all_reduce_silu_add_rms_norm(const __grid_constant__ Peers peers, int rank, long long flags, long long timeout, Record* record, int step, long long p6, unsigned char* p7, long long p8, unsigned char* p9, unsigned char* p10, unsigned char* p11, unsigned char* p12) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int col0 = lane % 32 * 2 + warp % 16 * 64;
  const int at0 = lane % 32 * 2 + warp % 16 * 64;
  const int col1 = lane % 32 * 8 + warp % 16 * 256;
  const int at1 = lane % 32 * 8 + warp % 16 * 256;
  const int at3 = warp % 16;
  Comm comm = open_comm(peers, rank, flags, step, record, timeout);
  open_packets(comm);
  bool lost = false;
  for (long long v9 = (long long)blockIdx.x; v9 < p6; v9 += (long long)gridDim.x) {
    const long long v14 = v9 * 2880;
    unsigned char* const v20 = p7 + (v14 * 2);
    float v21[8];
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      load_bf16_2(v21 + i, (const unsigned short*)v20 + (col0 + i % 2 + i / 2 % 4 * 1024), ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880));
    float v27[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v27[i] = round_bf16((v21[i] / (1.0f + (expf((-v21[i]))))));
    for (long long v29 = 1; v29 < 8; v29 += 1) {
      const long long v32 = ((long long)rank + v29) % 8;
      const long long v40 = p8 + (((((long long)comm.epoch % 2) * 8) + (long long)rank) * 2949120);
      unsigned char* const v41 = peers.base[v32] + v40;
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        ll_store_bf16_2(comm, v41, (v14 + (col0 + i % 2 + i / 2 % 4 * 1024)), v27 + i, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
    }
    const long long v50 = p8 + (((((long long)comm.epoch % 2) * 8) + (long long)rank) * 2949120);
    unsigned char* const v51 = peers.base[(long long)rank] + v50;
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      ll_store_bf16_2(comm, v51, (v14 + (col0 + i % 2 + i / 2 % 4 * 1024)), v27 + i, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
  }
  for (long long v53 = (long long)blockIdx.x; v53 < p6; v53 += (long long)gridDim.x) {
    const long long v58 = v53 * 2880;
    const long long v66 = ((long long)comm.epoch % 2) * 8;
    const long long v69 = p8 + (v66 * 2949120);
    unsigned char* const v70 = peers.base[(long long)rank] + v69;
    const long long v74 = p8 + ((v66 + 1) * 2949120);
    unsigned char* const v75 = peers.base[(long long)rank] + v74;
    const long long v78 = p8 + ((v66 + 2) * 2949120);
    unsigned char* const v79 = peers.base[(long long)rank] + v78;
    const long long v83 = p8 + ((v66 + 3) * 2949120);
    unsigned char* const v84 = peers.base[(long long)rank] + v83;
    const long long v88 = p8 + ((v66 + 4) * 2949120);
    unsigned char* const v89 = peers.base[(long long)rank] + v88;
    const long long v93 = p8 + ((v66 + 5) * 2949120);
    unsigned char* const v94 = peers.base[(long long)rank] + v93;
    const long long v98 = p8 + ((v66 + 6) * 2949120);
    unsigned char* const v99 = peers.base[(long long)rank] + v98;
    const long long v103 = p8 + ((v66 + 7) * 2949120);
    unsigned char* const v104 = peers.base[(long long)rank] + v103;
    float v105[8];
    unsigned long long w105[4] = {};
    float v106[8];
    unsigned long long w106[4] = {};
    float v107[8];
    unsigned long long w107[4] = {};
    float v108[8];
    unsigned long long w108[4] = {};
    unsigned long long start105 = 0;
    for (bool more = true; more;) {
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        poll_packet(w105[i / 2], comm, v70, (v58 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        poll_packet(w106[i / 2], comm, v75, (v58 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        poll_packet(w107[i / 2], comm, v79, (v58 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        poll_packet(w108[i / 2], comm, v84, (v58 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
      Missing missing = {};
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        find_missing(missing, comm, w105[i / 2], (v58 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, 0, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        find_missing(missing, comm, w106[i / 2], (v58 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, 1, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        find_missing(missing, comm, w107[i / 2], (v58 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, 2, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        find_missing(missing, comm, w108[i / 2], (v58 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, 3, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
      more = wait_more(comm, peers, missing, start105, lost);
    }
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      unpack_bf16_2(v105 + i, (unsigned)w105[i / 2], ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880), ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      unpack_bf16_2(v106 + i, (unsigned)w106[i / 2], ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880), ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      unpack_bf16_2(v107 + i, (unsigned)w107[i / 2], ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880), ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      unpack_bf16_2(v108 + i, (unsigned)w108[i / 2], ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880), ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
    float v112[8];
    unsigned long long w112[4] = {};
    float v113[8];
    unsigned long long w113[4] = {};
    float v114[8];
    unsigned long long w114[4] = {};
    float v115[8];
    unsigned long long w115[4] = {};
    unsigned long long start112 = 0;
    for (bool more = true; more;) {
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        poll_packet(w112[i / 2], comm, v89, (v58 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        poll_packet(w113[i / 2], comm, v94, (v58 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        poll_packet(w114[i / 2], comm, v99, (v58 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        poll_packet(w115[i / 2], comm, v104, (v58 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
      Missing missing = {};
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        find_missing(missing, comm, w112[i / 2], (v58 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, 4, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        find_missing(missing, comm, w113[i / 2], (v58 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, 5, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        find_missing(missing, comm, w114[i / 2], (v58 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, 6, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        find_missing(missing, comm, w115[i / 2], (v58 + (col0 + i % 2 + i / 2 % 4 * 1024)) / 2, 7, ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880) || ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
      more = wait_more(comm, peers, missing, start112, lost);
    }
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      unpack_bf16_2(v112 + i, (unsigned)w112[i / 2], ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880), ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      unpack_bf16_2(v113 + i, (unsigned)w113[i / 2], ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880), ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      unpack_bf16_2(v114 + i, (unsigned)w114[i / 2], ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880), ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      unpack_bf16_2(v115 + i, (unsigned)w115[i / 2], ((col0 + i % 2 + i / 2 % 4 * 1024) < 2880), ((col0 + (i + 1) % 2 + (i + 1) / 2 % 4 * 1024) < 2880));
    float v120[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v120[i] = round_bf16((((((((v105[i] + v106[i]) + v107[i]) + v108[i]) + v112[i]) + v113[i]) + v114[i]) + v115[i]));
    float v121[8];
    float* const s121 = (float*)(smem + 0);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 8; ++i)
      s121[(at0 + i % 2 + i / 2 % 4 * 1024)] = v120[i];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v121[i] = s121[(at1 + i % 8)];
    const long long v123 = v58 * 2;
    unsigned char* const v124 = p9 + v123;
    float v125[8];
    load_bf16_8(v125 + 0, (const unsigned short*)v124 + col1, (col1 < 2880));
    float v127[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v127[i] = round_bf16((v121[i] + v125[i]));
    float v131[1];
    v131[0] = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v131[0] = v131[0] + (((col1 + i % 8) < 2880) ? (v127[i] * v127[i]) : 0.0f);
    v131[0] = v131[0] + __shfl_xor_sync(0xffffffffu, v131[0], 1);
    v131[0] = v131[0] + __shfl_xor_sync(0xffffffffu, v131[0], 2);
    v131[0] = v131[0] + __shfl_xor_sync(0xffffffffu, v131[0], 4);
    v131[0] = v131[0] + __shfl_xor_sync(0xffffffffu, v131[0], 8);
    v131[0] = v131[0] + __shfl_xor_sync(0xffffffffu, v131[0], 16);
    float* const s131 = (float*)(smem + 16384);
    __syncthreads();
    if ((lane & 31) == 0) {
      s131[at3] = v131[0];
    }
    __syncthreads();
    v131[0] = s131[0];
#pragma unroll
    for (int w = 1; w < 16; ++w) {
      v131[0] = v131[0] + s131[0 + w];
    }
    const float v133 = (float)2880;
    float v136[1];
    v136[0] = rsqrtf(((v131[0] / v133) + 1e-05f));
    float v139[8];
    load_bf16_8(v139 + 0, (const unsigned short*)p10 + col1, (col1 < 2880));
    float v140[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v140[i] = (v127[i] * v136[0]) * v139[i];
    unsigned char* const v143 = p11 + v123;
    store_bf16_8((unsigned short*)v143 + col1, v140 + 0, (col1 < 2880));
    unsigned char* const v146 = p12 + v123;
    store_bf16_8((unsigned short*)v146 + col1, v127 + 0, (col1 < 2880));
  }
  if (__syncthreads_or(lost)) return;
  close_comm(comm);
}
