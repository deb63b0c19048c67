#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "braid/error.h"

namespace braid {

// Errors whose message fmt puts together.

template <class First, class... Rest>
[[noreturn]] void throw_invalid(std::string where, fmt::format_string<First, Rest...> message,
                                First&& first, Rest&&... rest) {
  throw_invalid(std::move(where),
                fmt::format(message, std::forward<First>(first), std::forward<Rest>(rest)...));
}
template <class First, class... Rest>
[[noreturn]] void throw_environment(std::string where, fmt::format_string<First, Rest...> message,
                                    First&& first, Rest&&... rest) {
  throw_environment(std::move(where),
                    fmt::format(message, std::forward<First>(first), std::forward<Rest>(rest)...));
}
template <class First, class... Rest>
[[noreturn]] void throw_internal(std::string where, fmt::format_string<First, Rest...> message,
                                 First&& first, Rest&&... rest) {
  throw_internal(std::move(where),
                 fmt::format(message, std::forward<First>(first), std::forward<Rest>(rest)...));
}

}  // namespace braid
