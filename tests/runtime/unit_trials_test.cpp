// Units of a GPU are tried before kernels use them: on the stand-in driver, whose hardware has the
// flaw that a test gives it.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <random>
#include <thread>

#include "braid/error.h"
#include "braid/executable.h"
#include "braid/reference.h"
#include "codegen/units.h"
#include "runtime/compile/compile_program.h"
#include "runtime/compile/disk_cache.h"
#include "runtime/doctor.h"
#include "runtime/dynamic_library.h"
#include "runtime/error_of.h"
#include "runtime/exec/executable_impl.h"
#include "runtime/exec/unit_canary.h"
#include "runtime/fake_libcuda.h"
#include "runtime/temporary_directory.h"

namespace braid {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

// A wgmma that takes its first operand with the other sign, and a mma.sync of other numbers.
constexpr const char* kWgmma = " p, 1, 1, 0, 1;";
constexpr const char* kNegated = " p, -1, 1, 0, 1;";
constexpr const char* kMma = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32";
constexpr const char* kOtherMma = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32";
// Where there is nothing else, small matmuls use wgmma.
constexpr const char* kOnlyWgmma = ":wgmma,cp.async.bulk.tensor";

Graph matmul(int ranks = 1, std::int64_t rows = 72) {
  const std::string group =
      ranks == 1 ? "" : fmt::format(R"("groups": {{"tp": {{"size": {}}}}},)", ranks);
  const char* const reduce = ranks == 1 ? "" : R"(,
              {"name": "r", "op": "all_reduce", "inputs": ["c"],
               "attrs": {"reduce_op": "sum", "group": "tp"}},
              {"name": "y", "op": "wait_tensor", "inputs": ["r"]})";
  return parse_graph(fmt::format(R"({{
    "braid": 1, "name": "product", {}
    "inputs": [{{"name": "a", "dtype": "bf16", "shape": [{}, 256]}},
               {{"name": "b", "dtype": "bf16", "shape": [256, {}]}}],
    "nodes": [{{"name": "c", "op": "mm", "inputs": ["a", "b"]}}{}],
    "outputs": ["{}"]}})",
                                 group, rows, rows, reduce, ranks == 1 ? "c" : "y"));
}

/// The target of a plan.
std::string target_of(const Executable& executable) {
  const std::string json = executable.program_json();
  const std::string mark = R"("target": ")";
  const std::size_t at = json.find(mark) + mark.size();
  return json.substr(at, json.find('"', at) - at);
}

class UnitTrialsTest : public ::testing::Test {
 protected:
  UnitTrialsTest() {
    ::setenv("BRAID_LIBCUDA", BRAID_FAKE_LIBCUDA, 1);
    ::setenv("CUDA_FORCE_PTX_JIT", "1", 1);
    library_ = DynamicLibrary({BRAID_FAKE_LIBCUDA});
    std::string missing;
    bind_symbol(library_, "fake_cuda", control_, missing);
    if (control_ == nullptr) throw std::runtime_error(library_.failure());
    *control_() = {};
    fake().run_kernels = true;
  }
  ~UnitTrialsTest() override {
    EXPECT_EQ(fake().live_handles, 0);
    *control_() = {};
  }
  FakeCuda& fake() { return *control_(); }

  WorldOptions options(int ranks = 1) {
    WorldOptions options;
    options.device = DeviceKind::kCuda;
    options.world = ranks;
    options.target = kOnlyWgmma;
    options.cache_dir = cache_.path().string();
    options.warning = [this](std::string_view what) { warnings_.emplace_back(what); };
    return options;
  }
  /// Compiles in a world of its own. `launches_` says how many canaries flew.
  Executable compile(const WorldOptions& how) { return compile(how, matmul(how.world)); }
  Executable compile(const WorldOptions& how, const Graph& graph) {
    warnings_.clear();
    const int before = fake().launches;
    Executable made = Executable::compile(graph, World::open(how));
    launches_ = fake().launches - before;
    return made;
  }
  static void expect_right(Executable executable, const Graph& graph) {
    const std::uint64_t seed = std::random_device()();
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const RankTensors inputs = random_inputs(graph, {}, seed);
    const RankTensors expected = evaluate(graph, inputs, {});
    executable.prepare({});
    for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
      executable.set_input(static_cast<int>(rank), "a", inputs[rank][0]);
      executable.set_input(static_cast<int>(rank), "b", inputs[rank][1]);
    }
    executable.poison_outputs();
    executable.run();
    for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
      const HostTensor out =
          executable.output(static_cast<int>(rank), executable.outputs()[0].name);
      EXPECT_LE(relative_error(out, expected[rank][0]),
                tolerance(graph, graph.outputs()[0], expected[rank][0].shape));
    }
  }
  void flaw(FakeCuda::Flaw what) { fake().flaw = std::move(what); }
  /// The files of the cache that hold what was found of units.
  [[nodiscard]] std::vector<std::string> kept() const {
    std::vector<std::string> names;
    for (const DiskCache::Entry& entry : DiskCache(cache_.path()).list()) {
      if (entry.kind.starts_with("unit ")) names.push_back(entry.kind);
    }
    std::ranges::sort(names);
    return names;
  }

  /// What `braid doctor` says of the units of the first GPU: "state: which".
  [[nodiscard]] std::vector<std::string> diagnosed() const {
    std::vector<std::string> lines;
    for (const Checkup& checkup : diagnose(cache_.path())) {
      if (checkup.component != "unit" || !checkup.path.starts_with("GPU 0: ")) continue;
      lines.push_back(checkup.version + ": " + checkup.path.substr(7));
      if (!checkup.how_to_get.empty()) lines.push_back(checkup.how_to_get);
    }
    return lines;
  }

  TemporaryDirectory cache_;
  DynamicLibrary library_;
  decltype(&::fake_cuda) control_ = nullptr;
  std::vector<std::string> warnings_;
  int launches_ = 0;
};

TEST_F(UnitTrialsTest, HonestUnitsAreTriedOnceAndUsed) {
  EXPECT_THAT(diagnosed(), ElementsAre("not tried yet: mma.sync",
                                       "not tried yet: wgmma and cp.async.bulk.tensor",
                                       "not tried yet: cp.async"));
  {
    Executable first = compile(options());
    EXPECT_EQ(launches_, 2);  // of 16 bits, and of 8
    EXPECT_EQ(target_of(first), "sm_90a:fma,wgmma,ld/st,cp.async.bulk.tensor");
    EXPECT_THAT(fake().image, HasSubstr("wgmma.mma_async"));
    expect_right(std::move(first), matmul());
  }
  EXPECT_THAT(kept(), ElementsAre("unit wgmma and cp.async.bulk.tensor on Fake GPU, format 1"));
  EXPECT_THAT(diagnosed(), Contains("passed: wgmma and cp.async.bulk.tensor"));
  {
    const World world = World::open(options());
    const int before = fake().launches;
    (void)Executable::compile(matmul(), world);
    (void)Executable::compile(matmul(), world);
    EXPECT_EQ(fake().launches, before);
  }
  fake().driver_version = 13010;  // another driver may do other things
  (void)compile(options());
  EXPECT_EQ(launches_, 2);
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(UnitTrialsTest, DoctorSaysThatAGpuIsTooOld) {
  fake().capability[0] = 70;
  std::vector<std::string> unfit;
  for (const Checkup& checkup : diagnose(cache_.path())) {
    if (checkup.component == "CUDA driver") EXPECT_TRUE(checkup.found);
    if (checkup.component == "GPU" && !checkup.how_to_get.empty()) {
      unfit.push_back(checkup.how_to_get);
    }
  }
  EXPECT_THAT(unfit, ElementsAre(HasSubstr("braid needs compute capability 8.0")));
}

TEST_F(UnitTrialsTest, KernelsDoWithoutAUnitThatLies) {
  flaw({.instruction = kWgmma, .lies_as = kNegated});
  const Graph graph = matmul(1, 512);
  WorldOptions how = options();
  how.target = "";
  const auto expect_others = [&] {
    Executable executable = compile(how, graph);
    EXPECT_EQ(target_of(executable), "sm_90a:fma,mma.sync,ld/st,cp.async,multimem");
    EXPECT_THAT(fake().image, Not(HasSubstr("wgmma")));
    EXPECT_THAT(
        warnings_,
        ElementsAre(MatchesRegex(
            R"(kernels do without wgmma and cp\.async\.bulk\.tensor: on Fake GPU \(rank 0\) )"
            R"([0-9]+ of 18496 elements of a product are wrong, the first at \[0, 0\]: )"
            R"(found -?[0-9]+, expected -?[0-9]+)")));
    expect_right(std::move(executable), graph);
  };
  expect_others();
  EXPECT_EQ(launches_, 4);  // of mma.sync and cp.async, too
  expect_others();
  EXPECT_EQ(launches_, 0);
  EXPECT_THAT(diagnosed(),
              ElementsAre("passed: mma.sync", "failed: wgmma and cp.async.bulk.tensor",
                          StartsWith("kernels do without wgmma and cp.async.bulk.tensor: on Fake"),
                          "passed: cp.async"));
  flaw({});  // nobody asks again
  expect_others();
}

TEST_F(UnitTrialsTest, AProductOf8BitsThatLiesIsFound) {
  flaw({.instruction = "f32.e4m3.e4m3", .lies_as = "f32.e5m2.e4m3"});
  Executable executable = compile(options());
  EXPECT_EQ(target_of(executable), "sm_90a:fma,ld/st");
  EXPECT_THAT(
      warnings_,
      ElementsAre(StartsWith("kernels do without wgmma and cp.async.bulk.tensor: on Fake GPU")));
  expect_right(std::move(executable), matmul());
}

TEST_F(UnitTrialsTest, MoreThanOneMayFail) {
  flaw({.instruction = kMma, .lies_as = kOtherMma});
  WorldOptions how = options();
  how.target = ":mma.sync,cp.async";
  Executable executable = compile(how);
  EXPECT_EQ(target_of(executable), "sm_90a:fma,ld/st,cp.async");
  EXPECT_THAT(warnings_, ElementsAre(StartsWith("kernels do without mma.sync: on Fake GPU")));
  expect_right(std::move(executable), matmul());
}

TEST_F(UnitTrialsTest, AUnitThatIsOffIsNotTried) {
  flaw({.instruction = kWgmma, .lies_as = kNegated, .faults = "wgmma"});
  WorldOptions how = options();
  how.target = ":mma.sync,cp.async";
  expect_right(compile(how), matmul());
  EXPECT_EQ(launches_, 2);
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(UnitTrialsTest, AFaultIsOneErrorAndTheNextProcessDoesWithout) {
  flaw({.faults = "wgmma"});
  EXPECT_EQ(error_of([&] { (void)compile(options()); }),
            std::pair(ErrorCode::kEnvironment,
                      std::string(
                          "wgmma and cp.async.bulk.tensor: on Fake GPU (rank 0) a product ended in "
                          "a fault: CUDA driver: cuStreamSynchronize: an illegal memory access was "
                          "encountered (CUDA_ERROR_ILLEGAL_ADDRESS, 700); this process has lost "
                          "the GPU: expected another one, which will do without, or --units "
                          "fma,ld/st")));
  EXPECT_EQ(fake().live_handles, 0);
  Executable executable = compile(options());
  EXPECT_EQ(target_of(executable), "sm_90a:fma,ld/st");
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("a product ended in a fault")));
  expect_right(std::move(executable), matmul());
  WorldOptions forgetful = options();
  forgetful.use_cache = false;
  for (const int known_at_the_next_launch : {0, 1}) {
    fake().launch_us = known_at_the_next_launch * 100'000;
    EXPECT_THAT(error_of([&] { (void)compile(forgetful); }).second,
                AllOf(HasSubstr("a product ended in a fault: CUDA driver: cuStreamSynchronize"),
                      HasSubstr("this process has lost the GPU: expected another one, with --units "
                                "fma,ld/st")));
  }
}

TEST_F(UnitTrialsTest, AKernelThatDoesNotEndIsNotWaitedForForever) {
  flaw({.endless = "wgmma"});
  WorldOptions how = options();
  how.timeout_s = 0.5;
  const auto [code, text] = error_of([&] { (void)compile(how); });
  EXPECT_EQ(code, ErrorCode::kEnvironment);
  EXPECT_THAT(text,
              AllOf(HasSubstr("(rank 0) a product did not end within 0.5 s"),
                    HasSubstr("this process has lost the GPU"), HasSubstr("--units fma,ld/st")));
  std::atomic_ref(fake().lets_end) = true;
  for (int i = 0; i < 5000 && fake().live_handles > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(fake().live_handles, 0);  // what the kernel used goes with it
  Executable executable = compile(options());
  EXPECT_EQ(target_of(executable), "sm_90a:fma,ld/st");
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("did not end within 0.5 s")));
}

TEST_F(UnitTrialsTest, ADamagedVerdictIsAsNone) {
  (void)compile(options());
  EXPECT_EQ(launches_, 2);
  for (const DiskCache::Entry& entry : DiskCache(cache_.path()).list()) {
    if (!entry.kind.starts_with("unit ")) continue;
    const std::filesystem::path path = cache_.path() / (entry.name + ".entry");
    std::string bytes = read_file(path);
    bytes[bytes.size() - 20] ^= 1;
    write_file(path, bytes);
  }
  EXPECT_THAT(kept(), IsEmpty());
  (void)compile(options());
  EXPECT_EQ(launches_, 2);
  (void)compile(options());
  EXPECT_EQ(launches_, 0);
}

TEST_F(UnitTrialsTest, ASavedPlanThatNeedsTheUnitIsRefused) {
  const TemporaryDirectory with, without;
  compile(options()).save(with.path().string());
  WorldOptions others = options();
  others.target = ":fma";
  compile(others).save(without.path().string());
  const TemporaryDirectory elsewhere;
  flaw({.instruction = kWgmma, .lies_as = kNegated});
  WorldOptions how = options();
  how.cache_dir = elsewhere.path().string();
  const auto load = [&](const TemporaryDirectory& from) {
    return Executable::load((from.path() / "program.json").string(), World::open(how));
  };
  const auto [code, text] = error_of([&] { (void)load(with); });
  EXPECT_EQ(code, ErrorCode::kEnvironment);
  EXPECT_THAT(text, AllOf(StartsWith("product: its kernels use wgmma and cp.async.bulk.tensor, and "
                                     "on Fake GPU (rank 0) "),
                          HasSubstr("expected a plan without, which --units fma,ld/st makes")));
  expect_right(load(without), matmul());
}

TEST_F(UnitTrialsTest, OneGpuThatLiesDecidesForAllRanks) {
  flaw({.gpu = 1, .instruction = kWgmma, .lies_as = kNegated});
  Executable executable = compile(options(2));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("on Fake GPU (rank 1) ")));
  EXPECT_EQ(target_of(executable), "sm_90a:fma,ld/st");
  expect_right(std::move(executable), matmul(2));
}

TEST_F(UnitTrialsTest, RanksOfOtherWorldsLearnIt) {
  flaw({.gpu = 1, .instruction = kWgmma, .lies_as = kNegated});
  const TemporaryDirectory caches[2];
  const auto alone = [&](int rank) {
    WorldOptions how = options();
    how.cache_dir = caches[rank].path().string();
    return target_of(compile(how));
  };
  EXPECT_EQ(alone(0), "sm_90a:fma,wgmma,ld/st,cp.async.bulk.tensor");  // on the honest GPU
  const auto ends = meet_in_process({{0}, {1}});
  std::string plans[2], warnings[2];
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      WorldOptions how = options(2);
      how.rendezvous = ends[static_cast<std::size_t>(rank)];
      how.gpu = rank;
      how.cache_dir = caches[rank].path().string();
      how.warning = [&, rank](std::string_view what) { warnings[rank] += what; };
      try {
        const World world = World::open(how);
        // An estimate asks nobody, and changes nothing.
        if (rank == 0) (void)Executable::memory_estimate(matmul(2), world);
        plans[rank] = target_of(Executable::compile(matmul(2), world));
        how.rendezvous->barrier();
      } catch (const Error& error) {
        plans[rank] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  flaw({});  // the caches of both know it
  for (int rank = 0; rank < 2; ++rank) {
    SCOPED_TRACE(fmt::format("rank {}", rank));
    EXPECT_EQ(plans[rank], "sm_90a:fma,ld/st");
    EXPECT_THAT(
        warnings[rank],
        StartsWith("kernels do without wgmma and cp.async.bulk.tensor: on Fake GPU (rank 1) "));
    EXPECT_EQ(alone(rank), "sm_90a:fma,ld/st");
  }
}

TEST_F(UnitTrialsTest, TheCpuDeviceIsTrusted) {
  WorldOptions how = options();
  how.device = DeviceKind::kCpu;
  how.target = std::string("sm_90a") + kOnlyWgmma;
  expect_right(compile(how), matmul());
  EXPECT_THAT(kept(), IsEmpty());
}

/// What PTX of a unit looks like in a kernel's text.
constexpr std::pair<const Unit*, const char*> kInstructions[] = {
    {&units::kMmaSync, "mma.sync.aligned"},
    {&units::kWgmma, "wgmma.mma_async"},
    {&units::kTcgen05, "tcgen05.mma"},
    {&units::kCpAsync, "cp.async.c"},
    {&units::kBulkTensor, "cp.async.bulk.tensor"}};

TEST(UnitCanaries, UseTheirUnitAndAreRightOnTheCpuDevice) {
  const CanaryTensors tensors = canary_tensors();
  const DiskCache cache(DiskCache::default_directory());
  unsigned seen = 0;
  for (const char* text : {"sm_80", "sm_90a", "sm_100a", "sm_120"}) {
    const Target target = Target::parse(text);
    for (const unsigned units : tried_units()) {
      SCOPED_TRACE(fmt::format("{} on {}", names_of_units(units), text));
      const bool there = std::ranges::all_of(kInstructions, [&](const auto& known) {
        return (units & bit_of(*known.first)) == 0 || has(target, *known.first);
      });
      if (!there) continue;
      seen |= units;
      Program program = unit_canary(target, units);
      const bool is_beside = (units & (bit_of(units::kWgmma) | bit_of(units::kTcgen05))) != 0;
      const std::size_t kernels = is_beside ? 2 : 1;
      ASSERT_EQ(program.kernels.size(), kernels);
      for (const ProgramKernel& kernel : program.kernels) {
        const Config& config = kernel.spec.config;
        EXPECT_LT(config.at("num_stages") * config.at("BLOCK_K"), tensors.inputs[0].shape[1]);
        EXPECT_NE(tensors.expected.shape[0] % config.at("BLOCK_M"), 0);
      }
      ProgramCode code = compile_program(program, {.cache = &cache});
      for (std::size_t i = 0; i < kernels; ++i) {
        const unsigned needed = bit_of(units::kFma) | bit_of(units::kLoadStore);
        EXPECT_EQ(code.sources[i].units & ~needed, units);
        for (const auto& [unit, instruction] : kInstructions) {
          const bool wanted = (units & bit_of(*unit)) != 0;
          EXPECT_EQ(code.sources[i].text.find(instruction) != std::string::npos, wanted);
          EXPECT_EQ(code.compiled[i].image.ptx.find(instruction) != std::string::npos, wanted);
        }
      }
      const World world = World::open({.device = DeviceKind::kCpu});
      Executable executable = Executable::Impl::make(world, std::move(program), std::move(code));
      executable.prepare({});
      for (std::size_t i = 0; i < (kernels == 2 ? 5 : 2); ++i) {
        constexpr const char* kNames[] = {"a", "b", "narrow_a", "narrow_b", "one"};
        executable.set_input(0, kNames[i], tensors.inputs[i]);
      }
      executable.poison_outputs();
      executable.run();
      for (std::size_t i = 0; i < kernels; ++i) {
        const HostTensor found = executable.output(0, i == 0 ? "c" : "d");
        EXPECT_EQ(wrong_elements(found, tensors.expected), "");
      }
    }
  }
  for (const auto& [unit, instruction] : kInstructions) {
    EXPECT_NE(seen & bit_of(*unit), 0) << unit->name;
  }
}

TEST(UnitCanaries, EveryWrongBitIsSeen) {
  const HostTensor expected = canary_tensors().expected;
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  EXPECT_EQ(wrong_elements(expected, expected), "");
  for (int i = 0; i < 200; ++i) {
    HostTensor found = expected;
    const std::size_t at = random() % found.data.size();
    found.data[at] ^= static_cast<std::byte>(1U << random() % 8);
    const std::size_t columns = static_cast<std::size_t>(expected.shape[1]);
    EXPECT_THAT(wrong_elements(found, expected),
                StartsWith(fmt::format("1 of 18496 elements of a product are wrong, the first at "
                                       "[{}, {}]: found ",
                                       at / 2 / columns, at / 2 % columns)));
  }
}

}  // namespace
}  // namespace braid
