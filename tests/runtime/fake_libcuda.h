#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace braid {

/// What a test tells the stand-in driver, and what it tells the test. Programs that do not know the
/// stand-in set some of it by the environment variables named here.
struct FakeCuda {
  int gpus = 2;  ///< $FAKE_CUDA_GPUS
  std::array<int, 8> capability{90, 90, 90, 90, 90, 90, 90, 90};
  std::string name = "Fake GPU";
  int driver_version = 13000;  ///< $FAKE_CUDA_VERSION
  /// Kernels run on the cpu device, from the PTX that CUDA_FORCE_PTX_JIT=1 makes braid load; else
  /// they do nothing. $FAKE_CUDA_RUN=1.
  bool run_kernels = false;

  bool peer_access = true;               ///< between any two GPUs
  std::pair<int, int> lossy{-1, -1};     ///< the first cannot reach the second, and says it can
  std::pair<int, int> unlinked{-1, -1};  ///< the same, and kernels that try are faults
  bool virtual_memory = true;            ///< memory can be mapped at chosen addresses
  bool file_handles = true;              ///< and exported as descriptors
  bool fabric = false;                   ///< and as handles of a fabric,
  std::string fabric_refuses;            ///< but this call fails for these (999)
  bool multicast = false;                ///< GPUs take part in multicasts,
  bool multicast_refuses = false;        ///< but bind no memory: a service is missing
  bool launch_blocking = false;          ///< $CUDA_LAUNCH_BLOCKING=1, a profiler
  bool lazy_loading = false;             ///< what is wrong with code shows at its look-up
  int queues = 0;       ///< of a GPU, in order; 0: $CUDA_DEVICE_MAX_CONNECTIONS, else 8
  bool strict = false;  ///< knows no memory but its own where no kernel runs, too
  unsigned long long foreign_memory = 0;  ///< an allocation of another context
  int resident_blocks = 0;                ///< that a GPU holds at once; 0: any number
  int delay_ms = 0;                       ///< before each work of the streams made from now on
  int launch_us = 0;                      ///< that cuLaunchKernel keeps its caller
  bool no_launches = false;               ///< and no call fails, or is counted

  /// What is wrong with the hardware of some instructions: a kernel is known by a text in its PTX.
  struct Flaw {
    int gpu = -1;                        ///< where; -1: on every GPU
    std::string instruction, lies_as{};  ///< each is done as if it were the other
    std::string faults{};                ///< kernels with it are faults (700)
    std::string endless{};               ///< these do not end
  } flaw{};
  bool lets_end = false;  ///< but now they do; read atomically

  std::string fail;   ///< the call that fails, if any
  int fail_call = 0;  ///< the n-th call from now fails, counted from 1. $FAKE_CUDA_FAIL_CALL
  int error = 2;      ///< with this CUresult

  int calls = 0;  ///< that could fail, so far

  std::size_t live_handles = 0;  ///< created and not destroyed, retained contexts included
  const void* current_context = nullptr;
  int peer_links = 0;           ///< calls of cuCtxEnablePeerAccess
  void* last_stream = nullptr;  ///< that was created
  std::string image;            ///< the text that was loaded last
  struct Launch {
    unsigned grid, block, shared;
    int argument;  ///< the first, as an int
    unsigned cluster;
    bool programmatic;
  } launch{};
  std::vector<std::thread::id> launch_threads;  ///< which threads launched, in order
  int launches = 0;                             ///< without those of the meeting when a world opens
  int modules = 0;                              ///< loaded so far
  /// Runs in place of the kernel. `parameters` are the bytes of those that it looks at, which are
  /// copied at the launch; only PTX says them itself.
  void (*on_launch)(const char* entry, void** args) = nullptr;
  std::vector<std::size_t> parameters;
  /// Where a test times kernels: says of a fill that it need not be done; runs where a timed event
  /// is reached; says how far apart two of these are.
  bool (*skips_fill)(std::size_t bytes) = nullptr;
  void (*on_timed_event)() = nullptr;
  float (*elapsed_ms)() = nullptr;
};

}  // namespace braid

/// For the stand-in of NCCL: the GPU whose memory holds that stretch, -1 for pinned memory of the
/// host, -2 for other memory.
extern "C" int fake_cuda_owner(unsigned long long address, std::size_t bytes);

/// The control block of the stand-in, with its counters brought up to date.
extern "C" braid::FakeCuda* fake_cuda();
