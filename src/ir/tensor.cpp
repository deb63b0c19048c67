#include "braid/tensor.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "ir/fail.h"
#include "ir/mapped.h"

namespace braid {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are little endian in memory");

float bf16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}
/// `value` must be representable in bf16 and not NaN; the same holds for the functions below.
std::uint16_t float_to_bf16(float value) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16U);
}

constexpr float kTwoToMinus24 = 0x1p-24F;

float f16_to_float(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16U;
  const std::uint32_t exponent = bits >> 10U & 0x1FU;
  const std::uint32_t mantissa = bits & 0x3FFU;
  if (exponent == 0) {
    return std::copysign(static_cast<float>(mantissa) * kTwoToMinus24, std::bit_cast<float>(sign));
  }
  const std::uint32_t float_exponent = exponent == 0x1F ? 0xFF : exponent + (127 - 15);
  return std::bit_cast<float>(sign | float_exponent << 23U | mantissa << 13U);
}

/// `value` must be representable in f16.
std::uint16_t float_to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16U & 0x8000U;
  const std::uint32_t exponent = bits >> 23U & 0xFFU;
  if (exponent == 0xFF) return static_cast<std::uint16_t>(sign | 0x7C00U | (bits >> 13U & 0x3FFU));
  if (exponent > 127 - 15) {
    return static_cast<std::uint16_t>(sign | (exponent - (127 - 15)) << 10U |
                                      (bits >> 13U & 0x3FFU));
  }
  return static_cast<std::uint16_t>(sign |
                                    static_cast<std::uint32_t>(std::fabs(value) / kTwoToMinus24));
}

/// Fields of an 8-bit float: `mantissa` bits, and an exponent with this bias.
struct Float8 {
  int mantissa;
  int bias;
  bool has_infinity;
};
constexpr Float8 kE4M3 = {3, 7, false};
constexpr Float8 kE5M2 = {2, 15, true};

double float8_to_double(Float8 format, std::uint8_t bits) {
  const int mantissa = bits & ((1 << format.mantissa) - 1);
  const int exponent = (bits & 0x7F) >> format.mantissa;
  const int largest = 0x7F >> format.mantissa;
  const double sign = (bits & 0x80U) != 0 ? -1 : 1;
  if (exponent == largest && (format.has_infinity || mantissa == 7)) {
    if (format.has_infinity && mantissa == 0) return sign * std::numeric_limits<double>::infinity();
    return std::numeric_limits<double>::quiet_NaN();
  }
  const int hidden = exponent == 0 ? 0 : 1 << format.mantissa;
  return sign *
         std::ldexp(hidden + mantissa, std::max(exponent, 1) - format.bias - format.mantissa);
}

/// `value` must be representable in the format.
std::uint8_t double_to_float8(Float8 format, double value) {
  const std::uint8_t sign = std::signbit(value) ? 0x80 : 0;
  const double magnitude = std::fabs(value);
  // Positive codes are sorted by value.
  int low = 0;
  int high = format.has_infinity ? 0x7C : 0x7E;
  while (low < high) {
    const int middle = (low + high) / 2;
    float8_to_double(format, static_cast<std::uint8_t>(middle)) < magnitude ? low = middle + 1
                                                                            : high = middle;
  }
  return static_cast<std::uint8_t>(sign | low);
}

// A double can hold a NaN of any format: its sign, and its mantissa in the upper bits. So elements
// that are only moved keep their bits. (A conversion by the host would quiet a signalling NaN.)
constexpr int kDoubleMantissa = 52;

/// Bits of the mantissa.
constexpr int mantissa_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 23;
    case DType::kF16:
      return 10;
    case DType::kBF16:
      return 7;
    case DType::kF8E4M3:
      return kE4M3.mantissa;
    default:
      return kE5M2.mantissa;
  }
}

template <class Stored>
double nan_from_bits(DType dtype, Stored bits) {
  const int mantissa = mantissa_of(dtype);
  const std::uint64_t sign = bits >> (8 * sizeof(Stored) - 1);
  const std::uint64_t payload = bits & ((std::uint64_t{1} << mantissa) - 1);
  return std::bit_cast<double>(sign << 63U | std::uint64_t{0x7FF} << kDoubleMantissa |
                               payload << (kDoubleMantissa - mantissa));
}

template <class Stored>
Stored nan_to_bits(DType dtype, double value) {
  constexpr int kSign = 8 * sizeof(Stored) - 1;
  const int mantissa = mantissa_of(dtype);
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t all = (std::uint64_t{1} << mantissa) - 1;
  std::uint64_t payload = bits >> (kDoubleMantissa - mantissa) & all;
  if (dtype == DType::kF8E4M3) payload = all;                      // all other codes are numbers
  if (payload == 0) payload = std::uint64_t{1} << (mantissa - 1);  // a zero payload is infinity
  const std::uint64_t exponent = ((std::uint64_t{1} << kSign) - 1) & ~all;
  return static_cast<Stored>(bits >> 63U << kSign | exponent | payload);
}

/// `Bits` is the unsigned integer type of the element's size.
template <class Bits, class Convert>
std::vector<double> read_all(DType dtype, const std::vector<std::byte>& data, Convert convert) {
  std::vector<double> result(data.size() / sizeof(Bits));
  for (std::size_t i = 0; i < result.size(); ++i) {
    Bits stored;
    std::memcpy(&stored, data.data() + i * sizeof(Bits), sizeof(Bits));
    result[i] = static_cast<double>(convert(stored));
    if (std::isnan(result[i])) result[i] = nan_from_bits(dtype, stored);
  }
  return result;
}

template <class Bits, class Convert>
std::vector<std::byte> write_all(DType dtype, const std::vector<double>& values, Convert convert) {
  std::vector<std::byte> data(values.size() * sizeof(Bits));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Bits stored = std::isnan(values[i]) ? nan_to_bits<Bits>(dtype, values[i])
                                              : convert(round_to(dtype, values[i]));
    std::memcpy(data.data() + i * sizeof(Bits), &stored, sizeof(Bits));
  }
  return data;
}

template <class Stored>
std::vector<std::int64_t> read_integers(const std::vector<std::byte>& data) {
  std::vector<std::int64_t> result(data.size() / sizeof(Stored));
  for (std::size_t i = 0; i < result.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, data.data() + i * sizeof(Stored), sizeof(Stored));
    result[i] = stored;
  }
  return result;
}

template <class Stored>
std::vector<std::byte> write_integers(DType dtype, const std::vector<std::int64_t>& values) {
  std::vector<std::byte> data(values.size() * sizeof(Stored));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto stored = static_cast<Stored>(wrap_to(dtype, values[i]));
    std::memcpy(data.data() + i * sizeof(Stored), &stored, sizeof(Stored));
  }
  return data;
}

[[noreturn]] void fail_float(DType dtype) {
  throw_invalid("", "the dtype is {}; expected an integer one or bool", dtype_name(dtype));
}

void check_count(const HostTensor& tensor, std::size_t count) {
  if (tensor.numel() == static_cast<std::int64_t>(count)) return;
  throw_invalid("", "{} values for a tensor of {} elements", count, tensor.numel());
}

}  // namespace

std::int64_t HostTensor::numel() const {
  std::int64_t n = 1;
  for (std::int64_t extent : shape) n *= extent;
  return n;
}

std::vector<double> HostTensor::to_doubles() const {
  switch (dtype) {
    case DType::kF32:
      return read_all<std::uint32_t>(dtype, data, [](auto x) { return std::bit_cast<float>(x); });
    case DType::kF16:
      return read_all<std::uint16_t>(dtype, data, f16_to_float);
    case DType::kBF16:
      return read_all<std::uint16_t>(dtype, data, bf16_to_float);
    case DType::kF8E4M3:
      return read_all<std::uint8_t>(dtype, data, [](auto x) { return float8_to_double(kE4M3, x); });
    case DType::kF8E5M2:
      return read_all<std::uint8_t>(dtype, data, [](auto x) { return float8_to_double(kE5M2, x); });
    default: {
      const std::vector<std::int64_t> integers = to_integers();
      return {integers.begin(), integers.end()};
    }
  }
}

std::vector<std::int64_t> HostTensor::to_integers() const {
  switch (dtype) {
    case DType::kI32:
      return read_integers<std::int32_t>(data);
    case DType::kI64:
      return read_integers<std::int64_t>(data);
    case DType::kI8:
      return read_integers<std::int8_t>(data);
    case DType::kU8:
      return read_integers<std::uint8_t>(data);
    case DType::kBool: {
      std::vector<std::int64_t> truths = read_integers<std::uint8_t>(data);
      for (std::int64_t& truth : truths) truth = wrap_to(dtype, truth);
      return truths;
    }
    default:
      fail_float(dtype);
  }
}

HostTensor HostTensor::from_doubles(DType dtype, std::vector<std::int64_t> shape,
                                    const std::vector<double>& values) {
  if (!is_float(dtype)) {
    const auto integers = mapped(values, [&](double value) { return to_integer(dtype, value); });
    return from_integers(dtype, std::move(shape), integers);
  }
  HostTensor tensor{dtype, std::move(shape), {}};
  check_count(tensor, values.size());
  auto narrow = [](double x) { return static_cast<float>(x); };
  switch (dtype) {
    case DType::kF32:
      tensor.data = write_all<std::uint32_t>(
          dtype, values, [&](double x) { return std::bit_cast<std::uint32_t>(narrow(x)); });
      break;
    case DType::kF16:
      tensor.data = write_all<std::uint16_t>(dtype, values,
                                             [&](double x) { return float_to_f16(narrow(x)); });
      break;
    case DType::kBF16:
      tensor.data = write_all<std::uint16_t>(dtype, values,
                                             [&](double x) { return float_to_bf16(narrow(x)); });
      break;
    case DType::kF8E4M3:
      tensor.data = write_all<std::uint8_t>(dtype, values,
                                            [](double x) { return double_to_float8(kE4M3, x); });
      break;
    case DType::kF8E5M2:
      tensor.data = write_all<std::uint8_t>(dtype, values,
                                            [](double x) { return double_to_float8(kE5M2, x); });
      break;
    default:
      break;
  }
  return tensor;
}

HostTensor HostTensor::from_integers(DType dtype, std::vector<std::int64_t> shape,
                                     const std::vector<std::int64_t>& values) {
  HostTensor tensor{dtype, std::move(shape), {}};
  check_count(tensor, values.size());
  switch (dtype) {
    case DType::kI32:
      tensor.data = write_integers<std::int32_t>(dtype, values);
      break;
    case DType::kI64:
      tensor.data = write_integers<std::int64_t>(dtype, values);
      break;
    case DType::kI8:
      tensor.data = write_integers<std::int8_t>(dtype, values);
      break;
    case DType::kU8:
    case DType::kBool:
      tensor.data = write_integers<std::uint8_t>(dtype, values);
      break;
    default:
      fail_float(dtype);
  }
  return tensor;
}

}  // namespace braid
