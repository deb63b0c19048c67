#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace braid::cpu::ptx {

enum class TokenKind : std::uint8_t {
  kIdentifier,
  kDot,
  kInteger,
  kFloat32,
  kFloat64,
  kString,
  kPunct,
  kBad,  ///< not a PTX token: `text` says why, `bits` may be the character
  kEnd
};

/// `text` refers to the lexed buffer. A kDot token is ".name" without its dot; `bits` is the value
/// of a number.
struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;
  std::uint64_t bits = 0;
  std::uint32_t line = 1;
  bool glued = false;  ///< without a space before it
};

/// Splits a text into tokens; the last one is kEnd.
std::vector<Token> tokenize(std::string_view text);

}  // namespace braid::cpu::ptx
