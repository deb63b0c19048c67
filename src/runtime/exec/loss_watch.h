#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "braid/rendezvous.h"

namespace braid {

/// Looks whether a rank of another end is lost, and does then what stops those who wait for it.
class LossWatch {
 public:
  explicit LossWatch(std::shared_ptr<const Rendezvous> rendezvous);
  ~LossWatch();
  LossWatch(const LossWatch&) = delete;
  LossWatch& operator=(const LossWatch&) = delete;

  /// `act` is called once at most, on a thread of its own, or by this call where a rank is lost
  /// already.
  std::uint64_t add(std::function<void()> act);
  /// It is not called any more once this has returned.
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
