#pragma once

#include <span>
#include <vector>

#include "lowering/plan/program.h"

namespace braid {

/// The happens-before relation of steps: a step follows the earlier ones of its stream, and a wait
/// follows the last record of its event that was issued before it. A run begins on all streams
/// after the previous one has ended on all.
class StepOrder {
 public:
  /// Streams must not be negative. A wait for an event without an earlier record orders nothing.
  explicit StepOrder(std::span<const Step> steps);

  [[nodiscard]] int streams() const { return streams_; }
  /// Whether step `a` always ends before step `b` begins, within one run.
  [[nodiscard]] bool before(int a, int b) const {
    if (streams_ == 1) return a < b;
    return position_[a] < seen(b, stream_[a]);
  }
  /// The last step, in the order of issue, that may run before or beside one of `steps`: every
  /// later step on every stream follows them all.
  [[nodiscard]] int end_of(std::span<const int> steps) const;

 private:
  [[nodiscard]] int seen(int step, int stream) const {
    return seen_[static_cast<std::size_t>(step) * streams_ + stream];
  }

  int streams_ = 1;
  std::vector<int> stream_, position_;  ///< for each step: its stream, and its index there
  std::vector<int> seen_;               ///< [step][stream]: how many steps of the stream precede it
  std::vector<std::vector<int>> on_stream_;  ///< the steps of each stream
};

}  // namespace braid
