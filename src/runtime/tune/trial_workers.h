#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/file_io.h"
#include "runtime/tune/trial.h"

namespace braid {

/// Processes that try kernels: NVRTC compiles one at a time in each. They start when they are first
/// needed and end with the object.
class TrialWorkers {
 public:
  /// `command` starts one, which serves its standard input (serve_trials). Empty: this process
  /// tries them itself, one after the other.
  TrialWorkers(std::vector<std::string> command, std::size_t count);
  TrialWorkers(const TrialWorkers&) = delete;
  TrialWorkers& operator=(const TrialWorkers&) = delete;
  ~TrialWorkers();

  /// How many work at one time.
  [[nodiscard]] std::size_t count() const { return workers_.size(); }

  /// Tries all; `done` is told of each as soon as it is over. Where a worker ends
  /// before it has answered, what it tried is one that does not run. Throws kEnvironment where none
  /// can be started, and what `done` throws.
  void run(std::span<const TrialRequest> requests,
           const std::function<void(std::size_t request, const Trial& trial)>& done);

 private:
  static constexpr std::size_t kIdle = static_cast<std::size_t>(-1);
  struct Worker {
    pid_t process = 0;
    File socket;
    std::size_t request = kIdle;
  };

  void start(Worker& worker) const;
  void end(Worker& worker) const;
  void give(Worker& worker, std::span<const TrialRequest> requests, std::size_t request) const;
  /// The answer, or how the worker ended.
  [[nodiscard]] Trial take(Worker& worker) const;

  std::vector<std::string> command_;
  std::vector<Worker> workers_;
};

/// Answers requests on a socket until the other end closes it: what a worker does.
void serve_trials(int socket);

}  // namespace braid
