#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "braid/export.h"

namespace braid {

/// Element types. The JSON names are those of `dtype_name`.
/// f8e4m3 is the "fn" form of OCP FP8: no infinity, largest value 448; f8e5m2 has both.
enum class DType : std::uint8_t {
  kF32,
  kF16,
  kBF16,
  kF8E4M3,
  kF8E5M2,
  kI32,
  kI64,
  kI8,
  kU8,
  kBool
};

/// The JSON name: "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "i32", "i64", "i8", "u8" or
/// "bool".
[[nodiscard]] BRAID_API std::string_view dtype_name(DType dtype);
[[nodiscard]] BRAID_API std::optional<DType> parse_dtype(std::string_view name);

/// Bytes per element (bool is one byte).
[[nodiscard]] constexpr std::size_t dtype_size(DType dtype) {
  switch (dtype) {
    case DType::kI64:
      return 8;
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kF16:
    case DType::kBF16:
      return 2;
    case DType::kF8E4M3:
    case DType::kF8E5M2:
    case DType::kI8:
    case DType::kU8:
    case DType::kBool:
      return 1;
  }
  return 0;
}

/// Whether it is an 8-bit float. Only casts, views and scaled matmuls take these.
[[nodiscard]] constexpr bool is_float8(DType dtype) {
  return dtype == DType::kF8E4M3 || dtype == DType::kF8E5M2;
}
[[nodiscard]] constexpr bool is_float(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16 || is_float8(dtype);
}

/// The value of `dtype` nearest to `value`, as a cast gives it (docs/numerics.md). Floats round to
/// nearest even; NaN stays NaN; a value beyond the largest finite one becomes infinity, or in
/// f8e4m3, which has no infinity, the largest finite value. Integers and bool follow to_integer.
[[nodiscard]] BRAID_API double round_to(DType dtype, double value);

/// Casts a float to an integer dtype: truncates towards zero and saturates at the ends of the
/// range. NaN becomes 0, or INT64_MIN in i64. For bool the result is value != 0, so NaN is true.
[[nodiscard]] BRAID_API std::int64_t to_integer(DType dtype, double value);
/// Casts an integer to another integer dtype: keeps the low bits in two's complement. For bool the
/// result is value != 0.
[[nodiscard]] BRAID_API std::int64_t wrap_to(DType dtype, std::int64_t value);

}  // namespace braid
