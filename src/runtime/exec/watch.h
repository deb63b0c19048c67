#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "braid/error.h"
#include "ir/non_copyable.h"
#include "runtime/exec/communicators.h"

namespace braid {

/// Watches communicators while the host waits for work that waits for peers. When one reports an
/// error or has waited longer than the timeout, or when a rank is lost, all are aborted, so that
/// the work ends. Without communicators it does nothing.
class Watch : NonCopyable {
 public:
  /// `loss` says which rank is lost and how, if any; it is thread safe.
  Watch(Communicators& communicators, std::uint64_t timeout_ns,
        std::function<std::optional<Error>()> loss);
  ~Watch() { stop(); }

  /// Called when the work has ended; throws what was found.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  void loop();
  void stop();
  /// The first failure so far, if any.
  [[nodiscard]] std::optional<Error> look();

  Communicators& communicators_;
  std::chrono::nanoseconds timeout_;
  std::function<std::optional<Error>()> loss_;
  std::vector<Communicator::Progress> last_;  ///< of each communicator, when it last changed
  std::vector<Clock::time_point> since_;
  std::optional<Error> error_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace braid
