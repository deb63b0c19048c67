// Multicasts of the stand-in for the CUDA driver (fake_libcuda.cpp). Where it runs kernels, those
// of the cpu device do what they do.

#include <sys/mman.h>

#include <cstring>
#include <new>

#include "runtime/bytes.h"
#include "runtime/fake_result.h"
#include "runtime/fake_state.h"
#include "runtime/fake_virtual_memory.h"

namespace braid::fake {
namespace {

// As the driver has it.
struct MulticastProperties {
  unsigned devices;
  std::size_t bytes;
  unsigned long long handle_types, flags;
};

bool is_granular(std::size_t bytes) { return bytes > 0 && bytes % kMulticastGranularity == 0; }

int check(const MulticastProperties& properties) {
  const FakeCuda& control = state().control;
  if (!control.multicast) return kNotSupported;
  const bool good =
      properties.devices > 0 && properties.devices <= static_cast<unsigned>(control.gpus) &&
      properties.bytes > 0 && properties.flags == 0 && (properties.handle_types & ~9ULL) == 0;
  return good ? 0 : kInvalidValue;
}

/// The handle of a cpu device of another process for memory in such a file.
std::string cpu_handle(const SharedMulticast::Part& part, int gpu) {
  ByteWriter out;
  out.string("cpu memory");
  out.value<std::uint32_t>(3);
  out.value<std::int64_t>(0);
  out.value<std::uint64_t>(0);
  out.value<std::uint64_t>(0);
  out.value<std::uint64_t>(part.bytes);
  out.value<std::int64_t>(gpu);
  out.string({part.handle.data(), part.handle_bytes});
  return out.take();
}

}  // namespace

MulticastObject::MulticastObject(const File& file) {
  void* mapped =
      ::mmap(nullptr, sizeof(SharedMulticast), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  shared = static_cast<SharedMulticast*>(mapped);
}

MulticastObject::~MulticastObject() { ::munmap(shared, sizeof(SharedMulticast)); }

Address multicast_on_the_cpu(MulticastObject& object, std::size_t bytes) {
  const std::lock_guard lock(object.mutex);
  if (object.cpu != nullptr) return object.cpu->address();
  std::vector<int> members;
  for (int gpu = 0; gpu < 8; ++gpu) {
    if (object.shared->members[static_cast<std::size_t>(gpu)]) members.push_back(gpu);
  }
  object.cpu = cpu()->create_multicast(members, bytes);
  for (const int gpu : members) {
    const auto& part = object.shared->parts[static_cast<std::size_t>(gpu)];
    if (part.state != 1) continue;
    object.memory.push_back(cpu()->import_memory(gpu, cpu_handle(part, gpu)));
    object.memory.back()->bind_multicast(*object.cpu, part.offset);
  }
  return object.cpu->address();
}

}  // namespace braid::fake

using namespace braid::fake;  // NOLINT(google-build-using-namespace)

extern "C" {

int cuMulticastGetGranularity(std::size_t* bytes, const MulticastProperties* properties,
                              int option) {
  if (const int error = enter_context("cuMulticastGetGranularity")) return error;
  if (refuses_fabric("cuMulticastGetGranularity", properties->handle_types)) return kUnknown;
  *bytes = kMulticastGranularity;
  return option == 0 || option == 1 ? check(*properties) : kInvalidValue;
}

int cuMulticastCreate(Address* handle, const MulticastProperties* properties) {
  if (const int error = enter_context("cuMulticastCreate")) return error;
  if (const int error = check(*properties)) return error;
  if (!is_granular(properties->bytes)) return kInvalidValue;
  const auto types = static_cast<int>(properties->handle_types);
  if (refuses_fabric("cuMulticastCreate", properties->handle_types)) return kUnknown;
  auto made = make_physical("multicast", 0, types, properties->bytes);
  if (made == nullptr) return kOutOfMemory;
  made->multicast = std::make_unique<MulticastObject>(made->file);
  made->multicast->shared->devices = properties->devices;
  *handle = 0;
  return add_handle(std::move(made), handle);
}

int cuMulticastAddDevice(Address handle, int device) {
  if (const int error = enter_context("cuMulticastAddDevice")) return error;
  const std::shared_ptr<Physical> object = find_handle(handle);
  if (object == nullptr || object->multicast == nullptr) return kInvalidValue;
  SharedMulticast& shared = *object->multicast->shared;
  if (device < 0 || device >= state().control.gpus || object->multicast->is_complete() ||
      shared.members[static_cast<std::size_t>(device)].exchange(true)) {
    return kInvalidDevice;
  }
  ++shared.added;
  return 0;
}

int cuMulticastBindMem(Address handle, std::size_t offset, Address memory_handle,
                       std::size_t memory_offset, std::size_t bytes, unsigned long long flags) {
  if (const int error = enter_context("cuMulticastBindMem")) return error;
  const std::shared_ptr<Physical> object = find_handle(handle), memory = find_handle(memory_handle);
  if (object == nullptr || object->multicast == nullptr || memory == nullptr ||
      memory->multicast != nullptr || flags != 0) {
    return kInvalidValue;
  }
  MulticastObject& multicast = *object->multicast;
  const auto gpu = static_cast<std::size_t>(memory->gpu);
  SharedMulticast::Part& part = multicast.shared->parts[gpu];
  if (!multicast.is_complete() || !multicast.shared->members[gpu]) return kInvalidDevice;
  // The stand-in binds all of a memory, once.
  if (!is_granular(bytes) || offset % kMulticastGranularity != 0 || memory_offset != 0 ||
      bytes != memory->bytes || offset + bytes > object->bytes || part.state != 0 ||
      (object->types != 0 && memory->types == 0)) {
    return kInvalidValue;
  }
  if (state().control.multicast_refuses) return kSystemNotReady;
  multicast.offers[gpu] = braid::OfferedFile(memory->file.get());
  const std::string offered = multicast.offers[gpu].handle();
  std::memcpy(part.handle.data(), offered.data(), offered.size());
  part.handle_bytes = offered.size();
  part.offset = offset;
  part.bytes = bytes;
  part.state = 1;
  return 0;
}

int cuMulticastUnbind(Address handle, int device, std::size_t offset, std::size_t bytes) {
  drain();
  const std::shared_ptr<Physical> object = find_handle(handle);
  if (object == nullptr || object->multicast == nullptr) return kInvalidValue;
  const auto gpu = static_cast<std::size_t>(device);
  SharedMulticast::Part& part = object->multicast->shared->parts[gpu];
  if (part.state != 1 || part.offset != offset || part.bytes != bytes) return kInvalidValue;
  part.state = 2;  // its memory may go
  object->multicast->offers[gpu] = {};
  return 0;
}

}  // extern "C"
