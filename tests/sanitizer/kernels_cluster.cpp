// Clusters: what orders the set-up of their mbarriers, and how long a block must stay for others.

#include "sanitizer/kernels.h"

namespace braid::testing {
namespace {

// On the first line: the numbers of those that follow stay.
constexpr const char* kMacros =
    "\n"
    "typedef unsigned long long u64;"
    "__device__ inline unsigned at(const void* p) { return __cvta_generic_to_shared(p); }"
    "__device__ inline unsigned rank_here() { unsigned r; asm(\"mov.u32 %0, %%cluster_ctarank;\" : "
    "\"=r\"(r)); return r; }"
    "__device__ inline unsigned in_peer(const void* p) { unsigned r; asm "
    "volatile(\"mapa.shared::cluster.u32 %0, %1, %2;\" : \"=r\"(r) : \"r\"(at(p)), "
    "\"r\"(rank_here() ^ 1)); return r; }"
    "__device__ inline int load_peer(const int* p) { int v; asm "
    "volatile(\"ld.shared::cluster.u32 %0, [%1];\" : \"=r\"(v) : \"r\"(in_peer(p)) : \"memory\"); "
    "return v; }\n";

KernelCase in_pairs(KernelCase kernel) {
  kernel.source = kMacros + kernel.source;
  kernel.target = "sm_90a";
  kernel.cluster = {2};
  return kernel;
}

Buffers blocks_of_ones() { return {zeros(64)}; }

/// As the PTX manual sets up mbarriers that other blocks arrive at.
KernelCase relaxed_meeting() {
  return in_pairs({"relaxed_meeting",
                   R"(
extern "C" __global__ void k(int* out) {
  __shared__ alignas(8) u64 bar;
  __shared__ int box[32];
  box[threadIdx.x] = 0;
#if BUG == 2
  box[threadIdx.x] = 1;  // finds 2
#endif
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(at(&bar)) : "memory");  // finds 1
#if BUG == 3
    asm volatile("fence.acq_rel.cta;" ::: "memory");
#elif BUG != 1
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
  }
  asm volatile("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;" ::: "memory");
#if BUG == 2
  const int one = load_peer(box + threadIdx.x);  // finds 2
#else
  const int one = 1;
#endif
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(in_peer(&bar)) : "memory");  // finds 1 // finds 3
  }
  asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], 0; @!p bra L; }" :: "r"(at(&bar)) : "memory");
  out[blockIdx.x * 32 + threadIdx.x] = one;
}
)",
                   {2},
                   {32},
                   {output(0)},
                   blocks_of_ones,
                   [](Buffers& b) {
                     for (float& x : b[0]) x = int_bits(1);
                   },
                   {"race", "race", "race"}});
}

/// A full fence orders all that was before it, with arrivals that order nothing themselves.
KernelCase fenced_meeting() {
  return in_pairs({"fenced_meeting",
                   R"(
extern "C" __global__ void k(int* out) {
  __shared__ int box[32];
  box[threadIdx.x] = 1;  // finds 1
#if BUG == 1
  asm volatile("fence.acq_rel.cta;" ::: "memory");
#else
  asm volatile("fence.acq_rel.cluster;" ::: "memory");
#endif
  asm volatile("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;" ::: "memory");
  out[blockIdx.x * 32 + threadIdx.x] = load_peer(box + threadIdx.x);  // finds 1
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}
)",
                   {2},
                   {32},
                   {output(0)},
                   blocks_of_ones,
                   [](Buffers& b) {
                     for (float& x : b[0]) x = int_bits(1);
                   },
                   {"race"}});
}

/// Shared memory is there for as long as its block is.
KernelCase stays_for_its_peer() {
  return in_pairs({"stays_for_its_peer",
                   R"(
#define MEET() asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory")
extern "C" __global__ void k(int* out) {
  __shared__ int box[64];
  box[threadIdx.x] = threadIdx.x;
  MEET();
#if BUG == 2
  if (rank_here() == 0) return;
  for (int i = 0; i < 8; ++i) __syncthreads();
#endif
#if BUG == 3
  asm volatile("st.shared::cluster.u32 [%0], %1;" :: "r"(in_peer(box + threadIdx.x)), "r"(threadIdx.x) : "memory");  // finds 3
#endif
  out[blockIdx.x * 64 + threadIdx.x] = load_peer(box + threadIdx.x);  // finds 1 // finds 2
#if BUG == 0
  MEET();
#endif
}
)",
                   {2},
                   {64},
                   {buffer(0)},
                   [] { return Buffers{zeros(128)}; },
                   [](Buffers& b) {
                     for (std::size_t i = 0; i < 128; ++i) b[0][i] = int_bits(i % 64);
                   },
                   {"exited", "exited", "exited"}});
}

/// Who has waited for the copy that another block has sent it may leave.
KernelCase sent_to_both() {
  return in_pairs({"sent_to_both",
                   R"(
extern "C" __global__ void k(const int* x, int* out) {
  __shared__ alignas(128) int box[32];
  __shared__ alignas(8) u64 full;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; fence.mbarrier_init.release.cluster;" :: "r"(at(&full)) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], 128;" :: "r"(at(&full)) : "memory");
  }
  asm volatile("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;" ::: "memory");
  if (threadIdx.x == 0 && rank_here() == 0) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 128, [%2], %3;" :: "r"(at(box)), "l"(x), "r"(at(&full)), "h"((short)3) : "memory");  // finds 1
  }
#if BUG == 1
  if (rank_here() == 0)
#endif
  asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra L; }" :: "r"(at(&full)) : "memory");
  out[blockIdx.x * 32 + threadIdx.x] = box[threadIdx.x];  // finds 1
}
)",
                   {2},
                   {32},
                   {buffer(0), output(1)},
                   [] {
                     return Buffers{ramp(32), zeros(64)};
                   },
                   [](Buffers& b) {
                     for (std::size_t i = 0; i < 64; ++i) b[1][i] = b[0][i % 32];
                   },
                   {"race"}});
}

}  // namespace

std::vector<KernelCase> cluster_kernels() {
  return {relaxed_meeting(), fenced_meeting(), stays_for_its_peer(), sent_to_both()};
}

}  // namespace braid::testing
