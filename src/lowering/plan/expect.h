#pragma once

#include <fmt/format.h>

#include <type_traits>
#include <utility>

#include "braid/error.h"

namespace braid {

/// An argument of a message; a function is called only when the message is built.
template <class Arg>
decltype(auto) said(Arg&& arg) {
  if constexpr (std::is_invocable_v<Arg>) {
    return arg();
  } else {
    return std::forward<Arg>(arg);
  }
}

/// Throws kInternal at "program" where a rule of plans is broken. Since almost all checks pass,
/// arguments that are expensive to compute are given as functions.
template <class... Args>
void expect(bool good,
            fmt::format_string<std::remove_cvref_t<decltype(said(std::declval<Args>()))>...> format,
            Args&&... args) {
  if (good) return;
  throw_internal("program", fmt::vformat(format, fmt::make_format_args(said(args)...)));
}

}  // namespace braid
