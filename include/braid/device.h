#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "braid/counts.h"
#include "braid/error.h"
#include "braid/export.h"
#include "braid/finding.h"
#include "braid/launch_config.h"

namespace braid {

/// A named stretch of memory.
struct MemoryPart {
  std::uint64_t address = 0;
  std::size_t bytes = 0;
  std::string name;
};

/// One compiled kernel: PTX text (what the `cpu` device runs) and the machine code of one target
/// (what the `cuda` device loads; when empty it loads the PTX).
struct KernelImage {
  std::string entry;                ///< name of the `.entry`
  std::string ptx;                  ///< without the trailing NUL
  std::vector<std::uint8_t> cubin;  ///< may be empty
  std::string file;                 ///< of whoever wrote it, "sum.cu" or "sum.ptx"; may be empty
};

/// What a kernel takes, as its code declares it.
struct FunctionParameter {
  std::size_t bytes = 0;
  std::string type;  ///< "u64", "b8[12]"
  std::string name;
  std::uint32_t line = 0;  ///< of the PTX
};

/// One address for memory of many ranks: what is written there reaches each part that is bound.
/// Every rank is added, by whom it lives with, before memory of any is bound; memory of all is
/// bound before any uses the address. It goes away before its memory does.
class BRAID_API Multicast {
 public:
  virtual ~Multicast() = default;
  [[nodiscard]] virtual std::uint64_t address() const = 0;  ///< once memory was bound
  [[nodiscard]] virtual std::size_t size() const = 0;       ///< bytes
  /// Bytes by which ranks of other processes get the same one (Device::create_multicast) as long as
  /// it is there; empty where each process has its own.
  [[nodiscard]] virtual std::string export_handle() const { return {}; }
  /// Adds a rank that lives here.
  virtual void add_rank(int rank) { (void)rank; }
};

/// Memory of one rank. Freed on destruction; no work that uses it may be in flight then.
class BRAID_API Memory {
 public:
  virtual ~Memory() = default;
  [[nodiscard]] virtual std::uint64_t address() const = 0;  ///< device address, 256-byte aligned
  [[nodiscard]] virtual std::size_t size() const = 0;       ///< bytes
  /// Bytes by which another rank, in another process too, imports this memory
  /// (Device::import_memory) as long as it is there. Throws kEnvironment where the device cannot
  /// hand it on. On a GPU, to another process: what Device::allocate_shared gave, and memory of the
  /// caller's that cuMemCreate made with handles for others, as one piece.
  [[nodiscard]] virtual std::string export_handle() const {
    throw_environment("memory", "this device cannot hand it to other processes");
  }
  /// Makes all of it the rank's part of `multicast`, from byte `offset` of it on; of memory that is
  /// imported that may be left to its owner. Throws kEnvironment on a device without.
  virtual void bind_multicast(Multicast& multicast, std::size_t offset) {
    (void)multicast, (void)offset;
    throw_environment("multicast", "this device has none");
  }
};

/// A kernel of a loaded module.
class BRAID_API Function {
 public:
  virtual ~Function() = default;
  /// Raises the limit of dynamic shared memory (bytes); to be called before a launch that uses more
  /// than 48 KiB. Throws kEnvironment when the device has not that much.
  virtual void set_max_dynamic_shared(std::uint32_t bytes) = 0;
  /// Bytes of each parameter, in order; empty on a device that does not say.
  [[nodiscard]] virtual std::vector<FunctionParameter> parameters() const { return {}; }
};

/// Loaded code of one rank. The functions live as long as the module.
class BRAID_API Module {
 public:
  virtual ~Module() = default;
  /// Throws kInvalidArgument when there is no such entry, or one that the device cannot run.
  [[nodiscard]] virtual Function& function(std::string_view entry) = 0;
};

class BRAID_API Event {
 public:
  virtual ~Event() = default;
};

/// An event that knows when it was reached.
class BRAID_API TimedEvent : public Event {
 public:
  /// Nanoseconds from `earlier`, one of the same rank, to this one. Both were recorded, and the
  /// streams synchronized since.
  [[nodiscard]] virtual double ns_since(const TimedEvent& earlier) const = 0;
};

/// Work that was recorded (Stream::end_capture), to be replayed on streams. The kernels, memory and
/// executables that it uses must stay as long as it does, and host memory that it copies.
class BRAID_API RecordedGraph {
 public:
  virtual ~RecordedGraph() = default;
};

/// Work in order on one rank. Calls return before the work is done, except `synchronize`.
class BRAID_API Stream {
 public:
  virtual ~Stream() = default;
  /// Whose it is: a mark of its device, and the rank.
  struct Home {
    const void* device = nullptr;
    int rank = 0;
    bool operator==(const Home&) const = default;  ///< whether work of one may be on the other
  };
  [[nodiscard]] virtual Home home() const { return {}; }
  /// `args[i]` points at the value of the i-th parameter, as in cuLaunchKernel; the values are
  /// copied before the call returns. Throws kEnvironment where the device lacks what the attributes
  /// ask for.
  virtual void launch(Function& function, const LaunchConfig& config,
                      std::span<const void* const> args) = 0;
  /// Device to device, of any rank. Copies and fills past an allocation throw kInvalidArgument.
  virtual void copy(std::uint64_t dst, std::uint64_t src, std::size_t bytes) = 0;
  virtual void copy_from_host(std::uint64_t dst, const void* src, std::size_t bytes) = 0;
  virtual void copy_to_host(void* dst, std::uint64_t src, std::size_t bytes) = 0;
  /// Fills with one byte value.
  virtual void fill(std::uint64_t dst, std::uint8_t value, std::size_t bytes) = 0;
  virtual void record(Event& event) = 0;
  virtual void wait(Event& event) = 0;
  /// Writes a 32-bit word once all work so far is done, for every rank to see.
  virtual void write_value(std::uint64_t address, std::uint32_t value) = 0;
  /// Holds back later work until the word is `value` or past it: signed(word - value) >= 0. The
  /// address of both is a multiple of 4.
  virtual void wait_value(std::uint64_t address, std::uint32_t value) = 0;
  /// Blocks the host until all work so far is done; throws the first error of that work.
  virtual void synchronize() = 0;
  /// Whether what is enqueued is recorded to be replayed: by begin_capture(), or by the caller's
  /// own means (a CUDA graph).
  [[nodiscard]] virtual bool is_capturing() const { return false; }
  /// From now on work that is enqueued here is recorded and not done. A stream that waits for an
  /// event recorded in a capture becomes a part of it, and must be waited for by the first one
  /// before the end. The stream cannot be synchronized meanwhile, and waits for no event from
  /// outside. Throws kInvalidArgument where it is being captured already, kEnvironment on a device
  /// without.
  virtual void begin_capture() { throw_environment("stream", "this device records no work"); }
  /// What was recorded since begin_capture() on this stream. Throws kInvalidArgument where no
  /// capture began on it, and where the capture is spoilt, which then is over, too.
  [[nodiscard]] virtual std::unique_ptr<RecordedGraph> end_capture() {
    throw_environment("stream", "this device records no work");
  }
  /// Enqueues all of that work, behind the graph's last replay, on a stream of the same rank.
  virtual void replay(RecordedGraph& graph) {
    (void)graph;
    throw_environment("stream", "this device records no work");
  }
  /// The device's own handle of it (a CUstream), for libraries that enqueue work by themselves;
  /// null on a device that has none.
  [[nodiscard]] virtual void* handle() const { return nullptr; }
};

/// Where programs run: N ranks, each with its own memory and streams. On `cpu` all ranks are
/// virtual and share one pool of worker threads; on `cuda` rank r runs on GPU r modulo the number
/// of GPUs (but see WorldOptions::gpu). Every rank can address every other rank's memory.
class BRAID_API Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual std::string_view kind() const = 0;    ///< "cpu" or "cuda"
  [[nodiscard]] virtual std::string description() const = 0;  ///< one line for people
  /// What the ranks' GPU is called by its vendor, "NVIDIA H200"; of another device its kind.
  [[nodiscard]] virtual std::string name() const { return std::string(kind()); }
  [[nodiscard]] virtual std::string target() const = 0;    ///< e.g. "sm_80", "H200"
  [[nodiscard]] virtual int world() const = 0;             ///< number of ranks
  [[nodiscard]] virtual int ranks_per_device() const = 0;  ///< ranks that share one device
  [[nodiscard]] virtual std::unique_ptr<Memory> allocate(int rank, std::size_t bytes) = 0;
  /// Memory that the ranks of all worlds may reach: those of this device by its address, others by
  /// its Memory::export_handle. A device may take more than is asked for (2 MiB and more on a GPU).
  [[nodiscard]] virtual std::unique_ptr<Memory> allocate_shared(int rank, std::size_t bytes) {
    return allocate(rank, bytes);
  }
  /// Memory that both the host and the kernels of all ranks use by its address: the host reads what
  /// work on a stream wrote there once it has synchronized that stream. Small and slow to reach for
  /// a GPU.
  [[nodiscard]] virtual std::unique_ptr<Memory> allocate_host(int rank, std::size_t bytes) = 0;
  /// The memory of another rank, as `rank` reaches it, by its Memory::export_handle. Stays usable
  /// until the memory itself is freed. Throws kInvalidArgument for bytes that are no handle of such
  /// a device, kEnvironment where it cannot be reached.
  [[nodiscard]] virtual std::unique_ptr<Memory> import_memory(int rank, std::string_view handle) {
    (void)rank, (void)handle;
    throw_environment("memory", "this device cannot take it from other processes");
  }
  /// The allocation that holds `address`, of this device or of its own API, as long as its owner
  /// keeps it. Throws kInvalidArgument where there is none.
  [[nodiscard]] virtual std::unique_ptr<Memory> find_memory(int rank, std::uint64_t address) {
    (void)rank, (void)address;
    throw_invalid("memory", "this device does not know the caller's own; expected allocate()");
  }
  /// Throws kInvalidArgument where kernels of `rank` could not use these bytes of the caller's:
  /// memory that nobody has allocated or that ends before, or of a context that is not the
  /// device's. What a device cannot tell it lets pass.
  virtual void check_memory(int rank, std::uint64_t address, std::size_t bytes) const {
    (void)rank, (void)address, (void)bytes;
  }
  /// Whether create_multicast works, for ranks of other processes, too: a device has tried it.
  [[nodiscard]] virtual bool has_multicast() const { return false; }
  /// For the allocate_shared memory of these ranks. `handle`: that of another process
  /// (Multicast::export_handle) which has made it; empty where nobody has. Throws kEnvironment on a
  /// device without.
  [[nodiscard]] virtual std::unique_ptr<Multicast> create_multicast(std::span<const int> ranks,
                                                                    std::size_t bytes,
                                                                    std::string_view handle = {}) {
    (void)ranks, (void)bytes, (void)handle;
    throw_environment("multicast", "this device has none");
  }
  [[nodiscard]] virtual std::unique_ptr<Module> load(int rank, const KernelImage& image) = 0;
  [[nodiscard]] virtual std::unique_ptr<Stream> create_stream(int rank) = 0;
  /// A stream that the caller made with the device's own API (a CUstream) and keeps until this
  /// object is gone and its work done. Throws kInvalidArgument where it is of another GPU or
  /// context, and on a device that has no other streams than its own.
  [[nodiscard]] virtual std::unique_ptr<Stream> wrap_stream(int rank, void* handle) {
    (void)rank, (void)handle;
    throw_invalid("stream", "this device has no raw streams; expected one of create_stream()");
  }
  /// Does `work` with the rank's GPU current on this thread, for libraries that look at that.
  virtual void with_current(int rank, const std::function<void()>& work) {
    (void)rank;
    work();
  }
  [[nodiscard]] virtual std::unique_ptr<Event> create_event(int rank) = 0;
  /// Throws kEnvironment on a device without.
  [[nodiscard]] virtual std::unique_ptr<TimedEvent> create_timed_event(int rank) {
    (void)rank;
    throw_environment("event", "this device cannot time its work");
  }

  /// Whether it checks or counts what kernels do. Then code says which line of its text it came
  /// from, and parts are named.
  [[nodiscard]] virtual bool watches() const { return false; }
  /// Says what lies where in the allocation that starts at `memory`; replaces what was said before.
  /// A device that checks accesses allows those to these parts only, and calls them so.
  virtual void name_parts(std::uint64_t memory, std::span<const MemoryPart> parts) {
    (void)memory;
    (void)parts;
  }
  /// What the checks found so far; always empty on a device without any, or with them off.
  [[nodiscard]] virtual std::vector<Finding> findings() { return {}; }
  /// What they found that harms nothing, of kind "note": warps that write the same value to one
  /// place, and reads that race and whose values nobody uses.
  [[nodiscard]] virtual std::vector<Finding> notes() { return {}; }
  /// Where every interleaving is tried (Schedule::Kind::kAll): notes that a run is over,
  /// all its streams synchronized, and returns whether the next run will be another one. The runs
  /// must do the same work. Else false.
  virtual bool next_interleaving() { return false; }
  /// What kernels did so far, in the order of their first launches; empty where nothing is counted.
  /// No work may be in flight.
  [[nodiscard]] virtual std::vector<KernelCounts> counts() { return {}; }
};

}  // namespace braid
