// Read off the PTX: where shapes allow it, every global access of a pointwise or row kernel moves
// 16 bytes per thread.

#include <gtest/gtest.h>

#include <functional>
#include <regex>
#include <string>

#include "codegen/kernel/spec.h"
#include "lowering/passes.h"
#include "runtime/compile/compiler.h"

namespace braid {
namespace {

using Build = std::function<ValueId(Graph&)>;

struct Case {
  std::string name;
  Build build;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

ValueId in(Graph& g, DType dtype, Shape shape) {
  return g.add_input({"i" + std::to_string(g.inputs().size()), {dtype, std::move(shape)}});
}
ValueId op(Graph& g, const char* name, std::vector<ValueId> inputs, Attrs attrs = {}) {
  return g.node(g.add_node("", name, std::move(inputs), std::move(attrs))).outputs[0];
}

std::vector<Case> cases() {
  const Dim t = Dim::symbol("T");
  const Attrs eps{{"eps", 1e-5}};
  std::vector<Case> all;
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    const std::string suffix = "_" + std::string(dtype_name(dtype));
    all.push_back({"mul" + suffix, [=](Graph& g) {
                     return op(g, "mul", {in(g, dtype, {t, 2048}), in(g, dtype, {2048})});
                   }});
    all.push_back({"rms_norm" + suffix, [=](Graph& g) {
                     return op(g, "rms_norm", {in(g, dtype, {t, 2048}), in(g, dtype, {2048})}, eps);
                   }});
    all.push_back({"softmax_short" + suffix, [=](Graph& g) {
                     return op(g, "softmax", {in(g, dtype, {t, 64})});
                   }});
    all.push_back({"softmax_wide" + suffix, [=](Graph& g) {
                     return op(g, "softmax", {in(g, dtype, {t, 65536})});
                   }});
    all.push_back({"heads" + suffix, [=](Graph& g) {
                     const ValueId x =
                         op(g, "view", {in(g, dtype, {t, 1024})}, {{"shape", Shape{t, 16, 64}}});
                     return op(g, "neg",
                               {op(g, "transpose", {x},
                                   {{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{1}}})});
                   }});
    all.push_back({"slice" + suffix, [=](Graph& g) {
                     return op(g, "silu",
                               {op(g, "slice", {in(g, dtype, {t, 1024})},
                                   {{"dim", std::int64_t{1}},
                                    {"start", std::int64_t{256}},
                                    {"end", std::int64_t{768}}})});
                   }});
    all.push_back({"rotary" + suffix, [=](Graph& g) {
                     return op(g, "rotary_embedding",
                               {in(g, dtype, {t, 8, 64}), in(g, dtype, {t, 1, 32}),
                                in(g, dtype, {t, 1, 32})});
                   }});
    all.push_back(
        {"embedding" + suffix, [=](Graph& g) {
           return op(g, "embedding", {in(g, dtype, {1000, 512}), in(g, DType::kI32, {t})});
         }});
  }
  return all;
}

class AccessWidth : public ::testing::TestWithParam<Case> {};

TEST_P(AccessWidth, IsSixteenBytes) {
  Graph graph;
  graph.add_symbol("T", {1, 256, 1});
  graph.add_output(GetParam().build(graph));
  PassContext context;
  const std::string passes[] = {"canonicalize", "fuse"};
  const Graph fused = run_passes(graph, passes, context);
  ASSERT_EQ(fused.nodes().size(), 1U);
  const Node& node = fused.nodes()[0];
  const KernelSpec spec{*node.attr<std::shared_ptr<const Graph>>("body"),
                        *node.attr<Config>("config")};
  const std::string ptx = compile_kernel(emit(spec, Target{}), Target{}, nullptr).image.ptx;
  const std::regex access(R"((ld|st)\.global\S*)");
  int wide = 0;
  bool reads = false;
  for (std::sregex_iterator it(ptx.begin(), ptx.end(), access), end; it != end; ++it) {
    const std::string text = it->str();
    // An index that selects a row is one number.
    if (GetParam().name.starts_with("embedding") && text.find("v4") == std::string::npos) continue;
    EXPECT_NE(text.find("v4."), std::string::npos) << text << "\n" << ptx;
    ++wide;
    reads = reads || text.starts_with("ld");
  }
  EXPECT_GE(wide, 2);
  EXPECT_TRUE(reads) << ptx;
}

INSTANTIATE_TEST_SUITE_P(All, AccessWidth, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace braid
