#include "braid/graph_builder.h"

#include <fmt/format.h>

#include "ir/fail.h"

namespace braid {

const TensorType& GraphBuilder::Tensor::type() const { return builder_->graph_.type(id_); }

GraphBuilder::Tensor GraphBuilder::Tensor::op(std::string_view op,
                                              const std::vector<Tensor>& others, Attrs attrs,
                                              std::string name) const {
  std::vector<Tensor> inputs{*this};
  inputs.insert(inputs.end(), others.begin(), others.end());
  return builder_->op(op, inputs, std::move(attrs), std::move(name));
}

Dim GraphBuilder::symbol(const std::string& name, Symbol range) {
  graph_.add_symbol(name, range);
  return Dim::symbol(name);
}

void GraphBuilder::group(std::string name, Group group) {
  graph_.add_group(std::move(name), std::move(group));
}

GraphBuilder::Tensor GraphBuilder::input(std::string name, TensorType type, InputOptions options) {
  return {*this, graph_.add_input(
                     {std::move(name), std::move(type), InputKind::kActivation, options.per_rank})};
}

GraphBuilder::Tensor GraphBuilder::parameter(std::string name, TensorType type,
                                             InputOptions options) {
  return {*this, graph_.add_input(
                     {std::move(name), std::move(type), InputKind::kParameter, options.per_rank})};
}

GraphBuilder::Tensor GraphBuilder::state(std::string name, TensorType type, InputOptions options) {
  return {*this, graph_.add_input(
                     {std::move(name), std::move(type), InputKind::kState, options.per_rank})};
}

GraphBuilder::Tensor GraphBuilder::op(std::string_view op, const std::vector<Tensor>& inputs,
                                      Attrs attrs, std::string name) {
  const std::vector<Tensor> all = results(op, inputs, std::move(attrs), std::move(name));
  if (all.size() == 1) return all[0];
  throw_invalid(graph_.nodes().back().name, "{} has {} results; expected one: use results()", op,
                all.size());
}

std::vector<GraphBuilder::Tensor> GraphBuilder::results(std::string_view op,
                                                        const std::vector<Tensor>& inputs,
                                                        Attrs attrs, std::string name) {
  const NodeId node = graph_.add_node(std::move(name), op, ids(inputs), std::move(attrs));
  std::vector<Tensor> tensors;
  for (ValueId value : graph_.node(node).outputs) tensors.push_back(Tensor(*this, value));
  return tensors;
}

GraphBuilder::Tensor GraphBuilder::collective(std::string_view op,
                                              const std::vector<Tensor>& inputs, Attrs attrs,
                                              std::string name) {
  const Tensor started = this->op(op, inputs, std::move(attrs));
  return this->op("wait_tensor", {started}, {}, std::move(name));
}

void GraphBuilder::output(const Tensor& value) { graph_.add_output(ids({value})[0]); }

Graph GraphBuilder::build() const {
  verify(graph_);
  return graph_;
}

std::vector<ValueId> GraphBuilder::ids(const std::vector<Tensor>& tensors) const {
  std::vector<ValueId> ids;
  for (const Tensor& tensor : tensors) {
    if (tensor.builder_ != this) {
      throw_invalid(fmt::format("/inputs/{}", ids.size()),
                    "the value belongs to another GraphBuilder");
    }
    ids.push_back(tensor.id_);
  }
  return ids;
}

}  // namespace braid
