#pragma once

#include <cstdint>

namespace braid::cpu {

/// `value` rounded up to a multiple of `align`.
constexpr std::uint64_t align_up(std::uint64_t value, std::uint64_t align) {
  return (value + align - 1) / align * align;
}

}  // namespace braid::cpu
