// multimem instructions on virtual multicast memory: what the PTX manual says of them, and what the
// checks and the counter see.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <numeric>

#include "braid/checks.h"
#include "braid/error.h"
#include "cpu/cpu_harness.h"
#include "findings.h"

namespace braid::cpu_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::size_t kBytes = 512;

/// One thread of rank 0 does `body` with %rd1 = a multicast address and %rd2 = an output of 16
/// bytes.
std::string text(const std::string& body) {
  return R"(.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p, .param .u64 out)
{
  .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>;
  ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [out];
  )" + body +
         "\n  ret;\n}\n";
}

/// A range for three ranks, with memory of each that holds `words` of 32 bits, the rank's own.
class Ranks {
 public:
  using Words = std::array<std::uint32_t, 4>;
  Ranks(const std::string& body, const std::array<Words, 3>& words, CpuOptions options = {})
      : bench_(Bench::from_ptx(text(body), with_world(options))) {
    const std::vector<int> ranks{0, 1, 2};
    range_ = bench_.device().create_multicast(ranks, kBytes);
    for (int rank = 0; rank < 3; ++rank) {
      memory_.push_back(bench_.device().allocate(rank, kBytes));
      memory_.back()->bind_multicast(*range_, 0);
      bench_.stream().copy_from_host(memory_.back()->address(),
                                     words[static_cast<std::size_t>(rank)].data(), sizeof(Words));
    }
    out_ = bench_.device().allocate(0, sizeof(Words));
    bench_.stream().fill(out_->address(), 0, sizeof(Words));
    bench_.stream().synchronize();
  }
  void launch(std::size_t offset = 0) {
    const std::uint64_t address = range_->address() + offset;
    const std::uint64_t out = out_->address();
    const void* args[] = {&address, &out};
    bench_.stream().launch(bench_.function(), {{1}, {1}}, args);
  }
  void run(std::size_t offset = 0) {
    launch(offset);
    bench_.stream().synchronize();
  }
  Words out() { return read(out_->address()); }
  Words of(int rank) { return read(memory_[static_cast<std::size_t>(rank)]->address()); }
  Device& device() { return bench_.device(); }
  std::unique_ptr<Memory>& memory(std::size_t rank) { return memory_[rank]; }
  Multicast& range() { return *range_; }
  Stream& stream() { return bench_.stream(); }

 private:
  static CpuOptions with_world(CpuOptions options) {
    options.world = 3;
    options.threads = 1;
    return options;
  }
  static Words read(std::uint64_t address) {
    Words words;
    std::memcpy(words.data(), reinterpret_cast<const void*>(address), sizeof words);
    return words;
  }
  Bench bench_;
  std::unique_ptr<Multicast> range_;
  std::vector<std::unique_ptr<Memory>> memory_;
  std::unique_ptr<Memory> out_;
};

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
/// Two bf16, the first one below.
std::uint32_t pair(std::uint32_t low, std::uint32_t high) { return high << 16 | low; }

TEST(Multimem, AddsFloatsOfAllRanksInTheirOrder) {
  const float big = 0x1p24F;
  Ranks ranks(
      "multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {%f0, %f1, %f2, %f3}, [%rd1];"
      "st.global.v4.f32 [%rd2], {%f0, %f1, %f2, %f3};",
      {{{bits(1), bits(big), bits(-0.0F), bits(3)},
        {bits(2), bits(1), bits(-0.0F), bits(4)},
        {bits(4), bits(-big), bits(-0.0F), bits(5)}}});
  ranks.run();
  // 2^24 + 1 is no float.
  EXPECT_THAT(ranks.out(), ElementsAre(bits(7), bits(0), bits(-0.0F), bits(12)));
}

// 256 + 1 is no bf16: in f32 both ones count.
TEST(Multimem, RoundsHalvesOnceWhereItAddsInF32) {
  constexpr std::uint32_t k256 = 0x4380, k1 = 0x3f80, k258 = 0x4381, k2 = 0x4000, k3 = 0x4040;
  const std::array<Ranks::Words, 3> words = {{{pair(k256, k1)}, {pair(k1, k1)}, {pair(k1, k1)}}};
  for (const bool wide : {true, false}) {
    Ranks ranks(fmt::format("multimem.ld_reduce.relaxed.sys.global.add{}.bf16x2 %r0, [%rd1];"
                            "st.global.u32 [%rd2], %r0;",
                            wide ? ".acc::f32" : ""),
                words);
    ranks.run();
    EXPECT_EQ(ranks.out()[0], pair(wide ? k258 : k256, k3)) << wide;
  }
  Ranks largest(
      "multimem.ld_reduce.global.max.v2.bf16 {%h0, %h1}, [%rd1]; mov.b32 %r0, {%h0, %h1};"
      "st.global.u32 [%rd2], %r0;",
      {{{pair(k1, 0xbf80)}, {pair(k2, 0x7fc0)}, {pair(k1, k3)}}});
  largest.run();
  EXPECT_EQ(largest.out()[0], pair(k2, k3));  // a number is greater than a NaN
}

TEST(Multimem, KnowsTheFormsOfThePtxManual) {
  const std::array<Ranks::Words, 3> words = {{{12, 0}, {10, 1}, {0xfffffffe, 0}}};
  const auto reduced = [&](const char* form) {
    Ranks ranks(fmt::format("multimem.ld_reduce.{} %r0, [%rd1]; st.global.u32 [%rd2], %r0;", form),
                words);
    ranks.run();
    return ranks.out()[0];
  };
  EXPECT_EQ(reduced("add.u32"), 20U);
  EXPECT_EQ(reduced("weak.global.min.s32"), 0xfffffffeU);
  EXPECT_EQ(reduced("acquire.gpu.global.min.u32"), 10U);
  EXPECT_EQ(reduced("and.b32"), 8U);
  EXPECT_EQ(reduced("or.b32"), 0xfffffffeU);
  EXPECT_EQ(reduced("relaxed.cta.xor.b32"), 0xfffffff8U);
  for (const char* form : {"min.f32 %f0", "add.acc::f32.f32 %f0", "add.f16 %h0", "add.b32 %r0",
                           "and.u32 %r0", "max.acc::f32.bf16x2 %r0", "add.v2.u32 {%r0, %r1}",
                           "add.v8.f32 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}"}) {
    try {
      Ranks ranks(fmt::format("multimem.ld_reduce.{}, [%rd1];", form), words);
      ADD_FAILURE() << form;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("unsupported combination")) << form;
    }
  }
}

TEST(Multimem, StoresAndReducesEverywhere) {
  const std::array<Ranks::Words, 3> words = {{{1, 1}, {2, 2}, {3, 3}}};
  Ranks stored(
      "mov.b32 %r0, 7; mov.b32 %r1, 8;"
      "multimem.st.relaxed.sys.global.v2.bf16x2 [%rd1+4], {%r0, %r1};",
      words);
  stored.run(4);
  Ranks reduced("mov.b32 %r0, 7; multimem.red.release.sys.global.add.u32 [%rd1], %r0;", words);
  reduced.run();
  for (int rank = 0; rank < 3; ++rank) {
    const auto own = static_cast<std::uint32_t>(rank) + 1;
    EXPECT_THAT(stored.of(rank), ElementsAre(own, own, 7, 8));
    EXPECT_THAT(reduced.of(rank), ElementsAre(own + 7, own, 0, 0));
  }
}

/// Bulk copies to the memory of all ranks, whole, of the bytes of a mask, and reduced.
TEST(Multimem, CopiesInBulk) {
  const std::array<Ranks::Words, 3> words = {{{1, 10, 0x100, 7}, {2, 20, 0, 8}, {3, 0, 0, 9}}};
  const auto copy = [](const char* how) {
    return fmt::format(
        "{{ .shared .align 16 .b8 sm[16]; mov.b32 %r0, 5; mov.b32 %r1, -1; mov.b16 %h0, 0xff0f;"
        "st.shared.v4.b32 [sm], {{%r0, %r1, %r0, %r0}}; fence.proxy.async.shared::cta;"
        "multimem.cp.{}; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; }}",
        how);
  };
  for (const unsigned checks : {0U, static_cast<unsigned>(kCheckAll)}) {
    const auto run = [&](const char* how) {
      auto ranks = std::make_unique<Ranks>(copy(how), words, CpuOptions{.checks = checks});
      ranks->run();
      EXPECT_TRUE(found_by(ranks->device()).empty());
      return ranks;
    };
    const auto whole = run("async.bulk.global.shared::cta.bulk_group [%rd1], [sm], 16");
    const auto part = run("async.bulk.global.shared::cta.bulk_group.cp_mask [%rd1], [sm], 16, %h0");
    const auto sum =
        run("reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [sm], 16");
    const auto most =
        run("reduce.async.bulk.global.shared::cta.bulk_group.max.s32 [%rd1], [sm], 16");
    for (int rank = 0; rank < 3; ++rank) {
      const Ranks::Words& old = words[static_cast<std::size_t>(rank)];
      EXPECT_THAT(whole->of(rank), ElementsAre(5, ~0U, 5, 5));
      EXPECT_THAT(part->of(rank), ElementsAre(5, old[1], 5, 5));
      EXPECT_THAT(sum->of(rank), ElementsAre(old[0] + 5, old[1] - 1, old[2] + 5, old[3] + 5));
      EXPECT_THAT(most->of(rank), ElementsAre(5, old[1], std::max(old[2], 5U), old[3]));
    }
  }
}

constexpr const char* kLoadReduce =
    "multimem.ld_reduce.relaxed.sys.global.add.v2.f32 {%f0, %f1}, [%rd1];";

TEST(Multimem, IsAnErrorWhereMemoryIsMissing) {
  for (const unsigned checks : {0U, static_cast<unsigned>(kCheckAll)}) {
    const auto after = [&](const char* body, auto&& change, std::size_t offset = 0) {
      Ranks ranks(body, {}, {.checks = checks});
      change(ranks);
      const std::string error = error_of([&] { ranks.run(offset); });
      EXPECT_EQ(found_by(ranks.device()).size(), checks == 0 ? 0U : 1U) << error;
      return error;
    };
    const auto nothing = [](Ranks&) {};
    EXPECT_THAT(after(kLoadReduce, [](Ranks& ranks) { ranks.memory(1).reset(); }),
                HasSubstr("where rank 1 has bound no memory"));
    EXPECT_THAT(after(kLoadReduce, nothing, 4), HasSubstr("which is no multiple"));
    EXPECT_THAT(after(kLoadReduce, nothing, kBytes), HasSubstr("which is no multicast address"));
    for (const std::size_t offset : {kBytes, kBytes - 16}) {
      EXPECT_THAT(after("{ .shared .align 16 .b8 sm[32]; multimem.cp.async.bulk.global.shared::cta."
                        "bulk_group [%rd1], [sm], 32; }",
                        nothing, offset),
                  HasSubstr(offset == kBytes ? "which is no multicast address"
                                             : "where rank 0 has bound no memory"));
    }
    EXPECT_THAT(after("multimem.st.f32 [%rd2], 0f00000000;", nothing),
                HasSubstr("which is no multicast address"));
    for (const char* body : {"ld.global.f32 %f0, [%rd1]; st.global.f32 [%rd2], %f0;",
                             "st.global.f32 [%rd1], 0f00000000;"}) {
      EXPECT_THAT(after(body, nothing),
                  HasSubstr("a multicast address, which takes multimem instructions alone"));
    }
  }
}

TEST(Multimem, RefusesWhatCannotBeBound) {
  Ranks ranks(kLoadReduce, {});
  Device& device = ranks.device();
  const auto memory = device.allocate(1, 256);
  EXPECT_THAT(error_of([&] { memory->bind_multicast(ranks.range(), 256); }),
              HasSubstr("other memory of the rank is bound there"));
  EXPECT_THAT(error_of([&] { memory->bind_multicast(ranks.range(), 384); }),
              HasSubstr("expected them within its 512"));
  const std::vector<int> first{0};
  const auto range = device.create_multicast(first, 256);
  EXPECT_THAT(error_of([&] { memory->bind_multicast(*range, 0); }), HasSubstr("memory of rank 1"));
  const auto other = create_cpu_device({.world = 2});
  EXPECT_THAT(error_of([&] { other->allocate(1, 8)->bind_multicast(*range, 0); }),
              HasSubstr("another device"));
  const std::vector<int> twice{1, 1};
  EXPECT_THAT(error_of([&] { (void)device.create_multicast(twice, 256); }), HasSubstr("twice"));
  const std::vector<int> beyond{3};
  EXPECT_THAT(error_of([&] { (void)device.create_multicast(beyond, 256); }),
              HasSubstr("rank 3 of 3"));
  EXPECT_THAT(error_of([&] { (void)device.create_multicast(first, 0); }),
              HasSubstr("expected some"));
}

// The memory behind an address is judged on every rank.
TEST(Multimem, IsCheckedOnEveryRank) {
  Ranks ranks(std::string(kLoadReduce) + "st.global.v2.f32 [%rd2], {%f0, %f1};", {},
              {.checks = kCheckAll});
  ranks.run();
  EXPECT_TRUE(found_by(ranks.device()).empty());
  ranks.run(16);  // what nobody wrote
  std::vector<Finding> findings = found_by(ranks.device());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].kind, "uninitialized");

  const MemoryPart part{ranks.memory(2)->address(), 4, "four bytes"};
  ranks.device().inspector()->name_parts(part.address, {&part, 1});
  ranks.run();
  findings = found_by(ranks.device());
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_THAT(findings[1].message, HasSubstr("outside of every planned buffer"));
}

// One rank stores to all while another reads its own memory.
TEST(Multimem, RacesOnEveryRank) {
  for (const bool ordered : {true, false}) {
    Ranks ranks("multimem.st.relaxed.sys.global.f32 [%rd1], 0f00000000;", {},
                {.checks = kCheckAll});
    const KernelImage image{.entry = "k",
                            .ptx = text("ld.global.f32 %f0, [%rd1]; st.global.f32 [%rd2+8], %f0;"),
                            .cubin = {},
                            .file = ""};
    const auto module = ranks.device().load(2, image);
    const auto stream = ranks.device().create_stream(2);
    const auto event = ranks.device().create_event(0);
    const std::uint64_t address = ranks.memory(2)->address();
    const void* args[] = {&address, &address};
    ranks.launch();
    if (ordered) {
      ranks.stream().record(*event);
      stream->wait(*event);
    }
    stream->launch(module->function("k"), {{1}, {1}}, args);
    stream->synchronize();
    ranks.stream().synchronize();
    const std::vector<Finding> findings = found_by(ranks.device());
    EXPECT_EQ(findings.size(), ordered ? 0U : 1U);
    for (const Finding& finding : findings) EXPECT_EQ(finding.kind, "race");
  }
}

TEST(Multimem, CountsWhatComesOverTheLinks) {
  const auto peer_bytes = [](const char* body) {
    Ranks ranks(body, {}, {.count = true});
    ranks.run();
    return ranks.device().inspector()->counts().at(0).total.peer_bytes;
  };
  EXPECT_EQ(peer_bytes(kLoadReduce), 8U);  // reduced on the way
  EXPECT_EQ(peer_bytes("multimem.st.v2.f32 [%rd1], {%f0, %f1};"), 3 * 8U);
  EXPECT_EQ(peer_bytes("multimem.red.add.u32 [%rd1], %r0;"), 3 * 4U);
}

}  // namespace
}  // namespace braid::cpu_test
