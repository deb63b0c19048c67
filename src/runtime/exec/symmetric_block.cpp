#include "runtime/exec/symmetric_block.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "braid/error.h"
#include "ir/fail.h"
#include "ir/groups.h"
#include "runtime/bytes.h"
#include "runtime/exec/import_peer.h"
#include "runtime/name_memory.h"
#include "runtime/stream_home.h"

namespace braid {
namespace {

using protocol::Record;

constexpr std::size_t kBlockAlignment = 16;
constexpr int kMaxChannels = 1024;
/// The indices of a card's handles.
enum : std::size_t { kPads, kData, kOffset, kHandles };

std::size_t members_of(const std::string& place, const SymmetricBlock::Spec& spec, int world) {
  check_group(spec.name, spec.group);
  if (!spec.group.symmetric) {
    throw_invalid(place, "the group has \"symmetric\": false; expected true");
  }
  const auto& ranks = spec.group.ranks;
  const auto size = static_cast<std::size_t>(spec.group.size);
  const std::size_t covered = ranks.empty() && size == 1
                                  ? static_cast<std::size_t>(world)
                                  : std::max<std::size_t>(1, ranks.size()) * size;
  if (covered != static_cast<std::size_t>(world)) {
    throw_invalid(place, "the group covers {} ranks; expected the {} of the world", covered, world);
  }
  if (spec.options.channels < 1 || spec.options.channels > kMaxChannels) {
    throw_invalid(place, "{} channels; expected 1 to {}", spec.options.channels, kMaxChannels);
  }
  if (spec.bytes == 0) throw_invalid(place, "0 bytes; expected 1 or more");
  return size;
}

/// What all ranks must agree on.
std::string description(const SymmetricBlock::Spec& spec) {
  std::string text = fmt::format("symmetric memory '{}' of {} bytes, {} channels, over {} ranks",
                                 spec.name, spec.bytes, spec.options.channels, spec.group.size);
  for (const auto& instance : spec.group.ranks) {
    text += fmt::format(" [{}]", fmt::join(instance, ", "));
  }
  if (!spec.options.layout.empty()) text += fmt::format(", layout '{}'", spec.options.layout);
  return text;
}

}  // namespace

std::shared_ptr<SymmetricBlock> SymmetricBlock::make(World::Impl& world, Spec spec) {
  std::shared_ptr<SymmetricBlock> block;
  std::vector<RankCard> cards;
  world.take_part([&] {
    block = std::make_shared<SymmetricBlock>(world, std::move(spec));
    cards = block->cards();
  });
  const std::lock_guard lock(world.meeting);
  const std::vector<RankCard> all = exchange_cards(*world.rendezvous, cards);
  world.take_part([&] { block->connect(all); });
  for (RankCard& card : cards) card.arenas.clear();
  (void)exchange_cards(*world.rendezvous, cards);  // nobody frees anything before all have imported
                                                   // it
  return block;
}

SymmetricBlock::SymmetricBlock(World::Impl& world, Spec spec)
    : world_(world),
      spec_(std::move(spec)),
      members_(members_of(place(), spec_, world.rendezvous->world())),
      barrier_(members_),
      pair_(2) {
  const std::size_t ranks = world.ranks().size();
  if (!spec_.addresses.empty() && spec_.addresses.size() != ranks) {
    throw_invalid(place(), "{} addresses; expected one for each of {} ranks",
                  spec_.addresses.size(), ranks);
  }
  for (PadKernel* kernel : {&barrier_, &pair_}) kernel->load(*world.device, world.ranks());
  for (std::size_t local = 0; local < ranks; ++local) here_.push_back(open(local));
  reset();
}

SymmetricBlock::~SymmetricBlock() {
  if (on_loss_) world_.losses->remove(*on_loss_);
}

SymmetricBlock::Here SymmetricBlock::open(std::size_t local) {
  Device& device = *world_.device;
  Here here;
  here.rank = world_.ranks()[local];
  for (const auto& instance : group_instances(spec_.group, world_.rendezvous->world())) {
    const auto found = std::ranges::find(instance, here.rank);
    if (found == instance.end()) continue;
    here.members.assign(instance.begin(), instance.end());
    here.index = static_cast<std::uint32_t>(found - instance.begin());
  }
  const std::int64_t pairs = pair_number(spec_.options.channels, 0, 0);
  here.pads = device.allocate_shared(
      here.rank, static_cast<std::size_t>(protocol::kHeadBytes +
                                          spec_.options.channels * barrier_.flag_bytes() +
                                          pairs * pair_.flag_bytes()));
  name_memory(device, *here.pads, here.pads->size(), "pads of '" + spec_.name + "'");
  here.record = device.allocate_host(here.rank, sizeof(Record));
  name_memory(device, *here.record, sizeof(Record), "record");
  if (spec_.addresses.empty()) {
    here.data = device.allocate_shared(here.rank, spec_.bytes);
    name_memory(device, *here.data, spec_.bytes, place());
  } else {
    use_caller_memory(here, spec_.addresses[local]);
  }
  here.urgent = device.create_stream(here.rank);
  here.end_of_use = device.create_event(here.rank);
  return here;
}

void SymmetricBlock::use_caller_memory(Here& here, std::uint64_t address) const {
  if (address == 0 || address % kBlockAlignment != 0) {
    throw_invalid(place(), "rank {} has address {:#x}; expected a multiple of {} other than 0",
                  here.rank, address, kBlockAlignment);
  }
  here.data = world_.device->find_memory(here.rank, address);
  here.data_offset = address - here.data->address();
  const std::size_t left = here.data->size() - here.data_offset;
  if (left >= spec_.bytes) return;
  throw_invalid(place(), "rank {} has {} bytes at {:#x}; expected {}", here.rank, left, address,
                spec_.bytes);
}

std::vector<RankCard> SymmetricBlock::cards() const {
  std::vector<RankCard> cards;
  for (const Here& here : here_) {
    RankCard card;
    card.memory = description(spec_);
    if (!world_.all_here()) {
      ByteWriter offset;
      offset.value(here.data_offset);
      card.arenas = {here.pads->export_handle(), here.data->export_handle(), offset.take()};
    }
    cards.push_back(std::move(card));
  }
  return cards;
}

void SymmetricBlock::connect(const std::vector<RankCard>& cards) {
  for (Here& here : here_) {
    for (const int peer : here.members) find_peer(here, peer, cards[peer]);
  }
  if (world_.all_here()) return;
  on_loss_ = world_.losses->add([this] {
    for (const Here& here : here_) {
      here.urgent->write_value(here.pads->address() + protocol::kAbortOffset, 1);
    }
  });
}

void SymmetricBlock::find_peer(Here& here, int peer, const RankCard& card) {
  for (const Here& other : here_) {
    if (other.rank != peer) continue;
    here.peer_pads.push_back(other.pads->address());
    here.peer_data.push_back(other.data->address() + other.data_offset);
    return;
  }
  if (card.arenas.size() != kHandles) {
    throw_invalid(place(), "rank {} gives {} handles; expected {}", peer, card.arenas.size(),
                  std::size_t{kHandles});
  }
  ByteReader in(card.arenas[kOffset]);
  const auto offset = in.value<std::uint64_t>();
  for (const std::size_t which : {kPads, kData}) {
    imported_.push_back(import_peer(*world_.device, here.rank, peer, card.arenas[which]));
    const std::size_t needed = which == kPads ? here.pads->size() : offset + spec_.bytes;
    if (imported_.back()->size() < needed) {
      throw_invalid(place(), "rank {} gives {} bytes; expected {}", peer, imported_.back()->size(),
                    needed);
    }
  }
  here.peer_pads.push_back(imported_[imported_.size() - 2]->address());
  here.peer_data.push_back(imported_.back()->address() + offset);
}

void SymmetricBlock::reset() const {
  for (const Here& here : here_) {
    here.urgent->fill(here.record->address(), 0, sizeof(Record));
    here.urgent->fill(here.pads->address(), 0, here.pads->size());
    here.urgent->synchronize();
  }
}

std::size_t SymmetricBlock::local_of(int rank) const {
  for (std::size_t local = 0; local < here_.size(); ++local) {
    if (here_[local].rank == rank) return local;
  }
  throw_invalid(place(), "rank {} does not live here; expected one of {}", rank,
                fmt::join(world_.ranks(), ", "));
}

std::size_t SymmetricBlock::index_of(const Here& here, int peer) const {
  const auto found = std::ranges::find(here.members, peer);
  if (found != here.members.end()) return static_cast<std::size_t>(found - here.members.begin());
  throw_invalid(place(), "rank {} is no peer of rank {}; expected one of {}", peer, here.rank,
                fmt::join(here.members, ", "));
}

std::size_t SymmetricBlock::index_of_other(const Here& here, int peer) const {
  const std::size_t index = index_of(here, peer);
  if (peer != here.rank) return index;
  throw_invalid(place(), "rank {} signals to itself; expected another one", peer);
}

std::uint64_t SymmetricBlock::buffer(int rank, int peer, std::span<const std::int64_t> shape,
                                     DType dtype, std::size_t offset) const {
  const Here& from = here(rank);
  const std::uint64_t data = from.peer_data[index_of(from, peer)];
  if (offset % dtype_size(dtype) != 0) {
    throw_invalid(place(), "a tensor of {} at byte {}; expected a multiple of {}",
                  dtype_name(dtype), offset, dtype_size(dtype));
  }
  const std::string type = fmt::format("{}[{}]", dtype_name(dtype), fmt::join(shape, ", "));
  bool fits = offset <= spec_.bytes;
  std::size_t room = fits ? (spec_.bytes - offset) / dtype_size(dtype) : 0;  // elements
  const bool empty = std::ranges::find(shape, 0) != shape.end();
  for (const std::int64_t extent : shape) {
    if (extent < 0) throw_invalid(place(), "{} has a negative extent", type);
    if (!empty) room /= static_cast<std::size_t>(extent);
  }
  fits = fits && (empty || room > 0);
  if (fits) return data + offset;
  throw_invalid(place(), "{} at byte {} does not end within its {} bytes", type, offset,
                spec_.bytes);
}

void SymmetricBlock::check_use(const Here& here, const Stream& stream, int channel) const {
  check_stream(here, stream);
  if (channel < 0 || channel >= spec_.options.channels) {
    throw_invalid(place(), "channel {}; expected 0 to {}", channel, spec_.options.channels - 1);
  }
  refuse_if_lost();
}

void SymmetricBlock::check_stream(const Here& here, const Stream& stream) const {
  braid::check_stream(place(), stream, here.urgent->home());
}

void SymmetricBlock::refuse_if_lost() const {
  if (const std::optional<Error> loss = world_.loss()) throw Error(*loss);
}

/// Step numbers in a record: the channels of barriers, then the pairs.
std::int64_t SymmetricBlock::pair_number(int channel, std::size_t from, std::size_t to) const {
  const auto members = static_cast<std::int64_t>(members_);
  return (channel * members + static_cast<std::int64_t>(from)) * members +
         static_cast<std::int64_t>(to);
}

void SymmetricBlock::barrier(int rank, Stream& stream, int channel) const {
  const std::size_t local = local_of(rank);
  const Here& here = here_[local];
  check_use(here, stream, channel);
  const PadKernel::Range all{0, static_cast<std::uint32_t>(members_)};
  barrier_.launch(local, stream,
                  {.pads = here.peer_pads,
                   .rank = here.index,
                   .signaled = all,
                   .awaited = all,
                   .flags = protocol::kHeadBytes + channel * barrier_.flag_bytes(),
                   .step = static_cast<std::uint32_t>(channel),
                   .record = here.record->address(),
                   .timeout_ns = world_.timeout_ns});
}

void SymmetricBlock::pass(const Here& here, std::size_t from, std::size_t to, Stream& stream,
                          int channel) const {
  check_use(here, stream, channel);
  const std::int64_t pair = pair_number(channel, from, to);
  const std::uint64_t pads[] = {here.peer_pads[from], here.peer_pads[to]};
  const bool sends = here.index == from;
  pair_.launch(local_of(here.rank), stream,
               {.pads = pads,
                .rank = sends ? 0U : 1U,
                .signaled = sends ? PadKernel::Range{1, 2} : PadKernel::Range{},
                .awaited = sends ? PadKernel::Range{} : PadKernel::Range{0, 1},
                .flags = protocol::kHeadBytes + spec_.options.channels * barrier_.flag_bytes() +
                         pair * pair_.flag_bytes(),
                .step = static_cast<std::uint32_t>(spec_.options.channels + pair),
                .record = here.record->address(),
                .timeout_ns = world_.timeout_ns});
}

void SymmetricBlock::put_signal(int rank, int peer, Stream& stream, int channel) const {
  const Here& from = here(rank);
  pass(from, from.index, index_of_other(from, peer), stream, channel);
}

void SymmetricBlock::wait_signal(int rank, int peer, Stream& stream, int channel) const {
  const Here& to = here(rank);
  pass(to, index_of_other(to, peer), to.index, stream, channel);
}

void SymmetricBlock::acquire(int rank, Stream& stream) const {
  const Here& of = here(rank);
  check_stream(of, stream);
  if (of.used) stream.wait(*of.end_of_use);
}

void SymmetricBlock::release(int rank, Stream& stream) {
  Here& of = here_[local_of(rank)];
  stream.record(*of.end_of_use);
  of.used = true;
}

std::string SymmetricBlock::lost_wait(const Here& here, const Record& record) const {
  const auto step = static_cast<std::int64_t>(record.step);
  const std::int64_t channels = spec_.options.channels;
  const auto members = static_cast<std::int64_t>(members_);
  const bool is_barrier = step < channels;
  const std::int64_t pair = step - channels;
  const std::int64_t peer = is_barrier ? record.peer : pair / members % members;
  return fmt::format("rank {}, {} of channel {}: waited for rank {} to reach epoch {}, last saw {}",
                     here.rank, is_barrier ? "barrier" : "signal",
                     is_barrier ? step : pair / members / members, here.members[peer],
                     record.expected, record.seen);
}

void SymmetricBlock::check() const {
  std::string lost;
  bool gave_up = false;
  for (const Here& here : here_) {
    const Record record = *reinterpret_cast<const Record*>(here.record->address());
    if (record.kind == Record::kLostWait) {
      lost += (lost.empty() ? "" : "; ") + lost_wait(here, record);
    }
    std::uint32_t word = 0;
    here.urgent->copy_to_host(&word, here.pads->address() + protocol::kAbortOffset, sizeof word);
    here.urgent->synchronize();
    gave_up = gave_up || word != 0;
  }
  refuse_if_lost();
  if (!lost.empty()) {
    throw Error(ErrorCode::kTimeout, place(),
                fmt::format("a wait for a peer took longer than {:g} s: {}",
                            static_cast<double>(world_.timeout_ns) * 1e-9, lost));
  }
  if (!gave_up) return;
  throw Error(ErrorCode::kTimeout, place(),
              "another rank gave up waiting for a peer; its error names the peer");
}

void SymmetricBlock::recover() {
  const std::lock_guard lock(world_.meeting);
  world_.rendezvous->barrier();  // no kernel waits after this
  reset();
  world_.rendezvous->barrier();
}

}  // namespace braid
