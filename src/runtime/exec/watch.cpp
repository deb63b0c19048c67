#include "runtime/exec/watch.h"

#include <fmt/format.h>

#include <utility>

namespace braid {
namespace {

constexpr auto kPeriod = std::chrono::milliseconds(5);

}  // namespace

Watch::Watch(Communicators& communicators, std::uint64_t timeout_ns,
             std::function<std::optional<Error>()> loss)
    : communicators_(communicators),
      timeout_(timeout_ns),
      loss_(std::move(loss)),
      last_(communicators.all().size()),
      since_(communicators.all().size(), Clock::now()) {
  if (!communicators.empty()) thread_ = std::thread([this] { loop(); });
}

void Watch::finish() {
  stop();
  if (error_) throw Error(*error_);
}

void Watch::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watch::loop() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kPeriod, [&] { return stop_; })) {
    if (!error_) error_ = look();
    // Repeatedly: a peer's word may hold back later ones.
    if (error_) communicators_.abort();
  }
}

std::optional<Error> Watch::look() {
  if (std::optional<Error> loss = loss_()) return loss;
  const auto all = communicators_.all();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (const std::string problem = all[i]->async_error(); !problem.empty()) {
      return Error(ErrorCode::kEnvironment, "", problem);
    }
    const Communicator::Progress now = all[i]->progress();
    if (now != last_[i] || now.begun == now.ended) {
      last_[i] = now;
      since_[i] = Clock::now();
    }
    if (Clock::now() - since_[i] < timeout_) continue;
    return Error(
        ErrorCode::kTimeout, communicators_.name(i),
        fmt::format("collective {} of its communicator has waited for its peers for {:g} s",
                    now.begun, std::chrono::duration<double>(timeout_).count()));
  }
  return std::nullopt;
}

}  // namespace braid
