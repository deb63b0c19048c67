// Plans as values, the caller's streams, and what all plans of an executable share, on the cpu
// device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "braid/error.h"
#include "braid/executable.h"
#include "braid/reference.h"
#include "codegen/graph_target.h"
#include "findings.h"
#include "lowering/passes.h"
#include "runtime/compile/compile_program.h"
#include "runtime/error_of.h"
#include "runtime/exec/executable_impl.h"
#include "runtime/prepare_with_zeros.h"

namespace braid {
namespace {

using ::testing::HasSubstr;

// y = x + all_reduce(x) on two ranks, for one row or more.
Graph sum_graph() {
  return parse_graph(R"({
    "braid": 1, "name": "sum",
    "symbols": {"T": {"min": 1, "max": 8}},
    "groups": {"tp": {"size": 2}},
    "inputs": [{"name": "x", "dtype": "f32", "shape": ["T", 64], "per_rank": true}],
    "nodes": [{"name": "c", "op": "all_reduce", "inputs": ["x"],
               "attrs": {"reduce_op": "sum", "group": "tp"}},
              {"name": "s", "op": "wait_tensor", "inputs": ["c"]},
              {"name": "y", "op": "add", "inputs": ["x", "s"]}],
    "outputs": ["y"]})");
}

HostTensor filled(std::int64_t rows, double value) {
  return HostTensor::from_doubles(DType::kF32, {rows, 64},
                                  std::vector<double>(static_cast<std::size_t>(rows) * 64, value));
}

WorldOptions two_ranks() {
  WorldOptions options;
  options.device = DeviceKind::kCpu;
  options.world = 2;
  options.threads = 2;
  return options;
}

class Plans : public ::testing::Test {
 protected:
  Plans()
      : world_(World::open(two_ranks())), executable_(Executable::compile(sum_graph(), world_)) {}

  // Memory of a rank for eight rows of 64 numbers.
  std::uint64_t buffer(int rank) {
    memory_.push_back(world_.device().allocate(rank, 8 * 64 * 4));
    return memory_.back()->address();
  }
  static DeviceTensor tensor(std::uint64_t address) { return {address, DType::kF32, {8, 64}}; }
  static void write(std::uint64_t address, float value) {
    std::fill_n(reinterpret_cast<float*>(address), 8 * 64, value);
  }
  static float read(std::uint64_t address) { return *reinterpret_cast<const float*>(address); }

  World world_;
  std::vector<std::unique_ptr<Memory>> memory_;
  Executable executable_;
};

TEST_F(Plans, LiveSideBySide) {
  std::vector<Executable::Plan> plans;
  std::vector<std::uint64_t> x, y;
  for (int p = 0; p < 3; ++p) {
    for (int rank = 0; rank < 2; ++rank) {
      x.push_back(buffer(rank));
      y.push_back(buffer(rank));
      write(x.back(), static_cast<float>(1 + 10 * p + rank));
      executable_.bind(rank, "x", tensor(x.back()));
      executable_.bind(rank, "y", tensor(y.back()));
    }
    plans.push_back(executable_.prepare({{"T", 2 * p + 1}}));
    EXPECT_EQ(plans.back().bindings().at("T"), 2 * p + 1);
  }
  for (int round = 0; round < 5; ++round) {
    for (const int p : {2, 0, 1}) executable_.run(plans[static_cast<std::size_t>(p)]);
  }
  executable_.synchronize();
  for (std::size_t p = 0; p < 3; ++p) {
    for (std::size_t rank = 0; rank < 2; ++rank) {
      const float own = static_cast<float>(1 + 10 * p + rank);
      EXPECT_EQ(read(y[2 * p + rank]), own + static_cast<float>(3 + 20 * p)) << p;
    }
  }
  // The one that ran last is the current one.
  EXPECT_EQ(executable_.output(1, "y").shape, (std::vector<std::int64_t>{3, 64}));
  EXPECT_EQ(executable_.output(1, "y").to_doubles()[0], 12 + 23);
}

TEST_F(Plans, OutputsAreThoseOfTheLastRun) {
  executable_.prepare({{"T", 2}});
  for (const int rank : {0, 1}) executable_.set_input(rank, "x", filled(2, rank + 1));
  executable_.run();
  const Executable::Plan next = executable_.prepare({{"T", 3}});
  for (const int rank : {0, 1}) executable_.set_input(rank, "x", filled(3, 10));
  EXPECT_EQ(executable_.output(0, "y").data, filled(2, 1 + 3).data);
  executable_.run(next);
  EXPECT_EQ(executable_.output(0, "y").data, filled(3, 10 + 20).data);
}

TEST_F(Plans, ChangesOfAddressesAndSymbolsWaitForNothing) {
  Device& device = world_.device();
  const auto word = device.allocate(0, 4);
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<Stream*> lanes;
  std::vector<std::uint64_t> x;
  for (int rank = 0; rank < 2; ++rank) {
    x.push_back(buffer(rank));
    write(x.back(), 1);
    executable_.bind(rank, "x", tensor(x.back()));
    streams.push_back(device.create_stream(rank));
    lanes.push_back(streams.back().get());
    lanes.back()->wait_value(word->address(), 1);
  }
  const Executable::Plan held = executable_.prepare({{"T", 8}});
  executable_.run(held, lanes);  // cannot begin
  for (int rank = 0; rank < 2; ++rank) {
    executable_.bind(rank, "x", tensor(buffer(rank)));
    write(memory_.back()->address(), 5);
  }
  const Executable::Plan next = executable_.prepare({{"T", 1}});
  EXPECT_NE(next.bindings(), held.bindings());
  executable_.run(next);  // behind the first, on other streams
  device.create_stream(0)->write_value(word->address(), 1);
  EXPECT_EQ(executable_.output(0, "y").to_doubles()[0], 15);
  executable_.run(held);
  EXPECT_EQ(executable_.output(0, "y").to_doubles()[0], 3);
}

TEST_F(Plans, ARunIsPartOfTheCallersStreams) {
  Device& device = world_.device();
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<Stream*> lanes;
  std::vector<std::uint64_t> x, y;
  for (int rank = 0; rank < 2; ++rank) {
    x.push_back(buffer(rank));
    y.push_back(buffer(rank));
    executable_.bind(rank, "x", tensor(x.back()));
    executable_.bind(rank, "y", tensor(y.back()));
    streams.push_back(device.create_stream(rank));
    lanes.push_back(streams.back().get());
  }
  executable_.prepare({{"T", 8}});
  std::vector<std::vector<float>> results(40, std::vector<float>(8 * 64));
  for (std::size_t round = 0; round < 20; ++round) {
    for (std::size_t rank = 0; rank < 2; ++rank) {
      const std::vector<float> values(8 * 64, static_cast<float>(round + rank));
      lanes[rank]->copy_from_host(x[rank], values.data(), values.size() * 4);
    }
    executable_.run(lanes);
    for (std::size_t rank = 0; rank < 2; ++rank) {
      lanes[rank]->copy_to_host(results[2 * round + rank].data(), y[rank], 8 * 64 * 4);
    }
  }
  for (Stream* lane : lanes) lane->synchronize();
  for (std::size_t round = 0; round < 20; ++round) {
    for (std::size_t rank = 0; rank < 2; ++rank) {
      const auto expected = static_cast<float>((round + rank) + (2 * round + 1));
      EXPECT_EQ(results[2 * round + rank], std::vector<float>(8 * 64, expected)) << round;
    }
  }
}

// y of one run is x of the next: x -> x + sum of all x.
TEST_F(Plans, RunsAreInOrderWhateverStreamsTheyAreOn) {
  Device& device = world_.device();
  std::vector<std::uint64_t> x;
  for (int rank = 0; rank < 2; ++rank) {
    x.push_back(buffer(rank));
    write(x.back(), static_cast<float>(rank));
    executable_.bind(rank, "x", tensor(x.back()));
    executable_.bind(rank, "y", tensor(x.back()));
  }
  executable_.prepare({{"T", 8}});
  double a = 0;
  double b = 1;
  std::vector<std::unique_ptr<Stream>> streams;
  for (int round = 0; round < 12; ++round) {
    streams.push_back(device.create_stream(0));
    streams.push_back(device.create_stream(1));
    if (round % 3 == 0) {
      executable_.run();
    } else {
      executable_.run(std::vector<Stream*>{streams.rbegin()[1].get(), streams.back().get()});
    }
    const double sum = a + b;
    a += sum;
    b += sum;
  }
  executable_.synchronize();
  EXPECT_EQ(read(x[0]), a);
  EXPECT_EQ(read(x[1]), b);
}

TEST_F(Plans, WhatDoesNotFitIsRefused) {
  Executable other = Executable::compile(sum_graph(), world_);
  const Executable::Plan plan = other.prepare({{"T", 1}});
  const auto text_of = [](auto call) { return error_of(call).second; };
  EXPECT_THAT(text_of([&] { executable_.run(plan); }), HasSubstr("not one of this executable's"));
  EXPECT_THAT(text_of([&] { executable_.run(Executable::Plan()); }), HasSubstr("not one of"));
  EXPECT_THAT(text_of([&] { (void)Executable::Plan().bindings(); }), HasSubstr("plan: is empty"));
  executable_.prepare({{"T", 1}});
  const auto stream = world_.device().create_stream(0);
  EXPECT_THAT(text_of([&] { executable_.run(std::vector<Stream*>{stream.get()}); }),
              HasSubstr("1 streams; expected one for each of 2 ranks"));
}

TEST_F(Plans, StreamsAreOfTheRankAndTheDevice) {
  const Executable::Plan plan = prepare_with_zeros(executable_, world_, {{"T", 1}});
  World elsewhere = World::open(two_ranks());
  const auto zero = world_.device().create_stream(0), one = world_.device().create_stream(1),
             strange = elsewhere.device().create_stream(1);
  const auto refused = [&](Stream* first, Stream* second) {
    const auto [code, text] = error_of([&] {
      executable_.run(std::vector<Stream*>{first, second});
    });
    EXPECT_EQ(code, ErrorCode::kInvalidArgument);
    return text;
  };
  EXPECT_EQ(refused(one.get(), zero.get()),
            "run: found a stream of rank 1; expected one of rank 0");
  EXPECT_EQ(refused(zero.get(), nullptr),
            "run: the stream of rank 1 is null; expected one, or no streams");
  EXPECT_EQ(refused(zero.get(), strange.get()),
            "run: the stream of rank 1 is of another device than the world's");
  EXPECT_EQ(error_of([&] { executable_.run_rank(plan, 1, zero.get()); }).second,
            "run_rank: found a stream of rank 0; expected one of rank 1");
  executable_.run(std::vector<Stream*>{zero.get(), one.get()});
  executable_.synchronize();
}

// Rank 1's kernel faults; rank 0 waits for it in vain. Afterwards all is as before the first run.
TEST_F(Plans, AFaultOfOneRankLeavesEverythingFresh) {
  for (int rank = 0; rank < 2; ++rank) {
    executable_.bind(rank, "x", tensor(buffer(rank)));
    write(memory_.back()->address(), static_cast<float>(rank + 1));
  }
  const Executable::Plan good = executable_.prepare({{"T", 8}});
  {
    const auto freed = world_.device().allocate(1, 8 * 64 * 4);
    executable_.bind(1, "x", tensor(freed->address()));
  }
  const Executable::Plan bad = executable_.prepare({{"T", 8}});
  for (int round = 0; round < 4; ++round) {
    for (int run = 0; run < round; ++run)
      executable_.run(good);  // epochs differ from round to round
    executable_.run(bad);
    executable_.run(good);  // what comes behind it is lost, too
    try {
      executable_.synchronize();
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("an access to 0x"));
      EXPECT_THAT(error.what(), HasSubstr("rank 1"));
    }
    EXPECT_THROW((void)executable_.output(0, "y"), Error);
    executable_.synchronize();  // told once
    executable_.poison_outputs();
    for (int run = 0; run < 3; ++run) executable_.run(good);
    EXPECT_EQ(executable_.output(0, "y").to_doubles(), filled(8, 4).to_doubles());
    EXPECT_EQ(executable_.output(1, "y").to_doubles(), filled(8, 5).to_doubles());
  }
}

TEST_F(Plans, RanksAreRunApart) {
  Device& device = world_.device();
  const std::vector<Executable::Plan> plans{executable_.prepare({{"T", 3}}),
                                            executable_.prepare({{"T", 8}})};
  for (int rank = 0; rank < 2; ++rank) executable_.set_input(rank, "x", filled(8, rank + 1));
  std::vector<std::unique_ptr<Stream>> streams;
  for (int rank = 0; rank < 2; ++rank) streams.push_back(device.create_stream(rank));
  for (int round = 0; round < 5; ++round) {
    executable_.poison_outputs();
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        Stream* const stream =
            round % 2 == 0 ? nullptr : streams[static_cast<std::size_t>(rank)].get();
        for (const std::size_t which : {0, 1, 0, 1}) {
          executable_.run_rank(plans[which], rank, which == 0 ? nullptr : stream);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(executable_.output(0, "y").to_doubles(), filled(8, 4).to_doubles());
    EXPECT_EQ(executable_.output(1, "y").to_doubles(), filled(8, 5).to_doubles());
    executable_.run(plans[1]);
    EXPECT_EQ(executable_.output(1, "y").to_doubles(), filled(8, 5).to_doubles());
  }
  EXPECT_EQ(world_.metrics().runs, 25);
  // Recorded rank by rank.
  std::vector<std::unique_ptr<RecordedGraph>> graphs;
  for (int rank = 0; rank < 2; ++rank) {
    Stream& stream = *streams[static_cast<std::size_t>(rank)];
    stream.begin_capture();
    executable_.run_rank(plans[1], rank, &stream);
    graphs.push_back(stream.end_capture());
  }
  executable_.poison_outputs();
  for (std::size_t rank = 0; rank < 2; ++rank) streams[rank]->replay(*graphs[rank]);
  for (const auto& stream : streams) stream->synchronize();
  EXPECT_EQ(executable_.output(0, "y").to_doubles(), filled(8, 4).to_doubles());
}

TEST_F(Plans, ARankThatIsNotThereIsRefused) {
  const Executable::Plan plan = executable_.prepare({{"T", 3}});
  EXPECT_THAT(error_of([&] { executable_.run_rank(plan, 2); }).second,
              HasSubstr("rank: 2 is not in a world of 2"));
  EXPECT_THAT(error_of([&] { executable_.run_rank(Executable::Plan(), 0); }).second,
              HasSubstr("run_rank: the plan is not one of"));
}

TEST(CheckedPlans, OnlyTheCurrentOneIsRunByRank) {
  WorldOptions options = two_ranks();
  options.sanitize = kCheckAll;
  const World world = World::open(options);
  Executable executable = Executable::compile(sum_graph(), world);
  const Executable::Plan first = executable.prepare({{"T", 3}});
  const Executable::Plan second = executable.prepare({{"T", 4}});
  for (int rank = 0; rank < 2; ++rank) executable.set_input(rank, "x", filled(4, 1));
  EXPECT_THAT(error_of([&] { executable.run_rank(first, 0); }).second,
              HasSubstr("another plan is the current one"));
  for (int rank = 0; rank < 2; ++rank) executable.run_rank(second, rank);
  EXPECT_EQ(executable.output(0, "y").to_doubles(), filled(4, 3).to_doubles());
  EXPECT_TRUE(found_by(world.device()).empty());
}

// Rank 1's part of the run does not begin, so that rank 0 waits for it.
TEST_F(Plans, ARunThatWaitsIsCancelled) {
  Device& device = world_.device();
  const auto word = device.allocate(1, 4);
  const auto left = device.create_stream(0), right = device.create_stream(1);
  const std::vector<Stream*> lanes{left.get(), right.get()};
  executable_.prepare({{"T", 8}});
  for (std::uint32_t round = 1; round <= 3; ++round) {
    for (int rank = 0; rank < 2; ++rank) executable_.set_input(rank, "x", filled(8, round));
    executable_.run();
    EXPECT_EQ(executable_.output(0, "y").to_doubles(), filled(8, 3 * round).to_doubles());
    right->wait_value(word->address(), round);
    executable_.run(lanes);
    executable_.run();
    std::thread other([&] {
      executable_.cancel();
      if (round == 2) executable_.cancel();  // is the same
      left->synchronize();                   // rank 0 waits no more
      device.create_stream(1)->write_value(word->address(), round);
    });
    const auto [code, text] = error_of([&] { executable_.synchronize(); });
    other.join();
    EXPECT_EQ(code, ErrorCode::kCancelled);
    EXPECT_EQ(text, "sum: its runs were cancelled");
    executable_.synchronize();  // told once
    EXPECT_THROW((void)executable_.output(0, "y"), Error);
  }
  EXPECT_EQ(world_.metrics().failures, 3);
  // Where nothing runs, what comes before synchronize() is lost.
  executable_.cancel();
  executable_.run();
  EXPECT_EQ(error_of([&] { executable_.synchronize(); }).first, ErrorCode::kCancelled);
  executable_.run();
  EXPECT_EQ(executable_.output(1, "y").to_doubles(), filled(8, 9).to_doubles());
}

// A program whose input "total" is also its output, in an arena that outlives plans.
class StateArena : public ::testing::Test {
 protected:
  StateArena() : world_(World::open(one_rank())) {
    const Graph graph = parse_graph(R"({
      "braid": 1, "name": "count", "symbols": {"T": {"min": 1, "max": 8}},
      "inputs": [{"name": "before", "dtype": "f32", "shape": [8, 64]},
                 {"name": "x", "dtype": "f32", "shape": [8, 64]}],
      "nodes": [{"name": "after", "op": "add", "inputs": ["before", "x"]}],
      "outputs": ["after"]})");
    PassContext context;
    context.target = choose_target(graph, "");
    program_ = lower(graph, context);
    program_.arenas.push_back({ArenaKind::kState, "", 8 * 64 * 4});
    program_.inputs[0].kind = InputKind::kState;
    for (Buffer& buffer : program_.buffers) {
      if (buffer.name == "x") continue;
      buffer.arena = static_cast<int>(program_.arenas.size()) - 1;
      buffer.offset = 0;
    }
    program_.hash = hash_of(program_);
    EXPECT_EQ(program_.arenas.back().name(), "state");
  }
  static WorldOptions one_rank() {
    WorldOptions options = two_ranks();
    options.world = 1;
    return options;
  }
  Executable make() const {
    return Executable::Impl::make(world_, program_, compile_program(program_));
  }
  double after(Executable& executable) const {
    executable.set_input(0, "x", filled(8, 2));
    executable.run();
    return executable.output(0, "after").to_doubles().back();
  }

  World world_;
  Program program_;
};

TEST_F(StateArena, IsZeroAtFirstAndSharedByAllPlans) {
  Executable executable = make();
  executable.prepare({{"T", 1}});
  EXPECT_EQ(after(executable), 2);
  EXPECT_EQ(after(executable), 4);
  executable.prepare({{"T", 8}});
  EXPECT_EQ(after(executable), 6);
  executable.set_input(0, "before", filled(8, 10));
  EXPECT_EQ(after(executable), 12);
  Executable other = make();
  other.prepare({{"T", 1}});
  EXPECT_EQ(after(other), 2);  // a state of its own
}

TEST_F(StateArena, MayBeTheCallers) {
  Executable executable = make();
  const auto memory = world_.device().allocate(0, 8 * 64 * 4);
  std::fill_n(reinterpret_cast<float*>(memory->address()), 8 * 64, 100.0F);
  const DeviceTensor tensor{memory->address(), DType::kF32, {8, 64}};
  executable.bind(0, "before", tensor);
  executable.bind(0, "after", tensor);
  executable.prepare({{"T", 1}});
  EXPECT_EQ(after(executable), 102);
  executable.prepare({{"T", 2}});
  EXPECT_EQ(after(executable), 104);
}

TEST_F(StateArena, ARankThatACopyNamesIsPartOfTheHash) {
  Step copy;
  copy.kind = Step::Kind::kCopy;
  copy.source = copy.destination = 0;
  program_.steps.push_back(copy);
  const std::string own = hash_of(program_);
  program_.steps.back().source_peer = {"tp", 1};
  EXPECT_THAT(to_json(program_), HasSubstr(R"("source_peer": {"group": "tp", "shift": 1})"));
  EXPECT_NE(hash_of(program_), own);
}

// Two kernels on two streams of a rank: the run begins and ends both.
TEST(Streams, OfAProgramForkFromTheRunAndJoinIt) {
  const Graph graph = parse_graph(R"({
    "braid": 1, "name": "fork",
    "inputs": [{"name": "x", "dtype": "f32", "shape": [8, 64]},
               {"name": "z", "dtype": "f32", "shape": [5, 32]}],
    "nodes": [{"name": "a", "op": "neg", "inputs": ["x"]},
              {"name": "c", "op": "exp", "inputs": ["z"]}],
    "outputs": ["a", "c"]})");
  WorldOptions options = two_ranks();
  options.world = 1;
  const World world = World::open(options);
  PassContext context;
  context.target = choose_target(graph, "");
  Program program = lower(graph, context);
  ASSERT_EQ(program.steps.size(), 2);
  program.steps[0].stream = 1;
  program.hash = hash_of(program);
  Executable executable = Executable::Impl::make(world, program, compile_program(program));
  executable.prepare({});
  const RankTensors inputs = random_inputs(graph, {}, 5);
  const RankTensors expected = evaluate(graph, inputs, {});
  executable.set_input(0, "x", inputs[0][0]);
  executable.set_input(0, "z", inputs[0][1]);
  for (int run = 0; run < 10; ++run) {
    executable.poison_outputs();
    executable.run();
    for (std::size_t i = 0; i < 2; ++i) {
      const std::string& name = graph.value(graph.outputs()[i]).name;
      EXPECT_LT(relative_error(executable.output(0, name), expected[0][i]), 1e-5) << name;
    }
  }
}

}  // namespace
}  // namespace braid
