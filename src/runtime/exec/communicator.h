#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "braid/device.h"
#include "ir/non_copyable.h"
#include "runtime/exec/collective_call.h"

namespace braid {

/// One rank's end of a group without symmetric memory. All members make the same calls in the same
/// order. Ranks in this process call as a group: begin_group() on any of them, enqueue() on each,
/// end_group(), and finish() on each.
class Communicator : NonCopyable {
 public:
  Communicator(Device& device, int rank);
  virtual ~Communicator() = default;

  /// The bytes that other members need before they connect; new for each connect().
  [[nodiscard]] virtual std::string offer() = 0;
  /// Connects. `offers` are those of all members, in order. Earlier state is discarded; no work may
  /// be in flight. Like enqueue() it is part of a group call, which settle() completes.
  virtual void connect(std::span<const std::string> offers) = 0;
  virtual void begin_group() {}
  virtual void end_group() {}
  /// Waits, bounded, until what the last group call began is established.
  virtual void settle() {}

  /// Enqueues a collective. Throws kInvalidArgument for an unsupported one.
  virtual void enqueue(const CollectiveCall& call, Stream& stream) = 0;
  void begin(Stream& stream);
  void finish(Stream& stream);

  /// Why no collective will complete any more; empty while all is well. Thread safe.
  [[nodiscard]] virtual std::string async_error() { return {}; }
  /// Ends work that waits for peers; its results are invalid. Thread safe.
  virtual void abort() noexcept = 0;

  /// The progress of this rank's work. Work that has begun and not ended waits for peers.
  struct Progress {
    std::uint32_t begun = 0, ended = 0;
    bool operator==(const Progress&) const = default;
  };
  [[nodiscard]] Progress progress() const;
  /// Resets the counts. No work may be in flight.
  void forget_progress();

 private:
  std::unique_ptr<Memory> words_;  ///< a Progress that streams write
  std::uint32_t calls_ = 0;
};

/// A scope that begins and ends a group call, also when an exception leaves it.
class GroupCall : NonCopyable {
 public:
  explicit GroupCall(Communicator& communicator) : communicator_(&communicator) {
    communicator.begin_group();
  }
  ~GroupCall();
  void end() { std::exchange(communicator_, nullptr)->end_group(); }

 private:
  Communicator* communicator_;  ///< null once the call has ended
};

}  // namespace braid
