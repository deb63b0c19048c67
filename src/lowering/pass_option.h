#pragma once

#include <fmt/format.h>

#include <charconv>
#include <concepts>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "braid/pass_config.h"

namespace braid {

/// Whether the text is a value: "true" or "false", any word, or a number that is not negative.
template <class T>
bool read_value(std::string_view text, T& value) {
  if constexpr (std::same_as<T, bool>) {
    value = text == "true";
    return value || text == "false";
  } else if constexpr (std::same_as<T, std::string>) {
    value = text;
    return !text.empty();
  } else {
    if (std::integral<T> && text.size() > 1 && text.front() == '0') return false;  // not octal
    const char* const end = text.data() + text.size();
    const auto [at, code] = std::from_chars(text.data(), end, value);
    return code == std::errc() && at == end && value >= 0 && value <= std::numeric_limits<T>::max();
  }
}
template <class T>
bool read_value(std::string_view text, std::optional<T>& value) {
  return read_value(text, value.emplace());
}

/// The text that is read as the value; "" for nothing.
template <class T>
std::string write_value(const T& value) {
  return fmt::format("{}", value);
}
template <class T>
std::string write_value(const std::optional<T>& value) {
  return value ? write_value(*value) : "";
}

/// What the text of a value may be.
template <class T>
inline constexpr std::string_view kExpected = "a word";
template <>
inline constexpr std::string_view kExpected<bool> = "true or false";
template <>
inline constexpr std::string_view kExpected<double> = "a number, 0 or more";
template <>
inline constexpr std::string_view kExpected<std::int64_t> = "an integer from 0 on";
template <class T>
inline constexpr std::string_view kExpected<std::optional<T>> = kExpected<T>;

/// Its address stands for the type.
template <class Options>
inline constexpr char kOwner = 0;

/// What an option sets: a member of PassConfig, or of a struct of the pass.
struct OptionVariable {
  const void* owner;          ///< kOwner of the struct
  std::string_view expected;  ///< what its text may be
  /// Reads the text into the struct and returns whether it fits; checks it alone where that is
  /// null.
  bool (*read)(std::string_view text, void* options);
  /// The text of the value in the struct; of the default where that is null.
  std::string (*write)(const void* options);
};

template <auto kMember, class Options, class T>
constexpr OptionVariable variable_of(T Options::* /*member*/) {
  return {&kOwner<Options>, kExpected<T>,
          [](std::string_view text, void* options) {
            Options unused;
            auto* const into = options == nullptr ? &unused : static_cast<Options*>(options);
            return read_value(text, into->*kMember);
          },
          [](const void* options) {
            const Options defaults;
            const auto* const from =
                options == nullptr ? &defaults : static_cast<const Options*>(options);
            return write_value(from->*kMember);
          }};
}
/// Of a pointer to the member.
template <auto kMember>
inline constexpr OptionVariable kVariable = variable_of<kMember>(kMember);

/// An option of a pass, with its name and description.
struct PassOption {
  std::string_view name;  ///< "always-pipeline"
  OptionVariable variable;
  std::string_view meaning;
  /// Text for `explain`: "pipelines {}" with the value, or with `on` or `off` (no value). It is not
  /// shown where that gives nothing. Empty: shown only when it is not the default.
  std::string_view said = {};
  std::string_view off = {};
  std::string_view on = {};

  [[nodiscard]] bool is_flag() const { return variable.expected == kExpected<bool>; }
  /// The text of the value in effect; "" for nothing.
  [[nodiscard]] std::string value(const PassConfig& config) const;
  /// The default for people: "0.5", "off", "all".
  [[nodiscard]] std::string default_text() const;
};

}  // namespace braid
