#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "braid/error.h"

namespace braid {

/// Whether it is a letter, a digit or an underscore.
[[nodiscard]] bool is_identifier_char(char c);
/// Whether it is a non-empty word of identifier characters that does not start with a digit.
[[nodiscard]] bool is_identifier(std::string_view text);
[[nodiscard]] bool is_utf8(std::string_view text);

/// A user's text for an error message: printable ASCII on one line, at most about `limit` long.
[[nodiscard]] std::string printable(std::string_view text, std::size_t limit = 60);
/// The same in double quotes.
[[nodiscard]] std::string quote(std::string_view text, std::size_t limit = 60);

/// The `count` names nearest to `name` by edit distance, nearest first, without those that differ
/// by more than `most`.
[[nodiscard]] std::vector<std::string_view> nearest(std::string_view name,
                                                    std::vector<std::string_view> names,
                                                    std::size_t count, std::size_t most = SIZE_MAX);

/// The error's message without its place.
[[nodiscard]] std::string_view message_of(const Error& error);

}  // namespace braid
