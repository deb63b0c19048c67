#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace braid {

/// Appends fixed-size values and length-prefixed strings to a byte string, in host byte order (the
/// cache is per machine).
class ByteWriter {
 public:
  template <class T>
  requires std::is_arithmetic_v<T>
  void value(T v) { bytes_.append(reinterpret_cast<const char*>(&v), sizeof v); }
  void string(std::string_view text) {
    value<std::uint64_t>(text.size());
    bytes_.append(text);
  }
  [[nodiscard]] std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Reads what ByteWriter wrote, and never reads outside the bytes: after the first read past the
/// end every further one gives zero or an empty string, and `done` is false.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  requires std::is_arithmetic_v<T> T value() {
    T v{};
    if (rest_.size() < sizeof v) {
      fail();
      return v;
    }
    std::memcpy(&v, rest_.data(), sizeof v);
    rest_.remove_prefix(sizeof v);
    return v;
  }
  std::string_view string() {
    const auto size = value<std::uint64_t>();
    if (size > rest_.size()) {
      fail();
      return {};
    }
    std::string_view text = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return text;
  }
  [[nodiscard]] bool has_more() const { return !rest_.empty(); }
  /// Whether everything was read and nothing is left.
  [[nodiscard]] bool done() const { return ok_ && rest_.empty(); }

 private:
  void fail() {
    ok_ = false;
    rest_ = {};
  }
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace braid
