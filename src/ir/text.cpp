#include "ir/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace braid {
namespace {

bool is_alpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

bool is_identifier_char(char c) { return is_alpha(c) || is_digit(c); }

bool is_identifier(std::string_view text) {
  return !text.empty() && !is_digit(text.front()) && std::ranges::all_of(text, is_identifier_char);
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

std::string quote(std::string_view text, std::size_t limit) {
  return fmt::format("\"{}\"", printable(text, limit));
}

namespace {

/// The Levenshtein distance, computed one row at a time.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

std::vector<std::string_view> nearest(std::string_view name, std::vector<std::string_view> names,
                                      std::size_t count, std::size_t most) {
  constexpr std::size_t kLongest = 64;  // names can be arbitrarily long
  name = name.substr(0, kLongest);
  std::erase_if(names, [&](std::string_view known) { return edit_distance(name, known) > most; });
  std::ranges::stable_sort(names, [&](std::string_view a, std::string_view b) {
    return edit_distance(name, a) < edit_distance(name, b);
  });
  names.resize(std::min(count, names.size()));
  return names;
}

std::string_view message_of(const Error& error) {
  std::string_view text = error.what();
  if (!error.where().empty()) text.remove_prefix(error.where().size() + 2);
  return text;
}

}  // namespace braid
