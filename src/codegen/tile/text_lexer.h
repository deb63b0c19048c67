#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace braid::tile {

struct Token {
  enum Kind : std::uint8_t { kWord, kNumber, kValue, kString, kPunctuation, kLine, kEnd };
  Kind kind = kEnd;
  std::string text;
  int line = 1;
};

/// The tokens of a program's text. Every error is kInvalidArgument with the place, what was found
/// and what was expected.
class Lexer {
 public:
  explicit Lexer(std::string_view text);

  [[nodiscard]] const Token& token() const { return tokens_[at_]; }
  [[nodiscard]] bool at(std::string_view text) const;
  /// Consumes the next word or mark if it is this one.
  bool accept(std::string_view text);
  void expect(std::string_view text);
  std::string word(std::string_view expected);
  std::string value();
  std::string string();
  void number();
  std::int64_t integer(std::int64_t low, std::int64_t high);
  /// The text up to the end of the line or one of these words.
  std::string rest(const std::vector<std::string_view>& stops);
  void end_line();
  void skip_lines();
  /// Whether the text has a value with this number.
  [[nodiscard]] bool holds_number(std::int64_t number) const { return numbers_.contains(number); }

  [[noreturn]] void fail(std::string_view expected) const { fail_token(token(), expected); }
  [[noreturn]] void fail_previous(std::string_view expected) const {
    fail_token(tokens_[at_ == 0 ? 0 : at_ - 1], expected);
  }
  [[noreturn]] static void fail_token(const Token& token, std::string_view expected);

 private:
  void next() {
    if (at_ + 1 < tokens_.size()) ++at_;
  }
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::set<std::int64_t> numbers_;
};

}  // namespace braid::tile
