// Reports of a block to its observers: the sanitizer, counters, and the scheduler of interleavings,
// which stops warps before their operations.

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "runtime/cpu/ptx/opcodes.h"
#include "runtime/cpu/run/block_runner.h"

namespace braid::cpu {
namespace {

std::uint32_t value_at(std::uint64_t word) {
  std::uint32_t value = 0;
  std::memcpy(&value, reinterpret_cast<const void*>(word * 4), 4);
  return value;
}

std::vector<std::uint32_t> values_at(const std::vector<std::uint64_t>& words) {
  std::vector<std::uint32_t> values(words.size());
  std::ranges::transform(words, values.begin(), value_at);
  return values;
}

bool still_there(const std::vector<std::uint64_t>& words,
                 const std::vector<std::uint32_t>& values) {
  return std::ranges::equal(words, values, [](std::uint64_t word, std::uint32_t value) {
    return value_at(word) == value;
  });
}

}  // namespace

void BlockRunner::start_checks(Warp& warp, std::uint32_t index) {
  const Launch& launch = *launch_;
  launch.sanitizer->start_warp(warp.check, launch.check, number_of(*warp.home), index);
  if (warp.local != nullptr) {
    launch.sanitizer->add_memory(launch.check->stream->rank,
                                 reinterpret_cast<std::uint64_t>(warp.local),
                                 32ULL * launch.kernel.info.local_bytes, "local memory", false,
                                 launch.kernel.info.local_bytes);
  }
  warp.unwritten_reads = 0;
  warp.registers_seen.clear();
  warp.stopped = false;
  warp.done = {};
  warp.reads.clear();
}

void BlockRunner::check_access(Warp& warp, std::span<const std::uint64_t* const> places,
                               std::uint32_t mask, AccessCode code, std::uint32_t line,
                               const Sanitizer::Values* values) {
  const bool scheduled = launch_->scheduler != nullptr && code.scope != 0 && mask != 0;
  // Before the check: what it takes note of is done right after it.
  if (scheduled) stop(warp, places, mask, code, line);
  {
    std::string refusal;
    for (const std::uint64_t* const addresses : places) {
      refusal = sanitizer()->access(warp.check, addresses, mask, code, line, values);
      if (!refusal.empty()) break;
    }
    warp.unwritten_reads = warp.check.unwritten_reads;
    if (refusal.empty()) {
      if (scheduled) warp.done = {line, warp.operation.words, values_at(warp.operation.words)};
      return;
    }
    error_ = refusal + " (ptx:" + std::to_string(line) + ")";
  }
  leave_for_good(warp);
}

void BlockRunner::check_async_access(Warp& warp, std::uint64_t address, std::size_t bytes,
                                     AccessCode::Kind kind, std::uint32_t line) {
  warp.message = sanitizer()->async_access(warp.check, address, bytes, {.kind = kind}, 0, line);
  if (!warp.message.empty()) fail(warp, "", warp.message.c_str(), line);
}

void BlockRunner::count_access(Warp& warp, const std::uint64_t* addresses, std::uint32_t mask,
                               AccessCode access, std::uint32_t place) {
  // In the shared memory of a block of the cluster.
  const auto is_shared = [&](std::uint64_t at) {
    return std::any_of(warp.cluster_windows, warp.cluster_windows + warp.cluster_size,
                       [&](const std::uint8_t* window) {
                         return at - reinterpret_cast<std::uint64_t>(window) < warp.total_shared;
                       });
  };
  std::uint32_t shared = 0;
  for (std::uint32_t left = mask; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    if (is_shared(addresses[lane])) shared |= 1U << lane;
  }
  counter_.shared_access(addresses, shared, access, place);
  counter_.global_access(warp, addresses, mask & ~shared, access, place);
  leave_where_seen(warp);
}

const MulticastPlaces& BlockRunner::places_everywhere(Warp& warp, const std::uint64_t* addresses,
                                                      std::uint32_t mask, std::size_t bytes,
                                                      std::size_t align, std::uint32_t line) {
  bool good = false;
  {
    const MulticastTable::Refusal refusal =
        launch_->multicasts->find(addresses, mask, bytes, align, warp.places);
    good = refusal.message.empty();
    if (!good) {
      error_ = refusal.message + " (ptx:" + std::to_string(line) + ")";
      if (Sanitizer* s = sanitizer(); s != nullptr) {
        s->report(warp.check, refusal.kind, refusal.message, line);
      }
    }
  }
  if (!good) leave_for_good(warp);
  return warp.places;
}

const MulticastPlaces& BlockRunner::multicast_places(Warp& warp, const std::uint64_t* addresses,
                                                     std::uint32_t mask, AccessCode access,
                                                     std::uint32_t line, std::uint32_t place) {
  places_everywhere(warp, addresses, mask, access.bytes, access.bytes, line);
  if (sanitizer() != nullptr) {
    warp.place_lanes.clear();
    for (const auto& place : warp.places) warp.place_lanes.push_back(place.data());
    check_access(warp, warp.place_lanes, mask, access, line);
  }
  if (launch_->count != nullptr) counter_.multicast_access(warp.places, mask, access, place);
  if (glance_) {
    warp.left = true;
    leave_for_good(warp);
  }
  return warp.places;
}

void BlockRunner::stop(Warp& warp, std::span<const std::uint64_t* const> places, std::uint32_t mask,
                       AccessCode code, std::uint32_t line) {
  note_done(warp);
  Operation& operation = warp.operation;
  operation.agent = {warp.check.launch->stream->rank, launch_->ordinal, warp.check.block,
                     warp.warp};
  operation.blocks = launch_->grid.count();
  operation.line = line;
  operation.writes = code.kind != AccessCode::kLoad;
  operation.words.clear();
  for (const std::uint64_t* const addresses : places) {
    for (std::uint32_t left = mask; left != 0; left &= left - 1) {
      const std::uint64_t address = addresses[std::countr_zero(left)];
      for (std::uint64_t word = address / 4; word <= (address + code.bytes - 1) / 4; ++word) {
        operation.words.push_back(word);
      }
    }
  }
  std::ranges::sort(operation.words);
  operation.words.erase(std::unique(operation.words.begin(), operation.words.end()),
                        operation.words.end());
  warp.polls = std::ranges::any_of(warp.reads, [&](const auto& read) {
    return read.line == operation.line && read.words == operation.words;
  });
  note_registers(warp);
  warp.stopped = true;
  warp.looked_at = kNever;
  warp.fiber.suspend();
}

void BlockRunner::note_registers(Warp& warp) const {
  const std::uint64_t progress = sanitizer()->progress();
  if (std::exchange(warp.progress_then, progress) != progress) warp.registers_seen.clear();
  const std::uint64_t hash = XXH3_64bits(warp.registers, launch_->kernel.info.register_bytes);
  const bool first = warp.registers_seen.insert(hash).second;
  warp.moved = warp.moved || first;
}

bool BlockRunner::moved() {
  bool any = false;
  for (std::uint32_t w = 0; w < warp_count_; ++w) {
    any = any || warps_[w]->moved;
    warps_[w]->moved = false;
  }
  return any;
}

/// The warp's last operation is over; if it changed nothing, it may be a poll.
void BlockRunner::note_done(Warp& warp) {
  if (warp.done.words.empty()) return;
  if (still_there(warp.done.words, warp.done.values)) {
    warp.reads.push_back(std::move(warp.done));
  } else {
    warp.reads.clear();
  }
  warp.done = {};
}

/// Whether any value that the warp read since its last change is different now.
bool BlockRunner::reads_are_stale(const Warp& warp) {
  return std::ranges::any_of(
      warp.reads, [](const auto& read) { return !still_there(read.words, read.values); });
}

void BlockRunner::stopped_warps(bool polling, std::uint64_t writes,
                                std::vector<std::pair<BlockRunner*, Warp*>>& warps) {
  // Values seen unchanged stay so until somebody writes.
  const auto goes_on = [&](Warp& warp) {
    if (!warp.polls || polling) return true;
    if (std::exchange(warp.looked_at, writes) != writes) warp.stale = reads_are_stale(warp);
    return warp.stale;
  };
  for (std::uint32_t w = 0; w < warp_count_; ++w) {
    Warp& warp = *warps_[w];
    if (warp.status != Warp::Status::kReady || !warp.stopped) continue;
    if (goes_on(warp)) warps.emplace_back(this, &warp);
  }
}

void BlockRunner::grant(Warp& warp) {
  warp.stopped = false;
  if (reads_are_stale(warp)) warp.reads.clear();
}

bool BlockRunner::stands() {
  bool all = true;
  for (std::uint32_t w = 0; w < warp_count_; ++w) {
    Warp& warp = *warps_[w];
    if (warp.status == Warp::Status::kDone) continue;
    const std::uint64_t registers =
        XXH3_64bits(warp.registers, launch_->kernel.info.register_bytes);
    const bool same = std::exchange(warp.registers_then, registers) == registers;
    all = std::exchange(warp.acted, 0U) == 0 && same && all;
  }
  return all;
}

std::string BlockRunner::what_waits(const ptx::Function& code, const SourceLines& source) const {
  const Warp* first = nullptr;
  std::uint32_t live = 0;
  for (std::uint32_t w = 0; w < warp_count_; ++w) {
    if (warps_[w]->status == Warp::Status::kDone) continue;
    ++live;
    const bool polls = warps_[w]->status == Warp::Status::kReady;
    if (first == nullptr || (polls && first->status != Warp::Status::kReady)) first = &*warps_[w];
  }
  if (first == nullptr) return "";
  const std::uint32_t line = first->poll_line;
  const auto poll =
      std::ranges::find_if(code.body, [&](const ptx::Instruction& i) { return i.line == line; });
  const std::string_view name = poll == code.body.end() ? "" : std::string_view(poll->name);
  const bool in_block = poll != code.body.end() && (ptx::has_modifier(*poll, "shared") ||
                                                    ptx::has_modifier(*poll, "shared::cta"));
  const Dim3 thread = position(first->warp * 32ULL, launch_->block);
  const auto& block = first->home->ctaid;
  std::string text =
      fmt::format("rank {}, block ({}, {}, {}), thread ({}, {}, {}) {}", launch_->rank, block[0],
                  block[1], block[2], thread.x, thread.y, thread.z,
                  name == "setmaxnreg" ? "waits for registers that its block does not have"
                  : name == "mbarrier" ? "polls an mbarrier"
                  : in_block           ? "polls shared memory"
                                       : "polls memory");
  if (const std::uint32_t cuda = source.cuda_line(line); cuda != 0) {
    text += fmt::format(", {}:{}", source.cuda_file(line), cuda);
  }
  text += fmt::format(", {}:{}", source.ptx_file, line);
  if (live > 1) text += fmt::format("; {} more of its warps wait", live - 1);
  return text;
}

std::vector<const WarpCheck*> BlockRunner::live_checks() const {
  std::vector<const WarpCheck*> checks;
  for (std::uint32_t w = 0; w < warp_count_; ++w) {
    if (warps_[w]->status != Warp::Status::kDone) checks.push_back(&warps_[w]->check);
  }
  return checks;
}

void BlockRunner::end_checks(Warp& warp) {
  Block& block = *warp.home;
  if (block_count_ > 1) sanitizer()->arrive(warp.check, block.known);
  sanitizer()->end_warp(warp.check, reinterpret_cast<const std::uint32_t*>(warp.registers));
  if (block_count_ > 1 && block.live_warps == 0) {
    sanitizer()->exit_block(warp.check, block.known, reinterpret_cast<std::uint64_t>(block.shared));
  }
  if (warp.local != nullptr) {
    sanitizer()->remove_memory(reinterpret_cast<std::uint64_t>(warp.local));
  }
}

}  // namespace braid::cpu
