#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/cpu/run/engine.h"

namespace braid::cpu {

/// Recorded work of streams, in order. Each item is on a lane; lane 0 is the stream that replays
/// it. It has its own events.
struct Recording {
  std::vector<std::pair<std::size_t, StreamOp>> items;  ///< each with its lane
  /// By lane; null for lane 0.
  std::vector<std::shared_ptr<StreamState>> lanes;
  /// End of the last replay, which the next one waits for.
  std::shared_ptr<EventState> end = std::make_shared<EventState>();
};

/// Work being recorded. Guarded by the engine's mutex.
class Capture {
 public:
  /// Begins on `first`, which becomes lane 0.
  explicit Capture(const std::shared_ptr<StreamState>& first) { join(first); }

  /// Returns the lane.
  std::size_t join(const std::shared_ptr<StreamState>& stream);
  void add(std::size_t lane, StreamOp op);
  /// Returns the number with which wait() refers to the event.
  std::size_t record(std::size_t lane);
  void wait(std::size_t lane, std::size_t event);

  [[nodiscard]] bool is_over() const { return over_; }
  /// How many lanes have work that lane 0 does not wait for.
  [[nodiscard]] std::size_t unjoined() const;
  /// Ends the capture; its streams execute work again. The result's lanes have only ranks.
  Recording end();

 private:
  using Seen = std::vector<std::size_t>;  ///< for each lane: number of items that precede
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
