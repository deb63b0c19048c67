#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "runtime/dynamic_library.h"
#include "runtime/fake_libcuda.h"
#include "runtime/fake_libnccl.h"

namespace braid {

/// The stand-ins for the driver, which runs kernels on 4 GPUs, and for NCCL.
class NcclStandIn : public ::testing::Test {
 protected:
  NcclStandIn() {
    ::setenv("BRAID_LIBCUDA", BRAID_FAKE_LIBCUDA, 1);
    ::setenv("BRAID_LIBNCCL", BRAID_FAKE_LIBNCCL, 1);
    ::setenv("CUDA_FORCE_PTX_JIT", "1", 1);
    ::setenv("BRAID_TEST_DEVICE", "cuda", 1);
    cuda() = {};
    cuda().gpus = 4;
    cuda().run_kernels = true;
    nccl() = {};
  }
  ~NcclStandIn() override {
    EXPECT_EQ(nccl().live_comms, 0);
    EXPECT_EQ(cuda().live_handles, 0U);
    EXPECT_EQ(cuda().current_context, nullptr);
  }
  static FakeCuda& cuda() {
    return *control<decltype(&::fake_cuda)>(BRAID_FAKE_LIBCUDA, "fake_cuda")();
  }
  static FakeNccl& nccl() {
    return *control<decltype(&::fake_nccl)>(BRAID_FAKE_LIBNCCL, "fake_nccl")();
  }

 private:
  template <class Function>
  static Function control(const char* library, const char* name) {
    const DynamicLibrary opened({library});
    Function function = nullptr;
    std::string missing;
    bind_symbol(opened, name, function, missing);
    if (function == nullptr) throw std::runtime_error(opened.failure());
    return function;
  }
};

}  // namespace braid
