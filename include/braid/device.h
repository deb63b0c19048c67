#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "braid/dtype.h"
#include "braid/error.h"
#include "braid/export.h"
#include "braid/inspector.h"
#include "braid/launch_config.h"

namespace braid {

/// One compiled kernel: PTX text (what the `cpu` device runs) and the machine code of one target
/// (what the `cuda` device loads; when empty it loads the PTX).
struct KernelImage {
  std::string entry;                ///< name of the PTX `.entry`
  std::string ptx;                  ///< without the trailing NUL
  std::vector<std::uint8_t> cubin;  ///< may be empty
  std::string file;                 ///< name of its source file, such as "sum.cu" or "sum.ptx"; may
                                    ///< be empty
};

/// One parameter of a kernel, as its PTX declares it.
struct FunctionParameter {
  std::size_t bytes = 0;
  std::string type;  ///< "u64", "b8[12]"
  std::string name;
  std::uint32_t line = 0;  ///< line of the PTX text
};

/// A multicast object: one address range for memory of many ranks. A write to it reaches every
/// bound part. First every rank is added, by the process that it lives in; then memory of all ranks
/// is bound; then the address may be used. Destroy it before the memory that is bound to it.
class BRAID_API Multicast {
 public:
  virtual ~Multicast() = default;
  [[nodiscard]] virtual std::uint64_t address() const = 0;  ///< valid once memory is bound
  [[nodiscard]] virtual std::size_t size() const = 0;       ///< bytes
  /// A handle with which other processes open the same object (Device::create_multicast) while it
  /// exists. Empty where each process makes its own.
  [[nodiscard]] virtual std::string export_handle() const { return {}; }
  /// Adds a rank of this process.
  virtual void add_rank(int rank) { (void)rank; }
};

/// Memory of one rank, freed on destruction. No work that uses it may be in flight then.
class BRAID_API Memory {
 public:
  virtual ~Memory() = default;
  [[nodiscard]] virtual std::uint64_t address() const = 0;  ///< device address, 256-byte aligned
  [[nodiscard]] virtual std::size_t size() const = 0;       ///< bytes
  /// A handle with which another rank, in this or another process, imports this memory
  /// (Device::import_memory) while it exists. Throws kEnvironment where the device cannot share it.
  /// A GPU shares with other processes what Device::allocate_shared gave, and single allocations of
  /// the caller that cuMemCreate made with exportable handles.
  [[nodiscard]] virtual std::string export_handle() const {
    throw_environment("memory", "this device cannot hand it to other processes");
  }
  /// Binds all of this memory as its rank's part of `multicast`, at byte `offset`. For imported
  /// memory the owner may do it instead. Throws kEnvironment on a device without multicast.
  virtual void bind_multicast(Multicast& multicast, std::size_t offset) {
    (void)multicast, (void)offset;
    throw_environment("multicast", "this device has none");
  }
};

/// A kernel of a loaded module.
class BRAID_API Function {
 public:
  virtual ~Function() = default;
  /// Raises the limit of dynamic shared memory, in bytes; required before a launch that uses more
  /// than 48 KiB. Throws kEnvironment when the device has less.
  virtual void set_max_dynamic_shared(std::uint32_t bytes) = 0;
  /// The parameters in order; empty on a device that cannot tell.
  [[nodiscard]] virtual std::vector<FunctionParameter> parameters() const { return {}; }
};

/// Code loaded on one rank. Its functions live as long as it does.
class BRAID_API Module {
 public:
  virtual ~Module() = default;
  /// The kernel of that name. Throws kInvalidArgument if there is none, or if it cannot run here.
  [[nodiscard]] virtual Function& function(std::string_view entry) = 0;
};

class BRAID_API Event {
 public:
  virtual ~Event() = default;
};

/// An event that records the time at which it was reached.
class BRAID_API TimedEvent : public Event {
 public:
  /// Nanoseconds from `earlier`, an event of the same rank, to this one. Both must be recorded and
  /// their streams synchronized.
  [[nodiscard]] virtual double ns_since(const TimedEvent& earlier) const = 0;
};

/// Work captured by Stream::end_capture, for replay on streams. The kernels, device memory,
/// executables and host memory that it uses must outlive it.
class BRAID_API RecordedGraph {
 public:
  virtual ~RecordedGraph() = default;
};

/// A queue of work on one rank, in order. Calls except `synchronize` return before the work is
/// done.
class BRAID_API Stream {
 public:
  virtual ~Stream() = default;
  /// The device (an opaque mark) and the rank that a stream belongs to.
  struct Home {
    const void* device = nullptr;
    int rank = 0;
    bool operator==(const Home&) const = default;  ///< equal: work of one stream may run on the
                                                   ///< other
  };
  [[nodiscard]] virtual Home home() const { return {}; }
  /// `args[i]` points to the value of parameter i, as in cuLaunchKernel; the values are copied
  /// before the call returns. Throws kEnvironment where the device lacks what the attributes ask
  /// for.
  virtual void launch(Function& function, const LaunchConfig& config,
                      std::span<const void* const> args) = 0;
  /// Copies device memory to device memory, of any ranks. Copies and fills that leave an allocation
  /// throw kInvalidArgument.
  virtual void copy(std::uint64_t dst, std::uint64_t src, std::size_t bytes) = 0;
  virtual void copy_from_host(std::uint64_t dst, const void* src, std::size_t bytes) = 0;
  virtual void copy_to_host(void* dst, std::uint64_t src, std::size_t bytes) = 0;
  virtual void fill(std::uint64_t dst, std::uint8_t value, std::size_t bytes) = 0;
  virtual void record(Event& event) = 0;
  virtual void wait(Event& event) = 0;
  /// Writes a 32-bit word, visible to every rank, once all earlier work is done.
  virtual void write_value(std::uint64_t address, std::uint32_t value) = 0;
  /// Holds back later work until the word reaches `value`: signed(word - value) >= 0. For both
  /// functions the address is a multiple of 4.
  virtual void wait_value(std::uint64_t address, std::uint32_t value) = 0;
  /// Blocks the host until all earlier work is done. Throws the first error of that work.
  virtual void synchronize() = 0;
  /// Whether enqueued work is being captured, by begin_capture() or by the caller (a CUDA graph).
  [[nodiscard]] virtual bool is_capturing() const { return false; }
  /// Starts to capture: work enqueued here from now on is recorded instead of executed. A stream
  /// that waits for an event of the capture joins it; this stream must wait for it before the end.
  /// Meanwhile the stream cannot be synchronized and cannot wait for events from outside. Throws
  /// kInvalidArgument where it is being captured already, kEnvironment on a device without capture.
  virtual void begin_capture() { throw_environment("stream", "this device records no work"); }
  /// Ends the capture and returns its work. Throws kInvalidArgument where none began on this
  /// stream, and where the capture became invalid, which ends it too.
  [[nodiscard]] virtual std::unique_ptr<RecordedGraph> end_capture() {
    throw_environment("stream", "this device records no work");
  }
  /// Enqueues the captured work behind its last replay, on a stream of the same rank.
  virtual void replay(RecordedGraph& graph) {
    (void)graph;
    throw_environment("stream", "this device records no work");
  }
  /// The device's own handle (a CUstream), for libraries that enqueue work themselves. Null on a
  /// device without one.
  [[nodiscard]] virtual void* handle() const { return nullptr; }
};

/// A matrix [rows, columns] in memory, or several, of which bulk copies take boxes of `box_rows`
/// rows and 128 bytes of columns, swizzled by 128 bytes; elements outside of the matrix read as
/// zeros.
struct MatrixMap {
  std::uint64_t address = 0;  ///< a multiple of 16, as the bytes of each stride are
  DType dtype = DType::kBF16;
  std::uint64_t rows = 0, columns = 0;
  std::uint32_t box_rows = 0;    ///< at most 256
  std::uint64_t row_stride = 0;  ///< elements from a row to the next one; 0: `columns`
  /// Up to three dims along which there are several matrices, the innermost first, and elements
  /// from one to the next.
  struct Outer {
    std::uint64_t extent, stride;
  };
  std::vector<Outer> outer = {};
};

/// A device: N ranks, each with its own memory and streams. On `cpu` all ranks are virtual and
/// share one pool of threads. On `cuda` rank r uses GPU r modulo the number of GPUs (but see
/// WorldOptions::gpu). Every rank can address every other rank's memory.
class BRAID_API Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual std::string_view kind() const = 0;    ///< "cpu" or "cuda"
  [[nodiscard]] virtual std::string description() const = 0;  ///< one line for people
  /// The vendor's name of the ranks' GPU, "NVIDIA H200"; on other devices the kind.
  [[nodiscard]] virtual std::string name() const { return std::string(kind()); }
  [[nodiscard]] virtual std::string target() const = 0;    ///< such as "sm_80" or "H200"
  [[nodiscard]] virtual int world() const = 0;             ///< number of ranks
  [[nodiscard]] virtual int ranks_per_device() const = 0;  ///< how many ranks share one GPU
  [[nodiscard]] virtual std::unique_ptr<Memory> allocate(int rank, std::size_t bytes) = 0;
  /// Allocates memory that ranks of all worlds can reach: ranks of this device by its address,
  /// others through Memory::export_handle. A device may round the size up (on a GPU to 2 MiB or
  /// more).
  [[nodiscard]] virtual std::unique_ptr<Memory> allocate_shared(int rank, std::size_t bytes) {
    return allocate(rank, bytes);
  }
  /// Allocates memory that the host and the kernels of all ranks use by one address. The host reads
  /// what a stream wrote there after it has synchronized that stream. It is scarce, and slow for a
  /// GPU.
  [[nodiscard]] virtual std::unique_ptr<Memory> allocate_host(int rank, std::size_t bytes) = 0;
  /// Maps the memory behind a Memory::export_handle for `rank`. Valid until the owner frees the
  /// memory. Throws kInvalidArgument for bytes that are no handle of such a device, kEnvironment
  /// where the memory cannot be reached.
  [[nodiscard]] virtual std::unique_ptr<Memory> import_memory(int rank, std::string_view handle) {
    (void)rank, (void)handle;
    throw_environment("memory", "this device cannot take it from other processes");
  }
  /// The allocation that contains `address`, made by this device or by its native API. Valid as
  /// long as its owner keeps it. Throws kInvalidArgument where there is none.
  [[nodiscard]] virtual std::unique_ptr<Memory> find_memory(int rank, std::uint64_t address) {
    (void)rank, (void)address;
    throw_invalid("memory", "this device does not know the caller's own; expected allocate()");
  }
  /// Throws kInvalidArgument where kernels of `rank` cannot use these bytes of the caller: they are
  /// not allocated, leave their allocation, or belong to a context other than the device's. A
  /// device that cannot tell accepts them.
  virtual void check_memory(int rank, std::uint64_t address, std::size_t bytes) const {
    (void)rank, (void)address, (void)bytes;
  }
  /// Whether create_multicast works, for ranks of other processes too. The device has tried it.
  [[nodiscard]] virtual bool has_multicast() const { return false; }
  /// Makes a multicast object for allocate_shared memory of these ranks. `handle` opens the one
  /// that another process made (Multicast::export_handle); empty makes a new one. Throws
  /// kEnvironment on a device without multicast.
  [[nodiscard]] virtual std::unique_ptr<Multicast> create_multicast(std::span<const int> ranks,
                                                                    std::size_t bytes,
                                                                    std::string_view handle = {}) {
    (void)ranks, (void)bytes, (void)handle;
    throw_environment("multicast", "this device has none");
  }
  /// Writes the 128 bytes by which kernels know the map (cuTensorMapEncodeTiled). Throws
  /// kInvalidArgument for a map that breaks a rule above, kEnvironment where there are none.
  virtual void encode(const MatrixMap& map, std::span<std::uint8_t> bytes) const {
    (void)map, (void)bytes;
    throw_environment("tensor map", "this device has none");
  }
  [[nodiscard]] virtual std::unique_ptr<Module> load(int rank, const KernelImage& image) = 0;
  [[nodiscard]] virtual std::unique_ptr<Stream> create_stream(int rank) = 0;
  /// Wraps a stream that the caller made with the device's native API (a CUstream). The caller
  /// keeps it until this object is gone and its work is done. Throws kInvalidArgument where it
  /// belongs to another GPU or context, and on a device without native streams.
  [[nodiscard]] virtual std::unique_ptr<Stream> wrap_stream(int rank, void* handle) {
    (void)rank, (void)handle;
    throw_invalid("stream", "this device has no raw streams; expected one of create_stream()");
  }
  /// Calls `work` with the rank's GPU current on this thread, for libraries that depend on that.
  /// Throws kInvalidArgument for an empty function and for a rank that the device does not have.
  virtual void with_current(int rank, const std::function<void()>& work) {
    (void)rank;
    work();
  }
  [[nodiscard]] virtual std::unique_ptr<Event> create_event(int rank) = 0;
  /// Throws kEnvironment on a device that cannot time its work.
  [[nodiscard]] virtual std::unique_ptr<TimedEvent> create_timed_event(int rank) {
    (void)rank;
    throw_environment("event", "this device cannot time its work");
  }

  /// What sees the work of kernels; null on a device that neither checks nor counts them.
  [[nodiscard]] virtual Inspector* inspector() { return nullptr; }
};

}  // namespace braid
