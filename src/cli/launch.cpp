#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <random>

#include "cli/commands.h"
#include "cli/common.h"
#include "ir/fail.h"
#include "ir/non_copyable.h"
#include "ir/text.h"
#include "runtime/exec/socket.h"

namespace braid::cli {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr const char* kAddress = "127.0.0.1";
constexpr double kLongestGrace = 10;      // seconds
constexpr milliseconds kUntilKill{2000};  // between SIGTERM and SIGKILL

/// The signals that this process waits for instead of having them come in between.
class SignalSet : NonCopyable {
 public:
  SignalSet() {
    sigemptyset(&set_);
    for (const int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&set_, number);
    sigprocmask(SIG_BLOCK, &set_, &before_);
  }
  ~SignalSet() { restore(); }

  void restore() const { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  /// 0 where none comes in time.
  [[nodiscard]] int wait(milliseconds longest) const {
    const timespec time{longest.count() / 1000, longest.count() % 1000 * 1'000'000};
    return std::max(0, sigtimedwait(&set_, nullptr, &time));
  }

 private:
  sigset_t set_{}, before_{};
};

/// A port that is free now. Should another take it, rank 0 listens beside it.
int free_port() {
  const File socket = listen_at(resolve(kAddress).front().with_port(0));
  if (!socket.is_open())
    throw_environment("launch", "no port is free: " + std::string(strerror(errno)));
  return port_of(socket);
}

std::string random_name() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}{:08x}", device(), device(), device());
}

class Launcher {
 public:
  explicit Launcher(const LaunchOptions& options) : options_(options) {}

  int run() {
    const int port = free_port();
    const std::string job = random_name();
    for (int rank = 0; rank < options_.processes; ++rank) {
      set_environment(rank, port, job);
      start(rank);
    }
    while (std::ranges::any_of(children_, [](pid_t child) { return child != 0; })) {
      const int signal = signals_.wait(left());
      if (signal != 0 && signal != SIGCHLD) interrupt(signal);
      reap();
      if (ending_ && Clock::now() >= deadline_) end();
    }
    return exit_code_;
  }

 private:
  void set_environment(int rank, int port, const std::string& job) const {
    const auto set = [](const char* name, const std::string& value) {
      if (::setenv(name, value.c_str(), 1) != 0) throw std::bad_alloc();
    };
    for (const char* name : {"RANK", "LOCAL_RANK"}) set(name, std::to_string(rank));
    for (const char* name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE"}) {
      set(name, std::to_string(options_.processes));
    }
    set("MASTER_ADDR", kAddress);
    set("MASTER_PORT", std::to_string(port));
    set("BRAID_JOB", job);
    set("BRAID_TIMEOUT", fmt::format("{:g}", options_.timeout_s));
  }

  /// If the command cannot start, the child reports why through a pipe, which otherwise stays
  /// empty.
  void start(int rank) {
    std::vector<char*> command;
    for (const std::string& word : options_.command)
      command.push_back(const_cast<char*>(word.c_str()));
    command.push_back(nullptr);
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw_environment("launch", std::strerror(errno));
    const File answer(ends[0]);
    File question(ends[1]);
    const pid_t parent = ::getpid(), child = ::fork();
    if (child == 0) become(command, rank, parent, question.get());
    if (child < 0) {
      const int reason = errno;
      kill_all();
      throw_environment("launch", "rank {} cannot be started: {}", rank, std::strerror(reason));
    }
    ::setpgid(child, child);  // here, too: whoever is first
    children_.push_back(child);
    (void)question.close();
    int reason = 0;
    if (read_up_to(answer, &reason, sizeof reason) != sizeof reason) return;
    kill_all();
    throw Error(
        reason == ENOENT ? ErrorCode::kInvalidArgument : ErrorCode::kEnvironment, "launch",
        fmt::format("{} cannot be started: {}", quote(options_.command[0]), std::strerror(reason)));
  }

  /// Runs in the child, which must not outlive the launcher.
  [[noreturn]] void become(const std::vector<char*>& command, int rank, pid_t parent,
                           int question) const {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(kFailed);
    std::signal(SIGXFSZ, SIG_DFL);
    signals_.restore();
    if (rank != 0) {  // one of them can read what comes
      const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
      if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
    }
    ::execvp(command[0], command.data());
    const int reason = errno;
    (void)!::write(question, &reason, sizeof reason);
    ::_exit(kFailed);
  }

  [[nodiscard]] milliseconds left() const {
    constexpr milliseconds kLong{60'000};
    if (!ending_) return kLong;
    const auto time = std::chrono::duration_cast<milliseconds>(deadline_ - Clock::now());
    return std::clamp(time + milliseconds(1), milliseconds(0), kLong);
  }

  /// Ranks may have work to finish, for as long as it takes: the next signal kills them.
  void interrupt(int signal) {
    termed_ = termed_ || interrupted_ != 0;
    if (termed_ || ending_) end_after(milliseconds(0));
    interrupted_ = signal;
    for (const pid_t child : children_) {
      if (child != 0) ::kill(-child, SIGTERM);
    }
  }

  void reap() {
    for (std::size_t rank = 0; rank < children_.size(); ++rank) {
      int status = 0;
      if (children_[rank] == 0 || ::waitpid(children_[rank], &status, WNOHANG) != children_[rank]) {
        continue;
      }
      children_[rank] = 0;
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
      if (exit_code_ != kGood) continue;
      const bool exited = WIFEXITED(status);
      exit_code_ = exited ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      if (interrupted_ != 0) {
        exit_code_ = 128 + interrupted_;
      } else {
        note(fmt::format(
            "braid: launch: rank {}: {}\n", rank,
            exited ? fmt::format("exit code {}", exit_code_) : ::strsignal(WTERMSIG(status))));
      }
      // The others see it by themselves, and say so.
      const double grace = std::min(options_.timeout_s + 1, kLongestGrace);
      end_after(milliseconds(static_cast<std::int64_t>(grace * 1e3)));
    }
  }

  void end_after(milliseconds time) {
    ending_ = true;
    deadline_ = Clock::now() + time;
  }

  void end() {
    const int signal = termed_ ? SIGKILL : SIGTERM;
    for (std::size_t rank = 0; rank < children_.size(); ++rank) {
      if (children_[rank] == 0) continue;
      note(fmt::format("braid: launch: rank {} is still there: {}\n", rank,
                       termed_ ? "SIGKILL" : "SIGTERM"));
      ::kill(-children_[rank], signal);
    }
    termed_ = true;
    end_after(kUntilKill);
  }

  void kill_all() {
    for (const pid_t child : children_) {
      ::kill(-child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
  }

  const LaunchOptions& options_;
  SignalSet signals_;
  std::vector<pid_t> children_;  ///< by rank, each with its own process group; 0: it has ended
  int exit_code_ = kGood;        ///< of the first that failed
  int interrupted_ = 0;          ///< the signal that this process got last; 0: none
  bool ending_ = false;          ///< what is left at the deadline gets a signal
  bool termed_ = false;          ///< those that are left got a SIGTERM
  Clock::time_point deadline_;
};

}  // namespace

int launch(const LaunchOptions& options) { return Launcher(options).run(); }

}  // namespace braid::cli
