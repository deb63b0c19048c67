#include "codegen/cuda/preamble.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/cuda/spelling.h"
#include "codegen/protocol.h"

namespace braid::tile {
namespace {

constexpr std::string_view kRecord = R"(
// What went wrong first on this rank, for the host.
struct Record {
  unsigned kind, step, block, slot, peer, expected, seen, node;
  long long index, extent;
};
__device__ __forceinline__ bool claim(Record* record, unsigned kind) {
  return atomicCAS(&record->kind, 0u, kind) == 0u;
}
)";

constexpr std::string_view kBadIndex = R"(
__device__ __forceinline__ void bad_index(Record* record, int step, int node, long long index,
                                          long long extent) {
  if (!claim(record, 2)) return;
  record->step = step;
  record->node = node;
  record->index = index;
  record->extent = extent;
}
)";

// The last to come flips the top bit, and leaves the bits below as they were: the counter is never
// cleared, and the meetings of all runs share it.
constexpr std::string_view kMeetBlocks = R"(
// All blocks of the grid meet. False when one did not come in time; then the block must leave.
__device__ __forceinline__ bool meet_blocks(unsigned* counter, Record* record, int step,
                                            long long timeout) {
  __syncthreads();
  bool lost = false;
  if (threadIdx.x == 0) {
    const unsigned own = blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1u) : 1u;
    unsigned before, seen;
    unsigned long long start, now;
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
    asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], %2;"
                 : "=r"(before) : "l"(counter), "r"(own) : "memory");
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do {
      asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(counter) : "memory");
      asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
      lost = (long long)(now - start) > timeout;
    } while (((before ^ seen) & 0x80000000u) == 0u && !lost);
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
    lost = ((before ^ seen) & 0x80000000u) == 0u;
    if (lost && claim(record, 1)) {
      record->step = step;
      record->block = blockIdx.x;
      record->expected = ~before & 0x80000000u;
      record->seen = seen;
    }
  }
  return !__syncthreads_or(lost);
}
)";

// {0} marks per block
constexpr std::string_view kMarks = R"(
// When a block goes on to what, for a trace.
struct Mark {{ unsigned long long ns; unsigned short what, rank; unsigned number; }};
__device__ __forceinline__ void mark(Mark* marks, unsigned& marked, int what, long long rank,
                                     long long number) {{
  if (threadIdx.x != 0 || marked == {0}u) return;
  unsigned long long ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns) :: "memory");
  marks[blockIdx.x * {0}u + marked++] = Mark{{ns, (unsigned short)what, (unsigned short)rank,
                                             (unsigned)number}};
}}
)";

// {0} world, {1} threads, {2} ranks that are unrolled
constexpr std::string_view kComm = R"(
// Flags are 32-bit epochs that only grow; fences at system scope, one before all flags are sent and
// one after each has come, carry the data.
struct Peers {{ unsigned char* base[{0}]; }};
struct Comm {{
  unsigned char* self;
  Record* record;
  long long flags;
  int rank, step;
  long long timeout;
  unsigned epoch;
}};

// The words of a step: an epoch of each block, then for each slot a flag of each rank.
__device__ __forceinline__ unsigned* epoch_at(const Comm& c) {{
  return (unsigned*)(c.self + c.flags) + blockIdx.x;
}}
__device__ __forceinline__ unsigned* flag_at(const Comm& c, unsigned char* base, int slot, int from) {{
  return (unsigned*)(base + c.flags) + gridDim.x + slot * {0} + from;
}}
__device__ __forceinline__ void fence() {{ asm volatile("fence.acq_rel.sys;" ::: "memory"); }}
__device__ __forceinline__ unsigned load_flag(const unsigned* p) {{
  unsigned v;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}}
__device__ __forceinline__ void store_flag(unsigned* p, unsigned v) {{
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" :: "l"(p), "r"(v) : "memory");
}}
__device__ __forceinline__ unsigned long long global_timer() {{
  unsigned long long t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}}

__device__ __forceinline__ Comm open_comm(const Peers& peers, int rank, long long flags, int step,
                                          Record* record, long long timeout) {{
  Comm c;
  c.self = peers.base[0];
#pragma unroll {2}
  for (int r = 1; r < {0}; ++r) c.self = r == rank ? peers.base[r] : c.self;
  c.record = record;
  c.flags = flags;
  c.rank = rank;
  c.step = step;
  c.timeout = timeout;
  c.epoch = *epoch_at(c) + 1;
  return c;
}}
// Every thread has read the epoch: the first signal's barrier comes after that.
__device__ __forceinline__ void close_comm(const Comm& c) {{
  if (threadIdx.x == 0) *epoch_at(c) = c.epoch;
}}
// Everything this block did before is visible to a peer that sees the flag. Where there are more
// peers than threads, a thread has several.
__device__ __forceinline__ void signal(const Comm& c, const Peers& peers, int slot) {{
  __syncthreads();
  if (threadIdx.x < {0}) fence();
#pragma unroll 1
  for (int r = threadIdx.x; r < {0}; r += {1}) {{
    store_flag(flag_at(c, peers.base[r], slot, c.rank), c.epoch);
  }}
}}
// Past the deadline: says on every rank that the run is lost, and once, here, who waited for whom.
__device__ __forceinline__ void give_up(const Comm& c, const Peers& peers, int slot, int peer,
                                        unsigned seen) {{
  if (claim(c.record, 1)) {{
    c.record->step = c.step;
    c.record->block = blockIdx.x;
    c.record->slot = slot;
    c.record->peer = peer;
    c.record->expected = c.epoch;
    c.record->seen = seen;
  }}
#pragma unroll {2}
  for (int r = 0; r < {0}; ++r) store_flag((unsigned*)peers.base[r], 1u);
}}
// True when the run is lost, else when the peer's flag has come; a fence is still to follow.
__device__ __forceinline__ bool await_relaxed(const Comm& c, const Peers& peers, int slot,
                                              int peer) {{
  const unsigned* flag = flag_at(c, c.self, slot, peer);
  const unsigned long long start = global_timer();
  bool lost = false;
  unsigned seen = load_flag(flag);
  while ((int)(seen - c.epoch) < 0 && !lost) {{
    lost = load_flag((const unsigned*)c.self) != 0;
    // The timers of two multiprocessors may differ: signed, so that a step back is no timeout.
    if (!lost && (long long)(global_timer() - start) > c.timeout) {{
      give_up(c, peers, slot, peer, seen);
      lost = true;
    }}
    seen = load_flag(flag);
  }}
  return lost;
}}
__device__ __forceinline__ bool await(const Comm& c, const Peers& peers, int slot, int peer) {{
  const bool lost = await_relaxed(c, peers, slot, peer);
  fence();
  return lost;
}}
// False when the run is lost; then the block must leave.
__device__ __forceinline__ bool wait(const Comm& c, const Peers& peers, int slot) {{
  bool lost = false;
#pragma unroll 1
  for (int first = 0; first < {0}; first += {1}) {{
    const int peer = first + threadIdx.x;
    if (peer >= {0} || lost) break;
    lost = await(c, peers, slot, peer);
  }}
  return !__syncthreads_or(lost);
}}
)";

constexpr std::string_view kCommOne = R"(
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
)";

constexpr std::string_view kCommAlone = R"(
// For bulk copies of what the peer wrote. Who is alone cannot leave: others wait for what it brings.
__device__ __forceinline__ void await_alone(const Comm& c, const Peers& peers, int slot, int rank) {
  await(c, peers, slot, rank);
  asm volatile("fence.proxy.async.global;" ::: "memory");
}
)";

// {0} ranks, {1} threads
constexpr std::string_view kCommSlots = R"(
// One fence for all the flags that a thread waits for.
__device__ __forceinline__ bool wait_slots(const Comm& c, const Peers& peers, int slot, int count) {{
  bool lost = false;
#pragma unroll 1
  for (int i = threadIdx.x; i < count * {0} && !lost; i += {1}) {{
    lost = await_relaxed(c, peers, slot + i / {0}, i % {0});
  }}
  fence();
  return !__syncthreads_or(lost);
}}
)";

constexpr std::string_view kPacket = R"(
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
)";
// {0} name, {1} value type, {2} elements per packet, {3} payload
constexpr std::string_view kLlStore =
    R"(__device__ __forceinline__ void {0}(const Comm& c, unsigned char* base, long long at, const {1}* v, bool ok) {{
  if (!ok) return;
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;"
               :: "l"((unsigned long long*)base + at / {2}), "l"((unsigned long long)c.epoch << 32 | ({3})));
}}
)";
// {0} name, {1} value type, {2} bool parameters, {3} statements
constexpr std::string_view kUnpack =
    R"(__device__ __forceinline__ void {0}({1}* v, unsigned w, {2}) {{
{3}}}
)";

}  // namespace

void Preamble::record() { need(kFailing, "", std::string(kRecord)); }

void Preamble::bad_index() {
  record();
  need(kFailing, "bad_index", std::string(kBadIndex));
}

void Preamble::meet_blocks() {
  record();
  need(kFailing, "meet_blocks", std::string(kMeetBlocks));
}

void Preamble::marks() { need(kMarking, "", fmt::format(kMarks, protocol::kMarksOfBlock)); }

void Preamble::comm(int world, int threads) {
  record();
  need(kCommunicating, "comm", fmt::format(kComm, world, threads, kUnrolledRanks));
}

void Preamble::comm_one() { need(kCommunicating, "comm_one", std::string(kCommOne)); }

void Preamble::comm_alone() { need(kCommunicating, "comm_alone", std::string(kCommAlone)); }

void Preamble::comm_slots(int world, int threads) {
  need(kCommunicating, "comm_slots", fmt::format(kCommSlots, world, threads));
}

void Preamble::packets() { need(kPackets, "", std::string(kPacket)); }

std::string Preamble::ll_store(DType dtype, int width) {
  const std::string name = fmt::format("ll_store_{}_{}", dtype_name(dtype), width);
  const std::string payload =
      dtype == DType::kF32 ? "__float_as_uint(v[0])" : narrowed_word(dtype, 0, width);
  return need(kPacketAccess, name, fmt::format(kLlStore, name, value_type(dtype), width, payload));
}

std::string Preamble::unpack(DType dtype, int width) {
  const std::string name = fmt::format("unpack_{}_{}", dtype_name(dtype), width);
  const auto bits = 8 * dtype_size(dtype);
  std::vector<std::string> bools;
  std::string statements;
  for (int e = 0; e < width; ++e) {
    bools.push_back(fmt::format("bool ok{}", e));
    const std::string part = e == 0 ? "w" : fmt::format("(w >> {})", e * bits);
    const std::string value = dtype == DType::kF32
                                  ? "__uint_as_float(w)"
                                  : widened(dtype, fmt::format("({}){}", memory_type(dtype), part));
    statements += fmt::format("  v[{0}] = ok{0} ? {1} : 0;\n", e, value);
  }
  return need(kPacketAccess, name,
              fmt::format(kUnpack, name, value_type(dtype), fmt::join(bools, ", "), statements));
}

}  // namespace braid::tile
