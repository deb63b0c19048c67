#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace braid::cpu {

/// Source places of the lines of a PTX text, from its .loc and .file directives.
struct SourceMap {
  struct Place {
    std::uint64_t file = 0;     ///< of `files`
    std::uint32_t line = 0;     ///< of that file, or 0
    std::uint32_t inlined = 0;  ///< for code inlined there: index in `inlined` plus one
  };
  std::map<std::uint64_t, std::string> files;  ///< without their folders; some have no name
  std::vector<std::string> inlined;            ///< "mine.cuh:5 in outer"
  std::vector<Place> places;                   ///< by PTX line

  [[nodiscard]] Place at(std::uint32_t ptx_line) const {
    return ptx_line < places.size() ? places[ptx_line] : Place{};
  }
};

}  // namespace braid::cpu
