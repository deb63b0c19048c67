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

/// Facts about one compiled kernel, as ptxas reports them.
struct KernelReport {
  std::string name;           ///< of the entry
  std::string template_name;  ///< "gemm", "elementwise", ...
  std::string ops;            ///< the ops it computes, "mm+silu"
  int launches = 0;           ///< of a run, at the bound symbols; 0: of another bucket
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

/// What an executable gives.
struct ExecutableOutput {
  std::string name;
  TensorType type;  ///< on each rank
};

/// When one step of a run worked on one rank.
struct StepTime {
  int rank = 0;
  int stream = 0;    ///< of the rank
  std::string name;  ///< of the step: of the node it runs
  std::string what;  ///< "copy", or the kernel's template: "gemm", "barrier", ...
  std::string ops;   ///< of a kernel: the ops it computes, "mm+silu"
  /// Microseconds since the first step of this rank could begin.
  double begin_us = 0, end_us = 0;
  /// Of a part of a kernel, where PassConfig::mark_blocks asked for them: which block did it, of
  /// which rows: those of a rank, by its index in the group, and of so many panels of them the
  /// one. `what` is "meet", "copy", "wait" or "multiply".
  int block = -1, of_rank = -1, panel = -1;
};

/// A graph compiled for a world, which lives as long as it. Not thread safe; runs of one executable
/// are in order. Threads may use different executables of one world at the same time, those of one
/// program included (another()). One that was moved from throws kInvalidArgument.
class BRAID_API Executable {
 public:
  /// Lowers the graph, compiles its kernels (or takes them from the cache) and allocates the
  /// arenas. Where a symbol has buckets (Symbol::buckets) each has launches and kernels of its own,
  /// in the same memory; prepare() chooses by the symbol's value, and rows keep their bits. Throws
  /// kInvalidArgument when the graph's world is not the world's size.
  static Executable compile(const Graph& graph, const World& world, const PassConfig& passes = {});
  /// The same of a plan that was made before, maybe elsewhere: the program.json at `path` is read
  /// and checked instead of lowering. Where its kernels lie beside it, as `braid compile`
  /// and save() write them, nothing is compiled either. Throws kInvalidArgument at the first thing
  /// that is wrong: another version of braid, another number of ranks, a GPU it is not for.
  static Executable load(const std::string& path, const World& world);
  /// What compile() would allocate on each rank; nothing is compiled or allocated. A caller who
  /// binds all inputs, parameters and outputs saves the arenas "parameters" and "io".
  static std::vector<ArenaReport> memory_estimate(const Graph& graph, const World& world,
                                                  const PassConfig& passes = {});
  /// The same program once more, to run beside this one in another thread: nothing is compiled or
  /// loaded again. Arenas, flags and streams are its own. Parameters lie where those of this one
  /// do, in the caller's memory or in the one arena of both, so that weights are there once; what
  /// else is bound is not. Worlds that meet call it in the same order, as compile(). Not while
  /// another thread uses this one.
  Executable another();
  Executable(Executable&&) noexcept;
  Executable& operator=(Executable&&) noexcept;
  ~Executable();

  /// Writes the plan and its kernels into a directory, which is made where needed, for load():
  /// `directory`/program.json. Throws kEnvironment when that cannot be written.
  void save(const std::string& directory) const;

  /// Every launch of one run, resolved for one set of symbol values and addresses. A value: many
  /// live side by side, and none of them costs the others anything.
  class Plan {
   public:
    [[nodiscard]] const Bindings& bindings() const;  ///< of every symbol

   private:
    friend class Executable;
    struct Impl;
    std::shared_ptr<const Impl> impl_;
  };

  /// Has an input, parameter or output of a rank in the caller's own device memory (row-major,
  /// dense, 16-byte aligned), for the plans made from now on: earlier ones keep their addresses. It
  /// is never copied and must stay valid while such a plan may run. Its first dim may be longer
  /// than what a plan needs. To be followed by prepare(), which checks the rest of the shape.
  /// Throws kInvalidArgument, also for memory that the world's device cannot use
  /// (Device::check_memory).
  void bind(int rank, std::string_view name, const DeviceTensor& tensor);

  /// Does everything that can fail or be slow: checks bindings, resolves every launch record. Must
  /// be called before the first run and after a change of bindings or addresses. Runs under way go
  /// on. The plan is the current one until another one is prepared or run.
  Plan prepare(const Bindings& bindings);

  /// Whether prepare() of these values need not wait for a compile: always true but for graphs with
  /// buckets in a world with WorldOptions::compile_in_background. There prepare() has the bucket
  /// that it is asked for compiled before the others, waits, and throws why its kernels do not
  /// compile; save() and kernels() wait for all; and the last executable of the program ends what
  /// is still to be compiled. run() never waits.
  [[nodiscard]] bool ready(const Bindings& bindings) const;

  /// Copies a tensor into an input of a rank (after prepare; the shape must be that of the
  /// bindings).
  void set_input(int rank, std::string_view name, const HostTensor& tensor);

  /// Enqueues one run of the current plan on every rank that lives here and returns. No allocation,
  /// no lookup, no compile.
  void run();
  /// The same on the caller's streams, one for each of these ranks in order (Device::create_stream,
  /// Device::wrap_stream): the run follows what is on them, and what comes on them later follows
  /// the run. Runs are in order whatever streams they are on. The streams may go away afterwards.
  /// Throws kInvalidArgument for a stream of another rank or device, and for null.
  ///
  /// Where all of them are being captured (Stream::begin_capture, or the caller's own means), the
  /// run is recorded: in order with the caller's other work there, but not with other runs. He
  /// replays it behind other runs and replays of this executable, and on all ranks in the same
  /// order; synchronize() does not wait for that, but tells its errors once he has waited. A plan
  /// stays usable as long as the executable. Throws kInvalidArgument where some streams are being
  /// captured, and where collectives go by a communicator.
  void run(std::span<Stream* const> streams);
  /// The same with another plan of this executable, which becomes the current one; without streams
  /// on the executable's own.
  void run(const Plan& plan, std::span<Stream* const> streams = {});
  /// One rank's part of run(plan, streams), on the caller's stream or, where that is null, the
  /// executable's own, so that GPUs do not wait until one thread has enqueued for them all: a
  /// server calls it for each rank that lives here from a thread of that GPU. Threads may call this
  /// for different ranks at one time, and no other function but cancel() meanwhile. Each rank must
  /// get the same plans in the same order, of all executables whose kernels wait for each other's
  /// room on a GPU, too. Where it throws, cancel() ends what the other ranks wait for. A device
  /// that checks or counts takes the current plan only.
  void run_rank(const Plan& plan, int rank, Stream* stream = nullptr);

  /// One run as run() does, and waits for it: returns when each launch and each copy could begin,
  /// all in front of it on its stream being over, and when it ended. Throws as synchronize() does.
  std::vector<StepTime> trace();

  /// From any thread, while others use the executable: ends all that waits for other ranks in its
  /// runs and replays, on the ranks that live here. What is enqueued until synchronize() is lost,
  /// which throws kCancelled then; after that all is as after any run that failed. Ranks elsewhere
  /// wait until they are cancelled, too, or give up.
  void cancel();

  /// Waits for all runs; throws kCancelled after cancel(), kTimeout naming rank, step, block and
  /// slot when a wait for a peer expired, kInvalidArgument naming node, rank and index when an
  /// index that a kernel looked up is out of range, kEnvironment naming a rank of another world
  /// that is lost. The outputs are lost then; the next run starts afresh.
  void synchronize();

  /// After a run that failed, in a world that has but some of the ranks: makes all by which ranks
  /// wait for each other as before the first run. Every rank must call it; it waits for the others.
  /// Where all ranks live in one world, this is done before synchronize() throws.
  void recover();

  /// Fills every output of every rank with what no kernel writes (in floats a NaN of its own kind,
  /// which relative_error never accepts), so that an unwritten element shows (after prepare).
  void poison_outputs();

  /// An output of a rank (synchronizes).
  [[nodiscard]] HostTensor output(int rank, std::string_view name);

  /// What it takes, parameters among it, and gives, in the order of the graph, and its symbols.
  [[nodiscard]] std::vector<GraphInput> inputs() const;
  [[nodiscard]] std::vector<ExecutableOutput> outputs() const;
  [[nodiscard]] const SymbolTable& symbols() const;

  [[nodiscard]] std::vector<KernelReport> kernels() const;
  [[nodiscard]] std::vector<ArenaReport> arenas() const;
  [[nodiscard]] std::vector<BufferReport> buffers() const;
  [[nodiscard]] int launches() const;  ///< kernel launches of one run, per rank
  /// What PassConfig::batch_invariant was when it was planned.
  [[nodiscard]] bool batch_invariant() const;
  [[nodiscard]] const std::string& program_hash()
      const;  ///< what ranks compare before the first launch
  [[nodiscard]] std::string program_json() const;

  struct Impl;  ///< the library's own, as is what makes one of it
  explicit Executable(std::unique_ptr<Impl> impl);

 private:
  /// Throws kInvalidArgument where this was moved from, and in a fork.
  [[nodiscard]] Impl& impl() const;
  std::unique_ptr<Impl> impl_;
};

}  // namespace braid
