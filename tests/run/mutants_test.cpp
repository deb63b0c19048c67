// The judge judged: each signal, wait, barrier, scope and bound of the kernels that communicate or
// synchronise is broken in turn, and the sanitizer, or the result, must tell.

#include "run/mutants.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <tuple>

#include "braid/error.h"
#include "findings.h"
#include "lowering/passes.h"
#include "run/changing_device.h"
#include "run/run_graph.h"
#include "runtime/compile/compile_program.h"
#include "runtime/compile/disk_cache.h"
#include "runtime/device_loader.h"

namespace braid {
namespace {

using testing::ChangingDevice;
using testing::Mutant;

/// A matmul with a K that is no multiple of its tile, and an all-reduce of its result.
constexpr const char* kMatmul = R"({
    "braid": 1, "name": "mutants", "symbols": {"T": {"min": 1, "max": 16}},
    "groups": {"tp": {"size": 2}},
    "inputs": [
      {"name": "x", "dtype": "bf16", "shape": ["T", 200]},
      {"name": "w", "dtype": "bf16", "shape": [200, 96], "kind": "parameter", "per_rank": true}],
    "nodes": [
      {"name": "h", "op": "mm", "inputs": ["x", "w"]},
      {"name": "c", "op": "all_reduce", "inputs": ["h"],
        "attrs": {"reduce_op": "sum", "group": "tp"}},
      {"name": "s", "op": "wait_tensor", "inputs": ["c"]},
      {"name": "y", "op": "neg", "inputs": ["s"]}],
    "outputs": ["y"]})";

/// An all-reduce between a computed operand, a residual and a norm whose rows need all warps.
constexpr const char* kNorm = R"({
    "braid": 1, "name": "mutants", "symbols": {"T": {"min": 1, "max": 40}},
    "groups": {"tp": {"size": 2}},
    "inputs": [
      {"name": "x", "dtype": "bf16", "shape": ["T", 1000], "per_rank": true},
      {"name": "r", "dtype": "bf16", "shape": ["T", 1000]},
      {"name": "g", "dtype": "bf16", "shape": [1000], "kind": "parameter"}],
    "nodes": [
      {"name": "m", "op": "silu", "inputs": ["x"]},
      {"name": "d", "op": "all_reduce", "inputs": ["m"],
        "attrs": {"reduce_op": "sum", "group": "tp"}},
      {"name": "t", "op": "wait_tensor", "inputs": ["d"]},
      {"name": "a", "op": "add", "inputs": ["t", "r"]},
      {"name": "y", "op": "rms_norm", "inputs": ["a", "g"], "attrs": {"eps": 1e-5}}],
    "outputs": ["y"]})";

/// Three ranks, each of which owns pieces of each block.
constexpr const char* kThreeRanks = R"({
    "braid": 1, "name": "mutants", "symbols": {"T": {"min": 1, "max": 2048}},
    "groups": {"tp": {"size": 3}},
    "inputs": [
      {"name": "x", "dtype": "bf16", "shape": ["T", 1000], "per_rank": true}],
    "nodes": [
      {"name": "h", "op": "silu", "inputs": ["x"]},
      {"name": "c", "op": "all_reduce", "inputs": ["h"],
        "attrs": {"reduce_op": "sum", "group": "tp"}},
      {"name": "s", "op": "wait_tensor", "inputs": ["c"]},
      {"name": "y", "op": "neg", "inputs": ["s"]}],
    "outputs": ["y"]})";

/// A gather within the kernel of its matmul, as lowering writes it.
constexpr const char* kGatherGemm = R"({
    "braid": 1, "name": "mutants", "symbols": {"T": {"min": 1, "max": 130}},
    "groups": {"tp": {"size": 2}},
    "inputs": [
      {"name": "x", "dtype": "bf16", "shape": ["T", 72], "per_rank": true},
      {"name": "w", "dtype": "bf16", "shape": [72, 104], "kind": "parameter", "per_rank": true}],
    "nodes": [
      {"name": "m", "op": "silu", "inputs": ["x"], "comm_group": "tp"},
      {"name": "c", "op": "all_gather_into_tensor", "inputs": ["m"], "comm_group": "tp",
        "attrs": {"group": "tp", "algorithm": "in_kernel"}},
      {"name": "y", "op": "mm", "inputs": ["c", "w"]}],
    "outputs": ["y"]})";

/// A scatter within the kernel of its matmul, the same.
constexpr const char* kGemmReduce = R"({
    "braid": 1, "name": "mutants", "symbols": {"T": {"min": 1, "max": 20}},
    "groups": {"tp": {"size": 2}},
    "inputs": [
      {"name": "x", "dtype": "bf16", "shape": ["2*T", 136], "per_rank": true},
      {"name": "w", "dtype": "bf16", "shape": [136, 72], "kind": "parameter", "per_rank": true}],
    "nodes": [
      {"name": "h", "op": "mm", "inputs": ["x", "w"], "comm_group": "tp"},
      {"name": "c", "op": "reduce_scatter_tensor", "inputs": ["h"],
        "attrs": {"reduce_op": "sum", "group": "tp", "algorithm": "in_kernel"}},
      {"name": "y", "op": "neg", "inputs": ["c"]}],
    "outputs": ["y"]})";

/// An all-reduce within the kernel of its matmul, the same.
constexpr const char* kGemmAllReduce = R"({
    "braid": 1, "name": "mutants", "symbols": {"T": {"min": 1, "max": 70}},
    "groups": {"tp": {"size": 2}},
    "inputs": [
      {"name": "x", "dtype": "bf16", "shape": ["T", 136], "per_rank": true},
      {"name": "w", "dtype": "bf16", "shape": [136, 72], "kind": "parameter", "per_rank": true}],
    "nodes": [
      {"name": "h", "op": "mm", "inputs": ["x", "w"], "comm_group": "tp"},
      {"name": "c", "op": "all_reduce", "inputs": ["h"],
        "attrs": {"reduce_op": "sum", "group": "tp", "algorithm": "in_kernel"}},
      {"name": "y", "op": "neg", "inputs": ["c"]}],
    "outputs": ["y"]})";

/// Chunks that go to their ranks, that come from them, and uneven ones.
constexpr const char* kScatter = R"({
    "braid": 1, "name": "mutants", "symbols": {"T": {"min": 1, "max": 16}},
    "groups": {"tp": {"size": 2}},
    "inputs": [{"name": "x", "dtype": "bf16", "shape": ["2*T", 96], "per_rank": true}],
    "nodes": [
      {"name": "m", "op": "silu", "inputs": ["x"]},
      {"name": "c", "op": "reduce_scatter_tensor", "inputs": ["m"],
        "attrs": {"reduce_op": "sum", "group": "tp"}},
      {"name": "y", "op": "wait_tensor", "inputs": ["c"]}],
    "outputs": ["y"]})";
constexpr const char* kGather = R"({
    "braid": 1, "name": "mutants", "symbols": {"T": {"min": 1, "max": 16}},
    "groups": {"tp": {"size": 2}},
    "inputs": [{"name": "x", "dtype": "bf16", "shape": ["T", 96], "per_rank": true}],
    "nodes": [
      {"name": "m", "op": "silu", "inputs": ["x"]},
      {"name": "c", "op": "all_gather_into_tensor", "inputs": ["m"], "attrs": {"group": "tp"}},
      {"name": "y", "op": "wait_tensor", "inputs": ["c"]}],
    "outputs": ["y"]})";
constexpr const char* kUneven = R"({
    "braid": 1, "name": "mutants", "symbols": {"T": {"min": 1, "max": 16}},
    "groups": {"tp": {"size": 2}},
    "inputs": [{"name": "x", "dtype": "f32", "shape": [8, 330], "per_rank": true}],
    "nodes": [
      {"name": "c", "op": "all_to_all_single", "inputs": ["x"],
        "attrs": {"group": "tp", "input_split_sizes": [5, 3, 3, 5]}},
      {"name": "y", "op": "wait_tensor", "inputs": ["c"]}],
    "outputs": ["y"]})";

/// Judges a run: a finding, an error, a wrong value; empty if it is right.
class Judge {
 public:
  /// `sizes`: values of T. What one of them cannot show (a block without work, a second piece of
  /// work, a row in the second half of a tile) another does.
  Judge(const char* text, const char* all_reduce, std::vector<std::int64_t> sizes,
        int ranks_per_device = 1)
      : Judge(text, testing::all_reduce_by(all_reduce), std::move(sizes), ranks_per_device) {}
  Judge(const char* text, PassConfig config, std::vector<std::int64_t> sizes,
        int ranks_per_device = 1)
      : graph_(parse_graph(text)),
        config_(std::move(config)),
        sizes_(std::move(sizes)),
        ranks_per_device_(ranks_per_device) {
    const auto device = open_checked();
    PassContext context;
    const std::string target = testing::target_of(config_);
    context.target = Target::parse(target.empty() ? device->target() : target);
    context.ranks_per_device = ranks_per_device;
    context.config = config_;
    const ProgramCode code =
        compile_program(lower(graph_, context), {.cache = &cache(), .line_info = true});
    for (std::size_t i = 0; i < code.sources.size(); ++i) {
      kernels_.push_back({code.sources[i].entry, code.sources[i].text, code.compiled[i].image.ptx});
    }
    for (std::int64_t size : sizes_) {
      inputs_.push_back(random_inputs(graph_, {{"T", size}}, 3));
      expected_.push_back(evaluate(graph_, inputs_.back(), {{"T", size}}));
    }
  }

  struct Kernel {
    std::string entry, cuda, ptx;
  };
  [[nodiscard]] const std::vector<Kernel>& kernels() const { return kernels_; }

  /// Uses `ptx` in place of the kernel.
  [[nodiscard]] std::string verdict(const std::string& entry, const std::string& ptx,
                                    const std::string& schedule = "") const {
    const auto device = std::make_shared<ChangingDevice>(
        open_checked(schedule),
        [&](const KernelImage& image) { return image.entry == entry ? ptx : image.ptx; });
    WorldOptions options;
    options.ranks_per_device = ranks_per_device_;
    options.target = testing::target_of(config_);
    const World world = World::open(options, device);
    std::string problem;
    try {
      Executable executable = Executable::compile(graph_, world, config_);
      for (std::size_t s = 0; s < sizes_.size() && problem.empty(); ++s) {
        problem = run(executable, s);
        if (!found_by(*device).empty()) break;
      }
    } catch (const Error& error) {
      problem = fmt::format("error: {}", error.what());
    }
    const auto findings = found_by(*device);
    return findings.empty() ? problem : findings[0].text();
  }

 private:
  static const DiskCache& cache() {
    static const DiskCache kCache(DiskCache::default_directory());
    return kCache;
  }
  [[nodiscard]] std::unique_ptr<Device> open_checked(const std::string& schedule = "") const {
    return open_device(DeviceKind::kCpu, {.world = ranks(),
                                          .cache = &cache(),
                                          .checks = kCheckAll,
                                          .schedule = parse_schedule(schedule)});
  }
  [[nodiscard]] int ranks() const { return static_cast<int>(world_size(graph_)); }

  [[nodiscard]] std::string run(Executable& executable, std::size_t s) const {
    executable.prepare({{"T", sizes_[s]}});
    for (int rank = 0; rank < ranks(); ++rank) {
      for (std::size_t i = 0; i < graph_.inputs().size(); ++i) {
        executable.set_input(rank, graph_.inputs()[i].name,
                             inputs_[s][static_cast<std::size_t>(rank)][i]);
      }
    }
    executable.poison_outputs();
    // Ranks that overtake each other meet in the next run.
    for (int i = 0; i < 3; ++i) executable.run();
    executable.synchronize();
    for (int rank = 0; rank < ranks(); ++rank) {
      const double error = relative_error(executable.output(rank, "y"),
                                          expected_[s][static_cast<std::size_t>(rank)][0]);
      if (!(error <= 1e-3)) return fmt::format("value: relative error {}", error);
    }
    return "";
  }

  Graph graph_;
  PassConfig config_;
  std::vector<std::int64_t> sizes_;
  int ranks_per_device_;
  std::vector<RankTensors> inputs_, expected_;
  std::vector<Kernel> kernels_;
};

/// Mutants that change nothing, and why. Names of values stand without their numbers.
struct Allowed {
  std::string_view kernel;    ///< empty for any, like the others
  std::string_view function;  ///< of the CUDA text
  std::string_view source;    ///< a part of the line
  std::string_view change;    ///< a part of what was done
  std::string_view why;
};
constexpr Allowed kAllowed[] = {
    {"", "give_up", "", "", "runs only past a deadline"},
    {"", "wait", "load_flag((const unsigned*)c.self)", "", "the abort word ends a lost run only"},
    {"", "", "await_relaxed(c, peers", "setp.le -> setp.lt", "the deadline, a nanosecond later"},
    {"", "", "signal(comm, peers, ", "setp.lt -> setp.le", "there are more threads than ranks"},
    {"all_reduce_neg", "", "signal(comm, peers, (long long)blockIdx.x)", "bar.sync",
     "the kernel wrote nothing before: its operand is another kernel's"},
    {"reduce_scatter", "", "signal(comm, peers, (long long)blockIdx.x)", "bar.sync", "as above"},
    {"all_gather", "", "signal(comm, peers, (long long)blockIdx.x)", "bar.sync", "as above"},
    {"all_to_all", "", "signal(comm, peers, (long long)blockIdx.x)", "bar.sync", "as above"},
    {"all_reduce_silu", "", "signal(comm, peers, v", "bar.sync",
     "the reduction's own barriers follow the last read of a peer"},
    {"", "", "&& !wait(comm, peers, v", "bar.red", "the kernel ends here, which orders as much"},
    {"all_reduce_silu", "", "more = wait_more(", "setp.le -> setp.lt",
     "the deadline, a nanosecond later"},
    {"all_reduce_silu", "", "for (long long v = (long long)blockIdx.x; v < p", "setp.lt",
     "packets of a row that nobody waits for"},
    {"all_reduce_silu", "", "no line", "setp.gt", "columns come in twos: none is 999"},
    {"all_reduce_silu", "", "const int col", "setp.gt", "as above"},
    {"all_reduce_silu", "", "v * 2", "setp.gt", "columns come in eights: none is 999"},
    {"all_reduce_silu", "", "(const unsigned short*)p + col", "setp.gt",
     "columns come in eights: none is 999"},
    {"all_reduce_silu", "", "ll_store_bf16_2(comm, v", "st.weak",
     "a rank's own packets: the thread that reads them has written them"},
    {"all_reduce_silu", "", "ll_store_bf16_2(comm, v", ".sys", "as above"},
    {"all_reduce_silu", "", "unsigned short* const s = (unsigned short*)(smem + 0);", "bar.sync",
     "the reduction's own barriers follow the last read"},
    {"all_reduce_silu", "", "float* const s = (float*)(smem + 2048);", "bar.sync",
     "the conversion's barrier follows the last read"},
    {"all_reduce_silu", "", "v < p", "setp.lt", "no size ends two turns ahead"},
    {"all_reduce_silu", "", "v < p", "setp.lt", "the same of three turns"},
    {"all_reduce_silu", "", "v < p", "setp.lt", "the same of four turns"},
    {"all_reduce_silu", "", "(col + i % 8) < 1000", "setp.lt",
     "what is past the row was loaded as zero"},
    {"gemm", "", "v + col) < 200", "setp.gt", "the first tile of K ends before 200"},
    {"gemm_mm", "", "v + col) < 200", "setp.gt", "columns come in eights: none is 199"},
    {"gemm_mm", "", "const int col = lane", "setp.gt", "columns come in eights: none is 95"},
    {"gemm", "", "store_bf16_2", "setp.gt", "columns are even, the bound compared is odd"},
    {"", "", "for (long long v", "setp", "the mask of the chunk says the same"},
    {"", "", "if (turn > 0 && !(v <", "setp", "the mask of the piece says the same"},
    {"all_reduce_neg", "", "v < p; v", "setp", "the mask of the chunk says the same"},
    {"all_reduce_neg", "", "v < p; v", "setp", "the mask of the chunk says the same"},
    {"all_reduce_neg", "", "v < p; v", "setp", "the mask of the chunk says the same"},
    {"all_reduce_neg", "", "v < p; v", "setp", "the mask of the chunk says the same"},
    {"all_reduce_neg", "", "const bool v", "setp", "the mask of the chunk says the same"},
    {"all_reduce_neg", "", " && v", "setp", "of a piece that is not there nothing is stored"},
    {"all_gather", "", "blockIdx.x < p;", "setp", "the mask of the chunk says the same"},
    {"all_gather", "", "const bool v", "setp", "the mask of the chunk says the same"},
    {"reduce_scatter", "", "blockIdx.x < p;", "setp", "the mask of the chunk says the same"},
    {"reduce_scatter", "", "const bool v", "setp", "the mask of the chunk says the same"},
    {"reduce_scatter", "", "&& v", "setp.lt", "no size ends two turns ahead, but in the next one"},
    {"reduce_scatter", "", "&& v", "setp.lt", "the same of three turns"},
    {"reduce_scatter", "", "&& v", "setp.lt", "the same of four turns"},
    {"all_gather", "", "&& v", "setp", "of a piece that is not there nothing is stored"},
    {"all_to_all", "", "const bool v", "setp", "the mask of the chunk says the same"},
    {"all_to_all", "", "&& v", "setp", "of a piece that is not there nothing is stored"},
    {"all_reduce_neg", "", "multimem_store_bf16_8(v", "st.weak",
     "the fences around are what orders it, as all else that peers read"},
    {"all_reduce_neg", "", "multimem_store_bf16_8(v", ".sys", "as above"},
    {"", "", "< 2640)", "setp.gt", "columns are even, the bound compared is odd"},
    {"all_reduce_silu", "", "(v * 1000) * 2", "setp.gt", "columns come in eights: none is 999"},
    {"all_reduce_silu", "", "(col + i % 8) < 1000", "setp.lt",
     "what is past the row was loaded as zero"},
    {"gather_gemm", "", "blockIdx.x < v", "setp.le -> setp.lt",
     "one block more signals, and waits for its like"},
    {"gather_gemm", "", "for (long long v", "setp", "the mask of the piece says the same"},
    {"gather_gemm", "", "load_bf16_8", "setp.le", "elements come in eights"},
    {"gather_gemm", "", "< v;", "setp.le", "the mask of the piece says the same"},
    {"gather_gemm", "signal_one", "", ".sys -> .gpu", "this rank alone reads a panel's flag"},
    {"gather_gemm", "", "!wait_one(", "bar.red", "the barrier in front of the loop over K"},
    {"gather_gemm", "", "< 104)))", "setp.gt", "columns come in eights: none is 103"},
    {"gather_gemm", "", "< 72)))", "setp", "columns come in eights: none is 72"},
    {"gather_gemm", "signal", "fence()", "", "this rank's own flags have fences of their own"},
    {"gather_gemm", "", "signal(comm, peers, v", "",
     "what was read of peers is in front of the last panel's signal"},
    {"gemm_reduce", "", "for (long long v", "setp.le", "there are more tiles than blocks"},
    {"gemm_reduce_mm_all", "", "for (long long v", "setp.ge", "as above"},
    {"gemm_reduce_mm_all", "", "for (long long v", "setp.lt", "the masks of the tile say the same"},
    {"gemm_reduce_mm_all", "", "for (long long v", "setp.lt",
     "the mask of the piece says the same"},
    {"gemm_reduce", "", "wait_group_0()", "one group less",
     "the slot of the last group is not where the layout changes"},
    {"gemm_reduce", "", "copy_async_16", "setp.gt", "columns come in eights: none is 135"},
    {"gemm_reduce", "", "!wait_slots(", "setp.lt", "there are more threads than flags"},
    {"gemm_reduce", "", "!wait_slots(", "the loop of a wait", "as above"},
    {"gemm_reduce", "", "for (long long v", "setp.lt", "the mask of the piece says the same"},
    {"gemm_reduce", "", "(v / v) * 64", "setp.gt", "columns come in eights: none is 71"},
};

/// A line without the numbers of its names, which another value in front of it would change.
std::string unnumbered(const std::string& line) {
  static const std::regex kNumber(R"(\b(v|p|s|col|row|after_v)\d+\b)");
  return std::regex_replace(line, kNumber, "$1");
}

bool allowed(std::string_view kernel, const Mutant& mutant) {
  const std::string source = unnumbered(mutant.source);
  const auto has = [](std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
  };
  return std::any_of(std::begin(kAllowed), std::end(kAllowed), [&](const Allowed& a) {
    return has(kernel, a.kernel) && has(mutant.function, a.function) && has(source, a.source) &&
           has(mutant.change, a.change);
  });
}

/// A norm, a matmul of its rows, and rows of that: kernels that are joined.
constexpr const char* kJoined = R"({
    "braid": 1, "name": "mutants", "symbols": {"T": {"min": 1, "max": 40}},
    "inputs": [
      {"name": "x", "dtype": "bf16", "shape": ["T", 256]},
      {"name": "g", "dtype": "bf16", "shape": [256], "kind": "parameter"},
      {"name": "w", "dtype": "bf16", "shape": [256, 4096], "kind": "parameter"}],
    "nodes": [
      {"name": "n", "op": "rms_norm", "inputs": ["x", "g"], "attrs": {"eps": 1e-5}},
      {"name": "m", "op": "mm", "inputs": ["n", "w"]},
      {"name": "y", "op": "softmax", "inputs": ["m"], "attrs": {"dim": -1}}],
    "outputs": ["y"]})";

struct Case {
  const char* name;
  const char* graph;
  const char* all_reduce;           ///< its algorithm
  std::vector<std::int64_t> sizes;  ///< the last one in many interleavings
  int ranks_per_device = 1;         ///< many make small grids, whose blocks have several tiles each
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class Mutants : public ::testing::TestWithParam<Case> {};

TEST_P(Mutants, WholeKernelsHaveNoFinding) {
  const Judge judge(GetParam().graph, GetParam().all_reduce, GetParam().sizes,
                    GetParam().ranks_per_device);
  for (const auto& kernel : judge.kernels()) EXPECT_EQ(judge.verdict(kernel.entry, kernel.ptx), "");
}

TEST_P(Mutants, WholeKernelsHaveNoFindingInManyInterleavings) {
  const char* given = std::getenv("BRAID_SCHEDULES");
  const int schedules = given == nullptr ? 100 : std::atoi(given);
  const Judge judge(GetParam().graph, GetParam().all_reduce, {GetParam().sizes.back()},
                    GetParam().ranks_per_device);
  const auto& kernel = judge.kernels().back();
  for (int seed = 1; seed <= schedules; ++seed) {
    ASSERT_EQ(judge.verdict(kernel.entry, kernel.ptx, std::to_string(seed)), "")
        << "schedule " << seed;
  }
}

/// Instructions that compilers duplicate (turns of a loop, elements of a thread) are one mutant: it
/// is found if one of its places is, since no size runs them all.
TEST_P(Mutants, EveryOneIsFound) {
  const Judge judge(GetParam().graph, GetParam().all_reduce, GetParam().sizes,
                    GetParam().ranks_per_device);
  std::size_t count = 0;
  for (const auto& kernel : judge.kernels()) {
    std::map<std::tuple<std::string, std::string, std::string>, std::vector<Mutant>> mutants;
    for (Mutant& mutant : testing::mutants_of(kernel.ptx, kernel.cuda)) {
      mutants[{mutant.function, mutant.source, mutant.change}].push_back(std::move(mutant));
    }
    count += mutants.size();
    for (const auto& [what, places] : mutants) {
      const auto found = [&, &places = places](const char* schedule) {
        return std::any_of(places.begin(), places.end(), [&](const Mutant& mutant) {
          return !judge.verdict(kernel.entry, mutant.ptx, schedule).empty();
        });
      };
      // Schedules that show what the usual order of blocks hides.
      const auto schedules = {"", "delay:1", "delay:2", "delay:3", "1"};
      if (allowed(kernel.entry, places[0])) continue;
      EXPECT_TRUE(std::any_of(schedules.begin(), schedules.end(), found))
          << kernel.entry << ".ptx:" << places[0].line << ": " << places[0].change << " in "
          << places[0].function << ": " << places[0].source << " survives";
    }
  }
  EXPECT_GT(count, 30U);
}

TEST(Mutants, OfTheMeetingsOfJoinedKernelsAreFound) {
  const Judge judge(kJoined, PassConfig{.enable = {"join_kernels"}}, {5, 40});
  ASSERT_EQ(judge.kernels().size(), 1);
  const auto& kernel = judge.kernels()[0];
  EXPECT_EQ(judge.verdict(kernel.entry, kernel.ptx), "");
  // A change that a compiler spread over several places is found at one of them.
  std::map<std::string, bool> changes;
  for (const Mutant& mutant : testing::mutants_of(kernel.ptx, kernel.cuda)) {
    const bool is_meeting = mutant.source.find("meet_blocks") != std::string::npos;
    // The deadline, a nanosecond later.
    if (!is_meeting || mutant.change.starts_with("setp")) continue;
    bool& is_found = changes[mutant.change];
    for (const char* schedule : {"", "delay:1", "delay:2", "delay:3", "1"}) {
      is_found = is_found || !judge.verdict(kernel.entry, mutant.ptx, schedule).empty();
    }
  }
  EXPECT_GE(changes.size(), 3U);
  for (const auto& [change, is_found] : changes) EXPECT_TRUE(is_found) << change << " survives";
}

INSTANTIATE_TEST_SUITE_P(Kernels, Mutants,
                         ::testing::Values(Case{"matmul", kMatmul, "one_shot", {1, 5, 9, 13}, 32},
                                           Case{"norm", kNorm, "one_shot", {5, 40}},
                                           Case{"two_shot", kThreeRanks, "two_shot", {5, 70}},
                                           Case{"ll_norm", kNorm, "ll", {5, 40, 5}},
                                           Case{"multimem", kThreeRanks, "multimem", {3, 9}, 8},
                                           Case{"scatter", kScatter, "", {5, 12}, 32},
                                           Case{"gather", kGather, "", {5, 12}, 32},
                                           Case{"gather_gemm", kGatherGemm, "", {5, 130}, 9},
                                           Case{"gemm_reduce", kGemmReduce, "", {5, 20}, 36},
                                           Case{"gemm_all_reduce", kGemmAllReduce, "", {5, 70}, 36},
                                           Case{"uneven", kUneven, "", {1}, 32}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace braid
