#pragma once

#include <cstddef>
#include <string>

namespace braid {

/// The contents of a text file; "-" is standard input, which errors call stdin. It stops reading
/// past the limit, since a device may never end. Throws kInvalidArgument for what is not a file and
/// for more than `limit` bytes, kEnvironment for read errors.
[[nodiscard]] std::string read_text(const std::string& path, std::size_t limit);

/// The size limit of a graph file.
inline constexpr std::size_t kMaxGraphBytes = std::size_t{1} << 30U;

}  // namespace braid
