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
#include "runtime/cpu/run/warp_context.h"
#include "runtime/cpu/translate/control_flow.h"
#include "runtime/cpu/translate/jit.h"
#include "runtime/parameter_storage.h"

namespace braid::cpu {

/// One kernel launch as the blocks see it; constant while they run.
struct Launch {
  Kernel kernel;
  Dim3 grid;
  Dim3 block;
  Dim3 cluster;  ///< blocks that run at once and see each other's shared memory
  bool explicit_cluster = false;
  std::uint32_t dynamic_shared = 0;
  std::uint32_t shared_align = 1;              ///< of where it begins
  bool generic_shared = false;                 ///< Program::Entry::generic_shared
  std::uint32_t straight_length = 0;           ///< Program::Entry::straight_length
  AddressRange* memory = nullptr;              ///< of the device
  const MulticastTable* multicasts = nullptr;  ///< the same
  int rank = 0;
  std::uint32_t grid_id = 0;
  std::uint64_t ordinal = 0;  ///< among the launches of its stream since the run began
  bool aligned = false;
  Sanitizer* sanitizer = nullptr;      ///< null when nothing is checked
  std::shared_ptr<LaunchCheck> check;  ///< of this launch, then
  Scheduler* scheduler = nullptr;      ///< null to take turns
  std::shared_ptr<LaunchCount> count;  ///< null when nothing is counted
  ParameterStorage params;
  /// Where its blocks may meet (WarpContext::grid_workspace).
  alignas(16) mutable std::array<std::uint8_t, 16> workspace{};
  std::uint32_t addressed_params = 0;  ///< bytes of them, where a kernel may read by address
  [[nodiscard]] std::uint64_t params_address() const {
    return reinterpret_cast<std::uint64_t>(params.data());
  }
  [[nodiscard]] std::uint64_t workspace_address() const {
    return reinterpret_cast<std::uint64_t>(workspace.data());
  }
  /// Whether warps take turns; else each runs to its end.
  [[nodiscard]] bool takes_turns() const {
    return waits() != Waits::kNever || scheduler != nullptr;
  }
  /// Whether they can do so on one stack.
  [[nodiscard]] bool one_stack() const {
    return waits() == Waits::kAtBarriers && scheduler == nullptr;
  }
  /// Whether several blocks can run on one stack, and nobody wants to know where one ends.
  [[nodiscard]] bool in_a_row() const {
    return (!takes_turns() || one_stack()) && sanitizer == nullptr && count == nullptr;
  }
  [[nodiscard]] Waits waits() const { return static_cast<Waits>(kernel.info.waits); }
};

/// Runs the warps of one block of a launch, or of a cluster of them, on fibers of the calling
/// thread. Reused from block to block; one that spins can be put aside and run on by another
/// thread.
class BlockRunner {
  struct Block;
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

 public:
  /// kStopped: all its warps are before an operation that the scheduler has to grant, or wait.
  enum class State : std::uint8_t { kDone, kSpinning, kStopped, kFailed };

  /// Readies block, or cluster, number `index` of `launch`. `glance`: to see its first reads alone,
  /// after which its warps end.
  void start(const Launch& launch, std::uint64_t index, bool glance = false);
  /// Readies so many blocks, that one run() runs one after the other: of a launch that
  /// in_a_row().
  void start_all(const Launch& launch, std::uint64_t first, std::uint64_t count);
  /// Runs until the block is done, fails, only spins, or is left.
  State run();
  [[nodiscard]] const std::string& error() const { return error_; }
  /// After run()s that ended in kSpinning: whether all its warps have since the last call waited at
  /// barriers, or looked at memory in loops that came to no other registers. While memory stays as
  /// it is, such a block goes on like that.
  bool stands();
  /// What the first of its warps waits for, and how many others there are.
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
    // These four are written at once for each block.
    Status status = Status::kReady;
    bool left = false;  ///< in the middle, for good, and all is well
    bool in_cluster_phase =
        false;  ///< it has arrived at the cluster's barrier, where some have not
    bool at_cluster_barrier = false;  ///< and waits there
    Fiber fiber;
    std::uint8_t* registers = nullptr;
    GuardedMemory local_memory;
    std::uint64_t set_up_for = 0;  ///< launch and index in the block
    bool yielded = false;
    BarrierKind barrier_kind = BarrierKind::kSync;
    std::uint32_t barrier_result = 0;
    std::uint32_t barrier_line = 0;
    std::uint32_t pending_groups = 0;  ///< of wgmma, that it does not wait for
    std::string message;               ///< of a fault, where it is made up
    WarpCheck check;                   ///< only when the launch is checked
    std::uint32_t poll_line = 0;       ///< of the loop where it last yielded
    std::uint64_t registers_then = 0;  ///< a hash, as stands() last saw them
    /// Hashes, where it yielded since anything was written.
    std::unordered_set<std::uint64_t> registers_seen;
    std::uint64_t progress_then = 0;
    bool moved = false;

    // Under a scheduler: where it stopped, and what it read before.
    struct Read {
      std::uint32_t line = 0;
      std::vector<std::uint64_t> words;
      std::vector<std::uint32_t> values;
    };
    bool stopped = false;
    bool polls = false;  ///< it has done the same operation since it last changed anything
    bool stale = false;  ///< what it read was no longer there after `looked_at` writes
    std::uint64_t looked_at = kNever;
    Operation operation;
    Read done;                                      ///< its last operation, with the values before
    std::vector<Read> reads;                        ///< since it last changed anything
    MulticastPlaces places;                         ///< of its last multimem access
    std::vector<const std::uint64_t*> place_lanes;  ///< those of each rank
  };
  /// Adds the warps that wait for a grant. Those that poll, having seen what is still there, come
  /// only when `polling`. `writes`: a number that is another one where anything was written.
  void stopped_warps(bool polling, std::uint64_t writes,
                     std::vector<std::pair<BlockRunner*, Warp*>>& warps);
  /// Lets a stopped warp do its operation in the next run().
  static void grant(Warp& warp);
  std::uint32_t barrier(Warp& warp, std::uint32_t id, std::uint32_t threads, std::uint32_t here,
                        std::uint32_t live, std::uint32_t votes, BarrierKind kind,
                        std::uint32_t line);
  void cluster_barrier(Warp& warp, std::uint32_t here, std::uint32_t live, ClusterBarrier what,
                       std::uint32_t line);
  /// wgmma: ends the fiber unless `lanes` are all of a warp in a group of four.
  void check_group(Warp& warp, std::uint32_t lanes, std::uint32_t line);
  /// The warps of a group go on together, as barrier() does.
  std::uint32_t meet_group(Warp& warp, std::uint32_t lanes, std::uint32_t pending, BarrierKind kind,
                           std::uint32_t line);
  /// Leaves the fiber for good; the block fails. `kind` is that of a finding.
  [[noreturn]] void fail(Warp& warp, const char* kind, const char* message, std::uint32_t line);
  /// Ends the fiber when the access may not be done. Of each lane at all `places`.
  void check_access(Warp& warp, std::span<const std::uint64_t* const> places, std::uint32_t mask,
                    AccessCode code, std::uint32_t line, const Sanitizer::Values* values = nullptr);
  /// The same of 16 bytes that a wgmma reads.
  void check_matrix_read(Warp& warp, std::uint64_t address, std::uint32_t line);
  /// Where the multicast addresses are on each rank, in order.
  const MulticastPlaces& places_everywhere(Warp& warp, const std::uint64_t* addresses,
                                           std::uint32_t mask, std::size_t bytes, std::size_t align,
                                           std::uint32_t line);
  /// The same, judged and, at this place of its lines, counted. Ends the fiber when the access may
  /// not be done.
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
  /// Of what it runs, when the launch is counted.
  [[nodiscard]] BlockCounter& counter() { return counter_; }
  [[nodiscard]] Sanitizer* sanitizer() const { return launch_->sanitizer; }
  /// Where a warp yields: a loop that comes to have other registers than ever may end by itself,
  /// one that polls several words goes in circles.
  void note_registers(Warp& warp) const;
  /// Whether a warp came to have other registers than ever since the last call.
  bool moved();
  /// The warps that have not ended.
  [[nodiscard]] std::vector<const WarpCheck*> live_checks() const;

 private:
  static constexpr std::uint32_t kNamedBarriers = 16;
  static constexpr std::uint32_t kGroupWarps = 4;
  static constexpr std::uint32_t kMaxGroups = 32 / kGroupWarps;

  struct Barrier {
    std::uint32_t arrived = 0;   ///< warps
    std::uint32_t waiting = 0;   ///< bit per warp
    std::uint32_t expected = 0;  ///< warps, 0 for all
    std::uint32_t popc = 0;
    bool all = true;
    VectorClock clock;  ///< what those that arrived know, when the launch is checked

    /// As nobody has come to it; but for the clock, which takes long.
    void reset() {
      arrived = waiting = expected = popc = 0;
      all = true;
    }
  };

  struct Block {
    std::array<std::uint32_t, 3> ctaid{};
    std::array<std::uint32_t, 3> in_cluster{};  ///< its place there
    std::uint32_t rank = 0;
    std::uint32_t live_warps = 0;
    std::array<Barrier, kNamedBarriers + kMaxGroups> barriers{};  ///< where groups meet, last
    std::uint32_t used_barriers = 0;  ///< bit per barrier that somebody came to
    GuardedMemory shared_memory;
    std::uint8_t* shared = nullptr;  ///< of this launch
    VectorClock known;               ///< to its warps that have ended, when a cluster is checked
  };
  /// The barrier of a cluster: who comes is counted until all have, and then all may go on.
  struct ClusterPhase {
    std::uint32_t arrived = 0;  ///< warps that have not ended
    VectorClock clock;          ///< what they know
    VectorClock before;         ///< what those of the last phase knew
  };

  bool next();
  void place();
  void begin(Block& block);
  static void begin(Warp& warp, const Block& block);
  void place_blocks(std::uint64_t index);
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
  void end_block();
  void end_checks(Warp& warp);
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
  std::uint32_t warp_count_ = 0;              ///< of all of them
  std::uint32_t block_warps_ = 0;             ///< of one
  std::uint32_t live_warps_ = 0;
  std::uint64_t index_ = 0;  ///< of the block, or cluster, in the grid
  std::uint64_t more_ = 0;   ///< behind it, that the same run() is for
  ClusterPhase phase_;
  bool progressed_ = false;
  bool glance_ = false;
  BlockCounter counter_;
  std::string error_;
};

}  // namespace braid::cpu
