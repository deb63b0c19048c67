#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "ir/json_value.h"

namespace braid {

/// A kind of reason, declared in the file of the pass or family that gives it, with its only text:
/// "'{reader}' reads '{value}', too". The names in braces are the arguments in order (a name may
/// recur), each with an optional format ("{us:.1f}").
struct ReasonCode {
  std::string_view id;  ///< "fuse.closes_a_cycle"
  std::string_view format;
};

struct Argument;

/// Why something was or was not done: a code and its arguments. An empty reason means that there is
/// none; functions that look for an obstacle return it when they find none.
class Reason {
 public:
  Reason() = default;
  template <class... Arguments>
  explicit Reason(const ReasonCode& code, Arguments&&... arguments);

  [[nodiscard]] bool empty() const { return code_ == nullptr; }
  explicit operator bool() const { return !empty(); }
  [[nodiscard]] std::string_view id() const { return empty() ? std::string_view() : code_->id; }
  [[nodiscard]] const std::vector<Argument>& arguments() const { return arguments_; }
  [[nodiscard]] std::string text() const;
  /// Adds "code": id and "arguments": {name: value, ...} to an object.
  void add_to(Json& object) const;

 private:
  const ReasonCode* code_ = nullptr;
  std::vector<Argument> arguments_;
};

/// An argument: text (mostly a name), a number, or reasons, printed one after the other.
struct Argument {
  // NOLINTBEGIN(google-explicit-constructor): implicit conversions make calls readable
  Argument(std::string_view text) : value(std::string(text)) {}
  Argument(std::string text) : value(std::move(text)) {}
  Argument(const char* text) : value(std::in_place_type<std::string>, text) {}
  template <class T>
  requires std::is_integral_v<T> Argument(T number) : value(static_cast<std::int64_t>(number)) {}
  Argument(double number) : value(number) {}
  Argument(Reason reason)
      : value(reason.empty() ? std::vector<Reason>() : std::vector{std::move(reason)}) {}
  Argument(std::vector<Reason> reasons) : value(std::move(reasons)) {}
  // NOLINTEND(google-explicit-constructor)

  std::variant<std::string, std::int64_t, double, std::vector<Reason>> value;
};

template <class... Arguments>
Reason::Reason(const ReasonCode& code, Arguments&&... arguments) : code_(&code) {
  arguments_.reserve(sizeof...(arguments));
  (arguments_.emplace_back(std::forward<Arguments>(arguments)), ...);
}

/// What a pass did at a node, or why it did not.
struct Remark {
  std::string_view pass;
  std::string node;
  bool applied = false;
  Reason reason;
};

}  // namespace braid
