#include "ir/buckets.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/error.h"
#include "braid/graph.h"

namespace braid {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Graph with_symbols(std::string_view symbols) {
  return parse_graph(fmt::format(R"({{"braid": 1, "name": "g", "symbols": {{{}}},
    "inputs": [{{"name": "x", "dtype": "f32", "shape": ["T", 8]}}],
    "nodes": [{{"name": "y", "op": "neg", "inputs": ["x"]}}], "outputs": ["y"]}})",
                                 symbols));
}

std::string error_of_symbols(std::string_view symbols) {
  try {
    (void)with_symbols(symbols);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "no error";
}

TEST(Buckets, CutTheRange) {
  EXPECT_THAT(parts_of({.min = 3, .max = 9}), ElementsAre(Symbol{.min = 3, .max = 9}));
  EXPECT_THAT(parts_of({.min = 1, .max = 1024, .buckets = {{16}, {128}}}),
              ElementsAre(Symbol{.min = 1, .max = 16}, Symbol{.min = 17, .max = 128},
                          Symbol{.min = 129, .max = 1024}));
  // The buckets leave no rest.
  EXPECT_THAT(parts_of({.min = 8, .max = 20, .multiple_of = 8, .buckets = {{8}, {17}}}),
              ElementsAre(Symbol{.min = 8, .max = 8, .multiple_of = 8},
                          Symbol{.min = 9, .max = 17, .multiple_of = 8}));
}

TEST(Buckets, OfMultiplesLeaveTheValuesBetween) {
  const std::vector<Symbol> parts =
      parts_of({.min = 1, .max = 100, .buckets = {{64, 16}, {64}, {100, 16}}});
  EXPECT_THAT(
      parts,
      ElementsAre(Symbol{.min = 1, .max = 64, .multiple_of = 16}, Symbol{.min = 1, .max = 64},
                  Symbol{.min = 65, .max = 100, .multiple_of = 16}, Symbol{.min = 65, .max = 100}));
  EXPECT_TRUE(holds(parts[0], 48));
  EXPECT_FALSE(holds(parts[0], 47));
  EXPECT_FALSE(holds(parts[0], 80));
  EXPECT_FALSE(holds(parts[2], 64));
}

TEST(Buckets, AreWrittenAndRead) {
  const Graph graph = with_symbols(
      R"("T": {"max": 64, "multiple_of": 2, "buckets": [2, {"max": 32, "multiple_of": 8}, 32]})");
  EXPECT_THAT(
      graph.symbols().at("T").buckets,
      ElementsAre(Bucket{.max = 2}, Bucket{.max = 32, .multiple_of = 8}, Bucket{.max = 32}));
  EXPECT_EQ(parse_graph(to_json(graph)).symbols(), graph.symbols());
  EXPECT_THAT(to_text(graph),
              HasSubstr("symbol T : 1 to 64, a multiple of 2, a bucket up to 2, a bucket of "
                        "multiples of 8 up to 32, a bucket up to 32\n"));
}

TEST(Buckets, ThatAreNoGoodAreRefusedAtTheirPlace) {
  EXPECT_THAT(error_of_symbols(R"("T": {"max": 64, "buckets": [16, 128]})"),
              HasSubstr("/symbols/T/buckets/1: a bucket up to 128; expected 1 to 64, the symbol's "
                        "max"));
  EXPECT_THAT(error_of_symbols(R"("T": {"max": 64, "buckets": [0]})"),
              HasSubstr("/symbols/T/buckets/0: a bucket up to 0; expected 1 to 64"));
  EXPECT_THAT(error_of_symbols(R"("T": {"max": 64, "buckets": [16, 8]})"),
              HasSubstr("/symbols/T/buckets/1: a bucket up to 8 after one up to 16; expected them "
                        "ascending"));
  EXPECT_THAT(error_of_symbols(R"("T": {"max": 64, "buckets": [16, 16]})"),
              HasSubstr("/buckets/1: "));
  EXPECT_THAT(
      error_of_symbols(R"("T": {"max": 64, "buckets": [16, {"max": 16, "multiple_of": 8}]})"),
      HasSubstr("of equal ones the larger multiple_of first"));
  EXPECT_THAT(error_of_symbols(R"("T": {"min": 8, "max": 64, "buckets": [7]})"),
              HasSubstr("/symbols/T/buckets/0: no integer from 8 to 7"));
  EXPECT_THAT(error_of_symbols(R"("T": {"max": 64, "multiple_of": 8, "buckets": [8, 12]})"),
              HasSubstr("/symbols/T/buckets/1: no multiple of 8 from 9 to 12"));
  EXPECT_THAT(error_of_symbols(R"("T": {"max": 64, "multiple_of": 8,
                                "buckets": [{"max": 64, "multiple_of": 12}]})"),
              HasSubstr("/symbols/T/buckets/0: multiples of 12; expected a multiple of 8"));
  EXPECT_THAT(error_of_symbols(R"("T": {"max": 64, "buckets": [{"max": 64, "multiple_of": 0}]})"),
              HasSubstr("/symbols/T/buckets/0: multiples of 0"));
  EXPECT_THAT(error_of_symbols(R"("T": {"max": 64, "buckets": 16})"),
              HasSubstr("/symbols/T/buckets: found 16; expected a list"));
  EXPECT_THAT(error_of_symbols(R"("T": {"max": 64, "buckets": ["16"]})"),
              HasSubstr("an integer, or an object of max and multiple_of"));
  EXPECT_THAT(error_of_symbols(R"("T": {"max": 64, "buckets": [{"max": 8}]})"),
              HasSubstr("multiple_of"));
  std::string many = "1";
  for (int i = 2; i <= 65; ++i) many += fmt::format(", {}", i);
  EXPECT_THAT(error_of_symbols(fmt::format(R"("T": {{"max": 99, "buckets": [{}]}})", many)),
              HasSubstr("/symbols/T/buckets: 65 buckets; expected at most 64"));
}

TEST(Buckets, AreThoseOfOneSymbol) {
  EXPECT_THAT(
      error_of_symbols(R"("S": {"max": 8, "buckets": [4]}, "T": {"max": 64, "buckets": [16]})"),
      HasSubstr("/symbols/T/buckets: symbol \"S\" has some, too; expected one with buckets"));
}

}  // namespace
}  // namespace braid
