#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "braid/device.h"
#include "runtime/file_io.h"
#include "runtime/offered_file.h"

namespace braid::fake {

using Address = unsigned long long;

inline constexpr int kFileHandle = 1, kFabricHandle = 8;
inline constexpr std::size_t kMulticastGranularity = std::size_t{4} << 20U;

/// What the processes that have one multicast know of it. Zero bytes are a new one.
struct SharedMulticast {
  struct Part {
    std::atomic<int> state;  ///< 1: bound
    std::size_t offset, bytes;
    std::size_t handle_bytes;
    std::array<char, 128> handle;  ///< of the memory's file, as it is offered
  };
  unsigned devices;
  std::atomic<unsigned> added;
  std::array<std::atomic<bool>, 8> members;
  std::array<Part, 8> parts;  ///< one of each GPU
};

/// As one process has it.
struct MulticastObject {
  explicit MulticastObject(const File& file);
  ~MulticastObject();
  MulticastObject(const MulticastObject&) = delete;
  MulticastObject& operator=(const MulticastObject&) = delete;
  [[nodiscard]] bool is_complete() const { return shared->added == shared->devices; }

  SharedMulticast* shared;
  std::array<OfferedFile, 8> offers;  ///< of the memory that this process has bound
  std::mutex mutex;
  std::vector<std::unique_ptr<Memory>> memory;  ///< of all, on the cpu device that runs kernels
  std::unique_ptr<Multicast> cpu;               ///< likewise
};

/// Physical memory or a multicast, in a file of memory.
struct Physical {
  File file;
  std::size_t bytes = 0;
  int gpu = 0;
  int types = 0;  ///< of handles for other processes
  OfferedFile fabric;
  std::unique_ptr<MulticastObject> multicast;
};

/// Whether the test wants this call to fail where it is about handles of such types.
bool refuses_fabric(const char* call, unsigned long long types);

/// A new file whose name says what it is; null where there is no room.
std::shared_ptr<Physical> make_physical(const char* kind, int gpu, int types, std::size_t bytes);
int add_handle(std::shared_ptr<Physical> memory, Address* handle);
std::shared_ptr<Physical> find_handle(Address handle);

/// Where the cpu device has such a multicast, which it makes when it is first asked for.
Address multicast_on_the_cpu(MulticastObject& object, std::size_t bytes);
/// The cpu device's address for one that a multicast is mapped at; others stay.
Address on_the_cpu(Address address);

}  // namespace braid::fake
