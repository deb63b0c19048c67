#include "ir/numel.h"

#include "support.h"

namespace braid {
namespace {

TEST(Numel, ComparesSymbolicProductsExactly) {
  const Dim t = sym("T");
  const Dim s = sym("S");
  EXPECT_TRUE(same_numel({t * 2, 4}, {t, 8}));
  EXPECT_TRUE(same_numel({t, s}, {s, t}));
  EXPECT_TRUE(same_numel({t * 2 + 2, 3}, {6, t + 1}));
  EXPECT_TRUE(same_numel({}, {1, 1}));
  EXPECT_FALSE(same_numel({t, 8}, {t, 4}));
  EXPECT_FALSE(same_numel({t, t}, {t, s}));
  EXPECT_FALSE(same_numel({t + 1}, {t}));
  const Dim half = *t.over(2);
  EXPECT_TRUE(same_numel({half, 4}, {t, 2}));
  EXPECT_TRUE(same_numel({half + 1, 6}, {t + 2, 3}));
  EXPECT_FALSE(same_numel({half, 2}, {t, 2}));
}

TEST(Numel, FindsTheMissingExtent) {
  const Dim t = sym("T");
  EXPECT_EQ(missing_extent({t, 32, 64}, {t, 64}), Dim(32));
  EXPECT_EQ(missing_extent({t, 32, 64}, {64, 4}), t * 8);
  EXPECT_EQ(missing_extent({12}, {3, 4}), Dim(1));
  EXPECT_EQ(missing_extent({t, 3}, {6}), t.over(2));
  EXPECT_EQ(missing_extent({*t.over(2), 4, 8}, {8}), t * 2);
  EXPECT_FALSE(missing_extent({12}, {5}));
  EXPECT_FALSE(missing_extent({t, sym("S")}, {1}));
  EXPECT_FALSE(missing_extent({12}, {t}));
  EXPECT_FALSE(missing_extent({12}, {0}));
}

TEST(Numel, RefusesWhatDoesNotFit64Bits) {
  const Dim t = sym("T");
  EXPECT_THROW((void)same_numel({Dim(INT64_MIN)}, {t}), Error);
  const auto sum_over = [&](std::int64_t a, std::int64_t b) {
    return *t.over(a) + *sym("S").over(b);
  };
  EXPECT_THROW((void)same_numel({sum_over(4294967311, 8589934609)}, {t}), Error);
  EXPECT_THROW((void)same_numel({sum_over(INT64_MAX, INT64_MAX - 1)}, {t}), Error);
}

}  // namespace
}  // namespace braid
