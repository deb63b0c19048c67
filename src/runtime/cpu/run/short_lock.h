#pragma once

#include <emmintrin.h>

#include <mutex>

namespace braid::cpu {

/// Spins for a lock that others hold only briefly: to sleep and be woken takes longer.
inline void take(std::unique_lock<std::mutex>& lock) {
  constexpr int kTries = 200;
  for (int i = 0; i < kTries; ++i) {
    if (lock.try_lock()) return;
    _mm_pause();
  }
  lock.lock();
}

inline std::unique_lock<std::mutex> taken(std::mutex& mutex) {
  std::unique_lock lock(mutex, std::defer_lock);
  take(lock);
  return lock;
}

}  // namespace braid::cpu
