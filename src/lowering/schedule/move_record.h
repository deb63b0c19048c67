#pragma once

#include <string>
#include <string_view>

#include "lowering/remark.h"

namespace braid {

/// What a scheduling pass did with one collective or wait. Exposed time is the collective's time
/// less the compute beside it; negative where there is more compute.
struct MoveRecord {
  std::string_view pass;
  std::string node;
  Reason limiting_factor;  ///< why it stopped; empty: it had nowhere to go
  int moves = 0;           ///< nodes passed
  int grouped = 0;         ///< nodes taken along
  std::string moved_past;  ///< "+a+b"
  double comm_ns = 0, comp_ns = 0;
  double initial_exposed_ns = 0, final_exposed_ns = 0;
  std::string overlap;  ///< "+a[120]+b[80]": the compute beside it

  [[nodiscard]] double improvement_ns() const { return initial_exposed_ns - final_exposed_ns; }
};

}  // namespace braid
