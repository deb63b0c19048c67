// tcgen05.mma: products whose sums are in tensor memory. A product is done when it is issued, which
// is one of the orders that a GPU has. Sums are added in the order of k, as those of mma.sync are;
// those with scales in f64, rounded once.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <type_traits>

#include "runtime/cpu/run/lanes.h"
#include "runtime/cpu/run/matrix8.h"
#include "runtime/cpu/run/matrix_elements.h"
#include "runtime/cpu/run/matrix_reader.h"
#include "runtime/cpu/run/tensor_memory_helpers.h"

namespace braid::cpu {
namespace {

constexpr std::uint32_t kMostRows = 128, kMostColumns = 256, kMostDepth = 64;
/// Rows of D whose sums are added together, and those that lie in neighbouring lanes.
constexpr std::uint32_t kRowsAtOnce = 64, kChunk = 16;

/// What the instruction descriptor and the kind say.
struct Product {
  Element a = Element::kF16, b = Element::kF16, d = Element::kF32;
  bool negated_a = false, negated_b = false, exchanged_a = false, exchanged_b = false;
  bool saturates = false, fine_scales = false;
  std::uint32_t rows = 0, columns = 0, depth = 0;
  std::uint32_t scale_a = 0, scale_b = 0;  ///< the first byte of the scales in their words
  const char* wrong = nullptr;             ///< why there is no such product
};

std::uint32_t field(std::uint32_t word, unsigned from, unsigned bits) {
  return word >> from & ((1U << bits) - 1);
}

/// Elements of kinds with types in the descriptor; kBits for none.
Element element(TensorMmaCode::Kind kind, std::uint32_t number) {
  constexpr Element kNone = Element::kBits;
  constexpr Element kF8s[] = {Element::kE4m3, Element::kE5m2, kNone, Element::kE2m3,
                              Element::kE3m2, Element::kE2m1, kNone, kNone};
  switch (kind) {
    case TensorMmaCode::kF16:
      return number == 0 ? Element::kF16 : number == 1 ? Element::kBf16 : kNone;
    case TensorMmaCode::kTf32:
      return number == 2 ? Element::kTf32 : kNone;
    case TensorMmaCode::kF8:
    case TensorMmaCode::kScaledF8:
      return kF8s[number];
    case TensorMmaCode::kInt8:
      return number == 0 ? Element::kU8 : number == 1 ? Element::kS8 : kNone;
    default:
      return number == 1 ? Element::kE2m1Packed : kNone;
  }
}

Product product_of(const TensorMmaCode& code, std::uint32_t word) {
  using Kind = TensorMmaCode::Kind;
  Product p;
  p.a = element(code.kind, field(word, 7, 3));
  p.b = element(code.kind, field(word, 10, code.scaled && code.kind != Kind::kScaledF8 ? 2 : 3));
  p.negated_a = field(word, 13, 1) != 0;
  p.negated_b = field(word, 14, 1) != 0;
  p.exchanged_a = field(word, 15, 1) != 0;
  p.exchanged_b = field(word, 16, 1) != 0;
  p.columns = field(word, 17, 6) * 8;
  p.rows = field(word, 24, 5) * 16;
  constexpr std::uint32_t kDepths[] = {16, 8, 32, 32, 32, 64, 64};
  p.depth = kDepths[code.kind];
  const auto refuse = [&](const char* why) {
    if (p.wrong == nullptr) p.wrong = why;
  };
  if (p.a == Element::kBits || p.b == Element::kBits) refuse("has a type that the kind has not");
  if (field(word, 2, 1) != 0) refuse("is of a sparse A, which is not there");
  if (code.scaled) {
    p.scale_b = field(word, 4, 2);
    p.scale_a = field(word, 29, 2);
    p.fine_scales = field(word, 23, 1) == 0;
    if (field(word, 31, 1) != 0) refuse("has a k of 96, which is not there");
    if (p.fine_scales && code.kind != Kind::kScaledFineF4) refuse("has scales of a wrong type");
    if ((p.scale_a | p.scale_b) % code.scales != 0) refuse("has scales that leave their words");
    if (code.kind != Kind::kScaledF8 && (p.exchanged_a || p.exchanged_b)) {
      refuse("transposes a matrix of 4 bits");
    }
    if (p.rows != (code.pair ? 256U : 128U)) refuse("has a wrong number of rows");
  } else {
    const std::uint32_t sum = field(word, 4, 2);
    const bool half = code.kind == Kind::kF16 || code.kind == Kind::kF8;
    if (code.kind == Kind::kInt8 ? sum != 2 : sum != 1 && !(half && sum == 0)) {
      refuse("has a type of D that the kind has not");
    }
    p.d = code.kind == Kind::kInt8 ? Element::kS32 : sum == 0 ? Element::kF16 : Element::kF32;
    p.saturates = field(word, 3, 1) != 0;
    if (p.saturates && code.kind != Kind::kInt8) refuse("saturates floats");
    if (code.kind == Kind::kInt8 && (p.negated_a || p.negated_b)) refuse("negates integers");
    if (field(word, 30, 2) != 0) refuse("has a shift, which is not there");
    const std::uint32_t least = code.pair ? 128 : 64;
    if (p.rows != least && p.rows != 2 * least) refuse("has a wrong number of rows");
  }
  const std::uint32_t step = p.rows == 64 ? 8 : 16 * (code.pair ? 2U : 1U);
  if (p.columns == 0 || p.columns > kMostColumns || p.columns % step != 0) {
    refuse("has a wrong number of columns");
  }
  return p;
}

/// Elements of A and B as they are multiplied: A by k, B by column.
template <class T>
struct Factors {
  T a[kMostDepth * kMostRows];
  T b[kMostColumns * kMostDepth];
};

/// Decodes elements that lie behind each other.
template <class T>
void decode(Element type, const std::uint8_t* from, std::uint32_t count, T* to) {
  const auto each = [&]<class Word>(Word, auto&& value) {
    for (std::uint32_t i = 0; i < count; ++i) {
      Word word;
      std::memcpy(&word, from + sizeof(Word) * i, sizeof word);
      to[i] = static_cast<T>(value(word));
    }
  };
  switch (type) {
    case Element::kF16:
      return each(std::uint16_t{}, half_to_float);
    case Element::kBf16:
      return each(std::uint16_t{}, bfloat_to_float);
    case Element::kTf32:
      return each(std::uint32_t{}, [](auto word) { return decode_float(Element::kTf32, word); });
    case Element::kS8:
      return each(std::uint8_t{}, [](auto word) { return decode_integer(Element::kS8, word); });
    case Element::kU8:
      return each(std::uint8_t{}, [](auto word) { return word; });
    case Element::kE2m1Packed: {
      const SmallValues& values = values_of(type);
      for (std::uint32_t i = 0; i < count; ++i) {
        to[i] = static_cast<T>(values[from[i / 2] >> i % 2 * 4 & 15U]);
      }
      return;
    }
    default: {
      const SmallValues& values = values_of(type);
      return each(std::uint8_t{}, [&](auto word) { return values[word]; });
    }
  }
}

/// Bits of an element in the 16 bytes of it and its neighbours, which have gaps at their end where
/// smaller elements take the place of bytes.
unsigned packed_bits(Element type) {
  return type == Element::kE2m1                             ? 4
         : type == Element::kE2m3 || type == Element::kE3m2 ? 6
                                                            : element_bits(type);
}

/// One product, of one block or of both blocks of a pair.
class Multiplier {
 public:
  Multiplier(Warp& warp, int lane, const TensorMmaOperands& operands, const TensorMmaCode& code,
             std::uint32_t line, std::uint32_t place)
      : warp_(warp),
        lane_(static_cast<std::uint32_t>(lane)),
        code_(code),
        line_(line),
        place_(place),
        product_(product_of(code, operands.types[lane])),
        a_(operands.a[lane]),
        b_(operands.b[lane]),
        d_(operands.d[lane]),
        scales_a_(operands.scales_a[lane]),
        scales_b_(operands.scales_b[lane]),
        adds_(operands.adds[lane] != 0) {
    for (std::size_t k = 0; k < kept_.size(); ++k) {
      kept_[k] = code.masked ? operands.kept[k][lane] : 0;
    }
    if (product_.wrong != nullptr) {
      refuse_tensor(warp, "bounds",
                    fmt::format("the instruction descriptor, {:#x}, {}", operands.types[lane],
                                product_.wrong),
                    line);
    }
    const TensorPair pair(warp, code.pair, line);
    blocks_ = pair.blocks;
    first_block_ = pair.first;
    rows_ = product_.rows / blocks_;
  }

  void run() {
    check();
    if (place_ != kNotCounted) {
      warp_.runner->counter().matrix_product(
          std::uint64_t{2} * product_.rows * product_.columns * product_.depth, place_);
    }
    if (code_.kind == TensorMmaCode::kInt8) return run_as<std::int32_t>();
    code_.scaled ? run_as<double>() : run_as<float>();
  }

 private:
  /// Where 16 rows from `row` on have their sums of a column.
  [[nodiscard]] TensorPlace place_of(std::uint32_t row, std::uint32_t column) const {
    TensorPlace place(d_);
    if (rows_ == kMostRows) {
      place.lane += row;
    } else if (blocks_ == 1) {
      place.lane += 2 * row;
    } else {
      const std::uint32_t half = product_.columns / 2;
      place.lane += row + column / half * 64;
      column %= half;
    }
    place.column += column;
    return place;
  }
  [[nodiscard]] std::uint32_t columns_of_d() const {
    return rows_ == kMostRows || blocks_ == 1 ? product_.columns : product_.columns / 2;
  }
  TensorMemory& memory(std::uint32_t block) {
    return warp_.runner->tensor_memory(first_block_ + block);
  }

  void check() {
    const TensorPlace d(d_);
    const bool fits = rows_ == kMostRows || blocks_ == 2 ? d.lane == 0 : d.lane % 32 <= 16;
    if (!fits || d.lane % 16 != 0 || d.lane > 16) {
      refuse_tensor(warp_, "bounds",
                    fmt::format("D of {} rows begins at lane {} of tensor memory", rows_, d.lane),
                    line_);
    }
    for (std::uint32_t block = 0; block < blocks_; ++block) {
      check_columns(warp_, memory(block), "D", d.column, columns_of_d(), line_);
    }
    if (Sanitizer* s = warp_.runner->sanitizer()) {
      s->start_tensor(warp_.check, Sanitizer::kTensorLanes + lane_, lane_, line_);
      for (std::uint32_t block = 0; block < blocks_; ++block) check_sums(block);
    }
  }

  void check_sums(std::uint32_t block) {
    const AccessCode::Kind kind = adds_ ? AccessCode::kTensorUpdate : AccessCode::kTensorTo;
    const std::uint32_t together = rows_ == kMostRows || blocks_ == 2 ? rows_ : kChunk;
    for (std::uint32_t column = 0; column < product_.columns; ++column) {
      for (std::uint32_t row = 0; row < rows_; row += code_.masked ? kChunk : together) {
        const TensorPlace place = place_of(row, column);
        if (!code_.masked) {
          check_tensor_lanes(warp_, memory(block), place.lane, place.column, together, kind, line_);
          continue;
        }
        for (std::uint32_t lane = place.lane; lane < place.lane + kChunk; ++lane) {
          if (stays(block, lane)) continue;
          check_tensor_lanes(warp_, memory(block), lane, place.column, 1, kind, line_);
        }
      }
    }
  }

  [[nodiscard]] bool stays(std::uint32_t block, std::uint32_t lane) const {
    return (kept_[4 * block + lane / 32] >> lane % 32 & 1U) != 0;
  }

  template <class T>
  void run_as() {
    thread_local std::unique_ptr<Factors<T>> kept;
    if (kept == nullptr) kept = std::make_unique<Factors<T>>();
    Factors<T>& factors = *kept;
    // Each block of a pair has half of B's columns.
    const std::uint32_t columns = product_.columns / blocks_;
    for (std::uint32_t block = 0; block < blocks_; ++block) {
      T* const to = factors.b + block * columns * product_.depth;
      read<T>(block, "B", b_, product_.b, product_.exchanged_b, columns,
              [&](std::uint32_t column, std::uint32_t k, T value) {
                to[column * product_.depth + k] = product_.negated_b ? -value : value;
              });
    }
    for (std::uint32_t block = 0; block < blocks_; ++block) {
      const auto put = [&](std::uint32_t row, std::uint32_t k, T value) {
        factors.a[k * rows_ + row] = product_.negated_a ? -value : value;
      };
      if (code_.a_in_tensor) {
        read_tensor<T>(block, put);
      } else {
        read<T>(block, "A", a_, product_.a, product_.exchanged_a, rows_, put);
      }
      if constexpr (std::is_same_v<T, double>) scale(block, factors);
      multiply(block, factors);
    }
  }

  /// Reads a matrix in a block's shared memory: put(row or column, k, value).
  template <class T, class Put>
  void read(std::uint32_t block, const char* name, std::uint64_t descriptor, Element type,
            bool exchanged, std::uint32_t count, const Put& put) {
    const bool packed = type == Element::kE2m1Packed;
    const std::uint32_t per = packed ? 32 : 128 / std::max(element_bits(type), 8U);
    const std::uint32_t parts = product_.depth / (exchanged ? 8 : per);
    const SharedMatrix matrix = tensor_matrix(warp_, name, descriptor, exchanged, parts, line_);
    MatrixReader reader(warp_, warp_.cluster_windows[first_block_ + block], matrix,
                        AccessCode::kTensorFrom, line_, place_);
    const unsigned bits = packed_bits(type);
    for (std::uint32_t mn = 0; mn * (exchanged ? per : 8) < count; ++mn) {
      for (std::uint32_t part = 0; part < parts; ++part) {
        MatrixReader::Rows rows;
        if (!reader.block(mn, part, rows, 8, packed ? 16 : 2 * std::min(bits, 8U))) continue;
        for (std::uint32_t r = 0; r < 8; ++r) {
          if (bits < 8 && !packed) rows[r] = widen(rows[r], bits);
          if (type == Element::kE2m1) rows[r] = _mm_slli_epi16(rows[r], 2);
          std::array<T, 32> values;
          decode(type, reinterpret_cast<const std::uint8_t*>(&rows[r]), per, values.data());
          for (std::uint32_t i = 0; i < per; ++i) {
            if (!exchanged) {
              put(8 * mn + r, part * per + i, values[i]);
            } else if (mn * per + i < count) {
              put(mn * per + i, part * 8 + r, values[i]);
            }
          }
        }
      }
    }
    check_tensor_inside(warp_, name, reader.outside(), line_);
  }

  /// Reads A from tensor memory, whose rows are those of D.
  template <class T, class Put>
  void read_tensor(std::uint32_t block, const Put& put) {
    const TensorPlace from(static_cast<std::uint32_t>(a_));
    if (packed_bits(product_.a) < 8 && product_.a != Element::kE2m1Packed) {
      refuse_tensor(warp_, "bounds", "A of 4 or 6 bits beside others is not there in tensor memory",
                    line_);
    }
    const std::uint32_t per = 32 / element_bits(product_.a);
    const std::uint32_t columns = product_.depth / per;
    const TensorMemory& memory = this->memory(block);
    check_columns(warp_, memory, "A", from.column, columns, line_);
    for (std::uint32_t c = 0; c < columns; ++c) {
      for (std::uint32_t row = 0; row < rows_; row += kChunk) {
        const std::uint32_t lane = from.lane + (rows_ == kMostRows ? row : 2 * row);
        if (warp_.runner->sanitizer() != nullptr) {
          check_tensor_lanes(warp_, memory, lane, from.column + c, kChunk, AccessCode::kTensorFrom,
                             line_);
        }
        for (std::uint32_t r = 0; r < kChunk; ++r) {
          std::array<T, 8> values;
          decode(product_.a,
                 reinterpret_cast<const std::uint8_t*>(memory.at(lane + r, from.column + c)), per,
                 values.data());
          for (std::uint32_t i = 0; i < per; ++i) put(row + r, c * per + i, values[i]);
        }
      }
    }
  }

  /// Multiplies rows or columns by their scales. These are bytes of words, of row r in lane r % 32
  /// of column r / 32; all four parts of the lanes hold the same.
  template <class At>
  void scale_by(const TensorMemory& memory, const char* name, std::uint32_t address,
                std::uint32_t byte, std::uint32_t count, const At& at) {
    const TensorPlace from(address);
    check_columns(warp_, memory, name, from.column, (count + 31) / 32, line_);
    const std::uint32_t part = product_.depth / code_.scales;
    for (std::uint32_t row = 0; row < count; ++row) {
      if (row % 32 == 0 && warp_.runner->sanitizer() != nullptr) {
        check_tensor_lanes(warp_, memory, 0, from.column + row / 32, std::min(count - row, 32U),
                           AccessCode::kTensorFrom, line_);
      }
      const std::uint32_t word = *memory.at(row % 32, from.column + row / 32);
      for (std::uint32_t k = 0; k < product_.depth; k += part) {
        const double by = scale_value(product_.fine_scales, word >> 8 * (byte + k / part) & 0xffU);
        for (std::uint32_t i = 0; i < part; ++i) at(row, k + i) *= by;
      }
    }
  }

  void scale(std::uint32_t block, Factors<double>& factors) {
    scale_by(
        memory(block), "a matrix of scales", scales_a_, product_.scale_a, rows_,
        [&](std::uint32_t row, std::uint32_t k) -> double& { return factors.a[k * rows_ + row]; });
    // Both blocks of a pair have all scales of B.
    if (block != 0) return;
    scale_by(memory(block), "a matrix of scales", scales_b_, product_.scale_b, product_.columns,
             [&](std::uint32_t column, std::uint32_t k) -> double& {
               return factors.b[column * product_.depth + k];
             });
  }

  template <class T>
  void multiply(std::uint32_t block, const Factors<T>& factors) {
    using Sum = std::conditional_t<std::is_same_v<T, std::int32_t>, std::int64_t, T>;
    const TensorMemory& memory = this->memory(block);
    std::array<Sum, kRowsAtOnce> sums;
    for (std::uint32_t column = 0; column < product_.columns; ++column) {
      const T* const b = factors.b + column * product_.depth;
      for (std::uint32_t row = 0; row < rows_; row += kRowsAtOnce) {
        for (std::uint32_t r = 0; r < kRowsAtOnce; r += kChunk) {
          const TensorPlace place = place_of(row + r, column);
          load(memory.at(place.lane, place.column), sums.data() + r);
        }
        add_products(factors.a + row, rows_, b, product_.depth, sums.data());
        for (std::uint32_t r = 0; r < kRowsAtOnce; r += kChunk) {
          const TensorPlace place = place_of(row + r, column);
          std::uint32_t* const to = memory.at(place.lane, place.column);
          for (std::uint32_t i = 0; i < kChunk; ++i) {
            if (code_.masked && stays(block, place.lane + i)) continue;
            to[i] = result(sums[r + i]);
          }
        }
      }
    }
  }

  template <class Sum>
  void load(const std::uint32_t* from, Sum* to) const {
    for (std::uint32_t i = 0; i < kChunk; ++i) {
      if (!adds_) {
        to[i] = 0;
      } else if constexpr (std::is_integral_v<Sum>) {
        to[i] = static_cast<std::int32_t>(from[i]);
      } else {
        to[i] = product_.d == Element::kF16 ? half_to_float(static_cast<std::uint16_t>(from[i]))
                                            : std::bit_cast<float>(from[i]);
        if (code_.scale_d != 0) to[i] = std::ldexp(to[i], -int{code_.scale_d});
      }
    }
  }

  [[nodiscard]] std::uint32_t result(std::int64_t sum) const {
    if (product_.saturates) sum = std::clamp<std::int64_t>(sum, INT32_MIN, INT32_MAX);
    return static_cast<std::uint32_t>(sum);
  }
  [[nodiscard]] std::uint32_t result(float sum) const {
    if (product_.d == Element::kF16) return float_to_half(sum);
    return sum != sum ? 0x7fffffffU : std::bit_cast<std::uint32_t>(sum);
  }
  [[nodiscard]] std::uint32_t result(double sum) const { return result(static_cast<float>(sum)); }

  static void add_products(const float* a, std::uint32_t stride, const float* b,
                           std::uint32_t depth, float* sums);
  static void add_products(const double* a, std::uint32_t stride, const double* b,
                           std::uint32_t depth, double* sums);
  static void add_products(const std::int32_t* a, std::uint32_t stride, const std::int32_t* b,
                           std::uint32_t depth, std::int64_t* sums);

  Warp& warp_;
  std::uint32_t lane_;
  TensorMmaCode code_;
  std::uint32_t line_, place_;
  Product product_;
  std::uint64_t a_, b_;
  std::uint32_t d_, scales_a_, scales_b_;
  bool adds_;
  std::array<std::uint32_t, 8> kept_{};
  std::uint32_t blocks_ = 1, first_block_ = 0;
  std::uint32_t rows_ = 0;  ///< in each block
};

/// Adds to 64 rows; those of the next k are `stride` elements further on.
template <class T>
__attribute__((always_inline)) inline void add_by_k(const T* a, std::uint32_t stride, const T* b,
                                                    std::uint32_t depth, T* sums) {
  for (std::uint32_t k = 0; k < depth; ++k) {
    const T x = b[k];
    const T* const from = a + std::size_t{k} * stride;
    for (std::uint32_t r = 0; r < kRowsAtOnce; ++r) sums[r] = std::fma(from[r], x, sums[r]);
  }
}
BRAID_CPU_FMA_CLONES void add_floats(const float* a, std::uint32_t stride, const float* b,
                                     std::uint32_t depth, float* sums) {
  add_by_k(a, stride, b, depth, sums);
}
BRAID_CPU_FMA_CLONES void add_doubles(const double* a, std::uint32_t stride, const double* b,
                                      std::uint32_t depth, double* sums) {
  add_by_k(a, stride, b, depth, sums);
}

void Multiplier::add_products(const float* a, std::uint32_t stride, const float* b,
                              std::uint32_t depth, float* sums) {
  add_floats(a, stride, b, depth, sums);
}
void Multiplier::add_products(const double* a, std::uint32_t stride, const double* b,
                              std::uint32_t depth, double* sums) {
  add_doubles(a, stride, b, depth, sums);
}
void Multiplier::add_products(const std::int32_t* a, std::uint32_t stride, const std::int32_t* b,
                              std::uint32_t depth, std::int64_t* sums) {
  std::array<std::int32_t, kRowsAtOnce> added{};
  for (std::uint32_t k = 0; k < depth; ++k) {
    for (std::uint32_t r = 0; r < kRowsAtOnce; ++r)
      added[r] += a[std::size_t{k} * stride + r] * b[k];
  }
  for (std::uint32_t r = 0; r < kRowsAtOnce; ++r) sums[r] += added[r];
}

void tensor_multiply(Warp& warp, const TensorMmaOperands* operands, std::uint32_t mask,
                     TensorMmaCode code, std::uint32_t line, std::uint32_t place) {
  for_each_lane(mask, [&](int l) { Multiplier(warp, l, *operands, code, line, place).run(); });
}

}  // namespace

std::vector<RuntimeHelper> tensor_multiply_helpers() {
  return {{"tensor_multiply", tensor_multiply}};
}

}  // namespace braid::cpu
