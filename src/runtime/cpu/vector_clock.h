#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace braid::cpu {

/// A moment of one agent (a warp, or the host work of a stream): what it did up to then.
struct Epoch {
  std::uint32_t agent = 0;
  std::uint32_t time = 0;  ///< 0 is before everything
};

/// What has happened before a point, per agent. Shared by the many warps that know the same, copied
/// when one learns more. (Vector clocks: Mattern 1988; epochs: FastTrack, Flanagan and Freund
/// 2009.)
class VectorClock {
 public:
  [[nodiscard]] std::uint32_t time_of(std::uint32_t agent) const {
    return times_ != nullptr && agent < times_->size() ? (*times_)[agent] : 0;
  }
  [[nodiscard]] bool knows(Epoch epoch) const { return time_of(epoch.agent) >= epoch.time; }
  void add(Epoch epoch) {
    if (knows(epoch)) return;
    std::vector<std::uint32_t>& times = own();
    if (times.size() <= epoch.agent) times.resize(epoch.agent + 1, 0);
    times[epoch.agent] = epoch.time;
  }
  void join(const VectorClock& other) {
    if (other.times_ == nullptr || other.times_ == times_) return;
    if (times_ == nullptr) {
      times_ = other.times_;
      return;
    }
    std::vector<std::uint32_t>& times = own();
    if (times.size() < other.times_->size()) times.resize(other.times_->size(), 0);
    for (std::size_t i = 0; i < other.times_->size(); ++i) {
      times[i] = std::max(times[i], (*other.times_)[i]);
    }
  }

 private:
  std::vector<std::uint32_t>& own() {
    if (times_ == nullptr) {
      times_ = std::make_shared<std::vector<std::uint32_t>>();
    } else if (times_.use_count() > 1) {
      times_ = std::make_shared<std::vector<std::uint32_t>>(*times_);
    }
    return *times_;
  }
  std::shared_ptr<std::vector<std::uint32_t>> times_;
};

}  // namespace braid::cpu
