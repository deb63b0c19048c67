// Duties of a command to the process that started it: an exit code whatever happens, no output
// silently lost, an immediate end on request, and work in proportion to the ranks.

#include "cli/process.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "cli/small_graph.h"

namespace braid {
namespace {

using nlohmann::ordered_json;
using test::run_braid;
using test::run_shell;
using test::small_graph;
using test::TemporaryDirectory;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::StartsWith;

/// A graph of many nodes: its text is longer than any buffer.
ordered_json long_graph(int nodes) {
  ordered_json graph = small_graph();
  ordered_json list = ordered_json::array();
  std::string last = "x";
  for (int i = 0; i < nodes; ++i) {
    const std::string name = fmt::format("n{}", i);
    list.push_back({{"name", name}, {"op", "silu"}, {"inputs", {last}}});
    last = name;
  }
  graph["nodes"] = list;
  graph["outputs"] = {last};
  return graph;
}

/// Every command, on graph.json in the directory.
std::vector<std::string> commands(const TemporaryDirectory& directory) {
  test::write_file(directory / "graph.json", small_graph().dump());
  test::write_file(directory / "long.json", long_graph(3000).dump());
  const std::string graph = directory / "graph.json";
  const std::string cache = " --cache-dir " + (directory / "cache").string();
  return {"--help",
          "--version",
          "run --help",
          "opt " + graph,
          "opt " + (directory / "long.json").string(),
          "explain " + graph,
          "explain --json " + graph,
          "doctor",
          "doctor --json",
          "cache ls" + cache,
          "cache verify --json" + cache,
          "run --device cpu " + graph,
          "run --device cpu --json " + graph,
          "compile --target sm_80 -o " + (directory / "out").string() + " " + graph};
}

TEST(Output, IsNeverLostUnseen) {
  const TemporaryDirectory directory;
  for (const std::string& command : commands(directory)) {
    SCOPED_TRACE(command);
    auto result = run_shell("$BRAID " + command + " >/dev/full");
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_THAT(result.err,
                HasSubstr("braid: error: stdout: cannot be written: No space left on device\n"));
    result = run_shell("$BRAID " + command + " >&-");
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_THAT(result.err, HasSubstr("braid: error: stdout: cannot be written: "));
    EXPECT_EQ(run_shell("$BRAID " + command + " >&- 2>&-").exit_code, 3);
  }
}

TEST(Output, StderrMayBeLost) {
  const TemporaryDirectory directory;
  for (const std::string& command : commands(directory)) {
    SCOPED_TRACE(command);
    for (const char* stderr_to : {"2>&-", "2>/dev/full"}) {
      const auto result = run_shell("$BRAID " + command + " " + stderr_to);
      EXPECT_EQ(result.exit_code, 0);
      EXPECT_NE(result.out, "");
    }
  }
  // An error stays one.
  EXPECT_EQ(run_shell("$BRAID opt /none 2>&-").exit_code, 2);
  EXPECT_EQ(run_shell("$BRAID frobnicate 2>/dev/full").exit_code, 2);
}

TEST(Output, AFileAboveTheLimitIsTakenAway) {
  const TemporaryDirectory directory;
  test::write_file(directory / "long.json", long_graph(3000).dump());
  std::filesystem::create_directory(directory / "out");
  const std::string file = directory / "out/out.json";
  const auto result =
      run_shell("ulimit -f 8; $BRAID opt -o " + file + " " + (directory / "long.json").string());
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.err, "braid: error: " + file + ": File too large\n");
  EXPECT_TRUE(std::filesystem::is_empty(directory / "out"));
}

TEST(Output, AClosedStreamIsNotAFile) {
  const TemporaryDirectory directory;
  test::write_file(directory / "graph.json", small_graph().dump());
  const std::string file = directory / "out.json";
  const auto result = run_shell("$BRAID opt --stats -o " + file + " " +
                                (directory / "graph.json").string() + " <&- >&- 2>&-");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_TRUE(ordered_json::accept(test::read_file(file)));
  const auto no_input = run_shell("$BRAID opt - <&-");
  EXPECT_EQ(no_input.exit_code, 3);
  EXPECT_THAT(no_input.err, StartsWith("braid: error: stdin: cannot be read"));
}

TEST(Output, AReaderThatLeavesEndsItQuietly) {
  const TemporaryDirectory directory;
  test::write_file(directory / "long.json", long_graph(3000).dump());
  const std::string command =
      "{ $BRAID opt " + (directory / "long.json").string() + "; echo $? >&2; } | ";
  EXPECT_EQ(run_shell(command + "head -c 1").err, "141\n");
  // A process that ignores the signal gets an error.
  EXPECT_EQ(run_shell("trap '' PIPE; " + command + "head -c 1").err,
            "braid: error: stdout: cannot be written: Broken pipe\n3\n");
}

TEST(Memory, RunsOutInOneLine) {
  const TemporaryDirectory directory;
  test::write_file(directory / "long.json", long_graph(20000).dump());
  std::string list = "[";
  for (int i = 0; i < 2'000'000; ++i) list += "1,";
  test::write_file(directory / "list.json", list + "1]");
  std::string nested = "[";
  for (int i = 0; i < 100'000; ++i) nested += "[[[{\"a\": [1, 2]}]]],";
  test::write_file(directory / "nested.json", nested + "1]");
  int out_of_memory = 0;
  for (const char* file : {"long.json", "list.json", "nested.json"}) {
    for (const int kilobytes : {16, 20, 25, 30, 35, 40, 50, 60}) {
      const auto result = run_shell(fmt::format("ulimit -c 0; ulimit -v {}; $BRAID explain {}",
                                                kilobytes * 1000, (directory / file).string()));
      SCOPED_TRACE(fmt::format("{} in {} MB: {}", file, kilobytes, result.err));
      if (result.exit_code == 127) continue;  // the loader's: too little for the libraries
      if (result.err == "braid: error: out of memory\n") {
        EXPECT_EQ(result.exit_code, 3);
        ++out_of_memory;
        continue;
      }
      EXPECT_LE(result.exit_code, 2);
    }
  }
  EXPECT_GT(out_of_memory, 6);
}

void expect_interrupted(const std::vector<std::string>& args, const std::string& after) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const auto result = test::interrupt_braid(args, after, signal);
    EXPECT_EQ(result.exit_code, 128 + signal) << after << result.err;
    EXPECT_LT(result.seconds, 1) << after;
  }
}

TEST(Signal, EndsItAtOnce) {
  const TemporaryDirectory directory;
  ordered_json graph = small_graph();  // whose inputs take a moment
  graph["inputs"][0]["shape"] = {"T", 1024};
  graph["inputs"][1]["shape"] = {1024, 1024};
  graph["inputs"][2]["shape"] = {1024};
  test::write_file(directory / "graph.json", graph.dump());
  const std::vector<std::string> run = {"run",         directory / "graph.json", "--device", "cpu",
                                        "--cache-dir", directory / "cache"};
  test::write_file(directory / "spin.ptx", R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry spin(.param .u64 p) {
  .reg .pred %p<2>;
  .reg .u64 %rd<2>;
again:
  mov.u64 %rd1, %globaltimer;
  setp.ne.u64 %p1, %rd1, 0;
  @%p1 bra again;
  ret;
}
)");
  expect_interrupted({"opt", "-"}, "");  // reads
  expect_interrupted(run, "braid: inputs");
  expect_interrupted(run, "braid: kernel 1/");
  expect_interrupted({"ptx", directory / "spin.ptx", "--entry", "spin", "--arg", "zero:f32:1"}, "");
}

TEST(Signal, EndsTheReference) {
  const TemporaryDirectory directory;
  // Little for the device, much for the plain loops of the reference.
  test::write_file(directory / "graph.json", R"({
    "braid": 1, "name": "mm", "groups": {"tp": {"size": 16}},
    "inputs": [
      {"name": "x", "dtype": "bf16", "shape": [128, 1024]},
      {"name": "w", "dtype": "bf16", "shape": [1024, 1024], "kind": "parameter"}],
    "nodes": [{"name": "y", "op": "mm", "inputs": ["x", "w"]}],
    "outputs": ["y"]})");
  expect_interrupted({"run", directory / "graph.json", "--device", "cpu", "--check"},
                     "braid: reference");
}

TEST(World, ATerminalSeesHowFarItIs) {
  const TemporaryDirectory directory;
  test::write_file(directory / "graph.json", small_graph().dump());
  const std::string command =
      "$BRAID run --device cpu --check " + (directory / "graph.json").string();
  const auto terminal = run_shell("script -qec \"" + command + "\" /dev/null");
  EXPECT_EQ(terminal.exit_code, 0) << terminal.out;
  EXPECT_THAT(terminal.out, ContainsRegex("\\[[#.]+\\] [0-9.]+% inputs"));
  EXPECT_THAT(terminal.out, ContainsRegex("\\[[#.]+\\] [0-9.]+% reference"));
  for (const char* pass : {"fuse", "overlap", "build_program"}) {
    EXPECT_THAT(terminal.out, HasSubstr(std::string("lowering: ") + pass + " ..."));
  }
  EXPECT_THAT(terminal.out, HasSubstr("memory of 2 ranks ..."));
  const std::string plain = run_shell(command).err;
  EXPECT_EQ(plain.find('%'), plain.npos);
  EXPECT_EQ(plain.find("lowering"), plain.npos);
}

/// Every collective that reads from several ranks, one kernel each.
ordered_json collectives(int ranks) {
  ordered_json graph = {{"braid", 1}, {"name", "collectives"}};
  graph["symbols"]["T"] = {{"min", 1}, {"max", 8}};
  graph["groups"]["tp"] = {{"size", ranks}};
  const auto rows = fmt::format("{}*T", ranks);
  graph["inputs"] = {
      {{"name", "x"}, {"dtype", "f32"}, {"shape", {"T", 24}}, {"per_rank", true}},
      {{"name", "z"}, {"dtype", "bf16"}, {"shape", {3, 5}}, {"per_rank", true}},
      {{"name", "big"}, {"dtype", "f32"}, {"shape", {rows, 24}}, {"per_rank", true}}};
  graph["nodes"] = ordered_json::array();
  graph["outputs"] = ordered_json::array();
  const auto add = [&](const char* op, const char* input, ordered_json attrs) {
    const std::string name = fmt::format("c{}", graph["outputs"].size());
    attrs["group"] = "tp";
    graph["nodes"].push_back(
        {{"name", name}, {"op", op}, {"inputs", {input}}, {"attrs", std::move(attrs)}});
    graph["nodes"].push_back({{"name", name + "w"}, {"op", "wait_tensor"}, {"inputs", {name}}});
    graph["outputs"].push_back(name + "w");
  };
  add("all_reduce", "x", {{"reduce_op", "sum"}});
  add("all_reduce", "z", {{"reduce_op", "max"}});
  add("all_gather_into_tensor", "x", {{"dim", 0}});
  add("all_gather_into_tensor", "z", {{"dim", 0}});
  add("all_gather_into_tensor", "z", {{"dim", 1}});
  add("reduce_scatter_tensor", "big", {{"reduce_op", "avg"}, {"dim", 0}});
  add("all_to_all_single", "big", ordered_json::object());
  return graph;
}

TEST(World, ManyRanksAreReadInALoop) {
  const auto result = run_braid({"run", "-", "--device", "cpu", "--check", "--bind", "T=3"},
                                collectives(20).dump());
  EXPECT_EQ(result.exit_code, 0) << result.err << result.out;
}

TEST(World, TheTextOfAKernelDoesNotGrowWithTheRanks) {
  const TemporaryDirectory directory;
  const auto bytes = [&](int ranks) {
    const std::string out = directory / std::to_string(ranks);
    const auto result =
        run_braid({"compile", "-", "--target", "sm_80", "-o", out}, collectives(ranks).dump());
    EXPECT_EQ(result.exit_code, 0) << result.err;
    std::size_t sum = 0;
    for (const auto& entry : std::filesystem::directory_iterator(out)) {
      const auto extension = entry.path().extension();
      if (extension == ".cu" || extension == ".ptx") sum += entry.file_size();
    }
    return sum;
  };
  const std::size_t some = bytes(20);
  EXPECT_LT(bytes(1024), some + some / 10);
}

}  // namespace
}  // namespace braid
