#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace braid {

/// The parts of "a,b,c"; an empty text is one empty part.
[[nodiscard]] inline std::vector<std::string_view> split_list(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t comma = 0; comma != text.npos;) {
    comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    if (comma != text.npos) text.remove_prefix(comma + 1);
  }
  return parts;
}

}  // namespace braid
