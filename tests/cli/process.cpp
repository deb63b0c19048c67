#include "cli/process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

extern char** environ;  // NOLINT(readability-redundant-declaration)

namespace braid::test {

namespace {

using Environment = std::map<std::string, std::string>;

struct Streams {
  std::string in, out, err;
  int in_flags = O_RDONLY;
};

pid_t start(std::vector<std::string> argv_text, const Environment& environment,
            const Streams& streams) {
  std::vector<std::string> env_text;
  for (const auto& [name, value] : environment) env_text.push_back(name + "=" + value);
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    if (environment.count(text.substr(0, text.find('='))) == 0) env_text.push_back(text);
  }
  auto pointers = [](std::vector<std::string>& texts) {
    std::vector<char*> list;
    for (std::string& text : texts) list.push_back(text.data());
    list.push_back(nullptr);
    return list;
  };
  std::vector<char*> argv = pointers(argv_text), env = pointers(env_text);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const auto open = [&](int descriptor, const std::string& path, int flags) {
    posix_spawn_file_actions_addopen(&actions, descriptor, path.c_str(), flags, 0600);
  };
  open(STDIN_FILENO, streams.in, streams.in_flags);
  open(STDOUT_FILENO, streams.out, O_CREAT | O_WRONLY);
  open(STDERR_FILENO, streams.err, O_CREAT | O_WRONLY);
  pid_t pid = 0;
  const int code = posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), env.data());
  posix_spawn_file_actions_destroy(&actions);
  if (code != 0) throw std::runtime_error("cannot start " + argv_text[0]);
  return pid;
}

int wait_for(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

ProcessResult run(const std::vector<std::string>& argv, const std::string& input,
                  const Environment& environment) {
  const TemporaryDirectory directory;
  const Streams streams{directory / "in", directory / "out", directory / "err"};
  write_file(streams.in, input);
  const int code = wait_for(start(argv, environment, streams));
  return {code, read_file(streams.out), read_file(streams.err)};
}

std::vector<std::string> command(const std::vector<std::string>& args) {
  std::vector<std::string> argv = {BRAID_COMMAND};
  argv.insert(argv.end(), args.begin(), args.end());
  return argv;
}

}  // namespace

ProcessResult run_braid(const std::vector<std::string>& args, const std::string& input,
                        const Environment& environment) {
  return run(command(args), input, environment);
}

ProcessResult run_shell(const std::string& line) {
  return run({"/bin/sh", "-c", line}, "", {{"BRAID", BRAID_COMMAND}});
}

Interruption interrupt_braid(const std::vector<std::string>& args, const std::string& after,
                             int signal) {
  using Clock = std::chrono::steady_clock;
  const TemporaryDirectory directory;
  // Opened for both, so that there is always a writer.
  const Streams streams{directory / "in", directory / "out", directory / "err", O_RDWR};
  if (mkfifo(streams.in.c_str(), 0600) != 0) throw std::runtime_error("no fifo");
  const pid_t pid = start(command(args), {}, streams);
  if (after.empty()) std::this_thread::sleep_for(std::chrono::seconds(1));
  const Clock::time_point deadline = Clock::now() + std::chrono::minutes(1);
  while (read_file(streams.err).find(after) == std::string::npos && Clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  const Clock::time_point sent = Clock::now();
  kill(pid, signal);
  const int code = wait_for(pid);
  return {code, std::chrono::duration<double>(Clock::now() - sent).count(), read_file(streams.err)};
}

TemporaryDirectory::TemporaryDirectory() {
  std::string name = std::filesystem::temp_directory_path() / "braid-test-XXXXXX";
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

void write_file(const std::filesystem::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

}  // namespace braid::test
