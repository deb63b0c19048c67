#include "ir/expr.h"

#include "support.h"

namespace braid {
namespace {

const SymbolTable kExprSymbols = {{"T", {1, 256, 1}}, {"S", {2, 64, 1}}};
const Expr kT = sym("T");
const Expr kS = sym("S");

TEST(Expr, FoldsConstantsAndAffineParts) {
  EXPECT_EQ(Expr(2) + Expr(3) * Expr(4), Expr(14));
  EXPECT_EQ(kT * 2 + kT, Expr(sym("T") * 3));
  EXPECT_EQ(ceil_div(Expr(10), 4), Expr(3));
  EXPECT_EQ(ceil_div(kT * 2048, 1024), Expr(sym("T") * 2));
  EXPECT_EQ(ceil_div(kT, 1), kT);
  EXPECT_NE(ceil_div(kT, 2), Expr(*sym("T").over(2)));  // T may be odd
  EXPECT_EQ(ceil_div(*(sym("T") * 4).over(3), 2), Expr(*(sym("T") * 2).over(3)));
  EXPECT_EQ(kT * kS * 1 + 0, kT * kS);
  EXPECT_EQ(kT * kS * 0, Expr(0));
  EXPECT_EQ(min(Expr(3), 5), Expr(3));
  EXPECT_EQ(max(Expr(3), 5), Expr(5));
  EXPECT_EQ(min(kT, kT), kT);
  EXPECT_TRUE((Expr(2) * 3).is_constant());
  EXPECT_FALSE((kT * kS).is_constant());
}

TEST(Expr, Evaluates) {
  const Expr e = min(ceil_div(kT * kS + 1, 16), Expr(32)) * 2 + max(kT, kS);
  EXPECT_EQ(e.evaluate({{"T", 7}, {"S", 9}}), 4 * 2 + 9);
  EXPECT_EQ(e.evaluate({{"T", 100}, {"S", 64}}), 32 * 2 + 100);
}

TEST(Expr, MaxBoundsEveryValue) {
  const Expr e = ceil_div(kT * 3 + 1, kS) + kT * kS;
  EXPECT_EQ(e.max(kExprSymbols), (3 * 256 + 1 + 1) / 2 + 256 * 64);
  for (std::int64_t t : {1, 100, 256}) {
    for (std::int64_t s : {2, 33, 64}) {
      EXPECT_LE(e.evaluate({{"T", t}, {"S", s}}), e.max(kExprSymbols));
    }
  }
}

TEST(Expr, StrReadsBack) {
  const Expr d = sym("T") * 2 + 1;
  for (const Expr& e : {Expr(5),
                        Expr(-5),
                        kT,
                        d,
                        Expr(sym("T") - sym("S")),
                        kT * kS,
                        kT * 2 * kS,
                        kT * (kS * 3),
                        d * kS,
                        kS * d,
                        kT * kS + d,
                        d + kT * kS,
                        kT * kS + (kT * kS + 1),
                        ceil_div(d, 1024),
                        Expr(*sym("T").over(2)),
                        Expr(*(sym("T") * 3).over(4) + 1) * kS,
                        kS * Expr(*sym("T").over(2)),
                        ceil_div(kT, kS) * 3 + 2,
                        kT * (kS * kS),
                        kT * kS * kS,
                        min(max(kT, 4), ceil_div(kS, 3)),
                        kT * kS + -1 * (kT * kT),
                        Expr(sym("T") * -1) * kS,
                        kS * kT + Expr(sym("T") * -1)}) {
    const std::optional<Expr> back = Expr::parse(e.str());
    ASSERT_TRUE(back) << e.str();
    EXPECT_EQ(*back, e) << e.str() << " became " << back->str();
  }
  EXPECT_EQ((ceil_div(d, 1024) * 3).str(), "ceil_div(2*T+1, 1024) * 3");
  EXPECT_EQ(Expr::parse("ceil_div(T*2048, 1000)"), ceil_div(kT * 2048, 1000));
}

TEST(Expr, ParseRefusesOtherText) {
  for (const char* text :
       {"", "T/0", "T/S", "(T+1)/2", "T*S/2", "ceil_div(T)", "ceil_div(T, 0)", "floor(T, 2)",
        "min(T, S", "(T", "T)", "2T", "T+", "99999999999999999999"}) {
    EXPECT_FALSE(Expr::parse(text)) << text;
  }
  EXPECT_FALSE(Expr::parse(std::string(5000, '(') + "T" + std::string(5000, ')')));
  EXPECT_FALSE(Expr::parse(std::string(5000, '-') + "T"));
}

TEST(Expr, RefusesDivisionByZeroAndOverflow) {
  EXPECT_TRUE(is_error(error_of([] { static_cast<void>(ceil_div(kT, 0)); }), "", "positive"));
  EXPECT_TRUE(is_error(error_of([] {
                         static_cast<void>((kT * kS).evaluate({{"T", INT64_MAX}, {"S", 2}}));
                       }),
                       "", "64 bits"));
}

TEST(Expr, NumelIsTheProduct) {
  EXPECT_EQ(numel({}), Expr(1));
  EXPECT_EQ(numel({sym("T"), 2048}), Expr(sym("T") * 2048));
  EXPECT_EQ(numel({sym("T"), sym("S"), 4}).evaluate({{"T", 3}, {"S", 5}}), 60);
}

}  // namespace
}  // namespace braid
