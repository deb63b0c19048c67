#include "graphs.h"

#include <fmt/format.h>

namespace braid::bench {

Graph gemm_graph(std::int64_t n) {
  Graph graph("gemm");
  const ValueId a = graph.add_input({"a", {DType::kBF16, {n, n}}});
  const ValueId b = graph.add_input({"b", {DType::kBF16, {n, n}}, InputKind::kParameter});
  graph.add_output(graph.node(graph.add_node("c", "mm", {a, b})).outputs[0]);
  return graph;
}

Graph rms_norm_graph(std::int64_t rows, std::int64_t width) {
  Graph graph("rms_norm");
  const ValueId x = graph.add_input({"x", {DType::kBF16, {rows, width}}});
  const ValueId g = graph.add_input({"g", {DType::kBF16, {width}}, InputKind::kParameter});
  const NodeId y = graph.add_node("y", "rms_norm", {x, g}, {{"eps", 1e-5}});
  graph.add_output(graph.node(y).outputs[0]);
  return graph;
}

std::string decoder_chain_json(std::int64_t nodes) {
  constexpr std::int64_t kNodesPerLayer = 9;
  const std::int64_t layers = (nodes + kNodesPerLayer - 1) / kNodesPerLayer;
  std::string inputs = R"({"name":"x","dtype":"bf16","shape":["4*T",256]})";
  std::string body;
  std::string residual = "x";
  auto node = [&](const std::string& name, std::string_view op, const std::string& operands,
                  std::string_view attrs = "{}") {
    body += fmt::format(R"({}{{"name":"{}","op":"{}","inputs":[{}],"attrs":{}}})",
                        body.empty() ? "" : ",", name, op, operands, attrs);
  };
  for (std::int64_t i = 0; i < layers; ++i) {
    inputs += fmt::format(
        R"(,{{"name":"g{0}","dtype":"bf16","shape":[256],"kind":"parameter"}})"
        R"(,{{"name":"wg{0}","dtype":"bf16","shape":[256,176],"kind":"parameter","per_rank":true}})"
        R"(,{{"name":"wu{0}","dtype":"bf16","shape":[256,176],"kind":"parameter","per_rank":true}})"
        R"(,{{"name":"wd{0}","dtype":"bf16","shape":[176,256],"kind":"parameter","per_rank":true}})",
        i);
    node(fmt::format("n{}", i), "rms_norm", fmt::format(R"("{}","g{}")", residual, i),
         R"({"eps":1e-5})");
    node(fmt::format("gate{}", i), "mm", fmt::format(R"("n{0}","wg{0}")", i));
    node(fmt::format("up{}", i), "mm", fmt::format(R"("n{0}","wu{0}")", i));
    node(fmt::format("act{}", i), "silu", fmt::format(R"("gate{}")", i));
    node(fmt::format("h{}", i), "mul", fmt::format(R"("act{0}","up{0}")", i));
    node(fmt::format("d{}", i), "mm", fmt::format(R"("h{0}","wd{0}")", i));
    node(fmt::format("c{}", i), "all_reduce", fmt::format(R"("d{}")", i),
         R"({"reduce_op":"sum","group":"tp"})");
    node(fmt::format("s{}", i), "wait_tensor", fmt::format(R"("c{}")", i));
    node(fmt::format("r{}", i), "add", fmt::format(R"("s{}","{}")", i, residual));
    residual = fmt::format("r{}", i);
  }
  return fmt::format(R"({{"braid":1,"name":"chain","symbols":{{"T":{{"min":1,"max":64}}}},)"
                     R"("groups":{{"tp":{{"size":4}}}},"inputs":[{}],"nodes":[{}],)"
                     R"("outputs":["{}"]}})",
                     inputs, body, residual);
}

}  // namespace braid::bench
