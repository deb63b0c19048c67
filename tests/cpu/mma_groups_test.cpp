// Several mma in a row, which are done together: whatever their registers share, each must do what
// it does alone, to the bit.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "cpu/cpu_harness.h"
#include "cpu/semantics.h"

namespace braid::cpu_test {
namespace {

using namespace semantics;

struct Type {
  const char* shape;
  const char* types;
  int a, c;  ///< registers
  int bits;  ///< of an element of A and B
  Format format{};
};
const Type kTypes[] = {{"m16n8k16", "f32.f16.f16.f32", 4, 4, 16, kF16},
                       {"m16n8k8", "f32.f16.f16.f32", 2, 4, 16, kF16},
                       {"m16n8k16", "f32.bf16.bf16.f32", 4, 4, 16, kBf16},
                       {"m16n8k8", "f32.tf32.tf32.f32", 4, 4, 32, kF32},
                       {"m16n8k16", "f16.f16.f16.f16", 4, 2, 16},
                       {"m16n8k32", "f32.e4m3.e5m2.f32", 4, 4, 8},
                       {"m16n8k32", "s32.s8.u8.s32", 4, 4, 8},
                       {"m16n8k32", "satfinite.s32.s8.u8.s32", 4, 4, 8}};

/// The numbers of the registers of D, A, B and C.
struct Product {
  std::vector<int> d, a, b, c;
};

constexpr int kFragments = 12;  // of 4 registers, aligned or not

std::vector<int> some_registers(Random& random, int count) {
  const auto first = static_cast<int>(4 * (random.next() % kFragments));
  // Most are whole fragments; some overlap two.
  const int shift = random.next() % 8 == 0 ? static_cast<int>(random.next() % 4) : 0;
  std::vector<int> registers;
  for (int r = 0; r < count; ++r) registers.push_back((first + shift + r) % (4 * kFragments));
  return registers;
}

std::vector<Product> some_products(const Type& type, Random& random) {
  std::vector<Product> products(24);
  for (Product& product : products) {
    product.a = some_registers(random, type.a);
    product.b = some_registers(random, type.a / 2);
    product.d = some_registers(random, type.c);
    // Most add to what they had, as in real kernels.
    product.c = random.next() % 4 != 0 ? product.d : some_registers(random, type.c);
  }
  return products;
}

std::string list(const std::vector<int>& registers) {
  std::string text;
  for (const int r : registers) text += fmt::format("{}%r{}", text.empty() ? "{" : ", ", r);
  return text + "}";
}

std::vector<u32> run(const Type& type, const std::vector<Product>& products,
                     const std::vector<u32>& memory, bool together,
                     MatrixSums sums = MatrixSums::kRounded) {
  constexpr int kRegisters = 4 * kFragments;
  std::string body;
  for (int r = 0; r < kRegisters; ++r) {
    body += fmt::format("ld.global.b32 %r{}, [%I+{}];\n", r, 128 * r);
  }
  for (const Product& product : products) {
    body += fmt::format("mma.sync.aligned.{}.row.col.{} {}, {}, {}, {};\n", type.shape, type.types,
                        list(product.d), list(product.a), list(product.b), list(product.c));
    if (!together) body += "bar.warp.sync 0xffffffff;\n";
  }
  for (int r = 0; r < kRegisters; ++r) {
    body += fmt::format("st.global.b32 [%I+{}], %r{};\n", 128 * r, r);
  }
  Bench bench = Bench::from_ptx(fmt::format(R"(.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 in)
{{
.reg .b32 %r<{}>, %i;
.reg .b64 %I, %w;
ld.param.u64 %I, [in];
mov.u32 %i, %laneid;
mul.wide.u32 %w, %i, 4;
add.s64 %I, %I, %w;
{}ret;
}}
)",
                                            kRegisters, body),
                                {.threads = 2, .matrix_sums = sums});
  const u64 at = bench.upload(memory);
  bench.run({1}, {32}, 0, at);
  return bench.download<u32>(at, memory.size());
}

/// Finite numbers of all sizes, zeros and subnormals; with `all`, any bits.
std::vector<u32> some_memory(Random& random, bool all) {
  std::vector<u32> memory(32 * 4 * kFragments);
  for (u32& word : memory) {
    word = static_cast<u32>(random.next() >> 32);
    if (random.next() % 8 == 0) word &= 0x807f807f;
    // The top exponents, of bf16 and f32 as well.
    if (!all) word &= 0xbfffbfff;
  }
  return memory;
}

class MmaGroups : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(All, MmaGroups, testing::Range<std::size_t>(0, std::size(kTypes)));

TEST_P(MmaGroups, AreAsEachAlone) {
  const Type& type = kTypes[GetParam()];
  Random random(7 + GetParam());
  for (int round = 0; round < 12; ++round) {
    const std::vector<Product> products = some_products(type, random);
    const std::vector<u32> memory = some_memory(random, round % 2 == 0);
    const MatrixSums sums = round % 4 < 2 ? MatrixSums::kRounded : MatrixSums::kHopper;
    ASSERT_EQ(run(type, products, memory, true, sums), run(type, products, memory, false, sums))
        << round;
  }
}

/// One k after the other, k ascending, each by one fused multiply-add.
void multiply(const Type& type, const Product& product, std::vector<u32>& memory) {
  const auto word = [&](int reg, int lane) {
    return memory[static_cast<std::size_t>(32 * reg + lane)];
  };
  const int per_register = 32 / type.bits;
  const int part = 4 * per_register;
  const auto element = [&](int reg, int lane, int k) {
    u64 bits = word(reg, lane) >> (type.bits * (k % per_register)) & (~u64{0} >> (64 - type.bits));
    if (type.bits == 32) bits &= ~u64{0x1fff};
    return static_cast<float>(to_double(type.format, bits));
  };
  std::vector<u32> sums;
  for (int r = 0; r < 4; ++r) {
    for (int lane = 0; lane < 32; ++lane) {
      const int row = lane / 4 + 8 * (r / 2);
      const int column = 2 * (lane % 4) + r % 2;
      const u32 start = word(product.c[static_cast<std::size_t>(r)], lane);
      float sum = 0;
      std::memcpy(&sum, &start, 4);
      for (int k = 0; k < part * type.a / 2; ++k) {
        const int t = k % part / per_register;
        const auto at = static_cast<std::size_t>(k / part);
        sum = std::fma(
            element(product.a[static_cast<std::size_t>(row / 8) + 2 * at], 4 * (row % 8) + t, k),
            element(product.b[at], 4 * column + t, k), sum);
      }
      u32 bits = 0;
      std::memcpy(&bits, &sum, 4);
      sums.push_back(std::isnan(sum) ? 0x7fffffff : bits);
    }
  }
  for (std::size_t r = 0; r < 4; ++r) {
    std::memcpy(&memory[32 * static_cast<std::size_t>(product.d[r])], &sums[32 * r], 128);
  }
}

/// Types whose products and sums an f32 can represent.
class MmaOrder : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(All, MmaOrder, testing::Range<std::size_t>(0, 4));

TEST_P(MmaOrder, IsOneKAfterTheOther) {
  const Type& type = kTypes[GetParam()];
  Random random(70 + GetParam());
  for (int round = 0; round < 6; ++round) {
    const std::vector<Product> products = some_products(type, random);
    const std::vector<u32> memory = some_memory(random, false);
    std::vector<u32> want = memory;
    for (const Product& product : products) multiply(type, product, want);
    const std::vector<u32> got = run(type, products, memory, true);
    for (std::size_t i = 0; i < want.size(); ++i) {
      ASSERT_EQ(got[i], want[i]) << round << " " << i;
    }
  }
}

}  // namespace
}  // namespace braid::cpu_test
