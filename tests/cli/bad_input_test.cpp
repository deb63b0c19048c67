// Every bad input ends in exit code 2 and one line that names the place.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/process.h"
#include "cli/small_graph.h"

namespace braid {
namespace {

using nlohmann::ordered_json;
using test::run_braid;
using test::small_graph;
using testing::HasSubstr;
using testing::StartsWith;

void expect_refused(const test::ProcessResult& result, const std::vector<std::string>& expected) {
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_EQ(result.out, "");
  // Progress may come before it.
  std::string last = result.err;
  ASSERT_FALSE(last.empty());
  ASSERT_EQ(last.back(), '\n');
  last.pop_back();
  if (const auto line = last.rfind('\n'); line != std::string::npos) last.erase(0, line + 1);
  EXPECT_THAT(last, StartsWith("braid: error: "));
  EXPECT_LT(last.size(), 600U) << "too long for a line";
  for (const std::string& text : expected) EXPECT_THAT(last, HasSubstr(text));
  std::size_t errors = 0;
  for (std::size_t at = 0; (at = result.err.find("error:", at)) != std::string::npos; ++at)
    ++errors;
  EXPECT_EQ(errors, 1U) << result.err;
}

void expect_graph_refused(const std::string& text, const std::vector<std::string>& expected) {
  SCOPED_TRACE(text.substr(0, 200));
  const test::TemporaryDirectory directory;
  test::write_file(directory / "graph.json", text);
  expect_refused(run_braid({"run", directory / "graph.json"}), expected);
}

// The small graph with one change.
template <class Change>
void expect_change_refused(Change change, const std::vector<std::string>& expected) {
  ordered_json graph = small_graph();
  change(graph);
  expect_graph_refused(graph.dump(), expected);
}

TEST(BadGraph, NotJson) {
  expect_graph_refused("", {"graph.json"});
  expect_graph_refused("{\"braid\": 1,", {"graph.json"});
  expect_graph_refused("graph { }", {"graph.json"});
  expect_graph_refused("[]", {"graph.json"});
  expect_graph_refused(std::string("\0\xff\xfe", 3), {"graph.json"});
}

TEST(BadGraph, NoSuchFile) {
  expect_refused(run_braid({"run", "/nonexistent/graph.json"}), {"/nonexistent/graph.json"});
  expect_refused(run_braid({"run", "/"}), {"/"});
}

TEST(BadGraph, WrongVersion) {
  expect_change_refused([](auto& g) { g["braid"] = 2; }, {"/braid", "2"});
  expect_change_refused([](auto& g) { g["braid"] = "1"; }, {"/braid"});
  expect_change_refused([](auto& g) { g.erase("braid"); }, {"braid"});
}

TEST(BadGraph, UnknownOpOrKey) {
  expect_change_refused([](auto& g) { g["nodes"][1]["op"] = "sillu"; }, {"/nodes/1/op", "sillu"});
  expect_change_refused([](auto& g) { g["node"] = 1; }, {"node"});
  expect_change_refused([](auto& g) { g["nodes"][1]["input"] = 1; }, {"/nodes/1", "input"});
  expect_change_refused([](auto& g) { g["inputs"][1]["rank"] = 1; }, {"/inputs/1", "rank"});
  expect_change_refused([](auto& g) { g["nodes"][5]["attrs"]["epsilon"] = 1; },
                        {"/nodes/5/attrs", "epsilon"});
}

TEST(BadGraph, MissingOrMistypedAttribute) {
  expect_change_refused([](auto& g) { g["nodes"][2]["attrs"].erase("group"); },
                        {"/nodes/2", "group"});
  expect_change_refused([](auto& g) { g["nodes"][5]["attrs"]["eps"] = "small"; },
                        {"/nodes/5/attrs/eps"});
  expect_change_refused([](auto& g) { g["nodes"][2]["attrs"]["reduce_op"] = "median"; },
                        {"/nodes/2/attrs/reduce_op", "median"});
  expect_change_refused([](auto& g) { g["nodes"][1]["inputs"] = "h"; }, {"/nodes/1/inputs"});
  expect_change_refused([](auto& g) { g["nodes"][1]["inputs"].push_back("h"); }, {"/nodes/1"});
}

TEST(BadGraph, ShapeOrDTypeMismatch) {
  expect_change_refused([](auto& g) { g["inputs"][1]["shape"] = {63, 64}; }, {"/nodes/0"});
  expect_change_refused([](auto& g) { g["inputs"][1]["dtype"] = "f16"; }, {"/nodes/0"});
  expect_change_refused([](auto& g) { g["inputs"][1]["dtype"] = "fp64"; },
                        {"/inputs/1/dtype", "fp64"});
  expect_change_refused([](auto& g) { g["inputs"][1]["shape"] = {-64, 64}; }, {"/inputs/1/shape"});
}

TEST(BadGraph, UseBeforeDefinitionAndNames) {
  expect_change_refused([](auto& g) { g["nodes"][0]["inputs"][0] = "a"; },
                        {"/nodes/0/inputs/0", "a"});
  expect_change_refused([](auto& g) { g["nodes"][1]["name"] = "h"; }, {"/nodes/1", "h"});
  expect_change_refused([](auto& g) { g["inputs"][1]["name"] = "x"; }, {"/inputs/1", "x"});
  expect_change_refused([](auto& g) { g["outputs"][0] = "z"; }, {"/outputs/0", "z"});
}

TEST(BadGraph, Collectives) {
  const auto refused = [](const std::string& op, const nlohmann::json& attrs,
                          const std::vector<std::string>& expected) {
    expect_change_refused(
        [&](auto& g) {
          g["nodes"][2]["op"] = op;
          g["nodes"][2]["attrs"] = attrs;
        },
        expected);
  };
  refused("all_gather_into_tensor", {{"group", "pp"}}, {"/nodes/2/attrs/group", "pp"});
  refused("all_gather_into_tensor", {{"group", "tp"}, {"dim", 2}},
          {"/nodes/2/attrs/dim", "out of range; expected an integer from -2 to 1"});
  refused("reduce_scatter_tensor", {{"group", "tp"}, {"reduce_op", "sum"}},
          {"/nodes/2/inputs/0", "dim 0 is T; expected a multiple of 2"});
  refused("reduce_scatter_tensor", {{"group", "tp"}, {"reduce_op", "xor"}},
          {"/nodes/2/attrs/reduce_op", "xor"});
  refused("all_to_all_single", {{"group", "tp"}, {"input_split_sizes", {3, 3}}},
          {"/nodes/2/attrs/input_split_sizes", "sum to 6; expected T"});
  refused("broadcast", {{"group", "tp"}, {"src", 2}}, {"/nodes/2/attrs/src", "0 to 1"});
}

TEST(BadGraph, GroupsAndWaits) {
  expect_change_refused([](auto& g) { g["nodes"][2]["attrs"]["group"] = "pp"; },
                        {"/nodes/2/attrs/group", "pp"});
  expect_change_refused([](auto& g) { g["groups"]["tp"]["size"] = 0; }, {"/groups/tp"});
  expect_change_refused([](auto& g) { g["nodes"][4]["inputs"][0] = "c"; },
                        {"graph.json:/nodes/4/inputs", "wait_tensor"});
  ordered_json graph = small_graph();
  graph["nodes"][4]["inputs"][0] = "c";
  expect_refused(run_braid({"run", "-"}, graph.dump()), {"error: stdin:/nodes/4/inputs"});
}

TEST(BadGraph, Symbols) {
  expect_change_refused([](auto& g) { g["inputs"][0]["shape"][0] = "S"; },
                        {"/inputs/0/shape/0", "S"});
  expect_change_refused([](auto& g) { g["symbols"]["T"]["max"] = 0; }, {"/symbols/T"});
  const std::string graph = small_graph().dump();
  expect_refused(run_braid({"run", "-", "--bind", "T=17"}, graph), {"--bind", "T", "17"});
  expect_refused(run_braid({"run", "-", "--bind", "T=0"}, graph), {"--bind", "T"});
  expect_refused(run_braid({"run", "-", "--bind", "S=1"}, graph), {"--bind", "S"});
  expect_refused(run_braid({"run", "-", "--bind", "T"}, graph), {"--bind", "SYMBOL=INTEGER"});
  expect_refused(run_braid({"run", "-", "--bind", "T=1x"}, graph), {"--bind", "SYMBOL=INTEGER"});
  expect_refused(run_braid({"run", "-", "--bind", "T=99999999999999999999"}, graph), {"--bind"});
  expect_refused(run_braid({"run", "-", "--bind", "T=1", "--bind", "T=2"}, graph), {"twice"});
}

TEST(BadGraph, HugeAndDeep) {
  expect_graph_refused(std::string(100'000, '['), {"graph.json"});
  std::string deep = small_graph().dump();
  const std::string key = "\"attrs\":{\"eps\":";
  deep.insert(deep.find(key) + key.size(), std::string(100'000, '['));
  expect_graph_refused(deep, {"graph.json"});
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  expect_graph_refused(objects, {"graph.json"});
  expect_change_refused(
      [](auto& g) {
        g["inputs"][0]["shape"] = {1 << 20, 1 << 20};
      },
      {"/inputs/0/shape"});
  expect_change_refused(
      [](auto& g) {
        g["inputs"][0]["shape"] = {INT64_MAX, INT64_MAX};
      },
      {"/inputs/0/shape"});
}

TEST(BadUsage, OptionsAreChecked) {
  const std::string graph = small_graph().dump();
  expect_refused(run_braid({}), {"error: braid: A subcommand is required"});
  expect_refused(run_braid({"ran", "-"}), {"unknown command \"ran\"; the nearest: run", "--help"});
  expect_refused(run_braid({"cache", "lss"}), {"braid cache: unknown command \"lss\"", ": ls"});
  expect_refused(run_braid({"run"}), {"error: braid run: GRAPH is required"});
  expect_refused(run_braid({"opt", "-", "--stats=" + std::string(5000, 'x')}, graph),
                 {"error: braid opt: ", "--stats"});
  expect_refused(run_braid({"run", "-", "--device", "tpu"}, graph), {"--device"});
  expect_refused(run_braid({"run", "-", "--world", "0"}, graph), {"--world"});
  expect_refused(run_braid({"run", "-", "--seed", "x"}, graph), {"--seed"});
  expect_refused(run_braid({"run", "-", "--fast"}, graph), {"--fast"});
  // As a shell passes an unset variable.
  for (const std::string option :
       {"--outputs", "--inputs", "--trace", "--cache-dir", "--tune-db", "--device", "--target"}) {
    expect_refused(run_braid({"run", "-", option, ""}, graph),
                   {"error: " + option + ": found nothing; expected a value"});
  }
  expect_refused(run_braid({"run", ""}), {"error: braid run: GRAPH: found nothing"});
  // The option, not what follows it.
  expect_refused(run_braid({"run", "--wrld", "4", "-"}, graph),
                 {"braid run: unknown option \"--wrld\"; the nearest: --world"});
  expect_refused(run_braid({"run", "-", "--sede=4"}, graph), {"\"--sede\"; the nearest: --seed"});
  expect_refused(run_braid({"run", "-", "graph.json"}, graph), {"unknown argument \"graph.json\""});
  // No name is similar.
  expect_refused(run_braid({"explain", "-", "--bind", "T=8"}, graph),
                 {"unknown option \"--bind\" (see braid explain --help)"});
  expect_refused(run_braid({"run", "-", "--outputs", "/dev/null/x"}, graph), {"--outputs"});
  expect_refused(run_braid({"compile", "-", "--target", "sm_12", "-o", "/dev/null/x"}, graph),
                 {"sm_12"});
  expect_refused(run_braid({"compile", "-", "--target", "sm_80", "-o", "/dev/null/x"}, graph),
                 {"--output"});
  for (const std::string value : {"-1", "x", "nan", "1e999"}) {
    expect_refused(run_braid({"opt", "-", "--reorder-iterative-peak-memory-budget", value}, graph),
                   {"error: --reorder-iterative-peak-memory-budget: found \"" + value +
                    "\"; expected a number"});
  }
  expect_refused(run_braid({"opt", "-", "--reorder-sink-window", "1.5"}, graph),
                 {"--reorder-sink-window: found \"1.5\"; expected an integer"});
  expect_refused(run_braid({"opt", "-", "--passes", "canonicalise"}, graph),
                 {"canonicalise", "canonicalize"});
  expect_refused(run_braid({"opt", "-", "--passes", "build_program,fuse"}, graph),
                 {"build_program"});
  ordered_json no_groups = small_graph();
  no_groups["groups"]["dp"] = {{"size", 2}};
  expect_refused(run_braid({"run", "-", "--world", "3"}, no_groups.dump()), {"--world", "3"});
}

TEST(BadUsage, PathsAreSaidWithTheirOption) {
  const std::string graph = small_graph().dump();
  const std::string name(5000, 'x');
  const std::string too_long = "xxx...\" cannot be ";
  expect_refused(run_braid({"run", "-", "--outputs", name}, graph),
                 {"--outputs: \"", too_long, "File name too long"});
  expect_refused(run_braid({"run", "-", "--inputs", name}, graph),
                 {"--inputs: \"", too_long, "File name too long"});
  expect_refused(run_braid({"compile", "-", "-o", name}, graph), {"--output: \"", too_long});
  expect_refused(run_braid({"opt", "-", "-o", name}, graph), {"--output: \"", too_long});
  expect_refused(run_braid({"opt", "-", "-o", ""}, graph),
                 {"--output: found nothing; expected a value"});
  expect_refused(run_braid({"run", "-", "--outputs", "/dev/null/x"}, graph),
                 {"--outputs: \"/dev/null/x\" cannot be made a directory: Not a directory"});
}

TEST(BadUsage, TextsAreEchoedShortAndPrintable) {
  const std::string graph = small_graph().dump();
  const std::string text(5000, 'x');
  for (const std::string option : {"--bind", "--count", "--device", "--sanitize", "--schedule",
                                   "--matrix-sums", "--target", "--world", "--seed"}) {
    expect_refused(run_braid({"run", "-", option + "=" + text}, graph), {option + ": "});
  }
  expect_refused(run_braid({"opt", "-", "--passes", text}, graph), {"--passes: "});
  const test::TemporaryDirectory directory;
  test::write_file(directory / "k.ptx",
                   ".version 9.0\n.target sm_80\n.address_size 64\n"
                   ".visible .entry k(.param .u64 x) { ret; }\n");
  for (const std::string& argument : {text, "zero:" + text, "zero:f32:" + text, "i32:" + text}) {
    expect_refused(run_braid({"ptx", directory / "k.ptx", "--entry", "k", "--arg", argument}),
                   {"--arg "});
  }
  // A terminal takes 0x9b for the start of an escape sequence.
  expect_refused(run_braid({"opt", "/none\x9b\x5bJ\xff"}), {"/none\\x9b[J\\xff: no such file"});
}

// Before any input is read.
TEST(BadUsage, OptionsOfTheWorldAreNamed) {
  const std::string graph = small_graph().dump();
  const auto refused = [&](const std::string& option, const std::string& value) {
    expect_refused(run_braid({"run", "-", "--inputs", "/none", option + "=" + value,
                              option == "--schedule" ? "--sanitize" : "--check"},
                             graph),
                   {"error: " + option + ": ", value});
  };
  refused("--target", "sm_12");
  refused("--sanitize", "races");
  refused("--schedule", "some");
  refused("--matrix-sums", "exact");
  expect_refused(run_braid({"run", "-", "--device", "cuda", "--matrix-sums", "hopper"}, graph),
                 {"error: --matrix-sums: ", "expected the cpu device"});
  expect_refused(run_braid({"compile", "-", "--target", "sm_12", "-o", "/dev/null/x"}, graph),
                 {"error: --target: "});
}

TEST(BadUsage, IntegersAreInRange) {
  const std::string graph = small_graph().dump();
  const std::string past_64_bits = "18446744073709551616";
  for (const std::string option : {"--seed", "--world", "--threads", "--sequence-dim"}) {
    for (const std::string& value :
         {std::string("-1"), past_64_bits, std::string("1.5"), std::string("0x2"),
          std::string("+1"), std::string("010"), std::string("08")}) {
      expect_refused(run_braid({"run", "-", option, value}, graph), {option, "an integer from"});
    }
    expect_refused(run_braid({"run", "-", option, ""}, graph), {option, "expected"});
  }
  for (const std::string& value : {std::string("-1"), past_64_bits}) {
    const auto ptx = [&](const std::string& option, const std::string& text) {
      return run_braid({"ptx", "none.ptx", "--entry", "k", option, text});
    };
    expect_refused(ptx("--seed", value), {"--seed"});
    expect_refused(ptx("--shared", value), {"--shared"});
    expect_refused(ptx("--grid", value), {"--grid"});
    expect_refused(ptx("--block", "1," + value), {"--block"});
    expect_refused(run_braid({"cache", "prune", "--max-mib", value}), {"--max-mib"});
    expect_refused(run_braid({"run", "-", "--bind", "T=" + value}, graph), {"--bind"});
  }
  EXPECT_EQ(run_braid({"opt", "-", "--world", "4"}, graph).exit_code, 0);
}

TEST(BadTensors, FilesAreChecked) {
  const test::TemporaryDirectory directory;
  const std::string graph = directory / "graph.json", path = directory / "in.safetensors";
  test::write_file(graph, small_graph().dump());
  auto refused = [&](const std::string& header, std::size_t bytes,
                     const std::vector<std::string>& expected) {
    SCOPED_TRACE(header);
    std::string file(8, '\0');
    file[0] = static_cast<char>(header.size());
    test::write_file(path, file + header + std::string(bytes, '\0'));
    expect_refused(run_braid({"run", graph, "--bind", "T=2", "--inputs", path}), expected);
  };
  refused(R"({"x":{"dtype":"BF16","shape":[2,64],"data_offsets":[0,256]}})", 255,
          {"in.safetensors", "'x'", "truncated"});
  refused(R"({"x":{"dtype":"BF16","shape":[3,64],"data_offsets":[0,384]}})", 384,
          {"in.safetensors", "'x'", "bf16[3, 64]", "bf16[2, 64]"});
  refused(R"({"x":{"dtype":"F16","shape":[2,64],"data_offsets":[0,256]}})", 256,
          {"in.safetensors", "'x'", "f16[2, 64]", "bf16[2, 64]"});
  refused(R"({"F":{"dtype":"F64","shape":[0],"data_offsets":[0,0]}})", 0, {"'F'", "no such input"});
  refused("nonsense", 0, {"in.safetensors"});
  expect_refused(run_braid({"run", graph, "--inputs", directory / "none"}), {"none", "no such"});
  std::filesystem::create_directory(directory / "ranks");
  expect_refused(run_braid({"run", graph, "--inputs", directory / "ranks"}), {"rank0.safetensors"});
}

}  // namespace
}  // namespace braid
