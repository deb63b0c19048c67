#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "braid/executable.h"
#include "codegen/protocol.h"

namespace braid {

/// What the blocks of a step's kernel did when, from their marks, protocol::kMarksOfBlock for each
/// block: each lasts until the block's next one. `step` is the whole launch, whose begin and the
/// first mark count as one time, since clocks of devices and of events differ; what blocks had no
/// room to note is missing.
[[nodiscard]] std::vector<StepTime> block_times(const StepTime& step,
                                                std::span<const protocol::Mark> marks);

}  // namespace braid
