#include <fmt/format.h>

#include <set>

#include "braid/graph.h"
#include "ir/attributes.h"
#include "ir/fail.h"
#include "ir/groups.h"
#include "ir/json_read.h"
#include "ir/op_registry.h"
#include "ir/promotion.h"
#include "ir/scalar.h"
#include "ir/text.h"
#include "ir/text_file.h"

namespace braid {
namespace json_read {
namespace {

/// Runs `add`, and replaces the place `own` at the start of its errors by the JSON pointer.
template <class Add>
auto with_place(const Place& place, const std::string& own, Add add) {
  try {
    return add();
  } catch (const Error& error) {
    std::string rest = error.where();
    if (rest.starts_with(own)) rest.erase(0, own.size());
    throw Error(error.code(), place.str() + rest, std::string(message_of(error)));
  }
}

/// Names of getitem nodes between a collective with several results and its wait, as PyTorch writes
/// them. Each renames a result, since only a wait may read that.
using OtherNames = std::map<std::string, ValueId, std::less<>>;

/// State of the nodes list while a program is read.
struct Nodes {
  const json::array_t& list;
  OtherNames others = {};
  std::set<std::string_view> names = {};  ///< all names; empty until first asked for
};

/// An operand in JSON: a value, or a number.
struct GivenOperand {
  ValueId value = -1;
  Scalar number = {};
  Place place;
};

class Reader {
 public:
  Graph read(const json& document, const Place& place) {
    const json::object_t& object = read_object(document, place);
    auto version = object.find("braid");
    if (version == object.end()) {
      fail_at(place / "braid", "missing key \"braid\": the version of the format; expected 1");
    }
    if (version->second != 1) fail_type(version->second, place / "braid", "version 1");
    const Fields fields(document, place,
                        {"braid", "name", "symbols", "groups", "inputs", "nodes", "outputs"});
    Graph graph;
    if (const json* symbols = fields.find("symbols")) {
      read_symbols(graph, *symbols, place / "symbols");
    }
    if (const json* groups = fields.find("groups")) read_groups(graph, *groups, place / "groups");
    read_program(graph, fields, place);
    return graph;
  }

 private:
  /// Reads name, inputs, nodes and outputs, which graphs and kernel bodies share.
  static void read_program(Graph& graph, const Fields& fields, const Place& place) {
    if (fields.find("name") != nullptr) graph.set_name(fields.get<std::string>("name"));
    fields.each("inputs", [&](const json& v, const Place& p) { read_input(graph, v, p); });
    const Place nodes_place = place / "nodes";
    Nodes nodes{read_array(fields.get("nodes"), nodes_place)};
    for (std::size_t i = 0; i < nodes.list.size(); ++i) read_node(graph, nodes, i, nodes_place / i);
    fields.each("outputs", [&](const json& v, const Place& p) {
      graph.add_output(read_value(graph, v, p, nodes, nodes.list.size()));
    });
  }

  static void read_input(Graph& graph, const json& value, const Place& place) {
    const Fields fields(value, place, {"name", "dtype", "shape", "kind", "per_rank", "comm_group"});
    GraphInput input;
    fields.read("name", input.name);
    fields.read("dtype", input.type.dtype);
    fields.read("shape", input.type.shape);
    if (const json* kind = fields.find("kind")) {
      if (*kind == "parameter") {
        input.kind = InputKind::kParameter;
      } else if (*kind == "state") {
        input.kind = InputKind::kState;
      } else if (*kind != "activation") {
        fail_type(*kind, place / "kind", "\"activation\", \"parameter\" or \"state\"");
      }
    }
    fields.read_if("per_rank", input.per_rank);
    const std::string name = printable(input.name);
    const ValueId id = with_place(place, name, [&] { return graph.add_input(std::move(input)); });
    if (const json* group = fields.find("comm_group")) {
      read_comm_group(graph, id, *group, place / "comm_group");
    }
  }

  static void read_node(Graph& graph, Nodes& nodes, std::size_t index, const Place& place) {
    const Fields fields(nodes.list[index], place,
                        {"name", "op", "inputs", "attrs", "hints", "comm_group"});
    const std::string& name = read_string(fields.get("name"), place / "name");
    if (name.empty()) fail_at(place / "name", "empty; expected a name");
    if (nodes.others.contains(name)) fail_at(place / "name", "{} is defined twice", quote(name));
    const std::string& op = read_string(fields.get("op"), place / "op");
    const Place inputs_place = place / "inputs";
    const json* value = fields.find("attrs");
    const bool has_dtype = value != nullptr && value->is_object() && value->contains("dtype");
    // add_node has the message for an unknown one
    const OpDef* def = find_op(overload_of(op, has_dtype));
    Attrs attrs;
    if (value != nullptr && def != nullptr) attrs = read_attributes(graph, *def, *value, place);
    std::vector<GivenOperand> given;
    const auto& inputs = read_array(fields.get("inputs"), inputs_place, "a list of names");
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Place here = inputs_place / i;
      if (op == "getitem") {
        if (const auto result = read_result(graph, inputs[i], attrs)) {
          given.push_back({.value = *result, .place = here});
          continue;
        }
      }
      const bool may_be_number = def != nullptr && takes_numbers(*def) && i >= first_number(*def);
      if (may_be_number && is_scalar(graph, inputs[i])) {
        given.push_back({.number = read_scalar(inputs[i], here), .place = here});
        continue;
      }
      given.push_back({.value = read_value(graph, inputs[i], here, nodes, index), .place = here});
      if (op == "getitem") check_index(graph, given.back().value, attrs, place / "attrs" / "index");
    }
    if (op == "getitem" && given.size() == 1 && is_unfinished(graph, given[0].value) &&
        !graph.find(name) && !graph.find(name + ":0")) {
      nodes.others.emplace(name, given[0].value);
      return;
    }
    const NodeId id = add_promoted(graph, nodes, name, op, def, given, std::move(attrs), place);
    if (const json* hints = fields.find("hints")) {
      const Place hints_place = place / "hints";
      for (const auto& [key, hint] : read_object(*hints, hints_place)) {
        graph.set_hint(id, key, read_number(hint, hints_place / key));
      }
    }
    if (const json* groups = fields.find("comm_group")) {
      read_comm_groups(graph, graph.node(id), *groups, place / "comm_group");
    }
  }

  static bool is_scalar(const Graph& graph, const json& value) {
    if (value.is_number() || value.is_boolean()) return true;
    return special_number(value) && !graph.find(value.get_ref<const std::string&>());
  }

  /// Adds the node, with casts of operands and constants for numbers, as ATen promotes them.
  static NodeId add_promoted(Graph& graph, Nodes& nodes, const std::string& name,
                             const std::string& op, const OpDef* def,
                             const std::vector<GivenOperand>& given, Attrs attrs,
                             const Place& place) {
    using Kind = PromotedOperand::Kind;
    std::vector<PromotedOperand> operands;
    for (const GivenOperand& operand : given) {
      if (operand.value < 0) {
        operands.push_back({operand.number.dtype, Kind::kNumber});
        continue;
      }
      const TensorType& type = graph.type(operand.value);
      operands.push_back({type.dtype, type.shape.empty() ? Kind::kScalarTensor : Kind::kTensor});
    }
    const auto add = [&](const Place& at, const std::string& as, std::string_view what,
                         std::vector<ValueId> inputs, Attrs with) {
      return with_place(at, printable(as), [&] {
        return graph.add_node(as, what, std::move(inputs), std::move(with));
      });
    };
    const auto add_value = [&](const Place& at, const std::string& base, std::string_view what,
                               std::vector<ValueId> inputs, Attrs with) {
      const std::string as = fresh_name(graph, nodes, base);
      return graph.node(add(at, as, what, std::move(inputs), std::move(with))).outputs[0];
    };
    std::vector<std::optional<DType>> wanted(given.size());
    if (def != nullptr) wanted = wanted_dtypes(*def, attrs, operands);
    std::optional<DType> rounded;  // the result's dtype, if it is computed in f32
    for (std::size_t i = 0; i < given.size() && def != nullptr && keeps_numbers(*def); ++i) {
      const std::optional<DType> dtype = wanted[i];
      const bool narrow = dtype == DType::kF16 || dtype == DType::kBF16;
      if (given[i].value < 0 && narrow && !holds_exactly(*dtype, given[i].number.value)) {
        rounded = dtype;
      }
    }
    std::vector<ValueId> inputs;
    for (std::size_t i = 0; i < given.size(); ++i) {
      const bool is_number = given[i].value < 0;
      const DType own = is_number ? given[i].number.dtype : graph.type(given[i].value).dtype;
      const DType dtype = rounded ? DType::kF32 : wanted[i].value_or(own);
      const std::string base = fmt::format("{}_in{}", name, i);
      if (is_number) {
        const Attrs constant{{"value", given[i].number.value}, {"dtype", dtype}};
        try {
          inputs.push_back(add_value(given[i].place, base, "full", {}, constant));
        } catch (const Error& error) {
          fail_at(given[i].place, std::string(message_of(error)));
        }
      } else if (dtype != own) {
        inputs.push_back(
            add_value(given[i].place, base, "to", {given[i].value}, {{"dtype", dtype}}));
      } else {
        inputs.push_back(given[i].value);
      }
    }
    if (!rounded) return add(place, name, op, std::move(inputs), std::move(attrs));
    const ValueId wide = add_value(place, name + "_f32", op, std::move(inputs), std::move(attrs));
    return add(place, name, "to", {wide}, {{"dtype", *rounded}});
  }

  static bool holds_exactly(DType dtype, const AttrValue& number) {
    const double value = number_like(0.0, number);
    return round_to(dtype, value) == value;
  }

  /// A name that is unused in the program.
  static std::string fresh_name(const Graph& graph, Nodes& nodes, const std::string& base) {
    if (nodes.names.empty()) {
      for (const json& node : nodes.list) {
        if (!node.is_object()) continue;
        const auto name = node.find("name");
        if (name != node.end() && name->is_string()) {
          nodes.names.insert(name->get_ref<const std::string&>());
        }
      }
    }
    std::string name = base;
    for (int i = 1; graph.find(name) || nodes.names.contains(name); ++i) {
      name = fmt::format("{}_{}", base, i);
    }
    return name;
  }

  static bool is_unfinished(const Graph& graph, ValueId value) {
    const NodeId producer = graph.value(value).producer;
    return producer >= 0 && is_asynchronous(graph.node(producer));
  }

  /// A getitem operand that names a node, as in PyTorch: its result number `index`.
  static std::optional<ValueId> read_result(const Graph& graph, const json& value,
                                            const Attrs& attrs) {
    const auto index = attrs.find("index");
    if (!value.is_string() || index == attrs.end()) return std::nullopt;
    const auto& name = value.get_ref<const std::string&>();
    return graph.find(fmt::format("{}:{}", name, std::get<std::int64_t>(index->second)));
  }

  /// A getitem operand that names a result directly: `index` must agree.
  static void check_index(const Graph& graph, ValueId operand, const Attrs& attrs,
                          const Place& place) {
    const auto index = attrs.find("index");
    if (index == attrs.end()) return;  // add_node has the message
    const NodeId producer = graph.value(operand).producer;
    std::int64_t own = 0;
    while (producer >= 0 && graph.node(producer).outputs[own] != operand) ++own;
    const auto found = std::get<std::int64_t>(index->second);
    if (found == own) return;
    fail_at(place, "found {}; expected {}, the index of {}", found, own,
            quote(graph.value(operand).name));
  }

  static ValueId read_value(const Graph& graph, const json& value, const Place& place,
                            const Nodes& nodes, std::size_t index) {
    const std::string& name = read_string(value, place, "the name of a value");
    if (std::optional<ValueId> id = graph.find(name)) return *id;
    if (const auto other = nodes.others.find(name); other != nodes.others.end()) {
      return other->second;
    }
    if (graph.find(name + ":0")) {
      fail_at(place, "{} has several results; expected one of them, such as {}", quote(name),
              quote(name + ":0"));
    }
    // Looking ahead is worthwhile only for the error message.
    for (std::size_t later = index; later < nodes.list.size(); ++later) {
      const json& node = nodes.list[later];
      if (!node.is_object()) continue;
      auto it = node.find("name");
      if (it == node.end() || !it->is_string()) continue;
      const auto& candidate = it->get_ref<const std::string&>();
      if (candidate == name || name.starts_with(candidate + ":")) {
        fail_at(
            place,
            "{} is used before its definition in node {}; expected nodes in the order of their use",
            quote(name), later);
      }
    }
    fail_at(place, "unknown value {}; expected the name of an input or a node above", quote(name));
  }

  static Attrs read_attributes(const Graph& graph, const OpDef& op, const json& value,
                               const Place& place) {
    Attrs attrs;
    const Place attrs_place = place / "attrs";
    for (const auto& [key, entry] : read_object(value, attrs_place)) {
      const AttrDef* def = nullptr;
      with_place(place, "", [&, &name = key] { def = &find_attribute(op, name); });
      attrs.emplace(key, read_attribute(graph, *def, entry, attrs_place / key));
    }
    return attrs;
  }

  static AttrValue read_attribute(const Graph& graph, const AttrDef& def, const json& value,
                                  const Place& place) {
    const std::string_view expected = describe_attr_type(def.type);
    switch (def.type) {
      case AttrType::kBool:
        return read_bool(value, place);
      case AttrType::kInt:
        return read_int(value, place);
      case AttrType::kDouble:
        return read_number(value, place);
      case AttrType::kNumber:
        return read_scalar(value, place).value;
      case AttrType::kString:
      case AttrType::kGroup:
        return read_string(value, place, expected);
      case AttrType::kDType:
        return read_dtype(value, place);
      case AttrType::kInts:
        if (value.is_number_integer()) return std::vector{read_int(value, place)};
        return read_ints(value, place, expected);
      case AttrType::kShape:
        return read_shape(value, place);
      case AttrType::kExtent:
        return as_bound(read_dim(value, place, expected));
      case AttrType::kExtents:
        if (value.is_array()) return read_shape(value, place);
        return Shape{read_dim(value, place, expected)};
      case AttrType::kConfig:
        return read_config(value, place);
      case AttrType::kGraph: {
        Graph body;
        add_tables(body, graph.symbols(), graph.groups());
        read_program(body, Fields(value, place, {"name", "inputs", "nodes", "outputs"}), place);
        body.drop_unused_tables();
        return std::make_shared<const Graph>(std::move(body));
      }
    }
    throw_internal(place.str(), "unknown attribute type");
  }

  static void read_comm_group(Graph& graph, ValueId id, const json& value, const Place& place) {
    const std::string& group = read_string(value, place, "the name of a group");
    try {
      graph.set_comm_group(id, group);
    } catch (const Error& error) {
      fail_at(place, std::string(message_of(error)));
    }
  }

  static void read_comm_groups(Graph& graph, const Node& node, const json& value,
                               const Place& place) {
    const std::vector<ValueId> results = node.outputs;
    if (results.size() == 1) return read_comm_group(graph, results[0], value, place);
    const auto& items =
        read_array(value, place, "a list of group names or null, one for each result");
    if (items.size() != results.size()) {
      fail_at(place, "{} entries; expected {}, one for each result", items.size(), results.size());
    }
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (!items[i].is_null()) read_comm_group(graph, results[i], items[i], place / i);
    }
  }
};

/// Reads a bucket: its maximum, or an object that also has multiple_of.
Bucket read_bucket(const json& value, const Place& place) {
  if (!value.is_object()) {
    return {.max = read_int(value, place, "an integer, or an object of max and multiple_of")};
  }
  const Fields fields(value, place, {"max", "multiple_of"});
  return {.max = fields.get<std::int64_t>("max"),
          .multiple_of = fields.get<std::int64_t>("multiple_of")};
}

}  // namespace

void read_symbols(Graph& graph, const json& value, const Place& place) {
  for (const auto& [name, entry] : read_object(value, place)) {
    const Place here = place / name;
    const Fields fields(entry, here, {"min", "max", "multiple_of", "buckets"});
    Symbol symbol;
    fields.read_if("min", symbol.min);
    fields.read("max", symbol.max);
    fields.read_if("multiple_of", symbol.multiple_of);
    if (fields.find("buckets") != nullptr) {
      fields.each("buckets", [&](const json& v, const Place& p) {
        symbol.buckets.push_back(read_bucket(v, p));
      });
    }
    with_place(here, "/symbols" + pointer_step(name),
               [&, &key = name] { graph.add_symbol(key, symbol); });
  }
}

void read_groups(Graph& graph, const json& value, const Place& place) {
  for (const auto& [name, entry] : read_object(value, place)) {
    const Place here = place / name;
    const Fields fields(entry, here, {"size", "symmetric", "ranks"});
    Group group;
    fields.read("size", group.size);
    fields.read_if("symmetric", group.symmetric);
    if (fields.find("ranks") != nullptr) {
      fields.each("ranks", [&](const json& v, const Place& p) {
        group.ranks.push_back(read_ints(v, p, "a list of ranks"));
      });
    }
    with_place(here, "/groups" + pointer_step(name),
               [&, &key = name] { graph.add_group(key, group); });
  }
}

Graph read_graph(const json& document, const Place& place) {
  return Reader().read(document, place);
}

}  // namespace json_read

Graph parse_graph(std::string_view text, std::string_view where) {
  const Place place(where);
  json_read::Document document;
  json_read::parse(text, place, document);
  return json_read::read_graph(document.root, place);
}

Graph load_graph(const std::string& path) {
  return parse_graph(read_text(path, kMaxGraphBytes), path);
}

}  // namespace braid
