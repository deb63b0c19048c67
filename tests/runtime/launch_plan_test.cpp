#include "runtime/exec/launch_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "braid/error.h"
#include "runtime/exec/run_record.h"
#include "runtime/exec/symmetric_heap.h"

namespace braid {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Call {
  int rank = 0;
  Function* function = nullptr;
  LaunchConfig config;
  std::vector<std::uintptr_t> arguments;
  std::vector<std::uint64_t> words;  ///< the first word of each argument; of peers all
  std::uint64_t dst = 0, src = 0;
  std::size_t bytes = 0;
  const Event* recorded = nullptr;
  const Event* awaited = nullptr;
};

class FakeEvent : public Event {};

class FakeFunction : public Function {
 public:
  void set_max_dynamic_shared(std::uint32_t) override {}
};

// Writes down what is enqueued; `widths` are the words of each argument.
class FakeStream : public Stream {
 public:
  FakeStream(int rank, std::vector<Call>& calls, std::vector<int> widths)
      : rank_(rank), calls_(calls), widths_(std::move(widths)) {}
  void launch(Function& function, const LaunchConfig& config,
              std::span<const void* const> args) override {
    Call call{rank_, &function, config, {}, {}};
    for (std::size_t i = 0; i < args.size(); ++i) {
      call.arguments.push_back(reinterpret_cast<std::uintptr_t>(args[i]));
      for (int w = 0; w < widths_.at(i); ++w) {
        std::uint64_t word;
        std::memcpy(&word, static_cast<const char*>(args[i]) + 8 * w, 8);
        call.words.push_back(word);
      }
    }
    calls_.push_back(call);
  }
  void copy(std::uint64_t dst, std::uint64_t src, std::size_t bytes) override {
    calls_.push_back({.rank = rank_, .dst = dst, .src = src, .bytes = bytes});
  }
  void copy_from_host(std::uint64_t, const void*, std::size_t) override {}
  void copy_to_host(void*, std::uint64_t, std::size_t) override {}
  void fill(std::uint64_t, std::uint8_t, std::size_t) override {}
  void record(Event& event) override { calls_.push_back({.rank = rank_, .recorded = &event}); }
  void wait(Event& event) override { calls_.push_back({.rank = rank_, .awaited = &event}); }
  void write_value(std::uint64_t, std::uint32_t) override {}
  void wait_value(std::uint64_t, std::uint32_t) override {}
  void synchronize() override {}

 private:
  int rank_;
  std::vector<Call>& calls_;
  std::vector<int> widths_;
};

KernelParam param(KernelParam::Kind kind) {
  KernelParam result;
  result.kind = kind;
  result.expr = Expr(Dim::symbol("T")) * Expr(3);
  result.group = "tp";
  return result;
}

// Two ranks, one kernel with every kind of parameter, launched once, then a copy.
class LaunchPlanTest : public ::testing::Test {
 protected:
  LaunchPlanTest() {
    const Dim t = Dim::symbol("T");
    program_.world = 2;
    program_.symbols["T"] = {0, 8, 1};
    program_.groups["tp"] = {2, true, {}};
    program_.arenas = {{ArenaKind::kIo, "", 4096}, {ArenaKind::kSymmetric, "tp", 8192}};
    const TensorType type{DType::kBF16, {t, 16}};
    const TensorType words{DType::kI32, {64}};
    program_.buffers = {{BufferKind::kTensor, "x", type, 1, 4096, 256, 0, 1},
                        {BufferKind::kTensor, "y", type, 0, 512, 256, 0, 1},
                        {BufferKind::kTensor, "z", type, 0, 1024, 256, 0, 1},
                        {BufferKind::kFlags, "f", words, 1, 256, 256, 0, 1},
                        {BufferKind::kScratch, "s", words, 1, 512, 256, 0, 1}};
    ProgramKernel kernel;
    kernel.needs.template_name = "collective";
    kernel.needs.comm_group = "tp";
    kernel.needs.grid = ceil_div(Expr(t), Expr(4));
    kernel.needs.threads = 128;
    kernel.needs.shared_bytes = 64;
    using Kind = KernelParam::Kind;
    kernel.needs.params = {param(Kind::kPeers),   param(Kind::kOffset),  param(Kind::kInput),
                           param(Kind::kOutput),  param(Kind::kScalar),  param(Kind::kRank),
                           param(Kind::kFlags),   param(Kind::kScratch), param(Kind::kStep),
                           param(Kind::kClosing), param(Kind::kTimeout), param(Kind::kRecord),
                           param(Kind::kCounter)};
    program_.kernels = {kernel};
    Step launch;
    launch.name = "reduce";
    launch.kernel = 0;
    launch.inputs = {0};
    launch.outputs = {1};
    launch.flags = 3;
    launch.scratch = 4;
    launch.closing_barrier = true;
    Step copy;
    copy.kind = Step::Kind::kCopy;
    copy.name = "copy";
    copy.source = 1;
    copy.destination = 2;
    program_.steps = {launch, copy};
    for (int rank = 0; rank < 2; ++rank) {
      const std::uint64_t base = 0x10000 * static_cast<std::uint64_t>(rank + 1);
      streams_.push_back(std::make_unique<FakeStream>(
          rank, calls_, std::vector<int>{2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}));
      lanes_.push_back(streams_.back().get());
      RankPlaces places;
      places.rank = rank;
      places.functions = {&functions_[rank]};
      places.buffer_addresses = {base + 0x9000, base + 512, base + 1024, base + 0x8100,
                                 base + 0x8200};
      places.peer_arenas = {{}, {0x18000, 0x28000}};
      places.record_address = base + 0xa000;
      places_.push_back(std::move(places));
    }
  }

  Program program_;
  std::vector<Call> calls_;
  std::vector<std::unique_ptr<FakeStream>> streams_;
  FakeFunction functions_[2];
  std::vector<Stream*> lanes_;
  std::vector<RankPlaces> places_;
};

TEST_F(LaunchPlanTest, StepByStepRankByRank) {
  const LaunchPlan plan(program_, {{"T", 7}}, places_, 1000);
  plan.run({lanes_, {}});
  plan.run({lanes_, {}});
  ASSERT_EQ(calls_.size(), 8);
  for (int i = 0; i < 8; ++i) {
    const Call& call = calls_[static_cast<std::size_t>(i)];
    EXPECT_EQ(call.rank, i % 2);
    EXPECT_EQ(call.function == nullptr, i % 4 >= 2);
  }
}

TEST_F(LaunchPlanTest, ResolvesEveryKindOfParameter) {
  const LaunchPlan plan(program_, {{"T", 7}}, places_, 1000);
  plan.run({lanes_, {}});
  const Call& launch = calls_.at(1);  // rank 1
  EXPECT_EQ(launch.function, &functions_[1]);
  EXPECT_EQ(launch.config.grid, (Dim3{2}));
  EXPECT_EQ(launch.config.block, (Dim3{128}));
  EXPECT_EQ(launch.config.shared_bytes, 64);
  EXPECT_EQ(launch.config.attributes, LaunchAttributes{});
  EXPECT_THAT(launch.words, ElementsAre(0x18000, 0x28000, 4096, 0x29000, 0x20000 + 512, 21, 1, 256,
                                        512, 0, 1, 1000, 0x2a000, 0x28100));
  const Call& copy = calls_.at(3);
  EXPECT_EQ(copy.dst, 0x20000 + 1024);
  EXPECT_EQ(copy.src, 0x20000 + 512);
  EXPECT_EQ(copy.bytes, 7 * 16 * 2);
}

TEST_F(LaunchPlanTest, AttributesAreTheKernels) {
  program_.kernels[0].needs.attributes = {.cluster = {2}, .programmatic = true};
  LaunchPlan(program_, {{"T", 7}}, places_, 1000).run({lanes_, {}});
  EXPECT_EQ(calls_.at(0).config.attributes.cluster, (Dim3{2}));
  EXPECT_TRUE(calls_.at(0).config.attributes.programmatic);
}

TEST_F(LaunchPlanTest, BytesByValueLieWhereTheirAlignmentWants) {
  std::vector<KernelParam>& params = program_.kernels[0].needs.params;
  params = {param(KernelParam::Kind::kPeers), param(KernelParam::Kind::kBytes),
            param(KernelParam::Kind::kBytes), param(KernelParam::Kind::kOutput)};
  params[1].size = 3;
  params[2].index = 1;
  params[2].size = 4096;
  params[2].alignment = 128;
  const auto plan = [&] { return LaunchPlan(program_, {{"T", 7}}, places_, 1000); };
  EXPECT_THROW(plan(), Error);  // nobody makes them
  for (RankPlaces& places : places_) {
    places.write_bytes = [rank = places.rank](const Step& step, const KernelParam& param,
                                              std::span<std::uint8_t> bytes) {
      EXPECT_EQ(step.name, "reduce");
      EXPECT_EQ(bytes.size(), static_cast<std::size_t>(param.size));
      std::fill(bytes.begin(), bytes.end(), static_cast<std::uint8_t>(1 + 2 * rank + param.index));
    };
  }
  plan().run({lanes_, {}});
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const Call& call = calls_.at(rank);
    ASSERT_EQ(call.arguments.size(), 4);
    EXPECT_EQ(call.arguments[2] % 128, 0);
    const auto first = static_cast<std::uint8_t>(1 + 2 * rank);
    const std::uint64_t base = 0x10000 * (rank + 1);
    EXPECT_THAT(call.words, ElementsAre(0x18000, 0x28000, 0x10101U * first,
                                        0x101010101010101U * (first + 1U), base + 512));
  }
  params[2].size = 4224;
  try {
    plan();
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("reduce: found 4224 bytes by value, aligned to 128; expected"));
  }
}

TEST_F(LaunchPlanTest, StreamsForkFromTheFirstAndJoinIt) {
  program_.steps[1].stream = 1;
  EXPECT_EQ(stream_count(program_), 2);
  const LaunchPlan plan(program_, {{"T", 7}}, places_, 1000);
  // The second stream of a rank counts as rank 10 or 11 here.
  std::vector<std::unique_ptr<FakeStream>> more;
  std::vector<Stream*> lanes;
  std::vector<FakeEvent> events(4);
  std::vector<Event*> event_of_lane;
  for (int rank = 0; rank < 2; ++rank) {
    more.push_back(std::make_unique<FakeStream>(10 + rank, calls_, std::vector<int>{}));
    lanes.push_back(lanes_[static_cast<std::size_t>(rank)]);
    lanes.push_back(more.back().get());
  }
  for (FakeEvent& event : events) event_of_lane.push_back(&event);
  plan.run({lanes, event_of_lane});
  ASSERT_EQ(calls_.size(), 12);
  std::vector<int> streams;
  for (const Call& call : calls_) streams.push_back(call.rank);
  EXPECT_THAT(streams, ElementsAre(0, 10, 1, 11, 0, 1, 10, 11, 10, 0, 11, 1));
  EXPECT_EQ(calls_[0].recorded, &events[0]);
  EXPECT_EQ(calls_[1].awaited, &events[0]);
  EXPECT_EQ(calls_[3].awaited, &events[2]);
  EXPECT_EQ(calls_[8].recorded, &events[1]);
  EXPECT_EQ(calls_[9].awaited, &events[1]);  // rank 0's second
  EXPECT_EQ(calls_[11].awaited, &events[3]);
}

TEST_F(LaunchPlanTest, CopiesMayNameTheRankOfAnOperand) {
  program_.steps[1].source = 0;
  program_.steps[1].source_peer = {"tp", 1};
  program_.steps[1].destination = 1;
  const auto copies = [&] {
    calls_.clear();
    LaunchPlan(program_, {{"T", 7}}, places_, 1000).run({lanes_, {}});
    return std::vector{calls_.at(2), calls_.at(3)};
  };
  EXPECT_EQ(copies()[0].src, 0x28000 + 4096);
  EXPECT_EQ(copies()[0].dst, 0x10000 + 512);
  EXPECT_EQ(copies()[1].src, 0x18000 + 4096);  // it wraps
  program_.steps[1].source_peer->shift = -2;
  EXPECT_EQ(copies()[1].src, 0x28000 + 4096);
  program_.steps[1].destination_peer = {"tp", 1};  // of a buffer that only this rank has
  EXPECT_THROW((void)copies(), Error);
}

TEST_F(LaunchPlanTest, EmptyWorkIsLeftOut) {
  const LaunchPlan plan(program_, {{"T", 0}}, places_, 1000);
  plan.run({lanes_, {}});
  EXPECT_TRUE(calls_.empty());
}

TEST_F(LaunchPlanTest, MeshGroups) {
  program_.world = 4;
  program_.groups["tp"].ranks = {{0, 2}, {1, 3}};
  EXPECT_THAT(group_members(program_, "tp", 3), ElementsAre(1, 3));
  EXPECT_THAT(group_members(program_, "tp", 0), ElementsAre(0, 2));
  EXPECT_THROW((void)group_members(program_, "tp", 4), Error);
  EXPECT_THROW((void)group_members(program_, "dp", 0), Error);
}

TEST_F(LaunchPlanTest, ContradictionsAreInternalErrors) {
  const auto plan = [&] { LaunchPlan(program_, {{"T", 7}}, places_, 1000); };
  Program good = program_;
  program_.steps[0].inputs = {};
  EXPECT_THROW(plan(), Error);
  program_ = good;
  program_.steps[1].destination = 7;
  EXPECT_THROW(plan(), Error);
  program_ = good;
  program_.steps[1].stream = -1;
  EXPECT_THROW(plan(), Error);
  program_ = good;
  program_.buffers[2].type.shape = {1};
  EXPECT_THROW(plan(), Error);
  program_ = good;
  program_.arenas[1].group = "dp";
  EXPECT_THROW(plan(), Error);
}

using protocol::Record;

TEST_F(LaunchPlanTest, TimeoutsAreNamed) {
  std::vector<RankRecord> records{{.rank = 0}, {.rank = 1}};
  EXPECT_FALSE(run_error(program_, records, 1500000000));
  records[1].record = {.kind = Record::kLostWait,
                       .step = 0,
                       .block = 3,
                       .slot = 5,
                       .peer = 0,
                       .expected = 9,
                       .seen = 8};
  const auto error = run_error(program_, records, 1500000000);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kTimeout);
  EXPECT_STREQ(error->what(),
               "a wait for a peer took longer than 1.5 s: rank 1, step 0 'reduce' (collective "
               "kernel), block 3, slot 5: waited for rank 0 to reach epoch 9, last saw 8");
  records[0].record = {.kind = Record::kLostWait, .step = 77, .peer = 99, .expected = 1};
  EXPECT_THAT(run_error(program_, records, 1)->what(), HasSubstr("rank 0, step 77, block 0"));
  program_.kernels[0].needs.comm_group.clear();
  EXPECT_THAT(run_error(program_, records, 1)->what(),
              HasSubstr("block 3: waited for the other blocks of its grid"));
}

TEST_F(LaunchPlanTest, TheEarliestBadIndexIsNamed) {
  program_.steps[0].indexed = {{"e", 2}, {"f", 4}};
  std::vector<RankRecord> records{{.rank = 0}, {.rank = 1}};
  records[0].record = {.kind = Record::kBadIndex, .step = 1, .node = 0, .index = 70, .extent = 7};
  const auto text = [&] { return std::string(run_error(program_, records, 1)->what()); };
  EXPECT_EQ(run_error(program_, records, 1)->code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(text(), "copy: rank 0: index 70 is out of range; expected an integer from 0 to 6");
  // What a rank made of a bad index may be another rank's bad index, in a later step.
  records[1].record = {.kind = Record::kBadIndex, .step = 0, .node = 4, .index = -1, .extent = 7};
  EXPECT_EQ(text(), "f: rank 1: index -1 is out of range; expected an integer from 0 to 6");
  records[1].record.step = 9;
  records[0].record = {};
  EXPECT_EQ(text(), "step 9: rank 1: index -1 is out of range; expected an integer from 0 to 6");
  // What was computed after a wait was lost is worth nothing.
  records[0].record = {.kind = Record::kLostWait, .step = 0, .peer = 1, .expected = 1};
  EXPECT_THAT(text(), HasSubstr("waited for rank 1"));
  EXPECT_THAT(text(), ::testing::Not(HasSubstr("index")));
}

}  // namespace
}  // namespace braid
