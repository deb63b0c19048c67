#include "ir/json_writer.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "ir/op_registry.h"
#include "support.h"

namespace braid {
namespace {

using nlohmann::json;

/// A graph that uses everything the format has.
Graph full_graph() {
  Graph graph("full \"quoted\"");
  graph.add_symbol("T", {8, 256, 8});
  graph.add_symbol("S", {1, 4, 1});
  graph.add_group("tp", {2, false, {{0, 1}, {2, 3}}});
  graph.add_group("dp", {2, true, {{0, 2}, {1, 3}}});
  const TensorType row{DType::kBF16, {sym("T"), 8}};
  const ValueId x = graph.add_input({"x", row, InputKind::kActivation, true});
  const ValueId w = graph.add_input({"w", {DType::kBF16, {8}}, InputKind::kParameter});
  graph.set_comm_group(x, "dp");
  auto body = std::make_shared<Graph>(graph.clone_interface());
  body->set_name("body");
  body->add_node("r", "relu", {0});
  body->add_node("n", "add_rms_norm2", {0, 2, 1}, {{"eps", 1e-5}});
  body->add_output(3);
  body->add_output(4);
  const NodeId k = graph.add_node(
      "k", "kernel", {x, w},
      {{"body", std::shared_ptr<const Graph>(body)},
       {"config", std::map<std::string, std::int64_t>{{"BLOCK_M", 4}, {"num_warps", 8}}}});
  const std::vector<ValueId> results = graph.node(k).outputs;
  graph.set_comm_group(results[1], "tp");
  graph.set_hint(k, "runtime_ns", 1250.5);
  graph.set_hint(k, "bytes", 64);
  const NodeId c = graph.add_node("c", "all_reduce", {results[1]},
                                  {{"reduce_op", std::string("sum")},
                                   {"group", std::string("tp")},
                                   {"algorithm", std::string("one_shot")}});
  graph.set_comm_group(graph.node(c).outputs[0], "tp");
  const NodeId d = graph.add_node(
      "d", "all_reduce", {x}, {{"reduce_op", std::string("sum")}, {"group", std::string("dp")}});
  const NodeId s = graph.add_node("s", "wait_tensor", graph.node(d).outputs);
  const NodeId v =
      graph.add_node("v", "view", graph.node(s).outputs, {{"shape", Shape{2, -1, sym("T") * 2}}});
  const NodeId t = graph.add_node("t", "transpose", graph.node(v).outputs,
                                  {{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{-1}}});
  const NodeId f = graph.add_node("f", "to", graph.node(t).outputs, {{"dtype", DType::kF32}});
  const NodeId m = graph.add_node("m", "amax", graph.node(f).outputs,
                                  {{"dim", std::vector<std::int64_t>{0, 2}}, {"keepdim", true}});
  for (ValueId id : {results[0], graph.node(c).outputs[0], graph.node(m).outputs[0]})
    graph.add_output(id);
  verify(graph);
  return graph;
}

json load_json(const std::string& path) { return json::parse(std::ifstream(path)); }

TEST(JsonWriter, RoundTripsEverything) {
  const std::string text = to_json(full_graph());
  EXPECT_EQ(to_json(parse_graph(text)), text);
  EXPECT_EQ(to_text(parse_graph(text)), to_text(full_graph()));
}

TEST(JsonWriter, RoundTripsTheExamples) {
  for (const char* name : {"tp_mlp", "llama_mlp"}) {
    const Graph graph = load_graph(std::string(BRAID_SOURCE_DIR "/examples/") + name + ".json");
    verify(graph);
    const std::string text = to_json(graph);
    EXPECT_EQ(to_json(parse_graph(text)), text);
  }
}

TEST(JsonWriter, WritesOneNodePerLineWithoutDefaults) {
  Graph graph = graph_with({{DType::kF32, {sym("T"), 2}}});
  graph.add_node("m", "sum", {0}, {{"dim", std::int64_t{-1}}});
  graph.add_node("e", "exp", {1});
  graph.add_output(2);
  EXPECT_EQ(to_json(graph), R"({
  "braid": 1,
  "name": "test",
  "symbols": {
    "S": {"min": 1, "max": 64},
    "T": {"min": 1, "max": 256}
  },
  "groups": {
    "tp": {"size": 2}
  },
  "inputs": [
    {"name": "a", "dtype": "f32", "shape": ["T", 2]}
  ],
  "nodes": [
    {"name": "m", "op": "sum", "inputs": ["a"], "attrs": {"dim": [-1]}},
    {"name": "e", "op": "exp", "inputs": ["m"]}
  ],
  "outputs": ["e"]
}
)");
}

/// Checks objects against the part of JSON Schema that the graph's schema uses for keys:
/// properties, additionalProperties, items, anyOf, $ref, and rules by a node's op.
void check_keys(const json& root, const json& schema, const json& value, const std::string& place) {
  if (schema.contains("$ref")) {
    const std::string ref = schema["$ref"];
    check_keys(root, root.at(json::json_pointer(ref.substr(1))), value, place);
    return;
  }
  if (value.is_array() && schema.contains("items")) {
    for (const json& item : value) check_keys(root, schema["items"], item, place + "/*");
  }
  if (!value.is_object()) return;
  for (const json& rule : schema.value("allOf", json::array())) {
    const json& attrs = rule["then"]["properties"]["attrs"];
    if (rule["if"]["properties"]["op"]["const"] == value["op"] && value.contains("attrs")) {
      check_keys(root, attrs, value["attrs"], place + "/attrs");
    }
  }
  for (const auto& [key, entry] : value.items()) {
    if (schema.contains("allOf") && key == "attrs") continue;
    if (schema.contains("properties") && schema["properties"].contains(key)) {
      check_keys(root, schema["properties"][key], entry, place + "/" + key);
    } else {
      const json& others = schema.at("additionalProperties");
      EXPECT_TRUE(others.is_object()) << place << "/" << key << " is not in the schema";
      if (others.is_object()) check_keys(root, others, entry, place + "/" + key);
    }
  }
}

TEST(JsonWriter, TheSchemaListsEveryKey) {
  const json schema = load_json(BRAID_SOURCE_DIR "/docs/graph.schema.json");
  check_keys(schema, schema, json::parse(to_json(full_graph())), "");
}

}  // namespace
}  // namespace braid
