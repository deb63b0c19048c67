#pragma once

#include <stdexcept>
#include <string>

#include "braid/export.h"

namespace braid {

/// The kind of an error. The command line turns it into an exit code.
enum class ErrorCode {
  kInvalidArgument,  ///< bad input: a graph, a tensor file, an option (exit code 2)
  kEnvironment,      ///< something is missing or broken on this machine (exit code 3)
  kTimeout,          ///< a wait inside a kernel ran past its deadline (exit code 1)
  kCancelled,        ///< the caller cancelled it (exit code 1)
  kInternal,         ///< a bug in braid (exit code 1)
};

/// The only exception type of braid, besides std::bad_alloc when memory runs out. `where` is a
/// place that the user knows: a JSON pointer (`/nodes/3/attrs/group`), a file, an option; it may be
/// empty. `what()` is "where: message" on one line.
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
