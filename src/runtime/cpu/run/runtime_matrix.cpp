#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "runtime/cpu/run/lanes.h"
#include "runtime/cpu/run/matrix_code.h"
#include "runtime/cpu/run/matrix_elements.h"
#include "runtime/cpu/run/rounding_scope.h"
#include "runtime/cpu/run/runtime_helpers.h"

// The matrix products that are not worth the speed of runtime_mma.cpp, by the definition of each:
// where an element lies, what its bits mean, and what a step of k does. The numerics are the same.

namespace braid::cpu {
namespace {

// The most elements that A, B and the sums have, of all products.
constexpr std::size_t kMostA = 1024;
constexpr std::size_t kMostB = 1024;
constexpr std::size_t kMostSums = 256;

/// The place of an element, and in which of four products.
struct Place {
  int row, column;
  int product = 0;
};

/// The place of the e-th element of a lane, with `per` elements per register.
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

/// For each lane's elements their index in a buffer that holds a row-major matrix (or several
/// products, one after another).
using Places = std::vector<std::uint16_t>;

Places find_places(const MatrixCode& code, Matrix matrix, Element type) {
  const auto per = static_cast<int>(packed(type));
  const int count = static_cast<int>(code.registers(matrix, type)) * per;
  const auto place = code.fragments == Fragments::kQuads  ? place_in_quads
                     : code.fragments == Fragments::kWmma ? place_in_wmma
                                                          : place_in_mma;
  Places places;
  for (int lane = 0; lane < 32; ++lane) {
    for (int e = 0; e < count; ++e) {
      const Place at = place(code, matrix, lane, e, per);
      const int row = at.product * code.height(matrix) + at.row;
      places.push_back(static_cast<std::uint16_t>(row * code.width(matrix) + at.column));
    }
  }
  return places;
}

/// Found once, as divisions take more time than products.
const std::uint16_t* places_of(const MatrixCode& code, Matrix matrix, Element type) {
  thread_local std::unordered_map<std::uint64_t, Places> known;
  std::uint64_t key = 0;
  for (const unsigned part :
       {static_cast<unsigned>(code.fragments), static_cast<unsigned>(matrix), unsigned{code.m},
        unsigned{code.n}, unsigned{code.k}, static_cast<unsigned>(type), unsigned{code.columns},
        unsigned{code.rows}}) {
    key = key << 8 | part;
  }
  Places& places = known[key];
  if (places.empty()) places = find_places(code, matrix, type);
  return places.data();
}

std::uint64_t mask_of(Element type) { return ~std::uint64_t{0} >> (64 - element_bits(type)); }

/// Calls body(i, bits) for the elements in `count` registers, lane by lane.
template <class Body>
void read_registers(const std::uint8_t* registers, Element type, unsigned count, Body&& body) {
  const std::size_t bytes = register_bits(type) / 8;
  const unsigned bits = element_bits(type);
  const unsigned elements = packed(type);
  const std::uint64_t mask = mask_of(type);
  std::size_t i = 0;
  for (std::size_t lane = 0; lane < 32; ++lane) {
    for (std::size_t r = 0; r < count; ++r) {
      std::uint64_t word = 0;
      std::memcpy(&word, registers + kMatrixRegisterBytes * r + lane * bytes, bytes);
      for (unsigned at = 0; at < elements; ++at) body(i++, word >> (bits * at) & mask);
    }
  }
}

/// The other way: bits_of(i).
template <class BitsOf>
void write_registers(std::uint8_t* registers, Element type, unsigned count, BitsOf&& bits_of) {
  const std::size_t bytes = register_bits(type) / 8;
  const unsigned bits = element_bits(type);
  const unsigned elements = packed(type);
  std::size_t i = 0;
  for (std::size_t lane = 0; lane < 32; ++lane) {
    for (std::size_t r = 0; r < count; ++r) {
      std::uint64_t word = 0;
      for (unsigned at = 0; at < elements; ++at) word |= bits_of(i++) << (bits * at);
      std::memcpy(registers + kMatrixRegisterBytes * r + lane * bytes, &word, bytes);
    }
  }
}

/// Positions of A's elements along k: the k of element `step` of a row.
struct Steps {
  const std::uint8_t* ks;
  int stride;  ///< from row to row
  [[nodiscard]] int at(int row, int step) const { return ks[row * stride + step]; }
};

/// The order of every sum is that of k; its neighbours go beside it. Inline, or its clones would
/// call one that calls a function for each step.
template <class T>
__attribute__((always_inline)) inline void multiply_add(const MatrixCode& code, const T* a,
                                                        const T* b, const Steps& steps, T* sums) {
  const int count = code.width(Matrix::kA);
  for (int row = 0; row < code.m; ++row) {
    T* sum = sums + row * code.n;
    for (int step = 0; step < count; ++step) {
      const T x = a[row * count + step];
      const T* line = b + steps.at(row, step) * code.n;
      for (int n = 0; n < code.n; ++n) sum[n] = std::fma(x, line[n], sum[n]);
    }
  }
}
BRAID_CPU_FMA_CLONES void multiply_floats(const MatrixCode& code, const float* a, const float* b,
                                          const Steps& steps, float* sums) {
  multiply_add(code, a, b, steps, sums);
}
BRAID_CPU_FMA_CLONES void multiply_doubles(const MatrixCode& code, const double* a, const double* b,
                                           const Steps& steps, double* sums) {
  multiply_add(code, a, b, steps, sums);
}

// How products go, by the type of the sums: the factors, the sums, and the result.

struct Floats {
  using Factor = float;
  using Sum = float;
  static float factor(Element type, std::uint64_t bits) { return decode_float(type, bits); }
  static float sum(Element type, std::uint64_t bits) { return decode_float(type, bits); }
  static constexpr auto kMultiply = multiply_floats;
  static std::uint64_t result(const MatrixCode& code, float sum) {
    if (code.d == Element::kF16) return float_to_half(sum);
    return sum != sum ? 0x7fffffffU : std::bit_cast<std::uint32_t>(sum);
  }
};

/// Products with scales, which f32 may not represent: summed in f64 and rounded once.
struct ScaledFloats {
  using Factor = double;
  using Sum = double;
  static double factor(Element type, std::uint64_t bits) { return decode_float(type, bits); }
  static double sum(Element type, std::uint64_t bits) { return decode_float(type, bits); }
  static constexpr auto kMultiply = multiply_doubles;
  static std::uint64_t result(const MatrixCode& code, double sum) {
    return Floats::result(code, static_cast<float>(sum));
  }
};

struct Doubles {
  using Factor = double;
  using Sum = double;
  static double factor(Element, std::uint64_t bits) { return std::bit_cast<double>(bits); }
  static double sum(Element, std::uint64_t bits) { return std::bit_cast<double>(bits); }
  static constexpr auto kMultiply = multiply_doubles;
  static std::uint64_t result(const MatrixCode&, double sum) {
    return std::bit_cast<std::uint64_t>(sum);
  }
};

/// product(x, y) is what the factors of one k add.
template <class Product>
__attribute__((always_inline)) inline void add_integers(const MatrixCode& code,
                                                        const std::int32_t* a,
                                                        const std::int32_t* b, const Steps& steps,
                                                        std::int64_t* sums, Product&& product) {
  const int count = code.width(Matrix::kA);
  for (int row = 0; row < code.m; ++row) {
    std::int64_t* sum = sums + row * code.n;
    for (int step = 0; step < count; ++step) {
      const std::int32_t x = a[row * count + step];
      const std::int32_t* line = b + steps.at(row, step) * code.n;
      for (int n = 0; n < code.n; ++n) sum[n] += product(x, line[n]);
    }
  }
}
BRAID_CPU_FMA_CLONES void multiply_integers(const MatrixCode& code, const std::int32_t* a,
                                            const std::int32_t* b, const Steps& steps,
                                            std::int64_t* sums) {
  if (code.a != Element::kBits) {
    add_integers(code, a, b, steps, sums,
                 [](std::int32_t x, std::int32_t y) { return std::int64_t{x} * y; });
  } else if (code.conjunction) {
    add_integers(code, a, b, steps, sums, [](std::int32_t x, std::int32_t y) {
      return std::popcount(static_cast<std::uint32_t>(x & y));
    });
  } else {
    add_integers(code, a, b, steps, sums, [](std::int32_t x, std::int32_t y) {
      return std::popcount(static_cast<std::uint32_t>(x ^ y));
    });
  }
}

struct Integers {
  using Factor = std::int32_t;
  using Sum = std::int64_t;
  static std::int32_t factor(Element type, std::uint64_t bits) {
    return static_cast<std::int32_t>(decode_integer(type, bits));
  }
  static std::int64_t sum(Element type, std::uint64_t bits) { return decode_integer(type, bits); }
  static constexpr auto kMultiply = multiply_integers;
  static std::uint64_t result(const MatrixCode& code, std::int64_t sum) {
    if (code.saturate) sum = std::clamp<std::int64_t>(sum, INT32_MIN, INT32_MAX);
    return static_cast<std::uint32_t>(sum);
  }
};

/// Where the registers of A, B, C and D begin, and the registers behind them.
struct Operands {
  std::uint8_t *a, *b, *c, *d, *metadata, *scales_a, *scales_b;
  Operands(const MatrixCode& code, std::uint8_t* registers)
      : a(registers),
        b(a + kMatrixRegisterBytes * code.registers(Matrix::kA, code.a)),
        c(b + kMatrixRegisterBytes * code.registers(Matrix::kB, code.b)),
        d(c + kMatrixRegisterBytes * code.registers(Matrix::kSum, code.c)),
        metadata(d + kMatrixRegisterBytes * code.registers(Matrix::kSum, code.d)),
        scales_a(metadata + (code.sparse() ? kMatrixRegisterBytes : 0)),
        scales_b(scales_a + kMatrixRegisterBytes) {}
};

std::uint32_t word_of(const std::uint8_t* registers, int lane) {
  std::uint32_t word = 0;
  std::memcpy(&word, registers + 4 * lane, 4);
  return word;
}

/// `count` bits of the metadata of a row, from bit `at` on. In a register are 16 bits of a row and
/// of that 8 below it; where elements are smaller, 32 of a row and the row 8 below is the next
/// lane's.
std::uint32_t metadata_bits(const MatrixCode& code, const std::uint8_t* registers, int row, int at,
                            unsigned count) {
  const int group = 4 * (row % 8);
  const bool wide = element_bits(code.a) >= 16;
  // For tf32 a metadata bit stands for half an element of f16.
  const bool pair = code.k * static_cast<int>(element_bits(code.a)) >= 512 || !wide;
  int lane = group + (pair ? 2 * code.selector : code.selector);
  int shift = 0;
  if (wide) {
    lane += at / 16;
    shift = row / 8 * 16 + at % 16;
  } else {
    lane += row / 8 + at / 32 * 2;
    shift = at % 32;
  }
  return word_of(registers, lane) >> shift & ((1U << count) - 1);
}

/// Finds the positions of a sparse A's elements: two of four neighbours, by two bits each; two of
/// four pairs, for 4-bit elements; one of two tf32, by four bits.
void find_steps(const MatrixCode& code, const std::uint8_t* metadata, std::uint8_t* ks) {
  const int count = code.width(Matrix::kA);
  const unsigned bits = element_bits(code.a);
  for (int row = 0; row < code.m; ++row) {
    for (int step = 0; step < count; ++step) {
      int k = 0;
      if (bits == 32) {
        k = 2 * step + static_cast<int>(metadata_bits(code, metadata, row, 4 * step + 1, 1));
      } else if (bits == 4) {
        const int pair = step / 2;
        const auto place = static_cast<int>(metadata_bits(code, metadata, row, 2 * pair, 2));
        k = pair / 2 * 8 + 2 * place + step % 2;
      } else {
        k = step / 2 * 4 + static_cast<int>(metadata_bits(code, metadata, row, 2 * step, 2));
      }
      ks[row * count + step] = static_cast<std::uint8_t>(k);
    }
  }
}

double scale_of(const MatrixCode& code, std::uint32_t word, std::uint32_t byte) {
  return scale_value(code.fine_scales, word >> (byte & 3U) * 8 & 0xffU);
}

void scale(const MatrixCode& code, const Operands& operands, std::uint32_t selectors,
           const Steps& steps, double* a, double* b) {
  const int part = code.k / code.scales;
  const auto byte_a = selectors, lane_a = selectors >> 8 & 1U;
  const auto byte_b = selectors >> 16, lane_b = selectors >> 24 & 3U;
  const int count = code.width(Matrix::kA);
  double factors[4];
  for (int row = 0; row < code.m; ++row) {
    const int lane = 4 * (row % 8) + 2 * static_cast<int>(lane_a) + row / 8;
    const std::uint32_t word = word_of(operands.scales_a, lane);
    for (std::uint32_t p = 0; p < code.scales; ++p) factors[p] = scale_of(code, word, byte_a + p);
    for (int step = 0; step < count; ++step) {
      a[row * count + step] *= factors[steps.at(row, step) / part];
    }
  }
  for (int n = 0; n < code.n; ++n) {
    const std::uint32_t word = word_of(operands.scales_b, 4 * n + static_cast<int>(lane_b));
    for (std::uint32_t p = 0; p < code.scales; ++p) factors[p] = scale_of(code, word, byte_b + p);
    for (int k = 0; k < code.k; ++k) b[k * code.n + n] *= factors[k / part];
  }
}

/// The positions of a dense A.
constexpr auto kAllSteps = [] {
  std::array<std::uint8_t, 64> ks{};
  for (std::size_t k = 0; k < ks.size(); ++k) ks[k] = static_cast<std::uint8_t>(k);
  return ks;
}();

template <class Kind>
void multiply(const MatrixCode& code, const Operands& operands, std::uint32_t selectors) {
  typename Kind::Factor a[kMostA];
  typename Kind::Factor b[kMostB];
  typename Kind::Sum sums[kMostSums];
  const auto read = [&](const std::uint8_t* from, Matrix matrix, Element type, auto* to,
                        auto&& decode) {
    const std::uint16_t* places = places_of(code, matrix, type);
    read_registers(from, type, code.registers(matrix, type),
                   [&](std::size_t i, std::uint64_t bits) { to[places[i]] = decode(type, bits); });
  };
  read(operands.a, Matrix::kA, code.a, a, Kind::factor);
  read(operands.b, Matrix::kB, code.b, b, Kind::factor);
  read(operands.c, Matrix::kSum, code.c, sums, Kind::sum);
  std::uint8_t ks[kMostA];
  Steps steps{kAllSteps.data(), 0};
  if (code.sparse()) {
    find_steps(code, operands.metadata, ks);
    steps = {ks, code.width(Matrix::kA)};
  }
  if constexpr (std::is_same_v<Kind, ScaledFloats>) scale(code, operands, selectors, steps, a, b);
  const int products = code.fragments == Fragments::kQuads ? 4 : 1;
  for (int p = 0; p < products; ++p) {
    Kind::kMultiply(code, a + p * code.m * code.k, b + p * code.k * code.n, steps,
                    sums + p * code.m * code.n);
  }
  const std::uint16_t* places = places_of(code, Matrix::kSum, code.d);
  write_registers(operands.d, code.d, code.registers(Matrix::kSum, code.d),
                  [&](std::size_t i) { return Kind::result(code, sums[places[i]]); });
}

/// Calls body(i, number) for the elements of a matrix by its rows, and their numbers in memory.
template <class Body>
void for_memory(const MatrixCode& code, std::uint64_t stride, Body&& body) {
  const auto height = static_cast<std::uint64_t>(code.height(code.which));
  const auto width = static_cast<std::uint64_t>(code.width(code.which));
  std::size_t i = 0;
  for (std::uint64_t row = 0; row < height; ++row) {
    for (std::uint64_t column = 0; column < width; ++column) {
      body(i++, code.columns ? column * stride + row : row * stride + column);
    }
  }
}

}  // namespace

void multiply_matrix(const MatrixCode& code, std::uint8_t* registers, std::uint32_t selectors) {
  const Operands operands(code, registers);
  if (code.c == Element::kF64) {
    const RoundingScope scope(code.rounding);
    multiply<Doubles>(code, operands, selectors);
  } else if (code.c == Element::kS32) {
    multiply<Integers>(code, operands, selectors);
  } else if (code.scales != 0) {
    multiply<ScaledFloats>(code, operands, selectors);
  } else {
    multiply<Floats>(code, operands, selectors);
  }
}

namespace {

/// `stride`: elements from one row, or column, to the next.
void wmma_load(std::uint8_t* registers, const std::uint8_t* memory, std::uint64_t stride,
               const MatrixCode* code) {
  const Element type = code->d;
  const std::uint64_t size = element_bits(type);
  std::uint64_t values[kMostB];
  for_memory(*code, stride, [&](std::size_t i, std::uint64_t number) {
    std::uint64_t value = 0;
    std::memcpy(&value, memory + number * size / 8, std::max<std::size_t>(size / 8, 1));
    values[i] = value >> number * size % 8 & mask_of(type);
  });
  const std::uint16_t* places = places_of(*code, code->which, type);
  write_registers(registers, type, code->registers(code->which, type),
                  [&](std::size_t i) { return values[places[i]]; });
}

void wmma_store(std::uint8_t* registers, std::uint8_t* memory, std::uint64_t stride,
                const MatrixCode* code) {
  const Element type = code->d;
  const std::size_t bytes = element_bits(type) / 8;
  std::uint64_t values[kMostSums];
  const std::uint16_t* places = places_of(*code, code->which, type);
  read_registers(registers, type, code->registers(code->which, type),
                 [&](std::size_t i, std::uint64_t bits) { values[places[i]] = bits; });
  for_memory(*code, stride, [&](std::size_t i, std::uint64_t number) {
    std::memcpy(memory + number * bytes, &values[i], bytes);
  });
}

}  // namespace

std::vector<RuntimeHelper> matrix_helpers() {
  return {{"matrix", multiply_matrix}, {"wmma_load", wmma_load}, {"wmma_store", wmma_store}};
}

}  // namespace braid::cpu
