// What a caller of the C++ interface gets wrong is an error that says so, and nothing is the worse
// for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "braid/executable.h"
#include "braid/rendezvous.h"
#include "braid/symmetric_memory.h"
#include "runtime/child.h"
#include "runtime/error_of.h"

namespace braid {
namespace {

using ::testing::HasSubstr;

class BadUse : public ::testing::Test {
 protected:
  BadUse()
      : world_(World::open({.device = DeviceKind::kCpu, .world = 2, .threads = 1})),
        executable_(Executable::compile(parse_graph(R"({
          "braid": 1, "name": "double", "symbols": {"T": {"max": 4}},
          "groups": {"tp": {"size": 2}},
          "inputs": [{"name": "x", "dtype": "f32", "shape": ["T", 8]}],
          "nodes": [{"name": "y", "op": "add", "inputs": ["x", "x"]}], "outputs": ["y"]})"),
                                        world_)),
        memory_(world_.device().allocate(0, 4 * 8 * 4)) {}
  ~BadUse() override {  // whatever was refused
    executable_.prepare({{"T", 2}});
    for (int rank = 0; rank < 2; ++rank) executable_.set_input(rank, "x", rows(2));
    executable_.run();
    EXPECT_EQ(executable_.output(1, "y").to_doubles(), std::vector<double>(16, 3));
  }

  static HostTensor rows(std::int64_t count) {
    return HostTensor::from_doubles(DType::kF32, {count, 8},
                                    std::vector<double>(static_cast<std::size_t>(count) * 8, 1.5));
  }
  template <class Call>
  static std::string refused(Call call) {
    const auto [code, text] = error_of(call);
    EXPECT_EQ(code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(text.find('\n'), std::string::npos);
    return text;
  }
  std::string bind_refused(const DeviceTensor& tensor, int rank = 0) {
    return refused([&] { executable_.bind(rank, "x", tensor); });
  }

  World world_;
  Executable executable_;
  std::unique_ptr<Memory> memory_;
};

TEST_F(BadUse, CallsBeforePrepare) {
  const auto first = HasSubstr("prepare() must be called first");
  EXPECT_THAT(refused([&] { executable_.run(); }), first);
  EXPECT_THAT(refused([&] { executable_.set_input(0, "x", rows(2)); }), first);
  EXPECT_THAT(refused([&] { executable_.poison_outputs(); }), first);
  EXPECT_THAT(refused([&] { (void)executable_.trace(); }), first);
  EXPECT_THAT(refused([&] { (void)executable_.output(0, "y"); }),
              HasSubstr("there is no output before a run"));
  executable_.prepare({{"T", 2}});
  // Where a tensor lies elsewhere now, a plan is due.
  executable_.bind(0, "x", {memory_->address(), DType::kF32, {4, 8}});
  EXPECT_THAT(refused([&] { executable_.run(); }), first);
}

TEST_F(BadUse, ValuesOutOfRange) {
  for (const std::int64_t value :
       {std::int64_t{0}, std::int64_t{5}, std::int64_t{-1}, std::int64_t{1} << 62}) {
    EXPECT_THAT(refused([&] { executable_.prepare({{"T", value}}); }), HasSubstr("T"));
    EXPECT_THAT(refused([&] { (void)executable_.ready({{"T", value}}); }), HasSubstr("T"));
  }
  EXPECT_THAT(refused([&] { executable_.prepare({}); }), HasSubstr("T"));
  EXPECT_THAT(refused([&] { executable_.prepare({{"T", 1}, {"S", 1}}); }), HasSubstr("S"));
}

// Its buffer has the node's shape, [T, 1].
TEST(BoundOutputs, HaveTheirOwnShapeWhereTheyAreViews) {
  World world = World::open({.device = DeviceKind::kCpu, .world = 1, .threads = 1});
  Executable executable = Executable::compile(parse_graph(R"({
    "braid": 1, "name": "view", "symbols": {"T": {"max": 4}},
    "inputs": [{"name": "x", "dtype": "f32", "shape": ["T", 1]}],
    "nodes": [{"name": "sum", "op": "add", "inputs": ["x", "x"]},
              {"name": "y", "op": "squeeze", "inputs": ["sum"], "attrs": {"dim": 1}}],
    "outputs": ["y"]})"),
                                              world);
  const auto memory = world.device().allocate(0, 16);
  executable.bind(0, "y", {memory->address(), DType::kF32, {3}});
  EXPECT_EQ(error_of([&] {
              executable.prepare({{"T", 4}});
            }).second,
            "y: is bound to f32[3]; expected at least f32[4] for these symbols");
  executable.prepare({{"T", 2}});
  executable.set_input(0, "x", HostTensor::from_doubles(DType::kF32, {2, 1}, {1.5, 2}));
  executable.run();
  executable.synchronize();
  std::vector<float> found(2);
  world.device().create_stream(0)->copy_to_host(found.data(), memory->address(), 8);
  EXPECT_EQ(found, (std::vector<float>{3, 4}));
}

TEST_F(BadUse, TensorsThatDoNotFit) {
  const std::uint64_t at = memory_->address();
  EXPECT_THAT(bind_refused({0, DType::kF32, {4, 8}}), HasSubstr("address 0x0"));
  EXPECT_THAT(bind_refused({at + 4, DType::kF32, {4, 8}}), HasSubstr("multiple of 16"));
  EXPECT_THAT(bind_refused({at, DType::kBF16, {4, 8}}), HasSubstr("expected f32"));
  EXPECT_THAT(bind_refused({at, DType::kF32, {4, 9}}), HasSubstr("expected f32"));
  EXPECT_THAT(bind_refused({at, DType::kF32, {32}}), HasSubstr("expected f32"));
  EXPECT_THAT(bind_refused({at, DType::kF32, {-4, 8}}), HasSubstr("no negative dim"));
  EXPECT_THAT(bind_refused({at, DType::kF32, {4, 8}, {1, 4}}), HasSubstr("strides (1, 4)"));
  EXPECT_THAT(bind_refused({at, DType::kF32, {4, 8}}, 2), HasSubstr("not in a world of 2"));
  EXPECT_THAT(bind_refused({at, DType::kF32, {4, 8}}, -1), HasSubstr("not in a world of 2"));
  EXPECT_NE(bind_refused({at, DType::kF32, {8, 8}}), "");  // more than is allocated there
  EXPECT_THAT(refused([&] {
                executable_.bind(0, "z", {at, DType::kF32, {4, 8}});
              }),
              HasSubstr("is no input or output"));
  // Large enough for one row, and that is all.
  executable_.bind(0, "x", {at, DType::kF32, {1, 8}});
  executable_.prepare({{"T", 1}});
  EXPECT_THAT(refused([&] {
                executable_.prepare({{"T", 2}});
              }),
              HasSubstr("expected at least f32[2, 8]"));
  executable_.bind(0, "x", {at, DType::kF32, {4, 8}});

  executable_.prepare({{"T", 2}});
  EXPECT_THAT(refused([&] { executable_.set_input(0, "x", rows(3)); }), HasSubstr("f32[2, 8]"));
  EXPECT_THAT(refused([&] { executable_.set_input(0, "y", rows(2)); }), HasSubstr("no input"));
  EXPECT_THAT(refused([&] { executable_.set_input(7, "x", rows(2)); }), HasSubstr("rank: 7"));
  HostTensor small = rows(2);
  small.data.pop_back();
  EXPECT_THAT(refused([&] { executable_.set_input(0, "x", small); }), HasSubstr("63 bytes"));
  executable_.set_input(1, "x", rows(2));
  executable_.run();
  EXPECT_THAT(refused([&] { (void)executable_.output(0, "z"); }), HasSubstr("no output or input"));
  EXPECT_THAT(refused([&] { (void)executable_.output(2, "y"); }), HasSubstr("rank: 2"));
}

TEST_F(BadUse, StreamsAndPlans) {
  const Executable::Plan plan = executable_.prepare({{"T", 2}});
  const auto stream = world_.device().create_stream(0);
  std::vector<Stream*> streams{stream.get(), nullptr};
  EXPECT_THAT(refused([&] { executable_.run(streams); }), HasSubstr("stream of rank 1 is null"));
  streams = {nullptr, nullptr};
  EXPECT_THAT(refused([&] { executable_.run(plan, streams); }), HasSubstr("stream of rank 0"));
  streams.resize(3, stream.get());
  EXPECT_THAT(refused([&] { executable_.run(streams); }), HasSubstr("3 streams"));
  EXPECT_THAT(refused([&] { executable_.run(Executable::Plan()); }), HasSubstr("not one of"));
  Executable other = executable_.another();
  EXPECT_THAT(refused([&] { other.run(plan); }), HasSubstr("not one of this executable's"));
  EXPECT_THAT(refused([&] { (void)world_.device().create_stream(2); }), HasSubstr("2"));
}

// What was moved from has nothing.
TEST_F(BadUse, WhatWasMovedFrom) {
  Executable another = executable_.another();
  const Executable taken = std::move(another);
  // NOLINTBEGIN(bugprone-use-after-move): that is what is tested
  for (const std::string& text :
       {refused([&] { another.run(); }), refused([&] {
          another.prepare({{"T", 2}});
        }),
        refused([&] { another.synchronize(); }), refused([&] { (void)another.arenas(); }),
        refused([&] { (void)another.another(); }), refused([&] { another.save("/tmp"); })}) {
    EXPECT_THAT(text, HasSubstr("executable: was moved from"));
  }
  World world = world_;
  const World held = std::move(world);
  for (const std::string& text :
       {refused([&] { (void)world.size(); }), refused([&] { (void)world.device(); }), refused([&] {
          (void)SymmetricMemory::allocate(world, "tp", {2, true, {}}, 8);
        })}) {
    EXPECT_THAT(text, HasSubstr("world: was moved from"));
  }
  SymmetricMemory memory = SymmetricMemory::allocate(world_, "tp", {2, true, {}}, 8);
  const SymmetricMemory kept = std::move(memory);
  EXPECT_THAT(refused([&] { memory.check(); }), HasSubstr("symmetric memory: was moved from"));
  // NOLINTEND(bugprone-use-after-move)
  EXPECT_EQ(taken.program_hash(), executable_.program_hash());
  EXPECT_EQ(held.size(), 2);
  EXPECT_EQ(kept.size(), 8U);
}

TEST_F(BadUse, RangesOfCopies) {
  Device& device = world_.device();
  const auto stream = device.create_stream(0);
  const std::uint64_t at = memory_->address();
  const std::size_t size = memory_->size();
  std::vector<std::byte> host(size + 1);
  const auto freed = device.allocate(0, 64)->address();
  const std::string beyond = ": 128 bytes at that address; expected 129";
  EXPECT_EQ(refused([&] { stream->fill(at, 1, size + 1); }), "fill" + beyond);
  EXPECT_EQ(refused([&] { stream->copy_from_host(at, host.data(), size + 1); }),
            "copy_from_host" + beyond);
  EXPECT_EQ(refused([&] { stream->copy_to_host(host.data(), at, size + 1); }),
            "copy_to_host" + beyond);
  EXPECT_THAT(refused([&] { stream->copy(at, at + 100, 29); }),
              HasSubstr("copy, source: 28 bytes at that address; expected 29"));
  EXPECT_THAT(refused([&] { stream->copy(at + 100, at, 29); }), HasSubstr("copy, destination: 28"));
  const std::string nothing = "no allocation of the cpu device holds the address";
  for (const std::uint64_t none : {std::uint64_t{0}, freed, at - 1, at + size}) {
    EXPECT_THAT(refused([&] { stream->fill(none, 1, 4); }), HasSubstr(nothing));
  }
  EXPECT_THAT(refused([&] { stream->write_value(at + size, 1); }), HasSubstr(nothing));
  EXPECT_THAT(refused([&] { stream->copy_from_host(at, nullptr, 4); }), HasSubstr("is null"));
  EXPECT_THAT(refused([&] { stream->copy_to_host(nullptr, at, 4); }), HasSubstr("is null"));
  // Nothing is nowhere; and memory of the process does as well.
  stream->fill(0, 1, 0);
  stream->copy_from_host(at, nullptr, 0);
  stream->fill(at, 7, size);
  stream->copy(reinterpret_cast<std::uint64_t>(host.data()), at, size);
  stream->synchronize();
  EXPECT_EQ(host[size - 1], std::byte{7});
  EXPECT_EQ(host[size], std::byte{0});
}

TEST_F(BadUse, EventsAndGraphsOfOtherRanks) {
  Device& device = world_.device();
  const auto first = device.create_stream(0), second = device.create_stream(1);
  const auto event = device.create_event(1);
  EXPECT_EQ(refused([&] { first->record(*event); }),
            "event: is of rank 1; expected rank 0, the stream's");
  second->record(*event);
  first->wait(*event);  // another rank may wait for it
  first->begin_capture();
  const auto graph = first->end_capture();
  EXPECT_EQ(refused([&] { second->replay(*graph); }),
            "graph: is of rank 0; expected rank 1, the stream's");
  first->replay(*graph);
  const World other = World::open({.device = DeviceKind::kCpu, .world = 2, .threads = 1});
  const auto foreign = other.device().create_event(0);
  for (const std::string& text :
       {refused([&] { first->record(*foreign); }), refused([&] { first->wait(*foreign); })}) {
    EXPECT_EQ(text, "event: is of another device than the stream");
  }
  first->synchronize();
}

TEST_F(BadUse, EmptyPathsAndCallbacks) {
  EXPECT_EQ(refused([&] { executable_.save(""); }),
            "directory: is empty; expected one to write into");
  const std::string no_file = "path: is empty; expected that of a file";
  EXPECT_EQ(refused([&] { (void)Executable::load("", world_); }), no_file);
  EXPECT_EQ(refused([&] { (void)load_graph(""); }), no_file);
  EXPECT_EQ(refused([&] { (void)meet_by_callback(0, 2, {}); }),
            "rendezvous: the caller's all-gather is empty; expected a function");
  EXPECT_EQ(refused([&] { world_.device().with_current(0, nullptr); }),
            "work: is empty; expected a function");
  EXPECT_EQ(refused([&] { world_.device().with_current(2, [] {}); }), "cpu: rank 2 of 2");
}

// Its threads are the parent's alone: without an error it would wait for them.
TEST_F(BadUse, AForkOfTheProcess) {
  const Executable::Plan plan = executable_.prepare({{"T", 2}});
  const auto stream = world_.device().create_stream(0);
  const SymmetricMemory memory = SymmetricMemory::allocate(world_, "tp", {2, true, {}}, 8);
  Device& device = world_.device();
  const auto bytes = device.allocate(0, 8);
  std::uint64_t host = 0;
  const int refusals = in_child([&] {
    ::alarm(60);
    int count = 0;
    const auto refused_here = [&](auto call) {
      const auto [code, text] = error_of(call);
      const bool told = text.find("a fork") != std::string::npos;
      count += code == ErrorCode::kInvalidArgument && told ? 1 : 0;
    };
    {
      Executable mine = std::move(executable_);
      const World world = std::move(world_);
      refused_here([&] { mine.run(plan); });
      refused_here([&] { mine.synchronize(); });
      refused_here([&] { (void)world.device(); });
      refused_here([&] { (void)Executable::load("/nonexistent", world); });
      refused_here([&] { memory.barrier(0, *stream); });
      refused_here([&] { stream->synchronize(); });
      refused_here([&] { stream->copy(bytes->address(), bytes->address() + 4, 4); });
      refused_here([&] { stream->copy_from_host(bytes->address(), &host, 8); });
      refused_here([&] { stream->copy_from_host(bytes->address(), &host, 0); });
      refused_here([&] { stream->copy_to_host(&host, bytes->address(), 8); });
      refused_here([&] { stream->fill(bytes->address(), 0, 8); });
      refused_here([&] { stream->begin_capture(); });
      refused_here([&] { (void)device.allocate(0, 8); });
      refused_here([&] { (void)device.create_stream(0); });
    }  // lets them go
    return count;
  });
  EXPECT_EQ(refusals, 14);
}

TEST(BadUseOfWorlds, Devices) {
  const auto text_of = [](auto call) { return error_of(call).second; };
  EXPECT_EQ(text_of([] { (void)World::open({}, std::shared_ptr<Device>()); }),
            "device: is null; expected one that is open");
  WorldOptions options;
  options.device = DeviceKind::kCpu;
  options.world = 0;
  EXPECT_THAT(text_of([&] { (void)World::open(options); }), HasSubstr("0 ranks"));
  // Before memory is taken for each.
  options.world = std::numeric_limits<int>::max();
  EXPECT_THAT(text_of([&] { (void)World::open(options); }),
              HasSubstr("world: 2147483647 ranks; expected 1 to 65536"));
  options.world = 1;
  options.threads = -1;
  EXPECT_THAT(text_of([&] { (void)World::open(options); }), HasSubstr("-1"));
  options.threads = std::numeric_limits<int>::max();
  EXPECT_THAT(text_of([&] { (void)World::open(options); }),
              HasSubstr("threads: 2147483647; expected 0 to 4096"));
  options.threads = 0;
  options.timeout_s = -1;
  EXPECT_THAT(text_of([&] { (void)World::open(options); }), HasSubstr("timeout: -1"));
}

}  // namespace
}  // namespace braid
