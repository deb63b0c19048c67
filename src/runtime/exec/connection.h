#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/file_io.h"

namespace braid {

/// What the ends of a rendezvous over sockets send each other.
enum class FrameKind : std::uint32_t {
  kGreeting = 1,  ///< by who listens, so that nobody sends anything to a stranger: its format
  kHello,         ///< who comes
  kWelcome,       ///< all are there
  kRefused,       ///< why; the others go on
  kForeign,       ///< this is another job
  kGather,        ///< bytes of an end's ranks
  kResult,        ///< of all ranks
  kBeat,          ///< nothing but that the end is there
  kLost,          ///< why no round will end any more
};
struct Frame {
  FrameKind kind = FrameKind::kBeat;
  std::string payload;
};

/// A socket that carries frames. Never blocks.
class Connection {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kMostFromStrangers = 64 << 10;
  static constexpr std::size_t kMost = std::size_t{1} << 30;

  explicit Connection(File socket) : socket_(std::move(socket)) {}

  [[nodiscard]] const File& socket() const { return socket_; }
  /// Larger frames are refused from now on.
  void set_limit(std::size_t bytes) { limit_ = bytes; }

  /// Sends now what goes now, the rest in flush().
  void send(FrameKind kind, std::string_view payload = {});
  void flush();
  [[nodiscard]] bool has_unsent() const { return sent_ < out_.size(); }

  /// Takes what has come; false when the other end has closed. What came before is still there.
  bool receive();
  [[nodiscard]] std::optional<Frame> next();
  /// What comes next is no frame.
  [[nodiscard]] bool damaged() const;

  /// When something last came.
  [[nodiscard]] Clock::time_point heard() const { return heard_; }
  void set_heard(Clock::time_point when) { heard_ = when; }

 private:
  File socket_;
  std::size_t limit_ = kMostFromStrangers;
  std::string in_, out_;
  std::size_t sent_ = 0;  ///< of out_
  Clock::time_point heard_ = Clock::now();
};

}  // namespace braid
