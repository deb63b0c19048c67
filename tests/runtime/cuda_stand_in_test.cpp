// The cuda device end to end without a GPU: the stand-in driver runs what it launches on the cpu
// device. Every driver call of a run fails once, in turn.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include "braid/error.h"
#include "braid/executable.h"
#include "braid/reference.h"
#include "braid/symmetric_memory.h"
#include "runtime/device_loader.h"
#include "runtime/dynamic_library.h"
#include "runtime/error_of.h"
#include "runtime/fake_libcuda.h"
#include "runtime/prepare_with_zeros.h"

namespace braid {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class CudaStandIn : public ::testing::Test {
 protected:
  CudaStandIn() {
    ::setenv("BRAID_LIBCUDA", BRAID_FAKE_LIBCUDA, 1);
    ::setenv("CUDA_FORCE_PTX_JIT", "1", 1);
    library_ = DynamicLibrary({BRAID_FAKE_LIBCUDA});
    decltype(&::fake_cuda) control = nullptr;
    std::string missing;
    bind_symbol(library_, "fake_cuda", control, missing);
    if (control == nullptr) throw std::runtime_error(library_.failure());
    control_ = control;
    *control_() = {};
    fake().run_kernels = true;
  }
  FakeCuda& fake() { return *control_(); }

  /// The worst relative error of the outputs over what is allowed.
  static double run(const Graph& graph, const Bindings& bindings, double timeout_s = 30,
                    const PassConfig& passes = {}) {
    WorldOptions options;
    options.device = DeviceKind::kCuda;
    options.timeout_s = timeout_s;
    options.world = static_cast<int>(world_size(graph));
    World world = World::open(options);
    Executable executable = Executable::compile(graph, world, passes);
    executable.prepare(bindings);
    const RankTensors inputs = random_inputs(graph, bindings, 3);
    for (int rank = 0; rank < world.size(); ++rank) {
      for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
        executable.set_input(rank, graph.inputs()[i].name,
                             inputs[static_cast<std::size_t>(rank)][i]);
      }
    }
    executable.poison_outputs();
    executable.run();
    executable.synchronize();
    const RankTensors expected = evaluate(graph, inputs, bindings);
    double worst = 0;
    for (int rank = 0; rank < world.size(); ++rank) {
      for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
        const HostTensor out = executable.output(rank, graph.value(graph.outputs()[i]).name);
        worst = std::max(worst, relative_error(out, expected[static_cast<std::size_t>(rank)][i]) /
                                    tolerance(graph, graph.outputs()[i], expected[0][i].shape));
      }
    }
    return worst;
  }

  DynamicLibrary library_;
  decltype(&::fake_cuda) control_ = nullptr;
};

TEST_F(CudaStandIn, RunsEveryExample) {
  int examples = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(BRAID_SOURCE_DIR) + "/examples")) {
    if (entry.path().extension() != ".json") continue;
    const Graph graph = load_graph(entry.path().string());
    Bindings bindings;
    for (const auto& [name, symbol] : graph.symbols()) bindings[name] = 2;
    EXPECT_LE(run(graph, bindings), 1) << entry.path();
    EXPECT_EQ(fake().live_handles, 0) << entry.path();
    ++examples;
  }
  EXPECT_GE(examples, 4);
}

TEST_F(CudaStandIn, RanksMeetInOneQueueOfAGpu) {
  fake().queues = 1;
  const Graph graph = load_graph(std::string(BRAID_SOURCE_DIR) + "/examples/llama_mlp.json");
  EXPECT_LE(run(graph, {{"T", 2}}), 1);
}

TEST_F(CudaStandIn, GpusReduceByOneAddress) {
  fake().multicast = true;
  const Graph graph = parse_graph(R"({
    "braid": 1, "name": "pair",
    "symbols": {"T": {"min": 1, "max": 8}},
    "groups": {"tp": {"size": 2}},
    "inputs": [{"name": "x", "dtype": "f32", "shape": ["T", 64], "per_rank": true}],
    "nodes": [{"name": "c", "op": "all_reduce", "inputs": ["x"],
               "attrs": {"reduce_op": "sum", "group": "tp"}},
              {"name": "y", "op": "wait_tensor", "inputs": ["c"]}],
    "outputs": ["y"]})");
  EXPECT_LE(run(graph, {{"T", 5}}, 30, {.all_reduce = "multimem", .batch_invariant = false}), 1);
  EXPECT_EQ(fake().live_handles, 0);
}

TEST_F(CudaStandIn, SharesTheCallersMemory) {
  {
    WorldOptions options;
    options.device = DeviceKind::kCuda;
    options.timeout_s = 2;
    options.world = 2;
    const World world = World::open(options);
    Device& device = world.device();
    const auto first = device.allocate(0, 4096), second = device.allocate(1, 4096);
    const std::vector<std::uint64_t> addresses{first->address() + 256, second->address()};
    const SymmetricMemory memory =
        SymmetricMemory::register_memory(world, "kv", {2, true, {}}, addresses, 1024);
    const auto left = device.create_stream(0), right = device.create_stream(1);
    left->write_value(memory.buffer(0, 1, {}, DType::kI32, 8), 42);
    memory.put_signal(0, 1, *left);
    memory.barrier(0, *left, 1);
    memory.wait_signal(1, 0, *right);
    right->copy(memory.buffer(1, 0, {}, DType::kI32), second->address() + 8, 4);
    memory.barrier(1, *right, 1);
    std::uint32_t word = 0;
    left->copy_to_host(&word, first->address() + 256, 4);
    left->synchronize();
    EXPECT_EQ(word, 42);
    memory.check();
    memory.barrier(0, *left);  // alone
    left->synchronize();
    EXPECT_THAT([&] { memory.check(); },
                ::testing::ThrowsMessage<Error>(::testing::HasSubstr(
                    "rank 0, barrier of channel 0: waited for rank 1 to reach epoch 1")));
    right->synchronize();
  }
  EXPECT_EQ(fake().live_handles, 0);
}

// One graph for each batch size; the stand-in knows what a capture forbids.
TEST_F(CudaStandIn, GraphsOfChangingBatchesGiveWhatRunsGive) {
  const Graph graph = parse_graph(R"({
    "braid": 1, "name": "layer",
    "symbols": {"T": {"min": 1, "max": 8}},
    "groups": {"tp": {"size": 2}},
    "inputs": [{"name": "x", "dtype": "f32", "shape": ["T", 64], "per_rank": true},
               {"name": "w", "dtype": "f32", "shape": [64, 64]}],
    "nodes": [{"name": "p", "op": "mm", "inputs": ["x", "w"]},
              {"name": "c", "op": "all_reduce", "inputs": ["p"],
               "attrs": {"reduce_op": "sum", "group": "tp"}},
              {"name": "y", "op": "wait_tensor", "inputs": ["c"]}],
    "outputs": ["y"]})");
  {
    WorldOptions options;
    options.device = DeviceKind::kCuda;
    options.world = 2;
    const World world = World::open(options);
    Executable executable = Executable::compile(graph, world);
    std::vector<std::unique_ptr<Stream>> streams;
    std::vector<Stream*> lanes;
    for (const int rank : world.ranks()) {
      streams.push_back(world.device().create_stream(rank));
      lanes.push_back(streams.back().get());
    }
    std::map<std::int64_t, std::vector<std::unique_ptr<RecordedGraph>>> graphs;
    for (const std::int64_t rows : {1, 3}) {
      const Executable::Plan plan = prepare_with_zeros(executable, world, {{"T", rows}});
      executable.run(plan, lanes);  // what is outside of the capture
      for (Stream* lane : lanes) lane->begin_capture();
      executable.run(plan, lanes);
      for (Stream* lane : lanes) graphs[rows].push_back(lane->end_capture());
    }
    for (const std::int64_t rows : {3, 1, 3}) {
      const Bindings bindings{{"T", rows}};
      executable.prepare(bindings);
      const RankTensors inputs = random_inputs(graph, bindings, static_cast<unsigned>(rows));
      for (std::size_t rank = 0; rank < lanes.size(); ++rank) {
        for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
          executable.set_input(static_cast<int>(rank), graph.inputs()[i].name, inputs[rank][i]);
        }
      }
      executable.run();
      const HostTensor expected = executable.output(1, "y");
      executable.poison_outputs();
      const int launches = fake().launches;
      for (std::size_t rank = 0; rank < lanes.size(); ++rank) {
        lanes[rank]->replay(*graphs[rows][rank]);
      }
      for (Stream* lane : lanes) lane->synchronize();
      EXPECT_EQ(executable.output(1, "y").data, expected.data) << rows;
      EXPECT_EQ(fake().launches, launches);
    }
  }
  EXPECT_EQ(fake().live_handles, 0);
}

TEST_F(CudaStandIn, MisuseOfCapturesIsTheCallersError) {
  {
    const auto device = open_device(DeviceKind::kCuda, {.world = 2});
    const auto stream = device->create_stream(0), other = device->create_stream(0);
    const auto event = device->create_event(0);
    const auto refused = [](auto call) {
      const auto [code, text] = error_of(call);
      EXPECT_EQ(code, ErrorCode::kInvalidArgument) << text;
      return text;
    };
    EXPECT_THAT(refused([&] { (void)stream->end_capture(); }), HasSubstr("not being captured"));
    stream->record(*event);
    stream->begin_capture();
    EXPECT_TRUE(stream->is_capturing());
    EXPECT_THAT(refused([&] { stream->wait(*event); }), HasSubstr("cuStreamWaitEvent"));
    EXPECT_THAT(refused([&] { stream->synchronize(); }), HasSubstr("cuStreamSynchronize"));
    stream->record(*event);
    other->wait(*event);
    const auto memory = device->allocate(0, 256);
    other->fill(memory->address(), 1, 256);
    EXPECT_THAT(refused([&] { (void)stream->end_capture(); }), HasSubstr("cuStreamEndCapture"));
    EXPECT_FALSE(stream->is_capturing());
    EXPECT_FALSE(other->is_capturing());
    EXPECT_THAT(refused([&] { other->wait(*event); }), HasSubstr("cuStreamWaitEvent"));
  }
  EXPECT_EQ(fake().live_handles, 0);
}

TEST_F(CudaStandIn, AProcessUsesTheGpuOfItsNumberOnTheMachine) {
  const auto gpu_of = [&](std::vector<int> own, std::vector<int> others, int gpu = -1) {
    WorldOptions options;
    options.device = DeviceKind::kCuda;
    options.world = static_cast<int>(own.size() + others.size());
    options.gpu = gpu;
    const auto ends = meet_in_process({own, others});
    options.rendezvous = ends[0];
    const World world = World::open(options);
    const auto memory = world.device().allocate(own[0], 64);
    decltype(&::fake_cuda_owner) owner = nullptr;
    std::string missing;
    bind_symbol(library_, "fake_cuda_owner", owner, missing);
    return owner(memory->address(), 64);
  };
  EXPECT_EQ(gpu_of({1}, {0, 2}), 1);
  EXPECT_EQ(gpu_of({1}, {0, 2}, 0), 0);
  EXPECT_EQ(gpu_of({2}, {0, 1}, 3), 1);
  for (const char* name : {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"}) {
    ::setenv(name, "0", 1);
    EXPECT_EQ(gpu_of({1}, {0, 2}), 0) << name;  // the machine before has one process, say
    EXPECT_EQ(gpu_of({1}, {0, 2}, 1), 1) << name;
    ::setenv(name, "1", 1);
    EXPECT_EQ(gpu_of({0}, {1, 2}), 1) << name;
    EXPECT_EQ(gpu_of({2, 3}, {0, 1}), 0) << name;  // two ranks in each process
    ::setenv(name, "one", 1);
    EXPECT_EQ(error_of([&] { (void)gpu_of({0}, {1}); }).second,
              std::string(name) + ": found \"one\"; expected a number from 0 to 1023");
    ::unsetenv(name);
  }
  EXPECT_THROW((void)gpu_of({0}, {1}, -2), Error);
  EXPECT_EQ(fake().live_handles, 0);
}

TEST_F(CudaStandIn, AWorkspaceDoesNotGrowWhileAStreamIsCaptured) {
  {
    WorldOptions options;
    options.device = DeviceKind::kCuda;
    options.world = 2;
    const World world = World::open(options);
    const auto stream = world.device().create_stream(0), other = world.device().create_stream(1);
    const std::vector<Stream*> streams{other.get(), stream.get()};
    const auto ask = [&](std::size_t bytes) {
      return SymmetricMemory::workspace(world, "tp", {2, true, {}}, bytes, streams).size();
    };
    EXPECT_EQ(ask(4096), 4096);
    stream->begin_capture();
    EXPECT_EQ(ask(4000), 4096);
    EXPECT_EQ(error_of([&] { (void)ask(5000); }),
              std::pair(ErrorCode::kInvalidArgument,
                        std::string("symmetric memory 'tp': found 4096 bytes, and a stream that is "
                                    "being captured; expected a call for 5000 bytes before the "
                                    "capture")));
    (void)stream->end_capture();
    EXPECT_EQ(ask(5000), 5000);
  }
  EXPECT_EQ(fake().live_handles, 0);
}

// The record lies in pinned memory, which kernels and the host reach by one address.
TEST_F(CudaStandIn, AnIndexOutOfRangeIsAnErrorOfTheRun) {
  const Graph graph = parse_graph(R"({
    "braid": 1, "name": "lookup",
    "inputs": [{"name": "t", "dtype": "f32", "shape": [4, 8]},
               {"name": "i", "dtype": "i64", "shape": [3]}],
    "nodes": [{"name": "e", "op": "embedding", "inputs": ["t", "i"]}],
    "outputs": ["e"]})");
  const auto indices = [](double last) {
    return HostTensor::from_doubles(DType::kI64, {3}, {0, 3, last});
  };
  {
    WorldOptions options;
    options.device = DeviceKind::kCuda;
    World world = World::open(options);
    Executable executable = Executable::compile(graph, world);
    executable.prepare({});
    executable.set_input(
        0, "t", HostTensor::from_doubles(DType::kF32, {4, 8}, std::vector<double>(32, 1.5)));
    executable.set_input(0, "i", indices(-1));
    executable.run();
    try {
      executable.synchronize();
      FAIL();
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(),
                   "e: rank 0: index -1 is out of range; expected an integer from 0 to 3");
    }
    executable.set_input(0, "i", indices(2));
    executable.run();
    EXPECT_EQ(executable.output(0, "e").to_doubles(), std::vector<double>(24, 1.5));
  }
  EXPECT_EQ(fake().live_handles, 0);
}

TEST_F(CudaStandIn, EveryCallThatFailsOnceIsOneErrorAndLeaksNothing) {
  const Graph graph = parse_graph(R"({
    "braid": 1, "name": "small",
    "symbols": {"T": {"min": 1, "max": 8}},
    "groups": {"tp": {"size": 3}},
    "inputs": [{"name": "x", "dtype": "f32", "shape": ["T", 64], "per_rank": true}],
    "nodes": [{"name": "c", "op": "all_reduce", "inputs": ["x"],
               "attrs": {"reduce_op": "sum", "group": "tp"}},
              {"name": "s", "op": "wait_tensor", "inputs": ["c"]},
              {"name": "y", "op": "rms_norm", "inputs": ["s"], "attrs": {"eps": 1e-5}}],
    "outputs": ["y"]})");
  EXPECT_LE(run(graph, {{"T", 2}}), 1);
  const int calls = fake().calls;
  ASSERT_GT(calls, 50);
  fake().calls = 0;
  EXPECT_LE(run(graph, {{"T", 2}}), 1);
  const int again = fake().calls;  // the driver is initialised once
  int failed = 0;
  for (int n = 1; n <= again; ++n) {
    fake().calls = 0;
    fake().fail_call = n;
    fake().error = 700;
    try {
      // A rank that was not launched is missed by its peers, which give up after this long.
      EXPECT_LE(run(graph, {{"T", 2}}, 2), 1) << "call " << n;
    } catch (const Error& error) {
      ++failed;
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
      EXPECT_THAT(error.what(), ::testing::HasSubstr("cu"));
    }
    fake().fail_call = 0;
    EXPECT_EQ(fake().live_handles, 0) << "call " << n;
    EXPECT_EQ(fake().current_context, nullptr) << "call " << n;
  }
  // Some calls may fail without harm: those that only clean up.
  EXPECT_GT(failed, again / 2);
}

// What the driver refuses of it is no error: all else works without.
TEST_F(CudaStandIn, MulticastIsThereWhereItWorks) {
  const auto open = [](int world) { return open_device(DeviceKind::kCuda, {.world = world}); };
  const std::vector<int> both{0, 1};
  EXPECT_FALSE(open(2)->has_multicast());
  fake().multicast = true;
  {
    const auto device = open(2);
    ASSERT_TRUE(device->has_multicast());
    EXPECT_THAT(device->description(), Not(HasSubstr("multicast")));
    const auto multicast = device->create_multicast(both, 5 << 20);
    EXPECT_EQ(multicast->size(), 5 << 20);
    multicast->add_rank(0);
    const auto memory = device->allocate_shared(0, 5 << 20);
    EXPECT_THROW(memory->bind_multicast(*multicast, 0), Error);  // before all are there
    EXPECT_THROW(multicast->add_rank(0), Error);
    multicast->add_rank(1);
    EXPECT_THROW((void)multicast->address(), Error);
    EXPECT_THROW(device->allocate(0, 64)->bind_multicast(*multicast, 0), Error);
    memory->bind_multicast(*multicast, 0);
    EXPECT_NE(multicast->address(), memory->address());
    EXPECT_THROW(memory->bind_multicast(*multicast, 0), Error);  // twice
    EXPECT_THROW((void)device->create_multicast(both, 64, "nonsense"), Error);
    EXPECT_FALSE(open(4)->has_multicast());  // ranks share a GPU
  }
  EXPECT_EQ(fake().live_handles, 0);
  fake().multicast_refuses = true;
  {
    const auto device = open(2);
    EXPECT_FALSE(device->has_multicast());
    EXPECT_THAT(device->description(),
                HasSubstr("; no multicast: CUDA driver: cuMulticastBindMem"));
    EXPECT_THROW((void)device->create_multicast(both, 64), Error);
    EXPECT_EQ(device->allocate_shared(1, 64)->size(), 64);
  }
  fake().multicast_refuses = false;
  fake().run_kernels = false;  // all calls work, and nothing is written
  EXPECT_THAT(open(2)->description(), HasSubstr("GPU 0 does not find what was written to all"));
  fake().run_kernels = true;
  fake().fail = "cuMulticastAddDevice";
  EXPECT_FALSE(open(2)->has_multicast());
  EXPECT_EQ(fake().live_handles, 0);
}

}  // namespace
}  // namespace braid
