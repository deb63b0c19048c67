// Ranks in processes: `braid launch`, and `braid run` under it or another launcher.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/process.h"
#include "runtime/free_port.h"

namespace braid {
namespace {

using test::ProcessResult;
using test::run_braid;
using test::run_shell;
using test::TemporaryDirectory;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Clock = std::chrono::steady_clock;

/// examples/tp_mlp.json with matrices of 128.
std::string small_mlp(const TemporaryDirectory& directory) {
  std::string text = test::read_file(std::string(BRAID_EXAMPLES) + "/tp_mlp.json");
  for (std::size_t at = 0; (at = text.find("2048", at)) != std::string::npos;) {
    text.replace(at, 4, "128");
  }
  test::write_file(directory / "mlp.json", text);
  return directory / "mlp.json";
}

/// `sh -c LINE` in so many processes.
ProcessResult launch(int processes, const std::string& line, const std::string& options = "") {
  return run_shell(
      fmt::format("$BRAID launch --nproc {} {} -- sh -c '{}'", processes, options, line));
}

bool ends_soon(pid_t pid) {
  for (int tries = 0; tries < 200; ++tries) {
    if (::kill(pid, 0) != 0) return true;
    const std::string status = test::read_file(fmt::format("/proc/{}/stat", pid));
    if (status.find(") Z") != std::string::npos) return true;  // of a parent that does not look
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

TEST(Launch, RunsAGraphWithOneRankInEachProcess) {
  const TemporaryDirectory directory;
  const std::string graph = small_mlp(directory);
  const std::string run = "exec $BRAID run --device cpu --check --outputs " +
                          (directory / "out").string() + " --bind T=5 " + graph;
  const auto result = launch(4, run + " --json");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto report = nlohmann::ordered_json::parse(result.out);  // of rank 0 alone
  EXPECT_TRUE(report["ok"]);
  EXPECT_EQ(report["world"], 4);
  EXPECT_TRUE(report["outputs"][0]["equal_across_ranks"]);
  EXPECT_THAT(result.err, Not(HasSubstr("error")));
  const auto here = run_shell("$BRAID run --device cpu --bind T=5 --outputs " +
                              (directory / "here").string() + " " + graph);
  EXPECT_EQ(here.exit_code, 0) << here.err;
  for (int rank = 0; rank < 4; ++rank) {
    const std::string name = fmt::format("rank{}.safetensors", rank);
    const std::string bytes = test::read_file(directory / ("out/" + name));
    EXPECT_EQ(bytes, test::read_file(directory / ("here/" + name)));
    EXPECT_NE(bytes, "");
  }
}

// Chunks are copied from the memory of other processes.
TEST(Launch, RunsAPipelineInChunks) {
  const TemporaryDirectory directory;
  test::write_file(directory / "graph.json", R"({
    "braid": 1, "name": "layer", "groups": {"tp": {"size": 3}},
    "inputs": [{"name": "x", "dtype": "f32", "shape": [4, 32], "per_rank": true},
               {"name": "w", "dtype": "f32", "shape": [32, 32], "per_rank": true}],
    "nodes": [{"name": "g", "op": "fused_all_gather_matmul", "inputs": ["x", "w"],
               "attrs": {"gather_dim": 0, "return_A": false, "group": "tp"}},
              {"name": "y", "op": "fused_matmul_reduce_scatter", "inputs": ["g", "w"],
               "attrs": {"scatter_dim": 0, "reduce_op": "sum", "group": "tp"}}],
    "outputs": ["y"]})");
  const auto result = launch(3, "exec $BRAID run --device cpu --always-pipeline --check " +
                                    (directory / "graph.json").string());
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, ::testing::ContainsRegex("barrier +barrier .* 4 "));
  EXPECT_THAT(result.out, ::testing::ContainsRegex("y +f32\\[4, 32\\].*ok"));
}

TEST(Launch, TheReportIsThatOfAllRanks) {
  const TemporaryDirectory directory;
  test::write_file(directory / "graph.json", R"({
    "braid": 1, "name": "two", "groups": {"tp": {"size": 2}},
    "inputs": [{"name": "x", "dtype": "f32", "shape": [8]}],
    "nodes": [{"name": "c", "op": "all_reduce", "inputs": ["x"],
               "attrs": {"reduce_op": "max", "group": "tp"}},
              {"name": "s", "op": "wait_tensor", "inputs": ["c"]},
              {"name": "y", "op": "silu", "inputs": ["x"]}],
    "outputs": ["y", "s"]})");
  // Each finds its own y right, but they differ.
  const auto result = launch(2, "exec $BRAID run --device cpu --check --seed 7$RANK " +
                                    (directory / "graph.json").string());
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(result.out, ::testing::ContainsRegex("y +f32\\[8\\].*DIFFER +FAILED"));
}

TEST(Launch, GivesBackTheFirstFailure) {
  EXPECT_EQ(launch(3, "exit 0").exit_code, 0);
  const auto exited = launch(3, "test $RANK != 1 || exit 7");
  EXPECT_EQ(exited.exit_code, 7);
  EXPECT_EQ(exited.err, "braid: launch: rank 1: exit code 7\n");
  const auto killed = launch(3, "test $RANK != 2 || kill -9 $$");
  EXPECT_EQ(killed.exit_code, 128 + SIGKILL);
  EXPECT_EQ(killed.err, "braid: launch: rank 2: Killed\n");
  const auto result = run_braid({"launch", "--nproc", "2", "--", "/no/such/command"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err,
            "braid: error: launch: \"/no/such/command\" cannot be started: No such file or "
            "directory\n");
}

TEST(Launch, NamesTheOptionThatIsWrong) {
  const auto error_of = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "launch");
    const auto result = run_braid(arguments);
    EXPECT_EQ(result.exit_code, 2);
    return result.err;
  };
  const std::string integer = "expected an integer from 1 to 1024 (see braid launch --help)\n";
  const std::string seconds = "expected seconds from 0.1 to 1000000 (see braid launch --help)\n";
  EXPECT_EQ(error_of({"--nproc", "0", "--", "true"}),
            "braid: error: --nproc: found \"0\"; " + integer);
  EXPECT_EQ(error_of({"--nproc", "2", "--timeout", "x", "--", "true"}),
            "braid: error: --timeout: found \"x\"; " + seconds);
  EXPECT_EQ(error_of({"--nproc", "2", "--timeout", "0", "--", "true"}),
            "braid: error: --timeout: found \"0\"; " + seconds);
  EXPECT_EQ(error_of({"--nproc", "2", "--timeuot", "3", "--", "true"}),
            "braid: error: braid launch: unknown option \"--timeuot\"; the nearest: --timeout (see "
            "braid launch --help)\n");
  EXPECT_EQ(error_of({"--nproc", "2"}),
            "braid: error: braid launch: COMMAND is required (see braid launch --help)\n");
}

TEST(Launch, TellsEachProcessWhoItIs) {
  const auto result = launch(2,
                             "echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $MASTER_ADDR "
                             "$BRAID_TIMEOUT; test -n \"$MASTER_PORT\" -a -n \"$BRAID_JOB\"",
                             "--timeout 2.5");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("0 0 2 2 127.0.0.1 2.5\n"), HasSubstr("1 1 2 2 127.0.0.1 2.5\n")));
  // One of them can read what comes.
  EXPECT_EQ(run_shell("echo hello | $BRAID launch --nproc 3 -- cat").out, "hello\n");
}

// Before the others can know of it, and though they go on.
TEST(Launch, NamesARankThatFailsAtOnce) {
  const TemporaryDirectory directory;
  const std::string named = directory / "named";
  const auto result = run_shell(
      "{ $BRAID launch --nproc 2 -- sh -c 'test $RANK != 1 || exit 7; i=0; until test -e " + named +
      " -o $i = 100; do sleep 0.05; i=$((i + 1)); done; test -e " + named +
      "'; } 2>&1 | { read line && touch " + named + "; echo \"$line\"; cat; }");
  EXPECT_EQ(result.out, "braid: launch: rank 1: exit code 7\n");
  EXPECT_TRUE(std::filesystem::exists(named));
}

TEST(Launch, SaysWhyARankCannotBeStarted) {
  // The limit does not bind root.
  const std::string as_nobody =
      ::getuid() == 0 ? "setpriv --reuid=65534 --clear-groups " : std::string();
  const std::string limited = "prlimit --nproc=1 " + as_nobody;
  const auto result = run_shell(limited + "$BRAID launch --nproc 1 -- true");
  if (result.exit_code == 0 || result.err.find("braid: error") == std::string::npos) {
    GTEST_SKIP() << "needs a limit on processes: " << result.err;
  }
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.err,
            "braid: error: launch: rank 0 cannot be started: Resource temporarily unavailable\n");
}

TEST(Launch, EndsWhatIsLeftAfterAFailure) {
  const auto start = Clock::now();
  const auto result =
      launch(2, "test $RANK = 0 && exit 5; trap \"\" TERM; sleep 60; sleep 60", "--timeout 0.2");
  EXPECT_EQ(result.exit_code, 5);
  EXPECT_EQ(result.err,
            "braid: launch: rank 0: exit code 5\n"
            "braid: launch: rank 1 is still there: SIGTERM\n"
            "braid: launch: rank 1 is still there: SIGKILL\n");
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(15));
}

TEST(Launch, ChildrenDoNotOutliveIt) {
  for (const int signal : {SIGINT, SIGTERM, SIGKILL}) {
    const TemporaryDirectory directory;
    const auto result = test::interrupt_braid({"launch", "--nproc", "2", "--", "/bin/sh", "-c",
                                               "echo $$ >" + (directory / "pid").string() +
                                                   "$RANK; sleep 0.2; echo ready >&2; exec "
                                                   "sleep 60"},
                                              "ready", signal);
    EXPECT_EQ(result.exit_code, 128 + signal);
    EXPECT_LT(result.seconds, 1);
    for (const char* rank : {"0", "1"}) {
      const pid_t pid = std::atoi(test::read_file(directory / (std::string("pid") + rank)).c_str());
      ASSERT_GT(pid, 0);
      EXPECT_TRUE(ends_soon(pid)) << signal;
    }
  }
}

TEST(Launch, RanksMayFinishAfterASignal) {
  const auto interrupted = [](int signal, int tenths, int code) {
    const TemporaryDirectory directory;
    const std::string there = directory / "there";
    return test::interrupt_braid(
        {"launch", "--nproc", "2", "--", "/bin/sh", "-c",
         fmt::format("trap end=1 TERM; if test $RANK = 0; then : >{}; else until test -e {}; do "
                     "sleep 0.01; done; echo ready >&2; fi; i=0; until test $i = {}; do sleep 0.1; "
                     "test -z \"$end\" || i=$((i + 1)); done; exit {}",
                     there, there, tenths, code)},
        "ready", signal);
  };
  const auto good = interrupted(SIGTERM, 25, 0);
  EXPECT_EQ(good.exit_code, 0);
  EXPECT_GT(good.seconds, 2.4);  // longer than a rank has after a failure of another
  EXPECT_EQ(interrupted(SIGINT, 1, 3).exit_code, 128 + SIGINT);
}

TEST(Launch, ASecondSignalKills) {
  const TemporaryDirectory directory;
  const std::string out = directory / "out";
  const auto result = run_shell(
      ": >" + out + "; $BRAID launch --nproc 2 -- sh -c 'trap \"\" TERM; echo $RANK; sleep 60; " +
      "sleep 60' >" + out + " & until test \"$(wc -l <" + out + ")\" = 2; do sleep 0.05; done; " +
      "kill $!; sleep 0.3; kill $!; wait $!");
  EXPECT_EQ(result.exit_code, 128 + SIGTERM);
  EXPECT_EQ(result.err,
            "braid: launch: rank 0 is still there: SIGKILL\n"
            "braid: launch: rank 1 is still there: SIGKILL\n");
}

TEST(Launch, ARankThatIsLostIsNamedByTheOthers) {
  const TemporaryDirectory directory;
  const auto result = launch(
      4, "test $RANK != 2 || kill -9 $$; exec $BRAID run --device cpu " + small_mlp(directory),
      "--timeout 3");
  EXPECT_EQ(result.exit_code, 128 + SIGKILL);
  for (const int rank : {0, 1, 3}) {
    EXPECT_THAT(result.err,
                HasSubstr(fmt::format(
                    "braid: error: rank {}: rendezvous: rank 2 did not come within 3 s\n", rank)));
  }
}

// Without a word of it they would wait for each other until the timeout.
TEST(Launch, RanksWithOtherValuesOfASymbolSaySo) {
  const TemporaryDirectory directory;
  const auto result =
      launch(4, "exec $BRAID run --device cpu --bind T=$((4 + RANK / 3)) " + small_mlp(directory));
  EXPECT_EQ(result.exit_code, 2);
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_THAT(result.err,
                HasSubstr(fmt::format("braid: error: rank {}: --bind: rank 0 has T = 4, "
                                      "rank 3 has T = 5; expected the same values on "
                                      "all ranks\n",
                                      rank)));
  }
}

TEST(Launch, AnErrorIsThatOfItsRank) {
  const TemporaryDirectory directory;
  const auto result = launch(3, "exec $BRAID run --device cpu " + small_mlp(directory));
  EXPECT_EQ(result.exit_code, 2);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_THAT(result.err,
                HasSubstr(fmt::format("braid: error: rank {}: WORLD_SIZE: 3 processes; the graph "
                                      "is a program of 4 ranks\n",
                                      rank)));
  }
  const auto watched = launch(2, "exec $BRAID run --sanitize " + small_mlp(directory));
  EXPECT_THAT(watched.err,
              HasSubstr("braid: error: rank 1: --sanitize: watches all ranks in one process; "
                        "expected a run without WORLD_SIZE\n"));
}

TEST(Launchers, OfOtherKindsAreUnderstood) {
  const TemporaryDirectory directory;
  const std::string graph = small_mlp(directory);
  for (const char* variables :
       {"OMPI_COMM_WORLD_RANK=$r OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=$r",
        "SLURM_PROCID=$r SLURM_NTASKS=4 SLURM_LOCALID=$r SLURM_JOB_ID=12"}) {
    const auto result = run_shell(fmt::format(
        "for r in 1 2 3; do MASTER_PORT={0} {1} $BRAID run --device cpu {2} & done; r=0; "
        "MASTER_PORT={0} {1} $BRAID run --device cpu --json {2}; code=$?; wait; exit $code",
        free_port(), variables, graph));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(nlohmann::ordered_json::parse(result.out)["world"], 4);
    EXPECT_THAT(result.err, Not(HasSubstr("error")));
  }
}

// Two jobs meet at the same place, and each finds its own.
TEST(Launchers, MpirunItselfStartsTheRanks) {
  if (run_shell("mpirun --version").out.find("Open MPI") == std::string::npos) {
    GTEST_SKIP() << "needs Open MPI's mpirun";
  }
  const TemporaryDirectory directory;
  const std::string graph = small_mlp(directory);
  const std::string mpirun =
      fmt::format("MASTER_PORT={} mpirun --allow-run-as-root --oversubscribe -np 4 ", free_port());
  const std::string run = mpirun + "$BRAID run --device cpu --check --json " + graph;
  const std::string other = (directory / "other.json").string();
  const auto result = run_shell(run + " > " + other + " & " + run + "; code=$?; wait; exit $code");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const std::string& text : {result.out, test::read_file(other)}) {
    const auto report = nlohmann::ordered_json::parse(text);
    EXPECT_TRUE(report["ok"]);
    EXPECT_EQ(report["world"], 4);
  }
  const auto three = run_shell("BRAID_TIMEOUT=2 " + mpirun +
                               "sh -c 'test $OMPI_COMM_WORLD_RANK = 2 || exec $BRAID run --device "
                               "cpu " +
                               graph + "'");
  EXPECT_NE(three.exit_code, 0);
  EXPECT_THAT(three.err, HasSubstr("rendezvous: rank 2 did not come within 2 s"));
}

TEST(Launchers, BadVariablesAreRefused) {
  const TemporaryDirectory directory;
  const std::string graph = small_mlp(directory);
  const auto error = [&](const std::map<std::string, std::string>& variables) {
    const auto result = run_braid({"run", "--device", "cpu", graph}, "", variables);
    EXPECT_EQ(result.exit_code, 2);
    return result.err;
  };
  EXPECT_EQ(error({{"RANK", "0"}}),
            "braid: error: RANK: is set, but WORLD_SIZE is not; expected both or neither\n");
  EXPECT_EQ(error({{"OMPI_COMM_WORLD_SIZE", "2"}}),
            "braid: error: OMPI_COMM_WORLD_SIZE: is set, but OMPI_COMM_WORLD_RANK is not; expected "
            "both or neither\n");
  const std::map<std::string, std::string> good = {{"RANK", "0"}, {"WORLD_SIZE", "4"}};
  const auto with = [&](const char* name, const char* value) {
    auto variables = good;
    variables[name] = value;
    return error(variables);
  };
  EXPECT_EQ(with("RANK", "4"), "braid: error: RANK: found \"4\"; expected a number from 0 to 3\n");
  EXPECT_EQ(with("WORLD_SIZE", "two"),
            "braid: error: WORLD_SIZE: found \"two\"; expected a number from 1 to 1024\n");
  EXPECT_THAT(with("MASTER_PORT", "0"), HasSubstr("MASTER_PORT: found \"0\"; expected"));
  EXPECT_THAT(with("BRAID_TIMEOUT", "-1"), HasSubstr("BRAID_TIMEOUT: found \"-1\"; expected"));
  EXPECT_THAT(with("MASTER_ADDR", "no such host"), HasSubstr("\"no such host\" of rank 0"));
}

TEST(Launchers, OneProcessHasAllRanks) {
  const TemporaryDirectory directory;
  const auto result = run_braid({"run", "--device", "cpu", "--check", small_mlp(directory)}, "",
                                {{"RANK", "0"}, {"WORLD_SIZE", "1"}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  // The shell of an allocation.
  EXPECT_EQ(run_braid({"run", "--device", "cpu", small_mlp(directory)}, "", {{"SLURM_NTASKS", "4"}})
                .exit_code,
            0);
}

}  // namespace
}  // namespace braid
