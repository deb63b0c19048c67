#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "braid/executable.h"
#include "runtime/exec/communicators.h"
#include "runtime/exec/launch_plan.h"
#include "runtime/exec/loaded_program.h"
#include "runtime/exec/rank_context.h"
#include "runtime/exec/rendezvous.h"
#include "runtime/exec/symmetric_heap.h"
#include "runtime/exec/world.h"

namespace braid {

struct Executable::Plan::Impl {
  std::shared_ptr<const char> owner;  ///< the token of its executable
  Bindings bindings;                  ///< complete
  LaunchPlan launches;
  std::vector<std::vector<std::uint64_t>> addresses;  ///< of each buffer, by local rank
  std::vector<RankContext::NamedMemory> memory;       ///< where the device watches
};

/// A program on the ranks that live here: what it owns, and the state of its runs.
struct Executable::Impl {
  /// What Executable::compile ends with.
  [[nodiscard]] static Executable make(const World& world,
                                       std::shared_ptr<const LoadedProgram> loaded);
  /// The same of a plan and the code of its kernels, wherever they were made.
  [[nodiscard]] static Executable make(const World& world, Program program, ProgramCode code);
  /// To be followed by meet().
  Impl(std::shared_ptr<World::Impl> world_impl,
       std::shared_ptr<const LoadedProgram> loaded_program);
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl();

  /// Finds the other ranks, all of which do the same.
  void meet();
  /// What the other ranks must know of a rank that lives here.
  [[nodiscard]] std::vector<RankCard> cards();
  void connect(const std::vector<RankCard>& cards);
  /// Once all can: a communicator waits for the others while it is made.
  void communicate(const std::vector<RankCard>& cards);

  /// Records and all by which ranks wait for each other, on the ranks that live here. Nothing may
  /// be in flight.
  void reset();
  /// Waits for all runs, on whatever streams; throws the first error. A communicator may wait for
  /// its peers for so long.
  void drain(std::uint64_t patience_ns);
  /// Ranks that stopped at different places would wait for epochs that never come.
  void recover();
  /// After an error that was found on this side.
  void fail();
  void synchronize();
  /// From any thread.
  void cancel();
  /// Streams that kernels which wait do not hold.
  void make_urgent();
  /// On these, has all such kernels, those that come later, too, give up. `giving_up` is held.
  void give_up();
  /// Why what is enqueued comes to nothing, if it does: a rank is lost, or cancel().
  [[nodiscard]] std::optional<Error> interruption() const;
  /// The error of this world's ranks, or why they gave up: what another rank did.
  [[nodiscard]] std::optional<Error> with_others(std::optional<Error> error) const;

  [[nodiscard]] std::size_t local_of(int rank) const;
  const Plan::Impl& require_prepared(const char* call) const;
  void check_own(const Plan::Impl* plan, const char* call) const;
  /// A value of every symbol; throws kInvalidArgument.
  [[nodiscard]] Bindings checked(const Bindings& values) const;
  [[nodiscard]] std::shared_ptr<const Plan::Impl> make_plan(const Bindings& values) const;
  void make_current(std::shared_ptr<const Plan::Impl> plan);
  /// `times`: as LaunchPlan::run wants them, or none.
  void run(std::span<Stream* const> streams, std::span<Event* const> times = {});
  /// `stream`: the caller's, or null.
  void run_rank(const std::shared_ptr<const Plan::Impl>& plan, std::size_t local, Stream* stream);
  /// Throws kInvalidArgument where the caller's stream cannot take the part of this rank.
  void check_stream(const char* call, std::size_t local, const Stream* stream) const;
  /// Whether a run on these streams is part of a capture: no event from outside may be waited for.
  /// Throws kInvalidArgument where that cannot be.
  [[nodiscard]] bool is_recorded(std::span<Stream* const> streams) const;
  std::vector<StepTime> trace();

  std::shared_ptr<World::Impl> world;
  std::shared_ptr<const char> token = std::make_shared<const char>();
  std::shared_ptr<const LoadedProgram> loaded;
  const Program& program;  ///< of it
  SymmetricHeap heap;
  Communicators communicators;
  std::vector<std::unique_ptr<RankContext>> ranks;  ///< that live here
  std::mutex giving_up;                             ///< held while abort words change
  std::vector<std::unique_ptr<Stream>> urgent;      ///< of each rank, when it is needed
  std::atomic<bool> cancelled = false;              ///< until reset()
  std::optional<std::uint64_t> on_loss;             ///< in the world's LossWatch
  std::vector<Stream*> own;                         ///< as Lanes::streams
  std::vector<Event*> events;                       ///< as Lanes::events
  std::vector<Stream*> lanes;                       ///< of the run that is enqueued
  std::mutex parts;                                 ///< held where run_rank() changes the next two
  std::shared_ptr<const Plan::Impl> current;        ///< null when prepare() is due
  bool has_run = false;                             ///< outputs are there, or under way
  std::atomic<bool> failed = false;                 ///< a run failed, and recover() is due
};

}  // namespace braid
