#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "braid/rendezvous.h"
#include "ir/non_copyable.h"

namespace braid {

/// Watches for the loss of a rank of another end, and then calls what stops waits for it.
class LossWatch : NonCopyable {
 public:
  explicit LossWatch(std::shared_ptr<const Rendezvous> rendezvous);
  ~LossWatch();

  /// `act` is called at most once, on a thread of its own, or within this call if a rank is lost
  /// already.
  std::uint64_t add(std::function<void()> act);
  /// Once this has returned, the action is not called any more.
  void remove(std::uint64_t id);

 private:
  void watch();
  static void call(const std::function<void()>& act);

  std::shared_ptr<const Rendezvous> rendezvous_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  std::map<std::uint64_t, std::function<void()>> acts_;
  std::uint64_t next_ = 0;
  bool lost_ = false;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace braid
