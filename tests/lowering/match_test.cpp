#include "lowering/analysis/match.h"

#include "lowering/lowering_testing.h"

namespace braid {
namespace {

using testing::all_reduce;
using testing::graph_of;
using testing::input;
using testing::node;

constexpr const char* kEps = R"("eps": 1e-5)";

class MatchTest : public ::testing::Test {
 protected:
  Graph graph_ = graph_of(input("x", "4, 8") + "," + input("g", "8"),
                          all_reduce("c", "x") + "," + node("w", "wait_tensor", R"("c")") + "," +
                              node("n", "rms_norm", R"("w", "g")", kEps) + "," +
                              node("a", "add_rms_norm2", R"("n", "x", "g")", kEps) + "," +
                              node("m", "mul", R"("n", "a:1")"),
                          R"("m", "a:0")");
  Uses uses_{graph_};
  Match matched(const char* name, const Pattern& pattern) {
    return match(graph_, uses_, *graph_.find(name), pattern);
  }
  const Pattern sum_ = op("wait_tensor", op("all_reduce", any("x")).as("comm"));
};

TEST_F(MatchTest, APatternReadsLikeTheGraph) {
  const Match m =
      matched("n", op("rms_norm|add_rms_norm", sum_.single(), any("weight")).as("norm"));
  ASSERT_TRUE(m) << m.reason().text();
  EXPECT_EQ(m.node("comm").name, "c");
  EXPECT_EQ(m.node("norm").op_name(), "rms_norm");
  EXPECT_EQ(graph_.value(m.value("weight")).name, "g");
  EXPECT_FALSE(m.has("residual"));
}

TEST_F(MatchTest, SaysWhatItFoundInstead) {
  EXPECT_EQ(matched("n", op("rms_norm", op("wait_tensor", op("all_gather_into_tensor")), any()))
                .reason()
                .text(),
            "'c' is all_reduce; expected all_gather_into_tensor");
  EXPECT_EQ(matched("m", op("mul", any(), op("add_rms_norm2").result(0))).reason().text(),
            "'a:1' is result 1 of add_rms_norm2; expected result 0");
  EXPECT_EQ(matched("m", op("mul", any().single(), any())).reason().text(),
            "'n' has 2 users; expected one");
  EXPECT_EQ(matched("n", op("rms_norm", any())).reason().text(), "'n' has 2 operands; expected 1");
  EXPECT_EQ(matched("c", op("all_reduce", op("mm"))).reason().text(),
            "'x' is a graph input; expected mm");
  EXPECT_EQ(matched("a:0", any().single()).reason().text(), "'a:0' is a graph output");
}

TEST_F(MatchTest, ChoicesReportTheOneThatCameClosest) {
  const Pattern norm = op("rms_norm", sum_, any());
  EXPECT_TRUE(matched("n", either(sum_, norm)));
  EXPECT_EQ(matched("n", either(op("rms_norm", op("wait_tensor", op("mm")), any()), sum_))
                .reason()
                .text(),
            "'c' is all_reduce; expected mm");
}

}  // namespace
}  // namespace braid
