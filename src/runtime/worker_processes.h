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

#include "runtime/file_io.h"

namespace braid {

/// What came of a request to a worker.
struct WorkerAnswer {
  std::optional<std::string> bytes;  ///< nothing where the worker ended before it answered
  std::string end;  ///< how it did: "ended by signal 9", "did not answer within 600 s"
};

/// The most processes that work at one time.
inline constexpr int kMostWorkers = 1024;

/// Processes that work on requests, since NVRTC compiles one kernel at a time in each. They start
/// when they are first needed and are killed with the object. They have none of this process's
/// files, its output neither. Not thread safe.
class WorkerProcesses {
 public:
  /// What a request may take: many times what the largest kernel does.
  static constexpr std::chrono::milliseconds kLimit = std::chrono::minutes(10);

  /// `command` starts one, which answers on its standard input (answer_requests), or is killed
  /// where a request takes longer than `limit`.
  WorkerProcesses(std::vector<std::string> command, std::size_t count,
                  std::chrono::milliseconds limit = kLimit);
  WorkerProcesses(const WorkerProcesses&) = delete;
  WorkerProcesses& operator=(const WorkerProcesses&) = delete;
  ~WorkerProcesses();

  /// How many work at one time.
  [[nodiscard]] std::size_t count() const { return workers_.size(); }

  struct Listener {
    /// Told of each request before a worker gets it. May be empty.
    std::function<void(std::size_t request)> begins;
    std::function<void(std::size_t request, const WorkerAnswer& answer)> ends;
  };
  /// Has all worked on, in their order as far as there are workers. Returns early, within a moment,
  /// when `stop` is asked for. Throws kEnvironment where a process cannot be started, and what a
  /// listener throws. After both nothing but the end of this object may follow.
  void run(std::span<const std::string> requests, const Listener& listener,
           const std::stop_token& stop = {});

 private:
  static constexpr std::size_t kIdle = static_cast<std::size_t>(-1);
  struct Worker {
    pid_t process = 0;
    File socket;
    std::size_t request = kIdle;
    std::chrono::steady_clock::time_point until;  ///< when its answer has to be there
  };

  void start(Worker& worker) const;
  void end(Worker& worker) const;
  void give(Worker& worker, std::string_view request) const;
  [[nodiscard]] WorkerAnswer take(Worker& worker) const;

  std::vector<std::string> command_;
  std::chrono::milliseconds limit_;
  std::vector<Worker> workers_;
};

/// What a worker does: answers the requests that come on a socket until the other end closes it.
void answer_requests(int socket, const std::function<std::string(std::string_view)>& answer);

}  // namespace braid
