#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "braid/dtype.h"
#include "braid/export.h"

namespace braid {

/// A dense row-major tensor in host memory.
struct BRAID_API HostTensor {
  DType dtype = DType::kF32;        ///< of its elements
  std::vector<std::int64_t> shape;  ///< the outermost extent first
  std::vector<std::byte> data;      ///< numel * dtype_size bytes, little endian

  [[nodiscard]] std::int64_t numel() const;  ///< elements
  /// All elements converted to double, which holds no i64 beyond 2^53 exactly.
  [[nodiscard]] std::vector<double> to_doubles() const;
  /// Rounds each value to `dtype` (see round_to).
  static HostTensor from_doubles(DType dtype, std::vector<std::int64_t> shape,
                                 const std::vector<double>& values);

  /// All elements of an integer or bool tensor; throws kInvalidArgument for floats.
  [[nodiscard]] std::vector<std::int64_t> to_integers() const;
  /// Wraps each value to `dtype` (see wrap_to), an integer one or bool; throws kInvalidArgument for
  /// floats.
  static HostTensor from_integers(DType dtype, std::vector<std::int64_t> shape,
                                  const std::vector<std::int64_t>& values);
};

}  // namespace braid
