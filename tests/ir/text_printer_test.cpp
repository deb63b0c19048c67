#include "support.h"

namespace braid {
namespace {

TEST(TextPrinter, PrintsOneLinePerNode) {
  Graph graph("demo");
  graph.add_symbol("T", {8, 64, 8});
  graph.add_group("tp", {2, false, {}});
  graph.add_input({"x", {DType::kBF16, {sym("T"), 4}}, InputKind::kActivation, true});
  graph.add_input({"w", {DType::kBF16, {4}}, InputKind::kParameter});
  graph.set_comm_group(0, "tp");
  auto body = std::make_shared<Graph>(graph.clone_interface());
  body->add_node("n", "add_rms_norm2", {0, 0, 1}, {{"eps", 0.5}});
  body->add_output(2);
  body->add_output(3);
  const NodeId k =
      graph.add_node("k", "kernel", {0, 1}, {{"body", std::shared_ptr<const Graph>(body)}});
  graph.set_hint(k, "runtime_ns", 3);
  graph.add_node("a name\n", "neg", {3});
  graph.add_output(4);
  EXPECT_EQ(to_text(graph), R"(graph demo
  symbol T : 8 to 64, a multiple of 8
  group tp : 2 ranks, not symmetric
  input %x : bf16[T, 4] @tp per_rank
  input %w : bf16[4] parameter
  %k:0, %k:1 = kernel(%x, %w) {runtime_ns = 3} : bf16[T, 4], bf16[T, 4] {
    input %x : bf16[T, 4] @tp per_rank
    input %w : bf16[4] parameter
    %n:0, %n:1 = add_rms_norm2(%x, %x, %w) {eps = 0.5} : bf16[T, 4], bf16[T, 4]
    output %n:0, %n:1
  }
  %"a name\n" = neg(%k:1) : bf16[T, 4]
  output %"a name\n"
)");
}

}  // namespace
}  // namespace braid
