#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "braid/device.h"
#include "braid/graph.h"
#include "braid/pass_config.h"
#include "braid/tensor.h"

namespace braid {

/// Where kernels and their compiled forms are kept between processes.
struct WorldOptions {
  std::string device;     ///< "cpu", "cuda", or "" for cuda where there is a GPU, else cpu
  int world = 1;          ///< ranks
  int threads = 0;        ///< worker threads of the cpu device; 0 = all cores
  std::string cache_dir;  ///< "" = the default directory (README)
  bool use_cache = true;
  /// What kernels are compiled for, "sm_90a", or a device that they are planned for, "H100"; "":
  /// the GPU's own on cuda, on cpu the first one that can run the graph. Executable::compile
  /// refuses a graph that needs a later one.
  std::string target;
  /// How many ranks the plan lets share a GPU, which bounds the grids of kernels that wait; 0: as
  /// many as do on cuda (fewer are refused), one on cpu, so that the grids tested there are those
  /// of one rank per GPU.
  int ranks_per_device = 0;
  /// Checks of the cpu device: "all", or some of "bounds,init,race,sync"; "" for none. What they
  /// find is in Device::findings(). A checked run uses one thread.
  std::string sanitize;
  /// Interleaving of a checked run: "" takes turns, "7" is a seed (the same seed is the same run),
  /// "delay:7" holds back one rank, block or store, "all" is every order of operations that
  /// synchronize, one for each run (Device::next_interleaving). Refused without checks.
  std::string schedule;
  /// Count what kernels do on the cpu device: Device::counts(). Such a run uses one thread, too.
  bool count = false;
  double timeout_s = 0;  ///< how long a wait for a peer may take; 0 = 30 s on cuda, 120 s on cpu
  /// Called before each kernel that is compiled or taken from the cache, and once when all are
  /// there (`done == total`).
  std::function<void(std::size_t done, std::size_t total, std::string_view what)> progress;
  /// Told, on one line, of what costs speed only: a cache directory that is not safe to use. Empty:
  /// the line goes to standard error.
  std::function<void(std::string_view what)> warning;
};

/// N ranks in this process and the device they run on. Several executables may share a world; it
/// outlives them.
class World {
 public:
  /// Throws kEnvironment, with how to get it, when something is missing, and when the kernels of
  /// several ranks could not run at the same time or not reach each other's memory.
  static World open(const WorldOptions& options);
  World(World&&) noexcept;
  World& operator=(World&&) noexcept;
  ~World();

  [[nodiscard]] int size() const;
  [[nodiscard]] Device& device() const;

  struct Impl;
  [[nodiscard]] Impl& impl() const { return *impl_; }

 private:
  explicit World(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Facts about one compiled kernel, as ptxas reports them.
struct KernelReport {
  std::string name;           ///< of the entry
  std::string template_name;  ///< "gemm", "elementwise", ...
  std::string ops;            ///< the ops it computes, "mm+silu"
  int launches = 0;           ///< steps that launch it
  std::int64_t grid = 0;      ///< blocks, at the bound symbols
  int threads = 0;
  int shared_bytes = 0;  ///< dynamic plus static
  int registers = 0;
  int spill_bytes = 0;
  double compile_ms = 0;  ///< in NVRTC; 0 on a cache hit
  bool cache_hit = false;
};
struct ArenaReport {
  std::string name;
  std::int64_t bytes = 0;
};
/// The place of a buffer, the same on every rank.
struct BufferReport {
  std::string name, arena;
  std::int64_t offset = 0, bytes = 0;
};

/// A graph compiled for a world. Not thread safe; runs of one executable are in order. Threads may
/// use different executables of one world at the same time.
class Executable {
 public:
  /// Lowers the graph, compiles its kernels (or takes them from the cache) and allocates the
  /// arenas. Throws kInvalidArgument when the graph's world is not the world's size.
  static Executable compile(const Graph& graph, World& world, const PassConfig& passes = {});
  Executable(Executable&&) noexcept;
  Executable& operator=(Executable&&) noexcept;
  ~Executable();

  /// Binds the caller's own device memory to an input or output (row-major, dense, 16-byte
  /// aligned). It is never copied and must stay valid while the executable may run. To be followed
  /// by prepare().
  void bind(int rank, std::string_view name, std::uint64_t address);

  /// Does everything that can fail or be slow: checks bindings, resolves every launch record. Must
  /// be called before the first run and after a change of bindings or addresses.
  void prepare(const Bindings& bindings);

  /// Copies a tensor into an input of a rank (after prepare; the shape must be that of the
  /// bindings).
  void set_input(int rank, std::string_view name, const HostTensor& tensor);

  /// Enqueues one run on every rank and returns. No allocation, no lookup, no compile.
  void run();

  /// Waits for all runs; throws kTimeout naming rank, step, block and channel when a wait for a
  /// peer expired, kInvalidArgument naming node, rank and index when an index that a kernel looked
  /// up is out of range. The outputs are lost then; the next run starts afresh.
  void synchronize();

  /// Fills every output of every rank with what no kernel writes (in floats a NaN of its own kind,
  /// which relative_error never accepts), so that an unwritten element shows (after prepare).
  void poison_outputs();

  /// An output of a rank (synchronizes).
  [[nodiscard]] HostTensor output(int rank, std::string_view name);

  [[nodiscard]] std::vector<KernelReport> kernels() const;
  [[nodiscard]] std::vector<ArenaReport> arenas() const;
  [[nodiscard]] std::vector<BufferReport> buffers() const;
  [[nodiscard]] int launches() const;  ///< kernel launches of one run, per rank
  [[nodiscard]] const std::string& program_hash()
      const;  ///< what ranks compare before the first launch
  [[nodiscard]] std::string program_json() const;

 private:
  struct Impl;
  explicit Executable(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace braid
