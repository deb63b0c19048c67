#pragma once

#include <string>
#include <string_view>

namespace braid {

/// The first GPU architecture that braid compiles for.
inline constexpr int kLeastSm = 80;

/// The target of a compile: an architecture, a device of it if the user names one, and the units
/// (units.h) that kernels may use. Differences between architectures and devices are data
/// (device_model.h), never copies of an emitter. Targets are always passed in: compiling never asks
/// a device.
struct Target {
  int sm = kLeastSm;           ///< 80, 90, 100, ...
  bool arch_specific = false;  ///< the `a` suffix: sm_90a
  std::string_view device{};   ///< name in device_model.h's table; empty: the architecture's first
  unsigned off = 0;  ///< units that it has but that kernels may not use: a bit for each of
                     ///< all_units()

  /// Parses "sm_80", "sm_90a", ..., or a device's name; behind a colon may stand the names of the
  /// units that kernels may use: "H100:mma.sync,cp.async". Others are then off, but for those that
  /// every kernel needs. Throws kInvalidArgument.
  static Target parse(std::string_view text);
  /// The same, where the text may leave out the part before the colon, or be empty: `otherwise` is
  /// the target then.
  static Target parse(std::string_view text, const Target& otherwise);
  /// The form that parse() reads. It names units only where some are off.
  [[nodiscard]] std::string str() const;
  /// The architecture for the compiler: "sm_90a".
  [[nodiscard]] std::string arch() const;
  /// Shared memory that one block may use: a KiB less than a multiprocessor has.
  [[nodiscard]] int max_shared_bytes() const;
  bool operator==(const Target&) const = default;
};

}  // namespace braid
