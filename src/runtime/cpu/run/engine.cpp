#include "runtime/cpu/run/engine.h"

#include <pthread.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "runtime/cpu/run/capture.h"
#include "runtime/cpu/run/short_lock.h"

namespace braid::cpu {
namespace {

bool is_idle(const StreamState& stream) {
  return !stream.busy && stream.queue.empty() && stream.error.empty();
}

/// How many forks lie between the first call and this process. Streams ask at each call, for which
/// getpid, a system call, is too slow.
int forks() {
  static std::atomic<int> count = 0;
  static const int registered = ::pthread_atfork(nullptr, nullptr, [] { ++count; });
  (void)registered;
  return count.load(std::memory_order_relaxed);
}

}  // namespace

bool ValueOp::reached() const {
  const std::atomic_ref<std::uint32_t> word(*reinterpret_cast<std::uint32_t*>(address));
  return static_cast<std::int32_t>(word.load(std::memory_order_acquire) - value) >= 0;
}

Engine::Engine(int threads, Sanitizer* sanitizer, Scheduler* scheduler, Counter* counter,
               bool direct_launches)
    : sanitizer_(sanitizer),
      scheduler_(scheduler),
      counter_(counter),
      direct_launches_(direct_launches),
      forks_(forks()) {
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

/// Keeps a launch for new_launch(): memory allocated by one thread and freed by another is
/// expensive. References whose release others may wait for are dropped at once.
void Engine::keep(std::unique_ptr<LaunchOp> op) {
  op->program.reset();
  op->keep.reset();
  op->launch.check.reset();
  op->launch.count.reset();
  const std::unique_lock lock = taken(spare_mutex_);
  if (spare_.size() < kSpareLaunches) spare_.push_back(std::move(op));
}

void Engine::submit(const std::shared_ptr<StreamState>& stream, StreamOp op) {
  std::unique_lock lock = taken(mutex_);
  if (stream->capture != nullptr) return stream->capture->add(stream->lane, std::move(op));
  if (auto* launch = std::get_if<std::unique_ptr<LaunchOp>>(&op);
      launch != nullptr && is_idle(*stream) && is_brief((*launch)->launch)) {
    return run_in_place(lock, stream, std::move(*launch));
  }
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
    if (!is_idle(*stream)) return false;
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

bool Engine::is_fork() const { return forks() != forks_; }

void Engine::refuse_fork() const {
  if (is_fork()) throw_invalid("cpu", "is of another process, of which this one is a fork");
}

std::string Engine::drain(const std::shared_ptr<StreamState>& stream) {
  if (is_fork()) return {};
  std::unique_lock lock(mutex_);
  if (stream->capture != nullptr) {
    throw_invalid("stream", "is being captured; expected synchronize() outside of captures");
  }
  ++draining_;
  note_change();  // the host may just have written what blocks poll
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
    auto grid = start_grid(stream, std::move(std::get<std::unique_ptr<LaunchOp>>(op)));
    if (grid->total > 1 && sleeping_ > 1) work_.notify_all();
    (holds_back(grid->op->launch) ? held_ : grids_).push_back(std::move(grid));
  }
  handed_over_.fetch_add(1, std::memory_order_relaxed);
  if (sleeping_ > 0) work_.notify_one();
  return true;
}

/// Prepares a launch when its turn has come.
std::shared_ptr<Engine::Grid> Engine::start_grid(const std::shared_ptr<StreamState>& stream,
                                                 std::unique_ptr<LaunchOp> op) {
  auto grid = std::make_shared<Grid>();
  grid->stream = stream;
  grid->op = std::move(op);
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
    sanitizer_->add_memory(stream->rank, launch.workspace_address(), launch.workspace.size(),
                           "the workspace of the grid", true);
    if (launch.addressed_params != 0) {
      sanitizer_->add_memory(stream->rank, launch.params_address(), launch.addressed_params,
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
  return grid;
}

bool Engine::is_brief(const Launch& launch) const {
  if (!direct_launches_ || launch.straight_length == 0 || launch.grid.count() != 1 ||
      !launch.in_a_row()) {
    return false;
  }
  if (scheduler_ != nullptr || sanitizer_ != nullptr || counter_ != nullptr) return false;
  return (launch.block.count() + 31) / 32 * launch.straight_length <= kFewInstructions;
}

void Engine::complete(const std::shared_ptr<StreamState>& stream) {
  stream->busy = false;
  advance(stream);
}

bool Engine::next_interleaving() {
  const std::lock_guard lock(mutex_);
  ++run_;
  return scheduler_ != nullptr && scheduler_->next_interleaving();
}

}  // namespace braid::cpu
