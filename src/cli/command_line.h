#pragma once

namespace braid::cli {

/// Runs the command that the arguments name and returns its exit code; also prints help. Throws
/// braid::Error, kInvalidArgument for arguments that are no good.
[[nodiscard]] int run_command_line(int argc, char** argv);

}  // namespace braid::cli
