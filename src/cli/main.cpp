#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <new>

#include "braid/error.h"
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
    return app.exit(help_or_version);
  } catch (const CLI::ParseError& error) {
    return fail(kUsage, fmt::format("{} (see braid --help)", error.what()));
  }
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
