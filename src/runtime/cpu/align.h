#pragma once

#include <cstdint>

namespace braid::cpu {

/// The least multiple of `align` that is not below `value`.
constexpr std::uint64_t align_up(std::uint64_t value, std::uint64_t align) {
  return (value + align - 1) / align * align;
}

}  // namespace braid::cpu
