#include "ir/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace braid {
namespace {

bool is_alpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

bool is_identifier_char(char c) { return is_alpha(c) || is_digit(c); }

bool is_identifier(std::string_view text) {
  return !text.empty() && !is_digit(text.front()) &&
         std::all_of(text.begin(), text.end(), is_identifier_char);
}

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0x80) {
      ++i;
      continue;
    }
    const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || i + length > text.size()) return false;
    std::uint32_t code = lead & (0xFFU >> (length + 1));
    for (std::size_t k = 1; k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xC0U) != 0x80) return false;
      code = code << 6U | (next & 0x3FU);
    }
    const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
    const bool surrogate = code >= 0xD800 && code < 0xE000;
    if (overlong || surrogate || code > 0x10FFFF) return false;
    i += length;
  }
  return true;
}

std::string printable(std::string_view text, std::size_t limit) {
  std::string result;
  for (char c : text) {
    if (result.size() >= limit) return result + "...";
    if (c == '\n') {
      result += "\\n";
    } else if (c < 0x20 || c > 0x7e) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      result += c;
    }
  }
  return result;
}

std::string quote(std::string_view text) { return fmt::format("\"{}\"", printable(text)); }

std::string_view message_of(const Error& error) {
  std::string_view text = error.what();
  if (!error.where().empty()) text.remove_prefix(error.where().size() + 2);
  return text;
}

}  // namespace braid
