#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "runtime/cpu/run/lanes.h"
#include "runtime/cpu/run/matrix_code.h"
#include "runtime/cpu/run/rounding_scope.h"
#include "runtime/cpu/run/runtime_helpers.h"

// The matrix products that are not worth the speed of runtime_mma.cpp, by the definition of each:
// where an element lies, what its bits mean, and what a step of k does. The numerics are the same.

namespace braid::cpu {
namespace {

// The most elements that A, B and the sums have.
constexpr std::size_t kMostA = 1024;
constexpr std::size_t kMostB = 512;
constexpr std::size_t kMostSums = 256;

/// The place of an element, and in which of four products.
struct Place {
  int row, column;
  int product = 0;
};

/// Of the e-th element of a lane, in registers of `per` elements.
Place place_in_mma(const MatrixCode& code, Matrix matrix, int lane, int e, int per) {
  const int group = lane / 4;
  const int in_group = lane % 4;
  const int r = e / per;
  if (matrix == Matrix::kSum) return {group + 8 * (e / 2), 2 * in_group + e % 2};
  // Registers of A go over rows g and g + 8, then to the next part of k.
  const bool tall = matrix == Matrix::kA && code.m == 16;
  const int k = (4 * (tall ? r / 2 : r) + in_group) * per + e % per;
  if (matrix == Matrix::kB) return {k, group};
  return {group + (tall ? 8 * (r % 2) : 0), k};
}

Place place_in_quads(const MatrixCode& code, Matrix matrix, int lane, int e, int per) {
  const int product = lane % 16 / 4;
  const int high = lane / 16 * 4;
  const int own = lane % 4;
  if (matrix == Matrix::kA) {
    return code.columns ? Place{e + high, own, product} : Place{own + high, e, product};
  }
  if (matrix == Matrix::kB) {
    return code.rows ? Place{own, e + high, product} : Place{e, own + high, product};
  }
  if (per == 2) return {own + high, e, product};
  return {(lane & 1) + (e & 2) + high, (e & 4) + (lane & 2) + (e & 1), product};
}

/// Consecutive along k, or along the rows of sums, whose elements lie alike for all types. What is
/// small lies there several times.
Place place_in_wmma(const MatrixCode& code, Matrix matrix, int lane, int e, int per) {
  if (matrix == Matrix::kSum) {
    const int at = 32 * e + lane;
    return {at / code.n, at % code.n};
  }
  const int at =
      ((32 * (e / per) + lane) * per + e % per) % (code.height(matrix) * code.width(matrix));
  if (matrix == Matrix::kB) return {at % code.k, at / code.k};
  return {at / code.k, at % code.k};
}

/// Calls body(lane, element of the lane, place) for all elements of a matrix.
template <class Body>
void for_each_element(const MatrixCode& code, Matrix matrix, Element type, Body&& body) {
  const auto per = static_cast<int>(packed(type));
  const int count = static_cast<int>(code.registers(matrix, type)) * per;
  const auto place = code.fragments == Fragments::kMma     ? place_in_mma
                     : code.fragments == Fragments::kQuads ? place_in_quads
                                                           : place_in_wmma;
  for (int lane = 0; lane < 32; ++lane) {
    for (int e = 0; e < count; ++e) body(lane, e, place(code, matrix, lane, e, per));
  }
}

/// The register of an element, for its lane.
std::uint8_t* register_of(std::uint8_t* registers, Element type, int lane, int e) {
  const auto r = static_cast<std::size_t>(e) / packed(type);
  return registers + kMatrixRegisterBytes * r +
         static_cast<std::size_t>(lane) * register_bits(type) / 8;
}

unsigned shift_of(Element type, int e) {
  return element_bits(type) * (static_cast<unsigned>(e) % packed(type));
}

std::uint64_t mask_of(Element type) { return ~std::uint64_t{0} >> (64 - element_bits(type)); }

std::uint64_t get(std::uint8_t* registers, Element type, int lane, int e) {
  std::uint64_t word = 0;
  std::memcpy(&word, register_of(registers, type, lane, e), register_bits(type) / 8);
  return word >> shift_of(type, e) & mask_of(type);
}

/// Into a register whose other elements are zeros or older values of the same.
void put(std::uint8_t* registers, Element type, int lane, int e, std::uint64_t bits) {
  std::uint8_t* to = register_of(registers, type, lane, e);
  std::uint64_t word = 0;
  std::memcpy(&word, to, register_bits(type) / 8);
  word &= ~(mask_of(type) << shift_of(type, e));
  word |= bits << shift_of(type, e);
  std::memcpy(to, &word, register_bits(type) / 8);
}

float decode_float(Element type, std::uint64_t bits) {
  const auto word = static_cast<std::uint32_t>(bits);
  switch (type) {
    case Element::kF16:
      return half_to_float(static_cast<std::uint16_t>(bits));
    case Element::kBf16:
      return bfloat_to_float(static_cast<std::uint16_t>(bits));
    case Element::kTf32:
      return std::bit_cast<float>(word & 0xffffe000U);
    case Element::kE4m3:
    case Element::kE5m2:
      return std::bit_cast<float>(from_float8(word, type == Element::kE5m2));
    default:
      return std::bit_cast<float>(word);
  }
}

std::int64_t decode_integer(Element type, std::uint64_t bits) {
  const unsigned unused = 64 - element_bits(type);
  const bool is_signed = type == Element::kS8 || type == Element::kS4 || type == Element::kS32;
  return is_signed ? static_cast<std::int64_t>(bits << unused) >> unused
                   : static_cast<std::int64_t>(bits);
}

// How products go, by the type of the sums: the factors, a step of k, and the result.

struct Floats {
  using Factor = float;
  using Sum = float;
  static float factor(Element type, std::uint64_t bits) { return decode_float(type, bits); }
  static float sum(Element type, std::uint64_t bits) { return decode_float(type, bits); }
  static float step(const MatrixCode&, float sum, float x, float y) { return std::fma(x, y, sum); }
  static std::uint64_t result(const MatrixCode& code, float sum) {
    return code.d == Element::kF16 ? float_to_half(sum) : std::bit_cast<std::uint32_t>(sum);
  }
};

struct Doubles {
  using Factor = double;
  using Sum = double;
  static double factor(Element, std::uint64_t bits) { return std::bit_cast<double>(bits); }
  static double sum(Element, std::uint64_t bits) { return std::bit_cast<double>(bits); }
  static double step(const MatrixCode&, double sum, double x, double y) {
    return std::fma(x, y, sum);
  }
  static std::uint64_t result(const MatrixCode&, double sum) {
    return std::bit_cast<std::uint64_t>(sum);
  }
};

struct Integers {
  using Factor = std::int32_t;
  using Sum = std::int64_t;
  static std::int32_t factor(Element type, std::uint64_t bits) {
    return static_cast<std::int32_t>(decode_integer(type, bits));
  }
  static std::int64_t sum(Element type, std::uint64_t bits) { return decode_integer(type, bits); }
  static std::int64_t step(const MatrixCode& code, std::int64_t sum, std::int32_t x,
                           std::int32_t y) {
    if (code.a != Element::kBits) return sum + std::int64_t{x} * y;
    return sum + std::popcount(static_cast<std::uint32_t>(code.conjunction ? x & y : x ^ y));
  }
  static std::uint64_t result(const MatrixCode& code, std::int64_t sum) {
    if (code.saturate) sum = std::clamp<std::int64_t>(sum, INT32_MIN, INT32_MAX);
    return static_cast<std::uint32_t>(sum);
  }
};

/// Where the registers of A, B, C and D begin.
struct Operands {
  std::uint8_t *a, *b, *c, *d;
  Operands(const MatrixCode& code, std::uint8_t* registers)
      : a(registers),
        b(a + kMatrixRegisterBytes * code.registers(Matrix::kA, code.a)),
        c(b + kMatrixRegisterBytes * code.registers(Matrix::kB, code.b)),
        d(c + kMatrixRegisterBytes * code.registers(Matrix::kSum, code.c)) {}
};

template <class Kind>
void multiply(const MatrixCode& code, const Operands& operands, int product) {
  typename Kind::Factor rows[kMostA];
  typename Kind::Factor columns[kMostB];
  typename Kind::Sum sums[kMostSums];
  for_each_element(code, Matrix::kA, code.a, [&](int lane, int e, Place at) {
    if (at.product != product) return;
    rows[at.row * code.k + at.column] = Kind::factor(code.a, get(operands.a, code.a, lane, e));
  });
  for_each_element(code, Matrix::kB, code.b, [&](int lane, int e, Place at) {
    if (at.product != product) return;
    columns[at.column * code.k + at.row] = Kind::factor(code.b, get(operands.b, code.b, lane, e));
  });
  for_each_element(code, Matrix::kSum, code.c, [&](int lane, int e, Place at) {
    if (at.product != product) return;
    sums[at.row * code.n + at.column] = Kind::sum(code.c, get(operands.c, code.c, lane, e));
  });
  for (int row = 0; row < code.m; ++row) {
    for (int column = 0; column < code.n; ++column) {
      auto& sum = sums[row * code.n + column];
      for (int k = 0; k < code.k; ++k) {
        sum = Kind::step(code, sum, rows[row * code.k + k], columns[column * code.k + k]);
      }
    }
  }
  for_each_element(code, Matrix::kSum, code.d, [&](int lane, int e, Place at) {
    if (at.product != product) return;
    put(operands.d, code.d, lane, e, Kind::result(code, sums[at.row * code.n + at.column]));
  });
}

/// The number of an element in memory.
std::uint64_t index_of(const MatrixCode& code, Place at, std::uint64_t stride) {
  const auto row = static_cast<std::uint64_t>(at.row);
  const auto column = static_cast<std::uint64_t>(at.column);
  return code.columns ? column * stride + row : row * stride + column;
}

}  // namespace
}  // namespace braid::cpu

extern "C" {

static void braid_cpu_matrix(std::uint8_t* registers, const braid::cpu::MatrixCode* code) {
  using namespace braid::cpu;
  const Operands operands(*code, registers);
  if (code->c == Element::kF64) {
    const RoundingScope scope(code->rounding);
    multiply<Doubles>(*code, operands, 0);
  } else if (code->c == Element::kS32) {
    multiply<Integers>(*code, operands, 0);
  } else {
    const int products = code->fragments == Fragments::kQuads ? 4 : 1;
    for (int p = 0; p < products; ++p) multiply<Floats>(*code, operands, p);
  }
}

/// `stride`: elements from one row, or column, to the next.
static void braid_cpu_wmma_load(std::uint8_t* registers, const std::uint8_t* memory,
                                std::uint64_t stride, const braid::cpu::MatrixCode* code) {
  using namespace braid::cpu;
  const Element type = code->d;
  for_each_element(*code, code->which, type, [&](int lane, int e, Place at) {
    const std::uint64_t bit = index_of(*code, at, stride) * element_bits(type);
    std::uint64_t value = 0;
    std::memcpy(&value, memory + bit / 8, std::max(element_bits(type) / 8, 1U));
    put(registers, type, lane, e, value >> bit % 8 & mask_of(type));
  });
}

static void braid_cpu_wmma_store(std::uint8_t* registers, std::uint8_t* memory,
                                 std::uint64_t stride, const braid::cpu::MatrixCode* code) {
  using namespace braid::cpu;
  const Element type = code->d;
  for_each_element(*code, code->which, type, [&](int lane, int e, Place at) {
    const std::uint64_t value = get(registers, type, lane, e);
    const std::size_t bytes = element_bits(type) / 8;
    std::memcpy(memory + index_of(*code, at, stride) * bytes, &value, bytes);
  });
}
}

namespace braid::cpu {

std::span<const RuntimeHelper> matrix_helpers() {
  static const std::array kHelpers = {
      RuntimeHelper{"braid_cpu_matrix", reinterpret_cast<void*>(&braid_cpu_matrix)},
      RuntimeHelper{"braid_cpu_wmma_load", reinterpret_cast<void*>(&braid_cpu_wmma_load)},
      RuntimeHelper{"braid_cpu_wmma_store", reinterpret_cast<void*>(&braid_cpu_wmma_store)}};
  return kHelpers;
}

}  // namespace braid::cpu
