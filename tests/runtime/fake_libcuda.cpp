// A stand-in for the CUDA driver: the calls of src/runtime/cuda/cuda_api.h over host memory, in
// order and at once. It counts live handles and fails the call it is told to fail. Kernels do not
// run: the last launch is kept for inspection.
#include "runtime/fake_libcuda.h"

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <vector>

namespace {

struct State {
  braid::FakeCuda control;
  std::multiset<const void*> live;  ///< handles and retained contexts
  std::vector<void*> context_stack{nullptr};
};

State& state() {
  static State instance;
  return instance;
}

int enter(const char* call) { return state().control.fail == call ? state().control.error : 0; }

// A call that works in the current context.
int enter_context(const char* call) {
  if (const int error = enter(call)) return error;
  return state().context_stack.back() == nullptr ? 201 : 0;
}

int create(const char* call, void** handle) {
  if (const int error = enter_context(call)) return error;
  *handle = std::malloc(16);
  state().live.insert(*handle);
  return 0;
}

int destroy(void* handle) {
  const auto found = state().live.find(handle);
  if (found == state().live.end() || state().context_stack.back() == nullptr) return 400;
  state().live.erase(found);
  std::free(handle);
  return 0;
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
  void* memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  state().live.insert(memory);
  *address = reinterpret_cast<unsigned long long>(memory);
  return 0;
}
int cuMemFree_v2(unsigned long long address) { return destroy(reinterpret_cast<void*>(address)); }
int cuMemcpyAsync(unsigned long long dst, unsigned long long src, std::size_t bytes, void*) {
  if (const int error = enter_context("cuMemcpyAsync")) return error;
  std::memmove(reinterpret_cast<void*>(dst), reinterpret_cast<const void*>(src), bytes);
  return 0;
}
int cuMemcpyHtoDAsync_v2(unsigned long long dst, const void* src, std::size_t bytes, void*) {
  if (const int error = enter_context("cuMemcpyHtoDAsync")) return error;
  std::memcpy(reinterpret_cast<void*>(dst), src, bytes);
  return 0;
}
int cuMemcpyDtoHAsync_v2(void* dst, unsigned long long src, std::size_t bytes, void*) {
  if (const int error = enter_context("cuMemcpyDtoHAsync")) return error;
  std::memcpy(dst, reinterpret_cast<const void*>(src), bytes);
  return 0;
}
int cuMemsetD8Async(unsigned long long dst, unsigned char value, std::size_t bytes, void*) {
  if (const int error = enter_context("cuMemsetD8Async")) return error;
  std::memset(reinterpret_cast<void*>(dst), value, bytes);
  return 0;
}
int cuStreamCreate(void** stream, unsigned) { return create("cuStreamCreate", stream); }
int cuStreamDestroy_v2(void* stream) { return destroy(stream); }
int cuStreamSynchronize(void*) { return enter_context("cuStreamSynchronize"); }
int cuStreamWaitEvent(void*, void*, unsigned) { return enter_context("cuStreamWaitEvent"); }
int cuEventCreate(void** event, unsigned) { return create("cuEventCreate", event); }
int cuEventDestroy_v2(void* event) { return destroy(event); }
int cuEventRecord(void*, void*) { return enter_context("cuEventRecord"); }
int cuModuleLoadDataEx(void** module, const void* image, unsigned, int*, void** values) {
  state().control.image = static_cast<const char*>(image);
  if (enter("cuModuleLoadDataEx") != 0) std::strcpy(static_cast<char*>(values[0]), "fake log");
  return create("cuModuleLoadDataEx", module);
}
int cuModuleUnload(void* module) { return destroy(module); }
// A function is the name of its entry.
int cuModuleGetFunction(void** function, void*, const char* name) {
  if (std::strcmp(name, "missing") == 0) return 500;
  static std::set<std::string> entries;
  *function = const_cast<char*>(entries.insert(name).first->c_str());
  return enter_context("cuModuleGetFunction");
}
int cuFuncSetAttribute(void*, int, int value) {
  return value > 227 << 10 ? 1 : enter_context("cuFuncSetAttribute");
}
int cuLaunchKernel(void* function, unsigned grid_x, unsigned, unsigned, unsigned block_x, unsigned,
                   unsigned, unsigned shared_bytes, void*, void** args, void**) {
  if (const int error = enter_context("cuLaunchKernel")) return error;
  braid::FakeCuda& control = state().control;
  control.launch = {grid_x, block_x, shared_bytes, *static_cast<int*>(args[0])};
  ++control.launches;
  if (control.on_launch != nullptr) control.on_launch(static_cast<const char*>(function), args);
  return 0;
}

}  // extern "C"
