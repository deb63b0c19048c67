// Work that is recorded and replayed, on the cpu device: of streams, and runs of executables.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "braid/error.h"
#include "braid/executable.h"
#include "braid/reference.h"
#include "run/far_graphs.h"
#include "runtime/device_loader.h"
#include "runtime/error_of.h"
#include "runtime/prepare_with_zeros.h"

namespace braid {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

class Captures : public ::testing::Test {
 protected:
  Captures()
      : device_(open_device(DeviceKind::kCpu, {.world = 2, .threads = 2})),
        memory_(device_->allocate(0, kBytes)),
        stream_(device_->create_stream(0)),
        other_(device_->create_stream(1)),
        event_(device_->create_event(0)),
        back_(device_->create_event(1)) {}

  static constexpr std::size_t kBytes = 64;
  [[nodiscard]] std::span<std::uint8_t> bytes() const {
    return {reinterpret_cast<std::uint8_t*>(memory_->address()), kBytes};
  }
  template <class Call>
  static std::string refused(Call call) {
    const auto [code, text] = error_of(call);
    EXPECT_EQ(code, ErrorCode::kInvalidArgument);
    return text;
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<Stream> stream_, other_;
  std::unique_ptr<Event> event_, back_;
};

TEST_F(Captures, AreDoneWhenReplayed) {
  std::uint8_t source = 3;
  std::fill(bytes().begin(), bytes().end(), std::uint8_t{1});
  EXPECT_FALSE(stream_->is_capturing());
  stream_->begin_capture();
  EXPECT_TRUE(stream_->is_capturing());
  stream_->fill(memory_->address(), 2, kBytes);
  stream_->copy_from_host(memory_->address() + 8, &source, 1);
  const auto graph = stream_->end_capture();
  EXPECT_FALSE(stream_->is_capturing());
  stream_->synchronize();
  EXPECT_THAT(bytes(), Each(1));
  for (const int value : {5, 9}) {
    source = static_cast<std::uint8_t>(value);  // is read then
    stream_->replay(*graph);
    stream_->synchronize();
    EXPECT_EQ(bytes()[8], value);
    EXPECT_EQ(bytes()[9], 2);
  }
  const auto elsewhere = device_->create_stream(0);
  bytes()[9] = 0;
  stream_ = nullptr;  // the recorded work does not need it
  elsewhere->replay(*graph);
  elsewhere->synchronize();
  EXPECT_EQ(bytes()[9], 2);
}

TEST_F(Captures, StreamsForkAndJoinByEvents) {
  const auto word = device_->allocate(0, 4);
  stream_->begin_capture();
  stream_->fill(memory_->address(), 1, kBytes);
  stream_->record(*event_);
  other_->wait(*event_);
  EXPECT_TRUE(other_->is_capturing());
  other_->wait_value(word->address(), 1);
  other_->fill(memory_->address(), 2, kBytes);
  other_->record(*back_);
  stream_->wait(*back_);
  stream_->fill(memory_->address() + 1, 3, 1);
  const auto graph = stream_->end_capture();
  EXPECT_FALSE(other_->is_capturing());
  const auto elsewhere = device_->create_stream(0);
  stream_->replay(*graph);
  elsewhere->replay(*graph);  // behind the first
  other_->write_value(word->address(), 1);
  elsewhere->synchronize();
  EXPECT_EQ(bytes()[0], 2);
  EXPECT_EQ(bytes()[1], 3);
  // The events are free for other work.
  stream_->record(*event_);
  other_->wait(*event_);
  other_->synchronize();
}

TEST_F(Captures, MisuseIsRefused) {
  EXPECT_THAT(refused([&] { (void)stream_->end_capture(); }), HasSubstr("is not being captured"));
  stream_->record(*event_);
  stream_->begin_capture();
  EXPECT_THAT(refused([&] { stream_->begin_capture(); }), HasSubstr("is being captured already"));
  EXPECT_THAT(refused([&] { stream_->synchronize(); }), HasSubstr("outside of captures"));
  EXPECT_THAT(refused([&] { stream_->wait(*event_); }), HasSubstr("recorded outside"));
  stream_->record(*event_);
  other_->wait(*event_);
  EXPECT_THAT(refused([&] { (void)other_->end_capture(); }), HasSubstr("began on another stream"));
  const auto apart = device_->create_stream(0);
  apart->begin_capture();
  EXPECT_THAT(refused([&] { apart->wait(*event_); }), HasSubstr("in another capture"));
  const auto empty = apart->end_capture();
  EXPECT_THAT(refused([&] { stream_->replay(*empty); }), HasSubstr("is being captured"));
  other_->fill(memory_->address(), 1, 1);
  EXPECT_THAT(refused([&] { (void)stream_->end_capture(); }),
              HasSubstr("found 1 other stream(s) of its capture with work that it does not wait"));
  EXPECT_FALSE(stream_->is_capturing());
  EXPECT_FALSE(other_->is_capturing());
  EXPECT_THAT(refused([&] { other_->wait(*event_); }), HasSubstr("a capture that is over"));
  const auto foreign = open_device(DeviceKind::kCpu, {.world = 1, .threads = 1});
  class Graph final : public RecordedGraph {
  } graph;
  EXPECT_THAT(refused([&] { stream_->replay(graph); }), HasSubstr("belongs to another device"));
  stream_->fill(memory_->address(), 7, 1);
  stream_->synchronize();
  EXPECT_EQ(bytes()[0], 7);
}

TEST_F(Captures, EndWithTheStreamTheyBeganOn) {
  stream_->begin_capture();
  stream_->record(*event_);
  other_->wait(*event_);
  stream_ = nullptr;
  EXPECT_FALSE(other_->is_capturing());
  other_->synchronize();
}

// y = x + all_reduce(silu(x) @ w), of one row or more.
Graph layer() {
  return parse_graph(R"({
    "braid": 1, "name": "layer",
    "symbols": {"T": {"min": 1, "max": 8}},
    "groups": {"tp": {"size": 2}},
    "inputs": [{"name": "x", "dtype": "bf16", "shape": ["T", 64]},
               {"name": "w", "dtype": "bf16", "shape": [64, 64], "kind": "parameter",
                "per_rank": true}],
    "nodes": [{"name": "a", "op": "silu", "inputs": ["x"]},
              {"name": "p", "op": "mm", "inputs": ["a", "w"]},
              {"name": "c", "op": "all_reduce", "inputs": ["p"],
               "attrs": {"reduce_op": "sum", "group": "tp"}},
              {"name": "s", "op": "wait_tensor", "inputs": ["c"]},
              {"name": "y", "op": "add", "inputs": ["x", "s"]}],
    "outputs": ["y"]})");
}

class Graphs : public ::testing::Test {
 protected:
  explicit Graphs(const Graph& graph = layer())
      : graph_(graph),
        world_(World::open({.device = DeviceKind::kCpu, .world = 2, .threads = 2})),
        executable_(Executable::compile(graph_, world_)) {
    for (int rank = 0; rank < 2; ++rank) {
      streams_.push_back(world_.device().create_stream(rank));
      lanes_.push_back(streams_.back().get());
    }
  }
  using Recorded = std::vector<std::unique_ptr<RecordedGraph>>;
  Recorded capture(const Executable::Plan& plan) {
    for (Stream* lane : lanes_) lane->begin_capture();
    executable_.run(plan, lanes_);
    Recorded recorded;
    for (Stream* lane : lanes_) recorded.push_back(lane->end_capture());
    return recorded;
  }
  void replay(const Recorded& recorded) {
    for (std::size_t rank = 0; rank < recorded.size(); ++rank) {
      lanes_[rank]->replay(*recorded[rank]);
    }
  }
  void wait() {
    for (Stream* lane : lanes_) lane->synchronize();
  }
  void set_inputs(const Bindings& bindings, std::uint64_t seed) {
    const RankTensors inputs = random_inputs(graph_, bindings, seed);
    for (std::size_t rank = 0; rank < 2; ++rank) {
      for (std::size_t i = 0; i < graph_.inputs().size(); ++i) {
        executable_.set_input(static_cast<int>(rank), graph_.inputs()[i].name, inputs[rank][i]);
      }
    }
  }

  Graph graph_;
  World world_;
  Executable executable_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<Stream*> lanes_;
};

TEST_F(Graphs, OfEachBatchSizeGiveWhatRunsGive) {
  std::vector<Executable::Plan> plans;
  std::vector<Recorded> recorded;
  for (std::int64_t rows = 1; rows <= 8; ++rows) {
    plans.push_back(prepare_with_zeros(executable_, world_, {{"T", rows}}));
    if (rows % 3 == 0) executable_.run(plans.back(), lanes_);  // what a capture must not wait for
    recorded.push_back(capture(plans.back()));
  }
  const WorldMetrics before = world_.metrics();
  std::uint64_t seed = 0;
  for (const std::size_t which : {7, 0, 3, 3, 6, 1, 5, 0, 2, 4, 7}) {
    executable_.run(plans[which]);
    executable_.synchronize();
    set_inputs(plans[which].bindings(), ++seed);
    executable_.run();
    const HostTensor expected = executable_.output(0, "y");
    executable_.poison_outputs();
    replay(recorded[which]);
    replay(recorded[which]);
    wait();
    executable_.synchronize();
    for (int rank = 0; rank < 2; ++rank) {
      EXPECT_EQ(executable_.output(rank, "y").data, expected.data) << "batch " << which + 1;
    }
  }
  EXPECT_EQ(world_.metrics().kernels_compiled, before.kernels_compiled);
  EXPECT_EQ(world_.metrics().plans, before.plans);
}

TEST_F(Graphs, OneCaptureMayHoldAllRanks) {
  const Executable::Plan plan = executable_.prepare({{"T", 5}});
  set_inputs(plan.bindings(), 1);
  executable_.run();
  const HostTensor expected = executable_.output(1, "y");
  executable_.poison_outputs();
  const auto fork = world_.device().create_event(0), join = world_.device().create_event(1);
  lanes_[0]->begin_capture();
  lanes_[0]->record(*fork);
  lanes_[1]->wait(*fork);
  executable_.run(lanes_);
  executable_.run(lanes_);
  lanes_[1]->record(*join);
  lanes_[0]->wait(*join);
  const auto recorded = lanes_[0]->end_capture();
  for (int round = 0; round < 3; ++round) lanes_[0]->replay(*recorded);
  lanes_[0]->synchronize();
  EXPECT_EQ(executable_.output(1, "y").data, expected.data);
}

TEST_F(Graphs, SomeStreamsOfARunCannotBeCaptured) {
  prepare_with_zeros(executable_, world_, {{"T", 5}});
  lanes_[1]->begin_capture();
  EXPECT_EQ(error_of([&] { executable_.run(lanes_); }),
            std::pair(ErrorCode::kInvalidArgument,
                      std::string("run: 1 of 2 streams are being captured; expected all or none")));
  EXPECT_NE(lanes_[1]->end_capture(), nullptr);
  executable_.run(lanes_);
  executable_.synchronize();
}

// What a replay did wrong, synchronize() says once it is done; all is fresh then.
TEST_F(Graphs, AReplayThatFailsIsAnErrorOfTheExecutable) {
  const Graph lookup = parse_graph(R"({
    "braid": 1, "name": "lookup", "groups": {"tp": {"size": 2}},
    "inputs": [{"name": "t", "dtype": "f32", "shape": [4, 8]},
               {"name": "i", "dtype": "i64", "shape": [3]}],
    "nodes": [{"name": "e", "op": "embedding", "inputs": ["t", "i"]},
              {"name": "c", "op": "all_reduce", "inputs": ["e"],
               "attrs": {"reduce_op": "sum", "group": "tp"}},
              {"name": "y", "op": "wait_tensor", "inputs": ["c"]}],
    "outputs": ["y"]})");
  executable_ = Executable::compile(lookup, world_);
  const auto set = [&](double last) {
    for (int rank = 0; rank < 2; ++rank) {
      executable_.set_input(
          rank, "t", HostTensor::from_doubles(DType::kF32, {4, 8}, std::vector<double>(32, 1.5)));
      executable_.set_input(rank, "i", HostTensor::from_doubles(DType::kI64, {3}, {0, 3, last}));
    }
  };
  const Recorded recorded = capture(prepare_with_zeros(executable_, world_, {}));
  for (int round = 0; round < 2; ++round) {
    set(9);
    replay(recorded);
    wait();
    EXPECT_THAT(error_of([&] { executable_.synchronize(); }).second,
                HasSubstr("index 9 is out of range"));
    set(2);
    executable_.synchronize();
    executable_.run();
    executable_.poison_outputs();
    replay(recorded);
    wait();
    EXPECT_EQ(executable_.output(1, "y").to_doubles(), std::vector<double>(24, 3));
  }
}

TEST_F(Graphs, CollectivesOfACommunicatorCannotBeCaptured) {
  const Graph far = testing::every_collective(2, DType::kF32);
  Executable executable = Executable::compile(far, world_);
  Bindings bindings;
  for (const auto& [name, symbol] : far.symbols()) bindings[name] = 2;
  prepare_with_zeros(executable, world_, bindings);
  for (Stream* lane : lanes_) lane->begin_capture();
  EXPECT_THAT(error_of([&] { executable.run(lanes_); }).second,
              HasSubstr("are a communicator's, whose calls differ from run to run"));
  for (Stream* lane : lanes_) (void)lane->end_capture();
  executable.run(lanes_);
  executable.synchronize();
}

TEST_F(Graphs, CollectivesOfACommunicatorMayBeEnqueuedByRank) {
  const Graph far = testing::every_collective(2, DType::kF32);
  const Bindings bindings{{"T", 3}};
  Executable executable = Executable::compile(far, world_);
  const Executable::Plan plan = executable.prepare(bindings);
  const RankTensors inputs = random_inputs(far, bindings, 1);
  const RankTensors expected = evaluate(far, inputs, bindings);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    for (std::size_t i = 0; i < far.inputs().size(); ++i) {
      executable.set_input(static_cast<int>(rank), far.inputs()[i].name, inputs[rank][i]);
    }
  }
  executable.poison_outputs();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] { executable.run_rank(plan, rank); });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t rank = 0; rank < 2; ++rank) {
    for (std::size_t i = 0; i < far.outputs().size(); ++i) {
      const std::string& name = far.value(far.outputs()[i]).name;
      EXPECT_LT(relative_error(executable.output(static_cast<int>(rank), name), expected[rank][i]),
                1e-5)
          << name;
    }
  }
}

}  // namespace
}  // namespace braid
