#include "runtime/exec/loss_watch.h"

#include <chrono>
#include <exception>
#include <utility>

namespace braid {
namespace {

constexpr std::chrono::milliseconds kPeriod{5};

}  // namespace

LossWatch::LossWatch(std::shared_ptr<const Rendezvous> rendezvous)
    : rendezvous_(std::move(rendezvous)), thread_([this] { watch(); }) {}

LossWatch::~LossWatch() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopped_.notify_all();
  thread_.join();
}

std::uint64_t LossWatch::add(std::function<void()> act) {
  const std::lock_guard lock(mutex_);
  if (lost_) call(act);
  acts_.emplace(next_, std::move(act));
  return next_++;
}

void LossWatch::remove(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  acts_.erase(id);
}

void LossWatch::watch() {
  std::unique_lock lock(mutex_);
  while (!stopped_.wait_for(lock, kPeriod, [&] { return stop_; })) {
    if (rendezvous_->lost().empty()) continue;
    lost_ = true;
    for (const auto& [id, act] : acts_) call(act);
    return;
  }
}

void LossWatch::call(const std::function<void()>& act) {
  try {
    act();
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    // A lost device also reports itself through its own calls.
  }
}

}  // namespace braid
