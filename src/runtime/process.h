#pragma once

#include <optional>

namespace braid {

/// The number of this process among those of its machine, as its launcher says.
[[nodiscard]] std::optional<int> local_rank_from_environment();

}  // namespace braid
