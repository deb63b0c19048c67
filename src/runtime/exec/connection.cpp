#include "runtime/exec/connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace braid {
namespace {

constexpr std::uint32_t kMagic = 0x64696172;
constexpr std::size_t kPiece = 64 << 10;

struct Header {
  std::uint32_t magic;
  std::uint32_t kind;
  std::uint64_t bytes;
};

Header header_of(const std::string& bytes) {
  Header header{};
  std::memcpy(&header, bytes.data(), sizeof header);
  return header;
}

}  // namespace

void Connection::send(FrameKind kind, std::string_view payload) {
  const Header header{kMagic, static_cast<std::uint32_t>(kind), payload.size()};
  out_.append(reinterpret_cast<const char*>(&header), sizeof header);
  out_.append(payload);
  flush();
}

void Connection::flush() {
  while (has_unsent()) {
    const ssize_t n = ::send(socket_.get(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    // If the other end is gone, receive() reports it.
    sent_ = n < 0 ? out_.size() : sent_ + static_cast<std::size_t>(n);
  }
  out_.clear();
  sent_ = 0;
}

bool Connection::receive() {
  std::array<char, kPiece> piece;  // NOLINT(cppcoreguidelines-pro-type-member-init): overwritten
  for (;;) {
    const ssize_t n = ::recv(socket_.get(), piece.data(), piece.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (n <= 0) return false;
    heard_ = Clock::now();
    in_.append(piece.data(), static_cast<std::size_t>(n));
    if (in_.size() > limit_ + sizeof(Header)) return true;  // processes a flood of bytes in parts
  }
}

/// Memory grows with what arrives, not with announced sizes.
bool Connection::damaged() const {
  if (in_.size() < sizeof(Header)) {
    return std::memcmp(in_.data(), &kMagic, std::min(in_.size(), sizeof kMagic)) != 0;
  }
  const Header header = header_of(in_);
  return header.magic != kMagic || header.bytes > limit_;
}

std::optional<Frame> Connection::next() {
  if (in_.size() < sizeof(Header) || damaged()) return {};
  const Header header = header_of(in_);
  if (in_.size() - sizeof header < header.bytes) return {};
  Frame frame{static_cast<FrameKind>(header.kind), in_.substr(sizeof header, header.bytes)};
  in_.erase(0, sizeof header + header.bytes);
  return frame;
}

}  // namespace braid
