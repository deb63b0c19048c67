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
#include "runtime/exec/unit_trials.h"
#include "runtime/worker_processes.h"

namespace braid {

class LoadedProgram;   // loaded_program.h
class SymmetricBlock;  // symmetric_block.h

/// Throws kInvalidArgument at `name`, a graph or program of that many ranks, if the device has
/// another number.
void check_ranks(const std::string& name, std::int64_t ranks, const Device& device);

/// The counters behind WorldMetrics.
struct Tallies {
  std::atomic<std::uint64_t> kernels_compiled = 0, kernels_from_cache = 0, plans = 0, runs = 0,
                             failures = 0;
  std::atomic<double> compile_ms = 0;

  void add(const CompiledKernel& kernel);
};

struct World::Impl {
  /// Initializes everything but the device.
  explicit Impl(const WorldOptions& given);
  /// Called once.
  void set_device(std::shared_ptr<Device> opened);

  /// Makes one that a fork does not destroy: its threads do not exist there.
  static std::shared_ptr<Impl> make(const WorldOptions& options);
  [[nodiscard]] bool is_fork() const;
  /// Throws kInvalidArgument in a forked child.
  void refuse_fork() const;

  [[nodiscard]] const std::vector<int>& ranks() const { return rendezvous->ranks(); }
  [[nodiscard]] bool all_here() const {
    return static_cast<int>(ranks().size()) == rendezvous->world();
  }
  /// Runs work that other worlds wait for; if it throws, they are told.
  void take_part(const std::function<void()>& work);
  /// The loss of a rank of another world, if any.
  [[nodiscard]] std::optional<Error> loss() const;
  /// Set if ranks run with different values, which ends the world as a loss does.
  [[nodiscard]] std::optional<Error> disagreement() const;
  /// For compile_processes; warns if it is missing.
  void find_worker();
  /// The tools that this world compiles with. `workers` is null if this process compiles.
  [[nodiscard]] CompileTools tools(WorkerProcesses* workers) const;
  [[nodiscard]] std::unique_ptr<WorkerProcesses> make_workers() const;
  [[nodiscard]] Target target_of(const Graph& graph) const;
  /// The plan of a graph for this world's device.
  [[nodiscard]] Program lower(const Graph& graph, const PassConfig& passes) const;

  /// Loads a plan with its kernels, which are compiled already or are compiled by it. The world
  /// must outlive it.
  [[nodiscard]] std::shared_ptr<const LoadedProgram> load(Program program, ProgramCode code);
  [[nodiscard]] std::shared_ptr<const LoadedProgram> compile(Program program, ProgramCode printed);

  /// Tries the units that the kernels use, of those that no rank has tried yet. Nothing on the cpu
  /// device.
  [[nodiscard]] std::vector<UnitFinding> try_units(const Program& program, const ProgramCode& code);
  /// Learns what other ranks found of them; what failed on any is off from now on, and warned of.
  void settle_units(const Program& program, std::vector<UnitFinding> findings);
  /// The bits of the units that the kernels use and that are off, since they failed.
  [[nodiscard]] unsigned failed_units(const ProgramCode& code) const;
  /// Throws kEnvironment for a plan with such kernels, which cannot be made anew.
  void refuse_failed_units(const Program& program, const ProgramCode& code);

  pid_t process;                     ///< process that opened it
  std::unique_ptr<DiskCache> cache;  ///< null if unused; outlives the device
  std::shared_ptr<Device> device;
  WorldOptions options;
  int ranks_per_device = 1;      ///< what plans assume
  std::uint64_t timeout_ns = 0;  ///< limit of a wait for a peer
  std::string worker;            ///< path of the worker program; empty: this process compiles
  mutable Tallies tallies;
  /// Held while a run is enqueued on all ranks. Kernels of one run wait for each other. If runs of
  /// two threads interleaved, each could wait for room on a GPU that the other one holds.
  std::mutex enqueue;
  std::shared_ptr<Rendezvous> rendezvous;
  std::recursive_mutex meeting;       ///< held during a rendezvous
  std::uint64_t executables = 0;      ///< that have met; changes during a rendezvous
  std::unique_ptr<LossWatch> losses;  ///< null if all ranks are in this process
  /// For SymmetricMemory::workspace, by the ranks that share each.
  std::map<std::vector<std::vector<std::int64_t>>, std::shared_ptr<SymmetricBlock>> workspaces;
  std::optional<UnitTrials> trials;  ///< empty on the cpu device, which is the reference
  /// What is wrong with the units that were tried, or nothing; changes during a rendezvous.
  std::map<unsigned, std::string> unit_failures;
  std::atomic<unsigned> units_off = 0;  ///< bits of those that failed
};

}  // namespace braid
