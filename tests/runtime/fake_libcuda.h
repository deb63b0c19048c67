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
  std::string fail;  ///< the call that fails, if any
  int error = 2;     ///< with this CUresult

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
