// A stand-in for the CUDA driver: the calls of src/runtime/cuda/cuda_api.h over host memory. It
// checks handles, ranges, launch configurations, images and the current context as the driver does,
// counts live handles and fails the call it is told to fail. Streams work in the background through
// a GPU's queues (fake_hardware.h). Kernels do nothing; or, when told so, the cpu device runs their
// PTX.
#include "runtime/fake_libcuda.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <thread>

#include "braid/error.h"
#include "runtime/fake_graph.h"
#include "runtime/fake_result.h"
#include "runtime/fake_state.h"

namespace {

using namespace braid::fake;  // NOLINT(google-build-using-namespace)

template <class Body>
Work at_once(Body body) {
  return {[body] {
            body();
            return 0;
          },
          0, nullptr};
}

/// Whether a call may name this stretch. Callers may bind memory of their own where kernels do not
/// run.
bool is_known(unsigned long long address, std::size_t bytes) {
  return !braid::fake::state().control.run_kernels || owner_of(address, bytes).known;
}

/// The driver stages pageable memory of the host, and returns when it is done with it.
bool is_pageable(const void* host, std::size_t bytes) {
  return !owner_of(reinterpret_cast<unsigned long long>(host), bytes).known;
}

std::atomic_ref<std::uint32_t> word_at(unsigned long long address) {
  return std::atomic_ref<std::uint32_t>(*reinterpret_cast<std::uint32_t*>(address));
}

/// The PTX as flawed hardware understands it.
std::string with_flaw(Handle& made, std::string ptx) {
  const auto& [gpu, instruction, lies_as, faults, endless] = state().control.flaw;
  if (gpu >= 0 && gpu != made.gpu) return ptx;
  const auto has = [&](const std::string& text) {
    return !text.empty() && ptx.find(text) != std::string::npos;
  };
  made.faults = has(faults);
  made.endless = has(endless);
  if (instruction.empty()) return ptx;
  for (std::size_t at = 0; (at = ptx.find(instruction, at)) != std::string::npos;) {
    ptx.replace(at, instruction.size(), lies_as);
    at += lies_as.size();
  }
  return ptx;
}

/// Compiles the PTX where kernels run.
int load_for_cpu(Handle& made, const std::string& ptx) {
  braid::Device* device = cpu();
  if (device == nullptr || made.image.entries.empty()) return 0;
  try {
    made.module = device->load(0, {made.image.entries.begin()->first, ptx, {}, {}});
    return 0;
  } catch (const braid::Error& problem) {
    std::fprintf(stderr, "stand-in: %s\n", problem.what());
    return kInvalidPtx;
  }
}

const std::map<int, std::pair<const char*, const char*>>& texts() {
  static const std::map<int, std::pair<const char*, const char*>> kTexts{
      {2, {"CUDA_ERROR_OUT_OF_MEMORY", "out of memory"}},
      {200, {"CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"}},
      {218, {"CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"}},
      {221, {"CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "PTX JIT compiler library not found"}},
      {222,
       {"CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
        "the provided PTX was compiled with an unsupported toolchain."}},
      {700, {"CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"}},
      {912, {"CUDA_ERROR_INVALID_CLUSTER_SIZE", "invalid cluster size"}}};
  return kTexts;
}

}  // namespace

extern "C" {

braid::FakeCuda* fake_cuda() {
  const std::lock_guard lock(state().mutex);
  state().control.live_handles = state().live.size();
  state().control.current_context = context_stack().back();
  return &state().control;
}

int fake_cuda_owner(unsigned long long address, std::size_t bytes) {
  const Owner owner = owner_of(address, bytes);
  return owner.known ? owner.gpu : -2;
}

int cuInit(unsigned) { return enter("cuInit"); }
int cuDriverGetVersion(int* version) {
  *version = state().control.driver_version;
  return enter("cuDriverGetVersion");
}
int cuGetErrorName(int error, const char** name) {
  const auto found = texts().find(error);
  *name = found == texts().end() ? "CUDA_ERROR_FAKE" : found->second.first;
  return 0;
}
int cuGetErrorString(int error, const char** text) {
  const auto found = texts().find(error);
  *text = found == texts().end() ? "fake error" : found->second.second;
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
  std::strncpy(name, state().control.name.c_str(), static_cast<std::size_t>(bytes));
  return enter("cuDeviceGetName");
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  const braid::FakeCuda& control = state().control;
  const int capability = control.capability[static_cast<std::size_t>(device)];
  const std::map<int, int> values{{75, capability / 10},
                                  {76, capability % 10},
                                  {102, control.virtual_memory ? 1 : 0},
                                  {103, control.file_handles ? 1 : 0},
                                  {128, control.fabric ? 1 : 0},
                                  {132, control.multicast ? 1 : 0}};
  const auto found = values.find(attribute);
  if (found == values.end()) return kInvalidValue;
  *value = found->second;
  return enter("cuDeviceGetAttribute");
}
int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  *bytes = 1ULL << 30;
  return enter("cuDeviceTotalMem");
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  if (const int error = enter("cuDevicePrimaryCtxRetain")) return error;
  const std::lock_guard lock(state().mutex);
  *context = context_of(device);
  state().live.insert(*context);
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
  release_context(device);
  return 0;
}
int cuCtxGetCurrent(void** context) {
  *context = context_stack().back();
  return enter("cuCtxGetCurrent");
}
int cuCtxGetDevice(int* device) {
  *device = current_gpu();
  return *device < 0 ? kInvalidContext : 0;
}
int cuCtxPushCurrent_v2(void* context) {
  if (const int error = enter("cuCtxPushCurrent")) return error;
  context_stack().push_back(context);
  return 0;
}
int cuCtxPopCurrent_v2(void** context) {
  *context = context_stack().back();
  context_stack().pop_back();
  return 0;
}
int cuDeviceCanAccessPeer(int* can, int, int) {
  *can = state().control.peer_access ? 1 : 0;
  return enter("cuDeviceCanAccessPeer");
}
int cuCtxEnablePeerAccess(void* peer, unsigned) {
  if (const int error = enter_context("cuCtxEnablePeerAccess")) return error;
  const std::lock_guard lock(state().mutex);
  ++state().control.peer_links;
  const auto to = static_cast<int>(static_cast<int*>(peer) - static_cast<int*>(context_of(0)));
  const std::pair<int, int> link{current_gpu(), to};
  if (link == state().control.unlinked) return 0;
  return state().links.insert(link).second ? 0 : kAlreadyEnabled;
}
int cuMemAlloc_v2(unsigned long long* address, std::size_t bytes) {
  return allocate("cuMemAlloc", bytes, current_gpu(), address);
}
int cuMemFree_v2(unsigned long long address) { return free_memory(address); }
int cuMemHostAlloc(void** address, std::size_t bytes, unsigned) {
  unsigned long long memory = 0;
  const int error = allocate("cuMemHostAlloc", bytes, kHost, &memory);
  if (error == 0) *address = reinterpret_cast<void*>(memory);
  return error;
}
int cuMemFreeHost(void* address) {
  return free_memory(reinterpret_cast<unsigned long long>(address));
}
int cuMemcpyAsync(unsigned long long dst, unsigned long long src, std::size_t bytes, void* stream) {
  return enqueue(
      "cuMemcpyAsync", stream, is_known(dst, bytes) && is_known(src, bytes), at_once([=] {
        std::memmove(reinterpret_cast<void*>(dst), reinterpret_cast<const void*>(src), bytes);
      }));
}
int cuMemcpyHtoDAsync_v2(unsigned long long dst, const void* src, std::size_t bytes, void* stream) {
  return enqueue("cuMemcpyHtoDAsync", stream, is_known(dst, bytes),
                 at_once([=] { std::memcpy(reinterpret_cast<void*>(dst), src, bytes); }),
                 is_pageable(src, bytes));
}
int cuMemcpyDtoHAsync_v2(void* dst, unsigned long long src, std::size_t bytes, void* stream) {
  return enqueue("cuMemcpyDtoHAsync", stream, is_known(src, bytes),
                 at_once([=] { std::memcpy(dst, reinterpret_cast<const void*>(src), bytes); }),
                 is_pageable(dst, bytes));
}
int cuMemsetD8Async(unsigned long long dst, unsigned char value, std::size_t bytes, void* stream) {
  const int gpu = current_gpu();
  Work work;
  work.run = [=] {
    if (!reaches(gpu, dst)) return kIllegalAddress;
    const auto skips = state().control.skips_fill;
    if (skips != nullptr && skips(bytes)) return 0;
    std::memset(reinterpret_cast<void*>(dst), value, bytes);
    return 0;
  };
  return enqueue("cuMemsetD8Async", stream, is_known(dst, bytes), std::move(work));
}
int cuStreamWriteValue32_v2(void* stream, unsigned long long address, std::uint32_t value,
                            unsigned) {
  return enqueue("cuStreamWriteValue32", stream, is_known(address, 4) && address % 4 == 0,
                 at_once([=] { word_at(address) = value; }));
}
int cuStreamWaitValue32_v2(void* stream, unsigned long long address, std::uint32_t value,
                           unsigned flags) {
  Work work;
  work.run = [=] {
    const auto start = std::chrono::steady_clock::now();
    while (static_cast<std::int32_t>(word_at(address).load() - value) < 0) {
      if (std::chrono::steady_clock::now() - start > std::chrono::seconds(10)) {
        return kLaunchTimeout;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    return 0;
  };
  return enqueue("cuStreamWaitValue32", stream,
                 is_known(address, 4) && address % 4 == 0 && flags == 0, std::move(work));
}
int cuMemGetAddressRange_v2(unsigned long long* base, std::size_t* bytes,
                            unsigned long long address) {
  if (const int error = enter_context("cuMemGetAddressRange")) return error;
  const Owner owner = owner_of(address, 1);
  if (!owner.known) return kNotFound;
  *base = owner.begin;
  *bytes = owner.bytes;
  return 0;
}
int cuPointerGetAttribute(void* value, int attribute, unsigned long long address) {
  if (const int error = enter_context("cuPointerGetAttribute")) return error;
  const Owner owner = owner_of(address, 1);
  if (!owner.known) {
    const braid::FakeCuda& control = state().control;
    if (attribute != 2 || control.run_kernels || control.strict) return kInvalidValue;
    *static_cast<unsigned*>(value) = 2;  // what a test binds where no kernel runs
    return 0;
  }
  switch (attribute) {
    case 1:
      *static_cast<void**>(value) = owner.gpu == kHost ? nullptr
                                    : owner.begin == state().control.foreign_memory
                                        ? &state().control
                                        : context_of(owner.gpu);
      return 0;
    case 2:
      *static_cast<unsigned*>(value) = owner.gpu == kHost ? 1 : 2;
      return 0;
    case 11:
      *static_cast<unsigned long long*>(value) = owner.begin;
      return 0;
    case 12:
      *static_cast<std::size_t*>(value) = owner.bytes;
      return 0;
    default:
      return kInvalidValue;
  }
}
int cuStreamGetCtx(void* stream, void** context) {
  if (const int error = enter_context("cuStreamGetCtx")) return error;
  const Handle* found = find(stream, Kind::kStream);
  if (found == nullptr) return kInvalidHandle;
  *context = context_of(found->gpu);
  return 0;
}
int cuLaunchHostFunc(void* stream, void (*function)(void*), void* data) {
  return enqueue("cuLaunchHostFunc", stream, function != nullptr, at_once([=] { function(data); }));
}
int cuStreamCreate(void** stream, unsigned) {
  const int error = create("cuStreamCreate", Kind::kStream, stream);
  if (error == 0) state().control.last_stream = *stream;
  return error;
}
int cuStreamDestroy_v2(void* stream) { return destroy(stream, Kind::kStream); }
int cuStreamSynchronize(void* stream) {
  if (const int error = enter_context("cuStreamSynchronize")) return error;
  Handle* found = find(stream, Kind::kStream);
  if (found == nullptr) return kInvalidHandle;
  if (found->capture != nullptr) return kCaptureUnsupported;
  found->stream->wait_idle();
  const std::lock_guard lock(state().hardware.mutex);
  return state().hardware.gpus[static_cast<std::size_t>(found->gpu)].fault;
}
int cuStreamIsCapturing(void* stream, int* status) {
  if (const int error = enter_context("cuStreamIsCapturing")) return error;
  const Handle* found = find(stream, Kind::kStream);
  if (found == nullptr) return kInvalidHandle;
  *status = found->capture != nullptr ? 1 : 0;
  return 0;
}
int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  Handle* found = find(event, Kind::kEvent);
  Handle* on = find(stream, Kind::kStream);
  if (found != nullptr && on != nullptr) {
    if (const InCapture recorded = record_wait(*on, *found); recorded.is) return recorded.result;
  }
  Work work = at_once([] {});
  if (found != nullptr) work.after = found->mark;
  return enqueue("cuStreamWaitEvent", stream, found != nullptr, std::move(work));
}
int cuEventCreate(void** event, unsigned flags) {
  const int error = create("cuEventCreate", Kind::kEvent, event);
  if (error == 0) find(*event, Kind::kEvent)->timed = (flags & 2U) == 0;
  return error;
}
int cuEventDestroy_v2(void* event) { return destroy(event, Kind::kEvent); }
int cuEventElapsedTime(float* milliseconds, void* start, void* end) {
  if (const int error = enter_context("cuEventElapsedTime")) return error;
  const Handle* from = find(start, Kind::kEvent);
  const Handle* to = find(end, Kind::kEvent);
  if (from == nullptr || to == nullptr || !from->timed || !to->timed) return kInvalidHandle;
  if (from->gpu != to->gpu || !*from->reached || !*to->reached) return kInvalidHandle;
  const auto elapsed_ms = state().control.elapsed_ms;
  *milliseconds =
      elapsed_ms != nullptr
          ? elapsed_ms()
          : std::chrono::duration<float, std::milli>(**to->reached - **from->reached).count();
  return 0;
}
int cuEventRecord(void* event, void* stream) {
  if (const int error = enter_context("cuEventRecord")) return error;
  Handle* found = find(event, Kind::kEvent);
  Handle* on = find(stream, Kind::kStream);
  if (found == nullptr || on == nullptr || found->gpu != on->gpu) return kInvalidHandle;
  if (record_event(*found, *on).is) return 0;
  found->mark = on->stream->submit(at_once([reached = found->reached, timed = found->timed] {
    *reached = std::chrono::steady_clock::now();
    const auto on_timed_event = state().control.on_timed_event;
    if (timed && on_timed_event != nullptr) on_timed_event();
  }));
  return 0;
}
int cuModuleLoadDataEx(void** module, const void* image, unsigned, int*, void** values) {
  state().control.image = static_cast<const char*>(image);
  ++state().control.modules;
  int error = create("cuModuleLoadDataEx", Kind::kModule, module);
  if (error == 0) {
    auto& made = *static_cast<Handle*>(*module);
    made.image = read_image(image);
    const int capability = state().control.capability[static_cast<std::size_t>(made.gpu)];
    error = check_image(made.image, state().control.driver_version, capability);
    if (error == 0) error = load_for_cpu(made, with_flaw(made, state().control.image));
    if (error != 0 && state().control.lazy_loading) std::swap(error, made.late_error);
    if (error != 0) destroy(*module, Kind::kModule);
  }
  if (error != 0) std::strcpy(static_cast<char*>(values[0]), "fake log");
  return error;
}
int cuModuleUnload(void* module) { return destroy(module, Kind::kModule); }
int cuModuleGetFunction(void** function, void* module, const char* name) {
  if (const int error = enter_context("cuModuleGetFunction")) return error;
  Handle* found = find(module, Kind::kModule);
  if (found == nullptr) return kInvalidHandle;
  if (found->late_error != 0) return found->late_error;
  const auto declared = found->image.entries.find(name);
  const bool is_ptx = found->image.kind == Image::Kind::kPtx;
  if (std::strcmp(name, "missing") == 0 || (is_ptx && declared == found->image.entries.end())) {
    return kNotFound;
  }
  FakeFunction made{.entry = name, .gpu = found->gpu};
  made.faults = found->faults;
  made.endless = found->endless;
  if (is_ptx) {
    made.declared = &declared->second;
    made.max_shared -= declared->second.static_shared;
  }
  if (found->module != nullptr) made.cpu = &found->module->function(name);
  *function = &found->functions.try_emplace(name, made).first->second;
  return 0;
}
int cuFuncSetAttribute(void* function, int, int value) {
  if (const int error = enter_context("cuFuncSetAttribute")) return error;
  auto* fake = static_cast<FakeFunction*>(function);
  const int capability = state().control.capability[static_cast<std::size_t>(fake->gpu)];
  const int fixed = fake->declared == nullptr ? 0 : fake->declared->static_shared;
  if (value > max_shared_opt_in(capability) - fixed) return kInvalidValue;
  fake->max_shared = value;
  if (fake->cpu != nullptr) fake->cpu->set_max_dynamic_shared(static_cast<std::uint32_t>(value));
  return 0;
}

}  // extern "C"
