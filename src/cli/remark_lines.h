#pragma once

#include <string>
#include <vector>

#include "lowering/remark.h"

namespace braid::cli {

/// A line of remarks for people: those of one pass with the same outcome and with reasons that
/// differ only in names are merged.
struct RemarkLine {
  const Remark* first;
  std::vector<std::string> nodes;
  std::string reason;  ///< of the first one; "..." follows a name that is another one in others
};

/// In order of their first remarks, which must outlive them.
[[nodiscard]] std::vector<RemarkLine> remark_lines(const std::vector<Remark>& remarks);

}  // namespace braid::cli
