#pragma once

#include <string>
#include <string_view>

#include "codegen/tile/text.h"
#include "codegen/tile/verify.h"

namespace braid::tile {

/// The text of a program after these passes, each of which leaves one that the verifier accepts.
template <class... Passes>
std::string text_after(std::string_view text, const Passes&... passes) {
  Program program = parse_text(text);
  verify(program);
  const auto run = [&](const auto& pass) {
    pass(program);
    verify(program);
  };
  (run(passes), ...);
  return print_text(program);
}

}  // namespace braid::tile
