#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <sstream>
#include <system_error>

#include "braid/error.h"
#include "cli/common.h"
#include "ir/text.h"

// What the process owes its caller, in one place: every way out of a command ends in an exit code,
// an error in one line besides, and output that could not be written is an error. Commands print to
// stdout with fmt::print, which throws std::system_error, and to stderr with note(), which cannot
// fail.

namespace braid::cli {
namespace {

/// A closed descriptor would be given to the next file that is opened, and what is printed would
/// end up in there. Its place is taken by one that refuses what it is for.
void occupy_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest free descriptor: this one.
    if (::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) != stream)
      ::_exit(kEnvironmentMissing);
  }
}

/// A signal ends the process at once. As the first process of a container it would be ignored
/// unless there is a handler.
void end_on_signals() {
  if (::getpid() != 1) return;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    std::signal(number, [](int received) { ::_exit(128 + received); });
  }
}

int fail(ExitCode code, std::string_view message) noexcept {
  std::fflush(stdout);
  try {
    note(fmt::format("braid: error: {}\n", one_line(message)));
  } catch (const std::exception&) {
    note("braid: error: out of memory\n");
  }
  return code;
}

int output_lost(int error) noexcept {
  return fail(kEnvironmentMissing,
              std::string("stdout: cannot be written: ") + std::strerror(error));
}

ExitCode exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return kUsage;
    case ErrorCode::kEnvironment:
      return kEnvironmentMissing;
    case ErrorCode::kTimeout:
    case ErrorCode::kInternal:
      break;
  }
  return kFailed;
}

/// Says what the exception on the way is and returns its exit code.
int fail_with_current_exception() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return fail(exit_code_of(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    return fail(kEnvironmentMissing, "out of memory");
  } catch (const std::system_error& error) {
    if (std::ferror(stdout) != 0) return output_lost(error.code().value());
    return fail(kEnvironmentMissing, error.what());
  } catch (const std::exception& error) {
    return fail(kFailed, std::string("internal: ") + error.what());
  } catch (...) {
    return fail(kFailed, "unknown exception");
  }
}

/// Where nothing can catch it: out of memory in a destructor, say.
[[noreturn]] void end_without_unwinding() {
  if (std::current_exception() == nullptr) std::abort();
  ::_exit(fail_with_current_exception());
}

/// What is wrong with the command line; what no command or option stands for comes first, with the
/// names nearest to it.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = &app;
  std::string path = "braid";
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    path += " " + command->get_name();
  }
  const std::vector<std::string> extras = app.remaining(true);
  if (extras.empty()) return fmt::format("{} (see {} --help)", error.what(), path);
  // What follows an unknown option may be its value.
  const auto option = std::find_if(extras.begin(), extras.end(), [](const std::string& text) {
    return text.starts_with('-') && text != "-";
  });
  const bool is_option = option != extras.end();
  std::string found = is_option ? *option : extras.front();
  found.erase(std::min(found.find('='), found.size()));
  std::vector<std::string> names;
  if (is_option) {
    for (const CLI::Option* known : command->get_options()) {
      for (const std::string& name : known->get_lnames()) names.push_back("--" + name);
    }
  } else {
    for (const CLI::App* known : command->get_subcommands(nullptr)) {
      names.push_back(known->get_name());
    }
  }
  const std::string_view kind = is_option ? "option" : names.empty() ? "argument" : "command";
  std::string text = fmt::format("{}: unknown {} {}", path, kind, quote(found));
  constexpr std::size_t kNamed = 3;
  const std::vector<std::string_view> near = nearest(found, {names.begin(), names.end()}, kNamed);
  if (!near.empty()) text += fmt::format("; the nearest: {}", fmt::join(near, ", "));
  return text + fmt::format(" (see {} --help)", path);
}

int run_command(int argc, char** argv) {
  CLI::App app("braid: fused kernels from tensor programs with collectives", "braid");
  app.set_version_flag("--version", BRAID_VERSION);
  app.require_subcommand(1);
  int exit_code = kGood;
  add_run(app, &exit_code);
  add_compile(app, &exit_code);
  add_opt(app, &exit_code);
  add_explain(app, &exit_code);
  add_ptx(app, &exit_code);
  add_cache(app, &exit_code);
  add_doctor(app, &exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help_or_version) {
    std::ostringstream text;
    app.exit(help_or_version, text, text);
    fmt::print("{}", text.str());
  } catch (const CLI::ParseError& error) {
    return fail(kUsage, usage_error(app, error));
  }
  errno = 0;  // closing tells of what a file system found out late
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || ::close(STDOUT_FILENO) != 0) {
    return output_lost(errno != 0 ? errno : EIO);
  }
  return exit_code;
}

}  // namespace
}  // namespace braid::cli

int main(int argc, char** argv) {
  using namespace braid::cli;  // NOLINT(google-build-using-namespace)
  occupy_standard_streams();
  end_on_signals();
  std::set_terminate(end_without_unwinding);
  try {
    return run_command(argc, argv);
  } catch (...) {
    return fail_with_current_exception();
  }
}
