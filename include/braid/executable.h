#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "braid/device_tensor.h"
#include "braid/export.h"
#include "braid/graph.h"
#include "braid/pass_config.h"
#include "braid/tensor.h"
#include "braid/world.h"

namespace braid {

/// Properties of one compiled kernel, as ptxas reports them.
struct KernelReport {
  std::string name;           ///< the entry's name
  std::string template_name;  ///< "gemm", "elementwise", ...
  std::string ops;            ///< the ops it computes, "mm+silu"
  int launches = 0;           ///< per run, for the bound symbols; 0: it belongs to another bucket
  std::int64_t grid = 0;      ///< blocks, for the bound symbols
  int threads = 0;
  int shared_bytes = 0;  ///< static plus dynamic
  int registers = 0;
  int spill_bytes = 0;
  double compile_ms = 0;  ///< in NVRTC; 0 on a cache hit
  bool cache_hit = false;
};
struct ArenaReport {
  std::string name;
  std::int64_t bytes = 0;
};
/// Where a buffer lies. It is the same on every rank.
struct BufferReport {
  std::string name, arena;
  std::int64_t offset = 0, bytes = 0;
};

struct ExecutableOutput {
  std::string name;
  TensorType type;  ///< type on each rank
};

/// When one step of a run worked on one rank.
struct StepTime {
  int rank = 0;
  int stream = 0;    ///< index among the rank's streams
  std::string name;  ///< name of the step, after the node that it runs
  std::string what;  ///< "copy", or the kernel's template such as "gemm" or "barrier"
  std::string ops;   ///< for a kernel: the ops that it computes, "mm+silu"
  /// Microseconds since the first step of this rank could begin.
  double begin_us = 0, end_us = 0;
  /// For part of a kernel, where PassConfig::mark_blocks asked for it: the block that worked, the
  /// rank whose rows it worked on (as an index in the group), and the panel among that rank's rows.
  /// `what` is then "meet", "copy", "wait" or "multiply".
  int block = -1, of_rank = -1, panel = -1;
};

/// A graph compiled for a world, which it keeps alive. Not thread safe; its runs execute in order.
/// Different executables of one world, those of one program included (another()), may be used from
/// different threads at the same time. A moved-from object throws kInvalidArgument.
class BRAID_API Executable {
 public:
  /// Lowers the graph, compiles its kernels or takes them from the cache, and allocates the arenas.
  /// With buckets (Symbol::buckets) each bucket has its own launches and kernels in the same
  /// memory; prepare() chooses by the symbol's value, and rows get the same bits in all. Throws
  /// kInvalidArgument when the graph's world size differs from the world's. On a GPU it first tries
  /// the units that its kernels use and plans without those that fail (docs/architecture.md,
  /// Units); throws kEnvironment where that has cost the process its GPU.
  static Executable compile(const Graph& graph, const World& world, const PassConfig& passes = {});
  /// Loads a saved plan instead of lowering: reads and checks the program.json at `path`. Nothing
  /// is compiled if the kernels lie beside it, as `braid compile` and save() write them. Throws
  /// kInvalidArgument for the first mismatch: a format or a kernel's text of another version of
  /// braid, another number of ranks, the wrong GPU; kEnvironment where its kernels use a unit that
  /// fails on this GPU.
  static Executable load(const std::string& path, const World& world);
  /// What compile() would allocate on each rank; compiles and allocates nothing. A caller who binds
  /// all inputs, parameters and outputs saves the arenas "parameters" and "io".
  static std::vector<ArenaReport> memory_estimate(const Graph& graph, const World& world,
                                                  const PassConfig& passes = {});
  /// How many pages each cache of the graph's paged attentions may have, so that memory_estimate()
  /// of the graph with so many is at most `bytes` in all; 0 where nothing fits. Every cache has as
  /// many, the first dim of an input. Throws kInvalidArgument for a graph without such caches.
  static std::int64_t pages_that_fit(const Graph& graph, const World& world, std::int64_t bytes,
                                     const PassConfig& passes = {});
  /// A second instance of the same program, to run beside this one in another thread. Nothing is
  /// compiled or loaded again. It has its own arenas, flags and streams, but shares the parameters,
  /// bound or in their arena, so that weights exist once. Its states are its own, and other
  /// bindings are not copied. Worlds that meet call it in the same order, as compile(). No other
  /// thread may use this executable meanwhile.
  Executable another();
  Executable(Executable&&) noexcept;
  Executable& operator=(Executable&&) noexcept;
  ~Executable();

  /// Writes the plan (`directory`/program.json) and its kernels for load(), creating the directory
  /// where needed. Throws kEnvironment when it cannot be written.
  void save(const std::string& directory) const;

  /// All launches of one run, resolved for one set of symbol values and addresses. A value type:
  /// any number of plans may exist at no cost to each other.
  class Plan {
   public:
    [[nodiscard]] const Bindings& bindings() const;  ///< a value for every symbol

   private:
    friend class Executable;
    struct Impl;
    std::shared_ptr<const Impl> impl_;
  };

  /// Places an input, parameter or output of a rank in the caller's device memory (row-major,
  /// dense, 16-byte aligned), for plans prepared from now on; earlier plans keep their addresses.
  /// The memory is never copied and must stay valid while such a plan may run. Its first dim may be
  /// longer than a plan needs; prepare() checks the rest of the shape. Throws kInvalidArgument,
  /// also for memory that the world's device cannot use (Device::check_memory).
  void bind(int rank, std::string_view name, const DeviceTensor& tensor);

  /// Does everything that can fail or is slow: checks the symbol values and resolves every launch.
  /// Required before the first run and after a change of symbols or addresses. Runs in flight go
  /// on. The result becomes the current plan until another one is prepared or run.
  Plan prepare(const Bindings& bindings);

  /// Whether prepare() for these values returns without waiting for a compile. False only for
  /// graphs with buckets in a world with WorldOptions::compile_in_background. There prepare() moves
  /// its bucket to the front, waits, and throws if a kernel does not compile; save() and kernels()
  /// wait for all buckets; destroying the last executable of the program cancels what is not
  /// compiled. run() never waits.
  [[nodiscard]] bool ready(const Bindings& bindings) const;

  /// Copies a tensor into an input of a rank. After prepare(), with the plan's shape.
  void set_input(int rank, std::string_view name, const HostTensor& tensor);

  /// Enqueues one run of the current plan on every rank of this world and returns. It allocates,
  /// looks up and compiles nothing. Throws kInvalidArgument for the first input, parameters
  /// included, that has no value on one of these ranks: set_input() gives one for all plans, and so
  /// does bind() for plans prepared after it. States begin with zeros.
  void run();
  /// Enqueues a run on the caller's streams, one for each rank of this world in order
  /// (Device::create_stream, Device::wrap_stream). The run follows earlier work on them and
  /// precedes later work. Runs execute in order whatever streams they use. The streams may be
  /// destroyed afterwards. Throws kInvalidArgument for a stream of another rank or device, and for
  /// null.
  ///
  /// While all streams are being captured (Stream::begin_capture, or the caller's own means) the
  /// run is recorded, in order with the caller's other work there but not with other runs. The
  /// caller must order replays with other runs and replays of this executable, in the same order on
  /// all ranks. synchronize() does not wait for replays, but reports their errors once the caller
  /// has waited. A captured plan stays valid as long as the executable. Throws kInvalidArgument
  /// where only some streams are being captured, and where collectives use a communicator.
  void run(std::span<Stream* const> streams);
  /// Enqueues a run of another plan of this executable, which becomes the current one. Without
  /// streams it uses the executable's own.
  void run(const Plan& plan, std::span<Stream* const> streams = {});
  /// Enqueues one rank's part of run(plan, streams), on the caller's stream or, if null, the
  /// executable's own. A server calls it from one thread per GPU, so that no GPU waits for the
  /// launches of others. Threads may call it for different ranks at the same time, together with
  /// cancel() but no other function. Every rank must get the same plans in the same order, also
  /// across executables whose kernels compete for room on a GPU. If it throws, cancel() releases
  /// the ranks that wait for this one. A device that checks or counts accepts only the current
  /// plan.
  void run_rank(const Plan& plan, int rank, Stream* stream = nullptr);

  /// Runs once as run() does, waits, and returns for each launch and copy when all earlier work on
  /// its stream was done and when it ended. Throws as synchronize() does.
  std::vector<StepTime> trace();

  /// Ends all waits for other ranks in this executable's runs and replays, on the ranks of this
  /// world. Any thread may call it while others use the executable. Everything enqueued until
  /// synchronize() is lost; that call throws kCancelled, and the executable is then as after any
  /// failed run. Ranks elsewhere wait until they are cancelled too, or time out.
  void cancel();

  /// Waits for all runs. Throws kCancelled after cancel(); kTimeout naming rank, step, block and
  /// slot when a wait for a peer expired; kInvalidArgument naming node, rank and index when a
  /// kernel looked up an index out of range; kEnvironment naming a lost rank of another world. The
  /// outputs are lost then; the next run starts afresh.
  void synchronize();

  /// Resets the state with which ranks wait for each other, after a failed run in a world with some
  /// of the ranks. Every rank must call it; it waits for the others. Where all ranks are in one
  /// world, synchronize() does this before it throws.
  void recover();

  /// Fills every output of every rank with a value that no kernel writes (for floats a special NaN,
  /// which relative_error never accepts), so that unwritten elements show. Call it after prepare().
  void poison_outputs();

  /// A copy of an output of a rank, or of an input, which the run may have overwritten: of the last
  /// run, whatever was prepared since. Synchronizes first.
  [[nodiscard]] HostTensor output(int rank, std::string_view name);

  /// The inputs (with the parameters), the outputs and the symbols, in the graph's order.
  [[nodiscard]] std::vector<GraphInput> inputs() const;
  [[nodiscard]] std::vector<ExecutableOutput> outputs() const;
  [[nodiscard]] const SymbolTable& symbols() const;

  [[nodiscard]] std::vector<KernelReport> kernels() const;
  [[nodiscard]] std::vector<ArenaReport> arenas() const;
  [[nodiscard]] std::vector<BufferReport> buffers() const;
  [[nodiscard]] int launches() const;  ///< kernel launches of one run, per rank
  /// PassConfig::batch_invariant at the time of planning.
  [[nodiscard]] bool batch_invariant() const;
  [[nodiscard]] const std::string& program_hash()
      const;  ///< ranks compare it before the first launch
  [[nodiscard]] std::string program_json() const;

  struct Impl;  ///< internal to the library, with the constructor below
  explicit Executable(std::unique_ptr<Impl> impl);

 private:
  /// Throws kInvalidArgument for a moved-from object, and in a forked child.
  [[nodiscard]] Impl& impl() const;
  std::unique_ptr<Impl> impl_;
};

}  // namespace braid
