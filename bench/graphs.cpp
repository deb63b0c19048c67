#include "graphs.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

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

namespace {

class DecoderBuilder {
 public:
  explicit DecoderBuilder(const DecoderForm& form) : form_(form), graph_("decoder") {
    graph_.add_group("tp", {form.ranks, false, {}});
    for (std::int64_t batch = 0; batch < form.batches; ++batch) {
      residual_.push_back(graph_.add_input({fmt::format("x{}", batch), of({kTokens, kWidth})}));
    }
  }

  Graph run() {
    for (std::int64_t layer = 0; layer < form_.layers; ++layer) {
      attention(fmt::format("l{}_", layer));
      mlp(fmt::format("l{}_", layer));
    }
    for (ValueId value : residual_) graph_.add_output(value);
    return std::move(graph_);
  }

 private:
  static constexpr std::int64_t kTokens = 2048, kWidth = 4096, kInner = 11264;

  static TensorType of(Shape shape) { return {DType::kBF16, std::move(shape)}; }
  ValueId node(const std::string& name, std::string_view op, std::vector<ValueId> inputs,
               Attrs attrs = {}) {
    return graph_.node(graph_.add_node(name, op, std::move(inputs), std::move(attrs))).outputs[0];
  }
  ValueId parameter(const std::string& name, Shape shape, bool per_rank) {
    return graph_.add_input({name, of(std::move(shape)), InputKind::kParameter, per_rank});
  }

  /// A whole weight, or this rank's share of its columns or, of the second matmul, rows.
  ValueId weight(const std::string& name, std::int64_t rows, std::int64_t columns, bool second) {
    const std::int64_t ranks = form_.ranks;
    if (!form_.sharded) {
      return second ? parameter(name, {rows / ranks, columns}, true)
                    : parameter(name, {rows, columns / ranks}, true);
    }
    const ValueId shard = parameter(name, {rows / ranks, columns}, true);
    const ValueId all = node(name + "_gather", "all_gather_into_tensor", {shard},
                             {{"group", std::string("tp")}, {"dim", std::int64_t{0}}});
    return node(name + "_there", "wait_tensor", {all});
  }

  /// residual += its share of a product, of all ranks.
  void add(const std::string& name, std::size_t batch, ValueId a, ValueId w) {
    ValueId sum = node(name, "mm", {a, w});
    if (!form_.sharded) {
      sum = node(name + "_sum", "all_reduce", {sum},
                 {{"reduce_op", std::string("sum")}, {"group", std::string("tp")}});
      sum = node(name + "_summed", "wait_tensor", {sum});
    }
    residual_[batch] = node(name + "_r", "add", {sum, residual_[batch]});
  }

  void attention(const std::string& layer) {
    const ValueId g = parameter(layer + "g1", {kWidth}, false);
    const ValueId v = weight(layer + "v", kWidth, kWidth, false);
    const ValueId o = weight(layer + "o", kWidth, kWidth, true);
    for (std::size_t b = 0; b < residual_.size(); ++b) {
      const std::string name = fmt::format("{}b{}_", layer, b);
      const ValueId n = node(name + "n1", "rms_norm", {residual_[b], g}, {{"eps", 1e-5}});
      add(name + "attention", b, node(name + "heads", "mm", {n, v}), o);
    }
  }

  void mlp(const std::string& layer) {
    const ValueId g = parameter(layer + "g2", {kWidth}, false);
    const ValueId gate = weight(layer + "gate", kWidth, kInner, false);
    const ValueId up = weight(layer + "up", kWidth, kInner, false);
    const ValueId down = weight(layer + "down", kInner, kWidth, true);
    for (std::size_t b = 0; b < residual_.size(); ++b) {
      const std::string name = fmt::format("{}b{}_", layer, b);
      const ValueId n = node(name + "n2", "rms_norm", {residual_[b], g}, {{"eps", 1e-5}});
      const ValueId silu = node(name + "act", "silu", {node(name + "gated", "mm", {n, gate})});
      const ValueId h = node(name + "h", "mul", {silu, node(name + "upped", "mm", {n, up})});
      add(name + "mlp", b, h, down);
    }
  }

  DecoderForm form_;
  Graph graph_;
  std::vector<ValueId> residual_;  ///< of each batch
};

}  // namespace

Graph decoder_graph(const DecoderForm& form) { return DecoderBuilder(form).run(); }

namespace {

/// A node of one operand and no attributes; a comma before all but the first.
void add_unary(std::string& nodes, const std::string& name, std::string_view op,
               const std::string& operand) {
  nodes += fmt::format(R"({}{{"name":"{}","op":"{}","inputs":["{}"]}})", nodes.empty() ? "" : ",",
                       name, op, operand);
}

std::string graph_of(const std::string& inputs, const std::string& nodes,
                     const std::string& outputs) {
  return fmt::format(R"({{"braid":1,"name":"shape","symbols":{{"T":{{"min":1,"max":64}}}},)"
                     R"("inputs":[{}],"nodes":[{}],"outputs":[{}]}})",
                     inputs, nodes, outputs);
}

std::string input_of(const std::string& name) {
  return fmt::format(R"({{"name":"{}","dtype":"bf16","shape":["T",64]}})", name);
}

}  // namespace

std::string pointwise_chain_json(std::int64_t nodes) {
  constexpr std::string_view kOps[] = {"neg", "silu", "relu", "exp", "tanh", "sigmoid", "abs"};
  std::string body;
  std::uint32_t random = 1;
  for (std::int64_t i = 0; i < nodes; ++i) {
    random = random * 1664525 + 1013904223;
    add_unary(body, fmt::format("n{}", i), kOps[(random >> 16U) % std::size(kOps)],
              i == 0 ? "x" : fmt::format("n{}", i - 1));
  }
  return graph_of(input_of("x"), body, fmt::format("\"n{}\"", nodes - 1));
}

std::string fan_out_json(std::int64_t nodes) {
  std::string body;
  std::string outputs;
  add_unary(body, "v", "silu", "x");
  for (std::int64_t i = 1; i < nodes; ++i) {
    add_unary(body, fmt::format("n{}", i), "neg", "v");
    outputs += fmt::format("{}\"n{}\"", i == 1 ? "" : ",", i);
  }
  return graph_of(input_of("x"), body, outputs);
}

std::string chains_json(std::int64_t nodes) {
  constexpr std::int64_t kLength = 5;
  std::string inputs;
  std::string body;
  std::string outputs;
  for (std::int64_t i = 0; i < nodes; ++i) {
    const std::int64_t chain = i / kLength;
    if (i % kLength == 0) {
      inputs += (i == 0 ? "" : ",") + input_of(fmt::format("x{}", chain));
      outputs += fmt::format("{}\"n{}\"", i == 0 ? "" : ",", std::min(i + kLength, nodes) - 1);
    }
    add_unary(body, fmt::format("n{}", i), "silu",
              i % kLength == 0 ? fmt::format("x{}", chain) : fmt::format("n{}", i - 1));
  }
  return graph_of(inputs, body, outputs);
}

}  // namespace braid::bench
