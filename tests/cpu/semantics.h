#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace braid::cpu_test::semantics {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i8 = std::int8_t;
using i16 = std::int16_t;
using i32 = std::int32_t;
using i64 = std::int64_t;
using i128 = __int128;
using u128 = unsigned __int128;

// Floating point by its definition, on integers only: nothing here is shared with the device.

struct Format {
  int exponent_bits;
  int fraction_bits;
  [[nodiscard]] int bits() const { return 1 + exponent_bits + fraction_bits; }
  [[nodiscard]] u64 sign() const { return u64{1} << (bits() - 1); }
  [[nodiscard]] u64 infinity() const { return ((u64{1} << exponent_bits) - 1) << fraction_bits; }
  [[nodiscard]] u64 one() const { return ((u64{1} << (exponent_bits - 1)) - 1) << fraction_bits; }
  [[nodiscard]] bool is_nan(u64 value) const { return (value & (sign() - 1)) > infinity(); }
};
inline constexpr Format kF16{5, 10};
inline constexpr Format kBf16{8, 7};
inline constexpr Format kTf32{8, 10};
inline constexpr Format kF32{8, 23};
inline constexpr Format kF64{11, 52};

enum class Mode : std::uint8_t { kNearest, kZero, kDown, kUp, kTiesAway };
inline constexpr Mode kModes[] = {Mode::kNearest, Mode::kZero, Mode::kDown, Mode::kUp};
inline constexpr const char* kModeNames[] = {"rn", "rz", "rm", "rp"};

/// size * 2^exponent. The last bit of a size above 2^100 may stand for more bits below it.
struct Number {
  bool nan = false;
  bool infinite = false;
  bool negative = false;
  u128 size = 0;
  int exponent = 0;
};

Number decode(Format format, u64 bits);
/// NaN becomes the one with all bits but the sign.
u64 encode(Format format, const Number& number, Mode mode);
Number integer(i128 value);
/// Rounded to an integer that fits [low, high]; not for NaN.
i128 to_integer(const Number& number, Mode mode, i128 low, i128 high);
Number add(const Number& a, const Number& b, Mode mode);
Number multiply(const Number& a, const Number& b);
Number divide(const Number& a, const Number& b);
Number square_root(const Number& a);
Number negate(Number a);
/// -1, 0, 1 as a is below, equal to or above b; neither may be NaN.
int order(const Number& a, const Number& b);
/// Subnormal bits to zeros of their sign.
u64 flush(Format format, u64 bits);
/// Into [+0, 1], NaN to +0.
u64 saturate(Format format, u64 bits);
double to_double(Format format, u64 bits);

/// Three 64-bit operands of each element.
struct Inputs {
  std::vector<u64> a, b, c;
  u64 seed = 0;
  [[nodiscard]] std::size_t size() const { return a.size(); }
};
/// All pairs of `edges` (each with some if the list is long), three times with a third operand,
/// then random bits and mixtures of both.
Inputs make_inputs(const std::vector<u64>& edges, u64 seed);
/// For inputs of that many bits: pairs in the halves of a word twice as wide.
Inputs pack_halves(const Inputs& inputs, int bits = 16);

std::vector<u64> integer_edges();
std::vector<u64> float_edges(Format format);

/// An instruction (or a few) and what it must compute. Operands are the registers %A %B %C (.b64),
/// %a %b %c (.b32), %ha %hb %hc (.b16): the inputs, cut. The result goes to %D, %d, %h or %p.
/// Scratch: %T<8> (.b64), %t<8> (.b32), %s<8> (.b16), %q<4> (.pred).
/// %m (.b32) is the address of 32 bytes of shared memory for each thread, M of the first; L of 32
/// local ones.
struct Row {
  std::string text;
  int bits = 32;  ///< of the result; 1 for %p
  std::function<u64(const Inputs&, std::size_t)> want;
  int part_bits = 0;     ///< floats in the result are so wide ..
  Format format = kF32;  ///< .. and so encoded: any NaN stands for any other
  double relative = 0;   ///< error bounds, for the approximate ones
  double absolute = 0;
  [[nodiscard]] Row floats(Format of, double relative_error = 0, double absolute_error = 0) const {
    Row row = *this;
    row.part_bits = of.bits();
    row.format = of;
    row.relative = relative_error;
    row.absolute = absolute_error;
    return row;
  }
};

template <class R>
constexpr int result_bits() {
  return std::is_same_v<R, bool> ? 1 : static_cast<int>(8 * sizeof(R));
}

template <class R, class... A, std::size_t... I>
Row row_of(std::string text, std::function<R(A...)> function, std::index_sequence<I...>) {
  Row out;
  out.text = std::move(text);
  out.bits = result_bits<R>();
  out.want = [function = std::move(function)](const Inputs& in, std::size_t i) {
    const u64 operands[] = {in.a[i], in.b[i], in.c[i]};
    return static_cast<u64>(function(static_cast<A>(operands[I])...));
  };
  return out;
}
template <class R, class... A>
Row row_of(std::string text, std::function<R(A...)> function) {
  return row_of(std::move(text), std::move(function), std::index_sequence_for<A...>());
}
/// A row whose function takes one to three integers of the operands' types.
template <class F>
Row row(std::string text, F function) {
  return row_of(std::move(text), std::function(function));
}

/// The operands of the 32 lanes of a warp.
struct Warp {
  const u64* a_values;
  const u64* b_values;
  const u64* c_values;
  [[nodiscard]] u32 a(int lane) const { return static_cast<u32>(a_values[lane]); }
  [[nodiscard]] u32 b(int lane) const { return static_cast<u32>(b_values[lane]); }
  [[nodiscard]] u32 c(int lane) const { return static_cast<u32>(c_values[lane]); }
};
/// A row whose function is R(const Warp&, int lane).
template <class F>
Row warp_row(std::string text, F function) {
  using R = std::invoke_result_t<F, const Warp&, int>;
  Row out;
  out.text = std::move(text);
  out.bits = result_bits<R>();
  out.want = [function](const Inputs& in, std::size_t i) {
    const std::size_t start = i & ~std::size_t{31};
    const Warp warp{&in.a[start], &in.b[start], &in.c[start]};
    return static_cast<u64>(function(warp, static_cast<int>(i - start)));
  };
  return out;
}

/// `text` for operands of `bits` bits: $d and $a $b $c become registers, $x and $y scratch, @
/// becomes `type`.
std::string spell(const std::string& text, int bits, const std::string& type);

/// Runs the rows over the inputs: in whole warps, and one element at a time with every lane on the
/// same (where the device computes once for the warp).
void check(const std::vector<Row>& rows, const Inputs& inputs, bool one_by_one = true);

}  // namespace braid::cpu_test::semantics
