#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>

#include "braid/error.h"
#include "cli/command_line.h"
#include "cli/common.h"

// Everything that the process owes its caller: every way out of a command ends in an exit code;
// errors are one line; and output that could not be written is an error. Commands print to stdout
// with fmt::print, which throws std::system_error, and to stderr with note(), which cannot fail.

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

/// A write past the limit on a file's size fails as any other does, which takes the file away and
/// is said, instead of ending the process.
void fail_writes_past_the_limit() { std::signal(SIGXFSZ, SIG_IGN); }

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
    case ErrorCode::kCancelled:
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

/// For exceptions that nothing can catch, such as out of memory in a destructor.
[[noreturn]] void end_without_unwinding() {
  if (std::current_exception() == nullptr) std::abort();
  ::_exit(fail_with_current_exception());
}

int run_command(int argc, char** argv) {
  const int exit_code = run_command_line(argc, argv);
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
  fail_writes_past_the_limit();
  std::set_terminate(end_without_unwinding);
  try {
    return run_command(argc, argv);
  } catch (...) {
    return fail_with_current_exception();
  }
}
