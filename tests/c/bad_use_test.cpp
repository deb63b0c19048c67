// Every call of the C interface with what is null and with handles of something that is gone.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "braid/braid.h"
#include "runtime/child.h"

namespace {

constexpr const char* kGraph = R"({"braid": 1, "name": "double", "symbols": {"T": {"max": 4}},
  "inputs": [{"name": "x", "dtype": "f32", "shape": ["T", 8]}],
  "nodes": [{"name": "y", "op": "add", "inputs": ["x", "x"]}], "outputs": ["y"]})";

constexpr const char* kPtx =
    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry nothing() { ret; }\n";

/// Everything that a call may be given.
struct Things {
  braid_world world = nullptr;
  braid_executable executable = nullptr;
  braid_plan plan = nullptr;
  braid_stream stream = nullptr;
  braid_event event = nullptr;
  braid_graph graph = nullptr;
  braid_memory own = nullptr;
  braid_symmetric memory = nullptr;
  braid_kernel kernel = nullptr;
};

struct Call {
  const char* name;
  std::function<braid_status(const Things&)> run;
};

const std::int64_t kShape[] = {2, 8};
const char* const kSymbol = "T";
const std::int64_t kRows = 2;
float values[16];
const braid_tensor kTensor{values, "f32", 2, kShape, nullptr};
const braid_kernel_source kSource{.bytes = sizeof kSource, .ptx = kPtx, .entry = "nothing"};
const braid_launch kLaunch{.bytes = sizeof kLaunch};
const braid_tensor_map kMap{.bytes = sizeof kMap};

/// The calls that take a handle, all else being good.
std::vector<Call> calls_with_handles() {
  static braid_executable executable;
  static braid_plan plan;
  static braid_stream stream;
  static braid_event event;
  static braid_graph graph;
  static braid_memory own;
  static braid_symmetric memory;
  static braid_kernel kernel;
  static const char* text;
  static braid_metrics metrics;
  static const braid_tensor_info* tensor;
  static const braid_symbol_info* symbol;
  static std::int64_t bytes;
  static std::int32_t ready;
  static void* address;
  return {
      {"world_barrier", [](auto& t) { return braid_world_barrier(t.world); }},
      {"world_metrics", [](auto& t) { return braid_world_metrics(t.world, &metrics); }},
      {"compile", [](auto& t) { return braid_compile(t.world, kGraph, &executable); }},
      {"memory_estimate",
       [](auto& t) { return braid_memory_estimate(t.world, kGraph, &bytes, &bytes); }},
      {"load", [](auto& t) { return braid_load(t.world, "/nonexistent", &executable); }},
      {"save", [](auto& t) { return braid_save(t.executable, "/proc/none"); }},
      {"another", [](auto& t) { return braid_another(t.executable, &executable); }},
      {"input", [](auto& t) { return braid_input(t.executable, 0, &tensor); }},
      {"output", [](auto& t) { return braid_output(t.executable, 0, &tensor); }},
      {"symbol", [](auto& t) { return braid_symbol(t.executable, 0, &symbol); }},
      {"bind", [](auto& t) { return braid_bind(t.executable, 0, "x", &kTensor); }},
      {"prepare", [](auto& t) { return braid_prepare(t.executable, &kSymbol, &kRows, 1, &plan); }},
      {"ready", [](auto& t) { return braid_ready(t.executable, &kSymbol, &kRows, 1, &ready); }},
      {"set_input", [](auto& t) { return braid_set_input(t.executable, 0, "x", &kTensor); }},
      {"get_output",
       [](auto& t) { return braid_get_output(t.executable, 0, "y", values, sizeof values); }},
      {"run", [](auto& t) { return braid_run(t.executable, t.plan, &t.stream, 1); }},
      {"run_rank", [](auto& t) { return braid_run_rank(t.executable, t.plan, 0, nullptr); }},
      {"cancel", [](auto& t) { return braid_cancel(t.executable); }},
      {"synchronize", [](auto& t) { return braid_synchronize(t.executable); }},
      {"recover", [](auto& t) { return braid_recover(t.executable); }},
      {"stream_create", [](auto& t) { return braid_stream_create(t.world, 0, &stream); }},
      {"stream_wrap", [](auto& t) { return braid_stream_wrap(t.world, 0, nullptr, &stream); }},
      {"stream_synchronize", [](auto& t) { return braid_stream_synchronize(t.stream); }},
      {"event_create", [](auto& t) { return braid_event_create(t.world, 0, &event); }},
      {"event_record", [](auto& t) { return braid_event_record(t.event, t.stream); }},
      {"stream_wait", [](auto& t) { return braid_stream_wait(t.stream, t.event); }},
      {"begin_capture", [](auto& t) { return braid_begin_capture(t.stream); }},
      {"end_capture", [](auto& t) { return braid_end_capture(t.stream, &graph); }},
      {"replay", [](auto& t) { return braid_replay(t.graph, t.stream); }},
      {"memory_allocate", [](auto& t) { return braid_memory_allocate(t.world, 0, 64, &own); }},
      {"memory_address", [](auto& t) { return braid_memory_address(t.own, &address); }},
      {"copy", [](auto& t) { return braid_copy(t.stream, values, values + 8, 32); }},
      {"copy_from_host",
       [](auto& t) { return braid_copy_from_host(t.stream, values, values + 8, 32); }},
      {"copy_to_host",
       [](auto& t) { return braid_copy_to_host(t.stream, values, values + 8, 32); }},
      {"symmetric_allocate",
       [](auto& t) { return braid_symmetric_allocate(t.world, "m", 64, &memory); }},
      {"symmetric_register",
       [](auto& t) { return braid_symmetric_register(t.world, "m", &address, 1, 64, &memory); }},
      {"symmetric_address",
       [](auto& t) { return braid_symmetric_address(t.memory, 0, 0, &address); }},
      {"symmetric_barrier",
       [](auto& t) { return braid_symmetric_barrier(t.memory, 0, t.stream, 0); }},
      {"symmetric_put_signal",
       [](auto& t) { return braid_symmetric_put_signal(t.memory, 0, 1, t.stream, 0); }},
      {"symmetric_wait_signal",
       [](auto& t) { return braid_symmetric_wait_signal(t.memory, 0, 1, t.stream, 0); }},
      {"symmetric_check", [](auto& t) { return braid_symmetric_check(t.memory); }},
      {"symmetric_recover", [](auto& t) { return braid_symmetric_recover(t.memory); }},
      {"kernel_load", [](auto& t) { return braid_kernel_load(t.world, 0, &kSource, &kernel); }},
      {"kernel_launch", [](auto& t) { return braid_kernel_launch(t.kernel, t.stream, &kLaunch); }},
      {"kernel_counts", [](auto& t) { return braid_kernel_counts(t.kernel, "H100", &text); }},
      {"tensor_map_encode",
       [](auto& t) { return braid_tensor_map_encode(t.world, &kMap, values); }},
      {"memory_lend",
       [](auto& t) { return braid_memory_lend(t.world, 0, values, 4, "values", &own); }},
      {"findings", [](auto& t) { return braid_findings(t.world, &text); }},
      {"forget", [](auto& t) { return braid_forget(t.world); }},
      {"kernel_destroy", [](auto& t) { return braid_kernel_destroy(t.kernel); }},
      {"symmetric_destroy", [](auto& t) { return braid_symmetric_destroy(t.memory); }},
      {"memory_destroy", [](auto& t) { return braid_memory_destroy(t.own); }},
      {"graph_destroy", [](auto& t) { return braid_graph_destroy(t.graph); }},
      {"event_destroy", [](auto& t) { return braid_event_destroy(t.event); }},
      {"stream_destroy", [](auto& t) { return braid_stream_destroy(t.stream); }},
      {"plan_destroy", [](auto& t) { return braid_plan_destroy(t.plan); }},
      {"executable_destroy", [](auto& t) { return braid_executable_destroy(t.executable); }},
      {"world_destroy", [](auto& t) { return braid_world_destroy(t.world); }},
  };
}

/// The calls that are given null for something that is no handle.
std::vector<Call> calls_with_null() {
  static braid_executable executable;
  static braid_plan plan;
  static braid_stream stream;
  static braid_symmetric memory;
  static std::int64_t bytes;
  static const char* null_text = nullptr;
  static const char* text;
  static braid_kernel kernel;
  static braid_memory own;
  static braid_device_info info;
  static std::int32_t ready;
  return {
      {"world_open", [](auto&) { return braid_world_open(nullptr, nullptr); }},
      {"world_metrics", [](auto& t) { return braid_world_metrics(t.world, nullptr); }},
      {"compile", [](auto& t) { return braid_compile(t.world, nullptr, &executable); }},
      {"compile", [](auto& t) { return braid_compile(t.world, kGraph, nullptr); }},
      {"memory_estimate",
       [](auto& t) { return braid_memory_estimate(t.world, nullptr, &bytes, nullptr); }},
      {"memory_estimate",
       [](auto& t) { return braid_memory_estimate(t.world, kGraph, nullptr, nullptr); }},
      {"save", [](auto& t) { return braid_save(t.executable, nullptr); }},
      {"load", [](auto& t) { return braid_load(t.world, nullptr, &executable); }},
      {"load", [](auto& t) { return braid_load(t.world, "/nonexistent", nullptr); }},
      {"another", [](auto& t) { return braid_another(t.executable, nullptr); }},
      {"input", [](auto& t) { return braid_input(t.executable, 0, nullptr); }},
      {"output", [](auto& t) { return braid_output(t.executable, 0, nullptr); }},
      {"symbol", [](auto& t) { return braid_symbol(t.executable, 0, nullptr); }},
      {"bind", [](auto& t) { return braid_bind(t.executable, 0, nullptr, &kTensor); }},
      {"bind", [](auto& t) { return braid_bind(t.executable, 0, "x", nullptr); }},
      {"bind_dlpack", [](auto& t) { return braid_bind_dlpack(t.executable, 0, "x", nullptr); }},
      {"prepare", [](auto& t) { return braid_prepare(t.executable, nullptr, &kRows, 1, &plan); }},
      {"prepare", [](auto& t) { return braid_prepare(t.executable, &kSymbol, nullptr, 1, &plan); }},
      {"prepare",
       [](auto& t) { return braid_prepare(t.executable, &null_text, &kRows, 1, &plan); }},
      {"prepare",
       [](auto& t) { return braid_prepare(t.executable, &kSymbol, &kRows, 1, nullptr); }},
      {"ready", [](auto& t) { return braid_ready(t.executable, nullptr, &kRows, 1, &ready); }},
      {"ready", [](auto& t) { return braid_ready(t.executable, &kSymbol, &kRows, 1, nullptr); }},
      {"set_input", [](auto& t) { return braid_set_input(t.executable, 0, nullptr, &kTensor); }},
      {"set_input", [](auto& t) { return braid_set_input(t.executable, 0, "x", nullptr); }},
      {"get_output",
       [](auto& t) { return braid_get_output(t.executable, 0, nullptr, values, 64); }},
      {"get_output", [](auto& t) { return braid_get_output(t.executable, 0, "y", nullptr, 64); }},
      {"run", [](auto& t) { return braid_run(t.executable, t.plan, nullptr, 1); }},
      {"run", [](auto& t) { return braid_run(t.executable, t.plan, &stream, 1); }},
      {"stream_create", [](auto& t) { return braid_stream_create(t.world, 0, nullptr); }},
      {"stream_wrap", [](auto& t) { return braid_stream_wrap(t.world, 0, nullptr, nullptr); }},
      {"event_create", [](auto& t) { return braid_event_create(t.world, 0, nullptr); }},
      {"end_capture", [](auto& t) { return braid_end_capture(t.stream, nullptr); }},
      {"memory_allocate", [](auto& t) { return braid_memory_allocate(t.world, 0, 64, nullptr); }},
      {"memory_address", [](auto& t) { return braid_memory_address(t.own, nullptr); }},
      {"copy", [](auto& t) { return braid_copy(t.stream, values, nullptr, 4); }},
      {"copy", [](auto& t) { return braid_copy(t.stream, nullptr, values, 4); }},
      {"copy_from_host",
       [](auto& t) { return braid_copy_from_host(t.stream, values, nullptr, 4); }},
      {"copy_from_host",
       [](auto& t) { return braid_copy_from_host(t.stream, nullptr, values, 4); }},
      {"copy_to_host", [](auto& t) { return braid_copy_to_host(t.stream, nullptr, values, 4); }},
      {"copy_to_host", [](auto& t) { return braid_copy_to_host(t.stream, values, nullptr, 4); }},
      {"symmetric_allocate",
       [](auto& t) { return braid_symmetric_allocate(t.world, nullptr, 64, &memory); }},
      {"symmetric_allocate",
       [](auto& t) { return braid_symmetric_allocate(t.world, "m", 64, nullptr); }},
      {"symmetric_register",
       [](auto& t) { return braid_symmetric_register(t.world, "m", nullptr, 1, 64, &memory); }},
      {"symmetric_address",
       [](auto& t) { return braid_symmetric_address(t.memory, 0, 0, nullptr); }},
      {"kernel_load", [](auto& t) { return braid_kernel_load(t.world, 0, nullptr, &kernel); }},
      {"kernel_load", [](auto& t) { return braid_kernel_load(t.world, 0, &kSource, nullptr); }},
      {"kernel_launch", [](auto& t) { return braid_kernel_launch(t.kernel, t.stream, nullptr); }},
      {"kernel_counts", [](auto& t) { return braid_kernel_counts(t.kernel, nullptr, &text); }},
      {"kernel_counts", [](auto& t) { return braid_kernel_counts(t.kernel, "H100", nullptr); }},
      {"tensor_map_encode",
       [](auto& t) { return braid_tensor_map_encode(t.world, nullptr, values); }},
      {"tensor_map_encode",
       [](auto& t) { return braid_tensor_map_encode(t.world, &kMap, nullptr); }},
      {"memory_lend",
       [](auto& t) { return braid_memory_lend(t.world, 0, nullptr, 4, "values", &own); }},
      {"memory_lend",
       [](auto& t) { return braid_memory_lend(t.world, 0, values, 4, nullptr, &own); }},
      {"memory_lend",
       [](auto& t) { return braid_memory_lend(t.world, 0, values, 4, "values", nullptr); }},
      {"findings", [](auto& t) { return braid_findings(t.world, nullptr); }},
      {"describe_device", [](auto&) { return braid_describe_device(nullptr, &info); }},
      {"describe_device", [](auto&) { return braid_describe_device("H100", nullptr); }},
  };
}

void refused(const Call& call, const Things& things) {
  EXPECT_EQ(call.run(things), BRAID_INVALID_ARGUMENT) << call.name;
  EXPECT_STRNE(braid_last_error(), "") << call.name;
  EXPECT_EQ(std::strchr(braid_last_error(), '\n'), nullptr) << call.name;
}

class BadUseOfC : public ::testing::Test {
 protected:
  BadUseOfC() {
    const braid_world_options options{
        .bytes = sizeof(braid_world_options), .device = "cpu", .threads = 1};
    good(braid_world_open(&options, &things_.world));
    good(braid_compile(things_.world, kGraph, &things_.executable));
    good(braid_prepare(things_.executable, &kSymbol, &kRows, 1, &things_.plan));
    good(braid_stream_create(things_.world, 0, &things_.stream));
    good(braid_event_create(things_.world, 0, &things_.event));
    good(braid_memory_allocate(things_.world, 0, 64, &things_.own));
    good(braid_symmetric_allocate(things_.world, "m", 64, &things_.memory));
    good(braid_kernel_load(things_.world, 0, &kSource, &things_.kernel));
    good(braid_begin_capture(things_.stream));
    good(braid_end_capture(things_.stream, &things_.graph));
  }
  static void good(braid_status status) { EXPECT_EQ(status, BRAID_OK) << braid_last_error(); }
  void destroy() {
    good(braid_kernel_destroy(things_.kernel));
    good(braid_graph_destroy(things_.graph));
    good(braid_symmetric_destroy(things_.memory));
    good(braid_memory_destroy(things_.own));
    good(braid_event_destroy(things_.event));
    good(braid_stream_destroy(things_.stream));
    good(braid_plan_destroy(things_.plan));
    good(braid_executable_destroy(things_.executable));
    good(braid_world_destroy(things_.world));
  }
  Things things_;
};

TEST_F(BadUseOfC, HandlesThatAreNullGoneOrOfAnotherKind) {
  for (const Call& call : calls_with_handles()) refused(call, {});
  // Each is one that is there, of another kind.
  Things swapped;
  const auto put = [](auto& handle, const auto& other) {
    std::memcpy(&handle, &other, sizeof handle);
  };
  put(swapped.world, things_.executable);
  put(swapped.executable, things_.plan);
  put(swapped.plan, things_.stream);
  put(swapped.stream, things_.event);
  put(swapped.event, things_.graph);
  put(swapped.graph, things_.memory);
  put(swapped.own, things_.world);
  put(swapped.memory, things_.own);
  put(swapped.kernel, things_.world);
  for (const Call& call : calls_with_handles()) refused(call, swapped);
  destroy();
  for (const Call& call : calls_with_handles()) refused(call, things_);
}

// Its threads are the parent's alone.
TEST_F(BadUseOfC, AForkOfTheProcess) {
  const int good_ones = braid::in_child([&] {
    ::alarm(60);
    int count = 0;
    for (const Call& call : calls_with_handles()) {
      if (std::strstr(call.name, "destroy") != nullptr) continue;
      const bool is_refused = call.run(things_) == BRAID_INVALID_ARGUMENT &&
                              std::strstr(braid_last_error(), "a fork") != nullptr;
      if (!is_refused) std::fprintf(stderr, "%s: %s\n", call.name, braid_last_error());
      count += is_refused ? 0 : 1;
    }
    return count;
  });
  EXPECT_EQ(good_ones, 0);
  destroy();
}

TEST_F(BadUseOfC, WhatIsNullAndMayNotBe) {
  for (const Call& call : calls_with_null()) refused(call, things_);
  // The executable still works.
  good(braid_set_input(things_.executable, 0, "x", &kTensor));
  good(braid_run(things_.executable, things_.plan, &things_.stream, 1));
  good(braid_get_output(things_.executable, 0, "y", values, sizeof values));
  destroy();
}

}  // namespace
