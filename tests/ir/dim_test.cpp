#include "braid/dim.h"

#include "support.h"

namespace braid {
namespace {

const SymbolTable kDimSymbols = {{"T", {3, 250, 8}}, {"S", {1, 10, 1}}, {"F", {5, 5, 1}}};

TEST(Dim, ParseAndStrAgree) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"7", "7"},       {"T", "T"},           {"2*T", "2*T"},           {"T*2", "2*T"},
      {"T+T", "2*T"},   {"T - S", "-S+T"},    {" 2 * T + 1 ", "2*T+1"}, {"T-T", "0"},
      {"-T+3", "-T+3"}, {"2*3", "6"},         {"1+T+1", "T+2"},         {"0*T", "0"},
      {"T/2", "T/2"},   {"T*3/2", "3*T/2"},   {"6*T/2", "3*T"},         {"4/2", "2"},
      {"T/2+T/2", "T"}, {"-T/4-1", "-T/4-1"}, {"T/2-T/3", "T/6"},       {"T//2", "T/2"},
      {"T/-2", "-T/2"}, {"(T)", "T"},         {"2*(T-1)*3", "6*T-6"},   {"(2*T+4)//2", "T+2"}};
  for (const auto& [text, canonical] : cases) {
    const std::optional<Dim> dim = Dim::parse(text);
    ASSERT_TRUE(dim) << text;
    EXPECT_EQ(dim->str(), canonical);
    EXPECT_EQ(Dim::parse(dim->str()), dim);
  }
}

TEST(Dim, ParseRefusesOtherText) {
  for (const char* text : {"", "T*S", "T/0", "T/S", "7/2", "(T+1)/2", "(T+1)//2", "T///2", "2T",
                           "T+", "+T", "(T", "T T", "ceil_div(T, 2)", "99999999999999999999",
                           "9223372036854775807*T+9223372036854775807*T", "T;"}) {
    EXPECT_FALSE(Dim::parse(text)) << text;
  }
  EXPECT_FALSE(Dim::parse(std::string(5000, 'T')));
}

TEST(Dim, EqualExpressionsCompareEqual) {
  EXPECT_EQ(sym("T") + sym("S"), sym("S") + sym("T"));
  EXPECT_EQ(sym("T") - sym("T"), Dim(0));
  EXPECT_NE(sym("T"), sym("S"));
}

TEST(Dim, Evaluates) {
  EXPECT_EQ((sym("T") * 2 - sym("S") + 1).evaluate({{"T", 10}, {"S", 3}}), 18);
  EXPECT_TRUE(is_error(error_of([] { static_cast<void>(sym("T").evaluate({})); }), "",
                       "symbol \"T\" has no value"));
}

TEST(Dim, BoundsUseMultiplesInTheRange) {
  EXPECT_EQ(sym("T").min(kDimSymbols), 8);
  EXPECT_EQ(sym("T").max(kDimSymbols), 248);
  const Dim difference = sym("T") - sym("S");
  EXPECT_EQ(difference.min(kDimSymbols), -2);
  EXPECT_EQ(difference.max(kDimSymbols), 247);
}

TEST(Dim, DivisorDividesEveryValue) {
  EXPECT_EQ((sym("T") * 3).divisor(kDimSymbols), 24);
  EXPECT_EQ((sym("T") + 4).divisor(kDimSymbols), 4);
  EXPECT_EQ((sym("S") * 6 + sym("T")).divisor(kDimSymbols), 2);
  EXPECT_EQ((sym("F") * 2).divisor(kDimSymbols), 10);  // a symbol of one value is that number
  EXPECT_EQ(Dim(0).divisor(kDimSymbols), 0);
}

TEST(Dim, DividesExactly) {
  EXPECT_EQ((sym("S") * 6 + 4).divide_exactly(2, kDimSymbols), sym("S") * 3 + 2);
  EXPECT_FALSE((sym("S") * 6 + 3).divide_exactly(2, kDimSymbols));
  EXPECT_FALSE((sym("S") * 3).divide_exactly(2, kDimSymbols));
  EXPECT_FALSE(Dim(4).divide_exactly(0, kDimSymbols));
}

// T is a multiple of 8, F is always 5.
TEST(Dim, WhatASymbolIsAMultipleOfDivides) {
  const std::optional<Dim> eighth = (sym("T") * 3).divide_exactly(8, kDimSymbols);
  ASSERT_TRUE(eighth);
  EXPECT_EQ(eighth->str(), "3*T/8");
  EXPECT_EQ(eighth->evaluate({{"T", 16}}), 6);
  EXPECT_EQ(eighth->min(kDimSymbols), 3);
  EXPECT_EQ(eighth->max(kDimSymbols), 93);
  EXPECT_EQ(eighth->divisor(kDimSymbols), 3);
  EXPECT_EQ(*eighth * 8, sym("T") * 3);
  EXPECT_FALSE(sym("T").divide_exactly(16, kDimSymbols));
  EXPECT_FALSE(eighth->divide_exactly(2, kDimSymbols));
  EXPECT_EQ((sym("T") + 4).divide_exactly(4, kDimSymbols)->str(), "T/4+1");
  EXPECT_EQ(sym("F").divide_exactly(5, kDimSymbols)->evaluate({{"F", 5}}), 1);
  EXPECT_TRUE(is_error(error_of([&] {
                         static_cast<void>(eighth->evaluate({{"T", 7}}));
                       }),
                       "", "symbol \"T\" is 7; expected a multiple of 8"));
}

TEST(Dim, OverflowIsAnError) {
  EXPECT_TRUE(
      is_error(error_of([] { static_cast<void>(sym("T") * INT64_MAX * 2); }), "", "64 bits"));
}

}  // namespace
}  // namespace braid
