#include <fmt/format.h>

#include <limits>

#include "ir/evaluate.h"
#include "ir/mapped.h"
#include "ir/ops.h"
#include "ir/text.h"

namespace braid {
namespace {

using GraphPtr = std::shared_ptr<const Graph>;

/// Checks that each entry of `inner` is in `outer` with the same content.
template <class Table>
void check_subset(const char* what, const Table& inner, const Table& outer) {
  for (const auto& [name, entry] : inner) {
    auto it = outer.find(name);
    if (it == outer.end() || !(it->second == entry)) {
      fail("/attrs/body", "the body's {} {} is not that of the graph around it", what, quote(name));
    }
  }
}

std::vector<TensorType> infer_kernel(const InferContext& context) {
  const Graph& body = *get_attr<GraphPtr>(context.attrs, "body");
  check_subset("symbol", body.symbols(), context.graph.symbols());
  check_subset("group", body.groups(), context.graph.groups());
  if (body.inputs().size() != context.inputs.size()) {
    fail("/inputs", "{} operands; expected {}, one for each input of the body",
         context.inputs.size(), body.inputs().size());
  }
  for (std::size_t i = 0; i < context.inputs.size(); ++i) {
    if (context.inputs[i] == body.inputs()[i].type) continue;
    fail(fmt::format("/inputs/{}", i), "the operand is {}; expected {} as the body's input {}",
         context.inputs[i].str(), body.inputs()[i].type.str(), quote(body.inputs()[i].name));
  }
  auto results = mapped(body.outputs(), [&](ValueId value) { return body.type(value); });
  if (results.empty()) fail("/attrs/body/outputs", "none; expected at least one output");
  return results;
}

}  // namespace

void add_kernel_ops(std::vector<OpDef>& ops) {
  ops.push_back({
      .name = "kernel",
      .op_class = OpClass::kKernel,
      .min_inputs = 0,
      .max_inputs = std::numeric_limits<int>::max(),
      .attrs = {{"body", AttrType::kGraph, {}},
                {"config", AttrType::kConfig, std::map<std::string, std::int64_t>{}},
                {"indexed",
                 AttrType::kConfig,
                 {},
                 /*optional=*/true,
                 "Of the body's nodes that check indices or offsets, the names they had, each with "
                 "its place "
                 "among the nodes."}},
      .infer = infer_kernel,
      .flops = [](auto, auto, const Bindings&) { return 0.0; },
      .evaluate =
          [](const EvalContext& context, const EvalTensors& inputs) {
            return evaluate_nodes(**context.node.attr<GraphPtr>("body"), inputs, context.bindings);
          },
  });
}

}  // namespace braid
