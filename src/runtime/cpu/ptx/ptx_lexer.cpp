#include "runtime/cpu/ptx/ptx_lexer.h"

#include <bit>
#include <charconv>
#include <cstdlib>
#include <string>
#include <utility>

namespace braid::cpu::ptx {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}
bool is_name(char c) { return is_name_start(c) || is_digit(c); }

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {
    while (!text_.empty() && text_.back() == '\0') text_.remove_suffix(1);
  }

  std::vector<Token> run() {
    for (;;) {
      const std::size_t before = at_;
      skip_space();
      Token token;
      token.line = line_;
      token.glued = before == at_ && at_ != 0;
      if (at_ >= text_.size()) {
        if (!comment_ends_) {
          tokens_.push_back(token);
          bad(tokens_.back(), "comment without an end");
        }
        tokens_.push_back(token);
        return std::move(tokens_);
      }
      next(token);
      tokens_.push_back(token);
    }
  }

 private:
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  [[nodiscard]] bool starts_line() const { return at_ == 0 || text_[at_ - 1] == '\n'; }

  void skip_space() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        ++line_;
        ++at_;
      } else if (c == ' ' || c == '\t' || c == '\r') {
        ++at_;
      } else if ((c == '/' && peek(1) == '/') || (c == '#' && starts_line())) {
        // A comment or a preprocessor line.
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == '/' && peek(1) == '*') {
        at_ += 2;
        while (at_ < text_.size() && !(text_[at_] == '*' && peek(1) == '/')) {
          if (text_[at_++] == '\n') ++line_;
        }
        comment_ends_ = at_ < text_.size();
        at_ = std::min(at_ + 2, text_.size());
      } else {
        return;
      }
    }
  }

  void next(Token& token) {
    const std::size_t start = at_;
    const char c = text_[at_];
    if (is_name_start(c)) {
      token.kind = TokenKind::kIdentifier;
      while (is_name(peek())) ++at_;
      token.text = text_.substr(start, at_ - start);
    } else if (c == '.' && is_digit(peek(1)) && !(token.glued && is_name(text_[at_ - 1]))) {
      decimal_float(token);
    } else if (c == '.' && is_name(peek(1))) {
      token.kind = TokenKind::kDot;
      ++at_;
      while (is_name(peek()) || (peek() == ':' && peek(1) == ':' && is_name(peek(2)))) {
        at_ += peek() == ':' ? 2 : 1;
      }
      token.text = text_.substr(start + 1, at_ - start - 1);
    } else if (is_digit(c)) {
      number(token);
    } else if (c == '"') {
      token.kind = TokenKind::kString;
      ++at_;
      while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') ++at_;
      if (peek() != '"') return bad(token, "string without an end");
      token.text = text_.substr(start + 1, at_ - start - 1);
      ++at_;
    } else if (std::string_view("{}()[]<>,;:+-|!@=~*/&^?").find(c) != std::string_view::npos) {
      token.kind = TokenKind::kPunct;
      token.text = text_.substr(start, 1);
      ++at_;
    } else {
      ++at_;
      bad(token, "unexpected character with code");
      token.bits = static_cast<unsigned char>(c);
    }
  }

  /// Marks a bad token. Its reader reports it, since other kernels of the text may be fine.
  void bad(Token& token, std::string_view why) {
    token = {.kind = TokenKind::kBad, .text = why, .line = token.line};
    while (is_name(peek())) ++at_;
  }

  void hex_float(Token& token, std::size_t digits, TokenKind kind) {
    const auto body = text_.substr(std::min(at_ + 2, text_.size()), digits);
    const auto [end, status] =
        std::from_chars(body.data(), body.data() + body.size(), token.bits, 16);
    if (body.size() != digits || status != std::errc() || end != body.data() + digits) {
      at_ += 2;
      return bad(token, "bad floating-point literal");
    }
    token.kind = kind;
    at_ += 2 + digits;
  }

  void number(Token& token) {
    const std::size_t start = at_;
    const char second = peek(1);
    if (text_[at_] == '0' && (second == 'f' || second == 'F')) {
      hex_float(token, 8, TokenKind::kFloat32);
    } else if (text_[at_] == '0' && (second == 'd' || second == 'D')) {
      hex_float(token, 16, TokenKind::kFloat64);
    } else {
      int base = 10;
      if (text_[at_] == '0' && (second == 'x' || second == 'X')) base = 16;
      if (text_[at_] == '0' && (second == 'b' || second == 'B')) base = 2;
      if (text_[at_] == '0' && is_digit(second)) base = 8;
      if (base == 16 || base == 2) at_ += 2;
      const char* begin = text_.data() + at_;
      const auto [end, status] =
          std::from_chars(begin, text_.data() + text_.size(), token.bits, base);
      if (status != std::errc()) return bad(token, "bad number");
      at_ += static_cast<std::size_t>(end - begin);
      token.kind = TokenKind::kInteger;
      if (base == 10 && (peek() == '.' || peek() == 'e' || peek() == 'E')) {
        at_ = start;
        decimal_float(token);
      } else if (peek() == 'U') {
        ++at_;
      }
    }
    if (is_name(peek())) return bad(token, "bad number");
    if (token.kind != TokenKind::kBad) token.text = text_.substr(start, at_ - start);
  }

  void decimal_float(Token& token) {
    std::string body;
    while (is_digit(peek()) || peek() == '.' || peek() == 'e' || peek() == 'E' ||
           ((peek() == '-' || peek() == '+') && (body.back() == 'e' || body.back() == 'E'))) {
      body += text_[at_++];
    }
    char* end = nullptr;
    const double value = std::strtod(body.c_str(), &end);
    if (*end != '\0') return bad(token, "bad floating-point literal");
    token.kind = TokenKind::kFloat64;
    token.bits = std::bit_cast<std::uint64_t>(value);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  bool comment_ends_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view text) { return Lexer(text).run(); }

}  // namespace braid::cpu::ptx
