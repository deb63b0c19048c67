#include "runtime/compile/ptxas.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>
#include <vector>

#include "ir/non_copyable.h"
#include "runtime/compile/python_packages.h"
#include "runtime/dynamic_library.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

/// The path of ptxas, or empty.
fs::path find_ptxas() {
  if (std::string path = environment("BRAID_PTXAS"); !path.empty()) return path;
  std::vector<fs::path> candidates;
  for (const fs::path& home : cuda_toolkits()) candidates.push_back(home / "bin/ptxas");
  for (const fs::path& wheels : cuda_wheels()) {
    candidates.push_back(wheels / "cu13/bin/ptxas");
    candidates.push_back(wheels / "cuda_nvcc/bin/ptxas");
    candidates.push_back(wheels.parent_path() / "triton/backends/nvidia/bin/ptxas");
  }
  for (const fs::path& file : candidates) {
    if (::access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

/// For a text with `.target sm_90a`: "sm_90a".
std::string architecture_for(std::string_view ptx, int sm) {
  constexpr std::string_view kTarget = ".target sm_";
  int named = 0;
  if (const std::size_t at = ptx.find(kTarget); at != std::string_view::npos) {
    const char* const end = ptx.data() + ptx.size();
    const auto number = std::from_chars(ptx.data() + at + kTarget.size(), end, named);
    if (number.ptr != end && (*number.ptr == 'a' || *number.ptr == 'f')) {
      return fmt::format("sm_{}{}", named, *number.ptr);
    }
  }
  return fmt::format("sm_{}", std::max(named, sm));
}

/// The part of a log that is about this entry.
std::string_view part_of(std::string_view log, const std::string& entry) {
  constexpr std::string_view kBegins = "Compiling entry function '";
  const std::size_t at = log.find(fmt::format("{}{}'", kBegins, entry));
  if (at == std::string_view::npos) return {};
  log.remove_prefix(at);
  return log.substr(0, log.find(kBegins, 1));
}

/// A temporary folder, removed on destruction.
class Scratch : NonCopyable {
 public:
  Scratch() {
    std::string name = (fs::temp_directory_path() / "braid-ptxas-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// Runs the command with its output in `log`; returns whether it succeeded.
bool run(std::vector<std::string> command, const fs::path& log) {
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  if (::posix_spawn_file_actions_init(&files) != 0) return false;
  ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  const int failure =
      ::posix_spawn(&child, arguments[0], &files, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  if (failure != 0) return false;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return false;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

std::optional<KernelResources> assembled(const std::string& ptx, const std::string& entry, int sm) {
  const fs::path ptxas = find_ptxas();
  if (ptxas.empty()) return {};
  const Scratch scratch;
  if (scratch.path().empty()) return {};
  const fs::path text = scratch.path() / "kernel.ptx", log = scratch.path() / "log";
  if (!(std::ofstream(text, std::ios::binary) << ptx).flush()) return {};
  const bool good = run({ptxas.string(), "-v", "--entry", entry,
                         "-arch=" + architecture_for(ptx, sm), "-o", "/dev/null", text.string()},
                        log);
  if (!good) return {};
  std::ostringstream said;
  said << std::ifstream(log).rdbuf();
  const std::string text_of_log = said.str();
  const KernelResources resources = parse_ptxas_log(part_of(text_of_log, entry));
  if (resources.registers == 0) return {};
  return resources;
}

}  // namespace braid
