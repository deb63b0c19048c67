#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "braid/error.h"
#include "ir/fail.h"
#include "ir/non_copyable.h"
#include "runtime/bytes.h"
#include "runtime/exec/rendezvous.h"
#include "runtime/exec/socket.h"
#include "runtime/exec/socket_peers.h"
#include "runtime/exec/statements.h"

// A star around rank 0's end, which collects the bytes of a round and sends them to all. In each
// end a thread handles what arrives, sends heartbeats and detects silent ends.

namespace braid {
namespace {

using Clock = Connection::Clock;
using std::chrono::milliseconds;

std::string encode(std::uint64_t round, const std::vector<std::string>& bytes) {
  ByteWriter out;
  out.value(round);
  for (const std::string& each : bytes) out.string(each);
  return out.take();
}

/// Nothing if it is of another round, or of another number of ranks.
std::optional<std::vector<std::string>> decode(std::string_view payload, std::uint64_t round,
                                               std::size_t ranks) {
  ByteReader in(payload);
  if (in.value<std::uint64_t>() != round) return {};
  std::vector<std::string> bytes;
  for (std::size_t r = 0; r < ranks; ++r) bytes.emplace_back(in.string());
  if (!in.done()) return {};
  return bytes;
}

/// The payload of FrameKind::kState.
struct Statement {
  std::string key, text;
  std::vector<int> ranks;
};

std::string encode(const Statement& statement) {
  ByteWriter out;
  out.string(statement.key);
  out.string(statement.text);
  for (const int rank : statement.ranks) out.value<std::int32_t>(rank);
  return out.take();
}

Statement decode_statement(std::string_view payload) {
  ByteReader in(payload);
  Statement statement{std::string(in.string()), std::string(in.string()), {}};
  while (in.has_more()) statement.ranks.push_back(in.value<std::int32_t>());
  return statement;
}

class SocketEnd final : public Rendezvous, NonCopyable {
 public:
  SocketEnd(SocketOptions options, std::vector<Peer> peers)
      : options_(std::move(options)),
        is_hub_(options_.ranks[0] == 0),
        timeout_(static_cast<std::int64_t>(options_.timeout_s * 1e3)),
        beat_(std::clamp(timeout_ / 8, milliseconds(5), milliseconds(1000))),
        peers_(std::move(peers)),
        came_(static_cast<std::size_t>(options_.world)),
        bytes_(came_.size()),
        wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    if (!wake_.is_open()) throw_environment(kRendezvous, "no descriptor is left for its thread");
    for (Peer& peer : peers_) {
      peer.connection.set_limit(Connection::kMost);
      peer.connection.set_heard(Clock::now());
    }
    if (!peers_.empty()) thread_ = std::thread([this] { serve(); });
  }

  ~SocketEnd() override {
    if (is_fork()) {  // a fork does not have the thread
      if (thread_.joinable()) thread_.detach();
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake();
    if (thread_.joinable()) thread_.join();
    for (const Peer& peer : peers_) linger(peer.connection.socket());
  }

  [[nodiscard]] int world() const override { return options_.world; }
  [[nodiscard]] const std::vector<int>& ranks() const override { return options_.ranks; }

  [[nodiscard]] std::string lost() const override {
    const std::lock_guard lock(mutex_);
    return loss_.text;
  }

  void state(const std::string& key, const std::vector<int>& ranks,
             const std::string& text) override {
    const std::lock_guard lock(mutex_);
    const Statement statement{key, text, ranks};
    if (is_hub_) {
      compare(options_.ranks, statement);
    } else {
      peers_[0].connection.send(FrameKind::kState, encode(statement));
    }
    wake();
  }

  [[nodiscard]] std::string disagreement() const override {
    const std::lock_guard lock(mutex_);
    return disagreement_;
  }

  [[nodiscard]] std::string broadcast(std::string bytes) override {
    refuse_fork();
    std::unique_lock lock(mutex_);
    if (!is_hub_) {
      changed_.wait(lock, [&] { return !broadcasts_.empty() || !loss_.text.empty(); });
      if (broadcasts_.empty()) throw_loss({ErrorCode::kEnvironment, loss_.text});
      bytes = std::move(broadcasts_.front());
      broadcasts_.pop_front();
      return bytes;
    }
    if (!loss_.text.empty()) throw_loss({ErrorCode::kEnvironment, loss_.text});
    check_size(bytes, "one broadcast");
    for (Peer& peer : peers_) peer.connection.send(FrameKind::kBroadcast, bytes);
    wake();
    return bytes;
  }

  [[nodiscard]] std::vector<std::string> all_gather(std::vector<std::string> mine) override {
    if (mine.size() != ranks().size()) {
      throw_internal(kRendezvous, "bytes of {} ranks; expected {}", mine.size(), ranks().size());
    }
    refuse_fork();
    const std::lock_guard one_round(rounds_);
    std::unique_lock lock(mutex_);
    if (!loss_.text.empty()) throw_loss({ErrorCode::kEnvironment, loss_.text});
    const std::uint64_t round = round_;
    if (is_hub_) {
      take(ranks(), std::move(mine));
    } else {
      const std::string payload = encode(round, mine);
      check_size(payload, "one end");
      peers_[0].connection.send(FrameKind::kGather, payload);
    }
    wake();
    changed_.wait(lock, [&] { return round_ != round || !loss_.text.empty(); });
    if (round_ == round) throw_loss(loss_);
    return std::move(results_);
  }

 private:
  [[nodiscard]] bool is_fork() const { return ::getpid() != process_; }
  void refuse_fork() const {
    if (is_fork()) throw_invalid(kRendezvous, "is of another process, of which this one is a fork");
  }
  static void check_size(const std::string& payload, const char* what) {
    if (payload.size() <= Connection::kMost) return;
    throw_invalid(kRendezvous, "{} bytes of {}; expected at most {}", payload.size(), what,
                  Connection::kMost);
  }

  void wake() const {
    const std::uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
  }

  /// At the hub: bytes of an end. The last one completes the round.
  void take(const std::vector<int>& ranks, std::vector<std::string> bytes) {
    if (std::ranges::find(came_, true) == came_.end()) first_came_ = Clock::now();
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      came_[ranks[r]] = true;
      bytes_[ranks[r]] = std::move(bytes[r]);
    }
    if (std::ranges::find(came_, false) != came_.end()) return;
    const std::string payload = encode(round_, bytes_);
    if (payload.size() > Connection::kMost) {
      return lose(
          {ErrorCode::kInvalidArgument, fmt::format("{} bytes of all ranks; expected at most {}",
                                                    payload.size(), Connection::kMost)});
    }
    for (Peer& peer : peers_) peer.connection.send(FrameKind::kResult, payload);
    came_.assign(came_.size(), false);
    end_round(std::exchange(bytes_, std::vector<std::string>(bytes_.size())));
  }

  void end_round(std::vector<std::string> results) {
    results_ = std::move(results);
    ++round_;
    changed_.notify_all();
  }

  /// At the hub: a statement of the end with these ranks.
  void compare(const std::vector<int>& own, const Statement& statement) {
    const std::vector<int> by = common_ranks(statement.ranks, own);
    disagree(statements_.add(statement.key, by, statement.ranks.size(), statement.text));
  }

  void disagree(const std::string& how) {
    if (how.empty() || !loss_.text.empty()) return;
    disagreement_ = how;
    for (Peer& peer : peers_) {
      if (is_hub_) peer.connection.send(FrameKind::kDisagree, how);
    }
    lose({ErrorCode::kInvalidArgument, how});
  }

  /// Only the first loss counts; later ones follow from it.
  void lose(const Loss& loss) {
    if (!loss_.text.empty()) return;
    loss_ = loss;
    changed_.notify_all();
    if (!is_hub_) return;
    for (Peer& peer : peers_) peer.connection.send(FrameKind::kLost, braid::encode(loss));
  }
  void lose(const Peer& peer, const std::string& how) {
    lose({ErrorCode::kEnvironment, fmt::format("rank {} {}", peer.ranks[0], how)});
  }

  void serve() {
    std::vector<pollfd> files;
    std::unique_lock lock(mutex_);
    while (!stop_) {
      look_at_the_clock();
      files.assign(1, {wake_.get(), POLLIN, 0});
      for (const Peer& peer : peers_) {
        const short events = peer.connection.has_unsent() ? POLLIN | POLLOUT : POLLIN;
        files.push_back({peer.gone ? -1 : peer.connection.socket().get(), events, 0});
      }
      lock.unlock();
      (void)::poll(files.data(), files.size(), static_cast<int>(beat_.count()));
      std::uint64_t count = 0;
      (void)!::read(wake_.get(), &count, sizeof count);
      lock.lock();
      for (std::size_t p = 0; p < peers_.size(); ++p) {
        if (files[p + 1].revents != 0) serve(peers_[p]);
      }
    }
    send_the_rest();
  }

  void serve(Peer& peer) {
    peer.connection.flush();
    const bool open = peer.connection.receive();
    while (const std::optional<Frame> frame = peer.connection.next()) hear(peer, *frame);
    peer.gone = !open || peer.connection.damaged();
    if (peer.gone) lose(peer, open ? "sends what is no message" : "is gone");
  }

  void hear(const Peer& peer, const Frame& frame) {
    if (frame.kind == FrameKind::kLost && !is_hub_) return lose(decode_loss(frame.payload));
    if (frame.kind == FrameKind::kDisagree && !is_hub_) return disagree(frame.payload);
    if (frame.kind == FrameKind::kState && is_hub_) {
      return compare(peer.ranks, decode_statement(frame.payload));
    }
    if (frame.kind == FrameKind::kBroadcast && !is_hub_) {
      broadcasts_.push_back(frame.payload);
      changed_.notify_all();
      return;
    }
    const bool gathers = frame.kind == FrameKind::kGather && is_hub_;
    if (!gathers && (frame.kind != FrameKind::kResult || is_hub_)) return;
    auto bytes = decode(frame.payload, round_, gathers ? peer.ranks.size() : came_.size());
    if (!bytes) return lose(peer, "sends what is not of this round");
    if (gathers) {
      take(peer.ranks, *std::move(bytes));
    } else {
      end_round(*std::move(bytes));
    }
  }

  /// Sends a heartbeat, and looks for ends that have been silent too long.
  void look_at_the_clock() {
    const Clock::time_point now = Clock::now();
    // While this process was stopped (maybe together with the others) it could hear nobody.
    const auto gap = now - std::exchange(last_look_, now);
    const bool slept = gap > beat_ + timeout_ / 4;
    const bool beats = now >= next_beat_;
    if (beats) next_beat_ = now + beat_;
    for (Peer& peer : peers_) {
      if (peer.gone) continue;
      if (beats) peer.connection.send(FrameKind::kBeat);
      if (slept) peer.connection.set_heard(peer.connection.heard() + gap);
      if (now - peer.connection.heard() <= timeout_) continue;
      lose(peer, fmt::format("has been silent for {:g} s", options_.timeout_s));
    }
    const auto missing = std::ranges::find(came_, false) - came_.begin();
    const bool waits = std::ranges::find(came_, true) != came_.end();
    if (!waits || now - first_came_ <= std::chrono::duration<double>(options_.patience_s)) return;
    lose({ErrorCode::kTimeout,
          fmt::format("rank {} did not come within {:g} s", missing, options_.patience_s)});
  }

  /// Sends what others still wait for when this end goes away.
  void send_the_rest() {
    const auto until = Clock::now() + std::chrono::seconds(1);
    for (Peer& peer : peers_) {
      while (!peer.gone && peer.connection.has_unsent() && Clock::now() < until) {
        pollfd file{peer.connection.socket().get(), POLLOUT, 0};
        (void)::poll(&file, 1, static_cast<int>(beat_.count()));
        peer.connection.flush();
      }
    }
  }

  const SocketOptions options_;
  const pid_t process_ = ::getpid();
  const bool is_hub_;
  const milliseconds timeout_;
  const milliseconds beat_;  ///< between heartbeats
  std::mutex rounds_;        ///< held during a whole round
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Peer> peers_;             ///< all others, or only rank 0's
  std::uint64_t round_ = 0;             ///< number of finished rounds
  std::vector<bool> came_;              ///< at the hub, by rank: arrived in the current round
  std::vector<std::string> bytes_;      ///< bytes of the current round
  Clock::time_point first_came_;        ///< first arrival of that round
  std::vector<std::string> results_;    ///< results of the last round
  std::deque<std::string> broadcasts_;  ///< of rank 0's end, not taken yet
  Loss loss_;                           ///< no loss while its text is empty
  Statements statements_;               ///< at the hub
  std::string disagreement_;
  Clock::time_point last_look_ = Clock::now();
  Clock::time_point next_beat_ = Clock::now();
  bool stop_ = false;
  File wake_;  ///< an eventfd
  std::thread thread_;
};

void check(const SocketOptions& options) {
  constexpr double kLongest = 1e7;
  const auto refuse = [](const std::string& text) { throw_invalid(kRendezvous, text); };
  if (options.ranks.empty()) refuse("found an end without ranks; expected one at least");
  for (std::size_t r = 0; r < options.ranks.size(); ++r) {
    const int rank = options.ranks[r];
    const bool twice = r > 0 && rank == options.ranks[r - 1];
    if (rank >= 0 && rank < options.world && !twice) continue;
    refuse(fmt::format("found rank {} of {}; expected 0 to {}, each once", rank, options.world,
                       options.world - 1));
  }
  if (options.port < 1 || options.port > 65535) {
    refuse(fmt::format("found port {}; expected 1 to 65535", options.port));
  }
  for (const double seconds : {options.timeout_s, options.patience_s}) {
    if (seconds > 0 && seconds <= kLongest) continue;
    refuse(fmt::format("found {:g} s; expected more than 0 and at most 1e7 s", seconds));
  }
}

}  // namespace

std::shared_ptr<Rendezvous> meet_by_socket(const SocketOptions& options) {
  SocketOptions checked = options;
  std::ranges::sort(checked.ranks);
  check(checked);
  std::vector<Peer> peers;
  if (static_cast<int>(checked.ranks.size()) < checked.world) {
    peers = checked.ranks[0] == 0 ? await_others(checked) : join_rank_0(checked);
  }
  return std::make_shared<SocketEnd>(std::move(checked), std::move(peers));
}

}  // namespace braid
