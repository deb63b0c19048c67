#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace braid {

/// Where in a JSON document a reader is. It refers to its parent and its key, which must outlive
/// it; the text is made only when an error needs it.
class Place {
 public:
  /// The whole document; `file` may be empty.
  explicit Place(std::string_view file) : file_(file) {}
  Place operator/(std::string_view key) const { return {this, key, kNoIndex}; }
  Place operator/(std::size_t index) const { return {this, {}, index}; }

  /// The JSON pointer, after "file:" when there is a file.
  [[nodiscard]] std::string str() const;

 private:
  static constexpr std::size_t kNoIndex = -1;
  Place(const Place* parent, std::string_view key, std::size_t index)
      : parent_(parent), key_(key), index_(index) {}
  [[nodiscard]] std::string pointer() const;

  const Place* parent_ = nullptr;
  std::string_view key_;
  std::size_t index_ = kNoIndex;
  std::string_view file_;
};

/// "/key", escaped as in a JSON pointer, printable and short.
[[nodiscard]] std::string pointer_step(std::string_view key);

}  // namespace braid
