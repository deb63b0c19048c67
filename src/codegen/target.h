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
  [[nodiscard]] int max_shared_bytes() const {
    return sm == 86 || sm == 89 ? 99 << 10 : sm < 90 ? 163 << 10 : 227 << 10;
  }
  bool operator==(const Target&) const = default;
};

}  // namespace braid
