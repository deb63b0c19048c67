#include "ir/attributes.h"

#include <limits>

#include "support.h"

namespace braid {
namespace {

const TensorType kX{DType::kF32, {2, 3}};

TEST(Attributes, DefaultsAreFilledIn) {
  Graph graph = graph_with({kX});
  const Node& node = graph.node(graph.add_node("n", "sum", {0}));
  ASSERT_NE(node.attr<bool>("keepdim"), nullptr);
  EXPECT_FALSE(*node.attr<bool>("keepdim"));
  EXPECT_TRUE(node.attr<std::vector<std::int64_t>>("dim")->empty());
}

TEST(Attributes, IntegersStandForNumbersAndLists) {
  EXPECT_EQ(inferred({kX}, "sum", {{"dim", std::int64_t{0}}}), "f32[3]");
  EXPECT_EQ(inferred({kX}, "rms_norm", {{"eps", std::int64_t{1}}}), "f32[2, 3]");
}

TEST(Attributes, AreChecked) {
  EXPECT_TRUE(is_error(refused({kX}, "sum", {{"dims", std::int64_t{0}}}), "n/attrs/dims",
                       "sum has no attribute \"dims\"; expected dim, keepdim"));
  EXPECT_TRUE(is_error(refused({kX}, "neg", {{"x/y", true}}), "n/attrs/x~1y", "expected none"));
  EXPECT_TRUE(is_error(refused({kX}, "sum", {{"keepdim", std::int64_t{1}}}), "n/attrs/keepdim",
                       "wrong type; expected true or false"));
  EXPECT_TRUE(
      is_error(refused({kX}, "rms_norm", {{"eps", true}}), "n/attrs/eps", "expected a number"));
  EXPECT_TRUE(
      is_error(refused({kX}, "rms_norm", {{"eps", std::numeric_limits<double>::infinity()}}),
               "n/attrs/eps", "not a finite number"));
  EXPECT_TRUE(is_error(refused({kX}, "all_reduce",
                               {{"reduce_op", std::string("sum")},
                                {"group", std::string("tp")},
                                {"algorithm", std::string("\xFF")}}),
                       "n/attrs/algorithm", "not UTF-8"));
}

TEST(Attributes, EveryTypeIsDescribedAndEveryDefaultFits) {
  for (const OpDef* op : all_ops()) {
    for (const AttrDef& def : op->attrs) {
      EXPECT_FALSE(describe_attr_type(def.type).empty()) << op->name << " " << def.name;
      EXPECT_EQ(&find_attribute(*op, def.name), &def);
    }
  }
}

}  // namespace
}  // namespace braid
