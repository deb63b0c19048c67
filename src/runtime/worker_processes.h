#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "ir/non_copyable.h"
#include "runtime/file_io.h"

namespace braid {

struct WorkerAnswer {
  std::optional<std::string> bytes;  ///< nothing if the worker ended before it answered
  std::string end;  ///< how it ended: "ended by signal 9", "did not answer within 600 s"
};

/// The most processes that run at a time.
inline constexpr int kMostWorkers = 1024;

/// Processes that work on requests in parallel, since NVRTC compiles one kernel at a time per
/// process. They start when first needed, inherit none of this process's files, and are killed with
/// the object. Not thread safe.
class WorkerProcesses : NonCopyable {
 public:
  /// The limit of a request: many times what the largest kernel takes.
  static constexpr std::chrono::milliseconds kLimit = std::chrono::minutes(10);

  /// `command` starts a worker, which answers on its standard input (answer_requests). It is killed
  /// when a request takes longer than `limit`.
  WorkerProcesses(std::vector<std::string> command, std::size_t count,
                  std::chrono::milliseconds limit = kLimit);
  ~WorkerProcesses();

  /// How many run at a time.
  [[nodiscard]] std::size_t count() const { return workers_.size(); }

  struct Listener {
    /// Called before a worker gets a request. May be empty.
    std::function<void(std::size_t request)> begins;
    std::function<void(std::size_t request, const WorkerAnswer& answer)> ends;
  };
  /// Processes all requests, in order as far as workers are free. Returns early, within a moment,
  /// when `stop` is requested. Throws kEnvironment if a process cannot be started, and what a
  /// listener throws; in both cases the object may only be destroyed afterwards.
  void run(std::span<const std::string> requests, const Listener& listener,
           const std::stop_token& stop = {});

 private:
  static constexpr std::size_t kIdle = static_cast<std::size_t>(-1);
  struct Worker {
    pid_t process = 0;
    File socket;
    std::size_t request = kIdle;
    std::chrono::steady_clock::time_point until;  ///< when its answer is due
  };

  void start(Worker& worker) const;
  void end(Worker& worker) const;
  void give(Worker& worker, std::string_view request) const;
  [[nodiscard]] WorkerAnswer take(Worker& worker) const;

  std::vector<std::string> command_;
  std::chrono::milliseconds limit_;
  std::vector<Worker> workers_;
};

/// The loop of a worker: answers requests on a socket until the other end closes it.
void answer_requests(int socket, const std::function<std::string(std::string_view)>& answer);

}  // namespace braid
