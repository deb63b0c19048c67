#pragma once

#include <fmt/format.h>

#include <type_traits>
#include <utility>

#include "braid/error.h"

namespace braid {

/// An argument of a message as it is said: a function is called for it.
template <class Arg>
decltype(auto) said(Arg&& arg) {
  if constexpr (std::is_invocable_v<Arg>) {
    return arg();
  } else {
    return std::forward<Arg>(arg);
  }
}

/// A rule that every plan keeps; else kInternal at "program". Millions hold for each that does not,
/// so what costs time to say is given as a function.
template <class... Args>
void expect(bool good,
            fmt::format_string<std::remove_cvref_t<decltype(said(std::declval<Args>()))>...> format,
            Args&&... args) {
  if (good) return;
  throw_internal("program", fmt::vformat(format, fmt::make_format_args(said(args)...)));
}

}  // namespace braid
