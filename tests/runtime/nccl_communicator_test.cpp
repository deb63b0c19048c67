// NCCL end to end without a GPU: programs on the stand-in driver whose collectives the stand-in for
// NCCL does, what it is given, and what becomes of its failures.
#include "runtime/nccl/nccl_communicator.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <thread>

#include "braid/error.h"
#include "braid/executable.h"
#include "braid/reference.h"
#include "run/far_graphs.h"
#include "run/run_graph.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/error_of.h"
#include "runtime/nccl/nccl_api.h"
#include "runtime/nccl_testing.h"
#include "runtime/prepare_with_zeros.h"

namespace braid {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using testing::every_collective;
using testing::kT;
using testing::reducing;

class NcclPrograms : public NcclStandIn,
                     public ::testing::WithParamInterface<std::tuple<int, DType>> {};

TEST_P(NcclPrograms, EveryCollectiveEqualsTheReference) {
  const auto [world, dtype] = GetParam();
  EXPECT_TRUE(testing::matches_reference(every_collective(world, dtype), {{"T", 3}}, 5));
  EXPECT_EQ(nccl().max_ctas, 32);
  EXPECT_EQ(nccl().blocking, 0);
  // All ranks enqueue the same, in the same order.
  std::map<std::string, std::vector<std::string>> of_rank;
  for (const std::string& op : nccl().ops) {
    const std::size_t at = op.find(" rank ");
    of_rank[op.substr(at)].push_back(op.substr(0, at));
  }
  ASSERT_EQ(of_rank.size(), static_cast<std::size_t>(world));
  EXPECT_GE(of_rank.begin()->second.size(), 20U);
  for (const auto& [rank, ops] : of_rank) {
    const auto collective = [](const std::string& op) { return op.find("ncclAll") == 0; };
    EXPECT_EQ(
        std::count_if(ops.begin(), ops.end(), collective),
        std::count_if(of_rank.begin()->second.begin(), of_rank.begin()->second.end(), collective));
  }
}

INSTANTIATE_TEST_SUITE_P(Each, NcclPrograms,
                         ::testing::Combine(::testing::Values(2, 3, 4),
                                            ::testing::Values(DType::kF32, DType::kBF16,
                                                              DType::kF16, DType::kI32)),
                         [](const auto& info) {
                           return "world_" + std::to_string(std::get<0>(info.param)) + "_" +
                                  std::string(dtype_name(std::get<1>(info.param)));
                         });

class Nccl : public NcclStandIn {
 protected:
  /// y = -sum over "far" of -x
  static Graph small_graph(std::int64_t world) {
    testing::FarBuilder b(world);
    const ValueId x = b.op("neg", {b.in(DType::kF32, {kT, 64}, "x")});
    const ValueId y = b.op("neg", {b.waited("all_reduce", {x}, reducing("sum"))});
    return b.take({y});
  }
  static World open(int world, double timeout_s = 30) {
    WorldOptions options;
    options.device = DeviceKind::kCuda;
    options.world = world;
    options.timeout_s = timeout_s;
    return World::open(options);
  }
  /// Runs it once and compares.
  static void check(Executable& executable, const Graph& graph) {
    const Bindings bindings{{"T", 3}};
    const RankTensors inputs = random_inputs(graph, bindings, 3);
    const RankTensors got = testing::run_once(executable, graph, bindings, inputs);
    EXPECT_TRUE(testing::same_as_reference(graph, got, evaluate(graph, inputs, bindings)));
  }
};

TEST_F(Nccl, GroupsWithAndWithoutSymmetricMemory) {
  EXPECT_TRUE(testing::matches_reference(testing::mesh_of_groups(), {{"T", 5}}, 3));
  EXPECT_GT(nccl().groups, 0);
}

TEST_F(Nccl, ManyRunsWithoutTheHostInBetween) {
  const Graph graph = testing::mesh_of_groups();
  World world = open(4);
  Executable executable = Executable::compile(graph, world);
  check(executable, graph);
  for (int run = 0; run < 20; ++run) executable.run();
  executable.synchronize();
  check(executable, graph);
}

TEST_F(Nccl, RanksThatShareAGpuDoWithoutIt) {
  EXPECT_TRUE(testing::matches_reference(small_graph(6), {{"T", 5}}, 3));
  EXPECT_EQ(nccl().calls, 0);
}

TEST_F(Nccl, ALostPeerIsATimeoutAndTheExecutableIsUsableAfterwards) {
  const Graph graph = small_graph(3);
  World world = open(3, 1);
  Executable executable = Executable::compile(graph, world);
  check(executable, graph);
  nccl().lose_op = 2;
  executable.run();
  const auto [code, text] = error_of([&] { executable.synchronize(); });
  EXPECT_EQ(code, ErrorCode::kTimeout);
  EXPECT_THAT(text, ::testing::MatchesRegex("group 'far', rank [012]: collective 2 of its "
                                            "communicator has waited for its peers for 1 s"));
  check(executable, graph);
}

TEST_F(Nccl, AnAllReduceIsOneCallOfEachRank) {
  const Graph graph = small_graph(2);
  World world = open(2);
  Executable executable = Executable::compile(graph, world);
  prepare_with_zeros(executable, world, {{"T", 3}});
  nccl().ops.clear();
  executable.run();
  executable.synchronize();
  EXPECT_THAT(nccl().ops, ElementsAre("ncclAllReduce 192 type 7 op 0 rank 0",
                                      "ncclAllReduce 192 type 7 op 0 rank 1"));
}

/// Communicators of one group, used without a program.
class Direct : public Nccl {
 protected:
  void connect(int members, std::uint64_t timeout_ns = 5'000'000'000) {
    device_ = create_cuda_device(members);
    for (int rank = 0; rank < members; ++rank) {
      const auto index = static_cast<std::size_t>(rank);
      ends_.push_back(make_nccl_communicator(
          *device_, {"far", rank, index, static_cast<std::size_t>(members), timeout_ns}));
      streams_.push_back(device_->create_stream(rank));
      send_.push_back(device_->allocate(rank, 4096));
      receive_.push_back(device_->allocate(rank, 4096));
      offers_.push_back(ends_.back()->offer());
      streams_.back()->fill(send_.back()->address(), 0, 4096);
    }
    GroupCall group(*ends_[0]);
    for (const auto& end : ends_) end->connect(offers_);
    group.end();
    for (const auto& end : ends_) end->settle();
  }
  CollectiveCall call(std::size_t rank) const {
    CollectiveCall call;
    call.send = send_[rank]->address();
    call.receive = receive_[rank]->address();
    call.count = 8;
    return call;
  }
  /// Enqueues the calls as one and waits; what the communicators say then.
  std::vector<std::string> run(const std::vector<CollectiveCall>& calls) {
    GroupCall group(*ends_[0]);
    for (std::size_t r = 0; r < calls.size(); ++r) ends_[r]->enqueue(calls[r], *streams_[r]);
    group.end();
    std::vector<std::string> errors;
    for (std::size_t r = 0; r < calls.size(); ++r) {
      streams_[r]->synchronize();
      errors.push_back(ends_[r]->async_error());
    }
    return errors;
  }

  std::unique_ptr<Device> device_;
  std::vector<std::unique_ptr<Memory>> send_, receive_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<std::string> offers_;
  std::vector<std::unique_ptr<Communicator>> ends_;
};

TEST_F(Direct, RanksThatDoNotDoTheSameAllFail) {
  for (int what = 0; what < 4; ++what) {
    SCOPED_TRACE(what);
    connect(2);
    std::vector<CollectiveCall> calls{call(0), call(1)};
    if (what == 1) calls[1].count = 4;
    if (what == 2) calls[1].dtype = DType::kI32;
    if (what == 3) calls[1].reduce = ReduceOp::kMax;
    const ::testing::Matcher<std::string> error =
        what == 0 ? ::testing::Matcher<std::string>("") : HasSubstr("do not make the same call");
    EXPECT_THAT(run(calls), Each(error));
    ends_.clear();
    streams_.clear();
    send_.clear();
    receive_.clear();
    offers_.clear();
  }
}

TEST_F(Direct, WhatNcclCannotReduceIsOneLine) {
  nccl().version = 22300;
  connect(2);
  CollectiveCall bad = call(0);
  bad.dtype = DType::kBool;
  const auto refusal = [&] {
    const auto [code, text] = error_of([&] { (void)run({bad, bad}); });
    EXPECT_EQ(code, ErrorCode::kInvalidArgument);
    return text;
  };
  EXPECT_THAT(refusal(), AllOf(HasSubstr("group 'far', rank 0: NCCL "),
                               HasSubstr(" cannot reduce bool; expected f32, f16")));
  // What is only moved may be anything.
  std::vector<CollectiveCall> calls{call(0), call(1)};
  for (CollectiveCall& each : calls) {
    each.dtype = DType::kF8E4M3;
    each.op = CollectiveCall::Op::kAllGather;
  }
  EXPECT_THAT(run(calls), Each(std::string()));
}

TEST_F(Direct, AMemberThatDoesNotComeIsGivenUp) {
  connect(2);
  const auto alone = make_nccl_communicator(*device_, {"far", 0, 0, 2, 200'000'000});
  const std::vector<std::string> offers{alone->offer(), ""};
  alone->connect(offers);
  const auto [code, text] = error_of([&] { alone->settle(); });
  EXPECT_EQ(code, ErrorCode::kTimeout);
  EXPECT_EQ(text, "group 'far', rank 0: the other members did not come within 0.2 s");
  EXPECT_THAT(error_of([&] { alone->enqueue(call(0), *streams_[0]); }).second,
              HasSubstr("was aborted"));
}

TEST_F(Direct, RanksOnOneGpuAreRefusedByNccl) {
  EXPECT_THAT(error_of([&] { connect(5); }).second,  // of four GPUs
              AllOf(HasSubstr("invalid usage"), HasSubstr("Duplicate GPU detected")));
}

TEST_F(Nccl, CommunicatorsOfTheCallerAreUsedAndKept) {
  const nccl::Api& api = nccl::Api::get();
  const auto device = create_cuda_device(2);
  std::vector<void*> comms(2);
  nccl::UniqueId id{};
  ASSERT_EQ(api.ncclGetUniqueId(&id), 0);
  nccl::Config config;
  ASSERT_EQ(api.ncclGroupStart(), 0);
  for (int rank = 0; rank < 2; ++rank) {
    device->with_current(rank, [&] {
      auto* comm = reinterpret_cast<nccl::Comm*>(&comms[static_cast<std::size_t>(rank)]);
      ASSERT_EQ(api.ncclCommInitRankConfig(comm, 2, id, rank, &config), 0);
    });
  }
  ASSERT_EQ(api.ncclGroupEnd(), 0);
  const Graph graph = small_graph(2);
  const auto run_with = [&](std::vector<void*> given) {
    WorldOptions options;
    options.device = DeviceKind::kCuda;
    options.world = 2;
    options.nccl_communicators["far"] = std::move(given);
    World world = World::open(options);
    Executable executable = Executable::compile(graph, world);
    check(executable, graph);
  };
  run_with(comms);
  EXPECT_EQ(nccl().live_comms, 2);
  run_with(comms);
  EXPECT_THAT(error_of([&] {
                run_with({comms[1], comms[0]});
              }).second,
              HasSubstr("group 'far', rank 0: the caller's ncclComm_t is of rank 1 of 2; expected "
                        "rank 0 of 2"));
  EXPECT_THAT(error_of([&] { run_with({comms[0]}); }).second,
              HasSubstr("nccl_communicators of group 'far': found 1; expected one for each of 2"));
  EXPECT_THAT(error_of([&] {
                run_with({comms[0], nullptr});
              }).second,
              HasSubstr("some of them null"));
  for (void* comm : comms) EXPECT_EQ(api.ncclCommDestroy(static_cast<nccl::Comm>(comm)), 0);
}

TEST_F(Nccl, EveryCallThatFailsOnceIsOneErrorAndLeaksNothing) {
  testing::FarBuilder b(2);
  const ValueId x = b.op("neg", {b.in(DType::kF32, {kT * 2, 8})});
  const Graph graph =
      b.take({b.waited("all_reduce", {x}, reducing("sum")),
              b.waited("reduce_scatter_tensor", {x}, reducing("avg")),
              b.waited("all_gather_into_tensor", {x}, testing::kFar),
              b.waited("all_to_all_single", {x}, testing::kFar),
              b.waited("broadcast", {x}, testing::with(testing::kFar, "src", std::int64_t{1}))});
  const auto run = [&] {
    World world = open(2, 2);
    Executable executable = Executable::compile(graph, world);
    check(executable, graph);
  };
  run();
  nccl().calls = 0;
  run();
  const int calls = nccl().calls;  // some poll: no two runs make as many
  ASSERT_GT(calls, 30);
  int failed = 0;
  for (int n = 1; n <= calls; ++n) {
    SCOPED_TRACE(n);
    nccl().calls = 0;
    nccl().fail_call = n;
    try {
      run();
    } catch (const Error& error) {
      ++failed;
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
      EXPECT_THAT(error.what(), AllOf(HasSubstr("group 'far', rank"), HasSubstr("nccl")));
    }
    nccl().fail_call = 0;
    EXPECT_EQ(nccl().live_comms, 0);
    EXPECT_EQ(cuda().live_handles, 0U);
    EXPECT_EQ(cuda().current_context, nullptr);
  }
  EXPECT_GT(failed, 20);
}

TEST_F(Nccl, IsMissingOrTooOld) {
  ::setenv("BRAID_LIBNCCL", "/nonexistent/libnccl.so.2", 1);
  EXPECT_THAT(error_of([] { (void)nccl::Api::load(); }).second,
              AllOf(HasSubstr("NCCL: not found; install libnccl2 or `pip install"),
                    HasSubstr("/nonexistent/libnccl.so.2")));
  ::setenv("BRAID_LIBNCCL", "libm.so.6", 1);
  EXPECT_THAT(error_of([] { (void)nccl::Api::load(); }).second,
              AllOf(HasSubstr("lacks ncclGetVersion, "), HasSubstr("ncclRecv; install")));
  ::setenv("BRAID_LIBNCCL", BRAID_FAKE_LIBNCCL, 1);
  for (const int version : {21400, 30000}) {
    nccl().version = version;
    const auto [code, text] = error_of([] { (void)nccl::Api::load(); });
    EXPECT_EQ(code, ErrorCode::kEnvironment);
    EXPECT_THAT(text, HasSubstr("expected 2.18.0 or newer, of version 2; install"));
  }
}

}  // namespace
}  // namespace braid
