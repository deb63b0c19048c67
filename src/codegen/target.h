#pragma once

#include <string>
#include <string_view>

namespace braid {

/// What a kernel is compiled for. Differences between architectures are data here, never copies of
/// an emitter. Always passed in: compiling never asks a device.
struct Target {
  int sm = 80;                 ///< 80, 90, 100, ...
  bool arch_specific = false;  ///< the `a` suffix: sm_90a

  /// Reads "sm_80", "sm_90a", ...; throws kInvalidArgument.
  static Target parse(std::string_view text);
  [[nodiscard]] std::string str() const;
  /// What one block may use: 163 KiB on sm_80, 227 KiB on sm_90 and
  /// sm_100, 99 KiB on consumer parts (CUDA C++ Programming Guide, compute capabilities).
  [[nodiscard]] int max_shared_bytes() const {
    const bool consumer = sm == 86 || sm == 89 || sm >= 120;
    return (consumer ? 99 : sm < 90 ? 163 : 227) << 10;
  }
  bool operator==(const Target&) const = default;
};

}  // namespace braid
