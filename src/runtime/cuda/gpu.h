#pragma once

#include <memory>

#include "braid/error.h"
#include "ir/non_copyable.h"
#include "runtime/cuda/cuda_api.h"

namespace braid::cuda {

/// The primary context of one GPU. Every object made in it keeps it alive.
class Gpu : NonCopyable {
 public:
  Gpu(const Api& api, int ordinal) : api_(api) {
    api_.run(api_.cuDeviceGet, &device_, ordinal);
    maps_memory_ = device_attribute(api_, kAttributeVirtualMemory, device_) != 0;
    if (device_attribute(api_, kAttributeFileHandles, device_) != 0) handle_types_ |= kHandleFile;
    if (device_attribute(api_, kAttributeFabricHandles, device_) != 0) {
      handle_types_ |= kHandleFabric;
    }
    has_multicast_ = maps_memory_ && handle_types_ != 0 && api_.cuMulticastCreate != nullptr &&
                     device_attribute(api_, kAttributeMulticast, device_) != 0;
    api_.run(api_.cuDevicePrimaryCtxRetain, &context_, device_);
  }
  ~Gpu() { api_.cuDevicePrimaryCtxRelease(device_); }

  [[nodiscard]] const Api& api() const { return api_; }
  [[nodiscard]] Context context() const { return context_; }
  [[nodiscard]] Ordinal device() const { return device_; }
  /// Whether memory can be mapped at chosen addresses (a virtual GPU may refuse that).
  [[nodiscard]] bool maps_memory() const { return maps_memory_; }
  /// How other processes can import such memory: kHandleFile, kHandleFabric, both or neither.
  [[nodiscard]] int handle_types() const { return handle_types_; }

  /// Whether the driver claims multicast support; try_multicast tests it.
  [[nodiscard]] bool has_multicast() const { return has_multicast_; }

 private:
  const Api& api_;
  Ordinal device_ = 0;
  Context context_ = nullptr;
  bool maps_memory_ = false;
  int handle_types_ = 0;
  bool has_multicast_ = false;
};

using GpuRef = std::shared_ptr<const Gpu>;

/// Makes a GPU's context current for a scope, and restores the caller's afterwards. If it is
/// current already (one GPU, a server's worker thread) this is one driver call.
class Current : NonCopyable {
 public:
  explicit Current(const Gpu& gpu) : api_(gpu.api()) {
    Context now = nullptr;
    api_.run(api_.cuCtxGetCurrent, &now);
    if (now == gpu.context()) return;
    api_.run(api_.cuCtxPushCurrent, gpu.context());
    pushed_ = true;
  }
  ~Current() {
    Context popped = nullptr;
    if (pushed_) api_.cuCtxPopCurrent(&popped);
  }

 private:
  const Api& api_;
  bool pushed_ = false;
};

/// Runs a cleanup call in the GPU's context. Destructors must not throw, and a context that a
/// failed kernel has poisoned fails every call: nothing is left to free then. A call that fails is
/// tried once more.
template <class Call>
void release(const GpuRef& gpu, Call call) noexcept {
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      const Current current(*gpu);
      call(gpu->api());
      return;
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
    }
  }
}

}  // namespace braid::cuda
