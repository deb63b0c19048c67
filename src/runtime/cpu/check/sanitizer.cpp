#include "runtime/cpu/check/sanitizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "braid/checks.h"
#include "runtime/cpu/run/lanes.h"

namespace braid::cpu {
namespace {

std::uint32_t word_at(std::uint64_t address) {
  std::uint32_t value = 0;
  std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof(value));
  return value;
}

}  // namespace

VectorClock Sanitizer::now(const WarpCheck& warp) const {
  VectorClock clock = warp.seen;
  clock.add({warp.agent, warp.time});
  return clock;
}

bool Sanitizer::ordered(const WarpCheck& warp, const Access& before) const {
  // Copies of one agent are not ordered by issue.
  if (warp.asynchronous) return warp.seen.knows(before.when);
  return before.when.agent == warp.agent ? before.when.time <= warp.time
                                         : warp.seen.knows(before.when);
}

/// Whether the scope of an access by `warp` includes the agent.
bool Sanitizer::in_scope(const WarpCheck& warp, std::uint8_t scope, std::uint32_t agent) const {
  if (scope >= 3) return true;
  const AgentInfo& mine = agents_[warp.agent];
  const AgentInfo& other = agents_[agent];
  if (mine.rank != other.rank) return false;
  return scope == 2 || (mine.stream == other.stream && mine.block == other.block);
}

/// Morally strong: both are strong, each within the other's scope. Such accesses do not race.
bool Sanitizer::both_strong(const Lane& lane, const Access& before) const {
  if (lane.code.scope == 0 || before.scope == 0) return false;
  if (!in_scope(lane.warp, lane.code.scope, before.when.agent)) return false;
  if (before.scope >= 3) return true;
  return in_scope(lane.warp, before.scope, before.when.agent);
}

std::string Sanitizer::access(WarpCheck& warp, const std::uint64_t* addresses, std::uint32_t mask,
                              AccessCode code, std::uint32_t line, const Values* values) {
  const std::lock_guard lock(mutex_);
  ++ticks_;
  const bool atomic = code.kind == AccessCode::kAtomic || code.kind == AccessCode::kSwap;
  const bool writes = atomic || code.kind == AccessCode::kStore || code.kind == AccessCode::kCopyTo;
  const bool loads = atomic || !writes;
  for (const auto& [word, value] : warp.atomics) {
    if (word_at(word) != value) ++progress_;
  }
  warp.atomics.clear();
  for (std::uint32_t rest = mask; rest != 0;) {
    const auto l = static_cast<std::uint32_t>(std::countr_zero(rest));
    Lane lane{warp, l, line, code, addresses[l]};
    // Contiguous weak accesses are treated as one.
    std::uint32_t lanes = 1;
    const auto next_is_at = [&](std::uint64_t address) {
      return l + lanes < 32 && (rest >> (l + lanes) & 1U) != 0 && addresses[l + lanes] == address;
    };
    while (code.scope == 0 && next_is_at(lane.address + lanes * code.bytes)) ++lanes;
    const Region* region = find(lane.address);
    std::size_t bytes = std::size_t{lanes} * code.bytes;
    if (!holds(region, lane, bytes) || lane.address % code.bytes != 0) {
      lanes = 1;
      bytes = code.bytes;
      if (std::string refusal = judge_place(lane, region, bytes); !refusal.empty()) return refusal;
    }
    const bool releases = code.scope != 0 && synchronize(lane, lane.address, loads, writes);
    lane.by_several = code.scope == 0 && !writes && next_is_at(lane.address);
    const auto visit = [&](Cell& cell, std::uint64_t address, std::size_t size) {
      check_cell(lane, {*region, cell, address, size}, writes, values);
    };
    region->shadow->visit(lane.address, bytes, visit);
    if (releases) ++warp.time;
    if (code.kind == AccessCode::kCopyTo) {
      warp.open.push_back({lane.address, static_cast<std::uint32_t>(bytes)});
    }
    if (code.scope != 0 && loads) {
      warp.polled = lane.address;
      warp.polled_line = line;
      warp.polled_lane = static_cast<std::uint8_t>(l);
    }
    if (atomic) {
      const std::uint64_t word = lane.address / 4 * 4;
      warp.atomics.emplace_back(word, word_at(word));
    }
    // Lanes that read the same address are treated as one too.
    while (code.scope == 0 && !writes && lanes < 32 && next_is_at(lane.address)) ++lanes;
    rest = l + lanes == 32 ? 0 : rest >> (l + lanes) << (l + lanes);
  }
  const auto lanes_that_read = [&](std::uint64_t start, std::uint64_t end, std::uint32_t bytes) {
    std::uint32_t lanes = 0;
    for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      const auto l = static_cast<std::uint32_t>(std::countr_zero(rest));
      if (addresses[l] < end && addresses[l] + bytes > start) lanes |= 1U << l;
    }
    return lanes;
  };
  std::uint32_t undefined = 0;
  for (const auto& [unwritten, index] : std::exchange(fresh_, {})) {
    Unwritten::Bytes& read = unwritten->bytes[index];
    read.lanes |= lanes_that_read(read.start, read.end, code.bytes);
    undefined |= read.lanes;
  }
  AgentInfo& agent = agents_[warp.agent];
  if (undefined != 0) {
    agent.undefined_loads[line] = {undefined, {warp.time, warp.unwritten_reads}};
  } else if (!writes && !agent.undefined_loads.empty()) {
    agent.undefined_loads.erase(line);
  }
  for (const Fresh& read : std::exchange(suspected_, {})) {
    *read.lanes |= lanes_that_read(read.start, read.end, code.bytes - code.unread);
  }
  if (writes && mask != 0) {
    const bool may_pass = code.kind == AccessCode::kStore && !agent.undefined_loads.empty();
    const std::uint32_t passed = may_pass ? pass_on(warp, addresses, mask, code.bytes, line) : 0;
    Stored& stored = agent.stores[line];
    stored.all.note(mask, warp);
    stored.kept.note(mask & ~passed, warp);
  }
  if (writes && !atomic) ++progress_;
  return "";
}

/// Whether `bytes` bytes from the lane's address are in the region, and in the lane's own stretch
/// or in planned buffers, if there are any. Adjacent parts count as one stretch: an element never
/// spans two buffers.
bool Sanitizer::holds(const Region* region, const Lane& lane, std::size_t bytes) const {
  const std::uint64_t address = lane.address;
  if (region == nullptr || address - region->address + bytes > region->bytes) return false;
  if (region->kind != Region::kPlain) return false;
  if (region->lane_bytes != 0 && (checks_ & kCheckBounds) != 0) {
    const std::uint64_t own = region->address + lane.lane * region->lane_bytes;
    return address >= own && address + bytes <= own + region->lane_bytes;
  }
  if (region->parts.empty() || (checks_ & kCheckBounds) == 0) return true;
  const auto next = region->covered.upper_bound(address);
  return next != region->covered.begin() && address + bytes <= std::prev(next)->second;
}

/// Records what is wrong with the address of a lane's access. Returns a message if it must not be
/// done.
std::string Sanitizer::judge_place(const Lane& lane, const Region* region, std::size_t bytes) {
  const AccessCode code = lane.code;
  const std::string what = fmt::format("{} of {} bytes ", verb(code.kind), bytes);
  if (region == nullptr || lane.address - region->address + bytes > region->bytes) {
    const char* where = region == nullptr ? "in no allocation" : "at the end of an allocation";
    std::string message = what + fmt::format("at {:#x}, which is {}", lane.address, where);
    // The neighbouring region whose bounds were exceeded, if any.
    if (region == nullptr) region = nearest(lane.address);
    if ((checks_ & kCheckBounds) != 0) add(lane, "bounds", message, region);
    return message;
  }
  if (region->kind == Region::kMulticast) {
    std::string message = what + "at a multicast address, which takes multimem instructions alone";
    add(lane, "bounds", message, region);
    return message;
  }
  if (region->kind == Region::kExited) {
    if ((checks_ & kCheckSync) != 0) {
      add(lane, "exited", what + "in a block of the cluster that has exited", region);
    }
  } else if (!holds(region, lane, bytes)) {
    add(lane, "bounds",
        what + (region->lane_bytes != 0 ? "outside of the thread's own part"
                                        : "outside of every planned buffer"),
        region);
  }
  if (code.bytes == 0 || lane.address % code.bytes == 0) return "";
  std::string message = what + "at an address that is no multiple";
  add(lane, "misaligned", message, region);
  return message;
}

/// The region that begins or ends next to an address outside of all regions.
const Sanitizer::Region* Sanitizer::nearest(std::uint64_t address) const {
  const auto next = regions_.upper_bound(address);
  const Region* above = next == regions_.end() ? nullptr : &next->second;
  const Region* below = next == regions_.begin() ? nullptr : &std::prev(next)->second;
  constexpr std::uint64_t kFar = 1ULL << 30;  // says nothing, as of a null pointer
  const std::uint64_t to = above == nullptr ? kFar : above->address - address;
  const std::uint64_t past = below == nullptr ? kFar : address - (below->address + below->bytes);
  if (std::min(to, past) >= kFar) return nullptr;
  return to < past ? above : below;
}

void Sanitizer::check_cell(const Lane& run, const Stretch& at, bool writes, const Values* values) {
  WarpCheck& warp = run.warp;
  Cell& cell = at.cell;
  const Lane lane = run.at(at.address);
  const Access access{.when = {warp.agent, warp.time},
                      .line = lane.line,
                      .kernel = warp.launch->kernel_index,
                      .lane = static_cast<std::uint8_t>(lane.lane),
                      .scope = lane.code.scope,
                      .width = static_cast<std::uint8_t>(std::countr_zero(lane.code.bytes)),
                      .copied = lane.code.kind == AccessCode::kCopyTo,
                      .by_several = run.by_several};
  const bool loads =
      !writes || lane.code.kind == AccessCode::kAtomic || lane.code.kind == AccessCode::kSwap;
  const auto is_read = [&] {
    return (at.address - run.address) % run.code.bytes <
           static_cast<std::uint64_t>(run.code.bytes - run.code.unread);
  };
  if (loads && !cell.initialized && (checks_ & kCheckInit) != 0 && is_read()) {
    add_unwritten(lane, at);
  }
  const bool unordered = cell.write.when.time != 0 && !ordered(warp, cell.write);
  const bool compares = values != nullptr && cell.async == 0 && (unordered || cell.any_same());
  const Same same = compares ? compare(run, at, *values) : Same::kNo;
  const bool joins = check_races(lane, at, writes, same);
  if (writes) {
    cell.replace_write(access, joins, at.region.most_others);
    cell.initialized = true;
    cell.async = lane.code.kind == AccessCode::kCopyTo ? warp.next_group : 0;
    return;
  }
  keep_read(at, warp, access);
}

/// Compares what a store writes with what is there.
Sanitizer::Same Sanitizer::compare(const Lane& run, const Stretch& at, const Values& values) {
  std::array<std::uint8_t, 512> stored{};
  for (std::size_t b = 0; b < at.bytes; ++b) {
    const std::size_t offset = at.address + b - run.address;
    const auto l = static_cast<std::uint32_t>(run.lane + offset / run.code.bytes);
    stored[b] = values.byte(l, offset % run.code.bytes);
  }
  const auto* there = reinterpret_cast<const std::uint8_t*>(at.address);
  if (std::memcmp(stored.data(), there, at.bytes) == 0) return Same::kValue;
  const StoredFloats floats = floats_of(*run.warp.launch, run.line);
  const double size = values.largest(floats);
  return differ_by_rounding(floats, stored.data(), there, at.bytes, size) ? Same::kRounded
                                                                          : Same::kNo;
}

StoredFloats Sanitizer::floats_of(LaunchCheck& launch, std::uint32_t line) {
  const auto [known, is_new] = launch.floats.try_emplace(line);
  if (is_new) known->second = stored_floats(*launch.code, line);
  return known->second;
}

/// Records a read; it replaces an earlier one that it follows. What the tensor cores of one agent
/// read is over in the order of issue, so the last of it stands for all.
void Sanitizer::keep_read(const Stretch& at, const WarpCheck& warp, const Access& access) const {
  for (Cell::Other& other : at.cell.others) {
    const Access before = other.access;
    const bool own = before.when.agent == access.when.agent;
    const bool in_turn = own && agents_[access.when.agent].work != AgentInfo::kCopying;
    if (other.writes || !(in_turn || ordered(warp, before))) continue;
    if (before.scope == 0 && access.scope != 0) continue;
    const bool by_several = own && (before.by_several || before.lane != access.lane);
    other.access = access;
    if (by_several) other.access.by_several = true;
    return;
  }
  at.cell.keep({access}, at.region.most_others);
}

/// Checks an access against earlier accesses to its bytes. `same` means that it writes what they
/// hold. Returns whether it writes over unordered writes of others.
bool Sanitizer::check_races(const Lane& lane, const Stretch& at, bool writes, Same same) {
  const Cell& cell = at.cell;
  const auto observed = lane.warp.observed.find(at.address);
  const auto races = [&](const Access& before) {
    if (ordered(lane.warp, before) || both_strong(lane, before)) return false;
    return observed == lane.warp.observed.end() || before.scope == 0 ||
           !observed->second.knows(before.when);
  };
  // If several unordered writes have one value, a read needs to follow only one of them.
  bool known = false;
  for (const Cell::Other& other : cell.others) {
    known = known || (!writes && other.same &&
                      (ordered(lane.warp, other.access) || ordered(lane.warp, cell.write)));
  }
  const auto side_of = [&](const Access& before, bool wrote) {
    const AgentInfo& agent = agents_[before.when.agent];
    if (agent.role != AgentInfo::kCopies) return wrote ? "a write" : "a read";
    if (agent.work == AgentInfo::kWgmma) return "the reads of a wgmma";
    if (agent.work == AgentInfo::kTensor) return wrote ? "a write by tcgen05" : "a read by tcgen05";
    return wrote ? "a bulk copy's write" : "a bulk copy's read";
  };
  bool joins = false;
  const auto harmless = [&](const Access& before) {
    if (same != Same::kNo) note(lane, at.region, before, same);
    joins = joins || same != Same::kNo;
    return same != Same::kNo || known;
  };
  if (cell.async != 0 && cell.write.when.time != 0) {
    race(lane, at.region, cell.write, "a cp.async that is not waited for");
  } else if (cell.write.when.time != 0 && races(cell.write) && !harmless(cell.write)) {
    race(lane, at.region, cell.write, side_of(cell.write, true), at.bytes);
  }
  for (const auto& [before, wrote, same_value] : cell.others) {
    if ((!writes && !wrote) || !races(before)) continue;
    if (same_value && harmless(before)) continue;
    if (!wrote && in_block(lane.warp, before)) {
      is_written(before, at.address, at.address + at.bytes);
    }
    race(lane, at.region, before, side_of(before, wrote), at.bytes);
  }
  return joins;
}

/// Synchronization by strong accesses: a release publishes what its warp knows, an acquire learns
/// it, if each is within the other's scope. Relaxed accesses do the same together with fences.
bool Sanitizer::synchronize(const Lane& lane, std::uint64_t address, bool loads, bool stores) {
  WarpCheck& warp = lane.warp;
  const AccessCode code = lane.code;
  const bool acquires =
      code.order == AccessCode::kAcquire || code.order == AccessCode::kAcquireRelease;
  const bool releases =
      code.order == AccessCode::kRelease || code.order == AccessCode::kAcquireRelease;
  const int rank = agents_[warp.agent].rank;
  // The distance of the writer, if within the scope.
  std::size_t distance = 0;
  const auto found = published_.find(address);
  if (loads && found != published_.end()) {
    const Published& from = found->second;
    distance = from.rank != rank                                              ? 3
               : from.launch != warp.launch.get() || from.block != warp.block ? 2
                                                                              : 1;
    if (distance > code.scope) distance = 0;
  }
  if (distance != 0) {
    (acquires ? warp.seen : warp.acquired[distance]).join(found->second.clocks[distance]);
    warp.observed[address] = found->second.writes;
  }
  if (!stores) return false;
  Published next{{}, {}, rank, warp.block, warp.launch.get()};
  if (distance != 0) next.writes = found->second.writes;
  next.writes.add({warp.agent, warp.time});
  const VectorClock all = releases ? now(warp) : VectorClock();
  for (std::size_t reach = 1; reach <= code.scope; ++reach) {
    next.clocks[reach] = releases ? all : warp.fenced[reach];
    // A read-modify-write continues the release sequence that it read.
    if (distance != 0) next.clocks[reach].join(found->second.clocks[std::max(reach, distance)]);
  }
  published_.insert_or_assign(address, std::move(next));
  return releases;
}

/// A byte of the elements that a lane stores.
std::uint8_t Sanitizer::Values::byte(std::uint32_t lane, std::size_t index) const {
  return start[index / bytes * kElementStride + lane * bytes + index % bytes];
}

bool Sanitizer::Values::same(std::uint32_t a, std::uint32_t b, StoredFloats rounded) const {
  for (std::size_t k = 0; k < count; ++k) {
    const std::uint8_t* element = start + k * kElementStride;
    const std::uint8_t *x = element + a * bytes, *y = element + b * bytes;
    if (std::memcmp(x, y, bytes) == 0) continue;
    if (!differ_by_rounding(rounded, x, y, bytes, largest(rounded))) return false;
  }
  return true;
}

double Sanitizer::Values::largest(StoredFloats kind) const {
  double most = 0;
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(rest));
    for (std::size_t k = 0; k < count; ++k) {
      most = std::max(most, largest_of(kind, start + k * kElementStride + lane * bytes, bytes));
    }
  }
  return most;
}

void Sanitizer::stores(WarpCheck& warp, const std::uint64_t* addresses, std::uint32_t mask,
                       const Values& values, std::uint32_t line) {
  if ((checks_ & kCheckRace) == 0) return;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const auto l = static_cast<std::uint32_t>(std::countr_zero(rest));
    for (std::uint32_t before = mask & ((1U << l) - 1); before != 0; before &= before - 1) {
      const auto other = static_cast<std::uint32_t>(std::countr_zero(before));
      if (addresses[other] != addresses[l] || values.same(other, l)) continue;
      const std::lock_guard lock(mutex_);
      const bool rounded = values.same(other, l, floats_of(*warp.launch, line));
      const Region* region = find(addresses[l]);
      const AccessCode code{.kind = AccessCode::kStore,
                            .bytes = static_cast<std::uint8_t>(values.bytes * values.count)};
      const Access access{.when = {warp.agent, warp.time},
                          .line = line,
                          .kernel = warp.launch->kernel_index,
                          .lane = static_cast<std::uint8_t>(other)};
      const Lane lane{warp, l, line, code, addresses[l]};
      if (region != nullptr && rounded) note(lane, *region, access, Same::kRounded);
      if (rounded) continue;
      if (region != nullptr) {
        race(lane, *region, access, "a write of another value by its own warp");
      }
      return;
    }
  }
}

}  // namespace braid::cpu
