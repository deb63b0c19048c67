#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace braid {

/// A JSON value for output. Objects keep the order of their keys. Numbers that are not finite print
/// as null, and text that is not UTF-8 prints with replacement characters.
///
///     Json document = Json::object({{"name", "x"}, {"shape", std::vector{2, 3}}});
///     document.set("ok", true);
class Json {
 public:
  using Member = std::pair<std::string, Json>;

  Json() = default;  ///< null
  // NOLINTBEGIN(google-explicit-constructor): implicit conversions make JSON readable to build
  Json(bool value) : value_(value) {}
  template <std::integral T>
  Json(T value) {
    if constexpr (std::is_signed_v<T>) {
      value_ = static_cast<std::int64_t>(value);
    } else {
      value_ = static_cast<std::uint64_t>(value);
    }
  }
  Json(double value) : value_(value) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(const char* value) : value_(std::string(value)) {}
  template <class T>
  Json(const std::vector<T>& items) : value_(std::vector<Json>(items.begin(), items.end())) {}
  // NOLINTEND(google-explicit-constructor)

  [[nodiscard]] static Json array(std::initializer_list<Json> items = {});
  [[nodiscard]] static Json object(std::initializer_list<Member> members = {});

  /// Appends to an array.
  void push_back(Json item);
  /// Appends a key, which the object must not have yet.
  void set(std::string key, Json value);

  /// The text: on one line, or indented by two spaces.
  [[nodiscard]] std::string line() const;
  [[nodiscard]] std::string indented() const;

 private:
  friend struct JsonPrinter;
  std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string,
               std::vector<Json>, std::vector<Member>>
      value_;
};

/// A JSON string literal; the text must be UTF-8.
[[nodiscard]] std::string json_string(std::string_view text);

}  // namespace braid
