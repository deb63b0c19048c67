// Ranks that live in worlds of their own, which share one cpu device and meet at a rendezvous.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <optional>
#include <thread>

#include "braid/error.h"
#include "braid/executable.h"
#include "braid/reference.h"
#include "braid/symmetric_memory.h"
#include "run/far_graphs.h"
#include "runtime/device_loader.h"
#include "runtime/error_of.h"
#include "runtime/prepare_with_zeros.h"

namespace braid {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// y = rms_norm(all_reduce(x), g)
Graph small_graph(double eps = 1e-5, int ranks = 2) {
  return parse_graph(fmt::format(R"({{
    "braid": 1, "name": "small",
    "symbols": {{"T": {{"min": 1, "max": 8}}}},
    "groups": {{"tp": {{"size": {}}}}},
    "inputs": [{{"name": "x", "dtype": "bf16", "shape": ["T", 64], "per_rank": true}},
               {{"name": "g", "dtype": "bf16", "shape": [64], "kind": "parameter"}}],
    "nodes": [{{"name": "c", "op": "all_reduce", "inputs": ["x"],
               "attrs": {{"reduce_op": "sum", "group": "tp"}}}},
              {{"name": "s", "op": "wait_tensor", "inputs": ["c"]}},
              {{"name": "y", "op": "rms_norm", "inputs": ["s", "g"], "attrs": {{"eps": {}}}}}],
    "outputs": ["y"]}})",
                                 ranks, eps));
}

class Worlds : public ::testing::Test {
 protected:
  explicit Worlds(double timeout_s = 60)
      : device_(open_device(DeviceKind::kCpu, {.world = 2, .threads = 2})),
        ends_(meet_in_process({{0}, {1}}, 60)) {
    for (int rank = 0; rank < 2; ++rank) {
      WorldOptions options;
      options.rendezvous = ends_[static_cast<std::size_t>(rank)];
      options.timeout_s = timeout_s;
      worlds_.push_back(World::open(options, device_));
    }
  }

  /// Does `body(rank)` for both ranks, each on a thread of its own; returns what each threw.
  template <class Body>
  static std::array<std::string, 2> on_both(Body body) {
    std::array<std::string, 2> errors;
    std::array<std::thread, 2> threads;
    for (std::size_t rank = 0; rank < 2; ++rank) {
      threads[rank] = std::thread([&, rank] {
        try {
          body(rank);
        } catch (const Error& error) {
          errors[rank] = error.what();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return errors;
  }

  std::shared_ptr<Device> device_;
  std::vector<std::shared_ptr<Rendezvous>> ends_;
  std::vector<World> worlds_;
};

TEST_F(Worlds, OfOneRankEachRunACollectiveTogether) {
  const Graph graph = small_graph();
  const Bindings bindings{{"T", 5}};
  const RankTensors inputs = random_inputs(graph, bindings, 7);
  const RankTensors expected = evaluate(graph, inputs, bindings);
  EXPECT_THAT(worlds_[1].ranks(), ElementsAre(1));
  EXPECT_EQ(worlds_[1].size(), 2);
  const auto errors = on_both([&](std::size_t rank) {
    Executable executable = Executable::compile(graph, worlds_[rank]);
    executable.prepare(bindings);
    for (int round = 0; round < 3; ++round) {
      for (std::size_t i = 0; i < 2; ++i) {
        executable.set_input(static_cast<int>(rank), graph.inputs()[i].name, inputs[rank][i]);
      }
      executable.poison_outputs();
      executable.run();
      EXPECT_LT(relative_error(executable.output(static_cast<int>(rank), "y"), expected[rank][0]),
                1e-3);
    }
    EXPECT_THROW((void)executable.output(1 - static_cast<int>(rank), "y"), Error);
    ends_[rank]->barrier();  // the other rank still reads
  });
  EXPECT_THAT(errors, ElementsAre("", ""));
}

TEST_F(Worlds, MakeAnotherExecutableTogether) {
  const Graph graph = small_graph();
  const Bindings bindings{{"T", 3}};
  const RankTensors inputs = random_inputs(graph, bindings, 7);
  const RankTensors expected = evaluate(graph, inputs, bindings);
  const auto errors = on_both([&](std::size_t rank) {
    const int own = static_cast<int>(rank);
    Executable first = Executable::compile(graph, worlds_[rank]);
    Executable other = first.another();
    first.prepare(bindings);
    first.set_input(own, "g", inputs[rank][1]);
    other.prepare(bindings);
    for (Executable* executable : {&other, &first, &other}) {
      executable->set_input(own, "x", inputs[rank][0]);
      executable->run();
      EXPECT_LT(relative_error(executable->output(own, "y"), expected[rank][0]), 1e-3);
    }
    ends_[rank]->barrier();  // the other rank still reads
  });
  EXPECT_THAT(errors, ElementsAre("", ""));
}

// Each has multicast addresses of its own, for memory of both; devices of their own share files.
TEST_F(Worlds, ReduceOnTheLinksOfOneDeviceOrTwo) {
  const Graph graph = small_graph();
  const Bindings bindings{{"T", 5}};
  const RankTensors inputs = random_inputs(graph, bindings, 7);
  const RankTensors expected = evaluate(graph, inputs, bindings);
  for (const bool apart : {false, true}) {
    const auto ends = meet_in_process({{0}, {1}}, 60);
    const auto errors = on_both([&](std::size_t rank) {
      WorldOptions options;
      options.rendezvous = ends[rank];
      options.target = "sm_90a";
      std::shared_ptr<Device> own = device_;
      if (apart) own = open_device(DeviceKind::kCpu, {.world = 2, .threads = 2});
      const World world = World::open(options, own);
      Executable executable =
          Executable::compile(graph, world, {.all_reduce = "multimem", .batch_invariant = false});
      EXPECT_THAT(executable.kernels().back().name, HasSubstr("all_reduce"));
      executable.prepare(bindings);
      for (std::size_t i = 0; i < 2; ++i) {
        executable.set_input(static_cast<int>(rank), graph.inputs()[i].name, inputs[rank][i]);
      }
      executable.poison_outputs();
      executable.run();
      EXPECT_LT(relative_error(executable.output(static_cast<int>(rank), "y"), expected[rank][0]),
                1e-3);
      ends[rank]->barrier();
    });
    EXPECT_THAT(errors, ElementsAre("", ""));
  }
}

TEST_F(Worlds, RefuseEachOtherWhereAPlanDiffers) {
  const auto errors = on_both([&](std::size_t rank) {
    (void)Executable::compile(small_graph(rank == 0 ? 1e-5 : 1e-6), worlds_[rank]);
  });
  EXPECT_EQ(errors[0], errors[1]);
  EXPECT_THAT(errors[0], ::testing::MatchesRegex(
                             "rendezvous: rank 0 has the plan [0-9a-f]+, rank 1 has [0-9a-f]+; "
                             "expected one plan on all ranks"));
}

TEST_F(Worlds, ARankThatCannotCompileIsToldOf) {
  const auto errors = on_both([&](std::size_t rank) {
    (void)Executable::compile(rank == 0 ? small_graph() : Graph("empty"), worlds_[rank]);
  });
  EXPECT_THAT(errors[1], HasSubstr("empty: the graph is a program of 1 rank(s)"));
  EXPECT_EQ(errors[0], "rendezvous: rank 1 cannot take part: " + errors[1]);
  // The next one may be better.
  const auto again =
      on_both([&](std::size_t rank) { (void)Executable::compile(small_graph(), worlds_[rank]); });
  EXPECT_THAT(again, ElementsAre("", ""));
}

TEST_F(Worlds, ARendezvousOfAnotherSizeIsRefused) {
  WorldOptions options;
  options.rendezvous = meet_in_process({{0}, {1}, {2}})[0];
  EXPECT_THROW((void)World::open(options, device_), Error);
}

// Rank 1 leaves: rank 0, whose kernel waits for it, hears of it long before the timeout.
// Not when all its kernels are there.
TEST_F(Worlds, ACompileEndsWhenARankLeaves) {
  const Graph graph = parse_graph(R"({
    "braid": 1, "name": "two", "groups": {"tp": {"size": 2}},
    "inputs": [{"name": "x", "dtype": "f32", "shape": [8, 8], "per_rank": true}],
    "nodes": [{"name": "h", "op": "mm", "inputs": ["x", "x"]},
              {"name": "y", "op": "softmax", "inputs": ["h"]}], "outputs": ["y"]})");
  int told = 0;
  WorldOptions options;
  options.rendezvous = ends_[0];
  options.progress = [&](std::size_t, std::size_t total, std::string_view) {
    EXPECT_GE(total, 2U);
    ++told;
    ends_[1].reset();
  };
  worlds_.clear();
  const World world = World::open(options, device_);
  EXPECT_EQ(error_of([&] { (void)Executable::compile(graph, world); }),
            std::pair(ErrorCode::kEnvironment, std::string("rendezvous: rank 1 is gone")));
  EXPECT_EQ(told, 1);
}

TEST_F(Worlds, ARankThatLeavesIsNamed) {
  const Graph graph = small_graph();
  const auto errors = on_both([&](std::size_t rank) {
    Executable executable = Executable::compile(graph, worlds_[rank]);
    prepare_with_zeros(executable, worlds_[rank], {{"T", 2}});
    if (rank == 1) {
      worlds_.pop_back();
      ends_[1].reset();
      return;
    }
    const auto start = std::chrono::steady_clock::now();
    executable.run();
    try {
      executable.synchronize();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kEnvironment);
      EXPECT_STREQ(error.what(), "rendezvous: rank 1 is gone");
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
    executable.run();
  });
  EXPECT_THAT(errors, ElementsAre("rendezvous: rank 1 is gone", ""));
}

/// A meeting with rank 1 where what it gives cannot be had, since it is gone.
class Deserted final : public Rendezvous {
 public:
  [[nodiscard]] int world() const override { return 2; }
  [[nodiscard]] const std::vector<int>& ranks() const override { return ranks_; }
  [[nodiscard]] std::vector<std::string> all_gather(std::vector<std::string> mine) override {
    if (gone_) throw_environment("rendezvous", lost());
    gone_ = true;
    std::string other = mine[0];
    const std::string_view tag = "cpu memory";
    for (std::size_t at = other.find(tag); at != std::string::npos; at = other.find(tag, at + 1)) {
      other[at + tag.size() + 4] ^= 1;  // after the format: as if of another process
    }
    return {mine[0], other};
  }
  [[nodiscard]] std::string lost() const override { return gone_ ? "rank 1 is gone" : ""; }

 private:
  std::vector<int> ranks_{0};
  bool gone_ = false;
};

TEST(DesertedWorld, NamesTheRankWhoseMemoryIsOutOfReach) {
  WorldOptions options;
  options.device = DeviceKind::kCpu;
  options.world = 2;
  options.sanitize = kCheckAll;  // such a device has no memory of other processes
  options.rendezvous = std::make_shared<Deserted>();
  const World world = World::open(options);
  EXPECT_EQ(error_of([&] {
              (void)SymmetricMemory::allocate(world, "kv", {2, true, {}}, 64);
            }),
            std::pair(ErrorCode::kEnvironment, std::string("rendezvous: rank 1 is gone")));
}

// Ranks that run with different values learn it at once, and learn which.
TEST_F(Worlds, RunWithTheSameValues) {
  const auto start = std::chrono::steady_clock::now();
  const auto errors = on_both([&](std::size_t rank) {
    Executable executable = Executable::compile(small_graph(), worlds_[rank]);
    prepare_with_zeros(executable, worlds_[rank], {{"T", rank == 0 ? 4 : 8}});
    executable.run();
    try {
      executable.synchronize();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_THROW(executable.run(), Error);
      throw;
    }
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
  EXPECT_THAT(errors, Each("rendezvous: rank 0 has T = 4, rank 1 has T = 8; expected the same on "
                           "all ranks"));
}

// Each world looks after its own ranks.
TEST_F(Worlds, NameTheirOwnRankWithoutAnInput) {
  const auto errors = on_both([&](std::size_t rank) {
    Executable executable = Executable::compile(small_graph(), worlds_[rank]);
    executable.prepare({{"T", 4}});
    EXPECT_THAT(error_of([&] { executable.run(); }).second,
                HasSubstr(fmt::format("x: has no value on rank {};", rank)));
    prepare_with_zeros(executable, worlds_[rank], {{"T", 4}});
    executable.run();
    executable.synchronize();
    ends_[rank]->barrier();
  });
  EXPECT_THAT(errors, Each(""));
}

// Plans may be prepared in any order, and a recovery begins anew.
TEST_F(Worlds, PrepareInAnyOrder) {
  const auto errors = on_both([&](std::size_t rank) {
    Executable executable = Executable::compile(small_graph(), worlds_[rank]);
    std::array<Executable::Plan, 2> plans;
    for (std::size_t i = 0; i < 2; ++i) {
      const std::size_t p = rank == 0 ? i : 1 - i;
      plans[p] = prepare_with_zeros(executable, worlds_[rank], {{"T", p == 0 ? 4 : 8}});
    }
    for (const std::size_t p : {0, 1, 0}) executable.run(plans[p]);
    executable.synchronize();
    executable.recover();
    for (const std::size_t p : {1, 0}) executable.run(plans[p]);
    executable.synchronize();
    ends_[rank]->barrier();
  });
  EXPECT_THAT(errors, Each(""));
}

// Ranks that never wait for each other may have values of their own.
TEST_F(Worlds, OfRanksApartRunWithOtherValues) {
  const Graph graph = parse_graph(R"({
    "braid": 1, "name": "apart", "symbols": {"T": {"min": 1, "max": 8}},
    "groups": {"own": {"size": 1, "ranks": [[0], [1]]}},
    "inputs": [{"name": "x", "dtype": "f32", "shape": ["T"]}],
    "nodes": [{"name": "c", "op": "all_reduce", "inputs": ["x"],
               "attrs": {"reduce_op": "sum", "group": "own"}},
              {"name": "y", "op": "wait_tensor", "inputs": ["c"]}],
    "outputs": ["y"]})");
  const auto errors = on_both([&](std::size_t rank) {
    Executable executable = Executable::compile(graph, worlds_[rank]);
    prepare_with_zeros(executable, worlds_[rank], {{"T", rank == 0 ? 4 : 8}});
    executable.run();
    executable.synchronize();
    ends_[rank]->barrier();
    EXPECT_EQ(ends_[rank]->disagreement(), "");
  });
  EXPECT_THAT(errors, Each(""));
}

class LateWorlds : public Worlds {
 protected:
  LateWorlds() : Worlds(1.5) {}
};

// Rank 1 does not run: rank 0 waits in vain, and both recover together.
TEST_F(LateWorlds, RecoverTogether) {
  const Graph graph = small_graph();
  const Bindings bindings{{"T", 2}};
  const RankTensors inputs = random_inputs(graph, bindings, 7);
  const RankTensors expected = evaluate(graph, inputs, bindings);
  const auto errors = on_both([&](std::size_t rank) {
    Executable executable = Executable::compile(graph, worlds_[rank]);
    executable.prepare(bindings);
    for (std::size_t i = 0; i < 2; ++i) {
      executable.set_input(static_cast<int>(rank), graph.inputs()[i].name, inputs[rank][i]);
    }
    if (rank == 0) {
      executable.run();
      EXPECT_THROW(executable.synchronize(), Error);
      EXPECT_THROW(executable.run(), Error);  // not before recover()
    }
    executable.recover();
    executable.run();
    EXPECT_LT(relative_error(executable.output(static_cast<int>(rank), "y"), expected[rank][0]),
              1e-3);
    ends_[rank]->barrier();
  });
  EXPECT_THAT(errors, ElementsAre("", ""));
}

// Over a group without symmetric memory. A communicator is made by all worlds together.
class FarWorlds : public Worlds {
 protected:
  FarWorlds() : Worlds(1) {}
  static Graph graph() {
    testing::FarBuilder b(2);
    const ValueId x = b.op("neg", {b.in(DType::kBF16, {testing::kT, 64}, "x")});
    const ValueId sum = b.waited("all_reduce", {x}, testing::reducing("sum"));
    return b.take({b.op("neg", {b.waited("all_gather_into_tensor", {sum}, testing::kFar)})});
  }
};

TEST_F(FarWorlds, ALostPeerIsATimeoutOfTheOthersAndBothGoOn) {
  const Graph far = graph();
  const Bindings bindings{{"T", 5}};
  const RankTensors inputs = random_inputs(far, bindings, 7);
  const RankTensors expected = evaluate(far, inputs, bindings);
  const auto errors = on_both([&](std::size_t rank) {
    Executable executable = Executable::compile(far, worlds_[rank]);
    executable.prepare(bindings);
    const auto check = [&] {
      executable.set_input(static_cast<int>(rank), "x", inputs[rank][0]);
      executable.poison_outputs();
      executable.run();
      const std::string& name = far.value(far.outputs()[0]).name;
      EXPECT_LT(relative_error(executable.output(static_cast<int>(rank), name), expected[rank][0]),
                1e-3);
    };
    for (int round = 0; round < 3; ++round) check();
    if (rank == 0) {
      executable.run();  // rank 1 does not
      const auto [code, text] = error_of([&] { executable.synchronize(); });
      EXPECT_EQ(code, ErrorCode::kTimeout);
      EXPECT_EQ(text,
                "group 'far', rank 0: collective 7 of its communicator has waited for its "
                "peers for 1 s");
      EXPECT_THAT(error_of([&] { executable.run(); }).second, HasSubstr("expected recover()"));
    }
    ends_[rank]->barrier();
    executable.recover();
    check();
    ends_[rank]->barrier();  // the other rank still reads
  });
  EXPECT_THAT(errors, ElementsAre("", ""));
}

// Rank 2 does not run, and rank 0 waits for less long than rank 1, whose outputs are lost, too.
TEST(ThreeWorlds, WhatOneGivesUpIsAnErrorOfTheOthers) {
  const std::shared_ptr<Device> device = open_device(DeviceKind::kCpu, {.world = 3, .threads = 2});
  const auto ends = meet_in_process({{0}, {1}, {2}}, 60);
  const auto run = [&](std::size_t rank) -> std::string {
    WorldOptions options;
    options.rendezvous = ends[rank];
    options.timeout_s = rank == 0 ? 0.5 : 60;
    const World world = World::open(options, device);
    Executable executable = Executable::compile(small_graph(1e-5, 3), world);
    prepare_with_zeros(executable, world, {{"T", 2}});
    std::string error;
    try {
      if (rank != 2) executable.run();
      executable.synchronize();
    } catch (const Error& thrown) {
      error = thrown.what();
    }
    ends[rank]->barrier();
    return error;
  };
  std::array<std::string, 3> errors;
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] { errors[rank] = run(rank); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(errors[0], HasSubstr("waited for rank 2"));
  EXPECT_EQ(errors[1], "small: another rank gave up waiting for a peer; its error names the peer");
  EXPECT_EQ(errors[2], "");
}

}  // namespace
}  // namespace braid
