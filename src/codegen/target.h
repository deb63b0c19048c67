#pragma once

#include <string>
#include <string_view>

namespace braid {

/// The target of a compile: an architecture, and a device of it if the user names one. Differences
/// between architectures and devices are data (device_model.h), never copies of an emitter. Targets
/// are always passed in: compiling never asks a device.
struct Target {
  int sm = 80;                 ///< 80, 90, 100, ...
  bool arch_specific = false;  ///< the `a` suffix: sm_90a
  std::string_view device{};   ///< name in device_model.h's table; empty: the architecture's first

  /// Parses "sm_80", "sm_90a", ..., or a device's name. Throws kInvalidArgument.
  static Target parse(std::string_view text);
  /// The form that parse() reads.
  [[nodiscard]] std::string str() const;
  /// The architecture for the compiler: "sm_90a".
  [[nodiscard]] std::string arch() const;
  /// Shared memory that one block may use: a KiB less than a multiprocessor has.
  [[nodiscard]] int max_shared_bytes() const;
  bool operator==(const Target&) const = default;
};

}  // namespace braid
