// Copies that continue beside the warp that issued them. Bulk copies are agents of their own, which
// know what their warp knew when it issued them; others learn of them where they wait.

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "braid/checks.h"
#include "runtime/cpu/check/sanitizer.h"

namespace braid::cpu {

std::uint32_t Sanitizer::copies_of(const WarpCheck& warp, std::uint64_t channel) {
  StreamClock& stream = *warp.launch->stream;
  const auto next = static_cast<std::uint32_t>(agents_.size());
  const auto [known, is_new] =
      stream.copies.try_emplace({warp.block * 32 + warp.warp, channel}, next);
  if (is_new) {
    const AgentInfo& mine = agents_[warp.agent];
    agents_.push_back(
        {.rank = mine.rank, .block = mine.block, .warp = mine.warp, .stream = mine.stream});
    agents_.back().role = channel == kInits ? AgentInfo::kInits : AgentInfo::kCopies;
    const bool tensor = channel == kTensorLoads || channel == kTensorStores ||
                        (channel >= kTensorLanes && channel <= kLastChannel);
    agents_.back().work = channel == kMatrix ? AgentInfo::kWgmma
                          : tensor           ? AgentInfo::kTensor
                                             : AgentInfo::kCopying;
  }
  return known->second;
}

std::uint32_t Sanitizer::start_async(WarpCheck& warp, std::uint64_t channel, std::uint32_t lane,
                                     std::uint32_t line) {
  const std::lock_guard lock(mutex_);
  const std::uint32_t agent = copies_of(warp, channel);
  if (warp.copy == nullptr) warp.copy = std::make_unique<WarpCheck>();
  WarpCheck& copy = *warp.copy;
  copy.asynchronous = true;
  copy.launch = warp.launch;
  copy.block = warp.block;
  copy.warp = warp.warp;
  copy.agent = agent;
  copy.time = ++agents_[agent].issued;
  copy.seen = now(warp);
  ++warp.time;
  if (channel > kLastChannel) {
    warp.launch->in_flight[warp.block].insert_or_assign(
        agent, LaunchCheck::InFlight{copy.time, warp.warp, lane, line});
  }
  return copy.time;
}

std::string Sanitizer::async_access(WarpCheck& warp, std::uint64_t address, std::size_t bytes,
                                    AccessCode code, std::uint32_t lane_number, std::uint32_t line,
                                    const std::uint8_t* data) {
  const std::lock_guard lock(mutex_);
  ++ticks_;
  const bool writes = code.kind == AccessCode::kAtomic || code.kind == AccessCode::kBulkTo ||
                      code.kind == AccessCode::kTensorTo || code.kind == AccessCode::kTensorUpdate;
  const Lane lane{*warp.copy, lane_number, line, code, address};
  const Region* region = find(address);
  if (!holds(region, lane, bytes)) {
    if (std::string refusal = judge_place(lane, region, bytes); !refusal.empty()) return refusal;
  }
  region->shadow->visit(address, bytes, [&](Cell& cell, std::uint64_t start, std::size_t size) {
    check_async({*warp.copy, lane_number, line, code, start}, {*region, cell, start, size}, writes,
                data == nullptr ? nullptr : data + (start - address));
  });
  for (const auto& [unwritten, index] : std::exchange(fresh_, {})) {
    unwritten->bytes[index].lanes = 1U << lane_number;
  }
  if (writes) ++progress_;
  return "";
}

void Sanitizer::check_async(const Lane& lane, const Stretch& at, bool writes,
                            const std::uint8_t* data) {
  Cell& cell = at.cell;
  const Access access{.when = {lane.warp.agent, lane.warp.time},
                      .line = lane.line,
                      .kernel = lane.warp.launch->kernel_index,
                      .lane = static_cast<std::uint8_t>(lane.lane),
                      .scope = lane.code.scope};
  const bool reads =
      lane.code.kind != AccessCode::kBulkTo && lane.code.kind != AccessCode::kTensorTo;
  if (reads && !cell.initialized && (checks_ & kCheckInit) != 0) {
    add_unwritten(lane, at);
  }
  check_proxy(lane, at);
  const bool unordered = cell.write.when.time != 0 && !ordered(lane.warp, cell.write);
  const bool same = data != nullptr && cell.async == 0 && (unordered || cell.any_same()) &&
                    std::memcmp(reinterpret_cast<const void*>(at.address), data, at.bytes) == 0;
  const bool joins = check_races(lane, at, writes, same ? Same::kValue : Same::kNo);
  if (writes) {
    cell.replace_write(access, joins, at.region.most_others);
    cell.initialized = true;
    cell.async = 0;
  } else {
    keep_read(at, lane.warp, access);
  }
}

/// The async proxy sees what warps stored only behind a fence.proxy.async, run by any warp in
/// between, and whatever was there before the kernel. The ISA does not require it for cp.async, and
/// kernels of Triton and CUTLASS that feed wgmma by cp.async have no such fence.
void Sanitizer::check_proxy(const Lane& lane, const Stretch& at) {
  const Access& before = at.cell.write;
  if ((checks_ & kCheckRace) == 0 || before.when.time == 0 || before.copied) return;
  const AgentInfo& writer = agents_[before.when.agent];
  if (writer.role != AgentInfo::kWarp || writer.block == kHostBlock) return;
  const WarpCheck& copy = lane.warp;
  if (!ordered(copy, before) || copy.launch->start.knows(before.when)) return;
  if (writer.twin != 0 && copy.seen.knows({writer.twin, before.when.time})) return;
  const std::uint64_t side = known_side(before);
  if (known_.contains({"proxy", lane.warp.launch->kernel_index, lane.line, side})) return;
  add(lane, "proxy",
      fmt::format("{} after a write, without a fence.proxy.async between them",
                  verb(lane.code.kind)),
      &at.region, "the other side: " + place(before), side);
}

std::uint32_t Sanitizer::twin_of(std::uint32_t agent) {
  if (agents_[agent].twin == 0) {
    AgentInfo twin = {.rank = agents_[agent].rank,
                      .block = agents_[agent].block,
                      .warp = agents_[agent].warp,
                      .stream = agents_[agent].stream};
    twin.role = AgentInfo::kTwin;
    agents_[agent].twin = static_cast<std::uint32_t>(agents_.size());
    agents_.push_back(std::move(twin));
  }
  return agents_[agent].twin;
}

void Sanitizer::show_async(WarpCheck& warp) {
  const std::lock_guard lock(mutex_);
  warp.seen.add({twin_of(warp.agent), warp.time});
  ++warp.time;
}

/// Makes all writes that the warp knows of visible to the async proxy: each agent has a twin, whose
/// time says up to when. Twins are known and handed on like agents.
void Sanitizer::fence_async(WarpCheck& warp) {
  const std::lock_guard lock(mutex_);
  std::vector<Epoch> known;
  now(warp).visit_beyond([&](Epoch epoch) {
    const AgentInfo& agent = agents_[epoch.agent];
    if (agent.role != AgentInfo::kWarp || agent.block == kHostBlock) return;
    if (!warp.launch->start.knows(epoch)) known.push_back(epoch);
  });
  for (const Epoch& epoch : known) warp.seen.add({twin_of(epoch.agent), epoch.time});
  ++warp.time;
}

void Sanitizer::finish_async(WarpCheck& warp, std::uint64_t channel, std::uint32_t time) {
  const std::lock_guard lock(mutex_);
  warp.seen.add({copies_of(warp, channel), time});
}

// --- cp.async: groups of a warp ---

void Sanitizer::commit_group(WarpCheck& warp) {
  const std::lock_guard lock(mutex_);
  agents_[warp.agent].groups.emplace_back(warp.next_group++, std::exchange(warp.open, {}));
}

void Sanitizer::land(std::uint32_t agent, std::uint32_t last, std::optional<std::uint32_t> time) {
  auto& groups = agents_[agent].groups;
  while (!groups.empty() && groups.front().first <= last) {
    const auto [group, copies] = std::move(groups.front());
    groups.pop_front();
    for (const WarpCheck::Copy& copy : copies) {
      Region* region = find(copy.address);
      if (region == nullptr) continue;
      region->shadow->visit(copy.address, copy.bytes,
                            [&, number = group](Cell& cell, std::uint64_t, std::size_t) {
                              if (cell.async != number || cell.write.when.agent != agent) return;
                              cell.async = 0;
                              if (time) cell.write.when.time = *time;
                            });
    }
  }
}

/// The bytes of all but the `pending` youngest groups have arrived, and count as written now.
void Sanitizer::wait_group(WarpCheck& warp, std::uint32_t pending) {
  const std::lock_guard lock(mutex_);
  const auto& groups = agents_[warp.agent].groups;
  if (groups.size() <= pending) return;
  land(warp.agent, groups[groups.size() - pending - 1].first, warp.time);
}

void Sanitizer::copies_arrive(WarpCheck& warp, std::uint64_t barrier) {
  commit_group(warp);
  const std::lock_guard lock(mutex_);
  phases_[barrier].copies[warp.agent] = warp.next_group - 1;
}

// --- bulk groups: per thread, in order ---

void Sanitizer::bulk_issued(WarpCheck& warp, std::uint32_t lane, std::uint32_t time,
                            std::uint32_t line) {
  const std::lock_guard lock(mutex_);
  WarpCheck::BulkGroups& groups = warp.bulk[lane];
  groups.last = time;
  groups.line = line;
}

void Sanitizer::bulk_commit(WarpCheck& warp, std::uint32_t lanes) {
  const std::lock_guard lock(mutex_);
  for (auto& [lane, groups] : warp.bulk) {
    if ((lanes >> lane & 1U) != 0) groups.committed.push_back(groups.last);
  }
}

void Sanitizer::bulk_wait(WarpCheck& warp, std::uint32_t lanes, std::uint32_t pending,
                          bool reads_only) {
  const std::lock_guard lock(mutex_);
  for (auto& [lane, groups] : warp.bulk) {
    if ((lanes >> lane & 1U) == 0 || groups.committed.size() <= pending) continue;
    const auto last = groups.committed.end() - static_cast<std::ptrdiff_t>(pending) - 1;
    warp.seen.add({copies_of(warp, kBulkReads), *last});
    if (reads_only) continue;
    warp.seen.add({copies_of(warp, kBulkWrites), *last});
    groups.committed.erase(groups.committed.begin(), last + 1);
  }
}

/// Bulk copies must be waited for, as their block may end before they have read its shared memory.
void Sanitizer::end_bulk(WarpCheck& warp) {
  for (const auto& [lane, groups] : warp.bulk) {
    const Epoch reads{copies_of(warp, kBulkReads), groups.last};
    if (!warp.seen.knows(reads) && (checks_ & kCheckSync) != 0) {
      add({warp, lane, groups.line, {}}, "unfinished",
          "a bulk copy may still read shared memory when the block ends: its thread does not wait "
          "for its group",
          nullptr);
    }
    warp.launch->end.add(reads);
    warp.launch->end.add({copies_of(warp, kBulkWrites), groups.last});
  }
}

void Sanitizer::exit_block(const WarpCheck& last, const VectorClock& known, std::uint64_t shared) {
  const std::lock_guard lock(mutex_);
  Region* const region = find(shared);
  if (region == nullptr) return;
  region->kind = Region::kExited;
  if ((checks_ & kCheckSync) == 0) return;
  // end_block() handles copies.
  const auto judge = [&](const Access& access, std::uint64_t address) {
    const AgentInfo& agent = agents_[access.when.agent];
    if (access.when.time == 0 || known.knows(access.when) || agent.block == last.block) return;
    if (agent.role == AgentInfo::kCopies) return;
    WarpCheck warp;
    warp.launch = last.launch;
    warp.block = agent.block;
    warp.warp = agent.warp;
    add({warp, access.lane, access.line, {}, address}, "exited",
        "access to a block of the cluster that may have exited: it does not wait for this", region);
  };
  region->shadow->visit(region->address, region->bytes,
                        [&](Cell& cell, std::uint64_t address, std::size_t) {
                          judge(cell.write, address);
                          for (const Cell::Other& other : cell.others) {
                            judge(other.access, address);
                          }
                        });
}

void Sanitizer::end_block(const std::shared_ptr<LaunchCheck>& launch, std::uint64_t block) {
  const std::lock_guard lock(mutex_);
  const auto copies = launch->in_flight.find(block);
  if (copies == launch->in_flight.end()) return;
  for (const auto& [agent, copy] : copies->second) {
    const Epoch epoch{agent, copy.time};
    if (!launch->end.knows(epoch) && (checks_ & kCheckSync) != 0) {
      WarpCheck warp;
      warp.launch = launch;
      warp.block = block;
      warp.warp = copy.warp;
      add({warp, copy.lane, copy.line, {}}, "unfinished",
          "a bulk copy may still write when the block ends: nobody waits for its mbarrier",
          nullptr);
    }
    launch->end.add(epoch);
  }
  launch->in_flight.erase(copies);
}

// --- mbarriers: knowledge that a phase hands on when it completes ---

void Sanitizer::Phases::Known::join(const VectorClock& clock, std::uint64_t block, bool wide) {
  by_block[block].join(clock);
  if (wide) all.join(clock);
}

/// Called after access(): the write moves to a separate agent, which a fence of inits hands on.
void Sanitizer::initialize(WarpCheck& warp, std::uint64_t barrier) {
  const std::lock_guard lock(mutex_);
  phases_.erase(barrier);
  Region* const region = find(barrier);
  if (region == nullptr) return;
  warp.inits.agent = copies_of(warp, kInits);
  warp.inits.time = ++agents_[warp.inits.agent].issued;
  warp.seen.add(warp.inits);
  region->shadow->visit(
      barrier, sizeof(std::uint64_t),
      [&](Cell& cell, std::uint64_t, std::size_t) { cell.write.when = warp.inits; });
}

void Sanitizer::reset_phases(std::uint64_t barrier) {
  const std::lock_guard lock(mutex_);
  phases_.erase(barrier);
}

void Sanitizer::arrive_at(WarpCheck& warp, std::uint64_t barrier, bool wide, bool completes,
                          bool releases) {
  const std::lock_guard lock(mutex_);
  Phases& phases = phases_[barrier];
  phases.now.join(releases ? now(warp) : warp.fenced[wide ? 2 : 1], warp.block, wide);
  if (releases) ++warp.time;
  if (completes) phases.done = phases.now;
}

/// Called after access(): the copy completes the phase, not the warp.
void Sanitizer::copied_to(WarpCheck& warp, std::uint64_t barrier, bool completes) {
  const std::lock_guard lock(mutex_);
  const Epoch copy{warp.copy->agent, warp.copy->time};
  if (Region* const region = find(barrier)) {
    region->shadow->visit(barrier, sizeof(std::uint64_t),
                          [&](Cell& cell, std::uint64_t, std::size_t) { cell.write.when = copy; });
  }
  Phases& phases = phases_[barrier];
  phases.now.join(now(*warp.copy), warp.block, true);
  if (completes) phases.done = phases.now;
}

void Sanitizer::wait_for(WarpCheck& warp, std::uint64_t barrier, bool wide, bool acquires) {
  const std::lock_guard lock(mutex_);
  const auto phases = phases_.find(barrier);
  if (phases == phases_.end()) return;
  for (const auto& [agent, group] : std::exchange(phases->second.copies, {})) {
    land(agent, group, {});
  }
  const Phases::Known& done = phases->second.done;
  const auto mine = done.by_block.find(warp.block);
  const auto learn = [&](VectorClock& all, VectorClock& of_block) {
    if (wide) all.join(done.all);
    if (mine != done.by_block.end()) of_block.join(mine->second);
  };
  if (acquires) return learn(warp.seen, warp.seen);
  learn(warp.acquired[2], warp.acquired[1]);
  learn(warp.unfenced, warp.unfenced);
}

}  // namespace braid::cpu
