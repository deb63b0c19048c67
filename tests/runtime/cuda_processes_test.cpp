// Ranks of the cuda device in processes of their own, on the stand-in driver: this binary starts
// itself once for each. What one writes the others read, in memory that the driver shares.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>

#include "braid/error.h"
#include "braid/executable.h"
#include "braid/reference.h"
#include "braid/symmetric_memory.h"
#include "runtime/dynamic_library.h"
#include "runtime/fake_libcuda.h"
#include "runtime/meeting_file.h"
#include "runtime/temporary_directory.h"

namespace braid {
namespace {

constexpr int kWorld = 3;

long open_files() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

void expect_reference(const Graph& graph, const World& world, int rank, const PassConfig& passes) {
  const Bindings bindings{{"T", 3}};
  const RankTensors inputs = random_inputs(graph, bindings, 5);
  const RankTensors expected = evaluate(graph, inputs, bindings);
  Executable executable = Executable::compile(graph, world, passes);
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
    EXPECT_LE(relative_error(executable.output(rank, graph.value(output).name), expected[index][i]),
              tolerance(graph, output, expected[index][i].shape))
        << graph.value(output).name;
  }
}

/// Each writes into the next one's memory and tells it.
void pass_a_word_on(const World& world, int rank) {
  const SymmetricMemory memory =
      SymmetricMemory::allocate(world, "ring", {kWorld, true, {}}, 3 << 20);
  const int next = (rank + 1) % kWorld, last = (rank + kWorld - 1) % kWorld;
  const auto stream = world.device().create_stream(rank);
  const std::size_t at = (std::size_t{3} << 20) - 4;
  stream->write_value(memory.buffer(rank, next, {}, DType::kI32, at),
                      static_cast<std::uint32_t>(40 + rank));
  memory.put_signal(rank, next, *stream);
  memory.wait_signal(rank, last, *stream);
  std::uint32_t word = 0;
  stream->copy_to_host(&word, memory.buffer(rank, rank, {}, DType::kI32, at), 4);
  memory.barrier(rank, *stream);
  stream->synchronize();
  EXPECT_EQ(word, static_cast<std::uint32_t>(40 + last));
  memory.check();
}

/// What the process of one rank does.
TEST(CudaProcess, DISABLED_OfOneRank) {
  const int rank = std::stoi(environment("CUDA_TEST_RANK"));
  const DynamicLibrary library({BRAID_FAKE_LIBCUDA});
  decltype(&::fake_cuda) control = nullptr;
  std::string missing;
  bind_symbol(library, "fake_cuda", control, missing);
  ASSERT_NE(control, nullptr) << library.failure();
  control()->gpus = kWorld;
  control()->run_kernels = true;
  control()->fabric = control()->multicast = environment("CUDA_TEST_FABRIC") == "1";
  // What works for one process does not for each: another kind of handle does.
  constexpr const char* kRefused[] = {"cuMulticastCreate", "cuMemExportToShareableHandle",
                                      "cuMemImportFromShareableHandle"};
  control()->fabric_refuses = kRefused[rank];
  const Graph graph = parse_graph(R"({
    "braid": 1, "name": "small",
    "symbols": {"T": {"min": 1, "max": 8}},
    "groups": {"tp": {"size": 3}},
    "inputs": [{"name": "x", "dtype": "f32", "shape": ["T", 64], "per_rank": true},
               {"name": "p", "dtype": "bf16", "shape": ["T", 40], "per_rank": true}],
    "nodes": [{"name": "c", "op": "all_reduce", "inputs": ["x"],
               "attrs": {"reduce_op": "sum", "group": "tp"}},
              {"name": "s", "op": "wait_tensor", "inputs": ["c"]},
              {"name": "y", "op": "rms_norm", "inputs": ["s"], "attrs": {"eps": 1e-5}},
              {"name": "g", "op": "all_gather_into_tensor", "inputs": ["p"],
               "attrs": {"group": "tp"}},
              {"name": "z", "op": "wait_tensor", "inputs": ["g"]}],
    "outputs": ["y", "z"]})");
  const long files = open_files();
  {
    WorldOptions options;
    options.device = DeviceKind::kCuda;
    options.world = kWorld;
    options.rendezvous =
        std::make_shared<MeetingFile>(environment("CUDA_TEST_MEETING"), rank, kWorld);
    const World world = World::open(options);
    expect_reference(graph, world, rank, {});
    EXPECT_EQ(world.device().has_multicast(), control()->multicast);
    if (control()->multicast) {
      expect_reference(graph, world, rank, {.all_reduce = "multimem", .batch_invariant = false});
    }
    pass_a_word_on(world, rank);
    options.rendezvous->barrier();
  }
  EXPECT_EQ(control()->live_handles, 0U);
  EXPECT_EQ(control()->current_context, nullptr);
  EXPECT_LE(open_files(), files);
}

TEST(CudaProcesses, ShareTheMemoryOfTheirGpus) {
  ::setenv("BRAID_LIBCUDA", BRAID_FAKE_LIBCUDA, 1);
  ::setenv("CUDA_FORCE_PTX_JIT", "1", 1);
  for (const char* fabric : {"0", "1"}) {
    ::setenv("CUDA_TEST_FABRIC", fabric, 1);
    const TemporaryDirectory directory;
    ::setenv("CUDA_TEST_MEETING", (directory.path() / "meeting").c_str(), 1);
    std::vector<pid_t> children;
    for (int rank = 0; rank < kWorld; ++rank) {
      ::setenv("CUDA_TEST_RANK", std::to_string(rank).c_str(), 1);
      const char* arguments[] = {"cuda_stand_in_test", "--gtest_filter=CudaProcess.*",
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
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "fabric " << fabric;
    }
  }
}

}  // namespace
}  // namespace braid
