// Runs of which an input has no value are refused, on the cpu device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "braid/error.h"
#include "braid/executable.h"
#include "runtime/error_of.h"
#include "runtime/temporary_directory.h"

namespace braid {
namespace {

// y = x * w + s
Graph graph() {
  return parse_graph(R"({
    "braid": 1, "name": "unset", "symbols": {"T": {"max": 4}}, "groups": {"tp": {"size": 2}},
    "inputs": [{"name": "x", "dtype": "f32", "shape": ["T", 8]},
               {"name": "w", "dtype": "f32", "shape": [8], "kind": "parameter"},
               {"name": "s", "dtype": "f32", "shape": [8], "kind": "state"}],
    "nodes": [{"name": "p", "op": "mul", "inputs": ["x", "w"]},
              {"name": "y", "op": "add", "inputs": ["p", "s"]}], "outputs": ["y"]})");
}

HostTensor filled(std::vector<std::int64_t> shape, double value) {
  const auto count = static_cast<std::size_t>(shape.size() == 1 ? shape[0] : shape[0] * shape[1]);
  return HostTensor::from_doubles(DType::kF32, std::move(shape), std::vector<double>(count, value));
}

class UnsetInputs : public ::testing::Test {
 protected:
  UnsetInputs()
      : world_(World::open({.device = DeviceKind::kCpu, .world = 2, .threads = 1})),
        executable_(Executable::compile(graph(), world_)) {}

  static void set_x(Executable& executable, std::int64_t rows) {
    for (int rank = 0; rank < 2; ++rank) executable.set_input(rank, "x", filled({rows, 8}, 3));
  }
  static void set_w(Executable& executable) {
    for (int rank = 0; rank < 2; ++rank) executable.set_input(rank, "w", filled({8}, 2));
  }
  template <class Call>
  static void expect_refused(Call call, const std::string& name, int rank) {
    EXPECT_EQ(error_of(call), std::pair(ErrorCode::kInvalidArgument,
                                        name + ": has no value on rank " + std::to_string(rank) +
                                            "; expected set_input(), or bind() before prepare()"));
  }
  static void expect_runs(Executable& executable, const Executable::Plan& plan) {
    executable.poison_outputs();
    executable.run(plan);
    const HostTensor y = executable.output(1, "y");
    EXPECT_EQ(y.to_doubles(), std::vector<double>(static_cast<std::size_t>(y.numel()), 6));
  }

  World world_;
  Executable executable_;
};

TEST_F(UnsetInputs, AreNamedWithTheirRankUntilTheyAreSet) {
  const Executable::Plan plan = executable_.prepare({{"T", 2}});
  expect_refused([&] { executable_.run(); }, "x", 0);
  set_x(executable_, 2);
  expect_refused([&] { executable_.run(plan); }, "w", 0);
  expect_refused([&] { (void)executable_.trace(); }, "w", 0);
  executable_.set_input(0, "w", filled({8}, 2));
  expect_refused([&] { executable_.run(); }, "w", 1);
  executable_.run_rank(plan, 0);
  expect_refused([&] { executable_.run_rank(plan, 1); }, "w", 1);
  executable_.synchronize();
  executable_.set_input(1, "w", filled({8}, 2));
  expect_runs(executable_, plan);  // the state is zero
}

TEST_F(UnsetInputs, AreRefusedWhereARunIsRecorded) {
  std::vector<std::unique_ptr<Stream>> streams;
  for (int rank = 0; rank < 2; ++rank) streams.push_back(world_.device().create_stream(rank));
  executable_.prepare({{"T", 2}});
  for (const auto& stream : streams) stream->begin_capture();
  expect_refused([&] { executable_.run(std::vector{streams[0].get(), streams[1].get()}); }, "x", 0);
  for (const auto& stream : streams) (void)stream->end_capture();
}

TEST_F(UnsetInputs, AreThoseOfAllPlansInTheSameMemory) {
  const Executable::Plan two = executable_.prepare({{"T", 2}});
  const Executable::Plan four = executable_.prepare({{"T", 4}});
  set_x(executable_, 4);
  set_w(executable_);
  expect_runs(executable_, two);
  expect_runs(executable_, four);
  expect_runs(executable_, executable_.prepare({{"T", 3}}));
}

TEST_F(UnsetInputs, AreNotThoseThatAreBound) {
  const Executable::Plan before = executable_.prepare({{"T", 4}});
  set_w(executable_);
  std::vector<std::unique_ptr<Memory>> memory;
  for (int rank = 0; rank < 2; ++rank) {
    const std::uint64_t at =
        memory.emplace_back(world_.device().allocate(rank, 4 * 8 * 4))->address();
    std::fill_n(reinterpret_cast<float*>(at), 4 * 8, 3.0F);
    executable_.bind(rank, "x", {at, DType::kF32, {4, 8}});
  }
  expect_runs(executable_, executable_.prepare({{"T", 2}}));
  // It keeps the executable's own memory.
  expect_refused([&] { executable_.run(before); }, "x", 0);
  set_x(executable_, 4);
  expect_runs(executable_, before);
}

TEST_F(UnsetInputs, OfAnotherInstanceAreNotTheParametersOfTheFirst) {
  Executable other = executable_.another();
  const Executable::Plan plan = executable_.prepare({{"T", 2}}), others = other.prepare({{"T", 2}});
  set_x(other, 2);
  expect_refused([&] { other.run(); }, "w", 0);
  set_w(executable_);
  expect_runs(other, others);
  expect_refused([&] { executable_.run(); }, "x", 0);
  Executable third = executable_.another();
  const Executable::Plan thirds = third.prepare({{"T", 2}});
  expect_refused([&] { third.run(); }, "x", 0);
  set_x(third, 2);
  expect_runs(third, thirds);
}

TEST_F(UnsetInputs, AreThoseOfALoadedPlan) {
  const TemporaryDirectory directory;
  executable_.save(directory.path());
  Executable loaded = Executable::load(directory.path() / "program.json", world_);
  const Executable::Plan plan = loaded.prepare({{"T", 1}});
  set_x(loaded, 1);
  expect_refused([&] { loaded.run(); }, "w", 0);
  set_w(loaded);
  expect_runs(loaded, plan);
}

}  // namespace
}  // namespace braid
