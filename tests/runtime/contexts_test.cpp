// Several executables of one compiled program, side by side, on the cpu device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "braid/error.h"
#include "braid/executable.h"
#include "braid/reference.h"
#include "runtime/error_of.h"

namespace braid {
namespace {

using ::testing::HasSubstr;

// y = x * g + all_reduce(x @ w), of one row or more.
Graph layer() {
  return parse_graph(R"({
    "braid": 1, "name": "layer",
    "symbols": {"T": {"min": 1, "max": 8}},
    "groups": {"tp": {"size": 2}},
    "inputs": [{"name": "x", "dtype": "f32", "shape": ["T", 64]},
               {"name": "w", "dtype": "f32", "shape": [64, 64], "kind": "parameter",
                "per_rank": true},
               {"name": "g", "dtype": "f32", "shape": [64], "kind": "parameter"}],
    "nodes": [{"name": "p", "op": "mm", "inputs": ["x", "w"]},
              {"name": "c", "op": "all_reduce", "inputs": ["p"],
               "attrs": {"reduce_op": "sum", "group": "tp"}},
              {"name": "s", "op": "wait_tensor", "inputs": ["c"]},
              {"name": "m", "op": "mul", "inputs": ["x", "g"]},
              {"name": "y", "op": "add", "inputs": ["m", "s"]}],
    "outputs": ["y"]})");
}

class Contexts : public ::testing::Test {
 protected:
  Contexts()
      : world_(World::open({.device = DeviceKind::kCpu, .world = 2, .threads = 2})),
        first_(Executable::compile(graph_, world_)),
        parameters_(random_inputs(graph_, {{"T", 1}}, 1)) {}

  /// The bound `w` of each rank, and `g` in the arena.
  void set_parameters() {
    for (std::size_t rank = 0; rank < 2; ++rank) {
      const HostTensor& w = parameters_[rank][1];
      memory_.push_back(world_.device().allocate(static_cast<int>(rank), w.data.size()));
      std::memcpy(reinterpret_cast<void*>(memory_.back()->address()), w.data.data(), w.data.size());
      first_.bind(static_cast<int>(rank), "w", {memory_.back()->address(), DType::kF32, {64, 64}});
    }
    first_.prepare({{"T", 1}});
    for (int rank = 0; rank < 2; ++rank) first_.set_input(rank, "g", parameters_[0][2]);
  }
  RankTensors inputs(std::int64_t rows, std::uint64_t seed) const {
    RankTensors all = random_inputs(graph_, {{"T", rows}}, seed);
    for (std::size_t rank = 0; rank < 2; ++rank) {
      all[rank][1] = parameters_[rank][1];
      all[rank][2] = parameters_[0][2];
    }
    return all;
  }
  /// The worst error of runs of so many rows.
  double run(Executable& executable, std::int64_t rows, std::uint64_t seed) const {
    const RankTensors all = inputs(rows, seed);
    executable.prepare({{"T", rows}});
    for (int rank = 0; rank < 2; ++rank) executable.set_input(rank, "x", all[0][0]);
    executable.poison_outputs();
    executable.run();
    const RankTensors expected = evaluate(graph_, all, {{"T", rows}});
    return std::max(relative_error(executable.output(0, "y"), expected[0][0]),
                    relative_error(executable.output(1, "y"), expected[1][0]));
  }

  Graph graph_ = layer();
  World world_;
  Executable first_;
  RankTensors parameters_;
  std::vector<std::unique_ptr<Memory>> memory_;
};

TEST_F(Contexts, RunSideBySideInThreads) {
  set_parameters();
  const std::uint64_t kernels =
      world_.metrics().kernels_compiled + world_.metrics().kernels_from_cache;
  std::vector<Executable> contexts;
  for (int i = 0; i < 3; ++i) contexts.push_back(first_.another());
  contexts.push_back(std::move(first_));
  std::vector<double> worst(contexts.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < contexts.size(); ++i) {
    threads.emplace_back([&, i] {
      for (std::uint64_t round = 0; round < 12; ++round) {
        const auto rows = static_cast<std::int64_t>((3 * i + round) % 8 + 1);
        worst[i] = std::max(worst[i], run(contexts[i], rows, 100 * i + round));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const double error : worst) EXPECT_LT(error, 1e-5);
  EXPECT_EQ(world_.metrics().kernels_compiled + world_.metrics().kernels_from_cache, kernels);
}

TEST_F(Contexts, HaveTheParametersAndNothingElseOfTheFirst) {
  const auto x = world_.device().allocate(0, 8 * 64 * 4);
  first_.bind(0, "x", {x->address(), DType::kF32, {8, 64}});
  Executable early = first_.another();  // before anything is there
  set_parameters();
  std::optional<Executable> other = first_.another();
  EXPECT_LT(run(*other, 3, 5), 1e-5);
  EXPECT_EQ(reinterpret_cast<const float*>(x->address())[0], 0);  // it has an x of its own
  parameters_[0][2] = HostTensor::from_doubles(DType::kF32, {64}, std::vector<double>(64, 0.5));
  for (int rank = 0; rank < 2; ++rank) other->set_input(rank, "g", parameters_[0][2]);
  EXPECT_LT(run(first_, 4, 6), 1e-5);
}

TEST_F(Contexts, OutliveTheFirst) {
  set_parameters();
  Executable other = first_.another();
  Executable third = other.another();
  const Executable::Plan plan = first_.prepare({{"T", 2}});
  EXPECT_THAT(error_of([&] { other.run(plan); }).second, HasSubstr("not one of this executable's"));
  first_ = Executable::compile(graph_, world_);
  EXPECT_LT(run(other, 2, 3), 1e-5);
  EXPECT_LT(run(third, 7, 4), 1e-5);
}

}  // namespace
}  // namespace braid
