#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "braid/error.h"
#include "lowering/lowering_testing.h"
#include "lowering/passes.h"
#include "lowering/schedule_testing.h"

namespace braid::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A file that is gone at the end.
class Measured {
 public:
  explicit Measured(const std::string& text)
      : path_(std::filesystem::temp_directory_path() /
              ("braid_times_" + std::to_string(getpid()) + ".json")) {
    std::ofstream(path_) << text;
  }
  ~Measured() { std::filesystem::remove(path_); }
  Measured(const Measured&) = delete;
  Measured& operator=(const Measured&) = delete;

  [[nodiscard]] PassContext context() const {
    PassContext context = plain_costs();
    context.config.options["runtime-estimations"] = path_;
    return context;
  }

 private:
  std::string path_;
};

Graph four_ranks() {
  return graph_of(input("x", "4, 4"),
                  all_reduce("c", "x") + "," + node("a", "neg", R"("x")") + "," +
                      node("b", "neg", R"("a")") + "," + node("w", "wait_tensor", R"("c")"),
                  R"("b", "w")");
}

double hint(const Graph& graph, const std::string& name) {
  const Node& node = graph.node(graph.value(*graph.find(name)).producer);
  const auto found = node.hints.find("runtime_ns");
  return found == node.hints.end() ? -1 : found->second;
}

// A3-01: each node's lower median; collectives, too; whoever measured what, it is the same.
TEST(AlignRuntimes, TakesTheLowerMedianOfAllRanks) {
  const Measured measured(R"({"c": [40, 10, 30, 20], "a": 7.5})");
  PassContext context = measured.context();
  const Graph graph = align_runtimes(four_ranks(), context);
  EXPECT_EQ(hint(graph, "c"), 20);
  EXPECT_EQ(hint(graph, "a"), 7.5);
  EXPECT_EQ(hint(graph, "b"), -1);
  EXPECT_EQ(node_names(graph), node_names(four_ranks()));
  EXPECT_THAT(remarks_of(context, "c"),
              ElementsAre(HasSubstr("applied: takes 20 ns, the lower median of 4 ranks; ")));
  EXPECT_FALSE(align_runtimes.run(graph, context).has_value());

  const Measured others(R"({"c": [20, 40, 10, 30], "a": 7.5})");
  context = others.context();
  EXPECT_EQ(to_json(align_runtimes(four_ranks(), context)), to_json(graph));
}

TEST(AlignRuntimes, WithoutAFileTheGraphStays) {
  PassContext context = plain_costs();
  EXPECT_FALSE(align_runtimes.run(four_ranks(), context).has_value());
}

// A3-02: what was measured is what schedulers go by.
TEST(AlignRuntimes, SchedulersGoByIt) {
  const Graph graph = Costs()
                          .input("x", 8)
                          .compute("a", {"x"}, 8, 10)
                          .compute("b", {"x"}, 8, 10)
                          .collective("c", "x", 100)
                          .wait("w", "c")
                          .graph({"w", "a", "b"});
  const Measured measured(R"({"b": [500, 600]})");
  PassContext context = measured.context();
  context.config.options["reorder-iterative-use-runtime-estimations"] = "true";
  const Graph aligned = align_runtimes(graph, context);
  EXPECT_THAT(node_names(reorder_communication_preserving_peak_memory(aligned, context)),
              ElementsAre("a", "c", "b", "w"));
  EXPECT_THAT(node_names(reorder_communication_preserving_peak_memory(graph, context)),
              ElementsAre("c", "a", "b", "w"));
}

void expect_refused(const std::string& text, const std::string& where, const std::string& what) {
  const Measured measured(text);
  PassContext context = measured.context();
  try {
    static_cast<void>(align_runtimes(four_ranks(), context));
    FAIL() << "accepted " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.where(), HasSubstr(".json" + where));
    EXPECT_THAT(error.what(), HasSubstr(what));
  }
}

// A3-01: what other programs, or some of the ranks, have measured is refused.
TEST(AlignRuntimes, RefusesOtherPrograms) {
  expect_refused(R"({"cc": 1})", ":/cc", "no such node; expected the name of one; the nearest: c");
  expect_refused(R"({"c": [1, 2]})", ":/c", "found 2 times; expected one for each of 4 ranks");
  expect_refused(R"({"c": [1, 2, 3, "x"]})", ":/c/3", "found the string \"x\"; expected a number");
  expect_refused(R"({"c": -1})", ":/c", "found -1; expected nanoseconds, 0 or more");
  expect_refused(R"({"c": [1, 2, 3, -4]})", ":/c/3", "found -4");
  expect_refused("[1]", "", "expected an object");
  expect_refused("{", "", "");
  PassContext context = plain_costs();
  context.config.options["runtime-estimations"] = "/nonexistent/times.json";
  EXPECT_THROW(static_cast<void>(align_runtimes(four_ranks(), context)), Error);
}

}  // namespace
}  // namespace braid::testing
