// Buckets up to 8192 rows as a server has them: bound memory, plans and recorded runs of all batch
// sizes beside each other, a second executable of the program in a thread, and a database of tuned
// choices. Whatever runs a row, it has the same bits.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "braid/executable.h"
#include "braid/reference.h"
#include "codegen/device_model.h"
#include "lowering/passes.h"
#include "lowering/plan/cost.h"
#include "runtime/compile/compiler.h"
#include "runtime/temporary_directory.h"
#include "runtime/tune/tune_database.h"

namespace braid {
namespace {

constexpr int kRanks = 2;
constexpr std::int64_t kMost = 8192, kWidth = 32;
constexpr std::size_t kRowBytes = kWidth * 2, kBytes = kMost * kRowBytes;
constexpr const char* kTarget = "H100";
constexpr const char* kBuckets =
    R"(, "buckets": [1, 16, 512, {"max": 2048, "multiple_of": 256},
                    {"max": 8192, "multiple_of": 1024}])";
// Each bucket's ends, and some between.
constexpr std::int64_t kSizes[] = {1,   2,    7,    16,   17,   256,  300, 512,
                                   513, 2048, 2049, 3072, 4000, 8191, 8192};

// A matmul of the norm of a sum over the ranks: what it writes beyond the batch shows in y.
Graph layer(std::string_view buckets) {
  constexpr const char* kText = R"({{"braid": 1, "name": "layer",
    "symbols": {{"T": {{"max": {0}{2}}}}}, "groups": {{"tp": {{"size": 2}}}},
    "inputs": [{{"name": "x", "dtype": "bf16", "shape": ["T", {1}], "per_rank": true}},
               {{"name": "w", "dtype": "bf16", "shape": [{1}, {1}], "kind": "parameter"}},
               {{"name": "g", "dtype": "bf16", "shape": [{1}], "kind": "parameter"}}],
    "nodes": [{{"name": "c", "op": "all_reduce", "inputs": ["x"],
                "attrs": {{"reduce_op": "sum", "group": "tp"}}}},
              {{"name": "s", "op": "wait_tensor", "inputs": ["c"]}},
              {{"name": "n", "op": "rms_norm", "inputs": ["s", "g"], "attrs": {{"eps": 1e-5}}}},
              {{"name": "y", "op": "mm", "inputs": ["n", "w"]}}],
    "outputs": ["y"]}})";
  return parse_graph(fmt::format(kText, kMost, kWidth, buckets));
}

/// Has each bucket take another configuration than the default wherever there is one.
void write_database(const std::string& path) {
  PassContext context;
  context.target = Target::parse(kTarget);
  TuneDatabase database(path, true);
  std::size_t kernel_number = 0, rows = 0;
  for (const ProgramKernel& kernel : lower(layer(kBuckets), context).kernels) {
    if (!kernel.needs.comm_group.empty()) continue;
    const Graph& body = *kernel.spec.body;
    const std::vector<Config> choices = candidates(body, context.target);
    if (choices.size() < 2) continue;
    const KernelSpec spec{kernel.spec.body, choices[1 + kernel_number++ % (choices.size() - 1)]};
    database.put(
        {{kernel_key(body), symbols_text(max_bindings(body.symbols())), context.target.arch(),
          std::string(device_model(context.target).name), kEstimated, "NVRTC " + nvrtc_version()},
         spec.config,
         hash_of(std::string_view(emit(spec, context.target).text)),
         {1.0, ""}});
    ++rows;
  }
  EXPECT_GE(rows, 4U);
}

/// What a server has of one executable: its own outputs, a plan and recorded runs of each size.
class Served {
 public:
  Served(World& world, Executable executable, const std::vector<std::uint64_t>& x)
      : executable_(std::move(executable)) {
    for (int rank = 0; rank < kRanks; ++rank) {
      const auto r = static_cast<std::size_t>(rank);
      y_.push_back(world.device().allocate(rank, kBytes));
      executable_.bind(rank, "x", {x[r], DType::kBF16, {kMost, kWidth}});
      executable_.bind(rank, "y", {y_[r]->address(), DType::kBF16, {kMost, kWidth}});
      streams_.push_back(world.device().create_stream(rank));
      lanes_.push_back(streams_.back().get());
    }
    for (const std::int64_t size : kSizes) plans_.push_back(executable_.prepare({{"T", size}}));
    for (const Executable::Plan& plan : plans_) {
      for (Stream* lane : lanes_) lane->begin_capture();
      executable_.run(plan, lanes_);
      for (Stream* lane : lanes_) graphs_.push_back(lane->end_capture());
    }
  }

  [[nodiscard]] Executable& executable() { return executable_; }

  /// Compares rows of each rank with those of all; how many sizes had a wrong one.
  int run_all(const std::vector<std::uint8_t>& all, unsigned seed) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < 2 * plans_.size(); ++i) order.push_back(i);
    std::mt19937 random(seed);
    std::shuffle(order.begin(), order.end(), random);
    int wrong = 0;
    for (const std::size_t i : order) wrong += is_right(i / 2, i % 2 == 1, all) ? 0 : 1;
    return wrong;
  }

 private:
  bool is_right(std::size_t size, bool replayed, const std::vector<std::uint8_t>& all) {
    for (const auto& y : y_) std::memset(reinterpret_cast<void*>(y->address()), 0xa5, kBytes);
    if (replayed) {
      for (std::size_t r = 0; r < kRanks; ++r) lanes_[r]->replay(*graphs_[size * kRanks + r]);
      for (Stream* lane : lanes_) lane->synchronize();
    } else {
      executable_.run(plans_[size], lanes_);
    }
    executable_.synchronize();
    const auto written = static_cast<std::size_t>(kSizes[size]) * kRowBytes;
    for (const auto& y : y_) {
      const auto* const bytes = reinterpret_cast<const std::uint8_t*>(y->address());
      if (std::memcmp(bytes, all.data(), written) != 0) return false;
      for (std::size_t i = written; i < kBytes; ++i) {
        if (bytes[i] != 0xa5) return false;  // beyond the batch
      }
    }
    return true;
  }

  Executable executable_;
  std::vector<std::unique_ptr<Memory>> y_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<Stream*> lanes_;
  std::vector<Executable::Plan> plans_;
  std::vector<std::unique_ptr<RecordedGraph>> graphs_;  ///< of each plan and rank
};

TEST(WideBuckets, RowsKeepTheirBitsWhateverRunsThem) {
  const TemporaryDirectory directory;
  const std::string database = directory.path() / "tune.db";
  write_database(database);
  WorldOptions options;
  options.device = DeviceKind::kCpu;
  options.world = kRanks;
  options.threads = 2;
  options.target = kTarget;
  const RankTensors inputs = random_inputs(layer(""), {{"T", kMost}}, 11);
  std::vector<std::uint8_t> all;
  std::vector<std::string> hashes;
  for (const std::string& tuned : {std::string(), database}) {
    options.tune_db = tuned;
    World world = World::open(options);
    std::vector<std::unique_ptr<Memory>> memory;
    std::vector<std::uint64_t> x;
    for (int rank = 0; rank < kRanks; ++rank) {
      memory.push_back(world.device().allocate(rank, kBytes));
      x.push_back(memory.back()->address());
      std::memcpy(reinterpret_cast<void*>(x.back()),
                  inputs[static_cast<std::size_t>(rank)][0].data.data(), kBytes);
    }
    const auto set_parameters = [&](Executable& executable) {
      executable.prepare({{"T", 1}});
      for (int rank = 0; rank < kRanks; ++rank) {
        executable.set_input(rank, "w", inputs[0][1]);
        executable.set_input(rank, "g", inputs[0][2]);
      }
    };
    if (all.empty()) {  // without buckets, of all rows at once
      Executable plain = Executable::compile(layer(""), world);
      set_parameters(plain);
      plain.prepare({{"T", kMost}});
      for (int rank = 0; rank < kRanks; ++rank)
        plain.set_input(rank, "x", inputs[static_cast<std::size_t>(rank)][0]);
      plain.run();
      const HostTensor y = plain.output(1, "y");
      const auto* const bytes = reinterpret_cast<const std::uint8_t*>(y.data.data());
      all.assign(bytes, bytes + kBytes);
      EXPECT_LT(relative_error(y, evaluate(layer(""), inputs, {{"T", kMost}})[1][0]), 1e-3);
    }
    Executable executable = Executable::compile(layer(kBuckets), world);
    hashes.push_back(executable.program_hash());
    set_parameters(executable);
    Executable another = executable.another();
    Served first(world, std::move(executable), x);
    Served second(world, std::move(another), x);
    int wrong = -1;
    std::thread beside([&] { wrong = second.run_all(all, 1); });
    EXPECT_EQ(first.run_all(all, 2), 0) << "tuned by '" << tuned << "'";
    beside.join();
    EXPECT_EQ(wrong, 0) << "tuned by '" << tuned << "', the second executable";
  }
  EXPECT_NE(hashes[0], hashes[1]);
}

}  // namespace
}  // namespace braid
