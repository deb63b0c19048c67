// Launches of the stand-in for the CUDA driver (fake_libcuda.cpp).

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "braid/error.h"
#include "runtime/fake_result.h"
#include "runtime/fake_state.h"
#include "runtime/fake_virtual_memory.h"
#include "runtime/tensor_map.h"

namespace {

using namespace braid::fake;  // NOLINT(google-build-using-namespace)

constexpr const char* kMeet = "braid_meet";  // the kernel of src/runtime/cuda/check_ranks.cpp

// The kernel kMeet, for when kernels do nothing.
int meet(int gpu, const std::vector<std::vector<std::uint8_t>>& arguments) {
  std::uint64_t mine = 0;
  std::uint64_t other = 0;
  std::uint64_t timeout_ns = 0;
  std::uint32_t token = 0;
  std::memcpy(&mine, arguments[0].data(), sizeof mine);
  std::memcpy(&other, arguments[1].data(), sizeof other);
  std::memcpy(&timeout_ns, arguments[2].data(), sizeof timeout_ns);
  std::memcpy(&token, arguments[3].data(), sizeof token);
  const auto word = [](std::uint64_t base, int index) {
    return std::atomic_ref<std::uint32_t>(reinterpret_cast<std::uint32_t*>(base)[index]);
  };
  const std::pair<int, int> way{gpu, owner_of(other, 4).gpu};
  const bool lost = way == state().control.lossy;
  if (!lost) word(other, 0) = token;
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - start < std::chrono::nanoseconds(timeout_ns)) {
    if (word(mine, 0) == token) {
      word(mine, 1) = 1;
      break;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  word(mine, 2) = lost ? 0 : word(other, 0).load();
  return 0;
}

struct LaunchWork {
  FakeFunction* function;
  braid::Stream* cpu;
  braid::LaunchConfig config;
  std::vector<std::vector<std::uint8_t>> arguments;

  int operator()() {
    std::vector<const void*> pointers;
    for (auto& argument : arguments) {
      pointers.push_back(argument.data());
      for (std::size_t at = 0; at + 8 <= argument.size(); at += 8) {
        std::uint64_t address = 0;
        std::memcpy(&address, argument.data() + at, 8);
        if (!reaches(function->gpu, address)) return kIllegalAddress;
        if (cpu != nullptr) address = on_the_cpu(address);
        std::memcpy(argument.data() + at, &address, 8);
      }
    }
    if (function->faults) return kIllegalAddress;
    const std::atomic_ref<bool> lets_end(state().control.lets_end);
    while (function->endless && !lets_end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (function->cpu != nullptr) {
      try {
        cpu->launch(*function->cpu, config, pointers);
        cpu->synchronize();
      } catch (const braid::Error& error) {
        std::fprintf(stderr, "stand-in: %s\n", error.what());
        return kLaunchFailed;
      }
      return 0;
    }
    if (function->entry == kMeet) return meet(function->gpu, arguments);
    const auto on_launch = state().control.on_launch;
    if (on_launch != nullptr) {
      on_launch(function->entry.c_str(), const_cast<void**>(pointers.data()));
    }
    return 0;
  }
};

int launch(const char* call, void* function, void* stream, const braid::LaunchConfig& config,
           void** args) {
  auto* fake = static_cast<FakeFunction*>(function);
  braid::FakeCuda& control = state().control;
  const auto blocks = static_cast<unsigned>(config.grid.count());
  const std::uint64_t threads = config.block.count();
  const bool good = blocks > 0 && threads > 0 && threads <= 1024 &&
                    static_cast<int>(config.shared_bytes) <= fake->max_shared;
  Handle* on = find(stream, Kind::kStream);
  if (on != nullptr && (on->gpu != current_gpu() || fake->gpu != current_gpu())) {
    return kInvalidHandle;
  }
  LaunchWork work{fake, on == nullptr ? nullptr : on->cpu_stream.get(), config, {}};
  const auto& sizes = fake->declared == nullptr ? control.parameters : fake->declared->parameters;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto* bytes = static_cast<const std::uint8_t*>(args[i]);
    work.arguments.emplace_back(bytes, bytes + sizes[i]);
  }
  {
    const std::lock_guard lock(state().hardware.mutex);
    state().hardware.gpus[static_cast<std::size_t>(fake->gpu)].capacity =
        static_cast<unsigned>(control.resident_blocks);
  }
  std::this_thread::sleep_for(std::chrono::microseconds(control.launch_us));
  const char* blocking = std::getenv("CUDA_LAUNCH_BLOCKING");
  const bool block =
      control.launch_blocking || (blocking != nullptr && std::strcmp(blocking, "1") == 0);
  const int error = enqueue(call, stream, good, {std::move(work), blocks, nullptr}, block);
  if (error == 0 && fake->entry != kMeet) {
    const std::lock_guard lock(state().mutex);
    control.launch = {config.grid.x,
                      config.block.x,
                      config.shared_bytes,
                      *static_cast<int*>(args[0]),
                      config.attributes.cluster.x,
                      config.attributes.programmatic};
    control.launch_threads.push_back(std::this_thread::get_id());
    ++control.launches;
  }
  return error;
}

// As the driver has them.
struct LaunchAttribute {
  int id;
  alignas(8) unsigned value[16];
};
struct LaunchConfigEx {
  unsigned grid[3], block[3], shared_bytes;
  void* stream;
  const LaunchAttribute* attributes;
  unsigned count;
};

}  // namespace

extern "C" {

int cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   void* stream, void** args, void**) {
  if (state().control.no_launches) return 0;
  return launch("cuLaunchKernel", function, stream,
                {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes}, args);
}
int cuLaunchKernelEx(const LaunchConfigEx* config, void* function, void** args, void**) {
  if (state().control.no_launches) return 0;
  const auto& [grid, block, shared_bytes, stream, attributes, count] = *config;
  braid::LaunchConfig made{
      {grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]}, shared_bytes};
  for (unsigned i = 0; i < count; ++i) {
    const auto& [id, value] = attributes[i];
    if (id == 4) {
      made.attributes.cluster = {value[0], value[1], value[2]};
    } else if (id == 6) {
      made.attributes.programmatic = value[0] != 0;
    } else {
      return kInvalidValue;
    }
  }
  const braid::Dim3 cluster = made.attributes.cluster;
  if (cluster.count() == 0 || cluster.count() > 8) return kInvalidClusterSize;
  if (grid[0] % cluster.x != 0 || grid[1] % cluster.y != 0 || grid[2] % cluster.z != 0) {
    return kInvalidValue;
  }
  return launch("cuLaunchKernelEx", function, stream, made, args);
}

/// As the cpu device reads it, for kernels run there.
int cuTensorMapEncodeTiled(void* map, int type, std::uint32_t rank, void* address,
                           const std::uint64_t* dims, const std::uint64_t* strides,
                           const std::uint32_t* box, const std::uint32_t* steps, int interleave,
                           int swizzle, int, int fill) {
  if (const int code = enter_context("cuTensorMapEncodeTiled")) return code;
  if (rank < 1 || rank > braid::TensorMap::kMaxRank || interleave != 0) return kInvalidValue;
  constexpr int kDouble = 8;  // one less than in `tensormap.replace` from here on
  braid::TensorMap made{
      .type = static_cast<braid::TensorMap::Type>(type < kDouble ? type : type + 1),
      .swizzle = static_cast<braid::TensorMap::Swizzle>(swizzle),
      .nan_fill = fill != 0,
      .rank = rank,
      .address = reinterpret_cast<std::uint64_t>(address)};
  std::copy_n(dims, rank, made.dims.begin());
  std::copy_n(strides, rank - 1, made.strides.begin());
  std::copy_n(box, rank, made.box.begin());
  std::copy_n(steps, rank, made.steps.begin());
  if (made.problem()) return kInvalidValue;
  const auto encoded = made.encoded();
  std::memcpy(map, encoded.data(), encoded.size());
  return 0;
}

}  // extern "C"
