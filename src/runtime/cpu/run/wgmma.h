#pragma once

#include <cstdint>

namespace braid::cpu {

/// What helper "wgmma" does, beside the code of the products.
struct WgmmaCode {
  std::uint16_t columns : 11 = 8;   ///< of B and D
  bool a_in_registers : 1 = false;  ///< else by descriptor, as B is
  bool exchanged_a : 1 = false;     ///< columns of A lie together, not rows
  bool exchanged_b : 1 = false;     ///< rows of B lie together, not columns
  bool negated : 1 = false;         ///< the products
  bool bits : 1 = false;            ///< elements are single bits: products are their conjunctions
};

}  // namespace braid::cpu
