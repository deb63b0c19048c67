#pragma once

#include <stdexcept>
#include <string>

#include "braid/export.h"

namespace braid {

/// What kind of thing went wrong. The command line turns it into its exit code.
enum class ErrorCode {
  kInvalidArgument,  ///< bad input: a graph, a tensor file, an option (exit code 2)
  kEnvironment,      ///< something is missing or broken on this machine (exit code 3)
  kTimeout,          ///< a wait inside a kernel ran past its deadline (exit code 1)
  kCancelled,        ///< what the caller has cancelled (exit code 1)
  kInternal,         ///< a bug in braid (exit code 1)
};

/// The one exception type of braid. `where` is a place the user knows: a JSON pointer
/// (`/nodes/3/attrs/group`), a file, an option; it may be empty. `what()` reads
/// "where: message" on one line. Only running out of memory is std::bad_alloc, as everywhere.
class BRAID_API Error : public std::runtime_error {
 public:
  Error(ErrorCode code, std::string where, const std::string& message)
      : std::runtime_error(where.empty() ? message : where + ": " + message),
        code_(code),
        where_(std::move(where)) {}

  [[nodiscard]] ErrorCode code() const { return code_; }
  [[nodiscard]] const std::string& where() const { return where_; }

 private:
  ErrorCode code_;
  std::string where_;
};

/// Shorthands for the common codes.
[[noreturn]] inline void throw_invalid(std::string where, const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, std::move(where), message);
}
[[noreturn]] inline void throw_environment(std::string where, const std::string& message) {
  throw Error(ErrorCode::kEnvironment, std::move(where), message);
}
[[noreturn]] inline void throw_internal(std::string where, const std::string& message) {
  throw Error(ErrorCode::kInternal, std::move(where), message);
}

}  // namespace braid
