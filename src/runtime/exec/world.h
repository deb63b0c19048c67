#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "braid/error.h"
#include "braid/graph.h"
#include "braid/world.h"
#include "codegen/target.h"
#include "lowering/passes.h"
#include "runtime/compile/compile_program.h"
#include "runtime/compile/disk_cache.h"
#include "runtime/exec/loss_watch.h"
#include "runtime/worker_processes.h"

namespace braid {

class LoadedProgram;   // loaded_program.h
class SymmetricBlock;  // symmetric_block.h

/// Throws kInvalidArgument at `name`, a graph or a program of so many ranks, where the device has
/// others.
void check_ranks(const std::string& name, std::int64_t ranks, const Device& device);

/// WorldMetrics while they are counted.
struct Tallies {
  std::atomic<std::uint64_t> kernels_compiled = 0, kernels_from_cache = 0, plans = 0, runs = 0,
                             failures = 0;
  std::atomic<double> compile_ms = 0;

  void add(const CompiledKernel& kernel);
};

struct World::Impl {
  /// All but the device.
  explicit Impl(const WorldOptions& options);
  /// To be called once.
  void set_device(const WorldOptions& options, std::shared_ptr<Device> opened);

  /// One that a fork leaves alone: threads, and all that waits for them, are not there.
  static std::shared_ptr<Impl> make(const WorldOptions& options);
  [[nodiscard]] bool is_fork() const;
  /// Throws kInvalidArgument.
  void refuse_fork() const;

  [[nodiscard]] const std::vector<int>& ranks() const { return rendezvous->ranks(); }
  [[nodiscard]] bool all_here() const {
    return static_cast<int>(ranks().size()) == rendezvous->world();
  }
  /// Does what the other worlds wait for; where it throws, they are told.
  void take_part(const std::function<void()>& work);
  /// That a rank of another world is lost; nothing while all is well.
  [[nodiscard]] std::optional<Error> loss() const;
  /// For compile_processes; warns where there is none.
  void find_worker(const WorldOptions& options);
  /// What this world compiles with. The workers are null where this process does it.
  [[nodiscard]] CompileTools tools(WorkerProcesses* workers) const;
  [[nodiscard]] std::unique_ptr<WorkerProcesses> make_workers() const;
  /// What the kernels of a graph are compiled for.
  [[nodiscard]] Target target_of(const Graph& graph) const;
  /// The plan of a graph for this world's device.
  [[nodiscard]] Program lower(const Graph& graph, const PassConfig& passes) const;

  /// A plan with its kernels: of code that is there, and compiled. The world must outlive it.
  [[nodiscard]] std::shared_ptr<const LoadedProgram> load(Program program, ProgramCode code);
  [[nodiscard]] std::shared_ptr<const LoadedProgram> compile(Program program);

  pid_t process;                     ///< that opened it
  std::unique_ptr<DiskCache> cache;  ///< null when not used; outlives the device
  std::shared_ptr<Device> device;
  std::string target;        ///< what the user asked for, "sm_90a"; empty: see WorldOptions::target
  int ranks_per_device = 1;  ///< what is planned for
  std::string tune_db;       ///< "": none
  std::uint64_t timeout_ns = 0;  ///< of a wait for a peer
  bool line_info = false;        ///< kernels are compiled with the lines of their text
  Progress progress;
  std::function<void(std::string_view pass)> pass_progress;
  std::string worker;         ///< the program; empty: this process compiles
  int compile_processes = 0;  ///< of it
  bool in_background = false;
  Allocator allocator;  ///< the caller's, or empty
  mutable Tallies tallies;
  decltype(WorldOptions::nccl_communicators) nccl_communicators;  ///< the caller's
  /// Held while a run is enqueued on all ranks. Kernels of one run wait for each other; with those
  /// of two threads' runs between each other, both could wait for room on a GPU that neither
  /// leaves.
  std::mutex enqueue;
  std::shared_ptr<Rendezvous> rendezvous;
  std::recursive_mutex meeting;       ///< held while something is agreed upon at the rendezvous
  std::unique_ptr<LossWatch> losses;  ///< null where all ranks live here
  /// Of SymmetricMemory::workspace, by the ranks that share each.
  std::map<std::vector<std::vector<std::int64_t>>, std::shared_ptr<SymmetricBlock>> workspaces;
};

}  // namespace braid
