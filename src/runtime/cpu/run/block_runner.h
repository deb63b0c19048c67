#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "braid/device.h"
#include "runtime/cpu/check/block_counter.h"
#include "runtime/cpu/check/sanitizer.h"
#include "runtime/cpu/check/scheduler.h"
#include "runtime/cpu/run/fiber.h"
#include "runtime/cpu/run/guarded_memory.h"
#include "runtime/cpu/run/multicast.h"
#include "runtime/cpu/run/runtime_helpers.h"
#include "runtime/cpu/run/tensor_memory.h"
#include "runtime/cpu/run/warp_context.h"
#include "runtime/cpu/translate/control_flow.h"
#include "runtime/cpu/translate/jit.h"
#include "runtime/parameter_storage.h"

namespace braid::cpu {

/// A kernel launch as its blocks see it; constant while they run.
struct Launch {
  Kernel kernel;
  Dim3 grid;
  Dim3 block;
  Dim3 cluster;  ///< blocks that run together and see each other's shared memory
  bool explicit_cluster = false;
  std::uint32_t dynamic_shared = 0;
  std::uint32_t shared_align = 1;              ///< of the start of shared memory
  bool generic_shared = false;                 ///< Program::Entry::generic_shared
  std::uint32_t reserved_shared = 0;           ///< Program::Entry::reserved_shared
  std::uint32_t straight_length = 0;           ///< Program::Entry::straight_length
  AddressRange* memory = nullptr;              ///< the device's
  const MulticastTable* multicasts = nullptr;  ///< the device's
  int rank = 0;
  std::uint32_t grid_id = 0;
  std::uint64_t ordinal = 0;  ///< index among the launches of its stream since the run began
  bool aligned = false;
  Sanitizer* sanitizer = nullptr;      ///< null if nothing is checked
  std::shared_ptr<LaunchCheck> check;  ///< of this launch, if checked
  Scheduler* scheduler = nullptr;      ///< null: round robin
  std::shared_ptr<LaunchCount> count;  ///< null if nothing is counted
  ParameterStorage params;
  /// Workspace in which its blocks may synchronize (WarpContext::grid_workspace).
  alignas(16) mutable std::array<std::uint8_t, 16> workspace{};
  std::uint32_t thread_registers = 0;  ///< that each thread has at its start
  std::uint32_t addressed_params = 0;  ///< size of parameters that the kernel may read by address
  [[nodiscard]] std::uint64_t params_address() const {
    return reinterpret_cast<std::uint64_t>(params.data());
  }
  [[nodiscard]] std::uint64_t workspace_address() const {
    return reinterpret_cast<std::uint64_t>(workspace.data());
  }
  /// Whether warps take turns; otherwise each runs to its end.
  [[nodiscard]] bool takes_turns() const {
    return waits() != Waits::kNever || scheduler != nullptr;
  }
  /// Whether they can take turns on one stack.
  [[nodiscard]] bool one_stack() const {
    return waits() == Waits::kAtBarriers && scheduler == nullptr;
  }
  /// Whether several blocks can run on one stack because nobody observes where one ends.
  [[nodiscard]] bool in_a_row() const {
    return (!takes_turns() || one_stack()) && sanitizer == nullptr && count == nullptr;
  }
  [[nodiscard]] Waits waits() const { return static_cast<Waits>(kernel.info.waits); }
};

/// Runs the warps of a block, or of a cluster of blocks, on fibers of the calling thread. It is
/// reused from block to block. One that spins can be put aside and continued by another thread.
class BlockRunner {
  struct Block;
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

 public:
  /// kStopped: all its warps wait, or stand before an operation that the scheduler must grant.
  enum class State : std::uint8_t { kDone, kSpinning, kStopped, kFailed };

  /// Prepares block, or cluster, number `index` of `launch`. `glance`: only its first reads are
  /// wanted, after which its warps end.
  void start(const Launch& launch, std::uint64_t index, bool glance = false);
  /// Prepares `count` blocks, which one run() executes one after the other; the launch must be
  /// in_a_row().
  void start_all(const Launch& launch, std::uint64_t first, std::uint64_t count);
  /// Runs until the block is done, fails, only spins, or stops.
  State run();
  [[nodiscard]] const std::string& error() const { return error_; }
  /// After run()s that ended in kSpinning: whether all its warps have only waited at barriers since
  /// the last call, or read memory in loops that always returned to the same registers. Such a
  /// block makes no progress while memory stays the same.
  bool stands();
  /// Describes what the first of its warps waits for, and how many others there are.
  [[nodiscard]] std::string what_waits(const ptx::Function& code, const SourceLines& source) const;
  /// Whether the last run() that ended in kSpinning did more than spin.
  [[nodiscard]] bool progressed() const { return progressed_; }
  /// Ends a block that only spins.
  void abandon();

  // Called by generated code through helpers, on a fiber.
  struct Warp : WarpContext {
    enum class Status : std::uint8_t { kReady, kWaiting, kDone };
    BlockRunner* runner = nullptr;
    Block* home = nullptr;
    // These four are written together for each block.
    Status status = Status::kReady;
    bool left = false;                ///< it ended early on purpose, without an error
    bool in_cluster_phase = false;    ///< it has arrived at the cluster's barrier, others have not
    bool at_cluster_barrier = false;  ///< and waits there
    Fiber fiber;
    std::uint8_t* registers = nullptr;
    GuardedMemory local_memory;
    std::uint64_t set_up_for = 0;  ///< launch, and index in the block
    bool yielded = false;
    BarrierKind barrier_kind = BarrierKind::kSync;
    std::uint32_t barrier_result = 0;
    std::uint32_t barrier_line = 0;
    std::uint32_t pending_groups = 0;    ///< wgmma groups that it does not wait for
    std::string message;                 ///< of a fault, if composed
    WarpCheck check;                     ///< used only if the launch is checked
    std::uint32_t thread_registers = 0;  ///< that each of its threads has now
    std::uint32_t poll_line = 0;         ///< line of the loop in which it last yielded
    std::uint64_t registers_then = 0;    ///< hash of its registers at the last stands()
    /// Hashes at its yields since anything was written.
    std::unordered_set<std::uint64_t> registers_seen;
    std::uint64_t progress_then = 0;
    bool moved = false;

    // With a scheduler: where it stopped, and what it has read.
    struct Read {
      std::uint32_t line = 0;
      std::vector<std::uint64_t> words;
      std::vector<std::uint32_t> values;
    };
    bool stopped = false;
    bool polls = false;  ///< it has repeated one operation since its last change
    bool stale = false;  ///< a value that it read had changed after `looked_at` writes
    std::uint64_t looked_at = kNever;
    Operation operation;
    Read done;                                      ///< its last operation, with the previous
                                                    ///< values
    std::vector<Read> reads;                        ///< since its last change
    MulticastPlaces places;                         ///< places of its last multimem access
    std::vector<const std::uint64_t*> place_lanes;  ///< lanes of each rank
  };
  /// Adds the warps that wait for a grant. Those that poll and have seen the current values are
  /// added only when `polling`. `writes` changes whenever anything was written.
  void stopped_warps(bool polling, std::uint64_t writes,
                     std::vector<std::pair<BlockRunner*, Warp*>>& warps);
  /// Lets a stopped warp perform its operation in the next run().
  static void grant(Warp& warp);
  std::uint32_t barrier(Warp& warp, std::uint32_t id, std::uint32_t threads, std::uint32_t here,
                        std::uint32_t live, std::uint32_t votes, BarrierKind kind,
                        std::uint32_t line);
  void cluster_barrier(Warp& warp, std::uint32_t here, std::uint32_t live, ClusterBarrier what,
                       std::uint32_t line);
  /// wgmma: fails unless `lanes` are all lanes of a warp in a group of four.
  void check_group(Warp& warp, std::uint32_t lanes, std::uint32_t line);
  /// Synchronizes the warps of a group, like barrier().
  std::uint32_t meet_group(Warp& warp, std::uint32_t lanes, std::uint32_t pending, BarrierKind kind,
                           std::uint32_t line);
  /// Leaves the fiber for good; the block fails. `kind` is a finding's kind.
  [[noreturn]] void fail(Warp& warp, const char* kind, const char* message, std::uint32_t line);
  /// Fails if the access is illegal; each lane accesses all `places`.
  void check_access(Warp& warp, std::span<const std::uint64_t* const> places, std::uint32_t mask,
                    AccessCode code, std::uint32_t line, const Sanitizer::Values* values = nullptr);
  /// The same of an access by what the warp has just issued asynchronously.
  void check_async_access(Warp& warp, std::uint64_t address, std::size_t bytes,
                          AccessCode::Kind kind, std::uint32_t line);
  /// The tensor memory of a block of the cluster.
  TensorMemory& tensor_memory(std::uint32_t rank);
  /// Notes the line of a tcgen05.alloc.
  static void took_tensor_memory(const Warp& warp, std::uint32_t line) {
    warp.home->tensor_line = line;
  }
  /// The addresses of multicast accesses on each rank, in order.
  const MulticastPlaces& places_everywhere(Warp& warp, const std::uint64_t* addresses,
                                           std::uint32_t mask, std::size_t bytes, std::size_t align,
                                           std::uint32_t line);
  /// The same, checked and counted for this line. Fails if the access is illegal.
  const MulticastPlaces& multicast_places(Warp& warp, const std::uint64_t* addresses,
                                          std::uint32_t mask, AccessCode access, std::uint32_t line,
                                          std::uint32_t place);
  /// An access of global or shared memory: what is shared is found by its address.
  void count_access(Warp& warp, const std::uint64_t* addresses, std::uint32_t mask,
                    AccessCode access, std::uint32_t place);
  /// Ends the fiber of a warp that was run for its first reads alone, and has done them.
  void leave_where_seen(Warp& warp) {
    if (!counter_.seen_enough(warp.warp)) return;
    warp.left = true;
    leave_for_good(warp);
  }
  [[nodiscard]] BlockCounter& counter() { return counter_; }
  [[nodiscard]] Sanitizer* sanitizer() const { return launch_->sanitizer; }
  /// Called when a warp yields: a loop whose registers keep changing may end by itself; one that
  /// polls several words returns to earlier registers.
  void note_registers(Warp& warp) const;
  /// Whether a warp reached new register values since the last call.
  bool moved();
  /// The warps that have not ended.
  [[nodiscard]] std::vector<const WarpCheck*> live_checks() const;

 private:
  static constexpr std::uint32_t kNamedBarriers = 16;
  static constexpr std::uint32_t kGroupWarps = 4;
  static constexpr std::uint32_t kMaxGroups = 32 / kGroupWarps;

  struct Barrier {
    std::uint32_t arrived = 0;   ///< number of warps
    std::uint32_t waiting = 0;   ///< a bit per warp
    std::uint32_t expected = 0;  ///< number of warps, 0 for all
    std::uint32_t popc = 0;
    bool all = true;
    VectorClock clock;  ///< knowledge of those that arrived, if checked

    /// Resets all but the clock, which takes long.
    void reset() {
      arrived = waiting = expected = popc = 0;
      all = true;
    }
  };

  struct Block {
    std::array<std::uint32_t, 3> ctaid{};
    std::array<std::uint32_t, 3> in_cluster{};  ///< index in the cluster
    std::uint32_t rank = 0;
    std::uint32_t live_warps = 0;
    std::array<Barrier, kNamedBarriers + kMaxGroups> barriers{};  ///< the last ones are for warp
                                                                  ///< groups
    std::uint32_t used_barriers = 0;                              ///< a bit per barrier in use
    GuardedMemory shared_memory;
    std::uint8_t* shared = nullptr;        ///< for this launch
    std::unique_ptr<TensorMemory> tensor;  ///< once it is used
    std::uint32_t tensor_line = 0;         ///< of the last tcgen05.alloc
    std::uint32_t free_registers = 0;      ///< given back by setmaxnreg, of a thread of each warp
    VectorClock known;  ///< knowledge of its ended warps, if a cluster is checked
  };
  /// The barrier of a cluster: once all have arrived, all may continue.
  struct ClusterPhase {
    std::uint32_t arrived = 0;  ///< live warps
    VectorClock clock;          ///< their knowledge
    VectorClock before;         ///< knowledge from the last phase
  };

  bool next();
  void place();
  void begin(Block& block);
  void begin(Warp& warp, const Block& block) const;
  void place_blocks(std::uint64_t index);
  struct SharedPart {
    std::uint64_t address;
    std::uint32_t bytes;
    bool reserved;  ///< zeros at first
  };
  /// The shared memory of a block as the sanitizer knows it.
  [[nodiscard]] std::vector<SharedPart> shared_parts(const Block& block) const;
  void check_cluster_barrier();
  bool resume(Fiber& fiber);
  void set_up(Warp& warp, std::uint32_t index);
  void set_up_launch(Warp& warp);
  void set_up_place(Warp& warp, std::uint32_t index);
  [[nodiscard]] std::uint64_t number_of(const Block& block) const;
  void start_checks(Warp& warp, std::uint32_t index);
  State run_straight();
  State run_on_one_stack();
  State run_waiting();
  State run_glance();
  [[nodiscard]] bool takes_turns() const { return glance_ || launch_->takes_turns(); }
  [[nodiscard]] bool one_stack() const { return !glance_ && launch_->one_stack(); }
  void run_warps_together();
  void run_warps_in_turns();
  void report_deadlock();
  void arrive(Warp& warp);
  void check_barrier(Block& block, std::uint32_t id);
  std::uint32_t come(Warp& warp, std::uint32_t id, std::uint32_t warps, BarrierKind kind);
  void release_barrier(Block& block, std::uint32_t id);
  void tell_group(const Block& block, std::uint32_t waiting);
  void warp_done(Warp& warp);
  bool keeps_tensor_memory();
  void end_block();
  void end_checks(Warp& warp);
  void stop_checks();
  void stop(Warp& warp, std::span<const std::uint64_t* const> places, std::uint32_t mask,
            AccessCode code, std::uint32_t line);
  static void note_done(Warp& warp);
  static bool reads_are_stale(const Warp& warp);
  static void warp_main(void* warp);
  static void block_main(void* runner);
  static void straight_main(void* warp);
  [[noreturn]] void leave_for_good(Warp& warp);

  const Launch* launch_ = nullptr;
  std::vector<std::unique_ptr<Block>> blocks_;  ///< by rank in the cluster
  std::uint32_t block_count_ = 1;
  std::vector<std::uint8_t*> windows_;        ///< of their shared memory
  std::vector<std::unique_ptr<Warp>> warps_;  ///< block by block
  std::uint32_t warp_count_ = 0;              ///< total
  std::uint32_t block_warps_ = 0;             ///< per block
  std::uint32_t live_warps_ = 0;
  std::uint64_t index_ = 0;  ///< index of the block, or cluster, in the grid
  std::uint64_t more_ = 0;   ///< further blocks for the same run()
  ClusterPhase phase_;
  bool progressed_ = false;
  bool glance_ = false;
  BlockCounter counter_;
  std::string error_;
};

}  // namespace braid::cpu
