#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

namespace braid::cpu {

/// Chooses which block, warp or grid goes on where several could, in a checked run. One seed is one
/// interleaving. Kernels may be left at every strong access and every barrier, which is where the
/// order of threads can show in a program without races; weak accesses are judged by
/// happens-before, whatever the order.
class Scheduler {
 public:
  explicit Scheduler(std::uint64_t seed) : random_(seed) {}
  /// One of `count` (at least 1).
  std::size_t pick(std::size_t count) { return static_cast<std::size_t>(random_() % count); }
  /// Whether to leave what runs for something else.
  bool leaves() { return pick(3) == 0; }

 private:
  std::mt19937_64 random_;
};

}  // namespace braid::cpu
