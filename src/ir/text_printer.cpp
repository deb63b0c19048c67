#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braid/graph.h"
#include "ir/json_writer.h"
#include "ir/op_registry.h"
#include "ir/text.h"

namespace braid {
namespace {

/// Identifiers as they are, other names in quotes.
std::string display(std::string_view name) {
  return is_identifier(name) ? std::string(name) : quote(name);
}

std::string value_names(const Graph& graph, const std::vector<ValueId>& values) {
  std::vector<std::string> names;
  for (ValueId id : values) {
    const Value& value = graph.value(id);
    const bool several = value.producer >= 0 && graph.node(value.producer).outputs.size() > 1;
    names.push_back(
        several ? fmt::format("%{}:{}", display(graph.node(value.producer).name), value.result)
                : fmt::format("%{}", display(value.name)));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string result_types(const Graph& graph, const std::vector<ValueId>& values) {
  std::vector<std::string> types;
  for (ValueId id : values) {
    const Value& value = graph.value(id);
    types.push_back(value.type.str());
    if (!value.comm_group.empty()) types.back() += " @" + display(value.comm_group);
  }
  return fmt::format("{}", fmt::join(types, ", "));
}

std::string attributes(const Node& node) {
  std::vector<std::string> parts;
  for (const AttrDef& def : node.op->attrs) {
    const auto given = node.attrs.find(def.name);
    if (given == node.attrs.end()) continue;  // optional
    const AttrValue& value = given->second;
    if (def.type == AttrType::kGraph || (def.fallback && *def.fallback == value)) continue;
    const auto* text = std::get_if<std::string>(&value);
    parts.push_back(
        fmt::format("{} = {}", def.name, text != nullptr ? display(*text) : json_attribute(value)));
  }
  for (const auto& [key, value] : node.hints) {
    parts.push_back(fmt::format("{} = {}", display(key), value));
  }
  return parts.empty() ? "" : fmt::format(" {{{}}}", fmt::join(parts, ", "));
}

void print_program(const Graph& graph, const std::string& indent, std::string& text) {
  for (ValueId id : graph.input_values()) {
    const GraphInput& input = graph.inputs()[graph.value(id).result];
    text += fmt::format("{}input {} : {}{}{}\n", indent, value_names(graph, {id}),
                        result_types(graph, {id}),
                        input.kind == InputKind::kParameter ? " parameter"
                        : input.kind == InputKind::kState   ? " state"
                                                            : "",
                        input.per_rank ? " per_rank" : "");
  }
  for (const Node& node : graph.nodes()) {
    text += fmt::format("{}{} = {}({}){} : {}", indent, value_names(graph, node.outputs),
                        node.op_name(), value_names(graph, node.inputs), attributes(node),
                        result_types(graph, node.outputs));
    if (const auto* body = node.attr<std::shared_ptr<const Graph>>("body")) {
      text += " {\n";
      print_program(**body, indent + "  ", text);
      text += indent + "}";
    }
    text += '\n';
  }
  text += fmt::format("{}output {}\n", indent, value_names(graph, graph.outputs()));
}

}  // namespace

std::string to_text(const Graph& graph) {
  std::string text = fmt::format("graph {}\n", display(graph.name()));
  for (const auto& [name, symbol] : graph.symbols()) {
    text += fmt::format("  symbol {} : {} to {}", name, symbol.min, symbol.max);
    if (symbol.multiple_of != 1) text += fmt::format(", a multiple of {}", symbol.multiple_of);
    for (const Bucket& bucket : symbol.buckets) {
      text += fmt::format(", {} up to {}",
                          bucket.multiple_of == 1
                              ? "a bucket"
                              : fmt::format("a bucket of multiples of {}", bucket.multiple_of),
                          bucket.max);
    }
    text += '\n';
  }
  for (const auto& [name, group] : graph.groups()) {
    text += fmt::format("  group {} : {} ranks{}\n", display(name), group.size,
                        group.symmetric ? "" : ", not symmetric");
  }
  print_program(graph, "  ", text);
  return text;
}

}  // namespace braid
