#include "runtime/cuda/mapped_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
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

/// Calls the driver with the GPU's handle types. A GPU with a fabric may lack the service that
/// grants its channels, which shows as various errors, so after any error the call is repeated
/// without the fabric.
template <class Call>
Result with_handles(const Gpu& gpu, Call call) {
  const int types = gpu.handle_types();
  const Result result = call(types);
  return result != kSuccess && (types & kHandleFabric) != 0 ? call(types & ~kHandleFabric) : result;
}

MulticastProperties multicast_properties(unsigned gpus, std::size_t bytes, int handle_types) {
  return {gpus, bytes, static_cast<unsigned long long>(handle_types), 0};
}

}  // namespace

PhysicalMemory::PhysicalMemory(GpuRef gpu, std::size_t bytes, std::size_t unit)
    : gpu_(std::move(gpu)) {
  const Api& api = gpu_->api();
  const Current current(*gpu_);
  std::size_t its_unit = 0;
  const Result known = with_handles(*gpu_, [&](int types) {
    const MemoryProperties wanted = properties_of(*gpu_, types);
    return api.cuMemGetAllocationGranularity(&its_unit, &wanted, kGranularityMinimum);
  });
  api.check(known, "cuMemGetAllocationGranularity");
  const std::size_t whole = std::lcm(its_unit, std::max<std::size_t>(unit, 1));
  bytes_ = (std::max<std::size_t>(bytes, 1) + whole - 1) / whole * whole;
  const Result result = with_handles(*gpu_, [&](int types) {
    const MemoryProperties properties = properties_of(*gpu_, types);
    return api.cuMemCreate(&handle_, bytes_, &properties, 0);
  });
  api.check(result, "cuMemCreate", fmt::format("{} bytes", bytes_));
}

PhysicalMemory::PhysicalMemory(GpuRef gpu, MulticastOf what)
    : gpu_(std::move(gpu)), bytes_(what.bytes) {
  const Api& api = gpu_->api();
  const Current current(*gpu_);
  const auto create = api.require(api.cuMulticastCreate);
  const Result result = with_handles(*gpu_, [&](int types) {
    const MulticastProperties properties = multicast_properties(what.gpus, bytes_, types);
    return create(&handle_, &properties);
  });
  api.check(result, "cuMulticastCreate", fmt::format("{} bytes of {} GPUs", bytes_, what.gpus));
}

std::size_t multicast_unit(const Gpu& gpu, unsigned gpus) {
  const Api& api = gpu.api();
  const Current current(gpu);
  constexpr std::size_t kSome = std::size_t{2} << 20U;
  const auto granularity = api.require(api.cuMulticastGetGranularity);
  std::size_t unit = 0;
  const Result known = with_handles(gpu, [&](int types) {
    const MulticastProperties properties = multicast_properties(gpus, kSome, types);
    return granularity(&unit, &properties, kGranularityMinimum);
  });
  api.check(known, "cuMulticastGetGranularity");
  return unit;
}

PhysicalMemory::PhysicalMemory(GpuRef gpu, Address address, std::size_t bytes)
    : gpu_(std::move(gpu)), bytes_(bytes) {
  const Api& api = gpu_->api();
  const Current current(*gpu_);
  api.run(api.cuMemRetainAllocationHandle, &handle_, reinterpret_cast<void*>(address));
}

PhysicalMemory::PhysicalMemory(GpuRef gpu, std::string_view shared, std::size_t bytes)
    : gpu_(std::move(gpu)), bytes_(bytes) {
  ByteReader in(shared);
  const std::string_view everywhere = in.string(), here = in.string();
  const bool fabric = everywhere.size() == sizeof(FabricHandle);
  if (!in.done() || !(fabric || everywhere.empty()) || (!fabric && here.empty())) {
    throw_invalid("memory", "the bytes are no handle of a cuda device's memory");
  }
  const Api& api = gpu_->api();
  const Current current(*gpu_);
  const auto import_it = api.require(api.cuMemImportFromShareableHandle);
  if (fabric) {
    FabricHandle handle{};
    std::memcpy(handle.bytes, everywhere.data(), everywhere.size());
    const Result result = import_it(&handle_, &handle, kHandleFabric);
    if (result == kSuccess) return;
    if (here.empty()) api.check(result, "cuMemImportFromShareableHandle");
  }
  const File file = take_file(here);  // the driver keeps its own copy
  api.check(import_it(&handle_, reinterpret_cast<void*>(static_cast<std::intptr_t>(file.get())),
                      kHandleFile),
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
  const auto export_it = api.require(api.cuMemExportToShareableHandle);
  // Both kinds, if available: other processes may not be able to use the fabric.
  FabricHandle everywhere{};
  const bool fabric = (gpu_->handle_types() & kHandleFabric) != 0 &&
                      export_it(&everywhere, handle_, kHandleFabric, 0) == kSuccess;
  int descriptor = -1;
  const Result result = export_it(&descriptor, handle_, kHandleFile, 0);
  if (!fabric) api.check(result, "cuMemExportToShareableHandle");
  if (result == kSuccess) {
    file_ = File(descriptor);
    offer_ = OfferedFile(descriptor);
  }
  ByteWriter out;
  out.string(fabric ? std::string_view(reinterpret_cast<const char*>(everywhere.bytes),
                                       sizeof everywhere.bytes)
                    : std::string_view());
  out.string(file_.is_open() ? offer_.handle() : std::string());
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
  api.run(api.cuMemMap, range.address, range.bytes, 0, memory, 0);
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
  api.run(api.cuMemSetAccess, range_.address, range_.bytes, access.data(), access.size());
}

}  // namespace braid::cuda
