#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/file_io.h"

namespace braid {

/// The frames between ends of a socket rendezvous.
enum class FrameKind : std::uint32_t {
  kGreeting = 1,  ///< format; sent first by the listener, so that nobody sends anything to a
                  ///< stranger
  kHello,         ///< who connects
  kWelcome,       ///< all have arrived
  kRefused,       ///< reason of the refusal; the others go on
  kForeign,       ///< the listener belongs to another job
  kGather,        ///< bytes of an end's ranks
  kResult,        ///< bytes of all ranks
  kBeat,          ///< heartbeat
  kLost,          ///< why no round will complete any more
  kState,         ///< what an end's ranks state
  kDisagree,      ///< how statements differ; like kLost
  kBroadcast,     ///< bytes of rank 0's end for all others
};
struct Frame {
  FrameKind kind = FrameKind::kBeat;
  std::string payload;
};

/// A non-blocking socket that carries frames.
class Connection {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kMostFromStrangers = 64 << 10;
  static constexpr std::size_t kMost = std::size_t{1} << 30;

  explicit Connection(File socket) : socket_(std::move(socket)) {}

  [[nodiscard]] const File& socket() const { return socket_; }
  /// Refuses larger frames from now on.
  void set_limit(std::size_t bytes) { limit_ = bytes; }

  /// Sends as much as possible now; flush() sends the rest.
  void send(FrameKind kind, std::string_view payload = {});
  void flush();
  [[nodiscard]] bool has_unsent() const { return sent_ < out_.size(); }

  /// Reads what has arrived; returns false if the other end has closed. Earlier frames remain
  /// available.
  bool receive();
  [[nodiscard]] std::optional<Frame> next();
  /// Whether the next bytes are not a frame.
  [[nodiscard]] bool damaged() const;

  /// When something last arrived.
  [[nodiscard]] Clock::time_point heard() const { return heard_; }
  void set_heard(Clock::time_point when) { heard_ = when; }

 private:
  File socket_;
  std::size_t limit_ = kMostFromStrangers;
  std::string in_, out_;
  std::size_t sent_ = 0;  ///< bytes of out_ already sent
  Clock::time_point heard_ = Clock::now();
};

}  // namespace braid
