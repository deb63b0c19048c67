#pragma once

#include <array>
#include <cstddef>
#include <string>

namespace braid {

/// What a test tells the stand-in driver, and what it tells the test.
struct FakeCuda {
  int gpus = 2;
  std::array<int, 8> capability{90, 90, 90, 90, 90, 90, 90, 90};
  bool peer_access = true;
  /// Kernels run on the cpu device, from the PTX that CUDA_FORCE_PTX_JIT=1 makes braid load; else
  /// they do nothing. $FAKE_CUDA_RUN=1 sets it in programs that do not know the stand-in.
  bool run_kernels = false;
  std::string fail;   ///< the call that fails, if any
  int fail_call = 0;  ///< the n-th call from now fails, counted from 1
  int error = 2;      ///< with this CUresult

  int calls = 0;  ///< that could fail, so far

  std::size_t live_handles = 0;  ///< created and not destroyed, retained contexts included
  const void* current_context = nullptr;
  int peer_links = 0;  ///< calls of cuCtxEnablePeerAccess
  std::string image;   ///< the text that was loaded last
  struct Launch {
    unsigned grid, block, shared;
    int argument;  ///< the first, as an int
  } launch{};
  int launches = 0;
  void (*on_launch)(const char* entry, void** args) = nullptr;  ///< runs in place of the kernel
};

}  // namespace braid

/// The control block of the stand-in, with its counters brought up to date.
extern "C" braid::FakeCuda* fake_cuda();
