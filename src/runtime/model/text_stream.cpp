#include "braid/text_stream.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace braid {
namespace {

/// How many bytes of a text are whole characters.
std::size_t whole(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if (byte < 0x80) break;
    if (byte < 0xc0) continue;  // not the first byte of its character
    const std::size_t length = byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
    return back < length ? text.size() - back : text.size();
  }
  return text.size();
}

}  // namespace

TextStream::TextStream(std::vector<std::string> stops) : stops_(std::move(stops)) {}

bool TextStream::add(const std::string& bytes) {
  pending_ += bytes;
  // The stop that is complete first, as if bytes came one by one, and of several the longest.
  std::pair best(std::string::npos, std::string::npos);  // where it ends and begins
  for (const std::string& stop : stops_) {
    const std::size_t begin = pending_.find(stop);
    if (begin != std::string::npos) best = std::min(best, {begin + stop.size(), begin});
  }
  if (best.first == std::string::npos) return false;
  pending_.resize(best.second);
  return true;
}

std::string TextStream::take(bool end) {
  std::size_t count = pending_.size();
  for (const std::string& stop : stops_) {
    std::size_t part = std::min(stop.size() - 1, pending_.size());
    while (!pending_.ends_with(stop.substr(0, part))) --part;
    count = std::min(count, pending_.size() - part);
  }
  count = end ? pending_.size() : whole(std::string_view(pending_).substr(0, count));
  std::string result = pending_.substr(0, count);
  pending_.erase(0, count);
  return result;
}

}  // namespace braid
