#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <new>

#include "braid/error.h"
#include "cli/command_line.h"
#include "cli/common.h"

namespace braid::cli {
namespace {

int fail(ExitCode code, std::string_view message) {
  std::fflush(stdout);
  fmt::print(stderr, "braid: error: {}\n", one_line(message));
  return code;
}

int exit_code_of(const Error& error) {
  switch (error.code()) {
    case ErrorCode::kInvalidArgument:
      return fail(kUsage, error.what());
    case ErrorCode::kEnvironment:
      return fail(kEnvironmentMissing, error.what());
    case ErrorCode::kTimeout:
    case ErrorCode::kInternal:
      break;
  }
  return fail(kFailed, error.what());
}

int run_command(int argc, char** argv) {
  const int exit_code = run_command_line(argc, argv);
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return fail(kEnvironmentMissing, "stdout: cannot be written");
  }
  return exit_code;
}

}  // namespace
}  // namespace braid::cli

int main(int argc, char** argv) {
  using namespace braid::cli;  // NOLINT(google-build-using-namespace)
  try {
    return run_command(argc, argv);
  } catch (const braid::Error& error) {
    return exit_code_of(error);
  } catch (const std::bad_alloc&) {
    return fail(kEnvironmentMissing, "out of memory");
  } catch (const std::exception& error) {
    return fail(kFailed, fmt::format("internal: {}", error.what()));
  }
}
