#pragma once

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

/// What one rank of an executable owns here: its record, its arenas but for the symmetric ones, its
/// streams, and the addresses that the caller bound.
class RankContext {
 public:
  /// `heap` holds the rank as number `local`. Parameters and io get memory in allocate_unbound().
  RankContext(Device& device, const Allocator& allocator, const LoadedProgram& loaded,
              const SymmetricHeap& heap, std::size_t local, int rank);

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] const std::vector<std::unique_ptr<Stream>>& streams() const { return streams_; }
  [[nodiscard]] const std::vector<std::unique_ptr<Event>>& events() const { return events_; }
  [[nodiscard]] Stream& stream() const { return *streams_[0]; }

  /// The stream of the run that is enqueued now: the caller's or, where that is null, the rank's
  /// own, behind all runs before. Not behind them where the run is `recorded`, on a stream that is
  /// being captured.
  [[nodiscard]] Stream& begin_run(Stream* callers, bool recorded);
  /// To be called when all of it is enqueued.
  void end_run(Stream& stream, bool recorded);
  /// The rank's own stream, behind all that was enqueued for it.
  [[nodiscard]] Stream& stream_after_runs();

  /// From now on the buffer lies in the caller's memory.
  void bind(std::size_t buffer, DeviceTensor tensor) { bound_[buffer] = std::move(tensor); }
  /// Throws kInvalidArgument where what the caller has bound does not hold it at these values.
  void check_bound(const Bindings& bindings) const;
  /// Has the parameters of `other`, the same rank of another executable of the program: where the
  /// caller bound them, or in its arena.
  void share_parameters(RankContext& other);
  /// Memory for the arenas of which the caller has not bound all.
  void allocate_unbound();
  /// Where everything lies now. All arenas must be there.
  [[nodiscard]] RankPlaces places();
  /// What lies where in each allocation at these bindings, with the allocation's address.
  struct NamedMemory {
    std::uint64_t address;
    std::vector<MemoryPart> parts;
  };
  [[nodiscard]] std::vector<NamedMemory> named_memory(const Bindings& bindings) const;

  /// What the blocks of a step did when, where its kernel notes that; else nothing. No work may be
  /// in flight.
  [[nodiscard]] std::span<const protocol::Mark> marks(std::size_t step) const;
  void clear_marks();

  /// What kernels noted since the last reset. No work may be in flight.
  [[nodiscard]] protocol::Record record() const;
  /// Enqueues that the record, and all by which ranks wait for each other, are as before the first
  /// run.
  void reset();

 private:
  void allocate_marks();
  void allocate(std::size_t arena);
  [[nodiscard]] std::uint64_t arena_address(std::size_t arena) const;
  [[nodiscard]] std::uint64_t address(std::size_t buffer) const;

  Device& device_;
  const Allocator& allocator_;
  const LoadedProgram& loaded_;
  const Program& program_;  ///< of it
  const SymmetricHeap& heap_;
  std::size_t local_;
  int rank_;
  // Destroyed in reverse: streams before memory.
  std::unique_ptr<Memory> record_;  ///< a protocol::Record that the host sees
  std::unique_ptr<Memory> marks_;   ///< that the host sees; null where none are noted
  std::vector<std::span<protocol::Mark>> marks_of_;  ///< of each step
  /// Null until needed, and where symmetric. Parameters may be shared.
  std::vector<std::shared_ptr<Memory>> arenas_;
  std::vector<std::optional<DeviceTensor>> bound_;  ///< the caller's, for each buffer
  std::unique_ptr<Event> end_of_run_;  ///< of the last one, where that is on a caller's stream
  bool foreign_ = false;               ///< and the rank's own stream does not wait for it yet
  std::vector<std::unique_ptr<Event>> events_;    ///< as Lanes wants them
  std::vector<std::unique_ptr<Stream>> streams_;  ///< of the program, by number
};

}  // namespace braid
