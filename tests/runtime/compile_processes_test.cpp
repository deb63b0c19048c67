// Kernels that other processes compile.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include "braid/executable.h"
#include "runtime/compile/compile_request.h"
#include "runtime/compile/disk_cache.h"
#include "runtime/error_of.h"
#include "runtime/serve_requests.h"
#include "runtime/temporary_directory.h"
#include "runtime/worker_processes.h"

namespace braid {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const char* const kWorker = BRAID_BINARY_DIR "/lib/braid-worker";

// Two matmuls and a norm: a kernel each.
Graph graph() {
  return parse_graph(R"({"braid": 1, "name": "layers", "symbols": {"T": {"max": 64}},
    "inputs": [{"name": "x", "dtype": "bf16", "shape": ["T", 64]},
               {"name": "w1", "dtype": "bf16", "shape": [64, 64]},
               {"name": "w2", "dtype": "bf16", "shape": [64, 32]},
               {"name": "g", "dtype": "bf16", "shape": [32]}],
    "nodes": [{"name": "h", "op": "mm", "inputs": ["x", "w1"]},
              {"name": "a", "op": "silu", "inputs": ["h"]},
              {"name": "p", "op": "mm", "inputs": ["a", "w2"]},
              {"name": "y", "op": "rms_norm", "inputs": ["p", "g"], "attrs": {"eps": 1e-5}}],
    "outputs": ["y"]})");
}

WorldOptions options_with(int processes, const std::string& cache_dir) {
  WorldOptions options;
  options.device = DeviceKind::kCpu;
  options.threads = 1;
  options.compile_processes = processes;
  options.compile_worker = kWorker;
  options.cache_dir = cache_dir;
  return options;
}

void expect_no_children() {
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

/// The code of each kernel, as it is saved.
std::vector<std::string> code_of(const Executable& executable) {
  const TemporaryDirectory directory;
  executable.save(directory.path());
  std::vector<std::string> code;
  for (const KernelReport& kernel : executable.kernels()) {
    for (const char* end : {".ptx", ".cubin"}) {
      code.push_back(read_file(directory.path() / (kernel.name + end)));
    }
  }
  return code;
}

TEST(CompileProcesses, MakeTheSameKernels) {
  const TemporaryDirectory here, there;
  const World alone = World::open(options_with(0, here.path()));
  WorldOptions options = options_with(2, there.path());
  std::vector<std::string> told;
  options.progress = [&](std::size_t done, std::size_t total, std::string_view what) {
    EXPECT_EQ(total, 3U);
    told.push_back(fmt::format("{} {}", done, what.substr(0, what.find('_'))));
  };
  const World world = World::open(options);
  const Executable executable = Executable::compile(graph(), world);
  expect_no_children();
  EXPECT_EQ(code_of(executable), code_of(Executable::compile(graph(), alone)));
  // Two begin, the third one when one of these is there.
  EXPECT_THAT(told, ElementsAre(StartsWith("0 gemm"), StartsWith("0 "), StartsWith("1 "), "3 "));
  EXPECT_EQ(world.metrics().kernels_compiled, 3U);
  EXPECT_GT(world.metrics().compile_ms, 0);
  // What they compiled is in the cache.
  (void)Executable::compile(graph(), World::open(options_with(0, there.path())));
  const Executable again = Executable::compile(graph(), world);
  EXPECT_EQ(world.metrics().kernels_compiled, 3U);
  EXPECT_EQ(world.metrics().kernels_from_cache, 3U);
}

TEST(CompileProcesses, WithoutACacheTheyCompileAsWell) {
  WorldOptions options = options_with(4, "");
  options.use_cache = false;
  const World world = World::open(options);
  for (const KernelReport& kernel : Executable::compile(graph(), world).kernels()) {
    EXPECT_FALSE(kernel.cache_hit);
    EXPECT_GT(kernel.compile_ms, 0);
    EXPECT_GT(kernel.registers, 0);
  }
}

TEST(CompileProcesses, OneThatDiesIsAnErrorOfItsKernel) {
  const TemporaryDirectory directory;
  WorldOptions options = options_with(2, directory.path());
  options.compile_worker = "/bin/false";
  const World world = World::open(options);
  const auto [code, what] = error_of([&] { (void)Executable::compile(graph(), world); });
  EXPECT_EQ(code, ErrorCode::kEnvironment);
  EXPECT_THAT(what, StartsWith("gemm_"));
  EXPECT_THAT(what, HasSubstr(": the process that compiled it ended with exit code 1"));
  expect_no_children();
}

TEST(CompileProcesses, WhatProgressThrowsEndsThem) {
  const TemporaryDirectory directory;
  WorldOptions options = options_with(2, directory.path());
  int calls = 0;
  options.progress = [&](std::size_t, std::size_t, std::string_view) {
    if (++calls == 2) throw std::runtime_error("enough");
  };
  const World world = World::open(options);
  EXPECT_THROW((void)Executable::compile(graph(), world), std::runtime_error);
  EXPECT_EQ(calls, 2);
  expect_no_children();
}

TEST(CompileProcesses, AreLookedForWhenAWorldOpens) {
  const TemporaryDirectory directory;
  WorldOptions options = options_with(2, directory.path());
  options.compile_worker = "/nonexistent/braid-worker";
  const auto [code, what] = error_of([&] { (void)World::open(options); });
  EXPECT_EQ(code, ErrorCode::kEnvironment);
  EXPECT_EQ(what, "/nonexistent/braid-worker: is no program: No such file or directory");
  options.compile_processes = -1;
  EXPECT_EQ(error_of([&] { (void)World::open(options); }).second,
            "compile_processes: -1; expected 0 to 1024");
  options.compile_processes = 1025;
  EXPECT_EQ(error_of([&] { (void)World::open(options); }).second,
            "compile_processes: 1025; expected 0 to 1024");
  // There is none beside this program, which is its own library.
  options.compile_processes = 2;
  options.compile_worker = "";
  std::string warning;
  options.warning = [&](std::string_view text) { warning = text; };
  const World world = World::open(options);
  EXPECT_THAT(warning, HasSubstr("kernels are compiled in this process"));
  (void)Executable::compile(graph(), world);
  EXPECT_EQ(world.metrics().kernels_compiled, 3U);
}

TEST(CompileProcesses, TellWhatTheCompilerSaid) {
  WorkerProcesses workers({kWorker}, 1);
  const std::vector<std::string> requests{
      for_worker(CompileRequest{{"wrong", "this is no text"}, {}, "", false, nvrtc_path()})};
  workers.run(requests, {.begins = {}, .ends = [](std::size_t, const WorkerAnswer& answer) {
                           ASSERT_TRUE(answer.bytes);
                           const auto [code, what] =
                               error_of([&] { (void)compiled_from(*answer.bytes); });
                           EXPECT_EQ(code, ErrorCode::kInternal);
                           EXPECT_THAT(what, StartsWith("wrong: NVRTC "));
                           EXPECT_THAT(what, HasSubstr("error: "));
                         }});
  // What is no request ends a worker.
  const std::vector<std::string> noise{"noise"};
  workers.run(noise, {.begins = {}, .ends = [](std::size_t, const WorkerAnswer& answer) {
                        EXPECT_FALSE(answer.bytes);
                        EXPECT_EQ(answer.end, "ended with exit code 1");
                      }});
}

/// How each of some requests to such a process ends.
std::vector<std::string> ends_of(std::vector<std::string> command, const std::string& request) {
  WorkerProcesses workers(std::move(command), 2, std::chrono::milliseconds(300));
  const std::vector<std::string> requests(3, request);
  std::vector<std::string> ends;
  workers.run(requests, {.begins = {}, .ends = [&](std::size_t, const WorkerAnswer& answer) {
                           EXPECT_FALSE(answer.bytes);
                           ends.push_back(answer.end);
                         }});
  return ends;
}

TEST(CompileProcesses, HaveADeadline) {
  const std::string late = "did not answer within 0.3 s";
  EXPECT_THAT(ends_of({"/bin/sleep", "1000"}, "a"), ElementsAre(late, late, late));
  // Nor do they stop who sends them more than a socket holds,
  EXPECT_THAT(ends_of({"/bin/sleep", "1000"}, std::string(8 << 20, 'a')),
              ElementsAre(late, late, late));
  // who reads an answer that breaks off, or who waits for the end of one that has hung up.
  EXPECT_THAT(ends_of({"/bin/sh", "-c", "echo answer >&0; sleep 1000"}, "a"),
              ElementsAre(late, late, late));
  EXPECT_THAT(ends_of({"/bin/sh", "-c", "exec 0<&-; sleep 1000"}, "a"),
              ElementsAre(late, late, late));
  EXPECT_THAT(
      ends_of({"/bin/sh", "-c", "exit 7"}, "a"),
      ElementsAre("ended with exit code 7", "ended with exit code 7", "ended with exit code 7"));
}

TEST(CompileProcesses, HaveNoFilesOfTheirCaller) {
  const TemporaryDirectory directory;
  const std::string list = (directory.path() / "list").string();
  constexpr int kKept = 50;
  ASSERT_EQ(::dup2(STDERR_FILENO, kKept), kKept);  // without FD_CLOEXEC
  (void)ends_of({"/bin/sh", "-c",
                 "cd /proc/$$/fd; list=\"$(readlink 1 2 50)\"; echo \"$list\" >" + list +
                     ".$$; mv " + list + ".$$ " + list},
                "a");
  ::close(kKept);
  EXPECT_EQ(read_file(list), "/dev/null\n/dev/null\n");
}

TEST(CompileProcesses, StopWithinAMoment) {
  WorkerProcesses workers({"/bin/sleep", "1000"}, 2);
  std::stop_source stop;
  stop.request_stop();
  const std::vector<std::string> requests{"a", "b"};
  workers.run(requests, {.begins = {}, .ends = [](std::size_t, const WorkerAnswer&) { FAIL(); }},
              stop.get_token());
}

}  // namespace
}  // namespace braid
