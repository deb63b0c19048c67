#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace braid {

/// Storage for kernel parameters, aligned for the strictest of them (a tensor map of CUDA 13).
struct alignas(128) ParameterLine {
  std::uint8_t bytes[128];
};

class ParameterStorage {
 public:
  /// Reserves at least that many bytes; new ones are zero. Existing bytes may move.
  void reserve_bytes(std::size_t count) {
    const std::size_t lines = (count + sizeof(ParameterLine) - 1) / sizeof(ParameterLine);
    if (lines > lines_.size()) lines_.resize(lines);
  }
  /// Removes all bytes but keeps the memory.
  void clear() { lines_.clear(); }
  [[nodiscard]] std::uint8_t* data() { return reinterpret_cast<std::uint8_t*>(lines_.data()); }
  [[nodiscard]] const std::uint8_t* data() const {
    return reinterpret_cast<const std::uint8_t*>(lines_.data());
  }

 private:
  std::vector<ParameterLine> lines_;
};

}  // namespace braid
