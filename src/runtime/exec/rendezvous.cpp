#include "runtime/exec/rendezvous.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "braid/error.h"
#include "ir/fail.h"
#include "ir/mapped.h"
#include "ir/non_copyable.h"
#include "runtime/bytes.h"
#include "runtime/exec/statements.h"

namespace braid {
namespace {

constexpr std::uint32_t kCardFormat = 4;

/// State shared by the ends of one process.
struct Hall {
  std::vector<std::vector<int>> parties;
  int world = 0;
  std::chrono::duration<double> timeout{};
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<bool> here;            ///< parties that have reached the current round
  std::vector<std::string> bytes;    ///< bytes of the current round, by rank
  std::uint64_t round = 0;           ///< number of finished rounds
  std::vector<std::string> results;  ///< of the last round; the next one begins only when all have
                                     ///< read them: see `readers`
  std::size_t readers = 0;
  std::vector<std::deque<std::string>> broadcasts;  ///< that a party has not taken yet
  std::string broken;                               ///< why no round will complete any more
  Statements statements;
  std::string disagreement;
};

class HallEnd final : public Rendezvous, NonCopyable {
 public:
  HallEnd(std::shared_ptr<Hall> hall, std::size_t party) : hall_(std::move(hall)), party_(party) {}
  ~HallEnd() override {
    const std::lock_guard lock(hall_->mutex);
    break_up(fmt::format("rank {} is gone", ranks()[0]));
  }

  [[nodiscard]] int world() const override { return hall_->world; }
  [[nodiscard]] const std::vector<int>& ranks() const override { return hall_->parties[party_]; }

  [[nodiscard]] std::string lost() const override {
    const std::lock_guard lock(hall_->mutex);
    return hall_->broken;
  }

  void state(const std::string& key, const std::vector<int>& ranks,
             const std::string& text) override {
    const std::lock_guard lock(hall_->mutex);
    const std::vector<int> by = common_ranks(ranks, this->ranks());
    const std::string difference = hall_->statements.add(key, by, ranks.size(), text);
    if (difference.empty() || !hall_->broken.empty()) return;
    hall_->disagreement = difference;
    break_up(difference);
  }

  [[nodiscard]] std::string disagreement() const override {
    const std::lock_guard lock(hall_->mutex);
    return hall_->disagreement;
  }

  [[nodiscard]] std::string broadcast(std::string bytes) override {
    std::unique_lock lock(hall_->mutex);
    const bool gives = ranks()[0] == 0;
    std::deque<std::string>& mine = hall_->broadcasts[party_];
    hall_->changed.wait(lock, [&] { return gives || !mine.empty() || !hall_->broken.empty(); });
    if (mine.empty() && !hall_->broken.empty()) {
      throw Error(ErrorCode::kEnvironment, kRendezvous, hall_->broken);
    }
    if (!gives) {
      bytes = std::move(mine.front());
      mine.pop_front();
      return bytes;
    }
    for (std::size_t p = 0; p < hall_->parties.size(); ++p) {
      if (p != party_) hall_->broadcasts[p].push_back(bytes);
    }
    hall_->changed.notify_all();
    return bytes;
  }

  [[nodiscard]] std::vector<std::string> all_gather(std::vector<std::string> mine) override {
    if (mine.size() != ranks().size()) {
      throw_internal(kRendezvous, "bytes of {} ranks; expected {}", mine.size(), ranks().size());
    }
    std::unique_lock lock(hall_->mutex);
    Hall& hall = *hall_;
    const auto deadline = std::chrono::steady_clock::now() + hall.timeout;
    const auto wait = [&](auto ready) {
      if (hall.changed.wait_until(lock, deadline, ready)) return true;
      break_up(fmt::format("rank {} did not come within {:g} s", missing(), hall.timeout.count()));
      return false;
    };
    wait([&] { return hall.readers == 0 || !hall.broken.empty(); });
    if (!hall.broken.empty()) throw Error(ErrorCode::kEnvironment, kRendezvous, hall.broken);
    for (std::size_t i = 0; i < mine.size(); ++i) {
      hall.bytes[ranks()[i]] = std::move(mine[i]);
    }
    hall.here[party_] = true;
    const std::uint64_t round = hall.round;
    if (std::ranges::all_of(hall.here, [](bool came) { return came; })) {
      hall.results = std::exchange(hall.bytes, std::vector<std::string>(hall.bytes.size()));
      hall.here.assign(hall.here.size(), false);
      hall.readers = hall.parties.size();
      ++hall.round;
      hall.changed.notify_all();
    }
    const bool came = wait([&] { return hall.round != round || !hall.broken.empty(); });
    if (hall.round == round) {
      throw Error(came ? ErrorCode::kEnvironment : ErrorCode::kTimeout, kRendezvous, hall.broken);
    }
    std::vector<std::string> results = hall.results;
    if (--hall.readers == 0) hall.changed.notify_all();
    return results;
  }

 private:
  /// The first rank that has not arrived.
  [[nodiscard]] int missing() const {
    for (std::size_t p = 0; p < hall_->parties.size(); ++p) {
      if (!hall_->here[p] && p != party_) return hall_->parties[p][0];
    }
    return -1;
  }
  void break_up(std::string why) const {
    if (hall_->broken.empty()) hall_->broken = std::move(why);
    hall_->changed.notify_all();
  }

  std::shared_ptr<Hall> hall_;
  std::size_t party_;
};

/// An end over the caller's own all-gather.
class CallbackEnd final : public Rendezvous {
 public:
  CallbackEnd(int rank, int world, AllGather all_gather)
      : ranks_{rank}, world_(world), all_gather_(std::move(all_gather)) {}

  [[nodiscard]] int world() const override { return world_; }
  [[nodiscard]] const std::vector<int>& ranks() const override { return ranks_; }
  [[nodiscard]] std::vector<std::string> all_gather(std::vector<std::string> mine) override {
    if (mine.size() != 1) throw_internal(kRendezvous, "bytes of {} ranks", mine.size());
    std::vector<std::string> all = all_gather_(mine[0]);
    if (all.size() == static_cast<std::size_t>(world_)) return all;
    throw_invalid(kRendezvous, "the caller's all-gather brings the bytes of {} ranks; expected {}",
                  all.size(), world_);
  }

 private:
  std::vector<int> ranks_;
  int world_;
  AllGather all_gather_;
};

void write(ByteWriter& out, const std::vector<std::string>& texts) {
  out.value<std::uint64_t>(texts.size());
  for (const std::string& text : texts) out.string(text);
}

std::vector<std::string> read_texts(ByteReader& in, std::size_t bytes) {
  // Each takes at least eight bytes, which bounds a damaged count.
  const auto count = std::min<std::uint64_t>(in.value<std::uint64_t>(), bytes);
  std::vector<std::string> texts;
  for (std::uint64_t i = 0; i < count; ++i) texts.emplace_back(in.string());
  return texts;
}

std::string encode(const RankCard& card) {
  ByteWriter out;
  out.value(kCardFormat);
  out.string(card.failure);
  out.string(card.hash);
  write(out, card.arenas);
  out.string(card.communicators);
  out.string(card.memory);
  write(out, card.units);
  return out.take();
}

RankCard decode(std::string_view bytes, std::size_t rank) {
  ByteReader in(bytes);
  RankCard card;
  const auto format = in.value<std::uint32_t>();
  card.failure = in.string();
  card.hash = in.string();
  card.arenas = read_texts(in, bytes.size());
  card.communicators = in.string();
  card.memory = in.string();
  card.units = read_texts(in, bytes.size());
  if (format != kCardFormat || !in.done()) {
    throw_invalid(kRendezvous,
                  "rank {} speaks another format; expected the same version of braid on all ranks",
                  rank);
  }
  return card;
}

void expect_alike(const RankCard& first, const RankCard& other, std::size_t rank) {
  if (other.hash == first.hash && other.memory == first.memory) return;
  if (first.memory.empty() && other.memory.empty()) {
    throw_invalid(kRendezvous,
                  "rank 0 has the plan {}, rank {} has {}; expected one plan on all ranks",
                  first.hash, rank, other.hash);
  }
  const auto what = [](const RankCard& card) {
    return card.memory.empty() ? "a program" : card.memory;
  };
  throw_invalid(kRendezvous, "rank {} asks for {}; expected what rank 0 asks for, {}", rank,
                what(other), what(first));
}

}  // namespace

std::string Rendezvous::broadcast(std::string bytes) {
  std::vector<std::string> mine(ranks().size());
  mine[0] = std::move(bytes);
  return all_gather(std::move(mine))[0];
}

std::vector<std::shared_ptr<Rendezvous>> meet_in_process(
    const std::vector<std::vector<int>>& parties, double timeout_s) {
  auto hall = std::make_shared<Hall>();
  hall->parties = parties;
  hall->timeout = std::chrono::duration<double>(timeout_s);
  std::vector<int> all;
  for (std::vector<int>& party : hall->parties) {
    if (party.empty())
      throw_invalid(kRendezvous, "found an end without ranks; expected one at least");
    std::ranges::sort(party);
    all.insert(all.end(), party.begin(), party.end());
  }
  std::ranges::sort(all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i] == static_cast<int>(i)) continue;
    throw_invalid(kRendezvous, "found rank {}; expected {}: each rank once", all[i], i);
  }
  hall->world = static_cast<int>(all.size());
  hall->bytes.resize(all.size());
  hall->here.resize(parties.size());
  hall->broadcasts.resize(parties.size());
  std::vector<std::shared_ptr<Rendezvous>> ends;
  for (std::size_t p = 0; p < parties.size(); ++p) {
    ends.push_back(std::make_shared<HallEnd>(hall, p));
  }
  return ends;
}

std::shared_ptr<Rendezvous> meet_by_callback(int rank, int world, AllGather all_gather) {
  if (rank < 0 || rank >= world) {
    throw_invalid(kRendezvous, "found rank {} of {}; expected 0 to {}", rank, world, world - 1);
  }
  if (!all_gather)
    throw_invalid(kRendezvous, "the caller's all-gather is empty; expected a function");
  return std::make_shared<CallbackEnd>(rank, world, std::move(all_gather));
}

std::vector<RankCard> exchange_cards(Rendezvous& rendezvous, const std::vector<RankCard>& mine) {
  const std::vector<std::string> all = rendezvous.all_gather(mapped(mine, encode));
  std::vector<RankCard> cards;
  for (std::size_t rank = 0; rank < all.size(); ++rank) cards.push_back(decode(all[rank], rank));
  for (std::size_t rank = 0; rank < cards.size(); ++rank) {
    if (cards[rank].failure.empty()) continue;
    throw Error(ErrorCode::kEnvironment, kRendezvous,
                fmt::format("rank {} cannot take part: {}", rank, cards[rank].failure));
  }
  for (std::size_t rank = 1; rank < cards.size(); ++rank) {
    expect_alike(cards[0], cards[rank], rank);
  }
  return cards;
}

}  // namespace braid
