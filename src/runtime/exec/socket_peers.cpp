#include "runtime/exec/socket_peers.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <list>
#include <thread>

#include "ir/fail.h"
#include "lowering/plan/program.h"
#include "runtime/bytes.h"
#include "runtime/exec/rendezvous.h"
#include "runtime/exec/socket.h"

namespace braid {
namespace {

using Clock = Connection::Clock;
using std::chrono::milliseconds;

constexpr std::uint32_t kFormat = 2;
constexpr std::size_t kMostGuests = 64;  // connections that have not said who they are
constexpr milliseconds kTick{20};
constexpr milliseconds kLateComers{1000};  // how long late arrivals are told of a loss

/// The payload of kHello.
struct Hello {
  int world = 0;
  std::string job;
  std::vector<int> ranks;
};

std::string encode_hello(const SocketOptions& options) {
  ByteWriter out;
  out.value<std::int32_t>(options.world);
  out.string(options.job);
  out.value<std::uint64_t>(options.ranks.size());
  for (const int rank : options.ranks) out.value<std::int32_t>(rank);
  return out.take();
}

std::optional<Hello> decode_hello(std::string_view payload) {
  ByteReader in(payload);
  Hello hello;
  hello.world = in.value<std::int32_t>();
  hello.job = in.string();
  const auto ranks = std::min<std::uint64_t>(in.value<std::uint64_t>(), payload.size());
  for (std::uint64_t r = 0; r < ranks; ++r) hello.ranks.push_back(in.value<std::int32_t>());
  if (!in.done() || hello.ranks.empty()) return {};
  return hello;
}

std::string format_bytes() {
  ByteWriter out;
  out.value(kFormat);
  return out.take();
}

milliseconds in_ms(double seconds) {
  return milliseconds(static_cast<std::int64_t>(seconds * 1e3));
}

/// The address of rank 0 if another program has the port: a name, and no other port, which the next
/// job's launcher might use.
SocketAddress beside_port(const SocketOptions& options) {
  return local_address(
      fmt::format("braid {} {} {}", ::geteuid(), options.port, hash_of(options.job)));
}

File listen_for(const SocketOptions& options) {
  for (const SocketAddress& address : resolve(options.address)) {
    File socket = listen_at(address.with_port(options.port));
    if (socket.is_open()) return socket;
    if (errno != EADDRINUSE && errno != EACCES) continue;
    socket = listen_at(beside_port(options));
    if (socket.is_open()) return socket;
  }
  throw_environment(kRendezvous, "rank 0 cannot listen at {}, port {}: {}", options.address,
                    options.port, std::strerror(errno));
}

/// Rank 0's side, until all have arrived.
class Gathering {
 public:
  explicit Gathering(const SocketOptions& options)
      : options_(options),
        listener_(listen_for(options)),
        deadline_(Clock::now() + in_ms(options.timeout_s)),
        here_(static_cast<std::size_t>(options.world)) {
    for (const int rank : options.ranks) here_[rank] = true;
  }

  std::vector<Peer> run() {
    while (missing() < options_.world) {
      if (Clock::now() >= deadline_ && !loss_.text.empty()) fail(loss_);
      if (Clock::now() >= deadline_) {
        fail({ErrorCode::kTimeout,
              fmt::format("rank {} did not come within {:g} s", missing(), options_.timeout_s)});
      }
      wait();
      while (greet()) {
      }
      listen_to_all();
    }
    if (!loss_.text.empty()) fail(loss_);
    std::vector<Peer> peers;
    for (Peer& guest : guests_) {
      if (guest.ranks.empty()) continue;
      guest.connection.send(FrameKind::kWelcome);
      peers.push_back(std::move(guest));
    }
    std::ranges::sort(peers, [](const Peer& a, const Peer& b) { return a.ranks < b.ranks; });
    return peers;
  }

 private:
  [[nodiscard]] int missing() const {
    return static_cast<int>(std::ranges::find(here_, false) - here_.begin());
  }

  /// Waits until something arrives, or a heartbeat is due.
  void wait() {
    std::vector<pollfd> files{{listener_.get(), POLLIN, 0}};
    for (const Peer& guest : guests_) {
      files.push_back({guest.connection.socket().get(), POLLIN, 0});
    }
    (void)::poll(files.data(), files.size(), static_cast<int>(kTick.count()));
    if (Clock::now() < next_beat_) return;
    next_beat_ = Clock::now() + in_ms(options_.timeout_s / 8);
    for (Peer& guest : guests_) {
      if (!guest.ranks.empty()) guest.connection.send(FrameKind::kBeat);
    }
  }

  bool greet() {
    File socket = accept_from(listener_);
    if (!socket.is_open()) return false;
    if (guests_.size() >= kMostGuests + static_cast<std::size_t>(options_.world)) {
      guests_.erase(
          std::ranges::find_if(guests_, [](const Peer& guest) { return guest.ranks.empty(); }));
    }
    guests_.push_back({Connection(std::move(socket)), {}, false});
    guests_.back().connection.send(FrameKind::kGreeting, format_bytes());
    return true;
  }

  void listen_to_all() {
    for (auto guest = guests_.begin(); guest != guests_.end();) {
      const bool open = guest->connection.receive();
      bool stays = true;
      if (guest->ranks.empty()) {
        if (const std::optional<Frame> frame = guest->connection.next())
          stays = meet(*guest, *frame);
        stays = stays && !guest->connection.damaged();
      }
      if (open && stays) {
        ++guest;
        continue;
      }
      if (!guest->ranks.empty()) {
        lose({ErrorCode::kEnvironment, fmt::format("rank {} is gone", guest->ranks.front())});
      }
      guest = guests_.erase(guest);
    }
  }

  /// Whether the connection is kept.
  bool meet(Peer& guest, const Frame& frame) {
    const std::optional<Hello> hello =
        frame.kind == FrameKind::kHello ? decode_hello(frame.payload) : std::nullopt;
    if (!hello) return false;
    if (hello->job != options_.job) {
      guest.connection.send(FrameKind::kForeign);
      return false;
    }
    const auto refuse = [&](const std::string& why) {
      guest.connection.send(FrameKind::kRefused, why);
      return false;
    };
    if (hello->world != options_.world) {
      const std::string text = fmt::format("rank {} is one of {} ranks, rank 0 one of {}",
                                           hello->ranks[0], hello->world, options_.world);
      (void)refuse(text);
      fail({ErrorCode::kInvalidArgument, text});
    }
    for (const int rank : hello->ranks) {
      if (rank >= 0 && rank < options_.world && !here_[rank]) continue;
      return refuse(fmt::format("there is a rank {} already; expected each once", rank));
    }
    for (const int rank : hello->ranks) here_[rank] = true;
    guest.ranks = hello->ranks;
    guest.connection.send(FrameKind::kBeat);
    if (!loss_.text.empty()) guest.connection.send(FrameKind::kLost, encode(loss_));
    return true;
  }

  /// Tells a loss to all who are here, and to those who arrive within a moment.
  void lose(const Loss& loss) {
    if (!loss_.text.empty()) return;
    loss_ = loss;
    deadline_ = std::min(deadline_, Clock::now() + kLateComers);
    tell(loss);
  }

  void tell(const Loss& loss) {
    for (Peer& guest : guests_) {
      if (!guest.ranks.empty()) guest.connection.send(FrameKind::kLost, encode(loss));
    }
  }

  [[noreturn]] void fail(const Loss& loss) {
    tell(loss);
    for (const Peer& guest : guests_) {
      if (!guest.ranks.empty()) linger(guest.connection.socket());
    }
    throw_loss(loss);
  }

  const SocketOptions& options_;
  File listener_;
  Clock::time_point deadline_;
  std::vector<bool> here_;  ///< by rank
  std::list<Peer> guests_;
  Loss loss_;  ///< no loss while its text is empty
  Clock::time_point next_beat_ = Clock::now();
};

/// The other ranks' side: searches for rank 0, then waits for all.
class Search {
 public:
  explicit Search(const SocketOptions& options)
      : options_(options),
        addresses_{beside_port(options)},
        deadline_(Clock::now() + in_ms(options.timeout_s)) {
    for (const SocketAddress& address : resolve(options.address)) {
      addresses_.push_back(address.with_port(options.port));
    }
  }

  Peer run() {
    for (milliseconds patience = milliseconds(250);;
         patience = std::min(2 * patience, milliseconds(2000))) {
      for (const SocketAddress& address : addresses_) {
        std::optional<Peer> rank_0 = ask(address, patience);
        if (rank_0) return *std::move(rank_0);
      }
      std::this_thread::sleep_for(kTick);
    }
  }

 private:
  /// Nothing if nobody of this job listens there.
  std::optional<Peer> ask(const SocketAddress& address, milliseconds patience) {
    if (Clock::now() >= deadline_) {
      throw Error(ErrorCode::kTimeout, kRendezvous,
                  fmt::format("rank 0 did not come to {}, port {}, within {:g} s", options_.address,
                              options_.port, options_.timeout_s));
    }
    const auto left =
        std::chrono::duration_cast<milliseconds>(deadline_ - Clock::now()) + milliseconds(1);
    patience = std::min(patience, left);
    File socket = connect_to(address, static_cast<int>(patience.count()));
    if (!socket.is_open()) return {};
    Peer rank_0{Connection(std::move(socket)), {0}, false};
    const std::optional<Frame> greeting = read(rank_0.connection, patience);
    if (!greeting || greeting->kind != FrameKind::kGreeting) return {};
    if (greeting->payload != format_bytes()) {
      throw_invalid(kRendezvous,
                    "rank 0 speaks another format; expected the same version of braid on "
                    "all ranks");
    }
    rank_0.connection.send(FrameKind::kHello, encode_hello(options_));
    if (!is_welcome(rank_0.connection)) return {};
    return rank_0;
  }

  bool is_welcome(Connection& connection) const {
    for (bool expected = false;; expected = true) {
      const std::optional<Frame> frame = read(connection, in_ms(options_.timeout_s));
      if (!frame && !expected) return false;  // belongs to another job, which may be complete
      if (!frame) {
        const bool silent = Clock::now() - connection.heard() >= in_ms(options_.timeout_s);
        throw_environment(kRendezvous, silent ? fmt::format("rank 0 has been silent for {:g} s",
                                                            options_.timeout_s)
                                              : "rank 0 is gone");
      }
      if (frame->kind == FrameKind::kWelcome) return true;
      if (frame->kind == FrameKind::kForeign) return false;
      if (frame->kind == FrameKind::kRefused) throw_invalid(kRendezvous, frame->payload);
      if (frame->kind != FrameKind::kLost) continue;
      throw_loss(decode_loss(frame->payload));
    }
  }

  /// The next frame; nothing if none arrives in time, or at all.
  static std::optional<Frame> read(Connection& connection, milliseconds patience) {
    const auto until = Clock::now() + patience;
    for (;;) {
      if (std::optional<Frame> frame = connection.next()) return frame;
      const auto left = std::chrono::duration_cast<milliseconds>(until - Clock::now());
      if (connection.damaged() || left.count() <= 0) return {};
      pollfd ready{connection.socket().get(), POLLIN, 0};
      (void)::poll(&ready, 1, static_cast<int>(left.count()));
      if (ready.revents == 0 || connection.receive()) continue;
      return connection.next();
    }
  }

  const SocketOptions& options_;
  std::vector<SocketAddress> addresses_;
  Clock::time_point deadline_;
};

}  // namespace

std::vector<Peer> await_others(const SocketOptions& options) { return Gathering(options).run(); }

std::vector<Peer> join_rank_0(const SocketOptions& options) {
  std::vector<Peer> peers;
  peers.push_back(Search(options).run());
  return peers;
}

void throw_loss(const Loss& loss) { throw Error(loss.code, kRendezvous, loss.text); }

std::string encode(const Loss& loss) {
  ByteWriter out;
  out.value(static_cast<std::int32_t>(loss.code));
  out.string(loss.text);
  return out.take();
}

Loss decode_loss(std::string_view payload) {
  ByteReader in(payload);
  const auto code = in.value<std::int32_t>();
  Loss loss{ErrorCode::kEnvironment, std::string(in.string())};
  for (const ErrorCode known : {ErrorCode::kTimeout, ErrorCode::kInvalidArgument}) {
    if (code == static_cast<std::int32_t>(known)) loss.code = known;
  }
  return loss;
}

}  // namespace braid
