// braid plan-buffers: CSV in, CSV with offsets out.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/process.h"

namespace braid {
namespace {

using test::run_braid;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

// a and c may share; b lives with each of them.
constexpr const char* kCsv = "id,lower,upper,size\na,0,2,3\nb,1,4,1\nc,3,6,3\n";

TEST(PlanBuffers, AddsOffsets) {
  const auto result = run_braid({"plan-buffers", "-", "--capacity", "4"}, kCsv);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "id,lower,upper,size,offset\na,0,2,3,0\nb,1,4,1,3\nc,3,6,3,0\n");
  EXPECT_EQ(result.err, "3 buffers in 4 bytes, the most that live at one time; 0 nodes searched\n");
}

TEST(PlanBuffers, WritesAFile) {
  const test::TemporaryDirectory directory;
  test::write_file(directory / "in.csv",
                   "size,id,alignment,upper,lower\r\n3,a,1,5,0\r\n\r\n8,b,8,5,0\r\n");
  const auto result = run_braid({"plan-buffers", directory / "in.csv", "--capacity", "16", "-o",
                                 directory / "out" / "placed.csv", "--time-limit", "10"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(test::read_file(directory / "out" / "placed.csv"),
            "size,id,alignment,upper,lower,offset\n3,a,1,5,0,8\n8,b,8,5,0,0\n");
}

TEST(PlanBuffers, GivesTheBestWhereTheCapacityIsNotMet) {
  const auto result = run_braid({"plan-buffers", "-", "--capacity", "3"}, kCsv);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("b,1,4,1,3\n"));
  EXPECT_THAT(result.err, EndsWith("more than the capacity of 3 bytes: nothing fits in that\n"));
  const auto nothing = run_braid({"plan-buffers", "-", "--capacity", "3"}, "id,lower,upper,size\n");
  EXPECT_EQ(nothing.exit_code, 0) << nothing.err;
  EXPECT_EQ(nothing.out, "id,lower,upper,size,offset\n");
}

void expect_refused(const std::string& csv, const std::string& where, const std::string& what,
                    const std::vector<std::string>& options = {"--capacity", "100"}) {
  SCOPED_TRACE(csv);
  std::vector<std::string> arguments{"plan-buffers", "-"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const auto result = run_braid(arguments, csv);
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, StartsWith("braid: error: " + where));
  EXPECT_THAT(result.err, HasSubstr(what));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
}

TEST(PlanBuffers, RefusesBadCsv) {
  const std::string header = "id,lower,upper,size\n";
  expect_refused("", "stdin:", "expected a header");
  expect_refused("id,lower,upper\n", "stdin:1: ", "no column \"size\"");
  expect_refused("id,lower,upper,size,weight\n", "stdin:1: ", "\"weight\"");
  expect_refused("id,lower,upper,size,id\n", "stdin:1: ", "twice");
  expect_refused(header + "a,0,2\n", "stdin:2: ", "3 fields; expected 4");
  expect_refused(header + "a,0,2,3,4\n", "stdin:2: ", "5 fields; expected 4");
  expect_refused(header + "a,0,2,3\n\na,0,2,3\n", "stdin:4: ", "id \"a\"");
  expect_refused(header + ",0,2,3\n", "stdin:2: ", "no id");
  expect_refused(header + "a,0,2,-3\n",
                 "stdin:2: ", "size: found \"-3\"; expected an integer from 0");
  expect_refused(header + "a,0,2,3x\n", "stdin:2: ", "size: found \"3x\"");
  expect_refused(header + "a,0,,3\n", "stdin:2: ", "upper: found \"\"");
  expect_refused(header + "a,2,2,3\n", "stdin:2: ", "lower 2, upper 2; expected lower < upper");
  expect_refused(header + "a,3,2,3\n", "stdin:2: ", "lower 3, upper 2");
  expect_refused(header + "a,0,2,99999999999999999999\n", "stdin:2: ", "size");
  expect_refused(header + "a,0,2,2305843009213693951\nb,0,2,1\n", "stdin:3: ", "more than");
  expect_refused("id,lower,upper,size,alignment\na,0,2,3,0\n", "stdin:2: ", "alignment");
  expect_refused("id,lower,upper,size,alignment\na,0,2,3,-4\n", "stdin:2: ", "alignment");
  expect_refused("\xef\xbb\xbfid,lower,upper,size\n", "stdin:1: ", "expected id, lower");
  expect_refused("\"id\",\"lower\",\"upper\",\"size\"\n", "stdin:1: ", "expected id, lower");
  expect_refused("id;lower;upper;size\na;0;2;3\n", "stdin:1: ", "expected id, lower");
  expect_refused(header + std::string("a,0,2,3\0", 8) + "\n", "stdin:2: ", "size");
  expect_refused(header + "   \n", "stdin:2: ", "1 fields; expected 4");
  expect_refused(header + "a,-9223372036854775808,9223372036854775807,3\n", "stdin:2: ", "lower");
}

TEST(PlanBuffers, RefusesBadOptions) {
  for (const char* capacity : {"0", "-5", "1.5", "x", "99999999999999999999"}) {
    expect_refused(kCsv, "--capacity", "expected an integer", {"--capacity", capacity});
  }
  expect_refused(kCsv, "--capacity", "required", {});
  for (const char* seconds : {"0", "-1", "x", "nan"}) {
    expect_refused(kCsv, "--time-limit", "", {"--capacity", "9", "--time-limit", seconds});
  }
  expect_refused(kCsv, "braid plan-buffers: ", "unknown option",
                 {"--capacity", "9", "--nodes", "4"});
  EXPECT_EQ(run_braid({"plan-buffers", "/nonexistent.csv", "--capacity", "9"}).exit_code, 2);
}

}  // namespace
}  // namespace braid
