#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/cpu/run/engine.h"

namespace braid::cpu {

/// What was recorded on streams: their work in order, each on a lane, of which the first is the
/// stream that replays it. Events are its own.
struct Recording {
  std::vector<std::pair<std::size_t, StreamOp>> items;  ///< each with its lane
  /// By lane; none in place of the first.
  std::vector<std::shared_ptr<StreamState>> lanes;
  /// The end of the last replay: the next one comes behind it.
  std::shared_ptr<EventState> end = std::make_shared<EventState>();
};

/// Work that is being recorded. Guarded by the engine's mutex.
class Capture {
 public:
  /// Begins on `first`, which becomes lane 0.
  explicit Capture(const std::shared_ptr<StreamState>& first) { join(first); }

  /// Returns the lane.
  std::size_t join(const std::shared_ptr<StreamState>& stream);
  void add(std::size_t lane, StreamOp op);
  /// Returns the number by which wait() knows the event.
  std::size_t record(std::size_t lane);
  void wait(std::size_t lane, std::size_t event);

  [[nodiscard]] bool is_over() const { return over_; }
  /// How many lanes do work that the first one does not wait for.
  [[nodiscard]] std::size_t unjoined() const;
  /// Its streams do their work themselves again. Lanes of what is returned have ranks, no more.
  Recording end();

 private:
  using Seen = std::vector<std::size_t>;  ///< of each lane, how many items come before
  struct Lane {
    std::weak_ptr<StreamState> stream;
    int rank;
    Seen seen;
  };
  struct Point {
    std::shared_ptr<EventState> event;
    Seen seen;
  };
  Seen& note(std::size_t lane);

  std::vector<Lane> lanes_;
  std::vector<Point> events_;
  decltype(Recording::items) items_;
  bool over_ = false;
};

}  // namespace braid::cpu
