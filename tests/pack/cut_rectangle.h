#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "pack/interval.h"

// Hard packings, for tests and benchmarks: intervals that a full rectangle of time and memory was
// cut into, so that its height, and not a byte less, holds them all.
namespace braid::testing {

inline constexpr std::int64_t kRectangleTime = 1024;
inline constexpr std::int64_t kRectangleBytes = std::int64_t{1} << 20U;

class RectangleCutter {
 public:
  /// With `pinwheels`, some pieces are cut into five that no straight cut separates.
  RectangleCutter(std::uint64_t seed, bool pinwheels, std::int64_t time = kRectangleTime,
                  std::int64_t bytes = kRectangleBytes)
      : random_(seed), pinwheels_(pinwheels), time_(time), bytes_(bytes) {}

  std::vector<Interval> cut(std::size_t count) {
    pieces_ = {{0, time_, 0, bytes_}};
    while (pieces_.size() < count) {
      const std::size_t at = any_by_area();
      const Piece piece = pieces_[at];
      if (pinwheels_ && pieces_.size() + 4 <= count && below(4) == 0 && pinwheel(at)) continue;
      const bool in_time = below(2) == 0;
      const std::int64_t from = in_time ? piece.lower : piece.bottom;
      const std::int64_t length = (in_time ? piece.upper : piece.top) - from;
      if (length < 2) continue;
      const std::int64_t line = from + 1 + below(length - 1);
      Piece rest = piece;
      (in_time ? pieces_[at].upper : pieces_[at].top) = line;
      (in_time ? rest.lower : rest.bottom) = line;
      pieces_.push_back(rest);
    }
    std::vector<Interval> intervals;
    for (const Piece& p : pieces_) intervals.push_back({p.lower, p.upper, p.top - p.bottom, 1});
    for (std::size_t i = intervals.size(); i > 1; --i) {
      std::swap(intervals[i - 1], intervals[static_cast<std::size_t>(below(i))]);
    }
    return intervals;
  }

 private:
  struct Piece {
    std::int64_t lower, upper, bottom, top;
  };

  std::int64_t below(std::uint64_t limit) { return static_cast<std::int64_t>(random_() % limit); }

  std::size_t any_by_area() {
    std::int64_t area = below(time_ * bytes_);
    std::size_t at = 0;
    for (;; ++at) {
      area -= (pieces_[at].upper - pieces_[at].lower) * (pieces_[at].top - pieces_[at].bottom);
      if (area < 0) return at;
    }
  }

  /// Whether the piece was large enough.
  bool pinwheel(std::size_t at) {
    const Piece p = pieces_[at];
    const std::int64_t time = p.upper - p.lower, bytes = p.top - p.bottom;
    if (time < 3 || bytes < 3) return false;
    const std::int64_t t1 = p.lower + 1 + below(time - 2), t2 = t1 + 1 + below(p.upper - t1 - 1);
    const std::int64_t b1 = p.bottom + 1 + below(bytes - 2), b2 = b1 + 1 + below(p.top - b1 - 1);
    pieces_[at] = {p.lower, t2, p.bottom, b1};
    pieces_.push_back({t2, p.upper, p.bottom, b2});
    pieces_.push_back({t1, p.upper, b2, p.top});
    pieces_.push_back({p.lower, t1, b1, p.top});
    pieces_.push_back({t1, t2, b1, b2});
    return true;
  }

  std::mt19937_64 random_;
  bool pinwheels_;
  std::int64_t time_, bytes_;
  std::vector<Piece> pieces_;
};

}  // namespace braid::testing
