#include <cmath>
#include <ctime>
#include <fstream>
#include <limits>

#include "support.h"

namespace braid {
namespace {

/// A good document with `from` replaced by `to`.
std::string edited(const std::string& from, const std::string& to) {
  std::string text = R"({"braid": 1, "name": "small",
    "symbols": {"T": {"min": 1, "max": 64}},
    "groups": {"tp": {"size": 2}},
    "inputs": [{"name": "x", "dtype": "bf16", "shape": ["T", 8]},
               {"name": "w", "dtype": "bf16", "shape": [8], "kind": "parameter"}],
    "nodes": [{"name": "a", "op": "silu", "inputs": ["x"]},
              {"name": "c", "op": "all_reduce", "inputs": ["a"], "attrs": {"reduce_op": "sum", "group": "tp"}},
              {"name": "s", "op": "wait_tensor", "inputs": ["c:0"]},
              {"name": "two", "op": "add_rms_norm2", "inputs": ["s", "x", "w"], "attrs": {"eps": 1e-5}},
              {"name": "m", "op": "sum", "inputs": ["two:1"], "attrs": {"dim": 1, "keepdim": true}},
              {"name": "v", "op": "view", "inputs": ["two:0"], "attrs": {"shape": ["8*T"]}}],
    "outputs": ["m", "v"]})";
  if (!from.empty()) {
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  }
  return text;
}

std::string parse_error(const std::string& text, const char* where = "") {
  return error_of([&] { static_cast<void>(parse_graph(text, where)); });
}

TEST(JsonReader, ReadsAGoodDocument) {
  const Graph graph = parse_graph(edited("", ""));
  EXPECT_EQ(graph.name(), "small");
  EXPECT_EQ(graph.symbols().at("T"), (Symbol{1, 64, 1}));
  EXPECT_EQ(graph.inputs()[1].kind, InputKind::kParameter);
  EXPECT_EQ(graph.nodes().size(), 6U);
  EXPECT_EQ(graph.type(graph.outputs()[0]).str(), "bf16[T, 1]");
  EXPECT_EQ(graph.type(graph.outputs()[1]).str(), "bf16[8*T]");
}

struct Case {
  const char* from;
  const char* to;
  const char* where;
  const char* fragment;
};

TEST(JsonReader, NamesThePlaceOfEachFault) {
  const Case cases[] = {
      {"\"braid\": 1", "\"braid\": 2", "/braid", "found 2; expected version 1"},
      {"\"braid\": 1, ", "", "/braid", "missing key \"braid\""},
      {"\"name\": \"small\"", "\"nam\": \"small\"", "/nam",
       "unknown key \"nam\"; expected one of braid, name"},
      {"\"name\": \"small\"", "\"name\": 3", "/name", "found 3; expected a string"},
      {"\"max\": 64", "\"maximum\": 64", "/symbols/T/maximum", "unknown key"},
      {", \"max\": 64", "", "/symbols/T/max", "missing key \"max\""},
      {"\"max\": 64", "\"max\": 0", "/symbols/T/max", "max is 0"},
      {"\"max\": 64", "\"max\": 64.5", "/symbols/T/max", "found 64.5; expected an integer"},
      {"\"T\": {", "\"T/~\": {", "/symbols/T~1~0", "cannot name a symbol"},
      {"{\"size\": 2}", "{\"size\": 0}", "/groups/tp/size", "size is 0"},
      {"{\"size\": 2}", "{\"size\": 2, \"ranks\": [[0, 1], [2, \"x\"]]}", "/groups/tp/ranks/1/1",
       "found the string \"x\"; expected an integer"},
      {"{\"size\": 2}", "{\"size\": 2, \"symmetric\": 1}", "/groups/tp/symmetric",
       "expected true or false"},
      {"\"shape\": [8]", "\"shape\": [99999999999999999999]", "/inputs/1/shape/0",
       "expected an integer"},
      {"\"shape\": [8]", "\"shape\": [9223372036854775808]", "/inputs/1/shape/0",
       "expected an integer"},
      {"\"shape\": [8]", "\"shape\": [\"T*T\"]", "/inputs/1/shape/0", "an affine expression"},
      {"\"shape\": [8]", "\"shape\": [\"U\"]", "/inputs/1/shape/0",
       "unknown symbol \"U\"; expected \"T\""},
      {"\"shape\": [8]", "\"shape\": [1048576, 1048576]", "/inputs/1/shape", "2^40 elements"},
      {"\"shape\": [8]", "\"shape\": 8", "/inputs/1/shape", "found 8; expected a list"},
      {"\"dtype\": \"bf16\"", "\"dtype\": \"bfloat16\"", "/inputs/0/dtype",
       "found the string \"bfloat16\"; expected a dtype"},
      {"\"kind\": \"parameter\"", "\"kind\": \"weight\"", "/inputs/1/kind",
       "\"activation\", \"parameter\" or \"state\""},
      {"\"name\": \"w\"", "\"name\": \"x\"", "/inputs/1/name", "\"x\" is defined twice"},
      {"\"name\": \"w\", ", "", "/inputs/1/name", "missing key \"name\""},
      {"\"name\": \"s\"", "\"name\": \"a\"", "/nodes/2/name", "\"a\" is defined twice"},
      {"\"name\": \"s\"", "\"name\": \"\"", "/nodes/2/name", "empty"},
      {"\"op\": \"silu\"", "\"op\": \"swish\"", "/nodes/0/op",
       "unknown op \"swish\"; expected one of "},
      {"\"inputs\": [\"x\"]", "\"inputs\": [\"m\"]", "/nodes/0/inputs/0",
       "used before its definition in node 4"},
      {"\"inputs\": [\"x\"]", "\"inputs\": [\"two:1\"]", "/nodes/0/inputs/0",
       "used before its definition in node 3"},
      {"\"inputs\": [\"x\"]", "\"inputs\": [\"a\"]", "/nodes/0/inputs/0",
       "used before its definition in node 0"},
      {"\"inputs\": [\"x\"]", "\"inputs\": [\"q\"]", "/nodes/0/inputs/0", "unknown value \"q\""},
      {"\"inputs\": [\"x\"]", "\"inputs\": [7]", "/nodes/0/inputs/0",
       "found 7; expected the name of a value"},
      {"\"inputs\": [\"x\"]", "\"inputs\": [\"x\", \"x\"]", "/nodes/0/inputs",
       "2 operands for silu; expected 1"},
      {"\"two:1\"", "\"two\"", "/nodes/4/inputs/0",
       "several results; expected one of them, such as \"two:0\""},
      {"\"c:0\"", "\"c:1\"", "/nodes/2/inputs/0", "unknown value \"c:1\""},
      {"\"group\": \"tp\"", "\"group\": \"dp\"", "/nodes/1/attrs/group",
       "unknown group \"dp\"; expected \"tp\""},
      {"\"group\": \"tp\"", "\"group\": 1", "/nodes/1/attrs/group",
       "found 1; expected the name of a group"},
      {"\"group\": \"tp\"", "\"grp\": \"tp\"", "/nodes/1/attrs/grp",
       "all_reduce has no attribute \"grp\""},
      {", \"group\": \"tp\"", "", "/nodes/1/attrs/group", "missing"},
      {"\"reduce_op\": \"sum\"", "\"reduce_op\": \"median\"", "/nodes/1/attrs/reduce_op",
       "expected one of \"sum\""},
      {"\"eps\": 1e-5", "\"eps\": \"small\"", "/nodes/3/attrs/eps", "expected a number"},
      {"[\"s\", \"x\", \"w\"]", "[\"s\", \"w\", \"w\"]", "/nodes/3/inputs/1",
       "the residual of add_rms_norm2 is bf16[8]"},
      {"\"dim\": 1", "\"dim\": 2", "/nodes/4/attrs/dim", "out of range"},
      {"\"dim\": 1", "\"dim\": [0, true]", "/nodes/4/attrs/dim/1",
       "found true; expected an integer"},
      {"[\"8*T\"]", "[\"4*T\"]", "/nodes/5/attrs/shape", "cannot be viewed as"},
      {"{\"shape\": [\"8*T\"]}}", "{\"shape\": [\"8*T\"]}, \"hints\": {\"runtime_ns\": \"1\"}}",
       "/nodes/5/hints/runtime_ns", "expected a number"},
      {"{\"shape\": [\"8*T\"]}}", "{\"shape\": [\"8*T\"]}, \"comm_group\": \"dp\"}",
       "/nodes/5/comm_group", "unknown group \"dp\""},
      {"{\"eps\": 1e-5}}", "{\"eps\": 1e-5}, \"comm_group\": [\"tp\"]}", "/nodes/3/comm_group",
       "1 entries; expected 2"},
      {"{\"eps\": 1e-5}}", "{\"eps\": 1e-5}, \"stream\": 1}", "/nodes/3/stream", "unknown key"},
      {"[\"m\", \"v\"]", "[\"m\", \"q\"]", "/outputs/1", "unknown value \"q\""},
      {"\"outputs\"", "\"results\"", "/results", "unknown key"},
      {"\"nodes\": [", "\"nodes\": [[], ", "/nodes/0", "found a list; expected an object"},
      {"\"name\": \"small\"", "\"braid\": 1", "", "the key \"braid\" stands twice in one object"},
  };
  for (const Case& c : cases) {
    EXPECT_TRUE(is_error(parse_error(edited(c.from, c.to)), c.where, c.fragment)) << c.to;
  }
}

TEST(JsonReader, AGetitemNamesAResultThatIsThere) {
  const auto with = [](const std::string& operand, const std::string& index) {
    return edited(
        R"("op": "view", "inputs": ["two:0"], "attrs": {"shape": ["8*T"]})",
        R"("op": "getitem", "inputs": [")" + operand + R"("], "attrs": {"index": )" + index + "}");
  };
  for (const auto& [operand, index] :
       {std::pair("two", "1"), {"two:1", "1"}, {"a", "0"}, {"x", "0"}}) {
    EXPECT_EQ(parse_graph(with(operand, index)).nodes().size(), 6U) << operand;
  }
  const std::string where = "/nodes/5/attrs/index";
  EXPECT_TRUE(
      is_error(parse_error(with("a", "1")), where, "found 1; expected 0, the index of \"a\""));
  EXPECT_TRUE(is_error(parse_error(with("x", "-1")), where, "found -1; expected 0"));
  EXPECT_TRUE(is_error(parse_error(with("two:0", "1")), where, "found 1; expected 0"));
  EXPECT_TRUE(is_error(parse_error(with("two", "2")), "/nodes/5/inputs/0", "several results"));
}

TEST(JsonReader, AGetitemMayStandBetweenACollectiveAndItsWait) {
  const auto with = [](const std::string& nodes, const std::string& output) {
    return R"({"braid": 1, "groups": {"tp": {"size": 2}}, "inputs": [
      {"name": "x", "dtype": "f32", "shape": [4], "per_rank": true},
      {"name": "y", "dtype": "f32", "shape": [2], "per_rank": true}], "nodes": [
      {"name": "c", "op": "all_reduce_coalesced", "inputs": ["x", "y"],
       "attrs": {"reduce_op": "sum", "group": "tp"}},
      {"name": "g", "op": "getitem", "inputs": ["c"], "attrs": {"index": 0}},
      {"name": "h", "op": "getitem", "inputs": ["c"], "attrs": {"index": 1}},)" +
           nodes + R"(], "outputs": [")" + output + R"("]})";
  };
  const std::string waits = R"({"name": "v", "op": "wait_tensor", "inputs": ["g"]},
                               {"name": "w", "op": "wait_tensor", "inputs": ["h"]})";
  const Graph graph = parse_graph(with(waits, "w"));
  ASSERT_EQ(graph.nodes().size(), 3U);
  EXPECT_EQ(graph.nodes()[1].inputs[0], graph.find("c:0"));
  EXPECT_EQ(graph.nodes()[2].inputs[0], graph.find("c:1"));
  EXPECT_NO_THROW(verify(graph));
  EXPECT_THROW(verify(parse_graph(with(waits, "g"))), Error);
  EXPECT_TRUE(is_error(parse_error(with(R"({"name": "g", "op": "neg", "inputs": ["x"]})", "x")),
                       "/nodes/3/name", "\"g\" is defined twice"));
  EXPECT_TRUE(is_error(parse_error(with(R"({"name": "x", "op": "getitem", "inputs": ["c"],
                                            "attrs": {"index": 0}})",
                                        "x")),
                       "/nodes/3/name", "\"x\" is defined twice"));
}

TEST(JsonReader, TheFileStandsBeforeThePointer) {
  EXPECT_TRUE(is_error(parse_error(edited("\"size\": 2", "\"size\": 0"), "dir/g.json"),
                       "dir/g.json:/groups/tp/size", "size is 0"));
  EXPECT_TRUE(is_error(parse_error("[", "g.json"), "g.json", "not JSON"));
}

TEST(JsonReader, RefusesWhatIsNotJson) {
  for (const char* text : {"", "{", "nonsense", "{\"a\": 1,}", "\"\xFF\"", "{} {}",
                           "{\"a\": 1e999}", "{\"a\": \x01}"}) {
    EXPECT_TRUE(is_error(parse_error(text), "", "not JSON: ")) << text;
  }
  EXPECT_TRUE(is_error(parse_error("[]"), "", "found a list; expected an object"));
  // A byte of 0 is no end: what a disk has left of a file may have them.
  const std::string good = edited("", "");
  const std::string at = std::to_string(good.size());
  EXPECT_TRUE(is_error(parse_error(good + std::string(8, '\0')), "", "byte " + at + " is 0"));
  EXPECT_TRUE(is_error(parse_error(good + '\0' + "nonsense"), "", "byte " + at + " is 0"));
  const std::string long_token = parse_error(std::string(1000000, 'x'));
  EXPECT_LT(long_token.size(), 400U);
}

TEST(JsonReader, BoundsNestingBeforeWork) {
  for (const char* open : {"[", "{\"a\":"}) {
    std::string deep;
    for (int i = 0; i < 100000; ++i) deep += open;
    EXPECT_TRUE(is_error(parse_error(deep), "", "nest more than 64 deep"));
  }
  // Brackets inside a string do not nest.
  EXPECT_EQ(parse_error(edited("small", std::string(1000, '['))), "no error");
}

TEST(JsonReader, NamesAreAnyText) {
  const std::string name = R"(*/ } __global__ void evil() { \"\\ \u00e9 \ud83d\ude00)";
  std::string text = edited("\"name\": \"m\"", "\"name\": \"" + name + "\"");
  text.replace(text.rfind("\"m\""), 3, "\"" + name + "\"");
  text = to_json(parse_graph(text));
  EXPECT_NE(text.find("__global__ void evil"), std::string::npos);
  EXPECT_EQ(to_json(parse_graph(text)), text);
}

TEST(JsonReader, LongNamesAreReadAndCutInErrors) {
  const std::string name(1 << 20, 'n');
  std::string text = edited("\"name\": \"a\"", "\"name\": \"" + name + "\"");
  EXPECT_TRUE(is_error(parse_error(text), "/nodes/1/inputs/0", "unknown value \"a\""));
  text = edited("\"inputs\": [\"x\"]", "\"inputs\": [\"" + name + "\"]");
  EXPECT_LT(parse_error(text).size(), 300U);
  text = edited("\"name\": \"a\", \"op\": \"silu\"",
                "\"name\": \"" + name + "\", \"op\": \"nothing\"");
  EXPECT_TRUE(is_error(parse_error(text), "/nodes/0/op", "unknown op"));
  EXPECT_TRUE(is_error(
      parse_error(edited("\"small\"", "\"small\", \"" + std::string(11 << 20, 'k') + "\": 1")),
      "/" + std::string(60, 'k') + "...", "unknown key"));
  EXPECT_TRUE(is_error(
      parse_error(edited("\"name\": \"w\"", "\"name\": \"" + std::string(11 << 20, 'k') + "\"")),
      "/inputs/1/name", "expected at most 10485760"));
}

TEST(JsonReader, FaultsInsideABodyHaveTheirPlace) {
  const std::string node =
      R"({"name": "k", "op": "kernel", "inputs": ["x"], "attrs": {"body": {
      "inputs": [{"name": "p", "dtype": "bf16", "shape": ["T", 8]}],
      "nodes": [{"name": "q", "op": "relu", "inputs": ["p"]}], "outputs": ["q"]}}}, )";
  auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = node;
    changed.replace(changed.find(from), from.size(), to);
    return parse_error(edited("\"nodes\": [", "\"nodes\": [" + changed));
  };
  EXPECT_EQ(with("k", "k"), "no error");
  EXPECT_TRUE(is_error(with("relu", "rel"), "/nodes/0/attrs/body/nodes/0/op", "unknown op"));
  EXPECT_TRUE(is_error(with("\"T\", 8", "\"T\", 9"), "/nodes/0/inputs/0", "expected bf16[T, 9]"));
  EXPECT_TRUE(is_error(with("\"outputs\"", "\"symbols\": {}, \"outputs\""),
                       "/nodes/0/attrs/body/symbols", "unknown key"));
  EXPECT_TRUE(is_error(with("\"body\"", "\"config\": {\"BLOCK\": 1.5}, \"body\""),
                       "/nodes/0/attrs/config/BLOCK", "expected an integer"));
}

/// A full of this dtype and value, read, written and read again.
std::vector<double> constant(const std::string& dtype, const std::string& value) {
  const std::string text = R"({"braid": 1, "name": "NaN, \"Infinity", "inputs": [], "nodes": [
      {"name": "y", "op": "full", "inputs": [], "attrs": {"dtype": ")" +
                           dtype + R"(", "value": )" + value + R"(, "shape": [1]}}],
      "outputs": ["y"]})";
  const Graph graph = parse_graph(to_json(parse_graph(text)));
  EXPECT_EQ(graph.name(), "NaN, \"Infinity");
  return evaluate(graph, {{}}, {})[0][0].to_doubles();
}

TEST(JsonReader, TruthValuesAndNumbersThatAreNotFinite) {
  EXPECT_EQ(constant("bool", "true"), (std::vector<double>{1}));
  EXPECT_EQ(constant("bool", "false"), (std::vector<double>{0}));
  EXPECT_EQ(constant("f32", "true"), (std::vector<double>{1}));
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const char* value : {R"("inf")", R"("Infinity")", "Infinity"}) {
    EXPECT_EQ(constant("f16", value), (std::vector<double>{kInfinity})) << value;
  }
  for (const char* value : {R"("-inf")", R"("-Infinity")", "-Infinity"}) {
    EXPECT_EQ(constant("f8e5m2", value), (std::vector<double>{-kInfinity})) << value;
  }
  for (const char* value : {R"("nan")", R"("NaN")", "NaN"}) {
    EXPECT_TRUE(std::isnan(constant("f8e4m3", value)[0])) << value;
  }
  const auto error = [](const char* dtype, const char* value) {
    return error_of([&] { static_cast<void>(constant(dtype, value)); });
  };
  EXPECT_TRUE(is_error(error("i32", "NaN"), "/nodes/0/attrs/value", "\"nan\" is no value of i32"));
  EXPECT_TRUE(is_error(error("f8e4m3", "\"inf\""), "/nodes/0/attrs/value", "no value of f8e4m3"));
  EXPECT_TRUE(is_error(error("f32", "\"infinite\""), "/nodes/0/attrs/value",
                       "expected a number, true, false, \"inf\""));
  EXPECT_TRUE(is_error(error("f32", "Infinit"), "", "not JSON"));
}

TEST(JsonReader, LoadsFiles) {
  const std::string path = ::testing::TempDir() + "braid_json_reader_test.json";
  std::ofstream(path) << edited("", "");
  EXPECT_EQ(load_graph(path).nodes().size(), 6U);
  std::ofstream(path) << edited("\"size\": 2", "\"size\": 0");
  EXPECT_TRUE(is_error(error_of([&] { static_cast<void>(load_graph(path)); }),
                       path + ":/groups/tp/size", "size is 0"));
  EXPECT_TRUE(is_error(error_of([] { static_cast<void>(load_graph("/nowhere.json")); }),
                       "/nowhere.json", "no such file"));
  EXPECT_TRUE(is_error(error_of([] { static_cast<void>(load_graph("/tmp")); }), "/tmp", ""));
}

/// Of the processor, for a graph whose one node has so many operands.
double seconds_to_read(std::size_t count) {
  Graph graph = graph_with({{DType::kF32, {1, 4}}});
  const NodeId cat =
      graph.add_node("y", "cat", std::vector<ValueId>(count, 0), {{"dim", std::int64_t{0}}});
  graph.add_output(graph.node(cat).outputs[0]);
  const std::string text = to_json(graph);
  const std::clock_t begin = std::clock();
  EXPECT_EQ(parse_graph(text).nodes()[0].inputs.size(), count);
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

// One look at all operands per operand would take 16 times as long.
TEST(JsonReader, ReadsManyOperandsInTimeLinearInThem) {
  EXPECT_LT(seconds_to_read(60'000), 10 * seconds_to_read(15'000));
}

// A chain: what recursed over its nodes would need a frame for each.
TEST(JsonReader, ReadsThirtyThousandNodes) {
  constexpr std::size_t kNodes = 30000;
  Graph graph = graph_with({{DType::kBF16, {sym("T"), 8}}});
  ValueId x = 0;
  for (std::size_t i = 0; i < kNodes; ++i)
    x = graph.node(graph.add_node("", "neg", {x})).outputs[0];
  graph.add_output(x);
  const Graph back = parse_graph(to_json(graph));
  verify(back);
  EXPECT_EQ(back.nodes().size(), kNodes);
}

}  // namespace
}  // namespace braid
