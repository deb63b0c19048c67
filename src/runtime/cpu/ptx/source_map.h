#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace braid::cpu {

/// Where the lines of PTX text come from, as its .loc and .file directives say.
struct SourceMap {
  struct Place {
    std::uint32_t line = 0;     ///< of `file`, or 0
    std::uint32_t inlined = 0;  ///< of code that was inlined there: index of `inlined` plus one
  };
  std::string file;                  ///< without its folder; empty if it has no name
  std::vector<std::string> inlined;  ///< "mine.cuh:5 in outer"
  std::vector<Place> places;         ///< by line of the PTX

  [[nodiscard]] Place at(std::uint32_t ptx_line) const {
    return ptx_line < places.size() ? places[ptx_line] : Place{};
  }
};

}  // namespace braid::cpu
