// Virtual memory of the stand-in for the CUDA driver (fake_libcuda.cpp): physical memory is a file
// of memory, so that processes share it for real.

#include "runtime/fake_virtual_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <memory>

#include "runtime/fake_result.h"
#include "runtime/fake_state.h"
#include "runtime/offered_file.h"

namespace {

using namespace braid::fake;  // NOLINT(google-build-using-namespace)
using braid::File;

constexpr std::size_t kGranularity = std::size_t{2} << 20U;
constexpr int kFile = kFileHandle, kFabric = kFabricHandle;

// As the driver has them.
struct Location {
  int type, id;
};
struct Properties {
  int type, handle_types;
  Location location;
  void* unused;
  unsigned char flags[8];
};
struct Access {
  Location location;
  int flags;
};

/// Reserved addresses, and what is mapped there.
struct Reservation {
  std::size_t bytes = 0;
  std::shared_ptr<Physical> mapped;
};

struct Virtual {
  std::map<Address, std::shared_ptr<Physical>> handles;
  std::map<Address, int> holders;  ///< of a handle
  std::map<Address, Reservation> reservations;
  Address last = 0;
};

/// Guarded by state().mutex.
Virtual& all() {
  static Virtual instance;
  return instance;
}

void* pointer(Address address) { return reinterpret_cast<void*>(address); }

int check_properties(const Properties& properties) {
  const auto& [type, types, location, unused, flags] = properties;
  const braid::FakeCuda& control = state().control;
  if (!control.virtual_memory) return kNotSupported;
  if (type != 1 || location.type != 1 || location.id < 0 || location.id >= control.gpus ||
      unused != nullptr || (types & ~(kFile | kFabric)) != 0) {
    return kInvalidValue;
  }
  if ((types & kFabric) != 0 && !control.fabric) return kNotSupported;
  return 0;
}

bool is_whole(std::size_t bytes) { return bytes > 0 && bytes % kGranularity == 0; }

/// The memory or multicast of another process, or of this one, by a descriptor of it.
std::shared_ptr<Physical> open_physical(File file) {
  std::array<char, 64> path{}, name{}, kind{};
  std::snprintf(path.data(), path.size(), "/proc/self/fd/%d", file.get());
  int gpu = 0, types = 0;
  if (::readlink(path.data(), name.data(), name.size() - 1) < 0 ||
      std::sscanf(name.data(), "/memfd:fake-%40[a-z]-%d-%d", kind.data(), &gpu, &types) != 3) {
    return nullptr;
  }
  auto made = std::make_shared<Physical>();
  made->bytes = static_cast<std::size_t>(::lseek(file.get(), 0, SEEK_END));
  made->file = std::move(file);
  made->gpu = gpu;
  made->types = types;
  if (std::strcmp(kind.data(), "multicast") == 0) {
    made->multicast = std::make_unique<MulticastObject>(made->file);
  }
  return made;
}

}  // namespace

namespace braid::fake {

bool refuses_fabric(const char* call, unsigned long long types) {
  return (types & kFabric) != 0 && state().control.fabric_refuses == call;
}

std::shared_ptr<Physical> make_physical(const char* kind, int gpu, int types, std::size_t bytes) {
  std::array<char, 64> name{};
  std::snprintf(name.data(), name.size(), "fake-%s-%d-%d", kind, gpu, types);
  auto made = std::make_shared<Physical>();
  made->file = File(::memfd_create(name.data(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (::ftruncate(made->file.get(), static_cast<off_t>(bytes)) != 0) return nullptr;
  // The cpu device maps no others.
  (void)::fcntl(made->file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
  made->bytes = bytes;
  made->gpu = gpu;
  made->types = types;
  return made;
}

int add_handle(std::shared_ptr<Physical> memory, Address* handle) {
  const std::lock_guard lock(state().mutex);
  for (const auto& [known, of] : all().handles) {
    if (of == memory) *handle = known;
  }
  if (*handle == 0) *handle = ++all().last;
  all().handles[*handle] = std::move(memory);
  ++all().holders[*handle];
  state().live.insert(pointer(*handle));
  return 0;
}

std::shared_ptr<Physical> find_handle(Address handle) {
  const std::lock_guard lock(state().mutex);
  const auto found = all().handles.find(handle);
  return found == all().handles.end() ? nullptr : found->second;
}

Address on_the_cpu(Address address) {
  std::shared_ptr<Physical> mapped;
  Address begin = 0;
  {
    const std::lock_guard lock(state().mutex);
    const auto next = all().reservations.upper_bound(address);
    if (next == all().reservations.begin()) return address;
    begin = std::prev(next)->first;
    if (address - begin < std::prev(next)->second.bytes) mapped = std::prev(next)->second.mapped;
  }
  if (mapped == nullptr || mapped->multicast == nullptr) return address;
  return multicast_on_the_cpu(*mapped->multicast, mapped->bytes) + (address - begin);
}

}  // namespace braid::fake

extern "C" {

int cuMemGetAllocationGranularity(std::size_t* bytes, const Properties* properties, int option) {
  if (const int error = enter_context("cuMemGetAllocationGranularity")) return error;
  if (refuses_fabric("cuMemGetAllocationGranularity", properties->handle_types)) return kUnknown;
  *bytes = kGranularity;
  return option == 0 || option == 1 ? check_properties(*properties) : kInvalidValue;
}

int cuMemCreate(Address* handle, std::size_t bytes, const Properties* properties,
                unsigned long long flags) {
  if (const int error = enter_context("cuMemCreate")) return error;
  if (!is_whole(bytes) || flags != 0) return kInvalidValue;
  if (const int error = check_properties(*properties)) return error;
  if (refuses_fabric("cuMemCreate", properties->handle_types)) return kUnknown;
  auto made = make_physical("gpu", properties->location.id, properties->handle_types, bytes);
  if (made == nullptr) return kOutOfMemory;
  *handle = 0;
  return add_handle(std::move(made), handle);
}

int cuMemRelease(Address handle) {
  const std::lock_guard lock(state().mutex);
  const auto found = all().handles.find(handle);
  if (found == all().handles.end()) return kInvalidValue;
  if (const auto& multicast = found->second->multicast; multicast != nullptr) {
    for (const braid::OfferedFile& bound : multicast->offers) {
      if (bound.is_open()) return kInvalidValue;  // the driver would let it go
    }
  }
  state().live.erase(state().live.find(pointer(handle)));
  if (--all().holders[handle] == 0) all().handles.erase(found);
  return 0;
}

int cuMemAddressReserve(Address* address, std::size_t bytes, std::size_t alignment, Address wanted,
                        unsigned long long flags) {
  if (const int error = enter_context("cuMemAddressReserve")) return error;
  if (!is_whole(bytes) || alignment % kGranularity != 0 || wanted != 0 || flags != 0) {
    return kInvalidValue;
  }
  const std::size_t unit = std::max(alignment, kGranularity);
  void* range = ::mmap(nullptr, bytes + unit, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (range == MAP_FAILED) return kOutOfMemory;
  const auto begin = reinterpret_cast<Address>(range);
  *address = (begin + unit - 1) / unit * unit;
  if (*address > begin) ::munmap(range, *address - begin);
  ::munmap(pointer(*address + bytes), begin + unit - *address);
  const std::lock_guard lock(state().mutex);
  all().reservations[*address].bytes = bytes;
  state().live.insert(pointer(*address));
  return 0;
}

int cuMemAddressFree(Address address, std::size_t bytes) {
  const std::lock_guard lock(state().mutex);
  const auto found = all().reservations.find(address);
  if (found == all().reservations.end() || found->second.bytes != bytes ||
      found->second.mapped != nullptr) {
    return kInvalidValue;
  }
  all().reservations.erase(found);
  state().live.erase(state().live.find(pointer(address)));
  ::munmap(pointer(address), bytes);
  return 0;
}

/// All of a reservation; nobody reaches it yet.
int cuMemMap(Address address, std::size_t bytes, std::size_t offset, Address handle,
             unsigned long long flags) {
  if (const int error = enter_context("cuMemMap")) return error;
  const std::shared_ptr<Physical> memory = find_handle(handle);
  if (memory == nullptr || offset != 0 || flags != 0 || bytes > memory->bytes) {
    return kInvalidValue;
  }
  const std::lock_guard lock(state().mutex);
  const auto found = all().reservations.find(address);
  if (found == all().reservations.end() || found->second.bytes != bytes ||
      found->second.mapped != nullptr) {
    return kInvalidValue;
  }
  if (memory->multicast != nullptr && !memory->multicast->is_complete()) return kInvalidValue;
  if (::mmap(pointer(address), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, memory->file.get(), 0) ==
      MAP_FAILED) {
    return kOutOfMemory;
  }
  found->second.mapped = memory;
  state().live.insert(pointer(address));
  state().memory[address] = {bytes, memory->gpu, nullptr, std::set<int>{}};
  return 0;
}

int cuMemUnmap(Address address, std::size_t bytes) {
  drain();
  const std::lock_guard lock(state().mutex);
  const auto found = all().reservations.find(address);
  if (found == all().reservations.end() || found->second.bytes != bytes ||
      found->second.mapped == nullptr) {
    return kInvalidValue;
  }
  found->second.mapped = nullptr;
  state().memory.erase(address);
  state().live.erase(state().live.find(pointer(address)));
  ::mmap(pointer(address), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  return 0;
}

int cuMemSetAccess(Address address, std::size_t bytes, const Access* access, std::size_t count) {
  if (const int error = enter_context("cuMemSetAccess")) return error;
  const braid::FakeCuda& control = state().control;
  const std::lock_guard lock(state().mutex);
  const auto found = state().memory.find(address);
  if (found == state().memory.end() || !found->second.access || found->second.bytes != bytes ||
      count == 0) {
    return kInvalidValue;
  }
  const MulticastObject* multicast = all().reservations[address].mapped->multicast.get();
  for (std::size_t i = 0; i < count; ++i) {
    const auto& [location, flags] = access[i];
    const std::pair<int, int> link{location.id, found->second.gpu};
    if (location.type != 1 || location.id < 0 || location.id >= control.gpus || flags != 3) {
      return kInvalidValue;
    }
    if (multicast != nullptr) {  // nobody loads from there or stores to it
      if (!multicast->shared->members[static_cast<std::size_t>(location.id)]) return kInvalidDevice;
      found->second.access->insert(location.id);
      continue;
    }
    if (!control.peer_access && link.first != link.second) return kInvalidDevice;
    if (link != control.unlinked) found->second.access->insert(location.id);
  }
  if (multicast != nullptr) return 0;
  return ::mprotect(pointer(address), bytes, PROT_READ | PROT_WRITE) == 0 ? 0 : kInvalidValue;
}

int cuMemExportToShareableHandle(void* shared, Address handle, int type, unsigned long long flags) {
  if (const int error = enter_context("cuMemExportToShareableHandle")) return error;
  const std::shared_ptr<Physical> memory = find_handle(handle);
  if (memory == nullptr || flags != 0 || (type != kFile && type != kFabric)) return kInvalidValue;
  if ((memory->types & type) == 0) return kNotPermitted;
  if (refuses_fabric("cuMemExportToShareableHandle", type)) return kUnknown;
  if (type == kFile) {
    *static_cast<int*>(shared) = ::fcntl(memory->file.get(), F_DUPFD_CLOEXEC, 0);
    return 0;
  }
  memory->fabric = braid::OfferedFile(memory->file.get());
  const std::string bytes = memory->fabric.handle();
  std::memset(shared, 0, 64);
  std::memcpy(shared, bytes.data(), bytes.size());
  return 0;
}

int cuMemImportFromShareableHandle(Address* handle, void* shared, int type) {
  if (const int error = enter_context("cuMemImportFromShareableHandle")) return error;
  if (refuses_fabric("cuMemImportFromShareableHandle", type)) return kUnknown;
  std::shared_ptr<Physical> made;
  if (type == kFile) {
    const auto descriptor = static_cast<int>(reinterpret_cast<std::intptr_t>(shared));
    made = open_physical(File(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0)));
  } else if (type == kFabric) {
    std::uint64_t size = 0;
    std::memcpy(&size, static_cast<const char*>(shared) + 16, sizeof size);
    made = open_physical(braid::take_file({static_cast<const char*>(shared), 24 + size}));
  }
  if (made == nullptr) return kInvalidValue;
  *handle = 0;
  return add_handle(std::move(made), handle);
}

int cuMemRetainAllocationHandle(Address* handle, void* address) {
  if (const int error = enter_context("cuMemRetainAllocationHandle")) return error;
  std::shared_ptr<Physical> memory;
  {
    const std::lock_guard lock(state().mutex);
    const auto found = all().reservations.find(reinterpret_cast<Address>(address));
    if (found != all().reservations.end()) memory = found->second.mapped;
  }
  if (memory == nullptr) return kInvalidValue;
  *handle = 0;
  return add_handle(std::move(memory), handle);
}

}  // extern "C"
