// Generic pointers to the shared memory of other blocks, as cooperative groups and libcu++ use
// them.

#include <gtest/gtest.h>

#include <numeric>

#include "braid/checks.h"
#include "cpu/cpu_harness.h"
#include "findings.h"

namespace braid::cpu_test {
namespace {

/// Each thread stores its number in the other block by a pointer that became one of shared memory,
/// and reads by one that was one what the thread across stored there.
TEST(ClusterPointers, BecomeAddressesOfSharedMemoryAndBack) {
  for (const unsigned checks : {0U, unsigned{kCheckAll}}) {
    Bench bench = Bench::from_ptx(R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out) .explicitcluster .reqnctapercluster 2, 1, 1
{
.reg .b32 %r<8>;
.reg .b64 %d<8>;
.shared .align 4 .b8 s[128];
ld.param.u64 %d0, [out];
mov.u32 %r0, %tid.x;
mov.u32 %r1, %cluster_ctarank;
xor.b32 %r2, %r1, 1;
mad.lo.u32 %r3, %r1, 32, %r0;
mov.u64 %d1, s;
cvta.shared.u64 %d1, %d1;
mad.wide.u32 %d1, %r0, 4, %d1;
mapa.u64 %d2, %d1, %r2;
cvta.to.shared.u64 %d3, %d2;
cvt.u32.u64 %r4, %d3;
st.shared::cluster.u32 [%r4], %r3;
barrier.cluster.arrive;
barrier.cluster.wait;
cvta.to.shared.u64 %d4, %d1;
cvt.u32.u64 %r5, %d4;
mapa.shared::cluster.u32 %r5, %r5, %r2;
cvt.u64.u32 %d5, %r5;
cvta.shared::cluster.u64 %d6, %d5;
ld.u32 %r6, [%d6];
mad.wide.u32 %d7, %r3, 4, %d0;
st.global.u32 [%d7], %r6;
barrier.cluster.arrive;
barrier.cluster.wait;
ret;
}
)",
                                  {.threads = 1, .checks = checks});
    const std::uint64_t out = bench.upload(std::vector<std::uint32_t>(64));
    bench.run({2}, {32}, 0, out);
    std::vector<std::uint32_t> want(64);
    std::iota(want.begin(), want.end(), 0U);
    EXPECT_EQ(bench.download<std::uint32_t>(out, 64), want);
    EXPECT_TRUE(found_by(bench.device()).empty());
  }
}

// As code for pairs of blocks has it. A block's own addresses are those that mapa makes of its
// rank.
TEST(ClusterPointers, WithoutBit24NameTheEvenBlockOfAPair) {
  for (const unsigned checks : {0U, unsigned{kCheckAll}}) {
    Bench bench = Bench::from_ptx(R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out) .explicitcluster .reqnctapercluster 4, 1, 1
{
.reg .b32 %r<12>;
.reg .b64 %d<8>;
.shared .align 8 .b8 other[8];
.shared .align 8 .b8 word[8];
ld.param.u64 %d0, [out];
mov.u32 %r0, %cluster_ctarank;
mov.u32 %r1, word;
add.u32 %r2, %r0, 10;
st.shared.u32 [%r1], %r2;
barrier.cluster.arrive;
barrier.cluster.wait;
and.b32 %r3, %r1, 0xfeffffff;
ld.shared::cluster.u32 %r4, [%r3];
getctarank.shared::cluster.u32 %r5, %r1;
mapa.shared::cluster.u32 %r6, %r1, %r0;
sub.u32 %r6, %r6, %r1;
cvt.u64.u32 %d1, %r3;
cvta.shared::cluster.u64 %d2, %d1;
ld.u32 %r7, [%d2];
mad.wide.u32 %d3, %r0, 16, %d0;
st.global.v4.u32 [%d3], {%r4, %r5, %r6, %r7};
barrier.cluster.arrive;
barrier.cluster.wait;
ret;
}
)",
                                  {.threads = 1, .checks = checks});
    const std::uint64_t out = bench.upload(std::vector<std::uint32_t>(16));
    bench.run({4}, {32}, 0, out);
    EXPECT_EQ(bench.download<std::uint32_t>(out, 16),
              (std::vector<std::uint32_t>{10, 0, 0, 10, 10, 1, 0, 10, 12, 2, 0, 12, 12, 3, 0, 12}));
    EXPECT_TRUE(found_by(bench.device()).empty());
  }
}

}  // namespace
}  // namespace braid::cpu_test
