#include "lowering/fuse/kernel_body.h"

#include <fmt/format.h>

#include <type_traits>
#include <unordered_map>

#include "ir/collective.h"
#include "ir/fail.h"
#include "ir/op_registry.h"

namespace braid {
namespace {

void add_symbols(const SymbolTable& all, const Shape& shape, Graph& body) {
  for (const Dim& dim : shape) {
    for (const Dim::Term& term : dim.terms()) {
      if (body.symbols().find(term.symbol) == body.symbols().end()) {
        body.add_symbol(term.symbol, all.find(term.symbol)->second);
      }
    }
  }
}

void add_group(const GroupTable& all, const std::string& name, Graph& body) {
  if (body.groups().find(name) == body.groups().end()) body.add_group(name, all.find(name)->second);
}

/// Formats an attribute as text.
template <class T>
void append_attr(const T& value, std::string& out) {
  if constexpr (std::is_same_v<T, std::string>) {
    fmt::format_to(std::back_inserter(out), "{}'{}'", value.size(), value);
  } else if constexpr (std::is_same_v<T, DType>) {
    out += dtype_name(value);
  } else if constexpr (std::is_same_v<T, Shape>) {
    for (const Dim& dim : value) out += dim.str() + ",";
  } else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) {
    for (std::int64_t x : value) fmt::format_to(std::back_inserter(out), "{},", x);
  } else if constexpr (std::is_same_v<T, std::map<std::string, std::int64_t>>) {
    for (const auto& [key, x] : value) {
      append_attr(key, out);
      fmt::format_to(std::back_inserter(out), "{},", x);
    }
  } else if constexpr (std::is_same_v<T, std::shared_ptr<const Graph>>) {
    out += body_key(*value);
  } else if constexpr (std::is_same_v<T, double>) {
    fmt::format_to(std::back_inserter(out), "{}f", value);  // 3.0 must differ from 3
  } else {
    fmt::format_to(std::back_inserter(out), "{}", value);
  }
}

void check_setting(const std::string& place, const Config& config, const Setting& setting) {
  const auto found = config.find(std::string(setting.name));
  const std::int64_t value = found == config.end() ? 0 : found->second;
  const bool fits = value >= setting.min && value <= setting.max &&
                    (!setting.power_of_two || (value & (value - 1)) == 0);
  if (fits) return;
  throw_invalid(fmt::format("{}/config/{}", place, setting.name),
                "found {}; expected {} from {} to {}",
                found == config.end() ? "none" : std::to_string(value),
                setting.power_of_two ? "a power of two" : "a number", setting.min, setting.max);
}

bool runs_in_kernels(const Node& node) {
  const OpClass c = node.op->op_class;
  return !is_asynchronous(node) && c != OpClass::kWait && c != OpClass::kKernel &&
         c != OpClass::kFusedMatmul && c != OpClass::kChunk &&
         node.op->mutates == Mutates::kNothing;
}

}  // namespace

void check_spec(const std::string& place, const KernelSpec& spec) {
  const Graph& body = *spec.body;
  const bool joined = is_joined(body);
  for (const Node& node : body.nodes()) {
    if (joined && node.op->op_class == OpClass::kKernel) {
      check_spec(place + "/body/" + node.name + "/attrs", spec_of(node));
      continue;
    }
    if (runs_in_kernels(node)) continue;
    throw_invalid(place + "/body", "'{}' is {}; expected nodes that run inside a kernel", node.name,
                  node.op_name());
  }
  if (const std::string reason = cannot_fuse(body); !reason.empty()) {
    throw_invalid(place + "/body", "no {} kernel computes it: {}", template_name(body), reason);
  }
  for (const Setting& setting : settings(body)) check_setting(place, spec.config, setting);
  for (const Setting& setting : {Setting{kInPlaceSetting, 1, 1, false}, kElementsSetting}) {
    if (spec.config.contains(std::string(setting.name))) check_setting(place, spec.config, setting);
  }
}

KernelSpec spec_of(const Node& kernel) {
  return {*kernel.attr<std::shared_ptr<const Graph>>("body"), *kernel.attr<Config>("config")};
}

void check_kernel(const Node& kernel) { check_spec(kernel.name + "/attrs", spec_of(kernel)); }

std::shared_ptr<const Graph> make_body(const Graph& graph, std::span<const NodeId> nodes,
                                       std::span<const ValueId> inputs,
                                       std::span<const ValueId> outputs) {
  auto body = std::make_shared<Graph>();
  for (NodeId id : nodes) {
    const Node& node = graph.node(id);
    add_symbols(graph.symbols(), dims_of_attributes(node), *body);
    if (const auto* group = node.attr<std::string>("group")) {
      add_group(graph.groups(), *group, *body);
    }
  }
  std::unordered_map<ValueId, ValueId> map;
  for (ValueId input : inputs) {
    const TensorType& type = graph.type(input);
    add_symbols(graph.symbols(), type.shape, *body);
    // A body says nothing of other ranks, so any operand may differ between ranks.
    map[input] = body->add_input({.name = fmt::format("i{}", map.size()),
                                  .type = type,
                                  .kind = InputKind::kActivation,
                                  .per_rank = true});
  }
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const Node& node = graph.node(nodes[n]);
    std::vector<ValueId> operands;
    operands.reserve(node.inputs.size());
    for (ValueId input : node.inputs) operands.push_back(map.at(input));
    if (node.op->op_class == OpClass::kCollective && shares_operand(node)) {
      body->set_comm_group(operands[0], *node.attr<std::string>("group"));
    }
    const NodeId copy = body->add_copy(graph, node, fmt::format("v{}", n), std::move(operands));
    for (std::size_t r = 0; r < node.outputs.size(); ++r) {
      map[node.outputs[r]] = body->node(copy).outputs[r];
    }
  }
  for (ValueId output : outputs) body->add_output(map.at(output));
  return body;
}

std::string body_key(const Graph& body) {
  std::string key;
  auto out = std::back_inserter(key);
  for (const auto& [name, symbol] : body.symbols()) {
    append_attr(name, key);
    fmt::format_to(out, "{},{},{};", symbol.min, symbol.max, symbol.multiple_of);
  }
  for (const auto& [name, group] : body.groups()) {
    append_attr(name, key);
    fmt::format_to(out, "{},{}", group.size, group.symmetric);
    for (const auto& ranks : group.ranks) {
      key += '[';
      append_attr(ranks, key);
    }
    key += ';';
  }
  for (const GraphInput& input : body.inputs()) {
    append_attr(input.name, key);
    key += input.type.str();
    fmt::format_to(out, "{}{};", static_cast<int>(input.kind), input.per_rank);
  }
  for (const Node& node : body.nodes()) {
    append_attr(node.name, key);
    key += node.op_name();
    for (ValueId input : node.inputs) fmt::format_to(out, " {}", input);
    for (const auto& [name, value] : node.attrs) {
      fmt::format_to(out, " {}=", name);
      std::visit([&](const auto& v) { append_attr(v, key); }, value);
    }
    key += ';';
  }
  for (ValueId output : body.outputs()) fmt::format_to(out, " {}", output);
  for (std::size_t v = 0; v < body.values().size(); ++v) {
    const std::string& group = body.values()[v].comm_group;
    if (group.empty()) continue;
    fmt::format_to(out, " {}:", v);
    append_attr(group, key);
  }
  return key;
}

}  // namespace braid
