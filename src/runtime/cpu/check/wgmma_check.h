#pragma once

#include <cstdint>
#include <vector>

namespace braid::cpu {

/// A checked warp's wgmma state. Groups are numbered from 1; the open group follows the committed
/// ones.
struct WgmmaCheck {
  /// A register that holds sums or elements of A, or is moved to or from one.
  struct Register {
    std::uint32_t group = 0;    ///< the last group that uses it
    std::uint32_t line = 0;     ///< line of that product
    bool sum = false;           ///< it writes the register
    std::uint32_t written = 0;  ///< line of its last write since the last wgmma.fence
  };
  std::vector<Register> registers;
  bool fenced = false;
  std::uint32_t waited = 0;         ///< the last group known to be complete
  std::uint32_t issued = 0;         ///< time of the last product in its channel
  std::vector<std::uint32_t> ends;  ///< for each committed group
  /// A hash of everything it ran since its warp group last met: the four warps must run the same.
  std::uint64_t sequence = 0;

  Register& at(std::uint32_t number) {
    if (registers.size() <= number) registers.resize(number + 1);
    return registers[number];
  }
  [[nodiscard]] std::uint32_t committed() const { return static_cast<std::uint32_t>(ends.size()); }
  [[nodiscard]] bool in_flight(const Register& reg) const { return reg.group > waited; }
  void ran(std::uint64_t what) { sequence = (sequence ^ what) * 0x9e3779b97f4a7c15U; }
};

}  // namespace braid::cpu
