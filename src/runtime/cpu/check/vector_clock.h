#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace braid::cpu {

/// A point in time of one agent (a warp, or the host work of a stream).
struct Epoch {
  std::uint32_t agent = 0;
  std::uint32_t time = 0;  ///< 0 precedes everything
};

/// What has happened before a point, per agent. The warps of a launch share a base and learn little
/// beyond it, so a clock is that base and a few epochs; only a clock that learns much gets a table
/// of its own. (Vector clocks: Mattern 1988; epochs: FastTrack, Flanagan and Freund 2009.)
class VectorClock {
 public:
  [[nodiscard]] std::uint32_t time_of(std::uint32_t agent) const {
    const auto known = std::lower_bound(beyond_.begin(), beyond_.end(), agent, before);
    if (known != beyond_.end() && known->agent == agent) return known->time;
    const Table* times = own_ != nullptr ? own_.get() : base_.get();
    return times != nullptr && agent < times->size() ? (*times)[agent] : 0;
  }
  [[nodiscard]] bool knows(Epoch epoch) const { return time_of(epoch.agent) >= epoch.time; }
  void add(Epoch epoch) {
    if (knows(epoch)) return;
    if (own_ == nullptr) {
      const auto known = std::lower_bound(beyond_.begin(), beyond_.end(), epoch.agent, before);
      if (known != beyond_.end() && known->agent == epoch.agent) {
        known->time = epoch.time;
        return;
      }
      if (beyond_.size() < kMostBeyond) {
        beyond_.insert(known, epoch);
        return;
      }
    }
    Table& times = own();
    if (times.size() <= epoch.agent) times.resize(epoch.agent + 1, 0);
    times[epoch.agent] = epoch.time;
  }
  void join(const VectorClock& other) {
    if (base_ == nullptr && own_ == nullptr && beyond_.empty()) {
      *this = other;
      return;
    }
    if (other.own_ != nullptr) {
      join_table(other.own_);
    } else if (other.base_ != base_) {
      join_table(other.base_);
    }
    for (const Epoch& epoch : other.beyond_) add(epoch);
  }
  /// Calls visit(epoch) for what is known beyond the shared base.
  template <class Visit>
  void visit_beyond(const Visit& visit) const {
    for (const Epoch& epoch : beyond_) visit(epoch);
    for (std::uint32_t agent = 0; own_ != nullptr && agent < own_->size(); ++agent) {
      if ((*own_)[agent] != 0) visit(Epoch{agent, (*own_)[agent]});
    }
  }
  /// The same knowledge as a base for many clocks.
  [[nodiscard]] VectorClock as_base() const {
    VectorClock clock = *this;
    if (!beyond_.empty()) clock.own();
    if (clock.own_ != nullptr) clock.base_ = std::move(clock.own_);
    clock.own_ = nullptr;
    return clock;
  }

 private:
  using Table = std::vector<std::uint32_t>;
  static constexpr std::size_t kMostBeyond = 40;  ///< the 32 warps of a block, and some more

  static bool before(const Epoch& epoch, std::uint32_t agent) { return epoch.agent < agent; }

  /// The clock's own mutable table.
  Table& own() {
    if (own_ == nullptr) {
      own_ = base_ == nullptr ? std::make_shared<Table>() : std::make_shared<Table>(*base_);
      for (const Epoch& epoch : std::exchange(beyond_, {})) {
        if (own_->size() <= epoch.agent) own_->resize(epoch.agent + 1, 0);
        (*own_)[epoch.agent] = epoch.time;
      }
    } else if (own_.use_count() > 1) {
      own_ = std::make_shared<Table>(*own_);
    }
    return *own_;
  }
  void join_table(const std::shared_ptr<Table>& table) {
    if (table == nullptr || table == own_) return;
    Table& times = own();
    if (times.size() < table->size()) times.resize(table->size(), 0);
    for (std::size_t i = 0; i < table->size(); ++i) times[i] = std::max(times[i], (*table)[i]);
  }

  std::shared_ptr<Table> base_;  ///< immutable
  std::shared_ptr<Table> own_;   ///< everything in `base_` and more; shared by copies; then
                                 ///< `beyond_` is empty
  std::vector<Epoch> beyond_;    ///< later than in `base_`, sorted by agent
};

}  // namespace braid::cpu
