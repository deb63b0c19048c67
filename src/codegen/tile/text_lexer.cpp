#include "codegen/tile/text_lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "braid/error.h"

namespace braid::tile {
namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Printable characters as they are, others by number, so that a message is one line of plain text.
std::string shown(const Token& token) {
  if (token.kind == Token::kEnd) return "the end";
  if (token.kind == Token::kLine) return "the end of the line";
  std::string out = "'";
  for (char c : token.text.substr(0, 40)) {
    if (c < 0x20 || c > 0x7e) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      out += c;
    }
  }
  return out + "'";
}

/// The end of the number that starts here.
std::size_t end_of_number(std::string_view text, std::size_t at) {
  std::size_t end = at + 1;
  while (end < text.size()) {
    const bool exponent_sign =
        (text[end] == '-' || text[end] == '+') && (text[end - 1] == 'e' || text[end - 1] == 'E');
    if (!is_word(text[end]) && !exponent_sign) break;
    ++end;
  }
  return end;
}

}  // namespace

Lexer::Lexer(std::string_view text) {
  int line = 1;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    const auto take = [&](Token::Kind kind, std::size_t end) {
      tokens_.push_back({kind, std::string(text.substr(at, end - at)), line});
      at = end;
    };
    if (c == '\n') {
      take(Token::kLine, at + 1);
      ++line;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++at;
    } else if (text.substr(at, 2) == "//") {
      at = std::min(text.find('\n', at), text.size());
    } else if (is_digit(c) || (c == '-' && at + 1 < text.size() &&
                               (is_digit(text[at + 1]) || text[at + 1] == 'i'))) {
      take(Token::kNumber, end_of_number(text, at));
    } else if (is_word(c) || c == '%') {
      std::size_t end = at + 1;
      while (end < text.size() && is_word(text[end])) ++end;
      take(c == '%' ? Token::kValue : Token::kWord, end);
    } else if (c == '"') {
      std::size_t end = at + 1;
      while (end < text.size() && text[end] != '"' && text[end] != '\n') {
        end += text[end] == '\\' ? 2 : 1;
      }
      if (end >= text.size() || text[end] != '"') {
        fail_token({Token::kPunctuation, "\"", line}, "a string that ends on its line");
      }
      take(Token::kString, end + 1);
    } else {
      take(Token::kPunctuation, at + 1);
    }
  }
  tokens_.push_back({Token::kEnd, "", line});
  for (const Token& token : tokens_) {
    if (token.kind != Token::kValue) continue;
    const char* const end = token.text.data() + token.text.size();
    std::int64_t number = 0;
    const auto [stop, error] = std::from_chars(token.text.data() + 1, end, number);
    if (error == std::errc{} && stop == end) numbers_.insert(number);
  }
}

void Lexer::fail_token(const Token& token, std::string_view expected) {
  throw_invalid(fmt::format("line {}", token.line),
                fmt::format("found {}, expected {}", shown(token), expected));
}

bool Lexer::at(std::string_view text) const {
  const Token& t = token();
  return (t.kind == Token::kWord || t.kind == Token::kPunctuation) && t.text == text;
}

bool Lexer::accept(std::string_view text) {
  if (!at(text)) return false;
  next();
  return true;
}

void Lexer::expect(std::string_view text) {
  if (!accept(text)) fail(fmt::format("'{}'", text));
}

std::string Lexer::word(std::string_view expected) {
  if (token().kind != Token::kWord) fail(expected);
  std::string text = token().text;
  next();
  return text;
}

std::string Lexer::value() {
  if (token().kind != Token::kValue || token().text.size() < 2) fail("a value: %name");
  std::string text = token().text;
  next();
  return text;
}

std::string Lexer::string() {
  if (token().kind != Token::kString) fail("a string in quotes");
  const std::string quoted = token().text;
  std::string out;
  for (std::size_t i = 1; i + 1 < quoted.size(); ++i) {
    if (quoted[i] == '\\') ++i;
    out += quoted[i];
  }
  next();
  return out;
}

void Lexer::number() {
  if (token().kind != Token::kNumber && !at("inf") && !at("nan")) fail("a number");
  next();
}

std::int64_t Lexer::integer(std::int64_t low, std::int64_t high) {
  const Token& t = token();
  std::int64_t number = 0;
  const char* const end = t.text.data() + t.text.size();
  const auto [stop, error] = std::from_chars(t.text.data(), end, number);
  if (t.kind != Token::kNumber || error != std::errc{} || stop != end || number < low ||
      number > high) {
    fail(fmt::format("a number from {} to {}", low, high));
  }
  next();
  return number;
}

std::string Lexer::rest(const std::vector<std::string_view>& stops) {
  std::string out;
  while (token().kind != Token::kLine && token().kind != Token::kEnd &&
         std::find(stops.begin(), stops.end(), token().text) == stops.end()) {
    out += token().text;
    next();
  }
  return out;
}

void Lexer::end_line() {
  if (token().kind != Token::kLine && token().kind != Token::kEnd) fail("the end of the line");
  next();
}

void Lexer::skip_lines() {
  while (token().kind == Token::kLine) next();
}

}  // namespace braid::tile
