// ldmatrix and stmatrix of elements of 8 bits and less, against the figures of the PTX manual.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "braid/checks.h"
#include "braid/error.h"
#include "cpu/cpu_harness.h"
#include "cpu/semantics.h"
#include "findings.h"

namespace braid::cpu_test {
namespace {

using namespace semantics;

/// A row of 16 bytes for each lane; lane l gives the address of row l ^ 5.
constexpr std::size_t kRows = 32;
using Memory = std::vector<u8>;
Memory random_memory(u64 seed) {
  Random random(seed);
  Memory memory(16 * kRows);
  for (u8& byte : memory) byte = static_cast<u8>(random.next() >> 40);
  return memory;
}
/// The row whose address lane `lane` gives.
const u8* row_of(const Memory& memory, int lane) {
  return &memory[static_cast<std::size_t>(16 * (lane ^ 5))];
}

/// Puts `memory` into shared memory, runs `text` with %r0 to %r3 of `in` (128 bytes a register),
/// and appends what is then in %r0 to %r3 and in shared memory.
std::vector<u8> run(const std::string& text, const Memory& memory, const std::vector<u8>& in) {
  Bench bench = Bench::from_ptx(fmt::format(R"(.version 9.0
.target sm_120a
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 memory, .param .u64 in)
{{
.reg .b32 %r<4>, %m<4>, %i, %own, %row;
.reg .b64 %O, %M, %I, %row64;
.shared .align 16 .b8 tile[512];
ld.param.u64 %O, [out];
ld.param.u64 %M, [memory];
ld.param.u64 %I, [in];
mov.u32 %i, %laneid;
mov.u32 %own, tile;
mad.lo.u32 %own, %i, 16, %own;
mad.wide.u32 %M, %i, 16, %M;
ld.global.v4.b32 {{%m0, %m1, %m2, %m3}}, [%M];
st.shared.v4.b32 [%own], {{%m0, %m1, %m2, %m3}};
mad.wide.u32 %I, %i, 4, %I;
ld.global.b32 %r0, [%I]; ld.global.b32 %r1, [%I+128];
ld.global.b32 %r2, [%I+256]; ld.global.b32 %r3, [%I+384];
bar.warp.sync -1;
mov.u32 %row, tile;
xor.b32 %m0, %i, 5;
mad.lo.u32 %row, %m0, 16, %row;
cvt.u64.u32 %row64, %row;
cvta.shared.u64 %row64, %row64;
{}
bar.warp.sync -1;
mad.wide.u32 %M, %i, 4, %O;
st.global.b32 [%M], %r0; st.global.b32 [%M+128], %r1;
st.global.b32 [%M+256], %r2; st.global.b32 [%M+384], %r3;
ld.shared.v4.b32 {{%m0, %m1, %m2, %m3}}, [%own];
mad.wide.u32 %M, %i, 16, %O;
st.global.v4.b32 [%M+512], {{%m0, %m1, %m2, %m3}};
ret;
}}
)",
                                            text),
                                {.threads = 1, .checks = kCheckBounds});
  const u64 out = bench.upload(std::vector<u8>(1024));
  bench.run({1}, {32}, 0, out, bench.upload(memory), bench.upload(in));
  EXPECT_TRUE(found_by(bench.device()).empty());
  return bench.download<u8>(out, 1024);
}

/// Element `column` of a row: a byte, or so many bits behind each other from its first byte on.
u8 element(const u8* row, int column, int bits) {
  unsigned value = 0;
  for (int k = 0; k < bits; ++k) {
    const int at = column * bits + k;
    value |= (row[at / 8] >> (at % 8) & 1U) << k;
  }
  return static_cast<u8>(value);
}

std::string registers(int count) {
  return std::string("%r0, %r1, %r2, %r3").substr(0, static_cast<std::size_t>(5 * count - 2));
}

/// Byte k of register r of a lane becomes what `byte` says; the registers behind stay.
void expect_loads(const std::string& text, int count, const Memory& memory,
                  const std::function<u8(int lane, int r, int k)>& byte) {
  const std::vector<u8> in(512, 0xa5);
  std::vector<u8> want = in;
  for (int r = 0; r < count; ++r) {
    for (int lane = 0; lane < 32; ++lane) {
      for (int k = 0; k < 4; ++k) {
        want[static_cast<std::size_t>(128 * r + 4 * lane + k)] = byte(lane, r, k);
      }
    }
  }
  want.insert(want.end(), memory.begin(), memory.end());
  EXPECT_EQ(run(text, memory, in), want) << text;
}

TEST(SemanticsByteMatrices, Loads) {
  const Memory memory = random_memory(70);
  const auto text = [](const std::string& form, int count, bool shared) {
    return fmt::format("ldmatrix.sync.aligned.{} {{{}}}, [{}];", form, registers(count),
                       shared ? "%row" : "%row64");
  };
  for (const int bits : {4, 6, 8}) {
    const std::string type = bits == 4 ? "b8x16.b4x16_p64" : bits == 6 ? "b8x16.b6x16_p32" : "b8";
    // 8 rows of 16: four neighbours for each thread.
    for (const int count : {1, 2, 4}) {
      if (bits == 8) continue;
      expect_loads(text(fmt::format("m8n16.x{}.shared.{}", count, type), count, true), count,
                   memory, [&](int lane, int r, int k) {
                     return element(row_of(memory, 8 * r + lane / 4), 4 * (lane % 4) + k, bits);
                   });
    }
    // 16 x 16, in columns: four neighbours of a column, and of the one 8 to its right.
    for (const int count : {2, 4}) {
      const bool shared = count == 4;
      expect_loads(
          text(fmt::format("m16n16.x{}.trans{}.{}", count / 2, shared ? ".shared::cta" : "", type),
               count, shared),
          count, memory, [&](int lane, int r, int k) {
            return element(row_of(memory, r / 2 * 16 + 4 * (lane % 4) + k), lane / 4 + r % 2 * 8,
                           bits);
          });
    }
  }
}

/// 16 x 8, as a product's sums lie: rows lane / 4 and 8 below, two columns. A column is what stands
/// in a row of memory.
TEST(SemanticsByteMatrices, Stores) {
  const Memory memory = random_memory(71);
  const std::vector<u8> in = random_memory(72);
  for (const int count : {1, 2, 4}) {
    std::vector<u8> want = in;
    Memory after = memory;
    for (int m = 0; m < count; ++m) {
      for (int lane = 0; lane < 32; ++lane) {
        for (int k = 0; k < 4; ++k) {
          const int row = lane / 4 + (k < 2 ? 0 : 8);
          const int column = 2 * (lane % 4) + k % 2;
          const auto at = static_cast<std::size_t>(row_of(memory, 8 * m + column) - memory.data());
          after[at + static_cast<std::size_t>(row)] =
              in[static_cast<std::size_t>(128 * m + 4 * lane + k)];
        }
      }
    }
    want.insert(want.end(), after.begin(), after.end());
    for (const bool shared : {false, true}) {
      const std::string text =
          fmt::format("stmatrix.sync.aligned.m16n8.x{}.trans{}.b8 [{}], {{{}}};", count,
                      shared ? ".shared" : "", shared ? "%row" : "%row64", registers(count));
      EXPECT_EQ(run(text, memory, in), want) << text;
    }
  }
}

TEST(SemanticsByteMatrices, WhatIsNotThereIsRefused) {
  const auto error_of = [](const std::string& instruction) -> std::string {
    return cpu_test::error_of([&] {
      Bench::from_ptx(
          ".version 9.0\n.target sm_120a\n.address_size 64\n.visible .entry k() {\n"
          ".reg .b32 %r<8>;\n" +
          instruction + "\nret; }\n");
    });
  };
  constexpr const char* kUnknown = "lacks a modifier, or is an unsupported combination";
  for (const std::string form :
       {"ldmatrix.sync.aligned.m16n16.x1.shared.b8 {%r0, %r1}, [%r4];",
        "ldmatrix.sync.aligned.m16n16.x4.trans.shared.b8 {%r0, %r1, %r2, %r3}, [%r4];",
        "ldmatrix.sync.aligned.m8n16.x1.shared.b8 {%r0}, [%r4];",
        "ldmatrix.sync.aligned.m8n16.x1.trans.shared.b8x16.b4x16_p64 {%r0}, [%r4];",
        "ldmatrix.sync.aligned.m8n16.x1.shared.b4x16_p64.b8x16 {%r0}, [%r4];",
        "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16 {%r0}, [%r4];",
        "ldmatrix.sync.aligned.m8n8.x1.shared.b8 {%r0}, [%r4];",
        "stmatrix.sync.aligned.m16n8.x1.shared.b8 [%r4], {%r0};",
        "stmatrix.sync.aligned.m8n8.x1.trans.shared.b8 [%r4], {%r0};"}) {
    EXPECT_THAT(error_of(form), testing::HasSubstr(kUnknown)) << form;
  }
  EXPECT_THAT(error_of("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r0}, [%r4];"),
              testing::HasSubstr("the vector has the wrong number of elements"));
}

}  // namespace
}  // namespace braid::cpu_test
