// braid report: one page of HTML that loads nothing.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "cli/process.h"
#include "cli/small_graph.h"

namespace braid {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using test::run_braid;
using test::small_graph;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

constexpr std::string_view kOpen = "<script type=\"application/json\" id=\"data\">";

std::string page_of(const std::string& graph, std::vector<std::string> options = {}) {
  options.insert(options.begin(), {"report", "-", "-o", "-"});
  const auto result = run_braid(options, graph);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.out;
}

/// The element that a browser would see, which ends at the first "</script".
std::string data_text(const std::string& page) {
  const std::size_t from = page.find(kOpen) + kOpen.size();
  return page.substr(from, page.find("</script", from) - from);
}

json data_of(const std::string& page) { return json::parse(data_text(page), nullptr, false); }

std::size_t count_of(const std::string& text, std::string_view what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++count;
  return count;
}

TEST(Report, IsOneFileThatLoadsNothing) {
  const std::string page = page_of(small_graph().dump());
  EXPECT_THAT(page, StartsWith("<!doctype html>"));
  EXPECT_EQ(count_of(page, "<script"), 2U);
  EXPECT_EQ(count_of(page, "</script>"), 2U);
  EXPECT_THAT(page, HasSubstr("content=\"default-src 'none';"));
  // Outside of the data, which is text.
  std::string frame = page;
  frame.erase(frame.find(data_text(page)), data_text(page).size());
  for (const char* loads :
       {"http:", "https:", "src=", "href=", "url(", "@import", "fetch(", "innerHTML", "eval("}) {
    EXPECT_THAT(frame, Not(HasSubstr(loads)));
  }
}

TEST(Report, NoNameGetsOutOfTheData) {
  const std::string hostile = "</script><img src=x onerror=alert(1)><!--<script>\u2028";
  ordered_json graph = small_graph();
  graph["name"] = hostile;
  graph["outputs"][0] = hostile;
  graph["nodes"].back()["name"] = hostile;
  const std::string page = page_of(graph.dump());
  EXPECT_EQ(count_of(page, "</script>"), 2U);
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, Not(HasSubstr("<!--")));
  const json data = data_of(page);
  ASSERT_TRUE(data.is_object());
  EXPECT_EQ(data["graph"], hostile);
  EXPECT_THAT(data["memory"]["steps"].get<std::vector<std::string>>(), testing::Contains(hostile));
}

TEST(Report, HasBothTimelinesMemoryRemarksAndKernels) {
  const json data = data_of(page_of(small_graph().dump(), {"--target", "H100"}));
  EXPECT_EQ(data["device"], "H100");
  ASSERT_EQ(data["timelines"].size(), 2U);
  EXPECT_EQ(data["timelines"][0]["title"], "Before scheduling");
  EXPECT_EQ(data["timelines"][1]["title"], "After scheduling");
  for (const json& timeline : data["timelines"]) {
    std::size_t steps = 0;
    double end = 0;
    for (const json& event : timeline["events"]) {
      if (event["ph"] != "X") continue;
      ++steps;
      end = std::max(end, event["ts"].get<double>() + event["dur"].get<double>());
    }
    EXPECT_GT(steps, 0U);
    EXPECT_NEAR(end, timeline["total_ns"].get<double>() / 1e3, 2e-3);
    EXPECT_THAT(timeline["kinds"], SizeIs(steps));
    EXPECT_THAT(timeline["critical"], SizeIs(steps));
  }
  const json explained = json::parse(
      run_braid({"explain", "-", "--json", "--target", "H100"}, small_graph().dump()).out);
  EXPECT_EQ(data["memory"]["steps"].size(), explained["steps"]);
  EXPECT_EQ(data["kernels"].size(), explained["kernels"]);
  std::size_t remarks = 0;
  for (const json& remark : data["remarks"]) remarks += remark["nodes"].size();
  EXPECT_EQ(remarks, explained["remarks"].size());
  for (const json& kernel : data["kernels"]) {
    EXPECT_THAT(kernel["cuda"].get<std::string>(), HasSubstr("__global__"));
    EXPECT_FALSE(kernel.contains("counted"));
  }
  EXPECT_EQ(data["kernels"][0]["shapes"], "bf16[T, 64], bf16[64, 64] → bf16[T, 64]");
  EXPECT_FALSE(data["counted"]);
}

TEST(Report, PeakAndBoundAreThoseOfTheBuffers) {
  const json data = data_of(page_of(small_graph().dump()));
  bool symmetric = false;
  for (const json& arena : data["memory"]["arenas"]) {
    SCOPED_TRACE(arena["name"].get<std::string>());
    symmetric = symmetric || arena["name"] == "symmetric:tp";
    std::int64_t highest = 0;
    for (const json& buffer : arena["buffers"]) {
      EXPECT_LE(buffer["first"], buffer["last"]);
      highest = std::max(
          highest, buffer["offset"].get<std::int64_t>() + buffer["bytes"].get<std::int64_t>());
    }
    const auto peak = arena["peak"].get<std::int64_t>();
    EXPECT_LE(highest, peak);
    EXPECT_LT(peak - highest, 256);
    EXPECT_LE(arena["bound"].get<std::int64_t>(), peak);
    EXPECT_LE(peak, arena["bytes"].get<std::int64_t>() + 256);
  }
  EXPECT_TRUE(symmetric);
}

TEST(Report, ShowsWhatIsExposedAndWhatSchedulingMadeOfIt) {
  // A collective that is waited for at once, and compute that it could be beside.
  const std::string graph = R"({"braid": 1, "name": "costs",
    "groups": {"tp": {"size": 2}},
    "inputs": [{"name": "x", "dtype": "f32", "shape": [4, 8], "per_rank": true}],
    "nodes": [
      {"name": "c", "op": "all_reduce", "inputs": ["x"],
       "attrs": {"reduce_op": "sum", "group": "tp"}, "hints": {"runtime_ns": 100}},
      {"name": "w", "op": "wait_tensor", "inputs": ["c"]},
      {"name": "a", "op": "opaque", "inputs": ["x"], "attrs": {"shape": [4, 8], "dtype": "f32"},
       "hints": {"runtime_ns": 60}},
      {"name": "b", "op": "opaque", "inputs": ["w", "a"],
       "attrs": {"shape": [4, 8], "dtype": "f32"}, "hints": {"runtime_ns": 10}}],
    "outputs": ["b"]})";
  const json data = data_of(page_of(graph, {"--enable", "sink_waits"}));
  ASSERT_EQ(data["timelines"].size(), 2U);
  const json &before = data["timelines"][0], &after = data["timelines"][1];
  EXPECT_EQ(before["total_ns"], 170);
  EXPECT_EQ(before["exposed_ns"], 100);
  EXPECT_EQ(after["total_ns"], 110);
  EXPECT_EQ(after["exposed_ns"], 40);
  EXPECT_THAT(after["kinds"].get<std::vector<std::string>>(),
              ElementsAre("communication", "compute", "exposed", "compute"));
  EXPECT_THAT(after["critical"].get<std::vector<bool>>(), ElementsAre(true, false, false, true));
  EXPECT_FALSE(data.contains("memory"));
  EXPECT_FALSE(data.contains("kernels"));
}

TEST(Report, CountsWhenAsked) {
  const json data = data_of(page_of(small_graph().dump(), {"--count=H200", "--bind", "T=3"}));
  EXPECT_TRUE(data["counted"]);
  ASSERT_EQ(data["timelines"].size(), 3U);
  EXPECT_TRUE(data["timelines"][2]["measured"]);
  for (const json& kernel : data["kernels"]) {
    SCOPED_TRACE(kernel["name"].get<std::string>());
    ASSERT_TRUE(kernel.contains("counted"));
    EXPECT_EQ(kernel["counted"]["estimate"]["device"], "H200");
    EXPECT_GT(kernel["counted"]["counts"]["global_bytes"], 0);
  }
}

TEST(Report, RefusesBadInputAndWritesNothing) {
  const test::TemporaryDirectory directory;
  const std::string file = directory / "report.html";
  const std::vector<std::vector<std::string>> commands{
      {"report", "-", "-o", file},
      {"report", "-", "-o", file, "--target", "sm_1"},
      {"report", "-", "-o", file, "--count=abacus"},
      {"report", "-", "-o", file, "--enable", "magic"},
      {"report", "-", "-o", file, "--bind", "T=x"},
      {"report", "-"}};
  for (std::size_t i = 0; i < commands.size(); ++i) {
    SCOPED_TRACE(testing::PrintToString(commands[i]));
    const auto result = run_braid(commands[i], i == 0 ? "{\"braid\": 1" : small_graph().dump());
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, StartsWith("braid: error: "));
    EXPECT_EQ(count_of(result.err, "\n"), 1U) << result.err;
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
  const auto good = run_braid({"report", "-", "-o", file}, small_graph().dump());
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_EQ(test::read_file(file), page_of(small_graph().dump()));
}

}  // namespace
}  // namespace braid
