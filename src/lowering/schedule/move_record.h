#pragma once

#include <string>
#include <string_view>

#include "lowering/remark.h"

namespace braid {

/// What a scheduling pass did with one collective, or one wait. Exposed time is what the collective
/// takes less what is computed beside it: below 0 where more is.
struct MoveRecord {
  std::string_view pass;
  std::string node;
  Reason limiting_factor;  ///< why it did not move further; empty: it had nowhere to go
  int moves = 0;           ///< nodes that it has passed
  int grouped = 0;         ///< nodes that it took with it
  std::string moved_past;  ///< "+a+b"
  double comm_ns = 0, comp_ns = 0;
  double initial_exposed_ns = 0, final_exposed_ns = 0;
  std::string overlap;  ///< "+a[120]+b[80]": what is computed beside it

  [[nodiscard]] double improvement_ns() const { return initial_exposed_ns - final_exposed_ns; }
};

}  // namespace braid
