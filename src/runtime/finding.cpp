#include "braid/finding.h"

#include <fmt/format.h>

namespace braid {

std::string Finding::text() const {
  std::string text =
      fmt::format("{}: {}: rank {}, kernel {}, block ({}, {}, {}), thread ({}, {}, {})", kind,
                  message, rank, kernel, block.x, block.y, block.z, thread.x, thread.y, thread.z);
  if (cuda_line != 0) text += fmt::format(", {}:{}", cuda_file, cuda_line);
  if (cuda_line != 0 && !inlined.empty()) text += fmt::format(" (inlined {})", inlined);
  text += fmt::format(", {}:{}", ptx_file, ptx_line);
  if (!buffer.empty()) text += fmt::format(", {}{:+}", buffer, offset);
  if (!other.empty()) text += "; " + other;
  return text;
}

}  // namespace braid
