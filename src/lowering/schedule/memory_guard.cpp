#include "lowering/schedule/memory_guard.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace braid {
namespace {

/// Below every level, and far from overflow.
constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::min() / 4;

}  // namespace

MemoryGuard::MemoryGuard(const MemoryUse& use, std::span<const NodeId> order, std::int64_t limit)
    : use_(use),
      order_(order.begin(), order.end()),
      limit_(limit),
      place_(order.size()),
      taken_(order.size(), false),
      level_(use.inputs()),
      first_(use.values() + 1, 0) {
  for (std::size_t at = 0; at < order_.size(); ++at) {
    place_[order_[at]] = at;
    for (ValueId storage : use_.used(order_[at])) ++first_[static_cast<std::size_t>(storage) + 1];
  }
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  users_.resize(first_.back());
  left_.assign(use.values(), 0);
  for (std::size_t at = 0; at < order_.size(); ++at) {
    for (ValueId storage : use_.used(order_[at])) {
      users_[first_[storage] + left_[storage]++] = at;
    }
  }
  while (leaves_ < order_.size()) leaves_ *= 2;
  most_.assign(2 * leaves_, kNone);
  added_.assign(2 * leaves_, 0);
  const std::vector<MemoryLevel> levels = memory_levels(use_, order_);
  for (std::size_t at = 0; at < levels.size(); ++at) most_[leaves_ + at] = levels[at].during;
  for (std::size_t i = leaves_; i-- > 1;) most_[i] = std::max(most_[2 * i], most_[2 * i + 1]);
}

NodeId MemoryGuard::next() const { return next_ < order_.size() ? order_[next_] : -1; }

bool MemoryGuard::take(NodeId id) {
  const std::size_t at = place(id);
  std::int64_t freed = 0;  // freed when the node has run
  changes_.clear();
  if (use_.made(id) > 0) changes_.push_back({next_, at, use_.made(id)});
  for (ValueId storage : use_.used(id)) {
    const std::size_t last = last_user(storage, order_.size());
    if (last != at) continue;
    const std::size_t before = last_user(storage, at);
    const bool none = before == order_.size();
    if (none) freed += use_.bytes(storage);
    // Another node becomes the last user.
    changes_.push_back({none ? next_ : before + 1, at, -use_.bytes(storage)});
  }
  if (at > next_) {
    if (level_ + use_.made(id) > limit_) return false;
    for (const Change& change : changes_) add(change.first, change.end, change.bytes);
    if (peak(next_, at) > limit_) {
      for (const Change& change : changes_) add(change.first, change.end, -change.bytes);
      return false;
    }
  }
  level_ += use_.made(id) - freed;
  take_place(at);
  for (ValueId storage : use_.used(id)) {
    while (left_[storage] > 0 && taken_[users_[first_[storage] + left_[storage] - 1]]) {
      --left_[storage];
    }
  }
  return true;
}

std::size_t MemoryGuard::last_user(ValueId storage, std::size_t end) const {
  for (std::size_t i = first_[storage] + left_[storage]; i-- > first_[storage];) {
    if (!taken_[users_[i]] && users_[i] < end) return users_[i];
  }
  return order_.size();
}

void MemoryGuard::take_place(std::size_t at) {
  taken_[at] = true;
  add(at, at + 1, kNone);
  while (next_ < order_.size() && taken_[next_]) ++next_;
}

void MemoryGuard::add(std::size_t first, std::size_t end, std::int64_t bytes) {
  const auto apply = [&](std::size_t i) {
    most_[i] += bytes;
    added_[i] += bytes;
  };
  const std::size_t left = first + leaves_, right = end + leaves_;
  if (left >= right) return;
  for (std::size_t l = left, r = right; l < r; l /= 2, r /= 2) {
    if (l % 2 == 1) apply(l++);
    if (r % 2 == 1) apply(--r);
  }
  for (std::size_t from : {left, right - 1}) {
    for (std::size_t i = from / 2; i >= 1; i /= 2) {
      most_[i] = std::max(most_[2 * i], most_[2 * i + 1]) + added_[i];
    }
  }
}

std::int64_t MemoryGuard::peak(std::size_t first, std::size_t end) const {
  // A value added to a tree node counts for its whole subtree, so each step up adds its own.
  std::int64_t from_left = kNone, from_right = kNone;
  std::size_t l = first + leaves_, r = end + leaves_ - 1;
  if (first >= end) return kNone;
  from_left = most_[l];
  from_right = most_[r];
  for (; l / 2 != r / 2; l /= 2, r /= 2) {
    if (l % 2 == 0) from_left = std::max(from_left, most_[l + 1]);
    if (r % 2 == 1) from_right = std::max(from_right, most_[r - 1]);
    from_left += added_[l / 2];
    from_right += added_[r / 2];
  }
  std::int64_t most = std::max(from_left, from_right);
  for (std::size_t i = l / 2; i >= 1; i /= 2) most += added_[i];
  return most;
}

}  // namespace braid
