#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "runtime/cpu/run/hopper_sums.h"
#include "runtime/cpu/run/lanes.h"
#include "runtime/cpu/run/mma.h"
#include "runtime/cpu/run/runtime_helpers.h"

// mma.sync over register fragments. Products are exact in f32 and are added to C one k after the
// other, k ascending, by fused multiply-add, or as hopper_sums.h says, and NaN is 0x7fffffff: every
// host computes the same bits.

namespace braid::cpu {
namespace {

constexpr std::uint32_t kMaxDepth = 32;

/// The k of an A or B with this number in its register `r`; `lane` of those that share a row, with
/// so many elements each.
std::uint32_t depth_of(std::uint32_t r, std::uint32_t lane, std::uint32_t element,
                       std::uint32_t elements) {
  return (4 * r + lane) * elements + element;
}

/// All A in row-major order, and all B in column-major order.
template <class T>
struct Decoded {
  T rows[kMaxMmaA][16][kMaxDepth];
  T columns[kMaxMmaB][kMaxDepth][8];
};

/// How elements lie in 32 bits: decode_a(word, which), and so for B.
template <class T, class DecodeA, class DecodeB>
void decode(const MmaPlan& plan, std::uint32_t halves, std::uint32_t elements, DecodeA&& decode_a,
            DecodeB&& decode_b, Decoded<T>& to) {
  for (std::uint32_t n = 0; n < plan.a_count(); ++n) {
    for (std::uint32_t r = 0; r < 2 * halves; ++r) {
      for (std::uint32_t l = 0; l < 32; ++l) {
        for (std::uint32_t e = 0; e < elements; ++e) {
          to.rows[n][l / 4 + 8 * (r & 1)][depth_of(r >> 1, l % 4, e, elements)] =
              decode_a(plan.a(n, r)[l], e);
        }
      }
    }
  }
  for (std::uint32_t n = 0; n < plan.b_count(); ++n) {
    for (std::uint32_t r = 0; r < halves; ++r) {
      for (std::uint32_t l = 0; l < 32; ++l) {
        for (std::uint32_t e = 0; e < elements; ++e) {
          to.columns[n][depth_of(r, l % 4, e, elements)][l / 4] = decode_b(plan.b(n, r)[l], e);
        }
      }
    }
  }
}

template <class T>
using Sums = T[16][8];

/// AVX2 hosts get vectorised clones.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define BRAID_CPU_CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define BRAID_CPU_CLONES
#endif

BRAID_CPU_CLONES
void add_products(const float (*rows)[kMaxDepth], const float (*columns)[8], std::uint32_t depth,
                  Sums<float>& sums) {
  for (int row = 0; row < 16; ++row) {
    float sum[8];
    for (int n = 0; n < 8; ++n) sum[n] = sums[row][n];
    for (std::uint32_t k = 0; k < depth; ++k) {
      for (int n = 0; n < 8; ++n) sum[n] = __builtin_fmaf(rows[row][k], columns[k][n], sum[n]);
    }
    for (int n = 0; n < 8; ++n) sums[row][n] = sum[n];
  }
}

void add_products(const std::int32_t (*rows)[kMaxDepth], const std::int32_t (*columns)[8],
                  std::uint32_t depth, Sums<std::int64_t>& sums) {
  for (int row = 0; row < 16; ++row) {
    for (std::uint32_t k = 0; k < depth; ++k) {
      for (int n = 0; n < 8; ++n) sums[row][n] += rows[row][k] * columns[k][n];
    }
  }
}

/// In place of add_products: by the rule, or in the usual way where something is not finite.
BRAID_CPU_CLONES
void add_products_as_hopper(const HopperRule& rule, const float (*rows)[kMaxDepth],
                            const float (*columns)[8], std::uint32_t depth, Sums<float>& sums) {
  // In the order of the halves, if there are any.
  const auto nth = [&](std::uint32_t k) {
    return !rule.halves ? k : k % 16 / 2 * 4 + k % 2 + k / 16 * 2;
  };
  HopperTerms b[kMaxDepth];
  Eight not_finite_columns{};
  for (std::uint32_t k = 0; k < depth; ++k) {
    to_terms(columns[nth(k)], rule.lowest_b, 10, b[k], not_finite_columns);
  }
  for (int row = 0; row < 16; ++row) {
    HopperTerms a[kMaxDepth / 8];
    Eight not_finite{};
    float values[kMaxDepth];
    std::fill(values, values + 8, 0.0F);  // of which depth may have four
    for (std::uint32_t k = 0; k < depth; ++k) values[k] = rows[row][nth(k)];
    for (std::uint32_t k = 0; k < depth; k += 8) {
      to_terms(values + k, rule.lowest_a, 10, a[k / 8], not_finite);
    }
    bool usual = false;
    for (int k = 0; k < 8; ++k) usual = usual || not_finite[k] != 0;
    float added[8] = {};
    if (rule.halves) {
      add_as_hopper(rule, a, b, depth / 2, added);
      add_as_hopper(rule, a + depth / 16, b + depth / 2, depth / 2, added);
      for (int n = 0; n < 8; ++n) added[n] += sums[row][n];
    } else {
      std::copy(sums[row], sums[row] + 8, added);
      add_as_hopper(rule, a, b, depth, added);
    }
    for (int n = 0; n < 8; ++n) {
      float& sum = sums[row][n];
      if (!usual && not_finite_columns[n] == 0 && std::isfinite(sum)) {
        sum = added[n];
        continue;
      }
      for (std::uint32_t k = 0; k < depth; ++k) {
        sum = __builtin_fmaf(rows[row][k], columns[k][n], sum);
      }
    }
  }
}

/// The lane of a sum; the register is that of a row and the parity of the column.
std::uint32_t lane_of(std::uint32_t row, std::uint32_t column) { return row % 8 * 4 + column / 2; }

template <class Body>
void for_each_sum(Body&& body) {
  for (std::uint32_t row = 0; row < 16; ++row) {
    for (std::uint32_t column = 0; column < 8; ++column) body(row, column);
  }
}

/// Multiplies all tiles by add(rows, columns, sums); sums start from load(tile, product, row,
/// column).
template <class Sum, class T, class Add, class Load, class Store>
void multiply_tiles(const MmaPlan& plan, const Decoded<T>& decoded, Add&& add, Load&& load,
                    Store&& store) {
  plan.for_each_tile([&](const MmaTile& tile) {
    for (std::uint32_t w = 0; w < tile.width; ++w) {
      Sums<Sum> sums;
      for_each_sum([&](auto row, auto column) { sums[row][column] = load(tile, w, row, column); });
      for (std::uint32_t step = 0; step < tile.steps; ++step) {
        add(decoded.rows[tile.a(step)], decoded.columns[tile.b(step, w)], sums);
      }
      for_each_sum([&](auto row, auto column) { store(tile, w, row, column, sums[row][column]); });
    }
  });
}

// Apart from its callers: under AddressSanitizer the operands of all kinds together, each with a
// place of its own, do not fit on a warp's stack.
template <class DecodeA, class DecodeB>
[[gnu::noinline]] void multiply_floats(const MmaPlan& plan, std::uint32_t code,
                                       std::uint32_t elements, DecodeA&& decode_a,
                                       DecodeB&& decode_b) {
  Decoded<float> decoded;
  const std::uint32_t halves = (code & kMmaShort) != 0 ? 1 : 2;
  decode(plan, halves, elements, decode_a, decode_b, decoded);
  const std::uint32_t depth = 4 * halves * elements;
  const auto add = [&](const auto* rows, const auto* columns, Sums<float>& sums) {
    add_products(rows, columns, depth, sums);
  };
  if ((code & kMmaHalfSum) == 0) {
    const auto load = [&](const MmaTile& tile, auto w, auto row, auto column) {
      return std::bit_cast<float>(plan.c(tile, w, row / 8 * 2 + column % 2)[lane_of(row, column)]);
    };
    const auto store = [&](const MmaTile& tile, auto w, auto row, auto column, float sum) {
      plan.d(tile, w, row / 8 * 2 + column % 2)[lane_of(row, column)] =
          sum != sum ? 0x7fffffffU : std::bit_cast<std::uint32_t>(sum);
    };
    if ((code & kMmaHopper) == 0) return multiply_tiles<float>(plan, decoded, add, load, store);
    const HopperRule rule = hopper_rule(code);
    const auto add_as_it = [&](const auto* rows, const auto* columns, Sums<float>& sums) {
      add_products_as_hopper(rule, rows, columns, depth, sums);
    };
    return multiply_tiles<float>(plan, decoded, add_as_it, load, store);
  }
  // Two registers of pairs, which are rounded once.
  multiply_tiles<float>(
      plan, decoded, add,
      [&](const MmaTile& tile, auto w, auto row, auto column) {
        const std::uint32_t pair = plan.c(tile, w, row / 8)[lane_of(row, column)];
        return half_to_float(static_cast<std::uint16_t>(pair >> column % 2 * 16));
      },
      [&](const MmaTile& tile, auto w, auto row, auto column, float sum) {
        std::uint32_t& pair = plan.d(tile, w, row / 8)[lane_of(row, column)];
        const std::uint32_t half = float_to_half(sum);
        pair = column % 2 == 0 ? half : pair | half << 16U;
      });
}

[[gnu::noinline]] void multiply_integers(const MmaPlan& plan, std::uint32_t code) {
  Decoded<std::int32_t> decoded;
  const auto element = [](std::uint32_t word, std::uint32_t e, bool is_signed) -> std::int32_t {
    const auto byte = static_cast<std::uint8_t>(word >> (8 * e));
    return is_signed ? static_cast<std::int8_t>(byte) : byte;
  };
  const std::uint32_t halves = (code & kMmaShort) != 0 ? 1 : 2;
  decode(
      plan, halves, 4,
      [&](auto word, auto e) { return element(word, e, (code & kMmaSignedA) != 0); },
      [&](auto word, auto e) { return element(word, e, (code & kMmaSignedB) != 0); }, decoded);
  const bool saturates = (code & kMmaSaturate) != 0;
  multiply_tiles<std::int64_t>(
      plan, decoded,
      [&](const auto* rows, const auto* columns, Sums<std::int64_t>& sums) {
        add_products(rows, columns, 16 * halves, sums);
      },
      [&](const MmaTile& tile, auto w, auto row, auto column) {
        return static_cast<std::int32_t>(
            plan.c(tile, w, row / 8 * 2 + column % 2)[lane_of(row, column)]);
      },
      [&](const MmaTile& tile, auto w, auto row, auto column, std::int64_t sum) {
        if (saturates) sum = std::clamp<std::int64_t>(sum, INT32_MIN, INT32_MAX);
        plan.d(tile, w, row / 8 * 2 + column % 2)[lane_of(row, column)] =
            static_cast<std::uint32_t>(sum);
      });
}

/// The values of all codes of an 8-bit float.
std::array<float, 256> float8_values(bool e5m2) {
  std::array<float, 256> values{};
  for (std::uint32_t code = 0; code < 256; ++code) {
    values[code] = std::bit_cast<float>(from_float8(code, e5m2));
  }
  return values;
}

void multiply_any_host(const MmaPlan& plan, std::uint32_t code) {
  if ((code & kMmaInt8) != 0) {
    multiply_integers(plan, code);
  } else if ((code & kMmaFloat8) != 0) {
    static const std::array<float, 256> kE4m3 = float8_values(false);
    static const std::array<float, 256> kE5m2 = float8_values(true);
    const auto& of_a = (code & kMmaE5m2A) != 0 ? kE5m2 : kE4m3;
    const auto& of_b = (code & kMmaE5m2B) != 0 ? kE5m2 : kE4m3;
    multiply_floats(
        plan, code, 4, [&](auto word, auto e) { return of_a[word >> (8 * e) & 0xffU]; },
        [&](auto word, auto e) { return of_b[word >> (8 * e) & 0xffU]; });
  } else if ((code & kMmaTf32) != 0) {
    const auto value = [](auto word, auto) { return std::bit_cast<float>(word & 0xffffe000U); };
    multiply_floats(plan, code, 1, value, value);
  } else if ((code & kMmaBfloat) != 0) {
    const auto value = [](auto word, auto e) {
      return std::bit_cast<float>(e == 0 ? word << 16U : word & 0xffff0000U);
    };
    multiply_floats(plan, code, 2, value, value);
  } else {
    const auto value = [](auto word, auto e) {
      return half_to_float(static_cast<std::uint16_t>(word >> (16 * e)));
    };
    multiply_floats(plan, code, 2, value, value);
  }
}

bool host_has_avx512() {
  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512dq") != 0;
}

}  // namespace

void multiply_fragments(const MmaPlan& plan, std::uint32_t code) {
  static const bool kWide = host_has_avx512();
  if (kWide && (code & kMmaHopper) == 0) {
    multiply_fragments_avx512(plan, code);
  } else {
    multiply_any_host(plan, code);
  }
}

namespace {

void mma(std::uint8_t* registers, const std::uint32_t* plan, std::uint32_t code) {
  multiply_fragments(MmaPlan(registers, plan), code);
}

}  // namespace

std::vector<RuntimeHelper> mma_helpers() { return {{"mma", mma}}; }

}  // namespace braid::cpu
