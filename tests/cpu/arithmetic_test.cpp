#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "cpu/cpu_harness.h"
#include "cpu/semantics.h"

namespace braid::cpu_test {
namespace {

using u32 = std::uint32_t;
using i32 = std::int32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;

std::vector<u32> words(std::size_t count, std::uint64_t seed) {
  const std::vector<u32> edges = {0,          1,          2,          31,         32,
                                  33,         0x7fffffff, 0x80000000, 0xffffffff, 0xfffffffe,
                                  0x3f800000, 0x7f800000, 0xff800000, 0x7fc00000, 0x00000100,
                                  0x80000001, 0x00800000, 0x007fffff, 0x4b000000, 0x477fe000};
  Random random(seed);
  std::vector<u32> out;
  for (std::size_t i = 0; i < count; ++i) {
    const u64 r = random.next();
    out.push_back((r & 3) == 0 ? edges[(r >> 8) % edges.size()] : static_cast<u32>(r >> 32));
  }
  return out;
}

/// Runs out = f(a, b, c) for inline PTX with operands %0 = %1, %2, %3 (32-bit) over many values.
void check_ptx(const std::string& ptx, const std::function<u32(u32, u32, u32)>& expected,
               bool as_float = false, float tolerance = 0) {
  Bench bench(R"(extern "C" __global__ void k(unsigned* o, const unsigned* a, const unsigned* b,
      const unsigned* c) { int i = blockIdx.x * blockDim.x + threadIdx.x; unsigned r;
      asm(")" +
              ptx + R"(" : "=r"(r) : "r"(a[i]), "r"(b[i]), "r"(c[i])); o[i] = r; })");
  const std::size_t n = 2048;
  const auto a = words(n, 1);
  const auto b = words(n, 2);
  const auto c = words(n, 3);
  const u64 out = bench.upload(std::vector<u32>(n));
  bench.run({8}, {256}, 0, out, bench.upload(a), bench.upload(b), bench.upload(c));
  const auto got = bench.download<u32>(out, n);
  for (std::size_t i = 0; i < n; ++i) {
    const u32 want = expected(a[i], b[i], c[i]);
    if (as_float) {
      const auto x = std::bit_cast<float>(got[i]);
      const auto y = std::bit_cast<float>(want);
      if (std::isnan(y) && std::isnan(x)) continue;
      if (std::fabs(x - y) <= tolerance * std::fabs(y)) continue;
    }
    ASSERT_EQ(got[i], want) << ptx << " of " << std::hex << a[i] << " " << b[i] << " " << c[i];
  }
}

float f(u32 bits) { return std::bit_cast<float>(bits); }
u32 w(float value) { return std::bit_cast<u32>(value); }

struct PtxCase {
  const char* name;
  const char* ptx;
  std::function<u32(u32, u32, u32)> expected;
  bool as_float = false;
  float tolerance = 0;
};
void PrintTo(const PtxCase& c, std::ostream* out) { *out << c.ptx; }

class Arithmetic : public testing::TestWithParam<PtxCase> {};

TEST_P(Arithmetic, MatchesTheHost) {
  check_ptx(GetParam().ptx, GetParam().expected, GetParam().as_float, GetParam().tolerance);
}

u32 shift_left(u32 a, u32 b) { return b > 31 ? 0 : a << b; }
u32 shift_right(u32 a, u32 b) { return b > 31 ? 0 : a >> b; }
i32 shift_arithmetic(i32 a, u32 b) { return a >> std::min(b, 31U); }

u32 permute(u32 a, u32 b, u32 c) {
  const u64 all = (u64{b} << 32) | a;
  u32 out = 0;
  for (int k = 0; k < 4; ++k) {
    const u32 pick = (c >> (4 * k)) & 15;
    u32 byte = static_cast<u32>(all >> (8 * (pick & 7))) & 0xff;
    if (pick & 8) byte = (byte & 0x80) ? 0xff : 0;
    out |= byte << (8 * k);
  }
  return out;
}

u32 extract(u32 a, u32 b, u32 c, bool is_signed) {
  const u32 pos = b & 0xff;
  const u32 len = c & 0xff;
  u32 sign = 0;
  if (is_signed && len != 0) sign = (a >> std::min(pos + len - 1, 31U)) & 1;
  u32 d = 0;
  for (u32 i = 0; i < 32; ++i) {
    const u32 bit = i < len && pos + i <= 31 ? (a >> (pos + i)) & 1 : sign;
    d |= bit << i;
  }
  return d;
}

u32 insert(u32 a, u32 b, u32 c) {
  const u32 pos = c & 0xff;
  const u32 len = 7;
  u32 out = b;
  for (u32 i = 0; i < len && pos + i <= 31; ++i) {
    out = (out & ~(1U << (pos + i))) | (((a >> i) & 1) << (pos + i));
  }
  return out;
}

float min_f32(float a, float b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

u32 to_bf16(float x) {
  if (std::isnan(x)) return 0x7fff;
  const u32 b = w(x);
  return (b + 0x7fff + ((b >> 16) & 1)) >> 16;
}

u32 saturate_u32(float x) {
  if (!(x > 0)) return 0;
  return x >= 4294967296.0F ? ~0U : static_cast<u32>(x);
}
i32 saturate_s32(float x) {
  if (std::isnan(x)) return 0;
  if (x >= 2147483648.0F) return std::numeric_limits<i32>::max();
  if (x < -2147483648.0F) return std::numeric_limits<i32>::min();
  return static_cast<i32>(x);
}

const PtxCase kCases[] = {
    {"add", "add.s32 %0, %1, %2;", [](u32 a, u32 b, u32) { return a + b; }},
    {"sub_sat", "sub.sat.s32 %0, %1, %2;",
     [](u32 a, u32 b, u32) {
       const i64 d = i64{i32(a)} - i32(b);
       return u32(i32(std::clamp<i64>(d, INT32_MIN, INT32_MAX)));
     }},
    {"mulhi_s", "mul.hi.s32 %0, %1, %2;",
     [](u32 a, u32 b, u32) { return u32((i64{i32(a)} * i32(b)) >> 32); }},
    {"mulhi_u", "mul.hi.u32 %0, %1, %2;",
     [](u32 a, u32 b, u32) { return u32((u64{a} * b) >> 32); }},
    {"mad", "mad.lo.s32 %0, %1, %2, %3;", [](u32 a, u32 b, u32 c) { return a * b + c; }},
    {"div_s", "{.reg .b32 t; or.b32 t, %2, 1; div.s32 %0, %1, t;}",
     [](u32 a, u32 b, u32) { return u32(i64{i32(a)} / i32(b | 1)); }},
    {"rem_u", "{.reg .b32 t; or.b32 t, %2, 1; rem.u32 %0, %1, t;}",
     [](u32 a, u32 b, u32) { return a % (b | 1); }},
    {"min_s", "min.s32 %0, %1, %2;",
     [](u32 a, u32 b, u32) { return u32(std::min(i32(a), i32(b))); }},
    {"max_u", "max.u32 %0, %1, %2;", [](u32 a, u32 b, u32) { return std::max(a, b); }},
    {"abs", "abs.s32 %0, %1;", [](u32 a, u32, u32) { return i32(a) < 0 ? 0 - a : a; }},
    {"neg", "neg.s32 %0, %1;", [](u32 a, u32, u32) { return 0 - a; }},
    {"lop3", "lop3.b32 %0, %1, %2, %3, 0x96;", [](u32 a, u32 b, u32 c) { return a ^ b ^ c; }},
    {"lop3_b", "lop3.b32 %0, %1, %2, %3, 0xEA;", [](u32 a, u32 b, u32 c) { return (a & b) | c; }},
    {"shl", "shl.b32 %0, %1, %2;", [](u32 a, u32 b, u32) { return shift_left(a, b); }},
    {"shr_u", "shr.u32 %0, %1, %2;", [](u32 a, u32 b, u32) { return shift_right(a, b); }},
    {"shr_s", "shr.s32 %0, %1, %2;",
     [](u32 a, u32 b, u32) { return u32(shift_arithmetic(i32(a), b)); }},
    {"shf_l", "shf.l.wrap.b32 %0, %1, %2, %3;",
     [](u32 a, u32 b, u32 c) { return u32((((u64{b} << 32) | a) << (c & 31)) >> 32); }},
    {"shf_r", "shf.r.clamp.b32 %0, %1, %2, %3;",
     [](u32 a, u32 b, u32 c) { return u32(((u64{b} << 32) | a) >> std::min(c, 32U)); }},
    {"prmt", "prmt.b32 %0, %1, %2, %3;", permute},
    {"bfe_u", "bfe.u32 %0, %1, %2, %3;",
     [](u32 a, u32 b, u32 c) { return extract(a, b, c, false); }},
    {"bfe_s", "bfe.s32 %0, %1, %2, %3;",
     [](u32 a, u32 b, u32 c) { return extract(a, b, c, true); }},
    {"bfi", "bfi.b32 %0, %1, %2, %3, 7;", insert},
    {"clz", "clz.b32 %0, %1;", [](u32 a, u32, u32) { return u32(std::countl_zero(a)); }},
    {"popc", "popc.b32 %0, %1;", [](u32 a, u32, u32) { return u32(std::popcount(a)); }},
    {"bfind", "bfind.u32 %0, %1;",
     [](u32 a, u32, u32) { return a == 0 ? ~0U : 31 - u32(std::countl_zero(a)); }},
    {"bfind_s", "bfind.s32 %0, %1;",
     [](u32 a, u32, u32) {
       const u32 x = i32(a) < 0 ? ~a : a;
       return x == 0 ? ~0U : 31 - u32(std::countl_zero(x));
     }},
    {"brev", "brev.b32 %0, %1;",
     [](u32 a, u32, u32) {
       u32 r = 0;
       for (int i = 0; i < 32; ++i) r |= ((a >> i) & 1) << (31 - i);
       return r;
     }},
    {"sad", "sad.s32 %0, %1, %2, %3;",
     [](u32 a, u32 b, u32 c) { return c + (i32(a) < i32(b) ? b - a : a - b); }},
    {"setp_and",
     "{.reg .pred p, q; setp.gt.u32 q, %3, 7; setp.lt.and.s32 p, %1, %2, q; selp.u32 %0, 3, 5, p;}",
     [](u32 a, u32 b, u32 c) { return i32(a) < i32(b) && c > 7 ? 3U : 5U; }},
    {"setp_pair", "{.reg .pred p, q; setp.hi.u32 p|q, %1, %2; selp.u32 %0, 1, 0, q;}",
     [](u32 a, u32 b, u32) { return a > b ? 0U : 1U; }},
    {"set", "set.geu.u32.f32 %0, %1, %2;",
     [](u32 a, u32 b, u32) { return !(f(a) < f(b)) ? ~0U : 0U; }},
    {"slct", "slct.b32.s32 %0, %1, %2, %3;",
     [](u32 a, u32 b, u32 c) { return i32(c) >= 0 ? a : b; }},
    {"add_f", "add.f32 %0, %1, %2;", [](u32 a, u32 b, u32) { return w(f(a) + f(b)); }, true},
    {"mul_rz", "mul.rz.f32 %0, %1, %2;",
     [](u32 a, u32 b, u32) {
       const double exact = double(f(a)) * double(f(b));
       float r = float(exact);
       if (std::isfinite(exact) && std::fabs(double(r)) > std::fabs(exact))
         r = std::nextafter(r, 0.0F);
       return w(r);
     },
     true},
    {"mul_ftz", "mul.ftz.f32 %0, %1, %2;",
     [](u32 a, u32 b, u32) {
       const auto z = [](float x) { return std::fabs(x) < 0x1p-126F ? std::copysign(0.0F, x) : x; };
       return w(z(z(f(a)) * z(f(b))));
     },
     true},
    {"fma", "fma.rn.f32 %0, %1, %2, %3;",
     [](u32 a, u32 b, u32 c) { return w(std::fma(f(a), f(b), f(c))); }, true},
    {"div", "div.rn.f32 %0, %1, %2;", [](u32 a, u32 b, u32) { return w(f(a) / f(b)); }, true},
    {"sqrt", "sqrt.rn.f32 %0, %1;", [](u32 a, u32, u32) { return w(std::sqrt(f(a))); }, true},
    {"rcp", "rcp.approx.f32 %0, %1;", [](u32 a, u32, u32) { return w(1.0F / f(a)); }, true},
    {"rsqrt", "rsqrt.approx.f32 %0, %1;", [](u32 a, u32, u32) { return w(1.0F / std::sqrt(f(a))); },
     true, 1e-6F},
    {"ex2", "ex2.approx.f32 %0, %1;", [](u32 a, u32, u32) { return w(std::exp2(f(a))); }, true,
     3e-7F},
    {"lg2", "lg2.approx.f32 %0, %1;", [](u32 a, u32, u32) { return w(std::log2(f(a))); }, true,
     1e-6F},
    {"tanh", "tanh.approx.f32 %0, %1;", [](u32 a, u32, u32) { return w(std::tanh(f(a))); }, true,
     1e-6F},
    {"min_f", "min.f32 %0, %1, %2;", [](u32 a, u32 b, u32) { return w(min_f32(f(a), f(b))); },
     true},
    {"max_of_nans",
     "{.reg .b32 x, y; or.b32 x, %1, 0x7f800001; or.b32 y, %2, 0x7f800001; max.f32 %0, x, y;}",
     [](u32, u32, u32) { return 0x7fffffffU; }},
    {"max_of_more_nans",
     "{.reg .b32 x, y; or.b32 x, %1, 0x7f800001; or.b32 y, %2, 0x7f800001; max.f32 %0, x, y;"
     "max.f32 y, %0, x; xor.b32 %0, %0, y;}",
     [](u32, u32, u32) { return 0U; }},
    {"min_beside_nans",
     "{.reg .b32 x, y; or.b32 x, %1, 0x7f800001; or.b32 y, %2, 0x7f800001; min.f32 %0, x, y;"
     "and.b32 y, %3, 0xbfffffff; min.f32 %0, %0, y;}",
     [](u32, u32, u32 c) { return c & 0xbfffffffU; }},
    {"copysign", "copysign.f32 %0, %1, %2;",
     [](u32 a, u32 b, u32) { return w(std::copysign(f(b), f(a))); }},
    {"cvt_s32", "cvt.rzi.s32.f32 %0, %1;", [](u32 a, u32, u32) { return u32(saturate_s32(f(a))); }},
    {"cvt_u32", "cvt.rni.u32.f32 %0, %1;",
     [](u32 a, u32, u32) { return saturate_u32(std::nearbyint(f(a))); }},
    {"cvt_rmi", "cvt.rmi.f32.f32 %0, %1;", [](u32 a, u32, u32) { return w(std::floor(f(a))); },
     true},
    {"cvt_f32_s32", "cvt.rn.f32.s32 %0, %1;", [](u32 a, u32, u32) { return w(float(i32(a))); }},
    {"cvt_sat_u8", "cvt.sat.u8.s32 %0, %1;",
     [](u32 a, u32, u32) { return u32(std::clamp(i32(a), 0, 255)); }},
    {"cvt_bf16x2", "cvt.rn.bf16x2.f32 %0, %1, %2;",
     [](u32 a, u32 b, u32) { return to_bf16(f(a)) << 16 | to_bf16(f(b)); }},
    {"cvt_bf16", "{.reg .b16 h; cvt.rn.bf16.f32 h, %1; cvt.u32.u16 %0, h;}",
     [](u32 a, u32, u32) { return to_bf16(f(a)); }},
    {"fma_bf16x2", "fma.rn.bf16x2 %0, %1, %2, %3;",
     [](u32 a, u32 b, u32 c) {
       using namespace semantics;
       u32 out = 0;
       for (int h = 0; h < 2; ++h) {
         const auto v = [&](u32 x) { return decode(kBf16, x >> (16 * h) & 0xffff); };
         const Number sum = add(multiply(v(a), v(b)), v(c), Mode::kNearest);
         out |= static_cast<u32>(encode(kBf16, sum, Mode::kNearest)) << (16 * h);
       }
       return out;
     }},
    {"cvt_f16", "{.reg .b16 h; cvt.rn.f16.f32 h, %1; cvt.f32.f16 %0, h;}",
     [](u32 a, u32, u32) {
       using namespace semantics;
       return w(static_cast<float>(to_double(kF16, encode(kF16, decode(kF32, a), Mode::kNearest))));
     },
     true},
    {"add_f16x2", "add.f16x2 %0, %1, %2;",
     [](u32 a, u32 b, u32) {
       using namespace semantics;
       u32 out = 0;
       for (int h = 0; h < 2; ++h) {
         const auto v = [&](u32 x) { return decode(kF16, x >> (16 * h)); };
         const Number sum = add(v(a), v(b), Mode::kNearest);
         out |= static_cast<u32>(encode(kF16, sum, Mode::kNearest)) << (16 * h);
       }
       return out;
     }},
};

INSTANTIATE_TEST_SUITE_P(Ptx, Arithmetic, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Arithmetic64, IntegersAndDoubles) {
  Bench bench(
      R"(extern "C" __global__ void k(long long* o, double* d, const long long* a, const long long* b) {
    int i = blockIdx.x * blockDim.x + threadIdx.x; long long x = a[i], y = b[i] | 1; unsigned long long ux = x, uy = y;
    long long* p = o + i * 10;
    p[0] = x * y; p[1] = x / y; p[2] = ux % uy; p[3] = __mul64hi(x, y); p[4] = ux >> (y & 63); p[5] = x >> (y & 63);
    p[6] = __popcll(x) * 100 + __clzll(x); p[7] = x < y ? x : y; p[8] = (int)x; p[9] = (short)x + (unsigned char)y;
    double u = (double)x, v = (double)uy; d[i * 4] = u * v + 1.0; d[i * 4 + 1] = u / v; d[i * 4 + 2] = fma(u, v, u); d[i * 4 + 3] = (double)(float)sqrt(fabs(u)); })");
  const std::size_t n = 512;
  Random random(5);
  std::vector<i64> a(n);
  std::vector<i64> b(n);
  for (auto& x : a) x = static_cast<i64>(random.next() >> (random.next() % 60));
  for (auto& x : b) x = static_cast<i64>(random.next() >> (random.next() % 60));
  const u64 o = bench.upload(std::vector<i64>(n * 10));
  const u64 d = bench.upload(std::vector<double>(n * 4));
  bench.run({4}, {128}, 0, o, d, bench.upload(a), bench.upload(b));
  const auto got = bench.download<i64>(o, n * 10);
  const auto floats = bench.download<double>(d, n * 4);
  for (std::size_t i = 0; i < n; ++i) {
    const i64 x = a[i];
    const i64 y = b[i] | 1;
    const i64 want[] = {static_cast<i64>(u64(x) * u64(y)),
                        x / y,
                        static_cast<i64>(u64(x) % u64(y)),
                        static_cast<i64>((static_cast<__int128>(x) * y) >> 64),
                        static_cast<i64>(u64(x) >> (y & 63)),
                        x >> (y & 63),
                        std::popcount(u64(x)) * 100 + std::countl_zero(u64(x)),
                        std::min(x, y),
                        static_cast<int>(x),
                        static_cast<short>(x) + static_cast<unsigned char>(y)};
    for (std::size_t k = 0; k < 10; ++k)
      ASSERT_EQ(got[i * 10 + k], want[k]) << k << " " << x << " " << y;
    const auto u = static_cast<double>(x);
    const auto v = static_cast<double>(u64(y));
    ASSERT_EQ(floats[i * 4], u * v + 1.0);
    ASSERT_EQ(floats[i * 4 + 1], u / v);
    ASSERT_EQ(floats[i * 4 + 2], std::fma(u, v, u));
    ASSERT_EQ(floats[i * 4 + 3], static_cast<double>(static_cast<float>(std::sqrt(std::fabs(u)))));
  }
}

/// Blocks of thousands of vectors have another register allocator.
TEST(Arithmetic, LongBlocks) {
  constexpr u32 kRegisters = 48, kSteps = 5000, kFactor = 2654435761;
  std::string text = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in) {
.reg .b32 %r<48>, %i;
.reg .b64 %o, %a;
ld.param.u64 %o, [out]; ld.param.u64 %a, [in];
mov.u32 %i, %tid.x; mad.wide.u32 %o, %i, 192, %o; mad.wide.u32 %a, %i, 192, %a;
)";
  for (u32 r = 0; r < kRegisters; ++r) {
    text += fmt::format("ld.global.u32 %r{}, [%a+{}];\n", r, 4 * r);
  }
  for (u32 step = 0; step < kSteps; ++step) {
    text += fmt::format("mad.lo.u32 %r{0}, %r{0}, {1}, %r{2};\n", step % kRegisters, kFactor,
                        (7 * step + 1) % kRegisters);
  }
  for (u32 r = 0; r < kRegisters; ++r) {
    text += fmt::format("st.global.u32 [%o+{}], %r{};\n", 4 * r, r);
  }
  Bench bench = Bench::from_ptx(text + "ret; }");
  std::vector<u32> values = words(static_cast<std::size_t>(kRegisters) * 64, 4);
  const u64 in = bench.upload(values);
  const u64 out = bench.upload(std::vector<u32>(values.size()));
  bench.run({1}, {64}, 0, out, in);
  const auto got = bench.download<u32>(out, values.size());
  for (std::size_t thread = 0; thread < 64; ++thread) {
    u32* const r = &values[thread * kRegisters];
    for (u32 step = 0; step < kSteps; ++step) {
      r[step % kRegisters] = r[step % kRegisters] * kFactor + r[(7 * step + 1) % kRegisters];
    }
  }
  EXPECT_EQ(got, values);
}

TEST(Arithmetic, LibraryFunctions) {
  Bench bench(
      R"(extern "C" __global__ void k(float* o, const float* a) { int i = threadIdx.x; float x = a[i];
    o[i * 4] = expf(x); o[i * 4 + 1] = logf(fabsf(x) + 1e-3f); o[i * 4 + 2] = sinf(x * 100.f); o[i * 4 + 3] = powf(fabsf(x), 1.7f); })");
  std::vector<float> a(256);
  for (int i = 0; i < 256; ++i) a[i] = static_cast<float>(i - 128) * 0.173F;
  const u64 o = bench.upload(std::vector<float>(1024));
  bench.run({1}, {256}, 0, o, bench.upload(a));
  const auto got = bench.download<float>(o, 1024);
  for (int i = 0; i < 256; ++i) {
    EXPECT_NEAR(got[i * 4] / std::exp(a[i]), 1, 1e-6);
    EXPECT_NEAR(got[i * 4 + 1], std::log(std::fabs(a[i]) + 1e-3F), 1e-5);
    EXPECT_NEAR(got[i * 4 + 2], std::sin(a[i] * 100.F), 1e-5);
    EXPECT_NEAR(got[i * 4 + 3] / (std::pow(std::fabs(a[i]), 1.7F) + 1e-30F), a[i] == 0 ? 0 : 1,
                1e-5);
  }
}

}  // namespace
}  // namespace braid::cpu_test
