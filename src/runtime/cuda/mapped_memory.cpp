#include "runtime/cuda/mapped_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "braid/error.h"
#include "runtime/bytes.h"

namespace braid::cuda {
namespace {

MemoryProperties properties_of(const Gpu& gpu, int handle_types) {
  MemoryProperties properties;
  properties.type = kMemoryPinned;
  properties.handle_types = handle_types;
  properties.location = {kLocationDevice, gpu.device()};
  return properties;
}

}  // namespace

PhysicalMemory::PhysicalMemory(GpuRef gpu, std::size_t bytes) : gpu_(std::move(gpu)) {
  const Api& api = gpu_->api();
  const Current current(*gpu_);
  MemoryProperties properties = properties_of(*gpu_, gpu_->handle_types());
  std::size_t unit = 0;
  api.check(api.cuMemGetAllocationGranularity(&unit, &properties, kGranularityMinimum),
            "cuMemGetAllocationGranularity");
  bytes_ = (std::max<std::size_t>(bytes, 1) + unit - 1) / unit * unit;
  Result result = api.cuMemCreate(&handle_, bytes_, &properties, 0);
  // A GPU that has a fabric may lack the service that lends its channels.
  if ((result == kNotPermitted || result == kNotSupported) &&
      (properties.handle_types & kHandleFabric) != 0) {
    properties.handle_types &= ~kHandleFabric;
    result = api.cuMemCreate(&handle_, bytes_, &properties, 0);
  }
  api.check(result, "cuMemCreate", fmt::format("{} bytes", bytes_));
}

PhysicalMemory::PhysicalMemory(GpuRef gpu, Address address, std::size_t bytes)
    : gpu_(std::move(gpu)), bytes_(bytes) {
  const Api& api = gpu_->api();
  const Current current(*gpu_);
  api.check(api.require(api.cuMemRetainAllocationHandle, "cuMemRetainAllocationHandle")(
                &handle_, reinterpret_cast<void*>(address)),
            "cuMemRetainAllocationHandle");
}

PhysicalMemory::PhysicalMemory(GpuRef gpu, std::string_view shared, std::size_t bytes)
    : gpu_(std::move(gpu)), bytes_(bytes) {
  ByteReader in(shared);
  const auto type = in.value<std::int32_t>();
  const std::string_view what = in.string();
  const bool fabric = type == kHandleFabric && what.size() == sizeof(FabricHandle);
  if (!in.done() || !(fabric || type == kHandleFile)) {
    throw_invalid("memory", "the bytes are no handle of a cuda device's memory");
  }
  FabricHandle everywhere{};
  File file;
  void* handle = &everywhere;
  if (fabric) {
    std::memcpy(everywhere.bytes, what.data(), what.size());
  } else {
    file = take_file(what);  // the driver has one of its own afterwards
    handle = reinterpret_cast<void*>(static_cast<std::intptr_t>(file.get()));
  }
  const Api& api = gpu_->api();
  const Current current(*gpu_);
  api.check(api.require(api.cuMemImportFromShareableHandle, "cuMemImportFromShareableHandle")(
                &handle_, handle, type),
            "cuMemImportFromShareableHandle");
}

PhysicalMemory::~PhysicalMemory() {
  if (handle_ == 0) return;
  release(gpu_, [this](const Api& api) { api.cuMemRelease(handle_); });
}

std::string PhysicalMemory::share() const {
  const std::lock_guard lock(mutex_);
  if (!shared_.empty()) return shared_;
  const Api& api = gpu_->api();
  const Current current(*gpu_);
  const auto export_it =
      api.require(api.cuMemExportToShareableHandle, "cuMemExportToShareableHandle");
  ByteWriter out;
  FabricHandle everywhere{};
  if ((gpu_->handle_types() & kHandleFabric) != 0 &&
      export_it(&everywhere, handle_, kHandleFabric, 0) == kSuccess) {
    out.value<std::int32_t>(kHandleFabric);
    out.string({reinterpret_cast<const char*>(everywhere.bytes), sizeof everywhere.bytes});
    return shared_ = out.take();
  }
  int descriptor = -1;
  api.check(export_it(&descriptor, handle_, kHandleFile, 0), "cuMemExportToShareableHandle");
  file_ = File(descriptor);
  offer_ = OfferedFile(descriptor);
  out.value<std::int32_t>(kHandleFile);
  out.string(offer_.handle());
  return shared_ = out.take();
}

Mapping::Range::Range(GpuRef gpu_of_it, std::size_t size) : gpu(std::move(gpu_of_it)), bytes(size) {
  const Current current(*gpu);
  gpu->api().check(gpu->api().cuMemAddressReserve(&address, bytes, 0, 0, 0), "cuMemAddressReserve",
                   fmt::format("{} bytes", bytes));
}

Mapping::Range::~Range() {
  release(gpu, [this](const Api& api) { api.cuMemAddressFree(address, bytes); });
}

Mapping::View::View(const Range& range_of_it, PhysicalHandle memory) : range(range_of_it) {
  const Current current(*range.gpu);
  const Api& api = range.gpu->api();
  api.check(api.cuMemMap(range.address, range.bytes, 0, memory, 0), "cuMemMap");
}

Mapping::View::~View() {
  release(range.gpu, [this](const Api& api) { api.cuMemUnmap(range.address, range.bytes); });
}

Mapping::Mapping(const PhysicalMemory& memory, std::span<const GpuRef> gpus)
    : range_(gpus.front(), memory.size()), view_(range_, memory.handle()) {
  std::vector<MemoryAccess> access;
  for (const GpuRef& gpu : gpus) {
    access.push_back({{kLocationDevice, gpu->device()}, kAccessReadWrite});
  }
  const Current current(*range_.gpu);
  const Api& api = range_.gpu->api();
  api.check(api.cuMemSetAccess(range_.address, range_.bytes, access.data(), access.size()),
            "cuMemSetAccess");
}

}  // namespace braid::cuda
