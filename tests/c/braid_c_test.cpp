// The C interface: what it computes, and that whatever a caller gets wrong is an error that says
// so.
#include <dlpack/dlpack.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "braid/braid.h"

namespace {

using ::testing::HasSubstr;

constexpr int kRanks = 2;
constexpr std::int64_t kWidth = 8;
constexpr const char* kGraph = R"({
  "braid": 1, "name": "sum", "groups": {"tp": {"size": 2}},
  "symbols": {"T": {"min": 1, "max": 4}},
  "inputs": [{"name": "x", "dtype": "f32", "shape": ["T", 8], "per_rank": true}],
  "nodes": [{"name": "c", "op": "all_reduce", "inputs": ["x"],
             "attrs": {"reduce_op": "sum", "group": "tp"}},
            {"name": "y", "op": "wait_tensor", "inputs": ["c"]}],
  "outputs": ["y"]})";

using Values = std::array<float, 4 * kWidth>;

class C : public ::testing::Test {
 protected:
  C() {
    good(braid_world_open(&options_, &world_));
    good(braid_compile(world_, kGraph, &executable_));
  }
  ~C() override {
    if (executable_ != nullptr) braid_executable_destroy(executable_);
    if (world_ != nullptr) braid_world_destroy(world_);
  }
  static void good(braid_status status) {
    EXPECT_EQ(status, BRAID_OK);
    EXPECT_STREQ(braid_last_error(), "");
  }
  /// Why the caller's mistake was refused.
  static std::string bad(braid_status status) {
    EXPECT_EQ(status, BRAID_INVALID_ARGUMENT);
    const std::string why = braid_last_error();
    EXPECT_EQ(why.find('\n'), std::string::npos);
    return why;
  }
  braid_tensor tensor(void* data) const { return {data, "f32", 2, shape_.data(), nullptr}; }
  braid_plan prepare(std::int64_t rows) {
    const char* const symbol = "T";
    braid_plan plan = nullptr;
    good(braid_prepare(executable_, &symbol, &rows, 1, &plan));
    return plan;
  }
  /// The same, and zeros in x of all ranks.
  braid_plan prepare_with_zeros(std::int64_t rows) {
    const braid_plan plan = prepare(rows);
    Values zeros{};
    const std::array<std::int64_t, 2> shape{rows, kWidth};
    const braid_tensor x{zeros.data(), "f32", 2, shape.data(), nullptr};
    for (int rank = 0; rank < kRanks; ++rank) good(braid_set_input(executable_, rank, "x", &x));
    return plan;
  }

  braid_world_options options_{
      .bytes = sizeof(braid_world_options), .device = "cpu", .world = kRanks};
  std::array<std::int64_t, 2> shape_{4, kWidth};
  braid_world world_ = nullptr;
  braid_executable executable_ = nullptr;
};

TEST_F(C, PlansSideBySideOnTheCallersStreams) {
  alignas(16) std::array<Values, kRanks> x{};
  alignas(16) std::array<Values, kRanks> y{};
  std::array<braid_stream, kRanks> streams{};
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    for (std::size_t i = 0; i < x[r].size(); ++i) x[r][i] = static_cast<float>(i * (r + 1));
    const braid_tensor in = tensor(x[r].data());
    good(braid_bind(executable_, rank, "x", &in));
    DLManagedTensor managed{};
    DLTensor& out = managed.dl_tensor;
    out.data = y[r].data() - 4;
    out.byte_offset = 16;
    out.device = {kDLCPU, 0};
    out.ndim = 2;
    out.dtype = {kDLFloat, 32, 1};
    out.shape = shape_.data();
    good(braid_bind_dlpack(executable_, rank, "y", &managed));
    good(braid_stream_create(world_, rank, &streams[r]));
  }
  const braid_plan all = prepare(4);
  const braid_plan one = prepare(1);
  for (const auto& [plan, rows] : {std::pair{one, 1}, std::pair{all, 4}}) {
    y = {};
    good(braid_run(executable_, plan, streams.data(), kRanks));
    for (braid_stream stream : streams) good(braid_stream_synchronize(stream));
    for (const Values& result : y) {
      for (std::size_t i = 0; i < result.size(); ++i) {
        const bool written = i < static_cast<std::size_t>(rows * kWidth);
        EXPECT_EQ(result[i], written ? static_cast<float>(3 * i) : 0) << i;
      }
    }
  }
  std::swap(streams[0], streams[1]);
  EXPECT_EQ(bad(braid_run(executable_, all, streams.data(), kRanks)),
            "stream: number 0 is of rank 1; expected rank 0");
  EXPECT_THAT(bad(braid_run(executable_, all, streams.data(), 1)), HasSubstr("stream"));
  braid_world other = nullptr;
  good(braid_world_open(&options_, &other));
  braid_stream foreign = nullptr;
  good(braid_stream_create(other, 0, &foreign));
  EXPECT_EQ(bad(braid_run(executable_, all, &foreign, 1)), "stream: number 0 is of another world");
  for (braid_stream stream : {streams[0], streams[1], foreign}) good(braid_stream_destroy(stream));
  EXPECT_THAT(bad(braid_stream_synchronize(foreign)),
              HasSubstr("stream: the handle is of nothing"));
  for (braid_plan plan : {one, all}) good(braid_plan_destroy(plan));
  good(braid_world_destroy(other));
}

TEST_F(C, GraphsReplayRunsOfChangingBatches) {
  alignas(16) std::array<Values, kRanks> x{};
  alignas(16) std::array<Values, kRanks> y{};
  std::array<braid_stream, kRanks> streams{};
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    x[r].fill(static_cast<float>(rank + 1));
    const braid_tensor in = tensor(x[r].data());
    const braid_tensor out = tensor(y[r].data());
    good(braid_bind(executable_, rank, "x", &in));
    good(braid_bind(executable_, rank, "y", &out));
    good(braid_stream_create(world_, rank, &streams[r]));
  }
  std::map<std::int64_t, std::array<braid_graph, kRanks>> graphs;
  for (const std::int64_t rows : {1, 4}) {
    const braid_plan plan = prepare(rows);
    for (braid_stream stream : streams) good(braid_begin_capture(stream));
    good(braid_run(executable_, plan, streams.data(), kRanks));
    for (std::size_t r = 0; r < kRanks; ++r) good(braid_end_capture(streams[r], &graphs[rows][r]));
    good(braid_plan_destroy(plan));
  }
  for (const std::int64_t rows : {4, 1, 4}) {
    y = {};
    for (std::size_t r = 0; r < kRanks; ++r) good(braid_replay(graphs[rows][r], streams[r]));
    for (braid_stream stream : streams) good(braid_stream_synchronize(stream));
    good(braid_synchronize(executable_));
    EXPECT_EQ(y[1][0], 3);
    EXPECT_EQ(y[1][3 * kWidth], rows == 4 ? 3 : 0);
  }
  EXPECT_EQ(bad(braid_replay(graphs[1][0], streams[1])),
            "graph: is of rank 0; expected rank 1, the stream's");
  EXPECT_THAT(bad(braid_replay(nullptr, streams[1])), HasSubstr("graph: the handle is null"));
  for (const auto& [rows, both] : graphs) {
    for (braid_graph graph : both) good(braid_graph_destroy(graph));
  }
  EXPECT_THAT(bad(braid_replay(graphs[1][0], streams[0])), HasSubstr("of nothing that is there"));
  for (braid_stream stream : streams) good(braid_stream_destroy(stream));
}

TEST_F(C, EventsOrderStreamsAndCaptures) {
  std::array<braid_stream, kRanks> streams{};
  std::array<braid_event, kRanks> events{};
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    good(braid_stream_create(world_, rank, &streams[r]));
    good(braid_event_create(world_, rank, &events[r]));
  }
  braid_graph graph = nullptr;
  EXPECT_THAT(bad(braid_end_capture(streams[0], &graph)), HasSubstr("is not being captured"));
  EXPECT_EQ(graph, nullptr);
  EXPECT_THAT(bad(braid_end_capture(streams[0], nullptr)), HasSubstr("graph: is null"));
  good(braid_begin_capture(streams[0]));
  EXPECT_THAT(bad(braid_begin_capture(streams[0])), HasSubstr("captured already"));
  EXPECT_THAT(bad(braid_stream_synchronize(streams[0])), HasSubstr("outside of captures"));
  good(braid_event_record(events[0], streams[0]));
  good(braid_stream_wait(streams[1], events[0]));
  good(braid_run(executable_, prepare_with_zeros(2), streams.data(), kRanks));
  good(braid_event_record(events[1], streams[1]));
  good(braid_stream_wait(streams[0], events[1]));
  good(braid_end_capture(streams[0], &graph));
  good(braid_replay(graph, streams[0]));
  good(braid_stream_synchronize(streams[0]));

  EXPECT_EQ(bad(braid_event_record(events[0], streams[1])),
            "event: is of rank 0; expected rank 1, the stream's");
  EXPECT_THAT(bad(braid_stream_wait(streams[0], nullptr)), HasSubstr("event: the handle is null"));
  braid_world other = nullptr;
  good(braid_world_open(&options_, &other));
  braid_event foreign = nullptr;
  good(braid_event_create(other, 0, &foreign));
  EXPECT_EQ(bad(braid_stream_wait(streams[0], foreign)),
            "event: is of another world than the stream");
  EXPECT_EQ(bad(braid_event_record(foreign, streams[0])),
            "event: is of another world than the stream");
  EXPECT_THAT(bad(braid_event_create(world_, 2, &foreign)), HasSubstr("rank"));
  good(braid_world_destroy(other));
  good(braid_graph_destroy(graph));
  for (braid_event event : events) good(braid_event_destroy(event));
  EXPECT_THAT(bad(braid_event_record(events[0], streams[0])), HasSubstr("of nothing"));
  for (braid_stream stream : streams) good(braid_stream_destroy(stream));
}

TEST_F(C, ARunNeedsAValueOfEachInput) {
  alignas(16) Values values{};
  const braid_tensor x = tensor(values.data());
  const braid_plan plan = prepare(4);
  good(braid_set_input(executable_, 0, "x", &x));
  const char* const missing =
      "x: has no value on rank 1; expected set_input(), or bind() before prepare()";
  EXPECT_EQ(bad(braid_run(executable_, plan, nullptr, 0)), missing);
  EXPECT_EQ(bad(braid_run_rank(executable_, plan, 1, nullptr)), missing);
  good(braid_set_input(executable_, 1, "x", &x));
  good(braid_run(executable_, plan, nullptr, 0));
  good(braid_synchronize(executable_));
}

TEST_F(C, AnotherExecutableOfAProgramIsItsOwn) {
  braid_executable another = nullptr;
  EXPECT_THAT(bad(braid_another(nullptr, &another)), HasSubstr("executable: the handle is null"));
  EXPECT_THAT(bad(braid_another(executable_, nullptr)), HasSubstr("another: is null"));
  good(braid_another(executable_, &another));
  const braid_plan plan = prepare(4);
  EXPECT_THAT(bad(braid_run(another, plan, nullptr, 0)), HasSubstr("not one of this executable's"));
  good(braid_executable_destroy(executable_));
  executable_ = another;
  alignas(16) Values values{};
  values.fill(2);
  const braid_tensor x = tensor(values.data());
  const braid_plan own = prepare(4);
  for (int rank = 0; rank < kRanks; ++rank) good(braid_set_input(another, rank, "x", &x));
  good(braid_run(another, own, nullptr, 0));
  good(braid_get_output(another, 1, "y", values.data(), sizeof values));
  EXPECT_EQ(values[9], 4);
}

TEST_F(C, RanksAreRunByThreadsOfTheirOwn) {
  alignas(16) Values values{};
  values.fill(2);
  const braid_tensor x = tensor(values.data());
  const braid_plan plan = prepare(4);
  std::array<braid_stream, kRanks> streams{};
  for (int rank = 0; rank < kRanks; ++rank) {
    good(braid_set_input(executable_, rank, "x", &x));
    good(braid_stream_create(world_, rank, &streams[static_cast<std::size_t>(rank)]));
  }
  EXPECT_EQ(bad(braid_run_rank(executable_, plan, 0, streams[1])),
            "stream: is of rank 1; expected rank 0");
  EXPECT_THAT(bad(braid_run_rank(executable_, plan, 2, nullptr)), HasSubstr("not in a world of 2"));
  EXPECT_THAT(bad(braid_run_rank(executable_, nullptr, 0, nullptr)), HasSubstr("plan: the handle"));
  std::thread other([&] { good(braid_run_rank(executable_, plan, 1, streams[1])); });
  good(braid_run_rank(executable_, plan, 0, nullptr));
  other.join();
  good(braid_get_output(executable_, 1, "y", values.data(), sizeof values));
  EXPECT_EQ(values[9], 4);
  for (braid_stream stream : streams) good(braid_stream_destroy(stream));
}

TEST_F(C, CancelledRunsAreToldOnce) {
  EXPECT_THAT(bad(braid_cancel(nullptr)), HasSubstr("executable: the handle is null"));
  const braid_plan plan = prepare_with_zeros(4);
  good(braid_cancel(executable_));
  good(braid_run(executable_, plan, nullptr, 0));
  EXPECT_EQ(braid_synchronize(executable_), BRAID_CANCELLED);
  EXPECT_STREQ(braid_last_error(), "sum: its runs were cancelled");
  good(braid_synchronize(executable_));
}

TEST_F(C, HandlesAreCheckedAndKeepWhatTheyNeed) {
  EXPECT_THAT(bad(braid_synchronize(nullptr)), HasSubstr("executable: the handle is null"));
  EXPECT_THAT(bad(braid_world_destroy(reinterpret_cast<braid_world>(this))), HasSubstr("nothing"));
  braid_plan plan = prepare(2);
  EXPECT_THAT(bad(braid_synchronize(reinterpret_cast<braid_executable>(this))),
              HasSubstr("nothing that is there"));
  good(braid_world_destroy(world_));
  EXPECT_THAT(bad(braid_compile(world_, kGraph, &executable_)), HasSubstr("world: the handle"));
  EXPECT_EQ(executable_, nullptr);
  world_ = nullptr;
  EXPECT_THAT(bad(braid_run(nullptr, plan, nullptr, 0)), HasSubstr("is null"));
  good(braid_plan_destroy(plan));
  EXPECT_THAT(bad(braid_plan_destroy(plan)), HasSubstr("plan: the handle is of nothing"));
}

TEST_F(C, BadArgumentsAreRefused) {
  EXPECT_THAT(bad(braid_world_open(&options_, nullptr)), HasSubstr("world: is null"));
  braid_world world = nullptr;
  options_.bytes = 8;
  EXPECT_THAT(bad(braid_world_open(&options_, &world)), HasSubstr("`bytes` is 8; expected"));
  options_.bytes = sizeof options_;
  options_.device = "tpu";
  EXPECT_THAT(bad(braid_world_open(&options_, &world)), HasSubstr("tpu"));
  options_.device = "cpu";
  options_.world = -1;
  EXPECT_THAT(bad(braid_world_open(&options_, &world)), HasSubstr("-1"));

  braid_executable executable = nullptr;
  EXPECT_THAT(bad(braid_compile(world_, nullptr, &executable)), HasSubstr("graph: is null"));
  EXPECT_THAT(bad(braid_compile(world_, "{", &executable)), HasSubstr("1"));
  EXPECT_THAT(bad(braid_compile(world_, R"({"braid": 2})", &executable)), HasSubstr("/braid"));
  EXPECT_EQ(bad(braid_load(world_, "", &executable)), "directory: is empty");
  EXPECT_THAT(bad(braid_save(executable_, "")), HasSubstr("directory: is empty"));
  EXPECT_THAT(bad(braid_load(world_, "/nonexistent", &executable)),
              HasSubstr("/nonexistent/program.json"));

  alignas(16) Values values{};
  braid_tensor x = tensor(values.data());
  EXPECT_THAT(bad(braid_bind(executable_, 2, "x", &x)),
              HasSubstr("rank: 2 is not in a world of 2"));
  EXPECT_THAT(bad(braid_bind(executable_, 0, nullptr, &x)), HasSubstr("name: is null"));
  EXPECT_THAT(bad(braid_bind(executable_, 0, "z", &x)), HasSubstr("z: is no input or output"));
  EXPECT_THAT(bad(braid_bind(executable_, 0, "x", nullptr)), HasSubstr("tensor: is null"));
  x.dtype = "float";
  EXPECT_THAT(bad(braid_bind(executable_, 0, "x", &x)), HasSubstr("found \"float\"; expected"));
  x.dtype = "f16";
  EXPECT_THAT(bad(braid_bind(executable_, 0, "x", &x)),
              HasSubstr("is bound to f16[4, 8]; expected"));
  x.dtype = "f32";
  x.dims = -1;
  EXPECT_THAT(bad(braid_bind(executable_, 0, "x", &x)), HasSubstr("-1 dims"));
  x.dims = 2;
  x.shape = nullptr;
  EXPECT_THAT(bad(braid_bind(executable_, 0, "x", &x)), HasSubstr("tensor shape: is null"));

  const char* const symbol = "T";
  std::int64_t rows = 5;
  braid_plan plan = nullptr;
  EXPECT_THAT(bad(braid_prepare(executable_, &symbol, &rows, 1, &plan)), HasSubstr("T"));
  EXPECT_THAT(bad(braid_prepare(executable_, nullptr, nullptr, 0, &plan)), HasSubstr("T"));
  EXPECT_THAT(bad(braid_prepare(executable_, nullptr, &rows, 1, &plan)), HasSubstr("symbols"));
  EXPECT_EQ(plan, nullptr);
  x = tensor(values.data());
  EXPECT_THAT(bad(braid_set_input(executable_, 0, "x", &x)), HasSubstr("prepare"));
  plan = prepare_with_zeros(2);
  EXPECT_THAT(bad(braid_set_input(executable_, 0, "x", &x)), HasSubstr("expected f32[2, 8]"));
  shape_[0] = 2;
  x.data = nullptr;
  EXPECT_THAT(bad(braid_set_input(executable_, 0, "x", &x)), HasSubstr("data: is null"));
  EXPECT_THAT(bad(braid_get_output(executable_, 0, "y", values.data(), 64)),
              HasSubstr("before a run"));
  good(braid_run(executable_, plan, nullptr, 0));
  EXPECT_THAT(bad(braid_get_output(executable_, 0, "y", values.data(), 63)),
              HasSubstr("y: has 64 bytes"));
  good(braid_get_output(executable_, 0, "y", values.data(), 64));
  EXPECT_THAT(bad(braid_stream_create(world_, 7, reinterpret_cast<braid_stream*>(&plan))),
              HasSubstr("rank"));
}

// All but the first can be read.
TEST_F(C, DimsAreThoseOfTheGraph) {
  alignas(16) Values values{};
  const std::int64_t extent = 8;
  braid_tensor wild{values.data(), "f32", 100'000'000, &extent, nullptr};
  EXPECT_EQ(bad(braid_bind(executable_, 0, "x", &wild)), "tensor: 100000000 dims; expected 2");
  (void)prepare(4);
  EXPECT_EQ(bad(braid_set_input(executable_, 0, "x", &wild)), "tensor: 100000000 dims; expected 2");
  DLManagedTensor managed{};
  managed.dl_tensor.data = values.data();
  managed.dl_tensor.device = {kDLCPU, 0};
  managed.dl_tensor.dtype = {kDLFloat, 32, 1};
  managed.dl_tensor.ndim = 100'000'000;
  std::int64_t its_extent = 8;
  managed.dl_tensor.shape = &its_extent;
  EXPECT_EQ(bad(braid_bind_dlpack(executable_, 0, "x", &managed)),
            "tensor: 100000000 dims; expected 2");
}

TEST_F(C, OptionsMayBeThoseOfAnOlderHeader) {
  braid_world world = nullptr;
  options_.compile_processes = -1;  // is not read
  options_.bytes = offsetof(braid_world_options, compile_processes);
  good(braid_world_open(&options_, &world));
  good(braid_world_destroy(world));
  for (const std::size_t bytes :
       {std::size_t{0}, options_.bytes - 8, options_.bytes + 4, sizeof options_ + 8}) {
    options_.bytes = bytes;
    EXPECT_THAT(bad(braid_world_open(&options_, &world)), HasSubstr("`bytes` is "));
  }
}

TEST_F(C, PassesTakeOptionsByName) {
  std::int64_t bytes = 0;
  const auto open = [&](const char* const* pass_options) {
    braid_world world = nullptr;
    options_.pass_options = pass_options;
    good(braid_world_open(&options_, &world));
    return world;
  };
  const char* const both[] = {"all-reduce=multimem", "batch-invariant=false",
                              "enable=sink_waits,raise_comms", nullptr};
  const char* const one[] = {"all-reduce=multimem", nullptr};
  const braid_world any_order = open(both);
  good(braid_memory_estimate(any_order, kGraph, &bytes, nullptr));
  const braid_world in_order = open(one);
  braid_executable executable = nullptr;
  for (const std::string& why : {bad(braid_memory_estimate(in_order, kGraph, &bytes, nullptr)),
                                 bad(braid_compile(in_order, kGraph, &executable))}) {
    EXPECT_THAT(why, HasSubstr("all-reduce: multimem adds up in an order of its own"));
  }
  good(braid_world_destroy(any_order));
  good(braid_world_destroy(in_order));
}

TEST_F(C, OptionsOfPassesThatDoNotFitAreRefused) {
  const std::map<const char*, const char*> refused = {
      {"ring", "pass_options: found \"ring\"; expected NAME=VALUE"},
      {"always-pipeline=yes", "always-pipeline: found \"yes\"; expected true or false"},
      {"ring=1", "unknown option \"ring\"; expected one of enable, "},
      {"enable=ring", "unknown pass \"ring\"; expected some of "}};
  for (const auto& [option, why] : refused) {
    braid_world world = nullptr;
    const char* const options[] = {option, nullptr};
    options_.pass_options = options;
    EXPECT_THAT(bad(braid_world_open(&options_, &world)), HasSubstr(why));
    EXPECT_EQ(world, nullptr);
  }
}

TEST_F(C, ATuneDatabaseIsRead) {
  braid_world world = nullptr;
  options_.tune_db = "/nonexistent/tune.db";
  good(braid_world_open(&options_, &world));
  braid_executable executable = nullptr;
  EXPECT_NE(braid_compile(world, kGraph, &executable), BRAID_OK);
  EXPECT_THAT(braid_last_error(), HasSubstr("/nonexistent/tune.db"));
  good(braid_world_destroy(world));
}

TEST_F(C, APlaceToMeetHasAHost) {
  braid_world world = nullptr;
  options_.rank = 1;
  EXPECT_EQ(bad(braid_world_open(&options_, &world)),
            "options: `rank` is 1, and `host` is null; expected a host");
  options_.rank = 0;
  options_.port = 29500;
  EXPECT_THAT(bad(braid_world_open(&options_, &world)), HasSubstr("`port` is 29500"));
}

// Whatever a callback has called meanwhile.
TEST_F(C, NoErrorIsLeftAfterSuccess) {
  options_.progress = [](void* told, std::size_t, std::size_t, const char*) {
    (void)bad(braid_world_destroy(nullptr));
    *static_cast<bool*>(told) = true;
    return 0;
  };
  bool told = false;
  options_.context = &told;
  braid_world world = nullptr;
  braid_executable executable = nullptr;
  good(braid_world_open(&options_, &world));
  good(braid_compile(world, kGraph, &executable));
  EXPECT_TRUE(told);
  good(braid_executable_destroy(executable));
  good(braid_world_destroy(world));
}

TEST_F(C, WhatAnExecutableTakesAndGivesIsListed) {
  braid_executable scaled = nullptr;
  good(braid_compile(world_, R"({
    "braid": 1, "name": "scaled", "groups": {"tp": {"size": 2}},
    "symbols": {"S": {"max": 6, "multiple_of": 2}, "T": {"min": 2, "max": 4}},
    "inputs": [{"name": "x", "dtype": "f32", "shape": ["2*T", "S", 8], "per_rank": true},
               {"name": "w", "dtype": "f32", "shape": [8], "kind": "parameter"}],
    "nodes": [{"name": "y", "op": "mul", "inputs": ["x", "w"]}], "outputs": ["y"]})",
                     &scaled));
  const braid_tensor_info* x = nullptr;
  const braid_tensor_info* w = nullptr;
  const braid_tensor_info* y = nullptr;
  const braid_symbol_info* symbol = nullptr;
  good(braid_input(scaled, 0, &x));
  good(braid_input(scaled, 1, &w));
  good(braid_output(scaled, 0, &y));
  for (const braid_tensor_info* info : {x, y}) {
    ASSERT_EQ(info->dims, 3);
    EXPECT_STREQ(info->dtype, "f32");
    EXPECT_STREQ(info->shape[0], "2*T");
    EXPECT_STREQ(info->shape[1], "S");
    EXPECT_STREQ(info->shape[2], "8");
    EXPECT_EQ(info->parameter, 0);
  }
  EXPECT_STREQ(x->name, "x");
  EXPECT_EQ(x->per_rank, 1);
  EXPECT_STREQ(w->name, "w");
  EXPECT_EQ(w->parameter, 1);
  EXPECT_EQ(w->per_rank, 0);
  EXPECT_STREQ(y->name, "y");
  good(braid_symbol(scaled, 1, &symbol));
  EXPECT_STREQ(symbol->name, "T");
  EXPECT_EQ(symbol->min, 2);
  EXPECT_EQ(symbol->max, 4);
  good(braid_symbol(scaled, 0, &symbol));
  EXPECT_EQ(symbol->multiple_of, 2);
  good(braid_input(scaled, 2, &x));
  good(braid_output(scaled, 1, &y));
  good(braid_symbol(scaled, 2, &symbol));
  EXPECT_EQ(x, nullptr);
  EXPECT_EQ(y, nullptr);
  EXPECT_EQ(symbol, nullptr);
  good(braid_executable_destroy(scaled));
}

TEST_F(C, MemoryOfTheDeviceIsAllocatedCopiedAndBound) {
  std::array<braid_memory, kRanks> memories{};
  std::array<braid_stream, kRanks> streams{};
  std::array<void*, kRanks> addresses{};
  Values values{};
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    good(braid_memory_allocate(world_, rank, 2 * sizeof values, &memories[r]));
    good(braid_memory_address(memories[r], &addresses[r]));
    good(braid_stream_create(world_, rank, &streams[r]));
    values.fill(static_cast<float>(rank + 1));
    good(braid_copy_from_host(streams[r], addresses[r], values.data(), sizeof values));
    good(braid_stream_synchronize(streams[r]));
    const braid_tensor x = tensor(addresses[r]);
    good(braid_bind(executable_, rank, "x", &x));
    const braid_tensor y = tensor(static_cast<char*>(addresses[r]) + sizeof values);
    good(braid_bind(executable_, rank, "y", &y));
  }
  good(braid_run(executable_, prepare(4), streams.data(), kRanks));
  // The other rank's result, by way of the first's input.
  good(braid_stream_synchronize(streams[1]));
  char* const result = static_cast<char*>(addresses[1]) + sizeof values;
  good(braid_copy(streams[0], addresses[0], result, sizeof values));
  good(braid_copy_to_host(streams[0], values.data(), addresses[0], sizeof values));
  good(braid_stream_synchronize(streams[0]));
  EXPECT_EQ(values[31], 3);
  EXPECT_EQ(bad(braid_copy(streams[0], addresses[0], result, sizeof values + 1)),
            "copy, source: 128 bytes at that address; expected 129");
  EXPECT_THAT(bad(braid_memory_allocate(world_, 2, 64, memories.data())), HasSubstr("rank"));
  EXPECT_EQ(memories[0], nullptr);
  EXPECT_THAT(bad(braid_memory_allocate(world_, 0, 0, memories.data())), HasSubstr("bytes: 0"));
  for (braid_stream stream : streams) good(braid_stream_destroy(stream));
  good(braid_memory_destroy(memories[1]));
}

TEST_F(C, DlpackTensorsOfOtherKindsAreRefused) {
  alignas(16) Values values{};
  std::array<std::int64_t, 2> strides{1, 4};
  DLTensor good_one{};
  good_one.data = values.data();
  good_one.device = {kDLCPU, 0};
  good_one.ndim = 2;
  good_one.dtype = {kDLFloat, 32, 1};
  good_one.shape = shape_.data();
  const auto refuse = [&](auto change) {
    DLManagedTensor tensor{};
    tensor.dl_tensor = good_one;
    change(tensor.dl_tensor);
    return bad(braid_bind_dlpack(executable_, 0, "x", &tensor));
  };
  EXPECT_THAT(refuse([](auto& t) {
                t.device = {kDLCUDA, 0};
              }),
              HasSubstr("expected the cpu device"));
  EXPECT_THAT(refuse([](auto& t) { t.dtype = {kDLComplex, 64, 1}; }), HasSubstr("code 5 of 64"));
  EXPECT_THAT(refuse([](auto& t) { t.dtype.lanes = 4; }), HasSubstr("4 lanes"));
  EXPECT_THAT(refuse([](auto& t) { t.dtype = {kDLInt, 32, 1}; }), HasSubstr("i32[4, 8]; expected"));
  EXPECT_THAT(refuse([&](auto& t) { t.strides = strides.data(); }), HasSubstr("strides (1, 4)"));
  EXPECT_THAT(refuse([](auto& t) { t.byte_offset = 4; }), HasSubstr("multiple of 16"));
  EXPECT_THAT(bad(braid_bind_dlpack(executable_, 0, "x", nullptr)), HasSubstr("is null"));
}

TEST_F(C, MetricsTellWhatWasDone) {
  braid_metrics before{};
  good(braid_world_metrics(world_, &before));
  EXPECT_GT(before.kernels_compiled + before.kernels_from_cache, 0);
  EXPECT_EQ(before.runs, 0);
  const braid_plan plan = prepare_with_zeros(1);
  for (int i = 0; i < 3; ++i) good(braid_run(executable_, plan, nullptr, 0));
  good(braid_synchronize(executable_));
  braid_metrics after{};
  good(braid_world_metrics(world_, &after));
  EXPECT_EQ(after.kernels_compiled, before.kernels_compiled);
  EXPECT_EQ(after.plans, 1);
  EXPECT_EQ(after.runs, 3);
  EXPECT_EQ(after.failures, 0);
  EXPECT_THAT(bad(braid_world_metrics(world_, nullptr)), HasSubstr("metrics: is null"));
}

TEST_F(C, MemoryOfTheCallersAllocator) {
  struct Pool {
    std::map<std::uint64_t, std::size_t> taken;
    std::size_t bytes = 0;
    std::uint64_t misaligned = 0;
    bool empty = false;
  } pool;
  options_.context = &pool;
  options_.allocate = [](void* context, std::int32_t rank, std::size_t bytes) -> std::uint64_t {
    auto* const mine = static_cast<Pool*>(context);
    EXPECT_LT(rank, kRanks);
    if (mine->empty) return 0;
    void* const memory = std::aligned_alloc(256, (bytes + 511) / 256 * 256);
    const auto address = reinterpret_cast<std::uint64_t>(memory) + mine->misaligned;
    mine->taken[address] = bytes;
    mine->bytes += bytes;
    return address;
  };
  options_.free = [](void* context, std::int32_t, std::uint64_t address, std::size_t bytes) {
    auto* const mine = static_cast<Pool*>(context);
    EXPECT_EQ(mine->taken.at(address), bytes);
    mine->taken.erase(address);
    std::free(reinterpret_cast<void*>(address - mine->misaligned));  // NOLINT
  };
  braid_world world = nullptr;
  braid_executable executable = nullptr;
  good(braid_world_open(&options_, &world));
  good(braid_compile(world, kGraph, &executable));
  std::swap(executable, executable_);
  const braid_plan plan = prepare(4);
  std::int64_t bound = 0;
  std::int64_t bytes = 0;
  good(braid_memory_estimate(world, kGraph, &bytes, &bound));
  EXPECT_GE(pool.bytes, static_cast<std::size_t>(kRanks * bound));
  alignas(16) Values values{};
  values.fill(2);
  const braid_tensor x = tensor(values.data());
  for (int rank = 0; rank < kRanks; ++rank) good(braid_set_input(executable_, rank, "x", &x));
  good(braid_run(executable_, plan, nullptr, 0));
  good(braid_get_output(executable_, 1, "y", values.data(), sizeof values));
  EXPECT_EQ(values[9], 4);
  good(braid_executable_destroy(executable_));
  EXPECT_TRUE(pool.taken.empty());

  const char* const symbol = "T";
  const std::int64_t rows = 1;
  for (const auto& [change, what] :
       {std::pair<void (*)(Pool&), const char*>{[](Pool& p) { p.misaligned = 16; },
                                                "expected a multiple of 256"},
        {[](Pool& p) { p.empty = true; }, "allocator: has no"}}) {
    change(pool);
    braid_plan none = nullptr;
    braid_status status = braid_compile(world, kGraph, &executable_);
    if (status == BRAID_OK) status = braid_prepare(executable_, &symbol, &rows, 1, &none);
    EXPECT_NE(status, BRAID_OK);
    EXPECT_THAT(braid_last_error(), HasSubstr(what));
    EXPECT_TRUE(pool.taken.empty());
    if (executable_ != nullptr) good(braid_executable_destroy(executable_));
  }
  executable_ = executable;
  good(braid_world_destroy(world));
  options_.free = nullptr;
  EXPECT_THAT(bad(braid_world_open(&options_, &world)), HasSubstr("allocator: has one of"));
}

TEST_F(C, EstimatesAndCallbacks) {
  std::int64_t bytes = 0;
  std::int64_t bound = 0;
  good(braid_memory_estimate(world_, kGraph, &bytes, &bound));
  EXPECT_GE(bound, 2 * 4 * kWidth * 4);
  EXPECT_GT(bytes, bound);
  good(braid_memory_estimate(world_, kGraph, &bytes, nullptr));
  struct Told {
    std::size_t calls = 0;
    std::size_t allowed = 100;
  } told;
  options_.context = &told;
  options_.progress = [](void* context, std::size_t done, std::size_t total, const char* what) {
    EXPECT_LE(done, total);
    EXPECT_NE(what, nullptr);
    auto* const mine = static_cast<Told*>(context);
    return ++mine->calls > mine->allowed ? 1 : 0;
  };
  braid_world world = nullptr;
  braid_executable executable = nullptr;
  good(braid_world_open(&options_, &world));
  good(braid_compile(world, kGraph, &executable));
  EXPECT_GT(told.calls, 0);
  good(braid_executable_destroy(executable));
  told = {.calls = 0, .allowed = 0};
  EXPECT_EQ(braid_compile(world, kGraph, &executable), BRAID_CANCELLED);
  EXPECT_STREQ(braid_last_error(), "progress: was told to stop");
  EXPECT_EQ(executable, nullptr);
  told.allowed = 100;
  good(braid_compile(world, kGraph, &executable));  // and nothing is the worse for it
  good(braid_executable_destroy(executable));
  good(braid_world_destroy(world));
  EXPECT_STREQ(braid_version(), "0.1.0");
}

}  // namespace
