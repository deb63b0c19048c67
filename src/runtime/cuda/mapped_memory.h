#pragma once

#include <cstddef>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "ir/non_copyable.h"
#include "runtime/cuda/gpu.h"
#include "runtime/offered_file.h"

namespace braid::cuda {

/// A handle that the driver counts: physical memory of a GPU, or a multicast object over many. It
/// must be mapped before it can be accessed.
class PhysicalMemory : NonCopyable {
 public:
  /// Allocates memory, importable by other processes if the GPU allows that. The size is rounded up
  /// to the driver's granularity and to `unit`.
  PhysicalMemory(GpuRef gpu, std::size_t bytes, std::size_t unit);
  /// The caller's memory mapped at that address. Throws DriverError if cuMemCreate did not make it.
  PhysicalMemory(GpuRef gpu, Address address, std::size_t bytes);
  /// Imports another process's memory from its share().
  PhysicalMemory(GpuRef gpu, std::string_view shared, std::size_t bytes);
  /// Parameters of a multicast object: GPUs, and bytes as a multiple of its granularity.
  struct MulticastOf {
    unsigned gpus;
    std::size_t bytes;
  };
  PhysicalMemory(GpuRef gpu, MulticastOf what);
  ~PhysicalMemory();

  [[nodiscard]] const GpuRef& gpu() const { return gpu_; }
  [[nodiscard]] PhysicalHandle handle() const { return handle_; }
  [[nodiscard]] std::size_t size() const { return bytes_; }  ///< a multiple of the granularity
  /// A handle with which other processes import it while this object exists. Throws kEnvironment if
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

/// The granularity in bytes of multicast objects over so many GPUs.
[[nodiscard]] std::size_t multicast_unit(const Gpu& gpu, unsigned gpus);

/// A mapping of physical memory at an address that some GPUs of this process can use.
class Mapping : NonCopyable {
 public:
  /// The first GPU is the one that owns the mapping.
  Mapping(const PhysicalMemory& memory, std::span<const GpuRef> gpus);
  [[nodiscard]] Address address() const { return range_.address; }

 private:
  struct Range : NonCopyable {
    Range(GpuRef gpu_of_it, std::size_t size);
    ~Range();
    GpuRef gpu;
    std::size_t bytes;
    Address address = 0;
  };
  struct View : NonCopyable {
    View(const Range& range_of_it, PhysicalHandle memory);
    ~View();
    const Range& range;
  };

  Range range_;
  View view_;
};

}  // namespace braid::cuda
