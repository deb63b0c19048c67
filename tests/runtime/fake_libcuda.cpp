// A stand-in for the CUDA driver: the calls of src/runtime/cuda/cuda_api.h over host memory. It
// checks handles, ranges, launch configurations and the current context as the driver does, counts
// live handles and fails the call it is told to fail. Work runs in order and at once, and kernels
// do nothing; or, when told so, work goes to streams of the cpu device, which runs the kernels'
// PTX.
#include "runtime/fake_libcuda.h"

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "braid/device.h"
#include "braid/error.h"
#include "runtime/device_loader.h"
#include "runtime/disk_cache.h"

namespace {

constexpr int kInvalidValue = 1;
constexpr int kInvalidContext = 201;
constexpr int kInvalidHandle = 400;
constexpr int kLaunchFailed = 719;

enum class Kind { kStream, kEvent, kModule };

struct FakeFunction {
  std::string entry;
  std::size_t parameters = 0;
  int max_shared = 48 << 10;
  braid::Function* cpu = nullptr;
};

/// What a handle points at.
struct Handle {
  Kind kind;
  std::unique_ptr<braid::Stream> stream;
  std::unique_ptr<braid::Event> event;
  std::unique_ptr<braid::Module> module;
  std::string ptx;
  std::map<std::string, FakeFunction> functions;
};

struct State {
  braid::FakeCuda control;
  std::multiset<const void*> live;  ///< handles, memory and retained contexts
  std::map<unsigned long long, std::size_t> memory;
  std::vector<void*> context_stack{nullptr};
  std::unique_ptr<braid::Device> cpu;

  State() {
    const char* run = std::getenv("FAKE_CUDA_RUN");
    control.run_kernels = run != nullptr && *run == '1';
    const char* fail = std::getenv("FAKE_CUDA_FAIL_CALL");
    if (fail != nullptr) control.fail_call = std::atoi(fail);
  }
  ~State() {
    if (!live.empty()) std::fprintf(stderr, "stand-in: %zu handles leaked\n", live.size());
  }
};

State& state() {
  static State instance;
  return instance;
}

int enter(const char* call) {
  braid::FakeCuda& control = state().control;
  const bool now = ++control.calls == control.fail_call;
  return now || control.fail == call ? control.error : 0;
}

// A call that works in the current context.
int enter_context(const char* call) {
  if (const int error = enter(call)) return error;
  return state().context_stack.back() == nullptr ? kInvalidContext : 0;
}

/// The cpu device that runs kernels, or nothing.
braid::Device* cpu() {
  if (!state().control.run_kernels) return nullptr;
  static const braid::DiskCache kCache(braid::DiskCache::default_directory());
  if (state().cpu == nullptr)
    state().cpu = braid::open_device("cpu", {.world = 8, .cache = &kCache});
  return state().cpu.get();
}

int create(const char* call, Kind kind, void** handle) {
  if (const int error = enter_context(call)) return error;
  auto made = std::make_unique<Handle>(Handle{.kind = kind});
  if (braid::Device* device = cpu()) {
    if (kind == Kind::kStream) made->stream = device->create_stream(0);
    if (kind == Kind::kEvent) made->event = device->create_event(0);
  }
  *handle = made.release();
  state().live.insert(*handle);
  return 0;
}

Handle* find(void* handle, Kind kind) {
  if (!state().live.contains(handle)) return nullptr;
  auto* found = static_cast<Handle*>(handle);
  return found->kind == kind ? found : nullptr;
}

int destroy(void* handle, Kind kind) {
  Handle* found = find(handle, kind);
  if (found == nullptr || state().context_stack.back() == nullptr) return kInvalidHandle;
  state().live.erase(state().live.find(handle));
  delete found;
  return 0;
}

/// Whether [address, address + bytes) lies in one allocation. Callers may bind memory of their own
/// where kernels do not run.
bool in_memory(unsigned long long address, std::size_t bytes) {
  if (!state().control.run_kernels) return true;
  auto next = state().memory.upper_bound(address);
  if (next == state().memory.begin()) return false;
  const auto& [start, size] = *--next;
  return address - start <= size && bytes <= size - (address - start);
}

int allocate(std::size_t bytes, unsigned long long* address) {
  if (bytes == 0) return kInvalidValue;
  void* memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  state().live.insert(memory);
  *address = reinterpret_cast<unsigned long long>(memory);
  state().memory[*address] = bytes;
  return 0;
}

/// Work on a stream: on the cpu device's, else at once.
template <class OnStream, class AtOnce>
int enqueue(const char* call, void* stream, bool good, OnStream on_stream, AtOnce at_once) {
  if (const int error = enter_context(call)) return error;
  Handle* found = find(stream, Kind::kStream);
  if (found == nullptr) return kInvalidHandle;
  if (!good) return kInvalidValue;
  found->stream != nullptr ? on_stream(*found->stream) : at_once();
  return 0;
}

/// The names of the entries in a PTX text and the number of their parameters.
std::map<std::string, FakeFunction> entries_of(const std::string& ptx) {
  std::map<std::string, FakeFunction> entries;
  const std::string mark = ".entry ";
  for (std::size_t at = ptx.find(mark); at != std::string::npos; at = ptx.find(mark, at)) {
    at += mark.size();
    const std::size_t open = ptx.find('(', at);
    const std::size_t close = ptx.find(')', at);
    FakeFunction function;
    function.entry = ptx.substr(at, ptx.find_first_of("( \t\r\n", at) - at);
    for (std::size_t p = ptx.find(".param", open); p < close; p = ptx.find(".param", p + 1)) {
      ++function.parameters;
    }
    entries.emplace(function.entry, function);
  }
  return entries;
}

int contexts[8];

}  // namespace

extern "C" {

braid::FakeCuda* fake_cuda() {
  state().control.live_handles = state().live.size();
  state().control.current_context = state().context_stack.back();
  return &state().control;
}

int cuInit(unsigned) { return enter("cuInit"); }
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return enter("cuDriverGetVersion");
}
int cuGetErrorName(int error, const char** name) {
  *name = error == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
  return 0;
}
int cuGetErrorString(int error, const char** text) {
  *text = error == 2 ? "out of memory" : "fake error";
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = state().control.gpus;
  return enter("cuDeviceGetCount");
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return enter("cuDeviceGet");
}
int cuDeviceGetName(char* name, int bytes, int) {
  std::strncpy(name, "Fake GPU", static_cast<std::size_t>(bytes));
  return enter("cuDeviceGetName");
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  const int capability = state().control.capability[device];
  *value = attribute == 75 ? capability / 10 : capability % 10;
  return enter("cuDeviceGetAttribute");
}
int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  *bytes = 1ULL << 30;
  return enter("cuDeviceTotalMem");
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  if (const int error = enter("cuDevicePrimaryCtxRetain")) return error;
  *context = &contexts[device];
  state().live.insert(*context);
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
  state().live.erase(state().live.find(&contexts[device]));
  return 0;
}
int cuCtxGetCurrent(void** context) {
  *context = state().context_stack.back();
  return enter("cuCtxGetCurrent");
}
int cuCtxPushCurrent_v2(void* context) {
  if (const int error = enter("cuCtxPushCurrent")) return error;
  state().context_stack.push_back(context);
  return 0;
}
int cuCtxPopCurrent_v2(void** context) {
  *context = state().context_stack.back();
  state().context_stack.pop_back();
  return 0;
}
int cuDeviceCanAccessPeer(int* can, int, int) {
  *can = state().control.peer_access ? 1 : 0;
  return enter("cuDeviceCanAccessPeer");
}
int cuCtxEnablePeerAccess(void*, unsigned) {
  if (const int error = enter_context("cuCtxEnablePeerAccess")) return error;
  return state().control.peer_links++ < 2 ? 0 : 704;
}
int cuMemAlloc_v2(unsigned long long* address, std::size_t bytes) {
  if (const int error = enter_context("cuMemAlloc")) return error;
  return allocate(bytes, address);
}
int cuMemFree_v2(unsigned long long address) {
  if (state().memory.erase(address) == 0 || state().context_stack.back() == nullptr) {
    return kInvalidValue;
  }
  void* memory = reinterpret_cast<void*>(address);
  state().live.erase(state().live.find(memory));
  std::free(memory);
  return 0;
}
int cuMemHostAlloc(void** address, std::size_t bytes, unsigned) {
  if (const int error = enter_context("cuMemHostAlloc")) return error;
  unsigned long long memory = 0;
  const int error = allocate(bytes, &memory);
  *address = reinterpret_cast<void*>(memory);
  return error;
}
int cuMemFreeHost(void* address) {
  return cuMemFree_v2(reinterpret_cast<unsigned long long>(address));
}
int cuMemcpyAsync(unsigned long long dst, unsigned long long src, std::size_t bytes, void* stream) {
  return enqueue(
      "cuMemcpyAsync", stream, in_memory(dst, bytes) && in_memory(src, bytes),
      [&](braid::Stream& s) { s.copy(dst, src, bytes); },
      [&] {
        std::memmove(reinterpret_cast<void*>(dst), reinterpret_cast<const void*>(src), bytes);
      });
}
int cuMemcpyHtoDAsync_v2(unsigned long long dst, const void* src, std::size_t bytes, void* stream) {
  return enqueue(
      "cuMemcpyHtoDAsync", stream, in_memory(dst, bytes),
      [&](braid::Stream& s) { s.copy_from_host(dst, src, bytes); },
      [&] { std::memcpy(reinterpret_cast<void*>(dst), src, bytes); });
}
int cuMemcpyDtoHAsync_v2(void* dst, unsigned long long src, std::size_t bytes, void* stream) {
  return enqueue(
      "cuMemcpyDtoHAsync", stream, in_memory(src, bytes),
      [&](braid::Stream& s) { s.copy_to_host(dst, src, bytes); },
      [&] { std::memcpy(dst, reinterpret_cast<const void*>(src), bytes); });
}
int cuMemsetD8Async(unsigned long long dst, unsigned char value, std::size_t bytes, void* stream) {
  return enqueue(
      "cuMemsetD8Async", stream, in_memory(dst, bytes),
      [&](braid::Stream& s) { s.fill(dst, value, bytes); },
      [&] { std::memset(reinterpret_cast<void*>(dst), value, bytes); });
}
int cuStreamCreate(void** stream, unsigned) {
  return create("cuStreamCreate", Kind::kStream, stream);
}
int cuStreamDestroy_v2(void* stream) { return destroy(stream, Kind::kStream); }
int cuStreamSynchronize(void* stream) {
  if (const int error = enter_context("cuStreamSynchronize")) return error;
  Handle* found = find(stream, Kind::kStream);
  if (found == nullptr) return kInvalidHandle;
  try {
    if (found->stream != nullptr) found->stream->synchronize();
  } catch (const braid::Error& error) {
    std::fprintf(stderr, "stand-in: %s\n", error.what());
    return kLaunchFailed;
  }
  return 0;
}
int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  Handle* found = find(event, Kind::kEvent);
  return enqueue(
      "cuStreamWaitEvent", stream, found != nullptr,
      [&](braid::Stream& s) { s.wait(*found->event); }, [] {});
}
int cuEventCreate(void** event, unsigned) { return create("cuEventCreate", Kind::kEvent, event); }
int cuEventDestroy_v2(void* event) { return destroy(event, Kind::kEvent); }
int cuEventRecord(void* event, void* stream) {
  Handle* found = find(event, Kind::kEvent);
  return enqueue(
      "cuEventRecord", stream, found != nullptr, [&](braid::Stream& s) { s.record(*found->event); },
      [] {});
}
int cuModuleLoadDataEx(void** module, const void* image, unsigned, int*, void** values) {
  state().control.image = static_cast<const char*>(image);
  const int error = create("cuModuleLoadDataEx", Kind::kModule, module);
  if (error != 0) {
    std::strcpy(static_cast<char*>(values[0]), "fake log");
    return error;
  }
  auto* made = static_cast<Handle*>(*module);
  made->functions = entries_of(state().control.image);
  if (braid::Device* device = cpu(); device != nullptr && !made->functions.empty()) {
    try {
      made->module = device->load(0, {made->functions.begin()->first, state().control.image, {}});
    } catch (const braid::Error& problem) {
      std::fprintf(stderr, "stand-in: %s\n", problem.what());
      destroy(*module, Kind::kModule);
      return 218;  // CUDA_ERROR_INVALID_PTX
    }
  }
  return 0;
}
int cuModuleUnload(void* module) { return destroy(module, Kind::kModule); }
int cuModuleGetFunction(void** function, void* module, const char* name) {
  if (const int error = enter_context("cuModuleGetFunction")) return error;
  Handle* found = find(module, Kind::kModule);
  if (found == nullptr) return kInvalidHandle;
  if (std::strcmp(name, "missing") == 0) return 500;
  // Images that are no PTX have every entry.
  auto it = found->functions.find(name);
  if (it == found->functions.end()) {
    if (found->module != nullptr) return 500;
    it = found->functions.emplace(name, FakeFunction{name}).first;
  }
  if (found->module != nullptr) it->second.cpu = &found->module->function(name);
  *function = &it->second;
  return 0;
}
int cuFuncSetAttribute(void* function, int, int value) {
  if (value > 227 << 10) return kInvalidValue;
  if (const int error = enter_context("cuFuncSetAttribute")) return error;
  auto* fake = static_cast<FakeFunction*>(function);
  fake->max_shared = value;
  if (fake->cpu != nullptr) fake->cpu->set_max_dynamic_shared(static_cast<std::uint32_t>(value));
  return 0;
}
int cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   void* stream, void** args, void**) {
  auto* fake = static_cast<FakeFunction*>(function);
  const bool good = grid_x * grid_y * grid_z > 0 && block_x * block_y * block_z > 0 &&
                    block_x * block_y * block_z <= 1024 &&
                    static_cast<int>(shared_bytes) <= fake->max_shared;
  return enqueue(
      "cuLaunchKernel", stream, good,
      [&](braid::Stream& s) {
        s.launch(*fake->cpu, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes,
                 {args, fake->parameters});
      },
      [&] {
        braid::FakeCuda& control = state().control;
        control.launch = {grid_x, block_x, shared_bytes, *static_cast<int*>(args[0])};
        ++control.launches;
        if (control.on_launch != nullptr) control.on_launch(fake->entry.c_str(), args);
      });
}

}  // extern "C"
