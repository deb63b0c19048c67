#include "ir/graph_schema.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "ir/op_registry.h"
#include "support.h"

namespace braid {
namespace {

// `BRAID_UPDATE_SCHEMA=1` rewrites the file.
TEST(GraphSchema, TheCheckedInOneIsThatOfTheRegistry) {
  const std::string path = BRAID_SOURCE_DIR "/docs/graph.schema.json";
  if (std::getenv("BRAID_UPDATE_SCHEMA") != nullptr) std::ofstream(path) << graph_schema();
  std::ostringstream have;
  have << std::ifstream(path).rdbuf();
  EXPECT_EQ(have.str(), graph_schema()) << "run with BRAID_UPDATE_SCHEMA=1";
}

TEST(GraphSchema, EachOpHasItsOwnOperandsAndAttributes) {
  const auto node = nlohmann::json::parse(graph_schema())["$defs"]["node"];
  EXPECT_EQ(node["properties"]["op"]["enum"].size(), all_ops().size());
  ASSERT_EQ(node["allOf"].size(), all_ops().size());
  for (std::size_t i = 0; i < all_ops().size(); ++i) {
    const OpDef& op = *all_ops()[i];
    EXPECT_EQ(node["allOf"][i]["if"]["properties"]["op"]["const"], op.name);
    const auto& attrs = node["allOf"][i]["then"]["properties"]["attrs"];
    for (const AttrDef& def : op.attrs) {
      EXPECT_TRUE(attrs["properties"].contains(def.name)) << op.name << " " << def.name;
    }
    if (op.name == "view") {
      EXPECT_TRUE(attrs["properties"].contains("dtype"));
      EXPECT_FALSE(attrs.contains("required"));
    }
    if (op.name == "broadcast") {
      EXPECT_EQ(attrs["required"], (std::vector<std::string>{"src", "group"}));
    }
  }
}

using nlohmann::json;

/// Validates attributes by the schema, for the keywords that it uses.
class Validator {
 public:
  explicit Validator(const json& schema) : schema_(schema) {}

  [[nodiscard]] bool allows(const json& rule, const json& value) const {
    for (const auto& [key, what] : rule.items()) {
      if (!holds(key, what, value)) return false;
    }
    return true;
  }

 private:
  [[nodiscard]] bool holds(const std::string& key, const json& what, const json& value) const {
    const auto allowed = [&](const json& rule) { return allows(rule, value); };
    if (key == "$ref") {
      return allows(schema_.at(json::json_pointer(what.get<std::string>().substr(1))), value);
    }
    if (key == "anyOf") return std::any_of(what.begin(), what.end(), allowed);
    if (key == "enum") return std::find(what.begin(), what.end(), value) != what.end();
    if (key == "type") return is_of(what, value);
    if (key == "items" || key == "additionalProperties") {
      if (!value.is_structured() || what.is_boolean()) return true;
      return std::all_of(value.begin(), value.end(),
                         [&](const json& item) { return allows(what, item); });
    }
    if (key == "maxItems") return !value.is_array() || value.size() <= what.get<std::size_t>();
    if (key == "required") {
      return std::all_of(what.begin(), what.end(), [&](const json& name) {
        return !value.is_object() || value.contains(name.get<std::string>());
      });
    }
    EXPECT_TRUE(key == "default" || key == "description" || key == "properties") << key;
    return true;
  }
  static bool is_of(const json& type, const json& value) {
    if (type.is_array()) {
      return std::any_of(type.begin(), type.end(),
                         [&](const json& one) { return is_of(one, value); });
    }
    if (type == "number") return value.is_number();
    if (type == "integer") return value.is_number_integer();
    return type == value.type_name();
  }

  const json& schema_;
};

/// The place at which the reader refuses a node of the op with these operands, all f32[2], and one
/// attribute.
std::string refused_at(const std::string& op, int operands, const std::string& key,
                       const json& value) {
  const json graph{{"braid", 1},
                   {"symbols", {{"T", {{"max", 8}}}}},
                   {"groups", {{"tp", {{"size", 2}}}}},
                   {"inputs", {{{"name", "x"}, {"dtype", "f32"}, {"shape", {2}}}}},
                   {"nodes",
                    {{{"name", "n"},
                      {"op", op},
                      {"inputs", std::vector<std::string>(static_cast<std::size_t>(operands), "x")},
                      {"attrs", {{key, value}}}}}},
                   {"outputs", json::array({"n"})}};
  const std::string error = error_of([&] { static_cast<void>(parse_graph(graph.dump())); });
  return error.substr(0, error.find(' '));
}

TEST(GraphSchema, TheReaderTakesWhatItAllows) {
  const json schema = json::parse(graph_schema());
  const Validator validator(schema);
  const json values = json::parse(
      R"([true, 3, -2.5, "inf", "NaN", "sum", "max", "none", "tanh", "floor", "f32", "T", "2*T+1",
          [], [1, 2], ["T", 2], [1.5], {}, {"a": 1}, {"a": true}, null])");
  for (const json& entry : schema["$defs"]["node"]["allOf"]) {
    const auto op = entry["if"]["properties"]["op"]["const"].get<std::string>();
    if (op == "getitem") continue;  // another name of its operand
    const OpDef& def = *find_op(op);
    const bool any_number = def.max_inputs == std::numeric_limits<int>::max();
    for (const auto& [key, rule] : entry["then"]["properties"]["attrs"]["properties"].items()) {
      for (const json& value : values) {
        SCOPED_TRACE(op + " " + key + " " + value.dump());
        const std::string place = "/nodes/0/attrs/" + key;
        if (!validator.allows(rule, value)) {
          EXPECT_TRUE(refused_at(op, def.min_inputs, key, value).starts_with(place));
        } else if (const int wrong = any_number ? def.min_inputs - 1 : def.max_inputs + 1;
                   wrong >= 0 && key != "body") {
          // Read as what it is, so that it is the operands that are wrong.
          EXPECT_EQ(refused_at(op, wrong, key, value), "/nodes/0/inputs");
        }
      }
    }
  }
}

/// Nodes in which an attribute with choices may be any of them.
constexpr std::pair<const char*, const char*> kNodes[] = {
    {"all_reduce", R"({"inputs": ["x"], "attrs": {"group": "tp", "reduce_op": "sum"}})"},
    {"all_reduce_", R"({"inputs": ["x"], "attrs": {"group": "tp", "reduce_op": "sum"}})"},
    {"all_reduce_coalesced", R"({"inputs": ["x"], "attrs": {"group": "tp", "reduce_op": "sum"}})"},
    {"all_reduce_coalesced_", R"({"inputs": ["x"], "attrs": {"group": "tp", "reduce_op": "sum"}})"},
    {"reduce_scatter_tensor", R"({"inputs": ["x"], "attrs": {"group": "tp", "reduce_op": "sum"}})"},
    {"reduce_scatter_tensor_coalesced",
     R"({"inputs": ["x"], "attrs": {"group": "tp", "reduce_op": "sum"}})"},
    {"all_gather_into_tensor", R"({"inputs": ["x"], "attrs": {"group": "tp"}})"},
    {"all_gather_into_tensor_out", R"({"inputs": ["x", "y"], "attrs": {"group": "tp"}})"},
    {"all_gather_into_tensor_coalesced", R"({"inputs": ["x"], "attrs": {"group": "tp"}})"},
    {"all_to_all_single", R"({"inputs": ["x"], "attrs": {"group": "tp"}})"},
    {"broadcast", R"({"inputs": ["x"], "attrs": {"group": "tp", "src": 0}})"},
    {"broadcast_", R"({"inputs": ["x"], "attrs": {"group": "tp", "src": 0}})"},
    {"shard_dim_alltoall",
     R"({"inputs": ["x"], "attrs": {"group": "tp", "gather_dim": 0, "shard_dim": 1}})"},
    {"fused_matmul_all_reduce",
     R"({"inputs": ["x", "x"], "attrs": {"group": "tp", "reduce_op": "sum"}})"},
    {"fused_matmul_reduce_scatter",
     R"({"inputs": ["x", "x"], "attrs": {"group": "tp", "reduce_op": "sum", "scatter_dim": 0}})"},
    {"fused_scaled_matmul_all_reduce",
     R"({"inputs": ["f", "f", "s", "s"], "attrs": {"group": "tp", "reduce_op": "sum"}})"},
    {"fused_scaled_matmul_reduce_scatter",
     R"({"inputs": ["f", "f", "s", "s"],
         "attrs": {"group": "tp", "reduce_op": "sum", "scatter_dim": 0}})"},
    {"moe_experts", R"({"inputs": ["x", "c", "w", "g", "d"], "attrs": {}})"},
    {"gelu", R"({"inputs": ["x"], "attrs": {}})"},
    {"opaque", R"({"inputs": [], "attrs": {"dtype": "f32", "shape": [2]}})"},
    {"div", R"({"inputs": ["i", "i"], "attrs": {}})"},
};

TEST(GraphSchema, TheReaderTakesEachChoice) {
  const json schema = json::parse(graph_schema());
  for (const json& entry : schema["$defs"]["node"]["allOf"]) {
    const auto op = entry["if"]["properties"]["op"]["const"].get<std::string>();
    for (const auto& [key, rule] : entry["then"]["properties"]["attrs"]["properties"].items()) {
      if (!rule.contains("enum")) continue;
      const auto* example = std::find_if(std::begin(kNodes), std::end(kNodes),
                                         [&](const auto& node) { return node.first == op; });
      ASSERT_NE(example, std::end(kNodes)) << "an example of " << op;
      for (const json& choice : rule["enum"]) {
        json node = json::parse(example->second);
        node["name"] = "n";
        node["op"] = op;
        node["attrs"][key] = choice;
        const json graph{{"braid", 1},
                         {"groups", {{"tp", {{"size", 2}}}}},
                         {"inputs", json::parse(R"([{"name": "x", "dtype": "f32", "shape": [4, 4]},
                                       {"name": "y", "dtype": "f32", "shape": [8, 4]},
                                       {"name": "f", "dtype": "f8e4m3", "shape": [16, 16]},
                                       {"name": "s", "dtype": "f32", "shape": []},
                                       {"name": "c", "dtype": "i32", "shape": [4, 2]},
                                       {"name": "w", "dtype": "f32", "shape": [4, 2]},
                                       {"name": "g", "dtype": "f32", "shape": [3, 4, 4]},
                                       {"name": "d", "dtype": "f32", "shape": [3, 2, 4]},
                                       {"name": "i", "dtype": "i32", "shape": [4]}])")},
                         {"nodes", json::array({node})},
                         {"outputs", json::array({"x"})}};
        EXPECT_EQ(error_of([&] { static_cast<void>(parse_graph(graph.dump())); }), "no error")
            << op << " " << key << " " << choice;
      }
    }
  }
}

}  // namespace
}  // namespace braid
