#pragma once

#include <gmock/gmock.h>

#include <algorithm>

#include "lowering/lowering_testing.h"

namespace braid::testing {

/// micro_pipeline on a canonical graph. Checks what holds of every result: the verifier, the
/// values, also of the decomposition, and that a second application changes nothing.
inline Graph pipelined(const Graph& graph, PassContext& context) {
  PassContext first = sm80();
  const Graph before = canonicalize(graph, first);
  const Graph result = micro_pipeline(before, context);
  verify(result);
  expect_same_values(before, result, 7);
  PassContext again = context;
  EXPECT_EQ(lines(micro_pipeline(result, again)), lines(result));
  if (std::all_of(result.groups().begin(), result.groups().end(),
                  [](const auto& group) { return group.second.symmetric; })) {
    const Graph lowered = lower_collectives(result, again);
    verify(lowered);
    expect_close_values(before, lowered, 8);
  }
  return result;
}

/// Every collective has one remark of the pass, and no other node has.
inline std::vector<std::string> pipeline_remarks(const PassContext& context) {
  std::vector<std::string> all;
  for (const Remark& remark : context.remarks) {
    EXPECT_EQ(remark.pass, "micro_pipeline");
    all.push_back(remark.node + (remark.applied ? " applied: " : " missed: ") +
                  remark.reason.text());
  }
  return all;
}

/// The graph stays as it is, with this reason at `node`.
inline void expect_refused(const Graph& graph, const std::string& node, const std::string& reason,
                           PassContext context = eager()) {
  PassContext first = sm80();
  const Graph before = canonicalize(graph, first);
  EXPECT_EQ(lines(pipelined(graph, context)), lines(before));
  EXPECT_THAT(remarks_of(context, node),
              ::testing::ElementsAre(::testing::AllOf(::testing::StartsWith("missed: "),
                                                      ::testing::HasSubstr(reason))));
}

inline std::string f8_input(const std::string& name, const std::string& shape) {
  return R"({"name": ")" + name + R"(", "dtype": "f8e4m3", "shape": [)" + shape +
         R"(], "per_rank": true})";
}

/// Gathers `x` as `name` and waits as `name`_w.
inline std::string gather(const std::string& name, const std::string& x, int dim = 0) {
  return node(name, "all_gather_into_tensor", '"' + x + '"',
              R"("group": "tp", "dim": )" + std::to_string(dim)) +
         "," + node(name + "_w", "wait_tensor", '"' + name + '"');
}
inline std::string scatter(const std::string& name, const std::string& x, int dim = 0,
                           const std::string& reduce_op = "sum") {
  return node(name, "reduce_scatter_tensor", '"' + x + '"',
              R"("reduce_op": ")" + reduce_op + R"(", "group": "tp", "dim": )" +
                  std::to_string(dim)) +
         "," + node(name + "_w", "wait_tensor", '"' + name + '"');
}
inline std::string mm(const std::string& name, const std::string& a, const std::string& b) {
  return node(name, "mm", '"' + a + R"(", ")" + b + '"');
}
inline std::string view(const std::string& name, const std::string& x, const std::string& shape) {
  return node(name, "view", '"' + x + '"', R"("shape": [)" + shape + "]");
}
/// JSON items, joined.
template <class... Items>
std::string join(const std::string& first, const Items&... more) {
  std::string text = first;
  ((text += "," + more), ...);
  return text;
}

/// An attribute of the node that gives `value`.
template <class T>
T attr_of(const Graph& graph, const char* value, const char* key) {
  return *graph.node(graph.value(*graph.find(value)).producer).attr<T>(key);
}

class OnRanks : public ::testing::TestWithParam<int> {
 protected:
  int n() const { return GetParam(); }
  Graph graph(const std::string& inputs, const std::string& nodes,
              const std::string& outputs) const {
    return graph_of(inputs, nodes, outputs, n());
  }
};

}  // namespace braid::testing
