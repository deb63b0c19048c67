#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace braid {

/// A position in a JSON document. It refers to its parent and its key, which must outlive it. The
/// text is built only when an error needs it.
class Place {
 public:
  /// The document's root; `file` may be empty.
  explicit Place(std::string_view file) : file_(file) {}
  Place operator/(std::string_view key) const { return {this, key, kNoIndex}; }
  Place operator/(std::size_t index) const { return {this, {}, index}; }

  /// The JSON pointer, preceded by "file:" when there is a file.
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
