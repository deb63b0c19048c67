#pragma once

#include <cstddef>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "runtime/cuda/gpu.h"
#include "runtime/offered_file.h"

namespace braid::cuda {

/// What the driver counts by a handle: physical memory of a GPU, or the multicast object that
/// stands for that of many. Nobody reaches it before it is mapped.
class PhysicalMemory {
 public:
  /// New memory that other processes may import where the GPU allows that: as many bytes, up to a
  /// multiple of the driver's unit and of `unit`.
  PhysicalMemory(GpuRef gpu, std::size_t bytes, std::size_t unit);
  /// The caller's, which is mapped there. Throws DriverError where it was not made by cuMemCreate.
  PhysicalMemory(GpuRef gpu, Address address, std::size_t bytes);
  /// Another process's, by its share().
  PhysicalMemory(GpuRef gpu, std::string_view shared, std::size_t bytes);
  /// A multicast object for so many GPUs and bytes, a multiple of its unit.
  struct MulticastOf {
    unsigned gpus;
    std::size_t bytes;
  };
  PhysicalMemory(GpuRef gpu, MulticastOf what);
  ~PhysicalMemory();
  PhysicalMemory(const PhysicalMemory&) = delete;
  PhysicalMemory& operator=(const PhysicalMemory&) = delete;

  [[nodiscard]] const GpuRef& gpu() const { return gpu_; }
  [[nodiscard]] PhysicalHandle handle() const { return handle_; }
  [[nodiscard]] std::size_t size() const { return bytes_; }  ///< bytes, a multiple of the driver's
  /// Bytes by which other processes import it as long as this exists. Throws kEnvironment where
  /// they cannot.
  [[nodiscard]] std::string share() const;

 private:
  GpuRef gpu_;
  std::size_t bytes_;
  PhysicalHandle handle_ = 0;
  mutable std::mutex mutex_;
  mutable std::string shared_;
  mutable File file_;
  mutable OfferedFile offer_;
};

/// Of multicast objects for so many GPUs, in bytes.
[[nodiscard]] std::size_t multicast_unit(const Gpu& gpu, unsigned gpus);

/// Addresses at which some GPUs of this process reach physical memory.
class Mapping {
 public:
  /// The first GPU is the one that it is made on.
  Mapping(const PhysicalMemory& memory, std::span<const GpuRef> gpus);
  ~Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  [[nodiscard]] Address address() const { return range_.address; }

 private:
  struct Range {
    Range(GpuRef gpu_of_it, std::size_t size);
    ~Range();
    Range(const Range&) = delete;
    Range& operator=(const Range&) = delete;
    GpuRef gpu;
    std::size_t bytes;
    Address address = 0;
  };
  struct View {
    View(const Range& range_of_it, PhysicalHandle memory);
    ~View();
    View(const View&) = delete;
    View& operator=(const View&) = delete;
    const Range& range;
  };

  Range range_;
  View view_;
};

}  // namespace braid::cuda
