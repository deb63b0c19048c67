#include "runtime/cpu/run/block_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "runtime/cpu/align.h"
#include "runtime/cpu/run/memory_file.h"

namespace braid::cpu {
namespace {

/// Rounds of only yields after which a block makes room for others.
constexpr int kSpinRounds = 4;

/// Lines that are a page apart share a set of the first-level cache. The register files of eight
/// warps would fill it, and a load would wait for an older store to a similar address.
constexpr std::size_t kRegisterStep = 1536;

/// The low bits of a generic address of shared memory are the shared address.
constexpr std::size_t kWindowAlign = std::size_t{1} << 24;

/// Whether the accesses of block `index`, of so many, are followed. Blocks of a grid that fits on a
/// GPU at once may differ much: all are followed. Otherwise one of each sixteenth of the grid,
/// anywhere in it: kernels often treat every 2^n-th block alike.
bool is_followed(std::uint64_t index, std::uint64_t blocks) {
  constexpr std::uint64_t kAll = 192, kFollowed = 16;
  if (blocks <= kAll) return true;
  const std::uint64_t part = index * kFollowed / blocks;
  const std::uint64_t first = (part * blocks + kFollowed - 1) / kFollowed;
  const std::uint64_t size = ((part + 1) * blocks + kFollowed - 1) / kFollowed - first;
  return index - first == ((part + 1) * 0x9e3779b97f4a7c15 >> 32U) % size;
}

}  // namespace

void BlockRunner::start(const Launch& launch, std::uint64_t index, bool glance) {
  launch_ = &launch;
  glance_ = glance;
  index_ = index;
  more_ = 0;
  error_.clear();
  block_warps_ = static_cast<std::uint32_t>((launch.block.count() + 31) / 32);
  block_count_ = static_cast<std::uint32_t>(launch.cluster.count());
  warp_count_ = block_warps_ * block_count_;
  // Resets only what a failed block left: new clocks would wait for all earlier stores.
  phase_.arrived = 0;
  if (launch.sanitizer != nullptr) phase_ = {};
  if (launch.count != nullptr) {
    counter_.start(*launch.count, index);
    counter_.next_block(
        index, block_count_,
        launch.count->sample() != nullptr || is_followed(index, launch.grid.count() / block_count_),
        glance);
  }
  const std::uint32_t needed = takes_turns() ? warp_count_ : 1;
  while (warps_.size() < needed) warps_.push_back(std::make_unique<Warp>());
  place();
}

void BlockRunner::start_all(const Launch& launch, std::uint64_t first, std::uint64_t count) {
  start(launch, first);
  more_ = count - 1;
}

/// Moves on to the next block of this run(). Allocates nothing, since the previous block had
/// everything it needs.
bool BlockRunner::next() {
  if (more_ == 0 || !error_.empty() || keeps_tensor_memory()) return false;
  --more_;
  ++index_;
  if (block_count_ > 1 || !one_stack()) {
    place();
    return true;
  }
  // Like place(), but most state is unchanged.
  Block& block = *blocks_[0];
  const Dim3& grid = launch_->grid;
  if (++block.ctaid[0] == grid.x) {
    block.ctaid[0] = 0;
    if (++block.ctaid[1] == grid.y) {
      block.ctaid[1] = 0;
      ++block.ctaid[2];
    }
  }
  begin(block);
  for (std::uint32_t w = 0; w < warp_count_; ++w) begin(*warps_[w], block);
  return true;
}

/// Prepares block, or cluster, `index_`.
void BlockRunner::place() {
  place_blocks(index_);
  if (!takes_turns()) return;
  for (std::uint32_t w = 0; w < warp_count_; ++w) {
    Warp& warp = *warps_[w];
    set_up(warp, w);
    if (!one_stack()) warp.fiber.start(&BlockRunner::warp_main, &warp, launch_->kernel.frame_bytes);
  }
}

std::vector<BlockRunner::SharedPart> BlockRunner::shared_parts(const Block& block) const {
  const std::uint32_t reserved = launch_->reserved_shared;
  const std::uint32_t own = launch_->kernel.info.shared_bytes - reserved;
  const auto at = reinterpret_cast<std::uint64_t>(block.shared);
  std::vector<SharedPart> parts{{at, own, false},
                                {at + own, reserved, true},
                                {at + own + reserved, launch_->dynamic_shared, false}};
  if (reserved == 0) parts = {{at, own + launch_->dynamic_shared, false}};
  std::erase_if(parts, [](const SharedPart& part) { return part.bytes == 0; });
  return parts;
}

/// Sets the blocks' indices in the grid, and their shared memory.
void BlockRunner::place_blocks(std::uint64_t index) {
  const Launch& launch = *launch_;
  const Dim3 cluster = launch.cluster;
  const Dim3 clusters{launch.grid.x / cluster.x, launch.grid.y / cluster.y,
                      launch.grid.z / cluster.z};
  const std::uint64_t row = index < clusters.x ? 0 : index / clusters.x;  // divisions are slow
  const std::array<std::uint32_t, 3> first = {
      static_cast<std::uint32_t>(index - row * clusters.x) * cluster.x,
      static_cast<std::uint32_t>(row == 0 ? 0 : row % clusters.y) * cluster.y,
      static_cast<std::uint32_t>(row == 0 ? 0 : row / clusters.y) * cluster.z};
  const std::uint32_t bytes = launch.kernel.info.shared_bytes + launch.dynamic_shared;
  const std::size_t span = align_up(std::size_t{bytes}, std::size_t{launch.shared_align});
  while (blocks_.size() < block_count_) blocks_.push_back(std::make_unique<Block>());
  windows_.resize(std::max<std::size_t>(windows_.size(), block_count_));
  for (std::uint32_t rank = 0; rank < block_count_; ++rank) {
    Block& block = *blocks_[rank];
    block.rank = rank;
    if (block_count_ > 1) {
      block.in_cluster = {rank % cluster.x, rank / cluster.x % cluster.y,
                          rank / cluster.x / cluster.y};
    } else {
      block.in_cluster = {};
    }
    for (std::size_t k = 0; k < 3; ++k) block.ctaid[k] = first[k] + block.in_cluster[k];
    begin(block);
    if (span > block.shared_memory.size() || block.shared == nullptr) {
      block.shared_memory = GuardedMemory(*launch.memory, span, kWindowAlign);
      for (const auto& warp : warps_) warp->set_up_for = 0;
    }
    // Placed against the guard pages behind it, if nobody knows the low bits of its addresses.
    GuardedMemory& memory = block.shared_memory;
    windows_[rank] = block.shared = launch.generic_shared ? memory.first() : memory.last(span);
    if (launch.reserved_shared > 0) {
      const std::uint32_t begin = launch.kernel.info.shared_bytes - launch.reserved_shared;
      std::memset(block.shared + begin, 0, launch.reserved_shared);
    }
    if (launch.sanitizer == nullptr) continue;
    block.known = {};
    for (const SharedPart& part : shared_parts(block)) {
      launch.sanitizer->add_memory(launch.check->stream->rank, part.address, part.bytes,
                                   "shared memory", part.reserved);
    }
  }
}

/// No warp has run, or arrived at a barrier.
inline void BlockRunner::begin(Block& block) {
  live_warps_ = warp_count_;
  block.live_warps = block_warps_;
  if (block.used_barriers != 0) block.barriers.fill({});
  block.used_barriers = 0;
  block.free_registers = 0;
  if (block.tensor != nullptr) block.tensor->reset();
}

inline void BlockRunner::begin(Warp& warp, const Block& block) const {
  warp.status = Warp::Status::kReady;
  warp.resume = 0;
  warp.left = false;
  warp.thread_registers = launch_->thread_registers;
  warp.in_cluster_phase = warp.at_cluster_barrier = false;
  std::memcpy(warp.ctaid, block.ctaid.data(), sizeof(warp.ctaid));
  std::memcpy(warp.clusterid, block.ctaid.data(), sizeof(warp.clusterid));
}

void BlockRunner::set_up(Warp& warp, std::uint32_t index) {
  const Launch& launch = *launch_;
  const std::uint32_t rank = block_count_ == 1 ? 0 : index / block_warps_;
  warp.home = blocks_[rank].get();
  const std::uint64_t of = std::uint64_t{launch.grid_id} << 32U | (index + 1);
  if (const std::uint64_t before = std::exchange(warp.set_up_for, of); before != of) {
    if (before >> 32U != of >> 32U || before == 0 || block_count_ > 1) set_up_launch(warp);
    set_up_place(warp, index - rank * block_warps_);
  }
  begin(warp, *warp.home);
  if (block_count_ > 1) {
    for (std::size_t i = 0; i < 3; ++i) warp.clusterid[i] /= warp.cluster_nctaid[i];
  }
  if (launch.sanitizer != nullptr) start_checks(warp, warp.warp);
}

/// Its index in the grid.
std::uint64_t BlockRunner::number_of(const Block& block) const {
  const auto& [x, y, z] = block.ctaid;
  return x + launch_->grid.x * (y + std::uint64_t{launch_->grid.y} * z);
}

/// Sets what is equal for all warps of a launch, except those of other blocks of a cluster.
void BlockRunner::set_up_launch(Warp& warp) {
  const Launch& launch = *launch_;
  warp.runner = this;
  warp.params = launch.params.data();
  const Block& home = *warp.home;
  warp.shared = home.shared;
  warp.local = nullptr;
  if (const std::size_t local = 32ULL * launch.kernel.info.local_bytes; local != 0) {
    if (local > warp.local_memory.size()) warp.local_memory = GuardedMemory(*launch.memory, local);
    warp.local = warp.local_memory.last(local);
  }
  const Dim3 block = launch.block;
  warp.ntid[0] = block.x;
  warp.ntid[1] = block.y;
  warp.ntid[2] = block.z;
  warp.nctaid[0] = launch.grid.x;
  warp.nctaid[1] = launch.grid.y;
  warp.nctaid[2] = launch.grid.z;
  const std::uint32_t cluster[] = {launch.cluster.x, launch.cluster.y, launch.cluster.z};
  for (std::size_t i = 0; i < 3; ++i) {
    warp.nclusterid[i] = warp.nctaid[i] / cluster[i];
    warp.cluster_nctaid[i] = cluster[i];
    warp.cluster_ctaid[i] = home.in_cluster[i];
  }
  warp.cluster_rank = home.rank;
  warp.cluster_size = block_count_;
  warp.explicit_cluster = launch.explicit_cluster ? 1 : 0;
  warp.cluster_windows = windows_.data();
  warp.grid_workspace = launch.workspace.data();
  warp.warps = warp_count_;
  warp.dynamic_shared = launch.dynamic_shared;
  warp.total_shared = launch.kernel.info.shared_bytes + launch.dynamic_shared;
  warp.grid_id = launch.grid_id;
  warp.block_tally = counter_.tally().blocks.data();
  warp.line_tally = counter_.tally().lines.data();
  warp.leader = nullptr;
}

/// Sets what is equal for this warp in all blocks of a launch.
void BlockRunner::set_up_place(Warp& warp, std::uint32_t index) {
  const Launch& launch = *launch_;
  // The register files of a block's warps start at different offsets in a page.
  const std::size_t skip = takes_turns() ? index * kRegisterStep % kPage : 0;
  warp.registers = warp.fiber.registers(launch.kernel.info.register_bytes + kPage) + skip;
  warp.warp = index;
  const Dim3 block = launch.block;
  const std::uint32_t first = index * 32;
  const std::uint32_t row = first < block.x ? 0 : first / block.x;
  warp.tid_base[0] = first - row * block.x;
  warp.tid_base[1] = row == 0 ? 0 : row % block.y;
  warp.tid_base[2] = row == 0 ? 0 : row / block.y;
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
inline void BlockRunner::check_barrier(Block& block, std::uint32_t id) {
  const Barrier& barrier = block.barriers[id];
  const std::uint32_t expected = barrier.expected == 0 ? block.live_warps : barrier.expected;
  if (barrier.arrived != 0 && barrier.arrived >= expected) release_barrier(block, id);
}

inline void BlockRunner::warp_done(Warp& warp) {
  Block& block = *warp.home;
  warp.status = Warp::Status::kDone;
  --live_warps_;
  --block.live_warps;
  if (sanitizer() != nullptr) end_checks(warp);
  for (std::uint32_t used = block.used_barriers; used != 0; used &= used - 1) {
    check_barrier(block, static_cast<std::uint32_t>(std::countr_zero(used)));
  }
  if (block_count_ == 1) return;
  // A thread that has exited counts as arrived.
  if (std::exchange(warp.in_cluster_phase, false)) --phase_.arrived;
  check_cluster_barrier();
}

/// At barrier 0, with the whole block.
inline void BlockRunner::arrive(Warp& warp) {
  Block& block = *warp.home;
  Barrier& barrier = block.barriers[0];
  ++barrier.arrived;
  barrier.expected = 0;
  barrier.waiting |= 1U << warp.warp;
  block.used_barriers |= 1U;
  warp.barrier_kind = BarrierKind::kPark;
  warp.status = Warp::Status::kWaiting;
  check_barrier(block, 0);
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
  auto* runner = static_cast<BlockRunner*>(argument);
  do {
    runner->run_warps_in_turns();
  } while (runner->next());
}

/// Runs all warps one after the other, for kernels that never wait.
void BlockRunner::straight_main(void* argument) {
  auto* warp = static_cast<Warp*>(argument);
  BlockRunner* runner = warp->runner;
  do {
    for (std::uint32_t w = 0; w < runner->warp_count_; ++w) {
      runner->set_up(*warp, w);
      runner->launch_->kernel.run(warp, warp->registers);
      --warp->home->live_warps;
      if (runner->sanitizer() != nullptr) runner->end_checks(*warp);
    }
  } while (runner->next());
}

BlockRunner::State BlockRunner::run() {
  State state = glance_          ? run_glance()
                : !takes_turns() ? run_straight()
                : one_stack()    ? run_on_one_stack()
                                 : run_waiting();
  if (state == State::kDone && !glance_ && keeps_tensor_memory()) state = State::kFailed;
  Sanitizer* const s = sanitizer();
  for (std::uint32_t rank = 0; s != nullptr && state == State::kDone && rank < block_count_;
       ++rank) {
    s->end_block(launch_->check, number_of(*blocks_[rank]));
  }
  if (state == State::kFailed) stop_checks();
  if (state == State::kDone || state == State::kFailed) end_block();
  return state;
}

/// Fiber::resume; a fault becomes the block's error.
bool BlockRunner::resume(Fiber& fiber) {
  const bool returned = fiber.resume();
  if (const auto& fault = fiber.fault()) {
    const auto& ctaid = blocks_[0]->ctaid;
    std::string what = "an address that is not aligned, or that no memory can have";
    if (fault->has_address) {
      const std::string place = launch_->memory->describe(fault->address);
      what = fmt::format("{:#x}, {}", fault->address,
                         place.empty() ? "which is not the device's memory" : place);
    }
    error_ = fmt::format("an access to {}: rank {}, block ({}, {}, {})", what, launch_->rank,
                         ctaid[0], ctaid[1], ctaid[2]);
  }
  return returned;
}

BlockRunner::State BlockRunner::run_straight() {
  Warp& warp = *warps_[0];
  warp.runner = this;
  // Buffers come first: nothing may throw on a fiber.
  set_up(warp, 0);
  warp.fiber.start(&BlockRunner::straight_main, &warp, launch_->kernel.frame_bytes);
  while (!resume(warp.fiber)) {
    if (error_.empty()) continue;
    warp.fiber.reset();
    return State::kFailed;
  }
  return State::kDone;
}

/// Parked warps leave nothing on the stack, so they can share one.
BlockRunner::State BlockRunner::run_on_one_stack() {
  Fiber& fiber = warps_[0]->fiber;
  fiber.start(&BlockRunner::block_main, this, launch_->kernel.frame_bytes);
  while (!resume(fiber)) {
    if (error_.empty()) continue;
    fiber.reset();
    return State::kFailed;
  }
  return error_.empty() ? State::kDone : State::kFailed;
}

/// Runs all warps of a block as long as they all end in the same way: at barrier 0, where no record
/// of arrivals is needed, or for good.
void BlockRunner::run_warps_together() {
  const WarpFunction run = launch_->kernel.run;
  const auto take = [&](Warp& warp, std::uint32_t end) {
    if (end == kEnds) warp_done(warp);
    if (end == kArrives) arrive(warp);
  };
  Warp& first = *warps_[0];
  for (std::uint32_t end = kArrives; end == kArrives;) {
    const std::uint32_t from = first.resume;
    end = run(&first, first.registers);
    std::uint32_t other = end;
    std::uint32_t ran = 1;
    for (; ran < warp_count_ && other == end && end != kWaits; ++ran) {
      Warp& warp = *warps_[ran];
      warp.leader = warp.resume == from ? first.registers : nullptr;
      other = run(&warp, warp.registers);
      warp.leader = nullptr;
    }
    if (other == end && end != kWaits) continue;
    for (std::uint32_t w = 0; w + 1 < ran; ++w) take(*warps_[w], end);
    take(*warps_[ran - 1], other);
    return;
  }
  live_warps_ = warps_[0]->home->live_warps = 0;
}

/// Runs each to its next barrier, or to its end.
void BlockRunner::run_warps_in_turns() {
  const WarpFunction run = launch_->kernel.run;
  if (block_count_ == 1 && sanitizer() == nullptr) run_warps_together();
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
      const bool returned = resume(warp.fiber) || warp.left;
      if (warp.left) warp.fiber.reset();
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

/// For a glance: warps that wait for one that has left, or that read uninitialized memory, have
/// been seen enough.
BlockRunner::State BlockRunner::run_glance() {
  if (run_waiting() != State::kDone) {
    for (std::uint32_t w = 0; w < warp_count_; ++w) warps_[w]->fiber.reset();
    error_.clear();
  }
  return State::kDone;
}

void BlockRunner::release_barrier(Block& block, std::uint32_t id) {
  Barrier& barrier = block.barriers[id];
  Sanitizer* const s = sanitizer();
  if (s != nullptr && id >= kNamedBarriers) tell_group(block, barrier.waiting);
  for (std::uint32_t waiting = barrier.waiting; waiting != 0; waiting &= waiting - 1) {
    const auto in_block = static_cast<std::uint32_t>(std::countr_zero(waiting));
    Warp& warp = *warps_[block.rank * block_warps_ + in_block];
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
  barrier.reset();
  if (s != nullptr) barrier.clock = {};
  block.used_barriers &= ~(1U << id);
}

std::uint32_t BlockRunner::barrier(Warp& warp, std::uint32_t id, std::uint32_t threads,
                                   std::uint32_t here, std::uint32_t live, std::uint32_t votes,
                                   BarrierKind kind, std::uint32_t line) {
  const auto refuse = [&](const char* message) { fail(warp, "barrier", message, line); };
  if (here != live) refuse("a barrier in divergent code of a warp");
  Block& block = *warp.home;
  if (id >= kNamedBarriers) refuse("barrier number out of range");
  if (threads % 32 != 0) refuse("the count of a barrier is not a multiple of 32");
  Barrier& barrier = block.barriers[id];
  if (Sanitizer* s = sanitizer()) s->arrive(warp.check, barrier.clock);
  warp.barrier_line = line;
  if (votes != 0) barrier.popc += static_cast<std::uint32_t>(std::popcount(votes));
  barrier.all = barrier.all && votes == here;
  return come(warp, id, threads / 32, kind);
}

/// Arrives at a barrier for `warps` warps, 0 for all; returns the result for the warp.
std::uint32_t BlockRunner::come(Warp& warp, std::uint32_t id, std::uint32_t warps,
                                BarrierKind kind) {
  Block& block = *warp.home;
  Barrier& barrier = block.barriers[id];
  ++barrier.arrived;
  barrier.expected = warps;
  if (kind != BarrierKind::kArrive) {
    barrier.waiting |= 1U << warp.warp;
    warp.barrier_kind = kind;
    warp.status = Warp::Status::kWaiting;
  }
  block.used_barriers |= 1U << id;
  check_barrier(block, id);
  // The last warp to arrive continues immediately.
  const bool waits = warp.status == Warp::Status::kWaiting;
  if (kind == BarrierKind::kPark) return waits ? 1 : 0;
  if (waits) warp.fiber.suspend();
  return warp.barrier_result;
}

/// barrier.cluster: every thread of the cluster arrives, and waits later.
void BlockRunner::cluster_barrier(Warp& warp, std::uint32_t here, std::uint32_t live,
                                  ClusterBarrier what, std::uint32_t line) {
  if (here != live) fail(warp, "barrier", "a cluster's barrier in divergent code of a warp", line);
  warp.barrier_line = line;
  Sanitizer* const s = sanitizer();
  if (what != ClusterBarrier::kWait) {
    if (warp.in_cluster_phase) {
      fail(warp, "barrier", "a second arrival at the cluster's barrier without a wait", line);
    }
    if (s != nullptr && what == ClusterBarrier::kArrive) s->arrive(warp.check, phase_.clock);
    if (s != nullptr && what == ClusterBarrier::kArriveRelaxed) {
      s->arrive_relaxed(warp.check, phase_.clock);
    }
    warp.in_cluster_phase = true;
    ++phase_.arrived;
    check_cluster_barrier();
    return;
  }
  if (warp.in_cluster_phase) {
    warp.at_cluster_barrier = true;
    warp.status = Warp::Status::kWaiting;
    warp.fiber.suspend();
    warp.at_cluster_barrier = false;
  }
  if (s != nullptr) s->depart(warp.check, phase_.before);
}

/// Releases all when all live warps have arrived.
void BlockRunner::check_cluster_barrier() {
  if (phase_.arrived == 0 || phase_.arrived < live_warps_) return;
  phase_.before = std::exchange(phase_.clock, {});
  phase_.arrived = 0;
  for (std::uint32_t w = 0; w < warp_count_; ++w) {
    Warp& warp = *warps_[w];
    warp.in_cluster_phase = false;
    if (warp.at_cluster_barrier) warp.status = Warp::Status::kReady;
  }
}

void BlockRunner::fail(Warp& warp, const char* kind, const char* message, std::uint32_t line) {
  // Nothing here is destroyed later, so allocations end before the fiber is left.
  error_ = std::string(message) + " (ptx:" + std::to_string(line) + ")";
  if (Sanitizer* s = sanitizer(); s != nullptr && *kind != 0) {
    s->report(warp.check, kind, message, line);
  }
  leave_for_good(warp);
}

void BlockRunner::leave_for_good(Warp& warp) {
  Fiber& fiber = one_stack() ? warps_[0]->fiber : warp.fiber;
  for (;;) fiber.suspend();
}

void BlockRunner::abandon() {
  for (std::uint32_t w = 0; w < warp_count_; ++w) warps_[w]->fiber.reset();
  stop_checks();
  end_block();
}

void BlockRunner::stop_checks() {
  Sanitizer* const s = sanitizer();
  if (s == nullptr) return;
  for (const auto& warp : warps_) s->stop_warp(warp->check);
}

void BlockRunner::end_block() {
  Sanitizer* const s = sanitizer();
  for (std::uint32_t rank = 0; s != nullptr && rank < block_count_; ++rank) {
    const Block& block = *blocks_[rank];
    for (const SharedPart& part : shared_parts(block)) s->remove_memory(part.address);
    if (block.tensor == nullptr) continue;
    block.tensor->for_each_taken([&](std::uint32_t first, std::uint32_t /*columns*/) {
      s->remove_memory(reinterpret_cast<std::uint64_t>(block.tensor->at(0, first)));
    });
  }
}

}  // namespace braid::cpu
