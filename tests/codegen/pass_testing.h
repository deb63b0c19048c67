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

/// What packets need: parameters 2 to 8, and their values, with this rank's number %80 and its
/// scratch %82.
inline constexpr std::string_view kPacketParams = R"(param 2 peers 0 group "tp"
param 3 rank 0 group "tp"
param 4 flags 0 group "tp"
param 5 timeout 0 group "tp"
param 6 record 0
param 7 step 0
param 8 scratch 0 group "tp" divisor 256
)";
inline constexpr std::string_view kPacketScratch = R"(  %80 = param 3 : i64
  %81 = param 8 : i64
  %82 = peer %81, %80 : ptr
)";

}  // namespace braid::tile
