// wgmma against the statements of the PTX manual: what a descriptor means, which thread holds what,
// and the product.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "braid/error.h"
#include "cpu/cpu_harness.h"
#include "cpu/semantics.h"

namespace braid::cpu_test {
namespace {

using namespace semantics;
using testing::HasSubstr;

constexpr u32 kSharedBytes = 49152;

struct Element {
  const char* name;
  int bits;
  Format format{};  ///< of a float
  bool is_signed = false;
  [[nodiscard]] bool is_float() const { return format.exponent_bits != 0; }
  [[nodiscard]] double value(u64 code) const {
    if (bits == 32 && !is_float()) return static_cast<double>(code);
    if (!is_float()) return static_cast<double>(is_signed ? i64{static_cast<i8>(code)} : i64(code));
    if (format.exponent_bits != 4) return to_double(format, code);
    // The top exponent of e4m3 holds numbers, and one NaN.
    if ((code & 0x7f) == 0x7f) return NAN;
    const double size = to_double(Format{5, 3}, code & 0x7f) * 256;
    return (code & 0x80) != 0 ? -size : size;
  }
};
const Element kHalf{"f16", 16, kF16};
const Element kBfloat{"bf16", 16, kBf16};
const Element kTensor{"tf32", 32, kF32};
const Element kE4m3{"e4m3", 8, {4, 3}};
const Element kE5m2{"e5m2", 8, {5, 2}};
const Element kSigned{"s8", 8, {}, true};
const Element kUnsigned{"u8", 8};
const Element kBits{"b1", 32};  // 32 of them

struct Types {
  Element a, b;
  const char* sum = "f32";
  bool saturate = false;
  [[nodiscard]] int depth() const { return 256 / a.bits; }
  [[nodiscard]] bool of_bits() const { return !a.is_float() && a.bits == 32; }
  [[nodiscard]] int sum_bits() const { return std::string(sum) == "f16" ? 16 : 32; }
  [[nodiscard]] std::string name(int columns) const {
    return fmt::format("wgmma.mma_async.sync.aligned.m64n{}k{}{}.{}.{}.{}{}", columns,
                       of_bits() ? 256 : depth(), saturate ? ".satfinite" : "", sum, a.name, b.name,
                       of_bits() ? ".and.popc" : "");
  }
};
const Types kTypes[] = {
    {kHalf, kHalf},
    {kBfloat, kBfloat},
    {kHalf, kHalf, "f16"},
    {kTensor, kTensor},
    {kE4m3, kE4m3},
    {kE4m3, kE5m2},
    {kE5m2, kE4m3},
    {kE5m2, kE5m2},
    {kE4m3, kE4m3, "f16"},
    {kE5m2, kE4m3, "f16"},
    {kSigned, kSigned, "s32"},
    {kSigned, kUnsigned, "s32"},
    {kUnsigned, kSigned, "s32"},
    {kUnsigned, kUnsigned, "s32"},
    {kSigned, kSigned, "s32", true},
    {kUnsigned, kUnsigned, "s32", true},
    {kBits, kBits, "s32"},
};

/// Rows of A or columns of B in shared memory, as a descriptor tells of them.
struct Layout {
  u32 start = 0, leading = 0, stride = 0;
  u32 pattern = 0;  ///< where the swizzle begins
  u32 span = 0;     ///< bytes of the swizzle, 0 for none
  bool exchanged = false;

  [[nodiscard]] u64 descriptor() const {
    const u64 mode = span == 128 ? 1 : span == 64 ? 2 : span == 32 ? 3 : 0;
    return u64{start >> 4} | u64{leading >> 4} << 16 | u64{stride >> 4} << 32 |
           u64{pattern >> 7 & 7} << 49 | mode << 62;
  }
  /// The address of the element in row (or column) `mn`, in units of `bytes`.
  [[nodiscard]] u32 address(u32 mn, u32 k, u32 bytes) const {
    u32 at = start;
    if (!exchanged && span == 0) {
      at += mn % 8 * 16 + mn / 8 * stride + k * bytes / 16 * leading + k * bytes % 16;
    } else if (!exchanged) {
      at += mn % 8 * span + mn / 8 * stride + k * bytes;
    } else if (span == 0) {
      at += mn % 8 * bytes + mn / 8 * stride + k % 8 * 16 + k / 8 * leading;
    } else {
      const u32 wide = span / bytes;
      at += mn % wide * bytes + mn / wide * leading + k % 8 * span + k / 8 * stride;
    }
    if (span == 0) return at;
    const u32 row = (at - pattern) / 128 % (span / 16);
    return at ^ row * 16;
  }
};

/// Some layout for so many rows from `from` on, which takes no more than 136 bytes a row.
Layout some_layout(Random& random, u32 rows, u32 span, bool exchanged, u32 from) {
  Layout layout;
  layout.span = span;
  layout.exchanged = exchanged;
  layout.start = from;
  const bool odd = random.next() % 2 == 0;
  if (span == 0) {
    // Blocks of 128 bytes, along one side first or along the other.
    layout.leading = odd ? 128 : 128 * (rows / 8);
    layout.stride = odd ? 256 : 128;
    return layout;
  }
  if (odd) {
    // The pattern begins anywhere.
    layout.start += 128 * static_cast<u32>(random.next() % 8);
    layout.pattern = layout.start;
  }
  if (!exchanged) {
    layout.leading = 16 * static_cast<u32>(random.next() % 8);  // means nothing
    layout.stride = 8 * span;
    layout.start += 32 * static_cast<u32>(random.next() % (span / 32));
    return layout;
  }
  const u32 groups = (rows * 2 + span - 1) / span;
  const bool k_first = random.next() % 2 == 0;
  layout.stride = k_first ? 8 * span : 8 * span * groups;
  layout.leading = k_first ? 16 * span : 8 * span;
  return layout;
}

/// A product: its operands and how they are multiplied.
struct Product {
  Types types;
  int columns = 8;
  bool a_in_registers = false;
  bool exchanged_a = false, exchanged_b = false;
  bool negated_a = false, negated_b = false;
  [[nodiscard]] int sums() const { return columns / 2 * types.sum_bits() / 32; }
};

std::string list(const char* name, int count) {
  std::string out = "{";
  for (int i = 0; i < count; ++i) out += fmt::format("{}%{}{}", i == 0 ? "" : ", ", name, i);
  return out + "}";
}

/// k(sums, fragments of A, an image of shared memory, descriptors, scale): each thread's words lie
/// side by side. `end`: what else is done.
std::string text(const Product& product, const std::string& end = "") {
  const int sums = product.sums();
  std::string load, store;
  for (int i = 0; i < sums; ++i) {
    load += fmt::format("ld.global.b32 %s{0}, [%D+{1}];\n", i, 4 * i);
    store += fmt::format("st.global.b32 [%D+{1}], %s{0};\n", i, 4 * i);
  }
  std::string last;
  if (product.types.a.is_float()) {
    last = fmt::format(", {}, {}", product.negated_a ? -1 : 1, product.negated_b ? -1 : 1);
    if (product.types.a.bits == 16) {
      if (!product.a_in_registers) last += product.exchanged_a ? ", 1" : ", 0";
      last += product.exchanged_b ? ", 1" : ", 0";
    }
  }
  return fmt::format(R"(.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 sums, .param .u64 parts, .param .u64 image, .param .u64 a,
                  .param .u64 b, .param .u32 scale)
{{
.reg .b32 %s<{0}>, %a<4>, %t, %i, %m, %x<4>; .reg .b64 %D, %P, %I, %A, %B, %w; .reg .pred %p, %q;
.shared .align 1024 .b8 tile[{1}];
ld.param.u64 %D, [sums]; ld.param.u64 %P, [parts]; ld.param.u64 %I, [image];
ld.param.u64 %A, [a]; ld.param.u64 %B, [b]; ld.param.u32 %i, [scale];
setp.ne.s32 %p, %i, 0;
mov.u32 %t, %tid.x; mul.wide.u32 %w, %t, {2}; add.s64 %D, %D, %w;
mul.wide.u32 %w, %t, 16; add.s64 %P, %P, %w; add.s64 %I, %I, %w;
ld.global.v4.b32 {{%a0, %a1, %a2, %a3}}, [%P];
mov.u32 %m, tile; mad.lo.u32 %m, %t, 16, %m; mov.u32 %i, 0;
copy:
ld.global.v4.b32 {{%x0, %x1, %x2, %x3}}, [%I]; st.shared.v4.b32 [%m], {{%x0, %x1, %x2, %x3}};
add.s64 %I, %I, 4096; add.s32 %m, %m, 4096; add.s32 %i, %i, 4096;
setp.lt.u32 %q, %i, {1}; @%q bra copy;
{3}
fence.proxy.async; bar.sync 0;
wgmma.fence.sync.aligned;
{4} {5}, {6}, %B, %p{7};
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
{8}{9}
ret;
}}
)",
                     sums, kSharedBytes, 4 * sums, load, product.types.name(product.columns),
                     list("s", sums), product.a_in_registers ? list("a", 4) : "%A", last, end,
                     store);
}

constexpr std::size_t kThreads = 256;  // two groups

/// The operands and the product of one launch.
class Trial {
 public:
  Trial(const Product& product, Random& random, u32 span_a, u32 span_b, bool kept)
      : product_(product), random_(random), kept_(kept) {
    const auto n = static_cast<u32>(product.columns);
    b_layout_ = some_layout(random, n, span_b, product.exchanged_b, 0);
    a_layout_ = some_layout(random, 64, span_a, product.exchanged_a, 34 * 1024);
    image_.resize(kSharedBytes);
    a_ = elements(product.types.a, 64);
    b_ = elements(product.types.b, n);
    for (const u64 code : a_) a_values_.push_back(product.types.a.value(code));
    for (const u64 code : b_) b_values_.push_back(product.types.b.value(code));
    place(b_, b_layout_, product.types.b);
    if (!product.a_in_registers) place(a_, a_layout_, product.types.a);
    for (std::size_t t = 0; t < kThreads; ++t) {
      for (int i = 0; i < product.sums(); ++i) sums_.push_back(start());
      for (u32 r = 0; r < 4; ++r) parts_.push_back(fragment(static_cast<u32>(t), r));
    }
  }

  void run(Bench& bench) {
    const u64 sums = bench.upload(sums_);
    const u32 scale = kept_ ? 1 : 0;
    bench.run({1}, {kThreads}, 0, sums, bench.upload(parts_), bench.upload(image_),
              a_layout_.descriptor(), b_layout_.descriptor(), scale);
    check(bench.download<u32>(sums, sums_.size()));
  }

 private:
  [[nodiscard]] u32 depth() const { return static_cast<u32>(product_.types.depth()); }

  /// Elements with a few exponents around 1, some subnormal or zero; one row each with an infinity,
  /// a NaN and zeros of both signs.
  std::vector<u64> elements(const Element& element, u32 rows) {
    std::vector<u64> values;
    const Format f = element.format;
    for (u32 i = 0; i < rows * depth(); ++i) {
      const u64 r = random_.next();
      if (!element.is_float()) {
        values.push_back(r >> 16 & (~u64{0} >> (64 - element.bits)));
        continue;
      }
      const u64 field = r % 16 == 0 ? 0 : (f.one() >> f.fraction_bits) - 2 + r % 4;
      const u64 sign = (r >> 7 & 1) << (f.bits() - 1);
      u64 code = (r >> 8 & ((u64{1} << f.fraction_bits) - 1)) | field << f.fraction_bits | sign;
      const bool has_infinity = f.exponent_bits != 4;
      if (has_infinity && i / depth() == 3 && i % depth() == 5) code = f.infinity() | sign;
      if (i / depth() == 4 && i % depth() == 2) code = f.sign() - 1;
      if (i / depth() == 6) code = sign;
      if (element.bits == 32) code &= ~u64{0x1fff};
      values.push_back(code);
    }
    return values;
  }

  /// A word of what is added to.
  u32 start() {
    const u64 r = random_.next();
    if (product_.types.saturate) return (r & 1) != 0 ? 0x7fffff00 + r % 256 : 0x80000000 + r % 256;
    if (!product_.types.a.is_float()) return static_cast<u32>(r >> 32);
    if (product_.types.sum_bits() == 32) {
      return static_cast<u32>((r >> 8 & 0x807fffff) | (126 + r % 3) << 23);
    }
    return static_cast<u32>((r >> 8 & 0x83ff83ff) | 0x3c003800);
  }

  void place(const std::vector<u64>& values, const Layout& layout, const Element& element) {
    const u32 bytes = static_cast<u32>(element.bits) / 8;
    for (u32 i = 0; i < values.size(); ++i) {
      const u32 at = layout.address(i / depth(), i % depth(), bytes);
      ASSERT_LE(at + bytes, kSharedBytes);
      std::memcpy(&image_[at], &values[i], bytes);
    }
  }

  /// Register r of A: rows lane / 4 and 8 more, by turns, then the other half of k; of which each
  /// lane holds what fits, in order.
  [[nodiscard]] u32 fragment(u32 thread, u32 r) const {
    const u32 bits = static_cast<u32>(product_.types.a.bits), each = 32 / bits;
    const u32 row = thread / 32 % 4 * 16 + thread % 32 / 4 + r % 2 * 8;
    const u32 k = r / 2 * depth() / 2 + thread % 4 * each;
    u32 word = 0;
    for (u32 e = 0; e < each; ++e) {
      word |= static_cast<u32>(a_[row * depth() + k + e]) << (e * bits % 32);
    }
    return word;
  }

  void check(const std::vector<u32>& got) const {
    const auto sums = static_cast<u32>(product_.sums());
    const u32 each = 32 / static_cast<u32>(product_.types.sum_bits());
    for (u32 thread = 0; thread < kThreads; ++thread) {
      for (u32 v = 0; v < sums * each; ++v) {
        // Values go over two columns, two rows, and then to the next eight columns.
        const u32 row = thread / 32 % 4 * 16 + thread % 32 / 4 + v / 2 % 2 * 8;
        const u32 column = v / 4 * 8 + thread % 4 * 2 + v % 2;
        const u32 word = thread * sums + v / each;
        const u32 shift = each == 1 ? 0 : 16 * (v % 2);
        check_one(row, column, sums_[word] >> shift, got[word] >> shift);
      }
    }
  }

  void check_one(u32 row, u32 column, u32 before, u32 after) const {
    const Types& types = product_.types;
    const Format format = types.sum_bits() == 16 ? kF16 : kF32;
    const bool is_float = types.a.is_float();
    const u64 mask = ~u64{0} >> (64 - types.sum_bits());
    double sum = 0;
    if (kept_) {
      sum = is_float ? to_double(format, before & mask)
                     : static_cast<double>(static_cast<i32>(before));
    }
    double sizes = std::fabs(sum);
    for (u32 k = 0; k < depth(); ++k) {
      double x = a_values_[row * depth() + k];
      double y = b_values_[column * depth() + k];
      if (product_.negated_a) x = -x;
      if (product_.negated_b) y = -y;
      if (types.of_bits()) {
        x = std::popcount(static_cast<u32>(a_[row * depth() + k] & b_[column * depth() + k]));
        y = 1;
      }
      sum += x * y;
      sizes += std::fabs(x * y);
    }
    if (!is_float) {
      auto whole = static_cast<i64>(sum);
      if (types.saturate) whole = std::clamp<i64>(whole, INT32_MIN, INT32_MAX);
      ASSERT_EQ(after, static_cast<u32>(whole)) << row << " " << column;
      return;
    }
    const double seen = to_double(format, after & mask);
    if (std::isnan(sum) || std::isinf(sum)) {
      ASSERT_TRUE(seen == sum || (std::isnan(seen) && std::isnan(sum)))
          << row << " " << column << ": " << seen << " instead of " << sum;
      return;
    }
    const double error = sizes * 1e-6 + (types.sum_bits() == 16 ? std::fabs(sum) * 0x1p-10 : 0);
    ASSERT_NEAR(seen, sum, error) << row << " " << column;
  }

  const Product& product_;
  Random& random_;
  bool kept_;
  Layout a_layout_, b_layout_;
  std::vector<u64> a_, b_;  ///< by row, or column, then k
  std::vector<double> a_values_, b_values_;
  std::vector<u8> image_;
  std::vector<u32> sums_, parts_;
};

void check_product(const Product& product, Random& random) {
  SCOPED_TRACE(fmt::format("{} registers {} exchanged {} {}", product.types.name(product.columns),
                           product.a_in_registers, product.exchanged_a, product.exchanged_b));
  Bench bench = Bench::from_ptx(text(product));
  for (const u32 span_a : {0U, 32U, 64U, 128U}) {
    const u32 spans[] = {0, 32, 64, 128};
    const u32 span_b = spans[(span_a / 32 + random.next()) % 4];
    SCOPED_TRACE(fmt::format("swizzles {} and {}", span_a, span_b));
    Trial(product, random, span_a, span_b, random.next() % 3 != 0).run(bench);
    if (testing::Test::HasFatalFailure()) return;
  }
}

class SemanticsWgmma : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(All, SemanticsWgmma, testing::Range<std::size_t>(0, std::size(kTypes)));

TEST_P(SemanticsWgmma, IsATripleLoop) {
  Random random(300 + GetParam());
  Product product{kTypes[GetParam()]};
  for (const int columns : {8, 24, 48, 256}) {
    product.columns = columns;
    product.a_in_registers = columns % 16 == 0 && columns != 256;
    const bool is_float = product.types.a.is_float();
    product.negated_a = is_float && random.next() % 2 == 0;
    product.negated_b = is_float && random.next() % 2 == 0;
    check_product(product, random);
    if (HasFatalFailure()) return;
  }
}

// Elements of 16 bits may lie together along either side.
TEST(SemanticsWgmma, EveryMajor) {
  Random random(77);
  for (int way = 0; way < 6; ++way) {
    Product product{kTypes[1]};
    product.columns = way % 2 == 0 ? 72 : 128;
    product.a_in_registers = way >= 4;
    product.exchanged_a = way < 4 && way / 2 % 2 == 1;
    product.exchanged_b = way % 2 == 1 || way == 2;
    check_product(product, random);
    if (HasFatalFailure()) return;
  }
}

/// Every number of columns that the manual has, and no other.
TEST(SemanticsWgmma, Shapes) {
  for (const Types& types : {kTypes[0], kTypes[10]}) {
    for (int columns = 0; columns <= 264; columns += 4) {
      const bool whole = types.a.is_float() || columns <= 32 || columns % 16 == 0;
      const bool there = columns >= 8 && columns <= 256 && columns % 8 == 0 && whole;
      if (there && columns % 40 != 0) continue;  // translation takes its time
      Product product{types, columns};
      const std::string ptx = text(product);
      if (there) {
        EXPECT_NO_THROW(Bench::from_ptx(ptx)) << columns;
      } else {
        EXPECT_THROW(Bench::from_ptx(ptx), Error) << columns;
      }
    }
  }
}

std::size_t line_of_product(const std::string& ptx) {
  const auto at = static_cast<std::ptrdiff_t>(ptx.find("wgmma.mma_async"));
  return 1 + static_cast<std::size_t>(std::count(ptx.begin(), ptx.begin() + at, '\n'));
}

/// Zeros for sums, fragments and image.
std::string error_of_run(const std::string& ptx, u64 a, u64 b, u32 threads = 128) {
  try {
    Bench bench = Bench::from_ptx(ptx);
    const u64 zeros = bench.upload(std::vector<u8>(kSharedBytes * 2));
    const u32 scale = 0;
    bench.run({1}, {threads}, 0, zeros, zeros, zeros, a, b, scale);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(SemanticsWgmma, DescriptorsThatAreNone) {
  const std::string ptx = text({kTypes[1], 16});
  const Layout good{.start = 0, .leading = 0, .stride = 1024, .span = 128};
  const auto line = [&](const std::string& what) {
    return fmt::format("{} (ptx:{})", what, line_of_product(ptx));
  };
  EXPECT_EQ(error_of_run(ptx, good.descriptor(), good.descriptor()), "");
  Layout bad = good;
  bad.start = kSharedBytes - 1024;
  EXPECT_THAT(error_of_run(ptx, good.descriptor(), bad.descriptor()),
              HasSubstr(line("the descriptor of B reaches 0xc010, and the block has 0xc000 bytes "
                             "of shared memory")));
  bad = good;
  bad.stride = 16384;
  EXPECT_THAT(error_of_run(ptx, bad.descriptor(), good.descriptor()),
              HasSubstr("the descriptor of A reaches 0xc0"));
  bad = good;
  bad.start = 112;
  EXPECT_THAT(error_of_run(ptx, bad.descriptor(), good.descriptor()),
              HasSubstr(line("is misaligned: 32 bytes of k from its start leave a row of the "
                             "swizzle")));
  EXPECT_THAT(error_of_run(ptx, good.descriptor(), good.descriptor() | u64{1} << 14),
              HasSubstr(line("has bits that no field has")));
  EXPECT_THAT(error_of_run(ptx, good.descriptor(), good.descriptor(), 96),
              HasSubstr(line("the block ends within this group of four warps")));
}

/// The error after `from` in the text of a correct product is replaced by `to`.
std::string error_of(const std::string& from, const std::string& to) {
  std::string ptx = text({kTypes[1], 8});
  ptx.replace(ptx.find(from), from.size(), to);
  return error_of_run(ptx, 0, 0);
}

TEST(SemanticsWgmma, SaysWhatIsWrong) {
  EXPECT_EQ(error_of("%p, 1", "!%p, 1"), "");
  EXPECT_THAT(error_of("%p, 1, 1", "%p, 2, 1"), HasSubstr("operand 5 must be -1 or 1"));
  EXPECT_THAT(error_of("%p, 1, 1, 0", "%p, 1, 1, 3"), HasSubstr("operand 7 must be 0 or 1"));
  EXPECT_THAT(error_of("%p, 1, 1, 0, 0", "%p, 1, 1, 0"),
              HasSubstr("expected 8 operands, with A in memory"));
  EXPECT_THAT(error_of("{%s0, %s1, %s2, %s3}", "{%s0, %s1, %s2}"),
              HasSubstr("expected 4 registers of D, found 3"));
  EXPECT_THAT(error_of("mma_async.sync", "mma_async.sp.sync"),
              HasSubstr("ptx:27: 'wgmma.mma_async.sp.sync.aligned.m64n8k16.f32.bf16.bf16' lacks a "
                        "modifier, or is an unsupported combination"));
  EXPECT_THAT(error_of("wgmma.fence.sync.aligned;", "@%p ret; setp.ne.s32 %q, %t, 5; @!%q ret;"),
              HasSubstr("a wgmma instruction in divergent code of a warp (ptx:27)"));
  EXPECT_THAT(error_of("wgmma.fence.sync.aligned;", "setp.lt.u32 %q, %t, 32; @%q ret;"),
              HasSubstr("deadlock"));
}

// Neither behind the product nor in another block before it.
TEST(SemanticsWgmma, ItsSumsMayBeReadByNobody) {
  std::string ptx = text({kTypes[1], 8});
  const std::size_t end = ptx.find(';', ptx.find("wgmma.wait_group")) + 1;
  ptx = ptx.substr(0, end) + " ret; }";
  ptx.insert(ptx.find("wgmma.fence"),
             "mov.b32 %s0, 0; mov.b32 %s1, 0; mov.b32 %s2, 0; mov.b32 %s3, 0;\n");
  EXPECT_EQ(error_of_run(ptx, 0, 0), "");
}

// A warp that has waited may tell others that the operands of all four warps are no longer needed.
TEST(SemanticsWgmma, TheWarpsOfAGroupWaitTogether) {
  const std::string ptx = text({kTypes[1], 8}, R"(
setp.ge.u32 %q, %t, 32; @%q bra on;
mov.u32 %m, tile; mad.lo.u32 %m, %t, 32, %m; mov.u32 %i, 0; st.shared.v4.b32 [%m], {%i, %i, %i, %i};
on:
)");
  Bench bench = Bench::from_ptx(ptx);
  const u64 sums = bench.upload(std::vector<u32>(4 * 128));
  // Ones, in bf16.
  const u64 image = bench.upload(std::vector<u32>(kSharedBytes / 2, 0x3f803f80));
  const Layout layout{.start = 0, .leading = 128, .stride = 256};
  const u32 scale = 0;
  bench.run({1}, {128}, 0, sums, image, image, layout.descriptor(), layout.descriptor(), scale);
  for (const u32 sum : bench.download<u32>(sums, 4 * 128)) EXPECT_EQ(sum, 0x41800000);
}

}  // namespace
}  // namespace braid::cpu_test
