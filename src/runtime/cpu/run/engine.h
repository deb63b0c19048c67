#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <variant>
#include <vector>

#include "ir/non_copyable.h"
#include "runtime/cpu/check/counter.h"
#include "runtime/cpu/run/block_runner.h"

namespace braid::cpu {

class Capture;     // capture.h
struct Recording;  // likewise
struct StreamState;

/// A point in a stream. `recorded` counts calls of record, `reached` those executed.
struct EventState {
  std::uint64_t recorded = 0;
  std::uint64_t reached = 0;
  std::vector<std::shared_ptr<StreamState>> waiting;
  VectorClock clock;  ///< of the recording stream
  std::string error;  ///< of the recording stream
  bool timed = false;
  std::chrono::steady_clock::time_point at;  ///< when it was last reached, if timed
  std::shared_ptr<Capture> capture;          ///< the capture in which it was last recorded, if any
  std::size_t captured = 0;                  ///< its number there
};

struct RecordOp {
  std::shared_ptr<EventState> event;
  std::uint64_t count;
};
struct WaitOp {
  std::shared_ptr<EventState> event;
  std::uint64_t count;
};
/// Holds back the stream until the word reaches the value (Stream::wait_value).
struct ValueOp {
  std::uint64_t address;
  std::uint32_t value;
  [[nodiscard]] bool reached() const;
};
/// Work for a worker: copies and fills.
struct HostOp {
  std::function<void(StreamState& on)> run;
};
struct LaunchOp {
  Launch launch;
  std::string name;
  std::string_view file;       ///< KernelImage::file
  std::shared_ptr<void> keep;  ///< keeps the code alive
  std::shared_ptr<const Program> program;
  const ptx::Function* function = nullptr;  ///< in the program
};
using StreamOp = std::variant<RecordOp, WaitOp, ValueOp, HostOp, std::unique_ptr<LaunchOp>>;

struct StreamState {
  struct Queued {
    StreamOp op;
    VectorClock host;  ///< the host's knowledge at submission
  };
  int rank = 0;
  std::uint64_t run = 0;       ///< the engine's run in which `launches` was last reset
  std::uint64_t launches = 0;  ///< in that run
  std::deque<Queued> queue;
  std::shared_ptr<StreamClock> clock;  ///< null if nothing is checked
  bool busy = false;                   ///< an operation is running or waiting
  std::string error;  ///< the first since the last synchronize; later work is skipped
  std::shared_ptr<Capture> capture;  ///< records its work; null if it is executed
  std::size_t lane = 0;              ///< its lane in the capture
};

/// The worker threads that run the blocks of all streams of all ranks.
///
/// Blocks that only spin are put aside and others are started, so that grids which wait for each
/// other make progress with any number of threads: beyond most_live() started blocks, a new one is
/// started after every full round in which none finished.
///
/// When a kernel fails, what others wait for may never happen. So until the device is idle again,
/// spinning blocks and streams that wait for a value are given up and fail with its error. A stream
/// that waits for an event of a failed stream fails too.
///
/// When launches are counted, those that wait for others proceed one block at a time, and only when
/// nothing else can: so their polls, which are counted too, are few, and the same in each run.
///
/// When all blocks only spin, they wait for another thread or process, which may need the core:
/// workers yield it, and soon sleep between polls. If there is no such thread or process, and no
/// block can make progress, they fail.
class Engine : NonCopyable {
 public:
  /// With a sanitizer (else null) there is one thread, and endless polling is detected. With a
  /// scheduler work begins when the host waits for it, so that a seed determines a run. With a
  /// counter launches are counted. Throws kEnvironment when a thread cannot start.
  Engine(int threads, Sanitizer* sanitizer, Scheduler* scheduler, Counter* counter,
         bool direct_launches);
  ~Engine();

  /// A launch to fill in and submit; if possible a finished one, which keeps its parameter memory.
  std::unique_ptr<LaunchOp> new_launch();
  /// Submits work. A launch of few instructions runs on the calling thread if nothing is queued
  /// before it, because handing it over takes longer.
  void submit(const std::shared_ptr<StreamState>& stream, StreamOp op);
  /// Runs `body` immediately if nothing is queued before it; returns whether it did.
  bool run_if_idle(const std::shared_ptr<StreamState>& stream,
                   const std::function<void(StreamState& on)>& body);
  void record(const std::shared_ptr<StreamState>& stream, const std::shared_ptr<EventState>& event);
  void wait(const std::shared_ptr<StreamState>& stream, const std::shared_ptr<EventState>& event);
  /// Blocks until the stream is empty; returns and clears its error. In a fork it returns
  /// immediately.
  std::string drain(const std::shared_ptr<StreamState>& stream);
  /// The same for a stream that is destroyed, with a capture that began on it.
  void close(const std::shared_ptr<StreamState>& stream);

  // Implementations of Stream's functions (capture.cpp).
  void begin_capture(const std::shared_ptr<StreamState>& stream);
  Recording end_capture(const std::shared_ptr<StreamState>& stream);
  bool is_capturing(const std::shared_ptr<StreamState>& stream);
  void replay(const std::shared_ptr<StreamState>& stream, const Recording& recording);

  bool next_interleaving();
  /// Whether this process is a fork of the one with the threads.
  [[nodiscard]] bool is_fork() const;
  /// Throws kInvalidArgument there.
  void refuse_fork() const;
  /// From now on other processes may write the device's memory.
  void share_memory() { shares_memory_ = true; }
  [[nodiscard]] int threads() const { return static_cast<int>(workers_.size()); }

 private:
  static constexpr std::size_t kMaxLive = 256;
  static constexpr std::size_t kMaxLiveWarps = 16384;  ///< limit if polls are counted
  static constexpr std::uint64_t kMaxChunk = 256;
  static constexpr std::chrono::microseconds kValuePeriod{50};
  static constexpr std::size_t kYields = 100;
  static constexpr std::size_t kSpareLaunches = 2048;  // how far a host runs ahead of the device
  static constexpr std::size_t kSpareRunners = 128;
  static constexpr int kLooks = 20;
  static constexpr std::uint64_t kFewInstructions = 512;  // of all warps together
  static constexpr std::chrono::microseconds kSpinPeriod{50};

  struct Grid {
    std::shared_ptr<StreamState> stream;
    std::unique_ptr<LaunchOp> op;
    std::uint64_t total = 0;
    std::uint64_t next = 0;
    std::uint64_t finished = 0;
    bool failed = false;
    void start(BlockRunner& runner, std::uint64_t n) const;
  };
  struct Suspended {
    std::shared_ptr<Grid> grid;
    std::unique_ptr<BlockRunner> runner;
    std::uint64_t at = 0;      ///< value of changes_ at its last run
    std::uint64_t stands = 0;  ///< number of runs that left it unchanged
    [[nodiscard]] bool stood(std::uint64_t changes) const { return at == changes && stands > 1; }
  };
  struct Task {
    std::shared_ptr<StreamState> stream;
    HostOp op;
  };

  struct ValueWait {
    std::shared_ptr<StreamState> stream;
    ValueOp op;
  };

  void start_workers(int threads);
  void stop_workers();
  void worker();
  void look_for_work(std::unique_lock<std::mutex>& lock);
  void keep(std::unique_ptr<LaunchOp> op);
  [[nodiscard]] bool is_brief(const Launch& launch) const;
  std::shared_ptr<Grid> start_grid(const std::shared_ptr<StreamState>& stream,
                                   std::unique_ptr<LaunchOp> op);
  void run_in_place(std::unique_lock<std::mutex>& lock, const std::shared_ptr<StreamState>& stream,
                    std::unique_ptr<LaunchOp> op);
  void advance(const std::shared_ptr<StreamState>& stream);
  bool advance_one(const std::shared_ptr<StreamState>& stream);
  void complete(const std::shared_ptr<StreamState>& stream);
  [[nodiscard]] bool have_work() const;
  [[nodiscard]] std::size_t most_live() const;
  [[nodiscard]] bool prefer_new();
  [[nodiscard]] bool counts_apart() const { return counter_ != nullptr && sanitizer_ == nullptr; }
  [[nodiscard]] bool holds_back(const Launch& launch) const;
  std::shared_ptr<Grid> take_grid();
  std::unique_ptr<BlockRunner> take_runner();
  void keep(std::unique_ptr<BlockRunner> runner);
  void start_blocks(std::unique_lock<std::mutex>& lock);
  void resume_block(std::unique_lock<std::mutex>& lock);
  std::size_t grant();
  void run_task(std::unique_lock<std::mutex>& lock);
  void poll_values();
  void push(StreamState& stream, StreamOp op);
  bool wait_captured(const std::shared_ptr<StreamState>& stream, const EventState& event);
  bool stuck(BlockRunner& block);
  void note_change();
  void note_standing(Suspended& block, bool stands, std::uint64_t changes);
  [[nodiscard]] bool all_stand() const;
  [[nodiscard]] std::string deadlock(const Suspended& block) const;
  void give_up(std::size_t which, const std::string& error);
  static void rest(std::size_t rounds);
  void finish_blocks(const std::shared_ptr<Grid>& grid, std::uint64_t count,
                     const std::string& error);

  std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable idle_;
  int sleeping_ = 0;
  std::deque<std::shared_ptr<Grid>> grids_;  ///< grids with blocks not yet started
  std::deque<std::shared_ptr<Grid>> held_;   ///< those that holds_back() names
  int running_ = 0;                          ///< workers that run something
  std::deque<Suspended> suspended_;
  std::vector<std::unique_ptr<BlockRunner>> runners_;  ///< of ended blocks, for reuse
  std::deque<Task> tasks_;
  std::vector<ValueWait> value_waits_;
  std::size_t resumed_in_vain_ = 0;  ///< since a block ended
  std::size_t resumed_idle_ = 0;     ///< since a block did more than spin
  std::uint64_t changes_ = 0;        ///< number of events that may let a block continue
  int standing_runs_ = 0;            ///< runs since then of blocks that stood() when resumed
  std::atomic<bool> shares_memory_ = false;
  Sanitizer* sanitizer_;
  Scheduler* scheduler_;
  Counter* counter_;
  bool direct_launches_;
  std::uint64_t progress_ = 0;
  std::uint64_t granted_writes_ = 0;  ///< writes granted by the scheduler
  bool polling_ = false;      ///< the last grant was a poll, because nobody else could continue
  std::size_t polls_ = 0;     ///< since the sanitizer last saw progress, or a loop moved on
  std::size_t moves_ = 0;     ///< polls in loops that moved on, since the sanitizer saw progress
  std::size_t draining_ = 0;  ///< host threads that wait, and submit no more work
  bool turn_ = false;
  std::uint64_t run_ = 0;       ///< number of interleavings so far
  std::size_t unfinished_ = 0;  ///< grids, and waits for values
  std::string failure_;         ///< error of the first failed kernel since the device was last idle
  bool stop_ = false;
  std::uint32_t next_grid_id_ = 0;
  std::atomic<std::uint32_t> handed_over_ = 0;    ///< counts submissions
  std::mutex spare_mutex_;                        ///< may be taken while holding mutex_
  std::vector<std::unique_ptr<LaunchOp>> spare_;  ///< finished launches
  std::vector<std::thread> workers_;
  const int forks_;  ///< what is_fork() compares
};

}  // namespace braid::cpu
