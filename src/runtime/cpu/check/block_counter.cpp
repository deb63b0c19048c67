#include "runtime/cpu/check/block_counter.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "runtime/cpu/check/access_cost.h"

namespace braid::cpu {
namespace {

bool is_atomic(AccessCode code) {
  return code.kind == AccessCode::kAtomic || code.kind == AccessCode::kSwap;
}

TouchedBytes::Effect effect_of(AccessCode code) {
  const bool atomic = is_atomic(code);
  return {.reads = code.kind == AccessCode::kLoad || code.kind == AccessCode::kCopyFrom || atomic,
          .writes = code.kind == AccessCode::kStore || atomic};
}

/// Whether 32 lanes are contiguous.
bool is_row(const std::uint64_t* addresses, std::uint64_t bytes) {
  if (addresses[31] - addresses[0] != 31 * bytes) return false;
  std::uint64_t differences = 0;
  for (std::uint64_t l = 0; l < 32; ++l) differences |= addresses[l] ^ (addresses[0] + l * bytes);
  return differences == 0;
}

constexpr std::uint64_t kLineBytes = 128;

std::uint64_t sector_of(std::uint64_t address) { return address / SectorSet::kBytes; }

/// The registers that a load fills; none for copies to shared memory.
std::uint64_t registers_of(AccessCode code) {
  return code.kind == AccessCode::kLoad ? (code.bytes + 3U) / 4 : 0;
}

std::uint64_t lanes_of(std::uint32_t mask) {
  return mask == ~0U ? 32 : static_cast<std::uint64_t>(std::popcount(mask));
}

}  // namespace

void BlockCounter::start(LaunchCount& launch, std::uint64_t block) {
  if (launch_ == &launch && launch.sample() == nullptr) return;
  finish();
  launch_ = &launch;
  group_ = launch.sample() == nullptr ? 0 : launch.sample()->group_of(block);
  tally_.reset(launch.sites());
  before_.assign(tally_.blocks.size(), 0);
  pages_.fill(nullptr);
}

void BlockCounter::next_block(std::uint64_t block, std::uint32_t blocks, bool followed,
                              bool glance) {
  end_block();
  followed_ = followed && !glance;
  block_ = block;
  blocks_ = blocks;
  glance_ = glance;
  // The blocks of a sample are spread over the grid.
  looks_ = glance || (launch_->sample() == nullptr && launch_->glances().has(block));
  looked_ = {};
}

void BlockCounter::end_block() {
  note_busiest();
  tally_.sectors += sectors_of(sectors_.words());
  sectors_.clear();
  if (looks_) launch_->glances().add(block_, seen_.words());
  seen_.clear();
  looks_ = false;
}

/// Of a cluster, the average block.
void BlockCounter::note_busiest() {
  const auto ran = [&](std::size_t b) { return (tally_.blocks[b].warps() - before_[b]) / blocks_; };
  std::uint64_t instructions = 0;
  for (std::size_t b = 0; b < before_.size(); ++b) {
    const CountSites::Block& site = launch_->sites().blocks()[b];
    instructions += ran(b) * (site.end - site.first);
  }
  BusiestBlock& busiest = tally_.busiest;
  const bool is_busiest = instructions > busiest.instructions;
  if (is_busiest) {
    busiest.instructions = instructions;
    busiest.warps.resize(before_.size());
  }
  for (std::size_t b = 0; b < before_.size(); ++b) {
    if (is_busiest) busiest.warps[b] = ran(b);
    before_[b] = tally_.blocks[b].warps();
  }
}

bool BlockCounter::looks_at(std::uint32_t warp, AccessCode code) {
  if (!looks_) return false;
  // A block that does not count must not change memory.
  if (glance_ && effect_of(code).writes) looked_[warp] = ReadGlances::kAccesses;
  if (!effect_of(code).reads || looked_[warp] >= ReadGlances::kAccesses) return false;
  ++looked_[warp];
  return true;
}

void BlockCounter::finish() {
  if (launch_ == nullptr) return;
  end_block();
  if (!glance_) launch_->add(tally_, group_);
  launch_ = nullptr;
}

void BlockCounter::global_access(const WarpContext& warp, const std::uint64_t* addresses,
                                 std::uint32_t mask, AccessCode code, std::uint32_t line) {
  if (mask == ~0U && is_row(addresses, code.bytes)) {
    return global_row(warp, addresses[0], code.bytes, mask, code, line);
  }
  if (mask != 0) global_lanes(warp, addresses, mask, code, line);
}

void BlockCounter::global_lanes(const WarpContext& warp, const std::uint64_t* addresses,
                                std::uint32_t mask, AccessCode code, std::uint32_t line,
                                const std::uint32_t* sizes) {
  const bool looks = looks_at(warp.warp, code);
  const TouchedBytes::Effect effect = effect_of(code);
  TouchedBytes::Page* page = nullptr;
  // Neighbours are often in one word of a page, which is then touched once for all.
  std::size_t word = 0;
  std::uint64_t bits = 0;
  const auto touch = [&] {
    if (bits != 0) page->touch_word(word, std::exchange(bits, 0), effect);
  };
  SectorSet sectors;
  LineTally& tally = tally_.lines[line];
  std::uint64_t lanes = 0, all = 0, peers = 0;
  for (std::uint32_t left = mask; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const std::uint64_t address = addresses[lane];
    const std::uint32_t bytes =
        sizes == nullptr ? code.bytes : std::min<std::uint32_t>(sizes[lane], code.bytes);
    if (page == nullptr || page->number() != address / TouchedBytes::kPageBytes) {
      touch();
      page = &page_of(address);
    }
    // Skips constants and other memory that belongs to no rank.
    if (!page->piece().holds(address)) continue;
    if (looks) seen_.add(sector_of(address), sector_of(address + bytes - 1));
    if (glance_) continue;
    ++lanes;
    all += bytes;
    tally.reach(address, address + bytes);
    if (page->piece().rank != launch_->rank()) peers += bytes;
    sectors.add(address, bytes);
    const std::uint64_t offset = address % TouchedBytes::kPageBytes;
    if (offset % 64 + bytes > 64) {
      page->touch(offset, bytes, effect);
      continue;
    }
    if (offset / 64 != word) touch();
    word = offset / 64;
    bits |= ((std::uint64_t{1} << bytes) - 1) << offset % 64;
  }
  touch();
  if (lanes == 0) return;
  ++tally.global_requests;
  tally.global_sectors += sectors.count();
  if (follows(line)) {
    for (const std::uint64_t sector : sectors.all()) follow(warp, sector, sector);
  }
  tally.global_wavefronts += std::max(sectors.lines(), registers_of(code));
  tally.global_bytes += all;
  tally.peer_bytes += peers;
  if (is_atomic(code)) tally.atomics += lanes;
}

void BlockCounter::global_row(const WarpContext& warp, std::uint64_t base, std::uint32_t step,
                              std::uint32_t mask, AccessCode code, std::uint32_t line) {
  if (mask == 0) return;
  const std::uint64_t end = base + std::uint64_t{31} * step + code.bytes;
  const TouchedBytes::Page* const first = &page_of(base);
  const bool whole = step == 0 || mask == ~0U;
  if (!whole || !first->piece().holds(base) || end > first->piece().end) {
    std::array<std::uint64_t, 32> addresses{};
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
      addresses[lane] = base + std::uint64_t{lane} * step;
    }
    global_lanes(warp, addresses.data(), mask, code, line);
    return;
  }
  const std::uint64_t first_sector = sector_of(base), last_sector = sector_of(end - 1);
  if (looks_at(warp.warp, code)) seen_.add(first_sector, last_sector);
  if (glance_) return;
  LineTally& tally = tally_.lines[line];
  const std::uint64_t bytes = lanes_of(mask) * code.bytes;
  tally.reach(base, end);
  if (follows(line)) follow(warp, first_sector, last_sector);
  ++tally.global_requests;
  tally.global_sectors += last_sector - first_sector + 1;
  tally.global_wavefronts +=
      std::max((end - 1) / kLineBytes - base / kLineBytes + 1, registers_of(code));
  tally.global_bytes += bytes;
  if (first->piece().rank != launch_->rank()) tally.peer_bytes += bytes;
  if (is_atomic(code)) tally.atomics += lanes_of(mask);
  for (std::uint64_t at = base; at < end;) {
    const std::uint64_t offset = at % TouchedBytes::kPageBytes;
    page_of(at).touch(offset, end - at, effect_of(code));
    at += TouchedBytes::kPageBytes - offset;
  }
}

void BlockCounter::shared_access(const std::uint64_t* addresses, std::uint32_t mask,
                                 AccessCode code, std::uint32_t line) {
  if (mask == 0 || glance_) return;
  const SharedCost cost = shared_cost(addresses, mask, code.bytes);
  LineTally& tally = tally_.lines[line];
  ++tally.shared_requests;
  tally.shared_wavefronts += cost.wavefronts;
  tally.bank_conflicts += cost.conflicts;
  const IssuedCost issued = issued_cost(cost, addresses, mask, code.bytes, code.joined);
  tally.issued_requests += issued.requests;
  tally.issued_wavefronts += issued.wavefronts;
  if (is_atomic(code)) tally.atomics += lanes_of(mask);
}

void BlockCounter::matrix_rows(const std::uint64_t* addresses, bool first, std::uint32_t line) {
  if (glance_) return;
  const SharedCost cost = shared_cost(addresses, 0xff, 16);
  LineTally& tally = tally_.lines[line];
  tally.shared_requests += first ? 1 : 0;
  tally.issued_requests += first ? 1 : 0;
  tally.shared_wavefronts += cost.wavefronts;
  tally.issued_wavefronts += cost.wavefronts;
  tally.bank_conflicts += cost.conflicts;
}

void BlockCounter::multicast_access(const MulticastPlaces& places, std::uint32_t mask,
                                    AccessCode code, std::uint32_t line) {
  if (mask == 0 || glance_) return;
  const std::uint64_t bytes = lanes_of(mask) * code.bytes;
  LineTally& tally = tally_.lines[line];
  ++tally.global_requests;
  tally.global_bytes += bytes;
  tally.global_sectors += (bytes + SectorSet::kBytes - 1) / SectorSet::kBytes;
  tally.global_wavefronts += std::max((bytes + kLineBytes - 1) / kLineBytes, registers_of(code));
  if (is_atomic(code)) tally.atomics += lanes_of(mask);
  tally.peer_bytes += bytes * (code.kind == AccessCode::kLoad ? 1 : places.size());
  for (const auto& place : places) {
    for (std::uint32_t left = mask; left != 0; left &= left - 1) {
      const std::uint64_t address = place[std::countr_zero(left)];
      tally.reach(address, address + code.bytes);
      page_of(address).touch(address % TouchedBytes::kPageBytes, code.bytes, effect_of(code));
    }
  }
}

}  // namespace braid::cpu
