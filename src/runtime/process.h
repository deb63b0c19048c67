#pragma once

#include <optional>

namespace braid {

/// The index of this process on its machine, as its launcher says.
[[nodiscard]] std::optional<int> local_rank_from_environment();

}  // namespace braid
