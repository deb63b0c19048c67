#include "codegen/cuda/preamble.h"

#include <fmt/format.h>

#include "codegen/protocol.h"

namespace braid::tile {
namespace {

enum Section : int { kFailing = 10, kCommunicating };

constexpr std::string_view kRecord = R"(
// What went wrong first on this rank, for the host.
struct Record {
  unsigned kind, step, block, channel, peer, expected, seen, node;
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

// {0} world, {1} channels offset, {2} bytes per channel, {3} bytes of one phase's flags, {4}
// threads, {5} ranks that are unrolled
constexpr std::string_view kComm = R"(
// Flags are 32-bit epochs that only grow; release and acquire at system scope carry the data.
struct Peers {{ unsigned char* base[{0}]; }};
struct Comm {{
  unsigned char* self;
  Record* record;
  int rank, channel, step;
  long long timeout;
  unsigned epoch;
}};

__device__ __forceinline__ unsigned* flag_at(unsigned char* base, int channel, int phase, int from) {{
  return (unsigned*)(base + {1} + (long long)channel * {2} + phase * {3}) + blockIdx.x * {0} + from;
}}
__device__ __forceinline__ unsigned* epoch_at(unsigned char* base, int channel) {{
  return (unsigned*)(base + {1} + (long long)channel * {2} + 2 * {3}) + blockIdx.x;
}}
__device__ __forceinline__ unsigned load_acquire(const unsigned* p) {{
  unsigned v;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}}
__device__ __forceinline__ void store_release(unsigned* p, unsigned v) {{
  asm volatile("st.release.sys.global.u32 [%0], %1;" :: "l"(p), "r"(v) : "memory");
}}
__device__ __forceinline__ unsigned long long global_timer() {{
  unsigned long long t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}}

__device__ __forceinline__ Comm open_comm(const Peers& peers, int rank, int channel, int step,
                                          Record* record, long long timeout) {{
  Comm c;
  c.self = peers.base[0];
#pragma unroll {5}
  for (int r = 1; r < {0}; ++r) c.self = r == rank ? peers.base[r] : c.self;
  c.record = record;
  c.rank = rank;
  c.channel = channel;
  c.step = step;
  c.timeout = timeout;
  c.epoch = *epoch_at(c.self, channel) + 1;
  return c;
}}
// Every thread has read the epoch: the first signal's barrier comes after that.
__device__ __forceinline__ void close_comm(const Comm& c) {{
  if (threadIdx.x == 0) *epoch_at(c.self, c.channel) = c.epoch;
}}
// Everything this block did before is visible to a peer that sees the flag. Where there are more
// peers than threads, a thread has several.
__device__ __forceinline__ void signal(const Comm& c, const Peers& peers, int phase) {{
  __syncthreads();
#pragma unroll {5}
  for (int r = 0; r < {0}; ++r) {{
    if (threadIdx.x == r % {4}) store_release(flag_at(peers.base[r], c.channel, phase, c.rank), c.epoch);
  }}
}}
// Past the deadline: says on every rank that the run is lost, and once, here, who waited for whom.
__device__ __forceinline__ void give_up(const Comm& c, const Peers& peers, int peer, unsigned seen) {{
  if (claim(c.record, 1)) {{
    c.record->step = c.step;
    c.record->block = blockIdx.x;
    c.record->channel = c.channel;
    c.record->peer = peer;
    c.record->expected = c.epoch;
    c.record->seen = seen;
  }}
#pragma unroll {5}
  for (int r = 0; r < {0}; ++r) store_release((unsigned*)peers.base[r], 1u);
}}
// False when the run is lost; then the block must leave.
__device__ __forceinline__ bool wait(const Comm& c, const Peers& peers, int phase) {{
  bool lost = false;
#pragma unroll 1
  for (int first = 0; first < {0}; first += {4}) {{
    const int peer = first + threadIdx.x;
    if (peer >= {0} || lost) break;
    const unsigned* flag = flag_at(c.self, c.channel, phase, peer);
    const unsigned long long start = global_timer();
    unsigned seen = load_acquire(flag);
    while ((int)(seen - c.epoch) < 0 && !lost) {{
      lost = load_acquire((const unsigned*)c.self) != 0;
      // The timers of two multiprocessors may differ: signed, so that a step back is no timeout.
      if (!lost && (long long)(global_timer() - start) > c.timeout) {{
        give_up(c, peers, peer, seen);
        lost = true;
      }}
      seen = load_acquire(flag);
    }}
  }}
  return !__syncthreads_or(lost);
}}
)";

}  // namespace

void Preamble::record() { need(kFailing, "", std::string(kRecord)); }

void Preamble::bad_index() {
  record();
  need(kFailing, "bad_index", std::string(kBadIndex));
}

void Preamble::comm(int world, int threads) {
  record();
  need(kCommunicating, "comm",
       fmt::format(kComm, world, protocol::kChannelsOffset, protocol::channel_bytes(world),
                   protocol::flags_bytes(world), threads, kUnrolledRanks));
}

}  // namespace braid::tile
