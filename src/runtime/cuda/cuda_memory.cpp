#include "runtime/cuda/cuda_memory.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "braid/error.h"
#include "ir/fail.h"
#include "runtime/bytes.h"
#include "runtime/cuda/cuda_multicast.h"
#include "runtime/cuda/mapped_memory.h"

namespace braid::cuda {
namespace {

constexpr std::string_view kMemoryTag = "cuda memory";

/// Identifies this process, also among other machines and containers.
std::uint64_t identity() {
  static const std::uint64_t kIdentity = [] {
    std::uint64_t random = 0;
    if (::getrandom(&random, sizeof random, 0) != sizeof random) {
      throw_environment("memory", "no random numbers");
    }
    return random;
  }();
  return kIdentity;
}

/// The content of Memory::export_handle.
struct Handle {
  std::uint64_t process = 0;  ///< identity()
  std::int64_t number = 0;    ///< process id, for messages
  Address address = 0;        ///< address in that process
  std::uint64_t bytes = 0;
  std::uint64_t mapped_bytes = 0;  ///< size of the physical memory
  std::string shared;              ///< PhysicalMemory::share()
  std::string refusal;             ///< why there is no such handle

  [[nodiscard]] std::string encode() const {
    ByteWriter out;
    out.string(kMemoryTag);
    out.value(process);
    out.value(number);
    out.value<std::uint64_t>(address);
    out.value(bytes);
    out.value(mapped_bytes);
    out.string(shared);
    out.string(refusal);
    return out.take();
  }
  static Handle decode(std::string_view encoded) {
    ByteReader in(encoded);
    const bool known = in.string() == kMemoryTag;
    Handle handle;
    handle.process = in.value<std::uint64_t>();
    handle.number = in.value<std::int64_t>();
    handle.address = in.value<std::uint64_t>();
    handle.bytes = in.value<std::uint64_t>();
    handle.mapped_bytes = in.value<std::uint64_t>();
    handle.shared = in.string();
    handle.refusal = in.string();
    if (!known || !in.done() || handle.bytes > handle.mapped_bytes) {
      throw_invalid("memory", "the bytes are no handle of a cuda device's memory");
    }
    return handle;
  }
};

/// For this process; for others if `shared` succeeds.
template <class Share>
std::string handle_of(Address address, std::size_t bytes, std::size_t mapped_bytes, Share share) {
  Handle handle{identity(), ::getpid(), address, bytes, mapped_bytes, {}, {}};
  try {
    handle.shared = share();
  } catch (const Error& error) {
    handle.refusal = error.what();
  }
  return handle.encode();
}

/// Memory of one rank.
class CudaMemory final : public Memory {
 public:
  CudaMemory(GpuRef gpu, std::size_t bytes) : gpu_(std::move(gpu)), bytes_(bytes) {
    const Current current(*gpu_);
    // The driver refuses zero bytes; its allocations are aligned to at least 256 bytes.
    gpu_->api().check(gpu_->api().cuMemAlloc(&address_, std::max<std::size_t>(bytes, 256)),
                      "cuMemAlloc", fmt::format("{} bytes", bytes));
  }
  // The caller's memory: the whole allocation that contains the address.
  CudaMemory(GpuRef gpu, Address address) : gpu_(std::move(gpu)), owned_(false) {
    const Current current(*gpu_);
    const auto range = gpu_->api().require(gpu_->api().cuMemGetAddressRange);
    if (range(&address_, &bytes_, address) == kSuccess) return;
    throw_invalid("memory", "the driver knows no allocation that holds {:#x}", address);
  }
  ~CudaMemory() override {
    if (!owned_) return;
    release(gpu_, [this](const Api& api) { api.cuMemFree(address_); });
  }
  [[nodiscard]] std::uint64_t address() const override { return address_; }
  [[nodiscard]] std::size_t size() const override { return bytes_; }
  [[nodiscard]] std::string export_handle() const override {
    return handle_of(address_, bytes_, bytes_, [&] {
      if (!physical_) physical_.emplace(gpu_, address_, bytes_);
      return physical_->share();
    });
  }

 private:
  GpuRef gpu_;
  std::size_t bytes_ = 0;
  Address address_ = 0;
  bool owned_ = true;
  mutable std::optional<PhysicalMemory> physical_;  ///< if it was made by cuMemCreate
};

/// Memory that all GPUs of the process can reach, and processes that import it.
class SharedMemory final : public Memory {
 public:
  SharedMemory(std::span<const GpuRef> gpus, std::size_t own, std::size_t bytes, std::size_t unit)
      : bytes_(bytes), physical_(gpus[own], bytes, unit), mapping_(physical_, gpus) {}
  [[nodiscard]] std::uint64_t address() const override { return mapping_.address(); }
  [[nodiscard]] std::size_t size() const override { return bytes_; }
  [[nodiscard]] std::string export_handle() const override {
    return handle_of(mapping_.address(), bytes_, physical_.size(),
                     [&] { return physical_.share(); });
  }
  void bind_multicast(Multicast& multicast, std::size_t offset) override {
    bind(multicast, physical_, offset);
  }

 private:
  std::size_t bytes_;
  PhysicalMemory physical_;
  Mapping mapping_;
};

/// Another rank's memory. Within a process all ranks use the same address.
class ImportedMemory final : public Memory {
 public:
  ImportedMemory(const GpuRef& gpu, const Handle& handle)
      : bytes_(handle.bytes), address_(handle.address) {
    if (handle.process == identity()) return;
    if (handle.shared.empty()) {
      throw_environment("memory",
                        "process {} cannot hand it to other processes: {}; expected memory that "
                        "cuMemCreate made with handles for them",
                        handle.number, handle.refusal);
    }
    physical_.emplace(gpu, handle.shared, handle.mapped_bytes);
    mapping_.emplace(*physical_, std::span(&gpu, 1));
    address_ = mapping_->address();
  }
  [[nodiscard]] std::uint64_t address() const override { return address_; }
  [[nodiscard]] std::size_t size() const override { return bytes_; }
  /// The owner binds it.
  void bind_multicast(Multicast&, std::size_t) override {}

 private:
  std::size_t bytes_;
  Address address_;
  std::optional<PhysicalMemory> physical_;  ///< if it belongs to another process
  std::optional<Mapping> mapping_;
};

/// Pinned host memory. With unified addressing, which every 64-bit system has, all GPUs reach it
/// under the host's address.
class HostMemory final : public Memory {
 public:
  HostMemory(GpuRef gpu, std::size_t bytes) : gpu_(std::move(gpu)), bytes_(bytes) {
    const Current current(*gpu_);
    gpu_->api().check(gpu_->api().cuMemHostAlloc(&memory_, std::max<std::size_t>(bytes, 256),
                                                 kHostAllocPortable | kHostAllocMapped),
                      "cuMemHostAlloc", fmt::format("{} bytes", bytes));
  }
  ~HostMemory() override {
    release(gpu_, [this](const Api& api) { api.cuMemFreeHost(memory_); });
  }
  [[nodiscard]] std::uint64_t address() const override {
    return reinterpret_cast<std::uint64_t>(memory_);
  }
  [[nodiscard]] std::size_t size() const override { return bytes_; }

 private:
  GpuRef gpu_;
  std::size_t bytes_;
  void* memory_ = nullptr;
};

}  // namespace

std::unique_ptr<Memory> allocate_memory(GpuRef gpu, std::size_t bytes) {
  return std::make_unique<CudaMemory>(std::move(gpu), bytes);
}

std::unique_ptr<Memory> allocate_shared_memory(std::span<const GpuRef> gpus, std::size_t own,
                                               std::size_t bytes, std::size_t unit) {
  if (!gpus[own]->maps_memory()) return allocate_memory(gpus[own], bytes);
  return std::make_unique<SharedMemory>(gpus, own, bytes, unit);
}

std::unique_ptr<Memory> allocate_host_memory(GpuRef gpu, std::size_t bytes) {
  return std::make_unique<HostMemory>(std::move(gpu), bytes);
}

std::unique_ptr<Memory> find_memory(GpuRef gpu, Address address) {
  return std::make_unique<CudaMemory>(std::move(gpu), address);
}

void check_memory(std::span<const GpuRef> gpus, std::size_t own, Address address,
                  std::size_t bytes) {
  const Api& api = gpus[own]->api();
  if (api.cuPointerGetAttribute == nullptr) return;
  const Current current(*gpus[own]);
  const auto ask = [&](int attribute, auto& value) {
    return api.cuPointerGetAttribute(&value, attribute, address) == kSuccess;
  };
  unsigned type = 0;
  if (!ask(kPointerMemoryType, type)) {
    throw_invalid("", "the driver knows no memory at {:#x}", address);
  }
  Context context = nullptr;  // mapped memory has no context
  if (type == kMemoryTypeDevice && ask(kPointerContext, context) && context != nullptr &&
      std::ranges::none_of(gpus, [&](const GpuRef& gpu) { return gpu->context() == context; })) {
    throw_invalid("",
                  "{:#x} is memory of another CUDA context; expected that of a GPU's primary "
                  "context in this world",
                  address);
  }
  Address begin = 0;
  std::size_t size = 0;
  if (!ask(kPointerRangeStart, begin) || !ask(kPointerRangeSize, size)) return;
  const std::size_t left = size - (address - begin);
  if (left >= bytes) return;
  throw_invalid("", "{} bytes at {:#x}; expected {}", left, address, bytes);
}

std::unique_ptr<Memory> import_memory(GpuRef gpu, std::string_view handle) {
  return std::make_unique<ImportedMemory>(gpu, Handle::decode(handle));
}

}  // namespace braid::cuda
