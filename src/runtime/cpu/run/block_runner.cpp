#include "runtime/cpu/run/block_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <string_view>
#include <utility>

#include "runtime/cpu/run/runtime_helpers.h"

namespace braid::cpu {
namespace {

/// Rounds of nothing but yields after which a block makes room for others.
constexpr int kSpinRounds = 4;

/// Lines that are a page apart share a set of the first cache, which the register files of eight
/// warps would fill, and a load waits for an older store that only seems to be to its address.
constexpr std::size_t kPage = 4096;
constexpr std::size_t kRegisterStep = 1536;

std::vector<std::uint32_t> values_at(const std::vector<std::uint64_t>& words) {
  std::vector<std::uint32_t> values(words.size());
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::memcpy(&values[i], reinterpret_cast<const void*>(words[i] * 4), 4);
  }
  return values;
}

}  // namespace

void BlockRunner::start(const Launch& launch, std::uint64_t index) {
  launch_ = &launch;
  error_.clear();
  const std::uint64_t row =
      index < launch.grid.x ? 0 : index / launch.grid.x;  // divisions are slow
  ctaid_[0] = static_cast<std::uint32_t>(index - row * launch.grid.x);
  ctaid_[1] = static_cast<std::uint32_t>(row == 0 ? 0 : row % launch.grid.y);
  ctaid_[2] = static_cast<std::uint32_t>(row == 0 ? 0 : row / launch.grid.y);
  const auto threads = static_cast<std::uint32_t>(launch.block.count());
  warp_count_ = (threads + 31) / 32;
  live_warps_ = warp_count_;
  const std::uint32_t shared = launch.kernel.info.shared_bytes + launch.dynamic_shared;
  if (shared > shared_memory_.size() || shared_ == nullptr) {
    shared_memory_ = GuardedMemory(*launch.memory, shared);
    for (const auto& warp : warps_) warp->set_up_for = 0;
  }
  shared_ = shared_memory_.last(shared);
  if (launch.sanitizer != nullptr && shared > 0) {
    launch.sanitizer->add_memory(launch.check->stream->rank,
                                 reinterpret_cast<std::uint64_t>(shared_), shared, "shared memory",
                                 false);
  }
  if (launch.count != nullptr) counter_.start(*launch.count);
  const bool waits = launch.takes_turns();
  const std::uint32_t needed = waits ? warp_count_ : 1;
  while (warps_.size() < needed) warps_.push_back(std::make_unique<Warp>());
  if (!waits) return;
  if (used_barriers_ != 0) barriers_.fill({});
  used_barriers_ = 0;
  for (std::uint32_t w = 0; w < warp_count_; ++w) {
    Warp& warp = *warps_[w];
    set_up(warp, w);
    if (!launch.one_stack()) warp.fiber.start(&BlockRunner::warp_main, &warp);
  }
}

void BlockRunner::set_up(Warp& warp, std::uint32_t index) {
  const Launch& launch = *launch_;
  const std::uint64_t of = std::uint64_t{launch.grid_id} << 32U | (index + 1);
  if (std::exchange(warp.set_up_for, of) != of) set_up_launch(warp, index);
  warp.status = Warp::Status::kReady;
  warp.resume = 0;
  for (std::size_t i = 0; i < 3; ++i) warp.ctaid[i] = warp.clusterid[i] = ctaid_[i];
  if (launch.sanitizer != nullptr) start_checks(warp, index);
}

void BlockRunner::start_checks(Warp& warp, std::uint32_t index) {
  const Launch& launch = *launch_;
  const std::uint64_t block =
      ctaid_[0] + launch.grid.x * (ctaid_[1] + std::uint64_t{launch.grid.y} * ctaid_[2]);
  launch.sanitizer->start_warp(warp.check, launch.check, block, index);
  if (warp.local != nullptr) {
    launch.sanitizer->add_memory(launch.check->stream->rank,
                                 reinterpret_cast<std::uint64_t>(warp.local),
                                 32ULL * launch.kernel.info.local_bytes, "local memory", false,
                                 launch.kernel.info.local_bytes);
  }
  warp.registers_seen.clear();
  warp.stopped = false;
  warp.done = {};
  warp.reads.clear();
}

/// What is the same for this warp of all blocks of a launch.
void BlockRunner::set_up_launch(Warp& warp, std::uint32_t index) {
  const Launch& launch = *launch_;
  warp.runner = this;
  warp.params = launch.params.data();
  warp.shared = shared_;
  warp.local = nullptr;
  if (const std::size_t local = 32ULL * launch.kernel.info.local_bytes; local != 0) {
    if (local > warp.local_memory.size()) warp.local_memory = GuardedMemory(*launch.memory, local);
    warp.local = warp.local_memory.last(local);
  }
  // The files of a block's warps begin in different parts of a page.
  const std::size_t skip = launch.takes_turns() ? index * kRegisterStep % kPage : 0;
  warp.registers = warp.fiber.registers(launch.kernel.info.register_bytes + kPage) + skip;
  const Dim3 block = launch.block;
  warp.ntid[0] = block.x;
  warp.ntid[1] = block.y;
  warp.ntid[2] = block.z;
  warp.nctaid[0] = launch.grid.x;
  warp.nctaid[1] = launch.grid.y;
  warp.nctaid[2] = launch.grid.z;
  std::copy_n(warp.nctaid, 3, warp.nclusterid);
  warp.grid_workspace = launch.workspace.data();
  warp.warp = index;
  warp.warps = warp_count_;
  warp.dynamic_shared = launch.dynamic_shared;
  warp.total_shared = launch.kernel.info.shared_bytes + launch.dynamic_shared;
  warp.grid_id = launch.grid_id;
  warp.block_tally = counter_.tally().blocks.data();
  warp.line_tally = counter_.tally().lines.data();
  const std::uint32_t first = index * 32;
  warp.tid_base[0] = first % block.x;
  warp.tid_base[1] = first / block.x % block.y;
  warp.tid_base[2] = first / block.x / block.y;
  if (launch.aligned) {
    warp.live = ~0U;
    return;
  }
  const auto threads = static_cast<std::uint32_t>(block.count());
  warp.live = threads - first >= 32 ? ~0U : (1U << (threads - first)) - 1;
  for (std::uint32_t l = 0; l < 32; ++l) {
    const std::uint32_t t = first + l;
    warp.tid[0][l] = t % block.x;
    warp.tid[1][l] = t / block.x % block.y;
    warp.tid[2][l] = t / block.x / block.y;
  }
}

/// Releases a barrier that all expected warps have reached.
inline void BlockRunner::check_barrier(std::uint32_t id) {
  const Barrier& barrier = barriers_[id];
  const std::uint32_t expected = barrier.expected == 0 ? live_warps_ : barrier.expected;
  if (barrier.arrived != 0 && barrier.arrived >= expected) release_barrier(id);
}

inline void BlockRunner::warp_done(Warp& warp) {
  warp.status = Warp::Status::kDone;
  --live_warps_;
  if (sanitizer() != nullptr) end_checks(warp);
  for (std::uint32_t used = used_barriers_; used != 0; used &= used - 1) {
    check_barrier(static_cast<std::uint32_t>(std::countr_zero(used)));
  }
}

/// At barrier 0, with the whole block.
inline void BlockRunner::arrive(Warp& warp) {
  Barrier& barrier = barriers_[0];
  ++barrier.arrived;
  barrier.expected = 0;
  barrier.waiting |= 1U << warp.warp;
  used_barriers_ |= 1U;
  warp.barrier_kind = BarrierKind::kPark;
  warp.status = Warp::Status::kWaiting;
  check_barrier(0);
}

void BlockRunner::warp_main(void* argument) {
  auto* warp = static_cast<Warp*>(argument);
  BlockRunner* runner = warp->runner;
  for (;;) {
    const std::uint32_t end = runner->launch_->kernel.run(warp, warp->registers);
    if (end == kEnds) return;
    if (end == kArrives) runner->arrive(*warp);
    if (warp->status == Warp::Status::kWaiting) warp->fiber.suspend();
  }
}

void BlockRunner::block_main(void* argument) {
  static_cast<BlockRunner*>(argument)->run_warps_in_turns();
}

/// All warps one after the other, for kernels that never wait.
void BlockRunner::straight_main(void* argument) {
  auto* warp = static_cast<Warp*>(argument);
  BlockRunner* runner = warp->runner;
  for (std::uint32_t w = 0; w < runner->warp_count_; ++w) {
    runner->set_up(*warp, w);
    runner->launch_->kernel.run(warp, warp->registers);
    if (runner->sanitizer() != nullptr) runner->end_checks(*warp);
  }
}

BlockRunner::State BlockRunner::run() {
  const State state = !launch_->takes_turns() ? run_straight()
                      : launch_->one_stack()  ? run_on_one_stack()
                                              : run_waiting();
  if (state == State::kDone || state == State::kFailed) end_block();
  return state;
}

/// As Fiber::resume; a fault becomes the error of the block.
bool BlockRunner::resume(Fiber& fiber) {
  const bool returned = fiber.resume();
  if (const auto& fault = fiber.fault()) {
    std::string what = "an address that is not aligned, or that no memory can have";
    if (fault->has_address) {
      const std::string place = launch_->memory->describe(fault->address);
      what = fmt::format("{:#x}, {}", fault->address,
                         place.empty() ? "which is not the device's memory" : place);
    }
    error_ = fmt::format("an access to {}: rank {}, block ({}, {}, {})", what, launch_->rank,
                         ctaid_[0], ctaid_[1], ctaid_[2]);
  }
  return returned;
}

BlockRunner::State BlockRunner::run_straight() {
  Warp& warp = *warps_[0];
  warp.runner = this;
  // Buffers first: nothing may throw on a fiber.
  set_up(warp, 0);
  warp.fiber.start(&BlockRunner::straight_main, &warp);
  while (!resume(warp.fiber)) {
    if (error_.empty()) continue;
    warp.fiber.reset();
    return State::kFailed;
  }
  return State::kDone;
}

/// Warps that park leave nothing on the stack, so they can share one.
BlockRunner::State BlockRunner::run_on_one_stack() {
  Fiber& fiber = warps_[0]->fiber;
  fiber.start(&BlockRunner::block_main, this);
  while (!resume(fiber)) {
    if (error_.empty()) continue;
    fiber.reset();
    return State::kFailed;
  }
  return error_.empty() ? State::kDone : State::kFailed;
}

/// Each runs to its next barrier, or to its end.
void BlockRunner::run_warps_in_turns() {
  const WarpFunction run = launch_->kernel.run;
  while (live_warps_ > 0) {
    bool ran = false;
    for (std::size_t w = 0; w < warp_count_; ++w) {
      Warp& warp = *warps_[w];
      if (warp.status != Warp::Status::kReady) continue;
      ran = true;
      const std::uint32_t end = run(&warp, warp.registers);
      if (end == kEnds) warp_done(warp);
      if (end == kArrives) arrive(warp);
    }
    if (ran) continue;
    report_deadlock();
    return;
  }
}

void BlockRunner::report_deadlock() {
  error_ = "deadlock: every warp waits at a barrier that the others do not reach";
  Sanitizer* const s = sanitizer();
  for (std::uint32_t w = 0; s != nullptr && w < warp_count_; ++w) {
    if (warps_[w]->status != Warp::Status::kWaiting) continue;
    s->report(warps_[w]->check, "deadlock", error_.substr(10), warps_[w]->barrier_line);
    return;
  }
}

BlockRunner::State BlockRunner::run_waiting() {
  int idle_rounds = 0;
  progressed_ = false;
  while (live_warps_ > 0) {
    bool progress = false;
    bool ran = false;
    bool stopped = false;
    for (std::size_t w = 0; w < warp_count_; ++w) {
      Warp& warp = *warps_[w];
      if (warp.status != Warp::Status::kReady) continue;
      if (warp.stopped) {
        stopped = true;
        continue;
      }
      ran = true;
      warp.yielded = false;
      const bool returned = resume(warp.fiber);
      if (!error_.empty()) break;
      if (returned) warp_done(warp);
      progress = progress || !warp.yielded;
    }
    if (error_.empty() && !ran && stopped) return State::kStopped;
    if (error_.empty() && !ran) report_deadlock();
    if (!error_.empty()) {
      for (std::uint32_t w = 0; w < warp_count_; ++w) warps_[w]->fiber.reset();
      return State::kFailed;
    }
    progressed_ = progressed_ || progress;
    idle_rounds = progress ? 0 : idle_rounds + 1;
    if (idle_rounds >= kSpinRounds) return State::kSpinning;
  }
  return State::kDone;
}

void BlockRunner::release_barrier(std::uint32_t id) {
  Barrier& barrier = barriers_[id];
  Sanitizer* const s = sanitizer();
  for (std::uint32_t waiting = barrier.waiting; waiting != 0; waiting &= waiting - 1) {
    Warp& warp = *warps_[static_cast<std::size_t>(std::countr_zero(waiting))];
    switch (warp.barrier_kind) {
      case BarrierKind::kPopc:
        warp.barrier_result = barrier.popc;
        break;
      case BarrierKind::kAnd:
        warp.barrier_result = barrier.all ? 1 : 0;
        break;
      default:
        warp.barrier_result = barrier.popc != 0 ? 1 : 0;
        break;
    }
    warp.status = Warp::Status::kReady;
    if (s != nullptr) s->depart(warp.check, barrier.clock);
  }
  barrier = {};
  used_barriers_ &= ~(1U << id);
}

std::uint32_t BlockRunner::barrier(Warp& warp, std::uint32_t id, std::uint32_t threads,
                                   std::uint32_t here, std::uint32_t live, std::uint32_t votes,
                                   BarrierKind kind, std::uint32_t line) {
  const auto refuse = [&](const char* message) { fail(warp, "barrier", message, line); };
  if (here != live) refuse("a barrier in divergent code of a warp");
  if (id >= barriers_.size()) refuse("barrier number out of range");
  if (threads % 32 != 0) refuse("the count of a barrier is not a multiple of 32");
  Barrier& barrier = barriers_[id];
  if (Sanitizer* s = sanitizer()) s->arrive(warp.check, barrier.clock);
  warp.barrier_line = line;
  ++barrier.arrived;
  barrier.expected = threads / 32;
  if (votes != 0) barrier.popc += static_cast<std::uint32_t>(std::popcount(votes));
  barrier.all = barrier.all && votes == here;
  if (kind != BarrierKind::kArrive) {
    barrier.waiting |= 1U << warp.warp;
    warp.barrier_kind = kind;
    warp.status = Warp::Status::kWaiting;
  }
  used_barriers_ |= 1U << id;
  check_barrier(id);
  // The last to arrive goes on at once.
  const bool waits = warp.status == Warp::Status::kWaiting;
  if (kind == BarrierKind::kPark) return waits ? 1 : 0;
  if (waits) warp.fiber.suspend();
  return warp.barrier_result;
}

void BlockRunner::fail(Warp& warp, const char* kind, const char* message, std::uint32_t line) {
  // Nothing here is destroyed later: what allocates ends before the fiber is left.
  error_ = std::string(message) + " (ptx:" + std::to_string(line) + ")";
  if (Sanitizer* s = sanitizer(); s != nullptr && *kind != 0) {
    s->report(warp.check, kind, message, line);
  }
  leave_for_good(warp);
}

void BlockRunner::check_access(Warp& warp, std::span<const std::uint64_t* const> places,
                               std::uint32_t mask, std::uint32_t code, std::uint32_t line,
                               const Sanitizer::Values* values) {
  const AccessCode access = AccessCode::unpack(code);
  const bool scheduled = launch_->scheduler != nullptr && access.scope != 0 && mask != 0;
  // Before the check: what it takes note of is done right after it.
  if (scheduled) stop(warp, places, mask, access, line);
  {
    std::string refusal;
    for (const std::uint64_t* const addresses : places) {
      refusal = sanitizer()->access(warp.check, addresses, mask, access, line, values);
      if (!refusal.empty()) break;
    }
    if (refusal.empty()) {
      if (scheduled) warp.done = {line, warp.operation.words, values_at(warp.operation.words)};
      return;
    }
    error_ = refusal + " (ptx:" + std::to_string(line) + ")";
  }
  leave_for_good(warp);
}

const MulticastPlaces& BlockRunner::multicast_places(Warp& warp, const std::uint64_t* addresses,
                                                     std::uint32_t mask, std::uint32_t code,
                                                     std::uint32_t line, std::uint32_t place) {
  const AccessCode access = AccessCode::unpack(code);
  bool good = false;
  {
    const MulticastTable::Refusal refusal =
        launch_->multicasts->find(addresses, mask, access.bytes, warp.places);
    good = refusal.message.empty();
    if (!good) {
      error_ = refusal.message + " (ptx:" + std::to_string(line) + ")";
      if (Sanitizer* s = sanitizer(); s != nullptr) {
        s->report(warp.check, refusal.kind, refusal.message, line);
      }
    }
  }
  if (!good) leave_for_good(warp);
  if (sanitizer() != nullptr) {
    warp.place_lanes.clear();
    for (const auto& place : warp.places) warp.place_lanes.push_back(place.data());
    check_access(warp, warp.place_lanes, mask, code, line);
  }
  if (launch_->count != nullptr) counter_.multicast_access(warp.places, mask, access, place);
  return warp.places;
}

void BlockRunner::leave_for_good(Warp& warp) {
  Fiber& fiber = launch_->one_stack() ? warps_[0]->fiber : warp.fiber;
  for (;;) fiber.suspend();
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
  std::sort(operation.words.begin(), operation.words.end());
  operation.words.erase(std::unique(operation.words.begin(), operation.words.end()),
                        operation.words.end());
  note_registers(warp);
  warp.stopped = true;
  warp.fiber.suspend();
}

void BlockRunner::note_registers(Warp& warp) const {
  const std::string_view registers(reinterpret_cast<const char*>(warp.registers),
                                   launch_->kernel.info.register_bytes);
  const std::uint64_t progress = sanitizer()->progress();
  if (std::exchange(warp.progress_then, progress) != progress) warp.registers_seen.clear();
  const bool first = warp.registers_seen.insert(std::hash<std::string_view>()(registers)).second;
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

/// The warp's last operation is over: one that changed nothing may be a poll.
void BlockRunner::note_done(Warp& warp) {
  if (warp.done.words.empty()) return;
  if (std::vector<std::uint32_t> now = values_at(warp.done.words); now != warp.done.values) {
    warp.reads.clear();
  } else {
    warp.reads.push_back(std::move(warp.done));
  }
  warp.done = {};
}

/// Whether anything that the warp read since it last changed something is different now.
bool BlockRunner::reads_are_stale(const Warp& warp) {
  return std::any_of(warp.reads.begin(), warp.reads.end(),
                     [](const auto& read) { return values_at(read.words) != read.values; });
}

void BlockRunner::stopped_warps(bool polling, std::vector<std::pair<BlockRunner*, Warp*>>& warps) {
  for (std::uint32_t w = 0; w < warp_count_; ++w) {
    Warp& warp = *warps_[w];
    if (warp.status != Warp::Status::kReady || !warp.stopped) continue;
    const bool again = std::any_of(warp.reads.begin(), warp.reads.end(), [&](const auto& read) {
      return read.line == warp.operation.line && read.words == warp.operation.words;
    });
    if (polling || !again || reads_are_stale(warp)) warps.emplace_back(this, &warp);
  }
}

void BlockRunner::grant(Warp& warp) {
  warp.stopped = false;
  if (reads_are_stale(warp)) warp.reads.clear();
}

std::vector<const WarpCheck*> BlockRunner::live_checks() const {
  std::vector<const WarpCheck*> checks;
  for (std::uint32_t w = 0; w < warp_count_; ++w) {
    if (warps_[w]->status != Warp::Status::kDone) checks.push_back(&warps_[w]->check);
  }
  return checks;
}

void BlockRunner::end_checks(Warp& warp) {
  sanitizer()->end_warp(warp.check);
  if (warp.local != nullptr) {
    sanitizer()->remove_memory(reinterpret_cast<std::uint64_t>(warp.local));
  }
}

void BlockRunner::abandon() {
  for (std::uint32_t w = 0; w < warp_count_; ++w) warps_[w]->fiber.reset();
  end_block();
}

void BlockRunner::end_block() {
  if (Sanitizer* s = sanitizer()) {
    s->remove_memory(reinterpret_cast<std::uint64_t>(shared_));
  }
}

}  // namespace braid::cpu
