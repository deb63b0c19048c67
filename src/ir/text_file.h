#pragma once

#include <cstddef>
#include <string>

namespace braid {

/// All of a text file; "-" is standard input, which errors call stdin. Reads no more than is enough
/// to refuse: a device may never end. Throws kInvalidArgument for what is no file, or one of more
/// than `limit` bytes, and kEnvironment for what cannot be read.
[[nodiscard]] std::string read_text(const std::string& path, std::size_t limit);

/// The most bytes of a graph.
inline constexpr std::size_t kMaxGraphBytes = std::size_t{1} << 30U;

}  // namespace braid
