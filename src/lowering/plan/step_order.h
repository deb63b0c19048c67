#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lowering/plan/program.h"

namespace braid {

/// Which steps have ended before which others begin: a step follows the earlier ones of its stream,
/// and a wait follows the last record of its event that was issued before it. A run begins on all
/// streams after the one before it has ended on all.
class StepOrder {
 public:
  /// Streams must not be negative. A wait for an event that no earlier step records orders nothing.
  explicit StepOrder(std::span<const Step> steps);

  [[nodiscard]] int streams() const { return streams_; }
  /// Whether step `a` ends before step `b` begins, in one run.
  [[nodiscard]] bool before(int a, int b) const {
    if (streams_ == 1) return a < b;
    return position_[a] < seen(b, stream_[a]);
  }
  /// The last step, in the order of issue, that may run while or before one of `steps` does: from
  /// the next one on, every step on every stream follows them all.
  [[nodiscard]] int end_of(std::span<const int> steps) const;

 private:
  [[nodiscard]] int seen(int step, int stream) const {
    return seen_[static_cast<std::size_t>(step) * streams_ + stream];
  }

  int streams_ = 1;
  std::vector<int> stream_, position_;  ///< of each step: its stream, its place there
  std::vector<int> seen_;               ///< [step][stream]: steps of the stream that came before
  std::vector<std::vector<int>> on_stream_;  ///< the steps of each stream
};

}  // namespace braid
