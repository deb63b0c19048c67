#pragma once

#include <string>
#include <vector>

#include "braid/export.h"

namespace braid {

/// A text in UTF-8 that grows by bytes, as a model's tokens give them, and is sent while it does.
/// It ends in front of the first of its stops, wherever the borders of tokens are.
class BRAID_API TextStream {
 public:
  explicit TextStream(std::vector<std::string> stops = {});  ///< none is empty

  /// Appends; true once the text has ended, and nothing more may be appended.
  bool add(const std::string& bytes);
  /// What can be sent and has not been: whole characters, and nothing that may become part of a
  /// stop. `end`: all that is left, for no more will come.
  [[nodiscard]] std::string take(bool end);

 private:
  std::vector<std::string> stops_;
  std::string pending_;
};

}  // namespace braid
