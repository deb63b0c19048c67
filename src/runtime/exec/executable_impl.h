#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "braid/executable.h"
#include "ir/non_copyable.h"
#include "runtime/exec/communicators.h"
#include "runtime/exec/launch_plan.h"
#include "runtime/exec/loaded_program.h"
#include "runtime/exec/rank_context.h"
#include "runtime/exec/rendezvous.h"
#include "runtime/exec/run_values.h"
#include "runtime/exec/symmetric_heap.h"
#include "runtime/exec/world.h"

namespace braid {

struct Executable::Plan::Impl {
  std::shared_ptr<const char> owner;  ///< identifies its executable
  Bindings bindings;                  ///< a value for every symbol
  LaunchPlan launches;
  std::vector<std::vector<std::uint64_t>> addresses;  ///< of each buffer, by local rank
  std::vector<RankContext::NamedMemory> memory;       ///< set if there is an inspector
  /// By local rank, as of prepare() or the last run, so that runs of a plan whose inputs all have
  /// values check nothing. A thread of run_rank() changes its rank's.
  mutable std::vector<std::vector<RankContext::Unset>> unset;

  /// Throws kInvalidArgument for an input without a value.
  void require_inputs(const RankContext& rank, std::size_t local) const;
};

/// A program on the ranks of this process: what it owns, and the state of its runs.
struct Executable::Impl : NonCopyable {
  /// The last step of Executable::compile.
  [[nodiscard]] static Executable make(const World& world,
                                       std::shared_ptr<const LoadedProgram> loaded);
  /// The same for a plan and code from elsewhere.
  [[nodiscard]] static Executable make(const World& world, Program program, ProgramCode code);
  /// Takes what is in the memory of the current plan's inputs for their values.
  static void accept_unset(Executable& executable);
  /// meet() must be called next.
  Impl(std::shared_ptr<World::Impl> world_impl,
       std::shared_ptr<const LoadedProgram> loaded_program);
  ~Impl();

  /// Connects to the other ranks, which all do the same.
  void meet();
  /// What other ranks must know about the ranks of this process.
  [[nodiscard]] std::vector<RankCard> cards();
  void connect(const std::vector<RankCard>& cards);
  /// Called once all ranks are ready, since creating a communicator waits for the others.
  void communicate(const std::vector<RankCard>& cards);

  /// Resets the records and the state with which ranks wait for each other, on this process's
  /// ranks. Nothing may be in flight.
  void reset();
  /// Waits for all runs, on any streams, and throws the first error. `patience_ns` limits a
  /// communicator's wait for its peers.
  void drain(std::uint64_t patience_ns);
  /// Resets all ranks: those that stopped at different places would wait for epochs that never
  /// come.
  void recover();
  /// Called after an error on this side.
  void fail();
  void synchronize();
  /// Thread safe.
  void cancel();
  /// Creates streams that waiting kernels do not block.
  void make_urgent();
  /// Uses these streams to make all waiting kernels, present and later, give up. The caller holds
  /// `giving_up`.
  void give_up();
  /// Why enqueued work is void, if it is: a lost rank, or cancel().
  [[nodiscard]] std::optional<Error> interruption() const;
  /// The error of this world's ranks, or the cause on another rank that made them give up.
  [[nodiscard]] std::optional<Error> with_others(std::optional<Error> error) const;

  [[nodiscard]] std::size_t local_of(int rank) const;
  const Plan::Impl& require_prepared(const char* call) const;
  void check_own(const Plan::Impl* plan, const char* call) const;
  /// A value for every symbol; throws kInvalidArgument.
  [[nodiscard]] Bindings checked(const Bindings& values) const;
  [[nodiscard]] std::shared_ptr<const Plan::Impl> make_plan(const Bindings& values) const;
  void make_current(std::shared_ptr<const Plan::Impl> plan);
  /// `times` are as in LaunchPlan::run, or empty.
  void run(std::span<Stream* const> streams, std::span<Event* const> times = {});
  /// `stream` is the caller's, or null.
  void run_rank(const std::shared_ptr<const Plan::Impl>& plan, std::size_t local, Stream* stream);
  /// Throws kInvalidArgument if the caller's stream cannot be used for this rank.
  void check_stream(const char* call, std::size_t local, const Stream* stream) const;
  /// Whether a run on these streams is being captured; then it must not wait for events from
  /// outside. Throws kInvalidArgument if a run is impossible.
  [[nodiscard]] bool is_recorded(std::span<Stream* const> streams) const;
  std::vector<StepTime> trace();

  std::shared_ptr<World::Impl> world;
  std::shared_ptr<const char> token = std::make_shared<const char>();
  std::shared_ptr<const LoadedProgram> loaded;
  const Program& program;  ///< the loaded program's
  SymmetricHeap heap;
  Communicators communicators;
  std::uint64_t number = 0;  ///< among the world's executables, the same on all ranks
  RunValues values;
  std::vector<std::unique_ptr<RankContext>> ranks;  ///< of this process
  std::mutex giving_up;                             ///< held while abort words change
  std::vector<std::unique_ptr<Stream>> urgent;      ///< for each rank, created when needed
  std::atomic<bool> cancelled = false;              ///< until reset()
  std::optional<std::uint64_t> on_loss;             ///< its entry in the world's LossWatch
  std::vector<Stream*> own;                         ///< see Lanes::streams
  std::vector<Event*> events;                       ///< see Lanes::events
  std::vector<Stream*> lanes;                       ///< for the run being enqueued
  std::mutex parts;                                 ///< held while run_rank() changes the next two
  std::shared_ptr<const Plan::Impl> current;        ///< null if prepare() is required
  /// Of the last run, whose outputs exist or are being computed; null for none.
  std::shared_ptr<const Plan::Impl> last_run;
  std::atomic<bool> failed = false;  ///< a run failed, and recover() is required
};

}  // namespace braid
