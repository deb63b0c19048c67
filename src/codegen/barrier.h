#pragma once

#include <cstdint>

namespace braid {

// The setting of a barrier's kernel (templates/barrier.cpp) that makes a half of it: one that
// signals the next rank of the group, or one that waits for the rank before.
inline constexpr const char* kHalf = "half";
inline constexpr std::int64_t kSignalHalf = 1;
inline constexpr std::int64_t kWaitHalf = 2;

}  // namespace braid
