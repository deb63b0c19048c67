#include "runtime/cuda/check_ranks.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "braid/error.h"
#include "ir/fail.h"
#include "runtime/cuda/cuda_api.h"

namespace braid::cuda {
namespace {

constexpr std::uint32_t kToken = 0x6d656574;
// The second launch follows immediately; the timeout is reached only if it cannot run.
constexpr std::uint64_t kTimeoutNs = 2'000'000'000;

// The results that a kernel leaves in its own memory.
struct Words {
  std::uint32_t arrived;    ///< token written by the other kernel
  std::uint32_t met;        ///< 1 if it arrived while this kernel waited
  std::uint32_t read_back;  ///< read back from the other's memory after writing it
};

// The oldest PTX version with these instructions, so that every driver accepts it.
constexpr const char* kMeetEntry = "braid_meet";
constexpr const char* kMeetPtx = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry braid_meet(.param .u64 mine, .param .u64 other, .param .u64 timeout_ns,
                           .param .u32 token)
{
  .reg .pred %p<3>;
  .reg .b32 %r<5>;
  .reg .b64 %rd<9>;
  ld.param.u64 %rd1, [mine];
  ld.param.u64 %rd2, [other];
  ld.param.u64 %rd3, [timeout_ns];
  ld.param.u32 %r1, [token];
  cvta.to.global.u64 %rd4, %rd1;
  cvta.to.global.u64 %rd5, %rd2;
  st.release.sys.global.u32 [%rd5], %r1;
  mov.u64 %rd6, %globaltimer;
WAIT:
  ld.acquire.sys.global.u32 %r2, [%rd4];
  setp.eq.u32 %p1, %r2, %r1;
  @%p1 bra MET;
  mov.u64 %rd7, %globaltimer;
  sub.s64 %rd8, %rd7, %rd6;
  setp.lt.s64 %p2, %rd8, %rd3;
  @%p2 bra WAIT;
  bra DONE;
MET:
  mov.u32 %r3, 1;
  st.global.u32 [%rd4+4], %r3;
DONE:
  ld.acquire.sys.global.u32 %r4, [%rd5];
  st.global.u32 [%rd4+8], %r4;
  ret;
}
)";

// Resources of one rank's kernel.
struct Side {
  std::size_t gpu;
  std::unique_ptr<Module> module;
  std::unique_ptr<Memory> memory;
  std::unique_ptr<Stream> stream;
  Words words{};
};

Side open_side(Device& device, int rank, int gpus) {
  Side side{static_cast<std::size_t>(rank % gpus),
            device.load(rank, {kMeetEntry, kMeetPtx, {}, {}}),
            device.allocate_shared(rank, sizeof(Words)), device.create_stream(rank)};
  (void)side.module->function(kMeetEntry);  // forces lazy loading
  return side;
}

void launch(Side& side, const Side& other) {
  const std::uint64_t mine = side.memory->address();
  const std::uint64_t theirs = other.memory->address();
  const std::array<const void*, 4> args{&mine, &theirs, &kTimeoutNs, &kToken};
  side.stream->launch(side.module->function(kMeetEntry), {{1}, {1}}, args);
}

// Launches both. The first one's resources stay while it runs, even if the second fails.
void launch_both(Side& first, Side& second) {
  launch(first, second);
  try {
    launch(second, first);
  } catch (const Error&) {
    try {
      first.stream->synchronize();
    } catch (const Error&) {  // what came first says more
    }
    throw;
  }
}

void meet(Side& first, Side& second) {
  const std::array<Side*, 2> sides{&first, &second};
  for (Side* side : sides) {
    side->stream->fill(side->memory->address(), 0, sizeof(Words));
    side->stream->synchronize();
  }
  launch_both(first, second);
  for (const std::size_t from : {0, 1}) {
    try {
      sides[from]->stream->synchronize();
    } catch (const DriverError& error) {
      if (first.gpu == second.gpu) throw;
      throw_no_peer_access(sides[from]->gpu, sides[1 - from]->gpu, error.what());
    }
  }
  for (Side* side : sides) {
    side->stream->copy_to_host(&side->words, side->memory->address(), sizeof(Words));
    side->stream->synchronize();
  }
  for (const std::size_t from : {0, 1}) {
    const std::size_t to = 1 - from;
    if (sides[to]->words.arrived != kToken || sides[from]->words.read_back != kToken) {
      throw_no_peer_access(sides[from]->gpu, sides[to]->gpu,
                           "what it writes there is not found there");
    }
  }
  if (first.words.met == 1 && second.words.met == 1) return;
  throw_environment(
      "CUDA driver",
      "a kernel on GPU {} that waits for one on GPU {} ran into its timeout: kernels run one after "
      "the other here, and those of several ranks wait for each other. A debugger, or a profiler "
      "that serialises kernels, does that: run without it, or on the cpu device",
      first.gpu, second.gpu);
}

}  // namespace

void refuse_blocking_launches() {
  if (environment("CUDA_LAUNCH_BLOCKING") != "1") return;
  throw_environment("CUDA_LAUNCH_BLOCKING",
                    "is 1: each launch would wait for its kernel to end, and the kernels of "
                    "several ranks wait for each other; unset it, or use one rank or the cpu "
                    "device");
}

void throw_no_peer_access(std::size_t from, std::size_t to, const char* reason) {
  throw_environment("CUDA driver",
                    "GPU {} cannot use the memory of GPU {}: {}; choose other GPUs or one GPU with "
                    "CUDA_VISIBLE_DEVICES, or groups with \"symmetric\": false",
                    from, to, reason);
}

void check_ranks_meet(Device& device, int gpus) {
  try {
    if (device.world() == 1) return;
    // One side per GPU, and one more on the first if ranks share GPUs.
    std::vector<Side> sides;
    for (int rank = 0; rank < std::min(device.world(), gpus + 1); ++rank) {
      sides.push_back(open_side(device, rank, gpus));
    }
    const auto distinct = static_cast<std::size_t>(gpus);
    for (std::size_t from = 0; from < distinct; ++from) {
      for (std::size_t to = from + 1; to < distinct; ++to) meet(sides[from], sides[to]);
    }
    if (sides.size() > distinct) meet(sides.front(), sides.back());
  } catch (const DriverError& error) {
    if (error.result() != kJitCompilerNotFound && error.result() != kJitCompilationDisabled) throw;
  }
}

}  // namespace braid::cuda
