#include "runtime/cpu/run/engine.h"

#include <emmintrin.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <new>
#include <system_error>
#include <utility>

#include "runtime/cpu/run/capture.h"

namespace braid::cpu {
namespace {

/// Lets a block do something; what that throws becomes its error.
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

/// Takes what others hold for a moment only: to sleep and be woken takes longer.
void take(std::unique_lock<std::mutex>& lock) {
  constexpr int kTries = 200;
  for (int i = 0; i < kTries; ++i) {
    if (lock.try_lock()) return;
    _mm_pause();
  }
  lock.lock();
}

std::unique_lock<std::mutex> taken(std::mutex& mutex) {
  std::unique_lock lock(mutex, std::defer_lock);
  take(lock);
  return lock;
}

std::uint64_t params_of(const Launch& launch) {
  return reinterpret_cast<std::uint64_t>(launch.params.data());
}

std::uint64_t workspace_of(const Launch& launch) {
  return reinterpret_cast<std::uint64_t>(launch.workspace.data());
}

}  // namespace

bool ValueOp::reached() const {
  const std::atomic_ref<std::uint32_t> word(*reinterpret_cast<std::uint32_t*>(address));
  return static_cast<std::int32_t>(word.load(std::memory_order_acquire) - value) >= 0;
}

Engine::Engine(int threads, Sanitizer* sanitizer, Scheduler* scheduler, Counter* counter)
    : sanitizer_(sanitizer), scheduler_(scheduler), counter_(counter) {
  start_workers(threads);
}

Engine::~Engine() { stop_workers(); }

void Engine::start_workers(int threads) {
  try {
    for (int t = 0; t < threads; ++t) workers_.emplace_back([this] { worker(); });
  } catch (const std::system_error& failure) {
    const std::size_t started = workers_.size();
    stop_workers();
    throw_environment("cpu", "cannot start worker thread " + std::to_string(started + 1) + " of " +
                                 std::to_string(threads) + ": " + failure.code().message());
  }
}

void Engine::stop_workers() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : workers_) thread.join();
}

std::unique_ptr<LaunchOp> Engine::new_launch() {
  std::unique_ptr<LaunchOp> op;
  {
    const std::unique_lock lock = taken(spare_mutex_);
    if (spare_.empty()) return std::make_unique<LaunchOp>();
    op = std::move(spare_.back());
    spare_.pop_back();
  }
  ParameterStorage params = std::move(op->launch.params);
  params.clear();
  *op = {};
  op->launch.params = std::move(params);
  return op;
}

/// For new_launch(): memory that one thread takes and another gives back is dear. What others may
/// wait to see released is, at once.
void Engine::keep(std::unique_ptr<LaunchOp> op) {
  op->program.reset();
  op->keep.reset();
  op->launch.check.reset();
  op->launch.count.reset();
  const std::unique_lock lock = taken(spare_mutex_);
  if (spare_.size() < kSpareLaunches) spare_.push_back(std::move(op));
}

void Engine::submit(const std::shared_ptr<StreamState>& stream, StreamOp op) {
  const std::unique_lock lock = taken(mutex_);
  if (stream->capture != nullptr) return stream->capture->add(stream->lane, std::move(op));
  push(*stream, std::move(op));
  advance(stream);
}

void Engine::push(StreamState& stream, StreamOp op) {
  stream.queue.push_back({std::move(op), {}});
  if (sanitizer_ != nullptr) stream.queue.back().host = sanitizer_->host_clock();
}

bool Engine::run_if_idle(const std::shared_ptr<StreamState>& stream,
                         const std::function<void(StreamState& on)>& body) {
  {
    const std::lock_guard lock(mutex_);
    if (stream->capture != nullptr) return false;
    if (stream->busy || !stream->queue.empty() || !stream->error.empty()) return false;
    stream->busy = true;
    if (sanitizer_ != nullptr) sanitizer_->join(*stream->clock, sanitizer_->host_clock());
  }
  body(*stream);
  const std::lock_guard lock(mutex_);
  complete(stream);
  return true;
}

void Engine::record(const std::shared_ptr<StreamState>& stream,
                    const std::shared_ptr<EventState>& event) {
  const std::lock_guard lock(mutex_);
  event->capture = stream->capture;
  if (stream->capture != nullptr) {
    event->captured = stream->capture->record(stream->lane);
    return;
  }
  push(*stream, RecordOp{event, ++event->recorded});
  advance(stream);
}

void Engine::wait(const std::shared_ptr<StreamState>& stream,
                  const std::shared_ptr<EventState>& event) {
  const std::lock_guard lock(mutex_);
  if (wait_captured(stream, *event)) return;
  push(*stream, WaitOp{event, event->recorded});
  advance(stream);
}

std::string Engine::drain(const std::shared_ptr<StreamState>& stream) {
  std::unique_lock lock(mutex_);
  if (stream->capture != nullptr) {
    throw_invalid("stream", "is being captured; expected synchronize() outside of captures");
  }
  ++draining_;
  if (scheduler_ != nullptr || counts_apart()) work_.notify_all();
  idle_.wait(lock, [&] { return !stream->busy && stream->queue.empty(); });
  --draining_;
  // Not before: the launches of other ranks may still be on their way.
  if (unfinished_ == 0) failure_.clear();
  if (sanitizer_ != nullptr) sanitizer_->host_waited(*stream->clock);
  return std::exchange(stream->error, {});
}

/// Starts what the stream can start now.
void Engine::advance(const std::shared_ptr<StreamState>& stream) {
  while (!stream->busy && !stream->queue.empty()) {
    if (!advance_one(stream)) return;
  }
  if (!stream->busy && stream->queue.empty()) idle_.notify_all();
}

/// Takes one operation off the queue; false when the stream now waits for an event.
bool Engine::advance_one(const std::shared_ptr<StreamState>& stream) {
  auto [op, host] = std::move(stream->queue.front());
  stream->queue.pop_front();
  if (sanitizer_ != nullptr) sanitizer_->join(*stream->clock, host);
  if (auto* record = std::get_if<RecordOp>(&op)) {
    record->event->reached = std::max(record->event->reached, record->count);
    record->event->error = stream->error;
    if (record->event->timed) record->event->at = std::chrono::steady_clock::now();
    if (sanitizer_ != nullptr) record->event->clock = sanitizer_->clock_of(*stream->clock);
    for (const auto& waiter : std::exchange(record->event->waiting, {})) {
      waiter->busy = false;
      advance(waiter);
    }
    return true;
  }
  if (auto* wait = std::get_if<WaitOp>(&op)) {
    if (wait->event->reached >= wait->count) {
      if (sanitizer_ != nullptr) sanitizer_->join(*stream->clock, wait->event->clock);
      if (stream->error.empty()) stream->error = wait->event->error;
      return true;
    }
    wait->event->waiting.push_back(stream);
    stream->busy = true;
    stream->queue.push_front({std::move(op), std::move(host)});
    return false;
  }
  if (!stream->error.empty()) return true;
  stream->busy = true;
  if (const auto* value = std::get_if<ValueOp>(&op)) {
    ++unfinished_;
    value_waits_.push_back({stream, *value});
  } else if (auto* host = std::get_if<HostOp>(&op)) {
    tasks_.push_back({stream, std::move(*host)});
  } else {
    auto grid = std::make_shared<Grid>();
    grid->stream = stream;
    grid->op = std::move(std::get<std::unique_ptr<LaunchOp>>(op));
    Launch& launch = grid->op->launch;
    launch.grid_id = next_grid_id_++;
    launch.rank = stream->rank;
    if (stream->run != run_) stream->launches = 0;
    stream->run = run_;
    launch.ordinal = stream->launches++;
    if (sanitizer_ != nullptr) {
      launch.sanitizer = sanitizer_;
      launch.scheduler = scheduler_;
      launch.check = sanitizer_->start_launch(
          stream->clock, grid->op->name, grid->op->file, launch.grid, launch.block,
          grid->op->program->source_map(), {grid->op->program, grid->op->function});
      sanitizer_->add_memory(stream->rank, workspace_of(launch), launch.workspace.size(),
                             "the workspace of the grid", true);
      if (launch.addressed_params != 0) {
        sanitizer_->add_memory(stream->rank, params_of(launch), launch.addressed_params,
                               "parameters", true);
      }
    }
    ++unfinished_;
    if (counter_ != nullptr) {
      launch.count = counter_->start_launch(
          stream->rank, grid->op->name, *grid->op->function, grid->op->program,
          {.grid = launch.grid,
           .threads = static_cast<std::uint32_t>(launch.block.count()),
           .shared_bytes = launch.kernel.info.shared_bytes + launch.dynamic_shared,
           .clusters = launch.cluster.count() != 1});
    }
    const BlockSample* const sample = launch.count == nullptr ? nullptr : launch.count->sample();
    grid->total = sample == nullptr ? launch.grid.count() / launch.cluster.count()
                                    : sample->blocks().size() + launch.count->glances().blocks();
    if (grid->total > 1 && sleeping_ > 1) work_.notify_all();
    (holds_back(launch) ? held_ : grids_).push_back(std::move(grid));
  }
  handed_over_.fetch_add(1, std::memory_order_relaxed);
  if (sleeping_ > 0) work_.notify_one();
  return true;
}

void Engine::complete(const std::shared_ptr<StreamState>& stream) {
  stream->busy = false;
  advance(stream);
}

bool Engine::have_work() const {
  if (scheduler_ != nullptr && draining_ == 0) return false;
  if (!tasks_.empty() || !grids_.empty()) return true;
  if (held_.empty() && suspended_.empty()) return false;
  // More may be on its way from the host, or come of what is running.
  return !counts_apart() || (running_ == 0 && draining_ != 0);
}

/// Whether its blocks wait until nobody else can go on.
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

/// One with blocks that are not started: grids take turns, so that ranks that wait for each other
/// start together.
std::shared_ptr<Engine::Grid> Engine::take_grid() {
  std::deque<std::shared_ptr<Grid>>& grids = grids_.empty() ? held_ : grids_;
  // In which order streams came to those that were held back is chance.
  const auto next = grids_.empty() ? std::min_element(grids.begin(), grids.end(),
                                                      [](const auto& a, const auto& b) {
                                                        return std::pair(a->next, a->stream->rank) <
                                                               std::pair(b->next, b->stream->rank);
                                                      })
                                   : grids.begin();
  std::shared_ptr<Grid> grid = std::move(*next);
  grids.erase(next);
  return grid;
}

/// Of started blocks, before others have to wait for them, where there are some to start. Polls
/// that are counted say nothing of a GPU, which has all blocks of such a grid at once: as good as
/// all.
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
  // Everyone who can be there takes part in a choice; who is not there makes others poll.
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

/// Looks for a moment whether work comes: to sleep and be woken takes longer than a small kernel.
/// Meanwhile the host may have the core.
void Engine::look_for_work(std::unique_lock<std::mutex>& lock) {
  const std::uint32_t before = handed_over_.load(std::memory_order_relaxed);
  lock.unlock();
  for (int look = 0; look < kLooks; ++look) {
    if (handed_over_.load(std::memory_order_relaxed) != before) break;
    std::this_thread::yield();
  }
  take(lock);
}

/// Lets those streams go on whose words have come to their values.
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
  complete(task.stream);
}

/// One that runs nothing; null when there is none.
std::unique_ptr<BlockRunner> Engine::take_runner() {
  if (runners_.empty()) return nullptr;
  std::unique_ptr<BlockRunner> runner = std::move(runners_.back());
  runners_.pop_back();
  return runner;
}

/// For take_runner(): to map the stacks of its warps is dear.
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
    // Shares that get smaller, so that all workers end at about one time.
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
    const BlockRunner::State state = caught(error, [&] {
      if (runner == nullptr) runner = std::make_unique<BlockRunner>();
      if (at_once > 1) {
        runner->start_all(launch, first, count);
      } else {
        grid->start(*runner, first + finished);
      }
      return runner->run();
    });
    if (!error.empty()) {
      runner.reset();  // it stands in the middle of something
    } else if (state == BlockRunner::State::kFailed) {
      error = runner->error();
    }
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
      if (idle && sanitizer_ == nullptr) rest(rounds);
      lock.lock();
      ++resumed_in_vain_;
      resumed_idle_ = idle ? resumed_idle_ + 1 : 0;
      suspended_.push_back(std::move(block));
      // One of them is given up at a time: that may free the others.
      if (sanitizer_ == nullptr) {
        if (failure_.empty()) return;
        give_up(suspended_.size() - 1, "polls, and another kernel failed: " + failure_);
      } else if (stuck(*suspended_.back().runner)) {
        give_up(0, "deadlock: every block polls what no one will write");
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

/// After so many rounds in which every block only spun.
void Engine::rest(std::size_t rounds) {
  if (rounds > kYields) {
    std::this_thread::sleep_for(kSpinPeriod);
  } else if (rounds > 0) {
    std::this_thread::yield();
  }
}

void Engine::give_up(std::size_t which, const std::string& error) {
  const Suspended block = std::move(suspended_[which]);
  suspended_.erase(suspended_.begin() + static_cast<std::ptrdiff_t>(which));
  block.runner->abandon();
  block.runner->counter().finish();
  resumed_in_vain_ = 0;
  finish_blocks(block.grid, 1, error);
}

/// Lets a stopped warp do its operation; returns the place of its block.
std::size_t Engine::grant() {
  std::vector<std::pair<BlockRunner*, BlockRunner::Warp*>> warps;
  for (const Suspended& block : suspended_) block.runner->stopped_warps(false, warps);
  std::size_t chosen = 0;
  polling_ = warps.empty();
  if (!polling_) {
    std::vector<const Operation*> operations;
    operations.reserve(warps.size());
    for (const auto& [runner, warp] : warps) operations.push_back(&warp->operation);
    chosen = scheduler_->choose(operations);
  } else {
    // Nobody can go on but by polling once more.
    suspended_.front().runner->stopped_warps(true, warps);
    if (warps.empty()) return 0;
    chosen = (polls_ + moves_) % warps.size();
  }
  const auto [runner, warp] = warps[chosen];
  BlockRunner::grant(*warp);
  std::size_t place = 0;
  while (suspended_[place].runner.get() != runner) ++place;
  return place;
}

bool Engine::next_interleaving() {
  const std::lock_guard lock(mutex_);
  ++run_;
  return scheduler_ != nullptr && scheduler_->next_interleaving();
}

/// Whether all there is are blocks that polled for long while nobody wrote anything: for very long
/// where a loop counts, which may end by itself. `block` has just polled.
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
  if (!error.empty() && !grid->failed) {
    grid->failed = true;
    if (grid->stream->error.empty()) grid->stream->error = grid->op->name + ": " + error;
    if (failure_.empty()) failure_ = grid->op->name + ": " + error;
  }
  if (grid->finished < grid->total) return;
  if (sanitizer_ != nullptr) {
    const Launch& launch = grid->op->launch;
    sanitizer_->remove_memory(workspace_of(launch));
    if (launch.addressed_params != 0) sanitizer_->remove_memory(params_of(launch));
    sanitizer_->end_launch(*launch.check);
  }
  if (counter_ != nullptr) counter_->end_launch(*grid->op->launch.count);
  keep(std::move(grid->op));
  --unfinished_;
  complete(grid->stream);
}

}  // namespace braid::cpu
