// wgmma with a sparse A against the statements of the PTX manual.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "braid/checks.h"
#include "braid/error.h"
#include "cpu/cpu_harness.h"
#include "cpu/semantics.h"
#include "findings.h"

namespace braid::cpu_test {
namespace {

using namespace semantics;

/// The codes of -2 to 2.
struct Kind {
  std::string name;
  int bits;
  std::array<u32, 5> codes;
  int lowest = -2;
};
const Kind kHalf{"f16", 16, {0xc000, 0xbc00, 0, 0x3c00, 0x4000}};
const Kind kBfloat{"bf16", 16, {0xc000, 0xbf80, 0, 0x3f80, 0x4000}};
const Kind kTensor{"tf32", 32, {0xc0000000, 0xbf800000, 0, 0x3f800000, 0x40000000}};
const Kind kE4m3{"e4m3", 8, {0xc0, 0xb8, 0, 0x38, 0x40}};
const Kind kE5m2{"e5m2", 8, {0xc0, 0xbc, 0, 0x3c, 0x40}};
const Kind kSigned{"s8", 8, {0xfe, 0xff, 0, 1, 2}};
const Kind kUnsigned{"u8", 8, {0, 0, 0, 1, 2}, 0};

struct Case {
  Kind a, b;
  std::string sum;
  int columns = 16, selector = 0;
  bool a_in_registers = false, swizzled = false, exchanged_b = false, negated = false, kept = true;
};

constexpr u32 kShared = 32768, kStartOfB = 8192;

class Words {
 public:
  explicit Words(std::size_t bytes) : bytes_(bytes) {}
  void put(u32 at, int bits, u32 code) {
    std::memcpy(&bytes_[at], &code, static_cast<std::size_t>(bits) / 8);
  }
  [[nodiscard]] const std::vector<u8>& bytes() const { return bytes_; }

 private:
  std::vector<u8> bytes_;
};

/// Operands in memory: what is in shared memory, then registers, 512 bytes for one of all threads:
/// the metadata, A, and the sums.
void check(const Case& c, u64 seed) {
  Random random(seed);
  const int bits = c.a.bits;
  const int bytes = bits / 8;
  const int k = 64 / bytes;
  const int per = 32 / bits;
  const int sums = c.columns / 8 * (c.sum == "f16" ? 2 : 4);
  const auto pick = [&](const Kind& of) {
    return of.lowest + static_cast<int>(random.next() % static_cast<u64>(3 - of.lowest));
  };
  const auto code = [](const Kind& of, int value) {
    return of.codes[static_cast<std::size_t>(value + 2)];
  };
  Words in(kShared + 512 * static_cast<std::size_t>(5 + sums));
  const auto register_at = [&](int r, int thread) {
    return kShared + static_cast<u32>(512 * r + 4 * thread);
  };
  // B: blocks of 8 columns by 16 bytes of k, or rows of 128 bytes; or 8 of k by 8 columns.
  std::vector<std::vector<int>> b(static_cast<std::size_t>(k));
  for (int row = 0; row < k; ++row) {
    for (int n = 0; n < c.columns; ++n) {
      const int value = pick(c.b);
      b[static_cast<std::size_t>(row)].push_back(value);
      u32 at = kStartOfB;
      if (c.exchanged_b) {
        at += static_cast<u32>(n % 8 * bytes + n / 8 * 512 + row % 8 * 16 + row / 8 * 128);
      } else if (c.swizzled) {
        at += static_cast<u32>(n % 8 * 128 + n / 8 * 1024 + row * bytes + 64);
        at ^= at / 128 % 8 * 16;
      } else {
        at +=
            static_cast<u32>(n % 8 * 16 + n / 8 * 512 + row * bytes / 16 * 128 + row * bytes % 16);
      }
      in.put(at, bits, code(c.b, value));
    }
  }
  const u64 b_start = kStartOfB + (c.swizzled && !c.exchanged_b ? 64 : 0);
  const u64 b_descriptor = b_start >> 4 | u64{128 >> 4} << 16 |
                           u64{(c.swizzled && !c.exchanged_b ? 1024U : 512U) >> 4} << 32 |
                           u64{c.swizzled && !c.exchanged_b ? 1U : 0U} << 62;
  const u64 a_descriptor = u64{128 >> 4} << 16 | u64{256 >> 4} << 32;
  std::vector<std::vector<double>> want(64);
  std::vector<u32> metadata(128);
  for (u32& word : metadata) word = static_cast<u32>(random.next());
  for (int row = 0; row < 64; ++row) {
    auto& sum = want[static_cast<std::size_t>(row)];
    for (int n = 0; n < c.columns; ++n) sum.push_back(static_cast<double>(random.next() % 33) - 16);
    const int warp = row / 16;
    const int of_warp = row % 16;
    // The sums before, where they are behind.
    for (int n = 0; n < c.columns; ++n) {
      const double value = sum[static_cast<std::size_t>(n)];
      const int thread = 32 * warp + of_warp % 8 * 4 + n % 8 / 2;
      if (c.sum == "f16") {
        Number number = integer(static_cast<i128>(std::abs(value)));
        number.negative = value < 0;
        in.put(register_at(5 + n / 8 * 2 + of_warp / 8, thread) + static_cast<u32>(n % 2 * 2), 16,
               static_cast<u32>(encode(kF16, number, Mode::kNearest)));
      } else {
        in.put(register_at(5 + n / 8 * 4 + of_warp / 8 * 2 + n % 2, thread), 32,
               c.sum == "s32" ? static_cast<u32>(static_cast<i32>(value))
                              : std::bit_cast<u32>(static_cast<float>(value)));
      }
      if (!c.kept) sum[static_cast<std::size_t>(n)] = 0;
    }
    const auto add = [&](int step, int at) {
      const int value = pick(c.a);
      for (int n = 0; n < c.columns; ++n) {
        const int product = value * b[static_cast<std::size_t>(at)][static_cast<std::size_t>(n)];
        sum[static_cast<std::size_t>(n)] += c.negated ? -product : product;
      }
      if (c.a_in_registers) {
        // Four bytes of k a lane, rows 8 below, then 16 bytes on.
        const int in_row = step * bytes;
        const int r = of_warp / 8 + in_row / 16 * 2;
        in.put(register_at(1 + r, 32 * warp + of_warp % 8 * 4 + in_row % 16 / 4) +
                   static_cast<u32>(step % per * bytes),
               bits, code(c.a, value));
      } else {
        in.put(static_cast<u32>(row % 8 * 16 + row / 8 * 256 + step * bytes / 16 * 128 +
                                step * bytes % 16),
               bits, code(c.a, value));
      }
    };
    const int wide = bits == 32 ? 2 : 4;
    for (int chunk = 0; chunk < k / wide; ++chunk) {
      constexpr int kPairs[][2] = {{0, 1}, {0, 2}, {1, 2}, {0, 3}, {1, 3}, {2, 3}};
      const auto& pair = kPairs[random.next() % 6];
      u32 four = static_cast<u32>(pair[0] | pair[1] << 2);
      if (wide == 2) {
        const bool second = random.next() % 2 == 1;
        four = second ? 0b1110 : 0b0100;
        add(chunk, 2 * chunk + (second ? 1 : 0));
      } else {
        add(2 * chunk, 4 * chunk + pair[0]);
        add(2 * chunk + 1, 4 * chunk + pair[1]);
      }
      const int lane = bits == 8 ? of_warp % 8 * 4 + of_warp / 8 + chunk / 8 * 2
                                 : of_warp % 8 * 4 + 2 * c.selector + chunk / 4;
      const int shift = bits == 8 ? chunk % 8 * 4 : of_warp / 8 * 16 + chunk % 4 * 4;
      u32& word = metadata[static_cast<std::size_t>(32 * warp + lane)];
      word = (word & ~(15U << shift)) | four << shift;
    }
  }
  for (int thread = 0; thread < 128; ++thread) {
    in.put(register_at(0, thread), 32, metadata[static_cast<std::size_t>(thread)]);
  }
  std::string body;
  std::string list;
  std::string stores;
  for (int r = 0; r < sums; ++r) {
    body += fmt::format("ld.global.b32 %d{}, [%I+{}];\n", r,
                        kShared + 512U * (5U + static_cast<u32>(r)));
    list += fmt::format("{}%d{}", r == 0 ? "" : ", ", r);
    stores += fmt::format("st.global.b32 [%O+{}], %d{};\n", 512 * r, r);
  }
  const bool halves = bits == 16;
  const std::string behind = c.sum == "s32" ? ""
                                            : fmt::format(", {}, 1{}{}", c.negated ? -1 : 1,
                                                          halves && !c.a_in_registers ? ", 0" : "",
                                                          !halves         ? ""
                                                          : c.exchanged_b ? ", 1"
                                                                          : ", 0");
  const std::string product = fmt::format(
      "wgmma.mma_async.sp.sync.aligned.m64n{}k{}.{}.{}.{} {{{}}}, {}, %B, %meta, {}, {}%p{};",
      c.columns, k, c.sum, c.a.name, c.b.name, list,
      c.a_in_registers ? "{%a0, %a1, %a2, %a3}" : "%A", c.selector, c.kept ? "" : "!", behind);
  Bench bench = Bench::from_ptx(fmt::format(R"(.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in)
{{
.shared .align 1024 .b8 tile[{}];
.reg .b32 %d<64>, %a<4>, %t, %n, %w, %at, %meta;
.reg .b64 %O, %I, %A, %B, %P;
.reg .pred %p, %q;
ld.param.u64 %O, [out];
ld.param.u64 %I, [in];
mov.u32 %t, %tid.x;
mad.wide.u32 %I, %t, 4, %I;
mad.wide.u32 %O, %t, 4, %O;
mov.u32 %n, 0;
mov.u32 %at, tile;
mad.lo.u32 %at, %t, 4, %at;
mov.u64 %P, %I;
L:
ld.global.b32 %w, [%P];
st.shared.b32 [%at], %w;
add.u64 %P, %P, 512;
add.u32 %at, %at, 512;
add.u32 %n, %n, 512;
setp.lt.u32 %q, %n, {};
@%q bra L;
fence.proxy.async;
bar.sync 0;
ld.global.b32 %meta, [%I+{}];
ld.global.b32 %a0, [%I+{}]; ld.global.b32 %a1, [%I+{}];
ld.global.b32 %a2, [%I+{}]; ld.global.b32 %a3, [%I+{}];
{}setp.eq.u32 %p, %t, %t;
mov.u64 %A, {};
mov.u64 %B, {};
wgmma.fence.sync.aligned;
{}
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
{}ret;
}}
)",
                                            kShared, kShared, kShared, kShared + 512,
                                            kShared + 1024, kShared + 1536, kShared + 2048, body,
                                            a_descriptor, b_descriptor, product, stores));
  const u64 out = bench.upload(std::vector<u8>(static_cast<std::size_t>(512 * sums)));
  bench.run({1}, {128}, 0, out, bench.upload(in.bytes()));
  const auto got = bench.download<u8>(out, static_cast<std::size_t>(512 * sums));
  const auto word_at = [&](int r, int thread) {
    u32 word = 0;
    std::memcpy(&word, &got[static_cast<std::size_t>(512 * r + 4 * thread)], 4);
    return word;
  };
  for (int row = 0; row < 64; ++row) {
    for (int n = 0; n < c.columns; ++n) {
      const int thread = row / 16 * 32 + row % 8 * 4 + n % 8 / 2;
      const int below = row % 16 / 8;
      const double value =
          c.sum == "f16"
              ? to_double(kF16, word_at(n / 8 * 2 + below, thread) >> (n % 2 * 16) & 0xffff)
          : c.sum == "s32" ? static_cast<double>(
                                 static_cast<i32>(word_at(n / 8 * 4 + 2 * below + n % 2, thread)))
                           : static_cast<double>(std::bit_cast<float>(
                                 word_at(n / 8 * 4 + 2 * below + n % 2, thread)));
      ASSERT_EQ(value, want[static_cast<std::size_t>(row)][static_cast<std::size_t>(n)])
          << product << " row " << row << " column " << n;
    }
  }
}

TEST(SemanticsSparseWgmma, MultipliesWhatThereIs) {
  u64 seed = 1100;
  for (const bool a_in_registers : {false, true}) {
    for (const bool swizzled : {false, true}) {
      for (const int selector : {0, 1}) {
        check({kHalf, kHalf, "f32", 16, selector, a_in_registers, swizzled}, seed++);
        check({kTensor, kTensor, "f32", 24, selector, a_in_registers, swizzled}, seed++);
      }
      check({kHalf, kHalf, "f16", 8, 1, a_in_registers, swizzled, false, true}, seed++);
      check({kBfloat, kBfloat, "f32", 32, 1, a_in_registers, swizzled, true}, seed++);
      check({kE4m3, kE5m2, "f32", 16, 0, a_in_registers, swizzled, false, true, false}, seed++);
      check({kE5m2, kE4m3, "f16", 40, 0, a_in_registers, swizzled}, seed++);
      check({kSigned, kUnsigned, "s32", 32, 0, a_in_registers, swizzled}, seed++);
      check({kUnsigned, kSigned, "s32", 16, 0, a_in_registers, swizzled, false, false, false},
            seed++);
    }
  }
}

TEST(SemanticsSparseWgmma, SaysWhatIsWrong) {
  const auto error_of = [](const std::string& modifiers,
                           const std::string& operands) -> std::string {
    return cpu_test::error_of([&] {
      Bench::from_ptx(
          fmt::format(".version 8.7\n.target sm_90a\n.address_size 64\n.visible .entry "
                      "k() {{\n.reg .b32 %r<8>; .reg .b16 %h; .reg .b64 %A, %B; .reg "
                      ".pred %p;\nwgmma.mma_async.sp.sync.aligned.{} {{%r0, %r1, %r2, "
                      "%r3}}, {};\nret; }}\n",
                      modifiers, operands));
    });
  };
  using testing::HasSubstr;
  const std::string half = "m64n8k32.f32.f16.f16";
  EXPECT_EQ(error_of(half, "%A, %B, %r4, 1, %p, 1, 1, 0, 0"), "");
  EXPECT_EQ(error_of(half, "%A, %B, {%r4}, 1, %p, 1, 1, 0, 0"), "");
  EXPECT_THAT(error_of(half, "%A, %B, %r4, 2, %p, 1, 1, 0, 0"),
              HasSubstr("operand 5: found 2, expected 0 or 1"));
  EXPECT_THAT(error_of("m64n8k64.f32.e4m3.e4m3", "%A, %B, %r4, 1, %p, 1, 1"),
              HasSubstr("operand 5: found 1, expected 0"));
  EXPECT_THAT(error_of(half, "%A, %B, %h, 0, %p, 1, 1, 0, 0"),
              HasSubstr("operand 4 must be a register of 32 bits"));
  EXPECT_THAT(error_of(half, "%A, %B, %r4, 0, %p, 2, 1, 0, 0"),
              HasSubstr("operand 7 must be -1 or 1"));
  EXPECT_THAT(error_of(half, "%A, %B, %r4, 0, %p, 1, 1, 0"),
              HasSubstr("expected 10 operands, with A in memory"));
  EXPECT_THAT(error_of("m64n8k16.f32.f16.f16", "%A, %B, %r4, 0, %p, 1, 1, 0, 0"),
              HasSubstr("lacks a modifier, or is an unsupported combination"));
}

/// The metadata is read until the group is waited for, as A in registers is.
TEST(SemanticsSparseWgmma, KeepsItsMetadata) {
  const auto findings_of = [](const std::string& before, const std::string& behind) {
    Bench bench =
        Bench::from_ptx(fmt::format(R"(.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
{{
.shared .align 1024 .b8 tile[16384];
.reg .f32 %d<4>; .reg .b32 %a<4>, %meta; .reg .b64 %B, %O; .reg .pred %p;
ld.param.u64 %O, [out];
mov.u32 %a0, %tid.x;
mad.wide.u32 %O, %a0, 16, %O;
or.b32 %meta, %a0, 0x44444400;
mov.u32 %a0, %meta; mov.u32 %a1, %meta; mov.u32 %a2, %meta; mov.u32 %a3, %meta;
ld.global.v4.f32 {{%d0, %d1, %d2, %d3}}, [%O];
setp.eq.u32 %p, %a0, %a0;
mov.u64 %B, {};
wgmma.fence.sync.aligned;
wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {{%d0, %d1, %d2, %d3}}, {{%a0, %a1, %a2, %a3}}, %B, %meta, 0, %p, 1, 1, 0;
wgmma.commit_group.sync.aligned;
{}
wgmma.wait_group.sync.aligned 0;
{}
st.global.v4.f32 [%O], {{%d0, %d1, %d2, %d3}};
st.global.b32 [%O], %meta;
ret;
}}
)",
                                    u64{128 >> 4} << 16 | u64{512 >> 4} << 32, before, behind),
                        {.threads = 1, .checks = kCheckRace});
    bench.run({1}, {128}, 0, bench.upload(std::vector<u32>(512)));
    return found_by(bench.device());
  };
  const std::string write = "mov.u32 %meta, 7;";
  EXPECT_TRUE(findings_of("", write).empty());
  const std::vector<Finding> findings = findings_of(write, "");
  ASSERT_FALSE(findings.empty());
  EXPECT_THAT(findings[0].message,
              testing::HasSubstr("write of a register of A of a wgmma that is not waited for"));
}

}  // namespace
}  // namespace braid::cpu_test
