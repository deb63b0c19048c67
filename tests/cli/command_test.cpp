// The commands on good input, and what they say when something is missing on the machine.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "cli/process.h"
#include "cli/small_graph.h"
#include "runtime/safetensors.h"

namespace braid {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using test::run_braid;
using test::small_graph;
using testing::HasSubstr;
using testing::Not;

json parse(const std::string& text) { return json::parse(text, nullptr, false); }

TEST(Help, NamesEveryCommand) {
  const auto result = run_braid({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  for (const char* name : {"run", "compile", "opt", "explain", "doctor"}) {
    EXPECT_THAT(result.out, HasSubstr(name));
    EXPECT_EQ(run_braid({name, "--help"}).exit_code, 0) << name;
  }
}

TEST(Help, HasTheEverydayOptionsFirst) {
  const std::string help = run_braid({"run", "--help"}).out;
  std::size_t last = 0;
  for (const char* text :
       {"--bind", "--check", "--inputs", "--json", "\nOptions of the cpu device:", "--sanitize",
        "\nOptions of passes:", "--all-reduce",
        "\nOptions of the passes that schedule:", "--reorder-sink-window"}) {
    const std::size_t at = help.find(text);
    ASSERT_NE(at, help.npos) << text;
    EXPECT_GT(at, last) << text;
    last = at;
  }
}

TEST(Run, PrintsATable) {
  const auto result =
      run_braid({"run", "-", "--device", "cpu", "--bind", "T=3", "--check"}, small_graph().dump());
  EXPECT_EQ(result.exit_code, 0) << result.err << result.out;
  for (const char* text :
       {"template", "registers", "symmetric:tp", "bitwise equal", "T=3", "seed"}) {
    EXPECT_THAT(result.out, HasSubstr(text));
  }
}

TEST(Run, ReadsAGraphFromAPipe) {
  const auto result =
      run_braid({"run", "/dev/stdin", "--device", "cpu", "--bind", "T=3"}, small_graph().dump());
  EXPECT_EQ(result.exit_code, 0) << result.err << result.out;
}

TEST(Run, PrintsOneJsonDocument) {
  for (const char* world : {"1", "2", "3"}) {
    const auto result =
        run_braid({"run", "-", "--device", "cpu", "--world", world, "--check", "--json"},
                  small_graph().dump());
    ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
    const json document = parse(result.out);
    ASSERT_TRUE(document.is_object()) << result.out;
    EXPECT_TRUE(document["ok"]);
    EXPECT_EQ(document["world"], std::stoi(world));
    EXPECT_EQ(document["bindings"]["T"], 8);
    ASSERT_EQ(document["outputs"].size(), 2U);
    for (const json& output : document["outputs"]) {
      EXPECT_TRUE(output["ok"]) << output;
      EXPECT_TRUE(output["equal_across_ranks"]);
      EXPECT_LE(output["relative_error"], output["tolerance"]);
    }
    for (const json& kernel : document["kernels"]) EXPECT_EQ(kernel["spill_bytes"], 0) << kernel;
  }
}

TEST(Run, TheSeedDecidesTheInputs) {
  const test::TemporaryDirectory directory;
  auto outputs = [&](const std::string& seed, const std::string& name) {
    const auto result =
        run_braid({"run", "-", "--device", "cpu", "--seed", seed, "--outputs", directory / name},
                  small_graph().dump());
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return SafetensorsFile(directory / name / "rank1.safetensors").read("y");
  };
  const HostTensor a = outputs("5", "a"), b = outputs("5", "b"), c = outputs("6", "c");
  EXPECT_EQ(a.data, b.data);
  EXPECT_NE(a.data, c.data);
  EXPECT_EQ(a.shape, (std::vector<std::int64_t>{8, 64}));
}

TEST(Run, ReadsOneFileForAllRanksAndOnePerRank) {
  const test::TemporaryDirectory directory;
  const HostTensor x = HostTensor::from_doubles(DType::kBF16, {1, 64}, std::vector<double>(64, 1));
  const HostTensor zero =
      HostTensor::from_doubles(DType::kBF16, {64, 64}, std::vector<double>(64 * 64, 0));
  write_safetensors(directory / "all.safetensors", {{"x", x}, {"w", zero}});
  auto run = [&](const std::string& inputs) {
    return run_braid({"run", "-", "--device", "cpu", "--bind", "T=1", "--inputs",
                      directory / inputs, "--outputs", directory / "out", "--check", "--json"},
                     small_graph().dump());
  };
  auto result = run("all.safetensors");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(parse(result.out)["inputs_from_files"], json({"x", "w"}));
  // silu(0) adds nothing, so r is x.
  EXPECT_EQ(SafetensorsFile(directory / "out" / "rank0.safetensors").read("r").data, x.data);

  std::filesystem::create_directory(directory / "ranks");
  write_safetensors(directory / "ranks" / "rank0.safetensors", {{"x", x}});
  write_safetensors(directory / "ranks" / "rank1.safetensors", {{"x", x}});
  EXPECT_EQ(run("ranks").exit_code, 0);

  HostTensor other = x;
  other.data[0] = std::byte{0x7f};
  write_safetensors(directory / "ranks" / "rank1.safetensors", {{"x", other}});
  result = run("ranks");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("rank1.safetensors: tensor 'x': differs from rank 0"));
  write_safetensors(directory / "ranks" / "rank1.safetensors",
                    std::map<std::string, HostTensor, std::less<>>{});
  EXPECT_THAT(run("ranks").err, HasSubstr("tensor 'x': is given for 1 of 2 ranks"));
}

TEST(Run, ANameMadeOfCudaCodeStaysAName) {
  const test::TemporaryDirectory directory;
  const std::string evil = "x */ } __global__ void f() { asm(\"trap;\"); } /* \\\n#include <evil>";
  std::string text = small_graph().dump();
  ordered_json graph = small_graph();
  graph["name"] = evil;
  graph["inputs"][0]["name"] = evil;
  graph["nodes"][0]["inputs"][0] = evil;
  graph["nodes"][4]["inputs"][1] = evil;
  graph["nodes"][5]["name"] = evil + "y";
  graph["outputs"][0] = evil + "y";
  const auto result = run_braid(
      {"run", "-", "--device", "cpu", "--check", "--outputs", directory / "out"}, graph.dump());
  EXPECT_EQ(result.exit_code, 0) << result.err << result.out;
  EXPECT_EQ(SafetensorsFile(directory / "out" / "rank0.safetensors").entries().count(evil + "y"),
            1U);
  const auto compiled =
      run_braid({"compile", "-", "--target", "sm_80", "-o", directory / "kernels"}, graph.dump());
  ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
  for (const auto& file : std::filesystem::recursive_directory_iterator(directory / "kernels")) {
    if (file.path().extension() != ".cu") continue;
    const std::string source = test::read_file(file.path());
    EXPECT_THAT(source, Not(HasSubstr("#include")));
    EXPECT_THAT(source, Not(HasSubstr("void f()")));
  }
}

TEST(Compile, InSeveralProcessesMakesTheSameFiles) {
  const test::TemporaryDirectory directory;
  for (const char* jobs : {"1", "2"}) {
    const auto result =
        run_braid({"compile", "-", "--target", "sm_80", "--jobs", jobs, "-o", directory / jobs,
                   "--cache-dir", directory / (std::string("cache") + jobs)},
                  small_graph().dump());
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  std::size_t files = 0;
  for (const auto& file : std::filesystem::directory_iterator(directory / "1")) {
    ++files;
    if (file.path().filename() == "kernels.json") continue;  // how long each took
    EXPECT_EQ(test::read_file(file.path()),
              test::read_file(directory / "2" / file.path().filename().string()));
  }
  EXPECT_GT(files, 5U);
  const auto refused =
      run_braid({"compile", "-", "--target", "sm_80", "--jobs", "0", "-o", directory / "0"}, "{}");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--jobs: found \"0\"; expected an integer from 1 to 1024"));
}

TEST(Compile, WritesSourcePtxAndCubinForEveryTarget) {
  const test::TemporaryDirectory directory;
  for (const std::string target : {"sm_80", "sm_90a", "sm_100a"}) {
    const auto result = run_braid({"compile", "-", "--target", target, "-o", directory / target},
                                  small_graph().dump());
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const json program = parse(test::read_file(directory / target / "program.json"));
    ASSERT_TRUE(program.is_object());
    std::map<std::string, int> files;
    for (const auto& file : std::filesystem::recursive_directory_iterator(directory / target)) {
      if (!file.is_regular_file()) continue;
      EXPECT_GT(file.file_size(), 0U) << file.path();
      ++files[file.path().extension()];
      if (file.path().extension() == ".cu") {
        EXPECT_THAT(test::read_file(file.path()), Not(HasSubstr("#include")));
      }
      if (file.path().extension() == ".ptx") {
        EXPECT_THAT(test::read_file(file.path()), HasSubstr(".target " + target));
      }
    }
    EXPECT_GE(files[".cu"], 2);
    EXPECT_EQ(files[".cu"], files[".ptx"]);
    EXPECT_EQ(files[".cu"], files[".cubin"]);
  }
}

// Every report about such a plan says that sums may be added in another order.
TEST(BatchInvariance, EveryReportSaysWhereThereIsNone) {
  const test::TemporaryDirectory directory;
  const std::string graph = directory / "graph.json", tuned = directory / "tune.db";
  test::write_file(graph, small_graph().dump());
  const std::vector<std::vector<std::string>> reports = {
      {"run", graph, "--device", "cpu"},
      {"compile", graph, "-o", directory / "plan"},
      {"explain", graph},
      {"tune", graph, "--device", "cpu", "--budget", "0.001", "--tune-db", tuned}};
  for (const bool invariant : {true, false}) {
    std::vector<std::vector<std::string>> all = reports;
    for (auto& args : all) {
      if (!invariant) args.emplace_back("--batch-invariant=false");
    }
    for (std::vector<std::string> args : all) {
      const auto text = run_braid(args);
      EXPECT_EQ(text.exit_code, 0) << text.err;
      EXPECT_EQ(text.out.find("not batch-invariant") == std::string::npos, invariant) << text.out;
      args.emplace_back("--json");
      const json document = json::parse(run_braid(args).out, nullptr, false);
      const json& where = args[0] == "explain" ? document["config"] : document;
      EXPECT_EQ(where["batch_invariant"], invariant) << args[0];
    }
    // A saved plan remembers.
    const auto saved = run_braid({"run", directory / "plan/program.json", "--device", "cpu"});
    EXPECT_EQ(saved.exit_code, 0) << saved.err;
    EXPECT_EQ(saved.out.find("not batch-invariant") == std::string::npos, invariant) << saved.out;
    std::vector<std::string> page{"report", graph, "-o", "-"};
    if (!invariant) page.emplace_back("--batch-invariant=false");
    EXPECT_THAT(run_braid(page).out,
                HasSubstr(invariant ? "\"batch_invariant\":true" : "\"batch_invariant\":false"));
  }
}

TEST(Opt, PrintsWhatItReadsBack) {
  const std::string graph = small_graph().dump();
  const auto first = run_braid({"opt", "-", "--passes", "canonicalize"}, graph);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const auto second = run_braid({"opt", "-"}, first.out);
  EXPECT_EQ(second.out, first.out);
}

TEST(Opt, PassesOneByOneGiveTheGraphOfAllAtOnce) {
  const auto whole =
      run_braid({"opt", "-", "--passes", "canonicalize,split_reductions,lower_collectives,fuse"},
                small_graph().dump());
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  std::string text = small_graph().dump();
  for (const char* pass : {"canonicalize", "split_reductions", "lower_collectives", "fuse"}) {
    const auto result = run_braid({"opt", "-", "--passes", pass}, text);
    ASSERT_EQ(result.exit_code, 0) << pass << result.err;
    text = result.out;
  }
  EXPECT_EQ(text, whole.out);
}

TEST(Opt, EndsInAProgram) {
  const auto result = run_braid(
      {"opt", "-", "--stats", "--passes", "canonicalize,lower_collectives,fuse,build_program"},
      small_graph().dump());
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("lower_collectives"));
  const json program = parse(result.out);
  ASSERT_TRUE(program.contains("arenas")) << result.out;
  EXPECT_EQ(program["outputs"][0]["name"], "y");
  EXPECT_EQ(program["outputs"][1]["name"], "r");
}

// A3-35, A3-44, A3-51: costs alone are a program that can be scheduled.
TEST(Opt, StatsOfSchedules) {
  const std::string graph = R"({"braid": 1, "groups": {"tp": {"size": 2}},
    "inputs": [{"name": "x", "dtype": "u8", "shape": [8], "per_rank": true}],
    "nodes": [
      {"name": "a", "op": "opaque", "inputs": ["x"], "hints": {"runtime_ns": 300},
       "attrs": {"dtype": "u8", "shape": [64], "kind": "gemm"}},
      {"name": "c", "op": "all_reduce", "inputs": ["x"], "hints": {"runtime_ns": 1000},
       "attrs": {"reduce_op": "sum", "group": "tp"}},
      {"name": "w", "op": "wait_tensor", "inputs": ["c"]}],
    "outputs": ["a", "w"]})";
  const auto result = run_braid(
      {"opt", "-", "--stats", "--visualize-overlap", "--reorder-sink-window", "0", "--passes",
       "reorder_communication_preserving_peak_memory,sink_waits_iterative,sink_waits,overlap"},
      graph);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* text :
       {"reorder_communication_preserving_peak_memory: improved overlap by 300 ns after 1 moves; "
        "peak "
        "memory 80 bytes, 80 before; about 1.0 us, 1.3 before\n",
        "exposed communication 0.7 us of 1.0, 0.7 before; 0.7 or more in any order",
        "limiting factor", "+a[300]", "sink_waits: peak memory 80 bytes, 80 before",
        "    1        0.000        0.300 | opaque a(x): u8[64] (0.300 us)\n",
        "total 1.000 us; collectives 1.000 us, exposed 0.700 us\n"}) {
    EXPECT_THAT(result.err, HasSubstr(text));
  }
  const json nodes = parse(result.out)["nodes"];
  EXPECT_EQ(nodes[0]["name"], "c");
  EXPECT_EQ(nodes[1]["attrs"]["kind"], "gemm");
}

TEST(Opt, WritesAFile) {
  const test::TemporaryDirectory directory;
  const auto result = run_braid({"opt", "-", "-o", directory / "out.json"}, small_graph().dump());
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(parse(test::read_file(directory / "out.json"))["name"], "small");
}

TEST(Explain, GroupsRemarksByPass) {
  const auto result = run_braid({"explain", "-"}, small_graph().dump());
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("fuse"));
  EXPECT_THAT(result.out, HasSubstr("applied"));
  const json document = parse(run_braid({"explain", "-", "--json"}, small_graph().dump()).out);
  ASSERT_TRUE(document.is_object());
  EXPECT_FALSE(document["remarks"].empty());
}

TEST(Doctor, FindsWhatTheTestsUse) {
  const auto result = run_braid({"doctor", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.out;
  EXPECT_TRUE(parse(result.out)["can_run"]);
  EXPECT_THAT(run_braid({"doctor"}).out, HasSubstr("NVRTC"));
}

TEST(Environment, WithoutNvrtcItSaysHowToGetIt) {
  const test::TemporaryDirectory directory;
  const std::map<std::string, std::string> environment = {{"BRAID_NVRTC", "/nonexistent"},
                                                          {"BRAID_CACHE_DIR", directory.path()}};
  const auto run = run_braid({"run", "-", "--device", "cpu"}, small_graph().dump(), environment);
  EXPECT_EQ(run.exit_code, 3) << run.err;
  EXPECT_THAT(run.err, HasSubstr("braid: error: "));
  EXPECT_THAT(run.err, HasSubstr("nvidia-cuda-nvrtc"));
  const auto doctor = run_braid({"doctor"}, "", environment);
  EXPECT_EQ(doctor.exit_code, 3);
  EXPECT_THAT(doctor.out, HasSubstr("  NVRTC: not found"));
  EXPECT_THAT(doctor.out, HasSubstr("nvidia-cuda-nvrtc"));
}

// The gather writes where its operand lies, into an input, and that is no output.
TEST(Run, TheBufferOfAGatherIsScratch) {
  const auto result = run_braid({"run", "-", "--device", "cpu", "--check"}, R"({"braid": 1,
    "groups": {"tp": {"size": 2}},
    "inputs": [{"name": "p", "dtype": "f32", "shape": [8], "per_rank": true},
               {"name": "buf", "dtype": "f32", "shape": [16], "per_rank": true}],
    "nodes": [
      {"name": "c", "op": "fsdp.all_gather_copy_in", "inputs": ["p", "buf"], "attrs": {"group": "tp"}},
      {"name": "r", "op": "relu", "inputs": ["c:1"]},
      {"name": "g", "op": "all_gather_into_tensor", "inputs": ["c:0"], "attrs": {"group": "tp"}},
      {"name": "w", "op": "wait_tensor", "inputs": ["g"]}],
    "outputs": ["r", "w"]})");
  EXPECT_EQ(result.exit_code, 0) << result.err << result.out;
  EXPECT_THAT(result.out, Not(HasSubstr("buf")));
}

TEST(Run, AHundredThousandNodes) {
  json graph = {{"braid", 1}, {"name", "chain"}, {"outputs", {"n99999"}}};
  graph["inputs"] = json::array({{{"name", "x"}, {"dtype", "f32"}, {"shape", {8}}}});
  for (int i = 0; i < 100'000; ++i) {
    graph["nodes"].push_back({{"name", "n" + std::to_string(i)},
                              {"op", i % 2 == 0 ? "neg" : "relu"},
                              {"inputs", {i == 0 ? "x" : "n" + std::to_string(i - 1)}}});
  }
  const auto result = run_braid({"run", "-", "--device", "cpu", "--check", "--json"}, graph.dump());
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json document = parse(result.out);
  EXPECT_EQ(document["launches"], 100'000 / 32);
  EXPECT_EQ(document["kernels"].size(), 2U);  // the ends of the chain alone do not run in place
}

TEST(Run, NamesOfTenMegabytes) {
  const std::string x(10'000'000, 'x');
  const json graph = {{"braid", 1},
                      {"name", x},
                      {"inputs", json::array({{{"name", x}, {"dtype", "f32"}, {"shape", {8}}}})},
                      {"nodes", json::array({{{"name", x + "y"}, {"op", "neg"}, {"inputs", {x}}}})},
                      {"outputs", {x + "y"}}};
  const auto result = run_braid({"run", "-", "--device", "cpu", "--check", "--json"}, graph.dump());
  EXPECT_EQ(result.exit_code, 0) << result.err.substr(0, 300);
  json unknown = graph;
  unknown["nodes"][0]["inputs"][0] = x + "z";
  const auto refused = run_braid({"run", "-"}, unknown.dump());
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_LT(refused.err.size(), 1000U);  // one line that a person can read
}

TEST(Run, UnderTheSanitizer) {
  const auto clean =
      run_braid({"run", "-", "--device", "cpu", "--sanitize", "--check"}, small_graph().dump());
  EXPECT_EQ(clean.exit_code, 0) << clean.err;
  EXPECT_THAT(clean.out, HasSubstr("sanitizer: no finding"));
  const auto unknown = run_braid({"run", "-", "--sanitize=races"}, small_graph().dump());
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("expected all, or some of bounds, init, race, sync"));
  EXPECT_EQ(
      run_braid({"run", "-", "--device", "cuda", "--sanitize"}, small_graph().dump()).exit_code, 2);
}

TEST(Run, InEveryInterleaving) {
  const std::string graph = R"({"braid": 1, "name": "g", "groups": {"tp": {"size": 2}},
    "inputs": [{"name": "x", "dtype": "f32", "shape": [1, 64], "per_rank": true}],
    "nodes": [{"name": "c", "op": "all_reduce", "inputs": ["x"],
               "attrs": {"reduce_op": "sum", "group": "tp"}},
              {"name": "y", "op": "wait_tensor", "inputs": ["c"]}],
    "outputs": ["y"]})";
  const auto all = run_braid({"run", "-", "--all-reduce", "one_shot", "--sanitize", "--schedule",
                              "all", "--check", "--json"},
                             graph);
  ASSERT_EQ(all.exit_code, 0) << all.err;
  EXPECT_GE(parse(all.out)["interleavings"], 25);
  EXPECT_EQ(parse(all.out)["interleavings_differing"], 0);
  const auto text = run_braid({"run", "-", "--sanitize", "--schedule", "all"}, graph);
  EXPECT_THAT(text.out, HasSubstr(" interleavings, 0 with other bits in an output"));
  EXPECT_EQ(
      run_braid({"run", "-", "--sanitize", "--schedule", "delay:4", "--check"}, graph).exit_code,
      0);
  const auto algorithm = run_braid({"run", "-", "--all-reduce", "ring"}, graph);
  EXPECT_EQ(algorithm.exit_code, 2);
  EXPECT_THAT(algorithm.err, HasSubstr("expected one_shot, two_shot, ll or multimem"));
  const auto unknown = run_braid({"run", "-", "--sanitize", "--schedule", "some"}, graph);
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("expected a seed, delay:SEED or all"));
  EXPECT_EQ(run_braid({"run", "-", "--schedule", "7"}, graph).exit_code, 2);
}

TEST(Run, TracesItsSteps) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.path() / "traces" / "run.json";
  const auto result =
      run_braid({"run", "-", "--device", "cpu", "--trace", path}, small_graph().dump());
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::ifstream file(path);
  const json events = json::parse(file)["traceEvents"];
  const auto world = small_graph()["groups"]["tp"]["size"].get<int>();
  std::set<int> ranks;
  std::size_t steps = 0;
  for (const json& event : events) {
    ranks.insert(event["pid"].get<int>());
    if (event["ph"] != "X") continue;
    ++steps;
    EXPECT_GE(event["ts"], 0);
    EXPECT_GT(event["dur"], 0);
    EXPECT_FALSE(event["args"]["what"].get<std::string>().empty());
  }
  EXPECT_EQ(ranks.size(), world);
  EXPECT_GE(steps, ranks.size());
  const auto nowhere = run_braid({"run", "-", "--trace", directory.path()}, small_graph().dump());
  EXPECT_EQ(nowhere.exit_code, 2);
  EXPECT_THAT(nowhere.err, HasSubstr("--trace: "));
}

TEST(Run, CountsWhatKernelsDo) {
  const auto text =
      run_braid({"run", "-", "--device", "cpu", "--count=H200"}, small_graph().dump());
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("us on H200"));
  const std::string last = text.out.substr(text.out.rfind('\n', text.out.size() - 2) + 1);
  EXPECT_THAT(last, testing::ContainsRegex("^  look at [a-z0-9_]+ first: [0-9]+ % of the time of "
                                           "all on H200, [0-9]+ launches of "));
  const auto document =
      parse(run_braid({"run", "-", "--count", "--json"}, small_graph().dump()).out);
  const json& counts = document["counts"];
  ASSERT_EQ(counts.size(), document["kernels"].size());
  for (const json& kernel : counts) {
    EXPECT_EQ(kernel["launches"], document["world"]);
    EXPECT_EQ(kernel["estimate"]["device"], "A100");
    EXPECT_GT(kernel["estimate"]["ns"], 0);
    EXPECT_GT(kernel["counts"]["global_bytes"], 0);
    EXPECT_FALSE(kernel["lines"].empty());
  }
  const auto unknown = run_braid({"run", "-", "--count=V100"}, small_graph().dump());
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("expected one of A100, A10"));
  EXPECT_EQ(run_braid({"run", "-", "--device", "cuda", "--count"}, small_graph().dump()).exit_code,
            2);
}

}  // namespace
}  // namespace braid
