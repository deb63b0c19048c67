#include "runtime/worker_processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include "ir/fail.h"

namespace braid {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30U;
constexpr std::chrono::milliseconds kMoment(50);

/// Sends length and bytes. Returns false if the other end is gone.
bool send_message(int socket, std::string_view bytes) {
  const std::uint64_t size = bytes.size();
  std::string message(reinterpret_cast<const char*>(&size), sizeof size);
  message += bytes;
  std::string_view left = message;
  while (!left.empty()) {
    const ssize_t sent = ::send(socket, left.data(), left.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    left.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool receive_all(int socket, char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t got = ::recv(socket, data, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    data += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

std::optional<std::string> receive_message(int socket) {
  std::uint64_t size = 0;
  if (!receive_all(socket, reinterpret_cast<char*>(&size), sizeof size)) return {};
  if (size > kMostBytes) return {};
  std::string bytes(size, '\0');
  if (!receive_all(socket, bytes.data(), bytes.size())) return {};
  return bytes;
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return fmt::format("ended by signal {}", WTERMSIG(status));
  return fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

using Clock = std::chrono::steady_clock;

/// How the process ended; nothing if it has not by then, and it is killed.
std::optional<int> wait_for(pid_t process, Clock::time_point until) {
  int status = 0;
  while (::waitpid(process, &status, WNOHANG) == 0) {
    if (Clock::now() >= until) {
      ::kill(process, SIGKILL);  // its cache entries are complete or absent
      while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
      }
      return {};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return status;
}

}  // namespace

WorkerProcesses::WorkerProcesses(std::vector<std::string> command, std::size_t count,
                                 std::chrono::milliseconds limit)
    : command_(std::move(command)), limit_(limit), workers_(std::max<std::size_t>(1, count)) {}

WorkerProcesses::~WorkerProcesses() {
  for (Worker& worker : workers_) end(worker);
}

void WorkerProcesses::start(Worker& worker) const {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw_environment(command_[0], "no socket: {}", std::strerror(errno));
  }
  worker.socket = File(ends[0]);
  // A worker that stops within a message counts as not answering.
  const auto microseconds = std::chrono::microseconds(limit_).count();
  const timeval limit{microseconds / 1'000'000, microseconds % 1'000'000};
  for (const int which : {SO_RCVTIMEO, SO_SNDTIMEO}) {
    (void)::setsockopt(worker.socket.get(), SOL_SOCKET, which, &limit, sizeof limit);
  }
  const File other(ends[1]);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, other.get(), STDIN_FILENO);
  // The worker must not hold the caller's output open: it may outlive the caller by a moment, and
  // readers of that output would wait for it.
  for (const int output : {STDOUT_FILENO, STDERR_FILENO}) {
    ::posix_spawn_file_actions_addopen(&actions, output, "/dev/null", O_WRONLY, 0);
  }
  ::posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  std::vector<char*> words;
  for (const std::string& word : command_) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const int failure =
      ::posix_spawn(&worker.process, words[0], &actions, nullptr, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failure == 0) return;
  worker.process = 0;
  throw_environment(command_[0], "cannot be started: {}", std::strerror(failure));
}

void WorkerProcesses::end(Worker& worker) const {
  if (worker.process == 0) return;
  (void)wait_for(worker.process, Clock::now());
  worker.process = 0;
}

void WorkerProcesses::give(Worker& worker, std::string_view request) const {
  if (worker.process == 0) start(worker);
  worker.until = Clock::now() + limit_;
  // A dead worker is detected when its answer is read.
  (void)send_message(worker.socket.get(), request);
}

WorkerAnswer WorkerProcesses::take(Worker& worker) const {
  worker.request = kIdle;
  if (Clock::now() < worker.until) {
    if (auto answer = receive_message(worker.socket.get())) return {std::move(answer), {}};
  }
  worker.socket = File();
  const std::optional<int> status = wait_for(worker.process, worker.until);
  worker.process = 0;
  if (status) return {{}, how_it_ended(*status)};
  return {{},
          fmt::format("did not answer within {} s", std::chrono::duration<double>(limit_).count())};
}

void WorkerProcesses::run(std::span<const std::string> requests, const Listener& listener,
                          const std::stop_token& stop) {
  std::size_t next = 0;
  const auto occupy = [&](Worker& worker) {
    if (next == requests.size()) return;
    if (listener.begins) listener.begins(next);
    give(worker, requests[next]);
    worker.request = next++;
  };
  for (Worker& worker : workers_) occupy(worker);
  for (;;) {
    std::vector<pollfd> busy;
    std::vector<Worker*> of;
    Clock::time_point first = Clock::time_point::max();
    for (Worker& worker : workers_) {
      if (worker.request == kIdle) continue;
      busy.push_back({worker.socket.get(), POLLIN, 0});
      of.push_back(&worker);
      first = std::min(first, worker.until);
    }
    if (busy.empty()) return;
    using std::chrono::milliseconds;
    const auto left = std::chrono::ceil<milliseconds>(first - Clock::now());
    const milliseconds most = stop.stop_possible() ? kMoment : limit_;
    const auto wait = std::clamp(left, milliseconds(0), most);
    if (::poll(busy.data(), busy.size(), static_cast<int>(wait.count())) < 0 && errno != EINTR) {
      throw_environment(command_[0], "poll: {}", std::strerror(errno));
    }
    if (stop.stop_requested()) return;
    for (std::size_t i = 0; i < busy.size(); ++i) {
      if (busy[i].revents == 0 && Clock::now() < of[i]->until) continue;
      const std::size_t request = of[i]->request;
      const WorkerAnswer answer = take(*of[i]);
      listener.ends(request, answer);
      occupy(*of[i]);  // before the others' answers, so that progress is reported in order
    }
  }
}

void answer_requests(int socket, const std::function<std::string(std::string_view)>& answer) {
  while (const auto request = receive_message(socket)) {
    if (!send_message(socket, answer(*request))) return;
  }
}

}  // namespace braid
