#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "braid/export.h"

namespace braid {

struct ChatMessage {
  std::string role, content;
};

/// How a model's chat template makes a prompt of messages, where what stands between two contents
/// depends on their roles alone: braid.export finds that out (docs/python.md).
struct BRAID_API ChatFormat {
  bool trim = false;  ///< contents lose white space at both ends
  /// The text between the contents of two messages that follow each other, by their roles. In front
  /// of the first one the role is "", and so it is behind the last one, where the answer begins.
  std::map<std::pair<std::string, std::string>, std::string> between;

  /// Throws kInvalidArgument where the template has no such message at such a place.
  [[nodiscard]] std::string prompt(const std::vector<ChatMessage>& messages) const;
};

}  // namespace braid
