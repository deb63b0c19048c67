#pragma once

#include <string>
#include <string_view>

namespace braid {

/// What a kernel is compiled for: an architecture, and a device of it, if the user names one.
/// Differences between architectures and devices are data (device_model.h), never copies of an
/// emitter. Always passed in: compiling never asks a device.
struct Target {
  int sm = 80;                 ///< 80, 90, 100, ...
  bool arch_specific = false;  ///< the `a` suffix: sm_90a
  std::string_view device{};   ///< of device_model.h's table; empty: the architecture's first

  /// Reads "sm_80", "sm_90a", ..., or a device's name; throws kInvalidArgument.
  static Target parse(std::string_view text);
  /// As parse reads it.
  [[nodiscard]] std::string str() const;
  /// What the compiler is told: "sm_90a".
  [[nodiscard]] std::string arch() const;
  /// What one block may use: a KiB less than a multiprocessor has.
  [[nodiscard]] int max_shared_bytes() const;
  bool operator==(const Target&) const = default;
};

}  // namespace braid
