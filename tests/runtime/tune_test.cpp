// The tuner: candidates keep results as they are, the search, the database, and what comes of both.

#include "braid/tune.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "braid/error.h"
#include "braid/executable.h"
#include "braid/reference.h"
#include "codegen/device_model.h"
#include "lowering/collectives/all_reduce.h"
#include "lowering/passes.h"
#include "lowering/plan/program.h"
#include "lowering/plan_choice.h"
#include "runtime/compile/compiler.h"
#include "runtime/error_of.h"
#include "runtime/temporary_directory.h"
#include "runtime/tune/find_tuned.h"
#include "runtime/tune/lone_kernel.h"
#include "runtime/tune/search.h"
#include "runtime/tune/tune_database.h"

namespace braid {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// A file that goes away with the object.
struct TemporaryFile {
  TemporaryFile()
      : path((fs::temp_directory_path() / ("braid_tune_" + std::to_string(::getpid()) + ".db"))
                 .string()) {
    fs::remove(path);
  }
  ~TemporaryFile() { fs::remove(path); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  std::string path;
};

/// The kernel of a graph that has no other, but for those that copy what peers read.
KernelSpec kernel_of(const std::string& inputs, const std::string& nodes, const std::string& output,
                     const PassConfig& passes = {}) {
  const Graph graph = parse_graph(R"({"braid": 1, "name": "test", "symbols": {"T": {"max": 40}},
    "groups": {"tp": {"size": 2}},
    "inputs": [)" + inputs + R"(], "nodes": [)" +
                                  nodes + R"(], "outputs": [")" + output + R"("]})");
  PassContext context;
  context.config = passes;
  const Program program = lower(graph, context);
  for (std::size_t k = 0; k + 1 < program.kernels.size(); ++k) {
    EXPECT_EQ(program.kernels[k].needs.template_name, "elementwise");
  }
  return program.kernels.back().spec;
}

KernelSpec matmul(const char* dtype, int n, int k) {
  const auto input = [&](const char* name, const std::string& shape) {
    return std::string(R"({"name": ")") + name + R"(", "dtype": ")" + dtype + R"(", "shape": [)" +
           shape + "]}";
  };
  const std::string rows = std::to_string(k) + ", " + std::to_string(n);
  return kernel_of(input("x", "\"T\", " + std::to_string(k)) + ", " + input("w", rows) + ", " +
                       input("b", std::to_string(n)),
                   R"({"name": "p", "op": "addmm", "inputs": ["b", "x", "w"]},
                      {"name": "y", "op": "silu", "inputs": ["p"]})",
                   "y");
}

KernelSpec row_kernel(const char* op, const char* shape, const char* attrs) {
  return kernel_of(std::string(R"({"name": "x", "dtype": "f16", "shape": )") + shape + "}",
                   std::string(R"({"name": "y", "op": ")") + op +
                       R"(", "inputs": ["x"], "attrs": )" + attrs + "}",
                   "y");
}

/// An all-reduce of rows of 136 elements, with what follows it.
KernelSpec all_reduce(const char* algorithm, bool with_norm) {
  PassConfig passes;
  passes.all_reduce = algorithm;
  return kernel_of(R"({"name": "x", "dtype": "f32", "shape": ["T", 136], "per_rank": true},
                      {"name": "g", "dtype": "f32", "shape": [136]})",
                   R"({"name": "c", "op": "all_reduce", "inputs": ["x"],
                       "attrs": {"reduce_op": "sum", "group": "tp"}},
                      {"name": "w", "op": "wait_tensor", "inputs": ["c"]},
                      {"name": "y", "op": ")" +
                       std::string(with_norm ? "rms_norm" : "mul") + R"(", "inputs": ["w", "g"])" +
                       (with_norm ? R"(, "attrs": {"eps": 1e-5})" : "") + "}",
                   "y", passes);
}

/// A matmul in one kernel with the gather in front of it, or the scatter behind it.
KernelSpec fused_matmul(bool gathers) {
  PassConfig passes;
  passes.enable = {"micro_pipeline"};
  passes.always_pipeline = passes.in_kernel = true;
  const char* const gather = R"(
      {"name": "a", "op": "all_gather_into_tensor", "inputs": ["x"], "attrs": {"group": "tp"}},
      {"name": "b", "op": "wait_tensor", "inputs": ["a"]},
      {"name": "y", "op": "mm", "inputs": ["b", "w"]})";
  const char* const scatter = R"(
      {"name": "a", "op": "mm", "inputs": ["x", "w"]},
      {"name": "b", "op": "reduce_scatter_tensor", "inputs": ["a"],
       "attrs": {"reduce_op": "sum", "group": "tp"}},
      {"name": "c", "op": "wait_tensor", "inputs": ["b"]},
      {"name": "y", "op": "softmax", "inputs": ["c"], "attrs": {"dim": -1}})";
  return kernel_of(R"({"name": "x", "dtype": "f32", "shape": [")" +
                       std::string(gathers ? "T" : "2*T") +
                       R"(", 136], "per_rank": true},
                      {"name": "w", "dtype": "f32", "shape": [136, 1100], "per_rank": true})",
                   gathers ? gather : scatter, "y", passes);
}

/// What all ranks get.
std::vector<std::byte> bytes_of(const KernelSpec& spec) {
  const Graph graph = lone_kernel(spec);
  WorldOptions options;
  options.device = DeviceKind::kCpu;
  options.world = static_cast<int>(world_size(graph));
  const World world = World::open(options);
  Executable executable = Executable::compile(graph, world);
  const Bindings bindings = [&]() -> Bindings {
    if (graph.symbols().empty()) return {};
    return {{"T", 37}};
  }();
  executable.prepare(bindings);
  const RankTensors inputs = random_inputs(graph, bindings, 3);
  for (int rank = 0; rank < options.world; ++rank) {
    for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
      executable.set_input(rank, graph.inputs()[i].name, inputs[static_cast<std::size_t>(rank)][i]);
    }
  }
  executable.poison_outputs();
  executable.run();
  std::vector<std::byte> bytes;
  for (int rank = 0; rank < options.world; ++rank) {
    for (const ValueId output : graph.outputs()) {
      const HostTensor tensor = executable.output(rank, graph.value(output).name);
      bytes.insert(bytes.end(), tensor.data.begin(), tensor.data.end());
    }
  }
  return bytes;
}

/// Compares so many candidates of a kernel, all over their list, with the default.
void expect_same_bits(const KernelSpec& spec, std::size_t most) {
  const std::vector<Config> all = candidates(*spec.body, Target{});
  ASSERT_GT(all.size(), 1U) << to_text(*spec.body);
  const std::vector<std::byte> expected = bytes_of(spec);
  const std::size_t step = (all.size() + most - 2) / most;
  for (std::size_t i = 1; i < all.size(); i += step) {
    EXPECT_EQ(bytes_of({spec.body, all[i]}), expected) << to_text(*spec.body) << "candidate " << i;
  }
}

// K in other steps, other tiles and warps, rows that share a block.
TEST(Candidates, GiveTheSameBits) {
  for (const KernelSpec& spec :
       {matmul("bf16", 72, 200), matmul("f32", 40, 100), row_kernel("silu", "[\"T\", 100]", "{}"),
        row_kernel("softmax", "[\"T\", 200]", R"({"dim": -1})"),
        row_kernel("softmax", "[\"T\", 1500]", R"({"dim": -1})"),
        row_kernel("sum", "[\"T\", 1000]", R"({"dim": [0]})")}) {
    expect_same_bits(spec, 9);
  }
}

TEST(Candidates, OfKernelsThatWaitGiveTheSameBits) {
  for (const KernelSpec& spec :
       {all_reduce("one_shot", true), all_reduce("two_shot", false), all_reduce("ll", true),
        all_reduce("ll", false), fused_matmul(true), fused_matmul(false)}) {
    expect_same_bits(spec, 3);
  }
}

// More warps, or more elements of a thread, hold more rows of their own.
TEST(Candidates, ABlockMayHaveMoreRows) {
  const KernelSpec softmax = row_kernel("softmax", "[\"T\", 200]", R"({"dim": -1})");
  std::set<std::int64_t> grids;
  for (const Config& config : candidates(*softmax.body, Target{})) {
    const Requirements needs = requirements({softmax.body, config}, Target{});
    grids.insert(needs.grid.evaluate({{"T", 40}}));
    if (config.contains("elements")) {
      EXPECT_EQ(needs.grid.evaluate({{"T", 40}}),
                (20 + config.at("num_warps") - 1) / config.at("num_warps"));
    }
  }
  EXPECT_EQ(grids, (std::set<std::int64_t>{2, 3, 5, 10, 20, 40}));
}

TEST(Candidates, ARowThatIsSweptHasNoOthers) {
  const KernelSpec wide = row_kernel("softmax", "[\"T\", 40000]", R"({"dim": -1})");
  EXPECT_EQ(candidates(*wide.body, Target{}).size(), 1U);
}

/// Two settings; rough times are off by a factor that grows with one of them, so that the twenty
/// best of them do not have the best one.
struct Landscape {
  Landscape() {
    for (int a = 0; a < 10; ++a) {
      for (int b = 0; b < 12; ++b) {
        space.candidates.push_back({{"a", 1 << a}, {"b", 1 << b}});
        const double rough = 100 + 8 * std::abs(a - 4) + 6 * std::abs(b - 8);
        space.rough_ns.push_back(rough);
        ns.emplace_back(rough * std::exp(0.08 * (4 - a)) + 3 * (b % 2));
      }
    }
  }
  std::vector<std::size_t> tried;
  TryCandidates attempt() {
    return [this](std::span<const std::size_t> which) {
      std::vector<std::optional<double>> got;
      for (const std::size_t w : which) {
        tried.push_back(w);
        got.push_back(ns[w]);
      }
      return got;
    };
  }
  SearchSpace space;
  std::vector<std::optional<double>> ns;
};

const auto kNever = [] { return false; };

TEST(Search, CorrectsRoughTimesByWhatItSees) {
  Landscape land;
  const auto found = search(land.space, 20, 2, land.attempt(), kNever);
  EXPECT_EQ(land.tried.size(), 20U);
  EXPECT_EQ(land.tried[0], 0U);  // the default
  const auto best = quickest(found);
  ASSERT_TRUE(best);
  EXPECT_LE(*found[*best], *land.ns[*quickest(land.ns)] * 1.03);
}

TEST(Search, TriesNothingTwiceAndEndsWithAll) {
  Landscape land;
  (void)search(land.space, 1000, 7, land.attempt(), kNever);
  EXPECT_EQ(std::set<std::size_t>(land.tried.begin(), land.tried.end()).size(),
            land.space.candidates.size());
  EXPECT_EQ(land.tried.size(), land.space.candidates.size());
}

TEST(Search, LeavesWhatDoesNotRunAndStops) {
  Landscape land;
  for (std::size_t i = 0; i < land.ns.size(); ++i) {
    if (i % 3 != 1) land.ns[i].reset();
  }
  const auto found = search(land.space, 20, 2, land.attempt(), kNever);
  ASSERT_TRUE(quickest(found));
  EXPECT_EQ(*quickest(found) % 3, 1U);
  land.tried.clear();
  EXPECT_FALSE(quickest(search(land.space, 20, 2, land.attempt(), [] { return true; })));
  EXPECT_THAT(land.tried, IsEmpty());
}

TuneRow row(double ns, std::int64_t warps = 4) {
  return {{"k", "T=8", "sm_80", "A100", kEstimated, "NVRTC 13.0"},
          {{"num_warps", warps}},
          "text",
          {ns, "memory"}};
}

TEST(TuneDatabase, KeepsWhatWasTried) {
  const TemporaryFile file;
  {
    TuneDatabase database(file.path, true);
    database.put(row(5));
    database.put(row(7, 8));
    TuneRow failed = row(0, 16);
    failed.trial = {{}, "spills"};
    database.put(failed);
    database.put(row(6));  // in the place of the first
  }
  const TuneDatabase database(file.path, false);
  const auto found = database.find(row(0).key, row(0).config, "text");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->ns, 6);
  EXPECT_EQ(found->note, "memory");
  EXPECT_FALSE(database.find(row(0).key, row(0).config, "another text"));
  TuneKey other = row(0).key;
  other.toolchain = "NVRTC 12.8";
  EXPECT_FALSE(database.find(other, row(0).config, "text"));
  const std::vector<TuneRow> rows = database.rows_of("k");
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[2].config, row(0).config);  // the last stored
  EXPECT_FALSE(rows[1].trial.ns);
  EXPECT_THAT(database.rows_of("another"), IsEmpty());
}

TEST(TuneDatabase, RefusesOtherFiles) {
  const TemporaryFile file;
  const auto open = [&](bool create) {
    return error_of([&] { const TuneDatabase database(file.path, create); }).second;
  };
  EXPECT_THAT(open(false), HasSubstr("is not there; expected a database of braid tune"));
  EXPECT_FALSE(fs::exists(file.path));
  std::ofstream(file.path) << std::string(4096, 'x');
  EXPECT_THAT(open(false), HasSubstr("expected a database of braid tune"));
  EXPECT_THAT(open(true), HasSubstr("expected a database of braid tune"));
  fs::remove(file.path);
  fs::create_directory(file.path);
  EXPECT_THAT(open(false), HasSubstr("is a directory; expected a database of braid tune"));
  EXPECT_THAT(open(true), HasSubstr("is a directory; expected a database of braid tune"));
  fs::remove(file.path);
  ASSERT_EQ(::mkfifo(file.path.c_str(), 0600), 0);
  EXPECT_THAT(open(true), HasSubstr("is not a regular file; expected a database of braid tune"));
  fs::remove(file.path);
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(file.path.c_str(), &db), SQLITE_OK);
  sqlite3_exec(db, "CREATE TABLE mine (x); PRAGMA user_version = 7", nullptr, nullptr, nullptr);
  sqlite3_close(db);
  EXPECT_THAT(open(true), HasSubstr("found one of format 7"));
}

/// The file's database, changed by SQL.
void change(const std::string& file, const std::string& sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &db), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
      << sqlite3_errmsg(db);
  sqlite3_close(db);
}

constexpr const char* kEndless =
    "AS WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT * FROM r";

TEST(TuneDatabase, EndsWhatDoesNotEnd) {
  const TemporaryFile file;
  { const TuneDatabase database(file.path, true); }
  change(file.path, fmt::format("CREATE VIEW endless {}; CREATE TRIGGER t AFTER INSERT ON trials "
                                "BEGIN SELECT count(*) FROM endless; END",
                                kEndless));
  TuneDatabase database(file.path, true);
  EXPECT_EQ(
      error_of([&] { database.put(row(5)); }).second,
      file.path +
          ": a query of it does not end in 100000000 steps; expected a database of braid tune");
  EXPECT_THAT(database.rows_of("k"), IsEmpty());
}

TEST(TuneDatabase, RefusesWhatIsNoTable) {
  const TemporaryFile file;
  { const TuneDatabase database(file.path, true); }
  change(file.path, "DROP TABLE trials; CREATE TABLE mine (x)");
  const auto open = [&](bool create) {
    return error_of([&] { const TuneDatabase database(file.path, create); }).second;
  };
  EXPECT_THAT(open(false), HasSubstr("found no 'trials'; expected a table of braid tune"));
  change(file.path, fmt::format("CREATE VIEW trials {}", kEndless));
  EXPECT_THAT(open(false), HasSubstr("found the view 'trials'; expected a table of braid tune"));
  EXPECT_THAT(open(true), HasSubstr("found the view 'trials'; expected a table of braid tune"));
}

// SQLite itself may be built to take these for more than names.
TEST(TuneDatabase, IsAtAPath) {
  const TemporaryDirectory directory;
  const fs::path before = fs::current_path();
  fs::current_path(directory.path());
  for (const char* name : {"file:x.db?mode=memory", ":memory:"}) {
    { const TuneDatabase database(name, true); }
    EXPECT_TRUE(fs::exists(directory.path() / name)) << name;
  }
  fs::current_path(before);
}

TEST(TuneDatabase, RefusesDamage) {
  const TemporaryFile file;
  {
    TuneDatabase database(file.path, true);
    for (int i = 1; i <= 200; ++i) database.put(row(1, i));
  }
  const std::uintmax_t size = fs::file_size(file.path);
  std::fstream bytes(file.path, std::ios::in | std::ios::out | std::ios::binary);
  bytes.seekp(static_cast<std::streamoff>(size - 4096));  // a page of rows
  bytes << std::string(64, '\x7f');
  bytes.close();
  for (const bool create : {false, true}) {
    EXPECT_THAT(error_of([&] { const TuneDatabase database(file.path, create); }).second,
                HasSubstr("; expected a database of braid tune"));
  }
}

TEST(TuneDatabase, WaitsForAnotherProcess) {
  const TemporaryFile file;
  TuneDatabase one(file.path, true), two(file.path, true);
  for (int i = 0; i < 50; ++i) {
    one.put(row(5, 2 * i));
    two.put(row(5, 2 * i + 1));
  }
  EXPECT_EQ(one.rows_of("k").size(), 100U);
}

/// What find_tuned() says of a kernel of which some candidates were tried.
class FindTunedTest : public ::testing::Test {
 protected:
  FindTunedTest()
      : spec_(row_kernel("silu", "[\"T\", 100]", "{}")), all_(candidates(*spec_.body, Target{})) {}

  void put(const Config& config, double ns, const std::function<void(TuneRow&)>& change = {}) {
    TuneRow added{
        {kernel_key(*spec_.body), "T=40", "sm_80", "A100", kEstimated, "NVRTC " + nvrtc_version()},
        config,
        hash_of(std::string_view(emit({spec_.body, config}, Target{}).text)),
        {ns, "memory"}};
    if (change) change(added);
    TuneDatabase(file_.path, true).put(added);
  }
  [[nodiscard]] Tuned found(const std::string& gpu = "") const {
    return find_tuned(file_.path, {Target{}, gpu})(*spec_.body);
  }

  TemporaryFile file_;
  KernelSpec spec_;
  std::vector<Config> all_;
};

TEST_F(FindTunedTest, TakesTheQuickest) {
  put(all_[0], 5000);
  EXPECT_EQ(found().config, all_[0]);
  put(all_[1], 3000);
  put(all_[2], 4000);
  put(all_[3], 1, [](TuneRow& row) { row.trial.ns.reset(); });
  EXPECT_EQ(found().config, all_[1]);
  EXPECT_THAT(found().remark, HasSubstr("3.0 us estimated on A100 at T=40, 5.0 by default"));
}

TEST_F(FindTunedTest, TakesNothingOfAnotherDeviceOrToolchain) {
  put(all_[1], 3, [](TuneRow& row) { row.key.device = "H100"; });
  put(all_[1], 3, [](TuneRow& row) { row.key.arch = "sm_90a"; });
  put(all_[1], 3, [](TuneRow& row) { row.key.toolchain = "NVRTC 1.0"; });
  EXPECT_FALSE(found().config);
  EXPECT_THAT(found().remark, HasSubstr("on A100 (sm_80) with NVRTC 1.0 by braid " +
                                        std::string(tuner_version()) + ", this is A100 (sm_80)"));
}

TEST_F(FindTunedTest, SaysThatAnotherVersionTriedIt) {
  put(all_[1], 3);
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(file_.path.c_str(), &db), SQLITE_OK);
  sqlite3_exec(db, "UPDATE trials SET braid = '0.0.7'", nullptr, nullptr, nullptr);
  sqlite3_close(db);
  EXPECT_FALSE(found().config);
  EXPECT_THAT(found().remark,
              HasSubstr("the database has it estimated on A100 (sm_80) with NVRTC " +
                        nvrtc_version() + " by braid 0.0.7, this is "));
  put(all_[2], 3);
  EXPECT_EQ(found().config, all_[2]);
}

TEST_F(FindTunedTest, TakesNothingThatWouldBeAnotherKernel) {
  put(all_[1], 3, [](TuneRow& row) { row.text = "another"; });
  put({{"num_warps", 32}}, 3);
  EXPECT_FALSE(found().config);
  EXPECT_THAT(found().remark, HasSubstr("nothing that this version of braid would make"));
}

TEST_F(FindTunedTest, PrefersWhatWasMeasured) {
  put(all_[1], 3000);
  put(all_[2], 9000, [](TuneRow& row) {
    row.key.measure = kMeasured;
    row.key.device = "NVIDIA A100-SXM4-80GB";
  });
  EXPECT_EQ(found("NVIDIA A100-SXM4-80GB").config, all_[2]);
  EXPECT_EQ(found("NVIDIA A100-PCIE-40GB").config, all_[1]);
  EXPECT_EQ(found().config, all_[2]);  // a plan for an A100, made elsewhere
}

TEST_F(FindTunedTest, PrefersTheLargestSymbols) {
  put(all_[1], 9000);
  put(all_[2], 3000, [](TuneRow& row) { row.key.symbols = "T=8"; });
  EXPECT_EQ(found().config, all_[1]);
}

TEST_F(FindTunedTest, SaysWhatElseOtherSymbolsServe) {
  put(all_[1], 9000, [](TuneRow& row) { row.key.symbols = "T=8"; });
  EXPECT_THAT(found().remark, HasSubstr("9.0 us estimated on A100 at T=8 for T from 1 to 40"));
}

TEST_F(FindTunedTest, KnowsNothingOfOtherKernels) {
  put(all_[1], 3);
  const KernelSpec other = row_kernel("silu", "[\"T\", 101]", "{}");
  const Tuned tuned = find_tuned(file_.path, {Target{}, ""})(*other.body);
  EXPECT_FALSE(tuned.config);
  EXPECT_EQ(tuned.remark, "");
}

Graph small() {
  return parse_graph(R"({"braid": 1, "name": "small", "symbols": {"T": {"max": 64}},
    "groups": {"tp": {"size": 2}},
    "inputs": [{"name": "x", "dtype": "f16", "shape": ["T", 64]},
               {"name": "g", "dtype": "f16", "shape": [64]}],
    "nodes": [{"name": "y", "op": "rms_norm", "inputs": ["x", "g"], "attrs": {"eps": 1e-5}},
              {"name": "c", "op": "all_reduce", "inputs": ["y"],
               "attrs": {"reduce_op": "sum", "group": "tp"}},
              {"name": "z", "op": "wait_tensor", "inputs": ["c"]}],
    "outputs": ["z"]})");
}

TuneOptions small_options(const TemporaryFile& file) {
  TuneOptions options;
  options.device = DeviceKind::kCpu;
  options.target = "H100";
  options.database = file.path;
  return options;
}

TEST(Tune, EstimatesResumesAndServes) {
  const TemporaryFile file;
  TuneOptions options = small_options(file);
  options.bindings = {{"T", 33}};
  std::vector<std::string> told;
  options.progress = [&](std::size_t, std::size_t, std::string_view what) {
    told.emplace_back(what);
  };
  const TuneResult first = tune(small(), options);
  EXPECT_TRUE(first.complete);
  EXPECT_FALSE(first.measured);
  EXPECT_EQ(first.device, "H100");
  ASSERT_EQ(first.kernels.size(), 2U);
  const TunedKernel& norm = first.kernels[0];
  EXPECT_EQ(norm.symbols, "T=33");
  EXPECT_EQ(norm.tried, norm.candidates);
  EXPECT_GT(norm.candidates, 2U);
  EXPECT_EQ(norm.failed, 0U);
  ASSERT_TRUE(norm.best && norm.by_default);
  EXPECT_LE(norm.best->ns, norm.by_default->ns);
  // The other one waits for a peer.
  const TunedKernel& sum = first.kernels[1];
  EXPECT_EQ(sum.tried, sum.candidates);
  EXPECT_GT(sum.candidates, 2U);
  ASSERT_TRUE(sum.by_default);
  EXPECT_GT(sum.by_default->ns, device_model(Target::parse("H100")).barrier_ns);
  EXPECT_GE(told.size(), norm.tried);
  ASSERT_EQ(first.choices.size(), 1U);
  const TunedChoice& choice = first.choices[0];
  EXPECT_EQ(choice.op, "all_reduce");
  EXPECT_EQ(choice.operands, "f16[T, 64]");
  EXPECT_EQ(choice.ranks, 2);
  EXPECT_EQ(choice.symbols, "T=33");
  EXPECT_EQ(choice.serves, "T from 1 to 64");
  ASSERT_EQ(choice.options.size(), 3U);  // not multimem, which adds in another order
  const auto taken =
      std::find_if(choice.options.begin(), choice.options.end(),
                   [&](const TunedOption& option) { return option.name == choice.taken; });
  ASSERT_NE(taken, choice.options.end());
  for (const TunedOption& option : choice.options) {
    ASSERT_TRUE(option.ns) << option.name;
    EXPECT_GE(*option.ns, *taken->ns);
  }

  options.resume = true;
  const TuneResult second = tune(small(), options);
  EXPECT_EQ(second.kernels[0].from_database, norm.tried);
  EXPECT_EQ(second.kernels[0].best->config, norm.best->config);

  // The plan that takes it has the same bits.
  WorldOptions on;
  on.device = DeviceKind::kCpu;
  on.target = "H100";
  on.world = 2;
  const RankTensors inputs = random_inputs(small(), {{"T", 40}}, 5);
  const auto output = [&] {
    const World world = World::open(on);
    Executable executable = Executable::compile(small(), world);
    executable.prepare({{"T", 40}});
    for (int rank = 0; rank < 2; ++rank) {
      executable.set_input(rank, "x", inputs[0][0]);
      executable.set_input(rank, "g", inputs[0][1]);
    }
    executable.run();
    return std::pair(executable.output(1, "z").data, executable.program_json());
  };
  const auto plain = output();
  // Whatever came out best: another one, so that a difference could show.
  PassContext context;
  context.target = Target::parse("H100");
  const Program program = lower(small(), context);
  TuneDatabase database(file.path, true);
  const Graph& reduces = *program.kernels[1].spec.body;
  for (const Algorithm algorithm :
       {Algorithm::kOneShot, Algorithm::kTwoShot, Algorithm::kPackets}) {
    const auto alone = lone_all_reduce(reduces, reduces.nodes()[0],
                                       {DType::kF16, {Dim::symbol("T"), 64}}, algorithm);
    for (TuneRow row : database.rows_of(kernel_key(*alone))) {
      row.trial.ns = algorithm == Algorithm::kTwoShot ? 1 : 9e6;
      database.put(row);
    }
  }
  for (TuneRow row : database.rows_of(kernel_key(*program.kernels[0].spec.body))) {
    row.trial.ns = row.config == norm.by_default->config ? 9e6 : 1;
    database.put(row);
  }
  on.tune_db = file.path;
  const auto tuned = output();
  EXPECT_EQ(tuned.first, plain.first);
  EXPECT_NE(tuned.second, plain.second);
  EXPECT_THAT(tuned.second, HasSubstr("two_shot"));
  EXPECT_THAT(plain.second, Not(HasSubstr("two_shot")));
  on.tune_db = "/nonexistent/tune.db";
  EXPECT_EQ(error_of([&] { (void)output(); }).first, ErrorCode::kInvalidArgument);
}

// What a thread polls is under way together: of four packets of each rank one round trip counts.
TEST(Tune, PacketsAreUnderWayTogether) {
  const TemporaryFile file;
  const Graph graph = parse_graph(R"({"braid": 1, "name": "small", "groups": {"tp": {"size": 4}},
    "inputs": [{"name": "x", "dtype": "bf16", "shape": [16, 2048]}],
    "nodes": [{"name": "c", "op": "all_reduce", "inputs": ["x"],
               "attrs": {"reduce_op": "sum", "group": "tp"}},
              {"name": "z", "op": "wait_tensor", "inputs": ["c"]}],
    "outputs": ["z"]})");
  const TuneResult result = tune(graph, small_options(file));
  ASSERT_EQ(result.choices.size(), 1U);
  EXPECT_EQ(result.choices[0].taken, "ll");
  EXPECT_EQ(result.choices[0].by_model, "ll");
}

TEST(Tune, PartsOfAMatmulWhereTheOrderOfASumMayChange) {
  const TemporaryFile file;
  const Graph graph = parse_graph(R"({"braid": 1, "name": "small",
    "inputs": [{"name": "x", "dtype": "bf16", "shape": [16, 1024]},
               {"name": "w", "dtype": "bf16", "shape": [1024, 64]}],
    "nodes": [{"name": "p", "op": "mm", "inputs": ["x", "w"]},
              {"name": "y", "op": "silu", "inputs": ["p"]}],
    "outputs": ["y"]})");
  TuneOptions options = small_options(file);
  options.budget_s = 1e-6;
  EXPECT_THAT(tune(graph, options).choices, IsEmpty());
  options.budget_s = 60;
  options.passes.batch_invariant = false;
  const TuneResult result = tune(graph, options);
  EXPECT_FALSE(result.batch_invariant);
  ASSERT_EQ(result.choices.size(), 1U);
  const TunedChoice& choice = result.choices[0];
  EXPECT_EQ(choice.op, "mm");
  EXPECT_EQ(choice.operands, "bf16[16, 1024] x bf16[1024, 64]");
  std::map<std::string, double> ns;
  for (const TunedOption& option : choice.options) ns[option.name] = option.ns.value_or(0);
  ASSERT_EQ(ns.size(), 3U);
  for (const auto& [name, time] : ns) {
    EXPECT_GT(time, 0) << name;
    EXPECT_GE(time, ns.at(choice.taken)) << name;
  }
  EXPECT_EQ(choice.tried, 5U);

  // Whichever was quickest: another number of parts, made the quickest.
  TuneDatabase database(file.path, true);
  const std::string wanted = choice.taken == "4 parts" ? "2 parts" : "4 parts";
  PassContext context;
  context.target = Target::parse("H100");
  context.config.batch_invariant = false;
  std::vector<PlanChoice> choices;
  context.choices = &choices;
  (void)lower(graph, context);
  for (const PlanOption& option : choices.at(0).options) {
    for (const auto& kernel : option.kernels) {
      for (TuneRow row : database.rows_of(kernel_key(*kernel))) {
        row.trial.ns = option.name == wanted ? 1 : 9e6;
        database.put(row);
      }
    }
  }
  const auto matmul_of_plan = [&](bool batch_invariant) {
    context.config.batch_invariant = batch_invariant;
    context.tuned = find_tuned(file.path, {context.target, ""});
    const Program program = lower(graph, context);
    const Graph& body = *program.kernels.front().spec.body;
    return body.type(body.outputs()[0]).str();
  };
  EXPECT_EQ(matmul_of_plan(false), fmt::format("f32[{}, 16, 64]", wanted.substr(0, 1)));
  const std::string by_model = choices.at(0).options[choices.at(0).by_model].name;
  EXPECT_EQ(matmul_of_plan(true),
            by_model == "whole" ? "bf16[16, 64]" : fmt::format("f32[{}, 16, 64]", by_model[0]));
}

TEST(Tune, EachBucketAtItsLargestValue) {
  const TemporaryFile file;
  const Graph graph = parse_graph(R"({"braid": 1, "name": "small",
    "symbols": {"T": {"max": 64, "buckets": [1, 8, {"max": 64, "multiple_of": 32}]}},
    "inputs": [{"name": "x", "dtype": "f16", "shape": ["T", 64]}],
    "nodes": [{"name": "y", "op": "silu", "inputs": ["x"]}], "outputs": ["y"]})");
  const TuneResult result = tune(graph, small_options(file));
  std::map<std::string, std::string> at;
  for (const TunedKernel& kernel : result.kernels) {
    at[kernel.serves] = kernel.symbols;
    EXPECT_TRUE(kernel.best) << kernel.serves;
  }
  EXPECT_EQ(at, (std::map<std::string, std::string>{{"T = 1", "T=1"},
                                                    {"T from 2 to 8", "T=8"},
                                                    {"T from 9 to 64 by 32", "T=64"},
                                                    {"T from 9 to 64", "T=64"}}));
}

// By counts a kernel that is told where rows are has some: a longer K takes longer.
TEST(Tune, GroupsHaveRows) {
  const auto ns = [](std::int64_t k) {
    Graph graph("groups");
    const ValueId rows = graph.add_input({"x", {DType::kBF16, {64, k}}});
    const ValueId weights =
        graph.add_input({"w", {DType::kBF16, {4, k, 128}}, InputKind::kParameter});
    const ValueId ends = graph.add_input({"ends", {DType::kI32, {4}}});
    const NodeId product = graph.add_node("y", "_grouped_mm", {rows, weights, ends});
    graph.add_output(graph.node(product).outputs[0]);
    const TemporaryFile file;
    TuneOptions options = small_options(file);
    const TuneResult result = tune(graph, options);
    return result.kernels.at(0).by_default.value().ns;
  };
  EXPECT_GT(ns(4096), 1.5 * ns(256));
}

TEST(Tune, RefusesWhatItCannotDo) {
  const TemporaryFile file;
  const auto refused = [&](const std::function<void(TuneOptions&)>& change) {
    TuneOptions options = small_options(file);
    change(options);
    return error_of([&] { (void)tune(small(), options); }).second;
  };
  EXPECT_THAT(refused([](TuneOptions& o) { o.database = ""; }), HasSubstr("expected a file"));
  EXPECT_THAT(refused([](TuneOptions& o) { o.budget_s = 0; }), HasSubstr("more than 0"));
  EXPECT_THAT(refused([](TuneOptions& o) { o.bindings = {{"T", 65}}; }), HasSubstr("T"));
  EXPECT_THAT(refused([](TuneOptions& o) { o.target = "A1000"; }), HasSubstr("A1000"));
  EXPECT_FALSE(fs::exists(file.path));
}

TEST(Tune, ABudgetThatIsSpentIsTold) {
  const TemporaryFile file;
  TuneOptions options = small_options(file);
  options.budget_s = 1e-6;
  const TuneResult result = tune(small(), options);
  EXPECT_FALSE(result.complete);
  EXPECT_EQ(result.kernels[0].tried, 0U);
  EXPECT_FALSE(result.kernels[0].best);
}

TEST(Tune, AWorkerThatEndsIsATrialThatFailed) {
  const TemporaryFile file;
  TuneOptions options = small_options(file);
  options.worker = {"/bin/false"};
  const TuneResult result = tune(small(), options);
  EXPECT_EQ(result.kernels[0].failed, result.kernels[0].candidates);
  EXPECT_FALSE(result.kernels[0].best);
  options.worker = {"/nonexistent/braid"};
  EXPECT_EQ(error_of([&] { (void)tune(small(), options); }).first, ErrorCode::kEnvironment);
}

}  // namespace
}  // namespace braid
