#include "lowering/remark.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "braid/error.h"
#include "lowering/lowering_testing.h"

namespace braid::testing {
namespace {

using nlohmann::json;

constexpr ReasonCode kInner{"test.inner", "'{value}' is {extent}"};
constexpr ReasonCode kOuter{"test.outer", "{op} of the {op} takes {us:.1f} us: {why}{more}"};

json printed(const Reason& reason) {
  Json object = Json::object();
  reason.add_to(object);
  return json::parse(object.line());
}

TEST(Reason, PrintsItsArgumentsWhereTheFormatNamesThem) {
  const Reason inner(kInner, "x", 3);
  EXPECT_EQ(inner.text(), "'x' is 3");
  const Reason outer(kOuter, "view", 1.25, inner, Reason());
  EXPECT_EQ(outer.text(), "view of the view takes 1.2 us: 'x' is 3");
  EXPECT_EQ(outer.id(), "test.outer");
  EXPECT_EQ(Reason(kOuter, "view", 2.0, std::vector{inner, inner}, "").text(),
            "view of the view takes 2.0 us: 'x' is 3'x' is 3");
}

TEST(Reason, IsCodeAndArgumentsInJson) {
  const Reason outer(kOuter, "view", 1.25, Reason(kInner, "x", 3), Reason());
  EXPECT_EQ(printed(outer),
            json::parse(R"({"code": "test.outer", "arguments": {"op": "view", "us": 1.25,
                "why": [{"code": "test.inner", "arguments": {"value": "x", "extent": 3}}],
                "more": []}})"));
}

TEST(Reason, OfNothingIsEmpty) {
  EXPECT_FALSE(Reason());
  EXPECT_EQ(Reason().text(), "");
  EXPECT_TRUE(Reason(kInner, "x", 3));
}

TEST(Reason, NeedsTheArgumentsOfItsFormat) {
  EXPECT_THROW(static_cast<void>(Reason(kInner, "x").text()), Error);
  EXPECT_THROW(static_cast<void>(Reason(kInner, "x", 1, 2).text()), Error);
}

TEST(Remarks, HaveACodeThatNamesTheirPass) {
  PassContext context = sm80();
  const Graph graph = graph_of(input("x", R"("T", 6)"),
                               node("a", "neg", R"("x")") + "," + all_reduce("c", "a") + "," +
                                   node("s", "wait_tensor", R"("c")"),
                               R"("s", "a")");
  static_cast<void>(lower(graph, context));
  ASSERT_FALSE(context.remarks.empty());
  for (const Remark& remark : context.remarks) {
    EXPECT_TRUE(remark.reason.id().starts_with(std::string(remark.pass) + "."))
        << remark.reason.id();
    EXPECT_TRUE(printed(remark.reason)["arguments"].is_object());
  }
}

}  // namespace
}  // namespace braid::testing
