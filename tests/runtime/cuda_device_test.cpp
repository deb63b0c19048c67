#include "runtime/cuda/cuda_device.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <thread>
#include <vector>

#include "braid/error.h"
#include "runtime/cuda/cuda_api.h"
#include "runtime/device_loader.h"
#include "runtime/dynamic_library.h"
#include "runtime/error_of.h"
#include "runtime/fake_libcuda.h"
#include "runtime/tensor_map.h"

namespace braid {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CudaDeviceTest : public ::testing::Test {
 protected:
  CudaDeviceTest() {
    ::setenv("BRAID_LIBCUDA", BRAID_FAKE_LIBCUDA, 1);
    library_ = DynamicLibrary({BRAID_FAKE_LIBCUDA});
    decltype(&::fake_cuda) control = nullptr;
    std::string missing;
    bind_symbol(library_, "fake_cuda", control, missing);
    if (control == nullptr) throw std::runtime_error(library_.failure());
    control_ = control;
    *control_() = {};
  }
  FakeCuda& fake() { return *control_(); }

  DynamicLibrary library_;
  decltype(&::fake_cuda) control_ = nullptr;
};

// Uses every call that a program uses, on the last rank.
void use(Device& device) {
  const int rank = device.world() - 1;
  const auto memory = device.allocate(rank, 1024);
  const auto empty = device.allocate(rank, 0);
  const auto visible = device.allocate_host(rank, 64);
  const auto shared = device.allocate_shared(rank, 1024);
  const auto stream = device.create_stream(rank);
  const auto event = device.create_event(rank);
  const auto module = device.load(rank, {"entry", "the ptx", {}});
  Function& function = module->function("entry");
  function.set_max_dynamic_shared(100 << 10);
  stream->fill(memory->address(), 7, 512);
  stream->copy(memory->address() + 512, memory->address(), 512);
  stream->fill(visible->address(), 9, 64);
  stream->record(*event);
  stream->wait(*event);
  const int argument = 42;
  const std::vector<const void*> args{&argument};
  stream->launch(function, {{3}, {128}, 64}, args);
  std::vector<std::uint8_t> host(1024);
  stream->copy_to_host(host.data(), memory->address(), host.size());
  stream->synchronize();
  EXPECT_EQ(host, std::vector<std::uint8_t>(1024, 7));
  EXPECT_EQ(*reinterpret_cast<const std::uint8_t*>(visible->address() + 63), 9);
  stream->copy_from_host(memory->address(), host.data(), host.size());
  const auto begin = device.create_timed_event(rank);
  const auto end = device.create_timed_event(rank);
  stream->record(*begin);
  stream->fill(memory->address(), 0, host.size());
  stream->record(*end);
  stream->synchronize();
  EXPECT_GT(end->ns_since(*begin), 0);
  EXPECT_LT(begin->ns_since(*end), 0);
}

TEST_F(CudaDeviceTest, Works) {
  {
    const auto device = open_device(DeviceKind::kCuda, {.world = 4});
    EXPECT_EQ(device->kind(), "cuda");
    EXPECT_EQ(device->target(), "sm_90a");
    EXPECT_EQ(device->ranks_per_device(), 2);
    EXPECT_THAT(device->description(), AllOf(HasSubstr("2 GPU"), HasSubstr("Fake GPU")));
    EXPECT_EQ(fake().peer_links, 2);
    EXPECT_STREQ(std::getenv("CUDA_DEVICE_MAX_CONNECTIONS"), "32");
    EXPECT_STREQ(std::getenv("CUDA_MODULE_LOADING"), "EAGER");
    use(*device);
    EXPECT_EQ(fake().image, "the ptx");
    EXPECT_EQ(fake().launch.grid, 3);
    EXPECT_EQ(fake().launch.block, 128);
    EXPECT_EQ(fake().launch.shared, 64);
    EXPECT_EQ(fake().launch.argument, 42);
    const auto module = device->load(0, {"entry", "the ptx", {'c', 'u', 'b', 'i', 'n', 0}});
    EXPECT_EQ(fake().image, "cubin");
    EXPECT_THROW((void)module->function("missing"), Error);
    EXPECT_THROW(module->function("entry").set_max_dynamic_shared(1 << 20), Error);
    EXPECT_THROW((void)device->allocate(4, 1), Error);
    // A second device finds peer access enabled already.
    EXPECT_NO_THROW((void)create_cuda_device(2));
  }
  EXPECT_EQ(fake().live_handles, 0);
  EXPECT_EQ(fake().current_context, nullptr);
}

TEST_F(CudaDeviceTest, EveryFailingCallIsNamedAndLeaksNothing) {
#define BRAID_NAME(name, suffix, parameters) #name,
  const std::vector<std::string> calls{BRAID_CUDA_FUNCTIONS(BRAID_NAME)};
#undef BRAID_NAME
  (void)cuda::Api::get(true);  // initialised once, before any call fails
  int failed = 0;
  for (const std::string& call : calls) {
    for (const int code : {2, 700}) {
      fake().fail = call;
      fake().error = code;
      try {
        const auto device = create_cuda_device(2);
        use(*device);
      } catch (const Error& error) {
        ++failed;
        EXPECT_THAT(error.what(), HasSubstr(call));
        if (call == "cuModuleLoadDataEx") {
          EXPECT_THAT(error.what(), HasSubstr("fake log"));
        }
        if (call == "cuMemAlloc") {
          EXPECT_EQ(error.code(), code == 2 ? ErrorCode::kEnvironment : ErrorCode::kInternal);
          EXPECT_THAT(error.what(),
                      HasSubstr(code == 2 ? "out of memory (CUDA_ERROR_OUT_OF_MEMORY, 2)" : "700"));
        }
      }
      fake().fail.clear();
      EXPECT_EQ(fake().live_handles, 0) << call;
      EXPECT_EQ(fake().current_context, nullptr) << call;
    }
  }
  EXPECT_GE(failed, 2 * 22);
}

// The stand-in, like a driver, encodes in a context alone, and as the cpu device reads it.
TEST_F(CudaDeviceTest, EncodesTensorMaps) {
  const auto device = open_device(DeviceKind::kCuda, {.world = 1});
  const auto memory = device->allocate(0, 1 << 16);
  MatrixMap map{memory->address(), DType::kBF16, 100, 72, 64};
  std::array<std::uint8_t, TensorMap::kBytes> bytes{};
  device->encode(map, bytes);
  const auto expected = TensorMap::of(map).encoded();
  EXPECT_EQ(std::memcmp(bytes.data(), expected.data(), bytes.size()), 0);
  EXPECT_EQ(fake().current_context, nullptr);
  map.columns = 77;
  EXPECT_THROW(device->encode(map, bytes), Error);
  map.columns = 72;
  fake().fail = "cuTensorMapEncodeTiled";
  EXPECT_THROW(device->encode(map, bytes), Error);
  fake().fail.clear();
}

TEST_F(CudaDeviceTest, LaunchAttributesReachTheDriver) {
  const auto device = open_device(DeviceKind::kCuda, {.world = 1});
  const auto stream = device->create_stream(0);
  const auto module = device->load(0, {"entry", "the ptx", {}});
  const int argument = 42;
  const std::vector<const void*> args{&argument};
  const auto launch = [&](Dim3 grid, const LaunchAttributes& attributes) -> std::string {
    fake().launch = {};
    try {
      stream->launch(module->function("entry"), {grid, {128}, 64, attributes}, args);
    } catch (const Error& error) {
      return error.what();
    }
    EXPECT_EQ(fake().launch.grid, grid.x);
    EXPECT_EQ(fake().launch.block, 128);
    EXPECT_EQ(fake().launch.shared, 64);
    EXPECT_EQ(fake().launch.argument, 42);
    EXPECT_EQ(fake().launch.cluster, attributes.cluster.x);
    EXPECT_EQ(fake().launch.programmatic, attributes.programmatic);
    return "";
  };
  EXPECT_EQ(launch({6}, {}), "");
  EXPECT_EQ(launch({6}, {.programmatic = true}), "");
  EXPECT_EQ(launch({6}, {.cluster = {2}}), "");
  EXPECT_EQ(launch({6}, {.cluster = {3}, .programmatic = true}), "");
  EXPECT_EQ(launch({6}, {.cluster = {4}}),
            "launch: a grid of 6 x 1 x 1 blocks in clusters of 4 x 1 x 1; expected whole clusters");
  EXPECT_THAT(launch({6}, {.cluster = {1, 2}}), HasSubstr("expected whole clusters"));
  EXPECT_THAT(launch({6}, {.cluster = {0}}), HasSubstr("expected whole clusters"));
  EXPECT_THAT(launch({32}, {.cluster = {16}}),
              HasSubstr("cuLaunchKernelEx: invalid cluster size (CUDA_ERROR_INVALID_CLUSTER_SIZE"));
  fake().fail = "cuLaunchKernelEx";
  EXPECT_EQ(launch({6}, {}), "");  // what needs no attributes does without it
  EXPECT_THAT(launch({6}, {.programmatic = true}), HasSubstr("cuLaunchKernelEx"));
  fake().fail.clear();
}

TEST_F(CudaDeviceTest, AGpusNameIsItsTargetWhereItIsKnown) {
  fake().name = "NVIDIA H200";
  EXPECT_EQ(create_cuda_device(2)->target(), "H200");
  EXPECT_EQ(create_cuda_device(1)->name(), "NVIDIA H200");
  fake().name = "NVIDIA H300";
  EXPECT_EQ(create_cuda_device(2)->target(), "sm_90a");
}

TEST_F(CudaDeviceTest, RefusesWhatCannotWork) {
  (void)cuda::Api::get(true);
  fake().peer_access = false;
  EXPECT_THROW((void)create_cuda_device(2), Error);
  EXPECT_NO_THROW((void)create_cuda_device(1));
  fake().peer_access = true;
  fake().capability[1] = 80;
  EXPECT_THROW((void)create_cuda_device(2), Error);
  fake().capability = {86, 86};
  EXPECT_EQ(create_cuda_device(2)->target(), "sm_86");
  fake().capability = {100, 100};
  EXPECT_EQ(create_cuda_device(2)->target(), "sm_100a");
  fake().capability = {75, 75};
  try {
    (void)create_cuda_device(1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kEnvironment);
    EXPECT_THAT(error.what(), HasSubstr("compute capability 7.5"));
  }
  EXPECT_THROW((void)create_cuda_device(0), Error);
  EXPECT_EQ(fake().live_handles, 0);
}

TEST_F(CudaDeviceTest, NoDriverAndNoGpu) {
  fake().gpus = 0;
  EXPECT_THROW((void)cuda::Api::load(false), Error);
  ::setenv("BRAID_LIBCUDA", "/nonexistent/libcuda.so.1", 1);
  try {
    (void)cuda::Api::load(false);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kEnvironment);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("/nonexistent"), HasSubstr("install")));
  }
}

TEST_F(CudaDeviceTest, ValuesOrderStreams) {
  {
    const auto device = open_device(DeviceKind::kCuda, {.world = 2});
    const auto words = device->allocate(0, 8);
    const std::uint64_t word = words->address();
    const auto first = device->create_stream(0);
    const auto second = device->create_stream(1);
    first->fill(word, 0, 8);
    first->synchronize();
    first->wait_value(word, 3);
    first->fill(word + 4, 1, 1);
    second->write_value(word, 2);
    second->synchronize();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const auto* done = reinterpret_cast<const volatile std::uint8_t*>(word + 4);
    EXPECT_EQ(*done, 0);
    second->write_value(word, 4);  // past it
    first->synchronize();
    EXPECT_EQ(*done, 1);
    second->write_value(word, 0xfffffff0U);
    second->synchronize();
    first->wait_value(word, 5);
    second->write_value(word, 6);  // past it, and past zero
    first->synchronize();
  }
  EXPECT_EQ(fake().live_handles, 0);
}

TEST_F(CudaDeviceTest, StreamsOfTheCallerAreNotDestroyed) {
  {
    const auto device = open_device(DeviceKind::kCuda, {.world = 1});
    const auto memory = device->allocate(0, 64);
    const auto made = device->create_stream(0);
    fake().fail = "cuStreamCreate";
    EXPECT_THROW((void)device->create_stream(0), Error);
    fake().fail.clear();
    void* handle = fake().last_stream;
    device->wrap_stream(0, handle)->fill(memory->address(), 5, 64);
    made->synchronize();
    EXPECT_EQ(*reinterpret_cast<const std::uint8_t*>(memory->address() + 63), 5);
  }
  EXPECT_EQ(fake().live_handles, 0);
}

/// The handle as it looks to another process.
std::string from_elsewhere(std::string handle) {
  handle[8 + std::string_view("cuda memory").size()] ^= 1;  // what tells the processes apart
  return handle;
}

long open_files() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

std::uint8_t& byte_of(const Memory& memory, std::size_t at) {
  return reinterpret_cast<std::uint8_t*>(memory.address())[at];
}

TEST_F(CudaDeviceTest, MemoryIsHandedOn) {
  const long files = open_files();
  for (const bool fabric : {false, true}) {
    for (const char* refuses : {"", "cuMemGetAllocationGranularity", "cuMemCreate",
                                "cuMemExportToShareableHandle", "cuMemImportFromShareableHandle"}) {
      SCOPED_TRACE(fmt::format("fabric {}, refused by '{}'", fabric, refuses));
      fake().fabric = fabric;
      fake().fabric_refuses = refuses;
      const auto device = open_device(DeviceKind::kCuda, {.world = 2});
      auto memory = device->allocate_shared(0, 1024);
      const std::string handle = memory->export_handle();
      const auto same = device->import_memory(1, handle);
      EXPECT_EQ(same->address(), memory->address());  // one address does within a process
      EXPECT_EQ(same->size(), 1024);
      const auto opened = device->import_memory(1, from_elsewhere(handle));
      EXPECT_NE(opened->address(), memory->address());
      EXPECT_EQ(opened->size(), 1024);
      byte_of(*memory, 1023) = 42;
      EXPECT_EQ(byte_of(*opened, 1023), 42);
      EXPECT_EQ(memory->export_handle(), handle);
      for (std::size_t size = 0; size < handle.size(); ++size) {
        EXPECT_THROW((void)device->import_memory(1, handle.substr(0, size)), Error);
      }
      memory = nullptr;
      EXPECT_EQ(byte_of(*opened, 1023), 42);
      EXPECT_THAT(error_of([&] { (void)device->import_memory(1, from_elsewhere(handle)); }).second,
                  HasSubstr("does not have it (any more) on this machine"));
    }
  }
  EXPECT_EQ(fake().live_handles, 0);
  EXPECT_EQ(open_files(), files);
}

TEST_F(CudaDeviceTest, SharedMemoryIsThatOfEveryGpu) {
  fake().gpus = 3;
  {
    const auto device = open_device(DeviceKind::kCuda, {.world = 3});
    const auto memory = device->allocate_shared(1, 0);
    EXPECT_EQ(memory->address() % 256, 0);
    for (int rank = 0; rank < 3; ++rank) {
      const auto stream = device->create_stream(rank);
      stream->fill(memory->address(), static_cast<std::uint8_t>(rank + 1), 1);  // faults elsewhere
      stream->synchronize();
      EXPECT_EQ(byte_of(*memory, 0), rank + 1);
    }
  }
  EXPECT_EQ(fake().live_handles, 0);
}

TEST_F(CudaDeviceTest, WhatCannotBeHandedOnIsOneLine) {
  const std::string refusal = fmt::format(
      "memory: process {} cannot hand it to other processes: CUDA driver: "
      "cuMemRetainAllocationHandle: fake error (CUDA_ERROR_FAKE, 1); expected memory that "
      "cuMemCreate made with handles for them",
      ::getpid());
  {
    const auto device = open_device(DeviceKind::kCuda, {.world = 2});
    const auto memory = device->allocate(0, 1024);
    EXPECT_EQ(device->import_memory(1, memory->export_handle())->address(), memory->address());
    EXPECT_EQ(
        error_of([&] { (void)device->import_memory(1, from_elsewhere(memory->export_handle())); }),
        std::pair(ErrorCode::kEnvironment, refusal));
    fake().file_handles = false;
    const auto without = open_device(DeviceKind::kCuda, {.world = 2});
    const auto shared = without->allocate_shared(0, 1024);
    EXPECT_THAT(error_of([&] {
                  (void)device->import_memory(1, from_elsewhere(shared->export_handle()));
                }).second,
                HasSubstr("cuMemExportToShareableHandle: fake error (CUDA_ERROR_FAKE, 800)"));
    fake().virtual_memory = false;  // as on a virtual GPU
    const auto old = open_device(DeviceKind::kCuda, {.world = 2});
    const auto plain = old->allocate_shared(1, 1024);
    EXPECT_EQ(old->import_memory(0, plain->export_handle())->address(), plain->address());
  }
  EXPECT_EQ(fake().live_handles, 0);
}

TEST_F(CudaDeviceTest, FindsTheAllocationOfAnAddress) {
  {
    const auto device = open_device(DeviceKind::kCuda, {.world = 2});
    const auto own = device->allocate(1, 1024), shared = device->allocate_shared(1, 1024);
    const auto found = device->find_memory(1, own->address() + 1000);
    EXPECT_EQ(found->address(), own->address());
    EXPECT_EQ(found->size(), 1024);
    const auto mapped = device->find_memory(1, shared->address() + 1000);
    EXPECT_EQ(mapped->address(), shared->address());
    const auto opened = device->import_memory(0, from_elsewhere(mapped->export_handle()));
    byte_of(*shared, 7) = 70;
    EXPECT_EQ(byte_of(*opened, 7), 70);
    EXPECT_EQ(error_of([&] { (void)device->find_memory(0, 16); }),
              std::pair(ErrorCode::kInvalidArgument,
                        std::string("memory: the driver knows no allocation that holds 0x10")));
  }
  EXPECT_EQ(fake().live_handles, 0);
}

TEST(DeviceLoader, RefusesBadArguments) {
  EXPECT_THROW((void)parse_device_kind("tpu"), Error);
  EXPECT_THROW((void)open_device(DeviceKind::kCpu, {.world = 0}), Error);
  EXPECT_THROW((void)open_device(DeviceKind::kCpu, {.threads = -1}), Error);
}

TEST(DeviceLoader, MissingCpuLibrarySaysHowToGetIt) {
  ::setenv("BRAID_CPU_LIBRARY", "/nonexistent/libbraid_cpu.so", 1);
  try {
    (void)open_device(DeviceKind::kCpu, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kEnvironment);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("/nonexistent"), HasSubstr("BRAID_CPU_DEVICE")));
  }
  ::setenv("BRAID_CPU_LIBRARY", "libm.so.6", 1);  // a library, but not that one
  EXPECT_THROW((void)open_device(DeviceKind::kCpu, {}), Error);
  ::unsetenv("BRAID_CPU_LIBRARY");
}

}  // namespace
}  // namespace braid
