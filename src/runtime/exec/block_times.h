#pragma once

#include <span>
#include <vector>

#include "braid/executable.h"
#include "codegen/protocol.h"

namespace braid {

/// The activities of the blocks of a step's kernel, from their marks (protocol::kMarksOfBlock per
/// block); each lasts until the block's next mark. `step` is the whole launch. Its begin and the
/// first mark are taken to be the same time, since clocks of devices and of events differ.
/// Activities for which blocks had no room are missing.
[[nodiscard]] std::vector<StepTime> block_times(const StepTime& step,
                                                std::span<const protocol::Mark> marks);

}  // namespace braid
