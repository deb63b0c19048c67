// tcgen05 against the statements of the PTX manual: which thread moves what of tensor memory, what
// the descriptors mean, and the product.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "cpu/cpu_harness.h"
#include "cpu/semantics.h"

namespace braid::cpu_test {
namespace {

using namespace semantics;
using testing::HasSubstr;

constexpr u32 kLanes = 128;
constexpr const char* kGroup = "tcgen05.alloc.cta_group::1";

std::string list(const char* name, u32 from, u32 count) {
  std::string out = "{";
  for (u32 i = 0; i < count; ++i) out += fmt::format("{}%{}{}", i == 0 ? "" : ", ", name, from + i);
  return out + "}";
}

/// A kernel of 128 threads that has all of tensor memory at %base, whose column 0 on is first
/// filled with `columns` columns from the words at %D (those of a lane together). %t is the thread,
/// %own its warp's address in tensor memory.
std::string kernel(const std::string& parameters, u32 columns, const std::string& body) {
  std::string fill;
  for (u32 c = 0; c < columns; c += 8) {
    for (u32 i = 0; i < 8; ++i)
      fill += fmt::format("ld.global.b32 %s{}, [%D+{}];\n", i, 4 * (c + i));
    fill +=
        fmt::format("tcgen05.st.sync.aligned.32x32b.x8.b32 [%own+{}], {};\n", c, list("s", 0, 8));
  }
  return fmt::format(R"(.version 8.7
.target sm_100a
.address_size 64
.extern .shared .align 1024 .b8 tile[];
.visible .entry k(.param .u64 words, .param .u64 out{0})
{{
.reg .b32 %s<128>, %t, %base, %own, %i, %m, %x<4>; .reg .b64 %D, %O, %w, %A, %B, %I;
.reg .pred %p, %q, %z;
.shared .align 8 .b64 bar; .shared .b32 where;
ld.param.u64 %D, [words]; ld.param.u64 %O, [out];
mov.u32 %t, %tid.x; setp.lt.u32 %q, %t, 32; setp.eq.u32 %z, %t, 0;
@%q {1}.sync.aligned.shared::cta.b32 [where], 512;
@%z mbarrier.init.shared::cta.b64 [bar], 1;
bar.sync 0;
ld.shared.b32 %base, [where];
and.b32 %own, %t, 96; shl.b32 %own, %own, 16; add.s32 %own, %own, %base;
mul.wide.u32 %w, %t, {2}; add.s64 %D, %D, %w;
{3}
tcgen05.wait::st.sync.aligned;
{4}
tcgen05.wait::ld.sync.aligned;
bar.sync 0;
@%q tcgen05.dealloc.cta_group::1.sync.aligned.b32 %base, 512;
ret;
}}
)",
                     parameters, kGroup, 4 * columns, fill, body);
}

// --- moves ---

struct Shape {
  const char* name;
  u32 registers, columns;  ///< of .x1
};
const Shape kShapes[] = {
    {"32x32b", 1, 1}, {"16x64b", 1, 2}, {"16x128b", 2, 4}, {"16x256b", 4, 8}, {"16x32bx2", 1, 1}};

/// The lane and the column of a thread's register, as the figures of the manual have them.
std::pair<u32, u32> place_of(u32 shape, u32 thread, u32 r, u32 apart) {
  const u32 group = thread / 4, in_group = thread % 4;
  switch (shape) {
    case 0:
      return {thread, r};
    case 1:  // neighbours are 8 lanes apart, the next ones have the next column
      return {group + 8 * (in_group & 1), 2 * r + (in_group >> 1)};
    case 2:
      return {group + 8 * (r & 1), 4 * (r >> 1) + in_group};
    case 3:
      return {group + 8 * (r >> 1 & 1), 8 * (r >> 2) + 2 * in_group + (r & 1)};
    default:
      return {thread & 15, r + (thread >> 4) * apart};
  }
}

class TensorMoves : public testing::TestWithParam<u32> {};
INSTANTIATE_TEST_SUITE_P(All, TensorMoves, testing::Range(0U, 5U));

TEST_P(TensorMoves, GoWhereTheManualDrawsThem) {
  constexpr u32 kColumns = 64;
  const u32 shape = GetParam();
  const Shape& of = kShapes[shape];
  Random random(40 + shape);
  for (const u32 times : {1U, 2U, 8U}) {
    for (const bool stores : {false, true}) {
      for (const bool halves : {false, true}) {
        const u32 registers = of.registers * times, wide = halves ? 2 : 1;
        const u32 half = shape == 0 ? 0 : static_cast<u32>(random.next() % 2 * 16);
        const u32 apart = shape == 4 ? 24 : 0, start = static_cast<u32>(random.next() % 5);
        if (of.columns * times * wide + apart + start > kColumns) continue;
        SCOPED_TRACE(fmt::format("{} x{} {} halves {}", of.name, times, stores, halves));
        const std::string name = fmt::format("tcgen05.{}.sync.aligned.{}.x{}{}.b32",
                                             stores ? "st" : "ld", of.name, times,
                                             !halves  ? ""
                                             : stores ? ".unpack::16b"
                                                      : ".pack::16b");
        const std::string at = fmt::format("[%own+{}]", (half << 16) + start);
        const std::string split = shape == 4 ? fmt::format(", {}", apart) : "";
        const std::string vector = list("s", 0, registers);
        std::string body;
        if (stores) {
          // What is stored is the thread and the register; then all columns are read.
          for (u32 r = 0; r < registers; ++r) {
            body += fmt::format("mad.lo.u32 %s{0}, %t, 0x10001, 0x{1:x};\n", r, r * 0x2000100);
          }
          body += fmt::format("{} {}{}, {};\ntcgen05.wait::st.sync.aligned;\n", name, at, split,
                              vector);
          body += fmt::format("tcgen05.ld.sync.aligned.32x32b.x64.b32 {}, [%own];\n",
                              list("s", 0, kColumns));
        } else {
          body = fmt::format("{} {}, {}{};\n", name, vector, at, split);
        }
        const u32 seen = stores ? kColumns : registers;
        body += "tcgen05.wait::ld.sync.aligned;\n";
        body += fmt::format("mul.wide.u32 %w, %t, {}; add.s64 %O, %O, %w;\n", 4 * seen);
        for (u32 r = 0; r < seen; ++r)
          body += fmt::format("st.global.b32 [%O+{}], %s{};\n", 4 * r, r);
        Bench bench = Bench::from_ptx(kernel("", kColumns, body));
        std::vector<u32> words;
        for (u32 i = 0; i < kLanes * kColumns; ++i)
          words.push_back(static_cast<u32>(random.next()));
        const u64 out = bench.upload(std::vector<u32>(kLanes * seen, 0xdeadbeef));
        bench.run({1}, {kLanes}, 0, bench.upload(words), out);
        const auto got = bench.download<u32>(out, kLanes * seen);
        std::vector<u32> want = stores ? words : std::vector<u32>(kLanes * seen);
        for (u32 t = 0; t < kLanes; ++t) {
          for (u32 r = 0; r < registers; ++r) {
            const auto [lane, column] = place_of(shape, t % 32, r, 0);
            const u32 first = start + column * wide + (shape == 4 ? t % 32 / 16 * apart : 0);
            u32* const word =
                (stores ? want : words).data() + (t / 32 * 32 + half + lane) * kColumns + first;
            const u32 value = t * 0x10001 + r * 0x2000100;
            if (!stores) {
              want[t * seen + r] = halves ? (word[0] & 0xffff) | word[1] << 16 : word[0];
            } else if (halves) {
              word[0] = value & 0xffff;
              word[1] = value >> 16;
            } else {
              word[0] = value;
            }
          }
        }
        ASSERT_EQ(got, want);
      }
    }
  }
}

// --- products ---

struct Element {
  const char* name;
  int bits, code;  ///< its number in the instruction descriptor
  Format format{};
  bool is_signed = false, finite = false;
  [[nodiscard]] bool is_float() const { return format.exponent_bits != 0; }
  [[nodiscard]] double value(u64 bits_of) const {
    if (!is_float())
      return static_cast<double>(is_signed ? i64{static_cast<i8>(bits_of)} : i64(bits_of));
    if (!finite) return to_double(format, bits_of);
    // The top exponent holds numbers; of e4m3 also a NaN.
    const u64 size = bits_of & (format.sign() - 1);
    if (bits == 8 && size == 0x7f) return NAN;
    const double more = std::ldexp(1.0, 1 << (format.exponent_bits - 1));
    const double value = to_double({format.exponent_bits + 1, format.fraction_bits}, size) * more;
    return (bits_of & format.sign()) != 0 ? -value : value;
  }
};
const Element kHalf{"f16", 16, 0, kF16}, kBfloat{"bf16", 16, 1, kBf16},
    kTensor{"tf32", 32, 2, kF32};
const Element kE4m3{"e4m3", 8, 0, {4, 3}, false, true}, kE5m2{"e5m2", 8, 1, {5, 2}},
    kE2m3{"e2m3", 6, 3, {2, 3}, false, true}, kE3m2{"e3m2", 6, 4, {3, 2}, false, true},
    kE2m1{"e2m1", 4, 5, {2, 1}, false, true}, kFour{"e2m1", 4, 1, {2, 1}, false, true};
const Element kSigned{"s8", 8, 1, {}, true}, kUnsigned{"u8", 8, 0};

struct Product {
  const char* kind;
  Element a, b;
  u32 rows = 128, columns = 64;
  int sum = 1;  ///< the type of D: 0 f16, 1 f32, 2 s32
  bool exchanged_a = false, exchanged_b = false, negated_a = false, negated_b = false;
  bool a_in_tensor = false, adds = true, saturates = false, masked = false;
  int scale_d = 0;
  int scales = 0;  ///< of a row along k, for those with scales
  bool fine_scales = false;
  [[nodiscard]] bool packed() const { return std::string(kind).starts_with("kind::mxf4"); }
  [[nodiscard]] u32 depth() const {
    return packed() ? 64 : a.bits == 32 ? 8 : a.bits == 16 ? 16 : 32;
  }
  /// The instruction descriptor.
  [[nodiscard]] u32 types() const {
    const u32 common = u32(a.code) << 7 | u32(b.code) << 10 | u32{negated_a} << 13 |
                       u32{negated_b} << 14 | u32{exchanged_a} << 15 | u32{exchanged_b} << 16 |
                       columns / 8 << 17 | rows / 16 << 24;
    if (scales != 0)
      return common | u32{!fine_scales} << 23 | (scales == 1 ? 2U << 4 | 3U << 29 : 0U);
    return common | u32{saturates} << 3 | u32(sum) << 4;
  }
};

/// Rows of A or columns of B in shared memory, in units of 16 bytes.
struct Layout {
  u32 start = 0, leading = 0, stride = 0, span = 0;
  bool exchanged = false;
  [[nodiscard]] u64 descriptor() const {
    const u64 mode = span == 128 ? 2 : span == 64 ? 4 : span == 32 ? 6 : 0;
    return u64{start >> 4} | u64{leading >> 4} << 16 | u64{stride >> 4} << 32 | u64{1} << 46 |
           mode << 61;
  }
  /// Unit (row, unit of k), or if exchanged (unit of rows, k).
  [[nodiscard]] u32 address(u32 mn, u32 k) const {
    const u32 wide = span == 0 ? 16 : span;
    u32 at = start;
    if (!exchanged) {
      at += mn % 8 * wide + mn / 8 * stride + k * (span == 0 ? leading : 16);
    } else if (span == 0) {
      at += mn * stride + k % 8 * 16 + k / 8 * leading;
    } else {
      at += mn % (span / 16) * 16 + mn / (span / 16) * leading + k % 8 * span + k / 8 * stride;
    }
    return span == 0 ? at : at ^ at / 128 % (span / 16) * 16;
  }
};

/// Takes `count` rows of `depth` elements, `per` of which are in 16 bytes.
Layout some_layout(Random& random, u32 count, u32 depth, u32 per, u32 span, bool exchanged,
                   u32 from) {
  Layout layout{from, 0, 0, span, exchanged};
  const u32 groups = exchanged ? (count + per - 1) / per : count / 8;
  const u32 parts = exchanged ? depth / 8 : depth / per;
  const bool k_first = random.next() % 2 == 0;
  if (span == 0) {
    layout.leading = k_first ? 128 : 128 * groups;
    layout.stride = k_first ? 128 * parts : 128;
  } else if (!exchanged) {
    layout.stride = 8 * span;
    layout.start += 32 * static_cast<u32>(random.next() % (span / 32));
  } else {
    const u32 across = (16 * groups + span - 1) / span;
    layout.stride = k_first ? 8 * span : 8 * span * across;
    layout.leading = k_first ? 8 * span * parts : 8 * span;
  }
  return layout;
}

constexpr u32 kSharedBytes = 65536, kFrom = 512, kScaleBytes = 1024;
constexpr u32 kColumnsOfA = 64, kColumnsOfScales = 384;

std::string text(const Product& p) {
  std::string body = fmt::format(R"(
ld.param.u64 %I, [image]; ld.param.u64 %A, [a]; ld.param.u64 %B, [b];
mul.wide.u32 %w, %t, 16; add.s64 %I, %I, %w; mov.u32 %m, tile; mad.lo.u32 %m, %t, 16, %m; mov.u32 %i, 0;
copy:
ld.global.v4.b32 {{%x0, %x1, %x2, %x3}}, [%I]; st.shared.v4.b32 [%m], {{%x0, %x1, %x2, %x3}};
add.s64 %I, %I, 2048; add.s32 %m, %m, 2048; add.s32 %i, %i, 2048;
setp.lt.u32 %p, %i, {0}; @%p bra copy;
mov.u32 %m, tile; shr.u32 %m, %m, 4; cvt.u64.u32 %w, %m; add.s64 %A, %A, %w; add.s64 %B, %B, %w;
fence.proxy.async; tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;
ld.param.u32 %i, [types]; ld.param.u32 %m, [adds]; setp.ne.u32 %p, %m, 0;
@!%z bra wait;
)",
                                 kSharedBytes);
  std::string scales;
  if (p.scales != 0) {
    // Their descriptors: 32 rows of 16 bytes each.
    for (u32 which = 0; which < 2; ++which) {
      body += fmt::format(
          "mov.u32 %m, tile; add.u32 %m, %m, {0}; shr.u32 %m, %m, 4; cvt.u64.u32 %w, %m; "
          "or.b64 %w, %w, {1}; add.s32 %x{2}, %base, {3};\n"
          "tcgen05.cp.cta_group::1.32x128b.warpx4 [%x{2}], %w;\n",
          512 * which, u64{8} << 32 | u64{1} << 46, which, kColumnsOfScales + 8 * which);
    }
    scales = ", [%x0], [%x1]";
  }
  std::string kept;
  if (p.masked) {
    body += "mov.b32 %x0, 0x1; mov.b32 %x1, 0xf0; mov.b32 %x2, 0; mov.b32 %x3, 0x80000000;\n";
    kept = ", {%x0, %x1, %x2, %x3}";
  }
  const std::string modifiers =
      p.scales == 0 ? "" : fmt::format(".block_scale.scale_vec::{}X", p.scales);
  body += fmt::format("tcgen05.mma.cta_group::1.{}{} [%base], {}, %B, %i{}{}, %p{};\n", p.kind,
                      modifiers, p.a_in_tensor ? fmt::format("[%base+{}]", kColumnsOfA) : "%A",
                      scales, kept, p.scale_d == 0 ? "" : fmt::format(", {}", p.scale_d));
  body += R"(tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];
wait:
mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0; @!%p bra wait;
tcgen05.fence::after_thread_sync;
bar.sync 0;
)";
  body += fmt::format("mul.wide.u32 %w, %t, {}; add.s64 %O, %O, %w;\n", 4 * p.columns);
  for (u32 c = 0; c < p.columns; c += 8) {
    body += fmt::format(
        "tcgen05.ld.sync.aligned.32x32b.x8.b32 {}, [%own+{}];\ntcgen05.wait::ld.sync.aligned;\n",
        list("s", 0, 8), c);
    for (u32 i = 0; i < 8; ++i)
      body += fmt::format("st.global.b32 [%O+{}], %s{};\n", 4 * (c + i), i);
  }
  const u32 filled = p.a_in_tensor ? kColumnsOfA + 8 : p.columns;
  return kernel(
      ", .param .u64 image, .param .u64 a, .param .u64 b, .param .u32 types, .param .u32 adds",
      filled, body);
}

/// The operands and the product of one launch.
class Trial {
 public:
  Trial(const Product& product, Random& random, u32 span_a, u32 span_b)
      : p_(product), random_(random), image_(kSharedBytes) {
    const u32 per_a = p_.packed() ? 32 : 128 / std::max(p_.a.bits, 8);
    const u32 per_b = p_.packed() ? 32 : 128 / std::max(p_.b.bits, 8);
    b_layout_ =
        some_layout(random, p_.columns, p_.depth(), per_b, span_b, p_.exchanged_b, kScaleBytes);
    a_layout_ = some_layout(random, p_.rows, p_.depth(), per_a, span_a, p_.exchanged_a, 33 * 1024);
    a_ = elements(p_.a, p_.rows);
    b_ = elements(p_.b, p_.columns);
    place(b_, p_.b, b_layout_, per_b);
    if (!p_.a_in_tensor) place(a_, p_.a, a_layout_, per_a);
    for (u32 i = 0; i < 2 * kFrom; ++i) {
      image_[i] = p_.fine_scales ? static_cast<u8>(random.next() % 0x7f)
                                 : static_cast<u8>(120 + random.next() % 16);
    }
    a_values_ = values(0, p_.a, a_, p_.negated_a);
    b_values_ = values(1, p_.b, b_, p_.negated_b);
    const u32 filled = p_.a_in_tensor ? kColumnsOfA + 8 : p_.columns;
    words_.resize(kLanes * filled);
    for (u32& word : words_) word = start();
    if (p_.a_in_tensor) put_in_tensor(filled);
  }

  void run(Bench& bench) {
    const u64 out = bench.upload(std::vector<u32>(kLanes * p_.columns, 0xdeadbeef));
    const u32 adds = p_.adds ? 1 : 0;
    bench.run({1}, {kLanes}, kSharedBytes, bench.upload(words_), out, bench.upload(image_),
              a_layout_.descriptor(), b_layout_.descriptor(), p_.types(), adds);
    check(bench.download<u32>(out, kLanes * p_.columns));
  }

 private:
  std::vector<u64> elements(const Element& element, u32 rows) {
    std::vector<u64> values;
    const Format f = element.format;
    for (u32 i = 0; i < rows * p_.depth(); ++i) {
      const u64 r = random_.next() >> 8;
      u64 code = r & (~u64{0} >> (64 - element.bits));
      if (element.is_float() && element.bits >= 8) {
        const u64 field = r % 16 == 0 ? 0 : (f.one() >> f.fraction_bits) - 2 + r % 4;
        code = (code & (f.sign() | ((u64{1} << f.fraction_bits) - 1))) | field << f.fraction_bits;
        if (element.bits == 32) code &= ~u64{0x1fff};
        const bool has_infinity = !element.finite && element.bits >= 16;
        if (has_infinity && i / p_.depth() == 3 && i % p_.depth() == 5) code = f.infinity();
      }
      values.push_back(code);
    }
    return values;
  }

  u32 start() {
    const u64 r = random_.next() >> 8;
    if (p_.saturates) return (r & 1) != 0 ? 0x7fffff00 + r % 256 : 0x80000000 + r % 256;
    if (p_.sum == 2) return static_cast<u32>(r);
    if (p_.sum == 1) return static_cast<u32>((r & 0x807fffff) | (126 + r % 3) << 23);
    return static_cast<u32>((r & 0x83ff) | 0x3800 | r << 16);
  }

  void place(const std::vector<u64>& codes, const Element& element, const Layout& layout, u32 per) {
    for (u32 i = 0; i < codes.size(); ++i) {
      const u32 row = i / p_.depth(), k = i % p_.depth();
      const u32 unit =
          layout.exchanged ? layout.address(row / per, k) : layout.address(row, k / per);
      const u32 bit = (layout.exchanged ? row % per : k % per) * static_cast<u32>(element.bits);
      ASSERT_LE(unit + 16, kSharedBytes);
      for (u32 b = 0; b < static_cast<u32>(element.bits); ++b) {
        const u32 at = bit + b;
        if ((codes[i] >> b & 1) != 0) image_[unit + at / 8] |= static_cast<u8>(1U << at % 8);
      }
    }
  }

  [[nodiscard]] u32 lane_of(u32 row) const {
    return p_.rows == 128 ? row : row / 16 * 32 + row % 16;
  }

  void put_in_tensor(u32 filled) {
    const u32 per = 32 / static_cast<u32>(p_.a.bits);
    for (u32 row = 0; row < p_.rows; ++row) {
      for (u32 c = 0; c < p_.depth() / per; ++c) {
        u32 word = 0;
        for (u32 i = 0; i < per; ++i) {
          word |= static_cast<u32>(a_[row * p_.depth() + c * per + i]) << (i * u32(p_.a.bits) % 32);
        }
        words_[lane_of(row) * filled + kColumnsOfA + c] = word;
      }
    }
  }

  [[nodiscard]] double scale(u32 which, u32 row, u32 k) const {
    if (p_.scales == 0) return 1;
    // Bytes 2 and 3 of a row's word where there is one along k, for B and A.
    const u32 first = p_.scales == 1 ? (which == 0 ? 3 : 2) : 0;
    const u32 byte = first + k / (p_.depth() / static_cast<u32>(p_.scales));
    const u32 code = image_[512 * which + row % 32 * 16 + row / 32 * 4 + byte];
    return p_.fine_scales ? kE4m3.value(code) : std::ldexp(1.0, static_cast<int>(code) - 127);
  }

  /// The numbers of A or B, with their scales and signs.
  [[nodiscard]] std::vector<double> values(u32 which, const Element& element,
                                           const std::vector<u64>& codes, bool negated) const {
    std::vector<double> all;
    for (u32 i = 0; i < codes.size(); ++i) {
      const double value = element.value(codes[i]) * scale(which, i / p_.depth(), i % p_.depth());
      all.push_back(negated ? -value : value);
    }
    return all;
  }

  void check(const std::vector<u32>& got) const {
    const u32 kept[] = {0x1, 0xf0, 0, 0x80000000};
    const u32 filled = p_.a_in_tensor ? kColumnsOfA + 8 : p_.columns;
    std::vector<bool> is_sum(kLanes);
    for (u32 row = 0; row < p_.rows; ++row) {
      const u32 lane = lane_of(row);
      is_sum[lane] = !p_.masked || (kept[lane / 32] >> lane % 32 & 1) == 0;
    }
    for (u32 lane = 0; lane < kLanes; ++lane) {
      const u32 row = p_.rows == 128 ? lane : lane / 32 * 16 + lane % 32;
      for (u32 column = 0; column < p_.columns; ++column) {
        const u32 before = words_[lane * filled + column], after = got[lane * p_.columns + column];
        if (is_sum[lane]) {
          check_one(row, column, before, after);
        } else {
          ASSERT_EQ(after, before) << lane << " " << column;
        }
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }

  void check_one(u32 row, u32 column, u32 before, u32 after) const {
    const bool whole = p_.sum == 2;
    const Format format = p_.sum == 0 ? kF16 : kF32;
    double sum = 0;
    if (p_.adds) {
      sum = whole ? static_cast<double>(static_cast<i32>(before))
                  : to_double(format, p_.sum == 0 ? before & 0xffff : before);
      sum = std::ldexp(sum, -p_.scale_d);
    }
    double sizes = std::fabs(sum);
    const double* const x = &a_values_[row * p_.depth()];
    const double* const y = &b_values_[column * p_.depth()];
    for (u32 k = 0; k < p_.depth(); ++k) {
      sum += x[k] * y[k];
      sizes += std::fabs(x[k] * y[k]);
    }
    if (whole) {
      auto integer = static_cast<i64>(sum);
      if (p_.saturates) integer = std::clamp<i64>(integer, INT32_MIN, INT32_MAX);
      ASSERT_EQ(after, static_cast<u32>(integer)) << row << " " << column;
      return;
    }
    const double seen = to_double(format, p_.sum == 0 ? after & 0xffff : after);
    if (std::isnan(sum) || std::isinf(sum)) {
      ASSERT_TRUE(seen == sum || (std::isnan(seen) && std::isnan(sum)))
          << row << " " << column << ": " << seen << " instead of " << sum;
      return;
    }
    ASSERT_NEAR(seen, sum, sizes * 1e-6 + (p_.sum == 0 ? std::fabs(sum) * 0x1p-10 : 0))
        << row << " " << column;
  }

  const Product& p_;
  Random& random_;
  Layout a_layout_, b_layout_;
  std::vector<u64> a_, b_;  ///< by row, or column, then k
  std::vector<double> a_values_, b_values_;
  std::vector<u8> image_;
  std::vector<u32> words_;
};

void check_product(const Product& p, Random& random) {
  SCOPED_TRACE(fmt::format("{} {} {} {}x{} D {} exchanged {}{} in tensor memory {}", p.kind,
                           p.a.name, p.b.name, p.rows, p.columns, p.sum, p.exchanged_a,
                           p.exchanged_b, p.a_in_tensor));
  Bench bench = Bench::from_ptx(text(p));
  bench.function().set_max_dynamic_shared(kSharedBytes);
  for (const u32 span : {0U, 32U, 64U, 128U}) {
    const u32 spans[] = {0, 32, 64, 128};
    const u32 other = spans[(span / 32 + random.next()) % 4];
    SCOPED_TRACE(fmt::format("swizzles {} and {}", span, other));
    Trial(p, random, span, other).run(bench);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(TensorProducts, AreTripleLoops) {
  Random random(500);
  const Product products[] = {
      {"kind::f16", kHalf, kHalf},
      {"kind::f16", kBfloat, kBfloat, 64, 24},
      {"kind::f16", kHalf, kHalf, 128, 48, 0},
      {"kind::tf32", kTensor, kTensor, 64, 40},
      {"kind::f8f6f4", kE4m3, kE5m2, 128, 32},
      {"kind::f8f6f4", kE5m2, kE4m3, 64, 8, 0},
      {"kind::f8f6f4", kE2m1, kE4m3, 128, 16},
      {"kind::f8f6f4", kE3m2, kE2m3, 128, 16},
      {"kind::i8", kSigned, kUnsigned, 128, 32, 2},
      {"kind::i8", kUnsigned, kSigned, 64, 16, 2},
  };
  for (Product p : products) {
    p.adds = random.next() % 3 != 0;
    p.negated_a = p.sum != 2 && random.next() % 2 == 0;
    p.negated_b = p.sum != 2 && random.next() % 2 == 0;
    check_product(p, random);
    if (HasFatalFailure()) return;
  }
}

TEST(TensorProducts, HaveEveryMajor) {
  Random random(501);
  for (const auto& [kind, element] :
       {std::pair{"kind::f16", kBfloat}, {"kind::f8f6f4", kE4m3}, {"kind::tf32", kTensor}}) {
    for (int way = 1; way < 4; ++way) {
      Product p{kind, element, element, 128, element.bits == 16 ? 128U : 64U};
      p.exchanged_a = (way & 1) != 0;
      p.exchanged_b = (way & 2) != 0;
      check_product(p, random);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(TensorProducts, TakeAFromTensorMemory) {
  Random random(502);
  for (const u32 rows : {128U, 64U}) {
    for (Product p : {Product{"kind::f16", kHalf, kHalf}, Product{"kind::tf32", kTensor, kTensor},
                      Product{"kind::f8f6f4", kE5m2, kE4m3}}) {
      p.rows = rows;
      p.a_in_tensor = true;
      check_product(p, random);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(TensorProducts, LeaveLanesScaleAndSaturate) {
  Random random(503);
  Product masked{"kind::f16", kHalf, kHalf, 128, 32};
  masked.masked = true;
  check_product(masked, random);
  Product scaled{"kind::tf32", kTensor, kTensor, 64, 16};
  scaled.scale_d = 3;
  check_product(scaled, random);
  Product saturated{"kind::i8", kSigned, kSigned, 128, 16, 2};
  saturated.saturates = true;
  check_product(saturated, random);
}

TEST(TensorProducts, HaveScales) {
  Random random(504);
  Product products[] = {{"kind::mxf8f6f4", kE4m3, kE5m2},
                        {"kind::mxf8f6f4", kE2m1, kE3m2},
                        {"kind::mxf4", kFour, kFour},
                        {"kind::mxf4nvf4", kFour, kFour},
                        {"kind::mxf4nvf4", kFour, kFour}};
  const int scales[] = {1, 1, 2, 2, 4};
  for (std::size_t i = 0; i < std::size(products); ++i) {
    Product& p = products[i];
    p.scales = scales[i];
    p.fine_scales = i == 4;
    p.columns = i == 0 ? 128 : 48;
    check_product(p, random);
    if (HasFatalFailure()) return;
  }
}

// --- what is refused ---

/// The error of a kernel of 128 threads that holds 64 columns at %base.
std::string refusal(const std::string& body) {
  const std::string ptx = fmt::format(R"(.version 8.7
.target sm_100a
.address_size 64
.visible .entry k()
{{
.reg .b32 %r<8>, %t, %base, %own; .reg .b64 %A; .reg .pred %p, %q; .shared .b32 where; .shared .align 1024 .b8 tile[4096];
mov.u32 %t, %tid.x; setp.lt.u32 %q, %t, 32; setp.eq.u32 %p, %t, 0;
@%q tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [where], 64;
bar.sync 0; ld.shared.b32 %base, [where];
and.b32 %own, %t, 96; shl.b32 %own, %own, 16; add.s32 %own, %own, %base;
{}
bar.sync 0;
@%q tcgen05.dealloc.cta_group::1.sync.aligned.b32 %base, 64;
ret;
}}
)",
                                      body);
  return error_of([&] { Bench::from_ptx(ptx).run({1}, {128}, 0); });
}

TEST(TensorMemory, RefusesWhatAGpuWouldNotDo) {
  EXPECT_EQ(refusal(""), "");
  const auto alloc = [](int columns) {
    return fmt::format("@%q tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [where], {};",
                       columns);
  };
  EXPECT_THAT(refusal(alloc(48)), HasSubstr("expected a power of two from 32 to 512"));
  EXPECT_THAT(refusal(alloc(512)), HasSubstr("would wait: 64 of 512"));
  EXPECT_THAT(refusal("@%q tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" + alloc(32)),
              HasSubstr("behind the block's tcgen05.relinquish_alloc_permit"));
  EXPECT_THAT(refusal(alloc(32)), HasSubstr("ends with 32 columns of tensor memory"));
  EXPECT_THAT(refusal("@%q tcgen05.dealloc.cta_group::1.sync.aligned.b32 %base, 32;"),
              HasSubstr("where no tcgen05.alloc of so many began"));
  EXPECT_THAT(
      refusal("tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r0, %r1}, [%own+63];"),
      HasSubstr("a tcgen05.ld is at columns 63 to 64 of tensor memory, of which 64 is not"));
  EXPECT_THAT(refusal("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%base];"),
              HasSubstr("may name lane 32 alone"));
  EXPECT_THAT(refusal("@%p tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%own];"),
              HasSubstr("in divergent code"));
  const auto multiply = [&](u64 descriptor, u32 types) {
    return refusal(
        fmt::format("mov.b64 %A, {}; mov.b32 %r0, {}; @%p tcgen05.mma.cta_group::1.kind::f16 "
                    "[%base], %A, %A, %r0, %p;",
                    descriptor, types));
  };
  const Product p{"kind::f16", kHalf, kHalf};
  EXPECT_THAT(multiply(0, p.types()), HasSubstr("has not 1 in bits 46 to 48"));
  EXPECT_THAT(multiply(u64{1} << 46 | u64{1} << 61, p.types()),
              HasSubstr("has a swizzle that is not there"));
  EXPECT_THAT(multiply(u64{1} << 46, p.types() | 4), HasSubstr("is of a sparse A"));
  EXPECT_THAT(multiply(u64{1} << 46, Product{"kind::f16", kHalf, kHalf, 32}.types()),
              HasSubstr("has a wrong number of rows"));
  EXPECT_THAT(multiply(u64{1} << 46 | 0x3fff, p.types()), HasSubstr("bytes of shared memory"));
  EXPECT_THAT(refusal("tcgen05.shift.cta_group::1.down [%base];"), HasSubstr("tcgen05.shift"));
  EXPECT_THAT(
      refusal("@%p tcgen05.mma.sp.cta_group::1.kind::f16 [%base], %A, %A, [%base], %r0, %p;"),
      HasSubstr("tcgen05.mma.sp"));
}

}  // namespace
}  // namespace braid::cpu_test
