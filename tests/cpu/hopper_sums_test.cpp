// MatrixSums::kHopper against what an H100 gave, to the bit.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "cpu/cpu_harness.h"
#include "cpu/semantics.h"
#include "runtime/object_cache.h"
#include "source_directory.h"

namespace braid::cpu_test {
namespace {

using namespace semantics;

constexpr std::size_t kRows = 4, kColumns = 8;
constexpr CpuOptions kHopper{.threads = 1, .matrix_sums = MatrixSums::kHopper};

/// Rows of A and columns of B, 32 bytes of k each; C, and D as measured.
struct Case {
  u32 a[kRows][8], b[kColumns][8], c[kRows][kColumns], d[kRows][kColumns];
};

/// By family, "mma_f16" say.
std::map<std::string, std::vector<Case>> measured() {
  std::ifstream file(testing::source_directory() + "/tests/cpu/hopper_sums.txt");
  std::map<std::string, std::vector<Case>> cases;
  std::string name;
  while (file >> name) {
    if (name == "#") {
      std::getline(file, name);
      continue;
    }
    Case& next = cases[name].emplace_back();
    std::string word;
    for (u32* at = &next.a[0][0]; at != &next.d[0][0] + kRows * kColumns; ++at) {
      file >> word;
      *at = static_cast<u32>(std::stoul(word, nullptr, 16));
    }
  }
  return cases;
}

struct Family {
  const char* name;
  const char* instruction;
  [[nodiscard]] bool of_group() const { return std::string(name).starts_with("wg_"); }
  [[nodiscard]] u32 warps() const { return of_group() ? 4 : 1; }
};
const Family kFamilies[] = {
    {"mma_f16", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"},
    {"mma_bf16", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"},
    {"mma_tf32", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"},
    {"mma_e4m3", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"},
    {"mma_e5m2", "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32"},
    {"wg_f16", "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"},
    {"wg_bf16", "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16"},
    {"wg_tf32", "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32"},
    {"wg_e4m3", "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3"},
};

/// k(A, B, C, D): each block has one product; a thread's words lie side by side.
std::string text(const Family& family) {
  std::string product = fmt::format(
      "{} {{%c0, %c1, %c2, %c3}}, {{%a0, %a1, %a2, %a3}}, {{%b0, %b1}}, {{%c0, %c1, %c2, %c3}};",
      family.instruction);
  if (family.of_group()) {
    const bool halves = std::string(family.name).ends_with("f16");
    product = fmt::format(R"(
shl.b32 %t, %t, 3; mov.u32 %x, tile; add.u32 %x, %x, %t; st.shared.v2.b32 [%x], {{%b0, %b1}};
fence.proxy.async; bar.sync 0;
mov.u32 %x, tile; shr.u32 %x, %x, 4; or.b32 %x, %x, 0x80000; cvt.u64.u32 %w, %x;
wgmma.fence.sync.aligned;
{} {{%c0, %c1, %c2, %c3}}, {{%a0, %a1, %a2, %a3}}, %w, 1, 1, 1{};
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;)",
                          family.instruction, halves ? ", 0" : "");
  }
  return fmt::format(R"(.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d)
{{
.reg .b32 %a<4>, %b<2>, %c<4>, %t, %i, %x; .reg .b64 %A, %B, %C, %D, %w;
.shared .align 128 .b8 tile[1024];
ld.param.u64 %A, [a]; ld.param.u64 %B, [b]; ld.param.u64 %C, [c]; ld.param.u64 %D, [d];
mov.u32 %t, %tid.x; mov.u32 %i, %ctaid.x; mov.u32 %x, %ntid.x; mad.lo.u32 %i, %i, %x, %t;
mul.wide.u32 %w, %i, 16; add.s64 %A, %A, %w; add.s64 %C, %C, %w; add.s64 %D, %D, %w;
mul.wide.u32 %w, %i, 8; add.s64 %B, %B, %w;
ld.global.v4.b32 {{%a0, %a1, %a2, %a3}}, [%A];
ld.global.v2.b32 {{%b0, %b1}}, [%B];
ld.global.v4.b32 {{%c0, %c1, %c2, %c3}}, [%C];
{}
st.global.v4.b32 [%D], {{%c0, %c1, %c2, %c3}};
ret;
}}
)",
                     product);
}

/// Where the rows of a case go: one to each warp of a group.
std::size_t place_of(const Family& family, std::size_t row) {
  return family.of_group() ? 16 * row + 5 * row : 5 * row;
}

/// D of each case.
std::vector<Case> run(const Family& family, std::vector<Case> cases, const CpuOptions& options) {
  const u32 threads = 32 * family.warps();
  std::vector<u32> a, b, c;
  for (const Case& each : cases) {
    for (u32 thread = 0; thread < threads; ++thread) {
      const u32 lane = thread % 32;
      const auto row_of = [&](u32 half) -> std::size_t {
        const std::size_t row = thread / 32 * 16 + lane / 4 + 8 * half;
        for (std::size_t r = 0; r < kRows; ++r) {
          if (place_of(family, r) == row) return r;
        }
        return kRows;
      };
      for (u32 r = 0; r < 4; ++r) {
        const std::size_t row = row_of(r % 2);
        a.push_back(row == kRows ? 0 : each.a[row][r / 2 * 4 + lane % 4]);
      }
      for (u32 r = 0; r < 2; ++r) {
        // In memory: eight columns of 16 bytes, then the others.
        const u32 word = 2 * thread + r;
        b.push_back(!family.of_group() ? each.b[lane / 4][4 * r + lane % 4]
                    : word >= 64       ? 0
                                       : each.b[word % 32 / 4][word / 32 * 4 + word % 4]);
      }
      for (u32 r = 0; r < 4; ++r) {
        const std::size_t row = row_of(r / 2);
        c.push_back(row == kRows ? 0 : each.c[row][2 * (lane % 4) + r % 2]);
      }
    }
  }
  Bench bench = Bench::from_ptx(text(family), options);
  const u64 d = bench.upload(c);
  bench.run({static_cast<u32>(cases.size())}, {threads}, 0, bench.upload(a), bench.upload(b),
            bench.upload(c), d);
  const std::vector<u32> got = bench.download<u32>(d, c.size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    for (std::size_t r = 0; r < kRows; ++r) {
      const std::size_t row = place_of(family, r);
      for (std::size_t column = 0; column < kColumns; ++column) {
        const std::size_t thread = i * threads + row / 16 * 32 + row % 8 * 4 + column / 2;
        cases[i].d[r][column] = got[4 * thread + row % 16 / 8 * 2 + column % 2];
      }
    }
  }
  return cases;
}

class Objects final : public ObjectCache {
 public:
  [[nodiscard]] std::string get_or_make(std::string_view key,
                                        const std::function<std::string()>& make) const override {
    std::string& object = objects_[std::string(key)];
    if (!object.empty()) return object;
    ++made;
    return object = make();
  }
  mutable int made = 0;

 private:
  mutable std::map<std::string, std::string> objects_;
};

/// In how many outputs they differ.
int differences(const std::vector<Case>& a, const std::vector<Case>& b) {
  int count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t r = 0; r < kRows; ++r) {
      for (std::size_t n = 0; n < kColumns; ++n) count += a[i].d[r][n] != b[i].d[r][n] ? 1 : 0;
    }
  }
  return count;
}

class HopperSums : public ::testing::TestWithParam<std::size_t> {
 protected:
  const Family& family_ = kFamilies[GetParam()];
  std::vector<Case> cases_ = measured()[family_.name];
};
INSTANTIATE_TEST_SUITE_P(All, HopperSums, ::testing::Range<std::size_t>(0, std::size(kFamilies)),
                         [](const auto& at) { return std::string(kFamilies[at.param].name); });

TEST_P(HopperSums, AreThoseOfAnH100) {
  ASSERT_FALSE(cases_.empty());
  EXPECT_EQ(differences(run(family_, cases_, kHopper), cases_), 0);
}

TEST_P(HopperSums, AreOthersThanRoundedOnes) {
  EXPECT_GT(differences(run(family_, cases_, {.threads = 1}), cases_), 4);
}

TEST_P(HopperSums, HaveObjectsOfTheirOwnInTheCache) {
  const Objects objects;
  CpuOptions options = kHopper;
  options.cache = &objects;
  const std::vector<Case> first = run(family_, cases_, options);
  options.matrix_sums = MatrixSums::kRounded;
  EXPECT_GT(differences(run(family_, cases_, options), first), 4);
  EXPECT_EQ(objects.made, 2);
}

// Beside infinities and NaN there is nothing to cut: they are as with rounding.
TEST_P(HopperSums, OfWhatIsNotFinite) {
  const bool bytes = std::string(family_.name).ends_with("e4m3");
  Case edge = cases_.front();
  for (auto& row : edge.a) std::fill(row, row + 8, 0);
  for (auto& row : edge.c) std::fill(row, row + kColumns, 0);
  for (auto& column : edge.b) std::fill(column, column + 8, 0);
  const auto is = [&](const char* type) { return std::string(family_.name).ends_with(type); };
  edge.a[0][0] = bytes        ? 0x7f
                 : is("e5m2") ? 0x7c
                 : is("bf16") ? 0x7f80
                 : is("tf32") ? 0x7f800000
                              : 0x7c00;
  edge.b[0][0] = is("tf32") ? 0x3f800000 : 0x38;  // positive, maybe subnormal
  edge.c[1][1] = 0xff800000;
  edge.c[2][2] = 0x7fc00000;
  const std::vector<Case> got = run(family_, {edge}, kHopper);
  EXPECT_EQ(differences(got, run(family_, {edge}, {.threads = 1})), 0);
  EXPECT_EQ(got[0].d[0][0], bytes ? 0x7fffffffU : 0x7f800000U);
  EXPECT_EQ(got[0].d[0][1], 0x7fffffffU);  // infinity times zero
  EXPECT_EQ(got[0].d[1][1], 0xff800000U);
  EXPECT_EQ(got[0].d[2][2], 0x7fffffffU);
}

}  // namespace
}  // namespace braid::cpu_test
