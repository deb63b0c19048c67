#include "lowering/fuse/bodies.h"

#include <utility>

#include "lowering/fuse/kernel_body.h"

namespace braid {

std::size_t FusedBodies::KeyHash::operator()(const std::vector<std::int32_t>& key) const {
  std::size_t hash = key.size();
  for (std::int32_t x : key) mix_hash(hash, x);
  return hash;
}

FusedBodies::FusedBodies(const Graph& graph, const PassContext& context)
    : graph_(graph),
      context_(context),
      kinds_(graph),
      stamp_(graph.values().size(), 0),
      number_(graph.values().size(), 0) {}

FusedNodes FusedBodies::find(std::span<const NodeId> nodes, std::vector<ValueId> outputs) {
  FusedNodes result{.body = nullptr, .inputs = {}, .outputs = std::move(outputs)};
  ++now_;
  key_.clear();
  const auto number = [&](ValueId value) -> std::int32_t& { return number_[value]; };
  const auto has_number = [&](ValueId value) {
    std::int32_t& stamp = stamp_[value];
    return std::exchange(stamp, now_) == now_;
  };
  // Inputs count down from -1, results up from 0. Kinds and numbers cannot be confused: a kind
  // fixes how many numbers follow it.
  std::int32_t results = 0;
  for (NodeId id : nodes) {
    const Node& node = graph_.node(id);
    key_.push_back(kinds_.of(id));
    for (ValueId input : node.inputs) {
      if (!has_number(input)) {
        result.inputs.push_back(input);
        number(input) = -static_cast<std::int32_t>(result.inputs.size());
      }
      key_.push_back(number(input));
    }
    for (ValueId output : node.outputs) {
      stamp_[output] = now_;
      number(output) = results++;
    }
  }
  key_.push_back(-1 - static_cast<std::int32_t>(result.outputs.size()));
  for (ValueId output : result.outputs) key_.push_back(number(output));

  auto found = bodies_.find(key_);
  if (found == bodies_.end()) {
    // Most bodies are only tried, so the graph is built again for one that is used.
    const auto graph = make_body(graph_, nodes, result.inputs, result.outputs);
    FusedBody body{.template_name = std::string(template_name(*graph)),
                   .refusal = cannot_fuse(*graph),
                   .spec = std::nullopt,
                   .tuned = {}};
    found = bodies_.emplace(key_, std::move(body)).first;
  }
  result.body = &found->second;
  return result;
}

const KernelSpec& FusedBodies::spec_of(std::span<const NodeId> nodes, const FusedNodes& kernel) {
  std::optional<KernelSpec>& spec = kernel.body->spec;
  if (!spec) {
    const auto body = make_body(graph_, nodes, kernel.inputs, kernel.outputs);
    Tuned& tuned = kernel.body->tuned;
    if (context_.tuned) tuned = context_.tuned(*body);
    spec.emplace(
        KernelSpec{body, tuned.config ? *tuned.config : default_config(*body, context_.target)});
    const auto marks = spec->config.find(kMarksSetting);
    if (marks != spec->config.end()) marks->second = context_.config.mark_blocks ? 1 : 0;
  }
  return *spec;
}

}  // namespace braid
