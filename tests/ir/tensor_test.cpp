#include "braid/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "support.h"

namespace braid {
namespace {

std::vector<unsigned> bytes_of(DType dtype, double value) {
  std::vector<unsigned> bytes;
  for (std::byte b : HostTensor::from_doubles(dtype, {1}, {value}).data) {
    bytes.push_back(std::to_integer<unsigned>(b));
  }
  return bytes;
}

TEST(Tensor, StoresLittleEndian) {
  using Bytes = std::vector<unsigned>;
  EXPECT_EQ(bytes_of(DType::kF32, 1.0), (Bytes{0, 0, 0x80, 0x3F}));
  EXPECT_EQ(bytes_of(DType::kBF16, -2.0), (Bytes{0x00, 0xC0}));
  EXPECT_EQ(bytes_of(DType::kF16, 1.5), (Bytes{0x00, 0x3E}));
  EXPECT_EQ(bytes_of(DType::kF16, 0x1p-24), (Bytes{0x01, 0x00}));
  EXPECT_EQ(bytes_of(DType::kI32, -2), (Bytes{0xFE, 0xFF, 0xFF, 0xFF}));
  EXPECT_EQ(bytes_of(DType::kI64, 258), (Bytes{2, 1, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(bytes_of(DType::kI8, -2), (Bytes{0xFE}));
  EXPECT_EQ(bytes_of(DType::kBool, 7), (Bytes{1}));
}

TEST(Tensor, RoundTripsEveryDtype) {
  for (DType dtype :
       {DType::kF32, DType::kF16, DType::kBF16, DType::kI32, DType::kI64, DType::kI8, DType::kU8}) {
    const std::vector<double> values = {0, 1, 2, 3, 100, 127};
    EXPECT_EQ(HostTensor::from_doubles(dtype, {2, 3}, values).to_doubles(), values);
  }
}

TEST(Tensor, NanStaysNan) {
  // A payload in the low bits alone must not turn into infinity in a 16-bit format.
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (double nan : {std::nan(""), std::nan("1")}) {
      EXPECT_TRUE(std::isnan(HostTensor::from_doubles(dtype, {1}, {nan}).to_doubles()[0]));
    }
  }
  float low_payload = 0;
  const std::uint32_t bits = 0x7F800001;
  std::memcpy(&low_payload, &bits, sizeof bits);
  HostTensor f32{DType::kF32, {1}, std::vector<std::byte>(4)};
  std::memcpy(f32.data.data(), &low_payload, 4);
  EXPECT_TRUE(
      std::isnan(HostTensor::from_doubles(DType::kBF16, {1}, f32.to_doubles()).to_doubles()[0]));
}

TEST(Tensor, ANanComesBackWithAllItsBits) {
  const auto comes_back = [](DType dtype, std::uint64_t bits) {
    HostTensor nan{dtype, {1}, std::vector<std::byte>(dtype_size(dtype))};
    std::memcpy(nan.data.data(), &bits, nan.data.size());
    EXPECT_TRUE(std::isnan(nan.to_doubles()[0])) << dtype_name(dtype) << ' ' << bits;
    EXPECT_EQ(HostTensor::from_doubles(dtype, {1}, nan.to_doubles()).data, nan.data)
        << dtype_name(dtype) << ' ' << bits;
  };
  for (const std::uint64_t bits : {0x7FC00000, 0x7F800001, 0x7FFFFFFF}) {
    comes_back(DType::kF32, bits);
    comes_back(DType::kF32, bits | 0x80000000U);
  }
  for (const std::uint64_t bits : {0x7C01, 0x7E00, 0xFC01, 0xFFFF}) comes_back(DType::kF16, bits);
  for (const std::uint64_t bits : {0x7F81, 0x7FC0, 0xFF81, 0xFFFF}) comes_back(DType::kBF16, bits);
}

TEST(Tensor, RefusesTheWrongNumberOfValues) {
  EXPECT_TRUE(
      is_error(error_of([] {
                 static_cast<void>(HostTensor::from_doubles(DType::kF32, {2, 2}, {1, 2, 3}));
               }),
               "", "3 values for a tensor of 4 elements"));
}

TEST(Tensor, EveryFloat8CodeComesBack) {
  for (DType dtype : {DType::kF8E4M3, DType::kF8E5M2}) {
    HostTensor codes{dtype, {256}, {}};
    for (int i = 0; i < 256; ++i) codes.data.push_back(static_cast<std::byte>(i));
    const std::vector<double> values = codes.to_doubles();
    const HostTensor again = HostTensor::from_doubles(dtype, {256}, values);
    for (std::size_t i = 0; i < 256; ++i) {
      EXPECT_EQ(again.data[i], codes.data[i]) << i;
    }
  }
}

}  // namespace
}  // namespace braid
