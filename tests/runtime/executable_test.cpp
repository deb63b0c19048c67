// The host side of World and Executable, on the cuda device with the stand-in driver: its memory is
// host memory and its kernels do nothing, or what a test lets them do.
#include "braid/executable.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "braid/error.h"
#include "braid/reference.h"
#include "codegen/protocol.h"
#include "runtime/compile/artifact.h"
#include "runtime/dynamic_library.h"
#include "runtime/error_of.h"
#include "runtime/fake_libcuda.h"
#include "runtime/prepare_with_zeros.h"
#include "runtime/temporary_directory.h"

namespace braid {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

// y = rms_norm(all_reduce(x), g), and x itself.
Graph small_graph() {
  return parse_graph(R"({
    "braid": 1, "name": "small",
    "symbols": {"T": {"min": 1, "max": 8}},
    "groups": {"tp": {"size": 2}},
    "inputs": [{"name": "x", "dtype": "bf16", "shape": ["T", 64], "per_rank": true},
               {"name": "g", "dtype": "bf16", "shape": [64], "kind": "parameter"}],
    "nodes": [{"name": "c", "op": "all_reduce", "inputs": ["x"],
               "attrs": {"reduce_op": "sum", "group": "tp"}},
              {"name": "s", "op": "wait_tensor", "inputs": ["c"]},
              {"name": "y", "op": "rms_norm", "inputs": ["s", "g"], "attrs": {"eps": 1e-5}}],
    "outputs": ["y", "x"]})");
}

HostTensor filled(std::vector<std::int64_t> shape, double value) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return HostTensor::from_doubles(DType::kBF16, std::move(shape),
                                  std::vector<double>(static_cast<std::size_t>(count), value));
}

class ExecutableTest : public ::testing::Test {
 protected:
  ExecutableTest() {
    ::setenv("BRAID_LIBCUDA", BRAID_FAKE_LIBCUDA, 1);
    library_ = DynamicLibrary({BRAID_FAKE_LIBCUDA});
    decltype(&::fake_cuda) control = nullptr;
    std::string missing;
    bind_symbol(library_, "fake_cuda", control, missing);
    if (control == nullptr) throw std::runtime_error(library_.failure());
    control_ = control;
    *control_() = {};
  }
  FakeCuda& fake() { return *control_(); }

  /// What kernels that communicate on two ranks do. Their first parameters are the arenas, the
  /// rank, the flags, the timeout and the record.
  void on_launch(void (*body)(const char* entry, void** args)) {
    fake().parameters = {2 * sizeof(std::uint64_t), sizeof(int), sizeof(std::int64_t),
                         sizeof(std::int64_t), sizeof(protocol::Record*)};
    fake().on_launch = body;
  }

  World open_world(int ranks = 2) {
    WorldOptions options;
    options.device = DeviceKind::kCuda;
    options.world = ranks;
    options.cache_dir = cache_.path().string();
    options.timeout_s = 1.5;
    options.progress = [this](std::size_t done, std::size_t total, std::string_view) {
      progress_.emplace_back(done, total);
    };
    return World::open(options);
  }

  TemporaryDirectory cache_;
  DynamicLibrary library_;
  decltype(&::fake_cuda) control_ = nullptr;
  std::vector<std::pair<std::size_t, std::size_t>> progress_;
};

// The flag words of one block and two ranks: an epoch, and two slots.
constexpr std::int64_t kFlagBytes = 20;

TEST_F(ExecutableTest, ReportsWhatItBuilt) {
  World world = open_world();
  Executable executable = Executable::compile(small_graph(), world);
  ASSERT_EQ(executable.kernels().size(), 1);
  const KernelReport kernel = executable.kernels()[0];
  EXPECT_EQ(kernel.ops, "all_reduce+rms_norm");  // x is sent from where it lies
  EXPECT_EQ(kernel.template_name, "collective");
  EXPECT_EQ(kernel.launches, 1);
  EXPECT_GT(kernel.registers, 0);
  EXPECT_EQ(kernel.spill_bytes, 0);
  EXPECT_FALSE(kernel.cache_hit);
  EXPECT_EQ(executable.launches(), 1);
  EXPECT_EQ(progress_.back(), (std::pair<std::size_t, std::size_t>(1, 1)));
  EXPECT_FALSE(executable.program_hash().empty());
  EXPECT_THAT(executable.program_json(), HasSubstr(executable.program_hash()));
  std::vector<std::string> arenas;
  for (const ArenaReport& arena : executable.arenas()) arenas.push_back(arena.name);
  EXPECT_THAT(arenas, ::testing::IsSupersetOf({"parameters", "io", "symmetric:tp"}));
  for (const BufferReport& buffer : executable.buffers()) {
    if (buffer.arena == "symmetric:tp") {
      EXPECT_GE(buffer.offset, protocol::kHeadBytes);
    }
  }
  // The same program again: from the cache, with the same plan.
  Executable again = Executable::compile(small_graph(), world);
  EXPECT_TRUE(again.kernels()[0].cache_hit);
  EXPECT_EQ(again.program_hash(), executable.program_hash());
}

TEST_F(ExecutableTest, OrderOfCallsIsChecked) {
  World world = open_world();
  Executable executable = Executable::compile(small_graph(), world);
  EXPECT_THAT(error_of([&] { executable.run(); }).second, HasSubstr("prepare"));
  EXPECT_THAT(error_of([&] { executable.set_input(0, "g", filled({64}, 1)); }).second,
              HasSubstr("prepare"));
  EXPECT_EQ(error_of([&] { executable.prepare({}); }).first, ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_of([&] { executable.prepare({{"T", 9}}); }).first, ErrorCode::kInvalidArgument);
  prepare_with_zeros(executable, world, {{"T", 8}});
  EXPECT_THAT(error_of([&] { (void)executable.output(0, "y"); }).second, HasSubstr("before a run"));
  executable.run();
  EXPECT_EQ(executable.output(0, "y").shape, (std::vector<std::int64_t>{8, 64}));
  executable.prepare({{"T", 3}});
  EXPECT_EQ(executable.output(0, "y").shape, (std::vector<std::int64_t>{8, 64}));
  EXPECT_THAT(error_of([&] { (void)Executable::compile(Graph("g"), world); }).second,
              HasSubstr("the world has 2"));
}

TEST_F(ExecutableTest, InputsAreChecked) {
  World world = open_world();
  Executable executable = Executable::compile(small_graph(), world);
  executable.prepare({{"T", 3}});
  const auto refuse = [&](int rank, const char* name, const HostTensor& tensor) {
    const auto [code, text] = error_of([&] { executable.set_input(rank, name, tensor); });
    EXPECT_EQ(code, ErrorCode::kInvalidArgument);
    return text;
  };
  EXPECT_EQ(refuse(0, "x", filled({8, 64}, 1)), "x: is bf16[8, 64]; expected bf16[3, 64]");
  EXPECT_THAT(refuse(0, "h", filled({3, 64}, 1)), HasSubstr("no input"));
  EXPECT_THAT(refuse(2, "x", filled({3, 64}, 1)), HasSubstr("world of 2"));
  HostTensor tensor = filled({3, 64}, 1);
  tensor.data.pop_back();
  EXPECT_THAT(refuse(1, "x", tensor), HasSubstr("383 bytes"));
  tensor = filled({3, 64}, 1);
  tensor.dtype = DType::kF16;
  EXPECT_THAT(refuse(1, "x", tensor), HasSubstr("f16[3, 64]"));
}

TEST_F(ExecutableTest, InputHandedThroughAndBoundMemory) {
  World world = open_world();
  {
    Executable executable = Executable::compile(small_graph(), world);
    const auto memory = world.device().allocate(1, 8 * 64 * 2);
    const DeviceTensor tensor{memory->address(), DType::kBF16, {8, 64}};
    EXPECT_THAT(error_of([&] { executable.bind(0, "s", tensor); }).second,
                HasSubstr("no input or output"));
    executable.bind(1, "x", tensor);
    prepare_with_zeros(executable, world, {{"T", 2}});
    executable.set_input(0, "x", filled({2, 64}, 1));
    executable.set_input(1, "x", filled({2, 64}, 2));
    executable.run();
    EXPECT_EQ(executable.output(0, "x").data, filled({2, 64}, 1).data);
    EXPECT_EQ(executable.output(1, "x").data, filled({2, 64}, 2).data);
    std::vector<std::byte> bytes(2 * 64 * 2);
    std::memcpy(bytes.data(), reinterpret_cast<const void*>(memory->address()), bytes.size());
    EXPECT_EQ(bytes, filled({2, 64}, 2).data);  // the caller's memory is the input
    executable.bind(1, "x", tensor);
    EXPECT_THAT(error_of([&] { executable.run(); }).second, HasSubstr("prepare"));
  }
}

TEST_F(ExecutableTest, BoundTensorsAreChecked) {
  World world = open_world();
  Executable executable = Executable::compile(small_graph(), world);
  const auto memory = world.device().allocate(0, 8 * 64 * 2);
  const DeviceTensor good{memory->address(), DType::kBF16, {8, 64}};
  const auto refuse = [&](auto change) {
    DeviceTensor tensor = good;
    change(tensor);
    const auto [code, text] = error_of([&] { executable.bind(0, "x", tensor); });
    EXPECT_EQ(code, ErrorCode::kInvalidArgument);
    return text;
  };
  EXPECT_THAT(refuse([](auto& t) { t.address = 0; }), HasSubstr("x: address 0x0; expected a mul"));
  EXPECT_THAT(refuse([](auto& t) { t.address += 8; }), HasSubstr("multiple of 16"));
  EXPECT_EQ(refuse([](auto& t) { t.dtype = DType::kF16; }),
            "x: is bound to f16[8, 64]; expected bf16[T, 64]");
  EXPECT_THAT(refuse([](auto& t) { t.shape = {512}; }), HasSubstr("bf16[512]; expected"));
  EXPECT_THAT(refuse([](auto& t) { t.shape = {8, 65}; }), HasSubstr("expected bf16[T, 64]"));
  EXPECT_THAT(refuse([](auto& t) { t.shape = {-1, 64}; }), HasSubstr("no negative dim"));
  EXPECT_THAT(refuse([](auto& t) { t.shape = {std::int64_t{1} << 60, 64}; }), HasSubstr("fewer"));
  EXPECT_THAT(refuse([](auto& t) { t.strides = {64}; }), HasSubstr("1 strides; expected one"));
  EXPECT_EQ(refuse([](auto& t) {
              t.strides = {1, 8};
            }),
            "x: strides (1, 8) of bf16[8, 64]; expected a dense row-major tensor");
  // What the driver says of the memory.
  EXPECT_THAT(refuse([](auto& t) { t.shape = {9, 64}; }), HasSubstr("1024 bytes at 0x"));
  EXPECT_THAT(refuse([](auto& t) { t.address += 16; }), HasSubstr("1008 bytes at 0x"));
  fake().strict = true;
  EXPECT_THAT(refuse([](auto& t) { t.address = 16; }), HasSubstr("knows no memory at 0x10"));
  fake().foreign_memory = memory->address();
  EXPECT_THAT(refuse([](auto&) {}), HasSubstr("is memory of another CUDA context; expected"));
  fake().foreign_memory = 0;

  // A dim of one is never stepped along; the first one may be longer than what a plan needs.
  executable.bind(0, "x", {good.address, DType::kBF16, {1, 64}, {7, 1}});
  EXPECT_EQ(error_of([&] {
              executable.prepare({{"T", 2}});
            }).second,
            "x: is bound to bf16[1, 64]; expected at least bf16[2, 64] for these symbols");
  executable.prepare({{"T", 1}});
  executable.bind(0, "x", good);
  executable.prepare({{"T", 2}});
}

TEST_F(ExecutableTest, APlanForAnotherGpuIsRefused) {
  World world = open_world();
  const TemporaryDirectory directory;
  for (const auto& [target, runs] : {std::pair{"sm_90a", true}, std::pair{"sm_90", true},
                                     std::pair{"sm_80", false}, std::pair{"sm_100a", false}}) {
    write_artifact(small_graph(), Target::parse(target), directory.path(), {});
    const std::string path = (directory.path() / "program.json").string();
    const auto load = [&] { (void)Executable::load(path, world); };
    if (runs) {
      load();
      continue;
    }
    EXPECT_EQ(error_of(load), (std::pair{ErrorCode::kInvalidArgument,
                                         fmt::format("small: its kernels are for {}, the GPU is "
                                                     "sm_90a; expected a plan that was made for it",
                                                     target)}));
  }
}

TEST_F(ExecutableTest, RunOnlyLaunchesInterleaved) {
  World world = open_world();
  Executable executable = Executable::compile(small_graph(), world);
  prepare_with_zeros(executable, world, {{"T", 8}});
  const std::size_t handles = fake().live_handles;
  for (int i = 0; i < 100; ++i) executable.run();
  EXPECT_EQ(fake().launches, 200);
  EXPECT_EQ(fake().live_handles, handles);
}

TEST_F(ExecutableTest, RunsOfTwoThreadsAreEnqueuedOneAfterTheOther) {
  World world = open_world();
  std::vector<Executable> executables;
  for (int i = 0; i < 2; ++i) {
    executables.push_back(Executable::compile(small_graph(), world));
    prepare_with_zeros(executables.back(), world, {{"T", 8}});
  }
  fake().launch_us = 500;
  std::vector<std::thread> threads;
  for (Executable& executable : executables) {
    threads.emplace_back([&executable] {
      for (int i = 0; i < 20; ++i) executable.run();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (Executable& executable : executables) executable.synchronize();
  const std::vector<std::thread::id>& launches = fake().launch_threads;
  ASSERT_EQ(launches.size(), 80);
  for (std::size_t i = 0; i < launches.size(); i += 2) {
    ASSERT_EQ(launches[i], launches[i + 1]) << "between the two ranks of run " << i / 2;
  }
}

TEST_F(ExecutableTest, EachRankMayBeEnqueuedByAThreadOfItsOwn) {
  World world = open_world();
  Executable executable = Executable::compile(small_graph(), world);
  const Executable::Plan plan = prepare_with_zeros(executable, world, {{"T", 8}});
  std::vector<std::thread::id> ids(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      ids[static_cast<std::size_t>(rank)] = std::this_thread::get_id();
      for (int i = 0; i < 20; ++i) executable.run_rank(plan, rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
  executable.synchronize();
  const std::vector<std::thread::id>& launches = fake().launch_threads;
  EXPECT_EQ(launches.size(), 40);
  for (const std::thread::id id : ids) {
    EXPECT_EQ(std::count(launches.begin(), launches.end(), id), 20);
  }
  EXPECT_EQ(world.metrics().runs, 20);
}

TEST_F(ExecutableTest, ARankThatCannotBeEnqueuedIsTold) {
  World world = open_world();
  Executable executable = Executable::compile(small_graph(), world);
  const Executable::Plan plan = prepare_with_zeros(executable, world, {{"T", 8}});
  executable.run_rank(plan, 0);
  fake().fail = "cuLaunchKernel";
  EXPECT_THAT(error_of([&] { executable.run_rank(plan, 1); }).second, HasSubstr("cuLaunchKernel"));
  fake().fail.clear();
  EXPECT_EQ(
      error_of([&] { executable.run_rank(plan, 0); }),
      std::pair(ErrorCode::kInvalidArgument,
                std::string("run_rank: an earlier run failed; expected synchronize() first")));
  executable.synchronize();
  for (int rank = 0; rank < 2; ++rank) executable.run_rank(plan, rank);
  executable.synchronize();
}

TEST_F(ExecutableTest, AnotherOneLoadsNothing) {
  World world = open_world();
  Executable executable = Executable::compile(small_graph(), world);
  const int modules = fake().modules;
  const std::uint64_t taken = world.metrics().kernels_from_cache + world.metrics().kernels_compiled;
  Executable other = executable.another();
  EXPECT_EQ(fake().modules, modules);
  EXPECT_EQ(world.metrics().kernels_from_cache + world.metrics().kernels_compiled, taken);
  EXPECT_EQ(other.program_hash(), executable.program_hash());
  prepare_with_zeros(other, world, {{"T", 8}});
  other.run();
  other.synchronize();
  EXPECT_EQ(fake().launches, 2);
}

TEST_F(ExecutableTest, TimeoutIsNamedAndTheExecutableRecovers) {
  World world = open_world();
  Executable executable = Executable::compile(small_graph(), world, {.all_reduce = "one_shot"});
  prepare_with_zeros(executable, world, {{"T", 8}});
  // As the kernel does when rank 1 waits for rank 0 in vain.
  on_launch([](const char* entry, void** args) {
    if (std::string_view(entry).find("all_reduce") == std::string_view::npos) return;
    const auto* arenas = static_cast<const std::uint64_t*>(args[0]);
    for (int rank = 0; rank < 2; ++rank) {  // which both ranks do
      std::atomic_ref(*reinterpret_cast<std::uint32_t*>(arenas[rank] + protocol::kAbortOffset)) = 1;
    }
    if (*static_cast<const int*>(args[1]) != 1) return;
    **static_cast<protocol::Record**>(args[4]) = {.kind = protocol::Record::kLostWait,
                                                  .step = 0,
                                                  .block = 2,
                                                  .peer = 0,
                                                  .expected = 4,
                                                  .seen = 3};
  });
  executable.run();
  const auto [code, text] = error_of([&] { executable.synchronize(); });
  EXPECT_EQ(code, ErrorCode::kTimeout);
  EXPECT_THAT(text, HasSubstr("1.5 s"));
  EXPECT_THAT(text, HasSubstr("rank 1, step 0 "));
  EXPECT_THAT(text, HasSubstr("block 2, slot 0: waited for rank 0 to reach epoch 4, last saw 3"));
  EXPECT_THAT(error_of([&] { (void)executable.output(0, "y"); }).second, HasSubstr("before a run"));
  executable.synchronize();  // told once
  on_launch([](const char* entry, void** args) {
    if (std::string_view(entry).find("all_reduce") == std::string_view::npos) return;
    const auto* arenas = static_cast<const std::uint64_t*>(args[0]);
    const auto flags = *static_cast<const std::int64_t*>(args[2]);
    for (int rank = 0; rank < 2; ++rank) {
      for (const auto& [first, bytes] :
           {std::pair{std::int64_t{0}, protocol::kHeadBytes}, std::pair{flags, kFlagBytes}}) {
        for (std::int64_t at = first; at < first + bytes; ++at) {
          ASSERT_EQ(*reinterpret_cast<const std::uint8_t*>(arenas[rank] + at), 0) << at;
        }
      }
    }
  });
  executable.run();
  EXPECT_NO_THROW((void)executable.output(0, "y"));
}

TEST_F(ExecutableTest, AStreamThatFailsLeavesNoFlagsForTheNextRun) {
  World world = open_world();
  Executable executable = Executable::compile(small_graph(), world, {.all_reduce = "one_shot"});
  prepare_with_zeros(executable, world, {{"T", 8}});
  static bool first = true;
  on_launch([](const char* entry, void** args) {
    if (std::string_view(entry).find("all_reduce") == std::string_view::npos) return;
    const auto* arenas = static_cast<const std::uint64_t*>(args[0]);
    const int rank = *static_cast<const int*>(args[1]);
    const auto flags = *static_cast<const std::int64_t*>(args[2]);
    for (std::int64_t at : {protocol::kAbortOffset, flags, flags + kFlagBytes - 1}) {
      auto& byte = *reinterpret_cast<std::uint8_t*>(arenas[rank] + at);
      ASSERT_EQ(byte, 0) << at;
      if (first && at != protocol::kAbortOffset) byte = 7;
    }
  });
  executable.run();
  fake().fail = "cuStreamSynchronize";
  EXPECT_THROW(executable.synchronize(), Error);
  fake().fail.clear();
  EXPECT_THROW((void)executable.output(0, "y"), Error);  // there is none
  first = false;
  executable.run();
  EXPECT_NO_THROW((void)executable.output(0, "y"));
}

TEST_F(ExecutableTest, MoreRanksOnAGpuThanCanWaitForEachOtherAreRefused) {
  constexpr const char* kText = R"({
    "braid": 1, "name": "crowd", "groups": {"tp": {"size": 65}},
    "inputs": [{"name": "x", "dtype": "f32", "shape": [4], "per_rank": true}],
    "nodes": [{"name": "c", "op": "broadcast", "inputs": ["x"], "attrs": {"src": 0, "group": "tp"}},
              {"name": "y", "op": "wait_tensor", "inputs": ["c"]}],
    "outputs": ["y"]})";
  World world = open_world(65);  // on two GPUs
  const auto [code, text] = error_of([&] { (void)Executable::compile(parse_graph(kText), world); });
  EXPECT_EQ(code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(text,
            "crowd: 33 ranks share a GPU, where the kernels of at most 32 can wait for each other; "
            "expected fewer ranks, more GPUs or the cpu device");
  EXPECT_TRUE(progress_.empty());  // nothing was compiled
  // Ranks that do not wait are as many as one likes.
  constexpr const char* kLocal = R"({
    "braid": 1, "name": "local", "groups": {"tp": {"size": 65}},
    "inputs": [{"name": "x", "dtype": "f32", "shape": [4], "per_rank": true}],
    "nodes": [{"name": "y", "op": "neg", "inputs": ["x"]}],
    "outputs": ["y"]})";
  EXPECT_NO_THROW((void)Executable::compile(parse_graph(kLocal), world));
}

TEST_F(ExecutableTest, FailuresLeakNothing) {
  for (const char* call : {"cuMemCreate", "cuMemHostAlloc", "cuModuleLoadDataEx", "cuStreamCreate",
                           "cuMemsetD8Async", "cuStreamSynchronize"}) {
    {
      World world = open_world();
      fake().fail = call;
      EXPECT_THAT(error_of([&] { (void)Executable::compile(small_graph(), world); }).second,
                  HasSubstr(call));
      fake().fail.clear();
    }
    EXPECT_EQ(fake().live_handles, 0) << call;
  }
  {
    World world = open_world();
    Executable executable = Executable::compile(small_graph(), world);
    prepare_with_zeros(executable, world, {{"T", 8}});
    fake().fail = "cuLaunchKernel";
    EXPECT_THROW(executable.run(), Error);
    fake().fail.clear();
    executable.synchronize();
  }
  EXPECT_EQ(fake().live_handles, 0);
}

TEST_F(ExecutableTest, ArtifactHoldsEveryFile) {
  const TemporaryDirectory temporary;
  const auto directory = temporary.path() / "a" / "b";
  const auto names = [&] {
    std::vector<std::string> result;
    for (const auto& file : std::filesystem::directory_iterator(directory)) {
      result.push_back(file.path().filename().string());
      EXPECT_GT(file.file_size(), 0) << file.path();
    }
    return result;
  };
  const Target target = Target::parse("sm_80");
  const auto reports = write_artifact(small_graph(), target, directory, {});
  ASSERT_EQ(reports.size(), 1);
  const std::string k = reports[0].name;
  EXPECT_THAT(names(), UnorderedElementsAre("program.json", "code.json", k + ".cu", k + ".ptx",
                                            k + ".cubin"));
  EXPECT_EQ(read_file(directory / (k + ".cu")).find("#include"), std::string::npos);
  // Again, over the old files; what else lies there stays.
  write_file(directory / "notes", "mine");
  write_file(directory / "program.json", "old");
  write_artifact(small_graph(), target, directory.string() + "/", {});
  EXPECT_EQ(names().size(), 6);
  EXPECT_THAT(read_file(directory / "program.json"), HasSubstr("{"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.parent_path()), {}), 1);
  // What is said of the kernels is one of them: all take their places, or none does.
  ArtifactOptions options;
  options.report = [](const std::vector<KernelReport>& kernels) { return kernels[0].name; };
  std::filesystem::create_directory(directory / "kernels.json");
  write_file(directory / "program.json", "old");
  EXPECT_EQ(error_of([&] { write_artifact(small_graph(), target, directory, options); }).first,
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(read_file(directory / "program.json"), "old");
  std::filesystem::remove(directory / "kernels.json");
  write_artifact(small_graph(), target, directory, options);
  EXPECT_EQ(read_file(directory / "kernels.json"), k);
  EXPECT_THAT(read_file(directory / "program.json"), HasSubstr("{"));
  EXPECT_EQ(error_of([&] { write_artifact(small_graph(), target, directory / "notes", {}); }).first,
            ErrorCode::kEnvironment);
  EXPECT_EQ(error_of([&] { write_artifact(small_graph(), target, "/proc/braid", {}); }).first,
            ErrorCode::kEnvironment);
}

}  // namespace
}  // namespace braid
