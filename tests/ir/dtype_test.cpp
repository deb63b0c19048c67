#include "braid/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "braid/tensor.h"

namespace braid {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// All 65536 bit patterns of a 16-bit format, as doubles.
std::vector<double> all_patterns(DType dtype) {
  HostTensor tensor{dtype, {65536}, std::vector<std::byte>(std::size_t{65536} * 2)};
  for (std::size_t i = 0; i < 65536; ++i) {
    tensor.data[2 * i] = static_cast<std::byte>(i & 0xFFU);
    tensor.data[2 * i + 1] = static_cast<std::byte>(i >> 8U);
  }
  return tensor.to_doubles();
}

class Dtype16Test : public ::testing::TestWithParam<DType> {};

TEST_P(Dtype16Test, EveryValueIsKept) {
  for (double value : all_patterns(GetParam())) {
    const double rounded = round_to(GetParam(), value);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(rounded));
    } else {
      ASSERT_EQ(rounded, value);
      ASSERT_EQ(std::signbit(rounded), std::signbit(value));
    }
  }
}

TEST_P(Dtype16Test, EveryMidpointGoesToTheEvenNeighbour) {
  const std::vector<double> values = all_patterns(GetParam());
  for (std::size_t i = 0; i + 1 < 32768 && std::isfinite(values[i + 1]); ++i) {
    const double low = values[i];
    const double high = values[i + 1];
    const double middle = low + (high - low) / 2;
    ASSERT_EQ(round_to(GetParam(), middle), i % 2 == 0 ? low : high) << i;
    ASSERT_EQ(round_to(GetParam(), -middle), i % 2 == 0 ? -low : -high) << i;
    ASSERT_EQ(round_to(GetParam(), std::nextafter(middle, 0)), low) << i;
    ASSERT_EQ(round_to(GetParam(), std::nextafter(middle, kInfinity)), high) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, Dtype16Test, ::testing::Values(DType::kF16, DType::kBF16));

TEST(Dtype, LargeValuesBecomeInfinite) {
  EXPECT_EQ(round_to(DType::kF16, 65519.99), 65504);
  EXPECT_EQ(round_to(DType::kF16, 65520), kInfinity);
  EXPECT_EQ(round_to(DType::kF16, -1e300), -kInfinity);
  EXPECT_EQ(round_to(DType::kBF16, std::ldexp(255.5, 120)), kInfinity);
  EXPECT_EQ(round_to(DType::kBF16, std::ldexp(255.499, 120)), std::ldexp(255, 120));
  EXPECT_EQ(round_to(DType::kF32, 3.5e38), kInfinity);
}

TEST(Dtype, F32AgreesWithTheHardware) {
  for (double value : {0.1, -1.0 / 3, 1e-40, 1.4e-45, 7e-46, 3.4e38, 16777217.0, -0.0}) {
    EXPECT_EQ(round_to(DType::kF32, value), static_cast<double>(static_cast<float>(value)));
  }
}

TEST(Dtype, IntegersTruncateAndSaturate) {
  EXPECT_EQ(round_to(DType::kI32, 2.9), 2);
  EXPECT_EQ(round_to(DType::kI32, -2.9), -2);
  EXPECT_EQ(round_to(DType::kI32, 2147483648.0), 2147483647);
  EXPECT_EQ(round_to(DType::kI64, -5e3), -5000);
  EXPECT_EQ(round_to(DType::kU8, 257), 255);
  EXPECT_EQ(round_to(DType::kU8, -1), 0);
  EXPECT_EQ(round_to(DType::kI32, std::nan("")), 0);
  EXPECT_EQ(round_to(DType::kI32, kInfinity), 2147483647);
  EXPECT_EQ(wrap_to(DType::kI32, std::int64_t{1} << 31), -2147483648);
  EXPECT_EQ(wrap_to(DType::kU8, 257), 1);
  EXPECT_EQ(wrap_to(DType::kBool, 256), 1);
}

TEST(Dtype, BoolIsNotZero) {
  EXPECT_EQ(round_to(DType::kBool, 0.25), 1);
  EXPECT_EQ(round_to(DType::kBool, 0), 0);
}

TEST(Dtype, NamesReadBack) {
  for (const char* name : {"f32", "f16", "bf16", "i32", "i64", "u8", "bool"}) {
    ASSERT_TRUE(parse_dtype(name)) << name;
    EXPECT_EQ(dtype_name(*parse_dtype(name)), name);
  }
  EXPECT_FALSE(parse_dtype("float32"));
}

TEST(DType, RoundsToEightBitFloats) {
  EXPECT_EQ(round_to(DType::kF8E4M3, 17), 16);
  EXPECT_EQ(round_to(DType::kF8E4M3, 464), 448);  // a tie, to the even neighbour
  EXPECT_EQ(round_to(DType::kF8E4M3, 465), 448);
  EXPECT_EQ(round_to(DType::kF8E4M3, -kInfinity), -448);
  EXPECT_TRUE(std::isnan(round_to(DType::kF8E4M3, std::nan(""))));
  EXPECT_EQ(round_to(DType::kF8E4M3, 0x1p-10), 0);
  EXPECT_EQ(round_to(DType::kF8E4M3, 0x1.8p-9), 0x1p-8);
  EXPECT_EQ(round_to(DType::kF8E5M2, 57344), 57344);
  EXPECT_TRUE(std::isinf(round_to(DType::kF8E5M2, 61440)));
}

}  // namespace
}  // namespace braid
