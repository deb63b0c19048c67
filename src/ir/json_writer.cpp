#include "ir/json_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <type_traits>

#include "braid/error.h"
#include "ir/op_registry.h"

namespace braid {
namespace {

std::string json_type(const TensorType& type) {
  return fmt::format(R"("dtype": "{}", "shape": {})", dtype_name(type.dtype),
                     json_shape(type.shape));
}

/// Appends the JSON of one graph, with one entry per line.
class Writer {
 public:
  std::string write(const Graph& graph) {
    text_ = "{\n  \"braid\": 1,\n";
    text_ += fmt::format("  \"name\": {},\n", json_string(graph.name()));
    write_symbols(graph);
    write_groups(graph);
    write_program(graph, "  ");
    text_ += "}\n";
    return std::move(text_);
  }

 private:
  /// Writes `"key": open ... close` with `entry(item)` on a line of its own for each item.
  template <class Items, class Entry>
  void write_lines(const std::string& indent, std::string_view head, char close, const Items& items,
                   Entry entry) {
    text_ += indent;
    text_ += head;
    bool first = true;
    for (const auto& item : items) {
      text_ += first ? "\n" : ",\n";
      text_ += indent + "  ";
      entry(item);
      first = false;
    }
    if (!first) text_ += '\n' + indent;
    text_ += close;
  }

  void write_symbols(const Graph& graph) {
    if (graph.symbols().empty()) return;
    write_lines("  ", "\"symbols\": {", '}', graph.symbols(), [&](const auto& entry) {
      const auto& [name, symbol] = entry;
      text_ +=
          fmt::format(R"({}: {{"min": {}, "max": {})", json_string(name), symbol.min, symbol.max);
      if (symbol.multiple_of != 1)
        text_ += fmt::format(R"(, "multiple_of": {})", symbol.multiple_of);
      write_buckets(symbol);
      text_ += '}';
    });
    text_ += ",\n";
  }

  void write_buckets(const Symbol& symbol) {
    if (symbol.buckets.empty()) return;
    const char* separator = R"(, "buckets": [)";
    for (const Bucket& bucket : symbol.buckets) {
      text_ += separator;
      text_ += bucket.multiple_of == 1 ? fmt::format("{}", bucket.max)
                                       : fmt::format(R"({{"max": {}, "multiple_of": {}}})",
                                                     bucket.max, bucket.multiple_of);
      separator = ", ";
    }
    text_ += ']';
  }

  void write_groups(const Graph& graph) {
    if (graph.groups().empty()) return;
    write_lines("  ", "\"groups\": {", '}', graph.groups(), [&](const auto& entry) {
      const auto& [name, group] = entry;
      text_ += fmt::format(R"({}: {{"size": {})", json_string(name), group.size);
      if (!group.symmetric) text_ += R"(, "symmetric": false)";
      if (!group.ranks.empty()) text_ += fmt::format(R"(, "ranks": {})", group.ranks);
      text_ += '}';
    });
    text_ += ",\n";
  }

  /// Writes inputs, nodes and outputs, which graphs and kernel bodies share.
  void write_program(const Graph& graph, const std::string& indent) {
    write_lines(indent, "\"inputs\": [", ']', graph.input_values(),
                [&](ValueId id) { write_input(graph, id); });
    text_ += ",\n";
    write_lines(indent, "\"nodes\": [", ']', graph.nodes(),
                [&](const Node& node) { write_node(graph, node, indent + "  "); });
    text_ += ",\n" + indent + "\"outputs\": ";
    write_names(graph, graph.outputs());
    text_ += '\n';
  }

  void write_names(const Graph& graph, const std::vector<ValueId>& values) {
    text_ += '[';
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0) text_ += ", ";
      text_ += json_string(graph.value(values[i]).name);
    }
    text_ += ']';
  }

  void write_input(const Graph& graph, ValueId id) {
    const Value& value = graph.value(id);
    const GraphInput& input = graph.inputs()[value.result];
    text_ += fmt::format(R"({{"name": {}, {})", json_string(input.name), json_type(input.type));
    if (input.kind == InputKind::kParameter) text_ += R"(, "kind": "parameter")";
    if (input.kind == InputKind::kState) text_ += R"(, "kind": "state")";
    if (input.per_rank) text_ += R"(, "per_rank": true)";
    if (!value.comm_group.empty()) {
      text_ += fmt::format(R"(, "comm_group": {})", json_string(value.comm_group));
    }
    text_ += '}';
  }

  void write_node(const Graph& graph, const Node& node, const std::string& indent) {
    text_ += fmt::format(R"({{"name": {}, "op": "{}", "inputs": )", json_string(node.name),
                         node.op_name());
    write_names(graph, node.inputs);
    write_attributes(node, indent);
    write_comm_group(graph, node);
    if (!node.hints.empty()) {
      text_ += ", \"hints\": {";
      bool first = true;
      for (const auto& [key, value] : node.hints) {
        text_ += fmt::format("{}{}: {}", first ? "" : ", ", json_string(key), value);
        first = false;
      }
      text_ += '}';
    }
    text_ += '}';
  }

  void write_attributes(const Node& node, const std::string& indent) {
    bool first = true;
    const std::shared_ptr<const Graph>* body = nullptr;
    auto open = [&](const std::string& key) {
      text_ += fmt::format("{}\"{}\": ", first ? ", \"attrs\": {" : ", ", key);
      first = false;
    };
    for (const AttrDef& def : node.op->attrs) {
      const auto given = node.attrs.find(def.name);
      if (given == node.attrs.end()) continue;  // optional
      const AttrValue& value = given->second;
      if (def.type == AttrType::kGraph) {
        body = std::get_if<std::shared_ptr<const Graph>>(&value);
        continue;
      }
      if (def.fallback && *def.fallback == value) continue;
      open(def.name);
      text_ += json_attribute(value);
    }
    if (body != nullptr) {
      open("body");
      text_ += "{\n";
      if (!(*body)->name().empty()) {
        text_ += fmt::format("{}  \"name\": {},\n", indent, json_string((*body)->name()));
      }
      write_program(**body, indent + "  ");
      text_ += indent + "}";
    }
    if (!first) text_ += '}';
  }

  void write_comm_group(const Graph& graph, const Node& node) {
    bool any = false;
    std::string list;
    for (ValueId id : node.outputs) {
      const std::string& group = graph.value(id).comm_group;
      any = any || !group.empty();
      list += fmt::format("{}{}", list.empty() ? "" : ", ",
                          group.empty() ? "null" : json_string(group));
    }
    if (!any) return;
    text_ += ", \"comm_group\": ";
    text_ += node.outputs.size() == 1 ? list : fmt::format("[{}]", list);
  }

  std::string text_;
};

}  // namespace

std::string json_shape(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += shape[i].is_constant() ? shape[i].str() : fmt::format("\"{}\"", shape[i].str());
  }
  return text + ']';
}

std::string json_attribute(const AttrValue& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::string>) {
          return json_string(v);
        } else if constexpr (std::is_same_v<T, DType>) {
          return fmt::format("\"{}\"", dtype_name(v));
        } else if constexpr (std::is_same_v<T, Shape>) {
          return json_shape(v);
        } else if constexpr (std::is_same_v<T, std::map<std::string, std::int64_t>>) {
          std::string text = "{";
          for (const auto& [key, number] : v) {
            text += fmt::format("{}{}: {}", text.size() > 1 ? ", " : "", json_string(key), number);
          }
          return text + '}';
        } else if constexpr (std::is_same_v<T, double>) {
          if (std::isnan(v)) return "\"nan\"";
          if (std::isinf(v)) return v > 0 ? "\"inf\"" : "\"-inf\"";
          const std::string text = fmt::format("{}", v);  // 2.0 and -0.0 stay floats
          return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
        } else if constexpr (std::is_same_v<T, std::shared_ptr<const Graph>>) {
          throw_internal("json_attribute", "a graph is not printed on one line");
        } else {
          return fmt::format("{}", v);
        }
      },
      value);
}

std::string to_json(const Graph& graph) { return Writer().write(graph); }

}  // namespace braid
