// NCCL between real processes, one for each rank: this binary starts itself once for each.
#include <gmock/gmock.h>
#include <spawn.h>
#include <sys/wait.h>

#include <filesystem>

#include "braid/error.h"
#include "braid/executable.h"
#include "braid/reference.h"
#include "run/far_graphs.h"
#include "run/run_graph.h"
#include "runtime/meeting_file.h"
#include "runtime/nccl_testing.h"
#include "runtime/temporary_directory.h"

namespace braid {
namespace {

constexpr int kWorld = 3;

class NcclProcess : public NcclStandIn {};

/// What the process of one rank does: runs the program, and compares what it gives there.
TEST_F(NcclProcess, DISABLED_OfOneRank) {
  const int rank = std::stoi(environment("NCCL_TEST_RANK"));
  const Graph graph = testing::every_collective(kWorld, DType::kBF16);
  const Bindings bindings{{"T", 3}};
  const RankTensors inputs = random_inputs(graph, bindings, 5);
  const RankTensors expected = evaluate(graph, inputs, bindings);
  WorldOptions options;
  options.device = DeviceKind::kCuda;
  options.world = kWorld;
  options.rendezvous =
      std::make_shared<MeetingFile>(environment("NCCL_TEST_MEETING"), rank, kWorld);
  const World world = World::open(options);
  Executable executable = Executable::compile(graph, world);
  executable.prepare(bindings);
  const auto index = static_cast<std::size_t>(rank);
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
    executable.set_input(rank, graph.inputs()[i].name, inputs[index][i]);
  }
  for (int run = 0; run < 3; ++run) {
    executable.poison_outputs();
    executable.run();
    executable.synchronize();
  }
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    const ValueId output = graph.outputs()[i];
    const HostTensor got = executable.output(rank, graph.value(output).name);
    EXPECT_LE(relative_error(got, expected[index][i]),
              tolerance(graph, output, expected[index][i].shape))
        << graph.value(output).name;
  }
  EXPECT_EQ(nccl().live_comms, 1);
  executable.recover();  // makes new communicators
  executable.run();
  executable.synchronize();
  options.rendezvous->barrier();
}

int names_in_shared_memory() {
  int names = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    names += entry.path().filename().string().starts_with("braid_fake_nccl") ? 1 : 0;
  }
  return names;
}

TEST(NcclProcesses, OfThreeRanksRunEveryCollectiveTogether) {
  const TemporaryDirectory directory;
  ::setenv("NCCL_TEST_MEETING", (directory.path() / "meeting").c_str(), 1);
  std::vector<pid_t> children;
  for (int rank = 0; rank < kWorld; ++rank) {
    ::setenv("NCCL_TEST_RANK", std::to_string(rank).c_str(), 1);
    const char* arguments[] = {"nccl_test", "--gtest_filter=NcclProcess.*",
                               "--gtest_also_run_disabled_tests", nullptr};
    pid_t child = 0;
    ASSERT_EQ(::posix_spawn(&child, "/proc/self/exe", nullptr, nullptr,
                            const_cast<char**>(arguments), environ),
              0);
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  EXPECT_EQ(names_in_shared_memory(), 0);
}

}  // namespace
}  // namespace braid
