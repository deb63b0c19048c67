#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "braid/checks.h"
#include "runtime/cpu/check/sanitizer.h"

// What the sanitizer is told besides accesses.

namespace braid::cpu {

// --- memory --------------------------------------------------------------------------------------

void Sanitizer::add_memory(int rank, std::uint64_t address, std::size_t bytes, std::string name,
                           bool initialized, std::size_t lane_bytes) {
  const std::lock_guard lock(mutex_);
  last_region_ = nullptr;
  Region& region = regions_[address];
  // The warps of a block or cluster may all read a word of its own memory.
  const bool shared = name == "shared memory";
  if (shared) region.most_others = 64;
  region.of_block = shared || lane_bytes != 0;
  region.address = address;
  region.bytes = bytes;
  region.rank = rank;
  region.lane_bytes = lane_bytes;
  region.kind = Region::kPlain;
  region.name = std::move(name);
  region.parts.clear();
  region.shadow = std::make_unique<Shadow>(address, bytes, initialized);
}

void Sanitizer::add_multicast(std::uint64_t address, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  last_region_ = nullptr;
  Region& region = regions_[address];
  region.address = address;
  region.bytes = bytes;
  region.kind = Region::kMulticast;
  region.name = "multicast addresses";
}

void Sanitizer::remove_memory(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  last_region_ = nullptr;
  const auto found = regions_.find(address);
  if (found == regions_.end()) return;
  told_.erase(told_.lower_bound(address), told_.lower_bound(address + found->second.bytes));
  phases_.erase(phases_.lower_bound(address), phases_.lower_bound(address + found->second.bytes));
  regions_.erase(found);
}

bool Sanitizer::knows(std::uint64_t address, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto next = regions_.lower_bound(address + bytes);
  if (next == regions_.begin()) return false;
  const Region& last = std::prev(next)->second;
  return last.address + last.bytes > address;
}

void Sanitizer::name_parts(std::uint64_t memory, std::span<const MemoryPart> parts) {
  const std::lock_guard lock(mutex_);
  Region* region = find(memory);
  if (region == nullptr) return;
  region->parts.assign(parts.begin(), parts.end());
  std::ranges::sort(region->parts,
                    [](const MemoryPart& a, const MemoryPart& b) { return a.address < b.address; });
  region->covered.clear();
  for (const MemoryPart& part : region->parts) {
    const std::uint64_t end = part.address + part.bytes;
    if (region->covered.empty() || std::prev(region->covered.end())->second < part.address) {
      region->covered.emplace(part.address, end);
    } else {
      std::uint64_t& last = std::prev(region->covered.end())->second;
      last = std::max(last, end);
    }
  }
}

Sanitizer::Region* Sanitizer::find(std::uint64_t address) {
  const auto holds = [&](const Region& region) {
    return address >= region.address && address - region.address < region.bytes;
  };
  if (last_region_ != nullptr && holds(*last_region_)) return last_region_;
  auto next = regions_.upper_bound(address);
  if (next == regions_.begin()) return nullptr;
  Region& region = std::prev(next)->second;
  if (!holds(region)) return nullptr;
  return last_region_ = &region;
}

// --- the host ------------------------------------------------------------------------------------

std::shared_ptr<StreamClock> Sanitizer::open_stream(int rank) {
  const std::lock_guard lock(mutex_);
  auto stream = std::make_shared<StreamClock>();
  stream->rank = rank;
  stream->agent = static_cast<std::uint32_t>(agents_.size());
  agents_.push_back({rank, kHostBlock, 0, streams_++});
  return stream;
}

VectorClock Sanitizer::host_clock() {
  const std::lock_guard lock(mutex_);
  return host_;
}

void Sanitizer::host_waited(const StreamClock& stream) {
  const std::lock_guard lock(mutex_);
  host_.join(stream.seen);
}

void Sanitizer::join(StreamClock& stream, const VectorClock& clock) {
  const std::lock_guard lock(mutex_);
  stream.seen.join(clock);
}

VectorClock Sanitizer::clock_of(const StreamClock& stream) {
  const std::lock_guard lock(mutex_);
  return stream.seen;
}

void Sanitizer::host_wrote(StreamClock& stream, std::uint64_t address, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  ++progress_;
  const Access access{.when = {stream.agent, ++stream.time}};
  stream.seen.add(access.when);
  Region* region = find(address);
  if (region == nullptr) return;
  region->shadow->visit(address, std::min(bytes, region->bytes - (address - region->address)),
                        [&](Cell& cell, std::uint64_t, std::size_t) {
                          cell = {};
                          cell.write = access;
                          cell.initialized = true;
                        });
}

void Sanitizer::told(StreamClock& stream, std::uint64_t word) {
  host_wrote(stream, word, sizeof(std::uint32_t));
  const std::lock_guard lock(mutex_);
  told_.insert_or_assign(word, stream.seen);
}

void Sanitizer::heard(StreamClock& stream, std::uint64_t word) {
  const std::lock_guard lock(mutex_);
  if (const auto found = told_.find(word); found != told_.end()) stream.seen.join(found->second);
}

// --- kernels -------------------------------------------------------------------------------------

std::shared_ptr<LaunchCheck> Sanitizer::start_launch(std::shared_ptr<StreamClock> stream,
                                                     std::string kernel, std::string_view file,
                                                     Dim3 grid, Dim3 block,
                                                     std::shared_ptr<const SourceMap> map,
                                                     std::shared_ptr<const ptx::Function> code) {
  const std::lock_guard lock(mutex_);
  auto launch = std::make_shared<LaunchCheck>();
  const auto known = std::ranges::find(kernels_, kernel);
  const auto index = static_cast<std::size_t>(known - kernels_.begin());
  if (known == kernels_.end()) {
    kernels_.push_back(kernel);
    block_shapes_.emplace_back();
    grid_shapes_.emplace_back();
    sources_.emplace_back();
  }
  launch->kernel_index = static_cast<std::uint16_t>(index);
  block_shapes_[index] = block;
  grid_shapes_[index] = grid;
  sources_[index] = SourceLines::of(kernel, file, std::move(map));
  launch->source = sources_[index];
  launch->code = std::move(code);
  launch->kernel = std::move(kernel);
  launch->grid = grid;
  launch->block = block;
  launch->start = stream->seen.as_base();
  launch->end = launch->start;
  launch->stream = std::move(stream);
  return launch;
}

void Sanitizer::end_launch(LaunchCheck& launch) {
  const std::lock_guard lock(mutex_);
  ++progress_;
  launch.stream->seen.join(launch.end);
  for (const auto& [place, agent] : launch.stream->warps) {
    agents_[agent].launch = nullptr;
    agents_[agent].stores.clear();
  }
  settle_unwritten(false);
}

void Sanitizer::start_warp(WarpCheck& warp, std::shared_ptr<LaunchCheck> launch,
                           std::uint64_t block, std::uint32_t index) {
  const std::lock_guard lock(mutex_);
  warp = {};
  StreamClock& stream = *launch->stream;
  const auto [known, is_new] = stream.warps.try_emplace(block * 32 + index, agents_.size());
  if (is_new) agents_.push_back({stream.rank, block, index, stream.agent});
  warp.agent = known->second;
  warp.block = block;
  warp.warp = index;
  warp.seen = launch->start;
  warp.launch = std::move(launch);
  // Later than all that earlier kernels of the stream did as this agent.
  warp.time = warp.seen.time_of(warp.agent) + 1;
  AgentInfo& agent = agents_[warp.agent];
  agent.launch = warp.launch.get();
  agent.ended = false;
  agent.start = warp.time;
  warp.unwritten_reads = 0;
  agent.stores.clear();
  agent.choices.clear();
  agent.undefined_loads.clear();
  agent.groups.clear();
}

void Sanitizer::end_warp(WarpCheck& warp, const std::uint32_t* entered) {
  const std::lock_guard lock(mutex_);
  ++progress_;
  end_bulk(warp);
  warp.launch->end.join(warp.seen);
  warp.launch->end.add({warp.agent, warp.time});
  agents_[warp.agent].ended = true;
  settle(warp.agent, entered);
}

void Sanitizer::stop_warp(const WarpCheck& warp) {
  const std::lock_guard lock(mutex_);
  if (warp.launch == nullptr || agents_[warp.agent].ended) return;
  warp.launch->end.join(warp.seen);
  warp.launch->end.add({warp.agent, warp.time});
}

// --- what orders warps ------------------------------------------------------------------------

void Sanitizer::fence(WarpCheck& warp, std::uint8_t scope) {
  const std::lock_guard lock(mutex_);
  for (std::uint8_t reach = 1; reach <= scope; ++reach) warp.seen.join(warp.acquired[reach]);
  const VectorClock clock = now(warp);
  for (std::uint8_t reach = 1; reach <= scope; ++reach) warp.fenced[reach] = clock;
  ++warp.time;
}

void Sanitizer::fence_inits(WarpCheck& warp) {
  const std::lock_guard lock(mutex_);
  for (const std::size_t reach : {1, 2}) warp.fenced[reach].add(warp.inits);
}

void Sanitizer::members(WarpCheck& warp, const std::uint32_t* members, std::uint32_t here,
                        std::uint32_t live, std::uint32_t line) {
  if ((checks_ & kCheckSync) == 0) return;
  for (std::uint32_t rest = here; rest != 0; rest &= rest - 1) {
    const auto l = static_cast<std::uint32_t>(std::countr_zero(rest));
    const std::uint32_t absent = members[l] & live & ~here;
    if (absent == 0 && (members[l] >> l & 1U) != 0) continue;
    std::string what = "a lane that its own member mask leaves out";
    if (absent != 0)
      what = fmt::format("the member mask names lanes that are elsewhere: {:#x}", absent);
    const std::lock_guard lock(mutex_);
    add({warp, l, line, {}}, "mask", std::move(what), nullptr);
    return;
  }
}

void Sanitizer::arrive(WarpCheck& warp, VectorClock& barrier) {
  const std::lock_guard lock(mutex_);
  barrier.join(now(warp));
  ++warp.time;
}

/// What fences before it cover.
void Sanitizer::arrive_relaxed(const WarpCheck& warp, VectorClock& barrier) {
  const std::lock_guard lock(mutex_);
  barrier.join(warp.fenced[2]);
}

void Sanitizer::depart(WarpCheck& warp, const VectorClock& barrier) {
  const std::lock_guard lock(mutex_);
  warp.seen.join(barrier);
}

std::uint64_t Sanitizer::now_ns() {
  constexpr std::uint64_t kTickNs = 100;
  const std::lock_guard lock(mutex_);
  return ++ticks_ * kTickNs;
}

std::uint64_t Sanitizer::progress() {
  const std::lock_guard lock(mutex_);
  return progress_;
}

}  // namespace braid::cpu
