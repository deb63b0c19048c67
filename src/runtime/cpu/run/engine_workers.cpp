// The threads of the engine.

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <new>
#include <system_error>
#include <utility>

#include "runtime/cpu/run/engine.h"
#include "runtime/cpu/run/rounding_scope.h"
#include "runtime/cpu/run/short_lock.h"

namespace braid::cpu {
namespace {

/// Runs `body` for a block; an exception becomes its error.
template <class Body>
BlockRunner::State caught(std::string& error, Body body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    error = "out of memory";
  } catch (const Error& failure) {
    error = failure.what();
  }
  return BlockRunner::State::kFailed;
}

/// Prepares blocks by `start`, and runs them; an error goes to `error`.
template <class Start>
BlockRunner::State run(std::unique_ptr<BlockRunner>& runner, std::string& error, Start start) {
  const BlockRunner::State state = caught(error, [&] {
    if (runner == nullptr) runner = std::make_unique<BlockRunner>();
    start(*runner);
    return runner->run();
  });
  if (!error.empty()) {
    runner.reset();  // it stopped in the middle of something
  } else if (state == BlockRunner::State::kFailed) {
    error = runner->error();
  }
  return state;
}

}  // namespace

bool Engine::have_work() const {
  if (scheduler_ != nullptr && draining_ == 0) return false;
  if (!tasks_.empty() || !grids_.empty()) return true;
  if (held_.empty() && suspended_.empty()) return false;
  // More may come from the host, or from what is running.
  return !counts_apart() || (running_ == 0 && draining_ != 0);
}

/// Whether its blocks wait until nobody else can continue.
bool Engine::holds_back(const Launch& launch) const {
  return counts_apart() && launch.waits() == Waits::kAnywhere;
}

void Engine::Grid::start(BlockRunner& runner, std::uint64_t n) const {
  const Launch& launch = op->launch;
  const BlockSample* const sample = launch.count == nullptr ? nullptr : launch.count->sample();
  if (sample == nullptr) return runner.start(launch, n);
  const std::uint64_t counted = sample->blocks().size();
  if (n < counted) return runner.start(launch, sample->blocks()[n]);
  runner.start(launch, launch.count->glances().first() + (n - counted), true);
}

/// A grid with blocks not yet started. Grids take turns, so that ranks that wait for each other
/// start together.
std::shared_ptr<Engine::Grid> Engine::take_grid() {
  std::deque<std::shared_ptr<Grid>>& grids = grids_.empty() ? held_ : grids_;
  // In which order streams came to those that were held back is chance.
  const auto next = grids_.empty()
                        ? std::ranges::min_element(grids,
                                                   [](const auto& a, const auto& b) {
                                                     return std::pair(a->next, a->stream->rank) <
                                                            std::pair(b->next, b->stream->rank);
                                                   })
                        : grids.begin();
  std::shared_ptr<Grid> grid = std::move(*next);
  grids.erase(next);
  return grid;
}

/// The most blocks that may be started before others must wait for them. Counted polls say nothing
/// about a GPU, which runs all blocks of such a grid at once, so there the limit is practically
/// none.
std::size_t Engine::most_live() const {
  if (!counts_apart()) return kMaxLive;
  const Launch& next = (grids_.empty() ? held_ : grids_).front()->op->launch;
  const std::uint64_t warps = (next.block.count() + 31) / 32 * next.cluster.count();
  return std::max<std::size_t>(kMaxLive, kMaxLiveWarps / std::max<std::uint64_t>(warps, 1));
}

/// Whether to start blocks before resuming those that spin.
bool Engine::prefer_new() {
  if (grids_.empty() && held_.empty()) return false;
  if (suspended_.empty() || (counts_apart() && !grids_.empty())) return true;
  // A choice involves everyone who can be there; missing blocks make others poll.
  const bool all = scheduler_ != nullptr || counts_apart();
  const std::size_t most = most_live();
  if (all && suspended_.size() < most) return true;
  if (suspended_.size() >= most) {
    if (resumed_in_vain_ < suspended_.size()) return false;
    resumed_in_vain_ = 0;
    return true;
  }
  turn_ = !turn_;
  return turn_;
}

void Engine::worker() {
  const SignalStack signals;
  const FloatDefaults floats;
  std::unique_lock lock(mutex_);
  for (;;) {
    poll_values();
    if (!have_work()) look_for_work(lock);
    if (!have_work()) {
      if (stop_) return;
      ++sleeping_;
      if (value_waits_.empty()) {
        work_.wait(lock, [&] { return stop_ || have_work() || !value_waits_.empty(); });
      } else {
        work_.wait_for(lock, kValuePeriod, [&] { return stop_ || have_work(); });
      }
      --sleeping_;
      continue;
    }
    ++running_;
    if (!tasks_.empty()) {
      run_task(lock);
    } else if (prefer_new()) {
      start_blocks(lock);
    } else {
      resume_block(lock);
    }
    --running_;
  }
}

/// Polls briefly for work: to sleep and be woken takes longer than a small kernel. Meanwhile it
/// yields the core to the host.
void Engine::look_for_work(std::unique_lock<std::mutex>& lock) {
  const std::uint32_t before = handed_over_.load(std::memory_order_relaxed);
  lock.unlock();
  for (int look = 0; look < kLooks; ++look) {
    if (handed_over_.load(std::memory_order_relaxed) != before) break;
    std::this_thread::yield();
  }
  take(lock);
}

/// Continues the streams whose words have reached their values.
void Engine::poll_values() {
  for (std::size_t i = 0; i < value_waits_.size();) {
    const bool reached = value_waits_[i].op.reached();
    if (!reached && failure_.empty()) {
      ++i;
      continue;
    }
    const std::shared_ptr<StreamState> stream = std::move(value_waits_[i].stream);
    if (reached && sanitizer_ != nullptr) {
      sanitizer_->heard(*stream->clock, value_waits_[i].op.address);
    }
    value_waits_.erase(value_waits_.begin() + static_cast<std::ptrdiff_t>(i));
    note_change();
    if (!reached) stream->error = "waits for a value, and another kernel failed: " + failure_;
    --unfinished_;
    complete(stream);
  }
}

void Engine::run_task(std::unique_lock<std::mutex>& lock) {
  Task task = std::move(tasks_.front());
  tasks_.pop_front();
  lock.unlock();
  task.op.run(*task.stream);
  lock.lock();
  note_change();
  complete(task.stream);
}

/// An idle runner, or null.
std::unique_ptr<BlockRunner> Engine::take_runner() {
  if (runners_.empty()) return nullptr;
  std::unique_ptr<BlockRunner> runner = std::move(runners_.back());
  runners_.pop_back();
  return runner;
}

/// Keeps a runner for reuse: mapping the stacks of its warps is expensive.
void Engine::keep(std::unique_ptr<BlockRunner> runner) {
  if (runners_.size() < kSpareRunners) runners_.push_back(std::move(runner));
}

void Engine::start_blocks(std::unique_lock<std::mutex>& lock) {
  const std::shared_ptr<Grid> grid = take_grid();
  const Launch& launch = grid->op->launch;
  const std::uint64_t left = grid->total - grid->next;
  std::uint64_t count = 1;
  // Blocks that never wait for others run to their end once started.
  if (!launch.takes_turns() || launch.one_stack()) {
    // Shares decrease, so that all workers finish at about the same time.
    const std::uint64_t shares = workers_.size() == 1 ? 1 : 4 * workers_.size();
    count = std::clamp<std::uint64_t>(left / shares, 1, kMaxChunk);
  }
  if (grid->failed) count = left;
  const std::uint64_t first = grid->next;
  grid->next += count;
  if (grid->next < grid->total) (holds_back(launch) ? held_ : grids_).push_back(grid);
  if (grid->failed) {
    finish_blocks(grid, count, {});
    return;
  }
  std::unique_ptr<BlockRunner> runner = take_runner();
  lock.unlock();
  std::string error;
  const std::uint64_t at_once = launch.in_a_row() ? count : 1;
  for (std::uint64_t finished = 0; finished < count && error.empty(); finished += at_once) {
    const BlockRunner::State state = run(runner, error, [&](BlockRunner& on) {
      if (at_once > 1) {
        on.start_all(launch, first, count);
      } else {
        grid->start(on, first + finished);
      }
    });
    if (state == BlockRunner::State::kSpinning || state == BlockRunner::State::kStopped) {
      lock.lock();
      suspended_.push_back({grid, std::move(runner)});
      return;
    }
  }
  if (runner != nullptr) runner->counter().finish();
  take(lock);
  if (runner != nullptr) keep(std::move(runner));
  finish_blocks(grid, count, error);
}

void Engine::resume_block(std::unique_lock<std::mutex>& lock) {
  const std::size_t which = scheduler_ == nullptr ? 0 : grant();
  Suspended block = std::move(suspended_[which]);
  suspended_.erase(suspended_.begin() + static_cast<std::ptrdiff_t>(which));
  std::string error;
  if (!block.grid->failed) {
    const std::size_t rounds = resumed_idle_ / (suspended_.size() + 1);
    const std::uint64_t changes = changes_;
    const bool stood = block.stood(changes);
    if (stood) ++standing_runs_;
    lock.unlock();
    const BlockRunner::State state = caught(error, [&] { return block.runner->run(); });
    if (state == BlockRunner::State::kStopped && !polling_) {
      lock.lock();
      polls_ = 0;
      suspended_.push_back(std::move(block));
      return;
    }
    if (state == BlockRunner::State::kSpinning || state == BlockRunner::State::kStopped) {
      const bool idle = !block.runner->progressed();
      const bool rests = idle && sanitizer_ == nullptr && rounds > kYields;
      const bool stands = rests && block.runner->stands();
      if (idle && sanitizer_ == nullptr) rest(rounds);
      lock.lock();
      ++resumed_in_vain_;
      resumed_idle_ = idle ? resumed_idle_ + 1 : 0;
      if (stood && changes == changes_) --standing_runs_;
      if (rests) note_standing(block, stands, changes);
      suspended_.push_back(std::move(block));
      // Gives up one of them at a time, which may free the others.
      if (sanitizer_ == nullptr) {
        if (failure_.empty() && rests && all_stand()) {
          give_up(suspended_.size() - 1, deadlock(suspended_.back()));
        } else if (!failure_.empty()) {
          give_up(suspended_.size() - 1, "polls, and another kernel failed: " + failure_);
        }
      } else if (stuck(*suspended_.back().runner)) {
        // Of those that poll memory the sanitizer has a finding.
        const auto warps = suspended_.front().runner->live_checks();
        const bool polls =
            std::ranges::any_of(warps, [](const WarpCheck* w) { return w->polled != 0; });
        give_up(0, polls ? "deadlock: every block polls what no one will write"
                         : deadlock(suspended_.front()));
      }
      return;
    }
    if (state == BlockRunner::State::kFailed && error.empty()) error = block.runner->error();
    block.runner->counter().finish();
    lock.lock();
    if (error.empty()) keep(std::move(block.runner));
  }
  resumed_in_vain_ = 0;
  finish_blocks(block.grid, 1, error);
}

/// Called after a number of rounds in which every block only spun.
void Engine::rest(std::size_t rounds) {
  if (rounds > kYields) {
    std::this_thread::sleep_for(kSpinPeriod);
  } else if (rounds > 0) {
    std::this_thread::yield();
  }
}

void Engine::note_change() {
  ++changes_;
  standing_runs_ = 0;
}

/// `changes` is the count at the start of its last run.
void Engine::note_standing(Suspended& block, bool stands, std::uint64_t changes) {
  if (!stands) note_change();
  if (block.at != changes_ || changes != changes_) block.stands = 0;
  block.at = changes_;
  if (stands && changes == changes_) ++block.stands;
}

/// Whether nothing can let any block continue: each has twice returned to its earlier state, with
/// no event in between, and nobody else can cause one, because each thread of the process is a
/// worker or waits for them. Looking for other threads takes long, so it happens at doubling
/// intervals.
bool Engine::all_stand() const {
  const std::uint64_t looks = suspended_.back().stands;
  if (looks < 2 || (looks & (looks - 1)) != 0 || shares_memory_) return false;
  if (running_ != 1 + standing_runs_) return false;
  if (!tasks_.empty() || !grids_.empty() || !held_.empty()) return false;
  for (const Suspended& block : suspended_) {
    if (!block.stood(changes_)) return false;
  }
  std::error_code none;
  const std::filesystem::directory_iterator threads("/proc/self/task", none);
  return !none && static_cast<std::size_t>(std::distance(begin(threads), end(threads))) ==
                      workers_.size() + draining_;
}

std::string Engine::deadlock(const Suspended& block) const {
  const LaunchOp& op = *block.grid->op;
  const SourceLines source = SourceLines::of(op.name, op.file, op.program->source_map());
  std::string text = "deadlock: " + block.runner->what_waits(*op.function, source);
  const std::size_t others = suspended_.size() - 1 + static_cast<std::size_t>(standing_runs_);
  if (others > 0) text += "; " + std::to_string(others) + " more blocks wait";
  return text + "; nothing is left that could end this";
}

void Engine::give_up(std::size_t which, const std::string& error) {
  const Suspended block = std::move(suspended_[which]);
  suspended_.erase(suspended_.begin() + static_cast<std::ptrdiff_t>(which));
  block.runner->abandon();
  block.runner->counter().finish();
  resumed_in_vain_ = 0;
  finish_blocks(block.grid, 1, error);
}

/// Lets a stopped warp perform its operation; returns the index of its block.
std::size_t Engine::grant() {
  std::vector<std::pair<BlockRunner*, BlockRunner::Warp*>> warps;
  // An atomic operation is progress only when its warp continues.
  const std::uint64_t writes = sanitizer_->progress() + granted_writes_;
  for (const Suspended& block : suspended_) block.runner->stopped_warps(false, writes, warps);
  std::size_t chosen = 0;
  polling_ = warps.empty();
  if (!polling_) {
    std::vector<const Operation*> operations;
    operations.reserve(warps.size());
    for (const auto& [runner, warp] : warps) operations.push_back(&warp->operation);
    chosen = scheduler_->choose(operations);
  } else {
    // Nobody can continue without polling again.
    suspended_.front().runner->stopped_warps(true, writes, warps);
    if (warps.empty()) return 0;
    chosen = (polls_ + moves_) % warps.size();
  }
  const auto [runner, warp] = warps[chosen];
  if (warp->operation.writes) ++granted_writes_;
  BlockRunner::grant(*warp);
  std::size_t place = 0;
  while (suspended_[place].runner.get() != runner) ++place;
  return place;
}

void Engine::run_in_place(std::unique_lock<std::mutex>& lock,
                          const std::shared_ptr<StreamState>& stream,
                          std::unique_ptr<LaunchOp> op) {
  stream->busy = true;
  const std::shared_ptr<Grid> grid = start_grid(stream, std::move(op));
  std::unique_ptr<BlockRunner> runner = take_runner();
  lock.unlock();
  std::string error;
  {
    const FloatDefaults floats;
    run(runner, error, [&](BlockRunner& on) { grid->start(on, 0); });
  }
  take(lock);
  if (runner != nullptr) keep(std::move(runner));
  finish_blocks(grid, 1, error);
}

/// Whether all blocks have polled for long while nobody wrote anything; for very long if a loop
/// counts, which may end by itself. `block` has just polled.
bool Engine::stuck(BlockRunner& block) {
  constexpr std::size_t kRounds = 32;
  constexpr std::size_t kMoves = 1 << 18;
  const bool moved = block.moved();
  const std::uint64_t now = sanitizer_->progress();
  if (now != progress_ || !grids_.empty() || !tasks_.empty() || draining_ == 0) {
    progress_ = now;
    polls_ = moves_ = 0;
    return false;
  }
  if (moved && ++moves_ < kMoves) {
    polls_ = 0;
    return false;
  }
  if (++polls_ < kRounds * suspended_.size()) return false;
  std::vector<const WarpCheck*> warps;
  for (const Suspended& block : suspended_) {
    for (const WarpCheck* warp : block.runner->live_checks()) warps.push_back(warp);
  }
  sanitizer_->deadlock(warps);
  return true;
}

void Engine::finish_blocks(const std::shared_ptr<Grid>& grid, std::uint64_t count,
                           const std::string& error) {
  grid->finished += count;
  resumed_idle_ = 0;
  note_change();
  if (!error.empty() && !grid->failed) {
    grid->failed = true;
    if (grid->stream->error.empty()) grid->stream->error = grid->op->name + ": " + error;
    if (failure_.empty()) failure_ = grid->op->name + ": " + error;
  }
  if (grid->finished < grid->total) return;
  if (sanitizer_ != nullptr) {
    const Launch& launch = grid->op->launch;
    sanitizer_->remove_memory(launch.workspace_address());
    if (launch.addressed_params != 0) sanitizer_->remove_memory(launch.params_address());
    sanitizer_->end_launch(*launch.check);
  }
  if (counter_ != nullptr) counter_->end_launch(*grid->op->launch.count);
  keep(std::move(grid->op));
  --unfinished_;
  complete(grid->stream);
}

}  // namespace braid::cpu
