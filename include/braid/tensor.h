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
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;  ///< outermost extent first
  std::vector<std::byte> data;      ///< numel * dtype_size bytes, little endian

  [[nodiscard]] std::int64_t numel() const;  ///< number of elements
  /// All elements as double, which is inexact for i64 beyond 2^53.
  [[nodiscard]] std::vector<double> to_doubles() const;
  /// Makes a tensor of `values`, each rounded to `dtype` (see round_to).
  static HostTensor from_doubles(DType dtype, std::vector<std::int64_t> shape,
                                 const std::vector<double>& values);

  /// All elements of an integer or bool tensor. Throws kInvalidArgument for floats.
  [[nodiscard]] std::vector<std::int64_t> to_integers() const;
  /// Makes an integer or bool tensor of `values`, each wrapped to `dtype` (see wrap_to). Throws
  /// kInvalidArgument for a float dtype.
  static HostTensor from_integers(DType dtype, std::vector<std::int64_t> shape,
                                  const std::vector<std::int64_t>& values);
};

}  // namespace braid
