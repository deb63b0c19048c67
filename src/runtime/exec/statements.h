#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace braid {

/// Compares what ranks state under the same key: Rendezvous::state. A key is forgotten once all its
/// ranks have stated it.
class Statements {
 public:
  /// `by` are some of the `ranks` that state `key`. Returns how that differs from what others have
  /// stated, or an empty text.
  [[nodiscard]] std::string add(const std::string& key, std::span<const int> by, std::size_t ranks,
                                const std::string& text);

 private:
  struct Stated {
    int rank;  ///< the first that stated it
    std::string text;
    std::size_t count = 0;
  };
  std::map<std::string, Stated> open_;
};

/// Those of `ranks` that are in `own`.
[[nodiscard]] std::vector<int> common_ranks(std::span<const int> ranks, std::span<const int> own);

}  // namespace braid
