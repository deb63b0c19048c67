// How the tuner times kernels on a GPU: on the stand-in driver, whose kernels do nothing and whose
// events are as far apart as the test says.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "braid/tune.h"
#include "lowering/passes.h"
#include "runtime/dynamic_library.h"
#include "runtime/fake_libcuda.h"
#include "runtime/temporary_directory.h"
#include "runtime/tune/find_tuned.h"
#include "runtime/tune/tune_database.h"

namespace braid {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// What the driver saw: a fill of more than any L2 holds (F), timed events (E), launches (L), and
/// questions for a time (?), each with the launch before it.
struct Seen {
  using Launch = std::pair<unsigned, unsigned>;  ///< grid and block
  FakeCuda* fake = nullptr;
  std::string what;
  std::vector<Launch> timed;
  std::map<std::pair<int, Launch>, int> turns;  ///< of the modules and the launch

  [[nodiscard]] Launch last() const { return {fake->launch.grid, fake->launch.block}; }
};
Seen* seen = nullptr;

/// The time of a launch, however hot the GPU is.
double true_us(unsigned grid, unsigned block) {
  return 3 + grid / 16.0 + std::abs(static_cast<int>(block) - 256) / 100.0;
}

/// The GPU becomes slower with each kernel that is loaded; some times are too short, more are much
/// too long.
float elapsed_ms() {
  seen->what += '?';
  const Seen::Launch launch = seen->last();
  seen->timed.push_back(launch);
  const int turn = seen->turns[{seen->fake->modules, launch}]++;
  const double off = turn < 3 ? 0.5 : turn >= 10 ? 100 : 1;
  const double heat = 1 + 0.01 * seen->fake->modules;
  return static_cast<float>(true_us(launch.first, launch.second) * heat * off / 1e3);
}

class StopwatchTest : public ::testing::Test {
 protected:
  StopwatchTest() {
    ::setenv("BRAID_LIBCUDA", BRAID_FAKE_LIBCUDA, 1);
    library_ = DynamicLibrary({BRAID_FAKE_LIBCUDA});
    decltype(&::fake_cuda) control = nullptr;
    std::string missing;
    bind_symbol(library_, "fake_cuda", control, missing);
    if (control == nullptr) throw std::runtime_error(library_.failure());
    seen_.fake = control();
    *seen_.fake = {};
    seen = &seen_;
    seen_.fake->skips_fill = [](std::size_t bytes) {
      constexpr std::size_t kAnyL2 = std::size_t{200} << 20U;
      if (bytes > kAnyL2) seen->what += 'F';
      return bytes > kAnyL2;  // nobody reads it
    };
    seen_.fake->on_launch = [](const char*, void**) { seen->what += 'L'; };
    seen_.fake->on_timed_event = [] { seen->what += 'E'; };
    seen_.fake->elapsed_ms = elapsed_ms;
    options_.device = DeviceKind::kCuda;
    options_.database = (directory_.path() / "tune.db").string();
    options_.cache_dir = directory_.path().string();
  }

  TemporaryDirectory directory_;
  DynamicLibrary library_;
  Seen seen_;
  TuneOptions options_;
};

TEST_F(StopwatchTest, TimesInTurnsWithAColdL2) {
  const Graph graph = parse_graph(R"({"braid": 1, "name": "small", "symbols": {"T": {"max": 64}},
    "inputs": [{"name": "x", "dtype": "f16", "shape": ["T", 1024]}],
    "nodes": [{"name": "y", "op": "silu", "inputs": ["x"]}], "outputs": ["y"]})");
  const TuneResult result = tune(graph, options_);
  EXPECT_TRUE(result.measured);
  EXPECT_TRUE(result.complete);
  EXPECT_EQ(result.device, "Fake GPU");
  EXPECT_EQ(result.target, "sm_90a");
  ASSERT_EQ(result.kernels.size(), 1U);
  const TunedKernel& kernel = result.kernels[0];
  EXPECT_GT(kernel.tried, 10U);
  EXPECT_EQ(kernel.tried, kernel.candidates);
  EXPECT_EQ(kernel.failed, 0U);

  // Each time: a cold L2, and the kernel alone between two events.
  const std::size_t times = seen_.timed.size();
  std::size_t cold = 0;
  for (std::size_t at = 0; (at = seen_.what.find("FELE?", at)) != std::string::npos; ++at) ++cold;
  EXPECT_EQ(cold, times);
  // The default alone; then each other one in turns with it.
  ASSERT_EQ(times, 15 * (2 * kernel.tried - 1));
  const Seen::Launch by_default = seen_.timed[0];
  for (std::size_t i = 15; i < times; i += 2) EXPECT_EQ(seen_.timed[i], by_default) << i;
  EXPECT_NE(seen_.timed[16], by_default);
  EXPECT_NE(seen_.timed[16 + 30], seen_.timed[16]);

  // Medians, as if all were timed when the default first was: after so many modules.
  const Target target = Target::parse(result.target);
  PassContext context;
  context.target = target;
  const Program program = lower(graph, context);
  const auto& body = program.kernels.at(0).spec.body;
  const auto launch_of = [&](const Config& config) {
    const Requirements needs = requirements({body, config}, target);
    return Seen::Launch(static_cast<unsigned>(needs.grid.evaluate({{"T", 64}})),
                        static_cast<unsigned>(needs.threads));
  };
  const std::vector<TuneRow> rows =
      TuneDatabase(options_.database, false).rows_of(kernel_key(*body));
  ASSERT_EQ(rows.size(), kernel.tried);
  ASSERT_TRUE(kernel.by_default && kernel.best);
  const auto default_launch = launch_of(kernel.by_default->config);
  const double heat =
      kernel.by_default->ns / 1e3 / true_us(default_launch.first, default_launch.second);
  EXPECT_GE(heat, 1);
  EXPECT_LE(heat, 1.02);
  double least = 1e9;
  for (const TuneRow& row : rows) {
    EXPECT_EQ(row.key.measure, kMeasured);
    EXPECT_EQ(row.key.device, "Fake GPU");
    EXPECT_EQ(row.key.arch, "sm_90a");
    EXPECT_EQ(row.key.symbols, "T=64");
    const auto [grid, block] = launch_of(row.config);
    const double expected = true_us(grid, block) * heat * 1e3;
    EXPECT_NEAR(row.trial.ns.value_or(0), expected, 1e-4 * expected) << grid << " x " << block;
    least = std::min(least, expected);
  }
  EXPECT_NEAR(kernel.best->ns, least, 1e-4 * least);
  EXPECT_LT(kernel.best->ns, kernel.by_default->ns);
  // A plan for that GPU takes it.
  EXPECT_EQ(find_tuned(options_.database, {target, "Fake GPU"})(*body).config, kernel.best->config);

  options_.resume = true;
  seen_.timed.clear();
  EXPECT_EQ(tune(graph, options_).kernels[0].from_database, kernel.tried);
  EXPECT_THAT(seen_.timed, IsEmpty());
}

// One GPU has no peers: what waits for them keeps its default, and all else is timed.
TEST_F(StopwatchTest, LeavesWhatWaitsForPeers) {
  const Graph graph = parse_graph(R"({"braid": 1, "name": "small", "groups": {"tp": {"size": 2}},
    "inputs": [{"name": "x", "dtype": "f32", "shape": [16, 2048], "per_rank": true},
               {"name": "w", "dtype": "f32", "shape": [2048, 16], "per_rank": true}],
    "nodes": [{"name": "p", "op": "mm", "inputs": ["x", "w"]},
              {"name": "c", "op": "all_reduce", "inputs": ["p"],
               "attrs": {"reduce_op": "sum", "group": "tp"}},
              {"name": "y", "op": "wait_tensor", "inputs": ["c"]}],
    "outputs": ["y"]})");
  options_.passes.batch_invariant = false;
  const TuneResult result = tune(graph, options_);
  ASSERT_EQ(result.choices.size(), 1U);
  EXPECT_EQ(result.choices[0].op, "mm");
  for (const TunedOption& option : result.choices[0].options) EXPECT_TRUE(option.ns) << option.name;
  ASSERT_GE(result.kernels.size(), 2U);
  EXPECT_TRUE(result.kernels.front().best);
  EXPECT_THAT(result.kernels.back().remark, HasSubstr("waits for peers"));
  EXPECT_EQ(result.kernels.back().tried, 0U);
}

}  // namespace
}  // namespace braid
