#include "runtime/fake_state.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "braid/error.h"
#include "runtime/compile/disk_cache.h"
#include "runtime/device_loader.h"
#include "runtime/fake_graph.h"
#include "runtime/fake_result.h"

namespace braid::fake {
namespace {

int contexts[8];

int number(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

}  // namespace

State::State() {
  control.gpus = number("FAKE_CUDA_GPUS", control.gpus);
  control.run_kernels = number("FAKE_CUDA_RUN", 0) == 1;
  control.fail_call = number("FAKE_CUDA_FAIL_CALL", 0);
  control.driver_version = number("FAKE_CUDA_VERSION", control.driver_version);
}

State::~State() {
  if (!live.empty()) std::fprintf(stderr, "stand-in: %zu handles leaked\n", live.size());
}

State& state() {
  static State instance;
  return instance;
}

std::vector<void*>& context_stack() {
  thread_local std::vector<void*> stack{nullptr};
  return stack;
}

void drain() {
  std::set<Stream*> streams;
  {
    const std::lock_guard lock(state().mutex);
    streams = state().streams;
  }
  for (Stream* stream : streams) stream->wait_idle();
}

void* context_of(int gpu) { return &contexts[gpu]; }

int current_gpu() {
  const void* current = context_stack().back();
  return current == nullptr ? -1 : static_cast<int>(static_cast<const int*>(current) - contexts);
}

int enter(const char* call) {
  if (state().control.no_launches) return 0;
  const std::lock_guard lock(state().mutex);
  FakeCuda& control = state().control;
  const bool now = ++control.calls == control.fail_call;
  return now || control.fail == call ? control.error : 0;
}

int enter_context(const char* call) {
  if (const int error = enter(call)) return error;
  const int gpu = current_gpu();
  if (gpu < 0) return kInvalidContext;
  const std::lock_guard lock(state().hardware.mutex);
  return state().hardware.gpus[static_cast<std::size_t>(gpu)].fault;
}

Device* cpu() {
  if (!state().control.run_kernels) return nullptr;
  static const DiskCache kCache(DiskCache::default_directory());
  const std::lock_guard lock(state().mutex);
  if (state().cpu == nullptr)
    state().cpu = open_device(DeviceKind::kCpu, {.world = 8, .cache = &kCache});
  return state().cpu.get();
}

int create(const char* call, Kind kind, void** handle) {
  if (const int error = enter_context(call)) return error;
  auto made = std::make_unique<Handle>(Handle{.kind = kind, .gpu = current_gpu()});
  if (kind == Kind::kStream) {
    int queues = state().control.queues;
    if (queues == 0) queues = std::max(1, number("CUDA_DEVICE_MAX_CONNECTIONS", 8));
    made->stream =
        std::make_unique<Stream>(state().hardware, made->gpu, queues, state().control.delay_ms);
    if (Device* device = cpu()) made->cpu_stream = device->create_stream(0);
  }
  *handle = made.release();
  const std::lock_guard lock(state().mutex);
  state().live.insert(*handle);
  if (kind == Kind::kStream) state().streams.insert(static_cast<Handle*>(*handle)->stream.get());
  return 0;
}

Handle* find(void* handle, Kind kind) {
  const std::lock_guard lock(state().mutex);
  if (!state().live.contains(handle)) return nullptr;
  auto* found = static_cast<Handle*>(handle);
  return found->kind == kind ? found : nullptr;
}

int destroy(void* handle, Kind kind) {
  std::unique_ptr<Handle> found(find(handle, kind));
  if (found == nullptr || current_gpu() < 0) {
    (void)found.release();
    return kInvalidHandle;
  }
  if (kind == Kind::kModule) drain();
  {
    const std::lock_guard lock(state().mutex);
    state().live.erase(state().live.find(handle));
    state().streams.erase(found->stream.get());
  }
  found->stream = nullptr;  // waits for its work, which uses the rest
  return 0;
}

void release_context(int gpu) {
  const std::lock_guard lock(state().mutex);
  state().live.erase(state().live.find(context_of(gpu)));
  if (state().live.contains(context_of(gpu))) return;
  std::erase_if(state().links, [&](const auto& link) { return link.first == gpu; });
  const std::lock_guard hardware_lock(state().hardware.mutex);
  state().hardware.gpus[static_cast<std::size_t>(gpu)].fault = 0;
}

int allocate(const char* call, std::size_t bytes, int gpu, unsigned long long* address) {
  if (const int error = enter_context(call)) return error;
  if (bytes == 0) return kInvalidValue;
  Allocation made{bytes, gpu, nullptr, {}};
  if (Device* device = cpu()) {
    made.cpu = device->allocate(0, bytes);
    *address = made.cpu->address();
  } else {
    *address =
        reinterpret_cast<unsigned long long>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  }
  const std::lock_guard lock(state().mutex);
  state().live.insert(reinterpret_cast<void*>(*address));
  state().memory.emplace(*address, std::move(made));
  return 0;
}

int free_memory(unsigned long long address) {
  drain();
  const std::lock_guard lock(state().mutex);
  const auto it = state().memory.find(address);
  if (it == state().memory.end() || it->second.access || current_gpu() < 0) return kInvalidValue;
  state().live.erase(state().live.find(reinterpret_cast<void*>(address)));
  if (it->second.cpu == nullptr) std::free(reinterpret_cast<void*>(address));
  state().memory.erase(it);
  return 0;
}

Owner owner_of(unsigned long long address, std::size_t bytes) {
  const std::lock_guard lock(state().mutex);
  auto next = state().memory.upper_bound(address);
  if (next == state().memory.begin()) return {};
  const auto& [start, allocation] = *--next;
  const std::size_t offset = address - start;
  if (offset > allocation.bytes || bytes > allocation.bytes - offset) return {};
  return {true, allocation.gpu, start, allocation.bytes};
}

bool reaches(int gpu, unsigned long long address) {
  const Owner owner = owner_of(address, 1);
  if (!owner.known || owner.gpu == kHost) return true;
  const std::lock_guard lock(state().mutex);
  const auto found = state().memory.find(owner.begin);
  if (found != state().memory.end() && found->second.access) {
    return found->second.access->contains(gpu);
  }
  return owner.gpu == gpu || state().links.contains({gpu, owner.gpu});
}

int enqueue(const char* call, void* stream, bool good, Work work, bool block) {
  if (const int error = enter_context(call)) return error;
  Handle* found = find(stream, Kind::kStream);
  if (found == nullptr) return kInvalidHandle;
  if (!good) return kInvalidValue;
  if (record_work(*found, work)) return 0;
  const auto mark = found->stream->submit(std::move(work));
  if (block) found->stream->wait(mark);
  return block ? enter_context(call) : 0;
}

}  // namespace braid::fake
