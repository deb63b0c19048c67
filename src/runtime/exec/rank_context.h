#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "braid/device.h"
#include "braid/device_tensor.h"
#include "braid/world.h"
#include "codegen/protocol.h"
#include "runtime/exec/launch_plan.h"
#include "runtime/exec/loaded_program.h"
#include "runtime/exec/symmetric_heap.h"

namespace braid {

/// What one rank of an executable owns: its record, its arenas except symmetric ones, its streams,
/// and the addresses that the caller bound.
class RankContext {
 public:
  /// In `heap` the rank has number `local`. Parameters and io get memory in allocate_unbound().
  RankContext(Device& device, const Allocator& allocator, const LoadedProgram& loaded,
              const SymmetricHeap& heap, std::size_t local, int rank);

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] const std::vector<std::unique_ptr<Stream>>& streams() const { return streams_; }
  [[nodiscard]] const std::vector<std::unique_ptr<Event>>& events() const { return events_; }
  [[nodiscard]] Stream& stream() const { return *streams_[0]; }

  /// The stream of the run being enqueued: the caller's or, if null, the rank's own; it is ordered
  /// behind all earlier runs. A run `recorded` on a capturing stream is not.
  [[nodiscard]] Stream& begin_run(Stream* callers, bool recorded);
  /// Called when the whole run is enqueued.
  void end_run(Stream& stream, bool recorded);
  /// The rank's own stream, behind everything enqueued for it.
  [[nodiscard]] Stream& stream_after_runs();

  /// Places an input or output of the program, which may have another shape than its buffer, in
  /// the caller's memory from now on.
  void bind(const ProgramTensor& as, DeviceTensor tensor) {
    bound_[as.buffer] = {&as, std::move(tensor)};
  }
  /// Throws kInvalidArgument if a bound tensor does not fit at these values.
  void check_bound(const Bindings& bindings) const;
  /// An input without a value, as far as is known, and whether its memory has got one since.
  struct Unset {
    const ProgramTensor* input;
    std::shared_ptr<std::atomic<bool>> is_set;
  };
  /// The inputs without a value at the current addresses. What is bound has the caller's.
  [[nodiscard]] std::vector<Unset> unset() const;
  /// Shares the parameters of `other`, the same rank of another executable of the program: the
  /// caller's bindings, or its arena.
  void share_parameters(RankContext& other);
  /// Allocates the arenas that the caller has not bound completely.
  void allocate_unbound();
  /// The current addresses. All arenas must exist.
  [[nodiscard]] RankPlaces places();
  /// The named parts of an allocation at these bindings, with its address.
  struct NamedMemory {
    std::uint64_t address;
    std::vector<MemoryPart> parts;
  };
  [[nodiscard]] std::vector<NamedMemory> named_memory(const Bindings& bindings) const;

  /// The marks of a step's blocks, if its kernel records them. No work may be in flight.
  [[nodiscard]] std::span<const protocol::Mark> marks(std::size_t step) const;
  void clear_marks();

  /// What kernels recorded since the last reset. No work may be in flight.
  [[nodiscard]] protocol::Record record() const;
  /// Enqueues a reset of the record and of all state with which ranks wait for each other.
  void reset();

 private:
  void allocate_marks();
  void allocate(std::size_t arena);
  [[nodiscard]] std::uint64_t arena_address(std::size_t arena) const;
  [[nodiscard]] std::uint64_t address(std::size_t buffer) const;

  Device& device_;
  const Allocator& allocator_;
  const LoadedProgram& loaded_;
  const Program& program_;  ///< the loaded program's
  const SymmetricHeap& heap_;
  std::size_t local_;
  int rank_;
  // Destroyed in reverse order: streams before memory.
  std::unique_ptr<Memory> record_;                   ///< a host-visible protocol::Record
  std::unique_ptr<Memory> marks_;                    ///< host-visible; null if none are recorded
  std::vector<std::span<protocol::Mark>> marks_of_;  ///< for each step
  /// Null until needed, and for symmetric arenas. Parameters may be shared.
  std::vector<std::shared_ptr<Memory>> arenas_;
  struct Bound {
    const ProgramTensor* as;
    DeviceTensor tensor;
  };
  std::vector<std::optional<Bound>> bound_;  ///< for each buffer: the caller's tensor
  /// For each input's buffer: whether its memory in an arena has a value. Shared as the arena is.
  std::vector<std::shared_ptr<std::atomic<bool>>> is_set_;
  std::unique_ptr<Event> end_of_run_;  ///< end of the last run, if it was on a caller's stream
  bool foreign_ = false;               ///< the rank's own stream does not wait for it yet
  std::vector<std::unique_ptr<Event>> events_;    ///< as in Lanes
  std::vector<std::unique_ptr<Stream>> streams_;  ///< by the program's numbers
};

}  // namespace braid
