#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "braid/device.h"
#include "runtime/exec/collective_call.h"

namespace braid {

/// One rank's end of a group without symmetric memory. All members make the same calls in the same
/// order. Those of ranks that live here are made as one: begin_group() on any of them, enqueue() on
/// each, end_group(), and finish() on each.
class Communicator {
 public:
  Communicator(Device& device, int rank);
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// What the other members need to know of this one before all connect; anew each time.
  [[nodiscard]] virtual std::string offer() = 0;
  /// `offers` are those of all members, in order. Forgets whatever was before; no work may be in
  /// flight. A group call as enqueue() is; settle() ends it.
  virtual void connect(std::span<const std::string> offers) = 0;
  virtual void begin_group() {}
  virtual void end_group() {}
  /// Waits, bounded, until what was begun in the last group is under way.
  virtual void settle() {}

  /// Returns before the collective is done. Throws kInvalidArgument for what it cannot do.
  virtual void enqueue(const CollectiveCall& call, Stream& stream) = 0;
  void begin(Stream& stream);
  void finish(Stream& stream);

  /// Why no collective will end any more; empty where all is well. From any thread.
  [[nodiscard]] virtual std::string async_error() { return {}; }
  /// Lets the work that waits for peers end; what it computes is worth nothing. From any thread.
  virtual void abort() noexcept = 0;

  /// How far the rank's work has come; one that has begun and not ended waits for its peers.
  struct Progress {
    std::uint32_t begun = 0, ended = 0;
    bool operator==(const Progress&) const = default;
  };
  [[nodiscard]] Progress progress() const;
  /// Counts from the start again. No work may be in flight.
  void forget_progress();

 private:
  std::unique_ptr<Memory> words_;  ///< a Progress that streams write
  std::uint32_t calls_ = 0;
};

/// A group call on one of several communicators, also where something in it throws.
class GroupCall {
 public:
  explicit GroupCall(Communicator& communicator) : communicator_(&communicator) {
    communicator.begin_group();
  }
  ~GroupCall();
  GroupCall(const GroupCall&) = delete;
  GroupCall& operator=(const GroupCall&) = delete;
  void end() { std::exchange(communicator_, nullptr)->end_group(); }

 private:
  Communicator* communicator_;  ///< null once it has ended
};

}  // namespace braid
